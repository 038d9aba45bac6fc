// Questions about tensors, dtypes and numbers: results are no tensors and carry no gradient. Sizes may be symbolic while
// tracing; values may not be read then. Also autograd's switches, as calls by name.
#include "core/promotion.h"
#include "ops/infer.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

Results yes_no(bool v) { return Results::number(Scalar(v)); }
Results count(int64_t v) { return Results::number(Scalar(v)); }
Results dtype_result(DType t) { return Results::number(Scalar(int64_t(t))); }

Results size_of(const Args& a) {
  const Tensor& t = a.tensor(0);
  VESTA_CHECK_AS(IndexError, t.dim() > 0, a.name(), ": a 0-dim tensor has no dims");
  return count(t.sizes()[size_t(wrap_dim(a, a.integer(1), t.dim()))]);
}
Results stride_of(const Args& a) {
  const Tensor& t = a.tensor(0);
  VESTA_CHECK_AS(IndexError, t.dim() > 0, a.name(), ": a 0-dim tensor has no dims");
  return count(t.strides()[size_t(wrap_dim(a, a.integer(1), t.dim()))]);
}
Results only_value(const Args& a) { return Results::number(a.tensor(0).item()); }
bool is_true(const Args& a, const Tensor& t) {
  VESTA_CHECK(t.numel() == 1, a.name(), ": expected a tensor with one element, got ", t.numel());
  return t.item().toBool();
}
// The two ends of a promotion: tensors count by dims, numbers by category.
Results promoted(const Args& a) {
  Promotion p;
  for (int i = 0; i < 2; ++i) {
    if (a.value(i).kind == ValueKind::Tensor) p.add(a.tensor(i));
    else p.add(a.scalar(i));
  }
  return dtype_result(p.get());
}
Results assert_true(const Args& a, std::string_view message) {
  VESTA_CHECK(is_true(a, a.tensor(0)), a.name(), ": ", message.empty() ? "the value is zero" : message);
  return {};
}
void one_tensor(SampleGen& s) { s(s.t({3, 4})); }
void of_dim(SampleGen& s) { s(s.t({3, 4}), 0); s(s.t({3, 4}).transpose(0, 1), -1); }
void one_value(SampleGen& s) { s(s.t({})); s(s.t({1, 1})); }
// Not every element type has a value that is no zero in every range.
void true_value(SampleGen& s) { s(s.t({}, range(1, 2))); }

constexpr OpDef table[] = {
OP("is_floating_point(Tensor self) -> bool",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) { return yes_no(a.tensor(0).is_floating_point()); }, .non_differentiable = true, .shard = {"meta"},
  .doc = "Whether the dtype is a real floating one.", .samples = one_tensor),
OP("is_complex(Tensor self) -> bool",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) { return yes_no(a.tensor(0).is_complex()); }, .non_differentiable = true, .shard = {"meta"},
  .doc = "Whether the dtype is complex.", .samples = one_tensor),
OP("is_signed(Tensor self) -> bool",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) { return yes_no(a.tensor(0).is_signed()); }, .non_differentiable = true, .shard = {"meta"},
  .doc = "Whether the dtype has negative values.", .samples = one_tensor),
OP("is_conj(Tensor self) -> bool",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) { return yes_no(a.tensor(0).is_conj()); }, .non_differentiable = true, .shard = {"meta"},
  .doc = "Whether the tensor is lazily conjugated.", .samples = one_tensor),
OP("is_neg(Tensor self) -> bool",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) { return yes_no(a.tensor(0).is_neg()); }, .non_differentiable = true, .shard = {"meta"},
  .doc = "Whether the tensor is lazily negated.", .samples = one_tensor),
OP("is_inference(Tensor self) -> bool",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) { return yes_no(a.tensor(0).is_inference()); }, .non_differentiable = true, .shard = {"meta"},
  .doc = "Whether the tensor was made in inference mode.", .samples = one_tensor),
OP("is_leaf(Tensor self) -> bool",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) { return yes_no(a.tensor(0).is_leaf()); }, .non_differentiable = true, .shard = {"meta"},
  .doc = "Whether no recorded call made the tensor.", .samples = one_tensor),
OP("is_pinned(Tensor self, Device? device=None) -> bool",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args&) { return yes_no(false); }, .non_differentiable = true, .shard = {"meta"},
  .doc = "Whether the memory is page-locked for a device: never in this build.", .samples = one_tensor),
OP("is_nonzero(Tensor self) -> bool",
  .types = any_types, .decompose = [](const Args& a) { return yes_no(is_true(a, a.tensor(0))); }, .non_differentiable = true, .shard = {"meta"},
  .doc = "Whether the only element is not 0.", .samples = one_value),
OP("is_set_to(Tensor self, Tensor tensor) -> bool",
  .types = any_types, .accepts_conj = true,
  .decompose = [](const Args& a) {
      const Tensor &t = a.tensor(0), &o = a.tensor(1);
      return yes_no(t.impl()->storage == o.impl()->storage && t.storage_offset() == o.storage_offset() && t.sizes() == o.sizes() && t.strides() == o.strides()); },
  .non_differentiable = true, .shard = {"meta"}, .doc = "Whether both show the same memory with the same sizes and strides.",
  .samples = [](SampleGen& s) { Tensor t = s.t({3}); s(t, t); s(t, s.t({3})); }),
OP("size.int(Tensor self, int dim) -> int",
  .types = any_types, .accepts_conj = true, .decompose = size_of, .non_differentiable = true, .shard = {"meta"}, .doc = "Size of a dim.", .samples = of_dim),
OP("stride.int(Tensor self, int dim) -> int",
  .types = any_types, .accepts_conj = true, .decompose = stride_of, .non_differentiable = true, .shard = {"meta"}, .doc = "Elements from one index of a dim to the next.", .samples = of_dim),
OP("sym_size.int(Tensor self, int dim) -> int",
  .types = any_types, .accepts_conj = true, .decompose = size_of, .non_differentiable = true, .shard = {"meta"}, .doc = "Size of a dim, which may be symbolic.", .samples = of_dim),
OP("sym_stride.int(Tensor self, int dim) -> int",
  .types = any_types, .accepts_conj = true, .decompose = stride_of, .non_differentiable = true, .shard = {"meta"}, .doc = "Stride of a dim, which may be symbolic.", .samples = of_dim),
OP("sym_numel(Tensor self) -> int",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) { return count(a.tensor(0).numel()); }, .non_differentiable = true, .shard = {"meta"},
  .doc = "Number of elements, which may be symbolic.", .samples = one_tensor),
OP("sym_storage_offset(Tensor self) -> int",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) { return count(a.tensor(0).storage_offset()); }, .non_differentiable = true, .shard = {"meta"},
  .doc = "Elements from the start of the storage, which may be symbolic.", .samples = one_tensor),
OP("sym_is_contiguous(Tensor self, MemoryFormat memory_format=contiguous_format) -> bool",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) { return yes_no(a.tensor(0).is_contiguous(MemoryFormat(a.integer(1)))); }, .non_differentiable = true, .shard = {"meta"},
  .doc = "Whether the elements lie in this order without gaps.", .samples = one_tensor),
OP("item(Tensor self) -> Scalar",
  .types = any_types, .decompose = only_value, .non_differentiable = true, .shard = {"reduce-host"}, .doc = "The only element, as a number.", .samples = one_value),
OP("_local_scalar_dense(Tensor self) -> Scalar",
  .types = any_types, .decompose = only_value, .non_differentiable = true, .shard = {"reduce-host"}, .doc = "item.", .samples = one_value),
OP("_assert_async(Tensor self) -> ()",
  .types = any_types, .decompose = [](const Args& a) { return assert_true(a, ""); }, .non_differentiable = true, .shard = {"replicate"},
  .doc = "Throws ValueError where the only element is 0.", .samples = true_value),
OP("_assert_async.msg(Tensor self, str assert_msg) -> ()",
  .types = any_types, .decompose = [](const Args& a) { return assert_true(a, a.string(1)); }, .non_differentiable = true, .shard = {"replicate"},
  .doc = "Throws ValueError with this message where the only element is 0.", .samples = [](SampleGen& s) { s(s.t({}, range(1, 2)), "must hold"); }),
OP("_functional_assert_async.msg(Tensor self, str assert_msg, Tensor dep_token) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) -> Results { assert_true(a, a.string(1)); return a.tensor(2).clone(); }, .non_differentiable = true, .shard = {"replicate"},
  .doc = "_assert_async that hands on a token.", .samples = [](SampleGen& s) { s(s.t({}, range(1, 2)), "must hold", s.t({})); }),
OP("can_cast(ScalarType from_, ScalarType to) -> bool",
  .types = any_types, .decompose = [](const Args& a) { return yes_no(can_cast(DType(a.integer(0)), DType(a.integer(1)))); }, .non_differentiable = true, .shard = {"meta"},
  .doc = "Whether an in-place write of the one dtype to the other is allowed.", .samples = [](SampleGen& s) { s(s.dtype(), kFloat); }),
OP("promote_types(ScalarType type1, ScalarType type2) -> ScalarType",
  .types = any_types, .decompose = [](const Args& a) { return dtype_result(promote_types(DType(a.integer(0)), DType(a.integer(1)))); }, .non_differentiable = true, .shard = {"meta"},
  .doc = "The smallest dtype that holds both.", .samples = [](SampleGen& s) { s(s.dtype(), kFloat); s(s.dtype(), kInt); }),
OP("result_type.Tensor(Tensor tensor, Tensor other) -> ScalarType",
  .types = any_types, .accepts_conj = true, .decompose = promoted, .non_differentiable = true, .shard = {"meta"},
  .doc = "The dtype that arithmetic of both gives.", .samples = [](SampleGen& s) { s(s.t({3}), s.make({}, {}, kDouble)); }),
OP("result_type.Scalar(Tensor tensor, Scalar other) -> ScalarType",
  .types = any_types, .accepts_conj = true, .decompose = promoted, .non_differentiable = true, .shard = {"meta"},
  .doc = "The dtype that arithmetic of a tensor and a number gives.", .samples = [](SampleGen& s) { s(s.t({3}), Scalar(1.5)); }),
OP("result_type.Scalar_Tensor(Scalar scalar, Tensor tensor) -> ScalarType",
  .types = any_types, .accepts_conj = true, .decompose = promoted, .non_differentiable = true, .shard = {"meta"},
  .doc = "The dtype that arithmetic of a number and a tensor gives.", .samples = [](SampleGen& s) { s(Scalar(1.5), s.t({3})); }),
OP("result_type.Scalar_Scalar(Scalar scalar1, Scalar scalar2) -> ScalarType",
  .types = any_types, .decompose = promoted, .non_differentiable = true, .shard = {"meta"},
  .doc = "The dtype that arithmetic of two numbers gives.", .samples = [](SampleGen& s) { s(Scalar(1), Scalar(1.5)); }),
OP("requires_grad_(Tensor(a!) self, bool requires_grad=True) -> Tensor(a!)",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) -> Results { a.tensor(0).set_requires_grad(a.flag(1)); return a.tensor(0); }, .non_differentiable = true, .shard = {"meta"},
  .doc = "Has autograd follow this leaf, or not.", .samples = [](SampleGen& s) { if (is_integral(s.dtype(), true)) s(s.t({3}), false); }),
OP("retain_grad(Tensor(a!) self) -> ()",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) -> Results { a.tensor(0).retain_grad(); return {}; }, .non_differentiable = true, .shard = {"meta"},
  .doc = "Keeps .grad of a tensor that is no leaf."),
OP("set_data(Tensor(a!) self, Tensor new_data) -> ()",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) -> Results { a.tensor(0).set_data(a.tensor(1)); return {}; }, .non_differentiable = true, .shard = {"copy"},
  .doc = "Has self show the elements of new_data; keeps its identity, grad and hooks.", .samples = [](SampleGen& s) { if (is_integral(s.dtype(), true)) s(s.t({3}), s.t({4})); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(metadata, table)
