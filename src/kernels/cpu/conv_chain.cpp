// Convolutions in both directions by chains (conv_chain.h): result[pixels, rows] = sum over taps of
// source[pixels + tap, channels] * w[tap][channels, rows], for each group. A task takes a box of results, stages the part
// of the source that it reads, and for each panel of rows walks the lines of the box, register tile by register tile. Channels
// last results are written in place; others into scratch with channels innermost, which is then transposed.
#include <algorithm>
#include <cstring>
#include <memory>

#include "base/thread_pool.h"
#include "kernels/cpu/conv_chain.h"
#include "kernels/cpu/gemm_scratch.h"

namespace vesta::cpu {
namespace {

using namespace conv_chain;

constexpr int64_t kFewestTasks = 8;
constexpr double kTaskProducts = 1 << 20;  // some 20 us: smaller tasks cost more than they bring

struct PhaseRun {
  const Call& call;
  const ConvPhase& phase;
  std::vector<ConvTap> taps;
  std::vector<Run> runs;
  std::vector<int64_t> before;  // of each run: rows of a panel before its first
  int64_t k;                    // rows of a panel, of which some between the taps are unused

  // `first`: rows of a panel that other phases take.
  PhaseRun(const Call& c, const ConvPhase& p, int64_t first)
      : call(c), phase(p), taps(sorted_by_offset(p.taps)), runs(runs_of(c, taps)) {
    // Taps are written side by side when the weights are packed: an odd number of lines apart, or they would share the
    // same few sets of the caches. Merged ones must be contiguous.
    const int64_t gap = c.plan.channels % 2 == 0 ? 1 : 0;
    int64_t at = first;
    for (const Run& run : runs) {
      before.push_back(at);
      at += run.count * c.plan.channels + gap;
    }
    k = at - first;
  }
};

// The weights of all phases as panels: [group][panel][k of all phases][columns].
class Weights {
 public:
  Weights(const Call& call, const std::vector<std::unique_ptr<PhaseRun>>& phases, const void* w)
      : panels_(ceil_div(call.plan.rows, call.gemm.columns)),
        panel_bytes_(rows_of(phases) * call.gemm.columns * call.acc),
        data_(static_cast<size_t>(call.plan.groups * panels_ * panel_bytes_)) {
    pack(call, phases, static_cast<const char*>(w));
  }
  const char* panel(int64_t group, int64_t index) const {
    return data_.data() + (group * panels_ + index) * panel_bytes_;
  }

 private:
  static int64_t rows_of(const std::vector<std::unique_ptr<PhaseRun>>& phases) {
    int64_t rows = 0;
    for (const auto& p : phases) rows += p->k;
    return rows;
  }
  // Row (tap, channel) of a panel from w's (row, channel, tap): transposes, whose lines go where their tap belongs.
  void pack(const Call& call, const std::vector<std::unique_ptr<PhaseRun>>& phases, const char* w) {
    constexpr int64_t kChannels =
        16;  // of one transpose: what it writes stays in L1 until its lines are whole
    const ConvPlan& plan = call.plan;
    const int64_t columns = call.gemm.columns, span = std::min(plan.w_channel, plan.w_row);
    const bool whole = plan.w_row == plan.channels * plan.w_channel;  // a row's (channel, tap) are contiguous
    const int64_t step = whole ? kChannels : 1;
    std::vector<int64_t> to(static_cast<size_t>(step * span), -1), from(static_cast<size_t>(columns));
    for (const auto& p : phases)
      for (size_t r = 0; r < p->runs.size(); ++r)
        for (int64_t t = 0; t < p->runs[r].count; ++t)
          for (int64_t c = 0; c < step; ++c)
            to[static_cast<size_t>(c * span + p->runs[r].tap[t].index)] =
                (p->before[r] + t * plan.channels + c) * columns;
    for (int64_t r = 0; r < columns; ++r) from[static_cast<size_t>(r)] = r * plan.w_row;
    const int64_t grain = ceil_div(16384, std::max<int64_t>(1, plan.channels * span * columns));
    parallel_for(0, plan.groups * panels_, grain, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) {
        const int64_t group = index / panels_, j = index % panels_ * columns;
        const int64_t rows = std::min(columns, plan.rows - j);
        char* out = data_.data() + index * panel_bytes_;
        if (rows < columns) std::memset(out, 0, static_cast<size_t>(panel_bytes_));
        const char* source = w + (group * plan.w_group + j * plan.w_row) * call.size;
        if (span == 1) {
          if (to[0] >= 0 && plan.channels > 0)
            call.gemm.pack_b(conv_gemm_type(call.type), source, plan.w_channel, plan.w_row, plan.channels,
                             rows, out + to[0] * call.acc);
          continue;
        }
        for (int64_t c = 0; c < plan.channels; c += step) {
          const char* first = source + c * plan.w_channel * call.size;
          if (!whole)  // one block of memory a channel, far from the next
            for (int64_t byte = 0; byte < rows * span * call.size; byte += 64)
              __builtin_prefetch(first + 4 * plan.w_channel * call.size + byte);
          call.conv.transpose_widen(call.type, first, from.data(), rows, to.data(),
                                    std::min(step, plan.channels - c) * span, out + c * columns * call.acc);
        }
      }
    });
  }

  int64_t panels_, panel_bytes_;
  ConvScratch data_;
};

// Boxes of results, and blocks of panels.
struct Cuts {
  int64_t parts[3] = {1, 1, 1}, images, image_parts, row_blocks, tasks;
};

int64_t staged_elements(const Call& call, const Cuts& c) {
  const ConvPlan& plan = call.plan;
  Range dim[3];
  for (int d = 0; d < 3; ++d) {
    bool any = false;
    const Range box = part(plan.result[d], c.parts[d], c.parts[d] / 2);
    for (const ConvPhase& phase : plan.phases)
      grow_source(call, phase, d, grid_range(phase, d, box), dim[d], any);
  }
  clip_source(call, dim);
  return Block(call, {0, c.images}, dim, {0, plan.channels}).elements();
}

Cuts cuts_of(const Call& call) {
  const ConvPlan& plan = call.plan;
  Cuts c;
  const int64_t panels = ceil_div(plan.rows, call.gemm.columns), n = plan.batch;
  c.images = call.by_image ? ceil_div(n, ceil_div(n, call.gemm.rows)) : 1;
  c.image_parts = ceil_div(n, c.images);
  double taps = 0;
  for (const ConvPhase& phase : plan.phases)
    taps += static_cast<double>(phase.taps.size()) / static_cast<double>(plan.phases.size());
  const double products = static_cast<double>(n) * static_cast<double>(plan.result_area()) *
                          static_cast<double>(plan.channels * plan.rows) * taps;
  const auto boxes = [&] { return c.image_parts * c.parts[0] * c.parts[1] * c.parts[2]; };
  while (true) {
    const bool large = staged_elements(call, c) * call.acc > kBlockBytes;
    const bool few =
        boxes() * plan.groups < kWantedTasks && products / static_cast<double>(boxes()) > 2 * kTaskProducts;
    if (!large && !few) break;
    // Depth and height are cut to squares; lines only when nothing else is left.
    const int64_t z = ceil_div(plan.result[0], c.parts[0]), y = ceil_div(plan.result[1], c.parts[1]),
                  x = ceil_div(plan.result[2], c.parts[2]);
    const int d = z > 1 && z >= y ? 0 : y > 1 ? 1 : 2;
    const int64_t size = d == 0 ? z : d == 1 ? y : x;
    if (d == 2 && (x <= 4 * call.gemm.rows || !large)) break;
    // The next number of parts that makes them smaller.
    do ++c.parts[d];
    while (ceil_div(plan.result[d], c.parts[d]) == size);
  }
  c.row_blocks = boxes() * plan.groups >= kFewestTasks ||
                         products / static_cast<double>(boxes() * plan.groups) < 2 * kTaskProducts
                     ? 1
                     : std::min(panels, ceil_div(kFewestTasks, boxes() * plan.groups));
  c.tasks = boxes() * plan.groups * c.row_blocks;
  return c;
}

// The tiles of a line. a, c: elements from the line's first; tiles with `first` begin a sum, others add to it.
struct Tile {
  int64_t a, c, m, link, links;
  bool first;
};
struct Pattern {
  std::vector<char> inside;  // of each run: whether the line meets it
  std::vector<Tile> tiles;
  std::vector<GemmLink> links;
};
struct Line {
  int64_t a, c;  // elements of the staged block, and of C
  size_t pattern;
};

// How a task walks one phase.
struct Walk {
  const PhaseRun& p;
  const Block& block;
  int64_t a_row, ldc;
  std::vector<Pattern> patterns;
  std::vector<Line> lines;

  // c_step: elements of C from one result position to the next.
  Walk(const PhaseRun& run, const Block& b, const Range (&box)[3], const int64_t (&c_step)[3],
       int64_t c_image)
      : p(run), block(b) {
    const Call& call = p.call;
    const ConvPhase& phase = p.phase;
    const int64_t* step = call.plan.step;
    Range grid[3];
    for (int d = 0; d < 3; ++d) grid[d] = grid_range(phase, d, box[d]);
    a_row = call.by_image ? block.image_step : step[2] * block.step[2];
    ldc = call.by_image ? c_image : phase.step[2] * c_step[2];
    if (grid[2].size() <= 0) return;
    std::vector<char> inside(p.runs.size());
    const Range columns = call.by_image ? grid[2] : Range{grid[2].from, grid[2].from + 1};
    int64_t q[3];
    for (q[0] = grid[0].from; q[0] < grid[0].to; ++q[0])
      for (q[1] = grid[1].from; q[1] < grid[1].to; ++q[1])
        for (q[2] = columns.from; q[2] < columns.to; ++q[2]) {
          for (size_t r = 0; r < p.runs.size(); ++r) {
            inside[r] = 1;
            for (int d = 0; d < (call.by_image ? 3 : 2); ++d) {
              const int64_t at = q[d] * step[d] + p.runs[r].tap->offset[d];
              if (at < 0 || at >= call.plan.source[d]) inside[r] = 0;
            }
          }
          size_t found = 0;
          while (found < patterns.size() && patterns[found].inside != inside) ++found;
          if (found == patterns.size()) add_pattern(inside, grid[2], c_step[2]);
          int64_t c = 0;
          for (int d = 0; d < 3; ++d) c += (phase.first[d] + q[d] * phase.step[d] - box[d].from) * c_step[d];
          lines.push_back({block.at(q[0] * step[0], q[1] * step[1], q[2] * step[2]), c, found});
        }
  }

  void run(const char* staged, const char* weights, const void* bias, int64_t columns, char* c) const {
    const Call& call = p.call;
    GemmChain s;
    s.a_row = a_row;
    s.b = weights;
    s.ldc = ldc;
    s.n = columns;
    for (const Line& line : lines) {
      const Pattern& pattern = patterns[line.pattern];
      for (const Tile& tile : pattern.tiles) {
        s.a = staged + (line.a + tile.a) * call.acc;
        s.links = pattern.links.data() + tile.link;
        s.count = tile.links;
        s.c = c + (line.c + tile.c) * call.acc;
        s.m = tile.m;
        s.first = bias;
        s.add = !tile.first;
        call.gemm.chain_rows(s);
      }
    }
  }

 private:
  void add_pattern(const std::vector<char>& inside, Range grid, int64_t c_step) {
    const Call& call = p.call;
    const int64_t rows = call.by_image ? block.images.size() : grid.size(),
                  strips = ceil_div(rows, call.gemm.rows), step = call.plan.step[2];
    const int64_t c_row = call.by_image ? ldc : p.phase.step[2] * c_step;
    patterns.emplace_back();
    Pattern& pattern = patterns.back();
    pattern.inside = inside;
    // Which rows of a strip lie inside with a run.
    const auto meets = [&](const Run& run, Range strip) {
      if (call.by_image || call.merge) return Range{0, strip.size()};
      const int64_t x = (grid.from + strip.from) * step + run.tap->offset[2], width = call.plan.source[2];
      const int64_t from = std::min(strip.size(), x >= 0 ? 0 : ceil_div(-x, step));
      return Range{from, std::clamp(x >= width ? 0 : ceil_div(width - x, step), from, strip.size())};
    };
    for (int64_t i = 0; i < strips; ++i) {
      const Range strip = part(rows, strips, i);
      std::vector<Range> ranges;
      for (const Run& run : p.runs) ranges.push_back(meets(run, strip));
      // All rows' runs begin the sums; then those of each other range of rows.
      Range now{0, strip.size()};
      for (bool first = true;; first = false) {
        Tile tile{(strip.from + now.from) * a_row,
                  (strip.from + now.from) * c_row,
                  now.size(),
                  static_cast<int64_t>(pattern.links.size()),
                  0,
                  first};
        for (size_t r = 0; r < p.runs.size(); ++r) {
          if (!inside[r] || ranges[r].from != now.from || ranges[r].to != now.to) continue;
          ranges[r] = {};
          pattern.links.push_back({block.offset(p.runs[r].tap->offset), p.before[r] * call.gemm.columns,
                                   p.runs[r].count * call.plan.channels});
          ++tile.links;
        }
        pattern.tiles.push_back(tile);
        size_t next = 0;
        while (next < ranges.size() && !(inside[next] && ranges[next].size() > 0)) ++next;
        if (next == ranges.size()) break;
        now = ranges[next];
      }
    }
  }
};

void run_task(const Call& call, const std::vector<std::unique_ptr<PhaseRun>>& phases, const Weights& weights,
              const Cuts& cuts, int64_t index, const char* source, const char* bias, char* result) {
  const ConvPlan& plan = call.plan;
  const int64_t panels = ceil_div(plan.rows, call.gemm.columns);
  // Tasks next to one another share their weights.
  int64_t rest = index;
  const auto next = [&](int64_t count) {
    const int64_t i = rest % count;
    rest /= count;
    return i;
  };
  Range box[3], dim[3];
  for (int d = 2; d >= 0; --d) box[d] = part(plan.result[d], cuts.parts[d], next(cuts.parts[d]));
  const Range images = part(plan.batch, cuts.image_parts, next(cuts.image_parts));
  const Range panel = part(panels, cuts.row_blocks, next(cuts.row_blocks));
  const int64_t group = rest;
  const Range rows{panel.from * call.gemm.columns, std::min(plan.rows, panel.to * call.gemm.columns)};
  for (int d = 0; d < 3; ++d) {
    bool any = false;
    for (const auto& p : phases) grow_source(call, p->phase, d, grid_range(p->phase, d, box[d]), dim[d], any);
  }
  clip_source(call, dim);
  const Block block(call, images, dim, {0, plan.channels});

  // C: the result itself, or a box of rows, which a transpose or a rounding moves there.
  const bool in_place = call.layout == ConvLayout::Last && call.size == call.acc;
  const int64_t all = plan.result_channels(), first_row = group * plan.rows + rows.from;
  const int64_t pixel = in_place ? all : padded_row(rows.size(), call.acc);
  const int64_t box_numel = box[0].size() * box[1].size() * box[2].size();
  const int64_t c_step[3] = {
      pixel * (in_place ? plan.result[1] * plan.result[2] : box[1].size() * box[2].size()),
      pixel * (in_place ? plan.result[2] : box[2].size()), pixel};
  const int64_t c_image = pixel * (in_place ? plan.result_area() : box_numel);
  const int64_t staged_bytes = ceil_div(block.elements() * call.acc, 64) * 64,
                c_bytes = in_place ? 0 : images.size() * c_image * call.acc;
  const int64_t bias_bytes = (panel.size() + 1) * call.gemm.columns * call.acc;
  char* staged = static_cast<char*>(
      gemm_scratch(GemmBuffer::Tile, static_cast<size_t>(staged_bytes + c_bytes + bias_bytes + 64)));
  char* c = in_place
                ? result + ((((images.from * plan.result[0] + box[0].from) * plan.result[1] + box[1].from) *
                                 plan.result[2] +
                             box[2].from) *
                                all +
                            first_row) *
                               call.acc
                : staged + staged_bytes;
  char* wide_bias = staged + staged_bytes + c_bytes;
  Tables tables;
  stage(call, block, group, source, tables, staged);
  if (bias) {
    std::memset(wide_bias, 0, static_cast<size_t>(bias_bytes));
    call.conv.widen(call.type, bias + first_row * call.size, rows.size(), wide_bias);
  }
  std::vector<Walk> walks;
  walks.reserve(phases.size());
  for (const auto& p : phases) walks.emplace_back(*p, block, box, c_step, c_image);
  for (int64_t j = panel.from; j < panel.to; ++j) {
    const int64_t at = j * call.gemm.columns - rows.from, n = std::min(call.gemm.columns, rows.size() - at);
    for (const Walk& walk : walks)
      walk.run(staged, weights.panel(group, j), bias ? wide_bias + at * call.acc : nullptr, n,
               c + at * call.acc);
  }
  if (in_place) return;

  const int64_t area = plan.result_area();
  if (call.layout == ConvLayout::Last) {
    const GemmType type = conv_gemm_type(call.type);
    for (int64_t n = images.from; n < images.to; ++n)
      for (int64_t i = 0; i < box_numel; ++i, c += pixel * call.acc) {
        const int64_t z = box[0].from + i / box[2].size() / box[1].size(),
                      y = box[1].from + i / box[2].size() % box[1].size(),
                      x = box[2].from + i % box[2].size();
        call.gemm.store_row(
            type, c,
            result +
                ((n * area + (z * plan.result[1] + y) * plan.result[2] + x) * all + first_row) * call.size,
            rows.size());
      }
    return;
  }
  // Runs of results that are contiguous in a plane.
  const bool lines = box[2].size() < plan.result[2], planes = !lines && box[1].size() < plan.result[1];
  const int64_t run = box[2].size() * (lines ? 1 : box[1].size() * (planes ? 1 : box[0].size()));
  tables.from.resize(static_cast<size_t>(run));
  for (int64_t i = 0; i < run; ++i) tables.from[static_cast<size_t>(i)] = i * pixel;
  tables.to.resize(static_cast<size_t>(rows.size()));
  for (int64_t r = 0; r < rows.size(); ++r) tables.to[static_cast<size_t>(r)] = r * area;
  if (run == 0) return;
  for (int64_t n = images.from; n < images.to; ++n)
    for (int64_t i = 0; i < box_numel; i += run, c += run * pixel * call.acc) {
      const int64_t z = box[0].from + i / box[2].size() / box[1].size(),
                    y = box[1].from + i / box[2].size() % box[1].size();
      call.conv.transpose_narrow(
          call.type, c, tables.from.data(), run, tables.to.data(), rows.size(),
          result + ((n * all + first_row) * area + (z * plan.result[1] + y) * plan.result[2] + box[2].from) *
                       call.size);
    }
}

}  // namespace

void conv_chain_run(Elem type, ConvLayout layout, const ConvPlan& plan, const void* source, const void* w,
                    const void* bias, void* result) {
  if (plan.batch == 0 || plan.rows == 0 || plan.result_area() == 0) return;
  const Call call(type, layout, plan);
  std::vector<std::unique_ptr<PhaseRun>> phases;
  int64_t rows = 0;
  for (const ConvPhase& phase : plan.phases) {
    if (phase.columns() == 0) continue;
    phases.push_back(std::make_unique<PhaseRun>(call, phase, rows));
    rows += phases.back()->k;
  }
  const Weights weights(call, phases, w);
  const Cuts cuts = cuts_of(call);
  parallel_for(0, cuts.tasks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index)
      run_task(call, phases, weights, cuts, index, static_cast<const char*>(source),
               static_cast<const char*>(bias), static_cast<char*>(result));
  });
}

}  // namespace vesta::cpu
