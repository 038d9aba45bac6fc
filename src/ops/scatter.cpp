// gather and the scatter family: positions along one dim come from an index tensor, the others from its coordinates.
#include "core/storage.h"
#include "kernels/cpu/copy.h"
#include "ops/index_kernels.h"
#include "ops/infer.h"

namespace vesta {
namespace {

using namespace op_block;

// ---- checks ----
void check_index_shape(const Args& a, const Tensor& self, int64_t d, const Tensor& index) {
  if (index.numel() == 0) return;
  VESTA_CHECK(at_least_1d(index).dim() == at_least_1d(self).dim(), a.name(), ": expected an index with ", self.dim(), " dims, got ", index.dim());
  for (int64_t e = 0; e < index.dim(); ++e)
    VESTA_CHECK(e == d || index.size(e) <= self.size(e), a.name(), ": the index has size ", index.size(e), " at dim ", e, ", self only ", self.size(e));
}
void infer_gather(InferCtx& c) {
  c.wrap_dim(c.integer(1), c.dim(0));
  c.out(0, c.sizes(2), c.dtype_of(0), c.tensor(0).device());
}
void infer_self(InferCtx& c) {
  c.wrap_dim(c.integer(1), c.dim(0));
  c.out(0, c.sizes(0), c.dtype_of(0), c.tensor(0).device());
}

void k_gather(const KernelCtx& k) {
  int64_t d = wrap_dim(k, k.integer(1), k.tensor(0).dim());
  check_index_shape(k, k.tensor(0), d, k.tensor(2));
  if (k.out().numel() == 0) return;
  Tensor self = at_least_1d(k.tensor(0)).contiguous();
  AlongDim w = along_dim(k, self, d, at_least_1d(k.tensor(2)));
  visit_size(self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = static_cast<const T*>(self.data_ptr());
    T* to = static_cast<T*>(k.out().data_ptr());
    int64_t ds = w.dim_stride, cs = w.column_stride;
    w.each(k, d, true, [&](const int64_t* idx, int64_t base, int64_t at, int64_t n) {
      const T* p = from + base;
      if (ds == 1 && cs == 0) for (int64_t i = 0; i < n; ++i) to[at + i] = p[idx[i]];
      else if (cs == 0) for (int64_t i = 0; i < n; ++i) to[at + i] = p[idx[i] * ds];
      else for (int64_t i = 0; i < n; ++i) to[at + i] = p[idx[i] * ds + i];
    });
  });
}

struct ScatterWrite {
  Tensor out, src;
  AlongDim walk;
  int64_t dim = 0;
  bool any = false;
  // Where the walk meets whole rows of out, each once, it copies self's row right before it adds to it.
  const void* self_rows = nullptr;
};
// Checks, then copies self to out, unless `by_rows` and the walk can. `src` undefined: a number is written. It is cut to
// the index's shape.
ScatterWrite start_scatter(const KernelCtx& k, const Tensor& src, bool by_rows = false) {
  ScatterWrite w;
  const Tensor &self = k.tensor(0), &index = k.tensor(2);
  int64_t d = w.dim = wrap_dim(k, k.integer(1), self.dim());
  // An empty index may have any dtype, as upstream.
  VESTA_CHECK_AS(TypeError, index.dtype() == kLong || index.numel() == 0, k.name(), ": expected int64 indices, got ", dtype_name(index.dtype()));
  check_index_shape(k, self, d, index);
  if (src.defined()) {
    VESTA_CHECK_AS(TypeError, src.dtype() == self.dtype(), k.name(), ": expected a source of ", dtype_name(self.dtype()), ", got ", dtype_name(src.dtype()));
    if (index.numel()) {
      VESTA_CHECK(at_least_1d(src).dim() == at_least_1d(self).dim(), k.name(), ": expected a source with ", self.dim(), " dims, got ", src.dim());
      w.src = at_least_1d(src);
      Tensor i = at_least_1d(index);
      for (int64_t e = 0; e < i.dim(); ++e) {
        VESTA_CHECK(i.size(e) <= w.src.size(e), k.name(), ": the index has size ", i.size(e), " at dim ", e, ", the source only ", w.src.size(e));
        w.src = w.src.slice(e, 0, i.size(e));
      }
      w.src = w.src.contiguous();
    }
  }
  w.any = index.numel() > 0;
  w.out = at_least_1d(k.out());
  if (w.any) w.walk = along_dim(k, w.out, d, at_least_1d(index));
  if (by_rows && w.any && w.walk.column_stride == 0 && self.is_contiguous() && w.walk.others * w.walk.size == w.out.numel())
    w.self_rows = self.data_ptr();
  else cpu::copy_elements(k.out(), self);
  return w;
}

void k_scatter_src(const KernelCtx& k) {
  ScatterWrite w = start_scatter(k, k.tensor(3));
  if (!w.any) return;
  visit_size(w.out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = static_cast<const T*>(w.src.data_ptr());
    T* to = static_cast<T*>(w.out.data_ptr());
    int64_t ds = w.walk.dim_stride, cs = w.walk.column_stride;
    w.walk.each(k, w.dim, false, [&](const int64_t* idx, int64_t base, int64_t at, int64_t n) {
      if (ds == 1 && cs == 0) for (int64_t i = 0; i < n; ++i) to[base + idx[i]] = from[at + i];
      else for (int64_t i = 0; i < n; ++i) to[base + idx[i] * ds + i * cs] = from[at + i];
    });
  });
}
void write_value(const Args& k, ScatterWrite& w, const Scalar& v) {
  if (!w.any) return;
  Tensor value = empty_cpu({1}, w.out.dtype());
  cpu::fill_elements(value, v);
  visit_size(w.out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T x = *static_cast<const T*>(value.data_ptr());
    T* to = static_cast<T*>(w.out.data_ptr());
    int64_t ds = w.walk.dim_stride, cs = w.walk.column_stride;
    w.walk.each(k, w.dim, false, [&](const int64_t* idx, int64_t base, int64_t, int64_t n) {
      for (int64_t i = 0; i < n; ++i) to[base + idx[i] * ds + i * cs] = x;
    });
  });
}
void k_scatter_value(const KernelCtx& k) {
  ScatterWrite w = start_scatter(k, {});
  write_value(k, w, k.scalar(3));
}

constexpr int64_t kTogether = 16;  // elements: two cache lines of indices, one of float32
constexpr int64_t kAhead = 384;    // elements whose indices are fetched before their turn
void accumulate(const KernelCtx& k, ScatterWrite& w, Combine op) {
  if (!w.any) return;
  DType t = sum_dtype(w.out.dtype());
  Tensor to_t = t == w.out.dtype() ? w.out : w.out.to(t), from_t = w.src.to(t);
  visit_all(t, k.name(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, Half> && !std::is_same_v<T, BFloat16>) {
      const T* from = from_t.data_ptr<T>();
      T* to = to_t.data_ptr<T>();
      const T* self = static_cast<const T*>(w.self_rows);
      int64_t ds = w.walk.dim_stride, cs = w.walk.column_stride, length = w.walk.length;
      w.walk.each(k, w.dim, false, [&](const int64_t* idx, int64_t base, int64_t at, int64_t n) {
        if (self && at % length == 0) std::copy_n(self + base, w.walk.size, to + base);
        if (op == Combine::Sum && ds == 1 && cs == 0) {
          T* row = to + base;
          const T* add = from + at;
          int64_t i = 0;
          for (; i + kTogether <= n; i += kTogether) {
            // Rows are short, and the checks before each one wait for its indices: they are asked for ahead.
            __builtin_prefetch(idx + i + kAhead);
            __builtin_prefetch(idx + i + kAhead + kTogether / 2);
            __builtin_prefetch(add + i + kAhead);
            if (self) __builtin_prefetch(self + base + i + kAhead);
            for (int64_t j = i; j < i + kTogether; ++j) combine_into(Combine::Sum, row[idx[j]], add[j]);
          }
          for (; i < n; ++i) combine_into(Combine::Sum, row[idx[i]], add[i]);
        } else if (op == Combine::Sum) for (int64_t i = 0; i < n; ++i) combine_into(Combine::Sum, to[base + idx[i] * ds + i * cs], from[at + i]);
        else for (int64_t i = 0; i < n; ++i) combine_into(op, to[base + idx[i] * ds + i * cs], from[at + i]);
      });
    }
  });
  if (!to_t.is_same(w.out)) cpu::copy_elements(w.out, to_t);
}
void k_scatter_add(const KernelCtx& k) {
  ScatterWrite w = start_scatter(k, k.tensor(3), k.tensor(0).dtype() == sum_dtype(k.tensor(0).dtype()));
  accumulate(k, w, Combine::Sum);
}
void k_scatter_reduce_legacy(const KernelCtx& k) {
  Combine op = combine_named(k, k.string(4), true);
  ScatterWrite w = start_scatter(k, k.tensor(3));
  accumulate(k, w, op);
}
void k_scatter_value_reduce(const KernelCtx& k) {
  Combine op = combine_named(k, k.string(4), true);
  ScatterWrite w = start_scatter(k, {});
  if (!w.any) return;
  w.src = empty_cpu(at_least_1d(k.tensor(2)).sizes(), w.out.dtype());
  cpu::fill_elements(w.src, k.scalar(3));
  accumulate(k, w, op);
}
void k_scatter_reduce_two(const KernelCtx& k) {
  std::string_view name = k.string(4);
  Combine op = combine_named(k, name, false);
  bool include_self = k.flag(5);
  ScatterWrite w = start_scatter(k, k.tensor(3));
  if (!w.any) return;
  if (!include_self) write_value(k, w, combine_identity(op, w.out.dtype()));
  accumulate(k, w, op);
  if (name == "mean") {
    int64_t d = wrap_dim(k, k.integer(1), w.out.dim());
    Tensor n = include_self ? ones_like(w.out) : zeros_like(w.out);
    n = n.scatter_add(d, at_least_1d(k.tensor(2)), ones_like(w.src));
    divide_by_counts(w.out, n);
  }
}

// A gradient of the index's shape, padded with zeros to that of the source.
Tensor pad_to(const Tensor& t, IntArrayRef sizes) {
  if (t.sizes() == sizes) return t;
  if (t.dim() != int64_t(sizes.size())) return t.numel() ? t.reshape(sizes) : zeros(sizes, t.options());
  std::vector<int64_t> pad;
  for (size_t e = sizes.size(); e-- > 0;) {
    pad.push_back(0);
    pad.push_back(sizes[e] - t.sizes()[e]);
  }
  return constant_pad_nd(t, pad, 0);
}
Tensor gathered(const Grad& g, const Tensor& t, const Tensor& index) {
  return index.numel() ? pad_to(t.gather(g.integer(1), index), g.sizes(3)) : zeros(g.sizes(3), t.options());
}

constexpr OpDef table[] = {
OP("gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
  .forms = Out, .types = storage_types, .infer = infer_gather, .kernels = {{Cpu, k_gather}},
  .save = {in(2)},
  .vjp = [](const Grad& g) { return grads(G(0) { return zeros({}, g.dy().options()).expand(g.sizes(0)).scatter_add(g.integer(1), g.in(2), g.dy()); }); },
  .shard = {"gather"}, .doc = "out[i][j] = self[index[i][j]][j] for dim 0, and likewise for other dims.",
  .samples = [](SampleGen& s) { s(s.t({4, 3}), 0, s.index({2, 3}, 4)); s(s.t({4, 3}), 1, s.index({4, 5}, 3)); s(s.t({2, 4, 3}), -2, s.index({1, 6, 3}, 4)); s(s.t({4}), 0, s.index({0}, 4)); }),
OP("gather_backward(Tensor grad, Tensor self, int dim, Tensor index, bool sparse_grad) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results { return zeros({}, a.tensor(0).options()).expand(a.tensor(1).sizes()).scatter_add(a.integer(2), a.tensor(3), a.tensor(0)); },
  .shard = Shard::replicate(), .doc = "Gradient of gather: added up where the elements came from.",
  .samples = [](SampleGen& s) { if (s.dtype() != kBool) s(s.t({2, 3}), s.t({4, 3}), 0, s.index({2, 3}, 4), false); }),
OP("scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
  .forms = InPlace | Out, .types = storage_types, .infer = infer_self, .kernels = {{Cpu, k_scatter_src}},
  .save = {in(2)},
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy().scatter(g.integer(1), g.in(2), 0); }, G(3) { return gathered(g, g.dy(), g.in(2)); }); },
  .shard = {"scatter"}, .doc = "self with src written at the index's positions along dim; the last of equal positions wins.",
  .samples = [](SampleGen& s) { Tensor i = arange(3).unsqueeze(1).expand({3, 2}).contiguous(); s(s.t({4, 3}), 0, i, s.t({3, 2})); s(s.t({4, 3}), 0, i, s.t({4, 3})); }),
OP("scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
  .forms = InPlace | Out, .types = any_types, .infer = infer_self, .kernels = {{Cpu, k_scatter_value}},
  .save = {in(2)},
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy().scatter(g.integer(1), g.in(2), 0); }); },
  .shard = {"scatter"}, .doc = "self with a number written at the index's positions along dim.",
  .samples = [](SampleGen& s) { s(s.t({4, 3}), 0, s.index({2, 3}, 4), Scalar(1)); s(s.t({4, 3}), 1, s.index({2, 1}, 3), Scalar(1)); }),
OP("scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
  .forms = InPlace | Out, .types = any_types, .infer = infer_self, .kernels = {{Cpu, k_scatter_reduce_legacy}}, .non_differentiable = true,
  .shard = {"scatter"}, .doc = "scatter with reduce \"add\" or \"multiply\"; carries no gradient (use scatter_reduce).",
  .samples = [](SampleGen& s) { s(s.t({4, 3}), 0, s.index({2, 3}, 4), s.t({2, 3}), "add"); }),
OP("scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor",
  .forms = InPlace | Out, .types = any_types, .infer = infer_self, .kernels = {{Cpu, k_scatter_value_reduce}}, .non_differentiable = true,
  .shard = {"scatter"}, .doc = "scatter of a number with reduce \"add\" or \"multiply\".",
  .samples = [](SampleGen& s) { s(s.t({4, 3}), 0, s.index({2, 3}, 4), Scalar(1), "multiply"); }),
OP("scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
  .forms = InPlace | Out, .types = any_types, .infer = infer_self, .kernels = {{Cpu, k_scatter_add}},
  .save = {in(2)},
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy(); }, G(3) { return gathered(g, g.dy(), g.in(2)); }); },
  .shard = {"scatter"}, .doc = "self with src added at the index's positions along dim, in order; half types add in float32.",
  .samples = [](SampleGen& s) { s(s.t({4, 3}), 0, s.index({5, 2}, 4), s.t({5, 3})); s(s.t({4, 3}), 1, s.index({2, 4}, 3), s.t({2, 4})); }),
OP("scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor",
  .forms = InPlace | Out, .types = any_types, .infer = infer_self, .kernels = {{Cpu, k_scatter_reduce_two}},
  .save = {in(0), in(2), in(3), out(0)},
  .vjp = [](const Grad& g) {
      Tensor self = g.in(0), index = g.in(2), src = g.in(3), result = g.out(), dy = g.dy();
      std::string_view reduce = g.string(4);
      int64_t d = g.integer(1);
      bool include_self = g.flag(5);
      if (index.numel() == 0) return grads(G(0) { return dy; }, G(3) { return zeros(g.sizes(3), dy.options()); });
      for (int64_t e = 0; e < src.dim(); ++e) src = src.slice(e, 0, index.dim() ? index.size(e) : 1);
      Tensor to_self, to_src;
      if (reduce == "sum") {
        to_self = dy;
        to_src = dy.gather(d, index);
      } else if (reduce == "prod") {
        Tensor kept = self.masked_fill(self == 0, 1);
        to_self = dy * kept.scatter_reduce(d, index, src, reduce, include_self) / kept;
        Tensor zero = src == 0;
        Tensor zeros_met = zeros_like(self).scatter_add(d, index, zero.to(self.dtype())).gather(d, index);
        Tensor single = logical_and(zero, zeros_met == 1);
        Tensor others = self.scatter_reduce(d, index, src.masked_fill(single, 1), reduce, include_self);
        to_src = where(single, (dy * others).gather(d, index), (dy * result).gather(d, index) / src.masked_fill(zero, 1));
      } else if (reduce == "mean") {
        Tensor n = (include_self ? ones_like(dy) : zeros_like(dy)).scatter_add(d, index, ones_like(src));
        n = n.masked_fill(n == 0, 1);
        to_self = dy / n;
        to_src = dy.gather(d, index) / n.gather(d, index);
      } else {
        Tensor self_wins = (self == result).to(self.dtype()), src_wins = (src == result.gather(d, index)).to(self.dtype());
        Tensor share = dy / self_wins.scatter_add(d, index, src_wins);
        to_self = self_wins * share;
        to_src = src_wins * share.gather(d, index);
      }
      if (!include_self) to_self = to_self.scatter(d, index, 0);
      return grads(G(0) { return to_self; }, G(3) { return pad_to(to_src, g.sizes(3)); }); },
  .shard = {"scatter"}, .doc = "self reduced with src at the index's positions along dim: sum, prod, mean, amax or amin.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { s(s.t({4, 3}, range(1, 2)), 0, s.index({2, 3}, 4), s.t({2, 3}, range(1, 2)), "prod");
                                s(s.t({4, 3}), 1, s.index({4, 2}, 3), s.t({4, 2}), "amax", false); s(s.t({4, 3}), 0, s.index({5, 3}, 4), s.t({5, 3}), "mean"); } }),
OP("take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor",
  .forms = Out, .types = any_types,
  .decompose = [](const Args& a) -> Results {
      const Tensor &self = a.tensor(0), &index = a.tensor(1);
      VESTA_CHECK_AS(TypeError, index.dtype() == kLong, "take_along_dim: expected int64 indices, got ", dtype_name(index.dtype()));
      if (!a.has(2)) return self.reshape({-1}).gather(0, index.reshape({-1}));
      VESTA_CHECK(self.dim() == index.dim(), "take_along_dim: expected indices with ", self.dim(), " dims, got ", index.dim());
      int64_t d = wrap_dim(a, a.integer(2), self.dim());
      std::vector<int64_t> s = self.sizes().vec(), i = index.sizes().vec();
      for (size_t e = 0; e < s.size(); ++e) {
        if (int64_t(e) == d) continue;
        VESTA_CHECK(s[e] == i[e] || s[e] == 1 || i[e] == 1, "take_along_dim: sizes ", s[e], " and ", i[e], " at dim ", e, " do not broadcast");
        s[e] = i[e] = s[e] == 1 ? i[e] : s[e];
      }
      return self.expand(s).gather(d, index.expand(i)); },
  .shard = {"gather"}, .doc = "gather with broadcasting of the other dims; flat without dim.",
  .samples = [](SampleGen& s) { s(s.t({4, 3}), s.index({1, 3}, 4), 0); s(s.t({4, 3}), s.index({5}, 12)); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(scatter, table)
