// Gradients of reductions: argument checks and the choice of the CPU level.
#include "kernels/cpu/reduce_backward.h"

#include <vesta/error.h>

#include "kernels/cpu/isa_table.h"

namespace vesta::cpu {

VESTA_ISA_TABLE(ReduceBackwardTable, kReduceBackwardTable, reduce_backward_table)

namespace {

bool any_elements(const char* op, Elem type, ReduceShape shape) {
  VESTA_CHECK_AS(TypeError, is_float(type), op, ": expected a floating point type");
  VESTA_CHECK(shape.outer >= 0 && shape.reduced >= 0 && shape.inner >= 0, op, ": negative size");
  return shape.outer > 0 && shape.reduced > 0 && shape.inner > 0;
}

}  // namespace

void var_backward(Elem type, const void* grad, const void* x, void* dx, ReduceShape shape, double scale) {
  if (any_elements("var_backward", type, shape)) reduce_backward_table().var(type, grad, x, dx, shape, scale);
}

void prod_backward(Elem type, const void* grad, const void* x, void* dx, ReduceShape shape) {
  if (any_elements("prod_backward", type, shape)) reduce_backward_table().prod(type, grad, x, dx, shape);
}

}  // namespace vesta::cpu
