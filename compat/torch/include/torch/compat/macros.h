#pragma once
// libtorch's macros.
#include "torch/compat/namespaces.h"

#define TORCH_MODULE(Name) VESTA_MODULE(Name)
#define TORCH_MODULE_IMPL(Name, Impl) VESTA_MODULE_IMPL(Name, Impl)
#define TORCH_ARG(T, name) VESTA_ARG(T, name)
#define FORWARD_HAS_DEFAULT_ARGS(...) VESTA_FORWARD_DEFAULTS(__VA_ARGS__)
#define TORCH_API
#define AT_API
#define C10_API
#define C10_UNUSED [[maybe_unused]]
#define C10_NODISCARD [[nodiscard]]
#define C10_LIKELY(condition) (__builtin_expect(static_cast<bool>(condition), 1))
#define C10_UNLIKELY(condition) (__builtin_expect(static_cast<bool>(condition), 0))

// Failed checks throw c10::Error, whose message ends with where the check stands, as libtorch's does.
#define TORCH_CHECK_AS_(type, condition, text, ...)                                                       \
  do {                                                                                                    \
    if (!(condition)) [[unlikely]]                                                                        \
      throw type(                                                                                         \
          ::vesta::detail::check_message("Expected " text " to be true, but got false.", ##__VA_ARGS__)); \
  } while (0)
#define TORCH_CHECK(condition, ...) TORCH_CHECK_AS_(::vesta::ValueError, condition, #condition, ##__VA_ARGS__)
#define TORCH_CHECK_INDEX(condition, ...) \
  TORCH_CHECK_AS_(::vesta::IndexError, condition, #condition, ##__VA_ARGS__)
#define TORCH_CHECK_VALUE(condition, ...) \
  TORCH_CHECK_AS_(::vesta::ValueError, condition, #condition, ##__VA_ARGS__)
#define TORCH_CHECK_TYPE(condition, ...) \
  TORCH_CHECK_AS_(::vesta::TypeError, condition, #condition, ##__VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(condition, ...) \
  TORCH_CHECK_AS_(::vesta::NotImplementedError, condition, #condition, ##__VA_ARGS__)
#define TORCH_INTERNAL_ASSERT(condition, ...) \
  TORCH_CHECK_AS_(::vesta::InternalError, condition, #condition, ##__VA_ARGS__)
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(condition, ...) TORCH_INTERNAL_ASSERT(condition, ##__VA_ARGS__)
#define AT_ASSERT(condition, ...) TORCH_INTERNAL_ASSERT(condition, ##__VA_ARGS__)
#define AT_ASSERTM(condition, ...) TORCH_CHECK(condition, ##__VA_ARGS__)
#define AT_ERROR(...) TORCH_CHECK(false, __VA_ARGS__)
#define TORCH_WARN(...) ::vesta::warn(::vesta::detail::message(__VA_ARGS__))
#define TORCH_WARN_ONCE(...) ::vesta::warn_once(::vesta::detail::message(__VA_ARGS__))

// c10::Error is vesta::Error, since that is what operators throw; its text carries no backtrace.
#define what_without_backtrace what

namespace vesta::detail {
inline std::string check_message(const char* fallback) { return fallback; }
template <class... Parts>
std::string check_message(const char*, const Parts&... parts) {
  return message(parts...);
}
}  // namespace vesta::detail
