#pragma once
// What a new tensor should be: dtype, device, requires_grad. Built from any of its parts, as in libtorch:
//   zeros({2, 3}, kFloat64);  zeros({2, 3}, dtype(kInt64).device(kCPU));  randn({4}, requires_grad());
#include <optional>

#include "vesta/device.h"
#include "vesta/dtype.h"

namespace vesta {

class TensorOptions {
 public:
  TensorOptions() = default;
  TensorOptions(DType t) : dtype_(t) {}                 // NOLINT: implicit as in libtorch, here and below
  TensorOptions(Device d) : device_(d) {}               // NOLINT
  TensorOptions(DeviceType d) : device_(Device(d)) {}   // NOLINT
  TensorOptions(Layout l) : layout_(l) {}               // NOLINT
  TensorOptions(MemoryFormat f) : memory_format_(f) {}  // NOLINT

  [[nodiscard]] TensorOptions dtype(std::optional<DType> t) const {
    auto o = *this;
    o.dtype_ = t;
    return o;
  }
  [[nodiscard]] TensorOptions device(std::optional<Device> d) const {
    auto o = *this;
    o.device_ = d;
    return o;
  }
  [[nodiscard]] TensorOptions layout(std::optional<Layout> l) const {
    auto o = *this;
    o.layout_ = l;
    return o;
  }
  [[nodiscard]] TensorOptions requires_grad(bool r) const {
    auto o = *this;
    o.requires_grad_ = r;
    return o;
  }
  [[nodiscard]] TensorOptions pinned_memory(bool p = true) const {
    auto o = *this;
    o.pinned_ = p;
    return o;
  }
  [[nodiscard]] TensorOptions memory_format(std::optional<MemoryFormat> f) const {
    auto o = *this;
    o.memory_format_ = f;
    return o;
  }

  DType dtype() const { return dtype_.value_or(get_default_dtype()); }
  Device device() const { return device_.value_or(Device()); }
  bool requires_grad() const { return requires_grad_; }
  std::optional<DType> dtype_opt() const { return dtype_; }
  std::optional<Device> device_opt() const { return device_; }
  std::optional<Layout> layout_opt() const { return layout_; }
  std::optional<bool> pinned_memory_opt() const { return pinned_; }
  std::optional<MemoryFormat> memory_format_opt() const { return memory_format_; }

 private:
  std::optional<DType> dtype_;
  std::optional<Device> device_;
  std::optional<Layout> layout_;
  std::optional<bool> pinned_;
  std::optional<MemoryFormat> memory_format_;
  bool requires_grad_ = false;
};

inline TensorOptions dtype(DType t) { return TensorOptions(t); }
inline TensorOptions device(Device d) { return TensorOptions(d); }
inline TensorOptions requires_grad(bool r = true) { return TensorOptions().requires_grad(r); }

}  // namespace vesta
