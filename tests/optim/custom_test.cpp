// An optimiser of a program's own, written as for libtorch: options, groups, state, schedules.
#include <gtest/gtest.h>

#include "vesta/autograd.h"
#include "vesta/ops.h"
#include "vesta/optim.h"

namespace vesta::optim {
namespace {

struct SignOptions : OptimizerCloneableOptions<SignOptions> {
  explicit SignOptions(double lr = 0.25) : rate(lr) {}
  double get_lr() const override { return rate; }
  void set_lr(const double lr) override { rate = lr; }
  double rate;
};
struct SignState : OptimizerCloneableParamState<SignState> {
  int steps = 0;
};
// Steps of one length against the gradient's sign.
struct SignDescent : Optimizer {
  using Optimizer::Optimizer;
  Tensor step(LossClosure = nullptr) override {
    const NoGradGuard no_grad;
    for (auto& group : param_groups_)
      for (const Tensor& p : group.params()) {
        if (!p.grad().defined()) continue;
        auto& state = state_[p.unsafeGetTensorImpl()];
        if (!state) state = std::make_unique<SignState>();
        ++static_cast<SignState&>(*state).steps;
        Tensor(p).sub_(p.grad().sign() * static_cast<const SignOptions&>(group.options()).rate);
      }
    return {};
  }
};

TEST(OwnOptimizer, StepsEachGroupWithItsOptionsAndKeepsStateByParameter) {
  Tensor a = full({2}, 1.0).requires_grad_(), b = full({3}, 1.0).requires_grad_();
  SignDescent optimizer({OptimizerParamGroup({a}), OptimizerParamGroup({b}, SignOptions(0.5))},
                        std::make_unique<SignOptions>());
  for (int i = 0; i < 2; ++i) {
    optimizer.zero_grad();
    (a.sum() + b.sum()).backward();
    optimizer.step();
  }
  EXPECT_TRUE(equal(a.detach(), full({2}, 0.5)));
  EXPECT_TRUE(equal(b.detach(), full({3}, 0.0)));
  // By the address, or by the address as text.
  const auto address = std::to_string(reinterpret_cast<uintptr_t>(a.unsafeGetTensorImpl()));
  EXPECT_EQ(static_cast<SignState&>(*optimizer.state().at(address)).steps, 2);
  EXPECT_EQ(optimizer.state().size(), 2u);
  EXPECT_THROW(optimizer.add_param_group(OptimizerParamGroup({a})), ValueError);
}

TEST(OwnOptimizer, SchedulesSetTheRateThroughTheOverriddenCalls) {
  SignDescent optimizer(std::vector<Tensor>{full({1}, 1.0).requires_grad_()},
                        std::make_unique<SignOptions>(1.0));
  StepLR schedule(optimizer, 1, 0.5);
  schedule.step();
  EXPECT_EQ(static_cast<SignOptions&>(optimizer.param_groups()[0].options()).rate, 0.5);
}

TEST(OwnOptimizer, WithoutAStepOfItsOwnSaysWhatToOverride) {
  struct Nothing : Optimizer {
    using Optimizer::Optimizer;
  };
  Tensor a = full({1}, 1.0).requires_grad_();
  Nothing optimizer(std::vector<Tensor>{a}, std::make_unique<SignOptions>());
  a.sum().backward();
  EXPECT_THROW(optimizer.step(), NotImplementedError);
  EXPECT_THROW(Nothing(std::vector<Tensor>{}, nullptr), ValueError);
}

}  // namespace
}  // namespace vesta::optim
