// Attention where a query may see no key at all, and where masked-out keys hold NaN.
#include "reports/reports_testing.h"
#include "vesta/nn.h"

namespace vesta::reports {
namespace {

Tensor attention_mask(int64_t queries, int64_t keys, int64_t blind) {
  Tensor m = ones({queries, keys}, kBool);
  m.select(0, blind).fill_(false);
  return m;
}

// pt#103963: a row of scores that are all -inf gave 0 / 0. A query that sees nothing has no weights: its output is 0, and
// so are all its gradients; the others are those of a call without it.
TEST(MaskedAttention, a_query_without_keys_gives_zero_and_finite_gradients) {
  Generator g(kSeed);
  for (int64_t n : {4, 70}) {
    Tensor q = draw(g, {2, 2, n, 8}, kFloat32).requires_grad_(),
           k = draw(g, {2, 2, n, 8}, kFloat32).requires_grad_(),
           v = draw(g, {2, 2, n, 8}, kFloat32).requires_grad_(), w = draw(g, {2, 2, n, 8}, kFloat32);
    Tensor seen = attention_mask(n, n, 1);
    Tensor added = zeros({n, n}).masked_fill(seen.logical_not(), -kInf);
    for (const Tensor& mask : {seen, added}) {
      Tensor y = scaled_dot_product_attention(q, k, v, mask);
      EXPECT_TRUE(all_equal(y.select(2, 1), 0));
      Tensor full = scaled_dot_product_attention(q, k, v);
      for (int64_t row : {int64_t(0), n - 1})
        EXPECT_LE(distance(y.select(2, row), full.select(2, row)), 1e-6);
      auto grads = autograd::grad({(y * w).sum()}, {q, k, v});
      // The call without that query: no term of it is left in the gradients of keys and values.
      Tensor w_rest = w.clone();
      w_rest.select(2, 1).fill_(0);
      auto rest = autograd::grad({(full * w_rest).sum()}, {q, k, v});
      for (int i = 0; i < 3; ++i) {
        EXPECT_TRUE(all_finite(grads[size_t(i)])) << "gradient " << i;
        EXPECT_LE(distance(grads[size_t(i)], rest[size_t(i)]), 1e-5) << "gradient " << i;
      }
      EXPECT_TRUE(all_equal(grads[0].select(2, 1), 0));
    }
  }
}

// pt#101967: a key that nobody may see must not change anything, whatever it holds.
TEST(MaskedAttention, nan_in_a_key_that_is_masked_out_changes_nothing) {
  Generator g(kSeed);
  for (int64_t n : {4, 70}) {
    Tensor q = draw(g, {1, 2, n, 8}, kFloat32), k = draw(g, {1, 2, n, 8}, kFloat32),
           v = draw(g, {1, 2, n, 8}, kFloat32);
    Tensor mask = ones({n, n}, kBool);
    mask.select(1, 2).fill_(false);
    Tensor want = scaled_dot_product_attention(q, k, v, mask);
    Tensor bad = k.clone();
    bad.select(2, 2).fill_(kNaN);
    EXPECT_TRUE(scaled_dot_product_attention(q, bad, v, mask).equal(want)) << "keys " << n;
  }
}

// pt#41508: embed 1, head 1, length 4, one query fully masked: NaN in every gradient of the batch. Right: its weights are
// 0, its output is that of the projection of 0 (the bias), all gradients are finite and the other rows are as without it.
TEST(MaskedAttention, multihead_attention_survives_a_fully_masked_row) {
  manual_seed(kSeed);
  nn::MultiheadAttention attention(nn::MultiheadAttentionOptions(1, 1));
  Generator g(kSeed);
  Tensor x = draw(g, {4, 2, 1}, kFloat32).requires_grad_();
  Tensor hidden = attention_mask(4, 4, 2).logical_not();  // true leaves a key out
  Tensor minus_inf = zeros({4, 4}).masked_fill(hidden, -kInf);
  auto [free, free_weights] = attention->forward(x, x, x);
  for (bool need_weights : {true, false})
    for (const Tensor& mask : {hidden, minus_inf}) {
      auto [y, weights] = attention->forward(x, x, x, Tensor(), need_weights, mask);
      if (need_weights) {
        EXPECT_TRUE(all_equal(weights.select(1, 2), 0)) << weights;
        EXPECT_LE(distance(weights.select(1, 0), free_weights.select(1, 0)), 1e-6);
      }
      EXPECT_LE(distance(y[2], attention->out_proj->bias.expand({2, 1})), 0);
      for (int64_t row : {0, 1, 3}) EXPECT_LE(distance(y[row], free[row]), 1e-6);
      std::vector<Tensor> inputs = attention->parameters();
      inputs.push_back(x);
      for (auto& grad : autograd::grad({y.pow(2).sum()}, inputs)) EXPECT_TRUE(all_finite(grad)) << grad;
    }
}

}  // namespace
}  // namespace vesta::reports
