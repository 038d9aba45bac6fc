#pragma once
// Transforms as classes to derive from: of batches, of examples, of an example's tensor.
//   struct Flip : data::transforms::TensorTransform<> {
//     Tensor operator()(Tensor x) override { return x.flip({-1}); }
//   };
#include "vesta/data_loader.h"

namespace vesta::data::transforms {

template <class InputBatch, class OutputBatch>
class BatchTransform {
 public:
  using InputBatchType = InputBatch;
  using OutputBatchType = OutputBatch;
  virtual ~BatchTransform() = default;
  virtual OutputBatch apply_batch(InputBatch batch) = 0;
};

template <class Input, class Output>
class Transform : public BatchTransform<std::vector<Input>, std::vector<Output>> {
 public:
  using InputType = Input;
  using OutputType = Output;
  virtual Output apply(Input input) = 0;
  std::vector<Output> apply_batch(std::vector<Input> batch) override {
    std::vector<Output> out;
    out.reserve(batch.size());
    for (Input& input : batch) out.push_back(apply(std::move(input)));
    return out;
  }
};

// Joins a batch of examples into one.
template <class Output, class BatchOfExamples = std::vector<Output>>
using Collation = BatchTransform<BatchOfExamples, Output>;

// Changes the data of each example, and leaves the target.
template <class Target = Tensor>
class TensorTransform : public Transform<Example<Tensor, Target>, Example<Tensor, Target>> {
 public:
  virtual Tensor operator()(Tensor input) = 0;
  Example<Tensor, Target> apply(Example<Tensor, Target> example) override {
    example.data = (*this)(std::move(example.data));
    return example;
  }
};

template <class Target = Tensor>
class TensorLambda : public TensorTransform<Target> {
 public:
  using FunctionType = std::function<Tensor(Tensor)>;
  explicit TensorLambda(FunctionType function) : function_(std::move(function)) {
    VESTA_CHECK(function_, "TensorLambda: the function is empty");
  }
  Tensor operator()(Tensor input) override { return function_(std::move(input)); }

 private:
  FunctionType function_;
};

}  // namespace vesta::data::transforms
