#pragma once
// Layer norm and RMS norm over the last dimension of contiguous [rows, dim] arrays, forward and backward.
// Types F32, F64, BF16, F16; statistics and sums are float (double for F64). weight, bias and their gradients have
// type `param`: the input's type, or F32 beside a 16-bit input. Rows of the backward pass are cut into chunks by shape
// alone, whose partial dweight and dbias are added in chunk order: the thread count changes no bit.
#include <cstdint>

#include "base/cpu_isa.h"
#include "kernels/cpu/elem.h"

namespace vesta::cpu {

struct NormShape {
  int64_t rows = 0, dim = 0;
};

// y = (x - mean) * rstd * weight + bias, rstd = 1 / sqrt(biased variance + eps). weight, bias, mean and rstd may be
// null; mean and rstd are [rows] of accumulate_type(type). y may be x. Throws TypeError for unsupported types.
void layer_norm_forward(Elem type, Elem param, const void* x, const void* weight, const void* bias, void* y,
                        void* mean, void* rstd, NormShape shape, double eps);

// Gradients from dy, x and the saved statistics. Each of dx, dweight and dbias may be null (not wanted); weight may be
// null (ones). dx may be dy. Results overwrite, they do not accumulate.
void layer_norm_backward(Elem type, Elem param, const void* dy, const void* x, const void* weight,
                         const void* mean, const void* rstd, void* dx, void* dweight, void* dbias,
                         NormShape shape);

// y = x * rstd * weight, rstd = 1 / sqrt(mean(x * x) + eps). Nullables as above.
void rms_norm_forward(Elem type, Elem param, const void* x, const void* weight, void* y, void* rstd,
                      NormShape shape, double eps);
void rms_norm_backward(Elem type, Elem param, const void* dy, const void* x, const void* weight,
                       const void* rstd, void* dx, void* dweight, NormShape shape);

struct LayerNormTable {
  // rms: mean is ignored and bias must be null.
  void (*forward)(bool rms, Elem, Elem, const void*, const void*, const void*, void*, void*, void*, NormShape,
                  double);
  void (*backward)(bool rms, Elem, Elem, const void*, const void*, const void*, const void*, const void*,
                   void*, void*, void*, NormShape);
};
const LayerNormTable& layer_norm_table(CpuIsa level);

}  // namespace vesta::cpu
