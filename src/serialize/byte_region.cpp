// Regions of bytes and tensors on top of them.
#include "serialize/byte_region.h"

#include <algorithm>
#include <cstring>

#include "base/file.h"
#include "core/storage.h"
#include "runtime/cpu/allocator.h"

namespace vesta {
namespace {

struct MapOwner : ByteOwner {
  MappedFile file;
  explicit MapOwner(const std::string& path) : file(path, MappedFile::Access::CopyOnWrite) {}
};

struct MemoryOwner : ByteOwner {
  void* block;
  size_t bytes;
  explicit MemoryOwner(size_t n) : block(cpu::allocate(n)), bytes(n) {}
  ~MemoryOwner() override { cpu::free(block, bytes); }
};

}  // namespace

ByteRegion map_region(const std::string& path) {
  auto* owner = new MapOwner(path);
  auto ref = Ref<ByteOwner>::adopt(owner);
  return {std::move(ref), owner->file.writable_data(), owner->file.bytes().size()};
}

ByteRegion allocate_region(size_t bytes) {
  auto* owner = new MemoryOwner(bytes);
  auto ref = Ref<ByteOwner>::adopt(owner);
  return {std::move(ref), static_cast<std::byte*>(owner->block), bytes};
}

ByteRegion copy_region(const void* data, size_t bytes) {
  ByteRegion region = allocate_region(bytes);
  if (bytes) std::memcpy(region.data(), data, bytes);
  return region;
}

Tensor storage_tensor(const ByteRegion& region, size_t alignment) {
  const int64_t size = int64_t(region.size());
  if (size == 0 || reinterpret_cast<uintptr_t>(region.data()) % alignment != 0) {
    Tensor copy = empty_cpu({size}, kUInt8);
    if (size) std::memcpy(copy.data_ptr(), region.data(), region.size());
    return copy;
  }
  return from_blob(
      region.data(), {size}, [owner = region.owner()](void*) {}, TensorOptions(kUInt8));
}

Tensor view_of_storage(const Tensor& storage, DType dtype, IntArrayRef sizes, IntArrayRef strides,
                       uint64_t offset_bytes) {
  Tensor view = Tensor::adopt(new_alias(storage.impl()->storage));
  TensorImpl* impl = view.impl();
  impl->dtype = dtype;
  impl->offset = int64_t(offset_bytes / element_size(dtype));
  impl->data = static_cast<std::byte*>(impl->storage->data) + offset_bytes;
  set_ndim(impl, int(sizes.size()));
  std::copy(sizes.begin(), sizes.end(), impl->sizes_data());
  std::copy(strides.begin(), strides.end(), impl->strides_data());
  refresh_facts(impl);
  return view;
}

void swap_bytes(std::byte* data, size_t bytes, DType dtype) {
  const size_t width = element_size(dtype) / (is_complex(dtype) ? 2 : 1);
  if (width < 2) return;
  for (size_t i = 0; i + width <= bytes; i += width) std::reverse(data + i, data + i + width);
}

size_t find_bad_bool(const std::byte* data, size_t bytes) {
  size_t i = 0;
  while (i < bytes && data[i] <= std::byte{1}) ++i;
  return i;
}

}  // namespace vesta
