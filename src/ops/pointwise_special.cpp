// Pointwise operators of one tensor beyond the core: angles in degrees, sinc, gamma and normal distribution functions,
// logit, rounding to decimals, replacement of NaN. Series-based special functions (Bessel, zeta) are in special.cpp.
#include <cmath>
#include <limits>

#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

constexpr double kPi = 3.1415926535897931;
constexpr TypeRule float_same{types::kFloatMask, Promote::Types};

// Largest finite value of a floating dtype.
double largest(DType t) {
  switch (t) {
    case kHalf: return 65504.0;
    case kBFloat16: return 0x1.fep127;
    case kDouble: case kComplexDouble: return std::numeric_limits<double>::max();
    default: return double(std::numeric_limits<float>::max());
  }
}

constexpr OpDef table[] = {
OP("_logsumexp_backward(Tensor grad, Tensor self, Tensor result) -> Tensor",
  .types = float_same,
  // Infinite results (pytorch/pytorch#49724): nothing adds to -inf; +inf comes from the elements that are +inf.
  .scalar = SCALAR(x * exp_(where_(y == where_(isinf_(z) & (z < T(0)), T(0), z), T(0), y - where_(isinf_(z) & (z < T(0)), T(0), z)))),
  .save = {in(1).if_needs(0), in(2).if_needs(0), out(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return _logsumexp_backward(g.dy(), g.in(1), g.in(2)); },
                                          G(1) { return g.dy() * g.out(); }, G(2) { return -(g.dy() * g.out()); }); },
  .shard = Shard::pointwise(), .doc = "Gradient of logsumexp: grad * exp(self - result); grad and result broadcast.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4}), s.t({3, 4}, range(4, 5))); s(s.t({3, 1}), s.t({3, 4}), s.t({3, 1}, range(4, 5))); s(s.t({}), s.t({}), s.t({}, range(4, 5))); }),
OP("deg2rad(Tensor self) -> Tensor",
  .forms = InPlace | Out, .types = float_types,
  .scalar = SCALAR(x * T(0.017453292519943295)),
  .vjp = [](const Grad& g) { return grads(G(0) { return deg2rad(g.dy()); }); },
  .shard = {"pw-allP"}, .doc = "Degrees to radians.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), range(-100, 100)); }),
OP("rad2deg(Tensor self) -> Tensor",
  .forms = InPlace | Out, .types = float_types,
  .scalar = SCALAR(x * T(57.295779513082323)),
  .vjp = [](const Grad& g) { return grads(G(0) { return rad2deg(g.dy()); }); },
  .shard = {"pw-allP"}, .doc = "Radians to degrees.",
  .samples = [](SampleGen& s) { s.unary(s.shapes()); }),
OP("sinc(Tensor self) -> Tensor",
  .forms = InPlace | Out, .types = field_types,
  .scalar = SCALAR_FOR(Floats | Complexes, where_(x == T(0), T(1), sin_(x * T(3.1415926535897931)) / (x * T(3.1415926535897931)))),
  .save = {in(0)},
  .vjp = [](const Grad& g) { return grads(G(0) {
      Tensor x = g.in(0), p = x * kPi;
      Tensor d = (p.cos() * p - p.sin()) / (p * x);
      return g.dy() * d.masked_fill(x == 0, 0).conj(); }); },
  .shard = Shard::pointwise(), .doc = "sin(pi self) / (pi self), 1 at 0.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), range(0.2, 3)); }),
OP("lgamma(Tensor self) -> Tensor",
  .forms = InPlace | Out, .types = float_types,
  .scalar = SCALAR(lgamma_(x)),
  .save = {in(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy() * digamma(g.in(0)); }); },
  .shard = Shard::pointwise(), .doc = "log |Gamma(self)|.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), range(0.5, 4)); }),
OP("digamma(Tensor self) -> Tensor",
  .forms = InPlace | Out, .types = float_types,
  .scalar = SCALAR(digamma_(x)),
  .save = {in(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy() * polygamma(1, g.in(0)); }); },
  .shard = Shard::pointwise(), .doc = "Derivative of lgamma.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), range(0.5, 4)); }),
OP("mvlgamma(Tensor self, int p) -> Tensor",
  .forms = InPlace | Out, .types = float_types,
  .decompose = [](const Args& a) -> Results {
      int64_t p = a.integer(1);
      VESTA_CHECK(p >= 1, a.name(), ": expected p >= 1, got ", p);
      Tensor x = a.tensor(0);
      if (is_integral(x.dtype(), true)) x = x.to(get_default_dtype());
      // sum over j of lgamma(x - j / 2), j = 0 .. p - 1
      Tensor shifts = arange(0, double(p), TensorOptions().dtype(x.dtype())) * -0.5;
      return lgamma(x.unsqueeze(-1) + shifts).sum({-1}) + double(p * (p - 1)) * 0.25 * std::log(kPi); },
  .shard = Shard::pointwise(), .doc = "Multivariate log-gamma of dimension p.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), range(3, 5), 2); }),
OP("special_multigammaln(Tensor self, int p) -> Tensor",
  .forms = Out, .types = float_types,
  .decompose = [](const Args& a) -> Results { return mvlgamma(a.tensor(0), a.integer(1)); },
  .shard = Shard::pointwise(), .doc = "Alias of mvlgamma.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), range(3, 5), 2); }),
OP("logit(Tensor self, float? eps=None) -> Tensor",
  .forms = InPlace | Out, .types = float_types,
  .decompose = [](const Args& a) -> Results { return _logit(a.tensor(0), a.has(1) ? a.number(1) : -1.0); },
  .save = {in(0)},
  .vjp = [](const Grad& g) { return grads(G(0) {
      return logit_backward(g.dy(), g.in(0), g.has(1) ? std::optional<double>(g.number(1)) : std::nullopt); }); },
  .shard = Shard::pointwise(), .doc = "log(self / (1 - self)), self first limited to [eps, 1 - eps].",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), range(0.2, 0.8)); s.unary({{3, 4}}, range(0, 1), 0.25); }),
OP("_logit(Tensor self, float eps) -> Tensor",
  .types = float_types,
  .scalar = SCALAR(where_(eps < T(0), log_(x / (T(1) - x)), log_(min_(max_(x, eps), T(1) - eps) / (T(1) - min_(max_(x, eps), T(1) - eps)))), eps),
  .save = {in(0)},
  .vjp = [](const Grad& g) { return grads(G(0) {
      return logit_backward(g.dy(), g.in(0), g.number(1) < 0 ? std::nullopt : std::optional<double>(g.number(1))); }); },
  .shard = Shard::pointwise(), .doc = "logit; a negative eps means no limits.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), range(0.2, 0.8), -1.0); }),
OP("logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor",
  .forms = Out, .types = float_types,
  .decompose = [](const Args& a) -> Results { return _logit_backward(a.tensor(0), a.tensor(1), a.has(2) ? a.number(2) : -1.0); },
  .shard = Shard::pointwise(), .doc = "Gradient of logit.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4}, range(0.2, 0.8))); s(s.t({3, 4}), s.t({3, 4}, range(0, 1)), 0.25); }),
OP("_logit_backward(Tensor grad_output, Tensor self, float eps) -> Tensor",
  .types = float_types,
  // Outside the limits: 0 where they were asked for, else NaN.
  .scalar = SCALAR(where_((y < max_(eps, T(0))) | (y > T(1) - max_(eps, T(0))), where_(eps < T(0), Limits<T>::nan(), T(0)), x / (y * (T(1) - y))), eps),
  .save = {in(0).if_needs(1), in(1)},
  .vjp = [](const Grad& g) { return grads(
      G(0) { return _logit_backward(g.dy(), g.in(1), g.number(2)); },
      G(1) { Tensor x = g.in(1), d = _logit_backward(g.dy() * g.in(0), x, g.number(2)); return d * (x * 2 - 1) / (x * (1 - x)); }); },
  .shard = Shard::pointwise(), .doc = "Gradient of logit; a negative eps means no limits.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4}, range(0.2, 0.8)), -1.0); }),
OP("round.decimals(Tensor self, *, int decimals) -> Tensor",
  .forms = InPlace | Out, .types = float_same,
  .decompose = [](const Args& a) -> Results {
      int64_t n = a.integer(1);
      if (n == 0) return round(a.tensor(0));
      return _round_scaled(a.tensor(0), std::pow(10.0, std::abs(double(n))), n > 0); },
  .shard = {"pw-inc"}, .doc = "Rounded to a number of decimals; negative counts round to tens, hundreds and so on.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), {}, 1); s.unary({{3, 4}}, range(-300, 300), -2); }),
OP("_round_scaled(Tensor self, float scale, bool up) -> Tensor",
  .types = float_same,
  .scalar = SCALAR(where_(up != T(0), round_(x * scale) / scale, round_(x / scale) * scale), scale, up),
  .vjp = [](const Grad& g) { return grads(G(0) { return zeros_like(g.dy()); }); },
  .shard = {"pw-inc"}, .doc = "round(self * scale) / scale, or round(self / scale) * scale.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), {}, 10.0, true); }),
OP("nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
  .forms = InPlace | Out, .types = all_types,
  .decompose = [](const Args& a) -> Results {
      const Tensor& t = a.tensor(0);
      if (is_integral(t.dtype(), true)) return t.clone();
      double most = largest(t.dtype());
      double nan = a.has(1) ? a.number(1) : 0, pos = a.has(2) ? a.number(2) : most, neg = a.has(3) ? a.number(3) : -most;
      if (t.is_complex()) return view_as_complex(_nan_to_num(view_as_real(t.resolve_conj()), nan, pos, neg));
      return _nan_to_num(t, nan, pos, neg); },
  .shard = {"pw-allP"}, .doc = "self with NaN and the infinities replaced (by default by 0 and the largest finite values).",
  .samples = [](SampleGen& s) { s.unary(s.shapes()); s.unary({{3}}, {}, 1.0, 2.0, -2.0); }),
OP("_nan_to_num(Tensor self, float nan, float posinf, float neginf) -> Tensor",
  .types = float_same,
  .scalar = SCALAR(where_(x != x, nan, where_(isinf_(x), where_(x > T(0), posinf, neginf), x)), nan, posinf, neginf),
  .save = {in(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy() * isfinite(g.in(0)).to(g.dy().dtype()); }); },
  .shard = Shard::pointwise(), .doc = "nan_to_num of a real tensor with all three replacements.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), {}, 1.0, 2.0, -2.0); }),
OP("special_entr(Tensor self) -> Tensor",
  .forms = Out, .types = float_types,
  .scalar = SCALAR(where_(x != x, x, where_(x > T(0), -x * log_(x), where_(x == T(0), T(0), -Limits<T>::inf())))),
  .save = {in(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy() * (-log(g.in(0)) - 1); }); },
  .shard = Shard::pointwise(), .doc = "-self * log(self); 0 at 0, -infinity below.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), range(0.3, 3)); }),
OP("special_ndtr(Tensor self) -> Tensor",
  .forms = Out, .types = float_types,
  .scalar = SCALAR(ndtr_(x)),
  .save = {in(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { Tensor x = g.in(0); return g.dy() * (x * x * -0.5).exp() * 0.3989422804014327; }); },
  .shard = Shard::pointwise(), .doc = "Standard normal distribution function.",
  .samples = [](SampleGen& s) { s.unary(s.shapes()); }),
OP("special_log_ndtr(Tensor self) -> Tensor",
  .forms = Out, .types = float_types,
  .scalar = SCALAR(where_(x < T(-1), log_(erfcx_full_(-x * T(0.70710678118654757)) * T(0.5)) - x * x * T(0.5), log1p_(T(-0.5) * erfc_(x * T(0.70710678118654757))))),
  .save = {in(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy() * 0.79788456080286541 / special_erfcx(g.in(0) * -0.70710678118654757); }); },
  .shard = Shard::pointwise(), .doc = "log(ndtr(self)), accurate in the lower tail.",
  .samples = [](SampleGen& s) { s.unary(s.shapes()); }),
OP("special_erfcx(Tensor self) -> Tensor",
  .forms = Out, .types = float_types,
  .scalar = SCALAR(erfcx_full_(x)),
  .save = {in(0), out(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy() * (g.in(0) * g.out() * 2 - 1.1283791670955126); }); },
  .shard = {"pw-dec"}, .doc = "exp(self^2) * erfc(self).",
  .samples = [](SampleGen& s) { s.unary(s.shapes()); }),
OP("special_ndtri(Tensor self) -> Tensor",
  .forms = Out, .types = float_types,
  .scalar = SCALAR(ndtri_(x)),
  .save = {out(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { Tensor y = g.out(); return g.dy() * (y * y * 0.5).exp() * 2.5066282746310002; }); },
  .shard = Shard::pointwise(), .doc = "Inverse of ndtr.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), range(0.1, 0.9)); }),
};

}  // namespace
}  // namespace vesta

VESTA_FAMILY(pointwise_special, table)
