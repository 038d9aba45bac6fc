#pragma once
// Where in the program a call came from: captured cheaply, turned into text only for an error message. Source lines need
// debug information (-g, -g1) and gcc's libbacktrace at build time; without them functions are named where the dynamic
// symbol table knows them.
#include <cstdint>
#include <string>
#include <vector>

namespace vesta {

// Return addresses of this thread, innermost first, without the `skip` innermost callers of this function.
std::vector<uintptr_t> capture_stack(int skip = 0, int most = 48);

struct StackFrame {
  std::string function, file;  // empty where unknown
  int line = 0;
  bool of_library = false;  // Vesta's or the standard library's
};
// Inlined functions appear as frames of their own.
std::vector<StackFrame> describe_stack(const std::vector<uintptr_t>& addresses);

// "main at train.cpp:42": the first frame that is neither Vesta's nor the standard library's. Empty where nothing is
// known.
std::string first_user_frame(const std::vector<StackFrame>& frames);

}  // namespace vesta
