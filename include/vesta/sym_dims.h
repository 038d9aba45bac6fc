#pragma once
// SymDims: a short list of sizes or strides with room for 8 inside, so that shape inference allocates nothing.
// The part of std::vector's interface that shape code uses.
#include <algorithm>
#include <initializer_list>

#include "vesta/array_ref.h"
#include "vesta/sym_int.h"

namespace vesta {

class SymDims {
 public:
  SymDims() = default;
  explicit SymDims(size_t n, SymInt value = 0) { assign(n, value); }
  SymDims(std::initializer_list<SymInt> list) { append(list.begin(), list.end()); }
  template <class It, class = decltype(*std::declval<It>())>
  SymDims(It first, It last) {
    append(first, last);
  }
  SymDims(const SymDims& o) { append(o.begin(), o.end()); }
  SymDims(SymDims&& o) noexcept { take(o); }
  SymDims& operator=(SymDims o) noexcept {
    release();
    take(o);
    return *this;
  }
  ~SymDims() { release(); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  SymInt* data() { return reinterpret_cast<SymInt*>(data_); }
  const SymInt* data() const { return reinterpret_cast<const SymInt*>(data_); }
  SymInt* begin() { return data(); }
  SymInt* end() { return data() + size_; }
  const SymInt* begin() const { return data(); }
  const SymInt* end() const { return data() + size_; }
  SymInt& operator[](size_t i) { return data()[i]; }
  const SymInt& operator[](size_t i) const { return data()[i]; }
  SymInt& front() { return data()[0]; }
  SymInt& back() { return data()[size_ - 1]; }
  const SymInt& back() const { return data()[size_ - 1]; }
  void clear() { size_ = 0; }
  void resize(size_t n) {
    reserve(n);
    for (size_t i = size_; i < n; ++i) data_[i] = 0;
    size_ = n;
  }
  void assign(size_t n, SymInt value) {
    reserve(n);
    size_ = n;
    std::fill(begin(), end(), value);
  }
  void push_back(SymInt v) {
    if (size_ == capacity_) reserve(size_ * 2);
    data_[size_++] = v.raw();
  }
  void pop_back() { --size_; }
  SymInt* insert(SymInt* at, SymInt v) { return insert(at, 1, v); }
  SymInt* insert(SymInt* at, size_t count, SymInt v) {
    size_t i = size_t(at - begin());
    reserve(size_ + count);
    std::copy_backward(data_ + i, data_ + size_, data_ + size_ + count);
    std::fill_n(data() + i, count, v);
    size_ += count;
    return begin() + i;
  }
  template <class It>
  void insert(SymInt* at, It first, It last) {
    size_t i = size_t(at - begin());
    for (; first != last; ++first) insert(begin() + i++, SymInt(*first));
  }
  SymInt* erase(SymInt* at) {
    std::copy(at + 1, end(), at);
    --size_;
    return at;
  }
  operator ArrayRef<SymInt>() const { return {data(), size_}; }  // NOLINT: implicit
  friend bool operator==(const SymDims& a, const SymDims& b) {
    return ArrayRef<SymInt>(a) == ArrayRef<SymInt>(b);
  }

 private:
  static constexpr size_t kInline = 8;
  template <class It>
  void append(It first, It last) {
    for (; first != last; ++first) push_back(SymInt(*first));
  }
  void reserve(size_t n) {
    if (n <= capacity_) return;
    auto* bigger = new int64_t[n];
    std::copy_n(data_, size_, bigger);
    if (data_ != inline_) delete[] data_;
    data_ = bigger;
    capacity_ = n;
  }
  void release() {
    if (data_ != inline_) delete[] data_;
    data_ = inline_;
    capacity_ = kInline;
    size_ = 0;
  }
  void take(SymDims& o) {
    if (o.data_ == o.inline_) {
      std::copy_n(o.inline_, o.size_, inline_);
    } else {
      data_ = o.data_;
      capacity_ = o.capacity_;
      o.data_ = o.inline_;
      o.capacity_ = kInline;
    }
    size_ = o.size_;
    o.size_ = 0;
  }

  int64_t* data_ = inline_;
  size_t size_ = 0, capacity_ = kInline;
  int64_t inline_[kInline];  // a SymInt is one int64; left uninitialised
};

}  // namespace vesta
