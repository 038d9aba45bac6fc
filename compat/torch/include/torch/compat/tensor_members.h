// Members of libtorch's Tensor that Vesta has not got. Vesta's generated list of operator methods ends with this file,
// inside the body of class Tensor, where VESTA_TENSOR_MEMBERS names it (torch/compat/namespaces.h). Only inline
// functions: the layout of the class is the library's.

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
bool is_view() const { return _is_view(); }
// Throws: there is no CUDA here.
Tensor cuda() const { return to(TensorOptions(Device(DeviceType::CUDA))); }
// The memory that views share.
struct StorageRef {
  void* pointer;
  size_t size;
  void* data() const { return pointer; }
  size_t nbytes() const { return size; }
};
StorageRef storage() const {
  const Storage* s = get()->storage;
  return {s ? s->data : get()->data, s ? size_t(s->bytes) : 0};
}
// A hook that only looks.
template <class F>
requires std::is_void_v<std::invoke_result_t<F&, Tensor>>
unsigned register_hook(F hook) const {
  return register_hook(std::function<Tensor(const Tensor&)>([hook](const Tensor& grad) mutable {
    hook(grad);
    return Tensor();
  }));
}
// Into the gradients of `inputs` alone.
void backward(const Tensor& gradient, std::optional<bool> retain_graph, bool create_graph,
              const std::vector<Tensor>& inputs) const;
