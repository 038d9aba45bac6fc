// Reductions: argument checks and the choice of the CPU level.
#include "kernels/cpu/reduce.h"

#include <vesta/error.h>

#include "kernels/cpu/isa_table.h"

namespace vesta::cpu {

VESTA_ISA_TABLE(ReduceTable, kReduceTable, reduce_table)

Elem reduce_result_type(ReduceOp op, Elem type) {
  switch (op) {
    case ReduceOp::Sum:
    case ReduceOp::Prod:
      return sum_type(type);
    case ReduceOp::Any:
    case ReduceOp::All:
      return Elem::Bool;
    default:
      return type;
  }
}

void reduce(ReduceOp op, Elem type, const void* x, ReduceShape shape, void* out, Elem out_type,
            double scale) {
  VESTA_CHECK(shape.outer >= 0 && shape.reduced >= 0 && shape.inner >= 0, "reduce: negative size");
  VESTA_CHECK_AS(TypeError, is_float(type) || op < ReduceOp::SumSquares,
                 "reduce: expected a floating point type");
  const Elem result = reduce_result_type(op, type);
  VESTA_CHECK_AS(TypeError,
                 out_type == result || (out_type == Elem::F32 && elem_size(result) == 2 && is_float(result)),
                 "reduce: unsupported result type ", int(out_type));
  if (shape.outer == 0 || shape.inner == 0) return;
  VESTA_CHECK(shape.reduced > 0 || (op != ReduceOp::Max && op != ReduceOp::Min),
              "max/min: cannot reduce over a dimension of size 0");
  reduce_table().reduce(op, type, x, shape, out, out_type, scale);
}

void arg_reduce(bool largest, Elem type, const void* x, ReduceShape shape, int64_t* index, void* value) {
  VESTA_CHECK(shape.outer >= 0 && shape.reduced >= 0 && shape.inner >= 0, "argmax/argmin: negative size");
  if (shape.outer == 0 || shape.inner == 0) return;
  VESTA_CHECK(shape.reduced > 0, "argmax/argmin: cannot reduce over a dimension of size 0");
  reduce_table().arg_reduce(largest, type, x, shape, index, value);
}

void var_mean(Elem type, const void* x, ReduceShape shape, double correction, bool sqrt_result, void* var,
              void* mean) {
  VESTA_CHECK_AS(TypeError, is_float(type), "var: expected a floating point type");
  VESTA_CHECK(shape.outer >= 0 && shape.reduced >= 0 && shape.inner >= 0, "var: negative size");
  if (shape.outer == 0 || shape.inner == 0) return;
  reduce_table().var_mean(type, x, shape, correction, sqrt_result, var, mean);
}

}  // namespace vesta::cpu
