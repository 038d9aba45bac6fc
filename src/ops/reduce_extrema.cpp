// Reductions that pick: amax, amin, max, min, argmax, argmin, aminmax, and the logical any and all.
#include <algorithm>

#include "core/registry.h"
#include "core/storage.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/elem.h"
#include "kernels/cpu/reduce.h"
#include "ops/infer.h"
#include "ops/reduce_grad.h"
#include "ops/reduce_layout.h"

namespace vesta {
namespace {

using namespace op_block;
using cpu::ReduceOp;

constexpr TypeRule ordered_types{types::kIntMask | types::kFloatMask | types::kBoolMask, Promote::None};

void check_ordered(const Args& a, const Tensor& t) {
  VESTA_CHECK_AS(TypeError, !is_complex(t.dtype()), a.name(), ": complex numbers have no order");
}
// A reduced dim of size 0 has no extremum; other empty inputs give empty results.
void check_not_empty(const Args& a, const Value& dims, bool all_if_none) {
  const Tensor& t = a.tensor(0);
  if (all_if_none && (dims.is_none() || (dims.kind == ValueKind::IntList && dims.length == 0))) {
    for (auto s : InferCtx::sizes_of(t)) VESTA_CHECK(!(s == 0), a.name(), ": an empty tensor needs a dim of size > 0 to reduce");
    return;
  }
  for (int64_t d : wrapped_dims(a, dims, t.dim()))
    VESTA_CHECK_AS(IndexError, !(InferCtx::sizes_of(t)[size_t(d)] == 0), a.name(), ": dim ", d, " has size 0: there is no extremum");
}

void infer_extremum(InferCtx& c) {
  check_ordered(c, c.tensor(0));
  check_not_empty(c, c.value(1), true);
  c.out(0, reduce_sizes(c.sizes(0), reduced_dims(c, c.value(1), c.dim(0)), c.flag(2)), c.dtype_of(0), c.tensor(0).device());
}
void run_extremum(const KernelCtx& k, ReduceOp op) {
  if (k.out().numel() == 0) return;
  ReduceLayout l = reduce_layout(k.tensor(0), wrapped_dims(k, k.value(1), k.tensor(0).dim()));
  cpu::Elem e = cpu::elem_of(k.tensor(0).dtype());
  cpu::reduce(op, e, l.data, l.shape, k.out().data_ptr(), e);
}
void k_amax(const KernelCtx& k) { run_extremum(k, ReduceOp::Max); }
void k_amin(const KernelCtx& k) { run_extremum(k, ReduceOp::Min); }

void infer_arg(InferCtx& c) {
  check_ordered(c, c.tensor(0));
  check_not_empty(c, c.value(1), true);
  c.out(0, reduce_sizes(c.sizes(0), reduced_dims(c, c.value(1), c.dim(0)), c.flag(2)), kLong, c.tensor(0).device());
}
void run_arg(const KernelCtx& k, bool largest) {
  if (k.out().numel() == 0) return;
  ReduceLayout l = reduce_layout(k.tensor(0), wrapped_dims(k, k.value(1), k.tensor(0).dim()));
  cpu::arg_reduce(largest, cpu::elem_of(k.tensor(0).dtype()), l.data, l.shape, k.out().data_ptr<int64_t>(), nullptr);
}
void infer_dim_pair(InferCtx& c) {
  check_ordered(c, c.tensor(0));
  check_not_empty(c, c.value(1), false);
  auto sizes = reduce_sizes(c.sizes(0), reduced_dims(c, c.value(1), c.dim(0)), c.flag(2));
  c.out(0, sizes, c.dtype_of(0), c.tensor(0).device());
  c.out(1, sizes, kLong, c.tensor(0).device());
}
void run_dim_pair(const KernelCtx& k, bool largest) {
  if (k.out().numel() == 0) return;
  ReduceLayout l = reduce_layout(k.tensor(0), wrapped_dims(k, k.value(1), k.tensor(0).dim()));
  cpu::arg_reduce(largest, cpu::elem_of(k.tensor(0).dtype()), l.data, l.shape, k.out(1).data_ptr<int64_t>(), k.out(0).data_ptr());
}
void infer_aminmax(InferCtx& c) {
  check_ordered(c, c.tensor(0));
  check_not_empty(c, c.value(1), true);
  auto sizes = reduce_sizes(c.sizes(0), reduced_dims(c, c.value(1), c.dim(0)), c.flag(2));
  // A 0-dim tensor with a dim counts as 1-dim here, and keepdim keeps that dim.
  if (c.dim(0) == 0 && c.has(1) && c.flag(2)) sizes = {SymInt(1)};
  for (int j = 0; j < 2; ++j) c.out(j, sizes, c.dtype_of(0), c.tensor(0).device());
}
void k_aminmax(const KernelCtx& k) {
  if (k.out().numel() == 0) return;
  ReduceLayout l = reduce_layout(k.tensor(0), wrapped_dims(k, k.value(1), k.tensor(0).dim()));
  cpu::Elem e = cpu::elem_of(k.tensor(0).dtype());
  cpu::reduce(ReduceOp::Min, e, l.data, l.shape, k.out(0).data_ptr(), e);
  cpu::reduce(ReduceOp::Max, e, l.data, l.shape, k.out(1).data_ptr(), e);
}

// ---- any, all: uint8 in, uint8 out; otherwise bool ----
void infer_logical(InferCtx& c) {
  bool keep = c.op().num_args > 2 && c.flag(2);
  Value dims = c.op().num_args > 1 ? c.value(1) : Value();
  // An empty list of dims reduces nothing here, other than in sum.
  std::vector<bool> reduced = dims.kind == ValueKind::IntList && dims.length == 0 ? std::vector<bool>(size_t(c.dim(0)), false) : reduced_dims(c, dims, c.dim(0));
  c.out(0, reduce_sizes(c.sizes(0), reduced, keep), c.dtype_of(0) == kUInt8 ? kUInt8 : kBool, c.tensor(0).device());
}
void run_logical(const KernelCtx& k, ReduceOp op) {
  Tensor t = is_complex(k.tensor(0).dtype()) ? k.tensor(0).to(kBool) : k.tensor(0);
  Value dims = k.op().num_args > 1 ? k.value(1) : Value();
  std::vector<int64_t> list;
  if (!(dims.kind == ValueKind::IntList && dims.length == 0)) list = wrapped_dims(k, dims, t.dim());
  if (k.out().numel() == 0) return;
  ReduceLayout l = reduce_layout(t, list);
  cpu::reduce(op, cpu::elem_of(t.dtype()), l.data, l.shape, k.out().data_ptr(), cpu::Elem::Bool);
}
void k_any(const KernelCtx& k) { run_logical(k, ReduceOp::Any); }
void k_all(const KernelCtx& k) { run_logical(k, ReduceOp::All); }

int vjp_ties(const Grad& g) { return grads(G(0) { return spread_over_ties(g, g.dy(), g.in(0), g.out(), g.value(1), g.flag(2)); }); }
int vjp_all_ties(const Grad& g) { return grads(G(0) { return spread_over_ties(g, g.dy(), g.in(0), g.out(), Value(), false); }); }
int vjp_chosen(const Grad& g) {
  return grads(G(0) { return value_selecting_reduction_backward(g.dy(), g.integer(1), g.out(1), g.sizes(0), g.flag(2)); });
}
void dim_samples(SampleGen& s) {
  if (is_complex(s.dtype())) return;
  s(s.t({3, 4}), 0);
  s(s.t({2, 3, 4}), -2, true);
  s(s.t({}), 0);
}
void dims_samples(SampleGen& s) {
  if (is_complex(s.dtype())) return;
  s(s.t({3, 4}), std::vector<int64_t>{0});
  s(s.t({2, 3, 4}), std::vector<int64_t>{0, -1}, true);
  s(s.t({5}), std::vector<int64_t>{});
}
void whole_samples(SampleGen& s) { if (!is_complex(s.dtype())) s.unary({{}, {5}, {3, 4}}); }
void logical_samples(SampleGen& s) { s.unary({{3, 4}, {2, 3, 4}}, {}, 1); s.unary({{0, 3}, {3, 0}}, {}, 0, true); }

constexpr OpDef table[] = {
OP("amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
  .forms = Out, .types = ordered_types, .infer = infer_extremum, .kernels = {{Cpu, k_amax}}, .save = {in(0), out(0)}, .vjp = vjp_ties,
  .shard = {"red-max"}, .doc = "Largest element over dims (all where empty); NaN wins. Gradients spread evenly over ties.", .samples = dims_samples),
OP("amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
  .forms = Out, .types = ordered_types, .infer = infer_extremum, .kernels = {{Cpu, k_amin}}, .save = {in(0), out(0)}, .vjp = vjp_ties,
  .shard = {"red-min"}, .doc = "Smallest element over dims (all where empty); NaN wins. Gradients spread evenly over ties.", .samples = dims_samples),
OP("max(Tensor self) -> Tensor",
  .forms = Out, .types = ordered_types, .decompose = [](const Args& a) -> Results { return amax(a.tensor(0)); }, .save = {in(0), out(0)}, .vjp = vjp_all_ties,
  .shard = {"red-max"}, .doc = "Largest of all elements; ValueError for none.", .samples = whole_samples),
OP("min(Tensor self) -> Tensor",
  .forms = Out, .types = ordered_types, .decompose = [](const Args& a) -> Results { return amin(a.tensor(0)); }, .save = {in(0), out(0)}, .vjp = vjp_all_ties,
  .shard = {"red-min"}, .doc = "Smallest of all elements; ValueError for none.", .samples = whole_samples),
OP("max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
  .forms = Out, .types = ordered_types, .infer = infer_dim_pair, .kernels = {{Cpu, [](const KernelCtx& k) { run_dim_pair(k, true); }}}, .save = {out(1)}, .vjp = vjp_chosen,
  .non_diff_outputs = 2, .shard = {"red-idx"}, .doc = "Largest element over a dim and its index: the first of equal ones, the first NaN.", .samples = dim_samples),
OP("min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
  .forms = Out, .types = ordered_types, .infer = infer_dim_pair, .kernels = {{Cpu, [](const KernelCtx& k) { run_dim_pair(k, false); }}}, .save = {out(1)}, .vjp = vjp_chosen,
  .non_diff_outputs = 2, .shard = {"red-idx"}, .doc = "Smallest element over a dim and its index: the first of equal ones, the first NaN.", .samples = dim_samples),
OP("max.other(Tensor self, Tensor other) -> Tensor",
  .forms = Out, .types = any_types, .decompose = [](const Args& a) -> Results { return maximum(a.tensor(0), a.tensor(1)); },
  .shard = {"pw-max"}, .doc = "maximum.", .samples = [](SampleGen& s) { if (!is_complex(s.dtype())) s(s.t({3, 4}), s.t({4})); }),
OP("min.other(Tensor self, Tensor other) -> Tensor",
  .forms = Out, .types = any_types, .decompose = [](const Args& a) -> Results { return minimum(a.tensor(0), a.tensor(1)); },
  .shard = {"pw-min"}, .doc = "minimum.", .samples = [](SampleGen& s) { if (!is_complex(s.dtype())) s(s.t({3, 4}), s.t({4})); }),
OP("value_selecting_reduction_backward(Tensor grad, int dim, Tensor indices, int[] sizes, bool keepdim) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      Tensor full = zeros({}, a.tensor(0).options()).expand(a.ints(3)), grad = a.tensor(0), index = a.tensor(2);
      if (full.dim() == 0) return grad.reshape({});
      if (!a.flag(4)) grad = grad.unsqueeze(a.integer(1)), index = index.unsqueeze(a.integer(1));
      return full.scatter(a.integer(1), index, grad); },
  .shard = Shard::replicate(), .doc = "Gradient of max.dim and its kin: grad at the chosen index.",
  .samples = [](SampleGen& s) { s(s.t({4}), 0, s.index({4}, 3), std::vector<int64_t>{3, 4}, false); }),
OP("argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
  .forms = Out, .types = ordered_types, .infer = infer_arg, .kernels = {{Cpu, [](const KernelCtx& k) { run_arg(k, true); }}}, .non_differentiable = true,
  .shard = {"red-idx"}, .doc = "Index of the largest element over a dim (of all where None): the first of equal ones, the first NaN.", .samples = dim_samples),
OP("argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
  .forms = Out, .types = ordered_types, .infer = infer_arg, .kernels = {{Cpu, [](const KernelCtx& k) { run_arg(k, false); }}}, .non_differentiable = true,
  .shard = {"red-idx"}, .doc = "Index of the smallest element over a dim (of all where None): the first of equal ones, the first NaN.", .samples = dim_samples),
OP("aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
  .forms = Out, .types = ordered_types, .infer = infer_aminmax, .kernels = {{Cpu, k_aminmax}}, .save = {in(0), out(0), out(1)},
  .vjp = [](const Grad& g) { return grads(G(0) {
      Tensor lo = g.dy(0), hi = g.dy(1), total;
      if (lo.defined()) total = spread_over_ties(g, lo, g.in(0), g.out(0), g.value(1), g.flag(2));
      if (hi.defined()) { Tensor t = spread_over_ties(g, hi, g.in(0), g.out(1), g.value(1), g.flag(2)); total = total.defined() ? total + t : t; }
      return total; }); },
  .shard = {"red-nonlin"}, .doc = "Smallest and largest element over a dim (of all where None).", .samples = dim_samples),
OP("_aminmax(Tensor self) -> (Tensor, Tensor)",
  .types = ordered_types, .decompose = [](const Args& a) -> Results { return aminmax(a.tensor(0)); }, .non_differentiable = true,
  .shard = {"red-nonlin"}, .doc = "aminmax over all elements.", .samples = whole_samples),
OP("_aminmax.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)",
  .types = ordered_types, .decompose = [](const Args& a) -> Results { return aminmax(a.tensor(0), a.integer(1), a.flag(2)); }, .non_differentiable = true,
  .shard = {"red-nonlin"}, .doc = "aminmax over a dim.", .samples = dim_samples),
OP("any(Tensor self) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_logical, .kernels = {{Cpu, k_any}}, .non_differentiable = true,
  .shard = {"red-bool"}, .doc = "Whether an element is not 0 (NaN is not 0).", .samples = [](SampleGen& s) { s.unary(s.shapes()); }),
OP("any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_logical, .kernels = {{Cpu, k_any}}, .non_differentiable = true,
  .shard = {"red-bool"}, .doc = "any over a dim.", .samples = logical_samples),
OP("any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_logical, .kernels = {{Cpu, k_any}}, .non_differentiable = true,
  .shard = {"red-bool"}, .doc = "any over dims: all where None, none where empty.", .samples = [](SampleGen& s) { s(s.t({2, 3, 4}), std::vector<int64_t>{0, 2}); }),
OP("all(Tensor self) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_logical, .kernels = {{Cpu, k_all}}, .non_differentiable = true,
  .shard = {"red-bool"}, .doc = "Whether no element is 0.", .samples = [](SampleGen& s) { s.unary(s.shapes()); }),
OP("all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_logical, .kernels = {{Cpu, k_all}}, .non_differentiable = true,
  .shard = {"red-bool"}, .doc = "all over a dim.", .samples = logical_samples),
OP("all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_logical, .kernels = {{Cpu, k_all}}, .non_differentiable = true,
  .shard = {"red-bool"}, .doc = "all over dims: all where None, none where empty.", .samples = [](SampleGen& s) { s(s.t({2, 3, 4}), std::vector<int64_t>{0, 2}); }),
OP("_is_all_true(Tensor self) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) -> Results {
      VESTA_CHECK_AS(TypeError, a.tensor(0).dtype() == kBool, "_is_all_true: expected bool, got ", dtype_name(a.tensor(0).dtype()));
      return a.tensor(0).all(); },
  .non_differentiable = true, .shard = {"red-bool"}, .doc = "all of a bool tensor.", .samples = [](SampleGen& s) { if (s.dtype() == kBool) s(s.t({3})); }),
OP("_is_any_true(Tensor self) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) -> Results {
      VESTA_CHECK_AS(TypeError, a.tensor(0).dtype() == kBool, "_is_any_true: expected bool, got ", dtype_name(a.tensor(0).dtype()));
      return a.tensor(0).any(); },
  .non_differentiable = true, .shard = {"red-bool"}, .doc = "any of a bool tensor.", .samples = [](SampleGen& s) { if (s.dtype() == kBool) s(s.t({3})); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(reduce_extrema, table)
