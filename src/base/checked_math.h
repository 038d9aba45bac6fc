#pragma once
// Size arithmetic that throws instead of wrapping. Sizes come from users and from files: a product of dims
// that wraps would become a short allocation and a write past its end. Not for inner loops.
#include <vesta/error.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace vesta {

// `what` names the op or the quantity in the message.
template <class Int>
Int checked_mul(Int a, Int b, const char* what) {
  Int result;
  VESTA_CHECK(!__builtin_mul_overflow(a, b, &result), what, ": ", a, " * ", b, " does not fit into ",
              sizeof(Int) * 8, " bits");
  return result;
}

template <class Int>
Int checked_add(Int a, Int b, const char* what) {
  Int result;
  VESTA_CHECK(!__builtin_add_overflow(a, b, &result), what, ": ", a, " + ", b, " does not fit into ",
              sizeof(Int) * 8, " bits");
  return result;
}

// For arithmetic that may overflow without harm: strides and offsets that no element is reached by, integer elements.
template <class Int>
Int wrapping_add(Int a, Int b) {
  return Int(uint64_t(a) + uint64_t(b));
}
template <class Int>
Int wrapping_mul(Int a, Int b) {
  return Int(uint64_t(a) * uint64_t(b));
}

// The number of elements of a shape; 1 for no dims. Sizes must be >= 0. A zero anywhere gives 0, even where
// the other sizes multiply to more than 63 bits.
inline int64_t checked_numel(std::span<const int64_t> sizes, const char* what) {
  int64_t result = 1;
  bool zero = false;
  for (int64_t size : sizes) {
    VESTA_CHECK(size >= 0, what, ": expected sizes >= 0, got ", size);
    zero |= size == 0;
  }
  if (zero) return 0;
  for (int64_t size : sizes) result = checked_mul(result, size, what);
  return result;
}

// `value` rounded up to a multiple of `unit` (a power of two).
inline size_t checked_round_up(size_t value, size_t unit, const char* what) {
  return checked_add(value, unit - 1, what) & ~(unit - 1);
}

// A size for APIs that count in another integer type; throws where it does not fit.
template <class To, class From>
To checked_cast(From value, const char* what) {
  To result = static_cast<To>(value);
  VESTA_CHECK(static_cast<From>(result) == value && (result < To{}) == (value < From{}), what, ": ", value,
              " does not fit into ", sizeof(To) * 8, " bits");
  return result;
}

}  // namespace vesta
