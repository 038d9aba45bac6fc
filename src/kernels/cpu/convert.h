#pragma once
// Element type conversions between storage types and compute types: what the staging driver and copies are built from.
// load turns `n` elements at a byte stride into consecutive compute-type elements; store does the reverse. Rules:
// float -> integer truncates and saturates to the compute type (NaN -> 0), then wraps to the storage type; anything to
// bool is != 0 (NaN is true); complex -> real drops the imaginary part; float -> half types rounds to nearest even.
#include <cstdint>

#include "vesta/dtype.h"
#include "vesta/scalar_text.h"

namespace vesta::cpu {

using ConvertFn = void (*)(const void* src, int64_t src_stride_bytes, void* dst, int64_t n);
using StoreFn = void (*)(const void* src, void* dst, int64_t dst_stride_bytes, int64_t n);

// Null where !is_convertible(dtype).
struct ConvertTable {
  ConvertFn load[kNumDTypes][kNumComputeTypes];
  StoreFn store[kNumComputeTypes][kNumDTypes];
};
// For the chosen CPU level.
const ConvertTable& convert_table();

constexpr ComputeType compute_type(DType t) {
  switch (t) {
    case DType::Bool:
      return ComputeType::U8;
    case DType::UInt8:
    case DType::Int8:
    case DType::Int16:
    case DType::Int32:
    case DType::UInt16:
      return ComputeType::I32;
    case DType::Int64:
    case DType::UInt32:
    case DType::UInt64:  // the same bits
      return ComputeType::I64;
    case DType::Float64:
      return ComputeType::F64;
    case DType::Complex64:
    case DType::ComplexHalf:
      return ComputeType::C64;
    case DType::Complex128:
      return ComputeType::C128;
    default:
      return ComputeType::F32;
  }
}
constexpr int64_t compute_size(ComputeType t) {
  constexpr int8_t sizes[] = {4, 8, 4, 8, 1, 8, 16};
  return sizes[int(t)];
}
// The type that a cast goes through. Floating numbers from 2^63 on reach uint64 as float64, which holds every float.
constexpr ComputeType cast_type(DType from, DType to) {
  return to == DType::UInt64 && !is_integral(from, true) ? ComputeType::F64 : compute_type(to);
}
// Whether the storage type is its compute type: no conversion is needed.
constexpr bool is_compute_storage(DType t) {
  return t == DType::Bool || t == DType::Int32 || t == DType::Int64 || t == DType::Float32 ||
         t == DType::Float64 || t == DType::Complex64 || t == DType::Complex128;
}
// Whether the tables have entries: pairs of 4-bit numbers are never cast.
constexpr bool is_convertible(DType t) { return t != DType::Float4_e2m1fn_x2 && t != DType::Undefined; }

}  // namespace vesta::cpu
