#pragma once
// What most tests share: tensors as numbers, closeness to references in double, the text of an expected error.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "vesta/autograd.h"
#include "vesta/error.h"
#include "vesta/ops.h"

namespace vesta::test {

// All elements in row-major order; none of an undefined tensor.
inline std::vector<double> numbers(const Tensor& t) {
  if (!t.defined()) return {};
  NoGradGuard no_grad;
  const Tensor flat = t.detach().to(kDouble).contiguous();
  const double* data = flat.data_ptr<double>();
  return {data, data + flat.numel()};
}

// Relative to 1 + |expected|.
inline void expect_close(const Tensor& got, const std::vector<double>& expected, double tolerance) {
  const auto values = numbers(got);
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_NEAR(values[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << "element " << i;
}
// Also of the same sizes.
inline void expect_close(const Tensor& got, const Tensor& expected, double tolerance) {
  ASSERT_EQ(got.sizes(), expected.sizes());
  expect_close(got, numbers(expected), tolerance);
}

// what() of the error of type E that f throws; fails where it throws nothing or something else.
template <class E = Error, class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  } catch (const std::exception& e) {
    ADD_FAILURE() << "another error: " << e.what();
    return "";
  }
  ADD_FAILURE() << "no error";
  return "";
}

#define EXPECT_CONTAINS(text, part)                                                             \
  EXPECT_PRED2([](const std::string& text_,                                                     \
                  const std::string& part_) { return text_.find(part_) != std::string::npos; }, \
               text, std::string(part))

}  // namespace vesta::test
