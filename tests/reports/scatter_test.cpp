// Scattered sums with repeated, negative and overlapping places.
#include "reports/reports_testing.h"

namespace vesta::reports {
namespace {

// torch-spyre#3638: out = 0, index (0, 0, 1), src (1, 2, 4): 1 + 2 = 3 and 4.
TEST(Scatter, repeated_indices_add_up) {
  for (DType t : {kFloat32, kDouble, kHalf, kBFloat16, kInt64, kInt32}) {
    Tensor out = zeros({2}, t), index = i64({0, 0, 1}), src = f32({1, 2, 4}).to(t);
    EXPECT_EQ(values(index_add(out, 0, index, src)), (Doubles{3, 4})) << dtype_name(t);
    EXPECT_EQ(values(scatter_add(out, 0, index, src)), (Doubles{3, 4})) << dtype_name(t);
    EXPECT_EQ(values(index_put(out, {index}, src, true)), (Doubles{3, 4})) << dtype_name(t);
    EXPECT_EQ(values(scatter_reduce(out, 0, index, src, "sum")), (Doubles{3, 4})) << dtype_name(t);
  }
  // Many more repetitions than elements, so that threads would meet at one place.
  Tensor index = zeros({100000}, kLong), src = ones({100000});
  EXPECT_EQ(values(index_add(zeros({2}), 0, index, src)), (Doubles{100000, 0}));
  EXPECT_EQ(values(scatter_add(zeros({2}), 0, index, src)), (Doubles{100000, 0}));
}

// pt#131321: eager's rule is that negative indices are errors here, and nothing is written before they are found.
TEST(Scatter, a_negative_index_is_an_error_and_nothing_is_written) {
  Tensor index = i64({0, 1, -1}), src = ones({3});
  for (int64_t bad : {int64_t(-1), int64_t(2), std::numeric_limits<int64_t>::min()}) {
    Tensor out = zeros({2});
    index.data_ptr<int64_t>()[2] = bad;
    EXPECT_THROW(out.scatter_(0, index, src), Error);
    EXPECT_THROW(out.scatter_add_(0, index, src), Error);
    EXPECT_THROW(out.scatter_reduce_(0, index, src, "amax"), Error);
    EXPECT_TRUE(all_equal(out, 0)) << bad;
  }
}

// pt#3176: the source is the destination itself, shifted. The answer is that of a copy of the source, or an error.
TEST(Scatter, a_source_that_overlaps_the_destination_counts_as_it_was_before) {
  Tensor index = i64({1, 2, 3, 4});
  auto check = [&](const char* what, auto&& write) {
    Tensor memory = arange(5, TensorOptions(kFloat32)), want = memory.clone();
    write(want, memory.slice(0, 0, 4).clone());
    try {
      write(memory, memory.slice(0, 0, 4));
    } catch (const Error&) {
      return;  // refused
    }
    EXPECT_EQ(values(memory), values(want)) << what;
  };
  check("scatter_", [&](Tensor out, const Tensor& src) { out.scatter_(0, index, src); });
  check("scatter_add_", [&](Tensor out, const Tensor& src) { out.scatter_add_(0, index, src); });
  check("index_add_", [&](Tensor out, const Tensor& src) { out.index_add_(0, index, src); });
  check("index_copy_", [&](Tensor out, const Tensor& src) { out.index_copy_(0, index, src); });
  check("index_put_", [&](Tensor out, const Tensor& src) { out.index_put_({index}, src); });
  check("scatter_reduce_", [&](Tensor out, const Tensor& src) { out.scatter_reduce_(0, index, src, "sum"); });
}

}  // namespace
}  // namespace vesta::reports
