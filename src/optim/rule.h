#pragma once
// What update rules share. Rules compute in the dtype of their state: that of the parameter, or float32 for 16-bit
// parameters, whose resolution loses small changes. Numbers that change from step to step are 0-dim float64 tensors.
#include "vesta/ops.h"
#include "vesta/optim_base.h"

namespace vesta::optim {

inline DType state_dtype(const Tensor& param) {
  return param.dtype() == kFloat16 || param.dtype() == kBFloat16 ? kFloat32 : param.dtype();
}
inline Tensor state_like(const Tensor& param, double value = 0) {
  return full_like(param, value, TensorOptions(state_dtype(param)));
}
inline Tensor new_step() { return zeros({}, TensorOptions(kFloat32)); }

// Counts a step; the count in float64.
inline Tensor next_step(Tensor& step) {
  step.add_(1);
  return step.to(kFloat64);
}

// The gradient as a rule wants it: in the state's dtype, negated for maximising, with weight decay added.
inline Tensor rule_gradient(const Tensor& param, const Tensor& grad, bool maximize, double weight_decay) {
  Tensor g = grad.to(state_dtype(param));
  if (maximize) g = -g;
  if (weight_decay != 0) g = g.add(param.to(state_dtype(param)), weight_decay);
  return g;
}

}  // namespace vesta::optim
