#pragma once
// AnyValue, a value of any type; AnyModule, a module of any type whose forward() is called with values of any types.
// Sequential is a row of AnyModules.
//   nn::AnyModule any(nn::Linear(3, 4));
//   Tensor y = any.forward(x);
//   auto [out, state] = nn::AnyModule(nn::GRU(3, 4)).forward<std::tuple<Tensor, Tensor>>(x);
// A class whose forward() has default arguments names them with VESTA_FORWARD_DEFAULTS.
#include <any>
#include <tuple>
#include <typeinfo>
#include <utility>
#include <vector>

#include "vesta/module.h"

namespace vesta::nn {

namespace detail {
[[noreturn]] void wrong_value_type(const std::type_info& expected, const std::type_info& actual);
[[noreturn]] void wrong_argument_type(const Module& module, size_t i, const std::type_info& expected,
                                      const std::type_info& actual);
[[noreturn]] void wrong_argument_count(const Module& module, size_t least, size_t most, size_t actual);
}  // namespace detail

class AnyValue {
 public:
  AnyValue() = default;
  template <class T, std::enable_if_t<!std::is_same_v<std::decay_t<T>, AnyValue>, int> = 0>
  explicit AnyValue(T&& value) : value_(std::forward<T>(value)) {}
  // Null where the value is of another type.
  template <class T>
  T* try_get() {
    return std::any_cast<T>(&value_);
  }
  // TypeError where the value is of another type.
  template <class T>
  T get() const {
    const T* value = std::any_cast<T>(&value_);
    if (!value) detail::wrong_value_type(typeid(T), type_info());
    return *value;
  }
  const std::type_info& type_info() const noexcept { return value_.type(); }

 private:
  std::any value_;
};

namespace detail {
template <class Contained>
size_t add_defaults(std::vector<AnyValue>& arguments, size_t count);
}
// In a module: default values for the last arguments of forward(), by position.
//   VESTA_FORWARD_DEFAULTS({1, nn::AnyValue(Tensor())})
#define VESTA_FORWARD_DEFAULTS(...)                                                                \
  template <class C>                                                                               \
  friend size_t(::vesta::nn::detail::add_defaults)(std::vector<::vesta::nn::AnyValue> & arguments, \
                                                   size_t count);                                  \
  static std::vector<std::pair<size_t, ::vesta::nn::AnyValue>> _forward_defaults() { return {__VA_ARGS__}; }

namespace detail {

template <class T>
T&& take_argument(const Module& module, std::vector<AnyValue>& arguments, size_t i) {
  auto* value = arguments[i].try_get<std::decay_t<T>>();
  if (!value) wrong_argument_type(module, i, typeid(std::decay_t<T>), arguments[i].type_info());
  return static_cast<T&&>(*value);
}

// Appends the defaults that are missing; how many defaults there are.
template <class Contained>
size_t add_defaults(std::vector<AnyValue>& arguments, size_t count) {
  size_t defaults = 0;
  if constexpr (requires { Contained::_forward_defaults(); }) {
    for (auto& [position, value] : Contained::_forward_defaults()) {
      ++defaults;
      if (position == arguments.size() && position < count) arguments.push_back(std::move(value));
    }
  }
  return defaults;
}

// How to call C::forward with erased arguments, from the type of the pointer to it.
template <class Contained, class Method>
struct Forward;
template <class Contained, class C, class R, class... A>
struct Forward<Contained, R (C::*)(A...)> {
  static_assert(!std::is_void_v<R>, "AnyModule: forward() must return a value");
  static AnyValue call(Module& module, std::vector<AnyValue>& arguments) {
    const size_t given = arguments.size();
    const size_t defaults = add_defaults<Contained>(arguments, sizeof...(A));
    if (arguments.size() != sizeof...(A))
      wrong_argument_count(module, sizeof...(A) - defaults, sizeof...(A), given);
    return call(module, arguments, std::index_sequence_for<A...>());
  }
  template <size_t... I>
  static AnyValue call(Module& module, std::vector<AnyValue>& arguments, std::index_sequence<I...>) {
    return AnyValue(static_cast<Contained&>(module).forward(take_argument<A>(module, arguments, I)...));
  }
};
template <class Contained, class C, class R, class... A>
struct Forward<Contained, R (C::*)(A...) const> : Forward<Contained, R (C::*)(A...)> {};

// forward(Tensor) -> Tensor, in any of its spellings, though there may be overloads.
template <class M>
concept TensorModule = requires {
  static_cast<Tensor (M::*)(const Tensor&)>(&M::forward);
}
|| requires { static_cast<Tensor (M::*)(const Tensor&) const>(&M::forward); }
|| requires { static_cast<Tensor (M::*)(Tensor)>(&M::forward); }
|| requires { static_cast<Tensor (M::*)(Tensor) const>(&M::forward); };
// A forward() that is not overloaded.
template <class M>
concept OneForward = requires {
  &M::forward;
};

}  // namespace detail

class AnyModule {
 public:
  AnyModule() = default;
  template <class Contained>
  AnyModule(ModulePtr<Contained> module) : module_(std::move(module)) {  // NOLINT: implicit, here and below
    if constexpr (detail::TensorModule<Contained>)
      plain_ = [](Module& m, const Tensor& x) -> Tensor { return static_cast<Contained&>(m).forward(x); };
    if constexpr (detail::OneForward<Contained>)
      general_ = [](Module& m, std::vector<AnyValue>& arguments) -> AnyValue {
        return detail::Forward<Contained, decltype(&Contained::forward)>::call(m, arguments);
      };
    static_assert(detail::TensorModule<Contained> || detail::OneForward<Contained>,
                  "AnyModule: the class needs one forward(), or one from Tensor to Tensor among several");
  }
  template <class Contained>
  AnyModule(const ModuleHolder<Contained>& holder) : AnyModule(holder.ptr()) {}  // NOLINT
  template <class Holder, class Contained = typename Holder::ContainedType>
  AnyModule(const Holder& holder)
      : AnyModule(static_cast<const ModuleHolder<Contained>&>(holder)) {}  // NOLINT
  template <ForeignPtr P>
  AnyModule(const P& module)
      : AnyModule(ModulePtr<typename ForeignModulePtr<P>::ModuleType>(module)) {}  // NOLINT
  // A module by value.
  template <class M, std::enable_if_t<std::is_base_of_v<Module, std::decay_t<M>>, int> = 0>
  AnyModule(M&& module) : AnyModule(make_module<std::decay_t<M>>(std::forward<M>(module))) {}  // NOLINT

  // ValueError when empty; TypeError where an argument or the result is not of the module's type. Types are not
  // converted: an int is no double.
  template <class R = Tensor, class... A>
  R forward(A&&... arguments) const {
    if constexpr (std::is_same_v<R, Tensor> && sizeof...(A) == 1 &&
                  (std::is_same_v<std::decay_t<A>, Tensor> && ...)) {
      return forward_tensor(arguments...);
    } else {
      std::vector<AnyValue> values;
      values.reserve(sizeof...(A));
      (values.push_back(AnyValue(std::forward<A>(arguments))), ...);
      return any_forward(std::move(values)).template get<R>();
    }
  }
  // The quick way from a tensor to a tensor.
  Tensor forward_tensor(const Tensor& input) const;
  AnyValue any_forward(std::vector<AnyValue> arguments) const;

  // The module as a T, an implementation class; TypeError where it is something else.
  template <class T, std::enable_if_t<std::is_base_of_v<Module, T>, int> = 0>
  T& get() const {
    return *ptr<T>();
  }
  // The same for a holder.
  template <class T, class Contained = typename T::ContainedType>
  T get() const {
    return T(ptr<Contained>());
  }
  const ModulePtr<Module>& ptr() const { return module_; }
  template <class T, std::enable_if_t<std::is_base_of_v<Module, T>, int> = 0>
  ModulePtr<T> ptr() const {
    if (typeid(T) != type_info()) detail::wrong_value_type(typeid(T), type_info());
    return ModulePtr<T>::share(static_cast<T*>(module_.get()));
  }
  // Of the module's class; ValueError when empty.
  const std::type_info& type_info() const;
  bool is_empty() const { return !module_; }
  bool from_tensor_to_tensor() const { return plain_ != nullptr; }
  // Around another module of the same class.
  AnyModule with(ModulePtr<Module> module) const {
    AnyModule out = *this;
    out.module_ = std::move(module);
    return out;
  }
  // Around a clone of the module.
  AnyModule clone(std::optional<Device> device = std::nullopt) const;

 private:
  ModulePtr<Module> module_;
  Tensor (*plain_)(Module&, const Tensor&) = nullptr;
  AnyValue (*general_)(Module&, std::vector<AnyValue>&) = nullptr;
};

class NamedAnyModule {
 public:
  NamedAnyModule(std::string name, AnyModule module) : name_(std::move(name)), module_(std::move(module)) {}
  const std::string& name() const { return name_; }
  AnyModule& module() { return module_; }
  const AnyModule& module() const { return module_; }

 private:
  std::string name_;
  AnyModule module_;
};

}  // namespace vesta::nn
