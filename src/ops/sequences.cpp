// Sequences and small constants: linspace, logspace, range, index triangles, signal windows, one_hot.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/checked_math.h"
#include "core/storage.h"
#include "kernels/cpu/copy.h"
#include "ops/infer.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

// Cut to an integer that fits; NaN gives 0.
int64_t truncated(double v) {
  if (v != v) return 0;
  return v >= 0x1p63 ? std::numeric_limits<int64_t>::max() : v < -0x1p63 ? std::numeric_limits<int64_t>::min() : int64_t(v);
}

// Fills `out` (any real or complex dtype) from a formula in double.
template <class F>
void fill_from(Tensor& out, F&& value) {
  Tensor t = out.dtype() == kDouble ? out : empty_cpu(out.sizes(), kDouble);
  double* p = t.data_ptr<double>();
  for (int64_t i = 0; i < t.numel(); ++i) p[i] = value(i);
  if (!t.is_same(out)) cpu::copy_elements(out, t);
}

// ---- linspace, logspace ----
bool any_complex(const Args& a) { return a.scalar(0).isComplex() || a.scalar(1).isComplex(); }
void infer_space(InferCtx& c, int dtype_at) {
  VESTA_CHECK(c.integer(2) >= 0, c.name(), ": expected steps >= 0, got ", c.integer(2));
  DType complex = get_default_dtype() == kDouble ? kComplexDouble : kComplexFloat;
  DType t = c.dtype(dtype_at, any_complex(c) ? complex : get_default_dtype());
  VESTA_CHECK_AS(TypeError, !any_complex(c) || is_complex(t), c.name(), ": complex bounds need a complex dtype, got ", dtype_name(t));
  c.out(0, {SymInt(c.integer(2))}, t, c.device(dtype_at + 2));
}
template <class T>
void linspace_integers(const KernelCtx& k, Tensor& out) {
  // The bounds are cut to the dtype first, then every value is truncated.
  int64_t n = out.numel();
  // In two steps, as copies convert: through int64, then wrapped.
  auto cut = [](double v) { return T(truncated(v)); };
  T lo = cut(k.scalar(0).toDouble()), hi = cut(k.scalar(1).toDouble());
  float step = n > 1 ? (float(hi) - float(lo)) / float(n - 1) : 0;
  T* p = out.data_ptr<T>();
  for (int64_t i = 0; i < n; ++i) p[i] = cut(i < n / 2 ? float(lo) + step * float(i) : float(hi) - step * float(n - i - 1));
}
void k_linspace(const KernelCtx& k) {
  Tensor& out = k.out();
  int64_t n = out.numel();
  if (n == 0) return;
  if (n == 1) return cpu::fill_elements(out, k.scalar(0));
  switch (out.dtype()) {
    case DType::UInt8: return linspace_integers<uint8_t>(k, out);
    case DType::Int8: return linspace_integers<int8_t>(k, out);
    case DType::Int16: return linspace_integers<int16_t>(k, out);
    case DType::Int32: return linspace_integers<int32_t>(k, out);
    case DType::Int64: return linspace_integers<int64_t>(k, out);
    default: break;
  }
  auto rounded = [t = out.dtype()](std::complex<double> v) -> std::complex<double> {
    // Half types: bounds, step and multiples of it are values of the type, as upstream has it.
    if (t == kBFloat16) return double(float(BFloat16(float(v.real()))));
    if (t == kHalf) return double(float(Half(float(v.real()))));
    return v;
  };
  std::complex<double> lo = rounded(k.scalar(0).toComplexDouble()), hi = rounded(k.scalar(1).toComplexDouble()), step = rounded((hi - lo) / double(n - 1));
  // From both ends, so that the last value is exactly `end`.
  auto at = [&](int64_t i) { return i < n / 2 ? lo + rounded(step * double(i)) : hi - rounded(step * double(n - 1 - i)); };
  if (is_complex(out.dtype())) {
    Tensor t = empty_cpu(out.sizes(), kComplexDouble);
    for (int64_t i = 0; i < n; ++i) t.data_ptr<std::complex<double>>()[i] = at(i);
    cpu::copy_elements(out, t);
    return;
  }
  fill_from(out, [&](int64_t i) { return at(i).real(); });
}
void k_logspace(const KernelCtx& k) {
  Tensor& out = k.out();
  int64_t n = out.numel();
  double base = k.number(3);
  auto rounded = [t = out.dtype()](std::complex<double> v) -> std::complex<double> {
    if (t == kBFloat16) return double(float(BFloat16(float(v.real()))));
    if (t == kHalf) return double(float(Half(float(v.real()))));
    return v;
  };
  std::complex<double> lo = rounded(k.scalar(0).toComplexDouble()), hi = rounded(k.scalar(1).toComplexDouble());
  std::complex<double> step = n > 1 ? rounded((hi - lo) / double(n - 1)) : 0;
  auto at = [&](int64_t i) { return i < n / 2 || n == 1 ? lo + step * double(i) : hi - step * double(n - 1 - i); };
  if (is_complex(out.dtype())) {
    Tensor t = empty_cpu(out.sizes(), kComplexDouble);
    for (int64_t i = 0; i < n; ++i) t.data_ptr<std::complex<double>>()[i] = std::pow(std::complex<double>(base), at(i));
    cpu::copy_elements(out, t);
    return;
  }
  fill_from(out, [&](int64_t i) { return std::pow(base, at(i).real()); });
}
TensorOptions options_at(const Args& a, int at) {
  TensorOptions o;
  if (a.has(at)) o = o.dtype(DType(a.integer(at)));
  return o.device(a.device(at + 2));
}
Scalar bound(const Args& a, int i) {
  if (a.value(i).kind != ValueKind::Tensor) return a.scalar(i);
  VESTA_CHECK(a.tensor(i).dim() == 0, a.name(), ": expected 0-dim bounds, got ", a.tensor(i).dim(), " dims");
  return a.tensor(i).item();
}
Results linspace_of(const Args& a) { return linspace(bound(a, 0), bound(a, 1), a.integer(2), options_at(a, 3)); }
Results logspace_of(const Args& a) { return logspace(bound(a, 0), bound(a, 1), a.integer(2), a.number(3), options_at(a, 4)); }
bool sequence_dtype(const SampleGen& s) { return s.dtype() != kBool && !is_complex(s.dtype()); }

// ---- triangles of indices ----
constexpr int64_t kFarthest = int64_t(1) << 40;  // of rows and columns: more could not be listed
std::pair<int64_t, int64_t> row_span(int64_t r, int64_t cols, int64_t offset, bool lower) {
  int64_t limit = std::clamp<int64_t>(offset, -kFarthest, kFarthest);  // no diagonal lies further out
  int64_t edge = std::clamp<int64_t>(r + limit + (lower ? 1 : 0), 0, cols);
  return lower ? std::pair<int64_t, int64_t>(0, edge) : std::pair<int64_t, int64_t>(edge, cols);
}
void infer_triangle(InferCtx& c, bool lower) {
  int64_t rows = c.integer(0), cols = c.integer(1);
  VESTA_CHECK(rows >= 0 && cols >= 0, c.name(), ": expected sizes >= 0, got ", rows, " and ", cols);
  VESTA_CHECK(rows < kFarthest && cols < kFarthest, c.name(), ": a matrix of ", rows, " x ", cols, " is too large");
  // Below the diagonal: rows [0, first) have none, those from `full` on all columns, the others 1, 2, ... more each.
  int64_t offset = std::clamp<int64_t>(c.integer(2), -kFarthest, kFarthest) - (lower ? 0 : 1);
  int64_t first = std::clamp<int64_t>(-offset, 0, rows), full = std::clamp<int64_t>(cols - offset - 1, first, rows);
  auto sum = [](int64_t m) { return __int128(m) * (m + 1) / 2; };  // 1 + ... + m
  __int128 count = (full > first ? sum(full + offset) - sum(first + offset) : 0) + __int128(rows - full) * cols;
  if (!lower) count = __int128(rows) * cols - count;
  VESTA_CHECK(count < kFarthest, c.name(), ": the result would have more than 2^40 elements");
  int64_t n = int64_t(count);
  c.out(0, {SymInt(2), SymInt(n)}, c.dtype(3, kLong), c.device(5));
}
void run_triangle(const KernelCtx& k, bool lower) {
  Tensor& out = k.out();
  Tensor t = out.dtype() == kLong ? out : empty_cpu(out.sizes(), kLong);
  int64_t n = t.size(1), at = 0;
  int64_t* p = t.data_ptr<int64_t>();
  // Only rows that have elements: the number of rows has no bound of its own.
  int64_t first = lower ? -std::clamp<int64_t>(k.integer(2), -kFarthest, 0) : 0;
  for (int64_t r = first; r < k.integer(0) && at < n; ++r) {
    auto [b, e] = row_span(r, k.integer(1), k.integer(2), lower);
    for (int64_t c = b; c < e; ++c, ++at) p[at] = r, p[n + at] = c;
  }
  if (!t.is_same(out)) cpu::copy_elements(out, t);
}

// ---- windows ----
enum class Window { Bartlett, Blackman, Hann, Hamming, Kaiser };
// Modified Bessel function of the first kind and order 0: its power series, all terms positive.
double bessel_i0(double x) {
  double sum = 1, term = 1, q = x * x / 4;
  for (int i = 1; i < 500; ++i) {
    term *= q / (double(i) * double(i));
    sum += term;
    if (term < sum * 1e-17) break;
  }
  return sum;
}
Results window(const Args& a, Window kind, bool periodic, int dtype_at, double alpha = 0.54, double beta = 0.46) {
  int64_t length = a.integer(0);
  DType t = a.dtype(dtype_at, get_default_dtype());
  VESTA_CHECK(length >= 0, a.name(), ": expected a length >= 0, got ", length);
  VESTA_CHECK_AS(TypeError, is_floating_point(t), a.name(), ": expected a floating dtype, got ", dtype_name(t));
  Tensor out = empty({length}, TensorOptions(t));
  if (length == 1) return ones({1}, TensorOptions(t));
  double n = double(periodic ? length : length - 1), turn = 2 * std::numbers::pi / n;
  fill_from(out, [&](int64_t i) {
    double x = double(i);
    switch (kind) {
      case Window::Bartlett: return 1 - std::abs(2 * x / n - 1);
      case Window::Blackman: return 0.42 - 0.5 * std::cos(turn * x) + 0.08 * std::cos(2 * turn * x);
      case Window::Hann: return 0.5 - 0.5 * std::cos(turn * x);
      case Window::Hamming: return alpha - beta * std::cos(turn * x);
      default: break;
    }
    double r = 2 * x / n - 1;
    return bessel_i0(beta * std::sqrt(std::max(0., 1 - r * r))) / bessel_i0(beta);
  });
  return out;
}
void window_samples(SampleGen& s) { if (s.dtype() == kFloat) { s(5); s(1); s(0); } }
void periodic_samples(SampleGen& s) { if (s.dtype() == kFloat) { s(5, false); s(5, true); } }

constexpr OpDef table[] = {
OP("linspace(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .infer = [](InferCtx& c) { infer_space(c, 3); }, .kernels = {{Cpu, k_linspace}}, .non_differentiable = true, .shard = {"create"},
  .doc = "steps values evenly spaced from start to end, both included.", .samples = [](SampleGen& s) { if (sequence_dtype(s)) { s(Scalar(0), Scalar(10), 5, s.dtype()); s(Scalar(3), Scalar(1), 1, s.dtype()); } }),
OP("linspace.Tensor_Tensor(Tensor start, Tensor end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .decompose = linspace_of, .non_differentiable = true, .shard = {"create"}, .doc = "linspace with bounds from 0-dim tensors.", .samples = [](SampleGen& s) { if (sequence_dtype(s)) s(s.t({}), s.t({}), 3); }),
OP("linspace.Tensor_Scalar(Tensor start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .decompose = linspace_of, .non_differentiable = true, .shard = {"create"}, .doc = "linspace with its start from a 0-dim tensor.", .samples = [](SampleGen& s) { if (sequence_dtype(s)) s(s.t({}), Scalar(3), 3); }),
OP("linspace.Scalar_Tensor(Scalar start, Tensor end, int steps, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .decompose = linspace_of, .non_differentiable = true, .shard = {"create"}, .doc = "linspace with its end from a 0-dim tensor.", .samples = [](SampleGen& s) { if (sequence_dtype(s)) s(Scalar(0), s.t({}), 3); }),
OP("logspace(Scalar start, Scalar end, int steps, float base=10.0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .infer = [](InferCtx& c) { infer_space(c, 4); }, .kernels = {{Cpu, k_logspace}}, .non_differentiable = true, .shard = {"create"},
  .doc = "base to the powers of linspace.", .samples = [](SampleGen& s) { if (sequence_dtype(s)) s(Scalar(0), Scalar(2), 3, 2.0, s.dtype()); }),
OP("logspace.Tensor_Tensor(Tensor start, Tensor end, int steps, float base=10.0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .decompose = logspace_of, .non_differentiable = true, .shard = {"create"}, .doc = "logspace with bounds from 0-dim tensors.", .samples = [](SampleGen& s) { if (sequence_dtype(s)) s(s.t({}), s.t({}), 3); }),
OP("logspace.Tensor_Scalar(Tensor start, Scalar end, int steps, float base=10.0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .decompose = logspace_of, .non_differentiable = true, .shard = {"create"}, .doc = "logspace with its start from a 0-dim tensor.", .samples = [](SampleGen& s) { if (sequence_dtype(s)) s(s.t({}), Scalar(2), 3); }),
OP("logspace.Scalar_Tensor(Scalar start, Tensor end, int steps, float base=10.0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .decompose = logspace_of, .non_differentiable = true, .shard = {"create"}, .doc = "logspace with its end from a 0-dim tensor.", .samples = [](SampleGen& s) { if (sequence_dtype(s)) s(Scalar(0), s.t({}), 3); }),
OP("range.step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .infer = [](InferCtx& c) {
      double s = c.scalar(0).toDouble(), e = c.scalar(1).toDouble(), d = c.scalar(2).toDouble();
      VESTA_CHECK(d != 0, c.name(), ": expected a step other than 0");
      VESTA_CHECK(std::isfinite(s) && std::isfinite(e), c.name(), ": expected finite bounds, got ", s, " and ", e);
      VESTA_CHECK((d > 0 && e >= s) || (d < 0 && e <= s), c.name(), ": the bounds ", s, " and ", e, " do not fit the sign of step ", d);
      double n = (e - s) / d + 1;
      VESTA_CHECK(n <= 9e15, c.name(), ": the result would have ", n, " elements");
      c.out(0, {SymInt(int64_t(n))}, c.dtype(3, get_default_dtype()), c.device(5)); },
  .kernels = {{Cpu, [](const KernelCtx& k) {
      double s = k.scalar(0).toDouble(), d = k.scalar(2).toDouble();
      fill_from(k.out(), [&](int64_t i) { return s + double(i) * d; }); }}},
  .non_differentiable = true, .shard = {"create"}, .doc = "start, start + step, ... up to and including end. Prefer arange.", .samples = [](SampleGen& s) { if (sequence_dtype(s)) s(Scalar(0), Scalar(4), Scalar(2), s.dtype()); }),
OP("range(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .decompose = [](const Args& a) -> Results { return range(a.scalar(0), a.scalar(1), Scalar(1), options_at(a, 2)); },
  .non_differentiable = true, .shard = {"create"}, .doc = "start, start + 1, ... up to and including end.", .samples = [](SampleGen& s) { if (sequence_dtype(s)) s(Scalar(0), Scalar(4), s.dtype()); }),
OP("tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .infer = [](InferCtx& c) { infer_triangle(c, true); }, .kernels = {{Cpu, [](const KernelCtx& k) { run_triangle(k, true); }}}, .non_differentiable = true, .shard = {"create"},
  .doc = "Rows and columns of the elements on and below a diagonal.", .samples = [](SampleGen& s) { s(3, 4); s(3, 4, -1); }),
OP("triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .infer = [](InferCtx& c) { infer_triangle(c, false); }, .kernels = {{Cpu, [](const KernelCtx& k) { run_triangle(k, false); }}}, .non_differentiable = true, .shard = {"create"},
  .doc = "Rows and columns of the elements on and above a diagonal.", .samples = [](SampleGen& s) { s(3, 4); s(3, 4, 1); }),
OP("bartlett_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .decompose = [](const Args& a) { return window(a, Window::Bartlett, true, 1); }, .non_differentiable = true, .shard = {"create"}, .doc = "Triangular window, periodic.", .samples = window_samples),
OP("bartlett_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .decompose = [](const Args& a) { return window(a, Window::Bartlett, a.flag(1), 2); }, .non_differentiable = true, .shard = {"create"}, .doc = "Triangular window.", .samples = periodic_samples),
OP("blackman_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .decompose = [](const Args& a) { return window(a, Window::Blackman, true, 1); }, .non_differentiable = true, .shard = {"create"}, .doc = "Blackman window, periodic.", .samples = window_samples),
OP("blackman_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .decompose = [](const Args& a) { return window(a, Window::Blackman, a.flag(1), 2); }, .non_differentiable = true, .shard = {"create"}, .doc = "Blackman window.", .samples = periodic_samples),
OP("hann_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .decompose = [](const Args& a) { return window(a, Window::Hann, true, 1); }, .non_differentiable = true, .shard = {"create"}, .doc = "Hann window, periodic.", .samples = window_samples),
OP("hann_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .decompose = [](const Args& a) { return window(a, Window::Hann, a.flag(1), 2); }, .non_differentiable = true, .shard = {"create"}, .doc = "Hann window.", .samples = periodic_samples),
OP("hamming_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .decompose = [](const Args& a) { return window(a, Window::Hamming, true, 1); }, .non_differentiable = true, .shard = {"create"}, .doc = "Hamming window, periodic.", .samples = window_samples),
OP("hamming_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .decompose = [](const Args& a) { return window(a, Window::Hamming, a.flag(1), 2); }, .non_differentiable = true, .shard = {"create"}, .doc = "Hamming window.", .samples = periodic_samples),
OP("hamming_window.periodic_alpha(int window_length, bool periodic, float alpha, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .decompose = [](const Args& a) { return window(a, Window::Hamming, a.flag(1), 3, a.number(2)); }, .non_differentiable = true, .shard = {"create"}, .doc = "Hamming window with its own alpha.", .samples = [](SampleGen& s) { if (s.dtype() == kFloat) s(5, true, 0.5); }),
OP("hamming_window.periodic_alpha_beta(int window_length, bool periodic, float alpha, float beta, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .decompose = [](const Args& a) { return window(a, Window::Hamming, a.flag(1), 4, a.number(2), a.number(3)); }, .non_differentiable = true, .shard = {"create"}, .doc = "Hamming window with its own coefficients.", .samples = [](SampleGen& s) { if (s.dtype() == kFloat) s(5, true, 0.5, 0.5); }),
OP("kaiser_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .decompose = [](const Args& a) { return window(a, Window::Kaiser, true, 1, 0, 12); }, .non_differentiable = true, .shard = {"create"}, .doc = "Kaiser window, periodic, beta 12.", .samples = window_samples),
OP("kaiser_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .decompose = [](const Args& a) { return window(a, Window::Kaiser, a.flag(1), 2, 0, 12); }, .non_differentiable = true, .shard = {"create"}, .doc = "Kaiser window, beta 12.", .samples = periodic_samples),
OP("kaiser_window.beta(int window_length, bool periodic, float beta, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .decompose = [](const Args& a) { return window(a, Window::Kaiser, a.flag(1), 3, 0, a.number(2)); }, .non_differentiable = true, .shard = {"create"}, .doc = "Kaiser window.", .samples = [](SampleGen& s) { if (s.dtype() == kFloat) s(5, true, 8.0); }),
OP("one_hot(Tensor self, int num_classes=-1) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      const Tensor& t = a.tensor(0);
      int64_t n = a.integer(1);
      VESTA_CHECK_AS(TypeError, t.dtype() == kLong, "one_hot: expected int64, got ", dtype_name(t.dtype()));
      std::vector<int64_t> sizes = t.sizes().vec();
      if (t.numel() == 0) {
        VESTA_CHECK(n > 0, "one_hot: the number of classes of an empty tensor must be given");
        sizes.push_back(n);
        return zeros(sizes, t.options());
      }
      VESTA_CHECK(t.min().item().toLong() >= 0, "one_hot: expected class indices >= 0");
      int64_t top = t.max().item().toLong();
      if (n == -1) n = checked_add<int64_t>(top, 1, "one_hot");
      VESTA_CHECK(n >= 1 && top < n, "one_hot: class ", top, " does not fit ", n, " classes");
      sizes.push_back(n);
      return zeros(sizes, t.options()).scatter(-1, t.unsqueeze(-1), 1); },
  .non_differentiable = true, .shard = {"decomp"}, .doc = "A 1 at each class index, in a new last dim.", .samples = [](SampleGen& s) { if (s.dtype() == kLong) s(s.index({3}, 4), 5); }),
OP("fill.Scalar(Tensor self, Scalar value) -> Tensor",
  .forms = Out, .types = any_types, .decompose = [](const Args& a) -> Results { return full_like(a.tensor(0), a.scalar(1)); },
  .vjp = [](const Grad& g) { return grads(G(0) { return zeros_like(g.dy()); }); },
  .shard = {"copy"}, .doc = "A tensor like self full of a number.", .samples = [](SampleGen& s) { s(s.t({3, 4}), Scalar(2)); }),
OP("type_as(Tensor self, Tensor other) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) -> Results { return a.tensor(0).to(a.tensor(1).dtype()); },
  .shard = {"copy"}, .doc = "self in other's dtype.", .samples = [](SampleGen& s) { s(s.t({3}), s.make({1}, {}, kFloat)); }),
OP("_dim_arange(Tensor like, int dim) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) -> Results { return arange(a.tensor(0).size(a.integer(1)), TensorOptions(kLong).device(a.tensor(0).device())); },
  .non_differentiable = true, .shard = {"create"}, .doc = "Indices of a dim.", .samples = [](SampleGen& s) { s(s.t({3, 4}), 1); }),
OP("vander(Tensor x, int? N=None, bool increasing=False) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      const Tensor& x = a.tensor(0);
      VESTA_CHECK(x.dim() == 1, "vander: expected 1 dim, got ", x.dim());
      int64_t n = a.integer(1, x.size(0));
      VESTA_CHECK(n >= 0, "vander: expected N >= 0, got ", n);
      std::vector<int64_t> sizes{x.size(0), n};
      DType t = is_integral(x.dtype(), true) ? kLong : x.dtype();
      if (n == 0) return zeros(sizes, TensorOptions(t));
      Tensor r = ones({x.size(0), 1}, TensorOptions(t));
      if (n > 1) r = cat({r, cumprod(x.to(t).unsqueeze(1).expand({x.size(0), n - 1}), 1)}, 1);
      return a.flag(2) ? r : r.flip({1}); },
  .shard = {"create"}, .doc = "Powers of x as columns, the highest first unless increasing.", .samples = [](SampleGen& s) { s(s.t({3})); s(s.t({3}), 2, true); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(sequences, table)
