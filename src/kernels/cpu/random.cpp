// Random numbers: the choice of the CPU level.
#include "kernels/cpu/random.h"

#include <vesta/error.h>

#include "kernels/cpu/isa_table.h"

namespace vesta::cpu {

VESTA_ISA_TABLE(RandomTable, kRandomTable, random_table)

void random_fill(Elem type, Distribution d, RandomStream s, double a, double b, void* out, int64_t n) {
  VESTA_CHECK_AS(TypeError, type == Elem::F32 || type == Elem::F64,
                 "random_fill: expected float32 or float64");
  random_table().fill(type, d, s, a, b, out, n);
}
void random_integers(RandomStream s, int64_t low, uint64_t range, int64_t* out, int64_t n) {
  random_table().integers(s, low, range, out, n);
}
void random_mask(RandomStream s, double p, uint8_t* out, int64_t n) { random_table().mask(s, p, out, n); }
void random_words(RandomStream s, uint64_t first_block, uint32_t* out, int64_t n) {
  random_table().words(s, first_block, out, n);
}

}  // namespace vesta::cpu
