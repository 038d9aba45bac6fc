#pragma once
// PyTorch's type promotion (operators.md 6.1): dimensioned tensors, then 0-dim tensors, then numbers; a lower class
// counts only if its category is higher.
#include "core/registry.h"

namespace vesta {

class Promotion {
 public:
  void add(const Tensor& t) {
    DType& slot = t.impl()->ndim > 0 ? dims_ : zeros_;
    slot = slot == DType::Undefined  ? t.impl()->dtype
           : slot == t.impl()->dtype ? slot
                                     : promote_types(slot, t.impl()->dtype);
  }
  void add(const Scalar& s);
  DType get() const;

 private:
  DType dims_ = DType::Undefined, zeros_ = DType::Undefined, numbers_ = DType::Undefined;
};

DType result_dtype(const Op& op, const Value* args);
// TypeError, naming the op, where its block does not take tensors of this type.
void check_dtype(const Op& op, DType t);
// What the op computes in, given the arguments' common type: applies the block's rule and its type mask.
DType common_dtype(const Op& op, const Value* args);

}  // namespace vesta
