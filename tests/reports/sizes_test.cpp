// Arguments whose sizes do not fit each other are refused before memory is touched; scalars read from empty tensors too.
#include "reports/reports_testing.h"

namespace vesta::reports {
namespace {

// pt#194801 (in umbrella pt#195547): a smaller `output` was read past its end.
TEST(Sizes, masked_softmax_backward_refuses_a_smaller_output) {
  Tensor mask = zeros({2, 4}, kBool);
  EXPECT_THROW(_masked_softmax_backward(ones({2, 4}), ones({2, 2}), mask, 1), Error);
  EXPECT_THROW(_masked_softmax_backward(ones({2, 4}), ones({1, 4}), mask, 1), Error);
  EXPECT_THROW(_masked_softmax_backward(ones({2, 4}), ones({0}), mask, 1), Error);
}

// pt#194798: running statistics shorter than the channels. batch_norm has to look at every per-channel argument.
TEST(Sizes, batch_norm_refuses_statistics_of_another_length) {
  Tensor x = ones({2, 4, 3}), four = ones({4}), three = ones({3});
  auto call = [&](const Tensor& w, const Tensor& b, const Tensor& m, const Tensor& v, bool training) {
    return batch_norm(x, w, b, m, v, training, 0.1, 1e-5, true);
  };
  for (bool training : {true, false}) {
    EXPECT_NO_THROW(call(four, four, four, four, training));
    EXPECT_THROW(call(three, four, four, four, training), Error);
    EXPECT_THROW(call(four, three, four, four, training), Error);
    EXPECT_THROW(call(four, four, three, four, training), Error);
    EXPECT_THROW(call(four, four, four, three, training), Error);
  }
  EXPECT_THROW(call(four, four, Tensor(), Tensor(), false), Error);  // nothing to normalise by
}

// pt#175368: an offset beyond the indices made a bag of memory behind them.
TEST(Sizes, embedding_bag_refuses_offsets_beyond_the_indices) {
  Tensor weight = ones({5, 3});
  Tensor indices = i64({0, 4, 1});
  EXPECT_THROW(embedding_bag(weight, indices, i64({0, 4})), Error);
  EXPECT_THROW(embedding_bag(weight, indices, i64({0, -1})), Error);
  EXPECT_THROW(embedding_bag(weight, indices, i64({0, 2, 1})), Error);
  EXPECT_THROW(embedding_bag(weight, i64({0, 5, 1}), i64({0, 1})), Error);
  EXPECT_NO_THROW(embedding_bag(weight, indices, i64({0, 3})));  // the last bag is empty
}

// pt#145063, pt#145066, pt#145072: reading a number from a tensor without elements crashed.
TEST(Sizes, a_number_read_from_an_empty_tensor_is_an_error) {
  Tensor none = zeros({0});
  EXPECT_THROW(none.item(), Error);
  EXPECT_THROW(none.item<int64_t>(), Error);
  EXPECT_THROW(zeros({3, 0}).item(), Error);
  EXPECT_THROW(is_nonzero(none), Error);
  EXPECT_THROW(masked_fill(ones({2}), ones({2}, kBool), none), Error);
  EXPECT_THROW(index_fill(ones({2}), 0, i64({0}), none), Error);
  EXPECT_THROW(tensor_split(ones({4}), zeros({3, 0}, kLong)), Error);
}

// pt#145064: pdist crashed for 3-d input and for rows of length 0. The distance of two empty rows is an empty sum: 0,
// once for each of the n (n - 1) / 2 pairs.
TEST(Sizes, pdist_takes_matrices_only_and_rows_of_length_zero) {
  EXPECT_THROW(pdist(ones({2, 3, 4})), Error);
  EXPECT_THROW(pdist(ones({3})), Error);
  for (int64_t n : {0, 1, 2, 5}) {
    Tensor d = pdist(zeros({n, 0}));
    EXPECT_EQ(d.sizes().vec(), Sizes{n * (n - 1) / 2});
    EXPECT_TRUE(all_equal(d, 0));
  }
}

}  // namespace
}  // namespace vesta::reports
