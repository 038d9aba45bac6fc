// Row loops in vectors, tails masked or by element; see kernels/cpu/rows.h.
#include "kernels/cpu/rows.h"

#include "kernels/cpu/isa/float_types.h"
#include "kernels/cpu/isa/simd.h"

namespace vesta::cpu::VESTA_ISA {
namespace {

void add(Elem type, const void* x_in, void* acc_in, int64_t n) {
  with_float_type(type, [&]<class S>(S) {
    using A = Acc<S>;
    constexpr int L = Vec<A>::kLanes;
    const S* x = static_cast<const S*>(x_in);
    A* acc = static_cast<A*>(acc_in);
    int64_t i = 0;
    for (; i + L <= n; i += L) store(acc + i, load(acc + i) + load(x + i));
    for (; i < n; ++i) acc[i] += to_acc(x[i]);
  });
}

void add_scaled(Elem type, const void* x_in, double factor, void* acc_in, int64_t n) {
  with_float_type(type, [&]<class S>(S) {
    using A = Acc<S>;
    constexpr int L = Vec<A>::kLanes;
    const S* x = static_cast<const S*>(x_in);
    A* acc = static_cast<A*>(acc_in);
    const Vec<A> f = Vec<A>::set1(A(factor));
    int64_t i = 0;
    for (; i + L <= n; i += L) store(acc + i, load(acc + i) + load(x + i) * f);
    for (; i < n; ++i) acc[i] += to_acc(x[i]) * A(factor);
  });
}

constexpr int64_t kRowsAhead =
    8;  // rows are fetched before they are added: hardware does not foresee their places

// N vectors of accumulators stay in registers over all rows.
template <int N, class S>
VESTA_INLINE void add_indexed_columns(const S* table, int64_t n, const int64_t* index, int64_t count,
                                      int64_t known, Acc<S>* acc) {
  using V = Vec<Acc<S>>;
  constexpr int L = V::kLanes;
  V sum[N];
  for (int k = 0; k < N; ++k) sum[k] = load(acc + k * L);
  for (int64_t r = 0; r < count; ++r) {
    const S* row = table + index[r] * n;
    if (r + kRowsAhead < known) {
      const S* next = table + index[r + kRowsAhead] * n;
      for (int k = 0; k < N; ++k) __builtin_prefetch(next + k * L);
    }
    for (int k = 0; k < N; ++k) sum[k] = sum[k] + load(row + k * L);
  }
  for (int k = 0; k < N; ++k) store(acc + k * L, sum[k]);
}
void add_indexed(Elem type, const void* table_in, const int64_t* index, int64_t count, int64_t known,
                 void* acc_in, int64_t n) {
  with_float_type(type, [&]<class S>(S) {
    using A = Acc<S>;
    constexpr int L = Vec<A>::kLanes, N = VESTA_SIMD_BYTES == 64 ? 8 : 2;
    const S* table = static_cast<const S*>(table_in);
    A* acc = static_cast<A*>(acc_in);
    int64_t i = 0;
    for (; i + N * L <= n; i += N * L) add_indexed_columns<N>(table + i, n, index, count, known, acc + i);
    for (; i + L <= n; i += L) add_indexed_columns<1>(table + i, n, index, count, known, acc + i);
    for (int64_t r = 0; i < n && r < count; ++r)
      for (int64_t j = i; j < n; ++j) acc[j] += to_acc(table[index[r] * n + j]);
  });
}

void limits(const int64_t* x, int64_t n, int64_t* least, int64_t* largest) {
  int64_t low = x[0], high = x[0];
  for (int64_t i = 1; i < n; ++i) {
    low = x[i] < low ? x[i] : low;
    high = x[i] > high ? x[i] : high;
  }
  *least = low;
  *largest = high;
}

struct Wide {
  uint64_t low, high;
};
template <class U>
void reverse_of(const void* from_in, void* to_in, int64_t n) {
  const U* __restrict from = static_cast<const U*>(from_in) - (n - 1);
  U* __restrict to = static_cast<U*>(to_in);
  for (int64_t i = 0; i < n; ++i) to[i] = from[n - 1 - i];
}
void reverse(int64_t element_bytes, const void* from, void* to, int64_t n) {
  switch (element_bytes) {
    case 1:
      return reverse_of<uint8_t>(from, to, n);
    case 2:
      return reverse_of<uint16_t>(from, to, n);
    case 4:
      return reverse_of<uint32_t>(from, to, n);
    case 8:
      return reverse_of<uint64_t>(from, to, n);
    default:
      return reverse_of<Wide>(from, to, n);
  }
}

void mask(Elem type, const void* x_in, const uint8_t* mask, double scale, void* out_in, int64_t n) {
  with_float_type(type, [&]<class S>(S) {
    using A = Acc<S>;
    const S* x = static_cast<const S*>(x_in);
    S* out = static_cast<S*>(out_in);
    const A factor = A(scale);
    for (int64_t i = 0; i < n; ++i) {
      const A v = to_acc(x[i]) * factor;
      out[i] = from_acc<S>(mask[i] ? v : A(0));
    }
  });
}

}  // namespace

extern const RowTable kRowTable;
const RowTable kRowTable = {add, add_scaled, add_indexed, limits, reverse, mask};

}  // namespace vesta::cpu::VESTA_ISA
