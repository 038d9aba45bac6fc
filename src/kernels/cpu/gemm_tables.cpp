// Which kernel table serves a type at a CPU level. A build for one level only (VESTA_ISA other than "all") holds just
// `baseline`, compiled with that build's own flags: the weak references of the others are null then.
#include "kernels/cpu/gemm_kernels.h"

namespace vesta::cpu {

#define VESTA_GEMM_LEVEL(level, linkage)                 \
  namespace level {                                      \
  linkage extern const GemmKernels gemm_f32_kernels;     \
  linkage extern const GemmKernels gemm_f64_kernels;     \
  }
VESTA_GEMM_LEVEL(baseline, )
VESTA_GEMM_LEVEL(v3, [[gnu::weak]])
VESTA_GEMM_LEVEL(v4, [[gnu::weak]])
#undef VESTA_GEMM_LEVEL
namespace v4bf16 {
[[gnu::weak]] extern const GemmKernels gemm_bf16_kernels;
}

const GemmKernels& gemm_kernels(GemmType type, CpuIsa level) {
  if (type == GemmType::Bf16 && level >= CpuIsa::V4Bf16 && &v4bf16::gemm_bf16_kernels) return v4bf16::gemm_bf16_kernels;
  const bool f64 = type == GemmType::F64;
  if (level >= CpuIsa::V4 && &v4::gemm_f32_kernels) return f64 ? v4::gemm_f64_kernels : v4::gemm_f32_kernels;
  if (level >= CpuIsa::V3 && &v3::gemm_f32_kernels) return f64 ? v3::gemm_f64_kernels : v3::gemm_f32_kernels;
  return f64 ? baseline::gemm_f64_kernels : baseline::gemm_f32_kernels;
}

}  // namespace vesta::cpu
