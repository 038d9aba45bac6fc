// Views as copies: each *_copy op is the view of its name, cloned to contiguous memory.
#include "ops/infer.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;
using Ints = std::vector<int64_t>;

Results copy_of(const Tensor& view) { return view.resolve_conj().clone(MemoryFormat::Contiguous); }
Results copies_of(const std::vector<Tensor>& views) {
  std::vector<Tensor> r;
  for (auto& v : views) r.push_back(v.clone(MemoryFormat::Contiguous));
  return r;
}

constexpr OpDef table[] = {
OP("as_strided_copy(Tensor self, int[] size, int[] stride, int? storage_offset=None) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) { return copy_of(a.tensor(0).as_strided(a.ints(1), a.ints(2), a.has(3) ? std::optional(a.integer(3)) : std::nullopt)); },
  .shard = {"replicate"}, .doc = "as_strided as a copy.", .samples = [](SampleGen& s) { s(s.t({3, 4}), Ints{2, 2}, Ints{4, 1}, 1); }),
OP("diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) { return copy_of(a.tensor(0).diagonal(a.integer(1), a.integer(2), a.integer(3))); },
  .shard = {"replicate"}, .doc = "diagonal as a copy.", .samples = [](SampleGen& s) { s(s.t({3, 4})); }),
OP("expand_copy(Tensor self, int[] size, *, bool implicit=False) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) { return copy_of(a.tensor(0).expand(a.ints(1))); },
  .shard = {"view"}, .doc = "expand as a copy.", .samples = [](SampleGen& s) { s(s.t({3, 1}), Ints{3, 4}); }),
OP("permute_copy(Tensor self, int[] dims) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) { return copy_of(a.tensor(0).permute(a.ints(1))); },
  .shard = {"view"}, .doc = "permute as a copy.", .samples = [](SampleGen& s) { s(s.t({2, 3}), Ints{1, 0}); }),
OP("select_copy.int(Tensor self, int dim, int index) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) { return copy_of(a.tensor(0).select(a.integer(1), a.integer(2))); },
  .shard = {"select"}, .doc = "select as a copy.", .samples = [](SampleGen& s) { s(s.t({3, 4}), 0, 1); }),
OP("detach_copy(Tensor self) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) { return copy_of(a.tensor(0).detach()); }, .non_differentiable = true,
  .shard = {"copy"}, .doc = "detach as a copy.", .samples = [](SampleGen& s) { s(s.t({3, 4})); }),
OP("alias_copy(Tensor self) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) { return copy_of(a.tensor(0)); },
  .shard = {"copy"}, .doc = "alias as a copy.", .samples = [](SampleGen& s) { s(s.t({3, 4})); }),
OP("slice_copy.Tensor(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) { return copy_of(a.tensor(0).slice(a.integer(1), a.has(2) ? std::optional(a.integer(2)) : std::nullopt, a.has(3) ? std::optional(a.integer(3)) : std::nullopt, a.integer(4))); },
  .shard = {"slice"}, .doc = "slice as a copy.", .samples = [](SampleGen& s) { s(s.t({5, 4}), 0, 1, 3); }),
OP("squeeze_copy(Tensor self) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) { return copy_of(a.tensor(0).squeeze()); },
  .shard = {"view"}, .doc = "squeeze as a copy.", .samples = [](SampleGen& s) { s(s.t({3, 1})); }),
OP("squeeze_copy.dim(Tensor self, int dim) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) { return copy_of(a.tensor(0).squeeze(a.integer(1))); },
  .shard = {"view"}, .doc = "squeeze as a copy.", .samples = [](SampleGen& s) { s(s.t({3, 1}), 1); }),
OP("squeeze_copy.dims(Tensor self, int[] dim) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) { return copy_of(a.tensor(0).squeeze(a.ints(1))); },
  .shard = {"view"}, .doc = "squeeze as a copy.", .samples = [](SampleGen& s) { s(s.t({3, 1}), Ints{1}); }),
OP("t_copy(Tensor self) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) { return copy_of(a.tensor(0).t()); },
  .shard = {"view"}, .doc = "t as a copy.", .samples = [](SampleGen& s) { s(s.t({3, 4})); }),
OP("transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) { return copy_of(a.tensor(0).transpose(a.integer(1), a.integer(2))); },
  .shard = {"view"}, .doc = "transpose as a copy.", .samples = [](SampleGen& s) { s(s.t({3, 4}), 0, 1); }),
OP("unsqueeze_copy(Tensor self, int dim) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) { return copy_of(a.tensor(0).unsqueeze(a.integer(1))); },
  .shard = {"view"}, .doc = "unsqueeze as a copy.", .samples = [](SampleGen& s) { s(s.t({3, 4}), 0); }),
OP("view_copy(Tensor self, int[] size) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) { return copy_of(a.tensor(0).reshape(a.ints(1))); },
  .shard = {"view"}, .doc = "view as a copy.", .samples = [](SampleGen& s) { s(s.t({3, 4}), Ints{2, 6}); }),
OP("view_copy.dtype(Tensor self, ScalarType dtype) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) { return copy_of(a.tensor(0).view(DType(a.integer(1)))); },
  .shard = {"view"}, .doc = "view as a copy.", .samples = [](SampleGen& s) { if (s.dtype() == kFloat) s(s.t({3, 4}), kInt); }),
OP("unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) { return copy_of(a.tensor(0).unfold(a.integer(1), a.integer(2), a.integer(3))); },
  .shard = {"shard-exceptdim"}, .doc = "unfold as a copy.", .samples = [](SampleGen& s) { s(s.t({5, 3}), 0, 2, 1); }),
OP("view_as_real_copy(Tensor self) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) { return copy_of(view_as_real(a.tensor(0))); },
  .shard = {"view"}, .doc = "view_as_real as a copy.", .samples = [](SampleGen& s) { if (is_complex(s.dtype())) s(s.t({3})); }),
OP("view_as_complex_copy(Tensor self) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) { return copy_of(view_as_complex(a.tensor(0).contiguous())); },
  .shard = {"view"}, .doc = "view_as_complex as a copy.", .samples = [](SampleGen& s) { if (s.dtype() == kFloat) s(s.t({3, 2})); }),
OP("_conj_copy(Tensor self) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) { return copy_of(a.tensor(0).conj()); },
  .shard = {"copy"}, .doc = "conj as a copy.", .samples = [](SampleGen& s) { s(s.t({3})); }),
OP("split_copy.Tensor(Tensor self, int split_size, int dim=0) -> Tensor[]",
  .types = any_types, .decompose = [](const Args& a) { return copies_of(a.tensor(0).split(a.integer(1), a.integer(2))); },
  .shard = {"split"}, .doc = "split as a copy.", .samples = [](SampleGen& s) { s(s.t({5, 2}), 2); }),
OP("split_with_sizes_copy(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]",
  .types = any_types, .decompose = [](const Args& a) { return copies_of(a.tensor(0).split_with_sizes(a.ints(1), a.integer(2))); },
  .shard = {"split"}, .doc = "split_with_sizes as a copy.", .samples = [](SampleGen& s) { s(s.t({5, 2}), Ints{2, 3}); }),
OP("unbind_copy.int(Tensor self, int dim=0) -> Tensor[]",
  .types = any_types, .decompose = [](const Args& a) { return copies_of(a.tensor(0).unbind(a.integer(1))); },
  .shard = {"select"}, .doc = "unbind as a copy.", .samples = [](SampleGen& s) { s(s.t({3, 2})); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(view_copy, table)
