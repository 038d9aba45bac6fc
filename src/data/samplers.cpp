// Samplers. Their orders are part of what a saved state means: changing them changes resumed runs.
#include <limits>

#include "vesta/data.h"

namespace vesta::data::samplers {
namespace {

// Steele, Lea & Flood 2014. Enough for a shuffle, and the same on every machine.
struct SplitMix64 {
  uint64_t state;
  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // Uniform in [0, n): draws from the last, incomplete round of n are thrown away.
  uint64_t below(uint64_t n) {
    const uint64_t limit = std::numeric_limits<uint64_t>::max() - std::numeric_limits<uint64_t>::max() % n;
    uint64_t draw;
    do draw = next();
    while (draw >= limit);
    return draw % n;
  }
};

}  // namespace

std::vector<size_t> permutation(size_t size, uint64_t seed, uint64_t stream) {
  SplitMix64 streams{seed};
  SplitMix64 random{streams.next() ^ SplitMix64{stream}.next()};
  std::vector<size_t> order(size);
  for (size_t i = 0; i < size; ++i) order[i] = i;
  for (size_t i = size; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

void OrderedSampler::start(std::vector<size_t> order, size_t begin, size_t end) {
  order_ = std::move(order);
  begin_ = position_ = begin;
  end_ = end;
}

std::optional<std::vector<size_t>> OrderedSampler::next(size_t batch_size) {
  if (position_ >= end_) return std::nullopt;
  const size_t count = std::min(batch_size, end_ - position_);
  std::vector<size_t> batch(count);
  for (size_t i = 0; i < count; ++i) batch[i] = order_.empty() ? position_ + i : order_[position_ + i];
  position_ += count;
  return batch;
}

void SequentialSampler::reset(uint64_t, uint64_t) { start({}, 0, size_); }
void SequentialSampler::reset(std::optional<size_t> new_size) {
  size_ = new_size.value_or(size_);
  start({}, 0, size_);
}
void RandomSampler::reset(uint64_t seed, uint64_t epoch) { start(permutation(size_, seed, epoch), 0, size_); }
void RandomSampler::reset(std::optional<size_t> new_size) {
  size_ = new_size.value_or(size_);
  Generator generator = default_generator();
  const uint64_t stream = generator.take_calls();
  start(permutation(size_, generator.current_seed(), stream), 0, size_);
}

DistributedSampler::DistributedSampler(size_t size, size_t num_replicas, size_t rank, bool allow_duplicates,
                                       bool random)
    : size_(size),
      num_replicas_(num_replicas),
      rank_(rank),
      allow_duplicates_(allow_duplicates),
      random_(random) {
  VESTA_CHECK(num_replicas > 0, "DistributedSampler: expected at least one replica");
  VESTA_CHECK(rank < num_replicas, "DistributedSampler: rank ", rank, " is outside of ", num_replicas,
              " replicas");
  reset();
}

void DistributedSampler::reset(std::optional<size_t> new_size) {
  size_ = new_size.value_or(size_);
  local_size_ = (size_ + (allow_duplicates_ ? num_replicas_ - 1 : 0)) / num_replicas_;
  reset(0, epoch_);
}

void DistributedSampler::reset(uint64_t seed, uint64_t epoch) {
  std::vector<size_t> mine;
  mine.reserve(local_size_);
  const std::vector<size_t> order = random_ ? permutation(size_, seed, epoch) : std::vector<size_t>();
  for (size_t i = rank_ * local_size_; mine.size() < local_size_; ++i) {
    const size_t at = i % size_;
    mine.push_back(random_ ? order[at] : at);
  }
  start(std::move(mine), 0, local_size_);
}

}  // namespace vesta::data::samplers
