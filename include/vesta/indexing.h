#pragma once
// Python's indexing from C++: t.index({0, Slice(1, 5, 2), None, "...", mask}).
#include <cstring>
#include <iosfwd>
#include <limits>

#include "vesta/tensor.h"

namespace vesta {
namespace indexing {

struct NoneType {};
inline constexpr NoneType None{};
struct EllipsisType {};
inline constexpr EllipsisType Ellipsis{};

inline constexpr int64_t INDEX_MAX = std::numeric_limits<int64_t>::max();
inline constexpr int64_t INDEX_MIN = std::numeric_limits<int64_t>::min();

// start:stop:step; what is left out or None is the end where the step starts from, the other end, and 1.
class Slice {
 public:
  // A number, or None.
  struct Bound {
    Bound(NoneType) {}                                       // NOLINT: implicit, here and below
    Bound(std::nullopt_t) {}                                 // NOLINT
    Bound(std::optional<int64_t> number) : value(number) {}  // NOLINT
    template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
    Bound(T number) : value(int64_t(number)) {}  // NOLINT
    std::optional<int64_t> value;
  };
  Slice(Bound start = None, Bound stop = None, Bound step = None) : step_(step.value.value_or(1)) {
    start_ = start.value.value_or(step_ < 0 ? INDEX_MAX : 0);
    stop_ = stop.value.value_or(step_ < 0 ? INDEX_MIN : INDEX_MAX);
  }
  int64_t start() const { return start_; }
  int64_t stop() const { return stop_; }
  int64_t step() const { return step_; }

 private:
  int64_t start_, stop_, step_;
};

}  // namespace indexing

// One index of a list.
class TensorIndex {
 public:
  enum class Kind : uint8_t { None, Ellipsis, Integer, Boolean, Slice, Tensor };
  TensorIndex(std::nullopt_t) : kind_(Kind::None) {}              // NOLINT: implicit, here and below
  TensorIndex(indexing::NoneType) : kind_(Kind::None) {}          // NOLINT
  TensorIndex(indexing::EllipsisType) : kind_(Kind::Ellipsis) {}  // NOLINT
  TensorIndex(const char* text) : kind_(Kind::Ellipsis) {         // NOLINT
    VESTA_CHECK(!std::strcmp(text, "..."),
                "index: Expected \"...\" to represent an ellipsis index, but got \"", text, "\"");
  }
  template <class T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, int> = 0>
  TensorIndex(T i) : kind_(Kind::Integer), integer_(int64_t(i)) {}  // NOLINT
  template <class T, std::enable_if_t<std::is_same_v<T, bool>, int> = 0>
  TensorIndex(T b) : kind_(Kind::Boolean), integer_(b) {}                       // NOLINT
  TensorIndex(indexing::Slice s) : kind_(Kind::Slice), slice_(s) {}             // NOLINT
  TensorIndex(vesta::Tensor t) : kind_(Kind::Tensor), tensor_(std::move(t)) {}  // NOLINT

  Kind kind() const { return kind_; }
  bool is_none() const { return kind_ == Kind::None; }
  bool is_ellipsis() const { return kind_ == Kind::Ellipsis; }
  bool is_integer() const { return kind_ == Kind::Integer; }
  bool is_boolean() const { return kind_ == Kind::Boolean; }
  bool is_slice() const { return kind_ == Kind::Slice; }
  bool is_tensor() const { return kind_ == Kind::Tensor; }
  // Of an index of that kind.
  int64_t integer() const { return integer_; }
  bool boolean() const { return integer_ != 0; }
  const indexing::Slice& slice() const { return slice_; }
  const vesta::Tensor& tensor() const { return tensor_; }

 private:
  Kind kind_;
  int64_t integer_ = 0;
  indexing::Slice slice_;
  vesta::Tensor tensor_;
};

namespace indexing {
// self[indices] = value, with a list that is not written in braces.
void put(const Tensor& self, ArrayRef<TensorIndex> indices, const Tensor& value);
void put(const Tensor& self, ArrayRef<TensorIndex> indices, const Scalar& value);
std::ostream& operator<<(std::ostream& out, const Slice& slice);
}  // namespace indexing
// As in Python: "None", "...", "1:3:1"; a list in parentheses.
std::ostream& operator<<(std::ostream& out, const TensorIndex& index);
std::ostream& operator<<(std::ostream& out, const std::vector<TensorIndex>& indices);

}  // namespace vesta
