#pragma once
// AdaptiveLogSoftmaxWithLoss: softmax over very many classes, the frequent ones in front (Grave et al. 2017).
#include "vesta/nn_containers.h"
#include "vesta/nn_linear.h"

namespace vesta::nn {

class AdaptiveLogSoftmaxWithLossOptions {
 public:
  AdaptiveLogSoftmaxWithLossOptions(int64_t in_features, int64_t n_classes, std::vector<int64_t> cutoffs)
      : in_features_(in_features), n_classes_(n_classes), cutoffs_(std::move(cutoffs)) {}
  VESTA_ARG(int64_t, in_features);
  VESTA_ARG(int64_t, n_classes);
  // Where clusters of classes begin: rising, each once, in [1, n_classes - 1].
  VESTA_ARG(std::vector<int64_t>, cutoffs);
  VESTA_ARG(double, div_value) = 4.0;  // each cluster's width is the one before over this
  VESTA_ARG(bool, head_bias) = false;
};

// Log-probability of each target [N], and the mean of their negatives.
struct ASMoutput {
  Tensor output, loss;
};

class AdaptiveLogSoftmaxWithLossImpl : public Cloneable<AdaptiveLogSoftmaxWithLossImpl> {
 public:
  AdaptiveLogSoftmaxWithLossImpl(int64_t in_features, int64_t n_classes, std::vector<int64_t> ends)
      : AdaptiveLogSoftmaxWithLossImpl(
            AdaptiveLogSoftmaxWithLossOptions(in_features, n_classes, std::move(ends))) {}
  explicit AdaptiveLogSoftmaxWithLossImpl(const AdaptiveLogSoftmaxWithLossOptions& options);
  void reset_parameters();
  void describe(std::ostream& out) const override;
  // input [N, in_features], target [N]; or [in_features] and []. IndexError where a target is outside the classes. Reads
  // the targets to choose clusters, so it cannot be captured.
  ASMoutput forward(const Tensor& input, const Tensor& target);
  // Log-probabilities of all classes, [N, n_classes].
  Tensor log_prob(const Tensor& input);
  // The most likely class of each row.
  Tensor predict(const Tensor& input);

  AdaptiveLogSoftmaxWithLossOptions options;
  std::vector<int64_t> cutoffs;  // with n_classes at the end
  int64_t shortlist_size = 0, n_clusters = 0, head_size = 0;
  Linear head{nullptr};
  ModuleList tail;
};
VESTA_LAYER(AdaptiveLogSoftmaxWithLoss);

}  // namespace vesta::nn
