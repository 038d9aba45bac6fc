// Hooks on saved tensors, checkpoint, post-accumulate hooks, anomaly mode.
#include <cmath>
#include <limits>
#include <map>

#include "autograd/autograd_testing.h"
#include "runtime/cpu/allocator.h"
#include "vesta/autocast.h"
#include "vesta/random.h"
#include "vesta/warning.h"

// A program's function: what is in namespace vesta counts as the library's.
[[gnu::noinline]] vesta::Tensor square_root_of(const vesta::Tensor& x) { return x.sqrt(); }

namespace vesta {
namespace {

using namespace autograd_testing;
using autograd::variable_list;

TEST(SavedTensorHooks, what_operators_save_goes_through_pack_and_unpack) {
  std::map<int, Tensor> store;
  int packed = 0, unpacked = 0;
  Tensor x = param({1, 2, 3}), y = param({4, 5, 6}), z;
  {
    autograd::SavedTensorHooks hooks(
        [&](const Tensor& t) {
          EXPECT_FALSE(t.requires_grad());
          store[packed] = t.to(kDouble);
          return std::any(packed++);
        },
        [&](const std::any& key) {
          ++unpacked;
          return store.at(std::any_cast<int>(key)).to(kFloat);
        });
    z = (x * y).exp();
  }
  EXPECT_EQ(packed, 3);  // x, y, and the result of exp
  z.sum().backward();
  EXPECT_EQ(unpacked, 3);
  for (size_t i = 0; i < 3; ++i) {
    double a = values(x)[i], b = values(y)[i];
    EXPECT_NEAR(values(x.grad())[i] / (b * std::exp(a * b)), 1, 1e-5);
    EXPECT_NEAR(values(y.grad())[i] / (a * std::exp(a * b)), 1, 1e-5);
  }
}

TEST(SavedTensorHooks, custom_functions_are_hooked_and_scopes_nest) {
  struct Square : autograd::Function<Square> {
    static Tensor forward(autograd::AutogradContext* ctx, Tensor x) {
      ctx->save_for_backward({x});
      return x * x;
    }
    static variable_list backward(autograd::AutogradContext* ctx, variable_list dy) {
      return {dy[0] * 2 * ctx->get_saved_variables()[0]};
    }
  };
  int outer = 0, inner = 0;
  auto keep = [](int& n) {
    return autograd::SavedTensorHooks::Pack([&n](const Tensor& t) {
      ++n;
      return std::any(t);
    });
  };
  auto give = [](const std::any& a) { return std::any_cast<Tensor>(a); };
  Tensor x = param({3});
  autograd::SavedTensorHooks first(keep(outer), give);
  Tensor y;
  {
    autograd::SavedTensorHooks second(keep(inner), give);
    y = Square::apply(x);
  }
  Tensor z = y * y;
  EXPECT_EQ(inner, 1);
  EXPECT_EQ(outer, 2);
  z.backward();
  EXPECT_EQ(values(x.grad()), (Doubles{108}));  // x^4
}

TEST(SavedTensorHooks, a_failing_hook_reaches_the_caller_and_leaves_the_thread_usable) {
  Tensor x = param({1, 2});
  {
    autograd::SavedTensorHooks hooks([](const Tensor&) -> std::any { throw ValueError("full"); },
                                     [](const std::any&) { return Tensor(); });
    EXPECT_CONTAINS(error_of<ValueError>([&] { x* x; }), "full");
  }
  (x * x).sum().backward();
  EXPECT_EQ(values(x.grad()), (Doubles{2, 4}));
}

Tensor block(const Tensor& x, const Tensor& w) {
  return dropout((x.mm(w)).gelu(), 0.3, true).mm(w.t()).sin();
}

TEST(Checkpoint, gradients_and_random_draws_are_those_of_the_plain_call) {
  manual_seed(11);
  Tensor w0 = randn({16, 16}), x0 = randn({8, 16});
  auto run = [&](bool use) {
    manual_seed(7);
    Tensor w = w0.detach().clone().requires_grad_(), x = x0.detach().clone().requires_grad_();
    auto fn = [&](const Tensor& in) { return block(in, w); };
    Tensor y = use ? autograd::checkpoint(fn, x) : fn(x);
    Tensor z = (y * randn({8, 16})).sum();  // the stream goes on after the block
    z.backward();
    return std::vector<Tensor>{y.detach(), x.grad(), w.grad(), rand({4})};
  };
  auto plain = run(false), recomputed = run(true);
  for (size_t k = 0; k < plain.size(); ++k) EXPECT_EQ(values(plain[k]), values(recomputed[k])) << k;
}

TEST(Checkpoint, keeps_no_intermediate_tensor_alive) {
  constexpr int64_t kElements = 1 << 20;
  auto held = [&](bool use) {
    Tensor x = randn({kElements}).requires_grad_();
    auto fn = [](const Tensor& in) {
      Tensor t = in;
      for (int i = 0; i < 6; ++i) t = (t * t).sin();
      return t;
    };
    uint64_t before = cpu::memory_stats().allocated;
    Tensor y = use ? autograd::checkpoint(fn, x) : fn(x);
    uint64_t after = cpu::memory_stats().allocated;
    y.sum().backward();
    return (after - before) / (kElements * 4);
  };
  EXPECT_EQ(held(true), 1u);  // the result
  EXPECT_GE(held(false), 12u);
}

TEST(Checkpoint, second_derivatives_and_grad_work) {
  Tensor x = f64({0.4, -1.2});
  x.requires_grad_();
  Tensor y = autograd::checkpoint([](const Tensor& t) { return t * t * t; }, x);
  Tensor g = autograd::grad({y.sum()}, {x}, {}, true, true)[0];
  Tensor h = autograd::grad({g.sum()}, {x})[0];
  for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(values(h)[i], 6 * values(x)[i], 1e-12);
}

TEST(Checkpoint, a_function_that_does_something_else_the_second_time_is_an_error) {
  Tensor x = param({1, 2});
  int calls = 0;
  Tensor y = autograd::checkpoint([&](const Tensor& t) { return calls++ ? t * t * t : t * t; }, x);
  EXPECT_CONTAINS(error_of<ValueError>([&] { y.sum().backward(); }), "the same each time");
}

TEST(PostAccumulateHook, runs_after_the_gradient_was_added) {
  Tensor x = param({1, 2});
  std::vector<Doubles> seen;
  x.register_post_accumulate_grad_hook([&](const Tensor& t) { seen.push_back(values(t.grad())); });
  (x * x + x * 3).sum().backward();
  (x * 2).sum().backward();
  EXPECT_EQ(seen, (std::vector<Doubles>{{5, 7}, {7, 9}}));
  EXPECT_CONTAINS(
      error_of<ValueError>([&] { (x * 2).register_post_accumulate_grad_hook([](const Tensor&) {}); }),
      "leaf");
}

TEST(AnomalyMode, names_the_forward_call_whose_gradient_is_nan_and_its_source_line) {
  Tensor x = param({0, 4});
  autograd::DetectAnomalyGuard guard;
  Tensor y = (square_root_of(x - 1) * 0).sum();
  std::string e = error_of<ValueError>([&] { y.backward(); });
  EXPECT_CONTAINS(e, "SqrtBackward");
  EXPECT_CONTAINS(e, "NaN");
  EXPECT_CONTAINS(e, "forward call");
#if defined(VESTA_LIBBACKTRACE)
  EXPECT_CONTAINS(e, "square_root_of at ");
  EXPECT_CONTAINS(e, "saved_hooks_test.cpp:");
#endif
}

TEST(AnomalyMode, a_backward_that_throws_is_reported_with_its_forward_call) {
  struct Broken : autograd::Function<Broken> {
    static Tensor forward(autograd::AutogradContext*, Tensor x) { return x * 2; }
    static variable_list backward(autograd::AutogradContext*, variable_list) { throw ValueError("broken"); }
  };
  static std::string warned;
  warned.clear();
  WarningHandler before = set_warning_handler([](const char* text, void*) { warned = text; });
  Tensor x = param({1});
  {
    autograd::DetectAnomalyGuard guard(false);
    Tensor y = Broken::apply(x);
    EXPECT_CONTAINS(error_of<ValueError>([&] { y.backward(); }), "broken");
  }
  set_warning_handler(before);
  EXPECT_CONTAINS(warned, "BrokenBackward");
  EXPECT_FALSE(autograd::AnomalyMode::is_enabled());
}

TEST(Autocast, products_run_in_16_bits_losses_in_32_and_gradients_come_back_in_the_parameters_type) {
  manual_seed(3);
  Tensor w = randn({32, 16}).requires_grad_(), x = randn({8, 16}), target = randn({8, 32});
  Tensor y, loss;
  {
    AutocastMode autocast(DType::BFloat16);
    y = linear(x, w);
    EXPECT_EQ(y.dtype(), DType::BFloat16);
    EXPECT_EQ((y + target).dtype(), DType::Float32);
    loss = mse_loss(y, target);
    EXPECT_EQ(loss.dtype(), DType::Float32);
    EXPECT_EQ(mm(x.to(kDouble), x.t().to(kDouble)).dtype(), DType::Float64);
    EXPECT_EQ(cat({y, target}).dtype(), DType::Float32);
    EXPECT_EQ(layer_norm(y, {32}, ones({32}), zeros({32})).dtype(), DType::Float32);
    {
      AutocastMode off(DType::BFloat16, false);
      EXPECT_EQ(linear(x, w).dtype(), DType::Float32);
    }
    EXPECT_TRUE(autocast::is_enabled());
  }
  EXPECT_FALSE(autocast::is_enabled());
  loss.backward();
  ASSERT_EQ(w.grad().dtype(), DType::Float32);
  Tensor w2 = w.detach().clone().requires_grad_();
  mse_loss(linear(x, w2), target).backward();
  Doubles got = values(w.grad()), want = values(w2.grad());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 2e-2 + 2e-2 * std::abs(want[i]));
}

TEST(Autocast, a_shared_weight_is_cast_once_until_it_is_written) {
  Tensor w = randn({8, 8}).requires_grad_(), x = randn({4, 8});
  AutocastMode autocast(DType::BFloat16);
  Tensor a = linear(x, w), b = linear(x, w);
  {
    NoGradGuard no_grad;
    w.fill_(0);
  }
  Tensor c = linear(x, w);
  EXPECT_EQ(values(a), values(b));
  EXPECT_EQ(values(c), Doubles(32, 0.0));
  EXPECT_CONTAINS(error_of<TypeError>([] { AutocastMode bad(DType::Int32); }), "bfloat16");
}

}  // namespace
}  // namespace vesta
