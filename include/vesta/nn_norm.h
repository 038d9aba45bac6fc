#pragma once
// LayerNorm and RMSNorm.
#include "vesta/functional.h"
#include "vesta/nn_cloneable.h"

namespace vesta::nn {

class LayerNormOptions {
 public:
  LayerNormOptions(std::vector<int64_t> normalized_shape)
      : normalized_shape_(std::move(normalized_shape)) {}  // NOLINT
  VESTA_ARG(std::vector<int64_t>, normalized_shape);
  VESTA_ARG(double, eps) = 1e-5;
  VESTA_ARG(bool, elementwise_affine) = true;
  VESTA_ARG(bool, bias) = true;
};
// Normalises the last dims to mean 0 and variance 1, then scales by weight (ones) and adds bias (zeros).
class LayerNormImpl : public Cloneable<LayerNormImpl> {
 public:
  explicit LayerNormImpl(int64_t width) : LayerNormImpl(LayerNormOptions({width})) {}
  explicit LayerNormImpl(std::vector<int64_t> shape) : LayerNormImpl(LayerNormOptions(std::move(shape))) {}
  explicit LayerNormImpl(LayerNormOptions options);
  void reset_parameters();
  void describe(std::ostream& out) const override;
  Tensor forward(const Tensor& input);

  LayerNormOptions options;
  Tensor weight, bias;
};
VESTA_LAYER(LayerNorm);

class RMSNormOptions {
 public:
  RMSNormOptions(std::vector<int64_t> normalized_shape)
      : normalized_shape_(std::move(normalized_shape)) {}  // NOLINT
  VESTA_ARG(std::vector<int64_t>, normalized_shape);
  VESTA_ARG(std::optional<double>,
            eps) = std::nullopt;  // absent: the machine epsilon of the computation's dtype
  VESTA_ARG(bool, elementwise_affine) = true;
};
// x / sqrt(mean(x^2) + eps) over the last dims, scaled by weight (ones).
class RMSNormImpl : public Cloneable<RMSNormImpl> {
 public:
  explicit RMSNormImpl(int64_t width) : RMSNormImpl(RMSNormOptions({width})) {}
  explicit RMSNormImpl(std::vector<int64_t> shape) : RMSNormImpl(RMSNormOptions(std::move(shape))) {}
  explicit RMSNormImpl(RMSNormOptions options);
  void reset_parameters();
  void describe(std::ostream& out) const override;
  Tensor forward(const Tensor& input);

  RMSNormOptions options;
  Tensor weight;
};
VESTA_LAYER(RMSNorm);

}  // namespace vesta::nn
