// Forward mode: tangents through compositions, views, in-place writes, and together with backward.
#include <cmath>

#include "autograd/autograd_testing.h"

namespace vesta {
namespace {

using namespace autograd_testing;
using autograd::variable_list;

TEST(ForwardMode, tangent_of_a_composition_is_the_directional_derivative) {
  Tensor x = f64({0.3, -0.7, 1.1}), t = f64({1, 2, -1});
  auto [y, dy] = autograd::jvp(
      [](const variable_list& in) { return variable_list{(in[0].sin() * in[0]).exp().sum()}; }, {x}, {t});
  double value = 0, slope = 0;
  for (int i = 0; i < 3; ++i) {
    double v = values(x)[size_t(i)], e = std::exp(std::sin(v) * v);
    value += e;
    slope += e * (std::cos(v) * v + std::sin(v)) * values(t)[size_t(i)];
  }
  EXPECT_NEAR(values(y[0])[0], value, 1e-12);
  EXPECT_NEAR(values(dy[0])[0], slope, 1e-12);
}

TEST(ForwardMode, views_and_writes_through_views_carry_tangents) {
  autograd::forward_ad::DualLevel level;
  Tensor x = autograd::forward_ad::make_dual(f64({1, 2, 3, 4}, {2, 2}), f64({10, 20, 30, 40}, {2, 2}));
  Tensor y = x * 2;
  y.select(0, 1).mul_(3);  // the second row: 6 x
  Tensor base = zeros({4}, kDouble);
  base.slice(0, 1, 3).copy_(x.select(1, 0));
  auto ty = autograd::forward_ad::unpack_dual(y), tb = autograd::forward_ad::unpack_dual(base),
       tt = autograd::forward_ad::unpack_dual(x.t());
  EXPECT_EQ(values(ty.primal), (Doubles{2, 4, 18, 24}));
  EXPECT_EQ(values(ty.tangent), (Doubles{20, 40, 180, 240}));
  EXPECT_EQ(values(tb.tangent), (Doubles{0, 10, 30, 0}));
  EXPECT_EQ(values(tt.tangent), (Doubles{10, 30, 20, 40}));
}

TEST(ForwardMode, a_write_to_a_copy_leaves_the_tangent_of_the_original) {
  Tensor t = f64({3, 4});
  autograd::forward_ad::DualLevel level;
  Tensor x = autograd::forward_ad::make_dual(f64({1, 2}), t), y = x.clone();
  y.mul_(10);
  EXPECT_EQ(values(autograd::forward_ad::unpack_dual(y).tangent), (Doubles{30, 40}));
  EXPECT_EQ(values(autograd::forward_ad::unpack_dual(x).tangent), (Doubles{3, 4}));
  EXPECT_EQ(values(t), (Doubles{3, 4}));
}

TEST(ForwardMode, tangents_can_be_differentiated_backward) {
  // f = x^3: the tangent is 3 x^2 t, its gradient in x is 6 x t, in t 3 x^2.
  Tensor x = f64({2, -1}), t = f64({0.5, 4});
  x.requires_grad_();
  t.requires_grad_();
  auto [y, dy] =
      autograd::jvp([](const variable_list& in) { return variable_list{in[0] * in[0] * in[0]}; }, {x}, {t});
  dy[0].sum().backward();
  EXPECT_EQ(values(x.grad()), (Doubles{6, -24}));
  EXPECT_EQ(values(t.grad()), (Doubles{12, 3}));
}

TEST(ForwardMode, dropout_is_drawn_once) {
  manual_seed(5);
  Tensor x = ones({64}, kDouble), t = ones({64}, kDouble) * 3;
  auto [y, dy] = autograd::jvp(
      [](const variable_list& in) { return variable_list{dropout(in[0], 0.5, true)}; }, {x}, {t});
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(values(dy[0])[i], 3 * values(y[0])[i]);
}

TEST(ForwardMode, misuse_is_an_error_that_says_why) {
  Tensor x = f64({1, 2});
  EXPECT_CONTAINS(error_of<ValueError>([&] { autograd::forward_ad::make_dual(x, x); }), "DualLevel");
  autograd::forward_ad::DualLevel level;
  EXPECT_CONTAINS(error_of<ValueError>([&] { autograd::forward_ad::make_dual(x, f64({1})); }), "shape");
  EXPECT_CONTAINS(error_of<TypeError>([&] { autograd::forward_ad::make_dual(x, f32({1, 2})); }), "type");
  EXPECT_CONTAINS(error_of<TypeError>([&] { autograd::forward_ad::make_dual(x.to(kLong), x); }), "floating");
  Tensor d = autograd::forward_ad::make_dual(x, x), out = zeros({2}, kDouble);
  EXPECT_CONTAINS(error_of<ValueError>([&] { add_out(out, d, d); }), "out=");
  EXPECT_CONTAINS(error_of<ValueError>([&] { autograd::forward_ad::DualLevel second; }), "open already");
}

TEST(ForwardMode, outside_of_a_level_there_are_no_tangents) {
  Tensor d;
  {
    autograd::forward_ad::DualLevel level;
    d = autograd::forward_ad::make_dual(f64({1, 2}), f64({1, 1}));
  }
  EXPECT_FALSE(autograd::forward_ad::unpack_dual(d * 2).tangent.defined());
}

}  // namespace
}  // namespace vesta
