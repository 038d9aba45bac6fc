// The build's identity as programs see it.
#include <vesta/version.h>

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace vesta {
namespace {

TEST(Version, IsThreeNumbersWithDots) {
  int major = -1, minor = -1, patch = -1, used = 0;
  ASSERT_EQ(std::sscanf(version(), "%d.%d.%d%n", &major, &minor, &patch, &used), 3) << version();
  EXPECT_EQ(version()[used], '\0') << version();
}

TEST(Version, CommitIsAShortHashOrUnknown) {
  std::string text = commit();
  if (text == "unknown") return;
  if (text.back() == '+') text.pop_back();
  EXPECT_EQ(text.size(), 12u) << commit();
  EXPECT_EQ(text.find_first_not_of("0123456789abcdef"), std::string::npos) << commit();
}

TEST(Version, CompilerIsNamedWithItsNumber) {
  char name[16] = "";
  int major = 0;
  ASSERT_EQ(std::sscanf(compiler(), "%15s %d.", name, &major), 2) << compiler();
  EXPECT_TRUE(std::string(name) == "gcc" || std::string(name) == "clang") << compiler();
  EXPECT_GT(major, 0) << compiler();
}

}  // namespace
}  // namespace vesta
