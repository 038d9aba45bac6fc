// nn::functional: layers, softmax and losses over classes. Each unpacks options and calls the operator.
#include "vesta/functional.h"

#include "vesta/autograd.h"
#include "vesta/ops.h"

namespace vesta::nn::functional {
namespace {

// Outside of autograd, as PyTorch: the weight is changed like by a step of an optimiser.
void limit_rows(Tensor weight, const Tensor& indices, double max_norm, double norm_type) {
  VESTA_CHECK(weight.dim() == 2, "embedding: expected a 2-D weight, got ", weight.dim(), " dims");
  const NoGradGuard no_grad;
  // Each row once: equal indices would write the same row twice.
  const Tensor used = std::get<0>(_unique2(indices.reshape({-1}).to(kInt64)));
  const Tensor rows = weight.index_select(0, used);
  const Tensor norm = linalg_vector_norm(rows, norm_type, {1}, true);
  weight.index_copy_(0, used, rows * where(norm > max_norm, max_norm / (norm + 1e-7), ones_like(norm)));
}

}  // namespace

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  return vesta::linear(input, weight, bias);
}
Tensor embedding(const Tensor& input, const Tensor& weight, const EmbeddingFuncOptions& options) {
  int64_t padding = -1;  // the operator's "none"
  if (options.padding_idx()) {
    VESTA_CHECK(weight.dim() == 2, "embedding: expected a 2-D weight, got ", weight.dim(), " dims");
    const int64_t rows = weight.size(0);
    padding = *options.padding_idx();
    VESTA_CHECK_AS(IndexError, padding >= -rows && padding < rows, "embedding: padding_idx ", padding,
                   " is outside the table of ", rows, " rows");
    if (padding < 0) padding += rows;
  }
  if (options.max_norm()) limit_rows(weight, input, *options.max_norm(), options.norm_type());
  return vesta::embedding(weight, input, padding, options.scale_grad_by_freq());
}
Tensor layer_norm(const Tensor& input, const LayerNormFuncOptions& options) {
  return vesta::layer_norm(input, options.normalized_shape(), options.weight(), options.bias(),
                           options.eps());
}
Tensor rms_norm(const Tensor& input, const RMSNormFuncOptions& options) {
  return vesta::rms_norm(input, options.normalized_shape(), options.weight(), options.eps());
}
Tensor dropout(Tensor input, const DropoutFuncOptions& options) {
  VESTA_CHECK(options.p() >= 0 && options.p() <= 1, "dropout: expected a probability between 0 and 1, got ",
              options.p());
  if (!options.training() || options.p() == 0) return input;
  if (options.inplace()) return input.copy_(vesta::dropout(input, options.p(), true));
  return vesta::dropout(input, options.p(), true);
}
Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const ScaledDotProductAttentionFuncOptions& options) {
  return vesta::scaled_dot_product_attention(query, key, value, options.attn_mask(), options.dropout_p(),
                                             options.is_causal(), options.scale());
}

Tensor softmax(const Tensor& input, const SoftmaxFuncOptions& options) {
  return vesta::softmax(input, options.dim(), options.dtype());
}
Tensor log_softmax(const Tensor& input, const LogSoftmaxFuncOptions& options) {
  return vesta::log_softmax(input, options.dim(), options.dtype());
}
Tensor softmin(const Tensor& input, const SoftminFuncOptions& options) {
  return vesta::softmax(-input, options.dim(), options.dtype());
}
Tensor nll_loss(const Tensor& input, const Tensor& target, const NLLLossFuncOptions& options) {
  return vesta::nll_loss_nd(input, target, options.weight(), int64_t(options.reduction()),
                            options.ignore_index());
}
Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyFuncOptions& options) {
  return vesta::cross_entropy_loss(input, target, options.weight(), int64_t(options.reduction()),
                                   options.ignore_index(), options.label_smoothing());
}

}  // namespace vesta::nn::functional
