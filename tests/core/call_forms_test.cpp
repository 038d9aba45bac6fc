// The forms in which programs written for libtorch call operators: each must compile, pick the overload that is meant
// (a dim, not a bool; a number, not options) and give its values.
#include <cmath>
#include <type_traits>

#include "core/core_testing.h"

namespace vesta {
namespace {

using namespace core_testing;

// {{1, 2, 4}, {3, 6, 2}}
Tensor matrix() { return make<double>({1, 2, 4, 3, 6, 2}, {2, 3}); }
#define EXPECT_VALUES(tensor, ...) EXPECT_EQ(values(tensor), (Doubles{__VA_ARGS__}))
#define EXPECT_NEAR_VALUES(tensor, ...) test::expect_close(tensor, Doubles{__VA_ARGS__}, 1e-12)

TEST(CallForms, factories_take_sizes_numbers_and_options) {
  EXPECT_VALUES(arange(4), 0, 1, 2, 3);
  EXPECT_EQ(arange(4).dtype(), kLong);
  EXPECT_VALUES(arange(0, 5), 0, 1, 2, 3, 4);
  EXPECT_VALUES(arange(1, 4, 1), 1, 2, 3);
  EXPECT_VALUES(arange(0, 10, 4), 0, 4, 8);
  EXPECT_VALUES(arange(0.0, 1.0, 0.25), 0, 0.25, 0.5, 0.75);
  EXPECT_EQ(arange(0, 5, kFloat).dtype(), kFloat);
  EXPECT_EQ(arange(0, 5, 2, dtype(kDouble)).dtype(), kDouble);
  EXPECT_EQ(arange(5, TensorOptions().dtype(kInt)).dtype(), kInt);
  EXPECT_EQ(arange(2.5).dtype(), kFloat);
  EXPECT_VALUES(range(0, 3), 0, 1, 2, 3);
  EXPECT_VALUES(range(0, 4, 2), 0, 2, 4);
  EXPECT_VALUES(full({2}, 3), 3, 3);
  EXPECT_EQ(full({2}, 3).dtype(), kLong);
  EXPECT_EQ(full({2}, 1.5).dtype(), kFloat);
  EXPECT_EQ(full({2}, true).dtype(), kBool);
  EXPECT_EQ(full({2}, 1, kDouble).dtype(), kDouble);
  EXPECT_EQ(full({}, 7).dim(), 0);
  EXPECT_VALUES(full_like(matrix(), 2).sum(), 12);
  EXPECT_EQ(sizes(ones({2, 3})), (Sizes{2, 3}));
  EXPECT_EQ(sizes(ones(3)), (Sizes{3}));
  EXPECT_EQ(sizes(zeros(std::vector<int64_t>{2, 2})), (Sizes{2, 2}));
  EXPECT_EQ(zeros({2}, kLong).dtype(), kLong);
  EXPECT_EQ(sizes(zeros_like(matrix())), (Sizes{2, 3}));
  EXPECT_EQ(sizes(empty({0, 3}, TensorOptions().dtype(kInt))), (Sizes{0, 3}));
  EXPECT_VALUES(eye(2), 1, 0, 0, 1);
  EXPECT_VALUES(eye(2, 3), 1, 0, 0, 0, 1, 0);
  EXPECT_NEAR_VALUES(linspace(0, 1, 3), 0, 0.5, 1);
  EXPECT_NEAR_VALUES(logspace(0, 2, 3, 10, kDouble), 1, 10, 100);
  EXPECT_EQ(sizes(randn({2, 3})), (Sizes{2, 3}));
  EXPECT_EQ(sizes(rand({4})), (Sizes{4}));
  EXPECT_EQ(sizes(randint(10, {3})), (Sizes{3}));
  EXPECT_VALUES(randint(5, 6, {3}), 5, 5, 5);
  EXPECT_VALUES(randperm(1), 0);
  EXPECT_EQ(sizes(normal(0, 1, {3})), (Sizes{3}));
  EXPECT_EQ(sizes(normal(0.0, 1.0, {2, 2})), (Sizes{2, 2}));
  EXPECT_VALUES(normal(matrix(), 0), 1, 2, 4, 3, 6, 2);
  EXPECT_VALUES(normal(matrix(), zeros({2, 3}, kDouble)), 1, 2, 4, 3, 6, 2);
  EXPECT_EQ(sizes(normal(0.0, ones({4}))), (Sizes{4}));
}

TEST(CallForms, an_integer_is_a_dim_and_a_bool_is_unbiased) {
  Tensor x = matrix();
  // Mean 3, squared distances 4 1 1 0 9 1: 16 / 5 and 16 / 6.
  EXPECT_NEAR_VALUES(x.var(), 3.2);
  EXPECT_NEAR_VALUES(x.var(true), 3.2);
  EXPECT_NEAR_VALUES(x.var(false), 16.0 / 6);
  EXPECT_NEAR_VALUES(x.var(0), 2, 8, 2);
  EXPECT_NEAR_VALUES(var(x, 0), 2, 8, 2);
  EXPECT_NEAR_VALUES(x.var(1), 7.0 / 3, 13.0 / 3);
  EXPECT_NEAR_VALUES(x.var(-1), 7.0 / 3, 13.0 / 3);
  const int64_t dim = 0;
  const int short_dim = 0;
  EXPECT_NEAR_VALUES(x.var(dim), 2, 8, 2);
  EXPECT_NEAR_VALUES(x.var(short_dim), 2, 8, 2);
  EXPECT_NEAR_VALUES(x.var({0, 1}), 3.2);
  EXPECT_NEAR_VALUES(x.var(0, false), 1, 4, 1);
  EXPECT_NEAR_VALUES(x.var({0}, true), 2, 8, 2);
  EXPECT_EQ(sizes(x.var(0, true, true)), (Sizes{1, 3}));
  EXPECT_EQ(sizes(x.var(0, /*correction=*/1, /*keepdim=*/true)), (Sizes{1, 3}));
  EXPECT_NEAR_VALUES(x.var(0, 0), 1, 4, 1);
  EXPECT_NEAR_VALUES(var(x, std::nullopt, /*correction=*/2), 4);
  EXPECT_NEAR_VALUES(x.std(0), std::sqrt(2), std::sqrt(8), std::sqrt(2));
  EXPECT_NEAR_VALUES(x.std(false), std::sqrt(16.0 / 6));
  EXPECT_NEAR_VALUES(vesta::std(x, 1, false), std::sqrt(14.0 / 9), std::sqrt(26.0 / 9));
  auto [deviation, mean] = std_mean(x, 0);
  EXPECT_NEAR_VALUES(deviation, std::sqrt(2), std::sqrt(8), std::sqrt(2));
  EXPECT_VALUES(mean, 2, 4, 3);
  EXPECT_NEAR_VALUES(std::get<0>(var_mean(x, 1)), 7.0 / 3, 13.0 / 3);
  EXPECT_NEAR_VALUES(std::get<0>(var_mean(x, false)), 16.0 / 6);
  EXPECT_NEAR_VALUES(std::get<0>(var_mean(x, {0}, true, true)), 2, 8, 2);
  EXPECT_EQ(sizes(nuclear_norm(x, true)), (Sizes{1, 1}));
  EXPECT_EQ(nuclear_norm(x).dim(), 0);
  // A pointer is no bool.
  static_assert(
      !std::is_invocable_v<decltype([](auto v) -> decltype(std::declval<Tensor>().var(v)) { return {}; }),
                           const void*>);
}

TEST(CallForms, reductions_take_dims_keepdim_and_dtype) {
  Tensor x = matrix();
  EXPECT_VALUES(x.sum(), 18);
  EXPECT_VALUES(x.sum(0), 4, 8, 6);
  EXPECT_VALUES(sum(x, -1), 7, 11);
  EXPECT_EQ(sizes(x.sum(0, true)), (Sizes{1, 3}));
  EXPECT_VALUES(x.sum({0, 1}), 18);
  EXPECT_EQ(x.sum(kFloat).dtype(), kFloat);
  EXPECT_EQ(x.sum(1, true, kFloat).dtype(), kFloat);
  EXPECT_VALUES(x.mean(), 3);
  EXPECT_VALUES(x.mean(0), 2, 4, 3);
  EXPECT_EQ(sizes(x.mean({0}, true)), (Sizes{1, 3}));
  EXPECT_VALUES(x.prod(0), 3, 12, 8);
  EXPECT_VALUES(x.max(), 6);
  EXPECT_VALUES(std::get<0>(x.max(0)), 3, 6, 4);
  EXPECT_VALUES(std::get<1>(x.max(1)), 2, 1);
  EXPECT_EQ(sizes(std::get<0>(x.min(1, true))), (Sizes{2, 1}));
  EXPECT_VALUES(max(x, matrix()), 1, 2, 4, 3, 6, 2);
  EXPECT_VALUES(x.argmax(), 4);
  EXPECT_VALUES(x.argmax(1), 2, 1);
  EXPECT_EQ(sizes(x.argmax(1, true)), (Sizes{2, 1}));
  EXPECT_VALUES(x.amax(0), 3, 6, 4);
  EXPECT_VALUES(x.amax({0, 1}), 6);
  EXPECT_VALUES((x > 2).any(), 1);
  EXPECT_VALUES((x > 2).any(0), 1, 1, 1);
  EXPECT_EQ(sizes((x > 2).all(1, true)), (Sizes{2, 1}));
  EXPECT_NEAR_VALUES(x.norm(), std::sqrt(70));
  EXPECT_NEAR_VALUES(x.norm(1), 18);
  EXPECT_NEAR_VALUES(x.norm(2, 0), std::sqrt(10), std::sqrt(40), std::sqrt(20));
  EXPECT_EQ(sizes(x.norm(2, 0, true)), (Sizes{1, 3}));
  EXPECT_NEAR_VALUES(x.norm(2, {0, 1}), std::sqrt(70));
  EXPECT_NEAR_VALUES(linalg_norm(x), std::sqrt(70));
  EXPECT_NEAR_VALUES(linalg_norm(x, "fro"), std::sqrt(70));
  EXPECT_NEAR_VALUES(linalg::norm(x), std::sqrt(70));
  EXPECT_VALUES(x.cumsum(0), 1, 2, 4, 4, 8, 6);
  EXPECT_VALUES(x.median(), 2);
  EXPECT_VALUES(std::get<0>(x.median(1)), 2, 3);
  EXPECT_VALUES(std::get<0>(x.mode(0)), 1, 2, 2);
  EXPECT_VALUES(x.count_nonzero(), 6);
  EXPECT_NEAR_VALUES(x.softmax(0).sum(0), 1, 1, 1);
  EXPECT_EQ(x.softmax(-1, kFloat).dtype(), kFloat);
  EXPECT_NEAR_VALUES(x.log_softmax(1).exp().sum(1), 1, 1);
  EXPECT_NEAR_VALUES(x.logsumexp(0).exp(), std::exp(1) + std::exp(3), std::exp(2) + std::exp(6),
                     std::exp(4) + std::exp(2));
}

TEST(CallForms, sorting_takes_dim_and_direction) {
  Tensor x = matrix();
  EXPECT_VALUES(std::get<0>(x.sort()), 1, 2, 4, 2, 3, 6);
  EXPECT_VALUES(std::get<0>(x.sort(0)), 1, 2, 2, 3, 6, 4);
  EXPECT_VALUES(std::get<0>(x.sort(0, true)), 3, 6, 4, 1, 2, 2);
  EXPECT_VALUES(std::get<1>(sort(x, -1, /*descending=*/true)), 2, 1, 0, 1, 0, 2);
  EXPECT_VALUES(x.argsort(), 0, 1, 2, 2, 0, 1);
  EXPECT_VALUES(x.argsort(0), 0, 0, 1, 1, 1, 0);
  EXPECT_VALUES(x.argsort(-1, true), 2, 1, 0, 1, 0, 2);
  EXPECT_VALUES(x.argsort(true, 0), 0, 0, 1, 1, 1, 0);  // stable
  EXPECT_VALUES(std::get<0>(x.topk(1)), 4, 6);
  EXPECT_VALUES(std::get<0>(x.topk(1, 0)), 3, 6, 4);
  EXPECT_VALUES(std::get<0>(x.topk(1, 1, false)), 1, 2);
  EXPECT_VALUES(std::get<0>(x.kthvalue(2)), 2, 3);
}

TEST(CallForms, arithmetic_takes_numbers_on_both_sides) {
  Tensor x = matrix(), y = ones({2, 3}, kDouble);
  EXPECT_VALUES(x + 1, 2, 3, 5, 4, 7, 3);
  EXPECT_VALUES(1 - x, 0, -1, -3, -2, -5, -1);
  EXPECT_VALUES(2 * x, 2, 4, 8, 6, 12, 4);
  EXPECT_VALUES(12 / x, 12, 6, 3, 4, 2, 6);
  EXPECT_VALUES(x.add(y, 2), 3, 4, 6, 5, 8, 4);
  EXPECT_VALUES(x.sub(1), 0, 1, 3, 2, 5, 1);
  EXPECT_VALUES(add(x, 1), 2, 3, 5, 4, 7, 3);
  EXPECT_VALUES(x.pow(2), 1, 4, 16, 9, 36, 4);
  EXPECT_VALUES(pow(x, 2), 1, 4, 16, 9, 36, 4);
  EXPECT_VALUES(pow(2, x), 2, 4, 16, 8, 64, 4);
  EXPECT_VALUES(pow(2.0, x), 2, 4, 16, 8, 64, 4);
  EXPECT_VALUES(pow(x, y), 1, 2, 4, 3, 6, 2);
  EXPECT_VALUES(x.remainder(2), 1, 0, 0, 1, 0, 0);
  EXPECT_VALUES(fmod(x, 4), 1, 2, 0, 3, 2, 2);
  EXPECT_VALUES(x.clamp(2, 3), 2, 2, 3, 3, 3, 2);
  EXPECT_VALUES(x.clamp(2), 2, 2, 4, 3, 6, 2);
  EXPECT_VALUES(x.clamp(std::nullopt, 3), 1, 2, 3, 3, 3, 2);
  EXPECT_VALUES(x.clamp_min(3), 3, 3, 4, 3, 6, 3);
  EXPECT_VALUES(x.eq(2), 0, 1, 0, 0, 0, 1);
  EXPECT_VALUES(x == 2, 0, 1, 0, 0, 0, 1);
  EXPECT_VALUES(x.lt(y), 0, 0, 0, 0, 0, 0);
  EXPECT_VALUES(div(x, 2, "floor"), 0, 1, 2, 1, 3, 1);
  EXPECT_VALUES(x.clone().fill_(1), 1, 1, 1, 1, 1, 1);
  EXPECT_VALUES(x.clone().mul_(2).add_(1), 3, 5, 9, 7, 13, 5);
  EXPECT_VALUES(polygamma(0, y) - y.polygamma(0), 0, 0, 0, 0, 0, 0);
  EXPECT_TRUE(x.allclose(x));
  EXPECT_TRUE(equal(x, matrix()));
  EXPECT_VALUES(isclose(x, y), 1, 0, 0, 0, 0, 0);
}

TEST(CallForms, selection_takes_numbers_and_tensors) {
  Tensor x = matrix(), c = x > 2, y = zeros({2, 3}, kDouble);
  EXPECT_VALUES(where(c, x, y), 0, 0, 4, 3, 6, 0);
  EXPECT_VALUES(where(c, 1, x), 1, 2, 1, 1, 1, 2);
  EXPECT_VALUES(where(c, x, 0), 0, 0, 4, 3, 6, 0);
  EXPECT_VALUES(where(c, x, -1.5), -1.5, -1.5, 4, 3, 6, -1.5);
  EXPECT_VALUES(where(c, 1, 0), 0, 0, 1, 1, 1, 0);
  EXPECT_EQ(where(c).size(), 2u);
  EXPECT_VALUES(x.where(c, y), 0, 0, 4, 3, 6, 0);
  EXPECT_VALUES(x.where(c, 7), 7, 7, 4, 3, 6, 7);
  EXPECT_VALUES(x.masked_fill(c, 0), 1, 2, 0, 0, 0, 2);
  EXPECT_VALUES(x.masked_select(c), 4, 3, 6);
  EXPECT_VALUES(x.select(0, 1), 3, 6, 2);
  EXPECT_VALUES(x.narrow(1, 0, 2), 1, 2, 3, 6);
  EXPECT_VALUES(x.slice(1, 1), 2, 4, 6, 2);
  EXPECT_VALUES(x.slice(1, 0, 3, 2), 1, 4, 3, 2);
  EXPECT_VALUES(x[1], 3, 6, 2);
  EXPECT_VALUES(x.index_select(1, i64({2, 0})), 4, 1, 2, 3);
  EXPECT_VALUES(x.gather(1, i64({0, 2}).unsqueeze(1)), 1, 2);
  EXPECT_EQ(x.split(1).size(), 2u);
  EXPECT_EQ(x.split({1, 2}, 1)[1].size(1), 2);
  EXPECT_EQ(x.chunk(3, 1).size(), 3u);
  EXPECT_EQ(x.unbind().size(), 2u);
  EXPECT_EQ(x[0][2].item<double>(), 4);
  EXPECT_EQ(x[0][2].item().toInt(), 4);
}

TEST(CallForms, shapes_take_one_number_a_list_or_a_vector) {
  Tensor x = matrix();
  EXPECT_EQ(sizes(x.view(-1)), (Sizes{6}));
  EXPECT_EQ(sizes(x.view({3, 2})), (Sizes{3, 2}));
  EXPECT_EQ(x.view(kLong).dtype(), kLong);
  EXPECT_EQ(sizes(x.reshape({3, -1})), (Sizes{3, 2}));
  EXPECT_EQ(sizes(x.permute({1, 0})), (Sizes{3, 2}));
  EXPECT_EQ(sizes(x.transpose(0, 1)), (Sizes{3, 2}));
  EXPECT_EQ(sizes(x.unsqueeze(0).squeeze()), (Sizes{2, 3}));
  EXPECT_EQ(sizes(x.unsqueeze(0).squeeze(0)), (Sizes{2, 3}));
  EXPECT_EQ(sizes(x.flatten()), (Sizes{6}));
  EXPECT_EQ(sizes(x.flatten(0, 1)), (Sizes{6}));
  EXPECT_EQ(sizes(x.unflatten(1, {3, 1})), (Sizes{2, 3, 1}));
  EXPECT_EQ(sizes(x.expand({4, 2, 3})), (Sizes{4, 2, 3}));
  EXPECT_EQ(sizes(x.repeat({2, 1})), (Sizes{4, 3}));
  EXPECT_EQ(sizes(cat({x, x})), (Sizes{4, 3}));
  EXPECT_EQ(sizes(cat({x, x}, 1)), (Sizes{2, 6}));
  EXPECT_EQ(sizes(stack({x, x}, -1)), (Sizes{2, 3, 2}));
  EXPECT_VALUES(x.roll(1, 1), 4, 1, 2, 2, 3, 6);
  EXPECT_VALUES(x.roll(1), 2, 1, 2, 4, 3, 6);
  EXPECT_VALUES(x.flip(0), 3, 6, 2, 1, 2, 4);
  EXPECT_VALUES(x.flip({0, 1}), 2, 6, 3, 4, 2, 1);
  EXPECT_VALUES(x.tril(), 1, 0, 0, 3, 6, 0);
  EXPECT_VALUES(x.triu(1), 0, 2, 4, 0, 0, 2);
  EXPECT_VALUES(x.diagonal(), 1, 6);
  EXPECT_VALUES(matmul(x, x.t()), 21, 23, 23, 49);
  EXPECT_VALUES(einsum("ij,kj->ik", {x, x}), 21, 23, 23, 49);
}

TEST(TensorMembers, of_libtorch_are_there) {
  Tensor x = matrix(), view = x.select(0, 1), other = x.clone();
  EXPECT_TRUE(x.is_same(Tensor(x)));
  EXPECT_FALSE(x.is_same(view));
  EXPECT_EQ(x.toString(), "CPUDoubleType");
  EXPECT_EQ(x.get_device(), -1);
  EXPECT_TRUE(x.has_storage());
  EXPECT_TRUE(view.is_view());
  EXPECT_FALSE(x.is_view());
  EXPECT_TRUE(x.is_alias_of(view));
  EXPECT_FALSE(x.is_alias_of(other));
  EXPECT_EQ(x.storage().data_ptr(), x.data_ptr());
  EXPECT_EQ(view.storage().data(), x.data_ptr());
  EXPECT_EQ(static_cast<const double*>(view.storage().data()) + view.storage_offset(),
            view.data_ptr<double>());
  EXPECT_GE(x.storage().nbytes(), 48u);
  EXPECT_TRUE(x.storage().is_alias_of(view.storage()));
  EXPECT_FALSE(x.is_sparse() || x.is_quantized() || x.is_mkldnn() || x.is_nested() || x.has_names());
  EXPECT_EQ(x.mutable_data_ptr<double>(), x.data_ptr());
  EXPECT_EQ((x.packed_accessor64<double, 2>()[1][2]), 2);
  EXPECT_EQ((x.accessor<double, 2>().sizes()), IntArrayRef({2, 3}));
  EXPECT_EQ(x.suggest_memory_format(), MemoryFormat::Contiguous);
  Tensor image = zeros({2, 3, 4, 5}).contiguous(MemoryFormat::ChannelsLast);
  EXPECT_EQ(image.suggest_memory_format(), MemoryFormat::ChannelsLast);
  Tensor shape_only = x.meta();
  EXPECT_TRUE(shape_only.is_meta());
  EXPECT_EQ(sizes(shape_only), (Sizes{2, 3}));
  EXPECT_FALSE(shape_only.storage());
  EXPECT_EQ(x.chalf().dtype(), kComplexHalf);
  EXPECT_THROW(x.cuda(), Error);
  EXPECT_TRUE(x.expect_contiguous().is_same(x));
  EXPECT_EQ(Tensor().use_count(), 0u);
}

TEST(TensorMembers, a_storage_reference_keeps_the_memory) {
  bool gone = false;
  std::vector<float> numbers(600, 2.5f);
  Tensor t = from_blob(numbers.data(), {600}, [&](void*) { gone = true; });
  StorageRef held = t.storage(), copy = held;
  size_t count = held.use_count();
  held = StorageRef();
  EXPECT_EQ(copy.use_count(), count - 1);
  t.reset();
  EXPECT_FALSE(gone);
  EXPECT_EQ(copy.data(), numbers.data());
  EXPECT_EQ(copy.nbytes(), 2400u);
  copy = StorageRef();
  EXPECT_TRUE(gone);
  // A small tensor lives in one block with its elements.
  StorageRef small = ones({3}).storage();
  EXPECT_EQ(static_cast<const float*>(small.data())[2], 1.0f);
}

}  // namespace
}  // namespace vesta
