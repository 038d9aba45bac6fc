#pragma once
// Scalar conversions of the 16-bit types for GEMM's edges: exact widening, round to nearest even when narrowing, NaN
// stays NaN (quiet). Internal linkage: the same text is compiled for several CPU levels.
#include <cstdint>
#include <cstring>

namespace vesta::cpu {
namespace {

[[maybe_unused]] inline float bf16_to_float(uint16_t h) {
  const uint32_t bits = static_cast<uint32_t>(h) << 16;
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}

[[maybe_unused]] inline uint16_t float_to_bf16(float f) {
  uint32_t bits;
  std::memcpy(&bits, &f, 4);
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const uint32_t quiet = (bits >> 16) | 0x40;
  return static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
}

// Branch-free so that it vectorises: subnormals through an exact float subtraction (0.5 ulp steps of 2^-24).
[[maybe_unused]] inline float f16_to_float(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000) << 16;
  const uint32_t magnitude = h & 0x7fff;
  const uint32_t normal = (magnitude << 13) + (112u << 23);
  const uint32_t special = (magnitude << 13) + (224u << 23);
  const uint32_t sub_bits = magnitude + (126u << 23);  // 0.5 + magnitude * 2^-24
  float sub;
  std::memcpy(&sub, &sub_bits, 4);
  sub -= 0.5f;
  uint32_t small;
  std::memcpy(&small, &sub, 4);
  const uint32_t bits = sign | (magnitude < 0x400 ? small : magnitude >= 0x7c00 ? special : normal);
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}

[[maybe_unused]] inline uint16_t float_to_f16(float f) {
  uint32_t bits;
  std::memcpy(&bits, &f, 4);
  const uint32_t sign = (bits >> 16) & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00 | ((magnitude >> 13) & 0x3ff));
  if (magnitude >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);  // rounds to 65536 or more
  if (magnitude < 0x38800000) {  // below 2^-14: adding 0.5 rounds at the f16 subnormal step, 2^-24
    float m;
    std::memcpy(&m, &magnitude, 4);
    m += 0.5f;
    uint32_t r;
    std::memcpy(&r, &m, 4);
    return static_cast<uint16_t>(sign | (r - (126u << 23)));
  }
  return static_cast<uint16_t>(sign | ((magnitude - (112u << 23) + 0xfff + ((magnitude >> 13) & 1)) >> 13));
}

}  // namespace
}  // namespace vesta::cpu
