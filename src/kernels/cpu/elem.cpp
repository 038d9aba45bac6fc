// DType to the kernels' element types.
#include "kernels/cpu/elem.h"

#include "vesta/error.h"

namespace vesta::cpu {

Elem elem_of(DType type) {
  switch (type) {
    case DType::Bool:
      return Elem::Bool;
    case DType::UInt8:
      return Elem::U8;
    case DType::Int8:
      return Elem::I8;
    case DType::Int16:
      return Elem::I16;
    case DType::Int32:
      return Elem::I32;
    case DType::Int64:
      return Elem::I64;
    case DType::Float16:
      return Elem::F16;
    case DType::BFloat16:
      return Elem::BF16;
    case DType::Float32:
      return Elem::F32;
    case DType::Float64:
      return Elem::F64;
    default:
      throw TypeError(std::string("this kernel does not take ") + dtype_name(type) + " tensors");
  }
}

}  // namespace vesta::cpu
