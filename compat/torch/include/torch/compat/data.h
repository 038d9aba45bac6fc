#pragma once
// Parts of torch::data that Vesta spells otherwise: data sets that workers share, and Collate.
#include "torch/compat/namespaces.h"

namespace vesta::data {
namespace transforms {
// A batch of examples becomes one, by a function.
template <class ExampleType, class BatchType = std::vector<ExampleType>>
using Collate = BatchLambda<BatchType, ExampleType>;
}  // namespace transforms

namespace datasets {
// One data set for all workers of a loader, where others are copied; it must take calls from several threads.
template <class D>
class SharedBatchDataset {
 public:
  using BatchType = typename D::BatchType;
  using BatchRequestType = typename detail::RequestOf<D>::type;
  explicit SharedBatchDataset(std::shared_ptr<D> dataset) : dataset_(std::move(dataset)) {}
  auto get_batch(BatchRequestType request) { return dataset_->get_batch(std::move(request)); }
  std::optional<size_t> size() const { return dataset_->size(); }
  D& operator*() { return *dataset_; }
  const D& operator*() const { return *dataset_; }
  D* operator->() { return dataset_.get(); }
  const D* operator->() const { return dataset_.get(); }
  template <class Transform>
  MapDataset<SharedBatchDataset, Transform> map(Transform transform) const {
    return {*this, std::move(transform)};
  }

 private:
  std::shared_ptr<D> dataset_;
};
template <class D, class... Args>
SharedBatchDataset<D> make_shared_dataset(Args&&... args) {
  return SharedBatchDataset<D>(std::make_shared<D>(std::forward<Args>(args)...));
}
}  // namespace datasets
}  // namespace vesta::data
