// Lookup and counting: searchsorted, bucketize, isin, unique, bincount, histc.
#include <cmath>

#include "core/storage.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/rows.h"
#include "ops/index_kernels.h"
#include "ops/infer.h"
#include "ops/sort_keys.h"

namespace vesta {
namespace {

using namespace op_block;

// ---- searchsorted ----
void infer_search(InferCtx& c, int values_at, int int32_at) {
  bool tensor = c.value(values_at).kind == ValueKind::Tensor;
  c.out(0, tensor ? c.sizes(values_at) : ArrayRef<SymInt>(), c.flag(int32_at) ? kInt : kLong, c.tensor(tensor ? values_at : (values_at ? 0 : 1)).device());
}
// For each of up to kTogether values the first position whose element is not below it (left) or above it (right), written
// so that NaN counts as largest. Side by side and without a branch: a single search waits for every load, and guesses
// half of its branches wrong. Sequences that NaN ends are not in order for these comparisons, so the middles are those of
// the plain bisection.
constexpr int kTogether = 16;
template <bool right, class T>
void positions(const T* p, const int64_t* sorter, int64_t n, const T* v, int count, int64_t* to) {
  int64_t low[kTogether] = {}, high[kTogether];
  std::fill_n(high, kTogether, n);
  for (int64_t size = n; size > 0; size /= 2)  // the longest interval left
    for (int i = 0; i < count; ++i) {
      const int64_t lo = low[i], hi = high[i], mid = (lo + hi) >> 1, at = mid < n ? mid : n - 1;
      const auto m = comparable(p[sorter ? sorter[at] : at]), x = comparable(v[i]);
      const bool below = right ? !(m > x) : !(m >= x);
      low[i] = lo + ((mid + 1 - lo) & -int64_t(below & (lo < hi)));
      high[i] = mid + ((hi - mid) & -int64_t(below));
    }
  std::copy_n(low, count, to);
}
void run_search(const KernelCtx& k, const Tensor& sequence, Tensor values, bool right, const Tensor& sorter) {
  VESTA_CHECK(sequence.dim() > 0, k.name(), ": expected boundaries with at least 1 dim");
  bool shared = sequence.dim() == 1;
  if (!shared) {
    VESTA_CHECK(values.dim() == sequence.dim(), k.name(), ": expected values with ", sequence.dim(), " dims, got ", values.dim());
    for (int64_t d = 0; d + 1 < values.dim(); ++d)
      VESTA_CHECK(values.size(d) == sequence.size(d), k.name(), ": boundaries and values differ in dim ", d);
  }
  Tensor order;
  if (sorter.defined()) {
    VESTA_CHECK_AS(TypeError, sorter.dtype() == kLong, k.name(), ": expected an int64 sorter, got ", dtype_name(sorter.dtype()));
    VESTA_CHECK(sorter.sizes() == sequence.sizes(), k.name(), ": the sorter must have the boundaries' shape");
    order = sorter.contiguous();
    int64_t n = sequence.size(-1);
    const int64_t* p = order.data_ptr<int64_t>();
    for (int64_t i = 0; i < order.numel(); ++i) VESTA_CHECK_AS(IndexError, p[i] >= 0 && p[i] < n, k.name(), ": sorter index ", p[i], " is out of range");
  }
  DType t = sequence.dtype() == values.dtype() ? values.dtype() : result_type(sequence, values);
  Tensor s = sequence.to(t).contiguous(), v = values.to(t).contiguous();
  Tensor& out = k.out();
  if (v.numel() == 0) return;
  Tensor r = out.dtype() == kLong ? out : empty_cpu(out.sizes(), kLong);
  int64_t n = sequence.size(-1), row = shared || values.dim() == 0 ? v.numel() : values.size(-1);
  const int64_t* o = order.defined() ? order.data_ptr<int64_t>() : nullptr;
  visit_real(t, k.name(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *p = s.data_ptr<T>(), *q = v.data_ptr<T>();
    int64_t* to = r.data_ptr<int64_t>();
    parallel_for(0, v.numel(), 2048, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end;) {
        int64_t base = shared ? 0 : i / row * n, stop = shared ? end : std::min(end, (i / row + 1) * row);
        int count = int(std::min<int64_t>(kTogether, stop - i));
        const int64_t* order_of = o ? o + base : nullptr;
        if (right) positions<true>(p + base, order_of, n, q + i, count, to + i);
        else positions<false>(p + base, order_of, n, q + i, count, to + i);
        i += count;
      }
    });
  });
  if (!r.is_same(out)) cpu::copy_elements(out, r);
}
bool search_right(const KernelCtx& k) {
  if (!k.has(4)) return k.flag(3);
  std::string_view side = k.string(4);
  VESTA_CHECK(side == "left" || side == "right", k.name(), ": expected side left or right, got \"", side, "\"");
  VESTA_CHECK(!(k.flag(3) && side == "left"), k.name(), ": side left contradicts right=true");
  return side == "right";
}
Tensor number_tensor(const Scalar& v) { return scalar_tensor(v, TensorOptions(v.isFloatingPoint() ? get_default_dtype() : v.type())); }

// ---- isin ----
void infer_isin(InferCtx& c) {
  bool tensor = c.value(0).kind == ValueKind::Tensor;
  c.out(0, tensor ? c.sizes(0) : ArrayRef<SymInt>(), kBool, c.tensor(tensor ? 0 : 1).device());
}
void k_isin(const KernelCtx& k) {
  Tensor e = k.value(0).kind == ValueKind::Tensor ? k.tensor(0) : number_tensor(k.scalar(0));
  Tensor s = k.value(1).kind == ValueKind::Tensor ? k.tensor(1) : number_tensor(k.scalar(1));
  DType t = e.dtype() == s.dtype() ? e.dtype() : result_type(e, s);
  e = e.to(t).contiguous();
  s = s.to(t).contiguous();
  bool invert = k.flag(3);
  bool* to = k.out().data_ptr<bool>();
  visit_real(t, k.name(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using K = SortKey<T>;
    const T *p = e.data_ptr<T>(), *q = s.data_ptr<T>();
    std::vector<K> set;
    for (int64_t i = 0; i < s.numel(); ++i)
      if (!is_nan(q[i])) set.push_back(sort_key(q[i]));
    std::sort(set.begin(), set.end());
    parallel_for(0, e.numel(), 2048, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = (!is_nan(p[i]) && std::binary_search(set.begin(), set.end(), sort_key(p[i]))) != invert;
    });
  });
}

// ---- unique ----
// Writes values, inverse and counts of the runs of equal elements in `order` (positions of a flat tensor).
template <class T>
void emit_runs(const KernelCtx& k, const T* p, const std::vector<int64_t>& order, IntArrayRef inverse_sizes, bool want_inverse, bool want_counts, DType t) {
  std::vector<int64_t> starts;
  int64_t n = int64_t(order.size());
  for (int64_t i = 0; i < n; ++i)
    if (i == 0 || !(comparable(p[order[size_t(i)]]) == comparable(p[order[size_t(i - 1)]]))) starts.push_back(i);
  int64_t m = int64_t(starts.size());
  T* values = k.allocate(0, {m}, t).template data_ptr<T>();
  for (int64_t i = 0; i < m; ++i) values[i] = p[order[size_t(starts[size_t(i)])]];
  if (k.num_outs() > 1) {
    if (want_inverse) {
      int64_t* inverse = k.allocate(1, inverse_sizes, kLong).template data_ptr<int64_t>();
      for (int64_t i = 0, run = -1; i < n; ++i) {
        if (run + 1 < m && starts[size_t(run + 1)] == i) ++run;
        inverse[order[size_t(i)]] = run;
      }
    } else {
      k.allocate(1, {0}, kLong);
    }
  }
  if (k.num_outs() > 2) {
    int64_t* counts = k.allocate(2, {want_counts ? m : 0}, kLong).template data_ptr<int64_t>();
    if (want_counts)
      for (int64_t i = 0; i < m; ++i) counts[i] = (i + 1 < m ? starts[size_t(i + 1)] : n) - starts[size_t(i)];
  }
}
template <class T>
std::vector<int64_t> sorted_order(const T* p, int64_t n) {
  using S = SortEntry<SortKey<T>>;
  std::vector<typename S::type> entries(static_cast<size_t>(n)), scratch;
  for (int64_t i = 0; i < n; ++i) entries[size_t(i)] = S::make(sort_key(p[i]), uint32_t(i));
  sort_entries(entries, scratch);
  std::vector<int64_t> order(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) order[size_t(i)] = S::index(entries[size_t(i)]);
  return order;
}
// The distinct values of integers that span a small range, by marking those met; nothing where the range is large.
template <class T>
bool mark_values(const KernelCtx& k, const T* p, int64_t n, DType t) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    if (n == 0) return false;
    auto [low, high] = std::minmax_element(p, p + n);
    const T least = *low;
    uint64_t span = uint64_t(int64_t(*high)) - uint64_t(int64_t(least));
    if (span >= uint64_t(std::max<int64_t>(n, 65536))) return false;
    std::vector<uint8_t> met(size_t(span + 1), 0);
    for (int64_t i = 0; i < n; ++i) met[size_t(uint64_t(int64_t(p[i])) - uint64_t(int64_t(least)))] = 1;
    T* values = k.allocate(0, {std::count(met.begin(), met.end(), 1)}, t).template data_ptr<T>();
    for (size_t v = 0; v < met.size(); ++v)
      if (met[v]) *values++ = T(int64_t(uint64_t(int64_t(least)) + v));
    for (int j = 1; j < k.num_outs(); ++j) k.allocate(j, {0}, kLong);
    return true;
  }
  return false;
}
void k_unique(const KernelCtx& k) {
  Tensor t = k.tensor(0).contiguous();
  bool counts = k.num_outs() > 2 && k.flag(3);  // counts come with the inverse, asked for or not
  visit_real(t.dtype(), k.name(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* p = t.data_ptr<T>();
    if (!k.flag(2) && !counts && mark_values(k, p, t.numel(), t.dtype())) return;
    emit_runs(k, p, sorted_order(p, t.numel()), t.sizes(), k.flag(2) || counts, counts, t.dtype());
  });
}
// Rows of `dim`: compared lexicographically; sorted first unless consecutive. Inverse and counts always come along.
void unique_rows(const KernelCtx& k, int64_t dim, bool sort_rows) {
  const Tensor& self = k.tensor(0);
  int64_t d = wrap_dim(k, dim, self.dim());
  VESTA_CHECK(self.dim() > 0, k.name(), ": expected at least 1 dim");
  int64_t rows = self.size(d);
  Tensor t = self.transpose(d, 0).contiguous();  // swapped, not moved: this decides the order of comparison
  int64_t width = rows ? t.numel() / rows : 0;
  if (t.numel() == 0) VESTA_CHECK(rows == 0, k.name(), ": rows without elements cannot be told apart");
  std::vector<int64_t> order(static_cast<size_t>(rows)), starts;
  for (int64_t i = 0; i < rows; ++i) order[size_t(i)] = i;
  visit_real(t.dtype(), k.name(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* p = t.data_ptr<T>();
    if (sort_rows)
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        for (int64_t j = 0; j < width; ++j) {
          auto x = sort_key(p[a * width + j]), y = sort_key(p[b * width + j]);
          if (x != y) return x < y;
        }
        return false;
      });
    auto equal_rows = [&](int64_t a, int64_t b) {
      for (int64_t j = 0; j < width; ++j)
        if (!(comparable(p[a * width + j]) == comparable(p[b * width + j]))) return false;
      return true;
    };
    for (int64_t i = 0; i < rows; ++i)
      if (i == 0 || !equal_rows(order[size_t(i)], order[size_t(i - 1)])) starts.push_back(i);
  });
  int64_t m = int64_t(starts.size());
  Tensor pick = empty_cpu({m}, kLong);
  for (int64_t i = 0; i < m; ++i) pick.data_ptr<int64_t>()[i] = order[size_t(starts[size_t(i)])];
  Tensor chosen = self.index_select(d, pick);
  cpu::copy_elements(k.allocate(0, chosen.sizes(), chosen.dtype()), chosen);
  int64_t* inverse = k.allocate(1, {rows}, kLong).data_ptr<int64_t>();
  for (int64_t i = 0, run = -1; i < rows; ++i) {
    if (run + 1 < m && starts[size_t(run + 1)] == i) ++run;
    inverse[order[size_t(i)]] = run;
  }
  int64_t* counts = k.allocate(2, {m}, kLong).data_ptr<int64_t>();
  for (int64_t i = 0; i < m; ++i) counts[i] = (i + 1 < m ? starts[size_t(i + 1)] : rows) - starts[size_t(i)];
}
void k_unique_consecutive(const KernelCtx& k) {
  if (k.has(3)) return unique_rows(k, k.integer(3), false);
  Tensor t = k.tensor(0).contiguous();
  visit_real(t.dtype(), k.name(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<int64_t> order(size_t(t.numel()));
    for (size_t i = 0; i < order.size(); ++i) order[i] = int64_t(i);
    emit_runs(k, static_cast<const T*>(t.data_ptr<T>()), order, t.sizes(), k.flag(1), k.flag(2), t.dtype());
  });
}

// ---- counting ----
void k_bincount(const KernelCtx& k) {
  const Tensor &self = k.tensor(0), &weights = k.tensor(1);
  VESTA_CHECK_AS(TypeError, is_integral(self.dtype()), k.name(), ": expected integers, got ", dtype_name(self.dtype()));
  VESTA_CHECK(self.dim() == 1, k.name(), ": expected 1 dim, got ", self.dim());
  VESTA_CHECK(k.integer(2) >= 0, k.name(), ": expected minlength >= 0, got ", k.integer(2));
  if (weights.defined()) VESTA_CHECK(weights.sizes() == self.sizes(), k.name(), ": expected weights of the input's shape");
  Tensor t = self.to(kLong).contiguous();
  const int64_t* p = t.data_ptr<int64_t>();
  int64_t size = k.integer(2), count = t.numel();
  // Parts of fixed length with bins of their own; numbers of elements add up in any order.
  int64_t parts = std::clamp<int64_t>(count / 32768, 1, 16), part = (count + parts - 1) / parts;
  std::vector<std::pair<int64_t, int64_t>> limits(size_t(parts), {0, -1});  // least and largest
  parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      int64_t first = j * part, n = std::min(count, first + part) - first, least = 0, largest = -1;
      if (n > 0) cpu::row_limits(p + first, n, &least, &largest);
      limits[size_t(j)] = {least, largest};
    }
  });
  for (auto [least, largest] : limits) {
    VESTA_CHECK(least >= 0, k.name(), ": expected values >= 0, got ", least);
    size = std::max(size, largest + 1);
  }
  if (!weights.defined()) {
    Tensor& out = k.allocate(0, {size}, kLong);
    int64_t* q = out.data_ptr<int64_t>();
    std::fill_n(q, size, 0);
    if (parts == 1 || size > 65536) {
      for (int64_t i = 0; i < count; ++i) ++q[p[i]];
      return;
    }
    std::vector<int64_t> bins(size_t(parts * size), 0);
    parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t j = begin; j < end; ++j) {
        int64_t* own = bins.data() + j * size;
        for (int64_t i = j * part, last = std::min(count, i + part); i < last; ++i) ++own[p[i]];
      }
    });
    for (int64_t j = 0; j < parts; ++j)
      for (int64_t b = 0; b < size; ++b) q[b] += bins[size_t(j * size + b)];
    return;
  }
  DType wt = weights.dtype() == kFloat ? kFloat : kDouble;
  Tensor w = weights.to(kDouble).contiguous(), sums = zeros({size}, TensorOptions(kDouble));
  for (int64_t i = 0; i < t.numel(); ++i) sums.data_ptr<double>()[p[i]] += w.data_ptr<double>()[i];
  cpu::copy_elements(k.allocate(0, {size}, wt), sums);
}
void infer_histc(InferCtx& c) {
  VESTA_CHECK_AS(TypeError, is_floating_point(c.dtype_of(0)), c.name(), ": expected a floating dtype, got ", dtype_name(c.dtype_of(0)));
  VESTA_CHECK(c.integer(1) > 0, c.name(), ": expected bins > 0, got ", c.integer(1));
  c.out(0, {SymInt(c.integer(1))}, c.dtype_of(0), c.tensor(0).device());
}
void k_histc(const KernelCtx& k) {
  Tensor t = k.tensor(0).to(kDouble).contiguous();
  const double* p = t.data_ptr<double>();
  int64_t bins = k.integer(1), n = t.numel();
  double lo = k.scalar(2).toDouble(), hi = k.scalar(3).toDouble();
  if (lo == hi && n) {
    lo = std::numeric_limits<double>::infinity(), hi = -lo;
    for (int64_t i = 0; i < n; ++i) lo = std::min(lo, p[i]), hi = std::max(hi, p[i]);
  }
  if (lo == hi) lo -= 1, hi += 1;
  VESTA_CHECK(std::isfinite(lo) && std::isfinite(hi), k.name(), ": the range [", lo, ", ", hi, "] is not finite");
  VESTA_CHECK(lo < hi, k.name(), ": expected min < max, got ", lo, " and ", hi);
  std::vector<double> counts(size_t(bins), 0);
  for (int64_t i = 0; i < n; ++i)
    if (p[i] >= lo && p[i] <= hi) ++counts[size_t(std::min(bins - 1, int64_t((p[i] - lo) / (hi - lo) * double(bins))))];
  Tensor r = empty_cpu({bins}, kDouble);
  std::copy(counts.begin(), counts.end(), r.data_ptr<double>());
  cpu::copy_elements(k.out(), r);
}
void check_same_type(const Args& a) {
  VESTA_CHECK_AS(TypeError, a.tensor(0).dtype() == a.tensor(1).dtype(), a.name(), ": expected equal dtypes, got ", dtype_name(a.tensor(0).dtype()), " and ",
                 dtype_name(a.tensor(1).dtype()));
}
Tensor truth(bool v) { return scalar_tensor(v, TensorOptions(kBool)); }
void unique_samples(SampleGen& s) { if (!is_complex(s.dtype())) { s(s.t({5}), true, true); s(s.t({3, 4}), true, false); } }

constexpr OpDef table[] = {
OP("searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor",
  .forms = Out, .types = any_types, .infer = [](InferCtx& c) { infer_search(c, 1, 2); },
  .kernels = {{Cpu, [](const KernelCtx& k) { run_search(k, k.tensor(0), k.tensor(1), search_right(k), k.tensor(5)); }}}, .non_differentiable = true,
  .shard = {"bucketize"}, .doc = "Where self's elements would be inserted in the last dim of sorted_sequence: before equal ones, or after with right.",
  .samples = [](SampleGen& s) { if (!is_complex(s.dtype())) s(Tensor(std::get<0>(s.t({3, 5}).sort())), s.t({3, 2})); }),
OP("searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor",
  .forms = Out, .types = any_types, .infer = [](InferCtx& c) { infer_search(c, 1, 2); },
  .kernels = {{Cpu, [](const KernelCtx& k) { run_search(k, k.tensor(0), number_tensor(k.scalar(1)), search_right(k), k.tensor(5)); }}}, .non_differentiable = true,
  .shard = {"bucketize"}, .doc = "searchsorted of a number.", .samples = [](SampleGen& s) { if (!is_complex(s.dtype())) s(Tensor(std::get<0>(s.t({5}).sort())), Scalar(1)); }),
OP("bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
  .forms = Out, .types = any_types, .infer = [](InferCtx& c) { infer_search(c, 0, 2); },
  .kernels = {{Cpu, [](const KernelCtx& k) {
      VESTA_CHECK(k.tensor(1).dim() == 1, "bucketize: expected boundaries with 1 dim, got ", k.tensor(1).dim());
      run_search(k, k.tensor(1), k.tensor(0), k.flag(3), {}); }}}, .non_differentiable = true,
  .shard = {"bucketize"}, .doc = "Bucket of each element between sorted boundaries.", .samples = [](SampleGen& s) { if (!is_complex(s.dtype())) s(s.t({3, 2}), Tensor(std::get<0>(s.t({5}).sort()))); }),
OP("bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
  .types = any_types, .infer = [](InferCtx& c) { infer_search(c, 0, 2); },
  .kernels = {{Cpu, [](const KernelCtx& k) {
      VESTA_CHECK(k.tensor(1).dim() == 1, "bucketize: expected boundaries with 1 dim, got ", k.tensor(1).dim());
      run_search(k, k.tensor(1), number_tensor(k.scalar(0)), k.flag(3), {}); }}}, .non_differentiable = true,
  .shard = {"bucketize"}, .doc = "Bucket of a number.", .samples = [](SampleGen& s) { if (!is_complex(s.dtype())) s(Scalar(1), Tensor(std::get<0>(s.t({5}).sort()))); }),
OP("isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_isin, .kernels = {{Cpu, k_isin}}, .non_differentiable = true,
  .shard = {"isin"}, .doc = "Whether each element is among the test elements; NaN never is.", .samples = [](SampleGen& s) { if (!is_complex(s.dtype())) s(s.t({3, 4}), s.t({5})); }),
OP("isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool invert=False) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_isin, .kernels = {{Cpu, k_isin}}, .non_differentiable = true,
  .shard = {"isin"}, .doc = "isin with one number.", .samples = [](SampleGen& s) { if (!is_complex(s.dtype())) s(s.t({3, 4}), Scalar(1)); }),
OP("isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_isin, .kernels = {{Cpu, k_isin}}, .non_differentiable = true,
  .shard = {"isin"}, .doc = "isin of a number.", .samples = [](SampleGen& s) { if (!is_complex(s.dtype())) s(Scalar(1), s.t({5})); }),
OP("_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
  .types = any_types, .kernels = {{Cpu, k_unique}}, .dynamic_out = true, .non_differentiable = true,
  .shard = Shard::replicate(), .doc = "Distinct elements in order, where each went, and how often it occurs. Each NaN is distinct.", .samples = unique_samples),
OP("_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)",
  .types = any_types, .kernels = {{Cpu, k_unique}}, .dynamic_out = true, .non_differentiable = true,
  .shard = Shard::replicate(), .doc = "_unique2 without counts.", .samples = unique_samples),
OP("unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
  .types = any_types, .kernels = {{Cpu, [](const KernelCtx& k) { unique_rows(k, k.integer(1), true); }}}, .dynamic_out = true, .non_differentiable = true,
  .shard = Shard::replicate(), .doc = "Distinct slices of a dim, in lexicographic order.", .samples = [](SampleGen& s) { if (!is_complex(s.dtype())) s(s.t({5, 2}), 0, true, true, true); }),
OP("unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> (Tensor, Tensor, Tensor)",
  .types = any_types, .kernels = {{Cpu, k_unique_consecutive}}, .dynamic_out = true, .non_differentiable = true,
  .shard = Shard::replicate(), .doc = "The first of each run of equal elements (or slices of dim).", .samples = [](SampleGen& s) { if (!is_complex(s.dtype())) { s(s.t({5}), true, true); s(s.t({5, 2}), true, true, 0); } }),
OP("unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
  .types = any_types, .kernels = {{Cpu, [](const KernelCtx& k) { unique_rows(k, k.integer(1), false); }}}, .dynamic_out = true, .non_differentiable = true,
  .shard = Shard::replicate(), .doc = "The first of each run of equal slices of a dim.", .samples = [](SampleGen& s) { if (!is_complex(s.dtype())) s(s.t({5, 2}), 0, true, true); }),
OP("bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor",
  .forms = Out, .types = any_types, .kernels = {{Cpu, k_bincount}}, .dynamic_out = true, .non_differentiable = true,
  .shard = Shard::replicate(), .doc = "How often each integer occurs, or the sum of its weights.", .samples = [](SampleGen& s) { if (s.dtype() == kLong) s(s.index({6}, 4)); }),
OP("histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_histc, .kernels = {{Cpu, k_histc}}, .non_differentiable = true,
  .shard = {"hist"}, .doc = "Counts in equal bins between min and max (the data's own range where both are equal); others and NaN are left out.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({20}), 5, Scalar(-3), Scalar(3)); }),
OP("isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      const Tensor &x = a.tensor(0), &y = a.tensor(1);
      VESTA_CHECK_AS(TypeError, x.dtype() == y.dtype(), "isclose: expected equal dtypes, got ", dtype_name(x.dtype()), " and ", dtype_name(y.dtype()));
      double rtol = a.number(2), atol = a.number(3);
      VESTA_CHECK(rtol >= 0 && atol >= 0, "isclose: expected tolerances >= 0, got ", rtol, " and ", atol);
      Tensor close = x == y;
      bool exact = is_integral(x.dtype(), true);
      if (a.flag(4) && !exact) close = logical_or(close, logical_and(x != x, y != y));
      if (rtol == 0 && atol == 0) return close;
      Tensor p = x, q = y;
      if (exact) p = x.to(get_default_dtype()), q = y.to(get_default_dtype());
      Tensor allowed = q.abs() * rtol + atol, error = (p - q).abs();
      return logical_or(close, logical_and(error <= allowed, error < std::numeric_limits<double>::infinity())); },
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "|self - other| <= atol + rtol |other|, or equal (also both infinite).",
  .samples = [](SampleGen& s) { if (s.dtype() != kBool) s(s.t({3, 4}), s.t({3, 4})); }),
OP("allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> bool",
  .types = any_types, .decompose = [](const Args& a) -> Results { return isclose(a.tensor(0), a.tensor(1), a.number(2), a.number(3), a.flag(4)).all(); },
  .non_differentiable = true, .shard = {"reduce-host"}, .doc = "Whether isclose holds everywhere.", .samples = [](SampleGen& s) { if (s.dtype() != kBool) s(s.t({3, 4}), s.t({3, 4})); }),
OP("equal(Tensor self, Tensor other) -> bool",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      check_same_type(a);
      if (a.tensor(0).sizes() != a.tensor(1).sizes()) return truth(false);
      return (a.tensor(0) == a.tensor(1)).all(); },
  .non_differentiable = true, .shard = {"reduce-host"}, .doc = "Whether both have the same sizes and elements; NaN equals nothing.", .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4})); }),
OP("is_same_size(Tensor self, Tensor other) -> bool",
  .types = any_types, .decompose = [](const Args& a) -> Results { return truth(a.tensor(0).sizes() == a.tensor(1).sizes()); },
  .non_differentiable = true, .shard = {"reduce-host"}, .doc = "Whether the sizes are equal.", .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3})); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(search, table)
