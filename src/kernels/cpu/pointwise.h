#pragma once
// The eager driver of every scalar text: promotion, broadcast, allocation, and loops over staged chunks.
#include "core/registry.h"

namespace vesta::cpu {

void pointwise(const Op& op, const Value* args, Value* outs);

}  // namespace vesta::cpu
