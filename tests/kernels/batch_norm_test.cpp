// Passes over channels against float64 loops, for every type, both memory formats and every CPU level's loops.
#include "kernels/cpu/batch_norm.h"

#include <vesta/threads.h>

#include "kernel_testing.h"

namespace vesta::cpu {
namespace {

using namespace testing;

constexpr uint64_t kSeed = 61;
const ChannelShape kShapes[] = {{1, 1, 1},           {4, 3, 1, true}, {3, 5, 7},        {2, 4, 33},
                                {2, 3, 2500},        {5, 70, 16},     {2, 16, 9, true}, {40, 65, 30, true},
                                {700, 130, 2, true}, {3, 0, 4}};

int64_t channel_of(const ChannelShape& s, int64_t i) {
  return s.last ? i % s.channels : i / s.inner % s.channels;
}

std::vector<double> drawn(Random& random, int64_t n, double centre) {
  std::vector<double> v;
  for (int64_t i = 0; i < n; ++i) v.push_back(centre + random.normal());
  return v;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& want, double tolerance,
                 const char* what) {
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(got[i], want[i], tolerance * (1 + std::fabs(want[i]))) << what << " of channel " << i;
}

void check(Elem type, const ChannelShape& s) {
  SCOPED_TRACE(::testing::Message() << "seed " << kSeed << " type " << int(type) << " batch " << s.batch
                                    << " channels " << s.channels << " inner " << s.inner << " last "
                                    << s.last);
  Random random(kSeed);
  const int64_t n = s.count() * s.channels;
  const auto channels = static_cast<size_t>(s.channels);
  Array x = random.array(type, n, 2);
  const Array dy = random.array(type, n);
  for (int64_t i = 0; i < n; ++i) x.set(i, x[i] + 5);
  const double count = static_cast<double>(s.count()), eps = epsilon(accumulate_type(type));

  std::vector<double> mean(channels), variance(channels), want_mean(channels), want_variance(channels);
  for (int64_t i = 0; i < n; ++i) want_mean[size_t(channel_of(s, i))] += x[i] / count;
  for (int64_t i = 0; i < n; ++i) {
    const double d = x[i] - want_mean[size_t(channel_of(s, i))];
    want_variance[size_t(channel_of(s, i))] += d * d / count;
  }
  channel_moments(type, s, x.data(), mean.data(), variance.data());
  expect_near(mean, want_mean, 20 * eps, "mean");
  expect_near(variance, want_variance, 50 * eps, "variance");

  const auto a = drawn(random, s.channels, 1), b = drawn(random, s.channels, 0),
             c = drawn(random, s.channels, 0);
  Array y(type, n), dx(type, n);
  std::vector<double> want_y, want_dx, sum(channels), product(channels), want_sum(channels),
      want_product(channels), scale(channels, 1);
  for (int64_t i = 0; i < n; ++i) {
    const auto ch = size_t(channel_of(s, i));
    const double d = x[i] - want_mean[ch];
    want_y.push_back(d * a[ch] + b[ch]);
    want_dx.push_back(a[ch] * dy[i] + b[ch] * d + c[ch]);
    want_sum[ch] += dy[i];
    want_product[ch] += dy[i] * d;
    scale[ch] += std::fabs(dy[i] * d) + std::fabs(dy[i]);
  }
  channel_apply(type, s, x.data(), want_mean.data(), a.data(), b.data(), y.data());
  expect_close(y, want_y, 2 * epsilon(type) + 20 * eps, "apply");
  channel_gradient(type, s, dy.data(), x.data(), want_mean.data(), a.data(), b.data(), c.data(), dx.data());
  expect_close(dx, want_dx, 2 * epsilon(type) + 20 * eps, "gradient");
  channel_products(type, s, dy.data(), x.data(), want_mean.data(), sum.data(), product.data());
  std::vector<double> alone(channels);
  channel_sum(type, s, dy.data(), alone.data());
  for (size_t i = 0; i < channels; ++i) {
    ASSERT_NEAR(alone[i], want_sum[i], 10 * eps * scale[i]) << "sum alone of channel " << i;
    ASSERT_NEAR(sum[i], want_sum[i], 10 * eps * scale[i]) << "sum of channel " << i;
    ASSERT_NEAR(product[i], want_product[i], 10 * eps * scale[i]) << "product of channel " << i;
  }

  const int threads = num_threads();
  set_num_threads(1);
  std::vector<double> again(channels), again_variance(channels), again_sum(channels), again_product(channels);
  channel_moments(type, s, x.data(), again.data(), again_variance.data());
  channel_products(type, s, dy.data(), x.data(), want_mean.data(), again_sum.data(), again_product.data());
  set_num_threads(threads);
  EXPECT_TRUE(again == mean && again_variance == variance && again_sum == sum && again_product == product)
      << "one thread gives other bits";
}

TEST(BatchNorm, PassesAgreeWithLoops) {
  for (const Elem type : float_types())
    for (const ChannelShape& s : kShapes) {
      check(type, s);
      if (::testing::Test::HasFatalFailure()) return;
    }
}

TEST(BatchNorm, LevelsAgree) {
  Random random(kSeed);
  const Array x = random.array(Elem::F32, 1500);
  const double centre = 0.25,
               want = batch_norm_table(CpuIsa::Baseline).squares(Elem::F32, x.data(), 1500, centre);
  for (const CpuIsa level : levels()) {
    EXPECT_NEAR(batch_norm_table(level).squares(Elem::F32, x.data(), 1500, centre), want, 1e-6 * want)
        << cpu_isa_name(level);
    EXPECT_NEAR(batch_norm_table(level).sum(Elem::F32, x.data(), 1500),
                batch_norm_table(CpuIsa::Baseline).sum(Elem::F32, x.data(), 1500), 1e-4);
  }
}

TEST(BatchNorm, NothingAndNaNGiveNaN) {
  double mean[2] = {0, 0}, variance[2] = {0, 0};
  channel_moments(Elem::F32, {0, 2, 5}, nullptr, mean, variance);
  EXPECT_TRUE(std::isnan(mean[0]) && std::isnan(variance[1]));
  const float x[] = {1, NAN, 2, INFINITY};
  channel_moments(Elem::F32, {1, 2, 2}, x, mean, variance);
  EXPECT_TRUE(std::isnan(mean[0]) && std::isnan(variance[0]) && std::isnan(variance[1]));
}

}  // namespace
}  // namespace vesta::cpu
