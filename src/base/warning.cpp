// The warning handler and the memory of warn_once.
#include <vesta/warning.h>

#include <atomic>
#include <cstdio>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "base/log.h"

namespace vesta {
namespace {

constexpr size_t kMaxRemembered = 1000;

// Leaked on purpose: threads that outlive main may still warn.
struct State {
  std::mutex mutex;
  WarningHandler handler = nullptr;
  void* context = nullptr;
  bool always = false;
  std::unordered_set<std::string> seen;
};
State& state() {
  static State& it = *new State;
  return it;
}

}  // namespace

WarningHandler set_warning_handler(WarningHandler handler, void* context) {
  std::lock_guard lock(state().mutex);
  state().context = context;
  return std::exchange(state().handler, handler);
}

bool set_warn_always(bool always) {
  std::lock_guard lock(state().mutex);
  return std::exchange(state().always, always);
}

void warn(const std::string& message) {
  VESTA_LOG(Warnings, Debug, message);
  WarningHandler handler;
  void* context;
  {
    std::lock_guard lock(state().mutex);
    handler = state().handler;
    context = state().context;
  }
  // Outside the lock: a handler may warn, throw or replace itself.
  if (handler) return handler(message.c_str(), context);
  std::string line = "vesta: warning: " + message + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void warn_once(const std::string& message) {
  {
    std::lock_guard lock(state().mutex);
    auto& seen = state().seen;
    bool first = seen.size() < kMaxRemembered && seen.insert(message).second;
    if (!first && !state().always) {
      VESTA_LOG(Warnings, Debug, "repeated: ", message);
      return;
    }
  }
  warn(message);
}

}  // namespace vesta
