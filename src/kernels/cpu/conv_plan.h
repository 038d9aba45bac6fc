#pragma once
// What a convolution and its two transposes have in common, worked out once per call: the plain direction and each
// phase of the transposed one are "for every position q of a grid, sum over taps of w[tap] * source[q * step + offset]",
// with different taps and offsets. The drivers of both memory formats run on this description.
#include <cstddef>
#include <vector>

#include "kernels/cpu/conv.h"
#include "kernels/cpu/gemm.h"

namespace vesta::cpu {

struct ConvTap {
  int64_t index;      // into the kernel's elements
  int64_t offset[3];  // of the source coordinate
};

// The results at positions first + q * step of the result tensor, q in a grid of `count`.
struct ConvPhase {
  int64_t count[3], first[3], step[3];
  std::vector<ConvTap> taps;  // may be empty: results that no tap reaches
  int64_t columns() const { return count[0] * count[1] * count[2]; }
};

// One side's channels and how the weight is read for it.
struct ConvPlan {
  std::vector<ConvPhase> phases;
  int64_t step[3];               // of the source coordinate, from one grid position to the next
  int64_t source[3], result[3];  // spatial sizes
  int64_t first[3], last[3];     // range of source coordinates that any tap reads
  int64_t batch, groups;
  int64_t channels, rows;             // of the source and of the result, per group
  int64_t w_group, w_row, w_channel;  // elements of w from one to the next; a tap is one element

  int64_t source_area() const { return source[0] * source[1] * source[2]; }
  int64_t result_area() const { return result[0] * result[1] * result[2]; }
  int64_t source_channels() const { return groups * channels; }
  int64_t result_channels() const { return groups * rows; }
};

// y from x, and x from y.
ConvPlan conv_plan(const ConvShape& shape);
ConvPlan conv_transposed_plan(const ConvShape& shape);
// Whether the planned algorithms pay: not for a padded source far larger than the source, nor for very many phases.
bool conv_plan_fits(const ConvShape& shape);

// Memory of one call from the tensors' allocator: aligned to 64 bytes, not initialised.
class ConvScratch {
 public:
  explicit ConvScratch(size_t bytes);  // throws OutOfMemory
  ~ConvScratch();
  ConvScratch(const ConvScratch&) = delete;
  ConvScratch& operator=(const ConvScratch&) = delete;
  char* data() const { return data_; }

 private:
  char* data_;
  size_t bytes_;
};

GemmType conv_gemm_type(Elem type);

// The drivers (floating types only). conv_chain_* for both layouts, best with whole vectors of result channels;
// conv_first_* for channels first, with vectors along lines.
void conv_chain_run(Elem type, ConvLayout layout, const ConvPlan& plan, const void* source, const void* w,
                    const void* bias, void* result);
void conv_chain_weight(Elem type, ConvLayout layout, const ConvShape& shape, const void* y, const void* x,
                       void* w);
void conv_first_run(Elem type, const ConvPlan& plan, const void* source, const void* w, const void* bias,
                    void* result);
void conv_first_weight(Elem type, const ConvShape& shape, const void* y, const void* x, void* w);
// One source channel a group (and one result channel, for channels last and for the transposed direction).
void conv_first_depthwise(Elem type, const ConvPlan& plan, const void* source, const void* w,
                          const void* bias, void* result);
void conv_last_depthwise(Elem type, const ConvPlan& plan, const void* source, const void* w, const void* bias,
                         void* result);
void conv_first_depthwise_weight(Elem type, const ConvShape& shape, const void* y, const void* x, void* w);
void conv_last_depthwise_weight(Elem type, const ConvShape& shape, const void* y, const void* x, void* w);

// w[group, j, i] = sum over splits of partial[split, group, i, j], i < rows, j < columns, rounded to `type`.
void conv_sum_weight(Elem type, const char* partial, int64_t splits, int64_t groups, int64_t rows,
                     int64_t columns, void* w);

// The padded form of a channels-first source (conv_kernels.h, ConvPlane), one plane a channel.
struct ConvPadded {
  int64_t rows[2], columns, step;
  int64_t row() const { return step * columns; }
  int64_t plane() const { return rows[0] * rows[1] * row(); }
  int64_t tap(const ConvPlan& plan, const ConvTap& t) const {
    const int64_t x = t.offset[2] - plan.first[2];
    return ((t.offset[0] - plan.first[0]) * rows[1] + t.offset[1] - plan.first[1]) * row() +
           x % step * columns + x / step;
  }
  int64_t position(const ConvPlan& plan, int64_t d, int64_t h) const {
    return (d * plan.step[0] * rows[1] + h * plan.step[1]) * row();
  }
};
ConvPadded conv_padded(const ConvPlan& plan);
// Copies `count` source planes (channels, of any images) into their padded form, on the pool.
void conv_pad(Elem type, const ConvPlan& plan, const ConvPadded& padded, const void* source, int64_t count,
              void* out);

}  // namespace vesta::cpu
