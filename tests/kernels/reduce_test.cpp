// Reductions against float64 and integer loops, the promised summation order, and ties and NaN of argmax.
#include "kernels/cpu/reduce.h"

#include <vesta/error.h>

#include "base/thread_pool.h"
#include "kernel_testing.h"

namespace vesta::cpu {
namespace {

using namespace testing;

const ReduceShape kShapes[] = {{1, 1, 1},     {3, 5, 1},   {7, 16, 1}, {2, 4097, 1}, {9, 100, 1},
                               {1, 40000, 1}, {0, 3, 1},   {3, 9, 2},  {2, 17, 16},  {2, 300, 37},
                               {1, 2000, 70}, {2, 3, 150}, {4, 1, 5}};
const Elem kIntegers[] = {Elem::I64, Elem::I32, Elem::I16, Elem::I8, Elem::U8, Elem::Bool};

Array random_integers(Random& random, Elem type, int64_t n) {
  Array a(type, n);
  for (int64_t i = 0; i < n; ++i) {
    const bool is_signed = type != Elem::U8 && type != Elem::Bool;
    a.set(i, type == Elem::Bool ? double(random.below(3) > 0)
                                : double(random.below(100)) - (is_signed ? 50 : 0));
  }
  return a;
}

// fold(values along the reduced dimension) for each output.
template <class F>
std::vector<double> reference(const Array& x, ReduceShape s, F fold) {
  std::vector<double> out;
  for (int64_t o = 0; o < s.outer; ++o)
    for (int64_t i = 0; i < s.inner; ++i) {
      std::vector<double> row;
      for (int64_t r = 0; r < s.reduced; ++r) row.push_back(x[(o * s.reduced + r) * s.inner + i]);
      out.push_back(fold(row));
    }
  return out;
}

double fold(ReduceOp op, const std::vector<double>& row) {
  double sum = 0, prod = 1, largest = -INFINITY, smallest = INFINITY, squares = 0, absolute = 0, any = 0,
         all = 1;
  for (double x : row) {
    sum += x;
    prod *= x;
    largest =
        std::isnan(largest) || x > largest || std::isnan(x) ? (std::isnan(largest) ? largest : x) : largest;
    smallest = std::isnan(smallest) || x < smallest || std::isnan(x) ? (std::isnan(smallest) ? smallest : x)
                                                                     : smallest;
    squares += x * x;
    absolute += std::fabs(x);
    any = any != 0 || x != 0;
    all = all != 0 && x != 0;
  }
  double e = 0;
  for (double x : row) e += std::exp(x - largest);
  switch (op) {
    case ReduceOp::Sum:
      return sum;
    case ReduceOp::Prod:
      return prod;
    case ReduceOp::Max:
      return largest;
    case ReduceOp::Min:
      return smallest;
    case ReduceOp::Any:
      return any;
    case ReduceOp::All:
      return all;
    case ReduceOp::SumSquares:
      return squares;
    case ReduceOp::SumAbs:
      return absolute;
    default:
      return std::isinf(largest) ? largest : largest + std::log(e);
  }
}

TEST(Reduce, FloatsMatchFloat64ForEveryOperationTypeLevelAndLayout) {
  for (CpuIsa level : levels())
    for (Elem type : float_types())
      for (ReduceShape s : kShapes)
        for (int code = 0; code <= int(ReduceOp::LogSumExp); ++code) {
          const ReduceOp op = static_cast<ReduceOp>(code);
          SCOPED_TRACE(::testing::Message() << cpu_isa_name(level) << " type " << int(type) << " op " << code
                                            << " shape " << s.outer << "," << s.reduced << "," << s.inner);
          Random random(51);
          Array x = random.array(type, s.outer * s.reduced * s.inner, op == ReduceOp::Prod ? 0.02 : 1);
          if (op == ReduceOp::Prod)
            for (int64_t i = 0; i < x.size(); ++i) x.set(i, 1 + x[i]);
          const Elem out_type = reduce_result_type(op, type);
          Array out(out_type, s.outer * s.inner);
          reduce_table(level).reduce(op, type, x.data(), s, out.data(), out_type, 1);
          const double acc = epsilon(accumulate_type(type));
          const bool grows = op == ReduceOp::Sum || op == ReduceOp::SumAbs || op == ReduceOp::SumSquares;
          const double tolerance = epsilon(out_type) + acc * (op == ReduceOp::Prod ? double(s.reduced)
                                                              : grows ? 4 * std::sqrt(double(s.reduced))
                                                                      : 8);
          expect_close(out, reference(x, s, [&](auto& row) { return fold(op, row); }), tolerance, "out");
        }
}

TEST(Reduce, IntegersAreExact) {
  for (CpuIsa level : levels())
    for (Elem type : kIntegers)
      for (ReduceShape s : kShapes)
        for (ReduceOp op : {ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min, ReduceOp::Any, ReduceOp::All}) {
          SCOPED_TRACE(::testing::Message()
                       << cpu_isa_name(level) << " type " << int(type) << " op " << int(op) << " shape "
                       << s.outer << "," << s.reduced << "," << s.inner);
          Random random(52);
          const Array x = random_integers(random, type, s.outer * s.reduced * s.inner);
          const Elem out_type = reduce_result_type(op, type);
          Array out(out_type, s.outer * s.inner);
          reduce_table(level).reduce(op, type, x.data(), s, out.data(), out_type, 1);
          expect_close(out, reference(x, s, [&](auto& row) { return fold(op, row); }), 0, "out");
        }
}

TEST(Reduce, IntegerProductsWrapAndBoolSumsCount) {
  const int32_t big[3] = {65536, 65536, 65536 * 4};
  int64_t out = 0;
  reduce(ReduceOp::Prod, Elem::I32, big, {1, 3, 1}, &out, Elem::I64);
  EXPECT_EQ(out, int64_t{1} << 50);
  const int64_t huge[2] = {INT64_MAX, 2};
  reduce(ReduceOp::Prod, Elem::I64, huge, {1, 2, 1}, &out, Elem::I64);
  EXPECT_EQ(out, -2);
  const std::vector<uint8_t> ones(1000, 1);
  reduce(ReduceOp::Sum, Elem::Bool, ones.data(), {1, 1000, 1}, &out, Elem::I64);
  EXPECT_EQ(out, 1000);
}

// The order of reduce.h, written as plainly as it reads there.
float promised_sum(const std::vector<float>& x) {
  std::vector<float> blocks;
  for (size_t b = 0; b < x.size(); b += 1024) {
    float lanes[16] = {};
    for (size_t i = b; i < std::min(x.size(), b + 1024); ++i) lanes[i % 16] += x[i];
    for (int half = 8; half > 0; half /= 2)
      for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
    blocks.push_back(lanes[0]);
  }
  while (blocks.size() > 1) {
    std::vector<float> next;
    for (size_t i = 0; i + 1 < blocks.size(); i += 2) next.push_back(blocks[i] + blocks[i + 1]);
    if (blocks.size() % 2) next.push_back(blocks.back());
    blocks = next;
  }
  return blocks[0];
}

TEST(Reduce, SumsFollowThePromisedOrderOnEveryLevelAndThreadCount) {
  const int threads = num_threads();
  for (int64_t n : {1, 15, 16, 17, 1024, 1025, 20480, 100003}) {
    Random random(53);
    std::vector<float> x;
    for (int64_t i = 0; i < n; ++i) x.push_back(static_cast<float>(random.normal()));
    const float want = promised_sum(x);
    for (CpuIsa level : levels())
      for (int count : {1, 3}) {
        set_num_threads(count);
        float got = 0;
        reduce_table(level).reduce(ReduceOp::Sum, Elem::F32, x.data(), {1, n, 1}, &got, Elem::F32, 1);
        EXPECT_EQ(got, want) << cpu_isa_name(level) << " n " << n << " threads " << count;
      }
  }
  set_num_threads(threads);
}

TEST(Reduce, ColumnsGiveTheSameBitsOnEveryLevelAndThreadCount) {
  const int threads = num_threads();
  Random random(54);
  const ReduceShape s{2, 1000, 75};
  const Array x = random.array(Elem::F32, s.outer * s.reduced * s.inner);
  Array want(Elem::F32, s.outer * s.inner);
  set_num_threads(1);
  reduce_table(CpuIsa::Baseline)
      .reduce(ReduceOp::SumSquares, Elem::F32, x.data(), s, want.data(), Elem::F32, 1);
  set_num_threads(3);
  for (CpuIsa level : levels()) {
    Array got(Elem::F32, want.size());
    reduce_table(level).reduce(ReduceOp::SumSquares, Elem::F32, x.data(), s, got.data(), Elem::F32, 1);
    EXPECT_TRUE(got.same_bits(want)) << cpu_isa_name(level);
  }
  set_num_threads(threads);
}

TEST(Reduce, TenMillionTenthsSumToAMillion) {
  const std::vector<float> x(10'000'000, 0.1f);
  float sum = 0;
  reduce(ReduceOp::Sum, Elem::F32, x.data(), {1, 10'000'000, 1}, &sum, Elem::F32);
  EXPECT_NEAR(sum, 1e7 * double{0.1f}, 1.0);
}

TEST(Reduce, SixteenBitSumsAccumulateInFloatAndRoundOnce) {
  const Array ones(Elem::BF16, std::vector<double>(4096, 1)),
      halves(Elem::F16, std::vector<double>(70000, 1));
  Array out(Elem::BF16, 1), wide(Elem::F32, 1), half(Elem::F16, 1);
  reduce(ReduceOp::Sum, Elem::BF16, ones.data(), {1, 4096, 1}, out.data(), Elem::BF16);
  EXPECT_EQ(out[0], 4096);
  reduce(ReduceOp::Sum, Elem::F16, halves.data(), {1, 70000, 1}, wide.data(), Elem::F32, 1.0 / 70000);
  EXPECT_EQ(wide[0], 1);
  reduce(ReduceOp::Sum, Elem::F16, halves.data(), {1, 70000, 1}, half.data(), Elem::F16);
  EXPECT_EQ(half[0], INFINITY);
}

TEST(Reduce, NothingToReduceGivesTheIdentity) {
  for (CpuIsa level : levels())
    for (int64_t inner : {1, 3}) {
      float out[3];
      auto run = [&](ReduceOp op) {
        reduce_table(level).reduce(op, Elem::F32, nullptr, {1, 0, inner}, out, Elem::F32, 1);
        return out[inner - 1];
      };
      EXPECT_EQ(run(ReduceOp::Sum), 0);
      EXPECT_EQ(run(ReduceOp::Prod), 1);
      EXPECT_EQ(run(ReduceOp::LogSumExp), -INFINITY);
      int64_t sum = 7;
      reduce_table(level).reduce(ReduceOp::Sum, Elem::I64, nullptr, {1, 0, 1}, &sum, Elem::I64, 1);
      EXPECT_EQ(sum, 0);
      uint8_t truth = 7;
      reduce_table(level).reduce(ReduceOp::All, Elem::F32, nullptr, {1, 0, 1}, &truth, Elem::Bool, 1);
      EXPECT_EQ(truth, 1);
    }
  float out = 0;
  EXPECT_THROW(reduce(ReduceOp::Max, Elem::F32, nullptr, {1, 0, 1}, &out, Elem::F32), ValueError);
  int64_t index;
  EXPECT_THROW(arg_reduce(true, Elem::F32, nullptr, {1, 0, 1}, &index, nullptr), ValueError);
}

TEST(Reduce, NanWinsInMaxMinAndIsTrueInAnyAndAll) {
  for (CpuIsa level : levels())
    for (Elem type : float_types())
      for (int64_t inner : {1, 20})
        for (int64_t at : {0, 5, 99}) {
          Array x(type, std::vector<double>(static_cast<size_t>(100 * inner), 0));
          x.set(at * inner, NAN);
          Array out(type, inner);
          for (ReduceOp op : {ReduceOp::Max, ReduceOp::Min}) {
            reduce_table(level).reduce(op, type, x.data(), {1, 100, inner}, out.data(), type, 1);
            EXPECT_TRUE(std::isnan(out[0])) << cpu_isa_name(level) << int(type) << " " << at;
            EXPECT_EQ(out[inner - 1] == 0, inner > 1);
          }
          std::vector<uint8_t> any(static_cast<size_t>(inner));
          reduce_table(level).reduce(ReduceOp::Any, type, x.data(), {1, 100, inner}, any.data(), Elem::Bool,
                                     1);
          EXPECT_EQ(any[0], 1);
        }
}

TEST(ArgReduce, FirstOfTiesAndFirstNanForEveryTypeLevelAndLayout) {
  std::vector<Elem> types = float_types();
  types.insert(types.end(), std::begin(kIntegers), std::end(kIntegers));
  for (CpuIsa level : levels())
    for (Elem type : types)
      for (ReduceShape s : kShapes)
        for (bool largest : {true, false})
          for (bool nan : {false, true}) {
            if (nan && !is_float(type)) continue;
            SCOPED_TRACE(::testing::Message()
                         << cpu_isa_name(level) << " type " << int(type) << " largest " << largest << " nan "
                         << nan << " shape " << s.outer << "," << s.reduced << "," << s.inner);
            Random random(55);
            const int64_t n = s.outer * s.reduced * s.inner;
            Array x = random_integers(random, is_float(type) ? Elem::I32 : type, n);  // many ties
            if (is_float(type)) x = Array(type, x.values());
            if (nan)
              for (int64_t i = 0; i < n; i += 7) x.set(i, NAN);
            std::vector<int64_t> index(static_cast<size_t>(s.outer * s.inner));
            Array value(type, s.outer * s.inner);
            reduce_table(level).arg_reduce(largest, type, x.data(), s, index.data(), value.data());
            const std::vector<double> want = reference(x, s, [&](const std::vector<double>& row) {
              size_t best = 0;
              for (size_t i = 0; i < row.size(); ++i) {
                if (std::isnan(row[best])) break;
                if (std::isnan(row[i]) || (largest ? row[i] > row[best] : row[i] < row[best])) best = i;
              }
              return double(best);
            });
            for (size_t i = 0; i < want.size(); ++i) {
              ASSERT_EQ(index[i], want[i]) << i;
              const int64_t o = int64_t(i) / s.inner, c = int64_t(i) % s.inner;
              const double v = x[(o * s.reduced + index[i]) * s.inner + c];
              ASSERT_TRUE(v == value[int64_t(i)] || (std::isnan(v) && std::isnan(value[int64_t(i)])));
            }
          }
}

TEST(VarMean, MatchesFloat64AlsoFarFromZero) {
  for (CpuIsa level : levels())
    for (Elem type : float_types())
      for (ReduceShape s : kShapes)
        for (double correction : {0.0, 1.0}) {
          SCOPED_TRACE(::testing::Message()
                       << cpu_isa_name(level) << " type " << int(type) << " shape " << s.outer << ","
                       << s.reduced << "," << s.inner << " correction " << correction);
          Random random(56);
          Array x = random.array(type, s.outer * s.reduced * s.inner);
          for (int64_t i = 0; i < x.size(); ++i) x.set(i, x[i] + 100);
          Array var(type, s.outer * s.inner), mean(type, s.outer * s.inner);
          reduce_table(level).var_mean(type, x.data(), s, correction, false, var.data(), mean.data());
          auto average = [](const std::vector<double>& row) {
            double sum = 0;
            for (double v : row) sum += v;
            return sum / double(row.size());
          };
          const double acc = epsilon(accumulate_type(type));
          expect_close(mean, reference(x, s, average), epsilon(type) + 40 * acc, "mean");
          expect_close(var,
                       reference(x, s,
                                 [&](const std::vector<double>& row) {
                                   double sum = 0;
                                   const double centre = average(row);
                                   for (double v : row) sum += (v - centre) * (v - centre);
                                   return sum / std::max(0.0, double(row.size()) - correction);
                                 }),
                       epsilon(type) + 100 * acc, "var");
        }
}

TEST(VarMean, SquareRootGivesTheStandardDeviationAndNothingGivesNan) {
  const float x[4] = {1, 2, 3, 4};
  float std_dev = 0, mean = 0;
  var_mean(Elem::F32, x, {1, 4, 1}, 1, true, &std_dev, &mean);
  EXPECT_NEAR(std_dev, 1.2909944487, 1e-6);
  EXPECT_EQ(mean, 2.5f);
  var_mean(Elem::F32, x, {1, 0, 1}, 0, false, &std_dev, &mean);
  EXPECT_TRUE(std::isnan(std_dev) && std::isnan(mean));
}

}  // namespace
}  // namespace vesta::cpu
