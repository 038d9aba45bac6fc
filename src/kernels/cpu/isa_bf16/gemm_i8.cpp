// int8 GEMM kernels on AVX512-VNNI: vpdpbusd multiplies four pairs of u8 and s8 along K and adds them to an i32 lane. A's
// values become unsigned by adding 128 when they are packed; each panel of B ends in a row that takes 128 * (sum of its
// column) off again. Sums are exact, wrapping as int32 does. Levels without the instruction use the generic product.
#if defined(__AVX512VNNI__) && defined(__AVX512BW__)
#include <immintrin.h>

#include "kernels/cpu/isa/gemm_micro.h"

namespace vesta::cpu::VESTA_ISA {
namespace {

struct Int8 {
  using Unit = uint32_t;  // four int8 along K; not always aligned, so never read through this type
  using Acc = int32_t;
  static constexpr int kGroup = 4;
  static constexpr int kLanes = 16, kRows = 14, kVectors = 2, kDepth = 2048;
  static constexpr bool kOffsets = true;
  using V = __m512i;
  using A = __m512i;
  static __mmask16 mask(int64_t n) { return static_cast<__mmask16>((1u << n) - 1); }
  static V load(const Unit* p) { return _mm512_loadu_si512(p); }
  static V load_part(const Unit* p, int64_t n) { return _mm512_maskz_loadu_epi32(mask(n), p); }
  static V broadcast(const Unit* p) {
    int four;
    std::memcpy(&four, p, 4);
    return _mm512_set1_epi32(four);
  }
  // Not the intrinsic: gcc 12 keeps its sums in memory, at less than half the speed.
  static A multiply_add(V a, V b, A c) {
    asm("vpdpbusd %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
  }
  static A add_offset(A c, V y) { return _mm512_add_epi32(c, y); }
  static A zero() { return _mm512_setzero_si512(); }
  // The driver passes alpha 1, and beta 0 or (on later K blocks) 1.
  static A set1(int32_t x) { return _mm512_set1_epi32(x); }
  static A scale(A s, A x) { return _mm512_mullo_epi32(s, x); }
  static A scale_add(A s, A x, A y) { return _mm512_add_epi32(_mm512_mullo_epi32(s, x), y); }
  static A load_acc(const int32_t* p) { return _mm512_loadu_si512(p); }
  static A load_acc_part(const int32_t* p, int64_t n) { return _mm512_maskz_loadu_epi32(mask(n), p); }
  static void store(int32_t* p, A v) { _mm512_storeu_si512(p, v); }
  static void store_part(int32_t* p, A v, int64_t n) { _mm512_mask_storeu_epi32(p, mask(n), v); }
};

constexpr int64_t kColumns = Int8::kLanes * Int8::kVectors;

struct Fours {
  using Element = uint8_t;
  typedef uint32_t V __attribute__((vector_size(64)));
  static constexpr int kPerUnit = 4;
  static V load(const uint8_t* p) { return (V)_mm512_loadu_si512(p); }
  static V load_part(const uint8_t* p, int64_t n) {
    const auto mask = static_cast<__mmask64>(n >= 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1);
    return (V)_mm512_maskz_loadu_epi8(mask, p);
  }
};

// Four rows of 32 int8 into 32 fours.
void store_fours(__m256i r0, __m256i r1, __m256i r2, __m256i r3, uint32_t* out) {
  const __m256i low01 = _mm256_unpacklo_epi8(r0, r1), high01 = _mm256_unpackhi_epi8(r0, r1);
  const __m256i low23 = _mm256_unpacklo_epi8(r2, r3), high23 = _mm256_unpackhi_epi8(r2, r3);
  // The two halves of each hold columns 4 i .. and 16 + 4 i ..
  const __m256i part[4] = {_mm256_unpacklo_epi16(low01, low23), _mm256_unpackhi_epi16(low01, low23),
                           _mm256_unpacklo_epi16(high01, high23), _mm256_unpackhi_epi16(high01, high23)};
  for (int i = 0; i < 4; ++i) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 4 * i), _mm256_castsi256_si128(part[i]));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 16 + 4 * i), _mm256_extracti128_si256(part[i], 1));
  }
}

// One panel (n <= kColumns) of a whole K block, then its row of offsets.
void pack_b(GemmType, const void* b, int64_t row, int64_t col, int64_t k, int64_t n, void* out_) {
  const auto* from = static_cast<const uint8_t*>(b);
  auto* out = static_cast<uint32_t*>(out_);
  const int64_t units = (k + 3) / 4;
  if (row == 1 && col != 1) {
    pack_transposed<Fours, Int8::kLanes>(from, col, k, n, kColumns, out);
  } else {
    const auto mask = static_cast<__mmask32>((uint64_t{1} << n) - 1);
    for (int64_t u = 0; u < units; ++u) {
      __m256i r[4];
      for (int64_t i = 0; i < 4; ++i) {
        const uint8_t* x = from + (4 * u + i) * row;
        if (4 * u + i >= k) {
          r[i] = _mm256_setzero_si256();
        } else if (col == 1) {
          r[i] = _mm256_maskz_loadu_epi8(mask, x);
        } else {
          alignas(32) uint8_t line[32] = {};
          for (int64_t j = 0; j < n; ++j) line[j] = x[j * col];
          r[i] = _mm256_load_si256(reinterpret_cast<const __m256i*>(line));
        }
      }
      store_fours(r[0], r[1], r[2], r[3], out + u * kColumns);
    }
  }
  const __m512i ones = _mm512_set1_epi8(1);
  __m512i sum[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
  for (int64_t u = 0; u < units; ++u)
    for (int v = 0; v < 2; ++v)
      sum[v] = _mm512_dpbusd_epi32(sum[v], ones, _mm512_loadu_si512(out + u * kColumns + v * 16));
  for (int v = 0; v < 2; ++v)
    _mm512_storeu_si512(out + units * kColumns + v * 16,
                        _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_maskz_slli_epi32(0xffff, sum[v], 7)));
}

// Adding 128 modulo 256 is flipping the top bit. What pads K may be anything: B has zeros there.
void pack_a(GemmType, const void* a_, int64_t row, int64_t col, int64_t m, int64_t k, int64_t out_row,
            void* out_) {
  const auto* a = static_cast<const uint8_t*>(a_);
  auto* out = static_cast<uint8_t*>(out_);
  if (out_row > 0) {
    const __m512i top = _mm512_set1_epi8(static_cast<char>(0x80));
    for (int64_t i = 0; i < m; ++i, a += row, out += 4 * out_row) {
      if (col == 1) {
        for (int64_t p = 0; p < k; p += 64) {
          const auto mask = static_cast<__mmask64>(k - p >= 64 ? ~uint64_t{0} : (uint64_t{1} << (k - p)) - 1);
          _mm512_mask_storeu_epi8(out + p, mask, _mm512_xor_si512(top, _mm512_maskz_loadu_epi8(mask, a + p)));
        }
      } else {
        for (int64_t p = 0; p < k; ++p) out[p] = static_cast<uint8_t>(a[p * col] ^ 0x80);
      }
      for (int64_t p = k; p % 4 != 0; ++p) out[p] = 0;
    }
    return;
  }
  for (int64_t p = 0; p < k; p += 4, out += 4 * kPitch<Int8>)
    for (int64_t q = 0; q < 4; ++q) {
      const uint8_t* x = a + (p + q) * col;
      if (p + q >= k) {
        for (int64_t i = 0; i < m; ++i) out[4 * i + q] = 0;
      } else {
        for (int64_t i = 0; i < m; ++i) out[4 * i + q] = static_cast<uint8_t>(x[i * row] ^ 0x80);
      }
    }
}

}  // namespace

extern const GemmKernels gemm_i8_kernels;
const GemmKernels gemm_i8_kernels = {
    .rows = Int8::kRows,
    .pitch = kPitch<Int8>,
    .columns = kColumns,
    .depth = Int8::kDepth,
    .group = 4,
    .unit_bytes = 4,
    .extra_units = 1,
    .direct_tail = true,
    .strip_rows = strip_rows<Int8>,
    .strip_columns = strip_columns<Int8>,
    .pack_b = pack_b,
    .pack_a = pack_a,
    .dots = nullptr,         // no thin products,
    .vector_rows = nullptr,  // and no epilogues
    .add_row = nullptr,
    .load_row = nullptr,
    .store_row = nullptr,
};

}  // namespace vesta::cpu::VESTA_ISA
#endif
