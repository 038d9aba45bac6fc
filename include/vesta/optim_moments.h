#pragma once
// Optimisers that scale the gradient by moments of its past: RMSprop, Adagrad, Adadelta, Adamax, NAdam, RAdam,
// Adafactor. Options, defaults and values are PyTorch's. The state of 16-bit parameters is float32.
#include "vesta/optim_base.h"

namespace vesta::optim {

class RMSpropOptions : public OptimizerOptions {
 public:
  RMSpropOptions(double lr = 1e-2) : OptimizerOptions(lr) {}  // NOLINT: implicit, here and below
  VESTA_OPTIM_LR(RMSpropOptions);
  VESTA_ARG(double, alpha) = 0.99;
  VESTA_ARG(double, eps) = 1e-8;
  VESTA_ARG(double, weight_decay) = 0;
  VESTA_ARG(double, momentum) = 0;
  // Divides by the deviation from the mean gradient.
  VESTA_ARG(bool, centered) = false;
  VESTA_ARG(bool, maximize) = false;
};
// w -= lr g / (sqrt(v) + eps), v = alpha v + (1 - alpha) g^2 (Hinton 2012; centred: Graves 2013). State: step,
// square_avg, momentum_buffer, grad_avg.
class RMSprop : public OptimizerRule<RMSprop, RMSpropOptions> {
  VESTA_OPTIM_RULE(RMSprop);
};

class AdagradOptions : public OptimizerOptions {
 public:
  AdagradOptions(double lr = 1e-2) : OptimizerOptions(lr) {}  // NOLINT
  VESTA_OPTIM_LR(AdagradOptions);
  VESTA_ARG(double, lr_decay) = 0;
  VESTA_ARG(double, weight_decay) = 0;
  VESTA_ARG(double, initial_accumulator_value) = 0;
  VESTA_ARG(double, eps) = 1e-10;
  VESTA_ARG(bool, maximize) = false;
};
// w -= lr / (1 + (step - 1) lr_decay) g / (sqrt(sum of g^2) + eps) (Duchi et al. 2011). State: step, sum.
class Adagrad : public OptimizerRule<Adagrad, AdagradOptions> {
  VESTA_OPTIM_RULE(Adagrad);
};

class AdadeltaOptions : public OptimizerOptions {
 public:
  AdadeltaOptions(double lr = 1.0) : OptimizerOptions(lr) {}  // NOLINT
  VESTA_OPTIM_LR(AdadeltaOptions);
  VESTA_ARG(double, rho) = 0.9;
  VESTA_ARG(double, eps) = 1e-6;
  VESTA_ARG(double, weight_decay) = 0;
  VESTA_ARG(bool, maximize) = false;
};
// Zeiler 2012. State: step, square_avg, acc_delta.
class Adadelta : public OptimizerRule<Adadelta, AdadeltaOptions> {
  VESTA_OPTIM_RULE(Adadelta);
};

class AdamaxOptions : public OptimizerOptions {
 public:
  using Betas = std::tuple<double, double>;
  AdamaxOptions(double lr = 2e-3) : OptimizerOptions(lr) {}  // NOLINT
  VESTA_OPTIM_LR(AdamaxOptions);
  VESTA_ARG(Betas, betas) = std::make_tuple(0.9, 0.999);
  VESTA_ARG(double, eps) = 1e-8;
  VESTA_ARG(double, weight_decay) = 0;
  VESTA_ARG(bool, maximize) = false;
};
// Adam with the infinity norm (Kingma & Ba 2015, section 7). State: step, exp_avg, exp_inf.
class Adamax : public OptimizerRule<Adamax, AdamaxOptions> {
  VESTA_OPTIM_RULE(Adamax);
};

class NAdamOptions : public OptimizerOptions {
 public:
  using Betas = std::tuple<double, double>;
  NAdamOptions(double lr = 2e-3) : OptimizerOptions(lr) {}  // NOLINT
  VESTA_OPTIM_LR(NAdamOptions);
  VESTA_ARG(Betas, betas) = std::make_tuple(0.9, 0.999);
  VESTA_ARG(double, eps) = 1e-8;
  VESTA_ARG(double, weight_decay) = 0;
  VESTA_ARG(double, momentum_decay) = 4e-3;
  // Weight decay apart from the gradient, as AdamW's.
  VESTA_ARG(bool, decoupled_weight_decay) = false;
  VESTA_ARG(bool, maximize) = false;
};
// Adam with Nesterov's momentum (Dozat 2016). State: step, exp_avg, exp_avg_sq, mu_product.
class NAdam : public OptimizerRule<NAdam, NAdamOptions> {
  VESTA_OPTIM_RULE(NAdam);
  std::vector<int64_t> slot_sizes(size_t slot, const Tensor& param) const override;
};

class RAdamOptions : public OptimizerOptions {
 public:
  using Betas = std::tuple<double, double>;
  RAdamOptions(double lr = 1e-3) : OptimizerOptions(lr) {}  // NOLINT
  VESTA_OPTIM_LR(RAdamOptions);
  VESTA_ARG(Betas, betas) = std::make_tuple(0.9, 0.999);
  VESTA_ARG(double, eps) = 1e-8;
  VESTA_ARG(double, weight_decay) = 0;
  VESTA_ARG(bool, decoupled_weight_decay) = false;
  VESTA_ARG(bool, maximize) = false;
};
// Adam with rectified variance (Liu et al. 2020). State: step, exp_avg, exp_avg_sq.
class RAdam : public OptimizerRule<RAdam, RAdamOptions> {
  VESTA_OPTIM_RULE(RAdam);
};

class AdafactorOptions : public OptimizerOptions {
 public:
  // The least second moment (absent: the machine epsilon of the parameter's dtype), and the least scale of a parameter.
  using Eps = std::tuple<std::optional<double>, double>;
  AdafactorOptions(double lr = 1e-2) : OptimizerOptions(lr) {}  // NOLINT
  VESTA_OPTIM_LR(AdafactorOptions);
  VESTA_ARG(double, beta2_decay) = -0.8;
  VESTA_ARG(Eps, eps) = Eps(std::nullopt, 1e-3);
  VESTA_ARG(double, d) = 1.0;  // the greatest root mean square of an update
  VESTA_ARG(double, weight_decay) = 0;
  VESTA_ARG(bool, maximize) = false;
};
// Shazeer & Stern 2018: second moments of matrices are kept as a row and a column. State: step; row_var and col_var where
// the parameter has 2 dims or more, variance elsewhere (what is not used has no elements).
class Adafactor : public OptimizerRule<Adafactor, AdafactorOptions> {
  VESTA_OPTIM_RULE(Adafactor);
  std::vector<int64_t> slot_sizes(size_t slot, const Tensor& param) const override;
};

}  // namespace vesta::optim
