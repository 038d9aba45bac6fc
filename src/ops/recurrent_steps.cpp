// Step-wise recurrent layers. The running state has a row for each sequence; a step changes its first rows.
#include "ops/recurrent_steps.h"

namespace vesta {
namespace {

using cpu::RnnMode;

struct Step {
  int64_t row, count;
};
std::vector<Step> steps_of(const RecurrentLayer& l) {
  std::vector<Step> steps;
  int64_t row = 0;
  for (int64_t n : l.batch_sizes) {
    steps.push_back({row, n});
    row += n;
  }
  if (l.reverse) steps = {steps.rbegin(), steps.rend()};
  return steps;
}
// `all` with its first rows replaced.
Tensor with_rows(const Tensor& all, const Tensor& first) {
  int64_t n = first.sizes()[0], batch = all.sizes()[0];
  return n == batch ? first : cat({first, all.narrow(0, n, batch - n)});
}
Tensor rows_of(const Tensor& t, const Step& s) { return t.narrow(0, s.row, s.count); }
// Pieces in the order of `steps` as one tensor in row order.
Tensor joined(const RecurrentLayer& l, std::vector<Tensor> pieces) {
  if (l.reverse) pieces = {pieces.rbegin(), pieces.rend()};
  return cat(pieces);
}

}  // namespace

std::vector<Tensor> projected_lstm(const RecurrentLayer& l, const Tensor& gates, const Tensor& h0, const Tensor& c0, const Tensor& weight,
                                   const Tensor& bias, const Tensor& projection) {
  Tensor h = h0, c = c0;
  std::vector<Tensor> y;
  for (const Step& s : steps_of(l)) {
    auto g = (rows_of(gates, s) + linear(h.narrow(0, 0, s.count), weight, bias)).chunk(4, 1);
    Tensor cell = g[1].sigmoid() * c.narrow(0, 0, s.count) + g[0].sigmoid() * g[2].tanh();
    Tensor out = linear(g[3].sigmoid() * cell.tanh(), projection);
    h = with_rows(h, out);
    c = with_rows(c, cell);
    y.push_back(out);
  }
  return {joined(l, std::move(y)), h, c};
}

RecurrentGradients recurrent_gradients(const RecurrentLayer& l, const Tensor& gates, const Tensor& h0, const Tensor& c0, const Tensor& weight,
                                       const Tensor& bias, const Tensor& dy, const Tensor& dhn, const Tensor& dcn) {
  const bool lstm = l.mode == RnnMode::Lstm, gru = l.mode == RnnMode::Gru;
  const std::vector<Step> steps = steps_of(l);
  // Forward again, keeping what each step saw and made.
  struct Kept {
    Tensor h_before, c_before, h, c, inner;
    std::vector<Tensor> parts;  // activations
  };
  std::vector<Kept> kept;
  Tensor h = h0, c = c0;
  for (const Step& s : steps) {
    Kept k;
    k.h_before = h.narrow(0, 0, s.count);
    Tensor hidden = linear(k.h_before, weight, bias), x = rows_of(gates, s);
    if (lstm) {
      auto g = (x + hidden).chunk(4, 1);
      k.parts = {g[0].sigmoid(), g[1].sigmoid(), g[2].tanh(), g[3].sigmoid()};
      k.c_before = c.narrow(0, 0, s.count);
      k.c = k.parts[1] * k.c_before + k.parts[0] * k.parts[2];
      k.h = k.parts[3] * k.c.tanh();
      c = with_rows(c, k.c);
    } else if (gru) {
      auto a = x.chunk(3, 1), b = hidden.chunk(3, 1);
      Tensor r = (a[0] + b[0]).sigmoid(), z = (a[1] + b[1]).sigmoid();
      k.inner = b[2];
      k.parts = {r, z, (a[2] + r * b[2]).tanh()};
      k.h = (k.h_before - k.parts[2]) * z + k.parts[2];
    } else {
      k.h = l.mode == RnnMode::Relu ? (x + hidden).relu() : (x + hidden).tanh();
    }
    h = with_rows(h, k.h);
    kept.push_back(std::move(k));
  }
  RecurrentGradients out;
  Tensor dh = dhn.defined() ? dhn : zeros_like(h0), dc = lstm ? (dcn.defined() ? dcn : zeros_like(c0)) : Tensor();
  std::vector<Tensor> dgates(steps.size()), dhidden(steps.size());
  for (size_t i = steps.size(); i-- > 0;) {
    const Step& s = steps[i];
    const Kept& k = kept[i];
    Tensor d = dh.narrow(0, 0, s.count), through;
    if (dy.defined()) d = d + rows_of(dy, s);
    if (lstm) {
      Tensor ig = k.parts[0], f = k.parts[1], g = k.parts[2], o = k.parts[3], t = k.c.tanh();
      Tensor dcell = dc.narrow(0, 0, s.count) + d * o * (1 - t * t);
      dgates[i] = dhidden[i] = cat({dcell * g * ig * (1 - ig), dcell * k.c_before * f * (1 - f), dcell * ig * (1 - g * g), d * t * o * (1 - o)}, 1);
      dc = with_rows(dc, dcell * f);
    } else if (gru) {
      Tensor r = k.parts[0], z = k.parts[1], m = k.parts[2];
      Tensor dm = d * (1 - z) * (1 - m * m), dr = dm * k.inner * r * (1 - r), dz = d * (k.h_before - m) * z * (1 - z);
      dgates[i] = cat({dr, dz, dm}, 1);
      dhidden[i] = cat({dr, dz, dm * r}, 1);
      through = d * z;
    } else {
      dgates[i] = dhidden[i] = l.mode == RnnMode::Relu ? d * (k.h.detach() > 0).to(d.dtype()) : d * (1 - k.h * k.h);
    }
    Tensor state = dhidden[i].matmul(weight);
    dh = with_rows(dh, through.defined() ? state + through : state);
  }
  std::vector<Tensor> before;
  for (auto& k : kept) before.push_back(k.h_before);
  Tensor hidden_gates = joined(l, dhidden);
  out.gates = joined(l, std::move(dgates));
  out.h0 = dh;
  out.c0 = dc;
  out.weight = hidden_gates.t().matmul(joined(l, std::move(before)));
  if (bias.defined()) out.bias = hidden_gates.sum(IntArrayRef{0});
  return out;
}

}  // namespace vesta
