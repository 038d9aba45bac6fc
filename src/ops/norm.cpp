// Layer norm and RMS norm: one fused pass forward, one backward. With create_graph the gradient is composed of public
// operators instead, so that it can be differentiated again. Batch and group norm are in norm_channels.cpp.
#include "core/storage.h"
#include "kernels/cpu/elem.h"
#include "kernels/cpu/layer_norm.h"
#include "ops/infer.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

// How many leading dims stay; the normalised ones must equal normalized_shape.
int64_t kept_dims(const InferCtx& c, int shape_at) {
  IntArrayRef shape = c.ints(shape_at);
  int64_t n = c.dim(0), m = int64_t(shape.size());
  VESTA_CHECK(m >= 1, c.name(), ": expected normalized_shape with at least 1 size");
  VESTA_CHECK(n >= m, c.name(), ": the input has ", n, " dims, normalized_shape ", m);
  for (int64_t d = 0; d < m; ++d)
    VESTA_CHECK(c.sizes(0)[size_t(n - m + d)] == SymInt(shape[size_t(d)]), c.name(), ": the input's size ", c.sizes(0)[size_t(n - m + d)].str(), " at dim ",
                n - m + d, " is not normalized_shape's ", shape[size_t(d)]);
  return n - m;
}
void check_param(const InferCtx& c, int i, int shape_at) {
  if (!c.has(i)) return;
  VESTA_CHECK(c.sizes(i) == ArrayRef<SymInt>(std::vector<SymInt>(c.ints(shape_at).begin(), c.ints(shape_at).end())), c.name(),
              ": weight and bias must have the sizes of normalized_shape");
  DType t = c.dtype_of(0), p = c.dtype_of(i);
  VESTA_CHECK_AS(TypeError, p == t || (p == kFloat && (t == kHalf || t == kBFloat16)), c.name(), ": expected ", dtype_name(t),
                 " weight and bias (or float32 beside a half type), got ", dtype_name(p));
}
// Sizes of mean and rstd: the kept dims, then ones.
std::vector<SymInt> stat_sizes(const InferCtx& c, int64_t kept) {
  std::vector<SymInt> s(c.sizes(0).begin(), c.sizes(0).begin() + kept);
  s.resize(size_t(c.dim(0)), SymInt(1));
  return s;
}
// Saved statistics hold one number per row.
void check_stat(const InferCtx& c, int i, int64_t kept) {
  SymInt rows = 1, have = 1;
  for (int64_t d = 0; d < kept; ++d) rows *= c.sizes(0)[size_t(d)];
  for (auto s : c.sizes(i)) have *= s;
  VESTA_CHECK(rows == have, c.name(), ": expected ", rows.str(), " saved statistics, got ", have.str());
}
DType stat_type(DType t) { return t == kDouble ? kDouble : kFloat; }
void check_float(const Args& a, DType t) {
  VESTA_CHECK_AS(TypeError, is_floating_point(t), a.name(), ": expected a floating point tensor, got ", dtype_name(t));
}

void infer_layer_norm(InferCtx& c) {
  check_float(c, c.dtype_of(0));
  int64_t kept = kept_dims(c, 1);
  check_param(c, 2, 1);
  check_param(c, 3, 1);
  Device device = c.tensor(0).device();
  c.out(0, c.sizes(0), c.dtype_of(0), device);
  auto s = stat_sizes(c, kept);
  c.out(1, s, stat_type(c.dtype_of(0)), device);
  c.out(2, s, stat_type(c.dtype_of(0)), device);
}
cpu::NormShape norm_shape(const Tensor& x, IntArrayRef shape) {
  cpu::NormShape s{1, 1};
  for (int64_t v : shape) s.dim *= v;
  for (int64_t d = 0; d < x.dim() - int64_t(shape.size()); ++d) s.rows *= x.size(d);
  return s;
}
struct Params {
  Tensor weight, bias;
  cpu::Elem type;
  const void* w() const { return weight.defined() ? weight.data_ptr() : nullptr; }
  const void* b() const { return bias.defined() ? bias.data_ptr() : nullptr; }
};
Params params(DType input, const Tensor& weight, const Tensor& bias) {
  DType t = weight.defined() ? weight.dtype() : bias.defined() ? bias.dtype() : input;
  Params p;
  if (weight.defined()) p.weight = weight.contiguous();
  // A mixture (one float32, one half) is brought to float32.
  if (weight.defined() && bias.defined() && bias.dtype() != t) t = kFloat, p.weight = p.weight.to(t);
  if (bias.defined()) p.bias = bias.to(t).contiguous();
  p.type = cpu::elem_of(t);
  return p;
}
void k_layer_norm(const KernelCtx& k) {
  Tensor x = k.tensor(0).contiguous();
  Params p = params(x.dtype(), k.tensor(2), k.tensor(3));
  cpu::layer_norm_forward(cpu::elem_of(x.dtype()), p.type, x.data_ptr(), p.w(), p.b(), k.out(0).data_ptr(), k.out(1).data_ptr(), k.out(2).data_ptr(),
                          norm_shape(x, k.ints(1)), k.number(4));
}

const bool* mask_of(const Args& a, int i, uint32_t n) {
  VESTA_CHECK(a.value(i).length == n, a.name(), ": expected ", n, " flags in output_mask, got ", a.value(i).length);
  return static_cast<const bool*>(a.value(i).ptr);
}
void infer_layer_norm_backward(InferCtx& c) {
  check_float(c, c.dtype_of(0));
  VESTA_CHECK(c.sizes(0) == c.sizes(1), c.name(), ": grad_out and input differ in shape");
  int64_t kept = kept_dims(c, 2);
  check_stat(c, 3, kept);
  check_stat(c, 4, kept);
  check_param(c, 5, 2);
  check_param(c, 6, 2);
  const bool* mask = mask_of(c, 7, 3);
  Device device = c.tensor(0).device();
  std::vector<SymInt> shape(c.ints(2).begin(), c.ints(2).end());
  DType weight = c.has(5) ? c.dtype_of(5) : c.dtype_of(1), bias = c.has(6) ? c.dtype_of(6) : weight;
  mask[0] ? c.out(0, c.sizes(1), c.dtype_of(1), device) : c.out_none(0);
  mask[1] ? c.out(1, shape, weight, device) : c.out_none(1);
  mask[2] ? c.out(2, shape, bias, device) : c.out_none(2);
}
void k_layer_norm_backward(const KernelCtx& k) {
  Tensor x = k.tensor(1).contiguous(), dy = k.tensor(0).to(x.dtype()).contiguous();
  Tensor mean = k.tensor(3).to(stat_type(x.dtype())).contiguous(), rstd = k.tensor(4).to(stat_type(x.dtype())).contiguous();
  Params p = params(x.dtype(), k.tensor(5), k.tensor(6));
  Tensor weight_grad = k.out(1), bias_grad = k.out(2);
  // Where weight and bias differ in type the kernel's float32 sums are converted at the end.
  bool odd_w = weight_grad.defined() && cpu::elem_of(weight_grad.dtype()) != p.type, odd_b = bias_grad.defined() && cpu::elem_of(bias_grad.dtype()) != p.type;
  if (odd_w) weight_grad = empty_cpu(weight_grad.sizes(), kFloat);
  if (odd_b) bias_grad = empty_cpu(bias_grad.sizes(), kFloat);
  auto pointer = [](const Tensor& t) { return t.defined() ? t.data_ptr() : nullptr; };
  cpu::layer_norm_backward(cpu::elem_of(x.dtype()), p.type, dy.data_ptr(), x.data_ptr(), p.w(), mean.data_ptr(), rstd.data_ptr(), pointer(k.out(0)),
                           pointer(weight_grad), pointer(bias_grad), norm_shape(x, k.ints(2)));
  if (odd_w) k.out(1).copy_(weight_grad);
  if (odd_b) k.out(2).copy_(bias_grad);
}

// The dims that normalized_shape covers, and those in front of them.
std::vector<int64_t> inner_dims(int64_t n, size_t m) {
  std::vector<int64_t> d;
  for (int64_t i = n - int64_t(m); i < n; ++i) d.push_back(i);
  return d;
}
Tensor sum_outer(const Tensor& t, size_t m, DType dtype) {
  std::vector<int64_t> d;
  for (int64_t i = 0; i < t.dim() - int64_t(m); ++i) d.push_back(i);
  return (d.empty() ? t : t.sum(d)).to(dtype);
}
// Differentiable gradients of layer norm (rms: without the mean), in x, weight and bias. Statistics are computed anew
// from x, since their own dependence on x counts.
struct NormGrads {
  Tensor x, weight, bias;
};
NormGrads composed_backward(const Tensor& dy_in, const Tensor& x_in, const Tensor& weight, size_t m, double eps, bool rms, DType param) {
  DType t = stat_type(x_in.dtype());
  Tensor x = x_in.to(t), dy = dy_in.to(t);
  auto inner = inner_dims(x.dim(), m);
  Tensor c = rms ? x : x - x.mean(inner, true);
  Tensor rstd = reciprocal(sqrt((c * c).mean(inner, true) + eps));
  Tensor xh = c * rstd, gw = weight.defined() ? dy * weight.to(t) : dy;
  Tensor d = gw - xh * (gw * xh).mean(inner, true);
  if (!rms) d = d - gw.mean(inner, true);
  return {(rstd * d).to(x_in.dtype()), sum_outer(dy * xh, m, param), sum_outer(dy, m, param)};
}

// Gradient of the backward pass, the statistics taken as functions of the input. With P the (self-adjoint) map from dy to
// dx, xh the normalised input, u = P(gw) / rstd and cotangents a, b, c of dx, dweight, dbias:
//   d dy = weight P(a) + b xh + c        d weight = sum(dy P(a))
//   d x = P(dy b) - P(rstd (a mean(gw xh) + gw mean(a xh))) - rstd^2 xh mean(a u)
int vjp_layer_norm_backward(const Grad& g) {
  size_t m = g.ints(2).size();
  DType t = stat_type(g.dtype_of(1));
  Tensor dy = g.in(0).to(t), weight = g.in(5), rstd = g.in(4).to(t), xh = (g.in(1).to(t) - g.in(3).to(t)) * rstd;
  auto inner = inner_dims(dy.dim(), m);
  Tensor gw = weight.defined() ? dy * weight.to(t) : dy;
  auto centred = [&](const Tensor& v) { return v - v.mean(inner, true) - xh * (v * xh).mean(inner, true); };
  Tensor a = g.dy(0).defined() ? g.dy(0).to(t) : Tensor(), b = g.dy(1).defined() ? g.dy(1).to(t) : Tensor(), c = g.dy(2).defined() ? g.dy(2).to(t) : Tensor();
  Tensor pa = a.defined() ? rstd * centred(a) : Tensor();
  auto plus = [](const Tensor& x, const Tensor& y) { return x.defined() ? x + y : y; };
  return grads(
      G(0) {
        Tensor r = a.defined() ? (weight.defined() ? pa * weight.to(t) : pa) : Tensor();
        if (b.defined()) r = plus(r, xh * b);
        if (c.defined()) r = plus(r, c.expand(dy.sizes()));
        return r;
      },
      G(1) {
        Tensor r = b.defined() ? rstd * centred(dy * b) : Tensor();
        if (a.defined()) {
          Tensor inside = a * (gw * xh).mean(inner, true) + gw * (a * xh).mean(inner, true);
          r = plus(r, -(rstd * rstd) * (centred(inside) + xh * (a * centred(gw)).mean(inner, true)));
        }
        return r;
      },
      G(5) { return a.defined() ? sum_outer(dy * pa, m, weight.dtype()) : Tensor(); });
}

int vjp_layer_norm(const Grad& g) {
  Tensor weight = g.in(2);
  if (g.create_graph()) {
    NormGrads r = composed_backward(g.dy(), g.in(0), weight, g.ints(1).size(), g.number(4), false, weight.defined() ? weight.dtype() : g.dtype_of(0));
    return grads(G(0) { return r.x; }, G(2) { return r.weight; }, G(3) { return r.bias; });
  }
  const bool mask[3] = {g.needs(0), g.needs(2), g.needs(3)};
  auto [dx, dw, db] = native_layer_norm_backward(g.dy(), g.in(0), g.ints(1), g.out(1), g.out(2), weight, Tensor(), mask);
  g.set(0, dx);
  g.set(2, dw);
  g.set(3, db);
  return 0;
}

// ---- RMS norm ----
void infer_rms_norm(InferCtx& c) {
  check_float(c, c.dtype_of(0));
  int64_t kept = kept_dims(c, 1);
  check_param(c, 2, 1);
  c.out(0, c.sizes(0), c.dtype_of(0), c.tensor(0).device());
  c.out(1, stat_sizes(c, kept), stat_type(c.dtype_of(0)), c.tensor(0).device());
}
// The machine epsilon of the input's type where none is given.
double rms_eps(const Args& a, int at, DType t) {
  if (a.has(at)) return a.number(at);
  return t == kDouble ? 0x1p-52 : t == kHalf ? 0x1p-10 : t == kBFloat16 ? 0x1p-7 : 0x1p-23;
}
void k_rms_norm(const KernelCtx& k) {
  Tensor x = k.tensor(0).contiguous();
  Params p = params(x.dtype(), k.tensor(2), Tensor());
  cpu::rms_norm_forward(cpu::elem_of(x.dtype()), p.type, x.data_ptr(), p.w(), k.out(0).data_ptr(), k.out(1).data_ptr(), norm_shape(x, k.ints(1)),
                        rms_eps(k, 3, x.dtype()));
}
void infer_rms_norm_backward(InferCtx& c) {
  VESTA_CHECK(c.sizes(0) == c.sizes(1), c.name(), ": grad_out and input differ in shape");
  check_float(c, c.dtype_of(0));
  check_stat(c, 3, kept_dims(c, 2));
  check_param(c, 4, 2);
  const bool* mask = mask_of(c, 5, 2);
  mask[0] ? c.out(0, c.sizes(1), c.dtype_of(1), c.tensor(0).device()) : c.out_none(0);
  std::vector<SymInt> shape(c.ints(2).begin(), c.ints(2).end());
  mask[1] ? c.out(1, shape, c.has(4) ? c.dtype_of(4) : c.dtype_of(1), c.tensor(0).device()) : c.out_none(1);
}
void k_rms_norm_backward(const KernelCtx& k) {
  Tensor x = k.tensor(1).contiguous(), dy = k.tensor(0).to(x.dtype()).contiguous(), rstd = k.tensor(3).to(stat_type(x.dtype())).contiguous();
  Params p = params(x.dtype(), k.tensor(4), Tensor());
  auto pointer = [](const Tensor& t) { return t.defined() ? t.data_ptr() : nullptr; };
  cpu::rms_norm_backward(cpu::elem_of(x.dtype()), p.type, dy.data_ptr(), x.data_ptr(), p.w(), rstd.data_ptr(), pointer(k.out(0)), pointer(k.out(1)),
                         norm_shape(x, k.ints(2)));
}

constexpr OpDef table[] = {
OP("native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)",
  .autocast = Autocast::Widest,
  .forms = Out, .types = any_types, .infer = infer_layer_norm, .kernels = {{Cpu, k_layer_norm}},
  .save = {in(0), in(2), out(1), out(2)}, .vjp = vjp_layer_norm, .non_diff_outputs = 6,
  .shard = {"norm-last"}, .doc = "(input - mean) / sqrt(biased variance + eps) * weight + bias over the last dims; also mean and rstd, in float32 for half types.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { s(s.t({3, 4}), std::vector<int64_t>{4}, s.t({4}), s.t({4}), 1e-5); s(s.t({2, 3, 4}), std::vector<int64_t>{3, 4}, s.t({3, 4}), std::nullopt, 1e-5); s(s.t({5}), std::vector<int64_t>{5}, std::nullopt, std::nullopt, 1e-3); s(s.t({0, 4}), std::vector<int64_t>{4}, s.t({4}), s.t({4}), 1e-5); } }),
OP("native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
  .types = any_types, .infer = infer_layer_norm_backward, .kernels = {{Cpu, k_layer_norm_backward}},
  .save = {in(0), in(1), in(3), in(4), in(5)}, .vjp = vjp_layer_norm_backward,
  .shard = {"norm-last-bwd"}, .doc = "Gradients of native_layer_norm in input, weight and bias, as the mask asks.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype()) && s.dtype() != kDouble) { DType t = stat_type(s.dtype()); s(s.t({3, 4}), s.t({3, 4}), std::vector<int64_t>{4}, s.make({3, 1}, {}, t), s.make({3, 1}, {}, t), s.t({4}), s.t({4}), std::vector<bool>{true, true, true}); } }),
OP("layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enable=True) -> Tensor",
  .autocast = Autocast::Widest,
  .types = any_types,
  .decompose = [](const Args& a) -> Results { return std::get<0>(native_layer_norm(a.tensor(0), a.ints(1), a.tensor(2), a.tensor(3), a.number(4))); },
  .shard = {"norm-last"}, .doc = "Layer norm over the last dims.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { s(s.t({3, 4}), std::vector<int64_t>{4}, s.t({4}), s.t({4})); s(s.t({3, 4}), std::vector<int64_t>{3, 4}); } }),
OP("_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor)",
  .autocast = Autocast::Widest,
  .types = any_types, .infer = infer_rms_norm, .kernels = {{Cpu, k_rms_norm}},
  .save = {in(0), in(2), out(1)},
  .vjp = [](const Grad& g) {
      Tensor weight = g.in(2);
      if (g.create_graph()) {
        NormGrads r = composed_backward(g.dy(), g.in(0), weight, g.ints(1).size(), rms_eps(g, 3, g.dtype_of(0)), true, weight.defined() ? weight.dtype() : g.dtype_of(0));
        return grads(G(0) { return r.x; }, G(2) { return r.weight; });
      }
      const bool mask[2] = {g.needs(0), g.needs(2)};
      auto [dx, dw] = _fused_rms_norm_backward(g.dy(), g.in(0), g.ints(1), g.out(1), weight, mask);
      g.set(0, dx);
      g.set(2, dw);
      return 0; },
  .non_diff_outputs = 2,
  .shard = {"norm-last"}, .doc = "input / sqrt(mean(input^2) + eps) * weight over the last dims; also the reciprocal root.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { s(s.t({3, 4}), std::vector<int64_t>{4}, s.t({4}), 1e-5); s(s.t({2, 3, 4}), std::vector<int64_t>{3, 4}, std::nullopt, 1e-3); } }),
OP("_fused_rms_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape, Tensor rstd, Tensor? weight, bool[2] output_mask) -> (Tensor, Tensor)",
  .types = any_types, .infer = infer_rms_norm_backward, .kernels = {{Cpu, k_rms_norm_backward}}, .non_differentiable = true,
  .shard = {"norm-last-bwd"}, .doc = "Gradients of _fused_rms_norm in input and weight, as the mask asks.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({3, 4}), s.t({3, 4}), std::vector<int64_t>{4}, s.make({3, 1}, {}, stat_type(s.dtype())), s.t({4}), std::vector<bool>{true, true}); }),
OP("rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
  .autocast = Autocast::Widest,
  .types = any_types,
  .decompose = [](const Args& a) -> Results { return std::get<0>(_fused_rms_norm(a.tensor(0), a.ints(1), a.tensor(2), a.has(3) ? std::optional(a.number(3)) : std::nullopt)); },
  .shard = {"norm-last"}, .doc = "RMS norm over the last dims; eps defaults to the type's machine epsilon.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({3, 4}), std::vector<int64_t>{4}, s.t({4})); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(norm, table)
