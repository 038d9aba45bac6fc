#pragma once
// nn::functional: pooling, unpooling, interpolation and grid sampling, with libtorch's options classes, which the
// modules of vesta/nn_pool.h share. Inputs are [batch, channels, spatial...] or, where said, without the batch;
// floating point, max and average pooling also integers. Errors: ValueError, TypeError or IndexError naming the operator.
//   namespace F = vesta::nn::functional;
//   Tensor y = F::max_pool2d(x, F::MaxPool2dFuncOptions(3).stride(2).padding(1));
#include <optional>
#include <tuple>
#include <vector>

#include "vesta/expanding_array.h"
#include "vesta/functional_layer.h"
#include "vesta/nn_init.h"
#include "vesta/option_arg.h"
#include "vesta/tensor.h"

namespace vesta {

// How values between pixels are made.
enum class InterpolateMode : uint8_t { Nearest, Linear, Bilinear, Bicubic, Trilinear, Area, NearestExact };
inline constexpr InterpolateMode kNearest = InterpolateMode::Nearest, kBilinear = InterpolateMode::Bilinear,
                                 kBicubic = InterpolateMode::Bicubic, kTrilinear = InterpolateMode::Trilinear,
                                 kArea = InterpolateMode::Area, kNearestExact = InterpolateMode::NearestExact;
// What a grid reads outside of the image: zeros, the nearest border pixel, or its reflection.
enum class GridPaddingMode : uint8_t { Zeros, Border, Reflection };
inline constexpr GridPaddingMode kBorder = GridPaddingMode::Border, kReflection = GridPaddingMode::Reflection;

namespace nn {

template <size_t D>
class MaxPoolOptions {
 public:
  MaxPoolOptions(ExpandingArray<D> kernel_size)
      : kernel_size_(kernel_size), stride_(kernel_size) {}  // NOLINT
  VESTA_ARG(ExpandingArray<D>, kernel_size);
  VESTA_ARG(ExpandingArray<D>, stride);
  // At most half of the kernel size; padding never wins.
  VESTA_ARG(ExpandingArray<D>, padding) = 0;
  VESTA_ARG(ExpandingArray<D>, dilation) = 1;
  // Round the output size up: the last window may reach over the end.
  VESTA_ARG(bool, ceil_mode) = false;
};
using MaxPool1dOptions = MaxPoolOptions<1>;
using MaxPool2dOptions = MaxPoolOptions<2>;
using MaxPool3dOptions = MaxPoolOptions<3>;

template <size_t D>
class AvgPoolOptions {
 public:
  AvgPoolOptions(ExpandingArray<D> kernel_size)
      : kernel_size_(kernel_size), stride_(kernel_size) {}  // NOLINT
  VESTA_ARG(ExpandingArray<D>, kernel_size);
  VESTA_ARG(ExpandingArray<D>, stride);
  VESTA_ARG(ExpandingArray<D>, padding) = 0;
  VESTA_ARG(bool, ceil_mode) = false;
  // Whether padding counts as zeros in the mean.
  VESTA_ARG(bool, count_include_pad) = true;
  // Divides the sums instead of the number of elements; 2-D and 3-D.
  VESTA_ARG(std::optional<int64_t>, divisor_override) = std::nullopt;
};
using AvgPool1dOptions = AvgPoolOptions<1>;
using AvgPool2dOptions = AvgPoolOptions<2>;
using AvgPool3dOptions = AvgPoolOptions<3>;

// D sizes, or one for all; nullopt keeps the input's.
template <size_t D>
class OptionalSizes : public ExpandingArray<D, std::optional<int64_t>> {
 public:
  using Base = ExpandingArray<D, std::optional<int64_t>>;
  OptionalSizes(int64_t size) : Base(std::optional<int64_t>(size)) {}  // NOLINT: implicit, here and below
  OptionalSizes(std::optional<int64_t> size) : Base(size) {}           // NOLINT
  OptionalSizes(std::initializer_list<std::optional<int64_t>> sizes) : Base(sizes) {}  // NOLINT
  OptionalSizes(std::initializer_list<int64_t> sizes)                                  // NOLINT
      : Base(std::vector<std::optional<int64_t>>(sizes.begin(), sizes.end())) {}
  OptionalSizes(const std::vector<int64_t>& sizes)  // NOLINT
      : Base(std::vector<std::optional<int64_t>>(sizes.begin(), sizes.end())) {}
};

template <size_t D>
class AdaptivePoolOptions {
 public:
  AdaptivePoolOptions(OptionalSizes<D> output_size) : output_size_(output_size) {}  // NOLINT
  VESTA_ARG(OptionalSizes<D>, output_size);
};
using AdaptiveAvgPool1dOptions = AdaptivePoolOptions<1>;
using AdaptiveAvgPool2dOptions = AdaptivePoolOptions<2>;
using AdaptiveAvgPool3dOptions = AdaptivePoolOptions<3>;
using AdaptiveMaxPool1dOptions = AdaptivePoolOptions<1>;
using AdaptiveMaxPool2dOptions = AdaptivePoolOptions<2>;
using AdaptiveMaxPool3dOptions = AdaptivePoolOptions<3>;

template <size_t D>
class FractionalMaxPoolOptions {
 public:
  FractionalMaxPoolOptions(ExpandingArray<D> kernel_size) : kernel_size_(kernel_size) {}  // NOLINT
  VESTA_ARG(ExpandingArray<D>, kernel_size);
  // One of the two: sizes, or ratios in (0, 1) to the input's sizes.
  VESTA_ARG(std::optional<ExpandingArray<D>>, output_size) = std::nullopt;
  using Ratio = ExpandingArray<D, double>;
  VESTA_ARG(std::optional<Ratio>, output_ratio) = std::nullopt;
  // [batch, channels, D] in [0, 1), instead of fresh random numbers.
  VESTA_ARG(Tensor, _random_samples) = {};
};
using FractionalMaxPool2dOptions = FractionalMaxPoolOptions<2>;
using FractionalMaxPool3dOptions = FractionalMaxPoolOptions<3>;

template <size_t D>
class MaxUnpoolOptions {
 public:
  MaxUnpoolOptions(ExpandingArray<D> kernel_size)
      : kernel_size_(kernel_size), stride_(kernel_size) {}  // NOLINT
  VESTA_ARG(ExpandingArray<D>, kernel_size);
  VESTA_ARG(ExpandingArray<D>, stride);
  VESTA_ARG(ExpandingArray<D>, padding) = 0;
};
using MaxUnpool1dOptions = MaxUnpoolOptions<1>;
using MaxUnpool2dOptions = MaxUnpoolOptions<2>;
using MaxUnpool3dOptions = MaxUnpoolOptions<3>;
template <size_t D>
class MaxUnpoolFuncOptions {
 public:
  MaxUnpoolFuncOptions(ExpandingArray<D> kernel_size)
      : kernel_size_(kernel_size), stride_(kernel_size) {}  // NOLINT
  VESTA_ARG(ExpandingArray<D>, kernel_size);
  VESTA_ARG(ExpandingArray<D>, stride);
  VESTA_ARG(ExpandingArray<D>, padding) = 0;
  // The spatial sizes (or all sizes) of the result; absent: the smallest that pooling would have given.
  VESTA_ARG(std::optional<std::vector<int64_t>>, output_size) = std::nullopt;
};
using MaxUnpool1dFuncOptions = MaxUnpoolFuncOptions<1>;
using MaxUnpool2dFuncOptions = MaxUnpoolFuncOptions<2>;
using MaxUnpool3dFuncOptions = MaxUnpoolFuncOptions<3>;

template <size_t D>
class LPPoolOptions {
 public:
  LPPoolOptions(double norm_type, ExpandingArray<D> kernel_size)
      : norm_type_(norm_type), kernel_size_(kernel_size), stride_(kernel_size) {}
  VESTA_ARG(double, norm_type);
  VESTA_ARG(ExpandingArray<D>, kernel_size);
  VESTA_ARG(ExpandingArray<D>, stride);
  VESTA_ARG(bool, ceil_mode) = false;
};
using LPPool1dOptions = LPPoolOptions<1>;
using LPPool2dOptions = LPPoolOptions<2>;
using LPPool3dOptions = LPPoolOptions<3>;

// kNearest, kLinear, kBilinear, kBicubic, kTrilinear, kArea or kNearestExact.
class InterpolateModeArg {
 public:
  InterpolateModeArg(InterpolateMode mode) : mode_(mode) {}  // NOLINT: implicit
  InterpolateModeArg(Nonlinearity linear);                   // NOLINT; ValueError unless kLinear
  operator InterpolateMode() const { return mode_; }         // NOLINT

 private:
  InterpolateMode mode_;
};
class InterpolateFuncOptions {
  // One of the two; a single scale factor stands for all spatial dims.
  VESTA_ARG(std::optional<std::vector<int64_t>>, size) = std::nullopt;
  VESTA_ARG(std::optional<std::vector<double>>, scale_factor) = std::nullopt;
  VESTA_ARG(InterpolateModeArg, mode) = InterpolateMode::Nearest;
  // Whether the corner pixels' centres (true) or outer corners meet; linear and cubic modes only.
  VESTA_ARG(std::optional<bool>, align_corners) = std::nullopt;
  // Whether positions come from the sizes (true) or from the scale factor.
  VESTA_ARG(std::optional<bool>, recompute_scale_factor) = std::nullopt;
  // Widens the filter where the image shrinks; kBilinear and kBicubic.
  VESTA_ARG(bool, antialias) = false;
};
class UpsampleOptions {
  VESTA_ARG(std::optional<std::vector<int64_t>>, size) = std::nullopt;
  VESTA_ARG(std::optional<std::vector<double>>, scale_factor) = std::nullopt;
  VESTA_ARG(InterpolateModeArg, mode) = InterpolateMode::Nearest;
  VESTA_ARG(std::optional<bool>, align_corners) = std::nullopt;
};
// kZeros, kBorder or kReflection.
class GridPaddingArg {
 public:
  GridPaddingArg(GridPaddingMode mode) : mode_(mode) {}  // NOLINT: implicit
  GridPaddingArg(PadMode zeros);                         // NOLINT; ValueError unless kZeros
  operator GridPaddingMode() const { return mode_; }     // NOLINT

 private:
  GridPaddingMode mode_;
};
class GridSampleFuncOptions {
  // kBilinear (trilinear for volumes), kNearest, or kBicubic for images.
  VESTA_ARG(InterpolateModeArg, mode) = InterpolateMode::Bilinear;
  VESTA_ARG(GridPaddingArg, padding_mode) = GridPaddingMode::Zeros;
  VESTA_ARG(std::optional<bool>, align_corners) = std::nullopt;
};
class PixelShuffleOptions {
 public:
  PixelShuffleOptions(int64_t upscale_factor) : upscale_factor_(upscale_factor) {}  // NOLINT
  VESTA_ARG(int64_t, upscale_factor);
};
class PixelUnshuffleOptions {
 public:
  PixelUnshuffleOptions(int64_t downscale_factor) : downscale_factor_(downscale_factor) {}  // NOLINT
  VESTA_ARG(int64_t, downscale_factor);
};

namespace functional {

using AvgPool1dFuncOptions = AvgPool1dOptions;
using AvgPool2dFuncOptions = AvgPool2dOptions;
using AvgPool3dFuncOptions = AvgPool3dOptions;
using MaxPool1dFuncOptions = MaxPool1dOptions;
using MaxPool2dFuncOptions = MaxPool2dOptions;
using MaxPool3dFuncOptions = MaxPool3dOptions;
using AdaptiveAvgPool1dFuncOptions = AdaptiveAvgPool1dOptions;
using AdaptiveAvgPool2dFuncOptions = AdaptiveAvgPool2dOptions;
using AdaptiveAvgPool3dFuncOptions = AdaptiveAvgPool3dOptions;
using AdaptiveMaxPool1dFuncOptions = AdaptiveMaxPool1dOptions;
using AdaptiveMaxPool2dFuncOptions = AdaptiveMaxPool2dOptions;
using AdaptiveMaxPool3dFuncOptions = AdaptiveMaxPool3dOptions;
using FractionalMaxPool2dFuncOptions = FractionalMaxPool2dOptions;
using FractionalMaxPool3dFuncOptions = FractionalMaxPool3dOptions;
using LPPool1dFuncOptions = LPPool1dOptions;
using LPPool2dFuncOptions = LPPool2dOptions;
using LPPool3dFuncOptions = LPPool3dOptions;
using PixelShuffleFuncOptions = PixelShuffleOptions;
using PixelUnshuffleFuncOptions = PixelUnshuffleOptions;
using nn::GridSampleFuncOptions;
using nn::InterpolateFuncOptions;
using nn::MaxUnpool1dFuncOptions;
using nn::MaxUnpool2dFuncOptions;
using nn::MaxUnpool3dFuncOptions;

// The batch may be missing. Results: [..., floor((size + 2 padding - dilation (kernel - 1) - 1) / stride) + 1].
Tensor avg_pool1d(const Tensor& input, const AvgPool1dFuncOptions& options);
Tensor avg_pool2d(const Tensor& input, const AvgPool2dFuncOptions& options);
Tensor avg_pool3d(const Tensor& input, const AvgPool3dFuncOptions& options);
Tensor max_pool1d(const Tensor& input, const MaxPool1dFuncOptions& options);
Tensor max_pool2d(const Tensor& input, const MaxPool2dFuncOptions& options);
Tensor max_pool3d(const Tensor& input, const MaxPool3dFuncOptions& options);
// Also the maxima's positions (int64) in the flattened spatial dims, which max_unpool takes.
std::tuple<Tensor, Tensor> max_pool1d_with_indices(const Tensor& input, const MaxPool1dFuncOptions& options);
std::tuple<Tensor, Tensor> max_pool2d_with_indices(const Tensor& input, const MaxPool2dFuncOptions& options);
std::tuple<Tensor, Tensor> max_pool3d_with_indices(const Tensor& input, const MaxPool3dFuncOptions& options);
// The input in output_size parts that cover it; parts may overlap.
Tensor adaptive_avg_pool1d(const Tensor& input, const AdaptiveAvgPool1dFuncOptions& options);
Tensor adaptive_avg_pool2d(const Tensor& input, const AdaptiveAvgPool2dFuncOptions& options);
Tensor adaptive_avg_pool3d(const Tensor& input, const AdaptiveAvgPool3dFuncOptions& options);
Tensor adaptive_max_pool1d(const Tensor& input, const AdaptiveMaxPool1dFuncOptions& options);
Tensor adaptive_max_pool2d(const Tensor& input, const AdaptiveMaxPool2dFuncOptions& options);
Tensor adaptive_max_pool3d(const Tensor& input, const AdaptiveMaxPool3dFuncOptions& options);
std::tuple<Tensor, Tensor> adaptive_max_pool1d_with_indices(const Tensor& input,
                                                            const AdaptiveMaxPool1dFuncOptions& options);
std::tuple<Tensor, Tensor> adaptive_max_pool2d_with_indices(const Tensor& input,
                                                            const AdaptiveMaxPool2dFuncOptions& options);
std::tuple<Tensor, Tensor> adaptive_max_pool3d_with_indices(const Tensor& input,
                                                            const AdaptiveMaxPool3dFuncOptions& options);
// Windows at pseudo-random steps (Graham, 2014). ValueError unless exactly one of output_size and output_ratio is given.
Tensor fractional_max_pool2d(const Tensor& input, const FractionalMaxPool2dFuncOptions& options);
Tensor fractional_max_pool3d(const Tensor& input, const FractionalMaxPool3dFuncOptions& options);
std::tuple<Tensor, Tensor> fractional_max_pool2d_with_indices(const Tensor& input,
                                                              const FractionalMaxPool2dFuncOptions& options);
std::tuple<Tensor, Tensor> fractional_max_pool3d_with_indices(const Tensor& input,
                                                              const FractionalMaxPool3dFuncOptions& options);
// Each element at its position in a tensor of zeros.
Tensor max_unpool1d(const Tensor& input, const Tensor& indices, const MaxUnpool1dFuncOptions& options);
Tensor max_unpool2d(const Tensor& input, const Tensor& indices, const MaxUnpool2dFuncOptions& options);
Tensor max_unpool3d(const Tensor& input, const Tensor& indices, const MaxUnpool3dFuncOptions& options);
// (sum over the window of x^p)^(1/p), of the absolute value of that sum with its sign lost below zero.
Tensor lp_pool1d(const Tensor& input, const LPPool1dFuncOptions& options);
Tensor lp_pool2d(const Tensor& input, const LPPool2dFuncOptions& options);
Tensor lp_pool3d(const Tensor& input, const LPPool3dFuncOptions& options);

// [batch, channels, spatial...] with 1 to 3 spatial dims, as the mode says, to size or scaled by scale_factor.
Tensor interpolate(const Tensor& input, const InterpolateFuncOptions& options = {});
// input [N, C, H, W] and grid [N, Ho, Wo, 2], or input [N, C, D, H, W] and grid [N, Do, Ho, Wo, 3]; the grid's last dim
// is x first, in [-1, 1] inside of the input.
Tensor grid_sample(const Tensor& input, const Tensor& grid, const GridSampleFuncOptions& options = {});
// theta [N, 2, 3] and size {N, C, H, W} -> [N, H, W, 2], or theta [N, 3, 4] and 5 sizes -> [N, D, H, W, 3].
Tensor affine_grid(const Tensor& theta, IntArrayRef size, bool align_corners = false);
// [..., C r^2, H, W] -> [..., C, H r, W r] and back.
Tensor pixel_shuffle(const Tensor& input, const PixelShuffleFuncOptions& options);
Tensor pixel_unshuffle(const Tensor& input, const PixelUnshuffleFuncOptions& options);

}  // namespace functional
}  // namespace nn
}  // namespace vesta
