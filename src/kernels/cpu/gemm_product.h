#pragma once
// One product of a batch with its pointers resolved, as GEMM's drivers share it: gemm_packed.cpp (tiles of C) and
// gemm_thin.cpp (few rows or columns).
#include <cstdint>

#include "kernels/cpu/gemm_kernels.h"

namespace vesta::cpu {

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

inline int64_t gemm_type_bytes(GemmType t) {
  switch (t) {
    case GemmType::F64:
      return 8;
    case GemmType::I8:
      return 1;
    case GemmType::F16:
    case GemmType::Bf16:
      return 2;
    default:
      return 4;  // f32, and the i32 sums of int8
  }
}

struct Product {
  const GemmKernels& kernels;
  const GemmArgs& g;
  const char* a;
  const char* b;
  char* c;
  const char* residual;
  int64_t first_row;  // of the epilogue's numbering
  int64_t in_bytes, out_bytes, acc_bytes;
  bool c_is_acc;    // the kernels may write C itself
  bool a_direct;    // A's rows can be read in place
  bool a_columns;   // A's columns can: a transposed A, as strip_columns wants it
  bool a_collides;  // but they share so few sets of L1 and L2 that a strip does not stay there

  Product(const GemmKernels& kernels_, const GemmArgs& g_, int64_t item) : kernels(kernels_), g(g_) {
    in_bytes = gemm_type_bytes(g.type);
    out_bytes = gemm_type_bytes(g.out);
    acc_bytes = g.type == GemmType::F64 ? 8 : 4;
    a = static_cast<const char*>(g.a) + item * g.a_batch * in_bytes;
    b = static_cast<const char*>(g.b) + item * g.b_batch * in_bytes;
    c = static_cast<char*>(g.c) + item * g.c_batch * out_bytes;
    const GemmEpilogue* e = g.epilogue;
    residual = e && e->residual ? static_cast<const char*>(e->residual) + item * e->residual_batch * out_bytes
                                : nullptr;
    first_row = item * g.m;
    c_is_acc = out_bytes == acc_bytes;
    // Rows a multiple of 4 KiB apart share one L1 set: 14 of them evict each other (measured: 93 instead of 117
    // GFLOP/s on Zen 4; 2 KiB apart costs nothing).
    const bool collide = g.m > 8 && (g.a_row * in_bytes) % 4096 == 0;
    a_direct = kernels.extra_units == 0 && in_bytes * kernels.group == kernels.unit_bytes && g.a_col == 1 &&
               !collide && g.k % kernels.group == 0 && g.a_row % kernels.group == 0;
    // Measured on Zen 4 with 384 columns of C: copying wins 5 % at 2 and 4 KiB, reading in place 4 % at 6 KiB.
    const int64_t step = g.a_col * in_bytes;
    a_collides = step % 4096 == 0 || step == 2048 || step == -2048;
    a_columns =
        kernels.group == 1 && in_bytes == kernels.unit_bytes && g.a_row == 1 && g.a_col != 1 && g.a_col != 0;
  }

  int64_t blocks() const { return ceil_div(g.k, kernels.depth); }
  int64_t depth_of(int64_t block) const {
    const int64_t left = g.k - block * kernels.depth;
    return left < kernels.depth ? left : kernels.depth;
  }
  int64_t units(int64_t depth) const { return ceil_div(depth, kernels.group) + kernels.extra_units; }
  // Units of the first `block` packed K blocks.
  int64_t units_before(int64_t block) const { return block * units(kernels.depth); }
  // B's rows can be read in place by the kernels.
  bool b_plain() const {
    return kernels.group == 1 && in_bytes == kernels.unit_bytes && g.b_col == 1 &&
           (kernels.direct_tail || g.n % (kernels.columns / 2) == 0);
  }
};

// Bias, apply and residual on `rows` rows of n accumulators, t_row apart, that belong to C from (i, j) on; then the store
// into C, unless they are in C already.
void gemm_finish(const Product& p, char* t, int64_t t_row, int64_t i, int64_t rows, int64_t j, int64_t n,
                 bool in_c);

// Serves products of few rows or columns that are bound by reading the larger matrix; false: it is none of these.
bool gemm_thin(const Product& p, bool parallel);

}  // namespace vesta::cpu
