#pragma once
// Optimisers and learning-rate schedules, with libtorch's names.
//   optim::AdamW opt(model->parameters(), optim::AdamWOptions(1e-3).weight_decay(0.1));
//   opt.zero_grad(); loss.backward(); opt.step();
// All state that changes from step to step is kept in tensors (moments, step counts, the learning rate), none in C++
// numbers: a captured step replays correctly. Call init_state() before capturing one; otherwise the first step() makes
// the state. An optimiser is externally synchronised.
#include "vesta/grad_scaler.h"
#include "vesta/optim_base.h"
#include "vesta/optim_lbfgs.h"
#include "vesta/optim_moments.h"
#include "vesta/optim_schedulers.h"
#include "vesta/optim_steps.h"

namespace vesta::optim {

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

// w -= lr * v, with v = momentum * v + (1 - dampening) * (grad + weight_decay * w). State: momentum_buffer, where
// momentum != 0, and with dampening the step count, since the first step takes the gradient undamped.
class SGD : public OptimizerRule<SGD, SGDOptions> {
 public:
  SGD(std::vector<OptimizerParamGroup> groups, const SGDOptions& defaults)
      : OptimizerRule(std::move(groups), defaults) {}
  SGD(std::vector<Tensor> params, const SGDOptions& defaults) : SGD(one_group(std::move(params)), defaults) {}
  static std::vector<std::string> slot_names();

 protected:
  bool uses_slot(size_t slot, const OptimizerOptions& options) const override;
  Tensor make_slot(size_t slot, const Tensor& param, const OptimizerOptions& options) const override;
  void update(const OptimizerOptions& options, Update& u) override;
};

// Kingma & Ba 2015, with weight decay added to the gradient. State: step, exp_avg, exp_avg_sq, max_exp_avg_sq. The
// moments of 16-bit parameters are float32.
class Adam : public OptimizerRule<Adam, AdamOptions> {
  VESTA_OPTIM_RULE(Adam);
};

// Loshchilov & Hutter 2019: decay lr * weight_decay * w apart from the gradient. State as Adam's.
class AdamW : public OptimizerRule<AdamW, AdamWOptions> {
  VESTA_OPTIM_RULE(AdamW);
};

#undef VESTA_OPTIM_RULE

}  // namespace vesta::optim
