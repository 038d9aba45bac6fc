#pragma once
// Gradient pieces that the reduction families share.
#include "vesta/op.h"

namespace vesta {

// The gradient of a reduction over `dims` (all where None), with the reduced dims back as size 1.
Tensor with_reduced_dims(const Args& a, const Tensor& t, int64_t ndim, const Value& dims, bool keepdim);
// The same, expanded over the input's sizes.
Tensor unreduce(const Args& a, const Tensor& dy, IntArrayRef sizes, const Value& dims, bool keepdim);
// Gradient of an extremum: dy shared evenly by the elements equal to the result (NaN equals NaN).
Tensor spread_over_ties(const Args& a, const Tensor& dy, const Tensor& self, const Tensor& result, const Value& dims, bool keepdim);

}  // namespace vesta
