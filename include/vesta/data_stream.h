#pragma once
// Data that does not come by index: StreamDataset (batches of a size, made by workers), StatefulDataset (one after
// another until there is no more), ChunkDataset (shards of examples, shuffled within what fits into memory), and the
// loader of stateful data sets.
//   struct Shards : data::datasets::ChunkDataReader<> { ... };
//   data::datasets::ChunkDataset<Shards> set(Shards(), data::datasets::ChunkDatasetOptions(4).cross_chunk_shuffle_count(2));
//   auto loader = data::make_data_loader(std::move(set), data::DataLoaderOptions(64).seed(7));
#include <algorithm>

#include "vesta/data_loader.h"

namespace vesta::data {

namespace datasets {

// Whole batches from requests: indices, or for streams how many examples.
template <class Self, class Batch = std::vector<Example<>>, class BatchRequest = ArrayRef<size_t>>
class BatchDataset {
 public:
  using BatchType = Batch;
  using BatchRequestType = BatchRequest;
  virtual ~BatchDataset() = default;
  virtual Batch get_batch(BatchRequest request) = 0;
  virtual std::optional<size_t> size() const = 0;
  template <class Transform>
  MapDataset<Self, Transform> map(Transform transform) const& {
    return {static_cast<const Self&>(*this), std::move(transform)};
  }
  template <class Transform>
  MapDataset<Self, Transform> map(Transform transform) && {
    return {std::move(static_cast<Self&>(*this)), std::move(transform)};
  }
};

// get_batch(n) makes n examples; use with samplers::StreamSampler, which says how many make an epoch. Each worker has a
// copy, so what comes from a stream with a position depends on the number of workers.
template <class Self, class Batch = std::vector<Example<>>>
using StreamDataset = BatchDataset<Self, Batch, size_t>;

// Batches one after another until there is no more. A loader calls it from one thread, its own.
template <class Self, class Batch = std::vector<Example<>>>
class StatefulDataset {
 public:
  using BatchType = Batch;
  virtual ~StatefulDataset() = default;
  // Up to batch_size examples; nothing at the end of the epoch.
  virtual std::optional<Batch> get_batch(size_t batch_size) = 0;
  // Starts an epoch. Orders should be functions of (seed, epoch): a loader that resumes reads the epoch from its start.
  virtual void reset(uint64_t seed, uint64_t epoch) = 0;
};

// Reads shards of examples. Thread-compatible.
template <class SingleExample = Example<>>
class ChunkDataReader {
 public:
  using ExampleType = SingleExample;
  using ChunkType = std::vector<SingleExample>;
  virtual ~ChunkDataReader() = default;
  virtual ChunkType read_chunk(size_t chunk) = 0;
  virtual size_t chunk_count() = 0;
  // Called at the start of each epoch.
  virtual void reset() {}
};

class ChunkDatasetOptions {
 public:
  ChunkDatasetOptions(size_t batch_size = 1) : batch_size_(batch_size) {}  // NOLINT: implicit
  // Used where the loader asks for no other.
  VESTA_ARG(size_t, batch_size);
  // So many chunks are read together and their examples shuffled among each other.
  VESTA_ARG(size_t, cross_chunk_shuffle_count) = 1;
  VESTA_ARG(bool, shuffle_chunks) = true;
  VESTA_ARG(bool, shuffle_examples) = true;
};

// The examples of a reader's chunks, in an order that depends on seed and epoch alone. Batches are full, but for the last
// of an epoch; they may span chunks.
template <class Reader>
class ChunkDataset : public StatefulDataset<ChunkDataset<Reader>, typename Reader::ChunkType> {
 public:
  using BatchType = typename Reader::ChunkType;
  explicit ChunkDataset(Reader reader, const ChunkDatasetOptions& options = {})
      : reader_(std::move(reader)), options_(options) {
    VESTA_CHECK(options.batch_size() > 0 && options.cross_chunk_shuffle_count() > 0,
                "ChunkDataset: expected batch_size and cross_chunk_shuffle_count above 0");
    reset(0, 0);
  }

  void reset(uint64_t seed, uint64_t epoch) override {
    reader_.reset();
    const size_t count = reader_.chunk_count();
    chunks_ = options_.shuffle_chunks() ? samplers::permutation(count, seed, 2 * epoch)
                                        : std::vector<size_t>(count);
    if (!options_.shuffle_chunks())
      for (size_t i = 0; i < count; ++i) chunks_[i] = i;
    seed_ = seed;
    epoch_ = epoch;
    next_chunk_ = position_ = 0;
    examples_.clear();
  }

  std::optional<BatchType> get_batch(size_t batch_size) override {
    VESTA_CHECK(batch_size > 0, "ChunkDataset: expected a batch size above 0");
    BatchType batch;
    while (batch.size() < batch_size) {
      if (position_ == examples_.size() && !fill()) break;
      const size_t count = std::min(batch_size - batch.size(), examples_.size() - position_);
      for (size_t i = 0; i < count; ++i) batch.push_back(std::move(examples_[position_ + i]));
      position_ += count;
    }
    if (batch.empty()) return std::nullopt;
    return batch;
  }
  std::optional<BatchType> get_batch() { return get_batch(options_.batch_size()); }
  const ChunkDatasetOptions& options() const { return options_; }

 private:
  // Reads the next chunks; false where there are no more. Chunks may be empty.
  bool fill() {
    while (next_chunk_ < chunks_.size()) {
      BatchType read;
      const size_t group = next_chunk_;
      for (size_t i = 0; i < options_.cross_chunk_shuffle_count() && next_chunk_ < chunks_.size(); ++i)
        for (auto& example : reader_.read_chunk(chunks_[next_chunk_++])) read.push_back(std::move(example));
      if (read.empty()) continue;
      examples_.clear();
      position_ = 0;
      if (!options_.shuffle_examples()) {
        examples_ = std::move(read);
        return true;
      }
      // Streams of examples are odd and told apart by their first chunk; those of chunks are even.
      const uint64_t stream = (epoch_ * (chunks_.size() + 1) + group) * 2 + 1;
      for (const size_t i : samplers::permutation(read.size(), seed_, stream))
        examples_.push_back(std::move(read[i]));
      return true;
    }
    return false;
  }

  Reader reader_;
  ChunkDatasetOptions options_;
  std::vector<size_t> chunks_;
  BatchType examples_;
  uint64_t seed_ = 0, epoch_ = 0;
  size_t next_chunk_ = 0, position_ = 0;
};

}  // namespace datasets

namespace samplers {

// For streams: batches until epoch_size examples have been asked for.
class StreamSampler : public SequentialSampler {
 public:
  explicit StreamSampler(size_t epoch_size) : SequentialSampler(epoch_size) {}
};

}  // namespace samplers

namespace detail {
template <class T>
size_t examples_of(const std::vector<T>& batch) {
  return batch.size();
}
}  // namespace detail

// Iterates over a stateful data set, epoch after epoch, in the calling thread; state and resuming as DataLoader's, where
// the batches before the position are made again and dropped.
template <class Dataset>
class StatefulDataLoader {
 public:
  using BatchType = typename Dataset::BatchType;
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = BatchType;
    using difference_type = std::ptrdiff_t;
    using pointer = BatchType*;
    using reference = BatchType&;
    Iterator() = default;
    explicit Iterator(StatefulDataLoader* loader) : loader_(loader) { ++*this; }
    BatchType& operator*() { return *batch_; }
    BatchType* operator->() { return &*batch_; }
    Iterator& operator++() {
      batch_ = loader_->next();
      if (!batch_) loader_ = nullptr;
      return *this;
    }
    bool operator==(const Iterator& o) const { return loader_ == o.loader_; }

   private:
    StatefulDataLoader* loader_ = nullptr;
    std::optional<BatchType> batch_;
  };

  StatefulDataLoader(Dataset dataset, const DataLoaderOptions& options)
      : dataset_(std::move(dataset)), options_(options), state_{detail::loader_seed(options), 0, 0} {
    VESTA_CHECK(options.batch_size() > 0, "DataLoader: expected batch_size > 0");
  }
  Iterator begin() {
    if (!resume_) {
      if (started_ && !finished_) ++state_.epoch;
      state_.position = 0;
    }
    start();
    return Iterator(this);
  }
  Iterator end() { return {}; }
  std::optional<BatchType> next() {
    if (finished_ && !resume_) return std::nullopt;  // until begin()
    if (!started_ || resume_) start();
    auto batch = make();
    if (!batch) {
      // A finished epoch is the start of the next one.
      finished_ = true;
      state_ = {state_.seed, state_.epoch + 1, 0};
      return std::nullopt;
    }
    ++state_.position;
    return batch;
  }
  const DataLoaderOptions& options() const { return options_; }
  DataLoaderState state() const { return state_; }
  void load_state(const DataLoaderState& state) {
    state_ = state;
    resume_ = true;
  }
  OrderedDict<std::string, Tensor> state_dict() const { return detail::to_state_dict(state()); }
  void load_state_dict(const OrderedDict<std::string, Tensor>& dict) {
    load_state(detail::from_state_dict(dict));
  }

 private:
  std::optional<BatchType> make() {
    auto batch = dataset_.get_batch(options_.batch_size());
    if constexpr (requires { detail::examples_of(*batch); })
      if (batch && options_.drop_last() && detail::examples_of(*batch) < options_.batch_size())
        return std::nullopt;
    return batch;
  }
  void start() {
    dataset_.reset(state_.seed, state_.epoch);
    started_ = true;
    resume_ = finished_ = false;
    for (uint64_t i = 0; i < state_.position; ++i)
      VESTA_CHECK(make(), "DataLoader: the saved position ", state_.position,
                  " is behind the end of the epoch, which has ", i, " batches");
  }

  Dataset dataset_;
  DataLoaderOptions options_;
  DataLoaderState state_;
  bool started_ = false, resume_ = false, finished_ = false;
};

template <detail::Stateful Dataset>
std::unique_ptr<StatefulDataLoader<Dataset>> make_data_loader(Dataset dataset,
                                                              const DataLoaderOptions& options = {}) {
  return std::make_unique<StatefulDataLoader<Dataset>>(std::move(dataset), options);
}

}  // namespace vesta::data
