#pragma once
// Embedding bags (sums, means or maxima of table rows), CTC and multilabel margin losses and pairwise distances, as
// functions and modules with libtorch's options and names.
#include "vesta/functional.h"
#include "vesta/nn_any.h"
#include "vesta/nn_cloneable.h"

namespace vesta {

// How the rows of a bag are joined: kSum, kMean (of Reduction) or kMax.
enum class BagMode : uint8_t { Sum = 0, Mean = 1, Max = 2 };
inline constexpr BagMode kMax = BagMode::Max;

namespace nn {

class BagModeArg {
 public:
  BagModeArg(BagMode mode) : mode_(mode) {}   // NOLINT: implicit
  BagModeArg(Reduction reduction);            // NOLINT; ValueError for kNone
  operator BagMode() const { return mode_; }  // NOLINT

 private:
  BagMode mode_;
};
class EmbeddingBagFuncOptions {
  // Where the bags start in a 1-D input.
  VESTA_ARG(Tensor, offsets) = {};
  // Rows that are used are first scaled down to this norm, in place.
  VESTA_ARG(std::optional<double>, max_norm) = std::nullopt;
  VESTA_ARG(double, norm_type) = 2.0;
  VESTA_ARG(bool, scale_grad_by_freq) = false;
  VESTA_ARG(BagModeArg, mode) = BagMode::Mean;
  VESTA_ARG(bool, sparse) = false;
  // One factor for each index; kSum only.
  VESTA_ARG(Tensor, per_sample_weights) = {};
  // The last offset is the end of the last bag.
  VESTA_ARG(bool, include_last_offset) = false;
  // This row takes no part (negative counts from the end).
  VESTA_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
};
class EmbeddingBagOptions {
 public:
  EmbeddingBagOptions(int64_t num_embeddings, int64_t embedding_dim)
      : num_embeddings_(num_embeddings), embedding_dim_(embedding_dim) {}
  VESTA_ARG(int64_t, num_embeddings);
  VESTA_ARG(int64_t, embedding_dim);
  VESTA_ARG(std::optional<double>, max_norm) = std::nullopt;
  VESTA_ARG(double, norm_type) = 2.0;
  VESTA_ARG(bool, scale_grad_by_freq) = false;
  VESTA_ARG(BagModeArg, mode) = BagMode::Mean;
  VESTA_ARG(bool, sparse) = false;
  VESTA_ARG(Tensor, _weight) = {};  // used instead of a new table
  VESTA_ARG(bool, include_last_offset) = false;
  VESTA_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
};
class CTCLossOptions {
  VESTA_ARG(int64_t, blank) = 0;
  VESTA_ARG(Reduction, reduction) = kMean;
  // Infinite losses (targets that do not fit) become 0, and so do their gradients.
  VESTA_ARG(bool, zero_infinity) = false;
};
using MultiLabelMarginLossOptions = ReductionOptions;

namespace functional {

using nn::EmbeddingBagFuncOptions;
using CTCLossFuncOptions = CTCLossOptions;
using MultilabelMarginLossFuncOptions = MultiLabelMarginLossOptions;

// input [bags, length], or all indices in 1 dim with offsets; weight [rows, width] -> [bags, width].
Tensor embedding_bag(const Tensor& input, const Tensor& weight, const EmbeddingBagFuncOptions& options = {});
// log_probs [time, batch, classes] (or without the batch), targets [batch, length] or concatenated, lengths [batch].
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, const CTCLossFuncOptions& options = {});
// input [N, C] or [C]; target of its size holds class indices, ended by -1.
Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target,
                              const MultilabelMarginLossFuncOptions& options = {});
// Distances of all pairs of the rows of input [N, M] -> [N (N - 1) / 2].
Tensor pdist(const Tensor& input, double p = 2.0);

}  // namespace functional

class EmbeddingBagImpl : public Cloneable<EmbeddingBagImpl> {
 public:
  EmbeddingBagImpl(int64_t num_embeddings, int64_t embedding_dim)
      : EmbeddingBagImpl(EmbeddingBagOptions(num_embeddings, embedding_dim)) {}
  explicit EmbeddingBagImpl(EmbeddingBagOptions options);
  void reset_parameters();
  void describe(std::ostream& out) const override;
  Tensor forward(const Tensor& input, const Tensor& offsets = {}, const Tensor& per_sample_weights = {});
  VESTA_FORWARD_DEFAULTS({1, AnyValue(Tensor())}, {2, AnyValue(Tensor())})

  EmbeddingBagOptions options;
  Tensor weight;
};
VESTA_LAYER_CLONE(EmbeddingBagImpl);
class EmbeddingBag : public ModuleHolder<EmbeddingBagImpl> {
 public:
  using ModuleHolder<EmbeddingBagImpl>::ModuleHolder;
  EmbeddingBag(ModuleHolder<EmbeddingBagImpl> holder)
      : ModuleHolder<EmbeddingBagImpl>(std::move(holder)) {}  // NOLINT
  // A layer around an existing table [rows, width].
  static EmbeddingBag from_pretrained(const Tensor& embeddings, bool freeze = true);
};

class CTCLossImpl : public Cloneable<CTCLossImpl> {
 public:
  explicit CTCLossImpl(const CTCLossOptions& o = {}) : options(o) {}
  void describe(std::ostream& out) const override;
  Tensor forward(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                 const Tensor& target_lengths);
  CTCLossOptions options;
};
VESTA_LAYER(CTCLoss);
class MultiLabelMarginLossImpl : public Cloneable<MultiLabelMarginLossImpl> {
 public:
  explicit MultiLabelMarginLossImpl(const MultiLabelMarginLossOptions& o = {}) : options(o) {}
  void describe(std::ostream& out) const override;
  Tensor forward(const Tensor& input, const Tensor& target);
  MultiLabelMarginLossOptions options;
};
VESTA_LAYER(MultiLabelMarginLoss);

}  // namespace nn
}  // namespace vesta
