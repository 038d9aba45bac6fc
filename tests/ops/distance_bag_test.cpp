// cdist and pdist, embedding bags and numerical gradients against plain loops in double.
#include <gtest/gtest.h>
#include <vesta/autograd.h>
#include <vesta/error.h>

#include <cmath>
#include <limits>

#include "vesta/ops.h"
#include "vesta/random.h"

namespace vesta {
namespace {

constexpr uint64_t kSeed = 7;
constexpr double kInf = std::numeric_limits<double>::infinity();
using Ints = std::vector<int64_t>;

Tensor draw(Ints sizes, DType t = kDouble, uint64_t seed = kSeed) {
  return randn(sizes, Generator(seed), TensorOptions(kDouble)).to(t);
}
Tensor ints(const Ints& v) {
  Tensor t = zeros({int64_t(v.size())}, kLong);
  std::copy(v.begin(), v.end(), t.data_ptr<int64_t>());
  return t;
}
double norm_of(const double* a, const double* b, int64_t n, double p) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double d = std::abs(a[i] - b[i]);
    sum = p == 0 ? sum + (d != 0) : p == kInf ? std::max(sum, d) : sum + std::pow(d, p);
  }
  return p == 0 || p == kInf ? sum : std::pow(sum, 1 / p);
}

TEST(Distance, PairsOfRowsHaveTheNormsOfTheirDifferences) {
  for (const double p : {0.0, 0.5, 1.0, 1.7, 2.0, 3.0, kInf})
    for (const Ints& s : {Ints{3, 4, 5}, Ints{1, 30, 7}, Ints{27, 2, 1}, Ints{5, 6, 19}}) {
      const Tensor x = draw({s[0], s[2]}), y = draw({s[1], s[2]}, kDouble, kSeed + 1);
      for (const std::optional<int64_t> mode :
           {std::optional<int64_t>(), std::optional<int64_t>(1), std::optional<int64_t>(2)}) {
        const Tensor d = cdist(x, y, p, mode);
        for (int64_t i = 0; i < s[0]; ++i)
          for (int64_t j = 0; j < s[1]; ++j) {
            const double want =
                norm_of(x.data_ptr<double>() + i * s[2], y.data_ptr<double>() + j * s[2], s[2], p);
            ASSERT_NEAR(d.contiguous().data_ptr<double>()[i * s[1] + j], want, 1e-10 * (1 + want))
                << "p " << p << ", seed " << kSeed;
          }
      }
      const Tensor pairs = pdist(x, p);
      int64_t k = 0;
      for (int64_t i = 0; i < s[0]; ++i)
        for (int64_t j = i + 1; j < s[0]; ++j, ++k)
          ASSERT_NEAR(pairs.data_ptr<double>()[k],
                      norm_of(x.data_ptr<double>() + i * s[2], x.data_ptr<double>() + j * s[2], s[2], p),
                      1e-12);
      ASSERT_EQ(pairs.numel(), k);
    }
}
TEST(Distance, BatchesBroadcast) {
  const Tensor x = draw({2, 1, 3, 4}), y = draw({5, 2, 4});
  const Tensor d = cdist(x, y);
  ASSERT_EQ(d.sizes(), (IntArrayRef{2, 5, 3, 2}));
  EXPECT_EQ((d.select(0, 1).select(0, 3) - cdist(x.select(0, 1).select(0, 0), y.select(0, 3)))
                .abs()
                .max()
                .item<double>(),
            0);
}
// pt#145064: a last dim of size 0, and 3-D input.
TEST(Distance, EmptyRowsHaveDistanceZeroAndWrongDimsThrow) {
  EXPECT_EQ(pdist(zeros({4, 0}, kDouble)).sum().item<double>(), 0);
  EXPECT_EQ(pdist(zeros({4, 0}, kDouble)).numel(), 6);
  EXPECT_EQ(pdist(zeros({0, 3}, kDouble)).numel(), 0);
  EXPECT_EQ(pdist(zeros({1, 3}, kDouble)).numel(), 0);
  EXPECT_EQ(cdist(zeros({2, 0}, kDouble), zeros({3, 0}, kDouble)).sizes(), (IntArrayRef{2, 3}));
  EXPECT_THROW(pdist(zeros({2, 3, 4}, kDouble)), ValueError);
  EXPECT_THROW(pdist(draw({3, 2}), -1), ValueError);
  EXPECT_THROW(pdist(draw({3, 2}), std::nan("")), ValueError);
  EXPECT_THROW(cdist(draw({3, 2}), draw({3, 3})), ValueError);
  EXPECT_THROW(cdist(draw({3}), draw({3, 3})), ValueError);
  EXPECT_THROW(cdist(draw({3, 2}), draw({3, 2}), 2, 3), ValueError);
  EXPECT_THROW(pdist(zeros({3, 2}, kLong)), TypeError);
}
TEST(Distance, EqualRowsHaveGradientZeroForAnyNorm) {
  for (const double p : {0.5, 1.0, 1.5, 2.0, 4.0, kInf}) {
    Tensor x = full({3, 2}, 1.5, kDouble).requires_grad_();
    (pdist(x, p).sum() + cdist(x, x, p).sum()).backward();
    EXPECT_EQ(x.grad().abs().max().item<double>(), 0) << p;
  }
}

// ---- embedding bags ----
TEST(EmbeddingBag, JoinsTheRowsOfEachBag) {
  const Tensor table = draw({6, 5});
  const Ints index = {3, 1, 1, 5, 0, 2, 2}, offsets = {0, 3, 3, 4};
  const Tensor factors = draw({7}, kDouble, 3);
  for (const int64_t mode : {0, 1, 2})
    for (const int64_t padding : {-1, 2, 1}) {
      const Tensor y = std::get<0>(_embedding_bag(table, ints(index), ints(offsets), false, mode, false,
                                                  mode == 0 ? factors : Tensor(), false, padding));
      ASSERT_EQ(y.sizes(), (IntArrayRef{4, 5}));
      for (size_t b = 0; b < 4; ++b)
        for (int64_t d = 0; d < 5; ++d) {
          double want = mode == 2 ? -kInf : 0, count = 0;
          for (int64_t i = offsets[b]; i < (b == 3 ? 7 : offsets[b + 1]); ++i) {
            if (index[size_t(i)] == padding) continue;
            const double v = table.data_ptr<double>()[index[size_t(i)] * 5 + d];
            want = mode == 2 ? std::max(want, v) : want + v * (mode == 0 ? factors.data_ptr<double>()[i] : 1);
            ++count;
          }
          if (mode == 1 && count > 0) want /= count;
          if (count == 0) want = 0;
          ASSERT_NEAR(y.data_ptr<double>()[int64_t(b) * 5 + d], want, 1e-13)
              << "mode " << mode << ", bag " << b;
        }
    }
  const Ints with_end = {0, 3, 3, 4, 6};
  const Tensor y = std::get<0>(embedding_bag(table, ints(index), ints(with_end), false, 0, false, {}, true));
  EXPECT_EQ(y.size(0), 4);
  EXPECT_LT((y.select(0, 3) - table.select(0, 0) - table.select(0, 2)).abs().max().item<double>(), 1e-14);
}
TEST(EmbeddingBag, GradientsGoToTheRowsUsed) {
  Tensor table = draw({6, 3}).requires_grad_();
  std::get<0>(embedding_bag(table, ints({1, 1, 4}), ints({0, 2}), true, 0)).sum().backward();
  // scale_grad_by_freq: row 1 occurs twice.
  const std::vector<double> want = {0, 1, 0, 0, 1, 0};
  for (int64_t r = 0; r < 6; ++r) EXPECT_EQ(table.grad().data_ptr<double>()[r * 3], want[size_t(r)]) << r;
  EXPECT_THROW(std::get<0>(embedding_bag(table, ints({1}), ints({0}), false, 0, true)).sum().backward(),
               NotImplementedError);
}
// pt#175368: an offset beyond the indices.
TEST(EmbeddingBag, BadOffsetsAndIndicesThrow) {
  const Tensor table = draw({6, 3});
  auto bag = [&](const Ints& index, const Ints& offsets, bool last = false) {
    return embedding_bag(table, ints(index), ints(offsets), false, 0, false, {}, last);
  };
  EXPECT_THROW(bag({1, 2}, {0, 3}), ValueError);
  EXPECT_THROW(bag({1, 2}, {1, 2}), ValueError);
  EXPECT_THROW(bag({1, 2}, {0, 2, 1}), ValueError);
  EXPECT_THROW(bag({1, 2}, {0, -1}), ValueError);
  EXPECT_THROW(bag({1, 2}, {0, 3}, true), ValueError);
  EXPECT_THROW(bag({1, 2}, {}, true), ValueError);
  EXPECT_THROW(bag({1, 6}, {0}), IndexError);
  EXPECT_THROW(bag({-1, 2}, {0}), IndexError);
  EXPECT_THROW(embedding_bag(table, ints({1}), ints({0}), false, 3), ValueError);
  EXPECT_THROW(embedding_bag(table, ints({1}), ints({0}), false, 1, false, draw({1})), ValueError);
  EXPECT_THROW(embedding_bag(table, ints({1, 2}), ints({0}), false, 0, false, draw({1})), ValueError);
  EXPECT_THROW(embedding_bag(table, ints({1}).to(kDouble), ints({0})), TypeError);
  EXPECT_EQ(std::get<0>(bag({}, {})).sizes(), (IntArrayRef{0, 3}));
  EXPECT_EQ(std::get<0>(bag({}, {0, 0})).abs().sum().item<double>(), 0);
}
TEST(EmbeddingBag, RenormScalesLongRowsOnce) {
  Tensor table = full({4, 2}, 3, kDouble);
  embedding_renorm_(table, ints({2, 0, 2}), 1.0, 2.0);
  for (int64_t r = 0; r < 4; ++r)
    EXPECT_NEAR(table.select(0, r).norm().item<double>(), r % 2 ? std::sqrt(18.0) : 1, 1e-6) << r;
}

// ---- gradient ----
TEST(NumericalGradient, IsExactOnParabolas) {
  // Central differences, and one-sided ones of second order, differentiate parabolas exactly; any coordinates will do.
  const Ints at = {0, 1, 3, 4, 8};
  Tensor c = zeros({5}, kDouble);
  std::copy(at.begin(), at.end(), c.data_ptr<double>());
  const Tensor y = (c * c).unsqueeze(0).expand({2, 5}), points[] = {c};
  const Tensor d = gradient(y, TensorList(points, 1), std::optional<int64_t>(1), 2)[0];
  for (int64_t i = 0; i < 5; ++i)
    EXPECT_NEAR(d.contiguous().data_ptr<double>()[i], 2 * double(at[size_t(i)]), 1e-12);
  const Tensor line = arange(6, kDouble) * 0.5,
               even = gradient(line * line, std::optional<Scalar>(0.5), std::optional<int64_t>(), 2)[0];
  for (int64_t i = 0; i < 6; ++i) EXPECT_NEAR(even.data_ptr<double>()[i], double(i), 1e-12);
  EXPECT_EQ(gradient(draw({3, 4})).size(), 2u);
  EXPECT_THROW(gradient(draw({3, 1})), ValueError);
  EXPECT_THROW(gradient(draw({3, 4}), std::optional<Scalar>(1), std::optional<int64_t>(2)), IndexError);
  EXPECT_THROW(gradient(draw({3, 4}), std::optional<Scalar>(1), std::optional<int64_t>(0), 3), ValueError);
  EXPECT_THROW(gradient(draw({3, 4}), IntArrayRef{0, -2}), ValueError);
}

}  // namespace
}  // namespace vesta
