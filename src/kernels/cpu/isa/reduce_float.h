#pragma once
// Folding of floating point arrays in the order that reduce.h promises: blocks of lanes along contiguous rows, blocks
// of consecutive rows for inner > 1, then a pairwise tree over blocks. Blocks are independent, so four are folded at a
// time to hide the latency of the adds without changing their order.
#include "base/thread_pool.h"
#include "kernels/cpu/isa/simd.h"
#include "kernels/cpu/reduce.h"
#include "kernels/cpu/scratch.h"

namespace vesta::cpu::VESTA_ISA {
namespace {

constexpr int64_t kRowBlock = 1024;     // elements of a block, inner == 1
constexpr int64_t kColumnBlock = 64;    // reduced elements of a block, inner > 1
constexpr int64_t kReduceWork = 32768;  // elements per parallel chunk

// An operation: identity, map(x, shift) of an element, combine, and lanes() to fold a vector by halves. fill(shift) is an x that maps to the identity.
template <class A>
struct SumOp {
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
  static A identity() { return kInfinity<A>; }
  static A fill(A) { return kInfinity<A>; }
  static VESTA_INLINE Vec<A> map(Vec<A> x, Vec<A>) { return x; }
  static VESTA_INLINE Vec<A> combine(Vec<A> a, Vec<A> b) { return min_nan(a, b); }
  static VESTA_INLINE A combine(A a, A b) { return b < a || b != b ? b : a; }
  static VESTA_INLINE A lanes(Vec<A> v) {
    return fold_lanes(v, [](A a, A b) { return combine(a, b); });
  }
};

// Folds N blocks of n elements at x[0..N) at once.
template <class Op, int N, class S>
VESTA_INLINE void fold_blocks(const S* const* x, int64_t n, const Acc<S>* shift, Acc<S>* out) {
  using A = Acc<S>;
  using V = Vec<A>;
  constexpr int L = V::kLanes;
  V acc[N], s[N];
  for (int k = 0; k < N; ++k) {
    acc[k] = V::set1(Op::identity());
    s[k] = V::set1(shift[k]);
  }
  int64_t i = 0;
  for (; i + L <= n; i += L)
    for (int k = 0; k < N; ++k) acc[k] = Op::combine(acc[k], Op::map(load(x[k] + i), s[k]));
  if (i < n) {
    const int rest = static_cast<int>(n - i);
    for (int k = 0; k < N; ++k)
      acc[k] = Op::combine(acc[k], Op::map(load_n(x[k] + i, rest, Op::fill(shift[k])), s[k]));
  }
  for (int k = 0; k < N; ++k) out[k] = Op::lanes(acc[k]);
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
    auto length = [&](int64_t u) {
      const int64_t rest = n - u % blocks * kRowBlock;
      return rest < kRowBlock ? rest : kRowBlock;
    };
    for (int64_t u = begin; u < end;) {
      const S* at[4];
      A shifts[4];
      int count = 0;
      const int64_t len = length(u);
      for (; count < 4 && u + count < end && length(u + count) == len; ++count) {
        const int64_t row = (u + count) / blocks;
        at[count] = x + row * n + (u + count) % blocks * kRowBlock;
        shifts[count] = shift ? shift[row] : A(0);
      }
      if (count == 4) {
        fold_blocks<Op, 4>(at, len, shifts, partial + u);
      } else {
        for (int k = 0; k < count; ++k) fold_blocks<Op, 1>(at + k, len, shifts + k, partial + u + k);
      }
      u += count;
    }
  });
}

// One block of `rows` reduced elements of N * L (or fewer: count) neighbouring columns.
template <class Op, int N, class S>
VESTA_INLINE void fold_columns(const S* x, int64_t rows, int64_t inner, int count, const Acc<S>* shift,
                               Acc<S>* out) {
  using A = Acc<S>;
  using V = Vec<A>;
  constexpr int L = V::kLanes;
  const bool full = count == N * L;
  V acc[N], s[N];
  for (int k = 0; k < N; ++k) {
    acc[k] = V::set1(Op::identity());
    s[k] = !shift ? V::zero() : full ? load(shift + k * L) : load_n(shift + k * L, count - k * L);
  }
  if (full) {
    for (int64_t r = 0; r < rows; ++r)
      for (int k = 0; k < N; ++k) acc[k] = Op::combine(acc[k], Op::map(load(x + r * inner + k * L), s[k]));
    for (int k = 0; k < N; ++k) store(out + k * L, acc[k]);
  } else {
    for (int64_t r = 0; r < rows; ++r)
      for (int k = 0; k < N; ++k)
        acc[k] = Op::combine(acc[k], Op::map(load_n(x + r * inner + k * L, count - k * L), s[k]));
    for (int k = 0; k < N; ++k) store_n(out + k * L, acc[k], count - k * L);
  }
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
  const int64_t wide = inner / (4 * L), narrow = (inner - wide * 4 * L + L - 1) / L, chunks = wide + narrow;
  const SharedScratch scratch(blocks == 1 ? 0 : size_t(outer * blocks * inner) * sizeof(A));
  A* partial = blocks == 1 ? result : static_cast<A*>(scratch.data());
  const int64_t block_rows = reduced < kColumnBlock ? reduced : kColumnBlock;
  parallel_for(0, outer * blocks * chunks, grain_for(block_rows * 4 * L, kReduceWork),
               [&, reduced = reduced, inner = inner](int64_t begin, int64_t end) {
                 for (int64_t u = begin; u < end; ++u) {
                   const int64_t chunk = u % chunks, unit = u / chunks, block = unit % blocks,
                                 o = unit / blocks;
                   const int64_t column = chunk < wide ? chunk * 4 * L : wide * 4 * L + (chunk - wide) * L;
                   const int64_t first = block * kColumnBlock;
                   const int64_t rows = reduced - first < kColumnBlock ? reduced - first : kColumnBlock;
                   const S* at = x + (o * reduced + first) * inner + column;
                   const A* s = shift ? shift + o * inner + column : nullptr;
                   A* out = partial + unit * inner + column;
                   const int64_t rest = inner - column;
                   if (chunk < wide) {
                     fold_columns<Op, 4>(at, rows, inner, 4 * L, s, out);
                   } else {
                     fold_columns<Op, 1>(at, rows, inner, static_cast<int>(rest < L ? rest : L), s, out);
                   }
                 }
               });
  if (blocks == 1) return;
  for (int64_t o = 0; o < outer; ++o) {
    A* p = partial + o * blocks * inner;
    for (int64_t n = blocks; n > 1; n = (n + 1) / 2) {
      for (int64_t i = 0; i + 1 < n; i += 2)
        for (int64_t c = 0; c < inner; ++c)
          p[i / 2 * inner + c] = Op::combine(p[i * inner + c], p[(i + 1) * inner + c]);
      if (n % 2 == 1) std::memmove(p + n / 2 * inner, p + (n - 1) * inner, size_t(inner) * sizeof(A));
    }
    std::memcpy(result + o * inner, p, size_t(inner) * sizeof(A));
  }
}

}  // namespace
}  // namespace vesta::cpu::VESTA_ISA
