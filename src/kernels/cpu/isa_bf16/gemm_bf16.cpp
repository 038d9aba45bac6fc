// bf16 GEMM kernels on AVX512-BF16: vdpbf16ps multiplies pairs of bf16 along K and adds both products to an f32 lane, at
// the rate of an f32 multiply-add. B is packed in K pairs; A's rows are pairs already. The instruction flushes subnormal
// inputs and results to zero and ignores the rounding mode. Levels without it use the f32 kernels (isa/gemm_f32.cpp).
#if defined(__AVX512BF16__) && defined(__AVX512BW__)
#include <immintrin.h>

#include "kernels/cpu/isa/gemm_micro.h"
#include "kernels/cpu/isa/gemm_rows.h"

namespace vesta::cpu::VESTA_ISA {
namespace {

struct Bf16 {
  using Unit = uint32_t;  // a pair; not always aligned, so never read through this type
  using Acc = float;
  static constexpr int kGroup = 2;
  static constexpr int kLanes = 16, kRows = 14, kVectors = 2, kDepth = 1024;
  using V = __m512i;
  using A = __m512;
  static __mmask16 mask(int64_t n) { return static_cast<__mmask16>((1u << n) - 1); }
  static V load(const Unit* p) { return _mm512_loadu_si512(p); }
  static V load_part(const Unit* p, int64_t n) { return _mm512_maskz_loadu_epi32(mask(n), p); }
  static V broadcast(const Unit* p) {
    int pair;
    std::memcpy(&pair, p, 4);
    return _mm512_set1_epi32(pair);
  }
  static A multiply_add(V a, V b, A c) { return _mm512_dpbf16_ps(c, (__m512bh)a, (__m512bh)b); }
  static A zero() { return _mm512_setzero_ps(); }
  static A set1(float x) { return _mm512_set1_ps(x); }
  static A scale(A s, A x) { return s * x; }
  static A scale_add(A s, A x, A y) { return _mm512_fmadd_ps(s, x, y); }
  static A load_acc(const float* p) { return _mm512_loadu_ps(p); }
  static A load_acc_part(const float* p, int64_t n) { return _mm512_maskz_loadu_ps(mask(n), p); }
  static void store(float* p, A v) { _mm512_storeu_ps(p, v); }
  static void store_part(float* p, A v, int64_t n) { _mm512_mask_storeu_ps(p, mask(n), v); }
};

constexpr int64_t kColumns = Bf16::kLanes * Bf16::kVectors;

struct Pairs {
  using Element = uint16_t;
  typedef uint32_t V __attribute__((vector_size(64)));
  static constexpr int kPerUnit = 2;
  static V load(const uint16_t* p) { return (V)_mm512_loadu_si512(p); }
  static V load_part(const uint16_t* p, int64_t n) {
    const auto mask = static_cast<__mmask32>((uint64_t{1} << n) - 1);
    return (V)_mm512_maskz_loadu_epi16(mask, p);
  }
};

uint32_t pair_of(uint16_t low, uint16_t high) { return low | static_cast<uint32_t>(high) << 16; }

// Two rows of 32 bf16 into 32 pairs.
void store_pairs(__m512i low, __m512i high, uint32_t* out) {
  const __m512i first = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7,
                                         38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  const __m512i second = _mm512_add_epi16(first, _mm512_set1_epi16(16));
  _mm512_storeu_si512(out, _mm512_permutex2var_epi16(low, first, high));
  _mm512_storeu_si512(out + 16, _mm512_permutex2var_epi16(low, second, high));
}

void pack_b(GemmType, const void* b, int64_t row, int64_t col, int64_t k, int64_t n, void* out_) {
  const auto* from = static_cast<const uint16_t*>(b);
  auto* out = static_cast<uint32_t*>(out_);
  if (row == 1 && col != 1) return pack_transposed<Pairs, Bf16::kLanes>(from, col, k, n, kColumns, out);
  for (int64_t j = 0; j < n; j += kColumns) {
    const int64_t width = n - j < kColumns ? n - j : kColumns;
    const auto mask = static_cast<__mmask32>((uint64_t{1} << width) - 1);
    for (int64_t p = 0; p < k; p += 2, out += kColumns) {
      const uint16_t* x = from + p * row + j * col;
      if (col == 1) {
        const __m512i low = _mm512_maskz_loadu_epi16(mask, x);
        const __m512i high = p + 1 < k ? _mm512_maskz_loadu_epi16(mask, x + row) : _mm512_setzero_si512();
        store_pairs(low, high, out);
      } else {
        for (int64_t i = 0; i < width; ++i)
          out[i] = pair_of(x[i * col], p + 1 < k ? x[i * col + row] : uint16_t{0});
        for (int64_t i = width; i < kColumns; ++i) out[i] = 0;
      }
    }
  }
}

void pack_a(GemmType, const void* a_, int64_t row, int64_t col, int64_t m, int64_t k, int64_t out_row,
            void* out_) {
  const auto* a = static_cast<const uint16_t*>(a_);
  auto* out = static_cast<uint32_t*>(out_);
  if (out_row > 0) {
    for (int64_t i = 0; i < m; ++i, a += row, out += out_row) {
      if (col == 1) {
        std::memcpy(out, a, static_cast<size_t>(k) * 2);
        if (k % 2) out[k / 2] = a[k - 1];
      } else {
        for (int64_t p = 0; p < k; p += 2)
          out[p / 2] = pair_of(a[p * col], p + 1 < k ? a[(p + 1) * col] : uint16_t{0});
      }
    }
    return;
  }
  static_assert(kPitch<Bf16> == 16);
  const auto mask = static_cast<__mmask16>((1u << m) - 1);
  for (int64_t p = 0; p < k; p += 2, a += 2 * col, out += kPitch<Bf16>) {
    if (row == 1) {
      const __m256i low = _mm256_maskz_loadu_epi16(mask, a);
      const __m256i high = p + 1 < k ? _mm256_maskz_loadu_epi16(mask, a + col) : _mm256_setzero_si256();
      const __m512i pairs =
          _mm512_or_si512(_mm512_maskz_cvtepu16_epi32(0xffff, low),
                          _mm512_maskz_slli_epi32(0xffff, _mm512_maskz_cvtepu16_epi32(0xffff, high), 16));
      _mm512_storeu_si512(out, pairs);
    } else {
      for (int64_t i = 0; i < m; ++i)
        out[i] = pair_of(a[i * row], p + 1 < k ? a[i * row + col] : uint16_t{0});
    }
  }
}

// The conversion instruction rounds to nearest even as float_to_bf16 does, but flushes subnormals.
void store_bf16_row(GemmType type, const void* t_, void* x, int64_t n) {
  if (type != GemmType::Bf16) return store_row(type, t_, x, n);
  const auto* t = static_cast<const float*>(t_);
  auto* h = static_cast<uint16_t*>(x);
  for (int64_t i = 0; i < n; i += 16) {
    const __mmask16 mask = n - i >= 16 ? __mmask16{0xffff} : Bf16::mask(n - i);
    const __m256bh packed = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, t + i));
    if (n - i >= 16) {
      std::memcpy(h + i, &packed, sizeof packed);
    } else {
      _mm256_mask_storeu_epi16(h + i, mask, (__m256i)packed);
    }
  }
}

void dots_of(GemmType, const void* x, int64_t x_row, int64_t nx, const void* y, int64_t y_row, int64_t ny,
             int64_t k, void* out, int64_t out_x, int64_t out_y) {
  dots<Bf16, Pairs>(x, x_row, nx, y, y_row, ny, k, out, out_x, out_y);
}

// Pairs of B's rows, 32 columns at a time; kPairs of them between a load and a store of t.
template <int M>
void vector_pairs(const uint16_t* a, int64_t a_row, int64_t a_col, const uint16_t* b, int64_t b_row,
                  int64_t k, int64_t n, float* t, int64_t t_row) {
  constexpr int kPairs = M <= 2 ? 4 : 2;
  const __m512i first = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7,
                                         38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  const __m512i second = _mm512_add_epi16(first, _mm512_set1_epi16(16));
  for (int64_t p = 0; p < k; p += 2 * kPairs) {
    __m512i x[M][kPairs];
    for (int r = 0; r < kPairs; ++r)
      for (int i = 0; i < M; ++i) {
        const uint16_t* from = a + i * a_row + (p + 2 * r) * a_col;
        const uint32_t pair =
            p + 2 * r >= k ? 0 : pair_of(from[0], p + 2 * r + 1 < k ? from[a_col] : uint16_t{0});
        x[i][r] = _mm512_set1_epi32(static_cast<int>(pair));
      }
    const bool whole = p + 2 * kPairs <= k;
    const auto columns = [&](int64_t j, __mmask32 mask) {
      __m512 low[M], high[M];
#pragma GCC unroll 4
      for (int i = 0; i < M; ++i) {
        low[i] = _mm512_loadu_ps(t + i * t_row + j);
        high[i] = _mm512_loadu_ps(t + i * t_row + j + 16);
      }
#pragma GCC unroll 4
      for (int r = 0; r < kPairs; ++r) {
        const int64_t q = p + 2 * r;
        if (!whole && q >= k) break;
        const uint16_t* y = b + q * b_row + j;
        const __m512i even = _mm512_maskz_loadu_epi16(mask, y);
        const __m512i odd =
            whole || q + 1 < k ? _mm512_maskz_loadu_epi16(mask, y + b_row) : _mm512_setzero_si512();
        __builtin_prefetch(y + 2 * kPairs * b_row, 0, 2);
        __builtin_prefetch(y + (2 * kPairs + 1) * b_row, 0, 2);
        const auto left = (__m512bh)_mm512_permutex2var_epi16(even, first, odd);
        const auto right = (__m512bh)_mm512_permutex2var_epi16(even, second, odd);
#pragma GCC unroll 4
        for (int i = 0; i < M; ++i) {
          low[i] = _mm512_dpbf16_ps(low[i], (__m512bh)x[i][r], left);
          high[i] = _mm512_dpbf16_ps(high[i], (__m512bh)x[i][r], right);
        }
      }
#pragma GCC unroll 4
      for (int i = 0; i < M; ++i) {
        _mm512_storeu_ps(t + i * t_row + j, low[i]);
        _mm512_storeu_ps(t + i * t_row + j + 16, high[i]);
      }
    };
    int64_t j = 0;
    for (; j + 32 <= n; j += 32) columns(j, ~__mmask32{0});
    if (j < n) columns(j, static_cast<__mmask32>((uint64_t{1} << (n - j)) - 1));
  }
}

void vector_rows_of(GemmType, const void* a, int64_t a_row, int64_t a_col, int64_t m, const void* b,
                    int64_t b_row, int64_t k, int64_t n, void* t, int64_t t_row) {
  constexpr void (*kTable[])(const uint16_t*, int64_t, int64_t, const uint16_t*, int64_t, int64_t, int64_t,
                             float*,
                             int64_t) = {vector_pairs<1>, vector_pairs<2>, vector_pairs<3>, vector_pairs<4>};
  kTable[m - 1](static_cast<const uint16_t*>(a), a_row, a_col, static_cast<const uint16_t*>(b), b_row, k, n,
                static_cast<float*>(t), t_row);
}

// Pairs of B's rows, 16 columns at a time (gemm_micro.h: tile_sums_of).
template <int M>
void tile_pairs(const uint32_t* a, const uint16_t* b, int64_t b_row, int64_t k, int64_t n, float* t) {
  constexpr int64_t kAhead = 4 * kGemmSumsDepth;
  for (int64_t j = 0; j < n; j += 16, t += kPitch<Bf16> * 16) {
    __m512 sum[M];
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) sum[i] = _mm512_loadu_ps(t + i * 16);
    const uint16_t* y = b + j;
    const uint32_t* x = a;
    const __mmask16 mask = n - j >= 16 ? __mmask16{0xffff} : Bf16::mask(n - j);
    for (int64_t p = 0; p < k; p += 2, y += 2 * b_row, x += kPitch<Bf16>) {
      const __m256i even = _mm256_maskz_loadu_epi16(mask, y);
      const __m256i odd = p + 1 < k ? _mm256_maskz_loadu_epi16(mask, y + b_row) : _mm256_setzero_si256();
      if (j % 32 == 0) {
        __builtin_prefetch(y + kAhead * b_row, 0, 2);
        __builtin_prefetch(y + (kAhead + 1) * b_row, 0, 2);
      }
      const auto v = (__m512bh)_mm512_or_si512(
          _mm512_maskz_cvtepu16_epi32(0xffff, even),
          _mm512_maskz_slli_epi32(0xffff, _mm512_maskz_cvtepu16_epi32(0xffff, odd), 16));
#pragma GCC unroll 16
      for (int i = 0; i < M; ++i)
        sum[i] = _mm512_dpbf16_ps(sum[i], (__m512bh)_mm512_set1_epi32(static_cast<int>(x[i])), v);
    }
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) _mm512_storeu_ps(t + i * 16, sum[i]);
  }
}
template <int... M>
void tile_pairs_table(const void* a, int64_t m, const void* b, int64_t b_row, int64_t k, int64_t n, void* t,
                      std::integer_sequence<int, M...>) {
  static constexpr void (*kTable[])(const uint32_t*, const uint16_t*, int64_t, int64_t, int64_t,
                                    float*) = {tile_pairs<M + 1>...};
  kTable[m - 1](static_cast<const uint32_t*>(a), static_cast<const uint16_t*>(b), b_row, k, n,
                static_cast<float*>(t));
}
void tile_sums_of_pairs(GemmType, const void* a, int64_t m, const void* b, int64_t b_row, int64_t k,
                        int64_t n, void* t) {
  tile_pairs_table(a, m, b, b_row, k, n, t, std::make_integer_sequence<int, kPitch<Bf16>>());
}

}  // namespace

extern const GemmKernels gemm_bf16_kernels;
const GemmKernels gemm_bf16_kernels = {
    .rows = Bf16::kRows,
    .pitch = kPitch<Bf16>,
    .columns = kColumns,
    .depth = Bf16::kDepth,
    .group = 2,
    .unit_bytes = 4,
    .extra_units = 0,
    .direct_tail = true,
    .strip_rows = strip_rows<Bf16>,
    .strip_columns = strip_columns<Bf16>,
    .pack_b = pack_b,
    .pack_a = pack_a,
    .dots = dots_of,
    .vector_rows = vector_rows_of,
    .tile_sums = tile_sums_of_pairs,
    .add_row = add_row,
    .load_row = load_row,
    .store_row = store_bf16_row,
};

}  // namespace vesta::cpu::VESTA_ISA
#endif
