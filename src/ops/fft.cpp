// Discrete Fourier transforms: three operators that compute (complex, real to complex, complex to real) and the public
// ones, which resize, promote and choose a scale. Gradients are transforms in the other direction with the same scale.
#include <algorithm>
#include <cmath>

#include "base/checked_math.h"
#include "core/storage.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/fft.h"
#include "ops/infer.h"
#include "vesta/op.h"
#include "vesta/ops.h"

namespace vesta {
namespace {

using namespace op_block;

// The integer that the schemas carry: how sums are scaled.
enum Normalization : int64_t { kNone = 0, kByRootN = 1, kByN = 2 };

constexpr TypeRule fft_types{types::bit(kFloat32) | types::bit(kFloat64) | types::kComplexMask, Promote::None};
constexpr TypeRule fft_complex_types{types::kComplexMask, Promote::None};
constexpr TypeRule fft_real_types{types::bit(kFloat32) | types::bit(kFloat64), Promote::None};

DType real_of(DType t) { return t == kComplexFloat ? kFloat : t == kComplexDouble ? kDouble : t; }
DType complex_of(DType t) { return t == kFloat ? kComplexFloat : t == kDouble ? kComplexDouble : t; }

// ---- the computing operators ----
// The transformed dims, wrapped, in the order given.
std::vector<int64_t> transformed(const Args& a, int64_t ndim, IntArrayRef dims) {
  std::vector<int64_t> list;
  for (int64_t d : dims) {
    int64_t w = wrap_dim(a, d, ndim);
    VESTA_CHECK(ndim > 0 && std::find(list.begin(), list.end(), w) == list.end(), a.name(), ": dim ", d, " is out of range or appears twice");
    list.push_back(w);
  }
  return list;
}
void check_normalization(const Args& a, int64_t n) { VESTA_CHECK(n >= kNone && n <= kByN, a.name(), ": expected normalization 0, 1 or 2, got ", n); }
double scale_of(int64_t normalization, double n) { return normalization == kNone ? 1 : normalization == kByN ? 1 / n : 1 / std::sqrt(n); }
void infer_c2c(InferCtx& c) {
  VESTA_CHECK_AS(TypeError, fft_complex_types.accepts(c.dtype_of(0)), c.name(), ": expected complex64 or complex128, got ", dtype_name(c.dtype_of(0)));
  check_normalization(c, c.integer(2));
  for (int64_t d : transformed(c, c.dim(0), c.ints(1)))
    VESTA_CHECK(c.sizes(0)[size_t(d)] >= 1, c.name(), ": expected at least one value along dim ", d);
  c.out(0, c.sizes(0), c.dtype_of(0), c.tensor(0).device());
}
void infer_r2c(InferCtx& c) {
  VESTA_CHECK_AS(TypeError, fft_real_types.accepts(c.dtype_of(0)), c.name(), ": expected float32 or float64, got ", dtype_name(c.dtype_of(0)));
  check_normalization(c, c.integer(2));
  std::vector<int64_t> dims = transformed(c, c.dim(0), c.ints(1));
  VESTA_CHECK(!dims.empty(), c.name(), ": expected at least one dim");
  for (int64_t d : dims) VESTA_CHECK(c.sizes(0)[size_t(d)] >= 1, c.name(), ": expected at least one value along dim ", d);
  std::vector<SymInt> sizes(c.sizes(0).begin(), c.sizes(0).end());
  if (c.flag(3)) sizes[size_t(dims.back())] = sizes[size_t(dims.back())] / 2 + 1;
  c.out(0, sizes, complex_of(c.dtype_of(0)), c.tensor(0).device());
}
void infer_c2r(InferCtx& c) {
  VESTA_CHECK_AS(TypeError, fft_complex_types.accepts(c.dtype_of(0)), c.name(), ": expected complex64 or complex128, got ", dtype_name(c.dtype_of(0)));
  check_normalization(c, c.integer(2));
  std::vector<int64_t> dims = transformed(c, c.dim(0), c.ints(1));
  VESTA_CHECK(!dims.empty(), c.name(), ": expected at least one dim");
  for (int64_t d : dims) VESTA_CHECK(c.sizes(0)[size_t(d)] >= 1, c.name(), ": expected at least one value along dim ", d);
  SymInt n = c.integer(3), last = c.sizes(0)[size_t(dims.back())];
  VESTA_CHECK(n >= 1, c.name(), ": expected last_dim_size >= 1, got ", n.str());
  VESTA_CHECK(last == n / 2 + 1, c.name(), ": expected ", (n / 2 + 1).str(), " frequencies for ", n.str(), " values, got ", last.str());
  std::vector<SymInt> sizes(c.sizes(0).begin(), c.sizes(0).end());
  sizes[size_t(dims.back())] = n;
  c.out(0, sizes, real_of(c.dtype_of(0)), c.tensor(0).device());
}
double count_of(IntArrayRef sizes, const std::vector<int64_t>& dims) {
  double n = 1;
  for (int64_t d : dims) n *= double(sizes[size_t(d)]);
  return n;
}
// Transforms the contiguous `t` in place along one dim after another; the scale goes with the first.
void transform_dims(const Tensor& from, const Tensor& to, const std::vector<int64_t>& dims, bool forward, double scale) {
  const Tensor* in = &from;
  for (int64_t d : dims) {
    cpu::FftShape s;
    for (int64_t i = 0; i < d; ++i) s.outer *= to.size(i);
    s.n = to.size(d);
    for (int64_t i = d + 1; i < to.dim(); ++i) s.inner *= to.size(i);
    if (to.dtype() == kComplexFloat)
      cpu::fft_complex(in->const_data_ptr<std::complex<float>>(), to.data_ptr<std::complex<float>>(), s, forward, scale);
    else
      cpu::fft_complex(in->const_data_ptr<std::complex<double>>(), to.data_ptr<std::complex<double>>(), s, forward, scale);
    in = &to;
    scale = 1;
  }
}
void k_c2c(const KernelCtx& k) {
  Tensor in = k.tensor(0).contiguous();
  if (in.numel() == 0) return;
  std::vector<int64_t> dims = transformed(k, in.dim(), k.ints(1));
  if (dims.empty()) return cpu::copy_elements(k.out(), in);
  transform_dims(in, k.out(), dims, k.flag(3), scale_of(k.integer(2), count_of(in.sizes(), dims)));
}
void k_r2c(const KernelCtx& k) {
  const Tensor& t = k.tensor(0);
  if (k.out().numel() == 0) return;
  bool onesided = k.flag(3);
  std::vector<int64_t> dims = transformed(k, t.dim(), k.ints(1));
  double scale = scale_of(k.integer(2), count_of(t.sizes(), dims));
  int64_t last = dims.back();
  Tensor in = t.movedim(last, -1).contiguous();
  int64_t n = in.size(-1), half = n / 2 + 1, outer = in.numel() / n;
  std::vector<int64_t> sizes = in.sizes().vec();
  sizes.back() = half;
  bool direct = onesided && last == t.dim() - 1;
  Tensor first = direct ? k.out() : empty_cpu(sizes, k.out().dtype());
  if (t.dtype() == kFloat) cpu::fft_real(in.const_data_ptr<float>(), first.data_ptr<std::complex<float>>(), outer, n, scale);
  else cpu::fft_real(in.const_data_ptr<double>(), first.data_ptr<std::complex<double>>(), outer, n, scale);
  if (!direct) {
    Tensor target = k.out().movedim(last, -1);
    cpu::copy_elements(target.narrow(-1, 0, half), first);
    // Frequency n - k of a real line is the conjugate of frequency k.
    if (!onesided && n > half) target.narrow(-1, half, n - half).copy_(first.narrow(-1, 1, n - half).flip({-1}).conj());
  }
  dims.pop_back();
  transform_dims(k.out(), k.out(), dims, true, 1);
}
void k_c2r(const KernelCtx& k) {
  const Tensor& t = k.tensor(0);
  if (k.out().numel() == 0) return;
  std::vector<int64_t> dims = transformed(k, t.dim(), k.ints(1));
  int64_t last = dims.back(), n = k.integer(3);
  double scale = scale_of(k.integer(2), count_of(k.out().sizes(), dims));
  dims.pop_back();
  Tensor in = t.contiguous();
  if (!dims.empty()) {
    Tensor other = empty_cpu(in.sizes(), in.dtype());
    transform_dims(in, other, dims, false, 1);
    in = other;
  }
  in = in.movedim(last, -1).contiguous();
  std::vector<int64_t> sizes = in.sizes().vec();
  int64_t outer = in.numel() / sizes.back();
  sizes.back() = n;
  bool direct = last == t.dim() - 1;
  Tensor lines = direct ? k.out() : empty_cpu(sizes, k.out().dtype());
  if (lines.dtype() == kFloat) cpu::fft_real_inverse(in.const_data_ptr<std::complex<float>>(), lines.data_ptr<float>(), outer, n, scale);
  else cpu::fft_real_inverse(in.const_data_ptr<std::complex<double>>(), lines.data_ptr<double>(), outer, n, scale);
  if (!direct) cpu::copy_elements(k.out().movedim(last, -1), lines);
}
int64_t last_dim(const Grad& g) {
  int64_t d = g.ints(1).back();
  return d < 0 ? d + int64_t(g.sizes(0).size()) : d;
}
Tensor padded(const Tensor& t, int64_t dim, int64_t n) {
  int64_t missing = n - t.size(dim);
  if (missing <= 0) return t;
  std::vector<int64_t> sizes = t.sizes().vec();
  sizes[size_t(dim)] = missing;
  return cat({t, zeros(sizes, t.options())}, dim);
}
// The frequencies that a one-sided spectrum leaves out are conjugates of those it has: they add to the real part once
// more, which the full inverse transform of a padded spectrum does not count.
int vjp_r2c(const Grad& g) {
  return grads(G(0) {
    Tensor dy = g.dy();
    int64_t d = last_dim(g);
    if (g.flag(3)) dy = padded(dy, d, g.sizes(0)[size_t(d)]);
    return vesta::real(_fft_c2c(dy, g.ints(1), g.integer(2), false)); });
}
// Frequencies that stand for two (all but 0 and, for even lengths, n / 2) count twice.
int vjp_c2r(const Grad& g) {
  return grads(G(0) {
    Tensor r = _fft_r2c(g.dy(), g.ints(1), g.integer(2), true);
    int64_t d = last_dim(g), half = r.size(d), twice = g.integer(3) - half;
    if (twice <= 0) return r;
    TensorOptions real(real_of(r.dtype()));
    Tensor weight = cat({ones({1}, real), full({twice}, Scalar(2.0), real), ones({half - 1 - twice}, real)}, 0);
    std::vector<int64_t> sizes(size_t(r.dim()), 1);
    sizes[size_t(d)] = half;
    return r * weight.reshape(sizes); });
}

// ---- the public operators ----
Normalization normalization(const Args& a, int i, bool forward) {
  std::string_view mode = a.has(i) ? a.string(i) : "backward";
  if (mode == "ortho") return kByRootN;
  VESTA_CHECK(mode == "backward" || mode == "forward", a.name(), ": expected norm 'backward', 'forward' or 'ortho', got '", mode, "'");
  return (mode == "forward") == forward ? kByN : kNone;
}
// Integers become the default dtype, and real values complex where the transform wants that.
Tensor promoted(const Args& a, const Tensor& t, bool as_complex) {
  DType type = is_integral(t.dtype(), true) ? get_default_dtype() : t.dtype();
  VESTA_CHECK_AS(TypeError, fft_types.accepts(type), a.name(), ": does not take ", dtype_name(type), " tensors");
  if (as_complex) type = complex_of(type);
  return t.dtype() == type ? t : t.to(type);
}
Tensor real_only(const Args& a, const Tensor& t) {
  VESTA_CHECK_AS(TypeError, !is_complex(t.dtype()), a.name(), ": expected a real tensor, got ", dtype_name(t.dtype()));
  return promoted(a, t, false);
}
// Cut or padded with zeros at the end, along each dim.
Tensor resized(const Args& a, Tensor t, const std::vector<int64_t>& dims, const std::vector<int64_t>& sizes) {
  for (size_t i = 0; i < dims.size(); ++i) {
    VESTA_CHECK(sizes[i] >= 1, a.name(), ": expected at least one value along dim ", dims[i], ", got ", sizes[i]);
    if (t.size(dims[i]) > sizes[i]) t = t.narrow(dims[i], 0, sizes[i]);
  }
  std::vector<int64_t> pad(size_t(2 * t.dim()), 0);
  bool any = false;
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t missing = sizes[i] - t.size(dims[i]);
    pad[size_t(2 * (t.dim() - 1 - dims[i]) + 1)] = missing;
    any |= missing > 0;
  }
  return any ? constant_pad_nd(t, pad) : t;
}
struct Line {
  int64_t dim, n;
};
// Dim and length of a transform over one dim; `half`: n is that of the result, from n / 2 + 1 frequencies.
Line line_of(const Args& a, bool half) {
  const Tensor& t = a.tensor(0);
  VESTA_CHECK(t.dim() > 0, a.name(), ": expected at least one dim");
  int64_t d = wrap_dim(a, a.integer(2), t.dim());
  int64_t n = a.has(1) ? a.integer(1) : half ? 2 * (t.size(d) - 1) : t.size(d);
  VESTA_CHECK(n >= 1, a.name(), ": expected at least one value to transform, got ", n);
  return {d, n};
}
Results c2c(const Args& a, const Tensor& t, Line l, bool forward) {
  return _fft_c2c(resized(a, t, {l.dim}, {l.n}), {l.dim}, normalization(a, 3, forward), forward);
}
Results r2c(const Args& a, const Tensor& t, Line l, bool forward, bool onesided) {
  Tensor r = _fft_r2c(resized(a, t, {l.dim}, {l.n}), {l.dim}, normalization(a, 3, forward), onesided);
  return forward ? r : r.conj();
}
Results c2r(const Args& a, Line l, bool forward) {
  Tensor t = resized(a, promoted(a, a.tensor(0), true), {l.dim}, {l.n / 2 + 1});
  return _fft_c2r(forward ? t.conj() : t, {l.dim}, normalization(a, 3, forward), l.n);
}
template <bool forward>
Results fft1(const Args& a) {
  Line l = line_of(a, false);
  Tensor t = promoted(a, a.tensor(0), false);
  return t.is_complex() ? c2c(a, t, l, forward) : r2c(a, t, l, forward, false);
}
template <bool forward>
Results rfft1(const Args& a) {
  Tensor t = real_only(a, a.tensor(0));
  return r2c(a, t, line_of(a, false), forward, true);
}
template <bool forward>
Results irfft1(const Args& a) { return c2r(a, line_of(a, true), forward); }

struct Lines {
  std::vector<int64_t> dims, sizes;
};
// Dims and sizes of a transform over several dims. `half`: the size along the last of them is that of the result.
Lines lines_of(const Args& a, bool half) {
  const Tensor& t = a.tensor(0);
  Lines l;
  if (a.has(2)) {
    l.dims = transformed(a, t.dim(), a.ints(2));
  } else {
    int64_t n = a.has(1) ? int64_t(a.ints(1).size()) : t.dim();
    VESTA_CHECK(n <= t.dim(), a.name(), ": s has ", n, " sizes, self ", t.dim(), " dims");
    for (int64_t d = t.dim() - n; d < t.dim(); ++d) l.dims.push_back(d);
  }
  if (a.has(1)) VESTA_CHECK(a.ints(1).size() == l.dims.size(), a.name(), ": s has ", a.ints(1).size(), " sizes for ", l.dims.size(), " dims");
  for (size_t i = 0; i < l.dims.size(); ++i) {
    int64_t own = t.size(l.dims[i]);
    if (half && i + 1 == l.dims.size()) own = 2 * (own - 1);
    bool given = a.has(1) && a.ints(1)[i] != -1;
    l.sizes.push_back(given ? a.ints(1)[i] : own);
    VESTA_CHECK(l.sizes.back() >= 1, a.name(), ": expected at least one value along dim ", l.dims[i], ", got ", l.sizes.back());
  }
  return l;
}
void check_some(const Args& a, const Lines& l) { VESTA_CHECK(!l.dims.empty(), a.name(), ": expected at least one dim"); }
template <bool forward>
Results fftn(const Args& a) {
  Lines l = lines_of(a, false);
  Tensor t = resized(a, promoted(a, a.tensor(0), true), l.dims, l.sizes);
  return _fft_c2c(t, l.dims, normalization(a, 3, forward), forward);
}
Results rfftn(const Args& a) {
  Tensor t = real_only(a, a.tensor(0));
  Lines l = lines_of(a, false);
  check_some(a, l);
  return _fft_r2c(resized(a, t, l.dims, l.sizes), l.dims, normalization(a, 3, true), true);
}
Results irfftn(const Args& a) {
  Lines l = lines_of(a, true);
  check_some(a, l);
  int64_t n = l.sizes.back();
  l.sizes.back() = n / 2 + 1;
  Tensor t = resized(a, promoted(a, a.tensor(0), true), l.dims, l.sizes);
  return _fft_c2r(t, l.dims, normalization(a, 3, false), n);
}
Results hfftn(const Args& a) {
  Lines l = lines_of(a, true);
  check_some(a, l);
  int64_t n = l.sizes.back(), last = l.dims.back();
  l.sizes.back() = n / 2 + 1;
  Tensor t = resized(a, promoted(a, a.tensor(0), true), l.dims, l.sizes);
  Normalization norm = normalization(a, 3, true);
  l.dims.pop_back();
  if (!l.dims.empty()) t = _fft_c2c(t, l.dims, norm, true);
  return _fft_c2r(t.conj(), {last}, norm, n);
}
Results ihfftn(const Args& a) {
  Tensor t = real_only(a, a.tensor(0));
  Lines l = lines_of(a, false);
  check_some(a, l);
  Normalization norm = normalization(a, 3, false);
  t = _fft_r2c(resized(a, t, l.dims, l.sizes), {l.dims.back()}, norm, true).conj();
  l.dims.pop_back();
  return l.dims.empty() ? t : _fft_c2c(t, l.dims, norm, false);
}

// ---- frequencies and shifts ----
Results frequencies(const Args& a, bool half) {
  int64_t n = a.integer(0);
  VESTA_CHECK(n >= 0, a.name(), ": expected n >= 0, got ", n);
  DType t = a.dtype(2, get_default_dtype());
  VESTA_CHECK_AS(TypeError, is_floating_point(t) || is_complex(t), a.name(), ": expected a floating or complex dtype, got ", dtype_name(t));
  TensorOptions o = TensorOptions(t).device(a.device(4));
  double step = 1.0 / (double(n) * a.number(1));
  if (n == 0) return half ? zeros({1}, o) * step : empty({0}, o);
  if (half) return arange(0, n / 2 + 1, o) * step;
  return cat({arange(0, (n + 1) / 2, o), arange(-(n / 2), 0, o)}, 0) * step;
}
Results shift(const Args& a, bool inverse) {
  const Tensor& t = a.tensor(0);
  std::vector<int64_t> dims, by;
  if (a.has(1)) dims = transformed(a, t.dim(), a.ints(1));
  else for (int64_t d = 0; d < t.dim(); ++d) dims.push_back(d);
  if (dims.empty()) return t.clone();
  for (int64_t d : dims) by.push_back((t.size(d) + (inverse ? 1 : 0)) / 2);
  return t.roll(by, dims);
}

using Ints = std::vector<int64_t>;
bool skip(SampleGen& s) { return !(fft_types.accepts(s.dtype()) || s.dtype() == kLong); }
bool skip_real(SampleGen& s) { return !(fft_real_types.accepts(s.dtype()) || s.dtype() == kLong); }
void line_samples(SampleGen& s) { if (!skip(s)) { s(s.t({4})); s(s.t({2, 5}), 3, -1, "ortho"); s(s.t({3, 2}), 4, 0, "forward"); s(s.t({2, 1})); s(s.t({0, 3})); } }
void real_line_samples(SampleGen& s) { if (!skip_real(s)) { s(s.t({4})); s(s.t({2, 5}), 3, -1, "ortho"); s(s.t({3, 2}), 4, 0, "forward"); s(s.t({2, 1})); s(s.t({0, 3})); } }
void half_line_samples(SampleGen& s) { if (!skip(s)) { s(s.t({3})); s(s.t({2, 3}), 5, -1, "ortho"); s(s.t({2, 2}), 4, 0, "forward"); s(s.t({2, 4}), 1); s(s.t({0, 3})); } }
void plane_samples(SampleGen& s) { if (!skip(s)) { s(s.t({2, 3})); s(s.t({2, 2, 3}), Ints{3, 2}, Ints{0, 2}, "ortho"); s(s.t({0, 2, 3})); } }
void real_plane_samples(SampleGen& s) { if (!skip_real(s)) { s(s.t({2, 3})); s(s.t({2, 2, 3}), Ints{3, 2}, Ints{0, 2}, "ortho"); s(s.t({0, 2, 3})); } }
void half_plane_samples(SampleGen& s) { if (!skip(s)) { s(s.t({2, 3})); s(s.t({2, 2, 3}), Ints{3, 5}, Ints{0, 2}, "forward"); s(s.t({0, 2, 3})); } }

constexpr OpDef table[] = {
OP("_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor",
  .forms = Out, .types = fft_real_types, .infer = infer_r2c, .kernels = {{Cpu, k_r2c}}, .vjp = vjp_r2c,
  .shard = {"fft"}, .doc = "Transform of real values over dims; the last of them one-sided or whole.",
  .samples = [](SampleGen& s) { for (bool half : {true, false}) { s(s.t({4}), Ints{0}, 0, half); s(s.t({2, 5}), Ints{0, 1}, 1, half); s(s.t({3, 2}), Ints{0}, 2, half); s(s.t({2, 3, 2}), Ints{2, 1}, 0, half); } s(s.t({0, 3}), Ints{1}, 0, true); s(s.t({2, 1}), Ints{1}, 0, true); }),
OP("_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor",
  .forms = Out, .types = fft_complex_types, .infer = infer_c2r, .kernels = {{Cpu, k_c2r}}, .vjp = vjp_c2r,
  .shard = {"fft"}, .doc = "Inverse transform of a one-sided spectrum to last_dim_size real values.",
  .samples = [](SampleGen& s) { s(s.t({3}), Ints{0}, 0, 4); s(s.t({2, 3}), Ints{0, 1}, 1, 5); s(s.t({2, 2}), Ints{0}, 2, 3); s(s.t({2, 1}), Ints{1}, 0, 1); s(s.t({2, 2, 2}), Ints{2, 0}, 0, 2); s(s.t({0, 3}), Ints{1}, 0, 4); }),
OP("_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor",
  .forms = Out, .types = fft_complex_types, .infer = infer_c2c, .kernels = {{Cpu, k_c2c}},
  .vjp = [](const Grad& g) { return grads(G(0) { return _fft_c2c(g.dy(), g.ints(1), g.integer(2), !g.flag(3)); }); },
  .shard = {"fft"}, .doc = "Complex transform over dims, forward or inverse, scaled by 1, 1/sqrt(n) or 1/n.",
  .samples = [](SampleGen& s) { for (bool forward : {true, false}) { s(s.t({4}), Ints{0}, 0, forward); s(s.t({2, 5}), Ints{0, 1}, 1, forward); s(s.t({3, 2}), Ints{0}, 2, forward); } s(s.t({3}), Ints{}, 0, true); s(s.t({0, 3}), Ints{1}, 0, true); s(s.t({53}), Ints{0}, 0, true); }),
OP("fft_fft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = any_types, .decompose = fft1<true>, .shard = {"decomp→fft"}, .doc = "Discrete Fourier transform along a dim, of n values (cut or padded with zeros).", .samples = line_samples),
OP("fft_ifft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = any_types, .decompose = fft1<false>, .shard = {"decomp→fft"}, .doc = "Inverse of fft_fft.", .samples = line_samples),
OP("fft_rfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = any_types, .decompose = rfft1<true>, .shard = {"decomp→fft"}, .doc = "The n / 2 + 1 first frequencies of real values.", .samples = real_line_samples),
OP("fft_irfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = any_types, .decompose = irfft1<false>, .shard = {"decomp→fft"}, .doc = "Inverse of fft_rfft: n real values, 2 (size - 1) where n is left out.", .samples = half_line_samples),
OP("fft_hfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = any_types, .decompose = irfft1<true>, .shard = {"decomp→fft"}, .doc = "Real transform of half a Hermitian signal.", .samples = half_line_samples),
OP("fft_ihfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = any_types, .decompose = rfft1<false>, .shard = {"decomp→fft"}, .doc = "Inverse of fft_hfft.", .samples = real_line_samples),
OP("fft_fft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = any_types, .decompose = fftn<true>, .shard = {"decomp→fft"}, .doc = "fft_fftn over two dims.", .samples = plane_samples),
OP("fft_ifft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = any_types, .decompose = fftn<false>, .shard = {"decomp→fft"}, .doc = "fft_ifftn over two dims.", .samples = plane_samples),
OP("fft_rfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = any_types, .decompose = rfftn, .shard = {"decomp→fft"}, .doc = "fft_rfftn over two dims.", .samples = real_plane_samples),
OP("fft_irfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = any_types, .decompose = irfftn, .shard = {"decomp→fft"}, .doc = "fft_irfftn over two dims.", .samples = half_plane_samples),
OP("fft_hfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = any_types, .decompose = hfftn, .shard = {"decomp→fft"}, .doc = "fft_hfftn over two dims.", .samples = half_plane_samples),
OP("fft_ihfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = any_types, .decompose = ihfftn, .shard = {"decomp→fft"}, .doc = "fft_ihfftn over two dims.", .samples = real_plane_samples),
OP("fft_fftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = any_types, .decompose = fftn<true>, .shard = {"decomp→fft"}, .doc = "Discrete Fourier transform over dims (all, or the last of s), of s values.", .samples = plane_samples),
OP("fft_ifftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = any_types, .decompose = fftn<false>, .shard = {"decomp→fft"}, .doc = "Inverse of fft_fftn.", .samples = plane_samples),
OP("fft_rfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = any_types, .decompose = rfftn, .shard = {"decomp→fft"}, .doc = "fft_fftn of real values, the last dim one-sided.", .samples = real_plane_samples),
OP("fft_irfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = any_types, .decompose = irfftn, .shard = {"decomp→fft"}, .doc = "Inverse of fft_rfftn.", .samples = half_plane_samples),
OP("fft_hfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = any_types, .decompose = hfftn, .shard = {"decomp→fft"}, .doc = "Real transform over dims of half a Hermitian signal.", .samples = half_plane_samples),
OP("fft_ihfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = any_types, .decompose = ihfftn, .shard = {"decomp→fft"}, .doc = "Inverse of fft_hfftn.", .samples = real_plane_samples),
OP("fft_fftfreq(int n, float d=1.0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .forms = Out, .types = any_types, .decompose = [](const Args& a) { return frequencies(a, false); }, .non_differentiable = true,
  .shard = {"create"}, .doc = "Frequencies of fft_fft's n results for samples d apart.", .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { s(4, 0.5, s.dtype()); s(5, 1.0, s.dtype()); s(0, 1.0, s.dtype()); } }),
OP("fft_rfftfreq(int n, float d=1.0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .forms = Out, .types = any_types, .decompose = [](const Args& a) { return frequencies(a, true); }, .non_differentiable = true,
  .shard = {"create"}, .doc = "Frequencies of fft_rfft's results for n samples d apart.", .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { s(4, 0.5, s.dtype()); s(5, 1.0, s.dtype()); } }),
OP("fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) { return shift(a, false); }, .shard = {"decomp→fft"}, .doc = "Moves frequency 0 to the middle.",
  .samples = [](SampleGen& s) { s(s.t({4})); s(s.t({3, 2}), Ints{0}); s(s.t({})); s(s.t({0, 3})); }),
OP("fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) { return shift(a, true); }, .shard = {"decomp→fft"}, .doc = "Inverse of fft_fftshift.",
  .samples = [](SampleGen& s) { s(s.t({4})); s(s.t({3, 2}), Ints{0}); s(s.t({})); s(s.t({0, 3})); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(fft, table)
