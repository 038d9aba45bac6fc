// Distances by classes of p: 0, 1, 2, infinity and the rest. Gradients of |x|_p are sign(x) |x|^(p-1) / |x|_p^(p-1),
// and 0 where that is undefined: equal rows, and equal elements for p < 1.
#include "kernels/cpu/distance.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/thread_pool.h"
#include "kernels/cpu/isa/float_types.h"
#include "kernels/cpu/isa/simd.h"
#include "kernels/cpu/scratch.h"

namespace vesta::cpu::VESTA_ISA {
namespace {

constexpr int64_t kWork = 16384;    // element pairs a parallel chunk
constexpr int64_t kDimBlock = 128;  // differences that are added one after the other
constexpr int kPanelRows =
    VESTA_SIMD_BYTES == 64 ? 8 : 4;  // rows of x1 against a panel of x2 at once, by registers

int64_t grain(int64_t work) { return std::max<int64_t>(1, kWork / std::max<int64_t>(1, work)); }

struct Zero {
  static constexpr bool kPanels = false;
  template <class A>
  static A norm(const A* x, const A* y, int64_t n, A) {
    A count = 0;
    for (int64_t i = 0; i < n; ++i) count += x[i] != y[i] ? A(1) : A(0);
    return count;
  }
  template <class A>
  static A slope(A, A, A) {
    return 0;
  }
};
template <class A>
inline A sign(A v) {
  return v > 0 ? A(1) : v < 0 ? A(-1) : A(0);
}
struct One {
  static constexpr bool kPanels = true;
  template <class V>
  static VESTA_INLINE V add(V sum, V d) {
    return sum + abs(d);
  }
  template <class V>
  static VESTA_INLINE V join(V a, V b) {
    return a + b;
  }
  template <class V>
  static VESTA_INLINE V finish(V sum) {
    return sum;
  }
  template <class A>
  static A norm(const A* x, const A* y, int64_t n, A) {
    A sum[4] = {0, 0, 0, 0};
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
      for (int k = 0; k < 4; ++k) sum[k] += std::fabs(x[i + k] - y[i + k]);
    for (; i < n; ++i) sum[0] += std::fabs(x[i] - y[i]);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
  }
  template <class A>
  static A slope(A d, A, A) {
    return sign(d);
  }
};
struct Two {
  static constexpr bool kPanels = true;
  template <class V>
  static VESTA_INLINE V add(V sum, V d) {
    return fma(d, d, sum);  // a product apart would share the adders with the difference
  }
  template <class V>
  static VESTA_INLINE V join(V a, V b) {
    return a + b;
  }
  template <class V>
  static VESTA_INLINE V finish(V sum) {
    return sqrt(sum);
  }
  template <class A>
  static A norm(const A* x, const A* y, int64_t n, A) {
    A sum[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
      for (int k = 0; k < 8; ++k) {
        const A d = x[i + k] - y[i + k];
        sum[k] += d * d;
      }
    for (; i < n; ++i) sum[0] += (x[i] - y[i]) * (x[i] - y[i]);
    return std::sqrt(((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7])));
  }
  template <class A>
  static A slope(A d, A dist, A) {
    return dist == 0 ? A(0) : d / dist;
  }
};
struct Infinity {
  static constexpr bool kPanels = true;
  template <class V>
  static VESTA_INLINE V add(V largest, V d) {
    return max_nan(largest, abs(d));
  }
  template <class V>
  static VESTA_INLINE V join(V a, V b) {
    return max_nan(a, b);
  }
  template <class V>
  static VESTA_INLINE V finish(V largest) {
    return largest;
  }
  template <class A>
  static A norm(const A* x, const A* y, int64_t n, A) {
    A largest = 0;
    for (int64_t i = 0; i < n; ++i) {
      const A d = std::fabs(x[i] - y[i]);
      largest = d > largest || d != d ? d : largest;
    }
    return largest;
  }
  template <class A>
  static A slope(A d, A dist, A) {
    return std::fabs(d) == dist ? sign(d) : A(0);
  }
};
struct Any {
  static constexpr bool kPanels = false;
  template <class A>
  static A norm(const A* x, const A* y, int64_t n, A p) {
    A sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += std::pow(std::fabs(x[i] - y[i]), p);
    return std::pow(sum, 1 / p);
  }
  template <class A>
  static A slope(A d, A dist, A p) {
    if (dist == 0 || d == 0) return 0;
    return sign(d) * std::pow(std::fabs(d) / dist, p - 1);
  }
};

template <class F>
void with_norm(double p, F f) {
  if (p == 0) return f(Zero());
  if (p == 1) return f(One());
  if (p == 2) return f(Two());
  if (p == std::numeric_limits<double>::infinity()) return f(Infinity());
  f(Any());
}
template <class F>
void with_type(Elem type, F f) {
  if (type == Elem::F32)
    f(float{});
  else
    f(double{});
}

// Distances of R rows of x to the rows of a panel: element i of row l stands at panel[i * lanes + l].
template <class Norm, int R, class A>
VESTA_INLINE void panel_distances(const A* x, int64_t dim, const A* panel, A* y, int64_t y_step, int width) {
  using V = Vec<A>;
  constexpr int L = V::kLanes;
  V total[R];
  for (int r = 0; r < R; ++r) total[r] = V::zero();
  for (int64_t first = 0; first < dim; first += kDimBlock) {
    const int64_t last = std::min(dim, first + kDimBlock);
    V part[R];
    for (int r = 0; r < R; ++r) part[r] = V::zero();
    for (int64_t i = first; i < last; ++i) {
      const V of_panel = load(panel + i * L);
      for (int r = 0; r < R; ++r) part[r] = Norm::add(part[r], V::set1(x[r * dim + i]) - of_panel);
    }
    for (int r = 0; r < R; ++r) total[r] = Norm::join(total[r], part[r]);
  }
  for (int r = 0; r < R; ++r) {
    const V d = Norm::finish(total[r]);
    width == L ? store(y + r * y_step, d) : store_n(y + r * y_step, d, width);
  }
}

// A unit of work is a panel of x2's rows against all rows of x1.
template <class Norm, class A>
void cdist_by_panels(const A* a, const A* b, A* y, int64_t batch, int64_t n1, int64_t n2, int64_t dim) {
  constexpr int64_t L = Vec<A>::kLanes;
  const int64_t panels = (n2 + L - 1) / L;
  parallel_for(0, batch * panels, grain(n1 * dim * L / 4), [&](int64_t begin, int64_t end) {
    const SharedScratch scratch(size_t(dim * L) * sizeof(A));
    A* panel = static_cast<A*>(scratch.data());
    for (int64_t u = begin; u < end; ++u) {
      const int64_t item = u / panels, first = u % panels * L, width = std::min(L, n2 - first);
      for (int64_t l = 0; l < L; ++l) {
        const A* row = b + (item * n2 + std::min(first + l, n2 - 1)) * dim;
        for (int64_t i = 0; i < dim; ++i) panel[i * L + l] = row[i];
      }
      const A* x = a + item * n1 * dim;
      A* out = y + item * n1 * n2 + first;
      int64_t r = 0;
      for (; r + kPanelRows <= n1; r += kPanelRows)
        panel_distances<Norm, kPanelRows>(x + r * dim, dim, panel, out + r * n2, n2, int(width));
      for (; r < n1; ++r) panel_distances<Norm, 1>(x + r * dim, dim, panel, out + r * n2, n2, int(width));
    }
  });
}

void run_cdist(Elem type, const void* x1, const void* x2, void* out, int64_t batch, int64_t n1, int64_t n2,
               int64_t dim, double p) {
  with_type(type, [&]<class A>(A) {
    with_norm(p, [&](auto norm) {
      const A *a = static_cast<const A*>(x1), *b = static_cast<const A*>(x2);
      A* y = static_cast<A*>(out);
      if constexpr (decltype(norm)::kPanels) {
        if (n2 >= 4 && dim > 0) return cdist_by_panels<decltype(norm)>(a, b, y, batch, n1, n2, dim);
      }
      parallel_for(0, batch * n1, grain(n2 * dim), [&](int64_t begin, int64_t end) {
        for (int64_t u = begin; u < end; ++u)
          for (int64_t j = 0; j < n2; ++j)
            y[u * n2 + j] = norm.template norm<A>(a + u * dim, b + (u / n1 * n2 + j) * dim, dim, A(p));
      });
    });
  });
}
void run_cdist_backward(Elem type, const void* dy, const void* x1, const void* x2, const void* dist,
                        void* dx1, int64_t batch, int64_t n1, int64_t n2, int64_t dim, double p) {
  with_type(type, [&]<class A>(A) {
    with_norm(p, [&](auto norm) {
      const A *a = static_cast<const A*>(x1), *b = static_cast<const A*>(x2), *g = static_cast<const A*>(dy);
      const A* d = static_cast<const A*>(dist);
      A* dx = static_cast<A*>(dx1);
      parallel_for(0, batch * n1, grain(n2 * dim), [&](int64_t begin, int64_t end) {
        for (int64_t u = begin; u < end; ++u) {
          std::fill(dx + u * dim, dx + (u + 1) * dim, A(0));
          for (int64_t j = 0; j < n2; ++j) {
            const A *x = a + u * dim, *y = b + (u / n1 * n2 + j) * dim;
            const A scale = g[u * n2 + j], length = d[u * n2 + j];
            for (int64_t i = 0; i < dim; ++i)
              dx[u * dim + i] += scale * norm.template slope<A>(x[i] - y[i], length, A(p));
          }
        }
      });
    });
  });
}
// Position of the pair (i, j), i < j.
int64_t pair(int64_t i, int64_t j, int64_t n) { return i * (2 * n - i - 1) / 2 + j - i - 1; }

void run_pdist(Elem type, const void* x_in, void* out, int64_t n, int64_t dim, double p) {
  with_type(type, [&]<class A>(A) {
    with_norm(p, [&](auto norm) {
      const A* x = static_cast<const A*>(x_in);
      A* y = static_cast<A*>(out);
      parallel_for(0, n, grain(n * dim / 2), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          for (int64_t j = i + 1; j < n; ++j)
            y[pair(i, j, n)] = norm.template norm<A>(x + i * dim, x + j * dim, dim, A(p));
      });
    });
  });
}
void run_pdist_backward(Elem type, const void* dy, const void* x_in, const void* dist, void* dx_out,
                        int64_t n, int64_t dim, double p) {
  with_type(type, [&]<class A>(A) {
    with_norm(p, [&](auto norm) {
      const A *x = static_cast<const A*>(x_in), *g = static_cast<const A*>(dy),
              *d = static_cast<const A*>(dist);
      A* dx = static_cast<A*>(dx_out);
      parallel_for(0, n, grain(n * dim), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          std::fill(dx + i * dim, dx + (i + 1) * dim, A(0));
          for (int64_t j = 0; j < n; ++j) {
            if (i == j) continue;
            const int64_t at = pair(std::min(i, j), std::max(i, j), n);
            for (int64_t k = 0; k < dim; ++k)
              dx[i * dim + k] += g[at] * norm.template slope<A>(x[i * dim + k] - x[j * dim + k], d[at], A(p));
          }
        }
      });
    });
  });
}

// ---- cosines ----
constexpr int64_t kCosineBlock = 64;  // products that a lane adds one after the other

// The cosine of vectors with elements `step` apart, from their sums of squares and of products.
template <class S>
Acc<S> cosine_of(Acc<S> xx, Acc<S> yy, Acc<S> xy, const S* x, const S* y, int64_t n, int64_t step,
                 double eps) {
  using A = Acc<S>;
  using Limits = std::numeric_limits<A>;
  constexpr A kLeast = Limits::min() / Limits::epsilon();  // below it products have lost digits
  if (xx > kLeast && yy > kLeast && xx <= Limits::max() && yy <= Limits::max())
    return xy / (std::max(std::sqrt(xx), A(eps)) * std::max(std::sqrt(yy), A(eps)));
  double sx = 0, sy = 0, sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double a = to_acc(x[i * step]), b = to_acc(y[i * step]);
    sx += a * a;
    sy += b * b;
  }
  sx = std::sqrt(sx);
  sy = std::sqrt(sy);
  sx = sx < eps ? eps : sx;  // NaN stays
  sy = sy < eps ? eps : sy;
  for (int64_t i = 0; i < n; ++i) sum += to_acc(x[i * step]) / sx * (to_acc(y[i * step]) / sy);
  return A(sum);
}

template <class S>
Acc<S> cosine_row(const S* x, const S* y, int64_t n, double eps) {
  using A = Acc<S>;
  using V = Vec<A>;
  constexpr int64_t L = V::kLanes;
  A xx = 0, yy = 0, xy = 0;
  for (int64_t first = 0; first < n; first += kCosineBlock * L) {
    const int64_t last = std::min(n, first + kCosineBlock * L);
    V a2 = V::zero(), b2 = V::zero(), ab = V::zero();
    int64_t i = first;
    auto add = [&](V a, V b) {
      a2 = fma(a, a, a2);
      b2 = fma(b, b, b2);
      ab = fma(a, b, ab);
    };
    for (; i + L <= last; i += L) add(load(x + i), load(y + i));
    if (i < last) add(load_n(x + i, int(last - i)), load_n(y + i, int(last - i)));
    xx += sum_lanes(a2);
    yy += sum_lanes(b2);
    xy += sum_lanes(ab);
  }
  return cosine_of(xx, yy, xy, x, y, n, 1, eps);
}

// `width` neighbouring columns of length n.
template <class S>
void cosine_columns(const S* x, const S* y, S* out, int64_t n, int64_t inner, int width, double eps) {
  using A = Acc<S>;
  using V = Vec<A>;
  constexpr int L = V::kLanes;
  V xx = V::zero(), yy = V::zero(), xy = V::zero();
  for (int64_t first = 0; first < n; first += kCosineBlock) {
    const int64_t last = std::min(n, first + kCosineBlock);
    V a2 = V::zero(), b2 = V::zero(), ab = V::zero();
    for (int64_t i = first * inner; i < last * inner; i += inner) {
      const V a = width == L ? load(x + i) : load_n(x + i, width);
      const V b = width == L ? load(y + i) : load_n(y + i, width);
      a2 = fma(a, a, a2);
      b2 = fma(b, b, b2);
      ab = fma(a, b, ab);
    }
    xx = xx + a2;
    yy = yy + b2;
    xy = xy + ab;
  }
  A sums[3][L];
  store(sums[0], xx);
  store(sums[1], yy);
  store(sums[2], xy);
  for (int c = 0; c < width; ++c)
    out[c] = from_acc<S>(cosine_of(sums[0][c], sums[1][c], sums[2][c], x + c, y + c, n, inner, eps));
}

void run_cosine(Elem type, const void* x_in, const void* y_in, void* out_in, int64_t outer, int64_t dim,
                int64_t inner, double eps) {
  with_float_type(type, [&]<class S>(S) {
    const S *x = static_cast<const S*>(x_in), *y = static_cast<const S*>(y_in);
    S* out = static_cast<S*>(out_in);
    if (inner == 1)
      return parallel_for(0, outer, grain(dim), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r)
          out[r] = from_acc<S>(cosine_row(x + r * dim, y + r * dim, dim, eps));
      });
    constexpr int64_t L = Vec<Acc<S>>::kLanes;
    const int64_t blocks = (inner + L - 1) / L;
    parallel_for(0, outer * blocks, grain(dim * L), [&](int64_t begin, int64_t end) {
      for (int64_t u = begin; u < end; ++u) {
        const int64_t o = u / blocks, column = u % blocks * L, at = o * dim * inner + column;
        cosine_columns(x + at, y + at, out + o * inner + column, dim, inner, int(std::min(L, inner - column)),
                       eps);
      }
    });
  });
}

}  // namespace

extern const DistanceTable kDistanceTable;
const DistanceTable kDistanceTable = {run_cdist, run_cdist_backward, run_pdist, run_pdist_backward,
                                      run_cosine};

}  // namespace vesta::cpu::VESTA_ISA
