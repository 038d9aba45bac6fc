// Generators that draw as libtorch's CPU generator: values recorded from PyTorch 2.14.1 (CPU, seed 0 where no other is
// said), each operator from the start of the stream. Numbers made with logarithms or cosines may differ in the last bits.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/mt19937.h"
#include "vesta/autograd.h"
#include "vesta/ops.h"

namespace vesta {
namespace {

Generator seeded(uint64_t seed = 0) { return mt19937_generator(seed); }

void expect_exact(const char* what, const Tensor& t, const std::vector<double>& recorded) {
  const Tensor got = t.to(kDouble).contiguous();
  ASSERT_EQ(got.numel(), int64_t(recorded.size())) << what;
  for (size_t i = 0; i < recorded.size(); ++i)
    EXPECT_EQ(got.data_ptr<double>()[i], recorded[i]) << what << ", element " << i;
}
void expect_close(const char* what, const Tensor& t, const std::vector<double>& recorded, double tolerance) {
  const Tensor got = t.to(kDouble).contiguous();
  ASSERT_EQ(got.numel(), int64_t(recorded.size())) << what;
  for (size_t i = 0; i < recorded.size(); ++i)
    EXPECT_NEAR(got.data_ptr<double>()[i], recorded[i], tolerance * std::max(1.0, std::abs(recorded[i])))
        << what << ", element " << i;
}
const TensorOptions f32 = TensorOptions(kFloat), f64 = TensorOptions(kDouble);

TEST(LibtorchRandom, UniformNumbersAreTheRecordedOnes) {
  expect_exact("rand", rand({3}, seeded(), f32),
               {0.49625658988952637, 0.7682217955589294, 0.08847743272781372});
  // The seed's low 32 bits count.
  expect_exact("rand, seed 2^40 + 5", rand({2}, seeded((uint64_t(1) << 40) + 5), f32),
               {0.8302518725395203, 0.12611091136932373});
  expect_exact("rand of doubles", rand({3}, seeded(), f64),
               {0.9700530018065531, 0.707819864399788, 0.45938294312745087});
  expect_exact("uniform_", empty({4}, f32).uniform_(-0.7, 0.7, seeded()),
               {-0.005240774247795343, 0.3755105137825012, -0.5761315822601318, -0.5151572823524475});
}

TEST(LibtorchRandom, AStridedTensorIsFilledInTheOrderOfItsMemory) {
  Tensor t = empty({3, 2}, f32);
  t.t().uniform_(0, 1, seeded());
  expect_exact("uniform_ of a transposed tensor", t.flatten(),
               {0.49625658988952637, 0.7682217955589294, 0.08847743272781372, 0.13203048706054688,
                0.30742281675338745, 0.6340786814689636});
}

TEST(LibtorchRandom, NormalNumbersAreTheRecordedOnes) {
  expect_close(
      "randn of 5", randn({5}, seeded(), f32),
      {1.5409960746765137, -0.293428897857666, -2.1787893772125244, 0.5684312582015991, -1.0845223665237427},
      1e-7);
  expect_close("randn of 21", randn({21}, seeded(), f32),
               {-1.1258398294448853, -1.152360200881958,  -0.2505785822868347, -0.4338788092136383,
                0.8487103581428528,  -1.5550950765609741, -0.3413603901863098, 1.85300612449646,
                0.46809640526771545, -0.1577124446630478, 1.4436601400375366,  0.26604941487312317,
                0.16645534336566925, 1.586334228515625,   0.946298360824585,   -0.843676745891571,
                0.9318265914916992,  1.2590092420578003,  2.0049805641174316,  0.05373690277338028,
                0.6180566549301147},
               5e-7);
  expect_close(
      "randn of 17 doubles", randn({17}, seeded(), f64),
      {-2.310411800234176, -0.6332746088675096, -1.2609246557194385, -0.726951062065411,
       -0.019964750907762653, 0.2102998901016947, 0.17718935139366584, -0.830510051008449,
       0.23871805816817063, -0.2426793824588577, -0.7730112772958181, -1.5951814880783068,
       -0.6870036940435463, 1.4880743158106724, -0.4484158047114511, -0.8910030351707375, 0.6748575435940039},
      1e-14);
  expect_close("normal_", empty({3}, f32).normal_(2, 3, seeded()),
               {6.622988224029541, 1.119713306427002, -4.536368370056152}, 1e-7);
}

TEST(LibtorchRandom, TheSecondNormalOfAPairWaitsForTheNextCallWhateverIsDrawnBetween) {
  const Generator g = seeded();
  const Tensor first = randn({1}, g, f32), between = rand({1}, g, f32), second = randn({1}, g, f32);
  expect_close("randn", first, {1.5409960746765137}, 1e-7);
  expect_exact("rand", between, {0.30742281675338745});
  expect_close("randn again", second, {-0.293428897857666}, 1e-7);
}

TEST(LibtorchRandom, IntegersAreTheRecordedOnes) {
  expect_exact("randint", randint(-5, 95, {5}, seeded()), {39, 34, 28, 55, 58});
  expect_exact("randint below 2^40", randint(int64_t(1) << 40, {3}, seeded()),
               {741280623151, 506137267392, 291447657211});
  expect_exact("randint below 2^28, where 64 bits begin", randint(int64_t(1) << 28, {3}, seeded()),
               {130329135, 136432832, 195187451});
  expect_exact("random_ of int32", empty({3}, TensorOptions(kInt)).random_(seeded()),
               {209652396, 398764591, 924231285});
  expect_exact("random_ of float32", empty({3}, f32).random_(seeded()), {8325664, 12888472, 1484222});
  const Tensor wide = empty({3}, TensorOptions(kLong)).random_(seeded());
  EXPECT_EQ(wide[0].item<int64_t>(), 900450186894289455);
  EXPECT_EQ(wide[1].item<int64_t>(), 3969543146641149120);
  EXPECT_EQ(wide[2].item<int64_t>(), 1895649597198586619);
  expect_exact("random_ of uint8", empty({5}, TensorOptions(kByte)).random_(seeded()),
               {172, 47, 117, 192, 67});
  expect_exact("random_ of bool", empty({5}, TensorOptions(kBool)).random_(seeded()), {0, 1, 1, 0, 1});
  expect_exact("randperm", randperm(10, seeded()), {4, 1, 7, 5, 3, 9, 0, 8, 6, 2});
}

TEST(LibtorchRandom, ChoicesAreTheRecordedOnes) {
  const float p[] = {0.1f, 0.5f, 0.9f, 0.3f, 0.7f, 0.2f};
  const Tensor chances = from_blob(const_cast<float*>(p), {6}, f32).clone();
  expect_exact("bernoulli", bernoulli(chances, seeded()), {0, 0, 1, 1, 1, 0});
  expect_exact("bernoulli_", empty({12}, f32).bernoulli_(0.3, seeded()),
               {0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 1});
  const float w[] = {0.1f, 0.2f, 0.3f, 0.4f, 0.4f, 0.3f, 0.2f, 0.1f};
  const Tensor weights = from_blob(const_cast<float*>(w), {2, 4}, f32).clone();
  expect_exact("multinomial", multinomial(weights[0], 3, false, seeded()), {2, 1, 3});
  expect_exact("multinomial, one of each row", multinomial(weights, 1, true, seeded()).flatten(), {2, 2});
  expect_exact("multinomial with replacement", multinomial(weights[0], 6, true, seeded()),
               {3, 3, 2, 3, 3, 3});
}

TEST(LibtorchRandom, OtherDistributionsAreTheRecordedOnes) {
  expect_close("exponential_", empty({3}, f32).exponential_(2, seeded()),
               {1.754163146018982, 0.6151923537254333, 0.3075220584869385}, 2e-7);
  expect_close("cauchy_", empty({3}, f32).cauchy_(1, 2, seeded()),
               {22.195459365844727, 2.5295345783233643, 0.743401288986206}, 2e-7);
  expect_close("log_normal_", empty({3}, f32).log_normal_(0, 0.5, seeded()),
               {2.160842180252075, 0.863540530204773, 0.33642005920410156}, 2e-7);
  expect_exact("geometric_", empty({6}, f32).geometric_(0.3, seeded()), {1, 1, 3, 1, 2, 1});
}

TEST(LibtorchRandom, ASeedStartsTheStreamAnewAndASnapshotContinuesIt) {
  Generator g = seeded(5);
  const Tensor first = randn({3}, g, f32);  // leaves half a pair
  const GeneratorSnapshot here = take_snapshot(g);
  const Tensor next = randn({4}, g, f32);
  restore_snapshot(g, here);
  EXPECT_TRUE(equal(next, randn({4}, g, f32)));
  g.manual_seed(5);
  EXPECT_TRUE(equal(first, randn({3}, g, f32)));
  EXPECT_TRUE(uses_mt19937(g));
  EXPECT_FALSE(uses_mt19937(Generator(5)));
}

TEST(LibtorchRandom, EmptyTensorsTakeNothingAndOtherOperatorsStayReproducible) {
  const Generator g = seeded(), h = seeded();
  EXPECT_EQ(rand({0, 3}, g, f32).numel(), 0);
  EXPECT_EQ(randperm(0, g).numel(), 0);
  const Tensor rates = full({50}, 3.0, f32);
  EXPECT_TRUE(equal(poisson(rates, g), poisson(rates, h)));
  EXPECT_FALSE(equal(poisson(rates, g), poisson(rates, g)));
  EXPECT_TRUE(equal(rand({3}, g, f32), [&] {
    poisson(rates, h);
    poisson(rates, h);
    return rand({3}, h, f32);
  }()));
}

}  // namespace
}  // namespace vesta
