#pragma once
// Bilinear sampling of images with several channels: the commonest case, with channels as vector lanes. The image is
// brought to channels last, so that a tap is one load for 16 channels instead of 16 gathers; taps of 64 points are worked
// out at once, without branches. A tap outside of the image reads zeros, since a weight of zero would make NaN of an
// element that is not finite. Included by grid_sample.cpp only.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/grid_sample.h"
#include "kernels/cpu/isa/gemm_micro.h"
#include "kernels/cpu/isa/simd.h"
#include "kernels/cpu/scratch.h"

namespace vesta::cpu::VESTA_ISA {
namespace {

// to[j * to_row + i] = from[i * from_row + j], i < rows, j < columns.
template <class A>
void transpose_block(const A* from, int64_t from_row, int64_t rows, int64_t columns, A* to, int64_t to_row) {
  using Part = typename Vec<A>::Part;
  constexpr int64_t L = sizeof(Part) / sizeof(A);
  const int64_t whole_rows = rows / L * L, whole_columns = columns / L * L;
  for (int64_t i = 0; i < whole_rows; i += L)
    for (int64_t j = 0; j < whole_columns; j += L) {
      Part x[L];
      for (int64_t r = 0; r < L; ++r) std::memcpy(&x[r], from + (i + r) * from_row + j, sizeof(Part));
      transpose<int(L)>(x);
      for (int64_t r = 0; r < L; ++r) std::memcpy(to + (j + r) * to_row + i, &x[r], sizeof(Part));
    }
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = i < whole_rows ? whole_columns : 0; j < columns; ++j)
      to[j * to_row + i] = from[i * from_row + j];
}

template <class A>
class Bilinear {
 public:
  static constexpr int64_t kBlock = 64;  // points at a time

  explicit Bilinear(const GridSample& g)
      : g_(g),
        width_(g.size[2]),
        pixels_(g.size[1] * g.size[2]),
        pitch_((g.c + kLanes - 1) / kLanes * kLanes),
        blocks_((g.points + kBlock - 1) / kBlock),
        zeros_(size_t(pitch_), A(0)) {}

  // Few points of a large image do not pay for bringing it to channels last.
  static bool takes(const GridSample& g) {
    return g.mode == GridMode::Bilinear && g.dims == 2 && g.padding != GridPadding::Reflection && g.c >= 8 &&
           g.n > 0 && g.size[1] * g.size[2] < (1 << 30) && g.points >= g.size[1] * g.size[2] / 4;
  }

  void forward(const A* x, const A* grid, A* y) {
    const SharedScratch image(image_bytes());
    channels_last(x, static_cast<A*>(image.data()));
    parallel_for(0, g_.n * blocks_, grain(4), [&](int64_t begin, int64_t end) {
      A* sums = static_cast<A*>(thread_scratch(size_t(kBlock * pitch_) * sizeof(A)));
      Taps t;
      for (int64_t u = begin; u < end; ++u) {
        const int64_t n = u / blocks_, first = u % blocks_ * kBlock,
                      points = std::min(kBlock, g_.points - first);
        find(grid + (n * g_.points + first) * 2, points, t);
        const A* from = static_cast<const A*>(image.data()) + n * pixels_ * pitch_;
        for (int64_t p = 0; p < points; ++p) {
          const A* tap[4];
          pointers(from, t, p, tap);
          for (int64_t c = 0; c < pitch_; c += kLanes) {
            Vec<A> sum = Vec<A>::set1(t.weight[0][p]) * load(tap[0] + c);
            for (int k = 1; k < 4; ++k) sum = fma(Vec<A>::set1(t.weight[k][p]), load(tap[k] + c), sum);
            store(sums + p * pitch_ + c, sum);
          }
        }
        transpose_block(sums, pitch_, points, g_.c, y + n * g_.c * g_.points + first, g_.points);
      }
    });
  }

  // 16 channels of an image are the unit: taps of different points meet.
  void input_gradient(const A* dy, const A* grid, A* dx) {
    const int64_t slices = pitch_ / kLanes;
    parallel_for(0, g_.n * slices, 1, [&](int64_t begin, int64_t end) {
      const size_t image_size = size_t(pixels_ + 1) * kLanes;  // the last pixel takes what falls outside
      A* image = static_cast<A*>(thread_scratch((image_size + kBlock * kLanes) * sizeof(A)));
      A* d = image + image_size;
      Taps t;
      for (int64_t u = begin; u < end; ++u) {
        const int64_t n = u / slices, c0 = u % slices * kLanes, channels = std::min(kLanes, g_.c - c0);
        std::fill(image, image + image_size + kBlock * kLanes, A(0));
        for (int64_t first = 0; first < g_.points; first += kBlock) {
          const int64_t points = std::min(kBlock, g_.points - first);
          find(grid + (n * g_.points + first) * 2, points, t);
          transpose_block(dy + (n * g_.c + c0) * g_.points + first, g_.points, channels, points, d, kLanes);
          for (int64_t p = 0; p < points; ++p) {
            const Vec<A> v = load(d + p * kLanes);
            for (int k = 0; k < 4; ++k) {
              const int64_t at = t.at[k][p] < 0 ? pixels_ : t.at[k][p];
              A* to = image + at * kLanes;
              store(to, fma(Vec<A>::set1(t.weight[k][p]), v, load(to)));
            }
          }
        }
        transpose_block(image, kLanes, pixels_, channels, dx + (n * g_.c + c0) * pixels_, pixels_);
      }
    });
  }

  void grid_gradient(const A* dy, const A* x, const A* grid, A* dgrid) {
    const SharedScratch image(image_bytes());
    channels_last(x, static_cast<A*>(image.data()));
    parallel_for(0, g_.n * blocks_, grain(8), [&](int64_t begin, int64_t end) {
      A* d = static_cast<A*>(thread_scratch(size_t(kBlock * pitch_) * sizeof(A)));
      std::fill(d, d + kBlock * pitch_, A(0));
      Taps t;
      for (int64_t u = begin; u < end; ++u) {
        const int64_t n = u / blocks_, first = u % blocks_ * kBlock,
                      points = std::min(kBlock, g_.points - first);
        find(grid + (n * g_.points + first) * 2, points, t);
        transpose_block(dy + n * g_.c * g_.points + first, g_.points, g_.c, points, d, pitch_);
        const A* from = static_cast<const A*>(image.data()) + n * pixels_ * pitch_;
        A* to = dgrid + (n * g_.points + first) * 2;
        for (int64_t p = 0; p < points; ++p) {
          const A* tap[4];
          pointers(from, t, p, tap);
          Vec<A> sum_x = Vec<A>::zero(), sum_y = Vec<A>::zero();
          for (int64_t c = 0; c < pitch_; c += kLanes) {
            const Vec<A> v = load(d + p * pitch_ + c);
            for (int k = 0; k < 4; ++k) {
              const Vec<A> product = v * load(tap[k] + c);
              sum_x = fma(Vec<A>::set1(t.slope_x[k][p]), product, sum_x);
              sum_y = fma(Vec<A>::set1(t.slope_y[k][p]), product, sum_y);
            }
          }
          to[2 * p] = sum_lanes(sum_x);
          to[2 * p + 1] = sum_lanes(sum_y);
        }
      }
    });
  }

 private:
  static constexpr int64_t kLanes = Vec<A>::kLanes;
  // By corner (high left, high right, low left, low right) and point: pixel or -1, weight and its derivatives.
  struct Taps {
    int32_t at[4][kBlock];
    A weight[4][kBlock], slope_x[4][kBlock], slope_y[4][kBlock];
  };

  size_t image_bytes() const { return size_t(g_.n * pixels_ * pitch_) * sizeof(A) + 64; }
  int64_t grain(int64_t visits) const {
    return std::max<int64_t>(1, 16384 / (kBlock * pitch_ * visits / kLanes));
  }

  void channels_last(const A* x, A* image) const {
    constexpr int64_t kPixels = 256;
    const int64_t parts = (pixels_ + kPixels - 1) / kPixels;
    parallel_for(0, g_.n * parts, std::max<int64_t>(1, 16 / pitch_), [&](int64_t begin, int64_t end) {
      for (int64_t u = begin; u < end; ++u) {
        const int64_t n = u / parts, p0 = u % parts * kPixels, p1 = std::min(pixels_, p0 + kPixels);
        const A* from = x + n * g_.stride_n;
        A* to = image + (n * pixels_ + p0) * pitch_;
        if (g_.c < pitch_) std::fill(to, to + (p1 - p0) * pitch_, A(0));
        if (g_.stride[2] == 1 && g_.stride[1] == width_) {
          transpose_block(from + p0, g_.stride_c, g_.c, p1 - p0, to, pitch_);
          continue;
        }
        for (int64_t p = p0; p < p1; ++p, to += pitch_) {
          const A* pixel = from + p / width_ * g_.stride[1] + p % width_ * g_.stride[2];
          for (int64_t c = 0; c < g_.c; ++c) to[c] = pixel[c * g_.stride_c];
        }
      }
    });
  }

  void pointers(const A* image, const Taps& t, int64_t p, const A* (&tap)[4]) const {
    for (int k = 0; k < 4; ++k) tap[k] = t.at[k][p] < 0 ? zeros_.data() : image + t.at[k][p] * pitch_;
  }

  // A coordinate's pixel; and its derivative in the grid's coordinate.
  void position(A v, int64_t size, A& at, A& slope) const {
    const A n = A(size);
    at = g_.align_corners ? (v + 1) / 2 * (n - 1) : ((v + 1) * n - 1) / 2;
    slope = g_.align_corners ? (n - 1) / 2 : n / 2;
    if (g_.padding == GridPadding::Border) {
      const bool inside = at > 0 && at < n - 1;
      at = at > 0 ? (at < n - 1 ? at : n - 1) : A(0);  // NaN: 0
      slope = inside ? slope : A(0);
    }
  }

  void find(const A* grid, int64_t points, Taps& t) const {
    const int32_t height = int32_t(g_.size[1]), width = int32_t(g_.size[2]);
    for (int64_t p = 0; p < points; ++p) {
      A x, y, x_slope, y_slope;
      position(grid[2 * p], g_.size[2], x, x_slope);
      position(grid[2 * p + 1], g_.size[1], y, y_slope);
      // Far outside, and NaN: -2, of which both neighbours are outside.
      const bool near = x > A(-2) && x < A(width) + 1 && y > A(-2) && y < A(height) + 1;
      x = near ? x : A(-2);
      y = near ? y : A(-2);
      const A x_floor = std::floor(x), y_floor = std::floor(y);
      const A right = x - x_floor, left = 1 - right, low = y - y_floor, high = 1 - low;
      const int32_t x0 = int32_t(x_floor), y0 = int32_t(y_floor);
      const bool has_left = x0 >= 0 && x0 < width, has_right = x0 >= -1 && x0 + 1 < width;
      const bool has_high = y0 >= 0 && y0 < height, has_low = y0 >= -1 && y0 + 1 < height;
      const int32_t at = y0 * width + x0;
      const auto corner = [&](int k, bool inside, int32_t pixel, A weight, A slope_x, A slope_y) {
        t.at[k][p] = inside ? pixel : -1;
        t.weight[k][p] = inside ? weight : A(0);
        t.slope_x[k][p] = inside ? slope_x : A(0);
        t.slope_y[k][p] = inside ? slope_y : A(0);
      };
      corner(0, has_high & has_left, at, high * left, -x_slope * high, -y_slope * left);
      corner(1, has_high & has_right, at + 1, high * right, x_slope * high, -y_slope * right);
      corner(2, has_low & has_left, at + width, low * left, -x_slope * low, y_slope * left);
      corner(3, has_low & has_right, at + width + 1, low * right, x_slope * low, y_slope * right);
    }
  }

  const GridSample& g_;
  int64_t width_, pixels_, pitch_, blocks_;  // pitch: elements from one pixel's channels to the next's
  std::vector<A> zeros_;
};

}  // namespace
}  // namespace vesta::cpu::VESTA_ISA
