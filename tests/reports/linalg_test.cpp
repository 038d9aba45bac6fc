// Decompositions: batches, NaN, singular matrices, bad scaling. Judged by their defining equations.
#include "reports/reports_testing.h"

namespace vesta::reports {
namespace {

Tensor matrix_norms(const Tensor& a) { return linalg_norm(a, std::nullopt, IntArrayRef{-2, -1}); }

// pt#192483: eigenvectors of a batch were not orthonormal, depending on earlier calls. For each item, with eps of
// float32: |V^H V - I| and |A V - V L| / |A| below 100 n eps; sum l = tr A and sum l^2 = |A|_F^2.
TEST(Linalg, batched_eigh_is_right_for_every_item_and_again_after_other_shapes) {
  Generator g(kSeed);
  constexpr double kEps = 1.2e-7;
  for (auto [batch, n] : {std::pair<int64_t, int64_t>{64, 40}, {3, 5}, {64, 40}, {1, 1}}) {
    Tensor a = draw(g, {batch, n, n}, kComplex64);
    a = (a + a.mH()) / 2;
    auto [l, v] = linalg_eigh(a);
    double bound = 100 * double(n) * kEps;
    EXPECT_LE(number(matrix_norms(v.mH().matmul(v) - eye(n, kComplex64)).max()),
              bound * std::sqrt(double(n)));
    Tensor scale = matrix_norms(a);
    Tensor residual = a.matmul(v) - v * l.unsqueeze(-2);
    EXPECT_LE(number((matrix_norms(residual) / scale).max()), bound);
    Tensor trace = vesta::real(a.diagonal(0, -2, -1)).sum({-1});
    EXPECT_LE(number(((l.sum({-1}) - trace).abs() / scale).max()), bound * std::sqrt(double(n)));
    EXPECT_LE(number((((l * l).sum({-1}) - scale * scale).abs() / (scale * scale)).max()), bound);
  }
}

// True where f gives NaN somewhere or throws; a quiet finite answer about a matrix of NaN is the error.
template <class F>
bool admits_nan(F&& f) {
  try {
    return f().isnan().any().template item<bool>();
  } catch (const Error&) {
    return true;
  }
}

// pt#187759: [[NaN, 0], [0, 1]] had singular values (1, 1) and rank 2.
TEST(Linalg, a_nan_in_the_matrix_shows_in_every_answer_about_its_singular_values) {
  Tensor a = make<double>({kNaN, 0, 0, 1}, {2, 2});
  EXPECT_TRUE(admits_nan([&] { return linalg_svdvals(a); }));
  EXPECT_TRUE(admits_nan([&] { return std::get<1>(linalg_svd(a)); }));
  EXPECT_TRUE(admits_nan([&] { return linalg_pinv(a); }));
  EXPECT_TRUE(admits_nan([&] { return linalg_cond(a); }));
  // A rank is a count and cannot be NaN: an error, or no rank at all.
  try {
    EXPECT_EQ(number(linalg_matrix_rank(a)), 0);
  } catch (const Error&) {
  }
}

// pt#64818, pt#16780: info names the leading minor that is not positive definite. [[1, 1], [1, 1]] has the minors 1 and
// 0: info 2. A NaN in the corner fails the first.
TEST(Linalg, cholesky_names_the_minor_and_the_batch_item_that_fails) {
  auto [l, info] = linalg_cholesky_ex(ones({1, 2, 2}, kDouble));
  EXPECT_EQ(values(info), Doubles{2});
  Tensor batch = eye(2, kDouble).repeat({3, 1, 1});
  batch.select(0, 1).fill_(1);
  EXPECT_EQ(values(std::get<1>(linalg_cholesky_ex(batch))), (Doubles{0, 2, 0}));
  std::string text = error_of<Error>([&] { linalg_cholesky(batch); });
  EXPECT_CONTAINS(text, "1");  // the item
  EXPECT_CONTAINS(text, "2");  // the minor
  Tensor nan = make<double>({kNaN, 0, 0, 1}, {1, 2, 2});
  EXPECT_EQ(values(std::get<1>(linalg_cholesky_ex(nan))), Doubles{1});
  EXPECT_THROW(linalg_cholesky(nan), Error);
}

// pt#144384: a badly scaled matrix. Small eigenvalues carry an error of eps |A|, so two right programs differ in them
// and in their vectors; right is a small |A V - V L| / |A|.
TEST(Linalg, eigh_of_a_badly_scaled_matrix_has_a_small_backward_error) {
  Generator g(kSeed);
  constexpr int64_t kN = 20;
  Tensor q = std::get<0>(linalg_qr(draw(g, {kN, kN})));
  Tensor d = (arange(kN, TensorOptions(kDouble)) * -0.5).exp() * 1e6;  // from 1e6 to 75
  Tensor a = (q * d).matmul(q.t());
  a = ((a + a.t()) / 2).to(kFloat32);
  auto [l, v] = linalg_eigh(a);
  Tensor wide = a.to(kDouble), l2 = l.to(kDouble), v2 = v.to(kDouble);
  double bound = 100 * kN * 1.2e-7, norm = number(matrix_norms(wide));
  EXPECT_LE(number(matrix_norms(wide.matmul(v2) - v2 * l2)) / norm, bound);
  EXPECT_LE(number(matrix_norms(v2.t().matmul(v2) - eye(kN, kDouble))), bound);
  EXPECT_LE(distance(l2.flip(IntArrayRef{0}), d), 10 * 1.2e-7 * norm);
}

}  // namespace
}  // namespace vesta::reports
