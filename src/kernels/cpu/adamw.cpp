// Optimiser steps: argument checks and the choice of the CPU level.
#include "kernels/cpu/adamw.h"

#include <vesta/error.h>

#include "kernels/cpu/isa_table.h"

namespace vesta::cpu {

VESTA_ISA_TABLE(OptimTable, kOptimTable, optim_table)

namespace {

void check(const char* op, OptimTypes types) {
  const bool same = is_float(types.param) && types.grad == types.param &&
                    (types.state == types.param || (elem_size(types.param) == 2 && types.state == Elem::F32));
  const bool master = types.param == Elem::F32 && types.state == Elem::F32 &&
                      (types.grad == Elem::BF16 || types.grad == Elem::F16);
  VESTA_CHECK_AS(TypeError, same || master, op,
                 ": unsupported types of parameter, gradient and state: ", int(types.param), ", ",
                 int(types.grad), ", ", int(types.state));
}

}  // namespace

void adam_step(OptimTypes types, const AdamTensor* tensors, int64_t count, const AdamOptions& options) {
  check("adam_step", types);
  optim_table().adam(types, tensors, count, options);
}

void sgd_step(OptimTypes types, const SgdTensor* tensors, int64_t count, const SgdOptions& options) {
  check("sgd_step", types);
  optim_table().sgd(types, tensors, count, options);
}

double sum_of_squares(Elem type, const FlatTensor* tensors, int64_t count) {
  VESTA_CHECK_AS(TypeError, is_float(type), "sum_of_squares: expected a floating point type");
  return optim_table().sum_of_squares(type, tensors, count);
}

void scale_tensors(Elem type, const FlatTensor* tensors, int64_t count, double factor) {
  VESTA_CHECK_AS(TypeError, is_float(type), "scale_tensors: expected a floating point type");
  optim_table().scale(type, tensors, count, factor);
}

}  // namespace vesta::cpu
