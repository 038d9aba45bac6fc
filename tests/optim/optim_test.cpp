// Optimisers against float64 references written out here, state, schedules.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "support/expect.h"
#include "vesta/autograd.h"
#include "vesta/nn.h"
#include "vesta/ops.h"
#include "vesta/optim.h"

namespace vesta::optim {
namespace {

using test::error_of;
using test::numbers;

constexpr uint64_t kSeed = 20240;

// One parameter's history in double.
struct Reference {
  std::vector<double> w, m, v, vmax, buffer;
  int step = 0;
  explicit Reference(const Tensor& t)
      : w(numbers(t)), m(w.size()), v(w.size()), vmax(w.size()), buffer(w.size()) {}

  template <class Options>
  void adam(const std::vector<double>& grad, const Options& o, bool decoupled) {
    const auto [b1, b2] = o.betas();
    ++step;
    for (size_t i = 0; i < w.size(); ++i) {
      double g = o.maximize() ? -grad[i] : grad[i];
      if (decoupled)
        w[i] -= o.lr() * o.weight_decay() * w[i];
      else
        g += o.weight_decay() * w[i];
      m[i] = b1 * m[i] + (1 - b1) * g;
      v[i] = b2 * v[i] + (1 - b2) * g * g;
      vmax[i] = std::max(vmax[i], v[i]);
      const double second = o.amsgrad() ? vmax[i] : v[i];
      w[i] -= o.lr() * (m[i] / (1 - std::pow(b1, step))) /
              (std::sqrt(second / (1 - std::pow(b2, step))) + o.eps());
    }
  }
  void sgd(const std::vector<double>& grad, const SGDOptions& o) {
    ++step;
    for (size_t i = 0; i < w.size(); ++i) {
      double g = o.maximize() ? -grad[i] : grad[i];
      g += o.weight_decay() * w[i];
      if (o.momentum() != 0) {
        buffer[i] = step == 1 ? g : o.momentum() * buffer[i] + (1 - o.dampening()) * g;
        g = o.nesterov() ? g + o.momentum() * buffer[i] : buffer[i];
      }
      w[i] -= o.lr() * g;
    }
  }
};

// Several shapes, one of them empty and one 0-dim.
std::vector<Tensor> random_params(DType dtype) {
  manual_seed(kSeed);
  std::vector<Tensor> params;
  for (const auto& shape : std::vector<std::vector<int64_t>>{{5, 7}, {}, {0, 3}, {1000}})
    params.push_back(randn(shape).to(dtype).detach().requires_grad_());
  return params;
}

template <class Opt, class Step>
void compare(std::vector<Tensor> params, Opt& opt, const Step& reference_step, double tolerance) {
  std::vector<Reference> references(params.begin(), params.end());
  for (int step = 0; step < 6; ++step) {
    for (size_t i = 0; i < params.size(); ++i) {
      // Parameter 1 misses a step: its count must fall behind.
      if (i == 1 && step == 2) {
        params[i].mutable_grad() = Tensor();
        continue;
      }
      const Tensor grad = randn(params[i].sizes()).to(params[i].dtype());
      params[i].mutable_grad() = grad;
      reference_step(references[i], numbers(grad));
    }
    opt.step();
  }
  for (size_t i = 0; i < params.size(); ++i) {
    const auto got = numbers(params[i]);
    for (size_t k = 0; k < got.size(); ++k)
      ASSERT_NEAR(got[k], references[i].w[k], tolerance * (1 + std::abs(references[i].w[k])))
          << "seed " << kSeed << ", parameter " << i << ", element " << k;
  }
}

TEST(SGD, MatchesTheFormulaInDouble) {
  for (const auto& o :
       {SGDOptions(0.1), SGDOptions(0.1).momentum(0.9),
        SGDOptions(0.05).momentum(0.9).nesterov(true).weight_decay(0.1),
        SGDOptions(0.1).momentum(0.8).dampening(0.3), SGDOptions(0.1).weight_decay(0.2).maximize(true),
        SGDOptions(0.1).momentum(0.8).dampening(0.5).weight_decay(0.1).maximize(true)}) {
    auto params = random_params(kFloat32);
    SGD opt(params, o);
    compare(
        params, opt, [&](Reference& r, const std::vector<double>& g) { r.sgd(g, o); }, 1e-5);
  }
}

TEST(Adam, MatchesTheFormulaInDouble) {
  for (const auto& o : {AdamOptions(0.01), AdamOptions(0.01).betas({0.8, 0.9}).weight_decay(0.1),
                        AdamOptions(0.01).amsgrad(true), AdamOptions(0.02).eps(1e-3).maximize(true)}) {
    auto params = random_params(kFloat32);
    Adam opt(params, o);
    compare(
        params, opt, [&](Reference& r, const std::vector<double>& g) { r.adam(g, o, false); }, 1e-5);
    auto doubles = random_params(kFloat64);
    Adam opt64(doubles, o);
    compare(
        doubles, opt64, [&](Reference& r, const std::vector<double>& g) { r.adam(g, o, false); }, 1e-12);
  }
}

TEST(AdamW, MatchesTheFormulaInDouble) {
  for (const auto& o : {AdamWOptions(0.01), AdamWOptions(0.01).betas({0.9, 0.95}).weight_decay(0.1),
                        AdamWOptions(0.01).amsgrad(true)}) {
    auto params = random_params(kFloat32);
    AdamW opt(params, o);
    compare(
        params, opt, [&](Reference& r, const std::vector<double>& g) { r.adam(g, o, true); }, 1e-5);
  }
}

TEST(AdamW, MomentsOfHalfPrecisionParametersAreFloat) {
  auto params = random_params(kBFloat16);
  AdamW opt(params, AdamWOptions(0.01));
  opt.init_state();
  EXPECT_EQ(opt.param_groups()[0].state()[1][0].dtype(), kFloat32);
  // Each step rounds the parameter to 8 bits.
  compare(
      params, opt, [&](Reference& r, const std::vector<double>& g) { r.adam(g, AdamWOptions(0.01), true); },
      0.03);
}

TEST(Optimizer, GroupsHaveTheirOwnOptions) {
  Tensor a = ones({2}).requires_grad_(), b = ones({2}).requires_grad_(), c = ones({2}).requires_grad_();
  SGD opt(
      std::vector<OptimizerParamGroup>{OptimizerParamGroup({a}), OptimizerParamGroup({b}, SGDOptions(0.5))},
      SGDOptions(0.1));
  opt.add_param_group(OptimizerParamGroup({c}, SGDOptions(0.25)));
  for (Tensor t : {a, b, c}) t.mutable_grad() = ones({2});
  opt.step();
  EXPECT_FLOAT_EQ(numbers(a)[0], 0.9);
  EXPECT_FLOAT_EQ(numbers(b)[0], 0.5);
  EXPECT_FLOAT_EQ(numbers(c)[0], 0.75);
  // Options of a group are its own copy.
  static_cast<SGDOptions&>(opt.param_groups()[0].options()).lr(1);
  EXPECT_EQ(opt.defaults().get_lr(), 0.1);
  opt.step();
  EXPECT_FLOAT_EQ(numbers(a)[0], -0.1);
}

TEST(Optimizer, StepCallsTheClosureWithRecordingOn) {
  Tensor w = full({1}, 3.0).requires_grad_();
  SGD opt({w}, SGDOptions(0.1));
  const NoGradGuard no_grad;
  const Tensor loss = opt.step([&] {
    opt.zero_grad();
    Tensor y = (w * w).sum();
    y.backward();
    return y;
  });
  EXPECT_FLOAT_EQ(loss.item<float>(), 9);
  EXPECT_FLOAT_EQ(numbers(w)[0], 3 - 0.1 * 6);
}

TEST(Optimizer, WrongUseIsRefused) {
  Tensor w = ones({2}).requires_grad_();
  EXPECT_EQ(error_of([&] {
              SGD({w, w}, SGDOptions(0.1));
            }),
            "Optimizer: a parameter of shape [2] is listed twice");
  EXPECT_EQ(error_of([&] { SGD({w * 2}, SGDOptions(0.1)); }).substr(0, 43),
            "Optimizer: can only optimise leaf tensors, ");
  EXPECT_EQ(error_of([&] { SGD({w}, SGDOptions(-1)); }), "SGD: expected lr >= 0, got -1");
  EXPECT_EQ(error_of([&] {
              Adam({w}, AdamOptions().betas({1.0, 0.9}));
            }),
            "Adam: expected the first beta in [0, 1), got 1");
  EXPECT_NE(error_of([&] { SGD({w}, SGDOptions(1).nesterov(true)); }).find("nesterov needs momentum"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              SGD(std::vector<OptimizerParamGroup>{OptimizerParamGroup({w}, AdamOptions())}, SGDOptions(1));
            }).find("belong to another optimiser"),
            std::string::npos);
}

TEST(Optimizer, ZeroGradDropsOrZeroes) {
  Tensor w = ones({2}).requires_grad_();
  SGD opt({w}, SGDOptions(0.1));
  const Tensor grad = ones({2});
  w.mutable_grad() = grad;
  opt.zero_grad(false);
  EXPECT_TRUE(w.grad().is_same(grad));
  EXPECT_EQ(numbers(grad)[1], 0);
  opt.zero_grad();
  EXPECT_FALSE(w.grad().defined());
}

TEST(Optimizer, ASavedStateContinuesBitExactly) {
  const auto gradient = [](std::vector<Tensor>& params, int step) {
    manual_seed(uint64_t(step));
    for (Tensor& p : params) p.mutable_grad() = randn(p.sizes());
  };
  auto a = random_params(kFloat32), b = random_params(kFloat32);
  AdamW first(a, AdamWOptions(0.01).amsgrad(true)), second(b, AdamWOptions(0.5));
  for (int step = 0; step < 3; ++step) {
    gradient(a, step);
    first.step();
  }
  {
    const NoGradGuard no_grad;
    for (size_t i = 0; i < a.size(); ++i) b[i].copy_(a[i]);
  }
  second.load_state_dict(first.state_dict());
  EXPECT_EQ(static_cast<AdamWOptions&>(second.param_groups()[0].options()).amsgrad(), true);
  const Tensor lr = second.param_groups()[0].options().lr_tensor(),
               moment = second.param_groups()[0].state()[1][0];
  second.load_state_dict(first.state_dict());
  EXPECT_TRUE(second.param_groups()[0].options().lr_tensor().is_same(lr));
  EXPECT_TRUE(second.param_groups()[0].state()[1][0].is_same(moment));
  for (int step = 3; step < 6; ++step) {
    gradient(a, step);
    gradient(b, step);
    first.step();
    second.step();
  }
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(numbers(a[i]), numbers(b[i]));
}

TEST(Optimizer, AStateThatDoesNotFitIsRefusedWithAllNames) {
  Tensor w = ones({2}).requires_grad_();
  AdamW opt({w}, AdamWOptions(0.01));
  opt.init_state();
  StateDict dict = opt.state_dict();
  EXPECT_EQ(dict.size(), 10u);
  dict.erase("state.0.0.exp_avg");
  dict.insert("state.0.1.step", zeros({}));
  dict["state.0.0.exp_avg_sq"] = zeros({3});
  const std::string message = error_of([&] { opt.load_state_dict(dict); });
  EXPECT_NE(message.find("missing: state.0.0.exp_avg\n"), std::string::npos) << message;
  EXPECT_NE(message.find("unexpected: state.0.1.step"), std::string::npos) << message;
  EXPECT_NE(message.find("wrong shape: state.0.0.exp_avg_sq: expected [2], got [3]"), std::string::npos)
      << message;
  SGD other({w}, SGDOptions(0.1));
  EXPECT_THROW(other.load_state_dict(opt.state_dict()), ValueError);
}

TEST(Optimizer, AdamWTrainsASmallNetwork) {
  manual_seed(3);
  const Tensor x = randn({64, 4}), y = (x.select(1, 0) * x.select(1, 1)).unsqueeze(1);
  nn::Sequential net(nn::Linear(4, 32), nn::Tanh(), nn::Linear(32, 1));
  AdamW opt(net->parameters(), AdamWOptions(0.01));
  double first = 0, last = 0;
  for (int step = 0; step < 300; ++step) {
    opt.zero_grad();
    const Tensor error = net(x) - y, loss = (error * error).mean();
    loss.backward();
    opt.step();
    last = loss.item<double>();
    if (step == 0) first = last;
  }
  EXPECT_LT(last, first / 20) << "seed 3";
}

std::vector<double> rates(LRScheduler& schedule, int steps) {
  std::vector<double> out = {schedule.get_last_lr()[0]};
  for (int i = 0; i < steps; ++i) {
    schedule.step();
    out.push_back(schedule.get_last_lr()[0]);
  }
  return out;
}

TEST(LRScheduler, EachFollowsItsFormula) {
  Tensor w = ones({2}).requires_grad_();
  const auto check = [&](auto make, auto expected) {
    SGD opt({w}, SGDOptions(0.5));
    auto schedule = make(opt);
    const auto got = rates(*schedule, 25);
    for (int e = 0; e <= 25; ++e) EXPECT_NEAR(got[size_t(e)], expected(e), 1e-15) << "epoch " << e;
    EXPECT_EQ(schedule->last_epoch(), 25);
  };
  check([](Optimizer& o) { return std::make_unique<StepLR>(o, 10, 0.1); },
        [](int e) { return 0.5 * std::pow(0.1, e / 10); });
  check([](Optimizer& o) { return std::make_unique<ExponentialLR>(o, 0.9); },
        [](int e) { return 0.5 * std::pow(0.9, e); });
  check([](Optimizer& o) { return std::make_unique<CosineAnnealingLR>(o, 20, 0.1); },
        [](int e) { return 0.1 + 0.4 * (1 + std::cos(std::numbers::pi * e / 20)) / 2; });
  check(
      [](Optimizer& o) {
        return std::make_unique<LambdaLR>(o, [](int64_t e) { return 1.0 / double(e + 1); });
      },
      [](int e) { return 0.5 / (e + 1); });
  check([](Optimizer& o) { return std::make_unique<LambdaLR>(o, cosine_with_warmup(5, 20, 0.1)); },
        [](int e) {
          if (e < 5) return 0.5 * (e + 1) / 5;
          if (e >= 20) return 0.05;
          return 0.5 * (0.1 + 0.9 * (1 + std::cos(std::numbers::pi * (e - 5) / 15)) / 2);
        });
}

TEST(LRScheduler, WritesTheRateInPlaceAndResumes) {
  Tensor w = ones({2}).requires_grad_();
  SGD opt({w}, SGDOptions(0.5));
  const Tensor lr = opt.param_groups()[0].options().lr_tensor();
  CosineAnnealingLR schedule(opt, 10);
  schedule.step();
  schedule.step();
  EXPECT_TRUE(opt.param_groups()[0].options().lr_tensor().is_same(lr));
  EXPECT_EQ(lr.item<double>(), schedule.get_last_lr()[0]);
  EXPECT_LT(lr.item<double>(), 0.5);

  // The optimiser's rate as saved, 0.5 decayed, must not become the base of the resumed schedule.
  SGD other({w}, SGDOptions(0.123));
  other.load_state_dict(opt.state_dict());
  CosineAnnealingLR resumed(other, 10);
  resumed.load_state_dict(schedule.state_dict());
  EXPECT_EQ(rates(resumed, 5), rates(schedule, 5));
  StateDict broken = schedule.state_dict();
  broken.erase("last_epoch");
  EXPECT_EQ(error_of([&] { resumed.load_state_dict(broken); }),
            "LRScheduler::load_state_dict: 'last_epoch' is missing");
}

}  // namespace
}  // namespace vesta::optim
