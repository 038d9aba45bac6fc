// Norms made of others: batch norm under PyTorch's functional names, renorm, and weight norm.
#include "ops/infer.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

bool is_half(DType t) { return t == kHalf || t == kBFloat16; }

// ---- batch norm under other names ----
Results batch_norm_of(const Args& a, const Tensor& mean, const Tensor& var, bool training, double momentum, double eps) {
  return native_batch_norm(a.tensor(0), a.tensor(1), a.tensor(2), mean, var, training, momentum, eps);
}
// The fourth result is memory that some backends keep for backward; here none is needed.
Results with_reserve(const Args& a, bool training) {
  auto [y, mean, rstd] = native_batch_norm(a.tensor(0), a.tensor(1), a.tensor(2), a.tensor(3), a.tensor(4), training, a.number(5), a.number(6));
  return {y, mean, rstd, empty({0}, TensorOptions(kByte).device(y.device()))};
}

// ---- renorm ----
Results renorm_of(const Args& a) {
  const Tensor& self = a.tensor(0);
  VESTA_CHECK(self.dim() >= 2, a.name(), ": expected an input with at least 2 dims, got ", self.dim());
  VESTA_CHECK_AS(TypeError, !is_integral(self.dtype(), true), a.name(), ": does not take ", dtype_name(self.dtype()), " tensors");
  Scalar p = a.scalar(1), most = a.scalar(3);
  VESTA_CHECK_AS(TypeError, !p.isComplex() && !most.isComplex(), a.name(), ": expected real numbers for p and maxnorm");
  VESTA_CHECK(p.toDouble() > 0, a.name(), ": expected a positive p, got ", p.str());
  VESTA_CHECK(most.toDouble() >= 0, a.name(), ": expected a maxnorm of at least 0, got ", most.str());
  int64_t dim = wrap_dim(a, a.integer(2), self.dim());
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (d != dim) dims.push_back(d);
  Tensor norm = linalg_vector_norm(self, p, dims, true, is_half(self.dtype()) ? std::optional(kFloat) : std::nullopt);
  // The 1e-7 is PyTorch's; rows at or below maxnorm keep their bits.
  Tensor factor = where(norm > most, reciprocal(norm + 1e-7) * most, ones({}, norm.options()));
  return self * (is_half(self.dtype()) ? factor.to(self.dtype()) : factor);
}

// ---- weight norm: w = v * (g / |v|), the norm over all dims but one ----
Tensor norm_except(const Args& a, const Tensor& v, int64_t p, int64_t dim) {
  VESTA_CHECK(v.dim() >= 1, a.name(), ": expected a tensor with at least 1 dim");
  if (dim == -1) return v.norm(p);
  VESTA_CHECK_AS(IndexError, dim >= 0 && dim < v.dim(), a.name(), ": expected a dim in [-1, ", v.dim() - 1, "], got ", dim);
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < v.dim(); ++d)
    if (d != dim) dims.push_back(d);
  if (dims.empty()) return v.abs();  // nothing is reduced
  return v.norm(p, dims, true);
}
void check_weight_norm(const Args& a, const Tensor& v, int64_t dim) {
  VESTA_CHECK(dim == 0 || dim == v.dim() - 1 || dim == -1, a.name(), ": expected the first or the last dim, got ", dim);
}
// d w / d v and d w / d g for grad_w: with u = v / |v|,
//   dg = sum(grad_w * u),  dv = g / |v| * (grad_w - u * sum(grad_w * u)).
Results weight_norm_backward(const Args& a) {
  const Tensor &dw = a.tensor(0), &v = a.tensor(1), &g = a.tensor(2), &norms = a.tensor(3);
  int64_t dim = a.integer(4);
  VESTA_CHECK(dim >= 0 && dim < v.dim(), a.name(), ": expected a dim in [0, ", v.dim() - 1, "], got ", dim);
  VESTA_CHECK(dw.sizes() == v.sizes(), a.name(), ": grad_w and saved_v differ in shape");
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < v.dim(); ++d)
    if (d != dim) dims.push_back(d);
  Tensor n = norms.to(v.dtype()), u = v / n, product = dw * u, along = dims.empty() ? product : product.sum(dims, true);
  return {(g / n) * (dw - u * along), along};
}

using Flags = std::vector<bool>;
constexpr OpDef table[] = {
OP("_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
  .types = any_types,
  .decompose = [](const Args& a) -> Results { return batch_norm_of(a, a.tensor(3), a.tensor(4), a.flag(5), a.number(6), a.number(7)); },
  .non_diff_outputs = 6,
  .shard = {"norm-batch"}, .doc = "native_batch_norm that says it writes the running statistics.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype()) && s.dtype() != kDouble) s(s.t({4, 3, 2}), s.t({3}), s.t({3}), s.make({3}, {}, kFloat), s.make({3}, range(0.5, 2), kFloat), false, 0.1, 1e-5); }),
OP("_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      VESTA_CHECK(a.flag(3), a.name(), ": without running statistics only training is possible");
      return batch_norm_of(a, Tensor(), Tensor(), true, a.number(4), a.number(5)); },
  .non_diff_outputs = 6,
  .shard = {"norm-batch"}, .doc = "native_batch_norm in training, without running statistics.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({4, 3, 2}), s.t({3}), s.t({3}), true, 0.1, 1e-5); }),
OP("_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
  .types = any_types,
  .decompose = [](const Args& a) -> Results { return batch_norm_of(a, a.tensor(3), a.tensor(4), false, a.number(5), a.number(6)); },
  .non_diff_outputs = 6,
  .shard = {"norm-batch"}, .doc = "native_batch_norm in evaluation.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype()) && s.dtype() != kDouble) s(s.t({4, 3, 2}), s.t({3}), s.t({3}), s.make({3}, {}, kFloat), s.make({3}, range(0.5, 2), kFloat), 0.1, 1e-5); }),
OP("_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)",
  .types = any_types,
  .decompose = [](const Args& a) -> Results { return with_reserve(a, true); },
  .non_diff_outputs = 14,
  .shard = {"norm-batch"}, .doc = "native_batch_norm in training; the fourth result is empty.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype()) && s.dtype() != kDouble) s(s.t({4, 3, 2}), s.t({3}), s.t({3}), s.make({3}, {}, kFloat), s.make({3}, range(0.5, 2), kFloat), 0.1, 1e-5); }),
OP("_batch_norm_no_update(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)",
  .types = any_types,
  .decompose = [](const Args& a) -> Results { return with_reserve(a, false); },
  .non_diff_outputs = 14,
  .shard = {"norm-batch"}, .doc = "native_batch_norm in evaluation; the fourth result is empty.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype()) && s.dtype() != kDouble) s(s.t({4, 3, 2}), s.t({3}), s.t({3}), s.make({3}, {}, kFloat), s.make({3}, range(0.5, 2), kFloat), 0.1, 1e-5); }),
OP("batch_norm_backward(Tensor grad_out, Tensor input, Tensor weight, Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_var, bool update, float eps, bool[3] output_mask, Tensor reserve) -> (Tensor, Tensor, Tensor)",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      VESTA_CHECK(a.value(9).length == 3, a.name(), ": expected 3 flags in output_mask, got ", a.value(9).length);
      return native_batch_norm_backward(a.tensor(0), a.tensor(1), a.tensor(2), a.tensor(3), a.tensor(4), a.tensor(5), a.tensor(6), a.flag(7), a.number(8),
                                        ArrayRef<bool>(static_cast<const bool*>(a.value(9).ptr), 3)); },
  .shard = {"norm-batch"}, .doc = "native_batch_norm_backward; reserve is not read.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype()) && s.dtype() != kDouble) { s(s.t({4, 3, 2}), s.t({4, 3, 2}), s.t({3}), std::nullopt, std::nullopt, s.make({3}, {}, kFloat), s.make({3}, range(0.5, 2), kFloat), true, 1e-5, Flags{true, true, true}, s.make({0}, {}, kByte)); } }),
OP("renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = InPlace | Out, .types = any_types, .decompose = renorm_of,
  .shard = {"pw-exceptdim"}, .doc = "Scales each slice of `dim` whose p-norm exceeds maxnorm down to it.",
  .samples = [](SampleGen& s) { if (!is_integral(s.dtype(), true)) { s(s.t({3, 4}), 2, 0, 1.5); s(s.t({2, 3, 2}), 1, -2, 100); s(s.t({2, 0}), 2, 0, 1); } }),
OP("norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results { return norm_except(a, a.tensor(0), a.integer(1), a.integer(2)); },
  .shard = {"decomp"}, .doc = "The norm over all dims but `dim`, which stay with size 1; over all elements where dim is -1.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { s(s.t({3, 4})); s(s.t({2, 3, 2}), 2, 2); s(s.t({3, 2}), 1, -1); } }),
OP("_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results { return a.tensor(0) * (a.tensor(1) / norm_except(a, a.tensor(0), 2, a.integer(2))); },
  .shard = {"decomp"}, .doc = "v * g / |v|, the norm over all dims but `dim`.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { s(s.t({3, 4}), s.t({3, 1})); s(s.t({2, 3, 2}), s.t({1, 1, 2}), 2); } }),
OP("_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      check_weight_norm(a, a.tensor(0), a.integer(2));
      Tensor norms = norm_except(a, a.tensor(0), 2, a.integer(2));
      Tensor w = a.tensor(0) * (a.tensor(1) / norms);
      return {w, is_half(norms.dtype()) ? norms.to(kFloat) : norms}; },
  .shard = {"decomp"}, .doc = "_weight_norm and the norms (float32 for half types).",
  .samples = [](SampleGen& s) { if (s.dtype() == kFloat || s.dtype() == kDouble) { s(s.t({3, 4}), s.t({3, 1})); s(s.t({2, 3, 2}), s.t({1, 1, 2}), 2); } }),
OP("_weight_norm_interface_backward(Tensor grad_w, Tensor saved_v, Tensor saved_g, Tensor saved_norms, int dim) -> (Tensor, Tensor)",
  .types = any_types, .decompose = weight_norm_backward,
  .shard = {"decomp"}, .doc = "Gradients of _weight_norm in v and g.",
  .samples = [](SampleGen& s) { if (s.dtype() == kFloat || s.dtype() == kDouble) s(s.t({3, 4}), s.t({3, 4}), s.t({3, 1}), s.t({3, 1}, range(1, 3)), 0); }),
OP("_weight_norm_differentiable_backward(Tensor grad_w, Tensor saved_v, Tensor saved_g, Tensor saved_norms, int dim) -> (Tensor, Tensor)",
  .types = any_types, .decompose = weight_norm_backward,
  .shard = {"decomp"}, .doc = "Gradients of _weight_norm in v and g, differentiable.",
  .samples = [](SampleGen& s) { if (s.dtype() == kFloat || s.dtype() == kDouble) s(s.t({3, 4}), s.t({3, 4}), s.t({3, 1}), s.t({3, 1}, range(1, 3)), 0); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(norm_variants, table)
