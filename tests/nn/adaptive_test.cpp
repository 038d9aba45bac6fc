// AdaptiveLogSoftmaxWithLoss, and embeddings whose rows are kept short.
#include "support/expect.h"
#include "vesta/autograd.h"
#include "vesta/nn.h"

namespace vesta::nn {
namespace {

constexpr uint64_t kSeed = 14;

Tensor classes(const std::vector<int64_t>& values) {
  Tensor t = empty({int64_t(values.size())}, TensorOptions(kInt64));
  for (size_t i = 0; i < values.size(); ++i) t.data_ptr<int64_t>()[i] = values[i];
  return t;
}

// The log-probability of one class from the parts' weights, in double.
double log_probability(const AdaptiveLogSoftmaxWithLoss& m, const Tensor& row, int64_t target) {
  const auto log_softmax_of = [](std::vector<double> scores, size_t i) {
    double sum = 0;
    for (const double s : scores) sum += std::exp(s);
    return scores[i] - std::log(sum);
  };
  const auto times = [](const Tensor& weight, const std::vector<double>& x) {
    const auto w = test::numbers(weight);
    std::vector<double> y(size_t(weight.size(0)));
    for (size_t o = 0; o < y.size(); ++o)
      for (size_t i = 0; i < x.size(); ++i) y[o] += w[o * x.size() + i] * x[i];
    return y;
  };
  const auto x = test::numbers(row), head = times(m->head->weight, x);
  if (target < 4) return log_softmax_of(head, size_t(target));
  const int64_t cluster = target < 9 ? 0 : 1;
  auto& tail = m->tail->at<Sequential>(size_t(cluster));
  const auto scores = times(tail.at<Linear>(1).weight, times(tail.at<Linear>(0).weight, x));
  return log_softmax_of(head, size_t(4 + cluster)) +
         log_softmax_of(scores, size_t(target - (cluster ? 9 : 4)));
}

TEST(AdaptiveLogSoftmaxWithLoss, AddsTheClustersAndTheirClasses) {
  manual_seed(kSeed);
  AdaptiveLogSoftmaxWithLoss m(AdaptiveLogSoftmaxWithLossOptions(8, 12, {4, 9}).div_value(2));
  EXPECT_EQ(m->named_parameters().keys(),
            (std::vector<std::string>{"head.weight", "tail.0.0.weight", "tail.0.1.weight", "tail.1.0.weight",
                                      "tail.1.1.weight"}));
  EXPECT_EQ(m->tail->at<Sequential>(1).at<Linear>(0).weight.sizes(), IntArrayRef({2, 8}));
  const std::vector<int64_t> targets{0, 3, 4, 8, 9, 11, 5};
  const Tensor x = randn({7, 8}), all = m->log_prob(x);
  const auto [output, loss] = m(x, classes(targets));
  std::vector<double> expected;
  double sum = 0;
  for (size_t i = 0; i < targets.size(); ++i) {
    expected.push_back(log_probability(m, x[int64_t(i)], targets[i]));
    sum += expected.back();
    EXPECT_NEAR(all[int64_t(i)][targets[i]].item<double>(), expected.back(), 1e-5);
  }
  test::expect_close(output, expected, 1e-5);
  test::expect_close(loss, {-sum / 7}, 1e-5);
  test::expect_close(all.exp().sum({1}), ones({7}), 1e-5);
  EXPECT_TRUE(equal(m->predict(x), all.argmax(1)));
  const auto single = m(x[2], classes({4})[0]);
  test::expect_close(single.output, {expected[2]}, 1e-5);
  const AdaptiveLogSoftmaxWithLoss copy(module_cast<AdaptiveLogSoftmaxWithLossImpl>(m->clone()));
  test::expect_close(copy->log_prob(x), all, 0);
}

TEST(AdaptiveLogSoftmaxWithLoss, GradientsAgreeWithDifferences) {
  manual_seed(kSeed);
  AdaptiveLogSoftmaxWithLoss m(AdaptiveLogSoftmaxWithLossOptions(4, 6, {2, 4}).div_value(2));
  m->to(kFloat64);
  const Tensor target = classes({5, 0, 2});
  std::vector<Tensor> inputs{randn({3, 4}, kFloat64).requires_grad_()};
  for (const Tensor& p : m->parameters()) inputs.push_back(p);
  EXPECT_TRUE(autograd::gradcheck(
      [&](const std::vector<Tensor>& in) {
        const auto result = m(in[0], target);
        return std::vector<Tensor>{result.output, result.loss};
      },
      inputs));
}

TEST(AdaptiveLogSoftmaxWithLoss, RefusesBadCutoffsAndTargets) {
  EXPECT_THROW(AdaptiveLogSoftmaxWithLoss(4, 6, std::vector<int64_t>{}), ValueError);
  EXPECT_THROW(AdaptiveLogSoftmaxWithLoss(4, 6, std::vector<int64_t>{0, 3}), ValueError);
  EXPECT_THROW(AdaptiveLogSoftmaxWithLoss(4, 6, std::vector<int64_t>{3, 3}), ValueError);
  EXPECT_THROW(AdaptiveLogSoftmaxWithLoss(4, 6, std::vector<int64_t>{6}), ValueError);
  AdaptiveLogSoftmaxWithLoss m(4, 6, std::vector<int64_t>{2});
  EXPECT_THROW(m(ones({2, 4}), classes({0, 6})), IndexError);
  EXPECT_THROW(m(ones({2, 4}), classes({-1, 0})), IndexError);
  EXPECT_THROW(m(ones({2, 4}), classes({0})), ValueError);
  EXPECT_THROW(m(ones({4}), classes({0})), ValueError);
}

TEST(Embedding, KeepsTheRowsItLooksUpShort) {
  manual_seed(kSeed);
  const Tensor table = randn({6, 4}) * 3;
  const auto embedding = Embedding::from_pretrained(
      table.clone(), EmbeddingFromPretrainedOptions().freeze(false).max_norm(1).norm_type(1).padding_idx(-1));
  EXPECT_EQ(embedding->options.padding_idx(), 5);
  EXPECT_TRUE(embedding->weight.requires_grad());
  const Tensor out = embedding(classes({1, 3, 1}));
  test::expect_close(out.abs().sum({1}), ones({3}), 1e-4);
  const Tensor norms = embedding->weight.detach().abs().sum({1});
  for (const int64_t row : {0, 2, 4, 5}) test::expect_close(embedding->weight[row], table[row], 0);
  EXPECT_NEAR(norms[1].item<double>(), 1, 1e-4);
  const Tensor before = embedding->weight.detach().clone();
  embedding(classes({1, 3}));
  test::expect_close(embedding->weight, before, 1e-6);
  EXPECT_THROW(embedding(classes({6})), IndexError);
}

}  // namespace
}  // namespace vesta::nn
