#pragma once
// Modules and data: names that libtorch spells otherwise.
#include "torch/compat/shared_modules.h"

// For `std::dynamic_pointer_cast<Net>(net->clone())`, where libtorch returns a std::shared_ptr.
namespace std {
template <class T, class M>
requires std::is_base_of_v<vesta::nn::Module, M> shared_ptr<T> dynamic_pointer_cast(
    const vesta::nn::ModulePtr<M>& module) {
  return vesta::nn::module_cast<T>(vesta::nn::ModulePtr<vesta::nn::Module>(module));
}
template <class T, class M>
requires std::is_base_of_v<vesta::nn::Module, M> shared_ptr<T> static_pointer_cast(
    const vesta::nn::ModulePtr<M>& module) {
  return vesta::nn::ModulePtr<T>::share(static_cast<T*>(module.get()));
}
}  // namespace std
