// The packed GEMM driver. For each slice of columns whose B fits a few MB: (1) the pool copies that part of B into
// panels, K block by K block; (2) the pool computes tiles of C. A tile is a few strips (of up to `rows` rows) by many
// columns. It walks K blocks; copies its strips of A unless they can be read in place; then walks groups of columns
// whose panels fit L2, and in them strip after strip. The epilogue runs on a finished strip, rows as long as the group.
//
// Packed A stays private to the core that uses it: sharing it between cores was slower (128x128x768 with A transposed:
// 197 against 140 us), because every line then moves between their caches twice.
//
// Small products skip packing and the pool. Batches of many items run one item per task, each packing for itself.
// An element's sum depends on K's blocks alone, so neither tiles nor threads change a bit.
#include <algorithm>

#include "base/thread_pool.h"
#include "kernels/cpu/gemm_kernels.h"
#include "kernels/cpu/gemm_scratch.h"

namespace vesta::cpu {
namespace {

constexpr int64_t kSliceBytes = 8 << 20;  // packed B, kept in L3
constexpr int64_t kGroupBytes =
    1024;  // columns of a group, in bytes of accumulators: x depth, B's share of L2
constexpr int64_t kTileProducts = 3 << 19;  // about 14 us of one core: enough to hide a task's cost
constexpr int64_t kTileStrips = 8;  // bounds A's share of L2; B then comes from L3 at under a byte a cycle
constexpr int64_t kTilesPerThread = 16;       // wanted for balance, where the work allows
constexpr int64_t kPackedTilesPerThread = 4;  // where each tile copies its part of A
constexpr int64_t kSmallProducts = 1 << 18;   // 64^3: below, one core and no packing
constexpr int64_t kFew = 8;               // rows or columns of C up to which dot products win over packing
constexpr int64_t kDotBytes = 128 << 10;  // of the larger matrix per task: some 5 us
constexpr int64_t kPackRows =
    8;  // rows copied at a time from one panel to the next: lines stay in L1, even 2 KiB apart

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t type_bytes(GemmType t) { return t == GemmType::F64 ? 8 : t == GemmType::F32 ? 4 : 2; }

// Part `index` of [0, total) cut into `parts` even pieces.
int64_t cut(int64_t total, int64_t parts, int64_t index) { return total * index / parts; }

// One item of a batch: pointers resolved, everything the tiles share.
struct Product {
  const GemmKernels& kernels;
  const GemmArgs& g;
  const char* a;
  const char* b;
  char* c;
  const char* residual;
  int64_t first_row;  // of the epilogue's numbering
  int64_t in_bytes, out_bytes, acc_bytes;
  bool c_is_acc;  // the kernels may write C itself
  bool a_direct;  // A is read in place

  Product(const GemmKernels& kernels_, const GemmArgs& g_, int64_t item) : kernels(kernels_), g(g_) {
    in_bytes = type_bytes(g.type);
    out_bytes = type_bytes(g.out);
    acc_bytes = g.type == GemmType::F64 ? 8 : 4;
    a = static_cast<const char*>(g.a) + item * g.a_batch * in_bytes;
    b = static_cast<const char*>(g.b) + item * g.b_batch * in_bytes;
    c = static_cast<char*>(g.c) + item * g.c_batch * out_bytes;
    const GemmEpilogue* e = g.epilogue;
    residual = e && e->residual ? static_cast<const char*>(e->residual) + item * e->residual_batch * out_bytes
                                : nullptr;
    first_row = item * g.m;
    c_is_acc = out_bytes == acc_bytes;
    // Rows a multiple of 4 KiB apart share one L1 set: 14 of them evict each other (measured: 93 instead of 117
    // GFLOP/s on Zen 4; 2 KiB apart costs nothing).
    const bool collide = g.m > 8 && (g.a_row * in_bytes) % 4096 == 0;
    a_direct = in_bytes * kernels.group == kernels.unit_bytes && g.a_col == 1 && !collide &&
               g.k % kernels.group == 0 && g.a_row % kernels.group == 0;
  }

  int64_t blocks() const { return ceil_div(g.k, kernels.depth); }
  int64_t depth_of(int64_t block) const { return std::min(kernels.depth, g.k - block * kernels.depth); }
  int64_t units(int64_t depth) const { return ceil_div(depth, kernels.group); }
};

// Bias, apply and residual on rows that hold accumulators, then the store into C unless they are in C already.
void finish(const Product& p, char* t, int64_t t_row, int64_t i, int64_t rows, int64_t j, int64_t n,
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

// B as the tiles see it: packed panels of a slice of columns, or the matrix itself.
struct PanelsOfB {
  const char* data;
  bool packed;
  int64_t first_column, columns;  // of the slice, columns padded to whole panels
};

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
  for (int64_t q = 0; q < depth; q += kPackRows) {
    prefetch(q + kPackRows);
    for (int64_t strip = from; strip < to; ++strip) {
      const int64_t i = strip_start(p, strip);
      kernels.pack_a(
          g.type, p.a + (i * g.a_row + (p0 + q) * g.a_col) * p.in_bytes, g.a_row, g.a_col,
          strip_start(p, strip + 1) - i, std::min(kPackRows, depth - q), 0,
          out + (strip - from) * strip_bytes + q / kernels.group * kernels.pitch * kernels.unit_bytes);
    }
  }
}

// Strips [from, to) x columns [j0, j1), all of K.
void tile(const Product& p, const PanelsOfB& b, int64_t from, int64_t to, int64_t j0, int64_t j1) {
  const GemmKernels& kernels = p.kernels;
  const GemmArgs& g = p.g;
  const int64_t blocks = p.blocks(), unit = kernels.unit_bytes;
  const int64_t i0 = strip_start(p, from), rows = strip_start(p, to) - i0;
  const int64_t panel = kernels.columns;
  const int64_t group = std::max(panel, kGroupBytes / p.acc_bytes / panel * panel);
  // Scratch: A's strips, and accumulators where C cannot hold them (a strip x group, or the tile if K has blocks).
  const int64_t a_bytes =
      p.a_direct ? 0 : ceil_div((to - from) * strip_units(p, p.units(p.depth_of(0))) * unit, 64) * 64;
  const int64_t t_columns = blocks > 1 ? j1 - j0 : std::min(group, j1 - j0);
  const int64_t t_row = ceil_div(t_columns, 16) * 16 + 16;
  const int64_t t_bytes = p.c_is_acc ? 0 : (blocks > 1 ? rows : kernels.rows) * t_row * p.acc_bytes;
  char* scratch =
      a_bytes + t_bytes > 0
          ? static_cast<char*>(gemm_scratch(GemmBuffer::Tile, static_cast<size_t>(a_bytes + t_bytes)))
          : nullptr;
  char* t = scratch + a_bytes;
  const auto run = !p.a_direct && by_columns(p) ? kernels.strip_columns : kernels.strip_rows;
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t p0 = block * kernels.depth, units = p.units(p.depth_of(block));
    if (!p.a_direct) pack_strips(p, from, to, p0, p.depth_of(block), scratch);
    GemmStrip s;
    s.k = units;
    s.alpha = g.alpha.real;
    s.a_row = p.a_direct ? g.a_row / kernels.group : padded_row(p, units);
    s.b_panel = b.packed ? panel * units : panel;
    s.b_row = b.packed ? panel : g.b_row;
    for (int64_t j = j0; j < j1; j += group) {
      s.n = std::min(group, j1 - j);
      s.b = b.data +
            (b.packed ? p0 / kernels.group * b.columns + (j - b.first_column) * units : p0 * g.b_row + j) *
                unit;
      for (int64_t strip = from; strip < to; ++strip) {
        const int64_t i = strip_start(p, strip);
        s.m = strip_start(p, strip + 1) - i;
        s.a = p.a_direct ? p.a + (i * g.a_row + p0) * p.in_bytes
                         : scratch + (strip - from) * strip_units(p, units) * unit;
        char* c = p.c + (i * g.ldc + j) * p.out_bytes;
        char* out = p.c_is_acc ? c : t + (blocks > 1 ? (i - i0) * t_row + j - j0 : 0) * p.acc_bytes;
        s.c = out;
        s.ldc = p.c_is_acc ? g.ldc : t_row;
        s.beta = block > 0 ? 1.0 : g.beta.real;
        if (!p.c_is_acc && block == 0 && s.beta != 0) {
          for (int64_t r = 0; r < s.m; ++r)
            kernels.load_row(g.out, out + r * t_row * p.acc_bytes, c + r * g.ldc * p.out_bytes, s.beta, s.n);
          s.beta = 1.0;
        }
        run(s);
        if (block == blocks - 1) finish(p, out, s.ldc, i, s.m, j, s.n, p.c_is_acc);
      }
    }
  }
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

void tiles(const Product& p, const PanelsOfB& b, int64_t j0, int64_t j1, bool parallel) {
  const int64_t strips = strips_of(p), panel = p.kernels.columns, panels = ceil_div(j1 - j0, panel);
  if (!parallel) {
    for (int64_t strip = 0; strip < strips; strip += kTileStrips)
      tile(p, b, strip, std::min(strips, strip + kTileStrips), j0, j1);
    return;
  }
  const double strip_products =
      static_cast<double>(p.kernels.rows) * static_cast<double>(p.g.k) * static_cast<double>(j1 - j0);
  // Four strips a tile where there are enough of them: B's panels are read from L3 less often, and the lines of a
  // transposed A are read whole.
  const int64_t low = std::clamp<int64_t>(strips / 8, 1, 4);
  const int64_t height =
      std::clamp<int64_t>(static_cast<int64_t>(kTileProducts / strip_products), low, kTileStrips);
  const int64_t row_tiles = ceil_div(strips, height);
  // Columns are cut only where rows alone give too few tiles: each cut copies A once more.
  const int64_t wanted =
      ceil_div((p.a_direct ? kTilesPerThread : kPackedTilesPerThread) * num_threads(), row_tiles);
  const int64_t worth = std::max<int64_t>(
      1, static_cast<int64_t>(strip_products * static_cast<double>(height) / kTileProducts));
  const int64_t column_tiles = std::min({wanted, worth, panels});
  for_each(true, row_tiles * column_tiles, 1, [&](int64_t index) {
    const int64_t row = index / column_tiles, column = index % column_tiles;
    tile(p, b, cut(strips, row_tiles, row), cut(strips, row_tiles, row + 1),
         j0 + cut(panels, column_tiles, column) * panel,
         std::min(j1, j0 + cut(panels, column_tiles, column + 1) * panel));
  });
}

// Copies columns [j0, j1) of B: one task per K block and group of panels of about 64 KB.
void pack_b(const Product& p, int64_t j0, int64_t j1, char* out, bool parallel) {
  const GemmKernels& kernels = p.kernels;
  const GemmArgs& g = p.g;
  const int64_t panel = kernels.columns, unit = kernels.unit_bytes;
  const int64_t panels = ceil_div(j1 - j0, panel);
  const int64_t group = std::clamp<int64_t>(65536 / (p.units(p.depth_of(0)) * panel * unit), 1, 8);
  const int64_t groups = ceil_div(panels, group);
  for_each(parallel, p.blocks() * groups, 1, [&](int64_t index) {
    const int64_t block = index / groups, first = index % groups * group;
    const int64_t p0 = block * kernels.depth, depth = p.depth_of(block), units = p.units(depth);
    const int64_t step = g.b_col == 1 ? kPackRows : depth;
    for (int64_t q = 0; q < depth; q += step)
      for (int64_t i = first; i < std::min(first + group, panels); ++i) {
        const int64_t j = j0 + i * panel;
        kernels.pack_b(
            g.type, p.b + ((p0 + q) * g.b_row + j * g.b_col) * p.in_bytes, g.b_row, g.b_col,
            std::min(step, depth - q), std::min(panel, j1 - j),
            out +
                (p0 / kernels.group * panels * panel + i * panel * units + q / kernels.group * panel) * unit);
      }
  });
}

// Few rows (or columns) of C, K contiguous in A and B: dot products, bound by reading the larger matrix once.
bool dots_fit(const GemmArgs& g) {
  return g.a_col == 1 && g.b_row == 1 && std::min(g.m, g.n) <= kFew && g.k >= 16 && std::max(g.m, g.n) >= 4;
}

void dot_products(const Product& p, bool parallel) {
  const GemmKernels& kernels = p.kernels;
  const GemmArgs& g = p.g;
  const GemmType acc = g.type == GemmType::F64 ? GemmType::F64 : GemmType::F32;
  const bool wide = g.m <= g.n;  // B is the larger one
  const int64_t many = wide ? g.n : g.m;
  const int64_t chunk = std::clamp<int64_t>((kDotBytes / (g.k * p.in_bytes) + 3) / 4 * 4, 4, 4096);
  for_each(parallel && g.m * g.n * g.k > kSmallProducts, ceil_div(many, chunk), 1, [&](int64_t index) {
    const int64_t from = index * chunk, count = std::min(chunk, many - from);
    // Sums as rows of C, and one row more for beta * C. A contiguous column of C is one row without an epilogue.
    const bool column = !wide && g.n == 1 && g.ldc == 1 && !g.epilogue;
    const int64_t rows = wide ? g.m : column ? 1 : count;
    const int64_t n = wide || column ? count : g.n;
    char* t =
        static_cast<char*>(gemm_scratch(GemmBuffer::Tile, static_cast<size_t>((rows + 1) * n * p.acc_bytes)));
    char* old = t + rows * n * p.acc_bytes;
    if (wide) {
      kernels.dots(g.type, p.a, g.a_row, g.m, p.b + from * g.b_col * p.in_bytes, g.b_col, count, g.k, t, n,
                   1);
    } else {
      kernels.dots(g.type, p.b, g.b_col, g.n, p.a + from * g.a_row * p.in_bytes, g.a_row, count, g.k, t, 1,
                   g.n);
    }
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t i = wide ? r : from + r, j = wide ? from : 0;
      char* row = t + r * n * p.acc_bytes;
      if (g.alpha.real != 1) kernels.load_row(acc, row, row, g.alpha.real, n);
      if (g.beta.real != 0) {
        kernels.load_row(g.out, old, p.c + (i * g.ldc + j) * p.out_bytes, g.beta.real, n);
        kernels.add_row(acc, row, old, n);
      }
      finish(p, row, n, i, 1, j, n, false);
    }
  });
}

void product(const Product& p, bool parallel) {
  const GemmKernels& kernels = p.kernels;
  const GemmArgs& g = p.g;
  if (dots_fit(g)) return dot_products(p, parallel);
  const bool small = g.m * g.n <= kSmallProducts && g.m * g.n * g.k <= kSmallProducts;
  if (small) parallel = false;
  const bool b_direct = kernels.group == 1 && p.in_bytes == kernels.unit_bytes && g.b_col == 1 &&
                        (kernels.direct_tail || g.n % (kernels.columns / 2) == 0) &&
                        (small || g.m <= kernels.rows);
  if (b_direct) return tiles(p, {p.b, false, 0, g.n}, 0, g.n, parallel);
  const int64_t panel = kernels.columns;
  const int64_t k_bytes =
      p.units(g.k) * kernels.unit_bytes;  // depth is a multiple of group: the blocks add up to this
  const int64_t width = std::max(panel, kSliceBytes / k_bytes / panel * panel);
  for (int64_t j0 = 0; j0 < g.n; j0 += width) {
    const int64_t j1 = std::min(g.n, j0 + width), columns = ceil_div(j1 - j0, panel) * panel;
    char* packed =
        static_cast<char*>(gemm_scratch(GemmBuffer::Shared, static_cast<size_t>(columns * k_bytes)));
    pack_b(p, j0, j1, packed, parallel);
    tiles(p, {packed, true, j0, columns}, j0, j1, parallel);
  }
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
