#pragma once
// Part of the scalar prelude (include prelude.h): sin, cos, tan and their inverses. float arguments are reduced
// exactly over the whole range; double arguments up to 2^45 in magnitude, beyond which the result is only bounded.

namespace vesta::scalar {

// x = q pi/2 + r + lo with |r| <= pi/4 (a little more for large x); only the low two bits of q count.
template <class R, class U>
struct Quadrant {
  U q;
  R r, lo;
};

// In double, x * 2/pi = k + f. 2/pi is a pair; k is the nearest integer of the rounded product, and one fma leaves the
// rest exactly. A float from 2^(23 + 27j) on is a multiple of 2^27j: there (2^27j * 2/pi mod 4) * 2^-27j stands for 2/pi,
// which changes x * 2/pi by a multiple of 4 and keeps the product below 2^51.
VESTA_FN Quadrant<float, uint32_t> reduce_(float x) {
  double v = x, a = abs_(v);
  bool j1 = a >= 0x1p50, j2 = a >= 0x1p77, j3 = a >= 0x1p104;
  double hi = where_(j1, -0x1.1b1bbead603d9p-28, 0x1.45f306dc9c883p-1),
         lo = where_(j1, 0x1.5f47d4d377037p-82, -0x1.6b01ec5417056p-55);
  hi = where_(j2, 0x1.4a7f09d5f47d5p-54, hi);
  lo = where_(j2, -0x1.6447e493ad4cep-109, lo);
  hi = where_(j3, -0x1.505c1596447e5p-81, hi);
  lo = where_(j3, 0x1.b14acc9e21c82p-135, lo);
  double product = v * hi, biased = product + 0x1.8p52, k = biased - 0x1.8p52;
  double f = kHasFma ? fma_(v, hi, -k) : (product - k) + product_error_(v, hi, product);
  double r = fma_(v, lo, f) * 1.5707963267948966;
  float upper = static_cast<float>(r);
  return {static_cast<uint32_t>(bits_(biased)), upper, static_cast<float>(r - static_cast<double>(upper))};
}

// pi/2 in three doubles. |r| < 1 and n integral make x - n * (first part) a multiple of 2^-52: exact. Arguments from
// 2^50 on count as 0, infinities become NaN.
VESTA_FN Quadrant<double, uint64_t> reduce_(double x) {
  x = where_(abs_(x) < 0x1p50, x, x * 0.0);
  double biased = fma_(x, 0.63661977236758138, 0x1.8p52), n = biased - 0x1.8p52;
  double r0 = exact_remainder_(x, n, 0x1.921fb54442d18p+0);
  double w = n * 0x1.1a62633145c07p-54;
  double r = r0 - w;
  double lo = ((r0 - r) - w) - (product_error_(n, 0x1.1a62633145c07p-54, w) + n * -0x1.f1976b7ed8fbcp-110);
  return {bits_(biased), r, lo};
}

template <class R>
struct SinCos {
  R sin, cos;
};
// Relative errors 2^-26.9 and 2^-31.6 on |r| <= 0.86 (float), 2^-57.7 and 2^-63.6 on |r| <= 0.79 (double).
VESTA_FN SinCos<float> kernel_sincos_(float r, float) {
  float z = r * r;
  float s = fma_(fma_(-1.9452034e-4f, z, 8.33166391e-3f), z, -1.66666463e-1f);
  float c = fma_(fma_(2.43605664e-5f, z, -1.38866343e-3f), z, 4.16666307e-2f);
  return {fma_(r * z, s, r), fma_(fma_(c, z, -0.5f), z, 1.0f)};
}
VESTA_FN SinCos<double> kernel_sincos_(double r, double lo) {
  double z = r * r;
  double s = 1.5893103515219717e-10;
  s = fma_(s, z, -2.5050695320859603e-08);
  s = fma_(s, z, 2.7557313297704952e-06);
  s = fma_(s, z, -0.00019841269828696132);
  s = fma_(s, z, 0.008333333333321067);
  s = fma_(s, z, -0.16666666666666627);
  double c = -1.1355733831636986e-11;
  c = fma_(c, z, 2.0875647319430803e-09);
  c = fma_(c, z, -2.755731379054261e-07);
  c = fma_(c, z, 2.4801587287525406e-05);
  c = fma_(c, z, -0.0013888888888870968);
  c = fma_(c, z, 0.041666666666666581);
  double half = 0.5 * z, w = 1.0 - half;
  return {r + fma_(r * z, s, lo * w), w + (((1.0 - w) - half) + fma_(z * z, c, -r * lo))};
}

// Flips the sign of x where bit 1 of q is set.
VESTA_FN float flip_(float x, uint32_t q) { return from_bits_(bits_(x) ^ ((q & 2u) << 30)); }
VESTA_FN double flip_(double x, uint64_t q) { return from_bits_(bits_(x) ^ ((q & 2u) << 62)); }

// Odd quadrants swap sine and cosine; quadrants 2 and 3 negate the sine, 1 and 2 the cosine.
template <class R>
VESTA_FN SinCos<R> sincos_(R x) {
  auto q = reduce_(x);
  SinCos<R> k = kernel_sincos_(q.r, q.lo);
  bool odd = (q.q & 1u) != 0;
  return {flip_(where_(odd, k.cos, k.sin), q.q), flip_(where_(odd, k.sin, k.cos), q.q + 1u)};
}
VESTA_FN float sin_(float x) { return where_(x == 0.0f, x, sincos_(x).sin); }
VESTA_FN double sin_(double x) { return where_(x == 0.0, x, sincos_(x).sin); }
VESTA_FN float cos_(float x) { return sincos_(x).cos; }
VESTA_FN double cos_(double x) { return sincos_(x).cos; }
template <class R>
VESTA_FN R real_tan_(R x) {
  auto q = reduce_(x);
  SinCos<R> k = kernel_sincos_(q.r, q.lo);
  if constexpr (sizeof(R) == 4) {  // sin and cos of float leave lo out
    k = {fma_(q.lo, k.cos, k.sin), fma_(-q.lo, k.sin, k.cos)};
  }
  bool odd = (q.q & 1u) != 0;
  R r = where_(odd, -k.cos, k.sin) / where_(odd, k.sin, k.cos);
  return where_(x == R(0), x, r);
}
VESTA_FN float tan_(float x) { return real_tan_(x); }
VESTA_FN double tan_(double x) { return real_tan_(x); }

// atan(t) = t + t z A(z), z = t^2, |t| <= tan(pi/8): 2^-25.5 (float), 2^-54.6 (double).
VESTA_FN float atan_tail_(float t) {
  float z = t * t;
  float p = 8.04945081e-2f;
  p = fma_(p, z, -1.38765275e-1f);
  p = fma_(p, z, 1.99776143e-1f);
  p = fma_(p, z, -3.33329469e-1f);
  return t * (z * p);
}
VESTA_FN double atan_tail_(double t) {
  double z = t * t;
  double p = 0.021227420087407644;
  p = fma_(p, z, -0.043564624378029645);
  p = fma_(p, z, 0.056916339010585779);
  p = fma_(p, z, -0.066409497385766708);
  p = fma_(p, z, 0.076900487916240282);
  p = fma_(p, z, -0.090907810498486327);
  p = fma_(p, z, 0.11111106596351367);
  p = fma_(p, z, -0.1428571419390833);
  p = fma_(p, z, 0.19999999999073378);
  p = fma_(p, z, -0.3333333333333009);
  return t * (z * p);
}
template <class R>
struct QuarterPi;
template <>
struct QuarterPi<float> {
  static constexpr float kHigh = 7.85398185e-1f, kLow = -2.18556941e-8f;
};
template <>
struct QuarterPi<double> {
  static constexpr double kHigh = 0.7853981633974483, kLow = 3.061616997868383e-17;
};

// Angle of the point (x, y) in the upper half plane, x and y scaled so that sums do not overflow: fold at 45 degrees,
// then at 22.5, so angle = k pi/4 +- atan(t). k and the signs are exact, so only one sum rounds.
template <class R>
VESTA_FN R angle_(R y, R x) {
  R ax = abs_(x), big = where_(ax > y, ax, y), small = where_(ax > y, y, ax);
  bool folded = small > R(0.41421356237309503) * big;
  R t = where_(folded, small - big, small) / where_(folded, small + big, big);
  R k = where_(folded, R(1), R(0)), s = R(1);
  bool steep = y > ax;
  k = where_(steep, R(2) - k, k);
  s = where_(steep, -s, s);
  bool left = signbit_(x);
  k = where_(left, R(4) - k, k);
  s = where_(left, -s, s);
  R low = fma_(k, QuarterPi<R>::kLow, s * atan_tail_(t));
  R st = s * t;
  R base = k * QuarterPi<R>::kHigh;  // exact: k is 0..4, and 3 pi/4 is corrected below
  R excess = fma_(k, QuarterPi<R>::kHigh, -base);
  Pair<R> sum = fast_two_sum_(base, st);
  return where_(k == R(0), st + s * atan_tail_(t), sum.hi + (sum.lo + (low + excess)));
}
template <class R>
VESTA_FN R real_atan_(R x) {
  R a = abs_(x);
  bool steep = a > R(1);
  R den = where_(steep, a, R(1)), num = where_(steep, R(1), a);
  bool folded = num > R(0.41421356237309503) * den;
  R t = where_(folded, num - den, num) / where_(folded, num + den, den);
  R k = where_(folded, R(1), R(0)), s = where_(steep, R(-1), R(1));
  k = where_(steep, R(2) - k, k);
  R st = s * t, tail = s * atan_tail_(t);
  Pair<R> sum = fast_two_sum_(k * QuarterPi<R>::kHigh, st);
  R r = where_(k == R(0), st + tail, sum.hi + (sum.lo + fma_(k, QuarterPi<R>::kLow, tail)));
  return copysign_(r, x);
}
VESTA_FN float atan_(float x) { return real_atan_(x); }
VESTA_FN double atan_(double x) { return real_atan_(x); }

template <class R>
VESTA_FN R real_atan2_(R y, R x) {
  R ax = abs_(x), ay = abs_(y);
  bool both_inf = (ax == Limits<R>::inf()) & (ay == Limits<R>::inf());
  bool both_zero = (ax == R(0)) & (ay == R(0));
  R largest = where_(ax > ay, ax, ay);
  R scale = where_(largest > Limits<R>::max() * R(0.25), R(0.25), R(1));
  scale = where_(largest < Limits<R>::min_normal() * R(1.0e8), R(1.0e8), scale);
  // Infinities count as the diagonal, zeros as the real axis, as C's atan2 defines.
  R px = where_(both_inf, R(1), where_(both_zero, R(1), ax * scale));
  R py = where_(both_inf, R(1), where_(both_zero, R(0), ay * scale));
  R r = angle_(py, copysign_(px, x));
  return where_((x != x) | (y != y), Limits<R>::nan(), copysign_(r, y));
}
VESTA_FN float atan2_(float y, float x) { return real_atan2_(y, x); }
VESTA_FN double atan2_(double y, double x) { return real_atan2_(y, x); }

// asin(x) = x + x z P(z), z = x^2 <= 1/4: 2^-27.6 (float), 2^-55.9 (double).
VESTA_FN float asin_tail_(float x, float z) {
  float p = 4.21664938e-2f;
  p = fma_(p, z, 2.41807383e-2f);
  p = fma_(p, z, 4.54697758e-2f);
  p = fma_(p, z, 7.49530643e-2f);
  p = fma_(p, z, 1.66667521e-1f);
  return x * (z * p);
}
VESTA_FN double asin_tail_(double x, double z) {
  double p = 0.031933642866801268;
  p = fma_(p, z, -0.016254779694171644);
  p = fma_(p, z, 0.01954728479598802);
  p = fma_(p, z, 0.0065211907337005158);
  p = fma_(p, z, 0.012170740383995132);
  p = fma_(p, z, 0.013885009022950243);
  p = fma_(p, z, 0.017359727003351529);
  p = fma_(p, z, 0.022371756624418322);
  p = fma_(p, z, 0.030381959194216261);
  p = fma_(p, z, 0.044642856827000331);
  p = fma_(p, z, 0.0750000000033854);
  p = fma_(p, z, 0.16666666666665403);
  return x * (z * p);
}
// asin of s = min(|x|, sqrt((1 - |x|) / 2)), whose square z is exact in the second case; root's own error is added.
template <class R>
struct AsinParts {
  R s, tail;
  bool outer;
};
template <class R>
VESTA_FN AsinParts<R> asin_parts_(R x) {
  R a = abs_(x);
  bool outer = a > R(0.5);
  R z = where_(outer, R(0.5) * (R(1) - a), a * a);
  R root = sqrt_(z), square = root * root;
  R safe = where_(root > R(0), root, R(1));
  R root_low = ((z - square) - product_error_(root, root, square)) / (R(2) * safe);
  R s = where_(outer, root, a);
  return {s, asin_tail_(s, z) + where_(outer, root_low, R(0)), outer};
}
template <class R>
VESTA_FN R real_asin_(R x) {
  AsinParts<R> p = asin_parts_(x);
  R high = R(2) * QuarterPi<R>::kHigh, low = R(2) * QuarterPi<R>::kLow;
  Pair<R> sum = fast_two_sum_(high, R(-2) * p.s);
  R far = sum.hi + (sum.lo + (low - R(2) * p.tail));
  return copysign_(where_(p.outer, far, p.s + p.tail), x);
}
VESTA_FN float asin_(float x) { return real_asin_(x); }
VESTA_FN double asin_(double x) { return real_asin_(x); }
template <class R>
VESTA_FN R real_acos_(R x) {
  AsinParts<R> p = asin_parts_(x);
  R high = R(2) * QuarterPi<R>::kHigh, low = R(2) * QuarterPi<R>::kLow;
  bool left = x < R(0);
  R s = where_(left, -p.s, p.s), tail = where_(left, -p.tail, p.tail);
  Pair<R> middle = fast_two_sum_(high, -s);
  Pair<R> end = fast_two_sum_(R(2) * high, R(-2) * p.s);
  R inner = middle.hi + (middle.lo + (low - tail));
  R right = R(2) * (p.s + p.tail);
  R far = end.hi + (end.lo + (R(2) * low - R(2) * p.tail));
  return where_(p.outer, where_(left, far, right), inner);
}
VESTA_FN float acos_(float x) { return real_acos_(x); }
VESTA_FN double acos_(double x) { return real_acos_(x); }

}  // namespace vesta::scalar
