#pragma once
// Files beyond save and load.
#include "torch/compat/shared_modules.h"

namespace torch {
// A value as Python's torch.save writes it, in memory, and back.
inline std::vector<char> pickle_save(const vesta::IValue& value) {
  std::ostringstream out;
  vesta::save(value, out);
  const std::string text = out.str();
  return {text.begin(), text.end()};
}
}  // namespace torch
