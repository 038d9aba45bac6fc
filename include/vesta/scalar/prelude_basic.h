#pragma once
// Part of the scalar prelude (include prelude.h): constants, select, rounding, sign, min and max, error-free products
// and conversions between formats. Every function here is exact, or correctly rounded where it rounds.

namespace vesta::scalar {

// Infinity and NaN come from bit patterns because NVRTC knows no __builtin_inf.
template <class R>
struct Limits;
template <>
struct Limits<float> {
  VESTA_FN float inf() { return from_bits_(uint32_t{0x7f800000u}); }
  VESTA_FN float nan() { return from_bits_(uint32_t{0x7fc00000u}); }
  VESTA_FN float min_normal() { return from_bits_(uint32_t{0x00800000u}); }
  VESTA_FN float max() { return from_bits_(uint32_t{0x7f7fffffu}); }
};
template <>
struct Limits<double> {
  VESTA_FN double inf() { return from_bits_(uint64_t{0x7ff0000000000000u}); }
  VESTA_FN double nan() { return from_bits_(uint64_t{0x7ff8000000000000u}); }
  VESTA_FN double min_normal() { return from_bits_(uint64_t{0x0010000000000000u}); }
  VESTA_FN double max() { return from_bits_(uint64_t{0x7fefffffffffffffu}); }
};

// where_(c, a, b): a where c holds, else b; both arms are evaluated. The condition may be a bool or a stored u8.
template <class T>
VESTA_FN T where_(bool c, T a, T b) {
  return c ? a : b;
}

VESTA_FN float copysign_(float x, float s) {
  return from_bits_((bits_(x) & 0x7fffffffu) | (bits_(s) & 0x80000000u));
}
VESTA_FN double copysign_(double x, double s) {
  return from_bits_((bits_(x) & uint64_t{0x7fffffffffffffffu}) | (bits_(s) & uint64_t{0x8000000000000000u}));
}
VESTA_FN bool signbit_(float x) { return (bits_(x) >> 31) != 0; }
VESTA_FN bool signbit_(double x) { return (bits_(x) >> 63) != 0; }

// Nearest integer, halves to even, for |x| < 2^22 (float) or 2^51 (double): the addition drops the fraction.
VESTA_FN float near_(float x) { return (x + 0x1.8p23f) - 0x1.8p23f; }
VESTA_FN double near_(double x) { return (x + 0x1.8p52) - 0x1.8p52; }

#ifdef VESTA_SCALAR_SOFT_ROUNDING
// SSE2 has no rounding instruction.
VESTA_FN float round_(float x) {
  float a = abs_(x);
  return copysign_(where_(a < 0x1p23f, (a + 0x1p23f) - 0x1p23f, a), x);
}
VESTA_FN double round_(double x) {
  double a = abs_(x);
  return copysign_(where_(a < 0x1p52, (a + 0x1p52) - 0x1p52, a), x);
}
template <class R>
VESTA_FN R real_floor_(R x) {
  R r = round_(x);
  return r - where_(r > x, R(1), R(0));
}
template <class R>
VESTA_FN R real_ceil_(R x) {
  R r = round_(x);
  return copysign_(r + where_(r < x, R(1), R(0)), x);
}
VESTA_FN float floor_(float x) { return real_floor_(x); }
VESTA_FN double floor_(double x) { return real_floor_(x); }
VESTA_FN float ceil_(float x) { return real_ceil_(x); }
VESTA_FN double ceil_(double x) { return real_ceil_(x); }
VESTA_FN float trunc_(float x) { return copysign_(floor_(abs_(x)), x); }
VESTA_FN double trunc_(double x) { return copysign_(floor_(abs_(x)), x); }
#endif

VESTA_FN bool isnan_(float x) { return x != x; }
VESTA_FN bool isnan_(double x) { return x != x; }
VESTA_FN bool isinf_(float x) { return abs_(x) == Limits<float>::inf(); }
VESTA_FN bool isinf_(double x) { return abs_(x) == Limits<double>::inf(); }
VESTA_FN bool isfinite_(float x) { return abs_(x) < Limits<float>::inf(); }
VESTA_FN bool isfinite_(double x) { return abs_(x) < Limits<double>::inf(); }

// 1, -1 or 0; NaN gives 0, as in PyTorch.
template <class R>
VESTA_FN R real_sign_(R x) {
  return where_(x > R(0), R(1), R(0)) - where_(x < R(0), R(1), R(0));
}
VESTA_FN float sign_(float x) { return real_sign_(x); }
VESTA_FN double sign_(double x) { return real_sign_(x); }

VESTA_FN float frac_(float x) { return x - trunc_(x); }
VESTA_FN double frac_(double x) { return x - trunc_(x); }
VESTA_FN float rsqrt_(float x) { return 1.0f / sqrt_(x); }  // 1 ulp
VESTA_FN double rsqrt_(double x) { return 1.0 / sqrt_(x); }
template <class T>
VESTA_FN T reciprocal_(T x) {
  return T(1) / x;
}
template <class T>
VESTA_FN T square_(T x) {
  return x * x;
}

// min_ and max_ return NaN if either operand is one; fmin_ and fmax_ return the other operand.
VESTA_FN float max_(float a, float b) { return where_((a > b) | (a != a), a, b); }
VESTA_FN double max_(double a, double b) { return where_((a > b) | (a != a), a, b); }
VESTA_FN float min_(float a, float b) { return where_((a < b) | (a != a), a, b); }
VESTA_FN double min_(double a, double b) { return where_((a < b) | (a != a), a, b); }
VESTA_FN float fmax_(float a, float b) { return where_((a > b) | (b != b), a, b); }
VESTA_FN double fmax_(double a, double b) { return where_((a > b) | (b != b), a, b); }
VESTA_FN float fmin_(float a, float b) { return where_((a < b) | (b != b), a, b); }
VESTA_FN double fmin_(double a, double b) { return where_((a < b) | (b != b), a, b); }

// For one text over several classes: plain operators here, wrap-around or logic in prelude_int.h.
VESTA_FN float add_(float a, float b) { return a + b; }
VESTA_FN double add_(double a, double b) { return a + b; }
VESTA_FN float sub_(float a, float b) { return a - b; }
VESTA_FN double sub_(double a, double b) { return a - b; }
VESTA_FN float mul_(float a, float b) { return a * b; }
VESTA_FN double mul_(double a, double b) { return a * b; }
VESTA_FN float neg_(float a) { return -a; }
VESTA_FN double neg_(double a) { return -a; }

// Rounding error of the product p = a * b, exact where it does not underflow.
VESTA_FN float product_error_(float a, float b, float p) {
  if constexpr (kHasFma) return fma_(a, b, -p);
  return static_cast<float>(static_cast<double>(a) * static_cast<double>(b) - static_cast<double>(p));
}
VESTA_FN double product_error_(double a, double b, double p) {
  if constexpr (kHasFma) return fma_(a, b, -p);
  // Veltkamp's split into 26-bit halves, then Dekker's product.
  double ca = 134217729.0 * a, ah = ca - (ca - a), al = a - ah;
  double cb = 134217729.0 * b, bh = cb - (cb - b), bl = b - bh;
  return ((ah * bh - p) + ah * bl + al * bh) + al * bl;
}

// x - n * a, where that is representable although the product is not, and lies near x.
VESTA_FN double exact_remainder_(double x, double n, double a) {
  if constexpr (kHasFma) return fma_(-n, a, x);
  double p = n * a;
  return (x - p) - product_error_(n, a, p);
}

// An unevaluated sum hi + lo with |lo| <= ulp(hi) / 2: twice the working precision where one step needs it.
template <class R>
struct Pair {
  R hi, lo;
};
template <class R>
VESTA_FN Pair<R> two_product_(R a, R b) {
  R p = a * b;
  return {p, product_error_(a, b, p)};
}
template <class R>
VESTA_FN Pair<R> two_sum_(R a, R b) {
  R s = a + b, t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}
template <class R>
VESTA_FN Pair<R> fast_two_sum_(R a, R b) {  // needs |a| >= |b| or a == 0
  R s = a + b;
  return {s, b - (s - a)};
}

// 2^n for an integral n inside the normal exponents [-126, 127] or [-1022, 1023].
VESTA_FN float pow2_(float n) { return from_bits_((bits_(n + 0x1.8p23f) + 127u) << 23); }
VESTA_FN double pow2_(double n) { return from_bits_((bits_(n + 0x1.8p52) + 1023u) << 52); }

// p * 2^n for |n| up to twice the exponent range, in two factors so that only the last product can round.
template <class R>
VESTA_FN R scale2_(R p, R n) {
  R half = near_(n * R(0.5));
  return p * pow2_(half) * pow2_(n - half);
}

// Floating to integer: truncates, saturates, NaN gives 0 (C leaves the last two undefined).
template <class R>
VESTA_FN int32_t real_to_i32_(R x) {
  R lo = where_(x >= R(-2147483648.0), x, R(-2147483648.0));
  R safe = where_(lo < R(2147483648.0), lo, R(0));
  int32_t i = static_cast<int32_t>(where_(x == x, safe, R(0)));
  return where_(x >= R(2147483648.0), int32_t{0x7fffffff}, i);
}
VESTA_FN int32_t to_i32_(float x) { return real_to_i32_(x); }
VESTA_FN int32_t to_i32_(double x) { return real_to_i32_(x); }
template <class R>
VESTA_FN int64_t real_to_i64_(R x) {
  R lo = where_(x >= R(-9223372036854775808.0), x, R(-9223372036854775808.0));
  R safe = where_(lo < R(9223372036854775808.0), lo, R(0));
  int64_t i = static_cast<int64_t>(where_(x == x, safe, R(0)));
  return where_(x >= R(9223372036854775808.0), int64_t{0x7fffffffffffffff}, i);
}
VESTA_FN int64_t to_i64_(float x) { return real_to_i64_(x); }
VESTA_FN int64_t to_i64_(double x) { return real_to_i64_(x); }

// bf16 and f16 are stored as their 16 bits; rounding is to nearest even, NaN stays a quiet NaN.
VESTA_FN float bf16_to_f32_(uint16_t h) { return from_bits_(static_cast<uint32_t>(h) << 16); }
VESTA_FN uint16_t f32_to_bf16_(float x) {
  uint32_t u = bits_(x);
  uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  uint32_t quiet = (u >> 16) | 0x40u;
  return static_cast<uint16_t>(where_(x != x, quiet, rounded));
}
VESTA_FN float f16_to_f32_(uint16_t h) {
  uint32_t magnitude = (h & 0x7fffu), sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  // Normal: move the fields and rebias by 112. Subnormal: an exact product with 2^-24. Inf and NaN: rebias again.
  uint32_t normal = (magnitude << 13) + (112u << 23);
  uint32_t special = (magnitude << 13) + (224u << 23);
  uint32_t tiny = bits_(static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f);
  uint32_t m = where_(magnitude >= 0x7c00u, special, where_(magnitude < 0x0400u, tiny, normal));
  m = where_(magnitude > 0x7c00u, m | 0x00400000u, m);
  return from_bits_(m | sign);
}
VESTA_FN uint16_t f32_to_f16_(float x) {
  uint32_t u = bits_(x), sign = (u >> 16) & 0x8000u, a = u & 0x7fffffffu;
  uint32_t normal = (a - (112u << 23) + 0xfffu + ((a >> 13) & 1u)) >> 13;
  // Below 2^-14 the quantum is 2^-24: adding 0.5 (whose ulp is 2^-24) rounds there in hardware.
  uint32_t tiny = bits_(from_bits_(a) + 0.5f) - 0x3f000000u;
  uint32_t m = where_(a < 0x38800000u, tiny, normal);
  m = where_(a >= 0x477ff000u, uint32_t{0x7c00u}, m);  // 65520 and above round to infinity
  m = where_(a > 0x7f800000u, ((a >> 13) & 0x3ffu) | 0x7e00u, m);
  return static_cast<uint16_t>(m | sign);
}

}  // namespace vesta::scalar
