#pragma once
// Data sets by index, samplers, transforms and the DataLoader.
//   auto set = data::datasets::TensorPairDataset(images, labels).map(data::transforms::Stack<>());
//   auto loader = data::make_data_loader(std::move(set), data::DataLoaderOptions().batch_size(64).workers(2).seed(7));
//   for (auto& batch : *loader) step(batch.data, batch.target);
// The order of examples depends on the seed and the epoch alone, never on the number of workers.
#include <chrono>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "vesta/option_arg.h"
#include "vesta/ordered_dict.h"
#include "vesta/random.h"
#include "vesta/tensor.h"

namespace vesta::data {

struct NoTarget {};
template <class Data = Tensor, class Target = Tensor>
struct Example {
  using DataType = Data;
  using TargetType = Target;
  Data data;
  Target target;
};
template <class Data>
struct Example<Data, NoTarget> {
  using DataType = Data;
  using TargetType = NoTarget;
  Example() = default;
  Example(Data d) : data(std::move(d)) {}  // NOLINT: implicit as in libtorch, and back
  operator Data&() { return data; }        // NOLINT
  operator const Data&() const { return data; }
  Data data;
};
using TensorExample = Example<Tensor, NoTarget>;

// A generator for random transforms: inside get(), get_batch() and transforms it depends only on the loader's seed,
// the epoch and the number of the batch, so that augmentation repeats for any number of workers. Each thread has its
// own; outside of a loader it starts with seed 0.
Generator& batch_generator();

namespace datasets {

template <class Source, class Transform>
class MapDataset;

// Examples by index. Derive with Self = the class itself. Each worker of a loader uses a copy, so get() needs no
// locks, and a dataset should be cheap to copy (tensors share their memory).
template <class Self, class SingleExample = Example<>>
class Dataset {
 public:
  using ExampleType = SingleExample;
  using BatchType = std::vector<ExampleType>;
  virtual ~Dataset() = default;
  virtual ExampleType get(size_t index) = 0;
  // Absent for streams, which need a sampler that knows when to stop.
  virtual std::optional<size_t> size() const = 0;
  virtual BatchType get_batch(ArrayRef<size_t> indices) {
    BatchType batch;
    batch.reserve(indices.size());
    for (const size_t i : indices) batch.push_back(get(i));
    return batch;
  }
  // The same data seen through a transform: an object with apply_batch(batch), or a function of a batch or of one
  // example.
  template <class Transform>
  MapDataset<Self, Transform> map(Transform transform) const& {
    return {static_cast<const Self&>(*this), std::move(transform)};
  }
  template <class Transform>
  MapDataset<Self, Transform> map(Transform transform) && {
    return {std::move(static_cast<Self&>(*this)), std::move(transform)};
  }
};

namespace detail {
// What get_batch takes: indices, unless the data set says otherwise.
template <class T, class = void>
struct RequestOf {
  using type = ArrayRef<size_t>;
};
template <class T>
struct RequestOf<T, std::void_t<typename T::BatchRequestType>> {
  using type = typename T::BatchRequestType;
};

template <class T, class Batch>
concept BatchTransform = requires(T& t, Batch b) {
  t.apply_batch(std::move(b));
};

template <class Transform, class Batch>
auto apply(Transform& transform, Batch batch) {
  if constexpr (BatchTransform<Transform, Batch>) {
    return transform.apply_batch(std::move(batch));
  } else if constexpr (std::is_invocable_v<Transform&, Batch>) {
    return transform(std::move(batch));
  } else {
    std::vector<std::decay_t<decltype(transform(std::move(batch.front())))>> out;
    out.reserve(batch.size());
    for (auto& example : batch) out.push_back(transform(std::move(example)));
    return out;
  }
}
}  // namespace detail

template <class Source, class Transform>
class MapDataset {
 public:
  using BatchRequestType = typename detail::RequestOf<Source>::type;
  using SourceBatch =
      std::decay_t<decltype(std::declval<Source&>().get_batch(std::declval<BatchRequestType>()))>;
  using BatchType = decltype(detail::apply(std::declval<Transform&>(), std::declval<SourceBatch>()));
  MapDataset(Source source, Transform transform)
      : source_(std::move(source)), transform_(std::move(transform)) {}
  BatchType get_batch(BatchRequestType request) {
    return detail::apply(transform_, source_.get_batch(request));
  }
  std::optional<size_t> size() const { return source_.size(); }
  const Source& dataset() const { return source_; }
  const Transform& transform() const { return transform_; }
  template <class Next>
  MapDataset<MapDataset, Next> map(Next next) const {
    return {*this, std::move(next)};
  }

 private:
  Source source_;
  Transform transform_;
};

// The rows of a tensor [n, ...].
class TensorDataset : public Dataset<TensorDataset, TensorExample> {
 public:
  explicit TensorDataset(Tensor tensor);
  // Joins tensors of one shape: example i is tensors[i].
  explicit TensorDataset(const std::vector<Tensor>& tensors);
  TensorExample get(size_t index) override;
  std::optional<size_t> size() const override;
  const Tensor& tensor() const { return tensor_; }

 private:
  Tensor tensor_;
};

// Rows of two tensors with the same first size. ValueError otherwise.
class TensorPairDataset : public Dataset<TensorPairDataset> {
 public:
  TensorPairDataset(Tensor data, Tensor target);
  Example<> get(size_t index) override;
  std::optional<size_t> size() const override;

 private:
  Tensor data_, target_;
};

}  // namespace datasets

namespace transforms {

// Stacks the tensors of a batch of examples along a new first dim.
Tensor stack_tensors(std::vector<Tensor> tensors);
template <class ExampleType = Example<>>
struct Stack;
template <>
struct Stack<Example<>> {
  Example<> apply_batch(std::vector<Example<>> batch) const;
};
template <>
struct Stack<TensorExample> {
  TensorExample apply_batch(std::vector<TensorExample> batch) const;
};

// A function of one example, and of a batch, with their types spelled out as in libtorch. map() also takes plain functions.
template <class Input, class Output = Input>
class Lambda {
 public:
  explicit Lambda(std::function<Output(Input)> f) : f_(std::move(f)) {}
  std::vector<Output> apply_batch(std::vector<Input> batch) const {
    std::vector<Output> out;
    out.reserve(batch.size());
    for (Input& example : batch) out.push_back(f_(std::move(example)));
    return out;
  }

 private:
  std::function<Output(Input)> f_;
};
template <class Input, class Output = Input>
class BatchLambda {
 public:
  explicit BatchLambda(std::function<Output(Input)> f) : f_(std::move(f)) {}
  Output apply_batch(Input batch) const { return f_(std::move(batch)); }

 private:
  std::function<Output(Input)> f_;
};

namespace detail {
// One number, or one for each channel, as [n, 1, 1].
Tensor channels(ArrayRef<double> values);
Tensor normalized(const Tensor& x, const Tensor& mean, const Tensor& stddev);
}  // namespace detail

// (x - mean) / stddev of each example's data, broadcast.
template <class Target = Tensor>
class Normalize {
 public:
  Normalize(Tensor mean, Tensor stddev) : mean_(std::move(mean)), stddev_(std::move(stddev)) {}
  // One number, or one for each channel of [C, H, W].
  Normalize(ArrayRef<double> mean, ArrayRef<double> stddev)
      : Normalize(detail::channels(mean), detail::channels(stddev)) {}
  std::vector<Example<Tensor, Target>> apply_batch(std::vector<Example<Tensor, Target>> batch) const {
    for (auto& example : batch) example.data = detail::normalized(example.data, mean_, stddev_);
    return batch;
  }

 private:
  Tensor mean_, stddev_;
};

}  // namespace transforms

namespace samplers {

// Decides which examples form the next batch. Orders are functions of (seed, epoch).
class Sampler {
 public:
  virtual ~Sampler() = default;
  // Starts an epoch.
  virtual void reset(uint64_t seed, uint64_t epoch) = 0;
  // Up to batch_size indices; nothing at the end of the epoch.
  virtual std::optional<std::vector<size_t>> next(size_t batch_size) = 0;
};

// A sampler over an order that is known at the start of an epoch.
class OrderedSampler : public Sampler {
 public:
  std::optional<std::vector<size_t>> next(size_t batch_size) override;
  // How many examples of the epoch have been given.
  size_t index() const { return position_ - begin_; }

 protected:
  // begin, begin + 1, ... end - 1, through `order` where it is not empty.
  void start(std::vector<size_t> order, size_t begin, size_t end);

 private:
  std::vector<size_t> order_;
  size_t begin_ = 0, position_ = 0, end_ = 0;
};

class SequentialSampler : public OrderedSampler {
 public:
  explicit SequentialSampler(size_t size) : size_(size) { reset(); }
  void reset(uint64_t seed, uint64_t epoch) override;
  // Without a loader: from the start, of as many examples as said.
  void reset(std::optional<size_t> new_size = std::nullopt);

 private:
  size_t size_;
};

// A new permutation each epoch.
class RandomSampler : public OrderedSampler {
 public:
  explicit RandomSampler(size_t size) : size_(size) { reset(); }
  void reset(uint64_t seed, uint64_t epoch) override;
  // Without a loader: a new permutation, by the default generator.
  void reset(std::optional<size_t> new_size = std::nullopt);

 private:
  size_t size_;
};

// One of num_replicas disjoint parts of equal length. With allow_duplicates the order is continued from its start until
// it divides evenly; without, every rank gets floor(size / num_replicas) examples and the rest is left out, so that
// all ranks make the same number of steps.
class DistributedSampler : public OrderedSampler {
 public:
  DistributedSampler(size_t size, size_t num_replicas, size_t rank, bool allow_duplicates, bool random);
  void reset(uint64_t seed, uint64_t epoch) override;
  // Without a loader: the order of set_epoch's epoch and seed 0. A loader counts its epochs itself.
  void reset(std::optional<size_t> new_size = std::nullopt);
  void set_epoch(size_t epoch) { epoch_ = epoch; }
  size_t epoch() const { return epoch_; }
  size_t local_size() const { return local_size_; }

 private:
  size_t size_, num_replicas_, rank_, local_size_ = 0, epoch_ = 0;
  bool allow_duplicates_, random_;
};
class DistributedRandomSampler : public DistributedSampler {
 public:
  DistributedRandomSampler(size_t size, size_t num_replicas = 1, size_t rank = 0,
                           bool allow_duplicates = true)
      : DistributedSampler(size, num_replicas, rank, allow_duplicates, true) {}
};
class DistributedSequentialSampler : public DistributedSampler {
 public:
  DistributedSequentialSampler(size_t size, size_t num_replicas = 1, size_t rank = 0,
                               bool allow_duplicates = true)
      : DistributedSampler(size, num_replicas, rank, allow_duplicates, false) {}
};

// A permutation of 0 ... size - 1: Fisher-Yates with a splitmix64 stream started from (seed, stream).
std::vector<size_t> permutation(size_t size, uint64_t seed, uint64_t stream);

}  // namespace samplers

class DataLoaderOptions {
 public:
  DataLoaderOptions(size_t batch_size = 1) : batch_size_(batch_size) {}  // NOLINT
  VESTA_ARG(size_t, batch_size);
  // Threads that make batches; 0: the caller makes them.
  VESTA_ARG(size_t, workers) = 0;
  // Batches that may be under way or waiting at a time; default 2 * workers.
  VESTA_ARG(std::optional<size_t>, max_jobs) = std::nullopt;
  // Longest wait for a batch; absent: no limit.
  VESTA_ARG(std::optional<int64_t>, timeout_ms) = std::nullopt;

 public:
  DataLoaderOptions& timeout(std::chrono::milliseconds limit) { return timeout_ms(limit.count()); }
  // false: batches come as they get ready, so their order may vary from run to run.
  VESTA_ARG(bool, enforce_ordering) = true;
  // Leaves out a last batch that is smaller than batch_size.
  VESTA_ARG(bool, drop_last) = false;
  // Absent: taken from the default generator, which manual_seed sets.
  VESTA_ARG(std::optional<uint64_t>, seed) = std::nullopt;
};

// Where a loader stands: enough to continue in another process with the same data and options (exactly so with
// enforce_ordering). A finished epoch is the start of the next one.
struct DataLoaderState {
  uint64_t seed = 0;
  uint64_t epoch = 0;     // of the batch that comes next
  uint64_t position = 0;  // batches of that epoch already handed out
};

namespace detail {

using OwnedBatch = std::unique_ptr<void, void (*)(void*)>;

// The part of a loader that does not depend on the type of a batch: threads, order, errors, state.
class LoaderEngine {
 public:
  // Makes a batch; `worker` says which copy of the dataset to use, and is < max(1, workers).
  using Produce = std::function<OwnedBatch(size_t worker, const std::vector<size_t>& indices)>;
  LoaderEngine(const DataLoaderOptions& options, std::unique_ptr<samplers::Sampler> sampler, Produce produce);
  ~LoaderEngine();
  LoaderEngine(const LoaderEngine&) = delete;
  void begin_epoch();
  // Null at the end of the epoch.
  OwnedBatch next();
  DataLoaderState state() const;
  void load_state(const DataLoaderState& state);

 private:
  struct Impl;
  void stop();
  std::unique_ptr<Impl> impl_;
};

size_t checked_size(std::optional<size_t> size);
// The seed of the options, or one from the default generator.
uint64_t loader_seed(const DataLoaderOptions& options);

// A stream is asked for as many examples as there are indices.
template <class Request>
Request request_from(const std::vector<size_t>& indices) {
  if constexpr (std::is_same_v<Request, size_t>)
    return indices.size();
  else
    return indices;
}

// seed, epoch and position as 0-dim int64 tensors, for checkpoints. ValueError where one is missing.
OrderedDict<std::string, Tensor> to_state_dict(const DataLoaderState& state);
DataLoaderState from_state_dict(const OrderedDict<std::string, Tensor>& dict);

// Data sets without indices: vesta/data_stream.h.
template <class T>
concept Stateful = requires(T& t) {
  typename T::BatchType;
  t.reset(uint64_t(0), uint64_t(0));
  t.get_batch(size_t(1));
};

}  // namespace detail

// Iterates over batches, epoch after epoch: each begin() starts the next one. An exception in a worker is rethrown to
// the caller when the turn of its batch comes; iteration may go on behind it. Externally synchronised.
template <class Dataset>
class DataLoader {
 public:
  using Request = typename datasets::detail::RequestOf<Dataset>::type;
  using BatchType = std::decay_t<decltype(std::declval<Dataset&>().get_batch(std::declval<Request>()))>;

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = BatchType;
    using difference_type = std::ptrdiff_t;
    using pointer = BatchType*;
    using reference = BatchType&;
    Iterator() = default;
    explicit Iterator(DataLoader* loader) : loader_(loader) { ++*this; }
    // ValueError at the end, here and for ++.
    BatchType& operator*() {
      VESTA_CHECK(batch_, "DataLoader: Attempted to dereference iterator that was past the end");
      return *batch_;
    }
    BatchType* operator->() { return &**this; }
    Iterator& operator++() {
      VESTA_CHECK(loader_, "DataLoader: Attempted to increment iterator past the end");
      batch_.reset();
      batch_ = loader_->next();
      if (!batch_) loader_ = nullptr;
      return *this;
    }
    bool operator==(const Iterator& o) const { return loader_ == o.loader_; }

   private:
    DataLoader* loader_ = nullptr;
    std::optional<BatchType> batch_;
  };

  DataLoader(Dataset dataset, std::unique_ptr<samplers::Sampler> sampler, const DataLoaderOptions& options)
      : options_(options),
        copies_(options.workers() > 1 ? options.workers() : 1, dataset),
        engine_(options, std::move(sampler), [this](size_t worker, const std::vector<size_t>& indices) {
          auto* batch = new BatchType(copies_[worker].get_batch(detail::request_from<Request>(indices)));
          return detail::OwnedBatch(batch, [](void* p) { delete static_cast<BatchType*>(p); });
        }) {}

  Iterator begin() {
    engine_.begin_epoch();
    return Iterator(this);
  }
  Iterator end() { return {}; }
  // The next batch of the epoch that begin() or load_state() started (the first, at first); nothing at its end.
  std::optional<BatchType> next() {
    detail::OwnedBatch batch = engine_.next();
    if (!batch) return std::nullopt;
    return std::move(*static_cast<BatchType*>(batch.get()));
  }
  const DataLoaderOptions& options() const { return options_; }
  DataLoaderState state() const { return engine_.state(); }
  // The next begin() or next() continues there.
  void load_state(const DataLoaderState& state) { engine_.load_state(state); }
  // The same as tensors, for checkpoints.
  OrderedDict<std::string, Tensor> state_dict() const { return detail::to_state_dict(state()); }
  void load_state_dict(const OrderedDict<std::string, Tensor>& dict) {
    load_state(detail::from_state_dict(dict));
  }

 private:
  DataLoaderOptions options_;
  std::vector<Dataset> copies_;
  detail::LoaderEngine engine_;  // last: its threads use what is above
};

template <class Dataset>
std::unique_ptr<DataLoader<Dataset>> make_data_loader(Dataset dataset,
                                                      std::unique_ptr<samplers::Sampler> sampler,
                                                      const DataLoaderOptions& options = {}) {
  return std::make_unique<DataLoader<Dataset>>(std::move(dataset), std::move(sampler), options);
}
template <class SamplerType, class Dataset,
          std::enable_if_t<std::is_base_of_v<samplers::Sampler, SamplerType>, int> = 0>
std::unique_ptr<DataLoader<Dataset>> make_data_loader(Dataset dataset, SamplerType sampler,
                                                      const DataLoaderOptions& options = {}) {
  return make_data_loader(std::move(dataset),
                          std::unique_ptr<samplers::Sampler>(new SamplerType(std::move(sampler))), options);
}
// With RandomSampler, or the sampler named, over the whole dataset.
template <class SamplerType = samplers::RandomSampler, class Dataset>
requires(!detail::Stateful<Dataset>) std::unique_ptr<DataLoader<Dataset>> make_data_loader(
    Dataset dataset, const DataLoaderOptions& options = {}) {
  const size_t size = detail::checked_size(dataset.size());
  return make_data_loader(std::move(dataset), std::unique_ptr<samplers::Sampler>(new SamplerType(size)),
                          options);
}

}  // namespace vesta::data
