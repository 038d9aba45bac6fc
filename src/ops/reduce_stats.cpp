// Products, variances, norms, logsumexp and counts over dims.
#include <cmath>
#include <limits>

#include "core/storage.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/elem.h"
#include "kernels/cpu/reduce.h"
#include "ops/infer.h"
#include "ops/reduce_grad.h"
#include "ops/reduce_layout.h"
#include "ops/visit.h"

namespace vesta {
namespace {

using namespace op_block;
using cpu::ReduceOp;

constexpr double kInf = std::numeric_limits<double>::infinity();

DType real_of(DType t) { return t == kComplexFloat ? kFloat : t == kComplexDouble ? kDouble : t; }
std::optional<DType> opt_dtype(const Args& a, int i) { return a.has(i) ? std::optional(DType(a.integer(i))) : std::nullopt; }
double count_reduced(const Args& a, IntArrayRef sizes, const Value& dims) {
  double n = 1;
  for (int64_t d : wrapped_dims(a, dims, int64_t(sizes.size()))) n *= double(sizes[size_t(d)]);
  return n;
}

// ---- prod ----
void infer_prod(InferCtx& c) {
  DType t = c.dtype_of(0);
  c.out(0, reduce_sizes(c.sizes(0), reduced_dims(c, c.value(1), c.dim(0)), c.flag(2)), c.dtype(3, is_integral(t, true) ? kLong : t), c.tensor(0).device());
}
template <class R>
void complex_prod(const ReduceLayout& l, Tensor& out) {
  using T = std::complex<R>;
  auto *p = static_cast<const T*>(l.data);
  auto* q = static_cast<T*>(out.data_ptr());
  for (int64_t o = 0; o < l.shape.outer; ++o)
    for (int64_t i = 0; i < l.shape.inner; ++i) {
      T v = 1;
      for (int64_t r = 0; r < l.shape.reduced; ++r) v *= p[(o * l.shape.reduced + r) * l.shape.inner + i];
      q[o * l.shape.inner + i] = v;
    }
}
void k_prod(const KernelCtx& k) {
  Tensor &out = k.out(), t = k.tensor(0);
  if (t.dtype() != out.dtype() && !(is_integral(t.dtype(), true) && out.dtype() == kLong)) t = t.to(out.dtype());
  ReduceLayout l = reduce_layout(t, wrapped_dims(k, k.value(1), t.dim()));
  if (t.dtype() == kComplexFloat) return complex_prod<float>(l, out);
  if (t.dtype() == kComplexDouble) return complex_prod<double>(l, out);
  if (is_integral(t.dtype(), true) && out.dtype() != kLong) {
    Tensor wide = empty_cpu(out.sizes(), kLong);
    cpu::reduce(ReduceOp::Prod, cpu::elem_of(t.dtype()), l.data, l.shape, wide.data_ptr(), cpu::Elem::I64);
    cpu::copy_elements(out, wide);
    return;
  }
  cpu::reduce(ReduceOp::Prod, cpu::elem_of(t.dtype()), l.data, l.shape, out.data_ptr(), cpu::elem_of(out.dtype()));
}
// Each element's gradient is the product of all others: exact for zeros, and differentiable again.
Tensor product_of_others(const Tensor& x, int64_t d) {
  int64_t n = x.size(d);
  if (n == 0) return x;
  std::vector<int64_t> one = x.sizes().vec();
  one[size_t(d)] = 1;
  Tensor first = ones(one, x.options());
  if (n == 1) return first;
  Tensor before = cumprod(cat({first, x.narrow(d, 0, n - 1)}, d), d);
  Tensor after = cumprod(cat({first, x.narrow(d, 1, n - 1).flip(d)}, d), d).flip(d);
  return before * after;
}
Tensor prod_gradient(const Grad& g, const Tensor& x, const Tensor& dy, int64_t d, bool keepdim) {
  if (x.dim() == 0) return dy;
  Tensor up = keepdim ? dy : dy.unsqueeze(d);
  if (!g.create_graph() && is_floating_point(x.dtype())) return _prod_backward(up, x, d);
  return up * product_of_others(x, d).conj();
}

// ---- var, std ----
double correction_of(const Args& a, int i) { return a.has(i) ? a.scalar(i).toDouble() : 1; }
void check_statistic(const Args& a) {
  DType t = a.tensor(0).dtype();
  VESTA_CHECK_AS(TypeError, is_floating_point(t) || is_complex(t), a.name(), ": expected a floating or complex dtype, got ", dtype_name(t));
}
void infer_var(InferCtx& c) {
  check_statistic(c);
  c.out(0, reduce_sizes(c.sizes(0), reduced_dims(c, c.value(1), c.dim(0)), c.flag(3)), real_of(c.dtype_of(0)), c.tensor(0).device());
}
void infer_var_mean(InferCtx& c) {
  infer_var(c);
  c.out(1, reduce_sizes(c.sizes(0), reduced_dims(c, c.value(1), c.dim(0)), c.flag(3)), c.dtype_of(0), c.tensor(0).device());
}
void run_var(const KernelCtx& k, bool root, bool mean) {
  const Tensor& t = k.tensor(0);
  auto dims = wrapped_dims(k, k.value(1), t.dim());
  double correction = correction_of(k, 2);
  Tensor& out = k.out();
  if (out.numel() == 0) return;
  if (is_complex(t.dtype())) {
    // The variance of real and imaginary part add up.
    Tensor parts = view_as_real(t);
    Tensor sum = parts.select(-1, 0).var(dims, std::optional<Scalar>(correction)) + parts.select(-1, 1).var(dims, std::optional<Scalar>(correction));
    if (dims.empty()) sum = sum.reshape({});
    cpu::copy_elements(out, (root ? sum.sqrt() : sum).reshape(out.sizes()));
    if (mean) cpu::copy_elements(k.out(1), t.mean(dims).reshape(out.sizes()));
    return;
  }
  ReduceLayout l = reduce_layout(t, dims);
  if (l.shape.reduced == 0) {
    cpu::fill_elements(out, std::numeric_limits<double>::quiet_NaN());
    if (mean) cpu::fill_elements(k.out(1), std::numeric_limits<double>::quiet_NaN());
    return;
  }
  cpu::var_mean(cpu::elem_of(t.dtype()), l.data, l.shape, correction, root, out.data_ptr(), mean ? k.out(1).data_ptr() : nullptr);
  // As a running mean has it: an infinity among the elements gives NaN.
  if (mean) cpu::copy_elements(k.out(1), k.out(1).masked_fill(k.out(1).abs() == kInf, std::numeric_limits<double>::quiet_NaN()));
}
// d var / d self, given the gradient of var.
Tensor var_gradient(const Grad& g, const Tensor& dy) {
  Tensor x = g.in(0), up = with_reduced_dims(g, dy, x.dim(), g.value(1), g.flag(3));
  double correction = correction_of(g, 2);
  std::vector<int64_t> dims = wrapped_dims(g, g.value(1), x.dim());
  if (!is_complex(x.dtype())) return _var_backward(up, x, OptionalIntArrayRef(dims), correction);
  return up * (2 / (count_reduced(g, g.sizes(0), g.value(1)) - correction)) * (x - (x.dim() ? x.mean(dims, true) : x));
}
Tensor std_gradient(const Grad& g, const Tensor& dy, const Tensor& result) {
  return var_gradient(g, (dy / (result * 2)).masked_fill(result == 0, 0));
}
Tensor mean_gradient(const Grad& g, const Tensor& dy) {
  return unreduce(g, dy, g.sizes(0), g.value(1), g.flag(3)) / count_reduced(g, g.sizes(0), g.value(1));
}
Tensor sum_defined(const Tensor& a, const Tensor& b) { return !a.defined() ? b : !b.defined() ? a : a + b; }
OptionalIntArrayRef dims_arg(const Args& a, int i) { return a.has(i) ? OptionalIntArrayRef(a.ints(i)) : OptionalIntArrayRef(); }
std::optional<Scalar> unbiased(bool u) { return Scalar(u ? 1 : 0); }
void var_samples(SampleGen& s) {
  if (!is_floating_point(s.dtype())) return;
  s(s.t({3, 4}), std::vector<int64_t>{0});
  s(s.t({2, 3, 4}), std::vector<int64_t>{0, -1}, Scalar(0), true);
  s(s.t({5}));
}
void var_dim_samples(SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({3, 4}), std::vector<int64_t>{1}, false, true); }
void var_all_samples(SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({3, 4}), true); }

// ---- logsumexp ----
void infer_logsumexp(InferCtx& c) {
  c.out(0, reduce_sizes(c.sizes(0), reduced_dims(c, c.value(1), c.dim(0)), c.flag(2)),
        is_integral(c.dtype_of(0), true) ? get_default_dtype() : c.dtype_of(0), c.tensor(0).device());
}
void k_logsumexp(const KernelCtx& k) {
  Tensor &out = k.out(), t = k.tensor(0).to(out.dtype());
  if (out.numel() == 0) return;
  ReduceLayout l = reduce_layout(t, wrapped_dims(k, k.value(1), t.dim()));
  cpu::Elem e = cpu::elem_of(t.dtype());
  cpu::reduce(ReduceOp::LogSumExp, e, l.data, l.shape, out.data_ptr(), e);
}

// ---- norms ----
void infer_norm(InferCtx& c) {
  DType t = c.dtype_of(0), as = c.dtype(4, t);
  VESTA_CHECK_AS(TypeError, is_floating_point(t) || is_complex(t), c.name(), ": expected a floating or complex dtype, got ", dtype_name(t));
  VESTA_CHECK_AS(TypeError, (is_floating_point(as) || is_complex(as)) && is_complex(as) == is_complex(t), c.name(), ": dtype ", dtype_name(as),
                 " does not fit a tensor of ", dtype_name(t));
  double p = c.scalar(1).toDouble();
  if (p < 0 || p == kInf)
    for (int64_t d : wrapped_dims(c, c.value(2), c.dim(0)))
      VESTA_CHECK_AS(IndexError, !(c.sizes(0)[size_t(d)] == 0), c.name(), ": dim ", d, " has size 0: the norm of order ", p, " does not exist");
  c.out(0, reduce_sizes(c.sizes(0), reduced_dims(c, c.value(2), c.dim(0)), c.flag(3)), real_of(as), c.tensor(0).device());
}
void k_norm(const KernelCtx& k) {
  Tensor& out = k.out();
  if (out.numel() == 0) return;
  double p = k.scalar(1).toDouble();
  Tensor t = k.tensor(0);
  if (k.has(4)) t = t.to(DType(k.integer(4)));
  if (is_complex(t.dtype())) t = t.abs();
  auto dims = wrapped_dims(k, k.value(2), t.dim());
  if (p != 0 && p != 1 && p != 2 && std::isfinite(p)) {
    // Half types go through float32: |x|^p soon leaves their range.
    Tensor wide = t.dtype() == kHalf || t.dtype() == kBFloat16 ? t.to(kFloat) : t;
    t = pow(wide.abs(), Scalar(p));
  } else if (p == 0) {
    t = (t != 0).to(t.dtype());
  } else if (!std::isfinite(p)) {
    t = t.abs();
  }
  ReduceLayout l = reduce_layout(t, dims);
  cpu::Elem e = cpu::elem_of(t.dtype());
  ReduceOp op = p == 2 ? ReduceOp::SumSquares : p == 1 ? ReduceOp::SumAbs : p == kInf ? ReduceOp::Max : p == -kInf ? ReduceOp::Min : ReduceOp::Sum;
  // The accumulator is kept until the root is taken.
  bool root = p != 0 && p != 1 && std::isfinite(p);
  DType acc = root && (t.dtype() == kHalf || t.dtype() == kBFloat16) ? kFloat : t.dtype();
  Tensor r = acc == out.dtype() && !root ? out : empty_cpu(out.sizes(), acc);
  cpu::reduce(op, e, l.data, l.shape, r.data_ptr(), cpu::elem_of(acc));
  if (p == 2) r = r.sqrt();
  else if (root) r = pow(r, Scalar(1 / p));
  if (!r.is_same(out)) cpu::copy_elements(out, r);
}
Tensor norm_gradient(const Grad& g) {
  Tensor x = g.in(0), sizes_like = x;
  double p = g.scalar(1).toDouble();
  DType t = x.dtype();
  Tensor dy = with_reduced_dims(g, g.dy(), x.dim(), g.value(2), g.flag(3)), norm = with_reduced_dims(g, g.out(), x.dim(), g.value(2), g.flag(3));
  if (g.has(4)) x = x.to(DType(g.integer(4)));
  Tensor r;
  if (p == 0) return zeros(g.sizes(0), x.options());
  if (p == 1) {
    r = x.sgn() * dy;
  } else if (p == 2) {
    r = dy * (x / norm).masked_fill(norm == 0, 0);
  } else if (!std::isfinite(p)) {
    Tensor size = x.abs();
    Tensor ties = logical_or(size == norm, logical_and(size != size, norm != norm)).to(norm.dtype());
    Tensor count = x.dim() ? ties.sum(wrapped_dims(g, g.value(2), x.dim()), true) : ties;
    r = x.sgn() * (ties * (dy / count));
  } else if (p < 1) {
    Tensor scaled = (x.sgn() * pow(x.abs(), Scalar(p - 1))).masked_fill(x == 0, 0);
    r = scaled * (dy * pow(norm, Scalar(1 - p)));
  } else {
    Tensor scaled = p < 2 ? x.sgn() * pow(x.abs(), Scalar(p - 1)) : x * pow(x.abs(), Scalar(p - 2));
    if (p < 2) scaled = scaled.masked_fill(x == 0, 0);
    r = scaled * (dy / pow(norm, Scalar(p - 1))).masked_fill(norm == 0, 0);
  }
  return r.to(t);
}
Tensor norm_of(const Tensor& t, const Scalar& p, OptionalIntArrayRef dims, bool keepdim, std::optional<DType> dtype) {
  // A list without dims reduces everything.
  if (dims.has_value() && (*dims).empty()) dims = OptionalIntArrayRef();
  return linalg_vector_norm(t, p, dims, keepdim, dtype);
}
Scalar order_of(const Args& a, int i) { return a.has(i) ? a.scalar(i) : Scalar(2); }

constexpr OpDef table[] = {
OP("prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = any_types, .infer = infer_prod, .kernels = {{Cpu, k_prod}}, .save = {in(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { int64_t n = int64_t(g.sizes(0).size()), d = g.integer(1) < 0 ? g.integer(1) + n : g.integer(1);
      Tensor x = g.in(0); if (g.has(3)) x = x.to(DType(g.integer(3)));
      return prod_gradient(g, x, g.dy(), d, g.flag(2)).to(g.dtype_of(0)); }); },
  .shard = {"red-prod"}, .doc = "Product over a dim; bool and integers give int64.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), 0); s(s.t({2, 3, 4}), -1, true); s(s.t({}), 0); }),
OP("prod(Tensor self, *, ScalarType? dtype=None) -> Tensor",
  .autocast = Autocast::Float32,
  .types = any_types,
  .decompose = [](const Args& a) -> Results { return prod(a.tensor(0).reshape({-1}), 0, false, opt_dtype(a, 1)); },
  .save = {in(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { Tensor x = g.in(0); if (g.has(1)) x = x.to(DType(g.integer(1)));
      return prod_gradient(g, x.reshape({-1}), g.dy(), 0, false).reshape(g.sizes(0)).to(g.dtype_of(0)); }); },
  .shard = {"red-prod"}, .doc = "Product of all elements; 1 for none.", .samples = [](SampleGen& s) { s.unary({{}, {5}, {3, 4}, {0, 3}}); }),
OP("nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
  .forms = Out, .types = any_types,
  .decompose = [](const Args& a) -> Results {
      const Tensor& t = a.tensor(0);
      VESTA_CHECK_AS(TypeError, !is_complex(t.dtype()), "nansum: does not take complex tensors");
      Tensor kept = is_floating_point(t.dtype()) ? t.masked_fill(t != t, 0) : t;
      return sum(kept, dims_arg(a, 1), a.flag(2), opt_dtype(a, 3)); },
  .save = {in(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return unreduce(g, g.dy(), g.sizes(0), g.value(1), g.flag(2)) * (g.in(0) == g.in(0)).to(g.dy().dtype()); }); },
  .shard = {"red-sum"}, .doc = "Sum that takes NaN as 0.", .samples = [](SampleGen& s) { if (!is_complex(s.dtype())) { s(s.t({3, 4}), std::vector<int64_t>{0}); s(s.t({3, 4})); } }),
OP("nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
  .forms = Out, .types = any_types,
  .decompose = [](const Args& a) -> Results {
      const Tensor& t = a.tensor(0);
      VESTA_CHECK_AS(TypeError, is_floating_point(t.dtype()), "nanmean: expected a floating dtype, got ", dtype_name(t.dtype()));
      Tensor n = (t == t).detach().sum(dims_arg(a, 1), a.flag(2));
      return nansum(t, dims_arg(a, 1), a.flag(2), opt_dtype(a, 3)) / n; },
  .shard = {"red-avg"}, .doc = "Mean of the elements that are not NaN.", .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({3, 4}), std::vector<int64_t>{0}); }),
OP("count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor",
  .forms = Out, .types = any_types, .decompose = [](const Args& a) -> Results { return (a.tensor(0) != 0).sum(a.ints(1)); }, .non_differentiable = true,
  .shard = {"red-sum"}, .doc = "Number of elements that are not 0, over dims.", .samples = [](SampleGen& s) { s(s.t({3, 4}), std::vector<int64_t>{0}); }),
OP("count_nonzero(Tensor self, int? dim=None) -> Tensor",
  .forms = Out, .types = any_types,
  .decompose = [](const Args& a) -> Results { return a.has(1) ? (a.tensor(0) != 0).sum(IntArrayRef(a.integer(1))) : (a.tensor(0) != 0).sum(); }, .non_differentiable = true,
  .shard = {"red-sum"}, .doc = "Number of elements that are not 0.", .samples = [](SampleGen& s) { s(s.t({3, 4})); s(s.t({3, 4}), 1); }),
OP("trace(Tensor self) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = any_types,
  .decompose = [](const Args& a) -> Results {
      VESTA_CHECK(a.tensor(0).dim() == 2, "trace: expected a matrix, got ", a.tensor(0).dim(), " dims");
      return a.tensor(0).diagonal().sum(); },
  .vjp = [](const Grad& g) { return grads(G(0) { return eye(g.sizes(0)[0], g.sizes(0)[1], g.dy().options()) * g.dy(); }); },
  .shard = Shard::replicate(), .doc = "Sum of the main diagonal of a matrix.", .samples = [](SampleGen& s) { s(s.t({3, 4})); s(s.t({2, 2})); }),

// ---- variances ----
OP("var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_var, .kernels = {{Cpu, [](const KernelCtx& k) { run_var(k, false, false); }}}, .save = {in(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return var_gradient(g, g.dy()); }); },
  .shard = {"red-nonlin"}, .doc = "Variance over dims, divided by n - correction (1 where None).", .samples = var_samples),
OP("var(Tensor self, bool unbiased=True) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) -> Results { return var(a.tensor(0), OptionalIntArrayRef(), unbiased(a.flag(1)), false); },
  .shard = {"red-nonlin"}, .doc = "Variance of all elements.", .samples = var_all_samples),
OP("var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
  .forms = Out, .types = any_types, .decompose = [](const Args& a) -> Results { return var(a.tensor(0), dims_arg(a, 1), unbiased(a.flag(2)), a.flag(3)); },
  .shard = {"red-nonlin"}, .doc = "Variance over dims.", .samples = var_dim_samples),
OP("std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_var, .kernels = {{Cpu, [](const KernelCtx& k) { run_var(k, true, false); }}}, .save = {in(0), out(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return std_gradient(g, g.dy(), g.out()); }); },
  .shard = {"red-nonlin"}, .doc = "Standard deviation over dims; its gradient is 0 where it is 0.", .samples = var_samples),
OP("std(Tensor self, bool unbiased=True) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) -> Results { return std(a.tensor(0), OptionalIntArrayRef(), unbiased(a.flag(1)), false); },
  .shard = {"red-nonlin"}, .doc = "Standard deviation of all elements.", .samples = var_all_samples),
OP("std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor",
  .forms = Out, .types = any_types, .decompose = [](const Args& a) -> Results { return std(a.tensor(0), dims_arg(a, 1), unbiased(a.flag(2)), a.flag(3)); },
  .shard = {"red-nonlin"}, .doc = "Standard deviation over dims.", .samples = var_dim_samples),
OP("var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)",
  .forms = Out, .types = any_types, .infer = infer_var_mean, .kernels = {{Cpu, [](const KernelCtx& k) { run_var(k, false, true); }}}, .save = {in(0)},
  .vjp = [](const Grad& g) { return grads(G(0) {
      return sum_defined(g.dy(0).defined() ? var_gradient(g, g.dy(0)) : Tensor(), g.dy(1).defined() ? mean_gradient(g, g.dy(1)) : Tensor()); }); },
  .shard = {"red-nonlin"}, .doc = "Variance and mean over dims.", .samples = var_samples),
OP("var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)",
  .types = any_types, .decompose = [](const Args& a) -> Results { return var_mean(a.tensor(0), OptionalIntArrayRef(), unbiased(a.flag(1)), false); },
  .shard = {"red-nonlin"}, .doc = "Variance and mean of all elements.", .samples = var_all_samples),
OP("var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)",
  .types = any_types, .decompose = [](const Args& a) -> Results { return var_mean(a.tensor(0), dims_arg(a, 1), unbiased(a.flag(2)), a.flag(3)); },
  .shard = {"red-nonlin"}, .doc = "Variance and mean over dims.", .samples = var_dim_samples),
OP("std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)",
  .forms = Out, .types = any_types, .infer = infer_var_mean, .kernels = {{Cpu, [](const KernelCtx& k) { run_var(k, true, true); }}}, .save = {in(0), out(0)},
  .vjp = [](const Grad& g) { return grads(G(0) {
      return sum_defined(g.dy(0).defined() ? std_gradient(g, g.dy(0), g.out(0)) : Tensor(), g.dy(1).defined() ? mean_gradient(g, g.dy(1)) : Tensor()); }); },
  .shard = {"red-nonlin"}, .doc = "Standard deviation and mean over dims.", .samples = var_samples),
OP("std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)",
  .types = any_types, .decompose = [](const Args& a) -> Results { return std_mean(a.tensor(0), OptionalIntArrayRef(), unbiased(a.flag(1)), false); },
  .shard = {"red-nonlin"}, .doc = "Standard deviation and mean of all elements.", .samples = var_all_samples),
OP("std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)",
  .types = any_types, .decompose = [](const Args& a) -> Results { return std_mean(a.tensor(0), dims_arg(a, 1), unbiased(a.flag(2)), a.flag(3)); },
  .shard = {"red-nonlin"}, .doc = "Standard deviation and mean over dims.", .samples = var_dim_samples),

// ---- logsumexp and norms ----
OP("logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_logsumexp, .kernels = {{Cpu, k_logsumexp}}, .save = {in(0), out(0)},
  .vjp = [](const Grad& g) { return grads(G(0) {
      int64_t n = g.in(0).dim();
      return _logsumexp_backward(with_reduced_dims(g, g.dy(), n, g.value(1), g.flag(2)), g.in(0), with_reduced_dims(g, g.out(), n, g.value(1), g.flag(2))); }); },
  .shard = {"red-nonlin"}, .doc = "log(sum(exp(self))) over dims, without overflow; -inf for nothing.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { s(s.t({3, 4}), std::vector<int64_t>{0}); s(s.t({2, 3, 4}), std::vector<int64_t>{0, -1}, true); s(s.t({}), std::vector<int64_t>{0}); } }),
OP("special_logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
  .forms = Out, .types = any_types, .decompose = [](const Args& a) -> Results { return logsumexp(a.tensor(0), a.ints(1), a.flag(2)); },
  .shard = {"red-nonlin"}, .doc = "logsumexp.", .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({3, 4}), std::vector<int64_t>{0}); }),
OP("linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = any_types, .infer = infer_norm, .kernels = {{Cpu, k_norm}}, .save = {in(0), out(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return norm_gradient(g); }); },
  .shard = {"red-norm"}, .doc = "(sum |x|^ord)^(1/ord) over dims; ord 0 counts, +-inf pick the extreme size. The gradient at 0 is 0.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { s(s.t({3, 4})); s(s.t({3, 4}, range(1, 3)), Scalar(1), std::vector<int64_t>{0}); s(s.t({3, 4}, range(1, 3)), Scalar(3.5), std::vector<int64_t>{1}, true);
                                s(s.t({3, 4}), Scalar(kInf), std::vector<int64_t>{0}); } }),
OP("norm.Scalar(Tensor self, Scalar p=2) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) -> Results { return norm_of(a.tensor(0), a.scalar(1), {}, false, {}); },
  .shard = {"red-norm"}, .doc = "p-norm of all elements.", .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({3, 4})); }),
OP("norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor",
  .forms = Out, .types = any_types, .decompose = [](const Args& a) -> Results { return norm_of(a.tensor(0), order_of(a, 1), a.ints(2), a.flag(3), {}); },
  .shard = {"red-norm"}, .doc = "p-norm over dims.", .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({3, 4}), Scalar(2), std::vector<int64_t>{0}); }),
OP("norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) -> Results { return norm_of(a.tensor(0), order_of(a, 1), {}, false, DType(a.integer(2))); },
  .shard = {"red-norm"}, .doc = "p-norm of all elements, computed in dtype.", .samples = [](SampleGen& s) { if (s.dtype() == kFloat) s(s.t({3, 4}), Scalar(2), kDouble); }),
OP("norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype) -> Tensor",
  .forms = Out, .types = any_types, .decompose = [](const Args& a) -> Results { return norm_of(a.tensor(0), order_of(a, 1), a.ints(2), a.flag(3), DType(a.integer(4))); },
  .shard = {"red-norm"}, .doc = "p-norm over dims, computed in dtype.", .samples = [](SampleGen& s) { if (s.dtype() == kFloat) s(s.t({3, 4}), Scalar(2), std::vector<int64_t>{0}, false, kDouble); }),
OP("frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
  .forms = Out, .types = any_types, .decompose = [](const Args& a) -> Results { return norm_of(a.tensor(0), 2, a.ints(1), a.flag(2), {}); },
  .shard = {"red-norm"}, .doc = "2-norm over dims.", .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({3, 4}), std::vector<int64_t>{0, 1}); }),
OP("dist(Tensor self, Tensor other, Scalar p=2) -> Tensor",
  .forms = Out, .types = any_types, .decompose = [](const Args& a) -> Results { return norm_of(a.tensor(0) - a.tensor(1), a.scalar(2), {}, false, {}); },
  .shard = {"red-norm"}, .doc = "p-norm of self - other.", .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({3, 4}), s.t({4})); }),
OP("trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      const Tensor &y = a.tensor(0), &x = a.tensor(1);
      int64_t d = wrap_dim(a, a.integer(2), y.dim()), n = y.size(d);
      if (n == 0) return y.sum(d);
      Tensor step;
      if (x.dim() == 1) {
        VESTA_CHECK(x.size(0) == n, "trapezoid: expected ", n, " values of x, got ", x.size(0));
        std::vector<int64_t> shape(size_t(y.dim()), 1);
        shape[size_t(d)] = n - 1;
        step = (x.slice(0, 1) - x.slice(0, 0, n - 1)).view(shape);
      } else {
        Tensor w = x;
        while (w.dim() < y.dim()) w = w.unsqueeze(0);
        int64_t m = w.size(d);
        step = w.slice(d, 1) - w.slice(d, 0, m - 1);
      }
      return ((y.slice(d, 0, n - 1) + y.slice(d, 1)) * step).sum(d) / 2.; },
  .shard = {"decomp"}, .doc = "Integral of y over x by the trapezoidal rule.", .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({3, 4}), s.t({4})); }),
OP("trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      const Tensor& y = a.tensor(0);
      int64_t d = wrap_dim(a, a.integer(2), y.dim()), n = y.size(d);
      if (n == 0) return y.sum(d);
      // Only the ends count half.
      return (y.sum(d) - (y.select(d, 0) + y.select(d, n - 1)) * 0.5) * a.scalar(1); },
  .shard = {"decomp"}, .doc = "Integral of y with a fixed step by the trapezoidal rule.", .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({3, 4})); }),
OP("trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) -> Results { return trapezoid(a.tensor(0), a.tensor(1), a.integer(2)); },
  .shard = {"decomp"}, .doc = "trapezoid.", .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({3, 4}), s.t({4})); }),
OP("trapz.dx(Tensor y, *, float dx=1, int dim=-1) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) -> Results { return trapezoid(a.tensor(0), Scalar(a.number(1)), a.integer(2)); },
  .shard = {"decomp"}, .doc = "trapezoid.", .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({3, 4})); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(reduce_stats, table)
