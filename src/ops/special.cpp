// Special functions that need series, recurrences or branches: no scalar text, but one double-precision loop each.
// float and 16-bit operands are computed in double and rounded once. Also here: frexp, nextafter and the orthogonal
// polynomials, which are loops of their own. Elementary functions are in pointwise_unary.cpp and pointwise_special.cpp.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/checked_math.h"
#include "base/thread_pool.h"
#include "ops/infer.h"
#include "ops/numbers.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

constexpr double kPi = 3.1415926535897931, kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kGrain = 2048;  // elements a thread takes at once: these functions cost 20 to 500 ns each
constexpr TypeRule float_same{types::kFloatMask, Promote::Types};

// ---- the functions ----

// I_v(x) e^-x for x >= 0. Beyond 30 by the asymptotic series (terms fall below 1e-17 before they grow).
double scaled_bessel_i(int v, double x) {
  if (x < 30) return std::cyl_bessel_i(double(v), x) * std::exp(-x);
  if (std::isinf(x)) return 0;
  double mu = 4.0 * v * v, term = 1, sum = 1;
  for (int k = 1; k < 40; ++k) {
    double next = -term * (mu - (2 * k - 1) * (2 * k - 1)) / (k * 8 * x);
    if (std::abs(next) >= std::abs(term) || std::abs(next) < 1e-18 * std::abs(sum)) break;
    sum += term = next;
  }
  return sum / std::sqrt(2 * kPi * x);
}
double i0e(double x) { return std::isnan(x) ? x : scaled_bessel_i(0, std::abs(x)); }
double i1e(double x) { return std::isnan(x) ? x : std::copysign(scaled_bessel_i(1, std::abs(x)), x); }
// e^(x/2) twice: the product overflows only where the result does. NaN at infinity, as PyTorch has it.
double i0(double x) {
  double h = std::exp(std::abs(x) / 2);
  return i0e(x) * h * h;
}
double i1(double x) {
  double h = std::exp(std::abs(x) / 2);
  return i1e(x) * h * h;
}
// K_v(x) e^x for x > 0; the asymptotic series is that of I with alternating signs undone.
double scaled_bessel_k(int v, double x) {
  if (std::isnan(x) || x < 0) return kNan;
  if (x == 0) return kInf;
  if (x < 30) return std::cyl_bessel_k(double(v), x) * std::exp(x);
  if (std::isinf(x)) return 0;
  double mu = 4.0 * v * v, term = 1, sum = 1;
  for (int k = 1; k < 40; ++k) {
    double next = term * (mu - (2 * k - 1) * (2 * k - 1)) / (k * 8 * x);
    if (std::abs(next) >= std::abs(term) || std::abs(next) < 1e-18 * std::abs(sum)) break;
    sum += term = next;
  }
  return sum * std::sqrt(kPi / (2 * x));
}
double k0e(double x) { return scaled_bessel_k(0, x); }
double k1e(double x) { return scaled_bessel_k(1, x); }
double k0(double x) { return x == 0 ? kInf : scaled_bessel_k(0, x) * std::exp(-x); }
double k1(double x) { return x == 0 ? kInf : scaled_bessel_k(1, x) * std::exp(-x); }
double bessel_j0(double x) { return ::j0(x); }
double bessel_j1(double x) { return ::j1(x); }
double bessel_y0(double x) { return x < 0 ? kNan : ::y0(x); }
double bessel_y1(double x) { return x < 0 ? kNan : ::y1(x); }
double spherical_j0(double x) {
  if (std::isinf(x)) return 0;
  if (std::abs(x) < 0.5) { // sin x / x by its series
    double z = x * x;
    return 1 - z / 6 * (1 - z / 20 * (1 - z / 42 * (1 - z / 72 * (1 - z / 110 * (1 - z / 156)))));
  }
  return std::sin(x) / x;
}
// DLMF 9.6.2 and 9.6.6: Bessel functions of order one third.
double airy_ai(double x) {
  if (std::isnan(x)) return x;
  if (std::isinf(x)) return x > 0 ? 0 : kNan;
  if (x == 0) return 0.35502805388781724;
  double a = std::abs(x), zeta = 2.0 / 3 * a * std::sqrt(a);
  if (x > 0) return zeta > 700 ? 0 : std::sqrt(a / 3) / kPi * std::cyl_bessel_k(1.0 / 3, zeta);
  double j = std::cyl_bessel_j(1.0 / 3, zeta), y = std::cyl_neumann(1.0 / 3, zeta);
  double minus = 0.5 * j - std::sqrt(3.0) / 2 * y;  // J of order -1/3
  return std::sqrt(a) / 3 * (j + minus);
}

// Hurwitz zeta by Euler-Maclaurin summation (DLMF 25.11.5): direct terms up to q + n >= 10, then 12 corrections.
double zeta(double s, double q) {
  if (std::isnan(s) || std::isnan(q)) return kNan;
  if (s == 1) return kInf;
  if (s < 1) return kNan;
  if (q <= 0) {
    if (q == std::floor(q)) return kInf;
    if (s != std::floor(s)) return kNan;  // a negative base under a fractional power
  }
  // B(2j) / (2j)!
  static constexpr double kBernoulli[] = {1.0 / 12, -1.0 / 720, 1.0 / 30240, -1.0 / 1209600, 1.0 / 47900160, -691.0 / 1307674368000.0,
                                          1.0 / 74724249600.0, -3617.0 / 10670622842880000.0, 43867.0 / 5109094217170944000.0,
                                          -174611.0 / 802857662698291200000.0, 77683.0 / 14101100039391805440000.0,
                                          -236364091.0 / 1693824136731743669452800000.0};
  double sum = 0, a = q;
  while (a < 10) {
    sum += std::pow(a, -s);
    a += 1;
  }
  double power = std::pow(a, -s);
  sum += a * power / (s - 1) + 0.5 * power;
  double factor = s * power / a;
  for (int j = 0; j < 12; ++j) {
    double term = kBernoulli[j] * factor;
    sum += term;
    if (std::abs(term) < std::abs(sum) * 1e-17) break;
    factor *= (s + 2 * j + 1) * (s + 2 * j + 2) / (a * a);
  }
  return sum;
}

// Regularised incomplete gamma functions: the power series of P below a + 1, else Lentz's continued fraction of Q.
double gamma_prefix(double a, double x) { return std::exp(a * std::log(x) - x - std::lgamma(a)); }
double gamma_p_series(double a, double x) {
  double term = 1 / a, sum = term;
  for (int n = 1; n < 10000; ++n) {
    term *= x / (a + n);
    sum += term;
    if (term < sum * 1e-17) break;
  }
  return sum * gamma_prefix(a, x);
}
double gamma_q_fraction(double a, double x) {
  constexpr double kTiny = 1e-300;
  double b = x + 1 - a, c = 1 / kTiny, d = 1 / b, h = d;
  for (int i = 1; i < 10000; ++i) {
    double an = -i * (i - a);
    b += 2;
    d = an * d + b;
    if (std::abs(d) < kTiny) d = kTiny;
    c = b + an / c;
    if (std::abs(c) < kTiny) c = kTiny;
    d = 1 / d;
    double delta = d * c;
    h *= delta;
    if (std::abs(delta - 1) < 1e-16) break;
  }
  return h * gamma_prefix(a, x);
}
double igamma(double a, double x) {
  if (!(x >= 0) || !(a >= 0)) return kNan;
  if (a == 0) return x > 0 ? 1 : kNan;
  if (x == 0) return 0;
  if (std::isinf(a)) return std::isinf(x) ? kNan : 0;
  if (std::isinf(x)) return 1;
  return x < a + 1 ? gamma_p_series(a, x) : 1 - gamma_q_fraction(a, x);
}
double igammac(double a, double x) {
  if (!(x >= 0) || !(a >= 0)) return kNan;
  if (a == 0) return x > 0 ? 0 : kNan;
  if (x == 0) return 1;
  if (std::isinf(a)) return std::isinf(x) ? kNan : 1;
  if (std::isinf(x)) return 0;
  return x < a + 1 ? 1 - gamma_p_series(a, x) : gamma_q_fraction(a, x);
}

// ---- loops ----

double load(const void* p, DType t, int64_t i) {
  switch (t) {
    case kDouble: return static_cast<const double*>(p)[i];
    case kFloat: return double(static_cast<const float*>(p)[i]);
    case kHalf: return double(float(static_cast<const Half*>(p)[i]));
    default: return double(float(static_cast<const BFloat16*>(p)[i]));
  }
}
void store(void* p, DType t, int64_t i, double v) {
  switch (t) {
    case kDouble: static_cast<double*>(p)[i] = v; break;
    case kFloat: static_cast<float*>(p)[i] = float(v); break;
    case kHalf: static_cast<Half*>(p)[i] = Half(float(v)); break;
    default: static_cast<BFloat16*>(p)[i] = BFloat16(float(v));
  }
}
template <double (*F)(double)>
void map1(const KernelCtx& k) {
  Tensor x = k.tensor(0).contiguous();
  DType t = x.dtype();
  const void* p = x.data_ptr();
  void* o = k.out().data_ptr();
  parallel_for(0, x.numel(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) store(o, t, i, F(load(p, t, i)));
  });
}
template <double (*F)(double, double)>
void map2(const KernelCtx& k) {
  Tensor& out = k.out();
  Tensor x = k.tensor(0).expand(out.sizes()).contiguous(), y = k.tensor(1).expand(out.sizes()).contiguous();
  DType t = out.dtype();
  const void *p = x.data_ptr(), *q = y.data_ptr();
  void* o = out.data_ptr();
  parallel_for(0, out.numel(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) store(o, t, i, F(load(p, t, i), load(q, t, i)));
  });
}
DType floating(DType t) { return is_integral(t, true) ? get_default_dtype() : t; }
void infer1(InferCtx& c) { c.out(0, c.sizes(0), floating(c.dtype_of(0)), c.tensor(0).device()); }
void infer2(InferCtx& c) {
  auto sizes = broadcast_sizes(c, c.sizes(0), c.sizes(1));
  c.out(0, sizes, floating(result_type(c.tensor(0), c.tensor(1))), c.tensor(0).device());
}

void k_frexp(const KernelCtx& k) {
  Tensor x = k.tensor(0).contiguous();
  DType t = x.dtype();
  const void* p = x.data_ptr();
  void* m = k.out(0).data_ptr();
  int32_t* e = k.out(1).data_ptr<int32_t>();
  parallel_for(0, x.numel(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int exponent = 0;
      double v = load(p, t, i), mantissa = std::frexp(v, &exponent);
      store(m, t, i, mantissa);
      e[i] = std::isfinite(v) ? exponent : 0;
    }
  });
}

// The neighbour of x towards y, on the integer image of the format.
template <class Bits>
Bits step_bits(Bits x, Bits sign, bool up) {
  Bits magnitude = Bits(x & Bits(~sign));
  if (magnitude == 0) return up ? Bits(1) : Bits(sign | 1);
  bool grows = up != bool(x & sign);
  return grows ? Bits(x + 1) : Bits(x - 1);
}
void k_nextafter(const KernelCtx& k) {
  Tensor& out = k.out();
  Tensor x = k.tensor(0).expand(out.sizes()).contiguous(), y = k.tensor(1).expand(out.sizes()).contiguous();
  DType t = out.dtype();
  parallel_for(0, out.numel(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      double a = load(x.data_ptr(), t, i), b = load(y.data_ptr(), t, i);
      if (std::isnan(a) || std::isnan(b)) {
        store(out.data_ptr(), t, i, kNan);
      } else if (a == b) {
        store(out.data_ptr(), t, i, b);
      } else if (t == kDouble) {
        static_cast<uint64_t*>(out.data_ptr())[i] = step_bits(static_cast<const uint64_t*>(x.data_ptr())[i], uint64_t(1) << 63, b > a);
      } else if (t == kFloat) {
        static_cast<uint32_t*>(out.data_ptr())[i] = step_bits(static_cast<const uint32_t*>(x.data_ptr())[i], uint32_t(1) << 31, b > a);
      } else {
        static_cast<uint16_t*>(out.data_ptr())[i] = step_bits(static_cast<const uint16_t*>(x.data_ptr())[i], uint16_t(0x8000), b > a);
      }
    }
  });
}

constexpr OpDef table[] = {
// ---- Bessel functions ----
OP("i0(Tensor self) -> Tensor",
  .forms = InPlace | Out, .types = float_types, .infer = infer1, .kernels = {{Cpu, map1<i0>}},
  .save = {in(0)}, .vjp = [](const Grad& g) { return grads(G(0) { return g.dy() * special_i1(g.in(0)); }); },
  .shard = Shard::pointwise(), .doc = "Modified Bessel function I0.", .samples = [](SampleGen& s) { s.unary(s.shapes()); }),
OP("special_i0(Tensor self) -> Tensor",
  .forms = Out, .types = float_types, .decompose = [](const Args& a) -> Results { return i0(a.tensor(0)); },
  .shard = Shard::pointwise(), .doc = "Alias of i0.", .samples = [](SampleGen& s) { s.unary(s.shapes()); }),
OP("special_i0e(Tensor self) -> Tensor",
  .forms = Out, .types = float_types, .infer = infer1, .kernels = {{Cpu, map1<i0e>}},
  .save = {in(0), out(0)}, .vjp = [](const Grad& g) { return grads(G(0) { return g.dy() * (special_i1e(g.in(0)) - sgn(g.in(0)) * g.out()); }); },
  .shard = Shard::pointwise(), .doc = "exp(-|self|) * I0(self).", .samples = [](SampleGen& s) { s.unary(s.shapes()); }),
OP("special_i1(Tensor self) -> Tensor",
  .forms = Out, .types = float_types, .infer = infer1, .kernels = {{Cpu, map1<i1>}},
  .save = {in(0), out(0)}, .vjp = [](const Grad& g) { return grads(G(0) { // I1' = I0 - I1 / x, 1/2 at 0
      Tensor x = g.in(0), zero = x == 0, safe = x.masked_fill(zero, 1);
      return g.dy() * (i0(x) - g.out() / safe).masked_fill(zero, 0.5); }); },
  .shard = Shard::pointwise(), .doc = "Modified Bessel function I1.", .samples = [](SampleGen& s) { s.unary(s.shapes(), range(0.5, 3)); }),
OP("special_i1e(Tensor self) -> Tensor",
  .forms = Out, .types = float_types, .infer = infer1, .kernels = {{Cpu, map1<i1e>}},
  .save = {in(0), out(0)}, .vjp = [](const Grad& g) { return grads(G(0) {
      Tensor x = g.in(0), zero = x == 0, safe = x.masked_fill(zero, 1);
      return g.dy() * (special_i0e(x) - g.out() * (sgn(x) + safe.reciprocal())).masked_fill(zero, 0.5); }); },
  .shard = Shard::pointwise(), .doc = "exp(-|self|) * I1(self).", .samples = [](SampleGen& s) { s.unary(s.shapes(), range(0.5, 3)); }),
#define VESTA_PLAIN_ROW(function, range_, text) \
  .types = float_types, .infer = infer1, .kernels = {{Cpu, map1<function>}}, .non_differentiable = true, \
  .shard = Shard::pointwise(), .doc = text, .samples = [](SampleGen& s) { s.unary(s.shapes(), range_); }
OP("special_bessel_j0(Tensor self) -> Tensor", .forms = Out, VESTA_PLAIN_ROW(bessel_j0, {}, "Bessel function J0.")),
OP("special_bessel_j1(Tensor self) -> Tensor", .forms = Out, VESTA_PLAIN_ROW(bessel_j1, {}, "Bessel function J1.")),
OP("special_bessel_y0(Tensor self) -> Tensor", .forms = Out, VESTA_PLAIN_ROW(bessel_y0, range(0.5, 3), "Bessel function Y0.")),
OP("special_bessel_y1(Tensor self) -> Tensor", .forms = Out, VESTA_PLAIN_ROW(bessel_y1, range(0.5, 3), "Bessel function Y1.")),
OP("special_modified_bessel_i0(Tensor self) -> Tensor", .forms = Out, VESTA_PLAIN_ROW(i0, {}, "Modified Bessel function I0.")),
OP("special_modified_bessel_i1(Tensor self) -> Tensor", .forms = Out, VESTA_PLAIN_ROW(i1, {}, "Modified Bessel function I1.")),
OP("special_modified_bessel_k0(Tensor self) -> Tensor", .forms = Out, VESTA_PLAIN_ROW(k0, range(0.5, 3), "Modified Bessel function K0.")),
OP("special_modified_bessel_k1(Tensor self) -> Tensor", .forms = Out, VESTA_PLAIN_ROW(k1, range(0.5, 3), "Modified Bessel function K1.")),
OP("special_scaled_modified_bessel_k0(Tensor x) -> Tensor", .forms = Out, VESTA_PLAIN_ROW(k0e, range(0.5, 3), "exp(x) * K0(x).")),
OP("special_scaled_modified_bessel_k1(Tensor x) -> Tensor", .forms = Out, VESTA_PLAIN_ROW(k1e, range(0.5, 3), "exp(x) * K1(x).")),
OP("special_spherical_bessel_j0(Tensor x) -> Tensor", .forms = Out, VESTA_PLAIN_ROW(spherical_j0, {}, "sin(x) / x.")),
OP("special_airy_ai(Tensor x) -> Tensor", .forms = Out, VESTA_PLAIN_ROW(airy_ai, {}, "Airy function Ai.")),
#undef VESTA_PLAIN_ROW

// ---- zeta and gamma ----
OP("special_zeta(Tensor self, Tensor other) -> Tensor",
  .forms = Out, .types = float_types, .infer = infer2, .kernels = {{Cpu, map2<zeta>}},
  .save = {in(0).if_needs(1), in(1).if_needs(1)},
  .vjp = [](const Grad& g) { // the derivative by self (the exponent) is not offered, as in PyTorch
      VESTA_CHECK_AS(NotImplementedError, !g.needs(0), "special_zeta: has no derivative with respect to self");
      return grads(G(1) { return g.dy() * -g.in(0) * special_zeta(g.in(0) + 1, g.in(1)); }); },
  .shard = Shard::pointwise(), .doc = "Hurwitz zeta function: sum of (k + other)^-self over k >= 0.",
  .samples = [](SampleGen& s) { s(s.make({3, 4}, range(2, 4), kLong), s.t({4}, range(1, 3))); }),
OP("special_zeta.self_scalar(Scalar self, Tensor other) -> Tensor",
  .forms = Out, .types = float_types,
  .decompose = [](const Args& a) -> Results { return special_zeta(float_number_beside(a.scalar(0), a.tensor(1)), a.tensor(1)); },
  .shard = Shard::pointwise(), .doc = "Hurwitz zeta with a number for self.",
  .samples = [](SampleGen& s) { s(Scalar(2), s.t({3, 4}, range(1, 3))); }),
OP("special_zeta.other_scalar(Tensor self, Scalar other) -> Tensor",
  .forms = Out, .types = float_types,
  .decompose = [](const Args& a) -> Results { return special_zeta(a.tensor(0), float_number_beside(a.scalar(1), a.tensor(0))); },
  .shard = Shard::pointwise(), .doc = "Hurwitz zeta with a number for other.",
  .samples = [](SampleGen& s) { if (is_integral(s.dtype(), true)) s.unary(s.shapes(), range(2, 4), Scalar(2)); }),
OP("polygamma(int n, Tensor self) -> Tensor",
  .forms = Out, .types = float_types,
  .decompose = [](const Args& a) -> Results {
      int64_t n = a.integer(0);
      VESTA_CHECK(n >= 0, "polygamma: expected n >= 0, got ", n);
      if (n == 0) return digamma(a.tensor(1));
      return special_zeta(double(n) + 1, a.tensor(1)) * ((n % 2 ? 1.0 : -1.0) * std::exp(std::lgamma(double(n) + 1))); },
  .save = {in(1)},
  .vjp = [](const Grad& g) { return grads(G(1) { return g.dy() * polygamma(checked_add(g.integer(0), int64_t(1), "polygamma: n"), g.in(1)); }); },
  .shard = Shard::pointwise(), .doc = "The n-th derivative of digamma.",
  .samples = [](SampleGen& s) { for (int n : {0, 1, 2}) s(n, s.t({3, 4}, range(1, 3))); s(1, s.t({}, range(1, 3))); }),
OP("polygamma_(Tensor(a!) self, int n) -> Tensor(a!)",
  .types = float_types,
  .decompose = [](const Args& a) -> Results { 
      Tensor self = a.tensor(0);
      VESTA_CHECK_AS(TypeError, is_floating_point(self.dtype()), "polygamma_: does not take ", dtype_name(self.dtype()), " tensors");
      return self.copy_(polygamma(a.integer(1), self.clone())); },
  .shard = Shard::pointwise(), .doc = "polygamma, written to self.",
  .samples = [](SampleGen& s) { if (!is_integral(s.dtype(), true)) s(s.t({3, 4}, range(1, 3)), 1); }),
OP("special_polygamma(int n, Tensor self) -> Tensor",
  .forms = Out, .types = float_types,
  .decompose = [](const Args& a) -> Results { return polygamma(a.integer(0), a.tensor(1)); },
  .shard = Shard::pointwise(), .doc = "Alias of polygamma.",
  .samples = [](SampleGen& s) { s(1, s.t({3, 4}, range(1, 3))); }),
OP("igamma(Tensor self, Tensor other) -> Tensor",
  .forms = InPlace | Out, .types = float_same, .infer = infer2, .kernels = {{Cpu, map2<igamma>}},
  .save = {in(0), in(1)},
  .vjp = [](const Grad& g) {
      VESTA_CHECK_AS(NotImplementedError, !g.needs(0), "igamma: has no derivative with respect to self");
      return grads(G(1) { Tensor a = g.in(0), x = g.in(1); return g.dy() * ((a - 1) * log(x) - x - lgamma(a)).exp(); }); },
  .shard = Shard::pointwise(), .doc = "Regularised lower incomplete gamma function P(self, other).",
  .samples = [](SampleGen& s) { s(s.make({3, 4}, range(1, 3), kLong), s.t({4}, range(0.5, 3))); }),
OP("igammac(Tensor self, Tensor other) -> Tensor",
  .forms = InPlace | Out, .types = float_same, .infer = infer2, .kernels = {{Cpu, map2<igammac>}},
  .save = {in(0), in(1)},
  .vjp = [](const Grad& g) {
      VESTA_CHECK_AS(NotImplementedError, !g.needs(0), "igammac: has no derivative with respect to self");
      return grads(G(1) { Tensor a = g.in(0), x = g.in(1); return -g.dy() * ((a - 1) * log(x) - x - lgamma(a)).exp(); }); },
  .shard = Shard::pointwise(), .doc = "Regularised upper incomplete gamma function Q(self, other).",
  .samples = [](SampleGen& s) { s(s.make({3, 4}, range(1, 3), kLong), s.t({4}, range(0.5, 3))); }),
OP("special_gammainc(Tensor self, Tensor other) -> Tensor",
  .forms = Out, .types = float_same, .decompose = [](const Args& a) -> Results { return igamma(a.tensor(0), a.tensor(1)); },
  .shard = Shard::pointwise(), .doc = "Alias of igamma.", .samples = [](SampleGen& s) { s(s.make({3, 4}, range(1, 3), kLong), s.t({4}, range(0.5, 3))); }),
OP("special_gammaincc(Tensor self, Tensor other) -> Tensor",
  .forms = Out, .types = float_same, .decompose = [](const Args& a) -> Results { return igammac(a.tensor(0), a.tensor(1)); },
  .shard = Shard::pointwise(), .doc = "Alias of igammac.", .samples = [](SampleGen& s) { s(s.make({3, 4}, range(1, 3), kLong), s.t({4}, range(0.5, 3))); }),

// ---- formats ----
OP("frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)",
  .types = {types::kFloatMask, Promote::Same},
  .infer = [](InferCtx& c) { c.out(0, c.sizes(0), c.dtype_of(0), c.tensor(0).device()); c.out(1, c.sizes(0), kInt, c.tensor(0).device()); },
  .kernels = {{Cpu, k_frexp}},
  .save = {out(1)},
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy() / pow(2.0, g.out(1).to(g.dy().dtype())); }); },
  .non_diff_outputs = 2,
  .shard = Shard::pointwise(), .doc = "self = mantissa * 2^exponent, 0.5 <= |mantissa| < 1.",
  .samples = [](SampleGen& s) { s.unary(s.shapes()); }),
OP("nextafter(Tensor self, Tensor other) -> Tensor",
  .forms = InPlace | Out, .types = float_same, .infer = infer2, .kernels = {{Cpu, k_nextafter}},
  .non_differentiable = true,
  .shard = Shard::pointwise(), .doc = "The next representable number from self towards other.",
  .samples = [](SampleGen& s) { s.binary(); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(special, table)
