#pragma once
// A number in place of a tensor argument, for decompositions of Scalar overloads onto the tensor form.
#include "vesta/ops.h"
#include "vesta/tensor.h"

namespace vesta {

// `v` as a 0-dim tensor that promotes beside `other` as a number would: its category counts, not its width.
inline Tensor number_beside(const Scalar& v, const Tensor& other) {
  return scalar_tensor(v, other.options().dtype(result_type(other, v)));
}

}  // namespace vesta
