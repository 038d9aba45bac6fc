#pragma once
// Part of the scalar prelude (include prelude.h): erfc scaled by e^(x^2) on the whole line, and the inverse of the
// normal distribution function. Both rest on prelude_erf.h, whose erfcx_ is a piece that covers only erfc's own range.

namespace vesta::scalar {

// e^(x^2) erfc(x). Beyond erfcx_'s range the asymptotic series in u = 1 / (2 x^2), whose seventh term is below
// 1e-15 (double, x > 27) and the fifth below 3e-8 (float, x > 10); for x < 0, 2 e^(x^2) - erfcx(-x).
VESTA_FN float erfcx_end_(float) { return 10.0f; }
VESTA_FN double erfcx_end_(double) { return 27.0; }
template <class R>
VESTA_FN R erfcx_full_(R x) {
  R a = abs_(x), end = erfcx_end_(x);
  R inner = erfcx_(where_(a < end, a, end));
  R far = where_(a < end, end, a), u = R(0.5) / (far * far);
  R series = R(1) - u * (R(1) - u * (R(3) - u * (R(15) - u * (R(105) - u * (R(945) - u * R(10395))))));
  R positive = where_(a < end, inner, series * R(0.56418958354775629) / far);
  R square = x * x, low = product_error_(x, x, square);
  R negative = R(2) * exp_pair_(square, where_(square < R(800), low, R(0))) - positive;
  return where_(x != x, x, where_(x < R(0), negative, positive));
}

// The start is Abramowitz and Stegun 26.2.23 (error below 4.5e-4), then two steps of Halley's method on ndtr in the
// lower half, where ndtr keeps its relative accuracy; the upper half by symmetry (1 - p is exact there).
template <class R>
VESTA_FN R ndtri_step_(R x, R p) {
  R u = (ndtr_(x) - p) / (R(0.3989422804014327) * exp_(R(-0.5) * x * x));
  return x - u / (R(1) + R(0.5) * x * u);
}
template <class R>
VESTA_FN R ndtri_(R p) {
  bool upper = p > R(0.5);
  R q = where_(upper, R(1) - p, p);
  R safe = where_(q > R(0), q, R(0.5));
  R t = sqrt_(R(-2) * log_(safe));
  R x = ((R(0.010328) * t + R(0.802853)) * t + R(2.515517)) / (((R(0.001308) * t + R(0.189269)) * t + R(1.432788)) * t + R(1)) - t;
  x = ndtri_step_(ndtri_step_(x, safe), safe);
  R r = where_(q == R(0), -Limits<R>::inf(), where_(q > R(0), x, Limits<R>::nan()));
  return where_(upper, -r, r);
}

}  // namespace vesta::scalar
