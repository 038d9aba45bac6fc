// Views: operators that show the same memory with other sizes, strides and offset. Their inference is all there is.
#include <algorithm>

#include "ops/infer.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;
using Sizes = SymDims;

Sizes sizes_vec(const InferCtx& c, int i) { return {c.sizes(i).begin(), c.sizes(i).end()}; }
Sizes strides_vec(const InferCtx& c, int i) { return {c.strides(i).begin(), c.strides(i).end()}; }
SymInt offset(const InferCtx& c) { return InferCtx::offset_of(c.tensor(0)); }
Sizes sym(IntArrayRef v) { return {v.begin(), v.end()}; }

// Copies all dims of argument 0 but one.
void copy_without(const InferCtx& c, int left_out, OutMeta& v) {
  ArrayRef<SymInt> from_sizes = c.sizes(0), from_strides = c.strides(0);
  SymInt *sizes = v.sizes(), *strides = v.strides();
  for (int d = 0, to = 0; d < int(from_sizes.size()); ++d) {
    if (d == left_out) continue;
    sizes[to] = from_sizes[size_t(d)];
    strides[to++] = from_strides[size_t(d)];
  }
}
OutMeta& start_like_self(InferCtx& c) {
  OutMeta& v = c.start_view(0, c.dim(0));
  copy_without(c, -1, v);
  return v;
}

// Writes the wanted sizes to s. Whether they hold the elements of t as they are: no -1, nothing symbolic.
bool holds_elements(const TensorImpl* t, IntArrayRef wanted, SymInt* s) {
  int64_t known = 1;
  bool given = true;
  for (size_t d = 0; d < wanted.size(); ++d) {
    s[d] = SymInt::from_raw(wanted[d]);
    given &= wanted[d] >= 0 && !__builtin_mul_overflow(known, wanted[d], &known);  // symbols are negative
  }
  return given && known == t->numel;
}

// Writes the wanted sizes to s, one -1 replaced by what the element count leaves.
void infer_size(const InferCtx& c, IntArrayRef wanted, SymInt numel, SymInt* s) {
  int unknown = -1;
  SymInt known = 1;
  for (size_t d = 0; d < wanted.size(); ++d) {
    SymInt size = s[d] = wanted[d];
    if (size.is_symbolic() || size.raw() >= 0) [[likely]] {
      known *= size;
    } else {
      VESTA_CHECK(size.raw() == -1, c.name(), ": expected sizes >= 0 or -1, got ", size.raw());
      VESTA_CHECK(unknown < 0, c.name(), ": only one dim can be -1");
      unknown = int(d);
    }
  }
  if (unknown < 0) [[likely]] {
    VESTA_CHECK(known == numel, c.name(), ": the given shape holds ", known.str(), " elements, the tensor has ", numel.str());
    return;
  }
  VESTA_CHECK(!(known == 0), c.name(), ": cannot infer -1 beside a size of 0");
  VESTA_CHECK(numel % known == 0, c.name(), ": ", numel.str(), " elements do not fill the given shape");
  s[size_t(unknown)] = numel / known;
}

// Strides of a reshape without copying, or false: each run of old dims that is contiguous in itself is split anew.
bool view_strides(const Tensor& t, ArrayRef<SymInt> sizes, SymInt* strides) {
  ArrayRef<SymInt> old_sizes = InferCtx::sizes_of(t), old_strides = InferCtx::strides_of(t);
  if (t.impl()->contiguous()) {
    SymInt step = 1;
    for (size_t d = sizes.size(); d-- > 0;) {
      strides[d] = step;
      if (sizes[d].is_symbolic() || sizes[d].raw() > 1) step *= sizes[d];
    }
    return true;
  }
  SymInt numel = 1;
  for (auto s : old_sizes) numel *= s;
  if (numel == 0) {
    SymInt step = 1;
    for (int d = int(sizes.size()) - 1; d >= 0; --d) {
      strides[size_t(d)] = step;
      step *= max(sizes[size_t(d)], 1);
    }
    return true;
  }
  int v = int(sizes.size()) - 1;
  SymInt run_stride = old_sizes.empty() ? SymInt(1) : old_strides.back();
  SymInt run = 1, filled = 1;
  for (int d = int(old_sizes.size()) - 1; d >= 0; --d) {
    run *= old_sizes[size_t(d)];
    bool ends = d == 0 || (!(old_sizes[size_t(d - 1)] == 1) && !(old_strides[size_t(d - 1)] == run * run_stride));
    if (!ends) continue;
    while (v >= 0 && (filled < run || sizes[size_t(v)] == 1)) {
      strides[size_t(v)] = filled * run_stride;
      filled *= sizes[size_t(v)];
      --v;
    }
    if (!(filled == run)) return false;
    if (d > 0) {
      run_stride = old_strides[size_t(d - 1)];
      run = filled = 1;
    }
  }
  // A 0-dim tensor has no run to end: only sizes of 1 can remain.
  while (v >= 0 && sizes[size_t(v)] == 1) --v;
  return v == -1;
}

SymInt numel_of(const InferCtx& c, int i) { return SymInt::from_raw(c.tensor(i).numel()); }

void infer_view(InferCtx& c) {
  IntArrayRef wanted = c.ints(1);
  OutMeta& v = c.start_view(0, int(wanted.size()));
  const TensorImpl* t = c.tensor(0).impl();
  if (!holds_elements(t, wanted, v.sizes())) [[unlikely]]
    infer_size(c, wanted, numel_of(c, 0), v.sizes());
  // Row-major strides are what a meta without strides means; a traced tensor's may be symbolic.
  v.has_strides = !t->contiguous() || (t->bits & TensorImpl::kTrace) || !t->storage;
  if (v.has_strides) [[unlikely]]
    VESTA_CHECK(view_strides(c.tensor(0), {v.sizes(), wanted.size()}, v.strides()), c.name(),
                ": the size is not compatible with the tensor's strides (some dims span memory that is not contiguous); use reshape");
}

void infer_transpose(InferCtx& c) {
  int n = c.dim(0), a = c.wrap_dim(c.integer(1), n), b = c.wrap_dim(c.integer(2), n);
  OutMeta& v = start_like_self(c);
  if (n) {
    std::swap(v.sizes()[a], v.sizes()[b]);
    std::swap(v.strides()[a], v.strides()[b]);
  }
}

void infer_permute(InferCtx& c) {
  int n = c.dim(0);
  IntArrayRef dims = c.ints(1);
  VESTA_CHECK(int(dims.size()) == n, c.name(), ": expected ", n, " dims, got ", dims.size());
  Sizes sizes, strides;
  std::vector<bool> seen(size_t(n), false);
  for (int64_t d : dims) {
    int w = c.wrap_dim(d, n);
    VESTA_CHECK(!seen[size_t(w)], c.name(), ": dim ", w, " appears twice");
    seen[size_t(w)] = true;
    sizes.push_back(c.sizes(0)[size_t(w)]);
    strides.push_back(c.strides(0)[size_t(w)]);
  }
  c.out_view(0, 0, sizes, strides, offset(c));
}

void infer_expand(InferCtx& c) {
  IntArrayRef wanted = c.ints(1);
  int n = c.dim(0), lead = int(wanted.size()) - n;
  VESTA_CHECK(lead >= 0, c.name(), ": expected at least ", n, " sizes, got ", wanted.size());
  OutMeta& v = c.start_view(0, int(wanted.size()));
  SymInt *sizes = v.sizes(), *strides = v.strides();
  for (size_t d = 0; d < wanted.size(); ++d) {
    SymInt want(wanted[d]);
    bool own = int(d) >= lead;
    SymInt have = own ? c.sizes(0)[d - size_t(lead)] : SymInt(1);
    if (want == -1) {
      VESTA_CHECK(own, c.name(), ": -1 is not allowed in a new leading dim");
      want = have;
    }
    VESTA_CHECK(want >= 0, c.name(), ": expected sizes >= 0, got ", want.str());
    VESTA_CHECK(have == want || have == 1, c.name(), ": cannot expand size ", have.str(), " to ", want.str(), " at dim ", d);
    sizes[d] = want;
    strides[d] = own && !(have == 1 && !(want == 1)) ? c.strides(0)[d - size_t(lead)] : SymInt(0);
  }
}

void infer_select(InferCtx& c) {
  int n = c.dim(0);
  VESTA_CHECK_AS(IndexError, n > 0, c.name(), ": cannot select from a 0-dim tensor");
  int d = c.wrap_dim(c.integer(1), n);
  SymInt size = c.sizes(0)[size_t(d)], index = c.integer(2);
  VESTA_CHECK_AS(IndexError, index < size && index >= 0 - size, c.name(), ": index ", index.str(), " is out of range for dim ", d, " of size ", size.str());
  if (index < 0) index += size;
  OutMeta& v = c.start_view(0, n - 1);
  copy_without(c, d, v);
  v.offset += index * c.strides(0)[size_t(d)];
}

void infer_slice(InferCtx& c) {
  int n = c.dim(0);
  VESTA_CHECK_AS(IndexError, n > 0, c.name(), ": cannot slice a 0-dim tensor");
  int d = c.wrap_dim(c.integer(1, 0), n);
  SymInt size = c.sizes(0)[size_t(d)];
  SymInt start = c.has(2) ? SymInt(c.integer(2)) : SymInt(0), end = c.has(3) ? SymInt(c.integer(3)) : size;
  int64_t step = c.integer(4, 1);
  VESTA_CHECK(step > 0, c.name(), ": expected a step > 0, got ", step);
  if (start < 0) start += size;
  if (end < 0) end += size;
  if (start < 0) start = 0;
  if (start > size) start = size;
  if (end < start) end = start;
  if (end > size) end = size;
  OutMeta& v = start_like_self(c);
  v.offset += start * v.strides()[d];
  v.sizes()[d] = ceil_div(end - start, step);
  v.strides()[d] *= step;
}

void infer_unsqueeze(InferCtx& c) {
  int n = c.dim(0), d = c.wrap_dim(c.integer(1), n + 1);
  Sizes sizes = sizes_vec(c, 0), strides = strides_vec(c, 0);
  SymInt stride = d < n ? sizes[size_t(d)] * strides[size_t(d)] : SymInt(1);
  sizes.insert(sizes.begin() + d, SymInt(1));
  strides.insert(strides.begin() + d, stride);
  c.out_view(0, 0, sizes, strides, offset(c));
}

void squeeze_marked(InferCtx& c, const std::vector<bool>& marked) {
  Sizes sizes, strides;
  for (size_t d = 0; d < marked.size(); ++d)
    if (!(marked[d] && c.sizes(0)[d] == 1)) {
      sizes.push_back(c.sizes(0)[d]);
      strides.push_back(c.strides(0)[d]);
    }
  c.out_view(0, 0, sizes, strides, offset(c));
}
void infer_squeeze(InferCtx& c) { squeeze_marked(c, std::vector<bool>(size_t(c.dim(0)), true)); }
void infer_squeeze_dims(InferCtx& c) {
  std::vector<bool> marked(size_t(c.dim(0)), false);
  auto mark = [&](int64_t d) {
    int w = c.wrap_dim(d, c.dim(0));
    if (size_t(w) < marked.size()) marked[size_t(w)] = true;
  };
  if (c.value(1).kind == ValueKind::Int) mark(c.integer(1));
  else for (int64_t d : c.ints(1)) mark(d);
  squeeze_marked(c, marked);
}

void infer_as_strided(InferCtx& c) {
  IntArrayRef sizes = c.ints(1), strides = c.ints(2);
  VESTA_CHECK(sizes.size() == strides.size(), c.name(), ": expected as many strides as sizes, got ", strides.size(), " and ", sizes.size());
  SymInt at = c.has(3) ? SymInt(c.integer(3)) : offset(c);
  SymInt extent = at + 1;
  bool empty = false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    VESTA_CHECK(sizes[d] >= 0 && strides[d] >= 0, c.name(), ": expected sizes and strides >= 0");
    empty |= sizes[d] == 0;
    int64_t reach;
    VESTA_CHECK(!__builtin_mul_overflow(std::max<int64_t>(sizes[d] - 1, 0), strides[d], &reach), c.name(), ": the extent overflows");
    extent += reach;
  }
  VESTA_CHECK(at >= 0, c.name(), ": expected a storage offset >= 0");
  const Tensor& t = c.tensor(0);
  if ((t.impl()->bits & TensorImpl::kHasData) && !empty)
    VESTA_CHECK(extent.raw() >= 0 && uint64_t(extent.raw()) * t.element_size() <= t.impl()->storage->bytes, c.name(), ": the view reaches element ",
                extent.raw(), ", the storage has ", t.impl()->storage->bytes / t.element_size());
  c.out_view(0, 0, sym(sizes), sym(strides), at);
}

void infer_same(InferCtx& c) { c.out_view(0, 0, c.sizes(0), c.strides(0), offset(c)); }

void infer_diagonal(InferCtx& c) {
  int n = c.dim(0);
  VESTA_CHECK(n >= 2, c.name(), ": expected at least 2 dims, got ", n);
  int64_t off = c.integer(1, 0);
  int a = c.wrap_dim(c.integer(2, 0), n), b = c.wrap_dim(c.integer(3, 1), n);
  VESTA_CHECK(a != b, c.name(), ": the two dims must differ, both are ", a);
  Sizes sizes = sizes_vec(c, 0), strides = strides_vec(c, 0);
  SymInt rows = sizes[size_t(a)], cols = sizes[size_t(b)];
  SymInt length = off >= 0 ? min(rows, cols - off) : min(rows + off, cols);
  if (length < 0) length = 0;
  SymInt at = offset(c);
  if (!(length == 0)) at += off >= 0 ? strides[size_t(b)] * off : strides[size_t(a)] * (-off);
  SymInt step = strides[size_t(a)] + strides[size_t(b)];
  for (int d : {std::max(a, b), std::min(a, b)}) {
    sizes.erase(sizes.begin() + d);
    strides.erase(strides.begin() + d);
  }
  sizes.push_back(length);
  strides.push_back(step);
  c.out_view(0, 0, sizes, strides, at);
}

void infer_unfold(InferCtx& c) {
  int n = c.dim(0), d = c.wrap_dim(c.integer(1), n);
  int64_t size = c.integer(2), step = c.integer(3);
  Sizes sizes = sizes_vec(c, 0), strides = strides_vec(c, 0);
  if (n == 0) {
    sizes = {SymInt(1)};
    strides = {SymInt(1)};
  }
  VESTA_CHECK(size >= 0 && sizes[size_t(d)] >= size, c.name(), ": expected a size in [0, ", sizes[size_t(d)].str(), "], got ", size);
  VESTA_CHECK(step > 0, c.name(), ": expected a step > 0, got ", step);
  if (n == 0) {
    c.out_view(0, 0, Sizes{SymInt(size)}, Sizes{SymInt(1)}, offset(c));
    return;
  }
  SymInt inner = strides[size_t(d)];
  sizes[size_t(d)] = (sizes[size_t(d)] - size) / step + 1;
  strides[size_t(d)] *= step;
  sizes.push_back(size);
  strides.push_back(inner);
  c.out_view(0, 0, sizes, strides, offset(c));
}

// ---- several views ----
// A view with one element in memory can have any size: what makes a tensor of each index must say no at some number.
constexpr int64_t kMostViews = int64_t(1) << 22;
int checked_count(const InferCtx& c, int64_t n) {
  VESTA_CHECK(n <= kMostViews, c.name(), ": expected at most 2^22 pieces, got ", n);
  return int(n);
}
void pieces(InferCtx& c, int d, const Sizes& lengths) {
  c.set_count(int(lengths.size()));
  SymInt at = offset(c);
  for (size_t k = 0; k < lengths.size(); ++k) {
    Sizes sizes = sizes_vec(c, 0);
    sizes[size_t(d)] = lengths[k];
    c.out_view(int(k), 0, sizes, c.strides(0), at);
    at += lengths[k] * c.strides(0)[size_t(d)];
  }
}
void infer_split(InferCtx& c) {
  VESTA_CHECK(c.dim(0) > 0, c.name(), ": expected at least 1 dim");
  int d = c.wrap_dim(c.integer(2, 0), c.dim(0));
  int64_t piece = c.integer(1), size = c.sizes(0)[size_t(d)].as_int();
  VESTA_CHECK(piece >= 0 && (piece > 0 || size == 0), c.name(), ": expected a split size > 0, got ", piece);
  if (piece > 0) checked_count(c, size / piece);
  Sizes lengths;
  for (int64_t at = 0; at < size; at += std::min(piece, size - at)) lengths.push_back(std::min(piece, size - at));
  if (lengths.empty()) lengths.push_back(0);
  pieces(c, d, lengths);
}
void infer_split_with_sizes(InferCtx& c) {
  VESTA_CHECK(c.dim(0) > 0, c.name(), ": expected at least 1 dim");
  int d = c.wrap_dim(c.integer(2, 0), c.dim(0));
  SymInt total = 0;  // checked: lengths that wrap to the right sum would be views outside the tensor
  for (int64_t n : c.ints(1)) {
    VESTA_CHECK(SymInt(n).is_symbolic() || n >= 0, c.name(), ": expected split sizes >= 0, got ", n);
    total += n;
  }
  VESTA_CHECK(c.sizes(0)[size_t(d)] == total, c.name(), ": the split sizes add up to ", total.str(), ", dim ", d, " has size ", c.sizes(0)[size_t(d)].str());
  pieces(c, d, sym(c.ints(1)));
}
void infer_unbind(InferCtx& c) {
  VESTA_CHECK(c.dim(0) > 0, c.name(), ": expected at least 1 dim");
  int d = c.wrap_dim(c.integer(1, 0), c.dim(0));
  int n = checked_count(c, c.sizes(0)[size_t(d)].as_int());
  c.set_count(n);
  Sizes sizes = sizes_vec(c, 0), strides = strides_vec(c, 0);
  SymInt step = strides[size_t(d)];
  sizes.erase(sizes.begin() + d);
  strides.erase(strides.begin() + d);
  for (int k = 0; k < n; ++k) c.out_view(k, 0, sizes, strides, offset(c) + step * k);
}

std::vector<Tensor> materialized(const Grad& g, int count, const std::vector<std::vector<int64_t>>& sizes) {
  std::vector<Tensor> list;
  TensorOptions options;
  for (int k = 0; k < count; ++k)
    if (g.dy(k).defined()) options = g.dy(k).options();
  for (int k = 0; k < count; ++k) list.push_back(g.dy(k).defined() ? g.dy(k) : zeros(sizes[size_t(k)], options));
  return list;
}

std::vector<int64_t> inverse(IntArrayRef dims) {
  std::vector<int64_t> r(dims.size());
  for (size_t k = 0; k < dims.size(); ++k) r[size_t(dims[k] < 0 ? dims[k] + int64_t(dims.size()) : dims[k])] = int64_t(k);
  return r;
}

constexpr OpDef table[] = {
OP("view(Tensor(a) self, int[] size) -> Tensor(a)",
  .types = any_types, .infer = infer_view, .accepts_conj = true,
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy().reshape(g.sizes(0)); }); },
  .shard = Shard::view(), .doc = "The same elements with other sizes; ValueError where the strides do not allow it.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), std::vector<int64_t>{2, 6}); s(s.t({3, 4}), std::vector<int64_t>{-1}); s(s.t({}), std::vector<int64_t>{1, 1}); }),
OP("transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
  .types = any_types, .infer = infer_transpose, .accepts_conj = true,
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy().transpose(g.integer(1), g.integer(2)); }); },
  .shard = Shard::view(), .doc = "Two dims swapped.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), 0, 1); s(s.t({2, 3, 4}), 0, -1); s(s.t({}), 0, -1); }),
OP("permute(Tensor(a) self, int[] dims) -> Tensor(a)",
  .types = any_types, .infer = infer_permute, .accepts_conj = true,
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy().permute(inverse(g.ints(1))); }); },
  .shard = Shard::view(), .doc = "Dims in another order.",
  .samples = [](SampleGen& s) { s(s.t({2, 3, 4}), std::vector<int64_t>{2, 0, 1}); s(s.t({}), std::vector<int64_t>{}); }),
OP("expand(Tensor(a) self, int[] size, *, bool implicit=False) -> Tensor(a)",
  .types = any_types, .infer = infer_expand, .accepts_conj = true,
  .vjp = [](const Grad& g) { return grads(G(0) { return sum_to_size(g.dy(), g.sizes(0)); }); },
  .shard = Shard::view(), .doc = "Size-1 dims repeated without copying.",
  .samples = [](SampleGen& s) { s(s.t({3, 1}), std::vector<int64_t>{2, 3, 4}); s(s.t({3, 1}), std::vector<int64_t>{-1, 4}); }),
OP("select.int(Tensor(a) self, int dim, int index) -> Tensor(a)",
  .types = any_types, .infer = infer_select, .accepts_conj = true,
  .vjp = [](const Grad& g) { return grads(G(0) { return select_backward(g.dy(), g.sizes(0), g.integer(1), g.integer(2)); }); },
  .shard = {"select"}, .doc = "One index of a dim, which disappears.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), 0, 1); s(s.t({3, 4}), -1, -2); }),
OP("slice.Tensor(Tensor(a) self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor(a)",
  .types = any_types, .infer = infer_slice, .accepts_conj = true,
  .vjp = [](const Grad& g) { return grads(G(0) { auto n = g.sizes(0)[size_t(g.integer(1) < 0 ? g.integer(1) + int64_t(g.sizes(0).size()) : g.integer(1))];
                                                 return slice_backward(g.dy(), g.sizes(0), g.integer(1), g.integer(2, 0), g.integer(3, n), g.integer(4)); }); },
  .shard = {"slice"}, .doc = "Indices start, start + step, ... below end of a dim; out-of-range bounds are clipped.",
  .samples = [](SampleGen& s) { s(s.t({5, 4}), 0, 1, 4, 2); s(s.t({5, 4}), -1, -3); s(s.t({5, 4}), 0, 4, 2); }),
OP("unsqueeze(Tensor(a) self, int dim) -> Tensor(a)",
  .types = any_types, .infer = infer_unsqueeze, .accepts_conj = true,
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy().squeeze(g.integer(1)); }); },
  .shard = Shard::view(), .doc = "A new dim of size 1.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), 0); s(s.t({3, 4}), -1); s(s.t({}), 0); }),
OP("squeeze(Tensor(a) self) -> Tensor(a)",
  .types = any_types, .infer = infer_squeeze, .accepts_conj = true,
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy().reshape(g.sizes(0)); }); },
  .shard = Shard::view(), .doc = "Without the dims of size 1.",
  .samples = [](SampleGen& s) { s(s.t({3, 1, 4, 1})); s(s.t({})); }),
OP("squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)",
  .types = any_types, .infer = infer_squeeze_dims, .accepts_conj = true,
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy().reshape(g.sizes(0)); }); },
  .shard = Shard::view(), .doc = "Without this dim, if its size is 1.",
  .samples = [](SampleGen& s) { s(s.t({3, 1, 4}), 1); s(s.t({3, 1, 4}), 0); s(s.t({}), 0); }),
OP("squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)",
  .types = any_types, .infer = infer_squeeze_dims, .accepts_conj = true,
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy().reshape(g.sizes(0)); }); },
  .shard = Shard::view(), .doc = "Without those of these dims whose size is 1.",
  .samples = [](SampleGen& s) { s(s.t({3, 1, 1}), std::vector<int64_t>{1, -1}); }),
OP("as_strided(Tensor(a) self, int[] size, int[] stride, int? storage_offset=None) -> Tensor(a)",
  .types = any_types, .infer = infer_as_strided, .accepts_conj = true,
  // The memory outside of self has no gradient: scatter into a flat buffer of self's extent. Inputs must be contiguous.
  .vjp = [](const Grad& g) { return grads(G(0) {
      int64_t n = 1, reach = g.integer(3, 0) + 1;
      for (auto d : g.sizes(0)) n *= d;
      for (size_t d = 0; d < g.ints(1).size(); ++d) reach += std::max<int64_t>(0, g.ints(1)[d] - 1) * g.ints(2)[d];
      Tensor flat = zeros({std::max(n, reach)}, g.dy().options());
      Tensor indices = arange(std::max(n, reach), TensorOptions(kLong)).as_strided(g.ints(1), g.ints(2), g.integer(3, 0)).reshape({-1});
      flat = flat.index_add(0, indices, g.dy().reshape({-1}));
      return flat.slice(0, 0, n).reshape(g.sizes(0)); }); },
  .shard = {"replicate"}, .doc = "Any sizes and strides over the storage; checked against its bounds.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), std::vector<int64_t>{2, 2}, std::vector<int64_t>{4, 1}, 1); s(s.t({4}), std::vector<int64_t>{3, 2}, std::vector<int64_t>{1, 1}); }),
OP("alias(Tensor(a) self) -> Tensor(a)",
  .types = any_types, .infer = infer_same, .accepts_conj = true,
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy(); }); },
  .shard = {"copy"}, .doc = "Another tensor with the same elements.",
  .samples = [](SampleGen& s) { s.unary(s.shapes()); }),
OP("detach(Tensor(a) self) -> Tensor(a)",
  .types = any_types, .infer = infer_same, .accepts_conj = true, .non_differentiable = true,
  .shard = {"copy"}, .doc = "The same elements outside of autograd; shares the version counter.",
  .samples = [](SampleGen& s) { s.unary(s.shapes()); }),
OP("diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)",
  .types = any_types, .infer = infer_diagonal, .accepts_conj = true,
  .vjp = [](const Grad& g) { return grads(G(0) { Tensor full = zeros(g.sizes(0), g.dy().options());
                                                 full.diagonal(g.integer(1), g.integer(2), g.integer(3)).copy_(g.dy()); return full; }); },
  .shard = Shard::replicate(), .doc = "The diagonal of two dims, as the last dim.",
  .samples = [](SampleGen& s) { s(s.t({3, 4})); s(s.t({3, 4}), 1); s(s.t({2, 3, 4}), -1, 1, 2); }),
OP("unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)",
  .types = any_types, .infer = infer_unfold, .accepts_conj = true,
  .vjp = [](const Grad& g) { return grads(G(0) { return unfold_backward(g.dy(), g.sizes(0), g.integer(1), g.integer(2), g.integer(3)); }); },
  .shard = {"shard-exceptdim"}, .doc = "Sliding windows of a dim, as a new last dim.",
  .samples = [](SampleGen& s) { s(s.t({5, 3}), 0, 2, 1); s(s.t({5, 3}), 0, 2, 3); }),
OP("split.Tensor(Tensor(a -> *) self, int split_size, int dim=0) -> Tensor(a)[]",
  .types = any_types, .infer = infer_split, .accepts_conj = true,
  .vjp = [](const Grad& g) { return grads(G(0) {
      int64_t n = int64_t(g.sizes(0).size()), d = g.integer(2) < 0 ? g.integer(2) + n : g.integer(2), piece = g.integer(1), size = g.sizes(0)[size_t(d)];
      std::vector<std::vector<int64_t>> sizes;
      for (int64_t at = 0; at == 0 || at < size; at += std::max<int64_t>(piece, 1)) { sizes.push_back(g.sizes(0).vec()); sizes.back()[size_t(d)] = std::min(piece, size - at); }
      return cat(materialized(g, int(sizes.size()), sizes), d); }); },
  .shard = {"split"}, .doc = "Pieces of split_size along a dim; the last may be shorter.",
  .samples = [](SampleGen& s) { s(s.t({5, 2}), 2); s(s.t({2, 6}), 3, -1); }),
OP("split_with_sizes(Tensor(a -> *) self, int[] split_sizes, int dim=0) -> Tensor(a)[]",
  .types = any_types, .infer = infer_split_with_sizes, .accepts_conj = true,
  .vjp = [](const Grad& g) { return grads(G(0) {
      int64_t n = int64_t(g.sizes(0).size()), d = g.integer(2) < 0 ? g.integer(2) + n : g.integer(2);
      std::vector<std::vector<int64_t>> sizes;
      for (int64_t k : g.ints(1)) { sizes.push_back(g.sizes(0).vec()); sizes.back()[size_t(d)] = k; }
      return cat(materialized(g, int(sizes.size()), sizes), d); }); },
  .shard = {"split"}, .doc = "Pieces of the given lengths along a dim.",
  .samples = [](SampleGen& s) { s(s.t({5, 2}), std::vector<int64_t>{2, 0, 3}); s(s.t({2, 6}), std::vector<int64_t>{1, 5}, 1); }),
OP("unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]",
  .types = any_types, .infer = infer_unbind, .accepts_conj = true,
  .vjp = [](const Grad& g) { return grads(G(0) {
      int64_t n = int64_t(g.sizes(0).size()), d = g.integer(1) < 0 ? g.integer(1) + n : g.integer(1);
      std::vector<int64_t> one = g.sizes(0).vec();
      one.erase(one.begin() + d);
      std::vector<std::vector<int64_t>> sizes(size_t(g.sizes(0)[size_t(d)]), one);
      return stack(materialized(g, int(sizes.size()), sizes), d); }); },
  .shard = {"select"}, .doc = "All indices of a dim, as separate tensors.",
  .samples = [](SampleGen& s) { s(s.t({3, 2})); s(s.t({3, 2}), 1); }),

// ---- backward helpers and compositions ----
OP("select_backward(Tensor grad_output, int[] input_sizes, int dim, int index) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results { Tensor full = zeros(a.ints(1), a.tensor(0).options()); full.select(a.integer(2), a.integer(3)).copy_(a.tensor(0)); return full; },
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy().select(g.integer(2), g.integer(3)); }); },
  .shard = {"slice"}, .doc = "Gradient of select: grad_output at one index, zeros elsewhere.",
  .samples = [](SampleGen& s) { s(s.t({4}), std::vector<int64_t>{3, 4}, 0, 1); }),
OP("slice_backward(Tensor grad_output, int[] input_sizes, int dim, int start, int end, int step) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results { Tensor full = zeros(a.ints(1), a.tensor(0).options());
      full.slice(a.integer(2), a.integer(3), a.integer(4), a.integer(5)).copy_(a.tensor(0)); return full; },
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy().slice(g.integer(2), g.integer(3), g.integer(4), g.integer(5)); }); },
  .shard = {"slice"}, .doc = "Gradient of slice: grad_output in the slice, zeros elsewhere.",
  .samples = [](SampleGen& s) { s(s.t({2, 4}), std::vector<int64_t>{5, 4}, 0, 1, 4, 2); }),
OP("reshape(Tensor(a) self, int[] shape) -> Tensor(a)",
  .types = any_types, .accepts_conj = true,
  .decompose = [](const Args& a) -> Results {
      const Tensor& t = a.tensor(0);
      Sizes sizes(a.ints(1).begin(), a.ints(1).end()), strides;
      SymInt known = 1, numel = 1;
      int unknown = -1;
      for (auto d : t.sizes()) numel *= SymInt(d);
      for (size_t d = 0; d < sizes.size(); ++d) { if (sizes[d] == -1) unknown = int(d); else known *= sizes[d]; }
      if (unknown >= 0 && !(known == 0)) sizes[size_t(unknown)] = numel / known;
      strides.resize(sizes.size());
      bool view = view_strides(t, sizes, strides.data());
      return view ? t.view(a.ints(1)) : t.clone(MemoryFormat::Contiguous).view(a.ints(1)); },
  .shard = Shard::view(), .doc = "view where possible, else a contiguous copy.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), std::vector<int64_t>{2, -1}); s(s.t({3, 4}).transpose(0, 1), std::vector<int64_t>{12}); }),
OP("view_as(Tensor(a) self, Tensor other) -> Tensor(a)",
  .types = any_types, .accepts_conj = true,
  .decompose = [](const Args& a) -> Results { return a.tensor(0).view(a.tensor(1).sizes()); },
  .shard = Shard::view(), .doc = "view with the sizes of other.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({12})); }),
OP("expand_as(Tensor(a) self, Tensor other) -> Tensor(a)",
  .types = any_types, .accepts_conj = true,
  .decompose = [](const Args& a) -> Results { return a.tensor(0).expand(a.tensor(1).sizes()); },
  .shard = Shard::view(), .doc = "expand to the sizes of other.",
  .samples = [](SampleGen& s) { s(s.t({3, 1}), s.t({3, 4})); }),
OP("t(Tensor(a) self) -> Tensor(a)",
  .types = any_types, .accepts_conj = true,
  .decompose = [](const Args& a) -> Results {
      VESTA_CHECK(a.tensor(0).dim() <= 2, "t: expected at most 2 dims, got ", a.tensor(0).dim());
      return a.tensor(0).dim() < 2 ? a.tensor(0).alias() : a.tensor(0).transpose(0, 1); },
  .shard = Shard::view(), .doc = "Transpose of a matrix; vectors stay as they are.",
  .samples = [](SampleGen& s) { s(s.t({3, 4})); s(s.t({3})); s(s.t({})); }),
OP("movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
  .types = any_types, .accepts_conj = true,
  .decompose = [](const Args& a) -> Results {
      int64_t n = a.tensor(0).dim(), from = wrap_dim(a, a.integer(1), n), to = wrap_dim(a, a.integer(2), n);
      std::vector<int64_t> dims;
      for (int64_t d = 0; d < n; ++d) if (d != from) dims.push_back(d);
      if (n) dims.insert(dims.begin() + to, from);
      return a.tensor(0).permute(dims); },
  .shard = Shard::view(), .doc = "One dim moved to another place.",
  .samples = [](SampleGen& s) { s(s.t({2, 3, 4}), 0, -1); s(s.t({2, 3, 4}), 2, 0); }),
OP("narrow(Tensor(a) self, int dim, int start, int length) -> Tensor(a)",
  .types = any_types, .accepts_conj = true,
  .decompose = [](const Args& a) -> Results {
      const Tensor& t = a.tensor(0);
      VESTA_CHECK(t.dim() > 0, "narrow: cannot narrow a 0-dim tensor");
      int64_t d = wrap_dim(a, a.integer(1), t.dim()), start = a.integer(2), length = a.integer(3), size = t.size(d);
      VESTA_CHECK_AS(IndexError, start >= -size && start <= size, "narrow: expected a start in [", -size, ", ", size, "], got ", start);
      if (start < 0) start += size;
      VESTA_CHECK(length >= 0 && length <= size - start, "narrow: start ", start, " + length ", length, " exceeds size ", size);
      return t.slice(d, start, start + length); },
  .shard = {"slice"}, .doc = "length indices of a dim from start on.",
  .samples = [](SampleGen& s) { s(s.t({5, 4}), 0, 1, 3); s(s.t({5, 4}), 1, -2, 2); }),
OP("flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)",
  .types = any_types, .accepts_conj = true,
  .decompose = [](const Args& a) -> Results {
      const Tensor& t = a.tensor(0);
      if (t.dim() == 0) return t.reshape({1});
      int64_t first = wrap_dim(a, a.integer(1), t.dim()), last = wrap_dim(a, a.integer(2), t.dim());
      VESTA_CHECK(first <= last, "flatten: start_dim ", first, " comes after end_dim ", last);
      if (first == last) return t;
      std::vector<int64_t> sizes(t.sizes().begin(), t.sizes().begin() + first);
      SymInt n = 1;
      for (int64_t d = first; d <= last; ++d) n *= SymInt(t.sizes()[size_t(d)]);
      sizes.push_back(n.raw());
      sizes.insert(sizes.end(), t.sizes().begin() + last + 1, t.sizes().end());
      return t.reshape(sizes); },
  .shard = Shard::view(), .doc = "Dims start_dim to end_dim joined into one.",
  .samples = [](SampleGen& s) { s(s.t({2, 3, 4})); s(s.t({2, 3, 4}), 1); s(s.t({})); }),
OP("contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)",
  .types = any_types, .accepts_conj = true,
  .decompose = [](const Args& a) -> Results {
      MemoryFormat f = MemoryFormat(a.integer(1));
      VESTA_CHECK(f != MemoryFormat::Preserve, "contiguous: preserve_format is not a layout");
      return a.tensor(0).is_contiguous(f) ? a.tensor(0) : a.tensor(0).clone(f); },
  .shard = {"copy"}, .doc = "self if it is contiguous, else a contiguous copy.",
  .samples = [](SampleGen& s) { s(s.t({3, 4})); s(s.t({3, 4}).transpose(0, 1)); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(view, table)
