// Histograms, quantiles and segments against loops over random data; draws of varying cost against their moments.
#include <gtest/gtest.h>
#include <vesta/error.h>

#include <algorithm>
#include <cmath>

#include "base/thread_pool.h"
#include "vesta/autograd.h"
#include "vesta/indexing.h"
#include "vesta/ops.h"

namespace vesta {
namespace {

Tensor draw(std::vector<int64_t> sizes, uint64_t seed, DType t = kDouble) {
  return randn(sizes, Generator(seed), TensorOptions(t));
}
Tensor integers(std::vector<int64_t> v) {
  Tensor t = empty({int64_t(v.size())}, TensorOptions(kLong));
  std::copy(v.begin(), v.end(), t.data_ptr<int64_t>());
  return t;
}
double mean_of(const Tensor& t) { return t.to(kDouble).mean().item<double>(); }
double variance_of(const Tensor& t) { return t.to(kDouble).var().item<double>(); }

TEST(Histogram, CountsAndWeightsEqualALoop) {
  Tensor x = draw({100003}, 1), w = rand({100003}, Generator(2), TensorOptions(kDouble));
  auto [hist, edges] = histogram(x, 17, std::nullopt, w);
  std::vector<double> want(17, 0);
  const double* e = edges.data_ptr<double>();
  for (int64_t i = 0; i < x.numel(); ++i) {
    double v = x.data_ptr<double>()[i];
    int64_t bin = 0;
    while (bin < 16 && v >= e[bin + 1]) ++bin;
    want[size_t(bin)] += w.data_ptr<double>()[i];
  }
  for (size_t b = 0; b < 17; ++b) EXPECT_NEAR(hist.data_ptr<double>()[b], want[b], 1e-9) << "bin " << b;
  EXPECT_EQ(e[0], x.min().item<double>());
  EXPECT_EQ(e[17], x.max().item<double>());
  auto [density, same] = histogram(x, 17, std::nullopt, {}, true);
  EXPECT_NEAR((density * same.diff()).sum().item<double>(), 1, 1e-12);
}

TEST(Histogram, PointsOnEdgesAndOutsideOfThem) {
  Tensor edges = linspace(0, 3, 4), x = linspace(-1, 4, 11);  // -1, -0.5, ..., 4
  auto [hist, same] = histogram(x, edges);
  EXPECT_EQ(hist[0].item<float>(), 2);  // 0, 0.5
  EXPECT_EQ(hist[2].item<float>(), 3);  // 2, 2.5, 3
  x[3] = NAN;
  EXPECT_EQ(std::get<0>(histogram(x, edges)).sum().item<float>(), 6);
  EXPECT_EQ(std::get<1>(histogram(full({3}, 2.0), 2))[0].item<float>(), 1.5f);
  EXPECT_THROW(histogram(x, 4), ValueError);  // a NaN has no range
  EXPECT_THROW(histogram(zeros({3}), 0), ValueError);
  EXPECT_THROW(histogram(zeros({3}), INT64_MAX), Error);
  EXPECT_THROW(histogram(zeros({3}), edges.to(kDouble)), TypeError);
  EXPECT_THROW(histogram(zeros({3}, TensorOptions(kLong)), 3), TypeError);
  EXPECT_THROW(histogram(zeros({3}), edges, ones({2})), ValueError);
}

TEST(Histogram, BoxesOfTwoDimsAddUpToTheirMargins) {
  Tensor x = draw({5000, 2}, 3);
  auto [hist, edges] = histogramdd(x, {4, 6}, std::vector<double>{-2, 2, -1, 3});
  ASSERT_EQ(edges.size(), 2u);
  Tensor inside = x.narrow(1, 1, 1);
  Tensor kept = x.index({(inside >= -1).logical_and(inside <= 3).squeeze(1)}).narrow(1, 0, 1).contiguous();
  auto [margin, e] = histogram(kept, edges[0]);
  EXPECT_TRUE(equal(hist.sum(IntArrayRef{1}), margin));
  EXPECT_THROW(histogramdd(x, std::vector<int64_t>{4}), ValueError);
  EXPECT_THROW(histogramdd(x, 4, std::vector<double>{0, 1}), ValueError);
}

TEST(Quantile, InterpolatesBetweenRanks) {
  Tensor x = draw({31}, 4);
  std::vector<double> sorted(x.data_ptr<double>(), x.data_ptr<double>() + 31);
  std::sort(sorted.begin(), sorted.end());
  for (double q : {0., 0.1, 0.37, 0.5, 0.999, 1.}) {
    double rank = q * 30;
    size_t low = size_t(std::floor(rank)), high = size_t(std::ceil(rank));
    double part = rank - std::floor(rank);
    EXPECT_NEAR(quantile(x, q).item<double>(), sorted[low] + part * (sorted[high] - sorted[low]), 1e-12);
    EXPECT_EQ(quantile(x, q, 0, false, "lower").item<double>(), sorted[low]);
    EXPECT_EQ(quantile(x, q, 0, false, "higher").item<double>(), sorted[high]);
    EXPECT_NEAR(quantile(x, q, 0, false, "midpoint").item<double>(), (sorted[low] + sorted[high]) / 2, 1e-15);
  }
  Tensor m = draw({4, 5, 6}, 5), q = linspace(0.2, 0.8, 3, TensorOptions(kDouble));
  EXPECT_EQ(quantile(m, q, 1).sizes().vec(), (std::vector<int64_t>{3, 4, 6}));
  EXPECT_EQ(quantile(m, q, 1, true).sizes().vec(), (std::vector<int64_t>{3, 4, 1, 6}));
  EXPECT_EQ(quantile(m, q).sizes().vec(), (std::vector<int64_t>{3}));
  x[3] = NAN;
  EXPECT_TRUE(std::isnan(quantile(x, 0.5).item<double>()));
  sorted.erase(std::find_if(sorted.begin(), sorted.end(),
                            [&](double v) { return v == draw({31}, 4)[3].item<double>(); }));
  EXPECT_NEAR(nanquantile(x, 0.5).item<double>(), (sorted[14] + sorted[15]) / 2, 1e-12);
  EXPECT_THROW(quantile(x, 1.1), ValueError);
  EXPECT_THROW(quantile(x, linspace(0, 2, 3, TensorOptions(kDouble))), ValueError);
  EXPECT_THROW(quantile(x, 0.5, 1), IndexError);
  EXPECT_THROW(quantile(x, 0.5, 0, false, "nothing"), ValueError);
  EXPECT_THROW(quantile(zeros({0}), 0.5), ValueError);
  EXPECT_THROW(quantile(zeros({3}, TensorOptions(kLong)), 0.5), TypeError);
}

TEST(Segments, ReductionsEqualALoop) {
  Tensor x = draw({9, 3}, 6);
  std::vector<int64_t> lengths{4, 0, 3, 2};
  for (std::string how : {"sum", "mean", "max", "min", "prod"}) {
    Tensor y = segment_reduce(x, how, integers(lengths));
    int64_t at = 0;
    for (size_t s = 0; s < lengths.size(); ++s) {
      for (int64_t c = 0; c < 3; ++c) {
        double want = how == "max" ? -HUGE_VAL : how == "min" ? HUGE_VAL : how == "prod" ? 1 : 0;
        for (int64_t i = at; i < at + lengths[s]; ++i) {
          double v = x[i][c].item<double>();
          want = how == "max"    ? std::max(want, v)
                 : how == "min"  ? std::min(want, v)
                 : how == "prod" ? want * v
                                 : want + v;
        }
        if (how == "mean") want = lengths[s] ? want / double(lengths[s]) : double(NAN);
        double got = y[int64_t(s)][c].item<double>();
        EXPECT_TRUE(std::isnan(want) ? std::isnan(got) : got == want || std::fabs(got - want) < 1e-14)
            << how << " " << s;
      }
      at += lengths[s];
    }
  }
  EXPECT_TRUE(equal(segment_reduce(x, "sum", {}, {}, integers({0, 4, 4, 7, 9})),
                    segment_reduce(x, "sum", integers(lengths))));
  EXPECT_EQ(segment_reduce(x, "mean", integers({0, 9}), {}, {}, 0, false, 5)[0][0].item<double>(), 5);
}

TEST(Segments, LengthsThatLeaveTheDataAreRefused) {
  Tensor x = draw({9, 3}, 6);
  for (auto lengths :
       std::vector<std::vector<int64_t>>{{4, 4}, {10}, {-1, 10}, {INT64_MAX, INT64_MAX}, {INT64_MIN}}) {
    EXPECT_THROW(segment_reduce(x, "sum", integers(lengths)), ValueError);
    if (lengths != std::vector<int64_t>{4, 4}) {
      EXPECT_THROW(segment_reduce(x, "sum", integers(lengths), {}, {}, 0, true), ValueError);
    }
  }
  for (auto offsets : std::vector<std::vector<int64_t>>{{0, 10}, {-1, 3}, {5, 2}, {INT64_MIN, INT64_MAX}, {}})
    EXPECT_THROW(segment_reduce(x, "sum", {}, {}, integers(offsets), 0, true), ValueError);
  EXPECT_THROW(segment_reduce(x, "sum"), ValueError);
  EXPECT_THROW(segment_reduce(x, "median", integers({9})), ValueError);
  EXPECT_THROW(segment_reduce(x, "sum", integers({9}), {}, {}, 2), IndexError);
}

// 100,000 draws: means within 5 standard errors, variances within 3 %.
TEST(Draws, PoissonAndBinomialHaveTheirMoments) {
  for (double mean : {0.3, 4., 9.9, 10.5, 300.}) {
    manual_seed(11);
    Tensor t = poisson(full({100000}, mean, TensorOptions(kDouble)));
    EXPECT_NEAR(mean_of(t), mean, 5 * std::sqrt(mean / 1e5)) << mean;
    EXPECT_NEAR(variance_of(t), mean, 0.03 * mean) << mean;
    EXPECT_TRUE(equal(t, t.floor()));
  }
  for (double n : {1., 7., 40., 5000.})
    for (double p : {0.01, 0.3, 0.5, 0.9}) {
      manual_seed(12);
      Tensor t = binomial(full({100000}, n, TensorOptions(kDouble)), full({}, p, TensorOptions(kDouble)));
      double variance = n * p * (1 - p);
      EXPECT_NEAR(mean_of(t), n * p, 5 * std::sqrt(variance / 1e5)) << n << " " << p;
      EXPECT_NEAR(variance_of(t), variance, 0.03 * variance) << n << " " << p;
      EXPECT_GE(t.min().item<double>(), 0);
      EXPECT_LE(t.max().item<double>(), n);
    }
  EXPECT_EQ(poisson(zeros({5})).sum().item<float>(), 0);
  EXPECT_EQ(binomial(full({2}, 6.0), ones({2}))[0].item<float>(), 6);
  EXPECT_THROW(poisson(full({2}, -1.0)), ValueError);
  EXPECT_THROW(binomial(full({2}, 6.0), full({2}, 1.5)), ValueError);
  EXPECT_THROW(binomial(full({2}, HUGE_VAL), full({2}, 0.5)), ValueError);
  EXPECT_THROW(poisson(ones({2}, TensorOptions(kLong))), TypeError);
}

TEST(Draws, GammaHasItsMomentsAndDirichletItsSimplex) {
  for (double shape : {0.2, 1., 3.7, 50.}) {
    manual_seed(13);
    Tensor t = _standard_gamma(full({100000}, shape, TensorOptions(kDouble)));
    EXPECT_NEAR(mean_of(t), shape, 5 * std::sqrt(shape / 1e5)) << shape;
    EXPECT_NEAR(variance_of(t), shape, 0.05 * shape) << shape;
    EXPECT_GT(t.min().item<double>(), 0);
  }
  manual_seed(14);
  Tensor d = _sample_dirichlet(full({20000, 3}, 2.0, TensorOptions(kDouble)));
  EXPECT_LT((d.sum(IntArrayRef{1}) - 1).abs().max().item<double>(), 1e-14);
  EXPECT_NEAR(mean_of(d.narrow(1, 0, 1)), 1. / 3, 5e-3);
}

// For shape 1 the distribution is exponential: F(a, x) has a closed derivative at a = 1 only by quadrature, so the
// gradient is compared with differences of the regularised incomplete gamma function: dx/da = -(dF/da) / f.
TEST(Draws, GammaGradientFollowsFromTheDistributionFunction) {
  for (double a : {0.3, 1., 2.5, 20., 200.})
    for (double u : {0.02, 0.3, 0.7, 0.98}) {
      // A quantile near u by bisection.
      auto cdf = [](double s, double x) {
        return special_gammainc(full({}, s, TensorOptions(kDouble)), full({}, x, TensorOptions(kDouble)))
            .item<double>();
      };
      double low = 0, high = 10 * a + 50;
      for (int i = 0; i < 200; ++i) (cdf(a, (low + high) / 2) < u ? low : high) = (low + high) / 2;
      double x = (low + high) / 2, h = 1e-4 * a;
      double density = std::exp((a - 1) * std::log(x) - x - std::lgamma(a));
      double want = -(cdf(a + h, x) - cdf(a - h, x)) / (2 * h) / density;
      double got =
          _standard_gamma_grad(full({}, a, TensorOptions(kDouble)), full({}, x, TensorOptions(kDouble)))
              .item<double>();
      EXPECT_NEAR(got, want, 2e-5 * std::fabs(want)) << "shape " << a << ", quantile " << u;
    }
}

TEST(Draws, DependOnTheSeedAloneAndNotOnThreads) {
  Tensor mean = rand({5000}, Generator(1)) * 30, results[2];
  const int threads = num_threads();
  for (int n : {1, 4}) {
    set_num_threads(n);
    manual_seed(15);
    results[n == 4] = poisson(mean);
  }
  set_num_threads(threads);
  EXPECT_TRUE(equal(results[0], results[1]));
  manual_seed(16);
  EXPECT_FALSE(equal(results[0], poisson(mean)));
}

TEST(FakeQuantize, LevelsAreThoseOfTheFormula) {
  Tensor x = draw({200}, 9, kFloat) * 3;
  auto [y, mask] = fake_quantize_per_tensor_affine_cachemask(x, 0.1, 5, -20, 30);
  for (int64_t i = 0; i < x.numel(); ++i) {
    float v = x.data_ptr<float>()[i], q = std::nearbyint(v * (1 / 0.1f)) + 5;
    EXPECT_NEAR(y.data_ptr<float>()[i], (std::clamp(q, -20.f, 30.f) - 5) * 0.1f, 1e-6);
    EXPECT_EQ(mask.data_ptr<bool>()[i], q >= -20 && q <= 30);
  }
  Tensor scale = full({2}, 0.1), zero = full({2}, 5, TensorOptions(kInt)), m = x.view({2, 100});
  EXPECT_TRUE(equal(fake_quantize_per_channel_affine(m, scale, zero, 0, -20, 30).view({200}), y));
  EXPECT_TRUE(
      equal(fake_quantize_per_tensor_affine(x, scale.narrow(0, 0, 1), zero.narrow(0, 0, 1), -20, 30), y));
  EXPECT_THROW(fake_quantize_per_tensor_affine(x, 0.1, 50, -20, 30), ValueError);
  EXPECT_THROW(fake_quantize_per_tensor_affine(x, 0.1, 0, 30, -20), ValueError);
  EXPECT_THROW(fake_quantize_per_channel_affine(m, scale, zero, 1, -20, 30), ValueError);
  EXPECT_THROW(fake_quantize_per_channel_affine(m, scale, zero, 2, -20, 30), IndexError);
}

}  // namespace
}  // namespace vesta
