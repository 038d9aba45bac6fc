#pragma once
// Comparison of tensors by dtype, sizes and elements, with a message that shows the worst element.
#include <string>

#include "vesta/tensor.h"

namespace vesta::golden {

// Empty where `got` equals `want`: the same dtype and sizes, and |got - want| <= atol + rtol |want| for each element
// (complex by absolute value); NaN equals NaN, infinities and integers exactly. Strides do not count.
std::string difference(const Tensor& got, const Tensor& want, double rtol, double atol);

// "float32[2, 3]", or "undefined".
std::string shape_text(const Tensor& t);

}  // namespace vesta::golden
