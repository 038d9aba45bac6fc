// Reads and writes at the given indices of one dim: index_select, index_add, index_copy, index_fill, index_reduce.
#include <cstring>

#include "core/storage.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/rows.h"
#include "ops/index_kernels.h"
#include "ops/infer.h"

namespace vesta {
namespace {

using namespace op_block;

void infer_index_select(InferCtx& c) {
  int n = c.dim(0), d = c.wrap_dim(c.integer(1), n);
  std::vector<SymInt> sizes(c.sizes(0).begin(), c.sizes(0).end());
  VESTA_CHECK_AS(IndexError, c.dim(2) <= 1, c.name(), ": expected indices with at most 1 dim, got ", c.dim(2));
  if (n) sizes[size_t(d)] = c.dim(2) ? c.sizes(2)[0] : SymInt(1);
  c.out(0, sizes, c.dtype_of(0), c.tensor(0).device());
}
void k_index_select(const KernelCtx& k) {
  Tensor src = at_least_1d(k.tensor(0)), out = k.out();
  int64_t d = wrap_dim(k, k.integer(1), src.dim());
  Tensor index = checked_index_list(k, k.tensor(2), src.size(d));
  const int64_t* at = index.data_ptr<int64_t>();
  if (k.tensor(0).dim() == 0) VESTA_CHECK_AS(IndexError, index.numel() == 1, k.name(), ": a 0-dim tensor takes one index, got ", index.numel());
  if (out.numel() == 0) return;
  src = src.contiguous();
  DimSplit s = split_at(src, d);
  int64_t count = index.numel(), run = s.inner * int64_t(src.element_size());
  auto* from = static_cast<const char*>(src.data_ptr());
  auto* to = static_cast<char*>(out.data_ptr());
  if (s.inner > 1) {
    parallel_for(0, s.outer * count, std::max<int64_t>(1, 65536 / run), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) std::memcpy(to + r * run, from + (r / count * s.size + at[r % count]) * run, size_t(run));
    });
    return;
  }
  visit_size(src.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_for(0, s.outer, std::max<int64_t>(1, 32768 / count), [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        const T* p = reinterpret_cast<const T*>(from) + o * s.size;
        T* q = reinterpret_cast<T*>(to) + o * count;
        for (int64_t i = 0; i < count; ++i) q[i] = p[at[i]];
      }
    });
  });
}

// One write per (index entry, outer) in index order; `row(to, from, n)` treats the inner elements. A task owns a part of
// the destination's rows and passes over the entries of the others, so that rows are read and written whole.
template <class T, class Row>
void each_row(const DimSplit& s, const int64_t* at, int64_t count, T* to, const T* from, Row&& row) {
  int64_t parts = std::clamp<int64_t>(count * std::min<int64_t>(s.inner, 65536) / 16384, 1, s.inner < 16 ? 1 : 8);
  int64_t part = (s.size + parts - 1) / parts;
  parallel_for(0, s.outer * parts, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, count / parts * s.inner)), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      int64_t o = task / parts, low = task % parts * part, high = low + part;
      for (int64_t i = 0; i < count; ++i)
        if (at[i] >= low && at[i] < high) row(to + (o * s.size + at[i]) * s.inner, from + (o * count + i) * s.inner, s.inner);
    }
  });
}

struct IndexWrite {
  Tensor out, source, index;
  int64_t d;
  DimSplit split;
};
// Checks the source against self and the indices, then copies self into `out`.
IndexWrite start_write(const KernelCtx& k, bool same_dtype = true) {
  IndexWrite w;
  const Tensor &self = k.tensor(0), &source = k.tensor(3);
  w.out = at_least_1d(k.out());
  w.d = wrap_dim(k, k.integer(1), self.dim());
  w.index = checked_index_list(k, k.tensor(2), w.out.size(w.d));
  if (same_dtype)
    VESTA_CHECK_AS(TypeError, source.dtype() == self.dtype(), k.name(), ": expected a source of ", dtype_name(self.dtype()), ", got ", dtype_name(source.dtype()));
  w.source = at_least_1d(source);
  if (source.dim() == 0 && w.out.dim() > 1)
    w.source = source.expand([&] { auto v = w.out.sizes().vec(); v[size_t(w.d)] = 1; return v; }());
  VESTA_CHECK_AS(IndexError, w.source.dim() == w.out.dim(), k.name(), ": expected a source with ", w.out.dim(), " dims, got ", w.source.dim());
  for (int64_t e = 0; e < w.out.dim(); ++e) {
    int64_t want = e == w.d ? w.index.numel() : w.out.size(e);
    VESTA_CHECK_AS(IndexError, w.source.size(e) == want, k.name(), ": expected a source of size ", want, " at dim ", e, ", got ", w.source.size(e));
  }
  w.source = w.source.contiguous();
  cpu::copy_elements(k.out(), self);
  w.split = split_at(w.out, w.d);
  return w;
}

void k_index_copy(const KernelCtx& k) {
  // The output may keep a permuted stride order of self: work on a contiguous one.
  IndexWrite w = start_write(k);
  visit_size(w.out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    each_row(w.split, w.index.data_ptr<int64_t>(), w.index.numel(), static_cast<T*>(w.out.data_ptr()), static_cast<const T*>(w.source.data_ptr()),
             [](T* to, const T* from, int64_t n) { std::memcpy(to, from, size_t(n) * sizeof(T)); });
  });
}

void accumulate_rows(const KernelCtx& k, IndexWrite& w, Combine op, const Scalar& alpha) {
  DType t = sum_dtype(w.out.dtype());
  Tensor to = t == w.out.dtype() ? w.out : w.out.to(t), from = w.source.to(t);
  if (!alpha.equal(1)) from = from * alpha;
  visit_all(t, k.name(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, Half> && !std::is_same_v<T, BFloat16>)
      each_row(w.split, w.index.data_ptr<int64_t>(), w.index.numel(), to.data_ptr<T>(), static_cast<const T*>(from.data_ptr<T>()),
               [op](T* p, const T* q, int64_t n) {
                 if constexpr (std::is_floating_point_v<T>)
                   if (op == Combine::Sum) return cpu::add_row(sizeof(T) == 8 ? cpu::Elem::F64 : cpu::Elem::F32, q, p, n);
                 if (op == Combine::Sum) for (int64_t j = 0; j < n; ++j) combine_into(Combine::Sum, p[j], q[j]);
                 else for (int64_t j = 0; j < n; ++j) combine_into(op, p[j], q[j]);
               });
  });
  if (!to.is_same(w.out)) cpu::copy_elements(w.out, to);
}
void k_index_add(const KernelCtx& k) {
  IndexWrite w = start_write(k);
  VESTA_CHECK_AS(TypeError, is_floating_point(w.out.dtype()) || is_complex(w.out.dtype()) || k.scalar(4).isIntegral(true), k.name(),
                 ": alpha must not be a floating number for integer tensors");
  accumulate_rows(k, w, Combine::Sum, k.scalar(4));
}

void k_index_fill(const KernelCtx& k) {
  cpu::copy_elements(k.out(), k.tensor(0));
  Tensor out = at_least_1d(k.out());
  int64_t d = wrap_dim(k, k.integer(1), out.dim());
  // Negative indices count from the end here, other than in index_copy.
  Tensor raw = k.tensor(2).to(kLong).contiguous();
  VESTA_CHECK_AS(TypeError, k.tensor(2).dtype() == kLong, k.name(), ": expected int64 indices, got ", dtype_name(k.tensor(2).dtype()));
  VESTA_CHECK(raw.dim() <= 1, k.name(), ": expected indices with at most 1 dim, got ", raw.dim());
  VESTA_CHECK_AS(TypeError, !k.scalar(3).isComplex() || is_complex(out.dtype()), k.name(), ": cannot write a complex number to ", dtype_name(out.dtype()));
  std::vector<int64_t> at(raw.data_ptr<int64_t>(), raw.data_ptr<int64_t>() + raw.numel());
  for (auto& i : at) {
    VESTA_CHECK_AS(IndexError, i >= -out.size(d) && i < out.size(d), k.name(), ": index ", i, " is out of range for dim ", d, " of size ", out.size(d));
    if (i < 0) i += out.size(d);
  }
  Tensor value = empty_cpu({1}, out.dtype());
  cpu::fill_elements(value, k.scalar(3));
  DimSplit s = split_at(out, d);
  visit_size(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T v = *static_cast<const T*>(value.data_ptr());
    T* to = static_cast<T*>(out.data_ptr());
    parallel_for(0, s.outer, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, int64_t(at.size()) * s.inner)), [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o)
        for (int64_t i : at) std::fill_n(to + (o * s.size + i) * s.inner, s.inner, v);
    });
  });
}

void k_index_reduce(const KernelCtx& k) {
  IndexWrite w = start_write(k);
  std::string_view name = k.string(4);
  VESTA_CHECK(name != "sum", k.name(), ": expected reduce prod, mean, amax or amin, got \"sum\"");
  Combine op = combine_named(k, name, false);
  bool include_self = k.flag(5);
  if (!include_self) {
    Tensor t = w.out.index_fill(w.d, w.index, combine_identity(op, w.out.dtype()));
    cpu::copy_elements(w.out, t);
  }
  accumulate_rows(k, w, op, 1);
  if (name == "mean") {
    Tensor count = include_self ? ones_like(w.out) : zeros_like(w.out);
    count = count.index_add(w.d, w.index, ones_like(w.source));
    divide_by_counts(w.out, count);
  }
}

// Output like self but always contiguous: the row walk needs it.
void infer_contiguous_self(InferCtx& c) { c.out(0, c.sizes(0), c.dtype_of(0), c.tensor(0).device()); }

Tensor select_like(const Grad& g, const Tensor& t) {
  return t.dim() ? t.index_select(g.integer(1), g.in(2)).reshape(g.sizes(3)) : t.reshape(g.sizes(3));
}

constexpr OpDef table[] = {
OP("index_select(Tensor self, int dim, Tensor index) -> Tensor",
  .forms = Out, .types = storage_types, .infer = infer_index_select, .kernels = {{Cpu, k_index_select}},
  .save = {in(2)},
  .vjp = [](const Grad& g) { return grads(G(0) { return index_select_backward(g.dy(), g.sizes(0), g.integer(1), g.in(2)); }); },
  .shard = {"index-select"}, .doc = "The given indices of one dim.",
  .samples = [](SampleGen& s) { s(s.t({4, 3}), 0, s.index({5}, 4)); s(s.t({4, 3}), -1, s.index({2}, 3)); s(s.t({4, 3}), 0, s.index({0}, 4)); }),
OP("index_select_backward(Tensor grad, int[] self_sizes, int dim, Tensor index) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results { return zeros({}, a.tensor(0).options()).expand(a.ints(1)).index_add(a.integer(2), a.tensor(3), a.tensor(0)); },
  .shard = Shard::replicate(), .doc = "Gradient of index_select: rows added up at their indices.",
  .samples = [](SampleGen& s) { if (s.dtype() != kBool) s(s.t({5, 3}), std::vector<int64_t>{4, 3}, 0, s.index({5}, 4)); }),
OP("index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
  .forms = InPlace | Out, .types = any_types, .infer = infer_contiguous_self, .kernels = {{Cpu, k_index_add}},
  .save = {in(2)},
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy(); },
      G(3) { Tensor t = select_like(g, g.dy()); return g.scalar(4).equal(1) ? t : t * g.scalar(4).conj(); }); },
  .shard = {"index-dim"}, .doc = "self with alpha * source added at the given indices of one dim; duplicates add up, in order.",
  .samples = [](SampleGen& s) { if (s.dtype() != kBool) { s(s.t({4, 3}), 0, s.index({5}, 4), s.t({5, 3})); s(s.t({2, 4, 3}), 1, s.index({2}, 4), s.t({2, 2, 3})); } }),
OP("index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
  .autocast = Autocast::Widest,
  .forms = InPlace | Out, .types = storage_types, .infer = infer_contiguous_self, .kernels = {{Cpu, k_index_copy}},
  .save = {in(2)},
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy().index_fill(g.integer(1), g.in(2), 0); }, G(3) { return select_like(g, g.dy()); }); },
  .shard = {"index-dim"}, .doc = "self with rows of source written at the given indices of one dim; the last of equal indices wins.",
  .samples = [](SampleGen& s) { s(s.t({4, 3}), 0, Tensor(arange(3)), s.t({3, 3})); }),
OP("index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
  .forms = InPlace | Out, .types = any_types, .infer = infer_contiguous_self, .kernels = {{Cpu, k_index_fill}},
  .save = {in(2)},
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy().index_fill(g.integer(1), g.in(2), 0); }); },
  .shard = {"index-dim"}, .doc = "self with a number written at the given indices of one dim.",
  .samples = [](SampleGen& s) { s(s.t({4, 3}), 0, s.index({2}, 4), Scalar(1)); s(s.t({4, 3}), -1, s.index({0}, 3), Scalar(1)); }),
OP("index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
  .forms = InPlace | Out, .types = any_types,
  .decompose = [](const Args& a) -> Results {
      VESTA_CHECK(a.tensor(3).dim() == 0, "index_fill: expected a 0-dim value, got ", a.tensor(3).dim(), " dims");
      return a.tensor(0).index_fill(a.integer(1), a.tensor(2), a.tensor(3).item()); },
  .save = {in(2)},
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy().index_fill(g.integer(1), g.in(2), 0); },
      G(3) { Tensor t = g.dy().dim() ? g.dy() : g.dy().unsqueeze(0); return t.index_select(g.integer(1), g.in(2)).sum(); }); },
  .shard = {"index-dim"}, .doc = "self with a 0-dim tensor written at the given indices of one dim.",
  .samples = [](SampleGen& s) { s(s.t({4, 3}), 0, s.index({1}, 4), s.t({})); }),
OP("index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor",
  .forms = InPlace | Out, .types = any_types, .infer = infer_contiguous_self, .kernels = {{Cpu, k_index_reduce}},
  .save = {in(0), in(2), in(3), out(0)},
  .vjp = [](const Grad& g) {
      Tensor self = g.in(0), index = g.in(2), src = g.in(3), result = g.out(), dy = g.dy();
      std::string_view reduce = g.string(4);
      int64_t d = g.integer(1);
      bool include_self = g.flag(5);
      if (self.dim() == 0) self = self.unsqueeze(0), result = result.unsqueeze(0), dy = dy.unsqueeze(0);
      if (src.dim() == 0) src = src.unsqueeze(0);
      Tensor to_self, to_src;
      if (reduce == "prod") {
        Tensor kept = self.masked_fill(self == 0, 1);
        to_self = dy * kept.index_reduce(d, index, src, reduce, include_self) / kept;
        Tensor zero = src == 0;
        Tensor zeros_met = zeros_like(self).index_add(d, index, zero.to(self.dtype())).index_select(d, index);
        Tensor single = logical_and(zero, zeros_met == 1);
        Tensor others = self.index_reduce(d, index, src.masked_fill(single, 1), reduce, include_self);
        to_src = where(single, (dy * others).index_select(d, index), (dy * result).index_select(d, index) / src.masked_fill(zero, 1));
      } else if (reduce == "mean") {
        Tensor n = (include_self ? ones_like(dy) : zeros_like(dy)).index_add(d, index, ones_like(src));
        n = n.masked_fill(n == 0, 1);
        to_self = dy / n;
        to_src = dy.index_select(d, index) / n.index_select(d, index);
      } else {
        Tensor self_wins = (self == result).to(self.dtype()), src_wins = (src == result.index_select(d, index)).to(self.dtype());
        Tensor n = self_wins.index_add(d, index, src_wins);
        Tensor share = dy / n;
        to_self = self_wins * share;
        to_src = src_wins * share.index_select(d, index);
      }
      if (!include_self) to_self = to_self.index_fill(d, index, 0);
      return grads(G(0) { return to_self.reshape(g.sizes(0)); }, G(3) { return to_src.reshape(g.sizes(3)); }); },
  .shard = {"index-dim"}, .doc = "self reduced with rows of source at the given indices of one dim: prod, mean, amax or amin.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { s(s.t({4, 3}, range(1, 2)), 0, s.index({5}, 4), s.t({5, 3}, range(1, 2)), "prod");
                                s(s.t({4, 3}), 0, s.index({5}, 4), s.t({5, 3}), "amax", false); } }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(index, table)
