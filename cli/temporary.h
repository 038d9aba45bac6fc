#pragma once
// Scratch files and folders of the benches: in /tmp, gone when the object is.
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "vesta/error.h"

namespace vesta::cli {

struct TemporaryFile {
  TemporaryFile() {
    int fd = mkstemp(name.data());
    VESTA_CHECK_AS(IoError, fd >= 0, "bench: cannot make a file in /tmp");
    close(fd);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  ~TemporaryFile() { unlink(name.c_str()); }
  std::string name = "/tmp/vesta_bench_XXXXXX";
};

struct TemporaryFolder {
  TemporaryFolder() { VESTA_CHECK_AS(IoError, mkdtemp(name.data()), "bench: cannot make a folder in /tmp"); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(name, ignored);
  }
  std::string name = "/tmp/vesta_bench_XXXXXX";
};

}  // namespace vesta::cli
