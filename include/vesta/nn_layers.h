#pragma once
// Layers of libtorch beside those in vesta/nn.h: Bilinear, Unflatten, dropout of channels, GroupNorm,
// LocalResponseNorm, CrossMapLRN2d, distances.
#include "vesta/functional.h"
#include "vesta/nn_cloneable.h"

namespace vesta::nn {

// y_k = x1^T W_k x2 + b_k, W: [out, in1, in2], drawn from U(-1/sqrt(in1), 1/sqrt(in1)).
class BilinearOptions {
 public:
  BilinearOptions(int64_t in1_features, int64_t in2_features, int64_t out_features)
      : in1_features_(in1_features), in2_features_(in2_features), out_features_(out_features) {}
  VESTA_ARG(int64_t, in1_features);
  VESTA_ARG(int64_t, in2_features);
  VESTA_ARG(int64_t, out_features);
  VESTA_ARG(bool, bias) = true;
};
class BilinearImpl : public Cloneable<BilinearImpl> {
 public:
  BilinearImpl(int64_t in1_features, int64_t in2_features, int64_t out_features)
      : BilinearImpl(BilinearOptions(in1_features, in2_features, out_features)) {}
  explicit BilinearImpl(const BilinearOptions& options);
  void reset_parameters();
  void describe(std::ostream& out) const override;
  // [..., in1], [..., in2] -> [..., out].
  Tensor forward(const Tensor& input1, const Tensor& input2);
  BilinearOptions options;
  Tensor weight, bias;
};
VESTA_LAYER(Bilinear);

// One dim becomes several; one of the sizes may be -1.
class UnflattenOptions {
 public:
  UnflattenOptions(int64_t dim, std::vector<int64_t> sizes) : dim_(dim), sizes_(std::move(sizes)) {}
  VESTA_ARG(int64_t, dim);
  VESTA_ARG(std::vector<int64_t>, sizes);
};
class UnflattenImpl : public Cloneable<UnflattenImpl> {
 public:
  UnflattenImpl(int64_t dim, std::vector<int64_t> sizes) : options(dim, std::move(sizes)) {}
  explicit UnflattenImpl(UnflattenOptions o) : options(std::move(o)) {}
  void describe(std::ostream& out) const override;
  Tensor forward(const Tensor& input);
  UnflattenOptions options;
};
VESTA_LAYER(Unflatten);

class DropoutOptions {
 public:
  DropoutOptions(double p = 0.5) : p_(p) {}  // NOLINT: implicit
  VESTA_ARG(double, p);
  VESTA_ARG(bool, inplace) = false;
};
using Dropout1dOptions = DropoutOptions;
using Dropout2dOptions = DropoutOptions;
using Dropout3dOptions = DropoutOptions;
using AlphaDropoutOptions = DropoutOptions;
using FeatureAlphaDropoutOptions = DropoutOptions;

// All act in training mode only. ValueError unless 0 <= p <= 1.
#define VESTA_NN_DROPOUT(Name)                                       \
  class Name##Impl : public Cloneable<Name##Impl> {                  \
   public:                                                           \
    explicit Name##Impl(const DropoutOptions& o = {});               \
    explicit Name##Impl(double p) : Name##Impl(DropoutOptions(p)) {} \
    void describe(std::ostream& out) const override;                 \
    Tensor forward(const Tensor& input);                             \
    DropoutOptions options;                                          \
  };                                                                 \
  VESTA_LAYER(Name)
VESTA_NN_DROPOUT(Dropout);
VESTA_NN_DROPOUT(Dropout1d);
VESTA_NN_DROPOUT(Dropout2d);
VESTA_NN_DROPOUT(Dropout3d);
VESTA_NN_DROPOUT(AlphaDropout);
VESTA_NN_DROPOUT(FeatureAlphaDropout);
#undef VESTA_NN_DROPOUT

class GroupNormOptions {
 public:
  GroupNormOptions(int64_t num_groups, int64_t num_channels)
      : num_groups_(num_groups), num_channels_(num_channels) {}
  VESTA_ARG(int64_t, num_groups);
  VESTA_ARG(int64_t, num_channels);
  VESTA_ARG(double, eps) = 1e-5;
  VESTA_ARG(bool, affine) = true;
};
// Normalises each group of channels of [N, C, ...], then scales by weight (ones) and adds bias (zeros). ValueError
// unless num_groups divides num_channels.
class GroupNormImpl : public Cloneable<GroupNormImpl> {
 public:
  GroupNormImpl(int64_t num_groups, int64_t num_channels)
      : GroupNormImpl(GroupNormOptions(num_groups, num_channels)) {}
  explicit GroupNormImpl(const GroupNormOptions& options);
  void reset_parameters();
  void describe(std::ostream& out) const override;
  Tensor forward(const Tensor& input);
  GroupNormOptions options;
  Tensor weight, bias;
};
VESTA_LAYER(GroupNorm);

class LocalResponseNormImpl : public Cloneable<LocalResponseNormImpl> {
 public:
  LocalResponseNormImpl(int64_t size) : options(size) {}  // NOLINT: implicit
  explicit LocalResponseNormImpl(const LocalResponseNormOptions& o) : options(o) {}
  void describe(std::ostream& out) const override;
  Tensor forward(const Tensor& input) { return functional::local_response_norm(input, options); }
  LocalResponseNormOptions options;
};
VESTA_LAYER(LocalResponseNorm);

// LocalResponseNorm of 4-D inputs over a window that is symmetric, (size - 1) / 2 channels to each side, also where size
// is even. (PyTorch's running sum never drops the first channel; this is the formula.)
class CrossMapLRN2dOptions {
 public:
  CrossMapLRN2dOptions(int64_t size) : size_(size) {}  // NOLINT: implicit
  VESTA_ARG(int64_t, size);
  VESTA_ARG(double, alpha) = 1e-4;
  VESTA_ARG(double, beta) = 0.75;
  VESTA_ARG(int64_t, k) = 1;
};
class CrossMapLRN2dImpl : public Cloneable<CrossMapLRN2dImpl> {
 public:
  CrossMapLRN2dImpl(int64_t size) : options(size) {}  // NOLINT: implicit
  explicit CrossMapLRN2dImpl(const CrossMapLRN2dOptions& o) : options(o) {}
  void describe(std::ostream& out) const override;
  Tensor forward(const Tensor& input);
  CrossMapLRN2dOptions options;
};
VESTA_LAYER(CrossMapLRN2d);

class CosineSimilarityImpl : public Cloneable<CosineSimilarityImpl> {
 public:
  explicit CosineSimilarityImpl(const CosineSimilarityOptions& o = {}) : options(o) {}
  void describe(std::ostream& out) const override;
  Tensor forward(const Tensor& x1, const Tensor& x2) {
    return functional::cosine_similarity(x1, x2, options);
  }
  CosineSimilarityOptions options;
};
VESTA_LAYER(CosineSimilarity);

class PairwiseDistanceImpl : public Cloneable<PairwiseDistanceImpl> {
 public:
  explicit PairwiseDistanceImpl(const PairwiseDistanceOptions& o = {}) : options(o) {}
  void describe(std::ostream& out) const override;
  Tensor forward(const Tensor& x1, const Tensor& x2) {
    return functional::pairwise_distance(x1, x2, options);
  }
  PairwiseDistanceOptions options;
};
VESTA_LAYER(PairwiseDistance);

}  // namespace vesta::nn
