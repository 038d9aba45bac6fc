// Loops of batch_norm.h. Contiguous runs fold in four chains; rows of channels fold four vectors of channels at a time, so
// that the sums stay in registers.
#include "kernels/cpu/batch_norm.h"

#include <algorithm>

#include "kernels/cpu/isa/float_types.h"
#include "kernels/cpu/isa/simd.h"

namespace vesta::cpu::VESTA_ISA {
namespace {

constexpr int64_t kBlock = 1024;  // elements added up before the sum goes to double

template <class S>
VESTA_INLINE Vec<Acc<S>> get(const S* p, int n) {
  return n == Vec<Acc<S>>::kLanes ? load(p) : load_n(p, n);
}
template <class S>
VESTA_INLINE void put(S* p, Vec<Acc<S>> v, int n) {
  n == Vec<Acc<S>>::kLanes ? store(p, v) : store_n(p, v, n);
}
template <int L, class F>
VESTA_INLINE void for_vectors(int64_t n, F body) {
  int64_t i = 0;
  for (; i + L <= n; i += L) body(i, L);
  if (i < n) body(i, static_cast<int>(n - i));
}

// Adds up f(chain, i, lanes) over a run. Missing lanes of the tail must add nothing.
template <class A, class F>
VESTA_INLINE double fold(int64_t n, F f) {
  constexpr int L = Vec<A>::kLanes;
  double total = 0;
  for (int64_t from = 0; from < n; from += kBlock) {
    const int64_t to = std::min(n, from + kBlock);
    Vec<A> s0 = Vec<A>::zero(), s1 = s0, s2 = s0, s3 = s0;
    int64_t i = from;
    for (; i + 4 * L <= to; i += 4 * L) {
      s0 = f(s0, i, L);
      s1 = f(s1, i + L, L);
      s2 = f(s2, i + 2 * L, L);
      s3 = f(s3, i + 3 * L, L);
    }
    for (; i + L <= to; i += L) s0 = f(s0, i, L);
    if (i < to) s1 = f(s1, i, static_cast<int>(to - i));
    total += static_cast<double>(sum_lanes((s0 + s1) + (s2 + s3)));
  }
  return total;
}

double sum(Elem type, const void* x_, int64_t n) {
  double total = 0;
  with_float_type(type, [&]<class S>(S) {
    const auto* x = static_cast<const S*>(x_);
    total = fold<Acc<S>>(
        n, [&](Vec<Acc<S>> s, int64_t i, int lanes)
               __attribute__((always_inline)) { return s + get(x + i, lanes); });
  });
  return total;
}

double squares(Elem type, const void* x_, int64_t n, double centre) {
  double total = 0;
  with_float_type(type, [&]<class S>(S) {
    using A = Acc<S>;
    const auto* x = static_cast<const S*>(x_);
    const A fill = static_cast<A>(centre);
    const Vec<A> c = Vec<A>::set1(fill);
    total = fold<A>(
        n, [&](Vec<A> s, int64_t i, int lanes) __attribute__((always_inline)) {
          const Vec<A> d = (lanes == Vec<A>::kLanes ? load(x + i) : load_n(x + i, lanes, fill)) - c;
          return fma(d, d, s);
        });
  });
  return total;
}

void products(Elem type, const void* dy_, const void* x_, int64_t n, double mean, double* sums) {
  with_float_type(type, [&]<class S>(S) {
    using A = Acc<S>;
    constexpr int L = Vec<A>::kLanes;
    const auto *dy = static_cast<const S*>(dy_), *x = static_cast<const S*>(x_);
    const A fill = static_cast<A>(mean);
    const Vec<A> m = Vec<A>::set1(fill);
    for (int64_t from = 0; from < n; from += kBlock) {
      const int64_t to = std::min(n, from + kBlock);
      Vec<A> g0 = Vec<A>::zero(), g1 = g0, p0 = g0, p1 = g0;
      int64_t i = from;
      for (; i + 2 * L <= to; i += 2 * L) {
        const Vec<A> a = load(dy + i), b = load(dy + i + L);
        g0 = g0 + a;
        g1 = g1 + b;
        p0 = fma(a, load(x + i) - m, p0);
        p1 = fma(b, load(x + i + L) - m, p1);
      }
      for (; i < to; i += L) {
        const int lanes = static_cast<int>(std::min<int64_t>(L, to - i));
        const Vec<A> a = get(dy + i, lanes);
        g0 = g0 + a;
        p0 = fma(a, (lanes == L ? load(x + i) : load_n(x + i, lanes, fill)) - m, p0);
      }
      sums[0] += static_cast<double>(sum_lanes(g0 + g1));
      sums[1] += static_cast<double>(sum_lanes(p0 + p1));
    }
  });
}

void apply(Elem type, const void* x_, int64_t n, double mean, double scale, double shift, void* y_) {
  with_float_type(type, [&]<class S>(S) {
    using A = Acc<S>;
    const auto* x = static_cast<const S*>(x_);
    auto* y = static_cast<S*>(y_);
    const Vec<A> m = Vec<A>::set1(A(mean)), a = Vec<A>::set1(A(scale)), b = Vec<A>::set1(A(shift));
    for_vectors<Vec<A>::kLanes>(
        n, [&](int64_t i, int lanes)
               __attribute__((always_inline)) { put(y + i, fma(get(x + i, lanes) - m, a, b), lanes); });
  });
}

void gradient(Elem type, const void* dy_, const void* x_, int64_t n, double mean, double a_, double b_,
              double c_, void* dx_) {
  with_float_type(type, [&]<class S>(S) {
    using A = Acc<S>;
    const auto *dy = static_cast<const S*>(dy_), *x = static_cast<const S*>(x_);
    auto* dx = static_cast<S*>(dx_);
    const Vec<A> m = Vec<A>::set1(A(mean)), a = Vec<A>::set1(A(a_)), b = Vec<A>::set1(A(b_)),
                 c = Vec<A>::set1(A(c_));
    for_vectors<Vec<A>::kLanes>(
        n, [&](int64_t i, int lanes) __attribute__((always_inline)) {
          put(dx + i, fma(a, get(dy + i, lanes), fma(b, get(x + i, lanes) - m, c)), lanes);
        });
  });
}

// ---- rows of channels ----

// body(c, lanes, vectors-tag) for groups of up to N vectors of channels.
template <class A, class F>
VESTA_INLINE void for_channel_groups(int64_t channels, F body) {
  constexpr int L = Vec<A>::kLanes;
  int64_t c = 0;
  for (; c + 4 * L <= channels; c += 4 * L) body.template operator()<4>(c, L);
  for (; c + L <= channels; c += L) body.template operator()<1>(c, L);
  if (c < channels) body.template operator()<1>(c, static_cast<int>(channels - c));
}
template <class A>
VESTA_INLINE Vec<A> from_double(const double* p, int n) {
  A v[Vec<A>::kLanes] = {};
  for (int i = 0; i < n; ++i) v[i] = static_cast<A>(p[i]);
  return load(v);
}
template <class A>
VESTA_INLINE void add_to_double(double* p, Vec<A> v, int n) {
  A a[Vec<A>::kLanes];
  store(a, v);
  for (int i = 0; i < n; ++i) p[i] += static_cast<double>(a[i]);
}

void row_sum(Elem type, const void* x_, int64_t rows, int64_t channels, double* out) {
  with_float_type(type, [&]<class S>(S) {
    using A = Acc<S>;
    constexpr int L = Vec<A>::kLanes;
    const auto* x = static_cast<const S*>(x_);
    for_channel_groups<A>(channels, [&]<int N>(int64_t c, int lanes) {
      Vec<A> s[N];
      for (int v = 0; v < N; ++v) s[v] = Vec<A>::zero();
      for (int64_t r = 0; r < rows; ++r)
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) s[v] = s[v] + get(x + r * channels + c + v * L, lanes);
      for (int v = 0; v < N; ++v) add_to_double(out + c + v * L, s[v], lanes);
    });
  });
}

void row_squares(Elem type, const void* x_, int64_t rows, int64_t channels, const double* centre,
                 double* out) {
  with_float_type(type, [&]<class S>(S) {
    using A = Acc<S>;
    constexpr int L = Vec<A>::kLanes;
    const auto* x = static_cast<const S*>(x_);
    for_channel_groups<A>(channels, [&]<int N>(int64_t c, int lanes) {
      Vec<A> s[N], m[N];
      for (int v = 0; v < N; ++v) {
        s[v] = Vec<A>::zero();
        m[v] = from_double<A>(centre + c + v * L, lanes);
      }
      for (int64_t r = 0; r < rows; ++r)
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) {
          const Vec<A> d = get(x + r * channels + c + v * L, lanes) - m[v];
          s[v] = fma(d, d, s[v]);
        }
      for (int v = 0; v < N; ++v) add_to_double(out + c + v * L, s[v], lanes);
    });
  });
}

void row_products(Elem type, const void* dy_, const void* x_, int64_t rows, int64_t channels,
                  const double* mean, double* sum_dy, double* sum_product) {
  with_float_type(type, [&]<class S>(S) {
    using A = Acc<S>;
    constexpr int L = Vec<A>::kLanes;
    const auto *dy = static_cast<const S*>(dy_), *x = static_cast<const S*>(x_);
    for_channel_groups<A>(channels, [&]<int N>(int64_t c, int lanes) {
      Vec<A> g[N], p[N], m[N];
      for (int v = 0; v < N; ++v) {
        g[v] = p[v] = Vec<A>::zero();
        m[v] = from_double<A>(mean + c + v * L, lanes);
      }
      for (int64_t r = 0; r < rows; ++r)
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) {
          const int64_t at = r * channels + c + v * L;
          const Vec<A> d = get(dy + at, lanes);
          g[v] = g[v] + d;
          p[v] = fma(d, get(x + at, lanes) - m[v], p[v]);
        }
      for (int v = 0; v < N; ++v) {
        add_to_double(sum_dy + c + v * L, g[v], lanes);
        add_to_double(sum_product + c + v * L, p[v], lanes);
      }
    });
  });
}

void row_apply(Elem type, const void* x_, int64_t rows, int64_t channels, const double* mean,
               const double* scale, const double* shift, void* y_) {
  with_float_type(type, [&]<class S>(S) {
    using A = Acc<S>;
    constexpr int L = Vec<A>::kLanes;
    const auto* x = static_cast<const S*>(x_);
    auto* y = static_cast<S*>(y_);
    for_channel_groups<A>(channels, [&]<int N>(int64_t c, int lanes) {
      Vec<A> m[N], a[N], b[N];
      for (int v = 0; v < N; ++v) {
        m[v] = from_double<A>(mean + c + v * L, lanes);
        a[v] = from_double<A>(scale + c + v * L, lanes);
        b[v] = from_double<A>(shift + c + v * L, lanes);
      }
      for (int64_t r = 0; r < rows; ++r)
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) {
          const int64_t at = r * channels + c + v * L;
          put(y + at, fma(get(x + at, lanes) - m[v], a[v], b[v]), lanes);
        }
    });
  });
}

void row_gradient(Elem type, const void* dy_, const void* x_, int64_t rows, int64_t channels,
                  const double* mean, const double* a_, const double* b_, const double* c_, void* dx_) {
  with_float_type(type, [&]<class S>(S) {
    using A = Acc<S>;
    constexpr int L = Vec<A>::kLanes;
    const auto *dy = static_cast<const S*>(dy_), *x = static_cast<const S*>(x_);
    auto* dx = static_cast<S*>(dx_);
    for_channel_groups<A>(channels, [&]<int N>(int64_t c, int lanes) {
      Vec<A> m[N], a[N], b[N], d[N];
      for (int v = 0; v < N; ++v) {
        m[v] = from_double<A>(mean + c + v * L, lanes);
        a[v] = from_double<A>(a_ + c + v * L, lanes);
        b[v] = from_double<A>(b_ + c + v * L, lanes);
        d[v] = from_double<A>(c_ + c + v * L, lanes);
      }
      for (int64_t r = 0; r < rows; ++r)
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) {
          const int64_t at = r * channels + c + v * L;
          put(dx + at, fma(a[v], get(dy + at, lanes), fma(b[v], get(x + at, lanes) - m[v], d[v])), lanes);
        }
    });
  });
}

}  // namespace

extern const BatchNormTable kBatchNormTable;
const BatchNormTable kBatchNormTable = {sum,     squares,     products,     apply,     gradient,
                                        row_sum, row_squares, row_products, row_apply, row_gradient};

}  // namespace vesta::cpu::VESTA_ISA
