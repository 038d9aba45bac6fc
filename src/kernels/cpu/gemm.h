#pragma once
// Matrix products on the CPU: C[M,N] = alpha * op(A)[M,K] * op(B)[K,N] + beta * C, batched, with an epilogue.
// Pointers and strides only (in elements, any sign or zero for A and B), no tensors: this is what mm, bmm, linear,
// convolutions and attention call. It does not check aliasing: C must not overlap A, B, bias or residual.
//
// Order of accumulation. K is cut into blocks of gemm_k_block() products. Inside a block an element's products are
// added one after the other, from k low to high (with fma where the level has it); blocks are added in order. Three
// exceptions, fixed by shape and strides: dot products (M or N up to 8, or 16 where K is long; K contiguous on both
// sides) keep one partial sum per vector lane over all of K; up to 4 rows (or columns) of C times a matrix stored along
// them, or 16 when it is large, are one block; and bf16 on v4bf16 adds K in pairs, as the CPU's instruction does (it flushes subnormals). f16 and
// bf16 accumulate in f32, int8 exactly in i32 (it wraps). The number of threads never changes a bit.
#include <cstdint>

#include "base/cpu_isa.h"

namespace vesta::cpu {

enum class GemmType : uint8_t { F32, F64, F16, Bf16, I32, I64, C64, C128, I8 };

// A factor for any GemmType. Integers take `integer` (exact for all of int64), others real (and imag when complex).
struct GemmScalar {
  double real = 0;
  double imag = 0;
  int64_t integer = 0;
  constexpr GemmScalar(int v) : real(v), integer(v) {}  // NOLINT: implicit, as alpha = 1
  constexpr GemmScalar(int64_t v) : real(static_cast<double>(v)), integer(v) {}  // NOLINT
  constexpr GemmScalar(double v) : real(v), integer(static_cast<int64_t>(v)) {}  // NOLINT
  constexpr GemmScalar(double re, double im) : real(re), imag(im), integer(static_cast<int64_t>(re)) {}
  constexpr bool is_zero() const { return real == 0 && imag == 0 && integer == 0; }
};

// What happens to an element after the last product, while its row is still in L1 or L2:
//   t = alpha * sum + beta * C;  t += bias[col];  t = apply(t);  t += residual[row, col];  C = t rounded to C's type.
// t has the accumulation type: f32 for F32, F16 and Bf16, else the type itself.
struct GemmEpilogue {
  const void* bias = nullptr;  // N elements of C's type, contiguous, shared by the batch
  // Rewrites t[0, n) in place: elements (row, col) .. (row, col + n). In a batch, row runs on: batch_index * M + row.
  // Called from several threads at once, once per element in all; must not throw.
  void (*apply)(void* t, int64_t n, int64_t row, int64_t col, const void* ctx) = nullptr;
  const void* ctx = nullptr;
  const void* residual = nullptr;  // [M,N] of C's type, unit column stride
  int64_t residual_ld = 0;
  int64_t residual_batch = 0;
};

struct GemmArgs {
  GemmType type = GemmType::F32;  // of A and B
  GemmType out = GemmType::F32;   // of C: same as type, or F32 when type is F16 or Bf16; I32 when it is I8
  int64_t m = 0, n = 0, k = 0;
  const void* a = nullptr;  // element (i, p) at a + i * a_row + p * a_col; a transpose only swaps the strides
  int64_t a_row = 0, a_col = 1;
  const void* b = nullptr;  // element (p, j) at b + p * b_row + j * b_col
  int64_t b_row = 0, b_col = 1;
  void* c = nullptr;  // element (i, j) at c + i * ldc + j
  int64_t ldc = 0;
  int64_t batch = 1;  // items at a + i * a_batch and so on; a_batch = 0 shares A. C's items must not overlap.
  int64_t a_batch = 0, b_batch = 0, c_batch = 0;
  GemmScalar alpha = 1;
  GemmScalar beta = 0;                  // 0: C is never read, so NaN there is overwritten
  bool conj_a = false, conj_b = false;  // complex types only
  const GemmEpilogue* epilogue = nullptr;
};

// Runs the product on the pool. K == 0 gives beta * C (zeros when beta is 0), then the epilogue. M, N or batch of 0 do
// nothing. Throws ValueError for negative sizes, an ldc below N (M > 1) or a null pointer that would be read, TypeError
// for an output type that does not fit. Thread-safe. Scratch is one buffer per calling thread and per pool worker, kept
// and reused until the thread ends, of about max(8 MB, K * 128 bytes): steady state allocates nothing.
void gemm(const GemmArgs& args);

// gemm() with the kernels of one CPU level, which this machine must have (tests, benchmarks).
void gemm_at(CpuIsa level, const GemmArgs& args);

// K block of a level's kernels (see "Order of accumulation").
int64_t gemm_k_block(GemmType type, CpuIsa level);

}  // namespace vesta::cpu
