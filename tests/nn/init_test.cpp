// nn::init's structured fills: what makes an orthogonal, a channel-preserving and a sparse weight one.
#include <gtest/gtest.h>

#include "vesta/nn.h"
#include "vesta/nn_init_structured.h"
#include "vesta/ops.h"

namespace vesta::nn {
namespace {

TEST(StructuredInit, RowsOrColumnsOfAnOrthogonalFillAreOrthonormalTimesTheGain) {
  const TensorOptions f64 = TensorOptions(kDouble);
  for (const auto& sizes : std::vector<std::vector<int64_t>>{{3, 7}, {7, 3}, {4, 4}, {4, 2, 3, 1}, {1, 1}}) {
    const Tensor w = init::orthogonal_(empty(sizes, f64), 2, Generator(5)).reshape({sizes[0], -1});
    const Tensor product = w.size(0) <= w.size(1) ? w.mm(w.t()) : w.t().mm(w);
    EXPECT_TRUE(allclose(product, eye(product.size(0), f64) * 4, 0, 1e-12)) << product;
  }
  EXPECT_THROW(init::orthogonal_(empty({3})), ValueError);
  EXPECT_EQ(init::orthogonal_(empty({0, 3})).numel(), 0);
}

TEST(StructuredInit, AConvolutionWithADiracWeightPassesItsChannelsOn) {
  const Tensor x = randn({2, 4, 5, 6}, Generator(7));
  const Tensor w = init::dirac_(empty({4, 4, 3, 3}));
  EXPECT_TRUE(equal(conv2d(x, w, {}, 1, 1), x));
  // Two groups, each of which sees 2 channels and gives them on, with one output more that stays zero.
  const Tensor grouped = init::dirac_(empty({6, 2, 3, 3}), 2);
  const Tensor y = conv2d(x, grouped, {}, 1, 1, 1, 2);
  EXPECT_TRUE(equal(y.narrow(1, 0, 2), x.narrow(1, 0, 2)));
  EXPECT_TRUE(equal(y.narrow(1, 3, 2), x.narrow(1, 2, 2)));
  EXPECT_EQ(y.select(1, 2).abs().max().item<double>(), 0);
  EXPECT_EQ(y.select(1, 5).abs().max().item<double>(), 0);
  EXPECT_THROW(init::dirac_(empty({4, 4})), ValueError);
  EXPECT_THROW(init::dirac_(empty({5, 4, 3}), 2), ValueError);
  EXPECT_THROW(init::dirac_(empty({5, 4, 3}), 0), ValueError);
}

TEST(StructuredInit, EachColumnOfASparseFillHasItsZeros) {
  const Tensor w = init::sparse_(empty({11, 5}, TensorOptions(kDouble)), 0.25, 0.1, Generator(3));
  const Tensor zeros = (w == 0).sum(0);  // ceil(0.25 * 11) = 3
  for (int64_t c = 0; c < 5; ++c) EXPECT_EQ(zeros[c].item<int64_t>(), 3);
  EXPECT_EQ((init::sparse_(empty({4, 3}), 1) != 0).sum().item<int64_t>(), 0);
  EXPECT_THROW(init::sparse_(empty({4}), 0.5), ValueError);
  EXPECT_THROW(init::sparse_(empty({4, 3}), 1.5), ValueError);
}

}  // namespace
}  // namespace vesta::nn
