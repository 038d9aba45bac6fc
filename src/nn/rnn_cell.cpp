// RNNCell, LSTMCell, GRUCell: one step of the layers in rnn.cpp.
#include <cmath>
#include <ostream>

#include "nn/recurrent.h"
#include "vesta/ops.h"

namespace vesta::nn {
namespace {

using detail::RecurrentKind;
using State = detail::Recurrent::State;

template <class Cell>
void make_weights(const char* layer, RecurrentKind kind, Cell& cell) {
  const auto& o = cell.options;
  VESTA_CHECK(o.input_size() >= 0 && o.hidden_size() > 0, layer,
              ": expected hidden_size > 0, got input_size ", o.input_size(), " and hidden_size ",
              o.hidden_size());
  const int64_t rows = detail::gates_of(kind) * o.hidden_size();
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

template <class Cell>
State step(const char* layer, RecurrentKind kind, Cell& cell, const Tensor& input, State state) {
  const auto& o = cell.options;
  VESTA_CHECK(input.dim() == 1 || input.dim() == 2, layer, ": expected an input of 1 or 2 dims, got ",
              input.dim());
  VESTA_CHECK(input.size(-1) == o.input_size(), layer, ": expected input_size ", o.input_size(), ", got ",
              input.size(-1));
  const bool batched = input.dim() == 2;
  const Tensor x = batched ? input : input.unsqueeze(0);
  const auto check = [&](const char* name, Tensor& t) {
    if (!t.defined()) {
      t = vesta::zeros({x.size(0), o.hidden_size()}, x.options());
      return;
    }
    VESTA_CHECK(t.dim() == input.dim(), layer, ": expected ", name, " of ", input.dim(), " dims, got ",
                t.dim());
    if (!batched) t = t.unsqueeze(0);
    VESTA_CHECK(t.size(0) == x.size(0) && t.size(1) == o.hidden_size(), layer, ": expected ", name,
                " of shape [", x.size(0), ", ", o.hidden_size(), "], got [", t.size(0), ", ", t.size(1), "]");
  };
  check("hx", state.h);
  if (kind == RecurrentKind::LSTM) check("cx", state.c);
  const detail::CellWeights w{cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh, {}};
  State next = detail::cell_step(kind, detail::input_gates(kind, x, w), state, w);
  if (!batched) {
    next.h = next.h.squeeze(0);
    if (next.c.defined()) next.c = next.c.squeeze(0);
  }
  return next;
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
  return step("RNNCell", kind_of(options), *this, input, {hx, {}}).h;
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
  const States first = hx.value_or(States());
  const State next =
      step("LSTMCell", RecurrentKind::LSTM, *this, input, {std::get<0>(first), std::get<1>(first)});
  return {next.h, next.c};
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
  return step("GRUCell", RecurrentKind::GRU, *this, input, {hx, {}}).h;
}
void GRUCellImpl::describe(std::ostream& out) const {
  print(out, "GRUCell", options);
  out << ")";
}

}  // namespace vesta::nn
