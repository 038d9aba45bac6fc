// One contiguous copy with the reduced dims last, unless they already are one run of a contiguous tensor.
#include "ops/reduce_layout.h"

#include "vesta/ops.h"

namespace vesta {

ReduceLayout reduce_layout(const Tensor& t, const std::vector<int64_t>& dims) {
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

}  // namespace vesta
