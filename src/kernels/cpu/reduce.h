#pragma once
// Reductions over the middle of a contiguous (outer, reduced, inner) array.
//
// The summation order is a contract, the same on every CPU level and for any thread count (inner == 1):
//   * the row is cut into blocks of 1,024 elements; in a block element i goes to lane i % 16 (i % 8 for F64) in order;
//   * lanes fold by halves (lane i with lane i + 8, then + 4, + 2, + 1); a short last block is padded with identities;
//   * blocks fold pairwise, neighbours first: (0,1), (2,3), ..., an odd last one moves up unchanged.
// For inner > 1 a block is 64 consecutive reduced elements, added in order; blocks fold the same way.
// At most 64 terms are added one after the other (1e7 x 0.1f is right to 1e-6; lanes of 256 terms were not).
// BF16 and F16 accumulate in float and round once at the end. Integers wrap.
#include <cstdint>

#include "base/cpu_isa.h"
#include "kernels/cpu/elem.h"

namespace vesta::cpu {

enum class ReduceOp : uint8_t {
  Sum,         // integers and Bool give I64
  Prod,        // integers and Bool give I64
  Max,         // NaN wins; result of the input's type
  Min,         // NaN wins
  Any,         // Bool; NaN is true
  All,         // Bool
  SumSquares,  // floats only
  SumAbs,      // floats only
  LogSumExp,   // floats only; only -inf gives -inf
};

struct ReduceShape {
  int64_t outer = 1, reduced = 1, inner = 1;
};

// The type that reduce() writes for an input type: I64, Bool or the input's.
Elem reduce_result_type(ReduceOp op, Elem type);

// out: [outer, inner] of `out_type`: reduce_result_type(), or F32 for BF16 and F16 input (keeps the accumulator).
// Nothing to reduce gives the identity (0, 1, false, true, -inf); Max and Min then throw ValueError.
// `scale` multiplies a float Sum's accumulator before it is rounded (mean: 1.0 / reduced).
void reduce(ReduceOp op, Elem type, const void* x, ReduceShape shape, void* out, Elem out_type,
            double scale = 1);

// Index of the largest (or smallest) element along the reduced dimension: the first on ties, the first NaN if any.
// index: I64 [outer, inner]; value: same shape of the input's type, or null. Throws ValueError for reduced == 0.
void arg_reduce(bool largest, Elem type, const void* x, ReduceShape shape, int64_t* index, void* value);

// Variance in two passes (mean first), divided by max(0, reduced - correction); its square root where `sqrt_result`.
// var and mean (may be null) are of the input's type, floats only. No degree of freedom gives NaN or inf as division
// does.
void var_mean(Elem type, const void* x, ReduceShape shape, double correction, bool sqrt_result, void* var,
              void* mean);

struct ReduceTable {
  void (*reduce)(ReduceOp, Elem, const void*, ReduceShape, void*, Elem, double);
  void (*arg_reduce)(bool, Elem, const void*, ReduceShape, int64_t*, void*);
  void (*var_mean)(Elem, const void*, ReduceShape, double, bool, void*, void*);
};
const ReduceTable& reduce_table(CpuIsa level);

}  // namespace vesta::cpu
