// Which kernel table serves a type at a CPU level. A build for one level only (VESTA_ISA other than "all") holds just
// `baseline`, compiled with that build's own flags.
#include "kernels/cpu/gemm_kernels.h"

namespace vesta::cpu {

#define VESTA_GEMM_LEVEL(level)              \
  namespace level {                          \
  extern const GemmKernels gemm_f32_kernels; \
  extern const GemmKernels gemm_f64_kernels; \
  }
VESTA_GEMM_LEVEL(baseline)
#ifdef VESTA_ALL_ISA
VESTA_GEMM_LEVEL(v3)
VESTA_GEMM_LEVEL(v4)
namespace v4bf16 {
extern const GemmKernels gemm_bf16_kernels;
extern const GemmKernels gemm_i8_kernels;
}  // namespace v4bf16
#endif
#undef VESTA_GEMM_LEVEL

const GemmKernels& gemm_kernels(GemmType type, [[maybe_unused]] CpuIsa level) {
  const bool f64 = type == GemmType::F64;
#ifdef VESTA_ALL_ISA
  if (level >= CpuIsa::V4Bf16 && type == GemmType::Bf16) return v4bf16::gemm_bf16_kernels;
  if (level >= CpuIsa::V4Bf16 && type == GemmType::I8) return v4bf16::gemm_i8_kernels;
  if (level >= CpuIsa::V4) return f64 ? v4::gemm_f64_kernels : v4::gemm_f32_kernels;
  if (level >= CpuIsa::V3) return f64 ? v3::gemm_f64_kernels : v3::gemm_f32_kernels;
#endif
  return f64 ? baseline::gemm_f64_kernels : baseline::gemm_f32_kernels;
}

}  // namespace vesta::cpu
