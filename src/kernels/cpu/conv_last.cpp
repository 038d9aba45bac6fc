// Channels-last convolutions on the GEMM kernels: result[pixels, rows] = A[pixels, K] * B[K, rows], K running over
// (tap, source channel). A's rows are gathered a K block and a tile of pixels at a time, one copy of contiguous channels
// for each pixel and tap (or row of taps); B is the weight, packed once per call. The weight's gradient is
// dw[(tap, channel), row] = A^T * dy, with A^T packed as columns and dy's rows as panels, no transposes.
#include <algorithm>
#include <cstring>
#include <memory>

#include "base/thread_pool.h"
#include "kernels/cpu/conv_kernels.h"
#include "kernels/cpu/conv_plan.h"
#include "kernels/cpu/gemm_kernels.h"
#include "kernels/cpu/gemm_scratch.h"

namespace vesta::cpu {
namespace {

constexpr int64_t kTileStrips = 8;     // strips of pixels a task works on: A's share of L2
constexpr int64_t kGroupBytes = 1024;  // of columns of B that stay in L2 while the strips pass
constexpr int64_t kWantedTasks = 16;
constexpr int64_t kWantedWeightTasks = 48;  // many more than threads, so that the last ones end together

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t cut(int64_t total, int64_t parts, int64_t index) { return total * index / parts; }
int64_t padded_row(int64_t elements, int64_t acc) {
  const int64_t line = 64 / acc;
  return (ceil_div(elements, line) | 1) *
         line;  // an odd number of lines: a strip's rows spread over L1's sets
}

// Channels [from, to) of one tap, or all channels of `taps` taps that read neighbouring pixels of a row: with one group
// these are contiguous.
struct Run {
  const ConvTap* tap;
  int64_t taps, from, to;
  int64_t size() const { return taps * (to - from); }
};
// A K block: runs of at most `depth` elements in all.
struct Block {
  std::vector<Run> runs;
  int64_t k = 0, before = 0;  // elements of it, and of the blocks before it
};
void add_run(std::vector<Block>& blocks, const Run& run, int64_t depth) {
  if (run.size() == 0) return;
  if (blocks.empty() || blocks.back().k + run.size() > depth) {
    const int64_t before = blocks.empty() ? 0 : blocks.back().before + blocks.back().k;
    blocks.emplace_back();
    blocks.back().before = before;
  }
  blocks.back().runs.push_back(run);
  blocks.back().k += run.size();
}
// `taps` are sorted by offset.
std::vector<Block> blocks_of(const std::vector<ConvTap>& taps, int64_t groups, int64_t channels,
                             int64_t depth) {
  std::vector<Block> blocks;
  const int64_t pieces = std::max<int64_t>(1, ceil_div(channels, depth));
  for (size_t t = 0; t < taps.size();) {
    size_t end = t + 1;
    const auto follows = [&](size_t i) {
      return taps[i].offset[0] == taps[t].offset[0] && taps[i].offset[1] == taps[t].offset[1] &&
             taps[i].offset[2] == taps[t].offset[2] + static_cast<int64_t>(i - t);
    };
    if (groups == 1)
      while (end < taps.size() && follows(end) && static_cast<int64_t>(end - t + 1) * channels <= depth)
        ++end;
    if (end - t > 1) {
      add_run(blocks, {&taps[t], static_cast<int64_t>(end - t), 0, channels}, depth);
    } else {
      for (int64_t q = 0; q < pieces; ++q)
        add_run(blocks, {&taps[t], 1, cut(channels, pieces, q), cut(channels, pieces, q + 1)}, depth);
    }
    t = end;
  }
  return blocks;
}
std::vector<ConvTap> sorted_by_offset(std::vector<ConvTap> taps) {
  std::sort(taps.begin(), taps.end(), [](const ConvTap& a, const ConvTap& b) {
    return std::lexicographical_compare(a.offset, a.offset + 3, b.offset, b.offset + 3);
  });
  return taps;
}

struct Call {
  Elem type;
  const ConvPlan& plan;
  const GemmKernels& gemm;
  const ConvKernels& conv;
  int64_t acc, size;

  Call(Elem t, const ConvPlan& p)
      : type(t),
        plan(p),
        gemm(gemm_kernels(t == Elem::F64 ? GemmType::F64 : GemmType::F32, cpu_isa())),
        conv(conv_kernels(cpu_isa())),
        acc(static_cast<int64_t>(elem_size(accumulate_type(t)))),
        size(static_cast<int64_t>(elem_size(t))) {}
  int64_t panels() const { return ceil_div(plan.rows, gemm.columns); }
};

struct Pixel {
  int64_t image, q[3];
};
// Pixels [from, from + count) of all images' grids.
std::vector<Pixel> pixels_of(const ConvPhase& phase, int64_t from, int64_t count) {
  std::vector<Pixel> pixels;
  pixels.reserve(static_cast<size_t>(count));
  const int64_t* size = phase.count;
  const int64_t columns = phase.columns(), rest = from % columns;
  Pixel p{from / columns, {rest / (size[1] * size[2]), rest / size[2] % size[1], rest % size[2]}};
  for (int64_t i = 0; i < count; ++i) {
    pixels.push_back(p);
    for (int d = 2; d >= 0; --d) {
      if (++p.q[d] < size[d]) break;
      p.q[d] = 0;
      if (d == 0) ++p.image;
    }
  }
  return pixels;
}

// Gathers, for each pixel, the elements [from, to) of what a run of neighbouring taps reads: to[r * row + i] in the
// accumulation type, zero outside of the source. Element e is channel `channel` + e % channels of tap e / channels.
struct Gather {
  // Where a pixel's element 0 lies, and which elements lie inside; none: begin > end.
  struct Place {
    int64_t base, begin, end;
  };
  struct Part {
    int64_t row, begin, end, from;
  };
  const Call& call;
  std::vector<Place> places;
  std::vector<int64_t> offsets;
  std::vector<Part> parts;  // pixels at an edge, whose taps lie inside in part

  // For runs that begin with `tap`.
  void find(const ConvTap& tap, int64_t channels, const std::vector<Pixel>& pixels, int64_t channel) {
    const ConvPlan& plan = call.plan;
    const int64_t width = plan.source[2], all = plan.source_channels();
    places.clear();
    for (const Pixel& pixel : pixels) {
      const int64_t z = pixel.q[0] * plan.step[0] + tap.offset[0],
                    y = pixel.q[1] * plan.step[1] + tap.offset[1];
      const int64_t x = pixel.q[2] * plan.step[2] + tap.offset[2];
      if (z < 0 || z >= plan.source[0] || y < 0 || y >= plan.source[1])
        places.push_back({0, 1, 0});
      else  // taps whose column lies inside are [-x, width - x)
        places.push_back(
            {(((pixel.image * plan.source[0] + z) * plan.source[1] + y) * width + x) * all + channel,
             -x * channels, (width - x) * channels});
    }
  }
  void copy(int64_t from, int64_t to, const char* source, char* out, int64_t row) {
    const auto pixels = static_cast<int64_t>(places.size());
    offsets.resize(places.size());
    parts.clear();
    for (int64_t r = 0; r < pixels; ++r) {
      const Place& p = places[static_cast<size_t>(r)];
      const bool whole = p.begin <= from && p.end >= to;
      offsets[static_cast<size_t>(r)] = whole ? p.base + from : -1;
      if (whole) continue;
      const int64_t begin = std::max(from, p.begin), end = std::min(to, p.end);
      if (begin < end) parts.push_back({r, begin, end, p.base + begin});
    }
    call.conv.pack_columns(call.type, source, offsets.data(), pixels, to - from, row, out);
    for (const Part& p : parts)
      call.conv.widen(call.type, source + p.from * call.size, p.end - p.begin,
                      out + (p.row * row + p.begin - from) * call.acc);
  }
};

struct PhaseRun {
  const Call& call;
  const ConvPhase& phase;
  std::vector<ConvTap> taps;
  std::vector<Block> blocks;
  int64_t k, pixels, tiles, column_tiles;
  bool in_place;
  ConvScratch b;  // packed weights: [group][block][panel][k][columns]

  PhaseRun(const Call& c, const ConvPhase& p, const void* w)
      : call(c),
        phase(p),
        taps(sorted_by_offset(p.taps)),
        blocks(blocks_of(taps, c.plan.groups, c.plan.channels, c.gemm.depth)),
        k(blocks.empty() ? 0 : blocks.back().before + blocks.back().k),
        pixels(c.plan.batch * p.columns()),
        tiles(ceil_div(pixels, kTileStrips * c.gemm.rows)),
        column_tiles(std::clamp<int64_t>(kWantedTasks / std::max<int64_t>(1, tiles * c.plan.groups), 1,
                                         std::max<int64_t>(1, c.panels() / 2))),
        in_place(c.size == c.acc),
        b(static_cast<size_t>(c.plan.groups * k * c.panels() * c.gemm.columns * c.acc)) {
    for (int d = 0; d < 3; ++d) in_place &= p.step[d] == 1 && p.first[d] == 0;
    pack(w);
  }
  int64_t group_bytes() const { return k * call.panels() * call.gemm.columns * call.acc; }
  int64_t tasks() const { return tiles * column_tiles * call.plan.groups; }

 private:
  void pack(const void* w) {
    const ConvPlan& plan = call.plan;
    const int64_t panel = call.gemm.columns, panels = call.panels();
    parallel_for(0, plan.groups * panels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) {
        const int64_t group = index / panels, j = index % panels * panel;
        for (const Block& block : blocks) {
          char* to = b.data() + group * group_bytes() +
                     (block.before * panels + index % panels * block.k) * panel * call.acc;
          for (const Run& run : block.runs)
            for (int64_t t = 0; t < run.taps; ++t) {
              const int64_t first =
                  group * plan.w_group + j * plan.w_row + run.from * plan.w_channel + run.tap[t].index;
              call.gemm.pack_b(conv_gemm_type(call.type), static_cast<const char*>(w) + first * call.size,
                               plan.w_channel, plan.w_row, run.to - run.from, std::min(panel, plan.rows - j),
                               to);
              to += (run.to - run.from) * panel * call.acc;
            }
        }
      }
    });
  }
};

void run_task(const PhaseRun& p, int64_t index, const char* source, const void* bias, char* result) {
  const Call& call = p.call;
  const ConvPlan& plan = call.plan;
  const GemmKernels& gemm = call.gemm;
  const int64_t column_tile = index % p.column_tiles, tile = index / p.column_tiles % p.tiles,
                group = index / p.column_tiles / p.tiles;
  const int64_t panel = gemm.columns, panels = call.panels();
  const int64_t j0 = cut(panels, p.column_tiles, column_tile) * panel;
  const int64_t j1 = std::min(plan.rows, cut(panels, p.column_tiles, column_tile + 1) * panel);
  const int64_t i0 = cut(p.pixels, p.tiles, tile), rows = cut(p.pixels, p.tiles, tile + 1) - i0,
                columns = j1 - j0;
  const int64_t strips = ceil_div(rows, gemm.rows),
                a_row = padded_row(std::min(gemm.depth, std::max<int64_t>(p.k, 1)), call.acc);
  const int64_t a_bytes = ceil_div(rows * a_row * call.acc, 64) * 64, t_row = columns + 16;
  const int64_t t_bytes = p.in_place ? 0 : rows * t_row * call.acc;
  char* a = static_cast<char*>(gemm_scratch(GemmBuffer::Tile, static_cast<size_t>(a_bytes + t_bytes)));
  const std::vector<Pixel> pixels = pixels_of(p.phase, i0, rows);
  Gather gather{call, {}, {}, {}};

  const int64_t total = plan.result_channels();
  char* c = p.in_place ? result + (i0 * total + group * plan.rows + j0) * call.acc : a + a_bytes;
  const int64_t ldc = p.in_place ? total : t_row;
  if (p.k == 0)
    for (int64_t i = 0; i < rows; ++i)
      std::memset(c + i * ldc * call.acc, 0, static_cast<size_t>(columns * call.acc));
  const int64_t step = std::max(panel, kGroupBytes / call.acc / panel * panel);
  for (const Block& block : p.blocks) {
    int64_t at = 0;
    for (const Run& run : block.runs) {
      // One tap's channels are a range of those of the group; several taps' are all of them.
      gather.find(*run.tap, plan.channels, pixels, group * plan.channels);
      gather.copy(run.from, run.from + run.size(), source, a + at * call.acc, a_row);
      at += run.size();
    }
    GemmStrip s;
    s.a_row = a_row;
    s.b_panel = panel * block.k;
    s.b_row = panel;
    s.ldc = ldc;
    s.k = block.k;
    s.alpha = 1;
    s.beta = block.before > 0 ? 1 : 0;
    const char* b = p.b.data() + group * p.group_bytes() + block.before * panels * panel * call.acc;
    for (int64_t j = j0; j < j1; j += step) {
      s.n = std::min(step, j1 - j);
      s.b = b + j * block.k * call.acc;
      for (int64_t strip = 0; strip < strips; ++strip) {
        const int64_t i = cut(rows, strips, strip);
        s.m = cut(rows, strips, strip + 1) - i;
        s.a = a + i * a_row * call.acc;
        s.c = c + (i * ldc + j - j0) * call.acc;
        gemm.strip_rows(s);
      }
    }
  }
  if (!bias && p.in_place) return;
  const GemmType type = conv_gemm_type(call.type);
  const int64_t first = group * plan.rows + j0;
  for (int64_t i = 0; i < rows; ++i) {
    char* row = c + i * ldc * call.acc;
    if (bias) gemm.add_row(type, row, static_cast<const char*>(bias) + first * call.size, columns);
    if (p.in_place) continue;
    const Pixel& pixel = pixels[static_cast<size_t>(i)];
    int64_t at = pixel.image;
    for (int d = 0; d < 3; ++d) at = at * plan.result[d] + p.phase.first[d] + pixel.q[d] * p.phase.step[d];
    gemm.store_row(type, row, result + (at * total + first) * call.size, columns);
  }
}

// ---- gradient of the weight ----
// Rows of dw's transpose: elements [from, to) of what a run of neighbouring taps reads.
struct WeightStrip {
  const ConvTap* tap;
  int64_t from, to;
};
struct WeightRun {
  const Call& call;
  const ConvPhase& phase;
  std::vector<WeightStrip> strips;
  int64_t taps, pixels, blocks, row_blocks, splits;

  explicit WeightRun(const Call& c) : call(c), phase(c.plan.phases[0]) {
    const int64_t channels = c.plan.channels;
    taps = static_cast<int64_t>(phase.taps.size());
    // The taps are in the order of their offsets here, so that a run is a row of the kernel where it has no gaps.
    for (const Block& block : blocks_of(phase.taps, c.plan.groups, channels, channels * taps))
      for (const Run& run : block.runs) {
        const int64_t pieces = ceil_div(run.size(), c.gemm.rows);
        for (int64_t q = 0; q < pieces; ++q)
          strips.push_back(
              {run.tap, run.from + cut(run.size(), pieces, q), run.from + cut(run.size(), pieces, q + 1)});
      }
    pixels = c.plan.batch * phase.columns();
    blocks = ceil_div(pixels, c.gemm.depth);
    row_blocks = ceil_div(static_cast<int64_t>(strips.size()), 12);
    splits =
        std::clamp<int64_t>(ceil_div(kWantedWeightTasks, std::max<int64_t>(1, row_blocks * c.plan.groups)), 1,
                            std::max<int64_t>(blocks, 1));
  }
  int64_t rows() const { return call.plan.channels * taps; }
  int64_t partial() const { return call.plan.groups * rows() * call.plan.rows; }
};

void weight_task(const WeightRun& p, int64_t index, const char* x, const char* dy, char* partial) {
  const Call& call = p.call;
  const ConvPlan& plan = call.plan;
  const GemmKernels& gemm = call.gemm;
  const int64_t row_block = index % p.row_blocks, group = index / p.row_blocks % plan.groups,
                split = index / p.row_blocks / plan.groups;
  const auto strips = static_cast<int64_t>(p.strips.size());
  const int64_t s0 = cut(strips, p.row_blocks, row_block), s1 = cut(strips, p.row_blocks, row_block + 1);
  const int64_t panel = gemm.columns, panels = call.panels(), columns = plan.rows,
                total = plan.result_channels();
  const int64_t a_bytes = ceil_div(gemm.depth * gemm.pitch * call.acc, 64) * 64;
  char* a = static_cast<char*>(
      gemm_scratch(GemmBuffer::Tile, static_cast<size_t>(a_bytes + panels * panel * gemm.depth * call.acc)));
  char* b = a + a_bytes;
  Gather gather{call, {}, {}, {}};
  bool first = true;
  for (int64_t q = cut(p.blocks, p.splits, split); q < cut(p.blocks, p.splits, split + 1); ++q) {
    const int64_t from = cut(p.pixels, p.blocks, q), kb = cut(p.pixels, p.blocks, q + 1) - from;
    const std::vector<Pixel> pixels = pixels_of(p.phase, from, kb);
    gemm.pack_b(conv_gemm_type(call.type), dy + (from * total + group * columns) * call.size, total, 1, kb,
                columns, b);
    for (int64_t strip = s0; strip < s1; ++strip) {
      const WeightStrip& w = p.strips[static_cast<size_t>(strip)];
      if (strip == s0 || w.tap != p.strips[static_cast<size_t>(strip - 1)].tap)
        gather.find(*w.tap, plan.channels, pixels, group * plan.channels);
      gather.copy(w.from, w.to, x, a, gemm.pitch);
      GemmStrip s;
      s.a = a;
      s.a_row = 0;
      s.b = b;
      s.b_panel = panel * kb;
      s.b_row = panel;
      s.c = partial +
            (split * p.partial() + (group * p.rows() + w.tap->index * plan.channels + w.from) * columns) *
                call.acc;
      s.ldc = columns;
      s.m = w.to - w.from;
      s.n = columns;
      s.k = kb;
      s.alpha = 1;
      s.beta = first ? 0 : 1;
      gemm.strip_columns(s);
    }
    first = false;
  }
  if (!first) return;
  for (int64_t strip = s0; strip < s1; ++strip) {  // a split without blocks
    const WeightStrip& w = p.strips[static_cast<size_t>(strip)];
    std::memset(partial + (split * p.partial() +
                           (group * p.rows() + w.tap->index * plan.channels + w.from) * columns) *
                              call.acc,
                0, static_cast<size_t>((w.to - w.from) * columns * call.acc));
  }
}

// w[group, row, channel, tap] from partial[split, group, (tap, channel), row], 16 rows at a time: a cache line each.
template <class A>
void store_weight(const WeightRun& p, const A* partial, char* w) {
  constexpr int64_t kRows = 16;
  const ConvPlan& plan = p.call.plan;
  const int64_t rows = p.rows(), columns = plan.rows, blocks = ceil_div(columns, kRows);
  parallel_for(0, plan.groups * blocks, ceil_div(4096, std::max<int64_t>(1, rows * kRows)),
               [&](int64_t begin, int64_t end) {
                 std::vector<A> found(static_cast<size_t>(kRows * rows));
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t group = i / blocks, j0 = i % blocks * kRows,
                                 n = std::min(kRows, columns - j0);
                   for (int64_t t = 0; t < p.taps; ++t)
                     for (int64_t c = 0; c < plan.channels; ++c) {
                       const A* from = partial + (group * rows + t * plan.channels + c) * columns + j0;
                       A sum[kRows] = {};
                       for (int64_t s = 0; s < p.splits; ++s, from += p.partial())
                         for (int64_t j = 0; j < n; ++j) sum[j] += from[j];
                       for (int64_t j = 0; j < n; ++j)
                         found[static_cast<size_t>(j * rows + c * p.taps + t)] = sum[j];
                     }
                   for (int64_t j = 0; j < n; ++j)
                     p.call.conv.narrow(p.call.type, found.data() + j * rows, rows,
                                        w + (group * columns + j0 + j) * rows * p.call.size);
                 }
               });
}

}  // namespace

void conv_last_run(Elem type, const ConvPlan& plan, const void* source, const void* w, const void* bias,
                   void* result) {
  const Call call(type, plan);
  std::vector<std::unique_ptr<PhaseRun>> phases;
  int64_t tasks = 0;
  for (const ConvPhase& phase : plan.phases)
    if (phase.columns() > 0) {
      phases.push_back(std::make_unique<PhaseRun>(call, phase, w));
      tasks += phases.back()->tasks();
    }
  parallel_for(0, tasks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      int64_t rest = index;
      size_t phase = 0;
      while (rest >= phases[phase]->tasks()) rest -= phases[phase++]->tasks();
      run_task(*phases[phase], rest, static_cast<const char*>(source), bias, static_cast<char*>(result));
    }
  });
}

void conv_last_weight(Elem type, const ConvShape& shape, const void* y, const void* x, void* w) {
  const ConvPlan plan = conv_plan(shape);
  const Call call(type, plan);
  const WeightRun p(call);
  const ConvScratch partial(static_cast<size_t>(p.splits * p.partial() * call.acc));
  parallel_for(0, p.splits * plan.groups * p.row_blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index)
      weight_task(p, index, static_cast<const char*>(x), static_cast<const char*>(y), partial.data());
  });
  if (type == Elem::F64)
    store_weight(p, reinterpret_cast<const double*>(partial.data()), static_cast<char*>(w));
  else
    store_weight(p, reinterpret_cast<const float*>(partial.data()), static_cast<char*>(w));
}

}  // namespace vesta::cpu
