// Softmax rows and columns. Contiguous rows (inner == 1): three passes over a row kept in cache as float (the output
// itself, or scratch for 16-bit types). Rows above kLongRow: one pass for the maximum and the sum by blocks that stay in
// L1, one for the result, at the price of a second exp. inner > 1: bands of columns are read once, row by row, into
// scratch that stays in L2: rows a power of two apart share a few cache sets and would be fetched again by every pass.
// Very long columns do without the scratch: 16 (8) of them at a time, each pass with the stride.
#include "kernels/cpu/softmax.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/thread_pool.h"
#include "kernels/cpu/isa/float_types.h"
#include "kernels/cpu/isa/simd.h"
#include "kernels/cpu/scratch.h"

namespace vesta::cpu::VESTA_ISA {
namespace {

constexpr int64_t kLongRow = 65536;     // elements; 3 x 256 KB passes still hit a 1 MB L2
constexpr int64_t kBlock = 4096;        // elements of a long row's block
constexpr int64_t kForwardWork = 8192;  // elements per parallel chunk
constexpr int64_t kBackwardWork = 16384;
constexpr int64_t kBand = 16384;       // elements of a band of columns
constexpr int64_t kWidestBand = 1024;  // its columns
constexpr int64_t kSumRows = 256;      // of a column that are summed on their own, for accuracy
constexpr int64_t kLongColumn = 8192;  // elements; above it a band of one vector would leave L2

template <class S>
Acc<S> row_max(const S* x, int64_t n) {
  using A = Acc<S>;
  using V = Vec<A>;
  constexpr int L = V::kLanes;
  V m0 = V::set1(-kInfinity<A>), m1 = m0, m2 = m0, m3 = m0;
  int64_t i = 0;
  for (; i + 4 * L <= n; i += 4 * L) {
    m0 = max(m0, load(x + i));
    m1 = max(m1, load(x + i + L));
    m2 = max(m2, load(x + i + 2 * L));
    m3 = max(m3, load(x + i + 3 * L));
  }
  for (; i + L <= n; i += L) m0 = max(m0, load(x + i));
  if (i < n) m1 = max(m1, load_n(x + i, static_cast<int>(n - i), -kInfinity<A>));
  return max_lanes(max(max(m0, m1), max(m2, m3)));
}

// Sum of exp(x - shift), stored to e unless e is null.
template <class S>
Acc<S> exp_sum(const S* x, int64_t n, Acc<S> shift, Acc<S>* e) {
  using A = Acc<S>;
  using V = Vec<A>;
  constexpr int L = V::kLanes;
  const V s = V::set1(shift);
  V sum0 = V::zero(), sum1 = V::zero();
  int64_t i = 0;
  for (; i + 2 * L <= n; i += 2 * L) {
    const V a = exp(load(x + i) - s), b = exp(load(x + i + L) - s);
    if (e) {
      store(e + i, a);
      store(e + i + L, b);
    }
    sum0 = sum0 + a;
    sum1 = sum1 + b;
  }
  for (; i + L <= n; i += L) {
    const V a = exp(load(x + i) - s);
    if (e) store(e + i, a);
    sum0 = sum0 + a;
  }
  if (i < n) {
    const int rest = static_cast<int>(n - i);
    V a = exp(load_n(x + i, rest, -kInfinity<A>) - s);
    alignas(64) A lanes[L];
    store(lanes, a);
    for (int j = rest; j < L; ++j) lanes[j] = 0;  // shift may be -inf: those lanes are NaN
    a = load(lanes);
    if (e) store_n(e + i, a, rest);
    sum1 = sum1 + a;
  }
  return sum_lanes(sum0 + sum1);
}

// y = f(x) element by element, rows of any type to any type of the same accumulator.
template <class X, class S, class F>
void map_row(const X* x, S* y, int64_t n, F f) {
  constexpr int L = Vec<Acc<S>>::kLanes;
  int64_t i = 0;
  for (; i + L <= n; i += L) store(y + i, f(load(x + i)));
  if (i < n) store_n(y + i, f(load_n(x + i, static_cast<int>(n - i))), static_cast<int>(n - i));
}

// Maximum and sum of exp(x - maximum) of a long row, block by block.
template <class S>
void long_row_stats(const S* x, int64_t n, Acc<S>* max_out, Acc<S>* sum_out) {
  using A = Acc<S>;
  A m = -kInfinity<A>, sum = 0;
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t count = n - i < kBlock ? n - i : kBlock;
    const A block_max = row_max(x + i, count);
    if (block_max > m) {
      sum = m == -kInfinity<A> ? sum : sum * std::exp(m - block_max);
      m = block_max;
    }
    // Before the first finite element every x is -inf (adds 0) or NaN (must stay NaN): shift 0 does both.
    sum += exp_sum<S>(x + i, count, m == -kInfinity<A> ? A(0) : m, nullptr);
  }
  *max_out = m;
  *sum_out = m == -kInfinity<A> ? std::numeric_limits<A>::quiet_NaN() : sum;
}

template <class S>
void softmax_row(const S* x, S* y, int64_t n, bool log, bool safe, Acc<S>* buffer) {
  using A = Acc<S>;
  using V = Vec<A>;
  if (n > kLongRow) {
    A m, sum;
    long_row_stats(x, n, &m, &sum);
    if (log) {
      const V shift = V::set1(m), log_sum = V::set1(std::log(sum));
      map_row(x, y, n, [&](V a) { return (a - shift) - log_sum; });
    } else if (safe && m == -kInfinity<A> && sum != sum && exp_sum<S>(x, n, 0, nullptr) == 0) {
      map_row(x, y, n, [&](V) { return V::zero(); });
    } else {
      const V shift = V::set1(m), inverse = V::set1(A(1) / sum);
      map_row(x, y, n, [&](V a) { return exp(a - shift) * inverse; });
    }
    return;
  }
  const A m = row_max(x, n);
  if (log) {
    const V shift = V::set1(m), log_sum = V::set1(std::log(exp_sum<S>(x, n, m, nullptr)));
    map_row(x, y, n, [&](V a) { return (a - shift) - log_sum; });
    return;
  }
  if (safe && m == -kInfinity<A> &&
      exp_sum<S>(x, n, 0, nullptr) == 0) {  // NaN elements would make this sum NaN
    map_row(x, y, n, [&](V) { return V::zero(); });
    return;
  }
  A* e = buffer;
  if constexpr (sizeof(S) >= 4) e = y;
  const V inverse = V::set1(A(1) / exp_sum<S>(x, n, m, e));
  map_row(static_cast<const A*>(e), y, n, [&](V a) { return a * inverse; });
}

// The sum of term(d) for d in [0, dim).
template <class V, class F>
VESTA_INLINE V sum_rows(int64_t dim, F term) {
  V sum = V::zero();
  for (int64_t d = 0; d < dim;) {
    V part = V::zero();
    for (const int64_t end = std::min(dim, d + kSumRows); d < end; ++d) part = part + term(d);
    sum = sum + part;
  }
  return sum;
}

// One block of up to L columns with stride `inner`; `get`/`put` hide full and partial vectors.
template <class S>
void softmax_columns(const S* x, S* y, int64_t dim, int64_t inner, int count, bool log, bool safe) {
  using A = Acc<S>;
  using V = Vec<A>;
  constexpr int L = V::kLanes;
  auto get = [&](const S* p) { return count == L ? load(p) : load_n(p, count); };
  auto put = [&](S* p, V v) { count == L ? store(p, v) : store_n(p, v, count); };
  V m = V::set1(-kInfinity<A>);
  for (int64_t d = 0; d < dim; ++d) m = max(m, get(x + d * inner));
  if (safe && !log) {  // columns of only -inf: shift by 0, sum 0, and 0 * (1 / 1)
    alignas(64) A lanes[L];
    store(lanes, m);
    for (int j = 0; j < L; ++j) lanes[j] = lanes[j] == -kInfinity<A> ? A(0) : lanes[j];
    m = load(lanes);
  }
  alignas(64) A lanes[L];
  store(lanes, sum_rows<V>(dim, [&](int64_t d) { return exp(get(x + d * inner) - m); }));
  for (int j = 0; j < L; ++j) {
    if (log)
      lanes[j] = std::log(lanes[j]);
    else
      lanes[j] = safe && lanes[j] == 0 ? A(0) : A(1) / lanes[j];
  }
  const V last = load(lanes);
  for (int64_t d = 0; d < dim; ++d) {
    const V a = get(x + d * inner) - m;
    put(y + d * inner, log ? a - last : exp(a) * last);
  }
}

// The columns of a band, a multiple of the lanes (the scratch's rows are padded to it).
template <class A>
int64_t band_width(int64_t dim, int64_t inner) {
  constexpr int64_t L = Vec<A>::kLanes;
  const int64_t widest = kBand / dim < kWidestBand ? kBand / dim / L * L : kWidestBand;
  const int64_t needed = (inner + L - 1) / L * L;
  return widest < L ? L : widest < needed ? widest : needed;
}
// Calls f(column, get, put) for each vector of a row of `width` columns; get and put touch no column behind them.
template <class S, class F>
VESTA_INLINE void each_vector(int64_t width, F f) {
  using V = Vec<Acc<S>>;
  constexpr int L = V::kLanes;
  int64_t c = 0;
  for (; c + L <= width; c += L)
    f(
        c, [](const S* p) { return load(p); }, [](S* p, V v) { store(p, v); });
  if (c < width) {
    const int rest = static_cast<int>(width - c);
    f(
        c, [rest](const S* p) { return load_n(p, rest); }, [rest](S* p, V v) { store_n(p, v, rest); });
  }
}

// A band of `width` columns of length dim, `inner` apart. work: dim rows of `padded` columns (whole vectors), and two
// more.
template <class S>
void softmax_band(const S* x, S* y, int64_t dim, int64_t inner, int64_t width, int64_t padded, bool log,
                  bool safe, Acc<S>* work) {
  using A = Acc<S>;
  using V = Vec<A>;
  constexpr int L = V::kLanes;
  A *top = work + dim * padded, *last = top + padded;
  for (int64_t c = 0; c < padded; c += L) store(top + c, V::set1(-kInfinity<A>));
  for (int64_t d = 0; d < dim; ++d)
    each_vector<S>(width, [&](int64_t c, auto get, auto) {
      const V v = get(x + d * inner + c);
      store(work + d * padded + c, v);
      store(top + c, max(load(top + c), v));
    });
  if (safe && !log)  // columns of only -inf: shift by 0, sum 0, and 0 * (1 / 1)
    for (int64_t c = 0; c < padded; ++c) top[c] = top[c] == -kInfinity<A> ? A(0) : top[c];
  for (int64_t c = 0; c < padded; c += L) {
    const V shift = load(top + c);
    store(last + c, sum_rows<V>(dim, [&](int64_t d) {
            A* at = work + d * padded + c;
            const V e = exp(load(at) - shift);
            if (!log) store(at, e);
            return e;
          }));
  }
  for (int64_t c = 0; c < padded; ++c) {
    if (log)
      last[c] = std::log(last[c]);
    else
      last[c] = safe && last[c] == 0 ? A(0) : A(1) / last[c];
  }
  for (int64_t d = 0; d < dim; ++d)
    each_vector<S>(width, [&](int64_t c, auto, auto put) {
      const V v = load(work + d * padded + c);
      put(y + d * inner + c, log ? (v - load(top + c)) - load(last + c) : v * load(last + c));
    });
}

// Calls body(at, width, padded, work) for each band of every outer index; `arrays` copies of a band fit into work, and
// two rows more.
template <class S, class Body>
void each_band(SoftmaxShape shape, int arrays, int64_t chunk_work, Body body) {
  using A = Acc<S>;
  const auto [outer, dim, inner] = shape;
  constexpr int64_t L = Vec<A>::kLanes;
  const int64_t widest = band_width<A>(dim, inner), bands = (inner + widest - 1) / widest;
  parallel_for(0, outer * bands, grain_for(dim * widest, chunk_work),
               [&, dim = dim, inner = inner](int64_t begin, int64_t end) {
                 A* work = static_cast<A*>(thread_scratch(size_t((arrays * dim + 2) * widest) * sizeof(A)));
                 for (int64_t u = begin; u < end; ++u) {
                   const int64_t column = u % bands * widest;
                   const int64_t width = inner - column < widest ? inner - column : widest;
                   body(u / bands * dim * inner + column, width, (width + L - 1) / L * L, work);
                 }
               });
}

template <class S>
void forward_typed(const S* x, S* y, SoftmaxShape shape, bool log, bool safe) {
  const auto [outer, dim, inner] = shape;
  if (outer <= 0 || dim <= 0 || inner <= 0) return;
  if (inner == 1) {
    parallel_for(0, outer, grain_for(dim, kForwardWork), [&, dim = dim](int64_t begin, int64_t end) {
      Acc<S>* buffer = nullptr;
      if constexpr (sizeof(S) < 4) {
        if (!log && dim <= kLongRow)
          buffer = static_cast<Acc<S>*>(thread_scratch(size_t(dim) * sizeof(Acc<S>)));
      }
      for (int64_t r = begin; r < end; ++r) softmax_row(x + r * dim, y + r * dim, dim, log, safe, buffer);
    });
    return;
  }
  if (dim <= kLongColumn) {
    return each_band<S>(shape, 1, kForwardWork,
                        [&, dim = dim, inner = inner](int64_t at, int64_t width, int64_t padded, auto* work) {
                          softmax_band(x + at, y + at, dim, inner, width, padded, log, safe, work);
                        });
  }
  constexpr int64_t L = Vec<Acc<S>>::kLanes;
  const int64_t blocks = (inner + L - 1) / L;
  parallel_for(0, outer * blocks, grain_for(dim * L, kForwardWork),
               [&, dim = dim, inner = inner](int64_t begin, int64_t end) {
                 for (int64_t u = begin; u < end; ++u) {
                   const int64_t column = u % blocks * L, at = u / blocks * dim * inner + column;
                   const int count = static_cast<int>(inner - column < L ? inner - column : L);
                   softmax_columns(x + at, y + at, dim, inner, count, log, safe);
                 }
               });
}

template <class S>
void backward_row(const S* dy, const S* y, S* dx, int64_t n, bool log) {
  using A = Acc<S>;
  using V = Vec<A>;
  constexpr int L = V::kLanes;
  V s0 = V::zero(), s1 = V::zero();
  int64_t i = 0;
  auto term = [&](V g, V p) { return log ? g : g * p; };
  for (; i + 2 * L <= n; i += 2 * L) {
    s0 = s0 + term(load(dy + i), load(y + i));
    s1 = s1 + term(load(dy + i + L), load(y + i + L));
  }
  for (; i + L <= n; i += L) s0 = s0 + term(load(dy + i), load(y + i));
  if (i < n) s1 = s1 + term(load_n(dy + i, int(n - i)), load_n(y + i, int(n - i)));
  const V sum = V::set1(sum_lanes(s0 + s1));
  auto result = [&](V g, V p) { return log ? g - exp(p) * sum : p * (g - sum); };
  for (i = 0; i + L <= n; i += L) store(dx + i, result(load(dy + i), load(y + i)));
  if (i < n) store_n(dx + i, result(load_n(dy + i, int(n - i)), load_n(y + i, int(n - i))), int(n - i));
}

template <class S>
void backward_columns(const S* dy, const S* y, S* dx, int64_t dim, int64_t inner, int count, bool log) {
  using V = Vec<Acc<S>>;
  auto get = [&](const S* p) { return count == V::kLanes ? load(p) : load_n(p, count); };
  const V sum = sum_rows<V>(dim, [&](int64_t d) {
    const V g = get(dy + d * inner);
    return log ? g : g * get(y + d * inner);
  });
  for (int64_t d = 0; d < dim * inner; d += inner) {
    const V g = get(dy + d), p = get(y + d);
    const V r = log ? g - exp(p) * sum : p * (g - sum);
    count == V::kLanes ? store(dx + d, r) : store_n(dx + d, r, count);
  }
}

// The same for a band; work: 2 * dim rows of `padded` columns, and two more.
template <class S>
void backward_band(const S* dy, const S* y, S* dx, int64_t dim, int64_t inner, int64_t width, int64_t padded,
                   bool log, Acc<S>* work) {
  using A = Acc<S>;
  using V = Vec<A>;
  A *gradients = work, *results = work + dim * padded, *sum = results + dim * padded, *part = sum + padded;
  std::fill_n(sum, 2 * padded, A(0));
  for (int64_t d = 0; d < dim; ++d) {
    each_vector<S>(width, [&](int64_t c, auto get, auto) {
      const V g = get(dy + d * inner + c), p = get(y + d * inner + c);
      store(gradients + d * padded + c, g);
      store(results + d * padded + c, p);
      store(part + c, load(part + c) + (log ? g : g * p));
    });
    if (d + 1 < dim && (d + 1) % kSumRows != 0) continue;
    for (int64_t c = 0; c < padded; ++c) sum[c] += std::exchange(part[c], A(0));
  }
  for (int64_t d = 0; d < dim; ++d)
    each_vector<S>(width, [&](int64_t c, auto, auto put) {
      const V g = load(gradients + d * padded + c), p = load(results + d * padded + c), s = load(sum + c);
      put(dx + d * inner + c, log ? g - exp(p) * s : p * (g - s));
    });
}

template <class S>
void backward_typed(const S* dy, const S* y, S* dx, SoftmaxShape shape, bool log) {
  const auto [outer, dim, inner] = shape;
  if (outer <= 0 || dim <= 0 || inner <= 0) return;
  if (inner == 1) {
    parallel_for(0, outer, grain_for(dim, kBackwardWork), [&, dim = dim](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) backward_row(dy + r * dim, y + r * dim, dx + r * dim, dim, log);
    });
    return;
  }
  if (dim <= kLongColumn) {
    return each_band<S>(shape, 2, kBackwardWork,
                        [&, dim = dim, inner = inner](int64_t at, int64_t width, int64_t padded, auto* work) {
                          backward_band(dy + at, y + at, dx + at, dim, inner, width, padded, log, work);
                        });
  }
  constexpr int64_t L = Vec<Acc<S>>::kLanes;
  const int64_t blocks = (inner + L - 1) / L;
  parallel_for(0, outer * blocks, grain_for(dim * L, kBackwardWork),
               [&, dim = dim, inner = inner](int64_t begin, int64_t end) {
                 for (int64_t u = begin; u < end; ++u) {
                   const int64_t column = u % blocks * L, at = u / blocks * dim * inner + column;
                   const int count = static_cast<int>(inner - column < L ? inner - column : L);
                   backward_columns(dy + at, y + at, dx + at, dim, inner, count, log);
                 }
               });
}

void forward(Elem type, const void* x, void* y, SoftmaxShape shape, bool log, bool safe) {
  with_float_type(type, [&]<class S>(S) {
    forward_typed(static_cast<const S*>(x), static_cast<S*>(y), shape, log, safe);
  });
}

void backward(Elem type, const void* dy, const void* y, void* dx, SoftmaxShape shape, bool log) {
  with_float_type(type, [&]<class S>(S) {
    backward_typed(static_cast<const S*>(dy), static_cast<const S*>(y), static_cast<S*>(dx), shape, log);
  });
}

}  // namespace

extern const SoftmaxTable kSoftmaxTable;
const SoftmaxTable kSoftmaxTable = {forward, backward};

}  // namespace vesta::cpu::VESTA_ISA
