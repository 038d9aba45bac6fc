#pragma once
// Module: the base of everything with parameters, and the counted holders through which modules are used.
//   struct NetImpl : nn::Module {
//     NetImpl() : fc(register_module("fc", nn::Linear(4, 2))) {}
//     Tensor forward(const Tensor& x) { return relu(fc(x)); }
//     nn::Linear fc;
//   };
//   VESTA_MODULE(Net);            // Net net; net->parameters(); net(x)
// Layers are in vesta/nn.h. A module is externally synchronised.
#include <atomic>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "vesta/ordered_dict.h"
#include "vesta/tensor.h"

namespace vesta::nn {

class Module;
template <class Contained>
class ModuleHolder;

// A pointer class of another world that owns modules takes part by a specialisation of ForeignModulePtr (the
// libtorch-shaped entry has one for std::shared_ptr):
//   using ModuleType = M;  static ModulePtr<M> import(const P& pointer);  static P release_to(ModulePtr<M> module);
template <class P>
struct ForeignModulePtr;
template <class P>
concept ForeignPtr = requires {
  typename ForeignModulePtr<P>::ModuleType;
};
// Keeps a module alive for as long as a ModulePtr counts it, though something else will delete it.
struct ModuleKeeper {
  virtual ~ModuleKeeper() = default;
};

// Shared ownership of a module; the counter is inside the module. Converts to pointers to base classes.
template <class T>
class ModulePtr {
 public:
  constexpr ModulePtr() = default;
  constexpr ModulePtr(std::nullptr_t) {}  // NOLINT: implicit, here and below
  static ModulePtr adopt(T* module) {
    ModulePtr p;
    p.module_ = module;
    return p;
  }
  static ModulePtr share(T* module) {
    if (module) module->retain();
    return adopt(module);
  }
  ModulePtr(const ModulePtr& o) : module_(o.module_) {
    if (module_) module_->retain();
  }
  ModulePtr(ModulePtr&& o) noexcept : module_(std::exchange(o.module_, nullptr)) {}
  template <class U, std::enable_if_t<std::is_convertible_v<U*, T*>, int> = 0>
  ModulePtr(ModulePtr<U> o) : module_(o.release()) {}  // NOLINT
  template <class U, std::enable_if_t<std::is_convertible_v<U*, T*>, int> = 0>
  ModulePtr(const ModuleHolder<U>& o) : ModulePtr(o.ptr()) {}  // NOLINT
  template <ForeignPtr P>
  requires(std::is_convertible_v<typename ForeignModulePtr<P>::ModuleType*, T*>)
      ModulePtr(const P& p)  // NOLINT
      : ModulePtr(ForeignModulePtr<P>::import(p)) {}
  template <ForeignPtr P>
  requires(std::is_convertible_v<T*, typename ForeignModulePtr<P>::ModuleType*>) operator P()
      const {  // NOLINT
    return ForeignModulePtr<P>::release_to(*this);
  }
  ModulePtr& operator=(ModulePtr o) noexcept {
    std::swap(module_, o.module_);
    return *this;
  }
  ~ModulePtr() {
    if (module_) module_->drop();
  }

  T* get() const { return module_; }
  T* operator->() const { return module_; }
  T& operator*() const { return *module_; }
  explicit operator bool() const { return module_ != nullptr; }
  T* release() { return std::exchange(module_, nullptr); }
  friend bool operator==(const ModulePtr& a, const ModulePtr& b) { return a.module_ == b.module_; }

 private:
  T* module_ = nullptr;
};

// A new T behind a pointer.
template <class T, class... Args>
ModulePtr<T> make_module(Args&&... args) {
  return ModulePtr<T>::adopt(new T(std::forward<Args>(args)...));
}

// What load_state_dict found. `mismatched` entries are "name: expected [2, 3], got [3, 2]".
struct IncompatibleKeys {
  std::vector<std::string> missing, unexpected, mismatched;
  bool empty() const { return missing.empty() && unexpected.empty() && mismatched.empty(); }
  std::string str() const;
};

using StateDict = OrderedDict<std::string, Tensor>;

struct ModulePtrs;
struct NamedModulePtrs;

class Module {
 public:
  // The name defaults to the class's.
  explicit Module(std::string name = {});
  virtual ~Module();
  Module& operator=(const Module&) = delete;

  const std::string& name() const;

  // Each parameter once, in order of registration, own ones first; shared (tied) tensors are listed under their
  // first name only, so that an optimiser steps them once.
  std::vector<Tensor> parameters(bool recurse = true) const;
  StateDict named_parameters(bool recurse = true) const;
  std::vector<Tensor> buffers(bool recurse = true) const;
  StateDict named_buffers(bool recurse = true) const;
  // Direct children; and all descendants, depth first, shared ones once. A module that no pointer owns (on the stack) may
  // list itself: the pointers must then not outlive it.
  ModulePtrs children() const;
  NamedModulePtrs named_children() const;
  ModulePtrs modules(bool include_self = true) const;
  NamedModulePtrs named_modules(const std::string& prefix = {}, bool include_self = true) const;

  // Calls f on this module and all descendants, parents first.
  void apply(const std::function<void(Module&)>& f);
  void apply(const std::function<void(const std::string&, Module&)>& f, const std::string& prefix = {});
  void apply(const std::function<void(const Module&)>& f) const;
  void apply(const std::function<void(const std::string&, const Module&)>& f,
             const std::string& prefix = {}) const;
  void apply(const std::function<void(const ModulePtr<Module>&)>& f) const;
  void apply(const std::function<void(const std::string&, const ModulePtr<Module>&)>& f,
             const std::string& prefix = {}) const;

  // Training mode, which Dropout reads; for all descendants.
  virtual void train(bool on = true);
  void eval() { train(false); }
  bool is_training() const { return training_; }

  // Converts floating and complex parameters, their gradients and buffers in place: the Tensor objects stay the
  // same, so optimisers and other holders see the change.
  virtual void to(DType dtype);
  virtual void to(Device device);
  virtual void to(Device device, DType dtype) {
    to(device);
    to(dtype);
  }
  // Drops the gradients of all parameters, or fills them with zeros.
  virtual void zero_grad(bool set_to_none = true);
  // Turns recording for all parameters on or off.
  void requires_grad_(bool on = true);

  // Parameters and persistent buffers by dotted name, tied tensors under every name. The tensors share memory with
  // the module's, outside of autograd; clone them for a snapshot.
  virtual StateDict state_dict(const std::string& prefix = {}) const;
  // Copies values into the parameters and buffers (converting dtype), which keep their identity. Checks first, then
  // writes: a failed load changes nothing. ValueError lists wrong shapes, and where `strict` also missing and
  // unexpected names; otherwise these are returned.
  virtual IncompatibleKeys load_state_dict(const StateDict& dict, bool strict = true);

  // A module of its own with the same structure, values, dtypes and modes, on `device` where given; without gradients
  // and hooks. NotImplementedError unless the class is Cloneable (vesta/nn_cloneable.h).
  virtual ModulePtr<Module> clone(std::optional<Device> device = std::nullopt) const;

  // Prints name(options), and children indented, as libtorch does. The layers override describe.
  virtual void pretty_print(std::ostream& out) const;
  virtual void describe(std::ostream& out) const;

  // This module as a ModuleType (holder or implementation), null where it is none.
  template <class ModuleType>
  auto as();
  template <class ModuleType>
  auto as() const {
    return const_cast<Module*>(this)->as<ModuleType>();
  }

  // Names are not empty and without '.', which separates levels.
  Tensor& register_parameter(std::string name, Tensor tensor, bool requires_grad = true);
  // Non-persistent buffers are not part of the state dict.
  Tensor& register_buffer(std::string name, Tensor tensor, bool persistent = true);
  template <class T>
  ModulePtr<T> register_module(std::string name, ModulePtr<T> module) {
    add_child(std::move(name), module);
    return module;
  }
  template <class T>
  ModuleHolder<T> register_module(std::string name, ModuleHolder<T> holder) {
    add_child(std::move(name), holder.ptr());
    return holder;
  }
  template <ForeignPtr P>
  P register_module(std::string name, P module) {
    add_child(std::move(name), ForeignModulePtr<P>::import(module));
    return module;
  }
  // Puts another tensor or module under a registered name; the way to tie weights:
  //   head->weight = head->replace_parameter("weight", tok->weight);
  Tensor& replace_parameter(const std::string& name, Tensor tensor);
  template <class T>
  ModuleHolder<T> replace_module(const std::string& name, ModuleHolder<T> holder) {
    set_child(name, holder.ptr());
    return holder;
  }
  // ValueError where the name is not registered, here and below.
  void unregister_parameter(const std::string& name);
  void unregister_buffer(const std::string& name);
  void unregister_module(const std::string& name);

  void retain() const { refs_.fetch_add(1, std::memory_order_relaxed); }
  void drop() const {
    const uint32_t before = refs_.fetch_sub(1, std::memory_order_acq_rel);
    if (before == 1)
      delete this;
    else if (before == (kKept | 2)) [[unlikely]]
      drop_keeper();
  }
  // For ForeignModulePtr: the module belongs to something else, which `keeper` keeps from deleting it while ModulePtrs
  // count it. Does nothing where there is a keeper. To be called while a ModulePtr is held.
  void keep_by(std::unique_ptr<ModuleKeeper> keeper) const;
  const ModuleKeeper* keeper() const;  // null where there is none

 protected:
  // For Cloneable: the tables are copied, so the copy shares tensors and children until they are registered anew.
  Module(const Module& other);
  void forget_registrations();
  // NotImplementedError where this is of a class derived from `type`, whose own part a copy would lack.
  void require_type(const std::type_info& type) const;
  // Gives this module, which has the structure of `source`, the values, dtypes and modes of `source`. What is one tensor
  // there must be one tensor here, and the reverse: ValueError otherwise.
  void copy_state_of(const Module& source, std::optional<Device> device);
  // Called by copy_state_of first. Checks that both have registered the same names; containers, which can, make what is
  // missing.
  virtual void adopt_structure_of(const Module& source, std::optional<Device> device);

  void set_training(bool on) { training_ = on; }
  OrderedDict<std::string, Tensor>& own_parameters() { return parameters_; }
  const OrderedDict<std::string, Tensor>& own_parameters() const { return parameters_; }

 private:
  struct Buffer {
    Tensor tensor;
    bool persistent;
  };
  struct CopiedState;
  void copy_state_of(const Module& source, std::optional<Device> device, const std::string& path,
                     CopiedState& done);
  void add_child(std::string name, ModulePtr<Module> module);
  void set_child(const std::string& name, ModulePtr<Module> module);
  void drop_keeper() const;
  template <class F>
  void convert(const F& convert_tensor);

  // A flag beside the count: there is a keeper. The first reference is then the owner's and never dropped.
  static constexpr uint32_t kKept = 1u << 31;
  mutable std::atomic<uint32_t> refs_{1};
  bool training_ = true;
  mutable std::string name_;
  OrderedDict<std::string, Tensor> parameters_{"parameter"};
  OrderedDict<std::string, Buffer> buffers_{"buffer"};
  OrderedDict<std::string, ModulePtr<Module>> children_{"module"};
};

// Lists of modules, which become lists of foreign pointers where those are asked for.
struct ModulePtrs : std::vector<ModulePtr<Module>> {
  using std::vector<ModulePtr<Module>>::vector;
  ModulePtrs(std::vector<ModulePtr<Module>> modules)  // NOLINT: implicit
      : std::vector<ModulePtr<Module>>(std::move(modules)) {}
  template <ForeignPtr P>
  operator std::vector<P>() const {  // NOLINT
    return std::vector<P>(begin(), end());
  }
};
struct NamedModulePtrs : OrderedDict<std::string, ModulePtr<Module>> {
  using OrderedDict<std::string, ModulePtr<Module>>::OrderedDict;
  template <ForeignPtr P>
  operator OrderedDict<std::string, P>() const {  // NOLINT
    OrderedDict<std::string, P> out;
    for (const auto& item : *this) out.insert(item.key(), P(item.value()));
    return out;
  }
};

std::ostream& operator<<(std::ostream& out, const Module& module);
// What modules print in front of "::nn::" with the names of Vesta's own layers, instead of "vesta". The text must live
// on; for the libtorch-shaped entry.
void set_printed_namespace(const char* name);

// A module used like a value: copies share the module. An empty holder is made from nullptr.
template <class Contained>
class ModuleHolder {
 public:
  using ContainedType = Contained;
  // Template, so that a holder of a module without a default constructor can still be made from arguments.
  template <class C = Contained, std::enable_if_t<std::is_default_constructible_v<C>, int> = 0>
  ModuleHolder() : impl_(make_module<C>()) {}
  ModuleHolder(std::nullptr_t) {}                                          // NOLINT
  ModuleHolder(ModulePtr<Contained> module) : impl_(std::move(module)) {}  // NOLINT
  template <ForeignPtr P>
  requires(std::is_convertible_v<typename ForeignModulePtr<P>::ModuleType*, Contained*>)
      ModuleHolder(const P& module)
      : impl_(module) {}  // NOLINT
  template <
      class Head, class... Tail,
      std::enable_if_t<!(sizeof...(Tail) == 0 && (std::is_base_of_v<ModuleHolder, std::decay_t<Head>> ||
                                                  std::is_same_v<std::decay_t<Head>, ModulePtr<Contained>> ||
                                                  ForeignPtr<std::decay_t<Head>>)),
                       int> = 0>
  explicit ModuleHolder(Head&& head, Tail&&... tail)
      : impl_(make_module<Contained>(std::forward<Head>(head), std::forward<Tail>(tail)...)) {}

  explicit operator bool() const { return bool(impl_); }
  bool is_empty() const { return !impl_; }
  Contained* operator->() const { return get(); }
  Contained& operator*() const { return *get(); }
  const ModulePtr<Contained>& ptr() const {
    VESTA_CHECK(impl_, "ModuleHolder: this holder is empty");
    return impl_;
  }
  Contained* get() const {
    VESTA_CHECK(impl_, "ModuleHolder: this holder is empty");
    return impl_.get();
  }
  template <class Key>
  decltype(auto) operator[](Key&& key) const {
    return (*get())[std::forward<Key>(key)];
  }
  template <class... Args>
  auto operator()(Args&&... args) const {
    return get()->forward(std::forward<Args>(args)...);
  }

 private:
  ModulePtr<Contained> impl_;
};

template <class Contained>
std::ostream& operator<<(std::ostream& out, const ModuleHolder<Contained>& holder) {
  return out << static_cast<const Module&>(*holder);
}

namespace detail {
template <class T, class = void>
struct ContainedIn {
  using type = T;
};
template <class T>
struct ContainedIn<T, std::void_t<typename T::ContainedType>> {
  using type = typename T::ContainedType;
};
}  // namespace detail

// The same module as a T, shared; null where it is something else.
template <class T>
ModulePtr<T> module_cast(const ModulePtr<Module>& module) {
  return ModulePtr<T>::share(dynamic_cast<T*>(module.get()));
}

template <class ModuleType>
auto Module::as() {
  return dynamic_cast<typename detail::ContainedIn<ModuleType>::type*>(this);
}

// Declares Name, the holder of Impl, or of NameImpl; also inside of a function.
#define VESTA_MODULE_IMPL(Name, Impl)                                                                    \
  class Name : public ::vesta::nn::ModuleHolder<Impl> {                                                  \
   public:                                                                                               \
    using ::vesta::nn::ModuleHolder<Impl>::ModuleHolder;                                                 \
    Name() = default;                                                                                    \
    Name(::vesta::nn::ModuleHolder<Impl> holder) : ::vesta::nn::ModuleHolder<Impl>(std::move(holder)) {} \
  }
#define VESTA_MODULE(Name) VESTA_MODULE_IMPL(Name, Name##Impl)

}  // namespace vesta::nn
