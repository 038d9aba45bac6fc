// Reductions over dims. The kernels take (outer, reduced, inner); other layouts are brought into that form first.
#include <algorithm>
#include <limits>

#include "core/storage.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/elem.h"
#include "kernels/cpu/reduce.h"
#include "ops/infer.h"
#include "ops/reduce_grad.h"
#include "ops/reduce_layout.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;
using cpu::ReduceOp;

// sum, prod: bool and integers give int64 unless a dtype is named.
DType accumulate_result(const Args& a, int dtype_at) {
  DType t = a.tensor(0).dtype();
  return a.dtype(dtype_at, is_integral(t, true) ? kLong : t);
}

void infer_dims(InferCtx& c, const Value& dims, bool keepdim, DType dtype) {
  c.out(0, reduce_sizes(c.sizes(0), reduced_dims(c, dims, c.dim(0)), keepdim), dtype, c.tensor(0).device());
}
void infer_sum(InferCtx& c) { infer_dims(c, c.value(1), c.flag(2), accumulate_result(c, 3)); }
void infer_mean(InferCtx& c) {
  DType t = c.dtype(3, c.dtype_of(0));
  VESTA_CHECK_AS(TypeError, is_floating_point(t) || is_complex(t), c.name(), ": expected a floating or complex dtype, got ", dtype_name(t),
                 "; pass dtype to choose one");
  infer_dims(c, c.value(1), c.flag(2), t);
}

// Complex sums run over the real view: (outer, reduced, inner * 2).
void run_sum(const Tensor& in, const Value& dims, const Args& a, Tensor& out, double scale) {
  Tensor t = in.dtype() == out.dtype() || is_integral(in.dtype(), true) ? in : in.to(out.dtype());
  if (is_integral(t.dtype(), true) && out.dtype() != kLong) t = t.to(out.dtype());
  auto list = wrapped_dims(a, dims, t.dim());
  cpu::ReduceShape inner, outer;
  if (is_floating_point(t.dtype()) && t.dtype() == out.dtype() && two_runs(t, list, inner, outer)) {
    cpu::Elem e = cpu::elem_of(t.dtype()), acc = cpu::accumulate_type(e);
    Tensor partial = empty_cpu({inner.outer * inner.inner}, acc == cpu::Elem::F64 ? kDouble : kFloat);
    cpu::reduce(ReduceOp::Sum, e, t.data_ptr(), inner, partial.data_ptr(), acc, 1);
    if (e == acc) return cpu::reduce(ReduceOp::Sum, acc, partial.data_ptr(), outer, out.data_ptr(), e, scale);
    Tensor wide = empty_cpu(out.sizes(), kFloat);
    cpu::reduce(ReduceOp::Sum, acc, partial.data_ptr(), outer, wide.data_ptr(), acc, scale);
    return cpu::copy_elements(out, wide);
  }
  ReduceLayout l = reduce_layout(t, list);
  if (is_complex(t.dtype())) {
    cpu::Elem real = t.dtype() == kComplexFloat ? cpu::Elem::F32 : cpu::Elem::F64;
    l.shape.inner *= 2;
    cpu::reduce(ReduceOp::Sum, real, l.data, l.shape, out.data_ptr(), real, scale);
    return;
  }
  if (is_integral(t.dtype(), true) && t.dtype() != kLong) {
    // Small integers requested as the result type (dtype=int32): sum in int64, then wrap.
    Tensor wide = empty_cpu(out.sizes(), kLong);
    cpu::reduce(ReduceOp::Sum, cpu::elem_of(t.dtype()), l.data, l.shape, wide.data_ptr(), cpu::Elem::I64, scale);
    cpu::copy_elements(out, wide);
    return;
  }
  cpu::reduce(ReduceOp::Sum, cpu::elem_of(t.dtype()), l.data, l.shape, out.data_ptr(), cpu::elem_of(out.dtype()), scale);
}
void k_sum(const KernelCtx& k) { run_sum(k.tensor(0), k.value(1), k, k.out(), 1); }
void k_mean(const KernelCtx& k) {
  int64_t n = 1;
  for (int64_t d : wrapped_dims(k, k.value(1), k.tensor(0).dim())) n *= k.tensor(0).size(d);
  run_sum(k.tensor(0), k.value(1), k, k.out(), n ? 1.0 / double(n) : std::numeric_limits<double>::quiet_NaN());
  if (n == 0) cpu::fill_elements(k.out(), Scalar(std::numeric_limits<double>::quiet_NaN()));
}

constexpr OpDef table[] = {
OP("sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results { return sum(a.tensor(0), OptionalIntArrayRef(), false, a.has(1) ? std::optional(DType(a.integer(1))) : std::nullopt); },
  .shard = {"red-sum"}, .doc = "Sum of all elements.",
  .samples = [](SampleGen& s) { s.unary(s.shapes()); }),
OP("sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_sum, .kernels = {{Cpu, k_sum}},
  .vjp = [](const Grad& g) { return grads(G(0) { return unreduce(g, g.dy(), g.sizes(0), g.value(1), g.flag(2)); }); },
  .shard = {"red-sum"}, .doc = "Sum over dims (all where None). Bool and integers give int64; half types accumulate in float32.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), std::vector<int64_t>{0}); s(s.t({2, 3, 4}), std::vector<int64_t>{0, -1}, true); s(s.t({0, 3}), std::vector<int64_t>{0}); s(s.t({}), std::vector<int64_t>{}); }),
OP("mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results { return mean(a.tensor(0), OptionalIntArrayRef(), false, a.has(1) ? std::optional(DType(a.integer(1))) : std::nullopt); },
  .shard = {"red-avg"}, .doc = "Mean of all elements; NaN for none.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s.unary({{}, {5}, {3, 4}}); }),
OP("mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_mean, .kernels = {{Cpu, k_mean}},
  .vjp = [](const Grad& g) { return grads(G(0) {
      double n = 1;
      for (int64_t d : wrapped_dims(g, g.value(1), int64_t(g.sizes(0).size()))) n *= double(g.sizes(0)[size_t(d)]);
      return unreduce(g, g.dy() / n, g.sizes(0), g.value(1), g.flag(2)); }); },
  .shard = {"red-avg"}, .doc = "Mean over dims (all where None).",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { s(s.t({3, 4}), std::vector<int64_t>{0}); s(s.t({2, 3, 4}), std::vector<int64_t>{0, -1}, true); } }),
OP("sum_to_size(Tensor self, int[] size) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      const Tensor& t = a.tensor(0);
      IntArrayRef want = a.ints(1);
      if (t.sizes() == want && !(want.empty() && is_integral(t.dtype(), true))) return t;
      VESTA_CHECK(int64_t(want.size()) <= t.dim(), "sum_to_size: expected at most ", t.dim(), " dims, got ", want.size());
      std::vector<int64_t> dims;
      int64_t lead = t.dim() - int64_t(want.size());
      for (int64_t d = 0; d < t.dim(); ++d) {
        if (d < lead) { dims.push_back(d); continue; }
        SymInt have(t.sizes()[size_t(d)]), wanted(want[size_t(d - lead)]);
        if (have == wanted) continue;
        VESTA_CHECK(wanted == 1, "sum_to_size: size ", have.str(), " at dim ", d, " cannot be summed to ", wanted.str());
        dims.push_back(d);
      }
      Tensor r = dims.empty() && !want.empty() ? t : sum(t, dims, true);
      return lead > 0 ? r.view(want) : r; },
  .shard = {"decomp"}, .doc = "Sums the dims that broadcasting from `size` would have repeated.",
  .samples = [](SampleGen& s) { s(s.t({2, 3, 4}), std::vector<int64_t>{3, 1}); s(s.t({3, 4}), std::vector<int64_t>{}); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(reduce, table)
