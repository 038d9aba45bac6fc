#pragma once
// nn::functional: layers, activations and losses as functions, with libtorch's options classes, which the modules of
// vesta/nn.h share.
//   namespace F = vesta::nn::functional;
//   Tensor loss = F::cross_entropy(logits, targets, F::CrossEntropyFuncOptions().label_smoothing(0.1));
// Errors: ValueError, TypeError or IndexError from the operators, naming the operator.
#include <optional>
#include <string>
#include <vector>

#include "vesta/functional_activation.h"
#include "vesta/functional_conv.h"
#include "vesta/functional_layer.h"
#include "vesta/functional_loss.h"
#include "vesta/functional_pool.h"
#include "vesta/option_arg.h"
#include "vesta/tensor.h"

namespace vesta {

namespace nn {

class EmbeddingFuncOptions {
  // Rows of this index get no gradient.
  VESTA_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
  // Rows with a greater norm (of order norm_type) are scaled down to it, in place, when they are looked up.
  VESTA_ARG(std::optional<double>, max_norm) = std::nullopt;
  VESTA_ARG(double, norm_type) = 2.0;
  VESTA_ARG(bool, scale_grad_by_freq) = false;
};
class LayerNormFuncOptions {
 public:
  LayerNormFuncOptions(std::vector<int64_t> normalized_shape)
      : normalized_shape_(std::move(normalized_shape)) {}  // NOLINT
  VESTA_ARG(std::vector<int64_t>, normalized_shape);
  VESTA_ARG(Tensor, weight) = {};
  VESTA_ARG(Tensor, bias) = {};
  VESTA_ARG(double, eps) = 1e-5;
};
class RMSNormFuncOptions {
 public:
  RMSNormFuncOptions(std::vector<int64_t> normalized_shape)
      : normalized_shape_(std::move(normalized_shape)) {}  // NOLINT
  VESTA_ARG(std::vector<int64_t>, normalized_shape);
  VESTA_ARG(Tensor, weight) = {};
  // Absent: the machine epsilon of the computation's dtype.
  VESTA_ARG(std::optional<double>, eps) = std::nullopt;
};
class DropoutFuncOptions {
  VESTA_ARG(double, p) = 0.5;
  VESTA_ARG(bool, training) = true;
  VESTA_ARG(bool, inplace) = false;
};
class ScaledDotProductAttentionFuncOptions {
  // Boolean (true = take part) or added to the scores; broadcasts to [..., queries, keys].
  VESTA_ARG(Tensor, attn_mask) = {};
  VESTA_ARG(double, dropout_p) = 0;
  VESTA_ARG(bool, is_causal) = false;
  // Absent: 1 / sqrt(width).
  VESTA_ARG(std::optional<double>, scale) = std::nullopt;
};

class ReLUOptions {
 public:
  ReLUOptions(bool inplace = false) : inplace_(inplace) {}  // NOLINT
  VESTA_ARG(bool, inplace);
};
using ReLU6Options = ReLUOptions;
class GELUOptions {
  VESTA_ARG(std::string, approximate) = "none";  // or "tanh"
};
class LeakyReLUOptions {
  VESTA_ARG(double, negative_slope) = 1e-2;
  VESTA_ARG(bool, inplace) = false;
};
class ELUOptions {
  VESTA_ARG(double, alpha) = 1.0;
  VESTA_ARG(bool, inplace) = false;
};
class SoftplusOptions {
  VESTA_ARG(double, beta) = 1.0;
  VESTA_ARG(double, threshold) = 20.0;
};
class HardtanhOptions {
  VESTA_ARG(double, min_val) = -1.0;
  VESTA_ARG(double, max_val) = 1.0;
  VESTA_ARG(bool, inplace) = false;
};
class GLUOptions {
 public:
  GLUOptions(int64_t dim = -1) : dim_(dim) {}  // NOLINT
  VESTA_ARG(int64_t, dim);
};
class SoftmaxOptions {
 public:
  SoftmaxOptions(int64_t dim) : dim_(dim) {}  // NOLINT
  VESTA_ARG(int64_t, dim);
  // Converts the input first.
  VESTA_ARG(std::optional<DType>, dtype) = std::nullopt;
};
using LogSoftmaxOptions = SoftmaxOptions;
using SoftminOptions = SoftmaxOptions;

// Options of the losses that have only a reduction.
class ReductionOptions {
 public:
  ReductionOptions(Reduction reduction = kMean) : reduction_(reduction) {}  // NOLINT
  VESTA_ARG(Reduction, reduction);
};
using L1LossOptions = ReductionOptions;
using MSELossOptions = ReductionOptions;
class SmoothL1LossOptions {
 public:
  SmoothL1LossOptions(Reduction reduction = Reduction::Mean) : reduction_(reduction) {}  // NOLINT
  VESTA_ARG(Reduction, reduction);
  VESTA_ARG(double, beta) = 1.0;
};
class HuberLossOptions {
 public:
  HuberLossOptions(Reduction reduction = Reduction::Mean) : reduction_(reduction) {}  // NOLINT
  VESTA_ARG(Reduction, reduction);
  VESTA_ARG(double, delta) = 1.0;
};
class BCELossOptions {
  VESTA_ARG(Tensor, weight) = {};
  VESTA_ARG(Reduction, reduction) = kMean;
};
class BCEWithLogitsLossOptions {
  VESTA_ARG(Tensor, weight) = {};
  VESTA_ARG(Reduction, reduction) = kMean;
  // The weight of positive examples, one for each class.
  VESTA_ARG(Tensor, pos_weight) = {};
};
class NLLLossOptions {
  VESTA_ARG(Tensor, weight) = {};
  VESTA_ARG(int64_t, ignore_index) = -100;
  VESTA_ARG(Reduction, reduction) = kMean;
};
class CrossEntropyLossOptions {
  VESTA_ARG(Tensor, weight) = {};
  VESTA_ARG(int64_t, ignore_index) = -100;
  VESTA_ARG(Reduction, reduction) = kMean;
  VESTA_ARG(double, label_smoothing) = 0.0;
};

namespace functional {

using nn::DropoutFuncOptions;
using nn::EmbeddingFuncOptions;
using nn::LayerNormFuncOptions;
using nn::RMSNormFuncOptions;
using nn::ScaledDotProductAttentionFuncOptions;
using ReLUFuncOptions = ReLUOptions;
using ReLU6FuncOptions = ReLU6Options;
using GELUFuncOptions = GELUOptions;
using LeakyReLUFuncOptions = LeakyReLUOptions;
using ELUFuncOptions = ELUOptions;
using SoftplusFuncOptions = SoftplusOptions;
using HardtanhFuncOptions = HardtanhOptions;
using GLUFuncOptions = GLUOptions;
using SoftmaxFuncOptions = SoftmaxOptions;
using LogSoftmaxFuncOptions = LogSoftmaxOptions;
using SoftminFuncOptions = SoftminOptions;
using L1LossFuncOptions = L1LossOptions;
using MSELossFuncOptions = MSELossOptions;
using SmoothL1LossFuncOptions = SmoothL1LossOptions;
using HuberLossFuncOptions = HuberLossOptions;
using BinaryCrossEntropyFuncOptions = BCELossOptions;
using BinaryCrossEntropyWithLogitsFuncOptions = BCEWithLogitsLossOptions;
using NLLLossFuncOptions = NLLLossOptions;
using CrossEntropyFuncOptions = CrossEntropyLossOptions;

// input [..., in], weight [out, in], bias [out] or undefined -> [..., out].
Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias = {});
// Integer indices [...], weight [rows, width] -> [..., width].
Tensor embedding(const Tensor& input, const Tensor& weight, const EmbeddingFuncOptions& options = {});
Tensor layer_norm(const Tensor& input, const LayerNormFuncOptions& options);
Tensor rms_norm(const Tensor& input, const RMSNormFuncOptions& options);
// Zeroes elements with probability p and scales the rest by 1 / (1 - p); the input itself when not training.
Tensor dropout(Tensor input, const DropoutFuncOptions& options = {});
// query [..., L, E], key [..., S, E], value [..., S, V] -> [..., L, V].
Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const ScaledDotProductAttentionFuncOptions& options = {});

Tensor relu(Tensor input, const ReLUFuncOptions& options = {});
Tensor relu6(Tensor input, const ReLU6FuncOptions& options = {});
Tensor gelu(const Tensor& input, const GELUFuncOptions& options = {});
Tensor silu(const Tensor& input);
Tensor mish(const Tensor& input);
Tensor tanh(const Tensor& input);
Tensor sigmoid(const Tensor& input);
Tensor logsigmoid(const Tensor& input);
Tensor hardswish(const Tensor& input);
Tensor hardsigmoid(const Tensor& input);
Tensor hardtanh(Tensor input, const HardtanhFuncOptions& options = {});
Tensor leaky_relu(Tensor input, const LeakyReLUFuncOptions& options = {});
Tensor elu(Tensor input, const ELUFuncOptions& options = {});
Tensor softplus(const Tensor& input, const SoftplusFuncOptions& options = {});
Tensor softsign(const Tensor& input);
Tensor glu(const Tensor& input, const GLUFuncOptions& options = {});
Tensor softmax(const Tensor& input, const SoftmaxFuncOptions& options);
Tensor log_softmax(const Tensor& input, const LogSoftmaxFuncOptions& options);
Tensor softmin(const Tensor& input, const SoftminFuncOptions& options);

// Losses: a 0-dim tensor, or one element for each of the target's with kNone.
Tensor l1_loss(const Tensor& input, const Tensor& target, const L1LossFuncOptions& options = {});
Tensor mse_loss(const Tensor& input, const Tensor& target, const MSELossFuncOptions& options = {});
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, const SmoothL1LossFuncOptions& options = {});
Tensor huber_loss(const Tensor& input, const Tensor& target, const HuberLossFuncOptions& options = {});
// Probabilities in [0, 1].
Tensor binary_cross_entropy(const Tensor& input, const Tensor& target,
                            const BinaryCrossEntropyFuncOptions& options = {});
Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                        const BinaryCrossEntropyWithLogitsFuncOptions& options = {});
// Log-probabilities [N, C, ...] or [C], classes [N, ...] or [].
Tensor nll_loss(const Tensor& input, const Tensor& target, const NLLLossFuncOptions& options = {});
// Logits [N, C, ...] or [C]; targets are classes [N, ...] (int64) or probabilities of the input's shape.
Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyFuncOptions& options = {});

}  // namespace functional
}  // namespace nn
}  // namespace vesta
