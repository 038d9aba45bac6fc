// GradScaler: scaled losses, unscaled gradients, steps left out, the scale's growth and fall.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "vesta/ops.h"
#include "vesta/optim.h"

namespace vesta::amp {
namespace {

struct Training {
  Tensor w = full({3}, 2.0).requires_grad_();
  optim::SGD opt{{w}, optim::SGDOptions(0.5)};
};

TEST(GradScaler, StepsAsIfNothingHadBeenScaled) {
  Training plain, scaled;
  (plain.w * 3).sum().backward();
  plain.opt.step();
  GradScaler scaler(GradScalerOptions().init_scale(1024));
  scaler.scale((scaled.w * 3).sum()).backward();
  EXPECT_EQ(scaled.w.grad()[0].item<double>(), 3072);
  EXPECT_TRUE(scaler.step(scaled.opt));
  EXPECT_EQ(scaled.w.grad()[0].item<double>(), 3);
  scaler.update();
  EXPECT_TRUE(equal(plain.w, scaled.w));
  EXPECT_EQ(scaler.get_scale(), 1024);
}

TEST(GradScaler, LeavesStepsWithOverflowOutAndShrinks) {
  for (const double bad : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    Training s;
    GradScaler scaler(GradScalerOptions().init_scale(8).backoff_factor(0.25));
    s.w.mutable_grad() = full({3}, 8.0);
    s.w.grad()[1].fill_(bad);
    EXPECT_FALSE(scaler.step(s.opt));
    EXPECT_EQ(s.w[0].item<double>(), 2);
    scaler.update();
    EXPECT_EQ(scaler.get_scale(), 2);
  }
}

TEST(GradScaler, GrowsAfterAnIntervalWithoutOverflow) {
  Training s;
  GradScaler scaler(GradScalerOptions().init_scale(8).growth_factor(4).growth_interval(3));
  std::vector<double> scales;
  for (int k = 0; k < 8; ++k) {
    s.w.mutable_grad() = full({3}, k == 4 ? std::nan("") : 1.0);
    scaler.step(s.opt);
    scaler.update();
    scales.push_back(scaler.get_scale());
  }
  EXPECT_EQ(scales, (std::vector<double>{8, 8, 32, 32, 16, 16, 16, 64}));
  scaler.update(5.0);
  EXPECT_EQ(scaler.get_scale(), 5);
}

TEST(GradScaler, DoesNotGrowBeyondItsOwnType) {
  Training s;
  GradScaler scaler(GradScalerOptions().init_scale(3e38).growth_interval(1));
  s.w.mutable_grad() = full({3}, 1.0);
  scaler.step(s.opt);
  scaler.update();
  EXPECT_TRUE(std::isfinite(scaler.get_scale()));
}

TEST(GradScaler, UnscalesOnceBeforeClipping) {
  Training s;
  GradScaler scaler(GradScalerOptions().init_scale(16));
  s.w.mutable_grad() = full({3}, 16.0);
  scaler.unscale_(s.opt);
  EXPECT_EQ(s.w.grad()[0].item<double>(), 1);
  EXPECT_THROW(scaler.unscale_(s.opt), ValueError);
  EXPECT_TRUE(scaler.step(s.opt));
  EXPECT_EQ(s.w[0].item<double>(), 1.5);
  EXPECT_THROW(scaler.unscale_(s.opt), ValueError);
  EXPECT_THROW(scaler.step(s.opt), ValueError);
  scaler.update();
  EXPECT_THROW(scaler.update(), ValueError);
}

TEST(GradScaler, SavesItsState) {
  Training s;
  GradScaler a(GradScalerOptions().init_scale(8).growth_interval(2)), b;
  s.w.mutable_grad() = ones({3});
  a.step(s.opt);
  a.update();
  b.load_state_dict(a.state_dict());
  EXPECT_EQ(b.get_scale(), 8);
  b.step(s.opt);
  b.update();
  EXPECT_EQ(b.get_scale(), 16);  // the second success of an interval of 2
  EXPECT_THROW(b.load_state_dict(optim::StateDict()), ValueError);
  optim::StateDict wrong = a.state_dict();
  wrong.insert_or_assign("growth_factor", full({}, 0.5));
  EXPECT_THROW(b.load_state_dict(wrong), ValueError);
}

TEST(GradScaler, DoesNothingWhereNotEnabled) {
  Training s;
  GradScaler scaler(GradScalerOptions().enabled(false));
  const Tensor loss = ones({});
  EXPECT_TRUE(scaler.scale(loss).is_same(loss));
  s.w.mutable_grad() = ones({3});
  scaler.unscale_(s.opt);
  EXPECT_TRUE(scaler.step(s.opt));
  scaler.update();
  EXPECT_EQ(s.w[0].item<double>(), 1.5);
  EXPECT_EQ(scaler.get_scale(), 1);
  EXPECT_TRUE(scaler.state_dict().is_empty());
}

TEST(GradScaler, RefusesFloat16GradientsAndBadFactors) {
  Tensor w = ones({2}).to(kFloat16).requires_grad_();
  optim::SGD opt({w}, optim::SGDOptions(0.5));
  w.mutable_grad() = ones({2}).to(kFloat16);
  GradScaler scaler;
  EXPECT_THROW(scaler.unscale_(opt), ValueError);
  EXPECT_THROW(GradScaler(GradScalerOptions().growth_factor(1)), ValueError);
  EXPECT_THROW(GradScaler(GradScalerOptions().backoff_factor(1)), ValueError);
}

}  // namespace
}  // namespace vesta::amp
