#pragma once
// How tensors get and give back their memory. Small tensors live with their storage and elements in one block (192 +
// bytes <= 2 KiB); larger ones have an impl of 192 bytes and a data block that starts with the Storage header.
#include <functional>

#include "vesta/tensor.h"

namespace vesta {

// An impl with refs = 1, no dims set, and an uninitialised, 64-byte aligned data block for `bytes`.
TensorImpl* new_tensor(size_t bytes);
// An impl without data (a meta tensor, a traced tensor, or a view whose storage the caller sets).
TensorImpl* new_bare_tensor();
// An impl that shows `storage` (one reference is added).
TensorImpl* new_alias(Storage* storage);
// Owner of foreign memory.
Storage* new_external_storage(void* data, size_t bytes, std::function<void(void*)> deleter);
void release_storage(Storage* storage);

// Sets ndim and makes room for it; sizes and strides are undefined after it.
void set_ndim(TensorImpl* impl, int ndim);
// Computes numel and the contiguous/dense facts from sizes and strides.
void refresh_facts(TensorImpl* impl);
// The same where sizes may be symbolic (core/infer.cpp).
void symbolic_facts(TensorImpl* impl);
void set_contiguous(TensorImpl* impl, const int64_t* sizes, int ndim);
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
