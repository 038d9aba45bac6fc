#pragma once
// A folder that goes away with its files, and a fixture whose tests have one each.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace vesta::test {

class TempFolder {
 public:
  TempFolder() : path_(testing::TempDir() + "vesta_test_XXXXXX") {
    if (!mkdtemp(path_.data())) throw std::runtime_error("mkdtemp failed: " + path_);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  // Writes a file, and the folders above it; returns its path.
  std::string write(const std::string& name, const std::string& text) const {
    std::filesystem::path file = std::filesystem::path(path_) / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream out(file, std::ios::binary);
    out << text;
    out.close();
    if (!out) throw std::runtime_error("cannot write " + file.string());
    return file.string();
  }

 private:
  std::string path_;
};

class FolderTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

 private:
  const TempFolder owner_;

 protected:
  const std::string& folder_ = owner_.path();
};

}  // namespace vesta::test
