// Layer norm and RMS norm rows. Forward: mean, then the centred sum of squares (two passes over a row in L1: more
// accurate than one), then the result. Backward: one pass for the row's two sums and the chunk's dweight and dbias
// (held in scratch of 2 * dim floats), one pass for dx. With xh = (x - mean) * rstd and g = dy * weight:
//   dx = rstd * (g - mean(g) - xh * mean(g * xh)),  dweight = sum dy * xh,  dbias = sum dy  (RMS: no mean(g) term).
#include "kernels/cpu/layer_norm.h"

#include <cmath>

#include "base/thread_pool.h"
#include "kernels/cpu/isa/float_types.h"
#include "kernels/cpu/isa/simd.h"
#include "kernels/cpu/scratch.h"

namespace vesta::cpu::VESTA_ISA {
namespace {

constexpr int64_t kWork = 16384;    // elements per parallel chunk
constexpr int64_t kMaxChunks = 32;  // of the backward pass; bounds the partial sums
constexpr int64_t kMinChunkRows = 16;

// Calls body(i, count) for vectors of a row; count == lanes but for the tail.
template <int L, class F>
VESTA_INLINE void for_vectors(int64_t n, F body) {
  int64_t i = 0;
  for (; i + L <= n; i += L) body(i, L);
  if (i < n) body(i, static_cast<int>(n - i));
}
template <class S>
VESTA_INLINE Vec<Acc<S>> get(const S* p, int count) {
  return count == Vec<Acc<S>>::kLanes ? load(p) : load_n(p, count);
}
template <class S>
VESTA_INLINE void put(S* p, Vec<Acc<S>> v, int count) {
  count == Vec<Acc<S>>::kLanes ? store(p, v) : store_n(p, v, count);
}

// Folds a row with s = f(s, vector) in four chains and adds the lanes. `centre` fills the missing lanes of the tail and
// must add nothing.
template <class S, class F>
VESTA_INLINE Acc<S> row_sum(const S* x, int64_t n, Acc<S> centre, F f) {
  using V = Vec<Acc<S>>;
  constexpr int L = V::kLanes;
  V s0 = V::zero(), s1 = s0, s2 = s0, s3 = s0;
  int64_t i = 0;
  for (; i + 4 * L <= n; i += 4 * L) {
    s0 = f(s0, load(x + i));
    s1 = f(s1, load(x + i + L));
    s2 = f(s2, load(x + i + 2 * L));
    s3 = f(s3, load(x + i + 3 * L));
  }
  for (; i + L <= n; i += L) s0 = f(s0, load(x + i));
  if (i < n) s1 = f(s1, load_n(x + i, static_cast<int>(n - i), centre));
  return sum_lanes((s0 + s1) + (s2 + s3));
}

template <bool kRms, class S, class W>
void forward_row(const S* x, const W* weight, const W* bias, S* y, Acc<S>* mean_out, Acc<S>* rstd_out,
                 int64_t n, double eps) {
  using A = Acc<S>;
  using V = Vec<A>;
  const A mean = kRms ? A(0) : row_sum(x, n, A(0), [](V s, V a) { return s + a; }) / A(n);
  const V centre = V::set1(mean);
  const A square = row_sum(x, n, mean, [&](V s, V a) {
    const V d = kRms ? a : a - centre;
    return fma(d, d, s);
  });
  const A rstd = A(1) / std::sqrt(square / A(n) + A(eps));
  if (mean_out) *mean_out = mean;
  if (rstd_out) *rstd_out = rstd;
  const V factor = V::set1(rstd);
  auto xhat = [&](int64_t i, int c) { return (kRms ? get(x + i, c) : get(x + i, c) - centre) * factor; };
  constexpr int L = V::kLanes;
  if (weight && bias) {
    for_vectors<L>(
        n, [&](int64_t i, int c) { put(y + i, fma(xhat(i, c), get(weight + i, c), get(bias + i, c)), c); });
  } else if (weight) {
    for_vectors<L>(n, [&](int64_t i, int c) { put(y + i, xhat(i, c) * get(weight + i, c), c); });
  } else if (bias) {
    for_vectors<L>(n, [&](int64_t i, int c) { put(y + i, xhat(i, c) + get(bias + i, c), c); });
  } else {
    for_vectors<L>(n, [&](int64_t i, int c) { put(y + i, xhat(i, c), c); });
  }
}

template <bool kRms, class S, class W>
void forward_typed(const S* x, const W* weight, const W* bias, S* y, void* mean, void* rstd, NormShape shape,
                   double eps) {
  using A = Acc<S>;
  parallel_for(0, shape.rows, grain_for(shape.dim, kWork), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      forward_row<kRms>(x + r * shape.dim, weight, bias, y + r * shape.dim,
                        mean ? static_cast<A*>(mean) + r : nullptr,
                        rstd ? static_cast<A*>(rstd) + r : nullptr, shape.dim, eps);
    }
  });
}

// dw and db may be null (their partial sums, accumulated into).
template <bool kRms, bool kParams, class S, class W>
VESTA_INLINE void backward_row(const S* dy, const S* x, const W* weight, Acc<S> mean, Acc<S> rstd, S* dx,
                               Acc<S>* dw, Acc<S>* db, int64_t n) {
  using A = Acc<S>;
  using V = Vec<A>;
  constexpr int L = V::kLanes;
  const V centre = V::set1(mean), factor = V::set1(rstd);
  V sum_g[2] = {V::zero(), V::zero()}, sum_gx[2] = {V::zero(), V::zero()};
  auto step = [&](int64_t i, int c, int chain) {
    const V d = get(dy + i, c);
    const V xhat = (kRms ? get(x + i, c) : get(x + i, c) - centre) * factor;  // tail lanes: d is 0 there
    if (kParams) {
      put(dw + i, fma(d, xhat, get(dw + i, c)), c);
      if (!kRms) put(db + i, get(db + i, c) + d, c);
    }
    const V g = weight ? d * get(weight + i, c) : d;
    if (!kRms) sum_g[chain] = sum_g[chain] + g;
    sum_gx[chain] = fma(g, xhat, sum_gx[chain]);
  };
  int64_t i = 0;
  for (; i + 2 * L <= n; i += 2 * L) {
    step(i, L, 0);
    step(i + L, L, 1);
  }
  for (; i + L <= n; i += L) step(i, L, 0);
  if (i < n) step(i, static_cast<int>(n - i), 1);
  if (!dx) return;
  const V mean_gx = V::set1(sum_lanes(sum_gx[0] + sum_gx[1]) / A(n));
  const V mean_g = kRms ? V::zero() : V::set1(sum_lanes(sum_g[0] + sum_g[1]) / A(n));
  for_vectors<L>(n, [&](int64_t j, int c) {
    const V d = get(dy + j, c);
    const V xhat = (kRms ? get(x + j, c) : get(x + j, c) - centre) * factor;
    const V g = weight ? d * get(weight + j, c) : d;
    put(dx + j, (g - fma(xhat, mean_gx, mean_g)) * factor, c);
  });
}

template <bool kRms, class S, class W>
void backward_typed(const S* dy, const S* x, const W* weight, const void* mean_in, const void* rstd_in, S* dx,
                    W* dweight, W* dbias, NormShape shape) {
  using A = Acc<S>;
  const auto [rows, dim] = shape;
  const A* mean = static_cast<const A*>(mean_in);
  const A* rstd = static_cast<const A*>(rstd_in);
  const bool params = dweight || dbias;
  if (dim <= 0) return;
  if (!params) {
    parallel_for(0, rows, grain_for(dim, kWork), [&, dim = dim](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        backward_row<kRms, false, S, W>(dy + r * dim, x + r * dim, weight, kRms ? A(0) : mean[r], rstd[r],
                                        dx + r * dim, nullptr, nullptr, dim);
      }
    });
    return;
  }
  int64_t chunk_rows = (rows + kMaxChunks - 1) / kMaxChunks;
  if (chunk_rows < kMinChunkRows) chunk_rows = kMinChunkRows;
  const int64_t chunks = rows > 0 ? (rows + chunk_rows - 1) / chunk_rows : 0;
  const SharedScratch partial(size_t(chunks) * 2 * size_t(dim) * sizeof(A));
  A* const sums = static_cast<A*>(partial.data());
  parallel_for(0, chunks, grain_for(chunk_rows * dim, kWork),
               [&, dim = dim, rows = rows](int64_t begin, int64_t end) {
                 for (int64_t c = begin; c < end; ++c) {
                   A* dw = sums + c * 2 * dim;
                   A* db = dw + dim;
                   std::memset(dw, 0, size_t(2 * dim) * sizeof(A));
                   const int64_t last = (c + 1) * chunk_rows < rows ? (c + 1) * chunk_rows : rows;
                   for (int64_t r = c * chunk_rows; r < last; ++r) {
                     backward_row<kRms, true, S, W>(dy + r * dim, x + r * dim, weight, kRms ? A(0) : mean[r],
                                                    rstd[r], dx ? dx + r * dim : nullptr, dw, db, dim);
                   }
                 }
               });
  using V = Vec<A>;
  constexpr int L = V::kLanes;
  parallel_for(0, (dim + L - 1) / L, grain_for(2 * L * chunks, kWork),
               [&, dim = dim](int64_t begin, int64_t end) {
                 for (int64_t b = begin; b < end; ++b) {
                   const int64_t i = b * L;
                   const int c = static_cast<int>(dim - i < L ? dim - i : L);
                   V dw = V::zero(), db = V::zero();
                   for (int64_t k = 0; k < chunks; ++k) {
                     dw = dw + get(sums + k * 2 * dim + i, c);
                     if (!kRms) db = db + get(sums + (k * 2 + 1) * dim + i, c);
                   }
                   if (dweight) put(dweight + i, dw, c);
                   if (dbias) put(dbias + i, db, c);
                 }
               });
}

template <class F>
void with_types(Elem type, Elem param, F f) {
  with_float_type(type, [&]<class S>(S s) {
    if (param == type) return f(s, s);
    if constexpr (sizeof(S) == 2) f(s, float{});
  });
}

void forward(bool rms, Elem type, Elem param, const void* x, const void* weight, const void* bias, void* y,
             void* mean, void* rstd, NormShape shape, double eps) {
  with_types(type, param, [&]<class S, class W>(S, W) {
    auto run = rms ? forward_typed<true, S, W> : forward_typed<false, S, W>;
    run(static_cast<const S*>(x), static_cast<const W*>(weight), static_cast<const W*>(bias),
        static_cast<S*>(y), mean, rstd, shape, eps);
  });
}

void backward(bool rms, Elem type, Elem param, const void* dy, const void* x, const void* weight,
              const void* mean, const void* rstd, void* dx, void* dweight, void* dbias, NormShape shape) {
  with_types(type, param, [&]<class S, class W>(S, W) {
    auto run = rms ? backward_typed<true, S, W> : backward_typed<false, S, W>;
    run(static_cast<const S*>(dy), static_cast<const S*>(x), static_cast<const W*>(weight), mean, rstd,
        static_cast<S*>(dx), static_cast<W*>(dweight), static_cast<W*>(dbias), shape);
  });
}

}  // namespace

extern const LayerNormTable kLayerNormTable;
const LayerNormTable kLayerNormTable = {forward, backward};

}  // namespace vesta::cpu::VESTA_ISA
