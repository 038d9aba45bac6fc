// Schedules against closed forms written out here; together, one after another, saved, and waiting for a metric.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <numbers>

#include "vesta/ops.h"
#include "vesta/optim.h"

namespace vesta::optim {
namespace {

struct Rates {
  Tensor p = zeros({1}).requires_grad_();
  SGD opt;
  Rates() : opt({p}, SGDOptions(0.4).momentum(0.5)) {}
  double lr() const { return opt.param_groups()[0].options().get_lr(); }
  double momentum() const {
    return static_cast<const SGDOptions&>(opt.param_groups()[0].options()).momentum();
  }
};
using Make = std::function<std::unique_ptr<LRScheduler>(Optimizer&)>;
using Formula = std::function<double(int)>;

void expect_rates(const Make& make, const Formula& formula, int steps = 30) {
  Rates run;
  const auto schedule = make(run.opt);
  for (int epoch = 0; epoch <= steps; ++epoch) {
    if (epoch) schedule->step();
    ASSERT_NEAR(run.lr(), formula(epoch), 1e-14) << "epoch " << epoch;
    ASSERT_EQ(schedule->last_epoch(), epoch);
  }
  // A saved state gives the same rate to a new schedule.
  Rates other;
  const auto loaded = make(other.opt);
  loaded->load_state_dict(schedule->state_dict());
  EXPECT_NEAR(other.lr(), formula(steps), 1e-14);
  loaded->step();
  schedule->step();
  EXPECT_NEAR(other.lr(), run.lr(), 1e-14);
}
template <class S, class... A>
Make making(A... arguments) {
  return [=](Optimizer& opt) { return std::make_unique<S>(opt, arguments...); };
}
double cosine(double from, double to, double share) {
  return to + (from - to) * (1 + std::cos(std::numbers::pi * share)) / 2;
}

TEST(Schedules, EqualTheirFormulas) {
  expect_rates(making<MultiStepLR>(std::vector<int64_t>{3, 7, 7, 20}, 0.3),
               [](int e) { return 0.4 * std::pow(0.3, (e >= 3) + 2 * (e >= 7) + (e >= 20)); });
  expect_rates(making<ConstantLR>(0.25, int64_t(6)), [](int e) { return e < 6 ? 0.1 : 0.4; });
  expect_rates(making<LinearLR>(0.2, 0.8, int64_t(9)),
               [](int e) { return 0.4 * (0.2 + 0.6 * std::min(e, 9) / 9.0); });
  expect_rates(making<PolynomialLR>(int64_t(12), 1.7),
               [](int e) { return 0.4 * std::pow(1 - std::min(e, 12) / 12.0, 1.7); });
  expect_rates(making<CosineAnnealingWarmRestarts>(int64_t(4), int64_t(2), 0.05), [](int e) {
    int length = 4;
    for (; e >= length; length *= 2) e -= length;
    return cosine(0.4, 0.05, double(e) / length);
  });
  expect_rates(making<CosineAnnealingWarmRestarts>(int64_t(5)),
               [](int e) { return cosine(0.4, 0, e % 5 / 5.0); });
  expect_rates(making<MultiplicativeLR>([](int64_t e) { return e % 2 ? 0.5 : 1.5; }),
               [](int e) { return 0.4 * std::pow(0.5, (e + 1) / 2) * std::pow(1.5, e / 2); });
  expect_rates(
      making<CyclicLR>(CyclicLROptions(0.1, 1).step_size_up(4).step_size_down(2).mode("triangular2")),
      [](int e) {
        const int at = e % 6, cycle = e / 6;
        const double share = at <= 4 ? at / 4.0 : (6 - at) / 2.0;
        return 0.1 + 0.9 * share / std::pow(2.0, cycle);
      });
  expect_rates(making<CyclicLR>(CyclicLROptions(0.1, 1).step_size_up(5).mode("exp_range").gamma(0.9)),
               [](int e) {
                 const int at = e % 10;
                 return 0.1 + 0.9 * (at <= 5 ? at / 5.0 : (10 - at) / 5.0) * std::pow(0.9, e);
               });
}

TEST(OneCycleLR, RisesAndFallsAndMovesTheMomentumTheOtherWay) {
  Rates run;
  OneCycleLR schedule(run.opt, OneCycleLROptions(2, 20).pct_start(0.25));
  for (int e = 0; e < 20; ++e) {
    if (e) schedule.step();
    const double lr = e <= 4 ? cosine(0.08, 2, e / 4.0) : cosine(2, 0.08 / 1e4, (e - 4) / 15.0);
    const double momentum = e <= 4 ? cosine(0.95, 0.85, e / 4.0) : cosine(0.85, 0.95, (e - 4) / 15.0);
    ASSERT_NEAR(run.lr(), lr, 1e-14) << e;
    ASSERT_NEAR(run.momentum(), momentum, 1e-14) << e;
  }
  schedule.step();
  EXPECT_THROW(schedule.step(), ValueError);
  Rates linear;
  OneCycleLR three(linear.opt, OneCycleLROptions(2, 11)
                                   .pct_start(0.4)
                                   .three_phase(true)
                                   .anneal_strategy("linear")
                                   .div_factor(4)
                                   .final_div_factor(5)
                                   .cycle_momentum(false));
  // Phases end at 0.4 * 11 - 1 = 3.4, 0.8 * 11 - 2 = 6.8 and 10.
  for (int e = 0; e <= 10; ++e) {
    if (e) three.step();
    const double expected = e <= 3   ? 0.5 + 1.5 * e / 3.4
                            : e <= 6 ? 2 - 1.5 * (e - 3.4) / 3.4
                                     : 0.5 - 0.4 * (e - 6.8) / 3.2;
    ASSERT_NEAR(linear.lr(), expected, 1e-14) << e;
  }
  EXPECT_EQ(linear.momentum(), 0.5);
}

TEST(Schedules, OfOneOptimiserMultiply) {
  Rates run;
  ConstantLR warm(run.opt, 0.1, 3);
  ExponentialLR fall(run.opt, 0.9);
  StepLR drop(run.opt, 5, 0.5);
  ChainedScheduler chain({&warm, &fall, &drop});
  for (int e = 0; e <= 20; ++e) {
    if (e) chain.step();
    const double expected = 0.4 * (e < 3 ? 0.1 : 1) * std::pow(0.9, e) * std::pow(0.5, e / 5);
    ASSERT_NEAR(run.lr(), expected, 1e-14) << e;
    ASSERT_NEAR(chain.get_last_lr()[0], expected, 1e-14);
  }
  // Into other schedules, after the optimiser's own state.
  Rates other;
  ConstantLR warm2(other.opt, 0.1, 3);
  ExponentialLR fall2(other.opt, 0.9);
  StepLR drop2(other.opt, 5, 0.5);
  ChainedScheduler chain2({&warm2, &fall2, &drop2});
  other.opt.load_state_dict(run.opt.state_dict());
  chain2.load_state_dict(chain.state_dict());
  EXPECT_EQ(other.lr(), run.lr());
  for (int e = 0; e < 6; ++e) {
    chain.step();
    chain2.step();
    ASSERT_NEAR(other.lr(), run.lr(), 1e-14);
  }
  EXPECT_THROW(ChainedScheduler({}), ValueError);
  EXPECT_THROW(ChainedScheduler({nullptr}), ValueError);
}

TEST(Schedules, ChangeWhatTheProgramSetInBetween) {
  Rates run;
  ExponentialLR schedule(run.opt, 0.5);
  schedule.step();
  run.opt.param_groups()[0].options().set_lr(1.0);
  schedule.step();
  EXPECT_EQ(run.lr(), 0.5);
}

TEST(SequentialLR, StartsEachScheduleAtItsMilestone) {
  const auto expected = [](int e) {
    if (e < 4) return 0.4 * (e < 3 ? 0.1 : 1);
    if (e < 10) return 0.4 * (0.5 + 0.5 * std::min(e - 4, 4) / 4.0);
    return 0.4 * std::pow(0.9, e - 10);
  };
  struct Parts {
    Rates run;
    ConstantLR a{run.opt, 0.1, 3};
    LinearLR b{run.opt, 0.5, 1, 4};
    ExponentialLR c{run.opt, 0.9};
    SequentialLR all{run.opt, {&a, &b, &c}, {4, 10}};
  };
  Parts parts;
  for (int e = 0; e <= 20; ++e) {
    if (e) parts.all.step();
    ASSERT_NEAR(parts.run.lr(), expected(e), 1e-14) << e;
    Parts loaded;
    loaded.all.load_state_dict(parts.all.state_dict());
    ASSERT_NEAR(loaded.run.lr(), expected(e), 1e-14) << e;
    loaded.all.step();
    ASSERT_NEAR(loaded.run.lr(), expected(e + 1), 1e-14) << e;
  }
  EXPECT_THROW(SequentialLR(parts.run.opt, {&parts.a}, {3}), ValueError);
  EXPECT_THROW(SequentialLR(parts.run.opt, {&parts.a, &parts.b, &parts.c}, {5, 3}), ValueError);
  StateDict broken = parts.all.state_dict();
  broken.erase("1.last_epoch");
  EXPECT_THROW(parts.all.load_state_dict(broken), ValueError);
}

TEST(ReduceLROnPlateau, WaitsForItsPatience) {
  Rates run;
  ReduceLROnPlateau schedule(
      run.opt, ReduceLROnPlateauOptions().factor(0.5).patience(2).cooldown(1).min_lr({0.06}).threshold(0.1));
  std::vector<double> rates;
  // 1, then no improvement of a tenth; three bad ones reduce, the next does not count.
  for (const double metric :
       {1.0, 0.95, 0.92, 0.91, 0.91, 0.91, 0.91, 0.91, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5}) {
    schedule.step(metric);
    rates.push_back(run.lr());
  }
  EXPECT_EQ(rates, (std::vector<double>{0.4, 0.4, 0.4, 0.2, 0.2, 0.2, 0.2, 0.1, 0.1, 0.1, 0.1, 0.06, 0.06,
                                        0.06, 0.06, 0.06}));
  EXPECT_EQ(schedule.best(), 0.5);
  ReduceLROnPlateau other(run.opt, ReduceLROnPlateauOptions().patience(2));
  other.load_state_dict(schedule.state_dict());
  EXPECT_EQ(other.best(), 0.5);
  EXPECT_EQ(other.num_bad_epochs(), schedule.num_bad_epochs());
}

TEST(ReduceLROnPlateau, WatchesMaximaAbsoluteThresholdsAndNaN) {
  Rates run;
  ReduceLROnPlateau schedule(run.opt, ReduceLROnPlateauOptions()
                                          .mode(ReduceLROnPlateauOptions::max)
                                          .threshold_mode(ReduceLROnPlateauOptions::abs)
                                          .threshold(0.5)
                                          .patience(0)
                                          .factor(0.5));
  for (const double metric : {1.0, 2.0, 3.0}) schedule.step(metric);
  EXPECT_EQ(run.lr(), 0.4);
  schedule.step(3.4);
  EXPECT_EQ(run.lr(), 0.2);
  schedule.step(std::nan(""));
  EXPECT_EQ(run.lr(), 0.1);
  EXPECT_EQ(schedule.best(), 3);
  EXPECT_THROW(ReduceLROnPlateau(run.opt, ReduceLROnPlateauOptions().factor(1)), ValueError);
  EXPECT_THROW(ReduceLROnPlateau(run.opt, ReduceLROnPlateauOptions().min_lr({0, 0, 0})), ValueError);
}

TEST(Schedules, RefuseOptionsOutOfRange) {
  Rates run;
  EXPECT_THROW(ConstantLR(run.opt, 1.5), ValueError);
  EXPECT_THROW(LinearLR(run.opt, 0), ValueError);
  EXPECT_THROW(LinearLR(run.opt, 0.5, 1, 0), ValueError);
  EXPECT_THROW(PolynomialLR(run.opt, 0), ValueError);
  EXPECT_THROW(CosineAnnealingWarmRestarts(run.opt, 0), ValueError);
  EXPECT_THROW(CosineAnnealingWarmRestarts(run.opt, 2, 0), ValueError);
  EXPECT_THROW(CyclicLR(run.opt, CyclicLROptions(0.1, 1).mode("square")), ValueError);
  EXPECT_THROW(CyclicLR(run.opt, CyclicLROptions(0.1, 1).step_size_up(0)), ValueError);
  EXPECT_THROW(OneCycleLR(run.opt, OneCycleLROptions(1, 0)), ValueError);
  EXPECT_THROW(OneCycleLR(run.opt, OneCycleLROptions(1, 5).anneal_strategy("sqrt")), ValueError);
  Tensor w = ones({1}).requires_grad_();
  Rprop no_momentum({w}, RpropOptions());
  EXPECT_THROW(CyclicLR(no_momentum, CyclicLROptions(0.1, 1)), ValueError);
  Adam adam({w}, AdamOptions(0.1));
  CyclicLR beta(adam, CyclicLROptions(0.1, 1).step_size_up(1));
  EXPECT_EQ(std::get<0>(static_cast<AdamOptions&>(adam.param_groups()[0].options()).betas()), 0.9);
  beta.step();
  EXPECT_EQ(std::get<0>(static_cast<AdamOptions&>(adam.param_groups()[0].options()).betas()), 0.8);
}

}  // namespace
}  // namespace vesta::optim
