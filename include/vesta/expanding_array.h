#pragma once
// ExpandingArray<D>: D integers given as D numbers or as one for all, as sizes and paddings in options are:
//   nn::ZeroPad2d(1);  nn::ZeroPad2d({1, 1, 2, 0});
#include <algorithm>
#include <array>
#include <initializer_list>
#include <vector>

#include "vesta/array_ref.h"
#include "vesta/error.h"

namespace vesta {

template <size_t D, class T = int64_t>
class ExpandingArray {
 public:
  // ValueError unless there are D values.
  ExpandingArray(std::initializer_list<T> values)
      : ExpandingArray(std::vector<T>(values)) {}  // NOLINT: implicit
  ExpandingArray(const std::vector<T>& values) {   // NOLINT: implicit, here and below
    VESTA_CHECK(values.size() == D, "ExpandingArray: expected ", D, " values, got ", values.size());
    std::copy(values.begin(), values.end(), values_.begin());
  }
  ExpandingArray(ArrayRef<T> values) : ExpandingArray(values.vec()) {}  // NOLINT
  ExpandingArray(T value) { values_.fill(value); }                      // NOLINT
  ExpandingArray(const std::array<T, D>& values) : values_(values) {}   // NOLINT
  std::array<T, D>& operator*() { return values_; }
  const std::array<T, D>& operator*() const { return values_; }
  std::array<T, D>* operator->() { return &values_; }
  const std::array<T, D>* operator->() const { return &values_; }
  operator ArrayRef<T>() const { return ArrayRef<T>(values_.data(), D); }  // NOLINT
  static constexpr size_t size() { return D; }

 private:
  std::array<T, D> values_;
};

// As layers read braces: {n} is n for all.
template <class Array, class T>
Array of_braces(std::initializer_list<T> values) {
  return values.size() == 1 ? Array(*values.begin()) : Array(values);
}

}  // namespace vesta
