// `vesta bench ops`: whole optimiser steps against PyTorch's fused ones, dropout and random numbers.
#include <memory>

#include "ops_cases.h"
#include "vesta/ops.h"
#include "vesta/optim.h"

namespace vesta::cli {
namespace {

// x: as many parameters as gradients, the parameters first.
template <class Rule, class Options>
BenchStep step_of(const Tensors& x, const Options& options) {
  Tensors params(x.begin(), x.begin() + int64_t(x.size() / 2));
  for (size_t i = 0; i < params.size(); ++i) {
    params[i].requires_grad_();
    params[i].mutable_grad() = x[params.size() + i];
  }
  auto rule = std::make_shared<Rule>(params, options);
  return [rule, first = params[0]] {
    rule->step();
    return first;
  };
}
std::vector<BenchInput> params_and_grads(int64_t count, const std::vector<int64_t>& shape) {
  return std::vector<BenchInput>(size_t(2 * count), {shape, 0, "fixed"});
}

#define VESTA_BENCH_PYTHON_STEP(rule)                                                \
  "n = len(x) // 2\nfor p, g in zip(x[:n], x[n:]): p.requires_grad_(); p.grad = g\n" \
  "o = torch.optim." rule

}  // namespace

void add_step_cases(OpCases& all, uint64_t seed) {
  DrawnShapes draw(seed + 4);
  using X = const Tensors&;
  auto add = [&](OpCase c) { all.push_back(std::move(c)); };
  auto step = [&](const std::string& name, int64_t count, const std::vector<int64_t>& shape,
                  BenchStep (*prepare)(X), const char* setup) {
    all.push_back(
        {name, params_and_grads(count, shape), nullptr, "o.step()", "f32 fwd", false, prepare, setup});
  };
  auto adamw = [](X x) { return step_of<optim::AdamW>(x, optim::AdamWOptions(1e-3).weight_decay(0.01)); };
  const char* adamw_peer = VESTA_BENCH_PYTHON_STEP("AdamW(x[:n], lr=1e-3, weight_decay=0.01, fused=True)");
  step("adamw/1x2048x1024", 1, {2048, 1024}, adamw, adamw_peer);
  step("adamw/50x64x64", 50, {64, 64}, adamw, adamw_peer);
  std::vector<int64_t> s = {draw.between(50, 400), draw.between(50, 400)};
  step(
      "adam/12x" + case_name("", s).substr(1), 12, s,
      [](X x) { return step_of<optim::Adam>(x, optim::AdamOptions(1e-3)); },
      VESTA_BENCH_PYTHON_STEP("Adam(x[:n], lr=1e-3, fused=True)"));
  auto sgd = [](X x) { return step_of<optim::SGD>(x, optim::SGDOptions(1e-2).momentum(0.9)); };
  const char* sgd_peer = VESTA_BENCH_PYTHON_STEP("SGD(x[:n], lr=1e-2, momentum=0.9, fused=True)");
  step("sgd_momentum/1x2048x1024", 1, {2048, 1024}, sgd, sgd_peer);
  step("sgd_momentum/20x128x128", 20, {128, 128}, sgd, sgd_peer);

  add({"dropout/1024x1024",
       {{{1024, 1024}}},
       [](X x) { return dropout(x[0], 0.1, true); },
       "F.dropout(x[0], 0.1, True)",
       "f32 fwd bwd"});
  s = draw.matrix(300'000, 50, 1000);
  add({case_name("rand", s),
       {{s}},
       [](X x) { return rand_like(x[0]); },
       "torch.rand_like(x[0])",
       "f32 fwd",
       false});
  add({"randn/1024x512",
       {{{1024, 512}}},
       [](X x) { return randn_like(x[0]); },
       "torch.randn_like(x[0])",
       "f32 fwd",
       false});
  add({"bernoulli/512x512",
       {{{512, 512}, 0, "uniform"}},
       [](X x) { return bernoulli(x[0]); },
       "torch.bernoulli(x[0])",
       "f32 fwd",
       false});
}

}  // namespace vesta::cli
