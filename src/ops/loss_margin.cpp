// Margin losses over several labels a row, and the backward row of multi_margin_loss.
#include "base/thread_pool.h"
#include "core/storage.h"
#include "kernels/cpu/copy.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

constexpr int64_t kWork = 8192;  // pairs of classes a parallel chunk

enum Reduction : int64_t { kNone = 0, kMean = 1, kSum = 2 };
int64_t reduction_of(const Args& a, int i) {
  int64_t r = a.integer(i);
  VESTA_CHECK(r >= kNone && r <= kSum, a.name(), ": expected a reduction of 0 (none), 1 (mean) or 2 (sum), got ", r);
  return r;
}

// ---- multilabel margin: rows of classes; a row's labels end at the first -1 ----
struct Rows {
  int64_t rows, classes;
};
Rows rows_of(const Tensor& x) { return x.dim() == 2 ? Rows{x.size(0), x.size(1)} : Rows{1, x.numel()}; }

void check_multilabel(const InferCtx& c, int self_at) {
  int n = c.dim(self_at);
  VESTA_CHECK_AS(TypeError, is_floating_point(c.dtype_of(self_at)), c.name(), ": expected a floating point self, got ", dtype_name(c.dtype_of(self_at)));
  VESTA_CHECK_AS(TypeError, c.dtype_of(self_at + 1) == kLong, c.name(), ": expected int64 target, got ", dtype_name(c.dtype_of(self_at + 1)));
  VESTA_CHECK(n <= 2 && c.sizes(self_at) == c.sizes(self_at + 1), c.name(), ": expected self of at most 2 dims and target of self's sizes");
  if (n > 0) VESTA_CHECK(c.sizes(self_at).back() > 0, c.name(), ": expected at least one class");
}
void infer_multilabel(InferCtx& c) {
  check_multilabel(c, 0);
  if (reduction_of(c, 2) == kNone && c.dim(0) == 2) c.out(0, {c.sizes(0)[0]}, c.dtype_of(0), c.tensor(0).device());
  else c.out(0, {}, c.dtype_of(0), c.tensor(0).device());
  c.out(1, c.sizes(1), c.dtype_of(0), c.tensor(0).device());
}
// Row-wise computation in float64, whatever the dtype: rows are short.
Tensor wide(const Tensor& t) { return t.to(kDouble).contiguous(); }
Tensor checked_labels(const Args& a, const Tensor& target, int64_t classes) {
  Tensor t = target.contiguous();
  auto* p = t.data_ptr<int64_t>();
  for (int64_t i = 0; i < t.numel(); ++i)
    VESTA_CHECK_AS(IndexError, p[i] >= -1 && p[i] < classes, a.name(), ": label ", p[i], " is out of range for ", classes, " classes");
  return t;
}
void k_multilabel(const KernelCtx& k) {
  Rows r = rows_of(k.tensor(0));
  Tensor labels = checked_labels(k, k.tensor(1), r.classes), x = wide(k.tensor(0));
  int64_t reduction = reduction_of(k, 2);
  Tensor each = empty_cpu({r.rows}, kDouble), marks = empty_cpu({r.rows * r.classes}, kDouble);
  parallel_for(0, r.rows, std::max<int64_t>(1, kWork / (r.classes * r.classes)), [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const double* v = x.data_ptr<double>() + n * r.classes;
      const int64_t* t = labels.data_ptr<int64_t>() + n * r.classes;
      double *mark = marks.data_ptr<double>() + n * r.classes, sum = 0;
      std::fill(mark, mark + r.classes, 0.0);
      int64_t count = 0;
      for (; count < r.classes && t[count] >= 0; ++count) mark[t[count]] = 1;
      for (int64_t j = 0; j < count; ++j)
        for (int64_t i = 0; i < r.classes; ++i)
          if (mark[i] == 0) {
            double z = 1 - v[t[j]] + v[i];
            sum += z > 0 || z != z ? z : 0;
          }
      each.data_ptr<double>()[n] = sum / double(r.classes);
    }
  });
  cpu::copy_elements(k.out(1), marks.view(k.out(1).sizes()));
  if (reduction == kNone) return cpu::copy_elements(k.out(0), each.view(k.out(0).sizes()));
  double sum = 0;
  for (int64_t n = 0; n < r.rows; ++n) sum += each.data_ptr<double>()[n];
  cpu::fill_elements(k.out(0), reduction == kMean ? sum / double(r.rows) : sum);
}
// grad_output, self, target, reduction, is_target.
void infer_multilabel_backward(InferCtx& c) {
  check_multilabel(c, 1);
  bool per_row = reduction_of(c, 3) == kNone && c.dim(1) == 2;
  VESTA_CHECK(per_row ? c.dim(0) == 1 && c.sizes(0)[0] == c.sizes(1)[0] : c.dim(0) == 0, c.name(), ": grad_output does not have the loss's shape");
  VESTA_CHECK(c.sizes(4) == c.sizes(2), c.name(), ": expected is_target of target's sizes");
  c.out(0, c.sizes(1), c.dtype_of(1), c.tensor(1).device());
}
void k_multilabel_backward(const KernelCtx& k) {
  Rows r = rows_of(k.tensor(1));
  Tensor labels = checked_labels(k, k.tensor(2), r.classes), x = wide(k.tensor(1)), dy = wide(k.tensor(0)), marks = wide(k.tensor(4));
  int64_t reduction = reduction_of(k, 3);
  bool per_row = k.tensor(0).dim() == 1;
  Tensor dx = empty_cpu({r.rows * r.classes}, kDouble);
  parallel_for(0, r.rows, std::max<int64_t>(1, kWork / (r.classes * r.classes)), [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const double *v = x.data_ptr<double>() + n * r.classes, *mark = marks.data_ptr<double>() + n * r.classes;
      const int64_t* t = labels.data_ptr<int64_t>() + n * r.classes;
      double g = dy.data_ptr<double>()[per_row ? n : 0] / double(r.classes);
      if (reduction == kMean) g /= double(r.rows);
      double* d = dx.data_ptr<double>() + n * r.classes;
      std::fill(d, d + r.classes, 0.0);
      for (int64_t j = 0; j < r.classes && t[j] >= 0; ++j)
        for (int64_t i = 0; i < r.classes; ++i)
          if (!(mark[i] > 0.5) && 1 - v[t[j]] + v[i] > 0) d[t[j]] -= g, d[i] += g;
    }
  });
  cpu::copy_elements(k.out(), dx.view(k.out().sizes()));
}

// A row of labels of a sample: a few distinct classes, then -1.
Tensor sample_labels(int64_t rows, int64_t classes) {
  Tensor t = full({rows, classes}, -1, TensorOptions(kLong));
  auto* p = t.data_ptr<int64_t>();
  for (int64_t n = 0; n < rows; ++n)
    for (int64_t j = 0; j < std::min<int64_t>(n + 1, classes - 1); ++j) p[n * classes + j] = (n + 2 * j + 1) % classes;
  return t;
}

constexpr OpDef table[] = {
OP("multilabel_margin_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = any_types,
  .decompose = [](const Args& a) -> Results { return std::get<0>(multilabel_margin_loss_forward(a.tensor(0), a.tensor(1), a.integer(2))); },
  .shard = {"replicate"}, .doc = "Mean over pairs of a label and another class of max(0, 1 - self[label] + self[other]); labels of a row end at the first -1.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) for (int r : {0, 1, 2}) s(s.t({3, 5}), sample_labels(3, 5), r); }),
OP("multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor, Tensor)",
  .forms = Out, .types = any_types, .infer = infer_multilabel, .kernels = {{Cpu, k_multilabel}},
  .save = {in(0), in(1), out(1)},
  .vjp = [](const Grad& g) {
      if (!g.dy().defined()) return 0;  // only is_target was used, which is flat
      return grads(G(0) { return multilabel_margin_loss_backward(g.dy(), g.in(0), g.in(1), g.integer(2), g.out(1)); }); },
  .non_diff_outputs = 2, .shard = {"replicate"}, .doc = "multilabel_margin_loss, and 1 for each class that is a label.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { for (int r : {0, 1, 2}) s(s.t({2, 5}), sample_labels(2, 5), r); s(s.t({4}), sample_labels(1, 4).view({4}), 1); } }),
OP("multilabel_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, Tensor is_target) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_multilabel_backward, .kernels = {{Cpu, k_multilabel_backward}},
  .save = {in(0), in(1), in(2), in(4)},
  .vjp = [](const Grad& g) { return grads(G(0) {
      // Linear in grad_output; flat in self between the kinks.
      Tensor dy = g.in(0), unit = g.dy() * multilabel_margin_loss_backward(ones_like(dy), g.in(1), g.in(2), g.integer(3), g.in(4));
      return dy.dim() == 1 ? unit.sum({1}) : unit.sum(); }); },
  .shard = {"replicate"}, .doc = "Gradient of multilabel_margin_loss_forward.",
  .samples = [](SampleGen& s) {
      if (!is_floating_point(s.dtype())) return;
      for (int r : {0, 1, 2}) {
        Tensor x = s.t({2, 5}), t = sample_labels(2, 5), marks = std::get<1>(multilabel_margin_loss_forward(x, t, r));
        s(r == 0 ? s.t({2}) : s.t({}), x, t, r, marks);
      } }),
OP("multi_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, Scalar p, Scalar margin, Tensor? weight=None, int reduction=Mean) -> Tensor",
  .forms = Out, .types = any_types,
  .decompose = [](const Args& a) -> Results {
      Tensor x = a.tensor(1), t = a.tensor(2);
      int64_t reduction = reduction_of(a, 6);
      VESTA_CHECK(a.scalar(3).equal(1) || a.scalar(3).equal(2), a.name(), ": expected p to be 1 or 2, got ", a.scalar(3).str());
      VESTA_CHECK((x.dim() <= 1 && x.numel() > 0 && t.dim() <= 1 && t.numel() == 1) || (x.dim() == 2 && x.size(1) > 0 && t.dim() == 1 && t.size(0) == x.size(0)), a.name(),
                  ": expected self of sizes (N, C) with N targets, or (C) with one");
      VESTA_CHECK_AS(TypeError, t.dtype() == kLong, a.name(), ": expected int64 target, got ", dtype_name(t.dtype()));
      std::vector<int64_t> sizes = x.sizes().vec();
      if (x.dim() < 2) x = x.reshape({1, -1});
      int64_t rows = x.size(0), classes = x.size(1);
      t = t.reshape({rows, 1});
      Tensor z = x - x.gather(1, t) + a.scalar(4);
      Tensor counts = (z > 0).logical_and(arange(Scalar(classes), TensorOptions().dtype(kLong)) != t);
      Tensor d = a.scalar(3).equal(2) ? z * 2 : ones_like(z);
      if (a.has(5)) {
        VESTA_CHECK(a.tensor(5).dim() == 1 && a.tensor(5).numel() == classes, a.name(), ": expected one weight per class (", classes, ")");
        d = d * a.tensor(5).index_select(0, t.reshape({-1})).unsqueeze(1);
      }
      d = where(counts, d, zeros({}, d.options())) / double(classes);
      d = d.scatter_add(1, t, -d.sum({1}, true));
      const Tensor& dy = a.tensor(0);
      VESTA_CHECK(dy.numel() == (reduction == kNone ? rows : 1), a.name(), ": grad_output has ", dy.numel(), " elements");
      d = d * dy.reshape({-1, 1});
      if (reduction == kMean) d = d / double(rows);
      return d.reshape(sizes); },
  .shard = {"replicate"}, .doc = "Gradient of multi_margin_loss.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { s(s.t({}), s.t({3, 4}), s.index({3}, 4), Scalar(1), Scalar(1)); s(s.t({3}), s.t({3, 4}), s.index({3}, 4), Scalar(2), Scalar(0.5), s.t({4}, range(1, 2)), 0); } }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(loss_margin, table)
