// Stands before Vesta's own list of operator methods, inside the body of class Tensor, and adds those members of
// libtorch's Tensor that Vesta has not got. Only inline functions: the layout of the class is the library's.
#include_next <vesta/gen/tensor_methods.h>

bool is_sparse() const { return false; }
bool is_sparse_csr() const { return false; }
bool is_quantized() const { return false; }
bool is_mkldnn() const { return false; }
bool is_mps() const { return false; }
bool is_xpu() const { return false; }
bool is_xla() const { return false; }
bool is_hip() const { return false; }
bool is_vulkan() const { return false; }
bool is_metal() const { return false; }
bool is_ipu() const { return false; }
bool is_nested() const { return false; }
bool has_names() const { return false; }
bool has_storage() const { return get()->data != nullptr; }
// -1 on the CPU, as in libtorch; an int, so that {kCUDA, t.get_device()} is a Device.
int get_device() const { return is_cpu() ? -1 : device().index(); }
// How many tensors refer to this one's implementation.
size_t use_count() const { return impl_ ? impl_->refs.load(std::memory_order_relaxed) : 0; }
Tensor toBackend(DeviceType) const { return *this; }
template <class T>
T* data() const {
  return data_ptr<T>();
}
template <class T, size_t N>
TensorAccessor<T, int(N)> packed_accessor64() const& {
  return accessor<T, int(N)>();
}
// t.to(device), and t.to({torch::kCUDA, 0}).
Tensor to(Device device, bool non_blocking = false, bool copy = false) const {
  return to(TensorOptions(device), non_blocking, copy);
}
Tensor to(DeviceType device, bool non_blocking = false, bool copy = false) const {
  return to(TensorOptions(device), non_blocking, copy);
}
// With a list of indices that is not written in braces.
Tensor& index_put_(ArrayRef<TensorIndex> indices, const Tensor& value);
Tensor& index_put_(ArrayRef<TensorIndex> indices, const Scalar& value);
Tensor& index_put_(const std::vector<TensorIndex>& indices, const Tensor& value);
Tensor& index_put_(const std::vector<TensorIndex>& indices, const Scalar& value);
// x.var(0) means a dim; without these the 0 would become the bool of var(unbiased).
Tensor var(int dim) const {
  const int64_t d = dim;
  return var(OptionalIntArrayRef(d), true);
}
Tensor std(int dim) const {
  const int64_t d = dim;
  return std(OptionalIntArrayRef(d), true);
}
