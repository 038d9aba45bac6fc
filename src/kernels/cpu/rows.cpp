// Row loops: the choice of the CPU level. Types are checked by the operators.
#include "kernels/cpu/rows.h"

#include "kernels/cpu/isa_table.h"

namespace vesta::cpu {

VESTA_ISA_TABLE(RowTable, kRowTable, row_table)

void add_row(Elem type, const void* x, void* acc, int64_t n) { row_table().add(type, x, acc, n); }
void add_scaled_row(Elem type, const void* x, double factor, void* acc, int64_t n) {
  row_table().add_scaled(type, x, factor, acc, n);
}
void mask_row(Elem type, const void* x, const uint8_t* mask, double scale, void* out, int64_t n) {
  row_table().mask(type, x, mask, scale, out, n);
}

}  // namespace vesta::cpu
