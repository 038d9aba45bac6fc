// Draws whose number of uniforms is not fixed (Poisson, binomial, gamma), so each element has a stream of its own: blocks
// from its index times 2^16 on. Rejection needs two or three rounds; the blocks last for thousands.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/thread_pool.h"
#include "core/storage.h"
#include "kernels/cpu/copy.h"
#include "ops/infer.h"
#include "ops/random_stream.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

class ElementStream {
 public:
  ElementStream(cpu::RandomStream s, int64_t element) : stream_(s), block_(uint64_t(element) << 16) {}
  // In (0, 1), with 53 bits.
  double uniform() {
    if (used_ == kWords) {
      cpu::random_words(stream_, block_, words_, kWords);
      block_ += kWords / 4;
      used_ = 0;
    }
    uint64_t bits = uint64_t(words_[used_]) << 32 | words_[used_ + 1];
    used_ += 2;
    return (double(bits >> 11) + 0.5) * 0x1p-53;
  }
  // Standard normal, by Box and Muller.
  double normal() {
    double r = std::sqrt(-2 * std::log(uniform()));
    return r * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  static constexpr int kWords = 16;
  cpu::RandomStream stream_;
  uint64_t block_;
  uint32_t words_[kWords];
  int used_ = kWords;
};

double log_factorial(double k) {
  int sign;
  return ::lgamma_r(k + 1, &sign);
}

// Small means: count uniforms until their product falls below exp(-mean). Others: transformed rejection (W. Hoermann,
// "The transformed rejection method for generating Poisson random variables", 1993, algorithm PTRS).
double poisson_draw(ElementStream& s, double mean) {
  if (!(mean > 0)) return mean == 0 ? 0 : std::numeric_limits<double>::quiet_NaN();
  if (mean < 10) {
    const double limit = std::exp(-mean);
    double product = s.uniform();
    int64_t k = 0;
    while (product > limit) ++k, product *= s.uniform();
    return double(k);
  }
  if (std::isinf(mean)) return mean;
  const double b = 0.931 + 2.53 * std::sqrt(mean), a = -0.059 + 0.02483 * b, inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), accept = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double u = s.uniform() - 0.5, v = s.uniform(), us = 0.5 - std::fabs(u), k = std::floor((2 * a / us + b) * u + mean + 0.43);
    if (us >= 0.07 && v <= accept) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b) <= k * std::log(mean) - mean - log_factorial(k)) return k;
  }
}

// Few expected successes: skip over failures with geometric draws. Others: transformed rejection (W. Hoermann, "The
// generation of binomial random variates", 1993, algorithm BTRS), accepting by the exact ratio of probabilities.
double binomial_draw(ElementStream& s, double count, double p) {
  if (count != count || p != p) return std::numeric_limits<double>::quiet_NaN();
  if (count <= 0 || p <= 0) return 0;
  if (p >= 1) return count;
  if (p > 0.5) return count - binomial_draw(s, count, 1 - p);
  if (count * p < 10) {
    const double log_failure = std::log1p(-p);
    double trials = 0, successes = 0;
    for (;;) {
      trials += std::ceil(std::log(s.uniform()) / log_failure);
      if (trials > count) return successes;
      ++successes;
    }
  }
  const double deviation = std::sqrt(count * p * (1 - p)), b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p, c = count * p + 0.5, accept = 0.92 - 4.2 / b;
  const double alpha = (2.83 + 5.1 / b) * deviation, mode = std::floor((count + 1) * p), odds = std::log(p / (1 - p));
  const double at_mode = log_factorial(mode) + log_factorial(count - mode);
  for (;;) {
    const double u = s.uniform() - 0.5, v = s.uniform(), us = 0.5 - std::fabs(u), k = std::floor((2 * a / us + b) * u + c);
    if (us >= 0.07 && v <= accept) return k;
    if (k < 0 || k > count) continue;
    if (std::log(v * alpha / (a / (us * us) + b)) <= at_mode - log_factorial(k) - log_factorial(count - k) + (k - mode) * odds) return k;
  }
}

// G. Marsaglia and W. Tsang, "A simple method for generating gamma variables", 2000; shapes below 1 by way of shape + 1.
double gamma_draw(ElementStream& s, double shape) {
  if (!(shape > 0)) return shape == 0 ? 0 : std::numeric_limits<double>::quiet_NaN();
  double scale = 1;
  if (shape < 1) {
    scale = std::pow(s.uniform(), 1 / shape);
    shape += 1;
  }
  const double d = shape - 1. / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = s.normal(), t = 1 + c * x;
    if (t <= 0) continue;
    const double v = t * t * t, u = s.uniform();
    if (u < 1 - 0.0331 * x * x * x * x || std::log(u) < 0.5 * x * x + d * (1 - v + std::log(v))) return scale * d * v;
  }
}

template <class Draw>
void fill_each(const Args& a, const Tensor& out, int generator_at, Draw draw) {
  const cpu::RandomStream stream = next_philox_stream(a, generator_at);
  Tensor buffer = out.dtype() == kDouble && out.is_contiguous() ? out : empty_cpu(out.sizes(), kDouble);
  double* p = buffer.data_ptr<double>();
  parallel_for(0, buffer.numel(), 512, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      ElementStream s(stream, i);
      p[i] = draw(s, i);
    }
  });
  if (!buffer.is_same(out)) cpu::copy_elements(out, buffer);
}
void check_float(const Args& a, const Tensor& t) {
  VESTA_CHECK_AS(TypeError, is_floating_point(t.dtype()), a.name(), ": expected a floating point tensor, got ", dtype_name(t.dtype()));
}
void k_poisson(const KernelCtx& k) {
  check_float(k, k.tensor(0));
  Tensor mean = k.tensor(0).to(kDouble).contiguous();
  const double* m = mean.data_ptr<double>();
  for (int64_t i = 0; i < mean.numel(); ++i) VESTA_CHECK(!(m[i] < 0), "poisson: expected means >= 0, got ", m[i]);
  fill_each(k, k.out(), 1, [m](ElementStream& s, int64_t i) { return poisson_draw(s, m[i]); });
}
void infer_binomial(InferCtx& c) {
  VESTA_CHECK_AS(TypeError, c.dtype_of(0) == c.dtype_of(1) && is_floating_point(c.dtype_of(0)), "binomial: expected count and prob of one floating point dtype, got ", dtype_name(c.dtype_of(0)), " and ", dtype_name(c.dtype_of(1)));
  c.out(0, broadcast_sizes(c, c.sizes(0), c.sizes(1)), c.dtype_of(0), c.tensor(0).device());
}
void k_binomial(const KernelCtx& k) {
  Tensor count = k.tensor(0).to(kDouble).expand(k.out().sizes()).contiguous(), prob = k.tensor(1).to(kDouble).expand(k.out().sizes()).contiguous();
  const double *n = count.data_ptr<double>(), *p = prob.data_ptr<double>();
  for (int64_t i = 0; i < prob.numel(); ++i) {
    VESTA_CHECK(!(p[i] < 0 || p[i] > 1), "binomial: expected probabilities in [0, 1], got ", p[i]);
    VESTA_CHECK(!(n[i] < 0) && !std::isinf(n[i]), "binomial: expected finite counts >= 0, got ", n[i]);
  }
  fill_each(k, k.out(), 2, [=](ElementStream& s, int64_t i) { return binomial_draw(s, std::floor(n[i]), p[i]); });
}
// Smallest normal number: a draw of 0 would have no logarithm.
double smallest(DType t) { return t == kDouble ? std::numeric_limits<double>::min() : t == kHalf ? 0x1p-14 : double(std::numeric_limits<float>::min()); }
void k_standard_gamma(const KernelCtx& k) {
  check_float(k, k.tensor(0));
  Tensor shape = k.tensor(0).to(kDouble).contiguous();
  const double *a = shape.data_ptr<double>(), least = smallest(k.out().dtype());
  for (int64_t i = 0; i < shape.numel(); ++i) VESTA_CHECK(!(a[i] < 0), "_standard_gamma: expected shapes >= 0, got ", a[i]);
  fill_each(k, k.out(), 1, [=](ElementStream& s, int64_t i) { return std::max(least, gamma_draw(s, a[i])); });
}


// dx / dshape of a gamma draw x at fixed probability: -(dF/dshape) / f, where F is the distribution function and f its
// density. Written as an integral of f(t) / f(x) (log t - digamma(shape)) over t from x on, or up to x with the other
// sign, whichever keeps one sign. Composite Gauss-Legendre of 5 points on the logarithm of t.
double digamma_of(double x) {
  double r = 0;
  for (; x < 10; ++x) r -= 1 / x;
  const double y = 1 / (x * x);
  return r + std::log(x) - 0.5 / x - y * (1. / 12 - y * (1. / 120 - y * (1. / 252 - y * (1. / 240 - y * (1. / 132)))));
}
double gamma_gradient(double shape, double x) {
  if (!(shape > 0) || !(x > 0)) return shape != shape || x != x ? std::numeric_limits<double>::quiet_NaN() : 0;
  static constexpr double kNodes[5] = {-0.906179845938664, -0.538469310105683, 0, 0.538469310105683, 0.906179845938664};
  static constexpr double kWeights[5] = {0.236926885056189, 0.478628670499366, 0.568888888888889, 0.478628670499366, 0.236926885056189};
  const double mean_log = digamma_of(shape), log_x = std::log(x);
  const bool upper = log_x > mean_log;
  // With t = x e^s the integrand is exp(shape s - x (e^s - 1)) (log x + s - mean_log) x.
  auto value = [&](double s) { return std::exp(shape * s - x * std::expm1(s)) * (log_x + s - mean_log); };
  // Far enough that the exponential is below 1e-18 of its start.
  double step = upper ? 1 / std::max(shape, x) : -1 / shape, reach = step;
  if (!upper && shape > x) step = reach = -1 / std::max(shape - x, 1.);
  while (shape * reach - x * std::expm1(reach) > -42 && std::fabs(reach) < 700) reach *= 1.5;
  constexpr int kPieces = 60;
  double sum = 0;
  for (int i = 0; i < kPieces; ++i) {
    // Pieces grow with the square of their number: the start matters most.
    const double lo = reach * (double(i) * i) / (kPieces * kPieces), hi = reach * (double(i + 1) * (i + 1)) / (kPieces * kPieces);
    for (int q = 0; q < 5; ++q) sum += kWeights[q] * (hi - lo) / 2 * value((lo + hi) / 2 + (hi - lo) / 2 * kNodes[q]);
  }
  return x * sum;
}
void infer_gamma_grad(InferCtx& c) {
  VESTA_CHECK(c.sizes(0) == c.sizes(1) && c.dtype_of(0) == c.dtype_of(1), c.name(), ": expected shapes and draws of one size and dtype");
  infer_like_self(c);
}
void k_standard_gamma_grad(const KernelCtx& k) {
  check_float(k, k.tensor(0));
  Tensor shape = k.tensor(0).to(kDouble).contiguous(), draw = k.tensor(1).to(kDouble).contiguous(), out = empty_cpu(k.out().sizes(), kDouble);
  const double *a = shape.data_ptr<double>(), *x = draw.data_ptr<double>();
  double* to = out.data_ptr<double>();
  parallel_for(0, out.numel(), 32, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = gamma_gradient(a[i], x[i]);
  });
  cpu::copy_elements(k.out(), out);
}

void float_samples(SampleGen& s) { s(s.t({3, 4}, range(0.5, 20))); s(s.t({0}, range(1, 2))); }
constexpr TypeRule floating{types::kFloatMask, Promote::None};

constexpr OpDef table[] = {
OP("poisson(Tensor self, Generator? generator=None) -> Tensor",
  .forms = Out, .types = floating, .infer = infer_like_self, .kernels = {{Cpu, k_poisson}}, .random = true,
  .vjp = [](const Grad& g) { return grads(G(0) { return zeros_like(g.dy()); }); },
  .shard = {"random"}, .doc = "Poisson counts with the given means.", .samples = float_samples),
OP("binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor",
  .types = floating, .infer = infer_binomial, .kernels = {{Cpu, k_binomial}}, .random = true, .non_differentiable = true,
  .shard = {"random"}, .doc = "Successes in count trials of probability prob.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}, range(1, 50)), s.t({4}, range(0, 1))); s(s.t({0}), s.t({0})); }),
OP("_standard_gamma(Tensor self, Generator? generator=None) -> Tensor",
  .types = floating, .infer = infer_like_self, .kernels = {{Cpu, k_standard_gamma}}, .random = true, .save = {in(0), out(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy() * _standard_gamma_grad(g.in(0), g.out()); }); },
  .shard = {"random"}, .doc = "Gamma draws of scale 1 with the given shapes.", .samples = float_samples),
OP("_standard_gamma_grad(Tensor self, Tensor output) -> Tensor",
  .types = floating, .infer = infer_gamma_grad, .kernels = {{Cpu, k_standard_gamma_grad}}, .non_differentiable = true,
  .shard = {"random"}, .tol = {1e-4, 1e-4}, .doc = "Derivative of gamma draws by their shapes.", .samples = [](SampleGen& s) { s(s.t({3, 4}, range(0.5, 5)), s.t({3, 4}, range(0.5, 5))); }),
OP("_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor",
  .types = floating, .decompose = [](const Args& a) -> Results {
      check_float(a, a.tensor(0));
      VESTA_CHECK(a.tensor(0).dim() >= 1, "_sample_dirichlet: expected at least 1 dim");
      Tensor g = _standard_gamma(a.tensor(0).detach(), generator_of(a, 1));
      return g / g.sum(IntArrayRef{-1}, true); },
  .random = true, .non_differentiable = true, .shard = {"random-rep"}, .doc = "Points of a simplex with the given concentrations, over the last dim.", .samples = [](SampleGen& s) { s(s.t({3, 4}, range(0.5, 5))); }),
OP("normal_functional(Tensor self, float mean=0, float std=1, *, Generator? generator=None) -> Tensor",
  .types = floating, .decompose = [](const Args& a) -> Results { return empty_like(a.tensor(0)).normal_(a.number(1), a.number(2), generator_of(a, 3)); },
  .random = true, .non_differentiable = true, .shard = {"random"}, .doc = "Normal draws in the shape of self.", .samples = float_samples),
OP("randint_like.Tensor(Tensor self, Tensor high, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) -> Results {
      VESTA_CHECK(a.tensor(1).numel() == 1, "randint_like: expected one bound, got ", a.tensor(1).numel());
      return randint_like(a.tensor(0), a.tensor(1).item().toLong(), TensorOptions().dtype(a.dtype(2, a.tensor(0).dtype())).device(a.device(4, a.tensor(0).device()))); },
  .random = true, .non_differentiable = true, .shard = {"like"}, .doc = "Integers from 0 up to a bound from a tensor, in the shape of self.",
  .samples = [](SampleGen& s) { if (!is_complex(s.dtype()) && s.dtype() != kBool) s(s.t({3, 4}), s.make({}, range(5, 9), kLong)); }),
OP("_fused_dropout(Tensor self, float p, Generator? generator=None) -> (Tensor, Tensor)",
  .types = floating, .decompose = [](const Args& a) -> Results {
      double p = a.number(1);
      VESTA_CHECK(p > 0 && p <= 1, "_fused_dropout: expected a probability to keep in (0, 1], got ", p);
      Tensor mask = empty(a.tensor(0).sizes(), TensorOptions(kByte).device(a.tensor(0).device())).bernoulli_(p, generator_of(a, 2));
      return {_masked_scale(a.tensor(0), mask, 1 / p), mask}; },
  .random = true, .save = {out(1)}, .vjp = [](const Grad& g) { return grads(G(0) { return _masked_scale(g.dy(), g.out(1), 1 / g.number(1)); }); },
  .non_diff_outputs = 2, .shard = {"random"}, .doc = "Keeps elements with probability p, divided by p, and the mask.", .samples = [](SampleGen& s) { s(s.t({3, 4}), 0.5); }),
OP("_masked_scale(Tensor self, Tensor mask, float scale) -> Tensor",
  .types = floating, .decompose = [](const Args& a) -> Results { return a.tensor(0) * (a.tensor(1).to(a.tensor(0).dtype()) * a.number(2)); },
  .shard = {"random"}, .doc = "self * mask * scale.", .samples = [](SampleGen& s) { s(s.t({3, 4}), s.make({3, 4}, range(0, 1), kByte), 2.0); }),
OP("rrelu_with_noise(Tensor self, Tensor(b!) noise, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, Generator? generator=None) -> Tensor",
  .forms = InPlace, .types = floating, .decompose = [](const Args& a) -> Results {
      double lower = a.scalar(2).toDouble(), upper = a.scalar(3).toDouble();
      const Tensor& x = a.tensor(0);
      VESTA_CHECK(lower <= upper, a.name(), ": expected lower <= upper, got ", lower, " and ", upper);
      VESTA_CHECK(a.tensor(1).sizes() == x.sizes() && a.tensor(1).dtype() == x.dtype(), a.name(), ": expected noise with the sizes and dtype of self");
      if (!a.flag(4)) return leaky_relu(x, (lower + upper) / 2);
      Tensor slope = empty(x.sizes(), x.options().requires_grad(false)).uniform_(lower, upper, generator_of(a, 5));
      Tensor noise = where(x.detach() <= 0, slope, ones_like(slope));
      Tensor(a.tensor(1)).copy_(noise);
      return x * noise; },
  .random = true, .shard = {"random"}, .doc = "leaky_relu with drawn slopes, which are written to noise; the mean slope where not training.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4}), Scalar(0.1), Scalar(0.3), true); s(s.t({3, 4}), s.t({3, 4})); }),
OP("rrelu_with_noise_functional(Tensor self, Tensor noise, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, Generator? generator=None) -> (Tensor, Tensor noise_out)",
  .types = floating, .decompose = [](const Args& a) -> Results {
      Tensor noise = a.tensor(1).detach().clone();
      Tensor y = rrelu_with_noise(a.tensor(0), noise, a.scalar(2), a.scalar(3), a.flag(4), generator_of(a, 5));
      return {y, noise}; },
  .random = true, .non_diff_outputs = 2, .shard = {"random"}, .doc = "rrelu_with_noise that returns the noise.", .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4}), Scalar(0.1), Scalar(0.3), true); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(random_counts, table)
