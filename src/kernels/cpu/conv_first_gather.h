#pragma once
// What both channels-first drivers (conv_first.cpp and conv_first_weight.cpp) gather B with: K's rows (source channel, tap)
// at the columns of a block, from the source itself or from its padded form. The columns of a block lie in lines of
// images' grids; which pieces of a line a tap reads inside of the source is worked out once, for all channels.
#include <algorithm>
#include <vector>

#include "kernels/cpu/conv_kernels.h"
#include "kernels/cpu/conv_plan.h"
#include "kernels/cpu/gemm_kernels.h"
#include "kernels/cpu/isa_table.h"

namespace vesta::cpu::conv_first {

inline constexpr int64_t kSliceBytes = 8 << 20;  // padded images that are worked on at once: they stay in L3
inline constexpr int64_t kSlack =
    kConvVectorBytes;                          // gathering writes and reads up to this far behind its pieces
inline constexpr int64_t kDirectChannels = 8;  // fewer do not pay for finding the pieces of each tap

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t cut(int64_t total, int64_t parts, int64_t index) { return total * index / parts; }

// Rows of A an odd number of cache lines apart, so that a strip's rows spread over L1's sets.
inline int64_t padded_row(int64_t elements, int64_t acc) {
  const int64_t line = 64 / acc;
  return (ceil_div(elements, line) | 1) * line;
}

// What all tasks of a call share.
struct Run {
  Elem type;
  const ConvPlan& plan;
  const GemmKernels& gemm;
  const ConvKernels& conv;
  ConvPadded padded;
  int64_t acc, size;  // bytes of an accumulator and of an element
  bool wide, direct;  // direct: gathers from the source itself

  Run(Elem t, const ConvPlan& p)
      : type(t),
        plan(p),
        gemm(gemm_kernels(t == Elem::F64 ? GemmType::F64 : GemmType::F32, cpu_isa())),
        conv(conv_kernels(cpu_isa())),
        padded(conv_padded(p)),
        acc(static_cast<int64_t>(elem_size(accumulate_type(t)))),
        size(static_cast<int64_t>(elem_size(t))),
        wide(t == Elem::F64),
        direct(p.step[2] <= 2 && p.channels >= kDirectChannels) {
    for (const ConvPhase& phase : p.phases) direct &= static_cast<int64_t>(phase.taps.size()) <= gemm.depth;
  }
  int64_t lanes() const { return kConvVectorBytes / acc; }
  // Images worked on at once.
  int64_t slice() const {
    if (direct) return std::max<int64_t>(plan.batch, 1);
    return std::clamp<int64_t>(
        kSliceBytes / std::max<int64_t>(1, plan.source_channels() * padded.plane() * acc), 1,
        std::max<int64_t>(plan.batch, 1));
  }
};

// Offsets of K's rows in the padded image of one group.
inline std::vector<int64_t> row_offsets(const Run& run, const ConvPhase& phase) {
  std::vector<int64_t> offsets;
  offsets.reserve(static_cast<size_t>(run.plan.channels) * phase.taps.size());
  for (int64_t c = 0; c < run.plan.channels; ++c)
    for (const ConvTap& tap : phase.taps)
      offsets.push_back(c * run.padded.plane() + run.padded.tap(run.plan, tap));
  return offsets;
}

// n columns of a block, from `at` on, that lie in one line of an image's grid.
struct Line {
  int64_t at, n, image, z, y, x;
};
// Appends columns [from, to) of the images' grids, one after the other.
inline void append_lines(const ConvPhase& phase, int64_t from, int64_t to, int64_t at,
                         std::vector<Line>& lines) {
  const int64_t width = phase.count[2], height = phase.count[1], depth = phase.count[0];
  int64_t x = from % width, line = from / width;
  int64_t y = line % height, z = line / height % depth, image = line / height / depth;
  while (from < to) {
    const int64_t n = std::min(width - x, to - from);
    lines.push_back({at, n, image, z, y, x});
    at += n;
    from += n;
    x = 0;
    if (++y < height) continue;
    y = 0;
    if (++z < depth) continue;
    z = 0;
    ++image;
  }
}

// The copies that gather lines from the padded images.
inline void append_copies(const Run& run, const std::vector<Line>& lines, std::vector<ConvCopy>& copies) {
  const int64_t lanes = run.lanes(), image = run.plan.source_channels() * run.padded.plane();
  for (const Line& l : lines) {
    const int64_t source = l.image * image + run.padded.position(run.plan, l.z, l.y) + l.x;
    for (int64_t i = 0; i < l.n; i += lanes) copies.push_back({l.at + i, source + i});
  }
}

// The pieces that gather lines for one tap from the source itself; `row` elements of a gathered row may be written.
inline void find_pieces(const Run& run, const std::vector<Line>& lines, const ConvTap& tap, int64_t row,
                        std::vector<ConvPiece>& pieces) {
  const ConvPlan& plan = run.plan;
  const int64_t lanes = run.lanes(), step = plan.step[2], width = plan.source[2];
  int64_t zero_until = 0;  // from the last piece's end on
  const auto add = [&](int64_t to, int64_t from, int64_t n) {
    pieces.push_back({to, from, static_cast<int>(n), static_cast<int>(std::min(lanes, row - to))});
    zero_until = to + lanes;
  };
  const auto zeros = [&](int64_t from, int64_t to) {
    for (from = std::max(from, zero_until); from < to; from += lanes) add(from, 0, 0);
  };
  pieces.clear();
  for (const Line& l : lines) {
    const int64_t z = l.z * plan.step[0] + tap.offset[0], y = l.y * plan.step[1] + tap.offset[1];
    const int64_t x = l.x * step + tap.offset[2];
    if (z < 0 || z >= plan.source[0] || y < 0 || y >= plan.source[1]) {
      zeros(l.at, l.at + l.n);
      continue;
    }
    // Columns whose source column x + i * step lies in [0, width).
    const int64_t begin = std::min(l.n, x >= 0 ? 0 : (-x + step - 1) / step);
    const int64_t end = std::clamp<int64_t>(x >= width ? 0 : (width - x + step - 1) / step, begin, l.n);
    const int64_t source =
        l.image * plan.source_channels() * plan.source_area() + (z * plan.source[1] + y) * width + x;
    zeros(l.at, l.at + begin);
    for (int64_t i = begin; i < end; i += lanes) add(l.at + i, source + i * step, std::min(lanes, end - i));
    zeros(l.at + end, l.at + l.n);
  }
}

// B's rows [k0, k1) for `lines` at out, `row` elements apart; source: the group's channels.
struct GatherRows {
  const Run& run;
  const ConvPhase& phase;
  std::vector<ConvPiece> pieces;

  void operator()(const std::vector<Line>& lines, int64_t k0, int64_t k1, const char* source, int64_t row,
                  char* out) {
    const auto taps = static_cast<int64_t>(phase.taps.size());
    for (int64_t t = 0; t < taps; ++t) {
      // Row c * taps + t for the channels c in [first, last).
      const int64_t first = k0 > t ? ceil_div(k0 - t, taps) : 0, last = k1 > t ? ceil_div(k1 - t, taps) : 0;
      if (first >= last) continue;
      find_pieces(run, lines, phase.taps[static_cast<size_t>(t)], row, pieces);
      run.conv.gather_pieces(run.type, source + first * run.plan.source_area() * run.size,
                             run.plan.source_area(), last - first, run.plan.step[2], pieces.data(),
                             static_cast<int64_t>(pieces.size()), taps * row,
                             out + (first * taps + t - k0) * row * run.acc);
    }
  }
};

}  // namespace vesta::cpu::conv_first
