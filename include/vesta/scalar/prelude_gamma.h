#pragma once
// Part of the scalar prelude (include prelude.h): lgamma, digamma and sines of multiples of pi. float goes through
// double, whose relative error also covers the neighbourhoods of the zeros on the positive axis.

namespace vesta::scalar {

// sin(pi x) and cos(pi x), exact at integers and half-integers.
VESTA_FN SinCos<double> sincospi_(double x) {
  double n = round_(2.0 * x), r = fma_(n, -0.5, x);  // |r| <= 1/4, exact
  SinCos<double> k = kernel_sincos_(r * 3.1415926535897931, r * 1.2246467991473532e-16);
  double quadrant = n - 4.0 * floor_(n * 0.25);
  bool odd = (quadrant == 1.0) | (quadrant == 3.0);
  double s = where_(odd, k.cos, k.sin), c = where_(odd, k.sin, k.cos);
  return {where_(quadrant >= 2.0, -s, s), where_((quadrant == 1.0) | (quadrant == 2.0), -c, c)};
}

VESTA_FN double lgamma_(double x) {
  double ax = abs_(x);
  bool reflect = x < 0.0;
  // On [1.5, 2.5): f P(f), f = x - 2. Below, log of x or x (x + 1) leads there; above, log of a product of at most six
  // factors; from 8 on Stirling's series. One logarithm serves all four.
  bool below = ax < 0.5, low = ax < 1.5, high = ax >= 8.0;
  double f = where_(below, ax, where_(low, ax - 1.0, ax - 2.0)), product = 1.0;
  bool over = ax >= 2.5;
  product = where_(over, ax - 1.0, product);
  f = where_(over, ax - 3.0, f);
  over = ax >= 3.5;
  product = where_(over, product * (ax - 2.0), product);
  f = where_(over, ax - 4.0, f);
  over = ax >= 4.5;
  product = where_(over, product * (ax - 3.0), product);
  f = where_(over, ax - 5.0, f);
  over = ax >= 5.5;
  product = where_(over, product * (ax - 4.0), product);
  f = where_(over, ax - 6.0, f);
  over = ax >= 6.5;
  product = where_(over, product * (ax - 5.0), product);
  f = where_(over, ax - 7.0, f);
  over = ax >= 7.5;
  product = where_(over, product * (ax - 6.0), product);
  f = where_(over, ax - 8.0, f);
  double argument = where_(below, ax * (ax + 1.0), where_(low, ax, where_(high, ax, product)));
  // Below 1e-290 the product above would be subnormal; there lgamma(x) = -log(x).
  argument = where_(ax < 1.0e-290, ax, argument);
  double l = log_(argument);
  double p = 3.3941174681592124e-07;
  p = fma_(p, f, 3.9623202385825382e-08);
  p = fma_(p, f, -1.2249937560796505e-07);
  p = fma_(p, f, -6.2561899212507634e-07);
  p = fma_(p, f, 1.1196913140053682e-06);
  p = fma_(p, f, -1.9534959276581638e-06);
  p = fma_(p, f, 4.330407105289249e-06);
  p = fma_(p, f, -9.4615402557469026e-06);
  p = fma_(p, f, 2.051436246359805e-05);
  p = fma_(p, f, -4.4922955124768143e-05);
  p = fma_(p, f, 9.9456817612742881e-05);
  p = fma_(p, f, -0.00022315504422865142);
  p = fma_(p, f, 0.00050966956443737577);
  p = fma_(p, f, -0.001192753897754448);
  p = fma_(p, f, 0.0028905103295147005);
  p = fma_(p, f, -0.0073855510290145743);
  p = fma_(p, f, 0.020580808427801762);
  p = fma_(p, f, -0.067352301053194896);
  p = fma_(p, f, 0.32246703342411315);
  p = fma_(p, f, 0.42278433509846713);
  double middle = fma_(p, f, where_(low, -l, where_(ax >= 2.5, l, 0.0)));
  double v = 1.0 / where_(high, ax, 8.0), w = v * v;
  double t = 0.004426488503665514;
  t = fma_(t, w, -0.0018607251728887978);
  t = fma_(t, w, 0.0008409553920359359);
  t = fma_(t, w, -0.0005952324801255653);
  t = fma_(t, w, 0.0007936507750209551);
  t = fma_(t, w, -0.002777777777754771);
  t = fma_(t, w, 0.08333333333333333);
  double far = fma_(ax - 0.5, l - 1.0, fma_(t, v, 0.41893853320467274));
  double r = where_(high, far, middle);
  // lgamma(-x) = log(pi / (x |sin(pi x)|)) - lgamma(x)
  double sine = abs_(sincospi_(ax).sin);
  double reflected = log_(3.1415926535897931 / (where_(reflect, ax * sine, 1.0))) - r;
  reflected = where_(ax < 1.0e-100, r, reflected);
  r = where_(reflect, reflected, r);
  r = where_(ax == Limits<double>::inf(), ax, r);
  bool pole = (x <= 0.0) & (trunc_(x) == x);
  return where_(x != x, x, where_(pole, Limits<double>::inf(), r));
}
VESTA_FN float lgamma_(float x) { return static_cast<float>(lgamma_(static_cast<double>(x))); }

VESTA_FN double digamma_(double x) {
  double a = abs_(x);
  // psi(a) = psi(a + 8) - sum of 1 / (a + i), the sum as one fraction.
  bool shift = a < 8.0;
  double b = where_(shift, a, 0.0), num = 1.0, den = b;
  num = fma_(num, b + 1.0, den);
  den *= b + 1.0;
  num = fma_(num, b + 2.0, den);
  den *= b + 2.0;
  num = fma_(num, b + 3.0, den);
  den *= b + 3.0;
  num = fma_(num, b + 4.0, den);
  den *= b + 4.0;
  num = fma_(num, b + 5.0, den);
  den *= b + 5.0;
  num = fma_(num, b + 6.0, den);
  den *= b + 6.0;
  num = fma_(num, b + 7.0, den);
  den *= b + 7.0;
  double y = where_(shift, a + 8.0, a), v = 1.0 / y, w = v * v;
  double t = -0.017270652435678345;
  t = fma_(t, w, 0.0074995296557515048);
  t = fma_(t, w, -0.00416589789960031);
  t = fma_(t, w, 0.0039682500061754486);
  t = fma_(t, w, -0.0083333333238984741);
  t = fma_(t, w, 0.083333333333325835);
  double r = log_(y) - fma_(w, t, 0.5 * v);
  r = where_(shift, r - num / where_(shift, den, 1.0), r);
  // Around the zero x0 = 1.46163..., (x - x0) P(x - 1.5) with x0 in two parts.
  double c = a - 1.5;
  double p = -0.00060581785136234177;
  p = fma_(p, c, 0.00029181443035145173);
  p = fma_(p, c, 0.00041456119782006423);
  p = fma_(p, c, 0.0001871987789965682);
  p = fma_(p, c, -0.00079942739519763895);
  p = fma_(p, c, 0.00074451869143740462);
  p = fma_(p, c, -0.00093818405108497609);
  p = fma_(p, c, 0.0015504241219792625);
  p = fma_(p, c, -0.0023643731786564095);
  p = fma_(p, c, 0.0035201045873606072);
  p = fma_(p, c, -0.0052776489065153778);
  p = fma_(p, c, 0.0079268244917601108);
  p = fma_(p, c, -0.011908393820545815);
  p = fma_(p, c, 0.017907260435525714);
  p = fma_(p, c, -0.026975788740938231);
  p = fma_(p, c, 0.040760833507126934);
  p = fma_(p, c, -0.061922133473654516);
  p = fma_(p, c, 0.094988724460851812);
  p = fma_(p, c, -0.14840492305161088);
  p = fma_(p, c, 0.24054248424072994);
  p = fma_(p, c, -0.42362742128146824);
  p = fma_(p, c, 0.95105587603183295);
  bool near_root = (a > 1.0) & (a < 2.0);
  r = where_(near_root, ((a - 1.4616321449683622) - 9.549995429965697e-17) * p, r);
  // psi(-a) = psi(a) + 1 / a + pi cot(pi a)
  SinCos<double> sc = sincospi_(a);
  double reflected = (r + 1.0 / a) + 3.1415926535897931 * sc.cos / sc.sin;
  r = where_(x < 0.0, reflected, r);
  r = where_(a < 1.0e-290, -1.0 / x, r);
  r = where_((x < 0.0) & (trunc_(x) == x), Limits<double>::nan(), r);
  return where_(x == 0.0, copysign_(Limits<double>::inf(), -x), r);
}
VESTA_FN float digamma_(float x) { return static_cast<float>(digamma_(static_cast<double>(x))); }

}  // namespace vesta::scalar
