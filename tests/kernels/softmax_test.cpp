// Softmax and log-softmax against float64 loops, for every float type, CPU level and layout.
#include "kernels/cpu/softmax.h"

#include <vesta/error.h>

#include "base/thread_pool.h"
#include "kernel_testing.h"

namespace vesta::cpu {
namespace {

using namespace testing;

std::vector<double> reference_forward(const Array& x, SoftmaxShape s, bool log) {
  std::vector<double> y(static_cast<size_t>(x.size()));
  for (int64_t o = 0; o < s.outer; ++o)
    for (int64_t i = 0; i < s.inner; ++i) {
      auto at = [&](int64_t d) { return (o * s.dim + d) * s.inner + i; };
      double m = -INFINITY;
      long double sum = 0;
      for (int64_t d = 0; d < s.dim; ++d) m = std::max(m, x[at(d)]);
      for (int64_t d = 0; d < s.dim; ++d) sum += std::exp(x[at(d)] - m);
      for (int64_t d = 0; d < s.dim; ++d)
        y[static_cast<size_t>(at(d))] =
            log ? x[at(d)] - m - std::log(double(sum)) : std::exp(x[at(d)] - m) / double(sum);
    }
  return y;
}

std::vector<double> reference_backward(const Array& dy, const Array& y, SoftmaxShape s, bool log) {
  std::vector<double> dx(static_cast<size_t>(y.size()));
  for (int64_t o = 0; o < s.outer; ++o)
    for (int64_t i = 0; i < s.inner; ++i) {
      auto at = [&](int64_t d) { return (o * s.dim + d) * s.inner + i; };
      long double all = 0;
      for (int64_t d = 0; d < s.dim; ++d) all += log ? dy[at(d)] : dy[at(d)] * y[at(d)];
      const double sum = double(all);
      for (int64_t d = 0; d < s.dim; ++d)
        dx[static_cast<size_t>(at(d))] =
            log ? dy[at(d)] - std::exp(y[at(d)]) * sum : y[at(d)] * (dy[at(d)] - sum);
    }
  return dx;
}

const SoftmaxShape kShapes[] = {
    {1, 1, 1},
    {3, 5, 1},
    {7, 16, 1},
    {4, 33, 1},
    {2, 1000, 1},
    {1, 70001, 1},
    {3, 9, 2},
    {2, 17, 16},
    {2, 6, 37},
    {5, 1, 3},
    // Several bands and a narrower last one; a band of one vector; columns without scratch.
    {2, 20, 1700},
    {1, 2000, 40},
    {1, 9000, 21}};

TEST(Softmax, MatchesFloat64ForEveryTypeLevelAndLayout) {
  for (CpuIsa level : levels())
    for (Elem type : float_types())
      for (SoftmaxShape s : kShapes)
        for (bool log : {false, true}) {
          SCOPED_TRACE(::testing::Message() << cpu_isa_name(level) << " type " << int(type) << " shape "
                                            << s.outer << "," << s.dim << "," << s.inner << " log " << log);
          Random random(17);
          const Array x = random.array(type, s.outer * s.dim * s.inner, 3);
          const Array dy = random.array(type, x.size());
          Array y(type, x.size()), dx(type, x.size());
          softmax_table(level).forward(type, x.data(), y.data(), s, log, false);
          expect_close(y, reference_forward(x, s, log),
                       2 * epsilon(type) + 16 * epsilon(accumulate_type(type)), "y");
          softmax_table(level).backward(type, dy.data(), y.data(), dx.data(), s, log);
          const double growth = log ? std::sqrt(double(s.dim)) : 1;
          expect_close(dx, reference_backward(dy, y, s, log), 8 * growth * epsilon(type), "dx");
        }
}

TEST(Softmax, SmallProbabilitiesKeepTheirRelativeAccuracy) {
  for (CpuIsa level : levels()) {
    const Array x(Elem::F32, {0, -1, -5, -20, -60, -86, -3, 0.5});
    Array y(Elem::F32, 8);
    softmax_table(level).forward(Elem::F32, x.data(), y.data(), {1, 8, 1}, false, false);
    const std::vector<double> want = reference_forward(x, {1, 8, 1}, false);
    for (int64_t i = 0; i < 8; ++i)
      EXPECT_NEAR(y[i] / want[static_cast<size_t>(i)], 1, 1e-6) << "element " << i;
  }
}

TEST(Softmax, RowsOfMinusInfinityGiveNanOrZeroWhenSafe) {
  for (CpuIsa level : levels())
    for (Elem type : float_types())
      for (int64_t dim : {3, 20, 70000})
        for (int64_t inner : {1, 5}) {
          SCOPED_TRACE(::testing::Message() << cpu_isa_name(level) << " type " << int(type) << " dim " << dim
                                            << " inner " << inner);
          const Array x(type, std::vector<double>(static_cast<size_t>(dim * inner), -INFINITY));
          Array y(type, dim * inner);
          softmax_table(level).forward(type, x.data(), y.data(), {1, dim, inner}, false, false);
          EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[dim * inner - 1]));
          softmax_table(level).forward(type, x.data(), y.data(), {1, dim, inner}, true, false);
          EXPECT_TRUE(std::isnan(y[0]));
          softmax_table(level).forward(type, x.data(), y.data(), {1, dim, inner}, false, true);
          EXPECT_EQ(y[0], 0);
          EXPECT_EQ(y[dim * inner - 1], 0);
        }
}

TEST(Softmax, ANanMakesItsRowNanAlsoWhenSafe) {
  for (CpuIsa level : levels())
    for (bool safe : {false, true})
      for (double other : std::vector<double>{1.0, -INFINITY}) {
        Array x(Elem::F32, std::vector<double>(40, other));
        x.set(7, NAN);
        for (int64_t i = 20; i < 40; ++i) x.set(i, 1);
        Array y(Elem::F32, 40);
        softmax_table(level).forward(Elem::F32, x.data(), y.data(), {2, 20, 1}, false, safe);
        EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[19])) << cpu_isa_name(level) << safe << other;
        EXPECT_NEAR(y[20], 0.05, 1e-7);
      }
}

TEST(Softmax, PartlyMaskedRowsAreExact) {
  for (CpuIsa level : levels()) {
    const Array x(Elem::F32, {-INFINITY, 0, -INFINITY, 0});
    Array y(Elem::F32, 4);
    softmax_table(level).forward(Elem::F32, x.data(), y.data(), {1, 4, 1}, false, false);
    EXPECT_EQ(y.values(), (std::vector<double>{0, 0.5, 0, 0.5}));
  }
}

TEST(Softmax, WorksInPlaceAndDoesNotDependOnTheThreadCount) {
  const int threads = num_threads();
  Random random(18);
  const Array x = random.array(Elem::F32, 300 * 129);
  Array one(Elem::F32, x.size()), many = x;
  set_num_threads(1);
  softmax_forward(Elem::F32, x.data(), one.data(), {300, 129, 1}, false);
  set_num_threads(3);
  softmax_forward(Elem::F32, many.data(), many.data(), {300, 129, 1}, false);
  EXPECT_TRUE(one.same_bits(many));
  Array columns = x;
  set_num_threads(1);
  softmax_forward(Elem::F32, x.data(), one.data(), {2, 30, 645}, false);
  set_num_threads(3);
  softmax_forward(Elem::F32, columns.data(), columns.data(), {2, 30, 645}, false);
  EXPECT_TRUE(one.same_bits(columns));
  Array dx(Elem::F32, x.size());
  softmax_backward(Elem::F32, x.data(), one.data(), dx.data(), {2, 30, 645}, false);
  set_num_threads(1);
  softmax_backward(Elem::F32, x.data(), one.data(), one.data(), {2, 30, 645}, false);
  set_num_threads(threads);
  EXPECT_TRUE(one.same_bits(dx));
}

TEST(Softmax, RejectsIntegers) {
  int64_t x = 0;
  EXPECT_THROW(softmax_forward(Elem::I64, &x, &x, {1, 1, 1}, false), TypeError);
}

}  // namespace
}  // namespace vesta::cpu
