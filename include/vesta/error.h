#pragma once
// Errors that Vesta throws. User mistakes are checked with VESTA_CHECK, which throws a typed Error whose what()
// names the op, the expectation and the value. The library never aborts the process.
#include <exception>
#include <sstream>
#include <string>

namespace vesta {

enum class ErrorKind { Value, Index, Type, NotImplemented, OutOfMemory, Linalg, Io, Internal };

// Base of every exception thrown by Vesta. what() starts with the op's or the function's name.
class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }
  ErrorKind kind() const { return kind_; }
  const std::string& message() const { return message_; }

 private:
  ErrorKind kind_;
  std::string message_;
};

struct ValueError : Error {
  explicit ValueError(std::string m) : Error(ErrorKind::Value, std::move(m)) {}
};
struct IndexError : Error {
  explicit IndexError(std::string m) : Error(ErrorKind::Index, std::move(m)) {}
};
struct TypeError : Error {
  explicit TypeError(std::string m) : Error(ErrorKind::Type, std::move(m)) {}
};
struct NotImplementedError : Error {
  explicit NotImplementedError(std::string m) : Error(ErrorKind::NotImplemented, std::move(m)) {}
};
struct OutOfMemory : Error {
  explicit OutOfMemory(std::string m) : Error(ErrorKind::OutOfMemory, std::move(m)) {}
};
struct LinalgError : Error {
  explicit LinalgError(std::string m) : Error(ErrorKind::Linalg, std::move(m)) {}
};
struct IoError : Error {
  explicit IoError(std::string m) : Error(ErrorKind::Io, std::move(m)) {}
};
struct InternalError : Error {
  explicit InternalError(std::string m) : Error(ErrorKind::Internal, std::move(m)) {}
};

namespace detail {
template <class... Parts>
std::string message(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}
}  // namespace detail

}  // namespace vesta

// VESTA_CHECK(cond, "mm: expected a 2-D tensor, got ", dim): throws ValueError where cond is false.
#define VESTA_CHECK(cond, ...) VESTA_CHECK_AS(ValueError, cond, __VA_ARGS__)
#define VESTA_CHECK_AS(ErrorType, cond, ...)                           \
  do {                                                                 \
    if (!(cond)) [[unlikely]]                                          \
      throw ::vesta::ErrorType(::vesta::detail::message(__VA_ARGS__)); \
  } while (0)

// Programmer mistakes inside Vesta; checked in debug builds and tests.
#ifdef VESTA_DEBUG
#define VESTA_ASSERT(cond) \
  VESTA_CHECK_AS(InternalError, cond, "internal: ", #cond, " failed at ", __FILE__, ":", __LINE__)
#else
#define VESTA_ASSERT(cond) ((void)0)
#endif
