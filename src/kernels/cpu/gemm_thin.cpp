// Products with few rows or columns of C, bound by reading the larger matrix once: dot products where K is contiguous on
// both sides, sums of scaled rows where the larger matrix is stored with its long side contiguous. The long side is cut
// into chunks of a fixed size, one task each; a chunk's sums stay in L1.
#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"
#include "kernels/cpu/gemm_product.h"
#include "kernels/cpu/gemm_scratch.h"

namespace vesta::cpu {
namespace {

constexpr int64_t kFewDots = 8;       // rows or columns of C up to which dot products always win over packing
constexpr int64_t kFewLongDots = 16;  // and where K is long
constexpr int64_t kLongDots = 512;
constexpr int64_t kDotBytes = 128 << 10;  // of the larger matrix per task: some 5 us
constexpr int64_t kVectorBytes =
    4096;  // of the larger matrix's row per task: a page, and sums of 4 rows fit L1
constexpr int64_t kFewVectors =
    16;  // rows of C up to which a matrix beyond the caches is read along its rows
constexpr int64_t kLargeBytes = 4 << 20;  // beyond the caches that count
constexpr int64_t kSumsColumns = 512;     // then: the sums of 16 rows are 32 KB
constexpr int64_t kAlone = 1 << 17;       // products below which one core is faster

// Runs body(from, count) over chunks of [0, many).
template <class Body>
void for_chunks(const Product& p, bool parallel, int64_t many, int64_t chunk, const Body& body) {
  const GemmArgs& g = p.g;
  const int64_t chunks = ceil_div(many, chunk);
  const auto one = [&](int64_t index) { body(index * chunk, std::min(chunk, many - index * chunk)); };
  if (!parallel || chunks == 1 ||
      static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k) <= kAlone) {
    for (int64_t i = 0; i < chunks; ++i) one(i);
    return;
  }
  parallel_for(0, chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) one(i);
  });
}

// alpha, beta and the epilogue on finished sums, rows of n; `old` has room for one row.
void finish_rows(const Product& p, char* t, int64_t t_row, char* old, int64_t i, int64_t rows, int64_t j,
                 int64_t n) {
  const GemmKernels& kernels = p.kernels;
  const GemmArgs& g = p.g;
  const GemmType acc = g.type == GemmType::F64 ? GemmType::F64 : GemmType::F32;
  for (int64_t r = 0; r < rows; ++r, t += t_row * p.acc_bytes) {
    if (g.alpha.real != 1) kernels.load_row(acc, t, t, g.alpha.real, n);
    if (g.beta.real != 0) {
      kernels.load_row(g.out, old, p.c + ((i + r) * g.ldc + j) * p.out_bytes, g.beta.real, n);
      kernels.add_row(acc, t, old, n);
    }
    gemm_finish(p, t, n, i + r, 1, j, n, false);
  }
}

void dot_products(const Product& p, bool parallel) {
  const GemmKernels& kernels = p.kernels;
  const GemmArgs& g = p.g;
  const bool wide = g.m <= g.n;  // B is the larger one
  const int64_t many = wide ? g.n : g.m;
  const int64_t chunk = std::clamp<int64_t>((kDotBytes / (g.k * p.in_bytes) + 3) / 4 * 4, 4, 4096);
  for_chunks(p, parallel, many, chunk, [&](int64_t from, int64_t count) {
    // Sums as rows of C, and one row more for beta * C. A contiguous column of C is one row without an epilogue.
    const bool column = !wide && g.n == 1 && g.ldc == 1 && !g.epilogue;
    const int64_t rows = wide ? g.m : column ? 1 : count;
    const int64_t n = wide || column ? count : g.n;
    char* t =
        static_cast<char*>(gemm_scratch(GemmBuffer::Tile, static_cast<size_t>((rows + 1) * n * p.acc_bytes)));
    if (wide) {
      kernels.dots(g.type, p.a, g.a_row, g.m, p.b + from * g.b_col * p.in_bytes, g.b_col, count, g.k, t, n,
                   1);
    } else {
      kernels.dots(g.type, p.b, g.b_col, g.n, p.a + from * g.a_row * p.in_bytes, g.a_row, count, g.k, t, 1,
                   g.n);
    }
    finish_rows(p, t, n, t + rows * n * p.acc_bytes, wide ? 0 : from, rows, wide ? from : 0, n);
  });
}

// More than kGemmVectorRows rows of x (K times `few`), packed for tile_sums: groups of `pitch` rows.
struct PackedRows {
  const char* data;
  int64_t groups, group_bytes;
};
PackedRows pack_rows(const Product& p, bool parallel, const char* x, int64_t x_row, int64_t x_col,
                     int64_t few) {
  constexpr int64_t kChunk = 256;  // of K, some microseconds
  const GemmKernels& kernels = p.kernels;
  const int64_t row_bytes = kernels.pitch * kernels.unit_bytes;  // of one unit of K
  PackedRows packed{nullptr, ceil_div(few, kernels.pitch), ceil_div(p.g.k, kernels.group) * row_bytes};
  char* data = static_cast<char*>(
      gemm_scratch(GemmBuffer::Shared, static_cast<size_t>(packed.groups * packed.group_bytes)));
  packed.data = data;
  const auto chunk = [&](int64_t index) {
    const int64_t q = index * kChunk;
    for (int64_t group = 0; group < packed.groups; ++group)
      kernels.pack_a(p.g.type, x + (group * kernels.pitch * x_row + q * x_col) * p.in_bytes, x_row, x_col,
                     std::min(kernels.pitch, few - group * kernels.pitch), std::min(kChunk, p.g.k - q), 0,
                     data + group * packed.group_bytes + q / kernels.group * row_bytes);
  };
  const int64_t chunks = ceil_div(p.g.k, kChunk);
  if (!parallel) {
    for (int64_t i = 0; i < chunks; ++i) chunk(i);
  } else {
    parallel_for(0, chunks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) chunk(i);
    });
  }
  return packed;
}

// t = the packed rows times `count` columns of y; `tiles` has room for the sums of `pitch` rows a group.
void tile_products(const Product& p, const PackedRows& x, int64_t few, const char* y, int64_t y_row,
                   int64_t count, char* tiles, char* t, int64_t t_row) {
  const GemmKernels& kernels = p.kernels;
  const int64_t lanes = kernels.columns / 2, depth = kGemmSumsDepth * kernels.group;
  const int64_t row_bytes = kernels.pitch * kernels.unit_bytes, lane_bytes = lanes * p.acc_bytes;
  const int64_t group_bytes = ceil_div(count, lanes) * kernels.pitch * lane_bytes;
  std::memset(tiles, 0, static_cast<size_t>(x.groups * group_bytes));
  for (int64_t q = 0; q < p.g.k; q += depth)
    for (int64_t group = 0; group < x.groups; ++group)
      kernels.tile_sums(p.g.type, x.data + group * x.group_bytes + q / kernels.group * row_bytes,
                        std::min(kernels.pitch, few - group * kernels.pitch), y + q * y_row * p.in_bytes,
                        y_row, std::min(depth, p.g.k - q), count, tiles + group * group_bytes);
  for (int64_t i = 0; i < few; ++i)
    for (int64_t j = 0; j < count; j += lanes)
      std::memcpy(t + (i * t_row + j) * p.acc_bytes,
                  tiles + i / kernels.pitch * group_bytes +
                      (j / lanes * kernels.pitch + i % kernels.pitch) * lane_bytes,
                  static_cast<size_t>(lane_bytes));
}

void vector_products(const Product& p, bool parallel, bool wide) {
  const GemmArgs& g = p.g;
  const int64_t many = wide ? g.n : g.m, few = wide ? g.m : g.n;
  // Narrow matrices still give a few tasks; 64 elements are whole lines of any type.
  const int64_t chunk = std::clamp<int64_t>(many / 8 / 64 * 64, 64,
                                            few > kGemmVectorRows ? kSumsColumns : kVectorBytes / p.in_bytes);
  const char* x = wide ? p.a : p.b;
  const char* y = wide ? p.b : p.a;
  const int64_t x_row = wide ? g.a_row : g.b_col, x_col = wide ? g.a_col : g.b_row,
                y_row = wide ? g.b_row : g.a_col;
  const bool tiled = few > kGemmVectorRows;
  const PackedRows packed = tiled ? pack_rows(p, parallel, x, x_row, x_col, few) : PackedRows{nullptr, 0, 0};
  for_chunks(p, parallel, many, chunk, [&](int64_t from, int64_t count) {
    const int64_t t_row = ceil_div(count, 32) * 32, sums = few * t_row, turned = wide ? 0 : count * few;
    const int64_t tiles = tiled ? packed.groups * p.kernels.pitch * t_row : 0;
    char* t = static_cast<char*>(
        gemm_scratch(GemmBuffer::Tile, static_cast<size_t>((sums + turned + t_row + tiles) * p.acc_bytes)));
    char* rows = t + sums * p.acc_bytes;
    char* old = rows + turned * p.acc_bytes;
    if (tiled) {
      tile_products(p, packed, few, y + from * p.in_bytes, y_row, count, old + t_row * p.acc_bytes, t, t_row);
    } else {
      std::memset(t, 0, static_cast<size_t>(sums * p.acc_bytes));
      p.kernels.vector_rows(g.type, x, x_row, x_col, few, y + from * p.in_bytes, y_row, g.k, count, t, t_row);
    }
    if (wide) return finish_rows(p, t, t_row, old, 0, few, from, count);
    if (few == 1 && g.ldc == 1 && !g.epilogue) return finish_rows(p, t, t_row, old, 0, 1, from, count);
    for (int64_t i = 0; i < count; ++i)
      for (int64_t j = 0; j < few; ++j)
        std::memcpy(rows + (i * few + j) * p.acc_bytes, t + (j * t_row + i) * p.acc_bytes,
                    static_cast<size_t>(p.acc_bytes));
    finish_rows(p, rows, few, old, from, count, 0, few);
  });
}

}  // namespace

bool gemm_thin(const Product& p, bool parallel) {
  const GemmArgs& g = p.g;
  const int64_t few = std::min(g.m, g.n), many = std::max(g.m, g.n);
  if (few > kFewLongDots || !p.kernels.dots) return false;
  if (g.a_col == 1 && g.b_row == 1 && many >= 4 &&
      ((few <= kFewDots && g.k >= 16) || (many >= 64 && g.k >= kLongDots))) {
    dot_products(p, parallel);
    return true;
  }
  const bool large =
      static_cast<double>(many) * static_cast<double>(g.k) * static_cast<double>(p.in_bytes) > kLargeBytes;
  if (few > (large ? kFewVectors : kGemmVectorRows) || many < 64 || g.k < 8) return false;
  if (g.m <= g.n && g.b_col == 1) {
    vector_products(p, parallel, true);
    return true;
  }
  if (g.n <= g.m && g.a_row == 1) {
    vector_products(p, parallel, false);
    return true;
  }
  return false;
}

}  // namespace vesta::cpu
