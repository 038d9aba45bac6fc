// logaddexp and logsumexp where everything, or one thing, is infinite.
#include "reports/reports_testing.h"

namespace vesta::reports {
namespace {

// pt#49724. logaddexp(a, b) has the slopes e^(a - y) and e^(b - y), which add up to 1 for finite arguments. As both go
// to -inf the result goes to -inf and adding to one of them changes nothing: 0, not the 0/0 of inf - inf.
TEST(InfiniteLogits, logaddexp_of_minus_infinities_has_gradient_zero) {
  for (DType t : {kFloat32, kDouble}) {
    Tensor a = full({2}, -kInf, t).requires_grad_(), b = full({2}, -kInf, t).requires_grad_();
    Tensor y = logaddexp(a, b);
    EXPECT_TRUE(all_equal(y, -kInf));
    for (auto& g : autograd::grad({y.sum()}, {a, b})) EXPECT_TRUE(all_equal(g, 0)) << g;
    // One infinity: the other argument passes through.
    Tensor c = full({2}, 3.0, t).requires_grad_();
    Tensor z = logaddexp(a, c);
    EXPECT_TRUE(all_equal(z, 3));
    auto grads = autograd::grad({z.sum()}, {a, c});
    EXPECT_TRUE(all_equal(grads[0], 0));
    EXPECT_TRUE(all_equal(grads[1], 1));
  }
}

// logsumexp([x, +inf]) = +inf; the softmax as one logit grows is (0, 1).
TEST(InfiniteLogits, logsumexp_with_an_infinity_gives_it_all_the_gradient) {
  for (DType t : {kFloat32, kDouble}) {
    Tensor x = make<double>({0.5, kInf}, {2}).to(t).requires_grad_();
    Tensor y = logsumexp(x, 0);
    EXPECT_EQ(number(y), kInf);
    EXPECT_EQ(values(autograd::grad({y}, {x})[0]), (Doubles{0, 1}));
    Tensor none = full({3}, -kInf, t).requires_grad_();
    Tensor z = logsumexp(none, 0);
    EXPECT_EQ(number(z), -kInf);
    EXPECT_TRUE(all_equal(autograd::grad({z}, {none})[0], 0));
  }
}

}  // namespace
}  // namespace vesta::reports
