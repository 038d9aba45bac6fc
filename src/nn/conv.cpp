// Conv1d to 3d, ConvTranspose1d to 3d, Fold, Unfold.
#include <cmath>
#include <ostream>

#include "vesta/nn.h"
#include "vesta/ops.h"

namespace vesta::nn {
namespace {

void print_list(std::ostream& out, IntArrayRef list) {
  out << "[";
  for (size_t i = 0; i < list.size(); ++i) out << (i ? ", " : "") << list[i];
  out << "]";
}
bool all_are(IntArrayRef list, int64_t value) {
  for (int64_t v : list)
    if (v != value) return false;
  return true;
}
const char* mode_name(PadMode mode) {
  switch (mode) {
    case PadMode::Reflect:
      return "kReflect";
    case PadMode::Replicate:
      return "kReplicate";
    case PadMode::Circular:
      return "kCircular";
    case PadMode::Constant:
      break;
  }
  return "kZeros";
}
std::string_view operator_mode(PadMode mode) {
  return mode == PadMode::Reflect ? "reflect" : mode == PadMode::Replicate ? "replicate" : "circular";
}
constexpr const char* kConvNames[] = {"Conv1d", "Conv2d", "Conv3d"};
constexpr const char* kTransposeNames[] = {"ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"};

template <class Options>
detail::ConvLayerSizes sizes_of(const char* layer, const Options& o) {
  return {layer, o.in_channels(), o.out_channels(), o.groups(), o.kernel_size()};
}

}  // namespace

namespace detail {

Tensor new_conv_weight(const ConvLayerSizes& s, bool transposed) {
  VESTA_CHECK(s.in_channels > 0 && s.out_channels > 0 && s.groups > 0, s.layer,
              ": expected positive channels and groups, got in_channels ", s.in_channels, ", out_channels ",
              s.out_channels, " and groups ", s.groups);
  VESTA_CHECK(s.in_channels % s.groups == 0 && s.out_channels % s.groups == 0, s.layer, ": in_channels ",
              s.in_channels, " and out_channels ", s.out_channels, " must be divisible by groups ", s.groups);
  for (int64_t k : s.kernel_size) VESTA_CHECK(k > 0, s.layer, ": expected a positive kernel_size, got ", k);
  std::vector<int64_t> shape{transposed ? s.in_channels : s.out_channels,
                             (transposed ? s.out_channels : s.in_channels) / s.groups};
  shape.insert(shape.end(), s.kernel_size.begin(), s.kernel_size.end());
  return vesta::empty(shape);
}

void reset_conv_parameters(const Tensor& weight, const Tensor& bias) {
  // kaiming_uniform with a = sqrt(5): U(-1/sqrt(fan_in), 1/sqrt(fan_in)), PyTorch's default.
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  if (!bias.defined()) return;
  const int64_t fan_in = weight.numel() / weight.size(0);
  const double bound = 1 / std::sqrt(double(fan_in));
  init::uniform_(bias, -bound, bound);
}

std::vector<int64_t> conv_border(IntArrayRef kernel, IntArrayRef dilation, IntArrayRef padding, bool same) {
  std::vector<int64_t> border;
  for (size_t i = kernel.size(); i-- > 0;) {
    const int64_t total = same ? dilation[i] * (kernel[i] - 1) : 0;
    border.push_back(same ? total / 2 : padding[i]);
    border.push_back(same ? total - total / 2 : padding[i]);
  }
  return border;
}

void describe_conv(std::ostream& out, const ConvLayerSizes& s, IntArrayRef stride, IntArrayRef padding,
                   const PaddingName* name, IntArrayRef dilation, IntArrayRef output_padding, bool bias,
                   PadMode mode) {
  // One number for one dim, as libtorch prints it.
  const auto print_sizes = [&out](IntArrayRef list) {
    if (list.size() == 1)
      out << list[0];
    else
      print_list(out, list);
  };
  out << "vesta::nn::" << s.layer << "(" << s.in_channels << ", " << s.out_channels << ", kernel_size=";
  print_sizes(s.kernel_size);
  out << ", stride=";
  print_sizes(stride);
  const auto unless = [&](const char* label, IntArrayRef list, int64_t plain) {
    if (all_are(list, plain)) return;
    out << ", " << label << "=";
    print_sizes(list);
  };
  if (name)
    out << ", padding='" << (*name == PaddingName::Same ? "same" : "valid") << "'";
  else
    unless("padding", padding, 0);
  unless("dilation", dilation, 1);
  unless("output_padding", output_padding, 0);
  if (s.groups != 1) out << ", groups=" << s.groups;
  if (!bias) out << ", bias=false";
  if (mode != kZeros) out << ", padding_mode=" << mode_name(mode);
  out << ")";
}

std::vector<int64_t> conv_output_padding(const char* layer, const Tensor& input, IntArrayRef output_size,
                                         IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding,
                                         IntArrayRef dilation) {
  const size_t dims = kernel.size(), extra = size_t(input.dim()) - dims;
  VESTA_CHECK(size_t(input.dim()) == dims + 1 || size_t(input.dim()) == dims + 2, layer,
              ": expected an input with ", dims + 1, " or ", dims + 2, " dims, got ", input.dim());
  VESTA_CHECK(output_size.size() == dims || output_size.size() == dims + extra, layer,
              ": expected an output_size of ", dims, " or ", dims + extra, " values, got ",
              output_size.size());
  IntArrayRef want = output_size.slice(output_size.size() - dims, dims);
  std::vector<int64_t> result;
  for (size_t d = 0; d < dims; ++d) {
    const int64_t least =
        (input.size(int64_t(d + extra)) - 1) * stride[d] - 2 * padding[d] + dilation[d] * (kernel[d] - 1) + 1;
    VESTA_CHECK(want[d] >= least && want[d] < least + stride[d], layer, ": expected an output_size from ",
                least, " to ", least + stride[d] - 1, " at dim ", d, ", got ", want[d]);
    result.push_back(want[d] - least);
  }
  return result;
}

}  // namespace detail

template <size_t D, class Derived>
ConvNdImpl<D, Derived>::ConvNdImpl(const ConvOptions<D>& o) : options(o) {
  const auto sizes = sizes_of(kConvNames[D - 1], options);
  weight = this->register_parameter("weight", detail::new_conv_weight(sizes, false));
  if (options.bias())
    bias = this->register_parameter("bias", vesta::empty({options.out_channels()}));
  else
    this->register_parameter("bias", {}, false);
  const PaddingName* name = options.padding().name();
  const bool same = name && *name == PaddingName::Same;
  VESTA_CHECK(!same || all_are(options.stride(), 1), sizes.layer,
              ": padding='same' is not supported for strided convolutions");
  if (options.padding_mode() != kZeros) {
    const ExpandingArray<D> none = 0;
    border_ = detail::conv_border(options.kernel_size(), options.dilation(),
                                  name ? none : options.padding().values(), same);
  }
  reset_parameters();
}
template <size_t D, class Derived>
void ConvNdImpl<D, Derived>::describe(std::ostream& out) const {
  const PaddingName* name = options.padding().name();
  const ExpandingArray<D> none = 0;
  detail::describe_conv(out, sizes_of(kConvNames[D - 1], options), options.stride(),
                        name ? none : options.padding().values(), name, options.dilation(), none,
                        options.bias(), options.padding_mode());
}
template <size_t D, class Derived>
Tensor ConvNdImpl<D, Derived>::forward(const Tensor& input) {
  ConvFuncOptions<D> o;
  o.bias(bias)
      .stride(options.stride())
      .padding(options.padding())
      .dilation(options.dilation())
      .groups(options.groups());
  Tensor x = input;
  if (options.padding_mode() != kZeros) {
    VESTA_CHECK(input.dim() == D + 1 || input.dim() == D + 2, kConvNames[D - 1], ": expected an input with ",
                D + 1, " or ", D + 2, " dims, got ", input.dim());
    x = vesta::pad(input, border_, operator_mode(options.padding_mode()));
    o.padding(0);
  }
  if constexpr (D == 1)
    return functional::conv1d(x, weight, o);
  else if constexpr (D == 2)
    return functional::conv2d(x, weight, o);
  else
    return functional::conv3d(x, weight, o);
}

template <size_t D, class Derived>
ConvTransposeNdImpl<D, Derived>::ConvTransposeNdImpl(const ConvTransposeOptions<D>& o) : options(o) {
  const auto sizes = sizes_of(kTransposeNames[D - 1], options);
  weight = this->register_parameter("weight", detail::new_conv_weight(sizes, true));
  if (options.bias())
    bias = this->register_parameter("bias", vesta::empty({options.out_channels()}));
  else
    this->register_parameter("bias", {}, false);
  reset_parameters();
}
template <size_t D, class Derived>
void ConvTransposeNdImpl<D, Derived>::describe(std::ostream& out) const {
  detail::describe_conv(out, sizes_of(kTransposeNames[D - 1], options), options.stride(), options.padding(),
                        nullptr, options.dilation(), options.output_padding(), options.bias(),
                        options.padding_mode());
}
template <size_t D, class Derived>
Tensor ConvTransposeNdImpl<D, Derived>::forward(const Tensor& input,
                                                const std::optional<IntArrayRef>& output_size) {
  VESTA_CHECK(options.padding_mode() == kZeros, kTransposeNames[D - 1],
              ": expected the padding mode kZeros, got ", mode_name(options.padding_mode()));
  ConvTransposeFuncOptions<D> o;
  o.bias(bias).stride(options.stride()).padding(options.padding()).output_padding(options.output_padding());
  o.groups(options.groups()).dilation(options.dilation());
  if (output_size)
    o.output_padding(detail::conv_output_padding(kTransposeNames[D - 1], input, *output_size,
                                                 options.kernel_size(), options.stride(), options.padding(),
                                                 options.dilation()));
  if constexpr (D == 1)
    return functional::conv_transpose1d(input, weight, o);
  else if constexpr (D == 2)
    return functional::conv_transpose2d(input, weight, o);
  else
    return functional::conv_transpose3d(input, weight, o);
}

template class ConvNdImpl<1, Conv1dImpl>;
template class ConvNdImpl<2, Conv2dImpl>;
template class ConvNdImpl<3, Conv3dImpl>;
template class ConvTransposeNdImpl<1, ConvTranspose1dImpl>;
template class ConvTransposeNdImpl<2, ConvTranspose2dImpl>;
template class ConvTransposeNdImpl<3, ConvTranspose3dImpl>;

namespace {

template <class Options>
void print_windows(std::ostream& out, const Options& o) {
  out << "kernel_size=";
  print_list(out, o.kernel_size());
  out << ", dilation=";
  print_list(out, o.dilation());
  out << ", padding=";
  print_list(out, o.padding());
  out << ", stride=";
  print_list(out, o.stride());
  out << ")";
}

}  // namespace

void FoldImpl::describe(std::ostream& out) const {
  out << "vesta::nn::Fold(output_size=";
  print_list(out, options.output_size());
  out << ", ";
  print_windows(out, options);
}
void UnfoldImpl::describe(std::ostream& out) const {
  out << "vesta::nn::Unfold(";
  print_windows(out, options);
}

}  // namespace vesta::nn
