#pragma once
// Separable weighted sums over windows of one to three spatial dims: average pooling, adaptive average pooling, all
// interpolations (nearest to bicubic and antialiased), and their gradients, which are the same sums with the windows
// transposed. Data is (outer, in[0], in[1], in[2], inner), contiguous; missing dims have size 1, inner is 1 for
// contiguous images and the number of channels for channels-last ones. Output rows are the threading unit, so results
// do not depend on the number of threads.
#include <cstdint>
#include <vector>

#include "base/cpu_isa.h"
#include "kernels/cpu/elem.h"

namespace vesta::cpu {

// The windows of one dim: output o reads inputs begin[o] .. end[o] - 1, with weight[offset[o] + j] each, or 1 where
// there are no weights. Both bounds never decrease with o; a window may be empty.
struct Taps {
  std::vector<int64_t> begin, end, offset;
  std::vector<double> weight;

  // Adds the window of the next output.
  void add(int64_t from, int64_t to) {
    begin.push_back(from);
    end.push_back(to);
  }
  void add(int64_t from, int64_t to, const double* weights) {
    add(from, to);
    offset.push_back(int64_t(weight.size()));
    weight.insert(weight.end(), weights, weights + (to - from));
  }
  int64_t count() const { return int64_t(begin.size()); }
  // The windows of the gradient: which outputs read input i, for `inputs` of them.
  Taps transposed(int64_t inputs) const;
};

struct Resample {
  int64_t outer = 1, inner = 1;
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1};
  Taps taps[3];
  // Divisors of an average: the product of one factor a dim. `out_divisor` divides each sum, `in_divisor` each input
  // before it is added (gradients). Empty vectors: none.
  std::vector<int64_t> out_divisor[3], in_divisor[3];
};

// y = windowed sums of x. F32, F64, or I64 without weights (its division truncates).
void resample(Elem type, const void* x, void* y, const Resample& r);

// Nearest neighbours: each output copies the one input begin[o], `bytes` (1, 2, 4 or 8) an element, any type.
void resample_pick(size_t bytes, const void* x, void* y, const Resample& r);

struct ResampleTable {
  void (*sums)(Elem, const void*, void*, const Resample&);
  void (*pick)(size_t, const void*, void*, const Resample&);
};
const ResampleTable& resample_table(CpuIsa level);

}  // namespace vesta::cpu
