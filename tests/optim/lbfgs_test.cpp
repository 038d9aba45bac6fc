// L-BFGS: minima, the strong Wolfe conditions, counts, saved state, errors.
#include <gtest/gtest.h>

#include <cmath>

#include "vesta/autograd.h"
#include "vesta/ops.h"
#include "vesta/optim.h"

namespace vesta::optim {
namespace {

Tensor start_point() {
  Tensor p = zeros({4}, kFloat64);
  const double values[] = {-1.2, 1.0, 0.5, 2.0};
  for (int i = 0; i < 4; ++i) p.data_ptr<double>()[i] = values[i];
  return p.requires_grad_();
}
// Rosenbrock's function; its minimum is 0 at (1, 1, 1, 1).
Tensor rosenbrock(const Tensor& p) {
  const Tensor a = p.narrow(0, 1, 3), b = p.narrow(0, 0, 3);
  return (100 * (a - b * b).square() + (1 - b).square()).sum();
}
struct Problem {
  Tensor p = start_point();
  LBFGS opt;
  int evaluations = 0;
  explicit Problem(const LBFGSOptions& o) : opt({p}, o) {}
  Tensor step() {
    return opt.step([&] {
      ++evaluations;
      opt.zero_grad();
      Tensor loss = rosenbrock(p);
      loss.backward();
      return loss;
    });
  }
  double loss() const {
    const NoGradGuard no_grad;
    return rosenbrock(p).item<double>();
  }
};

TEST(LBFGS, FindsTheMinimumWithALineSearch) {
  for (const int64_t history : {3, 100}) {
    Problem problem(LBFGSOptions().line_search_fn("strong_wolfe").max_iter(30).history_size(history));
    problem.p.data_ptr<double>()[0] = 1.2;  // from -1.2 it would end in the other, local minimum
    for (int k = 0; k < 6; ++k) problem.step();
    EXPECT_LT(problem.loss(), 1e-8) << history;
    EXPECT_LT((problem.p - 1).abs().max().item<double>(), 1e-3);
  }
}

// PyTorch 2.14.1: torch.optim.LBFGS([p], **options) on the function and the start above, four steps; the losses that
// step() returns, and state["func_evals"].
TEST(LBFGS, TakesTheSameStepsAsPyTorch) {
  struct Case {
    LBFGSOptions options;
    std::vector<double> losses;
    int evaluations;
  };
  const std::vector<Case> cases = {
      {LBFGSOptions(0.5).max_iter(7), {355.7, 4.476494536179859, 4.253968020903939, 4.211784391952576}, 28},
      {LBFGSOptions().line_search_fn("strong_wolfe").max_iter(10),
       {355.7, 4.231939521126159, 3.792409990452742, 3.705918340261072},
       47},
  };
  for (const auto& c : cases) {
    Problem problem(c.options);
    for (const double expected : c.losses)
      ASSERT_NEAR(problem.step().item<double>(), expected, 1e-7 * (1 + expected));
    EXPECT_EQ(problem.opt.state_dict()["state.func_evals"].item<int64_t>(), c.evaluations);
    EXPECT_EQ(problem.evaluations, c.evaluations);
  }
}

TEST(LBFGS, NeverEvaluatesMoreThanItMay) {
  for (const int64_t most : {0, 1, 2, 5}) {
    Problem problem(LBFGSOptions().line_search_fn("strong_wolfe").max_eval(most));
    problem.step();
    EXPECT_LE(problem.evaluations, std::max<int64_t>(most, 1) + 1) << most;
    EXPECT_TRUE(std::isfinite(problem.loss()));
  }
}

TEST(LBFGS, MaximisesTheNegative) {
  Tensor a = start_point(), b = start_point();
  LBFGS down({a}, LBFGSOptions().line_search_fn("strong_wolfe"));
  LBFGS up({b}, LBFGSOptions().line_search_fn("strong_wolfe").maximize(true));
  const auto step = [](LBFGS& opt, const Tensor& p, double sign) {
    opt.step([&] {
      opt.zero_grad();
      Tensor loss = rosenbrock(p) * sign;
      loss.backward();
      return loss;
    });
  };
  for (int k = 0; k < 3; ++k) {
    step(down, a, 1);
    step(up, b, -1);
  }
  EXPECT_LT((a - b).abs().max().item<double>(), 1e-10);
}

TEST(LBFGS, ContinuesFromASavedState) {
  const auto options = LBFGSOptions().line_search_fn("strong_wolfe").max_iter(4);
  Problem straight(options), first(options);
  for (int k = 0; k < 4; ++k) straight.step();
  for (int k = 0; k < 2; ++k) first.step();
  StateDict saved("saved");
  for (const auto& item : first.opt.state_dict()) saved.insert(item.key(), item->clone());
  Problem second(LBFGSOptions(0.3));
  {
    const NoGradGuard no_grad;
    second.p.copy_(first.p);
  }
  second.opt.load_state_dict(saved);
  for (int k = 0; k < 2; ++k) second.step();
  EXPECT_TRUE(equal(straight.p, second.p));
  StateDict wrong = saved;
  wrong.insert_or_assign("state.d", zeros({3}));
  EXPECT_THROW(second.opt.load_state_dict(wrong), ValueError);
  StateDict without("saved");
  for (const auto& item : saved)
    if (item.key() != "state.ro") without.insert(item.key(), *item);
  EXPECT_THROW(second.opt.load_state_dict(without), ValueError);
}

TEST(LBFGS, StopsWhereTheGradientVanishes) {
  Tensor p = ones({4}, kFloat64).requires_grad_();
  LBFGS opt({p});
  int calls = 0;
  const Tensor loss = opt.step([&] {
    ++calls;
    opt.zero_grad();
    Tensor l = rosenbrock(p);
    l.backward();
    return l;
  });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(loss.item<double>(), 0);
}

TEST(LBFGS, RefusesWhatItCannotDo) {
  Tensor p = start_point(), q = start_point();
  EXPECT_THROW(LBFGS({p}, LBFGSOptions().line_search_fn("other")), ValueError);
  EXPECT_THROW(LBFGS({p}, LBFGSOptions(-1)), ValueError);
  LBFGS opt({p});
  EXPECT_THROW(opt.step(), ValueError);
  EXPECT_THROW(opt.add_param_group({{q}}), ValueError);
  EXPECT_THROW(LBFGS(std::vector<OptimizerParamGroup>{{{p}}, {{q}}}), ValueError);
}

}  // namespace
}  // namespace vesta::optim
