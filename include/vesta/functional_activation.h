#pragma once
// nn::functional: the activations that vesta/functional.h has not got, with their options.
#include <optional>

#include "vesta/option_arg.h"
#include "vesta/tensor.h"

namespace vesta::nn {

class SELUOptions {
 public:
  SELUOptions(bool inplace = false) : inplace_(inplace) {}  // NOLINT: implicit, here and below
  VESTA_ARG(bool, inplace);
};
class CELUOptions {
  VESTA_ARG(double, alpha) = 1.0;
  VESTA_ARG(bool, inplace) = false;
};
class HardshrinkOptions {
 public:
  HardshrinkOptions(double lambda = 0.5) : lambda_(lambda) {}  // NOLINT
  VESTA_ARG(double, lambda);
};
class SoftshrinkOptions {
 public:
  SoftshrinkOptions(double lambda = 0.5) : lambda_(lambda) {}  // NOLINT
  VESTA_ARG(double, lambda);
};
class ThresholdOptions {
 public:
  ThresholdOptions(double threshold, double value) : threshold_(threshold), value_(value) {}
  VESTA_ARG(double, threshold);
  VESTA_ARG(double, value);
  VESTA_ARG(bool, inplace) = false;
};
class RReLUOptions {
  VESTA_ARG(double, lower) = 1.0 / 8;
  VESTA_ARG(double, upper) = 1.0 / 3;
  VESTA_ARG(bool, inplace) = false;
};
class RReLUFuncOptions {
  VESTA_ARG(double, lower) = 1.0 / 8;
  VESTA_ARG(double, upper) = 1.0 / 3;
  VESTA_ARG(bool, training) = false;
  VESTA_ARG(bool, inplace) = false;
};
class GumbelSoftmaxFuncOptions {
  VESTA_ARG(double, tau) = 1.0;
  // One-hot values with the gradient of the soft ones.
  VESTA_ARG(bool, hard) = false;
  VESTA_ARG(int64_t, dim) = -1;
};

namespace functional {

using nn::GumbelSoftmaxFuncOptions;
using nn::RReLUFuncOptions;
using SELUFuncOptions = SELUOptions;
using CELUFuncOptions = CELUOptions;
using HardshrinkFuncOptions = HardshrinkOptions;
using SoftshrinkFuncOptions = SoftshrinkOptions;
using ThresholdFuncOptions = ThresholdOptions;

Tensor selu(Tensor input, const SELUFuncOptions& options = {});
Tensor celu(Tensor input, const CELUFuncOptions& options = {});
Tensor hardshrink(const Tensor& input, const HardshrinkFuncOptions& options = {});
Tensor softshrink(const Tensor& input, const SoftshrinkFuncOptions& options = {});
Tensor tanhshrink(const Tensor& input);
// x where x > threshold, else value.
Tensor threshold(Tensor input, const ThresholdFuncOptions& options);
// In training the slope of each negative element is drawn from U(lower, upper), else it is their mean.
Tensor rrelu(Tensor input, const RReLUFuncOptions& options = {});
// weight: one slope, or one for each channel (dim 1).
Tensor prelu(const Tensor& input, const Tensor& weight);
// Jang, Gu & Poole 2017: softmax((logits + gumbel noise) / tau).
Tensor gumbel_softmax(const Tensor& logits, const GumbelSoftmaxFuncOptions& options = {});

}  // namespace functional
}  // namespace vesta::nn
