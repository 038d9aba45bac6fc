// LU and LDL factorisations through LAPACK, their parts and the solvers that take them.
#include <algorithm>

#include "ops/infer.h"
#include "ops/matrix.h"
#include "vesta/ops.h"

namespace vesta {
namespace {

using namespace op_block;
using namespace matrix;
namespace lapack = cpu::lapack;

// ---- lu_factor ----
void infer_lu_factor(InferCtx& c) {
  check_matrix(c, 0);
  check_field(c, 0);
  Sizes batch = batch_of(c.sizes(0));
  SymInt m = rows(c, 0), n = columns(c, 0);
  out_columns(c, 0, batch, m, n, c.dtype_of(0));
  out_rows(c, 1, batch, {smaller(m, n)}, kInt);
  out_rows(c, 2, batch, {}, kInt);
}
// A = L U without row exchanges, column by column; info is the first zero pivot.
template <class T>
int factor_without_pivots(int m, int n, T* a, int* pivots) {
  int info = 0, k = std::min(m, n);
  for (int j = 0; j < k; ++j) {
    pivots[j] = j + 1;
    T* column = a + int64_t(j) * m;
    if (column[j] == T(0)) {
      if (!info) info = j + 1;
      continue;
    }
    for (int i = j + 1; i < m; ++i) column[i] /= column[j];
    for (int l = j + 1; l < n; ++l) {
      T* other = a + int64_t(l) * m;
      for (int i = j + 1; i < m; ++i) other[i] -= column[i] * other[j];
    }
  }
  return info;
}
void k_lu_factor(const KernelCtx& k) {
  const Tensor& a = k.tensor(0);
  assign(k.out(0), a);
  k.out(2).zero_();
  int m = lapack::narrow(a.size(-2), k.name()), n = lapack::narrow(a.size(-1), k.name());
  int64_t count = batch_count(a.sizes());
  if (k.out(0).numel()) {
    lapack::require(k.name());
    visit_field(a.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      Stack<T> lu = stack_of<T>(k.out(0));
      Stack<int> pivots = stack_of<int>(k.out(1), 1), info = stack_of<int>(k.out(2), 0);
      bool pivot = k.flag(1);
      for_batch(count, double(m) * n * std::min(m, n), [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b)
          *info[b] = pivot ? lapack::getrf(m, n, lu[b], pivots[b]) : factor_without_pivots(m, n, lu[b], pivots[b]);
      });
    });
  }
  if (k.flag(2)) check_infos(public_name(k), k.out(2), singular_reason);
}
// Gradients of the factors, L with k columns and U with k rows, as that of P L U. From dL = L tril(L^-1 P^T dA U^-1, -1)
// and dU = triu(L^-1 P^T dA U^-1) U for a square matrix; the rows below (columns beyond) k solve triangular systems.
Tensor plu_gradient(const Tensor& gl, const Tensor& gu, const Tensor& p, const Tensor& l, const Tensor& u) {
  int64_t m = l.size(-2), n = u.size(-1), k = std::min(m, n);
  Tensor l1 = l.narrow(-2, 0, k), u1 = u.narrow(-1, 0, k), lower, upper, rest;
  if (gl.defined()) lower = matmul(mh(l1), gl.narrow(-2, 0, k));
  if (gu.defined()) upper = matmul(gu.narrow(-1, 0, k), mh(u1));
  if (m > n && gl.defined()) {
    Tensor l2 = l.narrow(-2, k, m - k), gl2 = gl.narrow(-2, k, m - k);
    upper = sum_of(upper, -matmul(mh(l2), gl2));
    rest = linalg_solve_triangular(mh(u1), gl2, false, false);
  } else if (m < n && gu.defined()) {
    Tensor u2 = u.narrow(-1, k, n - k), gu2 = gu.narrow(-1, k, n - k);
    lower = sum_of(lower, -matmul(gu2, mh(u2)));
    rest = linalg_solve_triangular(mh(l1), gu2, true, true, true);
  }
  Tensor middle;
  if (lower.defined()) middle = lower.tril(-1);
  if (upper.defined()) middle = sum_of(middle, upper.triu());
  Tensor g = linalg_solve_triangular(mh(u1), linalg_solve_triangular(mh(l1), middle, true, true, true), false, false);
  if (m > n) g = cat({g, rest.defined() ? rest : zeros(l.narrow(-2, k, m - k).sizes(), g.options())}, -2);
  if (m < n) g = cat({g, rest.defined() ? rest : zeros(u.narrow(-1, k, n - k).sizes(), g.options())}, -1);
  return p.defined() ? matmul(p, g) : g;
}
// The unit lower and the upper factor in the packed form.
Tensor lower_of(const Tensor& lu) {
  int64_t k = std::min(lu.size(-2), lu.size(-1));
  Tensor l = lu.narrow(-1, 0, k).tril(-1);
  return l + eye(lu.size(-2), k, lu.options());
}
Tensor upper_of(const Tensor& lu) { return lu.narrow(-2, 0, std::min(lu.size(-2), lu.size(-1))).triu(); }
Tensor permutation_of(const Tensor& lu, const Tensor& pivots) { return std::get<0>(lu_unpack(lu.detach(), pivots, false, true)); }

// ---- lu_unpack ----
void infer_lu_unpack(InferCtx& c) {
  check_matrix(c, 0);
  check_field(c, 0);
  VESTA_CHECK_AS(TypeError, !c.flag(3) || c.dtype_of(1) == kInt, c.name(), ": expected int32 pivots, got ", dtype_name(c.dtype_of(1)));
  Sizes batch = batch_of(c.sizes(0));
  SymInt m = rows(c, 0), n = columns(c, 0), k = smaller(m, n);
  if (c.flag(3)) {
    VESTA_CHECK(c.dim(1) + 1 == c.dim(0) && c.sizes(1).back() == k, c.name(), ": expected pivots of shape [..., ", k.str(), "]");
    for (size_t d = 0; d < batch.size(); ++d) VESTA_CHECK(c.sizes(1)[d] == batch[d], c.name(), ": the pivots' batch differs from that of LU_data");
    out_columns(c, 0, batch, m, m, c.dtype_of(0));
  } else {
    c.out(0, {SymInt(0)}, c.dtype_of(0), c.tensor(0).device());
  }
  if (c.flag(2)) {
    out_columns(c, 1, batch, m, k, c.dtype_of(0));
    out_columns(c, 2, batch, k, n, c.dtype_of(0));
  } else {
    c.out(1, {SymInt(0)}, c.dtype_of(0), c.tensor(0).device());
    c.out(2, {SymInt(0)}, c.dtype_of(0), c.tensor(0).device());
  }
}
void k_lu_unpack(const KernelCtx& k) {
  const Tensor& lu = k.tensor(0);
  int64_t m = lu.size(-2), n = lu.size(-1), small = std::min(m, n), count = batch_count(lu.sizes());
  Tensor pivots;
  if (k.flag(3)) {  // all swaps are checked before anything is written
    pivots = pivots_of(k.tensor(1));
    auto* p = pivots.const_data_ptr<int>();
    for (int64_t i = 0; i < pivots.numel(); ++i)
      VESTA_CHECK_AS(IndexError, p[i] >= 1 && p[i] <= m, k.name(), ": pivot ", p[i], " is outside of [1, ", m, "]");
  }
  if (k.flag(2)) {
    assign(k.out(1), lower_of(lu));
    assign(k.out(2), upper_of(lu));
  }
  if (!k.flag(3)) return;
  k.out(0).zero_();
  if (k.out(0).numel() == 0) return;
  auto* p = pivots.const_data_ptr<int>();
  visit_field(lu.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    Stack<T> out = stack_of<T>(k.out(0));
    std::vector<int64_t> order(static_cast<size_t>(m));
    for (int64_t b = 0; b < count; ++b) {
      for (int64_t i = 0; i < m; ++i) order[size_t(i)] = i;
      for (int64_t i = 0; i < small; ++i) std::swap(order[size_t(i)], order[size_t(p[b * small + i] - 1)]);
      for (int64_t i = 0; i < m; ++i) out[b][order[size_t(i)] + i * m] = T(1);
    }
  });
}

// ---- lu_solve ----
// Sizes of the system's batch, from those of LU and of B.
Sizes common_batch(const InferCtx& c, int a, int b) {
  Sizes x = batch_of(c.sizes(a)), y = batch_of(c.sizes(b));
  return broadcast_sizes(c, x, y);
}
void infer_lu_solve(InferCtx& c) {
  check_square(c, 0);
  check_field(c, 0);
  check_matrix(c, 2);
  VESTA_CHECK_AS(TypeError, c.dtype_of(1) == kInt, c.name(), ": expected int32 pivots, got ", dtype_name(c.dtype_of(1)));
  VESTA_CHECK_AS(TypeError, c.dtype_of(2) == c.dtype_of(0), c.name(), ": expected ", dtype_name(c.dtype_of(0)), " for B, got ", dtype_name(c.dtype_of(2)));
  SymInt n = rows(c, 0), m = rows(c, 2), r = columns(c, 2);
  VESTA_CHECK(c.dim(1) + 1 == c.dim(0) && c.sizes(1).back() == n, c.name(), ": expected pivots of shape [..., ", n.str(), "]");
  for (int d = 0; d + 1 < c.dim(1); ++d) VESTA_CHECK(c.sizes(1)[size_t(d)] == c.sizes(0)[size_t(d)], c.name(), ": the pivots' batch differs from that of LU");
  VESTA_CHECK((c.flag(3) ? m : r) == n, c.name(), ": expected B with ", n.str(), c.flag(3) ? " rows" : " columns", ", got ", (c.flag(3) ? m : r).str());
  Sizes batch = common_batch(c, 0, 2);
  if (c.flag(3)) out_columns(c, 0, batch, m, r, c.dtype_of(0));
  else out_rows(c, 0, batch, {m, r}, c.dtype_of(0));  // its transpose is column-major
}
void k_lu_solve(const KernelCtx& k) {
  Tensor& x = k.out();
  assign(x, k.tensor(2));
  if (x.numel() == 0) return;
  bool left = k.flag(3), adjoint = k.flag(4);
  std::vector<int64_t> full = x.sizes().vec();
  int64_t size = k.tensor(0).size(-1);
  full[full.size() - 2] = full[full.size() - 1] = size;
  Tensor lu = columns_copy(k.tensor(0).expand(full));
  full.pop_back();
  Tensor pivots = pivots_of(k.tensor(1).expand(full));
  int n = lapack::narrow(size, k.name()), nrhs = lapack::narrow(left ? x.size(-1) : x.size(-2), k.name());
  int64_t count = batch_count(x.sizes());
  auto* p = pivots.const_data_ptr<int>();
  for (int64_t i = 0; i < pivots.numel(); ++i)
    VESTA_CHECK_AS(IndexError, p[i] >= 1 && p[i] <= n, k.name(), ": pivot ", p[i], " is outside of [1, ", n, "]");
  lapack::require(k.name());
  visit_field(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr bool complex = !std::is_floating_point_v<T>;
    Stack<T> f = stack_of<T>(lu), y = stack_of<T>(x);
    // X A = B is A^T X^T = B^T; X A^H = B is A conj(X^T) = conj(B^T).
    bool conjugated = !left && adjoint && complex;
    char trans = left ? (adjoint ? (complex ? 'C' : 'T') : 'N') : (adjoint ? 'N' : 'T');
    auto flip = [&](T* v) {
      if constexpr (complex)
        for (int64_t i = 0; i < y.step; ++i) v[i] = std::conj(v[i]);
    };
    for_batch(count, 2.0 * n * n * nrhs, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        if (conjugated) flip(y[b]);
        lapack::getrs(trans, n, nrhs, f[b], p + b * n, y[b]);
        if (conjugated) flip(y[b]);
      }
    });
  });
}
int vjp_lu_solve(const Grad& g) {
  bool left = g.flag(3), adjoint = g.flag(4);
  Tensor lu = g.in(0), pivots = g.in(1), x = g.out();
  Tensor gb = linalg_lu_solve(lu, pivots, g.dy(), left, !adjoint);
  return grads(
      G(0) {
        Tensor ga = left ? (adjoint ? -matmul(x, mh(gb)) : -matmul(gb, mh(x)))
                         : (adjoint ? -matmul(mh(gb), x) : -matmul(mh(x), gb));
        Tensor permuted = matmul(mh(permutation_of(lu, pivots)), ga);
        return matmul(permuted, mh(upper_of(lu))).tril(-1) + matmul(mh(lower_of(lu)), permuted).triu(); },
      G(2) { return gb; });
}

// ---- LDL ----
void infer_ldl_factor(InferCtx& c) {
  check_square(c, 0);
  check_field(c, 0);
  Sizes batch = batch_of(c.sizes(0));
  SymInt n = rows(c, 0);
  out_columns(c, 0, batch, n, n, c.dtype_of(0));
  out_rows(c, 1, batch, {n}, kInt);
  out_rows(c, 2, batch, {}, kInt);
}
std::string ldl_reason(int info) { return detail::message("the factorisation has a zero pivot at ", info); }
void k_ldl_factor(const KernelCtx& k) {
  const Tensor& a = k.tensor(0);
  assign(k.out(0), a.tril());
  k.out(2).zero_();
  int n = lapack::narrow(a.size(-1), k.name());
  int64_t count = batch_count(a.sizes());
  if (k.out(0).numel()) {
    lapack::require(k.name());
    visit_field(a.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      Stack<T> ld = stack_of<T>(k.out(0));
      Stack<int> pivots = stack_of<int>(k.out(1), 1), info = stack_of<int>(k.out(2), 0);
      bool hermitian = k.flag(1);
      for_batch(count, double(n) * n * n / 3, [&](int64_t begin, int64_t end) {
        lapack::Scratch<T> scratch;
        for (int64_t b = begin; b < end; ++b) *info[b] = lapack::sytrf(hermitian, 'L', n, ld[b], pivots[b], scratch);
      });
    });
  }
  if (k.flag(2)) check_infos(public_name(k), k.out(2), ldl_reason);
}
void infer_ldl_solve(InferCtx& c) {
  check_square(c, 0);
  check_field(c, 0);
  check_matrix(c, 2);
  VESTA_CHECK_AS(TypeError, c.dtype_of(1) == kInt, c.name(), ": expected int32 pivots, got ", dtype_name(c.dtype_of(1)));
  VESTA_CHECK_AS(TypeError, c.dtype_of(2) == c.dtype_of(0), c.name(), ": expected ", dtype_name(c.dtype_of(0)), " for B, got ", dtype_name(c.dtype_of(2)));
  SymInt n = rows(c, 0);
  VESTA_CHECK(c.dim(1) + 1 == c.dim(0) && c.sizes(1).back() == n, c.name(), ": expected pivots of shape [..., ", n.str(), "]");
  for (int d = 0; d + 1 < c.dim(1); ++d) VESTA_CHECK(c.sizes(1)[size_t(d)] == c.sizes(0)[size_t(d)], c.name(), ": the pivots' batch differs from that of LD");
  VESTA_CHECK(rows(c, 2) == n, c.name(), ": expected B with ", n.str(), " rows, got ", rows(c, 2).str());
  out_columns(c, 0, common_batch(c, 0, 2), n, columns(c, 2), c.dtype_of(0));
}
void k_ldl_solve(const KernelCtx& k) {
  Tensor& x = k.out();
  assign(x, k.tensor(2));
  if (x.numel() == 0) return;
  std::vector<int64_t> full = x.sizes().vec();
  int64_t size = x.size(-2);
  full.back() = size;
  Tensor ld = columns_copy(k.tensor(0).expand(full));
  full.pop_back();
  Tensor pivots = pivots_of(k.tensor(1).expand(full));
  int n = lapack::narrow(size, k.name()), nrhs = lapack::narrow(x.size(-1), k.name());
  auto* p = pivots.const_data_ptr<int>();
  for (int64_t b = 0; b < pivots.numel() / n; ++b)
    for (int64_t i = 0; i < n; ++i) {
      int v = p[b * n + i];  // a negative pair marks a 2 x 2 block
      VESTA_CHECK_AS(IndexError, v != 0 && v <= n && v >= -n, k.name(), ": pivot ", v, " is outside of [1, ", n, "]");
      if (v > 0) continue;
      VESTA_CHECK_AS(IndexError, i + 1 < n && p[b * n + i + 1] < 0 && p[b * n + i + 1] >= -n, k.name(), ": negative pivots come in pairs");
      ++i;
    }
  lapack::require(k.name());
  visit_field(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    Stack<T> f = stack_of<T>(ld), y = stack_of<T>(x);
    bool hermitian = k.flag(3);
    for_batch(batch_count(x.sizes()), 2.0 * n * n * nrhs, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) lapack::sytrs(hermitian, 'L', n, nrhs, f[b], p + b * n, y[b]);
    });
  });
}

// A well-conditioned batch of matrices: random, with the diagonal raised.
Tensor conditioned(SampleGen& s, std::vector<int64_t> sizes) {
  Tensor t = s.t(sizes, range(-1, 1));
  return t + eye(sizes[sizes.size() - 2], sizes.back(), t.options()) * 3;
}

constexpr OpDef table[] = {
OP("linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, Tensor info)",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types, .infer = infer_lu_factor, .kernels = {{Cpu, k_lu_factor}},
  .save = {out(0), out(1)},
  .vjp = [](const Grad& g) { return grads(G(0) {
      Tensor lu = g.out(0), dy = g.dy();
      int64_t k = std::min(lu.size(-2), lu.size(-1));
      return plu_gradient(dy.narrow(-1, 0, k).tril(-1), dy.narrow(-2, 0, k).triu(), permutation_of(lu, g.out(1)), lower_of(lu), upper_of(lu)); }); },
  .non_diff_outputs = 0b110, .shard = {"linalg-batch"},
  .doc = "LU factors of A with row exchanges, packed; info is the position of the first zero pivot, or 0.",
  .samples = [](SampleGen& s) { s(conditioned(s, {3, 3})); s(conditioned(s, {2, 4, 2})); s(conditioned(s, {2, 3})); s(conditioned(s, {3, 3}), false); s(s.t({0, 3, 3})); s(s.t({2, 0, 0})); }),
OP("linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types,
  .decompose = [](const Args& a) -> Results {
      auto [lu, pivots, info] = linalg_lu_factor_ex(a.tensor(0), a.flag(1), false);
      return {lu, pivots}; },
  .non_diff_outputs = 0b10, .shard = {"linalg-batch"}, .doc = "LU factors of A, packed, and the row exchanges.",
  .samples = [](SampleGen& s) { s(conditioned(s, {3, 3})); s(conditioned(s, {2, 2, 3})); }),
OP("linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types,
  .decompose = [](const Args& a) -> Results {
      auto [lu, pivots, info] = linalg_lu_factor_ex(a.tensor(0), a.flag(1), false);
      auto [p, l, u] = lu_unpack(lu, pivots, true, a.flag(1));
      return {p, l, u}; },
  .non_diff_outputs = 0b1, .shard = {"linalg-batch"}, .doc = "P, L and U with A = P L U.",
  .samples = [](SampleGen& s) { s(conditioned(s, {3, 3})); s(conditioned(s, {2, 2, 3})); s(conditioned(s, {4, 2})); s(conditioned(s, {3, 3}), false); }),
OP("lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> (Tensor P, Tensor L, Tensor U)",
  .forms = Out, .types = lapack_mixed, .infer = infer_lu_unpack, .kernels = {{Cpu, k_lu_unpack}},
  .vjp = [](const Grad& g) { return grads(G(0) {
      Tensor gl = g.dy(1), gu = g.dy(2), sum;
      int64_t m = g.sizes(0)[g.sizes(0).size() - 2], n = g.sizes(0).back(), k = std::min(m, n);
      if (!g.flag(2)) return Tensor();
      if (gl.defined()) sum = constant_pad_nd(gl.tril(-1), {0, n - k});
      if (gu.defined()) sum = sum_of(sum, constant_pad_nd(gu.triu(), {0, 0, 0, m - k}));
      return sum; }); },
  .non_diff_outputs = 0b1, .shard = {"linalg-batch"}, .doc = "The permutation and the triangular factors of packed LU data.",
  .samples = [](SampleGen& s) {
      s(s.t({3, 3}), s.make({3}, range(3, 3), kInt)); s(s.t({2, 4, 2}), s.make({2, 2}, range(2, 4), kInt)); s(s.t({2, 3}), s.make({2}, range(2, 2), kInt)); }),
OP("linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_mixed, .infer = infer_lu_solve, .kernels = {{Cpu, k_lu_solve}},
  .save = {in(0), in(1), out(0)}, .vjp = vjp_lu_solve,
  .shard = {"linalg-batch"}, .doc = "Solves A X = B (or X A = B) from the LU factors of A.",
  .samples = [](SampleGen& s) {
      for (bool left : {true, false}) for (bool adjoint : {false, true}) s(conditioned(s, {3, 3}), s.make({3}, range(3, 3), kInt), left ? s.t({3, 2}) : s.t({2, 3}), left, adjoint);
      s(conditioned(s, {2, 3, 3}), s.make({2, 3}, range(3, 3), kInt), s.t({3, 2})); }),
OP("lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_mixed,
  .decompose = [](const Args& a) -> Results { return linalg_lu_solve(a.tensor(1), a.tensor(2), a.tensor(0)); },
  .shard = {"linalg-batch"}, .doc = "linalg_lu_solve with the right-hand side first.",
  .samples = [](SampleGen& s) { s(s.t({3, 2}), conditioned(s, {3, 3}), s.make({3}, range(3, 3), kInt)); }),
OP("linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> (Tensor LD, Tensor pivots, Tensor info)",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types, .infer = infer_ldl_factor, .kernels = {{Cpu, k_ldl_factor}}, .non_differentiable = true,
  .shard = {"linalg-batch"}, .doc = "LDL factors of the lower triangle of a symmetric (or Hermitian) matrix, packed.",
  .samples = [](SampleGen& s) { s(conditioned(s, {3, 3})); s(conditioned(s, {2, 2, 2})); s(s.t({0, 0})); }),
OP("linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types,
  .decompose = [](const Args& a) -> Results {
      auto [ld, pivots, info] = linalg_ldl_factor_ex(a.tensor(0), a.flag(1), true);
      return {ld, pivots}; },
  .non_differentiable = true, .shard = {"linalg-batch"}, .doc = "LDL factors; LinalgError where a pivot is zero.",
  .samples = [](SampleGen& s) { s(conditioned(s, {3, 3})); }),
OP("linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_mixed, .infer = infer_ldl_solve, .kernels = {{Cpu, k_ldl_solve}}, .non_differentiable = true,
  .shard = {"linalg-batch"}, .doc = "Solves A X = B from the LDL factors of A.",
  .samples = [](SampleGen& s) { s(conditioned(s, {3, 3}), s.make({3}, range(3, 3), kInt), s.t({3, 2})); }),
OP("_linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> ()",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      const Tensor& info = a.tensor(0);
      if (!(info.impl()->bits & TensorImpl::kHasData)) return {};  // meta and traced tensors
      check_infos(std::string(a.string(1)), (a.flag(2) ? info.reshape({}) : info.reshape({-1})).to(kInt).contiguous(),
                  [](int i) { return detail::message("LAPACK reports failure at ", i); });
      return {}; },
  .non_differentiable = true, .shard = {"linalg-batch"}, .doc = "LinalgError where an element of info is not 0.",
  .samples = [](SampleGen& s) { if (s.dtype() == kInt) s(s.t({3}, range(0, 0)), "linalg_inv", false); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(linalg_lu, table)
