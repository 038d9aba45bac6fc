#pragma once
// Where a tensor lives. `meta` tensors have shape and dtype but no data.
#include <cstdint>
#include <string>

#include "vesta/error.h"

namespace vesta {

enum class DeviceType : uint8_t { CPU = 0, CUDA = 1, Meta = 2 };
constexpr int kNumDeviceTypes = 3;
inline constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA, kMeta = DeviceType::Meta;

class Device {
 public:
  constexpr Device(DeviceType type = DeviceType::CPU, int index = 0)
      : type_(type), index_(uint8_t(index)) {}  // NOLINT
  // "cpu", "meta", "cuda", "cuda:1"; otherwise ValueError.
  Device(const std::string& text);                         // NOLINT
  Device(const char* text) : Device(std::string(text)) {}  // NOLINT
  constexpr DeviceType type() const { return type_; }
  constexpr int index() const { return index_; }
  constexpr bool is_cpu() const { return type_ == DeviceType::CPU; }
  constexpr bool is_cuda() const { return type_ == DeviceType::CUDA; }
  constexpr bool is_meta() const { return type_ == DeviceType::Meta; }
  std::string str() const;
  constexpr uint8_t packed() const { return uint8_t(uint8_t(type_) << 4 | index_); }
  static constexpr Device unpack(uint8_t p) { return Device(DeviceType(p >> 4), p & 15); }
  friend constexpr bool operator==(Device a, Device b) { return a.packed() == b.packed(); }

 private:
  DeviceType type_;
  uint8_t index_;
};

enum class Layout : uint8_t { Strided = 0 };
inline constexpr Layout kStrided = Layout::Strided;

enum class MemoryFormat : uint8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };

}  // namespace vesta
