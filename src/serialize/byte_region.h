#pragma once
// Bytes of files as tensors see them: a counted owner (a private map of a file, or memory) and a window into it. Tensors
// made from a region keep its owner alive; they may be written, which never reaches the file.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/ref.h"
#include "vesta/tensor.h"

namespace vesta {

// Who gives the bytes back. Thread-safe count.
class ByteOwner {
 public:
  std::atomic<uint32_t> refs{1};
  virtual ~ByteOwner() = default;
  static void destroy(ByteOwner* owner) { delete owner; }
};

class ByteRegion {
 public:
  ByteRegion() = default;
  ByteRegion(Ref<ByteOwner> owner, std::byte* data, size_t size)
      : owner_(std::move(owner)), data_(data), size_(size) {}
  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  // `begin + size` must lie inside.
  ByteRegion slice(size_t begin, size_t size) const { return {owner_, data_ + begin, size}; }
  const Ref<ByteOwner>& owner() const { return owner_; }

 private:
  Ref<ByteOwner> owner_;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// A file, copy-on-write: pages are read when touched. IoError where it cannot be opened.
ByteRegion map_region(const std::string& path);
// Uninitialised memory, 64-byte aligned. OutOfMemory.
ByteRegion allocate_region(size_t bytes);
ByteRegion copy_region(const void* data, size_t bytes);

// A uint8 tensor [size] whose storage is the region; copied where the data are not at a multiple of `alignment`. 16 serves
// every dtype and vector loads.
Tensor storage_tensor(const ByteRegion& region, size_t alignment = 16);

// A tensor that shows elements of `storage` (a tensor from storage_tensor), starting `offset_bytes` in. The caller has
// checked that sizes and strides (in elements) stay inside, and that the place is aligned.
Tensor view_of_storage(const Tensor& storage, DType dtype, IntArrayRef sizes, IntArrayRef strides,
                       uint64_t offset_bytes);

// Turns `count` elements around in place; a complex number is two.
void swap_bytes(std::byte* data, size_t bytes, DType dtype);

// The position of the first byte that is neither 0 nor 1, or `bytes` where there is none. Any other byte in a bool is
// undefined behaviour for whoever reads it.
size_t find_bad_bool(const std::byte* data, size_t bytes);

}  // namespace vesta
