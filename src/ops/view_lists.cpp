// Rows around views and lists of tensors: lazy negation, one flat tensor out of many and back, chunked concatenation,
// the inverse of slice.
#include <algorithm>

#include "base/checked_math.h"
#include "core/storage.h"
#include "ops/infer.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

Results flatten_list(const Args& a) {
  VESTA_CHECK(a.tensors(0).size() > 0, a.name(), ": expected at least one tensor");
  std::vector<Tensor> flat;
  for (auto& t : a.tensors(0)) flat.push_back(t.contiguous().view({-1}));
  return flat.size() == 1 ? flat[0] : cat(flat);
}
Results unflatten_list(const Args& a) {
  const Tensor& flat = a.tensor(0);
  VESTA_CHECK(flat.dim() == 1, a.name(), ": expected a flat tensor with 1 dim, got ", flat.dim());
  std::vector<Tensor> list;
  int64_t at = 0;
  for (auto& t : a.tensors(1)) {
    VESTA_CHECK(t.numel() <= flat.size(0) - at, a.name(), ": the flat tensor has ", flat.size(0), " elements, too few for the list");
    list.push_back(flat.narrow(0, at, t.numel()).view(t.sizes()));
    at += t.numel();
  }
  return list;
}
// Each tensor's dim is padded with zeros to num_chunks pieces of one size; chunk i of all, flattened past dim, in a row.
Results chunk_cat(const Args& a) {
  TensorList list = a.tensors(0);
  const int64_t chunks = a.integer(2);
  VESTA_CHECK(list.size() > 0, a.name(), ": expected at least one tensor");
  VESTA_CHECK(chunks >= 1, a.name(), ": expected num_chunks >= 1, got ", chunks);
  std::vector<Tensor> pieces;
  int64_t dim = -1;
  for (auto& t : list) {
    VESTA_CHECK(t.dim() > 0 && t.numel() > 0, a.name(), ": expected tensors with elements and at least 1 dim");
    int64_t d = wrap_dim(a, a.integer(1), t.dim());
    VESTA_CHECK(dim < 0 || d == dim, a.name(), ": expected a dim that is the same for all tensors");
    for (int64_t i = 0; i < d; ++i) VESTA_CHECK(t.size(i) == list[0].size(i), a.name(), ": expected equal sizes before the dim");
    VESTA_CHECK_AS(TypeError, t.dtype() == list[0].dtype(), a.name(), ": expected tensors of one dtype");
    dim = d;
    const int64_t size = t.size(d), each = size / chunks + (size % chunks != 0), padded = checked_mul(each, chunks, a.name());
    std::vector<int64_t> pads(size_t(2 * t.dim()), 0), shape(t.sizes().begin(), t.sizes().begin() + d);
    pads[size_t(2 * (t.dim() - 1 - d) + 1)] = padded - size;
    shape.push_back(chunks);
    shape.push_back(-1);
    pieces.push_back((padded == size ? t : constant_pad_nd(t, pads, 0)).reshape(shape));
  }
  return cat(pieces, dim + 1);
}

constexpr OpDef table[] = {
OP("_neg_view(Tensor(a) self) -> Tensor(a)",
  .types = any_types, .accepts_conj = true,
  .decompose = [](const Args& a) -> Results {
      VESTA_CHECK_AS(TypeError, a.tensor(0).dtype() != kBool, "_neg_view: does not take bool tensors");
      Tensor r = a.tensor(0).alias();
      r.impl()->bits ^= TensorImpl::kNeg;
      return r; },
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy().neg(); }); },
  .shard = {"copy"}, .doc = "A view that reads as the negative of self.", .samples = [](SampleGen& s) { if (is_floating_point(s.dtype()) || is_complex(s.dtype())) s.unary(s.shapes()); }),
OP("_neg_view_copy(Tensor self) -> Tensor",
  .forms = Out, .types = any_types, .decompose = [](const Args& a) -> Results { return a.tensor(0).neg(); },
  .shard = {"copy"}, .doc = "The negative of self.", .samples = [](SampleGen& s) { if (s.dtype() != kBool) s.unary(s.shapes()); }),
OP("_reshape_copy(Tensor self, int[] size) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) -> Results { return a.tensor(0).clone(MemoryFormat::Contiguous).view(a.ints(1)); },
  .shard = Shard::view(), .doc = "A copy with other sizes.", .samples = [](SampleGen& s) { s(s.t({3, 4}), std::vector<int64_t>{2, -1}); s(s.t({3, 4}).transpose(0, 1), std::vector<int64_t>{12}); }),
OP("flatten_dense_tensors(Tensor[] tensors) -> Tensor",
  .types = any_types, .decompose = flatten_list, .shard = Shard::view(), .doc = "All elements of a list in one 1-dim tensor.",
  .samples = [](SampleGen& s) { s(std::vector<Tensor>{s.t({3, 2}), s.t({}), s.t({4})}); }),
OP("unflatten_dense_tensors(Tensor flat, Tensor[] tensors) -> Tensor[]",
  .types = any_types, .decompose = unflatten_list, .shard = Shard::view(), .doc = "Pieces of a 1-dim tensor in the sizes of the tensors of a list.",
  .samples = [](SampleGen& s) { s(s.t({11}), std::vector<Tensor>{s.t({3, 2}), s.t({}), s.t({4})}); }),
OP("_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor",
  .forms = Out, .types = any_types, .decompose = chunk_cat, .shard = {"cat"}, .doc = "Chunk i of every tensor side by side, for each i; zeros fill the last chunks.",
  .samples = [](SampleGen& s) { s(std::vector<Tensor>{s.t({4, 3}), s.t({5})}, 0, 2); }),
OP("slice_inverse(Tensor(a) self, Tensor src, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor(a)",
  .types = any_types, .decompose = [](const Args& a) -> Results {
      const Tensor &self = a.tensor(0), &src = a.tensor(1);
      std::optional<int64_t> start, end;
      if (a.has(3)) start = a.integer(3);
      if (a.has(4)) end = a.integer(4);
      Tensor shown = src.slice(a.integer(2), start, end, a.integer(5));
      VESTA_CHECK(shown.sizes() == self.sizes() && self.dtype() == src.dtype(), "slice_inverse: self is not that slice of src");
      int64_t offset = self.storage_offset() - (shown.storage_offset() - src.storage_offset());
      VESTA_CHECK(offset >= 0, "slice_inverse: self does not lie in a tensor like src");
      return self.as_strided(src.sizes(), src.strides(), offset); },
  .shard = {"slice"}, .doc = "The tensor, laid out like src, whose slice self is.",
  .samples = [](SampleGen& s) { Tensor t = s.t({5, 4}); s(t.slice(0, 0, 5, 1), t, 0, 0, 5, 1); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(view_lists, table)
