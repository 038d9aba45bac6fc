// Losses against their formulas in double, in all reductions.
#include <numbers>

#include "support/expect.h"
#include "vesta/nn.h"

namespace vesta::nn {
namespace {

namespace F = functional;
using Numbers = std::vector<double>;
constexpr uint64_t kSeed = 6;

// Checks the three reductions of a loss whose elements are `expected`.
void expect_reductions(const std::function<Tensor(Reduction)>& loss, const Numbers& expected,
                       double tolerance = 1e-5) {
  test::expect_close(loss(kNone), expected, tolerance);
  double sum = 0;
  for (const double e : expected) sum += e;
  test::expect_close(loss(kSum), {sum}, tolerance);
  test::expect_close(loss(kMean), {sum / double(expected.size())}, tolerance);
}

struct Data {
  Tensor x, y, sign, zero_one;
  Numbers xs, ys, signs, bits;
  Data() {
    manual_seed(kSeed);
    x = randn({6, 5});
    y = randn({6, 5});
    zero_one = randint(0, 2, {6, 5}).to(kFloat32);
    sign = zero_one * 2 - 1;
    xs = test::numbers(x), ys = test::numbers(y), signs = test::numbers(sign), bits = test::numbers(zero_one);
  }
};

double softplus(double x) { return std::log1p(std::exp(-std::abs(x))) + std::max(x, 0.0); }
double distance(const Numbers& a, const Numbers& b, size_t row, double eps = 1e-6) {
  double sum = 0;
  for (size_t k = 0; k < 5; ++k) sum += std::pow(a[row * 5 + k] - b[row * 5 + k] + eps, 2);
  return std::sqrt(sum);
}

TEST(Losses, OfSingleElementsEqualTheirFormulas) {
  const Data d;
  Numbers hinge, soft, poisson, poisson_plain, gauss;
  const Tensor counts = (d.y.abs() * 3).floor(), var = d.y.abs() + 0.1;
  const Numbers ns = test::numbers(counts), vs = test::numbers(var);
  for (size_t i = 0; i < d.xs.size(); ++i) {
    hinge.push_back(d.signs[i] > 0 ? d.xs[i] : std::max(0.0, 0.8 - d.xs[i]));
    soft.push_back(softplus(-d.signs[i] * d.xs[i]));
    const double n = ns[i];
    const double stirling = n > 1 ? n * std::log(n) - n + 0.5 * std::log(2 * std::numbers::pi * n) : 0;
    poisson.push_back(std::exp(d.xs[i]) - n * d.xs[i] + stirling);
    poisson_plain.push_back(std::abs(d.xs[i]) - n * std::log(std::abs(d.xs[i]) + 1e-8));
    gauss.push_back(
        0.5 * (std::log(vs[i]) + std::pow(d.xs[i] - d.ys[i], 2) / vs[i] + std::log(2 * std::numbers::pi)));
  }
  expect_reductions(
      [&](Reduction r) {
        return HingeEmbeddingLoss(HingeEmbeddingLossOptions().margin(0.8).reduction(r))(d.x, d.sign);
      },
      hinge);
  expect_reductions([&](Reduction r) { return SoftMarginLoss(SoftMarginLossOptions(r))(d.x, d.sign); }, soft);
  expect_reductions(
      [&](Reduction r) {
        return PoissonNLLLoss(PoissonNLLLossOptions().full(true).reduction(r))(d.x, counts);
      },
      poisson);
  expect_reductions(
      [&](Reduction r) {
        return PoissonNLLLoss(PoissonNLLLossOptions().log_input(false).reduction(r))(d.x.abs(), counts);
      },
      poisson_plain);
  expect_reductions(
      [&](Reduction r) {
        return GaussianNLLLoss(GaussianNLLLossOptions().full(true).reduction(r))(d.x, d.y, var);
      },
      gauss);
}

TEST(Losses, OfRowsEqualTheirFormulas) {
  const Data d;
  const Tensor z = randn({6, 5}), row_sign = d.sign.select(1, 0);
  const Numbers zs = test::numbers(z), ss = test::numbers(row_sign);
  Numbers cosine, triplet, multilabel, ranking;
  for (size_t i = 0; i < 6; ++i) {
    double xy = 0, xx = 0, yy = 0, ml = 0;
    for (size_t k = i * 5; k < i * 5 + 5; ++k) {
      xy += d.xs[k] * d.ys[k], xx += d.xs[k] * d.xs[k], yy += d.ys[k] * d.ys[k];
      ml += d.bits[k] * softplus(-d.xs[k]) + (1 - d.bits[k]) * softplus(d.xs[k]);
    }
    const double cos = xy / std::sqrt(xx * yy);
    cosine.push_back(ss[i] > 0 ? 1 - cos : std::max(0.0, cos - 0.1));
    multilabel.push_back(ml / 5);
    triplet.push_back(std::max(
        0.0, distance(d.xs, d.ys, i) - std::min(distance(d.xs, zs, i), distance(d.ys, zs, i)) + 0.9));
    ranking.push_back(std::max(0.0, -ss[i] * (d.xs[i * 5] - d.ys[i * 5]) + 0.2));
  }
  expect_reductions(
      [&](Reduction r) {
        return CosineEmbeddingLoss(CosineEmbeddingLossOptions().margin(0.1).reduction(r))(d.x, d.y, row_sign);
      },
      cosine);
  expect_reductions(
      [&](Reduction r) {
        return MultiLabelSoftMarginLoss(MultiLabelSoftMarginLossOptions().reduction(r))(d.x, d.zero_one);
      },
      multilabel);
  expect_reductions(
      [&](Reduction r) {
        return TripletMarginLoss(TripletMarginLossOptions().margin(0.9).swap(true).reduction(r))(d.x, d.y, z);
      },
      triplet);
  expect_reductions(
      [&](Reduction r) {
        return TripletMarginWithDistanceLoss(
            TripletMarginWithDistanceLossOptions().margin(0.9).swap(true).reduction(r))(d.x, d.y, z);
      },
      triplet);
  expect_reductions(
      [&](Reduction r) {
        return MarginRankingLoss(MarginRankingLossOptions().margin(0.2).reduction(r))(
            d.x.select(1, 0), d.y.select(1, 0), row_sign);
      },
      ranking);
}

TEST(TripletMarginWithDistanceLoss, CallsTheDistanceItIsGiven) {
  const Data d;
  const auto options =
      TripletMarginWithDistanceLossOptions()
          .distance_function([](const Tensor& a, const Tensor& b) { return (a - b).abs().sum({-1}); })
          .reduction(kSum);
  double expected = 0;
  for (size_t i = 0; i < 6; ++i) {
    double near = 0;
    for (size_t k = i * 5; k < i * 5 + 5; ++k) near += std::abs(d.xs[k] - d.ys[k]);
    expected += near + 1;  // the negative is the anchor itself
  }
  test::expect_close(TripletMarginWithDistanceLoss(options)(d.x, d.y, d.x), {expected}, 1e-5);
}

TEST(KLDivLoss, EqualsItsFormula) {
  const Data d;
  const Tensor target = d.y.softmax(-1), log_target = d.y.log_softmax(-1);
  const Numbers t = test::numbers(target);
  Numbers expected;
  double sum = 0;
  for (size_t i = 0; i < t.size(); ++i) {
    expected.push_back(t[i] * (std::log(t[i]) - d.xs[i]));
    sum += expected.back();
  }
  expect_reductions([&](Reduction r) { return KLDivLoss(KLDivLossOptions(r))(d.x, target); }, expected);
  expect_reductions(
      [&](Reduction r) { return KLDivLoss(KLDivLossOptions(r).log_target(true))(d.x, log_target); },
      expected);
  test::expect_close(KLDivLoss(KLDivLossOptions(kBatchMean))(d.x, target), {sum / 6}, 1e-5);
}

TEST(MultiMarginLoss, EqualsItsFormula) {
  const Data d;
  const Tensor target = randint(0, 5, {6}), weight = rand({5});
  const Numbers t = test::numbers(target), w = test::numbers(weight);
  Numbers expected;
  for (size_t i = 0; i < 6; ++i) {
    const size_t y = size_t(t[i]);
    double sum = 0;
    for (size_t k = 0; k < 5; ++k)
      if (k != y) sum += w[y] * std::pow(std::max(0.0, 0.9 - d.xs[i * 5 + y] + d.xs[i * 5 + k]), 2);
    expected.push_back(sum / 5);
  }
  expect_reductions(
      [&](Reduction r) {
        return MultiMarginLoss(MultiMarginLossOptions().p(2).margin(0.9).weight(weight).reduction(r))(d.x,
                                                                                                      target);
      },
      expected);
}

TEST(GaussianNLLLoss, TakesVariancesByRowAndKeepsThemAboveEps) {
  const Data d;
  const Tensor by_row = rand({6}) + 0.5;
  const Tensor whole = by_row.unsqueeze(-1).expand({6, 5});
  const Tensor expected = F::gaussian_nll_loss(d.x, d.y, whole);
  test::expect_close(F::gaussian_nll_loss(d.x, d.y, by_row), expected, 1e-6);
  test::expect_close(F::gaussian_nll_loss(d.x, d.y, by_row.unsqueeze(-1)), expected, 1e-6);
  test::expect_close(F::gaussian_nll_loss(d.x, d.y, zeros({6, 1}), F::GaussianNLLLossFuncOptions().eps(0.5)),
                     F::gaussian_nll_loss(d.x, d.y, full({6, 1}, 0.5)), 1e-6);
  EXPECT_THROW(F::gaussian_nll_loss(d.x, d.y, -by_row), ValueError);
  EXPECT_THROW(F::gaussian_nll_loss(d.x, d.y, rand({5})), ValueError);
}

TEST(Losses, RefuseTheBatchMeanExceptForKLDiv) {
  const Data d;
  EXPECT_THROW(F::multilabel_soft_margin_loss(d.x, d.zero_one,
                                              F::MultilabelSoftMarginLossFuncOptions().reduction(kBatchMean)),
               Error);
  EXPECT_THROW(F::soft_margin_loss(d.x, d.sign, F::SoftMarginLossFuncOptions(kBatchMean)), Error);
  EXPECT_THROW(F::kl_div(ones({}), ones({}), F::KLDivFuncOptions(kBatchMean)), ValueError);
}

}  // namespace
}  // namespace vesta::nn
