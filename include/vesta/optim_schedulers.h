#pragma once
// Learning-rate schedules, with PyTorch's names and values.
//   optim::CosineAnnealingLR schedule(opt, 100);
//   for (...) { opt.step(); schedule.step(); }
// step() belongs outside of a captured function (ValueError inside); the captured step sees the new rate, because it is
// written into the optimiser's tensor. The optimiser must outlive its schedules.
#include "vesta/optim_base.h"

namespace vesta::optim {

// Sets each group's learning rate from the number of calls of step(), starting from the rate that the group had when its
// first scheduler was made (PyTorch's initial_lr); the rate of epoch 0 is set at once. As long as nobody else changes the
// rates they come from a closed form without accumulating errors; otherwise each step changes the rate it finds, so that
// several schedules of one optimiser work together as in PyTorch. Keeps its count in a tensor.
class LRScheduler {
 public:
  virtual ~LRScheduler() = default;
  LRScheduler(const LRScheduler&) = delete;
  LRScheduler& operator=(const LRScheduler&) = delete;
  // Call after the optimiser's step.
  virtual void step();
  // Goes to an epoch, whatever the rates are.
  virtual void restart(int64_t epoch);
  int64_t last_epoch() const;
  std::vector<double> get_last_lr() const;
  // last_epoch and base_lr.G.
  virtual StateDict state_dict() const;
  virtual void load_state_dict(const StateDict& dict);
  // Sets the rates and goes on from them.
  void keep_rates(const std::vector<double>& rates);

 protected:
  explicit LRScheduler(Optimizer& optimizer);
  // The rate of a group after `epoch` steps, from its first rate. A constructor of a derived class calls apply_first().
  virtual double rate(int64_t epoch, double base_lr, size_t group) const = 0;
  // The rate that follows `current`, where others changed it; the closed form unless overridden.
  virtual double next_rate(int64_t epoch, double current, double base_lr, size_t group) const;
  // Called after the rates are set.
  virtual void applied(int64_t) {}
  void apply_first();
  // ValueError while a function is captured.
  static void check_not_captured();

  Optimizer& optimizer_;
  Tensor epoch_;
  std::vector<HeldNumber> base_lrs_;

 private:
  void set_rates(bool closed_form);
  // What this scheduler set last, and whether somebody else changed it since.
  std::vector<double> last_;
  std::vector<char> shared_;
};

#define VESTA_SCHEDULE_RATE \
 protected:                 \
  double rate(int64_t epoch, double base_lr, size_t group) const override
#define VESTA_SCHEDULE_NEXT \
  VESTA_SCHEDULE_RATE;      \
  double next_rate(int64_t epoch, double current, double base_lr, size_t group) const override

// base * gamma^(epoch / step_size).
class StepLR : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, int64_t step_size, double gamma = 0.1);
  VESTA_SCHEDULE_NEXT;

 private:
  int64_t step_size_;
  double gamma_;
};

// base * gamma^(how many milestones are reached).
class MultiStepLR : public LRScheduler {
 public:
  MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma = 0.1);
  VESTA_SCHEDULE_NEXT;

 private:
  std::vector<int64_t> milestones_;
  double gamma_;
};

// base * gamma^epoch.
class ExponentialLR : public LRScheduler {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma);
  VESTA_SCHEDULE_NEXT;

 private:
  double gamma_;
};

// base * factor before total_iters, then base.
class ConstantLR : public LRScheduler {
 public:
  ConstantLR(Optimizer& optimizer, double factor = 1.0 / 3, int64_t total_iters = 5);
  VESTA_SCHEDULE_NEXT;

 private:
  double factor_;
  int64_t total_iters_;
};

// base times a factor that goes from start_factor to end_factor in total_iters steps.
class LinearLR : public LRScheduler {
 public:
  LinearLR(Optimizer& optimizer, double start_factor = 1.0 / 3, double end_factor = 1.0,
           int64_t total_iters = 5);
  VESTA_SCHEDULE_NEXT;

 private:
  double factor(int64_t epoch) const;
  double start_factor_, end_factor_;
  int64_t total_iters_;
};

// base * (1 - epoch / total_iters)^power, 0 from total_iters on.
class PolynomialLR : public LRScheduler {
 public:
  explicit PolynomialLR(Optimizer& optimizer, int64_t total_iters = 5, double power = 1.0);
  VESTA_SCHEDULE_NEXT;

 private:
  int64_t total_iters_;
  double power_;
};

// eta_min + (base - eta_min) (1 + cos(pi epoch / t_max)) / 2 (Loshchilov & Hutter 2017).
class CosineAnnealingLR : public LRScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, int64_t t_max, double eta_min = 0);
  VESTA_SCHEDULE_NEXT;

 private:
  int64_t t_max_;
  double eta_min_;
};

// Half a cosine from base to eta_min over t_0 steps, then anew over t_mult times as many, and so on.
class CosineAnnealingWarmRestarts : public LRScheduler {
 public:
  CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t t_0, int64_t t_mult = 1, double eta_min = 0);
  VESTA_SCHEDULE_RATE;

 private:
  int64_t t_0_, t_mult_;
  double eta_min_;
};

// base * f(epoch); one function for all groups, or one for each.
class LambdaLR : public LRScheduler {
 public:
  using Lambda = std::function<double(int64_t epoch)>;
  LambdaLR(Optimizer& optimizer, Lambda f);
  LambdaLR(Optimizer& optimizer, std::vector<Lambda> f);
  VESTA_SCHEDULE_RATE;

 private:
  std::vector<Lambda> f_;
};

// base * f(1) * ... * f(epoch).
class MultiplicativeLR : public LRScheduler {
 public:
  using Lambda = std::function<double(int64_t epoch)>;
  MultiplicativeLR(Optimizer& optimizer, Lambda f);
  VESTA_SCHEDULE_NEXT;

 private:
  Lambda f_;
};

class CyclicLROptions {
 public:
  CyclicLROptions(double base_lr, double max_lr) : base_lr_(base_lr), max_lr_(max_lr) {}
  VESTA_ARG(double, base_lr);
  VESTA_ARG(double, max_lr);
  VESTA_ARG(int64_t, step_size_up) = 2000;
  VESTA_ARG(std::optional<int64_t>, step_size_down) = std::nullopt;  // absent: step_size_up
  // "triangular"; "triangular2", each cycle half as high; "exp_range", the height times gamma^epoch.
  VESTA_ARG(std::string, mode) = "triangular";
  VESTA_ARG(double, gamma) = 1.0;
  // Moves the momentum (or the first beta) the other way. A captured step keeps the one it was captured with.
  VESTA_ARG(bool, cycle_momentum) = true;
  VESTA_ARG(double, base_momentum) = 0.8;
  VESTA_ARG(double, max_momentum) = 0.9;
};
// Up and down between two rates (Smith 2017).
class CyclicLR : public LRScheduler {
 public:
  CyclicLR(Optimizer& optimizer, const CyclicLROptions& options);
  VESTA_SCHEDULE_RATE;
  void applied(int64_t epoch) override;

 private:
  double height(int64_t epoch) const;
  CyclicLROptions options_;
};

class OneCycleLROptions {
 public:
  OneCycleLROptions(double max_lr, int64_t total_steps) : max_lr_(max_lr), total_steps_(total_steps) {}
  VESTA_ARG(double, max_lr);
  VESTA_ARG(int64_t, total_steps);
  VESTA_ARG(double, pct_start) = 0.3;               // the share of the steps in which the rate rises
  VESTA_ARG(std::string, anneal_strategy) = "cos";  // or "linear"
  VESTA_ARG(bool, cycle_momentum) = true;           // as in CyclicLR
  VESTA_ARG(double, base_momentum) = 0.85;
  VESTA_ARG(double, max_momentum) = 0.95;
  VESTA_ARG(double, div_factor) = 25;         // max_lr over the first rate
  VESTA_ARG(double, final_div_factor) = 1e4;  // the first rate over the last
  VESTA_ARG(bool, three_phase) = false;
};
// One rise and one fall (Smith & Topin 2019). ValueError after total_steps steps.
class OneCycleLR : public LRScheduler {
 public:
  OneCycleLR(Optimizer& optimizer, const OneCycleLROptions& options);
  VESTA_SCHEDULE_RATE;
  void applied(int64_t epoch) override;

 private:
  // Between the value at the start of the phase of `epoch` and the one at its end; the values are those of low, peak and
  // last.
  double between(int64_t epoch, double low, double peak, double last) const;
  OneCycleLROptions options_;
};

// One schedule after another: schedulers[i + 1] starts at milestones[i], from epoch 0. They must outlive this one.
class SequentialLR : public LRScheduler {
 public:
  SequentialLR(Optimizer& optimizer, std::vector<LRScheduler*> schedulers, std::vector<int64_t> milestones);
  void step() override;
  void restart(int64_t epoch) override;  // epoch 0 only: ValueError otherwise
  // Also "N.NAME" of each schedule.
  StateDict state_dict() const override;
  void load_state_dict(const StateDict& dict) override;

 protected:
  double rate(int64_t epoch, double base_lr, size_t group) const override;

 private:
  std::vector<LRScheduler*> schedulers_;
  std::vector<int64_t> milestones_;
};

// Several schedules in every step; their factors multiply. They must outlive this one and belong to one optimiser.
class ChainedScheduler {
 public:
  explicit ChainedScheduler(std::vector<LRScheduler*> schedulers);
  void step();
  std::vector<double> get_last_lr() const { return schedulers_.back()->get_last_lr(); }
  StateDict state_dict() const;
  void load_state_dict(const StateDict& dict);

 private:
  std::vector<LRScheduler*> schedulers_;
};

class ReduceLROnPlateauOptions {
 public:
  enum Mode { min, max };
  enum ThresholdMode { rel, abs };
  VESTA_ARG(Mode, mode) = min;  // what is better
  VESTA_ARG(double, factor) = 0.1;
  VESTA_ARG(int64_t, patience) = 10;
  VESTA_ARG(double, threshold) = 1e-4;
  VESTA_ARG(ThresholdMode, threshold_mode) = rel;
  VESTA_ARG(int64_t, cooldown) = 0;
  VESTA_ARG(std::vector<double>, min_lr) = {};  // none, one for all groups, or one for each
  VESTA_ARG(double, eps) = 1e-8;                // smaller changes are not made
};
// Multiplies the rates by `factor` when the metric has not become better in more than `patience` steps.
class ReduceLROnPlateau {
 public:
  explicit ReduceLROnPlateau(Optimizer& optimizer, const ReduceLROnPlateauOptions& options = {});
  void step(double metric);
  std::vector<double> get_last_lr() const;
  double best() const { return best_.get(); }
  int64_t num_bad_epochs() const { return int64_t(bad_epochs_.get()); }
  // best, num_bad_epochs, cooldown_counter, last_epoch.
  StateDict state_dict() const;
  void load_state_dict(const StateDict& dict);

 private:
  bool is_better(double metric) const;
  Optimizer& optimizer_;
  ReduceLROnPlateauOptions options_;
  HeldNumber best_, bad_epochs_ = 0.0, cooldown_ = 0.0, epoch_ = 0.0;
};
using ReduceLROnPlateauScheduler = ReduceLROnPlateau;

// The factor of a linear warm-up, (epoch + 1) / warmup, then half a cosine from 1 down to `floor` at `total`, then
// `floor`: LambdaLR schedule(opt, cosine_with_warmup(100, 2000, 0.1)).
LambdaLR::Lambda cosine_with_warmup(int64_t warmup, int64_t total, double floor = 0);

#undef VESTA_SCHEDULE_RATE
#undef VESTA_SCHEDULE_NEXT

}  // namespace vesta::optim
