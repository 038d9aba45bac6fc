#pragma once
// Small helpers of the autograd tests: tensors from numbers, and the text of an expected error.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "core/storage.h"
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
inline std::vector<double> values(const Tensor& t) {
  if (!t.defined()) return {};
  NoGradGuard no_grad;
  Tensor c = t.detach().to(kDouble).contiguous();
  auto* p = static_cast<const double*>(c.data_ptr());
  return {p, p + c.numel()};
}
using Doubles = std::vector<double>;

// what() of the error of type E that f throws; fails where it throws nothing or something else.
template <class E, class F>
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
inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

#define EXPECT_CONTAINS(text, part)                                                                        \
  EXPECT_PRED2([](const std::string& text_,                                                                \
                  const std::string& part_) { return ::vesta::autograd_testing::contains(text_, part_); }, \
               text, std::string(part))

}  // namespace vesta::autograd_testing
