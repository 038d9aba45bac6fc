#pragma once
// The passes of norms with statistics per channel: sums over a channel, and the elementwise results. Batch, instance and
// group norm are these with different shapes. Types F32, F64, BF16, F16; sums of at most 1,024 elements run in float
// (double for F64) and are added up in double. Work is cut by shape: the thread count changes no bit.
#include <cstdint>

#include "base/cpu_isa.h"
#include "kernels/cpu/elem.h"

namespace vesta::cpu {

// x is [batch, channels, inner], or [batch * inner, channels] where `last`.
struct ChannelShape {
  int64_t batch = 0, channels = 0, inner = 1;
  bool last = false;
  int64_t count() const { return batch * inner; }  // elements of a channel
};

// The sum of each channel.
void channel_sum(Elem type, const ChannelShape& shape, const void* x, double* sum);
// Mean and biased variance of each channel, in two passes. Both NaN where count() is 0.
void channel_moments(Elem type, const ChannelShape& shape, const void* x, double* mean, double* variance);
// y = (x - mean) * scale + shift per channel. y may be x.
void channel_apply(Elem type, const ChannelShape& shape, const void* x, const double* mean,
                   const double* scale, const double* shift, void* y);
// Per channel the sums of dy and of dy * (x - mean).
void channel_products(Elem type, const ChannelShape& shape, const void* dy, const void* x, const double* mean,
                      double* sum_dy, double* sum_product);
// dx = a * dy + b * (x - mean) + c per channel. dx may be dy.
void channel_gradient(Elem type, const ChannelShape& shape, const void* dy, const void* x, const double* mean,
                      const double* a, const double* b, const double* c, void* dx);

// The loops over one run of n contiguous elements of a channel, and over rows of all channels (`stride` elements from a
// row to the next, at most 1,024 rows); one table per CPU level.
struct BatchNormTable {
  double (*sum)(Elem, const void* x, int64_t n);
  double (*squares)(Elem, const void* x, int64_t n, double centre);
  void (*products)(Elem, const void* dy, const void* x, int64_t n, double mean,
                   double* sums);  // adds to 2 numbers
  void (*apply)(Elem, const void* x, int64_t n, double mean, double scale, double shift, void* y);
  void (*gradient)(Elem, const void* dy, const void* x, int64_t n, double mean, double a, double b, double c,
                   void* dx);
  void (*row_sum)(Elem, const void* x, int64_t rows, int64_t channels, double* sum);
  void (*row_squares)(Elem, const void* x, int64_t rows, int64_t channels, const double* centre, double* sum);
  void (*row_products)(Elem, const void* dy, const void* x, int64_t rows, int64_t channels,
                       const double* mean, double* sum_dy, double* sum_product);
  void (*row_apply)(Elem, const void* x, int64_t rows, int64_t channels, const double* mean,
                    const double* scale, const double* shift, void* y);
  void (*row_gradient)(Elem, const void* dy, const void* x, int64_t rows, int64_t channels,
                       const double* mean, const double* a, const double* b, const double* c, void* dx);
};
const BatchNormTable& batch_norm_table(CpuIsa level);

}  // namespace vesta::cpu
