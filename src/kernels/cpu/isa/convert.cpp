// Conversion loops, compiled per CPU level; see kernels/cpu/convert.h for the rules.
#include "kernels/cpu/convert.h"

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/cpu/isa/simd.h"

namespace vesta::cpu::VESTA_ISA {
namespace {

using Half = ::vesta::Half;  // not the kernels' plain struct of that name

template <class R>
struct Complex {
  R re, im;
};
template <class T>
struct IsComplex : std::false_type {};
template <class R>
struct IsComplex<Complex<R>> : std::true_type {};
struct Bool {
  uint8_t v;
};  // any byte; nonzero is true

// float -> integer with saturation; the comparisons are written so that NaN gives 0 and loops vectorise.
template <class I, class F>
inline I saturate(F v) {
  constexpr F lo = F(std::numeric_limits<I>::min());
  // The largest F below 2^(bits-1).
  constexpr F hi = sizeof(I) == 4 ? (sizeof(F) == 4 ? F(2147483520.0) : F(2147483647.0))
                                  : (sizeof(F) == 4 ? F(9223371487098961920.0) : F(9223372036854774784.0));
  F clipped = v < lo ? lo : (v > hi ? hi : v);
  I r = I(clipped == clipped ? clipped : F(0));
  return v > hi ? std::numeric_limits<I>::max() : r;
}

// The storage types of few bits, whose numbers are floats.
template <class T>
constexpr bool is_narrow_float = !std::is_arithmetic_v<T> && !IsComplex<T>::value &&
                                 !std::is_same_v<T, Bool> && std::is_convertible_v<T, float>;

// Negative numbers wrap, as from int64; from 2^64 on the largest; NaN gives 0.
template <class F>
inline uint64_t saturate_unsigned(F v) {
  if (v >= F(0x1p64)) return std::numeric_limits<uint64_t>::max();
  return v >= F(0x1p63) ? uint64_t(v) : uint64_t(saturate<int64_t>(v));
}

template <class To, class From>
inline To convert(From v) {
  if constexpr (is_narrow_float<From>) {
    return convert<To>(float(v));
  } else if constexpr (std::is_same_v<From, Bool>) {
    return convert<To>(uint8_t(v.v != 0));
  } else if constexpr (std::is_same_v<To, Bool>) {
    if constexpr (IsComplex<From>::value)
      return Bool{uint8_t(float(v.re) != 0 || float(v.im) != 0)};
    else
      return Bool{uint8_t(v != From(0))};
  } else if constexpr (IsComplex<To>::value) {
    using R = decltype(To::re);
    if constexpr (IsComplex<From>::value)
      return To{convert<R>(v.re), convert<R>(v.im)};
    else
      return To{convert<R>(v), R(0.0f)};
  } else if constexpr (IsComplex<From>::value) {
    return convert<To>(v.re);
  } else if constexpr (is_narrow_float<To>) {
    return To(float(v));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if constexpr (std::is_same_v<To, uint64_t>)
      return saturate_unsigned(v);
    else if constexpr (std::is_same_v<To, uint32_t>)
      return To(saturate<int64_t>(v));
    else if constexpr (sizeof(To) >= 4)
      return saturate<To>(v);
    else
      return To(saturate<int32_t>(v));
  } else {
    return static_cast<To>(v);
  }
}

template <class To, class From>
void load_run(const void* src, int64_t stride, void* dst, int64_t n) {
  To* __restrict out = static_cast<To*>(dst);
  if (stride == int64_t(sizeof(From))) {
    const From* __restrict in = static_cast<const From*>(src);
    for (int64_t i = 0; i < n; ++i) out[i] = convert<To>(in[i]);
  } else if (stride == 2 * int64_t(sizeof(From))) {
    const From* __restrict in = static_cast<const From*>(src);
    for (int64_t i = 0; i < n; ++i) out[i] = convert<To>(in[2 * i]);
  } else if (stride == 0) {
    To v = convert<To>(*static_cast<const From*>(src));
    for (int64_t i = 0; i < n; ++i) out[i] = v;
  } else {
    const char* in = static_cast<const char*>(src);
    for (int64_t i = 0; i < n; ++i) out[i] = convert<To>(*reinterpret_cast<const From*>(in + i * stride));
  }
}

template <class To, class From>
void store_run(const void* src, void* dst, int64_t stride, int64_t n) {
  const From* __restrict in = static_cast<const From*>(src);
  if (stride == int64_t(sizeof(To))) {
    To* __restrict out = static_cast<To*>(dst);
    for (int64_t i = 0; i < n; ++i) out[i] = convert<To>(in[i]);
  } else {
    char* out = static_cast<char*>(dst);
    for (int64_t i = 0; i < n; ++i) *reinterpret_cast<To*>(out + i * stride) = convert<To>(in[i]);
  }
}

// Half types in vectors; Elem's structs and the dtypes' have the same bits.
template <class S>
struct HalfElem;
template <>
struct HalfElem<Half> {
  using type = ::vesta::cpu::Half;
};
template <>
struct HalfElem<BFloat16> {
  using type = ::vesta::cpu::Bf16;
};
template <class From>
void load_half(const void* src, int64_t stride, void* dst, int64_t n) {
  using S = typename HalfElem<From>::type;
  static_assert(sizeof(S) == sizeof(From));
  float* out = static_cast<float*>(dst);
  const char* in = static_cast<const char*>(src);
  int64_t i = 0;
  if (stride == int64_t(sizeof(S)))
    for (; i + 16 <= n; i += 16) store(out + i, load(reinterpret_cast<const S*>(in) + i));
  if (stride == 0 && n > 0) {
    const float v = to_acc(*reinterpret_cast<const S*>(in));
    for (; i < n; ++i) out[i] = v;
  }
  for (; i < n; ++i) out[i] = to_acc(*reinterpret_cast<const S*>(in + i * stride));
}
#if VESTA_SIMD_BYTES == 64
// 16 floats whose upper halves are the bfloat16 numbers: rounded to nearest even, NaN made quiet instead.
VESTA_INLINE __m512i rounded_to_bf16(const float* x) {
  const __m512i u = _mm512_loadu_si512(x), one = _mm512_set1_epi32(1);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), one);
  const __m512 f = _mm512_castsi512_ps(u);
  const __mmask16 nan = _mm512_cmp_ps_mask(f, f, _CMP_UNORD_Q);
  const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)), odd);
  return _mm512_mask_or_epi32(rounded, nan, u, _mm512_set1_epi32(0x400000));
}
// The upper 16 bits of each of the 32 lanes, in order: one permutation where narrowing would take four.
VESTA_INLINE __m512i upper_halves(__m512i a, __m512i b) {
  alignas(64) static constexpr uint16_t kOdd[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21,
                                                    23, 25, 27, 29, 31, 33, 35, 37, 39, 41, 43,
                                                    45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
  return _mm512_permutex2var_epi16(a, _mm512_load_si512(kOdd), b);
}
#endif
template <class To>
void store_half(const void* src, void* dst, int64_t stride, int64_t n) {
  using S = typename HalfElem<To>::type;
  const float* in = static_cast<const float*>(src);
  char* out = static_cast<char*>(dst);
  int64_t i = 0;
  if (stride == int64_t(sizeof(S))) {
#if VESTA_SIMD_BYTES == 64
    if constexpr (std::is_same_v<To, BFloat16>)
      for (; i + 32 <= n; i += 32)
        _mm512_storeu_si512(out + i * 2, upper_halves(rounded_to_bf16(in + i), rounded_to_bf16(in + i + 16)));
#endif
    for (; i + 16 <= n; i += 16) store(reinterpret_cast<S*>(out) + i, load(in + i));
  }
  for (; i < n; ++i) *reinterpret_cast<S*>(out + i * stride) = from_acc<S>(in[i]);
}
template <>
void load_run<float, Half>(const void* src, int64_t stride, void* dst, int64_t n) {
  load_half<Half>(src, stride, dst, n);
}
template <>
void load_run<float, BFloat16>(const void* src, int64_t stride, void* dst, int64_t n) {
  load_half<BFloat16>(src, stride, dst, n);
}
template <>
void store_run<Half, float>(const void* src, void* dst, int64_t stride, int64_t n) {
  store_half<Half>(src, dst, stride, n);
}
template <>
void store_run<BFloat16, float>(const void* src, void* dst, int64_t stride, int64_t n) {
  store_half<BFloat16>(src, dst, stride, n);
}

// The C++ type that stands for a dtype in these loops.
template <class T>
struct Stored {
  using type = T;
};
template <>
struct Stored<bool> {
  using type = Bool;
};
template <class R>
struct Stored<std::complex<R>> {
  using type = Complex<R>;
};
template <>
struct Stored<ComplexHalf> {
  using type = Complex<Half>;
};

template <class From>
constexpr void fill_loads(ConvertFn* row) {
  row[int(ComputeType::F32)] = load_run<float, From>;
  row[int(ComputeType::F64)] = load_run<double, From>;
  row[int(ComputeType::I32)] = load_run<int32_t, From>;
  row[int(ComputeType::I64)] = load_run<int64_t, From>;
  row[int(ComputeType::U8)] = load_run<Bool, From>;
  row[int(ComputeType::C64)] = load_run<Complex<float>, From>;
  row[int(ComputeType::C128)] = load_run<Complex<double>, From>;
}
template <class To, DType dtype>
constexpr void fill_stores(ConvertTable& t) {
  t.store[int(ComputeType::F32)][int(dtype)] = store_run<To, float>;
  t.store[int(ComputeType::F64)][int(dtype)] = store_run<To, double>;
  t.store[int(ComputeType::I32)][int(dtype)] = store_run<To, int32_t>;
  t.store[int(ComputeType::I64)][int(dtype)] = store_run<To, int64_t>;
  t.store[int(ComputeType::U8)][int(dtype)] = store_run<To, Bool>;
  t.store[int(ComputeType::C64)][int(dtype)] = store_run<To, Complex<float>>;
  t.store[int(ComputeType::C128)][int(dtype)] = store_run<To, Complex<double>>;
}
template <class T, DType dtype>
constexpr void fill_dtype(ConvertTable& t) {
  if constexpr (is_convertible(dtype)) {
    using S = typename Stored<T>::type;
    fill_loads<S>(t.load[int(dtype)]);
    fill_stores<S, dtype>(t);
  }
}
constexpr ConvertTable make_table() {
  ConvertTable t{};
#define VESTA_ROW(name, type, text, torch_name, kind) fill_dtype<type, DType::name>(t);
  VESTA_ALL_DTYPES(VESTA_ROW)
#undef VESTA_ROW
  return t;
}

}  // namespace

extern const ConvertTable convert_functions;
const ConvertTable convert_functions = make_table();

}  // namespace vesta::cpu::VESTA_ISA
