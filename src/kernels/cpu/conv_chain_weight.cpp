// The weight's gradient by chains (conv_chain.h): dw[(tap, channel), row] = sum over positions of
// source[position + tap, channel] * dy[position, row]. Both are staged with channels innermost, a unit of lines at a time,
// dy as panels; a link is a line of positions whose tap lies inside. Units are shared out to a number of splits that the
// shape fixes, whose sums are kept apart and added in order at the end.
#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"
#include "kernels/cpu/conv_chain.h"
#include "kernels/cpu/gemm_scratch.h"

namespace vesta::cpu {
namespace {

using namespace conv_chain;

constexpr int64_t kPartialBytes = 3 << 20;  // of all splits' sums: a share of L3
constexpr int64_t kUnitBytes = 320 << 10;   // of a unit's source and dy: a share of L2
constexpr int64_t kUnitImages = 64;         // where images are inner
constexpr int64_t kLeastChannels = 64;  // of a block of channels or rows, which stages the other side again

struct WeightRun {
  const Call& call;
  const ConvPhase& phase;
  std::vector<Run> runs;
  int64_t channel_blocks = 1, row_blocks = 1, splits = 1;
  // Units of positions.
  int64_t parts[3] = {1, 1, 1}, images = 1, image_parts = 1;

  explicit WeightRun(const Call& c) : call(c), phase(c.plan.phases[0]), runs(runs_of(c, phase.taps)) {
    const ConvPlan& plan = c.plan;
    const int64_t n = plan.batch;
    if (c.by_image) images = ceil_div(n, ceil_div(n, kUnitImages));
    image_parts = ceil_div(n, images);
    const int64_t bytes = std::max<int64_t>(1, plan.groups * rows() * plan.rows * c.acc);
    splits = std::clamp<int64_t>(kPartialBytes / bytes, 1, ceil_div(kWantedTasks, plan.groups));
    while (channel_blocks * row_blocks * splits * plan.groups < kWantedTasks) {
      const int64_t channels = c.merge ? 0 : plan.channels / channel_blocks, more = plan.rows / row_blocks;
      if (std::max(channels, more) < 2 * kLeastChannels) break;
      ++(channels > more ? channel_blocks : row_blocks);
    }
    while (true) {
      const bool large = unit_elements() * c.acc > kUnitBytes;
      if (!large && units() >= 2 * splits) break;
      const int64_t z = ceil_div(plan.result[0], parts[0]), y = ceil_div(plan.result[1], parts[1]),
                    x = ceil_div(plan.result[2], parts[2]);
      const int d = z > 1 && z >= y ? 0 : y > 1 ? 1 : 2;
      const int64_t size = d == 0 ? z : d == 1 ? y : x;
      if (d == 2 && (x <= 128 || c.by_image)) {
        if (!c.by_image || images <= c.gemm.rows) break;
        images = ceil_div(images, 2);
        image_parts = ceil_div(n, images);
        continue;
      }
      if (!large && z * y * x * images < 256) break;  // long sums cost less
      do ++parts[d];
      while (ceil_div(plan.result[d], parts[d]) == size);
    }
    splits = std::clamp<int64_t>(units(), 1, splits);
  }
  int64_t units() const { return image_parts * parts[0] * parts[1] * parts[2]; }
  int64_t rows() const { return call.plan.channels * static_cast<int64_t>(phase.taps.size()); }  // of dw^T
  int64_t partial() const { return call.plan.groups * rows() * call.plan.rows; }
  int64_t tasks() const { return channel_blocks * row_blocks * splits * call.plan.groups; }
  Range channels_of(int64_t index) const { return part(call.plan.channels, channel_blocks, index); }
  Range panels_of(int64_t index) const {
    return part(ceil_div(call.plan.rows, call.gemm.columns), row_blocks, index);
  }
  Block block_of(Range n, const Range (&box)[3], Range channels) const {
    Range dim[3];
    for (int d = 0; d < 3; ++d) {
      bool any = false;
      grow_source(call, phase, d, box[d], dim[d], any);
    }
    clip_source(call, dim);
    return Block(call, n, dim, channels);
  }

 private:
  int64_t unit_elements() const {
    Range box[3];
    int64_t positions = images;
    for (int d = 0; d < 3; ++d) {
      box[d] = part(call.plan.result[d], parts[d], parts[d] / 2);
      positions *= box[d].size();
    }
    return block_of({0, images}, box, {0, ceil_div(call.plan.channels, channel_blocks)}).elements() +
           positions * ceil_div(call.plan.rows, row_blocks);
  }
};

// dy of a unit as panels [panel][position][columns], images innermost where the call has them so.
void stage_dy(const WeightRun& p, Range n, const Range (&box)[3], int64_t group, Range panels, const char* dy,
              Tables& tables, char* out) {
  const Call& call = p.call;
  const ConvPlan& plan = call.plan;
  const int64_t columns = call.gemm.columns, area = plan.result_area(), all = plan.result_channels();
  const int64_t width = box[2].size(), lines = box[0].size() * box[1].size(),
                positions = n.size() * lines * width;
  const int64_t x_step = call.by_image ? n.size() : 1;
  if (call.layout == ConvLayout::First) {
    tables.from.resize(static_cast<size_t>(columns));
    for (int64_t r = 0; r < columns; ++r) tables.from[static_cast<size_t>(r)] = r * area;
    tables.to.resize(static_cast<size_t>(box[1].size() * width));
    for (int64_t i = 0; i < box[1].size() * width; ++i)
      tables.to[static_cast<size_t>(i)] = i * x_step * columns;
  }
  const bool whole = width == plan.result[2];  // lines of a plane follow one another
  for (int64_t j = panels.from; j < panels.to; ++j, out += positions * columns * call.acc) {
    const int64_t rows = std::min(columns, plan.rows - j * columns), first = group * plan.rows + j * columns;
    if (rows < columns) std::memset(out, 0, static_cast<size_t>(positions * columns * call.acc));
    for (int64_t image = n.from; image < n.to; ++image)
      for (int64_t z = 0; z < box[0].size(); ++z)
        for (int64_t y = 0; y < box[1].size(); y += whole ? box[1].size() : 1) {
          const int64_t line = z * box[1].size() + y;
          const int64_t at = call.by_image ? line * width * n.size() + image - n.from
                                           : ((image - n.from) * lines + line) * width;
          const int64_t pixel =
              ((box[0].from + z) * plan.result[1] + box[1].from + y) * plan.result[2] + box[2].from;
          const int64_t count = whole ? box[1].size() * width : width;
          char* to = out + at * columns * call.acc;
          if (call.layout == ConvLayout::First) {
            call.conv.transpose_widen(call.type, dy + ((image * all + first) * area + pixel) * call.size,
                                      tables.from.data(), rows, tables.to.data(), count, to);
            continue;
          }
          const char* from = dy + ((image * area + pixel) * all + first) * call.size;
          if (x_step == 1) {
            call.gemm.pack_b(conv_gemm_type(call.type), from, all, 1, count, rows, to);
            continue;
          }
          for (int64_t i = 0; i < count; ++i)
            call.conv.widen(call.type, from + i * all * call.size, rows,
                            to + i * x_step * columns * call.acc);
        }
  }
}

// The lines of a unit whose positions meet a run inside of the source.
void find_links(const WeightRun& p, const Block& block, const Range (&box)[3], const Run& run,
                std::vector<GemmLink>& links) {
  const Call& call = p.call;
  const ConvPlan& plan = call.plan;
  const int64_t columns = call.gemm.columns, width = box[2].size(), images = block.images.size();
  links.clear();
  const auto inside = [&](int d, int64_t q) {
    const int64_t at = q * plan.step[d] + run.tap->offset[d];
    return at >= 0 && at < plan.source[d];
  };
  const auto source = [&](int64_t z, int64_t y, int64_t x) {
    return block.at(z * plan.step[0] + run.tap->offset[0], y * plan.step[1] + run.tap->offset[1],
                    x * plan.step[2] + run.tap->offset[2]);
  };
  Range x = box[2];
  if (!call.merge) {
    while (x.from < x.to && !inside(2, x.from)) ++x.from;
    while (x.from < x.to && !inside(2, x.to - 1)) --x.to;
  }
  if (x.size() <= 0) return;
  for (int64_t image = 0; image < (call.by_image ? 1 : images); ++image)
    for (int64_t z = box[0].from; z < box[0].to; ++z)
      for (int64_t y = box[1].from; y < box[1].to; ++y) {
        if (!inside(0, z) || !inside(1, y)) continue;
        const int64_t line = (z - box[0].from) * box[1].size() + y - box[1].from;
        if (!call.by_image) {
          links.push_back(
              {image * block.image_step + source(z, y, x.from),
               ((image * box[0].size() * box[1].size() + line) * width + x.from - box[2].from) * columns,
               x.size()});
          continue;
        }
        for (int64_t q = x.from; q < x.to; ++q)
          links.push_back({source(z, y, q), (line * width + q - box[2].from) * images * columns, images});
      }
}

void weight_task(const WeightRun& p, int64_t index, const char* x, const char* dy, char* partial) {
  const Call& call = p.call;
  const ConvPlan& plan = call.plan;
  const int64_t columns = call.gemm.columns;
  const Range panels = p.panels_of(index % p.row_blocks),
              channels = p.channels_of(index / p.row_blocks % p.channel_blocks);
  const int64_t group = index / p.row_blocks / p.channel_blocks % plan.groups,
                split = index / p.row_blocks / p.channel_blocks / plan.groups;
  const Range units = part(p.units(), p.splits, split);
  char* out = partial + (split * p.partial() + group * p.rows() * plan.rows) * call.acc;
  Tables tables;
  std::vector<GemmLink> links;
  for (int64_t unit = units.from; unit < units.to; ++unit) {
    int64_t rest = unit;
    Range box[3];
    for (int d = 2; d >= 0; --d) {
      box[d] = part(plan.result[d], p.parts[d], rest % p.parts[d]);
      rest /= p.parts[d];
    }
    const Range n = part(plan.batch, p.image_parts, rest);
    const Block block = p.block_of(n, box, channels);
    const int64_t positions = n.size() * box[0].size() * box[1].size() * box[2].size();
    const int64_t staged_bytes = ceil_div(block.elements() * call.acc, 64) * 64;
    char* staged = static_cast<char*>(
        gemm_scratch(GemmBuffer::Tile,
                     static_cast<size_t>(staged_bytes + positions * panels.size() * columns * call.acc)));
    char* b = staged + staged_bytes;
    stage(call, block, group, x, tables, staged);
    stage_dy(p, n, box, group, panels, dy, tables, b);
    GemmChain s;
    s.a_row = call.by_image ? block.image_step : plan.step[2] * block.step[2];
    s.ldc = plan.rows;
    s.add = unit > units.from;
    for (const Run& run : p.runs) {
      find_links(p, block, box, run, links);
      s.links = links.data();
      s.count = static_cast<int64_t>(links.size());
      const int64_t row = run.tap->index * plan.channels + channels.from,
                    length = run.count * channels.size(), strips = ceil_div(length, call.gemm.rows);
      for (int64_t j = panels.from; j < panels.to; ++j) {
        s.b = b + (j - panels.from) * positions * columns * call.acc;
        s.n = std::min(columns, plan.rows - j * columns);
        for (int64_t i = 0; i < strips; ++i) {
          const Range strip = part(length, strips, i);
          s.a = staged + strip.from * call.acc;
          s.m = strip.size();
          s.c = out + ((row + strip.from) * plan.rows + j * columns) * call.acc;
          call.gemm.chain_columns(s);
        }
      }
    }
  }
}

// w[group, row, channel, tap] = the splits' sum of partial[split, group, (tap, channel), row].
template <class A>
void sum_splits(const WeightRun& p, const A* partial, char* w) {
  constexpr int64_t kRows = 64, kChannels = 16;  // of a block: whole lines on both sides
  constexpr int64_t kAhead = 4;                  // rows fetched ahead: they are far apart
  const Call& call = p.call;
  const ConvPlan& plan = call.plan;
  const auto taps = static_cast<int64_t>(p.phase.taps.size());
  const int64_t row_blocks = ceil_div(plan.rows, kRows), channel_blocks = ceil_div(plan.channels, kChannels);
  std::vector<int64_t> to(static_cast<size_t>(kRows));
  for (int64_t r = 0; r < kRows; ++r) to[static_cast<size_t>(r)] = r * p.rows();
  parallel_for(
      0, plan.groups * row_blocks * channel_blocks,
      ceil_div(8192, std::max<int64_t>(1, kRows * kChannels * taps)), [&](int64_t begin, int64_t end) {
        std::vector<A> sums(static_cast<size_t>(kRows * kChannels * taps));
        std::vector<int64_t> from(static_cast<size_t>(kChannels * taps));
        for (int64_t index = begin; index < end; ++index) {
          const int64_t c0 = index % channel_blocks * kChannels, c = std::min(kChannels, plan.channels - c0);
          const int64_t r0 = index / channel_blocks % row_blocks * kRows, r = std::min(kRows, plan.rows - r0);
          const int64_t group = index / channel_blocks / row_blocks;
          for (int64_t t = 0; t < taps; ++t)
            for (int64_t i = 0; i < c; ++i) {
              const A* x = partial + (group * p.rows() + t * plan.channels + c0 + i) * plan.rows + r0;
              A* sum = sums.data() + (i * taps + t) * kRows;
              for (int64_t s = 0; s < p.splits; ++s)
                for (int64_t e = 0; e < kRows; e += 64 / static_cast<int64_t>(sizeof(A)))
                  __builtin_prefetch(x + kAhead * plan.rows + s * p.partial() + e);
              std::copy_n(x, r, sum);
              for (int64_t s = 1; s < p.splits; ++s)
                for (int64_t e = 0; e < r; ++e) sum[e] += x[s * p.partial() + e];
              from[static_cast<size_t>(i * taps + t)] = (i * taps + t) * kRows;
            }
          call.conv.transpose_narrow(call.type, sums.data(), from.data(), c * taps, to.data(), r,
                                     w + ((group * plan.rows + r0) * p.rows() + c0 * taps) * call.size);
        }
      });
}

}  // namespace

void conv_chain_weight(Elem type, ConvLayout layout, const ConvShape& shape, const void* y, const void* x,
                       void* w) {
  const ConvPlan plan = conv_plan(shape);
  const Call call(type, layout, plan, true);
  const WeightRun p(call);
  if (plan.batch == 0 || plan.result_area() == 0) {  // no position: a sum of nothing
    std::memset(w, 0, static_cast<size_t>(p.partial() * call.size));
    return;
  }
  const ConvScratch partial(static_cast<size_t>(p.splits * p.partial() * call.acc));
  parallel_for(0, p.tasks(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index)
      weight_task(p, index, static_cast<const char*>(x), static_cast<const char*>(y), partial.data());
  });
  if (type == Elem::F64)
    sum_splits(p, reinterpret_cast<const double*>(partial.data()), static_cast<char*>(w));
  else
    sum_splits(p, reinterpret_cast<const float*>(partial.data()), static_cast<char*>(w));
}

}  // namespace vesta::cpu
