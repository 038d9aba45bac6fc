// softplus(x) = log(1 + exp(beta x)) / beta for large beta x and for tiny beta.
#include "reports/reports_testing.h"

namespace vesta::reports {
namespace {

// burn#5373: exp(beta x) overflowed to infinity, its gradient to NaN. log(1 + e^100) = 100 + log(1 + e^-100) = 100 to
// 43 digits, and for beta = 5, x = 20 the same over 5: 20. The slope is 1 / (1 + e^-100) = 1.
TEST(Softplus, large_arguments_give_themselves_and_slope_one) {
  for (DType t : {kFloat32, kDouble, kHalf, kBFloat16})
    for (auto [x, beta] : {std::pair{100.0, 1.0}, std::pair{20.0, 5.0}})
      for (double threshold : {20.0, 1e9}) {  // also where the text's own branch is never taken
        Tensor leaf = full({3}, x, t).requires_grad_();
        Tensor y = softplus(leaf, beta, threshold);
        EXPECT_TRUE(all_equal(y, x)) << dtype_name(t) << " beta " << beta << " threshold " << threshold << y;
        EXPECT_TRUE(all_equal(autograd::grad({y.sum()}, {leaf})[0], 1)) << dtype_name(t) << " beta " << beta;
      }
}

// pt#187180 asks for a finite fp16 result of beta = 1e-6, x = 1. The value is log(1 + e^1e-6) / 1e-6 =
// (0.69314718056 + 0.5e-6) / 1e-6 = 693147.68, beyond fp16's 65504: +inf is its correct rounding. float32 has it.
TEST(Softplus, a_tiny_beta_overflows_fp16_and_not_float32) {
  EXPECT_EQ(number(softplus(ones({1}, kHalf), 1e-6)), kInf);
  EXPECT_NEAR(number(softplus(ones({1}), 1e-6)), 693147.68, 0.07);  // an ulp is 0.06
  EXPECT_NEAR(number(softplus(ones({1}, kDouble), 1e-6)), 693147.6805599453, 1e-6);
}

}  // namespace
}  // namespace vesta::reports
