#pragma once
// Optimiser steps over lists of tensors in one parallel pass: Adam, AdamW and SGD, and the two kernels of
// clip_grad_norm_. Every tensor is contiguous. Arithmetic is float (double for F64), moments may be F32 beside 16-bit
// parameters. The formulas are PyTorch's, term by term; rounding order is ours.
#include <cstdint>

#include "base/cpu_isa.h"
#include "kernels/cpu/elem.h"

namespace vesta::cpu {

// All tensors of one call have the same types. Allowed (param, grad, state): any one float type three times;
// (BF16, BF16, F32), (F16, F16, F32), (F32, BF16, F32), (F32, F16, F32).
struct OptimTypes {
  Elem param = Elem::F32, grad = Elem::F32, state = Elem::F32;
};

struct AdamTensor {
  void* param = nullptr;
  const void* grad = nullptr;
  void* exp_avg = nullptr;
  void* exp_avg_sq = nullptr;
  void* max_exp_avg_sq = nullptr;  // amsgrad only
  int64_t numel = 0;
  double step = 1;  // the number of this step, from 1
};

struct AdamOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool decoupled = true;  // AdamW; false: Adam, decay added to the gradient
  bool amsgrad = false, maximize = false;
  double grad_scale = 1;  // multiplies every gradient first (clipping, loss scale) without a pass of its own
};

// Throws TypeError for types not listed above.
void adam_step(OptimTypes types, const AdamTensor* tensors, int64_t count, const AdamOptions& options);

struct SgdTensor {
  void* param = nullptr;
  const void* grad = nullptr;
  void* momentum_buffer = nullptr;  // momentum != 0 only
  int64_t numel = 0;
  bool first = false;  // the buffer holds nothing yet: it becomes the gradient
};

struct SgdOptions {
  double lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false, maximize = false;
  double grad_scale = 1;
};

void sgd_step(OptimTypes types, const SgdTensor* tensors, int64_t count, const SgdOptions& options);

struct FlatTensor {
  void* data = nullptr;
  int64_t numel = 0;
};

// Sum of the squares of all elements: 16 float lanes in blocks of 1,024 (reduce.h), blocks added in double, in order.
double sum_of_squares(Elem type, const FlatTensor* tensors, int64_t count);
// Every element *= factor, in place.
void scale_tensors(Elem type, const FlatTensor* tensors, int64_t count, double factor);

struct OptimTable {
  void (*adam)(OptimTypes, const AdamTensor*, int64_t, const AdamOptions&);
  void (*sgd)(OptimTypes, const SgdTensor*, int64_t, const SgdOptions&);
  double (*sum_of_squares)(Elem, const FlatTensor*, int64_t);
  void (*scale)(Elem, const FlatTensor*, int64_t, double);
};
const OptimTable& optim_table(CpuIsa level);

}  // namespace vesta::cpu
