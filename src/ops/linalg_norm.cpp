// Norms of matrices, condition numbers, covariances.
#include <cmath>
#include <limits>

#include "ops/infer.h"
#include "ops/matrix.h"
#include "vesta/ops.h"

namespace vesta {
namespace {

using namespace op_block;
using namespace matrix;

constexpr double kInf = std::numeric_limits<double>::infinity();

std::optional<DType> opt_dtype(const Args& a, int i) { return a.has(i) ? std::optional(DType(a.integer(i))) : std::nullopt; }
OptionalIntArrayRef opt_dims(const Args& a, int i) { return a.has(i) ? OptionalIntArrayRef(a.ints(i)) : OptionalIntArrayRef(); }

void check_norm(const Args& a, const Tensor& t, std::optional<DType> dtype) {
  VESTA_CHECK_AS(TypeError, is_floating_point(t.dtype()) || is_complex(t.dtype()), a.name(), ": expected a floating or complex dtype, got ", dtype_name(t.dtype()));
  if (dtype)
    VESTA_CHECK_AS(TypeError, (is_floating_point(*dtype) || is_complex(*dtype)) && is_complex(*dtype) == is_complex(t.dtype()), a.name(), ": dtype ",
                   dtype_name(*dtype), " does not fit a tensor of ", dtype_name(t.dtype()));
}
// The two dims of a matrix, wrapped.
std::pair<int64_t, int64_t> matrix_dims(const Args& a, const Tensor& t, IntArrayRef dims) {
  VESTA_CHECK(t.dim() >= 2, a.name(), ": expected at least 2 dims, got ", t.dim());
  VESTA_CHECK(dims.size() == 2, a.name(), ": expected two dims, got ", dims.size());
  int64_t r = wrap_dim(a, dims[0], t.dim()), c = wrap_dim(a, dims[1], t.dim());
  VESTA_CHECK(r != c, a.name(), ": the two dims are the same, ", r);
  return {r, c};
}
// Singular values of the matrices in dims (r, c), as the last dim.
Tensor singular_values(const Tensor& t, int64_t r, int64_t c) { return linalg_svdvals(t.movedim({r, c}, {-2, -1})); }
Tensor restore(const Tensor& t, int64_t r, int64_t c, bool keepdim) {
  if (!keepdim) return t;
  return t.unsqueeze(std::min(r, c)).unsqueeze(std::max(r, c));
}
Tensor matrix_norm(const Args& a, const Tensor& in, double p, IntArrayRef dims, bool keepdim, std::optional<DType> dtype) {
  auto [r, c] = matrix_dims(a, in, dims);
  double size = std::fabs(p);
  VESTA_CHECK(size == 1 || size == 2 || size == kInf, a.name(), ": expected order 1, 2 or infinity, or its negative, got ", p);
  check_norm(a, in, dtype);
  Tensor t = dtype ? in.to(*dtype) : in;
  if (size == 2) {
    Tensor s = singular_values(t, r, c);
    return restore(p > 0 ? s.amax(-1, false) : s.amin(-1, false), r, c, keepdim);
  }
  // 1: the largest sum of a column; infinity: of a row.
  if (size == kInf) std::swap(r, c);
  Tensor sums = linalg_vector_norm(t, Scalar(1), IntArrayRef{r}, keepdim);
  int64_t over = c > r && !keepdim ? c - 1 : c;
  return p > 0 ? sums.amax(over, keepdim) : sums.amin(over, keepdim);
}
Tensor matrix_norm(const Args& a, const Tensor& in, std::string_view p, IntArrayRef dims, bool keepdim, std::optional<DType> dtype) {
  auto [r, c] = matrix_dims(a, in, dims);
  VESTA_CHECK(p == "fro" || p == "nuc", a.name(), ": expected order 'fro' or 'nuc', got '", p, "'");
  check_norm(a, in, dtype);
  if (p == "fro") return linalg_vector_norm(in, Scalar(2), IntArrayRef{r, c}, keepdim, dtype);
  Tensor t = dtype ? in.to(*dtype) : in;
  return restore(singular_values(t, r, c).sum(-1, false), r, c, keepdim);
}
Results norm(const Args& a) {
  const Tensor& t = a.tensor(0);
  OptionalIntArrayRef dims = opt_dims(a, 2);
  bool keepdim = a.flag(3);
  std::optional<DType> dtype = opt_dtype(a, 4);
  if (dims.has_value()) VESTA_CHECK(!a.has(1) || (*dims).size() == 1 || (*dims).size() == 2, a.name(), ": expected one or two dims, got ", (*dims).size());
  if (!a.has(1)) {
    Tensor flat = t;
    return linalg_vector_norm(flat, Scalar(2), dims, keepdim, dtype);
  }
  VESTA_CHECK(dims.has_value() || t.dim() == 1 || t.dim() == 2, a.name(), ": expected a vector or a matrix where ord is given without dim, got ", t.dim(), " dims");
  bool of_matrix = dims.has_value() ? (*dims).size() == 2 : t.dim() == 2;
  std::vector<int64_t> own = of_matrix ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0};
  IntArrayRef used = dims.has_value() ? *dims : IntArrayRef(own);
  if (of_matrix) return matrix_norm(a, t, a.scalar(1).toDouble(), used, keepdim, dtype);
  return linalg_vector_norm(t, a.scalar(1), used, keepdim, dtype);
}
Results norm_by_name(const Args& a) {
  const Tensor& t = a.tensor(0);
  OptionalIntArrayRef dims = opt_dims(a, 2);
  VESTA_CHECK(dims.has_value() ? (*dims).size() == 2 : t.dim() == 2, a.name(), ": order '", a.string(1), "' is one of matrices: expected two dims");
  std::vector<int64_t> own{0, 1};
  return matrix_norm(a, t, a.string(1), dims.has_value() ? *dims : IntArrayRef(own), a.flag(3), opt_dtype(a, 4));
}

// ---- condition numbers ----
Tensor no_condition(const Tensor& t) {
  std::vector<int64_t> batch(t.sizes().begin(), t.sizes().end() - 2);
  return zeros(batch, TensorOptions(real_of(t.dtype())).device(t.device()));
}
// The inverse, with infinities where there is none.
Tensor inverse_or_infinity(const Tensor& t) {
  auto [inverse, info] = linalg_inv_ex(t, false);
  return inverse.masked_fill((info != 0).unsqueeze(-1).unsqueeze(-1), Scalar(kInf));
}
Results cond(const Args& a) {
  check_matrix(a, 0);
  const Tensor& t = a.tensor(0);
  double p = a.has(1) ? a.scalar(1).toDouble() : 2, size = std::fabs(p);
  if (t.numel() == 0) return no_condition(t);
  if (size == 2) {
    Tensor s = linalg_svdvals(t), first = s.select(-1, 0), last = s.select(-1, s.size(-1) - 1);
    return p > 0 ? first / last : last / first;
  }
  check_square(a, 0);
  const std::vector<int64_t> dims{-2, -1};
  return matrix_norm(a, t, p, dims, false, {}) * matrix_norm(a, inverse_or_infinity(t), p, dims, false, {});
}
Results cond_by_name(const Args& a) {
  check_square(a, 0);
  const Tensor& t = a.tensor(0);
  std::string_view p = a.string(1);
  if (t.numel() == 0) return no_condition(t);
  const std::vector<int64_t> dims{-2, -1};
  Tensor inverse = p == "nuc" ? linalg_inv(t) : inverse_or_infinity(t);
  return matrix_norm(a, t, p, dims, false, {}) * matrix_norm(a, inverse, p, dims, false, {});
}
std::optional<Scalar> opt_order(const Args& a, int i) { return a.has(i) ? std::optional(a.scalar(i)) : std::nullopt; }

// ---- covariance ----
bool readable(const Tensor& t) { return t.impl()->bits & TensorImpl::kHasData; }
void check_weights(const Args& a, const Tensor& w, const char* what, int64_t observations, bool integers) {
  VESTA_CHECK(w.dim() <= 1, a.name(), ": expected ", what, " with at most one dim, got ", w.dim());
  VESTA_CHECK_AS(TypeError, integers ? is_integral(w.dtype(), false) : is_floating_point(w.dtype()), a.name(), ": expected ", integers ? "integer " : "floating ", what, ", got ", dtype_name(w.dtype()));
  VESTA_CHECK(w.numel() == observations, a.name(), ": expected ", observations, " ", what, ", got ", w.numel());
  if (observations && readable(w)) VESTA_CHECK((w >= 0).all().item().toBool(), a.name(), ": ", what, " must not be negative");
}
Results cov(const Args& a) {
  const Tensor& t = a.tensor(0);
  VESTA_CHECK(t.dim() <= 2, a.name(), ": expected at most 2 dims, got ", t.dim());
  VESTA_CHECK_AS(TypeError, t.dtype() != kBool, a.name(), ": does not take bool tensors");
  Tensor x = t.dim() < 2 ? t.reshape({1, -1}) : t, w;
  bool half = t.dtype() == kHalf || t.dtype() == kBFloat16;
  if (half) x = x.to(kFloat);  // rounded once, at the end
  int64_t observations = x.size(1), correction = a.integer(1);
  const Tensor &counts = a.tensor(2), &weights = a.tensor(3);
  if (counts.defined()) check_weights(a, counts, "fweights", observations, true), w = counts;
  if (weights.defined()) {
    check_weights(a, weights, "aweights", observations, false);
    w = w.defined() ? w * weights : weights;
  }
  Tensor mean, factor;
  if (w.defined()) {
    Tensor total = w.sum();
    if (observations && readable(total)) VESTA_CHECK(total.item().toDouble() != 0, a.name(), ": the weights sum to zero");
    mean = (x * w).sum(1) / total;
    factor = weights.defined() && correction != 0 ? total - correction * (w * weights).sum() / total : total - correction;
  } else {
    mean = x.sum(1) / observations;
    factor = scalar_tensor(Scalar(double(observations - correction)), TensorOptions(real_of(mean.dtype())));
  }
  factor = factor.masked_fill(factor < 0, Scalar(0));
  Tensor centered = x - mean.unsqueeze(1);
  Tensor r = matmul(centered, ((w.defined() ? centered * w : centered).t()).conj()).true_divide(factor).squeeze();
  return half ? r.to(t.dtype()) : r;
}
Results corrcoef(const Args& a) {
  VESTA_CHECK(a.tensor(0).dim() <= 2, a.name(), ": expected at most 2 dims, got ", a.tensor(0).dim());
  Tensor c = vesta::cov(a.tensor(0));
  if (c.dim() == 0) return c / c;
  Tensor d = c.diagonal(), deviation = (d.is_complex() ? vesta::real(d) : d).sqrt();
  c = c / deviation.unsqueeze(1) / deviation.unsqueeze(0);
  // Rounding may leave the unit interval.
  if (!c.is_complex()) return c.clamp(-1, 1);
  return vesta::complex(vesta::real(c).clamp(-1, 1), vesta::imag(c).clamp(-1, 1));
}

// Singular values near 1, 2, 3, and no equal sums.
Tensor separated(SampleGen& s, std::vector<int64_t> sizes) {
  int64_t m = sizes[sizes.size() - 2], n = sizes.back();
  Tensor t = s.t(sizes, range(0.1, 0.4));
  return t + eye(m, n, t.options()) * (arange(0, n, t.options()) + 1);
}
bool field(SampleGen& s) { return lapack_types.accepts(s.dtype()); }

constexpr TypeRule norm_types{types::kFloatMask | types::kComplexMask, Promote::None};

constexpr OpDef table[] = {
OP("linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = norm_types, .decompose = norm, .shard = {"decomp"}, .tol = {1e-4, 1e-4},
  .doc = "Norm of order ord of vectors (one dim) or matrices (two dims); without ord the 2-norm of all elements.",
  .samples = [](SampleGen& s) {
      s(s.t({3, 4})); s(s.t({5}), Scalar(3)); s(s.t({2, 3, 4}), Scalar(1), std::vector<int64_t>{1}, true); s(s.t({2, 3}), OwnedValue(), std::vector<int64_t>{0});
      if (field(s)) { s(separated(s, {3, 3}), Scalar(2)); s(separated(s, {2, 3, 2}), Scalar(kInf), std::vector<int64_t>{-2, -1}); } }),
OP("linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = norm_types, .decompose = norm_by_name, .shard = {"decomp"}, .tol = {1e-4, 1e-4}, .doc = "Norm 'fro' or 'nuc' of matrices.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), "fro"); if (field(s)) s(separated(s, {2, 3, 2}), "nuc", std::vector<int64_t>{1, 2}, true); }),
OP("linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2,-1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = norm_types,
  .decompose = [](const Args& a) -> Results { return matrix_norm(a, a.tensor(0), a.scalar(1).toDouble(), a.ints(2), a.flag(3), opt_dtype(a, 4)); },
  .shard = {"decomp"}, .tol = {1e-4, 1e-4}, .doc = "Matrix norm of order 1, 2, infinity or its negative over two dims.",
  .samples = [](SampleGen& s) {
      if (!field(s)) { s(separated(s, {3, 2}), Scalar(1)); return; }
      for (double p : {1.0, -1.0, 2.0, -2.0, kInf, -kInf}) s(separated(s, {3, 2}), Scalar(p));
      s(separated(s, {2, 3, 3}), Scalar(1), std::vector<int64_t>{2, 0}, true); s(separated(s, {2, 3, 2}), Scalar(2), std::vector<int64_t>{-1, -2}, true); }),
OP("linalg_matrix_norm.str_ord(Tensor self, str ord='fro', int[] dim=[-2,-1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = norm_types,
  .decompose = [](const Args& a) -> Results { return matrix_norm(a, a.tensor(0), a.string(1), a.ints(2), a.flag(3), opt_dtype(a, 4)); },
  .shard = {"decomp"}, .tol = {1e-4, 1e-4}, .doc = "Frobenius ('fro') or nuclear ('nuc') norm over two dims.",
  .samples = [](SampleGen& s) { s(s.t({3, 4})); if (field(s)) s(separated(s, {2, 3, 2}), "nuc", std::vector<int64_t>{-2, -1}, true); }),
OP("linalg_cond(Tensor self, Scalar? p=None) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types, .decompose = cond, .shard = {"decomp"}, .tol = {1e-4, 1e-4},
  .doc = "Condition number in a matrix norm: by singular values for order 2, -2 or none, else norm times that of the inverse.",
  .samples = [](SampleGen& s) { s(separated(s, {3, 3})); s(separated(s, {2, 3, 2}), Scalar(-2)); s(separated(s, {2, 3, 3}), Scalar(1)); s(separated(s, {3, 3}), Scalar(kInf)); s(s.t({0, 2, 2})); }),
OP("linalg_cond.p_str(Tensor self, str p) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = lapack_types, .decompose = cond_by_name, .shard = {"decomp"}, .tol = {1e-4, 1e-4}, .doc = "Condition number in the norm 'fro' or 'nuc'.",
  .samples = [](SampleGen& s) { s(separated(s, {3, 3}), "fro"); s(separated(s, {2, 2, 2}), "nuc"); }),
OP("nuclear_norm(Tensor self, bool keepdim=False) -> Tensor",
  .forms = Out, .types = lapack_types,
  .decompose = [](const Args& a) -> Results {
      VESTA_CHECK(a.tensor(0).dim() == 2, a.name(), ": expected a matrix, got ", a.tensor(0).dim(), " dims");
      return matrix_norm(a, a.tensor(0), "nuc", IntArrayRef{0, 1}, a.flag(1), {}); },
  .shard = {"decomp"}, .tol = {1e-4, 1e-4}, .doc = "Sum of the singular values.", .samples = [](SampleGen& s) { s(separated(s, {3, 3})); s(separated(s, {3, 2}), true); }),
OP("nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor",
  .forms = Out, .types = lapack_types,
  .decompose = [](const Args& a) -> Results { return matrix_norm(a, a.tensor(0), "nuc", a.ints(1), a.flag(2), {}); },
  .shard = {"decomp"}, .tol = {1e-4, 1e-4}, .doc = "Sum of the singular values of the matrices in two dims.", .samples = [](SampleGen& s) { s(separated(s, {2, 3, 3}), std::vector<int64_t>{1, 2}); s(separated(s, {2, 3, 2}), std::vector<int64_t>{2, 1}, true); }),
OP("native_norm(Tensor self, Scalar p=2) -> Tensor",
  .forms = Out, .types = norm_types, .decompose = [](const Args& a) -> Results { return vesta::norm(a.tensor(0), a.scalar(1)); }, .non_differentiable = true,
  .shard = {"replicate"}, .doc = "norm, without a gradient.", .samples = [](SampleGen& s) { s(s.t({3, 4})); s(s.t({5}), Scalar(1)); }),
OP("native_norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, ScalarType? dtype) -> Tensor",
  .forms = Out, .types = norm_types,
  .decompose = [](const Args& a) -> Results {
      Scalar p = opt_order(a, 1).value_or(Scalar(2));
      OptionalIntArrayRef dims = a.ints(2).empty() ? OptionalIntArrayRef() : OptionalIntArrayRef(a.ints(2));
      return linalg_vector_norm(a.tensor(0), p, dims, a.flag(3), opt_dtype(a, 4)); },
  .non_differentiable = true, .shard = {"replicate"}, .doc = "norm over dims, without a gradient.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), Scalar(2), std::vector<int64_t>{1}, true, OwnedValue()); }),
OP("linalg__powsum(Tensor self, Scalar ord, int[]? dim, bool keepdim, ScalarType? dtype) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = norm_types,
  .decompose = [](const Args& a) -> Results {
      std::optional<DType> dtype = opt_dtype(a, 4);
      check_norm(a, a.tensor(0), dtype);
      Tensor t = (dtype ? a.tensor(0).to(*dtype) : a.tensor(0)).abs();
      Scalar p = a.scalar(1);
      Tensor powers = p.equal(Scalar(1)) ? t : p.equal(Scalar(2)) ? t.square() : pow(t, p);
      return sum(powers, opt_dims(a, 2), a.flag(3)); },
  .shard = {"red-sum"}, .doc = "Sum of |self|^ord: a vector norm before its root.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}, range(0.5, 2)), Scalar(2), std::vector<int64_t>{1}, true, OwnedValue()); s(s.t({5}, range(0.5, 1.5)), Scalar(3), OwnedValue(), false, OwnedValue()); }),
OP("cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor",
  .types = any_types, .decompose = cov, .shard = {"decomp"}, .tol = {1e-5, 1e-5}, .doc = "Covariances of the rows of self; observations may carry frequencies and weights.",
  .samples = [](SampleGen& s) {
      if (s.dtype() == kBool || is_integral(s.dtype(), false)) return;
      // More rows than the suite's larger input may have columns: the result is their square.
      s(s.t({7, 3})); s(s.t({5}), 0); s(s.t({2, 4}), 1, s.make({4}, range(1, 3), kLong), s.make({4}, range(0.5, 1), s.dtype() == kComplexDouble || s.dtype() == kDouble ? kDouble : kFloat)); }),
OP("corrcoef(Tensor self) -> Tensor",
  .types = any_types, .decompose = corrcoef, .shard = {"decomp"}, .tol = {1e-4, 1e-4}, .doc = "Correlations of the rows of self.",
  .samples = [](SampleGen& s) { if (s.dtype() != kBool && !is_integral(s.dtype(), false) && s.dtype() != kHalf && s.dtype() != kBFloat16) s(s.t({7, 3})); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(linalg_norm, table)
