#pragma once
// How tensors get and give back their memory. Small tensors live with their storage and elements in one block (192 +
// bytes <= 2 KiB); larger ones have an impl of 192 bytes and a data block that starts with the Storage header.
#include <algorithm>
#include <functional>

#include "base/checked_math.h"
#include "core/thread_state.h"
#include "runtime/cpu/allocator.h"
#include "vesta/tensor.h"

namespace vesta {

// An impl with refs = 1, no dims set, and an uninitialised, 64-byte aligned data block for `bytes`.
TensorImpl* new_tensor(size_t bytes);
// Everything up to the dims but data and storage, by assignments: gcc calls memset where it is told to clear. Nobody else
// knows the block yet, so refs is a plain store.
inline void init_impl(TensorImpl* impl) {
  impl->refs.store(1, std::memory_order_relaxed);
  impl->dtype = DType(0);
  impl->device = impl->ndim = impl->size_class = 0;
  impl->bits = thread_state.inference_mode ? TensorImpl::kInference : 0;
  impl->output_nr = 0;
  impl->numel = 0;
  impl->grad_fn = nullptr;
  impl->ext = nullptr;
  impl->offset = 0;
}
// An impl without data (a meta tensor, a traced tensor, or a view whose storage the caller sets).
inline TensorImpl* new_bare_tensor() {
  auto* impl = static_cast<TensorImpl*>(cpu::allocate(sizeof(TensorImpl)));
  init_impl(impl);
  impl->data = nullptr;
  impl->storage = nullptr;
  return impl;
}
// An impl that shows `storage` (one reference is added).
inline TensorImpl* new_alias(Storage* storage) {
  TensorImpl* impl = new_bare_tensor();
  if (storage) {
    storage->refs.fetch_add(1, std::memory_order_relaxed);
    impl->storage = storage;
    impl->data = storage->data;
    impl->bits |= TensorImpl::kHasData;
  }
  return impl;
}
// Owner of foreign memory.
Storage* new_external_storage(void* data, size_t bytes, std::function<void(void*)> deleter);
void release_storage(Storage* storage);

// Sets ndim and makes room for it; sizes and strides are undefined after it.
void set_ndim(TensorImpl* impl, int ndim);
// Computes numel and the contiguous/dense facts from sizes and strides.
void refresh_facts(TensorImpl* impl);
// The same where sizes may be symbolic (core/infer.cpp).
void symbolic_facts(TensorImpl* impl);
inline void set_contiguous(TensorImpl* impl, const int64_t* sizes, int ndim) {
  int64_t *own = impl->inline_sizes, *strides = impl->inline_strides;
  if (std::max<int>(ndim, impl->ndim) <= TensorImpl::kInlineDims) [[likely]] {
    impl->ndim = uint8_t(ndim);
  } else {
    set_ndim(impl, ndim);
    own = impl->sizes_data();
    strides = impl->strides_data();
  }
  int64_t step = 1, numel = 1;
  for (int d = ndim - 1; d >= 0; --d) {
    own[d] = sizes[d];
    strides[d] = step;
    step = wrapping_mul(step, sizes[d] > 1 ? sizes[d] : 1);
    numel = wrapping_mul(numel, sizes[d]);
  }
  impl->numel = numel;
  impl->bits |= TensorImpl::kContiguous | TensorImpl::kDense;
}
void contiguous_strides(const int64_t* sizes, int ndim, int64_t* strides);

// A fresh CPU tensor, contiguous; the fast path of kernels and of tests.
Tensor empty_cpu(IntArrayRef sizes, DType dtype);
// Another impl with the same storage, sizes and type, outside of autograd: no grad_fn, no requires_grad, not a view.
Tensor shallow_alias(TensorImpl* t);
inline Tensor shallow_alias(const Tensor& t) { return shallow_alias(t.impl()); }
// One slot per hash of a storage: pointer << 16 | op id. Best effort, for messages only.
extern std::atomic<uint64_t> last_writers[256];
// Counts an in-place write by op `op_id`, and remembers it for the message of a failed version check.
inline void bump_version(TensorImpl* impl, uint16_t op_id) {
  Storage* s = impl->storage;
  if (!s) return;
  ++s->version;
  auto key = reinterpret_cast<uintptr_t>(s);
  last_writers[key >> 6 & 255].store(uint64_t(key) << 16 | op_id, std::memory_order_relaxed);
}
// " by add_.Tensor", or empty where it is no longer known.
std::string last_in_place_op(const Storage* s);

}  // namespace vesta
