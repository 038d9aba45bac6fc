// Ordering along a dim: sort, topk, kthvalue, median, mode.
#include "core/storage.h"
#include "kernels/cpu/copy.h"
#include "ops/index_kernels.h"
#include "ops/infer.h"
#include "ops/reduce_grad.h"
#include "ops/sort_keys.h"

namespace vesta {
namespace {

using namespace op_block;

constexpr TypeRule ordered_types{types::kIntMask | types::kFloatMask | types::kBoolMask, Promote::None};

// Calls lane(first, stride, entries, scratch) for every lane along d, entries filled with (key, position) of the
// lane's elements in order; `flip` turns the order around.
template <class T, class Lane>
void each_keyed_lane(const Tensor& t, int64_t d, bool flip, Lane&& lane) {
  using K = SortKey<T>;
  using E = typename SortEntry<K>::type;
  DimSplit s = split_at(t, d);
  if (t.numel() == 0) return;
  VESTA_CHECK(s.size <= int64_t(UINT32_MAX), "sort: lanes of more than 2^32 - 1 elements are not supported");
  const T* p = t.data_ptr<T>();
  parallel_for(0, s.outer * s.inner, std::max<int64_t>(1, 8192 / s.size), [&](int64_t begin, int64_t end) {
    std::vector<E> entries(static_cast<size_t>(s.size)), scratch;
    for (int64_t l = begin; l < end; ++l) {
      int64_t first = l / s.inner * s.size * s.inner + l % s.inner;
      entries.resize(size_t(s.size));
      for (int64_t i = 0; i < s.size; ++i) {
        K key = sort_key(p[first + i * s.inner]);
        entries[size_t(i)] = SortEntry<K>::make(flip ? K(~key) : key, uint32_t(i));
      }
      lane(l, first, s.inner, entries, scratch);
    }
  });
}

void check_sortable(const Args& a) {
  VESTA_CHECK_AS(TypeError, !is_complex(a.tensor(0).dtype()), a.name(), ": complex numbers have no order");
}
void infer_sort(InferCtx& c, int dim_at) {
  check_sortable(c);
  c.wrap_dim(c.integer(dim_at, -1), c.dim(0));
  c.out(0, c.sizes(0), c.dtype_of(0), c.tensor(0).device());
  c.out(1, c.sizes(0), kLong, c.tensor(0).device());
}
void run_sort(const KernelCtx& k, int dim_at, bool descending) {
  Tensor t = k.tensor(0).contiguous();
  int64_t d = wrap_dim(k, k.integer(dim_at), t.dim());
  visit_real(t.dtype(), k.name(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using S = SortEntry<SortKey<T>>;
    const T* p = t.data_ptr<T>();
    T* values = k.out(0).data_ptr<T>();
    int64_t* index = k.out(1).data_ptr<int64_t>();
    each_keyed_lane<T>(t, d, descending, [&](int64_t, int64_t first, int64_t stride, auto& entries, auto& scratch) {
      sort_entries(entries, scratch);
      for (size_t i = 0; i < entries.size(); ++i) {
        int64_t from = S::index(entries[i]), to = first + int64_t(i) * stride;
        values[to] = p[first + from * stride];
        index[to] = from;
      }
    });
  });
}

void infer_topk(InferCtx& c) {
  check_sortable(c);
  int n = c.dim(0), d = c.wrap_dim(c.integer(2), n);
  int64_t count = c.integer(1);
  std::vector<SymInt> sizes(c.sizes(0).begin(), c.sizes(0).end());
  VESTA_CHECK(count >= 0 && (n ? sizes[size_t(d)] >= count : count <= 1), c.name(), ": expected k in [0, ", n ? sizes[size_t(d)].str() : "1", "], got ", count);
  if (n) sizes[size_t(d)] = count;
  c.out(0, sizes, c.dtype_of(0), c.tensor(0).device());
  c.out(1, sizes, kLong, c.tensor(0).device());
}
// topk of few among many: a heap of the best so far, which hardly any element of a long lane enters.
template <class T>
void few_best(const T* p, const DimSplit& s, int64_t count, bool flip, T* values, int64_t* index) {
  using K = SortKey<T>;
  using S = SortEntry<K>;
  VESTA_CHECK(s.size <= int64_t(UINT32_MAX), "topk: lanes of more than 2^32 - 1 elements are not supported");
  parallel_for(0, s.outer * s.inner, std::max<int64_t>(1, 8192 / s.size), [&](int64_t begin, int64_t end) {
    std::vector<typename S::type> best(static_cast<size_t>(count));
    for (int64_t l = begin; l < end; ++l) {
      const T* lane = p + l / s.inner * s.size * s.inner + l % s.inner;
      auto key_at = [&](int64_t i) {
        K key = sort_key(lane[i * s.inner]);
        return flip ? K(~key) : key;
      };
      for (int64_t i = 0; i < count; ++i) best[size_t(i)] = S::make(key_at(i), uint32_t(i));
      std::make_heap(best.begin(), best.end());
      K worst = S::key(best.front());
      for (int64_t i = count; i < s.size; ++i) {
        K key = key_at(i);
        if (key >= worst) [[likely]] continue;  // of equal keys the earlier stays
        std::pop_heap(best.begin(), best.end());
        best.back() = S::make(key, uint32_t(i));
        std::push_heap(best.begin(), best.end());
        worst = S::key(best.front());
      }
      std::sort_heap(best.begin(), best.end());
      int64_t base = l / s.inner * count * s.inner + l % s.inner;
      for (int64_t i = 0; i < count; ++i) {
        int64_t from = S::index(best[size_t(i)]);
        values[base + i * s.inner] = lane[from * s.inner];
        index[base + i * s.inner] = from;
      }
    }
  });
}
void k_topk(const KernelCtx& k) {
  if (k.out().numel() == 0) return;
  Tensor t = at_least_1d(k.tensor(0)).contiguous();
  int64_t d = wrap_dim(k, k.integer(2), t.dim()), count = k.integer(1);
  DimSplit s = split_at(t, d);
  visit_real(t.dtype(), k.name(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using S = SortEntry<SortKey<T>>;
    const T* p = t.data_ptr<T>();
    T* values = k.out(0).data_ptr<T>();
    int64_t* index = k.out(1).data_ptr<int64_t>();
    if (count > 0 && count <= s.size / 16) return few_best<T>(p, s, count, k.flag(3), values, index);
    each_keyed_lane<T>(t, d, k.flag(3), [&](int64_t lane, int64_t first, int64_t stride, auto& entries, auto&) {
      // Always in order: `sorted` only asks for it.
      if (count < s.size) std::nth_element(entries.begin(), entries.begin() + count, entries.end());
      std::sort(entries.begin(), entries.begin() + count);
      int64_t base = lane / stride * count * stride + lane % stride;
      for (int64_t i = 0; i < count; ++i) {
        int64_t from = S::index(entries[size_t(i)]);
        values[base + i * stride] = p[first + from * stride];
        index[base + i * stride] = from;
      }
    });
  });
}

// ---- one element of the order ----
void infer_pick(InferCtx& c, int dim_at, int keep_at) {
  check_sortable(c);
  int d = c.wrap_dim(c.integer(dim_at), c.dim(0));
  if (c.dim(0)) VESTA_CHECK_AS(IndexError, !(c.sizes(0)[size_t(d)] == 0), c.name(), ": dim ", d, " has size 0");
  auto sizes = reduce_sizes(c.sizes(0), reduced_dims(c, Value(int64_t(d)), c.dim(0)), c.flag(keep_at));
  c.out(0, sizes, c.dtype_of(0), c.tensor(0).device());
  c.out(1, sizes, kLong, c.tensor(0).device());
}
enum class Pick { Kth, Median, NanMedian, Mode };
// `rank` of Kth: 0 is the smallest.
void run_pick(const KernelCtx& k, int dim_at, Pick pick, int64_t rank) {
  if (k.out().numel() == 0) return;
  Tensor t = at_least_1d(k.tensor(0)).contiguous();
  int64_t d = wrap_dim(k, k.integer(dim_at), t.dim());
  visit_real(t.dtype(), k.name(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using K = SortKey<T>;
    using S = SortEntry<K>;
    const T* p = t.data_ptr<T>();
    T* values = k.out(0).data_ptr<T>();
    int64_t* index = k.out(1).data_ptr<int64_t>();
    each_keyed_lane<T>(t, d, false, [&](int64_t lane, int64_t first, int64_t stride, auto& e, auto& scratch) {
      int64_t n = int64_t(e.size()), chosen = 0;
      if (pick == Pick::Mode) {
        sort_entries(e, scratch);
        int64_t best = 0;
        for (int64_t i = 0; i < n;) {
          int64_t j = i;
          while (j < n && S::key(e[size_t(j)]) == S::key(e[size_t(i)])) ++j;
          if (j - i > best) best = j - i, chosen = S::index(e[size_t(j - 1)]);
          i = j;
        }
      } else {
        int64_t r = rank, nans = 0, first_nan = -1;
        if (pick != Pick::Kth) {
          if constexpr (!std::is_integral_v<T>)
            for (int64_t i = 0; i < n; ++i)
              if (is_nan(p[first + i * stride])) {
                if (first_nan < 0) first_nan = i;
                ++nans;
              }
          r = pick == Pick::NanMedian && nans < n ? (n - nans - 1) / 2 : (n - 1) / 2;
        }
        if (pick == Pick::Median && nans) {
          chosen = first_nan;
        } else {
          std::nth_element(e.begin(), e.begin() + r, e.end());
          chosen = S::index(e[size_t(r)]);
        }
      }
      values[lane] = p[first + chosen * stride];
      index[lane] = chosen;
    });
  });
}
Tensor whole_median(const Args& a, bool skip_nan) {
  const Tensor& t = a.tensor(0);
  check_sortable(a);
  if (t.numel() == 0)
    return is_floating_point(t.dtype()) ? full({}, std::numeric_limits<double>::quiet_NaN(), t.options()) : full({}, combine_identity(Combine::Max, t.dtype()), t.options());
  Tensor flat = t.reshape({-1});
  return skip_nan ? std::get<0>(nanmedian(flat, 0)) : std::get<0>(median(flat, 0));
}

int vjp_order(const Grad& g, int64_t d) {
  return grads(G(0) { return value_selecting_reduction_backward(g.dy(), d, g.out(1), g.sizes(0), true); });
}
int vjp_whole_median(const Grad& g) { return grads(G(0) { return spread_over_ties(g, g.dy(), g.in(0), g.out(), Value(), false); }); }
int vjp_pick(const Grad& g, int64_t d, bool keepdim) {
  return grads(G(0) { return value_selecting_reduction_backward(g.dy(), d, g.out(1), g.sizes(0), keepdim); });
}
void sort_samples(SampleGen& s) {
  if (is_complex(s.dtype())) return;
  s(s.t({3, 4}));
  s(s.t({4, 3}), 0, true);
  s(s.t({}), 0);
  s(s.t({0, 3}), 0);
}
void pick_samples(SampleGen& s) {
  if (is_complex(s.dtype())) return;
  s(s.t({3, 4}), 0);
  s(s.t({2, 3, 5}), -1, true);
}

constexpr OpDef table[] = {
OP("sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
  .forms = Out, .types = ordered_types, .infer = [](InferCtx& c) { infer_sort(c, 1); }, .kernels = {{Cpu, [](const KernelCtx& k) { run_sort(k, 1, k.flag(2)); }}},
  .save = {out(1)}, .vjp = [](const Grad& g) { return vjp_order(g, g.integer(1)); }, .non_diff_outputs = 2,
  .shard = {"sort"}, .doc = "Elements of a dim in order, and where they were. Always stable; NaN is largest.", .samples = sort_samples),
OP("sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
  .forms = Out, .types = ordered_types, .infer = [](InferCtx& c) { infer_sort(c, 2); }, .kernels = {{Cpu, [](const KernelCtx& k) { run_sort(k, 2, k.flag(3)); }}},
  .save = {out(1)}, .vjp = [](const Grad& g) { return vjp_order(g, g.integer(2)); }, .non_diff_outputs = 2,
  .shard = {"sort"}, .doc = "sort; stable whatever `stable` says.", .samples = [](SampleGen& s) { if (!is_complex(s.dtype())) s(s.t({3, 4}), true, 0); }),
OP("argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor",
  .types = ordered_types, .decompose = [](const Args& a) -> Results { return std::get<1>(sort(a.tensor(0), a.integer(1), a.flag(2))); }, .non_differentiable = true,
  .shard = {"sort"}, .doc = "Indices that sort a dim.", .samples = sort_samples),
OP("argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
  .forms = Out, .types = ordered_types, .decompose = [](const Args& a) -> Results { return std::get<1>(sort(a.tensor(0), a.integer(2), a.flag(3))); }, .non_differentiable = true,
  .shard = {"sort"}, .doc = "Indices that sort a dim; always stable.", .samples = [](SampleGen& s) { if (!is_complex(s.dtype())) s(s.t({3, 4}), true, 0); }),
OP("msort(Tensor self) -> Tensor",
  .forms = Out, .types = ordered_types, .decompose = [](const Args& a) -> Results { return std::get<0>(sort(a.tensor(0), 0, false)); },
  .shard = {"sort"}, .doc = "sort along the first dim, without indices.", .samples = [](SampleGen& s) { if (!is_complex(s.dtype())) s(s.t({3, 4})); }),
OP("topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)",
  .forms = Out, .types = ordered_types, .infer = infer_topk, .kernels = {{Cpu, k_topk}},
  .save = {out(1)}, .vjp = [](const Grad& g) { return vjp_order(g, g.integer(2)); }, .non_diff_outputs = 2,
  .shard = {"sort"}, .doc = "The k largest (or smallest) elements of a dim, in order, and where they were. NaN is largest.",
  .samples = [](SampleGen& s) { if (!is_complex(s.dtype())) { s(s.t({3, 4}), 2); s(s.t({4, 3}), 4, 0, false); s(s.t({3, 4}), 0); } }),
OP("kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
  .forms = Out, .types = ordered_types,
  .infer = [](InferCtx& c) {
      infer_pick(c, 2, 3);
      SymInt n = c.dim(0) ? c.sizes(0)[size_t(c.wrap_dim(c.integer(2), c.dim(0)))] : SymInt(1);
      VESTA_CHECK(c.integer(1) >= 1 && n >= c.integer(1), c.name(), ": expected k in [1, ", n.str(), "], got ", c.integer(1)); },
  .kernels = {{Cpu, [](const KernelCtx& k) { run_pick(k, 2, Pick::Kth, k.integer(1) - 1); }}},
  .save = {out(1)}, .vjp = [](const Grad& g) { return vjp_pick(g, g.integer(2), g.flag(3)); }, .non_diff_outputs = 2,
  .shard = {"red-idx"}, .doc = "The k-th smallest element of a dim and its index; NaN is largest.",
  .samples = [](SampleGen& s) { if (!is_complex(s.dtype())) { s(s.t({3, 4}), 2); s(s.t({3, 4}), 1, 0, true); } }),
OP("median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
  .forms = Out, .types = ordered_types, .infer = [](InferCtx& c) { infer_pick(c, 1, 2); }, .kernels = {{Cpu, [](const KernelCtx& k) { run_pick(k, 1, Pick::Median, 0); }}},
  .save = {out(1)}, .vjp = [](const Grad& g) { return vjp_pick(g, g.integer(1), g.flag(2)); }, .non_diff_outputs = 2,
  .shard = {"red-idx"}, .doc = "The lower middle element of a dim and its index; NaN if there is one.", .samples = pick_samples),
OP("nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
  .forms = Out, .types = ordered_types, .infer = [](InferCtx& c) { infer_pick(c, 1, 2); }, .kernels = {{Cpu, [](const KernelCtx& k) { run_pick(k, 1, Pick::NanMedian, 0); }}},
  .save = {out(1)}, .vjp = [](const Grad& g) { return vjp_pick(g, g.integer(1), g.flag(2)); }, .non_diff_outputs = 2,
  .shard = {"red-idx"}, .doc = "The lower middle of the elements of a dim that are not NaN, and its index.", .samples = pick_samples),
OP("mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
  .forms = Out, .types = ordered_types, .infer = [](InferCtx& c) { infer_pick(c, 1, 2); }, .kernels = {{Cpu, [](const KernelCtx& k) { run_pick(k, 1, Pick::Mode, 0); }}},
  .save = {out(1)}, .vjp = [](const Grad& g) { return vjp_pick(g, g.integer(1), g.flag(2)); }, .non_diff_outputs = 2,
  .shard = {"red-idx"}, .doc = "The most frequent value of a dim (the smallest of several) and its last index.", .samples = pick_samples),
OP("median(Tensor self) -> Tensor",
  .forms = Out, .types = ordered_types, .decompose = [](const Args& a) -> Results { return whole_median(a, false); }, .save = {in(0), out(0)}, .vjp = vjp_whole_median,
  .shard = Shard::replicate(), .doc = "The lower middle of all elements; NaN if there is one. The gradient spreads evenly over equal elements.",
  .samples = [](SampleGen& s) { if (!is_complex(s.dtype())) s.unary({{}, {5}, {3, 4}}); }),
OP("nanmedian(Tensor self) -> Tensor",
  .forms = Out, .types = ordered_types, .decompose = [](const Args& a) -> Results { return whole_median(a, true); }, .save = {in(0), out(0)}, .vjp = vjp_whole_median,
  .shard = Shard::replicate(), .doc = "The lower middle of the elements that are not NaN.", .samples = [](SampleGen& s) { if (!is_complex(s.dtype())) s.unary({{}, {5}, {3, 4}}); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(sort, table)
