#pragma once
// The symbols and guards of one trace. Comparisons of symbolic sizes on this thread are recorded here while it lives.
#include <string>
#include <vector>

#include "vesta/sym_int.h"

namespace vesta {

class ShapeEnv {
 public:
  ShapeEnv();
  ~ShapeEnv();
  ShapeEnv(const ShapeEnv&) = delete;
  // A new symbol for a size that is `example` in the traced call (>= 2).
  SymInt symbol(int64_t example);
  void add_guard(std::string text);
  const std::vector<std::string>& guards() const { return guards_; }

 private:
  ShapeEnv* previous_;
  std::vector<std::string> guards_;
};

}  // namespace vesta
