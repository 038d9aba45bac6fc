#pragma once
// The attributes of a convolution call, checked and brought to one form, and the sizes that follow from them. Shared by
// the convolution and the fold families.
#include "ops/infer.h"
#include "vesta/op.h"

namespace vesta {

constexpr int kMaxSpatial = 3;

struct ConvParams {
  int dims = 0;  // spatial
  int64_t stride[kMaxSpatial], pad[kMaxSpatial], dilation[kMaxSpatial], output_pad[kMaxSpatial];
  bool transposed = false;
  int64_t groups = 1;
};

// Reads stride, padding, dilation, transposed, output_padding and groups at argument `first`. Lists have one element or
// `dims`. ValueError where a value makes no sense.
ConvParams conv_params(const Args& a, int first, int dims);
// Values of one attribute list: `dims` of them, each at least `least` and small enough for size arithmetic.
void read_conv_list(const Args& a, IntArrayRef list, const char* what, int dims, int64_t least, int64_t* out);
// Sizes of the result for input [N, C, ...] and weight; throws ValueError where the shapes do not fit. `bias` may be
// undefined.
SymDims conv_output_sizes(const Args& a, ArrayRef<SymInt> input, ArrayRef<SymInt> weight, const ConvParams& p);
// (in + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1, checked to be at least 1 unless `in` is 0 wide.
SymInt conv_output_size(const Args& a, SymInt in, SymInt kernel, int64_t stride, int64_t pad, int64_t dilation);
// Whether results take the channels-last order: a 4- or 5-dim tensor in that order and not contiguous.
bool is_channels_last(const Tensor& t);
// Dense strides of that order.
SymDims channels_last_strides(ArrayRef<SymInt> sizes);

}  // namespace vesta
