#pragma once
// The autocast layer of the funnel: casts the floating-point tensors of a call as the op's block says.
#include "core/registry.h"

namespace vesta::autocast {

void interpret(const Op& op, const Value* args, Value* outs, uint32_t bits);

}  // namespace vesta::autocast
