#pragma once
// Shared libraries opened at run time (drivers, vendor libraries, plug-ins). Absence is normal, so it is a Result.
#include <type_traits>

#include "base/result.h"

namespace vesta {

// A handle, copied freely. Never closed: drivers leave threads and exit handlers behind that would crash after unloading.
class Library {
 public:
  // A file name for the system's search ("libcuda.so.1") or a path. The failure names both.
  static Result<Library> open(const std::string& name);

  // Library::symbol<int(const char*)>("puts"): a pointer to the function.
  template <class Function>
  requires std::is_function_v<Function> Result<Function*> symbol(const std::string& symbol_name)
  const {
    Result<void*> found = find(symbol_name);
    if (!found) return Failure{found.error()};
    return reinterpret_cast<Function*>(*found);
  }
  const std::string& name() const { return name_; }

 private:
  Library(std::string name, void* handle) : name_(std::move(name)), handle_(handle) {}
  Result<void*> find(const std::string& symbol_name) const;

  std::string name_;
  void* handle_;
};

}  // namespace vesta
