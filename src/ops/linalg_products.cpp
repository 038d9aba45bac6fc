// Powers and exponentials of matrices, products of chains, cross products, and tensors solved as matrices.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/checked_math.h"
#include "ops/infer.h"
#include "ops/matrix.h"
#include "vesta/ops.h"

namespace vesta {
namespace {

using namespace op_block;
using namespace matrix;

// ---- powers ----
Results power(const Args& a) {
  check_square(a, 0);
  const Tensor& t = a.tensor(0);
  int64_t n = a.integer(1);
  VESTA_CHECK_AS(TypeError, t.dtype() != kBool, a.name(), ": does not take bool tensors");
  if (n == 0) return eye(t.size(-1), t.options()).expand(t.sizes()).clone(MemoryFormat::Contiguous);
  // The size of n is taken without overflow for the smallest integer, too.
  uint64_t left = n < 0 ? uint64_t(0) - uint64_t(n) : uint64_t(n);
  if (n < 0) VESTA_CHECK_AS(TypeError, lapack_types.accepts(t.dtype()), a.name(), ": expected a floating or complex dtype for a negative power, got ", dtype_name(t.dtype()));
  Tensor base = n < 0 ? linalg_inv(t) : t, result;
  if (left == 1) return base.clone();
  for (;; base = matmul(base, base)) {
    if (left & 1) result = result.defined() ? matmul(result, base) : base;
    if (!(left >>= 1)) return result;
  }
}

// ---- exponential ----
// Pade approximants by N. J. Higham, "The scaling and squaring method for the matrix exponential revisited", 2005: of
// degree m the numerator's coefficients, and the largest 1-norm at which its backward error is below double rounding.
struct Pade {
  int degree;
  double theta;
  std::vector<double> b;
};
const std::vector<Pade>& approximants() {
  static const std::vector<Pade> list = {
      {3, 1.495585217958292e-2, {120, 60, 12, 1}},
      {5, 2.539398330063230e-1, {30240, 15120, 3360, 420, 30, 1}},
      {7, 9.504178996162932e-1, {17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1}},
      {9, 2.097847961257068, {17643225600, 8821612800, 2075673600, 302702400, 30270240, 2162160, 110880, 3960, 90, 1}},
      {13, 5.371920351148152,
       {64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600, 670442572800, 33522128640,
        1323241920, 40840800, 960960, 16380, 182, 1}}};
  return list;
}
// Which approximant, and how often the matrix is halved first.
std::pair<size_t, int> plan_of(double norm) {
  auto& list = approximants();
  size_t last = list.size() - 1;
  for (size_t i = 0; i < last; ++i)
    if (norm <= list[i].theta) return {i, 0};
  if (!std::isfinite(norm)) return {last, 0};
  return {last, std::max(0, int(std::ceil(std::log2(norm / list[last].theta))))};
}
Tensor exponential(const Tensor& in, const Pade& p, int halvings) {
  Tensor a = halvings ? in * std::ldexp(1.0, -halvings) : in;
  Tensor one = eye(a.size(-1), a.options()), a2 = bmm(a, a), odd = one * p.b[1], even = one * p.b[0], square = a2;
  for (size_t k = 2; k < p.b.size(); k += 2) {
    even = even + square * p.b[k];
    odd = odd + square * p.b[k + 1];
    if (k + 2 < p.b.size()) square = bmm(square, a2);
  }
  odd = bmm(a, odd);
  Tensor r = std::get<0>(_linalg_solve_ex(even - odd, even + odd));
  for (int i = 0; i < halvings; ++i) r = bmm(r, r);
  return r;
}
void k_matrix_exp(const KernelCtx& k) {
  const Tensor& t = k.tensor(0);
  if (t.numel() == 0) return;
  int64_t n = t.size(-1), count = batch_count(t.sizes());
  // Squaring magnifies errors by the matrix's condition, so single precision is computed in double.
  Tensor flat = t.reshape({count, n, n}).to(is_complex(t.dtype()) ? kComplexDouble : kDouble), out = k.out().view({count, n, n});
  Tensor norms = flat.abs().sum(-2).amax(-1, false).contiguous();
  // Matrices that are treated alike go together.
  std::map<std::pair<size_t, int>, std::vector<int64_t>> groups;
  for (int64_t b = 0; b < count; ++b) groups[plan_of(norms.const_data_ptr<double>()[b])].push_back(b);
  for (auto& [plan, members] : groups) {
    const Pade& p = approximants()[plan.first];
    if (int64_t(members.size()) == count) {
      out.copy_(exponential(flat, p, plan.second));
      return;
    }
    Tensor index = empty({int64_t(members.size())}, TensorOptions(kLong));
    std::copy(members.begin(), members.end(), index.data_ptr<int64_t>());
    out.index_copy_(0, index, exponential(flat.index_select(0, index), p, plan.second).to(t.dtype()));
  }
}
// The derivative of exp at A^H in direction G is the upper right block of exp([[A^H, G], [0, A^H]]).
int vjp_matrix_exp(const Grad& g) {
  return grads(G(0) {
    Tensor a = mh(g.in(0));
    int64_t n = a.size(-1);
    if (n == 0) return zeros(g.sizes(0), a.options());
    Tensor top = cat({a, g.dy()}, -1), bottom = cat({zeros_like(a), a}, -1);
    return linalg_matrix_exp(cat({top, bottom}, -2)).narrow(-2, 0, n).narrow(-1, n, n); });
}

// ---- cross, vecdot ----
int64_t cross_dim(const Args& a) {
  const Tensor &x = a.tensor(0), &y = a.tensor(1);
  VESTA_CHECK(x.dim() == y.dim(), a.name(), ": expected tensors of as many dims, got ", x.dim(), " and ", y.dim());
  int64_t d = wrap_dim(a, a.integer(2), x.dim());
  VESTA_CHECK(x.dim() > 0 && x.size(d) == 3 && y.size(d) == 3, a.name(), ": expected size 3 in dim ", d, ", got ", x.dim() ? x.size(d) : 0, " and ", y.dim() ? y.size(d) : 0);
  return d;
}
// Component i is x[i + 1] y[i + 2] - x[i + 2] y[i + 1].
Results cross_product(const Args& a) {
  int64_t d = cross_dim(a);
  const Tensor &x = a.tensor(0), &y = a.tensor(1);
  return x.roll({-1}, {d}) * y.roll({-2}, {d}) - x.roll({-2}, {d}) * y.roll({-1}, {d});
}
Results vecdot(const Args& a) {
  const Tensor &x = a.tensor(0), &y = a.tensor(1);
  VESTA_CHECK_AS(TypeError, is_floating_point(x.dtype()) || is_complex(x.dtype()), a.name(), ": expected a floating or complex dtype, got ", dtype_name(x.dtype()));
  VESTA_CHECK_AS(TypeError, x.dtype() == y.dtype(), a.name(), ": expected ", dtype_name(x.dtype()), " for y, got ", dtype_name(y.dtype()));
  if (x.dim() == 1 && y.dim() == 1) {
    wrap_dim(a, a.integer(2), 1);
    return x.is_complex() ? vdot(x, y) : dot(x, y);
  }
  Tensor p = (x.is_complex() ? x.conj() : x) * y;
  return p.sum({wrap_dim(a, a.integer(2), p.dim())});
}

// ---- multi_dot ----
Results multi_dot(const Args& a) {
  TensorList list = a.tensors(0);
  VESTA_CHECK(list.size() >= 2, a.name(), ": expected at least two tensors, got ", list.size());
  std::vector<Tensor> m(list.begin(), list.end());
  size_t n = m.size();
  for (size_t i = 0; i < n; ++i) {
    bool end = i == 0 || i + 1 == n;
    VESTA_CHECK(m[i].dim() == 2 || (end && m[i].dim() == 1), a.name(), ": expected ", end ? "a vector or matrix" : "a matrix", " at place ", i, ", got ", m[i].dim(), " dims");
  }
  bool row = m[0].dim() == 1, column = m[n - 1].dim() == 1;
  if (row) m[0] = m[0].unsqueeze(0);
  if (column) m[n - 1] = m[n - 1].unsqueeze(-1);
  std::vector<double> size;
  for (auto& t : m) size.push_back(double(t.size(0)));
  size.push_back(double(m[n - 1].size(1)));
  for (size_t i = 0; i + 1 < n; ++i)
    VESTA_CHECK(m[i].size(1) == m[i + 1].size(0), a.name(), ": tensors ", i, " and ", i + 1, " do not fit: ", m[i].size(1), " columns, ", m[i + 1].size(0), " rows");
  // The cheapest order by dynamic programming over chains (Cormen et al., "Introduction to Algorithms", 15.2).
  std::vector<std::vector<double>> cost(n, std::vector<double>(n, 0));
  std::vector<std::vector<size_t>> cut(n, std::vector<size_t>(n, 0));
  for (size_t length = 2; length <= n; ++length)
    for (size_t i = 0; i + length <= n; ++i) {
      size_t j = i + length - 1;
      cost[i][j] = std::numeric_limits<double>::infinity();
      for (size_t k = i; k < j; ++k) {
        double c = cost[i][k] + cost[k + 1][j] + size[i] * size[k + 1] * size[j + 1];
        // Of three matrices the left pair goes first where both orders cost the same, as in PyTorch.
        if (c < cost[i][j] || (n == 3 && c == cost[i][j])) cost[i][j] = c, cut[i][j] = k;
      }
    }
  // Ranges are resolved without recursion: a chain may be long.
  std::vector<std::vector<Tensor>> done(n, std::vector<Tensor>(n));
  for (size_t i = 0; i < n; ++i) done[i][i] = m[i];
  std::vector<std::pair<size_t, size_t>> stack{{0, n - 1}};
  while (!stack.empty()) {
    auto [i, j] = stack.back();
    Tensor &l = done[i][cut[i][j]], &r = done[i == j ? i : cut[i][j] + 1][j];
    if (done[i][j].defined()) stack.pop_back();
    else if (!l.defined()) stack.push_back({i, cut[i][j]});
    else if (!r.defined()) stack.push_back({cut[i][j] + 1, j});
    else done[i][j] = mm(l, r), stack.pop_back();
  }
  Tensor result = done[0][n - 1];
  if (row) result = result.squeeze(0);
  return column ? result.squeeze(-1) : result;
}

// ---- tensors as matrices ----
int64_t product(const Args& a, IntArrayRef sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n = checked_mul(n, s, a.name());
  return n;
}
Results tensorinv(const Args& a) {
  const Tensor& t = a.tensor(0);
  int64_t ind = a.integer(1);
  VESTA_CHECK(ind > 0 && ind <= t.dim(), a.name(), ": expected ind in [1, ", t.dim(), "], got ", ind);
  std::vector<int64_t> first(t.sizes().begin(), t.sizes().begin() + ind), last(t.sizes().begin() + ind, t.sizes().end());
  int64_t p = product(a, first), q = product(a, last);
  VESTA_CHECK(p == q, a.name(), ": the sizes before and after ind have different products: ", p, " and ", q);
  std::vector<int64_t> result = last;
  result.insert(result.end(), first.begin(), first.end());
  return linalg_inv(t.reshape({p, q})).reshape(result);
}
Results tensorsolve(const Args& a) {
  Tensor t = a.tensor(0);
  const Tensor& b = a.tensor(1);
  int64_t n = t.dim();
  if (a.has(2)) {
    std::vector<bool> moved(static_cast<size_t>(n), false);
    std::vector<int64_t> order, end;
    for (int64_t d : a.ints(2)) {
      int64_t w = wrap_dim(a, d, n);
      VESTA_CHECK(n > 0 && !moved[size_t(w)], a.name(), ": a dim appears twice: ", d);
      moved[size_t(w)] = true;
      end.push_back(w);
    }
    for (int64_t d = 0; d < n; ++d)
      if (!moved[size_t(d)]) order.push_back(d);
    order.insert(order.end(), end.begin(), end.end());
    t = t.permute(order);
  }
  VESTA_CHECK(b.dim() <= n, a.name(), ": other has more dims than self");
  std::vector<int64_t> result(t.sizes().begin() + b.dim(), t.sizes().end());
  int64_t q = product(a, result);
  VESTA_CHECK(t.numel() == checked_mul(q, q, a.name()) && b.numel() == q, a.name(), ": expected self to be square as a matrix and other to have ", q, " elements, got ", b.numel());
  return linalg_solve(t.reshape({q, q}), b.reshape({-1})).reshape(result);
}

Tensor conditioned(SampleGen& s, std::vector<int64_t> sizes) {
  Tensor t = s.t(sizes, range(-1, 1));
  return t + eye(sizes[sizes.size() - 2], sizes.back(), t.options()) * 3;
}
bool field(SampleGen& s) { return lapack_types.accepts(s.dtype()); }
void power_samples(SampleGen& s) {
  if (s.dtype() == kBool || s.dtype() == kHalf || s.dtype() == kBFloat16) return;
  s(s.t({3, 3}, range(-1, 1)), 3); s(s.t({2, 2, 2}, range(-1, 1)), 0); s(s.t({2, 2}), 1); s(s.t({0, 0}), 2);
  if (field(s)) s(conditioned(s, {2, 2, 2}), -2);
}
void exp_samples(SampleGen& s) { s(s.t({3, 3}, range(-1, 1))); s(s.t({2, 2, 2}, range(-3, 3))); s(s.t({1, 1})); s(s.t({0, 0})); s(s.t({0, 2, 2})); }
bool numbers(SampleGen& s) { return s.dtype() != kBool; }

constexpr OpDef table[] = {
OP("matrix_power(Tensor self, int n) -> Tensor",
  .forms = Out, .types = any_types, .decompose = power, .shard = {"decomp"}, .tol = {1e-4, 1e-4}, .doc = "linalg_matrix_power.", .samples = power_samples),
OP("linalg_matrix_power(Tensor self, int n) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = any_types, .decompose = power, .shard = {"decomp"}, .tol = {1e-4, 1e-4}, .doc = "The n-th power of square matrices, by repeated squaring; of the inverse for negative n.", .samples = power_samples),
OP("linalg_matrix_exp(Tensor self) -> Tensor",
  .autocast = Autocast::Float32,
  .types = lapack_types,
  .infer = [](InferCtx& c) { check_square(c, 0); check_field(c, 0); c.out(0, c.sizes(0), c.dtype_of(0), c.tensor(0).device()); },
  .kernels = {{Cpu, k_matrix_exp}}, .save = {in(0)}, .vjp = vjp_matrix_exp,
  .shard = {"linalg-batch"}, .tol = {1e-4, 1e-4}, .doc = "Matrix exponential of square matrices.", .samples = exp_samples),
OP("matrix_exp(Tensor self) -> Tensor",
  .types = lapack_types, .decompose = [](const Args& a) -> Results { return linalg_matrix_exp(a.tensor(0)); },
  .shard = {"linalg-batch"}, .tol = {1e-4, 1e-4}, .doc = "linalg_matrix_exp.", .samples = exp_samples),
OP("linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor",
  .forms = Out, .types = any_types, .decompose = cross_product, .save = {in(0).if_needs(1), in(1).if_needs(0)},
  .vjp = [](const Grad& g) {
      int64_t d = g.integer(2);
      return grads(G(0) { return linalg_cross(g.in(1).conj(), g.dy(), d); }, G(1) { return linalg_cross(g.dy(), g.in(0).conj(), d); }); },
  .shard = {"pw-exceptdim"}, .doc = "Cross product along a dim of size 3; the other dims broadcast.",
  .samples = [](SampleGen& s) { if (numbers(s)) { s(s.t({3}), s.t({3})); s(s.t({2, 3}), s.t({1, 3})); s(s.t({3, 2}), s.t({3, 2}), 0); s(s.t({0, 3}), s.t({1, 3})); } }),
OP("cross(Tensor self, Tensor other, int? dim=None) -> Tensor",
  .forms = Out, .types = any_types,
  .decompose = [](const Args& a) -> Results {
      const Tensor& t = a.tensor(0);
      if (a.has(2)) return linalg_cross(t, a.tensor(1), a.integer(2));
      int64_t d = 0;
      while (d < t.dim() && t.size(d) != 3) ++d;
      VESTA_CHECK(d < t.dim(), a.name(), ": self has no dim of size 3");
      return linalg_cross(t, a.tensor(1), d); },
  .shard = {"pw-exceptdim"}, .doc = "linalg_cross along dim, or the first dim of size 3.",
  .samples = [](SampleGen& s) { if (numbers(s)) { s(s.t({2, 3}), s.t({2, 3})); s(s.t({3, 2}), s.t({3, 2}), 0); } }),
OP("linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor",
  .autocast = Autocast::Lower,
  .forms = Out, .types = {types::kFloatMask | types::kComplexMask, Promote::None}, .decompose = vecdot,
  .shard = {"einsum"}, .doc = "Sum of conj(x) y along a dim; the others broadcast.",
  .samples = [](SampleGen& s) { s(s.t({3}), s.t({3})); s(s.t({2, 4}), s.t({1, 4})); s(s.t({3, 2}), s.t({3, 2}), 0); s(s.t({0, 3}), s.t({1, 3})); }),
OP("linalg_multi_dot(Tensor[] tensors) -> Tensor",
  .forms = Out, .types = same_number, .decompose = multi_dot,
  .shard = {"einsum"}, .tol = {1e-5, 1e-5}, .doc = "Product of a chain of matrices in the cheapest order; the first and the last may be vectors.",
  .samples = [](SampleGen& s) {
      s(std::vector<Tensor>{s.t({2, 3}, range(-1, 1)), s.t({3, 4}, range(-1, 1)), s.t({4, 2}, range(-1, 1))}); s(std::vector<Tensor>{s.t({3}, range(-1, 1)), s.t({3, 4}, range(-1, 1))});
      s(std::vector<Tensor>{s.t({3}, range(-1, 1)), s.t({3, 2}, range(-1, 1)), s.t({2}, range(-1, 1))}); s(std::vector<Tensor>{s.t({0, 2}), s.t({2, 3})}); }),
OP("linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) -> Results { return a.tensor(0).diagonal(a.integer(1), a.integer(2), a.integer(3)); },
  .shard = {"decomp"}, .doc = "diagonal of the last two dims, as a view.", .samples = [](SampleGen& s) { s(s.t({3, 4})); s(s.t({2, 3, 3}), 1, 0, 2); }),
OP("linalg_tensorinv(Tensor self, int ind=2) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types, .decompose = tensorinv, .shard = {"decomp"}, .tol = {1e-4, 1e-4}, .doc = "Inverse under tensordot over the first ind dims of the result.",
  .samples = [](SampleGen& s) { s(conditioned(s, {4, 4}).reshape({2, 2, 4})); s(conditioned(s, {3, 3}), 1); }),
OP("linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types, .decompose = tensorsolve, .shard = {"decomp"}, .tol = {1e-4, 1e-4}, .doc = "X with tensordot(self, X, X.dim()) == other; dims of self may be moved to the end first.",
  .samples = [](SampleGen& s) { s(conditioned(s, {4, 4}).reshape({2, 2, 4}), s.t({2, 2})); s(conditioned(s, {4, 4}).reshape({4, 2, 2}), s.t({4})); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(linalg_products, table)
