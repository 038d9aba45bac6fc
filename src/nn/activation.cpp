// nn::functional: activations. Softmax and its kin are in functional.cpp.
#include "vesta/functional.h"

#include "vesta/ops.h"

namespace vesta::nn::functional {

Tensor relu(Tensor input, const ReLUFuncOptions& options) {
  return options.inplace() ? input.relu_() : vesta::relu(input);
}
Tensor relu6(Tensor input, const ReLU6FuncOptions& options) {
  return options.inplace() ? vesta::hardtanh_(input, 0, 6) : vesta::hardtanh(input, 0, 6);
}
Tensor gelu(const Tensor& input, const GELUFuncOptions& options) {
  return vesta::gelu(input, options.approximate());
}
Tensor silu(const Tensor& input) { return vesta::silu(input); }
Tensor mish(const Tensor& input) { return vesta::mish(input); }
Tensor tanh(const Tensor& input) { return vesta::tanh(input); }
Tensor sigmoid(const Tensor& input) { return vesta::sigmoid(input); }
Tensor logsigmoid(const Tensor& input) { return vesta::log_sigmoid(input); }
Tensor hardswish(const Tensor& input) { return vesta::hardswish(input); }
Tensor hardsigmoid(const Tensor& input) { return vesta::hardsigmoid(input); }
Tensor hardtanh(Tensor input, const HardtanhFuncOptions& options) {
  if (options.inplace()) return vesta::hardtanh_(input, options.min_val(), options.max_val());
  return vesta::hardtanh(input, options.min_val(), options.max_val());
}
Tensor leaky_relu(Tensor input, const LeakyReLUFuncOptions& options) {
  if (options.inplace()) return vesta::leaky_relu_(input, options.negative_slope());
  return vesta::leaky_relu(input, options.negative_slope());
}
Tensor elu(Tensor input, const ELUFuncOptions& options) {
  return options.inplace() ? vesta::elu_(input, options.alpha()) : vesta::elu(input, options.alpha());
}
Tensor softplus(const Tensor& input, const SoftplusFuncOptions& options) {
  return vesta::softplus(input, options.beta(), options.threshold());
}
Tensor softsign(const Tensor& input) { return input / (input.abs() + 1); }
Tensor glu(const Tensor& input, const GLUFuncOptions& options) { return vesta::glu(input, options.dim()); }

}  // namespace vesta::nn::functional
