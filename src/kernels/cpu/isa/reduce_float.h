#pragma once
// Folding of floating point arrays in the order that reduce.h promises: blocks of lanes along contiguous rows, blocks
// of consecutive rows for inner > 1, then a pairwise tree over blocks.
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
template <class A>
struct MaxOp {
  static constexpr bool kExtreme = true;
  static VESTA_INLINE Vec<A> ignoring_nan(Vec<A> x, Vec<A> acc) { return max(x, acc); }
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
  static A identity() { return kInfinity<A>; }
  static A fill(A) { return kInfinity<A>; }
  static VESTA_INLINE Vec<A> map(Vec<A> x, Vec<A>) { return x; }
  static VESTA_INLINE Vec<A> combine(Vec<A> a, Vec<A> b) { return min_nan(a, b); }
  static VESTA_INLINE A combine(A a, A b) { return b < a || b != b ? b : a; }
  static VESTA_INLINE A lanes(Vec<A> v) {
    return fold_lanes(v, [](A a, A b) { return combine(a, b); });
  }
};

// Folds n elements of one block. A single chain of lanes: the reads stay sequential for the prefetchers, and the core
// overlaps neighbouring blocks, whose chains are independent.
template <class Op, class S>
VESTA_INLINE Acc<S> fold_block(const S* x, int64_t n, Acc<S> shift) {
  using A = Acc<S>;
  using V = Vec<A>;
  constexpr int L = V::kLanes;
  const V s = V::set1(shift);
  V acc = V::set1(Op::identity());
  int64_t i = 0;
  if constexpr (Op::kExtreme) {
    // NaN apart from the extreme keeps the chain at one instruction: compare-and-select takes seven cycles a vector.
    decltype(acc.p[0] != acc.p[0]) nan[V::kParts] = {};
    for (; i + L <= n; i += L) {
      const V v = load(x + i);
      acc = Op::ignoring_nan(v, acc);
      for (int k = 0; k < V::kParts; ++k) nan[k] |= v.p[k] != v.p[k];
    }
    for (int k = 0; k < V::kParts; ++k)
      acc.p[k] = nan[k] ? typename V::Part{} + std::numeric_limits<A>::quiet_NaN() : acc.p[k];
  } else {
    for (; i + L <= n; i += L) acc = Op::combine(acc, Op::map(load(x + i), s));
  }
  if (i < n) acc = Op::combine(acc, Op::map(load_n(x + i, static_cast<int>(n - i), Op::fill(shift)), s));
  return Op::lanes(acc);
}

// (0,1), (2,3), ... in place; the result is in a[0]. n >= 1; elements are `stride` apart.
template <class Op, class A>
void fold_tree(A* a, int64_t n) {
  for (; n > 1; n = (n + 1) / 2) {
    for (int64_t i = 0; i + 1 < n; i += 2) a[i / 2] = Op::combine(a[i], a[i + 1]);
    if (n % 2 == 1) a[n / 2] = a[n - 1];
  }
}

// partial[row * blocks + block] of contiguous rows. shift: one per row, or null.
template <class Op, class S>
void fold_row_blocks(const S* x, int64_t rows, int64_t n, int64_t blocks, const Acc<S>* shift,
                     Acc<S>* partial) {
  using A = Acc<S>;
  const int64_t block = n < kRowBlock ? n : kRowBlock;
  parallel_for(0, rows * blocks, grain_for(block, kReduceWork), [&](int64_t begin, int64_t end) {
    for (int64_t u = begin; u < end; ++u) {
      const int64_t row = u / blocks, first = u % blocks * kRowBlock, rest = n - first;
      partial[u] =
          fold_block<Op>(x + row * n + first, rest < kRowBlock ? rest : kRowBlock, shift ? shift[row] : A(0));
    }
  });
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
    const int64_t blocks = (reduced + kRowBlock - 1) / kRowBlock;
    if (blocks == 1) return fold_row_blocks<Op>(x, outer, reduced, blocks, shift, result);
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
  const int64_t wide = inner / kWide, narrow = (inner - wide * kWide + L - 1) / L, chunks = wide + narrow;
  const SharedScratch scratch(blocks == 1 ? 0 : size_t(outer * blocks * inner) * sizeof(A));
  A* partial = blocks == 1 ? result : static_cast<A*>(scratch.data());
  const int64_t block_rows = reduced < kColumnBlock ? reduced : kColumnBlock;
  const int64_t unit_work = block_rows * (inner < kWide ? inner : kWide);
  parallel_for(0, outer * blocks * chunks, grain_for(unit_work, kReduceWork),
               [&, reduced = reduced, inner = inner](int64_t begin, int64_t end) {
                 for (int64_t u = begin; u < end; ++u) {
                   const int64_t chunk = u % chunks, unit = u / chunks, block = unit % blocks,
                                 o = unit / blocks;
                   const int64_t column = chunk < wide ? chunk * kWide : wide * kWide + (chunk - wide) * L;
                   const int64_t first = block * kColumnBlock;
                   const int64_t rows = reduced - first < kColumnBlock ? reduced - first : kColumnBlock;
                   const S* at = x + (o * reduced + first) * inner + column;
                   const A* s = shift ? shift + o * inner + column : nullptr;
                   A* out = partial + unit * inner + column;
                   const int width = static_cast<int>(inner - column < L ? inner - column : L);
                   if (chunk < wide) {
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
  for (int64_t o = 0; o < outer; ++o) {
    A* p = partial + o * blocks * inner;
    for (int64_t n = blocks; n > 1; n = (n + 1) / 2) {
      for (int64_t i = 0; i + 1 < n; i += 2)
        combine_rows<Op>(p + i * inner, p + (i + 1) * inner, p + i / 2 * inner, inner);
      if (n % 2 == 1) std::memmove(p + n / 2 * inner, p + (n - 1) * inner, size_t(inner) * sizeof(A));
    }
    std::memcpy(result + o * inner, p, size_t(inner) * sizeof(A));
  }
}

}  // namespace
}  // namespace vesta::cpu::VESTA_ISA
