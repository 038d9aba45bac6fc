#pragma once
// Convolution by plain loops over the taps that lie inside: for integers, and for floats whose padded input would be far
// larger than the input (huge padding or dilation). Channels first. See conv.h for the arguments.
#include "kernels/cpu/conv.h"

namespace vesta::cpu {

void conv_direct_forward(Elem type, const ConvShape& shape, const void* x, const void* w, const void* bias,
                         void* y);
void conv_direct_backward_data(Elem type, const ConvShape& shape, const void* y, const void* w,
                               const void* bias, void* x);
void conv_direct_backward_weight(Elem type, const ConvShape& shape, const void* y, const void* x, void* w);

}  // namespace vesta::cpu
