// The orders and formulas of libtorch's CPU random kernels over one Mersenne Twister, derived from recorded values of
// PyTorch 2.14.1 (tests/ops/libtorch_random_test.cpp): which word serves which element, and what is made of it.
#include "ops/libtorch_random.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/storage.h"
#include "kernels/cpu/copy.h"
#include "vesta/ops.h"

namespace vesta::libtorch_random {
namespace {

using cpu::Distribution;
constexpr double kPi = 3.14159265358979323846;

// The tensor with its dims in the order in which its memory lies.
Tensor in_memory_order(const Tensor& t, const Tensor& order) {
  if (order.is_contiguous()) return t;
  std::vector<int64_t> dims(size_t(t.dim()));
  std::iota(dims.begin(), dims.end(), int64_t(0));
  std::stable_sort(dims.begin(), dims.end(), [&](int64_t a, int64_t b) { return order.stride(a) > order.stride(b); });
  return t.permute(dims);
}

// Calls draw() for each element of `out` in turn; Made is what it gives.
template <class Made, class Draw>
void fill_serially(const Tensor& out, const Tensor& order, DType made, Draw draw) {
  const bool direct = out.is_contiguous() && order.is_contiguous() && out.dtype() == made;
  Tensor target = direct ? out : in_memory_order(out.detach(), order);
  Tensor buffer = direct ? out : empty_cpu(target.sizes(), made);
  Made* to = static_cast<Made*>(buffer.data_ptr());
  const int64_t n = buffer.numel();
  for (int64_t i = 0; i < n; ++i) to[i] = draw();
  if (!direct) cpu::copy_elements(target, buffer);
}

// 16 uniform numbers become 16 normal ones: numbers j and j + 8 are a Box-Muller pair.
template <class R>
void normal_16(R* data, R mean, R std) {
  for (int j = 0; j < 8; ++j) {
    // A number that a half type rounded up to 1 would give log(0).
    const R u1 = std::max(R(1) - data[j], std::numeric_limits<R>::min()), u2 = data[j + 8];
    const R radius = std::sqrt(R(-2) * std::log(u1)), theta = R(2 * kPi * double(u2));
    data[j] = radius * std::cos(theta) * std + mean;
    data[j + 8] = radius * std::sin(theta) * std + mean;
  }
}
// libtorch's way for contiguous tensors of 16 elements and more: the last 16 are drawn anew where n is no multiple.
template <class R, class Uniform>
void normal_blocks(R* data, int64_t n, R mean, R std, Uniform uniform) {
  for (int64_t i = 0; i < n; ++i) data[i] = uniform();
  for (int64_t i = 0; i + 16 <= n; i += 16) normal_16(data + i, mean, std);
  if (n % 16) {
    data += n - 16;
    for (int64_t i = 0; i < 16; ++i) data[i] = uniform();
    normal_16(data, mean, std);
  }
}
void fill_normal(const Tensor& out, Mt19937& m, double mean, double std) {
  if (out.numel() < 16 || !out.is_contiguous())
    return fill_serially<double>(out, out, kDouble, [&] { return m.normal() * std + mean; });
  if (out.dtype() == kDouble)
    return normal_blocks(out.data_ptr<double>(), out.numel(), mean, std, [&] { return m.uniform_double(); });
  if (out.dtype() == kFloat)
    return normal_blocks(out.data_ptr<float>(), out.numel(), float(mean), float(std), [&] { return m.uniform_float(); });
  // Half types round the uniform numbers too.
  Tensor buffer = empty_cpu(out.sizes(), kFloat);
  const bool half = out.dtype() == kHalf;
  normal_blocks(buffer.data_ptr<float>(), out.numel(), float(mean), float(std), [&] {
    const float u = m.uniform_float();
    return half ? float(Half(u)) : float(BFloat16(u));
  });
  cpu::copy_elements(out, buffer);
}

// One multiplication with addition, as PyTorch's compiler makes it.
double scaled(double u, double from, double to) { return std::fma(u, to - from, from); }
float scaled(float u, float from, float to) { return std::fma(u, to - from, from); }

// libtorch draws 64 bits for ranges from here on.
constexpr uint64_t kWideRange = uint64_t(1) << 28;

}  // namespace

void fill(const Tensor& t, Distribution d, Mt19937& m, double a, double b) {
  const std::lock_guard lock(m.mutex);
  const Tensor out = t.is_complex() ? view_as_real(t.detach()) : t;
  switch (d) {
    case Distribution::Uniform:
      if (out.dtype() == kDouble)
        return fill_serially<double>(out, out, kDouble, [&] { return scaled(m.uniform_double(), a, b); });
      return fill_serially<float>(out, out, kFloat, [&] { return scaled(m.uniform_float(), float(a), float(b)); });
    case Distribution::Normal: return fill_normal(out, m, a, t.is_complex() ? b / std::sqrt(2.0) : b);
    case Distribution::LogNormal:
      return fill_serially<double>(out, out, kDouble, [&] { return std::exp(m.normal() * b + a); });
    case Distribution::Exponential:
      return fill_serially<double>(out, out, kDouble, [&] { return -std::log1p(-m.uniform_double()) / a; });
    case Distribution::Cauchy:
      return fill_serially<double>(out, out, kDouble, [&] { return a + b * std::tan(kPi * (m.uniform_double() - 0.5)); });
    case Distribution::Geometric:
      return fill_serially<double>(out, out, kDouble, [&] {
        // p = 1 gives 1 at once; a uniform 0 would give infinity.
        return std::max(1.0, std::ceil(std::log(std::max(m.uniform_double(), 0x1p-54)) / std::log1p(-a)));
      });
  }
}

void fill_integers(const Tensor& out, Mt19937& m, int64_t low, uint64_t range) {
  const std::lock_guard lock(m.mutex);
  const auto base = uint64_t(low);
  if (range != 0 && range < kWideRange)
    return fill_serially<int64_t>(out, out, kLong, [&] { return int64_t(base + m.random() % range); });
  fill_serially<int64_t>(out, out, kLong, [&] {
    const uint64_t word = m.random64();
    return int64_t(base + (range ? word % range : word));
  });
}
void fill_all_integers(const Tensor& out, Mt19937& m) {
  const std::lock_guard lock(m.mutex);
  // How many integers there are: one more than the largest.
  const auto narrow = [&](uint64_t count) {
    fill_serially<int64_t>(out, out, kLong, [&m, count] { return int64_t(m.random() % count); });
  };
  const auto wide = [&](uint64_t count) {
    fill_serially<int64_t>(out, out, kLong, [&m, count] { return int64_t(m.random64() % count); });
  };
  switch (out.dtype()) {
    case DType::Bool: return narrow(2);
    case DType::UInt8: return narrow(256);
    case DType::Int8: return narrow(128);
    case DType::Int16: return narrow(32768);
    case DType::Int32: return narrow(uint64_t(1) << 31);
    case DType::Int64: return wide(uint64_t(1) << 63);
    case DType::Float16: return narrow((1 << 11) + 1);
    case DType::BFloat16: return narrow((1 << 8) + 1);
    case DType::Float32: return narrow((1 << 24) + 1);
    default: return wide((uint64_t(1) << 53) + 1);
  }
}

void fill_bernoulli(const Tensor& out, const Tensor& order, Mt19937& m, double p) {
  const std::lock_guard lock(m.mutex);
  fill_serially<bool>(out, order, kBool, [&] { return m.uniform_double() < p; });
}
void fill_bernoulli(const Tensor& out, const Tensor& p, Mt19937& m) {
  const std::lock_guard lock(m.mutex);
  const Tensor probabilities = in_memory_order(p, out).contiguous();
  if (p.dtype() == kDouble) {
    const auto* x = probabilities.data_ptr<double>();
    return fill_serially<bool>(out, out, kBool, [&] { return m.uniform_double() < *x++; });
  }
  const auto* x = probabilities.data_ptr<float>();
  fill_serially<bool>(out, out, kBool, [&] { return m.uniform_float() < *x++; });
}

void fill_exponential(double* out, int64_t n, Mt19937& m) {
  const std::lock_guard lock(m.mutex);
  for (int64_t i = 0; i < n; ++i) out[i] = -std::log1p(-m.uniform_double());
}
void fill_uniform(double* out, int64_t n, Mt19937& m) {
  const std::lock_guard lock(m.mutex);
  for (int64_t i = 0; i < n; ++i) out[i] = m.uniform_double();
}

void permute(int64_t* out, int64_t n, Mt19937& m) {
  const std::lock_guard lock(m.mutex);
  std::iota(out, out + n, int64_t(0));
  // From 2^32 / 20 elements on, 32 bits would favour some.
  const bool wide = uint64_t(n) >= 0xffffffffu / 20;
  for (int64_t i = 0; i + 1 < n; ++i) {
    const uint64_t word = wide ? m.random64() : m.random();
    std::swap(out[i], out[i + int64_t(word % uint64_t(n - i))]);
  }
}

cpu::RandomStream philox_stream(Mt19937& m) {
  const std::lock_guard lock(m.mutex);
  return {m.random64(), 0};
}

}  // namespace vesta::libtorch_random
