#pragma once
// Part of the scalar prelude (include prelude.h): pow, hypot and the division family (fmod, remainder, floordiv).

namespace vesta::scalar {

// ---- pow ----

// What IEEE 754 says where |x|^y alone does not decide: signs, NaN for a negative base with a fractional exponent, and
// the cases that are 1 although an operand may be NaN.
template <class R>
VESTA_FN R pow_special_(R x, R y, R magnitude) {
  R ax = abs_(x), half = y * R(0.5);
  bool integral = trunc_(y) == y, odd = integral & (trunc_(half) != half);
  R r = where_(signbit_(x) & odd, -magnitude, magnitude);
  r = where_((x < R(0)) & !integral & (ax < Limits<R>::inf()), Limits<R>::nan(), r);
  r = where_((ax == R(1)) & (abs_(y) == Limits<R>::inf()), R(1), r);
  r = where_((x != x) | (y != y), Limits<R>::nan(), r);
  return where_((y == R(0)) | (x == R(1)), R(1), r);
}

// Through double, with polynomials cut to 2^-37 and 2^-34: 0.51 ulp.
VESTA_FN float pow_(float x, float y) {
  double a = abs_(static_cast<double>(x));
  uint64_t u = bits_(a);
  uint64_t k = (u + (uint64_t{0x3ff0000000000000u} - uint64_t{0x3fe6a09e667f3bcdu})) >> 52;
  double f = from_bits_(u - (k << 52) + uint64_t{0x3ff0000000000000u}) - 1.0;
  double s = f / (2.0 + f), z = s * s;
  double p = fma_(0.23583899005135744, z, 0.28537231222758885);
  p = fma_(p, z, 0.40000336251719676);
  p = fma_(p, z, 0.66666665641358913);
  double log2x = fma_(fma_(s * z, p, s + s), 1.4426950408889634, biased_to_double_(k));
  log2x = where_(a == 0.0, -Limits<double>::inf(), where_(a < Limits<double>::inf(), log2x, a));
  double e = static_cast<double>(y) * log2x;
  e = where_(e > 200.0, 200.0, where_(e < -200.0, -200.0, e));
  double n = near_(e), r = e - n;
  double q = 1.5195594672012019e-05;
  q = fma_(q, r, 0.00015466893538966148);
  q = fma_(q, r, 0.0013333937588936948);
  q = fma_(q, r, 0.0096180377541599995);
  q = fma_(q, r, 0.055504103626523998);
  q = fma_(q, r, 0.24022651068769044);
  q = fma_(q, r, 0.69314718070564552);
  return pow_special_(x, y, static_cast<float>(fma_(q, r, 1.0) * pow2_(n)));
}

// log of a finite positive double as hi + lo, relative error about 2^-66.
VESTA_FN Pair<double> log_pair_(double x) {
  LogParts<double> p = log_parts_(x);
  // s = f / (2 + f) as hi + lo.
  double den = 2.0 + p.f, den_low = p.f - (den - 2.0);
  double s = p.f / den;
  Pair<double> back = two_product_(s, den);
  double s_low = (((p.f - back.hi) - back.lo) - s * den_low) / den;
  // 2 atanh(s) = 2 s + s^3 (2/3 + z (...)): the cubic term needs a pair, the rest does not.
  Pair<double> z = two_product_(s, s);
  z.lo = fma_(2.0 * s, s_low, z.lo);
  double rest = 0.11982673709987685;
  rest = fma_(rest, z.hi, 0.11675676497953233);
  rest = fma_(rest, z.hi, 0.13336269257361413);
  rest = fma_(rest, z.hi, 0.15384558317014566);
  rest = fma_(rest, z.hi, 0.1818181884539824);
  rest = fma_(rest, z.hi, 0.22222222217780793);
  rest = fma_(rest, z.hi, 0.28571428571443863);
  rest = fma_(rest, z.hi, 0.3999999999999998);
  Pair<double> c = fast_two_sum_(0.66666666666666663, rest * z.hi);
  c.lo += 3.700743415417188e-17;
  Pair<double> cube = two_product_(s, z.hi);
  cube.lo = fma_(s, z.lo, fma_(s_low, z.hi, cube.lo));
  Pair<double> term = two_product_(cube.hi, c.hi);
  term.lo = fma_(cube.hi, c.lo, fma_(cube.lo, c.hi, term.lo));
  Pair<double> sum = fast_two_sum_(2.0 * s, term.hi);
  sum.lo += fma_(2.0, s_low, term.lo);
  // e ln2: the upper part is exact (32 bits), the lower one a pair of its own.
  double eh = p.e * 6.93147180369123816490e-01;
  Pair<double> el = two_product_(p.e, 1.90821492927058770002e-10);
  Pair<double> t = two_sum_(eh, sum.hi);
  Pair<double> t2 = two_sum_(t.hi, el.hi);
  double low = (t.lo + t2.lo) + (sum.lo + el.lo);
  return fast_two_sum_(t2.hi, low);
}
VESTA_FN double pow_(double x, double y) {
  double a = abs_(x);
  // Without FMA the product's error overflows for larger exponents, which all give 0, 1 or infinity anyway.
  double e = kHasFma ? y : where_(abs_(y) > 0x1p900, copysign_(0x1p900, y), y);
  Pair<double> l = log_pair_(a);
  l.hi = where_(a == 0.0, -Limits<double>::inf(), where_(a < Limits<double>::inf(), l.hi, a));
  l.lo = where_((a == 0.0) | (a == Limits<double>::inf()), 0.0, l.lo);
  double hi = e * l.hi;
  // Outside exp's range the correction is meaningless and might be inf - inf.
  double lo = fma_(e, l.lo, product_error_(e, l.hi, hi));
  bool inside = abs_(hi) < 800.0;
  return pow_special_(x, y, exp_pair_(hi, where_(inside, lo, 0.0)));
}

// ---- hypot ----

VESTA_FN float hypot_(float x, float y) {  // 0.5 ulp, through double
  double a = x, b = y;
  float r = static_cast<float>(sqrt_(a * a + b * b));
  return where_((abs_(x) == Limits<float>::inf()) | (abs_(y) == Limits<float>::inf()), Limits<float>::inf(),
                r);
}
VESTA_FN double hypot_(double x, double y) {
  double a = abs_(x), b = abs_(y), big = where_(a > b, a, b), small = where_(a > b, b, a);
  // A power of two brings the larger one to about 1, so squares neither overflow nor vanish.
  bool extreme = (big > 0x1p500) | (big < 0x1p-500);
  double down = where_(big > 0x1p500, 0x1p-600, 0x1p600), up = where_(big > 0x1p500, 0x1p600, 0x1p-600);
  big = where_(extreme, big * down, big);
  small = where_(extreme, small * down, small);
  Pair<double> b2 = two_product_(big, big);
  double r = sqrt_(b2.hi + (b2.lo + small * small));
  r = where_(extreme, r * up, r);
  bool infinite = (a == Limits<double>::inf()) | (b == Limits<double>::inf());
  r = where_((x != x) | (y != y), Limits<double>::nan(), r);
  return where_(infinite, Limits<double>::inf(), r);
}

// ---- fmod, remainder, floordiv ----

// One step of long division. A correctly rounded quotient q leaves r - q y exactly representable, and smaller than r
// by 2^53; q is an integer as it stands or truncated. Remainders may be negative until fmod_'s last line.
VESTA_FN double fmod_step_(double r, double y) {
  double q = trunc_(r / y);
  return where_(abs_(r) < y, r, exact_remainder_(r, q, y));
}
// The result from |x|, |y| and the steps' remainder.
VESTA_FN double fmod_finish_(double ax, double ay, double r) {
  r = where_(r < 0.0, r + ay, r);
  r = where_(ay == Limits<double>::inf(), ax, r);
  bool invalid = (ax != ax) | (ay != ay) | (ay == 0.0) | (ax == Limits<double>::inf());
  return where_(invalid, Limits<double>::nan(), r);
}
// Exact for |x / y| < 2^159 (float) or 2^106 (double).
VESTA_FN float fmod_(float x, float y) {
  double ax = abs_(static_cast<double>(x)), ay = abs_(static_cast<double>(y));
  double r = fmod_step_(fmod_step_(fmod_step_(ax, ay), ay), ay);
  return copysign_(static_cast<float>(fmod_finish_(ax, ay, r)), x);
}
VESTA_FN double fmod_(double x, double y) {
  double ax = abs_(x), ay = abs_(y);
  return copysign_(fmod_finish_(ax, ay, fmod_step_(fmod_step_(ax, ay), ay)), x);
}
template <class R>
VESTA_FN R real_remainder_(R x, R y) {  // the divisor's sign, as Python's %
  R r = fmod_(x, y);
  return where_((r != R(0)) & ((r < R(0)) != (y < R(0))), r + y, r);
}
VESTA_FN float remainder_(float x, float y) { return real_remainder_(x, y); }
VESTA_FN double remainder_(double x, double y) { return real_remainder_(x, y); }
template <class R>
VESTA_FN R real_floordiv_(R x, R y) {  // from the remainder, so 1 // 0.1 is 9; x // 0 is x / 0
  R mod = fmod_(x, y);
  R quotient = (x - mod) / y;
  quotient = where_((mod != R(0)) & ((y < R(0)) != (mod < R(0))), quotient - R(1), quotient);
  R r = floor_(quotient);
  r = where_(quotient - r > R(0.5), r + R(1), r);
  r = where_(quotient == R(0), copysign_(R(0), x / y), r);
  return where_(y == R(0), x / y, r);
}
VESTA_FN float floordiv_(float x, float y) { return real_floordiv_(x, y); }
VESTA_FN double floordiv_(double x, double y) { return real_floordiv_(x, y); }
VESTA_FN float div_trunc_(float x, float y) { return trunc_(x / y); }
VESTA_FN double div_trunc_(double x, double y) { return trunc_(x / y); }

}  // namespace vesta::scalar
