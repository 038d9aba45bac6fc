#pragma once
// VESTA_ARG(type, name) = default; declares one field of an options class with libtorch's setter and getters:
//   options.name(value) sets and returns the options, so that calls chain; options.name() reads.
#include <utility>

#define VESTA_ARG(T, name)                           \
 public:                                             \
  auto name(const T& new_##name)->decltype(*this) {  \
    name##_ = new_##name;                            \
    return *this;                                    \
  }                                                  \
  auto name(T&& new_##name)->decltype(*this) {       \
    name##_ = std::move(new_##name);                 \
    return *this;                                    \
  }                                                  \
  const T& name() const noexcept { return name##_; } \
  T& name() noexcept { return name##_; }             \
                                                     \
 private:                                            \
  T name##_
