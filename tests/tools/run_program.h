#pragma once
// Runs one of the build's tools, which lie beside the test program, and keeps what it printed.
#include <string>
#include "support/temp_folder.h"

namespace vesta::test {

struct ProgramResult {
  int exit_status;     // -1 if a signal ended it
  std::string output;  // stdout and stderr
};

// A line for the shell.
ProgramResult run_command(const std::string& command);
// `arguments` is a line for the shell; paths made by TempFolder need no quotes.
ProgramResult run_tool(const std::string& tool, const std::string& arguments);

}  // namespace vesta::test
