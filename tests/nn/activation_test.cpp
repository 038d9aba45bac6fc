// Activations against their formulas in double.
#include "support/expect.h"
#include "vesta/autograd.h"
#include "vesta/nn.h"

namespace vesta::nn {
namespace {

namespace F = functional;
constexpr uint64_t kSeed = 5;

struct Case {
  const char* name;
  std::function<Tensor(const Tensor&)> module;
  std::function<double(double)> formula;
};

TEST(Activations, EqualTheirFormulas) {
  manual_seed(kSeed);
  const double alpha = 1.6732632423543772848170429916717, scale = 1.0507009873554804934193349852946;
  const std::vector<Case> cases = {
      {"SELU", [](const Tensor& x) { return SELU()(x); },
       [=](double x) { return scale * (x > 0 ? x : alpha * (std::exp(x) - 1)); }},
      {"CELU", [](const Tensor& x) { return CELU(CELUOptions().alpha(0.7))(x); },
       [](double x) { return std::max(0.0, x) + std::min(0.0, 0.7 * (std::exp(x / 0.7) - 1)); }},
      {"Hardshrink", [](const Tensor& x) { return Hardshrink(0.4)(x); },
       [](double x) { return std::abs(x) > 0.4 ? x : 0; }},
      {"Softshrink", [](const Tensor& x) { return Softshrink(0.4)(x); },
       [](double x) { return x > 0.4    ? x - 0.4
                             : x < -0.4 ? x + 0.4
                                        : 0; }},
      {"Tanhshrink", [](const Tensor& x) { return Tanhshrink()(x); },
       [](double x) { return x - std::tanh(x); }},
      {"Threshold", [](const Tensor& x) { return Threshold(0.1, -2)(x); },
       [](double x) { return x > 0.1 ? x : -2; }},
      {"PReLU", [](const Tensor& x) { return PReLU(PReLUOptions().init(0.3))(x); },
       [](double x) { return x > 0 ? x : 0.3 * x; }},
      {"RReLU in evaluation",
       [](const Tensor& x) {
         RReLU layer(RReLUOptions().lower(0.2).upper(0.4));
         layer->eval();
         return layer(x);
       },
       [](double x) { return x > 0 ? x : 0.3 * x; }},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    for (const auto& shape : std::vector<std::vector<int64_t>>{{}, {0}, {7}, {3, 5}}) {
      const Tensor x = randn(shape).to(kFloat64);
      std::vector<double> expected;
      for (const double v : test::numbers(x)) expected.push_back(c.formula(v));
      test::expect_close(c.module(x.to(kFloat32)), expected, 1e-5);
    }
    const Tensor strided = randn({4, 6}).t();
    std::vector<double> expected;
    for (const double v : test::numbers(strided)) expected.push_back(c.formula(v));
    test::expect_close(c.module(strided), expected, 1e-5);
  }
}

TEST(Activations, WorkInPlaceWhereAsked) {
  for (const auto& f : std::vector<std::function<Tensor(const Tensor&)>>{
           [](const Tensor& x) { return F::selu(x, F::SELUFuncOptions(true)); },
           [](const Tensor& x) { return F::celu(x, F::CELUFuncOptions().inplace(true)); },
           [](const Tensor& x) { return F::threshold(x, F::ThresholdFuncOptions(0, 5).inplace(true)); },
           [](const Tensor& x) { return F::rrelu(x, F::RReLUFuncOptions().inplace(true)); }}) {
    Tensor x = full({3}, -0.5);
    const Tensor y = f(x);
    EXPECT_EQ(y.data_ptr(), x.data_ptr());
    EXPECT_NE(x[0].item<double>(), -0.5);
  }
}

TEST(RReLU, DrawsItsSlopesInTraining) {
  manual_seed(kSeed);
  RReLU layer(RReLUOptions().lower(0.2).upper(0.4));
  const auto y = test::numbers(layer(full({2000}, -1.0)));
  double low = 0, high = -1, sum = 0;
  for (const double v : y) {
    low = std::min(low, v);
    high = std::max(high, v);
    sum += v;
  }
  EXPECT_GE(low, -0.4);
  EXPECT_LE(high, -0.2);
  EXPECT_LT(low, -0.39);
  EXPECT_GT(high, -0.21);
  EXPECT_NEAR(sum / 2000, -0.3, 0.01) << "seed " << kSeed;
}

TEST(PReLU, HasOneSlopeForEachChannel) {
  PReLU layer(3);
  {
    const NoGradGuard no_grad;
    layer->weight[1].fill_(0.5);
  }
  const Tensor y = layer(full({2, 3, 2}, -1.0));
  test::expect_close(y.select(1, 1), {-0.5, -0.5, -0.5, -0.5}, 0);
  test::expect_close(y.select(1, 2), {-0.25, -0.25, -0.25, -0.25}, 0);
  EXPECT_THROW(PReLU(PReLUOptions(0)), ValueError);
}

TEST(Softmax2d, SumsToOneOverTheChannels) {
  manual_seed(kSeed);
  for (const auto& shape : std::vector<std::vector<int64_t>>{{2, 5, 3, 4}, {5, 3, 4}}) {
    const Tensor sums = Softmax2d()(randn(shape)).sum({-3});
    test::expect_close(sums, ones_like(sums), 1e-5);
  }
  EXPECT_THROW(Softmax2d()(randn({2, 3})), ValueError);
}

TEST(GumbelSoftmax, IsAOneHotVectorWithASoftGradient) {
  manual_seed(kSeed);
  const Tensor logits = randn({40, 6}).requires_grad_();
  const Tensor soft = F::gumbel_softmax(logits, F::GumbelSoftmaxFuncOptions().tau(0.5));
  test::expect_close(soft.sum({-1}), ones({40}), 1e-5);
  const Tensor hard = F::gumbel_softmax(logits, F::GumbelSoftmaxFuncOptions().hard(true));
  for (const double v : test::numbers(hard)) EXPECT_TRUE(std::abs(v) < 1e-6 || std::abs(v - 1) < 1e-6) << v;
  test::expect_close(hard.sum({-1}), ones({40}), 1e-5);
  (hard * randn({40, 6})).sum().backward();
  EXPECT_GT(logits.grad().abs().sum().item<double>(), 0);
  EXPECT_THROW(F::gumbel_softmax(logits, F::GumbelSoftmaxFuncOptions().tau(0)), ValueError);
  // How often each class wins is its probability: 4 standard deviations of 20000 draws.
  const Tensor odds = (arange(4) + 1).to(kFloat32).log().expand({20000, 4});
  const auto wins =
      test::numbers(F::gumbel_softmax(odds, F::GumbelSoftmaxFuncOptions().hard(true)).mean({0}));
  for (size_t i = 0; i < 4; ++i) {
    const double p = double(i + 1) / 10;
    EXPECT_NEAR(wins[i], p, 4 * std::sqrt(p * (1 - p) / 20000)) << "seed " << kSeed;
  }
}

}  // namespace
}  // namespace vesta::nn
