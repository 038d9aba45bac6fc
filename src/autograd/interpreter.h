#pragma once
// The autograd layer of the call stack: records calls whose inputs require gradients.
#include "core/call.h"

namespace vesta::autograd {

void interpret(const Op& op, const Value* args, Value* outs, uint32_t bits);

}  // namespace vesta::autograd
