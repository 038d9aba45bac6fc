// popen, so that a tool runs as ./dev and CMake run it: by its own main, with its exit status.
#include "tools/run_program.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace fs = std::filesystem;

namespace vesta::test {

ProgramResult run_command(const std::string& command) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (!pipe) throw std::runtime_error("popen failed: " + command);
  ProgramResult result{-1, ""};
  char buffer[4096];
  while (size_t got = fread(buffer, 1, sizeof buffer, pipe)) result.output.append(buffer, got);
  int status = pclose(pipe);
  if (WIFEXITED(status)) result.exit_status = WEXITSTATUS(status);
  return result;
}

ProgramResult run_tool(const std::string& tool, const std::string& arguments) {
  fs::path program = fs::read_symlink("/proc/self/exe").parent_path() / tool;
  return run_command("'" + program.string() + "' " + arguments);
}

}  // namespace vesta::test
