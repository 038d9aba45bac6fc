// Optimizer: groups, state, saving and loading. The update rules are in sgd.cpp and adam.cpp.
#include <unordered_set>

#include "vesta/autograd.h"
#include "vesta/ops.h"
#include "vesta/optim.h"

namespace vesta::optim {
namespace {

constexpr const char* kStep = "step";  // the 0-dim slot; every other has the parameter's shape

Tensor held(double value) { return full({}, value, TensorOptions(kFloat64)); }

std::string shape_text(IntArrayRef sizes) {
  std::string out = "[";
  for (size_t i = 0; i < sizes.size(); ++i) out += (i ? ", " : "") + std::to_string(sizes[i]);
  return out + "]";
}

std::string names_text(const char* title, const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < names.size(); ++i) out += (i ? "; " : std::string("\n  ") + title + ": ") + names[i];
  return out;
}

// Options as tensors under a prefix: the rate as itself, other numbers as copies.
class Saver : public OptionVisitor {
 public:
  Saver(StateDict& dict, std::string prefix) : dict_(dict), prefix_(std::move(prefix)) {}
  void visit(const char* name, HeldNumber& value) override { dict_.insert(prefix_ + name, value.tensor()); }
  void visit(const char* name, double& value) override { dict_.insert(prefix_ + name, held(value)); }
  void visit(const char* name, bool& value) override { dict_.insert(prefix_ + name, held(value)); }

 private:
  StateDict& dict_;
  std::string prefix_;
};

class Loader : public OptionVisitor {
 public:
  Loader(const StateDict& dict, std::string prefix) : dict_(dict), prefix_(std::move(prefix)) {}
  void visit(const char* name, HeldNumber& value) override { value.set(get(name)); }
  void visit(const char* name, double& value) override { value = get(name); }
  void visit(const char* name, bool& value) override { value = get(name) != 0; }

 private:
  double get(const char* name) const { return dict_[prefix_ + name].item<double>(); }
  const StateDict& dict_;
  std::string prefix_;
};

std::string group_prefix(size_t group) { return "group." + std::to_string(group) + "."; }
std::string state_prefix(size_t group, size_t i) {
  return "state." + std::to_string(group) + "." + std::to_string(i) + ".";
}

}  // namespace

HeldNumber::HeldNumber(double value) : tensor_(held(value)) {}
HeldNumber::HeldNumber(const HeldNumber& other) : tensor_(held(other.get())) {}
HeldNumber& HeldNumber::operator=(const HeldNumber& other) {
  set(other.get());
  return *this;
}
double HeldNumber::get() const { return tensor_.item<double>(); }
void HeldNumber::set(double value) { tensor_.fill_(value); }

OptimizerOptions& OptimizerParamGroup::options() {
  VESTA_CHECK(options_, "OptimizerParamGroup: this group has no options yet");
  return *options_;
}

OptimizerParamGroup::OptimizerParamGroup(const OptimizerParamGroup& other)
    : params_(other.params_),
      options_(other.options_ ? other.options_->clone() : nullptr),
      state_(other.state_) {}
OptimizerParamGroup::OptimizerParamGroup(OptimizerParamGroup&&) noexcept = default;
OptimizerParamGroup::~OptimizerParamGroup() = default;

Optimizer::~Optimizer() = default;
std::vector<OptimizerParamGroup> Optimizer::one_group(std::vector<Tensor> params) {
  std::vector<OptimizerParamGroup> groups;
  groups.emplace_back(std::move(params));
  return groups;
}
Optimizer::Optimizer(std::unique_ptr<OptimizerOptions> defaults, std::vector<std::string> slots)
    : slots_(std::move(slots)), defaults_(std::move(defaults)) {
  defaults_->check();
}

void Optimizer::add_param_group(OptimizerParamGroup group) {
  if (!group.has_options()) group.set_options(defaults_->clone());
  VESTA_CHECK(accepts(group.options()),
              "Optimizer: the options of a parameter group belong to another optimiser");
  group.options().check();
  check_parameters(group.params());
  group.state().assign(slots_.size(), std::vector<Tensor>(group.params().size()));
  groups_.push_back(std::move(group));
}

// Before anything is added.
void Optimizer::check_parameters(const std::vector<Tensor>& parameters) const {
  std::unordered_set<const TensorImpl*> known;
  for (const Tensor& param : this->parameters()) known.insert(param.impl());
  for (const Tensor& param : parameters) {
    VESTA_CHECK(param.defined(), "Optimizer: a parameter is undefined");
    VESTA_CHECK(param.is_leaf(), "Optimizer: can only optimise leaf tensors, one is the result of ",
                param.grad_fn_name());
    VESTA_CHECK(known.insert(param.impl()).second, "Optimizer: a parameter of shape ",
                shape_text(param.sizes()), " is listed twice");
  }
}

void Optimizer::add_parameters(const std::vector<Tensor>& parameters) {
  VESTA_CHECK(!groups_.empty(), "Optimizer::add_parameters: there is no parameter group");
  check_parameters(parameters);
  for (const Tensor& param : parameters) {
    groups_[0].add_param(param);
    for (auto& slot : groups_[0].state()) slot.emplace_back();
  }
}

std::vector<Tensor> Optimizer::parameters() const {
  std::vector<Tensor> out;
  for (const auto& group : groups_) out.insert(out.end(), group.params().begin(), group.params().end());
  return out;
}

void Optimizer::ensure_state(OptimizerParamGroup& group, size_t i) {
  for (size_t s = 0; s < slots_.size(); ++s)
    if (!group.state()[s][i].defined() && uses_slot(s, group.options()))
      group.state()[s][i] = make_slot(s, group.params()[i], group.options());
}

std::vector<int64_t> Optimizer::slot_sizes(size_t slot, const Tensor& param) const {
  if (slots_[slot] == kStep) return {};
  return std::vector<int64_t>(param.sizes().begin(), param.sizes().end());
}

void Optimizer::init_state() {
  const NoGradGuard no_grad;
  for (auto& group : groups_)
    for (size_t i = 0; i < group.params().size(); ++i)
      if (group.params()[i].requires_grad()) ensure_state(group, i);
}

Tensor Optimizer::step(const LossClosure& closure) {
  Tensor loss;
  if (closure) {
    const AutoGradMode recording(true);
    loss = closure();
  }
  const NoGradGuard no_grad;
  for (auto& group : groups_) {
    Update u;
    const size_t count = group.params().size();
    u.params.reserve(count);
    u.grads.reserve(count);
    u.state.resize(slots_.size());
    for (auto& slot : u.state) slot.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      const Tensor& param = group.params()[i];
      const Tensor& grad = param.grad();
      if (!grad.defined()) continue;
      ensure_state(group, i);
      u.params.push_back(param);
      u.grads.push_back(grad);
      for (size_t s = 0; s < slots_.size(); ++s)
        if (const Tensor& t = group.state()[s][i]; t.defined()) u.state[s].push_back(t);
    }
    if (!u.params.empty()) update(group.options(), u);
  }
  return loss;
}

void Optimizer::zero_grad(bool set_to_none) {
  const NoGradGuard no_grad;
  for (const auto& group : groups_)
    for (const Tensor& param : group.params()) {
      Tensor& grad = param.mutable_grad();
      if (!grad.defined()) continue;
      if (set_to_none) {
        grad.reset();
      } else {
        if (grad.grad_fn()) grad = grad.detach();
        grad.zero_();
      }
    }
}

StateDict Optimizer::state_dict() const {
  StateDict dict("optimizer state");
  for (size_t g = 0; g < groups_.size(); ++g) {
    Saver saver(dict, group_prefix(g));
    const_cast<OptimizerOptions&>(groups_[g].options()).visit(saver);
    for (size_t i = 0; i < groups_[g].params().size(); ++i)
      for (size_t s = 0; s < slots_.size(); ++s)
        if (const Tensor& t = groups_[g].state()[s][i]; t.defined())
          dict.insert(state_prefix(g, i) + slots_[s], t);
  }
  return dict;
}

void Optimizer::load_state_dict(const StateDict& dict) {
  std::vector<std::string> missing, unexpected, mismatched;
  std::unordered_set<std::string> known;
  const auto expect = [&](const std::string& name, IntArrayRef sizes, bool required) {
    known.insert(name);
    const Tensor* value = dict.find(name);
    if (!value) {
      if (required) missing.push_back(name);
    } else if (!(value->sizes() == sizes)) {
      mismatched.push_back(name + ": expected " + shape_text(sizes) + ", got " + shape_text(value->sizes()));
    }
  };
  const auto report = [&] {
    VESTA_CHECK(missing.empty() && unexpected.empty() && mismatched.empty(),
                "Optimizer::load_state_dict: the dict does not fit", names_text("missing", missing),
                names_text("unexpected", unexpected), names_text("wrong shape", mismatched));
  };
  for (size_t g = 0; g < groups_.size(); ++g) {
    StateDict options;
    Saver saver(options, group_prefix(g));
    groups_[g].options().visit(saver);
    for (const auto& item : options) expect(item.key(), {}, true);
  }
  if (!missing.empty() || !mismatched.empty()) report();
  for (size_t g = 0; g < groups_.size(); ++g) {
    const auto loaded = groups_[g].options().clone();
    Loader loader(dict, group_prefix(g));
    loaded->visit(loader);
    loaded->check();
    for (size_t i = 0; i < groups_[g].params().size(); ++i) {
      const Tensor& param = groups_[g].params()[i];
      const std::string prefix = state_prefix(g, i);
      // A parameter that has had no step has no state at all.
      bool has_state = false;
      for (const auto& slot : slots_) has_state |= dict.contains(prefix + slot);
      for (size_t s = 0; s < slots_.size(); ++s)
        if (uses_slot(s, *loaded)) expect(prefix + slots_[s], slot_sizes(s, param), has_state);
    }
  }
  for (const auto& item : dict)
    if (!known.count(item.key())) unexpected.push_back(item.key());
  report();

  const NoGradGuard no_grad;
  for (size_t g = 0; g < groups_.size(); ++g) {
    auto& group = groups_[g];
    Loader loader(dict, group_prefix(g));
    group.options().visit(loader);
    for (size_t i = 0; i < group.params().size(); ++i)
      for (size_t s = 0; s < slots_.size(); ++s) {
        Tensor& slot = group.state()[s][i];
        if (const Tensor* value = dict.find(state_prefix(g, i) + slots_[s])) {
          if (!slot.defined()) slot = make_slot(s, group.params()[i], group.options());
          slot.copy_(*value);
        } else if (slot.defined()) {
          slot.copy_(make_slot(s, group.params()[i],
                               group.options()));  // as new; the tensor may be known to a captured step
        }
      }
  }
}

}  // namespace vesta::optim
