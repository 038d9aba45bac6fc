// Finds the CPU level with cpuid. Own cpuid code because compilers differ in the names that
// __builtin_cpu_supports knows (clang 14 has no "f16c"), and both the CPU and the OS (xgetbv: saved
// registers) must agree.
#include "base/cpu_isa.h"

#include <vesta/error.h>

#include <initializer_list>
#include <string>

#include "base/config.h"
#include "base/log.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace vesta {
namespace {

#if defined(__x86_64__)
struct Registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(unsigned leaf, unsigned subleaf) {
  Registers r;
  if (!__get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d)) return {};
  return r;
}

bool has(unsigned value, std::initializer_list<int> bits) {
  for (int bit : bits)
    if (!(value >> bit & 1)) return false;
  return true;
}

CpuIsa detect() {
  Registers basic = cpuid(1, 0);
  constexpr int kOsXsave = 27;
  if (!has(basic.c, {kOsXsave})) return CpuIsa::Baseline;
  unsigned saved = 0, high = 0;
  asm volatile("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
  Registers ext = cpuid(7, 0);
  // SSE3 0, SSSE3 9, FMA 12, CX16 13, SSE4.1 19, SSE4.2 20, MOVBE 22, POPCNT 23, AVX 28, F16C 29; LZCNT is in
  // 0x80000001.
  bool v3 = (saved & 0x6) == 0x6 && has(basic.c, {0, 9, 12, 13, 19, 20, 22, 23, 28, 29}) &&
            has(ext.b, {3, 5, 8}) && has(cpuid(0x80000001, 0).c, {5});
  if (!v3) return CpuIsa::Baseline;
  // AVX-512 F 16, DQ 17, CD 28, BW 30, VL 31.
  bool v4 = (saved & 0xe6) == 0xe6 && has(ext.b, {16, 17, 28, 30, 31});
  if (!v4) return CpuIsa::V3;
  // VNNI is ecx 11 of leaf 7, BF16 is eax 5 of its subleaf 1.
  return has(ext.c, {11}) && has(cpuid(7, 1).a, {5}) ? CpuIsa::V4Bf16 : CpuIsa::V4;
}
#else
CpuIsa detect() { return CpuIsa::Baseline; }
#endif

CpuIsa choose_level() {
  CpuIsa best = detect();
  const std::string& wanted = config().cpu_isa;
  if (wanted.empty()) return best;
  for (CpuIsa level : {CpuIsa::Baseline, CpuIsa::V3, CpuIsa::V4, CpuIsa::V4Bf16}) {
    if (wanted != cpu_isa_name(level)) continue;
    // An error, not a silent fall-back: a test of a variant that ran another one would prove nothing.
    VESTA_CHECK(level <= best, "VESTA_CPU_ISA: this machine runs at most ", cpu_isa_name(best), ", got ",
                wanted);
    return level;
  }
  throw ValueError("VESTA_CPU_ISA: expected baseline, v3, v4 or v4bf16, got '" + wanted + "'");
}

CpuIsa choose() {
  CpuIsa level = choose_level();
  VESTA_LOG(Cpu, Info, "level ", cpu_isa_name(level), ", the machine has ", cpu_isa_name(detect()));
  return level;
}

}  // namespace

CpuIsa cpu_isa() {
  static const CpuIsa level = choose();
  return level;
}

const char* cpu_isa_name(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::Baseline:
      return "baseline";
    case CpuIsa::V3:
      return "v3";
    case CpuIsa::V4:
      return "v4";
    case CpuIsa::V4Bf16:
      return "v4bf16";
  }
  return "unknown";
}

}  // namespace vesta
