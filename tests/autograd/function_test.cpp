// Custom functions: what forward may keep and declare, and what backward gets.
#include "autograd/autograd_testing.h"
#include "runtime/cpu/allocator.h"

namespace vesta {
namespace {

using namespace autograd_testing;
using autograd::AutogradContext;
using autograd::variable_list;

struct Scaled : autograd::Function<Scaled> {
  static Tensor forward(AutogradContext* ctx, Tensor x, double factor, Tensor w) {
    ctx->save_for_backward({x, w});
    ctx->saved_data["factor"] = factor;
    return x * w * factor;
  }
  static variable_list backward(AutogradContext* ctx, variable_list dy) {
    auto saved = ctx->get_saved_variables();
    double f = std::any_cast<double>(ctx->saved_data["factor"]);
    return {dy[0] * saved[1] * f, Tensor(), dy[0] * saved[0] * f};
  }
};

TEST(CustomFunction, passes_numbers_along_and_drops_their_gradients) {
  Tensor x = param({1, 2}), w = param({3, 4});
  Tensor y = Scaled::apply(x, 10.0, w);
  EXPECT_EQ(y.grad_fn_name(), "ScaledBackward");
  y.sum().backward();
  EXPECT_EQ(values(x.grad()), (Doubles{30, 40}));
  EXPECT_EQ(values(w.grad()), (Doubles{10, 20}));
}

TEST(CustomFunction, is_differentiable_twice_where_backward_uses_tensor_operators) {
  Tensor x = f64({1, 2}).requires_grad_(), w = f64({3, 4}).requires_grad_();
  auto fn = [](const variable_list& in) { return variable_list{Scaled::apply(in[0], 2.0, in[1])}; };
  EXPECT_TRUE(autograd::gradcheck(fn, {x, w}));
  EXPECT_TRUE(autograd::gradgradcheck(fn, {x, w}));
}

TEST(CustomFunction, saved_tensors_are_freed_and_checked_for_writes) {
  Tensor x = param({1, 2}), w = param({3, 4});
  Tensor y = Scaled::apply(x, 1.0, w).sum();
  y.backward();
  EXPECT_CONTAINS(error_of<ValueError>([&] { y.backward(); }), "ScaledBackward");
  Tensor m = x * 1;
  Tensor z = Scaled::apply(m, 1.0, w).sum();
  m.add_(1);
  std::string e = error_of<ValueError>([&] { z.backward(); });
  EXPECT_CONTAINS(e, "ScaledBackward");
  EXPECT_CONTAINS(e, "add_");
}

struct SavesOutput : autograd::Function<SavesOutput> {
  static Tensor forward(AutogradContext* ctx, Tensor x) {
    Tensor y = x.exp();
    ctx->save_for_backward({y});
    return y;
  }
  static variable_list backward(AutogradContext* ctx, variable_list dy) {
    return {dy[0] * ctx->get_saved_variables()[0]};
  }
};

TEST(CustomFunction, a_saved_output_is_no_cycle_and_can_be_differentiated_again) {
  Tensor x = f64({0.1, 0.2}).requires_grad_();
  auto fn = [](const variable_list& in) { return variable_list{SavesOutput::apply(in[0])}; };
  EXPECT_TRUE(autograd::gradgradcheck(fn, {x}));
  auto once = [] {
    Tensor p = param({1, 2});
    Tensor y = SavesOutput::apply(p);
    y.mul_(2);
  };
  once();
  uint64_t before = cpu::memory_stats().allocated;
  once();
  once();
  EXPECT_EQ(cpu::memory_stats().allocated, before);
}

struct DoubleInPlace : autograd::Function<DoubleInPlace> {
  static Tensor forward(AutogradContext* ctx, Tensor x) {
    x.mul_(2);
    ctx->mark_dirty({x});
    return x;
  }
  static variable_list backward(AutogradContext*, variable_list dy) { return {dy[0] * 2}; }
};

TEST(CustomFunction, mark_dirty_gives_the_input_a_new_history) {
  Tensor x = param({1, 2}), y = x * 3;
  Tensor z = DoubleInPlace::apply(y);
  EXPECT_TRUE(z.is_same(y));
  EXPECT_EQ(y.grad_fn_name(), "DoubleInPlaceBackward");
  y.sum().backward();
  EXPECT_EQ(values(x.grad()), (Doubles{6, 6}));
}

TEST(CustomFunction, mark_dirty_on_a_view_gives_its_base_a_new_history) {
  Tensor x = param({1, 2, 3}), y = x * 1;
  Tensor v = y.slice(0, 0, 2);
  DoubleInPlace::apply(v);
  y.sum().backward();
  EXPECT_EQ(values(x.grad()), (Doubles{2, 2, 1}));
}

TEST(CustomFunction, mark_dirty_on_a_leaf_is_an_error) {
  Tensor x = param({1, 2});
  EXPECT_CONTAINS(error_of<ValueError>([&] { DoubleInPlace::apply(x); }), "leaf");
}

struct TwoOutputs : autograd::Function<TwoOutputs> {
  static inline bool materialize = true, non_differentiable = false;
  static inline std::vector<bool> seen_defined;
  static variable_list forward(AutogradContext* ctx, Tensor x) {
    ctx->set_materialize_grads(materialize);
    Tensor a = x * 2, b = x * 3;
    if (non_differentiable) ctx->mark_non_differentiable({b});
    return {a, b};
  }
  static variable_list backward(AutogradContext*, variable_list dy) {
    seen_defined = {dy[0].defined(), dy[1].defined()};
    Tensor g;
    if (dy[0].defined()) g = dy[0] * 2;
    if (dy[1].defined()) g = g.defined() ? g + dy[1] * 3 : dy[1] * 3;
    return {g};
  }
};

TEST(CustomFunction, undefined_gradients_become_zeros_unless_told_otherwise) {
  Tensor x = param({1, 2});
  TwoOutputs::materialize = true;
  TwoOutputs::apply(x)[0].sum().backward();
  EXPECT_EQ(TwoOutputs::seen_defined, (std::vector<bool>{true, true}));
  EXPECT_EQ(values(x.grad()), (Doubles{2, 2}));
  TwoOutputs::materialize = false;
  TwoOutputs::apply(x)[1].sum().backward();
  EXPECT_EQ(TwoOutputs::seen_defined, (std::vector<bool>{false, true}));
  EXPECT_EQ(values(x.grad()), (Doubles{5, 5}));
  TwoOutputs::materialize = true;
}

TEST(CustomFunction, non_differentiable_outputs_carry_no_history) {
  Tensor x = param({1, 2});
  TwoOutputs::non_differentiable = true;
  auto out = TwoOutputs::apply(x);
  TwoOutputs::non_differentiable = false;
  EXPECT_TRUE(out[0].requires_grad());
  EXPECT_FALSE(out[1].requires_grad());
}

struct Identity : autograd::Function<Identity> {
  static Tensor forward(AutogradContext*, Tensor x) { return x; }
  static variable_list backward(AutogradContext*, variable_list dy) { return {dy[0] * 10}; }
};

TEST(CustomFunction, an_input_returned_as_it_is_keeps_its_own_history) {
  Tensor x = param({1, 2});
  Tensor y = Identity::apply(x);
  EXPECT_FALSE(y.is_same(x));
  EXPECT_TRUE(x.is_leaf());
  EXPECT_EQ(y.data_ptr(), x.data_ptr());
  y.sum().backward();
  EXPECT_EQ(values(x.grad()), (Doubles{10, 10}));
}

struct Needs : autograd::Function<Needs> {
  static inline std::vector<bool> needs;
  static Tensor forward(AutogradContext* ctx, Tensor a, Tensor b) {
    needs = {ctx->needs_input_grad(0), ctx->needs_input_grad(1)};
    return a + b;
  }
  static variable_list backward(AutogradContext*, variable_list dy) { return {dy[0], dy[0]}; }
};

TEST(CustomFunction, knows_which_inputs_need_a_gradient) {
  Tensor x = param({1, 2}), plain = f32({1, 2});
  Needs::apply(plain, x).sum().backward();
  EXPECT_EQ(Needs::needs, (std::vector<bool>{false, true}));
  EXPECT_FALSE(plain.grad().defined());
  EXPECT_EQ(values(x.grad()), (Doubles{1, 1}));
}

struct WrongCount : autograd::Function<WrongCount> {
  static Tensor forward(AutogradContext*, Tensor a, Tensor b) { return a + b; }
  static variable_list backward(AutogradContext*, variable_list dy) { return {dy[0]}; }
};

TEST(CustomFunction, a_wrong_number_of_gradients_is_an_error_that_names_it) {
  Tensor x = param({1, 2}), y = param({1, 2});
  std::string e = error_of<ValueError>([&] { WrongCount::apply(x, y).sum().backward(); });
  EXPECT_CONTAINS(e, "WrongCountBackward");
  EXPECT_CONTAINS(e, "1 gradients, expected 2");
}

struct Lists : autograd::Function<Lists> {
  static Tensor forward(AutogradContext*, variable_list xs, int64_t) { return xs[0] + xs[1] * 2; }
  static variable_list backward(AutogradContext*, variable_list dy) { return {dy[0], dy[0] * 2, Tensor()}; }
};

TEST(CustomFunction, takes_lists_of_tensors) {
  Tensor x = param({1, 2}), y = param({1, 2});
  Lists::apply(variable_list{x, y}, int64_t(3)).sum().backward();
  EXPECT_EQ(values(x.grad()), (Doubles{1, 1}));
  EXPECT_EQ(values(y.grad()), (Doubles{2, 2}));
}

TEST(CustomFunction, records_nothing_under_no_grad) {
  Tensor x = param({1, 2}), w = param({3, 4});
  NoGradGuard no_grad;
  EXPECT_FALSE(Scaled::apply(x, 1.0, w).requires_grad());
}

// Bias may be left out; backward has a gradient for it all the same.
struct AddBias : autograd::Function<AddBias> {
  static Tensor forward(AutogradContext* ctx, Tensor x, Tensor bias = Tensor()) {
    ctx->saved_data["bias"] = bias.defined();
    return bias.defined() ? x + bias : x * 1;
  }
  static variable_list backward(AutogradContext* ctx, variable_list dy) {
    return {dy[0], ctx->saved_data["bias"].toBool() ? dy[0] : Tensor()};
  }
};
struct TooMany : autograd::Function<TooMany> {
  static Tensor forward(AutogradContext*, Tensor x) { return x * 1; }
  static variable_list backward(AutogradContext*, variable_list dy) { return {dy[0], dy[0]}; }
};

TEST(CustomFunction, undefined_gradients_of_arguments_left_out_are_dropped_and_defined_ones_are_an_error) {
  Tensor x = param({1, 2}), bias = param({3, 4});
  AddBias::apply(x).sum().backward();
  EXPECT_EQ(values(x.grad()), (Doubles{1, 1}));
  AddBias::apply(x, bias).sum().backward();
  EXPECT_EQ(values(bias.grad()), (Doubles{1, 1}));
  EXPECT_CONTAINS(error_of<ValueError>([&] { TooMany::apply(x).sum().backward(); }), "returned 2 gradients");
}

TEST(SavedValue, gives_values_of_the_common_kinds_and_names_what_it_holds_instead) {
  using autograd::SavedValue;
  EXPECT_EQ(SavedValue(5).toInt(), 5);
  EXPECT_EQ(SavedValue(size_t(7)).toInt(), 7);
  EXPECT_EQ(SavedValue(5).toDouble(), 5.0);
  EXPECT_EQ(SavedValue(0.5f).toDouble(), 0.5);
  EXPECT_TRUE(SavedValue(true).toBool());
  EXPECT_EQ(SavedValue("text").toStringRef(), "text");
  EXPECT_EQ(SavedValue(std::string("text")).toStringRef(), "text");
  const Tensor t = f64({1});
  EXPECT_TRUE(SavedValue(t).toTensor().is_same(t));
  EXPECT_FALSE(SavedValue().toTensor().defined());
  EXPECT_EQ(SavedValue(std::vector<Tensor>{t, t}).toTensorVector().size(), 2u);
  EXPECT_EQ(SavedValue(std::vector<int64_t>{3, 4}).toIntVector(), (std::vector<int64_t>{3, 4}));
  EXPECT_CONTAINS(error_of<TypeError>([] { SavedValue(0.5).toInt(); }), "expected an integer");
  EXPECT_CONTAINS(error_of<TypeError>([] { SavedValue(1).toTensor(); }), "expected a tensor");
  EXPECT_CONTAINS(error_of<TypeError>([] { SavedValue().toBool(); }), "none");
}

// Reads needs_input_grad in backward: it follows what the running pass asks for.
struct Asks : autograd::Function<Asks> {
  static inline std::vector<bool> needed;
  static Tensor forward(autograd::AutogradContext* ctx, Tensor a, Tensor b) {
    ctx->save_for_backward({a, b});
    return a * b;
  }
  static autograd::variable_list backward(autograd::AutogradContext* ctx, autograd::variable_list dy) {
    needed = {ctx->needs_input_grad(0), ctx->needs_input_grad(1)};
    auto saved = ctx->get_saved_variables();
    return {dy[0] * saved[1], dy[0] * saved[0]};
  }
};
TEST(Function, needs_input_grad_is_that_of_the_running_pass) {
  Tensor a = param({1, 2}), b = param({3, 4});
  Tensor y = Asks::apply(a, b).sum();
  EXPECT_EQ(values(autograd::grad({y}, {a}, {}, true)[0]), (Doubles{3, 4}));
  EXPECT_EQ(Asks::needed, (std::vector<bool>{true, false}));
  EXPECT_EQ(values(autograd::grad({y}, {b}, {}, true)[0]), (Doubles{1, 2}));
  EXPECT_EQ(Asks::needed, (std::vector<bool>{false, true}));
  y.backward();
  EXPECT_EQ(Asks::needed, (std::vector<bool>{true, true}));
}

struct TakesList : autograd::Function<TakesList> {
  static Tensor forward(autograd::AutogradContext* ctx, TensorList tensors, double scale) {
    ctx->saved_data["scale"] = scale;
    return (tensors[0] + tensors[1]) * scale;
  }
  static autograd::variable_list backward(autograd::AutogradContext* ctx, autograd::variable_list dy) {
    Tensor g = dy[0] * ctx->saved_data["scale"].toDouble();
    return {g, g, Tensor()};
  }
};
TEST(Function, takes_a_list_of_tensors_that_it_does_not_own) {
  Tensor a = param({1, 2}), b = param({3, 4});
  std::vector<Tensor> list{a, b};
  TakesList::apply(TensorList(list), 3.0).sum().backward();
  EXPECT_EQ(values(a.grad()), (Doubles{3, 3}));
  EXPECT_EQ(values(b.grad()), (Doubles{3, 3}));
}

struct WritesMemory : autograd::Function<WritesMemory> {
  static Tensor forward(autograd::AutogradContext* ctx, Tensor x) {
    x.data_ptr<float>()[0] = 2;
    ctx->mark_dirty({x});
    return x;
  }
  static autograd::variable_list backward(autograd::AutogradContext*, autograd::variable_list dy) {
    return {dy[0] * 5};
  }
};
TEST(Function, mark_dirty_raises_the_version_so_that_stale_saved_tensors_are_found) {
  Tensor a = param({1, 2});
  Tensor x = a * 1, before = x * x;
  auto version = x._version();
  Tensor y = WritesMemory::apply(x);
  EXPECT_GT(x._version(), version);
  y.sum().backward();
  EXPECT_EQ(values(a.grad()), (Doubles{5, 5}));
  EXPECT_CONTAINS(error_of<ValueError>([&] { before.sum().backward(); }), "inplace operation");
}

struct GivesWrongShape : autograd::Function<GivesWrongShape> {
  static Tensor forward(autograd::AutogradContext*, Tensor x) { return x * 2; }
  static autograd::variable_list backward(autograd::AutogradContext*, autograd::variable_list) {
    return {ones({5}, kDouble)};
  }
};
TEST(Function, a_gradient_of_another_shape_is_summed_where_it_was_broadcast_and_an_error_otherwise) {
  Tensor wrong = param({1, 2, 3});
  std::string e = error_of<ValueError>([&] { GivesWrongShape::apply(wrong).sum().backward(); });
  EXPECT_CONTAINS(e, "GivesWrongShape");
  EXPECT_CONTAINS(e, "index 0");
  EXPECT_CONTAINS(e, "[5]");
  EXPECT_CONTAINS(e, "expected shape compatible with [3]");
  EXPECT_FALSE(wrong.grad().defined());
  Tensor one = param({1});
  GivesWrongShape::apply(one).sum().backward();
  EXPECT_EQ(values(one.grad()), (Doubles{5}));
}

// Each step of backward runs a pass of its own: a recursion that no stack would hold.
struct Descends : autograd::Function<Descends> {
  static Tensor forward(autograd::AutogradContext* ctx, Tensor x) {
    AutoGradMode on(true);
    Tensor below = x.detach().requires_grad_() - 1;
    ctx->saved_data["below"] = below;
    return below.detach();
  }
  static autograd::variable_list backward(autograd::AutogradContext* ctx, autograd::variable_list dy) {
    Tensor below = ctx->saved_data["below"].toTensor();
    if (below.item<double>() > 0) {
      AutoGradMode on(true);
      Descends::apply(below).sum().backward();
    } else if (below.item<double>() < 0) {
      throw ValueError("too deep");
    }
    return dy;
  }
};
TEST(Function, backward_passes_inside_of_each_other_may_be_thousands) {
  Tensor depth = param({5000});
  Descends::apply(depth).sum().backward();
  EXPECT_EQ(values(depth.grad()), (Doubles{1}));
  // An exception from the bottom reaches the caller through all of them.
  Tensor uneven = param({500.5});
  EXPECT_CONTAINS(error_of<ValueError>([&] { Descends::apply(uneven).sum().backward(); }), "too deep");
  (depth * 2).sum().backward();
  EXPECT_EQ(values(depth.grad()), (Doubles{3}));
}

}  // namespace
}  // namespace vesta
