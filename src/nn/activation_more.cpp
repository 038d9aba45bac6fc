// nn::functional: activations of vesta/functional_activation.h.
#include "vesta/functional_activation.h"

#include "vesta/ops.h"

namespace vesta::nn::functional {

Tensor selu(Tensor input, const SELUFuncOptions& options) {
  return options.inplace() ? vesta::selu_(input) : vesta::selu(input);
}
Tensor celu(Tensor input, const CELUFuncOptions& options) {
  return options.inplace() ? vesta::celu_(input, options.alpha()) : vesta::celu(input, options.alpha());
}
Tensor hardshrink(const Tensor& input, const HardshrinkFuncOptions& options) {
  return vesta::hardshrink(input, options.lambda());
}
Tensor softshrink(const Tensor& input, const SoftshrinkFuncOptions& options) {
  return vesta::softshrink(input, options.lambda());
}
Tensor tanhshrink(const Tensor& input) { return input - input.tanh(); }
Tensor threshold(Tensor input, const ThresholdFuncOptions& options) {
  if (options.inplace()) return vesta::threshold_(input, options.threshold(), options.value());
  return vesta::threshold(input, options.threshold(), options.value());
}
Tensor rrelu(Tensor input, const RReLUFuncOptions& options) {
  if (options.inplace()) return vesta::rrelu_(input, options.lower(), options.upper(), options.training());
  return vesta::rrelu(input, options.lower(), options.upper(), options.training());
}
Tensor prelu(const Tensor& input, const Tensor& weight) { return vesta::prelu(input, weight); }

Tensor gumbel_softmax(const Tensor& logits, const GumbelSoftmaxFuncOptions& options) {
  VESTA_CHECK(options.tau() > 0, "gumbel_softmax: expected tau > 0, got ", options.tau());
  Tensor noise = empty_like(logits);
  noise.exponential_();
  const Tensor soft = vesta::softmax((logits - noise.log()) / options.tau(), options.dim());
  if (!options.hard()) return soft;
  // The forward value is the one-hot vector; the gradient takes the way of `soft`.
  const Tensor index = soft.argmax(options.dim(), /*keepdim=*/true);
  const Tensor hard = vesta::scatter(zeros_like(logits), options.dim(), index, 1.0);
  return hard - soft.detach() + soft;
}

}  // namespace vesta::nn::functional
