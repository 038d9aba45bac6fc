#pragma once
// Convolutions by chains (gemm_kernels.h): the source of a block of results is copied once, channels innermost, so that a
// register tile of pixels x result channels finds each tap's A in place, at a constant distance from pixel to pixel, and
// sums over all taps without leaving the registers. Taps outside of the source are left out, not multiplied with zeros.
// What both directions (conv_chain.cpp) and the weight's gradient (conv_chain_weight.cpp) share.
#include <vector>

#include "kernels/cpu/conv_kernels.h"
#include "kernels/cpu/conv_plan.h"
#include "kernels/cpu/gemm_kernels.h"
#include "kernels/cpu/isa_table.h"

namespace vesta::cpu::conv_chain {

inline constexpr int64_t kBlockBytes = 256 << 10;  // of a staged block: a share of L2
inline constexpr int64_t kWantedTasks = 16;        // more than threads, so that the last ones end together

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t cut(int64_t total, int64_t parts, int64_t index) { return total * index / parts; }
// An odd number of cache lines: rows spread over L1's sets.
inline int64_t padded_row(int64_t elements, int64_t acc) {
  const int64_t line = 64 / acc;
  return (ceil_div(elements, line) | 1) * line;
}

struct Range {
  int64_t from = 0, to = 0;
  int64_t size() const { return to - from; }
};
inline Range part(int64_t total, int64_t parts, int64_t index) {
  return {cut(total, parts, index), cut(total, parts, index + 1)};
}

// What all tasks of a call share, and how its source is staged.
struct Call {
  Elem type;
  ConvLayout layout;
  const ConvPlan& plan;
  const GemmKernels& gemm;
  const ConvKernels& conv;
  int64_t acc, size;  // bytes of an accumulator and of an element
  // Images instead of a line's columns are the rows of a tile, or the sum of a weight, where lines are short: then no tap is
  // half outside.
  bool by_image = false;
  // Few channels: the source is staged with its border of zeros to the left and right, and neighbouring taps of a line are
  // one link, their channels being contiguous.
  bool merge = false;

  Call(Elem type, ConvLayout layout, const ConvPlan& plan, bool weight = false);
};

// `count` taps, sorted by offset, from `tap` on, that read neighbouring pixels of a line.
struct Run {
  const ConvTap* tap;
  int64_t count;
};
std::vector<ConvTap> sorted_by_offset(std::vector<ConvTap> taps);
std::vector<Run> runs_of(const Call& call, const std::vector<ConvTap>& taps);

// A part of the source in accumulators, [.. positions ..][channels].
struct Block {
  Range images, dim[3];  // dim[2] may reach beyond the source: zeros
  Range channels;        // of the group
  int64_t pixel;         // elements of one position
  int64_t image_step, step[3];

  Block(const Call& call, Range images, const Range (&dim)[3], Range channels);
  int64_t elements() const { return pixel * images.size() * dim[0].size() * dim[1].size() * dim[2].size(); }
  // Of the position, or where it would be.
  int64_t at(int64_t z, int64_t y, int64_t x) const {
    return (z - dim[0].from) * step[0] + (y - dim[1].from) * step[1] + (x - dim[2].from) * step[2];
  }
  int64_t offset(const int64_t (&o)[3]) const { return o[0] * step[0] + o[1] * step[1] + o[2] * step[2]; }
};
// The positions of dim d that results [from, to) read in a phase's grid, grown into `range`; `any`: range holds some.
void grow_source(const Call& call, const ConvPhase& phase, int d, Range grid, Range& range, bool& any);
// Clips to the source, dim[2] only as far as the call's border goes.
void clip_source(const Call& call, Range (&dim)[3]);
// Results of grid positions: those whose place in the result lies in `range`.
Range grid_range(const ConvPhase& phase, int d, Range range);

// Tables that staging needs, kept by a task.
struct Tables {
  std::vector<int64_t> from, to;
};
void stage(const Call& call, const Block& block, int64_t group, const char* source, Tables& tables,
           char* out);

}  // namespace vesta::cpu::conv_chain
