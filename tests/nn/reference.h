#pragma once
// What the tests of modules share: tensors as numbers, closeness to references in double, messages of errors.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "vesta/ops.h"
#include "vesta/tensor.h"

namespace vesta::nn {

inline std::vector<double> numbers_of(const Tensor& t) {
  const Tensor flat = t.detach().to(kFloat64).reshape({-1}).contiguous();
  const double* data = flat.data_ptr<double>();
  return std::vector<double>(data, data + flat.numel());
}

inline void expect_numbers(const Tensor& got, const std::vector<double>& expected, double tolerance) {
  const auto values = numbers_of(got);
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_NEAR(values[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << "element " << i;
}

inline void expect_tensors(const Tensor& got, const Tensor& expected, double tolerance) {
  ASSERT_EQ(got.sizes(), expected.sizes());
  expect_numbers(got, numbers_of(expected), tolerance);
}

// What the error says, "no error" where there is none.
inline std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace vesta::nn
