#pragma once
// Iteration over several operands of one broadcast shape: dims sorted by the first operand's strides and collapsed, so
// that most calls become one or two dims. Byte strides; stride 0 broadcasts.
#include <cstdint>

#include "vesta/tensor.h"

namespace vesta::cpu {

struct StridedLoop {
  static constexpr int kMaxOperands = 8, kMaxDims = 64;
  int ndim = 0, num_operands = 0;
  int64_t numel = 1;
  int64_t sizes[kMaxDims];                  // [0] is the innermost
  int64_t strides[kMaxOperands][kMaxDims];  // bytes
  char* data[kMaxOperands];

  // Starts with a shape (outermost first); add operands whose shape broadcasts to it, then call collapse.
  void set_shape(IntArrayRef shape);
  void add(const Tensor& t);
  void collapse();

  // Whether operand k is one run of `element` bytes a step.
  bool linear(int k, int64_t element) const {
    return ndim == 0 || (ndim == 1 && (strides[k][0] == element || sizes[0] == 1));
  }
  // The same over all dims: the elements follow each other in the loop's order.
  bool packed(int k, int64_t element) const {
    int64_t step = element;
    for (int d = 0; d < ndim; step *= sizes[d++])
      if (strides[k][d] != step && sizes[d] != 1) return false;
    return true;
  }
  // Calls run(pointer, inner_index_count, offset_in_chunk) for each inner run of operand k in [begin, begin + n).
  template <class Run>
  void runs(int k, int64_t begin, int64_t n, Run&& run) const;
};

template <class Run>
void StridedLoop::runs(int k, int64_t begin, int64_t n, Run&& run) const {
  if (ndim == 0) return run(data[k], n, int64_t(0));
  int64_t index[kMaxDims];
  int64_t rest = begin;
  char* p = data[k];
  for (int d = 0; d < ndim; ++d) {
    index[d] = rest % sizes[d];
    rest /= sizes[d];
    p += index[d] * strides[k][d];
  }
  int64_t done = 0;
  while (done < n) {
    int64_t length = sizes[0] - index[0];
    if (length > n - done) length = n - done;
    run(p, length, done);
    done += length;
    if (done >= n) return;
    // Advance the odometer from the start of the next inner run.
    p -= index[0] * strides[k][0];
    index[0] = 0;
    for (int d = 1; d < ndim; ++d) {
      p += strides[k][d];
      if (++index[d] < sizes[d]) break;
      p -= sizes[d] * strides[k][d];
      index[d] = 0;
    }
  }
}

}  // namespace vesta::cpu
