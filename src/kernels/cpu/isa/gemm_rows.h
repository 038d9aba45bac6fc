#pragma once
// Rows of f32 accumulators and rows of C's stored type (f32, f16, bf16): what GEMM's epilogue needs beside the caller's
// own function. Shared by the f32 and the bf16 tables; internal linkage, one copy per CPU level.
#include <cstdint>
#include <cstring>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/gemm_half.h"

namespace vesta::cpu::VESTA_ISA {
namespace {

void add_row(GemmType type, void* t_, const void* x, int64_t n) {
  float* t = static_cast<float*>(t_);
  const auto* f = static_cast<const float*>(x);
  const auto* h = static_cast<const uint16_t*>(x);
  switch (type) {
    case GemmType::F16:
      for (int64_t i = 0; i < n; ++i) t[i] += f16_to_float(h[i]);
      return;
    case GemmType::Bf16:
      for (int64_t i = 0; i < n; ++i) t[i] += bf16_to_float(h[i]);
      return;
    default:
      for (int64_t i = 0; i < n; ++i) t[i] += f[i];
  }
}

void load_row(GemmType type, void* t_, const void* x, double scale_, int64_t n) {
  float* t = static_cast<float*>(t_);
  const float scale = static_cast<float>(scale_);
  const auto* f = static_cast<const float*>(x);
  const auto* h = static_cast<const uint16_t*>(x);
  switch (type) {
    case GemmType::F16:
      for (int64_t i = 0; i < n; ++i) t[i] = scale * f16_to_float(h[i]);
      return;
    case GemmType::Bf16:
      for (int64_t i = 0; i < n; ++i) t[i] = scale * bf16_to_float(h[i]);
      return;
    default:
      for (int64_t i = 0; i < n; ++i) t[i] = scale * f[i];
  }
}

void store_row(GemmType type, const void* t_, void* x, int64_t n) {
  const float* t = static_cast<const float*>(t_);
  auto* h = static_cast<uint16_t*>(x);
  switch (type) {
    case GemmType::F16:
      for (int64_t i = 0; i < n; ++i) h[i] = float_to_f16(t[i]);
      return;
    case GemmType::Bf16:
      for (int64_t i = 0; i < n; ++i) h[i] = float_to_bf16(t[i]);
      return;
    default:
      std::memcpy(x, t, static_cast<size_t>(n) * 4);
  }
}

}  // namespace
}  // namespace vesta::cpu::VESTA_ISA
