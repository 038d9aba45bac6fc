// ./dev and scripts/lint.sh as their users meet them: wrong usage, and source rules on a made-up tree. Nothing here
// installs or builds. ctest runs this program in tests/, so the scripts are one folder up.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "tools/run_program.h"

namespace vesta::test {
namespace {

void expect_usage_error(const std::string& arguments, const std::string& message) {
  ProgramResult result = run_command("../dev " + arguments);
  EXPECT_EQ(result.exit_status, 2) << arguments;
  EXPECT_NE(result.output.find(message), std::string::npos) << arguments << " printed " << result.output;
}

TEST(Dev, WrongUsageIsNamedWithStatus2) {
  expect_usage_error("", "usage: ./dev COMMAND");
  expect_usage_error("biuld", "unknown command 'biuld'");
  expect_usage_error("build fast", "unknown preset 'fast'; there are: release debug tsan embedded");
  expect_usage_error("test --everything", "unknown argument '--everything'");
  expect_usage_error("bench --jsno", "unknown option '--jsno'");
  expect_usage_error("bench gemm ops", "bench takes one name");
  expect_usage_error("format --fix", "unknown argument '--fix'");
  expect_usage_error("docs all", "docs takes no arguments");
  expect_usage_error("check now", "check takes no arguments");
}

TEST(Dev, HelpNamesEveryCommand) {
  ProgramResult result = run_command("../dev help");
  EXPECT_EQ(result.exit_status, 0);
  for (const char* command : {"setup", "build", "test", "bench", "demo", "format", "check"}) {
    EXPECT_NE(result.output.find(std::string("\n  ") + command), std::string::npos) << command;
  }
  EXPECT_EQ(run_command("../dev test --help").output, result.output);
}

class Lint : public testing::Test {
 protected:
  Lint() {
    std::ifstream in("../scripts/lint.sh");
    std::string script((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    folder_.write("scripts/lint.sh", script);
    for (const char* folder : {"include", "tests", "tools", "cli", "examples", "bench"}) {
      folder_.write(std::string(folder) + "/README", "");
    }
    folder_.write("src/base/log.cpp", "#include <iostream>\n// getenv(\"X\") belongs elsewhere\n");
  }
  ProgramResult lint() { return run_command("bash " + folder_.path() + "/scripts/lint.sh"); }
  void expect_wrong(const std::string& file, const std::string& text, const std::string& rule) {
    folder_.write(file, text);
    ProgramResult result = lint();
    EXPECT_EQ(result.exit_status, 1) << text;
    EXPECT_NE(result.output.find("rule: " + rule), std::string::npos) << result.output;
    EXPECT_NE(result.output.find(file), std::string::npos) << result.output;
  }
  TempFolder folder_;
};

TEST_F(Lint, ACleanTreePasses) {
  folder_.write("src/base/config.cpp", "const char* value = std::getenv(\"VESTA_LOG\");\n");
  folder_.write("src/kernels/templates/cuda/add.h", "#pragma once\n__global__ void add();\n");
  ProgramResult result = lint();
  EXPECT_EQ(result.exit_status, 0) << result.output;
  EXPECT_EQ(result.output, "");
}

TEST_F(Lint, ReadingTheEnvironmentIsNamed) {
  expect_wrong("src/core/a.cpp", "auto* x = getenv(\"HOME\");\n",
               "the environment is read in src/base/config only");
}

TEST_F(Lint, KernelTextInASourceIsNamed) {
  expect_wrong("src/ops/a.cpp", "const char* k = \"__global__ void f()\";\n",
               "kernel text lives in kernels/templates");
}

TEST_F(Lint, AHeavyHeaderInAHeaderIsNamed) {
  expect_wrong("include/vesta/a.h", "#pragma once\n#include <iostream>\n", "headers do not include iostream");
}

TEST_F(Lint, SharedPointersAreNamed) {
  expect_wrong("src/core/a.cpp", "std::shared_ptr<int> p;\n", "owners are Ref or unique_ptr");
}

TEST_F(Lint, AbortingIsNamed) {
  expect_wrong("src/core/a.cpp", "void f() { std::abort(); }\n", "the library neither aborts nor exits");
}

TEST_F(Lint, AHeaderWithoutPragmaOnceIsNamed) {
  expect_wrong("src/core/a.h", "int f();\n", "a header starts with #pragma once");
}

TEST_F(Lint, AFileCalledUtilsIsNamed) {
  expect_wrong("src/core/utils.h", "#pragma once\n", "name the concept, not utils");
}

}  // namespace
}  // namespace vesta::test
