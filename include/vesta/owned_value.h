#pragma once
// OwnedValue: a Value that owns what it points to. For calls by name (scripts, the C ABI), samples and recorded calls.
#include <string>
#include <vector>

#include "vesta/random.h"
#include "vesta/tensor.h"
#include "vesta/value.h"

namespace vesta {

class OwnedValue {
 public:
  OwnedValue() = default;
  template <class T>
  OwnedValue(T v) {
    init(std::move(v));
  }  // NOLINT: implicit from anything a Value can hold
  // A copy of what `v` borrows; references are added to tensors.
  static OwnedValue copy(const Value& v);
  // Takes over a result Value (which owns its references).
  static OwnedValue adopt(Value v);
  // The borrowed form, valid while this lives and is not moved.
  Value value() const;
  ValueKind kind() const { return kind_; }
  bool is_tensor() const { return kind_ == ValueKind::Tensor; }
  const Tensor& tensor() const { return tensor_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const std::vector<int64_t>& ints() const { return ints_; }
  const Scalar& scalar() const { return scalar_; }
  const std::string& string() const { return string_; }

 private:
  void init(std::nullopt_t) {}
  void init(Tensor t) {
    kind_ = t.defined() ? ValueKind::Tensor : ValueKind::None;
    tensor_ = std::move(t);
  }
  void init(std::vector<Tensor> t) {
    kind_ = ValueKind::TensorList;
    tensors_ = std::move(t);
  }
  void init(Scalar s) {
    scalar_ = s;
    kind_ = Value(s).kind;
  }
  void init(bool b) { init(Scalar(b)); }
  void init(int v) { init(Scalar(v)); }
  void init(int64_t v) { init(Scalar(v)); }
  void init(double v) { init(Scalar(v)); }
  void init(std::vector<int64_t> v) {
    kind_ = ValueKind::IntList;
    ints_ = std::move(v);
  }
  void init(std::initializer_list<int64_t> v) { init(std::vector<int64_t>(v)); }
  void init(std::vector<double> v) {
    kind_ = ValueKind::FloatList;
    doubles_ = std::move(v);
  }
  void init(std::vector<bool> v) {
    kind_ = ValueKind::BoolList;
    bools_.assign(v.begin(), v.end());
  }
  void init(std::vector<Scalar> v) {
    kind_ = ValueKind::ScalarList;
    scalars_ = std::move(v);
  }
  void init(std::string s) {
    kind_ = ValueKind::String;
    string_ = std::move(s);
  }
  void init(const char* s) { init(std::string(s)); }
  void init(DType t) {
    kind_ = ValueKind::DType;
    scalar_ = Scalar(int64_t(t));
  }
  void init(Device d) {
    kind_ = ValueKind::Device;
    scalar_ = Scalar(int64_t(d.packed()));
  }
  void init(Layout l) {
    kind_ = ValueKind::Layout;
    scalar_ = Scalar(int64_t(l));
  }
  void init(MemoryFormat f) {
    kind_ = ValueKind::MemoryFormat;
    scalar_ = Scalar(int64_t(f));
  }
  void init(Generator g) {
    kind_ = ValueKind::Generator;
    generator_ = std::move(g);
  }

  ValueKind kind_ = ValueKind::None;
  Scalar scalar_;
  Tensor tensor_;
  std::vector<Tensor> tensors_;
  std::vector<int64_t> ints_;
  std::vector<double> doubles_;
  std::vector<uint8_t> bools_;
  std::vector<Scalar> scalars_;
  std::string string_;
  Generator generator_{nullptr};
};

}  // namespace vesta
