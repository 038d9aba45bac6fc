#pragma once
// Calls a generic lambda with the C++ type of a dtype, for kernels that are written once for all element types.
// Moves need only the element's size: visit_size. No promotion here.
#include <complex>
#include <cstdint>
#include <type_traits>

#include "vesta/dtype.h"
#include "vesta/error.h"

namespace vesta {

template <class T>
struct ElementTag { using type = T; };

struct Element16 {
  uint64_t lo, hi;
};

// f(ElementTag<T>{}) with an unsigned integer (or a 16-byte block) of the dtype's size.
template <class F>
void visit_size(DType t, F&& f) {
  switch (element_size(t)) {
    case 1: return f(ElementTag<uint8_t>{});
    case 2: return f(ElementTag<uint16_t>{});
    case 4: return f(ElementTag<uint32_t>{});
    case 8: return f(ElementTag<uint64_t>{});
    default: return f(ElementTag<Element16>{});
  }
}

// Real types; TypeError naming `op` for complex ones.
template <class F>
void visit_real(DType t, const char* op, F&& f) {
  switch (t) {
    case DType::Bool: return f(ElementTag<bool>{});
    case DType::UInt8: return f(ElementTag<uint8_t>{});
    case DType::Int8: return f(ElementTag<int8_t>{});
    case DType::Int16: return f(ElementTag<int16_t>{});
    case DType::Int32: return f(ElementTag<int32_t>{});
    case DType::Int64: return f(ElementTag<int64_t>{});
    case DType::Float16: return f(ElementTag<Half>{});
    case DType::BFloat16: return f(ElementTag<BFloat16>{});
    case DType::Float32: return f(ElementTag<float>{});
    case DType::Float64: return f(ElementTag<double>{});
    default: throw TypeError(std::string(op) + ": does not take " + dtype_name(t) + " tensors");
  }
}
template <class F>
void visit_all(DType t, const char* op, F&& f) {
  if (t == DType::Complex64) return f(ElementTag<std::complex<float>>{});
  if (t == DType::Complex128) return f(ElementTag<std::complex<double>>{});
  visit_real(t, op, f);
}

// The type that values of T are added up in.
template <class T>
struct AccumulatorOf { using type = std::conditional_t<std::is_integral_v<T>, int64_t, T>; };
template <>
struct AccumulatorOf<Half> { using type = float; };
template <>
struct AccumulatorOf<BFloat16> { using type = float; };

template <class T>
inline bool is_nan(T v) {
  if constexpr (std::is_integral_v<T>) return false;
  else if constexpr (std::is_floating_point_v<T>) return v != v;
  else { float f = v; return f != f; }
}
// Half types compare as float, the others as they are.
template <class T>
inline auto comparable(T v) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) return float(v);
  else return v;
}

}  // namespace vesta
