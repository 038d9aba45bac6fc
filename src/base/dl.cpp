// Shared libraries on top of prim/io.h.
#include "base/dl.h"

#include "base/prim/io.h"

namespace vesta {

Result<Library> Library::open(const std::string& name) {
  std::string error;
  void* handle = prim::open_library(name.c_str(), &error);
  if (!handle) return Failure{"open library '" + name + "': " + error};
  return Library(name, handle);
}

Result<void*> Library::find(const std::string& symbol_name) const {
  void* found = prim::library_symbol(handle_, symbol_name.c_str());
  if (!found) return Failure{"library '" + name_ + "' has no symbol '" + symbol_name + "'"};
  return found;
}

}  // namespace vesta
