#pragma once
// Small helpers of the core tests: tensors from numbers, values back.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "core/storage.h"
#include "support/expect.h"
#include "vesta/ops.h"

namespace vesta::core_testing {

template <class T>
Tensor make(std::vector<T> v, std::vector<int64_t> sizes) {
  Tensor t = empty_cpu(sizes, DTypeOf<T>::value);
  if (!v.empty()) std::memcpy(t.data_ptr(), v.data(), v.size() * sizeof(T));
  return t;
}
inline Tensor f32(std::vector<float> v) { return make<float>(v, {int64_t(v.size())}); }
inline Tensor i64(std::vector<int64_t> v) { return make<int64_t>(v, {int64_t(v.size())}); }
inline Tensor mask(std::vector<int> v, std::vector<int64_t> sizes) {
  Tensor t = empty_cpu(sizes, kBool);
  for (size_t k = 0; k < v.size(); ++k) static_cast<bool*>(t.data_ptr())[k] = v[k] != 0;
  return t;
}
using Doubles = std::vector<double>;
inline Doubles values(const Tensor& t) { return test::numbers(t); }
using Sizes = std::vector<int64_t>;
inline Sizes sizes(const Tensor& t) { return t.sizes().vec(); }
using test::error_of;

}  // namespace vesta::core_testing
