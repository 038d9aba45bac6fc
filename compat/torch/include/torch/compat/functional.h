#pragma once
// Overloads of torch::nn::functional that Vesta spells otherwise.
#include "torch/compat/namespaces.h"

namespace vesta::nn::functional {
inline Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, SmoothL1LossFuncOptions options,
                             double beta) {
  return smooth_l1_loss(input, target, options.beta(beta));
}
}  // namespace vesta::nn::functional
