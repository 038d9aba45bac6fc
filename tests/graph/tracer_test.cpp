// The tracer: what it records replays to the same bits as eager, and the trace itself changes nothing outside.
#include "graph/tracer.h"

#include <gtest/gtest.h>

#include "vesta/autograd.h"
#include "vesta/ops.h"

namespace vesta {
namespace {

Tensor ramp(std::vector<int64_t> sizes, double step) {
  int64_t n = 1;
  for (auto s : sizes) n *= s;
  return (arange(n, kFloat) * step - 0.7).view(sizes);
}
bool same(const Tensor& a, const Tensor& b) {
  Tensor x = a.contiguous(), y = b.contiguous();
  return a.sizes() == b.sizes() && a.dtype() == b.dtype() &&
         std::memcmp(x.data_ptr(), y.data_ptr(), a.nbytes()) == 0;
}

TEST(Tracer, compiled_equals_eager_for_a_chain_of_operators) {
  auto fn = [](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{((in[0] + in[1]).exp() * in[0]).sum(0), in[1].transpose(0, 1) - 2};
  };
  Tensor x = ramp({3, 4}, 0.1), y = ramp({4}, 0.3).expand({3, 4});
  graph::Graph g = graph::trace(fn, {x, y});
  Tensor x2 = ramp({3, 4}, 0.2), y2 = ramp({4}, 0.1).expand({3, 4});
  auto eager = fn({x2, y2}), replayed = g.run({x2, y2});
  ASSERT_EQ(replayed.size(), 2u);
  EXPECT_TRUE(same(eager[0], replayed[0]));
  EXPECT_TRUE(same(eager[1], replayed[1]));
}

// Two layers by hand, mean squared error, backward, and Adam written with tensor operators: the capture contract's step.
struct Net {
  Tensor w1 = ramp({4, 8}, 0.05).requires_grad_(), w2 = ramp({8, 1}, 0.11).requires_grad_();
  Tensor step = zeros({}), lr = full({}, 0.01);
  std::vector<Tensor> m{zeros({4, 8}), zeros({8, 1})}, v{zeros({4, 8}), zeros({8, 1})};

  static Tensor product(const Tensor& a, const Tensor& b) { return (a.unsqueeze(2) * b.unsqueeze(0)).sum(1); }
  Tensor train(const Tensor& x, const Tensor& y) {
    for (auto* w : {&w1, &w2}) w->mutable_grad().reset();
    Tensor e = product(product(x, w1).tanh(), w2) - y;
    Tensor loss = (e * e).mean();
    loss.backward();
    NoGradGuard no_grad;
    step.add_(1);
    Tensor c1 = 1 - pow(full({}, 0.9), step), c2 = 1 - pow(full({}, 0.999), step);
    size_t k = 0;
    for (auto* w : {&w1, &w2}) {
      Tensor g = w->grad();
      m[k].mul_(0.9).add_(g, 0.1);
      v[k].mul_(0.999).addcmul_(g, g, 0.001);
      w->sub_(lr / c1 * m[k] / ((v[k] / c2).sqrt() + 1e-8));
      ++k;
    }
    return loss.detach();
  }
};

TEST(Tracer, a_compiled_training_step_with_adam_equals_eager_step_by_step) {
  Net eager, traced;
  Tensor x = ramp({5, 4}, 0.07), y = ramp({5, 1}, 0.2);
  graph::Graph g = graph::trace(
      [&](const std::vector<Tensor>& in) { return std::vector<Tensor>{traced.train(in[0], in[1])}; }, {x, y});
  // Nothing ran.
  EXPECT_TRUE(same(traced.w1, eager.w1));
  EXPECT_FALSE(traced.w1.grad().defined());
  EXPECT_EQ(traced.step.item<float>(), 0);
  EXPECT_EQ(traced.w1._version(), 0u);
  for (int k = 0; k < 5; ++k) {
    Tensor xk = x + 0.1 * k;
    Tensor a = eager.train(xk, y), b = g.run({xk, y})[0];
    EXPECT_TRUE(same(a, b)) << "step " << k << ": " << a.item<float>() << " and " << b.item<float>();
    EXPECT_TRUE(same(eager.w1, traced.w1));
    EXPECT_TRUE(same(eager.w2.grad(), traced.w2.grad()));
  }
  EXPECT_EQ(traced.step.item<float>(), 5);
}

TEST(Tracer, compiled_writes_through_views_reach_the_captured_base) {
  Tensor base = zeros({4});
  auto fn = [&](const std::vector<Tensor>& in) {
    base.slice(0, 1, 3).add_(in[0]);
    return std::vector<Tensor>{base * 2};
  };
  graph::Graph g = graph::trace(fn, {ones({2})});
  EXPECT_EQ(base.sum().item<float>(), 0);
  Tensor out = g.run({full({2}, 3.0)})[0];
  EXPECT_EQ(base.sum().item<float>(), 6);
  EXPECT_EQ(out.sum().item<float>(), 12);
}

TEST(Tracer, records_gradients_through_in_place_writes_on_views) {
  auto fn = [](const std::vector<Tensor>& in) {
    Tensor w = in[0];
    Tensor base = zeros({4});
    base.slice(0, 1, 3).add_(w);
    return autograd::grad({(base * base).sum()}, {w});
  };
  Tensor w = full({2}, 3.0).requires_grad_();
  graph::Graph g = graph::trace(fn, {w});
  EXPECT_TRUE(same(g.run({w})[0], full({2}, 6.0)));
}

TEST(Tracer, a_symbolic_size_runs_with_other_sizes_and_shows_in_the_text) {
  auto fn = [](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{(in[0] * in[0]).sum(1).view({-1, 1}) + 1};
  };
  graph::Graph g = graph::trace(fn, {ramp({5, 4}, 0.1)}, {{{0}}});
  EXPECT_NE(g.str().find(", 4]"), std::string::npos) << g.str();
  for (int64_t n : {3, 9}) {
    Tensor x = ramp({n, 4}, 0.2);
    EXPECT_TRUE(same(fn({x})[0], g.run({x})[0])) << g.str();
  }
}

TEST(Tracer, reading_a_value_while_tracing_says_what_to_do) {
  try {
    graph::trace(
        [](const std::vector<Tensor>& in) {
          in[0].sum().item();
          return std::vector<Tensor>();
        },
        {ones({2})});
    FAIL() << "no error";
  } catch (const NotImplementedError& e) {
    EXPECT_NE(std::string(e.what()).find("keep the computation in tensors"), std::string::npos) << e.what();
  }
  // The thread is usable afterwards.
  EXPECT_EQ((ones({2}) + 1).sum().item<float>(), 4);
}

}  // namespace
}  // namespace vesta
