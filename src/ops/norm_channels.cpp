// Norms with a scale per channel: group norm (statistics per sample and group of channels), batch norm (per channel
// over the batch) and instance norm. Inputs are (n, channels, inner); statistics accumulate in double and are kept in
// float32 for half types. With create_graph gradients are composed of public operators.
#include <cmath>

#include "base/thread_pool.h"
#include "core/registry.h"
#include "core/storage.h"
#include "kernels/cpu/copy.h"
#include "ops/infer.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

DType stat_type(DType t) { return t == kDouble ? kDouble : kFloat; }
struct Shape {
  int64_t n, c, inner;
  int64_t at(int64_t i, int64_t ch) const { return (i * c + ch) * inner; }
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
int64_t grain(int64_t work) { return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, work)); }

// Mean and rstd of the elements that walk(add) visits, in two passes.
template <class A, class Walk>
void statistics(Walk walk, int64_t count, double eps, A* mean, A* rstd, double* variance = nullptr) {
  double sum = 0, square = 0;
  walk([&](double v) { sum += v; });
  double m = sum / double(count);
  walk([&](double v) { square += (v - m) * (v - m); });
  *mean = A(m);
  *rstd = A(1 / std::sqrt(square / double(count) + eps));
  if (variance) *variance = square / double(count);
}

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
  VESTA_CHECK(numel_of(c, 0) == SymInt(n * ch * inner), c.name(), ": the input does not have N * C * HxW elements");
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
  int64_t groups = k.integer(6), per = s.c / groups, count = per * s.inner;
  double eps = k.number(7);
  with_type(k, x.dtype(), [&]<class S, class A>(S, A) {
    const S* in = x.data_ptr<S>();
    S* out = k.out(0).data_ptr<S>();
    A *mean = k.out(1).data_ptr<A>(), *rstd = k.out(2).data_ptr<A>();
    const A *weight = w.get<A>(), *bias = b.get<A>();
    parallel_for(0, s.n * groups, grain(count), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const S* row = in + r * count;
        statistics<A>([&](auto add) { for (int64_t i = 0; i < count; ++i) add(double(A(row[i]))); }, count, eps, mean + r, rstd + r);
        for (int64_t c = 0; c < per; ++c) {
          int64_t ch = r % groups * per + c;
          A scale = rstd[r] * (weight ? weight[ch] : A(1)), shift = bias ? bias[ch] : A(0);
          for (int64_t i = c * s.inner; i < (c + 1) * s.inner; ++i) out[r * count + i] = S((A(row[i]) - mean[r]) * scale + shift);
        }
      }
    });
  });
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
template <class A>
void store_channel(const Tensor& out, const std::vector<double>& v) {
  if (!out.defined()) return;
  Tensor t = empty_cpu(out.sizes(), kDouble);
  std::copy(v.begin(), v.end(), t.data_ptr<double>());
  cpu::copy_elements(out, t);
}
void k_group_norm_backward(const KernelCtx& k) {
  Tensor x = k.tensor(1).contiguous(), dy = k.tensor(0).to(x.dtype()).contiguous();
  DType acc = stat_type(x.dtype());
  Tensor mean_t = k.tensor(2).to(acc).contiguous(), rstd_t = k.tensor(3).to(acc).contiguous();
  Channel w = channel(k.tensor(4), acc);
  Shape s{k.integer(5), k.integer(6), k.integer(7)};
  int64_t groups = k.integer(8), per = s.c / groups, count = per * s.inner;
  // Per sample and channel: sums of dy * xhat and of dy.
  std::vector<double> sum_w(size_t(s.n * s.c)), sum_b(size_t(s.n * s.c));
  with_type(k, x.dtype(), [&]<class S, class A>(S, A) {
    const S *in = x.data_ptr<S>(), *grad = dy.data_ptr<S>();
    S* dx = k.out(0).defined() ? k.out(0).data_ptr<S>() : nullptr;
    const A *mean = mean_t.data_ptr<A>(), *rstd = rstd_t.data_ptr<A>(), *weight = w.get<A>();
    parallel_for(0, s.n * groups, grain(count), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        double m1 = 0, m2 = 0;
        for (int64_t c = 0; c < per; ++c) {
          double sw = 0, sb = 0;
          for (int64_t i = r * count + c * s.inner; i < r * count + (c + 1) * s.inner; ++i) {
            double d = double(A(grad[i]));
            sw += d * double((A(in[i]) - mean[r]) * rstd[r]);
            sb += d;
          }
          int64_t ch = r % groups * per + c;
          sum_w[size_t(r / groups * s.c + ch)] = sw;
          sum_b[size_t(r / groups * s.c + ch)] = sb;
          double scale = weight ? double(weight[ch]) : 1;
          m1 += scale * sb, m2 += scale * sw;
        }
        if (!dx) continue;
        A g1 = A(m1 / double(count)), g2 = A(m2 / double(count));
        for (int64_t c = 0; c < per; ++c) {
          A scale = weight ? weight[r % groups * per + c] : A(1);
          for (int64_t i = r * count + c * s.inner; i < r * count + (c + 1) * s.inner; ++i)
            dx[i] = S(rstd[r] * (A(grad[i]) * scale - g1 - (A(in[i]) - mean[r]) * rstd[r] * g2));
        }
      }
    });
    std::vector<double> tw(size_t(s.c), 0), tb(size_t(s.c), 0);
    for (int64_t n = 0; n < s.n; ++n)
      for (int64_t c = 0; c < s.c; ++c) tw[size_t(c)] += sum_w[size_t(n * s.c + c)], tb[size_t(c)] += sum_b[size_t(n * s.c + c)];
    store_channel<A>(k.out(1), tw);
    store_channel<A>(k.out(2), tb);
  });
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
void infer_batch_norm(InferCtx& c) {
  check_input(c, 0);
  SymInt ch = c.sizes(0)[1];
  check_channel(c, 1, ch, "a weight");
  check_channel(c, 2, ch, "a bias");
  check_channel(c, 3, ch, "a running_mean");
  check_channel(c, 4, ch, "a running_var");
  bool train = c.flag(5);
  VESTA_CHECK(train || (c.has(3) && c.has(4)), c.name(), ": evaluation needs running_mean and running_var");
  c.out(0, c.sizes(0), c.dtype_of(0), c.tensor(0).device());
  SymInt stats[] = {train ? ch : SymInt(0)};
  for (int j = 1; j < 3; ++j) c.out(j, stats, stat_type(c.dtype_of(0)), c.tensor(0).device());
}
void k_batch_norm(const KernelCtx& k) {
  Tensor x = k.tensor(0).contiguous();
  DType acc = stat_type(x.dtype());
  Channel w = channel(k.tensor(1), acc), b = channel(k.tensor(2), acc);
  Shape s = shape_of(x);
  bool train = k.flag(5);
  double momentum = k.number(6), eps = k.number(7);
  int64_t count = s.n * s.inner;
  Tensor mean_t = train ? k.out(1) : k.tensor(3).to(acc).contiguous(), rstd_t = train ? k.out(2) : empty_cpu({s.c}, acc);
  Tensor var_in = train ? Tensor() : k.tensor(4).to(acc).contiguous();
  std::vector<double> variance(static_cast<size_t>(s.c));
  with_type(k, x.dtype(), [&]<class S, class A>(S, A) {
    const S* in = x.data_ptr<S>();
    S* out = k.out(0).data_ptr<S>();
    A *mean = mean_t.data_ptr<A>(), *rstd = rstd_t.data_ptr<A>();
    const A *weight = w.get<A>(), *bias = b.get<A>();
    parallel_for(0, s.c, grain(count), [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        if (train) {
          auto walk = [&](auto add) {
            for (int64_t n = 0; n < s.n; ++n)
              for (int64_t i = s.at(n, c); i < s.at(n, c) + s.inner; ++i) add(double(A(in[i])));
          };
          statistics<A>(walk, count, eps, mean + c, rstd + c, &variance[size_t(c)]);
        } else {
          rstd[c] = A(1 / std::sqrt(double(var_in.data_ptr<A>()[c]) + eps));
        }
        A scale = rstd[c] * (weight ? weight[c] : A(1)), shift = bias ? bias[c] : A(0);
        for (int64_t n = 0; n < s.n; ++n)
          for (int64_t i = s.at(n, c); i < s.at(n, c) + s.inner; ++i) out[i] = S((A(in[i]) - mean[c]) * scale + shift);
      }
    });
    if (!train) return;
    // Running statistics: exponential average of the mean and of the unbiased variance.
    auto update = [&](const Tensor& running, auto value) {
      if (!running.defined()) return;
      Tensor next = running.to(kDouble).contiguous().clone();
      double* p = next.data_ptr<double>();
      for (int64_t c = 0; c < s.c; ++c) p[c] = p[c] * (1 - momentum) + momentum * value(c);
      cpu::copy_elements(running, next);
      bump_version(running.impl(), k.op().id);
    };
    update(k.tensor(3), [&](int64_t c) { return double(mean[c]); });
    update(k.tensor(4), [&](int64_t c) { return variance[size_t(c)] * double(count) / double(count - 1); });
  });
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
  mask[0] ? c.out(0, c.sizes(1), c.dtype_of(1), c.tensor(0).device()) : c.out_none(0);
  for (int j = 1; j < 3; ++j) mask[j] ? c.out(j, {c.sizes(1)[1]}, w, c.tensor(0).device()) : c.out_none(j);
}
void k_batch_norm_backward(const KernelCtx& k) {
  Tensor x = k.tensor(1).contiguous(), dy = k.tensor(0).to(x.dtype()).contiguous();
  DType acc = stat_type(x.dtype());
  Channel w = channel(k.tensor(2), acc);
  bool train = k.flag(7);
  VESTA_CHECK(train ? k.has(5) && k.has(6) : k.has(3) && k.has(4), k.name(), ": the statistics are missing");
  Tensor mean_t = k.tensor(train ? 5 : 3).to(acc).contiguous(), second = k.tensor(train ? 6 : 4).to(acc).contiguous();
  Shape s = shape_of(x);
  int64_t count = s.n * s.inner;
  double eps = k.number(8);
  std::vector<double> sum_w(static_cast<size_t>(s.c)), sum_b(static_cast<size_t>(s.c));
  with_type(k, x.dtype(), [&]<class S, class A>(S, A) {
    const S *in = x.data_ptr<S>(), *grad = dy.data_ptr<S>();
    S* dx = k.out(0).defined() ? k.out(0).data_ptr<S>() : nullptr;
    const A *mean = mean_t.data_ptr<A>(), *stat = second.data_ptr<A>(), *weight = w.get<A>();
    parallel_for(0, s.c, grain(count), [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        A rstd = train ? stat[c] : A(1 / std::sqrt(double(stat[c]) + eps));
        double sw = 0, sb = 0;
        for (int64_t n = 0; n < s.n; ++n)
          for (int64_t i = s.at(n, c); i < s.at(n, c) + s.inner; ++i) {
            double d = double(A(grad[i]));
            sw += d * double((A(in[i]) - mean[c]) * rstd);
            sb += d;
          }
        sum_w[size_t(c)] = sw, sum_b[size_t(c)] = sb;
        if (!dx) continue;
        A scale = rstd * (weight ? weight[c] : A(1)), g1 = train ? A(sb / double(count)) : A(0), g2 = train ? A(sw / double(count)) : A(0);
        for (int64_t n = 0; n < s.n; ++n)
          for (int64_t i = s.at(n, c); i < s.at(n, c) + s.inner; ++i)
            dx[i] = S(scale * (A(grad[i]) - g1 - (A(in[i]) - mean[c]) * rstd * g2));
      }
    });
    store_channel<A>(k.out(1), sum_w);
    store_channel<A>(k.out(2), sum_b);
  });
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
