#pragma once
// The rare parts of a tensor: gradient and hooks of leaves, retained gradients, hooks of results. And how
// core releases autograd's nodes.
#include <atomic>
#include <functional>
#include <vector>

#include "vesta/grad_node.h"
#include "vesta/tensor.h"

namespace vesta {

// Drops a reference; chains of any length are released without recursion (autograd/node.cpp).
void release_grad_node(GradNode* node);
inline GradNode* retain(GradNode* node) {
  if (node) node->refs.fetch_add(1, std::memory_order_relaxed);
  return node;
}

struct TensorHook {
  unsigned id;
  std::function<Tensor(const Tensor&)> fn;
};

// Counted: a node holds the ext of its outputs that have hooks or retain their gradient (never the tensor itself, which
// would be a cycle).
struct TensorExt {
  std::atomic<uint32_t> refs{1};
  bool retains_grad = false;  // a non-leaf whose .grad backward writes
  Tensor grad;
  Tensor tangent;                 // of forward mode, while a level is open
  std::vector<TensorHook> hooks;  // of a leaf, or of this output of grad_fn
  std::vector<std::function<void(const Tensor&)>>
      post_accumulate_hooks;  // of a leaf, after .grad was written
  unsigned next_hook_id = 0;
};

TensorExt& ensure_ext(TensorImpl* impl);
void release_ext(TensorExt* ext);

// How a view came to be; in-place writes ask (autograd/inplace.cpp).
enum class ViewCreation : uint8_t { Default, NoGrad, MultiOutput, Inference };

}  // namespace vesta
