#pragma once
// Result<T>: a value, or the message of a failure that is expected in normal operation (cache miss, no such library,
// compile failed). For user mistakes use VESTA_CHECK. Result<void> says only whether it went well.
#include <vesta/error.h>

#include <optional>
#include <string>
#include <utility>

namespace vesta {

// return Failure{"dlopen: ..."} from a function that returns Result<T>.
struct Failure {
  std::string message;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T held) : value_(std::move(held)) {}                        // NOLINT: implicit by design
  Result(Failure failure) : message_(std::move(failure.message)) {}  // NOLINT: implicit by design

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  // "" where it went well.
  const std::string& error() const { return message_; }

  // Throw InternalError with the failure's message where there is no value.
  T& value() & {
    check();
    return *value_;
  }
  const T& value() const& {
    check();
    return *value_;
  }
  T value() && {
    check();
    return std::move(*value_);
  }
  T value_or(T other) && { return ok() ? std::move(*value_) : std::move(other); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }

 private:
  void check() const { VESTA_CHECK_AS(InternalError, ok(), "result: no value: ", message_); }

  std::optional<T> value_;
  std::string message_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Failure failure)
      : failed_(true), message_(std::move(failure.message)) {}  // NOLINT: implicit by design

  bool ok() const { return !failed_; }
  explicit operator bool() const { return ok(); }
  const std::string& error() const { return message_; }
  void value() const { VESTA_CHECK_AS(InternalError, ok(), "result: failed: ", message_); }

 private:
  bool failed_ = false;
  std::string message_;
};

}  // namespace vesta
