// Module: registration, traversal, conversion, printing. State dicts are in state_dict.cpp.
#include "vesta/module.h"

#include <mutex>
#include <ostream>
#include <sstream>
#include <typeinfo>
#include <unordered_map>
#include <unordered_set>
#if __has_include(<cxxabi.h>)
#include <cxxabi.h>

#include <cstdlib>
#endif

#include "nn/type_name.h"
#include "vesta/autograd.h"
#include "vesta/ops.h"

namespace vesta::nn {
namespace {

void check_name(const char* function, const std::string& name) {
  VESTA_CHECK(!name.empty(), function, ": the name must not be empty");
  VESTA_CHECK(name.find('.') == std::string::npos, function, ": the name must not contain a dot, got '", name,
              "'");
}

std::string join(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

// Depth first, each module once.
template <class M, class F>
void walk(M& module, const std::string& prefix, std::unordered_set<const Module*>& seen, const F& visit) {
  if (!seen.insert(&module).second) return;
  visit(prefix, module);
  for (const auto& item : module.named_children())
    walk(static_cast<M&>(*item.value()), join(prefix, item.key()), seen, visit);
}

std::atomic<const char*> printed_namespace{nullptr};  // null: vesta

// Few modules have a keeper, so it does not take room in each. Never destroyed: modules may live in static variables.
struct Keepers {
  std::mutex mutex;
  std::unordered_map<const Module*, std::unique_ptr<ModuleKeeper>> of;
};
Keepers& keepers() {
  static auto* all = new Keepers;
  return *all;
}

std::string indented(const std::string& text) {
  std::string out;
  for (const char c : text) {
    out += c;
    if (c == '\n') out += "  ";
  }
  return out;
}

}  // namespace

std::string type_name(const std::type_info& type) {
#if __has_include(<cxxabi.h>)
  int status = 0;
  if (char* text = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status)) {
    std::string name = text;
    std::free(text);
    // Programs often keep their modules in an unnamed namespace, which says nothing to the reader.
    const std::string unnamed = "(anonymous namespace)::";
    for (size_t at; (at = name.find(unnamed)) != std::string::npos;) name.erase(at, unnamed.size());
    return name;
  }
#endif
  return type.name();
}

Module::Module(std::string name) : name_(std::move(name)) {}
Module::~Module() = default;

void Module::keep_by(std::unique_ptr<ModuleKeeper> keeper) const {
  std::lock_guard lock(keepers().mutex);
  if (keepers().of.emplace(this, std::move(keeper)).second) refs_.fetch_or(kKept, std::memory_order_relaxed);
}
const ModuleKeeper* Module::keeper() const {
  if (!(refs_.load(std::memory_order_relaxed) & kKept)) return nullptr;
  std::lock_guard lock(keepers().mutex);
  const auto found = keepers().of.find(this);
  return found == keepers().of.end() ? nullptr : found->second.get();
}
void Module::drop_keeper() const {
  std::unique_ptr<ModuleKeeper> last;  // may own this module: nothing of it may be touched when it goes
  std::lock_guard lock(keepers().mutex);
  // Another ModulePtr may have been made in between, which then keeps the keeper.
  if (refs_.load(std::memory_order_relaxed) != (kKept | 1)) return;
  refs_.fetch_and(~kKept, std::memory_order_relaxed);
  const auto found = keepers().of.find(this);
  last = std::move(found->second);
  keepers().of.erase(found);
}

// Late: inside the constructor typeid would name a base.
const std::string& Module::name() const {
  if (name_.empty()) name_ = type_name(typeid(*this));
  return name_;
}

StateDict Module::named_parameters(bool recurse) const {
  StateDict out("parameter");
  std::unordered_set<const TensorImpl*> listed;
  std::unordered_set<const Module*> seen;
  const auto add = [&](const std::string& prefix, const Module& module) {
    for (const auto& item : module.parameters_)
      if (item->defined() && listed.insert(item->impl()).second) out.insert(join(prefix, item.key()), *item);
  };
  if (recurse)
    walk(*this, "", seen, add);
  else
    add("", *this);
  return out;
}

StateDict Module::named_buffers(bool recurse) const {
  StateDict out("buffer");
  std::unordered_set<const TensorImpl*> listed;
  std::unordered_set<const Module*> seen;
  const auto add = [&](const std::string& prefix, const Module& module) {
    for (const auto& item : module.buffers_)
      if (item->tensor.defined() && listed.insert(item->tensor.impl()).second)
        out.insert(join(prefix, item.key()), item->tensor);
  };
  if (recurse)
    walk(*this, "", seen, add);
  else
    add("", *this);
  return out;
}

std::vector<Tensor> Module::parameters(bool recurse) const { return named_parameters(recurse).values(); }
std::vector<Tensor> Module::buffers(bool recurse) const { return named_buffers(recurse).values(); }

OrderedDict<std::string, ModulePtr<Module>> Module::named_children() const {
  OrderedDict<std::string, ModulePtr<Module>> out("module");
  for (const auto& item : children_) out.insert(item.key(), item.value());
  return out;
}
std::vector<ModulePtr<Module>> Module::children() const { return named_children().values(); }

OrderedDict<std::string, ModulePtr<Module>> Module::named_modules(const std::string& prefix,
                                                                  bool include_self) {
  OrderedDict<std::string, ModulePtr<Module>> out("module");
  std::unordered_set<const Module*> seen;
  walk(*this, prefix, seen, [&](const std::string& path, Module& module) {
    if (include_self || &module != this) out.insert(path, ModulePtr<Module>::share(&module));
  });
  return out;
}
std::vector<ModulePtr<Module>> Module::modules(bool include_self) {
  return named_modules({}, include_self).values();
}

void Module::apply(const std::function<void(Module&)>& f) {
  for (const auto& module : modules()) f(*module);
}
void Module::apply(const std::function<void(const std::string&, Module&)>& f, const std::string& prefix) {
  for (const auto& item : named_modules(prefix)) f(item.key(), *item.value());
}

void Module::train(bool on) {
  training_ = on;
  for (const auto& item : children_) item.value()->train(on);
}

// set_data and not assignment: everyone who holds the tensor, an optimiser above all, must see the new elements.
template <class F>
void Module::convert(const F& convert_tensor) {
  const NoGradGuard no_grad;
  const auto replace = [&](const Tensor& tensor) {
    const Tensor converted = convert_tensor(tensor);
    if (!converted.is_same(tensor)) tensor.set_data(converted);
  };
  std::unordered_set<const Module*> seen;
  walk(*this, "", seen, [&](const std::string&, Module& module) {
    for (auto& item : module.parameters_) {
      if (!item->defined()) continue;
      replace(*item);
      if (item->grad().defined()) replace(item->grad());
    }
    for (auto& item : module.buffers_)
      if (item->tensor.defined()) replace(item->tensor);
  });
}

void Module::to(DType dtype) {
  VESTA_CHECK_AS(TypeError, is_floating_point(dtype) || is_complex(dtype),
                 "Module::to: expected a floating or complex dtype, got ", dtype_name(dtype));
  convert([&](const Tensor& t) { return t.is_floating_point() || t.is_complex() ? t.to(dtype) : t; });
}
void Module::to(Device device) {
  convert([&](const Tensor& t) {
    return t.device() == device ? t : t.to(TensorOptions(t.dtype()).device(device));
  });
}

void Module::zero_grad(bool set_to_none) {
  const NoGradGuard no_grad;
  for (const Tensor& parameter : parameters()) {
    Tensor& grad = parameter.mutable_grad();
    if (!grad.defined()) continue;
    if (set_to_none) {
      grad.reset();
    } else {
      if (grad.grad_fn()) grad = grad.detach();
      grad.zero_();
    }
  }
}

void Module::requires_grad_(bool on) {
  for (const Tensor& parameter : parameters()) parameter.requires_grad_(on);
}

Tensor& Module::register_parameter(std::string name, Tensor tensor, bool requires_grad) {
  check_name("register_parameter", name);
  VESTA_CHECK(!buffers_.contains(name) && !children_.contains(name), "register_parameter: '", name,
              "' is already a buffer or a module of ", this->name());
  if (tensor.defined() && requires_grad != tensor.requires_grad()) tensor.requires_grad_(requires_grad);
  return parameters_.insert(std::move(name), std::move(tensor));
}

Tensor& Module::register_buffer(std::string name, Tensor tensor, bool persistent) {
  check_name("register_buffer", name);
  VESTA_CHECK(!parameters_.contains(name) && !children_.contains(name), "register_buffer: '", name,
              "' is already a parameter or a module of ", this->name());
  return buffers_.insert(std::move(name), Buffer{std::move(tensor), persistent}).tensor;
}

Tensor& Module::replace_parameter(const std::string& name, Tensor tensor) {
  return parameters_[name] = std::move(tensor);
}

void Module::add_child(std::string name, ModulePtr<Module> module) {
  check_name("register_module", name);
  VESTA_CHECK(module, "register_module: the module '", name, "' is null");
  VESTA_CHECK(!parameters_.contains(name) && !buffers_.contains(name), "register_module: '", name,
              "' is already a parameter or a buffer of ", this->name());
  children_.insert(std::move(name), std::move(module));
}
void Module::set_child(const std::string& name, ModulePtr<Module> module) {
  VESTA_CHECK(module, "replace_module: the module '", name, "' is null");
  children_[name] = std::move(module);
}
void Module::unregister_parameter(const std::string& name) { parameters_.erase(name); }
void Module::unregister_buffer(const std::string& name) { buffers_.erase(name); }
void Module::unregister_module(const std::string& name) { children_.erase(name); }

void Module::describe(std::ostream& out) const { out << name(); }

void Module::pretty_print(std::ostream& out) const {
  describe(out);
  if (children_.empty()) return;
  out << "(\n";
  for (const auto& item : children_) {
    std::ostringstream text;
    item.value()->pretty_print(text);
    out << "  (" << item.key() << "): " << indented(text.str()) << "\n";
  }
  out << ")";
}

std::ostream& operator<<(std::ostream& out, const Module& module) {
  std::ostringstream printed;
  module.pretty_print(printed);
  std::string text = printed.str();
  const std::string own = "vesta::nn::";
  if (const char* name = printed_namespace.load())
    for (size_t at = 0; (at = text.find(own, at)) != std::string::npos;) text.replace(at, 5, name);
  return out << text;
}
void set_printed_namespace(const char* name) { printed_namespace.store(name); }

}  // namespace vesta::nn
