// Convolutions and folds beyond what the generic suite draws: extreme arguments, memory formats, and agreement of the
// names that stand for one another.
#include <gtest/gtest.h>
#include <vesta/autograd.h>
#include <vesta/error.h>

#include "ops/op_cases.h"
#include "vesta/ops.h"

namespace vesta {
namespace {

using Ints = std::vector<int64_t>;
constexpr int64_t kExtremes[] = {0,         -1,       1, 7, INT32_MAX, int64_t(1) << 31, int64_t(1) << 40,
                                 INT64_MAX, INT64_MIN};

// A result, or a typed error other than an internal one.
template <class Fn>
void survives(const std::string& what, Fn call) {
  try {
    call();
  } catch (const InternalError& e) {
    ADD_FAILURE() << what << ": internal error: " << e.what();
  } catch (const Error&) {
  }
}

TEST(Convolution, ExtremeAttributesGiveAResultOrATypedError) {
  manual_seed(3);
  const Tensor x = randn({1, 2, 4, 5}), w = randn({2, 2, 2, 3}),
               last = x.contiguous(MemoryFormat::ChannelsLast);
  for (const int64_t v : kExtremes)
    for (int attribute = 0; attribute < 5; ++attribute)
      for (const bool transposed : {false, true}) {
        Ints stride{1, 1}, pad{0, 0}, dilation{1, 1}, extra{0, 0};
        int64_t groups = 1;
        (attribute == 0   ? stride[0]
         : attribute == 1 ? pad[1]
         : attribute == 2 ? dilation[0]
         : attribute == 3 ? extra[1]
                          : groups) = v;
        // A padding of 2^31 - 1 is legal and its result of 2^33 elements may well be: not asked for.
        if (attribute == 1 && v == INT32_MAX && !transposed) continue;
        const std::string what = "attribute " + std::to_string(attribute) + " = " + std::to_string(v);
        if (attribute == 0 && transposed && v == INT32_MAX) continue;  // the same, for a stride
        if (attribute == 2 && transposed && v == INT32_MAX) continue;
        survives(what, [&] { convolution(x, w, {}, stride, pad, dilation, transposed, extra, groups); });
        survives(what, [&] { convolution(last, w, {}, stride, pad, dilation, transposed, extra, groups); });
        survives(what, [&] {
          const bool all[3] = {true, true, true};
          convolution_backward(randn({1, 2, 3, 3}), x, w, {}, stride, pad, dilation, transposed, extra,
                               groups, all);
        });
      }
}

TEST(Convolution, EmptyAndOddShapesGiveAResultOrATypedError) {
  for (const Ints& xs : {Ints{}, Ints{3}, Ints{2, 3}, Ints{0, 2, 5}, Ints{1, 0, 5}, Ints{1, 2, 0},
                         Ints{1, 2, 5}, Ints{1, 2, 5, 5}, Ints{1, 1, 2, 2, 2, 2}})
    for (const Ints& ws : {Ints{}, Ints{2}, Ints{0, 2, 3}, Ints{4, 0, 3}, Ints{4, 2, 0}, Ints{4, 2, 3},
                           Ints{4, 2, 3, 3}, Ints{1, 1, 2, 2, 2, 2}}) {
      const Tensor x = zeros(xs), w = zeros(ws);
      survives("conv1d", [&] { conv1d(x, w); });
      survives("conv2d", [&] { conv2d(x, w); });
      survives("conv3d", [&] { conv3d(x, w); });
      survives("conv1d same", [&] { conv1d(x, w, {}, 1, "same"); });
      survives("conv_transpose1d", [&] { conv_transpose1d(x, w); });
      survives("conv_transpose2d", [&] { conv_transpose2d(x, w); });
      survives("convolution", [&] { convolution(x, w, {}, {1}, {1}, {1}, false, {0}, 1); });
      survives("conv_tbc", [&] { conv_tbc(x, w, zeros({2}), 1); });
    }
  // Without input channels the bias is left.
  const Tensor bias = full({2}, 3.0);
  EXPECT_TRUE(conv1d(zeros({1, 0, 5}), zeros({2, 0, 2}), bias).equal(full({1, 2, 4}, 3.0)));
}

TEST(Fold, ExtremeAttributesGiveAResultOrATypedError) {
  const Tensor x = zeros({1, 2, 4, 5}), columns = zeros({1, 8, 12});
  for (const int64_t v : kExtremes)
    for (int attribute = 0; attribute < 4; ++attribute) {
      Ints kernel{2, 2}, dilation{1, 1}, pad{0, 0}, stride{1, 1};
      (attribute == 0 ? kernel : attribute == 1 ? dilation : attribute == 2 ? pad : stride)[1] = v;
      const std::string what = "attribute " + std::to_string(attribute) + " = " + std::to_string(v);
      if (attribute == 2 && v == INT32_MAX) continue;  // legal, and large
      survives(what, [&] { im2col(x, kernel, dilation, pad, stride); });
      survives(what, [&] { col2im(columns, {4, 5}, kernel, dilation, pad, stride); });
      survives(what, [&] { col2im(columns, {4, v}, kernel, dilation, pad, stride); });
    }
  for (const int64_t size : kExtremes)
    for (const int64_t step : kExtremes) {
      survives("unfold_backward", [&] { unfold_backward(zeros({3, 2, 2}), {4, 2}, 0, size, step); });
      survives("unfold_backward", [&] { unfold_backward(zeros({0, 2, 2}), {size, 2}, 0, 2, step); });
      survives("unfold_backward", [&] { unfold_backward(zeros({2}), {}, 0, size, step); });
    }
  survives("im2col", [&] { im2col(zeros({int64_t(1) << 40, 0, 3}), {1 << 20, 1 << 20}, 1, 1 << 20, 1); });
}

TEST(Convolution, NamesForTheSameThingAgree) {
  manual_seed(5);
  const Tensor x = randn({2, 4, 9, 8}), w = randn({6, 2, 3, 3}), b = randn({6});
  const Tensor y = convolution(x, w, b, {2, 1}, {1, 1}, {1, 1}, false, {0, 0}, 2);
  EXPECT_TRUE(y.equal(conv2d(x, w, b, {2, 1}, 1, 1, 2)));
  EXPECT_TRUE(
      y.equal(_convolution(x, w, b, {2, 1}, {1, 1}, {1, 1}, false, {0, 0}, 2, false, false, true, true)));
  EXPECT_TRUE(conv2d(x, w, b, 1, "same", 1, 2).equal(conv2d(x, w, b, 1, {1, 1}, 1, 2)));
  EXPECT_TRUE(y[1].equal(conv2d(x[1], w, b, {2, 1}, 1, 1, 2)));
  // One spatial dim is two of which one is 1.
  const Tensor line = x.select(2, 0), kernel = w.select(2, 0);
  EXPECT_TRUE(allclose(conv1d(line, kernel, b, 1, {1}, 1, 2),
                       conv2d(line.unsqueeze(2), kernel.unsqueeze(2), b, 1, Ints{0, 1}, 1, 2).squeeze(2),
                       1e-5, 1e-5));
}

TEST(Convolution, ResultsFollowTheFormatOfInputOrWeight) {
  const auto last = MemoryFormat::ChannelsLast, last3d = MemoryFormat::ChannelsLast3d;
  const Tensor x = randn({2, 3, 6, 5}), w = randn({4, 3, 2, 2}), x5 = randn({1, 2, 4, 3, 5}),
               w5 = randn({3, 2, 2, 2, 2});
  EXPECT_TRUE(conv2d(x, w).is_contiguous());
  EXPECT_TRUE(conv2d(x.contiguous(last), w).is_contiguous(last));
  EXPECT_TRUE(conv2d(x, w.contiguous(last)).is_contiguous(last));
  EXPECT_TRUE(conv3d(x5.contiguous(last3d), w5).is_contiguous(last3d));
  EXPECT_TRUE(conv_transpose2d(randn({2, 4, 3, 3}).contiguous(last), w).is_contiguous(last));
  // Integers and complex numbers too, though they are computed channels first.
  const Tensor i = randint(0, 9, {2, 3, 6, 5}, TensorOptions(kLong)),
               j = randint(0, 9, {4, 3, 2, 2}, TensorOptions(kLong));
  const Tensor got = conv2d(i.contiguous(last), j);
  EXPECT_TRUE(got.is_contiguous(last));
  EXPECT_TRUE(got.equal(conv2d(i, j)));
  EXPECT_TRUE(got.equal(conv2d(i.to(kDouble), j.to(kDouble)).to(kLong)));
}

TEST(Convolution, GradientsDoNotNeedAContiguousCotangent) {
  manual_seed(6);
  const Tensor x = randn({2, 3, 6, 5}).requires_grad_(), w = randn({4, 3, 3, 3}).requires_grad_(),
               b = randn({4}).requires_grad_();
  conv2d(x, w, b).sum().backward();  // an expanded number
  const Tensor dx = x.grad().clone(), dw = w.grad().clone(), db = b.grad().clone();
  for (const Tensor& t : {x, w, b}) t.mutable_grad() = Tensor();
  const Tensor y = conv2d(x, w, b);
  y.backward(ones(y.sizes()));
  EXPECT_TRUE(allclose(dx, x.grad()) && allclose(dw, w.grad()) && allclose(db, b.grad()));
  EXPECT_TRUE(db.equal(full({4}, 2.0 * 4 * 3)));
}

TEST(Renorm, LeavesSlicesWithinTheNormAlone) {
  manual_seed(7);
  const Tensor x = randn({5, 3, 4});
  const Tensor y = x.renorm(2, 1, 1.5);
  for (int64_t i = 0; i < 3; ++i) {
    const double norm = x.select(1, i).norm().item<double>();
    if (norm <= 1.5)
      EXPECT_TRUE(y.select(1, i).equal(x.select(1, i)));
    else
      EXPECT_NEAR(y.select(1, i).norm().item<double>(), 1.5, 1e-5);
  }
  EXPECT_TRUE(x.renorm(2, 1, 1e6).equal(x));
  EXPECT_THROW(x.renorm(-1, 1, 1), ValueError);
  EXPECT_THROW(x.renorm(2, 3, 1), IndexError);
  EXPECT_THROW(x.renorm(2, 0, -1), ValueError);
  EXPECT_THROW(randn({3}).renorm(2, 0, 1), ValueError);
}

}  // namespace
}  // namespace vesta
