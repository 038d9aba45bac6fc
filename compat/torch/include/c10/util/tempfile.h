#pragma once
// c10::make_tempfile: an empty file with a name of its own, removed with the object.
#include <stdlib.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "torch/torch.h"

namespace c10 {
struct TempFile {
  explicit TempFile(std::string path, int fd) : name(std::move(path)), fd(fd) {}
  TempFile(TempFile&& other) noexcept : name(std::move(other.name)), fd(std::exchange(other.fd, -1)) {}
  TempFile& operator=(TempFile&&) = delete;
  ~TempFile() {
    if (fd < 0) return;
    ::unlink(name.c_str());
    ::close(fd);
  }
  std::string name;
  int fd;
};
// In $TMPDIR, else /tmp. IoError where none can be made.
inline TempFile make_tempfile(const std::string& prefix = "torch-file-") {
  const char* folder = ::getenv("TMPDIR");
  std::string path = std::string(folder && *folder ? folder : "/tmp") + "/" + prefix + "XXXXXX";
  const int fd = ::mkstemp(path.data());
  VESTA_CHECK_AS(IoError, fd >= 0, "make_tempfile: cannot make ", path);
  return TempFile(std::move(path), fd);
}
}  // namespace c10
