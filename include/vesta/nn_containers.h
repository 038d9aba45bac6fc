#pragma once
// Containers: Sequential (calls its modules one after another), ModuleList, ModuleDict, ParameterList, ParameterDict
// (registration only), Functional (a function as a module). Names as in libtorch.
#include <functional>
#include <initializer_list>

#include "vesta/nn_any.h"
#include "vesta/nn_cloneable.h"

namespace vesta::nn {

namespace detail {
[[noreturn]] void wrong_module_type(const char* container, size_t i, const Module& module);
}

// Modules called one after another; what one returns, whatever its type, is the argument of the next. Children are
// named "0", "1", ... or by the pairs given.
//   nn::Sequential net(nn::Linear(4, 8), nn::ReLU());
//   nn::Sequential named({{"first", nn::Linear(1, 2)}, {"act", nn::ReLU()}});
class SequentialImpl : public Cloneable<SequentialImpl> {
 public:
  SequentialImpl() = default;
  template <class... Modules>
  requires(!(sizeof...(Modules) == 1 && (std::is_same_v<std::decay_t<Modules>, SequentialImpl> && ...)) &&
           (std::is_constructible_v<AnyModule, Modules&&> &&
            ...)) explicit SequentialImpl(Modules&&... modules) {
    (push_back(AnyModule(std::forward<Modules>(modules))), ...);
  }
  SequentialImpl(std::initializer_list<NamedAnyModule> named) {
    for (const auto& item : named) push_back(item.name(), item.module());
  }
  explicit SequentialImpl(const OrderedDict<std::string, AnyModule>& named) {
    for (const auto& item : named) push_back(item.key(), item.value());
  }
  void push_back(AnyModule module);
  void push_back(std::string name, AnyModule module);
  // The other's modules, under new numbers.
  void extend(const SequentialImpl& other);
  template <class Container>
  void extend(const Container& modules) {
    for (const auto& module : modules) push_back(AnyModule(module));
  }

  // ValueError when empty; TypeError where a module does not take what the one before it returns.
  Tensor forward(const Tensor& input);
  template <class R = Tensor, class... A>
  R forward(A&&... arguments) {
    if constexpr (std::is_same_v<R, Tensor> && sizeof...(A) == 1 &&
                  (std::is_same_v<std::decay_t<A>, Tensor> && ...)) {
      return forward(static_cast<const Tensor&>(arguments)...);
    } else {
      std::vector<AnyValue> values;
      values.reserve(sizeof...(A));
      (values.push_back(AnyValue(std::forward<A>(arguments))), ...);
      return any_forward(std::move(values)).template get<R>();
    }
  }
  AnyValue any_forward(std::vector<AnyValue> arguments);
  void describe(std::ostream& out) const override;

  size_t size() const { return steps_.size(); }
  bool is_empty() const { return steps_.empty(); }
  // IndexError outside [0, size()).
  const ModulePtr<Module>& operator[](size_t i) const { return at_index(i).ptr(); }
  const ModulePtr<Module>& ptr(size_t i) const { return at_index(i).ptr(); }
  // The module at i as T (an implementation class, or a holder); TypeError where it is something else.
  template <class T>
  auto& at(size_t i) const {
    auto* found = ptr(i)->template as<T>();
    if (!found) detail::wrong_module_type("Sequential", i, *ptr(i));
    return *found;
  }
  // Its pointer as one to T, an implementation class.
  template <class T>
  ModulePtr<T> ptr(size_t i) const {
    return ModulePtr<T>::share(&at<T>(i));
  }
  auto begin() const { return steps_.begin(); }
  auto end() const { return steps_.end(); }

 protected:
  void adopt_structure_of(const Module& source, std::optional<Device> device) override;

 private:
  const AnyModule& at_index(size_t i) const;
  std::vector<AnyModule> steps_;
};
VESTA_LAYER_CLONE(SequentialImpl);
class Sequential : public ModuleHolder<SequentialImpl> {
 public:
  using ModuleHolder<SequentialImpl>::ModuleHolder;
  Sequential() = default;
  Sequential(const Sequential&) = default;
  Sequential(Sequential&&) = default;
  Sequential& operator=(const Sequential&) = default;
  Sequential& operator=(Sequential&&) = default;
  Sequential(ModuleHolder<SequentialImpl> holder)
      : ModuleHolder<SequentialImpl>(std::move(holder)) {}  // NOLINT
  Sequential(std::initializer_list<NamedAnyModule> named)
      : ModuleHolder(make_module<SequentialImpl>(named)) {}
};

// Modules in a list, registered as "0", "1", ...; the program calls them itself:
//   for (const auto& block : *blocks) h = block->as<Block>()->forward(h);
class ModuleListImpl : public Cloneable<ModuleListImpl> {
 public:
  ModuleListImpl() = default;
  template <class... Modules>
  requires(!(sizeof...(Modules) == 1 && (std::is_same_v<std::decay_t<Modules>, ModuleListImpl> &&
                                         ...))) explicit ModuleListImpl(const Modules&... modules) {
    (push_back(modules), ...);
  }
  void push_back(ModulePtr<Module> module);
  template <class Contained>
  void push_back(const ModuleHolder<Contained>& holder) {
    push_back(ModulePtr<Module>(holder.ptr()));
  }
  // A module by value.
  template <class M, std::enable_if_t<std::is_base_of_v<Module, std::decay_t<M>>, int> = 0>
  void push_back(M&& module) {
    push_back(ModulePtr<Module>(make_module<std::decay_t<M>>(std::forward<M>(module))));
  }
  void extend(const ModuleListImpl& other);
  // The modules of any row of pointers or holders.
  template <class Row>
  requires(!std::is_base_of_v<ModuleListImpl, Row>) void extend(const Row& modules) {
    for (const auto& module : modules) push_back(module);
  }
  // Puts a module in front of number i <= size(), which changes the names of those behind it.
  void insert(size_t i, ModulePtr<Module> module);
  template <class Contained>
  void insert(size_t i, const ModuleHolder<Contained>& holder) {
    insert(i, ModulePtr<Module>(holder.ptr()));
  }
  void describe(std::ostream& out) const override;

  size_t size() const { return items_.size(); }
  bool is_empty() const { return items_.empty(); }
  const ModulePtr<Module>& operator[](size_t i) const { return ptr(i); }
  const ModulePtr<Module>& ptr(size_t i) const;
  template <class T>
  auto& at(size_t i) const {
    auto* found = ptr(i)->template as<T>();
    if (!found) detail::wrong_module_type("ModuleList", i, *ptr(i));
    return *found;
  }
  // Its pointer as one to T, an implementation class.
  template <class T>
  ModulePtr<T> ptr(size_t i) const {
    return ModulePtr<T>::share(&at<T>(i));
  }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

 protected:
  void adopt_structure_of(const Module& source, std::optional<Device> device) override;

 private:
  std::vector<ModulePtr<Module>> items_;
};
VESTA_LAYER(ModuleList);

// Modules by name, in order of insertion.
class ModuleDictImpl : public Cloneable<ModuleDictImpl> {
 public:
  using Items = OrderedDict<std::string, ModulePtr<Module>>;
  ModuleDictImpl() = default;
  explicit ModuleDictImpl(const std::vector<std::pair<std::string, ModulePtr<Module>>>& modules) {
    update(modules);
  }
  explicit ModuleDictImpl(const Items& modules) {
    for (const auto& item : modules) insert(item.key(), item.value());
  }

  // Replaces a module of the same name.
  void insert(std::string name, ModulePtr<Module> module);
  void update(const std::vector<std::pair<std::string, ModulePtr<Module>>>& modules);
  void update(const ModuleDictImpl& other);
  // The same from pointers of another world, see ForeignModulePtr.
  template <ForeignPtr P>
  explicit ModuleDictImpl(const std::vector<std::pair<std::string, P>>& modules) {
    update(modules);
  }
  template <ForeignPtr P>
  explicit ModuleDictImpl(const OrderedDict<std::string, P>& modules) {
    update(modules);
  }
  template <ForeignPtr P>
  void update(const std::vector<std::pair<std::string, P>>& modules) {
    for (const auto& item : modules) insert(item.first, ModulePtr<Module>(item.second));
  }
  template <ForeignPtr P>
  void update(const OrderedDict<std::string, P>& modules) {
    for (const auto& item : modules) insert(item.key(), ModulePtr<Module>(item.value()));
  }
  // Removes a module and returns it. ValueError where the name is missing, here and below.
  ModulePtr<Module> pop(const std::string& name);
  void clear();
  const ModulePtr<Module>& operator[](const std::string& name) const { return items_[name]; }
  const ModulePtr<Module>& ptr(const std::string& name) const { return items_[name]; }
  template <class T>
  auto& at(const std::string& name) const {
    auto* found = items_[name]->template as<T>();
    if (!found) detail::wrong_module_type("ModuleDict", items_.size(), *items_[name]);
    return *found;
  }
  bool contains(const std::string& name) const { return items_.contains(name); }
  size_t size() const { return items_.size(); }
  bool empty() const { return items_.is_empty(); }
  std::vector<std::string> keys() const;
  std::vector<ModulePtr<Module>> values() const;
  std::vector<std::pair<std::string, ModulePtr<Module>>> items() const;
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  void describe(std::ostream& out) const override;

 protected:
  void adopt_structure_of(const Module& source, std::optional<Device> device) override;

 private:
  Items items_{"module"};
};
VESTA_LAYER(ModuleDict);

// Parameters in a list, registered as "0", "1", ... Tensors enter with requires_grad as they have it.
class ParameterListImpl : public Cloneable<ParameterListImpl> {
 public:
  ParameterListImpl() = default;
  template <class... Tensors>
  requires(sizeof...(Tensors) > 0 && (std::is_convertible_v<const Tensors&, Tensor> &&
                                      ...)) explicit ParameterListImpl(const Tensors&... tensors) {
    (append(tensors), ...);
  }
  void append(Tensor parameter);
  void extend(const std::vector<Tensor>& parameters);
  void extend(const ParameterListImpl& other);
  // IndexError outside [0, size()).
  Tensor& operator[](size_t i) { return at(i); }
  const Tensor& operator[](size_t i) const { return at(i); }
  Tensor& at(size_t i);
  const Tensor& at(size_t i) const { return const_cast<ParameterListImpl*>(this)->at(i); }
  size_t size() const;
  bool is_empty() const { return size() == 0; }
  auto begin() const { return own_parameters().begin(); }
  auto end() const { return own_parameters().end(); }
  void pretty_print(std::ostream& out) const override;
  void describe(std::ostream& out) const override;

 protected:
  void adopt_structure_of(const Module& source, std::optional<Device> device) override;
};
VESTA_LAYER(ParameterList);

// Parameters by name, in order of insertion.
class ParameterDictImpl : public Cloneable<ParameterDictImpl> {
 public:
  ParameterDictImpl() = default;
  explicit ParameterDictImpl(const OrderedDict<std::string, Tensor>& parameters) { update(parameters); }
  // Replaces a parameter of the same name.
  Tensor& insert(std::string name, Tensor parameter);
  void update(const OrderedDict<std::string, Tensor>& parameters);
  void update(const ParameterDictImpl& other);
  // ValueError where the name is missing, here and below.
  Tensor pop(const std::string& name);
  void clear();
  Tensor& operator[](const std::string& name) { return get(name); }
  const Tensor& operator[](const std::string& name) const { return get(name); }
  Tensor& get(const std::string& name);
  const Tensor& get(const std::string& name) const { return const_cast<ParameterDictImpl*>(this)->get(name); }
  bool contains(const std::string& name) const;
  size_t size() const;
  bool empty() const { return size() == 0; }
  std::vector<std::string> keys() const;
  std::vector<Tensor> values() const;
  std::vector<std::pair<std::string, Tensor>> items() const;
  auto begin() const { return own_parameters().begin(); }
  auto end() const { return own_parameters().end(); }
  void pretty_print(std::ostream& out) const override;
  void describe(std::ostream& out) const override;

 protected:
  void adopt_structure_of(const Module& source, std::optional<Device> device) override;
};
VESTA_LAYER(ParameterDict);

// A function from tensor to tensor as a module, for Sequential: nn::Functional(vesta::relu_) or with further arguments
// bound, nn::Functional(F::elu, F::ELUFuncOptions().alpha(0.5)).
class FunctionalImpl : public Module {
 public:
  using Function = std::function<Tensor(Tensor)>;
  explicit FunctionalImpl(Function function);
  template <class F, class... A, std::enable_if_t<(sizeof...(A) > 0), int> = 0>
  explicit FunctionalImpl(F function, A&&... bound)
      : FunctionalImpl(Function(
            [function, ... kept = std::forward<A>(bound)](Tensor x) { return function(x, kept...); })) {}
  Tensor forward(const Tensor& input) { return function_(input); }
  Tensor operator()(const Tensor& input) { return function_(input); }
  bool is_serializable() const { return false; }
  void describe(std::ostream& out) const override;
  ModulePtr<Module> clone(std::optional<Device> device = std::nullopt) const override;

 private:
  Function function_;
};
VESTA_MODULE_IMPL(Functional, FunctionalImpl);

}  // namespace vesta::nn
