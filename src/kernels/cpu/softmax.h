#pragma once
// Softmax and log-softmax over the middle of a contiguous (outer, dim, inner) array, forward and backward.
// Types F32, F64, BF16, F16 (computed in float, or double for F64). Rows are the threading unit, so results do not
// depend on the number of threads. Strided inputs are the caller's business.
#include <cstdint>

#include "base/cpu_isa.h"
#include "kernels/cpu/elem.h"

namespace vesta::cpu {

struct SoftmaxShape {
  int64_t outer = 1, dim = 1, inner = 1;
};

// y = softmax(x), or log_softmax(x) where `log`. y may be x. A row of only -inf gives NaN, or 0 where `safe` (softmax
// only). A row that holds NaN or +inf gives NaN. Throws TypeError for a type that is not floating point.
void softmax_forward(Elem type, const void* x, void* y, SoftmaxShape shape, bool log, bool safe = false);

// dx from dy and the forward's result y: softmax y * (dy - sum(dy * y)); log_softmax dy - exp(y) * sum(dy).
// dx may be dy or y.
void softmax_backward(Elem type, const void* dy, const void* y, void* dx, SoftmaxShape shape, bool log);

struct SoftmaxTable {
  void (*forward)(Elem, const void*, void*, SoftmaxShape, bool, bool);
  void (*backward)(Elem, const void*, const void*, void*, SoftmaxShape, bool);
};
const SoftmaxTable& softmax_table(CpuIsa level);

}  // namespace vesta::cpu
