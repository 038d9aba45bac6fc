// Staging of convolution sources for chains: what is copied where.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/conv_chain.h"

namespace vesta::cpu::conv_chain {
namespace {

constexpr int64_t kMergeChannels = 32;  // fewer are merged: a link per tap would cost as much as its products
constexpr int64_t kShortLine = 7;       // columns up to which images are the better rows
constexpr int64_t kShortSum = 15;       // of a weight's gradient, where images are more
constexpr int64_t kManyImages = 8;

}  // namespace

Call::Call(Elem t, ConvLayout l, const ConvPlan& p, bool weight)
    : type(t),
      layout(l),
      plan(p),
      gemm(gemm_kernels(t == Elem::F64 ? GemmType::F64 : GemmType::F32, cpu_isa())),
      conv(conv_kernels(cpu_isa())),
      acc(static_cast<int64_t>(elem_size(accumulate_type(t)))),
      size(static_cast<int64_t>(elem_size(t))) {
  int64_t width = 0;
  for (const ConvPhase& phase : p.phases) width = std::max(width, phase.count[2]);
  merge = p.channels < kMergeChannels;
  by_image =
      !merge && p.batch >= kManyImages && width <= (weight ? std::min(kShortSum, p.batch - 1) : kShortLine);
}

std::vector<ConvTap> sorted_by_offset(std::vector<ConvTap> taps) {
  std::sort(taps.begin(), taps.end(), [](const ConvTap& a, const ConvTap& b) {
    return std::lexicographical_compare(a.offset, a.offset + 3, b.offset, b.offset + 3);
  });
  return taps;
}

std::vector<Run> runs_of(const Call& call, const std::vector<ConvTap>& taps) {
  std::vector<Run> runs;
  for (const ConvTap& tap : taps) {
    if (call.merge && !runs.empty()) {
      Run& last = runs.back();
      if (last.tap->offset[0] == tap.offset[0] && last.tap->offset[1] == tap.offset[1] &&
          last.tap->offset[2] + last.count == tap.offset[2]) {
        ++last.count;
        continue;
      }
    }
    runs.push_back({&tap, 1});
  }
  return runs;
}

Block::Block(const Call& call, Range images_, const Range (&dim_)[3], Range channels_)
    : images(images_), channels(channels_) {
  for (int d = 0; d < 3; ++d) dim[d] = dim_[d];
  // Merged taps need pixels without gaps.
  pixel = call.merge ? channels.size() : padded_row(channels.size(), call.acc);
  int64_t step_ = pixel;
  if (call.by_image) {
    image_step = step_;
    step_ *= images.size();
  }
  for (int d = 2; d >= 0; --d) {
    step[d] = step_;
    step_ *= dim[d].size();
  }
  if (!call.by_image) image_step = step_;
}

Range grid_range(const ConvPhase& phase, int d, Range range) {
  const auto first = [&](int64_t at) {  // the first grid position whose place is at least `at`
    return at <= phase.first[d] ? 0 : std::min(phase.count[d], ceil_div(at - phase.first[d], phase.step[d]));
  };
  return {first(range.from), first(range.to)};
}

void grow_source(const Call& call, const ConvPhase& phase, int d, Range grid, Range& range, bool& any) {
  if (grid.size() <= 0) return;
  for (const ConvTap& tap : phase.taps) {
    const int64_t from = grid.from * call.plan.step[d] + tap.offset[d],
                  to = (grid.to - 1) * call.plan.step[d] + tap.offset[d] + 1;
    range = any ? Range{std::min(range.from, from), std::max(range.to, to)} : Range{from, to};
    any = true;
  }
}

void clip_source(const Call& call, Range (&dim)[3]) {
  for (int d = 0; d < (call.merge ? 2 : 3); ++d) {
    dim[d].from = std::clamp<int64_t>(dim[d].from, 0, call.plan.source[d]);
    dim[d].to = std::clamp(dim[d].to, dim[d].from, call.plan.source[d]);
  }
}

void stage(const Call& call, const Block& block, int64_t group, const char* source, Tables& tables,
           char* out) {
  const ConvPlan& plan = call.plan;
  const int64_t height = plan.source[1], width = plan.source[2], area = plan.source_area(),
                channels = block.channels.size(), first = group * plan.channels + block.channels.from;
  const Range x = block.dim[2], y = block.dim[1];
  const Range inside{std::clamp<int64_t>(x.from, 0, width), std::clamp<int64_t>(x.to, 0, width)};
  if (block.elements() == 0) return;
  const bool border = inside.from > x.from || inside.to < x.to;
  if (call.layout == ConvLayout::First) {
    tables.from.resize(static_cast<size_t>(channels));
    for (int64_t c = 0; c < channels; ++c) tables.from[static_cast<size_t>(c)] = c * area;
    tables.to.resize(static_cast<size_t>(y.size() * width));
    for (int64_t i = 0; i < y.size(); ++i)
      for (int64_t j = 0; j < width; ++j)
        tables.to[static_cast<size_t>(i * width + j)] =
            j >= inside.from && j < inside.to ? i * block.step[1] + (j - x.from) * block.step[2] : -1;
  }
  const int64_t all = plan.source_channels();
  for (int64_t n = block.images.from; n < block.images.to; ++n)
    for (int64_t z = block.dim[0].from; z < block.dim[0].to; ++z) {
      char* plane =
          out + ((n - block.images.from) * block.image_step + block.at(z, y.from, x.from)) * call.acc;
      if (border)
        for (int64_t i = 0; i < y.size(); ++i)
          for (int64_t j = x.from; j < x.to; ++j) {
            if (j == inside.from && inside.from < inside.to) j = inside.to;
            if (j < x.to)
              std::memset(plane + (i * block.step[1] + (j - x.from) * block.step[2]) * call.acc, 0,
                          static_cast<size_t>(channels * call.acc));
          }
      if (inside.size() <= 0) continue;
      if (call.layout == ConvLayout::First) {
        const char* from =
            source + (((n * all + first) * plan.source[0] + z) * height + y.from) * width * call.size;
        call.conv.transpose_widen(call.type, from, tables.from.data(), channels, tables.to.data(),
                                  y.size() * width, plane);
        continue;
      }
      for (int64_t i = 0; i < y.size(); ++i) {
        const char* from =
            source +
            ((((n * plan.source[0] + z) * height + y.from + i) * width + inside.from) * all + first) *
                call.size;
        char* to = plane + (i * block.step[1] + (inside.from - x.from) * block.step[2]) * call.acc;
        if (all == channels && block.step[2] == channels) {
          call.conv.widen(call.type, from, inside.size() * channels, to);
          continue;
        }
        for (int64_t j = 0; j < inside.size(); ++j)
          call.conv.widen(call.type, from + j * all * call.size, channels, to + j * block.step[2] * call.acc);
      }
    }
}

}  // namespace vesta::cpu::conv_chain
