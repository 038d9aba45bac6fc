#pragma once
// Losses as modules: options, and a call of the function of the same name in vesta/functional.h.
#include "vesta/functional.h"
#include "vesta/nn_cloneable.h"

namespace vesta::nn {

#define VESTA_NN_LOSS(Name, function)                                \
  class Name##Impl : public Cloneable<Name##Impl> {                  \
   public:                                                           \
    explicit Name##Impl(const Name##Options& o = {}) : options(o) {} \
    void describe(std::ostream& out) const override;                 \
    Tensor forward(const Tensor& input, const Tensor& target) {      \
      return functional::function(input, target, options);           \
    }                                                                \
    Name##Options options;                                           \
  };                                                                 \
  VESTA_LAYER(Name)
#define VESTA_NN_LOSS3(Name, function, first, second, third)                         \
  class Name##Impl : public Cloneable<Name##Impl> {                                  \
   public:                                                                           \
    explicit Name##Impl(const Name##Options& o = {}) : options(o) {}                 \
    void describe(std::ostream& out) const override;                                 \
    Tensor forward(const Tensor& first, const Tensor& second, const Tensor& third) { \
      return functional::function(first, second, third, options);                    \
    }                                                                                \
    Name##Options options;                                                           \
  };                                                                                 \
  VESTA_LAYER(Name)

VESTA_NN_LOSS(L1Loss, l1_loss);
VESTA_NN_LOSS(MSELoss, mse_loss);
VESTA_NN_LOSS(SmoothL1Loss, smooth_l1_loss);
VESTA_NN_LOSS(HuberLoss, huber_loss);
VESTA_NN_LOSS(BCELoss, binary_cross_entropy);
VESTA_NN_LOSS(BCEWithLogitsLoss, binary_cross_entropy_with_logits);
VESTA_NN_LOSS(NLLLoss, nll_loss);
VESTA_NN_LOSS(CrossEntropyLoss, cross_entropy);
VESTA_NN_LOSS(KLDivLoss, kl_div);
VESTA_NN_LOSS(HingeEmbeddingLoss, hinge_embedding_loss);
VESTA_NN_LOSS(MultiMarginLoss, multi_margin_loss);
VESTA_NN_LOSS(SoftMarginLoss, soft_margin_loss);
VESTA_NN_LOSS(MultiLabelSoftMarginLoss, multilabel_soft_margin_loss);
VESTA_NN_LOSS(PoissonNLLLoss, poisson_nll_loss);
VESTA_NN_LOSS3(CosineEmbeddingLoss, cosine_embedding_loss, input1, input2, target);
VESTA_NN_LOSS3(MarginRankingLoss, margin_ranking_loss, input1, input2, target);
VESTA_NN_LOSS3(TripletMarginLoss, triplet_margin_loss, anchor, positive, negative);
VESTA_NN_LOSS3(TripletMarginWithDistanceLoss, triplet_margin_with_distance_loss, anchor, positive, negative);
VESTA_NN_LOSS3(GaussianNLLLoss, gaussian_nll_loss, input, target, var);
#undef VESTA_NN_LOSS
#undef VESTA_NN_LOSS3

}  // namespace vesta::nn
