// RNN, LSTM and GRU: parameters, shapes and states; the arithmetic is that of the operators.
#include <cmath>
#include <ostream>

#include "vesta/autograd.h"
#include "vesta/nn_rnn.h"
#include "vesta/ops.h"

namespace vesta::nn {
namespace detail {

int64_t Recurrent::gates(RecurrentKind kind) {
  return kind == RecurrentKind::LSTM ? 4 : kind == RecurrentKind::GRU ? 3 : 1;
}

namespace {

std::string shape_text(const Tensor& t) {
  std::string out = "[";
  for (int64_t d = 0; d < t.dim(); ++d) out += (d ? ", " : "") + std::to_string(t.size(d));
  return out + "]";
}

}  // namespace

RNNOptionsBase Recurrent::shared_options() const {
  return RNNOptionsBase()
      .input_size(input_size)
      .hidden_size(hidden_size)
      .num_layers(num_layers)
      .bias(bias)
      .batch_first(batch_first)
      .dropout(dropout)
      .bidirectional(bidirectional)
      .proj_size(proj_size);
}

void Recurrent::make_weights(const char* layer, Module& module) {
  VESTA_CHECK(input_size >= 0 && hidden_size > 0 && num_layers > 0, layer,
              ": expected hidden_size > 0 and num_layers > 0, got input_size ", input_size, ", hidden_size ",
              hidden_size, ", num_layers ", num_layers);
  VESTA_CHECK(dropout >= 0 && dropout <= 1, layer, ": expected a dropout between 0 and 1, got ", dropout);
  VESTA_CHECK(proj_size >= 0 && proj_size < hidden_size, layer,
              ": expected 0 <= proj_size < hidden_size, got ", proj_size, " and ", hidden_size);
  const int64_t width = proj_size > 0 ? proj_size : hidden_size, rows = gates(kind) * hidden_size;
  const int64_t directions = bidirectional ? 2 : 1;
  for (int64_t l = 0; l < num_layers; ++l)
    for (int64_t d = 0; d < directions; ++d) {
      const int64_t in = l == 0 ? input_size : width * directions;
      const std::string suffix = "_l" + std::to_string(l) + (d ? "_reverse" : "");
      const auto add = [&](const char* name, std::vector<int64_t> shape) {
        weights.push_back(module.register_parameter(name + suffix, vesta::empty(shape)));
      };
      add("weight_ih", {rows, in});
      add("weight_hh", {rows, width});
      if (bias) {
        add("bias_ih", {rows});
        add("bias_hh", {rows});
      }
      if (proj_size > 0) add("weight_hr", {proj_size, hidden_size});
    }
  reset_parameters();
}

void Recurrent::reset_parameters() const {
  const double bound = 1 / std::sqrt(double(hidden_size));
  for (const Tensor& weight : weights) init::uniform_(weight, -bound, bound);
}

void Recurrent::check_states(const char* layer, State& state, int64_t batch,
                             const TensorOptions& like) const {
  const int64_t count = num_layers * (bidirectional ? 2 : 1);
  const auto check = [&](const char* name, Tensor& t, int64_t columns) {
    if (!t.defined()) t = vesta::zeros({count, batch, columns}, like);
    VESTA_CHECK(t.dim() == 3 && t.size(0) == count && t.size(1) == batch && t.size(2) == columns, layer,
                ": expected ", name, " of shape [", count, ", ", batch, ", ", columns, "], got ",
                shape_text(t));
  };
  check("hx", state.h, proj_size > 0 ? proj_size : hidden_size);
  if (kind == RecurrentKind::LSTM) check("cx", state.c, hidden_size);
}

// Calls the operator of this kind of cell; `where` is what comes in front of the states.
template <class... Where>
std::pair<Tensor, Recurrent::State> Recurrent::call(const State& state, bool training,
                                                    const Where&... where) const {
  const auto finish = [](std::tuple<Tensor, Tensor> r) {
    return std::pair(std::get<0>(r), State{std::get<1>(r), {}});
  };
  const auto with_format = [&](auto op) {
    if constexpr (sizeof...(where) == 1)
      return op(/*batch_first=*/false);
    else
      return op();
  };
  switch (kind) {
    case RecurrentKind::LSTM: {
      auto [out, h, c] = with_format([&](auto... format) {
        return vesta::lstm(where..., std::vector<Tensor>{state.h, state.c}, weights, bias, num_layers,
                           dropout, training, bidirectional, format...);
      });
      return {out, {h, c}};
    }
    case RecurrentKind::GRU:
      return finish(with_format([&](auto... format) {
        return vesta::gru(where..., state.h, weights, bias, num_layers, dropout, training, bidirectional,
                          format...);
      }));
    case RecurrentKind::Tanh:
      return finish(with_format([&](auto... format) {
        return vesta::rnn_tanh(where..., state.h, weights, bias, num_layers, dropout, training, bidirectional,
                               format...);
      }));
    case RecurrentKind::ReLU:
      break;
  }
  return finish(with_format([&](auto... format) {
    return vesta::rnn_relu(where..., state.h, weights, bias, num_layers, dropout, training, bidirectional,
                           format...);
  }));
}

std::pair<Tensor, Recurrent::State> Recurrent::run(const char* layer, const Tensor& input, State state,
                                                   bool training) const {
  VESTA_CHECK(input.dim() == 2 || input.dim() == 3, layer, ": expected an input of 2 or 3 dims, got ",
              input.dim());
  VESTA_CHECK(input.size(-1) == input_size, layer, ": expected input_size ", input_size, ", got ",
              input.size(-1));
  const bool batched = input.dim() == 3, swap = batched && batch_first;
  const auto batched_state = [&](const char* name, Tensor& t) {
    if (!t.defined() || batched) return;
    VESTA_CHECK(t.dim() == 2, layer, ": expected ", name, " of 2 dims beside an input without batch, got ",
                t.dim());
    t = t.unsqueeze(1);
  };
  batched_state("hx", state.h);
  batched_state("cx", state.c);
  const Tensor x = !batched ? input.unsqueeze(1) : swap ? input.transpose(0, 1) : input;
  const int64_t steps = x.size(0), batch = x.size(1);
  VESTA_CHECK(steps > 0, layer, ": expected at least one step");
  check_states(layer, state, batch, x.options());
  auto [out, last] = call(state, training, x);
  if (swap) out = out.transpose(0, 1);
  if (!batched) {
    out = out.squeeze(1);
    last.h = last.h.squeeze(1);
    if (last.c.defined()) last.c = last.c.squeeze(1);
  }
  return {out, last};
}

std::pair<utils::rnn::PackedSequence, Recurrent::State> Recurrent::run(
    const char* layer, const utils::rnn::PackedSequence& input, State state, bool training) const {
  const Tensor sizes = input.batch_sizes();
  VESTA_CHECK(sizes.defined() && sizes.dim() == 1 && sizes.dtype() == kInt64 && sizes.numel() > 0, layer,
              ": the packed sequence is empty or its batch_sizes are no integers");
  const Tensor flat = sizes.contiguous();
  const std::vector<int64_t> batch_sizes(flat.data_ptr<int64_t>(), flat.data_ptr<int64_t>() + flat.numel());
  int64_t total = 0;
  for (size_t t = 0; t < batch_sizes.size(); ++t) {
    VESTA_CHECK(batch_sizes[t] > 0 && (t == 0 || batch_sizes[t] <= batch_sizes[t - 1]), layer,
                ": expected falling batch_sizes above 0");
    total += batch_sizes[t];
  }
  VESTA_CHECK(input.data().dim() == 2 && input.data().size(0) == total && input.data().size(1) == input_size,
              layer, ": expected packed data of shape [", total, ", ", input_size, "], got ",
              shape_text(input.data()));
  if (input.sorted_indices().defined()) {
    if (state.h.defined()) state.h = state.h.index_select(1, input.sorted_indices());
    if (state.c.defined()) state.c = state.c.index_select(1, input.sorted_indices());
  }
  check_states(layer, state, batch_sizes[0], input.data().options());
  auto [rows, last] = call(state, training, input.data(), sizes);
  if (input.unsorted_indices().defined()) {
    last.h = last.h.index_select(1, input.unsorted_indices());
    if (last.c.defined()) last.c = last.c.index_select(1, input.unsorted_indices());
  }
  return {input.with_data(rows), last};
}

namespace {

template <class Options>
void read_options(Recurrent& r, const Options& o) {
  r.input_size = o.input_size();
  r.hidden_size = o.hidden_size();
  r.num_layers = o.num_layers();
  r.bias = o.bias();
  r.batch_first = o.batch_first();
  r.dropout = o.dropout();
  r.bidirectional = o.bidirectional();
}

template <class Options>
void print_options(std::ostream& out, const char* layer, const Options& o) {
  out << "vesta::nn::" << layer << "(input_size=" << o.input_size() << ", hidden_size=" << o.hidden_size()
      << ", num_layers=" << o.num_layers() << ", bias=" << (o.bias() ? "true" : "false")
      << ", batch_first=" << (o.batch_first() ? "true" : "false") << ", dropout=" << o.dropout()
      << ", bidirectional=" << (o.bidirectional() ? "true" : "false");
}

}  // namespace
}  // namespace detail

using detail::RecurrentKind;

RNNImpl::RNNImpl(const RNNOptions& o) : options(o) {
  VESTA_CHECK(o.nonlinearity() == Nonlinearity::Tanh || o.nonlinearity() == Nonlinearity::ReLU,
              "RNN: expected the nonlinearity kTanh or kReLU");
  recurrent_.kind = o.nonlinearity() == Nonlinearity::Tanh ? RecurrentKind::Tanh : RecurrentKind::ReLU;
  detail::read_options(recurrent_, o);
  recurrent_.make_weights("RNN", *this);
  options_base = recurrent_.shared_options();
}
std::tuple<Tensor, Tensor> RNNImpl::forward(const Tensor& input, Tensor hx) {
  auto [out, last] = recurrent_.run("RNN", input, {std::move(hx), {}}, is_training());
  return {out, last.h};
}
std::tuple<utils::rnn::PackedSequence, Tensor> RNNImpl::forward_with_packed_input(
    const utils::rnn::PackedSequence& input, Tensor hx) {
  auto [out, last] = recurrent_.run("RNN", input, {std::move(hx), {}}, is_training());
  return {out, last.h};
}
void RNNImpl::describe(std::ostream& out) const {
  detail::print_options(out, "RNN", options);
  out << ")";
}

LSTMImpl::LSTMImpl(const LSTMOptions& o) : options(o) {
  recurrent_.kind = RecurrentKind::LSTM;
  detail::read_options(recurrent_, o);
  recurrent_.proj_size = o.proj_size();
  recurrent_.make_weights("LSTM", *this);
  options_base = recurrent_.shared_options();
}
std::tuple<Tensor, LSTMImpl::States> LSTMImpl::forward(const Tensor& input, std::optional<States> hx) {
  const States first = hx.value_or(States());
  auto [out, last] = recurrent_.run("LSTM", input, {std::get<0>(first), std::get<1>(first)}, is_training());
  return {out, States(last.h, last.c)};
}
std::tuple<utils::rnn::PackedSequence, LSTMImpl::States> LSTMImpl::forward_with_packed_input(
    const utils::rnn::PackedSequence& input, std::optional<States> hx) {
  const States first = hx.value_or(States());
  auto [out, last] = recurrent_.run("LSTM", input, {std::get<0>(first), std::get<1>(first)}, is_training());
  return {out, States(last.h, last.c)};
}
void LSTMImpl::describe(std::ostream& out) const {
  detail::print_options(out, "LSTM", options);
  if (options.proj_size() > 0) out << ", proj_size=" << options.proj_size();
  out << ")";
}

GRUImpl::GRUImpl(const GRUOptions& o) : options(o) {
  recurrent_.kind = RecurrentKind::GRU;
  detail::read_options(recurrent_, o);
  recurrent_.make_weights("GRU", *this);
  options_base = recurrent_.shared_options();
}
std::tuple<Tensor, Tensor> GRUImpl::forward(const Tensor& input, Tensor hx) {
  auto [out, last] = recurrent_.run("GRU", input, {std::move(hx), {}}, is_training());
  return {out, last.h};
}
std::tuple<utils::rnn::PackedSequence, Tensor> GRUImpl::forward_with_packed_input(
    const utils::rnn::PackedSequence& input, Tensor hx) {
  auto [out, last] = recurrent_.run("GRU", input, {std::move(hx), {}}, is_training());
  return {out, last.h};
}
void GRUImpl::describe(std::ostream& out) const {
  detail::print_options(out, "GRU", options);
  out << ")";
}

}  // namespace vesta::nn
