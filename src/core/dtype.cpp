// Names and conversions of element types, scalars and devices.
#include "vesta/dtype.h"

#include <atomic>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string_view>

#include "vesta/device.h"
#include "vesta/scalar.h"

namespace vesta {
namespace {
#define VESTA_ROW(name, type, text, torch_name, kind) text,
constexpr const char* kNames[] = {VESTA_ALL_DTYPES(VESTA_ROW) "undefined"};
#undef VESTA_ROW
#define VESTA_ROW(name, type, text, torch_name, kind) torch_name,
constexpr const char* kTorchNames[] = {VESTA_ALL_DTYPES(VESTA_ROW) "Undefined"};
#undef VESTA_ROW
// A process-wide setting, as in libtorch.
std::atomic<DType> default_dtype{DType::Float32};
}  // namespace

const char* to_string(DType t) { return kTorchNames[int(t)]; }
const char* dtype_name(DType t) { return kNames[int(t)]; }
DType parse_dtype(const char* name, size_t length) {
  std::string_view text(name, length);
  for (int i = 0; i < kNumDTypes; ++i)
    if (text == kNames[i]) return DType(i);
  return DType::Undefined;
}
DType get_default_dtype() { return default_dtype.load(std::memory_order_relaxed); }
void set_default_dtype(DType t) {
  VESTA_CHECK_AS(TypeError, is_floating_point(t) && !is_storage_only(t),
                 "set_default_dtype: expected a floating type, got ", dtype_name(t));
  default_dtype.store(t, std::memory_order_relaxed);
}

Half::Half(float value) {
  uint32_t u;
  std::memcpy(&u, &value, 4);
  uint32_t sign = u >> 16 & 0x8000u, magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    bits = uint16_t(sign | 0x7e00u);
  } else if (magnitude >= 0x477ff000u) {  // rounds to 65536 or more
    bits = uint16_t(sign | 0x7c00u);
  } else if (magnitude < 0x38800000u) {  // subnormal: let the float unit round at the right place
    float f, magic = 0.5f;
    uint32_t r;
    std::memcpy(&f, &magnitude, 4);
    f += magic;
    std::memcpy(&r, &f, 4);
    bits = uint16_t(sign | (r - 0x3f000000u));
  } else {
    uint32_t odd = magnitude >> 13 & 1;
    bits = uint16_t(sign | ((magnitude + 0xc8000fffu + odd) >> 13));
  }
}
Half::operator float() const {
  uint32_t sign = uint32_t(bits & 0x8000u) << 16, rest = bits & 0x7fffu;
  uint32_t u;
  if (rest >= 0x7c00u) {
    u = sign | 0x7f800000u | (rest & 0x3ffu) << 13;
  } else if (rest >= 0x400u) {
    u = sign | ((rest << 13) + 0x38000000u);
  } else {
    float f = float(rest) * 0x1p-24f;
    uint32_t m;
    std::memcpy(&m, &f, 4);
    u = sign | m;
  }
  float f;
  std::memcpy(&f, &u, 4);
  return f;
}

DType Scalar::type() const {
  switch (kind_) {
    case ScalarKind::Bool:
      return DType::Bool;
    case ScalarKind::Int:
      return DType::Int64;
    case ScalarKind::Float:
      return DType::Float64;
    case ScalarKind::Complex:
      return DType::Complex128;
  }
  return DType::Undefined;
}
double Scalar::toDouble() const {
  if (kind_ <= ScalarKind::Int) return double(i_);
  VESTA_CHECK(im_ == 0, "Scalar: cannot convert ", str(), " to a real number without loss");
  return re_;
}
int64_t Scalar::toLong() const {
  if (kind_ <= ScalarKind::Int) return i_;
  VESTA_CHECK(im_ == 0, "Scalar: cannot convert ", str(), " to an integer without loss");
  VESTA_CHECK(re_ >= -0x1p63 && re_ < 0x1p63, "Scalar: ", str(), " does not fit into int64");
  return int64_t(re_);
}
int64_t Scalar::checked_integer(int64_t lowest, int64_t highest, const char* type) const {
  int64_t v = toLong();
  VESTA_CHECK(v >= lowest && v <= highest, "Scalar: ", str(), " does not fit into ", type);
  return v;
}
uint64_t Scalar::toUInt64() const {
  if (kind_ <= ScalarKind::Int) return uint64_t(i_);
  double v = toDouble();
  VESTA_CHECK(v > -0x1p64 && v < 0x1p64, "Scalar: ", str(), " does not fit into uint64");
  return v < 0 ? 0 - uint64_t(-v) : uint64_t(v);
}
float Scalar::toFloat() const {
  double v = toDouble();
  // A finite number that would become infinite; the largest float stands for all that round to it.
  VESTA_CHECK(!std::isfinite(v) || std::fabs(v) <= double(std::numeric_limits<float>::max()),
              "Scalar: ", str(), " does not fit into float32");
  return float(v);
}
void Scalar::throw_too_large(uint64_t v) {
  throw ValueError(detail::message("Scalar: expected an integer below 2^63, got ", v));
}
Scalar Scalar::log() const {
  if (kind_ == ScalarKind::Complex) return Scalar(std::log(std::complex<double>(re_, im_)));
  return Scalar(std::log(toDouble()));
}
Scalar Scalar::operator-() const {
  switch (kind_) {
    case ScalarKind::Bool:
      throw TypeError("Scalar: cannot negate a bool");
    case ScalarKind::Int:
      return Scalar(int64_t(0 - uint64_t(i_)));
    case ScalarKind::Float:
      return Scalar(-re_);
    case ScalarKind::Complex:
      return Scalar(std::complex<double>(-re_, -im_));
  }
  return *this;
}
Scalar Scalar::conj() const {
  return kind_ == ScalarKind::Complex ? Scalar(std::complex<double>(re_, -im_)) : *this;
}
std::string Scalar::str() const {
  char text[80];
  switch (kind_) {
    case ScalarKind::Bool:
      return i_ ? "True" : "False";
    case ScalarKind::Int:
      return std::to_string(i_);
    case ScalarKind::Float:
      std::snprintf(text, sizeof text, "%.17g", re_);
      break;
    case ScalarKind::Complex:
      std::snprintf(text, sizeof text, "%.17g%+.17gj", re_, im_);
      break;
  }
  return text;
}

Device::Device(const std::string& text) : type_(DeviceType::CPU), index_(0) {
  std::string kind = text.substr(0, text.find(':'));
  if (kind == "cpu")
    type_ = DeviceType::CPU;
  else if (kind == "cuda")
    type_ = DeviceType::CUDA;
  else if (kind == "meta")
    type_ = DeviceType::Meta;
  else
    throw ValueError("Device: expected cpu, cuda or meta, got \"" + text + "\"");
  if (kind.size() == text.size()) return;
  std::string number = text.substr(kind.size() + 1);
  bool digits = !number.empty() && number.size() <= 2;
  for (char c : number) digits &= c >= '0' && c <= '9';
  VESTA_CHECK(digits && std::stoi(number) < 16, "Device: expected an index below 16, got \"", text, "\"");
  index_ = uint8_t(std::stoi(number));
}
std::string Device::str() const {
  const char* names[] = {"cpu", "cuda", "meta"};
  std::string s = names[int(type_)];
  return type_ == DeviceType::CUDA ? s + ":" + std::to_string(index_) : s;
}

}  // namespace vesta
