#pragma once
// The one tensor class behind Tensor: shape, type and data pointer in 192 bytes, with its Storage and, for small
// tensors, the elements in the same block. Layout and rules: docs/ARCHITECTURE.md, "Tensor".
#include <atomic>
#include <cstdint>

#include "vesta/dtype.h"

namespace vesta {

class GradNode;
struct TensorExt;
struct TensorImpl;

// The elements of one or more tensors. Thread-safe counts; the elements themselves are externally synchronised.
struct Storage {
  std::atomic<uint32_t> refs;
  uint32_t version;  // bumped by each in-place write through any view
  void* data;
  uint64_t bytes;
  uint64_t owner;  // how to free: see core/storage.h
};

// A view remembers its base, so that a write through the view reaches the base's gradient (autograd/inplace.cpp).
struct ViewInfo {
  TensorImpl* base;       // owned reference; never itself a view
  uint32_t grad_version;  // storage version at which grad_fn was made; older means: regenerate
  uint8_t creation;       // ViewCreation
  uint8_t spare[19];
};

struct alignas(64) TensorImpl {
  static constexpr int kInlineDims = 6;
  // Interpreters that must see a call with this tensor; the lowest set bit runs first. `call` masks these.
  static constexpr uint32_t kProfile = 1, kVmap = 2, kTangent = 4, kAutocast = 8, kAutograd = 16, kShard = 32,
                            kTrace = 64;
  static constexpr uint32_t kInterpreters = 127;
  // Cached facts.
  static constexpr uint32_t kContiguous = 1u << 8, kDense = 1u << 9, kView = 1u << 10, kConj = 1u << 11,
                            kNeg = 1u << 12, kInference = 1u << 13, kRetainsGrad = 1u << 14,
                            kEmbedded = 1u << 15, kHasData = 1u << 16;

  std::atomic<uint32_t> refs;
  DType dtype;
  uint8_t device;  // Device::packed
  uint8_t ndim;
  uint8_t size_class;  // of this block
  uint32_t bits;
  uint32_t output_nr;  // which output of grad_fn
  void* data;          // storage->data + offset, ready to use; null for meta and traced tensors
  int64_t numel;
  Storage* storage;  // null for meta and traced tensors
  GradNode* grad_fn;
  TensorExt* ext;  // gradient, hooks and other things that few tensors have
  int64_t offset;  // elements from the start of storage
  int64_t inline_sizes[kInlineDims],
      inline_strides[kInlineDims];  // more dims: inline_sizes[0] points to 2 * ndim
  union {
    Storage own;    // used by a tensor that made its storage (kEmbedded)
    ViewInfo view;  // used by a view (kView)
  };

  int64_t* sizes_data() {
    return ndim <= kInlineDims ? inline_sizes : reinterpret_cast<int64_t*>(inline_sizes[0]);
  }
  int64_t* strides_data() {
    return ndim <= kInlineDims ? inline_strides : reinterpret_cast<int64_t*>(inline_sizes[0]) + ndim;
  }
  bool contiguous() const { return bits & kContiguous; }
};

namespace detail {
// Destroys the impl when the last reference goes. With one reference left nobody else can reach it (there are no weak
// references), so the locked decrement is skipped.
void destroy(TensorImpl* impl);
inline void release(TensorImpl* impl) {
  if (impl->refs.load(std::memory_order_acquire) == 1 ||
      impl->refs.fetch_sub(1, std::memory_order_acq_rel) == 1)
    destroy(impl);
}
[[noreturn]] void throw_undefined();
void check_data_type(const TensorImpl* impl, DType wanted);
void check_accessor(const TensorImpl* impl, int dims);
}  // namespace detail

}  // namespace vesta
