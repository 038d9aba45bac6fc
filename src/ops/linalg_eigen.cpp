// Eigenvalues and eigenvectors of Hermitian and of general matrices.
#include "core/registry.h"
#include "ops/infer.h"
#include "ops/matrix.h"
#include "vesta/ops.h"

namespace vesta {
namespace {

using namespace op_block;
using namespace matrix;
namespace lapack = cpu::lapack;

char triangle(const Args& a, std::string_view text) {
  VESTA_CHECK(text.size() == 1 && (text[0] == 'L' || text[0] == 'U' || text[0] == 'l' || text[0] == 'u'), a.name(),
              ": expected UPLO 'L' or 'U', got '", text, "'");
  return text[0] == 'L' || text[0] == 'l' ? 'L' : 'U';
}

// ---- Hermitian ----
void infer_eigh(InferCtx& c) {
  check_square(c, 0);
  check_field(c, 0);
  triangle(c, c.string(1));
  Sizes batch = batch_of(c.sizes(0));
  SymInt n = rows(c, 0);
  out_rows(c, 0, batch, {n}, real_of(c.dtype_of(0)));
  if (c.flag(2)) out_columns(c, 1, batch, n, n, c.dtype_of(0));
  else c.out(1, {SymInt(0)}, c.dtype_of(0), c.tensor(0).device());
}
void k_eigh(const KernelCtx& k) {
  const Tensor& a = k.tensor(0);
  bool vectors = k.flag(2);
  char uplo = triangle(k, k.string(1));
  int n = lapack::narrow(a.size(-1), k.name());
  if (a.numel() == 0) return;
  // The other triangle is not read, so it may hold anything.
  Tensor work = vectors ? k.out(1) : empty_columns(a.sizes(), a.dtype());
  assign(work, uplo == 'L' ? a.tril() : a.triu());
  check_finite(k, work);
  std::vector<int64_t> batch(a.sizes().begin(), a.sizes().end() - 2);
  Tensor info = zeros(batch, TensorOptions(kInt));
  lapack::require(k.name());
  visit_field(a.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    Stack<T> v = stack_of<T>(work);
    auto w = stack_of<lapack::Real<T>>(k.out(0), 1);
    Stack<int> infos = stack_of<int>(info, 0);
    for_batch(batch_count(a.sizes()), 9.0 * n * n * n, [&](int64_t begin, int64_t end) {
      lapack::Scratch<T> scratch;
      for (int64_t b = begin; b < end; ++b) *infos[b] = lapack::heevd(vectors, uplo, n, v[b], w[b], scratch);
    });
  });
  check_infos(public_name(k), info, no_convergence_reason);
}
// Differences w_j - w_i, with ones on the diagonal.
Tensor gaps(const Tensor& w) {
  Tensor d = w.unsqueeze(-2) - w.unsqueeze(-1);
  return d + eye(w.size(-1), w.options());
}
Tensor without_diagonal(const Tensor& t) { return t - diag_embed(main_diagonal(t)); }
int vjp_eigh(const Grad& g) {
  return grads(G(0) {
    Tensor gw = g.dy(0), gv = g.flag(2) ? g.dy(1) : Tensor(), w = g.out(0), v = g.out(1);
    if (w.numel() == 0) return zeros(g.sizes(0), TensorOptions(g.dtype_of(0)));
    // Values alone: vectors are found now, in the order of the values.
    if (!g.flag(2)) std::tie(w, v) = _linalg_eigh(g.in(0), g.string(1), true);
    if (!gv.defined()) return matmul(v * gw.unsqueeze(-2), mh(v));
    Tensor middle = without_diagonal(matmul(mh(v), gv)) / gaps(w);
    if (gw.defined()) middle = middle + diag_embed(gw);
    return matmul(v, matmul(middle, mh(v))); });
}

// ---- general ----
void infer_eig(InferCtx& c) {
  check_square(c, 0);
  check_field(c, 0);
  Sizes batch = batch_of(c.sizes(0));
  SymInt n = rows(c, 0);
  DType t = c.dtype_of(0), wide = is_complex(t) ? t : complex_of(t);
  out_rows(c, 0, batch, {n}, wide);
  if (c.op().num_outs > 1) out_columns(c, 1, batch, n, n, wide);
}
void k_eig(const KernelCtx& k) {
  const Tensor& a = k.tensor(0);
  bool vectors = k.num_outs() > 1;
  int n = lapack::narrow(a.size(-1), k.name());
  if (a.numel() == 0) return;
  Tensor work = columns_copy(a);
  check_finite(k, work);
  std::vector<int64_t> batch(a.sizes().begin(), a.sizes().end() - 2);
  Tensor info = zeros(batch, TensorOptions(kInt));
  lapack::require(k.name());
  visit_field(a.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = std::complex<lapack::Real<T>>;
    Stack<T> m = stack_of<T>(work);
    Stack<C> w = stack_of<C>(k.out(0), 1), v = vectors ? stack_of<C>(k.out(1)) : Stack<C>{};
    Stack<int> infos = stack_of<int>(info, 0);
    for_batch(batch_count(a.sizes()), 25.0 * n * n * n, [&](int64_t begin, int64_t end) {
      lapack::Scratch<T> scratch;
      for (int64_t b = begin; b < end; ++b) *infos[b] = lapack::geev(n, m[b], w[b], vectors ? v[b] : nullptr, scratch);
    });
  });
  check_infos(public_name(k), info, no_convergence_reason);
}
// For vectors of length 1: gA = V^-H (diag(gw) + (V^H gV - V^H V Re(diag(V^H gV))) / conj(gaps)) V^H.
Tensor eig_gradient(const Tensor& w, const Tensor& v, const Tensor& gw, const Tensor& gv) {
  Tensor middle;
  if (gv.defined()) {
    Tensor t = matmul(mh(v), gv);
    Tensor length = vesta::real(main_diagonal(t)).unsqueeze(-2);
    middle = without_diagonal(t - matmul(mh(v), v) * length) / gaps(w).conj();
  }
  if (gw.defined()) middle = sum_of(middle, diag_embed(gw));
  return linalg_solve(mh(v), matmul(middle, mh(v)));
}
int vjp_eig(const Grad& g) {
  return grads(G(0) {
    if (g.out(0).numel() == 0) return zeros(g.sizes(0), TensorOptions(g.dtype_of(0)));
    Tensor r = eig_gradient(g.out(0), g.out(1), g.dy(0), g.dy(1));
    return is_complex(g.dtype_of(0)) ? r : vesta::real(r); });
}
int vjp_eigvals(const Grad& g) {
  return grads(G(0) {
    if (g.out(0).numel() == 0) return zeros(g.sizes(0), TensorOptions(g.dtype_of(0)));
    auto [w, v] = linalg_eig(g.in(0));
    // LAPACK may order the values otherwise when it computes vectors: each takes the gradient of the nearest.
    Tensor nearest = (g.out(0).detach().unsqueeze(-1) - w.detach().unsqueeze(-2)).abs().argmin(-2, false);
    Tensor r = eig_gradient(w, v, g.dy(0).gather(-1, nearest), Tensor());
    return is_complex(g.dtype_of(0)) ? r : vesta::real(r); });
}

// Hermitian with distinct eigenvalues.
Tensor hermitian(SampleGen& s, std::vector<int64_t> sizes) {
  Tensor t = s.t(sizes, range(-1, 1));
  Tensor spread = arange(0, sizes.back(), TensorOptions(real_of(s.dtype()))) * 2;
  return ((t + t.transpose(-2, -1).conj()) * 0.5 + diag_embed(spread)).resolve_conj();
}
// Real matrices with distinct real eigenvalues: their vectors have no free phase but the sign.
Tensor separated(SampleGen& s, std::vector<int64_t> sizes) {
  Tensor t = s.t(sizes, range(-0.3, 0.3));
  return t + diag_embed(arange(0, sizes.back(), TensorOptions(real_of(s.dtype()))) * 2);
}
// The phase of complex vectors is LAPACK's choice, so their derivatives are checked apart (tests/ops/linalg_test.cpp).
bool free_phase(SampleGen& s) { return s.dtype() == kComplexDouble; }

constexpr OpDef table[] = {
OP("_linalg_eigh(Tensor A, str UPLO='L', bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)",
  .forms = Out, .types = lapack_types, .infer = infer_eigh, .kernels = {{Cpu, k_eigh}},
  .save = {in(0), out(0), out(1)}, .vjp = vjp_eigh,
  .shard = {"replicate"}, .tol = {1e-4, 1e-4}, .doc = "Eigenvalues, ascending, and vectors (an empty tensor without compute_v) of a Hermitian matrix given by one triangle.",
  .samples = [](SampleGen& s) { if (!free_phase(s)) { s(hermitian(s, {3, 3})); s(hermitian(s, {2, 2, 2}), "U"); } s(hermitian(s, {3, 3}), "L", false); s(s.t({0, 0})); s(s.t({0, 2, 2})); }),
OP("linalg_eigh(Tensor self, str UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types, .decompose = [](const Args& a) -> Results { return _linalg_eigh(a.tensor(0), a.string(1), true); },
  .shard = {"decomp→replicate"}, .tol = {1e-4, 1e-4}, .doc = "Eigenvalues, ascending, and eigenvectors of a Hermitian matrix; one triangle is read.",
  .samples = [](SampleGen& s) { if (!free_phase(s)) { s(hermitian(s, {3, 3})); s(hermitian(s, {2, 2, 2}), "U"); } else s(s.t({0, 0})); }),
OP("linalg_eigvalsh(Tensor self, str UPLO='L') -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types, .decompose = [](const Args& a) -> Results { return std::get<0>(_linalg_eigh(a.tensor(0), a.string(1), false)); },
  .shard = {"decomp→replicate"}, .tol = {1e-4, 1e-4}, .doc = "Eigenvalues, ascending, of a Hermitian matrix.",
  .samples = [](SampleGen& s) { s(hermitian(s, {3, 3})); s(hermitian(s, {2, 2, 2}), "U"); s(s.t({0, 0})); }),
OP("linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types, .infer = infer_eig, .kernels = {{Cpu, k_eig}}, .save = {out(0), out(1)}, .vjp = vjp_eig,
  .shard = {"linalg-batch"}, .tol = {1e-4, 1e-4}, .doc = "Eigenvalues and right eigenvectors of length 1, always complex, in no set order.",
  .samples = [](SampleGen& s) { if (s.dtype() == kFloat || s.dtype() == kComplexFloat) { s(separated(s, {3, 3})); s(separated(s, {2, 2, 2})); } s(s.t({0, 0})); s(s.t({0, 2, 2})); }),
OP("_linalg_eigvals(Tensor self) -> Tensor",
  .types = lapack_types, .infer = infer_eig, .kernels = {{Cpu, k_eig}}, .non_differentiable = true,
  .shard = {"linalg-batch"}, .tol = {1e-4, 1e-4}, .doc = "Eigenvalues of a general matrix.", .samples = [](SampleGen& s) { s(separated(s, {3, 3})); s(s.t({0, 0})); }),
OP("linalg_eigvals(Tensor self) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types, .decompose = [](const Args& a) -> Results { return _linalg_eigvals(a.tensor(0)); },
  .save = {in(0), out(0)}, .vjp = vjp_eigvals,
  .shard = {"linalg-batch"}, .tol = {1e-4, 1e-4}, .doc = "Eigenvalues of a general matrix, always complex, in no set order.",
  .samples = [](SampleGen& s) { s(separated(s, {3, 3})); s(separated(s, {2, 2, 2})); s(s.t({0, 0})); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(linalg_eigen, table)
