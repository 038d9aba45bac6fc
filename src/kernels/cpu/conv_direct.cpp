// Plain loops: one sum for each element of the result, over channels and then taps in order. Integers add up in 64 bits
// and wrap when they are stored; half types in float.
#include "kernels/cpu/conv_direct.h"

#include <vesta/error.h>

#include <algorithm>

#include "base/thread_pool.h"
#include "kernels/cpu/gemm_half.h"

namespace vesta::cpu {
namespace {

constexpr int64_t kWork = 32768;  // products per parallel chunk

template <class T>
struct Number {
  using Sum = uint64_t;  // wraps without undefined behaviour
  static Sum load(T v) { return static_cast<Sum>(static_cast<int64_t>(v)); }
  static T store(Sum s) { return static_cast<T>(s); }
};
template <>
struct Number<float> {
  using Sum = float;
  static float load(float v) { return v; }
  static float store(float s) { return s; }
};
template <>
struct Number<double> {
  using Sum = double;
  static double load(double v) { return v; }
  static double store(double s) { return s; }
};
template <>
struct Number<Half> {
  using Sum = float;
  static float load(Half v) { return f16_to_float(v.bits); }
  static Half store(float s) { return {float_to_f16(s)}; }
};
template <>
struct Number<Bf16> {
  using Sum = float;
  static float load(Bf16 v) { return bf16_to_float(v.bits); }
  static Bf16 store(float s) { return {float_to_bf16(s)}; }
};

template <class F>
void with_type(Elem type, F f) {
  switch (type) {
    case Elem::F32:
      return f(float{});
    case Elem::F64:
      return f(double{});
    case Elem::BF16:
      return f(Bf16{});
    case Elem::F16:
      return f(Half{});
    case Elem::I64:
      return f(int64_t{});
    case Elem::I32:
      return f(int32_t{});
    case Elem::I16:
      return f(int16_t{});
    case Elem::I8:
      return f(int8_t{});
    case Elem::U8:
      return f(uint8_t{});
    case Elem::Bool:
      break;
  }
  throw TypeError("convolution: does not take bool tensors");
}

// The range of taps k of one dim for which 0 <= at - pad + k * dilation < n. (Forward: `at` is the output times stride.)
struct Range {
  int64_t begin, end;
};
Range taps_inside(int64_t at, int64_t pad, int64_t dilation, int64_t kernel, int64_t n) {
  const int64_t first = at - pad,
                behind = n - first;  // position of tap 0; taps with k * dilation < behind are before the end
  const int64_t begin = first >= 0 ? 0 : (-first + dilation - 1) / dilation;
  const int64_t end = behind <= 0 ? 0 : std::min(kernel, (behind + dilation - 1) / dilation);
  return {begin, std::max(begin, end)};
}

int64_t grain(int64_t products) { return std::max<int64_t>(1, kWork / std::max<int64_t>(1, products)); }

struct Place {
  int64_t at[3];
};
Place place_of(int64_t flat, const int64_t* sizes) {
  return {{flat / (sizes[1] * sizes[2]), flat / sizes[2] % sizes[1], flat % sizes[2]}};
}

}  // namespace

void conv_direct_forward(Elem type, const ConvShape& s, const void* x_, const void* w_, const void* bias_,
                         void* y_) {
  with_type(type, [&]<class T>(T) {
    using N = Number<T>;
    const T *x = static_cast<const T*>(x_), *w = static_cast<const T*>(w_),
            *bias = static_cast<const T*>(bias_);
    T* y = static_cast<T*>(y_);
    const int64_t area = s.out_numel(), volume = s.in_numel(), taps = s.taps(), xg = s.x_group(),
                  yg = s.y_group();
    parallel_for(0, s.batch * s.y_channels * area, grain(xg * taps), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t n = i / area / s.y_channels, c = i / area % s.y_channels;
        const Place o = place_of(i % area, s.out);
        Range r[3];
        for (int d = 0; d < 3; ++d)
          r[d] = taps_inside(o.at[d] * s.stride[d], s.pad[d], s.dilation[d], s.kernel[d], s.in[d]);
        typename N::Sum sum = bias ? N::load(bias[c]) : typename N::Sum{};
        for (int64_t j = 0; j < xg; ++j) {
          const T* plane = x + (n * s.x_channels + c / yg * xg + j) * volume;
          const T* filter = w + (c * xg + j) * taps;
          for (int64_t a = r[0].begin; a < r[0].end; ++a)
            for (int64_t b = r[1].begin; b < r[1].end; ++b)
              for (int64_t e = r[2].begin; e < r[2].end; ++e) {
                const int64_t at0 = o.at[0] * s.stride[0] - s.pad[0] + a * s.dilation[0];
                const int64_t at1 = o.at[1] * s.stride[1] - s.pad[1] + b * s.dilation[1];
                const int64_t at2 = o.at[2] * s.stride[2] - s.pad[2] + e * s.dilation[2];
                sum += N::load(plane[(at0 * s.in[1] + at1) * s.in[2] + at2]) *
                       N::load(filter[(a * s.kernel[1] + b) * s.kernel[2] + e]);
              }
        }
        y[i] = N::store(sum);
      }
    });
  });
}

void conv_direct_backward_data(Elem type, const ConvShape& s, const void* y_, const void* w_,
                               const void* bias_, void* x_) {
  with_type(type, [&]<class T>(T) {
    using N = Number<T>;
    const T *y = static_cast<const T*>(y_), *w = static_cast<const T*>(w_),
            *bias = static_cast<const T*>(bias_);
    T* x = static_cast<T*>(x_);
    const int64_t area = s.out_numel(), volume = s.in_numel(), taps = s.taps(), xg = s.x_group(),
                  yg = s.y_group();
    parallel_for(0, s.batch * s.x_channels * volume, grain(yg * taps), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t n = i / volume / s.x_channels, c = i / volume % s.x_channels;
        const Place p = place_of(i % volume, s.in);
        typename N::Sum sum = bias ? N::load(bias[c]) : typename N::Sum{};
        for (int64_t j = 0; j < yg; ++j) {
          const int64_t channel = c / xg * yg + j;
          const T* plane = y + (n * s.y_channels + channel) * area;
          const T* filter = w + (channel * xg + c % xg) * taps;
          for (int64_t t = 0; t < taps; ++t) {
            const Place k = place_of(t, s.kernel);
            int64_t at = 0;
            bool inside = true;
            for (int d = 0; d < 3; ++d) {
              const int64_t v = p.at[d] + s.pad[d] - k.at[d] * s.dilation[d];
              inside &= v >= 0 && v % s.stride[d] == 0 && v / s.stride[d] < s.out[d];
              at = at * s.out[d] + v / s.stride[d];
            }
            if (inside) sum += N::load(plane[at]) * N::load(filter[t]);
          }
        }
        x[i] = N::store(sum);
      }
    });
  });
}

void conv_direct_backward_weight(Elem type, const ConvShape& s, const void* y_, const void* x_, void* w_) {
  with_type(type, [&]<class T>(T) {
    using N = Number<T>;
    const T *y = static_cast<const T*>(y_), *x = static_cast<const T*>(x_);
    T* w = static_cast<T*>(w_);
    const int64_t area = s.out_numel(), volume = s.in_numel(), taps = s.taps(), xg = s.x_group(),
                  yg = s.y_group();
    parallel_for(0, s.y_channels * xg * taps, grain(s.batch * area), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t c = i / taps / xg, j = i / taps % xg;
        const Place k = place_of(i % taps, s.kernel);
        // Outputs o with 0 <= o * stride - pad + k * dilation < in.
        Range r[3];
        for (int d = 0; d < 3; ++d)
          r[d] = taps_inside(k.at[d] * s.dilation[d], s.pad[d], s.stride[d], s.out[d], s.in[d]);
        typename N::Sum sum{};
        for (int64_t n = 0; n < s.batch; ++n) {
          const T* dy = y + (n * s.y_channels + c) * area;
          const T* plane = x + (n * s.x_channels + c / yg * xg + j) * volume;
          for (int64_t a = r[0].begin; a < r[0].end; ++a)
            for (int64_t b = r[1].begin; b < r[1].end; ++b)
              for (int64_t e = r[2].begin; e < r[2].end; ++e) {
                const int64_t at0 = a * s.stride[0] - s.pad[0] + k.at[0] * s.dilation[0];
                const int64_t at1 = b * s.stride[1] - s.pad[1] + k.at[1] * s.dilation[1];
                const int64_t at2 = e * s.stride[2] - s.pad[2] + k.at[2] * s.dilation[2];
                sum += N::load(dy[(a * s.out[1] + b) * s.out[2] + e]) *
                       N::load(plane[(at0 * s.in[1] + at1) * s.in[2] + at2]);
              }
        }
        w[i] = N::store(sum);
      }
    });
  });
}

}  // namespace vesta::cpu
