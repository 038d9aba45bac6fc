// Small fusions that have rows of their own, and indexing under a mask.
#include <cmath>
#include <limits>
#include <numbers>

#include "ops/infer.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

// Positions outside of the mask read index 0, which always exists beside one that is read.
std::vector<Tensor> safe_indices(const Args& a, const Tensor& mask, TensorList indices) {
  std::vector<Tensor> safe;
  VESTA_CHECK_AS(TypeError, mask.dtype() == kBool, a.name(), ": expected a bool mask, got ", dtype_name(mask.dtype()));
  for (auto& t : indices) {
    if (t.defined()) VESTA_CHECK_AS(TypeError, t.dtype() == kLong || t.dtype() == kInt, a.name(), ": expected integer indices, got ", dtype_name(t.dtype()));
    safe.push_back(t.defined() ? where(mask, t.to(kLong), zeros({}, TensorOptions(kLong).device(t.device()))) : t);
  }
  return safe;
}

// The mask of a masked softmax in a shape that broadcasts; true leaves an element out. Kind 0: one matrix for all
// heads, kind 1: keys by batch item, kind 2: a mask of the full shape.
Tensor softmax_mask(const Args& a) {
  const Tensor &x = a.tensor(0), &mask = a.tensor(1);
  VESTA_CHECK_AS(TypeError, mask.dtype() == kBool, a.name(), ": expected a bool mask, got ", dtype_name(mask.dtype()));
  const int64_t kind = a.integer(3, 2);
  VESTA_CHECK(kind >= 0 && kind <= 2, a.name(), ": expected mask_type 0, 1 or 2, got ", kind);
  if (kind == 2) {
    VESTA_CHECK(mask.sizes() == x.sizes(), a.name(), ": expected a mask with the sizes of self");
    return mask;
  }
  VESTA_CHECK(x.dim() == 4 && mask.dim() == 2, a.name(), ": expected scores with 4 dims and a mask with 2, got ", x.dim(), " and ", mask.dim());
  VESTA_CHECK(mask.size(0) == x.size(kind == 0 ? 2 : 0) && mask.size(1) == x.size(3), a.name(), ": the mask does not fit the scores");
  return kind == 0 ? mask : mask.view({mask.size(0), 1, 1, mask.size(1)});
}
int64_t last_dim_by_default(const Args& a, int i, const Tensor& t) { return a.has(i) ? wrap_dim(a, a.integer(i), t.dim()) : t.dim() - 1; }

constexpr OpDef table[] = {
OP("_add_relu.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
  .forms = InPlace | Out, .types = real_types, .decompose = [](const Args& a) -> Results { return add(a.tensor(0), a.tensor(1), a.scalar(2)).relu(); },
  .shard = {"replicate"}, .doc = "relu(self + alpha * other).", .samples = [](SampleGen& s) { s.binary(); }),
OP("_add_relu.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
  .forms = InPlace, .types = real_types, .decompose = [](const Args& a) -> Results { return add(a.tensor(0), a.scalar(1), a.scalar(2)).relu(); },
  .shard = {"replicate"}, .doc = "relu(self + alpha * other).", .samples = [](SampleGen& s) { s(s.t({3, 4}), Scalar(1)); }),
OP("_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, bool use_gelu=False) -> Tensor",
  .forms = Out, .types = {types::kFloatMask, Promote::None}, .decompose = [](const Args& a) -> Results {
      Tensor t = addmm(a.tensor(0), a.tensor(1), a.tensor(2), a.scalar(3), a.scalar(4));
      return a.flag(5) ? t.gelu() : t.relu(); },
  .shard = {"einsum"}, .tol = {1e-5, 1e-4}, .doc = "relu or gelu of addmm.", .samples = [](SampleGen& s) { s(s.t({2}), s.t({3, 4}), s.t({4, 2})); s(s.t({3, 2}), s.t({3, 4}), s.t({4, 2}), Scalar(2), Scalar(3), true); }),
OP("infinitely_differentiable_gelu_backward(Tensor grad, Tensor self) -> Tensor",
  .types = {types::kFloatMask, Promote::None}, .decompose = [](const Args& a) -> Results {
      // d/dx x Phi(x) = Phi(x) + x phi(x)
      const Tensor& x = a.tensor(1);
      Tensor cdf = (1 + (x * std::numbers::sqrt2 / 2).erf()) * 0.5, pdf = (x * x * -0.5).exp() * (std::numbers::inv_sqrtpi * std::numbers::sqrt2 / 2);
      return a.tensor(0) * (cdf + x * pdf); },
  .shard = {"decomp"}, .doc = "Gradient of gelu, in parts that have all derivatives.", .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4})); }),
OP("_masked_softmax(Tensor self, Tensor mask, int? dim=None, int? mask_type=None) -> Tensor",
  .types = {types::kFloatMask, Promote::None}, .decompose = [](const Args& a) -> Results {
      return a.tensor(0).masked_fill(softmax_mask(a), Scalar(-std::numeric_limits<double>::infinity())).softmax(last_dim_by_default(a, 2, a.tensor(0))); },
  .shard = {"softmax"}, .doc = "softmax over the elements that the mask leaves in; NaN where it leaves none.",
  .samples = [](SampleGen& s) { Tensor some = zeros({2, 3}, TensorOptions(kBool)); some.select(1, 1).fill_(true);
                                s(s.t({2, 3}), some, -1, 2); s(s.t({2, 2, 2, 3}), some, -1, 0); s(s.t({2, 2, 2, 3}), some, std::nullopt, 1); }),
OP("_masked_softmax_backward(Tensor grad_output, Tensor output, Tensor mask, int? dim=None) -> Tensor",
  .types = {types::kFloatMask, Promote::None}, .decompose = [](const Args& a) -> Results {
      const Tensor &y = a.tensor(1), &mask = a.tensor(2);
      VESTA_CHECK_AS(TypeError, mask.dtype() == kBool, a.name(), ": expected a bool mask, got ", dtype_name(mask.dtype()));
      VESTA_CHECK(a.tensor(0).sizes() == y.sizes() && mask.sizes() == y.sizes(), a.name(), ": expected grad_output, output and mask of one size");
      Tensor d = a.tensor(0) * y;
      return (d - y * d.sum(IntArrayRef{last_dim_by_default(a, 3, y)}, true)).masked_fill(mask, 0); },
  .non_differentiable = true, .shard = {"softmax"}, .doc = "Gradient of _masked_softmax for a mask of the full shape.",
  .samples = [](SampleGen& s) { s(s.t({2, 3}), s.t({2, 3}, range(0, 1)), s.mask({2, 3})); }),
OP("_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) -> Results {
      Tensor picked = index(a.tensor(0), safe_indices(a, a.tensor(1), a.tensors(2)));
      return picked.masked_fill(a.tensor(1).logical_not(), a.scalar(3)); },
  .shard = {"index"}, .doc = "Indexing where the mask holds, a number elsewhere; indices there may be out of range.",
  .samples = [](SampleGen& s) { s(s.t({5}), s.mask({3, 2}), std::vector<Tensor>{s.index({3, 2}, 5)}, Scalar(1)); }),
OP("_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) -> Results {
      Tensor kept = a.tensor(3).masked_fill(a.tensor(1).logical_not(), 0);
      return index_put(a.tensor(0), safe_indices(a, a.tensor(1), a.tensors(2)), kept, true); },
  .shard = {"index-put"}, .doc = "Adds values at indices where the mask holds.",
  .samples = [](SampleGen& s) { if (s.dtype() != kBool) s(s.t({5}), s.mask({3, 2}), std::vector<Tensor>{s.index({3, 2}, 5)}, s.t({3, 2})); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(fused_activation, table)
