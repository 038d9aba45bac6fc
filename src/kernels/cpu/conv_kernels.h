#pragma once
// The vector loops of convolutions, one table per CPU level (isa/conv.cpp): padded copies, gathering of patches into
// packed operands, and the depthwise loops. "Acc" is float, or double for F64; sizes and offsets count elements.
#include <cstdint>

#include "base/cpu_isa.h"
#include "kernels/cpu/elem.h"

namespace vesta::cpu {

// Gathering copies whole vectors of kConvVectorBytes: sources and destinations need that much room behind them.
inline constexpr int64_t kConvVectorBytes = 64;

// One vector of a gathered row.
struct ConvCopy {
  int64_t to, from;
};

// Part of a row that is gathered from a source without a border: `n` elements, at most one vector, and zeros behind them
// up to `room` elements or a whole vector. n = 0: zeros only.
struct ConvPiece {
  int64_t to, from;
  int n, room;
};

// A plane with a border of zeros, its columns sorted by their remainder modulo `step`, so that every step-th column is
// contiguous: column first[2] + i of the source lies at (i % step) * columns + i / step of its row.
struct ConvPlane {
  int64_t source[3];        // sizes of the dense source
  int64_t first[3];         // source coordinate of the copy's element 0; may be negative
  int64_t rows[2];          // of the copy
  int64_t step, columns;    // of the copy's last dim: step * columns elements a row
  bool has_border = false;  // the zeros are there already, from another plane of this form
};

// One plane of a depthwise convolution in the padded form above.
struct ConvDepthwise {
  int64_t count[3];     // grid of results
  int64_t row_step[2];  // of the source, from one grid step to the next, in elements
  int64_t to_first,
      to_step[3];  // element of the result for grid position 0, and from one position to the next
  int64_t taps;
  const int64_t* tap_offset;  // into the padded plane
};

struct ConvKernels {
  void (*pad_plane)(Elem type, const void* source, const ConvPlane& plane, void* out);
  // out[r * row + to + i] = source[offset[r] + from + i] for each of `rows` rows and `count` copies, in that order, so
  // that what a copy writes past its piece is overwritten by the next.
  void (*gather)(bool wide, const void* source, const int64_t* offset, int64_t rows, const ConvCopy* copies,
                 int64_t count, int64_t row, void* out);
  // out[c * row + to + i] = Acc(source[c * channel + from + i * step]) for each of `channels` channels, i < n of each of
  // `count` pieces, zeros for n <= i < room; in the order of the pieces. step: 1 or 2.
  void (*gather_pieces)(Elem type, const void* source, int64_t channel, int64_t channels, int64_t step,
                        const ConvPiece* pieces, int64_t count, int64_t row, void* out);
  // Transposes: out[to[i] + r] = source[from[r] + i] for r < rows and i < n, where to[i] >= 0; widens `type` to Acc, or
  // rounds Acc to `type`.
  void (*transpose_widen)(Elem type, const void* source, const int64_t* from, int64_t rows, const int64_t* to,
                          int64_t n, void* out);
  void (*transpose_narrow)(Elem type, const void* source, const int64_t* from, int64_t rows,
                           const int64_t* to, int64_t n, void* out);
  // out[i] = Acc(source[i]).
  void (*widen)(Elem type, const void* source, int64_t n, void* out);
  // out[r * pitch + i] = Acc(source[offset[r] + i]) for i < m, 0 where the offset is negative.
  void (*pack_columns)(Elem type, const void* source, const int64_t* offset, int64_t rows, int64_t m,
                       int64_t pitch, void* out);
  // row[i] += value, for Acc rows.
  void (*add_value)(bool wide, void* row, int64_t n, double value);
  // result = bias + sum over taps of weight * plane. weight: Acc [taps].
  void (*depthwise)(Elem type, const void* plane, const ConvDepthwise& shape, const void* weight, double bias,
                    void* result);
  // weight[tap] += sum over the grid of dy * plane; dy dense in the grid, of `type`; weight: Acc [taps].
  void (*depthwise_weight)(Elem type, const void* plane, const ConvDepthwise& shape, const void* dy,
                           void* weight);
  // Channels last, one pixel: result[c] = bias[c] + sum over taps t of weight[tap[t] * channels + c] * source[offset[t] + c],
  // bias and weight of type Acc.
  void (*depthwise_pixel)(Elem type, const void* source, const int64_t* offset, const int64_t* tap,
                          int64_t taps, const void* weight, const void* bias, int64_t channels, void* result);
  // sum[tap[t] * channels + c] (Acc) += dy[c] * source[offset[t] + c].
  void (*depthwise_pixel_weight)(Elem type, const void* source, const int64_t* offset, const int64_t* tap,
                                 int64_t taps, const void* dy, int64_t channels, void* sum);
  // out[i] = Acc row rounded to `type`.
  void (*narrow)(Elem type, const void* row, int64_t n, void* out);
};
const ConvKernels& conv_kernels(CpuIsa level);

}  // namespace vesta::cpu
