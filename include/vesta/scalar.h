#pragma once
// Scalar: one number that keeps its class (bool, int, float, complex), which decides type promotion.
#include <complex>
#include <cstdint>
#include <string>
#include <type_traits>

#include "vesta/dtype.h"
#include "vesta/error.h"

namespace vesta {

enum class ScalarKind : uint8_t { Bool, Int, Float, Complex };

class Scalar {
 public:
  Scalar() : Scalar(int64_t(0)) {}
  // Of bool itself only: a pointer, such as the text in linalg_norm(x, "fro"), is no number.
  template <class T, std::enable_if_t<std::is_same_v<T, bool>, int> = 0>
  Scalar(T v) : kind_(ScalarKind::Bool), i_(v) {}  // NOLINT: implicit as in libtorch, here and below
  // ValueError from 2^63 on: an integer Scalar is an int64.
  template <class T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, int> = 0>
  Scalar(T v) : kind_(ScalarKind::Int), i_(int64_t(v)) {  // NOLINT
    if constexpr (std::is_unsigned_v<T> && sizeof(T) >= 8)
      if (i_ < 0) [[unlikely]]
        throw_too_large(uint64_t(v));
  }
  template <class T, std::enable_if_t<std::is_floating_point_v<T>, int> = 0>
  Scalar(T v) : kind_(ScalarKind::Float), re_(double(v)) {}        // NOLINT
  Scalar(Half v) : kind_(ScalarKind::Float), re_(float(v)) {}      // NOLINT
  Scalar(BFloat16 v) : kind_(ScalarKind::Float), re_(float(v)) {}  // NOLINT
  template <int e, int m, Float8Kind k>
  Scalar(Float8<e, m, k> v) : kind_(ScalarKind::Float), re_(float(v)) {}  // NOLINT
  Scalar(Float8_e8m0fnu v) : kind_(ScalarKind::Float), re_(float(v)) {}   // NOLINT
  Scalar(ComplexHalf v) : Scalar(static_cast<std::complex<float>>(v)) {}  // NOLINT
  template <class T>
  Scalar(std::complex<T> v)
      : kind_(ScalarKind::Complex), re_(double(v.real())), im_(double(v.imag())) {}  // NOLINT

  ScalarKind kind() const { return kind_; }
  bool isBoolean() const { return kind_ == ScalarKind::Bool; }
  bool isIntegral(bool include_bool = false) const {
    return kind_ == ScalarKind::Int || (include_bool && kind_ == ScalarKind::Bool);
  }
  bool isFloatingPoint() const { return kind_ == ScalarKind::Float; }
  bool isComplex() const { return kind_ == ScalarKind::Complex; }
  // The dtype that the number has on its own: bool, int64, float64 or complex128.
  DType type() const;

  // Conversions. An imaginary part is dropped where it is zero, otherwise ValueError. To integers: truncated; ValueError
  // where the value does not fit (unsigned types take negative numbers down to -max and wrap, as in libtorch) or is NaN.
  // To floating types: ValueError where a finite value is beyond the largest float; half types round to infinity.
  double toDouble() const;
  int64_t toLong() const;
  float toFloat() const;
  Half toHalf() const { return Half(toFloat()); }
  BFloat16 toBFloat16() const { return BFloat16(toFloat()); }
  bool toBool() const { return kind_ <= ScalarKind::Int ? i_ != 0 : (re_ != 0 || im_ != 0); }
  int toInt() const { return int(checked_integer(INT32_MIN, INT32_MAX, "int32")); }
  int16_t toShort() const { return int16_t(checked_integer(INT16_MIN, INT16_MAX, "int16")); }
  int8_t toChar() const { return int8_t(checked_integer(INT8_MIN, INT8_MAX, "int8")); }
  uint8_t toByte() const { return uint8_t(checked_integer(-UINT8_MAX, UINT8_MAX, "uint8")); }
  uint16_t toUInt16() const { return uint16_t(checked_integer(-UINT16_MAX, UINT16_MAX, "uint16")); }
  uint32_t toUInt32() const { return uint32_t(checked_integer(-int64_t(UINT32_MAX), UINT32_MAX, "uint32")); }
  uint64_t toUInt64() const;
  std::complex<double> toComplexDouble() const {
    return kind_ <= ScalarKind::Int ? std::complex<double>(double(i_)) : std::complex<double>(re_, im_);
  }
  std::complex<float> toComplexFloat() const { return std::complex<float>(toComplexDouble()); }
  ComplexHalf toComplexHalf() const { return ComplexHalf(toComplexFloat()); }
  // Any of the element types.
  template <class T>
  T to() const;

  Scalar operator-() const;
  Scalar conj() const;
  // Natural logarithm: of real numbers below zero NaN, of complex ones the principal value.
  Scalar log() const;
  bool equal(const Scalar& other) const { return toComplexDouble() == other.toComplexDouble(); }
  std::string str() const;

  // The raw parts, for the call path.
  int64_t raw_int() const { return i_; }
  double raw_real() const { return re_; }
  double raw_imag() const { return im_; }
  const double* complex_parts() const { return &re_; }  // {real, imaginary}

 private:
  int64_t checked_integer(int64_t lowest, int64_t highest, const char* type) const;
  [[noreturn]] static void throw_too_large(uint64_t v);

  ScalarKind kind_;
  int64_t i_ = 0;
  double re_ = 0, im_ = 0;
};

template <class T>
T Scalar::to() const {
  if constexpr (std::is_same_v<T, bool>)
    return toBool();
  else if constexpr (std::is_integral_v<T> && std::is_unsigned_v<T>)
    return sizeof(T) == 8   ? T(toUInt64())
           : sizeof(T) == 4 ? T(toUInt32())
           : sizeof(T) == 2 ? T(toUInt16())
                            : T(toByte());
  else if constexpr (std::is_integral_v<T>)
    return sizeof(T) == 8   ? T(toLong())
           : sizeof(T) == 4 ? T(toInt())
           : sizeof(T) == 2 ? T(toShort())
                            : T(toChar());
  else if constexpr (std::is_same_v<T, std::complex<float>>)
    return toComplexFloat();
  else if constexpr (std::is_same_v<T, std::complex<double>>)
    return toComplexDouble();
  else if constexpr (std::is_same_v<T, ComplexHalf>)
    return toComplexHalf();
  else if constexpr (std::is_floating_point_v<T> && sizeof(T) >= 8)
    return T(toDouble());
  else
    return T(toFloat());
}

}  // namespace vesta
