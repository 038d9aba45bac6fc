// The weight's gradient of channels-first convolutions is the product over columns: dw[(channel, tap), row] =
// B[., columns] * dy[columns, row], B as in conv_first.cpp with its rows gathered as the A operand. Blocks of columns are
// shared out to a number of splits that the shape fixes, whose sums are added in order at the end.
#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"
#include "kernels/cpu/conv_first_gather.h"
#include "kernels/cpu/gemm_scratch.h"

namespace vesta::cpu {
namespace {

using namespace conv_first;

constexpr int64_t kWantedTasks = 32;  // many more than threads, so that the last ones end together

// Part of the sum over columns: columns [from, to) of an image.
struct Span {
  int64_t image, from, to;
};
// Consecutive spans, at most `depth` columns in all.
struct Block {
  std::vector<Span> spans;
  int64_t columns = 0;
};
std::vector<Block> blocks_of(int64_t images, int64_t area, int64_t depth) {
  std::vector<Block> blocks;
  const int64_t pieces = ceil_div(area, depth);
  for (int64_t n = 0; n < images; ++n)
    for (int64_t q = 0; q < pieces; ++q) {
      const Span span{n, cut(area, pieces, q), cut(area, pieces, q + 1)};
      const int64_t columns = span.to - span.from;
      if (blocks.empty() || blocks.back().columns + columns > depth) blocks.emplace_back();
      blocks.back().spans.push_back(span);
      blocks.back().columns += columns;
    }
  return blocks;
}

// How the rows (channel, tap) of dw and the blocks of columns are cut; the sums of each split are kept apart and added in
// order at the end.
struct WeightRun {
  const Run& run;
  const ConvPhase& phase;
  std::vector<int64_t> offsets;
  int64_t rows, columns;  // of dw's transpose: (channel, tap) and result channel of a group
  int64_t strips, row_blocks, splits;

  explicit WeightRun(const Run& r) : run(r), phase(r.plan.phases[0]) {
    if (!r.direct) offsets = row_offsets(r, phase);
    rows = r.plan.channels * static_cast<int64_t>(phase.taps.size());
    columns = r.plan.rows;
    strips = ceil_div(rows, r.gemm.rows);
    row_blocks = ceil_div(strips, 10);
    const int64_t blocks = ceil_div(std::min(r.slice(), r.plan.batch) * phase.columns(), r.gemm.depth);
    splits = std::clamp<int64_t>(ceil_div(kWantedTasks, row_blocks * r.plan.groups), 1,
                                 std::max<int64_t>(blocks, 1));
  }
  int64_t partial() const { return run.plan.groups * rows * columns; }  // elements of one split
};

void weight_task(const WeightRun& p, int64_t index, const std::vector<Block>& blocks, const char* source,
                 const char* dy, char* partial, bool first) {
  const Run& run = p.run;
  const ConvPlan& plan = run.plan;
  const GemmKernels& gemm = run.gemm;
  const int64_t row_block = index % p.row_blocks, group = index / p.row_blocks % plan.groups,
                split = index / p.row_blocks / plan.groups;
  const int64_t s0 = cut(p.strips, p.row_blocks, row_block), s1 = cut(p.strips, p.row_blocks, row_block + 1);
  const auto strip_start = [&](int64_t s) { return cut(p.rows, p.strips, s); };
  const int64_t i0 = strip_start(s0), rows = strip_start(s1) - i0;
  const int64_t area = p.phase.columns(), panel = gemm.columns, panels = ceil_div(p.columns, panel);
  const int64_t a_row = padded_row(gemm.depth, run.acc);
  const int64_t a_bytes = ceil_div((rows * a_row) * run.acc + kSlack, 64) * 64;
  char* a = static_cast<char*>(
      gemm_scratch(GemmBuffer::Tile, static_cast<size_t>(a_bytes + panels * panel * gemm.depth * run.acc)));
  char* b = a + a_bytes;
  source +=
      group * plan.channels * (run.direct ? plan.source_area() * run.size : run.padded.plane() * run.acc);
  char* out = partial + (split * p.partial() + (group * p.rows + i0) * p.columns) * run.acc;
  std::vector<ConvCopy> copies;
  std::vector<Line> lines;
  GatherRows gather_rows{run, p.phase, {}};
  const auto count = static_cast<int64_t>(blocks.size());
  for (int64_t q = cut(count, p.splits, split); q < cut(count, p.splits, split + 1); ++q) {
    const Block& block = blocks[static_cast<size_t>(q)];
    const int64_t kb = block.columns;
    lines.clear();
    int64_t at = 0;
    for (const Span& span : block.spans) {
      append_lines(p.phase, span.image * area + span.from, span.image * area + span.to, at, lines);
      const char* image = dy + (span.image * plan.result_channels() + group * plan.rows) * area * run.size;
      for (int64_t j = 0; j < p.columns; j += panel)
        gemm.pack_b(conv_gemm_type(run.type), image + (j * area + span.from) * run.size, 1, area,
                    span.to - span.from, std::min(panel, p.columns - j),
                    b + (j / panel * panel * kb + at * panel) * run.acc);
      at += span.to - span.from;
    }
    if (run.direct) {
      gather_rows(lines, i0, i0 + rows, source, a_row, a);
    } else {
      copies.clear();
      append_copies(run, lines, copies);
      run.conv.gather(run.wide, source, p.offsets.data() + i0, rows, copies.data(),
                      static_cast<int64_t>(copies.size()), a_row, a);
    }
    GemmStrip s;
    s.a_row = a_row;
    s.b = b;
    s.b_panel = panel * kb;
    s.b_row = panel;
    s.ldc = p.columns;
    s.n = p.columns;
    s.k = kb;
    s.alpha = 1;
    s.beta = first ? 0 : 1;
    first = false;
    for (int64_t strip = s0; strip < s1; ++strip) {
      const int64_t i = strip_start(strip);
      s.m = strip_start(strip + 1) - i;
      s.a = a + (i - i0) * a_row * run.acc;
      s.c = out + (i - i0) * p.columns * run.acc;
      gemm.strip_rows(s);
    }
  }
  if (first) std::memset(out, 0, static_cast<size_t>(rows * p.columns * run.acc));  // a split without blocks
}

}  // namespace

void conv_first_weight(Elem type, const ConvShape& shape, const void* y, const void* x, void* w) {
  const ConvPlan plan = conv_plan(shape);
  const Run run(type, plan);
  const WeightRun p(run);
  const int64_t slice = run.slice(), image = plan.source_channels() * run.padded.plane() * run.acc;
  const ConvScratch padded(static_cast<size_t>(run.direct ? 0 : slice * image + 2 * kSlack));
  const ConvScratch partial(static_cast<size_t>(p.splits * p.partial() * run.acc));
  for (int64_t n = 0; n < plan.batch; n += slice) {
    const int64_t images = std::min(slice, plan.batch - n);
    const char* from =
        static_cast<const char*>(x) + n * plan.source_channels() * plan.source_area() * run.size;
    if (!run.direct) {
      conv_pad(type, plan, run.padded, from, images * plan.source_channels(), padded.data());
      from = padded.data();
    }
    const char* dy = static_cast<const char*>(y) + n * plan.result_channels() * plan.result_area() * run.size;
    const std::vector<Block> blocks = blocks_of(images, p.phase.columns(), run.gemm.depth);
    parallel_for(0, p.splits * plan.groups * p.row_blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index)
        weight_task(p, index, blocks, from, dy, partial.data(), n == 0);
    });
  }
  conv_sum_weight(type, partial.data(), p.splits, plan.groups, p.rows, p.columns, w);
}

}  // namespace vesta::cpu
