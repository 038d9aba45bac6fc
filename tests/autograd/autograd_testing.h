#pragma once
// Small helpers of the autograd tests: tensors from numbers.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "core/storage.h"
#include "support/expect.h"
#include "vesta/autograd.h"
#include "vesta/ops.h"

namespace vesta::autograd_testing {

inline Tensor f32(std::vector<float> v, std::vector<int64_t> sizes = {}) {
  if (sizes.empty()) sizes = {int64_t(v.size())};
  Tensor t = empty_cpu(sizes, kFloat);
  std::memcpy(t.data_ptr(), v.data(), v.size() * 4);
  return t;
}
inline Tensor f64(std::vector<double> v, std::vector<int64_t> sizes = {}) {
  if (sizes.empty()) sizes = {int64_t(v.size())};
  Tensor t = empty_cpu(sizes, kDouble);
  std::memcpy(t.data_ptr(), v.data(), v.size() * 8);
  return t;
}
inline Tensor param(std::vector<float> v, std::vector<int64_t> sizes = {}) {
  Tensor t = f32(std::move(v), std::move(sizes));
  t.requires_grad_();
  return t;
}
using Doubles = std::vector<double>;
inline Doubles values(const Tensor& t) { return test::numbers(t); }
using test::error_of;

}  // namespace vesta::autograd_testing
