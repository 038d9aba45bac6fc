// Distances: argument checks and the choice of the CPU level.
#include "kernels/cpu/distance.h"

#include <vesta/error.h>

#include "kernels/cpu/isa_table.h"

namespace vesta::cpu {

VESTA_ISA_TABLE(DistanceTable, kDistanceTable, distance_table)

namespace {

void check(const char* what, Elem type, double p) {
  VESTA_CHECK_AS(TypeError, type == Elem::F32 || type == Elem::F64, what, ": expected float32 or float64");
  VESTA_CHECK(p >= 0, what, ": expected p >= 0, got ", p);
}

}  // namespace

void cdist(Elem type, const void* x1, const void* x2, void* out, int64_t batch, int64_t n1, int64_t n2,
           int64_t dim, double p) {
  check("cdist", type, p);
  distance_table().cdist(type, x1, x2, out, batch, n1, n2, dim, p);
}
void cdist_backward(Elem type, const void* dy, const void* x1, const void* x2, const void* dist, void* dx1,
                    int64_t batch, int64_t n1, int64_t n2, int64_t dim, double p) {
  check("cdist_backward", type, p);
  distance_table().cdist_backward(type, dy, x1, x2, dist, dx1, batch, n1, n2, dim, p);
}
void pdist(Elem type, const void* x, void* out, int64_t n, int64_t dim, double p) {
  check("pdist", type, p);
  distance_table().pdist(type, x, out, n, dim, p);
}
void pdist_backward(Elem type, const void* dy, const void* x, const void* dist, void* dx, int64_t n,
                    int64_t dim, double p) {
  check("pdist_backward", type, p);
  distance_table().pdist_backward(type, dy, x, dist, dx, n, dim, p);
}
void cosine_similarity(Elem type, const void* x, const void* y, void* out, int64_t outer, int64_t dim,
                       int64_t inner, double eps) {
  VESTA_CHECK_AS(TypeError, is_float(type), "cosine_similarity: expected a floating point type");
  distance_table().cosine(type, x, y, out, outer, dim, inner, eps);
}

}  // namespace vesta::cpu
