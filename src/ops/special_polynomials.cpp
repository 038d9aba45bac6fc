// Orthogonal polynomials of an element-wise degree, by their three-term recurrences in double precision. They have no
// derivative, as in PyTorch.
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/thread_pool.h"
#include "ops/infer.h"
#include "ops/numbers.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

constexpr int64_t kGrain = 2048;

// Degrees are truncated; those at or below -1 and non-finite ones give -1, hence the value 0.
int64_t degree(double n) { return n > -1 && n < 9e15 ? int64_t(n) : -1; }

// A degree may be any number; one step takes some nanoseconds, so these take a tenth of a second for one element.
constexpr int64_t kMostSteps = int64_t(1) << 24;
void check_steps(int64_t k) {
  VESTA_CHECK(k <= kMostSteps, "special polynomials: degrees beyond 2^24 take too many steps at this point");
}

// p(k+1) = 2 x p(k) - p(k-1), from p(0) = 1 and p(1). Inside (-1, 1) high degrees use the closed form: no long loops
// there, and outside values overflow soon.
double chebyshev_steps(double x, int64_t n, double first) {
  if (n == 0) return 1;
  double p = 1, q = first;
  for (int64_t k = 1; k < n && std::isfinite(q); ++k) {
    check_steps(k);
    double r = 2 * x * q - p;
    p = q;
    q = r;
  }
  return q;
}
constexpr int64_t kClosedForm = 64;
double chebyshev_t(double x, int64_t n) {
  if (n > kClosedForm && std::abs(x) <= 1) return std::cos(double(n) * std::acos(x));
  return chebyshev_steps(x, n, x);
}
double chebyshev_u(double x, int64_t n) {
  if (std::abs(x) == 1) return (x > 0 || n % 2 == 0 ? 1.0 : -1.0) * double(n + 1);
  if (n > kClosedForm && std::abs(x) < 1) return std::sin(double(n + 1) * std::acos(x)) / std::sin(std::acos(x));
  return chebyshev_steps(x, n, 2 * x);
}
double chebyshev_v(double x, int64_t n) {
  if (x == 1) return 1;
  if (x == -1) return (n % 2 ? -1.0 : 1.0) * double(2 * n + 1);
  if (n > kClosedForm && std::abs(x) < 1) return std::cos((double(n) + 0.5) * std::acos(x)) / std::cos(0.5 * std::acos(x));
  return chebyshev_steps(x, n, 2 * x - 1);
}
double chebyshev_w(double x, int64_t n) {
  if (x == 1) return double(2 * n + 1);
  if (x == -1) return n % 2 ? -1 : 1;
  if (n > kClosedForm && std::abs(x) < 1) return std::sin((double(n) + 0.5) * std::acos(x)) / std::sin(0.5 * std::acos(x));
  return chebyshev_steps(x, n, 2 * x + 1);
}
double shifted_chebyshev_t(double x, int64_t n) { return chebyshev_t(2 * x - 1, n); }
double shifted_chebyshev_u(double x, int64_t n) { return chebyshev_u(2 * x - 1, n); }
double shifted_chebyshev_v(double x, int64_t n) { return chebyshev_v(2 * x - 1, n); }
double shifted_chebyshev_w(double x, int64_t n) { return chebyshev_w(2 * x - 1, n); }
// p(k+1) = step(k, p(k), p(k-1)); stops where the values are no longer finite.
template <class Step>
double recurrence(int64_t n, double first, Step step) {
  if (n == 0) return 1;
  double p = 1, q = first;
  for (int64_t k = 1; k < n && std::isfinite(q); ++k) {
    check_steps(k);
    double r = step(double(k), q, p);
    p = q;
    q = r;
  }
  return q;
}
double hermite_h(double x, int64_t n) {
  return recurrence(n, 2 * x, [x](double k, double q, double p) { return 2 * x * q - 2 * k * p; });
}
double hermite_he(double x, int64_t n) {
  return recurrence(n, x, [x](double k, double q, double p) { return x * q - k * p; });
}
double laguerre_l(double x, int64_t n) {
  if (x == 0) return 1;
  return recurrence(n, 1 - x, [x](double k, double q, double p) { return ((2 * k + 1 - x) * q - k * p) / (k + 1); });
}
double legendre_p(double x, int64_t n) {
  if (std::abs(x) == 1) return x > 0 || n % 2 == 0 ? 1 : -1;
  return recurrence(n, x, [x](double k, double q, double p) { return ((2 * k + 1) * x * q - k * p) / (k + 1); });
}

template <class T, double (*F)(double, int64_t)>
void polynomial_loop(const Tensor& x, const Tensor& n, const Tensor& out) {
  const T *p = x.data_ptr<T>(), *q = n.data_ptr<T>();
  T* o = out.data_ptr<T>();
  parallel_for(0, out.numel(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t d = degree(double(q[i]));
      o[i] = T(d < 0 ? 0.0 : F(double(p[i]), d));
    }
  });
}
template <double (*F)(double, int64_t)>
void polynomial(const KernelCtx& k) {
  Tensor& out = k.out();
  Tensor x = k.tensor(0).expand(out.sizes()).contiguous(), n = k.tensor(1).expand(out.sizes()).contiguous();
  if (out.dtype() == kDouble) {
    polynomial_loop<double, F>(x, n, out);
  } else if (out.dtype() == kFloat) {
    polynomial_loop<float, F>(x, n, out);
  } else { // 16-bit types by way of float
    Tensor wide = empty(out.sizes(), TensorOptions().dtype(kFloat));
    polynomial_loop<float, F>(x.to(kFloat), n.to(kFloat), wide);
    out.copy_(wide);
  }
}
void infer_binary(InferCtx& c) {
  auto sizes = broadcast_sizes(c, c.sizes(0), c.sizes(1));
  DType t = result_type(c.tensor(0), c.tensor(1));
  c.out(0, sizes, is_integral(t, true) ? get_default_dtype() : t, c.tensor(0).device());
}

constexpr OpDef table[] = {
OP("special_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor",
  .forms = Out, .types = float_types, .infer = infer_binary, .kernels = {{Cpu, polynomial<chebyshev_t>}}, .non_differentiable = true,
  .shard = Shard::pointwise(), .doc = "Chebyshev polynomial of the first kind T of degree n (truncated; 0 for negative n).",
  .samples = [](SampleGen& s) { s.binary(range(-0.9, 0.9), range(0, 5)); }),
OP("special_chebyshev_polynomial_t.x_scalar(Scalar x, Tensor n) -> Tensor",
  .forms = Out, .types = float_types,
  .decompose = [](const Args& a) -> Results { return special_chebyshev_polynomial_t(float_number_beside(a.scalar(0), a.tensor(1)), a.tensor(1)); },
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "special_chebyshev_polynomial_t at one point.",
  .samples = [](SampleGen& s) { s(Scalar(0.5), s.t({3, 4}, range(0, 5))); }),
OP("special_chebyshev_polynomial_t.n_scalar(Tensor x, Scalar n) -> Tensor",
  .forms = Out, .types = float_types,
  .decompose = [](const Args& a) -> Results { return special_chebyshev_polynomial_t(a.tensor(0), float_number_beside(a.scalar(1), a.tensor(0))); },
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "special_chebyshev_polynomial_t of one degree.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), range(-0.9, 0.9), Scalar(3)); }),
OP("special_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor",
  .forms = Out, .types = float_types, .infer = infer_binary, .kernels = {{Cpu, polynomial<chebyshev_u>}}, .non_differentiable = true,
  .shard = Shard::pointwise(), .doc = "Chebyshev polynomial of the second kind U of degree n (truncated; 0 for negative n).",
  .samples = [](SampleGen& s) { s.binary(range(-0.9, 0.9), range(0, 5)); }),
OP("special_chebyshev_polynomial_u.x_scalar(Scalar x, Tensor n) -> Tensor",
  .forms = Out, .types = float_types,
  .decompose = [](const Args& a) -> Results { return special_chebyshev_polynomial_u(float_number_beside(a.scalar(0), a.tensor(1)), a.tensor(1)); },
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "special_chebyshev_polynomial_u at one point.",
  .samples = [](SampleGen& s) { s(Scalar(0.5), s.t({3, 4}, range(0, 5))); }),
OP("special_chebyshev_polynomial_u.n_scalar(Tensor x, Scalar n) -> Tensor",
  .forms = Out, .types = float_types,
  .decompose = [](const Args& a) -> Results { return special_chebyshev_polynomial_u(a.tensor(0), float_number_beside(a.scalar(1), a.tensor(0))); },
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "special_chebyshev_polynomial_u of one degree.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), range(-0.9, 0.9), Scalar(3)); }),
OP("special_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor",
  .forms = Out, .types = float_types, .infer = infer_binary, .kernels = {{Cpu, polynomial<chebyshev_v>}}, .non_differentiable = true,
  .shard = Shard::pointwise(), .doc = "Chebyshev polynomial of the third kind V of degree n (truncated; 0 for negative n).",
  .samples = [](SampleGen& s) { s.binary(range(-0.9, 0.9), range(0, 5)); }),
OP("special_chebyshev_polynomial_v.x_scalar(Scalar x, Tensor n) -> Tensor",
  .forms = Out, .types = float_types,
  .decompose = [](const Args& a) -> Results { return special_chebyshev_polynomial_v(float_number_beside(a.scalar(0), a.tensor(1)), a.tensor(1)); },
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "special_chebyshev_polynomial_v at one point.",
  .samples = [](SampleGen& s) { s(Scalar(0.5), s.t({3, 4}, range(0, 5))); }),
OP("special_chebyshev_polynomial_v.n_scalar(Tensor x, Scalar n) -> Tensor",
  .forms = Out, .types = float_types,
  .decompose = [](const Args& a) -> Results { return special_chebyshev_polynomial_v(a.tensor(0), float_number_beside(a.scalar(1), a.tensor(0))); },
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "special_chebyshev_polynomial_v of one degree.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), range(-0.9, 0.9), Scalar(3)); }),
OP("special_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor",
  .forms = Out, .types = float_types, .infer = infer_binary, .kernels = {{Cpu, polynomial<chebyshev_w>}}, .non_differentiable = true,
  .shard = Shard::pointwise(), .doc = "Chebyshev polynomial of the fourth kind W of degree n (truncated; 0 for negative n).",
  .samples = [](SampleGen& s) { s.binary(range(-0.9, 0.9), range(0, 5)); }),
OP("special_chebyshev_polynomial_w.x_scalar(Scalar x, Tensor n) -> Tensor",
  .forms = Out, .types = float_types,
  .decompose = [](const Args& a) -> Results { return special_chebyshev_polynomial_w(float_number_beside(a.scalar(0), a.tensor(1)), a.tensor(1)); },
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "special_chebyshev_polynomial_w at one point.",
  .samples = [](SampleGen& s) { s(Scalar(0.5), s.t({3, 4}, range(0, 5))); }),
OP("special_chebyshev_polynomial_w.n_scalar(Tensor x, Scalar n) -> Tensor",
  .forms = Out, .types = float_types,
  .decompose = [](const Args& a) -> Results { return special_chebyshev_polynomial_w(a.tensor(0), float_number_beside(a.scalar(1), a.tensor(0))); },
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "special_chebyshev_polynomial_w of one degree.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), range(-0.9, 0.9), Scalar(3)); }),
OP("special_shifted_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor",
  .forms = Out, .types = float_types, .infer = infer_binary, .kernels = {{Cpu, polynomial<shifted_chebyshev_t>}}, .non_differentiable = true,
  .shard = Shard::pointwise(), .doc = "T of 2 x - 1 of degree n (truncated; 0 for negative n).",
  .samples = [](SampleGen& s) { s.binary(range(-0.9, 0.9), range(0, 5)); }),
OP("special_shifted_chebyshev_polynomial_t.x_scalar(Scalar x, Tensor n) -> Tensor",
  .forms = Out, .types = float_types,
  .decompose = [](const Args& a) -> Results { return special_shifted_chebyshev_polynomial_t(float_number_beside(a.scalar(0), a.tensor(1)), a.tensor(1)); },
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "special_shifted_chebyshev_polynomial_t at one point.",
  .samples = [](SampleGen& s) { s(Scalar(0.5), s.t({3, 4}, range(0, 5))); }),
OP("special_shifted_chebyshev_polynomial_t.n_scalar(Tensor x, Scalar n) -> Tensor",
  .forms = Out, .types = float_types,
  .decompose = [](const Args& a) -> Results { return special_shifted_chebyshev_polynomial_t(a.tensor(0), float_number_beside(a.scalar(1), a.tensor(0))); },
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "special_shifted_chebyshev_polynomial_t of one degree.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), range(-0.9, 0.9), Scalar(3)); }),
OP("special_shifted_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor",
  .forms = Out, .types = float_types, .infer = infer_binary, .kernels = {{Cpu, polynomial<shifted_chebyshev_u>}}, .non_differentiable = true,
  .shard = Shard::pointwise(), .doc = "U of 2 x - 1 of degree n (truncated; 0 for negative n).",
  .samples = [](SampleGen& s) { s.binary(range(-0.9, 0.9), range(0, 5)); }),
OP("special_shifted_chebyshev_polynomial_u.x_scalar(Scalar x, Tensor n) -> Tensor",
  .forms = Out, .types = float_types,
  .decompose = [](const Args& a) -> Results { return special_shifted_chebyshev_polynomial_u(float_number_beside(a.scalar(0), a.tensor(1)), a.tensor(1)); },
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "special_shifted_chebyshev_polynomial_u at one point.",
  .samples = [](SampleGen& s) { s(Scalar(0.5), s.t({3, 4}, range(0, 5))); }),
OP("special_shifted_chebyshev_polynomial_u.n_scalar(Tensor x, Scalar n) -> Tensor",
  .forms = Out, .types = float_types,
  .decompose = [](const Args& a) -> Results { return special_shifted_chebyshev_polynomial_u(a.tensor(0), float_number_beside(a.scalar(1), a.tensor(0))); },
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "special_shifted_chebyshev_polynomial_u of one degree.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), range(-0.9, 0.9), Scalar(3)); }),
OP("special_shifted_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor",
  .forms = Out, .types = float_types, .infer = infer_binary, .kernels = {{Cpu, polynomial<shifted_chebyshev_v>}}, .non_differentiable = true,
  .shard = Shard::pointwise(), .doc = "V of 2 x - 1 of degree n (truncated; 0 for negative n).",
  .samples = [](SampleGen& s) { s.binary(range(-0.9, 0.9), range(0, 5)); }),
OP("special_shifted_chebyshev_polynomial_v.x_scalar(Scalar x, Tensor n) -> Tensor",
  .forms = Out, .types = float_types,
  .decompose = [](const Args& a) -> Results { return special_shifted_chebyshev_polynomial_v(float_number_beside(a.scalar(0), a.tensor(1)), a.tensor(1)); },
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "special_shifted_chebyshev_polynomial_v at one point.",
  .samples = [](SampleGen& s) { s(Scalar(0.5), s.t({3, 4}, range(0, 5))); }),
OP("special_shifted_chebyshev_polynomial_v.n_scalar(Tensor x, Scalar n) -> Tensor",
  .forms = Out, .types = float_types,
  .decompose = [](const Args& a) -> Results { return special_shifted_chebyshev_polynomial_v(a.tensor(0), float_number_beside(a.scalar(1), a.tensor(0))); },
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "special_shifted_chebyshev_polynomial_v of one degree.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), range(-0.9, 0.9), Scalar(3)); }),
OP("special_shifted_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor",
  .forms = Out, .types = float_types, .infer = infer_binary, .kernels = {{Cpu, polynomial<shifted_chebyshev_w>}}, .non_differentiable = true,
  .shard = Shard::pointwise(), .doc = "W of 2 x - 1 of degree n (truncated; 0 for negative n).",
  .samples = [](SampleGen& s) { s.binary(range(-0.9, 0.9), range(0, 5)); }),
OP("special_shifted_chebyshev_polynomial_w.x_scalar(Scalar x, Tensor n) -> Tensor",
  .forms = Out, .types = float_types,
  .decompose = [](const Args& a) -> Results { return special_shifted_chebyshev_polynomial_w(float_number_beside(a.scalar(0), a.tensor(1)), a.tensor(1)); },
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "special_shifted_chebyshev_polynomial_w at one point.",
  .samples = [](SampleGen& s) { s(Scalar(0.5), s.t({3, 4}, range(0, 5))); }),
OP("special_shifted_chebyshev_polynomial_w.n_scalar(Tensor x, Scalar n) -> Tensor",
  .forms = Out, .types = float_types,
  .decompose = [](const Args& a) -> Results { return special_shifted_chebyshev_polynomial_w(a.tensor(0), float_number_beside(a.scalar(1), a.tensor(0))); },
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "special_shifted_chebyshev_polynomial_w of one degree.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), range(-0.9, 0.9), Scalar(3)); }),
OP("special_hermite_polynomial_h(Tensor x, Tensor n) -> Tensor",
  .forms = Out, .types = float_types, .infer = infer_binary, .kernels = {{Cpu, polynomial<hermite_h>}}, .non_differentiable = true,
  .shard = Shard::pointwise(), .doc = "Hermite polynomial H (physicists') of degree n (truncated; 0 for negative n).",
  .samples = [](SampleGen& s) { s.binary(range(-0.9, 0.9), range(0, 5)); }),
OP("special_hermite_polynomial_h.x_scalar(Scalar x, Tensor n) -> Tensor",
  .forms = Out, .types = float_types,
  .decompose = [](const Args& a) -> Results { return special_hermite_polynomial_h(float_number_beside(a.scalar(0), a.tensor(1)), a.tensor(1)); },
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "special_hermite_polynomial_h at one point.",
  .samples = [](SampleGen& s) { s(Scalar(0.5), s.t({3, 4}, range(0, 5))); }),
OP("special_hermite_polynomial_h.n_scalar(Tensor x, Scalar n) -> Tensor",
  .forms = Out, .types = float_types,
  .decompose = [](const Args& a) -> Results { return special_hermite_polynomial_h(a.tensor(0), float_number_beside(a.scalar(1), a.tensor(0))); },
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "special_hermite_polynomial_h of one degree.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), range(-0.9, 0.9), Scalar(3)); }),
OP("special_hermite_polynomial_he(Tensor x, Tensor n) -> Tensor",
  .forms = Out, .types = float_types, .infer = infer_binary, .kernels = {{Cpu, polynomial<hermite_he>}}, .non_differentiable = true,
  .shard = Shard::pointwise(), .doc = "Hermite polynomial He (probabilists') of degree n (truncated; 0 for negative n).",
  .samples = [](SampleGen& s) { s.binary(range(-0.9, 0.9), range(0, 5)); }),
OP("special_hermite_polynomial_he.x_scalar(Scalar x, Tensor n) -> Tensor",
  .forms = Out, .types = float_types,
  .decompose = [](const Args& a) -> Results { return special_hermite_polynomial_he(float_number_beside(a.scalar(0), a.tensor(1)), a.tensor(1)); },
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "special_hermite_polynomial_he at one point.",
  .samples = [](SampleGen& s) { s(Scalar(0.5), s.t({3, 4}, range(0, 5))); }),
OP("special_hermite_polynomial_he.n_scalar(Tensor x, Scalar n) -> Tensor",
  .forms = Out, .types = float_types,
  .decompose = [](const Args& a) -> Results { return special_hermite_polynomial_he(a.tensor(0), float_number_beside(a.scalar(1), a.tensor(0))); },
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "special_hermite_polynomial_he of one degree.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), range(-0.9, 0.9), Scalar(3)); }),
OP("special_laguerre_polynomial_l(Tensor x, Tensor n) -> Tensor",
  .forms = Out, .types = float_types, .infer = infer_binary, .kernels = {{Cpu, polynomial<laguerre_l>}}, .non_differentiable = true,
  .shard = Shard::pointwise(), .doc = "Laguerre polynomial L of degree n (truncated; 0 for negative n).",
  .samples = [](SampleGen& s) { s.binary(range(-0.9, 0.9), range(0, 5)); }),
OP("special_laguerre_polynomial_l.x_scalar(Scalar x, Tensor n) -> Tensor",
  .forms = Out, .types = float_types,
  .decompose = [](const Args& a) -> Results { return special_laguerre_polynomial_l(float_number_beside(a.scalar(0), a.tensor(1)), a.tensor(1)); },
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "special_laguerre_polynomial_l at one point.",
  .samples = [](SampleGen& s) { s(Scalar(0.5), s.t({3, 4}, range(0, 5))); }),
OP("special_laguerre_polynomial_l.n_scalar(Tensor x, Scalar n) -> Tensor",
  .forms = Out, .types = float_types,
  .decompose = [](const Args& a) -> Results { return special_laguerre_polynomial_l(a.tensor(0), float_number_beside(a.scalar(1), a.tensor(0))); },
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "special_laguerre_polynomial_l of one degree.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), range(-0.9, 0.9), Scalar(3)); }),
OP("special_legendre_polynomial_p(Tensor x, Tensor n) -> Tensor",
  .forms = Out, .types = float_types, .infer = infer_binary, .kernels = {{Cpu, polynomial<legendre_p>}}, .non_differentiable = true,
  .shard = Shard::pointwise(), .doc = "Legendre polynomial P of degree n (truncated; 0 for negative n).",
  .samples = [](SampleGen& s) { s.binary(range(-0.9, 0.9), range(0, 5)); }),
OP("special_legendre_polynomial_p.x_scalar(Scalar x, Tensor n) -> Tensor",
  .forms = Out, .types = float_types,
  .decompose = [](const Args& a) -> Results { return special_legendre_polynomial_p(float_number_beside(a.scalar(0), a.tensor(1)), a.tensor(1)); },
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "special_legendre_polynomial_p at one point.",
  .samples = [](SampleGen& s) { s(Scalar(0.5), s.t({3, 4}, range(0, 5))); }),
OP("special_legendre_polynomial_p.n_scalar(Tensor x, Scalar n) -> Tensor",
  .forms = Out, .types = float_types,
  .decompose = [](const Args& a) -> Results { return special_legendre_polynomial_p(a.tensor(0), float_number_beside(a.scalar(1), a.tensor(0))); },
  .non_differentiable = true, .shard = Shard::pointwise(), .doc = "special_legendre_polynomial_p of one degree.",
  .samples = [](SampleGen& s) { s.unary(s.shapes(), range(-0.9, 0.9), Scalar(3)); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(special_polynomials, table)
