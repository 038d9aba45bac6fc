// Softmax and log-softmax over one dim, with fused forward and backward kernels.
#include "kernels/cpu/copy.h"
#include "kernels/cpu/softmax.h"
#include "ops/infer.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

cpu::SoftmaxShape softmax_shape(const Args& a, const Tensor& t, int64_t dim) {
  cpu::SoftmaxShape s;
  int64_t d = wrap_dim(a, dim, t.dim());
  for (int64_t e = 0; e < t.dim(); ++e) (e < d ? s.outer : e == d ? s.dim : s.inner) *= t.size(e);
  return s;
}

void infer_softmax(InferCtx& c) {
  c.wrap_dim(c.integer(1), c.dim(0));
  VESTA_CHECK_AS(TypeError, !c.flag(2) || c.dtype_of(0) == kHalf, c.name(), ": half_to_float needs a float16 tensor, got ", dtype_name(c.dtype_of(0)));
  c.out(0, c.sizes(0), c.flag(2) ? kFloat : c.dtype_of(0), c.tensor(0).device());
}
template <bool log>
void k_softmax(const KernelCtx& k) {
  Tensor x = k.flag(2) ? k.tensor(0).to(kFloat) : k.tensor(0).contiguous();
  cpu::softmax_forward(cpu::elem_of(x.dtype()), x.data_ptr(), k.out().data_ptr(), softmax_shape(k, x, k.integer(1)), log);
}
void k_safe_softmax(const KernelCtx& k) {
  Tensor x = k.tensor(0).contiguous();
  cpu::softmax_forward(cpu::elem_of(x.dtype()), x.data_ptr(), k.out().data_ptr(), softmax_shape(k, x, k.integer(1)), false, true);
}
void infer_safe_softmax(InferCtx& c) {
  c.wrap_dim(c.integer(1), c.dim(0));
  c.out(0, c.sizes(0), c.dtype_of(0), c.tensor(0).device());
}
void infer_softmax_backward(InferCtx& c) {
  VESTA_CHECK(c.sizes(0) == c.sizes(1), c.name(), ": grad_output and output differ in shape");
  c.wrap_dim(c.integer(2), c.dim(0));
  c.out(0, c.sizes(0), DType(c.integer(3)), c.tensor(0).device());
}
template <bool log>
void k_softmax_backward(const KernelCtx& k) {
  Tensor dy = k.tensor(0).contiguous(), y = k.tensor(1).contiguous();
  bool same = k.out().dtype() == y.dtype();
  Tensor dx = same ? k.out() : empty_like(y);
  cpu::softmax_backward(cpu::elem_of(y.dtype()), dy.data_ptr(), y.data_ptr(), dx.data_ptr(), softmax_shape(k, y, k.integer(2)), log);
  if (!same) cpu::copy_elements(k.out(), dx);
}

Tensor with_dtype(const Args& a, int dtype_at) {
  return a.has(dtype_at) ? a.tensor(0).to(DType(a.integer(dtype_at))) : a.tensor(0);
}

constexpr OpDef table[] = {
OP("_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
  .forms = Out, .types = same_float, .infer = infer_softmax, .kernels = {{Cpu, k_softmax<false>}},
  .save = {out(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return _softmax_backward_data(g.dy(), g.out(), g.integer(1), g.dtype_of(0)); }); },
  .shard = {"softmax"}, .doc = "exp(self - max) / sum over dim; half_to_float gives a float32 result of float16.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), 1, false); s(s.t({2, 3, 4}), 1, false); s(s.t({}), 0, false); s(s.t({0, 3}), -1, false); s(s.t({4, 3}).transpose(0, 1), -1, false); }),
OP("_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
  .forms = Out, .types = same_float, .infer = infer_softmax_backward, .kernels = {{Cpu, k_softmax_backward<false>}},
  .save = {in(0).if_needs(1), in(1)},
  .vjp = [](const Grad& g) {
      Tensor d = g.dy().to(g.dtype_of(0)), y = g.in(1);
      int64_t dim = g.integer(2);
      return grads(
          G(0) { return _softmax_backward_data(d, y, dim, y.dtype()); },
          G(1) { Tensor dy = g.in(0); return d * (dy - (dy * y).sum({dim}, true)) - dy * (d * y).sum({dim}, true); }); },
  .shard = {"softmax"}, .doc = "output * (grad_output - sum(grad_output * output)).",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4}, range(0, 1)), 1, s.dtype()); s(s.t({2, 3, 4}), s.t({2, 3, 4}, range(0, 1)), 0, s.dtype()); }),
OP("softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
  .forms = Out, .types = any_types,
  .decompose = [](const Args& a) -> Results { return _softmax(with_dtype(a, 2), a.integer(1), false); },
  .shard = {"softmax"}, .doc = "Softmax over dim, after a cast to dtype if given.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { s(s.t({3, 4}), -1); s(s.t({3, 4}), 0, kDouble); } }),
OP("_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
  .forms = Out, .types = same_float, .infer = infer_softmax, .kernels = {{Cpu, k_softmax<true>}},
  .save = {out(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return _log_softmax_backward_data(g.dy(), g.out(), g.integer(1), g.dtype_of(0)); }); },
  .shard = {"softmax"}, .doc = "self - logsumexp(self) over dim.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), 1, false); s(s.t({2, 3, 4}), 1, false); s(s.t({}), 0, false); s(s.t({0, 3}), -1, false); }),
OP("_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
  .forms = Out, .types = same_float, .infer = infer_softmax_backward, .kernels = {{Cpu, k_softmax_backward<true>}},
  .save = {in(0).if_needs(1), in(1)},
  .vjp = [](const Grad& g) {
      Tensor d = g.dy().to(g.dtype_of(0)), p = exp(g.in(1));
      int64_t dim = g.integer(2);
      return grads(
          G(0) { return d - (d * p).sum({dim}, true); },
          G(1) { return -(d * p) * g.in(0).sum({dim}, true); }); },
  .shard = {"softmax"}, .doc = "grad_output - exp(output) * sum(grad_output).",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4}, range(-2, 0)), 1, s.dtype()); s(s.t({2, 3, 4}), s.t({2, 3, 4}, range(-2, 0)), 0, s.dtype()); }),
OP("log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
  .forms = Out, .types = any_types,
  .decompose = [](const Args& a) -> Results { return _log_softmax(with_dtype(a, 2), a.integer(1), false); },
  .shard = {"softmax"}, .doc = "Logarithm of softmax over dim, after a cast to dtype if given.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { s(s.t({3, 4}), -1); s(s.t({3, 4}), 0, kDouble); } }),
OP("_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
  .types = any_types,
  .infer = [](InferCtx& c) { infer_safe_softmax(c); if (c.has(2)) c.meta(0).dtype = DType(c.integer(2)); },
  .kernels = {{Cpu, [](const KernelCtx& k) {
      if (!k.has(2) || DType(k.integer(2)) == k.tensor(0).dtype()) return k_safe_softmax(k);
      Tensor x = k.tensor(0).to(DType(k.integer(2))).contiguous();
      cpu::softmax_forward(cpu::elem_of(x.dtype()), x.data_ptr(), k.out().data_ptr(), softmax_shape(k, x, k.integer(1)), false, true); }}},
  .save = {out(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return _softmax_backward_data(g.dy(), g.out(), g.integer(1), g.out().dtype()); }); },
  .shard = {"softmax"}, .doc = "Softmax that gives 0 where all elements are -inf.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({3, 4}), -1); }),
OP("special_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results { return _softmax(with_dtype(a, 2), a.integer(1), false); },
  .shard = {"softmax"}, .doc = "softmax.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({3, 4}), -1); }),
OP("special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results { return _log_softmax(with_dtype(a, 2), a.integer(1), false); },
  .shard = {"softmax"}, .doc = "log_softmax.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({3, 4}), -1); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(softmax, table)
