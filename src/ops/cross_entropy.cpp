// Cross entropy of logits and the negative log likelihood losses. Class-index targets run fused: one pass over the
// logits that keeps a logsumexp per row, one pass for the gradient. Class probabilities are composed.
#include <cmath>

#include "core/storage.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cross_entropy.h"
#include "ops/index_kernels.h"
#include "ops/infer.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

enum Reduction : int64_t { None = 0, Mean = 1, Sum = 2 };

Reduction reduction_of(const Args& a, int i) {
  int64_t r = a.integer(i);
  VESTA_CHECK(r >= 0 && r <= 2, a.name(), ": expected a reduction of none, mean or sum, got ", r);
  return Reduction(r);
}
void check_float(const Args& a, DType t) {
  VESTA_CHECK_AS(TypeError, is_floating_point(t), a.name(), ": expected a floating point tensor, got ", dtype_name(t));
}
void check_target_type(const Args& a, const Tensor& t) {
  VESTA_CHECK_AS(TypeError, t.dtype() == kLong || t.dtype() == kInt || t.dtype() == kUInt8, a.name(), ": expected class indices (int64), got ", dtype_name(t.dtype()));
}
DType sum_type(DType t) { return t == kDouble ? kDouble : kFloat; }

// ---- fused cross entropy: self [rows, classes], target [rows] ----
void infer_ce(InferCtx& c) {
  check_float(c, c.dtype_of(0));
  check_target_type(c, c.tensor(1));
  VESTA_CHECK(c.dim(0) == 2 && c.dim(1) == 1 && c.sizes(0)[0] == c.sizes(1)[0], c.name(), ": expected logits [rows, classes] and as many targets as rows");
  if (c.has(2)) VESTA_CHECK(c.dim(2) == 1 && c.sizes(2)[0] == c.sizes(0)[1], c.name(), ": expected one weight per class");
  double smoothing = c.number(5);
  VESTA_CHECK(smoothing >= 0 && smoothing <= 1, c.name(), ": expected a label_smoothing in [0, 1], got ", smoothing);
  Device device = c.tensor(0).device();
  DType acc = sum_type(c.dtype_of(0));
  if (reduction_of(c, 3) == None) c.out(0, {c.sizes(0)[0]}, c.dtype_of(0), device);
  else c.out(0, {}, c.dtype_of(0), device);
  c.out(1, {c.sizes(0)[0]}, acc, device);
  c.out(2, {}, acc, device);
}
// The tensors behind the pointers of CrossEntropyArgs.
struct CeCall {
  Tensor logits, target, weight;
  cpu::CrossEntropyArgs args;
};
CeCall ce_call(const Args& a, const Tensor& self, const Tensor& target, const Tensor& weight, int reduction_at) {
  CeCall c;
  c.logits = self.stride(1) == 1 || self.size(1) <= 1 ? self : self.contiguous();
  c.target = target.to(kLong).contiguous();
  if (weight.defined()) c.weight = weight.to(sum_type(self.dtype())).contiguous();
  c.args.type = cpu::elem_of(self.dtype());
  c.args.logits = c.logits.data_ptr();
  c.args.rows = self.size(0);
  c.args.classes = self.size(1);
  c.args.row_stride = c.logits.stride(0);
  c.args.target = c.target.data_ptr<int64_t>();
  c.args.weight = weight.defined() ? c.weight.data_ptr() : nullptr;
  c.args.reduction = cpu::LossReduction(reduction_of(a, reduction_at));
  c.args.ignore_index = a.integer(reduction_at + 1);
  c.args.label_smoothing = a.number(reduction_at + 2);
  int64_t bad = cpu::cross_entropy_check_targets(c.args);
  VESTA_CHECK_AS(IndexError, bad < 0, a.name(), ": target ", bad < 0 ? 0 : c.args.target[bad], " of row ", bad, " is out of range for ", c.args.classes, " classes");
  return c;
}
void k_ce(const KernelCtx& k) {
  CeCall c = ce_call(k, k.tensor(0), k.tensor(1), k.tensor(2), 3);
  Tensor loss = k.out(0);
  bool narrow = loss.dtype() != sum_type(loss.dtype());
  if (narrow) loss = empty_cpu(loss.sizes(), kFloat);
  cpu::cross_entropy_forward(c.args, loss.data_ptr(), k.out(1).data_ptr(), k.out(2).data_ptr());
  if (narrow) cpu::copy_elements(k.out(0), loss);
}
void infer_ce_backward(InferCtx& c) {
  check_float(c, c.dtype_of(1));
  check_target_type(c, c.tensor(2));
  VESTA_CHECK(c.dim(1) == 2 && c.dim(2) == 1 && c.sizes(1)[0] == c.sizes(2)[0], c.name(), ": expected logits [rows, classes] and as many targets as rows");
  if (c.has(3)) VESTA_CHECK(c.dim(3) == 1 && c.sizes(3)[0] == c.sizes(1)[1], c.name(), ": expected one weight per class");
  SymInt rows = c.sizes(1)[0];
  bool per_row = reduction_of(c, 6) == None;
  VESTA_CHECK(per_row ? c.dim(0) == 1 && c.sizes(0)[0] == rows : c.dim(0) == 0, c.name(), ": grad_output does not have the loss's shape");
  VESTA_CHECK(c.dim(4) == 1 && c.sizes(4)[0] == rows && c.dim(5) == 0, c.name(), ": expected a logsumexp per row and one total weight");
  c.out(0, c.sizes(1), c.dtype_of(1), c.tensor(1).device());
}
void k_ce_backward(const KernelCtx& k) {
  CeCall c = ce_call(k, k.tensor(1), k.tensor(2), k.tensor(3), 6);
  DType acc = sum_type(c.logits.dtype());
  Tensor dy = k.tensor(0).to(acc).contiguous(), lse = k.tensor(4).to(acc).contiguous(), total = k.tensor(5).to(acc).contiguous();
  cpu::cross_entropy_backward(c.args, lse.data_ptr(), total.data_ptr(), dy.data_ptr(), k.out().data_ptr(), c.args.classes);
}
// The same gradient from public operators, to be differentiated again. With B the weight that a row's target
// distribution gives each class: d loss_r / dx = softmax(x) * sum(B_r) - B_r.
Tensor composed_ce_backward(const Tensor& dy, const Tensor& x_in, const Tensor& target, const Tensor& weight, Reduction reduction,
                            int64_t ignore_index, double smoothing, const Tensor& total_weight) {
  DType acc = sum_type(x_in.dtype());
  Tensor x = x_in.to(acc);
  int64_t classes = x.size(1);
  Tensor hot = target.unsqueeze(1).eq(arange(classes, TensorOptions(kLong))).to(acc);
  Tensor b = hot * (1 - smoothing) + smoothing / double(classes);
  if (weight.defined()) {
    Tensor w = weight.to(acc);
    b = hot * w * (1 - smoothing) + w * (smoothing / double(classes));
  }
  b = b * target.ne(ignore_index).to(acc).unsqueeze(1);
  Tensor scale = dy.to(acc);
  if (reduction == Mean) scale = scale / total_weight;
  else if (reduction == None) scale = scale.unsqueeze(1);
  return ((_softmax(x, 1, false) * b.sum({1}, true) - b) * scale).to(x_in.dtype());
}

// ---- negative log likelihood over (outer, classes, inner) ----
struct NllShape {
  int64_t outer, classes, inner;
};
NllShape nll_shape(const Tensor& self) {
  if (self.dim() == 1) return {1, self.size(0), 1};
  NllShape s{self.size(0), self.size(1), 1};
  for (int64_t d = 2; d < self.dim(); ++d) s.inner *= self.size(d);
  return s;
}
void infer_nll(InferCtx& c, bool spatial) {
  check_float(c, c.dtype_of(0));
  check_target_type(c, c.tensor(1));
  int n = c.dim(0);
  if (spatial) VESTA_CHECK(n == 4 && c.dim(1) == 3, c.name(), ": expected a 4-dim input and a 3-dim target, got ", n, " and ", c.dim(1));
  else VESTA_CHECK((n == 1 && c.dim(1) <= 1) || (n == 2 && c.dim(1) == 1), c.name(), ": expected [rows, classes] and [rows] (or [classes] and one target), got ", n, " and ", c.dim(1), " dims");
  auto s = c.sizes(0), t = c.sizes(1);
  if (n > 1) {
    bool fits = s[0] == t[0];
    for (int d = 2; d < n; ++d) fits = fits && s[size_t(d)] == t[size_t(d - 1)];
    VESTA_CHECK(fits, c.name(), ": the input's and the target's sizes differ");
  } else if (c.dim(1) == 1) {
    VESTA_CHECK(t[0] == 1, c.name(), ": expected one target for an input with 1 dim");
  }
  if (c.has(2)) VESTA_CHECK(c.dim(2) == 1 && c.sizes(2)[0] == s[n > 1 ? 1 : 0], c.name(), ": expected one weight per class");
  if (reduction_of(c, 3) == None && n > 1) c.out(0, t, c.dtype_of(0), c.tensor(0).device());
  else c.out(0, {}, c.dtype_of(0), c.tensor(0).device());
  c.out(1, {}, c.dtype_of(0), c.tensor(0).device());
}
void check_targets(const Args& a, const int64_t* target, int64_t n, int64_t classes, int64_t ignore) {
  if (first_outside(target, n, 0, classes) == n) return;
  for (int64_t i = 0; i < n; ++i)
    VESTA_CHECK_AS(IndexError, target[i] == ignore || (target[i] >= 0 && target[i] < classes), a.name(), ": target ", target[i], " is out of range for ", classes, " classes");
}
// Sums run in double: blocks of targets in order, then the blocks.
constexpr int64_t kNllBlock = 2048;
template <class S>
void nll_forward(const S* x, const int64_t* target, const S* weight, NllShape s, Reduction r, int64_t ignore, S* out, S* total_out) {
  int64_t n = s.outer * s.inner, blocks = (n + kNllBlock - 1) / kNllBlock;
  std::vector<double> sums(size_t(blocks), 0), totals(size_t(blocks), 0);
  parallel_for(0, blocks, 2, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      double sum = 0, total = 0;
      for (int64_t at = b * kNllBlock; at < std::min(n, (b + 1) * kNllBlock); ++at) {
        int64_t t = target[at], o = s.inner == 1 ? at : at / s.inner, i = at - o * s.inner;
        if (t == ignore) {
          if (r == None) out[at] = S(0.0f);
          continue;
        }
        auto v = -x[(o * s.classes + t) * s.inner + i];
        if (weight) v = v * weight[t];
        if (r == None) out[at] = S(v);
        sum += double(v);
        total += weight ? double(weight[t]) : 1;
      }
      sums[size_t(b)] = sum;
      totals[size_t(b)] = total;
    }
  });
  double sum = 0, total = 0;
  for (double v : sums) sum += v;
  for (double v : totals) total += v;
  using A = decltype(-x[0]);
  if (r == Mean) *out = S(A(sum / total));
  if (r == Sum) *out = S(A(sum));
  *total_out = S(A(total));
}
// Writes all of dx: zeros, and one number for each target.
template <class S>
void nll_backward(const S* dy, const int64_t* target, const S* weight, NllShape s, Reduction r, int64_t ignore, const S* total, S* dx) {
  int64_t each = s.classes * s.inner;
  parallel_for(0, s.outer, std::max<int64_t>(1, 65536 / std::max<int64_t>(1, each)), [&](int64_t begin, int64_t end) {
    std::memset(static_cast<void*>(dx + begin * each), 0, size_t((end - begin) * each) * sizeof(S));
    for (int64_t o = begin; o < end; ++o)
      for (int64_t i = 0; i < s.inner; ++i) {
        int64_t at = o * s.inner + i, t = target[at];
        if (t == ignore) continue;
        auto v = -dy[r == None ? at : 0];
        if (weight) v = v * weight[t];
        if (r == Mean) v = v / *total;
        dx[(o * s.classes + t) * s.inner + i] = S(v);
      }
  });
}
template <class F>
void with_type(const Args& a, DType t, F f) {
  switch (t) {
    case DType::Float32: return f(float());
    case DType::Float64: return f(double());
    case DType::Float16: return f(Half());
    case DType::BFloat16: return f(BFloat16());
    default: throw TypeError(std::string(a.name()) + ": does not take " + dtype_name(t) + " tensors");
  }
}
void k_nll(const KernelCtx& k) {
  Tensor x = k.tensor(0).contiguous(), target = k.tensor(1).to(kLong).contiguous(), weight = k.tensor(2);
  if (weight.defined()) weight = weight.to(x.dtype()).contiguous();
  NllShape s = nll_shape(x);
  Reduction r = reduction_of(k, 3);
  check_targets(k, target.data_ptr<int64_t>(), target.numel(), s.classes, k.integer(4));
  with_type(k, x.dtype(), [&]<class S>(S) {
    nll_forward<S>(x.data_ptr<S>(), target.data_ptr<int64_t>(), weight.defined() ? weight.data_ptr<S>() : nullptr, s, r, k.integer(4), k.out(0).data_ptr<S>(), k.out(1).data_ptr<S>());
  });
  if (r == None && x.dim() > 1) cpu::fill_elements(k.out(1), 0);  // as PyTorch: nothing is divided
}
void infer_nll_backward(InferCtx& c) {
  check_float(c, c.dtype_of(1));
  check_target_type(c, c.tensor(2));
  VESTA_CHECK(c.dim(1) == 1 || c.dim(1) == 2 || c.dim(1) == 4, c.name(), ": expected an input with 1, 2 or 4 dims, got ", c.dim(1));
  if (c.has(3)) VESTA_CHECK(c.dim(3) == 1 && c.sizes(3)[0] == c.sizes(1)[c.dim(1) > 1 ? 1 : 0], c.name(), ": expected one weight per class");
  VESTA_CHECK(c.dim(6) == 0 || (c.dim(6) == 1 && c.sizes(6)[0] == 1), c.name(), ": expected one total weight");
  c.out(0, c.sizes(1), c.dtype_of(1), c.tensor(1).device());
}
void k_nll_backward(const KernelCtx& k) {
  const Tensor& self = k.tensor(1);
  Tensor dy = k.tensor(0).to(self.dtype()).contiguous(), target = k.tensor(2).to(kLong).contiguous(), weight = k.tensor(3), total = k.tensor(6).to(self.dtype()).contiguous();
  if (weight.defined()) weight = weight.to(self.dtype()).contiguous();
  NllShape s = nll_shape(self);
  Reduction r = reduction_of(k, 4);
  VESTA_CHECK(target.numel() == s.outer * s.inner, k.name(), ": the input's and the target's sizes differ");
  VESTA_CHECK(dy.numel() == (r == None ? target.numel() : 1), k.name(), ": grad_output has ", dy.numel(), " elements");
  check_targets(k, target.data_ptr<int64_t>(), target.numel(), s.classes, k.integer(5));
  with_type(k, self.dtype(), [&]<class S>(S) {
    nll_backward<S>(dy.data_ptr<S>(), target.data_ptr<int64_t>(), weight.defined() ? weight.data_ptr<S>() : nullptr, s, r, k.integer(5), total.data_ptr<S>(), k.out().data_ptr<S>());
  });
}
int vjp_nll(const Grad& g, bool spatial) {
  return grads(G(0) {
    auto f = spatial ? nll_loss2d_backward : nll_loss_backward;
    return f(g.dy(), g.in(0), g.in(1), g.in(2), g.integer(3), g.integer(4), g.out(1)); });
}
int vjp_nll_backward(const Grad& g, bool spatial) {
  return grads(G(0) {
    auto f = spatial ? nll_loss2d_forward : nll_loss_forward;
    return std::get<0>(f(g.dy(), g.in(2), g.in(3), g.integer(4), g.integer(5))); });
}

// Logits with classes at dim 1 (or 0 for one row) as [rows, classes].
Tensor class_rows(const Tensor& x) {
  if (x.dim() == 1) return x.unsqueeze(0);
  if (x.dim() == 2) return x;
  int64_t rows = x.size(0);
  for (int64_t d = 2; d < x.dim(); ++d) rows *= x.size(d);
  return x.movedim(1, -1).reshape({rows, x.size(1)});
}
void check_class_shapes(const Args& a, const Tensor& x, const Tensor& target) {
  VESTA_CHECK(x.dim() >= 1, a.name(), ": expected logits with at least 1 dim");
  std::vector<int64_t> want;
  for (int64_t d = 0; d < x.dim(); ++d)
    if (d != (x.dim() == 1 ? 0 : 1)) want.push_back(x.size(d));
  VESTA_CHECK(target.sizes() == IntArrayRef(want), a.name(), ": the target must have the input's sizes without the classes");
}
Results cross_entropy(const Args& a) {
  const Tensor &x = a.tensor(0), &target = a.tensor(1), &weight = a.tensor(2);
  Reduction r = reduction_of(a, 3);
  double smoothing = a.number(5);
  VESTA_CHECK(x.dim() >= 1, a.name(), ": expected logits with at least 1 dim");
  int64_t dim = x.dim() == 1 ? 0 : 1, classes = x.size(dim);
  if (is_floating_point(target.dtype())) {
    VESTA_CHECK(x.sizes() == target.sizes(), a.name(), ": class probabilities must have the logits' shape");
    VESTA_CHECK(smoothing >= 0 && smoothing <= 1, a.name(), ": expected a label_smoothing in [0, 1], got ", smoothing);
    Tensor t = smoothing > 0 ? target * (1 - smoothing) + smoothing / double(classes) : target;
    Tensor terms = _log_softmax(x, dim, false) * t;
    if (weight.defined()) {
      std::vector<int64_t> shape(size_t(x.dim()), 1);
      shape[size_t(dim)] = classes;
      terms = terms * weight.view(shape);
    }
    if (r == None) return -terms.sum({dim});
    Tensor sum = -terms.sum();
    return r == Sum ? sum : sum / (double(x.numel()) / double(classes));
  }
  check_class_shapes(a, x, target);
  int64_t rows = target.numel();
  Tensor loss = std::get<0>(_cross_entropy_forward(class_rows(x), target.dim() == 1 ? target : target.reshape({rows}), weight, r, a.integer(4), smoothing));
  return r == None && target.dim() != 1 ? loss.view(target.sizes()) : loss;
}
Results nll_nd(const Args& a) {
  const Tensor &x = a.tensor(0), &target = a.tensor(1), &weight = a.tensor(2);
  int64_t r = reduction_of(a, 3), ignore = a.integer(4);
  VESTA_CHECK(x.dim() >= 1, a.name(), ": expected an input with at least 1 dim");
  if (x.dim() <= 2) return nll_loss(x, target, weight, r, ignore);
  if (x.dim() == 4) return nll_loss2d(x, target, weight, r, ignore);
  check_class_shapes(a, x, target);
  int64_t rest = 1;
  for (int64_t d = 2; d < x.dim(); ++d) rest *= x.size(d);
  Tensor loss = nll_loss2d(x.reshape({x.size(0), x.size(1), rest, 1}), target.reshape({x.size(0), rest, 1}), weight, r, ignore);
  return r == None ? loss.view(target.sizes()) : loss;
}

constexpr OpDef table[] = {
OP("_cross_entropy_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, float label_smoothing) -> (Tensor, Tensor, Tensor)",
  .types = any_types, .infer = infer_ce, .kernels = {{Cpu, k_ce}},
  .save = {in(0), in(1), in(2), out(1), out(2)},
  .vjp = [](const Grad& g) { return grads(G(0) {
      if (g.create_graph())
        return composed_ce_backward(g.dy(), g.in(0), g.in(1), g.in(2), Reduction(g.integer(3)), g.integer(4), g.number(5), g.out(2).detach());
      return _cross_entropy_backward(g.dy(), g.in(0), g.in(1), g.in(2), g.out(1), g.out(2), g.integer(3), g.integer(4), g.number(5)); }); },
  .non_diff_outputs = 6,
  .shard = {"nll"}, .doc = "Loss of logits [rows, classes] against class indices, the rows' logsumexp and the divisor of mean.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { s(s.t({4, 5}), s.index({4}, 5), std::nullopt, 1, -100, 0.0); s(s.t({4, 5}), s.index({4}, 5), s.dtype() == kDouble ? Tensor() : s.make({5}, range(0.5, 2), kFloat), 0, 2, 0.1); s(s.t({4, 5}), s.index({4}, 5), std::nullopt, 2, -100, 0.3); } }),
OP("_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, Tensor logsumexp, Tensor total_weight, int reduction, SymInt ignore_index, float label_smoothing) -> Tensor",
  .types = any_types, .infer = infer_ce_backward, .kernels = {{Cpu, k_ce_backward}}, .non_differentiable = true,
  .shard = {"nll"}, .doc = "Gradient of _cross_entropy_forward in the logits.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { DType t = sum_type(s.dtype()); s(s.make({}, {}, t), s.t({4, 5}), s.index({4}, 5), std::nullopt, s.make({4}, range(3, 4), t), s.make({}, range(4, 4), t), 1, -100, 0.0); } }),
OP("cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, SymInt ignore_index=-100, float label_smoothing=0.0) -> Tensor",
  .autocast = Autocast::Float32,
  .types = any_types, .decompose = cross_entropy,
  .shard = {"nll"}, .doc = "Cross entropy of logits (classes at dim 1) against class indices or class probabilities.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { s(s.t({4, 5}), s.index({4}, 5)); s(s.t({2, 5, 3}), s.index({2, 3}, 5), std::nullopt, 0); s(s.t({5}), s.index({}, 5)); s(s.t({4, 5}), s.t({4, 5}, range(0, 1))); } }),
OP("nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor, Tensor)",
  .forms = Out, .types = any_types, .infer = [](InferCtx& c) { infer_nll(c, false); }, .kernels = {{Cpu, k_nll}},
  .save = {in(0), in(1), in(2), out(1)}, .vjp = [](const Grad& g) { return vjp_nll(g, false); }, .non_diff_outputs = 2,
  .shard = {"nll"}, .doc = "-weight[target] * self[row, target], reduced; also the sum of the weights.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { s(s.t({4, 5}), s.index({4}, 5), std::nullopt, 1, -100); s(s.t({4, 5}), s.index({4}, 5), s.dtype() == kDouble ? Tensor() : s.t({5}, range(0.5, 2)), 0, 2); s(s.t({5}), s.index({}, 5), std::nullopt, 2, -100); } }),
OP("nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, Tensor total_weight) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_nll_backward, .kernels = {{Cpu, k_nll_backward}},
  .save = {in(2), in(3)}, .vjp = [](const Grad& g) { return vjp_nll_backward(g, false); },
  .shard = {"nll"}, .doc = "Gradient of nll_loss_forward in self.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({}), s.t({4, 5}), s.index({4}, 5), std::nullopt, 2, -100, s.t({}, range(4, 4))); }),
OP("nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, SymInt ignore_index=-100) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = any_types,
  .decompose = [](const Args& a) -> Results { return std::get<0>(nll_loss_forward(a.tensor(0), a.tensor(1), a.tensor(2), a.integer(3), a.integer(4))); },
  .shard = {"nll"}, .doc = "Negative log likelihood of log-probabilities.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({4, 5}), s.index({4}, 5)); }),
OP("nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor, Tensor)",
  .forms = Out, .types = any_types, .infer = [](InferCtx& c) { infer_nll(c, true); }, .kernels = {{Cpu, k_nll}},
  .save = {in(0), in(1), in(2), out(1)}, .vjp = [](const Grad& g) { return vjp_nll(g, true); }, .non_diff_outputs = 2,
  .shard = {"nll"}, .doc = "nll_loss_forward of [n, classes, height, width].",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({2, 5, 2, 3}), s.index({2, 2, 3}, 5), std::nullopt, 1, -100); }),
OP("nll_loss2d_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, Tensor total_weight) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_nll_backward, .kernels = {{Cpu, k_nll_backward}},
  .save = {in(2), in(3)}, .vjp = [](const Grad& g) { return vjp_nll_backward(g, true); },
  .shard = {"nll"}, .doc = "Gradient of nll_loss2d_forward in self.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({}), s.t({2, 5, 2, 3}), s.index({2, 2, 3}, 5), std::nullopt, 2, -100, s.t({}, range(12, 12))); }),
OP("nll_loss2d(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, SymInt ignore_index=-100) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = any_types,
  .decompose = [](const Args& a) -> Results { return std::get<0>(nll_loss2d_forward(a.tensor(0), a.tensor(1), a.tensor(2), a.integer(3), a.integer(4))); },
  .shard = {"nll"}, .doc = "nll_loss of [n, classes, height, width].",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({2, 5, 2, 3}), s.index({2, 2, 3}, 5)); }),
OP("nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, SymInt ignore_index=-100) -> Tensor",
  .autocast = Autocast::Float32,
  .types = any_types, .decompose = nll_nd,
  .shard = {"nll"}, .doc = "nll_loss with classes at dim 1 and any number of further dims.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { s(s.t({4, 5}), s.index({4}, 5)); s(s.t({2, 5, 3}), s.index({2, 3}, 5), std::nullopt, 0); } }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(cross_entropy, table)
