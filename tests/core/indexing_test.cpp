// Indexing with TensorIndex lists: each kind alone and together, as Python's results; writes; errors.
#include "vesta/indexing.h"

#include "core/core_testing.h"
#include "vesta/autograd.h"

namespace vesta {
namespace {

using namespace core_testing;
using namespace indexing;

Tensor cube() { return arange(24, kFloat).view({2, 3, 4}); }

TEST(Indexing, integers_select) {
  Tensor t = cube();
  EXPECT_EQ(values(t.index({1, 2, 3})), (Doubles{23}));
  EXPECT_EQ(sizes(t.index({1})), (Sizes{3, 4}));
  EXPECT_EQ(values(t.index({-1, -3})), (Doubles{12, 13, 14, 15}));
  EXPECT_TRUE(t.index({1})._is_view());
  EXPECT_CONTAINS(error_of<IndexError>([&] { t.index({2}); }), "2");
  EXPECT_THROW(t.index({0, -4}), IndexError);
  EXPECT_CONTAINS(error_of<IndexError>([&] {
                    t.index({0, 0, 0, 0});
                  }),
                  "too many indices: 4 for a tensor with 3 dims");
}

TEST(Indexing, an_empty_list_of_indices_is_an_error) { EXPECT_THROW(zeros({2, 3}).index({}), ValueError); }

TEST(Indexing, slices_are_views_with_pythons_clamping) {
  Tensor t = arange(10, kFloat);
  EXPECT_EQ(values(t.index({Slice(2, 5)})), (Doubles{2, 3, 4}));
  EXPECT_EQ(values(t.index({Slice(None, None, 3)})), (Doubles{0, 3, 6, 9}));
  EXPECT_EQ(values(t.index({Slice(-3, None)})), (Doubles{7, 8, 9}));
  EXPECT_EQ(values(t.index({Slice(None, -7)})), (Doubles{0, 1, 2}));
  EXPECT_EQ(values(t.index({Slice(-100, 100, 4)})), (Doubles{0, 4, 8}));
  EXPECT_EQ(sizes(t.index({Slice(5, 2)})), (Sizes{0}));
  EXPECT_EQ(t.index({Slice(2, 9, 2)}).stride(0), 2);
  EXPECT_EQ(t.index({Slice(2, 9, 2)}).storage_offset(), 2);
  EXPECT_THROW(t.index({Slice(None, None, -1)}), Error);
  EXPECT_THROW(t.index({Slice(None, None, 0)}), Error);
  Tensor whole = t.index({Slice()});
  EXPECT_FALSE(whole.is_same(t));
  EXPECT_EQ(whole.data_ptr(), t.data_ptr());
}

TEST(Indexing, none_and_ellipsis) {
  Tensor t = cube();
  EXPECT_EQ(sizes(t.index({None})), (Sizes{1, 2, 3, 4}));
  EXPECT_EQ(sizes(t.index({"...", None})), (Sizes{2, 3, 4, 1}));
  EXPECT_EQ(sizes(t.index({Slice(), None, 0})), (Sizes{2, 1, 4}));
  EXPECT_EQ(values(t.index({Ellipsis, 0})), (Doubles{0, 4, 8, 12, 16, 20}));
  EXPECT_EQ(values(t.index({0, "...", 1})), (Doubles{1, 5, 9}));
  EXPECT_EQ(sizes(t.index({0, 0, "...", 0})), (Sizes{}));
  EXPECT_EQ(sizes(t.index({"..."})), (Sizes{2, 3, 4}));
  EXPECT_THROW(t.index({"...", 0, "..."}), IndexError);
  EXPECT_THROW(t.index({"x"}), ValueError);
  EXPECT_EQ(values(full({}, 5).index({"..."})), (Doubles{5}));
  EXPECT_EQ(sizes(full({}, 5).index({None, None})), (Sizes{1, 1}));
}

TEST(Indexing, index_tensors_broadcast_and_stay_in_place_where_adjacent) {
  Tensor t = cube();
  EXPECT_EQ(values(t.index({i64({1, 0, 1}), i64({2, 0, -1}), i64({3, 0, 0})})), (Doubles{23, 0, 20}));
  EXPECT_EQ(sizes(t.index({Slice(), i64({0, 2})})), (Sizes{2, 2, 4}));
  EXPECT_EQ(sizes(t.index({i64({0, 1}).view({2, 1}), i64({0, 1, 2})})), (Sizes{2, 3, 4}));
  // Adjacent: in place. Separated by a slice: in front.
  EXPECT_EQ(sizes(t.index({Slice(), i64({0, 1, 2, 0, 1}), i64({0, 1, 2, 3, 3})})), (Sizes{2, 5}));
  EXPECT_EQ(sizes(t.index({i64({0, 1, 0, 1, 1}), Slice(), i64({0, 1, 2, 3, 3})})), (Sizes{5, 3}));
  EXPECT_EQ(values(t.index({i64({0, 1}), Slice(1, 2), i64({0, 3})})), (Doubles{4, 19}));
  EXPECT_EQ(sizes(t.index({"...", i64({0, 2})})), (Sizes{2, 3, 2}));
  EXPECT_EQ(sizes(t.index({None, i64({0, 1})})), (Sizes{1, 2, 3, 4}));
  EXPECT_EQ(sizes(t.index({zeros({0}, kLong)})), (Sizes{0, 3, 4}));
  EXPECT_EQ(values(t.index({0, zeros({2}, kInt), 1})), (Doubles{1, 1}));
  EXPECT_CONTAINS(error_of<IndexError>([&] { t.index({i64({0, 2})}); }), "index 2 is out of range");
  EXPECT_THROW(t.index({i64({0, 1}), i64({0, 1, 2})}), IndexError);
  EXPECT_THROW(t.index({f32({0, 1})}), IndexError);
  EXPECT_THROW(t.index({Tensor()}), IndexError);
}

TEST(Indexing, an_integer_before_an_index_tensor_selects_first) {
  // As in libtorch, where integers become selects: [0, :, idx] keeps the order of the remaining dims.
  Tensor t = cube();
  EXPECT_EQ(sizes(t.index({0, Slice(), i64({0, 1})})), (Sizes{3, 2}));
}

TEST(Indexing, zero_dim_index_tensors_act_as_integers) {
  Tensor t = cube();
  Tensor one = full({}, 1, TensorOptions(kLong));
  EXPECT_EQ(sizes(t.index({one})), (Sizes{3, 4}));
  EXPECT_EQ(values(t.index({one, 0, one})), (Doubles{13}));
  EXPECT_EQ(sizes(t[one]), (Sizes{3, 4}));
  EXPECT_THROW(t.index({full({}, 2, TensorOptions(kLong))}), IndexError);
}

TEST(Indexing, masks_select_and_must_match_the_shape) {
  Tensor t = cube();
  EXPECT_EQ(sizes(t.index({mask({1, 0}, {2})})), (Sizes{1, 3, 4}));
  EXPECT_EQ(values(t.index({mask({1, 0, 0, 0, 0, 1}, {2, 3})})), (Doubles{0, 1, 2, 3, 20, 21, 22, 23}));
  EXPECT_EQ(values(t.index({0, mask({0, 1, 0}, {3}), Slice(1, 3)})), (Doubles{5, 6}));
  EXPECT_EQ(values(t.index({t.gt(20)})), (Doubles{21, 22, 23}));
  EXPECT_EQ(sizes(t.index({t.gt(100)})), (Sizes{0}));
  // A mask of two dims, then a slice and an index tensor.
  EXPECT_EQ(values(t.index({mask({1, 0, 0, 0, 0, 1}, {2, 3}), i64({1, 2})})), (Doubles{1, 22}));
  EXPECT_EQ(sizes(t.index({Slice(), mask({1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1}, {3, 4})})), (Sizes{2, 3}));
  EXPECT_THROW(t.index({mask({1, 0, 1}, {3})}), IndexError);
  EXPECT_THROW(t.index({0, 0, mask({1, 0, 0, 0}, {2, 2})}), IndexError);
}

TEST(Indexing, bools_add_a_dim_of_one_or_none) {
  Tensor t = cube();
  EXPECT_EQ(sizes(t.index({true})), (Sizes{1, 2, 3, 4}));
  EXPECT_EQ(sizes(t.index({false})), (Sizes{0, 2, 3, 4}));
  EXPECT_EQ(values(full({}, 5).index({true})), (Doubles{5}));
  EXPECT_EQ(sizes(full({}, 5).index({full({}, 5).gt(6)})), (Sizes{0}));
}

TEST(Indexing, operator_brackets_chain_and_refuse_zero_dims) {
  Tensor t = cube();
  EXPECT_EQ(t[1][2][3].item<float>(), 23);
  EXPECT_EQ(t[-1][0][0].item<float>(), 12);
  EXPECT_THROW(t[2], IndexError);
  EXPECT_THROW(full({}, 1)[0], IndexError);
  EXPECT_EQ(values(arange(5, kFloat)[i64({3, 1})]), (Doubles{3, 1}));
}

TEST(IndexPut, writes_numbers_and_tensors_through_views) {
  Tensor t = zeros({2, 3});
  t.index_put_({0, Slice(1, 3)}, 5);
  t.index_put_({"...", 0}, f32({7, 8}));
  EXPECT_EQ(values(t), (Doubles{7, 5, 5, 8, 0, 0}));
  t.index_put_({1}, make<double>({1, 2, 3}, {1, 1, 3}));  // leading ones go, the dtype is converted
  EXPECT_EQ(values(t), (Doubles{7, 5, 5, 1, 2, 3}));
  t.index_put_({Slice()}, 0);
  EXPECT_EQ(values(t.sum()), (Doubles{0}));
  EXPECT_THROW(t.index_put_({1}, f32({1, 2})), Error);
  EXPECT_THROW(t.index_put_({1}, Tensor()), ValueError);
}

TEST(IndexPut, writes_by_index_tensors_and_masks) {
  Tensor t = zeros({2, 3});
  t.index_put_({i64({0, 1}), i64({2, 0})}, f32({4, 9}));
  EXPECT_EQ(values(t), (Doubles{0, 0, 4, 9, 0, 0}));
  t.index_put_({t.eq(0)}, -1);
  EXPECT_EQ(values(t), (Doubles{-1, -1, 4, 9, -1, -1}));
  t.index_put_({Slice(), i64({1})}, f32({6, 7}).view({2, 1}));
  EXPECT_EQ(values(t), (Doubles{-1, 6, 4, 9, 7, -1}));
  t.index_put_({1, i64({0, 1})}, 0);
  EXPECT_EQ(values(t), (Doubles{-1, 6, 4, 0, 0, -1}));
  t.index_put_({false}, 100);
  EXPECT_EQ(values(t), (Doubles{-1, 6, 4, 0, 0, -1}));
  t.index_put_({true}, 3);
  EXPECT_EQ(values(t), (Doubles{3, 3, 3, 3, 3, 3}));
  EXPECT_CONTAINS(error_of<IndexError>([&] { t.index_put_({i64({5})}, 1); }), "5");
}

TEST(IndexPut, assignment_to_an_indexed_expression_writes) {
  Tensor t = zeros({2, 3});
  t[0] = 4;
  t[1] = f32({1, 2, 3});
  t[1][2] = 9;
  t.index({0, 1}) = 8;
  EXPECT_EQ(values(t), (Doubles{4, 8, 4, 1, 2, 9}));
}

TEST(Indexing, carries_gradients) {
  Tensor x = arange(6, kFloat).view({2, 3}).requires_grad_();
  x.index({1, i64({0, 0, 2})}).sum().backward();
  EXPECT_EQ(values(x.grad()), (Doubles{0, 0, 0, 2, 0, 1}));
  x.mutable_grad().reset();
  x.index({x.gt(3)}).sum().backward();
  EXPECT_EQ(values(x.grad()), (Doubles{0, 0, 0, 0, 1, 1}));
  x.mutable_grad().reset();
  Tensor y = x * 2, v = f32({5, 6}).requires_grad_();
  y.index_put_({Slice(), 1}, v);
  y.index_put_({0, i64({2})}, 0);
  y.sum().backward();
  EXPECT_EQ(values(x.grad()), (Doubles{2, 0, 0, 2, 0, 2}));
  EXPECT_EQ(values(v.grad()), (Doubles{1, 1}));
}

TEST(Indexing, lists_are_made_at_run_time_and_can_be_read_and_printed) {
  std::vector<TensorIndex> list = {None, "...", 2, true, Slice(1, None, 2), i64({0, 1})};
  EXPECT_TRUE(list[0].is_none() && list[1].is_ellipsis() && list[2].is_integer() && list[3].is_boolean());
  EXPECT_EQ(list[2].integer(), 2);
  EXPECT_TRUE(list[3].boolean());
  ASSERT_TRUE(list[4].is_slice());
  EXPECT_EQ(list[4].slice().stop(), INDEX_MAX);
  EXPECT_EQ(Slice(None, None, -1).start(), INDEX_MAX);
  EXPECT_EQ(Slice(None, None, -1).stop(), INDEX_MIN);
  EXPECT_TRUE(list[5].is_tensor() && list[5].tensor().numel() == 2);
  list.pop_back();
  std::ostringstream text;
  text << list;
  EXPECT_EQ(text.str(), "(None, ..., 2, true, 1:" + std::to_string(INDEX_MAX) + ":2)");

  Tensor t = zeros({2, 3});
  std::vector<TensorIndex> where = {1, Slice(0, 2)};
  put(t, where, f32({5, 6}));
  where[0] = 0;
  put(t, where, 7);
  EXPECT_EQ(values(t), (Doubles{7, 7, 0, 5, 6, 0}));
}

}  // namespace
}  // namespace vesta
