#pragma once
// What the code of a documentation page runs in: a folder of its own as the working directory, a fixed seed, errors as
// failures that name the page's line.
#include <gtest/gtest.h>

#include <filesystem>

#include "support/temp_folder.h"
#include "vesta/ops.h"

namespace vesta::docs_test {

class Docs : public test::FolderTest {
 protected:
  void SetUp() override {
    before_ = std::filesystem::current_path();
    std::filesystem::current_path(folder_);
  }
  void TearDown() override { std::filesystem::current_path(before_); }

  static void run(void (*snippet)(), const char* file, int line) {
    manual_seed(0);  // as `vesta ops --reference` did when it tried the example
    try {
      snippet();
    } catch (const std::exception& e) {
      ADD_FAILURE() << file << ":" << line << ": " << e.what();
    }
  }

 private:
  std::filesystem::path before_;
};

}  // namespace vesta::docs_test
