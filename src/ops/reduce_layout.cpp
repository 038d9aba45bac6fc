// One contiguous copy with the reduced dims last, unless they already are one run of a contiguous tensor.
#include "ops/reduce_layout.h"

#include <algorithm>

#include "core/storage.h"
#include "vesta/ops.h"

namespace vesta {

// A dense tensor of another stride order, seen as the contiguous one that its memory holds; undefined where the kept or
// the reduced dims would change their order among themselves.
static Tensor as_in_memory(const Tensor& t, const std::vector<int64_t>& dims, std::vector<int64_t>& mapped) {
  if (!(t.impl()->bits & TensorImpl::kDense) || t.is_contiguous()) return {};
  std::vector<int64_t> order;
  for (int64_t d = 0; d < t.dim(); ++d) order.push_back(d);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return t.stride(a) > t.stride(b); });
  int64_t last[2] = {-1, -1};
  mapped.clear();
  for (size_t k = 0; k < order.size(); ++k) {
    bool reduced = std::find(dims.begin(), dims.end(), order[k]) != dims.end();
    if (reduced) mapped.push_back(int64_t(k));
    if (t.size(order[k]) == 1) continue;
    if (order[k] < last[reduced]) return {};
    last[reduced] = order[k];
  }
  Tensor p = t.permute(order);
  return p.is_contiguous() ? p : Tensor();
}

ReduceLayout reduce_layout(const Tensor& t, const std::vector<int64_t>& dims) {
  std::vector<int64_t> mapped;
  if (Tensor p = as_in_memory(t, dims, mapped); p.defined()) return reduce_layout(p, mapped);
  ReduceLayout l;
  int64_t n = t.dim();
  // Size-1 dims never matter; the reduced ones among the rest must be neighbours.
  int64_t first = -1, last = -1;
  bool run = true;
  for (int64_t d : dims) {
    if (t.size(d) == 1) continue;
    if (first < 0) first = d;
    else
      for (int64_t e = last + 1; e < d; ++e) run &= t.size(e) == 1;
    last = d;
  }
  l.shape = {1, 1, 1};
  if (run && t.is_contiguous()) {
    for (int64_t d = 0; d < n; ++d) {
      int64_t s = t.size(d);
      if (first < 0 || d < first) l.shape.outer *= s;
      else if (d <= last) l.shape.reduced *= s;
      else l.shape.inner *= s;
    }
    l.keep = t;
  } else {
    std::vector<bool> reduced(size_t(n), false);
    for (int64_t d : dims) reduced[size_t(d)] = true;
    std::vector<int64_t> order;
    for (int64_t d = 0; d < n; ++d)
      if (!reduced[size_t(d)]) order.push_back(d), l.shape.outer *= t.size(d);
    for (int64_t d = 0; d < n; ++d)
      if (reduced[size_t(d)]) order.push_back(d), l.shape.reduced *= t.size(d);
    l.keep = t.permute(order).contiguous();
  }
  l.data = l.keep.data_ptr();
  return l;
}

bool two_runs(const Tensor& t, const std::vector<int64_t>& dims, cpu::ReduceShape& inner, cpu::ReduceShape& outer) {
  if (!t.is_contiguous() || dims.size() < 2 || t.numel() == 0) return false;
  // kept, reduced, kept, reduced, kept: products of the sizes of such runs.
  int64_t sizes[5] = {1, 1, 1, 1, 1};
  int at = 0;
  for (int64_t d = 0; d < t.dim(); ++d) {
    if (t.size(d) == 1) continue;
    bool reduced = std::find(dims.begin(), dims.end(), d) != dims.end();
    if (reduced != (at % 2 == 1) && ++at > 4) return false;
    sizes[at] *= t.size(d);
  }
  if (at < 3) return false;
  inner = {sizes[0] * sizes[1] * sizes[2], sizes[3], sizes[4]};
  outer = {sizes[0], sizes[1], sizes[2] * sizes[4]};
  return true;
}

}  // namespace vesta
