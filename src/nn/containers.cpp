// Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict, Functional.
#include "vesta/nn_containers.h"

#include <map>
#include <ostream>

#include "vesta/ops.h"

namespace vesta::nn {
namespace {

// Clones each module once, though it may be in the container twice.
class Cloner {
 public:
  explicit Cloner(std::optional<Device> device) : device_(device) {}
  ModulePtr<Module> operator()(const ModulePtr<Module>& module) {
    auto& known = clones_[module.get()];
    if (!known) known = module->clone(device_);
    return known;
  }

 private:
  std::optional<Device> device_;
  std::map<const Module*, ModulePtr<Module>> clones_;
};

void print_parameters(std::ostream& out, const OrderedDict<std::string, Tensor>& parameters) {
  out << "(\n";
  for (const auto& item : parameters) {
    out << "  (" << item.key() << "): Parameter containing: [" << item->toString() << " of size [";
    for (size_t i = 0; i < item->sizes().size(); ++i) out << (i ? ", " : "") << item->sizes()[i];
    out << "]]\n";
  }
  out << ")";
}

}  // namespace

void SequentialImpl::push_back(AnyModule module) {
  push_back(std::to_string(steps_.size()), std::move(module));
}
void SequentialImpl::push_back(std::string name, AnyModule module) {
  register_module(std::move(name), module.ptr());
  steps_.push_back(std::move(module));
}
void SequentialImpl::extend(const SequentialImpl& other) {
  const std::vector<AnyModule> added = other.steps_;  // other may be this one
  for (const auto& module : added) push_back(module);
}
Tensor SequentialImpl::forward(const Tensor& input) {
  VESTA_CHECK(!steps_.empty(), "Cannot call forward() on an empty Sequential");
  // Values of other types are erased; a row of layers from tensor to tensor is not.
  Tensor x = input;
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (!steps_[i].from_tensor_to_tensor()) {
      AnyValue value(std::move(x));
      for (; i < steps_.size(); ++i) value = steps_[i].any_forward({std::move(value)});
      return value.get<Tensor>();
    }
    x = steps_[i].forward_tensor(x);
  }
  return x;
}
AnyValue SequentialImpl::any_forward(std::vector<AnyValue> arguments) {
  VESTA_CHECK(!steps_.empty(), "Cannot call forward() on an empty Sequential");
  AnyValue value = steps_[0].any_forward(std::move(arguments));
  for (size_t i = 1; i < steps_.size(); ++i) value = steps_[i].any_forward({std::move(value)});
  return value;
}
void SequentialImpl::describe(std::ostream& out) const { out << "vesta::nn::Sequential"; }
const AnyModule& SequentialImpl::at_index(size_t i) const {
  VESTA_CHECK_AS(IndexError, i < steps_.size(), "Sequential: Index out of range: ", i, " of ", steps_.size(),
                 " modules");
  return steps_[i];
}
void SequentialImpl::adopt_structure_of(const Module& source, std::optional<Device> device) {
  const auto& other = static_cast<const SequentialImpl&>(source);
  if (named_children().keys() == other.named_children().keys()) return;
  while (!named_children().is_empty()) unregister_module(named_children().keys().back());
  steps_.clear();
  Cloner clone(device);
  const auto names = other.named_children().keys();
  for (size_t i = 0; i < other.steps_.size(); ++i)
    push_back(names[i], other.steps_[i].with(clone(other.steps_[i].ptr())));
}

void ModuleListImpl::push_back(ModulePtr<Module> module) {
  items_.push_back(register_module(std::to_string(items_.size()), std::move(module)));
}
void ModuleListImpl::extend(const ModuleListImpl& other) {
  const std::vector<ModulePtr<Module>> added = other.items_;  // other may be this list
  for (const auto& module : added) push_back(module);
}
void ModuleListImpl::insert(size_t i, ModulePtr<Module> module) {
  VESTA_CHECK_AS(IndexError, i <= items_.size(), "ModuleList: cannot insert at ", i, " in a list of ",
                 items_.size(), " modules");
  std::vector<ModulePtr<Module>> tail(items_.begin() + std::ptrdiff_t(i), items_.end());
  for (size_t k = i; k < items_.size(); ++k) unregister_module(std::to_string(k));
  items_.resize(i);
  push_back(std::move(module));
  for (auto& item : tail) push_back(std::move(item));
}
void ModuleListImpl::describe(std::ostream& out) const { out << "vesta::nn::ModuleList"; }
const ModulePtr<Module>& ModuleListImpl::ptr(size_t i) const {
  VESTA_CHECK_AS(IndexError, i < items_.size(), "ModuleList: Index out of range: ", i, " of ", items_.size(),
                 " modules");
  return items_[i];
}
void ModuleListImpl::adopt_structure_of(const Module& source, std::optional<Device> device) {
  const auto& other = static_cast<const ModuleListImpl&>(source);
  if (items_.size() == other.items_.size()) return;
  for (size_t i = 0; i < items_.size(); ++i) unregister_module(std::to_string(i));
  items_.clear();
  Cloner clone(device);
  for (const auto& module : other.items_) push_back(clone(module));
}

void ModuleDictImpl::insert(std::string name, ModulePtr<Module> module) {
  if (contains(name)) {
    replace_module(name, ModuleHolder<Module>(module));
    items_[name] = std::move(module);
    return;
  }
  register_module(name, module);
  items_.insert(std::move(name), std::move(module));
}
void ModuleDictImpl::update(const std::vector<std::pair<std::string, ModulePtr<Module>>>& modules) {
  for (const auto& item : modules) insert(item.first, item.second);
}
void ModuleDictImpl::update(const ModuleDictImpl& other) {
  const auto added = other.items_.pairs();  // other may be this one
  update(added);
}
ModulePtr<Module> ModuleDictImpl::pop(const std::string& name) {
  ModulePtr<Module> module = items_[name];
  items_.erase(name);
  unregister_module(name);
  return module;
}
void ModuleDictImpl::clear() {
  for (const auto& name : items_.keys()) pop(name);
}
std::vector<std::string> ModuleDictImpl::keys() const { return items_.keys(); }
std::vector<ModulePtr<Module>> ModuleDictImpl::values() const { return items_.values(); }
std::vector<std::pair<std::string, ModulePtr<Module>>> ModuleDictImpl::items() const {
  return items_.pairs();
}
void ModuleDictImpl::describe(std::ostream& out) const { out << "vesta::nn::ModuleDict"; }
void ModuleDictImpl::adopt_structure_of(const Module& source, std::optional<Device> device) {
  const auto& other = static_cast<const ModuleDictImpl&>(source);
  if (keys() == other.keys()) return;
  clear();
  Cloner clone(device);
  for (const auto& item : other.items_) insert(item.key(), clone(item.value()));
}

void ParameterListImpl::append(Tensor parameter) {
  const bool requires_grad = parameter.defined() && parameter.requires_grad();
  register_parameter(std::to_string(size()), std::move(parameter), requires_grad);
}
void ParameterListImpl::extend(const std::vector<Tensor>& parameters) {
  for (const Tensor& parameter : parameters) append(parameter);
}
void ParameterListImpl::extend(const ParameterListImpl& other) { extend(other.own_parameters().values()); }
Tensor& ParameterListImpl::at(size_t i) {
  VESTA_CHECK_AS(IndexError, i < size(), "ParameterList: index ", i, " is outside of its ", size(),
                 " parameters");
  return own_parameters()[std::to_string(i)];
}
size_t ParameterListImpl::size() const { return own_parameters().size(); }
void ParameterListImpl::describe(std::ostream& out) const { out << "vesta::nn::ParameterList"; }
void ParameterListImpl::pretty_print(std::ostream& out) const {
  describe(out);
  print_parameters(out, own_parameters());
}
void ParameterListImpl::adopt_structure_of(const Module& source, std::optional<Device>) {
  const auto& other = static_cast<const ParameterListImpl&>(source).own_parameters();
  if (own_parameters().keys() == other.keys()) return;
  own_parameters().clear();
  for (const auto& item : other) append(item->detach().clone());
}

Tensor& ParameterDictImpl::insert(std::string name, Tensor parameter) {
  if (contains(name)) return replace_parameter(name, std::move(parameter));
  const bool requires_grad = parameter.defined() && parameter.requires_grad();
  return register_parameter(std::move(name), std::move(parameter), requires_grad);
}
void ParameterDictImpl::update(const OrderedDict<std::string, Tensor>& parameters) {
  for (const auto& item : parameters) insert(item.key(), *item);
}
void ParameterDictImpl::update(const ParameterDictImpl& other) {
  const OrderedDict<std::string, Tensor> added = other.own_parameters();  // other may be this one
  update(added);
}
Tensor ParameterDictImpl::pop(const std::string& name) {
  Tensor parameter = get(name);
  unregister_parameter(name);
  return parameter;
}
void ParameterDictImpl::clear() { own_parameters().clear(); }
Tensor& ParameterDictImpl::get(const std::string& name) { return own_parameters()[name]; }
bool ParameterDictImpl::contains(const std::string& name) const { return own_parameters().contains(name); }
size_t ParameterDictImpl::size() const { return own_parameters().size(); }
std::vector<std::string> ParameterDictImpl::keys() const { return own_parameters().keys(); }
std::vector<Tensor> ParameterDictImpl::values() const { return own_parameters().values(); }
std::vector<std::pair<std::string, Tensor>> ParameterDictImpl::items() const {
  return own_parameters().pairs();
}
void ParameterDictImpl::describe(std::ostream& out) const { out << "vesta::nn::ParameterDict"; }
void ParameterDictImpl::pretty_print(std::ostream& out) const {
  describe(out);
  print_parameters(out, own_parameters());
}
void ParameterDictImpl::adopt_structure_of(const Module& source, std::optional<Device>) {
  const auto& other = static_cast<const ParameterDictImpl&>(source).own_parameters();
  if (own_parameters().keys() == other.keys()) return;
  own_parameters().clear();
  for (const auto& item : other) insert(item.key(), item->detach().clone());
}

FunctionalImpl::FunctionalImpl(Function function) : function_(std::move(function)) {
  VESTA_CHECK(function_, "Functional: the function is empty");
}
void FunctionalImpl::describe(std::ostream& out) const { out << "vesta::nn::Functional()"; }
ModulePtr<Module> FunctionalImpl::clone(std::optional<Device> device) const {
  auto copy = make_module<FunctionalImpl>(function_);
  copy->copy_state_of(*this, device);
  return copy;
}

namespace detail {
void wrong_module_type(const char* container, size_t i, const Module& module) {
  throw TypeError(vesta::detail::message(container, ": module ", i, " is a ", module.name(),
                                         ", not of the type asked for"));
}
}  // namespace detail

}  // namespace vesta::nn
