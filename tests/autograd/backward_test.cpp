// backward() and autograd::grad: graphs used twice, accumulation, unused inputs, long chains, failures on the way.
#include <thread>

#include "autograd/autograd_testing.h"
#include "core/tensor_ext.h"
#include "runtime/cpu/allocator.h"
#include "vesta/profiler.h"

namespace vesta {
namespace {

using namespace autograd_testing;

TEST(Backward, gradients_of_a_small_expression_are_those_of_calculus) {
  Tensor x = param({1, 2, 3}), y = param({4, 5, 6});
  ((x * y).sum() + (x * x).sum()).backward();
  EXPECT_EQ(values(x.grad()), (Doubles{6, 9, 12}));
  EXPECT_EQ(values(y.grad()), (Doubles{1, 2, 3}));
}

TEST(Backward, second_call_says_that_the_graph_was_freed_and_how_to_keep_it) {
  Tensor x = param({1, 2, 3});
  Tensor loss = (x * x).sum();
  loss.backward();
  std::string e = error_of<ValueError>([&] { loss.backward(); });
  EXPECT_CONTAINS(e, "a second time");
  EXPECT_CONTAINS(e, "retain_graph=true");
  EXPECT_CONTAINS(e, "Mul");
  EXPECT_EQ(values(x.grad()), (Doubles{2, 4, 6}));
}

TEST(Backward, retain_graph_allows_a_second_call_that_accumulates) {
  Tensor x = param({1, 2, 3});
  Tensor loss = (x * x).sum();
  loss.backward({}, true);
  loss.backward({}, true);
  EXPECT_EQ(values(x.grad()), (Doubles{4, 8, 12}));
  loss.backward();
  EXPECT_EQ(values(x.grad()), (Doubles{6, 12, 18}));
}

TEST(Backward, a_graph_without_saved_tensors_runs_any_number_of_times) {
  Tensor x = param({1, 2});
  Tensor loss = (x + x).sum();
  loss.backward();
  loss.backward();
  EXPECT_EQ(values(x.grad()), (Doubles{4, 4}));
}

TEST(Backward, create_graph_gives_gradients_that_can_be_differentiated_again) {
  Tensor x = param({2, 3});
  Tensor loss = (x * x * x).sum();
  Tensor g = autograd::grad({loss}, {x}, {}, std::nullopt, true)[0];
  EXPECT_EQ(values(g), (Doubles{12, 27}));
  ASSERT_TRUE(g.requires_grad());
  Tensor h = autograd::grad({g.sum()}, {x}, {}, std::nullopt, true)[0];
  EXPECT_EQ(values(h), (Doubles{12, 18}));
  Tensor third = autograd::grad({h.sum()}, {x})[0];
  EXPECT_EQ(values(third), (Doubles{6, 6}));
  EXPECT_FALSE(third.requires_grad());
  EXPECT_FALSE(x.grad().defined());
}

TEST(Backward, create_graph_through_a_saved_output) {
  Tensor x = f64({0.3, -0.7}).requires_grad_();
  Tensor g = autograd::grad({x.exp().sum()}, {x}, {}, std::nullopt, true)[0];
  Tensor h = autograd::grad({g.sum()}, {x})[0];
  EXPECT_NEAR(values(h)[0], std::exp(0.3), 1e-12);
  EXPECT_NEAR(values(h)[1], std::exp(-0.7), 1e-12);
}

TEST(Backward, implicit_gradients_need_one_real_element) {
  Tensor x = param({1, 2});
  EXPECT_CONTAINS(error_of<ValueError>([&] { (x * 2).backward(); }), "2 elements");
  EXPECT_CONTAINS(error_of<ValueError>([&] { (x * 2).backward(ones({3})); }), "same shape");
  EXPECT_CONTAINS(error_of<ValueError>([&] { f32({1}).backward(); }), "does not require grad");
  EXPECT_THROW(Tensor().backward(), ValueError);
  (x * 2).backward(f32({10, 100}));
  EXPECT_EQ(values(x.grad()), (Doubles{20, 200}));
}

TEST(Grad, unused_inputs_are_an_error_unless_allowed) {
  Tensor x = param({1, 2}), y = param({3, 4}), plain = f32({1, 2});
  Tensor loss = (x * x).sum();
  EXPECT_CONTAINS(error_of<ValueError>([&] { autograd::grad({loss}, {x, y}, {}, true); }), "input 1");
  auto g = autograd::grad({loss}, {x, y}, {}, true, false, true);
  EXPECT_EQ(values(g[0]), (Doubles{2, 4}));
  EXPECT_FALSE(g[1].defined());
  EXPECT_CONTAINS(error_of<ValueError>([&] { autograd::grad({loss}, {plain}); }), "does not require grad");
  EXPECT_FALSE(x.grad().defined());
}

TEST(Grad, of_an_intermediate_result_of_an_output_itself_and_of_one_input_twice) {
  Tensor x = param({1, 2}), mid = x * 3, loss = (mid * mid).sum();
  auto g = autograd::grad({loss}, {mid, x, loss, x}, {}, true);
  EXPECT_EQ(values(g[0]), (Doubles{6, 12}));
  EXPECT_EQ(values(g[1]), (Doubles{18, 36}));
  EXPECT_EQ(values(g[2]), (Doubles{1}));
  EXPECT_EQ(values(g[3]), (Doubles{18, 36}));
}

TEST(Grad, several_outputs_add_up_with_their_weights) {
  Tensor x = param({1, 2});
  Tensor a = x * 2, b = x * x;
  auto g = autograd::grad({a, b}, {x}, {f32({1, 10}), f32({100, 1000})});
  EXPECT_EQ(values(g[0]), (Doubles{2 + 200, 20 + 4000}));
}

TEST(Grad, runs_only_the_nodes_on_a_path_to_an_input) {
  Tensor x = param({1, 2}), y = param({3, 4});
  Tensor mid = y * 2;
  int calls = 0;
  mid.register_hook([&](const Tensor&) {
    ++calls;
    return Tensor();
  });
  Tensor side = (mid * mid * x).sum();
  autograd::grad({side}, {x}, {}, true);
  EXPECT_FALSE(y.grad().defined());
  autograd::backward({side}, {}, true, false, {x});
  EXPECT_TRUE(x.grad().defined());
  EXPECT_FALSE(y.grad().defined());
}

TEST(Accumulation, the_first_gradient_is_taken_over_or_cloned_but_never_shared) {
  Tensor x = param({1, 2, 3});
  Tensor seed = f32({5, 6, 7});
  // view_as passes the seed through unchanged: .grad must not be the caller's tensor.
  x.view_as(x).backward(seed);
  EXPECT_EQ(values(x.grad()), (Doubles{5, 6, 7}));
  EXPECT_NE(x.grad().data_ptr(), seed.data_ptr());
  seed.fill_(0);
  EXPECT_EQ(values(x.grad()), (Doubles{5, 6, 7}));
  Tensor a = param({1, 2}), b = param({3, 4});
  (a + b).backward(f32({1, 2}));  // both receive the same tensor
  a.mutable_grad().mul_(10);
  EXPECT_EQ(values(b.grad()), (Doubles{1, 2}));
}

TEST(Accumulation, keeps_the_identity_of_grad_and_adds_into_it) {
  Tensor x = param({1, 2});
  (x * 2).sum().backward();
  Tensor g = x.grad();
  (x * 3).sum().backward();
  EXPECT_TRUE(g.is_same(x.grad()));
  EXPECT_EQ(values(g), (Doubles{5, 5}));
  x.mutable_grad() = Tensor();
  (x * 7).sum().backward();
  EXPECT_EQ(values(g), (Doubles{5, 5}));
  EXPECT_EQ(values(x.grad()), (Doubles{7, 7}));
}

TEST(Accumulation, the_layout_of_grad_is_that_of_the_leaf) {
  Tensor x = f32({1, 2, 3, 4, 5, 6}, {2, 3}).transpose(0, 1).detach().requires_grad_();
  (x * f32({1, 2, 3, 4, 5, 6}, {3, 2})).sum().backward();
  EXPECT_EQ(x.grad().strides(), x.strides());
  EXPECT_EQ(values(x.grad()), (Doubles{1, 2, 3, 4, 5, 6}));
  Tensor y = param({1, 2, 3});
  y.expand({4, 3}).sum().backward();
  EXPECT_EQ(y.grad().strides(), y.strides());
  EXPECT_EQ(values(y.grad()), (Doubles{4, 4, 4}));
  y.sum().backward();  // an expanded gradient
  EXPECT_EQ(values(y.grad()), (Doubles{5, 5, 5}));
}

TEST(Accumulation, with_create_graph_it_is_out_of_place) {
  Tensor x = param({2, 3});
  (x * x).sum().backward({}, std::nullopt, true);
  Tensor first = x.grad();
  (x * x).sum().backward({}, std::nullopt, true);
  EXPECT_FALSE(first.is_same(x.grad()));
  EXPECT_EQ(values(first), (Doubles{4, 6}));
  EXPECT_EQ(values(x.grad()), (Doubles{8, 12}));
  EXPECT_TRUE(x.grad().requires_grad());
  x.mutable_grad().reset();
  first.reset();
}

TEST(Accumulation, a_leaf_reached_by_several_paths_gets_one_sum) {
  Tensor x = param({1, 2});
  int calls = 0;
  x.register_hook([&](const Tensor& g) {
    ++calls;
    EXPECT_EQ(values(g), (Doubles{3 + 2, 3 + 4}));
    return Tensor();
  });
  (x * 3 + x * x).sum().backward();
  EXPECT_EQ(calls, 1);
}

TEST(Hooks, run_in_order_each_seeing_the_result_of_the_one_before) {
  Tensor x = param({1, 2});
  std::string order;
  x.register_hook([&](const Tensor& g) {
    order += "a";
    return g * 2;
  });
  unsigned middle = x.register_hook([&](const Tensor&) {
    order += "b";
    return Tensor();
  });
  x.register_hook([&](const Tensor& g) {
    order += "c";
    return g + 1;
  });
  x.sum().backward();
  EXPECT_EQ(order, "abc");
  EXPECT_EQ(values(x.grad()), (Doubles{3, 3}));
  x.remove_hook(middle);
  EXPECT_CONTAINS(error_of<ValueError>([&] { x.remove_hook(middle); }), std::to_string(middle));
  x.mutable_grad().reset();
  order.clear();
  x.sum().backward();
  EXPECT_EQ(order, "ac");
}

TEST(Hooks, of_a_result_change_what_flows_on_and_what_it_retains) {
  Tensor x = param({1, 2});
  Tensor mid = x * 3;
  mid.retain_grad();
  EXPECT_TRUE(mid.retains_grad());
  mid.register_hook([](const Tensor& g) { return g * 10; });
  mid.sum().backward();
  EXPECT_EQ(values(mid.grad()), (Doubles{10, 10}));
  EXPECT_EQ(values(x.grad()), (Doubles{30, 30}));
}

TEST(Hooks, outlive_the_tensor_they_were_registered_on) {
  Tensor x = param({1, 2}), loss;
  int calls = 0;
  {
    Tensor mid = x * 3;
    mid.register_hook([&](const Tensor&) {
      ++calls;
      return Tensor();
    });
    loss = mid.sum();
  }
  loss.backward();
  EXPECT_EQ(calls, 1);
}

TEST(Hooks, may_remove_themselves_and_register_others) {
  Tensor x = param({1, 2});
  unsigned id = 0;
  int calls = 0;
  id = x.register_hook([&](const Tensor&) {
    ++calls;
    x.remove_hook(id);
    return Tensor();
  });
  x.sum().backward();
  x.sum().backward();
  EXPECT_EQ(calls, 1);
}

TEST(Hooks, need_a_tensor_that_requires_grad) {
  EXPECT_THROW(f32({1}).register_hook([](const Tensor& g) { return g; }), ValueError);
  EXPECT_THROW(f32({1}).retain_grad(), ValueError);
  Tensor x = param({1});
  x.retain_grad();  // nothing to do for a leaf
  EXPECT_FALSE(x.retains_grad());
}

TEST(Hooks, post_accumulate_hooks_run_after_grad_was_written_and_may_take_it) {
  Tensor x = param({1, 2});
  Doubles seen;
  ensure_ext(x.impl()).post_accumulate_hooks.push_back([&](const Tensor& t) {
    seen = values(t.grad());
    t.mutable_grad().reset();
  });
  (x * 4).sum().backward();
  EXPECT_EQ(seen, (Doubles{4, 4}));
  EXPECT_FALSE(x.grad().defined());
}

TEST(RetainGrad, accumulates_over_calls_and_matches_grad) {
  Tensor x = param({1, 2});
  Tensor mid = x * 3;
  mid.retain_grad();
  Tensor loss = (mid * mid).sum();
  loss.backward({}, true);
  EXPECT_EQ(values(mid.grad()), (Doubles{6, 12}));
  loss.backward();
  EXPECT_EQ(values(mid.grad()), (Doubles{12, 24}));
}

TEST(FailingBackward, a_hook_that_throws_leaves_every_grad_old_or_complete) {
  Tensor x = param({1, 2}), y = param({3, 4});
  x.sum().backward();
  y.sum().backward();
  bool fail = true;
  Tensor mid = x * 3;
  mid.register_hook([&](const Tensor&) -> Tensor {
    if (fail) throw ValueError("hook: no");
    return {};
  });
  Tensor loss = (mid * y).sum();
  EXPECT_EQ(error_of<ValueError>([&] { loss.backward({}, true); }), "hook: no");
  EXPECT_EQ(values(x.grad()), (Doubles{1, 1}));
  Doubles gy = values(y.grad());
  EXPECT_TRUE(gy == (Doubles{1, 1}) || gy == (Doubles{4, 7})) << gy[0] << " " << gy[1];
  // The graph is usable afterwards.
  y.mutable_grad().reset();
  fail = false;
  loss.backward();
  EXPECT_EQ(values(x.grad()), (Doubles{10, 13}));
  EXPECT_EQ(values(y.grad()), (Doubles{3, 6}));
}

TEST(FailingBackward, the_gradient_mode_is_restored) {
  Tensor x = param({1, 2});
  x.register_hook([](const Tensor&) -> Tensor { throw std::runtime_error("user"); });
  EXPECT_THROW(x.sum().backward(), std::runtime_error);
  EXPECT_TRUE(GradMode::is_enabled());
  EXPECT_TRUE((x * 2).requires_grad());
}

TEST(LongGraphs, a_chain_of_a_million_nodes_runs_and_is_released_without_recursion) {
  Tensor x = param({1});
  {
    Tensor y = x * 1;
    for (int i = 0; i < 1000000; ++i) y = y + 1;
    y.backward();
    EXPECT_EQ(values(x.grad()), (Doubles{1}));
  }
  {
    Tensor y = x * 1;
    for (int i = 0; i < 1000000; ++i) y = y * x;  // saved tensors too
  }
  EXPECT_TRUE((x * 2).requires_grad());
}

TEST(LongGraphs, a_chain_of_in_place_writes_is_released_without_recursion) {
  Tensor x = param({1}), y = zeros({2});
  for (int i = 0; i < 100000; ++i) y.select(0, i & 1).add_(x.select(0, 0));
  y.sum().backward();
  EXPECT_EQ(values(x.grad()), (Doubles{100000}));
}

// Bytes of live blocks after f ran; the first run settles caches and static tables.
uint64_t leaked_by(const std::function<void()>& f) {
  f();
  uint64_t before = cpu::memory_stats().allocated;
  f();
  f();
  return cpu::memory_stats().allocated - before;
}

TEST(Leaks, graphs_release_everything_with_and_without_backward) {
  auto graph = [](bool run) {
    return [run] {
      Tensor x = param({1, 2, 3}), e = x.exp(), t = e.tanh();
      Tensor loss = (t * e).sum();
      if (run) loss.backward();
    };
  };
  EXPECT_EQ(leaked_by(graph(false)), 0u);
  EXPECT_EQ(leaked_by(graph(true)), 0u);
}

TEST(Leaks, a_saved_output_written_in_place_is_no_cycle) {
  EXPECT_EQ(leaked_by([] {
              Tensor x = param({1, 2, 3}), e = x.exp();
              e.mul_(2);
              e.add_(x);
            }),
            0u);
}

TEST(Leaks, a_plain_tensor_saved_and_then_written_in_place_is_no_cycle) {
  EXPECT_EQ(leaked_by([] {
              Tensor w = param({1, 2, 3}), t = f32({4, 5, 6});
              Tensor y = t * w;  // saves t
              t.add_(y);         // t's history leads to y, whose node has t
            }),
            0u);
  EXPECT_EQ(leaked_by([] {
              Tensor w = param({1, 2, 3}), t = f32({4, 5, 6}), v = t.view({3});
              Tensor y = v * w;
              v.add_(y);
            }),
            0u);
}

TEST(Leaks, views_hooks_and_retained_gradients_are_no_cycles) {
  EXPECT_EQ(leaked_by([] {
              Tensor x = param({1, 2, 3});
              Tensor y = x * 2;
              Tensor v = y.slice(0, 0, 2);
              v.mul_(x.slice(0, 0, 2));
              v.retain_grad();
              y.register_hook([](const Tensor& g) { return g * 2; });
              (y * v.sum()).sum().backward();
            }),
            0u);
}

TEST(Leaks, create_graph_leaves_nothing_once_the_results_are_gone) {
  EXPECT_EQ(leaked_by([] {
              Tensor x = param({1, 2, 3});
              Tensor g = autograd::grad({(x.exp() * x).sum()}, {x}, {}, std::nullopt, true)[0];
              autograd::grad({g.sum()}, {x});
            }),
            0u);
}

TEST(Leaks, a_refused_concurrent_backward_leaves_nothing) {
  EXPECT_EQ(leaked_by([] {
              Tensor x = param({1, 2, 3}), m = x * 2, loss = (m * m).sum();
              m.register_hook([&](const Tensor&) {
                std::thread([&] { EXPECT_THROW(loss.backward({}, true), ValueError); }).join();
                return Tensor();
              });
              loss.backward();
            }),
            0u);
}

TEST(Leaks, a_failed_backward_leaves_nothing) {
  EXPECT_EQ(leaked_by([] {
              Tensor x = param({1, 2, 3}), m = x * 2;
              m.register_hook([](const Tensor&) -> Tensor { throw ValueError("hook: no"); });
              EXPECT_THROW((m * m).sum().backward(), ValueError);
            }),
            0u);
}

TEST(Threads, several_threads_may_run_backward_over_graphs_that_share_leaves) {
  Tensor x = param(std::vector<float>(1000, 1.0f));
  constexpr int kThreads = 4, kRounds = 200;
  std::vector<std::thread> threads;
  for (int k = 0; k < kThreads; ++k)
    threads.emplace_back([&] {
      for (int r = 0; r < kRounds; ++r) (x * 2).sum().backward();
    });
  for (auto& t : threads) t.join();
  for (double g : values(x.grad())) ASSERT_EQ(g, 2.0 * kThreads * kRounds);
}

TEST(Threads, two_backward_passes_over_one_graph_at_once_are_a_typed_error_or_one_after_the_other) {
  Tensor x = param({1, 2}), mid = x * 3;
  Tensor loss = (mid * mid).sum();
  std::string inner;
  // The hook runs while the first pass holds the graph: a second pass from another thread must be refused.
  mid.register_hook([&](const Tensor&) {
    std::thread([&] {
      try {
        loss.backward({}, true);
      } catch (const ValueError& e) {
        inner = e.what();
      }
    }).join();
    return Tensor();
  });
  loss.backward({}, true);
  EXPECT_CONTAINS(inner, "another thread");
  EXPECT_EQ(values(x.grad()), (Doubles{18, 36}));
}

TEST(Threads, the_gradient_mode_belongs_to_the_thread) {
  NoGradGuard no_grad;
  bool other = false;
  std::thread([&] { other = GradMode::is_enabled(); }).join();
  EXPECT_TRUE(other);
  EXPECT_FALSE(GradMode::is_enabled());
}

// grad() of some inputs computes only what leads to them, also where a node has other edges.
TEST(Grad, of_some_inputs_leaves_the_gradients_of_others_uncomputed) {
  Tensor x = param({1, 2, 3}), w = param({4, 5, 6});
  Tensor loss = (x * w).sum() + (w * w).sum();
  auto muls = [&](const std::vector<Tensor>& inputs) {
    std::vector<Tensor> g;
    auto profile = profiler::record([&] { g = autograd::grad({loss}, inputs, {}, true); });
    EXPECT_EQ(values(g[0]), inputs[0].is_same(x) ? (Doubles{4, 5, 6}) : (Doubles{9, 12, 15}));
    int64_t calls = 0;
    for (auto& op : profile.by_op())
      if (op.name == "mul.Tensor") calls += op.calls;
    return calls;
  };
  EXPECT_EQ(muls({x}), 1);  // dy * w
  EXPECT_EQ(muls({w}), 3);  // dy * x and both of w * w
  EXPECT_EQ(muls({x, w}), 4);
  // A pass over a part leaves nothing behind: the next one is whole.
  loss.backward();
  EXPECT_EQ(values(x.grad()), (Doubles{4, 5, 6}));
  EXPECT_EQ(values(w.grad()), (Doubles{9, 12, 15}));
}

TEST(Backward, accumulates_into_inputs_that_are_results_of_other_calls) {
  Tensor x = param({1, 2}), y = param({3, 4});
  Tensor z = x * x, w = y * z + x * y + y * y;
  autograd::backward({w}, {ones({2}, kDouble)}, true, false, {x, z});
  EXPECT_EQ(values(x.grad()), (Doubles{2 * 1 * 3 + 3, 2 * 2 * 4 + 4}));
  EXPECT_EQ(values(z.grad()), (Doubles{3, 4}));
  EXPECT_FALSE(y.grad().defined());
  autograd::backward({w}, {ones({2}, kDouble)}, false, false, {z});
  EXPECT_EQ(values(z.grad()), (Doubles{6, 8}));
}

TEST(Backward, keeps_shapes_of_many_dims_and_of_absent_arguments) {
  Tensor x = randn({1, 2, 1, 2, 1, 3, 1, 2}, kDouble).requires_grad_();
  Tensor y = randn({2, 1, 1, 3, 1, 1}, kDouble).requires_grad_();
  Tensor z = x * y;
  EXPECT_EQ(z.dim(), 8);
  z.sum().backward();
  EXPECT_EQ(x.grad().sizes(), x.sizes());
  EXPECT_EQ(y.grad().sizes(), y.sizes());
  Tensor wanted = y.detach().expand({1, 2, 2, 2, 1, 3, 1, 2}).sum({2}, true);
  EXPECT_TRUE(allclose(x.grad(), wanted));
  Tensor weight = randn({3}, kDouble).requires_grad_(), in = randn({2, 3}, kDouble).requires_grad_();
  layer_norm(in, {3}, weight).square().sum().backward();  // no bias
  EXPECT_EQ(in.grad().sizes(), in.sizes());
  EXPECT_EQ(weight.grad().sizes(), weight.sizes());
}

TEST(Gradcheck, accepts_complex_functions_and_rejects_wrong_gradients) {
  Tensor z = complex(f64({0.3, -1.2, 2.0}), f64({0.7, 0.1, -0.5})).requires_grad_();
  EXPECT_TRUE(autograd::gradcheck(
      [](const autograd::variable_list& in) { return autograd::variable_list{in[0] * in[0].conj()}; }, {z}));
  EXPECT_TRUE(autograd::gradcheck(
      [](const autograd::variable_list& in) {
        return autograd::variable_list{in[0].exp() * in[0], in[0].abs()};
      },
      {z}));
  EXPECT_TRUE(autograd::gradgradcheck(
      [](const autograd::variable_list& in) { return autograd::variable_list{in[0] * in[0] * in[0]}; }, {z}));
  Tensor x = f64({0.5, 1.5}).requires_grad_();
  std::string e = error_of<ValueError>([&] {
    autograd::gradcheck(
        [](const autograd::variable_list& in) { return autograd::variable_list{in[0] * in[0].detach()}; },
        {x});
  });
  EXPECT_CONTAINS(e, "gradcheck: input 0, element 0");
  EXPECT_THROW(autograd::gradcheck([](const autograd::variable_list& in) { return in; }, {param({1})}),
               TypeError);
}

TEST(ComplexGradients, are_conjugate_wirtinger_gradients) {
  Tensor z = complex(f64({1}), f64({2})).requires_grad_();
  real(z * z.conj()).sum().backward();
  auto g = z.grad().item().toComplexDouble();
  EXPECT_NEAR(g.real(), 2, 1e-12);
  EXPECT_NEAR(g.imag(), 4, 1e-12);
  Tensor zero = complex(f64({0}), f64({0})).requires_grad_();
  zero.abs().sum().backward();
  EXPECT_EQ(zero.grad().item().toComplexDouble(), std::complex<double>(0, 0));
  // A real input takes the real part.
  Tensor x = f64({3}).requires_grad_();
  Tensor c = complex(f64({2}), f64({5}));
  real(x * c).sum().backward();
  EXPECT_EQ(x.grad().dtype(), kDouble);
  EXPECT_EQ(values(x.grad()), (Doubles{2}));
}

}  // namespace
}  // namespace vesta
