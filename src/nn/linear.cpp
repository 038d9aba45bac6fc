// Linear, Identity, Flatten, Embedding.
#include <cmath>
#include <ostream>

#include "vesta/autograd.h"
#include "vesta/nn.h"
#include "vesta/ops.h"

namespace vesta::nn {

LinearImpl::LinearImpl(const LinearOptions& o) : options(o) {
  VESTA_CHECK(options.in_features() >= 0 && options.out_features() >= 0,
              "Linear: expected non-negative sizes, got in_features ", options.in_features(),
              " and out_features ", options.out_features());
  weight = register_parameter("weight", empty({options.out_features(), options.in_features()}));
  if (options.bias())
    bias = register_parameter("bias", empty({options.out_features()}));
  else
    register_parameter("bias", {}, false);
  reset_parameters();
}

void LinearImpl::reset_parameters() {
  // kaiming_uniform with a = sqrt(5): U(-1/sqrt(in), 1/sqrt(in)), PyTorch's default.
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  if (!bias.defined()) return;
  const double bound = options.in_features() > 0 ? 1 / std::sqrt(double(options.in_features())) : 0;
  init::uniform_(bias, -bound, bound);
}

Tensor LinearImpl::forward(const Tensor& input) { return functional::linear(input, weight, bias); }

void LinearImpl::describe(std::ostream& out) const {
  out << "vesta::nn::Linear(in_features=" << options.in_features()
      << ", out_features=" << options.out_features() << ", bias=" << (options.bias() ? "true" : "false")
      << ")";
}

void IdentityImpl::describe(std::ostream& out) const { out << "vesta::nn::Identity()"; }

Tensor FlattenImpl::forward(const Tensor& input) {
  return input.flatten(options.start_dim(), options.end_dim());
}
void FlattenImpl::describe(std::ostream& out) const {
  out << "vesta::nn::Flatten(start_dim=" << options.start_dim() << ", end_dim=" << options.end_dim() << ")";
}

EmbeddingImpl::EmbeddingImpl(EmbeddingOptions o) : options(std::move(o)) {
  const int64_t rows = options.num_embeddings();
  VESTA_CHECK(rows >= 0 && options.embedding_dim() >= 0,
              "Embedding: expected non-negative sizes, got num_embeddings ", rows, " and embedding_dim ",
              options.embedding_dim());
  if (auto& padding = options.padding_idx()) {
    VESTA_CHECK_AS(IndexError, *padding >= -rows && *padding < rows, "Embedding: padding_idx ", *padding,
                   " is outside the table of ", rows, " rows");
    if (*padding < 0) *padding += rows;
  }
  if (options._weight().defined()) {
    const Tensor given = options._weight();
    VESTA_CHECK(given.dim() == 2 && given.size(0) == rows && given.size(1) == options.embedding_dim(),
                "Embedding: _weight does not have the shape [num_embeddings, embedding_dim]");
    weight = register_parameter("weight", given);
    options._weight({});  // the module owns it now: a clone must not take it again
  } else {
    weight = register_parameter("weight", empty({rows, options.embedding_dim()}));
    reset_parameters();
  }
}

void EmbeddingImpl::reset_parameters() {
  init::normal_(weight);
  if (options.padding_idx()) {
    const NoGradGuard no_grad;
    weight.select(0, *options.padding_idx()).zero_();
  }
}

Tensor EmbeddingImpl::forward(const Tensor& indices) {
  return functional::embedding(indices, weight,
                               EmbeddingFuncOptions()
                                   .padding_idx(options.padding_idx())
                                   .max_norm(options.max_norm())
                                   .norm_type(options.norm_type())
                                   .scale_grad_by_freq(options.scale_grad_by_freq()));
}

void EmbeddingImpl::describe(std::ostream& out) const {
  out << "vesta::nn::Embedding(num_embeddings=" << options.num_embeddings()
      << ", embedding_dim=" << options.embedding_dim();
  if (options.padding_idx()) out << ", padding_idx=" << *options.padding_idx();
  out << ")";
}

Embedding Embedding::from_pretrained(const Tensor& embeddings, bool freeze) {
  return from_pretrained(embeddings, EmbeddingFromPretrainedOptions().freeze(freeze));
}
Embedding Embedding::from_pretrained(const Tensor& embeddings, const EmbeddingFromPretrainedOptions& o) {
  VESTA_CHECK(embeddings.dim() == 2, "Embedding::from_pretrained: expected a 2-D table, got ",
              embeddings.dim(), " dims");
  Embedding embedding(EmbeddingOptions(embeddings.size(0), embeddings.size(1))
                          ._weight(embeddings)
                          .padding_idx(o.padding_idx())
                          .max_norm(o.max_norm())
                          .norm_type(o.norm_type())
                          .scale_grad_by_freq(o.scale_grad_by_freq()));
  embedding->weight.requires_grad_(!o.freeze());
  return embedding;
}

}  // namespace vesta::nn
