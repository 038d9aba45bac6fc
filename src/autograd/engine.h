#pragma once
// The backward pass. It runs on the calling thread; ready nodes are taken by highest sequence number. Gradients of a
// leaf are summed aside and written to .grad once complete, so that a pass that fails leaves each .grad old or whole.
#include "autograd/node.h"

namespace vesta::autograd {

struct BackwardOptions {
  bool retain_graph = false;
  bool create_graph = false;
  bool accumulate = true;      // into .grad of leaves; else gradients of `inputs` are returned
  std::vector<Tensor> inputs;  // empty with accumulate: every leaf
};

// Returns one gradient per input (undefined where unused) when not accumulating.
std::vector<Tensor> run_backward(const std::vector<Tensor>& roots, const std::vector<Tensor>& grad_roots,
                                 const BackwardOptions& options);

}  // namespace vesta::autograd
