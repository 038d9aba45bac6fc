#pragma once
// Optimisers and learning-rate schedules, with libtorch's names.
//   optim::AdamW opt(model->parameters(), optim::AdamWOptions(1e-3).weight_decay(0.1));
//   opt.zero_grad(); loss.backward(); opt.step();
// All state that changes from step to step is kept in tensors (moments, step counts, the learning rate), none in C++
// numbers: a captured step replays correctly. Call init_state() before capturing one; otherwise the first step() makes
// the state. An optimiser is externally synchronised.
#include <functional>
#include <memory>
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

 protected:
  explicit OptimizerOptions(double lr) : lr_(lr) {}
  HeldNumber lr_;
};

#define VESTA_OPTIM_LR(Options)                                                                         \
  double lr() const { return lr_.get(); }                                                               \
  Options& lr(double value) {                                                                           \
    lr_.set(value);                                                                                     \
    return *this;                                                                                       \
  }                                                                                                     \
  std::unique_ptr<OptimizerOptions> clone() const override { return std::make_unique<Options>(*this); } \
  void visit(OptionVisitor& visitor) override;                                                          \
  void check() const override

class SGDOptions : public OptimizerOptions {
 public:
  SGDOptions(double lr) : OptimizerOptions(lr) {}  // NOLINT
  VESTA_OPTIM_LR(SGDOptions);
  VESTA_ARG(double, momentum) = 0;
  VESTA_ARG(double, dampening) = 0;
  VESTA_ARG(double, weight_decay) = 0;
  VESTA_ARG(bool, nesterov) = false;
  VESTA_ARG(bool, maximize) = false;
};

class AdamOptions : public OptimizerOptions {
 public:
  using Betas = std::tuple<double, double>;
  AdamOptions(double lr = 1e-3) : OptimizerOptions(lr) {}  // NOLINT
  VESTA_OPTIM_LR(AdamOptions);
  VESTA_ARG(Betas, betas) = std::make_tuple(0.9, 0.999);
  VESTA_ARG(double, eps) = 1e-8;
  VESTA_ARG(double, weight_decay) = 0;
  VESTA_ARG(bool, amsgrad) = false;
  VESTA_ARG(bool, maximize) = false;
};

class AdamWOptions : public OptimizerOptions {
 public:
  using Betas = std::tuple<double, double>;
  AdamWOptions(double lr = 1e-3) : OptimizerOptions(lr) {}  // NOLINT
  VESTA_OPTIM_LR(AdamWOptions);
  VESTA_ARG(Betas, betas) = std::make_tuple(0.9, 0.999);
  VESTA_ARG(double, eps) = 1e-8;
  VESTA_ARG(double, weight_decay) = 1e-2;
  VESTA_ARG(bool, amsgrad) = false;
  VESTA_ARG(bool, maximize) = false;
};
#undef VESTA_OPTIM_LR

// Parameters that share options. Without options the optimiser's defaults are copied when the group is added.
class OptimizerParamGroup {
 public:
  OptimizerParamGroup(std::vector<Tensor> params) : params_(std::move(params)) {}  // NOLINT
  OptimizerParamGroup(std::vector<Tensor> params, std::unique_ptr<OptimizerOptions> options)
      : params_(std::move(params)), options_(std::move(options)) {}
  template <class Options, std::enable_if_t<std::is_base_of_v<OptimizerOptions, Options>, int> = 0>
  OptimizerParamGroup(std::vector<Tensor> params, const Options& options)
      : OptimizerParamGroup(std::move(params), options.clone()) {}
  OptimizerParamGroup(const OptimizerParamGroup& o)
      : params_(o.params_), options_(o.options_ ? o.options_->clone() : nullptr), state_(o.state_) {}
  OptimizerParamGroup(OptimizerParamGroup&&) = default;

  bool has_options() const { return options_ != nullptr; }
  OptimizerOptions& options();
  const OptimizerOptions& options() const { return const_cast<OptimizerParamGroup*>(this)->options(); }
  void set_options(std::unique_ptr<OptimizerOptions> options) { options_ = std::move(options); }
  const std::vector<Tensor>& params() const { return params_; }
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
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // ValueError where a parameter is in a group already, is no leaf, or the options do not fit.
  void add_param_group(OptimizerParamGroup group);
  std::vector<OptimizerParamGroup>& param_groups() { return groups_; }
  const std::vector<OptimizerParamGroup>& param_groups() const { return groups_; }
  OptimizerOptions& defaults() { return *defaults_; }

  // One update of every parameter that has a gradient; calls the closure first, with recording on, and returns its loss.
  Tensor step(const LossClosure& closure = nullptr);
  // Drops all gradients, or fills them with zeros.
  void zero_grad(bool set_to_none = true);
  // Makes the state of all parameters that require grad, where it does not exist yet.
  void init_state();

  // "group.G.OPTION" (0-dim float64) and "state.G.I.SLOT" for parameter I of group G. The tensors share memory with
  // the optimiser's; clone them for a snapshot.
  StateDict state_dict() const;
  // Restores options and state in place. Checks first, then writes. ValueError lists missing, unexpected and
  // wrong-shape names.
  void load_state_dict(const StateDict& dict);

 protected:
  // The slot "step" is 0-dim, others have their parameter's shape. A derived constructor adds the groups.
  Optimizer(std::unique_ptr<OptimizerOptions> defaults, std::vector<std::string> slots);

  // The parameters with gradients of one group, ready for a multi-tensor operator. state[slot] matches params.
  struct Update {
    std::vector<Tensor> params, grads;
    std::vector<std::vector<Tensor>> state;
  };
  virtual bool accepts(const OptimizerOptions& options) const = 0;
  // Whether `slot` is used under these options (max_exp_avg_sq only with amsgrad).
  virtual bool uses_slot(size_t slot, const OptimizerOptions& options) const = 0;
  virtual Tensor make_slot(size_t slot, const Tensor& param) const = 0;
  // Called without recording.
  virtual void update(const OptimizerOptions& options, Update& u) = 0;

 private:
  void ensure_state(OptimizerParamGroup& group, size_t i);
  std::vector<std::string> slots_;
  std::unique_ptr<OptimizerOptions> defaults_;
  std::vector<OptimizerParamGroup> groups_;
};

// w -= lr * v, with v = momentum * v + (1 - dampening) * (grad + weight_decay * w). State: momentum_buffer, where
// momentum != 0, and with dampening the step count, since the first step takes the gradient undamped.
class SGD : public Optimizer {
 public:
  SGD(std::vector<OptimizerParamGroup> groups, const SGDOptions& defaults);
  SGD(std::vector<Tensor> params, const SGDOptions& defaults)
      : SGD(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(params))}, defaults) {}

 protected:
  bool accepts(const OptimizerOptions& options) const override;
  bool uses_slot(size_t slot, const OptimizerOptions& options) const override;
  Tensor make_slot(size_t slot, const Tensor& param) const override;
  void update(const OptimizerOptions& options, Update& u) override;
};

// Kingma & Ba 2015, with weight decay added to the gradient. State: step, exp_avg, exp_avg_sq, max_exp_avg_sq. The
// moments of 16-bit parameters are float32.
class Adam : public Optimizer {
 public:
  explicit Adam(std::vector<OptimizerParamGroup> groups, const AdamOptions& defaults = {});
  explicit Adam(std::vector<Tensor> params, const AdamOptions& defaults = {})
      : Adam(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(params))}, defaults) {}

 protected:
  bool accepts(const OptimizerOptions& options) const override;
  bool uses_slot(size_t slot, const OptimizerOptions& options) const override;
  Tensor make_slot(size_t slot, const Tensor& param) const override;
  void update(const OptimizerOptions& options, Update& u) override;
};

// Loshchilov & Hutter 2019: decay lr * weight_decay * w apart from the gradient. State as Adam's.
class AdamW : public Optimizer {
 public:
  explicit AdamW(std::vector<OptimizerParamGroup> groups, const AdamWOptions& defaults = {});
  explicit AdamW(std::vector<Tensor> params, const AdamWOptions& defaults = {})
      : AdamW(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(params))}, defaults) {}

 protected:
  bool accepts(const OptimizerOptions& options) const override;
  bool uses_slot(size_t slot, const OptimizerOptions& options) const override;
  Tensor make_slot(size_t slot, const Tensor& param) const override;
  void update(const OptimizerOptions& options, Update& u) override;
};

// Sets each group's learning rate from the number of calls of step(), starting from the rates that the groups have
// when the scheduler is made (as PyTorch: the rate of epoch 0 is set at once). Keeps its count in a tensor. The
// optimiser must outlive it. step() belongs outside of a captured function (ValueError inside); the captured step sees
// the new rate, because it is written into the optimiser's tensor.
class LRScheduler {
 public:
  virtual ~LRScheduler() = default;
  LRScheduler(const LRScheduler&) = delete;
  LRScheduler& operator=(const LRScheduler&) = delete;
  // Call after the optimiser's step.
  void step();
  int64_t last_epoch() const;
  std::vector<double> get_last_lr() const;
  // last_epoch and base_lr.G.
  StateDict state_dict() const;
  void load_state_dict(const StateDict& dict);

 protected:
  explicit LRScheduler(Optimizer& optimizer);
  // The rate of a group after `epoch` steps, from its first rate. A constructor of a derived class calls apply().
  virtual double rate(int64_t epoch, double base_lr, size_t group) const = 0;
  void apply();

 private:
  Optimizer& optimizer_;
  Tensor epoch_;
  std::vector<HeldNumber> base_lrs_;
};

// base * gamma^(epoch / step_size).
class StepLR : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, int64_t step_size, double gamma = 0.1);

 protected:
  double rate(int64_t epoch, double base_lr, size_t group) const override;

 private:
  int64_t step_size_;
  double gamma_;
};

// base * gamma^epoch.
class ExponentialLR : public LRScheduler {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma);

 protected:
  double rate(int64_t epoch, double base_lr, size_t group) const override;

 private:
  double gamma_;
};

// eta_min + (base - eta_min) (1 + cos(pi epoch / t_max)) / 2 (Loshchilov & Hutter 2017).
class CosineAnnealingLR : public LRScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, int64_t t_max, double eta_min = 0);

 protected:
  double rate(int64_t epoch, double base_lr, size_t group) const override;

 private:
  int64_t t_max_;
  double eta_min_;
};

// base * f(epoch); one function for all groups, or one for each.
class LambdaLR : public LRScheduler {
 public:
  using Lambda = std::function<double(int64_t epoch)>;
  LambdaLR(Optimizer& optimizer, Lambda f);
  LambdaLR(Optimizer& optimizer, std::vector<Lambda> f);

 protected:
  double rate(int64_t epoch, double base_lr, size_t group) const override;

 private:
  std::vector<Lambda> f_;
};

// The factor of a linear warm-up, (epoch + 1) / warmup, then half a cosine from 1 down to `floor` at `total`, then
// `floor`: LambdaLR schedule(opt, cosine_with_warmup(100, 2000, 0.1)).
LambdaLR::Lambda cosine_with_warmup(int64_t warmup, int64_t total, double floor = 0);

}  // namespace vesta::optim
