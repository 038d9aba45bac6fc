#pragma once
// Brings any tensor and list of dims into the (outer, reduced, inner) form that the reduction kernels take.
#include "kernels/cpu/reduce.h"
#include "vesta/tensor.h"

namespace vesta {

struct ReduceLayout {
  Tensor keep;  // the copy, where one was needed
  const void* data;
  cpu::ReduceShape shape;
};

// `dims` wrapped and sorted. The kept dims' order in the result is that of the input.
ReduceLayout reduce_layout(const Tensor& t, const std::vector<int64_t>& dims);

// Whether the reduced dims of a contiguous tensor are two runs with kept dims between them (batch and space around the
// channels): then two reductions, the inner run first, save the copy. outer reduces what inner writes.
bool two_runs(const Tensor& t, const std::vector<int64_t>& dims, cpu::ReduceShape& inner, cpu::ReduceShape& outer);

}  // namespace vesta
