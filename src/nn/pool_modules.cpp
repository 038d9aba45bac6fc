// Modules of pooling and upsampling: forward, and how they print (as libtorch's).
#include <ostream>

#include "vesta/nn_pool.h"

namespace vesta::nn {
namespace detail {
namespace {

// One number, or [a, b].
template <class T, class Print>
void print_list(std::ostream& out, ArrayRef<T> values, Print print) {
  if (values.size() == 1) return print(out, values[0]);
  out << "[";
  for (size_t i = 0; i < values.size(); ++i) {
    if (i) out << ", ";
    print(out, values[i]);
  }
  out << "]";
}
void print(std::ostream& out, IntArrayRef values) {
  print_list(out, values, [](std::ostream& o, int64_t v) { o << v; });
}

}  // namespace

void describe_kernel(std::ostream& out, const char* name, IntArrayRef kernel, IntArrayRef stride,
                     IntArrayRef padding) {
  out << "vesta::nn::" << name << "(kernel_size=";
  print(out, kernel);
  out << ", stride=";
  print(out, stride);
  out << ", padding=";
  print(out, padding);
  out << ")";
}
void describe_pool(std::ostream& out, const char* name, IntArrayRef kernel, IntArrayRef stride,
                   IntArrayRef padding, IntArrayRef dilation, bool ceil_mode) {
  out << "vesta::nn::" << name << "(kernel_size=";
  print(out, kernel);
  out << ", stride=";
  print(out, stride);
  out << ", padding=";
  print(out, padding);
  out << ", dilation=";
  print(out, dilation);
  out << ", ceil_mode=" << (ceil_mode ? "true" : "false") << ")";
}
void describe_sizes(std::ostream& out, const char* name, ArrayRef<std::optional<int64_t>> sizes) {
  out << "vesta::nn::" << name << "(output_size=";
  print_list(out, sizes, [](std::ostream& o, const std::optional<int64_t>& v) {
    if (v)
      o << *v;
    else
      o << "None";
  });
  out << ")";
}
void describe_lp(std::ostream& out, const char* name, double norm_type, IntArrayRef kernel,
                 IntArrayRef stride, bool ceil_mode) {
  out << "vesta::nn::" << name << "(norm_type=" << norm_type << ", kernel_size=";
  print(out, kernel);
  out << ", stride=";
  print(out, stride);
  out << ", ceil_mode=" << (ceil_mode ? "true" : "false") << ")";
}

}  // namespace detail

#define VESTA_POOLS(D)                                                                                       \
  Tensor AvgPool##D##dImpl::forward(const Tensor& input) {                                                   \
    return functional::avg_pool##D##d(input, options);                                                       \
  }                                                                                                          \
  void AvgPool##D##dImpl::describe(std::ostream& out) const {                                                \
    detail::describe_kernel(out, "AvgPool" #D "d", options.kernel_size(), options.stride(),                  \
                            options.padding());                                                              \
  }                                                                                                          \
  Tensor MaxPool##D##dImpl::forward(const Tensor& input) {                                                   \
    return functional::max_pool##D##d(input, options);                                                       \
  }                                                                                                          \
  std::tuple<Tensor, Tensor> MaxPool##D##dImpl::forward_with_indices(const Tensor& input) {                  \
    return functional::max_pool##D##d_with_indices(input, options);                                          \
  }                                                                                                          \
  void MaxPool##D##dImpl::describe(std::ostream& out) const {                                                \
    detail::describe_pool(out, "MaxPool" #D "d", options.kernel_size(), options.stride(), options.padding(), \
                          options.dilation(), options.ceil_mode());                                          \
  }                                                                                                          \
  Tensor AdaptiveAvgPool##D##dImpl::forward(const Tensor& input) {                                           \
    return functional::adaptive_avg_pool##D##d(input, options);                                              \
  }                                                                                                          \
  void AdaptiveAvgPool##D##dImpl::describe(std::ostream& out) const {                                        \
    detail::describe_sizes(out, "AdaptiveAvgPool" #D "d", options.output_size());                            \
  }                                                                                                          \
  Tensor AdaptiveMaxPool##D##dImpl::forward(const Tensor& input) {                                           \
    return functional::adaptive_max_pool##D##d(input, options);                                              \
  }                                                                                                          \
  std::tuple<Tensor, Tensor> AdaptiveMaxPool##D##dImpl::forward_with_indices(const Tensor& input) {          \
    return functional::adaptive_max_pool##D##d_with_indices(input, options);                                 \
  }                                                                                                          \
  void AdaptiveMaxPool##D##dImpl::describe(std::ostream& out) const {                                        \
    detail::describe_sizes(out, "AdaptiveMaxPool" #D "d", options.output_size());                            \
  }                                                                                                          \
  Tensor MaxUnpool##D##dImpl::forward(const Tensor& input, const Tensor& indices,                            \
                                      const std::optional<std::vector<int64_t>>& output_size) {              \
    return functional::max_unpool##D##d(input, indices,                                                      \
                                        functional::MaxUnpool##D##dFuncOptions(options.kernel_size())        \
                                            .stride(options.stride())                                        \
                                            .padding(options.padding())                                      \
                                            .output_size(output_size));                                      \
  }                                                                                                          \
  void MaxUnpool##D##dImpl::describe(std::ostream& out) const {                                              \
    detail::describe_kernel(out, "MaxUnpool" #D "d", options.kernel_size(), options.stride(),                \
                            options.padding());                                                              \
  }                                                                                                          \
  Tensor LPPool##D##dImpl::forward(const Tensor& input) {                                                    \
    return functional::lp_pool##D##d(input, options);                                                        \
  }                                                                                                          \
  void LPPool##D##dImpl::describe(std::ostream& out) const {                                                 \
    detail::describe_lp(out, "LPPool" #D "d", options.norm_type(), options.kernel_size(), options.stride(),  \
                        options.ceil_mode());                                                                \
  }
VESTA_POOLS(1)
VESTA_POOLS(2)
VESTA_POOLS(3)
#undef VESTA_POOLS

#define VESTA_FRACTIONAL(D)                                                                           \
  FractionalMaxPool##D##dImpl::FractionalMaxPool##D##dImpl(const FractionalMaxPool##D##dOptions& o)   \
      : options(o) {                                                                                  \
    VESTA_CHECK(bool(o.output_size()) != bool(o.output_ratio()),                                      \
                "FractionalMaxPool" #D "d: expected either output_size or output_ratio");             \
    if (o.output_ratio())                                                                             \
      for (const double r : **o.output_ratio())                                                       \
        VESTA_CHECK(r > 0 && r < 1,                                                                   \
                    "FractionalMaxPool" #D "d: expected an output_ratio between 0 and 1, got ", r);   \
  }                                                                                                   \
  Tensor FractionalMaxPool##D##dImpl::forward(const Tensor& input) {                                  \
    return functional::fractional_max_pool##D##d(input, options);                                     \
  }                                                                                                   \
  std::tuple<Tensor, Tensor> FractionalMaxPool##D##dImpl::forward_with_indices(const Tensor& input) { \
    return functional::fractional_max_pool##D##d_with_indices(input, options);                        \
  }                                                                                                   \
  void FractionalMaxPool##D##dImpl::describe(std::ostream& out) const {                               \
    out << "vesta::nn::FractionalMaxPool" #D "d()";                                                   \
  }
VESTA_FRACTIONAL(2)
VESTA_FRACTIONAL(3)
#undef VESTA_FRACTIONAL

Tensor UpsampleImpl::forward(const Tensor& input) {
  return functional::interpolate(input, InterpolateFuncOptions()
                                            .size(options.size())
                                            .scale_factor(options.scale_factor())
                                            .mode(options.mode())
                                            .align_corners(options.align_corners()));
}
void UpsampleImpl::describe(std::ostream& out) const {
  static constexpr const char* kNames[] = {"kNearest",   "kLinear", "kBilinear",    "kBicubic",
                                           "kTrilinear", "kArea",   "kNearestExact"};
  auto list = [&](const auto& values) {
    out << "[";
    for (size_t i = 0; i < values.size(); ++i) out << (i ? ", " : "") << values[i];
    out << "]";
  };
  out << "vesta::nn::Upsample(";
  if (options.scale_factor()) {
    out << "scale_factor=";
    list(*options.scale_factor());
  } else if (options.size()) {
    out << "size=";
    list(*options.size());
  }
  out << ", mode=" << kNames[size_t(InterpolateMode(options.mode()))] << ")";
}
Tensor PixelShuffleImpl::forward(const Tensor& input) { return functional::pixel_shuffle(input, options); }
void PixelShuffleImpl::describe(std::ostream& out) const {
  out << "vesta::nn::PixelShuffle(upscale_factor=" << options.upscale_factor() << ")";
}
Tensor PixelUnshuffleImpl::forward(const Tensor& input) {
  return functional::pixel_unshuffle(input, options);
}
void PixelUnshuffleImpl::describe(std::ostream& out) const {
  out << "vesta::nn::PixelUnshuffle(downscale_factor=" << options.downscale_factor() << ")";
}

}  // namespace vesta::nn
