// List operators: the same numbers as their base operators one by one, from any number of threads, written in place,
// and errors that leave nothing half done where it can be known.
#include <gtest/gtest.h>
#include <vesta/error.h>

#include <cmath>

#include "base/thread_pool.h"
#include "vesta/autograd.h"
#include "vesta/ops.h"

namespace vesta {
namespace {

std::vector<Tensor> many(int count, uint64_t seed, DType t = kFloat) {
  std::vector<Tensor> list;
  for (int k = 0; k < count; ++k)
    list.push_back(rand({1 + k * 37 % 1900}, Generator(seed + uint64_t(k)), TensorOptions(t)) + 0.5);
  return list;
}
void expect_equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t k = 0; k < a.size(); ++k) EXPECT_TRUE(equal(a[k], b[k])) << "tensor " << k;
}

TEST(Foreach, LongListsOverThreadsEqualOneByOne) {
  auto a = many(300, 1), b = many(300, 1000);
  std::vector<Tensor> want_exp, want_add;
  for (size_t k = 0; k < a.size(); ++k) want_exp.push_back(a[k].exp()), want_add.push_back(a[k].add(b[k], 2));
  const int threads = num_threads();
  for (int n : {1, 2, 4}) {
    set_num_threads(n);
    expect_equal(_foreach_exp(a), want_exp);
    expect_equal(_foreach_add(a, b, 2), want_add);
    auto own = a;
    for (auto& t : own) t = t.clone();
    _foreach_add_(own, b, 2);
    expect_equal(own, want_add);
  }
  set_num_threads(threads);
}

TEST(Foreach, WorkersRecordNothingUnderNoGradAndEverythingWithIt) {
  auto a = many(300, 1);
  for (auto& t : a) t.requires_grad_();
  {
    NoGradGuard no_grad;
    for (auto& t : _foreach_mul(a, 2)) EXPECT_FALSE(t.requires_grad());
    _foreach_mul_(a, 2);  // leaves may be written here
  }
  EXPECT_THROW(_foreach_mul_(a, 2), ValueError);
  auto y = _foreach_mul(a, 3);
  auto g = autograd::grad({y[299].sum()}, {a[299]});
  EXPECT_EQ(g[0][0].item<float>(), 3);
  // Of the other list, too.
  auto plain = many(300, 5);
  auto mixed = autograd::grad({_foreach_mul(plain, a)[299].sum()}, {a[299]});
  EXPECT_TRUE(equal(mixed[0], plain[299]));
  InferenceMode inference;
  for (auto& t : _foreach_mul(many(300, 1), 2)) EXPECT_TRUE(t.is_inference());
}

TEST(Foreach, TensorsThatShareMemoryAreWrittenInOrder) {
  auto a = many(200, 1);
  Tensor shared = a[0].clone();
  for (int k = 0; k < 200; k += 2) a[size_t(k)] = shared;
  for (auto& t : a) t.fill_(1);
  std::vector<Tensor> total = many(200, 3);
  for (auto& t : total) t.fill_(0.01);
  for (int k = 0; k < 200; k += 2) total[size_t(k)] = full({1}, 1.0);
  _foreach_add_(a, total);
  EXPECT_EQ(shared[0].item<float>(), 101);  // a hundred times one
}

TEST(Foreach, ListsThatDoNotMatchAreRefusedBeforeAnythingIsWritten) {
  auto a = many(3, 1), b = many(2, 2);
  auto before = a[0].clone();
  EXPECT_THROW(_foreach_add_(a, b), ValueError);
  EXPECT_THROW(_foreach_mul_(a, std::vector<Scalar>{1, 2}), ValueError);
  EXPECT_THROW(_foreach_lerp_(a, many(3, 3), b), ValueError);
  EXPECT_THROW(_foreach_addcmul_(a, many(3, 3), many(3, 4), ones({2})), ValueError);
  EXPECT_TRUE(equal(a[0], before));
  EXPECT_THROW(_foreach_abs(std::vector<Tensor>{}), ValueError);
}

TEST(Foreach, NormsAndPowerSumsOfEveryTensor) {
  auto a = many(20, 7, kDouble);
  auto norms = _foreach_norm(a, 3), sums = _foreach_powsum(a, 3);
  for (size_t k = 0; k < a.size(); ++k) {
    double want = 0;
    for (int64_t i = 0; i < a[k].numel(); ++i) want += std::pow(std::fabs(a[k].data_ptr<double>()[i]), 3);
    EXPECT_NEAR(sums[k].item<double>(), want, 1e-10 * want);
    EXPECT_NEAR(norms[k].item<double>(), std::cbrt(want), 1e-10 * want);
  }
  EXPECT_EQ(_foreach_norm(many(1, 1), 2, kDouble)[0].dtype(), kDouble);
}

TEST(Foreach, ZeroAndCopyWriteTheirLists) {
  auto a = many(5, 1), b = many(5, 2, kDouble);
  _foreach_copy_(a, b);
  for (size_t k = 0; k < a.size(); ++k) EXPECT_TRUE(equal(a[k], b[k].to(kFloat)));
  _foreach_zero_(a);
  for (auto& t : a) EXPECT_EQ(t.abs().max().item<float>(), 0);
}

TEST(Amp, UnscalingFindsInfinitiesInAnyTensor) {
  for (double bad : {0., HUGE_VAL, double(NAN)}) {
    std::vector<Tensor> g{full({100000}, 8.0), full({3}, 4.0).to(kHalf), zeros({5, 7}).t()};
    if (bad != 0) g[2][6][4] = bad;
    Tensor found = zeros({1}), inverse = full({1}, 0.25);
    _amp_foreach_non_finite_check_and_unscale_(g, found, inverse);
    EXPECT_EQ(found.item<float>(), bad != 0 ? 1 : 0);
    EXPECT_EQ(g[0][99999].item<float>(), 2);
    EXPECT_EQ(g[1][2].item<float>(), 1);
  }
}

TEST(Amp, ScaleGrowsAfterAnIntervalAndBacksOff) {
  Tensor scale = full({1}, 8.0), tracker = zeros({1}, TensorOptions(kInt)), fine = zeros({1}),
         bad = ones({1});
  _amp_update_scale_(scale, tracker, fine, 2, 0.5, 2);
  EXPECT_EQ(scale.item<float>(), 8);
  _amp_update_scale_(scale, tracker, fine, 2, 0.5, 2);
  EXPECT_EQ(scale.item<float>(), 16);
  EXPECT_EQ(tracker.item<int>(), 0);
  _amp_update_scale_(scale, tracker, fine, 2, 0.5, 2);
  _amp_update_scale_(scale, tracker, bad, 2, 0.5, 2);
  EXPECT_EQ(scale.item<float>(), 8);
  EXPECT_EQ(tracker.item<int>(), 0);
  scale.fill_(3e38);
  _amp_update_scale_(scale, tracker, fine, 2, 0.5, 1);
  EXPECT_EQ(scale.item<float>(), 3e38f);  // twice that is no float32
}

TEST(Amp, AdagradStepFollowsTheFormula) {
  std::vector<Tensor> p{rand({3, 5}, Generator(1), TensorOptions(kDouble))},
      g{rand({5, 3}, Generator(2), TensorOptions(kDouble)).t()},
      s{rand({3, 5}, Generator(3), TensorOptions(kDouble))}, step{full({}, 4.0)};
  Tensor grad = g[0] * 0.5 + p[0] * 0.1, sum = s[0] + grad * grad;
  Tensor want = p[0] - grad / (sum.sqrt() + 1e-8) * (0.1 / (1 + 3 * 0.01));
  _fused_adagrad_(p, g, s, step, 0.1, 0.01, 0.1, 1e-8, false, full({}, 2.0));
  EXPECT_LT((p[0] - want).abs().max().item<double>(), 1e-14);
  EXPECT_LT((s[0] - sum).abs().max().item<double>(), 1e-14);
  _fused_adagrad_(p, g, s, step, 0.1, 0.01, 0.1, 1e-8, false, {}, ones({}));
  EXPECT_LT((p[0] - want).abs().max().item<double>(), 1e-14);  // skipped
  EXPECT_THROW(_fused_adagrad_(p, {}, s, step, 0.1, 0.01, 0.1, 1e-8, false), ValueError);
}

}  // namespace
}  // namespace vesta
