#pragma once
// The scalar prelude's functions as vectorised loops, one table per CPU level: prelude_test.cpp checks what ships
// rather than what an unoptimised call would give. Filled by tests/kernels/isa/prelude_loops.cpp.
#include <cstdint>

#include "base/cpu_isa.h"
#include "kernels/cpu/isa_select.h"

namespace vesta::cpu {

struct PreludeUnary {
  const char* name;
  void (*f32)(const float* x, float* out, int n);
  void (*f64)(const double* x, double* out, int n);
};
struct PreludeBinary {
  const char* name;
  void (*f32)(const float* x, const float* y, float* out, int n);
  void (*f64)(const double* x, const double* y, double* out, int n);
};
struct PreludeInteger {
  const char* name;
  void (*i64)(const int64_t* x, const int64_t* y, int64_t* out, int n);
};
struct PreludeLoops {
  const PreludeUnary* unary;
  int unary_count;
  const PreludeBinary* binary;
  int binary_count;
  const PreludeInteger* integer;
  int integer_count;
};
VESTA_ISA_TABLE(PreludeLoops, prelude_loops)

}  // namespace vesta::cpu
