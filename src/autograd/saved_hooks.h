#pragma once
// What a node keeps in place of a saved tensor while SavedTensorHooks are set.
#include <any>

#include "base/ref.h"
#include "vesta/autograd.h"

namespace vesta::autograd {

struct SavedTensorHooks::Functions {
  Pack pack;
  Unpack unpack;
  std::atomic<uint32_t> refs{1};
  static void destroy(Functions* f) { delete f; }
};

struct Packed {
  std::any value;
  Ref<SavedTensorHooks::Functions> hooks;
  Tensor unpack() const;
};

}  // namespace vesta::autograd
