#pragma once
// Python's indexing from C++: t.index({0, Slice(1, 5, 2), None, "...", mask}).
#include <cstring>
#include <limits>

#include "vesta/tensor.h"

namespace vesta {
namespace indexing {

struct NoneType {};
inline constexpr NoneType None{};
struct EllipsisType {};
inline constexpr EllipsisType Ellipsis{};

struct Slice {
  Slice(std::optional<int64_t> start_ = {}, std::optional<int64_t> stop_ = {},
        std::optional<int64_t> step_ = {})
      : start(start_), stop(stop_), step(step_.value_or(1)) {}
  Slice(NoneType, std::optional<int64_t> stop_ = {}, std::optional<int64_t> step_ = {})
      : Slice(std::nullopt, stop_, step_) {}
  Slice(NoneType, NoneType, std::optional<int64_t> step_ = {}) : Slice(std::nullopt, std::nullopt, step_) {}
  Slice(int64_t start_, NoneType, std::optional<int64_t> step_ = {})
      : Slice(std::optional(start_), std::nullopt, step_) {}
  std::optional<int64_t> start, stop;
  int64_t step;
};

}  // namespace indexing

// One index of a list.
struct TensorIndex {
  enum class Kind : uint8_t { None, Ellipsis, Integer, Boolean, Slice, Tensor };
  TensorIndex(std::nullopt_t) : kind(Kind::None) {}              // NOLINT: implicit, here and below
  TensorIndex(indexing::NoneType) : kind(Kind::None) {}          // NOLINT
  TensorIndex(indexing::EllipsisType) : kind(Kind::Ellipsis) {}  // NOLINT
  TensorIndex(const char* text) : kind(Kind::Ellipsis) {         // NOLINT
    VESTA_CHECK(!std::strcmp(text, "..."), "index: expected \"...\", got \"", text, "\"");
  }
  template <class T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, int> = 0>
  TensorIndex(T i) : kind(Kind::Integer), integer(int64_t(i)) {}  // NOLINT
  template <class T, std::enable_if_t<std::is_same_v<T, bool>, int> = 0>
  TensorIndex(T b) : kind(Kind::Boolean), integer(b) {}                // NOLINT
  TensorIndex(indexing::Slice s) : kind(Kind::Slice), slice(s) {}      // NOLINT
  TensorIndex(Tensor t) : kind(Kind::Tensor), tensor(std::move(t)) {}  // NOLINT
  Kind kind;
  int64_t integer = 0;
  indexing::Slice slice;
  Tensor tensor;
};

}  // namespace vesta
