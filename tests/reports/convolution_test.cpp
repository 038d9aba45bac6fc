// Convolutions in bf16 and of very large inputs.
#include "reports/reports_testing.h"

namespace vesta::reports {
namespace {

// pt#163347: bf16 conv2d returned one of the products instead of their sum. Four products 1 * 1: 4.
TEST(Convolution, a_bf16_kernel_as_large_as_the_input_sums_all_products) {
  for (DType t : {kBFloat16, kFloat16, kFloat32}) {
    Tensor x = ones({1, 1, 2, 2}, t), w = ones({1, 1, 2, 2}, t);
    EXPECT_EQ(values(conv2d(x, w)), Doubles{4});
  }
}

// Volume of the given size, one depth slice of weights (1, 3, 3): as many independent 2-d convolutions of the slices.
// Each result sums 9 C products in float32 and is rounded once to bf16: error at most sqrt(9 C) * 2^-8 * |x| |w|, far
// below a wrong sum.
void compare_with_slices(Sizes sizes, int64_t out_channels, Sizes checked) {
  Generator g(kSeed);
  Tensor x = draw(g, sizes, kBFloat16), w = draw(g, {out_channels, sizes[1], 1, 3, 3}, kBFloat16);
  Tensor y = conv3d(x, w);
  ASSERT_EQ(y.sizes().vec(), (Sizes{1, out_channels, sizes[2], sizes[3] - 2, sizes[4] - 2}));
  Tensor w2 = w.select(2, 0).to(kDouble);
  double bound = std::sqrt(9.0 * double(sizes[1])) / 256 * 8;  // |x|, |w| up to about 3 each
  for (int64_t d : checked)
    EXPECT_LE(distance(y.select(2, d), conv2d(x.select(2, d).to(kDouble), w2)), bound) << "slice " << d;
}

// pt#163539: 1x16x124x1282x722 gave wrong values. The shape here is its slice: same channels and kernel, odd sizes.
TEST(Convolution, a_bf16_conv3d_with_a_flat_kernel_is_a_conv2d_of_each_slice) {
  compare_with_slices({1, 16, 5, 41, 23}, 16, {0, 1, 2, 3, 4});
}
TEST(NightlyConvolution, a_bf16_conv3d_of_nearly_2_to_the_31_elements_is_a_conv2d_of_each_slice) {
  if (available_memory() < int64_t(14) << 30) GTEST_SKIP() << "needs 14 GiB";
  compare_with_slices({1, 16, 124, 1282, 722}, 16, {0, 61, 123});
}

// pt#87354, pt#43476: with 2^31 elements every result was 0. 32 channels of 1 * 1: 32 everywhere.
TEST(Convolution, a_pointwise_conv3d_sums_the_channels) {
  Tensor y = conv3d(ones({1, 32, 8, 9, 7}), ones({1, 32, 1, 1, 1}));
  EXPECT_EQ(y.sizes().vec(), (Sizes{1, 1, 8, 9, 7}));
  EXPECT_TRUE(all_equal(y, 32));
}
TEST(NightlyConvolution, a_pointwise_conv3d_of_2_to_the_31_elements_sums_the_channels) {
  if (available_memory() < int64_t(20) << 30) GTEST_SKIP() << "needs 20 GiB";
  EXPECT_TRUE(all_equal(conv3d(ones({1, 32, 512, 512, 256}), ones({1, 32, 1, 1, 1})), 32));
}

}  // namespace
}  // namespace vesta::reports
