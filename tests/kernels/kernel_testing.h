#pragma once
// Shared by the kernel tests: the CPU levels that this machine runs, random data in any float storage type, and a
// comparison that reports where and by how much two arrays differ. References are float64 and live in each test.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "base/cpu_isa.h"
#include "kernels/cpu/elem.h"

namespace vesta::cpu::testing {

inline std::vector<CpuIsa> levels() {
  std::vector<CpuIsa> result{CpuIsa::Baseline};
  if (cpu_isa() >= CpuIsa::V3) result.push_back(CpuIsa::V3);
  if (cpu_isa() >= CpuIsa::V4) result.push_back(CpuIsa::V4);
  return result;
}

inline const std::vector<Elem>& float_types() {
  static const std::vector<Elem> types{Elem::F32, Elem::F64, Elem::BF16, Elem::F16};
  return types;
}

// Relative step of a storage type, at least that of its accumulator.
inline double epsilon(Elem type) {
  switch (type) {
    case Elem::F64:
      return 2.3e-16;
    case Elem::F32:
      return 1.2e-7;
    case Elem::F16:
      return 9.8e-4;
    default:
      return 7.9e-3;
  }
}

inline float from_half(uint16_t h) {
  const int exponent = (h >> 10) & 31, fraction = h & 1023;
  const float sign = h & 0x8000 ? -1.f : 1.f;
  if (exponent == 31) return fraction ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
}

// Nearest-even by searching the two neighbours: slow, and written differently from the kernels on purpose.
inline uint16_t to_half(float x) {
  if (std::isnan(x)) return 0x7e00;
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  const float magnitude = std::fabs(x);
  uint16_t low = 0, high = 0x7c00;
  while (high - low > 1) {
    const uint16_t middle = static_cast<uint16_t>((low + high) / 2);
    (from_half(middle) <= magnitude ? low : high) = middle;
  }
  if (magnitude == INFINITY) return sign | 0x7c00;
  const double below = from_half(low), above = high == 0x7c00 ? 65536.0 : from_half(high);
  const double to_below = magnitude - below, to_above = above - magnitude;
  const bool up = to_above < to_below || (to_above == to_below && (low & 1));
  return static_cast<uint16_t>(sign | (up ? high : low));
}

inline uint16_t to_bf16(float x) {
  if (std::isnan(x)) return 0x7fc0;
  uint32_t u;
  std::memcpy(&u, &x, 4);
  u += 0x7fff + ((u >> 16) & 1);
  return static_cast<uint16_t>(u >> 16);
}

inline float from_bf16(uint16_t b) {
  const uint32_t u = uint32_t{b} << 16;
  float x;
  std::memcpy(&x, &u, 4);
  return x;
}

// An array of a float Elem that reads and writes as double.
class Array {
 public:
  Array(Elem type, int64_t n) : type_(type), n_(n), bytes_(elem_size(type) * static_cast<size_t>(n) + 1) {}
  Array(Elem type, const std::vector<double>& values) : Array(type, static_cast<int64_t>(values.size())) {
    for (int64_t i = 0; i < n_; ++i) set(i, values[static_cast<size_t>(i)]);
  }

  Elem type() const { return type_; }
  int64_t size() const { return n_; }
  void* data() { return bytes_.data(); }
  const void* data() const { return bytes_.data(); }
  void* at(int64_t i) { return bytes_.data() + elem_size(type_) * static_cast<size_t>(i); }
  const void* at(int64_t i) const { return bytes_.data() + elem_size(type_) * static_cast<size_t>(i); }

  double operator[](int64_t i) const {
    switch (type_) {
      case Elem::F64:
        return read<double>(i);
      case Elem::F32:
        return read<float>(i);
      case Elem::BF16:
        return from_bf16(read<uint16_t>(i));
      case Elem::F16:
        return from_half(read<uint16_t>(i));
      case Elem::I64:
        return static_cast<double>(read<int64_t>(i));
      case Elem::I32:
        return read<int32_t>(i);
      case Elem::I16:
        return read<int16_t>(i);
      case Elem::I8:
        return read<int8_t>(i);
      default:
        return read<uint8_t>(i);
    }
  }
  void set(int64_t i, double v) {
    switch (type_) {
      case Elem::F64:
        return write<double>(i, v);
      case Elem::F32:
        return write<float>(i, static_cast<float>(v));
      case Elem::BF16:
        return write<uint16_t>(i, to_bf16(static_cast<float>(v)));
      case Elem::F16:
        return write<uint16_t>(i, to_half(static_cast<float>(v)));
      case Elem::I64:
        return write<int64_t>(i, static_cast<int64_t>(v));
      case Elem::I32:
        return write<int32_t>(i, static_cast<int32_t>(v));
      case Elem::I16:
        return write<int16_t>(i, static_cast<int16_t>(v));
      case Elem::I8:
        return write<int8_t>(i, static_cast<int8_t>(v));
      default:
        return write<uint8_t>(i, static_cast<uint8_t>(v));
    }
  }
  std::vector<double> values() const {
    std::vector<double> v;
    for (int64_t i = 0; i < n_; ++i) v.push_back((*this)[i]);
    return v;
  }
  bool same_bits(const Array& other) const { return bytes_ == other.bytes_; }

 private:
  template <class T>
  T read(int64_t i) const {
    T v;
    std::memcpy(&v, at(i), sizeof(T));
    return v;
  }
  template <class T>
  void write(int64_t i, T v) {
    std::memcpy(at(i), &v, sizeof(T));
  }

  Elem type_;
  int64_t n_;
  std::vector<char> bytes_;
};

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  double normal() { return normal_(engine_); }
  int64_t below(int64_t n) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n)); }
  Array array(Elem type, int64_t n, double scale = 1) {
    Array a(type, n);
    for (int64_t i = 0; i < n; ++i) a.set(i, scale * normal());
    return a;
  }

 private:
  std::mt19937_64 engine_;
  std::normal_distribution<double> normal_;
};

// |got - want| <= tolerance * (1 + |want|) everywhere; NaN and infinities must agree.
inline void expect_close(const Array& got, const std::vector<double>& want, double tolerance,
                         const char* what) {
  ASSERT_EQ(static_cast<size_t>(got.size()), want.size()) << what;
  for (int64_t i = 0; i < got.size(); ++i) {
    const double g = got[i], w = want[static_cast<size_t>(i)];
    if (std::isnan(w) && std::isnan(g)) continue;
    if (g == w) continue;
    ASSERT_LE(std::fabs(g - w), tolerance * (1 + std::fabs(w)))
        << what << " differs at " << i << " of " << got.size() << ": " << g << ", expected " << w;
  }
}

}  // namespace vesta::cpu::testing
