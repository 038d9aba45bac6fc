#pragma once
// StorageRef: the memory under one or more tensors, as Tensor::storage() gives it; libtorch's Storage.
#include <cstddef>

#include "vesta/device.h"
#include "vesta/tensor_impl.h"

namespace vesta {

// A counted reference: the memory stays while one is held. Empty for tensors without elements of their own (meta,
// traced): then the sizes are 0 and the pointers null.
class StorageRef {
 public:
  StorageRef() = default;
  explicit StorageRef(Storage* storage) : storage_(storage) { retain(); }
  StorageRef(const StorageRef& o) : storage_(o.storage_) { retain(); }
  StorageRef(StorageRef&& o) noexcept : storage_(o.storage_) { o.storage_ = nullptr; }
  StorageRef& operator=(StorageRef o) noexcept {
    Storage* mine = storage_;
    storage_ = o.storage_;
    o.storage_ = mine;
    return *this;
  }
  ~StorageRef();

  explicit operator bool() const { return storage_ != nullptr; }
  size_t nbytes() const { return storage_ ? size_t(storage_->bytes) : 0; }
  void* data() const { return storage_ ? storage_->data : nullptr; }
  void* mutable_data() const { return data(); }
  void* data_ptr() const { return data(); }
  Device device() const { return Device(); }
  // Tensors and references that share the memory, this one included.
  size_t use_count() const { return storage_ ? storage_->refs.load(std::memory_order_relaxed) : 0; }
  bool is_alias_of(const StorageRef& o) const { return storage_ == o.storage_; }

 private:
  void retain() {
    if (storage_) storage_->refs.fetch_add(1, std::memory_order_relaxed);
  }
  Storage* storage_ = nullptr;
};

}  // namespace vesta
