// nn::functional: interpolation, grid sampling, affine grids and pixel shuffling.
#include <cmath>

#include "vesta/functional_pool.h"
#include "vesta/ops.h"

namespace vesta::nn {

GridPaddingArg::GridPaddingArg(PadMode zeros) : mode_(GridPaddingMode::Zeros) {
  VESTA_CHECK(zeros == kZeros, "grid_sample: expected a padding_mode of kZeros, kBorder or kReflection");
}

InterpolateModeArg::InterpolateModeArg(Nonlinearity linear) : mode_(InterpolateMode::Linear) {
  VESTA_CHECK(linear == kLinear, "interpolate: expected a mode of interpolation");
}

namespace functional {
namespace {

constexpr InterpolateMode kLinear1d = InterpolateMode::Linear;

bool has_corners(InterpolateMode mode) {
  return mode == kLinear1d || mode == kBilinear || mode == kBicubic || mode == kTrilinear;
}

// floor(size * factor) of each spatial dim.
std::vector<int64_t> scaled_sizes(const Tensor& input, const std::vector<double>& factors) {
  std::vector<int64_t> sizes;
  for (size_t d = 0; d < factors.size(); ++d) {
    const double size = std::floor(double(input.size(2 + int64_t(d))) * factors[d]);
    VESTA_CHECK(size >= 1 && size < 2147483648.0, "interpolate: scale factor ", factors[d],
                " gives no size in [1, 2^31)");
    sizes.push_back(int64_t(size));
  }
  return sizes;
}

}  // namespace

Tensor interpolate(const Tensor& input, const InterpolateFuncOptions& options) {
  VESTA_CHECK(input.dim() >= 3 && input.dim() <= 5, "interpolate: expected an input with 3 to 5 dims, got ",
              input.dim());
  const size_t spatial = size_t(input.dim() - 2);
  const InterpolateMode mode = options.mode();
  VESTA_CHECK(bool(options.size()) != bool(options.scale_factor()),
              "interpolate: expected either size or scale_factor");
  VESTA_CHECK(has_corners(mode) || !options.align_corners(),
              "interpolate: align_corners is for the modes linear, bilinear, bicubic and trilinear");
  VESTA_CHECK(!options.antialias() || (spatial == 2 && (mode == kBilinear || mode == kBicubic)),
              "interpolate: antialias is for images in the modes bilinear and bicubic");
  std::optional<std::vector<double>> factors = options.scale_factor();
  std::optional<std::vector<int64_t>> size = options.size();
  auto check_count = [&](const char* what, size_t n) {
    VESTA_CHECK(n == spatial, "interpolate: expected ", spatial, " values for ", what, ", got ", n);
  };
  if (factors) {
    if (factors->size() == 1) factors->resize(spatial, (*factors)[0]);
    check_count("scale_factor", factors->size());
    if (options.recompute_scale_factor().value_or(false) || mode == kArea) {
      size = scaled_sizes(input, *factors);
      factors.reset();
    }
  } else {
    if (size->size() == 1) size->resize(spatial, (*size)[0]);
    check_count("size", size->size());
    VESTA_CHECK(!options.recompute_scale_factor().value_or(false),
                "interpolate: recompute_scale_factor needs a scale_factor");
  }
  const OptionalIntArrayRef sizes = size ? OptionalIntArrayRef(*size) : OptionalIntArrayRef();
  const std::optional<ArrayRef<double>> scales =
      factors ? std::optional<ArrayRef<double>>(*factors) : std::nullopt;
  const bool corners = options.align_corners().value_or(false);
  switch (spatial) {
    case 1:
      if (mode == kNearest) return vesta::upsample_nearest1d(input, sizes, scales);
      if (mode == kNearestExact) return vesta::_upsample_nearest_exact1d(input, sizes, scales);
      if (mode == kArea) return vesta::adaptive_avg_pool1d(input, *size);
      if (mode == kLinear1d) return vesta::upsample_linear1d(input, sizes, corners, scales);
      break;
    case 2:
      if (mode == kNearest) return vesta::upsample_nearest2d(input, sizes, scales);
      if (mode == kNearestExact) return vesta::_upsample_nearest_exact2d(input, sizes, scales);
      if (mode == kArea) return vesta::adaptive_avg_pool2d(input, *size);
      if (mode == kBilinear)
        return options.antialias() ? vesta::_upsample_bilinear2d_aa(input, sizes, corners, scales)
                                   : vesta::upsample_bilinear2d(input, sizes, corners, scales);
      if (mode == kBicubic)
        return options.antialias() ? vesta::_upsample_bicubic2d_aa(input, sizes, corners, scales)
                                   : vesta::upsample_bicubic2d(input, sizes, corners, scales);
      break;
    default:
      if (mode == kNearest) return vesta::upsample_nearest3d(input, sizes, scales);
      if (mode == kNearestExact) return vesta::_upsample_nearest_exact3d(input, sizes, scales);
      if (mode == kArea) return vesta::adaptive_avg_pool3d(input, *size);
      if (mode == kTrilinear) return vesta::upsample_trilinear3d(input, sizes, corners, scales);
  }
  throw ValueError(
      "interpolate: linear is for inputs with 3 dims, bilinear and bicubic for 4, trilinear for 5; got " +
      std::to_string(input.dim()));
}

Tensor grid_sample(const Tensor& input, const Tensor& grid, const GridSampleFuncOptions& options) {
  const InterpolateMode mode = options.mode();
  VESTA_CHECK(mode == kBilinear || mode == kNearest || mode == kBicubic,
              "grid_sample: expected a mode of kBilinear, kNearest or kBicubic");
  const int64_t kind = mode == kBilinear ? 0 : mode == kNearest ? 1 : 2;
  return vesta::grid_sampler(input, grid, kind, int64_t(GridPaddingMode(options.padding_mode())),
                             options.align_corners().value_or(false));
}
Tensor affine_grid(const Tensor& theta, IntArrayRef size, bool align_corners) {
  return vesta::affine_grid_generator(theta, size, align_corners);
}
Tensor pixel_shuffle(const Tensor& input, const PixelShuffleFuncOptions& options) {
  return vesta::pixel_shuffle(input, options.upscale_factor());
}
Tensor pixel_unshuffle(const Tensor& input, const PixelUnshuffleFuncOptions& options) {
  return vesta::pixel_unshuffle(input, options.downscale_factor());
}

}  // namespace functional
}  // namespace vesta::nn
