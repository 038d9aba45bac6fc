#pragma once
// The block operations that attention is made of: packing rows into float (plain or transposed), and a small matrix
// product C[m, n] (+)= A[m, k] * B[k, n] on register tiles, with a column or depth range per row tile so that causal
// blocks skip what the mask hides. Everything lives in scratch, 64-byte aligned, with rows padded to whole vectors.
// No softmax and no threads here.
#include "kernels/cpu/isa/simd.h"

namespace vesta::cpu::VESTA_ISA {
namespace {

// Register tile: kTileRows x (kTileVecs * lanes). 16, 8 and 8 accumulator registers on v4, v3 and baseline.
#if VESTA_SIMD_BYTES == 64
constexpr int kTileRows = 8, kTileVecs = 2;
#elif VESTA_SIMD_BYTES == 32
constexpr int kTileRows = 4, kTileVecs = 1;
#else
constexpr int kTileRows = 2, kTileVecs = 1;
#endif
constexpr int kMaxTileRows = 8;  // rows of probabilities are zeroed this far past the causal limit

constexpr int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// The first n lanes of v, 0 in the others (a select: NaN there does not matter). n <= 0 gives zeros.
template <class T>
VESTA_INLINE Vec<T> keep_lanes(Vec<T> v, int64_t n) {
  constexpr int L = Vec<T>::kLanes;
  alignas(64) static constexpr struct Masks {
    uint32_t word[32];
    constexpr Masks() : word() {
      for (int i = 0; i < 16; ++i) word[i] = ~0u;
    }
  } masks;
  if (n >= L) return v;
  typedef uint32_t Bits __attribute__((vector_size(VESTA_SIMD_BYTES)));
  Bits keep[Vec<T>::kParts];
  std::memcpy(keep, reinterpret_cast<const char*>(masks.word) + 64 - (n < 0 ? 0 : n) * int64_t{sizeof(T)},
              64);
  for (int i = 0; i < Vec<T>::kParts; ++i) v.p[i] = (typename Vec<T>::Part)((Bits)v.p[i] & keep[i]);
  return v;
}

// B in panels of kTileVecs vectors: element (k, j) of panel p at data + p * panel + k * row + j.
template <class A>
struct Factor {
  const A* data;
  int64_t row, panel;
};

// One register tile over k in [k0, k1). A(i, k) is a[i * lda + k], or a[k * lda + i] where transposed.
template <int M, int N, bool kTransposed, class A>
VESTA_INLINE void tile(int64_t k0, int64_t k1, const A* a, int64_t lda, const A* b, int64_t ldb, A* c,
                       int64_t ldc, bool accumulate) {
  using V = Vec<A>;
  constexpr int L = V::kLanes;
  V sum[M][N];
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i)
#pragma GCC unroll 2
    for (int j = 0; j < N; ++j) sum[i][j] = accumulate ? load(c + i * ldc + j * L) : V::zero();
  const A* at_a = kTransposed ? a + k0 * lda : a + k0;
  const A* at_b = b + k0 * ldb;
  for (int64_t k = k0; k < k1; ++k) {
    V right[N];
#pragma GCC unroll 2
    for (int j = 0; j < N; ++j) right[j] = load(at_b + j * L);
#pragma GCC unroll 8
    for (int i = 0; i < M; ++i) {
      const V left = V::set1(kTransposed ? at_a[i] : at_a[i * lda]);
#pragma GCC unroll 2
      for (int j = 0; j < N; ++j) sum[i][j] = fma(left, right[j], sum[i][j]);
    }
    at_a += kTransposed ? lda : 1;
    at_b += ldb;
  }
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i)
#pragma GCC unroll 2
    for (int j = 0; j < N; ++j) store(c + i * ldc + j * L, sum[i][j]);
}

struct Range {
  int64_t k_begin, k_end, vecs;  // depth range and number of column vectors of a row tile
};

template <int M, int N, bool kTransposed, class A, class R>
VESTA_INLINE void rows_of_tiles(int64_t& i, int64_t m, int64_t first_vec, const A* a, int64_t lda, const A* b,
                                int64_t ldb, A* c, int64_t ldc, bool accumulate, R range) {
  constexpr int L = Vec<A>::kLanes;
  for (; i + M <= m; i += M) {
    const Range r = range(i, i + M);
    const A* left = kTransposed ? a + i : a + i * lda;
    A* at = c + i * ldc + first_vec * L;
    if (r.vecs >= first_vec + N) {
      tile<M, N, kTransposed>(r.k_begin, r.k_end, left, lda, b, ldb, at, ldc, accumulate);
    } else if (N > 1 && r.vecs == first_vec + 1) {
      tile<M, 1, kTransposed>(r.k_begin, r.k_end, left, lda, b, ldb, at, ldc, accumulate);
    }
  }
}

// C[m, vecs * L] (+)= A * B; range(i, end) gives what rows [i, end) need. Rows out of range are left as they are.
template <bool kTransposed, class A, class R>
__attribute__((noinline)) void block_product(int64_t m, int64_t vecs, const A* a, int64_t lda, Factor<A> b,
                                             A* c, int64_t ldc, bool accumulate, R range) {
  for (int64_t v = 0; v < vecs; v += kTileVecs) {
    const A* panel = b.data + v / kTileVecs * b.panel;
    int64_t i = 0;
    auto limited = [&](int64_t begin, int64_t end) {
      Range r = range(begin, end);
      r.vecs = r.vecs < vecs ? r.vecs : vecs;
      return r;
    };
    if constexpr (kTileRows >= 8)
      rows_of_tiles<8, kTileVecs, kTransposed>(i, m, v, a, lda, panel, b.row, c, ldc, accumulate, limited);
    if constexpr (kTileRows >= 4)
      rows_of_tiles<4, kTileVecs, kTransposed>(i, m, v, a, lda, panel, b.row, c, ldc, accumulate, limited);
    rows_of_tiles<2, kTileVecs, kTransposed>(i, m, v, a, lda, panel, b.row, c, ldc, accumulate, limited);
    rows_of_tiles<1, kTileVecs, kTransposed>(i, m, v, a, lda, panel, b.row, c, ldc, accumulate, limited);
  }
}

// Rows of packed layouts lie kilobytes apart, each on its own page, where the hardware's prefetchers stop: ask for the
// row that comes next but three.
template <class S>
VESTA_INLINE void prefetch_row(const S* row, int64_t n) {
  for (int64_t d = 0; d < n; d += 64 / int64_t{sizeof(S)}) __builtin_prefetch(row + d);
}

// dst[i * ld + d] = src[i * stride + d] * scale, zero from d = n to ld.
template <class S>
void pack_rows(const S* src, int64_t stride, int64_t rows, int64_t n, Acc<S> scale, Acc<S>* dst, int64_t ld) {
  using V = Vec<Acc<S>>;
  constexpr int L = V::kLanes;
  const V factor = V::set1(scale);
  for (int64_t i = 0; i < rows; ++i, src += stride, dst += ld) {
    if (i + 4 < rows) prefetch_row(src + 4 * stride, n);
    int64_t d = 0;
    for (; d + L <= n; d += L) store(dst + d, load(src + d) * factor);
    if (d < n) {
      store(dst + d, load_n(src + d, static_cast<int>(n - d)) * factor);
      d += L;
    }
    for (; d < ld; d += L) store(dst + d, V::zero());
  }
}

// dst[d * width + i] = row i's element d, for i < rows <= width (a multiple of 4), zeros from rows to width.
template <class S>
void pack_panel(const S* src, int64_t stride, int64_t rows, int64_t n, Acc<S>* dst, int64_t width) {
  using A = Acc<S>;
  int64_t i = 0;
#if defined(__x86_64__)
  if constexpr (sizeof(A) == 4) {
    alignas(64) float converted[sizeof(S) == 2 ? 4 * 512 : 4];  // 512: the largest head dim
    for (; i + 4 <= rows; i += 4) {
      for (int64_t r = i + 4; r < i + 8 && r < rows; ++r) prefetch_row(src + r * stride, n);
      const float* row[4];
      if constexpr (sizeof(S) == 2) {
        pack_rows(src + i * stride, stride, 4, n, 1.f, converted, round_up(n, 16));
        for (int r = 0; r < 4; ++r) row[r] = converted + r * round_up(n, 16);
      } else {
        for (int r = 0; r < 4; ++r) row[r] = src + (i + r) * stride;
      }
      int64_t d = 0;
      for (; d + 4 <= n; d += 4) {
        __m128 r0 = _mm_loadu_ps(row[0] + d), r1 = _mm_loadu_ps(row[1] + d);
        __m128 r2 = _mm_loadu_ps(row[2] + d), r3 = _mm_loadu_ps(row[3] + d);
        _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
        _mm_store_ps(dst + d * width + i, r0);
        _mm_store_ps(dst + (d + 1) * width + i, r1);
        _mm_store_ps(dst + (d + 2) * width + i, r2);
        _mm_store_ps(dst + (d + 3) * width + i, r3);
      }
      for (; d < n; ++d)
        for (int r = 0; r < 4; ++r) dst[d * width + i + r] = row[r][d];
    }
  }
#endif
  for (; i < rows; ++i)
    for (int64_t d = 0; d < n; ++d) dst[d * width + i] = to_acc(src[i * stride + d]);
  for (; i < width; ++i)
    for (int64_t d = 0; d < n; ++d) dst[d * width + i] = 0;
}

// All panels of `rows` rows transposed: a Factor with row = width, panel = n * width.
template <class S>
Factor<Acc<S>> pack_transposed(const S* src, int64_t stride, int64_t rows, int64_t n, Acc<S>* dst) {
  constexpr int64_t kWidth = kTileVecs * Vec<Acc<S>>::kLanes;
  for (int64_t i = 0; i < rows; i += kWidth)
    pack_panel(src + i * stride, stride, rows - i < kWidth ? rows - i : kWidth, n, dst + i * n, kWidth);
  return {dst, kWidth, n * kWidth};
}

}  // namespace
}  // namespace vesta::cpu::VESTA_ISA
