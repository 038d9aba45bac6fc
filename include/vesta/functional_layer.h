#pragma once
// nn::functional: padding, dropout of whole channels, norms, distances and what else layers need, with their options.
#include <optional>
#include <vector>

#include "vesta/option_arg.h"
#include "vesta/tensor.h"

namespace vesta {

// What stands outside of a tensor that is padded.
enum class PadMode : uint8_t { Constant, Reflect, Replicate, Circular };
inline constexpr PadMode kConstant = PadMode::Constant, kZeros = PadMode::Constant,
                         kReflect = PadMode::Reflect, kReplicate = PadMode::Replicate,
                         kCircular = PadMode::Circular;

namespace nn {

class PadFuncOptions {
 public:
  PadFuncOptions(std::vector<int64_t> pad) : pad_(std::move(pad)) {}  // NOLINT: implicit
  // Before and after, the last dim first; negative cuts off.
  VESTA_ARG(std::vector<int64_t>, pad);
  VESTA_ARG(PadMode, mode) = kConstant;
  VESTA_ARG(double, value) = 0;
};
class AlphaDropoutFuncOptions {
  VESTA_ARG(double, p) = 0.5;
  VESTA_ARG(bool, training) = false;
  VESTA_ARG(bool, inplace) = false;
};
using FeatureAlphaDropoutFuncOptions = AlphaDropoutFuncOptions;
class GroupNormFuncOptions {
 public:
  GroupNormFuncOptions(int64_t num_groups) : num_groups_(num_groups) {}  // NOLINT
  VESTA_ARG(int64_t, num_groups);
  VESTA_ARG(Tensor, weight) = {};
  VESTA_ARG(Tensor, bias) = {};
  VESTA_ARG(double, eps) = 1e-5;
};
class LocalResponseNormOptions {
 public:
  LocalResponseNormOptions(int64_t size) : size_(size) {}  // NOLINT
  VESTA_ARG(int64_t, size);                                // neighbouring channels
  VESTA_ARG(double, alpha) = 1e-4;
  VESTA_ARG(double, beta) = 0.75;
  VESTA_ARG(double, k) = 1.0;
};
class NormalizeFuncOptions {
  VESTA_ARG(double, p) = 2.0;
  VESTA_ARG(int64_t, dim) = 1;
  VESTA_ARG(double, eps) = 1e-12;
  // Written to and returned, where defined.
  VESTA_ARG(std::optional<Tensor>, out) = std::nullopt;
};
class CosineSimilarityOptions {
  VESTA_ARG(int64_t, dim) = 1;
  VESTA_ARG(double, eps) = 1e-8;
};
class PairwiseDistanceOptions {
  VESTA_ARG(double, p) = 2.0;
  VESTA_ARG(double, eps) = 1e-6;
  VESTA_ARG(bool, keepdim) = false;
};

namespace functional {

using nn::AlphaDropoutFuncOptions;
using nn::FeatureAlphaDropoutFuncOptions;
using nn::GroupNormFuncOptions;
using nn::NormalizeFuncOptions;
using nn::PadFuncOptions;
using LocalResponseNormFuncOptions = LocalResponseNormOptions;
using CosineSimilarityFuncOptions = CosineSimilarityOptions;
using PairwiseDistanceFuncOptions = PairwiseDistanceOptions;
class DropoutNdFuncOptions {
  VESTA_ARG(double, p) = 0.5;
  VESTA_ARG(bool, training) = true;
  VESTA_ARG(bool, inplace) = false;
};
using Dropout1dFuncOptions = DropoutNdFuncOptions;
using Dropout2dFuncOptions = DropoutNdFuncOptions;
using Dropout3dFuncOptions = DropoutNdFuncOptions;

Tensor pad(const Tensor& input, const PadFuncOptions& options);
// Zeroes whole channels: [N, C, L] or [C, L]; [N, C, H, W] or [N, C, L]; [N, C, D, H, W] or [C, D, H, W].
Tensor dropout1d(Tensor input, const Dropout1dFuncOptions& options = {});
Tensor dropout2d(Tensor input, const Dropout2dFuncOptions& options = {});
Tensor dropout3d(Tensor input, const Dropout3dFuncOptions& options = {});
// Keeps mean and variance of standardised inputs (Klambauer et al. 2017); of single elements, of whole channels.
Tensor alpha_dropout(Tensor input, const AlphaDropoutFuncOptions& options = {});
Tensor feature_alpha_dropout(Tensor input, const FeatureAlphaDropoutFuncOptions& options = {});
// [N, C, ...], the C channels in num_groups groups.
Tensor group_norm(const Tensor& input, const GroupNormFuncOptions& options);
// x / (k + alpha mean(x^2 over `size` channels around))^beta, [N, C, ...] of at least 3 dims.
Tensor local_response_norm(const Tensor& input, const LocalResponseNormFuncOptions& options);
// x / max(norm, eps).
Tensor normalize(const Tensor& input, const NormalizeFuncOptions& options = {});
Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, const CosineSimilarityFuncOptions& options = {});
// The norm of x1 - x2 + eps over the last dim.
Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, const PairwiseDistanceFuncOptions& options = {});
// input1 [..., I], input2 [..., J], weight [out, I, J], bias [out] or undefined -> [..., out].
Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight, const Tensor& bias = {});
Tensor one_hot(const Tensor& tensor, int64_t num_classes = -1);

}  // namespace functional
}  // namespace nn
}  // namespace vesta
