// Linear systems, inverses and determinants by LU through LAPACK, and triangular systems.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/infer.h"
#include "ops/matrix.h"
#include "vesta/ops.h"

namespace vesta {
namespace {

using namespace op_block;
using namespace matrix;
namespace lapack = cpu::lapack;

// B is a batch of vectors where it has one dim, or the shape of A without its last dim.
bool is_vector(IntArrayRef a, IntArrayRef b) {
  if (b.size() == 1) return true;
  if (b.size() + 1 != a.size()) return false;
  for (size_t d = 0; d < b.size(); ++d)
    if (SymInt::from_raw(a[d]) != SymInt::from_raw(b[d])) return false;
  return true;
}
Tensor as_matrix(const Tensor& t, bool vector) { return vector ? t.unsqueeze(-1) : t; }

// ---- solve ----
void infer_solve(InferCtx& c) {
  check_square(c, 0);
  check_field(c, 0);
  bool left = c.flag(2), vector = is_vector(c.tensor(0).sizes(), c.tensor(1).sizes());
  VESTA_CHECK_AS(TypeError, c.dtype_of(1) == c.dtype_of(0), c.name(), ": expected ", dtype_name(c.dtype_of(0)), " for B, got ", dtype_name(c.dtype_of(1)));
  VESTA_CHECK(left || !vector, c.name(), ": a vector B stands on the right of A only (left=True)");
  VESTA_CHECK(vector || c.dim(1) >= 2, c.name(), ": expected a matrix or vector B, got ", c.dim(1), " dims");
  SymInt n = rows(c, 0);
  Sizes b(c.sizes(1).begin(), c.sizes(1).end());
  if (vector) b.push_back(SymInt(1));
  SymInt m = b[b.size() - 2], r = b[b.size() - 1];
  VESTA_CHECK((left ? m : r) == n, c.name(), ": expected B with ", n.str(), left ? " rows" : " columns", ", got ", (left ? m : r).str());
  Sizes own = batch_of(c.sizes(0)), batch = broadcast_sizes(c, own, batch_of(b));
  if (vector) out_rows(c, 0, batch, {n}, c.dtype_of(0));
  else if (left) out_columns(c, 0, batch, m, r, c.dtype_of(0));
  else out_rows(c, 0, batch, {m, r}, c.dtype_of(0));  // its transpose is column-major
  out_columns(c, 1, own, n, n, c.dtype_of(0));
  out_rows(c, 2, own, {n}, kInt);
  out_rows(c, 3, own, {}, kInt);
}
void k_solve(const KernelCtx& k) {
  const Tensor& a = k.tensor(0);
  bool left = k.flag(2), vector = is_vector(a.sizes(), k.tensor(1).sizes());
  auto [lu, pivots, info] = linalg_lu_factor_ex(a, true, false);
  assign(k.out(1), lu);
  assign(k.out(2), pivots);
  k.out(3).copy_(info);
  if (k.flag(3)) check_infos(public_name(k), k.out(3), singular_reason);
  Tensor& x = k.out(0);
  if (x.numel() == 0) return;
  Tensor y = as_matrix(x, vector);  // a contiguous vector is a column
  y.copy_(as_matrix(k.tensor(1), vector));
  Tensor factors = lu, swaps = pivots;
  std::vector<int64_t> full = y.sizes().vec();
  full[full.size() - 2] = full[full.size() - 1] = a.size(-1);
  bool shared = batch_count(full) == batch_count(a.sizes());  // one factorisation for each system
  if (!shared) {
    factors = columns_copy(lu.expand(full));
    full.pop_back();
    swaps = pivots.expand(full).contiguous();
  }
  int n = lapack::narrow(a.size(-1), k.name()), nrhs = lapack::narrow(left ? y.size(-1) : y.size(-2), k.name());
  const int* p = swaps.const_data_ptr<int>();
  visit_field(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    Stack<T> f = stack_of<T>(factors), b = stack_of<T>(y);
    for_batch(batch_count(y.sizes()), 2.0 * n * n * nrhs, [&](int64_t begin, int64_t end) {
      for (int64_t e = begin; e < end; ++e) lapack::getrs(left ? 'N' : 'T', n, nrhs, f[e], p + e * n, b[e]);
    });
  });
}
// A X = B: gB = A^-H gX, gA = -gB X^H; X A = B: gB = gX A^-H, gA = -X^H gB.
int vjp_solve(const Grad& g) {
  bool left = g.flag(2);
  Tensor a = g.in(0), x = g.out(0);
  bool vector = is_vector(g.sizes(0), g.sizes(1));
  x = as_matrix(x, vector);
  Tensor dy = as_matrix(g.dy(0), vector), gb;
  if (g.create_graph()) gb = linalg_solve(mh(a), dy, left);
  else gb = linalg_lu_solve(g.out(1), g.out(2), dy, left, true);
  return grads(
      G(0) { return left ? -matmul(gb, mh(x)) : -matmul(mh(x), gb); },
      G(1) { return vector ? gb.squeeze(-1) : gb; });
}

// ---- inverse ----
void infer_inv(InferCtx& c) {
  check_square(c, 0);
  check_field(c, 0);
  SymInt n = rows(c, 0);
  Sizes batch = batch_of(c.sizes(0));
  out_columns(c, 0, batch, n, n, c.dtype_of(0));
  out_rows(c, 1, batch, {}, kInt);
}
void k_inv(const KernelCtx& k) {
  const Tensor& a = k.tensor(0);
  Tensor& inverse = k.out(0);
  auto [lu, pivots, info] = linalg_lu_factor_ex(a, true, false);
  k.out(1).copy_(info);
  if (k.flag(1)) check_infos(public_name(k), k.out(1), singular_reason);
  if (inverse.numel() == 0) return;
  assign(inverse, eye(a.size(-1), a.options()));
  int n = lapack::narrow(a.size(-1), k.name());
  const int* p = pivots.const_data_ptr<int>();
  visit_field(a.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    Stack<T> f = stack_of<T>(lu), b = stack_of<T>(inverse);
    for_batch(batch_count(a.sizes()), 2.0 * n * n * n, [&](int64_t begin, int64_t end) {
      for (int64_t e = begin; e < end; ++e) lapack::getrs('N', n, n, f[e], p + e * n, b[e]);
    });
  });
}

// ---- determinants ----
void infer_det(InferCtx& c, bool log) {
  check_square(c, 0);
  check_field(c, 0);
  SymInt n = rows(c, 0);
  Sizes batch = batch_of(c.sizes(0));
  DType t = c.dtype_of(0);
  out_rows(c, 0, batch, {}, t);
  if (log) out_rows(c, 1, batch, {}, real_of(t));
  out_columns(c, log ? 2 : 1, batch, n, n, t);
  out_rows(c, log ? 3 : 2, batch, {n}, kInt);
}
// Calls f(batch element, sign of the permutation, factors) for each matrix.
template <class F>
void for_factors(const KernelCtx& k, int lu_out, F&& f) {
  const Tensor& a = k.tensor(0);
  auto [lu, pivots, info] = linalg_lu_factor_ex(a, true, false);
  assign(k.out(lu_out), lu);
  assign(k.out(lu_out + 1), pivots);
  int64_t n = a.size(-1);
  const int* p = n ? pivots.template const_data_ptr<int>() : nullptr;
  for (int64_t b = 0; b < batch_count(a.sizes()); ++b) {
    bool odd = false;
    for (int64_t i = 0; i < n; ++i) odd ^= p[b * n + i] != i + 1;
    f(b, odd ? -1 : 1);
  }
}
void k_det(const KernelCtx& k) {
  visit_field(k.tensor(0).dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    int64_t n = k.tensor(0).size(-1);
    Stack<T> out = stack_of<T>(k.out(0), 0), lu = stack_of<T>(k.out(1));
    for_factors(k, 1, [&](int64_t b, int sign) {
      T d = T(lapack::Real<T>(sign));
      for (int64_t i = 0; i < n; ++i) d *= lu[b][i * n + i];
      *out[b] = d;
    });
  });
}
void k_slogdet(const KernelCtx& k) {
  visit_field(k.tensor(0).dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using R = lapack::Real<T>;
    int64_t n = k.tensor(0).size(-1);
    Stack<T> sign_out = stack_of<T>(k.out(0), 0), lu = stack_of<T>(k.out(2));
    Stack<R> log_out = stack_of<R>(k.out(1), 0);
    for_factors(k, 2, [&](int64_t b, int parity) {
      T sign = T(R(parity));
      R log = 0;
      for (int64_t i = 0; i < n; ++i) {
        T d = lu[b][i * n + i];
        R size = std::abs(d);
        sign *= size == 0 ? T(0) : d / size;
        log += std::log(size);
      }
      *sign_out[b] = sign;
      *log_out[b] = log;
    });
  });
}
// Pivots that are exactly zero moved to epsilon, so that adj(A) = det(A) A^-1 exists; it is continuous.
Tensor pivot_shift(const Tensor& lu) {
  double eps = real_of(lu.dtype()) == kFloat ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
  return diag_embed((main_diagonal(lu) == 0).to(lu.dtype()) * eps);
}
// A^-H D where D is diagonal with w in every place, for a gradient. `a` is differentiable, lu and pivots are its factors.
Tensor scaled_inverse_mh(const Grad& g, const Tensor& a, const Tensor& lu, const Tensor& pivots, const Tensor& w, const Tensor& shift) {
  Tensor d = eye(a.size(-1), a.options()) * w.unsqueeze(-1).unsqueeze(-1);
  if (!g.create_graph()) return linalg_lu_solve(lu + shift, pivots, d, true, true);
  auto [p, l, u] = lu_unpack(lu, pivots);
  return linalg_solve(mh(a + matmul(matmul(p, l), shift)), d);
}
int vjp_det(const Grad& g) {
  return grads(G(0) {
    Tensor a = g.in(0), lu = g.out(1), shift = pivot_shift(lu);
    if (a.size(-1) == 0) return zeros(a.sizes(), a.options());
    // Where a pivot is zero the determinant is that of the shifted matrix: det(A) A^-1 stays finite.
    Tensor singular = (main_diagonal(lu) == 0).any(-1, false);
    Tensor swaps = (g.out(2) != arange(1, a.size(-1) + 1, g.out(2).options())).sum(-1);
    Tensor sign = (1 - remainder(swaps, Scalar(2)) * 2).to(lu.dtype());
    Tensor shifted = main_diagonal(lu + shift).prod(-1) * sign;
    Tensor det = where(singular, shifted, g.out(0));
    return scaled_inverse_mh(g, a, lu, g.out(2), g.dy(0) * det.conj(), shift); });
}
int vjp_slogdet(const Grad& g) {
  return grads(G(0) {
    Tensor a = g.in(0), lu = g.out(2), gl = g.dy(1), gs = g.dy(0), w;
    if (gl.defined()) w = gl.to(a.dtype());
    // d sign = i sign d(arg): only a complex determinant has one that moves.
    if (a.is_complex() && gs.defined()) {
      Tensor c = vesta::imag(gs.conj() * g.out(0));
      w = sum_of(w, vesta::complex(zeros_like(c), -c));
    }
    if (!w.defined()) return zeros(a.sizes(), a.options());
    if (a.size(-1) == 0) return zeros(a.sizes(), a.options());
    return scaled_inverse_mh(g, a, lu, g.out(3), w, pivot_shift(lu)); });
}
Results logdet(const Args& a) {
  auto [sign, log] = linalg_slogdet(a.tensor(0));
  if (sign.is_complex()) return sign.log() + log;
  return where(sign == -1, scalar_tensor(Scalar(std::numeric_limits<double>::quiet_NaN()), log.options()), log);
}

// ---- triangular systems ----
void infer_triangular(InferCtx& c) {
  check_square(c, 0);
  check_field(c, 0);
  check_matrix(c, 1);
  bool left = c.flag(3);
  SymInt n = rows(c, 0), m = rows(c, 1), r = columns(c, 1);
  VESTA_CHECK((left ? m : r) == n, c.name(), ": expected B with ", n.str(), left ? " rows" : " columns", ", got ", (left ? m : r).str());
  Sizes own = batch_of(c.sizes(0)), other = batch_of(c.sizes(1));
  out_columns(c, 0, broadcast_sizes(c, own, other), m, r, c.dtype_of(0));
}
void k_triangular(const KernelCtx& k) {
  Tensor& x = k.out();
  assign(x, k.tensor(1));
  if (x.numel() == 0) return;
  bool upper = k.flag(2), left = k.flag(3), unit = k.flag(4);
  std::vector<int64_t> full = x.sizes().vec();
  full[full.size() - 2] = full[full.size() - 1] = k.tensor(0).size(-1);
  Tensor a = k.tensor(0);
  // Column-major factors are used as they are, row-major ones as the transpose.
  auto own_stack = [&](const Tensor& t) { return t.dim() == 2 || t.is_contiguous(); };
  bool shared = batch_count(full) == batch_count(a.sizes());
  bool columns = shared && own_stack(a.transpose(-2, -1)) && a.transpose(-2, -1).is_contiguous();
  bool transposed = shared && !columns && a.is_contiguous();
  if (!columns && !transposed) a = columns_copy(a.expand(full));
  int n = lapack::narrow(a.size(-1), k.name()), m = lapack::narrow(x.size(-2), k.name()), r = lapack::narrow(x.size(-1), k.name());
  lapack::require(k.name());
  char uplo = upper != transposed ? 'U' : 'L';
  visit_field(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    Stack<T> f = stack_of<T>(a), b = stack_of<T>(x);
    for_batch(batch_count(x.sizes()), double(n) * m * r, [&](int64_t begin, int64_t end) {
      for (int64_t e = begin; e < end; ++e)
        lapack::trsm(left ? 'L' : 'R', uplo, transposed ? 'T' : 'N', unit ? 'U' : 'N', m, r, f[e], n, b[e]);
    });
  });
}
int vjp_triangular(const Grad& g) {
  bool upper = g.flag(2), left = g.flag(3), unit = g.flag(4);
  Tensor gb = linalg_solve_triangular(mh(g.in(0)), g.dy(), !upper, left, unit);
  return grads(
      G(0) {
        Tensor ga = left ? -matmul(gb, mh(g.out())) : -matmul(mh(g.out()), gb);
        return upper ? ga.triu(unit ? 1 : 0) : ga.tril(unit ? -1 : 0); },
      G(1) { return gb; });
}

Tensor conditioned(SampleGen& s, std::vector<int64_t> sizes) {
  Tensor t = s.t(sizes, range(-1, 1));
  return t + eye(sizes[sizes.size() - 2], sizes.back(), t.options()) * 3;
}
void square_samples(SampleGen& s) { s(conditioned(s, {3, 3})); s(conditioned(s, {2, 2, 2})); s(conditioned(s, {1, 1})); s(s.t({0, 0})); s(s.t({0, 3, 3})); }
void system_samples(SampleGen& s) {
  s(conditioned(s, {3, 3}), s.t({3, 2})); s(conditioned(s, {3, 3}), s.t({3})); s(conditioned(s, {2, 2, 2}), s.t({2, 2}));
  s(conditioned(s, {2, 2, 2}), s.t({3, 1, 2, 1})); s(conditioned(s, {3, 3}), s.t({2, 3}), false); s(conditioned(s, {2, 2}), s.t({2, 1, 2}), false);
  s(s.t({0, 3, 3}), s.t({0, 3, 2})); s(s.t({0, 0}), s.t({0, 2})); s(conditioned(s, {3, 3}), s.t({3, 0}));
}

constexpr OpDef table[] = {
OP("_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor LU, Tensor pivots, Tensor info)",
  .forms = Out, .types = lapack_types, .infer = infer_solve, .kernels = {{Cpu, k_solve}},
  .save = {in(0), out(0), out(1), out(2)}, .vjp = vjp_solve, .non_diff_outputs = 0b1110,
  .shard = {"linalg-batch"}, .doc = "Solves A X = B (X A = B where left is false); also the LU factors of A.", .samples = system_samples),
OP("linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types,
  .decompose = [](const Args& a) -> Results {
      auto [x, lu, pivots, info] = _linalg_solve_ex(a.tensor(0), a.tensor(1), a.flag(2), a.flag(3));
      return {x, info}; },
  .non_diff_outputs = 0b10, .shard = {"linalg-batch"}, .doc = "linalg_solve that reports singular matrices in info.", .samples = system_samples),
OP("linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types,
  .decompose = [](const Args& a) -> Results { return std::get<0>(_linalg_solve_ex(a.tensor(0), a.tensor(1), a.flag(2), true)); },
  .shard = {"linalg-batch"}, .doc = "Solves A X = B for square A [..., n, n] and B [..., n, k] or [..., n]; LinalgError where A is singular.", .samples = system_samples),
OP("linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types, .infer = infer_inv, .kernels = {{Cpu, k_inv}}, .save = {out(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { Tensor y = mh(g.out(0)); return -matmul(y, matmul(g.dy(0), y)); }); },
  .non_diff_outputs = 0b10, .shard = {"linalg-batch"}, .doc = "Inverse; info is the position of the first zero pivot, or 0.", .samples = square_samples),
OP("linalg_inv(Tensor A) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types, .decompose = [](const Args& a) -> Results { return std::get<0>(linalg_inv_ex(a.tensor(0), true)); },
  .shard = {"linalg-batch"}, .doc = "Inverse of square matrices; LinalgError where one is singular.", .samples = square_samples),
OP("inverse(Tensor self) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types, .decompose = [](const Args& a) -> Results { return linalg_inv(a.tensor(0)); },
  .shard = {"linalg-batch"}, .doc = "linalg_inv.", .samples = square_samples),
OP("_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)",
  .forms = Out, .types = lapack_types, .infer = [](InferCtx& c) { infer_det(c, false); }, .kernels = {{Cpu, k_det}},
  .save = {in(0), out(0), out(1), out(2)}, .vjp = vjp_det, .non_diff_outputs = 0b110,
  .shard = {"linalg-batch"}, .doc = "Determinant and the LU factors.", .samples = square_samples),
OP("linalg_det(Tensor A) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types, .decompose = [](const Args& a) -> Results { return std::get<0>(_linalg_det(a.tensor(0))); },
  .shard = {"linalg-batch"}, .doc = "Determinant of square matrices.", .samples = square_samples),
OP("det(Tensor self) -> Tensor",
  .types = lapack_types, .decompose = [](const Args& a) -> Results { return linalg_det(a.tensor(0)); },
  .shard = {"linalg-batch"}, .doc = "linalg_det.", .samples = square_samples),
OP("_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)",
  .forms = Out, .types = lapack_types, .infer = [](InferCtx& c) { infer_det(c, true); }, .kernels = {{Cpu, k_slogdet}},
  .save = {in(0), out(0), out(2), out(3)}, .vjp = vjp_slogdet, .non_diff_outputs = 0b1100,
  .shard = {"linalg-batch"}, .doc = "linalg_slogdet and the LU factors.", .samples = square_samples),
OP("linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types,
  .decompose = [](const Args& a) -> Results {
      auto [sign, log, lu, pivots] = _linalg_slogdet(a.tensor(0));
      return {sign, log}; },
  .shard = {"linalg-batch"}, .doc = "Sign (phase) of the determinant and the logarithm of its size.", .samples = square_samples),
OP("slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)",
  .forms = Out, .types = lapack_types,
  .decompose = [](const Args& a) -> Results { return linalg_slogdet(a.tensor(0)); },
  .shard = {"linalg-batch"}, .doc = "linalg_slogdet.", .samples = square_samples),
OP("logdet(Tensor self) -> Tensor",
  .types = lapack_types, .decompose = logdet, .shard = {"linalg-batch"}, .doc = "Logarithm of the determinant; NaN where a real one is negative.", .samples = square_samples),
OP("linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types, .infer = infer_triangular, .kernels = {{Cpu, k_triangular}},
  .save = {in(0), out(0).if_needs(0)}, .vjp = vjp_triangular,
  .shard = {"linalg-batch"}, .doc = "Solves A X = B (X A = B where left is false) for a triangular A; nothing is checked for zeros.",
  .samples = [](SampleGen& s) {
      for (bool upper : {true, false}) for (bool left : {true, false}) for (bool unit : {true, false}) s(conditioned(s, {3, 3}), left ? s.t({3, 2}) : s.t({2, 3}), upper, left, unit);
      s(conditioned(s, {2, 2, 2}), s.t({2, 1}), true); s(conditioned(s, {2, 2}), s.t({3, 2, 1}), false); s(s.t({0, 2, 2}), s.t({0, 2, 1}), false); s(s.t({0, 0}), s.t({0, 3}), false); }),
OP("triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)",
  .forms = Out, .types = lapack_types,
  .decompose = [](const Args& a) -> Results {
      check_square(a, 1);
      check_matrix(a, 0);
      std::vector<SymInt> batch = broadcast_sizes(a, batch_of(InferCtx::sizes_of(a.tensor(0))), batch_of(InferCtx::sizes_of(a.tensor(1))));
      Tensor f = a.flag(3) ? a.tensor(1).transpose(-2, -1) : a.tensor(1);
      Tensor x = linalg_solve_triangular(f, a.tensor(0), a.flag(2) != a.flag(3), true, a.flag(4));
      std::vector<int64_t> full = x.sizes().vec();
      full.back() = full[full.size() - 2];
      return {x, a.tensor(1).expand(full).clone(MemoryFormat::Contiguous)}; },
  .shard = {"linalg-batch"}, .doc = "linalg_solve_triangular with the right-hand side first; also a copy of A.",
  .samples = [](SampleGen& s) { s(s.t({3, 2}), conditioned(s, {3, 3})); s(s.t({3, 2}), conditioned(s, {3, 3}), false, true); s(s.t({2, 1}), conditioned(s, {3, 2, 2}), true, true, true); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(linalg_solve, table)
