// Layers, containers, init and nn::utils against references in double written out here.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/expect.h"
#include "vesta/autograd.h"
#include "vesta/nn.h"
#include "vesta/ops.h"

namespace vesta::nn {
namespace {

using test::error_of;
using test::expect_close;
using test::numbers;

namespace F = functional;
constexpr uint64_t kSeed = 77;

TEST(Linear, MatchesTheFormulaForAnyLeadingDims) {
  manual_seed(kSeed);
  for (const bool bias : {true, false}) {
    Linear layer(LinearOptions(5, 3).bias(bias));
    EXPECT_EQ(layer->parameters().size(), bias ? 2u : 1u);
    for (const auto& shape : std::vector<std::vector<int64_t>>{{5}, {4, 5}, {2, 3, 5}, {0, 5}}) {
      const Tensor x = randn(shape), y = layer(x);
      auto out_shape = shape;
      out_shape.back() = 3;
      ASSERT_EQ(y.sizes(), IntArrayRef(out_shape));
      const auto xs = numbers(x), ws = numbers(layer->weight);
      const auto bs = bias ? numbers(layer->bias) : std::vector<double>(3, 0.0);
      std::vector<double> expected;
      for (size_t row = 0; row < xs.size() / 5; ++row)
        for (size_t o = 0; o < 3; ++o) {
          double sum = bs[o];
          for (size_t i = 0; i < 5; ++i) sum += xs[row * 5 + i] * ws[o * 5 + i];
          expected.push_back(sum);
        }
      expect_close(y, expected, 1e-5);
    }
  }
  EXPECT_THROW(Linear(2, 3)(randn({4, 5})), Error);
}

TEST(Linear, StartsWithinTheBoundOfItsWidth) {
  manual_seed(kSeed);
  Linear layer(100, 50);
  double largest = 0, mean = 0;
  const auto ws = numbers(layer->weight);
  for (const double w : ws) {
    largest = std::max(largest, std::abs(w));
    mean += w / double(ws.size());
  }
  EXPECT_LE(largest, 0.1);
  EXPECT_GT(largest, 0.099);
  EXPECT_LT(std::abs(mean), 0.004);  // 5 standard errors
  for (const double b : numbers(layer->bias)) EXPECT_LE(std::abs(b), 0.1);
}

TEST(Embedding, PicksRowsAndLeavesThePaddingAlone) {
  manual_seed(kSeed);
  Embedding table(EmbeddingOptions(6, 4).padding_idx(-2));
  EXPECT_EQ(*table->options.padding_idx(), 4);
  for (const double v : numbers(table->weight.select(0, 4))) EXPECT_EQ(v, 0);
  const Tensor indices = full({2, 3}, 4, kInt64);
  indices.select(0, 0).select(0, 1).fill_(2);
  const Tensor y = table(indices);
  ASSERT_EQ(y.sizes(), (IntArrayRef{2, 3, 4}));
  EXPECT_EQ(numbers(y.select(0, 0).select(0, 1)), numbers(table->weight.select(0, 2)));
  y.sum().backward();
  const auto grad = numbers(table->weight.grad());
  for (size_t row = 0; row < 6; ++row) EXPECT_EQ(grad[row * 4], row == 2 ? 1 : 0);
  EXPECT_THROW(table(full({1}, 6, kInt64)), IndexError);
  EXPECT_THROW(Embedding(EmbeddingOptions(6, 4).padding_idx(6)), IndexError);

  const Tensor rows = arange(6, kFloat32).reshape({3, 2});
  Embedding frozen = Embedding::from_pretrained(rows);
  EXPECT_FALSE(frozen->weight.requires_grad());
  EXPECT_EQ(numbers(frozen(full({}, 1, kInt64))), (std::vector<double>{2, 3}));
}

TEST(LayerNorm, MatchesTheFormula) {
  manual_seed(kSeed);
  LayerNorm norm(8);
  {
    const NoGradGuard no_grad;
    norm->weight.copy_(randn({8}));
    norm->bias.copy_(randn({8}));
  }
  const Tensor x = randn({5, 8});
  const auto xs = numbers(x), ws = numbers(norm->weight), bs = numbers(norm->bias);
  std::vector<double> expected, expected_rms;
  for (size_t r = 0; r < 5; ++r) {
    double mean = 0, var = 0, square = 0;
    for (size_t i = 0; i < 8; ++i) mean += xs[r * 8 + i] / 8;
    for (size_t i = 0; i < 8; ++i) var += std::pow(xs[r * 8 + i] - mean, 2) / 8;
    for (size_t i = 0; i < 8; ++i) square += std::pow(xs[r * 8 + i], 2) / 8;
    for (size_t i = 0; i < 8; ++i) {
      expected.push_back((xs[r * 8 + i] - mean) / std::sqrt(var + 1e-5) * ws[i] + bs[i]);
      expected_rms.push_back(xs[r * 8 + i] / std::sqrt(square + 1e-6));
    }
  }
  expect_close(norm(x), expected, 1e-5);
  expect_close(F::layer_norm(x, F::LayerNormFuncOptions({8}).weight(norm->weight).bias(norm->bias)), expected,
               1e-5);
  RMSNorm rms(RMSNormOptions({8}).eps(1e-6));
  expect_close(rms(x), expected_rms, 1e-5);
  EXPECT_EQ(LayerNorm(LayerNormOptions({2, 4}).elementwise_affine(false))->parameters().size(), 0u);
  EXPECT_EQ(LayerNorm(LayerNormOptions({2, 4}).bias(false))->parameters().size(), 1u);
}

TEST(Dropout, ZeroesAndScalesInTrainingOnly) {
  manual_seed(kSeed);
  Dropout drop(0.25);
  const Tensor x = ones({10000}).requires_grad_();
  const Tensor y = drop(x);
  const auto ys = numbers(y);
  double zeros_seen = 0;
  for (const double v : ys) {
    if (v == 0)
      ++zeros_seen;
    else
      EXPECT_FLOAT_EQ(float(v), 1 / 0.75f);
  }
  EXPECT_NEAR(zeros_seen, 2500, 5 * std::sqrt(10000 * 0.25 * 0.75));
  y.sum().backward();
  EXPECT_EQ(numbers(x.grad()), ys);
  drop->eval();
  EXPECT_TRUE(drop(x).is_same(x));
  EXPECT_EQ(numbers(Dropout(1.0)(ones({3}))), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(error_of([] { Dropout(1.5); }), "Dropout: expected a probability between 0 and 1, got 1.5");
}

TEST(Losses, CrossEntropyMatchesTheFormula) {
  manual_seed(kSeed);
  const Tensor logits = randn({6, 4}), targets = full({6}, 3, kInt64);
  targets.select(0, 1).fill_(0);
  targets.select(0, 2).fill_(-100);
  const auto xs = numbers(logits);
  double total = 0;
  for (size_t r = 0; r < 6; ++r) {
    if (r == 2) continue;
    double sum = 0;
    for (size_t c = 0; c < 4; ++c) sum += std::exp(xs[r * 4 + c]);
    total += std::log(sum) - xs[r * 4 + (r == 1 ? 0 : 3)];
  }
  expect_close(CrossEntropyLoss()(logits, targets), {total / 5}, 1e-5);
  expect_close(CrossEntropyLoss(CrossEntropyLossOptions().reduction(kSum))(logits, targets), {total}, 1e-5);
  EXPECT_EQ(F::cross_entropy(logits, targets, F::CrossEntropyFuncOptions().reduction(kNone)).dim(), 1);
  expect_close(NLLLoss()(F::log_softmax(logits, 1), targets), {total / 5}, 1e-5);
}

TEST(Losses, ElementWiseLossesMatchTheirFormulas) {
  manual_seed(kSeed);
  const Tensor a = randn({3, 5}), b = rand({3, 5});
  const auto xs = numbers(a), ys = numbers(b);
  double l1 = 0, l2 = 0, bce = 0;
  for (size_t i = 0; i < 15; ++i) {
    l1 += std::abs(xs[i] - ys[i]) / 15;
    l2 += std::pow(xs[i] - ys[i], 2) / 15;
    bce += (std::log1p(std::exp(xs[i])) - xs[i] * ys[i]) / 15;
  }
  expect_close(L1Loss()(a, b), {l1}, 1e-5);
  expect_close(MSELoss()(a, b), {l2}, 1e-5);
  expect_close(MSELoss(kSum)(a, b), {l2 * 15}, 1e-5);
  expect_close(BCEWithLogitsLoss()(a, b), {bce}, 1e-5);
  expect_close(BCELoss()(a.sigmoid(), b), {bce}, 1e-4);
}

TEST(Activations, ModulesCallTheirFunction) {
  manual_seed(kSeed);
  const Tensor x = randn({50});
  const auto check = [&](auto module, double (*f)(double)) {
    auto expected = numbers(x);
    for (double& v : expected) v = f(v);
    expect_close(module(x), expected, 1e-5);
  };
  check(ReLU(), [](double v) { return v > 0 ? v : 0; });
  check(ReLU6(), [](double v) { return v > 0 ? std::min(v, 6.0) : 0; });
  check(GELU(), [](double v) { return v * 0.5 * std::erfc(-v / std::sqrt(2.0)); });
  check(GELU(GELUOptions().approximate("tanh")),
        [](double v) { return 0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v))); });
  check(SiLU(), [](double v) { return v / (1 + std::exp(-v)); });
  check(Mish(), [](double v) { return v * std::tanh(std::log1p(std::exp(v))); });
  check(Tanh(), [](double v) { return std::tanh(v); });
  check(Sigmoid(), [](double v) { return 1 / (1 + std::exp(-v)); });
  check(LogSigmoid(), [](double v) { return -std::log1p(std::exp(-v)); });
  check(LeakyReLU(LeakyReLUOptions().negative_slope(0.2)), [](double v) { return v > 0 ? v : 0.2 * v; });
  check(ELU(), [](double v) { return v > 0 ? v : std::expm1(v); });
  check(Softplus(), [](double v) { return std::log1p(std::exp(v)); });
  check(Softsign(), [](double v) { return v / (1 + std::abs(v)); });
  check(Hardtanh(), [](double v) { return std::clamp(v, -1.0, 1.0); });
  check(Hardswish(), [](double v) { return v * std::clamp(v + 3, 0.0, 6.0) / 6; });
  const Tensor rows = F::softmax(x.reshape({5, 10}), 1).sum(1);
  expect_close(rows, std::vector<double>(5, 1.0), 1e-6);
  Tensor y = x.clone();
  ReLU relu_in_place(ReLUOptions(true));
  EXPECT_TRUE(relu_in_place(y).is_same(y));
}

TEST(Sequential, CallsItsModulesInOrder) {
  manual_seed(kSeed);
  Linear a(4, 8), b(8, 2);
  Sequential net(a, ReLU(), b);
  const Tensor x = randn({3, 4});
  EXPECT_EQ(numbers(net(x)), numbers(b(relu(a(x)))));
  EXPECT_EQ(net->named_parameters().keys(),
            (std::vector<std::string>{"0.weight", "0.bias", "2.weight", "2.bias"}));
  Sequential named({{"in", a}, {"act", ReLU()}, {"out", b}});
  EXPECT_EQ(named->named_parameters().keys(),
            (std::vector<std::string>{"in.weight", "in.bias", "out.weight", "out.bias"}));
  EXPECT_EQ(numbers(named(x)), numbers(net(x)));
  Sequential nested(net, Tanh());
  EXPECT_EQ(numbers(nested(x)), numbers(net(x).tanh()));
  EXPECT_EQ(net->size(), 3u);
  EXPECT_EQ(&net->at<Linear>(2), b.get());
  EXPECT_EQ(error_of([&] { net->at<Linear>(1); }),
            "Sequential: module 1 is a vesta::nn::ReLUImpl, not of the type asked for");
  EXPECT_EQ(error_of([&] { (*net)[3]; }), "Sequential: Index out of range: 3 of 3 modules");
  EXPECT_EQ(error_of([&] { Sequential()(x); }), "Cannot call forward() on an empty Sequential");
}

TEST(ModuleList, RegistersByPosition) {
  ModuleList list;
  for (int i = 0; i < 3; ++i) list->push_back(Linear(2, 2));
  list->extend(*ModuleList(LayerNorm(2)));
  EXPECT_EQ(list->size(), 4u);
  EXPECT_EQ(list->named_parameters().keys()[6], "3.weight");
  Tensor x = ones({2});
  for (const auto& module : *list)
    if (auto* linear_layer = module->as<Linear>()) x = linear_layer->forward(x);
  EXPECT_EQ(x.sizes(), IntArrayRef{2});
  EXPECT_THROW(list->at<Linear>(3), TypeError);
  EXPECT_THROW((*list)[4], IndexError);
}

TEST(Init, BoundsAndMomentsFollowTheirFormulas) {
  manual_seed(kSeed);
  Tensor w = empty({200, 300});
  const auto moments = [&](double expected_std, double bound) {
    double mean = 0, square = 0, largest = 0;
    for (const double v : numbers(w)) {
      mean += v / 60000;
      square += v * v / 60000;
      largest = std::max(largest, std::abs(v));
    }
    EXPECT_NEAR(mean, 0, 5 * expected_std / std::sqrt(60000.0));
    EXPECT_NEAR(std::sqrt(square) / expected_std, 1, 0.02);
    if (bound > 0) {
      EXPECT_LE(largest, bound * (1 + 1e-6));
    }
  };
  init::xavier_uniform_(w);
  moments(std::sqrt(2.0 / 500), std::sqrt(6.0 / 500));
  init::xavier_normal_(w, 2);
  moments(2 * std::sqrt(2.0 / 500), 0);
  init::kaiming_uniform_(w);
  moments(std::sqrt(2.0 / 300), std::sqrt(6.0 / 300));
  init::kaiming_normal_(w, 0, kFanOut, kReLU);
  moments(std::sqrt(2.0 / 200), 0);
  init::normal_(w, 0, 0.02);
  moments(0.02, 0);
  Generator a(5), b(5);
  const auto first = numbers(init::uniform_(w, -1, 1, a));
  EXPECT_EQ(first, numbers(init::uniform_(w, -1, 1, b)));
  EXPECT_EQ(numbers(init::eye_(empty({2, 3}))), (std::vector<double>{1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(numbers(init::constant_(empty({2}), 3)), (std::vector<double>{3, 3}));
  EXPECT_EQ(error_of([] { init::xavier_uniform_(empty({3})); }),
            "init::xavier_uniform_: expected a tensor of at least 2 dims, got 1");
  EXPECT_DOUBLE_EQ(init::calculate_gain(kTanh), 5.0 / 3);
  // Parameters that require grad may be filled, and do not record it.
  Tensor p = empty({4, 4}).requires_grad_();
  EXPECT_TRUE(init::xavier_normal_(p).is_leaf());
}

TEST(ClipGradNorm, ScalesAllGradientsByOneFactor) {
  manual_seed(kSeed);
  for (const double p : {1.0, 2.0, 3.0, std::numeric_limits<double>::infinity()}) {
    std::vector<Tensor> params = {zeros({4, 3}).requires_grad_(), zeros({7}).requires_grad_(),
                                  zeros({2}).requires_grad_()};
    std::vector<double> all;
    for (int i = 0; i < 2; ++i) {
      params[size_t(i)].mutable_grad() = randn(params[size_t(i)].sizes());
      for (const double g : numbers(params[size_t(i)].grad())) all.push_back(g);
    }
    double norm = 0;
    for (const double g : all)
      norm = std::isinf(p) ? std::max(norm, std::abs(g)) : norm + std::pow(std::abs(g), p);
    if (!std::isinf(p)) norm = std::pow(norm, 1 / p);
    expect_close(utils::clip_grad_norm_(params, norm / 2, p), {norm}, 1e-5);
    for (double& g : all) g /= 2;
    std::vector<double> first(all.begin(), all.begin() + 12), second(all.begin() + 12, all.end());
    expect_close(params[0].grad(), first, 1e-4);
    expect_close(params[1].grad(), second, 1e-4);
    // Below the limit nothing changes.
    expect_close(utils::clip_grad_norm_(params, norm, p), {norm / 2}, 1e-4);
    expect_close(params[0].grad(), first, 1e-4);
  }
  EXPECT_EQ(utils::clip_grad_norm_({}, 1).item<float>(), 0);
  Tensor w = zeros({1}).requires_grad_();
  w.mutable_grad() = full({1}, std::numeric_limits<double>::quiet_NaN());
  EXPECT_NE(error_of([&] { utils::clip_grad_norm_({w}, 1, 2, true); }).find("not finite"), std::string::npos);
  EXPECT_THROW(utils::clip_grad_norm_({w}, 1, 0), ValueError);
}

TEST(ClipGradValue, ClampsEachElement) {
  Tensor w = zeros({3}).requires_grad_();
  w.mutable_grad() = arange(3, kFloat32) * 2 - 2;
  utils::clip_grad_value_({w}, 1);
  EXPECT_EQ(numbers(w.grad()), (std::vector<double>{-1, 0, 1}));
}

TEST(ParametersToVector, GoesThereAndBack) {
  Tensor a = arange(6, kFloat32).reshape({2, 3}).t().requires_grad_(), b = full({2}, 9.0).requires_grad_();
  const Tensor vector = utils::parameters_to_vector({a, b});
  EXPECT_EQ(numbers(vector), (std::vector<double>{0, 3, 1, 4, 2, 5, 9, 9}));
  utils::vector_to_parameters(vector.detach() * 2, {a, b});
  EXPECT_EQ(numbers(a), (std::vector<double>{0, 6, 2, 8, 4, 10}));
  EXPECT_EQ(error_of([&] {
              utils::vector_to_parameters(zeros({7}), {a, b});
            }),
            "vector_to_parameters: expected a vector of 8 elements, got 7 in 1 dims");
}

}  // namespace
}  // namespace vesta::nn
