// Norms with a scale per channel: group norm (statistics per sample and group of channels), batch norm (per channel
// over the batch) and instance norm. Inputs are (n, channels, inner); statistics accumulate in double and are kept in
// float32 for half types. With create_graph gradients are composed of public operators.
#include <cmath>

#include "core/registry.h"
#include "core/storage.h"
#include "kernels/cpu/batch_norm.h"
#include "kernels/cpu/copy.h"
#include "ops/conv_params.h"
#include "ops/infer.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

DType stat_type(DType t) { return t == kDouble ? kDouble : kFloat; }
struct Shape {
  int64_t n, c, inner;
};
Shape shape_of(const Tensor& x) {
  Shape s{x.size(0), x.size(1), 1};
  for (int64_t d = 2; d < x.dim(); ++d) s.inner *= x.size(d);
  return s;
}
template <class F>
void with_type(const Args& a, DType t, F f) {
  switch (t) {
    case DType::Float32: return f(float(), float());
    case DType::Float64: return f(double(), double());
    case DType::Float16: return f(Half(), float());
    case DType::BFloat16: return f(BFloat16(), float());
    default: throw TypeError(std::string(a.name()) + ": does not take " + dtype_name(t) + " tensors");
  }
}
// A per-channel argument in the statistics' type; null where absent.
struct Channel {
  Tensor keep;
  template <class A>
  const A* get() const { return keep.defined() ? keep.data_ptr<A>() : nullptr; }
};
Channel channel(const Tensor& t, DType type) { return {t.defined() ? t.to(type).contiguous() : Tensor()}; }
void check_input(const InferCtx& c, int i) {
  VESTA_CHECK(c.dim(i) >= 2, c.name(), ": expected an input with at least 2 dims, got ", c.dim(i));
  VESTA_CHECK_AS(TypeError, is_floating_point(c.dtype_of(i)), c.name(), ": expected a floating point tensor, got ", dtype_name(c.dtype_of(i)));
}
void check_channel(const InferCtx& c, int i, SymInt channels, const char* what) {
  if (c.has(i)) VESTA_CHECK(c.dim(i) == 1 && c.sizes(i)[0] == channels, c.name(), ": expected ", what, " with one element per channel");
}
const bool* mask_of(const Args& a, int i) {
  VESTA_CHECK(a.value(i).length == 3, a.name(), ": expected 3 flags in output_mask");
  return static_cast<const bool*>(a.value(i).ptr);
}
// Numbers of the channels, zero at first.
class Doubles {
 public:
  explicit Doubles(int64_t n) : values_(static_cast<size_t>(n)) {}
  double& operator[](int64_t i) { return values_[size_t(i)]; }
  double* data() { return values_.data(); }
  const double* data() const { return values_.data(); }
  int64_t size() const { return int64_t(values_.size()); }

 private:
  std::vector<double> values_;
};

// ---- group norm ----
SymInt numel_of(const InferCtx& c, int i) {
  SymInt n = 1;
  for (auto s : c.sizes(i)) n *= s;
  return n;
}
// N, C, HxW and group at size_at.
void check_groups(const InferCtx& c, int size_at) {
  check_input(c, 0);
  int64_t n = c.integer(size_at), ch = c.integer(size_at + 1), inner = c.integer(size_at + 2), groups = c.integer(size_at + 3);
  VESTA_CHECK(groups >= 1 && ch % groups == 0, c.name(), ": ", ch, " channels do not divide into ", groups, " groups");
  VESTA_CHECK(c.sizes(0)[0] == n && c.sizes(0)[1] == ch, c.name(), ": the input's sizes are not N and C");
  VESTA_CHECK(numel_of(c, 0) == SymInt(n) * ch * inner, c.name(), ": the input does not have N * C * HxW elements");
}
void infer_group_norm(InferCtx& c) {
  check_groups(c, 3);
  int64_t n = c.integer(3), ch = c.integer(4), groups = c.integer(6);
  check_channel(c, 1, ch, "a weight");
  check_channel(c, 2, ch, "a bias");
  c.out(0, c.sizes(0), c.dtype_of(0), c.tensor(0).device());
  for (int j = 1; j < 3; ++j) c.out(j, {SymInt(n), SymInt(groups)}, stat_type(c.dtype_of(0)), c.tensor(0).device());
}
void k_group_norm(const KernelCtx& k) {
  Tensor x = k.tensor(0).contiguous();
  DType acc = stat_type(x.dtype());
  Channel w = channel(k.tensor(1), acc), b = channel(k.tensor(2), acc);
  Shape s{k.integer(3), k.integer(4), k.integer(5)};
  int64_t groups = k.integer(6), per = s.c / groups;
  double eps = k.number(7);
  cpu::Elem type = cpu::elem_of(x.dtype());
  Doubles mean(s.n * groups), variance(s.n * groups), m(s.n * s.c), scale(s.n * s.c), shift(s.n * s.c);
  cpu::channel_moments(type, {1, s.n * groups, per * s.inner}, x.data_ptr(), mean.data(), variance.data());
  with_type(k, x.dtype(), [&]<class S, class A>(S, A) {
    A *mean_out = k.out(1).data_ptr<A>(), *rstd_out = k.out(2).data_ptr<A>();
    const A *weight = w.get<A>(), *bias = b.get<A>();
    for (int64_t r = 0; r < s.n * groups; ++r) {
      mean_out[r] = A(mean[r]);
      rstd_out[r] = A(1 / std::sqrt(variance[r] + eps));
      for (int64_t c = 0; c < per; ++c) {
        int64_t ch = r % groups * per + c, at = r * per + c;
        m[at] = double(mean_out[r]);
        scale[at] = double(rstd_out[r]) * (weight ? double(weight[ch]) : 1);
        shift[at] = bias ? double(bias[ch]) : 0;
      }
    }
  });
  cpu::channel_apply(type, {1, s.n * s.c, s.inner}, x.data_ptr(), m.data(), scale.data(), shift.data(), k.out(0).data_ptr());
}
void infer_group_norm_backward(InferCtx& c) {
  VESTA_CHECK(c.sizes(0) == c.sizes(1), c.name(), ": grad_out and input differ in shape");
  check_groups(c, 5);
  check_channel(c, 4, SymInt(c.integer(6)), "a weight");
  for (int i = 2; i < 4; ++i)
    VESTA_CHECK(numel_of(c, i) == SymInt(c.integer(5) * c.integer(8)), c.name(), ": expected N * group saved statistics, got ", numel_of(c, i).str());
  const bool* mask = mask_of(c, 9);
  DType w = c.has(4) ? c.dtype_of(4) : c.dtype_of(1);
  mask[0] ? c.out(0, c.sizes(1), c.dtype_of(1), c.tensor(0).device()) : c.out_none(0);
  for (int j = 1; j < 3; ++j) mask[j] ? c.out(j, {SymInt(c.integer(6))}, w, c.tensor(0).device()) : c.out_none(j);
}
void store_channel(const Tensor& out, const Doubles& v) {
  if (!out.defined()) return;
  Tensor t = empty_cpu(out.sizes(), kDouble);
  std::copy(v.data(), v.data() + v.size(), t.data_ptr<double>());
  cpu::copy_elements(out, t);
}
// dx = rstd * (dy * weight - mean(dy * weight) - xhat * mean(dy * weight * xhat)), the means over a group.
void k_group_norm_backward(const KernelCtx& k) {
  Tensor x = k.tensor(1).contiguous(), dy = k.tensor(0).to(x.dtype()).contiguous();
  Tensor mean_t = k.tensor(2).to(kDouble).contiguous(), rstd_t = k.tensor(3).to(kDouble).contiguous();
  Channel w = channel(k.tensor(4), kDouble);
  Shape s{k.integer(5), k.integer(6), k.integer(7)};
  int64_t groups = k.integer(8), per = s.c / groups, count = per * s.inner;
  const double *mean = mean_t.data_ptr<double>(), *rstd = rstd_t.data_ptr<double>(), *weight = w.get<double>();
  cpu::Elem type = cpu::elem_of(x.dtype());
  cpu::ChannelShape planes{1, s.n * s.c, s.inner};
  Doubles m(s.n * s.c), sum_dy(s.n * s.c), sum_product(s.n * s.c), a(s.n * s.c), b(s.n * s.c), c(s.n * s.c), dw(s.c), db(s.c);
  for (int64_t i = 0; i < s.n * s.c; ++i) m[i] = mean[i / per];
  cpu::channel_products(type, planes, dy.data_ptr(), x.data_ptr(), m.data(), sum_dy.data(), sum_product.data());
  for (int64_t r = 0; r < s.n * groups; ++r) {
    double g1 = 0, g2 = 0;
    for (int64_t i = r * per; i < (r + 1) * per; ++i) {
      double scale = weight ? weight[i % s.c] : 1;
      g1 += scale * sum_dy[i];
      g2 += scale * sum_product[i] * rstd[r];
      dw[i % s.c] += sum_product[i] * rstd[r];
      db[i % s.c] += sum_dy[i];
    }
    for (int64_t i = r * per; i < (r + 1) * per; ++i) {
      a[i] = rstd[r] * (weight ? weight[i % s.c] : 1);
      b[i] = -rstd[r] * rstd[r] * g2 / double(count);
      c[i] = -rstd[r] * g1 / double(count);
    }
  }
  if (k.out(0).defined())
    cpu::channel_gradient(type, planes, dy.data_ptr(), x.data_ptr(), m.data(), a.data(), b.data(), c.data(), k.out(0).data_ptr());
  store_channel(k.out(1), dw);
  store_channel(k.out(2), db);
}
std::vector<int64_t> channel_shape(int64_t dims, int64_t channels) {
  std::vector<int64_t> s(size_t(dims), 1);
  s[1] = channels;
  return s;
}
std::vector<int64_t> all_but_channels(int64_t dims) {
  std::vector<int64_t> d{0};
  for (int64_t i = 2; i < dims; ++i) d.push_back(i);
  return d;
}
int vjp_group_norm(const Grad& g) {
  Tensor weight = g.in(1);
  int64_t n = g.integer(3), c = g.integer(4), inner = g.integer(5), groups = g.integer(6);
  if (!g.create_graph() && !g.dy(1).defined() && !g.dy(2).defined()) {
    if (!g.dy().defined()) return 0;
    const bool mask[3] = {g.needs(0), g.needs(1), g.needs(2)};
    auto [dx, dw, db] = native_group_norm_backward(g.dy(), g.in(0), g.out(1), g.out(2), weight, n, c, inner, groups, mask);
    g.set(0, dx), g.set(1, dw), g.set(2, db);
    return 0;
  }
  DType t = stat_type(g.dtype_of(0));
  int64_t count = c / groups * inner;
  Tensor x = g.in(0).to(t).reshape({n, groups, count}), dy = g.dy().defined() ? g.dy().to(t).reshape({n, c, inner}) : zeros({n, c, inner}, TensorOptions(t));
  Tensor centre = x - x.mean({2}, true), rstd = reciprocal(sqrt((centre * centre).mean({2}, true) + g.number(7))), xh = centre * rstd;
  Tensor gw = (weight.defined() ? dy * weight.to(t).view({1, c, 1}) : dy).reshape({n, groups, count});
  return grads(
      G(0) {
        Tensor d = rstd * (gw - gw.mean({2}, true) - xh * (gw * xh).mean({2}, true));
        // d mean / dx = 1 / count, d rstd / dx = -rstd^2 xhat / count.
        if (g.dy(1).defined()) d = d + g.dy(1).to(t).unsqueeze(2) / double(count);
        if (g.dy(2).defined()) d = d - g.dy(2).to(t).unsqueeze(2) * rstd * rstd * xh / double(count);
        return d.reshape(g.sizes(0));
      },
      G(1) { return (dy * xh.reshape({n, c, inner})).sum({0, 2}); },
      G(2) { return dy.sum({0, 2}); });
}

// ---- batch norm ----
// Output j with the sizes and type of argument i: channels last where that is, else contiguous.
void out_like_channels(InferCtx& c, int j, int i) {
  if (!is_channels_last(c.tensor(i))) return c.out(j, c.sizes(i), c.dtype_of(i), c.tensor(i).device());
  c.out_strided(j, c.sizes(i), channels_last_strides(c.sizes(i)), c.dtype_of(i), c.tensor(i).device());
}
void infer_batch_norm(InferCtx& c) {
  check_input(c, 0);
  SymInt ch = c.sizes(0)[1];
  check_channel(c, 1, ch, "a weight");
  check_channel(c, 2, ch, "a bias");
  check_channel(c, 3, ch, "a running_mean");
  check_channel(c, 4, ch, "a running_var");
  bool train = c.flag(5);
  VESTA_CHECK(train || (c.has(3) && c.has(4)), c.name(), ": evaluation needs running_mean and running_var");
  out_like_channels(c, 0, 0);
  SymInt stats[] = {train ? ch : SymInt(0)};
  for (int j = 1; j < 3; ++j) c.out(j, stats, stat_type(c.dtype_of(0)), c.tensor(0).device());
}
// The input's rows of channels, or its planes; a dense copy where it is neither.
struct Laid {
  Tensor x;
  cpu::ChannelShape shape;
};
Laid laid_out(const Tensor& t) {
  bool last = is_channels_last(t);
  Tensor x = last ? t : t.contiguous();
  Shape s = shape_of(x);
  return {x, {s.n, s.c, s.inner, last || s.inner == 1}};
}
Tensor laid_like(const Tensor& t, const Tensor& like) {
  if (!is_channels_last(like)) return t.contiguous();
  return t.contiguous(like.dim() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d);
}
void k_batch_norm(const KernelCtx& k) {
  auto [x, s] = laid_out(k.tensor(0));
  DType acc = stat_type(x.dtype());
  Channel w = channel(k.tensor(1), kDouble), b = channel(k.tensor(2), kDouble);
  bool train = k.flag(5);
  double momentum = k.number(6), eps = k.number(7);
  int64_t count = s.count();
  cpu::Elem type = cpu::elem_of(x.dtype());
  Doubles mean(s.channels), variance(s.channels), scale(s.channels), shift(s.channels);
  const double *weight = w.get<double>(), *bias = b.get<double>();
  if (train) {
    cpu::channel_moments(type, s, x.data_ptr(), mean.data(), variance.data());
  } else {
    Tensor m = k.tensor(3).to(acc).to(kDouble).contiguous(), v = k.tensor(4).to(acc).to(kDouble).contiguous();
    std::copy_n(m.data_ptr<double>(), s.channels, mean.data());
    std::copy_n(v.data_ptr<double>(), s.channels, variance.data());
  }
  with_type(k, x.dtype(), [&]<class S, class A>(S, A) {
    for (int64_t c = 0; c < s.channels; ++c) {
      A m = A(mean[c]), rstd = A(1 / std::sqrt(variance[c] + eps));
      if (train) k.out(1).data_ptr<A>()[c] = m, k.out(2).data_ptr<A>()[c] = rstd;
      mean[c] = double(m);
      scale[c] = double(rstd) * (weight ? weight[c] : 1);
      shift[c] = bias ? bias[c] : 0;
    }
  });
  cpu::channel_apply(type, s, x.data_ptr(), mean.data(), scale.data(), shift.data(), k.out(0).data_ptr());
  if (!train) return;
  // Running statistics: exponential average of the mean and of the unbiased variance.
  auto update = [&](const Tensor& running, auto value) {
    if (!running.defined()) return;
    Tensor next = running.to(kDouble).contiguous().clone();
    double* p = next.data_ptr<double>();
    for (int64_t c = 0; c < s.channels; ++c) p[c] = p[c] * (1 - momentum) + momentum * value(c);
    cpu::copy_elements(running, next);
    bump_version(running.impl(), k.op().id);
  };
  update(k.tensor(3), [&](int64_t c) { return mean[c]; });
  update(k.tensor(4), [&](int64_t c) { return variance[c] * double(count) / double(count - 1); });
}
void infer_batch_norm_backward(InferCtx& c) {
  VESTA_CHECK(c.sizes(0) == c.sizes(1), c.name(), ": grad_out and input differ in shape");
  check_input(c, 0);
  SymInt ch = c.sizes(1)[1];
  check_channel(c, 2, ch, "a weight");
  bool train = c.flag(7);
  check_channel(c, train ? 5 : 3, ch, "means");
  check_channel(c, train ? 6 : 4, ch, "deviations");
  const bool* mask = mask_of(c, 9);
  DType w = c.has(2) ? c.dtype_of(2) : c.dtype_of(1);
  mask[0] ? out_like_channels(c, 0, 1) : c.out_none(0);
  for (int j = 1; j < 3; ++j) mask[j] ? c.out(j, {c.sizes(1)[1]}, w, c.tensor(0).device()) : c.out_none(j);
}
void k_batch_norm_backward(const KernelCtx& k) {
  auto [x, s] = laid_out(k.tensor(1));
  Tensor dy = laid_like(k.tensor(0).to(x.dtype()), x);
  DType acc = stat_type(x.dtype());
  Channel w = channel(k.tensor(2), kDouble);
  bool train = k.flag(7);
  VESTA_CHECK(train ? k.has(5) && k.has(6) : k.has(3) && k.has(4), k.name(), ": the statistics are missing");
  Tensor mean_t = k.tensor(train ? 5 : 3).to(acc).to(kDouble).contiguous(), second = k.tensor(train ? 6 : 4).to(acc).to(kDouble).contiguous();
  const double *mean = mean_t.data_ptr<double>(), *stat = second.data_ptr<double>(), *weight = w.get<double>();
  double eps = k.number(8), count = double(s.count());
  cpu::Elem type = cpu::elem_of(x.dtype());
  Doubles sum_dy(s.channels), sum_product(s.channels), a(s.channels), b(s.channels), c(s.channels);
  cpu::channel_products(type, s, dy.data_ptr(), x.data_ptr(), mean, sum_dy.data(), sum_product.data());
  for (int64_t i = 0; i < s.channels; ++i) {
    double rstd = train ? stat[i] : 1 / std::sqrt(stat[i] + eps);
    sum_product[i] *= rstd;
    a[i] = rstd * (weight ? weight[i] : 1);
    b[i] = train ? -a[i] * rstd * sum_product[i] / count : 0;
    c[i] = train ? -a[i] * sum_dy[i] / count : 0;
  }
  if (k.out(0).defined()) cpu::channel_gradient(type, s, dy.data_ptr(), x.data_ptr(), mean, a.data(), b.data(), c.data(), k.out(0).data_ptr());
  store_channel(k.out(1), sum_product);
  store_channel(k.out(2), sum_dy);
}
int vjp_batch_norm(const Grad& g) {
  Tensor weight = g.in(1);
  bool train = g.flag(5);
  if (!g.create_graph()) {
    const bool mask[3] = {g.needs(0), g.needs(1), g.needs(2)};
    Tensor none;
    // In training the running statistics were just written and are not read.
    auto [dx, dw, db] = native_batch_norm_backward(g.dy(), g.in(0), weight, train ? none : g.in(3), train ? none : g.in(4), g.out(1), g.out(2), train, g.number(7), mask);
    g.set(0, dx), g.set(1, dw), g.set(2, db);
    return 0;
  }
  DType t = stat_type(g.dtype_of(0));
  Tensor x = g.in(0).to(t), dy = g.dy().to(t);
  int64_t n = x.dim(), c = x.size(1);
  auto dims = all_but_channels(n), shape = channel_shape(n, c);
  Tensor centre, rstd;
  if (train) {
    centre = x - x.mean(dims, true);
    rstd = reciprocal(sqrt((centre * centre).mean(dims, true) + g.number(7)));
  } else {
    centre = x - g.in(3).to(t).view(shape);
    rstd = reciprocal(sqrt(g.in(4).to(t).view(shape) + g.number(7)));
  }
  Tensor xh = centre * rstd, gw = weight.defined() ? dy * weight.to(t).view(shape) : dy;
  return grads(
      G(0) { return train ? rstd * (gw - gw.mean(dims, true) - xh * (gw * xh).mean(dims, true)) : rstd * gw; },
      G(1) { return (dy * xh).sum(dims); },
      G(2) { return dy.sum(dims); });
}

// Gradient of native_batch_norm_backward: as for layer norm (norm.cpp), with means over all dims but the channels. In
// evaluation the statistics are constants.
int vjp_batch_norm_backward(const Grad& g) {
  DType t = stat_type(g.dtype_of(1));
  bool train = g.flag(7);
  Tensor dy = g.in(0).to(t), x = g.in(1).to(t), weight = g.in(2);
  int64_t n = x.dim(), channels = x.size(1);
  auto dims = all_but_channels(n), shape = channel_shape(n, channels);
  Tensor mean = g.in(train ? 5 : 3).to(t).view(shape);
  Tensor rstd = train ? g.in(6).to(t).view(shape) : reciprocal(sqrt(g.in(4).to(t).view(shape) + g.number(8)));
  Tensor w = weight.defined() ? weight.to(t).view(shape) : Tensor(), xh = (x - mean) * rstd, gw = w.defined() ? dy * w : dy;
  auto centred = [&](const Tensor& v) { return train ? v - v.mean(dims, true) - xh * (v * xh).mean(dims, true) : v; };
  auto given = [&](int j, bool channel_wise) {
    if (!g.dy(j).defined()) return Tensor();
    return channel_wise ? g.dy(j).to(t).view(shape) : g.dy(j).to(t);
  };
  Tensor a = given(0, false), b = given(1, true), c = given(2, true), pa = a.defined() ? rstd * centred(a) : Tensor();
  auto plus = [](const Tensor& p, const Tensor& q) { return p.defined() ? p + q : q; };
  return grads(
      G(0) {
        Tensor r = a.defined() && w.defined() ? pa * w : pa;
        if (b.defined()) r = plus(r, xh * b);
        if (c.defined()) r = plus(r, c.expand(dy.sizes()));
        return r;
      },
      G(1) {
        Tensor r = b.defined() ? rstd * centred(dy * b) : Tensor();
        if (a.defined() && train) {
          Tensor inside = a * (gw * xh).mean(dims, true) + gw * (a * xh).mean(dims, true);
          r = plus(r, -(rstd * rstd) * (centred(inside) + xh * (a * centred(gw)).mean(dims, true)));
        }
        return r;
      },
      G(2) { return a.defined() ? (dy * pa).sum(dims) : Tensor(); });
}

constexpr OpDef table[] = {
OP("native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float eps) -> (Tensor, Tensor, Tensor)",
  .autocast = Autocast::Widest,
  .types = any_types, .infer = infer_group_norm, .kernels = {{Cpu, k_group_norm}},
  .save = {in(0), in(1), out(1), out(2)}, .vjp = vjp_group_norm,
  .shard = {"norm-group"}, .doc = "Normalises each sample's groups of channels; also mean and rstd [N, group].",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { s(s.t({2, 4, 3}), s.t({4}), s.t({4}), 2, 4, 3, 2, 1e-5); s(s.t({2, 3, 2, 2}), std::nullopt, std::nullopt, 2, 3, 4, 1, 1e-3); } }),
OP("native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, SymInt N, SymInt C, SymInt HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
  .types = any_types, .infer = infer_group_norm_backward, .kernels = {{Cpu, k_group_norm_backward}},
  .non_differentiable = true, .shard = {"norm-group"}, .doc = "Gradients of native_group_norm in input, weight and bias, as the mask asks.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { DType t = stat_type(s.dtype()); s(s.t({2, 4, 3}), s.t({2, 4, 3}), s.make({2, 2}, {}, t), s.make({2, 2}, {}, t), s.t({4}), 2, 4, 3, 2, std::vector<bool>{true, true, true}); } }),
OP("group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool cudnn_enabled=True) -> Tensor",
  .autocast = Autocast::Widest,
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      const Tensor& x = a.tensor(0);
      VESTA_CHECK(x.dim() >= 2, a.name(), ": expected an input with at least 2 dims, got ", x.dim());
      int64_t inner = 1;
      for (int64_t d = 2; d < x.dim(); ++d) inner *= x.size(d);
      return std::get<0>(native_group_norm(x, a.tensor(2), a.tensor(3), x.size(0), x.size(1), inner, a.integer(1), a.number(4))); },
  .shard = {"norm-group"}, .doc = "Group norm: statistics per sample and group of channels.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({2, 4, 3}), 2, s.t({4}), s.t({4})); }),
OP("native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
  .autocast = Autocast::Widest,
  .types = any_types, .infer = infer_batch_norm, .kernels = {{Cpu, k_batch_norm}},
  .save = {in(0), in(1), in(3), in(4), out(1), out(2)}, .vjp = vjp_batch_norm, .non_diff_outputs = 6,
  .shard = {"norm-batch"}, .doc = "Batch norm over all dims but 1. Training uses the batch's statistics and updates the running ones in place; also gives mean and rstd (empty in evaluation).",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { s(s.t({4, 3, 2}), s.t({3}), s.t({3}), std::nullopt, std::nullopt, true, 0.1, 1e-5); if (s.dtype() != kDouble) s(s.t({4, 3}), std::nullopt, std::nullopt, s.make({3}, {}, kFloat), s.make({3}, range(0.5, 2), kFloat), false, 0.1, 1e-5); } }),
OP("native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
  .types = any_types, .infer = infer_batch_norm_backward, .kernels = {{Cpu, k_batch_norm_backward}},
  .save = {in(0), in(1), in(2), in(3), in(4), in(5), in(6)}, .vjp = vjp_batch_norm_backward,
  .shard = {"norm-batch"}, .doc = "Gradients of native_batch_norm in input, weight and bias, as the mask asks.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype()) && s.dtype() != kDouble) { DType t = stat_type(s.dtype()); s(s.t({4, 3, 2}), s.t({4, 3, 2}), s.t({3}), std::nullopt, std::nullopt, s.make({3}, {}, t), s.make({3}, range(0.5, 2), t), true, 1e-5, std::vector<bool>{true, true, true}); } }),
OP("batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor",
  .autocast = Autocast::Widest,
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      if (a.tensor(0).dim() < 2 && a.tensor(0).numel() == 0) return a.tensor(0).clone();
      return std::get<0>(native_batch_norm(a.tensor(0), a.tensor(1), a.tensor(2), a.tensor(3), a.tensor(4), a.flag(5), a.number(6), a.number(7))); },
  .shard = {"norm-batch"}, .doc = "Batch norm over all dims but 1.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({4, 3, 2}), s.t({3}), s.t({3}), std::nullopt, std::nullopt, true, 0.1, 1e-5, false); }),
OP("instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor",
  .autocast = Autocast::Widest,
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      const Tensor& x = a.tensor(0);
      VESTA_CHECK(x.dim() >= 2, a.name(), ": expected an input with at least 2 dims, got ", x.dim());
      VESTA_CHECK(a.flag(5) || (a.has(3) && a.has(4)), a.name(), ": expected running statistics where use_input_stats is false");
      int64_t n = x.size(0), c = x.size(1);
      // Samples become channels of a batch of one.
      auto repeat = [&](const Tensor& t) { return t.defined() ? t.unsqueeze(0).expand({n, c}).reshape({n * c}) : Tensor(); };
      std::vector<int64_t> sizes = x.sizes().vec();
      sizes[0] = 1;
      sizes[1] = n * c;
      Tensor mean = a.has(3) ? repeat(a.tensor(3)).clone() : Tensor(), var = a.has(4) ? repeat(a.tensor(4)).clone() : Tensor();
      Tensor y = std::get<0>(native_batch_norm(x.reshape(sizes), repeat(a.tensor(1)), repeat(a.tensor(2)), mean, var, a.flag(5), a.number(6), a.number(7)));
      if (a.flag(5)) {
        if (a.has(3)) Tensor(a.tensor(3)).copy_(vesta::mean(mean.view({n, c}), {0}));
        if (a.has(4)) Tensor(a.tensor(4)).copy_(vesta::mean(var.view({n, c}), {0}));
      }
      return y.view(x.sizes()); },
  .shard = {"norm-batch"}, .doc = "Batch norm of every sample on its own; running statistics average over the samples.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({2, 3, 4}), s.t({3}), s.t({3}), std::nullopt, std::nullopt, true, 0.1, 1e-5, false); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(norm_channels, table)
