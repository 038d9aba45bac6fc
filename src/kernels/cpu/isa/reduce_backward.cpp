// Gradients of variances and products; see kernels/cpu/reduce_backward.h.
#include "kernels/cpu/reduce_backward.h"

#include <algorithm>

#include "kernels/cpu/isa/float_types.h"
#include "kernels/cpu/isa/reduce_float.h"

namespace vesta::cpu::VESTA_ISA {
namespace {

constexpr int64_t kInL1 = 4096;     // elements that are summed and then read again from L1
constexpr int64_t kInL2 = 65536;    // the same from L2
constexpr int64_t kChunk = 16384;   // elements a parallel chunk
constexpr int64_t kLongRow = 2048;  // elements of a row above which it is not worth a panel

// ---- variance ----

// dx of `rows` reduced elements: of one row (inner == 1), or of rows of `inner` columns.
template <class S>
void centre(const S* grad, const S* x, S* dx, int64_t rows, int64_t inner, const Acc<S>* mean, Acc<S> scale) {
  using A = Acc<S>;
  using V = Vec<A>;
  constexpr int64_t L = V::kLanes;
  if (inner == 1) {
    const V m = V::set1(mean[0]), s = V::set1(to_acc(grad[0]) * scale);
    int64_t i = 0;
    for (; i + L <= rows; i += L) store(dx + i, (load(x + i) - m) * s);
    if (i < rows) {
      const int rest = static_cast<int>(rows - i);
      store_n(dx + i, (load_n(x + i, rest) - m) * s, rest);
    }
    return;
  }
  const V of_scale = V::set1(scale);
  for (int64_t r = 0; r < rows; ++r) {
    const S* from = x + r * inner;
    S* to = dx + r * inner;
    int64_t c = 0;
    for (; c + L <= inner; c += L)
      store(to + c, (load(from + c) - load(mean + c)) * (load(grad + c) * of_scale));
    if (c < inner) {
      const int rest = static_cast<int>(inner - c);
      store_n(to + c, (load_n(from + c, rest) - load_n(mean + c, rest)) * (load_n(grad + c, rest) * of_scale),
              rest);
    }
  }
}

template <class S>
void var_typed(const S* grad, const S* x, S* dx, ReduceShape shape, Acc<S> scale) {
  using A = Acc<S>;
  const auto [outer, reduced, inner] = shape;
  const int64_t slab = reduced * inner;
  const SharedScratch scratch(size_t(outer * inner) * sizeof(A));
  A* mean = static_cast<A*>(scratch.data());
  auto means = [&, reduced = reduced, inner = inner](int64_t first, int64_t count) {
    fold<SumOp<A>>(x + first * slab, {count, reduced, inner}, nullptr, mean + first * inner);
    for (int64_t i = first * inner; i < (first + count) * inner; ++i) mean[i] /= A(reduced);
  };
  if (slab <= kInL2) {
    const int64_t group = std::max<int64_t>(1, kInL1 / slab);
    parallel_for(
        0, outer, grain_for(slab, kChunk), [&, reduced = reduced, inner = inner](int64_t begin, int64_t end) {
          for (int64_t o = begin; o < end; o += group) {
            const int64_t stop = std::min(end, o + group);
            means(o, stop - o);
            for (int64_t k = o; k < stop; ++k)
              centre(grad + k * inner, x + k * slab, dx + k * slab, reduced, inner, mean + k * inner, scale);
          }
        });
    return;
  }
  means(0, outer);
  const int64_t rows = std::max<int64_t>(1, kChunk / inner), pieces = (reduced + rows - 1) / rows;
  parallel_for(0, outer * pieces, 1, [&, reduced = reduced, inner = inner](int64_t begin, int64_t end) {
    for (int64_t u = begin; u < end; ++u) {
      const int64_t o = u / pieces, first = u % pieces * rows, at = o * slab + first * inner;
      centre(grad + o * inner, x + at, dx + at, std::min(rows, reduced - first), inner, mean + o * inner,
             scale);
    }
  });
}

// ---- product ----
// Products of what comes before an element, forwards, times products of what comes after it, backwards. Lanes are
// neighbouring columns, or rows that a panel brings side by side: one row alone is a chain of dependent products.

// before[i * step] becomes g * before * after of n vectors; x(i) loads them, put(i, v) takes the results.
template <class A, class X, class Put>
VESTA_INLINE void products_of_others(int64_t n, Vec<A> g, A* before, int64_t step, int width, X x, Put put) {
  using V = Vec<A>;
  constexpr int L = V::kLanes;
  V product = V::set1(1);
  for (int64_t i = 0; i < n; ++i) {
    width == L ? store(before + i * step, product) : store_n(before + i * step, product, width);
    product = product * x(i);
  }
  product = V::set1(1);
  for (int64_t i = n; i-- > 0;) {
    const V b = width == L ? load(before + i * step) : load_n(before + i * step, width);
    put(i, g * (b * product));
    product = product * x(i);
  }
}

template <class S>
void prod_columns(const S* grad, const S* x, S* dx, int64_t n, int64_t inner, int width) {
  using A = Acc<S>;
  using V = Vec<A>;
  constexpr int L = V::kLanes;
  auto get = [&](const S* p) { return width == L ? load(p) : load_n(p, width); };
  auto from = [&](int64_t i) { return get(x + i * inner); };
  auto put = [&](int64_t i, V v) {
    width == L ? store(dx + i * inner, v) : store_n(dx + i * inner, v, width);
  };
  if constexpr (sizeof(S) >= 4) {
    products_of_others(n, get(grad), dx, inner, width, from, put);
  } else {
    A* before = static_cast<A*>(thread_scratch(size_t(n * L) * sizeof(A)));
    products_of_others(n, get(grad), before, L, L, from, put);
  }
}

// Up to L rows.
template <class S>
void prod_panel(const S* grad, const S* x, S* dx, int64_t n, int rows) {
  using A = Acc<S>;
  using V = Vec<A>;
  constexpr int64_t L = V::kLanes;
  A* panel = static_cast<A*>(thread_scratch(size_t(2 * n * L) * sizeof(A)));
  A* before = panel + n * L;
  for (int64_t first = 0; first < n; first += L) {
    const int64_t last = std::min(n, first + L);
    for (int64_t l = 0; l < rows; ++l)
      for (int64_t i = first; i < last; ++i) panel[i * L + l] = to_acc(x[l * n + i]);
    for (int64_t l = rows; l < L; ++l)
      for (int64_t i = first; i < last; ++i) panel[i * L + l] = 1;
  }
  products_of_others<A>(
      n, rows == L ? load(grad) : load_n(grad, rows), before, L, L,
      [&](int64_t i) { return load(panel + i * L); }, [&](int64_t i, V v) { store(before + i * L, v); });
  for (int64_t first = 0; first < n; first += L) {
    const int64_t last = std::min(n, first + L);
    for (int64_t l = 0; l < rows; ++l)
      for (int64_t i = first; i < last; ++i) dx[l * n + i] = from_acc<S>(before[i * L + l]);
  }
}

template <class S>
void prod_long_row(Acc<S> g, const S* x, S* dx, int64_t n) {
  using A = Acc<S>;
  A* before = nullptr;
  if constexpr (sizeof(S) >= 4)
    before = dx;
  else
    before = static_cast<A*>(thread_scratch(size_t(n) * sizeof(A)));
  A product = 1;
  for (int64_t i = 0; i < n; ++i) {
    const A v = to_acc(x[i]);
    before[i] = product;
    product *= v;
  }
  product = 1;
  for (int64_t i = n; i-- > 0;) {
    const A v = to_acc(x[i]);
    dx[i] = from_acc<S>(g * (before[i] * product));
    product *= v;
  }
}

template <class S>
void prod_typed(const S* grad, const S* x, S* dx, ReduceShape shape) {
  const auto [outer, n, inner] = shape;
  constexpr int64_t L = Vec<Acc<S>>::kLanes;
  if (inner > 1) {
    const int64_t blocks = (inner + L - 1) / L;
    parallel_for(0, outer * blocks, grain_for(n * L, kChunk),
                 [&, n = n, inner = inner](int64_t begin, int64_t end) {
                   for (int64_t u = begin; u < end; ++u) {
                     const int64_t o = u / blocks, column = u % blocks * L, at = o * n * inner + column;
                     prod_columns(grad + o * inner + column, x + at, dx + at, n, inner,
                                  static_cast<int>(std::min(L, inner - column)));
                   }
                 });
  } else if (n > kLongRow) {
    parallel_for(0, outer, 1, [&, n = n](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) prod_long_row(to_acc(grad[r]), x + r * n, dx + r * n, n);
    });
  } else {
    parallel_for(0, (outer + L - 1) / L, grain_for(n * L, kChunk),
                 [&, outer = outer, n = n](int64_t begin, int64_t end) {
                   for (int64_t r = begin * L; r < std::min(outer, end * L); r += L)
                     prod_panel(grad + r, x + r * n, dx + r * n, n, static_cast<int>(std::min(L, outer - r)));
                 });
  }
}

void var(Elem type, const void* grad, const void* x, void* dx, ReduceShape shape, double scale) {
  with_float_type(type, [&]<class S>(S) {
    var_typed(static_cast<const S*>(grad), static_cast<const S*>(x), static_cast<S*>(dx), shape,
              Acc<S>(scale));
  });
}

void prod(Elem type, const void* grad, const void* x, void* dx, ReduceShape shape) {
  with_float_type(type, [&]<class S>(S) {
    prod_typed(static_cast<const S*>(grad), static_cast<const S*>(x), static_cast<S*>(dx), shape);
  });
}

}  // namespace

extern const ReduceBackwardTable kReduceBackwardTable;
const ReduceBackwardTable kReduceBackwardTable = {var, prod};

}  // namespace vesta::cpu::VESTA_ISA
