// Captured forward and backward passes of the larger modules replay to the bits of the eager ones, on other data.
#include <cstring>

#include "graph/tracer.h"
#include "support/expect.h"
#include "vesta/autograd.h"
#include "vesta/nn.h"

namespace vesta::nn {
namespace {

constexpr uint64_t kSeed = 21;

template <class F>
void check(const Module& module, const F& forward, const Tensor& x) {
  const auto step = [&](const std::vector<Tensor>& in) {
    const Tensor loss = forward(in[0]).square().sum();
    std::vector<Tensor> out = autograd::grad({loss}, module.parameters(), {}, std::nullopt, false, true);
    out.push_back(loss.detach());
    return out;
  };
  graph::Graph g = graph::trace(step, {x});
  for (int k = 0; k < 3; ++k) {
    const Tensor other = x * (1 + 0.5 * k);
    const auto eager = step({other}), replayed = g.run({other});
    ASSERT_EQ(eager.size(), replayed.size());
    for (size_t i = 0; i < eager.size(); ++i) {
      ASSERT_EQ(eager[i].sizes(), replayed[i].sizes());
      const Tensor a = eager[i].contiguous(), b = replayed[i].contiguous();
      EXPECT_EQ(std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()), 0)
          << "seed " << kSeed << ", output " << i;
    }
  }
}

TEST(CapturedModules, compiled_equals_eager_for_recurrent_layers) {
  manual_seed(kSeed);
  LSTM lstm(LSTMOptions(3, 4).num_layers(2).bidirectional(true));
  check(
      *lstm, [&](const Tensor& x) { return std::get<0>(lstm(x)); }, randn({4, 2, 3}));
  GRU gru(3, 4);
  check(
      *gru, [&](const Tensor& x) { return std::get<0>(gru(x)); }, randn({4, 2, 3}));
}

TEST(CapturedModules, compiled_equals_eager_for_a_transformer_encoder) {
  manual_seed(kSeed);
  TransformerEncoder encoder(TransformerEncoderOptions(
      TransformerEncoderLayerOptions(8, 2).dim_feedforward(16).dropout(0).activation(kGELU), 2));
  const Tensor mask = TransformerImpl::generate_square_subsequent_mask(5);
  check(
      *encoder, [&](const Tensor& x) { return encoder(x, mask); }, randn({5, 2, 8}));
}

TEST(CapturedModules, compiled_equals_eager_for_norms_and_activations) {
  manual_seed(kSeed);
  Sequential net(GroupNorm(2, 4), PReLU(4), LocalResponseNorm(3), Softshrink(0.1), ReplicationPad1d(1));
  check(
      *net, [&](const Tensor& x) { return net(x); }, randn({2, 4, 6}));
}

}  // namespace
}  // namespace vesta::nn
