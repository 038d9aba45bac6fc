// Streams, chunks, stateful loaders, transforms to derive from, MNIST files, loader states as tensors.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>

#include "support/temp_folder.h"
#include "vesta/data.h"
#include "vesta/ops.h"

namespace vesta::data {
namespace {

constexpr uint64_t kSeed = 3;

// Chunk c holds the numbers 100 c, 100 c + 1, ...; chunk 2 is empty.
struct Shards : datasets::ChunkDataReader<int> {
  explicit Shards(std::vector<size_t> sizes) : sizes_(std::move(sizes)) {}
  std::vector<int> read_chunk(size_t chunk) override {
    std::vector<int> out;
    for (size_t i = 0; i < sizes_[chunk]; ++i) out.push_back(int(100 * chunk + i));
    return out;
  }
  size_t chunk_count() override { return sizes_.size(); }
  std::vector<size_t> sizes_;
};
using Chunks = datasets::ChunkDataset<Shards>;
using Options = datasets::ChunkDatasetOptions;
const std::vector<size_t> kSizes{7, 5, 0, 9, 1};

template <class Loader>
std::vector<std::vector<int>> epoch_of(Loader& loader) {
  std::vector<std::vector<int>> out;
  for (auto& batch : loader) out.push_back(batch);
  return out;
}
std::vector<int> joined(const std::vector<std::vector<int>>& batches) {
  std::vector<int> out;
  for (const auto& batch : batches) out.insert(out.end(), batch.begin(), batch.end());
  return out;
}
std::vector<int> sorted(std::vector<int> values) {
  std::sort(values.begin(), values.end());
  return values;
}

TEST(ChunkDataset, GivesEachExampleOnceInFullBatches) {
  for (const size_t together : {1, 2, 10}) {
    auto loader = make_data_loader(Chunks(Shards(kSizes), Options().cross_chunk_shuffle_count(together)),
                                   DataLoaderOptions(4).seed(kSeed));
    const auto first = epoch_of(*loader), second = epoch_of(*loader);
    ASSERT_EQ(first.size(), 6u);  // 22 examples
    for (size_t i = 0; i < 5; ++i) EXPECT_EQ(first[i].size(), 4u);
    EXPECT_EQ(first[5].size(), 2u);
    const auto all = sorted(joined(first));
    EXPECT_EQ(all.size(), 22u);
    EXPECT_EQ(std::set<int>(all.begin(), all.end()).size(), 22u);
    EXPECT_EQ(sorted(joined(second)), all);
    EXPECT_NE(joined(second), joined(first)) << "seed " << kSeed;
  }
}

TEST(ChunkDataset, ShufflesWithinTheChunksThatAreReadTogether) {
  auto loader = make_data_loader(Chunks(Shards(kSizes), Options()), DataLoaderOptions(100).seed(kSeed));
  const auto order = joined(epoch_of(*loader));
  // Chunks follow one another whole.
  std::vector<int> chunks;
  for (const int example : order)
    if (chunks.empty() || chunks.back() != example / 100) chunks.push_back(example / 100);
  EXPECT_EQ(chunks.size(), 4u);
  auto plain =
      make_data_loader(Chunks(Shards(kSizes), Options().shuffle_chunks(false).shuffle_examples(false)),
                       DataLoaderOptions(100));
  const auto in_order = joined(epoch_of(*plain));
  EXPECT_EQ(in_order, sorted(in_order));
}

TEST(ChunkDataset, OrderDependsOnSeedAndEpochAlone) {
  const auto run = [&](uint64_t seed, size_t batch) {
    auto loader = make_data_loader(Chunks(Shards(kSizes), Options().cross_chunk_shuffle_count(2)),
                                   DataLoaderOptions(batch).seed(seed));
    epoch_of(*loader);
    return joined(epoch_of(*loader));
  };
  EXPECT_EQ(run(1, 4), run(1, 7));
  EXPECT_NE(run(1, 4), run(2, 4));
}

TEST(StatefulDataLoader, ResumesInMidEpoch) {
  const auto make = [] {
    return make_data_loader(Chunks(Shards(kSizes), Options().cross_chunk_shuffle_count(2)),
                            DataLoaderOptions(4).seed(kSeed));
  };
  auto straight = make();
  std::vector<std::vector<int>> all;
  for (int epoch = 0; epoch < 3; ++epoch)
    for (const auto& batch : epoch_of(*straight)) all.push_back(batch);
  for (const size_t stop : {size_t(0), size_t(1), size_t(6), size_t(8), size_t(13)}) {
    SCOPED_TRACE(stop);
    auto first = make(), second = make();
    std::vector<std::vector<int>> seen;
    while (seen.size() < stop) {
      for (auto& batch : *first) {
        seen.push_back(batch);
        if (seen.size() == stop) break;
      }
    }
    second->load_state_dict(first->state_dict());
    while (seen.size() < all.size())
      for (auto& batch : *second) seen.push_back(batch);
    EXPECT_EQ(seen, all);
  }
  auto late = make();
  late->load_state({kSeed, 0, 7});
  EXPECT_THROW(late->next(), ValueError);
}

TEST(StatefulDataLoader, LeavesASmallLastBatchOut) {
  auto loader = make_data_loader(Chunks(Shards(kSizes)), DataLoaderOptions(4).drop_last(true));
  EXPECT_EQ(epoch_of(*loader).size(), 5u);
  EXPECT_FALSE(loader->next());
  EXPECT_EQ(epoch_of(*loader).size(), 5u);
  EXPECT_THROW(make_data_loader(Chunks(Shards(kSizes)), DataLoaderOptions(0)), ValueError);
  EXPECT_THROW(Chunks(Shards(kSizes), Options().cross_chunk_shuffle_count(0)), ValueError);
  auto empty = make_data_loader(Chunks(Shards({0, 0})), DataLoaderOptions(4));
  EXPECT_TRUE(epoch_of(*empty).empty());
}

struct Ones : datasets::StreamDataset<Ones, std::vector<int>> {
  std::vector<int> get_batch(size_t count) override { return std::vector<int>(count, 1); }
  std::optional<size_t> size() const override { return std::nullopt; }
};

TEST(StreamDataset, IsAskedForBatchesUntilTheEpochIsFull) {
  for (const size_t workers : {0, 2}) {
    auto loader =
        make_data_loader(Ones(), samplers::StreamSampler(10), DataLoaderOptions(4).workers(workers));
    std::vector<size_t> sizes;
    for (auto& batch : *loader) sizes.push_back(batch.size());
    EXPECT_EQ(sizes, (std::vector<size_t>{4, 4, 2}));
  }
  auto mapped = make_data_loader(Ones().map([](int x) { return x + 1; }), samplers::StreamSampler(3),
                                 DataLoaderOptions(2));
  std::vector<int> seen;
  for (auto& batch : *mapped) seen.insert(seen.end(), batch.begin(), batch.end());
  EXPECT_EQ(seen, (std::vector<int>{2, 2, 2}));
}

struct Double : transforms::TensorTransform<> {
  Tensor operator()(Tensor x) override { return x * 2; }
};
struct SumOfData : transforms::Collation<Tensor, std::vector<Example<>>> {
  Tensor apply_batch(std::vector<Example<>> batch) override {
    Tensor sum = zeros({});
    for (auto& example : batch) sum = sum + example.data.sum();
    return sum;
  }
};

TEST(Transforms, ClassesToDeriveFromWorkInMap) {
  const Tensor data = arange(6).to(kFloat32).reshape({3, 2}), target = arange(3);
  auto set = datasets::TensorPairDataset(data, target)
                 .map(Double())
                 .map(transforms::TensorLambda<>([](Tensor x) { return x + 1; }))
                 .map(SumOfData());
  auto loader = make_data_loader<samplers::SequentialSampler>(set, DataLoaderOptions(3));
  for (auto& sum : *loader) EXPECT_EQ(sum.item<double>(), 2 * 15 + 6);
  EXPECT_THROW(transforms::TensorLambda<>(nullptr), ValueError);
}

TEST(Normalize, TakesNumbersByChannel) {
  const Tensor image = ones({2, 3, 3});
  const std::vector<double> mean{1.0, 3.0}, deviation{1.0, 2.0};
  transforms::Normalize<> by_channel(mean, deviation);
  const Tensor y = by_channel.apply_batch({{image, zeros({})}})[0].data;
  EXPECT_EQ(y[0].sum().item<double>(), 0);
  EXPECT_EQ(y[1].sum().item<double>(), -9);
  transforms::Normalize<> one(0.5, 0.25);
  EXPECT_EQ(one.apply_batch({{image, zeros({})}})[0].data.min().item<double>(), 2);
}

TEST(DataLoader, ItsStateGoesThroughTensors) {
  const auto make = [] {
    return make_data_loader(datasets::TensorDataset(arange(20)),
                            DataLoaderOptions(3).seed(uint64_t(-5)).workers(2));
  };
  auto first = make(), second = make();
  std::vector<int64_t> a, b;
  const auto take = [](auto& loader, std::vector<int64_t>& out) {
    const auto batch = loader->next();
    for (const auto& example : *batch) out.push_back(example.data.template item<int64_t>());
  };
  take(first, a);
  take(first, a);
  const auto dict = first->state_dict();
  second->load_state_dict(dict);
  a.clear();
  take(first, a);
  take(second, b);
  EXPECT_EQ(a, b);
  auto broken = dict;
  broken.erase("epoch");
  EXPECT_THROW(second->load_state_dict(broken), ValueError);
  broken.insert("epoch", ones({2}));
  EXPECT_THROW(second->load_state_dict(broken), ValueError);
}

std::string idx(std::vector<uint32_t> sizes, const std::string& elements) {
  std::string out{0, 0, 8, char(sizes.size())};
  for (const uint32_t size : sizes)
    for (int shift = 24; shift >= 0; shift -= 8) out += char(size >> shift & 255);
  return out + elements;
}

TEST(MNIST, ReadsItsFiles) {
  const test::TempFolder folder;
  folder.write("train-images-idx3-ubyte",
               idx({2, 2, 3}, std::string("\0\x33\x66\x99\xcc\xff", 6) + std::string(6, '\xff')));
  folder.write("train-labels-idx1-ubyte", idx({2}, "\x07\x01"));
  datasets::MNIST set(folder.path());
  EXPECT_EQ(set.size(), 2u);
  EXPECT_TRUE(set.is_train());
  EXPECT_EQ(set.images().sizes(), IntArrayRef({2, 1, 2, 3}));
  const auto example = set.get(0);
  EXPECT_EQ(example.target.item<int64_t>(), 7);
  for (int i = 0; i < 6; ++i) EXPECT_FLOAT_EQ(example.data.reshape({-1})[i].item<float>(), float(0.2 * i));
  EXPECT_THROW(set.get(2), IndexError);
  EXPECT_THROW(datasets::MNIST(folder.path(), datasets::MNIST::Mode::kTest), IoError);
  auto loader = make_data_loader(set.map(transforms::Normalize<>(0.5, 0.5)).map(transforms::Stack<>()),
                                 DataLoaderOptions(2));
  for (auto& batch : *loader) EXPECT_EQ(batch.data.sizes(), IntArrayRef({2, 1, 2, 3}));
}

TEST(MNIST, RefusesBrokenFiles) {
  const test::TempFolder folder;
  const std::string images = idx({2, 2, 3}, std::string(12, 'x')), labels = idx({2}, "ab");
  const auto read = [&](const std::string& image_file, const std::string& label_file) {
    folder.write("t10k-images-idx3-ubyte", image_file);
    folder.write("t10k-labels-idx1-ubyte", label_file);
    return datasets::MNIST(folder.path(), datasets::MNIST::Mode::kTest).size();
  };
  EXPECT_EQ(read(images, labels), 2u);
  for (size_t cut = 0; cut < images.size(); ++cut)
    EXPECT_THROW(read(images.substr(0, cut), labels), ValueError) << cut;
  EXPECT_THROW(read(images + "x", labels), ValueError);
  EXPECT_THROW(read(images, idx({3}, "abc")), ValueError);
  EXPECT_THROW(read(labels, labels), ValueError);
  EXPECT_THROW(read(idx({0xffffffff, 0xffffffff, 0xffffffff}, "x"), labels), ValueError);
  std::string other_type = images;
  other_type[2] = 9;
  EXPECT_THROW(read(other_type, labels), ValueError);
}

}  // namespace
}  // namespace vesta::data
