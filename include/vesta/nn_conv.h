#pragma once
// Convolutions and their transposes over 1 to 3 dims, fold and unfold, as modules with libtorch's names and options.
//   nn::Conv2d conv(nn::Conv2dOptions(3, 64, 7).stride(2).padding(3).bias(false));
#include "vesta/functional_conv.h"
#include "vesta/functional_layer.h"
#include "vesta/nn_any.h"
#include "vesta/nn_cloneable.h"

namespace vesta::nn {

template <size_t D>
class ConvOptions {
 public:
  ConvOptions(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size)
      : in_channels_(in_channels), out_channels_(out_channels), kernel_size_(kernel_size) {}
  VESTA_ARG(int64_t, in_channels);
  VESTA_ARG(int64_t, out_channels);
  VESTA_ARG(ExpandingArray<D>, kernel_size);
  VESTA_ARG(ExpandingArray<D>, stride) = 1;
  VESTA_ARG(ConvPadding<D>, padding) = 0;
  VESTA_ARG(ExpandingArray<D>, dilation) = 1;
  VESTA_ARG(int64_t, groups) = 1;
  VESTA_ARG(bool, bias) = true;
  // What stands in the padding: kZeros, kReflect, kReplicate or kCircular.
  VESTA_ARG(PadMode, padding_mode) = kZeros;
};
template <size_t D>
class ConvTransposeOptions {
 public:
  ConvTransposeOptions(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size)
      : in_channels_(in_channels), out_channels_(out_channels), kernel_size_(kernel_size) {}
  VESTA_ARG(int64_t, in_channels);
  VESTA_ARG(int64_t, out_channels);
  VESTA_ARG(ExpandingArray<D>, kernel_size);
  VESTA_ARG(ExpandingArray<D>, stride) = 1;
  VESTA_ARG(ExpandingArray<D>, padding) = 0;
  VESTA_ARG(ExpandingArray<D>, output_padding) = 0;
  VESTA_ARG(int64_t, groups) = 1;
  VESTA_ARG(bool, bias) = true;
  VESTA_ARG(ExpandingArray<D>, dilation) = 1;
  VESTA_ARG(PadMode, padding_mode) = kZeros;  // the only one
};

namespace detail {
// The parts of the layers that do not depend on their type; src/nn/conv.cpp.
struct ConvLayerSizes {
  const char* layer;
  int64_t in_channels, out_channels, groups;
  IntArrayRef kernel_size;
};
// ValueError unless groups divide the channels and all sizes are positive.
Tensor new_conv_weight(const ConvLayerSizes& sizes, bool transposed);
void reset_conv_parameters(const Tensor& weight, const Tensor& bias);
// Amounts before and after each dim, the last dim first, that stand for `padding`.
std::vector<int64_t> conv_border(IntArrayRef kernel, IntArrayRef dilation, IntArrayRef padding, bool same);
void describe_conv(std::ostream& out, const ConvLayerSizes& sizes, IntArrayRef stride, IntArrayRef padding,
                   const PaddingName* name, IntArrayRef dilation, IntArrayRef output_padding, bool bias,
                   PadMode mode);
std::vector<int64_t> conv_output_padding(const char* layer, const Tensor& input, IntArrayRef output_size,
                                         IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                                         IntArrayRef dilation);
}  // namespace detail

// weight [out_channels, in_channels / groups, kernel...] and bias [out_channels] start in U(-k, k),
// k = 1 / sqrt(in_channels / groups * kernel elements).
template <size_t D, class Derived>
class ConvNdImpl : public Cloneable<Derived> {
 public:
  void reset_parameters() { detail::reset_conv_parameters(weight, bias); }
  void describe(std::ostream& out) const override;
  // [N, in_channels, ...] or [in_channels, ...], D dims behind the channels.
  Tensor forward(const Tensor& input);

  ConvOptions<D> options;
  Tensor weight, bias;  // bias is undefined where the options say so

 protected:
  explicit ConvNdImpl(const ConvOptions<D>& o);

 private:
  std::vector<int64_t> border_;  // for padding modes other than zeros
};
// weight [in_channels, out_channels / groups, kernel...].
template <size_t D, class Derived>
class ConvTransposeNdImpl : public Cloneable<Derived> {
 public:
  void reset_parameters() { detail::reset_conv_parameters(weight, bias); }
  void describe(std::ostream& out) const override;
  // Several sizes are possible where the stride is above 1; output_size (of the D last dims, or of all) picks one.
  Tensor forward(const Tensor& input, const std::optional<IntArrayRef>& output_size = std::nullopt);
  VESTA_FORWARD_DEFAULTS({1, AnyValue(std::optional<IntArrayRef>())})

  ConvTransposeOptions<D> options;
  Tensor weight, bias;

 protected:
  explicit ConvTransposeNdImpl(const ConvTransposeOptions<D>& o);
};

#define VESTA_NN_CONV(Name, Base, OptionsOf, D)                                                          \
  using Name##Options = OptionsOf<D>;                                                                    \
  class Name##Impl : public Base<D, Name##Impl> {                                                        \
   public:                                                                                               \
    Name##Impl(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size)                 \
        : Name##Impl(Name##Options(in_channels, out_channels, kernel_size)) {}                           \
    explicit Name##Impl(const Name##Options& o) : Base<D, Name##Impl>(o) {}                              \
  };                                                                                                     \
  extern template class Base<D, Name##Impl>;                                                             \
  VESTA_LAYER_CLONE(Name##Impl);                                                                         \
  class Name : public ModuleHolder<Name##Impl> {                                                         \
   public:                                                                                               \
    using ModuleHolder<Name##Impl>::ModuleHolder;                                                        \
    Name(int64_t in_channels, int64_t out_channels, ExpandingArray<D> kernel_size)                       \
        : Name(Name##Options(in_channels, out_channels, kernel_size)) {}                                 \
    template <class Holder, std::enable_if_t<std::is_same_v<Holder, ModuleHolder<Name##Impl>>, int> = 0> \
    Name(Holder holder) : ModuleHolder<Name##Impl>(std::move(holder)) {}                                 \
  }
VESTA_NN_CONV(Conv1d, ConvNdImpl, ConvOptions, 1);
VESTA_NN_CONV(Conv2d, ConvNdImpl, ConvOptions, 2);
VESTA_NN_CONV(Conv3d, ConvNdImpl, ConvOptions, 3);
VESTA_NN_CONV(ConvTranspose1d, ConvTransposeNdImpl, ConvTransposeOptions, 1);
VESTA_NN_CONV(ConvTranspose2d, ConvTransposeNdImpl, ConvTransposeOptions, 2);
VESTA_NN_CONV(ConvTranspose3d, ConvTransposeNdImpl, ConvTransposeOptions, 3);
#undef VESTA_NN_CONV

class FoldImpl : public Cloneable<FoldImpl> {
 public:
  FoldImpl(ExpandingArray<2> output_size, ExpandingArray<2> kernel_size)
      : FoldImpl(FoldOptions(output_size, kernel_size)) {}
  explicit FoldImpl(const FoldOptions& o) : options(o) {}
  void describe(std::ostream& out) const override;
  Tensor forward(const Tensor& input) { return functional::fold(input, options); }
  FoldOptions options;
};
VESTA_LAYER_CLONE(FoldImpl);
class Fold : public ModuleHolder<FoldImpl> {
 public:
  using ModuleHolder<FoldImpl>::ModuleHolder;
  Fold(ExpandingArray<2> output_size, ExpandingArray<2> kernel_size)
      : Fold(FoldOptions(output_size, kernel_size)) {}
};

class UnfoldImpl : public Cloneable<UnfoldImpl> {
 public:
  UnfoldImpl(ExpandingArray<2> kernel_size) : UnfoldImpl(UnfoldOptions(kernel_size)) {}  // NOLINT
  explicit UnfoldImpl(const UnfoldOptions& o) : options(o) {}
  void describe(std::ostream& out) const override;
  Tensor forward(const Tensor& input) { return functional::unfold(input, options); }
  UnfoldOptions options;
};
VESTA_LAYER_OF_BRACES(Unfold, ExpandingArray<2>, int64_t);

}  // namespace vesta::nn
