// Optimiser steps over lists of tensors. The list is seen as one flat range cut into chunks; a chunk finds its first
// tensor by bisection in the prefix sums, so a thousand small tensors cost one parallel region. Element-wise, hence
// independent of the cut. Bandwidth bound: 28 bytes an element for float Adam.
#include "kernels/cpu/adamw.h"

#include <cmath>

#include "base/thread_pool.h"
#include "kernels/cpu/isa/float_types.h"
#include "kernels/cpu/isa/simd.h"
#include "kernels/cpu/scratch.h"

namespace vesta::cpu::VESTA_ISA {
namespace {

constexpr int64_t kStepWork = 8192;  // elements per parallel chunk
constexpr int64_t kAhead = 512;      // elements prefetched ahead
constexpr int64_t kScaleWork = 32768;
constexpr int64_t kNormBlock = 1024;  // part of the summation contract
constexpr int64_t kNormWork = 32;     // blocks per parallel chunk

// Calls body(tensor index, begin, end) for the pieces of [0, total) in parallel.
template <class T, class F>
void for_pieces(const T* tensors, int64_t count, int64_t grain, F body) {
  const SharedScratch scratch(size_t(count + 1) * sizeof(int64_t));
  int64_t* start = static_cast<int64_t*>(scratch.data());
  start[0] = 0;
  for (int64_t t = 0; t < count; ++t) start[t + 1] = start[t] + tensors[t].numel;
  // Long lists take longer pieces, for the sake of DRAM pages; the cut changes no result.
  const int64_t share = start[count] / (16 * int64_t{num_threads()});
  parallel_for(0, start[count], grain > share ? grain : share, [&](int64_t begin, int64_t end) {
    int64_t low = 0, high = count;  // the last tensor that starts at or before begin
    while (high - low > 1) {
      const int64_t middle = (low + high) / 2;
      (start[middle] <= begin ? low : high) = middle;
    }
    for (int64_t t = low; begin < end; ++t) {
      const int64_t stop = end < start[t + 1] ? end : start[t + 1];
      if (begin < stop) body(t, begin - start[t], stop - start[t]);
      begin = stop > begin ? stop : begin;
    }
  });
}

template <class S>
VESTA_INLINE Vec<Acc<S>> get(const S* p, int count) {
  return count == Vec<Acc<S>>::kLanes ? load(p) : load_n(p, count);
}
template <class S>
VESTA_INLINE void put(S* p, Vec<Acc<S>> v, int count) {
  count == Vec<Acc<S>>::kLanes ? store(p, v) : store_n(p, v, count);
}

template <bool kAmsgrad, class P, class G, class S>
void adam_piece(const AdamTensor& tensor, int64_t begin, int64_t end, const AdamOptions& o) {
  using A = Acc<P>;
  using V = Vec<A>;
  constexpr int L = V::kLanes;
  // Hyper-parameters meet in double, as PyTorch's do; elements see them rounded once.
  const double correction1 = 1 - std::pow(o.beta1, tensor.step),
               correction2 = 1 - std::pow(o.beta2, tensor.step);
  const V grad_factor = V::set1(A(o.maximize ? -o.grad_scale : o.grad_scale));
  const V keep = V::set1(A(o.decoupled ? 1 - o.lr * o.weight_decay : 1)), decay = V::set1(A(o.weight_decay));
  const V beta2 = V::set1(A(o.beta2)), one_beta1 = V::set1(A(1 - o.beta1)),
          one_beta2 = V::set1(A(1 - o.beta2));
  const V step_size = V::set1(A(o.lr / correction1)), root2 = V::set1(A(1 / std::sqrt(correction2)));
  const V eps = V::set1(A(o.eps));
  const bool l2 = !o.decoupled && o.weight_decay != 0;
  P* param = static_cast<P*>(tensor.param);
  const G* grad = static_cast<const G*>(tensor.grad);
  S* exp_avg = static_cast<S*>(tensor.exp_avg);
  S* exp_avg_sq = static_cast<S*>(tensor.exp_avg_sq);
  S* max_sq = static_cast<S*>(tensor.max_exp_avg_sq);
  auto step = [&](int64_t i, int c) __attribute__((always_inline)) {
    V p = get(param + i, c), g = get(grad + i, c) * grad_factor, m = get(exp_avg + i, c),
      v = get(exp_avg_sq + i, c);
    if (l2) g = fma(p, decay, g);
    p = p * keep;
    m = fma(g - m, one_beta1, m);
    v = fma(g * g, one_beta2, v * beta2);
    put(exp_avg + i, m, c);
    put(exp_avg_sq + i, v, c);
    if (kAmsgrad) {
      v = max_nan(get(max_sq + i, c), v);
      put(max_sq + i, v, c);
    }
    const V denominator = fma(sqrt(v), root2, eps);
    put(param + i, p - step_size * (m / denominator), c);
  };
  int64_t i = begin;
  for (; i + L <= end; i += L) {
    // Four streams at once outrun the hardware's prefetchers; past the end a prefetch is harmless.
    __builtin_prefetch(param + i + kAhead);
    __builtin_prefetch(grad + i + kAhead);
    __builtin_prefetch(exp_avg + i + kAhead);
    __builtin_prefetch(exp_avg_sq + i + kAhead);
    step(i, L);
  }
  if (i < end) step(i, static_cast<int>(end - i));
}

template <class P, class G, class S>
void sgd_piece(const SgdTensor& tensor, int64_t begin, int64_t end, const SgdOptions& o) {
  using A = Acc<P>;
  using V = Vec<A>;
  constexpr int L = V::kLanes;
  const V grad_factor = V::set1(A(o.maximize ? -o.grad_scale : o.grad_scale));
  const V lr = V::set1(A(o.lr)), decay = V::set1(A(o.weight_decay)), momentum = V::set1(A(o.momentum));
  const V damped = V::set1(A(1 - o.dampening));
  P* param = static_cast<P*>(tensor.param);
  const G* grad = static_cast<const G*>(tensor.grad);
  S* buffer = static_cast<S*>(tensor.momentum_buffer);
  auto step = [&](int64_t i, int c) __attribute__((always_inline)) {
    V p = get(param + i, c), g = get(grad + i, c) * grad_factor;
    if (o.weight_decay != 0) g = fma(p, decay, g);
    if (o.momentum != 0) {
      const V b = tensor.first ? g : fma(get(buffer + i, c), momentum, g * damped);
      put(buffer + i, b, c);
      g = o.nesterov ? fma(b, momentum, g) : b;
    }
    put(param + i, p - lr * g, c);
  };
  int64_t i = begin;
  for (; i + L <= end; i += L) step(i, L);
  if (i < end) step(i, static_cast<int>(end - i));
}

// The allowed combinations of adamw.h, which the callers have checked.
template <class F>
void with_optim_types(OptimTypes types, F f) {
  with_float_type(types.param, [&]<class P>(P p) {
    if (types.grad == types.param && types.state == types.param) return f(p, p, p);
    if constexpr (sizeof(P) == 2) {
      f(p, p, float{});
    } else if constexpr (sizeof(P) == 4) {
      types.grad == Elem::BF16 ? f(p, Bf16{}, p) : f(p, Half{}, p);
    }
  });
}

void adam(OptimTypes types, const AdamTensor* tensors, int64_t count, const AdamOptions& options) {
  with_optim_types(types, [&]<class P, class G, class S>(P, G, S) {
    auto piece = options.amsgrad ? adam_piece<true, P, G, S> : adam_piece<false, P, G, S>;
    for_pieces(tensors, count, kStepWork,
               [&](int64_t t, int64_t begin, int64_t end) { piece(tensors[t], begin, end, options); });
  });
}

void sgd(OptimTypes types, const SgdTensor* tensors, int64_t count, const SgdOptions& options) {
  with_optim_types(types, [&]<class P, class G, class S>(P, G, S) {
    for_pieces(tensors, count, kStepWork, [&](int64_t t, int64_t begin, int64_t end) {
      sgd_piece<P, G, S>(tensors[t], begin, end, options);
    });
  });
}

template <class T>
double block_squares(const T* x, int64_t n) {
  using V = Vec<Acc<T>>;
  constexpr int L = V::kLanes;
  V sum = V::zero();
  int64_t i = 0;
  for (; i + L <= n; i += L) {
    const V a = load(x + i);
    sum = sum + a * a;  // not fma: the same bits on the baseline level
  }
  if (i < n) {
    const V a = load_n(x + i, static_cast<int>(n - i));
    sum = sum + a * a;
  }
  return sum_lanes(sum);
}

double sum_of_squares(Elem type, const FlatTensor* tensors, int64_t count) {
  const SharedScratch offsets(size_t(count + 1) * sizeof(int64_t));
  int64_t* start = static_cast<int64_t*>(offsets.data());  // in blocks
  start[0] = 0;
  for (int64_t t = 0; t < count; ++t)
    start[t + 1] = start[t] + (tensors[t].numel + kNormBlock - 1) / kNormBlock;
  const SharedScratch partial(size_t(start[count]) * sizeof(double));
  double* sums = static_cast<double*>(partial.data());
  with_float_type(type, [&]<class T>(T) {
    parallel_for(0, start[count], kNormWork, [&](int64_t begin, int64_t end) {
      int64_t low = 0, high = count;
      while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        (start[middle] <= begin ? low : high) = middle;
      }
      for (int64_t b = begin; b < end; ++b) {
        while (start[low + 1] <= b) ++low;
        const int64_t at = (b - start[low]) * kNormBlock, rest = tensors[low].numel - at;
        sums[b] = block_squares(static_cast<const T*>(tensors[low].data) + at,
                                rest < kNormBlock ? rest : kNormBlock);
      }
    });
  });
  double total = 0;
  for (int64_t b = 0; b < start[count]; ++b) total += sums[b];
  return total;
}

void scale(Elem type, const FlatTensor* tensors, int64_t count, double factor) {
  with_float_type(type, [&]<class T>(T) {
    using V = Vec<Acc<T>>;
    constexpr int L = V::kLanes;
    const V f = V::set1(Acc<T>(factor));
    for_pieces(tensors, count, kScaleWork, [&](int64_t t, int64_t begin, int64_t end) {
      T* x = static_cast<T*>(tensors[t].data);
      int64_t i = begin;
      for (; i + L <= end; i += L) store(x + i, load(x + i) * f);
      if (i < end) store_n(x + i, load_n(x + i, int(end - i)) * f, static_cast<int>(end - i));
    });
  });
}

}  // namespace

extern const OptimTable kOptimTable;
const OptimTable kOptimTable = {adam, sgd, sum_of_squares, scale};

}  // namespace vesta::cpu::VESTA_ISA
