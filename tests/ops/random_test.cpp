// The Philox layout: known answers of the generator, the maps to numbers, and independence from threads and strides.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>

#include "base/thread_pool.h"
#include "kernels/cpu/random.h"
#include "vesta/ops.h"

namespace vesta {
namespace {

std::vector<float> values(const Tensor& t) {
  Tensor c = t.contiguous();
  return {c.data_ptr<float>(), c.data_ptr<float>() + c.numel()};
}

TEST(Random, PhiloxMatchesThePublishedVectors) {
  // Random123's kat_vectors: counter words (block, call), key words (seed).
  std::array<uint32_t, 4> w{};
  cpu::random_words({0, 0}, 0, w.data(), 4);
  EXPECT_EQ(w, (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  cpu::random_words({~0ull, ~0ull}, ~0ull, w.data(), 4);
  EXPECT_EQ(w, (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  cpu::random_words({0x299f31d0a4093822, 0x0370734413198a2e}, 0x85a308d3243f6a88, w.data(), 4);
  EXPECT_EQ(w, (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, ElementsAreTheWordsOfTheStreamInOrder) {
  std::vector<uint32_t> w(64);
  cpu::random_words({7, 0}, 0, w.data(), 64);
  Tensor f = rand({17}, Generator(7), TensorOptions(kFloat));
  for (int i = 0; i < 17; ++i) EXPECT_EQ(f.data_ptr<float>()[i], float(w[size_t(i)] >> 8) * 0x1p-24f) << i;
  Tensor d = rand({9}, Generator(7), TensorOptions(kDouble));
  for (int i = 0; i < 9; ++i) {
    uint64_t pair = uint64_t(w[size_t(2 * i)]) | uint64_t(w[size_t(2 * i + 1)]) << 32;
    EXPECT_EQ(d.data_ptr<double>()[i], double(pair >> 11) * 0x1p-53) << i;
  }
  Tensor n = randn({16}, Generator(7), TensorOptions(kFloat));
  for (int i = 0; i < 16; ++i) {
    double u = double(w[size_t(i & ~1)] >> 8) * 0x1p-24, v = double(w[size_t(i | 1)] >> 8) * 0x1p-24;
    double r = std::sqrt(-2 * std::log(1 - u)),
           want = i % 2 ? r * std::sin(2 * M_PI * v) : r * std::cos(2 * M_PI * v);
    EXPECT_NEAR(n.data_ptr<float>()[i], want, 2e-6) << i;
  }
  Tensor k = randint(1000, {16}, Generator(7));
  for (int i = 0; i < 16; ++i)
    EXPECT_EQ(k.data_ptr<int64_t>()[i], int64_t(uint64_t(w[size_t(i)]) * 1000 >> 32)) << i;
}

TEST(Random, EveryCallTakesOneCallNumber) {
  Generator g(3);
  rand({1000}, g);
  randn({5}, g);
  randint(10, {0}, g);
  randperm(6, g);
  Tensor t = empty({3, 3});
  t.normal_(0, 1, g);
  EXPECT_EQ(g.call(), 5u);
  manual_seed(11);
  Tensor a = randn({4}), b = randn({4});
  manual_seed(11);
  EXPECT_EQ(values(randn({4})), values(a));
  EXPECT_EQ(values(randn({4})), values(b));
  EXPECT_NE(values(a), values(b));
}

TEST(Random, ThreadsAndStridesChangeNothing) {
  int threads = num_threads();
  set_num_threads(1);
  auto one = values(randn({100003}, Generator(5)));
  set_num_threads(4);
  EXPECT_EQ(values(randn({100003}, Generator(5))), one);
  set_num_threads(threads);
  Tensor t = empty({7, 5}).transpose(0, 1);
  t.normal_(0, 1, Generator(9));
  EXPECT_EQ(values(t), values(randn({5, 7}, Generator(9))));
}

TEST(Random, MomentsAreRight) {
  Tensor n = randn({200000}, Generator(1));
  EXPECT_NEAR(n.mean().item<double>(), 0, 0.01);
  EXPECT_NEAR((n * n).mean().item<double>(), 1, 0.015);
  EXPECT_NEAR((n * n * n * n).mean().item<double>(), 3, 0.1);
  EXPECT_NEAR(rand({200000}, Generator(1)).mean().item<double>(), 0.5, 0.005);
  Tensor e = empty({200000});
  e.exponential_(2, Generator(1));
  EXPECT_NEAR(e.mean().item<double>(), 0.5, 0.01);
  Tensor geometric = empty({200000}).geometric_(0.25, Generator(1));
  EXPECT_NEAR(geometric.mean().item<double>(), 4, 0.05);
  auto [kept, mask] = native_dropout(ones({200000}), 0.25, true);
  EXPECT_NEAR(kept.mean().item<double>(), 1, 0.01);
  EXPECT_NEAR(mask.to(kFloat).mean().item<double>(), 0.75, 0.005);
}

TEST(Random, RandpermIsAPermutation) {
  Tensor p = randperm(1001, Generator(2));
  std::vector<bool> seen(1001);
  for (int64_t i = 0; i < 1001; ++i) seen[size_t(p.data_ptr<int64_t>()[i])] = true;
  EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](bool b) { return b; }));
  EXPECT_NE(p.data_ptr<int64_t>()[0] * 1001 + p.data_ptr<int64_t>()[1], 1);
}

TEST(Random, HalfUniformsStayBelowTheirBound) {
  for (DType t : {kHalf, kBFloat16}) {
    Tensor u = empty({100000}, TensorOptions(t));
    u.uniform_(0, 1, Generator(4));
    Tensor f = u.to(kFloat);
    for (int64_t i = 0; i < f.numel(); ++i)
      ASSERT_LT(f.data_ptr<float>()[i], 1.0f) << dtype_name(t) << " " << i;
  }
}

TEST(Random, MultinomialFollowsItsWeights) {
  float w[] = {0, 1, 3, 0};
  Tensor p = from_blob(w, {4}, TensorOptions(kFloat));
  Tensor s = multinomial(p, 20000, true, Generator(6));
  int64_t count[4] = {};
  for (int64_t i = 0; i < s.numel(); ++i) ++count[s.data_ptr<int64_t>()[i]];
  EXPECT_EQ(count[0] + count[3], 0);
  EXPECT_NEAR(double(count[2]) / 20000, 0.75, 0.02);
  Tensor two = multinomial(p, 2, false, Generator(6));
  EXPECT_EQ(two.data_ptr<int64_t>()[0] + two.data_ptr<int64_t>()[1], 3);
  EXPECT_THROW(multinomial(p, 5, false), ValueError);
  EXPECT_THROW(rand({2}, TensorOptions(kLong)), TypeError);
}

}  // namespace
}  // namespace vesta
