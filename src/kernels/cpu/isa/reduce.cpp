// Reductions: floats through the vector folds of reduce_float.h, integers and truth values through plain loops that
// gcc vectorises (their order is free), argmax/argmin by block maxima and a search of the one winning block.
#include "kernels/cpu/reduce.h"

#include <cmath>

#include "kernels/cpu/isa/float_types.h"
#include "kernels/cpu/isa/reduce_float.h"

namespace vesta::cpu::VESTA_ISA {
namespace {

constexpr int64_t kScalarBlock = 16384;  // elements of a row per unit of work
constexpr int64_t kScalarColumns = 128;
constexpr int64_t kScalarRows = 1024;
constexpr int64_t kArgRows = 4096;

// result[outer, inner] = combine over map(x), for operations whose order does not matter.
template <class R, class S, class Map, class Combine>
void fold_scalar(const S* x, ReduceShape shape, R identity, Map map, Combine combine, R* result) {
  const auto [outer, reduced, inner] = shape;
  if (inner == 1) {
    const int64_t blocks = reduced > kScalarBlock ? (reduced + kScalarBlock - 1) / kScalarBlock : 1;
    const SharedScratch scratch(blocks == 1 ? 0 : size_t(outer * blocks) * sizeof(R));
    R* partial = blocks == 1 ? result : static_cast<R*>(scratch.data());
    parallel_for(0, outer * blocks, grain_for(blocks == 1 ? reduced : kScalarBlock, kReduceWork),
                 [&, reduced = reduced](int64_t begin, int64_t end) {
                   for (int64_t u = begin; u < end; ++u) {
                     const int64_t first = u % blocks * kScalarBlock;
                     const int64_t n = reduced - first < kScalarBlock ? reduced - first : kScalarBlock;
                     const S* at = x + u / blocks * reduced + first;
                     R acc = identity;
                     for (int64_t i = 0; i < n; ++i) acc = combine(acc, map(at[i]));
                     partial[u] = acc;
                   }
                 });
    if (blocks == 1) return;
    for (int64_t r = 0; r < outer; ++r) {
      R acc = identity;
      for (int64_t b = 0; b < blocks; ++b) acc = combine(acc, partial[r * blocks + b]);
      result[r] = acc;
    }
    return;
  }
  const int64_t blocks = reduced > kScalarRows ? (reduced + kScalarRows - 1) / kScalarRows : 1;
  const int64_t chunks = (inner + kScalarColumns - 1) / kScalarColumns;
  const SharedScratch scratch(blocks == 1 ? 0 : size_t(outer * blocks * inner) * sizeof(R));
  R* partial = blocks == 1 ? result : static_cast<R*>(scratch.data());
  const int64_t columns = inner < kScalarColumns ? inner : kScalarColumns;
  parallel_for(0, outer * blocks * chunks,
               grain_for((reduced < kScalarRows ? reduced : kScalarRows) * columns, kReduceWork),
               [&, reduced = reduced, inner = inner](int64_t begin, int64_t end) {
                 for (int64_t u = begin; u < end; ++u) {
                   const int64_t unit = u / chunks, column = u % chunks * kScalarColumns;
                   const int64_t count = inner - column < kScalarColumns ? inner - column : kScalarColumns;
                   const int64_t first = unit % blocks * kScalarRows;
                   const int64_t rows = reduced - first < kScalarRows ? reduced - first : kScalarRows;
                   const S* at = x + (unit / blocks * reduced + first) * inner + column;
                   R acc[kScalarColumns];
                   for (int64_t c = 0; c < count; ++c) acc[c] = identity;
                   for (int64_t r = 0; r < rows; ++r)
                     for (int64_t c = 0; c < count; ++c) acc[c] = combine(acc[c], map(at[r * inner + c]));
                   for (int64_t c = 0; c < count; ++c) partial[unit * inner + column + c] = acc[c];
                 }
               });
  if (blocks == 1) return;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t c = 0; c < inner; ++c) {
      R acc = identity;
      for (int64_t b = 0; b < blocks; ++b) acc = combine(acc, partial[(o * blocks + b) * inner + c]);
      result[o * inner + c] = acc;
    }
}

template <class S>
VESTA_INLINE uint8_t truth(S x) {
  return x != 0;
}
VESTA_INLINE uint8_t truth(Bf16 x) { return (x.bits & 0x7fff) != 0; }
VESTA_INLINE uint8_t truth(Half x) { return (x.bits & 0x7fff) != 0; }

template <class F>
void with_integer_type(Elem type, F f) {
  switch (type) {
    case Elem::I64:
      return f(int64_t{});
    case Elem::I32:
      return f(int32_t{});
    case Elem::I16:
      return f(int16_t{});
    case Elem::I8:
      return f(int8_t{});
    default:
      return f(uint8_t{});  // U8 and Bool
  }
}
template <class F>
void with_any_type(Elem type, F f) {
  is_float(type) ? with_float_type(type, f) : with_integer_type(type, f);
}

template <class S>
void any_all(bool all, const S* x, ReduceShape shape, uint8_t* out) {
  auto map = [](S v) { return truth(v); };
  if (all) {
    fold_scalar<uint8_t>(
        x, shape, 1, map, [](uint8_t a, uint8_t b) { return uint8_t(a & b); }, out);
  } else {
    fold_scalar<uint8_t>(
        x, shape, 0, map, [](uint8_t a, uint8_t b) { return uint8_t(a | b); }, out);
  }
}

template <class S>
void reduce_integer(ReduceOp op, const S* x, ReduceShape shape, void* out) {
  auto wide = [](S v) { return int64_t(v); };
  auto same = [](S v) { return v; };
  int64_t* sum = static_cast<int64_t*>(out);
  S* extreme = static_cast<S*>(out);
  using Limits = std::numeric_limits<S>;
  switch (op) {
    case ReduceOp::Sum:
      return fold_scalar<int64_t>(
          x, shape, 0, wide, [](int64_t a, int64_t b) { return int64_t(uint64_t(a) + uint64_t(b)); }, sum);
    case ReduceOp::Prod:
      return fold_scalar<int64_t>(
          x, shape, 1, wide, [](int64_t a, int64_t b) { return int64_t(uint64_t(a) * uint64_t(b)); }, sum);
    case ReduceOp::Max:
      return fold_scalar<S>(
          x, shape, Limits::lowest(), same, [](S a, S b) { return a > b ? a : b; }, extreme);
    case ReduceOp::Min:
      return fold_scalar<S>(
          x, shape, Limits::max(), same, [](S a, S b) { return a < b ? a : b; }, extreme);
    default:
      return;
  }
}

template <class S>
void log_sum_exp(const S* x, ReduceShape shape, Acc<S>* result) {
  using A = Acc<S>;
  const int64_t n = shape.outer * shape.inner;
  const SharedScratch scratch(2 * size_t(n) * sizeof(A));
  A *top = static_cast<A*>(scratch.data()), *shift = top + n;
  fold<MaxOp<A>>(x, shape, nullptr, top);
  // An infinite maximum shifts by 0, so that -inf rows sum to 0; +inf is its own answer, as exp is for x <= 88 only. NaN
  // stays.
  for (int64_t i = 0; i < n; ++i) shift[i] = std::fabs(top[i]) == kInfinity<A> ? A(0) : top[i];
  fold<ExpSumOp<A>>(x, shape, shift, result);
  for (int64_t i = 0; i < n; ++i)
    result[i] = top[i] == kInfinity<A> ? top[i] : shift[i] + std::log(result[i]);
}

template <class S>
void accumulate(ReduceOp op, const S* x, ReduceShape shape, Acc<S>* result) {
  using A = Acc<S>;
  switch (op) {
    case ReduceOp::Sum:
      return fold<SumOp<A>>(x, shape, nullptr, result);
    case ReduceOp::Prod:
      return fold<ProdOp<A>>(x, shape, nullptr, result);
    case ReduceOp::Max:
      return fold<MaxOp<A>>(x, shape, nullptr, result);
    case ReduceOp::Min:
      return fold<MinOp<A>>(x, shape, nullptr, result);
    case ReduceOp::SumSquares:
      return fold<SumSquaresOp<A>>(x, shape, nullptr, result);
    case ReduceOp::SumAbs:
      return fold<SumAbsOp<A>>(x, shape, nullptr, result);
    case ReduceOp::LogSumExp:
      return log_sum_exp(x, shape, result);
    default:
      return;
  }
}

void reduce(ReduceOp op, Elem type, const void* x, ReduceShape shape, void* out, Elem out_type,
            double scale) {
  if (op == ReduceOp::Any || op == ReduceOp::All) {
    return with_any_type(type, [&]<class S>(S) {
      any_all(op == ReduceOp::All, static_cast<const S*>(x), shape, static_cast<uint8_t*>(out));
    });
  }
  if (!is_float(type)) {
    return with_integer_type(type,
                             [&]<class S>(S) { reduce_integer(op, static_cast<const S*>(x), shape, out); });
  }
  with_float_type(type, [&]<class S>(S) {
    using A = Acc<S>;
    const int64_t n = shape.outer * shape.inner;
    const bool direct = out_type == accumulate_type(type);
    const SharedScratch scratch(direct ? 0 : size_t(n) * sizeof(A));
    A* result = static_cast<A*>(direct ? out : scratch.data());
    accumulate(op, static_cast<const S*>(x), shape, result);
    if (scale != 1)
      for (int64_t i = 0; i < n; ++i) result[i] *= A(scale);
    if (!direct)
      for (int64_t i = 0; i < n; ++i) static_cast<S*>(out)[i] = from_acc<S>(result[i]);
  });
}

// Whether x replaces the best so far (strictly better, or the first NaN).
template <class A>
VESTA_INLINE bool better(bool largest, A x, A best) {
  return (largest ? x > best : x < best) | ((x != x) & (best == best));
}

template <class S>
VESTA_INLINE auto comparable(S x) {
  if constexpr (sizeof(S) == 2 && !std::is_integral_v<S>)
    return to_acc(x);
  else
    return x;
}

template <class S>
void arg_rows(bool largest, const S* x, int64_t outer, int64_t n, int64_t* index, S* value) {
  using A = decltype(comparable(S{}));
  const int64_t blocks = (n + kRowBlock - 1) / kRowBlock;
  const SharedScratch scratch(size_t(outer * blocks) * sizeof(A));
  A* best = static_cast<A*>(scratch.data());
  if constexpr (std::is_integral_v<S>) {
    parallel_for(0, outer * blocks, grain_for(n < kRowBlock ? n : kRowBlock, kReduceWork),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t u = begin; u < end; ++u) {
                     const int64_t first = u % blocks * kRowBlock,
                                   last = first + kRowBlock < n ? first + kRowBlock : n;
                     const S* row = x + u / blocks * n;
                     S b = row[first];
                     if (largest) {
                       for (int64_t i = first; i < last; ++i) b = row[i] > b ? row[i] : b;
                     } else {
                       for (int64_t i = first; i < last; ++i) b = row[i] < b ? row[i] : b;
                     }
                     best[u] = b;
                   }
                 });
  } else if (largest) {
    fold_row_blocks<MaxOp<A>>(x, outer, n, blocks, nullptr, best);
  } else {
    fold_row_blocks<MinOp<A>>(x, outer, n, blocks, nullptr, best);
  }
  parallel_for(0, outer, grain_for(n < kRowBlock ? n : kRowBlock, kReduceWork),
               [&](int64_t begin, int64_t end) {
                 for (int64_t r = begin; r < end; ++r) {
                   const A* b = best + r * blocks;
                   int64_t winner = 0;
                   for (int64_t k = 1; k < blocks; ++k)
                     if (better(largest, b[k], b[winner])) winner = k;
                   const A target = b[winner];
                   int64_t i = winner * kRowBlock;
                   const S* row = x + r * n;
                   if (target != target) {
                     while (comparable(row[i]) == comparable(row[i])) ++i;
                   } else {
                     while (!(comparable(row[i]) == target)) ++i;
                   }
                   index[r] = i;
                   if (value) value[r] = row[i];
                 }
               });
}

// Columns: blocks of rows keep the best value and its row (in the value's width, so that the selects vectorise);
// blocks are then compared in order.
template <class S>
void arg_columns(bool largest, const S* x, ReduceShape shape, int64_t* index, S* value) {
  using A = decltype(comparable(S{}));
  using Row = std::conditional_t<sizeof(A) == 8, int64_t, int32_t>;
  const auto [outer, reduced, inner] = shape;
  const int64_t chunks = (inner + kScalarColumns - 1) / kScalarColumns;
  const int64_t columns = inner < kScalarColumns ? inner : kScalarColumns;
  const int64_t blocks = (reduced + kArgRows - 1) / kArgRows;
  const SharedScratch scratch(size_t(outer * blocks * inner) * (sizeof(A) + sizeof(Row)) + sizeof(int64_t));
  Row* rows = static_cast<Row*>(scratch.data());
  A* bests = reinterpret_cast<A*>(rows + outer * blocks * inner);
  parallel_for(0, outer * blocks * chunks,
               grain_for((reduced < kArgRows ? reduced : kArgRows) * columns, kReduceWork),
               [&, reduced = reduced, inner = inner](int64_t begin, int64_t end) {
                 for (int64_t u = begin; u < end; ++u) {
                   const int64_t column = u % chunks * kScalarColumns, unit = u / chunks;
                   const int64_t count = inner - column < kScalarColumns ? inner - column : kScalarColumns;
                   const int64_t first = unit % blocks * kArgRows;
                   const Row n = static_cast<Row>(reduced - first < kArgRows ? reduced - first : kArgRows);
                   const S* at = x + (unit / blocks * reduced + first) * inner + column;
                   A best[kScalarColumns];
                   Row where[kScalarColumns];
                   for (int64_t c = 0; c < count; ++c) {
                     best[c] = comparable(at[c]);
                     where[c] = 0;
                   }
                   for (Row r = 1; r < n; ++r) {
                     const S* row = at + r * inner;
                     for (int64_t c = 0; c < count; ++c) {
                       const A v = comparable(row[c]);
                       const bool take = better(largest, v, best[c]);
                       best[c] = take ? v : best[c];
                       where[c] = take ? r : where[c];
                     }
                   }
                   std::memcpy(bests + unit * inner + column, best, size_t(count) * sizeof(A));
                   std::memcpy(rows + unit * inner + column, where, size_t(count) * sizeof(Row));
                 }
               });
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t c = 0; c < inner; ++c) {
      int64_t winner = 0;
      const A* best = bests + o * blocks * inner + c;
      for (int64_t b = 1; b < blocks; ++b)
        if (better(largest, best[b * inner], best[winner * inner])) winner = b;
      const int64_t row = winner * kArgRows + rows[(o * blocks + winner) * inner + c];
      index[o * inner + c] = row;
      if (value) value[o * inner + c] = x[(o * reduced + row) * inner + c];
    }
}

void arg_reduce(bool largest, Elem type, const void* x, ReduceShape shape, int64_t* index, void* value) {
  with_any_type(type, [&]<class S>(S) {
    const S* p = static_cast<const S*>(x);
    if (shape.inner == 1) {
      arg_rows(largest, p, shape.outer, shape.reduced, index, static_cast<S*>(value));
    } else {
      arg_columns(largest, p, shape, index, static_cast<S*>(value));
    }
  });
}

void var_mean(Elem type, const void* x, ReduceShape shape, double correction, bool sqrt_result, void* var,
              void* mean) {
  with_float_type(type, [&]<class S>(S) {
    using A = Acc<S>;
    const int64_t n = shape.outer * shape.inner;
    const SharedScratch scratch(size_t(2 * n) * sizeof(A));
    A* centre = static_cast<A*>(scratch.data());
    A* square = centre + n;
    const S* p = static_cast<const S*>(x);
    fold<SumOp<A>>(p, shape, nullptr, centre);
    for (int64_t i = 0; i < n; ++i) centre[i] /= A(shape.reduced);
    fold<SquaredDeviationOp<A>>(p, shape, centre, square);
    const double freedom = double(shape.reduced) - correction;
    const A divisor = A(freedom > 0 ? freedom : 0);
    for (int64_t i = 0; i < n; ++i) {
      const A v = square[i] / divisor;
      static_cast<S*>(var)[i] = from_acc<S>(sqrt_result ? std::sqrt(v) : v);
      if (mean) static_cast<S*>(mean)[i] = from_acc<S>(centre[i]);
    }
  });
}

}  // namespace

extern const ReduceTable kReduceTable;
const ReduceTable kReduceTable = {reduce, arg_reduce, var_mean};

}  // namespace vesta::cpu::VESTA_ISA
