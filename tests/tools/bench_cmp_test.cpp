// tools/bench_cmp on made-up results: direction by unit, noise, missing cases, malformed input.
#include <gtest/gtest.h>

#include "tools/run_program.h"

namespace vesta::test {
namespace {

class BenchCmp : public testing::Test {
 protected:
  ProgramResult compare(const std::string& before, const std::string& after,
                        const std::string& options = "") {
    return run_tool("bench_cmp",
                    folder_.write("before", before) + " " + folder_.write("after", after) + " " + options);
  }
  static std::string line(const std::string& name, double value, const std::string& unit,
                          const std::string& rest = "\"ratio\": null") {
    return "{\"bench\": \"gemm\", \"case\": \"" + name + "\", \"value\": " + std::to_string(value) +
           ", \"unit\": \"" + unit + "\", " + rest + "}\n";
  }
  TempFolder folder_;
};

bool contains(const ProgramResult& result, const std::string& text) {
  return result.output.find(text) != std::string::npos;
}

TEST_F(BenchCmp, AChangeInsideTheNoiseIsOnlyCounted) {
  ProgramResult result = compare(line("a", 100, "ns"), line("a", 108, "ns"));
  EXPECT_EQ(result.output, "0 better, 0 worse, 1 within noise\n");
}

TEST_F(BenchCmp, TimesAreBetterWhenLowerAndRatesWhenHigher) {
  ProgramResult result = compare(line("time", 100, "ns") + line("rate", 100, "GFLOP/s"),
                                 line("time", 50, "ns") + line("rate", 50, "GFLOP/s"));
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_TRUE(contains(result, "1 better, 1 worse")) << result.output;
  EXPECT_TRUE(contains(result, "gemm rate                                       100 ->         50 GFLOP/s"))
      << result.output;
}

TEST_F(BenchCmp, FailMakesAWorseCaseAFailure) {
  std::string fast = line("a", 100, "ns"), slow = line("a", 200, "ns");
  EXPECT_EQ(compare(fast, slow, "--fail").exit_status, 1);
  EXPECT_EQ(compare(slow, fast, "--fail").exit_status, 0);
  EXPECT_EQ(compare(fast, slow).exit_status, 0);
}

TEST_F(BenchCmp, TheIntervalOfTheRatioIsTheNoise) {
  std::string wide = "\"ratio\": 1.0, \"lo\": 0.8, \"hi\": 1.2",
              narrow = "\"ratio\": 1.0, \"lo\": 0.99, \"hi\": 1.01";
  EXPECT_TRUE(contains(compare(line("a", 100, "ns", wide), line("a", 130, "ns", wide)), "0 worse"));
  EXPECT_TRUE(contains(compare(line("a", 100, "ns", narrow), line("a", 103, "ns", narrow)), "1 worse"));
}

TEST_F(BenchCmp, RepeatedCasesGiveMedianAndSpread) {
  std::string before = line("a", 90, "ns") + line("a", 100, "ns") + line("a", 110, "ns");
  EXPECT_TRUE(contains(compare(before, line("a", 112, "ns")), "0 worse"));
  EXPECT_TRUE(contains(compare(before, line("a", 120, "ns")), "100 ->        120"));
}

TEST_F(BenchCmp, MissingAndNewCasesAreNamed) {
  ProgramResult result = compare(line("old", 1, "ns"), line("fresh", 1, "ns"));
  EXPECT_TRUE(contains(result, "gemm old ")) << result.output;
  EXPECT_TRUE(contains(result, "missing in")) << result.output;
  EXPECT_TRUE(contains(result, "gemm fresh ")) << result.output;
}

TEST_F(BenchCmp, AMalformedLineIsNamedByItsNumber) {
  for (const char* bad : {"{\"bench\": \"x\"", "not json", "{\"bench\": \"x\", \"case\": \"y\"}", "{\"a\": }",
                          "{\"bench\": \"x\", \"case\": \"y\", \"value\": \"fast\"}"}) {
    ProgramResult result = compare(line("a", 1, "ns") + "\n" + bad + "\n", line("a", 1, "ns"));
    EXPECT_EQ(result.exit_status, 2) << bad;
    EXPECT_TRUE(contains(result, "before:3: not a bench result")) << result.output;
  }
}

TEST_F(BenchCmp, AChangedUnitIsRefused) {
  ProgramResult result = compare(line("a", 1, "ns"), line("a", 1, "us"));
  EXPECT_EQ(result.exit_status, 2);
  EXPECT_TRUE(contains(result, "the unit changed from ns to us")) << result.output;
}

}  // namespace
}  // namespace vesta::test
