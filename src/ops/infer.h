#pragma once
// Shape rules that several families share.
#include "vesta/op.h"

namespace vesta {

// Output 0 like argument 0, same dtype.
void infer_like_self(InferCtx& c);
// One integer stands for a list of n equal ones, as in "int[2]".
std::vector<int64_t> expand_ints(const Args& a, int i, int n);
// Which dims a reduction removes: all where `dims` is None or empty. IndexError for a dim out of range or twice.
std::vector<bool> reduced_dims(const InferCtx& c, const Value& dims, int ndim);
// The dims of a reduction as wrapped, sorted indices (all where None or empty).
std::vector<int64_t> wrapped_dims(const Args& a, const Value& dims, int64_t ndim);
int64_t wrap_dim(const Args& a, int64_t dim, int64_t ndim);
// Sizes after a reduction over the marked dims.
std::vector<SymInt> reduce_sizes(ArrayRef<SymInt> sizes, const std::vector<bool>& reduced, bool keepdim);
// Broadcast of two shapes.
std::vector<SymInt> broadcast_sizes(const Args& a, ArrayRef<SymInt> x, ArrayRef<SymInt> y);

}  // namespace vesta
