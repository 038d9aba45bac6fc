// RNNCell, LSTMCell, GRUCell: one step of the layers in rnn.cpp.
#include <cmath>
#include <ostream>

#include "vesta/nn_rnn.h"
#include "vesta/ops.h"

namespace vesta::nn {
namespace {

using detail::RecurrentKind;

template <class Cell>
void make_weights(const char* layer, RecurrentKind kind, Cell& cell) {
  const auto& o = cell.options;
  VESTA_CHECK(o.input_size() >= 0 && o.hidden_size() > 0, layer,
              ": expected hidden_size > 0, got input_size ", o.input_size(), " and hidden_size ",
              o.hidden_size());
  const int64_t rows = detail::Recurrent::gates(kind) * o.hidden_size();
  cell.weight_ih = cell.register_parameter("weight_ih", vesta::empty({rows, o.input_size()}));
  cell.weight_hh = cell.register_parameter("weight_hh", vesta::empty({rows, o.hidden_size()}));
  cell.bias_ih = cell.register_parameter("bias_ih", o.bias() ? vesta::empty({rows}) : Tensor(), o.bias());
  cell.bias_hh = cell.register_parameter("bias_hh", o.bias() ? vesta::empty({rows}) : Tensor(), o.bias());
  cell.reset_parameters();
}

template <class Cell>
void reset(Cell& cell) {
  const double bound = 1 / std::sqrt(double(cell.options.hidden_size()));
  for (const Tensor& weight : cell.parameters(false)) init::uniform_(weight, -bound, bound);
}

// Checks the shapes; zeros where a state is undefined.
template <class Cell>
void check_input(const char* layer, const Cell& cell, const Tensor& input,
                 std::initializer_list<Tensor*> states) {
  const auto& o = cell.options;
  VESTA_CHECK(input.dim() == 1 || input.dim() == 2, layer, ": expected an input of 1 or 2 dims, got ",
              input.dim());
  VESTA_CHECK(input.size(-1) == o.input_size(), layer, ": expected input_size ", o.input_size(), ", got ",
              input.size(-1));
  std::vector<int64_t> sizes(input.sizes().begin(), input.sizes().end());
  sizes.back() = o.hidden_size();
  for (Tensor* state : states) {
    if (!state->defined()) *state = vesta::zeros(sizes, input.options());
    VESTA_CHECK(state->sizes() == IntArrayRef(sizes), layer, ": expected states of width ", o.hidden_size(),
                " with the input's batch, got ", state->dim(), " dims or other sizes");
  }
}

template <class Options>
void print(std::ostream& out, const char* layer, const Options& o) {
  out << "vesta::nn::" << layer << "(" << o.input_size() << ", " << o.hidden_size()
      << (o.bias() ? "" : ", bias=false");
}

RecurrentKind kind_of(const RNNCellOptions& o) {
  VESTA_CHECK(o.nonlinearity() == Nonlinearity::Tanh || o.nonlinearity() == Nonlinearity::ReLU,
              "RNNCell: expected the nonlinearity kTanh or kReLU");
  return o.nonlinearity() == Nonlinearity::Tanh ? RecurrentKind::Tanh : RecurrentKind::ReLU;
}

}  // namespace

RNNCellImpl::RNNCellImpl(const RNNCellOptions& o) : options(o) { make_weights("RNNCell", kind_of(o), *this); }
void RNNCellImpl::reset_parameters() { nn::reset(*this); }
Tensor RNNCellImpl::forward(const Tensor& input, const Tensor& hx) {
  Tensor h = hx;
  check_input("RNNCell", *this, input, {&h});
  return kind_of(options) == RecurrentKind::Tanh
             ? vesta::rnn_tanh_cell(input, h, weight_ih, weight_hh, bias_ih, bias_hh)
             : vesta::rnn_relu_cell(input, h, weight_ih, weight_hh, bias_ih, bias_hh);
}
void RNNCellImpl::describe(std::ostream& out) const {
  print(out, "RNNCell", options);
  out << (options.nonlinearity() == Nonlinearity::ReLU ? ", nonlinearity=kReLU)" : ")");
}

LSTMCellImpl::LSTMCellImpl(const LSTMCellOptions& o) : options(o) {
  make_weights("LSTMCell", RecurrentKind::LSTM, *this);
}
void LSTMCellImpl::reset_parameters() { nn::reset(*this); }
LSTMCellImpl::States LSTMCellImpl::forward(const Tensor& input, std::optional<States> hx) {
  auto [h, c] = hx.value_or(States());
  check_input("LSTMCell", *this, input, {&h, &c});
  return vesta::lstm_cell(input, std::vector<Tensor>{h, c}, weight_ih, weight_hh, bias_ih, bias_hh);
}
void LSTMCellImpl::describe(std::ostream& out) const {
  print(out, "LSTMCell", options);
  out << ")";
}

GRUCellImpl::GRUCellImpl(const GRUCellOptions& o) : options(o) {
  make_weights("GRUCell", RecurrentKind::GRU, *this);
}
void GRUCellImpl::reset_parameters() { nn::reset(*this); }
Tensor GRUCellImpl::forward(const Tensor& input, const Tensor& hx) {
  Tensor h = hx;
  check_input("GRUCell", *this, input, {&h});
  return vesta::gru_cell(input, h, weight_ih, weight_hh, bias_ih, bias_hh);
}
void GRUCellImpl::describe(std::ostream& out) const {
  print(out, "GRUCell", options);
  out << ")";
}

}  // namespace vesta::nn
