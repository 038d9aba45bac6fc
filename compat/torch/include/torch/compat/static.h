#pragma once
// Compile-time helpers of torch/detail/static.h and torch/csrc/utils/variadic.h that programs with templates over modules
// use.
#include "torch/compat/namespaces.h"

namespace torch {
template <bool... values>
struct all_of : std::bool_constant<(values && ...)> {};
template <bool... values>
struct any_of : std::bool_constant<(values || ...)> {};
// Calls the function with each argument in turn.
template <class Function, class... Args>
void apply(Function function, Args&&... args) {
  (function(std::forward<Args>(args)), ...);
}
}  // namespace torch

namespace vesta::detail {
template <class T>
using is_module = std::is_base_of<nn::Module, std::decay_t<T>>;
template <class M, class T = void>
using enable_if_module_t = std::enable_if_t<is_module<M>::value, T>;
template <class... Ts>
constexpr bool check_not_lvalue_references() {
  return (... && (!std::is_lvalue_reference_v<Ts> || std::is_const_v<std::remove_reference_t<Ts>>));
}
// What M::forward(Args...) returns, void where there is no forward.
template <class M, class... Args>
struct return_type_of_forward {
  template <class T>
  static auto test(int) -> decltype(std::declval<T&>().forward(std::declval<Args>()...));
  template <class T>
  static void test(...);
  using type = decltype(test<M>(0));
};
template <class M, class... Args>
using return_type_of_forward_t = typename return_type_of_forward<M, Args...>::type;
}  // namespace vesta::detail
