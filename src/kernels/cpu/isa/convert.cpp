// Conversion loops, compiled per CPU level; see kernels/cpu/convert.h for the rules.
#include "kernels/cpu/convert.h"

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <type_traits>

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace vesta::cpu::VESTA_ISA {
namespace {

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
void load(const void* src, int64_t stride, void* dst, int64_t n) {
  To* __restrict out = static_cast<To*>(dst);
  if (stride == int64_t(sizeof(From))) {
    const From* __restrict in = static_cast<const From*>(src);
    for (int64_t i = 0; i < n; ++i) out[i] = convert<To>(in[i]);
  } else if (stride == 0) {
    To v = convert<To>(*static_cast<const From*>(src));
    for (int64_t i = 0; i < n; ++i) out[i] = v;
  } else {
    const char* in = static_cast<const char*>(src);
    for (int64_t i = 0; i < n; ++i) out[i] = convert<To>(*reinterpret_cast<const From*>(in + i * stride));
  }
}

template <class To, class From>
void store(const void* src, void* dst, int64_t stride, int64_t n) {
  const From* __restrict in = static_cast<const From*>(src);
  if (stride == int64_t(sizeof(To))) {
    To* __restrict out = static_cast<To*>(dst);
    for (int64_t i = 0; i < n; ++i) out[i] = convert<To>(in[i]);
  } else {
    char* out = static_cast<char*>(dst);
    for (int64_t i = 0; i < n; ++i) *reinterpret_cast<To*>(out + i * stride) = convert<To>(in[i]);
  }
}

#if defined(__F16C__)
template <>
void load<float, Half>(const void* src, int64_t stride, void* dst, int64_t n) {
  float* out = static_cast<float*>(dst);
  int64_t i = 0;
  const char* in = static_cast<const char*>(src);
  if (stride == 2)
    for (; i + 8 <= n; i += 8)
      _mm256_storeu_ps(out + i,
                       _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i * 2))));
  for (; i < n; ++i) out[i] = _cvtsh_ss(*reinterpret_cast<const uint16_t*>(in + i * stride));
}
template <>
void store<Half, float>(const void* src, void* dst, int64_t stride, int64_t n) {
  const float* in = static_cast<const float*>(src);
  int64_t i = 0;
  char* out = static_cast<char*>(dst);
  if (stride == 2)
    for (; i + 8 <= n; i += 8)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i * 2),
                       _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
  for (; i < n; ++i)
    *reinterpret_cast<uint16_t*>(out + i * stride) = _cvtss_sh(in[i], _MM_FROUND_TO_NEAREST_INT);
}
#endif

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
  row[int(ComputeType::F32)] = load<float, From>;
  row[int(ComputeType::F64)] = load<double, From>;
  row[int(ComputeType::I32)] = load<int32_t, From>;
  row[int(ComputeType::I64)] = load<int64_t, From>;
  row[int(ComputeType::U8)] = load<Bool, From>;
  row[int(ComputeType::C64)] = load<Complex<float>, From>;
  row[int(ComputeType::C128)] = load<Complex<double>, From>;
}
template <class To, DType dtype>
constexpr void fill_stores(ConvertTable& t) {
  t.store[int(ComputeType::F32)][int(dtype)] = store<To, float>;
  t.store[int(ComputeType::F64)][int(dtype)] = store<To, double>;
  t.store[int(ComputeType::I32)][int(dtype)] = store<To, int32_t>;
  t.store[int(ComputeType::I64)][int(dtype)] = store<To, int64_t>;
  t.store[int(ComputeType::U8)][int(dtype)] = store<To, Bool>;
  t.store[int(ComputeType::C64)][int(dtype)] = store<To, Complex<float>>;
  t.store[int(ComputeType::C128)][int(dtype)] = store<To, Complex<double>>;
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
