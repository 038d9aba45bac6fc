// Softmax: argument checks and the choice of the CPU level.
#include "kernels/cpu/softmax.h"

#include <vesta/error.h>

#include "kernels/cpu/isa_table.h"

namespace vesta::cpu {

VESTA_ISA_TABLE(SoftmaxTable, kSoftmaxTable, softmax_table)

void softmax_forward(Elem type, const void* x, void* y, SoftmaxShape shape, bool log, bool safe) {
  VESTA_CHECK_AS(TypeError, is_float(type), "softmax: expected a floating point type");
  softmax_table().forward(type, x, y, shape, log, safe);
}

void softmax_backward(Elem type, const void* dy, const void* y, void* dx, SoftmaxShape shape, bool log) {
  VESTA_CHECK_AS(TypeError, is_float(type), "softmax_backward: expected a floating point type");
  softmax_table().backward(type, dy, y, dx, shape, log);
}

}  // namespace vesta::cpu
