// The build's identity as programs see it.
#include <vesta/version.h>

#include <gtest/gtest.h>

#include <regex>
#include <string>

namespace vesta {
namespace {

TEST(Version, IsThreeNumbersWithDots) {
  EXPECT_TRUE(std::regex_match(version(), std::regex("[0-9]+\\.[0-9]+\\.[0-9]+"))) << version();
}

TEST(Version, CommitIsAShortHashOrUnknown) {
  EXPECT_TRUE(std::regex_match(commit(), std::regex("([0-9a-f]{12}\\+?)|unknown"))) << commit();
}

TEST(Version, CompilerHasNameAndNumber) {
  EXPECT_TRUE(std::regex_match(compiler(), std::regex("(gcc|clang) [0-9]+\\..*"))) << compiler();
}

}  // namespace
}  // namespace vesta
