// Members of libtorch's Tensor that Vesta has not got. Vesta's generated list of operator methods ends with this file,
// inside the body of class Tensor, where VESTA_TENSOR_MEMBERS names it (torch/compat/namespaces.h). Only inline
// functions: the layout of the class is the library's.

bool is_ipu() const { return false; }
Tensor toBackend(DeviceType) const { return *this; }
template <class T>
T* data() const {
  return data_ptr<T>();
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
