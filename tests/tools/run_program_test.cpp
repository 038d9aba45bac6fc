// The helpers of run_program.h do not hide a failing program.
#include "tools/run_program.h"

#include <gtest/gtest.h>

namespace vesta::test {
namespace {

TEST(RunTool, MissingProgramsHaveTheShellsStatus127) {
  EXPECT_EQ(run_tool("no_such_tool", "").exit_status, 127);
}

TEST(RunTool, ToolsWithoutArgumentsPrintTheirUsageAndFail) {
  for (const char* tool : {"layers", "embed", "bench_cmp", "buildtime"}) {
    ProgramResult result = run_tool(tool, "");
    EXPECT_EQ(result.exit_status, 2) << tool;
    EXPECT_NE(result.output.find("usage: "), std::string::npos) << tool << " printed " << result.output;
  }
}

}  // namespace
}  // namespace vesta::test
