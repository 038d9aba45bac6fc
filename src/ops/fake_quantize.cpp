// Quantisation as floating point sees it: values rounded to a grid of integers and back, with straight-through gradients;
// and products of int8 matrices. There is no quantised dtype.
#include <algorithm>
#include <cmath>

#include "core/registry.h"
#include "kernels/cpu/gemm.h"
#include "ops/infer.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

void check_range(const Args& a, int64_t low, int64_t high) {
  VESTA_CHECK(low <= high, a.name(), ": expected quant_min <= quant_max, got ", low, " and ", high);
}
void check_floating(const Args& a, const Tensor& x) {
  VESTA_CHECK_AS(TypeError, is_floating_point(x.dtype()), a.name(), ": expected a floating point tensor, got ", dtype_name(x.dtype()));
}
// x on the grid, before clamping, as floating integers; scale and zero_point broadcast. Half types are computed as
// float32: zero points and levels would not fit them.
Tensor on_grid(const Tensor& x, const Tensor& scale, const Tensor& zero_point) {
  return (x * scale.reciprocal()).round() + zero_point;
}
struct Grid {
  Tensor values, inside;
};
Grid fake_quantize(const Tensor& x, const Tensor& scale, const Tensor& zero_point, int64_t low, int64_t high) {
  Tensor wide = element_size(x.dtype()) == 2 ? x.to(kFloat) : x, s = scale.to(wide.dtype()), z = zero_point.to(wide.dtype());
  Tensor q = on_grid(wide, s, z);
  return {((q.clamp(low, high) - z) * s).to(x.dtype()), (q >= low).logical_and(q <= high)};
}
Tensor number_like(const Tensor& x, Scalar v) { return full({}, v, x.options().requires_grad(false).dtype(x.dtype() == kDouble ? kDouble : kFloat)); }
// A scale or zero point of one element as 0-dim.
Tensor single(const Args& a, int i) {
  VESTA_CHECK(a.tensor(i).numel() == 1, a.name(), ": expected one element in ", a.op().schema.args[size_t(i)].name, ", got ", a.tensor(i).numel());
  return a.tensor(i).detach().reshape({});
}
// A scale or zero point for each index of the axis, shaped to broadcast.
Tensor along_axis(const Args& a, int i, int64_t axis) {
  const Tensor &x = a.tensor(0), &t = a.tensor(i);
  VESTA_CHECK(t.dim() == 1 && t.size(0) == x.size(axis), a.name(), ": expected ", a.op().schema.args[size_t(i)].name, " with 1 dim of size ", x.size(axis));
  std::vector<int64_t> shape(size_t(x.dim()), 1);
  shape[size_t(axis)] = x.size(axis);
  return t.detach().reshape(shape);
}
int64_t axis_of(const Args& a, int i) {
  VESTA_CHECK(a.tensor(0).dim() > 0, a.name(), ": expected at least 1 dim");
  return wrap_dim(a, a.integer(i), a.tensor(0).dim());
}

// self, scale, zero_point as numbers.
Results per_tensor(const Args& a) {
  const Tensor& x = a.tensor(0);
  check_floating(a, x);
  check_range(a, a.integer(3), a.integer(4));
  VESTA_CHECK(a.integer(2) >= a.integer(3) && a.integer(2) <= a.integer(4), a.name(), ": expected a zero point in [", a.integer(3), ", ", a.integer(4), "], got ", a.integer(2));
  // The scale is rounded to the compute type first, as in PyTorch.
  Grid g = fake_quantize(x, number_like(x, a.number(1)), number_like(x, a.integer(2)), a.integer(3), a.integer(4));
  return {g.values, g.inside};
}
// self, scale, zero_point as tensors of one element, fake_quant_enabled.
Results per_tensor_params(const Args& a) {
  const Tensor& x = a.tensor(0);
  check_floating(a, x);
  check_range(a, a.integer(4), a.integer(5));
  Grid g = fake_quantize(x, single(a, 1), single(a, 2), a.integer(4), a.integer(5));
  Tensor on = single(a, 3) != 0;
  return {where(on, g.values, x), g.inside.logical_or(on.logical_not())};
}
Results per_channel(const Args& a) {
  const Tensor& x = a.tensor(0);
  check_floating(a, x);
  check_range(a, a.integer(4), a.integer(5));
  int64_t axis = axis_of(a, 3);
  Grid g = fake_quantize(x, along_axis(a, 1, axis), along_axis(a, 2, axis), a.integer(4), a.integer(5));
  return {g.values, g.inside};
}
int straight_through(const Grad& g) {
  return grads(G(0) { return g.dy() * g.out(1).to(g.dy().dtype()); });
}

// ---- learned scale and zero point ----
// The zero point that forward uses is rounded and clamped to the range; the one of gradients is rounded half up.
Tensor rounded_zero_point(const Tensor& z, int64_t low, int64_t high, bool forward) {
  return (forward ? z.round() : (z + 0.5).clamp(low, high).trunc()).clamp(low, high);
}
// grad self scale zero_point low high factor: gradients of self, scale and zero_point before their sums.
std::vector<Tensor> learned_gradients(const Tensor& dy, const Tensor& x, const Tensor& scale, const Tensor& zero, int64_t low, int64_t high, double factor) {
  Tensor q = on_grid(x, scale, zero), inside = (q >= low).logical_and(q <= high), level = q.clamp(low, high);
  Tensor at_edge = (level == low).logical_or(level == high), edge = where(level == low, low - zero, high - zero);
  Tensor dscale = where(at_edge, edge, ((level - zero) * scale - x) * scale.reciprocal()) * dy * factor;
  Tensor dzero = where(at_edge, dy * scale * -factor, zeros_like(dy));
  return {dy * inside.to(dy.dtype()), dscale, dzero};
}
Results learned_per_tensor(const Args& a) {
  check_floating(a, a.tensor(0));
  check_range(a, a.integer(3), a.integer(4));
  return fake_quantize(a.tensor(0), single(a, 1), rounded_zero_point(single(a, 2), a.integer(3), a.integer(4), true), a.integer(3), a.integer(4)).values;
}
Results learned_per_channel(const Args& a) {
  check_floating(a, a.tensor(0));
  check_range(a, a.integer(4), a.integer(5));
  int64_t axis = axis_of(a, 3);
  return fake_quantize(a.tensor(0), along_axis(a, 1, axis), rounded_zero_point(along_axis(a, 2, axis), a.integer(4), a.integer(5), true), a.integer(4), a.integer(5)).values;
}
void check_gradient(const Args& a) {
  VESTA_CHECK(a.tensor(0).sizes() == a.tensor(1).sizes() && a.tensor(0).dtype() == a.tensor(1).dtype(), a.name(), ": expected grad with the sizes and dtype of self");
  check_floating(a, a.tensor(1));
}
// grad self scale zero_point quant_min quant_max grad_factor
Results learned_per_tensor_backward(const Args& a) {
  check_gradient(a);
  check_range(a, a.integer(4), a.integer(5));
  std::vector<Tensor> g = learned_gradients(a.tensor(0), a.tensor(1), single(a, 2).to(a.tensor(1).dtype()), rounded_zero_point(single(a, 3).to(a.tensor(1).dtype()), a.integer(4), a.integer(5), false), a.integer(4), a.integer(5), a.number(6));
  return {g[0], g[1].sum().reshape({1}), g[2].sum().reshape({1})};
}
// grad self scale zero_point axis quant_min quant_max grad_factor
Results learned_per_channel_backward(const Args& a) {
  check_gradient(a);
  check_range(a, a.integer(5), a.integer(6));
  const Tensor& x = a.tensor(1);
  int64_t axis = axis_of(a, 4);
  std::vector<Tensor> g = learned_gradients(a.tensor(0), x, along_axis(a, 2, axis).to(x.dtype()), rounded_zero_point(along_axis(a, 3, axis).to(x.dtype()), a.integer(5), a.integer(6), false), a.integer(5), a.integer(6), a.number(7));
  std::vector<int64_t> others;
  for (int64_t d = 0; d < x.dim(); ++d)
    if (d != axis) others.push_back(d);
  auto reduced = [&](const Tensor& t) { return others.empty() ? t : t.sum(IntArrayRef(others)); };
  return {g[0], reduced(g[1]), reduced(g[2])};
}
int learned_vjp(const Grad& g, bool channels) {
  auto [dx, dscale, dzero] = channels ? _fake_quantize_learnable_per_channel_affine_backward(g.dy(), g.in(0), g.in(1), g.in(2), g.integer(3), g.integer(4), g.integer(5), g.number(6))
                                      : _fake_quantize_learnable_per_tensor_affine_backward(g.dy(), g.in(0), g.in(1), g.in(2), g.integer(3), g.integer(4), g.number(5));
  if (g.needs(0)) g.set(0, dx);
  if (g.needs(1)) g.set(1, dscale.reshape(g.sizes(1)));
  if (g.needs(2)) g.set(2, dzero.reshape(g.sizes(2)));
  return 0;
}

constexpr TypeRule floating{types::kFloatMask, Promote::None}, wide_floating{types::bit(kFloat32) | types::bit(kFloat64), Promote::None};
// What is quantised is a staircase: derivatives by differences say nothing, so samples of float64 stay away.
bool sampled(const SampleGen& s) { return s.dtype() != kDouble; }

void infer_int_mm(InferCtx& c) {
  for (int i : {0, 1}) {
    VESTA_CHECK_AS(TypeError, c.dtype_of(i) == kChar, "_int_mm: expected int8, got ", dtype_name(c.dtype_of(i)));
    VESTA_CHECK(c.dim(i) == 2, "_int_mm: expected 2 dims for a matrix, got ", c.dim(i));
  }
  VESTA_CHECK(c.sizes(0)[1] == c.sizes(1)[0], "_int_mm: the inner sizes differ: ", c.sizes(0)[1].str(), " and ", c.sizes(1)[0].str());
  SymInt sizes[] = {c.sizes(0)[0], c.sizes(1)[1]};
  c.out(0, sizes, kInt, c.tensor(0).device());
}
void k_int_mm(const KernelCtx& k) {
  const Tensor &a = k.tensor(0), &b = k.tensor(1);
  cpu::GemmArgs g;
  g.type = cpu::GemmType::I8, g.out = cpu::GemmType::I32;
  g.m = a.size(0), g.k = a.size(1), g.n = b.size(1);
  g.a = a.impl()->data, g.a_row = a.strides()[0], g.a_col = a.strides()[1];
  g.b = b.impl()->data, g.b_row = b.strides()[0], g.b_col = b.strides()[1];
  g.c = k.out().impl()->data, g.ldc = g.n;
  cpu::gemm(g);
}

constexpr OpDef table[] = {
OP("fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, int quant_min, int quant_max) -> Tensor",
  .types = floating, .decompose = [](const Args& a) -> Results { return std::get<0>(fake_quantize_per_tensor_affine_cachemask(a.tensor(0), a.number(1), a.integer(2), a.integer(3), a.integer(4))); },
  .shard = {"replicate"}, .doc = "self rounded to a grid of integers quant_min..quant_max and back.", .samples = [](SampleGen& s) { if (sampled(s)) s(s.t({3, 4}), 0.25, 1, -4, 5); }),
OP("fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, int quant_min, int quant_max) -> Tensor",
  .types = floating, .decompose = [](const Args& a) -> Results {
      return std::get<0>(_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(a.tensor(0), a.tensor(1), a.tensor(2), ones({1}, TensorOptions(kLong).device(a.tensor(0).device())), a.integer(3), a.integer(4))); },
  .shard = {"replicate"}, .doc = "fake_quantize_per_tensor_affine with its scale and zero point from tensors.",
  .samples = [](SampleGen& s) { if (sampled(s)) s(s.t({3, 4}), s.make({1}, range(0.2, 0.3), kFloat), s.make({1}, range(0, 2), kInt), -4, 5); }),
OP("fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int zero_point, int quant_min, int quant_max) -> (Tensor output, Tensor mask)",
  .types = floating, .decompose = per_tensor, .save = {out(1)}, .vjp = straight_through, .non_diff_outputs = 2, .shard = {"replicate"},
  .doc = "fake_quantize_per_tensor_affine, and which elements lie in the range.", .samples = [](SampleGen& s) { if (sampled(s)) { s(s.t({3, 4}), 0.25, 1, -4, 5); s(s.t({0}), 0.25, 0, 0, 255); } }),
OP("_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, Tensor fake_quant_enabled, int quant_min, int quant_max) -> (Tensor output, Tensor mask)",
  .types = floating, .decompose = per_tensor_params, .save = {out(1)}, .vjp = straight_through, .non_diff_outputs = 2, .shard = {"replicate"},
  .doc = "The same with its scale and zero point from tensors; self where fake_quant_enabled is 0.",
  .samples = [](SampleGen& s) { if (sampled(s)) s(s.t({3, 4}), s.make({1}, range(0.2, 0.3), kFloat), s.make({1}, range(0, 2), kInt), s.make({1}, range(0, 1), kLong), -4, 5); }),
OP("fake_quantize_per_tensor_affine_cachemask_backward(Tensor grad, Tensor mask) -> Tensor",
  .types = floating, .decompose = [](const Args& a) -> Results {
      VESTA_CHECK_AS(TypeError, a.tensor(1).dtype() == kBool, a.name(), ": expected a bool mask, got ", dtype_name(a.tensor(1).dtype()));
      VESTA_CHECK(a.tensor(1).sizes() == a.tensor(0).sizes(), a.name(), ": expected a mask with the sizes of grad");
      return a.tensor(0) * a.tensor(1).to(a.tensor(0).dtype()); },
  .shard = {"replicate"}, .doc = "grad where the element lay in the range.", .samples = [](SampleGen& s) { s(s.t({3, 4}), s.mask({3, 4})); }),
OP("fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max) -> Tensor",
  .types = floating, .decompose = [](const Args& a) -> Results { return std::get<0>(fake_quantize_per_channel_affine_cachemask(a.tensor(0), a.tensor(1), a.tensor(2), a.integer(3), a.integer(4), a.integer(5))); },
  .shard = {"replicate"}, .doc = "fake_quantize_per_tensor_affine with a scale and zero point for each index of an axis.",
  .samples = [](SampleGen& s) { if (sampled(s)) s(s.t({3, 4}), s.make({4}, range(0.2, 0.3), kFloat), s.make({4}, range(0, 2), kInt), 1, -4, 5); }),
OP("fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max) -> (Tensor output, Tensor mask)",
  .types = floating, .decompose = per_channel, .save = {out(1)}, .vjp = straight_through, .non_diff_outputs = 2, .shard = {"replicate"},
  .doc = "fake_quantize_per_channel_affine, and which elements lie in the range.",
  .samples = [](SampleGen& s) { if (sampled(s)) s(s.t({3, 4}), s.make({3}, range(0.2, 0.3), kFloat), s.make({3}, range(0, 2), kInt), 0, -4, 5); }),
OP("fake_quantize_per_channel_affine_cachemask_backward(Tensor grad, Tensor mask) -> Tensor",
  .types = floating, .decompose = [](const Args& a) -> Results { return fake_quantize_per_tensor_affine_cachemask_backward(a.tensor(0), a.tensor(1)); },
  .shard = {"replicate"}, .doc = "grad where the element lay in the range.", .samples = [](SampleGen& s) { s(s.t({3, 4}), s.mask({3, 4})); }),
OP("_fake_quantize_learnable_per_tensor_affine(Tensor self, Tensor scale, Tensor zero_point, int quant_min, int quant_max, float grad_factor=1.0) -> Tensor",
  .types = wide_floating, .decompose = learned_per_tensor, .save = {in(0), in(1), in(2)}, .vjp = [](const Grad& g) { return learned_vjp(g, false); }, .shard = {"replicate"},
  .doc = "fake_quantize_per_tensor_affine whose scale and zero point are learned.",
  .samples = [](SampleGen& s) { if (sampled(s)) s(s.t({3, 4}), s.t({1}, range(0.2, 0.3)), s.t({1}, range(0, 2)), -4, 5); }),
OP("_fake_quantize_learnable_per_tensor_affine_backward(Tensor grad, Tensor self, Tensor scale, Tensor zero_point, int quant_min, int quant_max, float grad_factor=1.0) -> (Tensor, Tensor, Tensor)",
  .types = wide_floating, .decompose = learned_per_tensor_backward, .non_differentiable = true, .shard = {"replicate"},
  .doc = "Gradients of self, scale and zero_point.", .samples = [](SampleGen& s) { if (sampled(s)) s(s.t({3, 4}), s.t({3, 4}), s.t({1}, range(0.2, 0.3)), s.t({1}, range(0, 2)), -4, 5); }),
OP("_fake_quantize_learnable_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max, float grad_factor=1.0) -> Tensor",
  .types = wide_floating, .decompose = learned_per_channel, .save = {in(0), in(1), in(2)}, .vjp = [](const Grad& g) { return learned_vjp(g, true); }, .shard = {"replicate"},
  .doc = "fake_quantize_per_channel_affine whose scales and zero points are learned.",
  .samples = [](SampleGen& s) { if (sampled(s)) s(s.t({3, 4}), s.t({4}, range(0.2, 0.3)), s.t({4}, range(0, 2)), 1, -4, 5); }),
OP("_fake_quantize_learnable_per_channel_affine_backward(Tensor grad, Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max, float grad_factor=1.0) -> (Tensor, Tensor, Tensor)",
  .types = wide_floating, .decompose = learned_per_channel_backward, .non_differentiable = true, .shard = {"replicate"},
  .doc = "Gradients of self, scales and zero_points.", .samples = [](SampleGen& s) { if (sampled(s)) s(s.t({3, 4}), s.t({3, 4}), s.t({4}, range(0.2, 0.3)), s.t({4}, range(0, 2)), 1, -4, 5); }),
OP("_int_mm(Tensor self, Tensor mat2) -> Tensor",
  .forms = Out, .types = {types::bit(kInt8), Promote::None}, .infer = infer_int_mm, .kernels = {{Cpu, k_int_mm}},
  .non_differentiable = true, .shard = {"einsum-scaled"}, .doc = "Product of int8 matrices, summed in int32.", .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({4, 2})); }),
OP("_weight_int8pack_mm(Tensor self, Tensor mat2, Tensor scales) -> Tensor",
  .types = floating, .decompose = [](const Args& a) -> Results {
      const Tensor &x = a.tensor(0), &w = a.tensor(1), &scales = a.tensor(2);
      VESTA_CHECK_AS(TypeError, w.dtype() == kChar, "_weight_int8pack_mm: expected an int8 weight, got ", dtype_name(w.dtype()));
      VESTA_CHECK(x.dim() == 2 && w.dim() == 2 && scales.dim() == 1 && x.size(1) == w.size(1) && scales.size(0) == w.size(0), "_weight_int8pack_mm: expected [m, k], [n, k] and [n]");
      VESTA_CHECK_AS(TypeError, scales.dtype() == x.dtype(), "_weight_int8pack_mm: expected scales of ", dtype_name(x.dtype()), ", got ", dtype_name(scales.dtype()));
      DType wide = element_size(x.dtype()) == 2 ? kFloat : x.dtype();
      return (mm(x.to(wide), w.to(wide).t()) * scales.to(wide)).to(x.dtype()); },
  .non_differentiable = true, .shard = {"einsum-scaled"}, .doc = "Product with an int8 weight [n, k] whose rows have scales.", .samples = [](SampleGen& s) { s(s.t({3, 4}), s.make({2, 4}, {}, kChar), s.t({2}, range(0.5, 1))); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(fake_quantize, table)
