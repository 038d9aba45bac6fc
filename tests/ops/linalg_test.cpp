// Linear algebra on random matrices, judged by what defines each result (backward errors of LAPACK's own test suite:
// a few units of n * eps) and not by recorded values; gradients of functions that do not see the free phase of
// eigenvectors and singular vectors; empty and strided input; errors that name the batch element.
#include <gtest/gtest.h>
#include <vesta/autograd.h>
#include <vesta/error.h>
#include <vesta/threads.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>

#include "base/process.h"
#include "ops/op_cases.h"
#include "vesta/ops.h"

namespace vesta {
namespace {

using autograd::variable_list;

constexpr uint64_t kSeed = 20;
constexpr double kInf = std::numeric_limits<double>::infinity();
const DType kFields[] = {kFloat, kDouble, kComplexFloat, kComplexDouble};

DType real_of(DType t) { return t == kComplexFloat ? kFloat : t == kComplexDouble ? kDouble : t; }
double epsilon(DType t) { return real_of(t) == kFloat ? 1.2e-7 : 2.3e-16; }

Tensor random(std::vector<int64_t> sizes, DType t, uint64_t seed = kSeed) {
  Generator g(seed);
  Tensor x = randn(sizes, g, TensorOptions(kDouble));
  if (t == kComplexFloat || t == kComplexDouble) x = complex(x, randn(sizes, g, TensorOptions(kDouble)));
  return x.to(t);
}
Tensor mh(const Tensor& t) { return t.transpose(-2, -1).conj(); }
Tensor identity_like(const Tensor& t) { return eye(t.size(-1), t.options()); }
double largest(const Tensor& t) { return t.numel() ? t.abs().max().to(kDouble).item().toDouble() : 0; }
// |difference| in units of eps * size * n.
double ratio(const Tensor& got, const Tensor& want, double size, int64_t n) {
  return largest(got - want) /
         (epsilon(got.dtype()) * std::max(size, 1e-300) * double(std::max<int64_t>(1, n)));
}
constexpr double kRatio = 30;  // LAPACK's own threshold
const std::vector<std::vector<int64_t>> kSquares = {{1, 1}, {2, 2}, {7, 7}, {33, 33}, {3, 2, 5, 5}};
const std::vector<std::vector<int64_t>> kMatrices = {{1, 1}, {7, 7}, {12, 5}, {5, 12}, {2, 9, 4}, {2, 4, 9}};

template <class F>
std::string linalg_message(F&& f) {
  try {
    f();
  } catch (const LinalgError& e) {
    return e.what();
  } catch (const Error& e) {
    return std::string("another error: ") + e.what();
  }
  return "nothing thrown";
}

TEST(Linalg, SolutionsSatisfyTheirSystems) {
  for (DType t : kFields)
    for (auto& sizes : kSquares) {
      SCOPED_TRACE(testing::Message() << dtype_name(t) << " n " << sizes.back() << " seed " << kSeed);
      int64_t n = sizes.back();
      Tensor a = random(sizes, t) + identity_like(random({n, n}, t)) * 3;
      std::vector<int64_t> rhs = sizes;
      rhs.back() = 3;
      Tensor b = random(rhs, t, 21), x = linalg_solve(a, b);
      EXPECT_LT(ratio(matmul(a, x), b, largest(a) * largest(x), n), kRatio);
      Tensor c = b.transpose(-2, -1), y = linalg_solve(a, c, false);
      EXPECT_LT(ratio(matmul(y, a), c, largest(a) * largest(y), n), kRatio);
      Tensor inverse = linalg_inv(a);
      EXPECT_LT(ratio(matmul(a, inverse), identity_like(a), largest(a) * largest(inverse), n), kRatio);
      auto [lu, pivots] = linalg_lu_factor(a);
      EXPECT_LT(ratio(linalg_lu_solve(lu, pivots, b), x, largest(x) * largest(inverse) * largest(a), n),
                kRatio);
      for (bool adjoint : {false, true}) {
        Tensor op = adjoint ? mh(a) : a;
        Tensor l = linalg_lu_solve(lu, pivots, b, true, adjoint),
               r = linalg_lu_solve(lu, pivots, c, false, adjoint);
        EXPECT_LT(ratio(matmul(op, l), b, largest(a) * largest(l), n), kRatio) << adjoint;
        EXPECT_LT(ratio(matmul(r, op), c, largest(a) * largest(r), n), kRatio) << adjoint;
      }
      Tensor v = linalg_solve(a, b.select(-1, 0));
      EXPECT_LT(ratio(v, x.select(-1, 0), largest(x) * largest(a) * largest(inverse), n), kRatio);
    }
}

TEST(Linalg, FactorsMultiplyToTheMatrix) {
  for (DType t : kFields)
    for (auto& sizes : kMatrices) {
      SCOPED_TRACE(testing::Message()
                   << dtype_name(t) << " " << sizes[sizes.size() - 2] << " x " << sizes.back());
      Tensor a = random(sizes, t);
      int64_t m = a.size(-2), n = a.size(-1), k = std::max(m, n);
      auto [p, l, u] = linalg_lu(a);
      EXPECT_LT(ratio(matmul(p, matmul(l, u)), a, largest(a), k), kRatio);
      EXPECT_EQ(largest(l.triu(1)), 0);
      EXPECT_EQ(largest(u.tril(-1)), 0);
      for (const char* mode : {"reduced", "complete"}) {
        auto [q, r] = linalg_qr(a, mode);
        EXPECT_LT(ratio(matmul(q, r), a, largest(a), k), kRatio);
        EXPECT_LT(ratio(matmul(mh(q), q), identity_like(matmul(mh(q), q)), 1, k), kRatio);
        EXPECT_EQ(largest(r.tril(-1)), 0);
      }
      auto [none, r] = linalg_qr(a, "r");
      EXPECT_EQ(none.numel(), 0);
      EXPECT_LT(ratio(r, std::get<1>(linalg_qr(a)), largest(a), k), kRatio);
      auto [packed, tau] = geqrf(a);
      if (m >= n) {
        EXPECT_LT(ratio(linalg_householder_product(packed, tau), std::get<0>(linalg_qr(a)), 1, k), kRatio);
      }
      Tensor c = random(sizes, t, 23), q = std::get<0>(linalg_qr(a, "complete"));
      EXPECT_LT(ratio(ormqr(packed, tau, c), matmul(q, c), largest(c), k), kRatio);
      EXPECT_LT(ratio(ormqr(packed, tau, c, true, true), matmul(mh(q), c), largest(c), k), kRatio);
      EXPECT_LT(ratio(ormqr(packed, tau, mh(c), false), matmul(mh(c), q), largest(c), k), kRatio);
    }
}

TEST(Linalg, FactorsWithoutPivotsMultiplyToTheMatrix) {
  for (DType t : kFields) {
    Tensor a = random({2, 6, 6}, t) + eye(6, TensorOptions(t)) * 10;
    auto [p, l, u] = linalg_lu(a, false);
    EXPECT_EQ(p.numel(), 0);
    EXPECT_LT(ratio(matmul(l, u), a, largest(a), 6), kRatio);
  }
}

TEST(Linalg, HermitianFactorsMultiplyToTheMatrixAndReadOneTriangle) {
  for (DType t : kFields)
    for (auto& sizes : kSquares) {
      SCOPED_TRACE(testing::Message() << dtype_name(t) << " n " << sizes.back());
      int64_t n = sizes.back();
      Tensor r = random(sizes, t), a = matmul(r, mh(r)) + identity_like(r) * double(n),
             b = random(sizes, t, 25);
      Tensor junk = zeros_like(a) + std::nan("");
      Tensor lower = a.tril() + junk.triu(1).masked_fill(ones_like(a).tril() != 0, 0),
             upper = a.triu() + junk.tril(-1).masked_fill(ones_like(a).triu() != 0, 0);
      Tensor l = linalg_cholesky(lower), u = linalg_cholesky(upper, true);
      EXPECT_LT(ratio(matmul(l, mh(l)), a, largest(a), n), kRatio);
      EXPECT_LT(ratio(matmul(mh(u), u), a, largest(a), n), kRatio);
      EXPECT_LT(ratio(matmul(a, cholesky_solve(b, l)), b, largest(a) * largest(b), n), kRatio);
      EXPECT_LT(ratio(matmul(a, cholesky_solve(b, u, true)), b, largest(a) * largest(b), n), kRatio);
      EXPECT_LT(ratio(cholesky_inverse(l), linalg_inv(a), largest(linalg_inv(a)) * largest(a), n), kRatio);
      for (auto uplo : {"L", "U"}) {
        auto [w, v] = linalg_eigh(*uplo == 'L' ? lower : upper, uplo);
        EXPECT_LT(ratio(matmul(a, v), v * w.unsqueeze(-2), largest(a), n), kRatio);
        EXPECT_LT(ratio(matmul(mh(v), v), identity_like(v), 1, n), kRatio);
        EXPECT_GE((w.narrow(-1, 1, n - 1) - w.narrow(-1, 0, n - 1) >= 0).all().item().toBool(), true);
        EXPECT_LT(ratio(linalg_eigvalsh(a, uplo), w, largest(a), n), kRatio);
      }
      Tensor root = linalg_matrix_sqrth(a);
      EXPECT_LT(ratio(matmul(root, root), a, largest(a), n), kRatio);
      bool hermitian = is_complex(t);
      Tensor indefinite = a - identity_like(a) * (largest(a) / 2);
      auto [ld, pivots] = linalg_ldl_factor(indefinite, hermitian);
      Tensor x = linalg_ldl_solve(ld, pivots, b, hermitian);
      EXPECT_LT(ratio(matmul(indefinite, x), b, largest(a) * largest(x), n), kRatio);
    }
}

TEST(Linalg, SingularVectorsAndValuesRebuildTheMatrix) {
  for (DType t : kFields)
    for (auto& sizes : kMatrices) {
      SCOPED_TRACE(testing::Message()
                   << dtype_name(t) << " " << sizes[sizes.size() - 2] << " x " << sizes.back());
      Tensor a = random(sizes, t);
      int64_t k = std::min(a.size(-2), a.size(-1)), n = std::max(a.size(-2), a.size(-1));
      for (bool full : {false, true}) {
        auto [u, s, vh] = linalg_svd(a, full);
        EXPECT_EQ(u.size(-1), full ? a.size(-2) : k);
        EXPECT_EQ(vh.size(-2), full ? a.size(-1) : k);
        EXPECT_LT(ratio(matmul(u.narrow(-1, 0, k) * s.unsqueeze(-2), vh.narrow(-2, 0, k)), a, largest(s), n),
                  kRatio);
        EXPECT_LT(ratio(matmul(mh(u), u), identity_like(matmul(mh(u), u)), 1, n), kRatio);
        EXPECT_LT(ratio(matmul(vh, mh(vh)), identity_like(matmul(vh, mh(vh))), 1, n), kRatio);
        EXPECT_TRUE((s >= 0).all().item().toBool());
        EXPECT_LT(ratio(linalg_svdvals(a), s, largest(s), n), kRatio);
      }
      Tensor p = linalg_pinv(a);
      EXPECT_LT(ratio(matmul(a, matmul(p, a)), a, largest(a) * largest(a) * largest(p), n), kRatio);
      EXPECT_LT(ratio(mh(matmul(a, p)), matmul(a, p), largest(a) * largest(p), n), kRatio);
      if (a.size(-2) >= a.size(-1)) {
        auto [u, h] = linalg_polar(a);
        EXPECT_LT(ratio(matmul(u, h), a, largest(a), n), kRatio);
        EXPECT_LT(ratio(matmul(mh(u), u), identity_like(h), 1, n), kRatio);
        EXPECT_GE(linalg_eigvalsh(h).min().to(kDouble).item().toDouble(), -1e-5 * largest(h));
      }
    }
}

TEST(Linalg, EigenvectorsOfGeneralMatricesAreSuch) {
  for (DType t : kFields)
    for (auto& sizes : kSquares) {
      SCOPED_TRACE(testing::Message() << dtype_name(t) << " n " << sizes.back());
      Tensor a = random(sizes, t);
      int64_t n = sizes.back();
      auto [w, v] = linalg_eig(a);
      EXPECT_TRUE(w.is_complex() && v.is_complex());
      Tensor wide = a.to(w.dtype());
      EXPECT_LT(ratio(matmul(wide, v), v * w.unsqueeze(-2), largest(a), n), kRatio * 4);
      EXPECT_LT(ratio(v.abs().square().sum({-2}), ones({1}, TensorOptions(real_of(t))), 1, n), kRatio);
      // Their sum is the trace, their product the determinant.
      Tensor values = linalg_eigvals(a);
      EXPECT_LT(ratio(values.sum({-1}), wide.diagonal(0, -2, -1).sum({-1}), largest(a) * double(n), n),
                kRatio);
    }
}

TEST(Linalg, DeterminantsAgreeWithExpansionByMinors) {
  for (DType t : {kDouble, kComplexDouble})
    for (int64_t n : {0, 1, 2, 3, 4, 5}) {
      Tensor a = random({n, n}, t);
      std::function<std::complex<double>(const Tensor&)> expand =
          [&](const Tensor& m) -> std::complex<double> {
        if (m.size(0) == 0) return 1;
        std::complex<double> sum = 0;
        for (int64_t j = 0; j < m.size(1); ++j) {
          Tensor rest = m.narrow(0, 1, m.size(0) - 1);
          Tensor minor = cat({rest.narrow(1, 0, j), rest.narrow(1, j + 1, m.size(1) - j - 1)}, 1);
          sum += (j % 2 ? -1.0 : 1.0) * m[0][j].item().toComplexDouble() * expand(minor);
        }
        return sum;
      };
      std::complex<double> want = expand(a), got = linalg_det(a).item().toComplexDouble();
      EXPECT_LT(std::abs(got - want), 1e-12 * (1 + std::abs(want))) << n;
      auto [sign, log] = linalg_slogdet(a);
      EXPECT_LT(std::abs(sign.item().toComplexDouble() * std::exp(log.item().toDouble()) - want),
                1e-12 * (1 + std::abs(want)))
          << n;
    }
  Tensor singular = zeros({2, 2}, TensorOptions(kDouble));
  auto [sign, log] = linalg_slogdet(singular);
  EXPECT_EQ(sign.item().toDouble(), 0);
  EXPECT_EQ(log.item().toDouble(), -kInf);
  Tensor negative = eye(2, TensorOptions(kDouble));
  negative[0][0] = -1;
  EXPECT_TRUE(std::isnan(logdet(negative).item().toDouble()));
}

TEST(Linalg, GradientOfASingularDeterminantIsTheAdjugate) {
  // [[1, 2], [2, 4]]: adj^T = [[4, -2], [-2, 1]]; [[0, 1], [0, 1]]: [[1, 0], [-1, 0]].
  Tensor a = zeros({2, 2, 2}, TensorOptions(kDouble));
  a[0][0][0] = 1, a[0][0][1] = 2, a[0][1][0] = 2, a[0][1][1] = 4, a[1][0][1] = 1, a[1][1][1] = 1;
  a.requires_grad_();
  Tensor g = autograd::grad({linalg_det(a).sum()}, {a})[0];
  const double want[] = {4, -2, -2, 1, 1, 0, -1, 0};
  for (int i = 0; i < 8; ++i) EXPECT_NEAR(g.contiguous().data_ptr<double>()[i], want[i], 1e-12) << i;
}

TEST(Linalg, LeastSquaresLeaveResidualsOrthogonalToTheColumns) {
  for (DType t : kFields)
    for (auto driver : {"gels", "gelsy", "gelsd", "gelss"})
      for (auto& sizes : kMatrices) {
        SCOPED_TRACE(testing::Message() << dtype_name(t) << " " << driver << " " << sizes[sizes.size() - 2]
                                        << " x " << sizes.back());
        Tensor a = random(sizes, t);
        std::vector<int64_t> rhs = sizes;
        rhs.back() = 2;
        Tensor b = random(rhs, t, 27);
        auto [x, residuals, rank, values] = linalg_lstsq(a, b, std::nullopt, driver);
        Tensor r = b - matmul(a, x);
        int64_t n = std::max(a.size(-2), a.size(-1)), k = std::min(a.size(-2), a.size(-1));
        EXPECT_LT(largest(matmul(mh(a), r)),
                  kRatio * epsilon(t) * double(n) * largest(a) * largest(a) * (largest(x) + largest(b)));
        const std::string name = driver;
        EXPECT_EQ(residuals.numel() > 0, a.size(-2) > a.size(-1) && name != "gelsy");
        EXPECT_EQ(rank.numel() > 0, name != "gels");
        EXPECT_EQ(values.numel() > 0, name == "gelsd" || name == "gelss");
        if (residuals.numel() > 0) {
          EXPECT_LT(ratio(residuals, r.abs().square().sum({-2}), largest(residuals) + 1, n), kRatio);
        }
        EXPECT_TRUE((rank == k).all().item().toBool());
        if (values.numel() > 0) {
          EXPECT_LT(ratio(values, linalg_svdvals(a), largest(values), n), kRatio);
        }
      }
}

TEST(Linalg, ExponentialsAgreeWithTheirEigenvalues) {
  for (DType t : {kDouble, kComplexDouble})
    for (double size : {1e-3, 0.1, 1.0, 10.0}) {
      Tensor r = random({3, 6, 6}, t), a = (r + mh(r)) * (size / 6);
      auto [w, v] = linalg_eigh(a);
      Tensor want = matmul(v * w.exp().unsqueeze(-2), mh(v));
      EXPECT_LT(ratio(matrix_exp(a), want, largest(want), 6), 200) << size;
      EXPECT_LT(
          ratio(matrix_exp(a.to(t == kDouble ? kFloat : kComplexFloat)).to(t), want, largest(want) * 6e8, 6),
          30)
          << size;
    }
  // Matrices of different sizes in one batch are treated each by its own norm.
  Tensor mixed = stack(
      {random({4, 4}, kDouble) * 1e-6, random({4, 4}, kDouble) * 20, zeros({4, 4}, TensorOptions(kDouble))});
  Tensor all = matrix_exp(mixed);
  for (int64_t b = 0; b < 3; ++b) EXPECT_EQ(largest(all[b] - matrix_exp(mixed[b])), 0) << b;
  EXPECT_EQ(largest(all[2] - eye(4, TensorOptions(kDouble))), 0);
}

TEST(Linalg, PowersNormsAndConditionNumbersFollowTheirDefinitions) {
  Tensor a = random({2, 5, 5}, kDouble) + eye(5, TensorOptions(kDouble)) * 4;
  EXPECT_LT(largest(matrix_power(a, 5) - matmul(a, matmul(a, matmul(a, matmul(a, a))))), 1e-8);
  EXPECT_LT(largest(matmul(matrix_power(a, -2), matmul(a, a)) - eye(5, TensorOptions(kDouble))), 1e-10);
  EXPECT_EQ(largest(matrix_power(a, 0) - eye(5, TensorOptions(kDouble))), 0);
  Tensor zero = zeros({2, 2}, TensorOptions(kDouble));
  EXPECT_THROW(matrix_power(zero, std::numeric_limits<int64_t>::min()), LinalgError);
  EXPECT_EQ(largest(matrix_power(zero, std::numeric_limits<int64_t>::max())), 0);
  Tensor s = linalg_svdvals(a), inverse = linalg_inv(a);
  EXPECT_LT(largest(linalg_matrix_norm(a, Scalar(2)) - s.select(-1, 0)), 1e-12);
  EXPECT_LT(largest(linalg_matrix_norm(a, "nuc") - s.sum({-1})), 1e-12);
  EXPECT_LT(largest(linalg_matrix_norm(a, Scalar(1)) - a.abs().sum({-2}).amax(-1)), 1e-12);
  EXPECT_LT(largest(linalg_matrix_norm(a, Scalar(kInf)) - a.abs().sum({-1}).amax(-1)), 1e-12);
  EXPECT_LT(largest(linalg_cond(a) - s.select(-1, 0) / s.select(-1, 4)), 1e-11);
  EXPECT_LT(largest(linalg_cond(a, Scalar(1)) -
                    linalg_matrix_norm(a, Scalar(1)) * linalg_matrix_norm(inverse, Scalar(1))),
            1e-11);
  EXPECT_EQ(
      linalg_cond(zero, Scalar(1)).isnan().logical_or(linalg_cond(zero, Scalar(1)) == kInf).item().toBool(),
      true);
  Tensor low = matmul(random({6, 2}, kDouble), random({2, 6}, kDouble, 31));
  EXPECT_EQ(linalg_matrix_rank(low).item().toLong(), 2);
  EXPECT_EQ(linalg_matrix_rank(matmul(low, mh(low)), std::optional<double>(), std::optional<double>(), true)
                .item()
                .toLong(),
            2);
}

TEST(Linalg, CovariancesFollowTheirDefinition) {
  Tensor x = random({3, 8}, kDouble), mean = x.mean({1}, true);
  Tensor want = matmul(x - mean, (x - mean).t()) / 7;
  EXPECT_LT(largest(cov(x) - want), 1e-14);
  Tensor counts = arange(8) + 1, weights = random({8}, kDouble).abs();
  // Frequencies stand for repeated observations.
  EXPECT_LT(largest(cov(x, 1, counts) - cov(x.repeat_interleave(counts, 1))), 1e-13);
  EXPECT_LT(largest(cov(x, 0, {}, weights) - cov(x, 0, {}, weights * 3)), 1e-13);
  Tensor deviation = want.diagonal().sqrt();
  EXPECT_LT(largest(corrcoef(x) - want / deviation.unsqueeze(0) / deviation.unsqueeze(1)), 1e-14);
  EXPECT_EQ(cov(x, std::numeric_limits<int64_t>::min()).sizes(), (std::vector<int64_t>{3, 3}));
  EXPECT_THROW(cov(x, 1, counts - 5), ValueError);
  EXPECT_THROW(cov(x, 1, weights), TypeError);
}

TEST(Linalg, ChainsAreTheProductInAnyOrder) {
  std::vector<Tensor> chain;
  const int64_t sizes[] = {3, 17, 2, 11, 5, 1, 8};
  for (int i = 0; i < 6; ++i) chain.push_back(random({sizes[i], sizes[i + 1]}, kDouble, 40 + uint64_t(i)));
  Tensor want = chain[0];
  for (int i = 1; i < 6; ++i) want = matmul(want, chain[size_t(i)]);
  EXPECT_LT(largest(linalg_multi_dot(chain) - want), 1e-12 * (1 + largest(want)));
}

// Functions of Hermitian and general matrices that do not depend on the vectors' free phases.
TEST(Linalg, GradientsOfPhaseFreeFunctionsAgreeWithDifferences) {
  for (DType t : {kDouble, kComplexDouble}) {
    SCOPED_TRACE(dtype_name(t));
    Tensor spread = diag_embed(arange(0, 3, TensorOptions(kDouble))).to(t) * 3;
    Tensor square = (random({2, 3, 3}, t) * 0.3 + spread).requires_grad_();
    auto check = [&](const char* what, const std::function<Tensor(const Tensor&)>& f, const Tensor& in,
                     bool second = true) {
      auto fn = [&](const variable_list& v) { return variable_list{f(v[0])}; };
      try {
        autograd::gradcheck(fn, {in});
        if (second) autograd::gradgradcheck(fn, {in});
      } catch (const Error& e) {
        ADD_FAILURE() << what << ": " << e.what();
      }
    };
    check(
        "function of a Hermitian matrix",
        [](const Tensor& a) {
          auto [w, v] = linalg_eigh((a + mh(a)) * 0.5);
          return matmul(v * w.exp().unsqueeze(-2), mh(v));
        },
        square);
    check(
        "squared components of Hermitian eigenvectors",
        [](const Tensor& a) { return std::get<1>(linalg_eigh((a + mh(a)) * 0.5)).abs().square(); }, square);
    check(
        "function of a general matrix",
        [](const Tensor& a) {
          auto [w, v] = linalg_eig(a);
          return matmul(v * w.square().unsqueeze(-2), linalg_inv(v));
        },
        square);
    check(
        "squared components of general eigenvectors",
        [](const Tensor& a) { return std::get<1>(linalg_eig(a)).abs().square(); }, square);
    check(
        "eigenvalues", [](const Tensor& a) { return linalg_eigvals(a).abs().square().sum({-1}); }, square);
    for (auto sizes : {std::vector<int64_t>{3, 3}, {4, 2}, {2, 4}}) {
      int64_t k = std::min(sizes[0], sizes[1]);
      Tensor d = eye(sizes[0], sizes[1], TensorOptions(kDouble)) *
                 (arange(0, sizes[1], TensorOptions(kDouble)) + 1) * 2;
      Tensor a = (random(sizes, t) * 0.3 + d.to(t)).requires_grad_();
      check(
          "function of a matrix by singular values",
          [&](const Tensor& x) {
            auto [u, s, vh] = linalg_svd(x, false);
            return matmul(u * s.sin().unsqueeze(-2), vh);
          },
          a);
      check(
          "projector of the left singular vectors",
          [&](const Tensor& x) {
            auto [u, s, vh] = linalg_svd(x, true);
            Tensor first = u.narrow(-1, 0, 1);
            return matmul(first, mh(first));
          },
          a);
      check(
          "projector of the right singular vectors",
          [&](const Tensor& x) {
            auto [u, s, vh] = linalg_svd(x, true);
            Tensor first = vh.narrow(-2, k - 1, 1);
            return matmul(mh(first), first);
          },
          a);
    }
  }
}

TEST(Linalg, GradientsOfFactorsThatReadTrianglesAgreeWithDifferences) {
  for (DType t : {kDouble, kComplexDouble}) {
    Tensor r = random({3, 3}, t);
    Tensor a = (matmul(r, mh(r)) + eye(3, TensorOptions(t)) * 2).detach().requires_grad_();
    for (bool upper : {false, true}) {
      auto f = [&](const variable_list& v) {
        Tensor h = (v[0] + mh(v[0])) * 0.5, l = linalg_cholesky(h, upper);
        return variable_list{l, cholesky_inverse(l, upper)};
      };
      EXPECT_TRUE(autograd::gradcheck(f, {a}));
      EXPECT_TRUE(autograd::gradgradcheck(f, {a}));
    }
    auto pinv = [&](const variable_list& v) {
      return variable_list{
          linalg_pinv((v[0] + mh(v[0])) * 0.5, std::optional<double>(), std::optional<double>(), true)};
    };
    EXPECT_TRUE(autograd::gradcheck(pinv, {a}));
  }
}

TEST(Linalg, ErrorsNameTheOpAndTheBatchElement) {
  Tensor a = eye(3, TensorOptions(kDouble)).expand({4, 3, 3}).clone();
  a[2] = zeros({3, 3}, TensorOptions(kDouble));
  EXPECT_EQ(linalg_message([&] { linalg_inv(a); }),
            "linalg_inv: batch element 2: the matrix is singular (pivot 1 is zero)");
  EXPECT_EQ(linalg_message([&] { linalg_solve(a, a); }),
            "linalg_solve: batch element 2: the matrix is singular (pivot 1 is zero)");
  EXPECT_EQ(linalg_message([&] { linalg_solve(a[2], a[0]); }),
            "linalg_solve: the matrix is singular (pivot 1 is zero)");
  EXPECT_EQ(
      linalg_message([&] { linalg_cholesky(a); }),
      "linalg_cholesky: batch element 2: the matrix is not positive definite (its leading minor of order 1)");
  auto [inverse, info] = linalg_inv_ex(a);
  for (int64_t b = 0; b < 4; ++b) EXPECT_EQ(info[b].item().toLong(), b == 2 ? 1 : 0);
  Tensor bad = eye(3, TensorOptions(kDouble)).expand({2, 3, 3}).clone();
  bad[1][0][0] = std::nan("");
  for (auto& message :
       {linalg_message([&] { linalg_svd(bad); }), linalg_message([&] { linalg_svdvals(bad); }),
        linalg_message([&] { linalg_eigh(bad); }), linalg_message([&] { linalg_eig(bad); }),
        linalg_message([&] { linalg_pinv(bad); }), linalg_message([&] { linalg_matrix_rank(bad); }),
        linalg_message([&] { linalg_cond(bad); }), linalg_message([&] { linalg_lstsq(bad, bad); })})
    EXPECT_NE(message.find("batch element 1: the matrix has infinities or NaNs"), std::string::npos)
        << message;
  Tensor wide = zeros({2, 3}, TensorOptions(kDouble));
  EXPECT_THROW(linalg_inv(wide), ValueError);
  EXPECT_THROW(linalg_det(wide), ValueError);
  EXPECT_THROW(linalg_eigh(a, "X"), ValueError);
  EXPECT_THROW(linalg_qr(a, "economic"), ValueError);
  EXPECT_THROW(linalg_svd(a, true, "gesvd"), ValueError);
  EXPECT_THROW(linalg_inv(a.to(kHalf)), TypeError);
  EXPECT_THROW(linalg_solve(a, a.to(kFloat)), TypeError);
  EXPECT_THROW(linalg_solve(a, zeros({4, 2, 2}, TensorOptions(kDouble))), ValueError);
  Tensor pivots = full({3}, Scalar(4), TensorOptions(kInt));
  EXPECT_THROW(linalg_lu_solve(a[0], pivots, a[0]), IndexError);
  EXPECT_THROW(lu_unpack(a[0], pivots), IndexError);
  EXPECT_THROW(linalg_ldl_solve(a[0], zeros({3}, TensorOptions(kInt)), a[0]), IndexError);
  EXPECT_THROW(linalg_ldl_solve(a[0], full({3}, Scalar(-1), TensorOptions(kInt)), a[0]), IndexError);
  EXPECT_THROW(linalg_householder_product(a[0], zeros({4}, TensorOptions(kDouble))), ValueError);
}

TEST(Linalg, EmptyMatricesAndBatchesGiveEmptyOrNeutralResults) {
  for (DType t : kFields) {
    TensorOptions o(t);
    Tensor none = zeros({0, 0}, o), batch = zeros({0, 3, 3}, o), flat = zeros({2, 0, 3}, o);
    EXPECT_EQ(linalg_det(none).item().toComplexDouble(), 1.0);
    EXPECT_EQ(std::get<1>(linalg_slogdet(none)).item().toDouble(), 0);
    EXPECT_EQ(linalg_inv(batch).sizes(), batch.sizes());
    EXPECT_EQ(linalg_solve(none, zeros({0, 4}, o)).sizes(), (std::vector<int64_t>{0, 4}));
    EXPECT_EQ(linalg_solve(batch, zeros({3, 2}, o)).sizes(), (std::vector<int64_t>{0, 3, 2}));
    auto [u, s, vh] = linalg_svd(flat);
    EXPECT_EQ(s.sizes(), (std::vector<int64_t>{2, 0}));
    EXPECT_EQ(largest(vh - eye(3, o)), 0);
    auto [q, r] = linalg_qr(flat.transpose(-2, -1), "complete");
    EXPECT_EQ(largest(q - eye(3, o)), 0);
    EXPECT_EQ(std::get<0>(linalg_eigh(batch)).sizes(), (std::vector<int64_t>{0, 3}));
    EXPECT_EQ(linalg_pinv(flat).sizes(), (std::vector<int64_t>{2, 3, 0}));
    EXPECT_EQ(largest(linalg_matrix_rank(flat)), 0);
    EXPECT_EQ(matrix_exp(batch).sizes(), batch.sizes());
    auto [x, residuals, rank, values] = linalg_lstsq(zeros({3, 0}, o), zeros({3, 2}, o));
    EXPECT_EQ(x.sizes(), (std::vector<int64_t>{0, 2}));
  }
}

TEST(Linalg, BatchesGiveTheSameBitsOnAnyNumberOfThreads) {
  Tensor a = random({64, 16, 16}, kFloat);
  int threads = get_num_threads();
  std::vector<Tensor> results[2];
  for (int n : {1, 2}) {
    set_num_threads(n);
    auto [w, v] = linalg_eigh(matmul(a, mh(a)));
    auto [u, s, vh] = linalg_svd(a);
    results[n - 1] = {linalg_inv(a), w, v, u, s, vh, matrix_exp(a * 0.1)};
  }
  set_num_threads(threads);
  for (size_t i = 0; i < results[0].size(); ++i) EXPECT_EQ(largest(results[0][i] - results[1][i]), 0) << i;
}

// The library is loaded once a process, so this one runs again in a process that is told of a library that is not there.
TEST(Linalg, WithoutLapackEachOperatorSaysWhatIsMissingAndTheProcessStaysUsable) {
  if (!std::getenv("VESTA_TEST_IN_CHILD")) {
    ProcessOptions options;
    options.argv = {"/proc/self/exe", std::string("--gtest_filter=Linalg.") +
                                          testing::UnitTest::GetInstance()->current_test_info()->name()};
    options.env = {"VESTA_TEST_IN_CHILD=1", "VESTA_LAPACK=libnot-there.so.7"};
    options.stdout_path = "/dev/null";
    Result<Process> child = Process::start(options);
    ASSERT_TRUE(child) << child.error();
    ASSERT_TRUE(child->wait(60'000)) << "the child hangs";
    EXPECT_EQ(child->exit_code(), 0);
    return;
  }
  Tensor a = eye(3, TensorOptions(kFloat));
  auto refuses = [](const char* op, auto&& call) {
    try {
      call();
      ADD_FAILURE() << op << " found a LAPACK";
    } catch (const NotImplementedError& error) {
      std::string what = error.what();
      EXPECT_NE(what.find(op), what.npos) << what;
      EXPECT_NE(what.find("libnot-there.so.7"), what.npos) << what;
    }
  };
  refuses("linalg_inv", [&] { linalg_inv(a); });
  refuses("linalg_solve", [&] { linalg_solve(a, a); });
  refuses("linalg_qr", [&] { linalg_qr(a); });
  refuses("linalg_eigh", [&] { linalg_eigh(a); });
  refuses("linalg_svd", [&] { linalg_svd(a); });
  refuses("linalg_cholesky", [&] { linalg_cholesky(a); });
  EXPECT_EQ(matmul(a, a).sum().item<float>(), 3);
}

}  // namespace
}  // namespace vesta
