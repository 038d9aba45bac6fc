// Sums and softmax of 16-bit numbers are accumulated in float32.
#include "reports/reports_testing.h"

namespace vesta::reports {
namespace {

// candle#3727, executorch PR#20089: f16 stops adding ones at 2048 (its 11 bits), bf16 at 256 (8 bits), so rows of a
// softmax summed to 2. Equal logits: each result is 1 / n, a power of two and exact.
TEST(HalfSums, softmax_of_equal_logits_is_exactly_one_over_n) {
  EXPECT_TRUE(all_equal(softmax(zeros({4096}, kHalf), 0), 1.0 / 4096));
  EXPECT_TRUE(all_equal(softmax(zeros({512}, kBFloat16), 0), 1.0 / 512));
  EXPECT_TRUE(all_equal(softmax(zeros({2, 4096, 3}, kHalf), 1), 1.0 / 4096));  // along a strided dim
  EXPECT_TRUE(all_equal(softmax(zeros({3, 512}, kBFloat16).t(), 0), 1.0 / 512));
}

// 4096 = 2^12 is an f16 number; 512 and 1024 are bf16 numbers.
TEST(HalfSums, sum_of_ones_counts_them) {
  EXPECT_EQ(number(ones({4096}, kHalf).sum()), 4096);
  EXPECT_EQ(number(ones({512}, kBFloat16).sum()), 512);
  EXPECT_EQ(number(ones({1024}, kBFloat16).sum()), 1024);
  EXPECT_TRUE(all_equal(ones({4096, 3}, kHalf).sum({0}), 4096));
  EXPECT_TRUE(all_equal(ones({3, 4096}, kHalf).sum({1}), 4096));
  EXPECT_EQ(number(ones({4096}, kHalf).mean()), 1);
  EXPECT_EQ(number(ones({512}, kBFloat16).mean()), 1);
  EXPECT_EQ(number(ones({4096}, kHalf).norm()), 64);  // sqrt(4096)
  EXPECT_EQ(number(ones({4096}, kHalf).dot(ones({4096}, kHalf))), 4096);
}

}  // namespace
}  // namespace vesta::reports
