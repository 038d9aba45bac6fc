#pragma once
// 64-byte virtual vectors for the kernels compiled per CPU level: Vec<float> is always 16 lanes and Vec<double> 8, held
// in one, two or four machine registers. Because the lane count never changes, sums that keep one partial per lane have
// the same order, hence the same bits, on every level (except where fma() lacks hardware: baseline rounds twice).
// Only for files in isa/ (everything lives in namespace VESTA_ISA); no dispatch, no memory, no threads here.
#include <cstdint>
#include <cstring>
#include <limits>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/cpu/elem.h"

// gcc 12 takes the deliberately undefined pass-through operand of its own AVX-512 intrinsics for a mistake of ours.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#define VESTA_INLINE inline __attribute__((always_inline))
#if defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512BW__) && defined(__AVX512DQ__)
#define VESTA_SIMD_BYTES 64
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define VESTA_SIMD_BYTES 32
#else
#define VESTA_SIMD_BYTES 16
#endif

namespace vesta::cpu::VESTA_ISA {

template <class T>
struct Vec {
  typedef T Part __attribute__((vector_size(VESTA_SIMD_BYTES)));
  static constexpr int kLanes = 64 / sizeof(T);
  static constexpr int kParts = 64 / VESTA_SIMD_BYTES;
  Part p[kParts];

  static VESTA_INLINE Vec set1(T x) {
    Vec v;
    for (int i = 0; i < kParts; ++i) v.p[i] = x - Part{};  // x - 0 keeps the sign of -0
    return v;
  }
  static VESTA_INLINE Vec zero() { return Vec{}; }
};

#define VESTA_VEC_OPERATOR(op)                                          \
  template <class T>                                                    \
  VESTA_INLINE Vec<T> operator op(Vec<T> a, Vec<T> b) {                 \
    Vec<T> r;                                                           \
    for (int i = 0; i < Vec<T>::kParts; ++i) r.p[i] = a.p[i] op b.p[i]; \
    return r;                                                           \
  }
VESTA_VEC_OPERATOR(+)
VESTA_VEC_OPERATOR(-)
VESTA_VEC_OPERATOR(*)
VESTA_VEC_OPERATOR(/)
#undef VESTA_VEC_OPERATOR

namespace part {
#if VESTA_SIMD_BYTES == 64
VESTA_INLINE __m512 fma(__m512 a, __m512 b, __m512 c) { return _mm512_fmadd_ps(a, b, c); }
VESTA_INLINE __m512d fma(__m512d a, __m512d b, __m512d c) { return _mm512_fmadd_pd(a, b, c); }
VESTA_INLINE __m512 max(__m512 a, __m512 b) { return _mm512_max_ps(a, b); }
VESTA_INLINE __m512d max(__m512d a, __m512d b) { return _mm512_max_pd(a, b); }
VESTA_INLINE __m512 min(__m512 a, __m512 b) { return _mm512_min_ps(a, b); }
VESTA_INLINE __m512d min(__m512d a, __m512d b) { return _mm512_min_pd(a, b); }
VESTA_INLINE __m512 sqrt(__m512 a) { return _mm512_sqrt_ps(a); }
VESTA_INLINE __m512d sqrt(__m512d a) { return _mm512_sqrt_pd(a); }
#elif VESTA_SIMD_BYTES == 32
VESTA_INLINE __m256 fma(__m256 a, __m256 b, __m256 c) { return _mm256_fmadd_ps(a, b, c); }
VESTA_INLINE __m256d fma(__m256d a, __m256d b, __m256d c) { return _mm256_fmadd_pd(a, b, c); }
VESTA_INLINE __m256 max(__m256 a, __m256 b) { return _mm256_max_ps(a, b); }
VESTA_INLINE __m256d max(__m256d a, __m256d b) { return _mm256_max_pd(a, b); }
VESTA_INLINE __m256 min(__m256 a, __m256 b) { return _mm256_min_ps(a, b); }
VESTA_INLINE __m256d min(__m256d a, __m256d b) { return _mm256_min_pd(a, b); }
VESTA_INLINE __m256 sqrt(__m256 a) { return _mm256_sqrt_ps(a); }
VESTA_INLINE __m256d sqrt(__m256d a) { return _mm256_sqrt_pd(a); }
#else
template <class P>
VESTA_INLINE P fma(P a, P b, P c) {
  return a * b + c;
}
#if defined(__x86_64__)
VESTA_INLINE __m128 max(__m128 a, __m128 b) { return _mm_max_ps(a, b); }
VESTA_INLINE __m128d max(__m128d a, __m128d b) { return _mm_max_pd(a, b); }
VESTA_INLINE __m128 min(__m128 a, __m128 b) { return _mm_min_ps(a, b); }
VESTA_INLINE __m128d min(__m128d a, __m128d b) { return _mm_min_pd(a, b); }
VESTA_INLINE __m128 sqrt(__m128 a) { return _mm_sqrt_ps(a); }
VESTA_INLINE __m128d sqrt(__m128d a) { return _mm_sqrt_pd(a); }
#else
template <class P>
VESTA_INLINE P max(P a, P b) {
  return a > b ? a : b;
}
template <class P>
VESTA_INLINE P min(P a, P b) {
  return a < b ? a : b;
}
VESTA_INLINE Vec<float>::Part sqrt(Vec<float>::Part a) {
  for (int i = 0; i < 4; ++i) a[i] = __builtin_sqrtf(a[i]);
  return a;
}
VESTA_INLINE Vec<double>::Part sqrt(Vec<double>::Part a) {
  for (int i = 0; i < 2; ++i) a[i] = __builtin_sqrt(a[i]);
  return a;
}
#endif
#endif
}  // namespace part

// a * b + c, rounded once where the level has FMA.
template <class T>
VESTA_INLINE Vec<T> fma(Vec<T> a, Vec<T> b, Vec<T> c) {
  Vec<T> r;
  for (int i = 0; i < Vec<T>::kParts; ++i) r.p[i] = part::fma(a.p[i], b.p[i], c.p[i]);
  return r;
}
// x86 rule: the second operand where either is NaN.
template <class T>
VESTA_INLINE Vec<T> max(Vec<T> a, Vec<T> b) {
  Vec<T> r;
  for (int i = 0; i < Vec<T>::kParts; ++i) r.p[i] = part::max(a.p[i], b.p[i]);
  return r;
}
template <class T>
VESTA_INLINE Vec<T> min(Vec<T> a, Vec<T> b) {
  Vec<T> r;
  for (int i = 0; i < Vec<T>::kParts; ++i) r.p[i] = part::min(a.p[i], b.p[i]);
  return r;
}
template <class T>
VESTA_INLINE Vec<T> sqrt(Vec<T> a) {
  Vec<T> r;
  for (int i = 0; i < Vec<T>::kParts; ++i) r.p[i] = part::sqrt(a.p[i]);
  return r;
}
template <class T>
VESTA_INLINE Vec<T> abs(Vec<T> a) {
  return max(a, Vec<T>::zero() - a);  // NaN in a: the second operand, also NaN
}
// NaN-propagating: once NaN, always NaN.
template <class T>
VESTA_INLINE Vec<T> max_nan(Vec<T> acc, Vec<T> x) {
  Vec<T> r;
  for (int i = 0; i < Vec<T>::kParts; ++i)
    r.p[i] = ((x.p[i] > acc.p[i]) | (x.p[i] != x.p[i])) ? x.p[i] : acc.p[i];
  return r;
}
template <class T>
VESTA_INLINE Vec<T> min_nan(Vec<T> acc, Vec<T> x) {
  Vec<T> r;
  for (int i = 0; i < Vec<T>::kParts; ++i)
    r.p[i] = ((x.p[i] < acc.p[i]) | (x.p[i] != x.p[i])) ? x.p[i] : acc.p[i];
  return r;
}

// ---- scalar conversions -------------------------------------------------------------------------------------------

template <class S>
struct AccOf {
  using type = float;
};
template <>
struct AccOf<double> {
  using type = double;
};
template <class S>
using Acc = typename AccOf<S>::type;

VESTA_INLINE uint32_t float_bits(float x) { return __builtin_bit_cast(uint32_t, x); }
VESTA_INLINE float bits_float(uint32_t x) { return __builtin_bit_cast(float, x); }

VESTA_INLINE float to_acc(float x) { return x; }
VESTA_INLINE double to_acc(double x) { return x; }
VESTA_INLINE float to_acc(Bf16 x) { return bits_float(uint32_t{x.bits} << 16); }
VESTA_INLINE float to_acc(Half x) {
#if VESTA_SIMD_BYTES >= 32
  return _cvtsh_ss(x.bits);
#else
  const uint32_t sign = uint32_t{x.bits & 0x8000u} << 16, magnitude = x.bits & 0x7fffu;
  if (magnitude >= 0x7c00u)
    return bits_float(sign | 0x7f800000u | (magnitude << 13) | (magnitude > 0x7c00u ? 0x400000u : 0));
  // 2^112 rescales the exponent bias and makes subnormals exact.
  return bits_float(sign | float_bits(bits_float(magnitude << 13) * bits_float(0x77800000u)));
#endif
}

template <class S>
S from_acc(Acc<S> x);
template <>
VESTA_INLINE float from_acc<float>(float x) {
  return x;
}
template <>
VESTA_INLINE double from_acc<double>(double x) {
  return x;
}
template <>
VESTA_INLINE Bf16 from_acc<Bf16>(float x) {
  const uint32_t u = float_bits(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return {uint16_t((u >> 16) | 0x40)};
  return {uint16_t((u + 0x7fffu + ((u >> 16) & 1)) >> 16)};
}
template <>
VESTA_INLINE Half from_acc<Half>(float x) {
#if VESTA_SIMD_BYTES >= 32
  return {uint16_t(_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT))};
#else
  const uint32_t u = float_bits(x), sign = (u >> 16) & 0x8000u, magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return {uint16_t(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu))};
  if (magnitude >= 0x477ff000u) return {uint16_t(sign | 0x7c00u)};  // 65520 and above round to infinity
  if (magnitude < 0x38800000u) {  // subnormal: adding 0.5 rounds at bit 2^-24
    return {uint16_t(sign | (float_bits(bits_float(magnitude) + 0.5f) - 0x3f000000u))};
  }
  return {uint16_t(sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1)) >> 13))};
#endif
}

// ---- loads and stores ---------------------------------------------------------------------------------------------

// Levels without the instructions convert sixteen 16-bit numbers by a call: inlined into every loop over Half, the integer
// steps were a tenth of a small static program.
#if VESTA_SIMD_BYTES < 32
template <class S>
inline __attribute__((noinline)) void widen16(const S* s, float* d) {
  for (int i = 0; i < 16; ++i) d[i] = to_acc(s[i]);
}
template <class S>
inline __attribute__((noinline)) void narrow16(const float* s, S* d) {
  for (int i = 0; i < 16; ++i) d[i] = from_acc<S>(s[i]);
}
#endif

template <class T>
VESTA_INLINE Vec<T> load(const T* s) {
  Vec<T> v;
  std::memcpy(&v, s, 64);
  return v;
}
template <class T>
VESTA_INLINE void store(T* d, Vec<T> v) {
  std::memcpy(d, &v, 64);
}
VESTA_INLINE Vec<float> load(const Bf16* s) {
  Vec<float> v;
#if VESTA_SIMD_BYTES == 64
  const __m256i u = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(s));
  v.p[0] = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(u), 16));
#elif VESTA_SIMD_BYTES == 32
  for (int i = 0; i < 2; ++i) {
    const __m128i u = _mm_loadu_si128(reinterpret_cast<const __m128i*>(s) + i);
    v.p[i] = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(u), 16));
  }
#elif defined(__x86_64__)
  for (int i = 0; i < 2; ++i) {
    const __m128i u = _mm_loadu_si128(reinterpret_cast<const __m128i*>(s) + i);
    v.p[2 * i] = _mm_castsi128_ps(_mm_unpacklo_epi16(_mm_setzero_si128(), u));
    v.p[2 * i + 1] = _mm_castsi128_ps(_mm_unpackhi_epi16(_mm_setzero_si128(), u));
  }
#else
  for (int i = 0; i < 16; ++i) v.p[i / 4][i % 4] = to_acc(s[i]);
#endif
  return v;
}
VESTA_INLINE Vec<float> load(const Half* s) {
  Vec<float> v;
#if VESTA_SIMD_BYTES == 64
  v.p[0] = _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(s)));
#elif VESTA_SIMD_BYTES == 32
  for (int i = 0; i < 2; ++i)
    v.p[i] = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(s) + i));
#else
  widen16(s, reinterpret_cast<float*>(&v));
#endif
  return v;
}
VESTA_INLINE void store(Bf16* d, Vec<float> v) {
#if VESTA_SIMD_BYTES == 64
  const __m512i u = _mm512_castps_si512(v.p[0]);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
  const __m512i rounded =
      _mm512_srli_epi32(_mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16);
  const __m512i quiet = _mm512_or_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(0x40));
  const __mmask16 nan = _mm512_cmp_ps_mask(v.p[0], v.p[0], _CMP_UNORD_Q);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(d),
                      _mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(rounded, nan, quiet)));
#elif VESTA_SIMD_BYTES == 32
  __m256i half[2];
  for (int i = 0; i < 2; ++i) {
    const __m256i u = _mm256_castps_si256(v.p[i]);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    const __m256i rounded =
        _mm256_srli_epi32(_mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
    const __m256i quiet = _mm256_or_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(0x40));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v.p[i], v.p[i], _CMP_UNORD_Q));
    half[i] = _mm256_blendv_epi8(rounded, quiet, nan);
  }
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(half[0], half[1]), 0xd8);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(d), packed);
#else
  narrow16(reinterpret_cast<const float*>(&v), d);
#endif
}
VESTA_INLINE void store(Half* d, Vec<float> v) {
#if VESTA_SIMD_BYTES == 64
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(d), _mm512_cvtps_ph(v.p[0], _MM_FROUND_TO_NEAREST_INT));
#elif VESTA_SIMD_BYTES == 32
  for (int i = 0; i < 2; ++i)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(d) + i, _mm256_cvtps_ph(v.p[i], _MM_FROUND_TO_NEAREST_INT));
#else
  narrow16(reinterpret_cast<const float*>(&v), d);
#endif
}

// The first n (0 < n < lanes) elements; the other lanes are `fill`. Never touches memory past s[n - 1].
template <class S>
VESTA_INLINE Vec<Acc<S>> load_n(const S* s, int n, Acc<S> fill = 0) {
#if VESTA_SIMD_BYTES == 64
  if constexpr (sizeof(S) == 4) {
    Vec<float> v;
    v.p[0] = _mm512_mask_loadu_ps(_mm512_set1_ps(fill), __mmask16((1u << n) - 1), s);
    return v;
  }
  if constexpr (sizeof(S) == 8) {
    Vec<double> v;
    v.p[0] = _mm512_mask_loadu_pd(_mm512_set1_pd(fill), __mmask8((1u << n) - 1), s);
    return v;
  }
#endif
  constexpr int kLanes = Vec<Acc<S>>::kLanes;
#if VESTA_SIMD_BYTES < 32
  if constexpr (sizeof(S) == 2) {
    S bits[kLanes] = {};
    std::memcpy(bits, s, size_t(n) * sizeof(S));
    Vec<float> v = load(bits);
    float lanes[kLanes];
    std::memcpy(lanes, &v, 64);
    for (int i = n; i < kLanes; ++i) lanes[i] = fill;
    return load(lanes);
  }
#endif
  alignas(64) Acc<S> buffer[kLanes];
  for (int i = 0; i < kLanes; ++i) buffer[i] = fill;
  for (int i = 0; i < n; ++i) buffer[i] = to_acc(s[i]);
  return load(buffer);
}
template <class S>
VESTA_INLINE void store_n(S* d, Vec<Acc<S>> v, int n) {
#if VESTA_SIMD_BYTES == 64
  if constexpr (sizeof(S) == 4) {
    _mm512_mask_storeu_ps(d, __mmask16((1u << n) - 1), v.p[0]);
    return;
  }
  if constexpr (sizeof(S) == 8) {
    _mm512_mask_storeu_pd(d, __mmask8((1u << n) - 1), v.p[0]);
    return;
  }
#endif
  constexpr int kLanes = Vec<Acc<S>>::kLanes;
  alignas(64) S buffer[kLanes];
  store(buffer, v);
  for (int i = 0; i < n; ++i) d[i] = buffer[i];
}

// ---- across lanes -------------------------------------------------------------------------------------------------

// Halving tree: lane i with lane i + L/2, then L/4, ... The order is part of the summation contract (reduce.h).
template <class T, class F>
VESTA_INLINE T fold_lanes(Vec<T> v, F f) {
  T a[Vec<T>::kLanes];
  store(a, v);
  for (int half = Vec<T>::kLanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) a[i] = f(a[i], a[i + half]);
  return a[0];
}
VESTA_INLINE double sum_lanes(Vec<double> v) {
  return fold_lanes(v, [](double a, double b) { return a + b; });
}
VESTA_INLINE double max_lanes(Vec<double> v) {
  return fold_lanes(v, [](double a, double b) { return a > b ? a : b; });
}
#if defined(__x86_64__)
VESTA_INLINE __m128 fold_to_4(Vec<float> v, __m128 (*f)(__m128, __m128)) {
#if VESTA_SIMD_BYTES == 64
  const __m256 low = _mm512_castps512_ps256(v.p[0]), high = _mm512_extractf32x8_ps(v.p[0], 1);
  const __m128 a = f(_mm256_castps256_ps128(low), _mm256_castps256_ps128(high));
  const __m128 b = f(_mm256_extractf128_ps(low, 1), _mm256_extractf128_ps(high, 1));
#elif VESTA_SIMD_BYTES == 32
  const __m128 a = f(_mm256_castps256_ps128(v.p[0]), _mm256_castps256_ps128(v.p[1]));
  const __m128 b = f(_mm256_extractf128_ps(v.p[0], 1), _mm256_extractf128_ps(v.p[1], 1));
#else
  const __m128 a = f(v.p[0], v.p[2]), b = f(v.p[1], v.p[3]);
#endif
  return f(a, b);
}
VESTA_INLINE float sum_lanes(Vec<float> v) {
  const __m128 a = fold_to_4(v, [](__m128 x, __m128 y) { return _mm_add_ps(x, y); });
  const __m128 b = _mm_add_ps(a, _mm_movehl_ps(a, a));
  return _mm_cvtss_f32(_mm_add_ss(b, _mm_shuffle_ps(b, b, 1)));
}
VESTA_INLINE float max_lanes(Vec<float> v) {
  const __m128 a = fold_to_4(v, [](__m128 x, __m128 y) { return _mm_max_ps(x, y); });
  const __m128 b = _mm_max_ps(a, _mm_movehl_ps(a, a));
  return _mm_cvtss_f32(_mm_max_ss(b, _mm_shuffle_ps(b, b, 1)));
}
#else
VESTA_INLINE float sum_lanes(Vec<float> v) {
  return fold_lanes(v, [](float a, float b) { return a + b; });
}
VESTA_INLINE float max_lanes(Vec<float> v) {
  return fold_lanes(v, [](float a, float b) { return a > b ? a : b; });
}
#endif

// ---- exp ----------------------------------------------------------------------------------------------------------

// exp(x) for x <= 88 (softmax arguments are <= 0 up to rounding), at most 1.1 ulp with FMA; NaN stays NaN, -inf gives 0.
// Below -87.3 the v4 level gives subnormals, the others 0. Cephes expf polynomial.
VESTA_INLINE Vec<float> exp(Vec<float> x) {
  using V = Vec<float>;
  const V log2e = V::set1(1.44269504f), ln2_hi = V::set1(-0.693359375f), ln2_lo = V::set1(2.12194440e-4f);
  const V clamped = max(V::set1(VESTA_SIMD_BYTES == 64 ? -200.f : -87.3f), x);
  const V magic = V::set1(12582912.f);  // 1.5 * 2^23: adding it rounds to an integer kept in the low bits
  const V shifted = fma(clamped, log2e, magic);
  const V n = shifted - magic;
  V r = fma(n, ln2_hi, clamped);
  r = fma(n, ln2_lo, r);
  V p = fma(V::set1(1.9875691500e-4f), r, V::set1(1.3981999507e-3f));
  p = fma(p, r, V::set1(8.3334519073e-3f));
  p = fma(p, r, V::set1(4.1665795894e-2f));
  p = fma(p, r, V::set1(1.6666665459e-1f));
  p = fma(p, r, V::set1(5.0000001201e-1f));
  p = fma(p, r * r, r) + V::set1(1.f);
#if VESTA_SIMD_BYTES == 64
  p.p[0] = _mm512_scalef_ps(p.p[0], n.p[0]);
#else
  typedef int32_t Int __attribute__((vector_size(VESTA_SIMD_BYTES)));
  typedef V::Part Part;
  for (int i = 0; i < V::kParts; ++i) {
    const Part scale = (Part)(((Int)shifted.p[i] << 23) + 0x3f800000);
    p.p[i] = x.p[i] < Part{} - 87.3f ? Part{} : p.p[i] * scale;
  }
#endif
  return p;
}

// Same for double: x <= 709, at most 1.5 ulp; Taylor polynomial of degree 13 on |r| <= ln2/2 (remainder 4e-18).
VESTA_INLINE Vec<double> exp(Vec<double> x) {
  using V = Vec<double>;
  const V log2e = V::set1(1.4426950408889634), ln2_hi = V::set1(-0.693147180369123816490),
          ln2_lo = V::set1(-1.90821492927058770002e-10);
  const V clamped = max(V::set1(VESTA_SIMD_BYTES == 64 ? -1500. : -708.3), x);
  const V magic = V::set1(6755399441055744.);  // 1.5 * 2^52
  const V shifted = fma(clamped, log2e, magic);
  const V n = shifted - magic;
  V r = fma(n, ln2_hi, clamped);
  r = fma(n, ln2_lo, r);
  V p = fma(V::set1(1. / 6227020800.), r, V::set1(1. / 479001600.));
  p = fma(p, r, V::set1(1. / 39916800.));
  p = fma(p, r, V::set1(1. / 3628800.));
  p = fma(p, r, V::set1(1. / 362880.));
  p = fma(p, r, V::set1(1. / 40320.));
  p = fma(p, r, V::set1(1. / 5040.));
  p = fma(p, r, V::set1(1. / 720.));
  p = fma(p, r, V::set1(1. / 120.));
  p = fma(p, r, V::set1(1. / 24.));
  p = fma(p, r, V::set1(1. / 6.));
  p = fma(p, r, V::set1(0.5));
  p = fma(p, r * r, r) + V::set1(1.);
#if VESTA_SIMD_BYTES == 64
  p.p[0] = _mm512_scalef_pd(p.p[0], n.p[0]);
#else
  typedef int64_t Int __attribute__((vector_size(VESTA_SIMD_BYTES)));
  typedef V::Part Part;
  for (int i = 0; i < V::kParts; ++i) {
    const Part scale = (Part)(((Int)shifted.p[i] << 52) + 0x3ff0000000000000);
    p.p[i] = x.p[i] < Part{} - 708.3 ? Part{} : p.p[i] * scale;
  }
#endif
  return p;
}

template <class T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();

// Rows or elements per parallel chunk so that a chunk holds about `work` elements.
VESTA_INLINE int64_t grain_for(int64_t elements_each, int64_t work) {
  return elements_each >= work ? 1 : work / (elements_each > 0 ? elements_each : 1);
}

}  // namespace vesta::cpu::VESTA_ISA
