// Pointwise operators of two tensors beyond the four basic ones: quotients with rounding, remainders, extrema that skip
// NaN, angles, logarithm sums, bit shifts, integer divisors. Their forms with a number are decompositions here too.
#include <cmath>
#include <complex>
#include <limits>

#include "ops/numbers.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

constexpr TypeRule float_same{types::kFloatMask, Promote::Types};
constexpr double kLn2 = 0.69314718055994531;

Tensor rounded_quotient(const Args& a, const Tensor& x, const Tensor& y, int mode) {
  if (!a.has(mode)) return div(x, y);
  std::string_view m = a.string(mode);
  VESTA_CHECK(m == "trunc" || m == "floor", a.name(), ": expected rounding_mode to be None, 'trunc' or 'floor', got '", m, "'");
  return m == "trunc" ? _div_trunc(x, y) : floor_divide(x, y);
}
// dy where `keep`, half of it where `tie`, else 0.
Tensor split_tie(const Tensor& dy, const Tensor& keep, const Tensor& tie) {
  Tensor zero = zeros({}, dy.options());
  return where(keep, dy, where(tie, dy * 0.5, zero));
}

// The shares of x and y in log(b^x + b^y): b^(x - y) / (b^(x - y) + 1) and the rest. Equal infinities have no difference:
// +inf shares evenly; -inf, where adding to one of them changes nothing, has no share (pytorch/pytorch#49724).
struct LogShares {
  Tensor difference, none;
  LogShares(const Tensor& x, const Tensor& y, double log_base) {
    Tensor alike = logical_and(x == y, isinf(x));
    difference = (x - y).masked_fill(alike, 0);
    if (log_base != 1) difference = difference * log_base;
    none = logical_and(alike, x < 0);
  }
  Tensor first() const { return sigmoid(difference).masked_fill(none, 0); }
  Tensor second() const { return sigmoid(-difference).masked_fill(none, 0); }
};

constexpr OpDef table[] = {
// ---- quotients ----
OP("div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
  .forms = InPlace | Out, .types = number_types,
  .decompose = [](const Args& a) -> Results { return rounded_quotient(a, a.tensor(0), a.tensor(1), 2); },
  .shard = Shard::pointwise(), .doc = "Division, rounded towards zero ('trunc'), down ('floor') or not at all (None).",
  .samples = [](SampleGen& s) { if (!is_complex(s.dtype())) for (auto m : {"trunc", "floor"}) s.binary({}, range(1, 4), m); }),
OP("div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor",
  .forms = InPlace, .types = number_types,
  .decompose = [](const Args& a) -> Results { return rounded_quotient(a, a.tensor(0), number_beside(a.scalar(1), a.tensor(0)), 2); },
  .shard = Shard::pointwise(), .doc = "Division by a number with a rounding mode.",
  .samples = [](SampleGen& s) { if (!is_complex(s.dtype())) s.unary(s.shapes(), {}, Scalar(2), "floor"); }),
OP("_div_trunc(Tensor self, Tensor other) -> Tensor",
  .types = real_types,
  .scalar = SCALAR_FOR(Floats | Ints, div_trunc_(x, y)),
  .check_divisor = true,
  .vjp = [](const Grad& g) { return grads(G(0) { return zeros_like(g.dy()); }, G(1) { return zeros_like(g.dy()); }); },
  .shard = Shard::pointwise(), .doc = "Quotient rounded towards zero.",
  .samples = [](SampleGen& s) { s.binary({}, range(1, 4)); }),
OP("floor_divide(Tensor self, Tensor other) -> Tensor",
  .forms = Out, .types = real_types,
  .scalar = SCALAR_FOR(Floats | Ints, floordiv_(x, y)),
  .check_divisor = true,
  .vjp = [](const Grad& g) { return grads(G(0) { return zeros_like(g.dy()); }, G(1) { return zeros_like(g.dy()); }); },
  .shard = Shard::pointwise(), .doc = "Quotient rounded down, consistent with remainder.",
  .samples = [](SampleGen& s) { s.binary({}, range(1, 4)); }),
OP("floor_divide_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
  .types = real_types,
  .decompose = [](const Args& a) -> Results { Tensor self = a.tensor(0); return self.div_(a.tensor(1), "floor"); },
  .shard = Shard::pointwise(), .doc = "floor_divide, written to self.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4}, range(1, 4))); }),
OP("floor_divide.Scalar(Tensor self, Scalar other) -> Tensor",
  .forms = InPlace, .types = real_types,
  .decompose = [](const Args& a) -> Results { return floor_divide(a.tensor(0), number_beside(a.scalar(1), a.tensor(0))); },
  .shard = Shard::pointwise(), .doc = "Quotient by a number, rounded down.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), {}, Scalar(2)); }),
OP("fmod.Tensor(Tensor self, Tensor other) -> Tensor",
  .forms = InPlace | Out, .types = real_types,
  .scalar = SCALAR_FOR(Floats | Ints, fmod_(x, y)),
  .check_divisor = true,
  .save = {in(0).if_needs(1), in(1).if_needs(1)},
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy(); }, G(1) { return -g.dy() * trunc(g.in(0) / g.in(1)); }); },
  .shard = Shard::pointwise(), .doc = "Remainder with the sign of the dividend, as C's fmod.",
  .samples = [](SampleGen& s) { s.binary({}, range(1, 4)); }),
OP("fmod.Scalar(Tensor self, Scalar other) -> Tensor",
  .forms = InPlace | Out, .types = real_types,
  .decompose = [](const Args& a) -> Results { return fmod(a.tensor(0), number_beside(a.scalar(1), a.tensor(0))); },
  .shard = Shard::pointwise(), .doc = "Remainder by a number with the sign of the dividend.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), {}, Scalar(2)); }),
OP("remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
  .types = real_types,
  .decompose = [](const Args& a) -> Results { return remainder(number_beside(a.scalar(0), a.tensor(1)), a.tensor(1)); },
  .shard = Shard::pointwise(), .doc = "Remainder of a number, with the sign of the divisor.",
  .samples = [](SampleGen& s) { s(Scalar(5), s.t({3, 4}, range(1, 4))); }),

// ---- powers, angles, lengths ----
OP("pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
  .forms = Out, .types = number_types, .promote_scalars = "self",
  .scalar = SCALAR_FOR(Floats | Ints | Complexes, pow_(self, x), self),
  .save = {in(1), out(0)},
  .vjp = [](const Grad& g) { return grads(G(1) {
      Scalar base = g.scalar(0);
      if (base.equal(0)) { // 0 to a power is constant where the power is positive or 0
        Tensor e = g.in(1), cond = e.is_complex() ? logical_and(real(e) >= 0, imag(e) == 0) : e >= 0;
        return where(cond, zeros({}, g.dy().options()), g.dy() * (g.out() * -std::numeric_limits<double>::infinity()).conj());
      }
      std::complex<double> l = std::log(base.toComplexDouble());
      bool is_real = l.imag() == 0 || !is_complex(g.dy().dtype());
      Scalar factor = is_real ? Scalar(base.isComplex() || base.toDouble() > 0 ? l.real() : std::nan("")) : Scalar(std::conj(l));
      return g.dy() * g.out().conj() * factor; }); },
  .shard = Shard::pointwise(), .doc = "A number to the power of each exponent.",
  .samples = [](SampleGen& s) { s(Scalar(2), s.t({3, 4}, range(0, 3))); s(Scalar(1.5), s.t({}, range(0, 3))); }),
OP("float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
  .forms = InPlace | Out, .types = all_types,
  .decompose = [](const Args& a) -> Results {
      DType t = a.tensor(0).is_complex() || a.tensor(1).is_complex() ? kComplexDouble : kDouble;
      return pow(a.tensor(0).to(t), a.tensor(1).to(t)); },
  .shard = Shard::pointwise(), .doc = "Power in float64 or complex128.",
  .samples = [](SampleGen& s) { s.binary(range(1, 3), range(0, 2)); }),
OP("float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
  .forms = InPlace | Out, .types = all_types,
  .decompose = [](const Args& a) -> Results {
      bool z = a.tensor(0).is_complex() || a.scalar(1).isComplex();
      return pow(a.tensor(0).to(z ? kComplexDouble : kDouble), a.scalar(1)); },
  .shard = Shard::pointwise(), .doc = "Power of a number in float64 or complex128.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), range(1, 3), Scalar(2)); }),
OP("float_power.Scalar(Scalar self, Tensor exponent) -> Tensor",
  .forms = Out, .types = all_types,
  .decompose = [](const Args& a) -> Results {
      bool z = a.tensor(1).is_complex() || a.scalar(0).isComplex();
      return pow(a.scalar(0), a.tensor(1).to(z ? kComplexDouble : kDouble)); },
  .shard = Shard::pointwise(), .doc = "A number to a power in float64 or complex128.",
  .samples = [](SampleGen& s) { s(Scalar(2), s.t({3, 4}, range(0, 3))); }),
OP("ldexp.Tensor(Tensor self, Tensor other) -> Tensor",
  .forms = Out, .types = all_types,
  .decompose = [](const Args& a) -> Results { return a.tensor(0) * pow(2.0, a.tensor(1)); },
  .shard = Shard::pointwise(), .doc = "self * 2^other.",
  .samples = [](SampleGen& s) { s.binary({}, range(0, 3)); }),
OP("ldexp_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
  .types = all_types,
  .decompose = [](const Args& a) -> Results { Tensor self = a.tensor(0); return self.mul_(pow(2.0, a.tensor(1))); },
  .shard = Shard::pointwise(), .doc = "self *= 2^other.",
  .samples = [](SampleGen& s) { if (!is_integral(s.dtype(), true)) s(s.t({3, 4}), s.t({3, 4}, range(0, 3))); }),
OP("atan2(Tensor self, Tensor other) -> Tensor",
  .forms = InPlace | Out, .types = float_types,
  .scalar = SCALAR(atan2_(x, y)),
  .save = {in(0), in(1)},
  .vjp = [](const Grad& g) {
      auto [dy, dx] = _atan2_backward(g.dy(), g.in(0), g.in(1));
      return grads(G(0) { return dy; }, G(1) { return dx; }); },
  .shard = Shard::pointwise(), .doc = "Angle of the point (other, self), in (-pi, pi].",
  .samples = [](SampleGen& s) { s.binary(range(0.5, 3), {}); }),
OP("_atan2_backward(Tensor grad_output, Tensor self, Tensor other) -> (Tensor, Tensor)",
  .types = float_types,
  .scalar = SCALAR2((x * (z / (y * y + z * z))), (-x * (y / (y * y + z * z)))),
  .save = {in(0), in(1), in(2)},
  .vjp = [](const Grad& g) {
      Tensor a = g.dy(0), b = g.dy(1), d = g.in(0), y = g.in(1), x = g.in(2), r = (x * x + y * y).reciprocal(), r2 = r * r * d;
      Tensor xy = x * y * 2, diff = y * y - x * x;
      return grads(G(0) { return (a * x - b * y) * r; }, G(1) { return (b * diff - a * xy) * r2; }, G(2) { return (a * diff + b * xy) * r2; }); },
  .materialize = true,
  .shard = Shard::pointwise(), .doc = "Both gradients of atan2.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4}, range(0.5, 3)), s.t({3, 4})); }),
OP("hypot(Tensor self, Tensor other) -> Tensor",
  .forms = InPlace | Out, .types = float_same,
  .scalar = SCALAR(hypot_(x, y)),
  .save = {in(0).if_needs(0), in(1).if_needs(1), out(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy() * (g.in(0) / g.out()); }, G(1) { return g.dy() * (g.in(1) / g.out()); }); },
  .shard = Shard::pointwise(), .doc = "sqrt(self^2 + other^2) without overflow.",
  .samples = [](SampleGen& s) { s.binary(range(0.5, 3), {}); }),
OP("copysign.Tensor(Tensor self, Tensor other) -> Tensor",
  .forms = InPlace | Out, .types = float_types,
  .scalar = SCALAR(copysign_(x, y)),
  .save = {in(0), out(0)},
  .vjp = [](const Grad& g) { return grads(
      G(0) { Tensor x = g.in(0); return g.dy() * (g.out() / x).masked_fill(x == 0, 0); }, G(1) { return zeros_like(g.dy()); }); },
  .shard = Shard::pointwise(), .doc = "|self| with the sign of other.",
  .samples = [](SampleGen& s) { s.binary(); }),
OP("copysign.Scalar(Tensor self, Scalar other) -> Tensor",
  .forms = InPlace | Out, .types = float_types,
  .decompose = [](const Args& a) -> Results { return copysign(a.tensor(0), float_number_beside(a.scalar(1), a.tensor(0))); },
  .shard = Shard::pointwise(), .doc = "|self| with the sign of a number.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), {}, Scalar(-1)); }),
OP("heaviside(Tensor self, Tensor values) -> Tensor",
  .forms = InPlace | Out, .types = {types::kFloatMask | types::kIntMask | types::kBoolMask, Promote::Types},
  .decompose = [](const Args& a) -> Results {
      VESTA_CHECK_AS(TypeError, a.tensor(0).dtype() == a.tensor(1).dtype(), "heaviside: expected values of dtype ", dtype_name(a.tensor(0).dtype()),
                     ", got ", dtype_name(a.tensor(1).dtype()));
      return _heaviside(a.tensor(0), a.tensor(1)); },
  .non_differentiable = true,
  .shard = Shard::pointwise(), .doc = "0 where self < 0, values where self == 0, 1 where self > 0.",
  .samples = [](SampleGen& s) { s.binary(range(-1, 1), {}); }),
OP("_heaviside(Tensor self, Tensor values) -> Tensor",
  .types = real_bool_types,
  .scalar = SCALAR_FOR(Floats | Ints | Bools, where_(x == T(0), y, where_(x > T(0), T(1), T(0)))),
  .non_differentiable = true,
  .shard = Shard::pointwise(), .doc = "heaviside without the check of dtypes.",
  .samples = [](SampleGen& s) { s.binary(range(-1, 1), {}); }),
// ---- extrema that skip NaN ----
OP("fmax(Tensor self, Tensor other) -> Tensor",
  .forms = Out, .types = real_bool_types,
  .scalar = SCALAR_FOR(Floats | Ints | Bools, fmax_(x, y)),
  .save = {in(0), in(1)},
  .vjp = [](const Grad& g) {
      Tensor x = g.in(0), y = g.in(1), tie = x == y;
      return grads(G(0) { return split_tie(g.dy(), logical_or(x > y, isnan(y)), tie); },
                   G(1) { return split_tie(g.dy(), logical_and(logical_or(y > x, isnan(x)), logical_not(isnan(y))), tie); }); },
  .shard = {"pw-max"}, .doc = "Larger of two; a NaN gives way to a number. Ties share the gradient.",
  .samples = [](SampleGen& s) { s.binary(); }),
OP("fmin(Tensor self, Tensor other) -> Tensor",
  .forms = Out, .types = real_bool_types,
  .scalar = SCALAR_FOR(Floats | Ints | Bools, fmin_(x, y)),
  .save = {in(0), in(1)},
  .vjp = [](const Grad& g) {
      Tensor x = g.in(0), y = g.in(1), tie = x == y;
      return grads(G(0) { return split_tie(g.dy(), logical_or(x < y, isnan(y)), tie); },
                   G(1) { return split_tie(g.dy(), logical_and(logical_or(y < x, isnan(x)), logical_not(isnan(y))), tie); }); },
  .shard = {"pw-min"}, .doc = "Smaller of two; a NaN gives way to a number. Ties share the gradient.",
  .samples = [](SampleGen& s) { s.binary(); }),

// ---- logarithms ----
OP("logaddexp(Tensor self, Tensor other) -> Tensor",
  .forms = Out, .types = float_same,
  .scalar = SCALAR(where_((x == y) & isinf_(x), x, max_(x, y) + log1p_(exp_(-abs_(x - y))))),
  .save = {in(0), in(1)},
  .vjp = [](const Grad& g) { LogShares s(g.in(0), g.in(1), 1);
      return grads(G(0) { return g.dy() * s.first(); }, G(1) { return g.dy() * s.second(); }); },
  .shard = {"pw-mono2"}, .doc = "log(exp(self) + exp(other)).",
  .samples = [](SampleGen& s) { s.binary(); }),
OP("logaddexp2(Tensor self, Tensor other) -> Tensor",
  .forms = Out, .types = float_same,
  .scalar = SCALAR(where_((x == y) & isinf_(x), x, max_(x, y) + log1p_(exp2_(-abs_(x - y))) * T(1.4426950408889634))),
  .save = {in(0), in(1)},
  .vjp = [](const Grad& g) { LogShares s(g.in(0), g.in(1), kLn2);
      return grads(G(0) { return g.dy() * s.first(); }, G(1) { return g.dy() * s.second(); }); },
  .shard = {"pw-mono2"}, .doc = "log2(2^self + 2^other).",
  .samples = [](SampleGen& s) { s.binary(); }),
OP("xlogy.Tensor(Tensor self, Tensor other) -> Tensor",
  .forms = InPlace | Out, .types = float_types,
  .scalar = SCALAR(where_(isnan_(y), y, where_(x == T(0), T(0), x * log_(y)))),
  .save = {in(0), in(1)},
  .vjp = [](const Grad& g) {
      Tensor x = g.in(0), y = g.in(1);
      return grads(G(0) { return g.dy() * log(y).masked_fill(logical_and(x == 0, y <= 0), 0); }, G(1) { return g.dy() * x / y; }); },
  .shard = Shard::pointwise(), .doc = "self * log(other), 0 where self is 0.",
  .samples = [](SampleGen& s) { s.binary({}, range(0.5, 3)); }),
OP("xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor",
  .forms = Out, .types = float_types,
  .decompose = [](const Args& a) -> Results { return xlogy(float_number_beside(a.scalar(0), a.tensor(1)), a.tensor(1)); },
  .shard = Shard::pointwise(), .doc = "A number times log(other).",
  .samples = [](SampleGen& s) { s(Scalar(2), s.t({3, 4}, range(0.5, 3))); }),
OP("xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor",
  .forms = InPlace | Out, .types = float_types,
  .decompose = [](const Args& a) -> Results { return xlogy(a.tensor(0), float_number_beside(a.scalar(1), a.tensor(0))); },
  .shard = Shard::pointwise(), .doc = "self times the logarithm of a number.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), {}, Scalar(2)); }),
OP("special_xlog1py(Tensor self, Tensor other) -> Tensor",
  .forms = Out, .types = float_types,
  .scalar = SCALAR(where_(isnan_(y), y, where_(x == T(0), T(0), x * log1p_(y)))),
  .save = {in(0), in(1)},
  .vjp = [](const Grad& g) {
      Tensor x = g.in(0), y = g.in(1);
      return grads(G(0) { return g.dy() * log1p(y).masked_fill(logical_and(x == 0, y <= -1), 0); }, G(1) { return g.dy() * x / (y + 1); }); },
  .shard = Shard::pointwise(), .doc = "self * log1p(other), 0 where self is 0.",
  .samples = [](SampleGen& s) { s.binary({}, range(0, 3)); }),
OP("special_xlog1py.self_scalar(Scalar self, Tensor other) -> Tensor",
  .forms = Out, .types = float_types,
  .decompose = [](const Args& a) -> Results { return special_xlog1py(float_number_beside(a.scalar(0), a.tensor(1)), a.tensor(1)); },
  .shard = Shard::pointwise(), .doc = "A number times log1p(other).",
  .samples = [](SampleGen& s) { s(Scalar(2), s.t({3, 4}, range(0, 3))); }),
OP("special_xlog1py.other_scalar(Tensor self, Scalar other) -> Tensor",
  .forms = Out, .types = float_types,
  .decompose = [](const Args& a) -> Results { return special_xlog1py(a.tensor(0), float_number_beside(a.scalar(1), a.tensor(0))); },
  .shard = Shard::pointwise(), .doc = "self times log1p of a number.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), {}, Scalar(2)); }),

// ---- integers ----
OP("gcd(Tensor self, Tensor other) -> Tensor",
  .forms = InPlace | Out, .types = {types::kIntMask, Promote::Types},
  .scalar = SCALAR_FOR(Ints, gcd_(x, y)),
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "Greatest common divisor; gcd(0, 0) is 0.",
  .samples = [](SampleGen& s) { s.binary(range(-12, 12), range(-12, 12)); }),
OP("lcm(Tensor self, Tensor other) -> Tensor",
  .forms = InPlace | Out, .types = {types::kIntMask, Promote::Types},
  .scalar = SCALAR_FOR(Ints, abs_(mul_(div_trunc_(x, gcd_(x, y)), y))),
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "Least common multiple; 0 where either is 0.",
  .samples = [](SampleGen& s) { s.binary(range(-8, 8), range(-8, 8)); }),
OP("bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor",
  .forms = InPlace | Out, .types = {types::kIntMask, Promote::Types},
  .scalar = SCALAR_FOR(Ints, lshift_(x, y)),
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "self << other; 0 for negative counts and counts of the width or more.",
  .samples = [](SampleGen& s) { s.binary({}, range(0, 4)); }),
OP("bitwise_left_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor",
  .forms = InPlace | Out, .types = {types::kIntMask, Promote::Types},
  .decompose = [](const Args& a) -> Results { return bitwise_left_shift(a.tensor(0), number_beside(a.scalar(1), a.tensor(0))); },
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "self << a number.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), {}, Scalar(2)); }),
OP("bitwise_left_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
  .types = {types::kIntMask, Promote::Types},
  .decompose = [](const Args& a) -> Results { return bitwise_left_shift(number_beside(a.scalar(0), a.tensor(1)), a.tensor(1)); },
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "A number << other.",
  .samples = [](SampleGen& s) { s(Scalar(3), s.t({3, 4}, range(0, 3))); }),
OP("bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor",
  .forms = InPlace | Out, .types = {types::kIntMask, Promote::Types},
  .scalar = SCALAR_FOR(Ints, rshift_(x, y)),
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "self >> other, keeping the sign; the sign alone for counts outside the width.",
  .samples = [](SampleGen& s) { s.binary({}, range(0, 4)); }),
OP("bitwise_right_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor",
  .forms = InPlace | Out, .types = {types::kIntMask, Promote::Types},
  .decompose = [](const Args& a) -> Results { return bitwise_right_shift(a.tensor(0), number_beside(a.scalar(1), a.tensor(0))); },
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "self >> a number.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), {}, Scalar(2)); }),
OP("bitwise_right_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
  .types = {types::kIntMask, Promote::Types},
  .decompose = [](const Args& a) -> Results { return bitwise_right_shift(number_beside(a.scalar(0), a.tensor(1)), a.tensor(1)); },
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "A number >> other.",
  .samples = [](SampleGen& s) { s(Scalar(30), s.t({3, 4}, range(0, 3))); }),
OP("bitwise_and.Scalar(Tensor self, Scalar other) -> Tensor",
  .forms = InPlace | Out, .types = int_bool_types,
  .decompose = [](const Args& a) -> Results { return bitwise_and(a.tensor(0), number_beside(a.scalar(1), a.tensor(0))); },
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "Bitwise and with a number.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), {}, Scalar(1)); }),
OP("bitwise_and.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
  .types = int_bool_types,
  .decompose = [](const Args& a) -> Results { return bitwise_and(a.tensor(1), number_beside(a.scalar(0), a.tensor(1))); },
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "Bitwise and of a number with each element.",
  .samples = [](SampleGen& s) { s(Scalar(1), s.t({3, 4})); }),
OP("bitwise_or.Scalar(Tensor self, Scalar other) -> Tensor",
  .forms = InPlace | Out, .types = int_bool_types,
  .decompose = [](const Args& a) -> Results { return bitwise_or(a.tensor(0), number_beside(a.scalar(1), a.tensor(0))); },
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "Bitwise or with a number.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), {}, Scalar(1)); }),
OP("bitwise_or.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
  .types = int_bool_types,
  .decompose = [](const Args& a) -> Results { return bitwise_or(a.tensor(1), number_beside(a.scalar(0), a.tensor(1))); },
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "Bitwise or of a number with each element.",
  .samples = [](SampleGen& s) { s(Scalar(1), s.t({3, 4})); }),
OP("bitwise_xor.Scalar(Tensor self, Scalar other) -> Tensor",
  .forms = InPlace | Out, .types = int_bool_types,
  .decompose = [](const Args& a) -> Results { return bitwise_xor(a.tensor(0), number_beside(a.scalar(1), a.tensor(0))); },
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "Bitwise exclusive or with a number.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), {}, Scalar(1)); }),
OP("bitwise_xor.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
  .types = int_bool_types,
  .decompose = [](const Args& a) -> Results { return bitwise_xor(a.tensor(1), number_beside(a.scalar(0), a.tensor(1))); },
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "Bitwise exclusive or of a number with each element.",
  .samples = [](SampleGen& s) { s(Scalar(1), s.t({3, 4})); }),
};

}  // namespace
}  // namespace vesta

VESTA_FAMILY(pointwise_arith, table)
