// The C interface: the only file with extern "C" exports. Every entry catches; nothing throws across.
#include "vesta/c_api.h"

#include <cstddef>

#include "base/thread_pool.h"
#include "core/call.h"
#include "core/fill_defaults.h"
#include "vesta/autograd.h"
#include "vesta/ops.h"
#include "vesta/owned_value.h"

struct VestaError {
  vesta::ErrorKind kind;
  std::string message;
};

namespace vesta {
namespace {

static_assert(sizeof(VestaValue) == sizeof(Value) &&
              offsetof(VestaValue, length) == offsetof(Value, length) &&
              offsetof(VestaValue, u) == offsetof(Value, i));
static_assert(VESTA_FLOAT32 == int(DType::Float32) && VESTA_COMPLEX128 == int(DType::Complex128) &&
              VESTA_UINT16 == int(DType::UInt16) && VESTA_COMPLEX32 == int(DType::ComplexHalf));
static_assert(VESTA_VALUE_TENSOR_LIST == int(ValueKind::TensorList) &&
              VESTA_VALUE_GENERATOR == int(ValueKind::Generator));

// A VestaTensor* is a TensorImpl* with one reference.
TensorImpl* impl(const VestaTensor* t) { return reinterpret_cast<TensorImpl*>(const_cast<VestaTensor*>(t)); }
VestaTensor* handle(Tensor t) { return reinterpret_cast<VestaTensor*>(t.release_impl()); }
Tensor borrowed(const VestaTensor* t) { return t ? Tensor::borrow(impl(t)) : Tensor(); }

template <class Body>
VestaError* guarded(Body&& body) {
  try {
    body();
    return nullptr;
  } catch (const Error& e) {
    return new (std::nothrow) VestaError{e.kind(), e.message()};
  } catch (const std::bad_alloc&) {
    return new (std::nothrow) VestaError{ErrorKind::OutOfMemory, "out of memory"};
  } catch (const std::exception& e) {
    return new (std::nothrow) VestaError{ErrorKind::Internal, e.what()};
  } catch (...) {
    return new (std::nothrow) VestaError{ErrorKind::Internal, "unknown exception"};
  }
}

DType checked_dtype(int32_t t) {
  VESTA_CHECK_AS(TypeError, t >= 0 && t < kNumDTypes, "c_api: unknown dtype ", t);
  return DType(t);
}
IntArrayRef checked_sizes(const int64_t* sizes, int32_t ndim) {
  VESTA_CHECK(ndim >= 0 && ndim <= 64 && (sizes || ndim == 0),
              "c_api: expected 0 to 64 dims and their sizes, got ", ndim);
  return {sizes, size_t(ndim)};
}

int32_t error_kind(const VestaError* e) { return e ? int32_t(e->kind) : -1; }
const char* error_message(const VestaError* e) { return e ? e->message.c_str() : ""; }
void error_free(VestaError* e) { delete e; }

VestaError* tensor_empty(const int64_t* sizes, int32_t ndim, int32_t dtype, VestaTensor** out) {
  return guarded(
      [&] { *out = handle(empty(checked_sizes(sizes, ndim), TensorOptions(checked_dtype(dtype)))); });
}
VestaError* tensor_from_blob(void* data, const int64_t* sizes, int32_t ndim, int32_t dtype,
                             void (*deleter)(void*, void*), void* context, VestaTensor** out) {
  return guarded([&] {
    std::function<void(void*)> fn;
    if (deleter) fn = [deleter, context](void* p) { deleter(p, context); };
    *out = handle(
        from_blob(data, checked_sizes(sizes, ndim), std::move(fn), TensorOptions(checked_dtype(dtype))));
  });
}
VestaTensor* tensor_retain(VestaTensor* t) {
  if (t) impl(t)->refs.fetch_add(1, std::memory_order_relaxed);
  return t;
}
void tensor_release(VestaTensor* t) {
  if (t) detail::release(impl(t));
}
int32_t tensor_ndim(const VestaTensor* t) { return impl(t)->ndim; }
const int64_t* tensor_sizes(const VestaTensor* t) { return impl(t)->sizes_data(); }
const int64_t* tensor_strides(const VestaTensor* t) { return impl(t)->strides_data(); }
int32_t tensor_dtype(const VestaTensor* t) { return int32_t(impl(t)->dtype); }
int64_t tensor_numel(const VestaTensor* t) { return impl(t)->numel; }
VestaError* tensor_data(const VestaTensor* t, void** out) {
  return guarded([&] { *out = borrowed(t).data_ptr(); });
}

VestaError* tensor_set_requires_grad(VestaTensor* t, int32_t r) {
  return guarded([&] { borrowed(t).set_requires_grad(r != 0); });
}
int32_t tensor_requires_grad(const VestaTensor* t) { return borrowed(t).requires_grad(); }
VestaError* tensor_grad(const VestaTensor* t, VestaTensor** out) {
  return guarded([&] { *out = handle(borrowed(t).grad()); });
}
VestaError* tensor_backward(VestaTensor* t, VestaTensor* gradient, int32_t retain_graph) {
  return guarded([&] { borrowed(t).backward(borrowed(gradient), retain_graph != 0); });
}
int32_t grad_mode_set(int32_t enabled) {
  bool previous = GradMode::is_enabled();
  GradMode::set_enabled(enabled != 0);
  return previous;
}

const Op& checked_op(int32_t op) {
  VESTA_CHECK_AS(IndexError, op >= 0 && size_t(op) < op_count(), "c_api: there is no operator ", op);
  return op_of(uint16_t(op));
}
VestaError* op_find(const char* name, int32_t* op) {
  return guarded([&] {
    const Op* found = find_op(name);
    VESTA_CHECK_AS(NotImplementedError, found, "c_api: there is no operator ", name);
    *op = found->id;
  });
}
VestaError* op_schema(int32_t op, const char** schema, int32_t* num_args, int32_t* num_results) {
  return guarded([&] {
    const Op& o = checked_op(op);
    *schema = o.schema_text.c_str();
    *num_args = o.num_args;
    *num_results = o.num_outs;
  });
}
VestaError* op_call(int32_t op, const VestaValue* args, int32_t num_args, VestaValue* results) {
  return guarded([&] {
    const Op& o = checked_op(op);
    VESTA_CHECK(num_args >= 0 && num_args <= o.num_args, o.name, ": expected at most ", int(o.num_args),
                " arguments, got ", num_args);
    std::vector<Value> values(o.num_args);
    for (int i = 0; i < o.num_args; ++i) {
      if (i < num_args) {
        values[size_t(i)] = reinterpret_cast<const Value&>(args[i]);
        VESTA_CHECK_AS(TypeError, values[size_t(i)].kind <= ValueKind::Generator, o.name, ": argument ", i,
                       " has an unknown kind");
      } else {
        values[size_t(i)] = o.defaults[size_t(i)];
      }
    }
    fill_defaults(o, values.data());
    check_arguments(o, values.data());
    Value outs[16];
    call(o, values.data(), outs);
    for (int j = 0; j < o.num_outs; ++j) reinterpret_cast<Value&>(results[j]) = outs[j];
  });
}
void list_free(VestaValue* list) {
  if (list && list->kind == VESTA_VALUE_TENSOR_LIST) {
    detail::take_list(reinterpret_cast<Value&>(*list));
    *list = VestaValue{};
  }
}

void c_manual_seed(uint64_t seed) { manual_seed(seed); }
void c_set_num_threads(int32_t n) {
  if (n >= 1) set_num_threads(n);
}

constexpr VestaApi kApi = {
    sizeof(VestaApi),
    VESTA_API_MAJOR,
    VESTA_API_MINOR,
    error_kind,
    error_message,
    error_free,
    tensor_empty,
    tensor_from_blob,
    tensor_retain,
    tensor_release,
    tensor_ndim,
    tensor_sizes,
    tensor_strides,
    tensor_dtype,
    tensor_numel,
    tensor_data,
    tensor_set_requires_grad,
    tensor_requires_grad,
    tensor_grad,
    tensor_backward,
    grad_mode_set,
    op_find,
    op_schema,
    op_call,
    list_free,
    c_manual_seed,
    c_set_num_threads,
};

}  // namespace
}  // namespace vesta

extern "C" const VestaApi* vesta_get_api(uint32_t major) {
  return major == VESTA_API_MAJOR ? &vesta::kApi : nullptr;
}
