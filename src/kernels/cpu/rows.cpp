// Row loops: the choice of the CPU level. Types are checked by the operators.
#include "kernels/cpu/rows.h"

#include "kernels/cpu/isa_table.h"

namespace vesta::cpu {

VESTA_ISA_TABLE(RowTable, kRowTable, row_table)

void add_row(Elem type, const void* x, void* acc, int64_t n) { row_table().add(type, x, acc, n); }
void add_scaled_row(Elem type, const void* x, double factor, void* acc, int64_t n) {
  row_table().add_scaled(type, x, factor, acc, n);
}
void add_indexed_rows(Elem type, const void* table, const int64_t* index, int64_t count, int64_t known,
                      void* acc, int64_t n) {
  row_table().add_indexed(type, table, index, count, known, acc, n);
}
void row_limits(const int64_t* x, int64_t n, int64_t* least, int64_t* largest) {
  row_table().limits(x, n, least, largest);
}
void reverse_row(int64_t element_bytes, const void* from, void* to, int64_t n) {
  row_table().reverse(element_bytes, from, to, n);
}
void mask_row(Elem type, const void* x, const uint8_t* mask, double scale, void* out, int64_t n) {
  row_table().mask(type, x, mask, scale, out, n);
}

}  // namespace vesta::cpu
