// Allocation, aliasing and release of TensorImpl and Storage.
#include "core/storage.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/checked_math.h"
#include "core/registry.h"
#include "core/tensor_ext.h"
#include "core/thread_state.h"
#include "runtime/cpu/allocator.h"

namespace vesta {
namespace {

// Storage::owner: the low two bits say where the header lives, the rest how to free it.
enum : uint64_t { kOwnBlock = 0, kInsideImpl = 1, kExternal = 2, kKindMask = 3 };

constexpr size_t kOneBlockLimit = 2048;
constexpr size_t kHeaderBytes = 64;  // keeps the elements 64-byte aligned

struct ExternalOwner {
  std::function<void(void*)> deleter;
};

TensorImpl* impl_of(Storage* storage) {
  return reinterpret_cast<TensorImpl*>(reinterpret_cast<char*>(storage) - offsetof(TensorImpl, own));
}

void free_impl_block(TensorImpl* impl, size_t bytes) { cpu::free(impl, bytes); }

size_t embedded_block_bytes(const Storage* s) { return sizeof(TensorImpl) + s->bytes; }

}  // namespace

TensorImpl* new_tensor(size_t bytes) {
  if (sizeof(TensorImpl) + bytes <= kOneBlockLimit) {
    auto* impl = static_cast<TensorImpl*>(cpu::allocate(sizeof(TensorImpl) + bytes));
    init_impl(impl);
    Storage& s = impl->own;
    s.refs.store(1, std::memory_order_relaxed);
    s.version = 0;
    s.bytes = bytes;
    s.owner = kInsideImpl;
    s.data = impl + 1;
    impl->storage = &s;
    impl->data = s.data;
    impl->bits |= TensorImpl::kEmbedded | TensorImpl::kHasData;
    return impl;
  }
  size_t total = checked_add<size_t>(bytes, kHeaderBytes, "tensor size in bytes");
  char* block = static_cast<char*>(cpu::allocate(total));
  auto* s = new (block) Storage{};
  s->refs.store(1, std::memory_order_relaxed);
  s->bytes = bytes;
  s->owner = kOwnBlock;
  s->data = block + kHeaderBytes;
  TensorImpl* impl;
  try {
    impl = new_bare_tensor();
  } catch (...) {
    cpu::free(block, total);
    throw;
  }
  impl->storage = s;
  impl->data = s->data;
  impl->bits |= TensorImpl::kHasData;
  return impl;
}

Storage* new_external_storage(void* data, size_t bytes, std::function<void(void*)> deleter) {
  auto* s = static_cast<Storage*>(cpu::allocate(sizeof(Storage)));
  new (s) Storage{};
  s->refs.store(1, std::memory_order_relaxed);
  s->bytes = bytes;
  s->data = data;
  auto* owner = new ExternalOwner{std::move(deleter)};
  s->owner = reinterpret_cast<uint64_t>(owner) | kExternal;
  return s;
}

void release_storage(Storage* s) {
  if (s->refs.load(std::memory_order_acquire) != 1 && s->refs.fetch_sub(1, std::memory_order_acq_rel) != 1)
    return;
  switch (s->owner & kKindMask) {
    case kInsideImpl:  // the impl died before: its block goes with the last user of its storage
      free_impl_block(impl_of(s), embedded_block_bytes(s));
      break;
    case kExternal: {
      auto* owner = reinterpret_cast<ExternalOwner*>(s->owner & ~uint64_t(kKindMask));
      void* data = s->data;
      cpu::free(s, sizeof(Storage));
      if (owner->deleter) owner->deleter(data);
      delete owner;
      break;
    }
    default:
      cpu::free(s, s->bytes + kHeaderBytes);
  }
}

void detail::destroy(TensorImpl* impl) {
  // A small tensor that nothing else knows of.
  if ((impl->bits & (TensorImpl::kEmbedded | TensorImpl::kView)) == TensorImpl::kEmbedded && !impl->grad_fn &&
      !impl->ext && impl->storage == &impl->own && impl->ndim <= TensorImpl::kInlineDims &&
      impl->own.refs.load(std::memory_order_acquire) == 1)
    return free_impl_block(impl, embedded_block_bytes(&impl->own));
  if (impl->grad_fn) release_grad_node(impl->grad_fn);
  if (impl->ext) release_ext(impl->ext);
  if (impl->ndim > TensorImpl::kInlineDims)
    cpu::free(reinterpret_cast<void*>(impl->inline_sizes[0]), size_t(impl->ndim) * 16);
  if (impl->bits & TensorImpl::kView) release(impl->view.base);
  Storage* s = impl->storage;
  if (impl->bits & TensorImpl::kEmbedded) {
    release_storage(&impl->own);  // frees the block too
    if (s != &impl->own && s) release_storage(s);
    return;
  }
  free_impl_block(impl, sizeof(TensorImpl));
  if (s) release_storage(s);
}

std::atomic<uint64_t> last_writers[256];

std::string last_in_place_op(const Storage* s) {
  auto key = reinterpret_cast<uintptr_t>(s);
  uint64_t v = last_writers[key >> 6 & 255].load(std::memory_order_relaxed);
  return v >> 16 == key ? " by " + op_of(uint16_t(v)).name : "";
}

void set_ndim(TensorImpl* impl, int ndim) {
  VESTA_CHECK(ndim <= 64, "tensor: expected at most 64 dims, got ", ndim);
  int old = impl->ndim;
  if (ndim == old && old <= TensorImpl::kInlineDims) return;
  if (old > TensorImpl::kInlineDims)
    cpu::free(reinterpret_cast<void*>(impl->inline_sizes[0]), size_t(old) * 16);
  impl->ndim = 0;
  if (ndim > TensorImpl::kInlineDims)
    impl->inline_sizes[0] = reinterpret_cast<int64_t>(cpu::allocate(size_t(ndim) * 16));
  impl->ndim = uint8_t(ndim);
}

void contiguous_strides(const int64_t* sizes, int ndim, int64_t* strides) {
  int64_t step = 1;
  for (int d = ndim - 1; d >= 0; --d) {
    strides[d] = step;
    step *= sizes[d] > 1 ? sizes[d] : 1;
  }
}

namespace {

// Whether the elements fill a block without gaps or overlap, in some order of dims.
bool is_dense(const int64_t* sizes, const int64_t* strides, int ndim) {
  int order[64], n = 0;
  for (int d = 0; d < ndim; ++d)
    if (sizes[d] != 1) {
      int at = n++;
      while (at > 0 && strides[order[at - 1]] > strides[d]) {
        order[at] = order[at - 1];
        --at;
      }
      order[at] = d;
    }
  int64_t expected = 1;
  for (int k = 0; k < n; ++k) {
    if (strides[order[k]] != expected) return false;
    expected = wrapping_mul(expected, sizes[order[k]]);
  }
  return true;
}

}  // namespace

void refresh_facts(TensorImpl* impl) {
  const int64_t* sizes = impl->sizes_data();
  const int64_t* strides = impl->strides_data();
  int64_t numel = 1, expected = 1;
  bool contiguous = true;
  for (int d = impl->ndim - 1; d >= 0; --d) {
    numel = wrapping_mul(numel, sizes[d]);
    if (sizes[d] != 1) {
      contiguous &= strides[d] == expected;
      expected = wrapping_mul(expected, sizes[d]);
    }
  }
  contiguous |= numel == 0;
  impl->numel = numel;
  impl->bits &= ~(TensorImpl::kContiguous | TensorImpl::kDense);
  if (contiguous)
    impl->bits |= TensorImpl::kContiguous | TensorImpl::kDense;
  else if (is_dense(sizes, strides, impl->ndim))
    impl->bits |= TensorImpl::kDense;
}

Tensor empty_cpu(IntArrayRef sizes, DType dtype) {
  int64_t numel = checked_numel({sizes.data(), sizes.size()}, "empty");
  int64_t bytes = checked_mul<int64_t>(numel, int64_t(element_size(dtype)), "empty");
  TensorImpl* impl = new_tensor(size_t(bytes));
  impl->dtype = dtype;
  set_contiguous(impl, sizes.data(), int(sizes.size()));
  return Tensor::adopt(impl);
}

Tensor shallow_alias(TensorImpl* from) {
  TensorImpl* impl = new_alias(from->storage);
  impl->dtype = from->dtype;
  impl->device = from->device;
  impl->data = from->data;
  impl->offset = from->offset;
  impl->numel = from->numel;
  if (from->ndim <= TensorImpl::kInlineDims) {
    std::memcpy(impl->inline_sizes, from->inline_sizes, sizeof(impl->inline_sizes) * 2);
    impl->ndim = from->ndim;
  } else {
    set_ndim(impl, from->ndim);
    std::memcpy(impl->sizes_data(), from->sizes_data(), size_t(from->ndim) * 16);
  }
  constexpr uint32_t kept = TensorImpl::kContiguous | TensorImpl::kDense | TensorImpl::kConj |
                            TensorImpl::kNeg | TensorImpl::kInference | TensorImpl::kHasData |
                            TensorImpl::kTrace;
  impl->bits = from->bits & kept;
  return Tensor::adopt(impl);
}

}  // namespace vesta
