// Vector loops of convolutions: see conv_kernels.h. Everything that multiplies accumulates in float (double for F64), in
// an order that depends on the shape alone.
#include "kernels/cpu/conv_kernels.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "kernels/cpu/isa/float_types.h"
#include "kernels/cpu/isa/simd.h"

namespace vesta::cpu::VESTA_ISA {
namespace {

template <class A>
constexpr int kLanes = Vec<A>::kLanes;

template <class S>
VESTA_INLINE void copy_widened(const S* from, int64_t n, Acc<S>* to) {
  constexpr int L = kLanes<Acc<S>>;
  int64_t i = 0;
  for (; i + L <= n; i += L) store(to + i, load(from + i));
  if (i < n) store_n(to + i, load_n(from + i, static_cast<int>(n - i)), static_cast<int>(n - i));
}

void widen(Elem type, const void* source, int64_t n, void* out) {
  with_float_type(
      type, [&]<class S>(S) { copy_widened(static_cast<const S*>(source), n, static_cast<Acc<S>*>(out)); });
}

void narrow(Elem type, const void* row, int64_t n, void* out) {
  with_float_type(type, [&]<class S>(S) {
    constexpr int L = kLanes<Acc<S>>;
    const auto* from = static_cast<const Acc<S>*>(row);
    auto* to = static_cast<S*>(out);
    int64_t i = 0;
    for (; i + L <= n; i += L) store(to + i, load(from + i));
    if (i < n) store_n(to + i, load_n(from + i, static_cast<int>(n - i)), static_cast<int>(n - i));
  });
}

// In-register transpose of kLanes vectors: of each square of machine registers by perfect shuffles.
template <class A, int... I>
VESTA_INLINE void transpose_square(typename Vec<A>::Part* x, std::integer_sequence<int, I...>) {
  constexpr int P = sizeof...(I);
  typename Vec<A>::Part y[P];
#pragma GCC unroll 4
  for (int step = 1; step < P; step *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < P / 2; ++i) {
      y[2 * i] = __builtin_shufflevector(x[i], x[i + P / 2], (I % 2 ? P + I / 2 : I / 2)...);
      y[2 * i + 1] =
          __builtin_shufflevector(x[i], x[i + P / 2], (I % 2 ? P + P / 2 + I / 2 : P / 2 + I / 2)...);
    }
#pragma GCC unroll 16
    for (int i = 0; i < P; ++i) x[i] = y[i];
  }
}
template <class A>
VESTA_INLINE void transpose(Vec<A>* x) {
  constexpr int kParts = Vec<A>::kParts, P = kLanes<A> / kParts;
  constexpr auto kOrder = std::make_integer_sequence<int, P>();
  if constexpr (kParts == 1) {
    typename Vec<A>::Part t[P];
#pragma GCC unroll 16
    for (int i = 0; i < P; ++i) t[i] = x[i].p[0];
    transpose_square<A>(t, kOrder);
#pragma GCC unroll 16
    for (int i = 0; i < P; ++i) x[i].p[0] = t[i];
    return;
  }
  for (int q = 0; q < kParts; ++q)
    for (int r = 0; r <= q; ++r) {
      typename Vec<A>::Part a[P], b[P];
      for (int i = 0; i < P; ++i) a[i] = x[q * P + i].p[r], b[i] = x[r * P + i].p[q];
      transpose_square<A>(a, kOrder);
      transpose_square<A>(b, kOrder);
      for (int i = 0; i < P; ++i) x[r * P + i].p[q] = a[i], x[q * P + i].p[r] = b[i];
    }
}

// One square of kLanes: rows r0 to r0 + h, columns i0 to i0 + w.
template <class From, class To>
VESTA_INLINE void transpose_block(const From* source, const int64_t* from, int h, const int64_t* to, int w,
                                  To* out) {
  using A = Acc<From>;
  constexpr int L = kLanes<A>;
  Vec<A> x[L];
  if (h == L && w == L) {
#pragma GCC unroll 16
    for (int r = 0; r < L; ++r) x[r] = load(source + from[r]);
  } else {
    for (int r = 0; r < L; ++r)
      x[r] = r >= h ? Vec<A>::zero() : w == L ? load(source + from[r]) : load_n(source + from[r], w);
  }
  transpose(x);
  if (h == L && w == L) {
#pragma GCC unroll 16
    for (int i = 0; i < L; ++i)
      if (to[i] >= 0) store(out + to[i], x[i]);
  } else {
    for (int i = 0; i < w; ++i)
      if (to[i] >= 0) h == L ? store(out + to[i], x[i]) : store_n(out + to[i], x[i], h);
  }
}
// The long side of memory is walked along: reading rows of a source that is far away, or writing rows of an output that is.
// No hardware prefetcher follows so many rows, so what comes kAhead squares later is fetched meanwhile.
template <bool kAlongSource, class From, class To>
void transpose_rows(const From* source, const int64_t* from, int64_t rows, const int64_t* to, int64_t n,
                    To* out) {
  constexpr int64_t L = kLanes<Acc<From>>, kAhead = 4 * L;
  const auto block = [&](int64_t r0, int64_t i0) {
    transpose_block(source + i0, from + r0, static_cast<int>(std::min(L, rows - r0)), to + i0,
                    static_cast<int>(std::min(L, n - i0)), out + r0);
  };
  if constexpr (kAlongSource) {
    for (int64_t r0 = 0; r0 < rows; r0 += L)
      for (int64_t i0 = 0; i0 < n; i0 += L) {
        // Behind the end of these rows, the first squares of the next ones, and what the next call may read.
        const int64_t ahead = i0 + kAhead - (n + L - 1) / L * L;
        for (int64_t r = r0; r < std::min(r0 + L, rows); ++r)
          __builtin_prefetch(source + from[r] + i0 + kAhead);
        if (ahead >= 0)
          for (int64_t r = r0 + L; r < std::min(r0 + 2 * L, rows); ++r)
            __builtin_prefetch(source + from[r] + ahead);
        block(r0, i0);
      }
  } else {
    for (int64_t i0 = 0; i0 < n; i0 += L)
      for (int64_t r0 = 0; r0 < rows; r0 += L) {
        for (int64_t i = i0; i < std::min(i0 + L, n); ++i) __builtin_prefetch(out + to[i] + r0 + kAhead, 1);
        block(r0, i0);
      }
  }
}
void transpose_widen(Elem type, const void* source, const int64_t* from, int64_t rows, const int64_t* to,
                     int64_t n, void* out) {
  with_float_type(type, [&]<class S>(S) {
    transpose_rows<true>(static_cast<const S*>(source), from, rows, to, n, static_cast<Acc<S>*>(out));
  });
}
void transpose_narrow(Elem type, const void* source, const int64_t* from, int64_t rows, const int64_t* to,
                      int64_t n, void* out) {
  with_float_type(type, [&]<class S>(S) {
    transpose_rows<false>(static_cast<const Acc<S>*>(source), from, rows, to, n, static_cast<S*>(out));
  });
}

template <class A>
VESTA_INLINE void zero_fill(A* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = A(0);
}

void pad_plane(Elem type, const void* source_, const ConvPlane& p, void* out_) {
  with_float_type(type, [&]<class S>(S) {
    using A = Acc<S>;
    const auto* source = static_cast<const S*>(source_);
    auto* out = static_cast<A*>(out_);
    const int64_t row = p.step * p.columns, n = p.source[2];
    for (int64_t d = 0; d < p.rows[0]; ++d)
      for (int64_t h = 0; h < p.rows[1]; ++h, out += row) {
        const int64_t z = d + p.first[0], y = h + p.first[1];
        if (z < 0 || z >= p.source[0] || y < 0 || y >= p.source[1]) {
          if (!p.has_border) zero_fill(out, row);
          continue;
        }
        const S* from = source + (z * p.source[1] + y) * n;
        for (int64_t r = 0; r < p.step; ++r) {
          // Columns i whose source column x0 + i * step lies in [0, n).
          A* to = out + r * p.columns;
          const int64_t x0 = p.first[2] + r;
          const int64_t begin = std::min(p.columns, x0 >= 0 ? 0 : (-x0 + p.step - 1) / p.step);
          const int64_t end =
              std::clamp<int64_t>(x0 >= n ? 0 : (n - x0 + p.step - 1) / p.step, begin, p.columns);
          if (!p.has_border) zero_fill(to, begin);
          if (p.step == 1) {
            copy_widened(from + x0 + begin, end - begin, to + begin);
          } else {
            for (int64_t i = begin; i < end; ++i) to[i] = to_acc(from[x0 + i * p.step]);
          }
          if (!p.has_border) zero_fill(to + end, p.columns - end);
        }
      }
  });
}

template <class A>
void gather_rows(const A* source, const int64_t* offset, int64_t rows, const ConvCopy* copies, int64_t count,
                 int64_t row, A* out) {
  // Most panels of wide images are two whole vectors.
  if (count == 2) {
    const ConvCopy a = copies[0], b = copies[1];
    for (int64_t r = 0; r < rows; ++r, out += row) {
      const A* from = source + offset[r];
      store(out + a.to, load(from + a.from));
      store(out + b.to, load(from + b.from));
    }
    return;
  }
  for (int64_t r = 0; r < rows; ++r, out += row) {
    const A* from = source + offset[r];
    for (int64_t i = 0; i < count; ++i) store(out + copies[i].to, load(from + copies[i].from));
  }
}
void gather(bool wide, const void* source, const int64_t* offset, int64_t rows, const ConvCopy* copies,
            int64_t count, int64_t row, void* out) {
  if (wide)
    gather_rows(static_cast<const double*>(source), offset, rows, copies, count, row,
                static_cast<double*>(out));
  else
    gather_rows(static_cast<const float*>(source), offset, rows, copies, count, row,
                static_cast<float*>(out));
}

// load_n and store_n, with AVX2's masked moves for floats: pieces of rows are short, and most of them end within a vector.
#if VESTA_SIMD_BYTES == 32
VESTA_INLINE __m256i first_lanes(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
#endif
template <class S>
VESTA_INLINE Vec<Acc<S>> load_part(const S* from, int n) {
#if VESTA_SIMD_BYTES == 32
  if constexpr (std::is_same_v<S, float>) {
    Vec<float> v;
    for (int i = 0; i < 2; ++i) v.p[i] = _mm256_maskload_ps(from + 8 * i, first_lanes(n - 8 * i));
    return v;
  }
#endif
  return load_n(from, n);
}
template <class A>
VESTA_INLINE void store_part(A* to, Vec<A> v, int n) {
#if VESTA_SIMD_BYTES == 32
  if constexpr (std::is_same_v<A, float>) {
    for (int i = 0; i < 2; ++i) _mm256_maskstore_ps(to + 8 * i, first_lanes(n - 8 * i), v.p[i]);
    return;
  }
#endif
  store_n(to, v, n);
}
// Lanes 0, 2, 4, ... of a followed by b.
template <class A, int... I>
VESTA_INLINE Vec<A> even_lanes(Vec<A> a, Vec<A> b, std::integer_sequence<int, I...>) {
  Vec<A> r;
  constexpr int kParts = Vec<A>::kParts;
  for (int i = 0; i < kParts; ++i) {
    const int low = 2 * i, high = 2 * i + 1;
    r.p[i] = __builtin_shufflevector(low < kParts ? a.p[low] : b.p[low - kParts],
                                     high < kParts ? a.p[high] : b.p[high - kParts], (2 * I)...);
  }
  return r;
}
// n elements `kStep` apart, then zeros; nothing behind the last one is read.
template <int kStep, class S>
VESTA_INLINE Vec<Acc<S>> load_apart(const S* from, int n) {
  using A = Acc<S>;
  constexpr int L = kLanes<A>;
  if constexpr (kStep == 1) {
    return n == L ? load(from) : load_part(from, n);
  } else {
    static_assert(kStep == 2);
    const int span = 2 * n - 1;  // of the source
    const Vec<A> low = span >= L ? load(from) : load_part(from, span);
    const Vec<A> high = span > L ? load_part(from + L, span - L) : Vec<A>::zero();
    return even_lanes(low, high, std::make_integer_sequence<int, L / Vec<A>::kParts>());
  }
}
template <int kStep, class S>
void gather_piece(const S* from, int64_t channel, int64_t channels, int n, int room, int64_t row,
                  Acc<S>* to) {
  using A = Acc<S>;
  constexpr int L = kLanes<A>;
  if (n == 0) {
    for (int64_t c = 0; c < channels; ++c, to += row)
      room >= L ? store(to, Vec<A>::zero()) : store_part(to, Vec<A>::zero(), room);
  } else if (n == L) {
    for (int64_t c = 0; c < channels; ++c, from += channel, to += row) store(to, load_apart<kStep>(from, L));
  } else if (room >= L) {
    for (int64_t c = 0; c < channels; ++c, from += channel, to += row) store(to, load_apart<kStep>(from, n));
  } else {
    for (int64_t c = 0; c < channels; ++c, from += channel, to += row)
      store_part(to, load_apart<kStep>(from, n), room);
  }
}
void gather_pieces(Elem type, const void* source, int64_t channel, int64_t channels, int64_t step,
                   const ConvPiece* pieces, int64_t count, int64_t row, void* out) {
  with_float_type(type, [&]<class S>(S) {
    const auto* from = static_cast<const S*>(source);
    auto* to = static_cast<Acc<S>*>(out);
    const auto piece = step == 1 ? gather_piece<1, S> : gather_piece<2, S>;
    for (int64_t i = 0; i < count; ++i)
      piece(from + pieces[i].from, channel, channels, pieces[i].n, pieces[i].room, row, to + pieces[i].to);
  });
}

void pack_columns(Elem type, const void* source_, const int64_t* offset, int64_t rows, int64_t m,
                  int64_t pitch, void* out_) {
  with_float_type(type, [&]<class S>(S) {
    using A = Acc<S>;
    constexpr int L = kLanes<A>;
    const auto* source = static_cast<const S*>(source_);
    auto* out = static_cast<A*>(out_);
    for (int64_t r = 0; r < rows; ++r, out += pitch) {
      if (offset[r] < 0) {
        zero_fill(out, m);
        continue;
      }
      const S* from = source + offset[r];
      for (int64_t i = 0; i < m; i += L) {
        const int n = static_cast<int>(std::min<int64_t>(L, m - i));
        if (n == L)
          store(out + i, load(from + i));
        else
          store_n(out + i, load_n(from + i, n), n);
      }
    }
  });
}

void add_value(bool wide, void* row, int64_t n, double value) {
  if (wide) {
    auto* p = static_cast<double*>(row);
    for (int64_t i = 0; i < n; ++i) p[i] += value;
  } else {
    auto* p = static_cast<float*>(row);
    const float v = static_cast<float>(value);
    for (int64_t i = 0; i < n; ++i) p[i] += v;
  }
}

// N vectors of one row of results, all taps.
template <int N, class A>
VESTA_INLINE void depthwise_vectors(const A* from, const ConvDepthwise& s, const A* weight, A bias, A* out) {
  constexpr int L = kLanes<A>;
  Vec<A> sum[N];
  for (int v = 0; v < N; ++v) sum[v] = Vec<A>::set1(bias);
  for (int64_t t = 0; t < s.taps; ++t) {
    const Vec<A> w = Vec<A>::set1(weight[t]);
    const A* x = from + s.tap_offset[t];
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v) sum[v] = fma(w, load(x + v * L), sum[v]);
  }
  for (int v = 0; v < N; ++v) store(out + v * L, sum[v]);
}

// Whether the taps are 3 x 3 neighbours that move by one line from a line of results to the next: in rising order (1),
// falling order, as in the transposed direction (-1), or not (0).
int three_by_three(const ConvDepthwise& s) {
  if (s.taps != 9 || s.to_step[2] != 1) return 0;
  for (int order : {1, -1}) {
    const int64_t* first = s.tap_offset + (order > 0 ? 0 : 8);
    bool all = true;
    for (int i = 0; i < 9; ++i) all &= first[order * i] == *first + i / 3 * s.row_step[1] + i % 3;
    if (all) return order;
  }
  return 0;
}

// N vectors of all lines of results of one depth: each line of the source is read once and added to the three lines of
// results that it reaches, whose sums wait in registers. The last vector has `tail` columns.
template <int N, class S>
void depthwise_3x3(const Acc<S>* from, const ConvDepthwise& s, const Acc<S>* weight, Acc<S> bias, int tail,
                   S* to) {
  using A = Acc<S>;
  constexpr int L = kLanes<A>;
  Vec<A> w[9], now[N], next[N];  // sums of the lines of results that have 2 and 1 lines of the source
#pragma GCC unroll 9
  for (int i = 0; i < 9; ++i) w[i] = Vec<A>::set1(weight[i]);
  const int64_t row = s.row_step[1];
  const auto add = [&](const Vec<A>* x, int line, Vec<A> sum) {
    return fma(w[3 * line + 2], x[2], fma(w[3 * line + 1], x[1], fma(w[3 * line], x[0], sum)));
  };
  const auto load_line = [&](const A* line, int v, Vec<A>* x) {
    for (int i = 0; i < 3; ++i) x[i] = load(line + v * L + i);
  };
  Vec<A> x[3];
#pragma GCC unroll 2
  for (int v = 0; v < N; ++v) {
    load_line(from, v, x);
    now[v] = add(x, 0, Vec<A>::set1(bias));
    load_line(from + row, v, x);
    now[v] = add(x, 1, now[v]);
    next[v] = add(x, 0, Vec<A>::set1(bias));
  }
  from += 2 * row;
  for (int64_t h = 0; h < s.count[1]; ++h, from += row, to += s.to_step[1]) {
#pragma GCC unroll 2
    for (int v = 0; v < N; ++v) {
      // What is added here to lines of results past the end is dropped.
      load_line(from, v, x);
      const Vec<A> done = add(x, 2, now[v]);
      now[v] = add(x, 1, next[v]);
      next[v] = add(x, 0, Vec<A>::set1(bias));
      if (v < N - 1 || tail == L)
        store(to + v * L, done);
      else
        store_n(to + v * L, done, tail);
    }
  }
}

void depthwise(Elem type, const void* plane_, const ConvDepthwise& s, const void* weight_, double bias_,
               void* result_) {
  with_float_type(type, [&]<class S>(S) {
    using A = Acc<S>;
    constexpr int L = kLanes<A>;
    const auto *plane = static_cast<const A*>(plane_), *weight = static_cast<const A*>(weight_);
    const A bias = static_cast<A>(bias_);
    auto* result = static_cast<S*>(result_);
    const int64_t width = s.count[2];
    if (const int order = three_by_three(s)) {
      A rising[9];
      for (int i = 0; i < 9; ++i) rising[i] = weight[order > 0 ? i : 8 - i];
      for (int64_t d = 0; d < s.count[0]; ++d)
        for (int64_t x = 0; x < width; x += 2 * L) {
          const A* from = plane + d * s.row_step[0] + s.tap_offset[order > 0 ? 0 : 8] + x;
          S* to = result + s.to_first + d * s.to_step[0] + x;
          const auto left = static_cast<int>(std::min<int64_t>(2 * L, width - x));
          if (left > L)
            depthwise_3x3<2>(from, s, rising, bias, left - L, to);
          else
            depthwise_3x3<1>(from, s, rising, bias, left, to);
        }
      return;
    }
    for (int64_t d = 0; d < s.count[0]; ++d)
      for (int64_t h = 0; h < s.count[1]; ++h) {
        const A* from = plane + d * s.row_step[0] + h * s.row_step[1];
        S* to = result + s.to_first + d * s.to_step[0] + h * s.to_step[1];
        for (int64_t x = 0; x < width;) {
          alignas(64) A row[4 * L];
          const int64_t left = width - x;
          int64_t n = std::min<int64_t>(left, 4 * L);
          if (left > 3 * L)
            depthwise_vectors<4>(from + x, s, weight, bias, row);
          else if (left > 2 * L)
            depthwise_vectors<3>(from + x, s, weight, bias, row);
          else if (left > L)
            depthwise_vectors<2>(from + x, s, weight, bias, row);
          else
            depthwise_vectors<1>(from + x, s, weight, bias, row);
          if (s.to_step[2] == 1) {
            int64_t i = 0;
            for (; i + L <= n; i += L) store(to + x + i, load(row + i));
            if (i < n) store_n(to + x + i, load(row + i), static_cast<int>(n - i));
          } else {
            for (int64_t i = 0; i < n; ++i) to[(x + i) * s.to_step[2]] = from_acc<S>(row[i]);
          }
          x += n;
        }
      }
  });
}

// N taps at a time: one vector of partial sums each, over the whole grid.
template <int N, class S>
void depthwise_weight_taps(const Acc<S>* plane, const ConvDepthwise& s, int64_t tap, const S* dy,
                           Acc<S>* weight) {
  using A = Acc<S>;
  constexpr int L = kLanes<A>;
  Vec<A> sum[N];
  for (int t = 0; t < N; ++t) sum[t] = Vec<A>::zero();
  const int64_t width = s.count[2];
  for (int64_t d = 0; d < s.count[0]; ++d)
    for (int64_t h = 0; h < s.count[1]; ++h, dy += width) {
      const A* from = plane + d * s.row_step[0] + h * s.row_step[1];
      int64_t x = 0;
      for (; x + L <= width; x += L) {
        const Vec<A> g = load(dy + x);
#pragma GCC unroll 8
        for (int t = 0; t < N; ++t) sum[t] = fma(g, load(from + x + s.tap_offset[tap + t]), sum[t]);
      }
      if (x < width) {
        // Both sides masked: a zero times an infinity that lies behind the row would be NaN.
        const int n = static_cast<int>(width - x);
        const Vec<A> g = load_n(dy + x, n);
#pragma GCC unroll 8
        for (int t = 0; t < N; ++t) sum[t] = fma(g, load_n(from + x + s.tap_offset[tap + t], n), sum[t]);
      }
    }
  for (int t = 0; t < N; ++t) weight[tap + t] += sum_lanes(sum[t]);
}
void depthwise_weight(Elem type, const void* plane, const ConvDepthwise& s, const void* dy, void* weight) {
  with_float_type(type, [&]<class S>(S) {
    const auto* p = static_cast<const Acc<S>*>(plane);
    const auto* g = static_cast<const S*>(dy);
    auto* w = static_cast<Acc<S>*>(weight);
    int64_t tap = 0;
    for (; tap + 5 <= s.taps; tap += 5) depthwise_weight_taps<5>(p, s, tap, g, w);
    for (; tap + 3 <= s.taps; tap += 3) depthwise_weight_taps<3>(p, s, tap, g, w);
    for (; tap < s.taps; ++tap) depthwise_weight_taps<1>(p, s, tap, g, w);
  });
}

// N vectors of channels, held in registers while all taps pass.
template <int N, class S>
VESTA_INLINE void pixel_vectors(const S* x, const int64_t* offset, const int64_t* tap, int64_t taps,
                                const Acc<S>* weight, const Acc<S>* bias, int64_t channels, S* result) {
  using A = Acc<S>;
  constexpr int L = kLanes<A>;
  Vec<A> sum[N];
  for (int v = 0; v < N; ++v) sum[v] = load(bias + v * L);
  for (int64_t t = 0; t < taps; ++t) {
    const S* from = x + offset[t];
    const A* w = weight + tap[t] * channels;
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v) sum[v] = fma(load(w + v * L), load(from + v * L), sum[v]);
  }
  for (int v = 0; v < N; ++v) store(result + v * L, sum[v]);
}
void depthwise_pixel(Elem type, const void* source, const int64_t* offset, const int64_t* tap, int64_t taps,
                     const void* weight_, const void* bias_, int64_t channels, void* result_) {
  with_float_type(type, [&]<class S>(S) {
    using A = Acc<S>;
    constexpr int L = kLanes<A>;
    const auto* x = static_cast<const S*>(source);
    const auto *weight = static_cast<const A*>(weight_), *bias = static_cast<const A*>(bias_);
    auto* result = static_cast<S*>(result_);
    int64_t c = 0;
    for (; c + 4 * L <= channels; c += 4 * L)
      pixel_vectors<4>(x + c, offset, tap, taps, weight + c, bias + c, channels, result + c);
    for (; c + L <= channels; c += L)
      pixel_vectors<1>(x + c, offset, tap, taps, weight + c, bias + c, channels, result + c);
    if (c == channels) return;
    const int n = static_cast<int>(channels - c);
    Vec<A> sum = load_n(bias + c, n);
    for (int64_t t = 0; t < taps; ++t)
      sum = fma(load_n(weight + tap[t] * channels + c, n), load_n(x + offset[t] + c, n), sum);
    store_n(result + c, sum, n);
  });
}
void depthwise_pixel_weight(Elem type, const void* source, const int64_t* offset, const int64_t* tap,
                            int64_t taps, const void* dy_, int64_t channels, void* sum_) {
  with_float_type(type, [&]<class S>(S) {
    using A = Acc<S>;
    constexpr int L = kLanes<A>;
    const auto *x = static_cast<const S*>(source), *dy = static_cast<const S*>(dy_);
    auto* sum = static_cast<A*>(sum_);
    for (int64_t c = 0; c < channels; c += L) {
      const int n = static_cast<int>(std::min<int64_t>(L, channels - c));
      if (n == L) {
        const Vec<A> g = load(dy + c);
        for (int64_t t = 0; t < taps; ++t) {
          A* to = sum + tap[t] * channels + c;
          store(to, fma(g, load(x + offset[t] + c), load(to)));
        }
      } else {
        const Vec<A> g = load_n(dy + c, n);
        for (int64_t t = 0; t < taps; ++t) {
          A* to = sum + tap[t] * channels + c;
          store_n(to, fma(g, load_n(x + offset[t] + c, n), load_n(to, n)), n);
        }
      }
    }
  });
}

}  // namespace

extern const ConvKernels kConvKernels;
const ConvKernels kConvKernels = {
    .pad_plane = pad_plane,
    .gather = gather,
    .gather_pieces = gather_pieces,
    .transpose_widen = transpose_widen,
    .transpose_narrow = transpose_narrow,
    .widen = widen,
    .pack_columns = pack_columns,
    .add_value = add_value,
    .depthwise = depthwise,
    .depthwise_weight = depthwise_weight,
    .depthwise_pixel = depthwise_pixel,
    .depthwise_pixel_weight = depthwise_pixel_weight,
    .narrow = narrow,
};

}  // namespace vesta::cpu::VESTA_ISA
