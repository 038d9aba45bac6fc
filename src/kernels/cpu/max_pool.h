#pragma once
// Maxima over windows of one to three spatial dims, with the position of each maximum, and moving values to and from
// such positions. Data is (outer, in[0], in[1], in[2], inner) as in kernels/cpu/resample.h; positions count elements
// of in[0] x in[1] x in[2]. NaN wins over everything; of equal maxima the first counts, of several NaN the last.
// An empty window gives the lowest value (-infinity) and position -1. Results do not depend on the number of threads.
#include <cstdint>
#include <vector>

#include "base/cpu_isa.h"
#include "kernels/cpu/elem.h"

namespace vesta::cpu {

struct PoolShape {
  int64_t outer = 1, inner = 1;
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1};
};
// Window o of a dim: o * stride - padding + j * dilation for j in [0, kernel), where inside of the input.
struct PoolWindow {
  int64_t kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, padding[3] = {0, 0, 0}, dilation[3] = {1, 1, 1};
};
// Window o of a dim: begin[o] .. end[o] - 1, inside of the input.
struct PoolRanges {
  std::vector<int64_t> begin[3], end[3];
};

// F32, F64 or I64.
void max_pool(Elem type, const void* x, void* y, int64_t* index, const PoolShape& s, const PoolWindow& w);
void max_pool_ranges(Elem type, const void* x, void* y, int64_t* index, const PoolShape& s,
                     const PoolRanges& w);

// Values to positions: dst (outer, to, inner) gets src (outer, from, inner) at index of the same shape, zeros elsewhere.
// Equal positions add up, or the last one counts where `add` is false. Positions are in [-1, to); -1 is skipped.
// F32, F64 (or I64 without add).
void scatter_positions(Elem type, const void* src, const int64_t* index, void* dst, int64_t outer,
                       int64_t from, int64_t to, int64_t inner, bool add);

struct MaxPoolTable {
  void (*regular)(Elem, const void*, void*, int64_t*, const PoolShape&, const PoolWindow&);
  void (*ranges)(Elem, const void*, void*, int64_t*, const PoolShape&, const PoolRanges&);
  void (*scatter)(Elem, const void*, const int64_t*, void*, int64_t, int64_t, int64_t, int64_t, bool);
};
const MaxPoolTable& max_pool_table(CpuIsa level);

}  // namespace vesta::cpu
