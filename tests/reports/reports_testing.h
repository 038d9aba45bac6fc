#pragma once
// Shared by the tests of public bug reports. "pt#N" is issue N of pytorch/pytorch; the number in a test's comment tells
// where the report was made. Each right answer is derived in a comment, never taken from a program.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <string>

#include "core/core_testing.h"
#include "vesta/autograd.h"
#include "vesta/error.h"

namespace vesta::reports {

using namespace core_testing;

constexpr uint64_t kSeed = 20260922;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

inline Tensor draw(Generator& g, Sizes sizes, DType dtype = kDouble) {
  return randn(sizes, g, TensorOptions(dtype));
}
inline double number(const Tensor& t) { return t.to(kDouble).item<double>(); }
// The largest absolute difference; NaN where the two differ in a NaN.
inline double distance(const Tensor& a, const Tensor& b) {
  return a.numel() ? number((a.to(kDouble) - b.to(kDouble)).abs().max()) : 0;
}
inline bool all_finite(const Tensor& t) { return t.isfinite().all().item<bool>(); }
inline bool all_equal(const Tensor& t, double value) { return t.eq(value).all().item<bool>(); }

// Bytes that the system can give without swapping; 0 where it does not say.
inline int64_t available_memory() {
  std::ifstream in("/proc/meminfo");
  std::string word;
  int64_t kib = 0;
  while (in >> word)
    if (word == "MemAvailable:" && in >> kib) return kib * 1024;
  return 0;
}

}  // namespace vesta::reports
