// glu(a | b) = a sigmoid(b) at its edges. No wrong result is on record; these are where one would be.
#include "reports/reports_testing.h"

namespace vesta::reports {
namespace {

TEST(Glu, an_odd_dim_is_an_error_and_an_empty_one_is_not) {
  EXPECT_THROW(glu(ones({3})), Error);
  EXPECT_THROW(glu(ones({2, 5}), 1), Error);
  EXPECT_THROW(glu(ones({})), Error);
  EXPECT_EQ(glu(ones({0, 4}), 1).sizes().vec(), (Sizes{0, 2}));
  EXPECT_EQ(glu(ones({3, 0}), 1).sizes().vec(), (Sizes{3, 0}));  // half of nothing
}

// sigmoid(1e4) = 1 and sigmoid(-1e4) = 0 to far below a float32: a and 0. d/da is the sigmoid, d/db = a s (1 - s) = 0.
TEST(Glu, a_saturated_gate_gives_finite_values_and_gradients) {
  for (DType t : {kFloat32, kDouble, kBFloat16}) {
    Tensor x = make<double>({2, 3, 1e4, -1e4}, {4}).to(t).requires_grad_();
    Tensor y = glu(x, 0);
    EXPECT_EQ(values(y), (Doubles{2, 0})) << dtype_name(t);
    EXPECT_EQ(values(autograd::grad({y.sum()}, {x})[0]), (Doubles{1, 0, 0, 0})) << dtype_name(t);
  }
}

TEST(Glu, the_gradient_on_a_transposed_input_is_that_of_the_formula) {
  Generator g(kSeed);
  Tensor x = draw(g, {6, 5}).t().requires_grad_(), w = draw(g, {5, 3});
  Tensor got = autograd::grad({(glu(x, 1) * w).sum()}, {x})[0];
  Tensor formula = x.slice(1, 0, 3) * (1 + (-x.slice(1, 3, 6)).exp()).reciprocal();
  EXPECT_LE(distance(got, autograd::grad({(formula * w).sum()}, {x})[0]), 1e-13);
}

}  // namespace
}  // namespace vesta::reports
