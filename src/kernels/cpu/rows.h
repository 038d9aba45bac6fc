#pragma once
// Inner loops over one row of elements, for operators whose outer loops follow indices: they live outside of isa/ and
// would run without vectors otherwise. Single-threaded; a call costs a few nanoseconds.
#include <cstdint>

#include "base/cpu_isa.h"
#include "kernels/cpu/elem.h"

namespace vesta::cpu {

// acc[i] += x[i] and acc[i] += factor * x[i]: acc is F64 for F64 x, F32 for the other floats. factor is rounded to acc's
// type, the product and the sum are rounded apart.
void add_row(Elem type, const void* x, void* acc, int64_t n);
void add_scaled_row(Elem type, const void* x, double factor, void* acc, int64_t n);
// acc[i] += sum over k of table[index[k]][i], one after the other; rows of n elements. `known` indices from index on may
// be read (at least `count`): rows of the next call are fetched ahead.
void add_indexed_rows(Elem type, const void* table, const int64_t* index, int64_t count, int64_t known,
                      void* acc, int64_t n);
// Least and largest of n > 0 numbers.
void row_limits(const int64_t* x, int64_t n, int64_t* least, int64_t* largest);
// to[i] = from[-i], elements of 1, 2, 4, 8 or 16 bytes.
void reverse_row(int64_t element_bytes, const void* from, void* to, int64_t n);
// out[i] = mask[i] ? x[i] * scale : 0, all of one float type.
void mask_row(Elem type, const void* x, const uint8_t* mask, double scale, void* out, int64_t n);

struct RowTable {
  void (*add)(Elem, const void*, void*, int64_t);
  void (*add_scaled)(Elem, const void*, double, void*, int64_t);
  void (*add_indexed)(Elem, const void*, const int64_t*, int64_t, int64_t, void*, int64_t);
  void (*limits)(const int64_t*, int64_t, int64_t*, int64_t*);
  void (*reverse)(int64_t, const void*, void*, int64_t);
  void (*mask)(Elem, const void*, const uint8_t*, double, void*, int64_t);
};
const RowTable& row_table(CpuIsa level);

}  // namespace vesta::cpu
