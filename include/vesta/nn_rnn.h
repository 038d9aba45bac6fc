#pragma once
// Recurrent layers: RNN, LSTM, GRU over sequences (several layers, both directions, packed sequences), and their cells
// for one step. Names, gate order and parameter names (weight_ih_l0, bias_hh_l1_reverse, ...) are PyTorch's.
//   nn::LSTM lstm(nn::LSTMOptions(8, 16).num_layers(2));
//   auto [out, state] = lstm(x);                           // x [T, B, 8] -> out [T, B, 16]
//   auto [h, c] = state;                                   // each [2, B, 16]
#include <array>
#include <optional>
#include <tuple>

#include "vesta/nn_any.h"
#include "vesta/nn_cloneable.h"
#include "vesta/nn_init.h"
#include "vesta/nn_packed_sequence.h"
#include "vesta/option_arg.h"

namespace vesta::nn {

class RNNOptions {
 public:
  RNNOptions(int64_t input_size, int64_t hidden_size) : input_size_(input_size), hidden_size_(hidden_size) {}
  VESTA_ARG(int64_t, input_size);
  VESTA_ARG(int64_t, hidden_size);
  VESTA_ARG(int64_t, num_layers) = 1;
  VESTA_ARG(Nonlinearity, nonlinearity) = kTanh;  // or kReLU
  VESTA_ARG(bool, bias) = true;
  // Input and output [B, T, ...]; states keep [layers, B, ...].
  VESTA_ARG(bool, batch_first) = false;
  // Between layers, in training.
  VESTA_ARG(double, dropout) = 0.0;
  VESTA_ARG(bool, bidirectional) = false;
};
class LSTMOptions {
 public:
  LSTMOptions(int64_t input_size, int64_t hidden_size) : input_size_(input_size), hidden_size_(hidden_size) {}
  VESTA_ARG(int64_t, input_size);
  VESTA_ARG(int64_t, hidden_size);
  VESTA_ARG(int64_t, num_layers) = 1;
  VESTA_ARG(bool, bias) = true;
  VESTA_ARG(bool, batch_first) = false;
  VESTA_ARG(double, dropout) = 0.0;
  VESTA_ARG(bool, bidirectional) = false;
  // Above 0: the hidden state is projected to this width (Sak et al. 2014).
  VESTA_ARG(int64_t, proj_size) = 0;
};
class GRUOptions {
 public:
  GRUOptions(int64_t input_size, int64_t hidden_size) : input_size_(input_size), hidden_size_(hidden_size) {}
  VESTA_ARG(int64_t, input_size);
  VESTA_ARG(int64_t, hidden_size);
  VESTA_ARG(int64_t, num_layers) = 1;
  VESTA_ARG(bool, bias) = true;
  VESTA_ARG(bool, batch_first) = false;
  VESTA_ARG(double, dropout) = 0.0;
  VESTA_ARG(bool, bidirectional) = false;
};

namespace detail {

enum class RecurrentKind : uint8_t { Tanh, ReLU, LSTM, GRU };

// The weights of all layers and directions, for any kind of cell.
struct Recurrent {
  RecurrentKind kind = RecurrentKind::Tanh;
  int64_t input_size = 0, hidden_size = 0, num_layers = 1, proj_size = 0;
  bool bias = true, batch_first = false, bidirectional = false;
  double dropout = 0;
  // By layer and direction: ih, hh, then the biases ih and hh, then the projection, as far as they exist.
  std::vector<Tensor> weights;

  static int64_t gates(RecurrentKind kind);
  // Checks the sizes and registers the parameters with `module`.
  void make_weights(const char* layer, Module& module);
  void reset_parameters() const;
  size_t weights_per_direction() const { return 2 + (bias ? 2 : 0) + (proj_size > 0 ? 1 : 0); }

  struct State {
    Tensor h, c;  // c is undefined except for LSTM
  };
  // A tensor, with or without batch; undefined states are zeros.
  std::pair<Tensor, State> run(const char* layer, const Tensor& input, State state, bool training) const;
  std::pair<utils::rnn::PackedSequence, State> run(const char* layer, const utils::rnn::PackedSequence& input,
                                                   State state, bool training) const;

 private:
  // Zeros of the dtype of `like` where undefined; ValueError for another shape.
  void check_states(const char* layer, State& state, int64_t batch, const TensorOptions& like) const;
  template <class... Where>
  std::pair<Tensor, State> call(const State& state, bool training, const Where&... where) const;
};

}  // namespace detail

template <class Derived>
class RecurrentModule : public Cloneable<Derived> {
 public:
  // All weights from U(-k, k), k = 1/sqrt(hidden_size).
  void reset_parameters() { recurrent_.reset_parameters(); }
  std::vector<Tensor> all_weights() const { return recurrent_.weights; }
  // For libtorch's sake: the weights need no particular place in memory.
  void flatten_parameters() {}

 protected:
  detail::Recurrent recurrent_;
};

// h_t = tanh or relu of W_ih x_t + b_ih + W_hh h_(t-1) + b_hh.
class RNNImpl : public RecurrentModule<RNNImpl> {
 public:
  RNNImpl(int64_t input_size, int64_t hidden_size) : RNNImpl(RNNOptions(input_size, hidden_size)) {}
  explicit RNNImpl(const RNNOptions& options);
  void describe(std::ostream& out) const override;
  // input [T, B, in], [B, T, in] or [T, in]; hx [layers * directions, B, hidden] or undefined (zeros) -> the outputs of
  // the last layer [T, B, directions * hidden], and the last states.
  std::tuple<Tensor, Tensor> forward(const Tensor& input, Tensor hx = {});
  VESTA_FORWARD_DEFAULTS({1, AnyValue(Tensor())})
  std::tuple<utils::rnn::PackedSequence, Tensor> forward_with_packed_input(
      const utils::rnn::PackedSequence& input, Tensor hx = {});
  RNNOptions options;
};
VESTA_LAYER(RNN);

// Hochreiter & Schmidhuber 1997 with a forget gate; gates i, f, g, o.
class LSTMImpl : public RecurrentModule<LSTMImpl> {
 public:
  using States = std::tuple<Tensor, Tensor>;  // h [layers * directions, B, proj or hidden], c [.., B, hidden]
  LSTMImpl(int64_t input_size, int64_t hidden_size) : LSTMImpl(LSTMOptions(input_size, hidden_size)) {}
  explicit LSTMImpl(const LSTMOptions& options);
  void describe(std::ostream& out) const override;
  std::tuple<Tensor, States> forward(const Tensor& input, std::optional<States> hx = {});
  VESTA_FORWARD_DEFAULTS({1, AnyValue(std::optional<States>())})
  std::tuple<utils::rnn::PackedSequence, States> forward_with_packed_input(
      const utils::rnn::PackedSequence& input, std::optional<States> hx = {});
  LSTMOptions options;
};
VESTA_LAYER(LSTM);

// Cho et al. 2014; gates r, z, n, with r applied after the matrix product as in PyTorch and cuDNN.
class GRUImpl : public RecurrentModule<GRUImpl> {
 public:
  GRUImpl(int64_t input_size, int64_t hidden_size) : GRUImpl(GRUOptions(input_size, hidden_size)) {}
  explicit GRUImpl(const GRUOptions& options);
  void describe(std::ostream& out) const override;
  std::tuple<Tensor, Tensor> forward(const Tensor& input, Tensor hx = {});
  VESTA_FORWARD_DEFAULTS({1, AnyValue(Tensor())})
  std::tuple<utils::rnn::PackedSequence, Tensor> forward_with_packed_input(
      const utils::rnn::PackedSequence& input, Tensor hx = {});
  GRUOptions options;
};
VESTA_LAYER(GRU);

class RNNCellOptions {
 public:
  RNNCellOptions(int64_t input_size, int64_t hidden_size)
      : input_size_(input_size), hidden_size_(hidden_size) {}
  VESTA_ARG(int64_t, input_size);
  VESTA_ARG(int64_t, hidden_size);
  VESTA_ARG(bool, bias) = true;
  VESTA_ARG(Nonlinearity, nonlinearity) = kTanh;  // or kReLU
};
class LSTMCellOptions {
 public:
  LSTMCellOptions(int64_t input_size, int64_t hidden_size)
      : input_size_(input_size), hidden_size_(hidden_size) {}
  VESTA_ARG(int64_t, input_size);
  VESTA_ARG(int64_t, hidden_size);
  VESTA_ARG(bool, bias) = true;
};
class GRUCellOptions {
 public:
  GRUCellOptions(int64_t input_size, int64_t hidden_size)
      : input_size_(input_size), hidden_size_(hidden_size) {}
  VESTA_ARG(int64_t, input_size);
  VESTA_ARG(int64_t, hidden_size);
  VESTA_ARG(bool, bias) = true;
};

// One step: input [B, in] or [in], hx [B, hidden] or [hidden], zeros where undefined.
class RNNCellImpl : public Cloneable<RNNCellImpl> {
 public:
  RNNCellImpl(int64_t input_size, int64_t hidden_size)
      : RNNCellImpl(RNNCellOptions(input_size, hidden_size)) {}
  explicit RNNCellImpl(const RNNCellOptions& options);
  void reset_parameters();
  void describe(std::ostream& out) const override;
  Tensor forward(const Tensor& input, const Tensor& hx = {});
  VESTA_FORWARD_DEFAULTS({1, AnyValue(Tensor())})
  RNNCellOptions options;
  Tensor weight_ih, weight_hh, bias_ih, bias_hh;
};
VESTA_LAYER(RNNCell);
class LSTMCellImpl : public Cloneable<LSTMCellImpl> {
 public:
  using States = std::tuple<Tensor, Tensor>;
  LSTMCellImpl(int64_t input_size, int64_t hidden_size)
      : LSTMCellImpl(LSTMCellOptions(input_size, hidden_size)) {}
  explicit LSTMCellImpl(const LSTMCellOptions& options);
  void reset_parameters();
  void describe(std::ostream& out) const override;
  States forward(const Tensor& input, std::optional<States> hx = {});
  VESTA_FORWARD_DEFAULTS({1, AnyValue(std::optional<States>())})
  LSTMCellOptions options;
  Tensor weight_ih, weight_hh, bias_ih, bias_hh;
};
VESTA_LAYER(LSTMCell);
class GRUCellImpl : public Cloneable<GRUCellImpl> {
 public:
  GRUCellImpl(int64_t input_size, int64_t hidden_size)
      : GRUCellImpl(GRUCellOptions(input_size, hidden_size)) {}
  explicit GRUCellImpl(const GRUCellOptions& options);
  void reset_parameters();
  void describe(std::ostream& out) const override;
  Tensor forward(const Tensor& input, const Tensor& hx = {});
  VESTA_FORWARD_DEFAULTS({1, AnyValue(Tensor())})
  GRUCellOptions options;
  Tensor weight_ih, weight_hh, bias_ih, bias_hh;
};
VESTA_LAYER(GRUCell);

}  // namespace vesta::nn
