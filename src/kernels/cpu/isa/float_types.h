#pragma once
// Calls a generic lambda with a value of the C++ storage type behind a floating point Elem. The callers have checked
// the type; anything else is ignored.
#include "kernels/cpu/elem.h"

namespace vesta::cpu::VESTA_ISA {

template <class F>
inline void with_float_type(Elem type, F f) {
  switch (type) {
    case Elem::F32:
      return f(float{});
    case Elem::F64:
      return f(double{});
    case Elem::BF16:
      return f(Bf16{});
    case Elem::F16:
      return f(Half{});
    default:
      return;
  }
}

}  // namespace vesta::cpu::VESTA_ISA
