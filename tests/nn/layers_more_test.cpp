// Bilinear, Unflatten, channel dropout, GroupNorm, response norms, distances, normalize, padding layers.
#include <sstream>

#include "support/expect.h"
#include "vesta/nn.h"

namespace vesta::nn {
namespace {

namespace F = functional;
constexpr uint64_t kSeed = 8;

TEST(Bilinear, EqualsTheDoubleSum) {
  manual_seed(kSeed);
  Bilinear layer(3, 4, 2);
  const Tensor a = randn({5, 3}), b = randn({5, 4});
  const auto as = test::numbers(a), bs = test::numbers(b), w = test::numbers(layer->weight),
             bias = test::numbers(layer->bias);
  std::vector<double> expected;
  for (size_t n = 0; n < 5; ++n)
    for (size_t o = 0; o < 2; ++o) {
      double sum = bias[o];
      for (size_t i = 0; i < 3; ++i)
        for (size_t j = 0; j < 4; ++j) sum += as[n * 3 + i] * w[(o * 3 + i) * 4 + j] * bs[n * 4 + j];
      expected.push_back(sum);
    }
  test::expect_close(layer(a, b), expected, 1e-5);
  EXPECT_LE(layer->weight.abs().max().item<double>(), 1 / std::sqrt(3.0));
  EXPECT_THROW(Bilinear(0, 4, 2), ValueError);
}

TEST(Unflatten, UndoesFlatten) {
  const Tensor x = randn({2, 12});
  EXPECT_EQ(Unflatten(UnflattenOptions(1, {3, -1}))(x).sizes(), IntArrayRef({2, 3, 4}));
  EXPECT_THROW(Unflatten(1, std::vector<int64_t>{5, 2})(x), ValueError);
}

// Sums of squares over the window [c - before, c + after].
std::vector<double> response(const Tensor& x, int64_t before, int64_t after, double size, double alpha,
                             double beta, double k) {
  const auto v = test::numbers(x);
  const int64_t n = x.size(0), channels = x.size(1), inner = x.numel() / (n * channels);
  std::vector<double> out(v.size());
  for (int64_t b = 0; b < n; ++b)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t i = 0; i < inner; ++i) {
        double sum = 0;
        for (int64_t j = std::max<int64_t>(0, c - before); j <= std::min(channels - 1, c + after); ++j)
          sum += std::pow(v[size_t((b * channels + j) * inner + i)], 2);
        const size_t at = size_t((b * channels + c) * inner + i);
        out[at] = v[at] / std::pow(k + alpha * sum / size, beta);
      }
  return out;
}

TEST(LocalResponseNorm, DividesByTheMeanSquareOfTheNeighbours) {
  manual_seed(kSeed);
  for (const int64_t size : {1, 2, 3, 4, 5, 40}) {
    SCOPED_TRACE(size);
    const Tensor x = randn({2, 7, 3, 2});
    LocalResponseNorm layer(LocalResponseNormOptions(size).alpha(0.3).beta(0.6).k(1.1));
    test::expect_close(layer(x), response(x, size / 2, (size - 1) / 2, double(size), 0.3, 0.6, 1.1), 1e-5);
    CrossMapLRN2d cross(CrossMapLRN2dOptions(size).alpha(0.3).beta(0.6).k(2));
    test::expect_close(cross(x), response(x, (size - 1) / 2, (size - 1) / 2, double(size), 0.3, 0.6, 2),
                       1e-5);
  }
  EXPECT_THROW(LocalResponseNorm(0)(randn({1, 2, 3})), ValueError);
  EXPECT_THROW(LocalResponseNorm(2)(randn({2, 3})), ValueError);
  EXPECT_THROW(CrossMapLRN2d(2)(randn({2, 3, 4})), ValueError);
  const int64_t huge = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(LocalResponseNorm(huge)(randn({1, 2, 3})).sizes(), IntArrayRef({1, 2, 3}));
  EXPECT_EQ(LocalResponseNorm(3)(zeros({0, 2, 3})).sizes(), IntArrayRef({0, 2, 3}));
}

TEST(GroupNorm, NormalisesEachGroup) {
  manual_seed(kSeed);
  GroupNorm layer(2, 6);
  const Tensor y = layer(randn({3, 6, 5}) * 4 + 2).reshape({3, 2, 15});
  test::expect_close(y.mean({-1}), zeros({3, 2}), 1e-5);
  test::expect_close(y.square().mean({-1}), ones({3, 2}), 1e-4);
  EXPECT_EQ(GroupNorm(GroupNormOptions(2, 6).affine(false))->parameters().size(), 0u);
  EXPECT_THROW(GroupNorm(4, 6), ValueError);
  EXPECT_THROW(GroupNorm(0, 6), ValueError);
}

// In what [N, C, rest] each channel of each example is either zero or scaled.
void expect_whole_channels(const Tensor& y, double kept, double p) {
  const auto v = test::numbers(y.reshape({y.size(0) * y.size(1), -1}));
  const size_t rows = size_t(y.size(0) * y.size(1)), inner = v.size() / rows;
  size_t dropped = 0;
  for (size_t r = 0; r < rows; ++r) {
    dropped += v[r * inner] == 0;
    for (size_t i = 0; i < inner; ++i) {
      ASSERT_EQ(v[r * inner + i], v[r * inner]) << "row " << r;
      ASSERT_TRUE(v[r * inner] == 0 || std::abs(v[r * inner] - kept) < 1e-5);
    }
  }
  EXPECT_NEAR(double(dropped) / double(rows), p, 5 * std::sqrt(p * (1 - p) / double(rows)))
      << "seed " << kSeed;
}

TEST(ChannelDropout, DropsWholeChannels) {
  manual_seed(kSeed);
  expect_whole_channels(Dropout1d(0.25)(ones({40, 50, 3})), 1 / 0.75, 0.25);
  expect_whole_channels(Dropout2d(0.25)(ones({40, 50, 3, 2})), 1 / 0.75, 0.25);
  expect_whole_channels(Dropout3d(0.25)(ones({40, 50, 2, 2, 2})), 1 / 0.75, 0.25);
  expect_whole_channels(Dropout1d(0.25)(ones({500, 3})).unsqueeze(0), 1 / 0.75, 0.25);
  expect_whole_channels(Dropout3d(0.25)(ones({500, 2, 2, 2})).unsqueeze(0), 1 / 0.75, 0.25);
  Dropout2d layer(0.25);
  layer->eval();
  const Tensor x = randn({2, 3, 4, 4});
  EXPECT_TRUE(layer(x).is_same(x));
  EXPECT_THROW(Dropout2d(1.5), ValueError);
  EXPECT_THROW(F::dropout2d(ones({3})), ValueError);
  Tensor inplace = ones({100, 2, 2, 2});
  F::dropout2d(inplace, F::Dropout2dFuncOptions().p(0.5).inplace(true));
  EXPECT_EQ(inplace.eq(0).any().item<bool>(), true);
}

TEST(AlphaDropout, KeepsMeanAndVariance) {
  manual_seed(kSeed);
  for (const bool features : {false, true}) {
    const Tensor x = randn({2000, 50});
    AlphaDropout whole(0.3);
    FeatureAlphaDropout channels(0.3);
    const Tensor y = features ? channels(x.unsqueeze(-1)) : whole(x);
    EXPECT_NEAR(y.mean().item<double>(), 0, 0.02) << "seed " << kSeed;
    EXPECT_NEAR(y.std().item<double>(), 1, 0.02) << "seed " << kSeed;
    EXPECT_FALSE(allclose(y.reshape({-1}), x.reshape({-1})));
    whole->eval();
    EXPECT_TRUE(allclose(whole(x), x));
  }
}

TEST(Distances, EqualTheirFormulas) {
  manual_seed(kSeed);
  const Tensor a = randn({4, 6}), b = randn({4, 6});
  const auto as = test::numbers(a), bs = test::numbers(b);
  std::vector<double> cosine, norm3;
  for (size_t r = 0; r < 4; ++r) {
    double ab = 0, aa = 0, bb = 0, n = 0;
    for (size_t k = r * 6; k < r * 6 + 6; ++k) {
      ab += as[k] * bs[k], aa += as[k] * as[k], bb += bs[k] * bs[k];
      n += std::pow(std::abs(as[k] - bs[k] + 1e-6), 3);
    }
    cosine.push_back(ab / std::sqrt(aa * bb));
    norm3.push_back(std::cbrt(n));
  }
  test::expect_close(CosineSimilarity()(a, b), cosine, 1e-5);
  test::expect_close(PairwiseDistance(PairwiseDistanceOptions().p(3))(a, b), norm3, 1e-5);
  EXPECT_EQ(PairwiseDistance(PairwiseDistanceOptions().keepdim(true))(a, b).sizes(), IntArrayRef({4, 1}));
}

TEST(Normalize, DividesByTheNormButNotByZero) {
  manual_seed(kSeed);
  const Tensor x = randn({3, 5});
  test::expect_close(F::normalize(x).square().sum({1}), ones({3}), 1e-5);
  test::expect_close(F::normalize(x, F::NormalizeFuncOptions().p(1).dim(0)).abs().sum({0}), ones({5}), 1e-5);
  test::expect_close(F::normalize(zeros({2, 2})), zeros({2, 2}), 0);
  Tensor out = empty({3, 5});
  F::normalize(x, F::NormalizeFuncOptions().out(out));
  test::expect_close(out, F::normalize(x), 0);
}

// Index in the source of position `at` in a padded row, or -1 for the constant border.
int64_t source_index(PadMode mode, int64_t at, int64_t before, int64_t size) {
  int64_t i = at - before;
  if (i >= 0 && i < size) return i;
  switch (mode) {
    case PadMode::Constant:
      return -1;
    case PadMode::Reflect:
      return i < 0 ? -i : 2 * (size - 1) - i;
    case PadMode::Replicate:
      return i < 0 ? 0 : size - 1;
    case PadMode::Circular:
      return (i + size) % size;
  }
  return -1;
}

void expect_padded(const Tensor& got, const Tensor& x, std::vector<int64_t> pad, PadMode mode, double value) {
  const int64_t h = x.size(-2), w = x.size(-1), outer = x.numel() / (h * w);
  const auto v = test::numbers(x);
  const int64_t out_w = w + pad[0] + pad[1], out_h = h + pad[2] + pad[3];
  std::vector<double> expected;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < out_h; ++i)
      for (int64_t j = 0; j < out_w; ++j) {
        const int64_t si = source_index(mode, i, pad[2], h), sj = source_index(mode, j, pad[0], w);
        expected.push_back(si < 0 || sj < 0 ? value : v[size_t((o * h + si) * w + sj)]);
      }
  ASSERT_EQ(got.size(-1), out_w);
  ASSERT_EQ(got.size(-2), out_h);
  test::expect_close(got, expected, 0);
}

TEST(PaddingLayers, CopyFromTheRightPlaces) {
  manual_seed(kSeed);
  const Tensor x = randn({2, 3, 4, 5});
  const std::vector<int64_t> pad{1, 2, 3, 0};
  expect_padded(ZeroPad2d({1, 2, 3, 0})(x), x, pad, kConstant, 0);
  expect_padded(ConstantPad2d(ConstantPad2dOptions({1, 2, 3, 0}, 3.5))(x), x, pad, kConstant, 3.5);
  expect_padded(ReflectionPad2d({1, 2, 3, 0})(x), x, pad, kReflect, 0);
  expect_padded(ReplicationPad2d({1, 2, 3, 0})(x), x, pad, kReplicate, 0);
  expect_padded(CircularPad2d({1, 2, 3, 0})(x), x, pad, kCircular, 0);
  EXPECT_EQ(ReflectionPad1d(2)(randn({3, 4})).sizes(), IntArrayRef({3, 8}));
  EXPECT_EQ(ReplicationPad3d(1)(randn({2, 2, 3, 4})).sizes(), IntArrayRef({2, 4, 5, 6}));
  EXPECT_EQ(ConstantPad1d(ConstantPad1dOptions({-1, 2}, 0))(randn({5})).sizes(), IntArrayRef({6}));
  EXPECT_EQ(ConstantPad3d(1, 2.0)(randn({2, 2, 2})).sizes(), IntArrayRef({4, 4, 4}));
  EXPECT_THROW(ReflectionPad2d(4)(x), ValueError);
  EXPECT_THROW(ReflectionPad2d(1)(randn({4, 5})), ValueError);
  EXPECT_THROW(ReflectionPad2d({1, 2}), ValueError);
  EXPECT_THROW(ZeroPad2d(std::numeric_limits<int64_t>::max())(x), Error);
  EXPECT_THROW(ConstantPad1d(ConstantPad1dOptions({-3, -3}, 0))(randn({5})), Error);
  std::ostringstream text;
  text << ReflectionPad1d({1, 2});
  EXPECT_EQ(text.str(), "vesta::nn::ReflectionPad1d(padding=[1, 2])");
}

TEST(OneHot, IsThereAsAFunction) { test::expect_close(F::one_hot(arange(2), 3), {1, 0, 0, 0, 1, 0}, 0); }

}  // namespace
}  // namespace vesta::nn
