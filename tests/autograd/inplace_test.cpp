// In-place writes under autograd, views and their bases, version checks, gradient modes.
#include "autograd/autograd_testing.h"

namespace vesta {
namespace {

using namespace autograd_testing;

TEST(InPlace, on_a_leaf_that_requires_grad_is_an_error_outside_of_no_grad) {
  Tensor x = param({1, 2});
  std::string e = error_of<ValueError>([&] { x.add_(1); });
  EXPECT_CONTAINS(e, "add_");
  EXPECT_CONTAINS(e, "leaf");
  EXPECT_EQ(values(x), (Doubles{1, 2}));
  EXPECT_CONTAINS(error_of<ValueError>([&] { x.slice(0, 0, 1).mul_(2); }), "view of a leaf");
  EXPECT_CONTAINS(error_of<ValueError>([&] { x.zero_(); }), "leaf");
  NoGradGuard no_grad;
  x.add_(1);
  EXPECT_EQ(values(x), (Doubles{2, 3}));
  EXPECT_TRUE(x.is_leaf());
  EXPECT_TRUE(x.requires_grad());
}

TEST(InPlace, on_a_result_rewrites_its_history) {
  Tensor x = param({1, 2, 3});
  Tensor y = x * 2;
  y.mul_(3);
  EXPECT_EQ(y.grad_fn_name(), "MulBackward");
  y.add_(x);
  EXPECT_EQ(y.grad_fn_name(), "AddBackward");
  y.sum().backward();
  EXPECT_EQ(values(x.grad()), (Doubles{7, 7, 7}));
}

TEST(InPlace, a_plain_tensor_joins_the_graph_when_it_takes_a_tracked_value) {
  Tensor x = param({1, 2}), t = f32({10, 20});
  EXPECT_FALSE(t.requires_grad());
  t.mul_(x);
  EXPECT_TRUE(t.requires_grad());
  EXPECT_FALSE(t.is_leaf());
  t.sum().backward();
  EXPECT_EQ(values(x.grad()), (Doubles{10, 20}));
}

TEST(InPlace, on_one_of_several_views_of_one_call_is_an_error) {
  Tensor x = param({1, 2, 3, 4}), y = x * 1;
  auto parts = y.unbind(0);
  EXPECT_CONTAINS(error_of<ValueError>([&] { parts[0].mul_(2); }), "several views");
  auto chunks = y.chunk(2);
  EXPECT_CONTAINS(error_of<ValueError>([&] { chunks[1].add_(1); }), "several views");
  auto halves = y.split(2);
  EXPECT_THROW(halves[0].zero_(), ValueError);
  // Without gradients it is fine.
  Tensor t = f32({1, 2, 3, 4});
  t.unbind(0)[2].fill_(9);
  EXPECT_EQ(values(t), (Doubles{1, 2, 9, 4}));
}

TEST(InPlace, on_a_view_made_under_no_grad_is_an_error_with_grad_mode_on) {
  Tensor x = param({1, 2}), y = x * 1, v;
  {
    NoGradGuard no_grad;
    v = y.slice(0, 0, 1);
    v.mul_(2);  // here it is fine
  }
  EXPECT_EQ(values(y), (Doubles{2, 2}));
  EXPECT_CONTAINS(error_of<ValueError>([&] { v.mul_(2); }), "NoGradGuard");
  EXPECT_EQ(values(y), (Doubles{2, 2}));
}

TEST(CopySlices, a_write_through_a_view_changes_the_history_of_its_base) {
  Tensor x = param({1, 2, 3, 4}, {2, 2}), w = param({10, 20});
  Tensor y = x * 1;
  Tensor row = y.select(0, 1);
  row.mul_(w);
  EXPECT_EQ(y.grad_fn_name(), "CopySlices");
  EXPECT_EQ(values(y), (Doubles{1, 2, 30, 80}));
  y.sum().backward();
  EXPECT_EQ(values(x.grad()), (Doubles{1, 1, 10, 20}));
  EXPECT_EQ(values(w.grad()), (Doubles{3, 4}));
}

TEST(CopySlices, chains_of_overlapping_writes_have_the_gradients_of_the_functional_form) {
  Tensor x = f64({1, 2, 3, 4, 5, 6}, {2, 3}).requires_grad_(), w = f64({0.5, -2}).requires_grad_();
  EXPECT_TRUE(autograd::gradcheck(
      [](const autograd::variable_list& in) {
        Tensor y = in[0] * 1.5;
        Tensor column = y.select(1, 1);
        column.mul_(in[1]);
        y.slice(1, 1, 3).select(0, 0).add_(in[1]);
        y.transpose(0, 1).select(0, 2).copy_(in[1] * in[1]);
        column.exp_();
        return autograd::variable_list{y * y, column * in[1]};
      },
      {x, w}));
}

TEST(CopySlices, a_view_of_a_view_writes_through_to_the_first_base) {
  Tensor x = param({1, 2, 3, 4, 5, 6, 7, 8}, {2, 2, 2}), y = x * 1;
  Tensor v = y.select(0, 1).select(1, 0);
  v.mul_(5);
  EXPECT_TRUE(v._base().is_same(y));
  y.sum().backward();
  EXPECT_EQ(values(x.grad()), (Doubles{1, 1, 1, 1, 5, 1, 5, 1}));
}

TEST(CopySlices, other_views_see_the_new_history) {
  Tensor x = param({1, 2, 3}), y = x * 1;
  Tensor before = y.slice(0, 0, 2), whole = y.view({3});
  whole.mul_(4);
  before.sum().backward();
  EXPECT_EQ(values(x.grad()), (Doubles{4, 4, 0}));
}

TEST(CopySlices, filling_a_view_stops_its_gradient) {
  Tensor x = param({1, 2, 3}), y = x * 1;
  y.slice(0, 1, 3).zero_();
  y.sum().backward();
  EXPECT_EQ(values(x.grad()), (Doubles{1, 0, 0}));
}

TEST(Views, made_before_their_base_requires_grad_follow_it) {
  Tensor w = param({2, 3}), base = f32({1, 1, 1, 1}, {2, 2});
  Tensor row = base.select(0, 0);
  EXPECT_FALSE(row.requires_grad());
  base.mul_(w);
  EXPECT_TRUE(row.requires_grad());
  row.sum().backward();
  EXPECT_EQ(values(w.grad()), (Doubles{1, 1}));
  EXPECT_EQ(values(row), (Doubles{2, 3}));
}

TEST(Views, a_plain_base_written_through_a_view_joins_the_graph) {
  Tensor w = param({2, 3}), base = f32({1, 1, 1, 1}, {2, 2});
  base.select(0, 1).copy_(w);
  EXPECT_TRUE(base.requires_grad());
  (base * base).sum().backward();
  EXPECT_EQ(values(w.grad()), (Doubles{4, 6}));
}

TEST(VersionCheck, names_the_reader_and_the_writer) {
  Tensor x = param({1, 2}), y = x * 1;
  Tensor z = y * y;  // saves y
  y.add_(1);
  std::string e = error_of<ValueError>([&] { z.sum().backward(); });
  EXPECT_CONTAINS(e, "MulBackward");
  EXPECT_CONTAINS(e, "add_");
  EXPECT_CONTAINS(e, "version 1");
  EXPECT_CONTAINS(e, "expected version 0");
  EXPECT_FALSE(x.grad().defined());
}

TEST(VersionCheck, sees_writes_through_views_and_detached_aliases_but_not_through_data) {
  auto fails_after = [](auto write) {
    Tensor x = param({1, 2}), y = x * 1;
    Tensor z = y.exp() * y;
    write(y);
    try {
      z.sum().backward();
    } catch (const ValueError&) {
      return true;
    }
    return false;
  };
  EXPECT_TRUE(fails_after([](Tensor& y) { y.slice(0, 0, 1).zero_(); }));
  EXPECT_TRUE(fails_after([](Tensor& y) { y.detach().zero_(); }));
  EXPECT_FALSE(fails_after([](Tensor& y) { y.data().zero_(); }));
  EXPECT_FALSE(fails_after([](Tensor&) {}));
}

TEST(VersionCheck, a_saved_leaf_written_under_no_grad_is_noticed) {
  Tensor x = param({1, 2});
  Tensor z = x * x;
  {
    NoGradGuard no_grad;
    x.sub_(1);
  }
  EXPECT_CONTAINS(error_of<ValueError>([&] { z.sum().backward(); }), "sub_");
}

TEST(VersionCheck, a_saved_plain_tensor_written_in_place_is_noticed) {
  Tensor w = param({1, 2}), t = f32({3, 4});
  Tensor z = w * t;
  t.mul_(2);
  EXPECT_CONTAINS(error_of<ValueError>([&] { z.sum().backward(); }), "mul_");
}

TEST(VersionCheck, a_tensor_that_no_gradient_needs_may_be_written) {
  Tensor x = param({1, 2}), t = f32({3, 4});
  Tensor z = x + t;
  t.zero_();
  z.sum().backward();
  EXPECT_EQ(values(x.grad()), (Doubles{1, 1}));
}

TEST(Versions, are_shared_by_views_and_detach_but_not_by_data) {
  Tensor x = f32({1, 2}), view = x.view({2, 1}), detached = x.detach(), data = x.data();
  x.add_(1);
  EXPECT_EQ(x._version(), 1u);
  EXPECT_EQ(view._version(), 1u);
  EXPECT_EQ(detached._version(), 1u);
  EXPECT_EQ(data._version(), 0u);
  data.add_(1);
  EXPECT_EQ(x._version(), 1u);
  EXPECT_EQ(values(x), (Doubles{3, 4}));
}

TEST(GradModes, no_grad_records_nothing_and_nests) {
  Tensor x = param({1, 2});
  {
    NoGradGuard no_grad;
    EXPECT_FALSE((x * 2).requires_grad());
    {
      AutoGradMode on(true);
      EXPECT_TRUE((x * 2).requires_grad());
    }
    EXPECT_FALSE(GradMode::is_enabled());
  }
  EXPECT_TRUE((x * 2).requires_grad());
}

TEST(GradModes, detach_ends_the_graph) {
  Tensor x = param({1, 2});
  Tensor d = (x * 2).detach();
  EXPECT_FALSE(d.requires_grad());
  EXPECT_TRUE(d.is_leaf());
  EXPECT_CONTAINS(error_of<ValueError>([&] { (x * 2).requires_grad_(false); }), "leaf");
  EXPECT_CONTAINS(error_of<ValueError>([&] { zeros({1}, kLong).requires_grad_(); }), "int64");
}

TEST(InferenceModes, tensors_made_inside_stay_out_of_autograd) {
  Tensor x = param({1, 2}), i;
  {
    InferenceMode mode;
    EXPECT_TRUE(InferenceMode::is_enabled());
    EXPECT_FALSE(GradMode::is_enabled());
    i = x * 2;
    EXPECT_TRUE(i.is_inference());
    i.add_(1);  // free of counters
    InferenceMode off(false);
    EXPECT_FALSE((f32({1}) * 2).is_inference());
  }
  EXPECT_FALSE(InferenceMode::is_enabled());
  EXPECT_TRUE(GradMode::is_enabled());
  EXPECT_CONTAINS(error_of<ValueError>([&] { i._version(); }), "inference");
  EXPECT_CONTAINS(error_of<ValueError>([&] { x* i; }), "cannot be saved for backward");
  EXPECT_CONTAINS(error_of<ValueError>([&] { i.requires_grad_(); }), "inference");
  EXPECT_NO_THROW(x + i);  // nothing is saved
  Tensor normal = i.clone();
  EXPECT_FALSE(normal.is_inference());
  (x * normal).sum().backward();
  EXPECT_EQ(values(x.grad()), (Doubles{3, 5}));
}

TEST(InferenceModes, in_place_writes_of_inference_tensors_outside_are_errors) {
  Tensor i;
  {
    InferenceMode mode;
    i = f32({1, 2}) * 2;
  }
  Tensor w = param({1, 2});
  EXPECT_THROW(i.mul_(w), ValueError);
  EXPECT_EQ(values(i), (Doubles{2, 4}));
}

// ---- index writes ----

TEST(IndexWrites, carry_gradients_of_every_kind) {
  Tensor x = f64({1, 2, 3, 4, 5, 6}, {2, 3}).requires_grad_(), v = f64({7, 8}).requires_grad_();
  EXPECT_TRUE(autograd::gradcheck(
      [](const autograd::variable_list& in) {
        Tensor y = in[0] * 2;
        y.select(1, 0).copy_(in[1]);
        Tensor idx = arange(2, kLong);
        y.index_put_(TensorList(std::vector<Tensor>{idx, idx}), in[1] * in[1]);
        return autograd::variable_list{y.sin()};
      },
      {x, v}));
}

// Hooks belong to the value on which they were registered, a retained gradient to the tensor.
TEST(Inplace, hooks_stay_with_the_value_that_was_overwritten_and_a_retained_gradient_moves_on) {
  Tensor x = param({1, 1}), a = x * 1;
  std::vector<Doubles> old_values, new_values;
  a.register_hook([&](const Tensor& g) { return old_values.push_back(values(g)), Tensor(); });
  a.retain_grad();
  a.mul_(2);
  a.mul_(2);
  a.register_hook([&](const Tensor& g) { return new_values.push_back(values(g)), Tensor(); });
  (a + 1).sum().backward();
  EXPECT_EQ(old_values, (std::vector<Doubles>{{4, 4}}));
  EXPECT_EQ(new_values, (std::vector<Doubles>{{1, 1}}));
  EXPECT_TRUE(a.retains_grad());
  EXPECT_EQ(values(a.grad()), (Doubles{1, 1}));
  EXPECT_EQ(values(x.grad()), (Doubles{4, 4}));
}

}  // namespace
}  // namespace vesta
