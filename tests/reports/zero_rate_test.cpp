// Optimisers with a learning rate of 0.
#include "reports/reports_testing.h"
#include "vesta/optim.h"

namespace vesta::reports {
namespace {

// pt#186444: Adam divided by the step size. With lr = 0 the parameter stays bit for bit, and the moments go on: from
// m = v = 0 and a gradient g, m = (1 - b1) g and v = (1 - b2) g^2 after one step, m = b1 m + (1 - b1) g after the next.
template <class Optimizer, class Options>
void check(Options options) {
  Tensor w = f32({1.25f, -3, 0, 1e-30f}).requires_grad_();
  Tensor before = w.detach().clone();
  Doubles g = {0.5, -2, 3, 0};
  Optimizer optimizer({w}, options.lr(0));
  double b1 = 0.9, b2 = 0.999;
  Doubles m(4, 0), v(4, 0);
  for (int step = 0; step < 3; ++step) {
    w.mutable_grad() = make<double>(g, {4}).to(kFloat32);
    optimizer.step();
    EXPECT_TRUE(w.detach().equal(before)) << w;
    for (size_t i = 0; i < 4; ++i) {
      m[i] = b1 * m[i] + (1 - b1) * g[i];
      v[i] = b2 * v[i] + (1 - b2) * g[i] * g[i];
    }
  }
  Doubles got_m, got_v;
  for (auto& item : optimizer.state_dict()) {
    if (item.key().ends_with("exp_avg")) got_m = values(item.value());
    if (item.key().ends_with("exp_avg_sq")) got_v = values(item.value());
  }
  ASSERT_EQ(got_m.size(), 4u);
  ASSERT_EQ(got_v.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(got_m[i], m[i], 1e-6 * (1 + std::abs(m[i])));
    EXPECT_NEAR(got_v[i], v[i], 1e-6 * (1 + std::abs(v[i])));
  }
}

TEST(ZeroRate, adam_keeps_the_parameters_and_updates_the_moments) {
  check<optim::Adam>(optim::AdamOptions());
  check<optim::Adam>(optim::AdamOptions().amsgrad(true));
  check<optim::AdamW>(optim::AdamWOptions());
}

}  // namespace
}  // namespace vesta::reports
