#pragma once
// The register-tiled GEMM kernel and its packing, written once over a Traits type that names the vectors of a level.
// Included by gemm_f32.cpp, gemm_f64.cpp and gemm_bf16.cpp; all of it has internal linkage, since each level compiles
// its own copy.
//
// Kernel: M x (V * lanes) accumulators in registers; each k step loads V vectors of B, broadcasts M units of A. Every
// accumulator is a chain of multiply-adds in k order, so the tile shape never changes a result. On Zen 4 one 512-bit
// multiply-add a cycle needs 4 chains in flight; 14 x 32 has 28 and reads 6.6 bytes a cycle, which L2 can feed.
//
// Traits: Unit, Acc (scalar), V (operand vector), A (accumulator vector), kLanes, kRows, kVectors, kDepth, kGroup, and
// zero, load, load_part, broadcast, multiply_add, set1, scale, scale_add, load_acc, load_acc_part, store, store_part.
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "kernels/cpu/gemm_half.h"
#include "kernels/cpu/gemm_kernels.h"

#define VESTA_GEMM_INLINE [[gnu::always_inline]] inline

namespace vesta::cpu::VESTA_ISA {
namespace {

// Units from one k to the next in an A strip packed as [k][m]: whole vectors, so that packing stores are aligned.
template <class Tr>
constexpr int kPitch = (Tr::kRows + Tr::kLanes - 1) / Tr::kLanes* Tr::kLanes;

// Whether a panel of B ends in a row of accumulators to add (GemmKernels::extra_units).
template <class Tr>
constexpr bool kHasOffsets = requires {
  Tr::kOffsets;
};

// kTail: the last of the V vectors has `tail` (1..lanes) columns.
template <class Tr, int M, int V, bool kColumns, bool kTail>
void micro(const GemmStrip& s, const typename Tr::Unit* b, typename Tr::Acc* c, int64_t tail,
           const char* next) {
  using Unit = typename Tr::Unit;
  constexpr int L = Tr::kLanes;
  // Plain 16-byte vectors move so little a step that prefetches would cost more than they bring.
  constexpr bool kPrefetch = L * sizeof(typename Tr::Acc) >= 32;
  typename Tr::A acc[M][V];
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) acc[i][v] = Tr::zero();

  // C's lines arrive in L2 while the products run (C may be in DRAM, and its rows may collide in L1).
  if (kPrefetch && s.k >= 4 * kGemmPrefetchSteps) {
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) __builtin_prefetch(c + i * s.ldc + v * L, 0, 2);
  }

  // Row-major A: one pointer per 3 rows, the others by index register: few enough registers for 14 rows. Named
  // variables, because an array of pointers would live on the stack.
  static_assert(M <= 15);
  const int64_t a_row = kColumns && s.a_row == 0 ? kPitch<Tr> : s.a_row, b_row = s.b_row,
                next_row = s.next_row;
  const auto* a0 = static_cast<const Unit*>(s.a);
  const Unit *a1 = a0 + 3 * a_row, *a2 = a0 + 6 * a_row, *a3 = a0 + 9 * a_row, *a4 = a0 + 12 * a_row;
  for (int64_t left = s.k - (kHasOffsets<Tr> ? 1 : 0); left > 0;) {
    int64_t k = left < kGemmPrefetchSteps ? left : kGemmPrefetchSteps;
    left -= k;
    for (; k > 0; --k) {
      typename Tr::V y[V];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v)
        y[v] = kTail && v == V - 1 ? Tr::load_part(b + v * L, tail) : Tr::load(b + v * L);
      b += b_row;
      if constexpr (kPrefetch) {
        __builtin_prefetch(next);
        __builtin_prefetch(next + 64);
        next += next_row;
      }
#pragma GCC unroll 16
      for (int i = 0; i < M; ++i) {
        const Unit* row = i < 3 ? a0 : i < 6 ? a1 : i < 9 ? a2 : i < 12 ? a3 : a4;
        const typename Tr::V x = Tr::broadcast(kColumns ? a0 + i : row + (i % 3) * a_row);
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) acc[i][v] = Tr::multiply_add(x, y[v], acc[i][v]);
      }
      a0 += kColumns ? a_row : 1;
      if constexpr (!kColumns) {
        ++a1, ++a2, ++a3, ++a4;
        // Keeps the compiler from replacing these by 14 separate pointers, which spill.
        if constexpr (M > 12) {
          asm("" : "+r"(a0), "+r"(a1), "+r"(a2), "+r"(a3), "+r"(a4));
        } else {
          asm("" : "+r"(a0), "+r"(a1), "+r"(a2), "+r"(a3));
        }
      }
    }
    next += s.next_skip;
  }
  if constexpr (kHasOffsets<Tr>) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const auto y = kTail && v == V - 1 ? Tr::load_part(b + v * L, tail) : Tr::load(b + v * L);
#pragma GCC unroll 16
      for (int i = 0; i < M; ++i) acc[i][v] = Tr::add_offset(acc[i][v], y);
    }
  }

  if (s.alpha == 1 && s.beta == 0) {
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        auto* out = c + i * s.ldc + v * L;
        if (kTail && v == V - 1) {
          Tr::store_part(out, acc[i][v], tail);
        } else {
          Tr::store(out, acc[i][v]);
        }
      }
    return;
  }
  const auto alpha = Tr::set1(static_cast<typename Tr::Acc>(s.alpha));
  const auto beta = Tr::set1(static_cast<typename Tr::Acc>(s.beta));
  const bool read_c = s.beta != 0;
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      auto* out = c + i * s.ldc + v * L;
      const bool part = kTail && v == V - 1;
      auto t = Tr::scale(alpha, acc[i][v]);
      if (read_c) t = Tr::scale_add(beta, part ? Tr::load_acc_part(out, tail) : Tr::load_acc(out), t);
      if (part) {
        Tr::store_part(out, t, tail);
      } else {
        Tr::store(out, t);
      }
    }
  }
}

template <class Tr, int M, bool kColumns>
void strip_of(const GemmStrip& s) {
  constexpr int L = Tr::kLanes, V = Tr::kVectors;
  const auto* b = static_cast<const typename Tr::Unit*>(s.b);
  auto* c = static_cast<typename Tr::Acc*>(s.c);
  // Without anything to prefetch, the lines just read are touched again: that costs next to nothing.
  const auto* next = static_cast<const char*>(s.next ? s.next : s.b);
  const int64_t next_panel = s.next ? s.next_panel : 0;
  int64_t n = s.n;
  for (; n >= V * L; n -= V * L, b += s.b_panel, c += V * L, next += next_panel)
    micro<Tr, M, V, kColumns, false>(s, b, c, L, next);
  if (n > L) {
    micro<Tr, M, V, kColumns, true>(s, b, c, n - L, next);
  } else if (n > 0) {
    micro<Tr, M, 1, kColumns, true>(s, b, c, n, next);
  }
}

template <class Tr, bool kColumns, int... M>
void strip(const GemmStrip& s, std::integer_sequence<int, M...>) {
  static constexpr void (*kTable[])(const GemmStrip&) = {strip_of<Tr, M + 1, kColumns>...};
  kTable[s.m - 1](s);
}

template <class Tr>
void strip_rows(const GemmStrip& s) {
  strip<Tr, false>(s, std::make_integer_sequence<int, Tr::kRows>());
}

template <class Tr>
void strip_columns(const GemmStrip& s) {
  strip<Tr, true>(s, std::make_integer_sequence<int, Tr::kRows>());
}

// A tile of M rows by V vectors over the links of a chain.
template <class Tr, int M, int V, bool kColumns>
void chain_of(const GemmChain& s) {
  using Unit = typename Tr::Unit;
  constexpr int L = Tr::kLanes;
  constexpr int64_t kRow = L * Tr::kVectors;  // of B
  auto* c = static_cast<typename Tr::Acc*>(s.c);
  const int64_t full = s.n / L, rest = s.n % L;  // vectors of C, and columns behind them
  typename Tr::A acc[M][V];
  if (s.add) {
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        const auto* from = c + i * s.ldc + v * L;
        acc[i][v] = v < full ? Tr::load_acc(from) : Tr::load_acc_part(from, rest);
      }
  } else {
    const auto* first = static_cast<const typename Tr::Acc*>(s.first);
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const typename Tr::A start = first ? Tr::load_acc(first + v * L) : Tr::zero();
#pragma GCC unroll 16
      for (int i = 0; i < M; ++i) acc[i][v] = start;
    }
  }
  static_assert(M <= 15);
  const int64_t a_row = s.a_row;
  for (const GemmLink *link = s.links, *end = link + s.count; link != end; ++link) {
    const auto* b = static_cast<const Unit*>(s.b) + link->b;
    // The pointers of micro().
    const auto* a0 = static_cast<const Unit*>(s.a) + link->a;
    const Unit *a1 = a0 + 3 * a_row, *a2 = a0 + 6 * a_row, *a3 = a0 + 9 * a_row, *a4 = a0 + 12 * a_row;
    for (int64_t k = link->k; k > 0; --k) {
      typename Tr::V y[V];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) y[v] = Tr::load(b + v * L);
      b += kRow;
#pragma GCC unroll 16
      for (int i = 0; i < M; ++i) {
        const Unit* row = i < 3 ? a0 : i < 6 ? a1 : i < 9 ? a2 : i < 12 ? a3 : a4;
        const typename Tr::V x = Tr::broadcast(kColumns ? a0 + i : row + (i % 3) * a_row);
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) acc[i][v] = Tr::multiply_add(x, y[v], acc[i][v]);
      }
      a0 += kColumns ? a_row : 1;
      if constexpr (!kColumns) {
        ++a1, ++a2, ++a3, ++a4;
        if constexpr (M > 12) {
          asm("" : "+r"(a0), "+r"(a1), "+r"(a2), "+r"(a3), "+r"(a4));
        } else {
          asm("" : "+r"(a0), "+r"(a1), "+r"(a2), "+r"(a3));
        }
      }
    }
  }
  if (s.n == V * L) {
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) Tr::store(c + i * s.ldc + v * L, acc[i][v]);
    return;
  }
#pragma GCC unroll 16
  for (int i = 0; i < M; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      auto* to = c + i * s.ldc + v * L;
      if (v < full) {
        Tr::store(to, acc[i][v]);
      } else {
        Tr::store_part(to, acc[i][v], rest);
      }
    }
}

template <class Tr, bool kColumns, int... M>
void chain(const GemmChain& s, std::integer_sequence<int, M...>) {
  static constexpr void (*kOne[])(const GemmChain&) = {chain_of<Tr, M + 1, 1, kColumns>...};
  static constexpr void (*kAll[])(const GemmChain&) = {chain_of<Tr, M + 1, Tr::kVectors, kColumns>...};
  (s.n <= Tr::kLanes ? kOne : kAll)[s.m - 1](s);
}

template <class Tr>
void chain_rows(const GemmChain& s) {
  chain<Tr, false>(s, std::make_integer_sequence<int, Tr::kRows>());
}

template <class Tr>
void chain_columns(const GemmChain& s) {
  chain<Tr, true>(s, std::make_integer_sequence<int, Tr::kRows>());
}

// X x Y dot products of rows with K contiguous: one vector of partial sums each, added up by halves at the end.
template <class Tr, class Source, int X, int Y>
void dot_block(const typename Source::Element* x, int64_t x_row, const typename Source::Element* y,
               int64_t y_row, int64_t k, typename Tr::Acc* out, int64_t out_x, int64_t out_y) {
  constexpr int L = Tr::kLanes;
  constexpr int64_t kStep = L * Source::kPerUnit;
  typename Tr::A acc[X][Y];
#pragma GCC unroll 4
  for (int i = 0; i < X; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < Y; ++j) acc[i][j] = Tr::zero();
  const auto step = [&](auto load) {
    typename Source::V b[Y];
#pragma GCC unroll 4
    for (int j = 0; j < Y; ++j) b[j] = load(y + j * y_row);
#pragma GCC unroll 4
    for (int i = 0; i < X; ++i) {
      const typename Source::V a = load(x + i * x_row);
#pragma GCC unroll 4
      for (int j = 0; j < Y; ++j)
        acc[i][j] = Tr::multiply_add((typename Tr::V)a, (typename Tr::V)b[j], acc[i][j]);
    }
  };
  int64_t p = 0;
  for (; p + kStep <= k; p += kStep) step([&](const auto* from) { return Source::load(from + p); });
  if (p < k) step([&](const auto* from) { return Source::load_part(from + p, k - p); });
  for (int i = 0; i < X; ++i)
    for (int j = 0; j < Y; ++j) {
      typename Tr::Acc lanes[L];
      std::memcpy(lanes, &acc[i][j], sizeof lanes);
      for (int half = L / 2; half > 0; half /= 2)
        for (int l = 0; l < half; ++l) lanes[l] += lanes[l + half];
      out[i * out_x + j * out_y] = lanes[0];
    }
}

// out[i, j] = x row i . y row j. Few x rows (they stay in L1), many y rows, read once and four at a time.
template <class Tr, class Source>
void dots(const void* x_, int64_t x_row, int64_t nx, const void* y_, int64_t y_row, int64_t ny, int64_t k,
          void* out_, int64_t out_x, int64_t out_y) {
  using Element = typename Source::Element;
  const auto* y = static_cast<const Element*>(y_);
  for (int64_t j = 0; j < ny;) {
    const bool four = ny - j >= 4;
    const auto* x = static_cast<const Element*>(x_);
    auto* out = static_cast<typename Tr::Acc*>(out_) + j * out_y;
    for (int64_t i = 0; i < nx;) {
      const int64_t left = nx - i;
      const auto block = left >= 4   ? (four ? dot_block<Tr, Source, 4, 4> : dot_block<Tr, Source, 4, 1>)
                         : left >= 2 ? (four ? dot_block<Tr, Source, 2, 4> : dot_block<Tr, Source, 2, 1>)
                                     : (four ? dot_block<Tr, Source, 1, 4> : dot_block<Tr, Source, 1, 1>);
      const int64_t took = left >= 4 ? 4 : left >= 2 ? 2 : 1;
      block(x, x_row, y, y_row, k, out, out_x, out_y);
      i += took;
      x += took * x_row;
      out += took * out_x;
    }
    j += four ? 4 : 1;
    y += (four ? 4 : 1) * y_row;
  }
}

// t[i, j] += sum over p of a[i, p] * b[p, j] for M rows: bound by reading B, so along B's rows, kSteps of them side by
// side between a load and a store of t (which stays in L1).
template <class Tr, class Source, int M>
void vector_rows_of(const typename Source::Element* a, int64_t a_row, int64_t a_col,
                    const typename Source::Element* b, int64_t b_row, int64_t k, int64_t n,
                    typename Tr::Acc* t, int64_t t_row) {
  constexpr int L = Tr::kLanes, kSteps = M <= 2 ? 8 : 4;
  const auto rows = [&](int64_t p, auto steps) {
    constexpr int kCount = decltype(steps)::value;
    typename Tr::V x[M][kCount];
#pragma GCC unroll 4
    for (int i = 0; i < M; ++i)
#pragma GCC unroll 8
      for (int r = 0; r < kCount; ++r) x[i][r] = Tr::set1(Source::widen(a[i * a_row + (p + r) * a_col]));
    const auto columns = [&](int64_t j, auto load) {
      typename Tr::A sum[M];
#pragma GCC unroll 4
      for (int i = 0; i < M; ++i) sum[i] = Tr::load(t + i * t_row + j);
#pragma GCC unroll 8
      for (int r = 0; r < kCount; ++r) {
        const auto* y = b + (p + r) * b_row + j;
        const typename Tr::V v = load(y);
        __builtin_prefetch(y + kCount * b_row, 0, 2);
#pragma GCC unroll 4
        for (int i = 0; i < M; ++i) sum[i] = Tr::multiply_add(x[i][r], v, sum[i]);
      }
#pragma GCC unroll 4
      for (int i = 0; i < M; ++i) Tr::store(t + i * t_row + j, sum[i]);
    };
    int64_t j = 0;
    for (; j + L <= n; j += L) columns(j, [](const auto* y) { return Source::load(y); });
    if (j < n) columns(j, [&](const auto* y) { return Source::load_part(y, n - j); });
  };
  int64_t p = 0;
  for (; p + kSteps <= k; p += kSteps) rows(p, std::integral_constant<int, kSteps>());
  for (; p < k; ++p) rows(p, std::integral_constant<int, 1>());
}

template <class Tr, class Source>
void vector_rows(const void* a, int64_t a_row, int64_t a_col, int64_t m, const void* b, int64_t b_row,
                 int64_t k, int64_t n, void* t, int64_t t_row) {
  using Element = typename Source::Element;
  constexpr void (*kTable[])(const Element*, int64_t, int64_t, const Element*, int64_t, int64_t, int64_t,
                             typename Tr::Acc*,
                             int64_t) = {vector_rows_of<Tr, Source, 1>, vector_rows_of<Tr, Source, 2>,
                                         vector_rows_of<Tr, Source, 3>, vector_rows_of<Tr, Source, 4>};
  static_assert(kGemmVectorRows == 4);
  kTable[m - 1](static_cast<const Element*>(a), a_row, a_col, static_cast<const Element*>(b), b_row, k, n,
                static_cast<typename Tr::Acc*>(t), t_row);
}

// t[tile][i][lane] += sum over p of a[p][i] * b[p][column] for M rows, a vector of columns at a time: what is read once,
// at the rate of the multiply-adds. The rows two calls on are fetched meanwhile.
template <class Tr, class Source, int M>
void tile_sums_of(const typename Tr::Unit* a, const typename Source::Element* b, int64_t b_row, int64_t k,
                  int64_t n, typename Tr::Acc* t) {
  constexpr int L = Tr::kLanes;
  constexpr int64_t kAhead = 2 * kGemmSumsDepth;
  for (int64_t j = 0; j < n; j += L, t += kPitch<Tr> * L) {
    typename Tr::A sum[M];
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) sum[i] = Tr::load_acc(t + i * L);
    const auto* y = b + j;
    const typename Tr::Unit* x = a;
    const bool whole = n - j >= L;
    for (int64_t p = 0; p < k; ++p, y += b_row, x += kPitch<Tr>) {
      const typename Tr::V v = whole ? Source::load(y) : Source::load_part(y, n - j);
      __builtin_prefetch(y + kAhead * b_row, 0, 2);
#pragma GCC unroll 16
      for (int i = 0; i < M; ++i) sum[i] = Tr::multiply_add(Tr::broadcast(x + i), v, sum[i]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < M; ++i) Tr::store(t + i * L, sum[i]);
  }
}

template <class Tr, class Source, int... M>
void tile_sums_table(const void* a, int64_t m, const void* b, int64_t b_row, int64_t k, int64_t n, void* t,
                     std::integer_sequence<int, M...>) {
  using Element = typename Source::Element;
  static constexpr void (*kTable[])(const typename Tr::Unit*, const Element*, int64_t, int64_t, int64_t,
                                    typename Tr::Acc*) = {tile_sums_of<Tr, Source, M + 1>...};
  kTable[m - 1](static_cast<const typename Tr::Unit*>(a), static_cast<const Element*>(b), b_row, k, n,
                static_cast<typename Tr::Acc*>(t));
}
template <class Tr, class Source>
void tile_sums(const void* a, int64_t m, const void* b, int64_t b_row, int64_t k, int64_t n, void* t) {
  tile_sums_table<Tr, Source>(a, m, b, b_row, k, n, t, std::make_integer_sequence<int, kPitch<Tr>>());
}

// In-register transpose of L vectors of L lanes: log2(L) perfect shuffles.
template <class V, int... I>
VESTA_GEMM_INLINE void interleave(V a, V b, V* low, V* high, std::integer_sequence<int, I...>) {
  constexpr int L = sizeof...(I);
  *low = __builtin_shufflevector(a, b, (I % 2 ? L + I / 2 : I / 2)...);
  *high = __builtin_shufflevector(a, b, (I % 2 ? L + L / 2 + I / 2 : L / 2 + I / 2)...);
}

template <int L, class V>
VESTA_GEMM_INLINE void transpose(V* x) {
  V y[L];
#pragma GCC unroll 4
  for (int step = 1; step < L; step *= 2) {
#pragma GCC unroll 16
    for (int i = 0; i < L / 2; ++i)
      interleave(x[i], x[i + L / 2], &y[2 * i], &y[2 * i + 1], std::make_integer_sequence<int, L>());
#pragma GCC unroll 16
    for (int i = 0; i < L; ++i) x[i] = y[i];
  }
}

// B[k, n] with K contiguous (col = distance between columns, elements of the source) into panels of `columns`, by
// L x L transposes of units. Source::load_part reads that many elements, zeros after them.
template <class Source, int L, class Unit>
void pack_transposed(const typename Source::Element* b, int64_t col, int64_t k, int64_t n, int64_t columns,
                     Unit* out) {
  using V = typename Source::V;
  constexpr int64_t kPer = Source::kPerUnit;
  const int64_t units = (k + kPer - 1) / kPer;
  for (int64_t j = 0; j < n; j += columns, out += units * columns)
    for (int64_t p = 0; p < units; p += L) {
      const int64_t elements = k - p * kPer < L * kPer ? k - p * kPer : L * kPer;
      const int64_t depth = (elements + kPer - 1) / kPer;
      for (int64_t jj = 0; jj < columns; jj += L) {
        V x[L];
        const int64_t width = n - j - jj;
        const auto* from = b + (j + jj) * col + p * kPer;
        if (width >= L && elements == L * kPer) {
#pragma GCC unroll 16
          for (int i = 0; i < L; ++i) x[i] = Source::load(from + i * col);
        } else {
          for (int i = 0; i < L; ++i) x[i] = i < width ? Source::load_part(from + i * col, elements) : V{};
        }
        transpose<L>(x);
        Unit* to = out + p * columns + jj;
        if (depth == L) {
#pragma GCC unroll 16
          for (int i = 0; i < L; ++i) std::memcpy(to + i * columns, &x[i], sizeof(V));
        } else {
          for (int i = 0; i < depth; ++i) std::memcpy(to + i * columns, &x[i], sizeof(V));
        }
      }
    }
}

// B[k, n] with any strides into panels; contiguous rows (col == 1) become vector copies or conversions.
template <class Source, int L, int kVectors, class Unit>
void pack_panels(const typename Source::Element* b, int64_t row, int64_t col, int64_t k, int64_t n,
                 Unit* out) {
  using V = typename Source::V;
  constexpr int64_t kColumns = L * kVectors;
  for (int64_t j = 0; j < n; j += kColumns, out += k * kColumns) {
    const int64_t width = n - j < kColumns ? n - j : kColumns;
    const auto* from = b + j * col;
    Unit* to = out;
    if (col == 1 && width == kColumns) {
      for (int64_t p = 0; p < k; ++p, from += row, to += kColumns) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          const V x = Source::load(from + v * L);
          std::memcpy(to + v * L, &x, sizeof(V));
        }
      }
      continue;
    }
    for (int64_t p = 0; p < k; ++p, from += row, to += kColumns) {
      if (col == 1) {
        for (int v = 0; v < kVectors; ++v) {
          const int64_t left = width - v * L;
          const V x = left >= L  ? Source::load(from + v * L)
                      : left > 0 ? Source::load_part(from + v * L, left)
                                 : V{};
          std::memcpy(to + v * L, &x, sizeof(V));
        }
      } else {
        for (int64_t i = 0; i < width; ++i) to[i] = Source::widen(from[i * col]);
        for (int64_t i = width; i < kColumns; ++i) to[i] = 0;
      }
    }
  }
}

// A[m, k] into rows of out_row units, or (out_row == 0) into [k][kPitch], of which m count.
template <class Source, int L, int kPitchUnits, class Unit>
void pack_a_units(const typename Source::Element* a, int64_t row, int64_t col, int64_t m, int64_t k,
                  int64_t out_row, Unit* out) {
  using V = typename Source::V;
  if (out_row > 0) {
    for (int64_t i = 0; i < m; ++i, a += row, out += out_row) {
      int64_t p = 0;
      for (; col == 1 && p + L <= k; p += L) {
        const V x = Source::load(a + p);
        std::memcpy(out + p, &x, sizeof(V));
      }
      for (; p < k; ++p) out[p] = Source::widen(a[p * col]);
    }
    return;
  }
  for (int64_t p = 0; p < k; ++p, a += col, out += kPitchUnits) {
    if (row == 1) {
      for (int64_t i = 0; i < m; i += L) {
        const V x = m - i >= L ? Source::load(a + i) : Source::load_part(a + i, m - i);
        std::memcpy(out + i, &x, sizeof(V));
      }
    } else {
      for (int64_t i = 0; i < m; ++i) out[i] = Source::widen(a[i * row]);
    }
  }
}

}  // namespace
}  // namespace vesta::cpu::VESTA_ISA
