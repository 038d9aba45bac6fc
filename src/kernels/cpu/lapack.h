#pragma once
// LAPACK and BLAS of the machine, opened at run time on first use: factorisations, solvers and eigenvalues of one
// column-major matrix. The vesta library links neither; without one installed every call here throws
// NotImplementedError that says what to install. Calls are safe from several threads: the library is told to use one
// thread of its own, batches are spread over our pool (kernels/cpu/matrix_batch.h).
// T is float, double, std::complex<float> or std::complex<double>. Sizes are int, as the reference interface has them;
// callers check them with lapack::narrow. Functions return LAPACK's info: 0, or the 1-based place of the failure.
#include <complex>
#include <cstdint>
#include <vector>

namespace vesta::cpu::lapack {

template <class T>
struct RealOf {
  using type = T;
};
template <class R>
struct RealOf<std::complex<R>> {
  using type = R;
};
template <class T>
using Real = typename RealOf<T>::type;

// Throws NotImplementedError naming `op` where no library is found.
void require(const char* op);
// The size as LAPACK's integer; ValueError naming `op` where it does not fit.
int narrow(int64_t size, const char* op);

// Memory that calls of one thread share; grows, never shrinks.
template <class T>
struct Scratch {
  std::vector<T> work;
  std::vector<Real<T>> real;
  std::vector<int> integer;
};

// P A = L U in place; pivots[min(m, n)] are 1-based row swaps. info > 0: U has a zero there.
template <class T>
int getrf(int m, int n, T* a, int* pivots);
// op(A) X = B from getrf's factors; trans is 'N', 'T' or 'C'.
template <class T>
int getrs(char trans, int n, int nrhs, const T* lu, const int* pivots, T* b);
// Cholesky factor of the triangle `uplo` in place; info > 0: the leading minor of that order is not positive.
template <class T>
int potrf(char uplo, int n, T* a);
template <class T>
int potrs(char uplo, int n, int nrhs, const T* factor, T* b);
// Bunch-Kaufman factors in place, of a Hermitian (hermitian) or symmetric matrix.
template <class T>
int sytrf(bool hermitian, char uplo, int n, T* a, int* pivots, Scratch<T>& s);
template <class T>
int sytrs(bool hermitian, char uplo, int n, int nrhs, const T* factor, const int* pivots, T* b);
// op(A) X = B (side 'L') or X op(A) = B (side 'R') for a triangular A; B is m x n. No check for zeros.
template <class T>
void trsm(char side, char uplo, char trans, char diag, int m, int n, const T* a, int lda, T* b);
// QR: reflectors below the diagonal, R on and above; tau[min(m, n)].
template <class T>
int geqrf(int m, int n, T* a, T* tau, Scratch<T>& s);
// The first n columns of the product of k reflectors, in place (m >= n >= k).
template <class T>
int orgqr(int m, int n, int k, T* a, T* tau, Scratch<T>& s);
// C = op(Q) C (side 'L') or C op(Q), C is m x n; adjoint: Q^H.
template <class T>
int ormqr(char side, bool adjoint, int m, int n, int k, const T* a, int lda, const T* tau, T* c,
          Scratch<T>& s);
// Eigenvalues, ascending, of the triangle `uplo`; with vectors they replace a.
template <class T>
int heevd(bool vectors, char uplo, int n, T* a, Real<T>* w, Scratch<T>& s);
// Eigenvalues w and right eigenvectors v (or null) of a general matrix; a is destroyed. For real T, w has n complex
// numbers and v n x n complex ones all the same.
template <class T>
int geev(int n, T* a, std::complex<Real<T>>* w, std::complex<Real<T>>* v, Scratch<T>& s);
// Singular values, descending. job 'A': square u and vh; 'S': min(m, n) columns and rows; 'N': none. a is destroyed.
template <class T>
int gesdd(char job, int m, int n, T* a, Real<T>* sigma, T* u, T* vh, Scratch<T>& s);
// Least squares for b of max(m, n) rows, overwritten by the solution. `driver`: "gels", "gelsy", "gelsd", "gelss".
// sigma[min(m, n)] is written by gelsd and gelss; rank by all but gels. a is destroyed.
enum class LstsqDriver { gels, gelsy, gelsd, gelss };
template <class T>
int lstsq(LstsqDriver driver, int m, int n, int nrhs, T* a, T* b, Real<T>* sigma, Real<T> rcond, int* rank,
          Scratch<T>& s);

}  // namespace vesta::cpu::lapack
