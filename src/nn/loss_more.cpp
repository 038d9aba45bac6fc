// nn::functional: losses of vesta/functional_loss.h.
#include <cmath>
#include <numbers>

#include "vesta/autograd.h"
#include "vesta/functional.h"
#include "vesta/ops.h"

namespace vesta::nn::functional {
namespace {

Tensor reduced(const char* function, const Tensor& loss, Reduction reduction) {
  switch (reduction) {
    case Reduction::None:
      return loss;
    case Reduction::Mean:
      return loss.mean();
    case Reduction::Sum:
      return loss.sum();
    case Reduction::BatchMean:
      break;
  }
  throw ValueError(vesta::detail::message(function, ": expected the reduction none, mean or sum"));
}

}  // namespace

Tensor kl_div(const Tensor& input, const Tensor& target, const KLDivFuncOptions& options) {
  if (options.reduction() != kBatchMean)
    return vesta::kl_div(input, target, int64_t(options.reduction()), options.log_target());
  VESTA_CHECK(input.dim() > 0, "kl_div: the reduction batchmean needs a batch dim");
  return vesta::kl_div(input, target, int64_t(kSum), options.log_target()) / double(input.size(0));
}
Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target,
                            const HingeEmbeddingLossFuncOptions& options) {
  return vesta::hinge_embedding_loss(input, target, options.margin(), int64_t(options.reduction()));
}
Tensor multi_margin_loss(const Tensor& input, const Tensor& target,
                         const MultiMarginLossFuncOptions& options) {
  return vesta::multi_margin_loss(input, target, options.p(), options.margin(), options.weight(),
                                  int64_t(options.reduction()));
}
Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                             const CosineEmbeddingLossFuncOptions& options) {
  return vesta::cosine_embedding_loss(input1, input2, target, options.margin(), int64_t(options.reduction()));
}
Tensor soft_margin_loss(const Tensor& input, const Tensor& target, const SoftMarginLossFuncOptions& options) {
  return vesta::soft_margin_loss(input, target, int64_t(options.reduction()));
}

Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target,
                                   const MultilabelSoftMarginLossFuncOptions& options) {
  VESTA_CHECK(input.dim() > 0 && input.sizes() == target.sizes(),
              "multilabel_soft_margin_loss: expected input and target of one shape [..., classes], got ",
              input.dim(), " and ", target.dim(), " dims or other sizes");
  Tensor loss = -(target * vesta::log_sigmoid(input) + (1 - target) * vesta::log_sigmoid(-input));
  if (options.weight().defined()) loss = loss * options.weight();
  return reduced("multilabel_soft_margin_loss", loss.mean({-1}), options.reduction());
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginLossFuncOptions& options) {
  return vesta::triplet_margin_loss(anchor, positive, negative, options.margin(), options.p(), options.eps(),
                                    options.swap(), int64_t(options.reduction()));
}

Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                         const TripletMarginWithDistanceLossFuncOptions& options) {
  const auto distance = [&](const Tensor& a, const Tensor& b) {
    return options.distance_function() ? (*options.distance_function())(a, b)
                                       : vesta::pairwise_distance(a, b);
  };
  const Tensor to_positive = distance(anchor, positive);
  Tensor to_negative = distance(anchor, negative);
  if (options.swap()) to_negative = vesta::minimum(to_negative, distance(positive, negative));
  return reduced("triplet_margin_with_distance_loss",
                 (to_positive - to_negative + options.margin()).clamp_min(0), options.reduction());
}

Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                           const MarginRankingLossFuncOptions& options) {
  return vesta::margin_ranking_loss(input1, input2, target, options.margin(), int64_t(options.reduction()));
}
Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, const PoissonNLLLossFuncOptions& options) {
  return vesta::poisson_nll_loss(input, target, options.log_input(), options.full(), options.eps(),
                                 int64_t(options.reduction()));
}

Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Tensor& var,
                         const GaussianNLLLossFuncOptions& options) {
  Tensor variance = var;
  if (!(var.sizes() == input.sizes())) {
    const IntArrayRef sizes = input.sizes();
    const bool last_missing =
        var.dim() + 1 == input.dim() && var.sizes() == IntArrayRef(sizes.data(), sizes.size() - 1);
    const bool last_is_one =
        var.dim() == input.dim() && input.dim() > 0 && var.size(-1) == 1 &&
        IntArrayRef(var.sizes().data(), sizes.size() - 1) == IntArrayRef(sizes.data(), sizes.size() - 1);
    VESTA_CHECK(last_missing || last_is_one, "gaussian_nll_loss: the shape of var does not fit the input's");
    if (last_missing) variance = var.unsqueeze(-1);
  }
  VESTA_CHECK(!var.lt(0).any().item<bool>(), "gaussian_nll_loss: var has negative elements");
  variance = variance.clone();
  {
    // PyTorch's: the gradient passes as if nothing had been clamped.
    const NoGradGuard no_grad;
    variance.clamp_min_(options.eps());
  }
  Tensor loss = 0.5 * (variance.log() + (input - target).square() / variance);
  if (options.full()) loss = loss + 0.5 * std::log(2 * std::numbers::pi);
  return reduced("gaussian_nll_loss", loss, options.reduction());
}

}  // namespace vesta::nn::functional
