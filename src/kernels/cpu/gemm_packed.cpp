// The packed GEMM driver. For each slice of columns (and rows) that fits a few MB: (1) the pool copies B's slice into
// panels, K block by K block, and A's rows into strips unless they can be read in place; (2) the pool computes tiles of
// C. A tile walks K blocks, then strips of up to `rows` rows, each reused from L1 over the tile's B panels, which stay
// in L2. The epilogue runs on a finished strip, rows as long as the tile.
//
// Small products skip packing and the pool. Batches of many items run one item per task, each packing for itself.
// Blocking depends on shapes only, so results do not depend on the number of threads.
#include <algorithm>

#include "base/thread_pool.h"
#include "kernels/cpu/gemm_kernels.h"
#include "kernels/cpu/gemm_scratch.h"

namespace vesta::cpu {
namespace {

constexpr int64_t kSliceBytes = 8 << 20;     // packed B, and packed A, kept in L3
constexpr int64_t kTileColumnsBytes = 1024;  // a tile's width, in bytes of accumulators: with depth, B's share of L2
constexpr int64_t kTileProducts = 1 << 21;   // about 40 us of one core: enough to hide a task's cost
constexpr int64_t kTileStrips = 4;           // a tile this tall or taller reads its B from L3 at 1 byte a cycle or less
constexpr int64_t kSmallProducts = 1 << 18;  // 64^3: below, one core and no packing
constexpr int64_t kPackRows = 32;            // rows copied at a time from one panel to the next: lines stay in L1

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
    residual = e && e->residual ? static_cast<const char*>(e->residual) + item * e->residual_batch * out_bytes : nullptr;
    first_row = item * g.m;
    c_is_acc = out_bytes == acc_bytes;
    // Rows a multiple of 4 KiB apart share one L1 set: 14 of them evict each other (measured: 93 instead of 117
    // GFLOP/s on Zen 4; 2 KiB apart costs nothing).
    const bool collide = g.m > 8 && (g.a_row * in_bytes) % 4096 == 0;
    a_direct = in_bytes * kernels.group == kernels.unit_bytes && g.a_col == 1 && !collide && g.k % kernels.group == 0 &&
               g.a_row % kernels.group == 0;
  }

  int64_t blocks() const { return ceil_div(g.k, kernels.depth); }
  int64_t depth_of(int64_t block) const { return std::min(kernels.depth, g.k - block * kernels.depth); }
  int64_t units(int64_t depth) const { return ceil_div(depth, kernels.group); }
};

// Bias, apply and residual on rows that hold accumulators, then the store into C where that is another type.
void finish(const Product& p, char* t, int64_t t_row, int64_t i, int64_t rows, int64_t j, int64_t n) {
  const GemmEpilogue* e = p.g.epilogue;
  if (!e && p.c_is_acc) return;
  for (int64_t r = 0; r < rows; ++r, t += t_row * p.acc_bytes) {
    if (e) {
      if (e->bias) p.kernels.add_row(p.g.out, t, static_cast<const char*>(e->bias) + j * p.out_bytes, n);
      if (e->apply) e->apply(t, n, p.first_row + i + r, j, e->ctx);
      if (p.residual) p.kernels.add_row(p.g.out, t, p.residual + ((i + r) * e->residual_ld + j) * p.out_bytes, n);
    }
    if (!p.c_is_acc) p.kernels.store_row(p.g.out, t, p.c + ((i + r) * p.g.ldc + j) * p.out_bytes, n);
  }
}

// Operands as the tiles see them: packed slices, or (packed false) the matrices themselves.
struct Operands {
  const char* b;
  bool b_packed;
  int64_t first_column, columns;  // of the slice, columns padded to whole panels
  const char* a;
  bool a_packed;
  int64_t first_row, rows;  // of the slice: rows are cut into strips() strips, packed or not

  int64_t strips(const GemmKernels& kernels) const { return ceil_div(rows, kernels.rows); }
  int64_t strip_start(const GemmKernels& kernels, int64_t strip) const {
    return cut(rows, strips(kernels), strip);
  }
};

// Packed A: per K block, strips one after the other: [k][pitch] where A's rows are strided (by_columns), else rows of
// padded_row() units. The padding makes rows an odd number of lines apart, so that they spread over L1's sets.
bool by_columns(const Product& p) { return p.g.a_col != 1; }
int64_t padded_row(const Product& p, int64_t units) {
  const int64_t line = 64 / p.kernels.unit_bytes;
  return (ceil_div(units, line) | 1) * line;
}
int64_t strip_units(const Product& p, int64_t units) {
  return by_columns(p) ? p.kernels.pitch * units : p.kernels.rows * padded_row(p, units);
}

// Strips [from, to) of the tile grid x columns [j0, j1), all of K.
void tile(const Product& p, const Operands& in, int64_t from, int64_t to, int64_t j0, int64_t j1) {
  const GemmKernels& kernels = p.kernels;
  const GemmArgs& g = p.g;
  const int64_t n = j1 - j0, blocks = p.blocks(), unit = kernels.unit_bytes;
  const int64_t i0 = in.strip_start(kernels, from), rows = in.strip_start(kernels, to) - i0;
  // Accumulators where C cannot hold them: one strip, or the tile if K has blocks.
  const int64_t t_row = ceil_div(n, 16) * 16 + 16;
  const int64_t t_bytes = p.c_is_acc ? 0 : (blocks > 1 ? rows : kernels.rows) * t_row * p.acc_bytes;
  char* t = t_bytes ? static_cast<char*>(gemm_scratch(GemmBuffer::Tile, static_cast<size_t>(t_bytes))) : nullptr;
  const auto run = in.a_packed && by_columns(p) ? kernels.strip_columns : kernels.strip_rows;
  const char* packed_a = in.a;
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t p0 = block * kernels.depth, units = p.units(p.depth_of(block));
    const int64_t a_row = padded_row(p, units), a_strip = strip_units(p, units);
    GemmStrip s;
    s.n = n;
    s.k = units;
    s.alpha = g.alpha.real;
    if (in.b_packed) {
      s.b = in.b + (p0 / kernels.group * in.columns + (j0 - in.first_column) * units) * unit;
      s.b_panel = kernels.columns * units;
      s.b_row = kernels.columns;
    } else {
      s.b = in.b + (p0 * g.b_row + j0) * unit;
      s.b_panel = kernels.columns;
      s.b_row = g.b_row;
    }
    for (int64_t strip = from; strip < to; ++strip) {
      const int64_t start = in.strip_start(kernels, strip), i = in.first_row + start;
      s.m = in.strip_start(kernels, strip + 1) - start;
      s.a_row = in.a_packed ? a_row : g.a_row / kernels.group;
      s.a = in.a_packed ? packed_a + strip * a_strip * unit : p.a + (i * g.a_row + p0) * p.in_bytes;
      char* c = p.c + (i * g.ldc + j0) * p.out_bytes;
      char* out = p.c_is_acc ? c : t + (blocks > 1 ? start - i0 : 0) * t_row * p.acc_bytes;
      s.c = out;
      s.ldc = p.c_is_acc ? g.ldc : t_row;
      s.beta = block > 0 ? 1.0 : g.beta.real;
      if (!p.c_is_acc && block == 0 && s.beta != 0) {
        for (int64_t r = 0; r < s.m; ++r)
          kernels.load_row(g.out, out + r * t_row * p.acc_bytes, c + r * g.ldc * p.out_bytes, s.beta, n);
        s.beta = 1.0;
      }
      run(s);
      if (block == blocks - 1) finish(p, out, s.ldc, i, s.m, j0, n);
    }
    packed_a += in.strips(kernels) * a_strip * unit;
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

void tiles(const Product& p, const Operands& in, int64_t j0, int64_t j1, bool parallel) {
  const int64_t n = j1 - j0, panel = p.kernels.columns;
  const int64_t width = std::max(panel, kTileColumnsBytes / p.acc_bytes / panel * panel);
  const int64_t column_tiles = ceil_div(n, width), column_panels = ceil_div(n, panel);
  const int64_t strips = in.strips(p.kernels);
  // Row tiles of kTileProducts or more, even in number; tall products do with taller tiles.
  const double work = static_cast<double>(in.rows) * static_cast<double>(std::min(n, width)) *
                      static_cast<double>(p.g.k);
  int64_t row_tiles = std::max<int64_t>(1, static_cast<int64_t>(work / kTileProducts));
  row_tiles = std::min(row_tiles, std::max(ceil_div(strips, kTileStrips), std::min<int64_t>(strips, 2)));
  if (row_tiles > 1) row_tiles = std::min(strips, row_tiles + row_tiles % 2);
  for_each(parallel, row_tiles * column_tiles, 1, [&](int64_t index) {
    const int64_t column = index / row_tiles, row = index % row_tiles;
    const int64_t from = j0 + cut(column_panels, column_tiles, column) * panel;
    const int64_t to = std::min(j1, j0 + cut(column_panels, column_tiles, column + 1) * panel);
    tile(p, in, cut(strips, row_tiles, row), cut(strips, row_tiles, row + 1), from, to);
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
        kernels.pack_b(g.type, p.b + ((p0 + q) * g.b_row + j * g.b_col) * p.in_bytes, g.b_row, g.b_col,
                       std::min(step, depth - q), std::min(panel, j1 - j),
                       out + (p0 / kernels.group * panels * panel + i * panel * units + q / kernels.group * panel) * unit);
      }
  });
}

// Copies rows [in.first_row, + in.rows) of A in the same way.
void pack_a(const Product& p, const Operands& in, char* out, bool parallel) {
  const GemmKernels& kernels = p.kernels;
  const GemmArgs& g = p.g;
  const int64_t unit = kernels.unit_bytes, strips = in.strips(kernels);
  const int64_t full_strip = strip_units(p, p.units(p.depth_of(0)));
  const int64_t group = std::clamp<int64_t>(131072 / (full_strip * unit), 1, 8);
  const int64_t groups = ceil_div(strips, group);
  const bool columns = by_columns(p);
  for_each(parallel, p.blocks() * groups, 1, [&](int64_t index) {
    const int64_t block = index / groups, first = index % groups * group, last = std::min(first + group, strips);
    const int64_t p0 = block * kernels.depth, depth = p.depth_of(block), units = p.units(depth);
    const int64_t step = columns ? kPackRows : depth;
    const int64_t i0 = in.first_row + in.strip_start(kernels, first);
    const int64_t i1 = in.first_row + in.strip_start(kernels, last);
    for (int64_t q = 0; q < depth; q += step) {
      // The next rows of a transposed A: far apart, so the hardware does not see them coming.
      if (columns && g.a_row == 1)
        for (int64_t r = q + step; r < std::min(q + 2 * step, depth); ++r) {
          const char* row = p.a + (i0 + (p0 + r) * g.a_col) * p.in_bytes;
          for (int64_t byte = 0; byte < (i1 - i0) * p.in_bytes; byte += 64) __builtin_prefetch(row + byte);
        }
      for (int64_t strip = first; strip < last; ++strip) {
        const int64_t start = in.strip_start(kernels, strip), m = in.strip_start(kernels, strip + 1) - start;
        char* to = out + (block * strips * full_strip + strip * strip_units(p, units) +
                          (columns ? q / kernels.group * kernels.pitch : 0)) *
                             unit;
        kernels.pack_a(g.type, p.a + ((in.first_row + start) * g.a_row + (p0 + q) * g.a_col) * p.in_bytes, g.a_row,
                       g.a_col, m, std::min(step, depth - q), columns ? 0 : padded_row(p, units), to);
      }
    }
  });
}

void product(const Product& p, bool parallel) {
  const GemmKernels& kernels = p.kernels;
  const GemmArgs& g = p.g;
  const bool small = g.m * g.n <= kSmallProducts && g.m * g.n * g.k <= kSmallProducts;
  if (small) parallel = false;
  const bool b_direct = kernels.group == 1 && p.in_bytes == kernels.unit_bytes && g.b_col == 1 &&
                        (kernels.direct_tail || g.n % (kernels.columns / 2) == 0) && (small || g.m <= kernels.rows);
  const int64_t panel = kernels.columns, unit = kernels.unit_bytes, blocks = p.blocks();
  const int64_t all_units = p.units(g.k);  // depth is a multiple of group: the blocks add up to this
  const int64_t a_strip_bytes = blocks * strip_units(p, p.units(p.depth_of(0))) * unit;
  const int64_t width = b_direct ? g.n : std::max(panel, kSliceBytes / (all_units * unit) / panel * panel);
  const int64_t height = p.a_direct ? g.m : kernels.rows * std::max(kTileStrips, kSliceBytes / a_strip_bytes);
  for (int64_t j0 = 0; j0 < g.n; j0 += width) {
    const int64_t j1 = std::min(g.n, j0 + width), columns = ceil_div(j1 - j0, panel) * panel;
    const int64_t b_bytes = b_direct ? 0 : ceil_div(all_units * columns * unit, 4096) * 4096;
    const int64_t a_bytes = p.a_direct ? 0 : ceil_div(std::min(height, g.m), kernels.rows) * a_strip_bytes;
    char* packed = a_bytes + b_bytes > 0
                       ? static_cast<char*>(gemm_scratch(GemmBuffer::Shared, static_cast<size_t>(a_bytes + b_bytes)))
                       : nullptr;
    Operands in{b_direct ? p.b : packed, !b_direct, j0, columns, packed + b_bytes, !p.a_direct, 0, 0};
    if (!b_direct) pack_b(p, j0, j1, packed, parallel);
    for (int64_t i0 = 0; i0 < g.m; i0 += height) {
      in.first_row = i0;
      in.rows = std::min(height, g.m - i0);
      if (!p.a_direct) pack_a(p, in, packed + b_bytes, parallel);
      tiles(p, in, j0, j1, parallel);
    }
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
