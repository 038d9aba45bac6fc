#pragma once
// Part of the scalar prelude (include prelude.h): int32_t and int64_t with wrap-around and guarded division, and
// uint8_t holding a bool. Nothing here traps or is undefined: x / 0 gives 0, INT_MIN / -1 wraps, every shift count
// is allowed. Raw + - * on integer texts overflow as the compiler's flags say (-fwrapv); these functions always wrap.

namespace vesta::scalar {

template <class I>
struct Unsigned;
template <>
struct Unsigned<int32_t> {
  using type = uint32_t;
};
template <>
struct Unsigned<int64_t> {
  using type = uint64_t;
};

template <class I, class U = typename Unsigned<I>::type>
VESTA_FN I add_(I a, I b) {
  return static_cast<I>(static_cast<U>(a) + static_cast<U>(b));
}
template <class I, class U = typename Unsigned<I>::type>
VESTA_FN I sub_(I a, I b) {
  return static_cast<I>(static_cast<U>(a) - static_cast<U>(b));
}
template <class I, class U = typename Unsigned<I>::type>
VESTA_FN I mul_(I a, I b) {
  return static_cast<I>(static_cast<U>(a) * static_cast<U>(b));
}
template <class I, class U = typename Unsigned<I>::type>
VESTA_FN I neg_(I a) {
  return static_cast<I>(U(0) - static_cast<U>(a));
}
template <class I, class U = typename Unsigned<I>::type>
VESTA_FN I fma_(I a, I b, I c) {
  return add_(mul_(a, b), c);
}
template <class I, class U = typename Unsigned<I>::type>
VESTA_FN I abs_(I a) {  // abs_(INT_MIN) is INT_MIN
  return where_(a < I(0), neg_(a), a);
}
template <class I, class U = typename Unsigned<I>::type>
VESTA_FN I sign_(I a) {
  return static_cast<I>(I(a > I(0)) - I(a < I(0)));
}
template <class I, class U = typename Unsigned<I>::type>
VESTA_FN I min_(I a, I b) {
  return where_(a < b, a, b);
}
template <class I, class U = typename Unsigned<I>::type>
VESTA_FN I max_(I a, I b) {
  return where_(a > b, a, b);
}
template <class I, class U = typename Unsigned<I>::type>
VESTA_FN I fmin_(I a, I b) {
  return min_(a, b);
}
template <class I, class U = typename Unsigned<I>::type>
VESTA_FN I fmax_(I a, I b) {
  return max_(a, b);
}

// Quotient of int32_t through double, which vectorises (idiv does not): the rounded double quotient of two 32-bit
// integers is an integer only if the exact one is. The divisor must not be 0, 1 or -1.
VESTA_FN int32_t guarded_quotient_(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<double>(a) / static_cast<double>(b));
}
// int64_t: where 64-bit conversions and products are vector instructions, one double division gives the quotient to 50
// bits, what is left is divided once more with the same reciprocal, and the last unit is settled by the remainder.
VESTA_FN int64_t guarded_quotient_(int64_t a, int64_t b) {
  if constexpr (!kVectorInt64) return a / b;
  uint64_t n = static_cast<uint64_t>(where_(a < 0, -static_cast<uint64_t>(a), static_cast<uint64_t>(a)));
  uint64_t d = static_cast<uint64_t>(where_(b < 0, -static_cast<uint64_t>(b), static_cast<uint64_t>(b)));
  double v = 1.0 / static_cast<double>(d);
  uint64_t q = static_cast<uint64_t>(static_cast<double>(n) * v);
  int64_t r = static_cast<int64_t>(n - q * d);
  int64_t more = static_cast<int64_t>(static_cast<double>(r) * v);
  q += static_cast<uint64_t>(more);
  r = static_cast<int64_t>(static_cast<uint64_t>(r) - static_cast<uint64_t>(more) * d);
  q += where_(r < 0, ~uint64_t{0}, uint64_t{0}) + where_((r >= 0) & (static_cast<uint64_t>(r) >= d), uint64_t{1}, uint64_t{0});
  uint64_t flip = static_cast<uint64_t>((a ^ b) >> 63);
  return static_cast<int64_t>((q ^ flip) - flip);
}

// By 0, 1 and -1 the quotient is the product, wrapping.
template <class I, class U = typename Unsigned<I>::type>
VESTA_FN I div_trunc_(I a, I b) {
  bool special = static_cast<U>(b) + U(1) <= U(2);
  I q = guarded_quotient_(a, where_(special, I(2), b));
  return where_(special, mul_(a, b), q);
}
// Remainder with the dividend's sign; x mod 0 is 0.
template <class I, class U = typename Unsigned<I>::type>
VESTA_FN I fmod_(I a, I b) {
  bool special = static_cast<U>(b) + U(1) <= U(2);
  I r = sub_(a, mul_(guarded_quotient_(a, where_(special, I(2), b)), b));
  return where_(special, I(0), r);
}
// Remainder with the divisor's sign (Python's %).
template <class I, class U = typename Unsigned<I>::type>
VESTA_FN I remainder_(I a, I b) {
  I r = fmod_(a, b);
  return where_((r != I(0)) & ((r < I(0)) != (b < I(0))), add_(r, b), r);
}
template <class I, class U = typename Unsigned<I>::type>
VESTA_FN I floordiv_(I a, I b) {
  I q = div_trunc_(a, b), r = sub_(a, mul_(q, b));
  return where_((b != I(0)) & (r != I(0)) & ((r < I(0)) != (b < I(0))), sub_(q, I(1)), q);
}

// By repeated squaring, wrapping. A negative exponent gives the truncated reciprocal: 1, -1 or 0 (0 for base 0).
template <class I, class U = typename Unsigned<I>::type>
VESTA_FN I pow_(I base, I exponent) {
  U result = 1, square = static_cast<U>(base);
  for (U e = static_cast<U>(exponent < 0 ? 0 : exponent); e != 0; e >>= 1) {
    result = (e & 1) != 0 ? result * square : result;
    square *= square;
  }
  I unit =
      where_(base == I(1), I(1), where_(base == I(-1), where_((exponent & I(1)) != I(0), I(-1), I(1)), I(0)));
  return where_(exponent < I(0), unit, static_cast<I>(result));
}
template <class I, class U = typename Unsigned<I>::type>
VESTA_FN I gcd_(I a, I b) {
  U x = static_cast<U>(abs_(a)), y = static_cast<U>(abs_(b));
  while (y != 0) {
    U r = x % y;
    x = y;
    y = r;
  }
  return static_cast<I>(x);
}

template <class I, class U = typename Unsigned<I>::type>
VESTA_FN I and_(I a, I b) {
  return a & b;
}
template <class I, class U = typename Unsigned<I>::type>
VESTA_FN I or_(I a, I b) {
  return a | b;
}
template <class I, class U = typename Unsigned<I>::type>
VESTA_FN I xor_(I a, I b) {
  return a ^ b;
}
template <class I, class U = typename Unsigned<I>::type>
VESTA_FN I not_(I a) {
  return ~a;
}
// Shifts by a negative count or by the width and more give what shifting bit by bit would: 0, or the sign.
template <class I, class U = typename Unsigned<I>::type>
VESTA_FN I lshift_(I a, I count) {
  constexpr U kWidth = sizeof(I) * 8;
  U n = static_cast<U>(count);
  return where_(n < kWidth, static_cast<I>(static_cast<U>(a) << (n & (kWidth - 1))), I(0));
}
template <class I, class U = typename Unsigned<I>::type>
VESTA_FN I rshift_(I a, I count) {
  constexpr U kWidth = sizeof(I) * 8;
  U n = static_cast<U>(count);
  return static_cast<I>(a >> where_(n < kWidth, n, kWidth - 1));
}

// uint8_t is the compute type of bool: operands are 0 or 1 (any non-zero value counts as true), results 0 or 1.
VESTA_FN uint8_t and_(uint8_t a, uint8_t b) { return static_cast<uint8_t>((a != 0) & (b != 0)); }
VESTA_FN uint8_t or_(uint8_t a, uint8_t b) { return static_cast<uint8_t>((a | b) != 0); }
VESTA_FN uint8_t xor_(uint8_t a, uint8_t b) { return static_cast<uint8_t>((a != 0) != (b != 0)); }
VESTA_FN uint8_t not_(uint8_t a) { return static_cast<uint8_t>(a == 0); }
VESTA_FN uint8_t add_(uint8_t a, uint8_t b) { return or_(a, b); }
VESTA_FN uint8_t mul_(uint8_t a, uint8_t b) { return and_(a, b); }
VESTA_FN uint8_t min_(uint8_t a, uint8_t b) { return and_(a, b); }
VESTA_FN uint8_t max_(uint8_t a, uint8_t b) { return or_(a, b); }
VESTA_FN uint8_t fmin_(uint8_t a, uint8_t b) { return and_(a, b); }
VESTA_FN uint8_t fmax_(uint8_t a, uint8_t b) { return or_(a, b); }
VESTA_FN uint8_t abs_(uint8_t a) { return static_cast<uint8_t>(a != 0); }
VESTA_FN uint8_t sign_(uint8_t a) { return static_cast<uint8_t>(a != 0); }

// Integers round to themselves and are always finite, so that one text serves every class.
template <class I, class U = typename Unsigned<I>::type>
VESTA_FN I floor_(I a) {
  return a;
}
template <class I, class U = typename Unsigned<I>::type>
VESTA_FN I ceil_(I a) {
  return a;
}
template <class I, class U = typename Unsigned<I>::type>
VESTA_FN I trunc_(I a) {
  return a;
}
template <class I, class U = typename Unsigned<I>::type>
VESTA_FN I round_(I a) {
  return a;
}
VESTA_FN bool isnan_(int32_t) { return false; }
VESTA_FN bool isnan_(int64_t) { return false; }
VESTA_FN bool isnan_(uint8_t) { return false; }
VESTA_FN bool isinf_(int32_t) { return false; }
VESTA_FN bool isinf_(int64_t) { return false; }
VESTA_FN bool isinf_(uint8_t) { return false; }
VESTA_FN bool isfinite_(int32_t) { return true; }
VESTA_FN bool isfinite_(int64_t) { return true; }
VESTA_FN bool isfinite_(uint8_t) { return true; }

}  // namespace vesta::scalar
