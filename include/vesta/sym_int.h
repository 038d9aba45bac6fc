#pragma once
// SymInt: a size that is a number or, while a graph is traced with dynamic shapes, an expression over symbols.
// One int64: values below -2^62 encode an expression of the ShapeEnv; eager code never sees those. Comparisons of
// expressions are decided by the traced example's values and recorded as guards.
#include <cstdint>
#include <string>

#include "vesta/array_ref.h"

namespace vesta {

class SymInt {
 public:
  constexpr SymInt() = default;
  constexpr SymInt(int64_t v) : raw_(v) {}  // NOLINT: implicit
  constexpr SymInt(int v) : raw_(v) {}      // NOLINT
  static constexpr SymInt from_raw(int64_t raw) { return SymInt(raw); }
  constexpr bool is_symbolic() const { return raw_ < kFirstSymbolic; }
  constexpr int64_t raw() const { return raw_; }
  // The number; where symbolic, the example's value, recorded as a guard that pins it.
  int64_t as_int() const { return is_symbolic() ? pin() : raw_; }
  // The number or, where symbolic, the example's value without a guard (for choices that do not affect results).
  int64_t hint() const;
  std::string str() const;

  friend SymInt operator+(SymInt a, SymInt b) {
    int64_t r;
    if (plain(a, b) && !__builtin_add_overflow(a.raw_, b.raw_, &r)) [[likely]]
      return SymInt(r);
    return combine('+', a, b);
  }
  friend SymInt operator-(SymInt a, SymInt b) {
    int64_t r;
    if (plain(a, b) && !__builtin_sub_overflow(a.raw_, b.raw_, &r)) [[likely]]
      return SymInt(r);
    return combine('-', a, b);
  }
  friend SymInt operator*(SymInt a, SymInt b) {
    int64_t r;
    if (plain(a, b) && !__builtin_mul_overflow(a.raw_, b.raw_, &r)) [[likely]]
      return SymInt(r);
    return combine('*', a, b);
  }
  // Floor division and modulo of non-negative values.
  friend SymInt operator/(SymInt a, SymInt b) {
    return plain(a, b) ? SymInt(a.raw_ / b.raw_) : combine('/', a, b);
  }
  friend SymInt operator%(SymInt a, SymInt b) {
    return plain(a, b) ? SymInt(a.raw_ % b.raw_) : combine('%', a, b);
  }
  SymInt& operator+=(SymInt b) { return *this = *this + b; }
  SymInt& operator-=(SymInt b) { return *this = *this - b; }
  SymInt& operator*=(SymInt b) { return *this = *this * b; }
  friend bool operator==(SymInt a, SymInt b) { return plain(a, b) ? a.raw_ == b.raw_ : decide("==", a, b); }
  friend bool operator!=(SymInt a, SymInt b) { return !(a == b); }
  friend bool operator<(SymInt a, SymInt b) { return plain(a, b) ? a.raw_ < b.raw_ : decide("<", a, b); }
  friend bool operator>(SymInt a, SymInt b) { return b < a; }
  friend bool operator<=(SymInt a, SymInt b) { return !(b < a); }
  friend bool operator>=(SymInt a, SymInt b) { return !(a < b); }

 private:
  static constexpr int64_t kFirstSymbolic = -(int64_t(1) << 62);
  static constexpr bool plain(SymInt a, SymInt b) { return !a.is_symbolic() && !b.is_symbolic(); }
  // Symbolic operands; plain ones only where the result overflows, which throws ValueError.
  static SymInt combine(char op, SymInt a, SymInt b);
  static bool decide(const char* op, SymInt a, SymInt b);
  int64_t pin() const;
  int64_t raw_ = 0;
};

// max, and the ceiling of a / b, for shape formulas.
SymInt max(SymInt a, SymInt b);
SymInt min(SymInt a, SymInt b);
inline SymInt ceil_div(SymInt a, SymInt b) { return (a + b - 1) / b; }

}  // namespace vesta
