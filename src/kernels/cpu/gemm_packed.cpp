// The packed GEMM driver. For each slice of columns that fits a few MB: (1) the pool packs all of B's slice into
// panels, K block by K block; (2) the pool computes tiles of C. A tile walks K blocks, then strips of up to `rows` rows
// that reuse one A strip (L1) over the tile's B panels (L2). A is read in place where its rows are contiguous and do
// not collide in L1, else copied strip by strip. The epilogue runs on a finished strip, rows as long as the tile.
//
// Small products skip packing and the pool. Many-item batches run one item per task, each packing for itself.
// Blocking depends on shapes only, so results do not depend on the number of threads.
#include <algorithm>

#include "base/thread_pool.h"
#include "kernels/cpu/gemm_kernels.h"
#include "kernels/cpu/gemm_scratch.h"

namespace vesta::cpu {
namespace {

constexpr int64_t kSliceBytes = 8 << 20;     // packed B kept in L3
constexpr int64_t kTileColumnsBytes = 1024;  // a tile's width, in bytes of accumulators: with depth, B's share of L2
constexpr int64_t kTileProducts = 1 << 21;   // about 40 us of one core: enough to hide a task's cost
constexpr int64_t kSmallProducts = 1 << 18;  // 64^3: below, one core and no packing

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
  bool c_is_acc;      // the kernels may write C itself
  bool a_direct_rows;  // A needs no copy (but for an odd K of pairs)

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
    a_direct_rows = in_bytes * kernels.group == kernels.unit_bytes && g.a_col == 1 && !collide;
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

// B as the tiles see it: packed panels of a column slice, or the matrix itself (block_stride then skips depth rows).
struct PanelsOfB {
  const char* data;
  int64_t first_column;  // of the slice
  int64_t columns;       // of the slice, padded to whole panels; 0: B itself
  int64_t row;           // units between rows when not packed
};

// C rows [i0, i1) x columns [j0, j1), all of K.
void tile(const Product& p, const PanelsOfB& panels, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
  const GemmKernels& kernels = p.kernels;
  const GemmArgs& g = p.g;
  const int64_t rows = i1 - i0, n = j1 - j0;
  const int64_t strips = ceil_div(rows, kernels.rows);
  const int64_t blocks = p.blocks();
  const int64_t unit = kernels.unit_bytes;
  const int64_t pad_row = p.units(std::min(kernels.depth, g.k)) + 64 / unit;  // odd number of lines: no set collisions

  // Scratch: one strip of A, and accumulators where C cannot hold them (one strip, or the tile if K has blocks).
  const int64_t a_bytes = ceil_div(kernels.rows * pad_row * unit, 64) * 64;
  const int64_t t_row = ceil_div(n, 16) * 16 + 16;
  const int64_t t_bytes = p.c_is_acc ? 0 : (blocks > 1 ? rows : kernels.rows) * t_row * p.acc_bytes;
  const bool copies_a = !p.a_direct_rows || g.k % kernels.group != 0;
  char* scratch = copies_a || t_bytes
                      ? static_cast<char*>(gemm_scratch(GemmBuffer::Tile, static_cast<size_t>(a_bytes + t_bytes)))
                      : nullptr;
  char* t = scratch + a_bytes;

  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t p0 = block * kernels.depth, depth = p.depth_of(block), units = p.units(depth);
    GemmStrip s;
    s.n = n;
    s.k = units;
    s.alpha = g.alpha.real;
    if (panels.columns > 0) {
      s.b = panels.data + (p0 / kernels.group * panels.columns + (j0 - panels.first_column) * units) * unit;
      s.b_panel = kernels.columns * units;
      s.b_row = kernels.columns;
    } else {
      s.b = panels.data + (p0 * panels.row + j0) * unit;
      s.b_panel = kernels.columns;
      s.b_row = panels.row;
    }
    for (int64_t strip = 0; strip < strips; ++strip) {
      const int64_t i = i0 + cut(rows, strips, strip);
      s.m = i0 + cut(rows, strips, strip + 1) - i;
      const char* a = p.a + (i * g.a_row + p0 * g.a_col) * p.in_bytes;
      bool by_columns = false;
      if (p.a_direct_rows && depth % kernels.group == 0) {
        s.a = a;
        s.a_row = g.a_row / kernels.group;
      } else {
        by_columns = g.a_col != 1;
        s.a = scratch;
        s.a_row = pad_row;
        kernels.pack_a(g.type, a, g.a_row, g.a_col, s.m, depth, by_columns ? 0 : pad_row, scratch);
      }
      char* c = p.c + (i * g.ldc + j0) * p.out_bytes;
      char* out = p.c_is_acc ? c : t + (blocks > 1 ? i - i0 : 0) * t_row * p.acc_bytes;
      s.c = out;
      s.ldc = p.c_is_acc ? g.ldc : t_row;
      s.beta = block > 0 ? 1.0 : g.beta.real;
      if (!p.c_is_acc && block == 0 && s.beta != 0) {
        for (int64_t r = 0; r < s.m; ++r)
          kernels.load_row(g.out, out + r * t_row * p.acc_bytes, c + r * g.ldc * p.out_bytes, s.beta, n);
        s.beta = 1.0;
      }
      (by_columns ? kernels.strip_columns : kernels.strip_rows)(s);
      if (block == blocks - 1) finish(p, out, s.ldc, i, s.m, j0, n);
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

void tiles(const Product& p, const PanelsOfB& panels, int64_t j0, int64_t j1, bool parallel) {
  const GemmArgs& g = p.g;
  const int64_t n = j1 - j0, panel = p.kernels.columns;
  const int64_t width = std::max(panel, kTileColumnsBytes / p.acc_bytes / panel * panel);
  const int64_t column_tiles = ceil_div(n, width);
  const int64_t column_panels = ceil_div(n, panel);
  const int64_t tile_width = std::min(n, width);
  // Row tiles even in size, of a strip or more each, about kTileProducts of work.
  int64_t row_tiles = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(g.m) * static_cast<double>(tile_width) *
                                                        static_cast<double>(g.k) / kTileProducts));
  row_tiles = std::min(row_tiles, ceil_div(g.m, p.kernels.rows));
  if (row_tiles > 1) row_tiles += row_tiles % 2;
  row_tiles = std::min(row_tiles, g.m);
  for_each(parallel, row_tiles * column_tiles, 1, [&](int64_t index) {
    const int64_t column = index / row_tiles, row = index % row_tiles;
    const int64_t from = j0 + cut(column_panels, column_tiles, column) * panel;
    const int64_t to = std::min(j1, j0 + cut(column_panels, column_tiles, column + 1) * panel);
    tile(p, panels, cut(g.m, row_tiles, row), cut(g.m, row_tiles, row + 1), from, to);
  });
}

void product(const Product& p, bool parallel) {
  const GemmKernels& kernels = p.kernels;
  const GemmArgs& g = p.g;
  const bool b_direct = kernels.group == 1 && p.in_bytes == kernels.unit_bytes && g.b_col == 1 &&
                        (kernels.direct_tail || g.n % (kernels.columns / 2) == 0);
  const bool small = g.m * g.n <= kSmallProducts && g.m * g.n * g.k <= kSmallProducts;
  if (b_direct && (small || g.m <= kernels.rows)) {
    tiles(p, {p.b, 0, 0, g.b_row}, 0, g.n, parallel && !small);
    return;
  }
  const int64_t panel = kernels.columns, unit = kernels.unit_bytes;
  const int64_t all_units = p.units(g.k);  // depth is a multiple of group: blocks add up to this
  const int64_t slice = std::max(panel, kSliceBytes / (all_units * unit) / panel * panel);
  for (int64_t j0 = 0; j0 < g.n; j0 += slice) {
    const int64_t j1 = std::min(g.n, j0 + slice);
    const int64_t column_panels = ceil_div(j1 - j0, panel), columns = column_panels * panel;
    char* packed =
        static_cast<char*>(gemm_scratch(GemmBuffer::Shared, static_cast<size_t>(all_units * columns * unit)));
    const int64_t blocks = p.blocks();
    // Chunks of about 64 KB each: some 5 us.
    const int64_t grain = std::max<int64_t>(1, 65536 / (p.units(p.depth_of(0)) * panel * unit));
    for_each(parallel && !small, blocks * column_panels, grain, [&](int64_t index) {
      const int64_t block = index / column_panels, j = j0 + index % column_panels * panel;
      const int64_t p0 = block * kernels.depth, depth = p.depth_of(block);
      kernels.pack_b(g.type, p.b + (p0 * g.b_row + j * g.b_col) * p.in_bytes, g.b_row, g.b_col, depth,
                     std::min(panel, j1 - j),
                     packed + (p0 / kernels.group * columns + (j - j0) * p.units(depth)) * unit);
    });
    tiles(p, {packed, j0, columns, 0}, j0, j1, parallel && !small);
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
