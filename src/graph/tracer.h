#pragma once
// The tracer: the interpreter at the bottom of the stack that records calls instead of running them. Autograd stands
// above it, so a backward pass inside the traced function is recorded as part of the same graph.
#include <functional>

#include "core/call.h"
#include "graph/graph.h"

namespace vesta::graph {

struct TraceOptions {
  // dynamic[i]: dims of input i whose size becomes a symbol (sizes of 0 and 1 are specialised all the same).
  std::vector<std::vector<int>> dynamic;
};

// Runs fn once with stand-ins for `inputs` and records what it does. Nothing is executed: captured tensors, versions,
// .grad and generators are afterwards as before, also when fn throws. Reading a value (item, data_ptr) throws.
Graph trace(const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& fn,
            const std::vector<Tensor>& inputs, const TraceOptions& options = {});

// For init().
void interpret(const Op& op, const Value* args, Value* outs, uint32_t bits);

}  // namespace vesta::graph
