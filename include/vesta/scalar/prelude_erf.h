#pragma once
// Part of the scalar prelude (include prelude.h): the error function's family and the GELU activations.

namespace vesta::scalar {

// erf(x) = x + x P(x^2) for small x: 2^-25.8 on |x| < 0.93 (float), 2^-55.9 on |x| <= 1 (double).
VESTA_FN float erf_small_(float x) {
  float z = x * x;
  float p = -5.95899881e-4f;
  p = fma_(p, z, 4.98725148e-3f);
  p = fma_(p, z, -2.67629139e-2f);
  p = fma_(p, z, 1.12817302e-1f);
  p = fma_(p, z, -3.76124889e-1f);
  p = fma_(p, z, 1.28379151e-1f);
  return fma_(x, p, x);
}
VESTA_FN double erf_small_(double x) {
  double z = x * x;
  double p = -7.608056856837966e-10;
  p = fma_(p, z, 1.3616813837647288e-08);
  p = fma_(p, z, -1.618401369049396e-07);
  p = fma_(p, z, 1.6444152978014977e-06);
  p = fma_(p, z, -1.4924465791425753e-05);
  p = fma_(p, z, 0.00012055280502268727);
  p = fma_(p, z, -0.00085483254851211022);
  p = fma_(p, z, 0.0052239775967372207);
  p = fma_(p, z, -0.026866170641959196);
  p = fma_(p, z, 0.1128379167093695);
  p = fma_(p, z, -0.37612638903183343);
  p = fma_(p, z, 0.12837916709551256);
  return fma_(x, p, x);
}

// erfc(t) e^(t^2) for 0 <= t <= 10.1 (float) or 27.4 (double), beyond which erfc underflows: v P((t - k) v) with
// v = 1 / (t + k), which maps the range onto an interval where a polynomial converges fast.
VESTA_FN float erfcx_(float t) {
  float v = 1.0f / (t + 3.0f), p = (t - 3.0f) * v;
  float q = -2.96170736e-4f;
  q = fma_(q, p, -4.32859757e-4f);
  q = fma_(q, p, 3.0804933e-3f);
  q = fma_(q, p, -1.25940505e-3f);
  q = fma_(q, p, -2.68462673e-2f);
  q = fma_(q, p, 1.195364e-1f);
  q = fma_(q, p, -3.1046471e-1f);
  q = fma_(q, p, 5.90227723e-1f);
  q = fma_(q, p, -8.83394539e-1f);
  q = fma_(q, p, 1.07400692f);
  return q * v;
}
VESTA_FN double erfcx_(double t) {
  double v = 1.0 / (t + 4.0), p = (t - 4.0) * v;
  double q = -3.4191250278982775e-09;
  q = fma_(q, p, -1.103830561702443e-08);
  q = fma_(q, p, -9.165142723560351e-09);
  q = fma_(q, p, 3.3673583998878959e-08);
  q = fma_(q, p, 1.2736139194530204e-07);
  q = fma_(q, p, -1.1701801410254715e-07);
  q = fma_(q, p, -8.5912321549468968e-07);
  q = fma_(q, p, 1.4538182294333439e-06);
  q = fma_(q, p, 4.7064170383798423e-06);
  q = fma_(q, p, -1.8874038144549994e-05);
  q = fma_(q, p, -3.6409598348423528e-06);
  q = fma_(q, p, 0.0001768165816994101);
  q = fma_(q, p, -0.00045505105309002569);
  q = fma_(q, p, -0.00028095955959928548);
  q = fma_(q, p, 0.0061120553844229665);
  q = fma_(q, p, -0.026370053260659977);
  q = fma_(q, p, 0.07638151493465066);
  q = fma_(q, p, -0.17401093724515243);
  q = fma_(q, p, 0.33085158787683572);
  q = fma_(q, p, -0.54085383131307274);
  q = fma_(q, p, 0.77320870226525773);
  q = fma_(q, p, -0.97654872908088353);
  q = fma_(q, p, 1.0959956610004911);
  return q * v;
}
template <class R>
struct ErfcRange;
template <>
struct ErfcRange<float> {
  static constexpr float kEnd = 10.1f, kNormalEnd = 14.25f;
};
template <>
struct ErfcRange<double> {
  static constexpr double kEnd = 27.4, kNormalEnd = 38.7;
};
template <class R>
VESTA_FN R erfc_positive_(R t) {  // erfc(t), t >= 0
  R c = where_(t > ErfcRange<R>::kEnd, ErfcRange<R>::kEnd, t);
  R square = c * c;
  return exp_negative_pair_(-square, -product_error_(c, c, square)) * erfcx_(c);
}
template <class R>
VESTA_FN R real_erfc_(R x) {
  R tail = erfc_positive_(abs_(x));
  R r = where_(x < R(0), R(2) - tail, tail);
  return where_(abs_(x) < R(0.5), R(1) - erf_small_(x), r);
}
VESTA_FN float erfc_(float x) { return real_erfc_(x); }
VESTA_FN double erfc_(double x) { return real_erfc_(x); }

VESTA_FN float erf_(float x) {
  // Tail: -log(erfc(t)) = t + t Q(t) on [0.92, 4], absolute error below 2^-30 in erfc; from 4 on erf rounds to 1.
  float a = abs_(x), t = where_(a > 4.0f, 4.0f, a);
  float q = 1.12387906e-5f;
  q = fma_(q, t, -3.22865148e-4f);
  q = fma_(q, t, 3.64265777e-3f);
  q = fma_(q, t, -2.37623863e-2f);
  q = fma_(q, t, 1.06237151e-1f);
  q = fma_(q, t, 6.35151207e-1f);
  q = fma_(q, t, 1.28648505e-1f);
  ExpParts<float> e = exp_parts_(-fma_(q, t, t));
  float s = exp_power_(e.biased, 0);
  float tail = 1.0f - s * exp_mantissa_(e);
  return where_(a < 0.925f, erf_small_(x), copysign_(tail, x));
}
VESTA_FN double erf_(double x) {
  double a = abs_(x), t = where_(a > 6.0, 6.0, a);
  double s = t * t;
  double tail = 1.0 - exp_negative_pair_(-s, -product_error_(t, t, s)) * erfcx_(t);
  return where_(a < 1.0, erf_small_(x), copysign_(tail, x));
}

// Phi(-a) e^(a^2 / 2) for 0 <= a <= 14.3 (float) or 38.8 (double), in erfcx_'s form.
VESTA_FN float normal_tail_(float a) {
  float v = 1.0f / (a + 4.25f), p = (a - 4.25f) * v;
  float q = -0.000241845453f;
  q = fma_(q, p, -0.000375124597f);
  q = fma_(q, p, 0.00218772609f);
  q = fma_(q, p, -0.000744282152f);
  q = fma_(q, p, -0.0193680394f);
  q = fma_(q, p, 0.0852706805f);
  q = fma_(q, p, -0.220514908f);
  q = fma_(q, p, 0.418227643f);
  q = fma_(q, p, -0.625129819f);
  q = fma_(q, p, 0.759554207f);
  return q * v;
}
VESTA_FN double normal_tail_(double a) {
  double v = 1.0 / (a + 5.625), p = (a - 5.625) * v;
  double q = 1.5181930856771922e-09;
  q = fma_(q, p, 1.4516257332666834e-09);
  q = fma_(q, p, -1.1425058449545919e-08);
  q = fma_(q, p, 3.4184940782361514e-10);
  q = fma_(q, p, 8.1961156092400996e-08);
  q = fma_(q, p, -7.85522549092403e-08);
  q = fma_(q, p, -5.4046793279151119e-07);
  q = fma_(q, p, 1.15374406880153e-06);
  q = fma_(q, p, 2.73208832881498e-06);
  q = fma_(q, p, -1.3426407374564593e-05);
  q = fma_(q, p, 1.9838180798457408e-06);
  q = fma_(q, p, 0.0001145874563539504);
  q = fma_(q, p, -0.00032854808619924572);
  q = fma_(q, p, -8.4608567078280452e-05);
  q = fma_(q, p, 0.003904093292427714);
  q = fma_(q, p, -0.017638971143084044);
  q = fma_(q, p, 0.052157156944148103);
  q = fma_(q, p, -0.12032011607413125);
  q = fma_(q, p, 0.23070730075444845);
  q = fma_(q, p, -0.37936800525934072);
  q = fma_(q, p, 0.54453055297996145);
  q = fma_(q, p, -0.68946939674879282);
  q = fma_(q, p, 0.77474633686428829);
  return q * v;
}
// Normal distribution function; the lower tail keeps full relative accuracy.
template <class R>
VESTA_FN R real_ndtr_(R x) {
  R a = abs_(x), c = where_(a > ErfcRange<R>::kNormalEnd, ErfcRange<R>::kNormalEnd, a);
  R square = c * c, low = product_error_(c, c, square);
  R tail = exp_negative_pair_(R(-0.5) * square, R(-0.5) * low) * normal_tail_(c);
  R r = where_(x < R(0), tail, R(1) - tail);
  return where_(a < R(0.75), fma_(R(0.5), erf_small_(x * R(0.70710678118654757)), R(0.5)), r);
}
VESTA_FN float ndtr_(float x) { return real_ndtr_(x); }
VESTA_FN double ndtr_(double x) { return real_ndtr_(x); }

// x Phi(x) and its derivative, with c = min(|x|, kNormalEnd): e^(-c^2 / 2) = scale (1 + q) 2^-32, where c^2 is a pair
// because its error is multiplied by up to 100. -2 (n log(2) + r) instead of its half saves products: the coefficients
// are exp_tail_'s by powers of -1/2.
struct NormalDensity {
  float scale, q;
};
VESTA_FN NormalDensity normal_density_(float c) {
  float s = c * c, low = product_error_(c, c, s);
  constexpr float kMagic = 0x1.8p23f + (127.0f + 32.0f);
  float biased = fma_(s, -0.721347520f, kMagic), n = biased - kMagic;
  float t = fma_(n, 2.0f * 6.9313812256e-01f, s);
  t = t + fma_(n, 2.0f * 9.0580006145e-06f, low);
  float q = 1.38382055e-3f / 64.0f;
  q = fma_(q, t, -8.36731866e-3f / 32.0f);
  q = fma_(q, t, 4.16677408e-2f / 16.0f);
  q = fma_(q, t, -1.66665375e-1f / 8.0f);
  q = fma_(q, t, 4.99999970e-1f / 4.0f);
  return {from_bits_(bits_(biased) << 23), t * fma_(q, t, -0.5f)};
}
// c Phi(-c) e^(c^2 / 2) = y (1 + z p), y = c / (c + k), z = y - z0. y maps the line onto [0, 1), where a polynomial of
// degree 9 is within 2^-27.6 of the quotient; it is 1 at z = 0, so that rounding z p costs less than rounding a sum.
static constexpr float kGeluShift = 3.375f, kGeluCentre = 0.309623986f;
VESTA_FN float gelu_tail_(float z) {
  float p = 0.0699888021f;
  p = fma_(p, z, -0.0406710431f);
  p = fma_(p, z, -0.138654262f);
  p = fma_(p, z, 0.0413615331f);
  p = fma_(p, z, 0.312896639f);
  p = fma_(p, z, -0.145796016f);
  p = fma_(p, z, -0.788502216f);
  p = fma_(p, z, 1.64189923f);
  return fma_(p, z, -1.64345288f);
}
// As integers, which gcc turns into one minimum (a select on floats it carries through all that follows). A NaN is
// lost; the callers bring it back.
VESTA_FN float gelu_clamp_(float x) {
  uint32_t magnitude = bits_(x) & 0x7fffffffu, end = bits_(ErfcRange<float>::kNormalEnd);
  return from_bits_(where_(magnitude < end, magnitude, end));
}
// x Phi(x) = max(x, 0) - |x| Phi(-|x|): no sum cancels, unlike 0.5 x (1 + erf(x / sqrt(2))), and no branch is needed.
// The product by 0 makes NaN of minus infinity, as PyTorch does.
VESTA_FN float gelu_erf_(float x) {
  float c = gelu_clamp_(x);
  NormalDensity e = normal_density_(c);
  float y = c / (c + kGeluShift), z = y - kGeluCentre;
  float w = y * e.scale, h = fma_(w * z, gelu_tail_(z), w);
  return fma_(fma_(h, e.q, h), -0x1p-32f, where_(x < 0.0f, x * 0.0f, x));
}
template <class R>
VESTA_FN R normal_density_pair_(R c) {  // e^(-c^2 / 2)
  R square = c * c, low = product_error_(c, c, square);
  return exp_negative_pair_(R(-0.5) * square, R(-0.5) * low);
}
VESTA_FN double gelu_erf_(double x) {
  double a = abs_(x), c = where_(a > ErfcRange<double>::kNormalEnd, ErfcRange<double>::kNormalEnd, a);
  double tail = normal_density_pair_(c) * normal_tail_(c);
  return fma_(-c, tail, where_(x < 0.0, x * 0.0, x));
}
// Its derivative Phi(x) + x phi(x): with m = Phi(-|x|) - |x| phi(x), m for x < 0, else 1 - m.
template <class R>
VESTA_FN R gelu_erf_slope_join_(R x, R m) {
  return where_(x < R(0), m, where_(x == x, R(1) - m, x));
}
VESTA_FN float gelu_erf_slope_(float x) {
  float c = gelu_clamp_(x);
  NormalDensity e = normal_density_(c);
  float v = 1.0f / (c + kGeluShift), z = fma_(c, v, -kGeluCentre);
  float tail = fma_(v * z, gelu_tail_(z), v);  // Phi(-c) e^(c^2 / 2)
  float m = fma_(c, -0.398942280f, tail) * e.scale;
  return gelu_erf_slope_join_(x, fma_(m, e.q, m) * 0x1p-32f);
}
VESTA_FN double gelu_erf_slope_(double x) {
  double a = abs_(x), c = where_(a > ErfcRange<double>::kNormalEnd, ErfcRange<double>::kNormalEnd, a);
  double m = normal_density_pair_(c) * fma_(c, -0.3989422804014327, normal_tail_(c));
  return gelu_erf_slope_join_(x, m);
}

// 0.5 x (1 + tanh(u)) = x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3); 2u is carried as a pair because its relative
// error is multiplied by |2u| (up to 100) in the tail.
template <class R>
struct GeluTanh;
template <>
struct GeluTanh<float> {
  static constexpr float kScale = 1.59576917f, kScaleLow = -4.53406804e-8f;
  static constexpr float kCubic = 4.47149985e-2f, kCubicLow = 1.54614448e-9f, kEnd = 12.0f;
};
template <>
struct GeluTanh<double> {
  static constexpr double kScale = 1.5957691216057308, kScaleLow = -9.96930880911092e-17;
  static constexpr double kCubic = 0.044714999999999998, kCubicLow = 0, kEnd = 25.0;
};
template <class R>
VESTA_FN R gelu_tanh_(R x) {
  using C = GeluTanh<R>;
  R a = abs_(x), c = where_(a > C::kEnd, C::kEnd, a);
  R square = c * c, square_low = product_error_(c, c, square);
  R cubic = C::kCubic * square;
  R cubic_low = product_error_(C::kCubic, square, cubic) + fma_(C::kCubic, square_low, C::kCubicLow * square);
  Pair<R> factor = two_sum_(R(1), cubic);
  Pair<R> g = two_product_(c, factor.hi);
  g.lo = fma_(c, factor.lo + cubic_low, g.lo);
  Pair<R> w = two_product_(C::kScale, g.hi);
  w.lo = w.lo + fma_(C::kScale, g.lo, C::kScaleLow * g.hi);
  R e = exp_negative_pair_(-w.hi, -w.lo);
  return x * (where_(x < R(0), e, R(1)) / (R(1) + e));
}

// erfinv(x) = x P(w), w = -log(1 - x^2); the tail's polynomial runs in sqrt(w).
VESTA_FN float erfinv_(float x) {
  float a = abs_(x);
  float w = -log_((1.0f - a) * (1.0f + a)), c = w - 2.5f;
  float p = -2.83680701e-9f;
  p = fma_(p, c, -1.03211173e-8f);
  p = fma_(p, c, 6.75520226e-8f);
  p = fma_(p, c, 4.87612226e-7f);
  p = fma_(p, c, -3.70491625e-6f);
  p = fma_(p, c, -5.06341303e-6f);
  p = fma_(p, c, 2.18884132e-4f);
  p = fma_(p, c, -1.25256891e-3f);
  p = fma_(p, c, -4.1778069e-3f);
  p = fma_(p, c, 2.46640205e-1f);
  p = fma_(p, c, 1.50140941f);
  float s = sqrt_(where_(w > 17.5f, 17.5f, w)) - 3.0f;
  float q = 1.00329926e-4f;
  q = fma_(q, s, -2.95090984e-4f);
  q = fma_(q, s, -3.28186725e-5f);
  q = fma_(q, s, 1.46583724e-3f);
  q = fma_(q, s, -3.61076486e-3f);
  q = fma_(q, s, 5.69477957e-3f);
  q = fma_(q, s, -7.63430679e-3f);
  q = fma_(q, s, 9.44431312e-3f);
  q = fma_(q, s, 1.00167477f);
  q = fma_(q, s, 2.83297682f);
  float r = x * where_(w < 5.0f, p, q);
  return where_(a < 1.0f, r, where_(a == 1.0f, copysign_(Limits<float>::inf(), x), Limits<float>::nan()));
}
// A 2^-20 start, then one step of Halley's method on erf or, where that would cancel, on erfc.
VESTA_FN double erfinv_(double x) {
  double a = abs_(x);
  double w = -log_((1.0 - a) * (1.0 + a)), c = w - 2.5;
  double p = 2.853713846250414e-08;
  p = fma_(p, c, 3.4371616077060967e-07);
  p = fma_(p, c, -3.5288804908800397e-06);
  p = fma_(p, c, -4.3966835519414008e-06);
  p = fma_(p, c, 0.00021860227442339078);
  p = fma_(p, c, -0.001253707789374977);
  p = fma_(p, c, -0.0041777078774947202);
  p = fma_(p, c, 0.24664072633921982);
  p = fma_(p, c, 1.5014094215810372);
  double s = sqrt_(where_(w > 38.0, 38.0, w)) - 4.0;
  double q = -1.5735037525999618e-06;
  q = fma_(q, s, 1.9398681195713233e-05);
  q = fma_(q, s, -6.7295169833231e-05);
  q = fma_(q, s, 8.1714156644260657e-05);
  q = fma_(q, s, -5.6706373856970415e-05);
  q = fma_(q, s, 0.00027091047258273468);
  q = fma_(q, s, -0.00091496678768976402);
  q = fma_(q, s, 0.0012857324750629728);
  q = fma_(q, s, 1.0095040470920802);
  q = fma_(q, s, 3.8397819476518715);
  double y = a * where_(w < 5.0, p, q);
  double miss = where_(a < 0.75, erf_small_(y) - a, (1.0 - a) - erfc_positive_(y));
  double u = miss * 0.88622692545275805 * exp_(y * y);
  double r = y - u / fma_(y, u, 1.0);
  r = where_(a < 1.0e-290, x * 0.88622692545275805, copysign_(r, x));
  return where_(a < 1.0, r, where_(a == 1.0, copysign_(Limits<double>::inf(), x), Limits<double>::nan()));
}

}  // namespace vesta::scalar
