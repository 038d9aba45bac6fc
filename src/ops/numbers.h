#pragma once
// A number in place of a tensor argument, for decompositions of Scalar overloads onto the tensor form.
#include "vesta/ops.h"
#include "vesta/tensor.h"

namespace vesta {

// `v` as a 0-dim tensor that promotes beside `other` as a number would: its category counts, not its width.
inline Tensor number_beside(const Scalar& v, const Tensor& other) {
  return scalar_tensor(v, other.options().dtype(result_type(other, v)));
}

// The same for operators whose integer operands become floating: integers would wrap in an unsigned type first.
inline Tensor float_number_beside(const Scalar& v, const Tensor& other) {
  DType t = result_type(other, v);
  return scalar_tensor(v, other.options().dtype(is_integral(t, true) ? get_default_dtype() : t));
}

}  // namespace vesta
