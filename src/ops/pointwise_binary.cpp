// Pointwise operators of two tensors, or of a tensor and a number: arithmetic, comparison, logic, extrema.
#include <limits>

#include "core/promotion.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

// As a floating number where the integer has no predecessor.
Scalar one_less(const Scalar& e) {
  if (e.isComplex()) return e.toComplexDouble() - 1.0;
  if (e.isFloatingPoint() || e.toLong() == std::numeric_limits<int64_t>::min()) return e.toDouble() - 1;
  return e.toLong() - 1;
}

constexpr TypeRule compare_types = all_types.to(ResultType::Bool);
// Equality of dtypes that only store: through the type that they convert to without loss.
constexpr TypeRule equality_types{types::kAnyMask | (types::kStorageMask & ~types::bit(kFloat4_e2m1fn_x2)), Promote::Types, ResultType::Bool};
constexpr TypeRule order_types = real_bool_types.to(ResultType::Bool);

// PyTorch's in-place powers are rows of their own, pow_.Scalar and pow_.Tensor.
template <class Power>
Tensor write_power(const Args& a, Power power) {
  Tensor self = a.tensor(0);
  Tensor r = power(self.requires_grad() ? self.clone() : self);  // the gradient reads the old values
  VESTA_CHECK_AS(TypeError, can_cast(r.dtype(), self.dtype()), a.name(), ": result type ", to_string(r.dtype()),
                 " can't be cast to the desired output type ", to_string(self.dtype()));
  VESTA_CHECK(r.sizes() == self.sizes(), a.name(), ": the result has another shape than self");
  return self.copy_(r);
}

constexpr OpDef table[] = {
// ---- arithmetic ----
OP("add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
  .forms   = InPlace | Out,
  .types   = all_types,
  .scalar  = SCALAR_FOR(Floats | Complexes, x + alpha * y, alpha) | SCALAR_FOR(Ints, x + alpha * y, alpha) | SCALAR_FOR(Bools, or_(x, and_(alpha, y)), alpha),
  .vjp     = [](const Grad& g) { return grads(G(0) { return g.dy(); },
                                              G(1) { Scalar a = g.scalar(2); return a.equal(1) ? g.dy() : g.dy() * a.conj(); }); },
  .shard   = {"pw-add"},
  .doc     = "self + alpha * other; for bool, logical or.",
  .samples = [](SampleGen& s) { s.binary(); s.binary({}, {}, Scalar(s.dtype() == kBool ? 1 : 2)); }),

OP("add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
  .forms   = InPlace,
  .types   = all_types,
  .promote_scalars = "other",
  .scalar  = SCALAR_FOR(Floats | Complexes | Ints, x + alpha * other, other, alpha) | SCALAR_FOR(Bools, or_(x, and_(alpha, other)), other, alpha),
  .vjp     = [](const Grad& g) { return grads(G(0) { return g.dy(); }); },
  .shard   = {"pw-addS"},
  .doc     = "self + alpha * other.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), {}, Scalar(3)); }),

OP("sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
  .forms   = InPlace | Out,
  .types   = number_types,
  .scalar  = SCALAR_FOR(Floats | Complexes | Ints, x - alpha * y, alpha),
  .vjp     = [](const Grad& g) { return grads(G(0) { return g.dy(); }, G(1) { return g.dy() * (-g.scalar(2)).conj(); }); },
  .shard   = {"pw-add"},
  .doc     = "self - alpha * other. Not for bool: use logical_xor.",
  .samples = [](SampleGen& s) { s.binary(); }),

OP("sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
  .forms   = InPlace,
  .types   = number_types,
  .promote_scalars = "other",
  .scalar  = SCALAR_FOR(Floats | Complexes | Ints, x - alpha * other, other, alpha),
  .vjp     = [](const Grad& g) { return grads(G(0) { return g.dy(); }); },
  .shard   = {"pw-addS"},
  .doc     = "self - alpha * other.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), {}, Scalar(3)); }),

OP("rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
  .types   = number_types,
  .scalar  = SCALAR_FOR(Floats | Complexes | Ints, y - alpha * x, alpha),
  .vjp     = [](const Grad& g) { return grads(G(0) { return g.dy() * (-g.scalar(2)).conj(); }, G(1) { return g.dy(); }); },
  .shard   = Shard::pointwise(),
  .doc     = "other - alpha * self.",
  .samples = [](SampleGen& s) { s.binary(); }),

OP("rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
  .types   = number_types,
  .promote_scalars = "other",
  .scalar  = SCALAR_FOR(Floats | Complexes | Ints, other - alpha * x, other, alpha),
  .vjp     = [](const Grad& g) { return grads(G(0) { return g.dy() * (-g.scalar(2)).conj(); }); },
  .shard   = {"pw"},
  .doc     = "other - alpha * self.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), {}, Scalar(3)); }),

OP("mul.Tensor(Tensor self, Tensor other) -> Tensor",
  .forms   = InPlace | Out,
  .types   = all_types,
  .scalar  = SCALAR_FOR(Floats | Complexes | Ints, x * y) | SCALAR_FOR(Bools, and_(x, y)),
  .save    = {in(0).if_needs(1), in(1).if_needs(0)},
  .vjp     = [](const Grad& g) { return grads(G(0) { return g.dy() * g.in_conj(1); }, G(1) { return g.dy() * g.in_conj(0); }); },
  .shard   = {"pw-mul"},
  .doc     = "self * other; for bool, logical and.",
  .samples = [](SampleGen& s) { s.binary(); }),

OP("mul.Scalar(Tensor self, Scalar other) -> Tensor",
  .forms   = InPlace,
  .types   = all_types,
  .promote_scalars = "other",
  .scalar  = SCALAR_FOR(Floats | Complexes | Ints, x * other, other) | SCALAR_FOR(Bools, and_(x, other), other),
  .vjp     = [](const Grad& g) { return grads(G(0) { return g.dy() * g.scalar(1).conj(); }); },
  .shard   = {"pw-lin1"},
  .doc     = "self * other.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), {}, Scalar(2)); }),

OP("div.Tensor(Tensor self, Tensor other) -> Tensor",
  .forms   = InPlace | Out,
  .types   = field_types,
  .scalar  = SCALAR_FOR(Floats | Complexes, x / y),
  .save    = {in(0).if_needs(1), in(1)},
  .vjp     = [](const Grad& g) { return grads(G(0) { return g.dy() / g.in_conj(1); },
                                              G(1) { Tensor y = g.in(1); return -g.dy() * ((g.in(0) / y) / y).conj(); }); },
  .shard   = {"pw-div"},
  .doc     = "True division; integers give the default dtype.",
  .samples = [](SampleGen& s) { s.binary({}, range(1, 4)); }),

OP("div.Scalar(Tensor self, Scalar other) -> Tensor",
  .forms   = InPlace,
  .types   = field_types,
  .promote_scalars = "other",
  .scalar  = SCALAR_FOR(Floats | Complexes, x / other, other),
  .vjp     = [](const Grad& g) { return grads(G(0) { return g.dy() / g.scalar(1).conj(); }); },
  .shard   = {"pw-lin1"},
  .doc     = "True division by a number.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), {}, Scalar(3)); }),

OP("remainder.Tensor(Tensor self, Tensor other) -> Tensor",
  .forms   = InPlace | Out,
  .types   = real_types,
  .scalar  = SCALAR_FOR(Floats | Ints, remainder_(x, y)),
  .check_divisor = true,
  .save    = {in(0).if_needs(1), in(1).if_needs(1)},
  .vjp     = [](const Grad& g) { return grads(G(0) { return g.dy(); }, G(1) { return -g.dy() * floor(g.in(0) / g.in(1)); }); },
  .shard   = Shard::pointwise(),
  .doc     = "Remainder with the sign of the divisor, as Python's %.",
  .samples = [](SampleGen& s) { s.binary({}, range(1, 4)); }),

OP("remainder.Scalar(Tensor self, Scalar other) -> Tensor",
  .forms   = InPlace | Out,
  .types   = real_types,
  .decompose = [](const Args& a) -> Results { return remainder(a.tensor(0), scalar_tensor(a.scalar(1), a.tensor(0).options().dtype(result_type(a.tensor(0), a.scalar(1))))); },
  .shard   = Shard::pointwise(),
  .doc     = "Remainder with the sign of the divisor.",
  .samples = [](SampleGen& s) { if (s.dtype() != kBool && !is_complex(s.dtype())) s.unary(s.shapes(), {}, Scalar(3)); }),

OP("pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
  .forms   = Out,
  .types   = number_types,
  .scalar  = SCALAR_FOR(Floats | Ints | Complexes, pow_(x, y)),
  .save    = {in(0), in(1), out(0).if_needs(1)},
  .vjp     = [](const Grad& g) { return grads(
      G(0) { Tensor e = g.in(1); return where(e == 0, zeros({}, g.dy().options()), g.dy() * (e * g.in(0).pow(e - 1)).conj()); },
      G(1) { Tensor x = g.in(0), e = g.in(1);
             Tensor zero = zeros({}, g.dy().options());
             Tensor cond = e.is_complex() ? logical_and(x == 0, real(e) >= 0) : logical_and(x == 0, e >= 0);
             return g.dy() * where(cond, zero, (g.out() * log(x)).conj()); }); },
  .shard   = Shard::pointwise(),
  .doc     = "self to the power exponent. Integer bases with negative exponents give 0 or +-1.",
  .samples = [](SampleGen& s) { s.binary(range(0.5, 3), range(0, 3)); }),

OP("pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
  .forms   = Out,
  .types   = {types::kAnyMask, Promote::Types},
  .promote_scalars = "exponent",
  // Small powers are products: several times faster than pow_, at most an ulp apart. Halves are not roots: those differ
  // from a power at -0 and -infinity.
  .decompose = [](const Args& a) -> Results {
      Scalar e = a.scalar(1);
      DType t = result_type(a.tensor(0), e);
      VESTA_CHECK_AS(TypeError, t != kBool, "pow: does not take bool tensors with a bool exponent");
      if (e.isComplex()) return _pow_number(a.tensor(0), e);
      double v = e.toDouble();
      VESTA_CHECK(!(is_integral(t) && v < 0), "pow: integers to negative integer powers are not allowed, got ", e.str());
      Tensor x = a.tensor(0).to(t);
      if (v == 2) return x * x;
      if (v == 3) return x * x * x;
      if (v == -1 && !is_integral(t)) return reciprocal(x);
      return _pow_number(x, e); },
  .save    = {in(0)},
  .vjp     = [](const Grad& g) { return grads(G(0) {
      Scalar e = g.scalar(1);
      if (e.equal(0)) return zeros_like(g.dy());
      if (e.equal(2)) return g.dy() * (g.in(0) * 2).conj();
      Scalar less = one_less(e);
      return g.dy() * (g.in(0).pow(less) * e).conj(); }); },
  .shard   = Shard::pointwise(),
  .doc     = "self to the power of a number.",
  .samples = [](SampleGen& s) { for (double e : {2.0, -1.0, 1.7}) if (!is_integral(s.dtype(), true)) s.unary(s.shapes(), range(0.5, 3), Scalar(e));
                                s.unary(s.shapes(), range(0.5, 3), Scalar(3)); }),

OP("pow_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)",
  .types   = any_types,
  .decompose = [](const Args& a) -> Results { return write_power(a, [&](const Tensor& x) { return pow(x, a.scalar(1)); }); },
  .shard   = Shard::pointwise(),
  .doc     = "self to the power of a number, in place.",
  .samples = [](SampleGen& s) { if (s.dtype() != kBool) s.unary(s.shapes(), range(0.5, 3), Scalar(3)); }),

OP("pow_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)",
  .types   = any_types,
  .decompose = [](const Args& a) -> Results { return write_power(a, [&](const Tensor& x) { return pow(x, a.tensor(1)); }); },
  .shard   = Shard::pointwise(),
  .doc     = "self to the power exponent, in place.",
  .samples = [](SampleGen& s) { if (s.dtype() != kBool) s(s.t({3, 4}, range(0.5, 3)), s.t({4}, range(0, 3))); }),

OP("_pow_number(Tensor self, Scalar exponent) -> Tensor",
  .types   = number_types,
  .promote_scalars = "exponent",
  .scalar  = SCALAR_FOR(Floats | Ints | Complexes, pow_(x, exponent), exponent),
  .save    = {in(0)},
  .vjp     = [](const Grad& g) { return grads(G(0) {
      Scalar e = g.scalar(1);
      if (e.equal(0)) return zeros_like(g.dy());
      Scalar less = one_less(e);
      return g.dy() * (g.in(0).pow(less) * e).conj(); }); },
  .shard   = Shard::pointwise(),
  .doc     = "pow of a number without special cases.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), range(0.5, 3), Scalar(4)); }),

// ---- extrema ----
OP("maximum(Tensor self, Tensor other) -> Tensor",
  .forms   = Out,
  .types   = real_bool_types,
  .scalar  = SCALAR_FOR(Floats | Ints | Bools, max_(x, y)),
  .save    = {in(0), in(1)},
  .vjp     = [](const Grad& g) { // ties share the gradient equally
      Tensor x = g.in(0), y = g.in(1);
      return grads(G(0) { return g.dy() * ((x > y).to(g.dtype_of(0)) + (x == y).to(g.dtype_of(0)) * 0.5); },
                   G(1) { return g.dy() * ((y > x).to(g.dtype_of(1)) + (x == y).to(g.dtype_of(1)) * 0.5); }); },
  .shard   = {"pw-max"},
  .doc     = "Larger of two; NaN wins.",
  .samples = [](SampleGen& s) { s.binary(); }),

OP("minimum(Tensor self, Tensor other) -> Tensor",
  .forms   = Out,
  .types   = real_bool_types,
  .scalar  = SCALAR_FOR(Floats | Ints | Bools, min_(x, y)),
  .save    = {in(0), in(1)},
  .vjp     = [](const Grad& g) {
      Tensor x = g.in(0), y = g.in(1);
      return grads(G(0) { return g.dy() * ((x < y).to(g.dtype_of(0)) + (x == y).to(g.dtype_of(0)) * 0.5); },
                   G(1) { return g.dy() * ((y < x).to(g.dtype_of(1)) + (x == y).to(g.dtype_of(1)) * 0.5); }); },
  .shard   = {"pw-min"},
  .doc     = "Smaller of two; NaN wins.",
  .samples = [](SampleGen& s) { s.binary(); }),

// ---- comparison: bool results, no gradient ----
OP("eq.Tensor(Tensor self, Tensor other) -> Tensor",
  .forms = InPlace | Out, .types = equality_types,
  .scalar = SCALAR_FOR(Floats | Ints | Bools | Complexes, x == y),
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "self == other.",
  .samples = [](SampleGen& s) { s.binary(range(0, 2), range(0, 2)); }),
OP("eq.Scalar(Tensor self, Scalar other) -> Tensor",
  .forms = InPlace | Out, .types = equality_types, .promote_scalars = "other",
  .scalar = SCALAR_FOR(Floats | Ints | Bools | Complexes, x == other, other),
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "self == other.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), range(0, 2), Scalar(1)); }),
OP("ne.Tensor(Tensor self, Tensor other) -> Tensor",
  .forms = InPlace | Out, .types = equality_types,
  .scalar = SCALAR_FOR(Floats | Ints | Bools | Complexes, x != y),
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "self != other.",
  .samples = [](SampleGen& s) { s.binary(range(0, 2), range(0, 2)); }),
OP("ne.Scalar(Tensor self, Scalar other) -> Tensor",
  .forms = InPlace | Out, .types = equality_types, .promote_scalars = "other",
  .scalar = SCALAR_FOR(Floats | Ints | Bools | Complexes, x != other, other),
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "self != other.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), range(0, 2), Scalar(1)); }),
OP("lt.Tensor(Tensor self, Tensor other) -> Tensor",
  .forms = InPlace | Out, .types = order_types,
  .scalar = SCALAR_FOR(Floats | Ints | Bools, x < y),
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "self < other.",
  .samples = [](SampleGen& s) { s.binary(range(0, 2), range(0, 2)); }),
OP("lt.Scalar(Tensor self, Scalar other) -> Tensor",
  .forms = InPlace | Out, .types = order_types, .promote_scalars = "other",
  .scalar = SCALAR_FOR(Floats | Ints | Bools, x < other, other),
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "self < other.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), range(0, 2), Scalar(1)); }),
OP("le.Tensor(Tensor self, Tensor other) -> Tensor",
  .forms = InPlace | Out, .types = order_types,
  .scalar = SCALAR_FOR(Floats | Ints | Bools, x <= y),
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "self <= other.",
  .samples = [](SampleGen& s) { s.binary(range(0, 2), range(0, 2)); }),
OP("le.Scalar(Tensor self, Scalar other) -> Tensor",
  .forms = InPlace | Out, .types = order_types, .promote_scalars = "other",
  .scalar = SCALAR_FOR(Floats | Ints | Bools, x <= other, other),
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "self <= other.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), range(0, 2), Scalar(1)); }),
OP("gt.Tensor(Tensor self, Tensor other) -> Tensor",
  .forms = InPlace | Out, .types = order_types,
  .scalar = SCALAR_FOR(Floats | Ints | Bools, x > y),
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "self > other.",
  .samples = [](SampleGen& s) { s.binary(range(0, 2), range(0, 2)); }),
OP("gt.Scalar(Tensor self, Scalar other) -> Tensor",
  .forms = InPlace | Out, .types = order_types, .promote_scalars = "other",
  .scalar = SCALAR_FOR(Floats | Ints | Bools, x > other, other),
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "self > other.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), range(0, 2), Scalar(1)); }),
OP("ge.Tensor(Tensor self, Tensor other) -> Tensor",
  .forms = InPlace | Out, .types = order_types,
  .scalar = SCALAR_FOR(Floats | Ints | Bools, x >= y),
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "self >= other.",
  .samples = [](SampleGen& s) { s.binary(range(0, 2), range(0, 2)); }),
OP("ge.Scalar(Tensor self, Scalar other) -> Tensor",
  .forms = InPlace | Out, .types = order_types, .promote_scalars = "other",
  .scalar = SCALAR_FOR(Floats | Ints | Bools, x >= other, other),
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "self >= other.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), range(0, 2), Scalar(1)); }),

// ---- logic ----
OP("bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor",
  .forms = InPlace | Out, .types = int_bool_types, .scalar = SCALAR_FOR(Ints | Bools, and_(x, y)),
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "Bitwise and; for bool, logical and.",
  .samples = [](SampleGen& s) { s.binary(); }),
OP("bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor",
  .forms = InPlace | Out, .types = int_bool_types, .scalar = SCALAR_FOR(Ints | Bools, or_(x, y)),
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "Bitwise or; for bool, logical or.",
  .samples = [](SampleGen& s) { s.binary(); }),
OP("bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor",
  .forms = InPlace | Out, .types = int_bool_types, .scalar = SCALAR_FOR(Ints | Bools, xor_(x, y)),
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "Bitwise exclusive or; for bool, logical.",
  .samples = [](SampleGen& s) { s.binary(); }),
OP("logical_and(Tensor self, Tensor other) -> Tensor",
  .forms = InPlace | Out, .types = compare_types,
  .scalar = SCALAR_FOR(Floats | Ints | Bools | Complexes, (x != T(0)) && (y != T(0))),
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "Both are nonzero.",
  .samples = [](SampleGen& s) { s.binary(range(0, 1), range(0, 1)); }),
OP("logical_or(Tensor self, Tensor other) -> Tensor",
  .forms = InPlace | Out, .types = compare_types,
  .scalar = SCALAR_FOR(Floats | Ints | Bools | Complexes, (x != T(0)) || (y != T(0))),
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "Either is nonzero.",
  .samples = [](SampleGen& s) { s.binary(range(0, 1), range(0, 1)); }),
OP("logical_xor(Tensor self, Tensor other) -> Tensor",
  .forms = InPlace | Out, .types = compare_types,
  .scalar = SCALAR_FOR(Floats | Ints | Bools | Complexes, (x != T(0)) != (y != T(0))),
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "Exactly one is nonzero.",
  .samples = [](SampleGen& s) { s.binary(range(0, 1), range(0, 1)); }),
};

}  // namespace
}  // namespace vesta

VESTA_FAMILY(pointwise_binary, table)
