// Grid sampling. Every mode comes down to a few taps for a point: input positions with a weight and the weight's
// derivative in each coordinate; taps outside of the input are left out. Forward and both gradients only walk taps.
// Coordinates follow PyTorch: pixel = ((x + 1) * size - 1) / 2, or (x + 1) / 2 * (size - 1) with align_corners.
// A NaN coordinate reads nothing with zero padding and element 0 otherwise. Images with several channels go another way
// in their commonest case: grid_sample_bilinear.h.
#include "kernels/cpu/grid_sample.h"

#include <algorithm>
#include <cmath>

#include "base/thread_pool.h"
#include "kernels/cpu/isa/grid_sample_bilinear.h"

namespace vesta::cpu::VESTA_ISA {
namespace {

constexpr int64_t kWork = 8192;        // tap visits a parallel chunk
constexpr int64_t kChannelBlock = 16;  // channels of an input gradient that one chunk owns
constexpr int64_t kPoints = 64;        // points whose taps are found before the channels are walked
constexpr int kMaxTaps = 16;
constexpr double kCubic = -0.75;  // the cubic kernel's parameter, as in PyTorch's bicubic

template <class A>
struct Tap {
  int64_t at[3];  // d, h, w
  A weight;
  A slope[3];  // d weight / d grid coordinate, x first
};

template <class A>
struct Coordinate {
  A value, slope;  // pixel, and its derivative in the grid's coordinate
};

template <class A>
Coordinate<A> clip(Coordinate<A> c, int64_t size) {
  if (!(c.value > 0)) return {A(0), A(0)};
  const A last = A(size - 1);
  if (c.value >= last) return {last, A(0)};
  return c;
}
// Reflection about low / 2 and high / 2 until inside.
template <class A>
Coordinate<A> reflect(Coordinate<A> c, int64_t twice_low, int64_t twice_high) {
  if (twice_low == twice_high) return {A(0), A(0)};
  const A low = A(twice_low) / 2, span = A(twice_high - twice_low) / 2;
  A v = c.value - low, sign = 1;
  if (v < 0) v = -v, sign = -1;
  const A rest = std::fmod(v, span);
  const bool even = std::fmod(std::floor(v / span), A(2)) == 0;
  return even ? Coordinate<A>{rest + low, c.slope * sign} : Coordinate<A>{span - rest + low, -c.slope * sign};
}
template <class A>
Coordinate<A> pad(Coordinate<A> c, int64_t size, const GridSample& g) {
  if (g.padding == GridPadding::Zeros) return c;
  if (g.padding == GridPadding::Reflection)
    c = g.align_corners ? reflect(c, 0, 2 * (size - 1)) : reflect(c, -1, 2 * size - 1);
  return clip(c, size);
}
template <class A>
Coordinate<A> pixel(A x, int64_t size, const GridSample& g) {
  if (g.align_corners) return {(x + 1) / 2 * A(size - 1), A(size - 1) / 2};
  return {((x + 1) * A(size) - 1) / 2, A(size) / 2};
}
// Whether any of the taps around v can be inside; also keeps the conversion to an integer defined.
template <class A>
bool near(A v, int64_t size) {
  return v > A(-4) && v < A(size) + 4;
}

// The cubic weights of the elements at -1, 0, 1 and 2 from floor, and their derivatives in t.
template <class A>
void cubic(A t, A* w, A* slope) {
  const A a = A(kCubic);
  auto near_part = [&](A x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  auto far_part = [&](A x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  auto near_slope = [&](A x) { return (3 * (a + 2) * x - 2 * (a + 3)) * x; };
  auto far_slope = [&](A x) { return (3 * a * x - 10 * a) * x + 8 * a; };
  w[0] = far_part(t + 1), w[1] = near_part(t), w[2] = near_part(1 - t), w[3] = far_part(2 - t);
  slope[0] = far_slope(t + 1), slope[1] = near_slope(t), slope[2] = -near_slope(1 - t),
  slope[3] = -far_slope(2 - t);
}

// Images: the same as below with the loops written out.
template <class A>
int taps_bilinear(const A* point, const GridSample& g, Tap<A>* taps) {
  const Coordinate<A> x = pad(pixel(point[0], g.size[2], g), g.size[2], g);
  const Coordinate<A> y = pad(pixel(point[1], g.size[1], g), g.size[1], g);
  if (!near(x.value, g.size[2]) || !near(y.value, g.size[1])) return 0;
  const A x_floor = std::floor(x.value), y_floor = std::floor(y.value);
  const int64_t x0 = int64_t(x_floor), y0 = int64_t(y_floor);
  const A right = x.value - x_floor, left = 1 - right, low = y.value - y_floor, high = 1 - low;
  const bool has_left = x0 >= 0 && x0 < g.size[2], has_right = x0 >= -1 && x0 + 1 < g.size[2];
  const bool has_high = y0 >= 0 && y0 < g.size[1], has_low = y0 >= -1 && y0 + 1 < g.size[1];
  int n = 0;
  if (has_high && has_left) taps[n++] = {{0, y0, x0}, high * left, {-x.slope * high, -y.slope * left, A(0)}};
  if (has_high && has_right)
    taps[n++] = {{0, y0, x0 + 1}, high * right, {x.slope * high, -y.slope * right, A(0)}};
  if (has_low && has_left) taps[n++] = {{0, y0 + 1, x0}, low * left, {-x.slope * low, y.slope * left, A(0)}};
  if (has_low && has_right)
    taps[n++] = {{0, y0 + 1, x0 + 1}, low * right, {x.slope * low, y.slope * right, A(0)}};
  return n;
}
template <class A>
int taps_linear(const A* point, const GridSample& g, Tap<A>* taps) {
  int64_t base[3] = {0, 0, 0};
  A part[3][2], slope[3][2];
  for (int d = 3 - g.dims; d < 3; ++d) {
    const Coordinate<A> c = pad(pixel(point[2 - d], g.size[d], g), g.size[d], g);
    if (!near(c.value, g.size[d])) return 0;
    const A floor = std::floor(c.value);
    base[d] = int64_t(floor);
    part[d][1] = c.value - floor, part[d][0] = 1 - part[d][1];
    slope[d][0] = -c.slope, slope[d][1] = c.slope;
  }
  int n = 0;
  for (int corner = 0; corner < 1 << g.dims; ++corner) {
    Tap<A> t{{0, 0, 0}, A(1), {A(0), A(0), A(0)}};
    bool inside = true;
    for (int d = 3 - g.dims; d < 3; ++d) {
      const int side = corner >> (2 - d) & 1;
      t.at[d] = base[d] + side;
      inside = inside && t.at[d] >= 0 && t.at[d] < g.size[d];
      t.weight *= part[d][side];
      A s = slope[d][side];
      for (int e = 3 - g.dims; e < 3; ++e)
        if (e != d) s *= part[e][corner >> (2 - e) & 1];
      t.slope[2 - d] = s;
    }
    if (inside) taps[n++] = t;
  }
  return n;
}
template <class A>
int taps_nearest(const A* point, const GridSample& g, Tap<A>* taps) {
  Tap<A> t{{0, 0, 0}, A(1), {A(0), A(0), A(0)}};
  for (int d = 3 - g.dims; d < 3; ++d) {
    const A v = std::nearbyint(pad(pixel(point[2 - d], g.size[d], g), g.size[d], g).value);
    if (!near(v, g.size[d])) return 0;
    t.at[d] = int64_t(v);
    if (t.at[d] < 0 || t.at[d] >= g.size[d]) return 0;
  }
  taps[0] = t;
  return 1;
}
template <class A>
int taps_cubic(const A* point, const GridSample& g, Tap<A>* taps) {
  A w[3][4], slope[3][4], floor[3];
  for (int d = 1; d < 3; ++d) {
    const Coordinate<A> c = pixel(point[2 - d], g.size[d], g);
    if (g.padding == GridPadding::Zeros && !near(c.value, g.size[d])) return 0;
    floor[d] = std::floor(c.value);
    cubic(c.value - floor[d], w[d], slope[d]);
    for (auto& s : slope[d]) s *= c.slope;
  }
  // Each tap is padded on its own.
  auto position = [&](int d, int j) -> int64_t {
    const A v = pad(Coordinate<A>{floor[d] + A(j - 1), A(1)}, g.size[d], g).value;
    return near(v, g.size[d]) ? int64_t(v) : -1;
  };
  int n = 0;
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      Tap<A> t{{0, position(1, i), position(2, j)},
               w[1][i] * w[2][j],
               {w[1][i] * slope[2][j], slope[1][i] * w[2][j], A(0)}};
      if (t.at[1] < 0 || t.at[1] >= g.size[1] || t.at[2] < 0 || t.at[2] >= g.size[2]) continue;
      taps[n++] = t;
    }
  return n;
}
template <class A>
int taps_of(const A* point, const GridSample& g, Tap<A>* taps) {
  switch (g.mode) {
    case GridMode::Nearest:
      return taps_nearest(point, g, taps);
    case GridMode::Bicubic:
      return taps_cubic(point, g, taps);
    default:
      return g.dims == 2 ? taps_bilinear(point, g, taps) : taps_linear(point, g, taps);
  }
}
template <class A>
int64_t place(const Tap<A>& t, const GridSample& g) {
  return t.at[0] * g.stride[0] + t.at[1] * g.stride[1] + t.at[2] * g.stride[2];
}

template <class A, class I>
void forward_typed(const A* x, const A* grid, A* y, const GridSample& g) {
  // A block of points at a time, tap by tap, so that the loop over points is a vector gather. Taps left out repeat
  // another one with a weight that is masked to zero, since the element there may not be finite.
  const int64_t blocks = (g.points + kPoints - 1) / kPoints, work = std::max<int64_t>(1, g.c * 8 * kPoints);
  parallel_for(0, g.n * blocks, std::max<int64_t>(1, kWork / work), [&](int64_t begin, int64_t end) {
    Tap<A> taps[kMaxTaps];
    A weight[kMaxTaps][kPoints], sum[kPoints];
    I at[kMaxTaps][kPoints];
    int counts[kPoints];
    for (int64_t u = begin; u < end; ++u) {
      const int64_t n = u / blocks, first = u % blocks * kPoints,
                    points = std::min(kPoints, g.points - first);
      int most = 0, least = kMaxTaps;
      for (int64_t p = 0; p < points; ++p) {
        counts[p] = taps_of(grid + (n * g.points + first + p) * g.dims, g, taps);
        most = std::max(most, counts[p]);
        least = std::min(least, counts[p]);
        for (int t = 0; t < counts[p]; ++t) weight[t][p] = taps[t].weight, at[t][p] = I(place(taps[t], g));
      }
      for (int64_t p = 0; p < points; ++p)
        for (int t = counts[p]; t < most; ++t) weight[t][p] = 0, at[t][p] = 0;
      const A* image = x + n * g.stride_n;
      A* out = y + n * g.c * g.points + first;
      for (int64_t c = 0; c < g.c; ++c) {
        std::fill(sum, sum + points, A(0));
        for (int t = 0; t < least; ++t)
          for (int64_t p = 0; p < points; ++p) sum[p] += weight[t][p] * image[at[t][p]];
        for (int t = least; t < most; ++t)
          for (int64_t p = 0; p < points; ++p)
            sum[p] += t < counts[p] ? weight[t][p] * image[at[t][p]] : A(0);
        std::copy(sum, sum + points, out);
        image += g.stride_c;
        out += g.points;
      }
    }
  });
}

// Whole images (of some channels) are the unit: taps of different points meet.
template <class A>
void input_gradient(const A* dy, const A* grid, A* dx, const GridSample& g) {
  const int64_t plane = g.size[0] * g.size[1] * g.size[2], blocks = (g.c + kChannelBlock - 1) / kChannelBlock;
  parallel_for(0, g.n * blocks, 1, [&](int64_t begin, int64_t end) {
    Tap<A> taps[kMaxTaps];
    int64_t at[kMaxTaps];
    for (int64_t u = begin; u < end; ++u) {
      const int64_t n = u / blocks, c0 = u % blocks * kChannelBlock, c1 = std::min(g.c, c0 + kChannelBlock);
      A* image = dx + n * g.c * plane;
      std::fill(image + c0 * plane, image + c1 * plane, A(0));
      for (int64_t p = 0; p < g.points; ++p) {
        const int count = taps_of(grid + (n * g.points + p) * g.dims, g, taps);
        for (int t = 0; t < count; ++t)
          at[t] = (taps[t].at[0] * g.size[1] + taps[t].at[1]) * g.size[2] + taps[t].at[2];
        for (int64_t c = c0; c < c1; ++c) {
          const A d = dy[(n * g.c + c) * g.points + p];
          for (int t = 0; t < count; ++t) image[c * plane + at[t]] += taps[t].weight * d;
        }
      }
    }
  });
}
template <class A>
void grid_gradient(const A* dy, const A* x, const A* grid, A* dgrid, const GridSample& g) {
  const int64_t work = std::max<int64_t>(1, g.c * 16);
  parallel_for(0, g.n * g.points, std::max<int64_t>(1, kWork / work), [&](int64_t begin, int64_t end) {
    Tap<A> taps[kMaxTaps];
    for (int64_t u = begin; u < end; ++u) {
      const int count = g.mode == GridMode::Nearest ? 0 : taps_of(grid + u * g.dims, g, taps);
      const A* image = x + u / g.points * g.stride_n;
      const A* d = dy + u / g.points * g.c * g.points + u % g.points;
      A sum[3] = {0, 0, 0};
      for (int t = 0; t < count; ++t) {
        const A* from = image + place(taps[t], g);
        A dot = 0;
        for (int64_t c = 0; c < g.c; ++c) dot += d[c * g.points] * from[c * g.stride_c];
        for (int k = 0; k < g.dims; ++k) sum[k] += taps[t].slope[k] * dot;
      }
      for (int k = 0; k < g.dims; ++k) dgrid[u * g.dims + k] = sum[k];
    }
  });
}

// Whether offsets within an image fit 32 bits, which gathers twice as many elements at once.
bool small(const GridSample& g) {
  int64_t extent = 1;
  for (int d = 0; d < 3; ++d) extent += (g.size[d] - 1) * g.stride[d];
  return extent < int64_t(1) << 31;
}
template <class A>
void forward_sized(const void* x, const void* grid, void* y, const GridSample& g) {
  if (Bilinear<A>::takes(g))
    return Bilinear<A>(g).forward(static_cast<const A*>(x), static_cast<const A*>(grid), static_cast<A*>(y));
  auto f = small(g) ? forward_typed<A, int32_t> : forward_typed<A, int64_t>;
  f(static_cast<const A*>(x), static_cast<const A*>(grid), static_cast<A*>(y), g);
}
void forward(Elem type, const void* x, const void* grid, void* y, const GridSample& g) {
  type == Elem::F32 ? forward_sized<float>(x, grid, y, g) : forward_sized<double>(x, grid, y, g);
}
template <class A>
void backward_typed(const void* dy, const void* x, const void* grid, void* dx, void* dgrid,
                    const GridSample& g) {
  auto* d = static_cast<const A*>(dy);
  auto* points = static_cast<const A*>(grid);
  if (Bilinear<A>::takes(g)) {
    Bilinear<A> bilinear(g);
    if (dx) bilinear.input_gradient(d, points, static_cast<A*>(dx));
    if (dgrid) bilinear.grid_gradient(d, static_cast<const A*>(x), points, static_cast<A*>(dgrid));
    return;
  }
  if (dx) input_gradient(d, points, static_cast<A*>(dx), g);
  if (dgrid) grid_gradient(d, static_cast<const A*>(x), points, static_cast<A*>(dgrid), g);
}
void backward(Elem type, const void* dy, const void* x, const void* grid, void* dx, void* dgrid,
              const GridSample& g) {
  if (type == Elem::F32)
    backward_typed<float>(dy, x, grid, dx, dgrid, g);
  else
    backward_typed<double>(dy, x, grid, dx, dgrid, g);
}

}  // namespace

extern const GridSampleTable kGridSampleTable;
const GridSampleTable kGridSampleTable = {forward, backward};

}  // namespace vesta::cpu::VESTA_ISA
