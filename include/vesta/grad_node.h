#pragma once
// What a program sees of a node of the backward graph, Tensor::grad_fn(): its name. Never owned by the program; valid as
// long as a tensor leads to it.
#include <atomic>
#include <cstdint>
#include <string>

namespace vesta {

class GradNode {
 public:
  virtual ~GradNode() = default;
  virtual std::string name() const = 0;  // "MulBackward" and the like
  std::atomic<uint32_t> refs{1};         // counted by tensors and nodes
};

}  // namespace vesta
