#pragma once
// What all optimisers share: options, parameter groups, state, saving. An optimiser adds its update rule; all its state
// that changes from step to step is kept in tensors, so that a captured step replays correctly.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "vesta/option_arg.h"
#include "vesta/ordered_dict.h"
#include "vesta/tensor.h"

namespace vesta::optim {

using StateDict = OrderedDict<std::string, Tensor>;

// A number that lives in a 0-dim float64 tensor. set() writes in place; a copy has a tensor of its own.
class HeldNumber {
 public:
  HeldNumber(double value);  // NOLINT: implicit
  HeldNumber(const HeldNumber& other);
  HeldNumber& operator=(const HeldNumber& other);
  double get() const;
  void set(double value);
  const Tensor& tensor() const { return tensor_; }

 private:
  Tensor tensor_;
};

// Sees every option of a class, to save and to load them.
class OptionVisitor {
 public:
  virtual ~OptionVisitor() = default;
  virtual void visit(const char* name, HeldNumber& value) = 0;
  virtual void visit(const char* name, double& value) = 0;
  virtual void visit(const char* name, bool& value) = 0;
  virtual void visit(const char* name, int64_t& value) {
    double number = double(value);
    visit(name, number);
    value = int64_t(number);
  }
};

class OptimizerOptions {
 public:
  virtual ~OptimizerOptions() = default;
  virtual std::unique_ptr<OptimizerOptions> clone() const = 0;
  virtual void visit(OptionVisitor& visitor) = 0;
  // Throws ValueError where an option is out of range.
  virtual void check() const = 0;
  double get_lr() const { return lr_.get(); }
  void set_lr(double lr) { lr_.set(lr); }
  const Tensor& lr_tensor() const { return lr_.tensor(); }
  // The rate before the first scheduler changed it; schedulers compute from it. Absent until one is made.
  std::optional<double> initial_lr;

 protected:
  explicit OptimizerOptions(double lr) : lr_(lr) {}
  HeldNumber lr_;
};

#define VESTA_OPTIM_LR(Options)                             \
  double lr() const { return lr_.get(); }                   \
  Options& lr(double value) {                               \
    lr_.set(value);                                         \
    return *this;                                           \
  }                                                         \
  std::unique_ptr<OptimizerOptions> clone() const override; \
  void visit(OptionVisitor& visitor) override;              \
  void check() const override

// In the .cpp, so that programs which include an optimiser do not compile it.
#define VESTA_OPTIM_CLONE(Options) \
  std::unique_ptr<OptimizerOptions> Options::clone() const { return std::make_unique<Options>(*this); }

// Parameters that share options. Without options the optimiser's defaults are copied when the group is added.
class OptimizerParamGroup {
 public:
  OptimizerParamGroup(std::vector<Tensor> params) : params_(std::move(params)) {}  // NOLINT
  OptimizerParamGroup(std::vector<Tensor> params, std::unique_ptr<OptimizerOptions> options)
      : params_(std::move(params)), options_(std::move(options)) {}
  template <class Options, std::enable_if_t<std::is_base_of_v<OptimizerOptions, Options>, int> = 0>
  OptimizerParamGroup(std::vector<Tensor> params, const Options& options)
      : OptimizerParamGroup(std::move(params), options.clone()) {}
  OptimizerParamGroup(const OptimizerParamGroup& other);
  OptimizerParamGroup(OptimizerParamGroup&& other) noexcept;
  ~OptimizerParamGroup();

  bool has_options() const { return options_ != nullptr; }
  OptimizerOptions& options();
  const OptimizerOptions& options() const { return const_cast<OptimizerParamGroup*>(this)->options(); }
  void set_options(std::unique_ptr<OptimizerOptions> options) { options_ = std::move(options); }
  const std::vector<Tensor>& params() const { return params_; }
  void add_param(Tensor param) { params_.push_back(std::move(param)); }
  // State tensors: state()[slot][i] belongs to params()[i]; undefined until made. The optimiser names the slots.
  std::vector<std::vector<Tensor>>& state() { return state_; }
  const std::vector<std::vector<Tensor>>& state() const { return state_; }

 private:
  std::vector<Tensor> params_;
  std::unique_ptr<OptimizerOptions> options_;
  std::vector<std::vector<Tensor>> state_;
};

class Optimizer {
 public:
  using LossClosure = std::function<Tensor()>;
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // ValueError where a parameter is in a group already, is no leaf, or the options do not fit.
  void add_param_group(OptimizerParamGroup group);
  // More parameters for the first group; those of all groups, and how many.
  void add_parameters(const std::vector<Tensor>& parameters);
  std::vector<Tensor> parameters() const;
  size_t size() const { return parameters().size(); }
  std::vector<OptimizerParamGroup>& param_groups() { return groups_; }
  const std::vector<OptimizerParamGroup>& param_groups() const { return groups_; }
  OptimizerOptions& defaults() { return *defaults_; }

  // One update of every parameter that has a gradient; calls the closure first, with recording on, and returns its loss.
  virtual Tensor step(const LossClosure& closure = nullptr);
  // Drops all gradients, or fills them with zeros.
  void zero_grad(bool set_to_none = true);
  // Makes the state of all parameters that require grad, where it does not exist yet.
  void init_state();

  // "group.G.OPTION" (0-dim float64) and "state.G.I.SLOT" for parameter I of group G. The tensors share memory with
  // the optimiser's; clone them for a snapshot.
  virtual StateDict state_dict() const;
  // Restores options and state in place. Checks first, then writes. ValueError lists missing, unexpected and
  // wrong-shape names.
  virtual void load_state_dict(const StateDict& dict);

 protected:
  // The parameters as the only group.
  static std::vector<OptimizerParamGroup> one_group(std::vector<Tensor> params);
  // A derived constructor adds the groups.
  Optimizer(std::unique_ptr<OptimizerOptions> defaults, std::vector<std::string> slots);

  // The parameters with gradients of one group, ready for a multi-tensor operator. state[slot] matches params.
  struct Update {
    std::vector<Tensor> params, grads;
    std::vector<std::vector<Tensor>> state;
  };
  virtual bool accepts(const OptimizerOptions& options) const = 0;
  // Whether `slot` is used under these options (max_exp_avg_sq only with amsgrad).
  virtual bool uses_slot(size_t slot, const OptimizerOptions& options) const = 0;
  // The first state, of the shape that slot_sizes tells.
  virtual Tensor make_slot(size_t slot, const Tensor& param, const OptimizerOptions& options) const = 0;
  // 0-dim for "step", the parameter's shape otherwise.
  virtual std::vector<int64_t> slot_sizes(size_t slot, const Tensor& param) const;
  // Called without recording.
  virtual void update(const OptimizerOptions& options, Update& u) = 0;

 private:
  void check_parameters(const std::vector<Tensor>& parameters) const;
  void ensure_state(OptimizerParamGroup& group, size_t i);
  std::vector<std::string> slots_;
  std::unique_ptr<OptimizerOptions> defaults_;
  std::vector<OptimizerParamGroup> groups_;
};

// An optimiser with options of one class. Derived has `static std::vector<std::string> slot_names()`.
template <class Derived, class Options>
class OptimizerRule : public Optimizer {
 public:
  explicit OptimizerRule(std::vector<OptimizerParamGroup> groups, const Options& defaults)
      : Optimizer(defaults.clone(), Derived::slot_names()) {
    for (auto& group : groups) add_param_group(std::move(group));
  }

 protected:
  bool accepts(const OptimizerOptions& options) const override {
    return dynamic_cast<const Options*>(&options);
  }
  static const Options& own(const OptimizerOptions& options) { return static_cast<const Options&>(options); }
};

// Constructors and the four functions of such an optimiser.
#define VESTA_OPTIM_RULE(Name)                                                                        \
 public:                                                                                              \
  explicit Name(std::vector<OptimizerParamGroup> groups, const Name##Options& defaults = {})          \
      : OptimizerRule(std::move(groups), defaults) {}                                                 \
  explicit Name(std::vector<Tensor> params, const Name##Options& defaults = {})                       \
      : Name(one_group(std::move(params)), defaults) {}                                               \
  static std::vector<std::string> slot_names();                                                       \
                                                                                                      \
 protected:                                                                                           \
  bool uses_slot(size_t slot, const OptimizerOptions& options) const override;                        \
  Tensor make_slot(size_t slot, const Tensor& param, const OptimizerOptions& options) const override; \
  void update(const OptimizerOptions& options, Update& u) override

}  // namespace vesta::optim
