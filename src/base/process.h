#pragma once
// Child processes: compilers and launched ranks. Started without a copy of the parent's memory (posix_spawn).
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace vesta {

struct ProcessOptions {
  std::vector<std::string> argv;  // argv[0] is looked up in PATH unless it has a slash
  std::vector<std::string>
      env;                  // "NAME=value", added to this process's environment or in place of its entries
  std::string stdout_path;  // "" = inherited; the same path for both joins the streams
  std::string stderr_path;
  bool own_group =
      true;  // signals reach the child's own children too (and ^C at the terminal does not reach the child)
};

// One child. Destroying the object kills a child that still runs and waits for it. Externally synchronised.
class Process {
 public:
  static Result<Process> start(const ProcessOptions& options);
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();

  int id() const { return id_; }
  // Waits up to timeout_ms (< 0: for ever). True when the child has ended; then exit_code() holds.
  bool wait(int64_t timeout_ms = -1);
  // The exit status, or 128 + the signal that ended it; -1 while it runs.
  int exit_code() const { return code_; }
  // hard: cannot be caught by the child. No effect on a child that has ended.
  void terminate(bool hard = false);

 private:
  Process(int id, bool own_group) : id_(id), own_group_(own_group) {}

  int id_ = 0;  // 0 = moved from
  bool own_group_ = true;
  int code_ = -1;
};

}  // namespace vesta
