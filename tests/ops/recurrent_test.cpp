// Recurrent layers against cells written out here, element by element in float64: packed and padded input, both
// directions, layers on top of each other, projections; and what packing promises.
#include <gtest/gtest.h>
#include <vesta/error.h>

#include <cmath>

#include "base/thread_pool.h"
#include "vesta/autograd.h"
#include "vesta/ops.h"

namespace vesta {
namespace {

constexpr int kLstm = 0, kGru = 1, kTanh = 2, kRelu = 3;

Tensor draw(std::vector<int64_t> sizes, uint64_t seed, DType t = kDouble) {
  return rand(sizes, Generator(seed), TensorOptions(t)) - 0.5;
}
Tensor counts(std::vector<int64_t> v) {
  Tensor t = empty({int64_t(v.size())}, TensorOptions(kLong));
  std::copy(v.begin(), v.end(), t.data_ptr<int64_t>());
  return t;
}
void expect_close(const Tensor& a, const Tensor& b, double tolerance) {
  ASSERT_EQ(a.sizes(), b.sizes());
  Tensor x = a.detach().to(kDouble).contiguous(), y = b.detach().to(kDouble).contiguous();
  for (int64_t i = 0; i < x.numel(); ++i)
    ASSERT_NEAR(x.data_ptr<double>()[i], y.data_ptr<double>()[i], tolerance) << "element " << i;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
using Vector = std::vector<double>;
Vector product(const Tensor& w, const Vector& x, const Tensor& bias) {
  Vector y(size_t(w.size(0)));
  auto a = w.accessor<double, 2>();
  for (int64_t i = 0; i < w.size(0); ++i) {
    y[size_t(i)] = bias.defined() ? bias.data_ptr<double>()[i] : 0;
    for (int64_t j = 0; j < w.size(1); ++j) y[size_t(i)] += a[i][j] * x[size_t(j)];
  }
  return y;
}
// One step of one sequence; h and c change.
void step(int mode, const Vector& x, Vector& h, Vector& c, const Tensor* p) {
  Vector a = product(p[0], x, p[2]), b = product(p[1], h, p[3]);
  size_t n = h.size();
  for (size_t j = 0; j < n; ++j) {
    auto sum = [&](size_t k) { return a[k * n + j] + b[k * n + j]; };
    if (mode == kLstm) {
      c[j] = sigmoid(sum(1)) * c[j] + sigmoid(sum(0)) * std::tanh(sum(2));
      h[j] = sigmoid(sum(3)) * std::tanh(c[j]);
    } else if (mode == kGru) {
      double r = sigmoid(sum(0)), z = sigmoid(sum(1)), m = std::tanh(a[2 * n + j] + r * b[2 * n + j]);
      h[j] = (1 - z) * m + z * h[j];
    } else {
      h[j] = mode == kTanh ? std::tanh(sum(0)) : std::max(0., sum(0));
    }
  }
}
// x: [steps, batch, features] padded, with a length for each sequence. Returns y and the last h (and c).
struct Outcome {
  Tensor y, h, c;
};
Outcome reference(int mode, const Tensor& x, const std::vector<int64_t>& lengths, const Tensor& h0,
                  const Tensor& c0, const std::vector<Tensor>& params, int64_t layers, int64_t directions) {
  int64_t steps = x.size(0), batch = x.size(1), hidden = h0.size(2);
  Tensor in = x.contiguous(), h = h0.clone(), c = mode == kLstm ? c0.clone() : Tensor();
  for (int64_t layer = 0; layer < layers; ++layer) {
    Tensor out = zeros({steps, batch, hidden * directions}, TensorOptions(kDouble));
    auto from = in.accessor<double, 3>();
    auto to = out.accessor<double, 3>();
    for (int64_t d = 0; d < directions; ++d)
      for (int64_t b = 0; b < batch; ++b) {
        int64_t cell = layer * directions + d;
        double* hp = h.accessor<double, 3>()[cell][b].data();
        Vector hs(hp, hp + hidden), cs(static_cast<size_t>(hidden));
        if (mode == kLstm)
          cs.assign(c.select(0, cell).select(0, b).data_ptr<double>(),
                    c.select(0, cell).select(0, b).data_ptr<double>() + hidden);
        for (int64_t s = 0; s < lengths[size_t(b)]; ++s) {
          int64_t t = d ? lengths[size_t(b)] - 1 - s : s;
          step(mode, Vector(from[t][b].data(), from[t][b].data() + in.size(2)), hs, cs,
               params.data() + cell * 4);
          std::copy(hs.begin(), hs.end(), to[t][b].data() + d * hidden);
        }
        std::copy(hs.begin(), hs.end(), hp);
        if (mode == kLstm) std::copy(cs.begin(), cs.end(), c.select(0, cell).select(0, b).data_ptr<double>());
      }
    in = out;
  }
  return {in, h, c};
}
std::vector<Tensor> make_params(int mode, int64_t features, int64_t hidden, int64_t layers,
                                int64_t directions) {
  std::vector<Tensor> p;
  int64_t gates = (mode == kLstm ? 4 : mode == kGru ? 3 : 1) * hidden;
  uint64_t seed = 100;
  for (int64_t l = 0; l < layers; ++l)
    for (int64_t d = 0; d < directions; ++d) {
      p.push_back(draw({gates, l ? hidden * directions : features}, ++seed));
      p.push_back(draw({gates, hidden}, ++seed));
      p.push_back(draw({gates}, ++seed));
      p.push_back(draw({gates}, ++seed));
    }
  return p;
}
Outcome run_padded(int mode, const Tensor& x, const Tensor& h0, const Tensor& c0,
                   const std::vector<Tensor>& p, int64_t layers, bool both, bool batch_first = false) {
  if (mode == kLstm) {
    auto [y, h, c] = lstm(x, {h0, c0}, p, true, layers, 0, false, both, batch_first);
    return {y, h, c};
  }
  auto [y, h] = mode == kGru    ? gru(x, h0, p, true, layers, 0, false, both, batch_first)
                : mode == kTanh ? rnn_tanh(x, h0, p, true, layers, 0, false, both, batch_first)
                                : rnn_relu(x, h0, p, true, layers, 0, false, both, batch_first);
  return {y, h, {}};
}
Outcome run_packed(int mode, const Tensor& data, const Tensor& sizes, const Tensor& h0, const Tensor& c0,
                   const std::vector<Tensor>& p, int64_t layers, bool both) {
  if (mode == kLstm) {
    auto [y, h, c] = lstm(data, sizes, {h0, c0}, p, true, layers, 0, false, both);
    return {y, h, c};
  }
  auto [y, h] = mode == kGru    ? gru(data, sizes, h0, p, true, layers, 0, false, both)
                : mode == kTanh ? rnn_tanh(data, sizes, h0, p, true, layers, 0, false, both)
                                : rnn_relu(data, sizes, h0, p, true, layers, 0, false, both);
  return {y, h, {}};
}

class Recurrent : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Modes, Recurrent, testing::Values(kLstm, kGru, kTanh, kRelu));

TEST_P(Recurrent, StacksOfBothDirectionsEqualTheCellsWrittenOut) {
  for (bool both : {false, true}) {
    int64_t layers = 2, d = both ? 2 : 1;
    Tensor x = draw({7, 5, 3}, 1), h0 = draw({layers * d, 5, 4}, 2), c0 = draw({layers * d, 5, 4}, 3);
    auto p = make_params(GetParam(), 3, 4, layers, d);
    Outcome want = reference(GetParam(), x, {7, 7, 7, 7, 7}, h0, c0, p, layers, d);
    Outcome got = run_padded(GetParam(), x, h0, c0, p, layers, both);
    expect_close(got.y, want.y, 1e-13);
    expect_close(got.h, want.h, 1e-13);
    if (GetParam() == kLstm) expect_close(got.c, want.c, 1e-13);
    Outcome first = run_padded(GetParam(), x.transpose(0, 1), h0, c0, p, layers, both, true);
    expect_close(first.y.transpose(0, 1), want.y, 1e-13);
  }
}

TEST_P(Recurrent, PackedSequencesEndAtTheirOwnLength) {
  std::vector<int64_t> lengths{6, 4, 4, 1};
  for (bool both : {false, true}) {
    int64_t layers = 2, d = both ? 2 : 1;
    Tensor x = draw({6, 4, 3}, 1), h0 = draw({layers * d, 4, 5}, 2), c0 = draw({layers * d, 4, 5}, 3);
    auto p = make_params(GetParam(), 3, 5, layers, d);
    Outcome want = reference(GetParam(), x, lengths, h0, c0, p, layers, d);
    auto [data, sizes] = _pack_padded_sequence(x, counts(lengths), false);
    Outcome got = run_packed(GetParam(), data, sizes, h0, c0, p, layers, both);
    auto [y, back] = _pad_packed_sequence(got.y, sizes, false, 0, 0);
    expect_close(y, want.y, 1e-13);
    expect_close(got.h, want.h, 1e-13);
    if (GetParam() == kLstm) expect_close(got.c, want.c, 1e-13);
    for (size_t b = 0; b < lengths.size(); ++b) EXPECT_EQ(back.data_ptr<int64_t>()[b], lengths[b]);
  }
}

// The generic suite compares one layer with differences; this is the whole stack, packed, in both directions.
TEST_P(Recurrent, GradientsOfPackedStacksAgreeWithDifferences) {
  auto p = make_params(GetParam(), 2, 2, 1, 2);
  Tensor data = draw({5, 2}, 1), sizes = counts({2, 2, 1}), h0 = draw({2, 2, 2}, 2), c0 = draw({2, 2, 2}, 3);
  std::vector<Tensor> in{data, h0, c0};
  in.insert(in.end(), p.begin(), p.end());
  if (GetParam() == kRelu) in[0].add_(2), in[3].abs_();  // away from the kink
  for (auto& t : in) t.requires_grad_();
  auto fn = [&](const autograd::variable_list& v) {
    Outcome o = run_packed(GetParam(), v[0], sizes, v[1], v[2], {v.begin() + 3, v.end()}, 1, true);
    autograd::variable_list outs{o.y, o.h};
    if (o.c.defined()) outs.push_back(o.c);
    return outs;
  };
  EXPECT_TRUE(autograd::gradcheck(fn, in));
}

// A weight too large for one core's cache is shared by the tasks of a step; a small one is each task's own.
TEST_P(Recurrent, LargeStatesEqualTheCellsWrittenOut) {
  const std::vector<int64_t> lengths{3, 3, 3, 2, 2, 2, 2, 2, 2, 1, 1};
  const int64_t hidden = 270, batch = int64_t(lengths.size());
  Tensor x = draw({3, batch, 3}, 1), h0 = draw({2, batch, hidden}, 2), c0 = draw({2, batch, hidden}, 3);
  auto p = make_params(GetParam(), 3, hidden, 1, 2);
  Outcome want = reference(GetParam(), x, lengths, h0, c0, p, 1, 2);
  auto [data, sizes] = _pack_padded_sequence(x, counts(lengths), false);
  Outcome got = run_packed(GetParam(), data, sizes, h0, c0, p, 1, true);
  auto [y, back] = _pad_packed_sequence(got.y, sizes, false, 0, 0);
  expect_close(y, want.y, 1e-11);
  expect_close(got.h, want.h, 1e-11);
  if (GetParam() == kLstm) expect_close(got.c, want.c, 1e-11);
}

// The gradient kernels against the differentiable steps, which double backward takes.
TEST_P(Recurrent, GradientsOfLargeLayersEqualThoseOfTheSteps) {
  for (const int64_t hidden : {24, 270}) {
    auto p = make_params(GetParam(), 3, hidden, 1, 2);
    Tensor x = draw({3, 11, 3}, 1), h0 = draw({2, 11, hidden}, 2), c0 = draw({2, 11, hidden}, 3);
    std::vector<Tensor> in{x, h0};
    if (GetParam() == kLstm) in.push_back(c0);
    in.insert(in.end(), p.begin(), p.end());
    for (auto& t : in) t.requires_grad_();
    auto [data, sizes] = _pack_padded_sequence(x, counts({3, 3, 3, 2, 2, 2, 2, 2, 2, 1, 1}), false);
    Outcome o = run_packed(GetParam(), data, sizes, h0, c0, p, 1, true);
    const Tensor loss = (o.y * o.y).sum() + (o.h * draw({2, 11, hidden}, 4)).sum();
    auto kernels = autograd::grad({loss}, in, {}, true), steps = autograd::grad({loss}, in, {}, true, true);
    for (size_t i = 0; i < in.size(); ++i) expect_close(kernels[i], steps[i], 1e-10);
  }
}

class RecurrentSizes : public testing::TestWithParam<std::tuple<int, int64_t>> {};
INSTANTIATE_TEST_SUITE_P(Modes, RecurrentSizes,
                         testing::Combine(testing::Values(kLstm, kGru, kTanh, kRelu),
                                          testing::Values(int64_t(40), int64_t(400))));

TEST_P(RecurrentSizes, ResultsDependOnNeitherThreadsNorGradMode) {
  const int mode = std::get<0>(GetParam());
  const int64_t hidden = std::get<1>(GetParam());
  auto p = make_params(mode, 33, hidden, 1, 2);
  for (auto& t : p) t = t.to(kFloat).requires_grad_();
  Tensor x = draw({9, 37, 33}, 1, kFloat), h0 = draw({2, 37, hidden}, 2, kFloat),
         c0 = draw({2, 37, hidden}, 3, kFloat);
  auto run = [&] {
    Outcome o = run_padded(mode, x, h0, c0, p, 1, true);
    auto g = autograd::grad({o.y}, p, {ones_like(o.y)});
    g.push_back(o.y.detach());
    return g;
  };
  int threads = num_threads();
  set_num_threads(1);
  auto one = run();
  set_num_threads(4);
  auto four = run();
  set_num_threads(threads);
  for (size_t i = 0; i < one.size(); ++i) expect_close(one[i], four[i], 0);
  NoGradGuard no_grad;
  expect_close(run_padded(mode, x, h0, c0, p, 1, true).y, one.back(), 0);
}

TEST(RecurrentForms, ProjectedLstmFollowsItsFormula) {
  int64_t hidden = 4, out = 3;
  Tensor x = draw({5, 2, 3}, 1), h0 = draw({1, 2, out}, 2), c0 = draw({1, 2, hidden}, 3);
  std::vector<Tensor> p{draw({16, 3}, 4), draw({16, out}, 5), draw({16}, 6), draw({16}, 7),
                        draw({out, hidden}, 8)};
  auto [y, hn, cn] = lstm(x, {h0, c0}, p, true, 1, 0, false, false, false);
  for (int64_t b = 0; b < 2; ++b) {
    Vector h(h0.select(1, b).contiguous().data_ptr<double>(),
             h0.select(1, b).contiguous().data_ptr<double>() + out);
    Tensor cb = c0.select(1, b).contiguous(), xb = x.select(1, b).contiguous();
    Vector c(cb.data_ptr<double>(), cb.data_ptr<double>() + hidden);
    for (int64_t t = 0; t < 5; ++t) {
      Vector a = product(p[0], Vector(xb.data_ptr<double>() + 3 * t, xb.data_ptr<double>() + 3 * t + 3),
                         p[2]),
             r = product(p[1], h, p[3]), cell(4);
      for (size_t j = 0; j < 4; ++j) {
        c[j] = sigmoid(a[4 + j] + r[4 + j]) * c[j] + sigmoid(a[j] + r[j]) * std::tanh(a[8 + j] + r[8 + j]);
        cell[j] = sigmoid(a[12 + j] + r[12 + j]) * std::tanh(c[j]);
      }
      h = product(p[4], cell, {});
      for (size_t j = 0; j < h.size(); ++j)
        ASSERT_NEAR(y[t][b].data_ptr<double>()[j], h[j], 1e-13) << "step " << t << ", sequence " << b;
    }
  }
}

TEST(RecurrentForms, HalfTypesAreComputedInFloat) {
  auto p = make_params(kGru, 3, 4, 1, 1);
  Tensor x = draw({20, 2, 3}, 1), h0 = draw({1, 2, 4}, 2);
  std::vector<Tensor> half;
  for (auto& t : p) half.push_back(t.to(kBFloat16));
  std::vector<Tensor> wide;
  for (auto& t : half) wide.push_back(t.to(kDouble));
  auto got = gru(x.to(kBFloat16), h0.to(kBFloat16), half, true, 1, 0, false, false, false);
  auto want =
      gru(x.to(kBFloat16).to(kDouble), h0.to(kBFloat16).to(kDouble), wide, true, 1, 0, false, false, false);
  EXPECT_EQ(std::get<0>(got).dtype(), kBFloat16);
  expect_close(std::get<0>(got), std::get<0>(want), 1. / 256);  // one rounding of numbers below 1
}

TEST(RecurrentForms, DropoutActsBetweenLayersInTrainingOnly) {
  auto p = make_params(kTanh, 3, 4, 2, 1);
  Tensor x = draw({6, 2, 3}, 1), h0 = draw({2, 2, 4}, 2);
  auto run = [&](double dropout, bool train) {
    manual_seed(5);
    return std::get<0>(rnn_tanh(x, h0, p, true, 2, dropout, train, false, false));
  };
  expect_close(run(0.5, false), run(0, true), 0);
  EXPECT_GT((run(0.5, true) - run(0, true)).abs().max().item<double>(), 1e-3);
  // With everything dropped the second layer sees zeros.
  std::vector<Tensor> second{p[4], p[5], p[6], p[7]};
  Tensor want = std::get<0>(rnn_tanh(zeros({6, 2, 4}, TensorOptions(kDouble)), h0.narrow(0, 1, 1), second,
                                     true, 1, 0, false, false, false));
  expect_close(run(1, true), want, 1e-14);
}

TEST(RecurrentForms, ArgumentsThatDoNotFitAreRefused) {
  auto p = make_params(kLstm, 3, 4, 1, 1);
  Tensor x = draw({5, 2, 3}, 1), h0 = draw({1, 2, 4}, 2), c0 = draw({1, 2, 4}, 3);
  auto go = [&](Tensor in, std::vector<Tensor> state, std::vector<Tensor> w, int64_t layers) {
    return lstm(in, state, w, true, layers, 0, false, false, false);
  };
  EXPECT_NO_THROW(go(x, {h0, c0}, p, 1));
  EXPECT_THROW(go(x[0], {h0, c0}, p, 1), ValueError);
  EXPECT_THROW(go(x, {h0}, p, 1), ValueError);
  EXPECT_THROW(go(x, {h0, c0}, p, 2), ValueError);
  EXPECT_THROW(go(x, {h0, c0}, p, 0), ValueError);
  EXPECT_THROW(go(x, {h0, c0}, p, INT64_MAX), ValueError);
  EXPECT_THROW(go(x, {h0.narrow(1, 0, 1), c0}, p, 1), ValueError);
  EXPECT_THROW(go(x.narrow(2, 0, 2), {h0, c0}, p, 1), ValueError);
  EXPECT_THROW(go(x.narrow(0, 0, 0), {h0, c0}, p, 1), ValueError);
  EXPECT_THROW(go(x.to(kFloat), {h0, c0}, p, 1), TypeError);
  EXPECT_THROW(go(x.to(kLong), {h0, c0}, p, 1), TypeError);
  Tensor data = draw({5, 3}, 1);
  for (auto sizes :
       std::vector<std::vector<int64_t>>{{2, 3}, {3, 1}, {2, 2, 0, 1}, {INT64_MAX, INT64_MAX}, {-1, 6}, {}})
    EXPECT_THROW(lstm(data, counts(sizes), {h0, c0}, p, true, 1, 0, false, false), ValueError);
  EXPECT_THROW(_pack_padded_sequence(x, counts({2, 3}), false), ValueError);
  EXPECT_THROW(_pack_padded_sequence(x, counts({6, 1}), false), ValueError);
  EXPECT_THROW(_pack_padded_sequence(x, counts({2, 0}), false), ValueError);
  EXPECT_THROW(_pad_packed_sequence(data, counts({3, 2}), false, 0, 1), ValueError);
  EXPECT_THROW(_rnn_layer(draw({3, 16}, 1), draw({2, 4}, 1), draw({2, 4}, 1), draw({16, 4}, 1), {}, {2, 2},
                          kLstm, false),
               ValueError);
}

TEST(RecurrentForms, PackingUndoesPaddingForAnyLengths) {
  std::vector<Tensor> list{draw({4, 2}, 1), draw({3, 2}, 2), draw({1, 2}, 3)};
  for (bool batch_first : {false, true}) {
    Tensor padded = pad_sequence(list, batch_first, -1);
    EXPECT_EQ(padded.sizes().vec(),
              batch_first ? (std::vector<int64_t>{3, 4, 2}) : (std::vector<int64_t>{4, 3, 2}));
    auto [data, sizes] = _pack_padded_sequence(padded, counts({4, 3, 1}), batch_first);
    EXPECT_EQ(data.size(0), 8);
    auto [again, lengths] = _pad_packed_sequence(data, sizes, batch_first, -1, 0);
    expect_close(again, padded, 0);
    auto [longer, same] = _pad_packed_sequence(data, sizes, batch_first, -1, 6);
    EXPECT_EQ(longer.size(batch_first ? 1 : 0), 6);
    EXPECT_EQ(longer.select(batch_first ? 1 : 0, 5).max().item<double>(), -1);
  }
  Tensor left = pad_sequence(list, true, 0, "left");
  expect_close(left[2].narrow(0, 3, 1), list[2], 0);
  EXPECT_THROW(pad_sequence(list, true, 0, "middle"), ValueError);
  EXPECT_THROW(pad_sequence({}), ValueError);
  EXPECT_THROW(pad_sequence({list[0], draw({4, 3}, 1)}), ValueError);
}

}  // namespace
}  // namespace vesta
