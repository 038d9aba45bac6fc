// Sorting and collapsing of dims.
#include "kernels/cpu/strided.h"

#include <algorithm>

#include "base/checked_math.h"

namespace vesta::cpu {

void StridedLoop::set_shape(IntArrayRef shape) {
  ndim = int(shape.size());
  numel = 1;
  for (int d = 0; d < ndim; ++d) {
    sizes[d] = shape[size_t(ndim - 1 - d)];
    numel = wrapping_mul(numel, sizes[d]);  // of an empty shape the others may be anything
  }
}

void StridedLoop::add(const Tensor& t) {
  int k = num_operands++;
  int64_t element = int64_t(t.element_size());
  int own = int(t.dim());
  data[k] = static_cast<char*>(t.data_ptr());
  for (int d = 0; d < ndim; ++d) {
    bool has = d < own && t.sizes()[size_t(own - 1 - d)] != 1;
    strides[k][d] = has ? wrapping_mul(t.strides()[size_t(own - 1 - d)], element) : 0;
  }
}

void StridedLoop::collapse() {
  // Insertion sort by the operands' strides in order; 0 says nothing. Stable, so contiguous input stays as it is.
  auto before = [&](int a, int b) {
    for (int k = 0; k < num_operands; ++k) {
      int64_t sa = strides[k][a], sb = strides[k][b];
      if (sa == 0 || sb == 0 || sa == sb) continue;
      return sa < sb;
    }
    return false;
  };
  auto swap_dims = [&](int a, int b) {
    std::swap(sizes[a], sizes[b]);
    for (int k = 0; k < num_operands; ++k) std::swap(strides[k][a], strides[k][b]);
  };
  for (int i = 1; i < ndim; ++i)
    for (int j = i; j > 0 && before(j, j - 1); --j) swap_dims(j, j - 1);
  int kept = 0;
  for (int d = 0; d < ndim; ++d) {
    if (sizes[d] == 1) continue;
    if (kept > 0) {
      bool joins = true;
      for (int k = 0; k < num_operands; ++k)
        joins &= wrapping_mul(strides[k][kept - 1], sizes[kept - 1]) == strides[k][d];
      if (joins) {
        sizes[kept - 1] = wrapping_mul(sizes[kept - 1], sizes[d]);
        continue;
      }
    }
    sizes[kept] = sizes[d];
    for (int k = 0; k < num_operands; ++k) strides[k][kept] = strides[k][d];
    ++kept;
  }
  ndim = kept;
}

}  // namespace vesta::cpu
