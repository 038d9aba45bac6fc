// tools/buildtime on a made-up log of Ninja.
#include <gtest/gtest.h>

#include "tools/run_program.h"

namespace vesta::test {
namespace {

// A cold build of 9 s, then b.o again in a second run; two outputs of one command.
constexpr const char* kLog =
    "# ninja log v5\n"
    "0\t4000\t1\ta.o\taa\n"
    "10\t6000\t1\tb.o\tbb\n"
    "6000\t9000\t1\tgen.S\tcc\n"
    "6000\t9000\t1\tgen.h\tcc\n"
    "0\t1500\t2\tb.o\tbb\n";

TEST(Buildtime, CountsEachCommandOnceWithItsLastTime) {
  TempFolder folder;
  folder.write(".ninja_log", kLog);
  EXPECT_EQ(run_tool("buildtime", folder.path()).output,
            "longest run 9.0 s, 3 outputs, 8.5 s of work; the slowest:\n"
            "     4.0 s  a.o\n     3.0 s  gen.S\n     1.5 s  b.o\n");
}

TEST(Buildtime, ASubstringSelectsOutputs) {
  TempFolder folder;
  folder.write(".ninja_log", kLog);
  EXPECT_EQ(run_tool("buildtime", folder.path() + " b.o").output,
            "longest run 9.0 s, 1 outputs, 1.5 s of work; the slowest:\n     1.5 s  b.o\n");
}

TEST(Buildtime, AFolderWithoutALogIsNamed) {
  TempFolder folder;
  ProgramResult result = run_tool("buildtime", folder.path());
  EXPECT_EQ(result.exit_status, 1);
  EXPECT_NE(result.output.find("cannot read " + folder.path() + "/.ninja_log"), std::string::npos)
      << result.output;
}

}  // namespace
}  // namespace vesta::test
