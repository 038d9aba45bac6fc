#pragma once
// Linear, Identity, Flatten, Embedding.
#include "vesta/functional.h"
#include "vesta/nn_cloneable.h"
#include "vesta/nn_init.h"

namespace vesta::nn {

// y = x W^T + b, W: [out_features, in_features], drawn from U(-k, k), k = 1/sqrt(in_features).
class LinearOptions {
 public:
  LinearOptions(int64_t in_features, int64_t out_features)
      : in_features_(in_features), out_features_(out_features) {}
  VESTA_ARG(int64_t, in_features);
  VESTA_ARG(int64_t, out_features);
  VESTA_ARG(bool, bias) = true;
};
class LinearImpl : public Cloneable<LinearImpl> {
 public:
  LinearImpl(int64_t in_features, int64_t out_features)
      : LinearImpl(LinearOptions(in_features, out_features)) {}
  explicit LinearImpl(const LinearOptions& options);
  void reset_parameters();
  void describe(std::ostream& out) const override;
  // [..., in_features] -> [..., out_features].
  Tensor forward(const Tensor& input);

  LinearOptions options;
  Tensor weight, bias;  // bias is undefined where the options say so
};
VESTA_LAYER(Linear);

class IdentityImpl : public Cloneable<IdentityImpl> {
 public:
  void describe(std::ostream& out) const override;
  Tensor forward(const Tensor& input) { return input; }
};
VESTA_LAYER(Identity);

class FlattenOptions {
  VESTA_ARG(int64_t, start_dim) = 1;
  VESTA_ARG(int64_t, end_dim) = -1;
};
class FlattenImpl : public Cloneable<FlattenImpl> {
 public:
  explicit FlattenImpl(const FlattenOptions& o = {}) : options(o) {}
  void describe(std::ostream& out) const override;
  Tensor forward(const Tensor& input);
  FlattenOptions options;
};
VESTA_LAYER(Flatten);

// A table of rows drawn from N(0, 1); row padding_idx starts at zero and gets no gradient.
class EmbeddingOptions {
 public:
  EmbeddingOptions(int64_t num_embeddings, int64_t embedding_dim)
      : num_embeddings_(num_embeddings), embedding_dim_(embedding_dim) {}
  VESTA_ARG(int64_t, num_embeddings);
  VESTA_ARG(int64_t, embedding_dim);
  VESTA_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;  // negative counts from the end
  // Rows with a greater norm (of order norm_type) are scaled down to it, in place, when they are looked up.
  VESTA_ARG(std::optional<double>, max_norm) = std::nullopt;
  VESTA_ARG(double, norm_type) = 2.0;
  VESTA_ARG(bool, scale_grad_by_freq) = false;
  VESTA_ARG(Tensor, _weight) = {};  // used instead of a new table
};
class EmbeddingFromPretrainedOptions {
  VESTA_ARG(bool, freeze) = true;  // the table gets no gradient
  VESTA_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
  VESTA_ARG(std::optional<double>, max_norm) = std::nullopt;
  VESTA_ARG(double, norm_type) = 2.0;
  VESTA_ARG(bool, scale_grad_by_freq) = false;
};
class EmbeddingImpl : public Cloneable<EmbeddingImpl> {
 public:
  EmbeddingImpl(int64_t num_embeddings, int64_t embedding_dim)
      : EmbeddingImpl(EmbeddingOptions(num_embeddings, embedding_dim)) {}
  explicit EmbeddingImpl(EmbeddingOptions options);
  void reset_parameters();
  void describe(std::ostream& out) const override;
  // Integers of any shape [...] -> [..., embedding_dim]. IndexError outside [0, num_embeddings).
  Tensor forward(const Tensor& indices);

  EmbeddingOptions options;
  Tensor weight;
};
VESTA_LAYER_CLONE(EmbeddingImpl);
class Embedding : public ModuleHolder<EmbeddingImpl> {
 public:
  using ModuleHolder<EmbeddingImpl>::ModuleHolder;
  Embedding(ModuleHolder<EmbeddingImpl> holder) : ModuleHolder<EmbeddingImpl>(std::move(holder)) {}  // NOLINT
  // A layer around an existing table [rows, width].
  static Embedding from_pretrained(const Tensor& embeddings, bool freeze = true);
  static Embedding from_pretrained(const Tensor& embeddings, const EmbeddingFromPretrainedOptions& options);
};

}  // namespace vesta::nn
