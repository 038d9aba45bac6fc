#pragma once
// Pooling, unpooling, upsampling and pixel shuffling as modules. Options, names and defaults are libtorch's; shapes are
// those of the functions of the same name in vesta/functional_pool.h.
//   nn::MaxPool2d pool(nn::MaxPool2dOptions(3).stride(2).padding(1));
#include "vesta/functional_pool.h"
#include "vesta/nn_any.h"
#include "vesta/nn_cloneable.h"

namespace vesta::nn {

namespace detail {
void describe_pool(std::ostream& out, const char* name, IntArrayRef kernel, IntArrayRef stride,
                   IntArrayRef padding, IntArrayRef dilation, bool ceil_mode);
void describe_sizes(std::ostream& out, const char* name, ArrayRef<std::optional<int64_t>> sizes);
void describe_kernel(std::ostream& out, const char* name, IntArrayRef kernel, IntArrayRef stride,
                     IntArrayRef padding);
void describe_lp(std::ostream& out, const char* name, double norm_type, IntArrayRef kernel,
                 IntArrayRef stride, bool ceil_mode);
}  // namespace detail

// A module of D dims made from options, or from what these are made of.
#define VESTA_NN_POOL_CLASS(Name, Argument, Element)                      \
  class Name##Impl : public Cloneable<Name##Impl> {                       \
   public:                                                                \
    Name##Impl(Argument first) : options(first) {} /* NOLINT: implicit */ \
    explicit Name##Impl(const Name##Options& o) : options(o) {}           \
    void describe(std::ostream& out) const override;                      \
    Tensor forward(const Tensor& input);                                  \
    VESTA_NN_POOL_EXTRA                                                   \
    Name##Options options;                                                \
  };                                                                      \
  VESTA_LAYER_OF_BRACES(Name, Argument, Element)

#define VESTA_NN_POOL_EXTRA
VESTA_NN_POOL_CLASS(AvgPool1d, ExpandingArray<1>, int64_t);
VESTA_NN_POOL_CLASS(AvgPool2d, ExpandingArray<2>, int64_t);
VESTA_NN_POOL_CLASS(AvgPool3d, ExpandingArray<3>, int64_t);
VESTA_NN_POOL_CLASS(AdaptiveAvgPool1d, OptionalSizes<1>, std::optional<int64_t>);
VESTA_NN_POOL_CLASS(AdaptiveAvgPool2d, OptionalSizes<2>, std::optional<int64_t>);
VESTA_NN_POOL_CLASS(AdaptiveAvgPool3d, OptionalSizes<3>, std::optional<int64_t>);
#undef VESTA_NN_POOL_EXTRA
// Maxima also come with their positions, for MaxUnpool.
#define VESTA_NN_POOL_EXTRA std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input);
VESTA_NN_POOL_CLASS(MaxPool1d, ExpandingArray<1>, int64_t);
VESTA_NN_POOL_CLASS(MaxPool2d, ExpandingArray<2>, int64_t);
VESTA_NN_POOL_CLASS(MaxPool3d, ExpandingArray<3>, int64_t);
VESTA_NN_POOL_CLASS(AdaptiveMaxPool1d, OptionalSizes<1>, std::optional<int64_t>);
VESTA_NN_POOL_CLASS(AdaptiveMaxPool2d, OptionalSizes<2>, std::optional<int64_t>);
VESTA_NN_POOL_CLASS(AdaptiveMaxPool3d, OptionalSizes<3>, std::optional<int64_t>);
#undef VESTA_NN_POOL_EXTRA
#undef VESTA_NN_POOL_CLASS

// ValueError unless exactly one of output_size and output_ratio is given.
#define VESTA_NN_FRACTIONAL(Name, D)                                      \
  class Name##Impl : public Cloneable<Name##Impl> {                       \
   public:                                                                \
    explicit Name##Impl(const Name##Options& o);                          \
    void describe(std::ostream& out) const override;                      \
    Tensor forward(const Tensor& input);                                  \
    std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input); \
    Name##Options options;                                                \
  };                                                                      \
  VESTA_LAYER(Name)
VESTA_NN_FRACTIONAL(FractionalMaxPool2d, 2);
VESTA_NN_FRACTIONAL(FractionalMaxPool3d, 3);
#undef VESTA_NN_FRACTIONAL

// forward takes the pooled tensor, its positions and, where pooling lost it, the size before.
#define VESTA_NN_UNPOOL(Name, D)                                                               \
  class Name##Impl : public Cloneable<Name##Impl> {                                            \
   public:                                                                                     \
    Name##Impl(ExpandingArray<D> kernel_size) : options(kernel_size) {} /* NOLINT: implicit */ \
    explicit Name##Impl(const Name##Options& o) : options(o) {}                                \
    void describe(std::ostream& out) const override;                                           \
    Tensor forward(const Tensor& input, const Tensor& indices,                                 \
                   const std::optional<std::vector<int64_t>>& output_size = std::nullopt);     \
    VESTA_FORWARD_DEFAULTS({2, AnyValue(std::optional<std::vector<int64_t>>())})               \
    Name##Options options;                                                                     \
  };                                                                                           \
  VESTA_LAYER_OF_BRACES(Name, ExpandingArray<D>, int64_t)
VESTA_NN_UNPOOL(MaxUnpool1d, 1);
VESTA_NN_UNPOOL(MaxUnpool2d, 2);
VESTA_NN_UNPOOL(MaxUnpool3d, 3);
#undef VESTA_NN_UNPOOL

#define VESTA_NN_LP_POOL(Name, D)                                                                    \
  class Name##Impl : public Cloneable<Name##Impl> {                                                  \
   public:                                                                                           \
    Name##Impl(double norm_type, ExpandingArray<D> kernel_size) : options(norm_type, kernel_size) {} \
    explicit Name##Impl(const Name##Options& o) : options(o) {}                                      \
    void describe(std::ostream& out) const override;                                                 \
    Tensor forward(const Tensor& input);                                                             \
    Name##Options options;                                                                           \
  };                                                                                                 \
  VESTA_LAYER_CLONE(Name##Impl);                                                                     \
  class Name : public ModuleHolder<Name##Impl> {                                                     \
   public:                                                                                           \
    using ModuleHolder<Name##Impl>::ModuleHolder;                                                    \
    Name(double norm_type, std::initializer_list<int64_t> kernel_size)                               \
        : Name(Name##Options(norm_type, of_braces<ExpandingArray<D>>(kernel_size))) {}               \
  }
VESTA_NN_LP_POOL(LPPool1d, 1);
VESTA_NN_LP_POOL(LPPool2d, 2);
VESTA_NN_LP_POOL(LPPool3d, 3);
#undef VESTA_NN_LP_POOL

class UpsampleImpl : public Cloneable<UpsampleImpl> {
 public:
  explicit UpsampleImpl(const UpsampleOptions& o = {}) : options(o) {}
  void describe(std::ostream& out) const override;
  Tensor forward(const Tensor& input);
  UpsampleOptions options;
};
VESTA_LAYER(Upsample);

class PixelShuffleImpl : public Cloneable<PixelShuffleImpl> {
 public:
  explicit PixelShuffleImpl(const PixelShuffleOptions& o) : options(o) {}
  void describe(std::ostream& out) const override;
  Tensor forward(const Tensor& input);
  PixelShuffleOptions options;
};
VESTA_LAYER(PixelShuffle);
class PixelUnshuffleImpl : public Cloneable<PixelUnshuffleImpl> {
 public:
  explicit PixelUnshuffleImpl(const PixelUnshuffleOptions& o) : options(o) {}
  void describe(std::ostream& out) const override;
  Tensor forward(const Tensor& input);
  PixelUnshuffleOptions options;
};
VESTA_LAYER(PixelUnshuffle);

}  // namespace vesta::nn
