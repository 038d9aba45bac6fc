// Random operators. Each takes one call number from its generator (the default one where none is given) and fills from
// that Philox stream by logical element index: results do not depend on strides, threads or grad mode. Half types are
// drawn as float32 and rounded.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/thread_pool.h"
#include "core/storage.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/random.h"
#include "ops/infer.h"
#include "ops/random_stream.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;
using cpu::Distribution;

void check_writable(const Args& a, const Tensor& t) {
  for (int64_t d = 0; d < t.dim(); ++d)
    VESTA_CHECK(t.stride(d) != 0 || t.size(d) <= 1, a.name(), ": the written tensor has elements that share memory; clone it first");
}
void check_float(const Args& a, DType t) {
  VESTA_CHECK_AS(TypeError, is_floating_point(t) || is_complex(t), a.name(), ": expected a floating point dtype, got ", dtype_name(t));
}
// Rounding to a half type may reach the excluded upper bound.
template <class H>
void clamp_below(Tensor& t, double from, double to) {
  H* p = t.data_ptr<H>();
  H top = H(static_cast<float>(to));
  if (!(double(float(top)) > from)) return;
  // The next number towards zero, or away from it where `to` is not positive.
  H less = float(top) > 0 ? H::from_bits(uint16_t(top.bits - 1)) : float(top) < 0 ? H::from_bits(uint16_t(top.bits + 1)) : H::from_bits(0x8001);
  for (int64_t i = 0; i < t.numel(); ++i)
    if (double(float(p[i])) >= to) p[i] = less;
}

// Fills any floating or complex tensor of any strides.
void fill(const Tensor& out, Distribution d, cpu::RandomStream s, double a, double b) {
  DType t = out.dtype();
  bool direct = out.is_contiguous() && (t == kFloat || t == kDouble || is_complex(t)), wide = t == kDouble || t == kComplexDouble;
  DType made = is_complex(t) ? t : wide ? kDouble : kFloat;
  Tensor buffer = direct ? out : empty_cpu(out.sizes(), made);
  int64_t n = buffer.numel() * (is_complex(t) ? 2 : 1);
  if (is_complex(t) && d == Distribution::Normal) b *= std::sqrt(0.5);  // the variance is shared by both parts
  cpu::random_fill(wide ? cpu::Elem::F64 : cpu::Elem::F32, d, s, a, b, buffer.data_ptr(), n);
  if (direct) return;
  if (d == Distribution::Uniform && (t == kHalf || t == kBFloat16)) {
    Tensor narrow = empty_cpu(out.sizes(), t);
    cpu::copy_elements(narrow, buffer);
    t == kHalf ? clamp_below<Half>(narrow, a, b) : clamp_below<BFloat16>(narrow, a, b);
    buffer = narrow;
  }
  cpu::copy_elements(out, buffer);
}
void fill_integers(const Tensor& out, cpu::RandomStream s, int64_t low, uint64_t range) {
  bool direct = out.is_contiguous() && out.dtype() == kLong;
  Tensor buffer = direct ? out : empty_cpu(out.sizes(), kLong);
  cpu::random_integers(s, low, range, buffer.data_ptr<int64_t>(), buffer.numel());
  if (!direct) cpu::copy_elements(out, buffer);
}
uint64_t range_of(const Args& a, int64_t low, int64_t high) {
  VESTA_CHECK(low < high, a.name(), ": expected low < high, got ", low, " and ", high);
  return uint64_t(high) - uint64_t(low);
}
// 0 or 1 with probability p, as a bool tensor.
Tensor draw_mask(IntArrayRef sizes, double p, cpu::RandomStream s) {
  Tensor m = empty_cpu(sizes, kBool);
  cpu::random_mask(s, p, static_cast<uint8_t*>(m.data_ptr()), m.numel());
  return m;
}
void check_probability(const Args& a, double p) { VESTA_CHECK(p >= 0 && p <= 1, a.name(), ": expected a probability in [0, 1], got ", p); }

// ---- factories: sizes in argument 0, dtype at dtype_at, device two later ----
template <int size_at, int dtype_at>
void infer_factory(InferCtx& c) {
  std::vector<SymInt> sizes(c.ints(size_at).begin(), c.ints(size_at).end());
  c.out(0, sizes, c.dtype(dtype_at, get_default_dtype()), c.device(dtype_at + 2));
}
template <Distribution d, int dtype_at>
void k_factory(const KernelCtx& k) {
  check_float(k, k.out().dtype());
  fill(k.out(), d, next_stream(k, dtype_at - 1), 0, 1);
}
void k_rand(const KernelCtx& k) {
  check_float(k, k.out().dtype());
  fill(k.out(), Distribution::Uniform, next_stream(k, -1), 0, 1);
}
void k_randn(const KernelCtx& k) {
  check_float(k, k.out().dtype());
  fill(k.out(), Distribution::Normal, next_stream(k, -1), 0, 1);
}
template <bool has_low, bool has_generator>
void k_randint(const KernelCtx& k) {
  int64_t low = has_low ? k.integer(0) : 0, high = k.integer(has_low ? 1 : 0);
  uint64_t range = range_of(k, low, high);
  fill_integers(k.out(), next_stream(k, has_generator ? 2 + has_low : -1), low, range);
}
template <int shift>
void infer_randperm(InferCtx& c) {
  int64_t n = c.integer(0);
  VESTA_CHECK(n >= 0, c.name(), ": expected n >= 0, got ", n);
  c.out(0, {SymInt(n)}, c.dtype(1 + shift, kLong), c.device(3 + shift));
}
// Fisher-Yates; position i swaps with i + (64-bit draw i of n - i).
template <bool has_generator>
void k_randperm(const KernelCtx& k) {
  int64_t n = k.integer(0);
  cpu::RandomStream s = next_stream(k, has_generator ? 1 : -1);
  Tensor& out = k.out();
  Tensor buffer = out.dtype() == kLong ? out : empty_cpu({n}, kLong);
  int64_t* p = buffer.data_ptr<int64_t>();
  std::vector<int64_t> draws(static_cast<size_t>(n));
  cpu::random_integers(s, 0, 0, draws.data(), n);
  std::iota(p, p + n, int64_t(0));
  for (int64_t i = 0; i < n; ++i) {
    auto j = int64_t((static_cast<unsigned __int128>(uint64_t(draws[size_t(i)])) * uint64_t(n - i)) >> 64);
    std::swap(p[i], p[i + j]);
  }
  if (!buffer.is_same(out)) cpu::copy_elements(out, buffer);
}
TensorOptions options_like(const Args& a, int at) {
  return TensorOptions().dtype(a.dtype(at, a.tensor(0).dtype())).device(a.device(at + 2, a.tensor(0).device()));
}

// ---- in place ----
void k_uniform_(const KernelCtx& k) {
  double from = k.number(1), to = k.number(2);
  VESTA_CHECK(from <= to, k.name(), ": expected from <= to, got ", from, " and ", to);
  check_writable(k, k.tensor(0));
  check_float(k, k.tensor(0).dtype());
  fill(k.tensor(0), Distribution::Uniform, next_stream(k, 3), from, to);
}
void k_normal_(const KernelCtx& k) {
  VESTA_CHECK(k.number(2) >= 0, k.name(), ": expected std >= 0, got ", k.number(2));
  check_writable(k, k.tensor(0));
  check_float(k, k.tensor(0).dtype());
  cpu::RandomStream s = next_stream(k, 3);
  if (k.tensor(0).is_complex() && k.number(1) != 0) {
    // The mean is real: it moves the real parts only.
    Tensor z = empty_cpu(k.tensor(0).sizes(), k.tensor(0).dtype());
    fill(z, Distribution::Normal, s, 0, k.number(2));
    cpu::copy_elements(k.tensor(0), z + k.number(1));
    return;
  }
  fill(k.tensor(0), Distribution::Normal, s, k.number(1), k.number(2));
}
template <Distribution d>
void k_two_(const KernelCtx& k) {
  check_writable(k, k.tensor(0));
  VESTA_CHECK_AS(TypeError, is_floating_point(k.tensor(0).dtype()), k.name(), ": expected a floating point tensor");
  VESTA_CHECK(k.number(2) > 0, k.name(), ": expected a positive scale, got ", k.number(2));
  fill(k.tensor(0), d, next_stream(k, 3), k.number(1), k.number(2));
}
void k_exponential_(const KernelCtx& k) {
  check_writable(k, k.tensor(0));
  VESTA_CHECK_AS(TypeError, is_floating_point(k.tensor(0).dtype()), k.name(), ": expected a floating point tensor");
  VESTA_CHECK(k.number(1) > 0, k.name(), ": expected lambd > 0, got ", k.number(1));
  fill(k.tensor(0), Distribution::Exponential, next_stream(k, 2), k.number(1), 0);
}
void k_geometric_(const KernelCtx& k) {
  check_writable(k, k.tensor(0));
  double p = k.number(1);
  VESTA_CHECK(p > 0 && p <= 1, k.name(), ": expected a probability in (0, 1], got ", p);
  cpu::RandomStream s = next_stream(k, 2);
  const Tensor& t = k.tensor(0);
  if (is_floating_point(t.dtype())) return fill(t, Distribution::Geometric, s, p, 0);
  Tensor buffer = empty_cpu(t.sizes(), kDouble);
  fill(buffer, Distribution::Geometric, s, p, 0);
  cpu::copy_elements(t, buffer);
}
// The largest integer a random_ without bounds gives, and above which floats would skip some.
int64_t largest(DType t) {
  switch (t) {
    case DType::Bool: return 1;
    case DType::UInt8: return 255;
    case DType::Int8: return 127;
    case DType::Int16: return 32767;
    case DType::Int32: return 2147483647;
    case DType::Int64: return std::numeric_limits<int64_t>::max();
    case DType::Float16: return 1 << 11;
    case DType::BFloat16: return 1 << 8;
    case DType::Float32: return 1 << 24;
    default: return int64_t(1) << 53;
  }
}
void random_between(const KernelCtx& k, int64_t low, int64_t high_inclusive, int generator_at) {
  const Tensor& t = k.tensor(0);
  check_writable(k, t);
  VESTA_CHECK_AS(TypeError, !t.is_complex(), k.name(), ": does not take complex tensors");
  VESTA_CHECK(low <= high_inclusive, k.name(), ": the interval is empty: from ", low, " to ", high_inclusive, " (inclusive)");
  VESTA_CHECK(high_inclusive <= largest(t.dtype()) || is_floating_point(t.dtype()), k.name(), ": ", high_inclusive, " does not fit ", dtype_name(t.dtype()));
  fill_integers(t, next_stream(k, generator_at), low, uint64_t(high_inclusive) - uint64_t(low) + 1);
}
int64_t below(const KernelCtx& k, int64_t end) {
  VESTA_CHECK(end > std::numeric_limits<int64_t>::min(), k.name(), ": the interval is empty: it ends before ", end);
  return end - 1;
}
int zero_grad(const Grad& g) {
  return grads(G(0) { return zeros_like(g.dy()); });
}

// ---- Bernoulli and dropout ----
void bernoulli_into(const Args& a, const Tensor& out, const Tensor& p, cpu::RandomStream s) {
  Tensor q = p.to(p.dtype() == kDouble ? kDouble : kFloat).expand(out.sizes()).contiguous(), u = empty_cpu(out.sizes(), q.dtype()), m = empty_cpu(out.sizes(), kBool);
  fill(u, Distribution::Uniform, s, 0, 1);
  int64_t n = out.numel();
  auto* to = static_cast<uint8_t*>(m.data_ptr());
  auto run = [&](auto* x, auto* y) {
    for (int64_t i = 0; i < n; ++i) VESTA_CHECK(x[i] >= 0 && x[i] <= 1, a.name(), ": expected probabilities in [0, 1], got ", x[i]);
    for (int64_t i = 0; i < n; ++i) to[i] = y[i] < x[i];
  };
  if (q.dtype() == kDouble) run(q.data_ptr<double>(), u.data_ptr<double>());
  else run(q.data_ptr<float>(), u.data_ptr<float>());
  cpu::copy_elements(out, m);
}
void k_bernoulli(const KernelCtx& k) {
  VESTA_CHECK_AS(TypeError, is_floating_point(k.tensor(0).dtype()), k.name(), ": expected floating point probabilities, got ", dtype_name(k.tensor(0).dtype()));
  bernoulli_into(k, k.out(), k.tensor(0), next_stream(k, 1));
}
void k_bernoulli_p(const KernelCtx& k) {
  check_probability(k, k.number(1));
  cpu::copy_elements(k.out(), draw_mask(k.out().sizes(), k.number(1), next_stream(k, 2)));
}
void k_bernoulli_float_(const KernelCtx& k) {
  check_probability(k, k.number(1));
  check_writable(k, k.tensor(0));
  cpu::copy_elements(k.tensor(0), draw_mask(k.tensor(0).sizes(), k.number(1), next_stream(k, 2)));
}
void k_bernoulli_tensor_(const KernelCtx& k) {
  check_writable(k, k.tensor(0));
  bernoulli_into(k, k.tensor(0), k.tensor(1), next_stream(k, 2));
}

// out = x * mask * scale over contiguous arrays.
template <class S>
void apply_mask(const S* x, const uint8_t* mask, S* out, int64_t n, double scale) {
  using A = decltype(x[0] * 1.0f);
  A factors[2] = {A(0), A(scale)};
  parallel_for(0, n, 16384, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = S(mask[i] ? x[i] * factors[1] : factors[0]);
  });
}
void apply_mask(const Args& a, const Tensor& x, const Tensor& mask, const Tensor& out, double scale) {
  Tensor c = x.contiguous(), m = mask.contiguous();
  auto* p = static_cast<const uint8_t*>(m.data_ptr());
  int64_t n = x.numel();
  switch (x.dtype()) {
    case DType::Float32: return apply_mask(c.data_ptr<float>(), p, out.data_ptr<float>(), n, scale);
    case DType::Float64: return apply_mask(c.data_ptr<double>(), p, out.data_ptr<double>(), n, scale);
    case DType::Float16: return apply_mask(c.data_ptr<Half>(), p, out.data_ptr<Half>(), n, scale);
    case DType::BFloat16: return apply_mask(c.data_ptr<BFloat16>(), p, out.data_ptr<BFloat16>(), n, scale);
    default: cpu::copy_elements(out, c * m.to(c.dtype()) * scale); (void)a;
  }
}
void infer_native_dropout(InferCtx& c) {
  check_float(c, c.dtype_of(0));
  c.out(0, c.sizes(0), c.dtype_of(0), c.tensor(0).device());
  c.out(1, c.sizes(0), kBool, c.tensor(0).device());
}
bool training(const Args& a) { return !a.has(2) || a.flag(2); }
double keep_scale(double p) { return p >= 1 ? 0 : 1 / (1 - p); }
void k_native_dropout(const KernelCtx& k) {
  double p = k.number(1);
  check_probability(k, p);
  if (!training(k)) {
    cpu::copy_elements(k.out(0), k.tensor(0));
    cpu::fill_elements(k.out(1), true);
    return;
  }
  cpu::random_mask(next_stream(k, -1), 1 - p, static_cast<uint8_t*>(k.out(1).data_ptr()), k.out(1).numel());
  apply_mask(k, k.tensor(0), k.out(1), k.out(0), keep_scale(p));
}
void infer_dropout_backward(InferCtx& c) {
  VESTA_CHECK(c.sizes(0) == c.sizes(1) && c.dtype_of(1) == kBool, c.name(), ": expected a bool mask with the shape of grad_output");
  c.out(0, c.sizes(0), c.dtype_of(0), c.tensor(0).device());
}
void k_dropout_backward(const KernelCtx& k) { apply_mask(k, k.tensor(0), k.tensor(1), k.out(), k.number(2)); }

// Noise of dropout variants: one number per element, or per feature map.
std::vector<int64_t> feature_sizes(const Args& a, const Tensor& x) {
  VESTA_CHECK(x.dim() >= 2, a.name(), ": expected at least 2 dims, got ", x.dim());
  std::vector<int64_t> s(size_t(x.dim()), 1);
  s[0] = x.size(0);
  s[1] = x.size(1);
  return s;
}
Results dropout_variant(const Args& a, bool feature, bool alpha) {
  const Tensor& x = a.tensor(0);
  double p = a.number(1);
  check_probability(a, p);
  if (p == 0 || !a.flag(2) || x.numel() == 0) return x;
  if (p == 1) return x * 0;
  if (!feature && !alpha) return std::get<0>(native_dropout(x, p, true));
  Tensor noise = bernoulli(empty(feature ? IntArrayRef(feature_sizes(a, x)) : x.sizes(), x.options()), 1 - p);
  if (!alpha) return x * (noise / (1 - p));
  // Keeps the mean and variance of a SELU activation: dropped elements become its lower limit -1.758..., then an affine map.
  constexpr double kAlpha = 1.7580993408473766;
  double scale = 1 / std::sqrt((kAlpha * kAlpha * p + 1) * (1 - p));
  return x * (noise * scale) + ((noise - 1) * (kAlpha * scale) + kAlpha * scale * p);
}

// ---- multinomial ----
void infer_multinomial(InferCtx& c) {
  int n = c.dim(0);
  VESTA_CHECK(n == 1 || n == 2, c.name(), ": expected probabilities with 1 or 2 dims, got ", n);
  VESTA_CHECK_AS(TypeError, is_floating_point(c.dtype_of(0)), c.name(), ": expected floating point probabilities");
  int64_t count = c.integer(1);
  VESTA_CHECK(count >= 1, c.name(), ": expected num_samples >= 1, got ", count);
  VESTA_CHECK(c.flag(2) || SymInt(count) <= c.sizes(0).back(), c.name(), ": cannot draw ", count, " samples without replacement from ", c.sizes(0).back().str(), " classes");
  if (n == 1) c.out(0, {SymInt(count)}, kLong, c.tensor(0).device());
  else c.out(0, {c.sizes(0)[0], SymInt(count)}, kLong, c.tensor(0).device());
}
// With replacement: inversion of the cumulative sum. Without: the smallest of Exp(1) / p, which are draws in order.
void k_multinomial(const KernelCtx& k) {
  Tensor p = k.tensor(0).to(kDouble).contiguous();
  int64_t classes = p.size(-1), rows = p.dim() == 2 ? p.size(0) : 1, count = k.integer(1);
  auto* w = p.data_ptr<double>();
  for (int64_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (int64_t i = 0; i < classes; ++i) {
      double v = w[r * classes + i];
      VESTA_CHECK(v >= 0 && std::isfinite(v), k.name(), ": expected finite probabilities >= 0, got ", v);
      sum += v;
    }
    VESTA_CHECK(sum > 0, k.name(), ": the probabilities of row ", r, " sum to 0");
  }
  cpu::RandomStream s = next_stream(k, 3);
  auto* out = k.out().data_ptr<int64_t>();
  bool replacement = k.flag(2);
  std::vector<double> draws(size_t(rows * (replacement ? count : classes)));
  cpu::random_fill(cpu::Elem::F64, replacement ? Distribution::Uniform : Distribution::Exponential, s, replacement ? 0 : 1, 1, draws.data(), int64_t(draws.size()));
  for (int64_t r = 0; r < rows; ++r) {
    const double* row = w + r * classes;
    if (replacement) {
      std::vector<double> sums(static_cast<size_t>(classes));
      std::partial_sum(row, row + classes, sums.begin());
      int64_t last = classes - 1;
      while (row[last] == 0) --last;
      for (int64_t j = 0; j < count; ++j) {
        double x = draws[size_t(r * count + j)] * sums.back();
        out[r * count + j] = std::min<int64_t>(last, std::upper_bound(sums.begin(), sums.end(), x) - sums.begin());
      }
    } else {
      std::vector<double> key(static_cast<size_t>(classes));
      std::vector<int64_t> order(static_cast<size_t>(classes));
      for (int64_t i = 0; i < classes; ++i) key[size_t(i)] = draws[size_t(r * classes + i)] / row[i];
      std::iota(order.begin(), order.end(), int64_t(0));
      std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](int64_t x, int64_t y) {
        double a = key[size_t(x)], b = key[size_t(y)];
        return a != b ? a < b : x < y;
      });
      std::copy(order.begin(), order.begin() + count, out + r * count);
    }
  }
}

constexpr OpDef table[] = {
OP("rand(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .infer = infer_factory<0, 1>, .kernels = {{Cpu, k_rand}}, .random = true, .non_differentiable = true, .shard = {"create"}, .doc = "Uniform numbers in [0, 1).",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(std::vector<int64_t>{3, 4}, s.dtype()); }),
OP("rand.generator(SymInt[] size, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .infer = infer_factory<0, 2>, .kernels = {{Cpu, k_factory<Distribution::Uniform, 2>}}, .random = true, .non_differentiable = true, .shard = {"create"}, .doc = "rand from a generator.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(std::vector<int64_t>{3, 4}, std::nullopt, s.dtype()); }),
OP("randn(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .infer = infer_factory<0, 1>, .kernels = {{Cpu, k_randn}}, .random = true, .non_differentiable = true, .shard = {"create"}, .doc = "Standard normal numbers.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(std::vector<int64_t>{3, 4}, s.dtype()); }),
OP("randn.generator(SymInt[] size, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .infer = infer_factory<0, 2>, .kernels = {{Cpu, k_factory<Distribution::Normal, 2>}}, .random = true, .non_differentiable = true, .shard = {"create"}, .doc = "randn from a generator.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(std::vector<int64_t>{3, 4}, std::nullopt, s.dtype()); }),
OP("rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) -> Results { return rand(a.tensor(0).sizes(), options_like(a, 1)); },
  .random = true, .non_differentiable = true, .shard = {"like"}, .doc = "rand with self's sizes.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({3, 4})); }),
OP("randn_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) -> Results { return randn(a.tensor(0).sizes(), options_like(a, 1)); },
  .random = true, .non_differentiable = true, .shard = {"like"}, .doc = "randn with self's sizes.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({3, 4})); }),
OP("randint(SymInt high, SymInt[] size, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .infer = infer_factory<1, 2>, .kernels = {{Cpu, k_randint<false, false>}}, .random = true, .non_differentiable = true, .shard = {"create"}, .doc = "Integers in [0, high).",
  .samples = [](SampleGen& s) { s(10, std::vector<int64_t>{3, 4}); }),
OP("randint.generator(SymInt high, SymInt[] size, *, Generator? generator, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .infer = infer_factory<1, 3>, .kernels = {{Cpu, k_randint<false, true>}}, .random = true, .non_differentiable = true, .shard = {"create"}, .doc = "randint from a generator.",
  .samples = [](SampleGen& s) { s(10, std::vector<int64_t>{3, 4}, std::nullopt); }),
OP("randint.low(SymInt low, SymInt high, SymInt[] size, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .infer = infer_factory<2, 3>, .kernels = {{Cpu, k_randint<true, false>}}, .random = true, .non_differentiable = true, .shard = {"create"}, .doc = "Integers in [low, high).",
  .samples = [](SampleGen& s) { s(-5, 10, std::vector<int64_t>{3, 4}); }),
OP("randint.low_generator(SymInt low, SymInt high, SymInt[] size, *, Generator? generator, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .infer = infer_factory<2, 4>, .kernels = {{Cpu, k_randint<true, true>}}, .random = true, .non_differentiable = true, .shard = {"create"}, .doc = "randint.low from a generator.",
  .samples = [](SampleGen& s) { s(-5, 10, std::vector<int64_t>{3, 4}, std::nullopt); }),
OP("randint_like(Tensor self, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) -> Results { return randint(a.integer(1), a.tensor(0).sizes(), options_like(a, 2)); },
  .random = true, .non_differentiable = true, .shard = {"like"}, .doc = "randint with self's sizes and dtype.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), 2); }),
OP("randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) -> Results { return randint(a.integer(1), a.integer(2), a.tensor(0).sizes(), options_like(a, 3)); },
  .random = true, .non_differentiable = true, .shard = {"like"}, .doc = "randint.low with self's sizes and dtype.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), 0, 2); }),
OP("randperm(SymInt n, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .infer = infer_randperm<0>, .kernels = {{Cpu, k_randperm<false>}}, .random = true, .non_differentiable = true, .shard = {"random-rep"}, .doc = "A random order of 0 .. n - 1.",
  .samples = [](SampleGen& s) { s(7); s(0); }),
OP("randperm.generator(SymInt n, *, Generator? generator, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .infer = infer_randperm<1>, .kernels = {{Cpu, k_randperm<true>}}, .random = true, .non_differentiable = true, .shard = {"random-rep"}, .doc = "randperm from a generator.",
  .samples = [](SampleGen& s) { s(7, std::nullopt); }),
OP("normal.Tensor_float(Tensor mean, float std=1, *, Generator? generator=None) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      VESTA_CHECK(a.number(1) >= 0, a.name(), ": expected std >= 0, got ", a.number(1));
      return randn(a.tensor(0).sizes(), generator_of(a, 2), a.tensor(0).options()) * a.number(1) + a.tensor(0); },
  .random = true, .shard = {"random"}, .doc = "Normal numbers with a mean per element.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({3, 4}), 0.5); }),
OP("normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results { return randn(a.tensor(1).sizes(), generator_of(a, 2), a.tensor(1).options()) * a.tensor(1) + a.number(0); },
  .random = true, .shard = {"random"}, .doc = "Normal numbers with a deviation per element.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(0.5, s.t({3, 4}, range(0, 1))); }),
OP("normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      Tensor shape = a.tensor(0) + a.tensor(1);
      return randn(shape.sizes(), generator_of(a, 2), shape.options()) * a.tensor(1) + a.tensor(0); },
  .random = true, .shard = {"random"}, .doc = "Normal numbers with a mean and a deviation per element.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({3, 4}), s.t({4}, range(0, 1))); }),
OP("normal.float_float(float mean, float std, SymInt[] size, *, Generator? generator=None, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .decompose = [](const Args& a) -> Results {
      VESTA_CHECK(a.number(1) >= 0, a.name(), ": expected std >= 0, got ", a.number(1));
      return randn(a.ints(2), generator_of(a, 3), TensorOptions().dtype(a.dtype(4, get_default_dtype())).device(a.device(6))) * a.number(1) + a.number(0); },
  .random = true, .non_differentiable = true, .shard = {"create"}, .doc = "Normal numbers.",
  .samples = [](SampleGen& s) { s(0.5, 2.0, std::vector<int64_t>{3, 4}); }),
OP("normal_(Tensor(a!) self, float mean=0, float std=1, *, Generator? generator=None) -> Tensor(a!)",
  .types = any_types, .kernels = {{Cpu, k_normal_}}, .random = true, .vjp = zero_grad, .shard = {"random"}, .doc = "Overwrites self with normal numbers.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({3, 4}), 0.0, 1.0); }),
OP("uniform_(Tensor(a!) self, float from=0, float to=1, *, Generator? generator=None) -> Tensor(a!)",
  .types = any_types, .kernels = {{Cpu, k_uniform_}}, .random = true, .vjp = zero_grad, .shard = {"random"}, .doc = "Overwrites self with uniform numbers in [from, to).",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({3, 4}), 0.0, 1.0); }),
OP("log_normal_(Tensor(a!) self, float mean=1, float std=2, *, Generator? generator=None) -> Tensor(a!)",
  .types = any_types, .kernels = {{Cpu, k_two_<Distribution::LogNormal>}}, .random = true, .vjp = zero_grad, .shard = {"random"}, .doc = "Overwrites self with exp of normal numbers.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({3, 4}), 0.0, 1.0); }),
OP("cauchy_(Tensor(a!) self, float median=0, float sigma=1, *, Generator? generator=None) -> Tensor(a!)",
  .types = any_types, .kernels = {{Cpu, k_two_<Distribution::Cauchy>}}, .random = true, .vjp = zero_grad, .shard = {"random"}, .doc = "Overwrites self with Cauchy numbers.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({3, 4}), 0.0, 1.0); }),
OP("exponential_(Tensor(a!) self, float lambd=1, *, Generator? generator=None) -> Tensor(a!)",
  .types = any_types, .kernels = {{Cpu, k_exponential_}}, .random = true, .vjp = zero_grad, .shard = {"random"}, .doc = "Overwrites self with exponential numbers of rate lambd, all > 0.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({3, 4}), 1.0); }),
OP("geometric_(Tensor(a!) self, float p, *, Generator? generator=None) -> Tensor(a!)",
  .types = any_types, .kernels = {{Cpu, k_geometric_}}, .random = true, .vjp = zero_grad, .shard = {"random"}, .doc = "Overwrites self with the number of trials until a success of probability p.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({3, 4}), 0.3); }),
OP("random_(Tensor(a!) self, *, Generator? generator=None) -> Tensor(a!)",
  .types = any_types, .kernels = {{Cpu, [](const KernelCtx& k) { random_between(k, 0, largest(k.tensor(0).dtype()), 1); }}},
  .random = true, .vjp = zero_grad, .shard = {"random"}, .doc = "Overwrites self with integers from 0 to the dtype's largest (floats: to 2^digits).",
  .samples = [](SampleGen& s) { if (!is_complex(s.dtype())) s(s.t({3, 4})); }),
OP("random_.to(Tensor(a!) self, int to, *, Generator? generator=None) -> Tensor(a!)",
  .types = any_types, .kernels = {{Cpu, [](const KernelCtx& k) { random_between(k, 0, below(k, k.integer(1)), 2); }}},
  .random = true, .vjp = zero_grad, .shard = {"random"}, .doc = "Overwrites self with integers in [0, to).",
  .samples = [](SampleGen& s) { if (!is_complex(s.dtype())) s(s.t({3, 4}), 2); }),
OP("random_.from(Tensor(a!) self, int from, int? to, *, Generator? generator=None) -> Tensor(a!)",
  .types = any_types, .kernels = {{Cpu, [](const KernelCtx& k) { random_between(k, k.integer(1), k.has(2) ? below(k, k.integer(2)) : largest(k.tensor(0).dtype()), 3); }}},
  .random = true, .vjp = zero_grad, .shard = {"random"}, .doc = "Overwrites self with integers in [from, to), or from `from` to the dtype's largest.",
  .samples = [](SampleGen& s) { if (!is_complex(s.dtype())) s(s.t({3, 4}), 0, 2); }),
OP("bernoulli(Tensor self, *, Generator? generator=None) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_like_self, .kernels = {{Cpu, k_bernoulli}}, .random = true,
  .vjp = zero_grad, .shard = {"random"}, .doc = "1 with the probability that self holds, else 0.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({3, 4}, range(0, 1))); }),
OP("bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor",
  .types = any_types, .infer = infer_like_self, .kernels = {{Cpu, k_bernoulli_p}}, .random = true, .non_differentiable = true,
  .shard = {"random"}, .doc = "1 with probability p, else 0, in self's shape and dtype.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), 0.5); }),
OP("bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)",
  .types = any_types, .kernels = {{Cpu, k_bernoulli_float_}}, .random = true, .vjp = zero_grad, .shard = {"random"}, .doc = "Overwrites self with 1 with probability p, else 0.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), 0.5); }),
OP("bernoulli_.Tensor(Tensor(a!) self, Tensor p, *, Generator? generator=None) -> Tensor(a!)",
  .types = any_types, .kernels = {{Cpu, k_bernoulli_tensor_}}, .random = true,
  .vjp = [](const Grad& g) { return grads(G(0) { return zeros_like(g.dy()); }, G(1) { return zeros(g.sizes(1), g.dy().options()); }); },
  .shard = {"random"}, .doc = "Overwrites self with 1 with the probabilities p (broadcast), else 0.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({3, 4}), s.t({4}, range(0, 1))); }),

// ---- dropout ----
OP("native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
  .forms = Out, .types = any_types, .infer = infer_native_dropout, .kernels = {{Cpu, k_native_dropout}}, .random = true,
  .save = {out(1)},
  .vjp = [](const Grad& g) { return grads(G(0) {
      bool train = !g.has(2) || g.flag(2);
      return native_dropout_backward(g.dy(), g.out(1), train ? keep_scale(g.number(1)) : 1); }); },
  .non_diff_outputs = 2, .shard = {"random"}, .doc = "input with elements zeroed with probability p, the others scaled by 1 / (1 - p); and the mask of those kept.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({3, 4}), 0.0, true); }),
OP("native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_dropout_backward, .kernels = {{Cpu, k_dropout_backward}}, .save = {in(1)},
  .vjp = [](const Grad& g) { return grads(G(0) { return native_dropout_backward(g.dy(), g.in(1), g.number(2)); }); },
  .shard = {"random"}, .doc = "grad_output * mask * scale.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({3, 4}), s.mask({3, 4}), 1.25); }),
OP("dropout(Tensor input, float p, bool train) -> Tensor",
  .forms = InPlace, .types = any_types, .decompose = [](const Args& a) -> Results { return dropout_variant(a, false, false); }, .random = true,
  .shard = {"random"}, .doc = "Zeroes elements with probability p and scales the others by 1 / (1 - p); input itself outside of training.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { s(s.t({3, 4}), 0.5, false); s(s.t({3, 4}), 1.0, true); } }),
OP("feature_dropout(Tensor input, float p, bool train) -> Tensor",
  .forms = InPlace, .types = any_types, .decompose = [](const Args& a) -> Results { return dropout_variant(a, true, false); }, .random = true,
  .shard = {"random"}, .doc = "dropout of whole feature maps (dims 0 and 1).",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { s(s.t({2, 3, 4}), 0.5, false); s(s.t({2, 3, 4}), 1.0, true); } }),
OP("alpha_dropout(Tensor input, float p, bool train) -> Tensor",
  .forms = InPlace, .types = any_types, .decompose = [](const Args& a) -> Results { return dropout_variant(a, false, true); }, .random = true,
  .shard = {"random"}, .doc = "dropout that keeps the mean and variance of SELU activations.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({3, 4}), 0.5, false); }),
OP("feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor",
  .forms = InPlace, .types = any_types, .decompose = [](const Args& a) -> Results { return dropout_variant(a, true, true); }, .random = true,
  .shard = {"random"}, .doc = "alpha_dropout of whole feature maps.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({2, 3, 4}), 0.5, false); }),
OP("multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_multinomial, .kernels = {{Cpu, k_multinomial}}, .random = true, .non_differentiable = true,
  .shard = {"random-rep"}, .doc = "Class indices drawn with probabilities proportional to self's rows.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { s(s.t({5}, range(0.1, 1)), 3, false); s(s.t({2, 5}, range(0.1, 1)), 7, true); } }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(random, table)
