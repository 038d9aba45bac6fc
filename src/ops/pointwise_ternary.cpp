// Pointwise operators of three tensors: selection, fused multiply-adds, interpolation.
#include "ops/numbers.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

DType number_dtype(const Scalar& v) {
  if (v.isBoolean()) return kBool;
  if (v.isIntegral()) return kLong;
  if (v.isFloatingPoint()) return get_default_dtype();
  return get_default_dtype() == kDouble ? kComplexDouble : kComplexFloat;
}
Results where_numbers(const Tensor& cond, const Tensor& x, const Tensor& y) { return where(cond, x, y); }

constexpr OpDef table[] = {
OP("where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
  .forms = Out, .types = all_types,
  .kernels = {}, 
  .decompose = [](const Args& a) -> Results {
      VESTA_CHECK_AS(TypeError, a.tensor(0).dtype() == kBool || a.tensor(0).dtype() == kUInt8, "where: expected a bool condition, got ", dtype_name(a.tensor(0).dtype()));
      DType t = result_type(a.tensor(1), a.tensor(2));
      if (is_storage_only(t)) {  // selected as bits
        size_t size = element_size(t);
        DType bits = size == 1 ? kUInt8 : size == 2 ? kShort : size == 4 ? kInt : kLong;
        return _where(a.tensor(0), a.tensor(1).to(t).view(bits), a.tensor(2).to(t).view(bits)).view(t);
      }
      return _where(a.tensor(0), a.tensor(1).to(t), a.tensor(2).to(t)); },
  .shard = Shard::pointwise(), .doc = "self where condition, else other; all three broadcast.",
  .samples = [](SampleGen& s) { for (auto& [p, q] : s.broadcast_pairs()) s(s.mask(p), s.t(p), s.t(q)); }),
// The selection itself. condition takes no part in promotion: it is bool, and both others already have one dtype.
OP("_where(Tensor condition, Tensor self, Tensor other) -> Tensor",
  .types = all_types,
  .scalar = SCALAR_FOR(Floats | Ints | Bools | Complexes, where_(x != T(0), y, z)),
  .save = {in(0)},
  .vjp = [](const Grad& g) {
      Tensor c = g.in(0);
      return grads(G(1) { return _where(c, g.dy(), zeros({}, g.dy().options())); }, G(2) { return _where(c, zeros({}, g.dy().options()), g.dy()); }); },
  .shard = Shard::pointwise(), .doc = "where of a bool condition and two tensors of one dtype.",
  .samples = [](SampleGen& s) { for (auto& [p, q] : s.broadcast_pairs()) s(s.mask(p), s.t(p), s.t(q)); }),
OP("where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor",
  .decompose = [](const Args& a) -> Results { return where_numbers(a.tensor(0), number_beside(a.scalar(1), a.tensor(2)), a.tensor(2)); },
  .shard = Shard::pointwise(), .doc = "where with a number for self.",
  .samples = [](SampleGen& s) { s(s.mask({3, 4}), Scalar(2), s.t({3, 4})); }),
OP("where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor",
  .decompose = [](const Args& a) -> Results { return where_numbers(a.tensor(0), a.tensor(1), number_beside(a.scalar(2), a.tensor(1))); },
  .shard = Shard::pointwise(), .doc = "where with a number for other.",
  .samples = [](SampleGen& s) { s(s.mask({3, 4}), s.t({3, 4}), Scalar(2)); }),
OP("masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
  .forms = InPlace,
  .decompose = [](const Args& a) -> Results {
      VESTA_CHECK_AS(TypeError, a.tensor(1).dtype() == kBool, "masked_fill: expected a bool mask, got ", dtype_name(a.tensor(1).dtype()));
      return _where(a.tensor(1), scalar_tensor(a.scalar(2), a.tensor(0).options()), a.tensor(0)); },
  .shard = Shard::pointwise(), .doc = "value where mask is true, else self.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.mask({3, 4}), Scalar(1)); s(s.t({3, 4}), s.mask({4}), Scalar(0)); }),
OP("masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
  .forms = InPlace,
  .decompose = [](const Args& a) -> Results {
      VESTA_CHECK(a.tensor(2).dim() == 0, "masked_fill: expected a 0-dim value, got ", a.tensor(2).dim(), " dims");
      VESTA_CHECK_AS(TypeError, a.tensor(1).dtype() == kBool, "masked_fill: expected a bool mask, got ", dtype_name(a.tensor(1).dtype()));
      // Numbers with an imaginary part have no real value.
      if (a.tensor(2).is_complex() && !a.tensor(0).is_complex())
        VESTA_CHECK(a.tensor(2).detach().item().toComplexDouble().imag() == 0, "masked_fill: value ", a.tensor(2).detach().item().str(),
                    " cannot be converted to ", dtype_name(a.tensor(0).dtype()));
      return _where(a.tensor(1), a.tensor(2).to(a.tensor(0).dtype()), a.tensor(0)); },
  .shard = Shard::pointwise(), .doc = "value (0-dim) where mask is true, else self.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.mask({3, 4}), s.t({})); }),
OP("addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
  .forms = InPlace | Out, .types = number_types,
  .scalar = SCALAR_FOR(Floats | Ints | Complexes, x + value * y * z, value),
  .save = {in(1).if_needs(2), in(2).if_needs(1)},
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy(); }, G(1) { return g.dy() * (g.in(2) * g.scalar(3)).conj(); },
                                          G(2) { return g.dy() * (g.in(1) * g.scalar(3)).conj(); }); },
  .shard = Shard::pointwise(), .doc = "self + value * tensor1 * tensor2.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4}), s.t({4}), Scalar(2)); s(s.t({}), s.t({}), s.t({})); }),
OP("addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
  .forms = InPlace | Out, .types = {types::kFloatMask | types::kComplexMask, Promote::Types},
  .scalar = SCALAR_FOR(Floats | Complexes, x + value * (y / z), value),
  .save = {in(1).if_needs(2), in(2)},
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy(); }, G(1) { return g.dy() * (scalar_tensor(g.scalar(3), g.dy().options()) / g.in(2)).conj(); },
                                          G(2) { Tensor z = g.in(2); return -g.dy() * (g.in(1) * g.scalar(3) / (z * z)).conj(); }); },
  .shard = Shard::pointwise(), .doc = "self + value * tensor1 / tensor2.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4}), s.t({4}, range(1, 3)), Scalar(2)); }),
OP("lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
  .forms = InPlace | Out, .types = {types::kFloatMask | types::kComplexMask, Promote::Same},
  // Both forms agree at the ends: weight < 0.5 measures from self, else from end.
  .scalar = SCALAR_FOR(Floats, where_(abs_(weight) < T(0.5), x + weight * (y - x), y - (y - x) * (T(1) - weight)), weight) |
            SCALAR_FOR(Complexes, x + weight * (y - x), weight),
  .vjp = [](const Grad& g) { return grads(G(0) { Scalar w = g.scalar(2); return g.dy() * (w.isComplex() ? Scalar(1.0 - w.toComplexDouble()) : Scalar(1 - w.toDouble())).conj(); },
                                          G(1) { return g.dy() * g.scalar(2).conj(); }); },
  .shard = Shard::pointwise(), .doc = "self + weight * (end - self).",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4}), Scalar(0.25)); s(s.t({3, 4}), s.t({4}), Scalar(0.75)); }),
OP("lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",
  .forms = InPlace | Out, .types = {types::kFloatMask | types::kComplexMask, Promote::Types},
  .decompose = [](const Args& a) -> Results {
      for (int i : {1, 2})
        VESTA_CHECK_AS(TypeError, a.tensor(i).dtype() == a.tensor(0).dtype(), "lerp: expected ", dtype_name(a.tensor(0).dtype()), " for ",
                       i == 1 ? "end" : "weight", ", got ", dtype_name(a.tensor(i).dtype()));
      return _lerp(a.tensor(0), a.tensor(1), a.tensor(2)); },
  .shard = Shard::pointwise(), .doc = "self + weight * (end - self).",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({4}), s.t({3, 1}, range(0, 1))); s(s.t({}), s.t({}), s.t({}, range(0, 1))); }),
OP("_lerp(Tensor self, Tensor end, Tensor weight) -> Tensor",
  .types = {types::kFloatMask | types::kComplexMask, Promote::Types},
  .scalar = SCALAR_FOR(Floats, where_(abs_(z) < T(0.5), x + z * (y - x), y - (y - x) * (T(1) - z))) |
            SCALAR_FOR(Complexes, where_(absr_(z) < realr_(T(0.5)), x + z * (y - x), y - (y - x) * (T(1) - z))),
  .save = {in(0).if_needs(2), in(1).if_needs(2), in(2)},
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy() * (1 - g.in(2)).conj(); }, G(1) { return g.dy() * g.in(2).conj(); },
                                          G(2) { return g.dy() * (g.in(1) - g.in(0)).conj(); }); },
  .shard = Shard::pointwise(), .doc = "lerp of three tensors of one dtype.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({4}), s.t({3, 1}, range(0, 1))); }),
OP("where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor",
  .decompose = [](const Args& a) -> Results {
      // Two numbers: the default dtype of their category.
      Tensor x = scalar_tensor(a.scalar(1), TensorOptions().dtype(number_dtype(a.scalar(1))));
      Tensor y = scalar_tensor(a.scalar(2), TensorOptions().dtype(number_dtype(a.scalar(2))));
      return where(a.tensor(0), x, y); },
  .shard = Shard::pointwise(), .doc = "where of two numbers.",
  .samples = [](SampleGen& s) { s(s.mask({3, 4}), Scalar(2), Scalar(0.5)); }),

OP("where(Tensor condition) -> Tensor[]",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      Tensor c = a.tensor(0).dim() == 0 ? a.tensor(0).unsqueeze(0) : a.tensor(0);
      return nonzero(c).unbind(1); },
  .dynamic_out = true, .shard = Shard::pointwise(), .doc = "Indices of the nonzero elements, one tensor per dim.",
  .samples = [](SampleGen& s) { s(s.mask({3, 4})); s(s.mask({})); }),

// ---- clamp ----
OP("clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
  .forms = InPlace | Out, .types = real_types,
  .decompose = [](const Args& a) -> Results {
      VESTA_CHECK(a.has(1) || a.has(2), "clamp: expected min or max, got neither");
      if (!a.has(2)) return clamp_min(a.tensor(0), a.scalar(1));
      if (!a.has(1)) return clamp_max(a.tensor(0), a.scalar(2));
      return _clamp(a.tensor(0), a.scalar(1), a.scalar(2)); },
  .shard = Shard::pointwise(), .doc = "self limited to [min, max]; max wins where min > max. The gradient is 0 at the bounds.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), {}, Scalar(-1), Scalar(2)); s(s.t({3}), Scalar(1)); s(s.t({3}), std::nullopt, Scalar(1)); }),
OP("_clamp(Tensor self, Scalar min, Scalar max) -> Tensor",
  .forms = InPlace, .types = real_types, .promote_scalars = "min,max",
  // The bounds first: then the test for NaN is one of the bounds, outside of the loop, and the loop vectorises.
  .scalar = SCALAR_FOR(Floats | Ints, min_(max, max_(min, x)), min, max),
  .save = {in(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return hardtanh_backward(g.dy(), g.in(0), g.scalar(1), g.scalar(2)); }); },
  .shard = Shard::pointwise(), .doc = "clamp with both bounds.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), {}, Scalar(-1), Scalar(2)); }),
OP("clamp_min(Tensor self, Scalar min) -> Tensor",
  .forms = InPlace | Out, .types = real_types, .promote_scalars = "min",
  .scalar = SCALAR_FOR(Floats | Ints, max_(x, min), min),
  .save = {in(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return where(g.in(0) > g.scalar(1), g.dy(), zeros({}, g.dy().options())); }); },
  .shard = Shard::pointwise(), .doc = "max(self, min); NaN stays.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), {}, Scalar(1)); }),
OP("clamp_max(Tensor self, Scalar max) -> Tensor",
  .forms = InPlace | Out, .types = real_types, .promote_scalars = "max",
  .scalar = SCALAR_FOR(Floats | Ints, min_(x, max), max),
  .save = {in(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return where(g.in(0) < g.scalar(1), g.dy(), zeros({}, g.dy().options())); }); },
  .shard = Shard::pointwise(), .doc = "min(self, max); NaN stays.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), {}, Scalar(1)); }),
OP("clamp_min.Tensor(Tensor self, Tensor min) -> Tensor",
  .forms = InPlace | Out, .types = real_types,
  .decompose = [](const Args& a) -> Results { return maximum(a.tensor(0), a.tensor(1)); },
  .shard = {"pw-max"}, .doc = "maximum(self, min).",
  .samples = [](SampleGen& s) { s.binary(); }),
OP("clamp_max.Tensor(Tensor self, Tensor max) -> Tensor",
  .forms = InPlace | Out, .types = real_types,
  .decompose = [](const Args& a) -> Results { return minimum(a.tensor(0), a.tensor(1)); },
  .shard = {"pw-min"}, .doc = "minimum(self, max).",
  .samples = [](SampleGen& s) { s.binary(); }),
OP("clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
  .forms = InPlace | Out, .types = real_types,
  .decompose = [](const Args& a) -> Results {
      VESTA_CHECK(a.has(1) || a.has(2), "clamp: expected min or max, got neither");
      if (!a.has(2)) return maximum(a.tensor(0), a.tensor(1));
      if (!a.has(1)) return minimum(a.tensor(0), a.tensor(2));
      return minimum(maximum(a.tensor(0), a.tensor(1)), a.tensor(2)); },
  .shard = Shard::pointwise(), .doc = "self limited to [min, max] element by element; ties share the gradient.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({4}, range(-2, 0)), s.t({3, 1}, range(0, 2))); s(s.t({3}), s.t({3})); }),
};

}  // namespace
}  // namespace vesta

VESTA_FAMILY(pointwise_ternary, table)
