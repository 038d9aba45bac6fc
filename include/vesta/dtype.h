#pragma once
// Element types: one table of all of them, the DType enum and libtorch's constants (kFloat32, kLong, ...) made from it,
// the storage types of few bits and the properties of each type.
#include <bit>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>

// The element types in the order of their numbers, which the C interface and files of this library rely on.
// X(enumerator, C++ type, name in texts and files, libtorch's name, class). The first ones take part in arithmetic and
// promotion; they are ordered by class, then width.
#define VESTA_ARITHMETIC_DTYPES(X)                                        \
  X(Bool, bool, "bool", "Bool", Bool)                                     \
  X(UInt8, uint8_t, "uint8", "Byte", Unsigned)                            \
  X(Int8, int8_t, "int8", "Char", Signed)                                 \
  X(Int16, int16_t, "int16", "Short", Signed)                             \
  X(Int32, int32_t, "int32", "Int", Signed)                               \
  X(Int64, int64_t, "int64", "Long", Signed)                              \
  X(Float16, Half, "float16", "Half", Floating)                           \
  X(BFloat16, BFloat16, "bfloat16", "BFloat16", Floating)                 \
  X(Float32, float, "float32", "Float", Floating)                         \
  X(Float64, double, "float64", "Double", Floating)                       \
  X(Complex64, std::complex<float>, "complex64", "ComplexFloat", Complex) \
  X(Complex128, std::complex<double>, "complex128", "ComplexDouble", Complex)
// These only store: they are made, filled, copied, viewed, indexed, compared for equality and cast.
#define VESTA_STORAGE_DTYPES(X)                                                           \
  X(UInt16, uint16_t, "uint16", "UInt16", Unsigned)                                       \
  X(UInt32, uint32_t, "uint32", "UInt32", Unsigned)                                       \
  X(UInt64, uint64_t, "uint64", "UInt64", Unsigned)                                       \
  X(Float8_e4m3fn, Float8_e4m3fn, "float8_e4m3fn", "Float8_e4m3fn", Floating)             \
  X(Float8_e5m2, Float8_e5m2, "float8_e5m2", "Float8_e5m2", Floating)                     \
  X(Float8_e4m3fnuz, Float8_e4m3fnuz, "float8_e4m3fnuz", "Float8_e4m3fnuz", Floating)     \
  X(Float8_e5m2fnuz, Float8_e5m2fnuz, "float8_e5m2fnuz", "Float8_e5m2fnuz", Floating)     \
  X(Float8_e8m0fnu, Float8_e8m0fnu, "float8_e8m0fnu", "Float8_e8m0fnu", Floating)         \
  X(Float4_e2m1fn_x2, Float4_e2m1fn_x2, "float4_e2m1fn_x2", "Float4_e2m1fn_x2", Floating) \
  X(ComplexHalf, ComplexHalf, "complex32", "ComplexHalf", Complex)
#define VESTA_ALL_DTYPES(X) VESTA_ARITHMETIC_DTYPES(X) VESTA_STORAGE_DTYPES(X)

namespace vesta {

#define VESTA_ROW(name, ...) name,
enum class DType : uint8_t { VESTA_ALL_DTYPES(VESTA_ROW) Undefined };
#undef VESTA_ROW
constexpr int kNumDTypes = int(DType::Undefined);
using ScalarType = DType;

#define VESTA_ROW(name, ...) inline constexpr DType k##name = DType::name;
VESTA_ALL_DTYPES(VESTA_ROW)
#undef VESTA_ROW
inline constexpr DType kByte = kUInt8, kChar = kInt8, kShort = kInt16, kInt = kInt32, kLong = kInt64,
                       kHalf = kFloat16, kFloat = kFloat32, kDouble = kFloat64, kComplexFloat = kComplex64,
                       kComplexDouble = kComplex128, kComplex32 = kComplexHalf;

// IEEE binary16, storage only: arithmetic goes through float. Conversions round to nearest even.
struct Half {
  uint16_t bits = 0;
  Half() = default;
  Half(float value);  // NOLINT: implicit as in libtorch
  operator float() const;
  static Half from_bits(uint16_t b) {
    Half h;
    h.bits = b;
    return h;
  }
};

// bfloat16, storage only: the top half of a float32.
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  BFloat16(float value) {  // NOLINT
    uint32_t u;
    std::memcpy(&u, &value, 4);
    // A NaN whose payload sits in the low half must not round to infinity.
    bits = (u & 0x7fffffffu) > 0x7f800000u ? uint16_t(0x7fc0u | (u >> 16 & 0x8000u))
                                           : uint16_t((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
  }
  operator float() const {
    uint32_t u = uint32_t(bits) << 16;
    float f;
    std::memcpy(&f, &u, 4);
    return f;
  }
  static BFloat16 from_bits(uint16_t b) {
    BFloat16 h;
    h.bits = b;
    return h;
  }
};

// What an 8-bit format does with its all-ones exponent: IEEE 754 (infinities and NaNs); one NaN a sign and no infinity
// ("fn"; too large numbers become the largest one, as PyTorch 2.14 has it); or the code of minus zero is the only NaN
// ("fnuz"; too large numbers become NaN).
enum class Float8Kind : uint8_t { Ieee, Finite, Fnuz };

// A sign, `exponent_bits` and `mantissa_bits` in 8 bits (OCP 8-bit floating point 1.0; fnuz: arXiv 2206.02915). Storage
// only. From float it rounds to nearest even; from wider types through float, as in PyTorch.
template <int exponent_bits, int mantissa_bits, Float8Kind kind>
struct Float8 {
  static_assert(1 + exponent_bits + mantissa_bits == 8);
  uint8_t bits = 0;
  Float8() = default;
  constexpr Float8(float value) : bits(encode(value)) {}  // NOLINT: implicit as in libtorch
  constexpr operator float() const { return decode(bits); }
  static constexpr Float8 from_bits(uint8_t b) {
    Float8 f;
    f.bits = b;
    return f;
  }

 private:
  static constexpr int kBias = (1 << (exponent_bits - 1)) - (kind == Float8Kind::Fnuz ? 0 : 1);
  static constexpr uint32_t kLargest = kind == Float8Kind::Ieee ? ((1u << exponent_bits) - 1) << mantissa_bits
                                       : kind == Float8Kind::Finite ? 0x7eu
                                                                    : 0x7fu;

  static constexpr uint8_t encode(float value) {
    constexpr int kDropped = 23 - mantissa_bits;
    constexpr uint32_t kRebias = uint32_t(kBias - 127) << 23, kSmallestNormal = uint32_t(128 - kBias) << 23;
    uint32_t u = std::bit_cast<uint32_t>(value), sign = u >> 24 & 0x80u, magnitude = u & 0x7fffffffu, code;
    if (magnitude > 0x7f800000u) return uint8_t(kind == Float8Kind::Fnuz ? 0x80u : sign | 0x7fu);
    if (magnitude < kSmallestNormal) {
      // One ulp of kMagic is the spacing of the subnormals, so that the addition rounds at the right place.
      constexpr uint32_t kMagic = uint32_t(127 + 24 - kBias - mantissa_bits) << 23;
      code = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + std::bit_cast<float>(kMagic)) - kMagic;
    } else {
      uint32_t odd = magnitude >> kDropped & 1;
      code = (magnitude + kRebias + ((1u << (kDropped - 1)) - 1) + odd) >> kDropped;
      if (code > kLargest) code = kind == Float8Kind::Fnuz ? 0x80u : kLargest;
    }
    return uint8_t(kind == Float8Kind::Fnuz && code == 0 ? 0u : sign | code);
  }
  static constexpr float decode(uint8_t b) {
    uint32_t sign = uint32_t(b & 0x80u) << 24, rest = b & 0x7fu;
    if (kind == Float8Kind::Fnuz && b == 0x80u) return std::bit_cast<float>(0x7fc00000u);
    if (kind == Float8Kind::Finite && rest == 0x7fu) return std::bit_cast<float>(sign | 0x7fc00000u);
    if (kind == Float8Kind::Ieee && rest >= kLargest)
      return std::bit_cast<float>(sign | 0x7f800000u | (rest - kLargest) << (23 - mantissa_bits));
    if (rest >> mantissa_bits)
      return std::bit_cast<float>(sign | ((rest << (23 - mantissa_bits)) + (uint32_t(127 - kBias) << 23)));
    float v = float(rest) * std::bit_cast<float>(uint32_t(128 - kBias - mantissa_bits) << 23);
    return sign ? -v : v;
  }
};
using Float8_e4m3fn = Float8<4, 3, Float8Kind::Finite>;  // up to 448
using Float8_e5m2 = Float8<5, 2, Float8Kind::Ieee>;      // up to 57344, then infinity
using Float8_e4m3fnuz = Float8<4, 3, Float8Kind::Fnuz>;  // up to 240
using Float8_e5m2fnuz = Float8<5, 2, Float8Kind::Fnuz>;  // up to 57344

// A power of two from 2^-127 to 2^127 or NaN (255), without sign: the scale of a block (OCP Microscaling 1.0).
struct Float8_e8m0fnu {
  uint8_t bits = 0;
  Float8_e8m0fnu() = default;
  // The sign is dropped, infinities and NaN are NaN, halfway goes to the larger power.
  constexpr Float8_e8m0fnu(float value) {  // NOLINT
    uint32_t u = std::bit_cast<uint32_t>(value) & 0x7fffffffu, exponent = u >> 23, fraction = u & 0x7fffffu;
    // Below 2^-126 the fraction has no hidden bit: half of it is 2^-127 itself.
    bool up = exponent ? fraction >= 0x400000u : fraction > 0x400000u;
    bits = uint8_t(exponent == 255 ? 255 : exponent + (up ? 1 : 0));
  }
  constexpr operator float() const {
    return std::bit_cast<float>(bits == 255 ? 0x7fc00000u : bits == 0 ? 0x00400000u : uint32_t(bits) << 23);
  }
  static constexpr Float8_e8m0fnu from_bits(uint8_t b) {
    Float8_e8m0fnu f;
    f.bits = b;
    return f;
  }
};

// Two 4-bit numbers in one byte, the first in the low half. Never cast or filled: see it as kUInt8 with view().
struct Float4_e2m1fn_x2 {
  uint8_t bits = 0;
};

// Two halves, real and imaginary. Storage only: arithmetic goes through std::complex<float>.
struct ComplexHalf {
  Half re{}, im{};
  ComplexHalf() = default;
  ComplexHalf(std::complex<float> v) : re(v.real()), im(v.imag()) {}  // NOLINT
  operator std::complex<float>() const { return {float(re), float(im)}; }
};

enum class DTypeClass : uint8_t { Bool, Unsigned, Signed, Floating, Complex, Undefined };
namespace detail {
#define VESTA_ROW(name, type, text, torch_name, kind) sizeof(type),
inline constexpr uint8_t kDTypeSizes[] = {VESTA_ALL_DTYPES(VESTA_ROW) 0};
#undef VESTA_ROW
#define VESTA_ROW(name, type, text, torch_name, kind) DTypeClass::kind,
inline constexpr DTypeClass kDTypeClasses[] = {VESTA_ALL_DTYPES(VESTA_ROW) DTypeClass::Undefined};
#undef VESTA_ROW
}  // namespace detail

constexpr size_t element_size(DType t) { return detail::kDTypeSizes[int(t)]; }
constexpr DTypeClass dtype_class(DType t) { return detail::kDTypeClasses[int(t)]; }
// Types that only store: operators that compute refuse them until they are cast.
constexpr bool is_storage_only(DType t) { return t > DType::Complex128 && t < DType::Undefined; }
constexpr bool is_floating_point(DType t) { return dtype_class(t) == DTypeClass::Floating; }
constexpr bool is_complex(DType t) { return dtype_class(t) == DTypeClass::Complex; }
// Integers without bool, unless include_bool.
constexpr bool is_integral(DType t, bool include_bool = false) {
  DTypeClass c = dtype_class(t);
  return c == DTypeClass::Unsigned || c == DTypeClass::Signed || (include_bool && c == DTypeClass::Bool);
}
constexpr bool is_signed(DType t) {
  return dtype_class(t) >= DTypeClass::Signed && t != DType::Undefined && t != DType::Float8_e8m0fnu;
}
// complex64 -> float32 and so on; other types as they are.
constexpr DType real_dtype(DType t) {
  return t == DType::Complex64     ? DType::Float32
         : t == DType::Complex128  ? DType::Float64
         : t == DType::ComplexHalf ? DType::Float16
                                   : t;
}
// "Float32", "Int64", ... as libtorch prints them; dtype_name gives "float32", "int64", ...
const char* to_string(DType t);
const char* dtype_name(DType t);
// Parses "float32" and the like; DType::Undefined where unknown.
DType parse_dtype(const char* name, size_t length);

// The default floating dtype of new tensors and of promoted integers; float32 unless set (floating types only).
DType get_default_dtype();
void set_default_dtype(DType t);

// result_type of two dtypes by PyTorch's table (uint8 + int8 = int16, int64 + float16 = float16, ...). TypeError where
// PyTorch has no answer: float8 and float4 with any other type, uint16, uint32 and uint64 with an integer or bool.
DType promote_types(DType a, DType b);
// Whether a value of type `from` may be written in place to a tensor of type `to` (no complex->real, float->int, ->bool).
bool can_cast(DType from, DType to);

template <class T>
struct DTypeOf;  // maps a C++ type to its DType
#define VESTA_ROW(name, type, text, torch_name, kind) \
  template <>                                         \
  struct DTypeOf<type> {                              \
    static constexpr DType value = DType::name;       \
  };
VESTA_ALL_DTYPES(VESTA_ROW)
#undef VESTA_ROW
// The type beside int64_t and uint64_t that has their size.
template <>
struct DTypeOf<long long> {
  static constexpr DType value = DType::Int64;
};
template <>
struct DTypeOf<unsigned long long> {
  static constexpr DType value = DType::UInt64;
};

}  // namespace vesta
