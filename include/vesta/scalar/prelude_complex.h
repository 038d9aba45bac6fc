#pragma once
// Part of the scalar prelude (include prelude.h): complex numbers and their functions. T is the whole complex type and
// R its real part. There is no ordering: a text that compares does not compile for complex.

namespace vesta::scalar {

template <class R>
struct cplx {
  R re, im;
  cplx() = default;
  VESTA_MEMBER constexpr cplx(R real, R imaginary = R(0)) : re(real), im(imaginary) {}
};

template <class R>
VESTA_FN cplx<R> operator+(cplx<R> a, cplx<R> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class R>
VESTA_FN cplx<R> operator-(cplx<R> a, cplx<R> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class R>
VESTA_FN cplx<R> operator-(cplx<R> a) {
  return {-a.re, -a.im};
}
template <class R>
VESTA_FN cplx<R> operator*(cplx<R> a, cplx<R> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class R>
VESTA_FN bool operator==(cplx<R> a, cplx<R> b) {
  return (a.re == b.re) & (a.im == b.im);
}
template <class R>
VESTA_FN bool operator!=(cplx<R> a, cplx<R> b) {
  return (a.re != b.re) | (a.im != b.im);
}
template <class R>
VESTA_FN cplx<R> scaled_(cplx<R> a, R s) {
  return {a.re * s, a.im * s};
}

// float divides in double, whose exponent range covers every square; double divides by the divisor brought to
// magnitude 1 by a power of two. x / 0 gives infinities and NaN as the real division does.
VESTA_FN cplx<float> operator/(cplx<float> a, cplx<float> b) {
  double ar = a.re, ai = a.im, br = b.re, bi = b.im;
  double norm = br * br + bi * bi;
  return {static_cast<float>((ar * br + ai * bi) / norm), static_cast<float>((ai * br - ar * bi) / norm)};
}
VESTA_FN cplx<double> operator/(cplx<double> a, cplx<double> b) {
  double ax = abs_(b.re), ay = abs_(b.im), big = where_(ax > ay, ax, ay);
  // 2^-exponent, in two steps from the bits; 0, subnormal and infinite divisors use the nearest normal power.
  uint64_t e = bits_(big) >> 52;
  e = where_(e < 2, uint64_t{2}, where_(e > 2044, uint64_t{2044}, e));
  double s = from_bits_((uint64_t{2046} - e) << 52);
  double br = b.re * s, bi = b.im * s, norm = br * br + bi * bi;
  double ar = a.re, ai = a.im;
  return {((ar * br + ai * bi) / norm) * s, ((ai * br - ar * bi) / norm) * s};
}

template <class R>
VESTA_FN cplx<R> add_(cplx<R> a, cplx<R> b) {
  return a + b;
}
template <class R>
VESTA_FN cplx<R> sub_(cplx<R> a, cplx<R> b) {
  return a - b;
}
template <class R>
VESTA_FN cplx<R> mul_(cplx<R> a, cplx<R> b) {
  return a * b;
}
template <class R>
VESTA_FN cplx<R> neg_(cplx<R> a) {
  return -a;
}
template <class R>
VESTA_FN cplx<R> fma_(cplx<R> a, cplx<R> b, cplx<R> c) {
  return a * b + c;
}
template <class R>
VESTA_FN cplx<R> conj_(cplx<R> a) {
  return {a.re, -a.im};
}
template <class R>
VESTA_FN cplx<R> times_i_(cplx<R> a) {
  return {-a.im, a.re};
}
VESTA_FN float conj_(float x) { return x; }
VESTA_FN double conj_(double x) { return x; }

// Functions with a real value come twice: NAMEr_ returns R; NAME_ returns it as a complex number, for texts of type T.
template <class R>
VESTA_FN R absr_(cplx<R> a) {
  return hypot_(a.re, a.im);
}
template <class R>
VESTA_FN R argr_(cplx<R> a) {
  return atan2_(a.im, a.re);
}
template <class R>
VESTA_FN R realr_(cplx<R> a) {
  return a.re;
}
template <class R>
VESTA_FN R imagr_(cplx<R> a) {
  return a.im;
}
template <class R>
VESTA_FN cplx<R> abs_(cplx<R> a) {
  return {absr_(a), R(0)};
}
template <class R>
VESTA_FN cplx<R> arg_(cplx<R> a) {
  return {argr_(a), R(0)};
}
template <class R>
VESTA_FN cplx<R> real_(cplx<R> a) {
  return {a.re, R(0)};
}
template <class R>
VESTA_FN cplx<R> imag_(cplx<R> a) {
  return {a.im, R(0)};
}
VESTA_FN float real_(float x) { return x; }
VESTA_FN double real_(double x) { return x; }
template <class R>
VESTA_FN R real_arg_(R x) {
  return where_(x != x, x, where_(x < R(0), R(3.1415926535897931), R(0)));
}
VESTA_FN float arg_(float x) { return real_arg_(x); }
VESTA_FN double arg_(double x) { return real_arg_(x); }

template <class R>
VESTA_FN bool isnan_(cplx<R> a) {
  return isnan_(a.re) | isnan_(a.im);
}
template <class R>
VESTA_FN bool isinf_(cplx<R> a) {
  return isinf_(a.re) | isinf_(a.im);
}
template <class R>
VESTA_FN bool isfinite_(cplx<R> a) {
  return isfinite_(a.re) & isfinite_(a.im);
}
template <class R>
VESTA_FN cplx<R> sign_(cplx<R> a) {  // z / |z|, 0 at 0
  R m = absr_(a), safe = where_(m == R(0), R(1), m);
  return {a.re / safe, a.im / safe};
}

template <class R>
VESTA_FN cplx<R> exp_(cplx<R> a) {
  // Half the exponent twice, so that e^re * cos(im) overflows only if the product does. A real argument stays real.
  R m = exp_(a.re * R(0.5));
  SinCos<R> t = sincos_(a.im);
  R im = where_(a.im == R(0), a.im, m * (m * t.sin));
  return {where_(a.im == R(0), exp_(a.re), m * (m * t.cos)), im};
}
template <class R>
VESTA_FN R log_abs_(cplx<R> a) {
  R ax = abs_(a.re), ay = abs_(a.im), big = where_(ax > ay, ax, ay), small = where_(ax > ay, ay, ax);
  // Near |z| = 1, log|z| = log1p(|z|^2 - 1) / 2 with |z|^2 - 1 formed without cancellation.
  bool near_one = (big < R(1.5)) & (big > R(0.5));
  Pair<R> b2 = two_product_(big, big), s2 = two_product_(small, small);
  R excess = ((b2.hi - R(1)) + s2.hi) + (b2.lo + s2.lo);
  return where_(near_one, R(0.5) * log1p_(where_(near_one, excess, R(0))), log_(hypot_(ax, ay)));
}
template <class R>
VESTA_FN cplx<R> log_(cplx<R> a) {
  return {log_abs_(a), argr_(a)};
}
template <class R>
VESTA_FN cplx<R> log2_(cplx<R> a) {
  return scaled_(log_(a), R(1.4426950408889634));
}
template <class R>
VESTA_FN cplx<R> log10_(cplx<R> a) {
  return scaled_(log_(a), R(0.43429448190325182));
}
template <class R>
VESTA_FN cplx<R> log1p_(cplx<R> a) {
  R u = R(1) + a.re;
  bool close = (abs_(a.re) < R(0.5)) & (abs_(a.im) < R(0.5));
  // |1 + z|^2 - 1 = re (2 + re) + im^2, accurate for small z.
  R excess = a.re * (R(2) + a.re) + a.im * a.im;
  R near_value = R(0.5) * log1p_(where_(close, excess, R(0)));
  return {where_(close, near_value, log_abs_(cplx<R>(u, a.im))), atan2_(a.im, u)};
}
template <class R>
VESTA_FN cplx<R> sqrt_(cplx<R> a) {
  // Scaled by a power of four where |z| + |re| could overflow or lose subnormal bits.
  R ax = abs_(a.re), ay = abs_(a.im), top = where_(ax > ay, ax, ay);
  bool big = top > Limits<R>::max() * R(0.125), tiny = top < Limits<R>::min_normal() * R(4294967296.0);
  R down = where_(big, R(0.0625), where_(tiny, R(18446744073709551616.0), R(1)));
  R up = where_(big, R(4), where_(tiny, R(2.3283064365386963e-10), R(1)));
  R x = a.re * down, y = a.im * down;
  R t = sqrt_(R(0.5) * (abs_(x) + hypot_(x, y)));
  R other = where_(t == R(0), R(0), abs_(y) / (R(2) * where_(t == R(0), R(1), t)));
  bool left = a.re < R(0);
  R re = where_(left, other, t) * up, im = where_(left, t, other) * up;
  re = where_(ay == Limits<R>::inf(), ay, re);
  im = where_(ay == Limits<R>::inf(), ay, im);
  return {re, copysign_(im, a.im)};
}
template <class R>
VESTA_FN cplx<R> rsqrt_(cplx<R> a) {
  return cplx<R>(R(1)) / sqrt_(a);
}

template <class R>
VESTA_FN cplx<R> sinh_(cplx<R> a) {
  SinCos<R> t = sincos_(a.im);
  return {sinh_(a.re) * t.cos, where_(a.im == R(0), a.im, cosh_(a.re) * t.sin)};
}
template <class R>
VESTA_FN cplx<R> cosh_(cplx<R> a) {
  SinCos<R> t = sincos_(a.im);
  return {cosh_(a.re) * t.cos, where_(a.im == R(0), a.re * a.im, sinh_(a.re) * t.sin)};
}
template <class R>
VESTA_FN cplx<R> tanh_(cplx<R> a) {
  // Kahan: with t = tan(im), s = sinh(re), b = 1 + t^2, r = sqrt(1 + s^2): (b r s + i t) / (1 + b s^2); beyond |re| = 20
  // (float: 11) that is sign(re) + i 4 sin cos e^(-2|re|).
  R limit = ExpRange<R>::kTanh + R(2), a_re = abs_(a.re);
  bool far = a_re > limit;
  R x = where_(far, limit, a_re);
  R t = tan_(a.im), b = R(1) + t * t, s = sinh_(x), r = sqrt_(R(1) + s * s), d = R(1) + b * s * s;
  bool vertical = abs_(t) > R(1.0e15);  // cos(im) == 0 as far as t tells: tanh = coth(re)
  R safe_s = where_(s == R(0), R(1), s);
  R re = where_(vertical, r / safe_s, b * r * s / d);
  R im = where_(vertical, R(1) / (t * s * s), t / d);
  SinCos<R> c = sincos_(a.im);
  im = where_(far, R(4) * c.sin * c.cos * exp_(R(-2) * a_re), im);
  return {copysign_(where_(far, R(1), re), a.re), where_(a.im == R(0), a.im, im)};
}
template <class R>
VESTA_FN cplx<R> sin_(cplx<R> a) {  // -i sinh(i z)
  cplx<R> h = sinh_(times_i_(a));
  return {h.im, -h.re};
}
template <class R>
VESTA_FN cplx<R> cos_(cplx<R> a) {
  return cosh_(times_i_(a));
}
template <class R>
VESTA_FN cplx<R> tan_(cplx<R> a) {
  cplx<R> h = tanh_(times_i_(a));
  return {h.im, -h.re};
}

// Kahan's forms ("Branch cuts for complex elementary functions", 1987): real and imaginary parts come from products of
// square roots, which cancel nowhere and put the branch cuts by the sign of zero.
template <class R>
VESTA_FN cplx<R> asin_(cplx<R> a) {
  cplx<R> p = sqrt_(cplx<R>(R(1) - a.re, -a.im)), q = sqrt_(cplx<R>(R(1) + a.re, a.im));
  R re = atan2_(a.re, p.re * q.re - p.im * q.im);
  return {re, asinh_(p.re * q.im - p.im * q.re)};
}
template <class R>
VESTA_FN cplx<R> acos_(cplx<R> a) {
  cplx<R> p = sqrt_(cplx<R>(R(1) - a.re, -a.im)), q = sqrt_(cplx<R>(R(1) + a.re, a.im));
  return {R(2) * atan2_(p.re, q.re), asinh_(q.re * p.im - q.im * p.re)};
}
template <class R>
VESTA_FN cplx<R> acosh_(cplx<R> a) {
  cplx<R> p = sqrt_(cplx<R>(a.re - R(1), a.im)), q = sqrt_(cplx<R>(a.re + R(1), a.im));
  return {asinh_(p.re * q.re + p.im * q.im), R(2) * atan2_(p.im, q.re)};
}
template <class R>
VESTA_FN cplx<R> asinh_(cplx<R> a) {  // -i asin(i z)
  cplx<R> h = asin_(times_i_(a));
  return {h.im, -h.re};
}
template <class R>
VESTA_FN cplx<R> atanh_(cplx<R> a) {
  // re = log1p(4 x / ((1 - x)^2 + y^2)) / 4, im = atan2(2 y, (1 - x)(1 + x) - y^2) / 2, with x >= 0.
  R x = abs_(a.re), y = a.im, d = R(1) - x;
  R re = R(0.25) * log1p_(R(4) * x / (d * d + y * y));
  R im = R(0.5) * atan2_(R(2) * y, d * (R(1) + x) - y * y);
  return {copysign_(re, a.re), im};
}
template <class R>
VESTA_FN cplx<R> atan_(cplx<R> a) {  // -i atanh(i z)
  cplx<R> h = atanh_(times_i_(a));
  return {h.im, -h.re};
}

template <class R>
VESTA_FN cplx<R> pow_(cplx<R> a, cplx<R> b) {
  // e^(b log a); 0^b is 0 for re(b) > 0, 1 for b = 0.
  bool zero = (a.re == R(0)) & (a.im == R(0)), none = (b.re == R(0)) & (b.im == R(0));
  cplx<R> safe = cplx<R>(where_(zero, R(1), a.re), where_(zero, R(0), a.im));
  cplx<R> r = exp_(b * log_(safe));
  R at_zero = where_(b.re > R(0), R(0), Limits<R>::nan());
  R re = where_(zero, at_zero, r.re), im = where_(zero, at_zero, r.im);
  return {where_(none, R(1), re), where_(none, R(0), im)};
}
template <class R>
VESTA_FN cplx<R> expm1_(cplx<R> a) {
  // e^x cos y - 1 = expm1(x) cos y - 2 sin^2(y/2)
  SinCos<R> t = sincos_(a.im);
  R h = sin_(a.im * R(0.5)), e = exp_(a.re);
  return {expm1_(a.re) * t.cos - R(2) * h * h, where_(a.im == R(0), a.im, e * t.sin)};
}
template <class R>
VESTA_FN cplx<R> exp2_(cplx<R> a) {
  return exp_(scaled_(a, R(0.69314718055994531)));
}
template <class R>
VESTA_FN cplx<R> sigmoid_(cplx<R> a) {
  // 1 / (1 + e^-z) for re >= 0, e^z / (1 + e^z) for re < 0: the exponential never overflows.
  bool left = a.re < R(0);
  cplx<R> e = exp_(cplx<R>(-abs_(a.re), where_(left, a.im, -a.im)));
  cplx<R> one = cplx<R>(R(1), R(0));
  return cplx<R>(where_(left, e.re, R(1)), where_(left, e.im, R(0))) / (one + e);
}

}  // namespace vesta::scalar
