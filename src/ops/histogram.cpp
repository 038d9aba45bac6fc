// Histograms in one and more dims. Values are compared with the edges in double, which is exact for every floating
// type; a bin holds left <= x < right, the last one its right edge too. Values outside the edges are left out.
#include <algorithm>
#include <cmath>

#include "base/checked_math.h"
#include "base/thread_pool.h"
#include "core/storage.h"
#include "ops/infer.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

// Partial histograms are added in order, so that sums depend on the shape alone.
constexpr int64_t kChunk = 1 << 16, kMaxPartialBins = 1 << 16;

void check_input(const Args& a, const Tensor& x) {
  VESTA_CHECK_AS(TypeError, is_floating_point(x.dtype()), a.name(), ": expected a floating point tensor, got ", dtype_name(x.dtype()));
}
Tensor check_weight(const Args& a, int i, const Tensor& x, IntArrayRef sizes) {
  if (!a.has(i)) return {};
  const Tensor& w = a.tensor(i);
  VESTA_CHECK_AS(TypeError, w.dtype() == x.dtype(), a.name(), ": expected weights of ", dtype_name(x.dtype()), ", got ", dtype_name(w.dtype()));
  VESTA_CHECK(w.sizes() == sizes, a.name(), ": expected a weight for each value");
  return w.to(kDouble).contiguous().view({-1});
}
Tensor check_edges(const Args& a, const Tensor& e, const Tensor& x) {
  VESTA_CHECK(e.dim() == 1 && e.numel() >= 1, a.name(), ": expected bin edges with 1 dim and at least one element");
  VESTA_CHECK_AS(TypeError, e.dtype() == x.dtype(), a.name(), ": expected edges of ", dtype_name(x.dtype()), ", got ", dtype_name(e.dtype()));
  return e.to(kDouble).contiguous();
}
// The last edge that is not above v, by bisection; edges that do not increase give some bin, as in PyTorch.
int64_t bin_of(const double* edges, int64_t n, double v) {
  int64_t low = 0, high = n;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (v < edges[middle]) high = middle;
    else low = middle + 1;
  }
  return std::clamp<int64_t>(low - 1, 0, n - 2);
}

// x: [points, dims] in double.
Tensor count(const Args& a, const Tensor& x, const std::vector<Tensor>& edges, const Tensor& weight, bool density, DType dtype) {
  const int64_t points = x.size(0), dims = x.size(1);
  std::vector<int64_t> sizes;
  for (auto& e : edges) sizes.push_back(e.numel() - 1);
  const int64_t bins = checked_numel({sizes.data(), sizes.size()}, a.name());
  Tensor hist = zeros(sizes, TensorOptions(kDouble));
  if (bins == 0) return hist.to(dtype);
  const double* values = x.data_ptr<double>();
  const double* weights = weight.defined() ? weight.data_ptr<double>() : nullptr;
  const int64_t chunks = bins <= kMaxPartialBins ? std::min<int64_t>(16, (points + kChunk - 1) / kChunk) : 1;
  Tensor partial = chunks > 1 ? zeros({chunks, bins}, TensorOptions(kDouble)) : hist;
  double* sums = partial.data_ptr<double>();
  parallel_for(0, std::max<int64_t>(1, chunks), 1, [&](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c) {
      const int64_t per = chunks > 1 ? (points + chunks - 1) / chunks : points, begin = c * per, end = std::min(points, begin + per);
      for (int64_t i = begin; i < end; ++i) {
        int64_t at = 0;
        bool inside = true;
        for (int64_t d = 0; d < dims && inside; ++d) {
          const double v = values[i * dims + d], *e = edges[size_t(d)].data_ptr<double>();
          const int64_t n = edges[size_t(d)].numel();
          inside = v >= e[0] && v <= e[n - 1];
          if (!inside) break;
          at = at * (n - 1) + bin_of(e, n, v);
        }
        if (inside) sums[c * bins + at] += weights ? weights[i] : 1.0;
      }
    }
  });
  if (chunks > 1) {
    double* total = hist.data_ptr<double>();
    for (int64_t c = 0; c < chunks; ++c)
      for (int64_t b = 0; b < bins; ++b) total[b] += sums[c * bins + b];
  }
  if (density) {
    hist.div_(hist.sum());
    for (size_t d = 0; d < edges.size(); ++d) {
      std::vector<int64_t> shape(edges.size(), 1);
      shape[d] = sizes[d];
      hist.div_(edges[d].diff().view(shape));
    }
  }
  return hist.to(dtype);
}

// Edges of `bins` equal bins over the range (two numbers a dim), or over the values themselves.
Tensor equal_edges(const Args& a, const Tensor& x, int64_t d, int64_t bins, const double* range, DType dtype) {
  VESTA_CHECK(bins > 0 && bins < (int64_t(1) << 40), a.name(), ": expected a number of bins > 0, got ", bins);
  double low = 0, high = 1;
  if (range) {
    low = range[0], high = range[1];
  } else if (x.size(0) > 0) {
    Tensor column = x.select(1, d);
    low = column.min().item<double>(), high = column.max().item<double>();
  }
  VESTA_CHECK(std::isfinite(low) && std::isfinite(high), a.name(), ": the range of dim ", d, ", [", low, ", ", high, "], is not finite");
  VESTA_CHECK(low <= high, a.name(), ": expected a range from low to high, got [", low, ", ", high, "]");
  if (low == high) low -= 0.5, high += 0.5;
  return linspace(low, high, bins + 1, TensorOptions(dtype));
}
ArrayRef<double> range_at(const Args& a, int i, int64_t dims) {
  if (!a.has(i)) return {};
  ArrayRef<double> r(static_cast<const double*>(a.value(i).ptr), a.value(i).length);
  VESTA_CHECK(int64_t(r.size()) == 2 * dims, a.name(), ": expected a range of ", 2 * dims, " numbers, got ", r.size());
  return r;
}

Results histogram_1d(const Args& a, bool with_edges, int weight_at) {
  const Tensor& x = a.tensor(0);
  check_input(a, x);
  Tensor points = x.to(kDouble).contiguous().view({-1, 1}), weight = check_weight(a, weight_at, x, x.sizes()), edges;
  if (with_edges) edges = a.tensor(1);
  else {
    ArrayRef<double> r = range_at(a, 2, 1);
    edges = equal_edges(a, points, 0, a.integer(1), r.size() ? r.data() : nullptr, x.dtype());
  }
  return {count(a, points, {check_edges(a, edges, x)}, weight, a.flag(weight_at + 1), x.dtype()), with_edges ? edges.clone() : edges};
}

// Bins: a list of counts, one count, or a list of edges.
Results histogram_nd(const Args& a) {
  const Tensor& x = a.tensor(0);
  check_input(a, x);
  VESTA_CHECK(x.dim() >= 2, a.name(), ": expected at least 2 dims, got ", x.dim());
  const int64_t dims = x.size(-1);
  VESTA_CHECK(dims > 0, a.name(), ": expected a last dim of size > 0");
  std::vector<int64_t> lead(x.sizes().begin(), x.sizes().end() - 1);
  Tensor points = x.to(kDouble).contiguous().view({checked_numel({lead.data(), lead.size()}, a.name()), dims});
  Tensor weight = check_weight(a, 3, x, lead);
  std::vector<Tensor> edges, compared;
  ArrayRef<double> r = range_at(a, 2, dims);
  if (a.value(1).kind == ValueKind::TensorList) {
    VESTA_CHECK(int64_t(a.tensors(1).size()) == dims, a.name(), ": expected edges for each of ", dims, " dims, got ", a.tensors(1).size());
    for (auto& e : a.tensors(1)) edges.push_back(e.clone());
  } else {
    std::vector<int64_t> bins = a.value(1).kind == ValueKind::Int ? std::vector<int64_t>(size_t(dims), a.integer(1)) : a.ints(1).vec();
    VESTA_CHECK(int64_t(bins.size()) == dims, a.name(), ": expected a number of bins for each of ", dims, " dims, got ", bins.size());
    for (int64_t d = 0; d < dims; ++d) edges.push_back(equal_edges(a, points, d, bins[size_t(d)], r.size() ? r.data() + 2 * d : nullptr, x.dtype()));
  }
  for (auto& e : edges) compared.push_back(check_edges(a, e, x));
  std::vector<Tensor> results{count(a, points, compared, weight, a.flag(4), x.dtype())};
  results.insert(results.end(), edges.begin(), edges.end());
  return results;
}

bool floating(const SampleGen& s) { return is_floating_point(s.dtype()); }
constexpr TypeRule same_floats{types::kFloatMask, Promote::None};

constexpr OpDef table[] = {
OP("histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
  .types = same_floats, .decompose = [](const Args& a) { return histogram_1d(a, true, 2); }, .non_differentiable = true, .shard = {"replicate"},
  .doc = "Counts, or sums of weights, between given edges, and the edges.",
  .samples = [](SampleGen& s) { Tensor edges = linspace(-2, 2, 5).to(s.dtype()); s(s.t({20}), edges); s(s.t({4, 5}), edges, s.t({4, 5}, range(0, 1)), true); s(s.t({0}), edges); }),
OP("histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
  .types = same_floats, .decompose = [](const Args& a) { return histogram_1d(a, false, 3); }, .non_differentiable = true, .shard = {"replicate"},
  .doc = "Counts, or sums of weights, in bins of equal width over a range or over the values, and the edges.",
  .samples = [](SampleGen& s) { if (floating(s)) { s(s.t({20}), 4, std::vector<double>{-2, 2}); s(s.t({0}), 4); } }),
OP("histogramdd(Tensor self, int[] bins, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
  .types = same_floats, .decompose = histogram_nd, .non_differentiable = true, .shard = {"replicate"},
  .doc = "Counts of points in boxes of equal size, and the edges of each dim; the last dim holds coordinates.",
  .samples = [](SampleGen& s) { s(s.t({20, 2}), std::vector<int64_t>{2, 3}, std::vector<double>{-2, 2, -1, 1}); s(s.t({20, 2}), std::vector<int64_t>{2, 3}, std::vector<double>{-2, 2, -1, 1}, s.t({20}, range(0, 1)), true); }),
OP("histogramdd.int_bins(Tensor self, int bins, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
  .types = same_floats, .decompose = histogram_nd, .non_differentiable = true, .shard = {"replicate"},
  .doc = "histogramdd with the same number of bins in each dim.", .samples = [](SampleGen& s) { s(s.t({20, 2}), 3, std::vector<double>{-2, 2, -1, 1}); }),
OP("histogramdd.TensorList_bins(Tensor self, Tensor[] bins, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
  .types = same_floats, .decompose = histogram_nd, .non_differentiable = true, .shard = {"replicate"},
  .doc = "histogramdd with given edges.", .samples = [](SampleGen& s) { Tensor edges = linspace(-2, 2, 5).to(s.dtype()); s(s.t({20, 2}), std::vector<Tensor>{edges, edges}); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(histogram, table)
