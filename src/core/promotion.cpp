// Type promotion tables and rules.
#include "core/promotion.h"

#include "core/call.h"

namespace vesta {
namespace {

// Filled once from the rules below; symmetric. Undefined where PyTorch has no answer.
struct Table {
  DType t[kNumDTypes][kNumDTypes];
  Table() {
    for (int a = 0; a < kNumDTypes; ++a)
      for (int b = 0; b < kNumDTypes; ++b) t[a][b] = promote(DType(a), DType(b));
  }
  static DType promote(DType a, DType b) {
    if (a == b) return a;
    if (a > b) std::swap(a, b);  // arithmetic types before the others; those by class, then width
    if (is_storage_only(b)) return with_storage(a, b);
    if (is_complex(b)) {
      if (b == DType::Complex64 && a == DType::Float64) return DType::Complex128;
      return b;
    }
    if (is_floating_point(b)) {
      if (a == DType::Float16 && b == DType::BFloat16) return DType::Float32;
      return b;
    }
    if (a == DType::UInt8) {  // with a signed integer: the next type that holds both
      return b == DType::Int8 ? DType::Int16 : b;
    }
    return b;
  }
  static DType with_storage(DType a, DType b) {
    if (b == DType::ComplexHalf) {
      if (is_storage_only(a)) return DType::Undefined;
      if (is_complex(a)) return a;
      return a == DType::Float64                           ? DType::Complex128
             : a == DType::Float32 || a == DType::BFloat16 ? DType::Complex64
                                                           : b;
    }
    return is_integral(b) && is_floating_point(a) && !is_storage_only(a) ? a : DType::Undefined;
  }
};
const Table& table() {
  static const Table* t = new Table;
  return *t;
}

int category(DType t) {
  if (t == DType::Undefined) return -1;
  return t == DType::Bool ? 0 : is_integral(t) ? 1 : is_floating_point(t) ? 2 : 3;
}

DType combine(DType higher, DType lower) {
  if (higher == DType::Undefined) return lower;
  if (category(lower) > category(higher)) {
    // A complex of lower rank (0-dim, or a number) takes the precision of the floating tensor.
    VESTA_CHECK_AS(TypeError, !(is_complex(lower) && is_floating_point(higher) && is_storage_only(higher)),
                   "result_type: ", dtype_name(higher), " has no complex type; cast it first");
    if (is_complex(lower) && is_floating_point(higher))
      return higher == DType::Float64 ? DType::Complex128 : DType::Complex64;
    return lower;
  }
  return higher;
}

}  // namespace

DType promote_types(DType a, DType b) {
  DType t = table().t[int(a)][int(b)];
  VESTA_CHECK_AS(TypeError, t != DType::Undefined, "promote_types: ", dtype_name(a), " and ", dtype_name(b),
                 " have no common type; cast one of them first");
  return t;
}

bool can_cast(DType from, DType to) {
  if (is_complex(from) && !is_complex(to)) return false;
  if (is_floating_point(from) && is_integral(to, true)) return false;
  if (from != DType::Bool && to == DType::Bool) return false;
  return true;
}

void Promotion::add(const Scalar& s) {
  DType t = DType::Int64;
  switch (s.kind()) {
    case ScalarKind::Bool:
      t = DType::Bool;
      break;
    case ScalarKind::Int:
      t = DType::Int64;
      break;
    case ScalarKind::Float:
      t = get_default_dtype();
      break;
    case ScalarKind::Complex:
      t = get_default_dtype() == DType::Float64 ? DType::Complex128 : DType::Complex64;
      break;
  }
  numbers_ = numbers_ == DType::Undefined ? t : promote_types(numbers_, t);
}

DType Promotion::get() const { return combine(combine(dims_, zeros_), numbers_); }

DType result_type(const Tensor& a, const Tensor& b) {
  Promotion r;
  r.add(a);
  r.add(b);
  return r.get();
}
DType result_type(const Tensor& a, const Scalar& b) {
  Promotion r;
  r.add(a);
  r.add(b);
  return r.get();
}
DType result_type(const Scalar& a, const Tensor& b) { return result_type(b, a); }

DType result_dtype(const Op& op, const Value* args) {
  Promotion r;
  for (int k = 0; k < op.num_tensor_args; ++k) {
    const Value& v = args[op.tensor_args[k]];
    if (v.kind == ValueKind::Tensor)
      r.add(Tensor::borrow(v.tensor));
    else if (v.kind == ValueKind::TensorList)
      for (auto& t : v.tensors())
        if (t.defined()) r.add(t);
  }
  for (uint32_t m = op.promote_mask; m; m &= m - 1) {
    const Value& v = args[__builtin_ctz(m)];
    if (!v.is_none()) r.add(v.scalar());
  }
  return r.get();
}

void check_dtype(const Op& op, DType t) {
  VESTA_CHECK_AS(
      TypeError, op.def->types.accepts(t), op.name, ": does not take ", dtype_name(t), " tensors",
      is_storage_only(t) ? t == DType::Float4_e2m1fn_x2 ? "; view them as uint8" : "; cast first" : "");
}

DType common_dtype(const Op& op, const Value* args) {
  DType t = result_dtype(op, args);
  if (op.def->types.promote == Promote::Float && is_integral(t, true)) t = get_default_dtype();
  check_dtype(op, t);
  return t;
}

}  // namespace vesta
