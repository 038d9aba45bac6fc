// RNN, LSTM, GRU against loops in double written out here; packed sequences; cells; gradients.
#include <sstream>

#include "support/expect.h"
#include "vesta/autograd.h"
#include "vesta/nn.h"

namespace vesta::nn {
namespace {

namespace R = utils::rnn;
using Row = std::vector<double>;
constexpr uint64_t kSeed = 9;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// One direction of one layer over one sequence.
struct Direction {
  std::string kind;
  size_t in, hidden;
  Row w_ih, w_hh, b_ih, b_hh;

  Direction(const Module& m, const std::string& name, const std::string& suffix, size_t in_size,
            size_t hidden_size)
      : kind(name), in(in_size), hidden(hidden_size) {
    const auto p = m.named_parameters();
    w_ih = test::numbers(p["weight_ih" + suffix]), w_hh = test::numbers(p["weight_hh" + suffix]);
    b_ih = test::numbers(p["bias_ih" + suffix]), b_hh = test::numbers(p["bias_hh" + suffix]);
  }
  void step(const Row& x, Row& h, Row& c) const {
    const size_t gates = w_ih.size() / in;
    Row a(gates), b(gates);
    for (size_t g = 0; g < gates; ++g) {
      a[g] = b_ih[g], b[g] = b_hh[g];
      for (size_t k = 0; k < in; ++k) a[g] += w_ih[g * in + k] * x[k];
      for (size_t k = 0; k < hidden; ++k) b[g] += w_hh[g * hidden + k] * h[k];
    }
    for (size_t k = 0; k < hidden; ++k) {
      const auto sum = [&](size_t gate) { return a[gate * hidden + k] + b[gate * hidden + k]; };
      if (kind == "tanh") {
        h[k] = std::tanh(sum(0));
      } else if (kind == "relu") {
        h[k] = std::max(0.0, sum(0));
      } else if (kind == "lstm") {
        c[k] = sigmoid(sum(1)) * c[k] + sigmoid(sum(0)) * std::tanh(sum(2));
        h[k] = sigmoid(sum(3)) * std::tanh(c[k]);
      } else {
        const double r = sigmoid(sum(0)), z = sigmoid(sum(1));
        const double n = std::tanh(a[2 * hidden + k] + r * b[2 * hidden + k]);
        h[k] = (1 - z) * n + z * h[k];
      }
    }
  }
};

// All layers over one sequence [T][in]; h and c by layer and direction.
std::vector<Row> run(const Module& m, const std::string& kind, size_t layers, bool both, std::vector<Row> x,
                     std::vector<Row>& h, std::vector<Row>& c) {
  const size_t directions = both ? 2 : 1, hidden = h[0].size();
  for (size_t l = 0; l < layers; ++l) {
    std::vector<Row> out(x.size());
    for (size_t d = 0; d < directions; ++d) {
      const Direction one(m, kind, "_l" + std::to_string(l) + (d ? "_reverse" : ""), x[0].size(), hidden);
      Row &hd = h[l * directions + d], &cd = c[l * directions + d];
      for (size_t k = 0; k < x.size(); ++k) {
        const size_t t = d ? x.size() - 1 - k : k;
        one.step(x[t], hd, cd);
        out[t].insert(out[t].end(), hd.begin(), hd.end());
      }
    }
    x = out;
  }
  return x;
}

std::vector<Row> rows_of(const Tensor& t) {
  std::vector<Row> out;
  for (int64_t i = 0; i < t.size(0); ++i) out.push_back(test::numbers(t.select(0, i)));
  return out;
}

struct Result {
  Tensor out, h, c;
};

// Compares a layer with the loops, each sequence by itself: lengths[b] steps of batch element b.
void expect_recurrent(const Module& m, const std::string& kind, bool both, const Tensor& x, const Tensor& h0,
                      const Tensor& c0, const Result& got, const std::vector<int64_t>& lengths) {
  for (int64_t b = 0; b < x.size(1); ++b) {
    auto h = rows_of(h0.select(1, b)), c = c0.defined() ? rows_of(c0.select(1, b)) : h;
    const auto out = run(m, kind, 2, both, rows_of(x.select(1, b).narrow(0, 0, lengths[size_t(b)])), h, c);
    for (size_t t = 0; t < out.size(); ++t)
      test::expect_close(got.out.select(1, b).select(0, int64_t(t)), out[t], 1e-5);
    for (size_t l = 0; l < h.size(); ++l) {
      test::expect_close(got.h.select(1, b).select(0, int64_t(l)), h[l], 1e-5);
      if (c0.defined()) test::expect_close(got.c.select(1, b).select(0, int64_t(l)), c[l], 1e-5);
    }
  }
}

Tensor lengths_tensor(const std::vector<int64_t>& lengths) {
  Tensor t = empty({int64_t(lengths.size())}, TensorOptions(kInt64));
  for (size_t i = 0; i < lengths.size(); ++i) t.data_ptr<int64_t>()[i] = lengths[i];
  return t;
}

template <class Layer>
Result call(const Layer& layer, const Tensor& x, const Tensor& h, const Tensor& c) {
  if constexpr (std::is_same_v<Layer, LSTM>) {
    auto [out, state] = layer(x, std::make_tuple(h, c));
    return {out, std::get<0>(state), std::get<1>(state)};
  } else {
    auto [out, state] = layer(x, h);
    return {out, state, {}};
  }
}
template <class Layer>
Result call_packed(const Layer& layer, const R::PackedSequence& x, const Tensor& h, const Tensor& c) {
  if constexpr (std::is_same_v<Layer, LSTM>) {
    auto [out, state] = layer->forward_with_packed_input(x, std::make_tuple(h, c));
    return {std::get<0>(R::pad_packed_sequence(out)), std::get<0>(state), std::get<1>(state)};
  } else {
    auto [out, state] = layer->forward_with_packed_input(x, h);
    return {std::get<0>(R::pad_packed_sequence(out)), state, {}};
  }
}

template <class Layer, class Options>
void check_layer(const std::string& kind, Options options) {
  SCOPED_TRACE(kind);
  for (const bool both : {false, true}) {
    const Layer layer(options.num_layers(2).bidirectional(both));
    const int64_t states = both ? 4 : 2;
    const Tensor x = randn({5, 3, 4}), h = randn({states, 3, 6});
    const Tensor c = kind == "lstm" ? randn({states, 3, 6}) : Tensor();
    expect_recurrent(*layer, kind, both, x, h, c, call(layer, x, h, c), {5, 5, 5});
    for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{5, 3, 3}, {1, 5, 2}}) {
      const auto packed =
          R::pack_padded_sequence(x, lengths_tensor(lengths), false, /*enforce_sorted=*/false);
      expect_recurrent(*layer, kind, both, x, h, c, call_packed(layer, packed, h, c), lengths);
    }
    // No state is a state of zeros.
    const Tensor zero = zeros({states, 3, 6});
    test::expect_close(std::get<0>(layer(x)), call(layer, x, zero, c.defined() ? zero : c).out, 1e-6);
  }
}

TEST(Recurrent, LayersEqualTheirFormulas) {
  manual_seed(kSeed);
  check_layer<RNN>("tanh", RNNOptions(4, 6));
  check_layer<RNN>("relu", RNNOptions(4, 6).nonlinearity(kReLU));
  check_layer<LSTM>("lstm", LSTMOptions(4, 6));
  check_layer<GRU>("gru", GRUOptions(4, 6));
}

TEST(Recurrent, BatchFirstAndUnbatchedInputsAreTheSameSequences) {
  manual_seed(kSeed);
  GRU layer(GRUOptions(4, 6).num_layers(2));
  GRU first(GRUOptions(4, 6).num_layers(2).batch_first(true));
  first->load_state_dict(layer->state_dict());
  const Tensor x = randn({5, 3, 4});
  const auto [out, h] = layer(x);
  const auto [out_first, h_first] = first(x.transpose(0, 1));
  test::expect_close(out_first.transpose(0, 1), out, 1e-6);
  test::expect_close(h_first, h, 1e-6);
  const auto [single, h_single] = layer(x.select(1, 1));
  test::expect_close(single, out.select(1, 1), 1e-5);
  test::expect_close(h_single, h.select(1, 1), 1e-5);
}

TEST(Recurrent, DropoutActsBetweenLayersInTrainingOnly) {
  manual_seed(kSeed);
  LSTM layer(LSTMOptions(4, 6).num_layers(2).dropout(0.5));
  const Tensor x = randn({5, 3, 4});
  EXPECT_FALSE(allclose(std::get<0>(layer(x)), std::get<0>(layer(x))));
  layer->eval();
  EXPECT_TRUE(allclose(std::get<0>(layer(x)), std::get<0>(layer(x))));
}

TEST(Recurrent, AProjectionNarrowsTheHiddenState) {
  manual_seed(kSeed);
  LSTM layer(LSTMOptions(4, 6).proj_size(2).bidirectional(true).num_layers(2));
  const auto [out, state] = layer(randn({5, 3, 4}));
  EXPECT_EQ(out.sizes(), IntArrayRef({5, 3, 4}));
  EXPECT_EQ(std::get<0>(state).sizes(), IntArrayRef({4, 3, 2}));
  EXPECT_EQ(std::get<1>(state).sizes(), IntArrayRef({4, 3, 6}));
  EXPECT_EQ(layer->named_parameters()["weight_hr_l1_reverse"].sizes(), IntArrayRef({2, 6}));
}

TEST(Recurrent, GradientsAgreeWithDifferences) {
  manual_seed(kSeed);
  LSTM lstm(LSTMOptions(2, 3).bidirectional(true));
  GRU gru(GRUOptions(2, 3));
  lstm->to(kFloat64);
  gru->to(kFloat64);
  const Tensor x = randn({3, 2, 2}, kFloat64).requires_grad_();
  std::vector<Tensor> inputs{x};
  for (const Tensor& p : lstm->parameters()) inputs.push_back(p);
  EXPECT_TRUE(autograd::gradcheck(
      [&](const std::vector<Tensor>& in) {
        const auto [out, state] = lstm(in[0]);
        return std::vector<Tensor>{out, std::get<0>(state), std::get<1>(state)};
      },
      inputs));
  EXPECT_TRUE(autograd::gradcheck(
      [&](const std::vector<Tensor>& in) {
        const auto packed = R::pack_padded_sequence(in[0], lengths_tensor({2, 3}), false, false);
        const auto [out, state] = gru->forward_with_packed_input(packed);
        return std::vector<Tensor>{std::get<0>(R::pad_packed_sequence(out)), state};
      },
      {x}));
}

TEST(Recurrent, CellsAreOneStepOfTheLayers) {
  manual_seed(kSeed);
  const Tensor x = randn({3, 4}), h = randn({3, 6}), c = randn({3, 6});
  const auto compare = [&](auto& layer, const auto& cell, auto step) {
    for (const char* name : {"weight_ih", "weight_hh", "bias_ih", "bias_hh"})
      cell->load_state_dict({{name, layer->state_dict()[std::string(name) + "_l0"]}}, /*strict=*/false);
    const Result whole = call(layer, x.unsqueeze(0), h.unsqueeze(0), c.unsqueeze(0));
    test::expect_close(step(cell, x, h, c), whole.h.squeeze(0), 1e-6);
    test::expect_close(step(cell, x[0], h[0], c[0]), whole.h.squeeze(0)[0], 1e-6);
  };
  const auto plain = [](const auto& cell, const Tensor& a, const Tensor& b, const Tensor&) {
    return cell(a, b);
  };
  RNN rnn(4, 6);
  RNNCell rnn_cell(4, 6);
  compare(rnn, rnn_cell, plain);
  GRU gru(4, 6);
  GRUCell gru_cell(4, 6);
  compare(gru, gru_cell, plain);
  LSTM lstm(4, 6);
  LSTMCell lstm_cell(4, 6);
  compare(lstm, lstm_cell, [](const auto& cell, const Tensor& a, const Tensor& b, const Tensor& d) {
    return std::get<0>(cell(a, std::make_tuple(b, d)));
  });
  test::expect_close(gru_cell(x), gru_cell(x, zeros({3, 6})), 0);
}

TEST(Recurrent, BadInputsAreRefused) {
  GRU layer(GRUOptions(4, 6));
  EXPECT_NE(test::error_of([&] {
              layer(ones({2, 3, 5}));
            }).find("GRU: expected input_size 4, got 5"),
            std::string::npos);
  EXPECT_THROW(layer(ones({4})), ValueError);
  EXPECT_THROW(layer(ones({0, 3, 4})), ValueError);
  EXPECT_NE(test::error_of([&] {
              layer(ones({2, 3, 4}), ones({1, 2, 6}));
            }).find("expected hx of shape [1, 3, 6]"),
            std::string::npos);
  EXPECT_EQ(std::get<0>(layer(ones({2, 0, 4}))).sizes(), IntArrayRef({2, 0, 6}));
  EXPECT_THROW(GRU(GRUOptions(4, 0)), ValueError);
  EXPECT_THROW(GRU(GRUOptions(4, 6).num_layers(0)), ValueError);
  EXPECT_THROW(LSTM(LSTMOptions(4, 6).proj_size(6)), ValueError);
  EXPECT_THROW(RNN(RNNOptions(4, 6).nonlinearity(kSigmoid)), ValueError);
  EXPECT_THROW(LSTMCell(4, 6)(ones({2, 3})), ValueError);
  EXPECT_THROW(LSTMCell(4, 6)(ones({2, 4}), std::make_tuple(ones({3, 6}), ones({2, 6}))), ValueError);
  const R::PackedSequence bad(ones({3, 4}), lengths_tensor({2, 2}));
  EXPECT_THROW(layer->forward_with_packed_input(bad), ValueError);
  std::ostringstream text;
  text << layer;
  EXPECT_EQ(
      text.str(),
      "vesta::nn::GRU(input_size=4, hidden_size=6, num_layers=1, bias=true, batch_first=false, dropout=0, "
      "bidirectional=false)");
}

TEST(PackedSequence, PackingAndPaddingAreInverse) {
  manual_seed(kSeed);
  for (const bool batch_first : {false, true}) {
    const Tensor x = randn(batch_first ? std::vector<int64_t>{3, 5, 2} : std::vector<int64_t>{5, 3, 2});
    const auto packed = R::pack_padded_sequence(x, lengths_tensor({2, 5, 3}), batch_first, false);
    test::expect_close(packed.batch_sizes(), {3, 3, 2, 1, 1}, 0);
    test::expect_close(packed.sorted_indices(), {1, 2, 0}, 0);
    test::expect_close(packed.unsorted_indices(), {2, 0, 1}, 0);
    EXPECT_EQ(packed.data().size(0), 10);
    const auto [padded, lengths] = R::pad_packed_sequence(packed, batch_first, -7, 6);
    test::expect_close(lengths, {2, 5, 3}, 0);
    for (int64_t b = 0; b < 3; ++b)
      for (int64_t t = 0; t < 6; ++t) {
        const int64_t n = std::vector<int64_t>{2, 5, 3}[size_t(b)];
        const Tensor got = batch_first ? padded[b][t] : padded[t][b];
        if (t < n)
          test::expect_close(got, batch_first ? x[b][t] : x[t][b], 0);
        else
          test::expect_close(got, {-7, -7}, 0);
      }
  }
}

TEST(PackedSequence, SequencesArePaddedPackedAndUnpacked) {
  manual_seed(kSeed);
  const std::vector<Tensor> sequences{randn({2, 3}), randn({4, 3}), randn({1, 3})};
  EXPECT_EQ(R::pad_sequence(sequences).sizes(), IntArrayRef({4, 3, 3}));
  const Tensor left = R::pad_sequence(sequences, true, 5, "left");
  test::expect_close(left[0].narrow(0, 2, 2), sequences[0], 0);
  test::expect_close(left[2][0], {5, 5, 5}, 0);
  const auto back = R::unpack_sequence(R::pack_sequence(sequences, false));
  ASSERT_EQ(back.size(), 3u);
  for (size_t i = 0; i < 3; ++i) test::expect_close(back[i], sequences[i], 0);
  EXPECT_THROW(R::pack_sequence(sequences), ValueError);
  EXPECT_THROW(R::pad_sequence(std::vector<Tensor>()), ValueError);
  EXPECT_THROW(R::pad_sequence(std::vector<Tensor>{ones({2, 3}), ones({2, 4})}), ValueError);
  EXPECT_THROW(R::pad_sequence(sequences, false, 0, "middle"), ValueError);
}

TEST(PackedSequence, BadLengthsAreRefused) {
  const Tensor x = ones({4, 2, 3});
  EXPECT_THROW(R::pack_padded_sequence(x, lengths_tensor({0, 1}), false, false), ValueError);
  EXPECT_THROW(R::pack_padded_sequence(x, lengths_tensor({5, 1})), ValueError);
  EXPECT_THROW(R::pack_padded_sequence(x, lengths_tensor({1, 2})), ValueError);
  EXPECT_THROW(R::pack_padded_sequence(x, lengths_tensor({3})), ValueError);
  EXPECT_THROW(R::pack_padded_sequence(x, lengths_tensor({std::numeric_limits<int64_t>::max(), 1})),
               ValueError);
  EXPECT_THROW(R::pack_padded_sequence(x, ones({2})), TypeError);
  const auto packed = R::pack_padded_sequence(x, lengths_tensor({3, 2}));
  EXPECT_THROW(R::pad_packed_sequence(packed, false, 0, 2), ValueError);
  EXPECT_THROW(R::invert_permutation(lengths_tensor({0, 0})), ValueError);
  EXPECT_THROW(R::pad_packed_sequence(R::PackedSequence(ones({3, 1}), lengths_tensor({2, 3}))), ValueError);
}

}  // namespace
}  // namespace vesta::nn
