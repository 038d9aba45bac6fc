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

constexpr int64_t kWork = 16384;       // comparisons a parallel chunk
constexpr int64_t kMostStride = 4;     // up to here all starts are computed and some thrown away
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

// Whether element i with value v comes before the best so far in PyTorch's order: larger values, of equal ones the
// first, any NaN, of several the last. Elements may be offered in any order.
template <class A, class I>
inline bool precedes(A v, I i, A best, I best_at) {
  if constexpr (std::is_floating_point_v<A>)
    return (v > best) | ((v == best) & (i < best_at)) | ((v != v) & ((best == best) | (i > best_at)));
  else
    return (v > best) | ((v == best) & (i < best_at));
}
// The next input row, offered to the columns' maxima in order; column 0 has position `at`.
template <class A, class I>
void take_row(const A* row, int64_t n, I at, A* best, I* index) {
  for (int64_t c = 0; c < n; ++c) {
    const A v = row[c];
    const bool take = wins(v, best[c]);
    best[c] = take ? v : best[c];
    index[c] = take ? I(at + I(c)) : index[c];
  }
}
// Window element j of every start: the column maxima, shifted.
template <class A, class I>
void take_columns(const A* value, const I* at, int64_t n, A* best, I* index) {
  for (int64_t c = 0; c < n; ++c) {
    const bool take = precedes(value[c], at[c], best[c], index[c]);
    best[c] = take ? value[c] : best[c];
    index[c] = take ? at[c] : index[c];
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

// Windows of K elements of one row, whole ones only; row points to the first. Element j of all windows is brought side by
// side first, so that the comparisons run over whole vectors.
template <class A, class I, int K, int kStride>
void take_windows(const A* row, int64_t n, I at, A* best, int64_t* index) {
  constexpr int64_t kBlock = 256;
  A value[kBlock], largest[kBlock];
  I which[kBlock];
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t count = std::min(kBlock, n - first);
    const A* from = row + first * kStride;
    const I start = I(at + I(first * kStride));
    for (int64_t o = 0; o < count; ++o) largest[o] = from[o * kStride], which[o] = I(start + I(o * kStride));
    for (int j = 1; j < K; ++j) {
      for (int64_t o = 0; o < count; ++o) value[o] = from[o * kStride + j];
      for (int64_t o = 0; o < count; ++o) {
        const bool take = wins(value[o], largest[o]);
        largest[o] = take ? value[o] : largest[o];
        which[o] = take ? I(start + I(o * kStride + j)) : which[o];
      }
    }
    std::copy(largest, largest + count, best + first);
    for (int64_t o = 0; o < count; ++o) index[first + o] = int64_t(which[o]);
  }
}
template <class A, class I>
using TakeWindows = void (*)(const A*, int64_t, I, A*, int64_t*);
// The loop for a kernel and a stride, null where there is none.
template <class A, class I>
TakeWindows<A, I> windows_of(int64_t kernel, int64_t stride) {
  if (stride == 2)
    return kernel == 2 ? take_windows<A, I, 2, 2> : kernel == 3 ? take_windows<A, I, 3, 2> : nullptr;
  if (stride == 3) return kernel == 3 ? take_windows<A, I, 3, 3> : nullptr;
  if (stride == 4) return kernel == 4 ? take_windows<A, I, 4, 4> : nullptr;
  return nullptr;
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

// Four arrays of n elements in the thread's scratch, a quarter of a page apart modulo pages: loads that match an
// earlier store in the low 12 bits of their address would wait for it.
template <class A, class I>
struct RowBuffers {
  A *column, *best;
  I *column_at, *best_at;
  explicit RowBuffers(int64_t n) {
    constexpr size_t kPage = 4096;
    const size_t each = (size_t(n) * std::max(sizeof(A), sizeof(I)) + kPage - 1) / kPage * kPage + kPage / 4;
    char* p = static_cast<char*>(thread_scratch(4 * each));
    column = reinterpret_cast<A*>(p);
    best = reinterpret_cast<A*>(p + each);
    column_at = reinterpret_cast<I*>(p + 2 * each);
    best_at = reinterpret_cast<I*>(p + 3 * each);
  }
};

// Planes (inner == 1), separably: maxima of each column over the window's rows, then over the columns from every start,
// of which every stride-th one is kept. All loops run over consecutive elements.
template <class A, class I>
void planes_typed(const A* x, A* y, int64_t* index, const PoolShape& s, const PoolWindow& w) {
  const int64_t rows = s.outer * s.out[0] * s.out[1], out = s.out[2], in = s.in[2], stride = w.stride[2];
  if (rows <= 0 || out <= 0) return;
  // Starts run from -padding to -padding + starts - 1; columns beyond the input never win.
  const int64_t starts = (out - 1) * stride + 1, reach = (w.kernel[2] - 1) * w.dilation[2];
  const int64_t columns = starts + reach, left = w.padding[2], inside = std::min(in, columns - left);
  constexpr I kOutside = std::numeric_limits<I>::max();
  const int64_t work =
      in * std::min(w.kernel[0], s.in[0]) * std::min(w.kernel[1], s.in[1]) + starts * w.kernel[2];
  parallel_for(
      0, rows, std::max<int64_t>(1, kWork / std::max<int64_t>(1, work)), [&](int64_t begin, int64_t end) {
        const RowBuffers<A, I> b(columns);
        A *column = b.column, *best = b.best;
        I *column_at = b.column_at, *best_at = b.best_at;
        for (int64_t u = begin; u < end; ++u) {
          const int64_t o1 = u % s.out[1], o0 = u / s.out[1] % s.out[0], outer = u / (s.out[1] * s.out[0]);
          const Valid v0 = valid(s, w, 0, o0), v1 = valid(s, w, 1, o1);
          A* to = y + u * out;
          int64_t* to_index = index + u * out;
          if (v0.from >= v0.to || v1.from >= v1.to || inside <= 0) {
            std::fill(to, to + out, lowest<A>());
            std::fill(to_index, to_index + out, -1);
            continue;
          }
          std::fill(column, column + left, lowest<A>());
          std::fill(column_at, column_at + left, kOutside);
          std::fill(column + left + inside, column + columns, lowest<A>());
          std::fill(column_at + left + inside, column_at + columns, kOutside);
          bool first = true;
          for (int64_t j0 = v0.from; j0 < v0.to; ++j0)
            for (int64_t j1 = v1.from; j1 < v1.to; ++j1) {
              const int64_t i0 = o0 * w.stride[0] - w.padding[0] + j0 * w.dilation[0];
              const int64_t i1 = o1 * w.stride[1] - w.padding[1] + j1 * w.dilation[1];
              const int64_t row = (i0 * s.in[1] + i1) * in;
              const A* from = x + outer * s.in[0] * s.in[1] * in + row;
              if (first) {
                std::copy(from, from + inside, column + left);
                for (int64_t c = 0; c < inside; ++c) column_at[left + c] = I(row + c);
                first = false;
              } else {
                take_row<A, I>(from, inside, I(row), column + left, column_at + left);
              }
            }
          A* found = stride == 1 ? to : best;
          std::copy(column, column + starts, found);
          std::copy(column_at, column_at + starts, best_at);
          for (int64_t j = 1; j < w.kernel[2]; ++j) {
            const int64_t shift = j * w.dilation[2];
            take_columns<A, I>(column + shift, column_at + shift, starts, found, best_at);
          }
          if (stride > 1)
            for (int64_t o = 0; o < out; ++o) to[o] = found[o * stride];
          for (int64_t o = 0; o < out; ++o) {
            const I at = best_at[o * stride];
            to_index[o] = at == kOutside ? -1 : int64_t(at);
          }
        }
      });
}

// Sequences (windows within one row) with a common kernel and stride: straight from the input.
template <class A, class I>
void sequences_typed(const A* x, A* y, int64_t* index, const PoolShape& s, const PoolWindow& w,
                     TakeWindows<A, I> take) {
  const int64_t rows = s.outer * s.in[0] * s.in[1], out = s.out[2], in = s.in[2];
  if (rows <= 0 || out <= 0) return;
  const int64_t kernel = w.kernel[2], stride = w.stride[2], padding = w.padding[2];
  // Outputs [from, to) have whole windows.
  const int64_t from = std::min(out, ceil_div(padding, stride));
  const int64_t to =
      std::clamp<int64_t>(in + padding < kernel ? 0 : (in + padding - kernel) / stride + 1, from, out);
  parallel_for(0, rows, std::max<int64_t>(1, kWork / (out * kernel)), [&](int64_t begin, int64_t end) {
    for (int64_t u = begin; u < end; ++u) {
      const A* row = x + u * in;
      const I at = I(u % (s.in[0] * s.in[1]) * in);
      const auto one = [&](int64_t o) {
        A largest = lowest<A>();
        int64_t where = -1;
        for (int64_t i = std::max<int64_t>(0, o * stride - padding);
             i < std::min(in, o * stride - padding + kernel); ++i)
          if (where < 0 || wins(row[i], largest)) largest = row[i], where = int64_t(at) + i;
        y[u * out + o] = largest;
        index[u * out + o] = where;
      };
      for (int64_t o = 0; o < from; ++o) one(o);
      if (from < to)
        take(row + from * stride - padding, to - from, I(at + I(from * stride - padding)), y + u * out + from,
             index + u * out + from);
      for (int64_t o = to; o < out; ++o) one(o);
    }
  });
}

// Channels-last images (and planes with windows that are too wide to be worth the above): output by output.
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
  const int64_t window =
      std::min(w.kernel[0], s.in[0]) * std::min(w.kernel[1], s.in[1]) * std::min(w.kernel[2], s.in[2]);
  parallel_for(
      0, rows, std::max<int64_t>(1, kWork / std::max<int64_t>(1, width * window)),
      [&](int64_t begin, int64_t end) {
        I* at = static_cast<I*>(thread_scratch(size_t(width) * sizeof(I)));
        for (int64_t u = begin; u < end; ++u) {
          const int64_t o1 = u % s.out[1], o0 = u / s.out[1] % s.out[0], outer = u / (s.out[1] * s.out[0]);
          const Valid v0 = valid(s, w, 0, o0), v1 = valid(s, w, 1, o1);
          const int64_t start0 = o0 * w.stride[0] - w.padding[0], start1 = o1 * w.stride[1] - w.padding[1];
          const bool none = v0.from >= v0.to || v1.from >= v1.to;
          const int64_t corner =
              none ? 0
                   : ((start0 + v0.from * w.dilation[0]) * s.in[1] + start1 + v1.from * w.dilation[1]) *
                         s.in[2];
          A* best = y + u * width;
          std::fill(best, best + width, lowest<A>());
          for (int64_t o = 0; o < s.out[2]; ++o) {
            const int64_t f = first[size_t(o)];
            std::fill(at + o * s.inner, at + (o + 1) * s.inner, I(none || f < 0 ? -1 : corner + f));
          }
          for (int64_t o = 0; o < s.out[2]; ++o) {
            const Valid v = valid(s, w, 2, o);
            for (int64_t j0 = v0.from; j0 < v0.to; ++j0)
              for (int64_t j1 = v1.from; j1 < v1.to; ++j1) {
                const int64_t row =
                    ((start0 + j0 * w.dilation[0]) * s.in[1] + start1 + j1 * w.dilation[1]) * s.in[2];
                const A* in = x + (outer * s.in[0] * s.in[1] * s.in[2] + row) * s.inner;
                for (int64_t j = v.from; j < v.to; ++j) {
                  const int64_t column = o * w.stride[2] - w.padding[2] + j * w.dilation[2];
                  take_channels<A, I>(in + column * s.inner, s.inner, I(row + column), best + o * s.inner,
                                      at + o * s.inner);
                }
              }
          }
          std::copy(at, at + width, index + u * width);
        }
      });
}

// The maximum of each column over the rows of windows (o0, o1).
template <class A>
void column_maxima(const A* plane, const PoolShape& s, const PoolRanges& w, size_t o0, size_t o1,
                   const RowBuffers<A, int64_t>& b) {
  bool first = true;
  for (int64_t i0 = w.begin[0][o0]; i0 < w.end[0][o0]; ++i0)
    for (int64_t i1 = w.begin[1][o1]; i1 < w.end[1][o1]; ++i1) {
      const int64_t row = (i0 * s.in[1] + i1) * s.in[2];
      if (first) {
        std::copy(plane + row, plane + row + s.in[2], b.column);
        for (int64_t c = 0; c < s.in[2]; ++c) b.column_at[c] = row + c;
        first = false;
      } else {
        take_row<A, int64_t>(plane + row, s.in[2], row, b.column, b.column_at);
      }
    }
}

template <class A>
void ranges_typed(const A* x, A* y, int64_t* index, const PoolShape& s, const PoolRanges& w) {
  const int64_t rows = s.outer * s.out[0] * s.out[1], width = s.out[2] * s.inner;
  if (rows <= 0 || width <= 0) return;
  int64_t window = 1;
  for (int d = 0; d < 3; ++d) window *= std::max<int64_t>(1, s.in[d] / std::max<int64_t>(1, s.out[d]));
  parallel_for(0, rows, std::max<int64_t>(1, kWork / std::max<int64_t>(1, width * window)),
               [&](int64_t begin, int64_t end) {
                 const RowBuffers<A, int64_t> columns(s.inner == 1 ? s.in[2] : 0);
                 for (int64_t u = begin; u < end; ++u) {
                   const size_t o1 = size_t(u % s.out[1]), o0 = size_t(u / s.out[1] % s.out[0]);
                   const A* plane = x + u / (s.out[1] * s.out[0]) * s.in[0] * s.in[1] * s.in[2] * s.inner;
                   A* best = y + u * width;
                   int64_t* at = index + u * width;
                   std::fill(best, best + width, lowest<A>());
                   if (s.inner == 1) column_maxima(plane, s, w, o0, o1, columns);
                   for (int64_t o2 = 0; o2 < s.out[2]; ++o2) {
                     const int64_t b0 = w.begin[0][o0], b1 = w.begin[1][o1], b2 = w.begin[2][size_t(o2)];
                     const int64_t e0 = w.end[0][o0], e1 = w.end[1][o1], e2 = w.end[2][size_t(o2)];
                     const bool none = b0 >= e0 || b1 >= e1 || b2 >= e2;
                     A* value = best + o2 * s.inner;
                     int64_t* position = at + o2 * s.inner;
                     if (s.inner == 1) {
                       A largest = lowest<A>();
                       int64_t where = -1;
                       if (!none) {
                         largest = columns.column[b2], where = columns.column_at[b2];
                         for (int64_t c = b2 + 1; c < e2; ++c)
                           if (precedes(columns.column[c], columns.column_at[c], largest, where))
                             largest = columns.column[c], where = columns.column_at[c];
                       }
                       *value = largest, *position = where;
                       continue;
                     }
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
void scatter_row(const A* values, const int64_t* position, int64_t n, A* out, bool add) {
  int64_t any_outside = 0;
  for (int64_t i = 0; i < n; ++i) any_outside |= position[i];
  if (any_outside >= 0 && add) {  // no -1 among them
    for (int64_t i = 0; i < n; ++i) out[position[i]] += values[i];
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    if (position[i] < 0) continue;
    A& target = out[position[i]];
    target = add ? A(target + values[i]) : values[i];
  }
}

template <class A>
void scatter_typed(const A* src, const int64_t* index, A* dst, int64_t outer, int64_t from, int64_t to,
                   int64_t inner, bool add) {
  const int64_t blocks = (inner + kChannelBlock - 1) / kChannelBlock;
  if (outer <= 0 || to <= 0 || inner <= 0) return;
  const int64_t work = (from + to) * std::min(inner, kChannelBlock);
  parallel_for(0, outer * blocks, std::max<int64_t>(1, kWork / std::max<int64_t>(1, work)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t u = begin; u < end; ++u) {
                   const int64_t o = u / blocks, c0 = u % blocks * kChannelBlock,
                                 c1 = std::min(inner, c0 + kChannelBlock);
                   A* out = dst + o * to * inner;
                   if (inner == 1) {
                     std::fill(out, out + to, A(0));
                     scatter_row(src + o * from, index + o * from, from, out, add);
                     continue;
                   }
                   for (int64_t i = 0; i < to; ++i)
                     std::fill(out + i * inner + c0, out + i * inner + c1, A(0));
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
  // Starts that are thrown away, and columns outside of the input, must stay few.
  const bool planes = s.inner == 1 && w.stride[2] <= kMostStride && w.kernel[2] <= 2 * s.in[2] &&
                      (w.kernel[2] - 1) * w.dilation[2] <= 4 * s.in[2] + 16;
  bool sequences = s.inner == 1 && w.dilation[2] == 1;
  for (int d = 0; d < 2; ++d)
    sequences &= w.kernel[d] == 1 && w.stride[d] == 1 && w.padding[d] == 0 && s.out[d] == s.in[d];
  with_type(type, [&]<class A>(A) {
    const A* from = static_cast<const A*>(x);
    A* to = static_cast<A*>(y);
    if constexpr (sizeof(A) == 4) {
      const auto take = sequences && small ? windows_of<A, int32_t>(w.kernel[2], w.stride[2]) : nullptr;
      if (take) return sequences_typed<A, int32_t>(from, to, index, s, w, take);
      if (small && planes) return planes_typed<A, int32_t>(from, to, index, s, w);
      if (small) return regular_typed<A, int32_t>(from, to, index, s, w);
    }
    planes ? planes_typed<A, int64_t>(from, to, index, s, w)
           : regular_typed<A, int64_t>(from, to, index, s, w);
  });
}
void ranges(Elem type, const void* x, void* y, int64_t* index, const PoolShape& s, const PoolRanges& w) {
  with_type(type,
            [&]<class A>(A) { ranges_typed<A>(static_cast<const A*>(x), static_cast<A*>(y), index, s, w); });
}
void scatter(Elem type, const void* src, const int64_t* index, void* dst, int64_t outer, int64_t from,
             int64_t to, int64_t inner, bool add) {
  with_type(type, [&]<class A>(A) {
    scatter_typed<A>(static_cast<const A*>(src), index, static_cast<A*>(dst), outer, from, to, inner, add);
  });
}

}  // namespace

extern const MaxPoolTable kMaxPoolTable;
const MaxPoolTable kMaxPoolTable = {regular, ranges, scatter};

}  // namespace vesta::cpu::VESTA_ISA
