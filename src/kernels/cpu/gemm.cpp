// gemm(): checks the arguments, serves the degenerate shapes, and sends the rest to the kernels for its type.
#include "kernels/cpu/gemm.h"

#include <vesta/error.h>

#include "kernels/cpu/gemm_generic.h"
#include "kernels/cpu/gemm_kernels.h"

namespace vesta::cpu {
namespace {

bool is_half(GemmType type) { return type == GemmType::F16 || type == GemmType::Bf16; }

bool is_tuned(GemmType type) { return is_half(type) || type == GemmType::F32 || type == GemmType::F64; }

// int8 has kernels on CPUs that multiply it, for plain products.
bool is_tuned_int8([[maybe_unused]] CpuIsa level, [[maybe_unused]] const GemmArgs& g) {
#ifdef VESTA_ALL_ISA
  return g.type == GemmType::I8 && level >= CpuIsa::V4Bf16 && g.alpha.integer == 1 && g.beta.is_zero() &&
         !g.epilogue;
#else
  return false;
#endif
}

}  // namespace

void gemm(const GemmArgs& g) { gemm_at(cpu_isa(), g); }

void gemm_at(CpuIsa level, const GemmArgs& g) {
  VESTA_CHECK(g.m >= 0 && g.n >= 0 && g.k >= 0 && g.batch >= 0, "gemm: expected sizes >= 0, got M ", g.m,
              ", N ", g.n, ", K ", g.k, ", batch ", g.batch);
  VESTA_CHECK_AS(TypeError,
                 g.type == GemmType::I8 ? g.out == GemmType::I32
                                        : g.out == g.type || (is_half(g.type) && g.out == GemmType::F32),
                 "gemm: expected C of A's type, f32 for f16 and bf16, i32 for int8, got types ",
                 static_cast<int>(g.type), " and ", static_cast<int>(g.out));
  if (g.m == 0 || g.n == 0 || g.batch == 0) return;
  VESTA_CHECK(g.m == 1 || g.ldc >= g.n, "gemm: expected ldc >= N, got ", g.ldc, " with N ", g.n);
  VESTA_CHECK(g.c && (g.k == 0 || (g.a && g.b)), "gemm: expected data pointers, got a null one");
  if (!(is_tuned(g.type) || is_tuned_int8(level, g)) || g.k == 0) return gemm_generic(g);
  gemm_packed(gemm_kernels(g.type, level), g);
}

int64_t gemm_k_block(GemmType type, CpuIsa level) {
  // int8 sums are exact: their block shows nowhere.
  return is_tuned(type) ? gemm_kernels(type, level).depth : kGenericDepth;
}

}  // namespace vesta::cpu
