// Convolution: chooses the algorithm for a shape.
#include "kernels/cpu/conv.h"

#include "kernels/cpu/conv_direct.h"

namespace vesta::cpu {

void conv_forward(Elem type, ConvLayout layout, const ConvShape& s, const void* x, const void* w, const void* bias, void* y) {
  (void)layout;
  conv_direct_forward(type, s, x, w, bias, y);
}
void conv_backward_data(Elem type, ConvLayout layout, const ConvShape& s, const void* y, const void* w, const void* bias, void* x) {
  (void)layout;
  conv_direct_backward_data(type, s, y, w, bias, x);
}
void conv_backward_weight(Elem type, ConvLayout layout, const ConvShape& s, const void* y, const void* x, void* w) {
  (void)layout;
  conv_direct_backward_weight(type, s, y, x, w);
}

}  // namespace vesta::cpu
