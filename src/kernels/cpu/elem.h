#pragma once
// Element types as the pointer-only CPU kernels see them. Kernels sit below the Tensor class and take (Elem, void*),
// so that they can be tested and timed alone. No conversions and no promotion rules here.
#include <cstddef>
#include <cstdint>

#include "vesta/dtype.h"

namespace vesta::cpu {

enum class Elem : uint8_t { F32, F64, BF16, F16, I64, I32, I16, I8, U8, Bool };

// Storage of the two 16-bit float types; arithmetic on them happens in float.
struct Bf16 {
  uint16_t bits;
};
struct Half {
  uint16_t bits;
};

constexpr size_t elem_size(Elem type) {
  switch (type) {
    case Elem::F64:
    case Elem::I64:
      return 8;
    case Elem::F32:
    case Elem::I32:
      return 4;
    case Elem::BF16:
    case Elem::F16:
    case Elem::I16:
      return 2;
    default:
      return 1;
  }
}

constexpr bool is_float(Elem type) { return type <= Elem::F16; }

// The type in which float kernels accumulate and keep statistics: F64 for F64, otherwise F32.
constexpr Elem accumulate_type(Elem type) { return type == Elem::F64 ? Elem::F64 : Elem::F32; }

// The type in which integers are summed and multiplied.
constexpr Elem sum_type(Elem type) { return is_float(type) ? type : Elem::I64; }

// The kernels' name for a tensor's dtype; complex types have none (TypeError).
Elem elem_of(DType type);

}  // namespace vesta::cpu
