#pragma once
// The windows of pooling operators: their arguments, checks and output sizes.
#include "vesta/op.h"

namespace vesta {

// Kernel, stride, padding and dilation of up to three spatial dims; missing leading dims have 1, 1, 0, 1.
struct PoolArgs {
  int64_t kernel[3], stride[3], padding[3], dilation[3] = {1, 1, 1};
  bool ceil_mode = false;
};
// Reads arguments k_at (kernel_size), k_at + 1 (stride; empty: the kernel) and k_at + 2 (padding), dilation at
// dilation_at unless negative, and ceil_mode. ValueError unless 0 < kernel, stride, dilation < 2^31 and
// 0 <= padding <= kernel / 2.
PoolArgs pool_args(const Args& a, int spatial, int k_at, int dilation_at, int ceil_at);
// floor or ceil of (in + 2 padding - extent) / stride, plus 1, where with ceil_mode the last window must start inside
// of the input or the left padding. ValueError where no window fits.
void pooled_sizes(const InferCtx& c, int i, int spatial, const PoolArgs& p, SymInt* sizes);

}  // namespace vesta
