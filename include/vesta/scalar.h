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
  template <class T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, int> = 0>
  Scalar(T v) : kind_(ScalarKind::Int), i_(int64_t(v)) {}  // NOLINT
  template <class T, std::enable_if_t<std::is_floating_point_v<T>, int> = 0>
  Scalar(T v) : kind_(ScalarKind::Float), re_(double(v)) {}        // NOLINT
  Scalar(Half v) : kind_(ScalarKind::Float), re_(float(v)) {}      // NOLINT
  Scalar(BFloat16 v) : kind_(ScalarKind::Float), re_(float(v)) {}  // NOLINT
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

  // Conversions. toDouble and toLong drop an imaginary part of zero only; otherwise ValueError. toLong truncates and
  // throws where the value does not fit.
  double toDouble() const;
  int64_t toLong() const;
  bool toBool() const { return kind_ <= ScalarKind::Int ? i_ != 0 : (re_ != 0 || im_ != 0); }
  std::complex<double> toComplexDouble() const {
    return kind_ <= ScalarKind::Int ? std::complex<double>(double(i_)) : std::complex<double>(re_, im_);
  }
  template <class T>
  T to() const;

  Scalar operator-() const;
  Scalar conj() const;
  bool equal(const Scalar& other) const { return toComplexDouble() == other.toComplexDouble(); }
  std::string str() const;

  // The raw parts, for the call path.
  int64_t raw_int() const { return i_; }
  double raw_real() const { return re_; }
  double raw_imag() const { return im_; }
  const double* complex_parts() const { return &re_; }  // {real, imaginary}

 private:
  ScalarKind kind_;
  int64_t i_ = 0;
  double re_ = 0, im_ = 0;
};

template <class T>
T Scalar::to() const {
  if constexpr (std::is_same_v<T, bool>)
    return toBool();
  else if constexpr (std::is_integral_v<T>)
    return T(toLong());
  else if constexpr (std::is_same_v<T, std::complex<float>>)
    return std::complex<float>(toComplexDouble());
  else if constexpr (std::is_same_v<T, std::complex<double>>)
    return toComplexDouble();
  else
    return T(toDouble());
}

}  // namespace vesta
