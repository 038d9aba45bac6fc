// The packed GEMM driver. C is cut into tiles: slices of columns whose B fits a few MB, and in them a few strips (of up to
// `rows` rows) a tile. A tile walks K blocks; copies its strips of A unless they can be read in place; then walks groups
// of columns whose panels fit L2, and in them strip after strip. The epilogue runs on a finished strip, rows as long as
// the group.
//
// Packed copies stay private to the thread that uses them: a line written by one core and read by another costs more
// than copying it twice (768x128x128 on 2 cores: 163 against 115 us). A thread packs a slice of B while it runs its
// first tile there, panel by panel, and keeps it for the tiles that follow; the strips fetch what is packed next.
//
// Each thread starts with its own part of the tiles, the same one in every product of that shape, so that rows stay in
// the cache of the core that wrote them; done with these, it helps the others.
//
// Small products skip packing and the pool. Batches of many items run one item per task, each packing for itself.
// An element's sum depends on K's blocks alone, so neither tiles nor threads change a bit.
#include <algorithm>
#include <atomic>

#include "base/thread_pool.h"
#include "kernels/cpu/gemm_product.h"
#include "kernels/cpu/gemm_scratch.h"

namespace vesta::cpu {

void gemm_finish(const Product& p, char* t, int64_t t_row, int64_t i, int64_t rows, int64_t j, int64_t n,
                 bool in_c) {
  const GemmEpilogue* e = p.g.epilogue;
  if (!e && in_c) return;
  for (int64_t r = 0; r < rows; ++r, t += t_row * p.acc_bytes) {
    if (e) {
      if (e->bias) p.kernels.add_row(p.g.out, t, static_cast<const char*>(e->bias) + j * p.out_bytes, n);
      if (e->apply) e->apply(t, n, p.first_row + i + r, j, e->ctx);
      if (p.residual)
        p.kernels.add_row(p.g.out, t, p.residual + ((i + r) * e->residual_ld + j) * p.out_bytes, n);
    }
    if (!in_c) p.kernels.store_row(p.g.out, t, p.c + ((i + r) * p.g.ldc + j) * p.out_bytes, n);
  }
}

namespace {

constexpr int64_t kSliceBytes = 4 << 20;  // packed B of a slice, a thread's share of L3
constexpr int64_t kGroupBytes =
    1024;  // columns of a group, in bytes of accumulators: x depth, B's share of L2
constexpr int64_t kTileProducts = 3 << 19;  // about 14 us of one core: enough to hide a task's cost
constexpr int64_t kTileStrips = 10;     // bounds A's share of L2; B then comes from L3 at half a byte a cycle
constexpr int64_t kTilesPerThread = 8;  // at most, for balance; a tile more costs little
constexpr int64_t kSmallProducts = 1 << 18;  // 64^3: below, one core and no packing
constexpr int64_t kDirectProducts =
    2 * kTileProducts;  // below, one core anyway: no packing either if B stays near
constexpr int64_t kDirectBytes = 128 << 10;
constexpr int64_t kPackRows =
    8;  // rows copied at a time from one panel to the next: lines stay in L1, even 2 KiB apart
constexpr int64_t kDirectColumns =
    256;  // of C, up to which a transposed A is best read in place, however it lies
constexpr int64_t kAheadRows =
    12;  // rows of an unpacked B fetched ahead: more would collide in L1 where rows are 4 KiB apart
constexpr int64_t kQueues = 64;  // threads that keep their own part of the tiles; more share one

// Part `index` of [0, total) cut into `parts` even pieces.
int64_t cut(int64_t total, int64_t parts, int64_t index) { return total * index / parts; }

// Packed strips of A: [k][pitch] where A's rows are strided (by_columns), else rows of padded_row() units. The padding
// makes rows an odd number of lines apart, so that they spread over L1's sets.
bool by_columns(const Product& p) { return p.g.a_col != 1; }
int64_t padded_row(const Product& p, int64_t units) {
  const int64_t line = 64 / p.kernels.unit_bytes;
  return (ceil_div(units, line) | 1) * line;
}
int64_t strip_units(const Product& p, int64_t units) {
  return by_columns(p) ? p.kernels.pitch * units : p.kernels.rows * padded_row(p, units);
}

int64_t strips_of(const Product& p) { return ceil_div(p.g.m, p.kernels.rows); }
int64_t strip_start(const Product& p, int64_t strip) { return cut(p.g.m, strips_of(p), strip); }

// Copies K block [p0, p0 + depth) of strips [from, to) of A.
void pack_strips(const Product& p, int64_t from, int64_t to, int64_t p0, int64_t depth, char* out) {
  const GemmKernels& kernels = p.kernels;
  const GemmArgs& g = p.g;
  const int64_t units = p.units(depth), strip_bytes = strip_units(p, units) * kernels.unit_bytes;
  if (!by_columns(p)) {
    for (int64_t strip = from; strip < to; ++strip) {
      const int64_t i = strip_start(p, strip);
      kernels.pack_a(g.type, p.a + (i * g.a_row + p0) * p.in_bytes, g.a_row, 1, strip_start(p, strip + 1) - i,
                     depth, padded_row(p, units), out + (strip - from) * strip_bytes);
    }
    return;
  }
  const int64_t i0 = strip_start(p, from), i1 = strip_start(p, to);
  const auto prefetch = [&](int64_t q) {
    // Rows of a transposed A are far apart, so the hardware does not see the next ones coming.
    if (g.a_row != 1) return;
    for (int64_t r = q; r < std::min(q + kPackRows, depth); ++r) {
      const char* row = p.a + (i0 + (p0 + r) * g.a_col) * p.in_bytes;
      for (int64_t byte = 0; byte < (i1 - i0) * p.in_bytes; byte += 64) __builtin_prefetch(row + byte);
    }
  };
  prefetch(0);
  prefetch(kPackRows);
  for (int64_t q = 0; q < depth; q += kPackRows) {
    prefetch(q + 2 * kPackRows);
    for (int64_t strip = from; strip < to; ++strip) {
      const int64_t i = strip_start(p, strip);
      kernels.pack_a(
          g.type, p.a + (i * g.a_row + (p0 + q) * g.a_col) * p.in_bytes, g.a_row, g.a_col,
          strip_start(p, strip + 1) - i, std::min(kPackRows, depth - q), 0,
          out + (strip - from) * strip_bytes + q / kernels.group * kernels.pitch * kernels.unit_bytes);
    }
  }
}

// With few strips a slice would be used hardly more often than it is packed: each panel is finished before the next one
// is packed in its place, and stays in L1 or L2 all the time.
constexpr int64_t kFewStrips = 4;
bool panel_by_panel(const Product& p) { return strips_of(p) <= kFewStrips; }

// How C is cut. Tile t is strips cut(strips, row_tiles, t % row_tiles) of slice t / row_tiles.
struct Plan {
  int64_t slices = 1, row_tiles = 1, threads = 1;
  bool a_direct = false, b_direct = false;  // read where it is
};

// One thread's walk over tiles.
class Walker {
 public:
  Walker(const Product& p, const Plan& plan) : p_(p), plan_(plan) {}
  void tile(int64_t index);

 private:
  void select(int64_t slice);
  void prefetch_panel(GemmStrip& s, int64_t p0, int64_t depth, int64_t j) const;
  void first_strip(GemmStrip s, int64_t p0, int64_t depth, int64_t j, int64_t n, char* out,
                   void (*run)(const GemmStrip&));

  const Product& p_;
  const Plan& plan_;
  int64_t slice_ = -1;
  int64_t j0_ = 0, j1_ = 0, panels_ = 0;
  char* packed_ = nullptr;
  bool have_ = false;  // the slice's panels are packed
};

void Walker::select(int64_t slice) {
  if (slice == slice_) return;
  const int64_t panel = p_.kernels.columns, panels = ceil_div(p_.g.n, panel);
  slice_ = slice;
  j0_ = cut(panels, plan_.slices, slice) * panel;
  j1_ = std::min(p_.g.n, cut(panels, plan_.slices, slice + 1) * panel);
  panels_ = ceil_div(j1_ - j0_, panel);
  have_ = false;
  if (plan_.b_direct) return;
  // A single strip uses each panel once, so all take turns in one place.
  const int64_t units =
      strips_of(p_) == 1
          ? p_.units(p_.depth_of(0))
          : panels_ * (p_.units_before(p_.blocks() - 1) + p_.units(p_.depth_of(p_.blocks() - 1)));
  packed_ = static_cast<char*>(
      gemm_scratch(GemmBuffer::Shared, static_cast<size_t>(units * panel * p_.kernels.unit_bytes)));
}

// Fetches panel j of B (a K block of it) during the strip.
void Walker::prefetch_panel(GemmStrip& s, int64_t p0, int64_t depth, int64_t j) const {
  const GemmArgs& g = p_.g;
  if (j >= j1_) return;
  const char* from = p_.b + (p0 * g.b_row + j * g.b_col) * p_.in_bytes;
  if (g.b_col == 1) {
    // A k step reads `group` rows; of narrow elements a row is one line.
    s.next = from;
    s.next_row = g.b_row * p_.in_bytes * p_.kernels.group;
  } else if (g.b_row == 1) {
    // Two lines of one column after the other, then the next columns' same lines.
    s.next = from;
    s.next_row = g.b_col * p_.in_bytes;
    s.next_skip = 128 - kGemmPrefetchSteps * s.next_row;
    if (p_.kernels.columns != kGemmPrefetchSteps || depth * p_.in_bytes < 128) s.next = nullptr;
  }
}

// The first strip to use a group of panels: packs each right before its first use.
void Walker::first_strip(GemmStrip s, int64_t p0, int64_t depth, int64_t j, int64_t n, char* out,
                         void (*run)(const GemmStrip&)) {
  const GemmKernels& kernels = p_.kernels;
  const GemmArgs& g = p_.g;
  const int64_t panel = kernels.columns, unit = kernels.unit_bytes;
  const bool one_place = s.b_panel == 0;
  char* c = static_cast<char*>(s.c);
  for (int64_t x = 0; x < n; x += panel) {
    char* to = out + (one_place ? 0 : x * s.k * unit);
    s.n = std::min(panel, n - x);
    kernels.pack_b(g.type, p_.b + (p0 * g.b_row + (j + x) * g.b_col) * p_.in_bytes, g.b_row, g.b_col, depth,
                   s.n, to);
    s.b = to;
    s.c = c + x * p_.acc_bytes;
    s.next = nullptr;
    s.next_skip = 0;
    prefetch_panel(s, p0, depth, j + x + panel);
    run(s);
  }
}

void Walker::tile(int64_t index) {
  const GemmKernels& kernels = p_.kernels;
  const GemmArgs& g = p_.g;
  select(index / plan_.row_tiles);
  const int64_t strips = strips_of(p_), row_tile = index % plan_.row_tiles;
  const int64_t from = cut(strips, plan_.row_tiles, row_tile),
                to = cut(strips, plan_.row_tiles, row_tile + 1);
  const int64_t blocks = p_.blocks(), unit = kernels.unit_bytes, panel = kernels.columns;
  const int64_t i0 = strip_start(p_, from), rows = strip_start(p_, to) - i0;
  const int64_t group =
      panel_by_panel(p_) ? panel : std::max(panel, kGroupBytes / p_.acc_bytes / panel * panel);
  // Scratch: A's strips, and accumulators where C cannot hold them (a strip x group, or the tile if K has blocks).
  const int64_t a_bytes =
      plan_.a_direct ? 0 : ceil_div((to - from) * strip_units(p_, p_.units(p_.depth_of(0))) * unit, 64) * 64;
  const int64_t t_columns = blocks > 1 ? j1_ - j0_ : std::min(group, j1_ - j0_);
  const int64_t t_row = ceil_div(t_columns, 16) * 16 + 16;
  const int64_t t_bytes = p_.c_is_acc ? 0 : (blocks > 1 ? rows : kernels.rows) * t_row * p_.acc_bytes;
  char* scratch =
      a_bytes + t_bytes > 0
          ? static_cast<char*>(gemm_scratch(GemmBuffer::Tile, static_cast<size_t>(a_bytes + t_bytes)))
          : nullptr;
  char* t = scratch + a_bytes;
  const bool columns = by_columns(p_);
  const auto run = columns ? kernels.strip_columns : kernels.strip_rows;
  const bool one_place = !plan_.b_direct && panel_by_panel(p_);
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t p0 = block * kernels.depth, depth = p_.depth_of(block), units = p_.units(depth);
    if (!plan_.a_direct) pack_strips(p_, from, to, p0, depth, scratch);
    GemmStrip s;
    s.k = units;
    s.alpha = g.alpha.real;
    s.a_row = plan_.a_direct ? (columns ? g.a_col : g.a_row / kernels.group)
              : columns      ? kernels.pitch
                             : padded_row(p_, units);
    s.b_panel = plan_.b_direct ? panel : one_place ? 0 : panel * units;
    s.b_row = plan_.b_direct ? g.b_row : panel;
    for (int64_t j = j0_; j < j1_; j += group) {
      s.n = std::min(group, j1_ - j);
      char* packed = nullptr;
      if (plan_.b_direct) {
        const char* b = p_.b + (p0 * g.b_row + j) * p_.in_bytes;
        s.b = b;
        s.next = b + kAheadRows * g.b_row * p_.in_bytes;
        s.next_row = g.b_row * p_.in_bytes;
        s.next_panel = panel * p_.in_bytes;
      } else {
        packed =
            packed_ + (one_place ? 0 : p_.units_before(block) * panels_ * panel + (j - j0_) * units) * unit;
        s.b = packed;
      }
      for (int64_t strip = from; strip < to; ++strip) {
        const int64_t i = strip_start(p_, strip);
        s.m = strip_start(p_, strip + 1) - i;
        s.a = plan_.a_direct ? p_.a + (i * g.a_row + p0 * g.a_col) * p_.in_bytes
                             : scratch + (strip - from) * strip_units(p_, units) * unit;
        char* c = p_.c + (i * g.ldc + j) * p_.out_bytes;
        char* out = p_.c_is_acc ? c : t + (blocks > 1 ? (i - i0) * t_row + j - j0_ : 0) * p_.acc_bytes;
        s.c = out;
        s.ldc = p_.c_is_acc ? g.ldc : t_row;
        s.beta = block > 0 ? 1.0 : g.beta.real;
        if (!p_.c_is_acc && block == 0 && s.beta != 0) {
          for (int64_t r = 0; r < s.m; ++r)
            kernels.load_row(g.out, out + r * t_row * p_.acc_bytes, c + r * g.ldc * p_.out_bytes, s.beta,
                             s.n);
          s.beta = 1.0;
        }
        if (packed && !have_ && strip == from) {
          first_strip(s, p0, depth, j, s.n, packed, run);
        } else {
          run(s);
        }
        if (block == blocks - 1) gemm_finish(p_, out, s.ldc, i, s.m, j, s.n, p_.c_is_acc);
      }
    }
  }
  have_ = !one_place;
}

// Runs body(index) for every index on the pool, or here.
template <class Body>
void for_each(bool parallel, int64_t count, int64_t grain, const Body& body) {
  if (!parallel || count <= grain) {
    for (int64_t i = 0; i < count; ++i) body(i);
    return;
  }
  parallel_for(0, count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i);
  });
}

void run_tiles(const Product& p, const Plan& plan) {
  const int64_t count = plan.slices * plan.row_tiles;
  const int64_t bodies = std::min(plan.threads, count), queues = std::min(bodies, kQueues);
  if (bodies <= 1) {
    Walker walker(p, plan);
    for (int64_t tile = 0; tile < count; ++tile) walker.tile(tile);
    return;
  }
  struct alignas(64) Queue {
    std::atomic<int64_t> next;
  };
  Queue queue[kQueues];
  for (int64_t q = 0; q < queues; ++q) queue[q].next.store(cut(count, queues, q), std::memory_order_relaxed);
  parallel_for(0, bodies, 1, [&](int64_t, int64_t) {
    Walker walker(p, plan);
    for (int64_t turn = 0; turn < queues; ++turn) {
      const int64_t q = (thread_index() + turn) % queues, end = cut(count, queues, q + 1);
      for (int64_t tile; (tile = queue[q].next.fetch_add(1, std::memory_order_relaxed)) < end;)
        walker.tile(tile);
    }
  });
}

// The cheapest cut, by an estimate in multiply-adds of a register tile per k step: a strip x panel takes `work`, copying
// a strip of A and a panel of B what was measured on Zen 4 (most of it waiting for lines).
Plan cut_tiles(const Product& p, bool parallel) {
  const GemmKernels& kernels = p.kernels;
  const GemmArgs& g = p.g;
  Plan plan;
  const int64_t panel = kernels.columns, panels = ceil_div(g.n, panel), strips = strips_of(p);
  const int64_t panel_bytes = p.units(g.k) * panel * kernels.unit_bytes;
  // Panel by panel, nothing need fit.
  const int64_t fewest =
      panel_by_panel(p) ? 1 : ceil_div(panels, std::clamp<int64_t>(kSliceBytes / panel_bytes, 1, panels));
  const int64_t shortest = ceil_div(strips, kTileStrips);
  plan.slices = fewest;
  plan.row_tiles = shortest;
  const double products = static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
  if (!parallel || products < 2.0 * kTileProducts) return plan;
  const int64_t threads = num_threads();
  if (threads == 1) return plan;
  plan.threads = threads;
  const int64_t most = static_cast<int64_t>(
      std::min(products / kTileProducts, static_cast<double>(kTilesPerThread * threads)));
  const double work = static_cast<double>(kernels.rows * 2), copy_a = p.a_direct || p.a_columns ? 0
                                                                      : by_columns(p)           ? 4
                                                                                                : 3;
  const double copy_b = g.b_col == 1 ? 8 : 14;
  double best = 0;
  const auto consider = [&](int64_t slices, int64_t row_tiles) {
    const double wide = static_cast<double>(ceil_div(panels, slices));
    const double high = static_cast<double>(ceil_div(strips, row_tiles));
    const int64_t count = slices * row_tiles;
    const double rounds = static_cast<double>(ceil_div(count, threads));
    // Slices that one thread packs.
    const double own = static_cast<double>(ceil_div(slices, threads));
    const double tile = high * (wide * work + copy_a);
    // A third of a tile: what a thread that was held up makes the others wait.
    const double cost = rounds * tile + own * wide * copy_b + tile / 3;
    if (best == 0 || cost < best) best = cost, plan.slices = slices, plan.row_tiles = row_tiles;
  };
  for (int64_t slices = fewest; slices <= std::min(panels, std::max(fewest, most)); ++slices) {
    const int64_t limit = std::max(shortest, std::min(strips, ceil_div(most, slices)));
    for (int64_t row_tiles = shortest; row_tiles <= limit; ++row_tiles) consider(slices, row_tiles);
  }
  return plan;
}

// Products so small that every instruction before the kernel counts: nothing is packed, one K block, C written in place.
bool small_product(const Product& p) {
  const GemmArgs& g = p.g;
  if (g.m > kDirectProducts || g.n > kDirectProducts || g.m * g.n > kDirectProducts ||
      g.k > p.kernels.depth || g.m * g.n * g.k > kDirectProducts || !p.c_is_acc || !p.b_plain())
    return false;
  // Beyond L1, B's rows must not collide there.
  if (g.m * g.n * g.k > kSmallProducts &&
      (g.n * g.k * p.in_bytes > kDirectBytes || g.b_row * p.in_bytes % 1024 == 0))
    return false;
  const bool columns = p.a_columns;
  if (!p.a_direct && !columns) return false;
  GemmStrip s;
  s.a_row = columns ? g.a_col : g.a_row;
  s.b = p.b;
  s.b_panel = p.kernels.columns;
  s.b_row = g.b_row;
  s.ldc = g.ldc;
  s.n = g.n;
  s.k = g.k;
  s.alpha = g.alpha.real;
  s.beta = g.beta.real;
  const auto run = columns ? p.kernels.strip_columns : p.kernels.strip_rows;
  const int64_t strips = strips_of(p);
  for (int64_t strip = 0, i = 0; strip < strips; ++strip) {
    const int64_t end = strip_start(p, strip + 1);
    s.m = end - i;
    s.a = p.a + i * g.a_row * p.in_bytes;
    s.c = p.c + i * g.ldc * p.out_bytes;
    run(s);
    if (g.epilogue) gemm_finish(p, static_cast<char*>(s.c), g.ldc, i, s.m, 0, g.n, true);
    i = end;
  }
  return true;
}

void product(const Product& p, bool parallel) {
  const GemmArgs& g = p.g;
  if (small_product(p) || gemm_thin(p, parallel)) return;
  const bool small = g.m <= kSmallProducts && g.n <= kSmallProducts && g.m * g.n <= kSmallProducts &&
                     g.m * g.n * g.k <= kSmallProducts;
  Plan plan = cut_tiles(p, parallel && !small);
  plan.a_direct = p.a_direct || (p.a_columns && (g.n <= kDirectColumns || !p.a_collides));
  plan.b_direct = p.b_plain() && (small || strips_of(p) == 1);
  run_tiles(p, plan);
}

}  // namespace

void gemm_packed(const GemmKernels& kernels, const GemmArgs& g) {
  if (g.batch == 1) return product(Product(kernels, g, 0), true);
  const GemmEpilogue* e = g.epilogue;
  // A batch that shares B and lies in equal steps is one tall product.
  if (g.b_batch == 0 && g.a_batch == g.m * g.a_row && g.c_batch == g.m * g.ldc &&
      (!e || !e->residual || e->residual_batch == g.m * e->residual_ld)) {
    GemmArgs tall = g;
    tall.m = g.m * g.batch;
    tall.batch = 1;
    return product(Product(kernels, tall, 0), true);
  }
  const double products = static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
  if (products > 16.0 * kTileProducts) {
    for (int64_t item = 0; item < g.batch; ++item) product(Product(kernels, g, item), true);
    return;
  }
  const int64_t grain = std::max<int64_t>(1, static_cast<int64_t>(kSmallProducts / std::max(products, 1.0)));
  for_each(true, g.batch, grain, [&](int64_t item) { product(Product(kernels, g, item), false); });
}

}  // namespace vesta::cpu
