#pragma once
// Cloneable: makes clone() of a module work, in one of two ways.
//   1. The class has `options` and a constructor from them (all layers of Vesta): deriving from Cloneable is enough.
//   2. The class has a method reset() that registers everything, as in libtorch:
//        struct NetImpl : nn::Cloneable<NetImpl> {
//          NetImpl() { reset(); }
//          void reset() override { fc = register_module("fc", nn::Linear(4, 2)); }
//          nn::Linear fc{nullptr};
//        };
//        auto copy = nn::module_cast<NetImpl>(net->clone());
// The copy is made anew and then given the original's values. Weights that are tied must be tied by reset(); modules
// pushed into containers later are cloned one by one.
#include <typeinfo>

#include "vesta/module.h"

namespace vesta::nn {

template <class Derived>
class Cloneable : public Module {
 public:
  using Module::Module;
  // Registers parameters, buffers and modules, and gives them their first values.
  virtual void reset() {}

  // NotImplementedError where a class derived from Derived inherits this and registers nothing of its own.
  ModulePtr<Module> clone(std::optional<Device> device = std::nullopt) const override;

 protected:
  Cloneable(const Cloneable&) = default;
};

// Not inline, so that VESTA_LAYER can keep it out of the programs that include a layer.
template <class Derived>
ModulePtr<Module> Cloneable<Derived>::clone(std::optional<Device> device) const {
  require_type(typeid(Derived));
  const auto& self = static_cast<const Derived&>(*this);
  ModulePtr<Derived> copy;
  if constexpr (std::is_same_v<decltype(&Derived::reset), void (Derived::*)()>) {
    copy = ModulePtr<Derived>::adopt(new Derived(self));
    static_cast<Cloneable&>(*copy).forget_registrations();
    copy->reset();
  } else if constexpr (requires { new Derived(self.options); }) {
    copy = make_module<Derived>(self.options);
  } else {
    static_assert(std::is_default_constructible_v<Derived>,
                  "Cloneable: the class needs reset(), or a constructor from its options");
    copy = make_module<Derived>();
  }
  static_cast<Cloneable&>(*copy).copy_state_of(self, device);
  return copy;
}

// For the library's own layers: clone() and vtable are compiled once, in src/nn/layer_clones.cpp, which defines
// VESTA_LAYER_CLONES. Otherwise they would be a fifth of the time that a small program takes to compile.
#ifdef VESTA_LAYER_CLONES
#define VESTA_LAYER_CLONE(Impl) template class Cloneable<Impl>
#else
#define VESTA_LAYER_CLONE(Impl) extern template class Cloneable<Impl>
#endif
// The holder Name of the library's own layer NameImpl: VESTA_MODULE, with constructors that are compiled where they are
// used only, since a program includes a hundred of them.
#define VESTA_LAYER(Name)                                                                                \
  VESTA_LAYER_CLONE(Name##Impl);                                                                         \
  class Name : public ModuleHolder<Name##Impl> {                                                         \
   public:                                                                                               \
    using ModuleHolder<Name##Impl>::ModuleHolder;                                                        \
    template <class C = Name##Impl, std::enable_if_t<std::is_default_constructible_v<C>, int> = 0>       \
    Name() {}                                                                                            \
    template <class Holder, std::enable_if_t<std::is_same_v<Holder, ModuleHolder<Name##Impl>>, int> = 0> \
    Name(Holder holder) : ModuleHolder<Name##Impl>(std::move(holder)) {}                                 \
  }
// The same where the first argument of NameImpl may stand in braces: Name{3}, Name({3, 2}).
#define VESTA_LAYER_OF_BRACES(Name, Argument, Element)                                 \
  VESTA_LAYER_CLONE(Name##Impl);                                                       \
  class Name : public ModuleHolder<Name##Impl> {                                       \
   public:                                                                             \
    using ModuleHolder<Name##Impl>::ModuleHolder;                                      \
    Name(std::initializer_list<Element> values) : Name(of_braces<Argument>(values)) {} \
  }

}  // namespace vesta::nn
