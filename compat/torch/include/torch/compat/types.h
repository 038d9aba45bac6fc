#pragma once
// Types and small functions of c10, at and torch.
#include "torch/compat/namespaces.h"

namespace vesta {
inline Tensor& Tensor::index_put_(ArrayRef<TensorIndex> indices, const Tensor& value) {
  indexing::put(*this, indices, value);
  return *this;
}
inline Tensor& Tensor::index_put_(ArrayRef<TensorIndex> indices, const Scalar& value) {
  indexing::put(*this, indices, value);
  return *this;
}
inline Tensor& Tensor::index_put_(const std::vector<TensorIndex>& indices, const Tensor& value) {
  return index_put_(ArrayRef<TensorIndex>(indices), value);
}
inline Tensor& Tensor::index_put_(const std::vector<TensorIndex>& indices, const Scalar& value) {
  return index_put_(ArrayRef<TensorIndex>(indices), value);
}
inline void Tensor::backward(const Tensor& gradient, std::optional<bool> retain_graph, bool create_graph,
                             const std::vector<Tensor>& inputs) const {
  VESTA_CHECK(!inputs.empty(), "'inputs' argument to backward cannot be empty");
  autograd::backward({*this}, {gradient}, retain_graph, create_graph, inputs);
}
namespace autograd {
// Tensor and Variable are one.
inline Tensor make_variable(const Tensor& data, bool requires_grad = false, bool = true) {
  return data.detach().set_requires_grad(requires_grad);
}
}  // namespace autograd
}  // namespace vesta

// Operators below autograd, which are the same functions here.
namespace at::native {
using namespace vesta;
}

namespace c10 {
using std::in_place;
using std::make_optional;
using std::nullopt;
using std::nullopt_t;
using std::optional;
using string_view = std::string_view;
template <class T>
using complex = std::complex<T>;
template <class T>
using intrusive_ptr = vesta::nn::ModulePtr<T>;

template <class... Parts>
std::string str(const Parts&... parts) {
  return vesta::detail::message(parts...);
}
template <class Container>
std::string Join(const std::string& delimiter, const Container& parts) {
  std::ostringstream out;
  bool first = true;
  for (const auto& part : parts) {
    if (!first) out << delimiter;
    first = false;
    out << part;
  }
  return out.str();
}
using std::to_string;

// The integers begin ... end - 1, to loop over.
template <class I>
class integer_range {
 public:
  class iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = I;
    using difference_type = std::ptrdiff_t;
    using pointer = I*;
    using reference = I&;
    explicit iterator(I value) : value_(value) {}
    I operator*() const { return value_; }
    iterator& operator++() {
      ++value_;
      return *this;
    }
    iterator operator++(int) { return iterator(value_++); }
    bool operator==(const iterator& o) const { return value_ == o.value_; }

   private:
    I value_;
  };
  integer_range(I begin, I end) : begin_(begin), end_(end) {}
  iterator begin() const { return begin_; }
  iterator end() const { return end_; }

 private:
  iterator begin_, end_;
};
template <class I>
integer_range<I> irange(I end) {
  return {I(0), std::max(I(0), end)};
}
template <class I, class J>
integer_range<J> irange(I begin, J end) {
  return {J(begin), std::max(J(begin), end)};
}

namespace guts {
using std::conjunction;
using std::disjunction;
using std::negation;
using std::to_string;
// An address, as the key of an optimiser's state.
inline std::string to_string(const void* address) {
  return std::to_string(reinterpret_cast<uintptr_t>(address));
}
using std::void_t;
}  // namespace guts

template <class T>
ArrayRef<T> makeArrayRef(const std::vector<T>& v) {
  return v;
}
}  // namespace c10

namespace torch {
using c10::str;
using Dtype = vesta::DType;
using std::enable_if_t;
using std::make_optional;
using std::make_unique;
using std::nullopt;
using std::nullopt_t;
using std::optional;
using string_view = std::string_view;

// libtorch has two spellings of a dtype, which are one type here.
inline DType typeMetaToScalarType(DType t) { return t; }
inline DType scalarTypeToTypeMeta(DType t) { return t; }
inline ScalarType get_default_dtype_as_scalartype() { return get_default_dtype(); }

// libtorch's overloads: a step is given or not there, so that arange(0, 5) is one of them.
inline Tensor arange(const Scalar& end, const TensorOptions& options = {}) {
  return vesta::arange(end, options);
}
inline Tensor arange(const Scalar& start, const Scalar& end, const TensorOptions& options = {}) {
  return vesta::arange(start, end, Scalar(1), options);
}
inline Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step,
                     const TensorOptions& options = {}) {
  return vesta::arange(start, end, step, options);
}
inline Tensor range(const Scalar& start, const Scalar& end, const TensorOptions& options = {}) {
  return vesta::range(start, end, options);
}
inline Tensor range(const Scalar& start, const Scalar& end, const Scalar& step,
                    const TensorOptions& options = {}) {
  return vesta::range(start, end, step, options);
}

using vesta::from_blob;
inline Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides,
                        const TensorOptions& options = {}) {
  return vesta::from_blob(
      data, sizes, strides, [](void*) {}, options);
}
inline Tensor _reshape_alias(const Tensor& self, IntArrayRef sizes, IntArrayRef strides) {
  return vesta::as_strided(self, sizes, strides);
}

// The ATen function compares sizes without dims of size 1, so that [N, 1] goes with [N].
inline Tensor binary_cross_entropy(const Tensor& self, const Tensor& target, const Tensor& weight = {},
                                   int64_t reduction = 1) {
  const bool alike = target.sizes() != self.sizes() && self.squeeze().sizes() == target.squeeze().sizes();
  return vesta::binary_cross_entropy(self, alike ? target.reshape(self.sizes()) : target, weight, reduction);
}

// No accelerator: false and 0, whatever is built in.
namespace cuda {
inline bool is_available() { return false; }
inline bool cudnn_is_available() { return false; }
inline size_t device_count() { return 0; }
inline void manual_seed(uint64_t) {}
inline void manual_seed_all(uint64_t) {}
inline void synchronize(int64_t = -1) {}
}  // namespace cuda

// One pool serves all operators; there is no second one for whole operators.
inline int get_num_interop_threads() { return 1; }
inline void set_num_interop_threads(int) {}
inline void init_num_threads() {}
}  // namespace torch

namespace at {
using c10::str;
using std::optional;
using torch::arange;
using torch::binary_cross_entropy;
using torch::from_blob;
using torch::get_num_interop_threads;
using torch::range;
using torch::scalarTypeToTypeMeta;
using torch::set_num_interop_threads;
using torch::typeMetaToScalarType;
inline bool hasCUDA() { return false; }
inline bool hasMPS() { return false; }
}  // namespace at
