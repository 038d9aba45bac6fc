// Pooling, upsampling and embedding bag modules: options reach the operators, defaults are libtorch's, printing, clone,
// Sequential.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "vesta/autograd.h"
#include "vesta/nn.h"
#include "vesta/ops.h"

namespace vesta::nn {
namespace {

namespace F = functional;
constexpr uint64_t kSeed = 31;

Tensor draw(std::vector<int64_t> sizes) { return randn(sizes, Generator(kSeed), TensorOptions(kDouble)); }
void expect_same(const Tensor& got, const Tensor& want, double tolerance = 0) {
  ASSERT_EQ(got.sizes(), want.sizes());
  if (want.numel() > 0) {
    EXPECT_LE((got - want).abs().max().item<double>(), tolerance);
  }
}
std::string printed(const Module& m) {
  std::ostringstream out;
  out << m;
  return out.str();
}

TEST(PoolModules, TheStrideIsTheKernelSizeUnlessGiven) {
  const Tensor x = draw({2, 3, 9, 8});
  expect_same(MaxPool2d(3)(x), max_pool2d(x, {3}));
  expect_same(MaxPool2d({3, 2})(x), max_pool2d(x, {3, 2}));
  expect_same(MaxPool2d(MaxPool2dOptions({3, 2}).stride(1).padding(1).ceil_mode(true))(x),
              max_pool2d(x, {3, 2}, {1}, {1}, {1}, true));
  expect_same(MaxPool2d(MaxPool2dOptions(2).dilation({2, 3}))(x), max_pool2d(x, {2}, {2}, {0}, {2, 3}));
  expect_same(AvgPool2d(AvgPool2dOptions(3).stride(2).padding(1).count_include_pad(false))(x),
              avg_pool2d(x, {3}, {2}, {1}, false, false));
  expect_same(AvgPool2d(AvgPool2dOptions({3, 2}).divisor_override(5))(x),
              avg_pool2d(x, {3, 2}, {}, {0}, false, true, 5));
  const Tensor sequence = draw({2, 3, 9}), volume = draw({2, 3, 4, 5, 6});
  expect_same(MaxPool1d(MaxPool1dOptions(3).stride(2))(sequence), max_pool1d(sequence, {3}, {2}));
  expect_same(AvgPool1d(3)(sequence), avg_pool1d(sequence, {3}));
  expect_same(MaxPool3d({2, 3, 2})(volume), max_pool3d(volume, {2, 3, 2}));
  expect_same(AvgPool3d(2)(volume), avg_pool3d(volume, {2}));
}
TEST(PoolModules, AdaptiveSizesMayBeLeftToTheInput) {
  const Tensor x = draw({2, 3, 9, 8});
  EXPECT_EQ(AdaptiveAvgPool2d(5)(x).sizes(), (IntArrayRef{2, 3, 5, 5}));
  EXPECT_EQ(AdaptiveAvgPool2d({5, 7})(x).sizes(), (IntArrayRef{2, 3, 5, 7}));
  EXPECT_EQ(AdaptiveAvgPool2d(AdaptiveAvgPool2dOptions({std::nullopt, 7}))(x).sizes(),
            (IntArrayRef{2, 3, 9, 7}));
  EXPECT_EQ(AdaptiveMaxPool2d({std::nullopt, 1})(x).sizes(), (IntArrayRef{2, 3, 9, 1}));
  auto [y, index] = AdaptiveMaxPool2d(4)->forward_with_indices(x);
  expect_same(x.flatten(2).gather(2, index.flatten(2)).view(y.sizes()), y);
  EXPECT_EQ(AdaptiveAvgPool1d(4)(draw({2, 9})).sizes(), (IntArrayRef{2, 4}));
  EXPECT_EQ(AdaptiveAvgPool3d(2)(draw({1, 2, 3, 4, 5})).sizes(), (IntArrayRef{1, 2, 2, 2, 2}));
  EXPECT_EQ(AdaptiveMaxPool1d(4)(draw({2, 9})).sizes(), (IntArrayRef{2, 4}));
  EXPECT_EQ(AdaptiveMaxPool3d({2, 1, 3})(draw({1, 2, 3, 4, 5})).sizes(), (IntArrayRef{1, 2, 2, 1, 3}));
}
TEST(PoolModules, UnpoolingTakesTheSizeThatPoolingLost) {
  const Tensor x = draw({1, 2, 7, 6});
  auto [y, index] = MaxPool2d(2)->forward_with_indices(x);
  EXPECT_EQ(MaxUnpool2d(2)->forward(y, index).sizes(), (IntArrayRef{1, 2, 6, 6}));
  const Tensor back = MaxUnpool2d(2)->forward(y, index, std::vector<int64_t>{1, 2, 7, 6});
  EXPECT_EQ(back.sizes(), x.sizes());
  expect_same(where(back != 0, x, zeros({}, kDouble)), back);
  EXPECT_THROW(MaxUnpool2d(2)->forward(y, index, std::vector<int64_t>{8, 6}), ValueError);
  auto [z, at] = MaxPool1d(3)->forward_with_indices(draw({2, 9}));
  EXPECT_EQ(MaxUnpool1d(3)->forward(z, at).sizes(), (IntArrayRef{2, 9}));
  auto [v, where3] = MaxPool3d(2)->forward_with_indices(draw({1, 1, 4, 4, 4}));
  EXPECT_EQ(MaxUnpool3d(2)->forward(v, where3).sizes(), (IntArrayRef{1, 1, 4, 4, 4}));
}
TEST(PoolModules, FractionalPoolingTakesASizeOrARatio) {
  const Tensor x = draw({2, 3, 9, 8});
  EXPECT_EQ(FractionalMaxPool2d(FractionalMaxPool2dOptions(2).output_size(4))(x).sizes(),
            (IntArrayRef{2, 3, 4, 4}));
  EXPECT_EQ(FractionalMaxPool2d(
                FractionalMaxPool2dOptions({2, 3}).output_ratio(ExpandingArray<2, double>({0.5, 0.6})))(x)
                .sizes(),
            (IntArrayRef{2, 3, 4, 4}));
  EXPECT_EQ(FractionalMaxPool3d(FractionalMaxPool3dOptions(2).output_size(ExpandingArray<3>({2, 3, 3})))(
                draw({2, 4, 5, 6}))
                .sizes(),
            (IntArrayRef{2, 2, 3, 3}));
  EXPECT_THROW(FractionalMaxPool2d(FractionalMaxPool2dOptions(2)), ValueError);
  EXPECT_THROW(
      FractionalMaxPool2d(FractionalMaxPool2dOptions(2).output_ratio(ExpandingArray<2, double>(1.5))),
      ValueError);
}
TEST(PoolModules, LpPoolingIsTheNormOfTheWindow) {
  const Tensor x = draw({1, 1, 4, 4}).abs();
  const Tensor y = LPPool2d(3.0, 2)(x);
  double sum = 0;
  for (const int64_t i : {0, 1, 4, 5}) sum += std::pow(x.data_ptr<double>()[i], 3);
  EXPECT_NEAR(y.contiguous().data_ptr<double>()[0], std::cbrt(sum), 1e-12);
  EXPECT_EQ(LPPool1d(LPPool1dOptions(2, 3).stride(1))(draw({2, 3, 9})).sizes(), (IntArrayRef{2, 3, 7}));
  EXPECT_EQ(LPPool3d(2, {1, 2, 2})(draw({1, 2, 3, 4, 5}).abs()).sizes(), (IntArrayRef{1, 2, 3, 2, 2}));
}
TEST(Upsample, EveryModeHasItsDims) {
  const Tensor a = draw({1, 2, 5}), b = draw({1, 2, 5, 4}), c = draw({1, 2, 3, 5, 4});
  auto up = [](const Tensor& x, auto mode, std::optional<bool> corners = std::nullopt) {
    return F::interpolate(
        x,
        F::InterpolateFuncOptions().scale_factor(std::vector<double>{2}).mode(mode).align_corners(corners));
  };
  expect_same(up(a, kNearest), upsample_nearest1d(a, {10}));
  expect_same(up(b, kNearest), upsample_nearest2d(b, {10, 8}));
  expect_same(up(c, kNearest), upsample_nearest3d(c, {6, 10, 8}));
  expect_same(up(a, kLinear, true), upsample_linear1d(a, {10}, true));
  expect_same(up(b, kBilinear, true), upsample_bilinear2d(b, {10, 8}, true));
  expect_same(up(b, kBicubic), upsample_bicubic2d(b, {10, 8}, false));
  expect_same(up(c, kTrilinear, false), upsample_trilinear3d(c, {6, 10, 8}, false));
  expect_same(up(b, kNearestExact), _upsample_nearest_exact2d(b, {10, 8}));
  expect_same(up(b, kArea), adaptive_avg_pool2d(b, {10, 8}));
  EXPECT_THROW(up(a, kBilinear), ValueError);
  EXPECT_THROW(up(b, kLinear), ValueError);
  EXPECT_THROW(up(b, kNearest, true), ValueError);
  EXPECT_THROW(up(draw({2, 2}), kNearest), ValueError);
  EXPECT_THROW(F::interpolate(b, F::InterpolateFuncOptions()), ValueError);
  EXPECT_THROW(F::interpolate(b, F::InterpolateFuncOptions().size(std::vector<int64_t>{3, 3, 3})),
               ValueError);
  const Tensor small = F::interpolate(
      b, F::InterpolateFuncOptions().size(std::vector<int64_t>{2, 3}).mode(kBilinear).antialias(true));
  expect_same(small, _upsample_bilinear2d_aa(b, {2, 3}, false));
  // With recompute_scale_factor positions come from the rounded sizes.
  const Tensor rounded = F::interpolate(a, F::InterpolateFuncOptions()
                                               .scale_factor(std::vector<double>{1.5})
                                               .mode(kLinear)
                                               .recompute_scale_factor(true));
  expect_same(rounded, upsample_linear1d(a, {7}, false));
  EXPECT_EQ(Upsample(UpsampleOptions().size(std::vector<int64_t>{7, 9}).mode(kBilinear))(b).sizes(),
            (IntArrayRef{1, 2, 7, 9}));
}
TEST(GridSampleFunction, DefaultsAreBilinearZerosAndUnalignedCorners) {
  const Tensor x = draw({1, 2, 5, 4}), theta = draw({1, 2, 3});
  const Tensor grid = F::affine_grid(theta, {1, 2, 3, 3});
  expect_same(grid, affine_grid_generator(theta, {1, 2, 3, 3}, false));
  expect_same(F::grid_sample(x, grid), grid_sampler(x, grid, 0, 0, false));
  expect_same(
      F::grid_sample(x, grid,
                     F::GridSampleFuncOptions().mode(kNearest).padding_mode(kReflection).align_corners(true)),
      grid_sampler(x, grid, 1, 2, true));
  expect_same(F::grid_sample(x, grid, F::GridSampleFuncOptions().padding_mode(kZeros)),
              grid_sampler(x, grid, 0, 0, false));
  EXPECT_THROW(F::GridSampleFuncOptions().padding_mode(kReflect), ValueError);
  EXPECT_THROW(F::grid_sample(x, grid, F::GridSampleFuncOptions().mode(kTrilinear)), ValueError);
}
TEST(PixelShuffleModule, ShufflingBackGivesTheInput) {
  const Tensor x = draw({2, 8, 3, 4});
  const Tensor y = PixelShuffle(2)(x);
  EXPECT_EQ(y.sizes(), (IntArrayRef{2, 2, 6, 8}));
  expect_same(PixelUnshuffle(2)(y), x);
}
TEST(PoolModules, PrintTheirOptionsAndClone) {
  EXPECT_EQ(printed(*MaxPool1d(5)),
            "vesta::nn::MaxPool1d(kernel_size=5, stride=5, padding=0, dilation=1, ceil_mode=false)");
  EXPECT_EQ(printed(*MaxPool2d(MaxPool2dOptions({5, 6}).stride({1, 2}))),
            "vesta::nn::MaxPool2d(kernel_size=[5, 6], stride=[1, 2], padding=[0, 0], dilation=[1, 1], "
            "ceil_mode=false)");
  EXPECT_EQ(printed(*AvgPool2d(5)),
            "vesta::nn::AvgPool2d(kernel_size=[5, 5], stride=[5, 5], padding=[0, 0])");
  EXPECT_EQ(printed(*AdaptiveAvgPool2d({5, std::nullopt})),
            "vesta::nn::AdaptiveAvgPool2d(output_size=[5, None])");
  EXPECT_EQ(printed(*MaxUnpool1d(5)), "vesta::nn::MaxUnpool1d(kernel_size=5, stride=5, padding=0)");
  EXPECT_EQ(printed(*LPPool1d(2, 5)),
            "vesta::nn::LPPool1d(norm_type=2, kernel_size=5, stride=5, ceil_mode=false)");
  EXPECT_EQ(printed(*Upsample(UpsampleOptions().scale_factor(std::vector<double>{2}).mode(kBilinear))),
            "vesta::nn::Upsample(scale_factor=[2], mode=kBilinear)");
  EXPECT_EQ(printed(*PixelShuffle(5)), "vesta::nn::PixelShuffle(upscale_factor=5)");
  const auto copy = MaxPool2d(MaxPool2dOptions(3).stride(2))->clone();
  const Tensor x = draw({1, 2, 7, 7});
  expect_same(copy->as<MaxPool2d>()->forward(x), max_pool2d(x, {3}, {2}));
  Sequential net(MaxPool2d(2), AdaptiveAvgPool2d(1), Flatten());
  EXPECT_EQ(net->forward(x).sizes(), (IntArrayRef{1, 2}));
}
TEST(EmbeddingBagModule, JoinsRowsOfA2DInputAndOfOffsets) {
  manual_seed(kSeed);
  EmbeddingBag bag(EmbeddingBagOptions(6, 3).mode(kSum));
  const Tensor index = arange(6, kLong).view({2, 3});
  const Tensor y = bag(index);
  expect_same(y, bag->weight.view({2, 3, 3}).sum({1}), 1e-6);
  Tensor offsets = zeros({2}, kLong);
  offsets.data_ptr<int64_t>()[1] = 3;
  expect_same(bag(index.view({-1}), offsets), y);
  EXPECT_THROW(bag(index, offsets), ValueError);
  EXPECT_THROW(bag(index.view({-1})), ValueError);
  EXPECT_EQ(EmbeddingBag(6, 3)->options.mode(), BagMode::Mean);
  EmbeddingBag largest(EmbeddingBagOptions(6, 3).mode(kMax)._weight(bag->weight.detach().clone()));
  expect_same(largest(index), bag->weight.view({2, 3, 3}).amax({1}));
  EmbeddingBag padded(EmbeddingBagOptions(6, 3).padding_idx(-1));
  EXPECT_EQ(padded->weight.select(0, 5).abs().sum().item<double>(), 0);
  EmbeddingBag bounded(EmbeddingBagOptions(6, 3).max_norm(0.5).mode(kSum));
  bounded(index);
  EXPECT_LE(bounded->weight.detach().norm(Scalar(2), {1}).max().item<double>(), 0.5001);
  EXPECT_FALSE(EmbeddingBag::from_pretrained(ones({2, 2}))->weight.requires_grad());
}
TEST(CtcModule, ReducesAsItsOptionsSay) {
  const Tensor p = log_softmax(draw({5, 2, 4}), -1);
  const Tensor targets = ones({2, 2}, kLong), frames = full({2}, 5, kLong), lengths = full({2}, 2, kLong);
  const Tensor each = F::ctc_loss(p, targets, frames, lengths, F::CTCLossFuncOptions().reduction(kNone));
  expect_same(CTCLoss(CTCLossOptions().reduction(kSum))->forward(p, targets, frames, lengths), each.sum(),
              1e-14);
  expect_same(CTCLoss()->forward(p, targets, frames, lengths), (each / 2).mean(), 1e-14);
}
TEST(MultiLabelMargin, IsTheHingeOverPairs) {
  Tensor x = zeros({4}, kDouble), t = full({4}, -1, kLong);
  const double v[] = {0.1, 0.2, 0.4, 0.8};
  std::copy(v, v + 4, x.data_ptr<double>());
  t.data_ptr<int64_t>()[0] = 3;
  t.data_ptr<int64_t>()[1] = 0;
  // PyTorch's documented example: (1 - (0.1 - 0.2) + 1 - (0.1 - 0.4) + 1 - (0.8 - 0.2) + 1 - (0.8 - 0.4)) / 4 = 0.85.
  EXPECT_NEAR(MultiLabelMarginLoss()(x, t).item<double>(), 0.85, 1e-12);
  EXPECT_NEAR(F::pdist(x.view({4, 1})).max().item<double>(), 0.7, 1e-12);
}

}  // namespace
}  // namespace vesta::nn
