// Cross entropy rows. Forward: maximum and sum of exp(x - max) over the row (one pass per 4,096-class block while it
// is in L1, sums rescaled between blocks), with sum(w * x) beside it when labels are smoothed. Backward: one exp per
// class. With p = exp(x - logsumexp), s = label_smoothing, w the class weights (1) and W their sum:
//   loss = (1 - s) * w[t] * (lse - x[t]) + s / C * sum_c w[c] * (lse - x[c])
//   dx[c] = (1 - s) * w[t] * (p[c] - [c == t]) + s / C * (p[c] * W - w[c])
#include "kernels/cpu/cross_entropy.h"

#include <cmath>

#include "base/thread_pool.h"
#include "kernels/cpu/isa/float_types.h"
#include "kernels/cpu/isa/simd.h"
#include "kernels/cpu/reduce.h"
#include "kernels/cpu/scratch.h"

namespace vesta::cpu::VESTA_ISA {
extern const ReduceTable kReduceTable;
namespace {

constexpr int64_t kWork = 8192;   // elements per parallel chunk
constexpr int64_t kBlock = 4096;  // classes

template <class S>
VESTA_INLINE Vec<Acc<S>> get(const S* p, int count, Acc<S> fill = 0) {
  return count == Vec<Acc<S>>::kLanes ? load(p) : load_n(p, count, fill);
}

template <class S>
Acc<S> logsumexp_row(const S* x, int64_t n) {
  using A = Acc<S>;
  using V = Vec<A>;
  constexpr int L = V::kLanes;
  A m = -kInfinity<A>, sum = 0;
  for (int64_t b = 0; b < n; b += kBlock) {
    const int64_t end = n - b < kBlock ? n : b + kBlock;
    V m0 = V::set1(-kInfinity<A>), m1 = m0;
    int64_t i = b;
    for (; i + 2 * L <= end; i += 2 * L) {
      m0 = max(m0, load(x + i));
      m1 = max(m1, load(x + i + L));
    }
    for (; i < end; i += L) m0 = max(m0, get(x + i, int(end - i < L ? end - i : L), -kInfinity<A>));
    const A block_max = max_lanes(max(m0, m1));
    if (block_max > m) {
      sum = m == -kInfinity<A> ? sum : sum * std::exp(m - block_max);
      m = block_max;
    }
    // Shift 0 while there is no finite maximum: -inf adds 0, NaN stays NaN.
    const V shift = V::set1(m == -kInfinity<A> ? A(0) : m);
    V s0 = V::zero(), s1 = V::zero();
    for (i = b; i + 2 * L <= end; i += 2 * L) {
      s0 = s0 + exp(load(x + i) - shift);
      s1 = s1 + exp(load(x + i + L) - shift);
    }
    for (; i < end; i += L) s1 = s1 + exp(get(x + i, int(end - i < L ? end - i : L), -kInfinity<A>) - shift);
    sum += sum_lanes(s0 + s1);
  }
  return (m == -kInfinity<A> ? A(0) : m) + std::log(sum);  // all -inf: log(0) = -inf
}

template <class A>
A weight_sum(const A* weight, int64_t n) {
  A sum = A(n);
  if (weight)
    kReduceTable.reduce(ReduceOp::Sum, sizeof(A) == 8 ? Elem::F64 : Elem::F32, weight, {1, n, 1}, &sum,
                        sizeof(A) == 8 ? Elem::F64 : Elem::F32, 1);
  return sum;
}

template <class S>
Acc<S> smoothed_part(const S* x, const Acc<S>* weight, Acc<S> lse, int64_t n) {
  using V = Vec<Acc<S>>;
  constexpr int L = V::kLanes;
  const V shift = V::set1(lse);
  V sum = V::zero();
  for (int64_t i = 0; i < n; i += L) {
    const int c = static_cast<int>(n - i < L ? n - i : L);
    const V d = shift - get(x + i, c, lse);  // missing lanes add 0
    sum = weight ? fma(d, get(weight + i, c), sum) : sum + d;
  }
  return sum_lanes(sum);
}

template <class S>
void forward_typed(const CrossEntropyArgs& args, Acc<S>* loss, Acc<S>* lse, Acc<S>* total_weight) {
  using A = Acc<S>;
  constexpr Elem kAcc = sizeof(A) == 8 ? Elem::F64 : Elem::F32;
  const S* logits = static_cast<const S*>(args.logits);
  const A* weight = static_cast<const A*>(args.weight);
  const int64_t n = args.classes;
  const A smoothing = A(args.label_smoothing);
  const bool reduced = args.reduction != LossReduction::None;
  const SharedScratch scratch(reduced ? size_t(args.rows) * 2 * sizeof(A) : 0);
  A* row_loss = reduced ? static_cast<A*>(scratch.data()) : loss;
  A* row_weight = reduced ? row_loss + args.rows : nullptr;
  parallel_for(0, args.rows, grain_for(n, kWork), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const S* x = logits + r * args.row_stride;
      const int64_t t = args.target[r];
      lse[r] = logsumexp_row(x, n);
      const bool ignored = t == args.ignore_index;
      const A w = ignored ? A(0) : weight ? weight[t] : A(1);
      A value = 0;
      if (!ignored) {
        value = w * (lse[r] - to_acc(x[t]));
        if (smoothing != 0)
          value = (1 - smoothing) * value + smoothing / A(n) * smoothed_part(x, weight, lse[r], n);
      }
      row_loss[r] = value;
      if (row_weight) row_weight[r] = w;
    }
  });
  if (!reduced) {
    if (total_weight) *total_weight = A(args.rows);
    return;
  }
  A sum = 0, total = 0;
  kReduceTable.reduce(ReduceOp::Sum, kAcc, row_loss, {1, args.rows, 1}, &sum, kAcc, 1);
  kReduceTable.reduce(ReduceOp::Sum, kAcc, row_weight, {1, args.rows, 1}, &total, kAcc, 1);
  if (total_weight) *total_weight = total;
  *loss = args.reduction == LossReduction::Mean ? sum / total : sum;
}

template <class S>
void backward_typed(const CrossEntropyArgs& args, const Acc<S>* lse, const Acc<S>* total_weight,
                    const Acc<S>* grad, S* dlogits, int64_t dlogits_stride) {
  using A = Acc<S>;
  using V = Vec<A>;
  constexpr int L = V::kLanes;
  const S* logits = static_cast<const S*>(args.logits);
  const A* weight = static_cast<const A*>(args.weight);
  const int64_t n = args.classes;
  const A smoothing = A(args.label_smoothing);
  const A all_weights = smoothing != 0 ? weight_sum(weight, n) : A(0);
  const bool per_row = args.reduction == LossReduction::None;
  const A common = per_row ? A(0) : args.reduction == LossReduction::Mean ? *grad / *total_weight : *grad;
  parallel_for(0, args.rows, grain_for(n, kWork), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const S* x = logits + r * args.row_stride;
      S* d = dlogits + r * dlogits_stride;
      const int64_t t = args.target[r];
      if (t == args.ignore_index) {
        std::memset(d, 0, size_t(n) * sizeof(S));
        continue;
      }
      const A g = per_row ? grad[r] : common;
      const A w = weight ? weight[t] : A(1);
      const A target_part = g * (1 - smoothing) * w, smooth_part = g * smoothing / A(n);
      const A x_target = to_acc(x[t]);  // before a write in place
      const V shift = V::set1(lse[r]), factor = V::set1(target_part + smooth_part * all_weights),
              smooth = V::set1(smooth_part);
      auto value = [&](V a, int64_t i, int c) {
        const V e = exp(a - shift) * factor;
        if (smoothing == 0) return e;
        return weight ? e - smooth * get(weight + i, c) : e - smooth;
      };
      int64_t i = 0;
      for (; i + L <= n; i += L) store(d + i, value(load(x + i), i, L));
      if (i < n) store_n(d + i, value(load_n(x + i, int(n - i)), i, int(n - i)), int(n - i));
      // Written from the accumulator so that a 16-bit result rounds once.
      const A e = std::exp(x_target - lse[r]) * (target_part + smooth_part * all_weights);
      d[t] = from_acc<S>(e - target_part - smooth_part * w);
    }
  });
}

void forward(const CrossEntropyArgs& args, void* loss, void* lse, void* total_weight) {
  with_float_type(args.type, [&]<class S>(S) {
    using A = Acc<S>;
    forward_typed<S>(args, static_cast<A*>(loss), static_cast<A*>(lse), static_cast<A*>(total_weight));
  });
}

void backward(const CrossEntropyArgs& args, const void* lse, const void* total_weight, const void* grad,
              void* dlogits, int64_t dlogits_stride) {
  with_float_type(args.type, [&]<class S>(S) {
    using A = Acc<S>;
    backward_typed<S>(args, static_cast<const A*>(lse), static_cast<const A*>(total_weight),
                      static_cast<const A*>(grad), static_cast<S*>(dlogits), dlogits_stride);
  });
}

}  // namespace

extern const CrossEntropyTable kCrossEntropyTable;
const CrossEntropyTable kCrossEntropyTable = {forward, backward};

}  // namespace vesta::cpu::VESTA_ISA
