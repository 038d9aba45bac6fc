// tools/layers on small made-up trees: what it accepts, and that each kind of mistake is named with file and line.
#include <gtest/gtest.h>

#include "tools/run_program.h"

namespace vesta::test {
namespace {

class Layers : public testing::Test {
 protected:
  Layers() {
    write("src/LAYERS", "base:\ncore: base  # a comment\nops: base core\nbase = error.h\n");
    write("src/base/log.h", "#pragma once\n#include <vector>\n");
    write("include/vesta/error.h", "#pragma once\n");
    write("include/vesta/tensor.h", "#pragma once\n#include <vesta/error.h>\n");
  }
  void write(const std::string& name, const std::string& text) { folder_.write(name, text); }
  ProgramResult check() { return run_tool("layers", folder_.path() + "/src/LAYERS"); }
  void expect_wrong(const std::string& message) {
    ProgramResult result = check();
    EXPECT_EQ(result.exit_status, 1);
    EXPECT_NE(result.output.find(message), std::string::npos) << result.output;
  }

  TempFolder folder_;
};

TEST_F(Layers, IncludesOfLowerFoldersAreAccepted) {
  write("src/core/tensor.cpp", "#include \"base/log.h\"\n#include <vesta/tensor.h>\n#include <cstdio>\n");
  write("src/all_ops.cpp", "#include \"base/log.h\"\n");
  ProgramResult result = check();
  EXPECT_EQ(result.exit_status, 0) << result.output;
  EXPECT_NE(result.output.find("5 files"), std::string::npos) << result.output;
}

TEST_F(Layers, AnIncludeOfAHigherFolderIsNamedWithItsLine) {
  write("src/core/tensor.h", "#pragma once\n");
  write("src/base/log.cpp", "// text\n\n  #  include \"core/tensor.h\"\n");
  expect_wrong("src/base/log.cpp:3: 'base' may not include 'core' (core/tensor.h)");
}

TEST_F(Layers, APublicHeaderCountsAsItsFolder) {
  write("src/base/log.cpp", "#include <vesta/tensor.h>\n");
  expect_wrong("src/base/log.cpp:1: 'base' may not include 'core' (vesta/tensor.h)");
}

TEST_F(Layers, APublicHeaderMayNotIncludeAHigherOne) {
  write("include/vesta/error.h", "#pragma once\n#include <vesta/tensor.h>\n");
  write("include/vesta/tensor.h", "#pragma once\n");
  expect_wrong("include/vesta/error.h:2: 'base' may not include 'core'");
}

TEST_F(Layers, GeneratedPublicHeadersBelongToCore) {
  write("src/ops/pointwise.cpp", "#include <vesta/gen/ops_pointwise.h>\n");
  EXPECT_EQ(check().exit_status, 0);
  write("src/base/log.cpp", "#include <vesta/gen/ops_pointwise.h>\n");
  expect_wrong("'base' may not include 'core'");
}

TEST_F(Layers, ACycleOfThreeFilesIsPrintedOnce) {
  write("src/core/a.h", "#include \"core/b.h\"\n");
  write("src/core/b.h", "#include \"core/c.h\"\n");
  write("src/core/c.h", "#include \"core/a.h\"\n");
  expect_wrong("include cycle: core/a.h -> core/b.h -> core/c.h -> core/a.h");
  EXPECT_NE(check().output.find("layers: 1 wrong"), std::string::npos);
}

TEST_F(Layers, AFolderWithoutALineIsNamed) {
  write("src/extra/x.cpp", "");
  expect_wrong("src/extra/x.cpp:1: folder 'extra' has no line");
}

TEST_F(Layers, APublicHeaderWithoutAFolderIsCores) {
  write("include/vesta/extra.h", "");
  write("src/core/x.cpp", "#include <vesta/extra.h>\n");
  EXPECT_EQ(check().exit_status, 0);
  write("src/base/log.cpp", "#include <vesta/extra.h>\n");
  expect_wrong("src/base/log.cpp:1: 'base' may not include 'core' (vesta/extra.h)");
}

TEST_F(Layers, AnInnerFolderMayHaveARuleOfItsOwn) {
  write("src/LAYERS", "base:\nops/text:\ncore: base ops/text\nops: base core ops/text\nbase = error.h\n");
  write("src/ops/text/cpp/prelude.h", "");
  write("src/ops/inner/add.h", "");
  write("src/core/loop.cpp", "#include \"ops/text/cpp/prelude.h\"\n");
  EXPECT_EQ(check().exit_status, 0) << check().output;
  write("src/core/loop.cpp", "#include \"ops/inner/add.h\"\n");
  expect_wrong("'core' may not include 'ops' (ops/inner/add.h)");
}

TEST_F(Layers, AnIncludeRelativeToItsOwnFolderIsNamed) {
  write("src/core/shape.h", "#pragma once\n");
  write("src/core/shape.cpp", "#include \"shape.h\"\n");
  expect_wrong("src/core/shape.cpp:1: \"shape.h\": write it from src/ on: \"core/shape.h\"");
}

TEST_F(Layers, RulesThatPointUpAreRefused) {
  write("src/LAYERS", "base: core\ncore: base\nbase = error.h\ncore = tensor.h\n");
  expect_wrong("LAYERS:1: 'core' has no line above");
}

TEST_F(Layers, AMissingRulesFileIsAnError) {
  ProgramResult result = run_tool("layers", folder_.path() + "/nothing/LAYERS");
  EXPECT_EQ(result.exit_status, 1);
  EXPECT_NE(result.output.find("cannot be read"), std::string::npos) << result.output;
}

}  // namespace
}  // namespace vesta::test
