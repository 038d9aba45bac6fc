#pragma once
// Tensor: a counted reference to an n-dimensional array. Copying a Tensor copies the reference, never the elements.
// Operators are methods and functions generated from the op blocks (gen/tensor_methods.h, vesta/ops.h); what is
// written here by hand needs no operator: sizes, data access, autograd state, indexing.
#include <array>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "vesta/array_ref.h"
#include "vesta/bool_arg.h"
#include "vesta/random.h"
#include "vesta/storage_ref.h"
#include "vesta/tensor_impl.h"
#include "vesta/tensor_options.h"
#include "vesta/value.h"

namespace vesta {

class Tensor;
struct TensorIndex;
using TensorList = ArrayRef<Tensor>;

// N-dimensional element access without dispatch: t.accessor<float, 2>()[i][j].
template <class T, int N>
class TensorAccessor {
 public:
  TensorAccessor(T* data, const int64_t* sizes, const int64_t* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  IntArrayRef sizes() const { return {sizes_, size_t(N)}; }
  IntArrayRef strides() const { return {strides_, size_t(N)}; }
  auto operator[](int64_t i) const -> std::conditional_t<N == 1, T&, TensorAccessor<T, N - 1>> {
    if constexpr (N == 1)
      return data_[i * strides_[0]];
    else
      return {data_ + i * strides_[0], sizes_ + 1, strides_ + 1};
  }
  int64_t size(int d) const { return sizes_[d]; }
  int64_t stride(int d) const { return strides_[d]; }
  T* data() const { return data_; }

 private:
  T* data_;
  const int64_t* sizes_;
  const int64_t* strides_;
};

class Tensor {
 public:
  constexpr Tensor() : impl_(nullptr) {}
  constexpr Tensor(std::nullopt_t) : impl_(nullptr) {}  // NOLINT: an absent optional tensor
  // A template, since optional<Tensor> cannot be named while Tensor is incomplete.
  template <class O, std::enable_if_t<std::is_same_v<O, std::optional<Tensor>>, int> = 0>
  Tensor(const O& t) : Tensor(t ? *t : Tensor()) {}  // NOLINT
  Tensor(const Tensor& o) : impl_(o.impl_) { retain(); }
  Tensor(Tensor&& o) noexcept : impl_(o.impl_) { o.impl_ = nullptr; }
  Tensor& operator=(const Tensor& o) & {
    Tensor(o).swap(*this);
    return *this;
  }
  Tensor& operator=(Tensor&& o) & noexcept {
    Tensor(std::move(o)).swap(*this);
    return *this;
  }
  // Assignment to an indexed expression writes the elements: t.index({0}) = 1; t[2] = other.
  Tensor& operator=(const Tensor& o) &&;
  Tensor& operator=(const Scalar& v) &&;
  ~Tensor() {
    if (impl_) detail::release(impl_);
  }
  // Takes over one reference to impl.
  static Tensor adopt(TensorImpl* impl) {
    Tensor t;
    t.impl_ = impl;
    return t;
  }
  // Adds a reference.
  static Tensor borrow(TensorImpl* impl) {
    Tensor t;
    t.impl_ = impl;
    t.retain();
    return t;
  }
  // A slot that holds an impl, seen as a tensor: no reference is added.
  static const Tensor& in_slot(TensorImpl* const& slot) { return reinterpret_cast<const Tensor&>(slot); }
  TensorImpl* impl() const { return impl_; }
  TensorImpl* unsafeGetTensorImpl() const { return impl_; }
  TensorImpl* release_impl() {
    auto* p = impl_;
    impl_ = nullptr;
    return p;
  }
  void swap(Tensor& o) noexcept { std::swap(impl_, o.impl_); }

  bool defined() const { return impl_ != nullptr; }
  explicit operator bool() const { return defined(); }
  bool is_same(const Tensor& o) const { return impl_ == o.impl_; }
  void reset() { Tensor().swap(*this); }
  TensorImpl* unsafeReleaseTensorImpl() { return release_impl(); }
  // How many handles and other owners (graphs, views) this tensor has; 0 where undefined.
  size_t use_count() const { return impl_ ? impl_->refs.load(std::memory_order_relaxed) : 0; }

  // Shape and type.
  int64_t dim() const { return get()->ndim; }
  int64_t ndimension() const { return dim(); }
  int64_t numel() const { return get()->numel; }
  IntArrayRef sizes() const { return {get()->sizes_data(), size_t(impl_->ndim)}; }
  IntArrayRef strides() const { return {get()->strides_data(), size_t(impl_->ndim)}; }
  // Negative d counts from the end; IndexError outside [-dim, dim).
  int64_t size(int64_t d) const;
  int64_t stride(int64_t d) const;
  int64_t storage_offset() const { return get()->offset; }
  DType dtype() const { return get()->dtype; }
  DType scalar_type() const { return dtype(); }
  Device device() const { return Device::unpack(get()->device); }
  Layout layout() const { return Layout::Strided; }
  int64_t get_device() const { return is_cpu() ? -1 : device().index(); }
  TensorOptions options() const { return TensorOptions().dtype(dtype()).device(device()); }
  size_t element_size() const { return vesta::element_size(dtype()); }
  size_t itemsize() const { return element_size(); }
  size_t nbytes() const { return size_t(numel()) * element_size(); }
  bool is_contiguous(MemoryFormat format = MemoryFormat::Contiguous) const;
  bool is_non_overlapping_and_dense() const;
  bool is_floating_point() const { return vesta::is_floating_point(dtype()); }
  bool is_complex() const { return vesta::is_complex(dtype()); }
  bool is_signed() const { return vesta::is_signed(dtype()); }
  bool is_cpu() const { return device().is_cpu(); }
  bool is_cuda() const { return device().is_cuda(); }
  bool is_meta() const { return device().is_meta(); }
  bool is_conj() const { return get()->bits & TensorImpl::kConj; }
  bool is_neg() const { return get()->bits & TensorImpl::kNeg; }
  bool is_inference() const { return get()->bits & TensorImpl::kInference; }
  bool is_view() const { return _is_view(); }
  // Kinds of tensors that Vesta has not got.
  bool is_sparse() const { return false; }
  bool is_sparse_csr() const { return false; }
  bool is_quantized() const { return false; }
  bool is_mkldnn() const { return false; }
  bool is_nested() const { return false; }
  bool is_mps() const { return false; }
  bool is_xpu() const { return false; }
  bool is_xla() const { return false; }
  bool is_hip() const { return false; }
  bool is_vulkan() const { return false; }
  bool is_metal() const { return false; }
  bool is_distributed() const { return false; }
  bool has_names() const { return false; }
  bool _is_zerotensor() const { return false; }
  // The format that the strides follow: channels last for 4 and 5 dims in that order, otherwise contiguous.
  MemoryFormat suggest_memory_format() const;

  // Data.
  bool has_storage() const { return get()->storage != nullptr; }
  // The memory under the elements, shared by views; empty for meta and traced tensors.
  StorageRef storage() const { return StorageRef(get()->storage); }
  bool is_alias_of(const Tensor& o) const { return has_storage() && get()->storage == o.get()->storage; }
  void* data_ptr() const;  // NotImplementedError where the tensor has no data (meta, traced)
  void* mutable_data_ptr() const { return data_ptr(); }
  const void* const_data_ptr() const { return data_ptr(); }
  template <class T>
  T* data_ptr() const {
    detail::check_data_type(get(), DTypeOf<std::remove_const_t<T>>::value);
    return static_cast<T*>(data_ptr());
  }
  template <class T>
  const T* const_data_ptr() const {
    return data_ptr<T>();
  }
  template <class T>
  T* mutable_data_ptr() const {
    return data_ptr<T>();
  }
  template <class T, int N>
  TensorAccessor<T, N> accessor() const& {
    detail::check_accessor(get(), N);
    return {data_ptr<T>(), get()->sizes_data(), get()->strides_data()};
  }
  // The same: CPU code needs no index type of its own.
  template <class T, int N>
  TensorAccessor<T, N> packed_accessor32() const& {
    return accessor<T, N>();
  }
  template <class T, int N>
  TensorAccessor<T, N> packed_accessor64() const& {
    return accessor<T, N>();
  }
  template <class T, int N>
  TensorAccessor<T, N> accessor() && = delete;  // it would point into a tensor that is gone
  // The only element as a number; ValueError unless numel() == 1, or for a uint64 from 2^63 on, which no Scalar holds:
  // item<uint64_t>() reads it.
  Scalar item() const;
  template <class T>
  T item() const {
    if constexpr (std::is_same_v<T, uint64_t>)
      if (dtype() == DType::UInt64) return uint64_t(view(DType::Int64).item().toLong());
    return item().to<T>();
  }
  std::string toString() const;  // "CPUFloatType"
  std::string str() const;       // as printed
  void print() const;            // to standard output

  // Autograd.
  bool requires_grad() const;
  const Tensor& set_requires_grad(bool r) const;
  const Tensor& requires_grad_(bool r = true) const { return set_requires_grad(r); }
  bool is_leaf() const { return grad_fn() == nullptr; }
  // The gradient accumulated by backward(), undefined before. Writable: t.mutable_grad() = Tensor().
  const Tensor& grad() const;
  Tensor& mutable_grad() const;
  // Back-propagates from this tensor; `gradient` may be left out for one element.
  void backward(const Tensor& gradient = {}, std::optional<bool> retain_graph = std::nullopt,
                bool create_graph = false) const;
  // Keeps .grad of a non-leaf.
  void retain_grad() const;
  bool retains_grad() const;
  // Calls hook(grad) when this tensor's gradient has been computed; a defined result replaces it. The id removes it.
  unsigned register_hook(std::function<Tensor(const Tensor&)> hook) const;
  // A leaf's: called after backward has added to .grad, with this tensor.
  void register_post_accumulate_grad_hook(std::function<void(const Tensor&)> hook) const;
  void remove_hook(unsigned id) const;
  GradNode* grad_fn() const;         // null for a leaf
  std::string grad_fn_name() const;  // "MulBackward" and the like; empty for a leaf
  uint32_t _version() const;
  uint32_t output_nr() const { return get()->output_nr; }
  bool _is_view() const;
  Tensor _base() const;
  // The same elements outside of autograd, with its own version counter.
  Tensor data() const;
  Tensor tensor_data() const { return data(); }
  Tensor variable_data() const { return data(); }
  // Makes this tensor show other's elements; keeps identity, grad and hooks.
  void set_data(const Tensor& other) const;

  // Conversions that are not operators of their own.
  Tensor to(const TensorOptions& options, bool non_blocking = false, bool copy = false) const;
  Tensor to(DType dtype, bool non_blocking = false, bool copy = false) const;
  Tensor to(Device device, DType dtype, bool non_blocking = false, bool copy = false) const;
  Tensor to(const Tensor& like) const { return to(like.dtype()); }
  Tensor cpu() const { return *this; }
  Tensor meta() const;  // sizes and strides without elements
  Tensor chalf() const { return to(DType::ComplexHalf); }
  Tensor cuda() const { return to(Device(DeviceType::CUDA), dtype()); }  // NotImplementedError in this build
  Tensor to_dense() const { return *this; }
  Tensor expect_contiguous() const { return is_contiguous() ? *this : contiguous(); }
  Tensor toType(DType t) const { return to(t); }

  // Indexing: integers, Slice, None, Ellipsis, bool, tensors, as in Python. See vesta/indexing.h.
  Tensor index(ArrayRef<TensorIndex> indices) const;
  Tensor index(std::initializer_list<TensorIndex> indices) const;
  Tensor& index_put_(std::initializer_list<TensorIndex> indices, const Tensor& value);
  Tensor& index_put_(std::initializer_list<TensorIndex> indices, const Scalar& value);
  Tensor operator[](int64_t i) const;
  Tensor operator[](const Tensor& index) const;

  Tensor operator-() const;
  Tensor operator~() const;
  Tensor& operator+=(const Tensor& o);
  Tensor& operator+=(const Scalar& o);
  Tensor& operator-=(const Tensor& o);
  Tensor& operator-=(const Scalar& o);
  Tensor& operator*=(const Tensor& o);
  Tensor& operator*=(const Scalar& o);
  Tensor& operator/=(const Tensor& o);
  Tensor& operator/=(const Scalar& o);

#include "vesta/gen/tensor_methods.h"

 private:
  void retain() {
    if (impl_) impl_->refs.fetch_add(1, std::memory_order_relaxed);
  }
  TensorImpl* get() const {
    if (!impl_) [[unlikely]]
      detail::throw_undefined();
    return impl_;
  }
  TensorImpl* impl_;
};

inline Value::Value(const Tensor& t)
    : kind(t.defined() ? ValueKind::Tensor : ValueKind::None), tensor(t.impl()) {}

std::ostream& operator<<(std::ostream& out, const Tensor& t);

// The dtype that arithmetic of both gives (PyTorch's promotion).
DType result_type(const Tensor& a, const Tensor& b);
DType result_type(const Tensor& a, const Scalar& b);
DType result_type(const Scalar& a, const Tensor& b);

// Wraps memory owned by someone else; `deleter` (may be empty) runs once when the last tensor that uses it is gone.
Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options = {});
Tensor from_blob(void* data, IntArrayRef sizes, std::function<void(void*)> deleter,
                 const TensorOptions& options = {});
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, std::function<void(void*)> deleter,
                 const TensorOptions& options = {});

}  // namespace vesta
