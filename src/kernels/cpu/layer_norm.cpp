// Layer norm and RMS norm: argument checks and the choice of the CPU level.
#include "kernels/cpu/layer_norm.h"

#include <vesta/error.h>

#include "kernels/cpu/isa_table.h"

namespace vesta::cpu {

VESTA_ISA_TABLE(LayerNormTable, kLayerNormTable, layer_norm_table)

namespace {

void check(const char* op, Elem type, Elem param, NormShape shape) {
  VESTA_CHECK_AS(TypeError, is_float(type), op, ": expected a floating point type");
  VESTA_CHECK_AS(TypeError, param == type || (param == Elem::F32 && elem_size(type) == 2), op,
                 ": weight and bias must have the input's type, or float32 beside a 16-bit input");
  VESTA_CHECK(shape.rows >= 0 && shape.dim >= 0, op, ": negative size ", shape.rows, " x ", shape.dim);
}

}  // namespace

void layer_norm_forward(Elem type, Elem param, const void* x, const void* weight, const void* bias, void* y,
                        void* mean, void* rstd, NormShape shape, double eps) {
  check("layer_norm", type, param, shape);
  layer_norm_table().forward(false, type, param, x, weight, bias, y, mean, rstd, shape, eps);
}

void layer_norm_backward(Elem type, Elem param, const void* dy, const void* x, const void* weight,
                         const void* mean, const void* rstd, void* dx, void* dweight, void* dbias,
                         NormShape shape) {
  check("layer_norm_backward", type, param, shape);
  layer_norm_table().backward(false, type, param, dy, x, weight, mean, rstd, dx, dweight, dbias, shape);
}

void rms_norm_forward(Elem type, Elem param, const void* x, const void* weight, void* y, void* rstd,
                      NormShape shape, double eps) {
  check("rms_norm", type, param, shape);
  layer_norm_table().forward(true, type, param, x, weight, nullptr, y, nullptr, rstd, shape, eps);
}

void rms_norm_backward(Elem type, Elem param, const void* dy, const void* x, const void* weight,
                       const void* rstd, void* dx, void* dweight, NormShape shape) {
  check("rms_norm_backward", type, param, shape);
  layer_norm_table().backward(true, type, param, dy, x, weight, nullptr, rstd, dx, dweight, nullptr, shape);
}

}  // namespace vesta::cpu
