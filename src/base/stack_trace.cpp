#include "base/stack_trace.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#ifdef VESTA_LIBBACKTRACE
#include <backtrace.h>
#endif

namespace vesta {
namespace {

std::string demangled(const char* name) {
  if (!name) return "";
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string result = status == 0 && text ? text : name;
  std::free(text);
  return result;
}

bool starts_with_library(std::string_view name) {
  return name.starts_with("vesta::") || name.starts_with("std::") || name.starts_with("__gnu_cxx::");
}
bool is_library_function(std::string_view name) {
  // Return types of templates come first: "void vesta::..." and "auto std::...".
  size_t space = name.find(' ');
  return starts_with_library(name) || (space < name.find('(') && starts_with_library(name.substr(space + 1)));
}
// Headers: their functions are inlined into the caller's.
bool is_library_file(std::string_view path) {
  return path.find("include/vesta/") != path.npos || path.find("/include/c++/") != path.npos;
}

StackFrame from_dynamic_symbols(uintptr_t address) {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<void*>(address), &info)) return {};
  std::string function = demangled(info.dli_sname);
  bool of_library = is_library_function(function);
  return {std::move(function), info.dli_fname ? info.dli_fname : "", 0, of_library};
}

#ifdef VESTA_LIBBACKTRACE
// Never freed: libbacktrace has no call for it. Reads the debug information once.
backtrace_state* symbols() {
  static backtrace_state* state = backtrace_create_state(
      nullptr, 1, [](void*, const char*, int) {}, nullptr);
  return state;
}

void add_frames(uintptr_t address, std::vector<StackFrame>& frames) {
  if (!symbols()) return;
  auto ignore = [](void*, const char*, int) {};
  // Inlined functions have bare names, so the enclosing symbol says whose code this is.
  std::string symbol;
  backtrace_syminfo(
      symbols(), address,
      [](void* to, uintptr_t, const char* name, uintptr_t, uintptr_t) {
        *static_cast<std::string*>(to) = demangled(name);
      },
      ignore, &symbol);
  size_t before = frames.size();
  backtrace_pcinfo(
      symbols(), address,
      [](void* to, uintptr_t, const char* file, int line, const char* function) {
        if (file || function)
          static_cast<std::vector<StackFrame>*>(to)->push_back(
              {demangled(function), file ? file : "", line, false});
        return 0;
      },
      ignore, &frames);
  for (size_t k = before; k < frames.size(); ++k)
    frames[k].of_library = is_library_function(symbol) || is_library_function(frames[k].function) ||
                           is_library_file(frames[k].file);
}
#endif

}  // namespace

std::vector<uintptr_t> capture_stack(int skip, int most) {
  void* frames[64];
  int drop = skip + 1;  // this function
  int n = ::backtrace(frames, std::min<int>(64, most + drop));
  std::vector<uintptr_t> addresses;
  // A return address is after its call: one byte back is inside of it.
  for (int i = drop; i < n; ++i) addresses.push_back(reinterpret_cast<uintptr_t>(frames[i]) - 1);
  return addresses;
}

std::vector<StackFrame> describe_stack(const std::vector<uintptr_t>& addresses) {
  std::vector<StackFrame> frames;
  for (uintptr_t a : addresses) {
    size_t before = frames.size();
#ifdef VESTA_LIBBACKTRACE
    add_frames(a, frames);
#endif
    if (frames.size() == before) frames.push_back(from_dynamic_symbols(a));
  }
  return frames;
}

std::string first_user_frame(const std::vector<StackFrame>& frames) {
  for (auto& f : frames) {
    if (f.function.empty() || f.of_library) continue;
    std::string text = f.function.substr(0, f.function.find('('));
    if (f.line) return text + " at " + f.file + ":" + std::to_string(f.line);
    return f.file.empty() ? text : text + " in " + f.file;
  }
  return "";
}

}  // namespace vesta
