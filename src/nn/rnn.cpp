// Recurrent layers over whole sequences. A batch of sequences is a list of rows, step after step, with the number of
// sequences that reach each step; a padded batch is the case where all reach all. One matrix product makes the input's
// part of all gates; only the hidden state's part waits for the step before.
#include <cmath>
#include <ostream>

#include "nn/recurrent.h"
#include "vesta/autograd.h"
#include "vesta/ops.h"

namespace vesta::nn {
namespace detail {

int64_t gates_of(RecurrentKind kind) {
  return kind == RecurrentKind::LSTM ? 4 : kind == RecurrentKind::GRU ? 3 : 1;
}

Tensor input_gates(RecurrentKind kind, const Tensor& rows, const CellWeights& w) {
  if (!w.b_ih.defined()) return vesta::linear(rows, w.ih);
  return vesta::linear(rows, w.ih, kind == RecurrentKind::GRU ? w.b_ih : w.b_ih + w.b_hh);
}

Recurrent::State cell_step(RecurrentKind kind, const Tensor& gates, const Recurrent::State& state,
                           const CellWeights& w) {
  if (kind == RecurrentKind::GRU) {
    // n = tanh(W_in x + b_in + r (W_hn h + b_hn)): here the hidden bias is inside the product with r.
    const auto x = gates.chunk(3, -1), h = vesta::linear(state.h, w.hh, w.b_hh).chunk(3, -1);
    const Tensor r = vesta::sigmoid(x[0] + h[0]), z = vesta::sigmoid(x[1] + h[1]);
    const Tensor n = vesta::tanh(x[2] + r * h[2]);
    return {n + z * (state.h - n), {}};
  }
  const Tensor sum = vesta::addmm(gates, state.h, w.hh.t());
  if (kind == RecurrentKind::Tanh) return {sum.tanh(), {}};
  if (kind == RecurrentKind::ReLU) return {sum.relu(), {}};
  const auto g = sum.chunk(4, -1);
  const Tensor c = vesta::sigmoid(g[1]) * state.c + vesta::sigmoid(g[0]) * vesta::tanh(g[2]);
  Tensor h = vesta::sigmoid(g[3]) * c.tanh();
  if (w.hr.defined()) h = vesta::linear(h, w.hr);
  return {h, c};
}

namespace {

Tensor rows_of(const Tensor& t, int64_t start, int64_t count) {
  if (!t.defined() || (start == 0 && count == t.size(0))) return t;
  return t.narrow(0, start, count);
}
Tensor joined(const Tensor& a, const Tensor& b) { return a.defined() ? cat({a, b}) : Tensor(); }

// One layer in one direction over rows sorted by step.
std::pair<Tensor, Recurrent::State> run_direction(RecurrentKind kind, const Tensor& rows,
                                                  const std::vector<int64_t>& batch_sizes,
                                                  const Recurrent::State& first, const CellWeights& w,
                                                  bool reverse) {
  // One split, whose gradient is one concatenation.
  const auto gates = input_gates(kind, rows, w).split(batch_sizes, 0);
  const size_t steps = batch_sizes.size();
  std::vector<Tensor> outputs(steps);
  Recurrent::State last;
  if (!reverse) {
    Recurrent::State state = first;
    std::vector<Recurrent::State> finished;
    for (size_t t = 0; t < steps; ++t) {
      const int64_t before = t ? batch_sizes[t - 1] : batch_sizes[0], now = batch_sizes[t];
      if (now < before) {
        finished.push_back({rows_of(state.h, now, before - now), rows_of(state.c, now, before - now)});
        state = {rows_of(state.h, 0, now), rows_of(state.c, 0, now)};
      }
      state = cell_step(kind, gates[t], state, w);
      outputs[t] = state.h;
    }
    last = state;
    // The sequences that ended last stand first.
    std::vector<Tensor> h{last.h}, c{last.c};
    for (auto it = finished.rbegin(); it != finished.rend(); ++it) {
      h.push_back(it->h);
      c.push_back(it->c);
    }
    if (!finished.empty()) last = {cat(h), last.c.defined() ? cat(c) : Tensor()};
  } else {
    int64_t active = batch_sizes.back();
    Recurrent::State state = {rows_of(first.h, 0, active), rows_of(first.c, 0, active)};
    for (size_t t = steps; t-- > 0;) {
      const int64_t now = batch_sizes[t];
      if (now > active) {
        const int64_t more = now - active;
        state = {joined(state.h, rows_of(first.h, active, more)),
                 joined(state.c, rows_of(first.c, active, more))};
        active = now;
      }
      state = cell_step(kind, gates[t], state, w);
      outputs[t] = state.h;
    }
    last = state;
  }
  return {cat(outputs), last};
}

std::string shape_text(const Tensor& t) {
  std::string out = "[";
  for (int64_t d = 0; d < t.dim(); ++d) out += (d ? ", " : "") + std::to_string(t.size(d));
  return out + "]";
}

}  // namespace

void Recurrent::make_weights(const char* layer, Module& module) {
  VESTA_CHECK(input_size >= 0 && hidden_size > 0 && num_layers > 0, layer,
              ": expected hidden_size > 0 and num_layers > 0, got input_size ", input_size, ", hidden_size ",
              hidden_size, ", num_layers ", num_layers);
  VESTA_CHECK(dropout >= 0 && dropout <= 1, layer, ": expected a dropout between 0 and 1, got ", dropout);
  VESTA_CHECK(proj_size >= 0 && proj_size < hidden_size, layer,
              ": expected 0 <= proj_size < hidden_size, got ", proj_size, " and ", hidden_size);
  const int64_t width = proj_size > 0 ? proj_size : hidden_size, rows = gates_of(kind) * hidden_size;
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

std::pair<Tensor, Recurrent::State> Recurrent::run_rows(const char* layer, Tensor rows,
                                                        const std::vector<int64_t>& batch_sizes, State state,
                                                        bool training) const {
  const int64_t directions = bidirectional ? 2 : 1, batch = batch_sizes[0];
  const int64_t width = proj_size > 0 ? proj_size : hidden_size;
  const auto check_state = [&](const char* name, Tensor& t, int64_t columns) {
    if (!t.defined()) t = vesta::zeros({num_layers * directions, batch, columns}, rows.options());
    VESTA_CHECK(
        t.dim() == 3 && t.size(0) == num_layers * directions && t.size(1) == batch && t.size(2) == columns,
        layer, ": expected ", name, " of shape [", num_layers * directions, ", ", batch, ", ", columns,
        "], got ", shape_text(t));
  };
  check_state("hx", state.h, width);
  if (kind == RecurrentKind::LSTM) check_state("cx", state.c, hidden_size);
  const auto first_h = state.h.unbind(0);
  const auto first_c = state.c.defined() ? state.c.unbind(0) : std::vector<Tensor>();
  std::vector<Tensor> last_h, last_c;
  const size_t count = weights_per_direction();
  for (int64_t l = 0; l < num_layers; ++l) {
    std::vector<Tensor> outputs;
    for (int64_t d = 0; d < directions; ++d) {
      const size_t at = size_t(l * directions + d);
      const Tensor* own = &weights[at * count];
      CellWeights w{own[0], own[1], bias ? own[2] : Tensor(), bias ? own[3] : Tensor(),
                    proj_size > 0 ? own[count - 1] : Tensor()};
      auto [out, last] = run_direction(kind, rows, batch_sizes,
                                       {first_h[at], first_c.empty() ? Tensor() : first_c[at]}, w, d == 1);
      outputs.push_back(out);
      last_h.push_back(last.h);
      if (last.c.defined()) last_c.push_back(last.c);
    }
    rows = outputs.size() == 1 ? outputs[0] : cat(outputs, 1);
    if (training && dropout > 0 && l + 1 < num_layers) rows = vesta::dropout(rows, dropout, true);
  }
  return {rows, {stack(last_h), last_c.empty() ? Tensor() : stack(last_c)}};
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
  const std::vector<int64_t> batch_sizes(size_t(steps), batch);
  auto [rows, last] =
      run_rows(layer, x.reshape({steps * batch, input_size}), batch_sizes, std::move(state), training);
  Tensor out = rows.reshape({steps, batch, rows.size(1)});
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
  auto [rows, last] = run_rows(layer, input.data(), batch_sizes, std::move(state), training);
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
