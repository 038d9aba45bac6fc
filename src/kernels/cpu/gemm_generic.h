#pragma once
// The plain GEMM: any type, any stride, cache-blocked but not tuned. It serves integers and complex numbers, and is the
// second opinion of the tests for the tuned types.
#include "kernels/cpu/gemm.h"

namespace vesta::cpu {

constexpr int64_t kGenericDepth = 64;  // K block

// Same contract as gemm() after its checks: m, n, batch > 0.
void gemm_generic(const GemmArgs& args);

}  // namespace vesta::cpu
