// Losses made of one pointwise pass and a reduction (none = 0, mean = 1, sum = 2), and their backward rows.
// Class-index losses (nll, cross entropy, CTC) and distances are elsewhere.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/distance.h"
#include "ops/infer.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

constexpr TypeRule loss_types{types::kFloatMask, Promote::Types};
enum Reduction : int64_t { kNone = 0, kMean = 1, kSum = 2 };

void check_reduction(const Args& a, int64_t reduction) {
  VESTA_CHECK(reduction >= kNone && reduction <= kSum, a.name(), ": expected a reduction of 0 (none), 1 (mean) or 2 (sum), got ", reduction);
}
Tensor reduce(const Args& a, const Tensor& each, int64_t reduction) {
  check_reduction(a, reduction);
  return reduction == kMean ? each.mean() : reduction == kSum ? each.sum() : each;
}
// Factor of an element's gradient.
double share(int64_t reduction, const Tensor& x, const Tensor& y) {
  if (reduction != kMean) return 1;
  // Sizes of the broadcast: the mean runs over it.
  int64_t n = 1;
  auto p = x.sizes(), q = y.sizes();
  for (size_t d = 0, nd = std::max(p.size(), q.size()); d < nd; ++d) {
    int64_t a = d < nd - p.size() ? 1 : p[d - (nd - p.size())], b = d < nd - q.size() ? 1 : q[d - (nd - q.size())];
    n *= a == 1 ? b : a;
  }
  return 1.0 / double(n);
}
void check_floating(const Args& a, const Tensor& t) {
  VESTA_CHECK_AS(TypeError, is_floating_point(t.dtype()) || is_complex(t.dtype()), a.name(), ": does not take ", dtype_name(t.dtype()), " tensors");
}
void check_same_sizes(const Args& a, const Tensor& x, const Tensor& y) {
  VESTA_CHECK(x.sizes() == y.sizes(), a.name(), ": expected target of self's sizes");
}

// ---- cosine similarity: x1, x2, dim, eps ----
// Both with the broadcast sizes, and at least one dim.
std::pair<Tensor, Tensor> cosine_operands(const Args& a, Tensor x, Tensor y) {
  std::vector<int64_t> sizes;
  for (const SymInt& s : broadcast_sizes(a, InferCtx::sizes_of(x), InferCtx::sizes_of(y))) sizes.push_back(s.raw());
  if (sizes.empty()) sizes.push_back(1);
  return {x.expand(sizes), y.expand(sizes)};
}
void k_cosine_similarity(const KernelCtx& k) {
  auto [x, y] = cosine_operands(k, k.tensor(0), k.tensor(1));
  x = x.contiguous(), y = y.contiguous();
  int64_t at = wrap_dim(k, k.integer(2), x.dim()), sizes[3] = {1, 1, 1};
  for (int64_t d = 0; d < x.dim(); ++d) sizes[d < at ? 0 : d == at ? 1 : 2] *= x.size(d);
  cpu::cosine_similarity(cpu::elem_of(x.dtype()), x.data_ptr(), y.data_ptr(), k.out().data_ptr(), sizes[0], sizes[1], sizes[2], k.number(3));
}
// As upstream, the limit eps on the lengths has no gradient of its own: that of a length is x / |x|, and 0 for x = 0.
int vjp_cosine_similarity(const Grad& g) {
  DType t = g.out().dtype();
  bool half = t == kHalf || t == kBFloat16;  // their difference of two terms needs float32, also of the cosine
  if (half) t = kFloat;
  auto [x, y] = cosine_operands(g, g.in(0).to(t), g.in(1).to(t));
  int64_t d = wrap_dim(g, g.integer(2), x.dim());
  auto keep = [&](const Tensor& r) { return r.dim() == x.dim() ? r : r.unsqueeze(d); };
  Tensor dy = keep(g.dy()).to(t);
  Tensor nx = linalg_vector_norm(x, 2, IntArrayRef(d), true), ny = linalg_vector_norm(y, 2, IntArrayRef(d), true);
  Tensor lx = nx.clamp_min(g.number(3)), ly = ny.clamp_min(g.number(3)), both = dy / (lx * ly);
  Tensor cosine = half ? (x * y).sum({d}, true) / (lx * ly) : keep(g.out());
  auto gradient = [&](const Tensor& of, const Tensor& other, const Tensor& norm, const Tensor& limited) {
    Tensor zero = norm == 0;  // divided by 1, so that no second derivative meets an infinity
    return (other * both).addcmul(of, (dy * cosine / (limited * norm.masked_fill(zero, 1))).masked_fill(zero, 0), -1);
  };
  return grads(G(0) { return gradient(x, y, nx, lx); }, G(1) { return gradient(y, x, ny, ly); });
}

constexpr OpDef table[] = {
// ---- squared and absolute error ----
OP("mse_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = loss_types,
  .decompose = [](const Args& a) -> Results {
      check_floating(a, a.tensor(0));
      return reduce(a, _squared_error(a.tensor(0), a.tensor(1)), a.integer(2)); },
  .save = {in(0), in(1)},
  .vjp = [](const Grad& g) { return grads(G(0) { return mse_loss_backward(g.dy(), g.in(0), g.in(1), g.integer(2)); },
                                          G(1) { return mse_loss_backward(g.dy(), g.in(1), g.in(0), g.integer(2)); }); },
  .shard = {"loss-red"}, .doc = "(self - target)^2, reduced.",
  .samples = [](SampleGen& s) { for (int r : {0, 1, 2}) s(s.t({3, 4}), s.t({3, 4}), r); s(s.t({}), s.t({})); s(s.t({3, 4}), s.t({4})); }),
OP("_squared_error(Tensor self, Tensor target) -> Tensor",
  .types = loss_types,
  .scalar = SCALAR((x - y) * (x - y)),
  .save = {in(0), in(1)},
  .vjp = [](const Grad& g) { return grads(G(0) { return _mse_backward(g.dy(), g.in(0), g.in(1), 2.0); },
                                          G(1) { return _mse_backward(g.dy(), g.in(1), g.in(0), 2.0); }); },
  .shard = Shard::pointwise(), .doc = "(self - target)^2.",
  .samples = [](SampleGen& s) { s.binary(); }),
OP("mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor",
  .forms = Out, .types = loss_types,
  .decompose = [](const Args& a) -> Results {
      return _mse_backward(a.tensor(0), a.tensor(1), a.tensor(2), 2.0 * share(a.integer(3), a.tensor(1), a.tensor(2))); },
  .shard = {"loss-red"}, .doc = "Gradient of mse_loss.",
  .samples = [](SampleGen& s) { s(s.t({}), s.t({3, 4}), s.t({3, 4}), 1); s(s.t({3, 4}), s.t({3, 4}), s.t({3, 4}), 0); }),
OP("_mse_backward(Tensor grad_output, Tensor self, Tensor target, float scale) -> Tensor",
  .types = loss_types,
  .scalar = SCALAR(scale * (y - z) * x, scale),
  .save = {in(0), in(1), in(2)},
  .vjp = [](const Grad& g) { return grads(G(0) { return _mse_backward(g.dy(), g.in(1), g.in(2), g.number(3)); },
                                          G(1) { return g.dy() * g.in(0) * g.number(3); }, G(2) { return g.dy() * g.in(0) * -g.number(3); }); },
  .shard = Shard::pointwise(), .doc = "scale * (self - target) * grad_output.",
  .samples = [](SampleGen& s) { s(s.t({}), s.t({3, 4}), s.t({3, 4}), 0.5); }),
OP("l1_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor",
  .autocast = Autocast::Float32,
  .types = {types::kFloatMask | types::kComplexMask, Promote::Types},
  .decompose = [](const Args& a) -> Results { return reduce(a, (a.tensor(0) - a.tensor(1)).abs(), a.integer(2)); },
  .shard = {"loss-red"}, .doc = "|self - target|, reduced.",
  .samples = [](SampleGen& s) { for (int r : {0, 1, 2}) s(s.t({3, 4}), s.t({3, 4}), r); s(s.t({}), s.t({})); }),

// ---- smooth absolute error ----
OP("smooth_l1_loss(Tensor self, Tensor target, int reduction=Mean, float beta=1.0) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = loss_types,
  .decompose = [](const Args& a) -> Results {
      VESTA_CHECK(a.number(3) >= 0, "smooth_l1_loss: expected beta >= 0, got ", a.number(3));
      if (a.number(3) == 0) return l1_loss(a.tensor(0), a.tensor(1), a.integer(2));
      return reduce(a, _smooth_l1(a.tensor(0), a.tensor(1), a.number(3)), a.integer(2)); },
  .save = {in(0), in(1)},
  .vjp = [](const Grad& g) { return grads(G(0) { return smooth_l1_loss_backward(g.dy(), g.in(0), g.in(1), g.integer(2), g.number(3)); },
                                          G(1) { return smooth_l1_loss_backward(g.dy(), g.in(1), g.in(0), g.integer(2), g.number(3)); }); },
  .shard = {"loss-red"}, .doc = "0.5 d^2 / beta where |d| < beta, else |d| - beta / 2; d = self - target.",
  .samples = [](SampleGen& s) { for (int r : {0, 1, 2}) s(s.t({3, 4}), s.t({3, 4}), r); s(s.t({}), s.t({}), 1, 0.5); }),
OP("_smooth_l1(Tensor self, Tensor target, float beta) -> Tensor",
  .types = loss_types,
  .scalar = SCALAR(where_(abs_(x - y) < beta, T(0.5) * (x - y) * (x - y) / beta, abs_(x - y) - T(0.5) * beta), beta),
  .save = {in(0), in(1)},
  .vjp = [](const Grad& g) { return grads(G(0) { return _smooth_l1_backward(g.dy(), g.in(0), g.in(1), g.number(2), 1.0); },
                                          G(1) { return _smooth_l1_backward(g.dy(), g.in(1), g.in(0), g.number(2), 1.0); }); },
  .shard = Shard::pointwise(), .doc = "smooth_l1_loss of each element.",
  .samples = [](SampleGen& s) { s.binary({}, {}, 0.7); }),
OP("smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float beta) -> Tensor",
  .forms = Out, .types = loss_types,
  .decompose = [](const Args& a) -> Results {
      return _smooth_l1_backward(a.tensor(0), a.tensor(1), a.tensor(2), a.number(4), share(a.integer(3), a.tensor(1), a.tensor(2))); },
  .shard = {"loss-red"}, .doc = "Gradient of smooth_l1_loss.",
  .samples = [](SampleGen& s) { s(s.t({}), s.t({3, 4}), s.t({3, 4}), 1, 0.7); s(s.t({3, 4}), s.t({3, 4}), s.t({3, 4}), 0, 1.0); }),
OP("_smooth_l1_backward(Tensor grad_output, Tensor self, Tensor target, float beta, float scale) -> Tensor",
  .types = loss_types,
  .scalar = SCALAR(where_(abs_(y - z) < beta, scale * x * (y - z) / beta, scale * x * sign_(y - z)), beta, scale),
  .save = {in(0), in(1), in(2)},
  .vjp = [](const Grad& g) {
      double beta = g.number(3), scale = g.number(4);
      Tensor d = g.in(1) - g.in(2);
      Tensor second = g.needs(1) || g.needs(2) ? where(d.abs() < beta, g.dy() * g.in(0) * (scale / beta), zeros({}, g.dy().options())) : Tensor();
      return grads(G(0) { return _smooth_l1_backward(g.dy(), g.in(1), g.in(2), beta, scale); }, G(1) { return second; }, G(2) { return -second; }); },
  .shard = Shard::pointwise(), .doc = "Gradient of _smooth_l1, scaled.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4}), s.t({3, 4}), 0.7, 0.5); }),
OP("huber_loss(Tensor self, Tensor target, int reduction=Mean, float delta=1.0) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = loss_types,
  .decompose = [](const Args& a) -> Results {
      VESTA_CHECK(a.number(3) > 0, "huber_loss: expected delta > 0, got ", a.number(3));
      return reduce(a, _smooth_l1(a.tensor(0), a.tensor(1), a.number(3)) * a.number(3), a.integer(2)); },
  .save = {in(0), in(1)},
  .vjp = [](const Grad& g) { return grads(G(0) { return huber_loss_backward(g.dy(), g.in(0), g.in(1), g.integer(2), g.number(3)); },
                                          G(1) { return huber_loss_backward(g.dy(), g.in(1), g.in(0), g.integer(2), g.number(3)); }); },
  .shard = {"loss-red"}, .doc = "delta times smooth_l1_loss with beta = delta.",
  .samples = [](SampleGen& s) { for (int r : {0, 1, 2}) s(s.t({3, 4}), s.t({3, 4}), r, 0.7); s(s.t({}), s.t({})); }),
OP("huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float delta) -> Tensor",
  .forms = Out, .types = loss_types,
  .decompose = [](const Args& a) -> Results {
      double delta = a.number(4);
      return _smooth_l1_backward(a.tensor(0), a.tensor(1), a.tensor(2), delta, delta * share(a.integer(3), a.tensor(1), a.tensor(2))); },
  .shard = {"loss-red"}, .doc = "Gradient of huber_loss.",
  .samples = [](SampleGen& s) { s(s.t({}), s.t({3, 4}), s.t({3, 4}), 1, 0.7); s(s.t({3, 4}), s.t({3, 4}), s.t({3, 4}), 0, 1.0); }),

// ---- classification by probabilities ----
OP("binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = loss_types,
  .decompose = [](const Args& a) -> Results {
      const Tensor& p = a.tensor(0);
      check_same_sizes(a, p, a.tensor(1));
      if ((p.impl()->bits & TensorImpl::kHasData) && p.numel() > 0) { // out of range is an error in PyTorch too; NaN is let through
        bool outside = logical_or(p < 0, p > 1).sum().item().toLong() != 0;
        VESTA_CHECK(!outside, "binary_cross_entropy: all elements of self should be between 0 and 1");
      }
      Tensor each = _bce(p, a.tensor(1));
      return reduce(a, a.has(2) ? each * a.tensor(2) : each, a.integer(3)); },
  .save = {in(0), in(1), in(2)},
  .vjp = [](const Grad& g) { return grads(
      G(0) { return binary_cross_entropy_backward(g.dy(), g.in(0), g.in(1), g.has(2) ? g.in(2) : Tensor(), g.integer(3)); },
      G(1) { Tensor p = g.in(0), d = g.dy() * (log1p(-p) - log(p)) * share(g.integer(3), p, g.in(1));
             return g.has(2) ? d * g.in(2) : d; }); },
  .shard = {"loss-red"}, .doc = "-(target log(self) + (1 - target) log(1 - self)), logarithms limited to -100, weighted and reduced.",
  .samples = [](SampleGen& s) { for (int r : {0, 1, 2}) s(s.t({3, 4}, range(0.1, 0.9)), s.t({3, 4}, range(0, 1)), s.t({3, 4}, range(1, 2)), r);
                                s(s.t({5}, range(0.1, 0.9)), s.t({5}, range(0, 1))); }),
OP("_bce(Tensor self, Tensor target) -> Tensor",
  .types = loss_types,
  .scalar = SCALAR((y - T(1)) * max_(log1p_(-x), T(-100)) - y * max_(log_(x), T(-100))),
  .save = {in(0), in(1)},
  .vjp = [](const Grad& g) { return grads(
      G(0) { return _bce_backward(g.dy(), g.in(0), g.in(1), 1.0); },
      G(1) { Tensor p = g.in(0); return g.dy() * (log1p(-p) - log(p)); }); },
  .shard = Shard::pointwise(), .doc = "Binary cross entropy of each element.",
  .samples = [](SampleGen& s) { s.binary(range(0.1, 0.9), range(0, 1)); }),
OP("binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean) -> Tensor",
  .forms = Out, .types = loss_types,
  .decompose = [](const Args& a) -> Results {
      Tensor d = _bce_backward(a.tensor(0), a.tensor(1), a.tensor(2), share(a.integer(4), a.tensor(1), a.tensor(2)));
      return a.has(3) ? d * a.tensor(3) : d; },
  .shard = {"loss-red"}, .doc = "Gradient of binary_cross_entropy.",
  .samples = [](SampleGen& s) { s(s.t({}), s.t({3, 4}, range(0.1, 0.9)), s.t({3, 4}, range(0, 1))); }),
OP("_bce_backward(Tensor grad_output, Tensor self, Tensor target, float scale) -> Tensor",
  .types = loss_types,
  .scalar = SCALAR(scale * x * (y - z) / max_((T(1) - y) * y, T(1e-12)), scale),
  .save = {in(0), in(1), in(2)},
  .vjp = [](const Grad& g) { return grads(
      G(0) { return _bce_backward(g.dy(), g.in(1), g.in(2), g.number(3)); },
      G(1) { Tensor p = g.in(1), t = g.in(2), v = (p * (1 - p)).clamp_min(1e-12);
             return g.dy() * g.in(0) * g.number(3) * (1 - (p - t) * (1 - p * 2) / v) / v; },
      G(2) { Tensor p = g.in(1); return g.dy() * g.in(0) * -g.number(3) / (p * (1 - p)).clamp_min(1e-12); }); },
  .shard = Shard::pointwise(), .doc = "Gradient of _bce, scaled.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4}, range(0.1, 0.9)), s.t({3, 4}, range(0, 1)), 0.5); }),
OP("binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int reduction=Mean) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = loss_types,
  .decompose = [](const Args& a) -> Results {
      check_same_sizes(a, a.tensor(0), a.tensor(1));
      Tensor each;
      if (a.has(3)) { // (1 - t) x + (1 + (w - 1) t) softplus(-x)
        Tensor t = a.tensor(1), w = (a.tensor(3) - 1) * t + 1;
        each = (1 - t) * a.tensor(0) - w * log_sigmoid(a.tensor(0));
      } else {
        each = _bce_logits(a.tensor(0), a.tensor(1));
      }
      return reduce(a, a.has(2) ? each * a.tensor(2) : each, a.integer(4)); },
  .shard = {"loss-red"}, .doc = "Binary cross entropy of sigmoid(self), computed without forming it; weighted and reduced.",
  .samples = [](SampleGen& s) { for (int r : {0, 1, 2}) s(s.t({3, 4}), s.t({3, 4}, range(0, 1)), s.t({3, 4}, range(1, 2)), std::nullopt, r);
                                s(s.t({3, 4}), s.t({3, 4}, range(0, 1)), std::nullopt, s.t({4}, range(1, 2))); }),
OP("_bce_logits(Tensor self, Tensor target) -> Tensor",
  .types = loss_types,
  .scalar = SCALAR((T(1) - y) * x - log_sigmoid_(x)),
  .save = {in(0), in(1).if_needs(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return _bce_logits_backward(g.dy(), g.in(0), g.in(1)); }, G(1) { return -g.dy() * g.in(0); }); },
  .shard = Shard::pointwise(), .doc = "Binary cross entropy of sigmoid(self), each element.",
  .samples = [](SampleGen& s) { s.binary({}, range(0, 1)); }),
OP("_bce_logits_backward(Tensor grad_output, Tensor self, Tensor target) -> Tensor",
  .types = loss_types,
  .scalar = SCALAR(x * (sigmoid_(y) - z)),
  .save = {in(0), in(1), in(2)},
  .vjp = [](const Grad& g) { return grads(G(0) { return _bce_logits_backward(g.dy(), g.in(1), g.in(2)); },
                                          G(1) { return sigmoid_backward(g.dy() * g.in(0), sigmoid(g.in(1))); }, G(2) { return -g.dy() * g.in(0); }); },
  .shard = Shard::pointwise(), .doc = "grad_output * (sigmoid(self) - target).",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4}), s.t({3, 4}, range(0, 1))); }),
OP("kl_div(Tensor self, Tensor target, int reduction=Mean, *, bool log_target=False) -> Tensor",
  .autocast = Autocast::Float32,
  .types = loss_types,
  .decompose = [](const Args& a) -> Results {
      Tensor x = a.tensor(0), t = a.tensor(1);
      return reduce(a, a.flag(3) ? t.exp() * (t - x) : xlogy(t, t) - t * x, a.integer(2)); },
  .shard = {"loss-red"}, .doc = "target * (log target - self), 0 where target is 0; reduced.",
  .samples = [](SampleGen& s) { for (int r : {0, 1, 2}) s(s.t({3, 4}), s.t({3, 4}, range(0.1, 1)), r); s(s.t({3, 4}), s.t({3, 4}), 1, true); }),
OP("poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> Tensor",
  .autocast = Autocast::Float32,
  .types = loss_types,
  .decompose = [](const Args& a) -> Results {
      Tensor x = a.tensor(0), t = a.tensor(1);
      Tensor loss = a.flag(2) ? x.exp() - t * x : x - t * (x + a.number(4)).log();
      if (a.flag(3)) { // Stirling's approximation of log t!, for t > 1
        Tensor stirling = t * t.log() - t + (t * (2 * M_PI)).log() * 0.5;
        loss = loss + stirling.masked_fill(t <= 1, 0);
      }
      return reduce(a, loss, a.integer(5)); },
  .shard = {"loss-red"}, .doc = "Negative log likelihood of Poisson counts, up to log(target!) unless full.",
  .samples = [](SampleGen& s) { for (int r : {0, 1, 2}) s(s.t({3, 4}), s.t({3, 4}, range(0, 3)), true, false, 1e-8, r);
                                s(s.t({3, 4}, range(0.5, 2)), s.t({3, 4}, range(1.5, 3)), false, true, 1e-8, 1); }),

// ---- margins ----
OP("soft_margin_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = loss_types,
  .decompose = [](const Args& a) -> Results { return reduce(a, _soft_margin(a.tensor(0), a.tensor(1)), a.integer(2)); },
  .save = {in(0), in(1)},
  .vjp = [](const Grad& g) { return grads(G(0) { return soft_margin_loss_backward(g.dy(), g.in(0), g.in(1), g.integer(2)); },
                                          G(1) { return soft_margin_loss_backward(g.dy(), g.in(1), g.in(0), g.integer(2)); }); },
  .shard = {"loss-red"}, .doc = "log(1 + exp(-target * self)), reduced.",
  .samples = [](SampleGen& s) { for (int r : {0, 1, 2}) s(s.t({3, 4}), s.t({3, 4}), r); s(s.t({}), s.t({})); }),
OP("_soft_margin(Tensor self, Tensor target) -> Tensor",
  .types = loss_types,
  .scalar = SCALAR(softplus_(-x * y)),
  .save = {in(0), in(1)},
  .vjp = [](const Grad& g) { return grads(G(0) { return _soft_margin_backward(g.dy(), g.in(0), g.in(1), 1.0); },
                                          G(1) { return _soft_margin_backward(g.dy(), g.in(1), g.in(0), 1.0); }); },
  .shard = Shard::pointwise(), .doc = "log(1 + exp(-target * self)).",
  .samples = [](SampleGen& s) { s.binary(); }),
OP("soft_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor",
  .forms = Out, .types = loss_types,
  .decompose = [](const Args& a) -> Results {
      return _soft_margin_backward(a.tensor(0), a.tensor(1), a.tensor(2), share(a.integer(3), a.tensor(1), a.tensor(2))); },
  .shard = {"loss-red"}, .doc = "Gradient of soft_margin_loss.",
  .samples = [](SampleGen& s) { s(s.t({}), s.t({3, 4}), s.t({3, 4}), 1); s(s.t({3, 4}), s.t({3, 4}), s.t({3, 4}), 0); }),
OP("_soft_margin_backward(Tensor grad_output, Tensor self, Tensor target, float scale) -> Tensor",
  .types = loss_types,
  .scalar = SCALAR(-scale * x * z * sigmoid_(-y * z), scale),
  .save = {in(0), in(1), in(2)},
  .vjp = [](const Grad& g) {
      Tensor x = g.in(1), t = g.in(2), s = sigmoid(-x * t), c = g.dy() * g.in(0) * g.number(3), u = s * (1 - s);
      return grads(G(0) { return _soft_margin_backward(g.dy(), x, t, g.number(3)); }, G(1) { return c * t * t * u; }, G(2) { return c * (x * t * u - s); }); },
  .shard = Shard::pointwise(), .doc = "Gradient of _soft_margin, scaled.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4}), s.t({3, 4}), 0.5); }),
OP("hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, int reduction=Mean) -> Tensor",
  .autocast = Autocast::Float32,
  .types = loss_types,
  .decompose = [](const Args& a) -> Results {
      Tensor x = a.tensor(0), t = a.tensor(1), zero = zeros({}, x.options());
      return reduce(a, where(t != 1, (a.number(2) - x).clamp_min(0), zero) + where(t != -1, x, zero), a.integer(3)); },
  .shard = {"loss-red"}, .doc = "self where target is 1, max(0, margin - self) where it is -1.",
  .samples = [](SampleGen& s) { for (int r : {0, 1, 2}) s(s.t({3, 4}), s.t({3, 4}).sign(), 1.0, r); }),
OP("margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=Mean) -> Tensor",
  .autocast = Autocast::Float32,
  .types = loss_types,
  .decompose = [](const Args& a) -> Results {
      return reduce(a, (-a.tensor(2) * (a.tensor(0) - a.tensor(1)) + a.number(3)).clamp_min(0), a.integer(4)); },
  .shard = {"loss-red"}, .doc = "max(0, margin - target * (input1 - input2)), reduced.",
  .samples = [](SampleGen& s) { for (int r : {0, 1, 2}) s(s.t({3, 4}), s.t({3, 4}), s.t({3, 4}).sign(), 0.5, r); }),

OP("multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int reduction=Mean) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = loss_types,
  .decompose = [](const Args& a) -> Results {
      Tensor x = a.tensor(0), t = a.tensor(1);
      VESTA_CHECK(a.scalar(2).equal(1) || a.scalar(2).equal(2), "multi_margin_loss: expected p to be 1 or 2, got ", a.scalar(2).str());
      VESTA_CHECK((x.dim() <= 1 && x.numel() > 0 && t.dim() <= 1 && t.numel() == 1) || (x.dim() == 2 && x.size(1) > 0 && t.dim() == 1 && t.size(0) == x.size(0)),
                  "multi_margin_loss: expected self of sizes (N, C) with N targets, or (C) with one");
      VESTA_CHECK_AS(TypeError, t.dtype() == kLong, "multi_margin_loss: expected int64 target, got ", dtype_name(t.dtype()));
      bool single = x.dim() <= 1;
      if (single) x = x.reshape({1, -1});
      int64_t classes = x.size(1);
      t = t.reshape({x.size(0), 1});
      Tensor z = (x - x.gather(1, t) + a.scalar(3)).clamp_min(0);
      if (a.scalar(2).equal(2)) z = z * z;
      if (a.has(4)) {
        VESTA_CHECK(a.tensor(4).dim() == 1 && a.tensor(4).numel() == classes, "multi_margin_loss: expected one weight per class (", classes, ")");
        z = z * a.tensor(4).index_select(0, t.reshape({-1})).unsqueeze(1);
      }
      Tensor others = arange(Scalar(classes), TensorOptions().dtype(kLong)) != t;
      Tensor each = where(others, z, zeros({}, z.options())).sum({1}) / Scalar(classes);
      return reduce(a, single ? each.reshape({}) : each, a.integer(5)); },
  .shard = {"replicate"}, .doc = "Mean over the other classes i of max(0, margin - self[target] + self[i])^p.",
  .samples = [](SampleGen& s) { for (int r : {0, 1, 2}) s(s.t({3, 4}), s.index({3}, 4), Scalar(1), Scalar(1), s.t({4}, range(1, 2)), r); s(s.t({4}), s.index({}, 4), Scalar(2)); }),

// ---- losses of vectors ----
OP("cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=Mean) -> Tensor",
  .autocast = Autocast::Float32,
  .types = loss_types,
  .decompose = [](const Args& a) -> Results {
      const Tensor &x = a.tensor(0), &y = a.tensor(1), &t = a.tensor(2);
      VESTA_CHECK((t.dim() == 0 && x.dim() == 1) || (t.dim() == 1 && x.dim() == 2),
                  "cosine_embedding_loss: expected target of 1 dim and inputs of 2, or of 0 and 1, got ", t.dim(), " and ", x.dim());
      constexpr double kEps = 1e-12;
      int64_t dim = t.dim();
      Tensor xy = (x * y).sum({dim}), xx = (x * x).sum({dim}) + kEps, yy = (y * y).sum({dim}) + kEps;
      Tensor cosine = xy / (xx * yy).sqrt(), zero = zeros({}, cosine.options());
      Tensor each = where(t == 1, 1 - cosine, zero) + where(t == -1, (cosine - a.number(3)).clamp_min(0), zero);
      return reduce(a, each, a.integer(4)); },
  .shard = {"loss-red"}, .doc = "1 - cosine where target is 1, max(0, cosine - margin) where it is -1.",
  .samples = [](SampleGen& s) { for (int r : {0, 1, 2}) s(s.t({3, 4}), s.t({3, 4}), s.t({3}).sign(), 0.1, r); }),
OP("cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
  .types = loss_types,
  .infer = [](InferCtx& c) {
      auto sizes = broadcast_sizes(c, c.sizes(0), c.sizes(1));
      std::vector<bool> reduced(sizes.size(), false);
      int d = c.wrap_dim(c.integer(2), int(sizes.size()));
      if (!sizes.empty()) reduced[size_t(d)] = true;
      c.out(0, reduce_sizes(sizes, reduced, false), c.dtype_of(0), c.tensor(0).device()); },
  .kernels = {{Cpu, k_cosine_similarity}}, .save = {in(0), in(1), out(0)}, .vjp = vjp_cosine_similarity,
  .shard = {"loss-red"}, .doc = "Cosine of the angle between vectors along dim; lengths below eps count as eps.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4})); s(s.t({3, 4}), s.t({4}), -1); s(s.t({2, 3, 2}), s.t({2, 3, 2})); s(s.t({3, 0}), s.t({3, 0})); }),
OP("pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False) -> Tensor",
  .types = loss_types,
  .decompose = [](const Args& a) -> Results {
      int64_t dim = std::max(a.tensor(0).dim(), a.tensor(1).dim()) - 1;
      return norm(a.tensor(0) - a.tensor(1) + a.number(3), std::optional<Scalar>(a.scalar(2)), IntArrayRef(&dim, 1), a.flag(4)); },
  .shard = {"loss-red"}, .doc = "p-norm over the last dim of x1 - x2 + eps.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4})); s(s.t({3, 4}), s.t({4}), 1.0, 1e-6, true); }),
OP("triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2, float eps=1e-06, bool swap=False, int reduction=Mean) -> Tensor",
  .autocast = Autocast::Float32,
  .types = loss_types,
  .decompose = [](const Args& a) -> Results {
      double p = a.number(4), eps = a.number(5);
      VESTA_CHECK(a.tensor(0).dim() == a.tensor(1).dim() && a.tensor(1).dim() == a.tensor(2).dim(), "triplet_margin_loss: expected anchor, positive and negative of equally many dims");
      Tensor near_ = pairwise_distance(a.tensor(0), a.tensor(1), p, eps), far_ = pairwise_distance(a.tensor(0), a.tensor(2), p, eps);
      if (a.flag(6)) far_ = minimum(far_, pairwise_distance(a.tensor(1), a.tensor(2), p, eps));
      return reduce(a, (near_ - far_ + a.number(3)).clamp_min(0), a.integer(7)); },
  .shard = {"loss-red"}, .doc = "max(0, d(anchor, positive) - d(anchor, negative) + margin), reduced.",
  .samples = [](SampleGen& s) { for (int r : {0, 1, 2}) s(s.t({3, 4}), s.t({3, 4}), s.t({3, 4}), 1.0, 2.0, 1e-6, r == 1, r); }),
};

}  // namespace
}  // namespace vesta

VESTA_FAMILY(loss, table)
