#pragma once
// What a CPU level supplies to the packed GEMM driver (gemm_packed.cpp): one table of functions per compute type,
// filled in by isa/gemm_*.cpp. The driver knows blocking and threads; the tables know registers and instructions.
//
// A "unit" is what one broadcast feeds to a multiply: one element, or a pair of bf16 where the CPU multiplies pairs
// (`group` = 2). All K sizes and A/B strides below count units, unless they say elements.
#include <cstdint>

#include "base/cpu_isa.h"
#include "kernels/cpu/gemm.h"

namespace vesta::cpu {

// After this many k steps a strip's prefetches move on by next_skip.
constexpr int64_t kGemmPrefetchSteps = 32;

// One strip of C: `m` rows (at most GemmKernels::rows) by `n` columns, k units deep:
// c = alpha * sum + beta * c; beta 0 does not read c.
struct GemmStrip {
  const void* a;
  int64_t
      a_row;  // distance between rows (strip_rows) or between k steps (strip_columns; 0: GemmKernels::pitch)
  const void* b;
  int64_t b_panel;  // distance between panels of `columns` columns
  int64_t b_row;    // distance between B's rows inside a panel
  void* c;
  int64_t ldc;
  int64_t m, n, k;
  double alpha, beta;
  // What is read after this strip, fetched meanwhile: two lines a k step from next on, next_row bytes further each
  // step, next_skip more after every kGemmPrefetchSteps, next_panel from one of the strip's panels to the next.
  const void* next = nullptr;
  int64_t next_row = 0, next_skip = 0, next_panel = 0;
};

// Part of a chain's K: `k` units from these elements of its A and B on.
struct GemmLink {
  int64_t a, b, k;
};

// One register tile of C, `m` rows (at most GemmKernels::rows) by `n` columns (at most `columns`), whose sums stay in
// registers over a list of links: c = start + sum over links of A[m, k] * B[k, columns], products in the order of the
// links. start: c itself (add), else a row of `columns` accumulators for all rows (first), else zeros. Convolutions read
// their source where it lies this way: a link is a tap.
struct GemmChain {
  const void* a;
  int64_t a_row;  // distance between rows (chain_rows) or between k steps (chain_columns)
  const void* b;  // rows of `columns` units, zeros behind column n
  const GemmLink* links;
  int64_t count;
  void* c;
  int64_t ldc;
  int64_t m, n;
  const void* first = nullptr;
  bool add = false;
};

constexpr int64_t kGemmVectorRows = 4;
constexpr int64_t kGemmSumsDepth = 8;  // rows of a large B that stay in L1, many of which lie in the same set

struct GemmKernels {
  int64_t rows;   // register tile
  int64_t pitch;  // units from one k to the next in an A strip packed as [k][m], at least rows
  int64_t columns;
  int64_t depth;  // K block, elements
  int64_t group;
  int64_t unit_bytes;
  int64_t
      extra_units;   // of a packed K block, beyond depth / group: int8 keeps what is added to its sums there
  bool direct_tail;  // strips may read an unpacked B whose n is no multiple of the vector (masked loads)
  void (*strip_rows)(const GemmStrip&);
  void (*strip_columns)(const GemmStrip&);
  // B[k, n] (elements, any strides) into panels [n / columns][k units][columns], zeros in the padding.
  void (*pack_b)(GemmType type, const void* b, int64_t row, int64_t col, int64_t k, int64_t n, void* out);
  // A[m, k] (elements) into rows of `out_row` units, or (out_row == 0) into [k][pitch]. k is padded to whole groups with 0.
  void (*pack_a)(GemmType type, const void* a, int64_t row, int64_t col, int64_t m, int64_t k,
                 int64_t out_row, void* out);
  // Sums of products along a contiguous K: out[i * out_x + j * out_y] = x row i . y row j, nx few, ny many.
  void (*dots)(GemmType type, const void* x, int64_t x_row, int64_t nx, const void* y, int64_t y_row,
               int64_t ny, int64_t k, void* out, int64_t out_x, int64_t out_y);
  // Few rows times a row-major B, read along its rows: t[i, j] += sum over p of a[i, p] * b[p, j] for m <= kGemmVectorRows.
  // t has the accumulation type and room for whole vectors in each row.
  void (*vector_rows)(GemmType type, const void* a, int64_t a_row, int64_t a_col, int64_t m, const void* b,
                      int64_t b_row, int64_t k, int64_t n, void* t, int64_t t_row);
  // As vector_rows for up to `pitch` rows, t staying in registers for all of k <= kGemmSumsDepth units: A packed as [k][pitch],
  // t in tiles [n / (columns / 2)][pitch][columns / 2].
  void (*tile_sums)(GemmType type, const void* a, int64_t m, const void* b, int64_t b_row, int64_t k,
                    int64_t n, void* t) = nullptr;
  // A contiguous row of the accumulation type: t += x, t = scale * x, and x = t, x being of the stored type.
  void (*add_row)(GemmType type, void* t, const void* x, int64_t n);
  void (*load_row)(GemmType type, void* t, const void* x, double scale, int64_t n);
  void (*store_row)(GemmType type, const void* t, void* x, int64_t n);
  // Chains; f32 and f64 tables only.
  void (*chain_rows)(const GemmChain&) = nullptr;
  void (*chain_columns)(const GemmChain&) = nullptr;
};

// The table for products of `type` at a level (F32, F64, F16 and Bf16; I8 at V4Bf16).
const GemmKernels& gemm_kernels(GemmType type, CpuIsa level);

// The packed driver; same contract as gemm() after its checks, k > 0.
void gemm_packed(const GemmKernels& kernels, const GemmArgs& args);

}  // namespace vesta::cpu
