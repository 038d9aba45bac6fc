// The operators of a training step against compositions of simpler ones, in float64, and properties that golden cases
// do not show: strided operands, thread independence, equality with and without grad mode.
#include <gtest/gtest.h>

#include <cmath>

#include "base/thread_pool.h"
#include "vesta/autograd.h"
#include "vesta/ops.h"

namespace vesta {
namespace {

Tensor draw(std::vector<int64_t> sizes, uint64_t seed, DType t = kDouble) {
  return randn(sizes, Generator(seed), TensorOptions(t));
}

void expect_close(const Tensor& a, const Tensor& b, double tolerance) {
  ASSERT_EQ(a.sizes(), b.sizes());
  Tensor x = a.detach().to(kDouble).contiguous(), y = b.detach().to(kDouble).contiguous();
  for (int64_t i = 0; i < x.numel(); ++i) {
    double p = x.data_ptr<double>()[i], q = y.data_ptr<double>()[i];
    ASSERT_NEAR(p, q, tolerance * (1 + std::fabs(q))) << "element " << i;
  }
}
void expect_same(const Tensor& a, const Tensor& b) { expect_close(a, b, 0); }

TEST(TrainingOps, ProductsReadTransposedOperandsInPlace) {
  Tensor a = draw({7, 33}, 1), b = draw({33, 9}, 2), at = a.t().contiguous().t(), bt = b.t().contiguous().t();
  Tensor want = (a.unsqueeze(2) * b.unsqueeze(0)).sum({1});
  for (auto& x : {a, at})
    for (auto& y : {b, bt}) expect_close(mm(x, y), want, 1e-13);
  expect_close(matmul(a.expand({3, 7, 33}), b).select(0, 1), want, 1e-13);
  expect_close(addmm(draw({9}, 3), a, b, 2, 0.5), draw({9}, 3) * 2 + want * 0.5, 1e-13);
  EXPECT_THROW(mm(a, a), ValueError);
  EXPECT_THROW(mm(a, b.to(kFloat)), TypeError);
}

TEST(TrainingOps, HalfProductsAccumulateInFloat) {
  // 4096 products of 1: bf16 itself cannot count past 256.
  Tensor ones_row = ones({1, 4096}, TensorOptions(kBFloat16)),
         column = ones({4096, 1}, TensorOptions(kBFloat16));
  EXPECT_EQ(mm(ones_row, column).item<double>(), 4096);
}

TEST(TrainingOps, LinearGradientsAreThoseOfItsParts) {
  Tensor x = draw({2, 5, 6}, 1).requires_grad_(), w = draw({4, 6}, 2).requires_grad_(),
         b = draw({4}, 3).requires_grad_(), dy = draw({2, 5, 4}, 4);
  auto fused = autograd::grad({linear(x, w, b)}, {x, w, b}, {dy});
  auto parts = autograd::grad({(x.unsqueeze(2) * w).sum({-1}) + b}, {x, w, b}, {dy});
  for (size_t i = 0; i < 3; ++i) expect_close(fused[i], parts[i], 1e-12);
}

TEST(TrainingOps, FlashAttentionEqualsTheComposition) {
  for (bool causal : {false, true}) {
    Tensor q = draw({2, 4, 70, 8}, 1).requires_grad_(), k = draw({2, 2, 90, 8}, 2).requires_grad_(),
           v = draw({2, 2, 90, 5}, 3).requires_grad_();
    Tensor dy = draw({2, 4, 70, 5}, 4);
    Tensor fast = scaled_dot_product_attention(q, k, v, {}, 0, causal, std::nullopt, true);
    Tensor slow =
        std::get<0>(_scaled_dot_product_attention_math(q, k, v, {}, 0, causal, {}, std::nullopt, true));
    expect_close(fast, slow, 1e-12);
    auto a = autograd::grad({fast}, {q, k, v}, {dy}), b = autograd::grad({slow}, {q, k, v}, {dy});
    for (size_t i = 0; i < 3; ++i) expect_close(a[i], b[i], 1e-11);
    // Joining the heads again costs no copy.
    EXPECT_TRUE(fast.transpose(1, 2).is_contiguous());
  }
}

TEST(TrainingOps, CrossEntropyEqualsTheComposition) {
  Tensor x = draw({37, 11}, 1).requires_grad_(), w = rand({11}, Generator(2), TensorOptions(kDouble)),
         t = randint(11, {37}, Generator(3));
  t.select(0, 4).fill_(-100);
  for (int64_t reduction : {0, 1, 2}) {
    Tensor fused = cross_entropy_loss(x, t, w, reduction),
           parts = nll_loss(log_softmax(x, 1), t, w, reduction);
    expect_close(fused, parts, 1e-12);
    Tensor dy = draw(fused.sizes().vec(), 5);
    expect_close(autograd::grad({fused}, {x}, {dy})[0], autograd::grad({parts}, {x}, {dy})[0], 1e-12);
  }
  Tensor bad = t.clone();
  bad.select(0, 0).fill_(11);
  EXPECT_THROW(cross_entropy_loss(x, bad), IndexError);
}

TEST(TrainingOps, AdamwStepFollowsTheFormula) {
  Tensor p = draw({3, 5}, 1), g = draw({3, 5}, 2), m = draw({3, 5}, 3),
         v = rand({3, 5}, Generator(4), TensorOptions(kDouble)), step = ones({}) * 3;
  Tensor m1 = m * 0.9 + g * 0.1, v1 = v * 0.99 + g * g * 0.01;
  Tensor want =
      p * (1 - 0.01 * 0.1) - m1 / (1 - std::pow(0.9, 3)) * 0.01 / (sqrt(v1 / (1 - std::pow(0.99, 3))) + 1e-8);
  auto before = p._version();
  _fused_adamw_({p}, {g}, {m}, {v}, {}, {step}, 0.01, 0.9, 0.99, 0.1, 1e-8, false, false);
  expect_close(p, want, 1e-12);
  expect_close(m, m1, 1e-13);
  expect_close(v, v1, 1e-13);
  EXPECT_GT(p._version(), before);
  Tensor found = ones({});
  _fused_adamw_({p}, {g}, {m}, {v}, {}, {step}, 0.01, 0.9, 0.99, 0.1, 1e-8, false, false, {}, found);
  expect_close(p, want, 1e-12);  // skipped
}

// One step of a small transformer block; the results must not depend on threads or grad mode.
std::vector<Tensor> block_step(bool backward) {
  Tensor w = draw({96, 32}, 1, kFloat), tok = draw({50, 32}, 2, kFloat), gain = ones({32}),
         bias = zeros({32}), index = randint(50, {4, 40}, Generator(3));
  if (backward)
    for (auto& t : {w, tok, gain, bias}) t.requires_grad_();
  Tensor h = layer_norm(embedding(tok, index), {32}, gain, bias);
  auto qkv = linear(h, w).split(32, 2);
  auto heads = [](const Tensor& t) { return t.view({4, 40, 4, 8}).transpose(1, 2); };
  Tensor y = scaled_dot_product_attention(heads(qkv[0]), heads(qkv[1]), heads(qkv[2]), {}, 0, true)
                 .transpose(1, 2)
                 .reshape({160, 32});
  Tensor loss = cross_entropy_loss(linear(y, tok), index.flatten());
  std::vector<Tensor> r{loss.detach()};
  if (backward)
    for (auto& g : autograd::grad({loss}, {w, tok, gain, bias})) r.push_back(g);
  return r;
}
TEST(TrainingOps, ResultsDependOnNeitherThreadsNorGradMode) {
  int threads = num_threads();
  set_num_threads(1);
  auto one = block_step(true);
  set_num_threads(4);
  auto four = block_step(true);
  set_num_threads(threads);
  ASSERT_EQ(one.size(), 5u);
  for (size_t i = 0; i < one.size(); ++i) expect_same(one[i], four[i]);
  expect_same(block_step(false)[0], one[0]);
}

TEST(TrainingOps, BatchNormUpdatesRunningStatistics) {
  Tensor x = draw({6, 3, 4}, 1), mean = zeros({3}, TensorOptions(kDouble)),
         var = ones({3}, TensorOptions(kDouble));
  batch_norm(x, {}, {}, mean, var, true, 0.5, 1e-5, false);
  Tensor rows = x.transpose(0, 1).reshape({3, 24}), m = rows.mean({1}), c = rows - m.unsqueeze(1);
  expect_close(mean, m * 0.5, 1e-12);
  expect_close(var, (c * c).sum({1}) / 23 * 0.5 + 0.5, 1e-12);
  EXPECT_GT(mean._version(), 0u);
}

}  // namespace
}  // namespace vesta
