// Module::clone: the copy has been registered anew; here it takes over values. Who shares a tensor or a module in the
// original must share it in the copy, or a step of the copy would differ from one of the original.
#include <typeinfo>
#include <unordered_map>

#include "vesta/autograd.h"
#include "vesta/module.h"
#include "vesta/ops.h"

namespace vesta::nn {

struct Module::CopiedState {
  // Both ways, with the first name for messages.
  std::unordered_map<const void*, std::pair<const void*, std::string>> to_copy, to_source;

  // Whether the pair is new. ValueError where one side is paired with something else.
  bool pair(const void* source, const void* copy, const std::string& path) {
    const auto a = to_copy.find(source), b = to_source.find(copy);
    if (a == to_copy.end() && b == to_source.end()) {
      to_copy.emplace(source, std::make_pair(copy, path));
      to_source.emplace(copy, std::make_pair(source, path));
      return true;
    }
    VESTA_CHECK(a != to_copy.end() && a->second.first == copy, "clone: '", path, "' and '",
                (a != to_copy.end() ? a : b)->second.second, "' are shared in ",
                a != to_copy.end() ? "the original" : "the copy", " only; tie them in reset()");
    return false;
  }
};

Module::Module(const Module& other)
    : training_(other.training_),
      name_(other.name_),
      parameters_(other.parameters_),
      buffers_(other.buffers_),
      children_(other.children_) {}

void Module::forget_registrations() {
  parameters_.clear();
  buffers_.clear();
  children_.clear();
}

void Module::require_type(const std::type_info& type) const {
  if (typeid(*this) == type) return;
  throw NotImplementedError(vesta::detail::message(
      "clone: ", name(), " inherits clone() from its base and would lose its own part"));
}

ModulePtr<Module> Module::clone(std::optional<Device>) const {
  throw NotImplementedError(vesta::detail::message("clone: ", name(), " does not derive from nn::Cloneable<",
                                                   name(), ">, which knows how to make another"));
}

void Module::adopt_structure_of(const Module& source, std::optional<Device>) {
  VESTA_CHECK(parameters_.keys() == source.parameters_.keys() && buffers_.keys() == source.buffers_.keys(),
              "clone: the copy of ", source.name(),
              " made by its constructor or reset() has other parameters or buffers than the original");
  VESTA_CHECK(children_.keys() == source.children_.keys(), "clone: the copy of ", source.name(),
              " made by its constructor or reset() has other modules than the original");
}

void Module::copy_state_of(const Module& source, std::optional<Device> device) {
  CopiedState done;
  const NoGradGuard no_grad;
  copy_state_of(source, device, "", done);
}

void Module::copy_state_of(const Module& source, std::optional<Device> device, const std::string& path,
                           CopiedState& done) {
  const auto named = [&](const std::string& name) { return path.empty() ? name : path + "." + name; };
  const auto copy_tensor = [&](const Tensor& from, Tensor& to, const std::string& name) {
    VESTA_CHECK(from.defined() == to.defined(), "clone: '", name, "' is ",
                from.defined() ? "undefined" : "defined", " in the copy, unlike in the original");
    VESTA_CHECK(!from.defined() || from.impl() != to.impl(), "clone: the copy uses the tensor '", name,
                "' of the original");
    if (!from.defined() || !done.pair(from.impl(), to.impl(), name)) return;
    Tensor value = from.detach().clone();
    if (device && value.device() != *device) value = value.to(value.options().device(*device));
    if (to.requires_grad() != from.requires_grad()) {
      // An integer tensor cannot require a gradient: first the new elements, or first the flag.
      to.requires_grad_(false);
      to.set_data(value);
      to.requires_grad_(from.requires_grad());
    } else {
      to.set_data(value);
    }
  };
  training_ = source.training_;
  name_ = source.name_;
  adopt_structure_of(source, device);
  for (auto& item : parameters_) copy_tensor(source.parameters_[item.key()], *item, named(item.key()));
  for (auto& item : buffers_)
    copy_tensor(source.buffers_[item.key()].tensor, item->tensor, named(item.key()));
  for (auto& item : children_) {
    const Module& child = *source.children_[item.key()];
    if (done.pair(&child, item->get(), named(item.key())))
      (*item)->copy_state_of(child, device, named(item.key()), done);
  }
}

}  // namespace vesta::nn
