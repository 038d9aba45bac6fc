#pragma once
// Part of the scalar prelude (include prelude.h): exponentials, logarithms, hyperbolic functions and the activations
// made of them. Each polynomial is a minimax fit to the quotient that remains after its exact leading terms, rounded
// coefficient by coefficient. Stated ulps are the largest seen by tests/kernels/prelude_test.cpp with FMA.

namespace vesta::scalar {

// ---- exp ----

// e^x = 2^n (1 + q) with q = r + r^2 p, |r| <= ln2 / 2. biased is n + 1.5 * 2^23 (2^52): its low bits hold n. The upper
// part of ln2 has trailing zeros, so n * upper is exact without FMA too.
template <class R>
struct ExpParts {
  R biased, r, p;
};
template <class R>
VESTA_FN R exp_q_(ExpParts<R> e) {
  return fma_(e.r * e.r, e.p, e.r);
}
template <class R>
VESTA_FN R exp_mantissa_(ExpParts<R> e) {  // 1 + q, rounded once more but at r's scale
  return fma_(fma_(e.p, e.r, R(1)), e.r, R(1));
}

// What rounds x log2(e) to an integer by being added. The second kind leaves n + 2 * bias in the low bits, for exp_scale_.
template <class R>
struct ExpMagic;
template <>
struct ExpMagic<float> {
  float value = 0x1.8p23f;
  static constexpr float kTwice = 0x1.8p23f + 254.0f;
};
template <>
struct ExpMagic<double> {
  double value = 0x1.8p52;
  static constexpr double kTwice = 0x1.8p52 + 2046.0;
};

// p = (e^r - 1 - r) / r^2: relative error of q 2^-26 (float), 2^-61 (double).
VESTA_FN float exp_tail_(float r) {
  float p = 1.38382055e-3f;
  p = fma_(p, r, 8.36731866e-3f);
  p = fma_(p, r, 4.16677408e-2f);
  p = fma_(p, r, 1.66665375e-1f);
  return fma_(p, r, 4.99999970e-1f);
}
VESTA_FN double exp_tail_(double r) {
  double p = 2.0891791184318825e-09;
  p = fma_(p, r, 2.5108692657960613e-08);
  p = fma_(p, r, 2.7557336019607514e-07);
  p = fma_(p, r, 2.7557245169456485e-06);
  p = fma_(p, r, 2.4801587272459102e-05);
  p = fma_(p, r, 0.0001984126988529345);
  p = fma_(p, r, 0.0013888888888895841);
  p = fma_(p, r, 0.0083333333333218216);
  p = fma_(p, r, 0.041666666666666685);
  p = fma_(p, r, 0.16666666666666677);
  return fma_(p, r, 0.5);
}
VESTA_FN ExpParts<float> exp_parts_(float x, ExpMagic<float> magic = {}) {
  float biased = fma_(x, 1.44269504f, magic.value), n = biased - magic.value;
  float r = fma_(n, -6.9313812256e-01f, x);
  r = fma_(n, -9.0580006145e-06f, r);
  return {biased, r, exp_tail_(r)};
}
VESTA_FN ExpParts<double> exp_parts_(double x, ExpMagic<double> magic = {}) {
  double biased = fma_(x, 1.4426950408889634, magic.value), n = biased - magic.value;
  double r = fma_(n, -6.93147180369123816490e-01, x);
  r = fma_(n, -1.90821492927058770002e-10, r);
  return {biased, r, exp_tail_(r)};
}
// Of x + low, where low is at most an ulp of x.
VESTA_FN ExpParts<float> exp_parts_(float x, float low, ExpMagic<float> magic = {}) {
  float biased = fma_(x, 1.44269504f, magic.value), n = biased - magic.value;
  float r = fma_(n, -6.9313812256e-01f, x) + fma_(n, -9.0580006145e-06f, low);
  return {biased, r, exp_tail_(r)};
}
VESTA_FN ExpParts<double> exp_parts_(double x, double low, ExpMagic<double> magic = {}) {
  double biased = fma_(x, 1.4426950408889634, magic.value), n = biased - magic.value;
  double r = fma_(n, -6.93147180369123816490e-01, x) + fma_(n, -1.90821492927058770002e-10, low);
  return {biased, r, exp_tail_(r)};
}

// 2^(n + shift), which must be a normal number.
VESTA_FN float exp_power_(float biased, int32_t shift) {
  return from_bits_((bits_(biased) + static_cast<uint32_t>(127 + shift)) << 23);
}
VESTA_FN double exp_power_(double biased, int32_t shift) {
  return from_bits_((bits_(biased) + static_cast<uint64_t>(1023 + shift)) << 52);
}
// m * 2^n over the whole range, as two factors whose exponents are n / 2 rounded down and up: only the last product can
// round or overflow. biased is of the kind ExpMagic::kTwice.
VESTA_FN float exp_scale_(float m, float biased) {
  uint32_t b = bits_(biased), half = (b << 22) & 0xff800000u;
  return m * from_bits_(half) * from_bits_((b << 23) - half);
}
VESTA_FN double exp_scale_(double m, double biased) {
  uint64_t b = bits_(biased), half = (b << 51) & uint64_t{0xfff0000000000000u};
  return m * from_bits_(half) * from_bits_((b << 52) - half);
}
// The same for n <= 0: the power is moved by 32 (64), and the last product, by a constant, rounds.
VESTA_FN float exp_scale_negative_(float m, float biased) { return m * exp_power_(biased, 32) * 0x1p-32f; }
VESTA_FN double exp_scale_negative_(double m, double biased) { return m * exp_power_(biased, 64) * 0x1p-64; }

// Arguments beyond these give 0 or infinity whatever their size, and n leaves exp_scale_'s range. The result is replaced,
// not the argument: of a clamp before other selects gcc makes a copy of all that lies between, a quarter of exp's time.
template <class R>
struct ExpRange;
template <>
struct ExpRange<float> {
  static constexpr float kLow = -104.0f, kHigh = 89.5f, kHuge = 20.0f, kTanh = 10.0f;
};
template <>
struct ExpRange<double> {
  static constexpr double kLow = -745.2, kHigh = 710.5, kHuge = 44.0, kTanh = 20.0;
};
template <class R>
VESTA_FN R exp_clamp_(R x) {
  x = where_(x > ExpRange<R>::kHigh, ExpRange<R>::kHigh, x);
  return where_(x < ExpRange<R>::kLow, ExpRange<R>::kLow, x);
}
template <class R>
VESTA_FN R exp_limits_(R x, R inside) {
  R r = where_(x > ExpRange<R>::kHigh, Limits<R>::inf(), inside);
  return where_(x < ExpRange<R>::kLow, R(0), r);
}
template <class R>
VESTA_FN R real_exp_(R x) {
  ExpParts<R> e = exp_parts_(x, ExpMagic<R>{ExpMagic<R>::kTwice});
  return exp_limits_(x, exp_scale_(exp_mantissa_(e), e.biased));
}
VESTA_FN float exp_(float x) { return real_exp_(x); }
VESTA_FN double exp_(double x) { return real_exp_(x); }

// For x <= 0, which saves the upper clamp and the selects.
template <class R>
VESTA_FN R exp_negative_(R x) {
  ExpParts<R> e = exp_parts_(where_(x < ExpRange<R>::kLow, ExpRange<R>::kLow, x));
  return exp_scale_negative_(exp_mantissa_(e), e.biased);
}
// e^(hi + lo) for lo within an ulp of hi; the second one for hi <= 0.
template <class R>
VESTA_FN R exp_pair_(R hi, R lo) {
  ExpParts<R> e = exp_parts_(hi, lo, ExpMagic<R>{ExpMagic<R>::kTwice});
  return exp_limits_(hi, exp_scale_(exp_mantissa_(e), e.biased));
}
template <class R>
VESTA_FN R exp_negative_pair_(R hi, R lo) {
  ExpParts<R> e = exp_parts_(where_(hi < ExpRange<R>::kLow, ExpRange<R>::kLow, hi), lo);
  return exp_scale_negative_(exp_mantissa_(e), e.biased);
}

// A quarter of e^x - 1, so that it stays finite where sinh needs it beyond exp's overflow.
template <class R>
VESTA_FN R quarter_expm1_(R x) {
  ExpParts<R> e =
      exp_parts_(where_(x < R(-40), R(-40), where_(x > ExpRange<R>::kHigh, ExpRange<R>::kHigh, x)));
  R s = exp_power_(e.biased, -2);
  return fma_(s, exp_q_(e), s - R(0.25));
}
template <class R>
VESTA_FN R real_expm1_(R x) {
  // Below the limit x itself is the answer, and the quarter would lose bits of a subnormal.
  return where_(abs_(x) < Limits<R>::min_normal() * R(16), x, R(4) * quarter_expm1_(x));
}
VESTA_FN float expm1_(float x) { return real_expm1_(x); }
VESTA_FN double expm1_(double x) { return real_expm1_(x); }

// 2^r = 1 + r P(r), |r| <= 1/2: 2^-26 (float), 2^-57 (double).
VESTA_FN float exp2_tail_(float r) {
  float p = 1.33318172e-4f;
  p = fma_(p, r, 1.33878086e-3f);
  p = fma_(p, r, 9.62543301e-3f);
  p = fma_(p, r, 5.55036627e-2f);
  p = fma_(p, r, 2.40225941e-1f);
  p = fma_(p, r, 6.93147182e-1f);
  return p;
}
VESTA_FN double exp2_tail_(double r) {
  double p = 5.7142645940731738e-11;
  p = fma_(p, r, 4.4843100896123752e-10);
  p = fma_(p, r, 7.031787688814455e-09);
  p = fma_(p, r, 1.0177863179696654e-07);
  p = fma_(p, r, 1.3215549991488795e-06);
  p = fma_(p, r, 1.5252734318242493e-05);
  p = fma_(p, r, 0.00015403530315057418);
  p = fma_(p, r, 0.0013333558145900127);
  p = fma_(p, r, 0.0096181291076707677);
  p = fma_(p, r, 0.055504108664823762);
  p = fma_(p, r, 0.24022650695909997);
  p = fma_(p, r, 0.69314718055994529);
  return p;
}
template <class R>
struct Exp2Range;
template <>
struct Exp2Range<float> {
  static constexpr float kLow = -151.0f, kHigh = 129.0f;
};
template <>
struct Exp2Range<double> {
  static constexpr double kLow = -1076.0, kHigh = 1025.0;
};
template <class R>
VESTA_FN R real_exp2_(R x) {
  R biased = x + ExpMagic<R>::kTwice, f = x - (biased - ExpMagic<R>::kTwice);
  R r = exp_scale_(fma_(exp2_tail_(f), f, R(1)), biased);
  r = where_(x > Exp2Range<R>::kHigh, Limits<R>::inf(), r);
  return where_(x < Exp2Range<R>::kLow, R(0), r);
}
VESTA_FN float exp2_(float x) { return real_exp2_(x); }
VESTA_FN double exp2_(double x) { return real_exp2_(x); }

// ---- log ----

// x = 2^e (1 + f) with 1 + f in [2/3, 4/3) (float) or [sqrt(1/2), sqrt(2)) (double), for finite x > 0.
template <class R>
struct LogParts {
  R e, f;
};
VESTA_FN LogParts<float> log_parts_(float x) {
  // 1 for a subnormal x, which is brought into range by 2^32; by arithmetic for the reason given at exp_scale_.
  uint32_t tiny = (bits_(x) - 0x00800000u) >> 31;
  uint32_t u = bits_(x * from_bits_(0x3f800000u + (tiny << 28)));
  int32_t k = static_cast<int32_t>(u - 0x3f2aaaabu) >> 23;
  float m = from_bits_(u - (static_cast<uint32_t>(k) << 23));
  return {static_cast<float>(k - static_cast<int32_t>(tiny << 5)), m - 1.0f};
}
// 64-bit arithmetic shifts and integer conversions do not vectorise below AVX-512: the exponent is kept biased and
// becomes a double by being added to the bits of 1.5 * 2^52.
VESTA_FN double biased_to_double_(uint64_t k) {
  return from_bits_(k + uint64_t{0x4338000000000000u}) - (0x1.8p52 + 1023.0);
}
VESTA_FN LogParts<double> log_parts_(double x) {
  uint64_t tiny = (bits_(x) - uint64_t{0x0010000000000000u}) >> 63;
  uint64_t u = bits_(x * from_bits_(uint64_t{0x3ff0000000000000u} + (tiny << 58)));
  uint64_t k = (u + (uint64_t{0x3ff0000000000000u} - uint64_t{0x3fe6a09e667f3bcdu})) >> 52;
  double m = from_bits_(u - (k << 52) + uint64_t{0x3ff0000000000000u});
  return {biased_to_double_(k - (tiny << 6)), m - 1.0};
}

// log(1 + f) = f + tail, |f| <= 1/3 (float, relative error 2^-27.6) or |f| <= 0.42 (double, 2^-59).
VESTA_FN float log_tail_(float f) {
  float p = -1.24974988e-1f;
  p = fma_(p, f, 1.40584171e-1f);
  p = fma_(p, f, -1.22721501e-1f);
  p = fma_(p, f, 1.39899865e-1f);
  p = fma_(p, f, -1.66744828e-1f);
  p = fma_(p, f, 2.00114265e-1f);
  p = fma_(p, f, -2.49999195e-1f);
  p = fma_(p, f, 3.33331972e-1f);
  p = fma_(p, f, -0.5f);
  return p * (f * f);
}
VESTA_FN double log_atanh_(double z) {  // (2 atanh(s) / s - 2) / z at z = s^2
  double p = 0.14798299512714461;
  p = fma_(p, z, 0.15313828724241663);
  p = fma_(p, z, 0.18183572466118275);
  p = fma_(p, z, 0.2222219842729814);
  p = fma_(p, z, 0.28571428743697691);
  p = fma_(p, z, 0.3999999999940933);
  return fma_(p, z, 0.66666666666667351);
}
VESTA_FN double log_tail_(double f) {
  // With s = f / (2 + f): log(1 + f) = f - f^2/2 + s (f^2/2 + z P(z)).
  double s = f / (2.0 + f), z = s * s, half = 0.5 * f * f;
  return fma_(s, fma_(z, log_atanh_(z), half), -half);
}

// log of a finite positive number, and what it becomes elsewhere.
template <class R>
VESTA_FN R log_special_(R x, R finite) {
  R upper = where_(x < Limits<R>::inf(), finite, x);
  return where_(x > R(0), upper, where_(x == R(0), -Limits<R>::inf(), Limits<R>::nan()));
}
VESTA_FN float log_join_(LogParts<float> p) {
  float low = fma_(p.e, 9.0580006145e-06f, log_tail_(p.f));
  return fma_(p.e, 6.9313812256e-01f, p.f + low);
}
VESTA_FN double log_join_(LogParts<double> p) {
  double low = fma_(p.e, 1.90821492927058770002e-10, log_tail_(p.f));
  return fma_(p.e, 6.93147180369123816490e-01, p.f + low);
}
template <class R>
VESTA_FN R real_log_(R x) {
  return log_special_(x, log_join_(log_parts_(x)));
}
VESTA_FN float log_(float x) { return real_log_(x); }
VESTA_FN double log_(double x) { return real_log_(x); }

// f * c for c in two parts plus the tail's share: the error of the product f * c.hi stays below half an ulp.
VESTA_FN float log2_(float x) {
  LogParts<float> p = log_parts_(x);
  float low = fma_(p.f, 1.92596303e-08f, log_tail_(p.f) * 1.44269502f);
  return log_special_(x, p.e + fma_(p.f, 1.44269502f, low));
}
VESTA_FN double log2_(double x) {
  LogParts<double> p = log_parts_(x);
  double low = fma_(p.f, 2.0355273740931033e-17, log_tail_(p.f) * 1.4426950408889634);
  return log_special_(x, p.e + fma_(p.f, 1.4426950408889634, low));
}
VESTA_FN float log10_(float x) {
  LogParts<float> p = log_parts_(x);
  float low = fma_(p.f, -1.010305e-08f, log_tail_(p.f) * 0.434294492f);
  low = fma_(p.e, 4.60503907e-06f, low);
  return log_special_(x, fma_(p.e, 0.301025391f, fma_(p.f, 0.434294492f, low)));
}
VESTA_FN double log10_(double x) {
  LogParts<double> p = log_parts_(x);
  double low = fma_(p.f, 1.098319650216765e-17, log_tail_(p.f) * 0.4342944819032518);
  low = fma_(p.e, 3.694239077158931e-13, low);
  return log_special_(x, fma_(p.e, 0.30102999566361177, fma_(p.f, 0.4342944819032518, low)));
}

// log(1 + x): the exponent e is that of 1 + x, and 1 + f = 2^-e (1 + x) is formed from x without first rounding 1 + x.
VESTA_FN LogParts<float> log1p_parts_(float x) {
  float u = 1.0f + x;
  uint32_t k = static_cast<uint32_t>(static_cast<int32_t>(bits_(u) - 0x3f2aaaabu) >> 23);
  float s = from_bits_(0x40800000u - (k << 23));  // 4 * 2^-e, because 2^-e may be subnormal
  return {static_cast<float>(static_cast<int32_t>(k)), fma_(x * s, 0.25f, fma_(s, 0.25f, -1.0f))};
}
VESTA_FN LogParts<double> log1p_parts_(double x) {
  double u = 1.0 + x;
  uint64_t k = (bits_(u) + (uint64_t{0x3ff0000000000000u} - uint64_t{0x3fe6a09e667f3bcdu})) >> 52;
  double s = from_bits_(uint64_t{0x8000000000000000u} - (k << 52));
  return {biased_to_double_(k), fma_(x * s, 0.25, fma_(s, 0.25, -1.0))};
}
template <class R>
VESTA_FN R real_log1p_(R x) {
  R r = log_join_(log1p_parts_(x));
  r = where_(x < Limits<R>::inf(), r, x);
  r = where_(x > R(-1), r, where_(x == R(-1), -Limits<R>::inf(), Limits<R>::nan()));
  return where_(abs_(x) < Limits<R>::min_normal() * R(16), x, r);
}
VESTA_FN float log1p_(float x) { return real_log1p_(x); }
VESTA_FN double log1p_(double x) { return real_log1p_(x); }

// ---- hyperbolic ----

// tanh(x) = x + x z P(z), z = x^2, |x| <= 0.55: 2^-29.7 (float), 2^-55.3 (double).
VESTA_FN float tanh_small_(float x) {
  float z = x * x;
  float p = -6.24282286e-3f;
  p = fma_(p, z, 2.10507084e-2f);
  p = fma_(p, z, -5.38475476e-2f);
  p = fma_(p, z, 1.33325443e-1f);
  p = fma_(p, z, -3.33333164e-1f);
  return fma_(x * z, p, x);
}
VESTA_FN double tanh_small_(double x) {
  double z = x * x;
  double p = 5.073588721296671e-05;
  p = fma_(p, z, -0.00020989190219225084);
  p = fma_(p, z, 0.00057888722987141025);
  p = fma_(p, z, -0.0014531330090472349);
  p = fma_(p, z, 0.0035917028328434674);
  p = fma_(p, z, -0.0088631924195843419);
  p = fma_(p, z, 0.021869485819865739);
  p = fma_(p, z, -0.053968253869598845);
  p = fma_(p, z, 0.133333333331555);
  p = fma_(p, z, -0.33333333333332221);
  return fma_(x * z, p, x);
}
template <class R>
VESTA_FN R real_tanh_(R x) {
  R a = abs_(x);
  R t = where_(a > ExpRange<R>::kTanh, ExpRange<R>::kTanh, a);  // tanh rounds to 1 there
  ExpParts<R> e = exp_parts_(R(2) * t);
  R s = exp_power_(e.biased, 0);
  R far = R(1) - R(2) / fma_(s, exp_mantissa_(e), R(1));
  return copysign_(where_(a < R(0.55), tanh_small_(a), far), x);
}
VESTA_FN float tanh_(float x) { return real_tanh_(x); }
VESTA_FN double tanh_(double x) { return real_tanh_(x); }

template <class R>
VESTA_FN R real_sinh_(R x) {
  R a = abs_(x), m = R(2) * quarter_expm1_(a);  // half of e^a - 1
  R r = m + where_(m < Limits<R>::max(), m / (R(2) * m + R(1)), R(0));
  return where_(a < Limits<R>::min_normal() * R(16), x, copysign_(r, x));
}
VESTA_FN float sinh_(float x) { return real_sinh_(x); }
VESTA_FN double sinh_(double x) { return real_sinh_(x); }

template <class R>
VESTA_FN R real_cosh_(R x) {
  ExpParts<R> e = exp_parts_(exp_clamp_(abs_(x)));
  R h = exp_mantissa_(e) * exp_power_(e.biased, -2) * R(2);  // half of e^|x|
  return h + R(0.25) / h;
}
VESTA_FN float cosh_(float x) { return real_cosh_(x); }
VESTA_FN double cosh_(double x) { return real_cosh_(x); }

template <class R>
VESTA_FN R real_asinh_(R x) {
  R a = abs_(x);
  bool big = a > R(1.0e17);  // then asinh(a) = log(2a) to the last bit, and further on a^2 would overflow
  R inner = where_(big, R(1), a);
  R s = inner * inner;
  R u = inner + s / (R(1) + sqrt_(R(1) + s));
  R r = real_log1p_(where_(big, a, u)) + where_(big, R(0.69314718055994531), R(0));
  return copysign_(r, x);
}
VESTA_FN float asinh_(float x) { return real_asinh_(x); }
VESTA_FN double asinh_(double x) { return real_asinh_(x); }

template <class R>
VESTA_FN R real_acosh_(R x) {
  bool big = x > R(1.0e17);
  R t = where_(big, R(1), x) - R(1);
  R u = t + sqrt_(R(2) * t + t * t);
  R r = real_log1p_(where_(big, x, u)) + where_(big, R(0.69314718055994531), R(0));
  return where_(x < R(1), Limits<R>::nan(), r);
}
VESTA_FN float acosh_(float x) { return real_acosh_(x); }
VESTA_FN double acosh_(double x) { return real_acosh_(x); }

template <class R>
VESTA_FN R real_atanh_(R x) {
  R a = abs_(x);
  return copysign_(R(0.5) * real_log1p_(R(2) * a / (R(1) - a)), x);
}
VESTA_FN float atanh_(float x) { return real_atanh_(x); }
VESTA_FN double atanh_(double x) { return real_atanh_(x); }

// ---- activations made of exp ----

template <class R>
VESTA_FN R real_sigmoid_(R x) {
  R e = exp_negative_(-abs_(x));
  return where_(x < R(0), e, R(1)) / (R(1) + e);
}
VESTA_FN float sigmoid_(float x) { return real_sigmoid_(x); }
VESTA_FN double sigmoid_(double x) { return real_sigmoid_(x); }
template <class R>
VESTA_FN R silu_(R x) {
  return x * sigmoid_(x);
}
// log(1 + e^x), and log(sigmoid(x)) = -softplus(-x): neither overflows.
template <class R>
VESTA_FN R softplus_(R x) {
  return where_(x > R(0), x, R(0)) + real_log1p_(exp_negative_(-abs_(x)));
}
template <class R>
VESTA_FN R log_sigmoid_(R x) {
  return where_(x < R(0), x, R(0)) - real_log1p_(exp_negative_(-abs_(x)));
}

}  // namespace vesta::scalar
