#pragma once
// Gradient mode and autograd's names.
#include "torch/compat/namespaces.h"

namespace torch {
struct AutoNonVariableTypeMode {
  explicit AutoNonVariableTypeMode(bool enabled = true) : guard_(!enabled && GradMode::is_enabled()) {}

 private:
  AutoGradMode guard_;
};
namespace autograd {
using Variable = vesta::Tensor;
using tensor_list = variable_list;
using edge_list = std::vector<void*>;
using vesta::AutoGradMode;
using vesta::GradMode;
}  // namespace autograd
}  // namespace torch
