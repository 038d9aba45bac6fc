// CTC against the enumeration of all alignments, its gradient against differences through log_softmax, and the public
// reports about padding, empty and infeasible targets.
#include <gtest/gtest.h>
#include <vesta/autograd.h>
#include <vesta/error.h>

#include <cmath>
#include <limits>

#include "vesta/ops.h"
#include "vesta/random.h"

namespace vesta {
namespace {

constexpr uint64_t kSeed = 99;
constexpr double kInf = std::numeric_limits<double>::infinity();
using Ints = std::vector<int64_t>;

Tensor draw(Ints sizes) { return randn(sizes, Generator(kSeed), TensorOptions(kDouble)); }
Tensor labels(const Ints& v, Ints sizes) {
  Tensor t = zeros(sizes, kLong);
  std::copy(v.begin(), v.end(), t.data_ptr<int64_t>());
  return t;
}

// -log of the sum over all paths that collapse to the labels: repeats joined, then blanks removed.
double enumerated(const Tensor& log_probs, int64_t sample, int64_t frames, const Ints& target,
                  int64_t blank) {
  const int64_t classes = log_probs.size(2);
  const Tensor p = log_probs.contiguous();
  double total = 0;
  Ints path(size_t(frames), 0);
  int64_t paths = 1;
  for (int64_t t = 0; t < frames; ++t) paths *= classes;
  for (int64_t code = 0; code < paths; ++code) {
    int64_t rest = code;
    double log_p = 0;
    Ints collapsed;
    int64_t before = -1;
    for (int64_t t = 0; t < frames; ++t) {
      const int64_t c = rest % classes;
      rest /= classes;
      log_p += p.data_ptr<double>()[(t * p.size(1) + sample) * classes + c];
      if (c != before && c != blank) collapsed.push_back(c);
      before = c;
    }
    if (collapsed == target) total += std::exp(log_p);
  }
  return -std::log(total);
}

TEST(Ctc, LossesAreThoseOfAllAlignments) {
  const Tensor p = log_softmax(draw({5, 3, 4}), -1);
  for (const int64_t blank : {0, 3}) {
    const std::vector<Ints> targets = {{1, 2}, {2, 2}, {}};
    const Ints frames = {5, 4, 3}, lengths = {2, 2, 0};
    const Tensor loss = ctc_loss(p, labels({1, 2, 2, 2}, {4}), frames, lengths, blank, 0);
    const Tensor padded =
        ctc_loss(p, labels({1, 2, 2, 2, 1, 1}, {3, 2}), labels(frames, {3}), labels(lengths, {3}), blank, 0);
    for (int64_t n = 0; n < 3; ++n) {
      const double want = enumerated(p, n, frames[size_t(n)], targets[size_t(n)], blank);
      EXPECT_NEAR(loss.data_ptr<double>()[n], want, 1e-12) << "sample " << n << ", seed " << kSeed;
      EXPECT_NEAR(padded.data_ptr<double>()[n], want, 1e-12) << "padded targets, sample " << n;
    }
  }
}

// pt#18215, pt#25057, pt#27442: uniform probabilities of 3 classes, blank 0. T = 2: of the 9 paths () has 1 (all blank),
// (1) has 3 (11, 10, 01), (1,2) has 1, (1,1) none. T = 3, of 27: (1,1) has 1 (101), (1,2) has 5, () has 1.
TEST(Ctc, UniformProbabilitiesCountPaths) {
  auto loss = [](int64_t frames, const Ints& target, bool zero) {
    const Tensor p = full({frames, 1, 3}, -std::log(3.0), kDouble);
    return ctc_loss(p, labels(target, {1, int64_t(target.size())}), Ints{frames},
                    Ints{int64_t(target.size())}, 0, 2, zero)
        .item<double>();
  };
  EXPECT_NEAR(loss(2, {}, false), std::log(9.0), 1e-12);
  EXPECT_NEAR(loss(2, {1}, false), std::log(9.0 / 3), 1e-12);
  EXPECT_NEAR(loss(2, {1, 2}, false), std::log(9.0), 1e-12);
  EXPECT_EQ(loss(2, {1, 1}, false), kInf);
  EXPECT_EQ(loss(2, {1, 1}, true), 0);
  EXPECT_NEAR(loss(3, {1, 1}, false), std::log(27.0), 1e-12);
  EXPECT_NEAR(loss(3, {1, 2}, false), std::log(27.0 / 5), 1e-12);
  EXPECT_NEAR(loss(3, {}, false), std::log(27.0), 1e-12);
}

TEST(Ctc, GradientsThroughLogSoftmaxAgreeWithDifferences) {
  for (const int64_t reduction : {0, 1, 2}) {
    auto f = [&](const autograd::variable_list& in) -> autograd::variable_list {
      return {ctc_loss(log_softmax(in[0], -1), labels({1, 2, 3, 3, 1}, {5}), Ints{6, 5, 4}, Ints{3, 2, 0}, 0,
                       reduction)};
    };
    EXPECT_NO_THROW(autograd::gradcheck(f, {draw({6, 3, 4}).requires_grad_()})) << "reduction " << reduction;
  }
}

TEST(Ctc, GradientsOfLogitsSumToZeroInEachFrameAndEndWithTheInput) {
  Tensor x = draw({6, 2, 4}).requires_grad_();
  ctc_loss(log_softmax(x, -1), labels({1, 2, 3}, {3}), Ints{6, 3}, Ints{2, 1}, 0, 2).backward();
  EXPECT_LT(x.grad().sum({2}).abs().max().item<double>(), 1e-12);
  EXPECT_EQ(x.grad().slice(0, 3).select(1, 1).abs().max().item<double>(), 0);
  EXPECT_GT(x.grad().slice(0, 0, 3).select(1, 1).abs().min().item<double>(), 0);
}

TEST(Ctc, ABatchEqualsItsSamplesAndInfeasibleOnesDoNotSpread) {
  const Tensor logits = draw({4, 3, 3});
  // The second needs 5 frames: (1, 1, 2) with a blank between the equal labels is 4 at least, here of 3.
  const std::vector<Ints> targets = {{1, 2}, {1, 1, 2}, {2}};
  const Ints frames = {4, 3, 2}, lengths = {2, 3, 1};
  Tensor x = logits.clone().requires_grad_();
  const Tensor loss =
      ctc_loss(log_softmax(x, -1), labels({1, 2, 1, 1, 2, 2}, {6}), frames, lengths, 0, 0, true);
  EXPECT_EQ(loss.detach().contiguous().data_ptr<double>()[1], 0);
  loss.sum().backward();
  EXPECT_EQ(x.grad().select(1, 1).abs().max().item<double>(), 0);
  for (int64_t n : {0, 2}) {
    Tensor one = logits.select(1, n).clone().requires_grad_();
    const Tensor single = ctc_loss(log_softmax(one, -1), labels(targets[size_t(n)], {lengths[size_t(n)]}),
                                   Ints{frames[size_t(n)]}, Ints{lengths[size_t(n)]}, 0, 0, true);
    EXPECT_EQ(single.dim(), 0);
    EXPECT_NEAR(single.item<double>(), loss.detach().data_ptr<double>()[n], 1e-13);
    single.backward();
    EXPECT_LT((one.grad() - x.grad().select(1, n)).abs().max().item<double>(), 1e-13);
  }
}

TEST(Ctc, LongTargetsStayFinite) {
  // More than 1,024 labels; the only alignments have a frame for each.
  const int64_t n = 1500;
  Ints target;
  for (int64_t i = 0; i < n; ++i) target.push_back(1 + i % 2);
  const Tensor p = full({n, 1, 3}, -std::log(3.0), kFloat);
  const double loss = ctc_loss(p, labels(target, {1, n}), Ints{n}, Ints{n}, 0, 2).item<double>();
  EXPECT_NEAR(loss, double(n) * std::log(3.0), 1e-3 * double(n));
}

TEST(Ctc, BadArgumentsThrowBeforeMemoryIsRead) {
  const Tensor p = log_softmax(draw({4, 2, 3}), -1);
  const Tensor t = labels({1, 2, 2}, {3});
  EXPECT_THROW(ctc_loss(p, t, Ints{4, 5}, Ints{2, 1}), ValueError);
  EXPECT_THROW(ctc_loss(p, t, Ints{4, -1}, Ints{2, 1}), ValueError);
  EXPECT_THROW(ctc_loss(p, t, Ints{4}, Ints{2, 1}), ValueError);
  EXPECT_THROW(ctc_loss(p, t, Ints{4, 4}, Ints{2, 2}), ValueError);
  EXPECT_THROW(ctc_loss(p, t, Ints{4, 4}, Ints{2, -1}), ValueError);
  EXPECT_THROW(ctc_loss(p, t, Ints{4, 4}, Ints{std::numeric_limits<int64_t>::max(), 1}), ValueError);
  EXPECT_THROW(ctc_loss(p, t, Ints{4, 4}, Ints{2, 1}, 3), ValueError);
  EXPECT_THROW(ctc_loss(p, t, Ints{4, 4}, Ints{2, 1}, -1), ValueError);
  EXPECT_THROW(ctc_loss(p, labels({1, 2, 3}, {3}), Ints{4, 4}, Ints{2, 1}), IndexError);
  EXPECT_THROW(ctc_loss(p, labels({1, -1, 2}, {3}), Ints{4, 4}, Ints{2, 1}), IndexError);
  EXPECT_THROW(ctc_loss(p, labels({1, 2, 2, 1}, {2, 2}), Ints{4, 4}, Ints{2, 3}), ValueError);
  EXPECT_THROW(ctc_loss(p, t.to(kDouble), Ints{4, 4}, Ints{2, 1}), TypeError);
  EXPECT_THROW(ctc_loss(p.select(2, 0).select(1, 0), t, Ints{4, 4}, Ints{2, 1}), ValueError);
}

}  // namespace
}  // namespace vesta
