#pragma once
// Forward-mode differentiation: the layer of the funnel that carries tangents along with values.
#include "core/registry.h"

namespace vesta::autograd {

void interpret_tangents(const Op& op, const Value* args, Value* outs, uint32_t bits);

}  // namespace vesta::autograd
