// Max pooling, one output row at a time: each window element is one pass over the row's outputs that keeps the larger
// value and its position, without branches. Positions are 32 bits wide while they fit, as wide as a float.
#include "kernels/cpu/max_pool.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "base/thread_pool.h"
#include "kernels/cpu/scratch.h"

namespace vesta::cpu::VESTA_ISA {
namespace {

constexpr int64_t kWork = 16384;     // comparisons a parallel chunk
constexpr int64_t kChannelBlock = 64;  // channels that one chunk of a scatter owns

template <class A>
constexpr A lowest() {
  if constexpr (std::is_floating_point_v<A>)
    return -std::numeric_limits<A>::infinity();
  else
    return std::numeric_limits<A>::min();
}

template <class A>
inline bool wins(A v, A best) {
  if constexpr (std::is_floating_point_v<A>)
    return (v > best) | (v != v);
  else
    return v > best;
}

// Window element at src[o * stride] for n outputs; its position is at + o * step.
template <class A, class I, int kStride>
void take_row(const A* src, int64_t n, int64_t stride, I at, I step, A* best, I* index) {
  const int64_t s = kStride ? kStride : stride;
  for (int64_t o = 0; o < n; ++o) {
    const A v = src[o * s];
    const I position = I(at + I(o) * step);
    const bool take = wins(v, best[o]);
    best[o] = take ? v : best[o];
    index[o] = take ? position : index[o];
  }
}
template <class A, class I>
void take_channels(const A* src, int64_t n, I at, A* best, I* index) {
  for (int64_t c = 0; c < n; ++c) {
    const A v = src[c];
    const bool take = wins(v, best[c]);
    best[c] = take ? v : best[c];
    index[c] = take ? at : index[c];
  }
}

int64_t ceil_div(int64_t a, int64_t b) { return a <= 0 ? 0 : (a + b - 1) / b; }

// Elements [from, to) of the window at output o that are inside of the input.
struct Valid {
  int64_t from, to;
};
Valid valid(const PoolShape& s, const PoolWindow& w, int d, int64_t o) {
  const int64_t start = o * w.stride[d] - w.padding[d];
  return {ceil_div(-start, w.dilation[d]), std::min(w.kernel[d], ceil_div(s.in[d] - start, w.dilation[d]))};
}

template <class A, class I>
void regular_typed(const A* x, A* y, int64_t* index, const PoolShape& s, const PoolWindow& w) {
  const int64_t rows = s.outer * s.out[0] * s.out[1], width = s.out[2] * s.inner;
  if (rows <= 0 || width <= 0) return;
  // Position within a row of each output's first element, -1 for none.
  std::vector<int64_t> first(size_t(s.out[2]));
  for (int64_t o = 0; o < s.out[2]; ++o) {
    const Valid v = valid(s, w, 2, o);
    first[size_t(o)] = v.from < v.to ? o * w.stride[2] - w.padding[2] + v.from * w.dilation[2] : -1;
  }
  const int64_t window = std::min(w.kernel[0], s.in[0]) * std::min(w.kernel[1], s.in[1]) * std::min(w.kernel[2], s.in[2]);
  parallel_for(0, rows, std::max<int64_t>(1, kWork / std::max<int64_t>(1, width * window)), [&](int64_t begin, int64_t end) {
    I* at = static_cast<I*>(thread_scratch(size_t(width) * sizeof(I)));
    for (int64_t u = begin; u < end; ++u) {
      const int64_t o1 = u % s.out[1], o0 = u / s.out[1] % s.out[0], outer = u / (s.out[1] * s.out[0]);
      const Valid v0 = valid(s, w, 0, o0), v1 = valid(s, w, 1, o1);
      const int64_t start0 = o0 * w.stride[0] - w.padding[0], start1 = o1 * w.stride[1] - w.padding[1];
      const bool none = v0.from >= v0.to || v1.from >= v1.to;
      const int64_t corner = none ? 0
                                  : ((start0 + v0.from * w.dilation[0]) * s.in[1] + start1 + v1.from * w.dilation[1]) * s.in[2];
      A* best = y + u * width;
      std::fill(best, best + width, lowest<A>());
      for (int64_t o = 0; o < s.out[2]; ++o) {
        const int64_t f = first[size_t(o)];
        std::fill(at + o * s.inner, at + (o + 1) * s.inner, I(none || f < 0 ? -1 : corner + f));
      }
      for (int64_t j0 = v0.from; j0 < v0.to; ++j0)
        for (int64_t j1 = v1.from; j1 < v1.to; ++j1) {
          const int64_t row = ((start0 + j0 * w.dilation[0]) * s.in[1] + start1 + j1 * w.dilation[1]) * s.in[2];
          const A* in = x + (outer * s.in[0] * s.in[1] * s.in[2] + row) * s.inner;
          if (s.inner > 1) {
            for (int64_t o = 0; o < s.out[2]; ++o) {
              const Valid v = valid(s, w, 2, o);
              for (int64_t j = v.from; j < v.to; ++j) {
                const int64_t column = o * w.stride[2] - w.padding[2] + j * w.dilation[2];
                take_channels<A, I>(in + column * s.inner, s.inner, I(row + column), best + o * s.inner, at + o * s.inner);
              }
            }
            continue;
          }
          // Elements before `j_first` are left of the input for every output (padding may be huge).
          const int64_t j_first = ceil_div(w.padding[2] - (s.out[2] - 1) * w.stride[2], w.dilation[2]);
          for (int64_t j = j_first; j < w.kernel[2]; ++j) {
            // Outputs whose element j is inside: o * stride + offset in [0, in).
            const int64_t offset = j * w.dilation[2] - w.padding[2];
            if (offset >= s.in[2]) break;
            const int64_t lo = ceil_div(-offset, w.stride[2]);
            const int64_t hi = std::min(s.out[2], ceil_div(s.in[2] - offset, w.stride[2]));
            if (lo >= hi) continue;
            const int64_t column = lo * w.stride[2] + offset;
            const I position = I(row + column), step = I(w.stride[2]);
            switch (w.stride[2]) {
              case 1:
                take_row<A, I, 1>(in + column, hi - lo, 1, position, step, best + lo, at + lo);
                break;
              case 2:
                take_row<A, I, 2>(in + column, hi - lo, 2, position, step, best + lo, at + lo);
                break;
              default:
                take_row<A, I, 0>(in + column, hi - lo, w.stride[2], position, step, best + lo, at + lo);
            }
          }
        }
      std::copy(at, at + width, index + u * width);
    }
  });
}

template <class A>
void ranges_typed(const A* x, A* y, int64_t* index, const PoolShape& s, const PoolRanges& w) {
  const int64_t rows = s.outer * s.out[0] * s.out[1], width = s.out[2] * s.inner;
  if (rows <= 0 || width <= 0) return;
  int64_t window = 1;
  for (int d = 0; d < 3; ++d) window *= std::max<int64_t>(1, s.in[d] / std::max<int64_t>(1, s.out[d]));
  parallel_for(0, rows, std::max<int64_t>(1, kWork / std::max<int64_t>(1, width * window)), [&](int64_t begin, int64_t end) {
    for (int64_t u = begin; u < end; ++u) {
      const size_t o1 = size_t(u % s.out[1]), o0 = size_t(u / s.out[1] % s.out[0]);
      const A* plane = x + u / (s.out[1] * s.out[0]) * s.in[0] * s.in[1] * s.in[2] * s.inner;
      A* best = y + u * width;
      int64_t* at = index + u * width;
      std::fill(best, best + width, lowest<A>());
      for (int64_t o2 = 0; o2 < s.out[2]; ++o2) {
        const int64_t b0 = w.begin[0][o0], b1 = w.begin[1][o1], b2 = w.begin[2][size_t(o2)];
        const int64_t e0 = w.end[0][o0], e1 = w.end[1][o1], e2 = w.end[2][size_t(o2)];
        const bool none = b0 >= e0 || b1 >= e1 || b2 >= e2;
        A* value = best + o2 * s.inner;
        int64_t* position = at + o2 * s.inner;
        std::fill(position, position + s.inner, none ? -1 : (b0 * s.in[1] + b1) * s.in[2] + b2);
        for (int64_t i0 = b0; i0 < e0; ++i0)
          for (int64_t i1 = b1; i1 < e1; ++i1)
            for (int64_t i2 = b2; i2 < e2; ++i2) {
              const int64_t here = (i0 * s.in[1] + i1) * s.in[2] + i2;
              take_channels<A, int64_t>(plane + here * s.inner, s.inner, here, value, position);
            }
      }
    }
  });
}

template <class A>
void scatter_typed(const A* src, const int64_t* index, A* dst, int64_t outer, int64_t from, int64_t to, int64_t inner, bool add) {
  const int64_t blocks = (inner + kChannelBlock - 1) / kChannelBlock;
  if (outer <= 0 || to <= 0 || inner <= 0) return;
  const int64_t work = (from + to) * std::min(inner, kChannelBlock);
  parallel_for(0, outer * blocks, std::max<int64_t>(1, kWork / std::max<int64_t>(1, work)), [&](int64_t begin, int64_t end) {
    for (int64_t u = begin; u < end; ++u) {
      const int64_t o = u / blocks, c0 = u % blocks * kChannelBlock, c1 = std::min(inner, c0 + kChannelBlock);
      A* out = dst + o * to * inner;
      for (int64_t i = 0; i < to; ++i) std::fill(out + i * inner + c0, out + i * inner + c1, A(0));
      for (int64_t i = 0; i < from; ++i)
        for (int64_t c = c0; c < c1; ++c) {
          const int64_t at = (o * from + i) * inner + c, position = index[at];
          if (position < 0) continue;
          A& target = out[position * inner + c];
          target = add ? A(target + src[at]) : src[at];
        }
    }
  });
}

// f(value of the type) for the three types that pooling knows.
template <class F>
void with_type(Elem type, F f) {
  switch (type) {
    case Elem::F32:
      return f(float{});
    case Elem::F64:
      return f(double{});
    case Elem::I64:
      return f(int64_t{});
    default:
      return;
  }
}

void regular(Elem type, const void* x, void* y, int64_t* index, const PoolShape& s, const PoolWindow& w) {
  const bool small = s.in[0] * s.in[1] * s.in[2] < std::numeric_limits<int32_t>::max();
  with_type(type, [&]<class A>(A) {
    if constexpr (sizeof(A) == 4) {
      if (small) return regular_typed<A, int32_t>(static_cast<const A*>(x), static_cast<A*>(y), index, s, w);
    }
    regular_typed<A, int64_t>(static_cast<const A*>(x), static_cast<A*>(y), index, s, w);
  });
}
void ranges(Elem type, const void* x, void* y, int64_t* index, const PoolShape& s, const PoolRanges& w) {
  with_type(type, [&]<class A>(A) { ranges_typed<A>(static_cast<const A*>(x), static_cast<A*>(y), index, s, w); });
}
void scatter(Elem type, const void* src, const int64_t* index, void* dst, int64_t outer, int64_t from, int64_t to, int64_t inner,
             bool add) {
  with_type(type, [&]<class A>(A) {
    scatter_typed<A>(static_cast<const A*>(src), index, static_cast<A*>(dst), outer, from, to, inner, add);
  });
}

}  // namespace

extern const MaxPoolTable kMaxPoolTable;
const MaxPoolTable kMaxPoolTable = {regular, ranges, scatter};

}  // namespace vesta::cpu::VESTA_ISA
