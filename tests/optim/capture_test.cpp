// The capture contract: a traced training step of modules and optimisers replays to the bits of the eager one, step
// after step, and sees rates that a schedule writes in between.
#include <gtest/gtest.h>

#include <cstring>

#include "graph/tracer.h"
#include "vesta/nn.h"
#include "vesta/ops.h"
#include "vesta/optim.h"

namespace vesta::optim {
namespace {

bool same(const Tensor& a, const Tensor& b) {
  const Tensor x = a.contiguous(), y = b.contiguous();
  return a.sizes() == b.sizes() && a.dtype() == b.dtype() &&
         std::memcmp(x.data_ptr(), y.data_ptr(), a.nbytes()) == 0;
}

struct Trainer {
  nn::Sequential net{nn::Linear(4, 8), nn::LayerNorm(8), nn::GELU(), nn::Linear(8, 3)};
  std::unique_ptr<Optimizer> optimizer;
  template <class Opt, class Options>
  void use(const Options& options) {
    optimizer = std::make_unique<Opt>(net->parameters(), options);
    optimizer->init_state();
  }
  Tensor step(const Tensor& x, const Tensor& target) {
    optimizer->zero_grad();
    const Tensor loss = nn::functional::cross_entropy(net(x), target);
    loss.backward();
    nn::utils::clip_grad_norm_(net->parameters(), 0.5);
    optimizer->step();
    return loss.detach();
  }
};

template <class Opt, class Options>
void check(const Options& options) {
  manual_seed(12);
  Trainer eager, traced;
  traced.net->load_state_dict(eager.net->state_dict());
  eager.use<Opt>(options);
  traced.use<Opt>(options);
  const Tensor x = randn({6, 4}), target = randint(0, 3, {6});
  const Tensor before = traced.net->parameters()[0].detach().clone();
  graph::Graph g = graph::trace(
      [&](const std::vector<Tensor>& in) { return std::vector<Tensor>{traced.step(in[0], in[1])}; },
      {x, target});
  EXPECT_TRUE(same(before, traced.net->parameters()[0]));
  CosineAnnealingLR eager_lr(*eager.optimizer, 8), traced_lr(*traced.optimizer, 8);
  for (int k = 0; k < 6; ++k) {
    const Tensor xk = x + 0.1 * k;
    EXPECT_TRUE(same(eager.step(xk, target), g.run({xk, target})[0])) << "seed 12, step " << k;
    const auto a = eager.net->parameters(), b = traced.net->parameters();
    for (size_t i = 0; i < a.size(); ++i)
      EXPECT_TRUE(same(a[i], b[i])) << "seed 12, step " << k << ", parameter " << i;
    eager_lr.step();
    traced_lr.step();
  }
  for (const auto& item : eager.optimizer->state_dict())
    EXPECT_TRUE(same(*item, traced.optimizer->state_dict()[item.key()])) << item.key();
}

TEST(CapturedStep, compiled_equals_eager_with_adamw_and_a_schedule) {
  check<AdamW>(AdamWOptions(0.05).weight_decay(0.1));
}
TEST(CapturedStep, compiled_equals_eager_with_adam) { check<Adam>(AdamOptions(0.05).amsgrad(true)); }
TEST(CapturedStep, compiled_equals_eager_with_sgd_and_nesterov) {
  check<SGD>(SGDOptions(0.1).momentum(0.9).nesterov(true));
}
TEST(CapturedStep, compiled_equals_eager_with_damped_sgd) {
  check<SGD>(SGDOptions(0.1).momentum(0.9).dampening(0.4));
}

TEST(CapturedStep, compiled_equals_eager_with_the_other_rules) {
  check<RMSprop>(RMSpropOptions(0.01).momentum(0.5).centered(true));
  check<Adagrad>(AdagradOptions(0.05).lr_decay(0.1));
  check<Adadelta>(AdadeltaOptions(0.5));
  check<Adamax>(AdamaxOptions(0.02).weight_decay(0.1));
  check<NAdam>(NAdamOptions(0.02).decoupled_weight_decay(true).weight_decay(0.1));
  check<RAdam>(RAdamOptions(0.05).betas({0.8, 0.6}));
  check<Rprop>(RpropOptions(0.01));
  check<ASGD>(ASGDOptions(0.05).t0(2));
  check<Adafactor>(AdafactorOptions(0.05));
}

TEST(CapturedStep, AScheduleInsideIsRefused) {
  Tensor w = ones({2}).requires_grad_();
  SGD opt({w}, SGDOptions(0.5));
  StepLR schedule(opt, 1);
  EXPECT_THROW(graph::trace(
                   [&](const std::vector<Tensor>& in) {
                     schedule.step();
                     return std::vector<Tensor>{in[0] * 2};
                   },
                   {ones({2})}),
               Error);
  EXPECT_EQ(schedule.last_epoch(), 0);
  EXPECT_EQ(opt.param_groups()[0].options().get_lr(), 0.5);
}

}  // namespace
}  // namespace vesta::optim
