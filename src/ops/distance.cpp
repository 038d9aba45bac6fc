// Distances between all pairs of rows: cdist of two matrices, pdist of one. Euclidean distances of many long
// rows go through a matrix product, as in PyTorch; it loses digits where rows are nearly equal, and compute_mode = 2
// avoids it.
#include <cmath>
#include <limits>

#include "kernels/cpu/distance.h"
#include "ops/infer.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

constexpr TypeRule distance_types{types::bit(kFloat32) | types::bit(kFloat64), Promote::Same};
constexpr int64_t kProductRows = 25;  // more rows than this on a side: the gradient is a matrix product
constexpr int64_t kDirectDim = 128;   // rows up to this length: the sum of squared differences is as fast as the product

void check_p(const Args& a, double p) { VESTA_CHECK(p >= 0, a.name(), ": expected p >= 0, got ", p); }

// ---- cdist ----
// Broadcast leading dims of arguments i and j, both with at least 2 dims and equal last ones.
SymDims batch_sizes(const InferCtx& c, int i, int j) {
  VESTA_CHECK(c.dim(i) >= 2 && c.dim(j) >= 2, c.name(), ": expected two tensors with at least 2 dims, got ", c.dim(i), " and ", c.dim(j));
  auto x = c.sizes(i), y = c.sizes(j);
  VESTA_CHECK(x.back() == y.back(), c.name(), ": expected rows of one length, got ", x.back().str(), " and ", y.back().str());
  auto b = broadcast_sizes(c, x.slice(0, x.size() - 2), y.slice(0, y.size() - 2));
  return SymDims(b.begin(), b.end());
}
void infer_cdist(InferCtx& c) {
  check_p(c, c.number(2));
  VESTA_CHECK(!c.has(3) || (c.integer(3) >= 0 && c.integer(3) <= 2), c.name(), ": expected a compute_mode of 0, 1 or 2, got ", c.integer(3, 0));
  SymDims s = batch_sizes(c, 0, 1);
  s.push_back(c.sizes(0)[size_t(c.dim(0) - 2)]);
  s.push_back(c.sizes(1)[size_t(c.dim(1) - 2)]);
  c.out(0, s, c.dtype_of(0), c.tensor(0).device());
}
// The rows of x, its leading dims expanded to those of a tensor with these sizes.
Tensor rows_of(const Tensor& x, IntArrayRef like) {
  std::vector<int64_t> s(like.begin(), like.end() - 2);
  s.push_back(x.size(-2));
  s.push_back(x.size(-1));
  return x.expand(s).contiguous();
}
int64_t product(IntArrayRef s, size_t n) {
  int64_t r = 1;
  for (size_t d = 0; d < n; ++d) r *= s[d];
  return r;
}
void k_cdist(const KernelCtx& k) {
  IntArrayRef s = k.out().sizes();
  Tensor x = rows_of(k.tensor(0), s), y = rows_of(k.tensor(1), s);
  cpu::cdist(cpu::elem_of(x.dtype()), x.data_ptr(), y.data_ptr(), k.out().data_ptr(), product(s, s.size() - 2), x.size(-2), y.size(-2), x.size(-1), k.number(2));
}
void infer_cdist_backward(InferCtx& c) {
  check_p(c, c.number(3));
  SymDims s = batch_sizes(c, 1, 2), pairs = s;
  SymInt rows = c.sizes(1)[size_t(c.dim(1) - 2)];
  pairs.push_back(rows);
  pairs.push_back(c.sizes(2)[size_t(c.dim(2) - 2)]);
  VESTA_CHECK(c.sizes(0) == ArrayRef<SymInt>(pairs) && c.sizes(4) == ArrayRef<SymInt>(pairs), c.name(), ": grad and cdist must have the distances' sizes");
  s.push_back(rows);
  s.push_back(c.sizes(1).back());
  c.out(0, s, c.dtype_of(0), c.tensor(0).device());
}
void k_cdist_backward(const KernelCtx& k) {
  IntArrayRef s = k.out().sizes();
  Tensor x = rows_of(k.tensor(1), s), y = rows_of(k.tensor(2), s), dy = k.tensor(0).contiguous(), dist = k.tensor(4).contiguous();
  cpu::cdist_backward(cpu::elem_of(x.dtype()), dy.data_ptr(), x.data_ptr(), y.data_ptr(), dist.data_ptr(), k.out().data_ptr(), product(s, s.size() - 2), x.size(-2), y.size(-2),
                      x.size(-1), k.number(3));
}

// The slope s(d, r) = sign(d) |d|^(p-1) / r^(p-1) of a distance r in one element's difference d, and its derivatives;
// 0 where the kernels take 0. `r` broadcasts to `d`. Undefined derivatives are zero everywhere.
struct Slope {
  Tensor value, by_difference, by_distance;
};
Slope slope_of(const Tensor& d, const Tensor& r, double p) {
  if (p == 0) return {zeros_like(d), {}, {}};
  if (p == 1) return {d.sign(), {}, {}};
  if (p == std::numeric_limits<double>::infinity()) return {where(d.abs() == r, d.sign(), zeros({}, d.options())), {}, {}};
  Tensor zero = zeros({}, d.options()), one = ones({}, d.options());
  Tensor length = where(r == 0, one, r);
  if (p == 2) {
    auto masked = [&](const Tensor& t) { return where(r == 0, zero, t); };
    return {masked(d / length), masked((one / length).expand(d.sizes())), masked(-d / (length * length))};
  }
  Tensor size = where(d == 0, one, d.abs()), sign = d.sign(), none = (d == 0).logical_or(r == 0);
  auto masked = [&](const Tensor& t) { return where(none, zero, t); };
  Tensor value = sign * (size / length).pow(p - 1);
  return {masked(value), masked((p - 1) * size.pow(p - 2) * length.pow(1 - p)), masked((1 - p) * value / length)};
}

// ---- pdist ----
SymInt pairs_of(const InferCtx& c, SymInt n) {
  VESTA_CHECK(n < (int64_t(1) << 31), c.name(), ": too many rows: ", n.str());
  return n == 0 ? SymInt(0) : n * (n - 1) / 2;
}
void infer_pdist(InferCtx& c) {
  check_p(c, c.number(1));
  VESTA_CHECK(c.dim(0) == 2, c.name(), ": expected self with 2 dims, got ", c.dim(0));
  SymInt n = c.sizes(0)[0];
  c.out(0, {pairs_of(c, n)}, c.dtype_of(0), c.tensor(0).device());
}
void k_pdist(const KernelCtx& k) {
  Tensor x = k.tensor(0).contiguous();
  cpu::pdist(cpu::elem_of(x.dtype()), x.data_ptr(), k.out().data_ptr(), x.size(0), x.size(1), k.number(1));
}
void infer_pdist_backward(InferCtx& c) {
  check_p(c, c.number(2));
  VESTA_CHECK(c.dim(1) == 2, c.name(), ": expected self with 2 dims, got ", c.dim(1));
  SymInt pairs = pairs_of(c, c.sizes(1)[0]);
  for (int i : {0, 3}) VESTA_CHECK(c.dim(i) == 1 && c.sizes(i)[0] == pairs, c.name(), ": grad and pdist must have an element for each pair of rows");
  c.out(0, c.sizes(1), c.dtype_of(1), c.tensor(1).device());
}
void k_pdist_backward(const KernelCtx& k) {
  Tensor x = k.tensor(1).contiguous(), dy = k.tensor(0).contiguous(), dist = k.tensor(3).contiguous();
  cpu::pdist_backward(cpu::elem_of(x.dtype()), dy.data_ptr(), x.data_ptr(), dist.data_ptr(), k.out().data_ptr(), x.size(0), x.size(1), k.number(2));
}
int vjp_pdist_backward(const Grad& g) {
  Tensor x = g.in(1), dy = g.in(0).unsqueeze(1), gg = g.dy();
  int64_t n = x.size(0);
  Tensor at = triu_indices(n, n, 1), i = at.select(0, 0), j = at.select(0, 1);
  Tensor both = gg.index_select(0, i) - gg.index_select(0, j);
  Slope s = slope_of(x.index_select(0, i) - x.index_select(0, j), g.in(3).unsqueeze(1), g.number(2));
  return grads(
      G(0) { return (both * s.value).sum({1}); },
      G(1) {
        if (!s.by_difference.defined()) return zeros_like(x);
        Tensor t = both * dy * s.by_difference;
        return zeros_like(x).index_add(0, i, t).index_add(0, j, -t); },
      G(3) { return s.by_distance.defined() ? (both * dy * s.by_distance).sum({1}) : zeros_like(g.in(3)); });
}

constexpr OpDef table[] = {
OP("cdist(Tensor x1, Tensor x2, float p=2, int? compute_mode=None) -> Tensor",
  .autocast = Autocast::Float32,
  .types = distance_types,
  .decompose = [](const Args& a) -> Results {
      const Tensor &x = a.tensor(0), &y = a.tensor(1);
      VESTA_CHECK(x.dim() >= 2 && y.dim() >= 2, a.name(), ": expected two tensors with at least 2 dims, got ", x.dim(), " and ", y.dim());
      VESTA_CHECK(x.size(-1) == y.size(-1), a.name(), ": expected rows of one length, got ", x.size(-1), " and ", y.size(-1));
      check_p(a, a.number(2));
      int64_t mode = a.integer(3, 0);
      VESTA_CHECK(mode >= 0 && mode <= 2, a.name(), ": expected a compute_mode of 0, 1 or 2, got ", mode);
      bool empty = x.numel() == 0 || y.numel() == 0, many = x.size(-2) > kProductRows || y.size(-2) > kProductRows;
      if (a.number(2) == 2 && !empty && (mode == 1 || (mode == 0 && many))) return _euclidean_dist(x, y);
      return _cdist_forward(x, y, a.number(2), a.has(3) ? std::optional<int64_t>(mode) : std::nullopt); },
  .shard = {"batch"}, .doc = "p-norm distances of all rows of x1 and x2; compute_mode 1 takes the matrix product for p = 2, 2 never, 0 from 26 rows on.",
  .samples = [](SampleGen& s) { for (double p : {0.0, 0.5, 1.0, 2.0, 3.0}) s(s.t({2, 3}), s.t({3, 3}), p); s(s.t({2, 1, 2, 2}), s.t({3, 2}), 2.0, 1); s(s.t({0, 3}), s.t({2, 3})); s(s.t({2, 0}), s.t({3, 0})); }),
OP("_euclidean_dist(Tensor x1, Tensor x2) -> Tensor",
  .forms = Out, .types = distance_types,
  .decompose = [](const Args& a) -> Results {
      const Tensor &x = a.tensor(0), &y = a.tensor(1);
      VESTA_CHECK(x.dim() >= 2 && y.dim() >= 2, a.name(), ": expected two tensors with at least 2 dims, got ", x.dim(), " and ", y.dim());
      if (x.size(-1) <= kDirectDim) return _cdist_forward(x, y, 2, std::nullopt);
      // |x|^2 - 2 x y + |y|^2 as one product.
      Tensor xx = x.pow(2).sum({-1}, true), yy = y.pow(2).sum({-1}, true);
      Tensor left = cat({x * -2, xx, ones_like(xx)}, -1), right = cat({y, ones_like(yy), yy}, -1);
      return matmul(left, right.transpose(-2, -1)).clamp_min(0).sqrt(); },
  .save = {in(0), in(1), out(0)},
  .vjp = [](const Grad& g) {
      Tensor x = g.in(0), y = g.in(1), r = g.out(0), zero = zeros({}, r.options());
      Tensor ratio = where(r == 0, zero, g.dy() / where(r == 0, zero + 1, r));
      return grads(G(0) { return x * ratio.sum({-1}, true) - matmul(ratio, y); },
                   G(1) { return y * ratio.sum({-2}, false).unsqueeze(-1) - matmul(ratio.transpose(-2, -1), x); }); },
  .shard = {"batch"}, .tol = {2e-3, 2e-3}, .doc = "Euclidean distances of all rows; of long ones by a matrix product, as are all gradients.",
  .samples = [](SampleGen& s) { s(s.t({2, 3}), s.t({3, 3}, range(4, 6))); s(s.t({2, 1, 2}), s.t({2, 2, 2}, range(4, 6))); }),
OP("_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor",
  .forms = Out, .types = distance_types, .infer = infer_cdist, .kernels = {{Cpu, k_cdist}},
  .save = {in(0), in(1), out(0)},
  .vjp = [](const Grad& g) {
      Tensor r = g.out(0), dy = g.dy();
      return grads(G(0) { return _cdist_backward(dy, g.in(0), g.in(1), g.number(2), r); },
                   G(1) { return _cdist_backward(dy.transpose(-2, -1), g.in(1), g.in(0), g.number(2), r.transpose(-2, -1)); }); },
  .shard = {"batch"}, .doc = "The kernel of cdist; compute_mode is only checked.",
  .samples = [](SampleGen& s) { for (double p : {0.0, 0.5, 1.0, 1.5, 2.0, 3.0}) s(s.t({2, 3}), s.t({3, 3}), p, std::nullopt); s(s.t({2, 1, 2, 2}), s.t({3, 2}), std::numeric_limits<double>::infinity(), 2); s(s.t({0, 2, 3}), s.t({2, 3}), 2.0, 0); }),
OP("_cdist_backward(Tensor grad, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor",
  .forms = Out, .types = distance_types, .infer = infer_cdist_backward, .kernels = {{Cpu, k_cdist_backward}},
  .save = {in(0), in(1), in(2), in(4)},
  .vjp = [](const Grad& g) {
      Tensor x = g.in(1), y = g.in(2), dy = g.in(0).unsqueeze(-1), gg = g.dy().unsqueeze(-2);
      Slope s = slope_of(x.unsqueeze(-2) - y.unsqueeze(-3), g.in(4).unsqueeze(-1), g.number(3));
      Tensor t = s.by_difference.defined() ? gg * dy * s.by_difference : Tensor();
      return grads(G(0) { return (gg * s.value).sum({-1}); },
                   G(1) { return t.defined() ? t.sum({-2}) : zeros_like(x); },
                   G(2) { return t.defined() ? -t.sum({-3}) : zeros_like(y); },
                   G(4) { return s.by_distance.defined() ? (gg * dy * s.by_distance).sum({-1}) : zeros_like(g.in(4)); }); },
  .shard = {"batch"}, .doc = "Gradient of _cdist_forward in x1.",
  .samples = [](SampleGen& s) { for (double p : {1.0, 1.5, 2.0, 3.0}) s(s.t({2, 2}), s.t({2, 3}), s.t({2, 3}), p, s.t({2, 2}, range(1, 4))); }),
OP("pdist(Tensor self, float p=2) -> Tensor",
  .autocast = Autocast::Float32,
  .types = distance_types,
  .decompose = [](const Args& a) -> Results {
      VESTA_CHECK(a.tensor(0).dim() == 2, a.name(), ": expected self with 2 dims, got ", a.tensor(0).dim());
      return _pdist_forward(a.tensor(0), a.number(1)); },
  .shard = {"replicate"}, .doc = "p-norm distances of each pair of rows i < j.",
  .samples = [](SampleGen& s) { for (double p : {0.5, 1.0, 2.0, 3.0}) s(s.t({3, 3}), p); s(s.t({4, 0})); s(s.t({1, 3})); s(s.t({0, 3})); }),
OP("_pdist_forward(Tensor self, float p=2) -> Tensor",
  .forms = Out, .types = distance_types, .infer = infer_pdist, .kernels = {{Cpu, k_pdist}},
  .save = {in(0), out(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return _pdist_backward(g.dy(), g.in(0), g.number(1), g.out(0)); }); },
  .shard = {"replicate"}, .doc = "The kernel of pdist.",
  .samples = [](SampleGen& s) { for (double p : {0.0, 0.5, 1.0, 2.0, 3.0, std::numeric_limits<double>::infinity()}) s(s.t({3, 3}), p); s(s.t({4, 0})); }),
OP("_pdist_backward(Tensor grad, Tensor self, float p, Tensor pdist) -> Tensor",
  .forms = Out, .types = distance_types, .infer = infer_pdist_backward, .kernels = {{Cpu, k_pdist_backward}},
  .save = {in(0), in(1), in(3)}, .vjp = vjp_pdist_backward,
  .shard = {"replicate"}, .doc = "Gradient of _pdist_forward.",
  .samples = [](SampleGen& s) { for (double p : {1.0, 1.5, 2.0, 3.0}) s(s.t({3}), s.t({3, 3}), p, s.t({3}, range(1, 4))); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(distance, table)
