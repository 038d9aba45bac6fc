#pragma once
// Element copies between tensors of any strides and dtypes; src broadcasts to dst.
#include "vesta/tensor.h"

namespace vesta::cpu {

// dst must not overlap src except exactly. Parallel above a grain.
void copy_elements(const Tensor& dst, const Tensor& src);
// The same for a collapsed loop over (destination, source) of one type.
struct StridedLoop;
void copy_loop(const StridedLoop& loop, int64_t element_bytes);
// Sets every element of dst.
void fill_elements(const Tensor& dst, const Scalar& value);
// Whether the two may share memory at different positions.
bool may_overlap(const Tensor& a, const Tensor& b);

}  // namespace vesta::cpu
