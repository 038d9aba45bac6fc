#pragma once
// libtorch's warning handlers, objects with a virtual process(), in front of Vesta's function pointers.
#include "torch/compat/namespaces.h"

namespace c10 {

struct SourceLocation {
  const char* function;
  const char* file;
  uint32_t line;
};

class WarningHandler {
 public:
  virtual ~WarningHandler() = default;
  virtual void process(const SourceLocation& location, const std::string& message, bool verbatim) = 0;
};

namespace Warning {
namespace detail {
inline WarningHandler*& current() {
  static WarningHandler* handler =
      nullptr;  // set and read by the program's threads in turn, as in libtorch's tests
  return handler;
}
inline void forward(const char* message, void* context) {
  static_cast<WarningHandler*>(context)->process({"", "", 0}, message, false);
}
}  // namespace detail
inline WarningHandler* get_warning_handler() { return detail::current(); }
// Null: warnings go to stderr.
inline void set_warning_handler(WarningHandler* handler) {
  detail::current() = handler;
  vesta::set_warning_handler(handler ? &detail::forward : nullptr, handler);
}
inline bool set_warnAlways(bool always) { return vesta::set_warn_always(always); }
class WarnAlways {
 public:
  explicit WarnAlways(bool on = true) : previous_(vesta::set_warn_always(on)) {}
  ~WarnAlways() { vesta::set_warn_always(previous_); }
  WarnAlways(const WarnAlways&) = delete;

 private:
  bool previous_;
};
}  // namespace Warning
}  // namespace c10

namespace torch {
using c10::SourceLocation;
using c10::WarningHandler;
namespace Warning = c10::Warning;
}  // namespace torch
