// nn::functional: pooling and unpooling. Each unpacks options and calls the operator.
#include "vesta/functional_pool.h"

#include "vesta/ops.h"

namespace vesta::nn::functional {
namespace {

// Wanted sizes, the input's where none is given.
template <size_t D>
std::vector<int64_t> sizes_or_input(const char* name, const Tensor& input, const OptionalSizes<D>& sizes) {
  VESTA_CHECK(input.dim() >= int64_t(D), name, ": expected at least ", D, " dims, got ", input.dim());
  std::vector<int64_t> result;
  for (size_t d = 0; d < D; ++d)
    result.push_back((*sizes)[d] ? *(*sizes)[d] : input.size(input.dim() - int64_t(D) + int64_t(d)));
  return result;
}

template <size_t D>
std::tuple<Tensor, Tensor> fractional(const char* name, const Tensor& input,
                                      const FractionalMaxPoolOptions<D>& options) {
  VESTA_CHECK(bool(options.output_size()) != bool(options.output_ratio()), name,
              ": expected either output_size or output_ratio");
  const bool batched = input.dim() == int64_t(D) + 2;
  VESTA_CHECK(batched || input.dim() == int64_t(D) + 1, name, ": expected an input with ", D + 1, " or ",
              D + 2, " dims, got ", input.dim());
  const int64_t first = input.dim() - int64_t(D);
  std::vector<int64_t> size;
  if (options.output_size()) {
    const auto& sizes = **options.output_size();
    size.assign(sizes.begin(), sizes.end());
  } else {
    for (size_t d = 0; d < D; ++d) {
      const double r = (**options.output_ratio())[d];
      VESTA_CHECK(r > 0 && r < 1, name, ": expected an output_ratio between 0 and 1, got ", r);
      size.push_back(int64_t(double(input.size(first + int64_t(d))) * r));
    }
  }
  Tensor samples = options._random_samples();
  if (!samples.defined())
    samples = rand({batched ? input.size(0) : 1, input.size(first - 1), int64_t(D)}, input.options());
  if constexpr (D == 2)
    return vesta::fractional_max_pool2d(input, options.kernel_size(), size, samples);
  else
    return vesta::fractional_max_pool3d(input, options.kernel_size(), size, samples);
}

// The size that was pooled: given, or the smallest possible one.
template <size_t D>
std::vector<int64_t> unpooled_size(const char* name, const Tensor& input,
                                   const MaxUnpoolFuncOptions<D>& options) {
  VESTA_CHECK(input.dim() >= int64_t(D), name, ": expected at least ", D, " dims, got ", input.dim());
  std::vector<int64_t> smallest;
  for (size_t d = 0; d < D; ++d) {
    const int64_t k = (*options.kernel_size())[d], s = (*options.stride())[d], p = (*options.padding())[d];
    constexpr int64_t kLimit = int64_t(1) << 31;
    VESTA_CHECK(k > 0 && k < kLimit && s > 0 && s < kLimit && p >= 0 && p < kLimit, name,
                ": expected kernel_size and stride in [1, 2^31) and padding in [0, 2^31)");
    smallest.push_back((input.size(input.dim() - int64_t(D) + int64_t(d)) - 1) * s + k - 2 * p);
  }
  if (!options.output_size()) return smallest;
  std::vector<int64_t> size = *options.output_size();
  if (size.size() > D) size.erase(size.begin(), size.end() - D);
  VESTA_CHECK(size.size() == D, name, ": expected ", D, " values for output_size, got ", size.size());
  for (size_t d = 0; d < D; ++d) {
    const int64_t s = (*options.stride())[d];
    VESTA_CHECK(size[d] > smallest[d] - s && size[d] < smallest[d] + s, name,
                ": expected output_size within ", s, " of ", smallest[d], " at spatial dim ", d, ", got ",
                size[d]);
  }
  return size;
}

// The p-norm from the mean of the window's powers.
Tensor from_mean(const Tensor& mean, double elements, double p) {
  return (mean.sign() * vesta::relu(mean.abs())).mul(elements).pow(1 / p);
}

}  // namespace

Tensor avg_pool1d(const Tensor& input, const AvgPool1dFuncOptions& o) {
  return vesta::avg_pool1d(input, o.kernel_size(), o.stride(), o.padding(), o.ceil_mode(),
                           o.count_include_pad());
}
Tensor avg_pool2d(const Tensor& input, const AvgPool2dFuncOptions& o) {
  return vesta::avg_pool2d(input, o.kernel_size(), o.stride(), o.padding(), o.ceil_mode(),
                           o.count_include_pad(), o.divisor_override());
}
Tensor avg_pool3d(const Tensor& input, const AvgPool3dFuncOptions& o) {
  return vesta::avg_pool3d(input, o.kernel_size(), o.stride(), o.padding(), o.ceil_mode(),
                           o.count_include_pad(), o.divisor_override());
}
Tensor max_pool1d(const Tensor& input, const MaxPool1dFuncOptions& o) {
  return vesta::max_pool1d(input, o.kernel_size(), o.stride(), o.padding(), o.dilation(), o.ceil_mode());
}
Tensor max_pool2d(const Tensor& input, const MaxPool2dFuncOptions& o) {
  return vesta::max_pool2d(input, o.kernel_size(), o.stride(), o.padding(), o.dilation(), o.ceil_mode());
}
Tensor max_pool3d(const Tensor& input, const MaxPool3dFuncOptions& o) {
  return vesta::max_pool3d(input, o.kernel_size(), o.stride(), o.padding(), o.dilation(), o.ceil_mode());
}
std::tuple<Tensor, Tensor> max_pool1d_with_indices(const Tensor& input, const MaxPool1dFuncOptions& o) {
  return vesta::max_pool1d_with_indices(input, o.kernel_size(), o.stride(), o.padding(), o.dilation(),
                                        o.ceil_mode());
}
std::tuple<Tensor, Tensor> max_pool2d_with_indices(const Tensor& input, const MaxPool2dFuncOptions& o) {
  return vesta::max_pool2d_with_indices(input, o.kernel_size(), o.stride(), o.padding(), o.dilation(),
                                        o.ceil_mode());
}
std::tuple<Tensor, Tensor> max_pool3d_with_indices(const Tensor& input, const MaxPool3dFuncOptions& o) {
  return vesta::max_pool3d_with_indices(input, o.kernel_size(), o.stride(), o.padding(), o.dilation(),
                                        o.ceil_mode());
}

#define VESTA_ADAPTIVE(D)                                                                          \
  Tensor adaptive_avg_pool##D##d(const Tensor& input, const AdaptiveAvgPool##D##dFuncOptions& o) { \
    return vesta::adaptive_avg_pool##D##d(                                                         \
        input, sizes_or_input("adaptive_avg_pool" #D "d", input, o.output_size()));                \
  }                                                                                                \
  std::tuple<Tensor, Tensor> adaptive_max_pool##D##d_with_indices(                                 \
      const Tensor& input, const AdaptiveMaxPool##D##dFuncOptions& o) {                            \
    return vesta::adaptive_max_pool##D##d(                                                         \
        input, sizes_or_input("adaptive_max_pool" #D "d", input, o.output_size()));                \
  }                                                                                                \
  Tensor adaptive_max_pool##D##d(const Tensor& input, const AdaptiveMaxPool##D##dFuncOptions& o) { \
    return std::get<0>(functional::adaptive_max_pool##D##d_with_indices(input, o));                \
  }
VESTA_ADAPTIVE(1)
VESTA_ADAPTIVE(2)
VESTA_ADAPTIVE(3)
#undef VESTA_ADAPTIVE

std::tuple<Tensor, Tensor> fractional_max_pool2d_with_indices(const Tensor& input,
                                                              const FractionalMaxPool2dFuncOptions& o) {
  return fractional("fractional_max_pool2d", input, o);
}
std::tuple<Tensor, Tensor> fractional_max_pool3d_with_indices(const Tensor& input,
                                                              const FractionalMaxPool3dFuncOptions& o) {
  return fractional("fractional_max_pool3d", input, o);
}
Tensor fractional_max_pool2d(const Tensor& input, const FractionalMaxPool2dFuncOptions& o) {
  return std::get<0>(fractional("fractional_max_pool2d", input, o));
}
Tensor fractional_max_pool3d(const Tensor& input, const FractionalMaxPool3dFuncOptions& o) {
  return std::get<0>(fractional("fractional_max_pool3d", input, o));
}

Tensor max_unpool1d(const Tensor& input, const Tensor& indices, const MaxUnpool1dFuncOptions& o) {
  const std::vector<int64_t> size = unpooled_size("max_unpool1d", input, o);
  return vesta::max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), {size[0], 1}).squeeze(-1);
}
Tensor max_unpool2d(const Tensor& input, const Tensor& indices, const MaxUnpool2dFuncOptions& o) {
  return vesta::max_unpool2d(input, indices, unpooled_size("max_unpool2d", input, o));
}
Tensor max_unpool3d(const Tensor& input, const Tensor& indices, const MaxUnpool3dFuncOptions& o) {
  return vesta::max_unpool3d(input, indices, unpooled_size("max_unpool3d", input, o), o.stride(),
                             o.padding());
}

Tensor lp_pool1d(const Tensor& input, const LPPool1dFuncOptions& o) {
  const Tensor mean =
      vesta::avg_pool1d(input.pow(o.norm_type()), o.kernel_size(), o.stride(), 0, o.ceil_mode());
  return from_mean(mean, double((*o.kernel_size())[0]), o.norm_type());
}
Tensor lp_pool2d(const Tensor& input, const LPPool2dFuncOptions& o) {
  const auto& k = *o.kernel_size();
  const Tensor mean =
      vesta::avg_pool2d(input.pow(o.norm_type()), o.kernel_size(), o.stride(), 0, o.ceil_mode());
  return from_mean(mean, double(k[0]) * double(k[1]), o.norm_type());
}
Tensor lp_pool3d(const Tensor& input, const LPPool3dFuncOptions& o) {
  const auto& k = *o.kernel_size();
  const Tensor mean =
      vesta::avg_pool3d(input.pow(o.norm_type()), o.kernel_size(), o.stride(), 0, o.ceil_mode());
  return from_mean(mean, double(k[0]) * double(k[1]) * double(k[2]), o.norm_type());
}

}  // namespace vesta::nn::functional
