// Cholesky factors of Hermitian positive definite matrices, and what is solved with them.
#include <cmath>
#include <complex>

#include "ops/infer.h"
#include "ops/matrix.h"
#include "vesta/ops.h"

namespace vesta {
namespace {

using namespace op_block;
using namespace matrix;
namespace lapack = cpu::lapack;

void infer_cholesky(InferCtx& c) {
  check_square(c, 0);
  check_field(c, 0);
  Sizes batch = batch_of(c.sizes(0));
  out_columns(c, 0, batch, rows(c, 0), rows(c, 0), c.dtype_of(0));
  out_rows(c, 1, batch, {}, kInt);
}
void k_cholesky(const KernelCtx& k) {
  const Tensor& a = k.tensor(0);
  bool upper = k.flag(1);
  assign(k.out(0), upper ? a.triu() : a.tril());
  k.out(1).zero_();
  int n = lapack::narrow(a.size(-1), k.name());
  if (a.numel()) {
    lapack::require(k.name());
    visit_field(a.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      Stack<T> l = stack_of<T>(k.out(0));
      Stack<int> info = stack_of<int>(k.out(1), 0);
      for_batch(batch_count(a.sizes()), double(n) * n * n / 3, [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b) {
          *info[b] = lapack::potrf(upper ? 'U' : 'L', n, l[b]);
          // Some LAPACKs (OpenBLAS) take NaN for positive. It spreads along the diagonal from the minor that has it.
          for (int i = 0; i < n && *info[b] == 0; ++i)
            if (std::isnan(std::real(l[b][int64_t(i) * (n + 1)]))) *info[b] = i + 1;
        }
      });
    });
  }
  if (k.flag(2)) check_infos(public_name(k), k.out(1), not_positive_reason);
}
// gA = L^-H (S + S^H + D) L^-1 / 2, where S is the strict lower triangle and D the diagonal of L^H gL. (I. Murray,
// "Differentiation of the Cholesky decomposition", 2016.)
int vjp_cholesky(const Grad& g) {
  return grads(G(0) {
    bool upper = g.flag(1);
    Tensor l = upper ? mh(g.out(0)) : g.out(0), dl = upper ? mh(g.dy(0)) : g.dy(0);
    Tensor inner = matmul(mh(l), dl);
    Tensor phi = hermitian_part_doubled(inner.tril(-1)) + diag_embed(main_diagonal(inner));
    Tensor left = linalg_solve_triangular(mh(l), phi, true);
    return linalg_solve_triangular(l, left, false, false) * 0.5; });
}

void infer_cholesky_solve(InferCtx& c) {
  check_square(c, 1);
  check_field(c, 0);
  check_matrix(c, 0);
  SymInt n = rows(c, 1);
  VESTA_CHECK(rows(c, 0) == n, c.name(), ": expected a right-hand side with ", n.str(), " rows, got ", rows(c, 0).str());
  Sizes x = batch_of(c.sizes(0)), y = batch_of(c.sizes(1));
  out_columns(c, 0, broadcast_sizes(c, x, y), n, columns(c, 0), c.dtype_of(0));
}
void k_cholesky_solve(const KernelCtx& k) {
  Tensor& x = k.out();
  assign(x, k.tensor(0));
  if (x.numel() == 0) return;
  std::vector<int64_t> full = x.sizes().vec();
  full.back() = x.size(-2);
  Tensor factor = columns_copy(k.tensor(1).expand(full));
  int n = lapack::narrow(x.size(-2), k.name()), nrhs = lapack::narrow(x.size(-1), k.name());
  lapack::require(k.name());
  visit_field(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    Stack<T> f = stack_of<T>(factor), b = stack_of<T>(x);
    char uplo = k.flag(2) ? 'U' : 'L';
    for_batch(batch_count(x.sizes()), 2.0 * n * n * nrhs, [&](int64_t begin, int64_t end) {
      for (int64_t e = begin; e < end; ++e) lapack::potrs(uplo, n, nrhs, f[e], b[e]);
    });
  });
}
// X = (L L^H)^-1 B: gB is the same solution of gX, and the gradient of L L^H is -gB X^H.
int vjp_cholesky_solve(const Grad& g) {
  bool upper = g.flag(2);
  Tensor gb = cholesky_solve(g.dy(), g.in(1), upper);
  return grads(
      G(0) { return gb; },
      G(1) {
        Tensor l = g.in(1), both = -hermitian_part_doubled(matmul(gb, mh(g.out())));
        // The other triangle is not read.
        return upper ? matmul(l.triu(), both).triu() : matmul(both, l.tril()).tril(); });
}

// Random positive definite matrices.
Tensor positive(SampleGen& s, std::vector<int64_t> sizes) {
  Tensor t = s.t(sizes, range(-1, 1));
  return (matmul(t, t.transpose(-2, -1).conj()) + eye(sizes.back(), t.options()) * 2).resolve_conj();
}
Tensor factor(SampleGen& s, std::vector<int64_t> sizes) {
  Tensor t = s.t(sizes, range(-1, 1));
  return (t.tril(-1) + t.triu(1) + eye(sizes.back(), t.options()) * 2);
}
void positive_samples(SampleGen& s) { s(positive(s, {3, 3})); s(positive(s, {2, 2, 2}), true); s(positive(s, {1, 1})); s(s.t({0, 0})); s(s.t({0, 2, 2})); }

constexpr OpDef table[] = {
OP("linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types, .infer = infer_cholesky, .kernels = {{Cpu, k_cholesky}},
  .save = {out(0)}, .vjp = vjp_cholesky, .non_diff_outputs = 0b10,
  .shard = {"linalg-batch"}, .doc = "Cholesky factor from one triangle; info is the order of the first minor that is not positive, or 0.", .samples = positive_samples),
OP("linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types, .decompose = [](const Args& a) -> Results { return std::get<0>(linalg_cholesky_ex(a.tensor(0), a.flag(1), true)); },
  .shard = {"linalg-batch"}, .doc = "The lower L with L L^H = self (the upper U with U^H U); LinalgError where self is not positive definite.", .samples = positive_samples),
OP("cholesky(Tensor self, bool upper=False) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types, .decompose = [](const Args& a) -> Results { return linalg_cholesky(a.tensor(0), a.flag(1)); },
  .shard = {"linalg-batch"}, .doc = "linalg_cholesky.", .samples = positive_samples),
OP("cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types, .infer = infer_cholesky_solve, .kernels = {{Cpu, k_cholesky_solve}},
  .save = {in(1), out(0).if_needs(1)}, .vjp = vjp_cholesky_solve,
  .shard = {"linalg-batch"}, .doc = "Solves A X = self from the Cholesky factor input2 of A.",
  .samples = [](SampleGen& s) { s(s.t({3, 2}), factor(s, {3, 3})); s(s.t({2, 1}), factor(s, {2, 2, 2}), true); s(s.t({0, 2, 2}), factor(s, {2, 2})); s(s.t({0, 3}), s.t({0, 0})); }),
OP("cholesky_inverse(Tensor self, bool upper=False) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types,
  .decompose = [](const Args& a) -> Results {
      check_square(a, 0);
      const Tensor& l = a.tensor(0);
      return cholesky_solve(eye(l.size(-1), l.options()).expand(l.sizes()), l, a.flag(1)); },
  .shard = {"linalg-batch"}, .doc = "Inverse of A from its Cholesky factor.",
  .samples = [](SampleGen& s) { s(factor(s, {3, 3})); s(factor(s, {2, 2, 2}), true); s(s.t({0, 0})); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(linalg_cholesky, table)
