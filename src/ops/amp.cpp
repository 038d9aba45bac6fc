// What a gradient scaler needs, in one pass over lists: unscaling that notices infinities, the scale's update; and the
// fused Adagrad step. Step counts are read, not advanced.
#include <atomic>
#include <cmath>

#include "base/thread_pool.h"
#include "core/registry.h"
#include "core/storage.h"
#include "kernels/cpu/copy.h"
#include "ops/infer.h"
#include "ops/visit.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

template <class F>
void visit_floating(const Args& a, DType t, F f) {
  visit_real(t, a.name(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_integral_v<T>) f(tag);
    else throw TypeError(std::string(a.name()) + ": expected floating point tensors");
  });
}
// A dense copy of what is written, put back at the end.
struct Written {
  Tensor original, dense;
  explicit Written(const Tensor& t) : original(t), dense(t.is_contiguous() ? t : t.contiguous()) {}
  void finish(uint16_t op) {
    if (!dense.is_same(original)) cpu::copy_elements(original, dense);
    bump_version(original.impl(), op);
  }
};
void one_number(const Args& a, int i) {
  VESTA_CHECK(a.tensor(i).numel() == 1, a.name(), ": expected one element in ", a.op().schema.args[size_t(i)].name, ", got ", a.tensor(i).numel());
}

void check_real(const Args& a, int i) {
  VESTA_CHECK_AS(TypeError, is_floating_point(a.tensor(i).dtype()), a.name(), ": expected a floating point tensor for ", a.op().schema.args[size_t(i)].name, ", got ", dtype_name(a.tensor(i).dtype()));
}

// self found_inf inv_scale
void k_unscale(const KernelCtx& k) {
  one_number(k, 1);
  one_number(k, 2);
  for (int i : {1, 2}) check_real(k, i);
  for (auto& t : k.tensors(0)) VESTA_CHECK_AS(TypeError, is_floating_point(t.dtype()), k.name(), ": expected floating point gradients, got ", dtype_name(t.dtype()));
  const double factor = k.tensor(2).item<double>();
  std::atomic<bool> found{false};
  for (auto& t : k.tensors(0)) {
    Written w(t);
    visit_floating(k, t.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      using A = typename AccumulatorOf<T>::type;
      T* p = w.dense.data_ptr<T>();
      const A scale = A(factor);
      parallel_for(0, t.numel(), 32768, [&](int64_t begin, int64_t end) {
        A nothing = 0;  // NaN as soon as one element is not finite
        for (int64_t i = begin; i < end; ++i) {
          const A v = A(p[i]);
          nothing += v * 0;
          p[i] = T(scale == 1 ? v : v * scale);
        }
        if (nothing != 0) found.store(true, std::memory_order_relaxed);
      });
    });
    w.finish(k.op().id);
  }
  if (found) {
    cpu::fill_elements(k.tensor(1), 1);
    bump_version(k.tensor(1).impl(), k.op().id);
  }
}
// self growth_tracker found_inf growth backoff interval
void k_update_scale(const KernelCtx& k) {
  for (int i : {0, 1, 2}) one_number(k, i);
  check_real(k, 0);
  check_real(k, 2);
  VESTA_CHECK_AS(TypeError, k.tensor(1).dtype() == kInt, k.name(), ": expected an int32 growth tracker, got ", dtype_name(k.tensor(1).dtype()));
  const double scale = k.tensor(0).item<double>();
  int32_t* tracker = k.tensor(1).data_ptr<int32_t>();
  if (k.tensor(2).item<double>() > 0) {
    cpu::fill_elements(k.tensor(0), scale * k.number(4));
    *tracker = 0;
    return;
  }
  if (int64_t(*tracker) + 1 < k.integer(5)) {
    ++*tracker;
    return;
  }
  const double grown = scale * k.number(3);
  if (k.tensor(0).dtype() == kDouble ? std::isfinite(grown) : std::isfinite(float(grown))) cpu::fill_elements(k.tensor(0), grown);
  *tracker = 0;
}
// self grads state_sums state_steps lr lr_decay weight_decay eps maximize grad_scale found_inf
void k_adagrad(const KernelCtx& k) {
  TensorList params = k.tensors(0);
  for (int i : {1, 2, 3}) VESTA_CHECK(k.tensors(i).size() == params.size(), k.name(), ": expected ", params.size(), " tensors in ", k.op().schema.args[size_t(i)].name, ", got ", k.tensors(i).size());
  for (size_t t = 0; t < params.size(); ++t) {
    for (int i : {1, 2}) {
      const Tensor& other = k.tensors(i)[t];
      VESTA_CHECK(other.sizes() == params[t].sizes(), k.name(), ": a gradient or state does not have its parameter's sizes");
      VESTA_CHECK_AS(TypeError, other.dtype() == params[t].dtype() && is_floating_point(other.dtype()), k.name(), ": expected parameter, gradient and state of one floating point dtype");
    }
    VESTA_CHECK(k.tensors(3)[t].numel() == 1, k.name(), ": expected one number per state_steps tensor");
  }
  if (k.has(10) && k.tensor(10).item<double>() == 1) return;
  const double lr = k.number(4), lr_decay = k.number(5), decay = k.number(6), eps = k.number(7);
  const double factor = (k.flag(8) ? -1 : 1) * (k.has(9) ? 1 / k.tensor(9).item<double>() : 1);
  for (size_t t = 0; t < params.size(); ++t) {
    Written param(params[t]), sum(k.tensors(2)[t]);
    Tensor grad = k.tensors(1)[t].contiguous();
    const double rate = lr / (1 + (k.tensors(3)[t].item<double>() - 1) * lr_decay);
    visit_floating(k, grad.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      using A = typename AccumulatorOf<T>::type;
      T *p = param.dense.data_ptr<T>(), *s = sum.dense.data_ptr<T>();
      const T* g = grad.data_ptr<T>();
      parallel_for(0, grad.numel(), 16384, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const A d = A(g[i]) * A(factor) + A(decay) * A(p[i]), total = A(s[i]) + d * d;
          s[i] = T(total);
          p[i] = T(A(p[i]) - A(rate) * (d / (std::sqrt(total) + A(eps))));
        }
      });
    });
    param.finish(k.op().id);
    sum.finish(k.op().id);
  }
}

constexpr TypeRule floating{types::kFloatMask, Promote::None};

constexpr OpDef table[] = {
OP("_amp_foreach_non_finite_check_and_unscale_(Tensor(a!)[] self, Tensor(b!) found_inf, Tensor inv_scale) -> ()",
  .types = floating, .kernels = {{Cpu, k_unscale}}, .non_differentiable = true, .shard = {"fused-opt"},
  .doc = "Multiplies gradients by inv_scale; found_inf becomes 1 where one is not finite.",
  .samples = [](SampleGen& s) { s(std::vector<Tensor>{s.t({3, 4}), s.t({5})}, zeros({1}), full({1}, 0.5)); }),
OP("_amp_update_scale_(Tensor(a!) self, Tensor(b!) growth_tracker, Tensor found_inf, float scale_growth_factor, float scale_backoff_factor, int growth_interval) -> Tensor(a!)",
  .types = any_types, .kernels = {{Cpu, k_update_scale}}, .non_differentiable = true, .shard = {"fused-opt"},
  .doc = "Lowers the loss scale after an infinity; raises it after growth_interval steps without.",
  .samples = [](SampleGen& s) { if (s.dtype() == kFloat) { s(full({1}, 4.0), zeros({1}, TensorOptions(kInt)), zeros({1}), 2.0, 0.5, 1); s(full({1}, 4.0), zeros({1}, TensorOptions(kInt)), ones({1}), 2.0, 0.5, 3); } }),
OP("_fused_adagrad_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] state_sums, Tensor(d!)[] state_steps, *, float lr, float lr_decay, float weight_decay, float eps, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
  .types = floating, .kernels = {{Cpu, k_adagrad}}, .non_differentiable = true, .shard = {"fused-opt"},
  .doc = "One Adagrad step of every parameter.",
  .samples = [](SampleGen& s) { auto list = [&](Range r) { return std::vector<Tensor>{s.t({3, 4}, r), s.t({5}, r)}; };
                                s(list({}), list({}), list(range(0, 1)), std::vector<Tensor>{full({}, 2.0), full({}, 2.0)}, 0.1, 0.01, 0.1, 1e-8, false); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(amp, table)
