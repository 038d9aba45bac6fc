// SymInt: plain numbers, expressions with their example values, and the guards that comparisons leave.
#include "vesta/sym_int.h"

#include "core/core_testing.h"
#include "core/shape_env.h"

namespace vesta {
namespace {

using namespace core_testing;

TEST(SymInts, plain_numbers_behave_as_numbers) {
  SymInt a = 7, b = 2;
  EXPECT_EQ((a + b).as_int(), 9);
  EXPECT_EQ((a - b).as_int(), 5);
  EXPECT_EQ((a * b).as_int(), 14);
  EXPECT_EQ((a / b).as_int(), 3);
  EXPECT_EQ((a % b).as_int(), 1);
  EXPECT_EQ(ceil_div(a, b).as_int(), 4);
  EXPECT_EQ(max(a, b).as_int(), 7);
  EXPECT_EQ(min(a, b).as_int(), 2);
  EXPECT_TRUE(b < a && a > b && a >= a && a != b);
  EXPECT_FALSE(SymInt(-5).is_symbolic());
}

TEST(SymInts, expressions_keep_the_examples_value_and_simplify) {
  ShapeEnv env;
  SymInt s = env.symbol(5), t = env.symbol(8);
  EXPECT_TRUE(s.is_symbolic());
  EXPECT_EQ((s + t).hint(), 13);
  EXPECT_EQ((t * s - s).hint(), 35);
  EXPECT_EQ((t / 3).hint(), 2);
  EXPECT_EQ((t % 3).hint(), 2);
  EXPECT_EQ(max(s, t).hint(), 8);
  EXPECT_EQ(min(s, 3).hint(), 3);
  EXPECT_EQ((s + 0).raw(), s.raw());
  EXPECT_EQ((s * 1).raw(), s.raw());
  EXPECT_EQ((s - s).raw(), 0);
  EXPECT_EQ((s / s).raw(), 1);
  EXPECT_EQ((s * 0).raw(), 0);
  EXPECT_EQ((s + t).raw(), (t + s).raw());
  EXPECT_EQ((s * t).raw(), (t * s).raw());
  EXPECT_TRUE(env.guards().empty());
}

TEST(SymInts, comparisons_leave_guards_once_and_pinning_too) {
  ShapeEnv env;
  SymInt s = env.symbol(5), t = env.symbol(8);
  EXPECT_TRUE(s < t);
  EXPECT_TRUE(s < t);
  ASSERT_EQ(env.guards().size(), 1u);
  EXPECT_CONTAINS(env.guards()[0], s.str() + " < " + t.str());
  EXPECT_FALSE(s == t);
  ASSERT_EQ(env.guards().size(), 2u);
  EXPECT_CONTAINS(env.guards()[1], "!=");
  EXPECT_EQ(s.as_int(), 5);
  ASSERT_EQ(env.guards().size(), 3u);
  EXPECT_CONTAINS(env.guards()[2], s.str() + " == 5");
  // Known without a guard: a symbol equals itself, and is never 0 or 1.
  EXPECT_TRUE(s == s);
  EXPECT_FALSE(s < s);
  EXPECT_FALSE(s == 1);
  EXPECT_FALSE(s == 0);
  EXPECT_TRUE(SymInt(1) < s);
  EXPECT_EQ(env.guards().size(), 3u);
}

TEST(SymInts, sizes_of_zero_and_one_have_no_symbols) {
  ShapeEnv env;
  EXPECT_CONTAINS(error_of<ValueError>([&] { env.symbol(1); }), "got 1");
  EXPECT_THROW(env.symbol(0), ValueError);
}

TEST(SymInts, environments_nest) {
  ShapeEnv outer;
  SymInt s = outer.symbol(4);
  {
    ShapeEnv inner;
    EXPECT_TRUE(s < 10);
    EXPECT_EQ(inner.guards().size(), 1u);
  }
  EXPECT_TRUE(outer.guards().empty());
  EXPECT_TRUE(s < 11);
  EXPECT_EQ(outer.guards().size(), 1u);
}

}  // namespace
}  // namespace vesta
