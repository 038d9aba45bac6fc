// gemm(): checks the arguments, serves the degenerate shapes, and sends the rest to the kernels for its type.
#include "kernels/cpu/gemm.h"

#include <vesta/error.h>

#include "kernels/cpu/gemm_generic.h"
#include "kernels/cpu/gemm_kernels.h"

namespace vesta::cpu {
namespace {

bool is_half(GemmType type) { return type == GemmType::F16 || type == GemmType::Bf16; }

bool is_tuned(GemmType type) { return is_half(type) || type == GemmType::F32 || type == GemmType::F64; }

}  // namespace

void gemm(const GemmArgs& g) { gemm_at(cpu_isa(), g); }

void gemm_at(CpuIsa level, const GemmArgs& g) {
  VESTA_CHECK(g.m >= 0 && g.n >= 0 && g.k >= 0 && g.batch >= 0, "gemm: expected sizes >= 0, got M ", g.m,
              ", N ", g.n, ", K ", g.k, ", batch ", g.batch);
  VESTA_CHECK_AS(TypeError, g.out == g.type || (is_half(g.type) && g.out == GemmType::F32),
                 "gemm: expected C of A's type, or f32 for f16 and bf16, got types ",
                 static_cast<int>(g.type), " and ", static_cast<int>(g.out));
  if (g.m == 0 || g.n == 0 || g.batch == 0) return;
  VESTA_CHECK(g.m == 1 || g.ldc >= g.n, "gemm: expected ldc >= N, got ", g.ldc, " with N ", g.n);
  VESTA_CHECK(g.c && (g.k == 0 || (g.a && g.b)), "gemm: expected data pointers, got a null one");
  if (!is_tuned(g.type) || g.k == 0) return gemm_generic(g);
  gemm_packed(gemm_kernels(g.type, level), g);
}

int64_t gemm_k_block(GemmType type, CpuIsa level) {
  return is_tuned(type) ? gemm_kernels(type, level).depth : kGenericDepth;
}

}  // namespace vesta::cpu
