// nn::functional: element-wise losses. Those over classes are in functional.cpp.
#include "vesta/functional.h"

#include "vesta/ops.h"

namespace vesta::nn::functional {

Tensor l1_loss(const Tensor& input, const Tensor& target, const L1LossFuncOptions& options) {
  return vesta::l1_loss(input, target, int64_t(options.reduction()));
}
Tensor mse_loss(const Tensor& input, const Tensor& target, const MSELossFuncOptions& options) {
  return vesta::mse_loss(input, target, int64_t(options.reduction()));
}
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, const SmoothL1LossFuncOptions& options) {
  return vesta::smooth_l1_loss(input, target, int64_t(options.reduction()), options.beta());
}
Tensor huber_loss(const Tensor& input, const Tensor& target, const HuberLossFuncOptions& options) {
  return vesta::huber_loss(input, target, int64_t(options.reduction()), options.delta());
}
Tensor binary_cross_entropy(const Tensor& input, const Tensor& target,
                            const BinaryCrossEntropyFuncOptions& options) {
  return vesta::binary_cross_entropy(input, target, options.weight(), int64_t(options.reduction()));
}
Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                        const BinaryCrossEntropyWithLogitsFuncOptions& options) {
  return vesta::binary_cross_entropy_with_logits(input, target, options.weight(), options.pos_weight(),
                                                 int64_t(options.reduction()));
}

}  // namespace vesta::nn::functional
