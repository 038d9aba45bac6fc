// Convolution, batch norm, instance norm and fold layers against loops in double written out here.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <sstream>

#include "support/expect.h"
#include "vesta/autograd.h"
#include "vesta/nn.h"
#include "vesta/ops.h"

namespace vesta::nn {
namespace {

using test::error_of;
using test::expect_close;
using test::numbers;

namespace F = functional;
constexpr uint64_t kSeed = 91;

void expect_same(const Tensor& got, const Tensor& expected, double tolerance = 1e-5) {
  expect_close(got, expected, tolerance);
}
std::string printed(const Module& m) {
  std::ostringstream out;
  out << m;
  return out.str();
}
// Where position i - pad of a dim of size n reads from in a padding mode; -1: a zero.
int64_t source(PadMode mode, int64_t i, int64_t n) {
  if (i >= 0 && i < n) return i;
  switch (mode) {
    case PadMode::Constant:
      return -1;
    case PadMode::Reflect:
      return i < 0 ? -i : 2 * (n - 1) - i;
    case PadMode::Replicate:
      return i < 0 ? 0 : n - 1;
    case PadMode::Circular:
      return i < 0 ? i + n : i - n;
  }
  return -1;
}
// One image, before[d] cells of padding in front.
std::vector<double> conv2d_by_hand(const Tensor& x, const Tensor& w, const Tensor& bias,
                                   const Conv2dOptions& o, PadMode mode, const int64_t (&before)[2],
                                   const int64_t (&out)[2]) {
  const auto xs = numbers(x), ws = numbers(w),
             bs = bias.defined() ? numbers(bias) : std::vector<double>(size_t(w.size(0)), 0.0);
  const int64_t channels = x.size(0), h = x.size(1), width = x.size(2), per = w.size(1),
                filters = w.size(0) / o.groups();
  std::vector<double> r;
  for (int64_t f = 0; f < w.size(0); ++f)
    for (int64_t y = 0; y < out[0]; ++y)
      for (int64_t z = 0; z < out[1]; ++z) {
        double sum = bs[size_t(f)];
        for (int64_t c = 0; c < per; ++c)
          for (int64_t i = 0; i < w.size(2); ++i)
            for (int64_t j = 0; j < w.size(3); ++j) {
              const int64_t a = source(mode, y * (*o.stride())[0] - before[0] + i * (*o.dilation())[0], h);
              const int64_t b =
                  source(mode, z * (*o.stride())[1] - before[1] + j * (*o.dilation())[1], width);
              if (a < 0 || b < 0) continue;
              const int64_t channel = f / filters * per + c;
              EXPECT_LT(channel, channels);
              sum += xs[size_t((channel * h + a) * width + b)] *
                     ws[size_t(((f * per + c) * w.size(2) + i) * w.size(3) + j)];
            }
        r.push_back(sum);
      }
  return r;
}

TEST(Conv, MatchesTheLoopForEveryPaddingMode) {
  manual_seed(kSeed);
  for (const PadMode mode : {kZeros, kReflect, kReplicate, kCircular})
    for (const bool bias : {true, false}) {
      Conv2d layer(Conv2dOptions(4, 6, {3, 2})
                       .stride({2, 1})
                       .padding({2, 1})
                       .dilation({1, 2})
                       .groups(2)
                       .bias(bias)
                       .padding_mode(mode));
      EXPECT_EQ(layer->parameters().size(), bias ? 2u : 1u);
      const Tensor x = randn({4, 7, 8});
      const int64_t before[2] = {2, 1}, out[2] = {(7 + 4 - 3) / 2 + 1, 8 + 2 - 3 + 1};
      const Tensor y = layer(x.unsqueeze(0));
      ASSERT_EQ(y.sizes(), IntArrayRef({1, 6, out[0], out[1]}));
      const auto want = conv2d_by_hand(x, layer->weight, layer->bias, layer->options, mode, before, out);
      expect_close(y, want, 1e-5);
      expect_close(layer(x), want, 1e-5);  // without a batch
    }
}

TEST(Conv, SamePaddingKeepsTheSizeAndPutsTheOddCellBehind) {
  manual_seed(kSeed);
  for (const PadMode mode : {kZeros, kReflect}) {
    Conv2d layer(Conv2dOptions(2, 3, {4, 3}).padding(kSame).dilation({1, 2}).padding_mode(mode));
    const Tensor x = randn({2, 6, 7});
    const int64_t before[2] = {1, 2}, out[2] = {6, 7};
    expect_close(layer(x), conv2d_by_hand(x, layer->weight, layer->bias, layer->options, mode, before, out),
                 1e-5);
  }
  Conv1d valid(Conv1dOptions(2, 3, 4).padding(kValid));
  EXPECT_EQ(valid(randn({1, 2, 9})).size(2), 6);
  EXPECT_NE(error_of([] {
              Conv1d(Conv1dOptions(2, 3, 3).padding(kSame).stride(2));
            }).find("Conv1d: padding='same' is not supported for strided convolutions"),
            std::string::npos);
}

// <conv(x), y> = <x, transposed conv(y)> for the same weight.
TEST(ConvTranspose, IsTheTransposeOfConv) {
  manual_seed(kSeed);
  const auto dot = [](const Tensor& a, const Tensor& b) {
    return (a.to(kFloat64) * b.to(kFloat64)).sum().item<double>();
  };
  for (const int64_t stride : {1, 2, 3})
    for (const int64_t groups : {1, 2}) {
      Conv1d c1(Conv1dOptions(4, 6, 3).stride(stride).padding(1).dilation(2).groups(groups).bias(false));
      ConvTranspose1d t1(
          ConvTranspose1dOptions(6, 4, 3).stride(stride).padding(1).dilation(2).groups(groups).bias(false));
      t1->weight.set_data(c1->weight.detach());
      const Tensor x1 = randn({2, 4, 19}), y1 = c1(x1), g1 = randn(y1.sizes());
      EXPECT_NEAR(dot(y1, g1), dot(x1, t1(g1, IntArrayRef({19}))), 1e-3);

      Conv3d c3(Conv3dOptions(4, 2, {2, 3, 2}).stride(stride).padding({1, 0, 1}).groups(groups).bias(false));
      ConvTranspose3d t3(ConvTranspose3dOptions(2, 4, {2, 3, 2})
                             .stride(stride)
                             .padding({1, 0, 1})
                             .groups(groups)
                             .bias(false));
      t3->weight.set_data(c3->weight.detach());
      const Tensor x3 = randn({1, 4, 5, 7, 6}), y3 = c3(x3), g3 = randn(y3.sizes());
      const std::vector<int64_t> all{1, 4, 5, 7, 6};
      EXPECT_NEAR(dot(y3, g3), dot(x3, t3(g3, IntArrayRef(all))), 1e-3);
    }
}

TEST(ConvTranspose, OutputPaddingEnlargesAndBiasIsAddedEverywhere) {
  manual_seed(kSeed);
  ConvTranspose2d layer(ConvTranspose2dOptions(2, 3, 3).stride(3).padding(1).output_padding({2, 0}));
  const Tensor y = layer(zeros({1, 2, 2, 4}));
  ASSERT_EQ(y.sizes(), IntArrayRef({1, 3, 6, 10}));
  expect_same(y, layer->bias.view({1, 3, 1, 1}).expand({1, 3, 6, 10}), 0);
  EXPECT_NE(error_of([&] {
              layer(zeros({1, 2, 2, 4}), IntArrayRef({9, 10}));
            }).find("expected an output_size from 4 to 6"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              ConvTranspose2d(ConvTranspose2dOptions(2, 2, 2).padding_mode(kReflect))(zeros({1, 2, 3, 3}));
            }).find("kZeros"),
            std::string::npos);
}

TEST(Conv, StartsWithinTheBoundOfItsFan) {
  manual_seed(kSeed);
  Conv2d layer(Conv2dOptions(16, 32, 3).groups(2));
  const double bound = 1 / std::sqrt(8.0 * 9);
  double largest = 0;
  for (const double w : numbers(layer->weight)) largest = std::max(largest, std::abs(w));
  EXPECT_LE(largest, bound);
  EXPECT_GT(largest, 0.98 * bound);
  for (const double b : numbers(layer->bias)) EXPECT_LE(std::abs(b), bound);
}

TEST(Conv, FollowsChannelsLast) {
  manual_seed(kSeed);
  for (const int64_t groups : {1, 8}) {
    Conv2d layer(Conv2dOptions(8, 16, 3).padding(1).stride(2).groups(groups));
    const Tensor x = randn({2, 8, 9, 11}).requires_grad_(),
                 last = x.detach().contiguous(MemoryFormat::ChannelsLast).requires_grad_();
    const Tensor y = layer(x), z = layer(last), dy = randn(y.sizes());
    EXPECT_TRUE(y.is_contiguous());
    EXPECT_TRUE(z.is_contiguous(MemoryFormat::ChannelsLast));
    EXPECT_FALSE(z.is_contiguous());
    expect_same(z, y);
    y.backward(dy);
    const Tensor weight = layer->weight.grad().clone(), bias = layer->bias.grad().clone();
    layer->zero_grad();
    z.backward(dy);
    expect_same(last.grad(), x.grad());
    expect_same(layer->weight.grad(), weight, 1e-4);
    expect_same(layer->bias.grad(), bias, 1e-4);
    EXPECT_TRUE(last.grad().is_contiguous(MemoryFormat::ChannelsLast));
  }
}

TEST(Conv, HasSecondDerivatives) {
  manual_seed(kSeed);
  const auto wide = TensorOptions(kFloat64);
  for (const bool transposed : {false, true})
    autograd::gradgradcheck(
        [&](const autograd::variable_list& in) -> autograd::variable_list {
          if (transposed) return {conv_transpose2d(in[0], in[1], in[2], 2, 1, 1)};
          return {conv2d(in[0], in[1], in[2], 2, 1)};
        },
        {randn({1, 2, 3, 3}, wide).requires_grad_(), randn({2, 2, 2, 2}, wide).requires_grad_(),
         randn({2}, wide).requires_grad_()});
}

TEST(Conv, WrongUseThrows) {
  EXPECT_NE(error_of([] { Conv2d(Conv2dOptions(3, 4, 3).groups(2)); }).find("must be divisible by groups"),
            std::string::npos);
  EXPECT_NE(error_of([] { Conv2d(0, 4, 3); }).find("positive channels"), std::string::npos);
  EXPECT_NE(error_of([] { Conv2d(3, 4, 0); }).find("positive kernel_size"), std::string::npos);
  Conv2d layer(3, 4, 3);
  EXPECT_THROW(layer(randn({1, 2, 8, 8})), ValueError);
  EXPECT_THROW(layer(randn({1, 3, 2, 8})), ValueError);
  EXPECT_THROW(layer(randn({3, 8})), ValueError);
  EXPECT_THROW(layer(randn({1, 3, 8, 8}).to(kFloat64)), TypeError);
  const Tensor x = randn({1, 3, 8, 8}), w = randn({4, 3, 3, 3});
  const int64_t none = 0;
  for (const int64_t bad : {int64_t(0), int64_t(-1), INT64_MAX}) {
    EXPECT_THROW(conv2d(x, w, {}, bad), ValueError);
    EXPECT_THROW(conv2d(x, w, {}, 1, none, bad), ValueError);
    EXPECT_THROW(conv2d(x, w, {}, 1, none, 1, bad), ValueError);
  }
  for (const int64_t bad : {int64_t(-1), INT64_MAX, INT64_MIN})
    EXPECT_THROW(conv2d(x, w, {}, 1, bad), ValueError);
  EXPECT_THROW(conv_transpose2d(x, randn({3, 4, 3, 3}), {}, 1, 0, 1),
               ValueError);  // output_padding as large as the stride
  EXPECT_EQ(conv2d(zeros({0, 3, 8, 8}), w).sizes(), IntArrayRef({0, 4, 6, 6}));
}

TEST(Conv, PrintsAsLibtorchDoes) {
  EXPECT_EQ(printed(*Conv1d(3, 4, 5)), "vesta::nn::Conv1d(3, 4, kernel_size=5, stride=1)");
  EXPECT_EQ(printed(*Conv2d(Conv2dOptions(4, 8, {5, 6})
                                .stride({1, 2})
                                .padding(1)
                                .dilation(2)
                                .groups(2)
                                .bias(false)
                                .padding_mode(kCircular))),
            "vesta::nn::Conv2d(4, 8, kernel_size=[5, 6], stride=[1, 2], padding=[1, 1], dilation=[2, 2], "
            "groups=2, bias=false, "
            "padding_mode=kCircular)");
  EXPECT_EQ(printed(*Conv3d(Conv3dOptions(4, 4, 3).padding(kSame))),
            "vesta::nn::Conv3d(4, 4, kernel_size=[3, 3, 3], stride=[1, 1, 1], padding='same')");
  EXPECT_EQ(printed(*ConvTranspose2d(ConvTranspose2dOptions(3, 4, 5).stride(2).output_padding(1))),
            "vesta::nn::ConvTranspose2d(3, 4, kernel_size=[5, 5], stride=[2, 2], output_padding=[1, 1])");
  EXPECT_EQ(printed(*Fold({3, 2}, 2)),
            "vesta::nn::Fold(output_size=[3, 2], kernel_size=[2, 2], dilation=[1, 1], padding=[0, 0], "
            "stride=[1, 1])");
  EXPECT_EQ(printed(*Unfold(UnfoldOptions({2, 4}).stride(2))),
            "vesta::nn::Unfold(kernel_size=[2, 4], dilation=[1, 1], padding=[0, 0], stride=[2, 2])");
  EXPECT_EQ(printed(*BatchNorm2d(5)),
            "vesta::nn::BatchNorm2d(5, eps=1e-05, momentum=0.1, affine=true, track_running_stats=true)");
  EXPECT_EQ(printed(*InstanceNorm1d(InstanceNorm1dOptions(4).eps(0.5))),
            "vesta::nn::InstanceNorm1d(4, eps=0.5, momentum=0.1, affine=false, track_running_stats=false)");
}

TEST(Conv, ClonesAreCopies) {
  Conv2d layer(3, 4, 3);
  const auto copy = layer->clone();
  auto* same = copy->as<Conv2d>();
  ASSERT_NE(same, nullptr);
  expect_same(same->weight, layer->weight, 0);
  {
    const NoGradGuard no_grad;
    same->weight.zero_();
  }
  EXPECT_GT(layer->weight.detach().abs().sum().item<double>(), 0);
}

// Mean and biased variance of channel c over the samples [from, to).
struct Moments {
  double mean = 0, variance = 0, count = 0;
};
Moments moments(const std::vector<double>& x, int64_t channels, int64_t inner, int64_t c, int64_t from,
                int64_t to) {
  Moments m;
  const auto each = [&](const std::function<void(double)>& f) {
    for (int64_t n = from; n < to; ++n)
      for (int64_t i = 0; i < inner; ++i) f(x[size_t((n * channels + c) * inner + i)]);
  };
  m.count = double((to - from) * inner);
  each([&](double v) { m.mean += v / m.count; });
  each([&](double v) { m.variance += (v - m.mean) * (v - m.mean) / m.count; });
  return m;
}

TEST(BatchNorm, NormalisesByTheBatchAndKeepsRunningStatistics) {
  manual_seed(kSeed);
  BatchNorm2d layer(BatchNorm2dOptions(3).eps(1e-3).momentum(0.3));
  {
    const NoGradGuard no_grad;
    layer->weight.copy_(randn({3}));
    layer->bias.copy_(randn({3}));
  }
  std::vector<double> mean(3, 0), var(3, 1);
  const auto w = numbers(layer->weight), b = numbers(layer->bias);
  for (int step = 0; step < 2; ++step) {
    const Tensor x = randn({4, 3, 2, 5}) * 2 + 1;
    const auto xs = numbers(x);
    std::vector<double> want(xs.size());
    for (int64_t c = 0; c < 3; ++c) {
      const Moments m = moments(xs, 3, 10, c, 0, 4);
      for (int64_t n = 0; n < 4; ++n)
        for (int64_t i = 0; i < 10; ++i) {
          const auto at = size_t((n * 3 + c) * 10 + i);
          want[at] = (xs[at] - m.mean) / std::sqrt(m.variance + 1e-3) * w[size_t(c)] + b[size_t(c)];
        }
      mean[size_t(c)] = 0.7 * mean[size_t(c)] + 0.3 * m.mean;
      var[size_t(c)] = 0.7 * var[size_t(c)] + 0.3 * m.variance * m.count / (m.count - 1);
    }
    expect_close(layer(x), want, 1e-5);
  }
  expect_close(layer->running_mean, mean, 1e-5);
  expect_close(layer->running_var, var, 1e-5);
  EXPECT_EQ(layer->num_batches_tracked.item<int64_t>(), 2);
  layer->eval();
  const Tensor x = randn({1, 3, 1, 2});
  const auto xs = numbers(x);
  std::vector<double> want;
  for (size_t i = 0; i < 6; ++i)
    want.push_back((xs[i] - mean[i / 2]) / std::sqrt(var[i / 2] + 1e-3) * w[i / 2] + b[i / 2]);
  expect_close(layer(x), want, 1e-5);
  EXPECT_EQ(layer->num_batches_tracked.item<int64_t>(), 2);
  layer->reset_running_stats();
  expect_close(layer->running_var, {1, 1, 1}, 0);
}

TEST(BatchNorm, WithoutMomentumAveragesAllBatches) {
  manual_seed(kSeed);
  BatchNorm1d layer(BatchNorm1dOptions(2).momentum(std::nullopt).affine(false));
  std::vector<double> mean(2, 0);
  for (int step = 0; step < 3; ++step) {
    const Tensor x = randn({5, 2});
    for (int64_t c = 0; c < 2; ++c) mean[size_t(c)] += moments(numbers(x), 2, 1, c, 0, 5).mean / 3;
    layer(x);
  }
  expect_close(layer->running_mean, mean, 1e-5);
  EXPECT_TRUE(layer->parameters().empty());
  EXPECT_EQ(layer->buffers().size(), 3u);
}

TEST(BatchNorm, WithoutTrackingUsesTheBatchInEvaluation) {
  manual_seed(kSeed);
  BatchNorm1d layer(BatchNorm1dOptions(2).track_running_stats(false));
  const Tensor x = randn({4, 2, 3}), y = layer(x);
  layer->eval();
  expect_same(layer(x), y, 0);
  EXPECT_TRUE(layer->buffers().empty());
}

TEST(BatchNorm, WrongUseThrows) {
  BatchNorm1d layer(3);
  EXPECT_THROW(layer(randn({2, 3, 4, 5})), ValueError);
  EXPECT_NE(error_of([&] { layer(randn({1, 3})); }).find("more than 1 value per channel"), std::string::npos);
  EXPECT_THROW(layer(randn({2, 4})), ValueError);
  EXPECT_THROW(BatchNorm2d(3)(randn({2, 3})), ValueError);
  EXPECT_THROW(BatchNorm3d(3)(randn({2, 3, 1, 1})), ValueError);
}

TEST(InstanceNorm, NormalisesEverySampleOnItsOwn) {
  manual_seed(kSeed);
  InstanceNorm2d layer(InstanceNorm2dOptions(3).affine(true).track_running_stats(true));
  const Tensor x = randn({2, 3, 4, 2}) + 3;
  const auto xs = numbers(x);
  std::vector<double> want(xs.size()), mean(3, 0), var(3, 0);
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t c = 0; c < 3; ++c) {
      const Moments m = moments(xs, 3, 8, c, n, n + 1);
      for (int64_t i = 0; i < 8; ++i) {
        const auto at = size_t((n * 3 + c) * 8 + i);
        want[at] = (xs[at] - m.mean) / std::sqrt(m.variance + 1e-5);
      }
      mean[size_t(c)] += m.mean / 2;
      var[size_t(c)] += m.variance * 8 / 7 / 2;
    }
  expect_close(layer(x), want, 1e-5);
  for (size_t c = 0; c < 3; ++c) mean[c] *= 0.1, var[c] = 0.9 + 0.1 * var[c];
  expect_close(layer->running_mean, mean, 1e-5);
  expect_close(layer->running_var, var, 1e-5);
  expect_same(InstanceNorm2d(3)(x[0]), InstanceNorm2d(3)(x)[0]);  // without a batch
  EXPECT_THROW(layer(randn({2, 4, 3, 3})), ValueError);
  EXPECT_THROW(InstanceNorm1d(3)(randn({2, 3, 1})), ValueError);
}

TEST(Fold, AddsUpWhatUnfoldTakesOut) {
  manual_seed(kSeed);
  const auto options = UnfoldOptions({3, 2}).stride({2, 1}).padding({1, 0}).dilation({1, 2});
  const Tensor x = randn({2, 3, 7, 6});
  const Tensor columns = Unfold(options)(x);
  ASSERT_EQ(columns.sizes(), IntArrayRef({2, 18, 4 * 4}));
  Fold fold(FoldOptions({7, 6}, {3, 2}).stride({2, 1}).padding({1, 0}).dilation({1, 2}));
  // Every pixel comes back once for each window that holds it.
  const Tensor times = fold(Unfold(options)(ones({1, 1, 7, 6})));
  expect_same(fold(columns), x * times);
  // A convolution is a product with the columns.
  const Tensor w = randn({4, 3, 3, 2});
  expect_same(matmul(w.reshape({4, 18}), columns).view({2, 4, 4, 4}),
              conv2d(x, w, {}, {2, 1}, {1, 0}, {1, 2}), 1e-4);
  EXPECT_THROW(fold(randn({1, 17, 16})), ValueError);
  EXPECT_THROW(fold(randn({1, 18, 15})), ValueError);
}

TEST(ConvTranspose, TakesItsPlaceInASequential) {
  Sequential net(Identity(), ConvTranspose1d(ConvTranspose1dOptions(3, 2, 3).bias(false)), ReLU());
  Tensor x = ones({2, 3, 5});
  EXPECT_TRUE(equal(net->forward(x), relu(net->at<ConvTranspose1d>(1).forward(x))));
}

}  // namespace
}  // namespace vesta::nn
