// f32 GEMM kernels of one CPU level, and the widening of f16 and bf16 matrices into them: AVX-512 14 x 32, AVX2 6 x 16,
// else 4 x 8 in plain 16-byte vectors (separate multiply and add, so its last bits differ from the other levels').
#include "kernels/cpu/isa/gemm_micro.h"
#include "kernels/cpu/isa/gemm_rows.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace vesta::cpu::VESTA_ISA {
namespace {

struct F32 {
  using Unit = float;
  using Acc = float;
  static constexpr int kGroup = 1;
#if defined(__AVX512F__)
  static constexpr int kLanes = 16, kRows = 14, kVectors = 2, kDepth = 512;
  static constexpr bool kDirectTail = true;
  using V = __m512;
  static __mmask16 mask(int64_t n) { return static_cast<__mmask16>((1u << n) - 1); }
  static V load(const float* p) { return _mm512_loadu_ps(p); }
  static V load_part(const float* p, int64_t n) { return _mm512_maskz_loadu_ps(mask(n), p); }
  static void store(float* p, V v) { _mm512_storeu_ps(p, v); }
  static void store_part(float* p, V v, int64_t n) { _mm512_mask_storeu_ps(p, mask(n), v); }
  static V set1(float x) { return _mm512_set1_ps(x); }
  static V multiply_add(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
#elif defined(__AVX2__) && defined(__FMA__)
  static constexpr int kLanes = 8, kRows = 6, kVectors = 2, kDepth = 512;
  static constexpr bool kDirectTail = true;
  using V = __m256;
  static __m256i mask(int64_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static V load(const float* p) { return _mm256_loadu_ps(p); }
  static V load_part(const float* p, int64_t n) { return _mm256_maskload_ps(p, mask(n)); }
  static void store(float* p, V v) { _mm256_storeu_ps(p, v); }
  static void store_part(float* p, V v, int64_t n) { _mm256_maskstore_ps(p, mask(n), v); }
  static V set1(float x) { return _mm256_set1_ps(x); }
  static V multiply_add(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
#else
  static constexpr int kLanes = 4, kRows = 4, kVectors = 2, kDepth = 256;
  static constexpr bool kDirectTail = false;  // load_part is slow here; packed panels are padded
  typedef float V __attribute__((vector_size(16)));
  static V load(const float* p) {
    V v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  static V load_part(const float* p, int64_t n) {
    V v{};
    for (int64_t i = 0; i < n; ++i) v[i] = p[i];
    return v;
  }
  static void store(float* p, V v) { std::memcpy(p, &v, sizeof v); }
  static void store_part(float* p, V v, int64_t n) {
    for (int64_t i = 0; i < n; ++i) p[i] = v[i];
  }
  static V set1(float x) { return V{x, x, x, x}; }
  static V multiply_add(V a, V b, V c) { return a * b + c; }
#endif
  using A = V;
  static A zero() { return set1(0.0f); }
  static V broadcast(const float* p) { return set1(*p); }
  static A scale(A s, A x) { return s * x; }
  static A scale_add(A s, A x, A y) { return multiply_add(s, x, y); }
  static A load_acc(const float* p) { return load(p); }
  static A load_acc_part(const float* p, int64_t n) { return load_part(p, n); }
};

struct FromF32 {
  using Element = float;
  using V = F32::V;
  static constexpr int kPerUnit = 1;
  static float widen(float x) { return x; }
  static V load(const float* p) { return F32::load(p); }
  static V load_part(const float* p, int64_t n) { return F32::load_part(p, n); }
};

// The 16-bit sources widen through a small array; the compiler vectorises the loop.
template <class Widen>
struct From16 {
  using Element = uint16_t;
  using V = F32::V;
  static constexpr int kPerUnit = 1;
  static float widen(uint16_t x) { return Widen::one(x); }
  static V load(const uint16_t* p) {
    float t[F32::kLanes];
    for (int i = 0; i < F32::kLanes; ++i) t[i] = widen(p[i]);
    return F32::load(t);
  }
  static V load_part(const uint16_t* p, int64_t n) {
    float t[F32::kLanes] = {};
    for (int64_t i = 0; i < n; ++i) t[i] = widen(p[i]);
    return F32::load(t);
  }
};
struct WidenF16 {
  static float one(uint16_t x) { return f16_to_float(x); }
};
struct WidenBf16 {
  static float one(uint16_t x) { return bf16_to_float(x); }
};
using FromF16 = From16<WidenF16>;
using FromBf16 = From16<WidenBf16>;

template <class Source>
void pack_b_of(const void* b, int64_t row, int64_t col, int64_t k, int64_t n, void* out) {
  constexpr int64_t kColumns = F32::kLanes * F32::kVectors;
  const auto* from = static_cast<const typename Source::Element*>(b);
  if (row == 1 && col != 1) {
    pack_transposed<Source, F32::kLanes>(from, col, k, n, kColumns, static_cast<float*>(out));
  } else {
    pack_panels<Source, F32::kLanes, F32::kVectors>(from, row, col, k, n, static_cast<float*>(out));
  }
}

void pack_b(GemmType type, const void* b, int64_t row, int64_t col, int64_t k, int64_t n, void* out) {
  switch (type) {
    case GemmType::F16:
      return pack_b_of<FromF16>(b, row, col, k, n, out);
    case GemmType::Bf16:
      return pack_b_of<FromBf16>(b, row, col, k, n, out);
    default:
      return pack_b_of<FromF32>(b, row, col, k, n, out);
  }
}

template <class Source>
void pack_a_of(const void* a, int64_t row, int64_t col, int64_t m, int64_t k, int64_t out_row, void* out) {
  pack_a_units<Source, F32::kLanes, kPitch<F32>>(static_cast<const typename Source::Element*>(a), row, col, m,
                                                 k, out_row, static_cast<float*>(out));
}

void pack_a(GemmType type, const void* a, int64_t row, int64_t col, int64_t m, int64_t k, int64_t out_row,
            void* out) {
  switch (type) {
    case GemmType::F16:
      return pack_a_of<FromF16>(a, row, col, m, k, out_row, out);
    case GemmType::Bf16:
      return pack_a_of<FromBf16>(a, row, col, m, k, out_row, out);
    default:
      return pack_a_of<FromF32>(a, row, col, m, k, out_row, out);
  }
}

void dots_of(GemmType type, const void* x, int64_t x_row, int64_t nx, const void* y, int64_t y_row,
             int64_t ny, int64_t k, void* out, int64_t out_x, int64_t out_y) {
  switch (type) {
    case GemmType::F16:
      return dots<F32, FromF16>(x, x_row, nx, y, y_row, ny, k, out, out_x, out_y);
    case GemmType::Bf16:
      return dots<F32, FromBf16>(x, x_row, nx, y, y_row, ny, k, out, out_x, out_y);
    default:
      return dots<F32, FromF32>(x, x_row, nx, y, y_row, ny, k, out, out_x, out_y);
  }
}

void vector_rows_of(GemmType type, const void* a, int64_t a_row, int64_t a_col, int64_t m, const void* b,
                    int64_t b_row, int64_t k, int64_t n, void* t, int64_t t_row) {
  switch (type) {
    case GemmType::F16:
      return vector_rows<F32, FromF16>(a, a_row, a_col, m, b, b_row, k, n, t, t_row);
    case GemmType::Bf16:
      return vector_rows<F32, FromBf16>(a, a_row, a_col, m, b, b_row, k, n, t, t_row);
    default:
      return vector_rows<F32, FromF32>(a, a_row, a_col, m, b, b_row, k, n, t, t_row);
  }
}

void tile_sums_of(GemmType type, const void* a, int64_t m, const void* b, int64_t b_row, int64_t k, int64_t n,
                  void* t) {
  switch (type) {
    case GemmType::F16:
      return tile_sums<F32, FromF16>(a, m, b, b_row, k, n, t);
    case GemmType::Bf16:
      return tile_sums<F32, FromBf16>(a, m, b, b_row, k, n, t);
    default:
      return tile_sums<F32, FromF32>(a, m, b, b_row, k, n, t);
  }
}

}  // namespace

extern const GemmKernels gemm_f32_kernels;
const GemmKernels gemm_f32_kernels = {
    .rows = F32::kRows,
    .pitch = kPitch<F32>,
    .columns = F32::kLanes * F32::kVectors,
    .depth = F32::kDepth,
    .group = 1,
    .unit_bytes = 4,
    .extra_units = 0,
    .direct_tail = F32::kDirectTail,
    .strip_rows = strip_rows<F32>,
    .strip_columns = strip_columns<F32>,
    .pack_b = pack_b,
    .pack_a = pack_a,
    .dots = dots_of,
    .vector_rows = vector_rows_of,
    .tile_sums = tile_sums_of,
    .add_row = add_row,
    .load_row = load_row,
    .store_row = store_row,
    .chain_rows = chain_rows<F32>,
    .chain_columns = chain_columns<F32>,
};

}  // namespace vesta::cpu::VESTA_ISA
