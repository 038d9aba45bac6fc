#pragma once
// Element types: the DType enum, libtorch's constants (kFloat32, kLong, ...), the storage types of half precision and
// the properties of each type.
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace vesta {

enum class DType : uint8_t {
  Bool,
  UInt8,
  Int8,
  Int16,
  Int32,
  Int64,
  Float16,
  BFloat16,
  Float32,
  Float64,
  Complex64,
  Complex128,
  Undefined
};
constexpr int kNumDTypes = 12;
using ScalarType = DType;

inline constexpr DType kBool = DType::Bool, kUInt8 = DType::UInt8, kByte = kUInt8, kInt8 = DType::Int8,
                       kChar = kInt8, kInt16 = DType::Int16, kShort = kInt16, kInt32 = DType::Int32,
                       kInt = kInt32, kInt64 = DType::Int64, kLong = kInt64, kFloat16 = DType::Float16,
                       kHalf = kFloat16, kBFloat16 = DType::BFloat16, kFloat32 = DType::Float32,
                       kFloat = kFloat32, kFloat64 = DType::Float64, kDouble = kFloat64,
                       kComplex64 = DType::Complex64, kComplexFloat = kComplex64,
                       kComplex128 = DType::Complex128, kComplexDouble = kComplex128;

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

constexpr size_t element_size(DType t) {
  constexpr uint8_t sizes[] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 0};
  return sizes[int(t)];
}
constexpr bool is_floating_point(DType t) { return t >= DType::Float16 && t <= DType::Float64; }
constexpr bool is_complex(DType t) { return t == DType::Complex64 || t == DType::Complex128; }
// Integers without bool, unless include_bool.
constexpr bool is_integral(DType t, bool include_bool = false) {
  return (t >= DType::UInt8 && t <= DType::Int64) || (include_bool && t == DType::Bool);
}
constexpr bool is_signed(DType t) { return t != DType::Bool && t != DType::UInt8 && t != DType::Undefined; }
// "Float32", "Int64", ... as libtorch prints them; dtype_name gives "float32", "int64", ...
const char* to_string(DType t);
const char* dtype_name(DType t);
// Parses "float32" and the like; DType::Undefined where unknown.
DType parse_dtype(const char* name, size_t length);

// The default floating dtype of new tensors and of promoted integers; float32 unless set (floating types only).
DType get_default_dtype();
void set_default_dtype(DType t);

// result_type of two dtypes by PyTorch's table (uint8 + int8 = int16, int64 + float16 = float16, ...).
DType promote_types(DType a, DType b);
// Whether a value of type `from` may be written in place to a tensor of type `to` (no complex->real, float->int, ->bool).
bool can_cast(DType from, DType to);

template <class T>
struct DTypeOf;  // maps a C++ type to its DType
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::Bool;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::UInt8;
};
template <>
struct DTypeOf<int8_t> {
  static constexpr DType value = DType::Int8;
};
template <>
struct DTypeOf<int16_t> {
  static constexpr DType value = DType::Int16;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::Int32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::Int64;
};
template <>
struct DTypeOf<long long> {
  static constexpr DType value = DType::Int64;
};
template <>
struct DTypeOf<Half> {
  static constexpr DType value = DType::Float16;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::BFloat16;
};
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::Float32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::Float64;
};
template <>
struct DTypeOf<std::complex<float>> {
  static constexpr DType value = DType::Complex64;
};
template <>
struct DTypeOf<std::complex<double>> {
  static constexpr DType value = DType::Complex128;
};

}  // namespace vesta
