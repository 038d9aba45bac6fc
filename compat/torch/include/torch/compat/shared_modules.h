#pragma once
// std::shared_ptr of modules, which libtorch's programs use, beside Vesta's ModulePtr: either becomes the other, and
// both keep the module alive.
#include "torch/compat/namespaces.h"

namespace vesta::nn {
namespace detail {
inline const bool kPrintsAsTorch = (set_printed_namespace("torch"), true);

// Keeps what a std::shared_ptr owns while ModulePtrs count the module.
struct SharedKeeper : ModuleKeeper {
  explicit SharedKeeper(std::shared_ptr<const void> p) : pointer(std::move(p)) {}
  std::shared_ptr<const void> pointer;
};
// The deleter of a std::shared_ptr that holds one reference of ModulePtr's kind.
struct DropModule {
  void operator()(const Module* module) const { module->drop(); }
};
}  // namespace detail

template <class T>
requires(!std::is_const_v<T>) struct ForeignModulePtr<std::shared_ptr<T>> {
  using ModuleType = T;
  static ModulePtr<T> import(const std::shared_ptr<T>& pointer) {
    auto module = ModulePtr<T>::share(pointer.get());
    if (module && !std::get_deleter<detail::DropModule>(pointer))
      module->keep_by(std::make_unique<detail::SharedKeeper>(pointer));
    return module;
  }
  template <class U>
  static std::shared_ptr<T> release_to(ModulePtr<U> module) {
    if (!module) return nullptr;
    if (auto* kept = dynamic_cast<const detail::SharedKeeper*>(module->keeper()))
      return std::shared_ptr<T>(kept->pointer, module.get());
    return std::shared_ptr<T>(module.release(), detail::DropModule());
  }
};
}  // namespace vesta::nn

namespace vesta::serialize {
template <class M>
requires std::is_base_of_v<nn::Module, M> OutputArchive& operator<<(OutputArchive& archive,
                                                                    const std::shared_ptr<M>& module) {
  return archive << *module;
}
template <class M>
requires std::is_base_of_v<nn::Module, M> InputArchive& operator>>(InputArchive& archive,
                                                                   const std::shared_ptr<M>& module) {
  return archive >> *module;
}
}  // namespace vesta::serialize
