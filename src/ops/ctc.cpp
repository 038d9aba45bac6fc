// CTC loss: alignments of a label sequence with frames, forward and backward in log space (kernels/cpu/ctc.h). As in
// PyTorch the gradient is that of a preceding log-softmax's input, which log_softmax's own gradient leaves unchanged.
#include <limits>

#include "core/storage.h"
#include "kernels/cpu/ctc.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

constexpr TypeRule ctc_types{types::bit(kFloat32) | types::bit(kFloat64), Promote::None};

// Lengths given as a list or as a tensor of integers.
std::vector<int64_t> lengths(const Args& a, int i) {
  if (a.value(i).kind == ValueKind::IntList) return a.ints(i).vec();
  if (a.value(i).kind == ValueKind::Int) return {a.integer(i)};
  const Tensor& t = a.tensor(i);
  VESTA_CHECK_AS(TypeError, is_integral(t.dtype(), false), a.name(), ": expected integer lengths, got ", dtype_name(t.dtype()));
  VESTA_CHECK(t.dim() <= 1, a.name(), ": expected lengths with 1 dim, got ", t.dim());
  Tensor wide = t.to(kLong).contiguous();
  return std::vector<int64_t>(wide.data_ptr<int64_t>(), wide.data_ptr<int64_t>() + wide.numel());
}

struct CtcCall {
  Tensor log_probs, targets;
  std::vector<int64_t> input_length, target_length, offset;
  cpu::CtcShape shape;
};
// Checks everything before memory is touched. Arguments: log_probs at `at`, then targets and both lengths.
CtcCall ctc_call(const Args& a, int at, int64_t blank) {
  const Tensor &p = a.tensor(at), &targets = a.tensor(at + 1);
  VESTA_CHECK_AS(TypeError, p.dtype() == kFloat || p.dtype() == kDouble, a.name(), ": expected float32 or float64 log_probs, got ", dtype_name(p.dtype()));
  VESTA_CHECK_AS(TypeError, targets.dtype() == kLong || targets.dtype() == kInt, a.name(), ": expected int32 or int64 targets, got ", dtype_name(targets.dtype()));
  VESTA_CHECK(p.dim() == 3, a.name(), ": expected log_probs [time, batch, classes], got ", p.dim(), " dims");
  CtcCall c;
  c.input_length = lengths(a, at + 2);
  c.target_length = lengths(a, at + 3);
  int64_t time = p.size(0), batch = p.size(1), classes = p.size(2), longest = 0, total = 0;
  VESTA_CHECK(blank >= 0 && blank < classes, a.name(), ": blank ", blank, " is out of range for ", classes, " classes");
  VESTA_CHECK(int64_t(c.input_length.size()) == batch && int64_t(c.target_length.size()) == batch, a.name(), ": expected ", batch, " input_lengths and target_lengths, got ",
              c.input_length.size(), " and ", c.target_length.size());
  VESTA_CHECK(targets.dim() == 1 || (targets.dim() == 2 && targets.size(0) == batch), a.name(), ": expected targets [batch, length] or all of them in 1 dim");
  for (int64_t n = 0; n < batch; ++n) {
    int64_t frames = c.input_length[size_t(n)], labels = c.target_length[size_t(n)];
    VESTA_CHECK(frames >= 0 && frames <= time, a.name(), ": expected input_lengths in [0, ", time, "], got ", frames);
    VESTA_CHECK(labels >= 0 && labels <= (targets.dim() == 2 ? targets.size(1) : targets.size(0) - total), a.name(), ": target_lengths ask for more labels than there are, or for ",
                labels);
    c.offset.push_back(targets.dim() == 2 ? n * targets.size(1) : total);
    total += labels;
    longest = std::max(longest, labels);
  }
  VESTA_CHECK(targets.dim() == 2 || total == targets.size(0), a.name(), ": target_lengths sum to ", total, " for ", targets.size(0), " labels");
  c.log_probs = p.contiguous();
  c.targets = targets.to(kLong).contiguous();
  auto* t = c.targets.data_ptr<int64_t>();
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t i = 0; i < c.target_length[size_t(n)]; ++i) {
      int64_t label = t[c.offset[size_t(n)] + i];
      VESTA_CHECK_AS(IndexError, label >= 0 && label < classes, a.name(), ": label ", label, " is out of range for ", classes, " classes");
    }
  c.shape = {time, batch, classes, blank, 2 * longest + 1, t, c.offset.data(), c.input_length.data(), c.target_length.data()};
  return c;
}
void infer_ctc(InferCtx& c) {
  VESTA_CHECK(c.dim(0) == 3, c.name(), ": expected log_probs [time, batch, classes], got ", c.dim(0), " dims");
  int64_t longest = 0;
  for (int64_t n : c.ints(3)) {
    VESTA_CHECK(n >= 0 && n < int64_t(1) << 31, c.name(), ": expected target_lengths in [0, 2^31), got ", n);
    longest = std::max(longest, n);
  }
  auto s = c.sizes(0);
  c.out(0, {s[1]}, c.dtype_of(0), c.tensor(0).device());
  c.out(1, {s[1], s[0], SymInt(2 * longest + 1)}, c.dtype_of(0), c.tensor(0).device());
}
void k_ctc(const KernelCtx& k) {
  CtcCall c = ctc_call(k, 0, k.integer(4));
  cpu::ctc_forward(cpu::elem_of(c.log_probs.dtype()), c.log_probs.data_ptr(), c.shape, k.out(0).data_ptr(), k.out(1).data_ptr());
}
// Lengths in tensors: the size of log_alpha is known only here.
void k_ctc_tensor(const KernelCtx& k) {
  CtcCall c = ctc_call(k, 0, k.integer(4));
  k.allocate(0, {c.shape.batch}, c.log_probs.dtype());
  k.allocate(1, {c.shape.batch, c.shape.time, c.shape.states}, c.log_probs.dtype());
  cpu::ctc_forward(cpu::elem_of(c.log_probs.dtype()), c.log_probs.data_ptr(), c.shape, k.out(0).data_ptr(), k.out(1).data_ptr());
}
// grad, log_probs, targets, lengths, neg_log_likelihood, log_alpha, blank, zero_infinity.
void infer_ctc_backward(InferCtx& c) {
  VESTA_CHECK(c.dim(1) == 3, c.name(), ": expected log_probs [time, batch, classes], got ", c.dim(1), " dims");
  c.out(0, c.sizes(1), c.dtype_of(1), c.tensor(1).device());
}
void k_ctc_backward(const KernelCtx& k) {
  CtcCall c = ctc_call(k, 1, k.integer(7));
  DType t = c.log_probs.dtype();
  Tensor dy = k.tensor(0), loss = k.tensor(5).to(t).contiguous(), alpha = k.tensor(6).to(t).contiguous();
  const cpu::CtcShape& s = c.shape;
  VESTA_CHECK(dy.numel() == s.batch && loss.numel() == s.batch, k.name(), ": expected a gradient and a loss for each of ", s.batch, " samples");
  VESTA_CHECK(alpha.dim() == 3 && alpha.size(0) == s.batch && alpha.size(1) == s.time && alpha.size(2) == s.states, k.name(), ": expected log_alpha of sizes [", s.batch, ", ",
              s.time, ", ", s.states, "]");
  dy = dy.to(t).contiguous();
  cpu::ctc_backward(cpu::elem_of(t), dy.data_ptr(), c.log_probs.data_ptr(), s, loss.data_ptr(), alpha.data_ptr(), k.flag(8), k.out().data_ptr());
}
void check_first_order(const Grad& g) {
  VESTA_CHECK_AS(NotImplementedError, !g.create_graph(), g.name(), ": second derivatives are not supported");
}

// The public loss: one sample without a batch dim, zero_infinity, reduction. `divisors`: target lengths as a tensor.
Tensor reduced(const Args& a, Tensor loss, bool batched, const Tensor& target_lengths) {
  int64_t reduction = a.integer(5);
  VESTA_CHECK(reduction >= 0 && reduction <= 2, a.name(), ": expected a reduction of 0 (none), 1 (mean) or 2 (sum), got ", reduction);
  if (a.flag(6)) loss = where(loss == Scalar(std::numeric_limits<double>::infinity()), zeros({}, loss.options()), loss);
  if (reduction == 1) return (loss / target_lengths.to(loss.dtype()).clamp_min(1)).mean();
  if (reduction == 2) return loss.sum();
  return batched ? loss : loss.squeeze(0);
}
void check_log_probs(const Args& a) {
  VESTA_CHECK(a.tensor(0).dim() == 2 || a.tensor(0).dim() == 3, a.name(), ": expected log_probs [time, batch, classes] or [time, classes], got ", a.tensor(0).dim(), " dims");
}
Tensor as_tensor(IntArrayRef v) {
  Tensor t = empty_cpu({int64_t(v.size())}, kLong);
  std::copy(v.begin(), v.end(), t.data_ptr<int64_t>());
  return t;
}
Tensor with_batch(const Tensor& t, bool batched, int64_t dim) { return batched ? t : t.unsqueeze(dim); }

using Ints = std::vector<int64_t>;
Tensor log_probs(SampleGen& s, SampleGen::Shape sizes) { return _log_softmax(s.t(sizes), -1, false); }
// Lengths as tensors do not depend on the dtype under test.
Tensor two(int64_t first, int64_t second) { return as_tensor(Ints{first, second}); }
// The gradient is that of log_softmax's input: differences of log_probs alone show something else.
bool differences(SampleGen& s) { return s.dtype() == kDouble; }

constexpr OpDef table[] = {
OP("ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, int reduction=Mean, bool zero_infinity=False) -> Tensor",
  .autocast = Autocast::Float32,
  .types = ctc_types,
  .decompose = [](const Args& a) -> Results {
      check_log_probs(a);
      bool batched = a.tensor(0).dim() == 3;
      Tensor loss = std::get<0>(_ctc_loss(with_batch(a.tensor(0), batched, 1), with_batch(a.tensor(1), batched, 0), a.ints(2), a.ints(3), a.integer(4), a.flag(6)));
      return reduced(a, loss, batched, as_tensor(a.ints(3))); },
  .shard = {"replicate"}, .doc = "Negative log likelihood of the target sequences over all alignments; mean divides by the target lengths first.",
  .samples = [](SampleGen& s) { if (!differences(s)) { s(log_probs(s, {5, 2, 4}), s.make({2, 3}, range(1, 3), kLong), Ints{5, 4}, Ints{2, 1}); s(log_probs(s, {5, 4}), s.make({2}, range(1, 3), kLong), Ints{5}, Ints{2}, 0, 0); } }),
OP("ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, int reduction=Mean, bool zero_infinity=False) -> Tensor",
  .autocast = Autocast::Float32,
  .types = ctc_types,
  .decompose = [](const Args& a) -> Results {
      check_log_probs(a);
      bool batched = a.tensor(0).dim() == 3;
      Tensor loss = std::get<0>(_ctc_loss(with_batch(a.tensor(0), batched, 1), with_batch(a.tensor(1), batched, 0), a.tensor(2), a.tensor(3), a.integer(4), a.flag(6)));
      return reduced(a, loss, batched, a.tensor(3)); },
  .shard = {"replicate"}, .doc = "ctc_loss with the lengths in tensors.",
  .samples = [](SampleGen& s) { if (!differences(s)) s(log_probs(s, {5, 2, 4}), s.make({2, 3}, range(1, 3), kLong), two(5, 4), two(2, 0), 0, 2, true); }),
OP("_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, bool zero_infinity=False) -> (Tensor, Tensor)",
  .forms = Out, .types = ctc_types, .infer = infer_ctc, .kernels = {{Cpu, k_ctc}},
  .save = {in(0), in(1), out(0), out(1)},
  .vjp = [](const Grad& g) {
      check_first_order(g);
      return grads(G(0) { return _ctc_loss_backward(g.dy(), g.in(0), g.in(1), g.ints(2), g.ints(3), g.out(0), g.out(1), g.integer(4), g.flag(5)); }); },
  .non_diff_outputs = 2, .shard = {"replicate"}, .doc = "Losses of each sample, and the forward variables.",
  .samples = [](SampleGen& s) { if (!differences(s)) s(log_probs(s, {5, 2, 4}), s.make({3}, range(1, 3), kLong), Ints{5, 4}, Ints{2, 1}); }),
OP("_ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, bool zero_infinity=False) -> (Tensor, Tensor)",
  .types = ctc_types, .kernels = {{Cpu, k_ctc_tensor}}, .dynamic_out = true,
  .save = {in(0), in(1), in(2), in(3), out(0), out(1)},
  .vjp = [](const Grad& g) {
      check_first_order(g);
      return grads(G(0) { return _ctc_loss_backward(g.dy(), g.in(0), g.in(1), g.in(2), g.in(3), g.out(0), g.out(1), g.integer(4), g.flag(5)); }); },
  .non_diff_outputs = 2, .shard = {"replicate"}, .doc = "_ctc_loss with the lengths in tensors.",
  .samples = [](SampleGen& s) { if (!differences(s)) s(log_probs(s, {5, 2, 4}), s.make({3}, range(1, 3), kLong), two(5, 4), two(2, 1)); }),
OP("_ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor",
  .forms = Out, .types = ctc_types, .infer = infer_ctc_backward, .kernels = {{Cpu, k_ctc_backward}},
  .non_differentiable = true, .shard = {"replicate"}, .doc = "Gradient of _ctc_loss in the input of a preceding log-softmax.",
  .samples = [](SampleGen& s) {
      Tensor p = log_probs(s, {4, 2, 3}), t = s.make({2, 2}, range(1, 2), kLong);
      auto [loss, alpha] = _ctc_loss(p, t, Ints{4, 3}, Ints{2, 1});
      s(s.t({2}), p, t, Ints{4, 3}, Ints{2, 1}, loss, alpha, 0); }),
OP("_ctc_loss_backward.Tensor(Tensor grad, Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor",
  .types = ctc_types, .infer = infer_ctc_backward, .kernels = {{Cpu, k_ctc_backward}},
  .non_differentiable = true, .shard = {"replicate"}, .doc = "_ctc_loss_backward with the lengths in tensors.",
  .samples = [](SampleGen& s) {
      Tensor p = log_probs(s, {4, 2, 3}), t = s.make({2, 2}, range(1, 2), kLong);
      auto [loss, alpha] = _ctc_loss(p, t, Ints{4, 3}, Ints{2, 1});
      s(s.t({2}), p, t, two(4, 3), two(2, 1), loss, alpha, 0); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(ctc, table)
