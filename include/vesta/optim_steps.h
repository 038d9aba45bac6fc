#pragma once
// Optimisers that choose the step otherwise than by moments: Rprop (signs), ASGD (averages), Muon (orthogonalised
// momentum). Options, defaults and values are PyTorch's.
#include "vesta/optim_moments.h"

namespace vesta::optim {

class RpropOptions : public OptimizerOptions {
 public:
  using Pair = std::tuple<double, double>;
  RpropOptions(double lr = 1e-2) : OptimizerOptions(lr) {}  // NOLINT: implicit, here and below
  VESTA_OPTIM_LR(RpropOptions);
  // Factors of a step where the gradient's sign changed, and where it stayed.
  VESTA_ARG(Pair, etas) = std::make_tuple(0.5, 1.2);
  // The smallest and the largest step.
  VESTA_ARG(Pair, step_sizes) = std::make_tuple(1e-6, 50.0);
  VESTA_ARG(bool, maximize) = false;
};
// Riedmiller & Braun 1993; lr is the first step. State: step, prev, step_size.
class Rprop : public OptimizerRule<Rprop, RpropOptions> {
  VESTA_OPTIM_RULE(Rprop);
};

class ASGDOptions : public OptimizerOptions {
 public:
  ASGDOptions(double lr = 1e-2) : OptimizerOptions(lr) {}  // NOLINT
  VESTA_OPTIM_LR(ASGDOptions);
  VESTA_ARG(double, lambd) = 1e-4;
  VESTA_ARG(double, alpha) = 0.75;
  VESTA_ARG(double, t0) = 1e6;  // averaging starts at this step
  VESTA_ARG(double, weight_decay) = 0;
  VESTA_ARG(bool, maximize) = false;
};
// Averaged SGD (Polyak & Juditsky 1992). State: step, eta, mu, and the average ax, which the program reads:
//   opt.param_groups()[0].state()[3][i].
class ASGD : public OptimizerRule<ASGD, ASGDOptions> {
  VESTA_OPTIM_RULE(ASGD);
  std::vector<int64_t> slot_sizes(size_t slot, const Tensor& param) const override;
};

class MuonOptions : public OptimizerOptions {
 public:
  using Coefficients = std::tuple<double, double, double>;
  MuonOptions(double lr = 1e-3) : OptimizerOptions(lr) {}  // NOLINT
  VESTA_OPTIM_LR(MuonOptions);
  VESTA_ARG(double, weight_decay) = 0.1;
  VESTA_ARG(double, momentum) = 0.95;
  VESTA_ARG(bool, nesterov) = true;
  VESTA_ARG(Coefficients, ns_coefficients) = std::make_tuple(3.4445, -4.7750, 2.0315);
  VESTA_ARG(double, eps) = 1e-7;
  VESTA_ARG(int64_t, ns_steps) = 5;
  // How the rate follows the shape [A, B]: "original", sqrt(max(1, A/B)); "match_rms_adamw", 0.2 sqrt(max(A, B));
  // "spectral_unclamped", sqrt(A/B).
  VESTA_ARG(std::string, adjust_lr_fn) = "original";
};
// Jordan et al. 2024: momentum, made nearly orthogonal by Newton-Schulz steps in bfloat16. Parameters must be matrices
// (ValueError). State: momentum_buffer.
class Muon : public OptimizerRule<Muon, MuonOptions> {
  VESTA_OPTIM_RULE(Muon);
};

}  // namespace vesta::optim
