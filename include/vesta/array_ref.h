#pragma once
// A borrowed, read-only view of consecutive values: pointer and length. Valid only while the owner lives.
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

namespace vesta {

template <class T>
class ArrayRef {
 public:
  constexpr ArrayRef() = default;
  constexpr ArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
  constexpr ArrayRef(const T& one) : data_(&one), size_(1) {}  // NOLINT: implicit as in libtorch
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"
  // The list lives until the end of the full expression, as in libtorch: pass it straight to a call.
  constexpr ArrayRef(std::initializer_list<T> list) : data_(list.begin()), size_(list.size()) {}  // NOLINT
#pragma GCC diagnostic pop
  ArrayRef(const std::vector<T>& v) : data_(v.data()), size_(v.size()) {}  // NOLINT
  template <size_t N>
  constexpr ArrayRef(const T (&array)[N]) : data_(array), size_(N) {}  // NOLINT

  constexpr const T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T* begin() const { return data_; }
  constexpr const T* end() const { return data_ + size_; }
  constexpr const T& operator[](size_t i) const { return data_[i]; }
  constexpr const T& front() const { return data_[0]; }
  constexpr const T& back() const { return data_[size_ - 1]; }
  constexpr ArrayRef slice(size_t begin, size_t count) const { return {data_ + begin, count}; }
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }

  friend bool operator==(ArrayRef a, ArrayRef b) {
    if (a.size_ != b.size_) return false;
    for (size_t i = 0; i < a.size_; ++i)
      if (!(a.data_[i] == b.data_[i])) return false;
    return true;
  }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};

using IntArrayRef = ArrayRef<int64_t>;

// An optional list of integers that binds to {1, 2}, a vector, a single integer or nullopt.
class OptionalIntArrayRef {
 public:
  OptionalIntArrayRef() = default;
  OptionalIntArrayRef(std::nullopt_t) {}                                            // NOLINT
  OptionalIntArrayRef(IntArrayRef v) : value_(v), has_(true) {}                     // NOLINT
  OptionalIntArrayRef(std::initializer_list<int64_t> v) : value_(v), has_(true) {}  // NOLINT
  OptionalIntArrayRef(const std::vector<int64_t>& v) : value_(v), has_(true) {}     // NOLINT
  OptionalIntArrayRef(const int64_t& v) : value_(v), has_(true) {}                  // NOLINT
  OptionalIntArrayRef(const std::optional<IntArrayRef>& v)
      : value_(v.value_or(IntArrayRef())), has_(v.has_value()) {}  // NOLINT
  bool has_value() const { return has_; }
  IntArrayRef operator*() const { return value_; }
  IntArrayRef value() const { return value_; }

 private:
  IntArrayRef value_;
  bool has_ = false;
};

}  // namespace vesta
