#pragma once
// torch::fft, torch::linalg and torch::special: Vesta's fft_*, linalg_* and special_* operators by libtorch's names.
#include "torch/compat/namespaces.h"

namespace torch::fft {
inline Tensor fft(const Tensor& self, std::optional<int64_t> n = std::nullopt, int64_t dim = -1,
                  std::optional<std::string_view> norm = std::nullopt) {
  return vesta::fft_fft(self, n, dim, norm);
}
inline Tensor ifft(const Tensor& self, std::optional<int64_t> n = std::nullopt, int64_t dim = -1,
                   std::optional<std::string_view> norm = std::nullopt) {
  return vesta::fft_ifft(self, n, dim, norm);
}
inline Tensor rfft(const Tensor& self, std::optional<int64_t> n = std::nullopt, int64_t dim = -1,
                   std::optional<std::string_view> norm = std::nullopt) {
  return vesta::fft_rfft(self, n, dim, norm);
}
inline Tensor irfft(const Tensor& self, std::optional<int64_t> n = std::nullopt, int64_t dim = -1,
                    std::optional<std::string_view> norm = std::nullopt) {
  return vesta::fft_irfft(self, n, dim, norm);
}
inline Tensor hfft(const Tensor& self, std::optional<int64_t> n = std::nullopt, int64_t dim = -1,
                   std::optional<std::string_view> norm = std::nullopt) {
  return vesta::fft_hfft(self, n, dim, norm);
}
inline Tensor ihfft(const Tensor& self, std::optional<int64_t> n = std::nullopt, int64_t dim = -1,
                    std::optional<std::string_view> norm = std::nullopt) {
  return vesta::fft_ihfft(self, n, dim, norm);
}
inline Tensor fft2(const Tensor& self, OptionalIntArrayRef s = std::nullopt, IntArrayRef dim = {-2, -1},
                   std::optional<std::string_view> norm = std::nullopt) {
  return vesta::fft_fft2(self, s, dim, norm);
}
inline Tensor ifft2(const Tensor& self, OptionalIntArrayRef s = std::nullopt, IntArrayRef dim = {-2, -1},
                    std::optional<std::string_view> norm = std::nullopt) {
  return vesta::fft_ifft2(self, s, dim, norm);
}
inline Tensor rfft2(const Tensor& self, OptionalIntArrayRef s = std::nullopt, IntArrayRef dim = {-2, -1},
                    std::optional<std::string_view> norm = std::nullopt) {
  return vesta::fft_rfft2(self, s, dim, norm);
}
inline Tensor irfft2(const Tensor& self, OptionalIntArrayRef s = std::nullopt, IntArrayRef dim = {-2, -1},
                     std::optional<std::string_view> norm = std::nullopt) {
  return vesta::fft_irfft2(self, s, dim, norm);
}
inline Tensor hfft2(const Tensor& self, OptionalIntArrayRef s = std::nullopt, IntArrayRef dim = {-2, -1},
                    std::optional<std::string_view> norm = std::nullopt) {
  return vesta::fft_hfft2(self, s, dim, norm);
}
inline Tensor ihfft2(const Tensor& self, OptionalIntArrayRef s = std::nullopt, IntArrayRef dim = {-2, -1},
                     std::optional<std::string_view> norm = std::nullopt) {
  return vesta::fft_ihfft2(self, s, dim, norm);
}
inline Tensor fftn(const Tensor& self, OptionalIntArrayRef s = std::nullopt,
                   OptionalIntArrayRef dim = std::nullopt,
                   std::optional<std::string_view> norm = std::nullopt) {
  return vesta::fft_fftn(self, s, dim, norm);
}
inline Tensor ifftn(const Tensor& self, OptionalIntArrayRef s = std::nullopt,
                    OptionalIntArrayRef dim = std::nullopt,
                    std::optional<std::string_view> norm = std::nullopt) {
  return vesta::fft_ifftn(self, s, dim, norm);
}
inline Tensor rfftn(const Tensor& self, OptionalIntArrayRef s = std::nullopt,
                    OptionalIntArrayRef dim = std::nullopt,
                    std::optional<std::string_view> norm = std::nullopt) {
  return vesta::fft_rfftn(self, s, dim, norm);
}
inline Tensor irfftn(const Tensor& self, OptionalIntArrayRef s = std::nullopt,
                     OptionalIntArrayRef dim = std::nullopt,
                     std::optional<std::string_view> norm = std::nullopt) {
  return vesta::fft_irfftn(self, s, dim, norm);
}
inline Tensor hfftn(const Tensor& self, OptionalIntArrayRef s = std::nullopt,
                    OptionalIntArrayRef dim = std::nullopt,
                    std::optional<std::string_view> norm = std::nullopt) {
  return vesta::fft_hfftn(self, s, dim, norm);
}
inline Tensor ihfftn(const Tensor& self, OptionalIntArrayRef s = std::nullopt,
                     OptionalIntArrayRef dim = std::nullopt,
                     std::optional<std::string_view> norm = std::nullopt) {
  return vesta::fft_ihfftn(self, s, dim, norm);
}
inline Tensor fftfreq(int64_t n, double d = 1.0, const TensorOptions& options = {}) {
  return vesta::fft_fftfreq(n, d, options);
}
inline Tensor rfftfreq(int64_t n, double d = 1.0, const TensorOptions& options = {}) {
  return vesta::fft_rfftfreq(n, d, options);
}
inline Tensor fftshift(const Tensor& self, OptionalIntArrayRef dim = std::nullopt) {
  return vesta::fft_fftshift(self, dim);
}
inline Tensor ifftshift(const Tensor& self, OptionalIntArrayRef dim = std::nullopt) {
  return vesta::fft_ifftshift(self, dim);
}
}  // namespace torch::fft

namespace torch::linalg {
inline Tensor vander(const Tensor& x, std::optional<int64_t> N = std::nullopt) {
  return vesta::linalg_vander(x, N);
}
inline std::tuple<Tensor, Tensor> cholesky_ex(const Tensor& self, bool upper = false,
                                              bool check_errors = false) {
  return vesta::linalg_cholesky_ex(self, upper, check_errors);
}
inline Tensor cholesky(const Tensor& self, bool upper = false) { return vesta::linalg_cholesky(self, upper); }
inline std::tuple<Tensor, Tensor> eigh(const Tensor& self, std::string_view UPLO = "L") {
  return vesta::linalg_eigh(self, UPLO);
}
inline Tensor eigvalsh(const Tensor& self, std::string_view UPLO = "L") {
  return vesta::linalg_eigvalsh(self, UPLO);
}
inline std::tuple<Tensor, Tensor> eig(const Tensor& self) { return vesta::linalg_eig(self); }
inline Tensor eigvals(const Tensor& self) { return vesta::linalg_eigvals(self); }
inline std::tuple<Tensor, Tensor, Tensor, Tensor> lstsq(
    const Tensor& self, const Tensor& b, std::optional<double> rcond = std::nullopt,
    std::optional<std::string_view> driver = std::nullopt) {
  return vesta::linalg_lstsq(self, b, rcond, driver);
}
inline Tensor pinv(const Tensor& self, const Tensor& atol, const Tensor& rtol, bool hermitian = false) {
  return vesta::linalg_pinv(self, atol, rtol, hermitian);
}
inline Tensor pinv(const Tensor& self, std::optional<double> atol = std::nullopt,
                   std::optional<double> rtol = std::nullopt, bool hermitian = false) {
  return vesta::linalg_pinv(self, atol, rtol, hermitian);
}
inline Tensor pinv(const Tensor& self, double rcond, bool hermitian = false) {
  return vesta::linalg_pinv(self, rcond, hermitian);
}
inline Tensor pinv(const Tensor& self, const Tensor& rcond, bool hermitian = false) {
  return vesta::linalg_pinv(self, rcond, hermitian);
}
inline Tensor matrix_rank(const Tensor& input, const Tensor& atol, const Tensor& rtol,
                          bool hermitian = false) {
  return vesta::linalg_matrix_rank(input, atol, rtol, hermitian);
}
inline Tensor matrix_rank(const Tensor& self, std::optional<double> atol = std::nullopt,
                          std::optional<double> rtol = std::nullopt, bool hermitian = false) {
  return vesta::linalg_matrix_rank(self, atol, rtol, hermitian);
}
inline Tensor matrix_rank(const Tensor& self, double tol, bool hermitian = false) {
  return vesta::linalg_matrix_rank(self, tol, hermitian);
}
inline Tensor matrix_rank(const Tensor& input, const Tensor& tol, bool hermitian = false) {
  return vesta::linalg_matrix_rank(input, tol, hermitian);
}
inline std::tuple<Tensor, Tensor, Tensor> lu_factor_ex(const Tensor& A, bool pivot = true,
                                                       bool check_errors = false) {
  return vesta::linalg_lu_factor_ex(A, pivot, check_errors);
}
inline std::tuple<Tensor, Tensor> lu_factor(const Tensor& A, bool pivot = true) {
  return vesta::linalg_lu_factor(A, pivot);
}
inline std::tuple<Tensor, Tensor, Tensor> lu(const Tensor& A, bool pivot = true) {
  return vesta::linalg_lu(A, pivot);
}
inline Tensor lu_solve(const Tensor& LU, const Tensor& pivots, const Tensor& B, bool left = true,
                       bool adjoint = false) {
  return vesta::linalg_lu_solve(LU, pivots, B, left, adjoint);
}
inline std::tuple<Tensor, Tensor, Tensor> ldl_factor_ex(const Tensor& self, bool hermitian = false,
                                                        bool check_errors = false) {
  return vesta::linalg_ldl_factor_ex(self, hermitian, check_errors);
}
inline std::tuple<Tensor, Tensor> ldl_factor(const Tensor& self, bool hermitian = false) {
  return vesta::linalg_ldl_factor(self, hermitian);
}
inline Tensor ldl_solve(const Tensor& LD, const Tensor& pivots, const Tensor& B, bool hermitian = false) {
  return vesta::linalg_ldl_solve(LD, pivots, B, hermitian);
}
inline Tensor norm(const Tensor& self, const std::optional<Scalar>& ord = std::nullopt,
                   OptionalIntArrayRef dim = std::nullopt, bool keepdim = false,
                   std::optional<DType> dtype = std::nullopt) {
  return vesta::linalg_norm(self, ord, dim, keepdim, dtype);
}
inline Tensor norm(const Tensor& self, std::string_view ord, OptionalIntArrayRef dim = std::nullopt,
                   bool keepdim = false, std::optional<DType> dtype = std::nullopt) {
  return vesta::linalg_norm(self, ord, dim, keepdim, dtype);
}
inline Tensor matrix_norm(const Tensor& self, const Scalar& ord, IntArrayRef dim = {-2, -1},
                          bool keepdim = false, std::optional<DType> dtype = std::nullopt) {
  return vesta::linalg_matrix_norm(self, ord, dim, keepdim, dtype);
}
inline Tensor matrix_norm(const Tensor& self, std::string_view ord = "fro", IntArrayRef dim = {-2, -1},
                          bool keepdim = false, std::optional<DType> dtype = std::nullopt) {
  return vesta::linalg_matrix_norm(self, ord, dim, keepdim, dtype);
}
inline Tensor cond(const Tensor& self, const std::optional<Scalar>& p = std::nullopt) {
  return vesta::linalg_cond(self, p);
}
inline Tensor cond(const Tensor& self, std::string_view p) { return vesta::linalg_cond(self, p); }
inline Tensor matrix_power(const Tensor& self, int64_t n) { return vesta::linalg_matrix_power(self, n); }
inline Tensor matrix_exp(const Tensor& self) { return vesta::linalg_matrix_exp(self); }
inline Tensor cross(const Tensor& self, const Tensor& other, int64_t dim = -1) {
  return vesta::linalg_cross(self, other, dim);
}
inline Tensor vecdot(const Tensor& x, const Tensor& y, int64_t dim = -1) {
  return vesta::linalg_vecdot(x, y, dim);
}
inline Tensor multi_dot(TensorList tensors) { return vesta::linalg_multi_dot(tensors); }
inline Tensor diagonal(const Tensor& A, int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1) {
  return vesta::linalg_diagonal(A, offset, dim1, dim2);
}
inline Tensor tensorinv(const Tensor& self, int64_t ind = 2) { return vesta::linalg_tensorinv(self, ind); }
inline Tensor tensorsolve(const Tensor& self, const Tensor& other, OptionalIntArrayRef dims = std::nullopt) {
  return vesta::linalg_tensorsolve(self, other, dims);
}
inline std::tuple<Tensor, Tensor> qr(const Tensor& A, std::string_view mode = "reduced") {
  return vesta::linalg_qr(A, mode);
}
inline Tensor householder_product(const Tensor& input, const Tensor& tau) {
  return vesta::linalg_householder_product(input, tau);
}
inline std::tuple<Tensor, Tensor> solve_ex(const Tensor& A, const Tensor& B, bool left = true,
                                           bool check_errors = false) {
  return vesta::linalg_solve_ex(A, B, left, check_errors);
}
inline Tensor solve(const Tensor& A, const Tensor& B, bool left = true) {
  return vesta::linalg_solve(A, B, left);
}
inline std::tuple<Tensor, Tensor> inv_ex(const Tensor& A, bool check_errors = false) {
  return vesta::linalg_inv_ex(A, check_errors);
}
inline Tensor inv(const Tensor& A) { return vesta::linalg_inv(A); }
inline Tensor det(const Tensor& A) { return vesta::linalg_det(A); }
inline std::tuple<Tensor, Tensor> slogdet(const Tensor& A) { return vesta::linalg_slogdet(A); }
inline Tensor solve_triangular(const Tensor& self, const Tensor& B, bool upper, bool left = true,
                               bool unitriangular = false) {
  return vesta::linalg_solve_triangular(self, B, upper, left, unitriangular);
}
inline std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& A, bool full_matrices = true,
                                              std::optional<std::string_view> driver = std::nullopt) {
  return vesta::linalg_svd(A, full_matrices, driver);
}
inline Tensor svdvals(const Tensor& A, std::optional<std::string_view> driver = std::nullopt) {
  return vesta::linalg_svdvals(A, driver);
}
inline std::tuple<Tensor, Tensor> polar(const Tensor& A) { return vesta::linalg_polar(A); }
inline Tensor matrix_sqrth(const Tensor& A) { return vesta::linalg_matrix_sqrth(A); }
inline Tensor matmul(const Tensor& self, const Tensor& other) { return vesta::linalg_matmul(self, other); }
inline Tensor vector_norm(const Tensor& self, const Scalar& ord = 2, OptionalIntArrayRef dim = std::nullopt,
                          bool keepdim = false, std::optional<DType> dtype = std::nullopt) {
  return vesta::linalg_vector_norm(self, ord, dim, keepdim, dtype);
}
}  // namespace torch::linalg

namespace torch::special {
inline Tensor erf(const Tensor& self) { return vesta::special_erf(self); }
inline Tensor erfc(const Tensor& self) { return vesta::special_erfc(self); }
inline Tensor erfinv(const Tensor& self) { return vesta::special_erfinv(self); }
inline Tensor exp2(const Tensor& self) { return vesta::special_exp2(self); }
inline Tensor expm1(const Tensor& self) { return vesta::special_expm1(self); }
inline Tensor log1p(const Tensor& self) { return vesta::special_log1p(self); }
inline Tensor expit(const Tensor& self) { return vesta::special_expit(self); }
inline Tensor gammaln(const Tensor& self) { return vesta::special_gammaln(self); }
inline Tensor digamma(const Tensor& self) { return vesta::special_digamma(self); }
inline Tensor psi(const Tensor& self) { return vesta::special_psi(self); }
inline Tensor sinc(const Tensor& self) { return vesta::special_sinc(self); }
inline Tensor round(const Tensor& self, int64_t decimals = 0) { return vesta::special_round(self, decimals); }
inline Tensor logit(const Tensor& self, std::optional<double> eps = std::nullopt) {
  return vesta::special_logit(self, eps);
}
inline Tensor xlogy(const Tensor& self, const Tensor& other) { return vesta::special_xlogy(self, other); }
inline Tensor xlogy(const Scalar& self, const Tensor& other) { return vesta::special_xlogy(self, other); }
inline Tensor xlogy(const Tensor& self, const Scalar& other) { return vesta::special_xlogy(self, other); }
inline Tensor xlog1py(const Tensor& self, const Tensor& other) { return vesta::special_xlog1py(self, other); }
inline Tensor xlog1py(const Scalar& self, const Tensor& other) { return vesta::special_xlog1py(self, other); }
inline Tensor xlog1py(const Tensor& self, const Scalar& other) { return vesta::special_xlog1py(self, other); }
inline Tensor multigammaln(const Tensor& self, int64_t p) { return vesta::special_multigammaln(self, p); }
inline Tensor entr(const Tensor& self) { return vesta::special_entr(self); }
inline Tensor ndtr(const Tensor& self) { return vesta::special_ndtr(self); }
inline Tensor log_ndtr(const Tensor& self) { return vesta::special_log_ndtr(self); }
inline Tensor erfcx(const Tensor& self) { return vesta::special_erfcx(self); }
inline Tensor ndtri(const Tensor& self) { return vesta::special_ndtri(self); }
inline Tensor logsumexp(const Tensor& self, IntArrayRef dim, bool keepdim = false) {
  return vesta::special_logsumexp(self, dim, keepdim);
}
inline Tensor softmax(const Tensor& self, int64_t dim, std::optional<DType> dtype = std::nullopt) {
  return vesta::special_softmax(self, dim, dtype);
}
inline Tensor log_softmax(const Tensor& self, int64_t dim, std::optional<DType> dtype = std::nullopt) {
  return vesta::special_log_softmax(self, dim, dtype);
}
inline Tensor i0(const Tensor& self) { return vesta::special_i0(self); }
inline Tensor i0e(const Tensor& self) { return vesta::special_i0e(self); }
inline Tensor i1(const Tensor& self) { return vesta::special_i1(self); }
inline Tensor i1e(const Tensor& self) { return vesta::special_i1e(self); }
inline Tensor bessel_j0(const Tensor& self) { return vesta::special_bessel_j0(self); }
inline Tensor bessel_j1(const Tensor& self) { return vesta::special_bessel_j1(self); }
inline Tensor bessel_y0(const Tensor& self) { return vesta::special_bessel_y0(self); }
inline Tensor bessel_y1(const Tensor& self) { return vesta::special_bessel_y1(self); }
inline Tensor modified_bessel_i0(const Tensor& self) { return vesta::special_modified_bessel_i0(self); }
inline Tensor modified_bessel_i1(const Tensor& self) { return vesta::special_modified_bessel_i1(self); }
inline Tensor modified_bessel_k0(const Tensor& self) { return vesta::special_modified_bessel_k0(self); }
inline Tensor modified_bessel_k1(const Tensor& self) { return vesta::special_modified_bessel_k1(self); }
inline Tensor scaled_modified_bessel_k0(const Tensor& x) {
  return vesta::special_scaled_modified_bessel_k0(x);
}
inline Tensor scaled_modified_bessel_k1(const Tensor& x) {
  return vesta::special_scaled_modified_bessel_k1(x);
}
inline Tensor spherical_bessel_j0(const Tensor& x) { return vesta::special_spherical_bessel_j0(x); }
inline Tensor airy_ai(const Tensor& x) { return vesta::special_airy_ai(x); }
inline Tensor zeta(const Tensor& self, const Tensor& other) { return vesta::special_zeta(self, other); }
inline Tensor zeta(const Scalar& self, const Tensor& other) { return vesta::special_zeta(self, other); }
inline Tensor zeta(const Tensor& self, const Scalar& other) { return vesta::special_zeta(self, other); }
inline Tensor polygamma(int64_t n, const Tensor& self) { return vesta::special_polygamma(n, self); }
inline Tensor gammainc(const Tensor& self, const Tensor& other) {
  return vesta::special_gammainc(self, other);
}
inline Tensor gammaincc(const Tensor& self, const Tensor& other) {
  return vesta::special_gammaincc(self, other);
}
inline Tensor chebyshev_polynomial_t(const Tensor& x, const Tensor& n) {
  return vesta::special_chebyshev_polynomial_t(x, n);
}
inline Tensor chebyshev_polynomial_t(const Scalar& x, const Tensor& n) {
  return vesta::special_chebyshev_polynomial_t(x, n);
}
inline Tensor chebyshev_polynomial_t(const Tensor& x, const Scalar& n) {
  return vesta::special_chebyshev_polynomial_t(x, n);
}
inline Tensor chebyshev_polynomial_u(const Tensor& x, const Tensor& n) {
  return vesta::special_chebyshev_polynomial_u(x, n);
}
inline Tensor chebyshev_polynomial_u(const Scalar& x, const Tensor& n) {
  return vesta::special_chebyshev_polynomial_u(x, n);
}
inline Tensor chebyshev_polynomial_u(const Tensor& x, const Scalar& n) {
  return vesta::special_chebyshev_polynomial_u(x, n);
}
inline Tensor chebyshev_polynomial_v(const Tensor& x, const Tensor& n) {
  return vesta::special_chebyshev_polynomial_v(x, n);
}
inline Tensor chebyshev_polynomial_v(const Scalar& x, const Tensor& n) {
  return vesta::special_chebyshev_polynomial_v(x, n);
}
inline Tensor chebyshev_polynomial_v(const Tensor& x, const Scalar& n) {
  return vesta::special_chebyshev_polynomial_v(x, n);
}
inline Tensor chebyshev_polynomial_w(const Tensor& x, const Tensor& n) {
  return vesta::special_chebyshev_polynomial_w(x, n);
}
inline Tensor chebyshev_polynomial_w(const Scalar& x, const Tensor& n) {
  return vesta::special_chebyshev_polynomial_w(x, n);
}
inline Tensor chebyshev_polynomial_w(const Tensor& x, const Scalar& n) {
  return vesta::special_chebyshev_polynomial_w(x, n);
}
inline Tensor shifted_chebyshev_polynomial_t(const Tensor& x, const Tensor& n) {
  return vesta::special_shifted_chebyshev_polynomial_t(x, n);
}
inline Tensor shifted_chebyshev_polynomial_t(const Scalar& x, const Tensor& n) {
  return vesta::special_shifted_chebyshev_polynomial_t(x, n);
}
inline Tensor shifted_chebyshev_polynomial_t(const Tensor& x, const Scalar& n) {
  return vesta::special_shifted_chebyshev_polynomial_t(x, n);
}
inline Tensor shifted_chebyshev_polynomial_u(const Tensor& x, const Tensor& n) {
  return vesta::special_shifted_chebyshev_polynomial_u(x, n);
}
inline Tensor shifted_chebyshev_polynomial_u(const Scalar& x, const Tensor& n) {
  return vesta::special_shifted_chebyshev_polynomial_u(x, n);
}
inline Tensor shifted_chebyshev_polynomial_u(const Tensor& x, const Scalar& n) {
  return vesta::special_shifted_chebyshev_polynomial_u(x, n);
}
inline Tensor shifted_chebyshev_polynomial_v(const Tensor& x, const Tensor& n) {
  return vesta::special_shifted_chebyshev_polynomial_v(x, n);
}
inline Tensor shifted_chebyshev_polynomial_v(const Scalar& x, const Tensor& n) {
  return vesta::special_shifted_chebyshev_polynomial_v(x, n);
}
inline Tensor shifted_chebyshev_polynomial_v(const Tensor& x, const Scalar& n) {
  return vesta::special_shifted_chebyshev_polynomial_v(x, n);
}
inline Tensor shifted_chebyshev_polynomial_w(const Tensor& x, const Tensor& n) {
  return vesta::special_shifted_chebyshev_polynomial_w(x, n);
}
inline Tensor shifted_chebyshev_polynomial_w(const Scalar& x, const Tensor& n) {
  return vesta::special_shifted_chebyshev_polynomial_w(x, n);
}
inline Tensor shifted_chebyshev_polynomial_w(const Tensor& x, const Scalar& n) {
  return vesta::special_shifted_chebyshev_polynomial_w(x, n);
}
inline Tensor hermite_polynomial_h(const Tensor& x, const Tensor& n) {
  return vesta::special_hermite_polynomial_h(x, n);
}
inline Tensor hermite_polynomial_h(const Scalar& x, const Tensor& n) {
  return vesta::special_hermite_polynomial_h(x, n);
}
inline Tensor hermite_polynomial_h(const Tensor& x, const Scalar& n) {
  return vesta::special_hermite_polynomial_h(x, n);
}
inline Tensor hermite_polynomial_he(const Tensor& x, const Tensor& n) {
  return vesta::special_hermite_polynomial_he(x, n);
}
inline Tensor hermite_polynomial_he(const Scalar& x, const Tensor& n) {
  return vesta::special_hermite_polynomial_he(x, n);
}
inline Tensor hermite_polynomial_he(const Tensor& x, const Scalar& n) {
  return vesta::special_hermite_polynomial_he(x, n);
}
inline Tensor laguerre_polynomial_l(const Tensor& x, const Tensor& n) {
  return vesta::special_laguerre_polynomial_l(x, n);
}
inline Tensor laguerre_polynomial_l(const Scalar& x, const Tensor& n) {
  return vesta::special_laguerre_polynomial_l(x, n);
}
inline Tensor laguerre_polynomial_l(const Tensor& x, const Scalar& n) {
  return vesta::special_laguerre_polynomial_l(x, n);
}
inline Tensor legendre_polynomial_p(const Tensor& x, const Tensor& n) {
  return vesta::special_legendre_polynomial_p(x, n);
}
inline Tensor legendre_polynomial_p(const Scalar& x, const Tensor& n) {
  return vesta::special_legendre_polynomial_p(x, n);
}
inline Tensor legendre_polynomial_p(const Tensor& x, const Scalar& n) {
  return vesta::special_legendre_polynomial_p(x, n);
}
}  // namespace torch::special
