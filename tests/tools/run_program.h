#pragma once
// Runs one of the build's tools, which lie beside the test program, and keeps what it printed.
#include <string>

namespace vesta::test {

struct ProgramResult {
  int exit_status;     // -1 if a signal ended it
  std::string output;  // stdout and stderr
};

// A line for the shell.
ProgramResult run_command(const std::string& command);
// `arguments` is a line for the shell; paths made by TempFolder need no quotes.
ProgramResult run_tool(const std::string& tool, const std::string& arguments);

// A new folder, removed with all it holds.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  // Writes a file and the folders above it; returns its full path.
  std::string write(const std::string& name, const std::string& text) const;

 private:
  std::string path_;
};

}  // namespace vesta::test
