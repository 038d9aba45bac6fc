// Owning values, and calls by name.
#include "vesta/owned_value.h"

#include "core/call.h"
#include "core/fill_defaults.h"

namespace vesta {

OwnedValue OwnedValue::copy(const Value& v) {
  switch (v.kind) {
    case ValueKind::None:
      return {};
    case ValueKind::Tensor:
      return OwnedValue(Tensor::borrow(v.tensor));
    case ValueKind::TensorList:
      return OwnedValue(v.tensors().vec());
    case ValueKind::IntList:
      return OwnedValue(v.ints().vec());
    case ValueKind::FloatList: {
      auto* p = static_cast<const double*>(v.ptr);
      return OwnedValue(std::vector<double>(p, p + v.length));
    }
    case ValueKind::BoolList: {
      auto* p = static_cast<const bool*>(v.ptr);
      return OwnedValue(std::vector<bool>(p, p + v.length));
    }
    case ValueKind::ScalarList: {
      auto* p = static_cast<const Scalar*>(v.ptr);
      return OwnedValue(std::vector<Scalar>(p, p + v.length));
    }
    case ValueKind::String:
      return OwnedValue(std::string(v.string()));
    case ValueKind::DType:
      return OwnedValue(DType(v.i));
    case ValueKind::Device:
      return OwnedValue(Device::unpack(uint8_t(v.i)));
    case ValueKind::Layout:
      return OwnedValue(Layout(v.i));
    case ValueKind::MemoryFormat:
      return OwnedValue(MemoryFormat(v.i));
    case ValueKind::Generator:
      return OwnedValue(Generator::borrow(static_cast<GeneratorState*>(const_cast<void*>(v.ptr))));
    default:
      return OwnedValue(v.scalar());
  }
}

OwnedValue OwnedValue::adopt(Value v) {
  if (v.kind == ValueKind::Tensor) return OwnedValue(detail::take(v));
  if (v.kind == ValueKind::TensorList) return OwnedValue(detail::take_list(v));
  return copy(v);
}

Value OwnedValue::value() const {
  switch (kind_) {
    case ValueKind::None:
      return Value();
    case ValueKind::Tensor:
      return Value(tensor_);
    case ValueKind::TensorList:
      return Value(TensorList(tensors_));
    case ValueKind::IntList:
      return Value(IntArrayRef(ints_));
    case ValueKind::FloatList:
      return Value(ArrayRef<double>(doubles_));
    case ValueKind::BoolList:
      return Value(ArrayRef<bool>(reinterpret_cast<const bool*>(bools_.data()), bools_.size()));
    case ValueKind::ScalarList:
      return Value(ArrayRef<Scalar>(scalars_));
    case ValueKind::String:
      return Value(std::string_view(string_));
    case ValueKind::DType:
      return Value(DType(scalar_.raw_int()));
    case ValueKind::Device:
      return Value(Device::unpack(uint8_t(scalar_.raw_int())));
    case ValueKind::Layout:
      return Value(Layout(scalar_.raw_int()));
    case ValueKind::MemoryFormat:
      return Value(MemoryFormat(scalar_.raw_int()));
    case ValueKind::Generator:
      return Value(generator_);
    default:
      return Value(scalar_);
  }
}

std::vector<OwnedValue> call_by_name(std::string_view name, std::vector<OwnedValue> args) {
  const Op* op = find_op(name);
  VESTA_CHECK_AS(NotImplementedError, op, "call: there is no operator ", name);
  VESTA_CHECK(args.size() <= op->num_args, op->name, ": expected at most ", int(op->num_args),
              " arguments, got ", args.size());
  std::vector<Value> values(op->num_args);
  std::vector<int64_t> singles(op->num_args);
  for (size_t i = 0; i < op->num_args; ++i) {
    auto& a = op->schema.args[i];
    if (i < args.size() && args[i].kind() != ValueKind::None) {
      values[i] = args[i].value();
    } else if (i >= args.size()) {
      VESTA_CHECK(a.has_default || a.optional, op->name, ": missing argument ", a.name);
      values[i] = op->defaults[i];
    }
    // A single number where a list of integers is wanted, and integers where floats are: as in C++.
    if (values[i].kind == ValueKind::Int && a.list && a.type == ArgType::Int) {
      singles[i] = values[i].i;
      values[i] = Value(IntArrayRef(&singles[i], 1));
    }
    if (values[i].kind == ValueKind::Int && a.type == ArgType::Float && !a.list)
      values[i] = Value(double(values[i].i));
    if (values[i].kind == ValueKind::IntList && a.list && a.type == ArgType::Float && values[i].length == 0)
      values[i] = Value(ArrayRef<double>());
    if (values[i].kind == ValueKind::IntList && a.list && a.type == ArgType::Tensor && values[i].length == 0)
      values[i] = Value(TensorList());
    if (values[i].kind == ValueKind::IntList && a.list && a.type == ArgType::Bool && values[i].length == 0)
      values[i] = Value(ArrayRef<bool>());
  }
  fill_defaults(*op, values.data());
  check_arguments(*op, values.data());
  std::vector<Value> outs(std::max<size_t>(1, op->num_outs));
  call(*op, values.data(), outs.data());
  std::vector<OwnedValue> results;
  for (size_t j = 0; j < op->num_outs; ++j) results.push_back(OwnedValue::adopt(outs[j]));
  return results;
}

}  // namespace vesta
