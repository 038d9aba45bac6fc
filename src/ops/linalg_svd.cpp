// Singular values and vectors, and what is one formula away: polar decomposition and the Hermitian square root.
#include <algorithm>

#include "ops/infer.h"
#include "ops/matrix.h"
#include "vesta/ops.h"

namespace vesta {
namespace {

using namespace op_block;
using namespace matrix;
namespace lapack = cpu::lapack;

void check_driver(const Args& a, int i) {
  if (!a.has(i)) return;
  // PyTorch takes them on CUDA only.
  throw ValueError(detail::message(a.name(), ": driver '", a.string(i), "' is for CUDA tensors only; leave it out"));
}
void infer_svd(InferCtx& c) {
  check_matrix(c, 0);
  check_field(c, 0);
  check_driver(c, 3);
  bool full = c.flag(1), vectors = c.flag(2);
  Sizes batch = batch_of(c.sizes(0));
  SymInt m = rows(c, 0), n = columns(c, 0), k = smaller(m, n);
  DType t = c.dtype_of(0);
  if (vectors) {
    out_columns(c, 0, batch, m, full ? m : k, t);
    out_columns(c, 2, batch, full ? n : k, n, t);
  } else {
    c.out(0, {SymInt(0)}, t, c.tensor(0).device());
    c.out(2, {SymInt(0)}, t, c.tensor(0).device());
  }
  out_rows(c, 1, batch, {k}, real_of(t));
}
void k_svd(const KernelCtx& k) {
  const Tensor& a = k.tensor(0);
  bool full = k.flag(1), vectors = k.flag(2);
  int m = lapack::narrow(a.size(-2), k.name()), n = lapack::narrow(a.size(-1), k.name());
  if (a.numel() == 0) {  // no singular values; full vectors are an identity
    if (vectors && k.out(0).numel()) assign(k.out(0), eye(m, a.options()));
    if (vectors && k.out(2).numel()) assign(k.out(2), eye(n, a.options()));
    return;
  }
  Tensor work = columns_copy(a);
  check_finite(k, work);
  std::vector<int64_t> batch(a.sizes().begin(), a.sizes().end() - 2);
  Tensor info = zeros(batch, TensorOptions(kInt));
  lapack::require(k.name());
  visit_field(a.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    Stack<T> x = stack_of<T>(work), u{}, vh{};
    if (vectors) u = stack_of<T>(k.out(0)), vh = stack_of<T>(k.out(2));
    auto s = stack_of<lapack::Real<T>>(k.out(1), 1);
    Stack<int> infos = stack_of<int>(info, 0);
    for_batch(batch_count(a.sizes()), 20.0 * m * n * std::min(m, n), [&](int64_t begin, int64_t end) {
      lapack::Scratch<T> scratch;
      for (int64_t b = begin; b < end; ++b)
        *infos[b] = lapack::gesdd(!vectors ? 'N' : full ? 'A' : 'S', m, n, x[b], s[b], vectors ? u[b] : nullptr, vectors ? vh[b] : nullptr, scratch);
    });
  });
  check_infos(public_name(k), info, no_convergence_reason);
}
Tensor skew_doubled(const Tensor& t) { return t - mh(t); }
// With F = U^H gU - gU^H U and G likewise of V: gA = U [(F S + S G) / (s_j^2 - s_i^2) + diag(gS)] V^H, and the parts of
// gU and gV outside of the spaces that U and V span. Derivatives along the free phase of complex vectors are dropped.
int vjp_svd(const Grad& g) {
  return grads(G(0) {
    Tensor gu = g.flag(2) ? g.dy(0) : Tensor(), gs = g.dy(1), gvh = g.flag(2) ? g.dy(2) : Tensor();
    Tensor u = g.out(0), s = g.out(1), vh = g.out(2);
    if (s.numel() == 0) return zeros(g.sizes(0), TensorOptions(g.dtype_of(0)));
    if (!g.flag(2)) std::tie(u, s, vh) = _linalg_svd(g.in(0), false, true);
    int64_t m = u.size(-2), n = vh.size(-1), k = std::min(m, n);
    if (g.flag(1)) {  // the vectors beyond k are any basis of the rest
      u = u.narrow(-1, 0, k), vh = vh.narrow(-2, 0, k);
      if (gu.defined()) gu = gu.narrow(-1, 0, k);
      if (gvh.defined()) gvh = gvh.narrow(-2, 0, k);
    }
    if (!gu.defined() && !gvh.defined()) return matmul(u * gs.unsqueeze(-2), vh);
    Tensor middle, f, h;
    if (gu.defined()) f = skew_doubled(matmul(mh(u), gu)), middle = f * s.unsqueeze(-2);
    if (gvh.defined()) h = skew_doubled(matmul(vh, mh(gvh))), middle = sum_of(middle, h * s.unsqueeze(-1));
    Tensor s2 = s * s, gap = s2.unsqueeze(-2) - s2.unsqueeze(-1) + eye(k, s.options());
    middle = (middle - diag_embed(main_diagonal(middle))) / gap;
    if (f.defined() && f.is_complex()) middle = middle + diag_embed(main_diagonal(f) / (s * 2));
    if (gs.defined()) middle = middle + diag_embed(gs);
    Tensor ga = matmul(u, matmul(middle, vh));
    if (m > k && gu.defined()) {
      Tensor w = gu / s.unsqueeze(-2);
      ga = ga + matmul(w - matmul(u, matmul(mh(u), w)), vh);
    }
    if (n > k && gvh.defined()) {
      Tensor w = gvh / s.unsqueeze(-1);
      ga = ga + matmul(u, w - matmul(matmul(w, mh(vh)), vh));
    }
    return ga; });
}
Results svd_legacy(const Args& a) {
  const Tensor& t = a.tensor(0);
  check_matrix(a, 0);
  bool some = a.flag(1);
  if (a.flag(2)) {
    auto [u, s, vh] = linalg_svd(t, !some);
    return {u, s, mh(vh)};
  }
  // Vectors that were not asked for are zeros.
  Tensor s = linalg_svdvals(t);
  std::vector<int64_t> su = t.sizes().vec(), sv = su;
  su.back() = t.size(-2);
  sv[sv.size() - 2] = t.size(-1);
  return {zeros(su, t.options()), s, zeros(sv, t.options())};
}

// ---- polar ----
void check_tall(const Args& a) {
  check_matrix(a, 0);
  check_field(a, 0);
  ArrayRef<SymInt> s = InferCtx::sizes_of(a.tensor(0));
  VESTA_CHECK(s[s.size() - 2] >= s[s.size() - 1], a.name(), ": expected at least as many rows as columns, got ", s[s.size() - 2].str(), " x ", s[s.size() - 1].str());
}
Results polar_decompose(const Args& a) {
  check_tall(a);
  auto [w, s, vh] = linalg_svd(a.tensor(0), false);
  Tensor h = matmul(mh(vh) * s.unsqueeze(-2), vh);
  return {matmul(w, vh), hermitian_part_doubled(h) * 0.5};
}
// The solution Z of H Z + Z H = Y for a Hermitian positive H with eigenvalues w and vectors v.
Tensor sylvester(const Tensor& w, const Tensor& v, const Tensor& y) {
  Tensor inner = matmul(mh(v), matmul(y, v)) / (w.unsqueeze(-1) + w.unsqueeze(-2));
  return matmul(v, matmul(inner, mh(v)));
}
// dU = U X + (I - U U^H) dA H^-1 and dH = U^H dA - X H, where X is skew and H X + X H = U^H dA - dA^H U.
int vjp_polar(const Grad& g) {
  return grads(G(0) {
    Tensor u = g.out(0), h = g.out(1), gu = g.dy(0), gh = g.dy(1), y, ga;
    if (u.numel() == 0) return zeros(g.sizes(0), u.options());
    if (gh.defined()) {
      gh = hermitian_part_doubled(gh) * 0.5;
      y = -matmul(gh, h);
      ga = matmul(u, gh);
    }
    if (gu.defined()) y = sum_of(y, matmul(mh(u), gu));
    auto [w, v] = linalg_eigh(h);
    ga = sum_of(ga, matmul(u, sylvester(w, v, skew_doubled(y))));
    if (gu.defined() && u.size(-2) > u.size(-1)) {
      Tensor outside = gu - matmul(u, matmul(mh(u), gu));
      ga = ga + matmul(outside, matmul(v / w.unsqueeze(-2), mh(v)));
    }
    return ga; });
}
Results sqrth(const Args& a) {
  check_square(a, 0);
  check_field(a, 0);
  auto [w, v] = linalg_eigh(a.tensor(0));
  Tensor root = matmul(v * w.clamp_min(0).sqrt().unsqueeze(-2), mh(v));
  return hermitian_part_doubled(root) * 0.5;
}
int vjp_sqrth(const Grad& g) {
  return grads(G(0) {
    Tensor x = g.out(0);
    if (x.numel() == 0) return zeros(g.sizes(0), x.options());
    auto [w, v] = linalg_eigh(x);
    return sylvester(w, v, hermitian_part_doubled(g.dy()) * 0.5); });
}

// Singular values near 1, 2, 3: distinct and away from zero.
Tensor separated(SampleGen& s, std::vector<int64_t> sizes) {
  int64_t m = sizes[sizes.size() - 2], n = sizes.back();
  Tensor t = s.t(sizes, range(-0.3, 0.3));
  Tensor d = eye(m, n, t.options()) * (arange(0, n, t.options()) + 1);
  return t + d;
}
Tensor positive(SampleGen& s, std::vector<int64_t> sizes) {
  Tensor t = s.t(sizes, range(-1, 1));
  return (matmul(t, t.transpose(-2, -1).conj()) + eye(sizes.back(), t.options()) * 2).resolve_conj();
}
// The phase of complex vectors is LAPACK's choice, so their derivatives are checked apart (tests/ops/linalg_test.cpp).
bool free_phase(SampleGen& s) { return s.dtype() == kComplexDouble; }
void value_samples(SampleGen& s) { s(separated(s, {3, 3})); s(separated(s, {2, 2, 3})); s(separated(s, {3, 2})); s(s.t({0, 3})); s(s.t({0, 2, 2})); }

constexpr OpDef table[] = {
OP("_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
  .forms = Out, .types = lapack_types, .infer = infer_svd, .kernels = {{Cpu, k_svd}},
  .save = {in(0), out(0), out(1), out(2)}, .vjp = vjp_svd,
  .shard = {"replicate"}, .tol = {1e-4, 1e-4}, .doc = "linalg_svd; empty tensors for the vectors without compute_uv.",
  .samples = [](SampleGen& s) {
      if (!free_phase(s)) { s(separated(s, {3, 3})); s(separated(s, {2, 2, 3})); s(separated(s, {3, 2})); }
      s(separated(s, {3, 2}), false, false); s(s.t({0, 2}), true); s(s.t({2, 0})); s(s.t({0, 2, 2})); }),
OP("linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types,
  .decompose = [](const Args& a) -> Results { return _linalg_svd(a.tensor(0), a.flag(1), true, a.has(2) ? std::optional(a.string(2)) : std::nullopt); },
  .shard = {"decomp→replicate"}, .tol = {1e-4, 1e-4}, .doc = "A = U diag(S) Vh with S descending; square U and Vh where full_matrices is true.",
  .samples = [](SampleGen& s) { if (!free_phase(s)) { s(separated(s, {3, 3})); s(separated(s, {2, 2, 3}), false); } else s(s.t({0, 2})); }),
OP("linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types,
  .decompose = [](const Args& a) -> Results { return std::get<1>(_linalg_svd(a.tensor(0), false, false, a.has(1) ? std::optional(a.string(1)) : std::nullopt)); },
  .shard = {"decomp→replicate"}, .tol = {1e-4, 1e-4}, .doc = "Singular values, descending.", .samples = value_samples),
OP("svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)",
  .forms = Out, .types = lapack_types, .decompose = svd_legacy,
  .shard = {"decomp→replicate"}, .tol = {1e-4, 1e-4}, .doc = "linalg_svd that returns V in place of Vh; reduced where some is true.",
  .samples = [](SampleGen& s) { if (!free_phase(s)) s(separated(s, {3, 2})); s(separated(s, {2, 3}), true, false); }),
OP("linalg_polar(Tensor A) -> (Tensor U, Tensor H)",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types, .decompose = polar_decompose, .save = {out(0), out(1)}, .vjp = vjp_polar,
  .shard = {"linalg-batch"}, .tol = {1e-4, 1e-4}, .doc = "A = U H with orthonormal columns U and Hermitian positive semidefinite H.",
  .samples = [](SampleGen& s) { s(separated(s, {3, 3})); s(separated(s, {2, 3, 2})); s(s.t({3, 0})); }),
OP("linalg_matrix_sqrth(Tensor A) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types, .decompose = sqrth, .save = {out(0)}, .vjp = vjp_sqrth,
  .shard = {"linalg-batch"}, .tol = {1e-4, 1e-4}, .doc = "Principal square root of a Hermitian positive semidefinite matrix.",
  .samples = [](SampleGen& s) { s(positive(s, {3, 3})); s(positive(s, {2, 2, 2})); s(s.t({0, 0})); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(linalg_svd, table)
