// Attributes of convolutions and the size formulas.
#include "ops/conv_params.h"

#include "base/checked_math.h"

namespace vesta {
namespace {

// Attributes and sizes below 2^31 keep every sum and product of two of them inside 64 bits.
constexpr int64_t kLargest = int64_t(1) << 31;

SymInt checked_size(const Args& a, SymInt v, const char* what) {
  VESTA_CHECK(v.is_symbolic() || (v.raw() >= 0 && v.raw() < kLargest), a.name(), ": ", what, " ", v.str(), " is too large");
  return v;
}

}  // namespace

void read_conv_list(const Args& a, IntArrayRef list, const char* what, int dims, int64_t least, int64_t* out) {
  VESTA_CHECK(int(list.size()) == dims || list.size() == 1, a.name(), ": expected 1 or ", dims, " values for ", what, ", got ", list.size());
  for (int d = 0; d < dims; ++d) {
    int64_t v = SymInt::from_raw(list.size() == 1 ? list[0] : list[size_t(d)]).as_int();
    VESTA_CHECK(v >= least && v < kLargest, a.name(), ": expected ", what, " of at least ", least, " and below 2^31, got ", v);
    out[d] = v;
  }
}

ConvParams conv_params(const Args& a, int first, int dims) {
  ConvParams p;
  p.dims = dims;
  VESTA_CHECK(dims >= 1 && dims <= kMaxSpatial, a.name(), ": expected an input with 3 to 5 dims, got ", dims + 2);
  read_conv_list(a, a.ints(first), "stride", dims, 1, p.stride);
  read_conv_list(a, a.ints(first + 1), "padding", dims, 0, p.pad);
  read_conv_list(a, a.ints(first + 2), "dilation", dims, 1, p.dilation);
  p.transposed = a.flag(first + 3);
  read_conv_list(a, a.ints(first + 4), "output_padding", dims, 0, p.output_pad);
  p.groups = SymInt::from_raw(a.integer(first + 5)).as_int();
  VESTA_CHECK(p.groups >= 1 && p.groups < kLargest, a.name(), ": expected groups of at least 1, got ", p.groups);
  if (p.transposed)
    for (int d = 0; d < dims; ++d)
      VESTA_CHECK(p.output_pad[d] < std::max(p.stride[d], p.dilation[d]), a.name(), ": output_padding must be smaller than stride or dilation, got ",
                  p.output_pad[d], " with stride ", p.stride[d], " and dilation ", p.dilation[d]);
  return p;
}

SymInt conv_output_size(const Args& a, SymInt in, SymInt kernel, int64_t stride, int64_t pad, int64_t dilation) {
  checked_size(a, in, "an input size of");
  checked_size(a, kernel, "a kernel size of");
  VESTA_CHECK(kernel >= 1, a.name(), ": expected a kernel size of at least 1, got ", kernel.str());
  SymInt padded = in + 2 * pad, reach = SymInt(dilation) * (kernel - 1) + 1;
  VESTA_CHECK(padded >= reach, a.name(), ": the padded input of size ", padded.str(), " is smaller than the kernel, which reaches over ", reach.str());
  return (padded - reach) / SymInt(stride) + 1;
}

SymDims conv_output_sizes(const Args& a, ArrayRef<SymInt> input, ArrayRef<SymInt> weight, const ConvParams& p) {
  size_t n = input.size();
  VESTA_CHECK(weight.size() == n, a.name(), ": expected a weight with ", n, " dims as the input has, got ", weight.size());
  for (size_t d = 0; d < n; ++d) checked_size(a, input[d], "an input size of"), checked_size(a, weight[d], "a weight size of");
  SymInt groups = p.groups;
  VESTA_CHECK(weight[0] >= groups && weight[0] % groups == 0, a.name(), ": the weight's ", weight[0].str(), " filters do not divide into ", p.groups, " groups");
  SymDims out;
  out.push_back(input[0]);
  if (p.transposed) {
    VESTA_CHECK(input[1] == weight[0], a.name(), ": expected an input with ", weight[0].str(), " channels, got ", input[1].str());
    out.push_back(weight[1] * groups);
  } else {
    VESTA_CHECK(input[1] == weight[1] * groups, a.name(), ": expected an input with ", (weight[1] * groups).str(), " channels, got ", input[1].str());
    out.push_back(weight[0]);
  }
  for (size_t d = 2; d < n; ++d) {
    size_t i = d - 2;
    if (!p.transposed) {
      out.push_back(conv_output_size(a, input[d], weight[d], p.stride[i], p.pad[i], p.dilation[i]));
      continue;
    }
    VESTA_CHECK(weight[d] >= 1, a.name(), ": expected a kernel size of at least 1, got ", weight[d].str());
    VESTA_CHECK(input[d] >= 1, a.name(), ": expected spatial sizes of at least 1, got ", input[d].str());
    SymInt size = (input[d] - 1) * SymInt(p.stride[i]) + SymInt(p.dilation[i]) * (weight[d] - 1) + SymInt(p.output_pad[i] + 1 - 2 * p.pad[i]);
    VESTA_CHECK(size >= 1, a.name(), ": the result would have size ", size.str(), " at dim ", d, "; the padding is too large");
    out.push_back(checked_size(a, size, "a result size of"));
  }
  return out;
}

bool is_channels_last(const Tensor& t) {
  if (!t.defined() || (t.dim() != 4 && t.dim() != 5) || t.is_contiguous()) return false;
  for (SymInt s : InferCtx::sizes_of(t))
    if (s.is_symbolic()) return false;
  return t.is_contiguous(t.dim() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d);
}

SymDims channels_last_strides(ArrayRef<SymInt> sizes) {
  SymDims strides(sizes.size());
  SymInt step = 1;
  auto place = [&](size_t d) {
    strides[d] = step;
    SymInt size = max(sizes[d], 1);
    step = step.is_symbolic() || size.is_symbolic() ? step * size : SymInt(checked_mul(step.raw(), size.raw(), "channels_last"));
  };
  place(1);
  for (size_t d = sizes.size() - 1; d >= 2; --d) place(d);
  place(0);
  return strides;
}

}  // namespace vesta
