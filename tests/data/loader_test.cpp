// DataLoader: order, workers, errors, saved state.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include "vesta/data.h"
#include "vesta/ops.h"

namespace vesta::data {
namespace {

// Example i is the number i.
class Numbers : public datasets::Dataset<Numbers, size_t> {
 public:
  explicit Numbers(size_t size) : size_(size) {}
  size_t get(size_t i) override { return i; }
  std::optional<size_t> size() const override { return size_; }

 private:
  size_t size_;
};

template <class Loader>
std::vector<std::vector<size_t>> one_epoch(Loader& loader) {
  std::vector<std::vector<size_t>> out;
  for (auto& batch : loader) out.push_back(batch);
  return out;
}

std::vector<size_t> flat(const std::vector<std::vector<size_t>>& batches) {
  std::vector<size_t> out;
  for (const auto& batch : batches) out.insert(out.end(), batch.begin(), batch.end());
  return out;
}

TEST(DataLoader, EveryExampleComesOnceAnEpochInOrderOfTheSeed) {
  auto a = make_data_loader(Numbers(103), DataLoaderOptions(10).seed(5));
  auto b = make_data_loader(Numbers(103), DataLoaderOptions(10).seed(5));
  auto c = make_data_loader(Numbers(103), DataLoaderOptions(10).seed(6));
  const auto first = one_epoch(*a);
  EXPECT_EQ(first.size(), 11u);
  EXPECT_EQ(first.back().size(), 3u);
  std::vector<size_t> sorted = flat(first);
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < 103; ++i) EXPECT_EQ(sorted[i], i);
  EXPECT_EQ(first, one_epoch(*b));
  EXPECT_NE(first, one_epoch(*c));
  const auto second = one_epoch(*a);
  EXPECT_NE(first, second);
  EXPECT_EQ(second, one_epoch(*b));
}

TEST(DataLoader, TheOrderDoesNotDependOnTheNumberOfWorkers) {
  auto reference = make_data_loader(Numbers(211), DataLoaderOptions(7).seed(1));
  const auto epoch1 = one_epoch(*reference), epoch2 = one_epoch(*reference);
  for (size_t workers : {1, 2, 5}) {
    for (size_t max_jobs : {1, 3, 20}) {
      auto loader =
          make_data_loader(Numbers(211), DataLoaderOptions(7).seed(1).workers(workers).max_jobs(max_jobs));
      EXPECT_EQ(one_epoch(*loader), epoch1) << workers << " workers, " << max_jobs << " jobs";
      EXPECT_EQ(one_epoch(*loader), epoch2) << workers << " workers, " << max_jobs << " jobs";
    }
  }
}

TEST(DataLoader, WithoutASeedTheOrderFollowsTheDefaultGenerator) {
  manual_seed(11);
  auto a = make_data_loader(Numbers(50), DataLoaderOptions(50));
  auto b = make_data_loader(Numbers(50), DataLoaderOptions(50));
  manual_seed(11);
  auto c = make_data_loader(Numbers(50), DataLoaderOptions(50));
  const auto order = one_epoch(*a);
  EXPECT_NE(order, one_epoch(*b));
  EXPECT_EQ(order, one_epoch(*c));
}

TEST(DataLoader, DropLastLeavesOutTheIncompleteBatch) {
  for (size_t workers : {0, 2}) {
    auto loader = make_data_loader<samplers::SequentialSampler>(
        Numbers(10), DataLoaderOptions(4).drop_last(true).workers(workers));
    const std::vector<std::vector<size_t>> expected = {{0, 1, 2, 3}, {4, 5, 6, 7}};
    EXPECT_EQ(one_epoch(*loader), expected);
  }
}

TEST(DataLoader, AnEmptyDatasetGivesNoBatches) {
  for (size_t workers : {0, 2}) {
    auto loader = make_data_loader(Numbers(0), DataLoaderOptions(4).workers(workers));
    EXPECT_TRUE(one_epoch(*loader).empty());
    EXPECT_TRUE(one_epoch(*loader).empty());
  }
}

TEST(DataLoader, UnorderedBatchesAreAllThere) {
  auto loader = make_data_loader(Numbers(100), DataLoaderOptions(3).workers(4).enforce_ordering(false));
  std::vector<size_t> all = flat(one_epoch(*loader));
  std::sort(all.begin(), all.end());
  ASSERT_EQ(all.size(), 100u);
  for (size_t i = 0; i < 100; ++i) EXPECT_EQ(all[i], i);
}

struct BadExample : std::runtime_error {
  using std::runtime_error::runtime_error;
};

TEST(DataLoader, AnExceptionReachesTheCallerInTurnAndTheRestStillComes) {
  for (size_t workers : {0, 1, 3}) {
    auto set = Numbers(12).map([](size_t i) {
      if (i == 5) throw BadExample("example 5 cannot be read");
      return i;
    });
    auto loader = make_data_loader<samplers::SequentialSampler>(set, DataLoaderOptions(2).workers(workers));
    std::vector<size_t> seen;
    size_t errors = 0;
    while (true) {
      try {
        auto batch = loader->next();
        if (!batch) break;
        seen.insert(seen.end(), batch->begin(), batch->end());
      } catch (const BadExample& e) {
        EXPECT_STREQ(e.what(), "example 5 cannot be read");
        EXPECT_EQ(seen, (std::vector<size_t>{0, 1, 2, 3}));
        ++errors;
      }
    }
    EXPECT_EQ(errors, 1u);
    EXPECT_EQ(seen, (std::vector<size_t>{0, 1, 2, 3, 6, 7, 8, 9, 10, 11}));
  }
}

TEST(DataLoader, NoMoreThanMaxJobsBatchesAreMadeAhead) {
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    size_t made = 0;
  } shared;
  auto set = Numbers(40).map([&shared](size_t i) {
    const std::lock_guard lock(shared.mutex);
    ++shared.made;
    shared.changed.notify_all();
    return i;
  });
  auto loader =
      make_data_loader<samplers::SequentialSampler>(set, DataLoaderOptions(1).workers(2).max_jobs(3));
  for (size_t taken = 0; taken < 40; ++taken) {
    ASSERT_TRUE(loader->next());
    std::unique_lock lock(shared.mutex);
    // At the time of the call at most 3 were under way, this one included.
    EXPECT_LE(shared.made, taken + 3);
    // And the workers do run ahead: the other two come without being asked for.
    const size_t ahead = std::min<size_t>(taken + 3, 40);
    EXPECT_TRUE(
        shared.changed.wait_for(lock, std::chrono::seconds(60), [&] { return shared.made >= ahead; }));
  }
}

TEST(DataLoader, ATimeoutIsAnErrorThatSaysHowLong) {
  std::mutex gate;
  std::unique_lock closed(gate);
  auto set = Numbers(4).map([&gate](size_t i) {
    const std::lock_guard wait(gate);
    return i;
  });
  auto loader =
      make_data_loader<samplers::SequentialSampler>(set, DataLoaderOptions(1).workers(1).timeout_ms(20));
  try {
    loader->next();
    FAIL() << "expected a timeout";
  } catch (const ValueError& e) {
    EXPECT_STREQ(e.what(), "DataLoader: no batch within 20 ms");
  }
  closed.unlock();
  const auto batch = loader->next();  // nothing was lost
  ASSERT_TRUE(batch);
  EXPECT_EQ(*batch, std::vector<size_t>{0});
}

TEST(DataLoader, ASavedStateContinuesInTheMiddleOfAnEpoch) {
  for (size_t workers : {0, 2}) {
    auto whole = make_data_loader(Numbers(31), DataLoaderOptions(4).seed(9).workers(workers));
    one_epoch(*whole);
    const auto second = one_epoch(*whole), third = one_epoch(*whole);

    auto first_run = make_data_loader(Numbers(31), DataLoaderOptions(4).seed(9).workers(workers));
    one_epoch(*first_run);
    size_t taken = 0;
    DataLoaderState saved;
    for (auto& batch : *first_run) {
      EXPECT_EQ(batch, second[taken]);
      if (++taken == 3) {
        saved = first_run->state();
        break;
      }
    }
    EXPECT_EQ(saved.epoch, 1u);
    EXPECT_EQ(saved.position, 3u);

    // Another process: no seed given, the state brings it.
    auto resumed = make_data_loader(Numbers(31), DataLoaderOptions(4).workers(2 - workers));
    resumed->load_state(saved);
    const auto rest = one_epoch(*resumed);
    EXPECT_EQ(rest, std::vector<std::vector<size_t>>(second.begin() + 3, second.end()));
    EXPECT_EQ(one_epoch(*resumed), third);
    EXPECT_EQ(resumed->state().epoch, 3u);
    EXPECT_EQ(resumed->state().position, 0u);
  }
}

TEST(DataLoader, APositionBehindTheEndIsRefused) {
  auto loader = make_data_loader(Numbers(8), DataLoaderOptions(4));
  loader->load_state({1, 0, 5});
  try {
    loader->next();
    FAIL() << "expected an error";
  } catch (const ValueError& e) {
    EXPECT_NE(std::string(e.what()).find("position 5 is behind the end of the epoch, which has 2 batches"),
              std::string::npos)
        << e.what();
  }
}

TEST(DataLoader, StoppingInTheMiddleStartsTheNextEpochAfresh) {
  auto reference = make_data_loader(Numbers(64), DataLoaderOptions(2).seed(2));
  one_epoch(*reference);
  const auto second = one_epoch(*reference);
  auto loader = make_data_loader(Numbers(64), DataLoaderOptions(2).seed(2).workers(3));
  for (auto& batch : *loader) {
    (void)batch;
    break;
  }
  EXPECT_EQ(one_epoch(*loader), second);
}

TEST(DataLoader, RandomTransformsRepeatForAnyNumberOfWorkers) {
  const auto run = [](size_t workers) {
    auto set = Numbers(40).map([](size_t i) { return batch_generator().current_seed() + i; });
    auto loader = make_data_loader(set, DataLoaderOptions(3).seed(4).workers(workers));
    auto all = flat(one_epoch(*loader));
    const auto more = flat(one_epoch(*loader));
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const auto expected = run(0);
  EXPECT_EQ(std::set<size_t>(expected.begin(), expected.end()).size() > 20, true);
  EXPECT_EQ(run(1), expected);
  EXPECT_EQ(run(4), expected);
}

TEST(DataLoader, BadOptionsAreRefused) {
  EXPECT_THROW(make_data_loader(Numbers(3), DataLoaderOptions(0)), ValueError);
  EXPECT_THROW(make_data_loader(Numbers(3), DataLoaderOptions(1).max_jobs(0)), ValueError);
}

class Stream : public datasets::Dataset<Stream, size_t> {
 public:
  size_t get(size_t i) override { return i; }
  std::optional<size_t> size() const override { return std::nullopt; }
};

TEST(DataLoader, AStreamNeedsASampler) {
  try {
    make_data_loader(Stream());
    FAIL() << "expected an error";
  } catch (const ValueError& e) {
    EXPECT_STREQ(e.what(), "make_data_loader: this dataset does not know its size; pass a sampler");
  }
  auto loader = make_data_loader(Stream(), samplers::SequentialSampler(5), DataLoaderOptions(2));
  EXPECT_EQ(flat(one_epoch(*loader)).size(), 5u);
}

TEST(TensorPairDataset, StackJoinsExamplesIntoTensors) {
  const Tensor data = arange(24, kFloat32).reshape({6, 2, 2}), target = arange(6, kInt64);
  auto loader = make_data_loader<samplers::SequentialSampler>(
      datasets::TensorPairDataset(data, target).map(transforms::Stack<>()), DataLoaderOptions(4).workers(2));
  int64_t row = 0;
  for (auto& batch : *loader) {
    const int64_t count = batch.data.size(0);
    EXPECT_EQ(batch.data.dim(), 3);
    ASSERT_EQ(batch.target.sizes(), (IntArrayRef{count}));
    for (int64_t i = 0; i < count; ++i, ++row) {
      EXPECT_EQ((batch.target.accessor<int64_t, 1>()[i]), row);
      EXPECT_EQ((batch.data.accessor<float, 3>()[i][1][1]), float(row * 4 + 3));
    }
  }
  EXPECT_EQ(row, 6);
}

TEST(TensorPairDataset, LengthsMustAgree) {
  try {
    datasets::TensorPairDataset(zeros({3, 2}), zeros({4}));
    FAIL() << "expected an error";
  } catch (const ValueError& e) {
    EXPECT_STREQ(e.what(), "TensorPairDataset: expected as many targets as examples, got 4 and 3");
  }
}

TEST(TensorDataset, TransformsChain) {
  auto set = datasets::TensorDataset(arange(10, kFloat32).reshape({5, 2}))
                 .map(transforms::Normalize<NoTarget>(full({}, 1.0), full({}, 2.0)))
                 .map([](TensorExample e) { return TensorExample(e.data * 10); })
                 .map(transforms::Stack<TensorExample>());
  const size_t wanted[] = {4, 0};
  const Tensor batch = set.get_batch(wanted).data;
  ASSERT_EQ(batch.sizes(), (IntArrayRef{2, 2}));
  const auto at = batch.accessor<float, 2>();
  EXPECT_EQ(at[0][0], 35);
  EXPECT_EQ(at[0][1], 40);
  EXPECT_EQ(at[1][0], -5);
  EXPECT_EQ(at[1][1], 0);
  EXPECT_EQ(set.size(), 5u);
  EXPECT_THROW(datasets::TensorDataset(zeros({2})).get(2), IndexError);
}

TEST(Samplers, DistributedPartsCoverTheDataset) {
  for (const bool random : {false, true}) {
    for (size_t size : {1, 10, 12, 13}) {
      for (size_t replicas : {1, 3, 4}) {
        std::multiset<size_t> padded, cut;
        for (size_t rank = 0; rank < replicas; ++rank) {
          samplers::DistributedSampler a(size, replicas, rank, true, random),
              b(size, replicas, rank, false, random);
          a.reset(3, 1);
          b.reset(3, 1);
          size_t count = 0;
          while (auto batch = a.next(4)) {
            padded.insert(batch->begin(), batch->end());
            count += batch->size();
          }
          EXPECT_EQ(count, (size + replicas - 1) / replicas);
          while (auto batch = b.next(4)) cut.insert(batch->begin(), batch->end());
        }
        for (size_t i = 0; i < size; ++i) EXPECT_GE(padded.count(i), 1u);
        EXPECT_EQ(cut.size(), size / replicas * replicas);
        for (size_t i : cut) EXPECT_EQ(cut.count(i), 1u);
      }
    }
  }
  EXPECT_THROW(samplers::DistributedRandomSampler(3, 2, 2), ValueError);
}

// 120 orders of 5, 12,000 shuffles: each is expected 100 times; chi-squared with 119 degrees of freedom is below 184
// with probability 0.9999.
TEST(Samplers, PermutationsAreUniform) {
  std::map<std::vector<size_t>, int> counts;
  for (uint64_t stream = 0; stream < 12000; ++stream) ++counts[samplers::permutation(5, 2024, stream)];
  ASSERT_EQ(counts.size(), 120u);
  double chi2 = 0;
  for (const auto& item : counts) chi2 += (item.second - 100.0) * (item.second - 100.0) / 100;
  EXPECT_LT(chi2, 184);
}

// Saved runs depend on these orders.
TEST(Samplers, PermutationsStayAsTheyAre) {
  EXPECT_EQ(samplers::permutation(8, 0, 0), (std::vector<size_t>{2, 5, 0, 3, 4, 6, 1, 7}));
  EXPECT_EQ(samplers::permutation(8, 0, 1), (std::vector<size_t>{5, 7, 0, 2, 3, 1, 6, 4}));
  EXPECT_EQ(samplers::permutation(8, 42, 3), (std::vector<size_t>{3, 7, 5, 1, 2, 0, 4, 6}));
}

TEST(DataLoader, AnIteratorPastTheEndThrows) {
  auto loader =
      make_data_loader(datasets::TensorDataset(ones({2, 3})).map(transforms::Stack<TensorExample>()),
                       DataLoaderOptions().batch_size(2));
  auto it = loader->begin();
  ++it;
  EXPECT_TRUE(it == loader->end());
  EXPECT_THROW(++it, ValueError);
  EXPECT_THROW(*it, ValueError);
}

TEST(Normalize, TakesExamplesWithAnyTarget) {
  transforms::Normalize<int> normalize(2.0, 4.0);
  auto batch = normalize.apply_batch({{full({1, 2, 2}, 10.0), 7}});
  EXPECT_EQ(batch[0].target, 7);
  EXPECT_TRUE(equal(batch[0].data, full({1, 2, 2}, 2.0)));
}

TEST(Samplers, ServeWithoutALoaderAndStartAnewWithAnotherSize) {
  samplers::SequentialSampler in_order(5);
  EXPECT_EQ(in_order.next(3), std::vector<size_t>({0, 1, 2}));
  EXPECT_EQ(in_order.index(), 3u);
  EXPECT_EQ(in_order.next(9), std::vector<size_t>({3, 4}));
  EXPECT_FALSE(in_order.next(1));
  in_order.reset(2);
  EXPECT_EQ(in_order.index(), 0u);
  EXPECT_EQ(in_order.next(9), std::vector<size_t>({0, 1}));

  samplers::RandomSampler random(50);
  const std::vector<size_t> first = *random.next(50);
  random.reset();
  const std::vector<size_t> second = *random.next(50);
  EXPECT_NE(first, second);
  EXPECT_EQ(std::set<size_t>(second.begin(), second.end()).size(), 50u);
  random.reset(3);
  EXPECT_EQ(random.next(50)->size(), 3u);
}

TEST(Samplers, RanksShareAnEpochsOrderAndAnotherEpochHasAnother) {
  std::vector<std::vector<size_t>> epochs;
  for (size_t epoch = 0; epoch < 2; ++epoch) {
    std::set<size_t> together;
    std::vector<size_t> order;
    for (size_t rank = 0; rank < 3; ++rank) {
      samplers::DistributedRandomSampler part(30, 3, rank);
      part.set_epoch(epoch);
      part.reset();
      const std::vector<size_t> mine = *part.next(30);
      EXPECT_EQ(mine.size(), 10u);
      together.insert(mine.begin(), mine.end());
      order.insert(order.end(), mine.begin(), mine.end());
    }
    EXPECT_EQ(together.size(), 30u);
    epochs.push_back(order);
  }
  EXPECT_NE(epochs[0], epochs[1]);
  samplers::DistributedSequentialSampler part(10, 2, 1);
  part.reset(4);
  EXPECT_EQ(part.next(9), std::vector<size_t>({2, 3}));
}

TEST(DataLoaderOptions, TakeATimeoutAsADuration) {
  EXPECT_EQ(DataLoaderOptions().timeout(std::chrono::seconds(2)).timeout_ms(), 2000);
}

}  // namespace
}  // namespace vesta::data
