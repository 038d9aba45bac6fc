// Gradient pieces that the reduction families share.
#include "ops/reduce_grad.h"

#include "ops/infer.h"

namespace vesta {

Tensor with_reduced_dims(const Args& a, const Tensor& t, int64_t ndim, const Value& dims, bool keepdim) {
  if (keepdim || ndim == 0) return t;
  Tensor r = t;
  for (int64_t d : wrapped_dims(a, dims, ndim)) r = r.unsqueeze(d);
  return r;
}
Tensor unreduce(const Args& a, const Tensor& dy, IntArrayRef sizes, const Value& dims, bool keepdim) {
  return with_reduced_dims(a, dy, int64_t(sizes.size()), dims, keepdim).expand(sizes);
}
Tensor spread_over_ties(const Args& a, const Tensor& dy, const Tensor& self, const Tensor& result, const Value& dims, bool keepdim) {
  if (self.dim() == 0) return dy.reshape({});
  Tensor r = with_reduced_dims(a, result, self.dim(), dims, keepdim);
  Tensor ties = logical_or(self == r, logical_and(self != self, r != r)).to(dy.dtype());
  Tensor share = with_reduced_dims(a, dy, self.dim(), dims, keepdim) / ties.sum(wrapped_dims(a, dims, self.dim()), true);
  return ties * share;
}

}  // namespace vesta
