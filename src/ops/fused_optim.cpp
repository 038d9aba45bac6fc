// Optimiser steps over lists of tensors in one pass: Adam, AdamW, SGD. Lists of one dtype run as one kernel call;
// mixtures are grouped by dtype. The step counts are read, not advanced: the optimiser does that.
#include <map>

#include "core/registry.h"
#include "core/storage.h"
#include "kernels/cpu/adamw.h"
#include "kernels/cpu/copy.h"
#include "ops/infer.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

void check_list(const Args& a, int i, size_t n) {
  VESTA_CHECK(a.tensors(i).size() == n, a.name(), ": expected ", n, " tensors in list ", i, ", got ", a.tensors(i).size());
}
void check_sizes(const Args& a, const Tensor& param, const Tensor& other) {
  VESTA_CHECK(other.defined() && param.sizes() == other.sizes(), a.name(), ": a gradient or state does not have its parameter's sizes");
}
// The states of one parameter are read with one element type.
void check_state_type(const Args& a, const Tensor& first, const Tensor& other) {
  VESTA_CHECK_AS(TypeError, first.dtype() == other.dtype(), a.name(), ": expected states of one dtype, got ", dtype_name(first.dtype()), " and ", dtype_name(other.dtype()));
}
// A tensor as the kernels want it. Where a copy was needed it is written back by finish().
struct Dense {
  std::vector<std::pair<Tensor, Tensor>> copies;  // (original, contiguous)
  std::vector<Tensor> keep;
  void* write(const Tensor& t) {
    if (t.is_contiguous()) return t.data_ptr();
    copies.emplace_back(t, t.contiguous());
    return copies.back().second.data_ptr();
  }
  const void* read(const Tensor& t) {
    if (t.is_contiguous()) return t.data_ptr();
    keep.push_back(t.contiguous());
    return keep.back().data_ptr();
  }
  void finish() {
    for (auto& [original, dense] : copies) cpu::copy_elements(original, dense);
  }
};
using TypeKey = std::array<DType, 3>;
cpu::OptimTypes optim_types(const TypeKey& t) { return {cpu::elem_of(t[0]), cpu::elem_of(t[1]), cpu::elem_of(t[2])}; }

void bump(const Args& a, TensorList list) {
  for (auto& t : list) bump_version(t.impl(), a.op().id);
}
double scalar_of(const Args& a, int i) { return a.value(i).kind == ValueKind::Tensor ? a.tensor(i).item<double>() : a.number(i); }
// The loss scale divides the gradients; a positive found_inf skips the step.
double grad_factor(const Args& a, int scale_at) { return a.has(scale_at) ? 1 / a.tensor(scale_at).item<double>() : 1; }
bool skipped(const Args& a, int found_inf_at) { return a.has(found_inf_at) && a.tensor(found_inf_at).item<double>() == 1; }

// Arguments: self grads exp_avgs exp_avg_sqs max_exp_avg_sqs state_steps lr beta1 beta2 weight_decay eps amsgrad maximize
// grad_scale found_inf.
template <bool decoupled>
void k_adam(const KernelCtx& k) {
  if (skipped(k, 14)) return;
  TensorList params = k.tensors(0), grad_list = k.tensors(1), avg = k.tensors(2), sq = k.tensors(3), max_sq = k.tensors(4), steps = k.tensors(5);
  size_t n = params.size();
  cpu::AdamOptions o;
  o.lr = scalar_of(k, 6), o.beta1 = k.number(7), o.beta2 = k.number(8), o.weight_decay = k.number(9), o.eps = k.number(10);
  o.amsgrad = k.flag(11), o.maximize = k.flag(12), o.decoupled = decoupled, o.grad_scale = grad_factor(k, 13);
  for (int i : {1, 2, 3, 5}) check_list(k, i, n);
  if (o.amsgrad) check_list(k, 4, n);
  std::map<TypeKey, std::vector<cpu::AdamTensor>> groups;
  Dense dense;
  for (size_t i = 0; i < n; ++i) {
    const Tensor& p = params[i];
    check_sizes(k, p, grad_list[i]);
    check_sizes(k, p, avg[i]);
    check_sizes(k, p, sq[i]);
    check_state_type(k, avg[i], sq[i]);
    if (o.amsgrad) check_sizes(k, p, max_sq[i]), check_state_type(k, avg[i], max_sq[i]);
    VESTA_CHECK(steps[i].numel() == 1, k.name(), ": expected one number per state_steps tensor");
    cpu::AdamTensor t;
    t.param = dense.write(p);
    t.grad = dense.read(grad_list[i]);
    t.exp_avg = dense.write(avg[i]);
    t.exp_avg_sq = dense.write(sq[i]);
    if (o.amsgrad) t.max_exp_avg_sq = dense.write(max_sq[i]);
    t.numel = p.numel();
    t.step = steps[i].item<double>();
    groups[{p.dtype(), grad_list[i].dtype(), avg[i].dtype()}].push_back(t);
  }
  for (auto& [types, list] : groups) cpu::adam_step(optim_types(types), list.data(), int64_t(list.size()), o);
  dense.finish();
  bump(k, params);
  bump(k, avg);
  bump(k, sq);
  if (o.amsgrad) bump(k, max_sq);
}
// Arguments: self grads momentum_buffer_list weight_decay momentum lr dampening nesterov maximize is_first_step grad_scale
// found_inf.
void k_sgd(const KernelCtx& k) {
  if (skipped(k, 11)) return;
  TensorList params = k.tensors(0), grad_list = k.tensors(1), buffers = k.tensors(2);
  size_t n = params.size();
  cpu::SgdOptions o;
  o.weight_decay = k.number(3), o.momentum = k.number(4), o.lr = scalar_of(k, 5), o.dampening = k.number(6);
  o.nesterov = k.flag(7), o.maximize = k.flag(8), o.grad_scale = grad_factor(k, 10);
  check_list(k, 1, n);
  if (o.momentum != 0) check_list(k, 2, n);
  std::map<TypeKey, std::vector<cpu::SgdTensor>> groups;
  Dense dense;
  for (size_t i = 0; i < n; ++i) {
    const Tensor& p = params[i];
    check_sizes(k, p, grad_list[i]);
    cpu::SgdTensor t;
    t.param = dense.write(p);
    t.grad = dense.read(grad_list[i]);
    DType state = p.dtype();
    if (o.momentum != 0) {
      check_sizes(k, p, buffers[i]);
      t.momentum_buffer = dense.write(buffers[i]);
      state = buffers[i].dtype();
    } else if (p.dtype() != grad_list[i].dtype() || element_size(p.dtype()) == 2) {
      state = p.dtype() == grad_list[i].dtype() ? p.dtype() : kFloat;
    }
    t.numel = p.numel();
    t.first = k.flag(9);
    groups[{p.dtype(), grad_list[i].dtype(), state}].push_back(t);
  }
  for (auto& [types, list] : groups) cpu::sgd_step(optim_types(types), list.data(), int64_t(list.size()), o);
  dense.finish();
  bump(k, params);
  if (o.momentum != 0) bump(k, buffers);
}

void sample_adam(SampleGen& s, bool tensor_lr) {
  if (!is_floating_point(s.dtype())) return;
  auto list = [&](Range r) { return std::vector<Tensor>{s.t({3, 4}, r), s.t({5}, r)}; };
  Tensor one = s.make({}, range(1, 1), kFloat);
  std::vector<Tensor> steps{one, one};
  if (tensor_lr) s(list({}), list({}), list({}), list(range(0, 1)), std::vector<Tensor>(), steps, s.make({}, range(0.01, 0.02), kFloat), 0.9, 0.99, 0.1, 1e-8, false, false);
  else s(list({}), list({}), list({}), list(range(0, 1)), std::vector<Tensor>(), steps, 0.01, 0.9, 0.99, 0.1, 1e-8, false, false);
}
void sample_sgd(SampleGen& s, bool tensor_lr) {
  if (!is_floating_point(s.dtype())) return;
  auto list = [&] { return std::vector<Tensor>{s.t({3, 4}), s.t({5})}; };
  if (tensor_lr) s(list(), list(), list(), 0.1, 0.9, s.make({}, range(0.01, 0.02), kFloat), 0.0, true, false, false);
  else s(list(), list(), list(), 0.1, 0.9, 0.01, 0.0, true, false, false);
}

constexpr OpDef table[] = {
OP("_fused_adam_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, float lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
  .types = any_types, .kernels = {{Cpu, k_adam<false>}}, .non_differentiable = true, .shard = {"fused-opt"},
  .doc = "One Adam step of every parameter; weight decay is added to the gradient.", .samples = [](SampleGen& s) { sample_adam(s, false); }),
OP("_fused_adam_.tensor_lr(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, Tensor lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
  .types = any_types, .kernels = {{Cpu, k_adam<false>}}, .non_differentiable = true, .shard = {"fused-opt"},
  .doc = "_fused_adam_ with the learning rate in a tensor.", .samples = [](SampleGen& s) { sample_adam(s, true); }),
OP("_fused_adamw_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, float lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
  .types = any_types, .kernels = {{Cpu, k_adam<true>}}, .non_differentiable = true, .shard = {"fused-opt"},
  .doc = "One AdamW step of every parameter.", .samples = [](SampleGen& s) { sample_adam(s, false); }),
OP("_fused_adamw_.tensor_lr(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, Tensor lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
  .types = any_types, .kernels = {{Cpu, k_adam<true>}}, .non_differentiable = true, .shard = {"fused-opt"},
  .doc = "_fused_adamw_ with the learning rate in a tensor.", .samples = [](SampleGen& s) { sample_adam(s, true); }),
OP("_fused_sgd_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, float weight_decay, float momentum, float lr, float dampening, bool nesterov, bool maximize, bool is_first_step, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
  .types = any_types, .kernels = {{Cpu, k_sgd}}, .non_differentiable = true, .shard = {"fused-opt"},
  .doc = "One SGD step of every parameter.", .samples = [](SampleGen& s) { sample_sgd(s, false); }),
OP("_fused_sgd_.tensor_lr(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, float weight_decay, float momentum, Tensor lr, float dampening, bool nesterov, bool maximize, bool is_first_step, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()",
  .types = any_types, .kernels = {{Cpu, k_sgd}}, .non_differentiable = true, .shard = {"fused-opt"},
  .doc = "_fused_sgd_ with the learning rate in a tensor.", .samples = [](SampleGen& s) { sample_sgd(s, true); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(fused_optim, table)
