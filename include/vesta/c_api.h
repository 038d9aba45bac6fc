/* The stable C interface. One exported symbol, vesta_get_api; it returns a table of functions that only grows within a
 * major version: check `size` before using a member that a later minor version added. No C++ type, exception or
 * allocator crosses. Handles are opaque and counted; every function that can fail returns a VestaError* (null = fine),
 * which the caller frees with error_free. Thread-safe unless a comment says otherwise.
 * State of this header: draft of major version 0, see docs/ARCHITECTURE.md. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define VESTA_C_EXPORT __declspec(dllexport)
#else
#define VESTA_C_EXPORT __attribute__((visibility("default")))
#endif

#define VESTA_API_MAJOR 0u
#define VESTA_API_MINOR 1u

typedef struct VestaError VestaError;
typedef struct VestaTensor VestaTensor; /* one counted reference to a tensor */

enum { /* element types, the values of vesta::DType */
       VESTA_BOOL = 0,
       VESTA_UINT8 = 1,
       VESTA_INT8 = 2,
       VESTA_INT16 = 3,
       VESTA_INT32 = 4,
       VESTA_INT64 = 5,
       VESTA_FLOAT16 = 6,
       VESTA_BFLOAT16 = 7,
       VESTA_FLOAT32 = 8,
       VESTA_FLOAT64 = 9,
       VESTA_COMPLEX64 = 10,
       VESTA_COMPLEX128 = 11,
       VESTA_UINT16 = 12,
       VESTA_UINT32 = 13,
       VESTA_UINT64 = 14,
       VESTA_FLOAT8_E4M3FN = 15,
       VESTA_FLOAT8_E5M2 = 16,
       VESTA_FLOAT8_E4M3FNUZ = 17,
       VESTA_FLOAT8_E5M2FNUZ = 18,
       VESTA_FLOAT8_E8M0FNU = 19,
       VESTA_FLOAT4_E2M1FN_X2 = 20,
       VESTA_COMPLEX32 = 21
};

enum { /* kinds of a VestaValue, the values of vesta::ValueKind */
       VESTA_VALUE_NONE = 0,
       VESTA_VALUE_TENSOR = 1,
       VESTA_VALUE_BOOL = 2,
       VESTA_VALUE_INT = 3,
       VESTA_VALUE_FLOAT = 4,
       VESTA_VALUE_COMPLEX = 5,
       VESTA_VALUE_STRING = 6,
       VESTA_VALUE_INT_LIST = 7,
       VESTA_VALUE_FLOAT_LIST = 8,
       VESTA_VALUE_BOOL_LIST = 9,
       VESTA_VALUE_SCALAR_LIST = 10,
       VESTA_VALUE_TENSOR_LIST = 11,
       VESTA_VALUE_DTYPE = 12,
       VESTA_VALUE_DEVICE = 13,
       VESTA_VALUE_LAYOUT = 14,
       VESTA_VALUE_MEMORY_FORMAT = 15,
       VESTA_VALUE_GENERATOR = 16
};

enum { /* error kinds, the values of vesta::ErrorKind */
       VESTA_ERROR_VALUE = 0,
       VESTA_ERROR_INDEX = 1,
       VESTA_ERROR_TYPE = 2,
       VESTA_ERROR_NOT_IMPLEMENTED = 3,
       VESTA_ERROR_OUT_OF_MEMORY = 4,
       VESTA_ERROR_LINALG = 5,
       VESTA_ERROR_IO = 6,
       VESTA_ERROR_INTERNAL = 7
};

/* One argument or result of an operator call; the same 16 bytes as vesta::Value. Arguments borrow what they point to;
 * a result of kind TENSOR owns one reference (release it), a result of kind TENSOR_LIST is freed with list_free. */
typedef struct VestaValue {
  uint8_t kind;
  uint8_t flags;
  uint16_t reserved;
  uint32_t length; /* elements of a list, bytes of a string */
  union {
    VestaTensor* tensor;
    int64_t i; /* BOOL, INT, DTYPE, DEVICE, LAYOUT, MEMORY_FORMAT */
    double d;
    const void*
        ptr; /* lists: int64_t[], double[], uint8_t[], VestaTensor*[]; COMPLEX: double[2]; STRING: bytes */
  } u;
} VestaValue;

typedef struct VestaApi {
  size_t size; /* of this struct, as the library knows it */
  uint32_t major, minor;

  /* errors */
  int32_t (*error_kind)(const VestaError*);
  const char* (*error_message)(const VestaError*);
  void (*error_free)(VestaError*);

  /* tensors: `out` receives a new reference */
  VestaError* (*tensor_empty)(const int64_t* sizes, int32_t ndim, int32_t dtype, VestaTensor** out);
  /* Wraps caller memory, contiguous; deleter (may be null) is called with (data, context) after the last use. */
  VestaError* (*tensor_from_blob)(void* data, const int64_t* sizes, int32_t ndim, int32_t dtype,
                                  void (*deleter)(void* data, void* context), void* context,
                                  VestaTensor** out);
  VestaTensor* (*tensor_retain)(VestaTensor*); /* returns its argument */
  void (*tensor_release)(VestaTensor*);        /* null is ignored */
  int32_t (*tensor_ndim)(const VestaTensor*);
  const int64_t* (*tensor_sizes)(const VestaTensor*);   /* valid while the tensor lives and is not resized */
  const int64_t* (*tensor_strides)(const VestaTensor*); /* in elements */
  int32_t (*tensor_dtype)(const VestaTensor*);
  int64_t (*tensor_numel)(const VestaTensor*);
  VestaError* (*tensor_data)(const VestaTensor*, void** out);

  /* autograd */
  VestaError* (*tensor_set_requires_grad)(VestaTensor*, int32_t requires_grad);
  int32_t (*tensor_requires_grad)(const VestaTensor*);
  VestaError* (*tensor_grad)(const VestaTensor*, VestaTensor** out); /* *out null: no gradient */
  VestaError* (*tensor_backward)(VestaTensor*, VestaTensor* gradient, int32_t retain_graph);
  int32_t (*grad_mode_set)(int32_t enabled); /* of this thread; returns the previous mode */

  /* operators, by schema name: "add.Tensor". Look a name up once. */
  VestaError* (*op_find)(const char* name, int32_t* op);
  VestaError* (*op_schema)(int32_t op, const char** schema, int32_t* num_args, int32_t* num_results);
  /* args in schema order; missing trailing ones take their defaults. results: num_results values. */
  VestaError* (*op_call)(int32_t op, const VestaValue* args, int32_t num_args, VestaValue* results);
  void (*list_free)(VestaValue* list); /* releases a TENSOR_LIST result */

  void (*manual_seed)(uint64_t seed);
  void (*set_num_threads)(int32_t n);
} VestaApi;

/* The table for this major version, or null where the library does not offer it. */
VESTA_C_EXPORT const VestaApi* vesta_get_api(uint32_t major);

#ifdef __cplusplus
}
#endif
