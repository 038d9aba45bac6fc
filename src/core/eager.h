#pragma once
// The bottom of the stack for everything that is not a scalar text: kernels, views and decompositions.
#include "core/registry.h"
#include "core/tensor_ext.h"

namespace vesta {

// The eager driver for an op's block and form; null where the block defines nothing that runs.
EagerFn choose_eager(const Op& op);

// Runs the block's shape inference (or, where absent, its decomposition on meta tensors). Used by the tracer and by
// meta tensors. Fills `outs` (num_outs entries; a list result goes into `list`).
void infer_outputs(const Op& op, const Value* args, std::vector<OutMeta>& outs, std::vector<OutMeta>& list);
// What a composition or a kernel returned, as the call's result values. Numbers may come as 0-dim tensors.
void give_results(const Op& op, Results& results, Value* outs);
// A tensor without data that has this meta.
Tensor meta_tensor(const OutMeta& meta);
// A view of `base`, which must have a storage (without memory for traced tensors). It remembers its root base for
// writes under autograd.
Tensor make_view(const Op& op, TensorImpl* base, const OutMeta& meta, ViewCreation creation);
// Gives an out= tensor its result sizes; a tensor that is large enough keeps its memory.
void resize_out(const Op& op, const Tensor& out, IntArrayRef sizes);

}  // namespace vesta
