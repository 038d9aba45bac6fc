#pragma once
// SmallVector<T, N>: a vector whose first N elements need no heap block. For shapes, argument lists and other arrays that
// are nearly always short. Same meaning and guarantees as std::vector (push_back and reserve leave the vector as it was
// when they throw), except that moving or swapping moves inline elements one by one and so invalidates iterators.
#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace vesta {

template <class T, size_t N>
class SmallVector {
  static_assert(N > 0 && std::is_nothrow_destructible_v<T>);

 public:
  using value_type = T;
  using size_type = size_t;
  using difference_type = ptrdiff_t;
  using reference = T&;
  using const_reference = const T&;
  using iterator = T*;
  using const_iterator = const T*;

  SmallVector() : data_(inline_data()) {}
  explicit SmallVector(size_t count) : SmallVector() { resize(count); }
  SmallVector(size_t count, const T& value) : SmallVector() { resize(count, value); }
  SmallVector(std::initializer_list<T> list) : SmallVector(list.begin(), list.end()) {}
  template <std::forward_iterator It>
  SmallVector(It first, It last) : SmallVector() {
    append(first, last);
  }
  explicit SmallVector(std::span<const T> values) : SmallVector(values.begin(), values.end()) {}
  SmallVector(const SmallVector& other) : SmallVector(other.begin(), other.end()) {}
  SmallVector(SmallVector&& other) noexcept(std::is_nothrow_move_constructible_v<T>) : SmallVector() {
    take(other);
  }
  ~SmallVector() {
    std::destroy(begin(), end());
    free_heap();
  }

  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) assign(other.begin(), other.end());
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept(std::is_nothrow_move_constructible_v<T>) {
    if (this == &other) return *this;
    clear();
    if (other.on_heap()) {
      free_heap();
      data_ = inline_data();
      capacity_ = N;
    }
    take(other);
    return *this;
  }
  SmallVector& operator=(std::initializer_list<T> list) {
    assign(list.begin(), list.end());
    return *this;
  }
  // The range must not lie inside this vector.
  template <std::forward_iterator It>
  void assign(It first, It last) {
    clear();
    append(first, last);
  }

  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  bool empty() const { return size_ == 0; }
  bool on_heap() const { return data_ != inline_data(); }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& front() { return data_[0]; }
  const T& front() const { return data_[0]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }

  void reserve(size_t count) {
    if (count > capacity_)
      grow(
          count, [](T*) {}, 0);
  }
  // The arguments may refer into this vector: the new element is made before the old ones move.
  template <class... Args>
  T& emplace_back(Args&&... args) {
    auto make = [&](T* at) { std::construct_at(at, std::forward<Args>(args)...); };
    if (size_ == capacity_)
      grow(size_t{size_} + 1, make, 1);
    else
      make(end());
    ++size_;
    return back();
  }
  void push_back(const T& value) { emplace_back(value); }
  void push_back(T&& value) { emplace_back(std::move(value)); }
  void pop_back() { std::destroy_at(data_ + --size_); }
  void clear() {
    std::destroy(begin(), end());
    size_ = 0;
  }
  void resize(size_t count) {
    if (count <= size_) return shrink(count);
    reserve(count);
    std::uninitialized_value_construct(end(), data_ + count);
    size_ = static_cast<uint32_t>(count);
  }
  void resize(size_t count, const T& value) {
    if (count <= size_) return shrink(count);
    T copy(value);  // value may lie inside this vector
    reserve(count);
    std::uninitialized_fill(end(), data_ + count, copy);
    size_ = static_cast<uint32_t>(count);
  }
  // The range must not lie inside this vector.
  template <std::forward_iterator It>
  void append(It first, It last) {
    size_t more = static_cast<size_t>(std::distance(first, last));
    if (more > capacity_ - size_) reserve(std::max(size_ + more, size_t{capacity_} * 2));
    std::uninitialized_copy(first, last, end());
    size_ += static_cast<uint32_t>(more);
  }
  T* insert(const T* position, T value) {
    size_t at = static_cast<size_t>(position - data_);
    emplace_back(std::move(value));
    std::rotate(data_ + at, end() - 1, end());
    return data_ + at;
  }
  T* erase(const T* position) { return erase(position, position + 1); }
  T* erase(const T* first, const T* last) {
    T* from = data_ + (first - data_);
    T* kept = std::move(data_ + (last - data_), end(), from);
    std::destroy(kept, end());
    size_ = static_cast<uint32_t>(kept - data_);
    return from;
  }

  friend bool operator==(const SmallVector& a, const SmallVector& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  friend auto operator<=>(const SmallVector& a, const SmallVector& b) requires std::three_way_comparable<T> {
    return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  T* inline_data() { return reinterpret_cast<T*>(inline_); }
  const T* inline_data() const { return reinterpret_cast<const T*>(inline_); }

  void shrink(size_t count) {
    std::destroy(data_ + count, end());
    size_ = static_cast<uint32_t>(count);
  }

  void free_heap() {
    if (on_heap()) std::allocator<T>().deallocate(data_, capacity_);
  }

  // Moves to a heap block for at least `count` elements. make(at) constructs `made` (0 or 1) new elements behind the
  // present ones first. On an exception nothing has changed.
  template <class Make>
  void grow(size_t count, Make make, size_t made) {
    count = std::max(count, size_t{capacity_} * 2);
    if (count > UINT32_MAX) throw std::length_error("SmallVector: more than 2^32 - 1 elements");
    T* block = std::allocator<T>().allocate(count);
    T* fresh = block + size_;
    size_t done = 0;
    try {
      make(fresh);
      done = made;
      if constexpr (std::is_nothrow_move_constructible_v<T> || !std::is_copy_constructible_v<T>)
        std::uninitialized_move(begin(), end(), block);
      else
        std::uninitialized_copy(begin(), end(), block);
    } catch (...) {
      std::destroy_n(fresh, done);
      std::allocator<T>().deallocate(block, count);
      throw;
    }
    std::destroy(begin(), end());
    free_heap();
    data_ = block;
    capacity_ = static_cast<uint32_t>(count);
  }

  // *this is empty. Leaves `other` empty. Takes its heap block, or moves its inline elements, which always fit.
  void take(SmallVector& other) {
    if (other.on_heap()) {
      data_ = std::exchange(other.data_, other.inline_data());
      capacity_ = std::exchange(other.capacity_, static_cast<uint32_t>(N));
      size_ = std::exchange(other.size_, 0);
      return;
    }
    std::uninitialized_move(other.begin(), other.end(), data_);
    size_ = other.size_;
    other.clear();
  }

  T* data_;
  uint32_t size_ = 0;
  uint32_t capacity_ = N;
  alignas(T) unsigned char inline_[N * sizeof(T)];
};

}  // namespace vesta
