#pragma once
// nn::functional: the losses that vesta/functional.h has not got, with their options; and Reduction.
#include <functional>
#include <optional>

#include "vesta/option_arg.h"
#include "vesta/tensor.h"

namespace vesta {

// How a loss joins its elements. BatchMean, of kl_div only: the sum over the batch size.
enum class Reduction : int8_t { None = 0, Mean = 1, Sum = 2, BatchMean = 3 };
inline constexpr Reduction kNone = Reduction::None, kMean = Reduction::Mean, kSum = Reduction::Sum,
                           kBatchMean = Reduction::BatchMean;

namespace nn {

class KLDivLossOptions {
 public:
  KLDivLossOptions(Reduction reduction = Reduction::Mean) : reduction_(reduction) {}  // NOLINT: implicit
  VESTA_ARG(Reduction, reduction);
  // The target holds log-probabilities.
  VESTA_ARG(bool, log_target) = false;
};
class HingeEmbeddingLossOptions {
  VESTA_ARG(double, margin) = 1.0;
  VESTA_ARG(Reduction, reduction) = kMean;
};
class MultiMarginLossOptions {
  VESTA_ARG(int64_t, p) = 1;  // or 2
  VESTA_ARG(double, margin) = 1.0;
  VESTA_ARG(Tensor, weight) = {};
  VESTA_ARG(Reduction, reduction) = kMean;
};
class CosineEmbeddingLossOptions {
  VESTA_ARG(double, margin) = 0.0;
  VESTA_ARG(Reduction, reduction) = kMean;
};
class SoftMarginLossOptions {
 public:
  SoftMarginLossOptions(Reduction reduction = Reduction::Mean) : reduction_(reduction) {}  // NOLINT
  VESTA_ARG(Reduction, reduction);
};
class MultiLabelSoftMarginLossOptions {
  VESTA_ARG(Tensor, weight) = {};
  VESTA_ARG(Reduction, reduction) = kMean;
};
class TripletMarginLossOptions {
  VESTA_ARG(double, margin) = 1.0;
  VESTA_ARG(double, p) = 2.0;
  VESTA_ARG(double, eps) = 1e-6;
  // Takes the smaller of the distances anchor-negative and positive-negative (Balntas et al. 2016).
  VESTA_ARG(bool, swap) = false;
  VESTA_ARG(Reduction, reduction) = kMean;
};
class TripletMarginWithDistanceLossOptions {
 public:
  using reduction_t = Reduction;
  using distance_function_t = std::function<Tensor(const Tensor&, const Tensor&)>;
  VESTA_ARG(std::optional<distance_function_t>,
            distance_function) = std::nullopt;  // absent: pairwise_distance
  VESTA_ARG(double, margin) = 1.0;
  VESTA_ARG(bool, swap) = false;
  VESTA_ARG(Reduction, reduction) = kMean;
};
class MarginRankingLossOptions {
  VESTA_ARG(double, margin) = 0.0;
  VESTA_ARG(Reduction, reduction) = kMean;
};
class PoissonNLLLossOptions {
  VESTA_ARG(bool, log_input) = true;
  // Adds the Stirling term of the target's logarithm of the factorial.
  VESTA_ARG(bool, full) = false;
  VESTA_ARG(double, eps) = 1e-8;
  VESTA_ARG(Reduction, reduction) = kMean;
};
class GaussianNLLLossOptions {
  // Adds the constant log(2 pi) / 2.
  VESTA_ARG(bool, full) = false;
  // The least variance.
  VESTA_ARG(double, eps) = 1e-6;
  VESTA_ARG(Reduction, reduction) = kMean;
};

namespace functional {

using KLDivFuncOptions = KLDivLossOptions;
using HingeEmbeddingLossFuncOptions = HingeEmbeddingLossOptions;
using MultiMarginLossFuncOptions = MultiMarginLossOptions;
using CosineEmbeddingLossFuncOptions = CosineEmbeddingLossOptions;
using SoftMarginLossFuncOptions = SoftMarginLossOptions;
using MultilabelSoftMarginLossFuncOptions = MultiLabelSoftMarginLossOptions;
using TripletMarginLossFuncOptions = TripletMarginLossOptions;
using TripletMarginWithDistanceLossFuncOptions = TripletMarginWithDistanceLossOptions;
using MarginRankingLossFuncOptions = MarginRankingLossOptions;
using PoissonNLLLossFuncOptions = PoissonNLLLossOptions;
using GaussianNLLLossFuncOptions = GaussianNLLLossOptions;

// target (log target - input): input holds log-probabilities.
Tensor kl_div(const Tensor& input, const Tensor& target, const KLDivFuncOptions& options = {});
// input where target is 1, max(0, margin - input) where it is -1.
Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target,
                            const HingeEmbeddingLossFuncOptions& options = {});
// Scores [N, C] or [C], classes [N] or [].
Tensor multi_margin_loss(const Tensor& input, const Tensor& target,
                         const MultiMarginLossFuncOptions& options = {});
// [N, D] or [D] twice; targets 1 or -1, [N] or [].
Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                             const CosineEmbeddingLossFuncOptions& options = {});
// log(1 + exp(-target input)).
Tensor soft_margin_loss(const Tensor& input, const Tensor& target,
                        const SoftMarginLossFuncOptions& options = {});
// Logits and targets in {0, 1}, [..., C]; the mean over the classes.
Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target,
                                   const MultilabelSoftMarginLossFuncOptions& options = {});
// max(0, d(anchor, positive) - d(anchor, negative) + margin), d over the last dim.
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginLossFuncOptions& options = {});
Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                         const TripletMarginWithDistanceLossFuncOptions& options = {});
// max(0, -target (input1 - input2) + margin).
Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                           const MarginRankingLossFuncOptions& options = {});
Tensor poisson_nll_loss(const Tensor& input, const Tensor& target,
                        const PoissonNLLLossFuncOptions& options = {});
// (log var + (input - target)^2 / var) / 2. var has the input's shape, or lacks its last dim, or has size 1 there.
// ValueError where a variance is negative.
Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var,
                         const GaussianNLLLossFuncOptions& options = {});

}  // namespace functional
}  // namespace nn
}  // namespace vesta
