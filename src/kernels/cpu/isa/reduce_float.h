#pragma once
// Folding of floating point arrays in the order that reduce.h promises: blocks of lanes along contiguous rows, blocks
// of consecutive rows for inner > 1, then a pairwise tree over blocks.
#include <type_traits>

#include "base/thread_pool.h"
#include "kernels/cpu/isa/simd.h"
#include "kernels/cpu/reduce.h"
#include "kernels/cpu/scratch.h"

namespace vesta::cpu::VESTA_ISA {
namespace {

constexpr int64_t kRowBlock = 1024;                           // elements of a block, inner == 1
constexpr int64_t kColumnBlock = 64;                          // reduced elements of a block, inner > 1
constexpr int kWideVectors = VESTA_SIMD_BYTES == 64 ? 8 : 2;  // columns of a unit, in vectors; by registers
constexpr int64_t kReduceWork = 32768;                        // elements per parallel chunk
constexpr int kRowsAtOnce =
    VESTA_SIMD_BYTES == 64 ? 4 : 2;  // blocks whose chains run side by side; by registers
constexpr int64_t kStream = 512;     // elements from which on one block at a time is faster
constexpr int64_t kSubtree = 32;     // blocks that one unit of work folds
constexpr int64_t kBand = 1024;      // columns that are summed in the L1 cache

// An operation: identity, map(x, shift) of an element, combine, and lanes() to fold a vector by halves. fill(shift) is an x that maps to the identity.
template <class A>
struct SumOp {
  static constexpr bool kExtreme = false;
  static A identity() { return 0; }
  static A fill(A) { return 0; }
  static VESTA_INLINE Vec<A> map(Vec<A> x, Vec<A>) { return x; }
  template <class X>
  static VESTA_INLINE X combine(X a, X b) {
    return a + b;
  }
  static VESTA_INLINE A lanes(Vec<A> v) { return sum_lanes(v); }
};
template <class A>
struct SumSquaresOp : SumOp<A> {
  static VESTA_INLINE Vec<A> map(Vec<A> x, Vec<A>) { return x * x; }
};
template <class A>
struct SumAbsOp : SumOp<A> {
  static VESTA_INLINE Vec<A> map(Vec<A> x, Vec<A>) { return abs(x); }
};
template <class A>
struct SquaredDeviationOp : SumOp<A> {
  static A fill(A shift) { return shift; }
  static VESTA_INLINE Vec<A> map(Vec<A> x, Vec<A> shift) { return (x - shift) * (x - shift); }
};
template <class A>
struct ExpSumOp : SumOp<A> {
  static A fill(A) { return -kInfinity<A>; }
  static VESTA_INLINE Vec<A> map(Vec<A> x, Vec<A> shift) { return exp(x - shift); }
};
template <class A>
struct ProdOp {
  static constexpr bool kExtreme = false;
  static A identity() { return 1; }
  static A fill(A) { return 1; }
  static VESTA_INLINE Vec<A> map(Vec<A> x, Vec<A>) { return x; }
  template <class X>
  static VESTA_INLINE X combine(X a, X b) {
    return a * b;
  }
  static VESTA_INLINE A lanes(Vec<A> v) {
    return fold_lanes(v, [](A a, A b) { return combine(a, b); });
  }
};

// Whether any lane was NaN, of many vectors: AVX-512 compares two at a time into a mask register.
template <class A>
struct NanSeen {
#if VESTA_SIMD_BYTES == 64
  unsigned seen = 0;
  VESTA_INLINE void add(Vec<float> a, Vec<float> b) {
    seen |= _mm512_cmp_ps_mask(a.p[0], b.p[0], _CMP_UNORD_Q);
  }
  VESTA_INLINE void add(Vec<double> a, Vec<double> b) {
    seen |= _mm512_cmp_pd_mask(a.p[0], b.p[0], _CMP_UNORD_Q);
  }
  VESTA_INLINE bool any() const { return seen != 0; }
#else
  decltype(Vec<A>{}.p[0] != Vec<A>{}.p[0]) seen[Vec<A>::kParts] = {};
  VESTA_INLINE void add(Vec<A> a, Vec<A> b) {
    for (int k = 0; k < Vec<A>::kParts; ++k) seen[k] |= (a.p[k] != a.p[k]) | (b.p[k] != b.p[k]);
  }
  VESTA_INLINE bool any() const {
    bool found = false;
    for (int k = 0; k < Vec<A>::kParts; ++k)
      for (size_t i = 0; i < sizeof(seen[k]) / sizeof(A); ++i) found |= seen[k][i] != 0;
    return found;
  }
#endif
};

template <class A>
struct MaxOp {
  static constexpr bool kExtreme = true;
  static VESTA_INLINE Vec<A> ignoring_nan(Vec<A> x, Vec<A> acc) { return max(x, acc); }
  static VESTA_INLINE A lanes_without_nan(Vec<A> v) { return max_lanes(v); }
  static A identity() { return -kInfinity<A>; }
  static A fill(A) { return -kInfinity<A>; }
  static VESTA_INLINE Vec<A> map(Vec<A> x, Vec<A>) { return x; }
  static VESTA_INLINE Vec<A> combine(Vec<A> a, Vec<A> b) { return max_nan(a, b); }
  static VESTA_INLINE A combine(A a, A b) { return b > a || b != b ? b : a; }
  static VESTA_INLINE A lanes(Vec<A> v) {
    return fold_lanes(v, [](A a, A b) { return combine(a, b); });
  }
};
template <class A>
struct MinOp {
  static constexpr bool kExtreme = true;
  static VESTA_INLINE Vec<A> ignoring_nan(Vec<A> x, Vec<A> acc) { return min(x, acc); }
  static VESTA_INLINE A lanes_without_nan(Vec<A> v) { return -max_lanes(v * Vec<A>::set1(-1)); }
  static A identity() { return kInfinity<A>; }
  static A fill(A) { return kInfinity<A>; }
  static VESTA_INLINE Vec<A> map(Vec<A> x, Vec<A>) { return x; }
  static VESTA_INLINE Vec<A> combine(Vec<A> a, Vec<A> b) { return min_nan(a, b); }
  static VESTA_INLINE A combine(A a, A b) { return b < a || b != b ? b : a; }
  static VESTA_INLINE A lanes(Vec<A> v) {
    return fold_lanes(v, [](A a, A b) { return combine(a, b); });
  }
};

// Folds the n elements of each of N blocks that lie `apart` elements from each other. Each has one chain of lanes, as the
// contract wants it; side by side the chains hide the latency of an addition.
template <class Op, int N, class S>
VESTA_INLINE void fold_blocks(const S* x, int64_t apart, int64_t n, const Acc<S>* shift, int64_t shift_step,
                              Acc<S>* out) {
  using A = Acc<S>;
  using V = Vec<A>;
  constexpr int L = V::kLanes;
  V s[N], acc[N];
  for (int b = 0; b < N; ++b) {
    s[b] = V::set1(shift ? shift[b * shift_step] : A(0));
    acc[b] = V::set1(Op::identity());
  }
  int64_t i = 0;
  if constexpr (Op::kExtreme) {
    // NaN apart from the extreme keeps the chain at one instruction: compare-and-select takes seven cycles a vector.
    NanSeen<A> nan;
    for (; i + L <= n; i += L) {
      V v[N];
      for (int b = 0; b < N; ++b) {
        v[b] = load(x + b * apart + i);
        acc[b] = Op::ignoring_nan(v[b], acc[b]);
      }
      for (int b = 0; b < N; b += 2) nan.add(v[b], v[b + 1 < N ? b + 1 : b]);
    }
    if (i < n) {
      for (int b = 0; b < N; ++b) {
        const V v = load_n(x + b * apart + i, static_cast<int>(n - i), Op::identity());
        acc[b] = Op::ignoring_nan(v, acc[b]);
        nan.add(v, v);
      }
    }
    for (int b = 0; b < N; ++b) out[b] = Op::lanes_without_nan(acc[b]);
    if (!nan.any()) return;
    for (int b = 0; b < N; ++b) {
      bool found = false;
      for (int64_t k = 0; k < n; ++k) found |= to_acc(x[b * apart + k]) != to_acc(x[b * apart + k]);
      if (found) out[b] = std::numeric_limits<A>::quiet_NaN();
    }
  } else {
    for (; i + L <= n; i += L)
      for (int b = 0; b < N; ++b) acc[b] = Op::combine(acc[b], Op::map(load(x + b * apart + i), s[b]));
    for (int b = 0; b < N; ++b) {
      if (i < n)
        acc[b] = Op::combine(acc[b], Op::map(load_n(x + b * apart + i, static_cast<int>(n - i),
                                                    Op::fill(shift ? shift[b * shift_step] : A(0))),
                                             s[b]));
      out[b] = Op::lanes(acc[b]);
    }
  }
}

// (0,1), (2,3), ... in place; the result is in a[0]. n >= 1; elements are `stride` apart.
template <class Op, class A>
void fold_tree(A* a, int64_t n) {
  for (; n > 1; n = (n + 1) / 2) {
    for (int64_t i = 0; i + 1 < n; i += 2) a[i / 2] = Op::combine(a[i], a[i + 1]);
    if (n % 2 == 1) a[n / 2] = a[n - 1];
  }
}

// A long sum of full-width elements runs at the memory's speed with one chain, whose reads are one stream; four streams
// are some percent slower. Half types and extremes need more instructions an element, short rows hide their ends.
template <class Op, class S>
constexpr bool streams = sizeof(S) >= 4 && !Op::kExtreme;

// partial[row * blocks + block] of contiguous rows. shift: one per row, or null.
template <class Op, class S>
void fold_row_blocks(const S* x, int64_t rows, int64_t n, int64_t blocks, const Acc<S>* shift,
                     Acc<S>* partial) {
  using A = Acc<S>;
  constexpr int N = kRowsAtOnce;
  const int64_t block = n < kRowBlock ? n : kRowBlock;
  const bool together = !streams<Op, S> || block < kStream;
  parallel_for(0, rows * blocks, grain_for(block, kReduceWork), [&](int64_t begin, int64_t end) {
    for (int64_t u = begin; u < end;) {
      const int64_t row = u / blocks, at = u % blocks, rest = n - at * kRowBlock;
      const A* s = shift ? shift + row : nullptr;
      if (together && blocks == 1 && u + N <= end) {
        fold_blocks<Op, N>(x + row * n, n, n, s, 1, partial + u);
        u += N;
      } else if (together && rest >= N * kRowBlock && u + N <= end) {
        fold_blocks<Op, N>(x + row * n + at * kRowBlock, kRowBlock, kRowBlock, s, 0, partial + u);
        u += N;
      } else {
        fold_blocks<Op, 1>(x + row * n + at * kRowBlock, 0, rest < kRowBlock ? rest : kRowBlock, s, 0,
                           partial + u);
        ++u;
      }
    }
  });
}

// result[row] of rows with many blocks: each unit of work folds the aligned subtree over its kSubtree blocks.
template <class Op, class S>
void fold_long_rows(const S* x, int64_t rows, int64_t n, const Acc<S>* shift, Acc<S>* result) {
  using A = Acc<S>;
  constexpr int N = kRowsAtOnce;
  const int64_t blocks = (n + kRowBlock - 1) / kRowBlock, trees = (blocks + kSubtree - 1) / kSubtree;
  const SharedScratch scratch(size_t(rows * trees) * sizeof(A));
  A* partial = static_cast<A*>(scratch.data());
  parallel_for(0, rows * trees, 1, [&](int64_t begin, int64_t end) {
    for (int64_t u = begin; u < end; ++u) {
      const int64_t row = u / trees, first = u % trees * kSubtree;
      const int64_t count = blocks - first < kSubtree ? blocks - first : kSubtree;
      const S* at = x + row * n + first * kRowBlock;
      const int64_t rest = n - first * kRowBlock;
      const A* s = shift ? shift + row : nullptr;
      A folded[kSubtree];
      int64_t b = 0;
      for (; !streams<Op, S> && (b + N) * kRowBlock <= rest && b + N <= count; b += N)
        fold_blocks<Op, N>(at + b * kRowBlock, kRowBlock, kRowBlock, s, 0, folded + b);
      for (; b < count; ++b) {
        const int64_t left = rest - b * kRowBlock;
        fold_blocks<Op, 1>(at + b * kRowBlock, 0, left < kRowBlock ? left : kRowBlock, s, 0, folded + b);
      }
      fold_tree<Op>(folded, count);
      partial[u] = folded[0];
    }
  });
  for (int64_t r = 0; r < rows; ++r) {
    fold_tree<Op>(partial + r * trees, trees);
    result[r] = partial[r * trees];
  }
}

// Folds `rows` reduced elements into N vectors of `width` lanes: neighbouring columns (steps of a vector) or, in narrow
// arrays, the same columns of N neighbouring blocks.
struct ColumnSteps {
  int64_t from, shift, to;
};
template <class Op, int N, class S>
VESTA_INLINE void fold_columns(const S* x, int64_t rows, int64_t inner, int width, const Acc<S>* shift,
                               Acc<S>* out, ColumnSteps step) {
  using A = Acc<S>;
  using V = Vec<A>;
  constexpr int L = V::kLanes;
  V acc[N], s[N];
  for (int k = 0; k < N; ++k) {
    acc[k] = V::set1(Op::identity());
    s[k] = !shift       ? V::zero()
           : width == L ? load(shift + k * step.shift)
                        : load_n(shift + k * step.shift, width);
  }
  if (width == L) {
    for (int64_t r = 0; r < rows; ++r)
      for (int k = 0; k < N; ++k)
        acc[k] = Op::combine(acc[k], Op::map(load(x + r * inner + k * step.from), s[k]));
    for (int k = 0; k < N; ++k) store(out + k * step.to, acc[k]);
  } else {
    for (int64_t r = 0; r < rows; ++r)
      for (int k = 0; k < N; ++k)
        acc[k] = Op::combine(acc[k], Op::map(load_n(x + r * inner + k * step.from, width), s[k]));
    for (int k = 0; k < N; ++k) store_n(out + k * step.to, acc[k], width);
  }
}

// The same for a wide band: the accumulators stay in the L1 cache while whole stretches of rows are read, four at a time,
// since a few long streams are what the prefetchers and the translation buffers can follow.
template <class Op, class S>
VESTA_INLINE void fold_band(const S* x, int64_t rows, int64_t inner, int64_t width, const Acc<S>* shift,
                            Acc<S>* out) {
  using A = Acc<S>;
  using V = Vec<A>;
  constexpr int L = V::kLanes, kRows = 4;
  auto pass = [&](const S* at, auto count, bool fresh) {
    constexpr int kCount = decltype(count)::value;
    int64_t c = 0;
    for (; c + L <= width; c += L) {
      const V s = shift ? load(shift + c) : V::zero();
      V acc = fresh ? V::set1(Op::identity()) : load(out + c);
      for (int k = 0; k < kCount; ++k) acc = Op::combine(acc, Op::map(load(at + k * inner + c), s));
      store(out + c, acc);
    }
    if (c < width) {
      const int rest = static_cast<int>(width - c);
      const V s = shift ? load_n(shift + c, rest) : V::zero();
      V acc = fresh ? V::set1(Op::identity()) : load_n(out + c, rest);
      for (int k = 0; k < kCount; ++k) acc = Op::combine(acc, Op::map(load_n(at + k * inner + c, rest), s));
      store_n(out + c, acc, rest);
    }
  };
  int64_t r = 0;
  for (; r + kRows <= rows; r += kRows) pass(x + r * inner, std::integral_constant<int, kRows>(), r == 0);
  for (; r < rows; ++r) pass(x + r * inner, std::integral_constant<int, 1>(), r == 0);
}

// to = combine(a, b) over n elements; `to` is a or lies before it.
template <class Op, class A>
VESTA_INLINE void combine_rows(const A* a, const A* b, A* to, int64_t n) {
  constexpr int L = Vec<A>::kLanes;
  int64_t c = 0;
  for (; c + L <= n; c += L) store(to + c, Op::combine(load(a + c), load(b + c)));
  for (; c < n; ++c) to[c] = Op::combine(a[c], b[c]);
}

// result[outer, inner] of accumulators; shift: the same shape, or null.
template <class Op, class S>
void fold(const S* x, ReduceShape shape, const Acc<S>* shift, Acc<S>* result) {
  using A = Acc<S>;
  constexpr int64_t L = Vec<A>::kLanes;
  const auto [outer, reduced, inner] = shape;
  if (reduced == 0) {
    for (int64_t i = 0; i < outer * inner; ++i) result[i] = Op::identity();
    return;
  }
  if (inner == 1) {
    if (reduced <= kRowBlock) return fold_row_blocks<Op>(x, outer, reduced, 1, shift, result);
    if (reduced >= kSubtree * kRowBlock) return fold_long_rows<Op>(x, outer, reduced, shift, result);
    const int64_t blocks = (reduced + kRowBlock - 1) / kRowBlock;
    const SharedScratch scratch(size_t(outer * blocks) * sizeof(A));
    A* partial = static_cast<A*>(scratch.data());
    fold_row_blocks<Op>(x, outer, reduced, blocks, shift, partial);
    for (int64_t r = 0; r < outer; ++r) {
      fold_tree<Op>(partial + r * blocks, blocks);
      result[r] = partial[r * blocks];
    }
    return;
  }
  const int64_t blocks = (reduced + kColumnBlock - 1) / kColumnBlock;
  constexpr int64_t kWide = kWideVectors * L;
  const bool banded = inner >= 2 * kWide;
  const int64_t wide = inner / kWide, narrow = (inner - wide * kWide + L - 1) / L;
  const int64_t bands = (inner + kBand - 1) / kBand, chunks = banded ? bands : wide + narrow;
  const SharedScratch scratch(blocks == 1 ? 0 : size_t(outer * blocks * inner) * sizeof(A));
  A* partial = blocks == 1 ? result : static_cast<A*>(scratch.data());
  const int64_t block_rows = reduced < kColumnBlock ? reduced : kColumnBlock;
  const int64_t unit_work = block_rows * (banded          ? (inner < kBand ? inner : kBand)
                                          : inner < kWide ? inner
                                                          : kWide);
  parallel_for(0, outer * blocks * chunks, grain_for(unit_work, kReduceWork),
               [&, reduced = reduced, inner = inner](int64_t begin, int64_t end) {
                 for (int64_t u = begin; u < end; ++u) {
                   const int64_t chunk = u % chunks, unit = u / chunks, block = unit % blocks,
                                 o = unit / blocks;
                   const int64_t column = banded         ? chunk * kBand
                                          : chunk < wide ? chunk * kWide
                                                         : wide * kWide + (chunk - wide) * L;
                   const int64_t first = block * kColumnBlock;
                   const int64_t rows = reduced - first < kColumnBlock ? reduced - first : kColumnBlock;
                   const S* at = x + (o * reduced + first) * inner + column;
                   const A* s = shift ? shift + o * inner + column : nullptr;
                   A* out = partial + unit * inner + column;
                   const int width = static_cast<int>(inner - column < L ? inner - column : L);
                   if (banded) {
                     fold_band<Op>(at, rows, inner, inner - column < kBand ? inner - column : kBand, s, out);
                   } else if (chunk < wide) {
                     fold_columns<Op, kWideVectors>(at, rows, inner, L, s, out, {L, L, L});
                   } else if (chunks == 1 && u + 4 <= end && first + 4 * kColumnBlock <= reduced) {
                     fold_columns<Op, 4>(at, rows, inner, width, s, out, {kColumnBlock * inner, 0, inner});
                     u += 3;
                   } else {
                     fold_columns<Op, 1>(at, rows, inner, width, s, out, {0, 0, 0});
                   }
                 }
               });
  if (blocks == 1) return;
  // The tree, columns side by side in chunks.
  constexpr int64_t kTreeColumns = 256;
  const int64_t pieces = (inner + kTreeColumns - 1) / kTreeColumns;
  const int64_t piece_work = blocks * (inner < kTreeColumns ? inner : kTreeColumns);
  parallel_for(0, outer * pieces, grain_for(piece_work, kReduceWork),
               [&, inner = inner](int64_t begin, int64_t end) {
                 for (int64_t u = begin; u < end; ++u) {
                   const int64_t o = u / pieces, column = u % pieces * kTreeColumns;
                   const int64_t width = inner - column < kTreeColumns ? inner - column : kTreeColumns;
                   A* p = partial + o * blocks * inner + column;
                   for (int64_t n = blocks; n > 1; n = (n + 1) / 2) {
                     for (int64_t i = 0; i + 1 < n; i += 2)
                       combine_rows<Op>(p + i * inner, p + (i + 1) * inner, p + i / 2 * inner, width);
                     if (n % 2 == 1)
                       std::memmove(p + n / 2 * inner, p + (n - 1) * inner, size_t(width) * sizeof(A));
                   }
                   std::memcpy(result + o * inner + column, p, size_t(width) * sizeof(A));
                 }
               });
}

}  // namespace
}  // namespace vesta::cpu::VESTA_ISA
