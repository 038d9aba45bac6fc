#pragma once
// p-norm distances between rows, and their gradients; cosines. F32 and F64, contiguous. Sums are per pair (forward) or per row
// (gradients), so results do not depend on the number of threads. p in [0, infinity]; p = 0 counts unequal elements.
#include <cstdint>

#include "base/cpu_isa.h"
#include "kernels/cpu/elem.h"

namespace vesta::cpu {

// out (batch, n1, n2) = distances of the rows of x1 (batch, n1, dim) and x2 (batch, n2, dim).
void cdist(Elem type, const void* x1, const void* x2, void* out, int64_t batch, int64_t n1, int64_t n2,
           int64_t dim, double p);
// dx1 from dy and dist, both (batch, n1, n2).
void cdist_backward(Elem type, const void* dy, const void* x1, const void* x2, const void* dist, void* dx1,
                    int64_t batch, int64_t n1, int64_t n2, int64_t dim, double p);
// out: distances of the pairs i < j of x's (n, dim) rows, (0, 1), (0, 2), ... (n - 2, n - 1).
void pdist(Elem type, const void* x, void* out, int64_t n, int64_t dim, double p);
void pdist_backward(Elem type, const void* dy, const void* x, const void* dist, void* dx, int64_t n,
                    int64_t dim, double p);

// out (outer, inner) = cosines of the angles between the vectors along the middle of x and y (outer, dim, inner), lengths
// taken as at least eps. Any float type; one pass, sums in float (double for F64) by blocks. Vectors whose squares leave
// the type's range are done again in double, normalised first.
void cosine_similarity(Elem type, const void* x, const void* y, void* out, int64_t outer, int64_t dim,
                       int64_t inner, double eps);

struct DistanceTable {
  void (*cdist)(Elem, const void*, const void*, void*, int64_t, int64_t, int64_t, int64_t, double);
  void (*cdist_backward)(Elem, const void*, const void*, const void*, const void*, void*, int64_t, int64_t,
                         int64_t, int64_t, double);
  void (*pdist)(Elem, const void*, void*, int64_t, int64_t, double);
  void (*pdist_backward)(Elem, const void*, const void*, const void*, void*, int64_t, int64_t, double);
  void (*cosine)(Elem, const void*, const void*, void*, int64_t, int64_t, int64_t, double);
};
const DistanceTable& distance_table(CpuIsa level);

}  // namespace vesta::cpu
