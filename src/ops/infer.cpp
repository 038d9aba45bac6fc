// Shape rules that several families share.
#include "ops/infer.h"

#include <algorithm>

namespace vesta {

void infer_like_self(InferCtx& c) { c.out_like(0, 0); }

std::vector<int64_t> expand_ints(const Args& a, int i, int n) {
  IntArrayRef v = a.ints(i);
  if (int(v.size()) == n) return v.vec();
  VESTA_CHECK(v.size() == 1, a.name(), ": expected 1 or ", n, " values for argument ", i, ", got ", v.size());
  return std::vector<int64_t>(size_t(n), v[0]);
}

int64_t wrap_dim(const Args& a, int64_t dim, int64_t ndim) {
  int64_t n = std::max<int64_t>(ndim, 1);
  VESTA_CHECK_AS(IndexError, dim >= -n && dim < n, a.name(), ": expected a dim in [", -n, ", ", n - 1, "], got ", dim);
  return dim < 0 ? dim + n : dim;
}

std::vector<int64_t> wrapped_dims(const Args& a, const Value& dims, int64_t ndim) {
  std::vector<int64_t> r;
  if (dims.kind == ValueKind::Int) {
    r.push_back(wrap_dim(a, dims.i, ndim));
  } else if (!dims.is_none()) {
    for (int64_t d : dims.ints()) r.push_back(wrap_dim(a, d, ndim));
    std::sort(r.begin(), r.end());
    VESTA_CHECK(std::adjacent_find(r.begin(), r.end()) == r.end(), a.name(), ": a dim appears more than once in the list of dims");
  }
  if (r.empty())
    for (int64_t d = 0; d < ndim; ++d) r.push_back(d);
  if (ndim == 0) r.clear();
  return r;
}

std::vector<bool> reduced_dims(const InferCtx& c, const Value& dims, int ndim) {
  std::vector<bool> reduced(size_t(ndim), false);
  for (int64_t d : wrapped_dims(c, dims, ndim)) reduced[size_t(d)] = true;
  return reduced;
}

std::vector<SymInt> reduce_sizes(ArrayRef<SymInt> sizes, const std::vector<bool>& reduced, bool keepdim) {
  std::vector<SymInt> out;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (!reduced[d]) out.push_back(sizes[d]);
    else if (keepdim) out.push_back(1);
  }
  return out;
}

std::vector<SymInt> broadcast_sizes(const Args& a, ArrayRef<SymInt> x, ArrayRef<SymInt> y) {
  if (x.size() < y.size()) std::swap(x, y);
  std::vector<SymInt> r(x.begin(), x.end());
  size_t lead = x.size() - y.size();
  for (size_t d = 0; d < y.size(); ++d) {
    SymInt& have = r[lead + d];
    if (have == y[d] || y[d] == 1) continue;
    VESTA_CHECK(have == 1, a.name(), ": expected sizes that broadcast, got ", have.str(), " and ", y[d].str(), " at dim ", lead + d);
    have = y[d];
  }
  return r;
}

}  // namespace vesta
