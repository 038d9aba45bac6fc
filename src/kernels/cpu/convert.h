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
      return ComputeType::I32;
    case DType::Int64:
      return ComputeType::I64;
    case DType::Float64:
      return ComputeType::F64;
    case DType::Complex64:
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
// Whether the storage type is its compute type: no conversion is needed.
constexpr bool is_compute_storage(DType t) {
  return t != DType::Float16 && t != DType::BFloat16 && t != DType::UInt8 && t != DType::Int8 &&
         t != DType::Int16;
}

}  // namespace vesta::cpu
