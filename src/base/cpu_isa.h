#pragma once
// The CPU level chosen at start-up: the best that this machine runs, or VESTA_CPU_ISA=baseline|v3|v4|v4bf16.
namespace vesta {

// v3 = AVX2+FMA+F16C, v4 = AVX-512 F/BW/CD/DQ/VL (x86-64-v4), V4Bf16 = v4 + AVX512-BF16 + VNNI.
enum class CpuIsa : int { Baseline = 0, V3 = 1, V4 = 2, V4Bf16 = 3 };

CpuIsa cpu_isa();
const char* cpu_isa_name(CpuIsa isa);

}  // namespace vesta
