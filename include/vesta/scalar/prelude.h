#pragma once
// The scalar prelude: the whole vocabulary of Vesta's scalar language (docs/scalar.md), written once in the subset of
// C++ that g++, clang and NVRTC accept, so that eager loops and run-time compiled kernels give the same bits.
// Everything is branch-free (selects evaluate both arms) so that plain loops vectorise, and calls no library.
// This file holds the leaves, i.e. what differs between compilers; the parts below are common text.
// It contains no loops over elements, no conversion of tensors and no dtype dispatch.
//
// Compile with -O3 -fno-math-errno -fno-trapping-math -ffp-contract=off (NVRTC: --fmad=false). Without hardware FMA
// fma_ rounds twice: results then differ in the last bits from those of FMA machines, and stated ulps grow by about one.

#ifdef __CUDACC_RTC__

#define VESTA_FN static __device__ __forceinline__
#define VESTA_MEMBER __device__ __forceinline__
namespace vesta::scalar {
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long long;
using uint64_t = unsigned long long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
inline constexpr bool kHasFma = true, kVectorInt64 = false;
VESTA_FN uint32_t bits_(float x) { return __float_as_uint(x); }
VESTA_FN uint64_t bits_(double x) { return static_cast<uint64_t>(__double_as_longlong(x)); }
VESTA_FN float from_bits_(uint32_t b) { return __uint_as_float(b); }
VESTA_FN double from_bits_(uint64_t b) { return __longlong_as_double(static_cast<int64_t>(b)); }
VESTA_FN float fma_(float a, float b, float c) { return __fmaf_rn(a, b, c); }
VESTA_FN double fma_(double a, double b, double c) { return __fma_rn(a, b, c); }
VESTA_FN float abs_(float x) { return fabsf(x); }
VESTA_FN double abs_(double x) { return fabs(x); }
VESTA_FN float sqrt_(float x) { return __fsqrt_rn(x); }
VESTA_FN double sqrt_(double x) { return __dsqrt_rn(x); }
VESTA_FN float floor_(float x) { return floorf(x); }
VESTA_FN double floor_(double x) { return floor(x); }
VESTA_FN float ceil_(float x) { return ceilf(x); }
VESTA_FN double ceil_(double x) { return ceil(x); }
VESTA_FN float trunc_(float x) { return truncf(x); }
VESTA_FN double trunc_(double x) { return trunc(x); }
VESTA_FN float round_(float x) { return rintf(x); }
VESTA_FN double round_(double x) { return rint(x); }
}  // namespace vesta::scalar

#else

#include <stdint.h>
// Internal linkage and forced inlining: one program holds this text compiled for several CPU levels, and a shared
// out-of-line copy would be the linker's pick among them.
#define VESTA_FN static inline __attribute__((always_inline))
#define VESTA_MEMBER inline __attribute__((always_inline))
namespace vesta::scalar {
using ::int32_t;
using ::int64_t;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::uint8_t;
VESTA_FN uint32_t bits_(float x) { return __builtin_bit_cast(uint32_t, x); }
VESTA_FN uint64_t bits_(double x) { return __builtin_bit_cast(uint64_t, x); }
VESTA_FN float from_bits_(uint32_t b) { return __builtin_bit_cast(float, b); }
VESTA_FN double from_bits_(uint64_t b) { return __builtin_bit_cast(double, b); }
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define VESTA_SCALAR_FMA 1
VESTA_FN float fma_(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
VESTA_FN double fma_(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
#define VESTA_SCALAR_FMA 0
VESTA_FN float fma_(float a, float b, float c) { return a * b + c; }
VESTA_FN double fma_(double a, double b, double c) { return a * b + c; }
#endif
static constexpr bool kHasFma = VESTA_SCALAR_FMA;
// Vector instructions convert between int64_t and double, and multiply int64_t.
#ifdef __AVX512DQ__
static constexpr bool kVectorInt64 = true;
#else
static constexpr bool kVectorInt64 = false;
#endif
VESTA_FN float abs_(float x) { return __builtin_fabsf(x); }
VESTA_FN double abs_(double x) { return __builtin_fabs(x); }
VESTA_FN float sqrt_(float x) { return __builtin_sqrtf(x); }
VESTA_FN double sqrt_(double x) { return __builtin_sqrt(x); }
#if defined(__SSE4_1__) || defined(__aarch64__)
VESTA_FN float floor_(float x) { return __builtin_floorf(x); }
VESTA_FN double floor_(double x) { return __builtin_floor(x); }
VESTA_FN float ceil_(float x) { return __builtin_ceilf(x); }
VESTA_FN double ceil_(double x) { return __builtin_ceil(x); }
VESTA_FN float trunc_(float x) { return __builtin_truncf(x); }
VESTA_FN double trunc_(double x) { return __builtin_trunc(x); }
VESTA_FN float round_(float x) { return __builtin_rintf(x); }
VESTA_FN double round_(double x) { return __builtin_rint(x); }
#else
#define VESTA_SCALAR_SOFT_ROUNDING 1
#endif
}  // namespace vesta::scalar

#endif

#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wbitwise-instead-of-logical"  // & and | keep conditions branch-free
#endif

#include "vesta/scalar/prelude_basic.h"
#include "vesta/scalar/prelude_int.h"

#include "vesta/scalar/prelude_exp.h"

#include "vesta/scalar/prelude_pow.h"
#include "vesta/scalar/prelude_trig.h"

#include "vesta/scalar/prelude_erf.h"
#include "vesta/scalar/prelude_normal.h"
#include "vesta/scalar/prelude_gamma.h"

#include "vesta/scalar/prelude_complex.h"

#ifdef __clang__
#pragma clang diagnostic pop
#endif
