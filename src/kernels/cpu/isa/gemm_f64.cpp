// f64 GEMM kernels of one CPU level: AVX-512 14 x 16, AVX2 6 x 8, else 4 x 4 in plain 16-byte vectors.
#include "kernels/cpu/isa/gemm_micro.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace vesta::cpu::VESTA_ISA {
namespace {

struct F64 {
  using Unit = double;
  using Acc = double;
  static constexpr int kGroup = 1;
#if defined(__AVX512F__)
  static constexpr int kLanes = 8, kRows = 14, kVectors = 2, kDepth = 256;
  static constexpr bool kDirectTail = true;
  using V = __m512d;
  static __mmask8 mask(int64_t n) { return static_cast<__mmask8>((1u << n) - 1); }
  static V load(const double* p) { return _mm512_loadu_pd(p); }
  static V load_part(const double* p, int64_t n) { return _mm512_maskz_loadu_pd(mask(n), p); }
  static void store(double* p, V v) { _mm512_storeu_pd(p, v); }
  static void store_part(double* p, V v, int64_t n) { _mm512_mask_storeu_pd(p, mask(n), v); }
  static V set1(double x) { return _mm512_set1_pd(x); }
  static V multiply_add(V a, V b, V c) { return _mm512_fmadd_pd(a, b, c); }
#elif defined(__AVX2__) && defined(__FMA__)
  static constexpr int kLanes = 4, kRows = 6, kVectors = 2, kDepth = 256;
  static constexpr bool kDirectTail = true;
  using V = __m256d;
  static __m256i mask(int64_t n) {
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
  }
  static V load(const double* p) { return _mm256_loadu_pd(p); }
  static V load_part(const double* p, int64_t n) { return _mm256_maskload_pd(p, mask(n)); }
  static void store(double* p, V v) { _mm256_storeu_pd(p, v); }
  static void store_part(double* p, V v, int64_t n) { _mm256_maskstore_pd(p, mask(n), v); }
  static V set1(double x) { return _mm256_set1_pd(x); }
  static V multiply_add(V a, V b, V c) { return _mm256_fmadd_pd(a, b, c); }
#else
  static constexpr int kLanes = 2, kRows = 4, kVectors = 2, kDepth = 256;
  static constexpr bool kDirectTail = false;
  typedef double V __attribute__((vector_size(16)));
  static V load(const double* p) {
    V v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  static V load_part(const double* p, int64_t n) {
    V v{};
    for (int64_t i = 0; i < n; ++i) v[i] = p[i];
    return v;
  }
  static void store(double* p, V v) { std::memcpy(p, &v, sizeof v); }
  static void store_part(double* p, V v, int64_t n) {
    for (int64_t i = 0; i < n; ++i) p[i] = v[i];
  }
  static V set1(double x) { return V{x, x}; }
  static V multiply_add(V a, V b, V c) { return a * b + c; }
#endif
  using A = V;
  static A zero() { return set1(0.0); }
  static V broadcast(const double* p) { return set1(*p); }
  static A scale(A s, A x) { return s * x; }
  static A scale_add(A s, A x, A y) { return multiply_add(s, x, y); }
  static A load_acc(const double* p) { return load(p); }
  static A load_acc_part(const double* p, int64_t n) { return load_part(p, n); }
};

struct FromF64 {
  using Element = double;
  using V = F64::V;
  static constexpr int kPerUnit = 1;
  static double widen(double x) { return x; }
  static V load(const double* p) { return F64::load(p); }
  static V load_part(const double* p, int64_t n) { return F64::load_part(p, n); }
};

void pack_b(GemmType, const void* b, int64_t row, int64_t col, int64_t k, int64_t n, void* out) {
  constexpr int64_t kColumns = F64::kLanes * F64::kVectors;
  const auto* from = static_cast<const double*>(b);
  if (row == 1 && col != 1) {
    pack_transposed<FromF64, F64::kLanes>(from, col, k, n, kColumns, static_cast<double*>(out));
  } else {
    pack_panels<FromF64, F64::kLanes, F64::kVectors>(from, row, col, k, n, static_cast<double*>(out));
  }
}

void pack_a(GemmType, const void* a, int64_t row, int64_t col, int64_t m, int64_t k, int64_t out_row,
            void* out) {
  pack_a_units<FromF64, F64::kLanes, kPitch<F64>>(static_cast<const double*>(a), row, col, m, k, out_row,
                                                  static_cast<double*>(out));
}

void add_row(GemmType, void* t_, const void* x_, int64_t n) {
  double* t = static_cast<double*>(t_);
  const auto* x = static_cast<const double*>(x_);
  for (int64_t i = 0; i < n; ++i) t[i] += x[i];
}

void load_row(GemmType, void* t_, const void* x_, double scale, int64_t n) {
  double* t = static_cast<double*>(t_);
  const auto* x = static_cast<const double*>(x_);
  for (int64_t i = 0; i < n; ++i) t[i] = scale * x[i];
}

void store_row(GemmType, const void* t, void* x, int64_t n) { std::memcpy(x, t, static_cast<size_t>(n) * 8); }

void dots_of(GemmType, const void* x, int64_t x_row, int64_t nx, const void* y, int64_t y_row, int64_t ny,
             int64_t k, void* out, int64_t out_x, int64_t out_y) {
  dots<F64, FromF64>(x, x_row, nx, y, y_row, ny, k, out, out_x, out_y);
}

void vector_rows_of(GemmType, const void* a, int64_t a_row, int64_t a_col, int64_t m, const void* b,
                    int64_t b_row, int64_t k, int64_t n, void* t, int64_t t_row) {
  vector_rows<F64, FromF64>(a, a_row, a_col, m, b, b_row, k, n, t, t_row);
}

void tile_sums_of(GemmType, const void* a, int64_t m, const void* b, int64_t b_row, int64_t k, int64_t n,
                  void* t) {
  tile_sums<F64, FromF64>(a, m, b, b_row, k, n, t);
}

}  // namespace

extern const GemmKernels gemm_f64_kernels;
const GemmKernels gemm_f64_kernels = {
    .rows = F64::kRows,
    .pitch = kPitch<F64>,
    .columns = F64::kLanes * F64::kVectors,
    .depth = F64::kDepth,
    .group = 1,
    .unit_bytes = 8,
    .extra_units = 0,
    .direct_tail = F64::kDirectTail,
    .strip_rows = strip_rows<F64>,
    .strip_columns = strip_columns<F64>,
    .pack_b = pack_b,
    .pack_a = pack_a,
    .dots = dots_of,
    .vector_rows = vector_rows_of,
    .tile_sums = tile_sums_of,
    .add_row = add_row,
    .load_row = load_row,
    .store_row = store_row,
    .chain_rows = chain_rows<F64>,
    .chain_columns = chain_columns<F64>,
};

}  // namespace vesta::cpu::VESTA_ISA
