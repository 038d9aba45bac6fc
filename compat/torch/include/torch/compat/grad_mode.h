#pragma once
// Gradient mode and autograd's names.
#include "torch/compat/namespaces.h"

namespace torch {
struct AutoNonVariableTypeMode {
  explicit AutoNonVariableTypeMode(bool enabled = true) : guard_(!enabled && GradMode::is_enabled()) {}

 private:
  AutoGradMode guard_;
};
}  // namespace torch
