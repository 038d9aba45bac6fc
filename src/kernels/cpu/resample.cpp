// Windowed sums: transposing windows, and the choice of the CPU level.
#include "kernels/cpu/resample.h"

#include <vesta/error.h>

#include "kernels/cpu/isa_table.h"

namespace vesta::cpu {

VESTA_ISA_TABLE(ResampleTable, kResampleTable, resample_table)

Taps Taps::transposed(int64_t inputs) const {
  Taps t;
  t.begin.reserve(size_t(inputs));
  t.end.reserve(size_t(inputs));
  const int64_t n = count();
  int64_t first = 0, last = 0;  // outputs [first, last) may read input i
  for (int64_t i = 0; i < inputs; ++i) {
    while (first < n && end[size_t(first)] <= i) ++first;
    if (last < first) last = first;
    while (last < n && begin[size_t(last)] <= i) ++last;
    t.add(first, last);
    if (weight.empty()) continue;
    t.offset.push_back(int64_t(t.weight.size()));
    for (int64_t o = first; o < last; ++o)
      t.weight.push_back(weight[size_t(offset[size_t(o)] + i - begin[size_t(o)])]);
  }
  return t;
}

namespace {

void check(const Resample& r) {
  for (int d = 0; d < 3; ++d) {
    VESTA_CHECK_AS(InternalError, r.taps[d].count() == r.out[d],
                   "resample: expected a window for each output");
    for (int64_t o = 0; o < r.out[d]; ++o)
      VESTA_CHECK_AS(InternalError, r.taps[d].begin[size_t(o)] >= 0 && r.taps[d].end[size_t(o)] <= r.in[d],
                     "resample: a window is outside of the input");
  }
}

}  // namespace

void resample(Elem type, const void* x, void* y, const Resample& r) {
  VESTA_CHECK_AS(TypeError, type == Elem::F32 || type == Elem::F64 || type == Elem::I64,
                 "resample: expected float32, float64 or int64");
  check(r);
  resample_table().sums(type, x, y, r);
}

void resample_pick(size_t bytes, const void* x, void* y, const Resample& r) {
  check(r);
  resample_table().pick(bytes, x, y, r);
}

}  // namespace vesta::cpu
