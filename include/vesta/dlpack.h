#pragma once
// DLPack: tensors handed to and taken from other frameworks of the same process without a copy. The structs follow the
// ABI of DLPack 1.1 (dmlc.github.io/dlpack) and stand in a namespace, so that a program may include dlpack.h too and cast
// pointers between the two.
#include <cstddef>
#include <cstdint>

#include "vesta/tensor.h"

namespace vesta {
namespace dlpack {

enum DeviceCode : int32_t { kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3 };
enum TypeCode : uint8_t {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLOpaque = 3,
  kDLBfloat = 4,
  kDLComplex = 5,
  kDLBool = 6,
  kDLFloat8_e4m3fn = 10,
  kDLFloat8_e4m3fnuz = 11,
  kDLFloat8_e5m2 = 12,
  kDLFloat8_e5m2fnuz = 13,
  kDLFloat8_e8m0fnu = 14,
  kDLFloat4_e2m1fn = 17  // two lanes are one element here
};

struct DLVersion {
  uint32_t major, minor;
};
struct DLDevice {
  int32_t device_type;  // DeviceCode
  int32_t device_id;
};
struct DLDataType {
  uint8_t code;  // TypeCode
  uint8_t bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: C order
  uint64_t byte_offset;
};
// The form before DLPack 1.0.
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);  // may be null
};
struct DLManagedTensorVersioned {
  DLVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);  // may be null
  uint64_t flags;
  DLTensor dl_tensor;
};
constexpr DLVersion kVersion = {1, 1};
constexpr uint64_t kReadOnly = 1, kIsCopied = 2;

static_assert(sizeof(void*) != 8 ||
                  (sizeof(DLTensor) == 48 && sizeof(DLManagedTensor) == 64 &&
                   sizeof(DLManagedTensorVersioned) == 80 && offsetof(DLTensor, byte_offset) == 40 &&
                   offsetof(DLTensor, shape) == 24),
              "the layout of DLPack");

}  // namespace dlpack

// A struct that shows the tensor's elements and keeps them alive; whoever gets it calls its deleter once. Autograd is left
// behind. ValueError: undefined, not on the CPU, or with a lazy conjugate or negative bit (call resolve_conj() first).
dlpack::DLManagedTensorVersioned* to_dlpack(const Tensor& tensor);
dlpack::DLManagedTensor* to_dlpack_unversioned(const Tensor& tensor);

// A tensor that shows the producer's elements and calls the deleter when the last tensor over them is gone. Copied
// instead, with the deleter called at once: read-only data, negative strides, and data that are not aligned to their
// type. On an error nothing is taken: the struct still belongs to the caller.
// NotImplementedError: another device, a dtype or lanes that Vesta has not got. ValueError: a null struct, more than 64
// dims, sizes below 0 or beyond 63 bits, null data, another major version.
Tensor from_dlpack(dlpack::DLManagedTensorVersioned* managed);
Tensor from_dlpack(dlpack::DLManagedTensor* managed);

}  // namespace vesta
