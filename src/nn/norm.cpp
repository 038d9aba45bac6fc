// LayerNorm and RMSNorm.
#include <ostream>

#include "vesta/nn.h"
#include "vesta/ops.h"

namespace vesta::nn {
namespace {

void print_shape(std::ostream& out, const std::vector<int64_t>& shape) {
  out << "[";
  for (size_t i = 0; i < shape.size(); ++i) out << (i ? ", " : "") << shape[i];
  out << "]";
}
void check_shape(const char* layer, const std::vector<int64_t>& shape) {
  VESTA_CHECK(!shape.empty(), layer, ": normalized_shape must have at least one dim");
}

}  // namespace

LayerNormImpl::LayerNormImpl(LayerNormOptions o) : options(std::move(o)) {
  check_shape("LayerNorm", options.normalized_shape());
  const bool affine = options.elementwise_affine(), with_bias = affine && options.bias();
  weight = register_parameter("weight", affine ? vesta::empty(options.normalized_shape()) : Tensor(), affine);
  bias =
      register_parameter("bias", with_bias ? vesta::empty(options.normalized_shape()) : Tensor(), with_bias);
  reset_parameters();
}
void LayerNormImpl::reset_parameters() {
  if (weight.defined()) init::ones_(weight);
  if (bias.defined()) init::zeros_(bias);
}
// Straight to the operator: an options object would copy the shape on each call.
Tensor LayerNormImpl::forward(const Tensor& input) {
  return vesta::layer_norm(input, options.normalized_shape(), weight, bias, options.eps());
}
void LayerNormImpl::describe(std::ostream& out) const {
  out << "vesta::nn::LayerNorm(";
  print_shape(out, options.normalized_shape());
  out << ", eps=" << options.eps()
      << ", elementwise_affine=" << (options.elementwise_affine() ? "true" : "false") << ")";
}

RMSNormImpl::RMSNormImpl(RMSNormOptions o) : options(std::move(o)) {
  check_shape("RMSNorm", options.normalized_shape());
  const bool affine = options.elementwise_affine();
  weight = register_parameter("weight", affine ? vesta::empty(options.normalized_shape()) : Tensor(), affine);
  reset_parameters();
}
void RMSNormImpl::reset_parameters() {
  if (weight.defined()) init::ones_(weight);
}
Tensor RMSNormImpl::forward(const Tensor& input) {
  return vesta::rms_norm(input, options.normalized_shape(), weight, options.eps());
}
void RMSNormImpl::describe(std::ostream& out) const {
  out << "vesta::nn::RMSNorm(";
  print_shape(out, options.normalized_shape());
  if (options.eps()) out << ", eps=" << *options.eps();
  out << ", elementwise_affine=" << (options.elementwise_affine() ? "true" : "false") << ")";
}

}  // namespace vesta::nn
