// Datasets over tensors, and collation.
#include "vesta/data.h"
#include "vesta/ops.h"

namespace vesta::data {
namespace datasets {
namespace {

std::optional<size_t> rows(const Tensor& tensor) { return size_t(tensor.size(0)); }
Tensor row(const Tensor& tensor, size_t index) {
  VESTA_CHECK_AS(IndexError, index < size_t(tensor.size(0)), "TensorDataset: index ", index,
                 " is outside of ", tensor.size(0), " examples");
  return tensor.select(0, int64_t(index));
}
void check_tensor(const Tensor& tensor) {
  VESTA_CHECK(tensor.defined() && tensor.dim() > 0, "TensorDataset: expected a tensor with at least one dim");
}

}  // namespace

TensorDataset::TensorDataset(Tensor tensor) : tensor_(std::move(tensor)) { check_tensor(tensor_); }
TensorDataset::TensorDataset(const std::vector<Tensor>& tensors)
    : TensorDataset(transforms::stack_tensors(tensors)) {}
TensorExample TensorDataset::get(size_t index) { return row(tensor_, index); }
std::optional<size_t> TensorDataset::size() const { return rows(tensor_); }

TensorPairDataset::TensorPairDataset(Tensor data, Tensor target)
    : data_(std::move(data)), target_(std::move(target)) {
  check_tensor(data_);
  check_tensor(target_);
  VESTA_CHECK(data_.size(0) == target_.size(0),
              "TensorPairDataset: expected as many targets as examples, got ", target_.size(0), " and ",
              data_.size(0));
}
Example<> TensorPairDataset::get(size_t index) { return {row(data_, index), row(target_, index)}; }
std::optional<size_t> TensorPairDataset::size() const { return rows(data_); }

}  // namespace datasets

namespace transforms {

Tensor stack_tensors(std::vector<Tensor> tensors) {
  VESTA_CHECK(!tensors.empty(), "Stack: expected at least one example");
  return vesta::stack(tensors);
}

Example<> Stack<Example<>>::apply_batch(std::vector<Example<>> batch) const {
  std::vector<Tensor> data, target;
  data.reserve(batch.size());
  target.reserve(batch.size());
  for (Example<>& example : batch) {
    data.push_back(std::move(example.data));
    target.push_back(std::move(example.target));
  }
  return {stack_tensors(std::move(data)), stack_tensors(std::move(target))};
}

TensorExample Stack<TensorExample>::apply_batch(std::vector<TensorExample> batch) const {
  std::vector<Tensor> data;
  data.reserve(batch.size());
  for (TensorExample& example : batch) data.push_back(std::move(example.data));
  return stack_tensors(std::move(data));
}

Tensor detail::channels(ArrayRef<double> values) {
  VESTA_CHECK(values.size() > 0, "Normalize: expected at least one number");
  Tensor out = vesta::empty({int64_t(values.size()), 1, 1}, TensorOptions(kFloat32));
  for (size_t i = 0; i < values.size(); ++i) out.data_ptr<float>()[i] = float(values[i]);
  return out;
}
Tensor detail::normalized(const Tensor& x, const Tensor& mean, const Tensor& stddev) {
  return (x - mean) / stddev;
}

}  // namespace transforms
}  // namespace vesta::data
