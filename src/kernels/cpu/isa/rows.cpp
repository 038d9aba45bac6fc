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
const RowTable kRowTable = {add, add_scaled, mask};

}  // namespace vesta::cpu::VESTA_ISA
