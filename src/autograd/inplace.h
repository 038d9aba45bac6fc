#pragma once
// In-place writes under autograd: the checks before the call, and the new history after it. The semantics are
// libtorch's (operators.md 6.7): a write through a view gives its base a CopySlices node.
#include "autograd/node.h"

namespace vesta::autograd {

// Throws where t may not be written: a leaf that requires grad, a view of one, a view made by a multi-output op.
void check_in_place(const std::string& name, const Tensor& t);
inline void check_in_place(const Op& op, const Tensor& t) { check_in_place(op.name, t); }
// t was overwritten by the call that `node` records as output `output_nr`.
void rebase_history(const Tensor& t, Node* node, uint32_t output_nr);
// The node of a view whose base was written since: a fresh AsStrided node on the base.
void refresh_view(TensorImpl* view);

}  // namespace vesta::autograd
