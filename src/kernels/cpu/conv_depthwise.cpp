// Depthwise convolutions: one source channel a group. Channels first works plane by plane on the padded form, a row of
// results in registers while all taps pass. Channels last walks pixels, all channels at once; its result and source
// channels must be the same (one row a group).
#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"
#include "kernels/cpu/conv_kernels.h"
#include "kernels/cpu/conv_plan.h"
#include "kernels/cpu/gemm_scratch.h"
#include "kernels/cpu/isa_table.h"

namespace vesta::cpu {
namespace {

constexpr int64_t kWantedTasks = 16;
constexpr int64_t kSlack = 4 * kConvVectorBytes;  // whole vectors are read past the last column

int64_t cut(int64_t total, int64_t parts, int64_t index) { return total * index / parts; }
int64_t acc_size(Elem type) { return static_cast<int64_t>(elem_size(accumulate_type(type))); }

double bias_of(Elem type, const ConvKernels& kernels, const void* bias, int64_t i) {
  if (!bias) return 0;
  if (type == Elem::F64) return static_cast<const double*>(bias)[i];
  float v;
  kernels.widen(type, static_cast<const char*>(bias) + i * static_cast<int64_t>(elem_size(type)), 1, &v);
  return v;
}

ConvPlane plane_of(const ConvPlan& plan, const ConvPadded& padded) {
  ConvPlane p;
  for (int d = 0; d < 3; ++d) {
    p.source[d] = plan.source[d];
    p.first[d] = plan.first[d];
  }
  p.rows[0] = padded.rows[0];
  p.rows[1] = padded.rows[1];
  p.step = padded.step;
  p.columns = padded.columns;
  return p;
}

// The grid of a phase on the padded plane; taps in `offsets`.
ConvDepthwise grid_of(const ConvPlan& plan, const ConvPhase& phase, const ConvPadded& padded,
                      std::vector<int64_t>& offsets) {
  offsets.clear();
  for (const ConvTap& tap : phase.taps) offsets.push_back(padded.tap(plan, tap));
  ConvDepthwise g;
  for (int d = 0; d < 3; ++d) g.count[d] = phase.count[d];
  g.row_step[0] = padded.position(plan, 1, 0);
  g.row_step[1] = padded.position(plan, 0, 1);
  const int64_t *size = plan.result, *first = phase.first, *step = phase.step;
  g.to_first = (first[0] * size[1] + first[1]) * size[2] + first[2];
  g.to_step[0] = step[0] * size[1] * size[2];
  g.to_step[1] = step[1] * size[2];
  g.to_step[2] = step[2];
  g.taps = static_cast<int64_t>(offsets.size());
  g.tap_offset = offsets.data();
  return g;
}

}  // namespace

void conv_first_depthwise(Elem type, const ConvPlan& plan, const void* source, const void* w,
                          const void* bias, void* result) {
  const ConvKernels& kernels = conv_kernels(cpu_isa());
  const ConvPadded padded = conv_padded(plan);
  const auto size = static_cast<int64_t>(elem_size(type));
  const int64_t acc = acc_size(type), span = std::min(plan.w_channel, plan.w_row),
                plane_bytes = padded.plane() * acc + kSlack;
  // The phases' grids, and whether their weights are the kernel as it is.
  std::vector<std::vector<int64_t>> offsets(plan.phases.size());
  std::vector<ConvDepthwise> grids;
  bool whole = plan.phases.size() == 1 && static_cast<int64_t>(plan.phases[0].taps.size()) == span;
  for (size_t p = 0; p < plan.phases.size(); ++p) {
    grids.push_back(grid_of(plan, plan.phases[p], padded, offsets[p]));
    for (size_t t = 0; t < plan.phases[p].taps.size(); ++t)
      whole &= plan.phases[p].taps[t].index == static_cast<int64_t>(t);
  }
  // A group's only source channel (rows share it).
  parallel_for(
      0, plan.batch * plan.groups, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, plan.result_area())),
      [&](int64_t begin, int64_t end) {
        const auto bytes = static_cast<size_t>(plane_bytes + 2 * (span + 8) * acc);
        char* copy = static_cast<char*>(gemm_scratch(GemmBuffer::Tile, bytes));
        char *all = copy + plane_bytes, *chosen = all + (span + 8) * acc;
        ConvPlane plane = plane_of(plan, padded);
        const auto choose = [&]<class A>(const ConvPhase& phase, A) {
          for (size_t t = 0; t < phase.taps.size(); ++t)
            reinterpret_cast<A*>(chosen)[t] = reinterpret_cast<const A*>(all)[phase.taps[t].index];
        };
        for (int64_t index = begin; index < end; ++index) {
          kernels.pad_plane(type, static_cast<const char*>(source) + index * plan.source_area() * size, plane,
                            copy);
          plane.has_border = true;
          const int64_t group = index % plan.groups;
          for (int64_t row = 0; row < plan.rows; ++row) {
            const int64_t channel = index * plan.rows + row;
            kernels.widen(type,
                          static_cast<const char*>(w) + (group * plan.w_group + row * plan.w_row) * size,
                          span, all);
            for (size_t p = 0; p < grids.size(); ++p) {
              if (!whole) acc == 8 ? choose(plan.phases[p], double{}) : choose(plan.phases[p], float{});
              kernels.depthwise(type, copy, grids[p], whole ? all : chosen,
                                bias_of(type, kernels, bias, group * plan.rows + row),
                                static_cast<char*>(result) + channel * plan.result_area() * size);
            }
          }
        }
      });
}

void conv_first_depthwise_weight(Elem type, const ConvShape& shape, const void* y, const void* x, void* w) {
  const ConvKernels& kernels = conv_kernels(cpu_isa());
  const ConvPlan plan = conv_plan(shape);
  const ConvPadded padded = conv_padded(plan);
  const auto size = static_cast<int64_t>(elem_size(type));
  const int64_t acc = acc_size(type), taps = shape.taps(), plane_bytes = padded.plane() * acc + kSlack;
  parallel_for(0, plan.groups, 1, [&](int64_t begin, int64_t end) {
    char* copy = static_cast<char*>(
        gemm_scratch(GemmBuffer::Tile, static_cast<size_t>(plane_bytes + plan.rows * taps * acc)));
    char* sum = copy + plane_bytes;
    std::vector<int64_t> offsets;
    ConvPlane plane = plane_of(plan, padded);
    const ConvDepthwise grid = grid_of(plan, plan.phases[0], padded, offsets);
    for (int64_t group = begin; group < end; ++group) {
      std::memset(sum, 0, static_cast<size_t>(plan.rows * taps * acc));
      for (int64_t n = 0; n < plan.batch; ++n) {
        const int64_t index = n * plan.groups + group;
        kernels.pad_plane(type, static_cast<const char*>(x) + index * plan.source_area() * size, plane, copy);
        plane.has_border = true;
        for (int64_t row = 0; row < plan.rows; ++row)
          kernels.depthwise_weight(
              type, copy, grid,
              static_cast<const char*>(y) + (index * plan.rows + row) * plan.result_area() * size,
              sum + row * taps * acc);
      }
      kernels.narrow(type, sum, plan.rows * taps, static_cast<char*>(w) + group * plan.rows * taps * size);
    }
  });
}

namespace {

// The taps of one pixel that lie inside, and where they read.
struct PixelTaps {
  std::vector<int64_t> offset, tap;

  void find(const ConvPlan& plan, const ConvPhase& phase, int64_t image, const int64_t (&q)[3]) {
    offset.clear();
    tap.clear();
    for (const ConvTap& t : phase.taps) {
      int64_t from = image;
      bool inside = true;
      for (int d = 0; d < 3; ++d) {
        const int64_t at = q[d] * plan.step[d] + t.offset[d];
        inside &= at >= 0 && at < plan.source[d];
        from = from * plan.source[d] + at;
      }
      if (!inside) continue;
      offset.push_back(from * plan.groups);
      tap.push_back(t.index);
    }
  }
  // The same taps as find() one column further on, where all of both lie inside.
  void move(int64_t elements) {
    for (int64_t& v : offset) v += elements;
  }
  int64_t size() const { return static_cast<int64_t>(tap.size()); }
};

// body(taps, column) for the pixels of one line of a phase's grid.
template <class F>
void for_line(const ConvPlan& plan, const ConvPhase& phase, int64_t line, PixelTaps& taps, F body) {
  int64_t q[3] = {line / phase.count[1] % phase.count[0], line % phase.count[1], 0};
  const int64_t image = line / phase.count[1] / phase.count[0];
  // Columns [first, last) read inside of the source with every tap: there the set of taps stays the same.
  int64_t first = 0, last = phase.count[2];
  for (const ConvTap& t : phase.taps) {
    const int64_t step = plan.step[2], at = t.offset[2];
    first = std::max(first, at >= 0 ? 0 : (-at + step - 1) / step);
    last = std::min(last, plan.source[2] - at <= 0 ? 0 : (plan.source[2] - at + step - 1) / step);
  }
  for (int64_t x = 0; x < phase.count[2]; ++x) {
    q[2] = x;
    if (x > first && x < last)
      taps.move(plan.step[2] * plan.groups);
    else
      taps.find(plan, phase, image, q);
    body(taps, x);
  }
}

}  // namespace

void conv_last_depthwise(Elem type, const ConvPlan& plan, const void* source, const void* w, const void* bias,
                         void* result) {
  const ConvKernels& kernels = conv_kernels(cpu_isa());
  const auto size = static_cast<int64_t>(elem_size(type));
  const int64_t acc = acc_size(type), channels = plan.groups, taps = std::min(plan.w_channel, plan.w_row);
  // The bias, then the weights by tap.
  const ConvScratch by_tap(static_cast<size_t>((taps + 1) * channels * acc));
  char* weights = by_tap.data() + channels * acc;
  if (bias)
    kernels.widen(type, bias, channels, by_tap.data());
  else
    std::memset(by_tap.data(), 0, static_cast<size_t>(channels * acc));
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t t = 0; t < taps; ++t)
      kernels.widen(type, static_cast<const char*>(w) + (c * taps + t) * size, 1,
                    weights + (t * channels + c) * acc);
  for (const ConvPhase& phase : plan.phases) {
    const int64_t lines = plan.batch * phase.count[0] * phase.count[1];
    const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, phase.count[2] * channels));
    parallel_for(0, lines, grain, [&](int64_t begin, int64_t end) {
      PixelTaps found;
      for (int64_t line = begin; line < end; ++line) {
        const int64_t q[2] = {line / phase.count[1] % phase.count[0], line % phase.count[1]};
        int64_t to = line / phase.count[1] / phase.count[0];
        for (int d = 0; d < 2; ++d) to = to * plan.result[d] + phase.first[d] + q[d] * phase.step[d];
        for_line(plan, phase, line, found, [&](const PixelTaps& p, int64_t x) {
          const int64_t pixel = to * plan.result[2] + phase.first[2] + x * phase.step[2];
          kernels.depthwise_pixel(type, source, p.offset.data(), p.tap.data(), p.size(), weights,
                                  by_tap.data(), channels,
                                  static_cast<char*>(result) + pixel * channels * size);
        });
      }
    });
  }
}

void conv_last_depthwise_weight(Elem type, const ConvShape& shape, const void* y, const void* x, void* w) {
  const ConvKernels& kernels = conv_kernels(cpu_isa());
  const ConvPlan plan = conv_plan(shape);
  const ConvPhase& phase = plan.phases[0];
  const auto size = static_cast<int64_t>(elem_size(type));
  const int64_t acc = acc_size(type), channels = plan.groups, taps = shape.taps();
  const int64_t lines = plan.batch * phase.count[0] * phase.count[1],
                splits = std::clamp<int64_t>(lines, 1, kWantedTasks);
  const ConvScratch partial(static_cast<size_t>(splits * taps * channels * acc));
  parallel_for(0, splits, 1, [&](int64_t begin, int64_t end) {
    PixelTaps found;
    for (int64_t split = begin; split < end; ++split) {
      char* sum = partial.data() + split * taps * channels * acc;
      std::memset(sum, 0, static_cast<size_t>(taps * channels * acc));
      for (int64_t line = cut(lines, splits, split); line < cut(lines, splits, split + 1); ++line)
        for_line(plan, phase, line, found, [&](const PixelTaps& p, int64_t column) {
          kernels.depthwise_pixel_weight(
              type, x, p.offset.data(), p.tap.data(), p.size(),
              static_cast<const char*>(y) + (line * phase.count[2] + column) * channels * size, channels,
              sum);
        });
    }
  });
  conv_sum_weight(type, partial.data(), splits, 1, taps, channels, w);
}

}  // namespace vesta::cpu
