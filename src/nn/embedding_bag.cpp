// EmbeddingBag, CTCLoss, MultiLabelMarginLoss and pdist.
#include "vesta/nn_embedding_bag.h"

#include <ostream>

#include "vesta/autograd.h"
#include "vesta/nn_init.h"
#include "vesta/ops.h"

namespace vesta::nn {

BagModeArg::BagModeArg(Reduction reduction) : mode_(reduction == kSum ? BagMode::Sum : BagMode::Mean) {
  VESTA_CHECK(reduction != kNone, "embedding_bag: expected a mode of kSum, kMean or kMax");
}

namespace functional {

Tensor embedding_bag(const Tensor& input, const Tensor& weight, const EmbeddingBagFuncOptions& options) {
  Tensor indices = input, offsets = options.offsets(), factors = options.per_sample_weights();
  VESTA_CHECK(!factors.defined() || factors.sizes() == input.sizes(),
              "embedding_bag: per_sample_weights must have the input's shape");
  VESTA_CHECK(!factors.defined() || BagMode(options.mode()) == BagMode::Sum,
              "embedding_bag: per_sample_weights need the mode kSum");
  if (input.dim() == 2) {
    VESTA_CHECK(!offsets.defined(),
                "embedding_bag: a 2-D input has bags of one length, and takes no offsets");
    VESTA_CHECK(!options.include_last_offset(), "embedding_bag: include_last_offset is for 1-D input");
    offsets = vesta::arange(Scalar(input.size(0)), TensorOptions(kLong)) * input.size(1);
    indices = input.reshape({-1});
    if (factors.defined()) factors = factors.reshape({-1});
  } else {
    VESTA_CHECK(input.dim() == 1, "embedding_bag: expected an input with 1 or 2 dims, got ", input.dim());
    VESTA_CHECK(offsets.defined(), "embedding_bag: a 1-D input needs offsets");
  }
  const BagMode mode = options.mode();
  VESTA_CHECK(mode != BagMode::Max || !options.scale_grad_by_freq(),
              "embedding_bag: scale_grad_by_freq does not go with the mode kMax");
  if (options.max_norm()) {
    const NoGradGuard no_grad;
    Tensor table = weight;
    vesta::embedding_renorm_(table, indices, *options.max_norm(), options.norm_type());
  }
  return std::get<0>(vesta::embedding_bag(weight, indices, offsets, options.scale_grad_by_freq(),
                                          int64_t(mode), options.sparse(), factors,
                                          options.include_last_offset(), options.padding_idx()));
}
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, const CTCLossFuncOptions& options) {
  return vesta::ctc_loss(log_probs, targets, input_lengths, target_lengths, options.blank(),
                         int64_t(options.reduction()), options.zero_infinity());
}
Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target,
                              const MultilabelMarginLossFuncOptions& options) {
  return vesta::multilabel_margin_loss(input, target, int64_t(options.reduction()));
}
Tensor pdist(const Tensor& input, double p) { return vesta::pdist(input, p); }

}  // namespace functional

EmbeddingBagImpl::EmbeddingBagImpl(EmbeddingBagOptions o) : options(std::move(o)) {
  const int64_t rows = options.num_embeddings(), width = options.embedding_dim();
  if (options.padding_idx()) {
    int64_t& padding = *options.padding_idx();
    VESTA_CHECK_AS(IndexError, padding >= -rows && padding < rows, "EmbeddingBag: padding_idx ", padding,
                   " is outside the table of ", rows, " rows");
    if (padding < 0) padding += rows;
  }
  if (options._weight().defined()) {
    VESTA_CHECK(options._weight().sizes() == (IntArrayRef{rows, width}),
                "EmbeddingBag: _weight must have sizes [", rows, ", ", width, "]");
    weight = register_parameter("weight", options._weight());
  } else {
    weight = register_parameter("weight", vesta::empty({rows, width}));
    reset_parameters();
  }
}
void EmbeddingBagImpl::reset_parameters() {
  init::normal_(weight);
  if (options.padding_idx()) {
    const NoGradGuard no_grad;
    weight.select(0, *options.padding_idx()).fill_(0);
  }
}
Tensor EmbeddingBagImpl::forward(const Tensor& input, const Tensor& offsets,
                                 const Tensor& per_sample_weights) {
  return functional::embedding_bag(input, weight,
                                   EmbeddingBagFuncOptions()
                                       .offsets(offsets)
                                       .max_norm(options.max_norm())
                                       .norm_type(options.norm_type())
                                       .scale_grad_by_freq(options.scale_grad_by_freq())
                                       .mode(options.mode())
                                       .sparse(options.sparse())
                                       .per_sample_weights(per_sample_weights)
                                       .include_last_offset(options.include_last_offset())
                                       .padding_idx(options.padding_idx()));
}
void EmbeddingBagImpl::describe(std::ostream& out) const {
  static constexpr const char* kNames[] = {"kSum", "kMean", "kMax"};
  out << "vesta::nn::EmbeddingBag(num_embeddings=" << options.num_embeddings()
      << ", embedding_dim=" << options.embedding_dim();
  if (options.max_norm()) out << ", max_norm=" << *options.max_norm();
  if (options.norm_type() != 2) out << ", norm_type=" << options.norm_type();
  if (options.scale_grad_by_freq()) out << ", scale_grad_by_freq=true";
  if (options.sparse()) out << ", sparse=true";
  const BagMode mode = options.mode();
  if (mode != BagMode::Mean) out << ", mode=" << kNames[size_t(mode)];
  if (options.include_last_offset()) out << ", include_last_offset=true";
  if (options.padding_idx()) out << ", padding_idx=" << *options.padding_idx();
  out << ")";
}
EmbeddingBag EmbeddingBag::from_pretrained(const Tensor& embeddings, bool freeze) {
  VESTA_CHECK(embeddings.dim() == 2, "EmbeddingBag::from_pretrained: expected a 2-D table, got ",
              embeddings.dim(), " dims");
  EmbeddingBag bag(EmbeddingBagOptions(embeddings.size(0), embeddings.size(1))._weight(embeddings));
  bag->weight.set_requires_grad(!freeze);
  return bag;
}

Tensor CTCLossImpl::forward(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                            const Tensor& target_lengths) {
  return functional::ctc_loss(log_probs, targets, input_lengths, target_lengths, options);
}
void CTCLossImpl::describe(std::ostream& out) const { out << "vesta::nn::CTCLoss()"; }
Tensor MultiLabelMarginLossImpl::forward(const Tensor& input, const Tensor& target) {
  return functional::multilabel_margin_loss(input, target, options);
}
void MultiLabelMarginLossImpl::describe(std::ostream& out) const {
  out << "vesta::nn::MultiLabelMarginLoss()";
}

}  // namespace vesta::nn
