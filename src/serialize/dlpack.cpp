// DLPack in both directions and both forms of the struct.
#include "vesta/dlpack.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>

#include "base/ref.h"
#include "core/storage.h"
#include "vesta/ops.h"

namespace vesta {
namespace {

using namespace dlpack;  // NOLINT: the structs of one small header

constexpr int32_t kMaxDims = 64;

struct TypeRow {
  DType dtype;
  uint8_t code, bits;
  uint16_t lanes = 1;
};
constexpr TypeRow kTypes[] = {{kBool, kDLBool, 8},
                              {kUInt8, kDLUInt, 8},
                              {kInt8, kDLInt, 8},
                              {kInt16, kDLInt, 16},
                              {kInt32, kDLInt, 32},
                              {kInt64, kDLInt, 64},
                              {kFloat16, kDLFloat, 16},
                              {kBFloat16, kDLBfloat, 16},
                              {kFloat32, kDLFloat, 32},
                              {kFloat64, kDLFloat, 64},
                              {kComplex64, kDLComplex, 64},
                              {kComplex128, kDLComplex, 128},
                              {kUInt16, kDLUInt, 16},
                              {kUInt32, kDLUInt, 32},
                              {kUInt64, kDLUInt, 64},
                              {kFloat8_e4m3fn, kDLFloat8_e4m3fn, 8},
                              {kFloat8_e5m2, kDLFloat8_e5m2, 8},
                              {kFloat8_e4m3fnuz, kDLFloat8_e4m3fnuz, 8},
                              {kFloat8_e5m2fnuz, kDLFloat8_e5m2fnuz, 8},
                              {kFloat8_e8m0fnu, kDLFloat8_e8m0fnu, 8},
                              {kFloat4_e2m1fn_x2, kDLFloat4_e2m1fn, 4, 2},
                              {kComplexHalf, kDLComplex, 32}};

// What an exported struct keeps alive; the struct lies inside, so one deletion frees all.
template <class Managed>
struct Exported {
  Managed managed{};
  Tensor tensor;
  std::vector<int64_t> sizes, strides;
  static void destroy(Managed* self) { delete static_cast<Exported*>(self->manager_ctx); }
};

template <class Managed>
Exported<Managed>* export_tensor(const Tensor& tensor) {
  VESTA_CHECK(tensor.defined(), "to_dlpack: the tensor is undefined");
  VESTA_CHECK(tensor.is_cpu() && (tensor.impl()->bits & TensorImpl::kHasData),
              "to_dlpack: expected a tensor with data on the CPU, got one on ", tensor.device().str());
  VESTA_CHECK(
      !tensor.is_conj() && !tensor.is_neg(),
      "to_dlpack: the tensor is lazily conjugated or negated; call resolve_conj() or resolve_neg() first");
  auto out = std::make_unique<Exported<Managed>>();
  out->tensor = tensor.detach();
  out->sizes = tensor.sizes().vec();
  out->strides = tensor.strides().vec();
  // Consumers may compare strides with C order, where those of single elements do not matter.
  for (size_t d = 0; d < out->sizes.size(); ++d)
    if (out->sizes[d] == 1) out->strides[d] = 1;
  const auto* row =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](auto& r) { return r.dtype == tensor.dtype(); });
  VESTA_CHECK_AS(NotImplementedError, row != std::end(kTypes), "to_dlpack: no type of DLPack is ",
                 dtype_name(tensor.dtype()));
  DLTensor& t = out->managed.dl_tensor;
  t.data = tensor.numel() ? out->tensor.data_ptr() : nullptr;
  t.device = {kDLCPU, 0};
  t.ndim = int32_t(out->sizes.size());
  t.dtype = {row->code, row->bits, row->lanes};
  t.shape = out->sizes.data();
  t.strides = out->strides.data();
  out->managed.manager_ctx = out.get();
  out->managed.deleter = Exported<Managed>::destroy;
  return out.release();
}

struct Described {
  DType dtype;
  std::vector<int64_t> sizes, strides;
  std::byte* data;
  bool must_copy;
};

Described describe(const DLTensor& t) {
  VESTA_CHECK_AS(NotImplementedError, t.device.device_type == kDLCPU,
                 "from_dlpack: expected a tensor on the CPU (device type 1), got device type ",
                 t.device.device_type);
  VESTA_CHECK(t.ndim >= 0 && t.ndim <= kMaxDims, "from_dlpack: expected 0 to ", kMaxDims, " dims, got ",
              t.ndim);
  VESTA_CHECK(t.shape || t.ndim == 0, "from_dlpack: the shape is null");
  const auto* row = std::find_if(std::begin(kTypes), std::end(kTypes), [&](auto& r) {
    return r.code == t.dtype.code && r.bits == t.dtype.bits && r.lanes == t.dtype.lanes;
  });
  VESTA_CHECK_AS(NotImplementedError, row != std::end(kTypes), "from_dlpack: type code ", int(t.dtype.code),
                 " of ", int(t.dtype.bits), " bits and ", t.dtype.lanes, " lanes is not supported");
  Described d{row->dtype, {}, {}, nullptr, false};
  const int64_t width = int64_t(element_size(d.dtype));
  int64_t total = width, numel = 1;
  for (int32_t i = 0; i < t.ndim; ++i) {
    VESTA_CHECK(t.shape[i] >= 0, "from_dlpack: expected sizes >= 0, got ", t.shape[i]);
    VESTA_CHECK(!__builtin_mul_overflow(total, std::max<int64_t>(t.shape[i], 1), &total),
                "from_dlpack: the sizes do not fit into 63 bits");
    numel *= t.shape[i] ? 1 : 0;
    d.sizes.push_back(t.shape[i]);
  }
  d.strides.resize(d.sizes.size());
  if (t.strides)
    d.strides.assign(t.strides, t.strides + t.ndim);
  else
    contiguous_strides(d.sizes.data(), int(d.sizes.size()), d.strides.data());
  const bool empty = numel == 0;
  VESTA_CHECK(t.data || empty, "from_dlpack: the data pointer is null");
  int64_t reach = 0;
  for (size_t i = 0; i < d.sizes.size(); ++i) {
    if (d.sizes[i] <= 1) {
      d.strides[i] = 1;  // not used, and may be anything
      continue;
    }
    int64_t step = 0;
    VESTA_CHECK(!__builtin_mul_overflow(d.strides[i], (d.sizes[i] - 1) * width, &step) && step != INT64_MIN &&
                    !__builtin_add_overflow(reach, step < 0 ? -step : step, &reach),
                "from_dlpack: the strides do not fit into 63 bits");
    d.must_copy |= d.strides[i] < 0;
  }
  if (!empty) {
    d.data = static_cast<std::byte*>(t.data) + t.byte_offset;
    const int64_t alignment = width / (is_complex(d.dtype) ? 2 : 1);
    d.must_copy |= reinterpret_cast<uintptr_t>(d.data) % uintptr_t(alignment) != 0;
  }
  if (empty) contiguous_strides(d.sizes.data(), int(d.sizes.size()), d.strides.data());
  return d;
}

// By bytes: the source may be unaligned and its strides negative.
Tensor copy_of(const Described& d) {
  Tensor out = empty_cpu(d.sizes, d.dtype);
  const size_t width = element_size(d.dtype), dims = d.sizes.size();
  auto* dst = static_cast<std::byte*>(out.data_ptr());
  std::vector<int64_t> index(dims, 0);
  int64_t at = 0;  // elements from the start
  for (int64_t n = out.numel(); n > 0; --n, dst += width) {
    std::memcpy(dst, d.data + at * int64_t(width), width);
    for (size_t i = dims; i-- > 0;) {
      if (++index[i] < d.sizes[i]) {
        at += d.strides[i];
        break;
      }
      index[i] = 0;
      at -= d.strides[i] * (d.sizes[i] - 1);
    }
  }
  return out;
}

// The struct behind an imported tensor. Given back only once armed: until the tensor is finished, an exception leaves the
// struct with the caller.
template <class Managed>
struct Imported {
  std::atomic<uint32_t> refs{1};
  Managed* managed;
  bool armed = false;
  explicit Imported(Managed* m) : managed(m) {}
  static void destroy(Imported* self) {
    if (self->armed && self->managed->deleter) self->managed->deleter(self->managed);
    delete self;
  }
};

template <class Managed>
Tensor import_tensor(Managed* managed, bool read_only) {
  const Described d = describe(managed->dl_tensor);
  if (read_only || d.must_copy || !d.data) {
    Tensor copy = copy_of(d);
    if (managed->deleter) managed->deleter(managed);
    return copy;
  }
  const auto owner = Ref<Imported<Managed>>::adopt(new Imported<Managed>(managed));
  Tensor t = from_blob(
      d.data, d.sizes, d.strides, [owner](void*) {}, TensorOptions(d.dtype));
  owner->armed = true;
  return t;
}

}  // namespace

DLManagedTensorVersioned* to_dlpack(const Tensor& tensor) {
  auto* out = export_tensor<DLManagedTensorVersioned>(tensor);
  out->managed.version = kVersion;
  return &out->managed;
}
DLManagedTensor* to_dlpack_unversioned(const Tensor& tensor) {
  return &export_tensor<DLManagedTensor>(tensor)->managed;
}

Tensor from_dlpack(DLManagedTensorVersioned* managed) {
  VESTA_CHECK(managed, "from_dlpack: the struct is null");
  // Beyond the version nothing may be read of another major version.
  VESTA_CHECK(managed->version.major == kVersion.major, "from_dlpack: expected DLPack ", kVersion.major,
              ".x, got ", managed->version.major, ".", managed->version.minor);
  return import_tensor(managed, managed->flags & kReadOnly);
}
Tensor from_dlpack(DLManagedTensor* managed) {
  VESTA_CHECK(managed, "from_dlpack: the struct is null");
  return import_tensor(managed, false);
}

}  // namespace vesta
