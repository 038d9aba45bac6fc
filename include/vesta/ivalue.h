#pragma once
// IValue: a value as checkpoints hold it: None, bool, int, double, complex, text, dtype, device, tensor, or lists, tuples
// and dicts of those. Named as in libtorch, but a value: copies are independent, except that tensors share their elements.
//   IValue checkpoint = load_torch("model.pt");
//   int64_t epoch = checkpoint.toDict().at("epoch").toInt();
#include <complex>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "vesta/tensor.h"

namespace vesta {

class IValue;

// Values by key in the order of insertion, as Python's dict. Keys: text, int, bool, double, dtype or tuples of them.
class GenericDict {
 public:
  using Entry = std::pair<IValue, IValue>;
  GenericDict();
  GenericDict(std::initializer_list<Entry> entries);
  GenericDict(const GenericDict& other);
  GenericDict(GenericDict&& other) noexcept;
  GenericDict& operator=(GenericDict other) noexcept;
  ~GenericDict();

  size_t size() const;
  bool empty() const { return size() == 0; }
  // A later value for a key replaces the earlier one, at its place. TypeError where `key` cannot be one.
  void insert_or_assign(IValue key, IValue value);
  // False, and nothing changed, where the key is there.
  bool insert(IValue key, IValue value);
  const IValue* find(const IValue& key) const;  // null where missing
  bool contains(const IValue& key) const { return find(key) != nullptr; }
  const IValue& at(const IValue& key) const;  // IndexError where missing
  const Entry* begin() const;
  const Entry* end() const;

 private:
  struct Impl;
  Impl* impl_;  // owned
};

using GenericList = std::vector<IValue>;
struct GenericTuple {
  std::vector<IValue> elements;
};

class IValue {
 public:
  enum class Kind : uint8_t {
    None,
    Bool,
    Int,
    Double,
    Complex,
    String,
    DType,
    Device,
    Tensor,
    List,
    Tuple,
    Dict
  };

  IValue() = default;
  IValue(std::nullptr_t) {}     // NOLINT: implicit, here and below
  IValue(bool v) : data_(v) {}  // NOLINT
  template <class T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, int> = 0>
  IValue(T v) : data_(int64_t(v)) {}                // NOLINT
  IValue(double v) : data_(v) {}                    // NOLINT
  IValue(std::complex<double> v) : data_(v) {}      // NOLINT
  IValue(std::string v) : data_(std::move(v)) {}    // NOLINT
  IValue(const char* v) : data_(std::string(v)) {}  // NOLINT
  IValue(DType v) : data_(v) {}                     // NOLINT
  IValue(Device v) : data_(v) {}                    // NOLINT
  IValue(Tensor v) {                                // NOLINT: an undefined tensor is None
    if (v.defined()) data_ = std::move(v);
  }
  IValue(GenericList v) : data_(std::move(v)) {}   // NOLINT
  IValue(GenericTuple v) : data_(std::move(v)) {}  // NOLINT
  IValue(GenericDict v) : data_(std::move(v)) {}   // NOLINT
  IValue(const std::vector<Tensor>& v);            // NOLINT
  IValue(const std::vector<int64_t>& v);           // NOLINT
  static IValue list(std::initializer_list<IValue> v) { return GenericList(v); }
  static IValue tuple(std::initializer_list<IValue> v) { return GenericTuple{v}; }

  Kind kind() const { return Kind(data_.index()); }
  const char* tagKind() const;  // "int", "dict", ...
  bool isNone() const { return kind() == Kind::None; }
  bool isBool() const { return kind() == Kind::Bool; }
  bool isInt() const { return kind() == Kind::Int; }
  bool isDouble() const { return kind() == Kind::Double; }
  bool isComplexDouble() const { return kind() == Kind::Complex; }
  bool isString() const { return kind() == Kind::String; }
  bool isDType() const { return kind() == Kind::DType; }
  bool isDevice() const { return kind() == Kind::Device; }
  bool isTensor() const { return kind() == Kind::Tensor; }
  bool isList() const { return kind() == Kind::List; }
  bool isTuple() const { return kind() == Kind::Tuple; }
  bool isGenericDict() const { return kind() == Kind::Dict; }
  bool isScalar() const { return isBool() || isInt() || isDouble() || isComplexDouble(); }

  // TypeError where the value is of another kind; toDouble also takes an int.
  bool toBool() const;
  int64_t toInt() const;
  double toDouble() const;
  std::complex<double> toComplexDouble() const;
  const std::string& toStringRef() const;
  DType toDType() const;
  Device toDevice() const;
  const Tensor& toTensor() const;
  const GenericList& toList() const;
  const std::vector<IValue>& toTuple() const;
  const GenericDict& toDict() const;
  const GenericDict& toGenericDict() const { return toDict(); }
  std::vector<Tensor> toTensorVector() const;  // of a list or tuple of tensors
  std::vector<int64_t> toIntVector() const;
  // The value by reference, to build on.
  GenericList& list_ref();
  GenericDict& dict_ref();

  // Equal kinds and values; tensors are equal where they are the same object. A double NaN equals nothing.
  friend bool operator==(const IValue& a, const IValue& b);
  // One line: {'a': 1, 'w': float32[2, 3]}.
  std::string str() const;

 private:
  friend size_t hash_key(const IValue& key);
  template <class T>
  const T& get(Kind wanted) const;
  std::variant<std::monostate, bool, int64_t, double, std::complex<double>, std::string, DType, Device,
               Tensor, GenericList, GenericTuple, GenericDict>
      data_;
};

}  // namespace vesta
