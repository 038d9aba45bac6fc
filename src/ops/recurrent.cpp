// LSTM, GRU and plain recurrent networks: stacks of fused layers (kernels/cpu/recurrent.h) over padded or packed input,
// their single steps, and the packing itself.
#include <algorithm>

#include "base/checked_math.h"
#include "core/registry.h"
#include "core/storage.h"
#include "kernels/cpu/recurrent.h"
#include "ops/infer.h"
#include "ops/recurrent_steps.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;
using cpu::RnnMode;

// ---- one layer in one direction ----
// gates h0 c0 weight bias batch_sizes mode reverse
RnnMode mode_at(const Args& a, int i) {
  VESTA_CHECK(a.integer(i) >= 0 && a.integer(i) <= int64_t(RnnMode::Relu), a.name(), ": unknown mode ", a.integer(i));
  return RnnMode(a.integer(i));
}
void check_layer(const Args& a) {
  const RnnMode mode = mode_at(a, 6);
  const Tensor &gates = a.tensor(0), &h0 = a.tensor(1), &w = a.tensor(3);
  VESTA_CHECK_AS(TypeError, gates.dtype() == kFloat || gates.dtype() == kDouble, a.name(), ": expected float32 or float64, got ", dtype_name(gates.dtype()));
  VESTA_CHECK(gates.dim() == 2 && h0.dim() == 2 && w.dim() == 2, a.name(), ": expected input gates, state and weight with 2 dims");
  const int64_t hidden = h0.size(1), n = cpu::rnn_gates(mode);
  VESTA_CHECK(w.size(1) == hidden && w.size(0) == n * hidden, a.name(), ": expected a hidden weight of [", n * hidden, ", ", hidden, "], got [", w.size(0), ", ", w.size(1), "]");
  VESTA_CHECK(gates.size(1) == n * hidden, a.name(), ": expected input gates of ", n * hidden, " columns, got ", gates.size(1));
  VESTA_CHECK(a.has(2) == (mode == RnnMode::Lstm), a.name(), ": expected a cell state for LSTM and for nothing else");
  if (a.has(2)) VESTA_CHECK(a.tensor(2).sizes() == h0.sizes(), a.name(), ": expected a cell state with the sizes of the hidden state");
  if (a.has(4)) VESTA_CHECK(a.tensor(4).dim() == 1 && a.tensor(4).size(0) == n * hidden, a.name(), ": expected a bias of size ", n * hidden);
  int64_t rows = 0, last = h0.size(0);
  VESTA_CHECK(a.ints(5).size() > 0 && a.ints(5)[0] == last, a.name(), ": expected a hidden state for each of the sequences of the first step");
  for (int64_t b : a.ints(5)) {
    VESTA_CHECK(b >= 0 && b <= last, a.name(), ": batch sizes must not increase, got ", b, " after ", last);
    rows = checked_add(rows, b, a.name());
    last = b;
  }
  VESTA_CHECK(rows == gates.size(0), a.name(), ": the batch sizes add up to ", rows, ", the input has ", gates.size(0), " rows");
}
void infer_layer(InferCtx& c) {
  check_layer(c);
  const RnnMode mode = mode_at(c, 6);
  const DType t = c.dtype_of(0);
  const Device device = c.tensor(0).device();
  SymInt rows = c.sizes(0)[0], batch = c.sizes(1)[0], hidden = c.sizes(1)[1];
  c.out(0, {rows, hidden}, t, device);
  c.out(1, {batch, hidden}, t, device);
  if (mode == RnnMode::Lstm) c.out(2, {batch, hidden}, t, device);
  else c.out_none(2);
  if (cpu::rnn_saved(mode)) c.out(3, {rows, hidden * cpu::rnn_saved(mode)}, t, device);
  else c.out_none(3);
  if (mode == RnnMode::Lstm) c.out(4, {rows, hidden}, t, device);
  else c.out_none(4);
}
void* data_of(const Tensor& t) { return t.defined() ? t.data_ptr() : nullptr; }
// Keeps the contiguous copies alive that the layer points to.
struct Layer : cpu::RnnLayer {
  Tensor w, b, h, c;
  Layer(const Args& a, const Tensor& first_h, const Tensor& first_c, const Tensor& weight_, const Tensor& bias_, int sizes_at) {
    mode = mode_at(a, sizes_at + 1);
    w = weight_.contiguous(), h = first_h.contiguous();
    if (bias_.defined()) b = bias_.contiguous();
    if (first_c.defined()) c = first_c.contiguous();
    type = w.dtype() == kDouble ? cpu::Elem::F64 : cpu::Elem::F32;
    hidden = first_h.size(1);
    steps = int64_t(a.ints(sizes_at).size());
    batch_sizes = a.ints(sizes_at).data();
    reverse = a.flag(sizes_at + 2);
    weight = w.data_ptr(), bias = data_of(b), h0 = h.data_ptr(), c0 = data_of(c);
  }
};
void k_layer(const KernelCtx& k) {
  Layer layer(k, k.tensor(1), k.tensor(2), k.tensor(3), k.tensor(4), 5);
  Tensor gates = k.tensor(0).contiguous();
  cpu::RnnForward io;
  io.gates = gates.data_ptr(), io.y = data_of(k.out(0)), io.hn = data_of(k.out(1)), io.cn = data_of(k.out(2));
  io.saved = data_of(k.out(3)), io.cells = data_of(k.out(4));
  cpu::rnn_forward(layer, io);
}
// dy dhn dcn h0 c0 weight y saved cells batch_sizes mode reverse
void infer_layer_backward(InferCtx& c) {
  const RnnMode mode = mode_at(c, 10);
  const Tensor& y = c.tensor(6);
  const DType t = y.dtype();
  VESTA_CHECK(c.dim(6) == 2 && c.dim(3) == 2 && c.dim(5) == 2, c.name(), ": expected h0, weight and y with 2 dims, got ", c.dim(3), ", ", c.dim(5), " and ", c.dim(6));
  SymInt rows = c.sizes(6)[0], hidden = c.sizes(6)[1], batch = c.sizes(3)[0], gates = hidden * cpu::rnn_gates(mode);
  int64_t total = 0, last = c.ints(9).empty() ? 0 : c.ints(9)[0];
  for (int64_t b : c.ints(9)) {
    VESTA_CHECK(b >= 0 && b <= last, c.name(), ": batch sizes must not increase, got ", b, " after ", last);
    total = checked_add(total, b, c.name());
    last = b;
  }
  // What the kernel reads by pointer: (argument, rows, columns) where it is given.
  struct Read { int i; SymInt rows, columns; };
  for (const Read& r : {Read{0, rows, hidden}, Read{1, batch, hidden}, Read{2, batch, hidden}, Read{3, batch, hidden}, Read{4, batch, hidden}, Read{5, gates, hidden},
                        Read{7, rows, hidden * std::max<int64_t>(cpu::rnn_saved(mode), 1)}, Read{8, rows, hidden}})
    if (c.has(r.i) && (r.i != 7 || cpu::rnn_saved(mode)))
      VESTA_CHECK(c.dim(r.i) == 2 && c.sizes(r.i)[0] == r.rows && c.sizes(r.i)[1] == r.columns, c.name(), ": expected ", c.op().schema.args[size_t(r.i)].name, " of [", r.rows.str(), ", ",
                  r.columns.str(), "]");
  VESTA_CHECK(rows == total && c.ints(9).size() > 0 && batch == c.ints(9)[0] && (mode != RnnMode::Lstm || (c.has(4) && c.has(7) && c.has(8))) && (mode != RnnMode::Gru || c.has(7)), c.name(),
              ": the saved tensors are not those of the forward call");
  c.out(0, {rows, gates}, t);
  if (mode == RnnMode::Gru) c.out(1, {rows, gates}, t);
  else c.out_none(1);
  c.out(2, {rows, hidden}, t);
  c.out(3, {batch, hidden}, t);
  if (mode == RnnMode::Lstm) c.out(4, {batch, hidden}, t);
  else c.out_none(4);
}
void k_layer_backward(const KernelCtx& k) {
  Layer layer(k, k.tensor(3), k.tensor(4), k.tensor(5), {}, 9);
  std::vector<Tensor> keep;
  auto pointer = [&](int i) -> const void* {
    if (!k.has(i)) return nullptr;
    keep.push_back(k.tensor(i).contiguous());
    return keep.back().data_ptr();
  };
  cpu::RnnBackward io;
  io.dy = pointer(0), io.dhn = pointer(1), io.dcn = pointer(2), io.y = pointer(6), io.saved = pointer(7), io.cells = pointer(8);
  io.dgates = data_of(k.out(0)), io.dhidden_gates = data_of(k.out(1)), io.h_before = data_of(k.out(2)), io.dh0 = data_of(k.out(3)), io.dc0 = data_of(k.out(4));
  cpu::rnn_backward(layer, io);
}
int layer_vjp(const Grad& g) {
  const bool bias = g.has(4) && g.needs(4);
  if (g.create_graph()) {
    RecurrentLayer l{RnnMode(g.integer(6)), g.ints(5), g.flag(7)};
    RecurrentGradients r = recurrent_gradients(l, g.in(0), g.in(1), g.has(2) ? g.in(2) : Tensor(), g.in(3), g.has(4) ? g.in(4) : Tensor(), g.dy(0), g.dy(1), g.dy(2));
    return grads(G(0) { return r.gates; }, G(1) { return r.h0; }, G(2) { return r.c0; }, G(3) { return r.weight; }, G(4) { return r.bias; });
  }
  const RnnMode mode = RnnMode(g.integer(6));
  Tensor c0, saved, cells;
  if (mode == RnnMode::Lstm) c0 = g.in(2), cells = g.out(4);
  if (cpu::rnn_saved(mode)) saved = g.out(3);
  auto [dgates, dhidden, before, dh0, dc0] = _rnn_layer_backward(g.dy(0), g.dy(1), g.dy(2), g.in(1), c0, g.in(3), g.out(0), saved, cells, g.ints(5), g.integer(6), g.flag(7));
  const Tensor& hidden_gates = dhidden.defined() ? dhidden : dgates;
  if (g.needs(0)) g.set(0, dgates);
  if (g.needs(1)) g.set(1, dh0);
  if (g.needs(2)) g.set(2, dc0);
  if (g.needs(3)) g.set(3, mm(hidden_gates.t(), before));
  if (bias) g.set(4, hidden_gates.sum(IntArrayRef{0}));
  return 0;
}

// ---- stacks ----
std::vector<int64_t> batch_sizes_of(const Args& a, const Tensor& t) {
  VESTA_CHECK_AS(TypeError, t.dtype() == kLong, a.name(), ": expected batch sizes of int64, got ", dtype_name(t.dtype()));
  VESTA_CHECK(t.dim() == 1 && t.numel() > 0, a.name(), ": expected batch sizes with 1 dim and at least one step");
  Tensor dense = t.contiguous();
  std::vector<int64_t> sizes(dense.data_ptr<int64_t>(), dense.data_ptr<int64_t>() + t.numel());
  for (size_t i = 0; i < sizes.size(); ++i)
    VESTA_CHECK(sizes[i] > 0 && (i == 0 || sizes[i] <= sizes[i - 1]), a.name(), ": expected batch sizes that are positive and do not increase, got ", sizes[i]);
  return sizes;
}
// Half types are computed as float32 throughout and rounded at the end of each layer.
Tensor wide(const Tensor& t) { return t.defined() && element_size(t.dtype()) == 2 ? t.to(kFloat) : t; }

struct Stack {
  RnnMode mode = RnnMode::Lstm;
  bool biases = false, train = false, bidirectional = false;
  int64_t layers = 0;
  double dropout = 0;
};
struct StackResult {
  Tensor y, h, c;
};
// x: [rows, features]; h0 and c0: [layers * directions, batch, ...].
StackResult run_stack(const Args& a, const Stack& s, Tensor x, const std::vector<int64_t>& batch_sizes, const Tensor& h0, const Tensor& c0, TensorList params) {
  const bool lstm = s.mode == RnnMode::Lstm;
  const int64_t directions = s.bidirectional ? 2 : 1;
  VESTA_CHECK(s.layers > 0 && s.layers < (1 << 20), a.name(), ": expected num_layers > 0, got ", s.layers);
  const int64_t cells = s.layers * directions;
  VESTA_CHECK(s.dropout >= 0 && s.dropout <= 1, a.name(), ": expected a dropout probability in [0, 1], got ", s.dropout);
  VESTA_CHECK(h0.defined() && h0.dim() == 3 && h0.size(0) == cells && h0.size(1) == batch_sizes[0], a.name(), ": expected hidden states of [", cells, ", ", batch_sizes[0], ", hidden]");
  VESTA_CHECK(!lstm || (c0.defined() && c0.dim() == 3 && c0.size(0) == cells && c0.size(1) == batch_sizes[0]), a.name(), ": expected cell states of [", cells, ", ", batch_sizes[0], ", hidden]");
  const bool projected = lstm && h0.size(2) != c0.size(2);
  const int64_t each = 2 + (s.biases ? 2 : 0) + (projected ? 1 : 0), hidden = lstm ? c0.size(2) : h0.size(2);
  VESTA_CHECK(int64_t(params.size()) == cells * each, a.name(), ": expected ", cells * each, " weights, got ", params.size());
  for (auto& p : params) VESTA_CHECK_AS(TypeError, p.dtype() == x.dtype(), a.name(), ": expected weights of ", dtype_name(x.dtype()), ", got ", dtype_name(p.dtype()));
  VESTA_CHECK_AS(TypeError, h0.dtype() == x.dtype() && (!lstm || c0.dtype() == x.dtype()), a.name(), ": expected states of ", dtype_name(x.dtype()));
  const DType dtype = x.dtype();
  std::vector<Tensor> h, c;
  for (int64_t layer = 0; layer < s.layers; ++layer) {
    std::vector<Tensor> outs;
    for (int64_t d = 0; d < directions; ++d) {
      const int64_t cell = layer * directions + d;
      const Tensor* p = params.data() + cell * each;
      Tensor w_ih = wide(p[0]), w_hh = wide(p[1]), b_ih = s.biases ? wide(p[2]) : Tensor(), b_hh = s.biases ? wide(p[3]) : Tensor(), input = wide(x);
      VESTA_CHECK(w_ih.dim() == 2 && w_ih.size(0) == cpu::rnn_gates(s.mode) * hidden && w_ih.size(1) == input.size(1), a.name(), ": expected an input weight of [", cpu::rnn_gates(s.mode) * hidden, ", ", input.size(1),
                  "] in layer ", layer);
      Tensor gates = linear(input, w_ih, b_ih), h_first = wide(h0.select(0, cell)), c_first = lstm ? wide(c0.select(0, cell)) : Tensor();
      if (projected) {
        const Tensor projection = wide(p[each - 1]);
        VESTA_CHECK(projection.dim() == 2 && projection.size(0) == h0.size(2) && projection.size(1) == hidden, a.name(), ": expected a projection of [", h0.size(2), ", ", hidden, "]");
        VESTA_CHECK(w_hh.dim() == 2 && w_hh.size(0) == 4 * hidden && w_hh.size(1) == h0.size(2), a.name(), ": expected a hidden weight of [", 4 * hidden, ", ", h0.size(2), "]");
        std::vector<Tensor> r = projected_lstm({s.mode, batch_sizes, d == 1}, gates, h_first, c_first, w_hh, b_hh, projection);
        outs.push_back(r[0]), h.push_back(r[1]), c.push_back(r[2]);
      } else {
        auto r = _rnn_layer(gates, h_first, c_first, w_hh, b_hh, batch_sizes, int64_t(s.mode), d == 1);
        outs.push_back(std::get<0>(r)), h.push_back(std::get<1>(r)), c.push_back(std::get<2>(r));
      }
    }
    x = directions == 2 ? cat(outs, 1) : outs[0];
    x = x.to(dtype);
    if (s.dropout > 0 && s.train && layer + 1 < s.layers) x = dropout(x, s.dropout, true);
  }
  return {x, stack(h).to(dtype), lstm ? stack(c).to(dtype) : Tensor()};
}
Results results_of(const Stack& s, const StackResult& r, Tensor y) {
  return s.mode == RnnMode::Lstm ? Results{std::move(y), r.h, r.c} : Results{std::move(y), r.h};
}
// input hx params has_biases num_layers dropout train bidirectional batch_first
template <RnnMode mode>
Results padded(const Args& a) {
  const bool lstm = mode == RnnMode::Lstm;
  Tensor x = a.tensor(0);
  VESTA_CHECK_AS(TypeError, is_floating_point(x.dtype()), a.name(), ": expected a floating point input, got ", dtype_name(x.dtype()));
  VESTA_CHECK(x.dim() == 3, a.name(), ": expected an input with 3 dims, got ", x.dim());
  if (lstm) VESTA_CHECK(a.tensors(1).size() == 2, a.name(), ": expected two states, got ", a.tensors(1).size());
  Stack s{mode, a.flag(3), a.flag(6), a.flag(7), a.integer(4), a.number(5)};
  const bool batch_first = a.flag(8);
  if (batch_first) x = x.transpose(0, 1);
  const int64_t steps = x.size(0), batch = x.size(1);
  VESTA_CHECK(steps > 0, a.name(), ": expected at least one step");
  std::vector<int64_t> batch_sizes(static_cast<size_t>(steps), batch);
  StackResult r = run_stack(a, s, x.reshape({steps * batch, x.size(2)}), batch_sizes, lstm ? a.tensors(1)[0] : a.tensor(1), lstm ? a.tensors(1)[1] : Tensor(), a.tensors(2));
  Tensor y = r.y.view({steps, batch, r.y.size(1)});
  return results_of(s, r, batch_first ? y.transpose(0, 1) : y);
}
// data batch_sizes hx params has_biases num_layers dropout train bidirectional
template <RnnMode mode>
Results packed(const Args& a) {
  const bool lstm = mode == RnnMode::Lstm;
  const Tensor& x = a.tensor(0);
  VESTA_CHECK_AS(TypeError, is_floating_point(x.dtype()), a.name(), ": expected floating point data, got ", dtype_name(x.dtype()));
  VESTA_CHECK(x.dim() == 2, a.name(), ": expected packed data with 2 dims, got ", x.dim());
  if (lstm) VESTA_CHECK(a.tensors(2).size() == 2, a.name(), ": expected two states, got ", a.tensors(2).size());
  Stack s{mode, a.flag(4), a.flag(7), a.flag(8), a.integer(5), a.number(6)};
  StackResult r = run_stack(a, s, x, batch_sizes_of(a, a.tensor(1)), lstm ? a.tensors(2)[0] : a.tensor(2), lstm ? a.tensors(2)[1] : Tensor(), a.tensors(3));
  return results_of(s, r, r.y);
}
// input hx w_ih w_hh b_ih b_hh
template <RnnMode mode>
Results one_step(const Args& a) {
  const bool lstm = mode == RnnMode::Lstm;
  const Tensor& x = a.tensor(0);
  VESTA_CHECK_AS(TypeError, is_floating_point(x.dtype()), a.name(), ": expected a floating point input, got ", dtype_name(x.dtype()));
  if (lstm) VESTA_CHECK(a.tensors(1).size() == 2, a.name(), ": expected two states, got ", a.tensors(1).size());
  Tensor h = lstm ? a.tensors(1)[0] : a.tensor(1), c = lstm ? a.tensors(1)[1] : Tensor();
  VESTA_CHECK((x.dim() == 1 || x.dim() == 2) && h.dim() == x.dim() && (!lstm || c.dim() == x.dim()), a.name(), ": expected input and states with 1 or 2 dims, the same number for all");
  const bool single = x.dim() == 1;
  auto rows = [&](const Tensor& t) { return wide(single ? t.unsqueeze(0) : t); };
  auto back = [&](const Tensor& t) { return (single ? t.squeeze(0) : t).to(x.dtype()); };
  Tensor gates = linear(rows(x), wide(a.tensor(2)), wide(a.tensor(4))), h_rows = rows(h);
  VESTA_CHECK(h_rows.size(0) == gates.size(0), a.name(), ": expected a state for each of ", gates.size(0), " inputs, got ", h_rows.size(0));
  int64_t batch = gates.size(0);
  auto r = _rnn_layer(gates, h_rows, lstm ? rows(c) : Tensor(), wide(a.tensor(3)), wide(a.tensor(5)), IntArrayRef(&batch, 1), int64_t(mode), false);
  if (lstm) return {back(std::get<1>(r)), back(std::get<2>(r))};
  return back(std::get<1>(r));
}
// The arithmetic of a cell on finished products.
Tensor plus(const Tensor& t, const Tensor& bias) { return bias.defined() ? t + bias : t; }
// input gates, hidden gates, state, two biases.
void check_cell_sizes(const Args& a, int64_t parts) {
  const Tensor &x = a.tensor(0), &state = a.tensor(2);
  VESTA_CHECK(a.tensor(1).sizes() == x.sizes(), a.name(), ": expected hidden gates with the sizes of the input gates");
  VESTA_CHECK(x.size(1) > 0 && state.dim() == 2 && state.size(0) == x.size(0) && state.size(1) == x.size(1) / parts, a.name(), ": expected a state of [", x.size(0), ", ", x.size(1) / parts, "]");
  for (int i : {3, 4})
    if (a.has(i)) VESTA_CHECK(a.tensor(i).dim() == 1 && a.tensor(i).size(0) == x.size(1), a.name(), ": expected biases of size ", x.size(1));
}
Results lstm_pointwise(const Args& a) {
  VESTA_CHECK(a.tensor(0).dim() == 2 && a.tensor(0).size(1) % 4 == 0, a.name(), ": expected gates of [batch, 4 * hidden]");
  check_cell_sizes(a, 4);
  auto g = (plus(a.tensor(0), a.tensor(3)) + plus(a.tensor(1), a.tensor(4))).chunk(4, 1);
  Tensor i = g[0].sigmoid(), f = g[1].sigmoid(), n = g[2].tanh(), o = g[3].sigmoid(), c = f * a.tensor(2) + i * n;
  return {o * c.tanh(), c, cat({i, f, n, o}, 1)};
}
Results gru_pointwise(const Args& a) {
  VESTA_CHECK(a.tensor(0).dim() == 2 && a.tensor(0).size(1) % 3 == 0, a.name(), ": expected gates of [batch, 3 * hidden]");
  check_cell_sizes(a, 3);
  auto x = plus(a.tensor(0), a.tensor(3)).chunk(3, 1), h = plus(a.tensor(1), a.tensor(4)).chunk(3, 1);
  Tensor r = (x[0] + h[0]).sigmoid(), z = (x[1] + h[1]).sigmoid(), n = (x[2] + r * h[2]).tanh();
  return {(a.tensor(2) - n) * z + n, cat({r, z, n, a.tensor(2), h[2]}, 1)};
}

// ---- packing ----
// Rows of the flattened padded tensor in packed order.
Tensor packed_rows(const std::vector<int64_t>& batch_sizes, int64_t steps, int64_t batch, bool batch_first) {
  int64_t n = 0, at = 0;
  for (int64_t b : batch_sizes) n += b;
  Tensor rows = empty_cpu({n}, kLong);
  int64_t* p = rows.data_ptr<int64_t>();
  for (size_t t = 0; t < batch_sizes.size(); ++t)
    for (int64_t b = 0; b < batch_sizes[t]; ++b) p[at++] = batch_first ? b * steps + int64_t(t) : int64_t(t) * batch + b;
  return rows;
}
Results pack(const Args& a) {
  const Tensor &x = a.tensor(0), &lengths = a.tensor(1);
  const bool batch_first = a.flag(2);
  VESTA_CHECK(x.dim() >= 2, a.name(), ": expected an input with at least 2 dims, got ", x.dim());
  VESTA_CHECK_AS(TypeError, lengths.dtype() == kLong, a.name(), ": expected lengths of int64, got ", dtype_name(lengths.dtype()));
  const int64_t batch = x.size(batch_first ? 0 : 1), steps = x.size(batch_first ? 1 : 0);
  VESTA_CHECK(lengths.dim() == 1 && lengths.size(0) == batch && batch > 0, a.name(), ": expected a length for each of ", batch, " sequences");
  Tensor dense = lengths.contiguous();
  const int64_t* p = dense.data_ptr<int64_t>();
  for (int64_t b = 0; b < batch; ++b) {
    VESTA_CHECK(p[b] > 0 && p[b] <= steps, a.name(), ": expected lengths in [1, ", steps, "], got ", p[b]);
    VESTA_CHECK(b == 0 || p[b] <= p[b - 1], a.name(), ": expected lengths from long to short; sort the sequences or pass enforce_sorted = false");
  }
  std::vector<int64_t> batch_sizes;
  for (int64_t t = 0; t < p[0]; ++t) batch_sizes.push_back(std::partition_point(p, p + batch, [&](int64_t n) { return n > t; }) - p);
  std::vector<int64_t> sizes(x.sizes().begin() + 2, x.sizes().end());
  sizes.insert(sizes.begin(), steps * batch);
  Tensor counts = empty_cpu({int64_t(batch_sizes.size())}, kLong);
  std::copy(batch_sizes.begin(), batch_sizes.end(), counts.data_ptr<int64_t>());
  return {x.reshape(sizes).index_select(0, packed_rows(batch_sizes, steps, batch, batch_first)), counts};
}
Results unpack(const Args& a) {
  const Tensor& data = a.tensor(0);
  std::vector<int64_t> batch_sizes = batch_sizes_of(a, a.tensor(1));
  const bool batch_first = a.flag(2);
  VESTA_CHECK(data.dim() >= 1, a.name(), ": expected data with at least 1 dim");
  int64_t steps = int64_t(batch_sizes.size()), batch = batch_sizes[0], total = a.integer(4), rows = 0;
  for (int64_t b : batch_sizes) rows = checked_add(rows, b, a.name());
  VESTA_CHECK(rows == data.size(0), a.name(), ": the batch sizes add up to ", rows, ", the data has ", data.size(0), " rows");
  if (total > 0) {
    VESTA_CHECK(total >= steps, a.name(), ": expected total_length of at least ", steps, ", got ", total);
    steps = total;
  }
  std::vector<int64_t> flat = data.sizes().vec(), sizes = flat;
  flat[0] = checked_mul(steps, batch, a.name());
  sizes[0] = batch_first ? steps : batch;
  sizes.insert(sizes.begin(), batch_first ? batch : steps);
  Tensor out = full(flat, a.scalar(3), data.options()).index_copy(0, packed_rows(batch_sizes, steps, batch, batch_first), data);
  Tensor lengths = empty_cpu({batch}, kLong);
  for (int64_t b = 0; b < batch; ++b)
    lengths.data_ptr<int64_t>()[b] = std::partition_point(batch_sizes.begin(), batch_sizes.end(), [&](int64_t n) { return n > b; }) - batch_sizes.begin();
  return {out.view(sizes), lengths};
}
Results pad_list(const Args& a) {
  TensorList list = a.tensors(0);
  VESTA_CHECK(list.size() > 0, a.name(), ": expected at least one sequence");
  std::string_view side = a.string(3);
  VESTA_CHECK(side == "right" || side == "left", a.name(), ": expected padding_side to be right or left, got '", side, "'");
  int64_t longest = 0;
  for (auto& t : list) {
    VESTA_CHECK(t.dim() >= 1 && t.dim() == list[0].dim(), a.name(), ": expected sequences with the same number of dims, at least 1");
    for (int64_t d = 1; d < t.dim(); ++d) VESTA_CHECK(t.size(d) == list[0].size(d), a.name(), ": expected sequences that differ in their first dim only");
    longest = std::max(longest, t.size(0));
  }
  std::vector<Tensor> padded_list;
  for (auto& t : list) {
    std::vector<int64_t> pads(size_t(2 * t.dim()), 0);
    pads[pads.size() - (side == "right" ? 1 : 2)] = longest - t.size(0);
    padded_list.push_back(longest == t.size(0) ? t : constant_pad_nd(t, pads, a.number(2)));
  }
  return stack(padded_list, a.flag(1) ? 0 : 1);
}

// ---- samples ----
using List = std::vector<Tensor>;
List weights(SampleGen& s, RnnMode m, int64_t in, int64_t hidden, int64_t layers, int64_t directions, bool biases) {
  List list;
  Range r{-0.5, 0.5};
  const int64_t g = cpu::rnn_gates(m) * hidden;
  for (int64_t l = 0; l < layers; ++l)
    for (int64_t d = 0; d < directions; ++d) {
      list.push_back(s.t({g, l == 0 ? in : hidden * directions}, r));
      list.push_back(s.t({g, hidden}, r));
      for (int k = 0; k < (biases ? 2 : 0); ++k) list.push_back(s.t({g}, r));
    }
  return list;
}
template <RnnMode mode>
void padded_samples(SampleGen& s) {
  auto go = [&](int64_t layers, bool both, bool biases, bool batch_first) {
    const int64_t d = both ? 2 : 1;
    Tensor x = batch_first ? s.t({2, 3, 2}) : s.t({3, 2, 2}), h = s.t({layers * d, 2, 2});
    if (mode == RnnMode::Lstm) s(x, List{h, s.t({layers * d, 2, 2})}, weights(s, mode, 2, 2, layers, d, biases), biases, layers, 0.0, true, both, batch_first);
    else s(x, h, weights(s, mode, 2, 2, layers, d, biases), biases, layers, 0.0, true, both, batch_first);
  };
  go(1, false, true, false);
  go(1, true, false, true);
  go(2, false, false, false);
}
template <RnnMode mode>
void packed_samples(SampleGen& s) {
  Tensor sizes = empty_cpu({3}, kLong), h = s.t({2, 3, 2});
  const int64_t counts[] = {3, 2, 1};
  std::copy(counts, counts + 3, sizes.data_ptr<int64_t>());
  if (mode == RnnMode::Lstm) s(s.t({6, 2}), sizes, List{h, s.t({2, 3, 2})}, weights(s, mode, 2, 2, 1, 2, true), true, 1, 0.0, true, true);
  else s(s.t({6, 2}), sizes, h, weights(s, mode, 2, 2, 1, 2, true), true, 1, 0.0, true, true);
}
template <RnnMode mode>
void step_samples(SampleGen& s) {
  const int64_t g = cpu::rnn_gates(mode) * 2;
  Range r{-0.5, 0.5};
  if (mode == RnnMode::Lstm) s(s.t({3, 4}), List{s.t({3, 2}), s.t({3, 2})}, s.t({g, 4}, r), s.t({g, 2}, r), s.t({g}, r), s.t({g}, r));
  else s(s.t({3, 4}), s.t({3, 2}), s.t({g, 4}, r), s.t({g, 2}, r), s.t({g}, r), s.t({g}, r));
  if (mode == RnnMode::Gru) s(s.t({4}), s.t({2}), s.t({g, 4}, r), s.t({g, 2}, r));
}
template <RnnMode mode>
void layer_sample(SampleGen& s, bool reverse, bool biased) {
  const int64_t g = cpu::rnn_gates(mode) * 2;
  Range r{-0.5, 0.5};
  Tensor c = mode == RnnMode::Lstm ? s.t({3, 2}) : Tensor(), b = biased ? s.t({g}, r) : Tensor();
  s(s.t({6, g}, range(-1, 1)), s.t({3, 2}), c, s.t({g, 2}, r), b, std::vector<int64_t>{3, 2, 1}, int64_t(mode), reverse);
}
void layer_samples(SampleGen& s) {
  layer_sample<RnnMode::Lstm>(s, false, true);
  layer_sample<RnnMode::Lstm>(s, true, false);
  layer_sample<RnnMode::Gru>(s, false, true);
  layer_sample<RnnMode::Gru>(s, true, false);
  layer_sample<RnnMode::Tanh>(s, false, true);
  layer_sample<RnnMode::Tanh>(s, true, false);
}
constexpr TypeRule floating{types::kFloatMask, Promote::None};
constexpr TypeRule wide_floating{types::bit(kFloat32) | types::bit(kFloat64), Promote::Same};
constexpr Tolerance step_tolerance{2e-5, 2e-5};

constexpr OpDef table[] = {
OP("_rnn_layer(Tensor gates, Tensor h0, Tensor? c0, Tensor weight, Tensor? bias, int[] batch_sizes, int mode, bool reverse) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
  .types = wide_floating, .infer = infer_layer, .kernels = {{Cpu, k_layer}}, .save = {in(0), in(1), in(2), in(3), in(4), out(0), out(3), out(4)}, .vjp = layer_vjp,
  .non_diff_outputs = 1 << 3 | 1 << 4, .shard = {"replicate"}, .tol = step_tolerance,
  .doc = "One recurrent layer in one direction over packed input products (mode: 0 LSTM, 1 GRU, 2 tanh, 3 relu): outputs, last states, and what backward needs.", .samples = layer_samples),
OP("_rnn_layer_backward(Tensor? dy, Tensor? dhn, Tensor? dcn, Tensor h0, Tensor? c0, Tensor weight, Tensor y, Tensor? saved, Tensor? cells, int[] batch_sizes, int mode, bool reverse) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
  .types = wide_floating, .infer = infer_layer_backward, .kernels = {{Cpu, k_layer_backward}}, .non_differentiable = true, .shard = {"replicate"}, .tol = step_tolerance,
  .doc = "Gradients of _rnn_layer: of the input products, GRU's hidden products, then the state before each row, then of both states.",
  .samples = [](SampleGen& s) { s(s.t({5, 2}), s.t({3, 2}), std::nullopt, s.t({3, 2}), std::nullopt, s.t({2, 2}), s.t({5, 2}, range(-0.9, 0.9)), std::nullopt, std::nullopt, std::vector<int64_t>{3, 2}, 2, false); }),
OP("lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)",
  .autocast = Autocast::Lower,
  .types = floating, .decompose = padded<RnnMode::Lstm>, .shard = {"decomp"}, .tol = step_tolerance, .doc = "Layers of LSTM over padded sequences: outputs and the last hidden and cell states.", .samples = padded_samples<RnnMode::Lstm>),
OP("lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor, Tensor)",
  .types = floating, .decompose = packed<RnnMode::Lstm>, .shard = {"decomp"}, .tol = step_tolerance, .doc = "Layers of LSTM over packed sequences.", .samples = packed_samples<RnnMode::Lstm>),
OP("gru.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
  .autocast = Autocast::Lower,
  .types = floating, .decompose = padded<RnnMode::Gru>, .shard = {"decomp"}, .tol = step_tolerance, .doc = "Layers of GRU over padded sequences: outputs and the last hidden states.", .samples = padded_samples<RnnMode::Gru>),
OP("gru.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)",
  .types = floating, .decompose = packed<RnnMode::Gru>, .shard = {"decomp"}, .tol = step_tolerance, .doc = "Layers of GRU over packed sequences.", .samples = packed_samples<RnnMode::Gru>),
OP("rnn_tanh.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
  .autocast = Autocast::Lower,
  .types = floating, .decompose = padded<RnnMode::Tanh>, .shard = {"decomp"}, .tol = step_tolerance, .doc = "Layers of recurrent units with tanh over padded sequences.", .samples = padded_samples<RnnMode::Tanh>),
OP("rnn_tanh.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)",
  .types = floating, .decompose = packed<RnnMode::Tanh>, .shard = {"decomp"}, .tol = step_tolerance, .doc = "Layers of recurrent units with tanh over packed sequences.", .samples = packed_samples<RnnMode::Tanh>),
OP("rnn_relu.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
  .autocast = Autocast::Lower,
  .types = floating, .decompose = padded<RnnMode::Relu>, .shard = {"decomp"}, .tol = step_tolerance, .doc = "Layers of recurrent units with relu over padded sequences.", .samples = padded_samples<RnnMode::Relu>),
OP("rnn_relu.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)",
  .types = floating, .decompose = packed<RnnMode::Relu>, .shard = {"decomp"}, .tol = step_tolerance, .doc = "Layers of recurrent units with relu over packed sequences.", .samples = packed_samples<RnnMode::Relu>),
OP("lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> (Tensor, Tensor)",
  .autocast = Autocast::Lower,
  .types = floating, .decompose = one_step<RnnMode::Lstm>, .shard = {"decomp"}, .tol = step_tolerance, .doc = "One step of LSTM: the new hidden and cell states.", .samples = step_samples<RnnMode::Lstm>),
OP("gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor",
  .autocast = Autocast::Lower,
  .types = floating, .decompose = one_step<RnnMode::Gru>, .shard = {"decomp"}, .tol = step_tolerance, .doc = "One step of GRU.", .samples = step_samples<RnnMode::Gru>),
OP("rnn_tanh_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor",
  .autocast = Autocast::Lower,
  .types = floating, .decompose = one_step<RnnMode::Tanh>, .shard = {"decomp"}, .tol = step_tolerance, .doc = "One step of a recurrent unit with tanh.", .samples = step_samples<RnnMode::Tanh>),
OP("rnn_relu_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor",
  .autocast = Autocast::Lower,
  .types = floating, .decompose = one_step<RnnMode::Relu>, .shard = {"decomp"}, .tol = step_tolerance, .doc = "One step of a recurrent unit with relu.", .samples = step_samples<RnnMode::Relu>),
OP("_thnn_fused_lstm_cell(Tensor input_gates, Tensor hidden_gates, Tensor cx, Tensor? input_bias=None, Tensor? hidden_bias=None) -> (Tensor, Tensor, Tensor)",
  .types = floating, .decompose = lstm_pointwise, .shard = {"replicate"}, .doc = "The arithmetic of an LSTM step on finished products: hidden state, cell state, gates.",
  .samples = [](SampleGen& s) { s(s.t({3, 8}), s.t({3, 8}), s.t({3, 2}), s.t({8}), s.t({8})); }),
OP("_thnn_fused_gru_cell(Tensor input_gates, Tensor hidden_gates, Tensor hx, Tensor? input_bias=None, Tensor? hidden_bias=None) -> (Tensor, Tensor)",
  .types = floating, .decompose = gru_pointwise, .shard = {"replicate"}, .doc = "The arithmetic of a GRU step on finished products: hidden state, and what backward needs.",
  .samples = [](SampleGen& s) { s(s.t({3, 6}), s.t({3, 6}), s.t({3, 2}), s.t({6}), s.t({6})); }),
OP("_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, Tensor)",
  .types = any_types, .decompose = pack, .shard = {"replicate"}, .doc = "Padded sequences, longest first, as rows of step after step, and the number of rows of each step.",
  .samples = [](SampleGen& s) { Tensor n = arange(3, 0, -1); s(s.t({3, 3, 2}), n, false); s(s.t({3, 4}), n, true); }),
OP("_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, Scalar padding_value, int total_length) -> (Tensor, Tensor)",
  .types = any_types, .decompose = unpack, .shard = {"decomp"}, .doc = "Packed sequences padded to one length, and the length of each.",
  .samples = [](SampleGen& s) { Tensor n = arange(3, 0, -1); s(s.t({6, 2}), n, false, Scalar(0), 0); s(s.t({6}), n, true, Scalar(1), 5); }),
OP("pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0.0, str padding_side='right') -> Tensor",
  .types = any_types, .decompose = pad_list, .shard = {"decomp"}, .doc = "Sequences of any lengths padded to the longest and stacked.",
  .samples = [](SampleGen& s) { s(List{s.t({3, 2}), s.t({1, 2}), s.t({2, 2})}); s(List{s.t({3}), s.t({1})}, true, 1.0, "left"); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(recurrent, table)
