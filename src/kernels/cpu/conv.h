#pragma once
// Convolution on the CPU over 1 to 3 spatial dims, channels first or last: the product itself and its two transposes.
// Pointers and sizes only. A transposed convolution is conv_backward_data with the roles of x and y exchanged.
//
// How it works. Floating point runs on the GEMM kernels (gemm_kernels.h) without an im2col matrix. Where the result channels
// fill vectors, and for channels last, the source of a block of results is staged once with channels innermost, and
// register tiles of pixels x channels sum over all taps that lie inside (conv_chain.h). Other channels-first shapes have
// vectors along lines, whose patches are copied, a cache-sized block at a time, straight into the packed layout of the
// kernels (conv_first.cpp). The gradient in x is cut into stride[0] * stride[1] * stride[2] phases, each a convolution of dy
// with step 1 over the taps that meet it, so no product with an inserted zero is computed. Kernels of one element with unit
// stride in channels last are plain matrix products, one channel a group has its own loops (conv_depthwise.cpp).
// Integers, and float cases whose padded input would be far larger than the input, run in conv_direct.cpp.
//
// F16 and BF16 accumulate in float and round once. Work is cut by shape alone: the thread count changes no bit.
#include <cstdint>

#include "kernels/cpu/elem.h"

namespace vesta::cpu {

// Sizes of y = conv(x, w). Missing spatial dims come first with size 1, kernel 1, stride 1, padding 0, dilation 1.
// out[d] may be smaller than what the other sizes allow (as for the gradient of a transposed convolution with output
// padding), never larger.
struct ConvShape {
  int64_t batch = 0, groups = 1;
  int64_t x_channels = 0, y_channels = 0;  // of all groups
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1}, pad[3] = {0, 0, 0}, dilation[3] = {1, 1, 1};

  int64_t x_group() const { return x_channels / groups; }
  int64_t y_group() const { return y_channels / groups; }
  int64_t in_numel() const { return in[0] * in[1] * in[2]; }
  int64_t out_numel() const { return out[0] * out[1] * out[2]; }
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
};

// Whether the functions below take this shape in channels last; otherwise the caller brings it to channels first.
bool conv_takes_last(Elem type, const ConvShape& shape);

enum class ConvLayout : uint8_t { First, Last };  // [batch, channels, spatial] or [batch, spatial, channels]

// x [batch, x_channels, in], y [batch, y_channels, out], dense in `layout`; w [y_channels, x_channels / groups, kernel]
// contiguous; bias, where not null, has one element for each channel of the result. Bool is not taken (TypeError).
void conv_forward(Elem type, ConvLayout layout, const ConvShape& shape, const void* x, const void* w,
                  const void* bias, void* y);
// x = transpose of conv_forward in x, applied to y, plus bias (x_channels elements).
void conv_backward_data(Elem type, ConvLayout layout, const ConvShape& shape, const void* y, const void* w,
                        const void* bias, void* x);
// w = transpose of conv_forward in w, applied to y, for this x.
void conv_backward_weight(Elem type, ConvLayout layout, const ConvShape& shape, const void* y, const void* x,
                          void* w);

}  // namespace vesta::cpu
