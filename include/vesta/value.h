#pragma once
// Value: one argument or result of an op call, 16 trivially copyable bytes; the same layout as VestaValue of the C ABI.
// Argument Values borrow (tensors, lists and strings point into caller memory); result Values own one reference each.
#include <cstdint>
#include <optional>
#include <string_view>

#include "vesta/array_ref.h"
#include "vesta/device.h"
#include "vesta/dtype.h"
#include "vesta/scalar.h"

namespace vesta {

class Tensor;
class Generator;
struct TensorImpl;

enum class ValueKind : uint8_t {
  None,
  Tensor,
  Bool,
  Int,
  Float,
  Complex,
  String,
  IntList,
  FloatList,
  BoolList,
  ScalarList,
  TensorList,
  DType,
  Device,
  Layout,
  MemoryFormat,
  Generator
};

struct Value {
  ValueKind kind = ValueKind::None;
  uint8_t flags = 0;
  uint16_t reserved = 0;
  uint32_t length = 0;  // elements of a list, bytes of a string
  union {
    TensorImpl* tensor;
    int64_t i;
    double d;
    const void* ptr;  // IntList: int64_t[]; FloatList: double[]; BoolList: bool[]; ScalarList: Scalar[];
        // TensorList: TensorImpl*[] (null = none); String: char[]; Complex: double[2]; Generator
  };

  constexpr Value() : i(0) {}
  constexpr Value(std::nullopt_t) : i(0) {}                    // NOLINT: implicit, here and below
  Value(const Tensor& t);                                      // NOLINT (inline in tensor.h)
  constexpr Value(bool v) : kind(ValueKind::Bool), i(v) {}     // NOLINT
  constexpr Value(int64_t v) : kind(ValueKind::Int), i(v) {}   // NOLINT
  constexpr Value(int v) : kind(ValueKind::Int), i(v) {}       // NOLINT
  constexpr Value(double v) : kind(ValueKind::Float), d(v) {}  // NOLINT
  Value(const Scalar& s) : i(0) {                              // NOLINT
    switch (s.kind()) {
      case ScalarKind::Bool:
        kind = ValueKind::Bool;
        i = s.raw_int();
        break;
      case ScalarKind::Int:
        kind = ValueKind::Int;
        i = s.raw_int();
        break;
      case ScalarKind::Float:
        kind = ValueKind::Float;
        d = s.raw_real();
        break;
      case ScalarKind::Complex:
        kind = ValueKind::Complex;
        ptr = s.complex_parts();
        break;  // borrowed
    }
  }
  Value(std::string_view s) : kind(ValueKind::String), length(uint32_t(s.size())), ptr(s.data()) {}  // NOLINT
  Value(IntArrayRef v) : kind(ValueKind::IntList), length(uint32_t(v.size())), ptr(v.data()) {}      // NOLINT
  Value(ArrayRef<double> v)
      : kind(ValueKind::FloatList), length(uint32_t(v.size())), ptr(v.data()) {}                     // NOLINT
  Value(ArrayRef<bool> v) : kind(ValueKind::BoolList), length(uint32_t(v.size())), ptr(v.data()) {}  // NOLINT
  Value(ArrayRef<Scalar> v)
      : kind(ValueKind::ScalarList), length(uint32_t(v.size())), ptr(v.data()) {}  // NOLINT
  Value(ArrayRef<Tensor> v)
      : kind(ValueKind::TensorList), length(uint32_t(v.size())), ptr(v.data()) {}  // NOLINT
  Value(OptionalIntArrayRef v) : Value() {
    if (v.has_value()) *this = Value(*v);
  }                                                                                         // NOLINT
  constexpr Value(vesta::DType t) : kind(ValueKind::DType), i(int64_t(t)) {}                // NOLINT
  constexpr Value(vesta::Device v) : kind(ValueKind::Device), i(v.packed()) {}              // NOLINT
  constexpr Value(vesta::Layout v) : kind(ValueKind::Layout), i(int64_t(v)) {}              // NOLINT
  constexpr Value(vesta::MemoryFormat v) : kind(ValueKind::MemoryFormat), i(int64_t(v)) {}  // NOLINT
  Value(const Generator& g);  // NOLINT (random.h)
  template <class T>
  Value(const std::optional<T>& v) : Value() {
    if (v) *this = Value(*v);
  }  // NOLINT

  bool is_none() const { return kind == ValueKind::None; }
  Scalar scalar() const {
    switch (kind) {
      case ValueKind::Bool:
        return Scalar(i != 0);
      case ValueKind::Int:
        return Scalar(i);
      case ValueKind::Float:
        return Scalar(d);
      case ValueKind::Complex: {
        auto* parts = static_cast<const double*>(ptr);
        return Scalar(std::complex<double>(parts[0], parts[1]));
      }
      default:
        return Scalar();
    }
  }
  IntArrayRef ints() const { return {static_cast<const int64_t*>(ptr), length}; }
  ArrayRef<Tensor> tensors() const { return {static_cast<const Tensor*>(ptr), length}; }
  std::string_view string() const { return {static_cast<const char*>(ptr), length}; }
};
static_assert(sizeof(Value) == 16);

}  // namespace vesta
