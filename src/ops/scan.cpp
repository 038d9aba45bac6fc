// Scans along a dim: cumsum, cumprod, cummax, cummin, logcumsumexp, and differences.
#include <cmath>

#include "base/checked_math.h"
#include "core/storage.h"
#include "kernels/cpu/copy.h"
#include "ops/index_kernels.h"
#include "ops/infer.h"

namespace vesta {
namespace {

using namespace op_block;

DType scan_dtype(const Args& a, int at) {
  DType t = a.tensor(0).dtype();
  return a.dtype(at, is_integral(t, true) ? kLong : t);
}
void infer_scan(InferCtx& c) {
  c.wrap_dim(c.integer(1), c.dim(0));
  c.out(0, c.sizes(0), scan_dtype(c, 2), c.tensor(0).device());
}
void infer_pair(InferCtx& c) {
  c.wrap_dim(c.integer(1), c.dim(0));
  VESTA_CHECK_AS(TypeError, !is_complex(c.dtype_of(0)), c.name(), ": complex numbers have no order");
  c.out(0, c.sizes(0), c.dtype_of(0), c.tensor(0).device());
  c.out(1, c.sizes(0), kLong, c.tensor(0).device());
}
void infer_float_scan(InferCtx& c) {
  c.wrap_dim(c.integer(1), c.dim(0));
  VESTA_CHECK_AS(TypeError, is_floating_point(c.dtype_of(0)), c.name(), ": expected a floating dtype, got ", dtype_name(c.dtype_of(0)));
  c.out(0, c.sizes(0), c.dtype_of(0), c.tensor(0).device());
}

// Type of the running value: float scans run in double, half types in float.
template <class T> struct RunningOf { using type = T; };
template <> struct RunningOf<float> { using type = double; };
template <> struct RunningOf<Half> { using type = float; };
template <> struct RunningOf<BFloat16> { using type = float; };
template <> struct RunningOf<std::complex<float>> { using type = std::complex<double>; };

// Calls lane(first, stride, n) for every lane of a contiguous tensor along dim d: element i is at first + i * stride.
template <class Lane>
void each_lane(const Tensor& t, int64_t d, Lane&& lane) {
  DimSplit s = split_at(t, d);
  if (t.numel() == 0) return;
  parallel_for(0, s.outer * s.inner, std::max<int64_t>(1, 16384 / s.size), [&](int64_t begin, int64_t end) {
    for (int64_t l = begin; l < end; ++l) lane(l / s.inner * s.size * s.inner + l % s.inner, s.inner, s.size);
  });
}

template <bool product>
void k_cumulate(const KernelCtx& k) {
  Tensor& out = k.out();
  int64_t d = wrap_dim(k, k.integer(1), k.tensor(0).dim());
  Tensor in = k.tensor(0).to(out.dtype()).contiguous();
  DimSplit s = split_at(out, d);
  if (out.numel() == 0) return;
  visit_all(out.dtype(), k.name(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = typename RunningOf<T>::type;
    const T* p = in.data_ptr<T>();
    T* q = out.data_ptr<T>();
    auto step = [](A& acc, T v) {
      if constexpr (std::is_same_v<T, bool>) acc = product ? acc && v : acc || v;
      else if constexpr (std::is_integral_v<A>) acc = product ? wrapping_mul(acc, A(v)) : wrapping_add(acc, A(v));
      else acc = product ? acc * A(v) : acc + A(v);
    };
    if (s.inner == 1 && s.outer >= 4) {
      // Four rows side by side: one row is a chain of dependent additions.
      constexpr int kRows = 4;
      parallel_for(0, (s.outer + kRows - 1) / kRows, std::max<int64_t>(1, 16384 / (kRows * s.size)), [&](int64_t begin, int64_t end) {
        for (int64_t g = begin; g < end; ++g) {
          int64_t row = g * kRows * s.size;
          if ((g + 1) * kRows > s.outer) {
            for (; row < s.outer * s.size; row += s.size) {
              A acc = A(product ? 1 : 0);
              for (int64_t i = 0; i < s.size; ++i) step(acc, p[row + i]), q[row + i] = T(acc);
            }
            continue;
          }
          A acc[kRows];
          std::fill_n(acc, kRows, A(product ? 1 : 0));
          for (int64_t i = 0; i < s.size; ++i)
            for (int64_t r = 0; r < kRows; ++r) {
              step(acc[r], p[row + r * s.size + i]);
              q[row + r * s.size + i] = T(acc[r]);
            }
        }
      });
      return;
    }
    // Columns of one outer index run together, so that memory is read in rows.
    constexpr int64_t kColumns = 64;
    int64_t groups = (s.inner + kColumns - 1) / kColumns;
    parallel_for(0, s.outer * groups, std::max<int64_t>(1, 16384 / (s.size * std::min(s.inner, kColumns))), [&](int64_t begin, int64_t end) {
      for (int64_t g = begin; g < end; ++g) {
        int64_t first = g / groups * s.size * s.inner + g % groups * kColumns, m = std::min(kColumns, s.inner - g % groups * kColumns);
        A acc[kColumns];
        std::fill_n(acc, m, A(product ? 1 : 0));
        for (int64_t i = 0; i < s.size; ++i, first += s.inner)
          for (int64_t j = 0; j < m; ++j) {
            step(acc[j], p[first + j]);
            q[first + j] = T(acc[j]);
          }
      }
    });
  });
}

template <bool largest>
void k_cumextremum(const KernelCtx& k) {
  Tensor in = k.tensor(0).contiguous();
  int64_t d = wrap_dim(k, k.integer(1), in.dim());
  visit_real(in.dtype(), k.name(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* p = in.data_ptr<T>();
    T* q = k.out(0).data_ptr<T>();
    int64_t* at = k.out(1).data_ptr<int64_t>();
    each_lane(in, d, [&](int64_t first, int64_t stride, int64_t n) {
      T best = p[first];
      int64_t where = 0;
      for (int64_t i = 0; i < n; ++i) {
        T v = p[first + i * stride];
        // Later equals replace earlier ones; NaN stays.
        bool better = largest ? comparable(v) >= comparable(best) : comparable(v) <= comparable(best);
        if (is_nan(v) || (!is_nan(best) && better)) best = v, where = i;
        q[first + i * stride] = best;
        at[first + i * stride] = where;
      }
    });
  });
}

void k_logcumsumexp(const KernelCtx& k) {
  Tensor in = k.tensor(0).contiguous();
  int64_t d = wrap_dim(k, k.integer(1), in.dim());
  visit_real(in.dtype(), k.name(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_integral_v<T>) {
      const T* p = in.data_ptr<T>();
      T* q = k.out().data_ptr<T>();
      each_lane(in, d, [&](int64_t first, int64_t stride, int64_t n) {
        double acc = -std::numeric_limits<double>::infinity();
        for (int64_t i = 0; i < n; ++i) {
          double v = double(p[first + i * stride]);
          double lo = std::min(acc, v), hi = std::max(acc, v);
          if (v != v || acc != acc) acc = std::numeric_limits<double>::quiet_NaN();
          else acc = lo == hi && std::isinf(lo) ? lo : hi + std::log1p(std::exp(lo - hi));
          q[first + i * stride] = T(acc);
        }
      });
    }
  });
}

// Gradient of cumprod in one pass per lane; zeros are exact. Contributions end at the second zero.
void infer_cumprod_backward(InferCtx& c) {
  VESTA_CHECK(c.sizes(0) == c.sizes(1) && c.sizes(3) == c.sizes(1), c.name(), ": expected a gradient and an output with the input's sizes");
  c.out(0, c.sizes(1), c.dtype_of(1), c.tensor(1).device());
}
void k_cumprod_backward(const KernelCtx& k) {
  Tensor dx = k.out(), x = k.tensor(1).contiguous(), dy = k.tensor(0).to(x.dtype()).contiguous(), y = k.tensor(3).to(x.dtype()).contiguous();
  int64_t d = wrap_dim(k, k.integer(2), x.dim());
  visit_all(x.dtype(), k.name(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_integral_v<T>) {
      using A = typename RunningOf<T>::type;
      auto conj = [](A v) {
        if constexpr (std::is_same_v<A, std::complex<double>>) return std::conj(v);
        else return v;
      };
      const T *px = x.data_ptr<T>(), *pg = dy.data_ptr<T>(), *py = y.data_ptr<T>();
      T* q = dx.data_ptr<T>();
      each_lane(x, d, [&](int64_t first, int64_t stride, int64_t n) {
        auto at = [&](int64_t i) { return first + i * stride; };
        int64_t zero = 0;
        while (zero < n && A(px[at(zero)]) != A(0)) ++zero;
        A sum = 0;
        for (int64_t i = zero - 1; i >= 0; --i) {
          sum += A(pg[at(i)]) * conj(A(py[at(i)]));
          q[at(i)] = T(sum / conj(A(px[at(i)])));
        }
        if (zero == n) return;
        A product = zero ? A(py[at(zero - 1)]) : A(1);
        sum = A(pg[at(zero)]) * conj(product);
        int64_t i = zero + 1;
        for (; i < n && A(px[at(i)]) != A(0); ++i) {
          product *= A(px[at(i)]);
          sum += A(pg[at(i)]) * conj(product);
        }
        q[at(zero)] = T(sum);
        for (i = zero + 1; i < n; ++i) q[at(i)] = T(A(0));
      });
    }
  });
}
// The same from differentiable parts: element k gets prod(x[:k]) * (dy[k] + sum_{i>k} dy[i] * prod(x[k+1..i])).
Tensor cumprod_gradient_differentiable(const Tensor& dy, const Tensor& x, int64_t d) {
  if (x.dim() == 0) return dy;
  int64_t n = x.size(d);
  if (n == 0) return dy;
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < n; ++i) {
    Tensor sum = dy.narrow(d, i, 1);
    if (i + 1 < n) sum = sum + (dy.narrow(d, i + 1, n - i - 1) * cumprod(x.narrow(d, i + 1, n - i - 1), d).conj()).sum(d, true);
    if (i) sum = sum * prod(x.narrow(d, 0, i), d, true).conj();
    parts.push_back(sum);
  }
  return cat(parts, d);
}

Tensor reverse_cumsum(const Tensor& t, int64_t d) { return t.dim() ? t.flip(d).cumsum(d).flip(d) : t; }
Tensor reverse_logcumsumexp(const Tensor& t, int64_t d) { return t.dim() ? t.flip(d).logcumsumexp(d).flip(d) : t; }
int vjp_cumextremum(const Grad& g) { return grads(G(0) { return cummaxmin_backward(g.dy(), zeros(g.sizes(0), g.dy().options()), g.out(1), g.integer(1)); }); }
void scan_samples(SampleGen& s) {
  s(s.t({3, 4}), 0);
  s(s.t({2, 3, 4}), -1);
  s(s.t({}), 0);
  s(s.t({0, 3}), 1);
}
void real_scan_samples(SampleGen& s) { if (!is_complex(s.dtype())) scan_samples(s); }
void float_scan_samples(SampleGen& s) { if (is_floating_point(s.dtype())) scan_samples(s); }

constexpr OpDef table[] = {
OP("cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
  .forms = InPlace | Out, .types = any_types, .infer = infer_scan, .kernels = {{Cpu, k_cumulate<false>}},
  .vjp = [](const Grad& g) { return grads(G(0) { return reverse_cumsum(g.dy(), g.integer(1)); }); },
  .shard = {"scan-lin"}, .doc = "Running sum along a dim; bool and integers give int64. float32 runs in float64, half types in float32.", .samples = scan_samples),
OP("cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
  .forms = InPlace | Out, .types = any_types, .infer = infer_scan, .kernels = {{Cpu, k_cumulate<true>}}, .save = {in(0), out(0)},
  .vjp = [](const Grad& g) { return grads(G(0) {
      Tensor x = g.has(2) ? g.in(0).to(DType(g.integer(2))) : g.in(0);
      int64_t n = std::max<int64_t>(1, x.dim()), d = g.integer(1) < 0 ? g.integer(1) + n : g.integer(1);
      return g.create_graph() ? cumprod_gradient_differentiable(g.dy(), x, d) : cumprod_backward(g.dy(), x, d, g.out()); }); },
  .shard = {"scan"}, .doc = "Running product along a dim; bool and integers give int64.", .samples = scan_samples),
OP("cumprod_backward(Tensor grad, Tensor input, int dim, Tensor output) -> Tensor",
  .types = any_types, .infer = infer_cumprod_backward, .kernels = {{Cpu, k_cumprod_backward}},
  .non_differentiable = true,  // cumprod's own second derivatives are composed
  .shard = {"scan"}, .doc = "Gradient of cumprod; exact where the input has zeros.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { Tensor x = s.t({3, 4}); s(s.t({3, 4}), x, 1, cumprod(x, 1)); } }),
OP("cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)",
  .forms = Out, .types = any_types, .infer = infer_pair, .kernels = {{Cpu, k_cumextremum<true>}}, .save = {out(1)}, .vjp = vjp_cumextremum, .non_diff_outputs = 2,
  .shard = {"scan"}, .doc = "Running maximum and its index, the last of equal ones; NaN wins.", .samples = real_scan_samples),
OP("cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)",
  .forms = Out, .types = any_types, .infer = infer_pair, .kernels = {{Cpu, k_cumextremum<false>}}, .save = {out(1)}, .vjp = vjp_cumextremum, .non_diff_outputs = 2,
  .shard = {"scan"}, .doc = "Running minimum and its index, the last of equal ones; NaN wins.", .samples = real_scan_samples),
OP("cummaxmin_backward(Tensor grad, Tensor input, Tensor indices, int dim) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      if (a.tensor(1).numel() == 0) return a.tensor(1);
      return zeros({}, a.tensor(0).options()).expand(a.tensor(1).sizes()).scatter_add(a.integer(3), a.tensor(2), a.tensor(0)); },
  .shard = {"scan"}, .doc = "Gradient of cummax and cummin: added up at the indices.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({3, 4}), s.t({3, 4}), s.index({3, 4}, 3), 0); }),
OP("logcumsumexp(Tensor self, int dim) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_float_scan, .kernels = {{Cpu, k_logcumsumexp}}, .save = {in(0), out(0)},
  // Positive and negative gradients go through the same scan in log space, so that nothing overflows.
  .vjp = [](const Grad& g) { return grads(G(0) {
      Tensor dy = g.dy(), x = g.in(0), y = g.out();
      if (x.numel() == 0 || x.dim() == 0) return dy * (x == x).to(x.dtype());
      Scalar none = -std::numeric_limits<double>::infinity();
      Tensor up = where(dy > 0, dy.log(), none), down = where(dy < 0, (-dy).log(), none);
      int64_t d = g.integer(1);
      return (reverse_logcumsumexp(up - y, d) + x).exp() - (reverse_logcumsumexp(down - y, d) + x).exp(); }); },
  .shard = {"scan"}, .doc = "log of the running sum of exp along a dim.", .samples = float_scan_samples),
OP("_logcumsumexp(Tensor self, int dim) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) -> Results { return logcumsumexp(a.tensor(0), a.integer(1)); },
  .shard = {"scan"}, .doc = "logcumsumexp.", .samples = float_scan_samples),
OP("diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      Tensor t = a.tensor(0);
      VESTA_CHECK(t.dim() > 0, "diff: expected at least 1 dim");
      int64_t d = wrap_dim(a, a.integer(2), t.dim()), n = a.integer(1);
      VESTA_CHECK(n >= 0, "diff: expected an order >= 0, got ", n);
      for (int i : {3, 4})
        if (a.has(i)) VESTA_CHECK(a.tensor(i).dim() == t.dim(), "diff: expected prepend and append with ", t.dim(), " dims, got ", a.tensor(i).dim());
      std::vector<Tensor> parts;
      if (a.has(3)) parts.push_back(a.tensor(3));
      parts.push_back(t);
      if (a.has(4)) parts.push_back(a.tensor(4));
      if (parts.size() > 1) t = cat(parts, d);
      if (n == 0) return t.is_same(a.tensor(0)) ? t.clone() : t;
      if (n >= t.size(d)) return t.narrow(d, 0, 0).clone();
      for (; n > 0; --n) {
        Tensor hi = t.narrow(d, 1, t.size(d) - 1), lo = t.narrow(d, 0, t.size(d) - 1);
        t = t.dtype() == kBool ? logical_xor(hi, lo) : hi - lo;
      }
      return t; },
  .shard = {"decomp"}, .doc = "Differences of neighbours along a dim, n times.", .samples = [](SampleGen& s) { s(s.t({3, 4})); s(s.t({3, 4}), 2, 0); s(s.t({3, 4}), 1, 1, s.t({3, 1})); }),
OP("cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      const Tensor& y = a.tensor(0);
      Tensor x = a.tensor(1);
      int64_t d = wrap_dim(a, a.integer(2), y.dim()), n = y.size(d), m;
      if (x.dim() == 1) {
        VESTA_CHECK(x.size(0) == n, "cumulative_trapezoid: expected ", n, " values of x, got ", x.size(0));
        std::vector<int64_t> shape(size_t(y.dim()), 1);
        shape[size_t(d)] = n;
        x = x.view(shape);
      }
      while (x.dim() < y.dim()) x = x.unsqueeze(0);
      m = x.size(d);
      return ((x.slice(d, 1) - x.slice(d, 0, m - 1)) * (y.slice(d, 1) + y.slice(d, 0, n - 1))).cumsum(d) / 2.; },
  .shard = {"decomp"}, .doc = "Running integral of y over x by the trapezoidal rule.", .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({3, 4}), s.t({4})); }),
OP("cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      const Tensor& y = a.tensor(0);
      int64_t d = wrap_dim(a, a.integer(2), y.dim()), n = y.size(d);
      return (y.slice(d, 1) + y.slice(d, 0, n - 1)).cumsum(d) * a.scalar(1) / 2.; },
  .shard = {"decomp"}, .doc = "Running integral with a fixed step.", .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({3, 4})); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(scan, table)
