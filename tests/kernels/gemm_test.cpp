// gemm() against a float64 (or exact integer) reference: every type, every CPU level of this machine, edge shapes,
// strides, batches, epilogues, and the promises of gemm.h (beta 0 reads nothing, threads change no bit).
#include "kernels/cpu/gemm.h"

#include <gtest/gtest.h>
#include <vesta/error.h>

#include <atomic>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cpu/gemm_generic.h"
#include "kernels/cpu/gemm_half.h"

namespace vesta::cpu {
namespace {

constexpr uint64_t kSeed = 20240607;
using Cd = std::complex<double>;

int64_t item_bytes(GemmType t) {
  switch (t) {
    case GemmType::I8:
      return 1;
    case GemmType::F16:
    case GemmType::Bf16:
      return 2;
    case GemmType::F32:
    case GemmType::I32:
      return 4;
    case GemmType::F64:
    case GemmType::I64:
    case GemmType::C64:
      return 8;
    case GemmType::C128:
      return 16;
  }
  return 0;
}

const char* name_of(GemmType t) {
  static const char* names[] = {"f32", "f64", "f16", "bf16", "i32", "i64", "c64", "c128", "i8"};
  return names[static_cast<int>(t)];
}

Cd get(GemmType t, const void* p, int64_t i) {
  switch (t) {
    case GemmType::F16:
      return f16_to_float(static_cast<const uint16_t*>(p)[i]);
    case GemmType::Bf16:
      return bf16_to_float(static_cast<const uint16_t*>(p)[i]);
    case GemmType::F32:
      return static_cast<const float*>(p)[i];
    case GemmType::F64:
      return static_cast<const double*>(p)[i];
    case GemmType::I32:
      return static_cast<const int32_t*>(p)[i];
    case GemmType::I64:
      return static_cast<double>(static_cast<const int64_t*>(p)[i]);
    case GemmType::C64:
      return std::complex<double>(static_cast<const std::complex<float>*>(p)[i]);
    case GemmType::C128:
      return static_cast<const Cd*>(p)[i];
    case GemmType::I8:
      return static_cast<const int8_t*>(p)[i];
  }
  return 0;
}

void set(GemmType t, void* p, int64_t i, Cd v) {
  switch (t) {
    case GemmType::F16:
      static_cast<uint16_t*>(p)[i] = float_to_f16(static_cast<float>(v.real()));
      break;
    case GemmType::Bf16:
      static_cast<uint16_t*>(p)[i] = float_to_bf16(static_cast<float>(v.real()));
      break;
    case GemmType::F32:
      static_cast<float*>(p)[i] = static_cast<float>(v.real());
      break;
    case GemmType::F64:
      static_cast<double*>(p)[i] = v.real();
      break;
    case GemmType::I32:
      static_cast<int32_t*>(p)[i] = static_cast<int32_t>(v.real());
      break;
    case GemmType::I64:
      static_cast<int64_t*>(p)[i] = static_cast<int64_t>(v.real());
      break;
    case GemmType::C64:
      static_cast<std::complex<float>*>(p)[i] = std::complex<float>(v);
      break;
    case GemmType::C128:
      static_cast<Cd*>(p)[i] = v;
      break;
    case GemmType::I8:
      static_cast<int8_t*>(p)[i] = static_cast<int8_t>(v.real());
      break;
  }
}

bool is_integer(GemmType t) { return t == GemmType::I32 || t == GemmType::I64 || t == GemmType::I8; }
bool is_complex(GemmType t) { return t == GemmType::C64 || t == GemmType::C128; }

// Unit roundoff of storing a value of the type.
double roundoff(GemmType t) {
  switch (t) {
    case GemmType::F16:
      return std::ldexp(1.0, -11);
    case GemmType::Bf16:
      return std::ldexp(1.0, -8);
    case GemmType::F32:
    case GemmType::C64:
      return std::ldexp(1.0, -24);
    case GemmType::F64:
    case GemmType::C128:
      return std::ldexp(1.0, -53);
    default:
      return 0;
  }
}

struct Buffer {
  GemmType type;
  std::vector<unsigned char> bytes;
  Buffer(GemmType t, int64_t n) : type(t), bytes(static_cast<size_t>(n * item_bytes(t)), 0) {}
  void* data() { return bytes.data(); }
  int64_t size() const { return static_cast<int64_t>(bytes.size()) / item_bytes(type); }
  void fill(std::mt19937_64& rng) {
    std::normal_distribution<double> normal;
    for (int64_t i = 0; i < size(); ++i)
      set(type, data(), i,
          type == GemmType::I8 ? Cd(static_cast<double>(rng() % 256) - 128)
          : is_integer(type)   ? Cd(static_cast<double>(rng() % 2001) - 1000)
                               : Cd(normal(rng), normal(rng)));
  }
};

enum class Layout { Row, Column, Padded, Strided, Reversed };

// Strides and the buffer offset of element (0, 0) for a matrix of rows x columns.
struct Matrix {
  int64_t row, col, offset, numel;
};

Matrix lay_out(Layout layout, int64_t rows, int64_t columns) {
  rows = std::max<int64_t>(rows, 1);
  columns = std::max<int64_t>(columns, 1);
  switch (layout) {
    case Layout::Row:
      return {columns, 1, 0, rows * columns};
    case Layout::Column:
      return {1, rows, 0, rows * columns};
    case Layout::Padded:
      return {columns + 5, 1, 3, rows * (columns + 5) + 3};
    case Layout::Strided:
      return {2 * columns + 1, 2, 1, rows * (2 * columns + 1) + 1};
    case Layout::Reversed:
      return {-columns, 1, (rows - 1) * columns, rows * columns};
  }
  return {};
}

struct Case {
  GemmType type = GemmType::F32, out = GemmType::F32;
  int64_t m = 1, n = 1, k = 1, batch = 1;
  Layout a = Layout::Row, b = Layout::Row;
  Cd alpha = 1, beta = 0;
  bool conj_a = false, conj_b = false;
  bool bias = false, apply = false, residual = false, shared_b = false;
  int64_t ldc_extra = 0;

  std::string text() const {
    return std::string(name_of(type)) + "->" + name_of(out) + " " + std::to_string(m) + "x" +
           std::to_string(n) + "x" + std::to_string(k) + " batch " + std::to_string(batch) + " layouts " +
           std::to_string(static_cast<int>(a)) + std::to_string(static_cast<int>(b)) + " alpha " +
           std::to_string(alpha.real()) + " beta " + std::to_string(beta.real()) + " epilogue " +
           std::to_string(bias) + std::to_string(apply) + std::to_string(residual) + " ldc+" +
           std::to_string(ldc_extra);
  }
};

GemmScalar scalar(GemmType t, Cd v) {
  return is_complex(t) ? GemmScalar(v.real(), v.imag()) : GemmScalar(v.real());
}

// The test's pointwise chain: leaky relu plus a term that shows whether row and col are right.
double chain(double x, int64_t row, int64_t col) {
  return (x > 0 ? x : 0.25 * x) + 0.125 * static_cast<double>(row % 7) - 0.25 * static_cast<double>(col % 5);
}

template <class T>
void chain_rows(void* t, int64_t n, int64_t row, int64_t col, const void* ctx) {
  T* v = static_cast<T*>(t);
  for (int64_t j = 0; j < n; ++j) v[j] = static_cast<T>(chain(static_cast<double>(v[j]), row, col + j));
  if (ctx) static_cast<std::atomic<int64_t>*>(const_cast<void*>(ctx))->fetch_add(n);
}

// Runs the case at a level and compares each element with the reference; bound: rounding of a K-term sum.
void check(CpuIsa level, const Case& c, std::mt19937_64& rng) {
  SCOPED_TRACE(std::string(cpu_isa_name(level)) + " " + c.text());
  const Matrix ma = lay_out(c.a, c.m, c.k), mb = lay_out(c.b, c.k, c.n);
  const int64_t ldc = c.n + c.ldc_extra;
  const int64_t c_item = c.m * ldc + 7;
  Buffer a(c.type, ma.numel * c.batch), b(c.type, mb.numel * (c.shared_b ? 1 : c.batch)),
      out(c.out, c_item * c.batch), bias(c.out, c.n), residual(c.out, c.m * (c.n + 3) * c.batch);
  for (Buffer* buffer : {&a, &b, &out, &bias, &residual}) buffer->fill(rng);
  Buffer before = out;
  if (c.beta == Cd(0) && !is_integer(c.out))
    for (int64_t i = 0; i < out.size(); ++i) {
      const double nan = std::numeric_limits<double>::quiet_NaN();
      set(c.out, out.data(), i, Cd(nan, nan));
    }
  const Buffer untouched = out;
  std::atomic<int64_t> applied{0};
  GemmEpilogue e;
  if (c.bias) e.bias = bias.data();
  if (c.apply) {
    e.apply = c.type == GemmType::F64 ? chain_rows<double> : chain_rows<float>;
    e.ctx = &applied;
  }
  if (c.residual) {
    e.residual = residual.data();
    e.residual_ld = c.n + 3;
    e.residual_batch = c.m * (c.n + 3);
  }
  GemmArgs g;
  g.type = c.type;
  g.out = c.out;
  g.m = c.m;
  g.n = c.n;
  g.k = c.k;
  g.batch = c.batch;
  g.a = static_cast<char*>(a.data()) + ma.offset * item_bytes(c.type);
  g.a_row = ma.row;
  g.a_col = ma.col;
  g.a_batch = ma.numel;
  g.b = static_cast<char*>(b.data()) + mb.offset * item_bytes(c.type);
  g.b_row = mb.row;
  g.b_col = mb.col;
  g.b_batch = c.shared_b ? 0 : mb.numel;
  g.c = out.data();
  g.ldc = ldc;
  g.c_batch = c_item;
  g.alpha = scalar(c.out, c.alpha);
  g.beta = scalar(c.out, c.beta);
  g.conj_a = c.conj_a;
  g.conj_b = c.conj_b;
  if (c.bias || c.apply || c.residual) g.epilogue = &e;
  gemm_at(level, g);

  if (c.apply) {
    EXPECT_EQ(applied.load(), c.m * c.n * c.batch) << "apply must see each element once";
  }
  const bool half = c.type == GemmType::F16 || c.type == GemmType::Bf16;
  const double u = half ? std::ldexp(1.0, -24) : roundoff(c.type);
  int bad = 0;
  for (int64_t item = 0; item < c.batch; ++item) {
    std::vector<Cd> av(static_cast<size_t>(c.m * c.k)), bv(static_cast<size_t>(c.k * c.n));
    for (int64_t i = 0; i < c.m; ++i)
      for (int64_t p = 0; p < c.k; ++p) {
        Cd x = get(c.type, a.data(), item * ma.numel + ma.offset + i * ma.row + p * ma.col);
        av[static_cast<size_t>(i * c.k + p)] = c.conj_a ? std::conj(x) : x;
      }
    for (int64_t p = 0; p < c.k; ++p)
      for (int64_t j = 0; j < c.n; ++j) {
        Cd y =
            get(c.type, b.data(), (c.shared_b ? 0 : item * mb.numel) + mb.offset + p * mb.row + j * mb.col);
        bv[static_cast<size_t>(p * c.n + j)] = c.conj_b ? std::conj(y) : y;
      }
    std::vector<Cd> sum(static_cast<size_t>(c.n));
    std::vector<double> size(static_cast<size_t>(c.n));
    for (int64_t i = 0; i < c.m; ++i) {
      std::fill(sum.begin(), sum.end(), Cd(0));
      std::fill(size.begin(), size.end(), 0.0);
      for (int64_t p = 0; p < c.k; ++p) {
        const Cd x = av[static_cast<size_t>(i * c.k + p)];
        for (int64_t j = 0; j < c.n; ++j) {
          const Cd y = bv[static_cast<size_t>(p * c.n + j)];
          sum[static_cast<size_t>(j)] += is_complex(c.type) ? Cd(x.real() * y.real() - x.imag() * y.imag(),
                                                                 x.real() * y.imag() + x.imag() * y.real())
                                                            : Cd(x.real() * y.real());
          size[static_cast<size_t>(j)] += std::abs(x) * std::abs(y);
        }
      }
      for (int64_t j = 0; j < c.n; ++j) {
        Cd want = c.alpha * sum[static_cast<size_t>(j)];
        double scale = std::abs(c.alpha) * size[static_cast<size_t>(j)];
        const Cd old = get(c.out, before.data(), item * c_item + i * ldc + j);
        if (c.beta != Cd(0)) want += c.beta * old, scale += std::abs(c.beta * old);
        if (c.bias) want += get(c.out, bias.data(), j), scale += std::abs(get(c.out, bias.data(), j));
        if (c.apply) want = chain(want.real(), item * c.m + i, j), scale += 2;
        if (c.residual) {
          const Cd r = get(c.out, residual.data(), item * e.residual_batch + i * e.residual_ld + j);
          want += r, scale += std::abs(r);
        }
        const Cd got = get(c.out, out.data(), item * c_item + i * ldc + j);
        if (is_integer(c.type)) {
          if (got != want && ++bad < 4)
            ADD_FAILURE() << "at " << i << "," << j << ": " << got << " not " << want;
          continue;
        }
        // Worst case K u sum|x||y|; random signs stay far below it. Small K keeps the slack of the final operations.
        const double tolerance = (std::sqrt(static_cast<double>(c.k)) * 2 + 8) * u * scale +
                                 roundoff(c.out) * 1.01 * std::abs(want) + (half ? 1e-7 : 0);
        if (!(std::abs(got - want) <= tolerance) && ++bad < 4)
          ADD_FAILURE() << "at " << item << ":" << i << "," << j << ": " << got << " not " << want << " +- "
                        << tolerance;
      }
    }
    // Neither the gap between rows nor what follows the last one may change.
    for (int64_t i = 0; i < c_item; ++i)
      if (i >= c.m * ldc || i % ldc >= c.n) {
        const int64_t at = (item * c_item + i) * item_bytes(c.out);
        ASSERT_EQ(0, std::memcmp(out.bytes.data() + at, untouched.bytes.data() + at,
                                 static_cast<size_t>(item_bytes(c.out))))
            << "wrote outside C at " << i;
      }
  }
  EXPECT_EQ(bad, 0);
}

std::vector<CpuIsa> levels() {
  std::vector<CpuIsa> found;
  for (int level = 0; level <= static_cast<int>(cpu_isa()); ++level)
    found.push_back(static_cast<CpuIsa>(level));
  return found;
}

struct TypePair {
  GemmType type, out;
};
constexpr TypePair kAll[] = {
    {GemmType::F32, GemmType::F32},   {GemmType::F64, GemmType::F64},   {GemmType::F16, GemmType::F16},
    {GemmType::F16, GemmType::F32},   {GemmType::Bf16, GemmType::Bf16}, {GemmType::Bf16, GemmType::F32},
    {GemmType::I32, GemmType::I32},   {GemmType::I64, GemmType::I64},   {GemmType::C64, GemmType::C64},
    {GemmType::C128, GemmType::C128}, {GemmType::I8, GemmType::I32}};
constexpr Layout kLayouts[] = {Layout::Row, Layout::Column, Layout::Padded, Layout::Strided,
                               Layout::Reversed};

class GemmTest : public testing::Test {
 protected:
  std::mt19937_64 rng_{kSeed};
  void SetUp() override { RecordProperty("seed", std::to_string(kSeed)); }
  int64_t pick(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(rng_() % static_cast<uint64_t>(high - low + 1));
  }
};

TEST_F(GemmTest, EveryTypeAndLevelIsRightOnEveryRowAndColumnTail) {
  for (CpuIsa level : levels())
    for (TypePair t : kAll)
      for (int64_t m = 1; m <= 17; ++m)
        for (int64_t n : {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 48, 63, 65})
          if ((m + n) % 3 == static_cast<int64_t>(level) % 3)
            check(level, {.type = t.type, .out = t.out, .m = m, .n = n, .k = pick(1, 70)}, rng_);
}

TEST_F(GemmTest, EveryPairOfLayoutsIsRightForEveryType) {
  for (CpuIsa level : levels())
    for (TypePair t : kAll)
      for (Layout a : kLayouts)
        for (Layout b : kLayouts)
          for (auto [m, n, k] :
               {std::tuple<int64_t, int64_t, int64_t>{5, 9, 7}, {1, 40, 33}, {37, 1, 65}, {70, 81, 67}})
            check(level, {.type = t.type, .out = t.out, .m = m, .n = n, .k = k, .a = a, .b = b}, rng_);
}

TEST_F(GemmTest, BlockedSizesAcrossEveryBlockBoundaryAreRight) {
  for (CpuIsa level : levels())
    for (TypePair t : {kAll[0], kAll[1], kAll[2], kAll[4], kAll[5]}) {
      const int64_t block = gemm_k_block(t.type, level);
      for (int64_t k : {block - 1, block, block + 1, 2 * block + 3})
        check(level,
              {.type = t.type,
               .out = t.out,
               .m = pick(30, 60),
               .n = pick(65, 140),
               .k = k,
               .a = kLayouts[rng_() % 3],
               .b = kLayouts[rng_() % 3],
               .alpha = 0.5,
               .beta = k % 2 ? -2.0 : 0.0,
               .bias = true,
               .apply = true,
               .residual = true,
               .ldc_extra = 3},
              rng_);
      check(level, {.type = t.type, .out = t.out, .m = 300, .n = 530, .k = 90, .b = Layout::Column}, rng_);
      check(level,
            {.type = t.type, .out = t.out, .m = 90, .n = 1100, .k = 70, .a = Layout::Column, .apply = true},
            rng_);
    }
}

TEST_F(GemmTest, Int8SumsAreExactAcrossBlocksAndLayouts) {
  for (CpuIsa level : levels())
    for (int64_t k : {1, 3, 4, 5, 63, 64, 65, 2047, 2048, 2049, 4100})
      check(level,
            {.type = GemmType::I8,
             .out = GemmType::I32,
             .m = pick(1, 40),
             .n = pick(1, 100),
             .k = k,
             .a = kLayouts[rng_() % 5],
             .b = kLayouts[rng_() % 5],
             .ldc_extra = 1},
            rng_);
}

TEST_F(GemmTest, Int8ExtremesAreExactAndOtherFactorsAreToo) {
  // -128 * -128 throughout: the largest sums; alpha, beta and an epilogue take the generic path.
  constexpr int64_t m = 15, n = 33, k = 1027;
  const std::vector<int8_t> a(m * k, -128), b(k * n, -128);
  std::vector<int32_t> c(m * n, 7);
  GemmArgs g;
  g.type = GemmType::I8, g.out = GemmType::I32, g.m = m, g.n = n, g.k = k;
  g.a = a.data(), g.a_row = k, g.b = b.data(), g.b_row = n, g.c = c.data(), g.ldc = n;
  gemm(g);
  for (int32_t x : c) ASSERT_EQ(x, 16384 * k);
  g.alpha = -1;
  g.beta = 3;
  gemm(g);
  for (int32_t x : c) ASSERT_EQ(x, 2 * 16384 * k);
}

// The product alone, and with everything that can follow it.
void check_plain_and_fused(CpuIsa level, Case c, std::mt19937_64& rng) {
  check(level, c, rng);
  c.alpha = -0.5;
  c.beta = 2;
  c.bias = c.apply = c.residual = true;
  c.ldc_extra = 2;
  check(level, c, rng);
}

TEST_F(GemmTest, FewRowsOrColumnsOfLongDotProductsAreRight) {
  for (CpuIsa level : levels())
    for (TypePair t : {kAll[0], kAll[1], kAll[2], kAll[3], kAll[4], kAll[5]})
      for (int64_t few = 1; few <= 9; ++few)
        for (bool rows : {true, false}) {
          const int64_t many = pick(4, 150);
          Case c{.type = t.type,
                 .out = t.out,
                 .m = rows ? few : many,
                 .n = rows ? many : few,
                 .k = pick(16, 1200),
                 .a = few % 2 ? Layout::Row : Layout::Padded,
                 .b = Layout::Column};
          check_plain_and_fused(level, c, rng_);
        }
}

TEST_F(GemmTest, FewRowsOrColumnsAlongContiguousRowsAreRight) {
  for (CpuIsa level : levels())
    for (TypePair t : {kAll[0], kAll[1], kAll[2], kAll[3], kAll[4], kAll[5]})
      for (int64_t few = 1; few <= 5; ++few)
        for (bool rows : {true, false}) {
          // Rows: a row-major B; columns: a transposed A. Odd K ends in half a pair of bf16.
          const int64_t many = pick(60, 700);
          Case c{.type = t.type,
                 .out = t.out,
                 .m = rows ? few : many,
                 .n = rows ? many : few,
                 .k = pick(8, 700),
                 .a = rows ? kLayouts[rng_() % 5] : Layout::Column,
                 .b = rows ? (few % 2 ? Layout::Row : Layout::Padded) : kLayouts[rng_() % 5]};
          check_plain_and_fused(level, c, rng_);
        }
}

TEST_F(GemmTest, UpToSixteenRowsOrColumnsAlongALargeMatrixAreRight) {
  for (CpuIsa level : levels())
    for (TypePair t : {kAll[0], kAll[1], kAll[2], kAll[3], kAll[4], kAll[5]})
      for (bool rows : {true, false}) {
        // A little more than 4 MiB; odd K ends in half a pair of bf16.
        const int64_t bytes = t.type == GemmType::F64 ? 8 : t.type == GemmType::F32 ? 4 : 2;
        const int64_t few = rows ? pick(5, 10) : pick(11, 16), many = pick(900, 1100);
        const int64_t k = (int64_t{9} << 19) / bytes / many + pick(0, 1);
        Case c{.type = t.type,
               .out = t.out,
               .m = rows ? few : many,
               .n = rows ? many : few,
               .k = k,
               .a = rows ? kLayouts[rng_() % 5] : Layout::Column,
               .b = rows ? (few % 2 ? Layout::Row : Layout::Padded) : kLayouts[rng_() % 5]};
        c.alpha = -0.5;
        c.beta = 2;
        c.bias = c.apply = c.residual = true;
        check(level, c, rng_);
      }
}

TEST_F(GemmTest, UpToSixteenRowsOrColumnsOfVeryLongDotProductsAreRight) {
  for (CpuIsa level : levels())
    for (TypePair t : {kAll[0], kAll[1], kAll[2], kAll[5]})
      for (bool rows : {true, false}) {
        const int64_t few = pick(9, 17), many = pick(64, 90);
        check(level,
              {.type = t.type,
               .out = t.out,
               .m = rows ? few : many,
               .n = rows ? many : few,
               .k = pick(510, 1500),
               .b = Layout::Column,
               .beta = 1,
               .bias = true},
              rng_);
      }
}

TEST_F(GemmTest, SlicesOfColumnsAndRowsThatCollideInTheCacheAreRight) {
  for (CpuIsa level : levels())
    for (TypePair t : {kAll[0], kAll[1], kAll[4]}) {
      // B beyond a slice's few MB; a transposed A whose rows are a multiple of 4 KiB apart, and one whose are not.
      check(level, {.type = t.type, .out = t.out, .m = 33, .n = 1500, .k = 1200, .beta = 1}, rng_);
      check(level, {.type = t.type, .out = t.out, .m = 1024, .n = 290, .k = 40, .a = Layout::Column}, rng_);
      check(level, {.type = t.type, .out = t.out, .m = 500, .n = 290, .k = 70, .a = Layout::Column}, rng_);
      check(level, {.type = t.type, .out = t.out, .m = 60, .n = 70, .k = 1024, .b = Layout::Column}, rng_);
    }
}

TEST_F(GemmTest, LongRowsAndColumnsAreCutIntoTasksRightly) {
  check(cpu_isa(), {.m = 1, .n = 5003, .k = 260, .b = Layout::Column, .bias = true}, rng_);
  check(cpu_isa(), {.m = 5003, .n = 1, .k = 260}, rng_);
  check(cpu_isa(), {.m = 5003, .n = 3, .k = 260, .b = Layout::Column, .beta = 1, .residual = true}, rng_);
  check(cpu_isa(), {.m = 3, .n = 5003, .k = 260}, rng_);
  check(cpu_isa(), {.m = 5003, .n = 1, .k = 130, .a = Layout::Column}, rng_);
  for (TypePair t : {kAll[0], kAll[1], kAll[4]}) {
    check(cpu_isa(), {.type = t.type, .out = t.out, .m = pick(5, 16), .n = 3001, .k = 701, .bias = true},
          rng_);
    check(cpu_isa(),
          {.type = t.type, .out = t.out, .m = 3001, .n = pick(5, 16), .k = 701, .a = Layout::Column}, rng_);
  }
  check(cpu_isa(), {.m = 5003, .n = 4, .k = 130, .a = Layout::Column, .apply = true}, rng_);
}

// y = gelu(x W^T + b) and relu through the epilogue's function pointer, as nn's fused linear uses it.
void gelu_rows(void* t, int64_t n, int64_t, int64_t, const void*) {
  float* v = static_cast<float*>(t);
  for (int64_t j = 0; j < n; ++j) v[j] = 0.5f * v[j] * (1 + std::erf(v[j] * 0.70710678f));
}
void relu_rows(void* t, int64_t n, int64_t, int64_t, const void*) {
  float* v = static_cast<float*>(t);
  for (int64_t j = 0; j < n; ++j) v[j] = v[j] > 0 ? v[j] : 0.0f;
}

TEST_F(GemmTest, AFusedActivationEqualsTheSameActivationAfterwardsBitForBit) {
  for (CpuIsa level : levels())
    for (auto apply : {gelu_rows, relu_rows})
      for (auto [m, n, k] :
           {std::tuple<int64_t, int64_t, int64_t>{5, 40, 30}, {70, 300, 130}, {1, 500, 600}}) {
        Buffer a(GemmType::F32, m * k), w(GemmType::F32, n * k), bias(GemmType::F32, n);
        Buffer fused(GemmType::F32, m * n), plain(GemmType::F32, m * n);
        for (Buffer* buffer : {&a, &w, &bias}) buffer->fill(rng_);
        GemmEpilogue e;
        e.bias = bias.data();
        GemmArgs g{.m = m,
                   .n = n,
                   .k = k,
                   .a = a.data(),
                   .a_row = k,
                   .b = w.data(),
                   .b_row = 1,
                   .b_col = k,
                   .c = plain.data(),
                   .ldc = n,
                   .epilogue = &e};
        gemm_at(level, g);
        for (int64_t i = 0; i < m; ++i) apply(static_cast<float*>(plain.data()) + i * n, n, i, 0, nullptr);
        e.apply = apply;
        g.c = fused.data();
        gemm_at(level, g);
        EXPECT_EQ(fused.bytes, plain.bytes) << cpu_isa_name(level) << " " << m << "x" << n << "x" << k;
      }
}

TEST_F(GemmTest, RandomCasesOfEverythingAtOnceAreRight) {
  for (CpuIsa level : levels())
    for (TypePair t : kAll)
      for (int repeat = 0; repeat < 24; ++repeat) {
        Case c{.type = t.type,
               .out = t.out,
               .m = pick(1, repeat % 4 ? 60 : 200),
               .n = pick(1, repeat % 3 ? 90 : 300),
               .k = pick(0, 150),
               .batch = pick(1, 4),
               .a = kLayouts[rng_() % 5],
               .b = kLayouts[rng_() % 5]};
        const bool integer = is_integer(t.type), complex = is_complex(t.type);
        c.alpha = integer ? Cd(-3) : complex ? Cd(0.5, -1.5) : Cd(-0.75);
        c.beta = repeat % 2 ? (integer ? Cd(2) : complex ? Cd(1, 0.5) : Cd(1.5)) : Cd(0);
        c.conj_a = complex && rng_() % 2;
        c.conj_b = complex && rng_() % 2;
        c.bias = rng_() % 2;
        c.apply = !integer && !complex && rng_() % 2;
        c.residual = rng_() % 2;
        c.shared_b = rng_() % 2;
        c.ldc_extra = static_cast<int64_t>(rng_() % 3);
        check(level, c, rng_);
      }
}

TEST_F(GemmTest, AnEmptySumGivesBetaTimesCAndZerosWhereBetaIsZeroEvenOverNaN) {
  for (CpuIsa level : levels())
    for (TypePair t : kAll)
      for (double beta : {0.0, 2.0})
        check(level,
              {.type = t.type,
               .out = t.out,
               .m = 6,
               .n = 37,
               .k = 0,
               .batch = 2,
               .beta = beta,
               .bias = beta > 0},
              rng_);
}

TEST_F(GemmTest, TheNumberOfThreadsChangesNoBit) {
  const int threads = num_threads();
  for (CpuIsa level : levels())
    for (TypePair t : {kAll[0], kAll[1], kAll[2], kAll[4], kAll[5], kAll[8], kAll[10]})
      for (auto [m, n, k, batch] : {std::tuple<int64_t, int64_t, int64_t, int64_t>{200, 330, 700, 1},
                                    {1, 3000, 300, 1},
                                    {2000, 1, 500, 1},
                                    {4, 2000, 300, 1},
                                    {700, 160, 640, 1},
                                    {33, 40, 50, 12}})
        for (bool transposed : {false, true}) {
          Buffer a(t.type, m * k * batch), b(t.type, k * n * batch);
          a.fill(rng_);
          b.fill(rng_);
          std::vector<Buffer> results;
          for (int count : {1, 2, 5}) {
            set_num_threads(count);
            Buffer c(t.out, m * n * batch);
            GemmArgs g;
            g.type = t.type, g.out = t.out, g.m = m, g.n = n, g.k = k, g.batch = batch;
            g.a = a.data(), g.a_row = transposed ? 1 : k, g.a_col = transposed ? m : 1, g.a_batch = m * k;
            g.b = b.data(), g.b_row = transposed ? 1 : n, g.b_col = transposed ? k : 1, g.b_batch = k * n;
            g.c = c.data(), g.ldc = n, g.c_batch = m * n;
            gemm_at(level, g);
            results.push_back(c);
          }
          EXPECT_TRUE(results[0].bytes == results[1].bytes && results[0].bytes == results[2].bytes)
              << cpu_isa_name(level) << " " << name_of(t.type) << " " << m << "x" << n << "x" << k;
        }
  set_num_threads(threads);
}

TEST_F(GemmTest, ExceptionalValuesReachExactlyTheirRowsAndColumns) {
  for (CpuIsa level : levels())
    for (GemmType t : {GemmType::F32, GemmType::F64, GemmType::Bf16, GemmType::F16}) {
      const int64_t m = 33, n = 70, k = 41;
      Buffer a(t, m * k), b(t, k * n), c(t, m * n);
      a.fill(rng_);
      b.fill(rng_);
      set(t, a.data(), 20 * k + 40, std::numeric_limits<double>::quiet_NaN());
      set(t, b.data(), 3 * n + 69, std::numeric_limits<double>::infinity());
      GemmArgs g{.type = t,
                 .out = t,
                 .m = m,
                 .n = n,
                 .k = k,
                 .a = a.data(),
                 .a_row = k,
                 .b = b.data(),
                 .b_row = n,
                 .c = c.data(),
                 .ldc = n};
      gemm_at(level, g);
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          const double v = get(t, c.data(), i * n + j).real();
          EXPECT_EQ(std::isnan(v), i == 20)
              << cpu_isa_name(level) << " " << name_of(t) << " " << i << "," << j;
          EXPECT_EQ(std::isinf(v), i != 20 && j == 69) << name_of(t) << " " << i << "," << j;
        }
    }
}

TEST_F(GemmTest, IntegersUseAllOfInt64AndWrap) {
  const int64_t big = (int64_t{1} << 62) + 1;
  int64_t a = big, b = 2, c = 0;
  GemmArgs g{.type = GemmType::I64,
             .out = GemmType::I64,
             .m = 1,
             .n = 1,
             .k = 1,
             .a = &a,
             .a_row = 1,
             .b = &b,
             .b_row = 1,
             .c = &c,
             .ldc = 1,
             .alpha = int64_t{3}};
  gemm(g);
  EXPECT_EQ(static_cast<uint64_t>(c), static_cast<uint64_t>(big) * 6u);
  a = 1;
  g.alpha = big;
  gemm(g);
  EXPECT_EQ(c, static_cast<int64_t>(static_cast<uint64_t>(big) * 2u));
}

TEST_F(GemmTest, WrongArgumentsThrowAndNameTheValue) {
  float x[4] = {};
  GemmArgs g{.m = 2, .n = 2, .k = 1, .a = x, .a_row = 1, .b = x, .b_row = 2, .c = x, .ldc = 1};
  try {
    gemm(g);
    FAIL() << "ldc below N was taken";
  } catch (const ValueError& e) {
    EXPECT_STREQ(e.what(), "gemm: expected ldc >= N, got 1 with N 2");
  }
  g.ldc = 2;
  g.k = -1;
  EXPECT_THROW(gemm(g), ValueError);
  g.k = 1;
  g.b = nullptr;
  EXPECT_THROW(gemm(g), ValueError);
  g.b = x;
  g.out = GemmType::F64;
  EXPECT_THROW(gemm(g), TypeError);
}

}  // namespace
}  // namespace vesta::cpu
