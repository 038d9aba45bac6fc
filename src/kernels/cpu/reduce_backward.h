#pragma once
// Gradients of variances and products over the middle of a contiguous (outer, reduced, inner) array, in one pass over
// memory where the pieces fit into the cache. grad is [outer, inner]; all of one float type, sums and products in float
// (double for F64). Chunks follow the shape alone: the thread count changes no bit.
#include <cstdint>

#include "base/cpu_isa.h"
#include "kernels/cpu/elem.h"
#include "kernels/cpu/reduce.h"

namespace vesta::cpu {

// dx = (x - mean(x)) * (grad * scale), the mean over the reduced elements in the order of reduce().
void var_backward(Elem type, const void* grad, const void* x, void* dx, ReduceShape shape, double scale);

// dx = grad * (product of all other reduced elements): exact where elements are zero.
void prod_backward(Elem type, const void* grad, const void* x, void* dx, ReduceShape shape);

struct ReduceBackwardTable {
  void (*var)(Elem, const void*, const void*, void*, ReduceShape, double);
  void (*prod)(Elem, const void*, const void*, void*, ReduceShape);
};
const ReduceBackwardTable& reduce_backward_table(CpuIsa level);

}  // namespace vesta::cpu
