#pragma once
// Activations as modules: options, and a call of the function of the same name in vesta/functional.h.
#include "vesta/functional.h"
#include "vesta/nn_cloneable.h"

namespace vesta::nn {

#define VESTA_NN_PLAIN(Name, function)                                          \
  class Name##Impl : public Cloneable<Name##Impl> {                             \
   public:                                                                      \
    void describe(std::ostream& out) const override;                            \
    Tensor forward(const Tensor& input) { return functional::function(input); } \
  };                                                                            \
  VESTA_LAYER(Name)
#define VESTA_NN_OPTIONS(Name, function, defaults)                                       \
  class Name##Impl : public Cloneable<Name##Impl> {                                      \
   public:                                                                               \
    explicit Name##Impl(const Name##Options& o defaults) : options(o) {}                 \
    void describe(std::ostream& out) const override;                                     \
    Tensor forward(const Tensor& input) { return functional::function(input, options); } \
    Name##Options options;                                                               \
  };                                                                                     \
  VESTA_LAYER(Name)
#define VESTA_NN_DEFAULT = {}

VESTA_NN_PLAIN(SiLU, silu);
VESTA_NN_PLAIN(Mish, mish);
VESTA_NN_PLAIN(Tanh, tanh);
VESTA_NN_PLAIN(Tanhshrink, tanhshrink);
VESTA_NN_PLAIN(Sigmoid, sigmoid);
VESTA_NN_PLAIN(LogSigmoid, logsigmoid);
VESTA_NN_PLAIN(Hardswish, hardswish);
VESTA_NN_PLAIN(Hardsigmoid, hardsigmoid);
VESTA_NN_PLAIN(Softsign, softsign);
VESTA_NN_OPTIONS(ReLU, relu, VESTA_NN_DEFAULT);
VESTA_NN_OPTIONS(ReLU6, relu6, VESTA_NN_DEFAULT);
VESTA_NN_OPTIONS(SELU, selu, VESTA_NN_DEFAULT);
VESTA_NN_OPTIONS(CELU, celu, VESTA_NN_DEFAULT);
VESTA_NN_OPTIONS(GELU, gelu, VESTA_NN_DEFAULT);
VESTA_NN_OPTIONS(LeakyReLU, leaky_relu, VESTA_NN_DEFAULT);
VESTA_NN_OPTIONS(ELU, elu, VESTA_NN_DEFAULT);
VESTA_NN_OPTIONS(Softplus, softplus, VESTA_NN_DEFAULT);
VESTA_NN_OPTIONS(Hardtanh, hardtanh, VESTA_NN_DEFAULT);
VESTA_NN_OPTIONS(Hardshrink, hardshrink, VESTA_NN_DEFAULT);
VESTA_NN_OPTIONS(Softshrink, softshrink, VESTA_NN_DEFAULT);
VESTA_NN_OPTIONS(GLU, glu, VESTA_NN_DEFAULT);
VESTA_NN_OPTIONS(Softmax, softmax, );
VESTA_NN_OPTIONS(LogSoftmax, log_softmax, );
VESTA_NN_OPTIONS(Softmin, softmin, );
#undef VESTA_NN_PLAIN
#undef VESTA_NN_OPTIONS
#undef VESTA_NN_DEFAULT

class ThresholdImpl : public Cloneable<ThresholdImpl> {
 public:
  ThresholdImpl(double threshold, double value) : ThresholdImpl(ThresholdOptions(threshold, value)) {}
  explicit ThresholdImpl(const ThresholdOptions& o) : options(o) {}
  void describe(std::ostream& out) const override;
  Tensor forward(const Tensor& input) { return functional::threshold(input, options); }
  ThresholdOptions options;
};
VESTA_LAYER(Threshold);

// Random slopes in training mode, their mean otherwise.
class RReLUImpl : public Cloneable<RReLUImpl> {
 public:
  explicit RReLUImpl(const RReLUOptions& o = {}) : options(o) {}
  void describe(std::ostream& out) const override;
  Tensor forward(const Tensor& input);
  RReLUOptions options;
};
VESTA_LAYER(RReLU);

class PReLUOptions {
 public:
  PReLUOptions(int64_t num_parameters = 1) : num_parameters_(num_parameters) {}  // NOLINT: implicit
  VESTA_ARG(int64_t, num_parameters);  // 1, or the number of channels
  VESTA_ARG(double, init) = 0.25;
};
class PReLUImpl : public Cloneable<PReLUImpl> {
 public:
  explicit PReLUImpl(const PReLUOptions& o = {});
  void reset_parameters();
  void describe(std::ostream& out) const override;
  Tensor forward(const Tensor& input) { return functional::prelu(input, weight); }
  PReLUOptions options;
  Tensor weight;  // [num_parameters]
};
VESTA_LAYER(PReLU);

// Softmax over the channels of [N, C, H, W] or [C, H, W]. ValueError for other numbers of dims.
class Softmax2dImpl : public Cloneable<Softmax2dImpl> {
 public:
  void describe(std::ostream& out) const override;
  Tensor forward(const Tensor& input);
};
VESTA_LAYER(Softmax2d);

}  // namespace vesta::nn
