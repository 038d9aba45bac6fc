// Multi-head attention against a loop in double; masks, options, Transformer layers made of it.
#include <limits>

#include "support/expect.h"
#include "vesta/autograd.h"
#include "vesta/nn.h"

namespace vesta::nn {
namespace {

constexpr uint64_t kSeed = 10;
constexpr double kInf = std::numeric_limits<double>::infinity();

// One example: q [L][E], k and v [S][E]; added [L][S]. Returns the output and the averaged weights.
struct Expected {
  std::vector<double> out, weights;
};
Expected attend(const MultiheadAttention& m, int64_t heads, const Tensor& q, const Tensor& k, const Tensor& v,
                const std::vector<double>& added) {
  const size_t width = size_t(q.size(1)), length = size_t(q.size(0)), keys = size_t(k.size(0));
  const size_t head = width / size_t(heads);
  const auto w = test::numbers(m->in_proj_weight), b = test::numbers(m->in_proj_bias);
  const auto project = [&](const Tensor& x, size_t part) {
    const auto xs = test::numbers(x);
    std::vector<double> y(size_t(x.size(0)) * width);
    for (size_t r = 0; r < size_t(x.size(0)); ++r)
      for (size_t o = 0; o < width; ++o) {
        double sum = b[part * width + o];
        for (size_t i = 0; i < width; ++i) sum += xs[r * width + i] * w[(part * width + o) * width + i];
        y[r * width + o] = sum;
      }
    return y;
  };
  const auto qs = project(q, 0), ks = project(k, 1), vs = project(v, 2);
  Expected e;
  e.weights.assign(length * keys, 0);
  std::vector<double> joined(length * width);
  for (size_t h = 0; h < size_t(heads); ++h)
    for (size_t l = 0; l < length; ++l) {
      std::vector<double> score(keys);
      double total = 0;
      for (size_t s = 0; s < keys; ++s) {
        for (size_t d = 0; d < head; ++d)
          score[s] += qs[l * width + h * head + d] * ks[s * width + h * head + d];
        score[s] = std::exp(score[s] / std::sqrt(double(head)) + added[l * keys + s]);
        total += score[s];
      }
      for (size_t s = 0; s < keys; ++s) {
        e.weights[l * keys + s] += score[s] / total / double(heads);
        for (size_t d = 0; d < head; ++d)
          joined[l * width + h * head + d] += score[s] / total * vs[s * width + h * head + d];
      }
    }
  const auto ow = test::numbers(m->out_proj->weight), ob = test::numbers(m->out_proj->bias);
  for (size_t l = 0; l < length; ++l)
    for (size_t o = 0; o < width; ++o) {
      double sum = ob[o];
      for (size_t i = 0; i < width; ++i) sum += joined[l * width + i] * ow[o * width + i];
      e.out.push_back(sum);
    }
  return e;
}

TEST(MultiheadAttention, EqualsItsFormulaWithMasks) {
  manual_seed(kSeed);
  MultiheadAttention m(8, 2);
  const Tensor q = randn({4, 3, 8}), k = randn({5, 3, 8}), v = randn({5, 3, 8});
  const Tensor causal = triu(ones({4, 5}), 2).to(kBool);
  Tensor padding = zeros({3, 5}, kBool);
  padding[1][4].fill_(true);
  padding[2][1].fill_(true);
  for (const bool masked : {false, true})
    for (const bool need_weights : {false, true}) {
      const auto [out, weights] =
          m(q, k, v, masked ? padding : Tensor(), need_weights, masked ? causal : Tensor());
      EXPECT_EQ(weights.defined(), need_weights);
      for (int64_t n = 0; n < 3; ++n) {
        std::vector<double> added(20, 0);
        if (masked)
          for (int64_t l = 0; l < 4; ++l)
            for (int64_t s = 0; s < 5; ++s)
              if (causal[l][s].item<bool>() || padding[n][s].item<bool>()) added[size_t(l * 5 + s)] = -kInf;
        const Expected e = attend(m, 2, q.select(1, n), k.select(1, n), v.select(1, n), added);
        test::expect_close(out.select(1, n), e.out, 1e-5);
        if (need_weights) test::expect_close(weights[n], e.weights, 1e-5);
      }
    }
}

TEST(MultiheadAttention, MasksOfNumbersAndOfEachHeadAreAdded) {
  manual_seed(kSeed);
  MultiheadAttention m(4, 2);
  m->eval();
  const Tensor x = randn({3, 2, 4}), bias = randn({3, 3});
  const Tensor whole = std::get<0>(m(x, x, x, Tensor(), true, bias));
  test::expect_close(std::get<0>(m(x, x, x, Tensor(), false, bias)), whole, 1e-5);
  test::expect_close(std::get<0>(m(x, x, x, Tensor(), true, bias.expand({4, 3, 3}))), whole, 1e-5);
  test::expect_close(std::get<0>(m(x, x, x, Tensor(), false, bias.expand({4, 3, 3}))), whole, 1e-5);
  const auto added = test::numbers(bias);
  test::expect_close(whole.select(1, 0),
                     attend(m, 2, x.select(1, 0), x.select(1, 0), x.select(1, 0), added).out, 1e-5);
}

TEST(MultiheadAttention, EqualInputsTakeOneProjectionWithTheSameResult) {
  manual_seed(kSeed);
  MultiheadAttention m(8, 4);
  const Tensor x = randn({4, 2, 8}), y = randn({3, 2, 8});
  test::expect_close(std::get<0>(m(x, x, x)), std::get<0>(m(x, x.clone(), x.clone())), 1e-5);
  test::expect_close(std::get<0>(m(x, y, y)), std::get<0>(m(x, y, y.clone())), 1e-5);
}

TEST(MultiheadAttention, BatchFirstAndUnbatchedInputsAreTheSame) {
  manual_seed(kSeed);
  MultiheadAttention m(8, 2), first(MultiheadAttentionOptions(8, 2).batch_first(true));
  first->load_state_dict(m->state_dict());
  const Tensor x = randn({4, 3, 8});
  const auto [out, weights] = m(x, x, x);
  const Tensor xt = x.transpose(0, 1);
  test::expect_close(std::get<0>(first(xt, xt, xt)).transpose(0, 1), out, 1e-6);
  const Tensor one = x.select(1, 2);
  const auto [single, single_weights] = m(one, one, one);
  test::expect_close(single, out.select(1, 2), 1e-5);
  test::expect_close(single_weights, weights[2], 1e-5);
}

TEST(MultiheadAttention, ExtraKeysCountInTheWeights) {
  manual_seed(kSeed);
  MultiheadAttention m(MultiheadAttentionOptions(8, 2).add_bias_kv(true).add_zero_attn(true));
  const Tensor q = randn({4, 2, 8}), k = randn({5, 2, 8});
  const auto [out, weights] = m(q, k, k, zeros({2, 5}, kBool), true, zeros({4, 5}), false);
  EXPECT_EQ(weights.sizes(), IntArrayRef({2, 2, 4, 7}));
  test::expect_close(weights.sum({-1}), ones({2, 2, 4}), 1e-5);
  test::expect_close(std::get<0>(m(q, k, k, Tensor(), false)), out, 1e-5);
}

TEST(MultiheadAttention, WidthsOfKeysAndValuesMayDiffer) {
  MultiheadAttention m(MultiheadAttentionOptions(8, 2).kdim(3).vdim(5));
  EXPECT_EQ(std::get<0>(m(ones({4, 2, 8}), ones({6, 2, 3}), ones({6, 2, 5}))).sizes(),
            IntArrayRef({4, 2, 8}));
  EXPECT_EQ(m->named_parameters().keys(),
            (std::vector<std::string>{"q_proj_weight", "k_proj_weight", "v_proj_weight", "in_proj_bias",
                                      "out_proj.weight", "out_proj.bias"}));
}

TEST(MultiheadAttention, GradientsAgreeWithDifferences) {
  manual_seed(kSeed);
  MultiheadAttention m(4, 2);
  m->to(kFloat64);
  const Tensor q = randn({2, 2, 4}, kFloat64).requires_grad_(),
               k = randn({3, 2, 4}, kFloat64).requires_grad_();
  const Tensor mask = randn({2, 3}, kFloat64).requires_grad_();
  for (const bool need_weights : {true, false})
    EXPECT_TRUE(autograd::gradcheck(
        [&](const std::vector<Tensor>& in) {
          return std::vector<Tensor>{std::get<0>(m(in[0], in[1], in[1], Tensor(), need_weights, in[2]))};
        },
        {q, k, mask}));
}

TEST(MultiheadAttention, BadInputsAreRefused) {
  EXPECT_THROW(MultiheadAttention(8, 3), ValueError);
  EXPECT_THROW(MultiheadAttention(8, 0), ValueError);
  MultiheadAttention m(8, 2);
  const Tensor x = ones({4, 2, 8});
  EXPECT_THROW(m(ones({8}), x, x), ValueError);
  EXPECT_THROW(m(x, ones({4, 3, 8}), ones({4, 3, 8})), ValueError);
  EXPECT_THROW(m(x, x, ones({3, 2, 8})), ValueError);
  EXPECT_THROW(m(ones({4, 2, 6}), x, x), ValueError);
  EXPECT_THROW(m(x, x, x, ones({2, 3}, kBool)), ValueError);
  EXPECT_THROW(m(x, x, x, Tensor(), true, ones({4, 5}, kBool)), ValueError);
  EXPECT_THROW(m(x, x, x, Tensor(), true, ones({3, 4, 4}, kBool)), ValueError);
  EXPECT_THROW(m(x, x, x, Tensor(), true, ones({4, 4}, kInt64)), TypeError);
}

// The encoder layer in the terms of its parts.
Tensor encoder_layer(const TransformerEncoderLayer& m, const Tensor& x, const Tensor& mask, bool norm_first) {
  const auto attend_to = [&](const Tensor& y) {
    return std::get<0>(m->self_attn(y, y, y, Tensor(), true, mask));
  };
  const auto feed = [&](const Tensor& y) { return m->linear2(gelu(m->linear1(y))); };
  if (norm_first) {
    const Tensor h = x + attend_to(m->norm1(x));
    return h + feed(m->norm2(h));
  }
  const Tensor h = m->norm1(x + attend_to(x));
  return m->norm2(h + feed(h));
}

TEST(TransformerLayers, AreAttentionAndFeedForwardWithNorms) {
  manual_seed(kSeed);
  const Tensor x = randn({5, 2, 8}), memory = randn({3, 2, 8});
  const Tensor mask = TransformerImpl::generate_square_subsequent_mask(5);
  for (const bool norm_first : {false, true}) {
    const auto options =
        TransformerEncoderLayerOptions(8, 2).dim_feedforward(16).dropout(0).activation(kGELU).norm_first(
            norm_first);
    TransformerEncoderLayer layer(options);
    test::expect_close(layer(x, mask), encoder_layer(layer, x, mask, norm_first), 1e-5);
    TransformerDecoderLayer decoder(options);
    const auto self = [&](const Tensor& y) {
      return std::get<0>(decoder->self_attn(y, y, y, Tensor(), true, mask));
    };
    const auto cross = [&](const Tensor& y) {
      return std::get<0>(decoder->multihead_attn(y, memory, memory));
    };
    const auto feed = [&](const Tensor& y) { return decoder->linear2(gelu(decoder->linear1(y))); };
    Tensor h;
    if (norm_first) {
      h = x + self(decoder->norm1(x));
      h = h + cross(decoder->norm2(h));
      h = h + feed(decoder->norm3(h));
    } else {
      h = decoder->norm1(x + self(x));
      h = decoder->norm2(h + cross(h));
      h = decoder->norm3(h + feed(h));
    }
    test::expect_close(decoder(x, memory, mask), h, 1e-5);
  }
}

TEST(TransformerLayers, TakeAnyFunctionAsActivation) {
  manual_seed(kSeed);
  const auto with = [](TransformerActivation activation) {
    return TransformerEncoderLayer(
        TransformerEncoderLayerOptions(8, 2).dim_feedforward(16).dropout(0).activation(activation));
  };
  const TransformerEncoderLayer relu_layer = with(kReLU);
  const TransformerEncoderLayer own = with([](const Tensor& t) { return t.clamp_min(0); });
  own->load_state_dict(relu_layer->state_dict());
  const Tensor x = randn({3, 2, 8});
  test::expect_close(own(x), relu_layer(x), 0);
  EXPECT_THROW(with(kTanh), ValueError);
}

TEST(Transformer, StacksStartFromClonesAndEndWithTheNorm) {
  manual_seed(kSeed);
  TransformerEncoderLayer layer(TransformerEncoderLayerOptions(8, 2).dim_feedforward(16).dropout(0));
  LayerNorm norm(LayerNormOptions({8}));
  TransformerEncoder encoder(TransformerEncoderOptions(layer, 2).norm(norm));
  const Tensor x = randn({4, 2, 8});
  test::expect_close(encoder(x), norm(layer(layer(x))), 1e-5);
  for (const Tensor& ours : encoder->parameters())
    for (const Tensor& theirs : layer->parameters()) EXPECT_FALSE(ours.is_same(theirs));
  EXPECT_EQ(encoder->named_children().keys(), (std::vector<std::string>{"layers", "norm"}));
  EXPECT_THROW(TransformerEncoder(TransformerEncoderOptions(layer, -1)), ValueError);
}

TEST(Transformer, ACausalMaskHidesTheFuture) {
  manual_seed(kSeed);
  Transformer model(TransformerOptions(8, 2, 2, 2).dim_feedforward(16).dropout(0));
  const Tensor src = randn({5, 2, 8}), tgt = randn({4, 2, 8});
  const Tensor mask = TransformerImpl::generate_square_subsequent_mask(4);
  const Tensor before = model(src, tgt, Tensor(), mask);
  EXPECT_EQ(before.sizes(), IntArrayRef({4, 2, 8}));
  Tensor changed = tgt.clone();
  changed[3].fill_(9);
  const Tensor after = model(src, changed, Tensor(), mask);
  test::expect_close(after.narrow(0, 0, 3), before.narrow(0, 0, 3), 1e-5);
  EXPECT_FALSE(allclose(after[3], before[3]));
  EXPECT_THROW(model(src, randn({4, 3, 8})), ValueError);
  EXPECT_THROW(model(src, randn({4, 2, 6})), ValueError);
}

TEST(Transformer, TakesCustomParts) {
  struct EncoderImpl : Module {
    Tensor forward(const Tensor& src, const Tensor&, const Tensor&) { return src * 2; }
  };
  manual_seed(kSeed);
  Transformer model(
      TransformerOptions(4, 1, 1, 1).dropout(0).custom_encoder(AnyModule(make_module<EncoderImpl>())));
  Transformer plain(TransformerOptions(4, 1, 0, 1).dropout(0));
  const Tensor x = randn({2, 1, 4});
  const Tensor direct = model->decoder.forward(x, x * 2, Tensor(), Tensor(), Tensor(), Tensor());
  test::expect_close(model(x, x), direct, 1e-6);
  EXPECT_EQ(plain(x, x).sizes(), x.sizes());
}

}  // namespace
}  // namespace vesta::nn
