// Rearrangements composed of views: splitting, stacking helpers, dim permutations by other names, meshgrid.
#include "core/storage.h"
#include <algorithm>
#include <cmath>

#include "base/checked_math.h"
#include "ops/infer.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;
using Ints = std::vector<int64_t>;

constexpr int64_t kMostSections = int64_t(1) << 22;  // each is a tensor, however short

Results move_dims(const Args& a, IntArrayRef from, IntArrayRef to) {
  const Tensor& t = a.tensor(0);
  int64_t n = t.dim();
  VESTA_CHECK(from.size() == to.size(), a.name(), ": expected as many destinations as sources, got ", to.size(), " and ", from.size());
  Ints order(size_t(n), -1);
  std::vector<bool> used(size_t(n), false);
  for (size_t k = 0; k < from.size(); ++k) {
    int64_t f = wrap_dim(a, from[k], n), d = wrap_dim(a, to[k], n);
    if (n == 0) continue;
    VESTA_CHECK(!used[size_t(f)] && order[size_t(d)] < 0, a.name(), ": a dim appears twice");
    used[size_t(f)] = true;
    order[size_t(d)] = f;
  }
  size_t next = 0;
  for (auto& o : order)
    if (o < 0) {
      while (used[next]) ++next;
      o = int64_t(next++);
    }
  return t.permute(order);
}

std::vector<Tensor> pieces_at(const Tensor& t, int64_t d, IntArrayRef bounds) {
  std::vector<Tensor> r;
  int64_t begin = 0, n = t.size(d);
  for (int64_t end : bounds) {
    r.push_back(t.slice(d, begin, end));
    begin = end;
  }
  r.push_back(t.slice(d, begin, n));
  return r;
}
std::vector<Tensor> sections(const Args& a, const Tensor& t, int64_t d, int64_t count) {
  VESTA_CHECK(count > 0 && count <= kMostSections, a.name(), ": expected sections in [1, 2^22], got ", count);
  int64_t n = t.size(d), small = n / count, extra = n % count, at = 0;
  std::vector<Tensor> r;
  for (int64_t k = 0; k < count; ++k) {
    int64_t length = small + (k < extra);
    r.push_back(t.slice(d, at, at + length));
    at += length;
  }
  return r;
}
void check_has_dims(const Args& a, int64_t n) {
  VESTA_CHECK(a.tensor(0).dim() >= n, a.name(), ": expected at least ", n, " dims, got ", a.tensor(0).dim());
}
// A 0-dim tensor is its own transpose (a legacy of mT and mH).
Tensor matrix_transpose(const Args& a) {
  if (a.tensor(0).dim() == 0) return a.tensor(0).alias();
  check_has_dims(a, 2);
  return a.tensor(0).transpose(-2, -1);
}
Results even_split(const Args& a, int64_t d) {
  int64_t n = a.tensor(0).size(d), k = a.integer(1);
  VESTA_CHECK(k > 0 && n % k == 0, a.name(), ": ", k, " sections do not divide size ", n);
  return sections(a, a.tensor(0), d, k);
}
Results chunks(const Args& a) {
  const Tensor& t = a.tensor(0);
  check_has_dims(a, 1);
  int64_t count = a.integer(1), d = wrap_dim(a, a.integer(2), t.dim()), n = t.size(d);
  VESTA_CHECK(count > 0, a.name(), ": expected chunks > 0, got ", count);
  if (n == 0) {
    VESTA_CHECK(count <= kMostSections, a.name(), ": expected at most 2^22 chunks, got ", count);
    return t.split_with_sizes(Ints(size_t(count), 0), d);
  }
  return t.split(n / count + (n % count != 0), d);
}
Tensor at_least(const Tensor& t, int64_t n) {
  if (t.dim() >= n) return t;
  if (n == 1) return t.reshape({1});
  if (n == 2) return t.dim() == 0 ? t.reshape({1, 1}) : t.unsqueeze(0);
  return t.dim() == 0 ? t.reshape({1, 1, 1}) : t.dim() == 1 ? t.unsqueeze(0).unsqueeze(-1) : t.unsqueeze(-1);
}
Results all_at_least(const Args& a, int64_t n) {
  std::vector<Tensor> r;
  for (auto& t : a.tensors(0)) r.push_back(at_least(t, n));
  return r;
}
std::vector<Tensor> stack_list(const Args& a, int64_t n) {
  VESTA_CHECK(!a.tensors(0).empty(), a.name(), ": expected at least one tensor");
  return all_at_least(a, n).items_;
}

Results grid(const Args& a, std::string_view indexing) {
  TensorList list = a.tensors(0);
  VESTA_CHECK(!list.empty(), a.name(), ": expected at least one tensor");
  VESTA_CHECK(indexing == "ij" || indexing == "xy", a.name(), ": expected indexing ij or xy, got \"", indexing, "\"");
  bool swap = indexing == "xy" && list.size() >= 2;
  Ints sizes;
  for (auto& t : list) {
    VESTA_CHECK(t.dim() <= 1, a.name(), ": expected tensors with at most 1 dim, got ", t.dim());
    VESTA_CHECK_AS(TypeError, t.dtype() == list[0].dtype(), a.name(), ": expected tensors of one dtype");
    sizes.push_back(t.numel());
  }
  if (swap) std::swap(sizes[0], sizes[1]);
  std::vector<Tensor> r;
  for (size_t k = 0; k < list.size(); ++k) {
    size_t place = swap && k < 2 ? 1 - k : k;
    Ints shape(list.size(), 1);
    shape[place] = list[k].numel();
    r.push_back(list[k].reshape(shape).expand(sizes));
  }
  return r;
}

constexpr OpDef table[] = {
// ---- dims in another order ----
OP("movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) { return move_dims(a, a.ints(1), a.ints(2)); },
  .shard = Shard::view(), .doc = "Dims moved to other places.", .samples = [](SampleGen& s) { s(s.t({2, 3, 4}), Ints{0, 1}, Ints{-1, 0}); }),
OP("moveaxis.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) { return move_dims(a, a.ints(1), a.ints(2)); },
  .shard = Shard::view(), .doc = "movedim.", .samples = [](SampleGen& s) { s(s.t({2, 3, 4}), Ints{0}, Ints{-1}); }),
OP("moveaxis.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) -> Results { return a.tensor(0).movedim(a.integer(1), a.integer(2)); },
  .shard = Shard::view(), .doc = "movedim.", .samples = [](SampleGen& s) { s(s.t({2, 3, 4}), 0, -1); }),
OP("swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) -> Results { return a.tensor(0).transpose(a.integer(1), a.integer(2)); },
  .shard = Shard::view(), .doc = "transpose.", .samples = [](SampleGen& s) { s(s.t({3, 4}), 0, 1); }),
OP("swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) -> Results { return a.tensor(0).transpose(a.integer(1), a.integer(2)); },
  .shard = Shard::view(), .doc = "transpose.", .samples = [](SampleGen& s) { s(s.t({3, 4}), 0, 1); }),
OP("numpy_T(Tensor(a) self) -> Tensor(a)",
  .types = any_types, .accepts_conj = true,
  .decompose = [](const Args& a) -> Results { Ints order; for (int64_t d = a.tensor(0).dim(); d-- > 0;) order.push_back(d); return a.tensor(0).permute(order); },
  .shard = Shard::view(), .doc = "All dims in reverse order.", .samples = [](SampleGen& s) { s(s.t({2, 3, 4})); }),
OP("mT(Tensor(a) self) -> Tensor(a)",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) -> Results { return matrix_transpose(a); },
  .shard = Shard::view(), .doc = "The last two dims swapped.", .samples = [](SampleGen& s) { s(s.t({2, 3, 4})); }),
OP("mH(Tensor(a) self) -> Tensor(a)",
  .types = any_types, .accepts_conj = true,
  .decompose = [](const Args& a) -> Results { Tensor t = matrix_transpose(a); return t.is_complex() ? t.conj() : t; },
  .shard = Shard::view(), .doc = "Conjugate transpose of the last two dims.", .samples = [](SampleGen& s) { s(s.t({2, 3, 4})); }),
OP("adjoint(Tensor(a) self) -> Tensor(a)",
  .types = any_types, .accepts_conj = true,
  .decompose = [](const Args& a) -> Results { check_has_dims(a, 2); Tensor t = a.tensor(0).transpose(-2, -1); return t.is_complex() ? t.conj() : t; },
  .shard = Shard::view(), .doc = "mH.", .samples = [](SampleGen& s) { s(s.t({2, 3, 4})); }),
OP("matrix_H(Tensor(a) self) -> Tensor(a)",
  .types = any_types, .accepts_conj = true,
  .decompose = [](const Args& a) -> Results {
      int64_t n = a.tensor(0).dim();
      VESTA_CHECK(n == 0 || n == 2, "matrix_H: expected a matrix, got ", n, " dims");
      Tensor t = n ? a.tensor(0).transpose(0, 1) : a.tensor(0).alias();
      return t.is_complex() ? t.conj() : t; },
  .shard = Shard::view(), .doc = "Conjugate transpose of a matrix.", .samples = [](SampleGen& s) { s(s.t({3, 4})); }),

// ---- other sizes ----
OP("_unsafe_view(Tensor self, int[] size) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) -> Results { return a.tensor(0).view(a.ints(1)); },
  .shard = Shard::view(), .doc = "view, of a tensor that nothing else uses.", .samples = [](SampleGen& s) { s(s.t({3, 4}), Ints{2, 6}); }),
OP("ravel(Tensor(a) self) -> Tensor(a)",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) -> Results { return a.tensor(0).contiguous().view({-1}); },
  .shard = Shard::view(), .doc = "All elements in one dim.", .samples = [](SampleGen& s) { s(s.t({3, 4})); s(s.t({})); }),
OP("reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) -> Results { return a.tensor(0).reshape(a.tensor(1).sizes()); },
  .shard = Shard::view(), .doc = "reshape to the sizes of other.", .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({12})); }),
OP("unflatten.int(Tensor(a) self, int dim, int[] sizes) -> Tensor(a)",
  .types = any_types, .accepts_conj = true,
  .decompose = [](const Args& a) -> Results {
      const Tensor& t = a.tensor(0);
      check_has_dims(a, 1);
      int64_t d = wrap_dim(a, a.integer(1), t.dim()), known = 1, unknown = -1, n = t.size(d);
      Ints parts = a.ints(2).vec();
      VESTA_CHECK(!parts.empty(), "unflatten: expected at least one size");
      for (size_t k = 0; k < parts.size(); ++k) {
        if (parts[k] == -1) {
          VESTA_CHECK(unknown < 0, "unflatten: only one size can be -1");
          unknown = int64_t(k);
        } else {
          VESTA_CHECK(parts[k] >= 0, "unflatten: expected sizes >= 0 or -1, got ", parts[k]);
          known = checked_mul(known, parts[k], "unflatten: the product of the sizes");
        }
      }
      if (unknown >= 0) {
        VESTA_CHECK(known > 0 && n % known == 0, "unflatten: the given sizes do not divide ", n);
        parts[size_t(unknown)] = n / known;
      } else {
        VESTA_CHECK(known == n, "unflatten: the given sizes multiply to ", known, ", dim ", d, " has size ", n);
      }
      Ints sizes = t.sizes().vec();
      sizes.erase(sizes.begin() + d);
      sizes.insert(sizes.begin() + d, parts.begin(), parts.end());
      return t.view(sizes); },
  .shard = Shard::view(), .doc = "One dim split into several.", .samples = [](SampleGen& s) { s(s.t({2, 6}), 1, Ints{2, -1}); }),
OP("broadcast_to(Tensor(a) self, int[] size) -> Tensor(a)",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) -> Results { return a.tensor(0).expand(a.ints(1)); },
  .shard = Shard::view(), .doc = "expand.", .samples = [](SampleGen& s) { s(s.t({3, 1}), Ints{2, 3, 4}); }),
OP("broadcast_tensors(Tensor[] tensors) -> Tensor[]",
  .types = any_types, .accepts_conj = true,
  .decompose = [](const Args& a) -> Results {
      std::vector<SymInt> shape;
      for (auto& t : a.tensors(0)) shape = broadcast_sizes(a, shape, InferCtx::sizes_of(t));
      Ints raw;
      for (auto s : shape) raw.push_back(s.raw());
      std::vector<Tensor> r;
      for (auto& t : a.tensors(0)) r.push_back(t.expand(raw));
      return r; },
  .shard = Shard::view(), .doc = "All tensors expanded to their common shape.", .samples = [](SampleGen& s) { s(std::vector<Tensor>{s.t({3, 1}), s.t({4})}); }),
OP("atleast_1d(Tensor self) -> Tensor",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) -> Results { return at_least(a.tensor(0), 1); },
  .shard = Shard::view(), .doc = "At least one dim.", .samples = [](SampleGen& s) { s.unary(s.shapes()); }),
OP("atleast_2d(Tensor self) -> Tensor",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) -> Results { return at_least(a.tensor(0), 2); },
  .shard = Shard::view(), .doc = "At least two dims; new ones come first.", .samples = [](SampleGen& s) { s.unary(s.shapes()); }),
OP("atleast_3d(Tensor self) -> Tensor",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) -> Results { return at_least(a.tensor(0), 3); },
  .shard = Shard::view(), .doc = "At least three dims; the third comes last.", .samples = [](SampleGen& s) { s.unary(s.shapes()); }),
OP("atleast_1d.Sequence(Tensor[] tensors) -> Tensor[]",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) { return all_at_least(a, 1); },
  .shard = Shard::view(), .doc = "atleast_1d of each.", .samples = [](SampleGen& s) { s(std::vector<Tensor>{s.t({}), s.t({2})}); }),
OP("atleast_2d.Sequence(Tensor[] tensors) -> Tensor[]",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) { return all_at_least(a, 2); },
  .shard = Shard::view(), .doc = "atleast_2d of each.", .samples = [](SampleGen& s) { s(std::vector<Tensor>{s.t({}), s.t({2})}); }),
OP("atleast_3d.Sequence(Tensor[] tensors) -> Tensor[]",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) { return all_at_least(a, 3); },
  .shard = Shard::view(), .doc = "atleast_3d of each.", .samples = [](SampleGen& s) { s(std::vector<Tensor>{s.t({}), s.t({2})}); }),

// ---- splitting ----
OP("chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]",
  .types = any_types, .accepts_conj = true, .decompose = chunks,
  .shard = {"split"}, .doc = "At most `chunks` pieces of equal length; the last may be shorter.", .samples = [](SampleGen& s) { s(s.t({6, 2}), 4); s(s.t({5, 2}), 2); }),
OP("unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]",
  .types = any_types, .decompose = chunks,
  .shard = {"split"}, .doc = "chunk.", .samples = [](SampleGen& s) { s(s.t({6, 2}), 4); }),
OP("unsafe_split.Tensor(Tensor self, int split_size, int dim=0) -> Tensor[]",
  .types = any_types, .decompose = [](const Args& a) -> Results { return a.tensor(0).split(a.integer(1), a.integer(2)); },
  .shard = {"split"}, .doc = "split.", .samples = [](SampleGen& s) { s(s.t({5, 2}), 2); }),
OP("unsafe_split_with_sizes(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]",
  .types = any_types, .decompose = [](const Args& a) -> Results { return a.tensor(0).split_with_sizes(a.ints(1), a.integer(2)); },
  .shard = {"split"}, .doc = "split_with_sizes.", .samples = [](SampleGen& s) { s(s.t({5, 2}), Ints{2, 3}); }),
OP("split.sizes(Tensor(a -> *) self, int[] split_size, int dim=0) -> Tensor(a)[]",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) -> Results { return a.tensor(0).split_with_sizes(a.ints(1), a.integer(2)); },
  .shard = {"split"}, .doc = "split_with_sizes.", .samples = [](SampleGen& s) { s(s.t({5, 2}), Ints{2, 3}); }),
OP("tensor_split.sections(Tensor(a -> *) self, int sections, int dim=0) -> Tensor(a)[]",
  .types = any_types, .accepts_conj = true,
  .decompose = [](const Args& a) -> Results { check_has_dims(a, 1); return sections(a, a.tensor(0), wrap_dim(a, a.integer(2), a.tensor(0).dim()), a.integer(1)); },
  .shard = {"split"}, .doc = "Pieces whose lengths differ by at most 1, the longer first.", .samples = [](SampleGen& s) { s(s.t({5, 2}), 3); s(s.t({2, 5}), 7, 1); }),
OP("tensor_split.indices(Tensor(a -> *) self, int[] indices, int dim=0) -> Tensor(a)[]",
  .types = any_types, .accepts_conj = true,
  .decompose = [](const Args& a) -> Results { check_has_dims(a, 1); return pieces_at(a.tensor(0), wrap_dim(a, a.integer(2), a.tensor(0).dim()), a.ints(1)); },
  .shard = {"split"}, .doc = "Pieces between the given positions.", .samples = [](SampleGen& s) { s(s.t({5, 2}), Ints{1, 3}); s(s.t({2, 5}), Ints{4, 2, 9}, 1); }),
OP("tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, Tensor tensor_indices_or_sections, int dim=0) -> Tensor(a)[]",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      const Tensor& at = a.tensor(1);
      check_has_dims(a, 1);
      VESTA_CHECK_AS(TypeError, at.dtype() == kLong, a.name(), ": expected int64, got ", dtype_name(at.dtype()));
      VESTA_CHECK(at.dim() <= 1, a.name(), ": expected a tensor with at most 1 dim, got ", at.dim());
      int64_t d = wrap_dim(a, a.integer(2), a.tensor(0).dim());
      if (at.dim() == 0) return sections(a, a.tensor(0), d, at.item().toLong());
      Tensor c = at.contiguous();
      return pieces_at(a.tensor(0), d, IntArrayRef(c.data_ptr<int64_t>(), size_t(c.numel()))); },
  .shard = {"split"}, .doc = "tensor_split with sections or positions from a tensor.", .samples = [](SampleGen& s) { s(s.t({5, 2}), Tensor(arange(3))); }),
OP("hsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) -> Results { check_has_dims(a, 1); return even_split(a, a.tensor(0).dim() == 1 ? 0 : 1); },
  .shard = {"split"}, .doc = "Equal pieces of columns.", .samples = [](SampleGen& s) { s(s.t({2, 4}), 2); }),
OP("hsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) -> Results { check_has_dims(a, 1); return pieces_at(a.tensor(0), a.tensor(0).dim() == 1 ? 0 : 1, a.ints(1)); },
  .shard = {"split"}, .doc = "Pieces of columns between positions.", .samples = [](SampleGen& s) { s(s.t({2, 4}), Ints{1}); }),
OP("vsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) -> Results { check_has_dims(a, 2); return even_split(a, 0); },
  .shard = {"split"}, .doc = "Equal pieces of rows.", .samples = [](SampleGen& s) { s(s.t({4, 2}), 2); }),
OP("vsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) -> Results { check_has_dims(a, 2); return pieces_at(a.tensor(0), 0, a.ints(1)); },
  .shard = {"split"}, .doc = "Pieces of rows between positions.", .samples = [](SampleGen& s) { s(s.t({4, 2}), Ints{1}); }),
OP("dsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) -> Results { check_has_dims(a, 3); return even_split(a, 2); },
  .shard = {"split"}, .doc = "Equal pieces of the third dim.", .samples = [](SampleGen& s) { s(s.t({2, 2, 4}), 2); }),
OP("dsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) -> Results { check_has_dims(a, 3); return pieces_at(a.tensor(0), 2, a.ints(1)); },
  .shard = {"split"}, .doc = "Pieces of the third dim between positions.", .samples = [](SampleGen& s) { s(s.t({2, 2, 4}), Ints{1}); }),
OP("narrow.Tensor(Tensor(a) self, int dim, Tensor start, int length) -> Tensor(a)",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      VESTA_CHECK_AS(TypeError, a.tensor(2).dim() == 0 && is_integral(a.tensor(2).dtype()), "narrow: expected a 0-dim integer start");
      return a.tensor(0).narrow(a.integer(1), a.tensor(2).item().toLong(), a.integer(3)); },
  .shard = {"slice"}, .doc = "narrow with its start from a tensor.", .samples = [](SampleGen& s) { s(s.t({5, 4}), 0, scalar_tensor(1, TensorOptions(kLong)), 3); }),

// ---- joining ----
OP("hstack(Tensor[] tensors) -> Tensor",
  .forms = Out, .types = any_types,
  .decompose = [](const Args& a) -> Results { auto list = stack_list(a, 1); return cat(list, list[0].dim() == 1 ? 0 : 1); },
  .shard = {"cat"}, .doc = "Joined along columns.", .samples = [](SampleGen& s) { s(std::vector<Tensor>{s.t({2, 3}), s.t({2, 1})}); s(std::vector<Tensor>{s.t({2}), s.t({})}); }),
OP("vstack(Tensor[] tensors) -> Tensor",
  .forms = Out, .types = any_types, .decompose = [](const Args& a) -> Results { return cat(stack_list(a, 2), 0); },
  .shard = {"cat"}, .doc = "Joined along rows; vectors are rows.", .samples = [](SampleGen& s) { s(std::vector<Tensor>{s.t({2, 3}), s.t({3})}); }),
OP("row_stack(Tensor[] tensors) -> Tensor",
  .forms = Out, .types = any_types, .decompose = [](const Args& a) -> Results { return cat(stack_list(a, 2), 0); },
  .shard = {"cat"}, .doc = "vstack.", .samples = [](SampleGen& s) { s(std::vector<Tensor>{s.t({2, 3}), s.t({3})}); }),
OP("dstack(Tensor[] tensors) -> Tensor",
  .forms = Out, .types = any_types, .decompose = [](const Args& a) -> Results { return cat(stack_list(a, 3), 2); },
  .shard = {"cat"}, .doc = "Joined along the third dim.", .samples = [](SampleGen& s) { s(std::vector<Tensor>{s.t({2, 3}), s.t({2, 3})}); }),
OP("column_stack(Tensor[] tensors) -> Tensor",
  .forms = Out, .types = any_types,
  .decompose = [](const Args& a) -> Results {
      VESTA_CHECK(!a.tensors(0).empty(), "column_stack: expected at least one tensor");
      std::vector<Tensor> list;
      for (auto& t : a.tensors(0)) list.push_back(t.dim() <= 1 ? t.reshape({t.numel(), 1}) : t);
      return cat(list, 1); },
  .shard = {"cat"}, .doc = "hstack in which vectors are columns.", .samples = [](SampleGen& s) { s(std::vector<Tensor>{s.t({2, 3}), s.t({2})}); }),
OP("concat(Tensor[] tensors, int dim=0) -> Tensor",
  .forms = Out, .types = any_types, .decompose = [](const Args& a) -> Results { return cat(a.tensors(0), a.integer(1)); },
  .shard = {"cat"}, .doc = "cat.", .samples = [](SampleGen& s) { s(std::vector<Tensor>{s.t({2, 3}), s.t({1, 3})}); }),
OP("concatenate(Tensor[] tensors, int dim=0) -> Tensor",
  .forms = Out, .types = any_types, .decompose = [](const Args& a) -> Results { return cat(a.tensors(0), a.integer(1)); },
  .shard = {"cat"}, .doc = "cat.", .samples = [](SampleGen& s) { s(std::vector<Tensor>{s.t({2, 3}), s.t({1, 3})}); }),
OP("_stack(Tensor[] tensors, int dim=0) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) -> Results { return stack(a.tensors(0), a.integer(1)); },
  .shard = {"stack"}, .doc = "stack.", .samples = [](SampleGen& s) { s(std::vector<Tensor>{s.t({2}), s.t({2})}); }),
OP("block_diag(Tensor[] tensors) -> Tensor",
  .types = all_types,
  .decompose = [](const Args& a) -> Results {
      int64_t rows = 0, cols = 0, r = 0, c = 0;
      std::vector<Tensor> blocks;
      DType type = DType::Undefined;
      for (auto& t : a.tensors(0)) {
        VESTA_CHECK(t.dim() <= 2, "block_diag: expected tensors with at most 2 dims, got ", t.dim());
        type = type == DType::Undefined ? t.dtype() : promote_types(type, t.dtype());
        blocks.push_back(at_least(t, 2));
        rows += blocks.back().size(0), cols += blocks.back().size(1);
      }
      if (blocks.empty()) return zeros({1, 0});
      std::vector<Tensor> bands;
      for (auto& b : blocks) {
        bands.push_back(constant_pad_nd(b.to(type), {c, cols - c - b.size(1)}, 0));
        r += b.size(0), c += b.size(1);
      }
      return cat(bands, 0); },
  .shard = Shard::replicate(), .doc = "Matrices along the diagonal of a larger one.", .samples = [](SampleGen& s) { s(std::vector<Tensor>{s.t({2, 3}), s.t({2}), s.t({})}); }),
OP("meshgrid(Tensor[] tensors) -> Tensor[]",
  .types = any_types, .decompose = [](const Args& a) { return grid(a, "ij"); },
  .shard = Shard::view(), .doc = "Coordinates of a grid; matrix order.", .samples = [](SampleGen& s) { s(std::vector<Tensor>{s.t({2}), s.t({3})}); }),
OP("meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]",
  .types = any_types, .decompose = [](const Args& a) { return grid(a, a.string(1)); },
  .shard = Shard::view(), .doc = "Coordinates of a grid: ij, or xy with the first two dims swapped.", .samples = [](SampleGen& s) { s(std::vector<Tensor>{s.t({2}), s.t({3})}, "xy"); }),
OP("cartesian_prod(Tensor[] tensors) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      VESTA_CHECK(!a.tensors(0).empty(), "cartesian_prod: expected at least one tensor");
      for (auto& t : a.tensors(0)) VESTA_CHECK(t.dim() == 1, "cartesian_prod: expected tensors with 1 dim, got ", t.dim());
      if (a.tensors(0).size() == 1) return a.tensors(0)[0];
      std::vector<Tensor> columns;
      for (auto& t : grid(a, "ij").items_) columns.push_back(t.flatten());
      return stack(columns, 1); },
  .shard = Shard::replicate(), .doc = "All combinations of one element of each tensor.", .samples = [](SampleGen& s) { s(std::vector<Tensor>{s.t({2}), s.t({3})}); }),
OP("combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      const Tensor& t = a.tensor(0);
      int64_t r = a.integer(1), n = t.numel();
      VESTA_CHECK(t.dim() == 1, "combinations: expected 1 dim, got ", t.dim());
      VESTA_CHECK(r >= 0, "combinations: expected r >= 0, got ", r);
      if (r == 0) return empty({0}, t.options());
      bool again = a.flag(2);
      if (again ? n == 0 : r > n) return t.slice(0, 0, 0).view({0, r});
      // ln of the number of choices; the list of their indices must fit into memory before it is made.
      double m = again ? double(n) + double(r) - 1 : double(n), choices = std::lgamma(m + 1) - std::lgamma(double(r) + 1) - std::lgamma(m - double(r) + 1);
      VESTA_CHECK(choices + std::log(double(r)) < std::log(0x1p31), "combinations: all choices of ", r, " out of ", n, " would be more than 2^31 elements");
      Ints flat, at(static_cast<size_t>(r));
      for (int64_t k = 0; k < r; ++k) at[size_t(k)] = again ? 0 : k;
      for (;;) {
        flat.insert(flat.end(), at.begin(), at.end());
        int64_t k = r - 1;
        while (k >= 0 && at[size_t(k)] == (again ? n - 1 : n - r + k)) --k;
        if (k < 0) break;
        ++at[size_t(k)];
        for (int64_t j = k + 1; j < r; ++j) at[size_t(j)] = again ? at[size_t(k)] : at[size_t(j - 1)] + 1;
      }
      Tensor index = empty_cpu({int64_t(flat.size())}, kLong);  // a constant also where this is traced
      std::copy(flat.begin(), flat.end(), index.data_ptr<int64_t>());
      return t.index_select(0, index).view({int64_t(flat.size()) / r, r}); },
  .shard = Shard::replicate(), .doc = "All choices of r elements, in order.", .samples = [](SampleGen& s) { s(s.t({4})); s(s.t({3}), 3, true); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(shape, table)
