// Least squares, pseudo-inverses and ranks.
#include <algorithm>
#include <limits>

#include "core/storage.h"
#include "ops/infer.h"
#include "ops/matrix.h"
#include "vesta/ops.h"

namespace vesta {
namespace {

using namespace op_block;
using namespace matrix;
namespace lapack = cpu::lapack;

double epsilon(DType t) {
  return real_of(t) == kFloat ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
}

// ---- least squares ----
lapack::LstsqDriver driver_of(const Args& a) {
  std::string_view name = a.has(3) ? a.string(3) : "gelsy";
  if (name == "gels") return lapack::LstsqDriver::gels;
  if (name == "gelsy") return lapack::LstsqDriver::gelsy;
  if (name == "gelsd") return lapack::LstsqDriver::gelsd;
  VESTA_CHECK(name == "gelss", a.name(), ": expected driver gels, gelsy, gelsd or gelss, got '", name, "'");
  return lapack::LstsqDriver::gelss;
}
bool vector_system(IntArrayRef a, IntArrayRef b) {
  if (b.size() + 1 != a.size()) return false;
  for (size_t d = 0; d < b.size(); ++d)
    if (a[d] != b[d]) return false;
  return true;
}
std::string lstsq_reason(int info) { return detail::message("no least squares solution: the matrix lacks full rank (LAPACK's info is ", info, ")"); }
void k_lstsq(const KernelCtx& k) {
  const Tensor& a = k.tensor(0);
  check_matrix(k, 0);
  check_field(k, 0);
  lapack::LstsqDriver driver = driver_of(k);
  VESTA_CHECK(k.tensor(1).dim() >= 1, k.name(), ": expected a matrix or vector b, got 0 dims");
  bool vector = vector_system(a.sizes(), k.tensor(1).sizes());
  Tensor b = vector ? k.tensor(1).unsqueeze(-1) : k.tensor(1);
  VESTA_CHECK(b.dim() >= 2, k.name(), ": expected b with the batch of self and its rows, got ", k.tensor(1).dim(), " dims");
  int64_t rows = a.size(-2), columns = a.size(-1), rhs = b.size(-1), tall = std::max(rows, columns), small = std::min(rows, columns);
  VESTA_CHECK(b.size(-2) == rows, k.name(), ": expected b with ", rows, " rows, got ", b.size(-2));
  std::vector<SymInt> sym = broadcast_sizes(k, batch_of(InferCtx::sizes_of(a)), batch_of(InferCtx::sizes_of(b)));
  std::vector<int64_t> batch;
  for (SymInt s : sym) batch.push_back(s.raw());
  auto sized = [&](std::initializer_list<int64_t> rest) {
    std::vector<int64_t> s = batch;
    s.insert(s.end(), rest);
    return s;
  };
  DType t = a.dtype();
  double rcond = k.has(2) ? k.number(2) : epsilon(t) * double(tall);
  Tensor work = columns_copy(a.expand(sized({rows, columns})));
  check_finite(k, work);
  // LAPACK wants max(m, n) rows: those of b, then room for the solution.
  Tensor x = empty_columns(sized({tall, rhs}), t);
  x.zero_();
  if (x.numel()) x.narrow(-2, 0, rows).copy_(b.expand(sized({rows, rhs})));
  Tensor room = rhs ? x : zeros(sized({1, tall}), TensorOptions(t)).transpose(-2, -1);  // LAPACK writes to a column where b has none
  bool has_values = driver == lapack::LstsqDriver::gelsd || driver == lapack::LstsqDriver::gelss, has_rank = driver != lapack::LstsqDriver::gels;
  Tensor values = zeros(sized({small}), TensorOptions(real_of(t))), ranks = zeros(batch, TensorOptions(kInt)), info = zeros(batch, TensorOptions(kInt));
  int64_t count = batch_count(sized({rows, columns}));
  if (count && small) {
    int m = lapack::narrow(rows, k.name()), n = lapack::narrow(columns, k.name()), nrhs = lapack::narrow(std::max<int64_t>(rhs, 1), k.name());
    lapack::require(k.name());
    visit_field(t, [&](auto tag) {
      using T = typename decltype(tag)::type;
      using R = lapack::Real<T>;
      Stack<T> f = stack_of<T>(work), y = stack_of<T>(room);
      Stack<R> s = stack_of<R>(values, 1);
      Stack<int> rank = stack_of<int>(ranks, 0), infos = stack_of<int>(info, 0);
      for_batch(count, 4.0 * m * n * small, [&](int64_t begin, int64_t end) {
        lapack::Scratch<T> scratch;
        for (int64_t e = begin; e < end; ++e) *infos[e] = lapack::lstsq(driver, m, n, nrhs, f[e], y[e], s[e], R(rcond), rank[e], scratch);
      });
    });
    check_infos(public_name(k), info, lstsq_reason);
  }
  std::vector<int64_t> solution = sized({columns});
  if (!vector) solution.push_back(rhs);
  Tensor& out = k.allocate(0, solution, t);
  Tensor top = x.narrow(-2, 0, columns);
  if (out.numel()) out.copy_(vector ? top.squeeze(-1) : top);
  bool full_rank = !has_rank || (ranks == small).all().item().toBool();
  bool residuals = rows > columns && driver != lapack::LstsqDriver::gelsy && full_rank;
  if (residuals) {
    Tensor r = x.narrow(-2, columns, rows - columns).abs().square().sum({-2});
    if (vector) r = r.squeeze(-1);
    k.allocate(1, r.sizes(), real_of(t)).copy_(r);
  } else {
    k.allocate(1, {0}, real_of(t));
  }
  if (has_rank) k.allocate(2, batch, kLong).copy_(ranks);
  else k.allocate(2, {0}, kLong);
  if (has_values) k.allocate(3, values.sizes(), real_of(t)).copy_(values);
  else k.allocate(3, {0}, real_of(t));
}

// G. H. Golub, V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems", 1973, for a
// matrix of constant rank.
Tensor pinv_gradient(const Tensor& grad, const Tensor& pinv, const Tensor& a) {
  Tensor ph = mh(pinv), gh = mh(grad);
  if (a.size(-2) <= a.size(-1)) {
    Tensor k = matmul(gh, pinv), kp = matmul(k, ph);
    return kp - mh(matmul(pinv, k)) - matmul(matmul(a, pinv), kp) + matmul(matmul(ph, pinv), gh - matmul(k, a));
  }
  Tensor k = matmul(pinv, gh), pk = matmul(ph, k);
  return pk - mh(matmul(k, pinv)) + matmul(matmul(gh - matmul(a, k), pinv), ph) - matmul(matmul(pk, pinv), a);
}
int vjp_lstsq(const Grad& g) {
  Tensor a = g.in(0), b = g.in(1), x = g.out(0), dx = g.dy(0), dr = g.dy(1);
  bool vector = vector_system(g.sizes(0), g.sizes(1));
  if (vector) {
    b = b.unsqueeze(-1), x = x.unsqueeze(-1);
    if (dx.defined()) dx = dx.unsqueeze(-1);
    if (dr.defined() && dr.numel()) dr = dr.unsqueeze(-1);
  }
  Tensor ga, gb;
  if (dx.defined()) {
    Tensor p = linalg_pinv(a);
    gb = matmul(mh(p), dx);
    if (g.needs(0)) ga = pinv_gradient(matmul(dx, mh(b)), p, a);
  }
  if (dr.defined() && dr.numel()) {  // |b - A x|^2 where A^H (b - A x) = 0
    Tensor r = (b - matmul(a, x)) * 2 * dr.unsqueeze(-2);
    gb = sum_of(gb, r);
    ga = sum_of(ga, -matmul(r, mh(x)));
  }
  return grads(G(0) { return ga; }, G(1) { return vector && gb.defined() ? gb.squeeze(-1) : gb; });
}

// ---- pinv ----
// Tolerances of each matrix: atol (0 where left out) and rtol (epsilon max(m, n), or 0 beside a positive atol).
std::pair<Tensor, Tensor> tolerances(const Args& a, const Tensor& t, const Tensor& atol_in, const Tensor& rtol_in) {
  TensorOptions real(real_of(t.dtype()));
  real = real.device(t.device());
  for (auto* x : {&atol_in, &rtol_in})
    VESTA_CHECK_AS(TypeError, !x->defined() || !x->is_complex(), a.name(), ": expected real tolerances, got ", dtype_name(x->dtype()));
  Tensor atol = atol_in.defined() ? atol_in : scalar_tensor(Scalar(0.0), real), rtol = rtol_in;
  if (!rtol.defined()) {
    double usual = epsilon(t.dtype()) * double(std::max(t.size(-1), t.size(-2)));
    rtol = scalar_tensor(Scalar(usual), real);
    if (atol_in.defined()) rtol = where(atol > 0, scalar_tensor(Scalar(0.0), real), rtol);
  }
  return {atol, rtol};
}
std::pair<Tensor, Tensor> tolerances(const Args& a, const Tensor& t, std::optional<double> atol, std::optional<double> rtol) {
  (void)a;
  double usual = atol && *atol > 0 ? 0.0 : epsilon(t.dtype()) * double(std::max(t.size(-1), t.size(-2)));
  TensorOptions real(real_of(t.dtype()));
  real = real.device(t.device());
  return {scalar_tensor(Scalar(atol.value_or(0)), real), scalar_tensor(Scalar(rtol.value_or(usual)), real)};
}
Tensor threshold(const Tensor& atol, const Tensor& rtol, const Tensor& largest) { return maximum(atol.unsqueeze(-1), rtol.unsqueeze(-1) * largest); }
Results pinv(const Args& a) {
  check_matrix(a, 0);
  check_field(a, 0);
  const Tensor& t = a.tensor(0);
  bool is_hermitian = a.flag(3);
  if (is_hermitian) check_square(a, 0);
  if (t.numel() == 0) return zeros_like(t.transpose(-2, -1)).contiguous();
  auto [atol, rtol] = tolerances(a, t, a.tensor(1), a.tensor(2));
  Tensor left, right, values;
  if (is_hermitian) {
    auto [w, v] = linalg_eigh(t);
    left = v, right = mh(v), values = w;
  } else {
    auto [u, s, vh] = linalg_svd(t, false);
    left = mh(vh), right = mh(u), values = s;
  }
  Tensor size = values.abs(), kept = size > threshold(atol, rtol, size.amax(-1, true));
  Tensor inverse = where(kept, values.reciprocal(), zeros_like(values));
  return matmul(left * inverse.unsqueeze(-2), right);
}
std::optional<double> opt_number(const Args& a, int i) { return a.has(i) ? std::optional(a.number(i)) : std::nullopt; }

// ---- rank ----
Results rank_of(const Args& a, const std::pair<Tensor, Tensor>& tol, bool is_hermitian) {
  check_matrix(a, 0);
  const Tensor& t = a.tensor(0);
  if (t.numel() == 0) {
    std::vector<int64_t> batch(t.sizes().begin(), t.sizes().end() - 2);
    return zeros(batch, TensorOptions(kLong).device(t.device()));
  }
  Tensor s = is_hermitian ? linalg_eigvalsh(t).abs() : linalg_svdvals(t);
  return (s > threshold(tol.first, tol.second, s.amax(-1, true))).sum(-1);
}

// Singular values near 1, 2, 3.
Tensor separated(SampleGen& s, std::vector<int64_t> sizes) {
  int64_t m = sizes[sizes.size() - 2], n = sizes.back();
  Tensor t = s.t(sizes, range(-0.3, 0.3));
  return t + eye(m, n, t.options()) * (arange(0, n, t.options()) + 1);
}
DType real_type(SampleGen& s) { return s.dtype() == kComplexFloat ? kFloat : s.dtype() == kComplexDouble ? kDouble : s.dtype(); }
void pinv_samples(SampleGen& s) { s(separated(s, {3, 3})); s(separated(s, {2, 3, 2})); s(separated(s, {2, 3})); s(s.t({0, 2})); }

constexpr OpDef table[] = {
OP("linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types, .kernels = {{Cpu, k_lstsq}}, .dynamic_out = true,
  .save = {in(0), in(1), out(0)}, .vjp = vjp_lstsq, .non_diff_outputs = 0b1100,
  .shard = {"replicate"}, .tol = {1e-4, 1e-4}, .doc = "Solution of least squares |self X - b|, by driver gelsy, gelsd, gelss or gels; what the driver does not give is empty.",
  .samples = [](SampleGen& s) {
      s(separated(s, {3, 3}), s.t({3, 2})); s(separated(s, {2, 4, 2}), s.t({2, 4, 2})); s(separated(s, {2, 3}), s.t({2, 1}));
      s(separated(s, {4, 2}), s.t({4}), OwnedValue(), "gelsd"); s(separated(s, {4, 2}), s.t({4, 1}), OwnedValue(), "gelss"); s(separated(s, {4, 2}), s.t({4, 1}), OwnedValue(), "gels"); }),
OP("linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_mixed, .decompose = pinv, .save = {in(0), out(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return pinv_gradient(g.dy(), g.out(), g.in(0)); }); },
  .shard = {"linalg-batch"}, .tol = {1e-4, 1e-4}, .doc = "Moore-Penrose inverse; singular values up to max(atol, rtol * largest) count as zero.",
  .samples = [](SampleGen& s) { s(separated(s, {3, 3})); s(separated(s, {2, 3, 2}), s.make({}, range(0.1, 0.1), real_type(s))); s(separated(s, {2, 3}), OwnedValue(), s.make({}, range(0.1, 0.1), real_type(s))); s(s.t({0, 2})); }),
OP("linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types,
  .decompose = [](const Args& a) -> Results {
      check_matrix(a, 0);
      auto [atol, rtol] = tolerances(a, a.tensor(0), opt_number(a, 1), opt_number(a, 2));
      return linalg_pinv(a.tensor(0), atol, rtol, a.flag(3)); },
  .shard = {"decomp"}, .tol = {1e-4, 1e-4}, .doc = "Moore-Penrose inverse; singular values up to max(atol, rtol * largest) count as zero.",
  .samples = [](SampleGen& s) { s(separated(s, {3, 3})); s(separated(s, {2, 3, 2}), 0.1); s(separated(s, {2, 3}), OwnedValue(), 0.01); s(s.t({0, 2})); }),
OP("linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types,
  .decompose = [](const Args& a) -> Results { return linalg_pinv(a.tensor(0), std::optional<double>(0.0), std::optional<double>(a.number(1)), a.flag(2)); },
  .shard = {"decomp"}, .tol = {1e-4, 1e-4}, .doc = "Moore-Penrose inverse with a relative tolerance.", .samples = [](SampleGen& s) { s(separated(s, {3, 2}), 0.01); }),
OP("linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_mixed,
  .decompose = [](const Args& a) -> Results { return linalg_pinv(a.tensor(0), zeros_like(a.tensor(1)), a.tensor(1), a.flag(2)); },
  .shard = {"decomp"}, .tol = {1e-4, 1e-4}, .doc = "Moore-Penrose inverse with a relative tolerance for each matrix.",
  .samples = [](SampleGen& s) { s(separated(s, {2, 3, 2}), s.make({2}, range(0.01, 0.1), real_type(s))); }),
OP("pinverse(Tensor self, float rcond=1e-15) -> Tensor",
  .autocast = Autocast::Float32,
  .types = lapack_types, .decompose = [](const Args& a) -> Results { return linalg_pinv(a.tensor(0), a.number(1), false); },
  .shard = {"decomp"}, .tol = {1e-4, 1e-4}, .doc = "linalg_pinv with a relative tolerance.", .samples = pinv_samples),
OP("linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_mixed,
  .decompose = [](const Args& a) -> Results { check_matrix(a, 0); check_field(a, 0); return rank_of(a, tolerances(a, a.tensor(0), a.tensor(1), a.tensor(2)), a.flag(3)); },
  .non_differentiable = true, .shard = {"decomp"}, .doc = "Number of singular values above max(atol, rtol * largest).",
  .samples = [](SampleGen& s) { s(separated(s, {3, 3})); s(separated(s, {2, 3, 2}), s.make({}, range(1.5, 1.5), real_type(s))); s(s.t({0, 3})); }),
OP("linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types,
  .decompose = [](const Args& a) -> Results { check_matrix(a, 0); check_field(a, 0); return rank_of(a, tolerances(a, a.tensor(0), opt_number(a, 1), opt_number(a, 2)), a.flag(3)); },
  .non_differentiable = true, .shard = {"decomp"}, .doc = "Number of singular values above max(atol, rtol * largest).",
  .samples = [](SampleGen& s) { s(separated(s, {3, 3})); s(separated(s, {2, 3, 2}), 1.5); s(s.t({2, 0, 3})); }),
OP("linalg_matrix_rank(Tensor self, float tol, bool hermitian=False) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types,
  .decompose = [](const Args& a) -> Results { check_matrix(a, 0); check_field(a, 0); return rank_of(a, tolerances(a, a.tensor(0), a.number(1), 0.0), a.flag(2)); },
  .non_differentiable = true, .shard = {"decomp"}, .doc = "Number of singular values above tol.", .samples = [](SampleGen& s) { s(separated(s, {3, 3}), 1.5); }),
OP("linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, bool hermitian=False) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_mixed,
  .decompose = [](const Args& a) -> Results { check_matrix(a, 0); check_field(a, 0); return rank_of(a, tolerances(a, a.tensor(0), a.tensor(1), zeros_like(a.tensor(1))), a.flag(2)); },
  .non_differentiable = true, .shard = {"decomp"}, .doc = "Number of singular values above tol.", .samples = [](SampleGen& s) { s(separated(s, {2, 3, 3}), s.make({2}, range(1.5, 1.5), real_type(s))); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(linalg_lstsq, table)
