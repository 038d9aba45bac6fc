// Interpolation of sequences, images and volumes: nearest, nearest-exact, linear, bicubic and the antialiased filters.
// Each dim has windows with weights, made here from PyTorch's formulas for source positions; the kernel is the windowed
// sum of kernels/cpu/resample.h, and gradients are its transpose. Positions are computed in float32 (float64 for
// float64 tensors; always float32 for nearest), as PyTorch does, so that the same neighbours are chosen.
#include <cmath>
#include <numbers>

#include "kernels/cpu/resample.h"
#include "ops/spatial.h"

namespace vesta {
namespace {

using namespace op_block;

enum class Mode { Nearest, NearestExact, Linear, Cubic, LinearAA, CubicAA, LanczosAA };
constexpr bool is_nearest(Mode m) { return m == Mode::Nearest || m == Mode::NearestExact; }
constexpr bool is_antialiased(Mode m) { return m >= Mode::LinearAA; }
constexpr int64_t kMostWeights = int64_t(1) << 27;  // of one dim: bounds memory where a scale has nothing to do with the sizes

constexpr TypeRule nearest_types{types::kFloatMask | types::bit(kUInt8), Promote::Same};

// Input elements an output step. A scale given by the caller (> 0) is used instead of the sizes' ratio.
template <class R>
R step_of(int64_t in, int64_t out, bool align_corners, double scale) {
  if (align_corners) return out > 1 ? R(in - 1) / R(out - 1) : R(0);
  return scale > 0 ? R(1.0 / scale) : R(in) / R(out);
}
int64_t clamp_index(double v, int64_t in) {
  if (!(v > 0)) return 0;
  return v >= double(in - 1) ? in - 1 : int64_t(v);
}

// Adds windows whose elements are clamped to the input: weights of equal elements add up.
template <class R>
void add_clamped(cpu::Taps& taps, int64_t first, const R* w, int n, int64_t in) {
  double merged[4] = {};
  int64_t from = std::min(std::max<int64_t>(first, 0), in - 1), to = std::min(std::max<int64_t>(first + n - 1, 0), in - 1);
  for (int j = 0; j < n; ++j) merged[std::min(std::max<int64_t>(first + j, 0), in - 1) - from] += double(w[j]);
  taps.add(from, to + 1, merged);
}
// Cubic convolution with a = -0.75 (Keys, 1981) around an element at distance t in [0, 1).
template <class R>
void cubic_weights(R t, R* w) {
  const R a = R(-0.75);
  auto near = [&](R x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  auto far = [&](R x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  w[0] = far(t + 1), w[1] = near(t), w[2] = near(1 - t), w[3] = far(2 - t);
}
// Antialiasing filters: triangle, cubic with a = -0.5, Lanczos with 3 lobes; support in elements of the coarser side.
double filter_value(Mode m, double x) {
  x = std::fabs(x);
  switch (m) {
    case Mode::LinearAA: return x < 1 ? 1 - x : 0;
    case Mode::CubicAA: {
      const double a = -0.5;
      if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
      return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
    }
    default: {
      if (x >= 3) return 0;
      if (x == 0) return 1;
      const double p = std::numbers::pi * x;
      return std::sin(p) / p * std::sin(p / 3) / (p / 3);
    }
  }
}
double filter_support(Mode m) { return m == Mode::LinearAA ? 1 : m == Mode::CubicAA ? 2 : 3; }

template <class R>
cpu::Taps taps_for(const Args& a, Mode mode, int64_t in, int64_t out, bool align_corners, double scale) {
  cpu::Taps t;
  // Equal sizes copy, whatever the scale, in the modes where PyTorch does so.
  const bool copies = mode == Mode::Nearest || mode == Mode::Linear || is_antialiased(mode);
  if (in == out && (copies || (mode == Mode::Cubic && (align_corners || !(scale > 0))))) {
    for (int64_t o = 0; o < out; ++o) t.add(o, o + 1);
    return t;
  }
  if (is_nearest(mode)) {
    float step = step_of<float>(in, out, false, scale);
    for (int64_t o = 0; o < out; ++o) {
      int64_t i = clamp_index(std::floor((mode == Mode::Nearest ? float(o) : float(o) + 0.5f) * step), in);
      t.add(i, i + 1);
    }
    return t;
  }
  if (is_antialiased(mode)) {
    double step = double(step_of<R>(in, out, align_corners, scale));
    double widen = step >= 1 ? step : 1, support = filter_support(mode) * widen;
    std::vector<double> w;
    for (int64_t o = 0; o < out; ++o) {
      double centre = step * (double(o) + 0.5);
      int64_t from = clamp_index(centre - support + 0.5, in);
      int64_t to = centre + support + 0.5 >= double(in) ? in : clamp_index(centre + support + 0.5, in);
      to = std::max(to, from + 1);
      w.clear();
      double total = 0;
      for (int64_t j = from; j < to; ++j) {
        w.push_back(filter_value(mode, (double(j) - centre + 0.5) / widen));
        total += w.back();
      }
      for (auto& v : w) v = total != 0 ? v / total : 0;
      t.add(from, to, w.data());
      VESTA_CHECK(int64_t(t.weight.size()) <= kMostWeights, a.name(), ": this scale factor would need more than 2^27 filter weights");
    }
    return t;
  }
  const R step = step_of<R>(in, out, align_corners, scale);
  for (int64_t o = 0; o < out; ++o) {
    R source = align_corners ? step * R(o) : step * (R(o) + R(0.5)) - R(0.5);
    if (mode == Mode::Linear) {
      if (!(source > 0)) source = 0;
      int64_t i = clamp_index(double(source), in);
      R part = std::min(std::max(source - R(i), R(0)), R(1));
      R w[2] = {1 - part, part};
      add_clamped(t, i, w, 2, in);
    } else {
      // Below the input floor is negative; further than any window reaches it makes no difference.
      double below = std::floor(double(source));
      int64_t i = below < -4 ? -4 : below >= double(in - 1) ? in - 1 : int64_t(below);
      if (below != below) i = 0;
      R part = std::min(std::max(source - R(i), R(0)), R(1)), w[4];
      cubic_weights(part, w);
      add_clamped(t, i - 1, w, 4, in);
    }
  }
  return t;
}

// Where an op's arguments are: output_size, then (not for nearest) align_corners, then one scale a dim.
struct UpsampleArgs {
  int64_t out[3];
  bool align_corners;
  double scale[3];  // 0: none
};
UpsampleArgs upsample_args(const Args& a, Mode mode, int spatial, int size_at, int after) {
  UpsampleArgs u{{1, 1, 1}, false, {0, 0, 0}};
  VESTA_CHECK(int(a.ints(size_at).size()) == spatial, a.name(), ": expected ", spatial, " values for output_size, got ", a.ints(size_at).size());
  read_window(a, size_at, spatial, 1, 1, u.out);
  int at = after;
  if (!is_nearest(mode)) u.align_corners = a.flag(at++);
  for (int d = 0; d < spatial; ++d)
    if (a.has(at + d)) u.scale[3 - spatial + d] = a.number(at + d);
  return u;
}
cpu::Resample windows(const Args& a, Mode mode, const UpsampleArgs& u, const int64_t in[3], DType t) {
  cpu::Resample r;
  for (int d = 0; d < 3; ++d) {
    r.in[d] = in[d];
    r.out[d] = u.out[d];
    if (in[d] == 1 && u.out[d] == 1) r.taps[d].add(0, 1);
    else r.taps[d] = t == kDouble ? taps_for<double>(a, mode, in[d], u.out[d], u.align_corners, u.scale[d]) : taps_for<float>(a, mode, in[d], u.out[d], u.align_corners, u.scale[d]);
  }
  return r;
}

template <Mode kMode, int kSpatial>
void infer_up(InferCtx& c) {
  check_spatial(c, 0, kSpatial, true);
  if (!is_nearest(kMode)) VESTA_CHECK_AS(TypeError, is_floating_point(c.dtype_of(0)), c.name(), ": expected a floating point tensor, got ", dtype_name(c.dtype_of(0)));
  UpsampleArgs u = upsample_args(c, kMode, kSpatial, 1, 2);
  SymInt sizes[3];
  for (int d = 0; d < kSpatial; ++d) sizes[d] = u.out[3 - kSpatial + d];
  out_spatial(c, 0, 0, sizes, kSpatial, c.dtype_of(0));
}
template <Mode kMode, int kSpatial>
void k_up(const KernelCtx& k) {
  if (k.out().numel() == 0) return;  // sizes of an empty result are not bounded by memory
  const Tensor& x = k.tensor(0);
  bool last = is_channels_last(x, kSpatial);
  UpsampleArgs u = upsample_args(k, kMode, kSpatial, 1, 2);
  if (is_nearest(kMode)) {
    // Copies elements of any type.
    Tensor from = spatial_layout(x, kSpatial, last);
    int64_t in[3] = {1, 1, 1};
    for (int d = 0; d < kSpatial; ++d) in[3 - kSpatial + d] = x.size(2 + d);
    cpu::Resample r = windows(k, kMode, u, in, kFloat);
    r.outer = last ? x.size(0) : x.size(0) * x.size(1);
    r.inner = last ? x.size(1) : 1;
    return cpu::resample_pick(x.element_size(), from.data_ptr(), k.out().data_ptr(), r);
  }
  SpatialInput from = spatial_input(k, x, kSpatial, last);
  cpu::Resample r = windows(k, kMode, u, from.size, x.dtype());
  r.outer = from.outer, r.inner = from.inner;
  SpatialOutput y(k, k.out());
  cpu::resample(from.type, from.data, y.data(), r);
  y.finish();
}
// grad_output, output_size, input_size, (align_corners), scales.
template <Mode kMode, int kSpatial>
void infer_up_backward(InferCtx& c) {
  check_spatial(c, 0, kSpatial, true);
  VESTA_CHECK_AS(TypeError, is_floating_point(c.dtype_of(0)), c.name(), ": expected a floating point tensor, got ", dtype_name(c.dtype_of(0)));
  UpsampleArgs u = upsample_args(c, kMode, kSpatial, 1, 3);
  IntArrayRef in = c.ints(2);
  VESTA_CHECK(int(in.size()) == kSpatial + 2, c.name(), ": expected ", kSpatial + 2, " values for input_size, got ", in.size());
  SymInt sizes[3];
  for (int d = 0; d < 2; ++d) VESTA_CHECK(c.sizes(0)[size_t(d)] == SymInt(in[size_t(d)]), c.name(), ": grad_output and input_size differ in batch or channels");
  for (int d = 0; d < kSpatial; ++d) {
    VESTA_CHECK(c.sizes(0)[size_t(2 + d)] == SymInt(u.out[3 - kSpatial + d]), c.name(), ": grad_output does not have output_size");
    VESTA_CHECK(in[size_t(2 + d)] > 0 && in[size_t(2 + d)] < int64_t(1) << 31, c.name(), ": expected input_size in [1, 2^31), got ", in[size_t(2 + d)]);
    sizes[d] = in[size_t(2 + d)];
  }
  out_spatial(c, 0, 0, sizes, kSpatial, c.dtype_of(0));
}
template <Mode kMode, int kSpatial>
void k_up_backward(const KernelCtx& k) {
  if (k.out().numel() == 0) return;
  const Tensor& dy = k.tensor(0);
  UpsampleArgs u = upsample_args(k, kMode, kSpatial, 1, 3);
  int64_t in[3] = {1, 1, 1};
  for (int d = 0; d < kSpatial; ++d) in[3 - kSpatial + d] = k.ints(2)[size_t(2 + d)];
  SpatialInput from = spatial_input(k, dy, kSpatial, is_channels_last(dy, kSpatial));
  cpu::Resample r = windows(k, kMode, u, in, dy.dtype());
  for (int d = 0; d < 3; ++d) {
    r.taps[d] = r.taps[d].transposed(in[d]);
    std::swap(r.in[d], r.out[d]);
  }
  r.outer = from.outer, r.inner = from.inner;
  SpatialOutput dx(k, k.out());
  cpu::resample(from.type, from.data, dx.data(), r);
  dx.finish();
}

std::optional<double> number_at(const Args& a, int i) { return a.has(i) ? std::optional<double>(a.number(i)) : std::nullopt; }

// ---- .vec forms: output_size or scale_factors ----
struct VecArgs {
  std::vector<int64_t> size;
  std::optional<double> scale[3];
};
VecArgs vec_args(const Args& a, int spatial, int scale_at) {
  const Tensor& x = a.tensor(0);
  VESTA_CHECK(x.dim() == spatial + 2, a.name(), ": expected input with ", spatial + 2, " dims, got ", x.dim());
  VESTA_CHECK(a.has(1) != a.has(scale_at), a.name(), ": expected either output_size or scale_factors");
  VecArgs v;
  if (a.has(1)) {
    v.size = a.ints(1).vec();
    return v;
  }
  const Value& scales = a.value(scale_at);
  VESTA_CHECK(int(scales.length) == spatial, a.name(), ": expected ", spatial, " scale factors, got ", scales.length);
  for (int d = 0; d < spatial; ++d) {
    double s = static_cast<const double*>(scales.ptr)[d], size = double(x.size(2 + d)) * s;
    VESTA_CHECK(size >= 1 && size < 2147483648.0, a.name(), ": scale factor ", s, " gives no size in [1, 2^31)");
    v.scale[d] = s;
    v.size.push_back(int64_t(size));
  }
  return v;
}

using Ints = std::vector<int64_t>;

constexpr OpDef table[] = {
OP("upsample_nearest1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor",
  .forms = Out, .types = nearest_types, .infer = infer_up<Mode::Nearest, 1>, .kernels = {{Cpu, k_up<Mode::Nearest, 1>}},
  .vjp = [](const Grad& g) { return grads(G(0) { return upsample_nearest1d_backward(g.dy(), g.ints(1), g.sizes(0), number_at(g, 2)); }); },
  .shard = {"nc-lin"}, .doc = "Nearest neighbours: element floor(o * in / out), of a sequence.",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 5}), Ints{8}); s(s.t({1, 2, 5}), Ints{3}, 1.7); s(s.t({0, 2, 5}), Ints{8}); }),
OP("upsample_nearest1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, float? scales=None) -> Tensor",
  .forms = Out, .types = nearest_types, .infer = infer_up_backward<Mode::Nearest, 1>, .kernels = {{Cpu, k_up_backward<Mode::Nearest, 1>}},
  .vjp = [](const Grad& g) { return grads(G(0) { return upsample_nearest1d(g.dy(), g.ints(1), number_at(g, 3)); }); },
  .shard = {"nc-lin"}, .doc = "Gradient of upsample_nearest1d.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { s(s.t({1, 2, 8}), Ints{8}, Ints{1, 2, 5}); s(s.t({1, 2, 3}), Ints{3}, Ints{1, 2, 5}, 0.8); } }),
OP("upsample_nearest1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
  .forms = Out, .types = nearest_types,
  .decompose = [](const Args& a) -> Results { VecArgs v = vec_args(a, 1, 2); return upsample_nearest1d(a.tensor(0), IntArrayRef(v.size), v.scale[0]); },
  .shard = {"nc-lin"}, .doc = "upsample_nearest1d to output_size, or by scale_factors.",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 5}), Ints{8}, std::nullopt); s(s.t({1, 2, 5}), std::nullopt, std::vector<double>{1.6}); }),
OP("_upsample_nearest_exact1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor",
  .forms = Out, .types = nearest_types, .infer = infer_up<Mode::NearestExact, 1>, .kernels = {{Cpu, k_up<Mode::NearestExact, 1>}},
  .vjp = [](const Grad& g) { return grads(G(0) { return _upsample_nearest_exact1d_backward(g.dy(), g.ints(1), g.sizes(0), number_at(g, 2)); }); },
  .shard = {"nc-lin"}, .doc = "Nearest neighbours of pixel centres, of a sequence.",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 5}), Ints{8}); s(s.t({1, 2, 5}), Ints{3}, 1.7); s(s.t({0, 2, 5}), Ints{8}); }),
OP("_upsample_nearest_exact1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, float? scales=None) -> Tensor",
  .forms = Out, .types = nearest_types, .infer = infer_up_backward<Mode::NearestExact, 1>, .kernels = {{Cpu, k_up_backward<Mode::NearestExact, 1>}},
  .vjp = [](const Grad& g) { return grads(G(0) { return _upsample_nearest_exact1d(g.dy(), g.ints(1), number_at(g, 3)); }); },
  .shard = {"nc-lin"}, .doc = "Gradient of _upsample_nearest_exact1d.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { s(s.t({1, 2, 8}), Ints{8}, Ints{1, 2, 5}); s(s.t({1, 2, 3}), Ints{3}, Ints{1, 2, 5}, 0.8); } }),
OP("_upsample_nearest_exact1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
  .forms = Out, .types = nearest_types,
  .decompose = [](const Args& a) -> Results { VecArgs v = vec_args(a, 1, 2); return _upsample_nearest_exact1d(a.tensor(0), IntArrayRef(v.size), v.scale[0]); },
  .shard = {"nc-lin"}, .doc = "_upsample_nearest_exact1d to output_size, or by scale_factors.",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 5}), Ints{8}, std::nullopt); s(s.t({1, 2, 5}), std::nullopt, std::vector<double>{1.6}); }),
OP("upsample_linear1d(Tensor self, SymInt[1] output_size, bool align_corners, float? scales=None) -> Tensor",
  .forms = Out, .types = same_float, .infer = infer_up<Mode::Linear, 1>, .kernels = {{Cpu, k_up<Mode::Linear, 1>}},
  .vjp = [](const Grad& g) { return grads(G(0) { return upsample_linear1d_backward(g.dy(), g.ints(1), g.sizes(0), g.flag(2), number_at(g, 3)); }); },
  .shard = {"nc-lin"}, .doc = "Linear interpolation, of a sequence.",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 5}), Ints{8}, false); s(s.t({1, 2, 5}), Ints{8}, true); s(s.t({1, 2, 5}), Ints{3}, false, 1.7); s(s.t({0, 2, 5}), Ints{8}, false); }),
OP("upsample_linear1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, bool align_corners, float? scales=None) -> Tensor",
  .forms = Out, .types = same_float, .infer = infer_up_backward<Mode::Linear, 1>, .kernels = {{Cpu, k_up_backward<Mode::Linear, 1>}},
  .vjp = [](const Grad& g) { return grads(G(0) { return upsample_linear1d(g.dy(), g.ints(1), g.flag(3), number_at(g, 4)); }); },
  .shard = {"nc-lin"}, .doc = "Gradient of upsample_linear1d.",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 8}), Ints{8}, Ints{1, 2, 5}, false); s(s.t({1, 2, 8}), Ints{8}, Ints{1, 2, 5}, true); s(s.t({1, 2, 3}), Ints{3}, Ints{1, 2, 5}, false, 0.8); }),
OP("upsample_linear1d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
  .forms = Out, .types = same_float,
  .decompose = [](const Args& a) -> Results { VecArgs v = vec_args(a, 1, 3); return upsample_linear1d(a.tensor(0), IntArrayRef(v.size), a.flag(2), v.scale[0]); },
  .shard = {"nc-lin"}, .doc = "upsample_linear1d to output_size, or by scale_factors.",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 5}), Ints{8}, true, std::nullopt); s(s.t({1, 2, 5}), std::nullopt, false, std::vector<double>{1.6}); }),
OP("upsample_nearest2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor",
  .forms = Out, .types = nearest_types, .infer = infer_up<Mode::Nearest, 2>, .kernels = {{Cpu, k_up<Mode::Nearest, 2>}},
  .vjp = [](const Grad& g) { return grads(G(0) { return upsample_nearest2d_backward(g.dy(), g.ints(1), g.sizes(0), number_at(g, 2), number_at(g, 3)); }); },
  .shard = {"nc-lin"}, .doc = "Nearest neighbours: element floor(o * in / out), of an image.",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 3, 4}), Ints{5, 2}); s(s.t({1, 2, 3, 4}), Ints{3, 4}, 1.7, 1.7); s(s.t({0, 2, 3, 4}), Ints{5, 2}); }),
OP("upsample_nearest2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, float? scales_h=None, float? scales_w=None) -> Tensor",
  .forms = Out, .types = nearest_types, .infer = infer_up_backward<Mode::Nearest, 2>, .kernels = {{Cpu, k_up_backward<Mode::Nearest, 2>}},
  .vjp = [](const Grad& g) { return grads(G(0) { return upsample_nearest2d(g.dy(), g.ints(1), number_at(g, 3), number_at(g, 4)); }); },
  .shard = {"nc-lin"}, .doc = "Gradient of upsample_nearest2d.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { s(s.t({1, 2, 5, 2}), Ints{5, 2}, Ints{1, 2, 3, 4}); s(s.t({1, 2, 3, 4}), Ints{3, 4}, Ints{1, 2, 3, 4}, 0.8, 0.8); } }),
OP("upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
  .forms = Out, .types = nearest_types,
  .decompose = [](const Args& a) -> Results { VecArgs v = vec_args(a, 2, 2); return upsample_nearest2d(a.tensor(0), IntArrayRef(v.size), v.scale[0], v.scale[1]); },
  .shard = {"nc-lin"}, .doc = "upsample_nearest2d to output_size, or by scale_factors.",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 3, 4}), Ints{5, 2}, std::nullopt); s(s.t({1, 2, 3, 4}), std::nullopt, std::vector<double>{1.6, 1.6}); }),
OP("_upsample_nearest_exact2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor",
  .forms = Out, .types = nearest_types, .infer = infer_up<Mode::NearestExact, 2>, .kernels = {{Cpu, k_up<Mode::NearestExact, 2>}},
  .vjp = [](const Grad& g) { return grads(G(0) { return _upsample_nearest_exact2d_backward(g.dy(), g.ints(1), g.sizes(0), number_at(g, 2), number_at(g, 3)); }); },
  .shard = {"nc-lin"}, .doc = "Nearest neighbours of pixel centres, of an image.",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 3, 4}), Ints{5, 2}); s(s.t({1, 2, 3, 4}), Ints{3, 4}, 1.7, 1.7); s(s.t({0, 2, 3, 4}), Ints{5, 2}); }),
OP("_upsample_nearest_exact2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, float? scales_h=None, float? scales_w=None) -> Tensor",
  .forms = Out, .types = nearest_types, .infer = infer_up_backward<Mode::NearestExact, 2>, .kernels = {{Cpu, k_up_backward<Mode::NearestExact, 2>}},
  .vjp = [](const Grad& g) { return grads(G(0) { return _upsample_nearest_exact2d(g.dy(), g.ints(1), number_at(g, 3), number_at(g, 4)); }); },
  .shard = {"nc-lin"}, .doc = "Gradient of _upsample_nearest_exact2d.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { s(s.t({1, 2, 5, 2}), Ints{5, 2}, Ints{1, 2, 3, 4}); s(s.t({1, 2, 3, 4}), Ints{3, 4}, Ints{1, 2, 3, 4}, 0.8, 0.8); } }),
OP("_upsample_nearest_exact2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
  .forms = Out, .types = nearest_types,
  .decompose = [](const Args& a) -> Results { VecArgs v = vec_args(a, 2, 2); return _upsample_nearest_exact2d(a.tensor(0), IntArrayRef(v.size), v.scale[0], v.scale[1]); },
  .shard = {"nc-lin"}, .doc = "_upsample_nearest_exact2d to output_size, or by scale_factors.",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 3, 4}), Ints{5, 2}, std::nullopt); s(s.t({1, 2, 3, 4}), std::nullopt, std::vector<double>{1.6, 1.6}); }),
OP("upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
  .forms = Out, .types = same_float, .infer = infer_up<Mode::Linear, 2>, .kernels = {{Cpu, k_up<Mode::Linear, 2>}},
  .vjp = [](const Grad& g) { return grads(G(0) { return upsample_bilinear2d_backward(g.dy(), g.ints(1), g.sizes(0), g.flag(2), number_at(g, 3), number_at(g, 4)); }); },
  .shard = {"nc-lin"}, .doc = "Linear interpolation, of an image.",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 3, 4}), Ints{5, 2}, false); s(s.t({1, 2, 3, 4}), Ints{5, 2}, true); s(s.t({1, 2, 3, 4}), Ints{3, 4}, false, 1.7, 1.7); s(s.t({0, 2, 3, 4}), Ints{5, 2}, false); }),
OP("upsample_bilinear2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
  .forms = Out, .types = same_float, .infer = infer_up_backward<Mode::Linear, 2>, .kernels = {{Cpu, k_up_backward<Mode::Linear, 2>}},
  .vjp = [](const Grad& g) { return grads(G(0) { return upsample_bilinear2d(g.dy(), g.ints(1), g.flag(3), number_at(g, 4), number_at(g, 5)); }); },
  .shard = {"nc-lin"}, .doc = "Gradient of upsample_bilinear2d.",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 5, 2}), Ints{5, 2}, Ints{1, 2, 3, 4}, false); s(s.t({1, 2, 5, 2}), Ints{5, 2}, Ints{1, 2, 3, 4}, true); s(s.t({1, 2, 3, 4}), Ints{3, 4}, Ints{1, 2, 3, 4}, false, 0.8, 0.8); }),
OP("upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
  .forms = Out, .types = same_float,
  .decompose = [](const Args& a) -> Results { VecArgs v = vec_args(a, 2, 3); return upsample_bilinear2d(a.tensor(0), IntArrayRef(v.size), a.flag(2), v.scale[0], v.scale[1]); },
  .shard = {"nc-lin"}, .doc = "upsample_bilinear2d to output_size, or by scale_factors.",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 3, 4}), Ints{5, 2}, true, std::nullopt); s(s.t({1, 2, 3, 4}), std::nullopt, false, std::vector<double>{1.6, 1.6}); }),
OP("upsample_bicubic2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
  .forms = Out, .types = same_float, .infer = infer_up<Mode::Cubic, 2>, .kernels = {{Cpu, k_up<Mode::Cubic, 2>}},
  .vjp = [](const Grad& g) { return grads(G(0) { return upsample_bicubic2d_backward(g.dy(), g.ints(1), g.sizes(0), g.flag(2), number_at(g, 3), number_at(g, 4)); }); },
  .shard = {"nc-lin"}, .doc = "Bicubic interpolation (a = -0.75), of an image.",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 3, 4}), Ints{5, 2}, false); s(s.t({1, 2, 3, 4}), Ints{5, 2}, true); s(s.t({1, 2, 3, 4}), Ints{3, 4}, false, 1.7, 1.7); s(s.t({0, 2, 3, 4}), Ints{5, 2}, false); }),
OP("upsample_bicubic2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
  .forms = Out, .types = same_float, .infer = infer_up_backward<Mode::Cubic, 2>, .kernels = {{Cpu, k_up_backward<Mode::Cubic, 2>}},
  .vjp = [](const Grad& g) { return grads(G(0) { return upsample_bicubic2d(g.dy(), g.ints(1), g.flag(3), number_at(g, 4), number_at(g, 5)); }); },
  .shard = {"nc-lin"}, .doc = "Gradient of upsample_bicubic2d.",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 5, 2}), Ints{5, 2}, Ints{1, 2, 3, 4}, false); s(s.t({1, 2, 5, 2}), Ints{5, 2}, Ints{1, 2, 3, 4}, true); s(s.t({1, 2, 3, 4}), Ints{3, 4}, Ints{1, 2, 3, 4}, false, 0.8, 0.8); }),
OP("upsample_bicubic2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
  .forms = Out, .types = same_float,
  .decompose = [](const Args& a) -> Results { VecArgs v = vec_args(a, 2, 3); return upsample_bicubic2d(a.tensor(0), IntArrayRef(v.size), a.flag(2), v.scale[0], v.scale[1]); },
  .shard = {"nc-lin"}, .doc = "upsample_bicubic2d to output_size, or by scale_factors.",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 3, 4}), Ints{5, 2}, true, std::nullopt); s(s.t({1, 2, 3, 4}), std::nullopt, false, std::vector<double>{1.6, 1.6}); }),
OP("_upsample_bilinear2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
  .forms = Out, .types = same_float, .infer = infer_up<Mode::LinearAA, 2>, .kernels = {{Cpu, k_up<Mode::LinearAA, 2>}},
  .vjp = [](const Grad& g) { return grads(G(0) { return _upsample_bilinear2d_aa_backward(g.dy(), g.ints(1), g.sizes(0), g.flag(2), number_at(g, 3), number_at(g, 4)); }); },
  .shard = {"nc-lin"}, .doc = "Linear interpolation that widens its filter when it shrinks the image, of an image.",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 3, 4}), Ints{5, 2}, false); s(s.t({1, 2, 3, 4}), Ints{5, 2}, true); s(s.t({1, 2, 3, 4}), Ints{3, 4}, false, 1.7, 1.7); s(s.t({0, 2, 3, 4}), Ints{5, 2}, false); }),
OP("_upsample_bilinear2d_aa_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
  .forms = Out, .types = same_float, .infer = infer_up_backward<Mode::LinearAA, 2>, .kernels = {{Cpu, k_up_backward<Mode::LinearAA, 2>}},
  .vjp = [](const Grad& g) { return grads(G(0) { return _upsample_bilinear2d_aa(g.dy(), g.ints(1), g.flag(3), number_at(g, 4), number_at(g, 5)); }); },
  .shard = {"nc-lin"}, .doc = "Gradient of _upsample_bilinear2d_aa.",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 5, 2}), Ints{5, 2}, Ints{1, 2, 3, 4}, false); s(s.t({1, 2, 5, 2}), Ints{5, 2}, Ints{1, 2, 3, 4}, true); s(s.t({1, 2, 3, 4}), Ints{3, 4}, Ints{1, 2, 3, 4}, false, 0.8, 0.8); }),
OP("_upsample_bilinear2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
  .forms = Out, .types = same_float,
  .decompose = [](const Args& a) -> Results { VecArgs v = vec_args(a, 2, 3); return _upsample_bilinear2d_aa(a.tensor(0), IntArrayRef(v.size), a.flag(2), v.scale[0], v.scale[1]); },
  .shard = {"nc-lin"}, .doc = "_upsample_bilinear2d_aa to output_size, or by scale_factors.",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 3, 4}), Ints{5, 2}, true, std::nullopt); s(s.t({1, 2, 3, 4}), std::nullopt, false, std::vector<double>{1.6, 1.6}); }),
OP("_upsample_bicubic2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
  .forms = Out, .types = same_float, .infer = infer_up<Mode::CubicAA, 2>, .kernels = {{Cpu, k_up<Mode::CubicAA, 2>}},
  .vjp = [](const Grad& g) { return grads(G(0) { return _upsample_bicubic2d_aa_backward(g.dy(), g.ints(1), g.sizes(0), g.flag(2), number_at(g, 3), number_at(g, 4)); }); },
  .shard = {"nc-lin"}, .doc = "Bicubic interpolation (a = -0.5) that widens its filter when it shrinks the image, of an image.",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 3, 4}), Ints{5, 2}, false); s(s.t({1, 2, 3, 4}), Ints{5, 2}, true); s(s.t({1, 2, 3, 4}), Ints{3, 4}, false, 1.7, 1.7); s(s.t({0, 2, 3, 4}), Ints{5, 2}, false); }),
OP("_upsample_bicubic2d_aa_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
  .forms = Out, .types = same_float, .infer = infer_up_backward<Mode::CubicAA, 2>, .kernels = {{Cpu, k_up_backward<Mode::CubicAA, 2>}},
  .vjp = [](const Grad& g) { return grads(G(0) { return _upsample_bicubic2d_aa(g.dy(), g.ints(1), g.flag(3), number_at(g, 4), number_at(g, 5)); }); },
  .shard = {"nc-lin"}, .doc = "Gradient of _upsample_bicubic2d_aa.",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 5, 2}), Ints{5, 2}, Ints{1, 2, 3, 4}, false); s(s.t({1, 2, 5, 2}), Ints{5, 2}, Ints{1, 2, 3, 4}, true); s(s.t({1, 2, 3, 4}), Ints{3, 4}, Ints{1, 2, 3, 4}, false, 0.8, 0.8); }),
OP("_upsample_bicubic2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
  .forms = Out, .types = same_float,
  .decompose = [](const Args& a) -> Results { VecArgs v = vec_args(a, 2, 3); return _upsample_bicubic2d_aa(a.tensor(0), IntArrayRef(v.size), a.flag(2), v.scale[0], v.scale[1]); },
  .shard = {"nc-lin"}, .doc = "_upsample_bicubic2d_aa to output_size, or by scale_factors.",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 3, 4}), Ints{5, 2}, true, std::nullopt); s(s.t({1, 2, 3, 4}), std::nullopt, false, std::vector<double>{1.6, 1.6}); }),
OP("_upsample_lanczos2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
  .forms = Out, .types = same_float, .infer = infer_up<Mode::LanczosAA, 2>, .kernels = {{Cpu, k_up<Mode::LanczosAA, 2>}},
  .vjp = [](const Grad& g) { return grads(G(0) { return _upsample_lanczos2d_aa_backward(g.dy(), g.ints(1), g.sizes(0), g.flag(2), number_at(g, 3), number_at(g, 4)); }); },
  .shard = {"nc-lin"}, .doc = "Lanczos resampling with three lobes that widens its filter when it shrinks the image, of an image.",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 3, 4}), Ints{5, 2}, false); s(s.t({1, 2, 3, 4}), Ints{5, 2}, true); s(s.t({1, 2, 3, 4}), Ints{3, 4}, false, 1.7, 1.7); s(s.t({0, 2, 3, 4}), Ints{5, 2}, false); }),
OP("_upsample_lanczos2d_aa_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
  .forms = Out, .types = same_float, .infer = infer_up_backward<Mode::LanczosAA, 2>, .kernels = {{Cpu, k_up_backward<Mode::LanczosAA, 2>}},
  .vjp = [](const Grad& g) { return grads(G(0) { return _upsample_lanczos2d_aa(g.dy(), g.ints(1), g.flag(3), number_at(g, 4), number_at(g, 5)); }); },
  .shard = {"nc-lin"}, .doc = "Gradient of _upsample_lanczos2d_aa.",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 5, 2}), Ints{5, 2}, Ints{1, 2, 3, 4}, false); s(s.t({1, 2, 5, 2}), Ints{5, 2}, Ints{1, 2, 3, 4}, true); s(s.t({1, 2, 3, 4}), Ints{3, 4}, Ints{1, 2, 3, 4}, false, 0.8, 0.8); }),
OP("_upsample_lanczos2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
  .forms = Out, .types = same_float,
  .decompose = [](const Args& a) -> Results { VecArgs v = vec_args(a, 2, 3); return _upsample_lanczos2d_aa(a.tensor(0), IntArrayRef(v.size), a.flag(2), v.scale[0], v.scale[1]); },
  .shard = {"nc-lin"}, .doc = "_upsample_lanczos2d_aa to output_size, or by scale_factors.",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 3, 4}), Ints{5, 2}, true, std::nullopt); s(s.t({1, 2, 3, 4}), std::nullopt, false, std::vector<double>{1.6, 1.6}); }),
OP("upsample_nearest3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
  .forms = Out, .types = nearest_types, .infer = infer_up<Mode::Nearest, 3>, .kernels = {{Cpu, k_up<Mode::Nearest, 3>}},
  .vjp = [](const Grad& g) { return grads(G(0) { return upsample_nearest3d_backward(g.dy(), g.ints(1), g.sizes(0), number_at(g, 2), number_at(g, 3), number_at(g, 4)); }); },
  .shard = {"nc-lin"}, .doc = "Nearest neighbours: element floor(o * in / out), of a volume.",
  .samples = [](SampleGen& s) { s(s.t({1, 1, 2, 3, 4}), Ints{3, 5, 2}); s(s.t({1, 1, 2, 3, 4}), Ints{2, 2, 4}, 1.7, 1.7, 1.7); s(s.t({0, 1, 2, 3, 4}), Ints{3, 5, 2}); }),
OP("upsample_nearest3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
  .forms = Out, .types = nearest_types, .infer = infer_up_backward<Mode::Nearest, 3>, .kernels = {{Cpu, k_up_backward<Mode::Nearest, 3>}},
  .vjp = [](const Grad& g) { return grads(G(0) { return upsample_nearest3d(g.dy(), g.ints(1), number_at(g, 3), number_at(g, 4), number_at(g, 5)); }); },
  .shard = {"nc-lin"}, .doc = "Gradient of upsample_nearest3d.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { s(s.t({1, 1, 3, 5, 2}), Ints{3, 5, 2}, Ints{1, 1, 2, 3, 4}); s(s.t({1, 1, 2, 2, 4}), Ints{2, 2, 4}, Ints{1, 1, 2, 3, 4}, 0.8, 0.8, 0.8); } }),
OP("upsample_nearest3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
  .forms = Out, .types = nearest_types,
  .decompose = [](const Args& a) -> Results { VecArgs v = vec_args(a, 3, 2); return upsample_nearest3d(a.tensor(0), IntArrayRef(v.size), v.scale[0], v.scale[1], v.scale[2]); },
  .shard = {"nc-lin"}, .doc = "upsample_nearest3d to output_size, or by scale_factors.",
  .samples = [](SampleGen& s) { s(s.t({1, 1, 2, 3, 4}), Ints{3, 5, 2}, std::nullopt); s(s.t({1, 1, 2, 3, 4}), std::nullopt, std::vector<double>{1.6, 1.6, 1.6}); }),
OP("_upsample_nearest_exact3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
  .forms = Out, .types = nearest_types, .infer = infer_up<Mode::NearestExact, 3>, .kernels = {{Cpu, k_up<Mode::NearestExact, 3>}},
  .vjp = [](const Grad& g) { return grads(G(0) { return _upsample_nearest_exact3d_backward(g.dy(), g.ints(1), g.sizes(0), number_at(g, 2), number_at(g, 3), number_at(g, 4)); }); },
  .shard = {"nc-lin"}, .doc = "Nearest neighbours of pixel centres, of a volume.",
  .samples = [](SampleGen& s) { s(s.t({1, 1, 2, 3, 4}), Ints{3, 5, 2}); s(s.t({1, 1, 2, 3, 4}), Ints{2, 2, 4}, 1.7, 1.7, 1.7); s(s.t({0, 1, 2, 3, 4}), Ints{3, 5, 2}); }),
OP("_upsample_nearest_exact3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
  .forms = Out, .types = nearest_types, .infer = infer_up_backward<Mode::NearestExact, 3>, .kernels = {{Cpu, k_up_backward<Mode::NearestExact, 3>}},
  .vjp = [](const Grad& g) { return grads(G(0) { return _upsample_nearest_exact3d(g.dy(), g.ints(1), number_at(g, 3), number_at(g, 4), number_at(g, 5)); }); },
  .shard = {"nc-lin"}, .doc = "Gradient of _upsample_nearest_exact3d.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { s(s.t({1, 1, 3, 5, 2}), Ints{3, 5, 2}, Ints{1, 1, 2, 3, 4}); s(s.t({1, 1, 2, 2, 4}), Ints{2, 2, 4}, Ints{1, 1, 2, 3, 4}, 0.8, 0.8, 0.8); } }),
OP("_upsample_nearest_exact3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
  .forms = Out, .types = nearest_types,
  .decompose = [](const Args& a) -> Results { VecArgs v = vec_args(a, 3, 2); return _upsample_nearest_exact3d(a.tensor(0), IntArrayRef(v.size), v.scale[0], v.scale[1], v.scale[2]); },
  .shard = {"nc-lin"}, .doc = "_upsample_nearest_exact3d to output_size, or by scale_factors.",
  .samples = [](SampleGen& s) { s(s.t({1, 1, 2, 3, 4}), Ints{3, 5, 2}, std::nullopt); s(s.t({1, 1, 2, 3, 4}), std::nullopt, std::vector<double>{1.6, 1.6, 1.6}); }),
OP("upsample_trilinear3d(Tensor self, SymInt[3] output_size, bool align_corners, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
  .forms = Out, .types = same_float, .infer = infer_up<Mode::Linear, 3>, .kernels = {{Cpu, k_up<Mode::Linear, 3>}},
  .vjp = [](const Grad& g) { return grads(G(0) { return upsample_trilinear3d_backward(g.dy(), g.ints(1), g.sizes(0), g.flag(2), number_at(g, 3), number_at(g, 4), number_at(g, 5)); }); },
  .shard = {"nc-lin"}, .doc = "Linear interpolation, of a volume.",
  .samples = [](SampleGen& s) { s(s.t({1, 1, 2, 3, 4}), Ints{3, 5, 2}, false); s(s.t({1, 1, 2, 3, 4}), Ints{3, 5, 2}, true); s(s.t({1, 1, 2, 3, 4}), Ints{2, 2, 4}, false, 1.7, 1.7, 1.7); s(s.t({0, 1, 2, 3, 4}), Ints{3, 5, 2}, false); }),
OP("upsample_trilinear3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, bool align_corners, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
  .forms = Out, .types = same_float, .infer = infer_up_backward<Mode::Linear, 3>, .kernels = {{Cpu, k_up_backward<Mode::Linear, 3>}},
  .vjp = [](const Grad& g) { return grads(G(0) { return upsample_trilinear3d(g.dy(), g.ints(1), g.flag(3), number_at(g, 4), number_at(g, 5), number_at(g, 6)); }); },
  .shard = {"nc-lin"}, .doc = "Gradient of upsample_trilinear3d.",
  .samples = [](SampleGen& s) { s(s.t({1, 1, 3, 5, 2}), Ints{3, 5, 2}, Ints{1, 1, 2, 3, 4}, false); s(s.t({1, 1, 3, 5, 2}), Ints{3, 5, 2}, Ints{1, 1, 2, 3, 4}, true); s(s.t({1, 1, 2, 2, 4}), Ints{2, 2, 4}, Ints{1, 1, 2, 3, 4}, false, 0.8, 0.8, 0.8); }),
OP("upsample_trilinear3d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
  .forms = Out, .types = same_float,
  .decompose = [](const Args& a) -> Results { VecArgs v = vec_args(a, 3, 3); return upsample_trilinear3d(a.tensor(0), IntArrayRef(v.size), a.flag(2), v.scale[0], v.scale[1], v.scale[2]); },
  .shard = {"nc-lin"}, .doc = "upsample_trilinear3d to output_size, or by scale_factors.",
  .samples = [](SampleGen& s) { s(s.t({1, 1, 2, 3, 4}), Ints{3, 5, 2}, true, std::nullopt); s(s.t({1, 1, 2, 3, 4}), std::nullopt, false, std::vector<double>{1.6, 1.6, 1.6}); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(upsample, table)
