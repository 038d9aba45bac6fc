// Gradients of reductions as operators of their own, where a chain of public ones would pass over memory several times.
// `grad` has the reduced dims with size 1.
#include "kernels/cpu/reduce_backward.h"

#include "kernels/cpu/copy.h"
#include "kernels/cpu/elem.h"
#include "ops/infer.h"
#include "ops/reduce_layout.h"

namespace vesta {
namespace {

using namespace op_block;

void check_reduced(const InferCtx& c, const std::vector<bool>& reduced) {
  VESTA_CHECK(c.sizes(0) == ArrayRef<SymInt>(reduce_sizes(c.sizes(1), reduced, true)), c.name(), ": expected grad with self's sizes, 1 in the reduced dims");
}

// ---- variance: grad, self, dim, correction ----
double var_scale(const Args& a, IntArrayRef sizes) {
  double n = 1;
  for (int64_t d : wrapped_dims(a, a.value(2), int64_t(sizes.size()))) n *= double(sizes[size_t(d)]);
  return 2 / (n - a.number(3));
}
void infer_var_backward(InferCtx& c) {
  check_reduced(c, reduced_dims(c, c.value(2), c.dim(1)));
  c.out(0, c.sizes(1), c.dtype_of(1), c.tensor(1).device());
}
void k_var_backward(const KernelCtx& k) {
  Tensor x = k.tensor(1).contiguous(), grad = k.tensor(0).contiguous();
  if (x.numel() == 0) return;
  std::vector<int64_t> dims = wrapped_dims(k, k.value(2), x.dim());
  double scale = var_scale(k, x.sizes());
  ReduceLayout l = reduce_layout(x, dims);
  if (l.data == x.data_ptr()) {
    cpu::var_backward(cpu::elem_of(x.dtype()), grad.data_ptr(), l.data, k.out().data_ptr(), l.shape, scale);
    return;
  }
  // Reduced dims with others between them: composed; half types in float32, since the rounded mean would dominate.
  if (x.dtype() == kHalf || x.dtype() == kBFloat16) x = x.to(kFloat), grad = grad.to(kFloat);
  cpu::copy_elements(k.out(), (x - x.mean(dims, true)) * (grad * scale));
}

// ---- product: grad, self, dim ----
void infer_prod_backward(InferCtx& c) {
  std::vector<bool> reduced(size_t(c.dim(1)), false);
  int64_t d = c.wrap_dim(c.integer(2), c.dim(1));
  if (!reduced.empty()) reduced[size_t(d)] = true;
  check_reduced(c, reduced);
  c.out(0, c.sizes(1), c.dtype_of(1), c.tensor(1).device());
}
void k_prod_backward(const KernelCtx& k) {
  Tensor x = k.tensor(1).contiguous(), grad = k.tensor(0).contiguous();
  cpu::ReduceShape s;
  int64_t at = wrap_dim(k, k.integer(2), x.dim());
  for (int64_t d = 0; d < x.dim(); ++d) (d < at ? s.outer : d == at ? s.reduced : s.inner) *= x.size(d);
  cpu::prod_backward(cpu::elem_of(x.dtype()), grad.data_ptr(), x.data_ptr(), k.out().data_ptr(), s);
}

constexpr OpDef table[] = {
OP("_var_backward(Tensor grad, Tensor self, int[]? dim, float correction) -> Tensor",
  .types = same_float, .infer = infer_var_backward, .kernels = {{Cpu, k_var_backward}},
  .save = {in(0).if_needs(1), in(1).if_needs(0)},
  .vjp = [](const Grad& g) {
      std::vector<int64_t> dims = wrapped_dims(g, g.value(2), int64_t(g.sizes(1).size()));
      return grads(
          G(0) {
            Tensor x = g.in(1);
            if (x.dim() == 0) return g.dy() * (x - x) * var_scale(g, g.sizes(1));
            return (g.dy() * (x - x.mean(dims, true))).sum(dims, true) * var_scale(g, g.sizes(1)); },
          // Centring is symmetric: its transpose is itself.
          G(1) { return _var_backward(g.in(0), g.dy(), OptionalIntArrayRef(dims), g.number(3)); }); },
  .shard = {"red-nonlin"}, .doc = "Gradient of var: grad * 2 / (n - correction) * (self - mean) over dims (all where None).",
  .samples = [](SampleGen& s) {
      s(s.t({3, 1}), s.t({3, 4}), std::vector<int64_t>{1}, 1.0);
      s(s.t({1, 4}), s.t({3, 4}), std::vector<int64_t>{0}, 0.0);
      s(s.t({1, 3, 1}), s.t({2, 3, 4}), std::vector<int64_t>{0, -1}, 1.0);
      s(s.t({1, 1}), s.t({3, 4}), std::nullopt, 1.0); }),
OP("_prod_backward(Tensor grad, Tensor self, int dim) -> Tensor",
  .types = same_float, .infer = infer_prod_backward, .kernels = {{Cpu, k_prod_backward}},
  .non_differentiable = true,  // prod's own second derivatives are composed
  .shard = {"red-prod"}, .doc = "Gradient of prod: grad * the product of all other elements along dim, exact for zeros.",
  .samples = [](SampleGen& s) {
      s(s.t({3, 1}), s.t({3, 4}), 1);
      s(s.t({1, 4}), s.t({3, 4}), 0);
      s(s.t({2, 1, 4}), s.t({2, 3, 4}), -2); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(reduce_backward, table)
