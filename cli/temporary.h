#pragma once
// Scratch files and folders of the benches: in TMPDIR, else /tmp; gone when the object is.
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "vesta/error.h"

namespace vesta::cli {

// What mkstemp and mkdtemp fill in.
inline std::string temporary_name() {
  return (std::filesystem::temp_directory_path() / "vesta_bench_XXXXXX").string();
}

struct TemporaryFile {
  TemporaryFile() {
    int fd = mkstemp(name.data());
    VESTA_CHECK_AS(IoError, fd >= 0, "bench: cannot make the file ", name);
    close(fd);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (!kept) unlink(name.c_str());
  }
  std::string name = temporary_name();
  bool kept = false;  // set it to leave the file to the user
};

struct TemporaryFolder {
  TemporaryFolder() { VESTA_CHECK_AS(IoError, mkdtemp(name.data()), "bench: cannot make the folder ", name); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(name, ignored);
  }
  std::string name = temporary_name();
};

}  // namespace vesta::cli
