#pragma once
// What pooling, interpolation and grid sampling share: tensors (batch, channels, spatial...) or (channels, spatial...)
// with one to three spatial dims, seen by kernels as (outer, size[0], size[1], size[2], inner). Contiguous tensors have
// outer = batch * channels and inner = 1; channels-last ones outer = batch and inner = channels, and give
// channels-last results. Half types are computed in float32 and small integers in int64.
#include "kernels/cpu/elem.h"
#include "vesta/op.h"

namespace vesta {

// Whether x is laid out channels-last and not contiguous at the same time.
bool is_channels_last(const Tensor& x, int spatial);

// The tensor argument i must have `spatial` + 1 or (batched) + 2 dims, none of them but the batch empty.
void check_spatial(const InferCtx& c, int i, int spatial, bool batched_only = false);
// Output j: argument `like`'s batch, channels and layout with other spatial sizes.
void out_spatial(InferCtx& c, int j, int like, const SymInt* sizes, int spatial, DType dtype);
// `n` integers of an argument, each in [lowest, 2^31); one stands for all. Missing leading dims of dst get `rest`.
void read_window(const Args& a, int i, int n, int64_t lowest, int64_t rest, int64_t dst[3]);

// The dtype in which values of t are computed, TypeError where there is none.
DType spatial_type(const Args& a, DType t);

// A tensor as kernels read it.
struct SpatialInput {
  Tensor keep;
  const void* data = nullptr;
  cpu::Elem type = cpu::Elem::F32;
  int64_t outer = 1, inner = 1, size[3] = {1, 1, 1};
};
SpatialInput spatial_input(const Args& a, const Tensor& x, int spatial, bool channels_last);

// Where kernels write the values of `target`; finish() rounds them into it.
class SpatialOutput {
 public:
  SpatialOutput(const Args& a, const Tensor& target);
  void* data() const { return values_.data_ptr(); }
  void finish();

 private:
  Tensor target_, values_;
};

// Copies int64 indices into the layout of a channels-last (or contiguous) tensor.
Tensor spatial_layout(const Tensor& t, int spatial, bool channels_last);

}  // namespace vesta
