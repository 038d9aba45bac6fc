// Sequential, ModuleList and the type-erased module they are made of.
#include <ostream>

#include "vesta/nn.h"

namespace vesta::nn {

Tensor AnyModule::forward(const Tensor& input) const {
  VESTA_CHECK(module_, "AnyModule: cannot call forward on an empty module");
  return forward_(*module_, input);
}

void SequentialImpl::push_back(AnyModule module) {
  push_back(std::to_string(steps_.size()), std::move(module));
}
void SequentialImpl::push_back(std::string name, AnyModule module) {
  register_module(std::move(name), module.ptr());
  steps_.push_back(std::move(module));
}
Tensor SequentialImpl::forward(const Tensor& input) {
  VESTA_CHECK(!steps_.empty(), "Sequential: cannot call forward on an empty Sequential");
  Tensor x = steps_[0].forward(input);
  for (size_t i = 1; i < steps_.size(); ++i) x = steps_[i].forward(x);
  return x;
}
void SequentialImpl::describe(std::ostream& out) const { out << "vesta::nn::Sequential"; }
const AnyModule& SequentialImpl::at_index(size_t i) const {
  VESTA_CHECK_AS(IndexError, i < steps_.size(), "Sequential: index ", i, " is outside of its ", steps_.size(),
                 " modules");
  return steps_[i];
}

void ModuleListImpl::push_back(ModulePtr<Module> module) {
  items_.push_back(register_module(std::to_string(items_.size()), std::move(module)));
}
void ModuleListImpl::extend(const ModuleListImpl& other) {
  const std::vector<ModulePtr<Module>> added = other.items_;  // other may be this list
  for (const auto& module : added) push_back(module);
}
void ModuleListImpl::describe(std::ostream& out) const { out << "vesta::nn::ModuleList"; }
const ModulePtr<Module>& ModuleListImpl::ptr(size_t i) const {
  VESTA_CHECK_AS(IndexError, i < items_.size(), "ModuleList: index ", i, " is outside of its ", items_.size(),
                 " modules");
  return items_[i];
}

namespace detail {
void wrong_module_type(const char* container, size_t i, const Module& module) {
  throw TypeError(vesta::detail::message(container, ": module ", i, " is a ", module.name(),
                                         ", not of the type asked for"));
}
}  // namespace detail

}  // namespace vesta::nn
