// Size arithmetic throws instead of wrapping, and its messages show the operands.
#include "base/checked_math.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace vesta {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(CheckedMath, ProductsAndSumsThatFitAreExact) {
  EXPECT_EQ(checked_mul<int64_t>(-3, 7, "t"), -21);
  EXPECT_EQ(checked_mul<int64_t>(kMax / 2, 2, "t"), kMax - 1);
  EXPECT_EQ(checked_add<size_t>(1, 2, "t"), 3u);
  EXPECT_EQ(checked_add<int64_t>(kMax, 0, "t"), kMax);
}

TEST(CheckedMath, OverflowThrowsWithTheOperands) {
  try {
    checked_mul<int64_t>(kMax, 2, "view");
    FAIL();
  } catch (const ValueError& error) {
    EXPECT_STREQ(error.what(), "view: 9223372036854775807 * 2 does not fit into 64 bits");
  }
  EXPECT_THROW(checked_add<size_t>(std::numeric_limits<size_t>::max(), 1, "t"), ValueError);
  EXPECT_THROW(checked_mul<int32_t>(1 << 16, 1 << 16, "t"), ValueError);
}

TEST(CheckedMath, NumelOfShapes) {
  EXPECT_EQ(checked_numel({}, "t"), 1);
  EXPECT_EQ(checked_numel(std::vector<int64_t>{2, 3, 4}, "t"), 24);
  EXPECT_EQ(checked_numel(std::vector<int64_t>{kMax, kMax, 0}, "t"), 0);
  EXPECT_THROW(checked_numel(std::vector<int64_t>{kMax, 2}, "t"), ValueError);
  EXPECT_THROW(checked_numel(std::vector<int64_t>{0, -1}, "t"), ValueError);
}

TEST(CheckedMath, RoundUpAndCast) {
  EXPECT_EQ(checked_round_up(0, 64, "t"), 0u);
  EXPECT_EQ(checked_round_up(65, 64, "t"), 128u);
  EXPECT_THROW(checked_round_up(std::numeric_limits<size_t>::max() - 3, 64, "t"), ValueError);
  EXPECT_EQ((checked_cast<int>(int64_t{7}, "t")), 7);
  EXPECT_THROW((checked_cast<int>(int64_t{1} << 40, "t")), ValueError);
  EXPECT_THROW((checked_cast<uint64_t>(int64_t{-1}, "t")), ValueError);
  EXPECT_THROW((checked_cast<int64_t>(~uint64_t{0}, "t")), ValueError);
}

}  // namespace
}  // namespace vesta
