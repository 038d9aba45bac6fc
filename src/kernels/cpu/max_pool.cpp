// Max pooling: argument checks and the choice of the CPU level.
#include "kernels/cpu/max_pool.h"

#include <vesta/error.h>

#include "kernels/cpu/isa_table.h"

namespace vesta::cpu {

VESTA_ISA_TABLE(MaxPoolTable, kMaxPoolTable, max_pool_table)

namespace {

void check_type(const char* what, Elem type) {
  VESTA_CHECK_AS(TypeError, type == Elem::F32 || type == Elem::F64 || type == Elem::I64, what,
                 ": expected float32, float64 or int64");
}

}  // namespace

void max_pool(Elem type, const void* x, void* y, int64_t* index, const PoolShape& s, const PoolWindow& w) {
  check_type("max_pool", type);
  max_pool_table().regular(type, x, y, index, s, w);
}

void max_pool_ranges(Elem type, const void* x, void* y, int64_t* index, const PoolShape& s,
                     const PoolRanges& w) {
  check_type("max_pool", type);
  for (int d = 0; d < 3; ++d)
    for (int64_t o = 0; o < s.out[d]; ++o)
      VESTA_CHECK_AS(InternalError, w.begin[d][size_t(o)] >= 0 && w.end[d][size_t(o)] <= s.in[d],
                     "max_pool: a window is outside of the input");
  max_pool_table().ranges(type, x, y, index, s, w);
}

void scatter_positions(Elem type, const void* src, const int64_t* index, void* dst, int64_t outer,
                       int64_t from, int64_t to, int64_t inner, bool add) {
  check_type("scatter_positions", type);
  max_pool_table().scatter(type, src, index, dst, outer, from, to, inner, add);
}

}  // namespace vesta::cpu
