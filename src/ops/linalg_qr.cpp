// QR factorisations and products of Householder reflectors.
#include <algorithm>

#include "ops/infer.h"
#include "ops/matrix.h"
#include "vesta/ops.h"

namespace vesta {
namespace {

using namespace op_block;
using namespace matrix;
namespace lapack = cpu::lapack;

enum class Mode { Reduced, Complete, R };
Mode mode_of(const Args& a, std::string_view text) {
  VESTA_CHECK(text == "reduced" || text == "complete" || text == "r", a.name(), ": expected mode 'reduced', 'complete' or 'r', got '", text, "'");
  return text == "reduced" ? Mode::Reduced : text == "complete" ? Mode::Complete : Mode::R;
}
void infer_qr(InferCtx& c) {
  check_matrix(c, 0);
  check_field(c, 0);
  Mode mode = mode_of(c, c.string(1));
  Sizes batch = batch_of(c.sizes(0));
  SymInt m = rows(c, 0), n = columns(c, 0), k = mode == Mode::Complete ? m : smaller(m, n);
  if (mode == Mode::R) c.out(0, {SymInt(0)}, c.dtype_of(0), c.tensor(0).device());
  else out_columns(c, 0, batch, m, k, c.dtype_of(0));
  out_columns(c, 1, batch, k, n, c.dtype_of(0));
}
void k_qr(const KernelCtx& k) {
  const Tensor& a = k.tensor(0);
  Mode mode = mode_of(k, k.string(1));
  int64_t count = batch_count(a.sizes());
  int m = lapack::narrow(a.size(-2), k.name()), n = lapack::narrow(a.size(-1), k.name()), small = std::min(m, n);
  int width = mode == Mode::Complete ? m : small;  // columns of Q, rows of R
  if (count == 0) return;
  if (small == 0) {  // no reflectors: Q is the identity
    if (mode != Mode::R && k.out(0).numel()) assign(k.out(0), eye(m, width, a.options()));
    return;
  }
  lapack::require(k.name());
  Tensor packed = columns_copy(a);
  visit_field(a.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    Stack<T> f = stack_of<T>(packed), r = stack_of<T>(k.out(1));
    Stack<T> q = mode == Mode::R ? Stack<T>{} : stack_of<T>(k.out(0));
    for_batch(count, 4.0 * m * n * small, [&](int64_t begin, int64_t end) {
      lapack::Scratch<T> scratch;
      std::vector<T> tau(static_cast<size_t>(small));
      for (int64_t b = begin; b < end; ++b) {
        lapack::geqrf(m, n, f[b], tau.data(), scratch);
        for (int j = 0; j < n; ++j)
          for (int i = 0; i < width; ++i) r[b][int64_t(j) * width + i] = i <= j ? f[b][int64_t(j) * m + i] : T(0);
        if (mode == Mode::R) continue;
        std::fill(q[b], q[b] + int64_t(m) * width, T(0));
        std::copy(f[b], f[b] + int64_t(m) * small, q[b]);
        lapack::orgqr(m, width, small, q[b], tau.data(), scratch);
      }
    });
  });
}
// m >= n. With M = gR R^H - Q^H gQ: gA = (gQ + Q (triu(M) + triu(M)^H, diagonal once and real)) R^-H.
Tensor tall_gradient(const Tensor& q, const Tensor& r, const Tensor& gq, const Tensor& gr) {
  Tensor m;
  if (gr.defined()) m = matmul(gr, mh(r));
  if (gq.defined()) m = sum_of(m, -matmul(mh(q), gq));
  Tensor upper = m.triu(), d = main_diagonal(upper);
  Tensor middle = hermitian_part_doubled(upper) - diag_embed(d.is_complex() ? vesta::complex(vesta::real(d), zeros_like(vesta::real(d))) : d);
  return linalg_solve_triangular(mh(r), sum_of(matmul(q, middle), gq), false, false);
}
int vjp_qr(const Grad& g) {
  return grads(G(0) {
    Mode mode = mode_of(g, g.string(1));
    VESTA_CHECK_AS(NotImplementedError, mode != Mode::R, g.name(), ": the gradient needs Q; use mode 'reduced'");
    Tensor q = g.out(0), r = g.out(1), gq = g.dy(0), gr = g.dy(1);
    int64_t m = q.size(-2), n = r.size(-1);
    VESTA_CHECK_AS(NotImplementedError, mode != Mode::Complete || m <= n, g.name(), ": the gradient of mode 'complete' exists for matrices with at most as many rows as columns only");
    if (q.numel() == 0 || r.numel() == 0) return zeros(g.sizes(0), q.options());
    if (m >= n) return tall_gradient(q, r, gq, gr);
    // A = [A1 A2], A1 = Q R1 is square, R2 = Q^H A2.
    Tensor r1 = r.narrow(-1, 0, m), r2 = r.narrow(-1, m, n - m), gr1, ga2;
    if (gr.defined()) {
      Tensor gr2 = gr.narrow(-1, m, n - m);
      gr1 = gr.narrow(-1, 0, m);
      ga2 = matmul(q, gr2);
      gq = sum_of(gq, matmul(matmul(q, r2), mh(gr2)));
    } else {
      ga2 = zeros(r2.sizes(), r.options());
    }
    return cat({tall_gradient(q, r1, gq, gr1), ga2}, -1); });
}

// ---- Householder reflectors ----
void infer_geqrf(InferCtx& c) {
  check_matrix(c, 0);
  check_field(c, 0);
  Sizes batch = batch_of(c.sizes(0));
  out_columns(c, 0, batch, rows(c, 0), columns(c, 0), c.dtype_of(0));
  out_rows(c, 1, batch, {smaller(rows(c, 0), columns(c, 0))}, c.dtype_of(0));
}
void k_geqrf(const KernelCtx& k) {
  const Tensor& a = k.tensor(0);
  assign(k.out(0), a);
  if (a.numel() == 0) return;
  int m = lapack::narrow(a.size(-2), k.name()), n = lapack::narrow(a.size(-1), k.name());
  lapack::require(k.name());
  visit_field(a.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    Stack<T> f = stack_of<T>(k.out(0)), tau = stack_of<T>(k.out(1), 1);
    for_batch(batch_count(a.sizes()), 2.0 * m * n * std::min(m, n), [&](int64_t begin, int64_t end) {
      lapack::Scratch<T> scratch;
      for (int64_t b = begin; b < end; ++b) lapack::geqrf(m, n, f[b], tau[b], scratch);
    });
  });
}
// tau of argument `at` belongs to the reflectors of argument 0: [..., k], k <= columns.
void check_tau(const InferCtx& c, int at) {
  VESTA_CHECK(c.dim(at) + 1 == c.dim(0), c.name(), ": expected tau with ", c.dim(0) - 1, " dims, got ", c.dim(at));
  for (int d = 0; d + 1 < c.dim(at); ++d)
    VESTA_CHECK(c.sizes(at)[size_t(d)] == c.sizes(0)[size_t(d)], c.name(), ": the batch of tau differs from that of the reflectors");
  VESTA_CHECK(c.sizes(at).back() <= columns(c, 0), c.name(), ": expected at most ", columns(c, 0).str(), " elements of tau, got ", c.sizes(at).back().str());
}
void infer_householder(InferCtx& c) {
  check_matrix(c, 0);
  check_field(c, 0);
  VESTA_CHECK(rows(c, 0) >= columns(c, 0), c.name(), ": expected at least as many rows as columns, got ", rows(c, 0).str(), " x ", columns(c, 0).str());
  check_tau(c, 1);
  out_columns(c, 0, batch_of(c.sizes(0)), rows(c, 0), columns(c, 0), c.dtype_of(0));
}
void k_householder(const KernelCtx& k) {
  const Tensor& v = k.tensor(0);
  Tensor& q = k.out();
  assign(q, v);
  if (q.numel() == 0) return;
  int m = lapack::narrow(v.size(-2), k.name()), n = lapack::narrow(v.size(-1), k.name()), count = lapack::narrow(k.tensor(1).size(-1), k.name());
  Tensor taus = k.tensor(1).contiguous();
  if (count == 0) return assign(q, eye(m, n, v.options()));
  lapack::require(k.name());
  visit_field(v.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    Stack<T> f = stack_of<T>(q), tau = stack_of<T>(taus, 1);
    for_batch(batch_count(v.sizes()), 4.0 * m * n * count, [&](int64_t begin, int64_t end) {
      lapack::Scratch<T> scratch;
      for (int64_t b = begin; b < end; ++b) lapack::orgqr(m, n, count, f[b], tau[b], scratch);
    });
  });
}
// Gradients of H_1 ... H_k C in the reflectors (v, tau) and C, where H_i = I - tau_i v_i v_i^H, v_i[i] = 1 and zeros
// above; with `adjoint` those of H_k^H ... H_1^H C. M_i is the product from reflector i on; its gradient is carried
// from the left end to the right.
struct ReflectorGradients {
  Tensor v, tau, c;
};
ReflectorGradients reflector_gradients(const Tensor& v, const Tensor& tau, const Tensor& c, const Tensor& dy, bool adjoint) {
  int64_t k = tau.size(-1), columns = v.size(-1), rows = v.size(-2);
  std::vector<Tensor> vectors, factors;
  for (int64_t i = 0; i < k; ++i) {
    Tensor below = v.narrow(-1, i, 1).tril(-1 - i);  // rows after i
    Tensor unit = zeros({rows, 1}, v.options()).index_fill(0, full({1}, Scalar(i), TensorOptions(kLong)), Scalar(1));
    vectors.push_back(below + unit);
    Tensor t = tau.narrow(-1, i, 1).unsqueeze(-1);
    factors.push_back(adjoint ? t.conj() : t);
  }
  std::vector<int64_t> order;  // from the left end of the product
  for (int64_t i = 0; i < k; ++i) order.push_back(adjoint ? k - 1 - i : i);
  std::vector<Tensor> suffix(static_cast<size_t>(k) + 1);
  suffix[size_t(k)] = c;
  for (int64_t p = k - 1; p >= 0; --p) {
    const Tensor &x = vectors[size_t(order[size_t(p)])], &t = factors[size_t(order[size_t(p)])], &m = suffix[size_t(p) + 1];
    suffix[size_t(p)] = m - matmul(x * t, matmul(mh(x), m));
  }
  std::vector<Tensor> gv(static_cast<size_t>(columns)), gt(static_cast<size_t>(k));
  Tensor g = dy;
  for (int64_t p = 0; p < k; ++p) {
    int64_t i = order[size_t(p)];
    const Tensor &x = vectors[size_t(i)], &t = factors[size_t(i)], &m = suffix[size_t(p) + 1];
    Tensor a = matmul(mh(x), m), b = matmul(mh(x), g);  // rows
    Tensor dt = -matmul(b, mh(a));
    gt[size_t(i)] = (adjoint ? dt.conj() : dt).squeeze(-1);
    Tensor dv = -(matmul(g, mh(a)) * t.conj()) - matmul(m, mh(b)) * t;
    gv[size_t(i)] = dv.tril(-1 - i);
    g = g - matmul(x * t.conj(), b);
  }
  Tensor none = zeros(v.narrow(-1, 0, columns ? 1 : 0).sizes(), v.options());
  for (int64_t i = k; i < columns; ++i) gv[size_t(i)] = none;
  return {columns ? cat(gv, -1) : zeros(v.sizes(), v.options()), k ? cat(gt, -1) : zeros(tau.sizes(), tau.options()), g};
}
int vjp_householder(const Grad& g) {
  Tensor v = g.in(0), tau = g.in(1);
  if (v.numel() == 0) return grads(G(0) { return zeros(g.sizes(0), v.options()); }, G(1) { return zeros(g.sizes(1), v.options()); });
  Tensor c = eye(v.size(-2), v.size(-1), v.options()).expand(v.sizes());
  ReflectorGradients r = reflector_gradients(v, tau, c, g.dy(), false);
  return grads(G(0) { return r.v; }, G(1) { return r.tau; });
}
void infer_ormqr(InferCtx& c) {
  check_matrix(c, 0);
  check_field(c, 0);
  check_matrix(c, 2);
  check_tau(c, 1);
  bool left = c.flag(3);
  SymInt m = rows(c, 2), n = columns(c, 2), side = left ? m : n;
  VESTA_CHECK(rows(c, 0) == side, c.name(), ": expected reflectors of length ", side.str(), ", got ", rows(c, 0).str());
  VESTA_CHECK(c.sizes(1).back() <= side, c.name(), ": expected at most ", side.str(), " reflectors, got ", c.sizes(1).back().str());
  VESTA_CHECK(c.dim(0) == c.dim(2), c.name(), ": the batches of the reflectors and of the matrix differ");
  for (int d = 0; d + 2 < c.dim(0); ++d)
    VESTA_CHECK(c.sizes(0)[size_t(d)] == c.sizes(2)[size_t(d)], c.name(), ": the batches of the reflectors and of the matrix differ");
  out_columns(c, 0, batch_of(c.sizes(2)), m, n, c.dtype_of(0));
}
void k_ormqr(const KernelCtx& k) {
  Tensor& x = k.out();
  assign(x, k.tensor(2));
  if (x.numel() == 0 || k.tensor(1).numel() == 0) return;
  Tensor v = columns_copy(k.tensor(0)), taus = k.tensor(1).contiguous();
  int m = lapack::narrow(x.size(-2), k.name()), n = lapack::narrow(x.size(-1), k.name()), count = lapack::narrow(taus.size(-1), k.name());
  int ld = lapack::narrow(v.size(-2), k.name());
  bool left = k.flag(3), adjoint = k.flag(4);
  lapack::require(k.name());
  visit_field(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    Stack<T> f = stack_of<T>(v), tau = stack_of<T>(taus, 1), c = stack_of<T>(x);
    for_batch(batch_count(x.sizes()), 4.0 * m * n * count, [&](int64_t begin, int64_t end) {
      lapack::Scratch<T> scratch;
      for (int64_t b = begin; b < end; ++b) lapack::ormqr(left ? 'L' : 'R', adjoint, m, n, count, f[b], ld, tau[b], c[b], scratch);
    });
  });
}
// C Q = (Q^H C^H)^H: the right side is the left one of the adjoint.
int vjp_ormqr(const Grad& g) {
  bool left = g.flag(3), adjoint = g.flag(4);
  Tensor v = g.in(0), tau = g.in(1);
  Tensor c = left ? g.in(2) : mh(g.in(2)), dy = left ? g.dy() : mh(g.dy());
  if (!g.needs(0) && !g.needs(1)) return grads(G(2) { return ormqr(v, tau, g.dy(), left, !adjoint); });
  ReflectorGradients r = reflector_gradients(v, tau, c, dy, left ? adjoint : !adjoint);
  return grads(G(0) { return r.v; }, G(1) { return r.tau; }, G(2) { return left ? r.c : mh(r.c); });
}

// Full rank by a raised diagonal.
Tensor conditioned(SampleGen& s, std::vector<int64_t> sizes) {
  Tensor t = s.t(sizes, range(-1, 1));
  return t + eye(sizes[sizes.size() - 2], sizes.back(), t.options()) * 3;
}
void householder_samples(SampleGen& s) { s(s.t({4, 3}, range(-1, 1)), s.t({3}, range(0, 1))); s(s.t({2, 3, 2}, range(-1, 1)), s.t({2, 1}, range(0, 1))); s(s.t({3, 2}), s.t({0})); s(s.t({0, 3, 2}), s.t({0, 2})); }

constexpr OpDef table[] = {
OP("linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types, .infer = infer_qr, .kernels = {{Cpu, k_qr}}, .save = {out(0), out(1)}, .vjp = vjp_qr,
  .shard = {"replicate"}, .doc = "A = Q R; mode 'reduced', 'complete' (square Q) or 'r' (no Q).",
  .samples = [](SampleGen& s) { s(conditioned(s, {4, 3})); s(conditioned(s, {2, 2, 3})); s(conditioned(s, {1, 3, 3}), "complete"); s(s.t({0, 3})); s(s.t({3, 0}), "complete"); s(s.t({0, 3, 2})); }),
OP("qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)",
  .forms = Out, .types = lapack_types, .decompose = [](const Args& a) -> Results { return linalg_qr(a.tensor(0), a.flag(1) ? "reduced" : "complete"); },
  .shard = {"linalg-batch"}, .doc = "linalg_qr, reduced (some) or complete.", .samples = [](SampleGen& s) { s(conditioned(s, {4, 3})); s(conditioned(s, {1, 2, 3}), false); }),
OP("geqrf(Tensor self) -> (Tensor a, Tensor tau)",
  .forms = Out, .types = lapack_types, .infer = infer_geqrf, .kernels = {{Cpu, k_geqrf}}, .non_differentiable = true,
  .shard = {"linalg-batch"}, .doc = "QR as LAPACK packs it: R, the reflectors below it, and their factors.", .samples = [](SampleGen& s) { s(conditioned(s, {4, 3})); s(conditioned(s, {2, 2, 3})); s(s.t({0, 3})); }),
OP("linalg_householder_product(Tensor input, Tensor tau) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types, .infer = infer_householder, .kernels = {{Cpu, k_householder}}, .save = {in(0), in(1)}, .vjp = vjp_householder,
  .shard = {"linalg-batch"}, .doc = "The first columns of the product of reflectors I - tau v v^H, v in the columns of input.", .samples = householder_samples),
OP("orgqr(Tensor self, Tensor input2) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types, .decompose = [](const Args& a) -> Results { return linalg_householder_product(a.tensor(0), a.tensor(1)); },
  .shard = {"linalg-batch"}, .doc = "linalg_householder_product.", .samples = householder_samples),
OP("ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types, .infer = infer_ormqr, .kernels = {{Cpu, k_ormqr}}, .save = {in(0), in(1), in(2)}, .vjp = vjp_ormqr,
  .shard = {"linalg-batch"}, .doc = "Product of the square Q of reflectors (self, input2), or its adjoint, with input3 on the given side.",
  .samples = [](SampleGen& s) {
      for (bool left : {true, false}) for (bool adjoint : {false, true}) s(s.t({3, 2}, range(-1, 1)), s.t({2}, range(0, 1)), left ? s.t({3, 2}) : s.t({2, 3}), left, adjoint);
      s(s.t({2, 3, 3}, range(-1, 1)), s.t({2, 2}, range(0, 1)), s.t({2, 3, 1})); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(linalg_qr, table)
