// Tensor's own methods: sizes, data access, foreign memory. What needs autograd is in autograd/tensor_methods.cpp.
#include "vesta/tensor.h"

#include <cstring>

#include "base/checked_math.h"
#include "core/call.h"
#include "core/storage.h"
#include "core/tensor_ext.h"
#include "core/thread_state.h"
#include "vesta/ops.h"

namespace vesta {
namespace detail {

void throw_undefined() { throw ValueError("Tensor: this tensor is undefined"); }
void check_data_type(const TensorImpl* impl, DType wanted) {
  VESTA_CHECK_AS(TypeError, impl->dtype == wanted, "data_ptr: expected ", dtype_name(wanted),
                 ", the tensor is ", dtype_name(impl->dtype));
}
void check_accessor(const TensorImpl* impl, int dims) {
  VESTA_CHECK(impl->ndim == dims, "accessor: expected ", dims, " dims, the tensor has ", int(impl->ndim));
}

}  // namespace detail

namespace {
int64_t wrap(const Tensor& t, int64_t d, const char* what) {
  int64_t n = t.dim();
  VESTA_CHECK_AS(IndexError, n > 0 && d >= -n && d < n, what, ": expected a dim in [", -n, ", ", n - 1,
                 "], got ", d);
  return d < 0 ? d + n : d;
}

template <class T>
Scalar element(T v) {
  return Scalar(v);
}
Scalar element(Float4_e2m1fn_x2) {
  throw TypeError("item: a float4_e2m1fn_x2 element is two numbers; view the tensor as uint8");
}
}  // namespace

StorageRef::~StorageRef() {
  if (storage_) release_storage(storage_);
}

int64_t Tensor::size(int64_t d) const { return sizes()[size_t(wrap(*this, d, "size"))]; }
int64_t Tensor::stride(int64_t d) const { return strides()[size_t(wrap(*this, d, "stride"))]; }

bool Tensor::is_contiguous(MemoryFormat format) const {
  if (format == MemoryFormat::Contiguous || format == MemoryFormat::Preserve) return get()->contiguous();
  // Channels last: C has stride 1, then the spatial dims from the right, then N.
  int64_t n = dim();
  if (n != (format == MemoryFormat::ChannelsLast ? 4 : 5)) return false;
  int64_t expected = 1;
  auto check = [&](int64_t d) {
    bool ok = size(d) == 1 || stride(d) == expected;
    expected *= size(d);
    return ok;
  };
  if (!check(1)) return false;
  for (int64_t d = n - 1; d >= 2; --d)
    if (!check(d)) return false;
  return check(0);
}
MemoryFormat Tensor::suggest_memory_format() const {
  bool plain = get()->contiguous();
  if (!plain && is_contiguous(MemoryFormat::ChannelsLast)) return MemoryFormat::ChannelsLast;
  if (!plain && is_contiguous(MemoryFormat::ChannelsLast3d)) return MemoryFormat::ChannelsLast3d;
  return MemoryFormat::Contiguous;
}
bool Tensor::is_non_overlapping_and_dense() const { return get()->bits & TensorImpl::kDense; }

void* Tensor::data_ptr() const {
  TensorImpl* impl = get();
  VESTA_CHECK_AS(NotImplementedError, (impl->bits & TensorImpl::kHasData) || impl->numel == 0,
                 "data_ptr: a meta or traced tensor has no data");
  return impl->data;
}

Scalar Tensor::item() const {
  TensorImpl* impl = get();
  VESTA_CHECK(impl->numel == 1, "item: expected a tensor with one element, got ", impl->numel);
  VESTA_CHECK_AS(NotImplementedError, impl->bits & TensorImpl::kHasData,
                 "item: a meta or traced tensor has no value; keep the computation in tensors while tracing");
  // The trace may have recorded writes to this tensor, and a later run may find other values in it.
  VESTA_CHECK_AS(NotImplementedError, !thread_state.tracer,
                 "item: a value cannot be read while tracing; keep the computation in tensors");
  Tensor t = *this;
  if (impl->bits & (TensorImpl::kConj | TensorImpl::kNeg)) t = t.resolve_conj().resolve_neg();
  const void* p = t.impl()->data;
  switch (impl->dtype) {
#define VESTA_ROW(name, type, text, torch_name, kind) \
  case DType::name:                                   \
    return element(*static_cast<const type*>(p));
    VESTA_ALL_DTYPES(VESTA_ROW)
#undef VESTA_ROW
    case DType::Undefined:
      break;
  }
  throw TypeError("item: the tensor has no dtype");
}

std::string Tensor::toString() const {
  return (is_cpu() ? "CPU" : "Meta") + std::string(to_string(dtype())) + "Type";
}

Tensor Tensor::to(const TensorOptions& options, bool non_blocking, bool copy) const {
  return vesta::to(*this, options, non_blocking, copy);
}
Tensor Tensor::to(DType t, bool non_blocking, bool copy) const {
  if (!copy && dtype() == t) return *this;
  return vesta::to(*this, TensorOptions(t), non_blocking, copy);
}
Tensor Tensor::to(Device d, DType t, bool non_blocking, bool copy) const {
  return vesta::to(*this, TensorOptions(t).device(d), non_blocking, copy);
}

Tensor Tensor::meta() const {
  return is_meta() ? *this
                   : empty_strided(sizes(), strides(), TensorOptions(dtype()).device(DeviceType::Meta));
}

Tensor Tensor::operator-() const { return neg(); }
Tensor Tensor::operator~() const { return bitwise_not(); }
Tensor& Tensor::operator+=(const Tensor& o) { return add_(o); }
Tensor& Tensor::operator+=(const Scalar& o) { return add_(o); }
Tensor& Tensor::operator-=(const Tensor& o) { return sub_(o); }
Tensor& Tensor::operator-=(const Scalar& o) { return sub_(o); }
Tensor& Tensor::operator*=(const Tensor& o) { return mul_(o); }
Tensor& Tensor::operator*=(const Scalar& o) { return mul_(o); }
Tensor& Tensor::operator/=(const Tensor& o) { return div_(o); }
Tensor& Tensor::operator/=(const Scalar& o) { return div_(o); }
Tensor& Tensor::operator=(const Tensor& o) && {
  copy_(o);
  return *this;
}
Tensor& Tensor::operator=(const Scalar& v) && {
  fill_(v);
  return *this;
}

Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options) {
  return from_blob(data, sizes, std::function<void(void*)>(), options);
}
Tensor from_blob(void* data, IntArrayRef sizes, std::function<void(void*)> deleter,
                 const TensorOptions& options) {
  checked_numel({sizes.data(), sizes.size()}, "from_blob");
  std::vector<int64_t> strides(sizes.size());
  contiguous_strides(sizes.data(), int(sizes.size()), strides.data());
  return from_blob(data, sizes, strides, std::move(deleter), options);
}
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, std::function<void(void*)> deleter,
                 const TensorOptions& options) {
  VESTA_CHECK(sizes.size() == strides.size(), "from_blob: expected as many strides as sizes, got ",
              strides.size(), " and ", sizes.size());
  VESTA_CHECK(options.device().is_cpu(), "from_blob: expected a CPU device, got ", options.device().str());
  int64_t numel = checked_numel({sizes.data(), sizes.size()}, "from_blob");
  VESTA_CHECK(data || numel == 0, "from_blob: the data pointer is null");
  int64_t extent = numel ? 1 : 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    VESTA_CHECK(strides[d] >= 0, "from_blob: expected strides >= 0, got ", strides[d]);
    if (numel) extent = checked_add(extent, checked_mul(sizes[d] - 1, strides[d], "from_blob"), "from_blob");
  }
  DType dtype = options.dtype();
  Storage* s = new_external_storage(data, size_t(extent) * vesta::element_size(dtype), std::move(deleter));
  Tensor t = Tensor::adopt(new_alias(s));
  release_storage(s);
  TensorImpl* impl = t.impl();
  impl->dtype = dtype;
  set_ndim(impl, int(sizes.size()));
  std::copy(sizes.begin(), sizes.end(), impl->sizes_data());
  std::copy(strides.begin(), strides.end(), impl->strides_data());
  refresh_facts(impl);
  if (options.requires_grad()) t.set_requires_grad(true);
  return t;
}

TensorExt& ensure_ext(TensorImpl* impl) {
  if (!impl->ext) impl->ext = new TensorExt;
  return *impl->ext;
}
void release_ext(TensorExt* ext) {
  if (ext->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete ext;
}

}  // namespace vesta
