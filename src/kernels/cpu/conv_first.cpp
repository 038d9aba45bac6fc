// Channels-first convolutions on the GEMM kernels. Per group, result[rows, columns] = A[rows, K] * B[K, columns] where A
// is the weight, K runs over (source channel, tap), the columns are the grid's positions, and B's rows are the source
// shifted by a tap. B exists only a block at a time: a task copies the K block's rows for its columns straight into the
// kernels' panels, in whole vectors (conv_first_gather.h), and multiplies all its strips of A with them. Where channels are
// few or the step is large, it copies from a padded form of the source, which costs another pass over memory.
#include <algorithm>
#include <cstring>
#include <memory>

#include "base/thread_pool.h"
#include "kernels/cpu/conv_first_gather.h"
#include "kernels/cpu/gemm_scratch.h"

namespace vesta::cpu {
namespace {

using namespace conv_first;

constexpr int64_t kPackedBytes = 320 << 10;  // one task's packed block: a share of L2
constexpr int64_t kWantedTasks = 48;         // many more than threads, so that the last ones end together
constexpr int64_t kWantedSplitTasks = 16;    // where more tasks gather the same rows again
constexpr int64_t kSmallPanels = 3;
constexpr double kTailWaste = 1.02;  // of an image's columns, up to which images are not run together

// A of every group: rows of K in the accumulation type. The weight itself where it has that form already.
struct Weights {
  int64_t row, group;  // elements from one row to the next, and from one group to the next
  std::unique_ptr<ConvScratch> copy;
  const char* data;

  Weights(const Run& run, const ConvPhase& phase, const void* w) {
    const ConvPlan& plan = run.plan;
    const auto taps = static_cast<int64_t>(phase.taps.size());
    bool in_order = true;
    for (int64_t t = 0; t < taps; ++t) in_order &= phase.taps[static_cast<size_t>(t)].index == t;
    const bool whole_rows = in_order && plan.w_channel == taps;
    // Rows a multiple of 4096 bytes apart would share one set of L1.
    if (whole_rows && run.size == run.acc && plan.w_row * run.acc % 4096 != 0) {
      row = plan.w_row;
      group = plan.w_group;
      data = static_cast<const char*>(w);
      return;
    }
    row = padded_row(plan.channels * taps, run.acc);
    group = plan.rows * row;
    copy = std::make_unique<ConvScratch>(static_cast<size_t>(plan.groups * group * run.acc));
    data = copy->data();
    const int64_t all = plan.groups * plan.rows, grain = ceil_div(16384, std::max<int64_t>(1, row));
    parallel_for(0, ceil_div(all, kRows), ceil_div(grain, kRows), [&](int64_t begin, int64_t end) {
      begin *= kRows, end = std::min(all, end * kRows);
      if (run.size != run.acc || whole_rows)
        run.wide ? widen_rows<double>(run, phase, w, whole_rows, begin, end)
                 : widen_rows<float>(run, phase, w, whole_rows, begin, end);
      else
        run.wide ? copy_rows<double>(run, phase, w, begin, end) : copy_rows<float>(run, phase, w, begin, end);
    });
  }

 private:
  static constexpr int64_t kRows = 16;  // of one block; neighbours in memory for the transposed direction

  static int64_t first_of(const ConvPlan& plan, int64_t i) {
    return i / plan.rows * plan.w_group + i % plan.rows * plan.w_row;
  }
  template <class A>
  A* row_of(int64_t i) const {
    return reinterpret_cast<A*>(copy->data()) + i * row;
  }
  template <class A>
  void widen_rows(const Run& run, const ConvPhase& phase, const void* w, bool whole, int64_t begin,
                  int64_t end) const {
    const ConvPlan& plan = run.plan;
    const auto taps = static_cast<int64_t>(phase.taps.size());
    const int64_t span = std::min(plan.w_channel, plan.w_row);  // the kernel's elements
    std::vector<A> channel(static_cast<size_t>(span));
    for (int64_t i = begin; i < end; ++i) {
      A* to = row_of<A>(i);
      const char* from = static_cast<const char*>(w) + first_of(plan, i) * run.size;
      if (whole) {
        run.conv.widen(run.type, from, plan.channels * taps, to);
        continue;
      }
      for (int64_t c = 0; c < plan.channels; ++c, to += taps) {
        run.conv.widen(run.type, from + c * plan.w_channel * run.size, span, channel.data());
        for (int64_t t = 0; t < taps; ++t)
          to[t] = channel[static_cast<size_t>(phase.taps[static_cast<size_t>(t)].index)];
      }
    }
  }
  template <class A>
  void copy_rows(const Run& run, const ConvPhase& phase, const void* w, int64_t begin, int64_t end) const {
    const ConvPlan& plan = run.plan;
    std::vector<int64_t> index;
    for (const ConvTap& tap : phase.taps) index.push_back(tap.index);
    const auto taps = static_cast<int64_t>(index.size());
    for (int64_t i0 = begin; i0 < end; i0 += kRows)
      for (int64_t c = 0; c < plan.channels; ++c)
        for (int64_t i = i0; i < std::min(end, i0 + kRows); ++i) {
          A* to = row_of<A>(i) + c * taps;
          const A* from = static_cast<const A*>(w) + first_of(plan, i) + c * plan.w_channel;
          for (int64_t t = 0; t < taps; ++t) to[t] = from[index[static_cast<size_t>(t)]];
        }
  }
};

double bias_value(Elem type, const ConvKernels& conv, const void* bias, int64_t i) {
  if (!bias) return 0;
  if (type == Elem::F64) return static_cast<const double*>(bias)[i];
  float v;
  conv.widen(type, static_cast<const char*>(bias) + i * static_cast<int64_t>(elem_size(type)), 1, &v);
  return v;
}

// Stores n accumulators of one result row of a group, columns from j on of the images' grids, where they belong; plane:
// that row of the first image.
void scatter_row(const Run& run, const ConvPhase& phase, bool dense, const char* row, int64_t j, int64_t n,
                 char* plane, char* narrow) {
  const int64_t image_bytes = run.plan.result_channels() * run.plan.result_area() * run.size;
  if (dense) {
    const int64_t area = phase.columns();
    for (int64_t i = 0; i < n;) {
      const int64_t at = (j + i) % area, m = std::min(area - at, n - i);
      run.conv.narrow(run.type, row + i * run.acc, m, plane + (j + i) / area * image_bytes + at * run.size);
      i += m;
    }
    return;
  }
  run.conv.narrow(run.type, row, n, narrow);
  const int64_t width = phase.count[2], height = phase.count[1], depth = phase.count[0];
  const int64_t* size = run.plan.result;
  for (int64_t i = 0; i < n;) {
    const int64_t x = (j + i) % width, line = (j + i) / width, m = std::min(width - x, n - i);
    const int64_t image = line / height / depth;
    const int64_t z = phase.first[0] + line / height % depth * phase.step[0],
                  y = phase.first[1] + line % height * phase.step[1];
    char* to = plane + image * image_bytes +
               ((z * size[1] + y) * size[2] + phase.first[2] + x * phase.step[2]) * run.size;
    const int64_t step = phase.step[2];
    const auto copy = [&]<class T>(T) {
      const T* from = reinterpret_cast<const T*>(narrow) + i;
      for (int64_t e = 0; e < m; ++e) reinterpret_cast<T*>(to)[e * step] = from[e];
    };
    if (run.size == 2)
      copy(uint16_t{});
    else if (run.size == 4)
      copy(uint32_t{});
    else
      copy(uint64_t{});
    i += m;
  }
}

// One phase of a call and how it is cut into tasks. Columns are an image's, or, where the last panel of each image would
// be too empty, those of all images of a slice in a row.
struct PhaseRun {
  const Run& run;
  const ConvPhase& phase;
  Weights weights;
  std::vector<int64_t> offsets;        // of the padded form
  int64_t k, depth, strips, together;  // together: images whose columns are one sequence
  bool dense, in_place;                // in_place: the kernels write the result itself

  PhaseRun(const Run& r, const ConvPhase& p, const void* w, int64_t images)
      : run(r), phase(p), weights(r, p, w) {
    const auto taps = static_cast<int64_t>(p.taps.size());
    k = r.plan.channels * taps;
    if (!r.direct) offsets = row_offsets(r, p);
    depth = std::min(r.gemm.depth, k);
    if (r.direct && taps > 0)
      depth = std::min(r.gemm.depth / taps, r.plan.channels) * taps;  // whole channels
    strips = ceil_div(r.plan.rows, r.gemm.rows);
    const int64_t area = p.columns();
    const bool waste =
        static_cast<double>(ceil_div(area, r.lanes()) * r.lanes()) > kTailWaste * static_cast<double>(area);
    // Small images run together too: all of A passes through the caches for each of them otherwise.
    const bool small = area < kSmallPanels * r.gemm.columns;
    together = waste || small ? images : 1;
    dense = true;
    for (int d = 0; d < 3; ++d) dense &= p.step[d] == 1 && p.first[d] == 0;
    in_place = dense && together == 1 && r.size == r.acc;
  }
  // How `images` images are cut, and into how many tasks.
  struct Cut {
    int64_t together, panels, column_blocks, row_blocks, tasks;
  };
  Cut cut_of(int64_t images) const {
    Cut c;
    c.together = std::min(together, images);
    const int64_t outer = images / c.together * run.plan.groups;
    c.panels = ceil_div(c.together * phase.columns(), run.gemm.columns);
    const int64_t fit =
        std::clamp<int64_t>(kPackedBytes / (std::max<int64_t>(depth, 1) * run.acc) / run.gemm.columns, 1, 32);
    const int64_t wanted = ceil_div(kWantedTasks, outer), wanted_split = ceil_div(kWantedSplitTasks, outer);
    // Short of tasks: first blocks of 2 panels (of 4 in small products, whose tasks would cost more than they do), then
    // blocks of rows, which gather the same columns again.
    const int64_t least = run.plan.rows * k * run.gemm.columns < (int64_t{1} << 21) ? 4 : 2;
    c.column_blocks = std::max(ceil_div(c.panels, fit), std::min(wanted, ceil_div(c.panels, least)));
    c.row_blocks = std::clamp<int64_t>(wanted_split / c.column_blocks, 1, ceil_div(strips, 4));
    c.tasks = outer * c.column_blocks * c.row_blocks;
    return c;
  }
};

// source: the slice's images, padded unless run.direct; result: of the slice.
void run_task(const PhaseRun& p, const PhaseRun::Cut& c, int64_t index, const char* source, const void* bias,
              char* result) {
  const Run& run = p.run;
  const ConvPlan& plan = run.plan;
  const GemmKernels& gemm = run.gemm;
  const int64_t row_block = index % c.row_blocks, column_block = index / c.row_blocks % c.column_blocks;
  const int64_t group = index / c.row_blocks / c.column_blocks % plan.groups;
  const int64_t image = index / c.row_blocks / c.column_blocks / plan.groups * c.together;
  const int64_t area = p.phase.columns(), panel = gemm.columns;
  const int64_t j0 = cut(c.panels, c.column_blocks, column_block) * panel;
  const int64_t j1 = std::min(c.together * area, cut(c.panels, c.column_blocks, column_block + 1) * panel);
  const int64_t s0 = cut(p.strips, c.row_blocks, row_block), s1 = cut(p.strips, c.row_blocks, row_block + 1);
  const auto strip_start = [&](int64_t s) { return cut(plan.rows, p.strips, s); };
  const int64_t i0 = strip_start(s0), rows = strip_start(s1) - i0, columns = j1 - j0;
  const int64_t task_panels = ceil_div(columns, panel), depth = p.depth;

  std::vector<std::vector<Line>> lines(static_cast<size_t>(task_panels));
  std::vector<std::vector<ConvCopy>> copies(static_cast<size_t>(run.direct ? 0 : task_panels));
  for (int64_t q = 0; q < task_panels; ++q) {
    const auto at = static_cast<size_t>(q);
    append_lines(p.phase, j0 + q * panel, std::min(j1, j0 + (q + 1) * panel), 0, lines[at]);
    if (!run.direct) append_copies(run, lines[at], copies[at]);
  }
  GatherRows gather_rows{run, p.phase, {}};
  const int64_t packed_bytes = ceil_div(task_panels * panel * depth * run.acc + kSlack, 64) * 64;
  const int64_t t_row = columns + 16, t_bytes = p.in_place ? 0 : ceil_div(rows * t_row * run.acc, 64) * 64;
  char* packed = static_cast<char*>(
      gemm_scratch(GemmBuffer::Tile, static_cast<size_t>(packed_bytes + t_bytes + columns * run.size + 64)));
  char* t = packed + packed_bytes;
  source += (image * plan.groups + group) * plan.channels *
            (run.direct ? plan.source_area() * run.size : run.padded.plane() * run.acc);
  char* planes = result + ((image * plan.groups + group) * plan.rows) * plan.result_area() * run.size;
  char* out = p.in_place ? planes + (i0 * area + j0) * run.acc : t;
  const int64_t ldc = p.in_place ? area : t_row;

  if (p.k == 0)  // no tap reaches these results
    for (int64_t i = 0; i < rows; ++i)
      std::memset(out + i * ldc * run.acc, 0, static_cast<size_t>(columns * run.acc));
  for (int64_t k0 = 0; k0 < p.k; k0 += depth) {
    const int64_t kb = std::min(depth, p.k - k0);
    for (int64_t q = 0; q < task_panels; ++q) {
      char* to = packed + q * kb * panel * run.acc;
      const auto at = static_cast<size_t>(q);
      if (run.direct)
        gather_rows(lines[at], k0, k0 + kb, source, panel, to);
      else
        run.conv.gather(run.wide, source, p.offsets.data() + k0, kb, copies[at].data(),
                        static_cast<int64_t>(copies[at].size()), panel, to);
    }
    GemmStrip s;
    s.a_row = p.weights.row;
    s.b = packed;
    s.b_panel = panel * kb;
    s.b_row = panel;
    s.ldc = ldc;
    s.n = columns;
    s.k = kb;
    s.alpha = 1;
    s.beta = k0 > 0 ? 1 : 0;
    for (int64_t strip = s0; strip < s1; ++strip) {
      const int64_t i = strip_start(strip);
      s.m = strip_start(strip + 1) - i;
      s.a = p.weights.data + (group * p.weights.group + i * p.weights.row + k0) * run.acc;
      s.c = out + (i - i0) * ldc * run.acc;
      gemm.strip_rows(s);
    }
  }
  for (int64_t i = 0; i < rows; ++i) {
    char* row = out + i * ldc * run.acc;
    if (bias)
      run.conv.add_value(run.wide, row, columns,
                         bias_value(run.type, run.conv, bias, group * plan.rows + i0 + i));
    if (!p.in_place)
      scatter_row(run, p.phase, p.dense, row, j0, columns, planes + (i0 + i) * plan.result_area() * run.size,
                  t + t_bytes);
  }
}

}  // namespace

void conv_first_run(Elem type, const ConvPlan& plan, const void* source, const void* w, const void* bias,
                    void* result) {
  const Run run(type, plan);
  const int64_t slice = run.slice(), image = plan.source_channels() * run.padded.plane() * run.acc;
  std::vector<std::unique_ptr<PhaseRun>> phases;
  for (const ConvPhase& phase : plan.phases)
    if (phase.columns() > 0) phases.push_back(std::make_unique<PhaseRun>(run, phase, w, slice));
  const ConvScratch padded(static_cast<size_t>(run.direct ? 0 : slice * image + 2 * kSlack));
  for (int64_t n = 0; n < plan.batch; n += slice) {
    const int64_t images = std::min(slice, plan.batch - n);
    const char* from =
        static_cast<const char*>(source) + n * plan.source_channels() * plan.source_area() * run.size;
    if (!run.direct) {
      conv_pad(type, plan, run.padded, from, images * plan.source_channels(), padded.data());
      from = padded.data();
    }
    char* to = static_cast<char*>(result) + n * plan.result_channels() * plan.result_area() * run.size;
    std::vector<PhaseRun::Cut> cuts;
    int64_t tasks = 0;
    for (const auto& p : phases) {
      cuts.push_back(p->cut_of(images));
      tasks += cuts.back().tasks;
    }
    parallel_for(0, tasks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) {
        int64_t rest = index;
        size_t phase = 0;
        while (rest >= cuts[phase].tasks) rest -= cuts[phase++].tasks;
        run_task(*phases[phase], cuts[phase], rest, from, bias, to);
      }
    });
  }
}

}  // namespace vesta::cpu
