// The only file that knows LAPACK's symbols. Fortran passes every argument by address and appends one hidden length
// for each character argument; the symbols of the four element types differ in their first letter.
#include "kernels/cpu/lapack.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include "base/config.h"
#include "base/dl.h"
#include "vesta/error.h"

namespace vesta::cpu::lapack {
namespace {

using Int = const int*;
using Char = const char*;

template <class T>
constexpr bool kComplex = !std::is_same_v<T, Real<T>>;
template <class T>
constexpr int kType = std::is_same_v<T, float>                 ? 0
                      : std::is_same_v<T, double>              ? 1
                      : std::is_same_v<T, std::complex<float>> ? 2
                                                               : 3;

// Routines by element type. Real and complex ones share a signature where LAPACK gives them one.
struct Table {
  using Getrf = void(Int, Int, void*, Int, int*, int*);
  using Getrs = void(Char, Int, Int, const void*, Int, Int, void*, Int, int*, size_t);
  using Potrf = void(Char, Int, void*, Int, int*, size_t);
  using Potrs = void(Char, Int, Int, const void*, Int, void*, Int, int*, size_t);
  using Sytrf = void(Char, Int, void*, Int, int*, void*, Int, int*, size_t);
  using Trsm = void(Char, Char, Char, Char, Int, Int, const void*, const void*, Int, void*, Int, size_t,
                    size_t, size_t, size_t);
  using Geqrf = void(Int, Int, void*, Int, void*, void*, Int, int*);
  using Orgqr = void(Int, Int, Int, void*, Int, const void*, void*, Int, int*);
  using Ormqr = void(Char, Char, Int, Int, Int, const void*, Int, const void*, void*, Int, void*, Int, int*,
                     size_t, size_t);
  using Syevd = void(Char, Char, Int, void*, Int, void*, void*, Int, int*, Int, int*, size_t, size_t);
  using Heevd = void(Char, Char, Int, void*, Int, void*, void*, Int, void*, Int, int*, Int, int*, size_t,
                     size_t);
  using GeevReal = void(Char, Char, Int, void*, Int, void*, void*, void*, Int, void*, Int, void*, Int, int*,
                        size_t, size_t);
  using GeevComplex = void(Char, Char, Int, void*, Int, void*, void*, Int, void*, Int, void*, Int, void*,
                           int*, size_t, size_t);
  using GesddReal = void(Char, Int, Int, void*, Int, void*, void*, Int, void*, Int, void*, Int, int*, int*,
                         size_t);
  using GesddComplex = void(Char, Int, Int, void*, Int, void*, void*, Int, void*, Int, void*, Int, void*,
                            int*, int*, size_t);
  using Gels = void(Char, Int, Int, Int, void*, Int, void*, Int, void*, Int, int*, size_t);
  using GelsyReal = void(Int, Int, Int, void*, Int, void*, Int, int*, const void*, int*, void*, Int, int*);
  using GelsyComplex = void(Int, Int, Int, void*, Int, void*, Int, int*, const void*, int*, void*, Int, void*,
                            int*);
  using GelssReal = void(Int, Int, Int, void*, Int, void*, Int, void*, const void*, int*, void*, Int, int*);
  using GelssComplex = void(Int, Int, Int, void*, Int, void*, Int, void*, const void*, int*, void*, Int,
                            void*, int*);
  using GelsdReal = void(Int, Int, Int, void*, Int, void*, Int, void*, const void*, int*, void*, Int, int*,
                         int*);
  using GelsdComplex = void(Int, Int, Int, void*, Int, void*, Int, void*, const void*, int*, void*, Int,
                            void*, int*, int*);

  Getrf* getrf[4];
  Getrs* getrs[4];
  Potrf* potrf[4];
  Potrs* potrs[4];
  Sytrf *sytrf[4], *hetrf[4];  // of a real matrix both are sytrf
  Getrs *sytrs[4], *hetrs[4];
  Trsm* trsm[4];
  Geqrf* geqrf[4];
  Orgqr* orgqr[4];
  Ormqr* ormqr[4];
  Syevd* syevd[2];
  Heevd* heevd[2];
  GeevReal* geev_real[2];
  GeevComplex* geev_complex[2];
  GesddReal* gesdd_real[2];
  GesddComplex* gesdd_complex[2];
  Gels* gels[4];
  GelsyReal* gelsy_real[2];
  GelsyComplex* gelsy_complex[2];
  GelssReal* gelss_real[2];
  GelssComplex* gelss_complex[2];
  GelsdReal* gelsd_real[2];
  GelsdComplex* gelsd_complex[2];

  std::string missing;  // empty: everything was found
};

class Loader {
 public:
  explicit Loader(const Library& library) : library_(library) {}
  // `name` without its first letter, which is one of `letters`.
  template <class F, size_t n>
  void find(F* (&slots)[n], const char* letters, const char* real, const char* complex = nullptr) {
    for (size_t k = 0; k < n; ++k) {
      bool is_complex = letters[k] == 'c' || letters[k] == 'z';
      std::string name = letters[k] + std::string(is_complex && complex ? complex : real) + "_";
      Result<F*> found = library_.symbol<F>(name);
      if (found)
        slots[k] = *found;
      else if (missing.empty())
        missing = found.error();
    }
  }
  std::string missing;

 private:
  const Library& library_;
};

// Tries one library; `missing` says why it will not do.
Table load(const char* name) {
  Table t{};
  Result<Library> library = Library::open(name);
  if (!library) {
    t.missing = library.error();
    return t;
  }
  Loader l(*library);
  constexpr const char *kAll = "sdcz", *kReal = "sd", *kCplx = "cz";
  l.find(t.getrf, kAll, "getrf");
  l.find(t.getrs, kAll, "getrs");
  l.find(t.potrf, kAll, "potrf");
  l.find(t.potrs, kAll, "potrs");
  l.find(t.sytrf, kAll, "sytrf");
  l.find(t.hetrf, kAll, "sytrf", "hetrf");
  l.find(t.sytrs, kAll, "sytrs");
  l.find(t.hetrs, kAll, "sytrs", "hetrs");
  l.find(t.trsm, kAll, "trsm");
  l.find(t.geqrf, kAll, "geqrf");
  l.find(t.orgqr, kAll, "orgqr", "ungqr");
  l.find(t.ormqr, kAll, "ormqr", "unmqr");
  l.find(t.syevd, kReal, "syevd");
  l.find(t.heevd, kCplx, "heevd");
  l.find(t.geev_real, kReal, "geev");
  l.find(t.geev_complex, kCplx, "geev");
  l.find(t.gesdd_real, kReal, "gesdd");
  l.find(t.gesdd_complex, kCplx, "gesdd");
  l.find(t.gels, kAll, "gels");
  l.find(t.gelsy_real, kReal, "gelsy");
  l.find(t.gelsy_complex, kCplx, "gelsy");
  l.find(t.gelss_real, kReal, "gelss");
  l.find(t.gelss_complex, kCplx, "gelss");
  l.find(t.gelsd_real, kReal, "gelsd");
  l.find(t.gelsd_complex, kCplx, "gelsd");
  t.missing = l.missing;
  // OpenBLAS would start threads of its own below ours. Other libraries have no such symbol.
  if (t.missing.empty())
    if (auto threads = library->symbol<void(int)>("openblas_set_num_threads")) (*threads)(1);
  return t;
}

const Table& table() {
  // Loaded once; the machine's choice (update-alternatives) comes first.
  static const Table loaded = [] {
    if (!config().lapack.empty()) return load(config().lapack.c_str());
    Table t = load("liblapack.so.3");
    if (t.missing.empty()) return t;
    std::string first = t.missing;
    t = load("libopenblas.so.0");
    if (!t.missing.empty()) t.missing = first + "; " + t.missing;
    return t;
  }();
  return loaded;
}

// What a workspace query returned, as a length. Single precision cannot hold every integer: rounded up.
template <class T>
int work_length(T answer) {
  double n = double(std::real(answer));
  n = std::max(1.0, std::ceil(n * (1 + double(std::numeric_limits<Real<T>>::epsilon()))));
  VESTA_CHECK(n <= double(std::numeric_limits<int>::max()),
              "linalg: the matrix is too large for LAPACK's 32-bit sizes");
  return int(n);
}
template <class V>
void grow(V& v, int64_t n) {
  if (int64_t(v.size()) < n) v.resize(size_t(n));
}
int at_least_one(int n) { return std::max(1, n); }

// Runs call(work, lwork) twice: a query, then with memory.
template <class T, class Call>
void with_work(Scratch<T>& s, Call&& call) {
  T answer{};
  int query = -1;
  call(&answer, &query);
  int length = work_length(answer);
  grow(s.work, length);
  call(s.work.data(), &length);
}

}  // namespace

void require(const char* op) {
  const std::string& missing = table().missing;
  VESTA_CHECK_AS(
      NotImplementedError, missing.empty(), op,
      ": linalg needs LAPACK; install liblapack3 (or libopenblas0), or set VESTA_LAPACK: ", missing);
}
int narrow(int64_t size, const char* op) {
  VESTA_CHECK(size <= std::numeric_limits<int>::max(), op, ": a size of ", size, " is too large for LAPACK");
  return int(size);
}

template <class T>
int getrf(int m, int n, T* a, int* pivots) {
  int info = 0, lda = at_least_one(m);
  table().getrf[kType<T>](&m, &n, a, &lda, pivots, &info);
  return info;
}
template <class T>
int getrs(char trans, int n, int nrhs, const T* lu, const int* pivots, T* b) {
  int info = 0, ld = at_least_one(n);
  table().getrs[kType<T>](&trans, &n, &nrhs, lu, &ld, pivots, b, &ld, &info, 1);
  return info;
}
template <class T>
int potrf(char uplo, int n, T* a) {
  int info = 0, lda = at_least_one(n);
  table().potrf[kType<T>](&uplo, &n, a, &lda, &info, 1);
  return info;
}
template <class T>
int potrs(char uplo, int n, int nrhs, const T* factor, T* b) {
  int info = 0, ld = at_least_one(n);
  table().potrs[kType<T>](&uplo, &n, &nrhs, factor, &ld, b, &ld, &info, 1);
  return info;
}
template <class T>
int sytrf(bool hermitian, char uplo, int n, T* a, int* pivots, Scratch<T>& s) {
  int info = 0, lda = at_least_one(n);
  auto* f = (hermitian ? table().hetrf : table().sytrf)[kType<T>];
  with_work(s, [&](T* work, int* lwork) { f(&uplo, &n, a, &lda, pivots, work, lwork, &info, 1); });
  return info;
}
template <class T>
int sytrs(bool hermitian, char uplo, int n, int nrhs, const T* factor, const int* pivots, T* b) {
  int info = 0, ld = at_least_one(n);
  (hermitian ? table().hetrs : table().sytrs)[kType<T>](&uplo, &n, &nrhs, factor, &ld, pivots, b, &ld, &info,
                                                        1);
  return info;
}
template <class T>
void trsm(char side, char uplo, char trans, char diag, int m, int n, const T* a, int lda, T* b) {
  T one = 1;
  int ldb = at_least_one(m);
  table().trsm[kType<T>](&side, &uplo, &trans, &diag, &m, &n, &one, a, &lda, b, &ldb, 1, 1, 1, 1);
}
template <class T>
int geqrf(int m, int n, T* a, T* tau, Scratch<T>& s) {
  int info = 0, lda = at_least_one(m);
  with_work(s,
            [&](T* work, int* lwork) { table().geqrf[kType<T>](&m, &n, a, &lda, tau, work, lwork, &info); });
  return info;
}
template <class T>
int orgqr(int m, int n, int k, T* a, T* tau, Scratch<T>& s) {
  int info = 0, lda = at_least_one(m);
  with_work(
      s, [&](T* work, int* lwork) { table().orgqr[kType<T>](&m, &n, &k, a, &lda, tau, work, lwork, &info); });
  return info;
}
template <class T>
int ormqr(char side, bool adjoint, int m, int n, int k, const T* a, int lda, const T* tau, T* c,
          Scratch<T>& s) {
  int info = 0, ldc = at_least_one(m);
  char trans = !adjoint ? 'N' : kComplex<T> ? 'C' : 'T';
  with_work(s, [&](T* work, int* lwork) {
    table().ormqr[kType<T>](&side, &trans, &m, &n, &k, a, &lda, tau, c, &ldc, work, lwork, &info, 1, 1);
  });
  return info;
}

template <class T>
int heevd(bool vectors, char uplo, int n, T* a, Real<T>* w, Scratch<T>& s) {
  int info = 0, lda = at_least_one(n), query = -1, integers = 0;
  char job = vectors ? 'V' : 'N';
  T answer{};
  if constexpr (kComplex<T>) {
    auto* f = table().heevd[kType<T> - 2];
    Real<T> reals{};
    f(&job, &uplo, &n, a, &lda, w, &answer, &query, &reals, &query, &integers, &query, &info, 1, 1);
    int lwork = work_length(answer), lreal = work_length(reals);
    grow(s.work, lwork);
    grow(s.real, lreal);
    grow(s.integer, integers);
    f(&job, &uplo, &n, a, &lda, w, s.work.data(), &lwork, s.real.data(), &lreal, s.integer.data(), &integers,
      &info, 1, 1);
  } else {
    auto* f = table().syevd[kType<T>];
    f(&job, &uplo, &n, a, &lda, w, &answer, &query, &integers, &query, &info, 1, 1);
    int lwork = work_length(answer);
    grow(s.work, lwork);
    grow(s.integer, integers);
    f(&job, &uplo, &n, a, &lda, w, s.work.data(), &lwork, s.integer.data(), &integers, &info, 1, 1);
  }
  return info;
}

template <class T>
int geev(int n, T* a, std::complex<Real<T>>* w, std::complex<Real<T>>* v, Scratch<T>& s) {
  int info = 0, ld = at_least_one(n), one = 1;
  char none = 'N', job = v ? 'V' : 'N';
  if constexpr (kComplex<T>) {
    grow(s.real, 2 * int64_t(n));
    with_work(s, [&](T* work, int* lwork) {
      table().geev_complex[kType<T> - 2](&none, &job, &n, a, &ld, w, nullptr, &one, v, v ? &ld : &one, work,
                                         lwork, s.real.data(), &info, 1, 1);
    });
  } else {
    // wr, wi, then the packed eigenvectors; s.work stays LAPACK's own.
    int64_t nn = int64_t(n) * n;
    grow(s.real, 2 * int64_t(n) + (v ? nn : 1));
    T *wr = s.real.data(), *wi = wr + n, *packed = wi + n;
    with_work(s, [&](T* work, int* lwork) {
      table().geev_real[kType<T>](&none, &job, &n, a, &ld, wr, wi, nullptr, &one, packed, v ? &ld : &one,
                                  work, lwork, &info, 1, 1);
    });
    for (int j = 0; j < n; ++j) w[j] = {wr[j], wi[j]};
    // A complex pair (j, j + 1) has its vector's real part in column j and the imaginary part in column j + 1.
    for (int j = 0; v && j < n; ++j) {
      const T* re = packed + int64_t(j) * n;
      auto* out = v + int64_t(j) * n;
      if (wi[j] == 0 || j + 1 == n) {
        for (int i = 0; i < n; ++i) out[i] = re[i];
        continue;
      }
      const T* im = re + n;
      for (int i = 0; i < n; ++i) {
        out[i] = {re[i], im[i]};
        out[n + i] = {re[i], -im[i]};
      }
      ++j;
    }
  }
  return info;
}

template <class T>
int gesdd(char job, int m, int n, T* a, Real<T>* sigma, T* u, T* vh, Scratch<T>& s) {
  int info = 0, k = std::min(m, n), lda = at_least_one(m), ldu = at_least_one(m),
      ldvh = at_least_one(job == 'A' ? n : k);
  if (job == 'N') ldu = ldvh = 1;
  grow(s.integer, 8 * int64_t(k) + 1);
  if constexpr (kComplex<T>) {
    // LAPACK's bound for every version since 3.7; older ones need more for 'N' (7 k).
    int64_t mx = std::max(m, n), mn = k;
    int64_t reals = job == 'N' ? 7 * mn : std::max(5 * mn * mn + 5 * mn, 2 * mx * mn + 2 * mn * mn + mn);
    grow(s.real, reals + 1);
    with_work(s, [&](T* work, int* lwork) {
      table().gesdd_complex[kType<T> - 2](&job, &m, &n, a, &lda, sigma, u, &ldu, vh, &ldvh, work, lwork,
                                          s.real.data(), s.integer.data(), &info, 1);
    });
  } else {
    with_work(s, [&](T* work, int* lwork) {
      table().gesdd_real[kType<T>](&job, &m, &n, a, &lda, sigma, u, &ldu, vh, &ldvh, work, lwork,
                                   s.integer.data(), &info, 1);
    });
  }
  return info;
}

template <class T>
int lstsq(LstsqDriver driver, int m, int n, int nrhs, T* a, T* b, Real<T>* sigma, Real<T> rcond, int* rank,
          Scratch<T>& s) {
  int info = 0, lda = at_least_one(m), ldb = at_least_one(std::max(m, n)), mn = std::min(m, n);
  const Table& t = table();
  if (driver == LstsqDriver::gels) {
    char none = 'N';
    with_work(s, [&](T* work, int* lwork) {
      t.gels[kType<T>](&none, &m, &n, &nrhs, a, &lda, b, &ldb, work, lwork, &info, 1);
    });
    return info;
  }
  if (driver == LstsqDriver::gelsy) {
    grow(s.integer, n + 1);
    std::fill(s.integer.begin(), s.integer.begin() + n, 0);  // every column may be moved
    if constexpr (kComplex<T>) {
      grow(s.real, 2 * int64_t(n) + 1);
      with_work(s, [&](T* work, int* lwork) {
        t.gelsy_complex[kType<T> - 2](&m, &n, &nrhs, a, &lda, b, &ldb, s.integer.data(), &rcond, rank, work,
                                      lwork, s.real.data(), &info);
      });
    } else {
      with_work(s, [&](T* work, int* lwork) {
        t.gelsy_real[kType<T>](&m, &n, &nrhs, a, &lda, b, &ldb, s.integer.data(), &rcond, rank, work, lwork,
                               &info);
      });
    }
    return info;
  }
  if (driver == LstsqDriver::gelss) {
    if constexpr (kComplex<T>) {
      grow(s.real, 5 * int64_t(mn) + 1);
      with_work(s, [&](T* work, int* lwork) {
        t.gelss_complex[kType<T> - 2](&m, &n, &nrhs, a, &lda, b, &ldb, sigma, &rcond, rank, work, lwork,
                                      s.real.data(), &info);
      });
    } else {
      with_work(s, [&](T* work, int* lwork) {
        t.gelss_real[kType<T>](&m, &n, &nrhs, a, &lda, b, &ldb, sigma, &rcond, rank, work, lwork, &info);
      });
    }
    return info;
  }
  // gelsd tells the lengths of its integer and real memory in the query, too.
  T answer{};
  int query = -1, integers = 0;
  if constexpr (kComplex<T>) {
    auto* f = t.gelsd_complex[kType<T> - 2];
    Real<T> reals{};
    f(&m, &n, &nrhs, a, &lda, b, &ldb, sigma, &rcond, rank, &answer, &query, &reals, &integers, &info);
    int lwork = work_length(answer);
    grow(s.work, lwork);
    grow(s.real, work_length(reals));
    grow(s.integer, at_least_one(integers));
    f(&m, &n, &nrhs, a, &lda, b, &ldb, sigma, &rcond, rank, s.work.data(), &lwork, s.real.data(),
      s.integer.data(), &info);
  } else {
    auto* f = t.gelsd_real[kType<T>];
    f(&m, &n, &nrhs, a, &lda, b, &ldb, sigma, &rcond, rank, &answer, &query, &integers, &info);
    int lwork = work_length(answer);
    grow(s.work, lwork);
    grow(s.integer, at_least_one(integers));
    f(&m, &n, &nrhs, a, &lda, b, &ldb, sigma, &rcond, rank, s.work.data(), &lwork, s.integer.data(), &info);
  }
  return info;
}

#define VESTA_LAPACK_FOR(T)                                                                   \
  template int getrf<T>(int, int, T*, int*);                                                  \
  template int getrs<T>(char, int, int, const T*, const int*, T*);                            \
  template int potrf<T>(char, int, T*);                                                       \
  template int potrs<T>(char, int, int, const T*, T*);                                        \
  template int sytrf<T>(bool, char, int, T*, int*, Scratch<T>&);                              \
  template int sytrs<T>(bool, char, int, int, const T*, const int*, T*);                      \
  template void trsm<T>(char, char, char, char, int, int, const T*, int, T*);                 \
  template int geqrf<T>(int, int, T*, T*, Scratch<T>&);                                       \
  template int orgqr<T>(int, int, int, T*, T*, Scratch<T>&);                                  \
  template int ormqr<T>(char, bool, int, int, int, const T*, int, const T*, T*, Scratch<T>&); \
  template int heevd<T>(bool, char, int, T*, Real<T>*, Scratch<T>&);                          \
  template int geev<T>(int, T*, std::complex<Real<T>>*, std::complex<Real<T>>*, Scratch<T>&); \
  template int gesdd<T>(char, int, int, T*, Real<T>*, T*, T*, Scratch<T>&);                   \
  template int lstsq<T>(LstsqDriver, int, int, int, T*, T*, Real<T>*, Real<T>, int*, Scratch<T>&);
VESTA_LAPACK_FOR(float)
VESTA_LAPACK_FOR(double)
VESTA_LAPACK_FOR(std::complex<float>)
VESTA_LAPACK_FOR(std::complex<double>)
#undef VESTA_LAPACK_FOR

}  // namespace vesta::cpu::lapack
