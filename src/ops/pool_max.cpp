// Max pooling with the positions of the maxima: over windows, adaptive and fractional; and max_unpool, its inverse.
// Positions index the flattened spatial dims of one channel. Gradients move values along positions.
#include <atomic>
#include <cmath>

#include "base/thread_pool.h"
#include "core/storage.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/max_pool.h"
#include "ops/pool_window.h"
#include "ops/spatial.h"

namespace vesta {
namespace {

using namespace op_block;

constexpr TypeRule pool_types{types::kFloatMask | types::kIntMask, Promote::None};

cpu::PoolShape pool_shape(const SpatialInput& x, const Tensor& out, int spatial) {
  cpu::PoolShape s;
  s.outer = x.outer, s.inner = x.inner;
  std::copy(x.size, x.size + 3, s.in);
  for (int d = 0; d < spatial; ++d) s.out[3 - spatial + d] = out.size(out.dim() - spatial + d);
  return s;
}

// ---- windows ----
template <int kSpatial>
void infer_max_pool(InferCtx& c) {
  check_spatial(c, 0, kSpatial);
  spatial_type(c, c.dtype_of(0));
  SymInt sizes[3];
  pooled_sizes(c, 0, kSpatial, pool_args(c, kSpatial, 1, 4, 5), sizes);
  out_spatial(c, 0, 0, sizes, kSpatial, c.dtype_of(0));
  out_spatial(c, 1, 0, sizes, kSpatial, kLong);
}
template <int kSpatial>
void k_max_pool(const KernelCtx& k) {
  if (k.out(0).numel() == 0) return;
  PoolArgs p = pool_args(k, kSpatial, 1, 4, 5);
  SpatialInput x = spatial_input(k, k.tensor(0), kSpatial, is_channels_last(k.tensor(0), kSpatial));
  SpatialOutput y(k, k.out(0));
  cpu::PoolWindow w;
  for (int d = 0; d < 3; ++d) w.kernel[d] = p.kernel[d], w.stride[d] = p.stride[d], w.padding[d] = p.padding[d], w.dilation[d] = p.dilation[d];
  cpu::max_pool(x.type, x.data, y.data(), k.out(1).data_ptr<int64_t>(), pool_shape(x, k.out(0), kSpatial), w);
  y.finish();
}

// ---- positions ----
int64_t spatial_numel(const Tensor& t, int spatial) {
  int64_t n = 1;
  for (int d = 1; d <= spatial; ++d) n *= t.size(t.dim() - d);
  return n;
}
// Indices as int64 in the wanted layout, all in [lowest, n).
Tensor checked_positions(const Args& a, const Tensor& index, int spatial, bool channels_last, int64_t lowest, int64_t n) {
  Tensor i = spatial_layout(index, spatial, channels_last);
  auto* p = i.data_ptr<int64_t>();
  // Without a branch for each and on the pool: this is a tenth of a gradient's time.
  std::atomic<bool> bad{false};
  parallel_for(0, i.numel(), 65536, [&](int64_t begin, int64_t end) {
    int64_t any = 0;
    for (int64_t j = begin; j < end; ++j) any |= int64_t(p[j] < lowest) | int64_t(p[j] >= n);
    if (any) bad.store(true, std::memory_order_relaxed);
  });
  for (int64_t j = 0; bad && j < i.numel(); ++j)
    VESTA_CHECK_AS(IndexError, p[j] >= lowest && p[j] < n, a.name(), ": position ", p[j], " is out of range for ", n, " elements");
  return i;
}
void check_index_type(const Args& a, const Tensor& index) {
  VESTA_CHECK_AS(TypeError, index.dtype() == kLong, a.name(), ": expected int64 indices, got ", dtype_name(index.dtype()));
}
// grad_output (0) and indices belong to a pooling of self (1): same leading sizes, same shape.
void check_pool_gradient(InferCtx& c, int spatial, int index_at) {
  check_spatial(c, 1, spatial);
  check_index_type(c, c.tensor(index_at));
  VESTA_CHECK(c.sizes(0) == c.sizes(index_at), c.name(), ": grad_output and indices differ in shape");
  VESTA_CHECK(c.dim(0) == c.dim(1), c.name(), ": grad_output and self differ in their number of dims");
  for (int d = 0; d < c.dim(1) - spatial; ++d)
    VESTA_CHECK(c.sizes(0)[size_t(d)] == c.sizes(1)[size_t(d)], c.name(), ": grad_output and self differ in batch or channels");
  VESTA_CHECK_AS(TypeError, is_floating_point(c.dtype_of(1)) && c.dtype_of(0) == c.dtype_of(1), c.name(), ": expected grad_output and self of one floating point dtype");
  out_spatial(c, 0, 1, c.sizes(1).end() - spatial, spatial, c.dtype_of(1));
}
template <int kSpatial, int kIndexAt>
void infer_pool_gradient(InferCtx& c) { check_pool_gradient(c, kSpatial, kIndexAt); }

// Moves values of src along `index` into out.
void move_values(const KernelCtx& k, const Tensor& src, const Tensor& index, const Tensor& layout, int spatial, bool add) {
  bool last = is_channels_last(layout, spatial);
  int64_t n = spatial_numel(k.out(), spatial);
  Tensor positions = checked_positions(k, index, spatial, last, add ? -1 : 0, n);
  SpatialInput from = spatial_input(k, src, spatial, last);
  SpatialOutput to(k, k.out());
  cpu::scatter_positions(from.type, from.data, positions.data_ptr<int64_t>(), to.data(), from.outer, spatial_numel(src, spatial), n, from.inner, add);
  to.finish();
}
template <int kSpatial, int kIndexAt>
void k_pool_gradient(const KernelCtx& k) { move_values(k, k.tensor(0), k.tensor(kIndexAt), k.tensor(1), kSpatial, true); }

// Values of t at the positions: the derivative of moving there. Where there is no position the result is 0.
Tensor take_positions(const Tensor& t, const Tensor& index, int spatial) {
  auto flat = [&](const Tensor& v) {
    std::vector<int64_t> sizes(v.sizes().begin(), v.sizes().end() - spatial);
    sizes.push_back(-1);
    for (int64_t s : v.sizes())
      if (s == 0) sizes.back() = spatial_numel(v, spatial);
    return v.reshape(sizes);
  };
  Tensor i = flat(index), values = flat(t).gather(-1, i.clamp_min(0));
  return where(i < 0, zeros({}, values.options()), values).reshape(index.sizes());
}

// ---- adaptive ----
template <int kSpatial>
void infer_adaptive_max(InferCtx& c) {
  check_spatial(c, 0, kSpatial);
  spatial_type(c, c.dtype_of(0));
  int64_t out[3];
  read_window(c, 1, kSpatial, 0, 1, out);
  SymInt sizes[3];
  for (int d = 0; d < kSpatial; ++d) sizes[d] = out[3 - kSpatial + d];
  out_spatial(c, 0, 0, sizes, kSpatial, c.dtype_of(0));
  out_spatial(c, 1, 0, sizes, kSpatial, kLong);
}
template <int kSpatial>
void k_adaptive_max(const KernelCtx& k) {
  if (k.out(0).numel() == 0) return;  // sizes of an empty result are not bounded by memory
  SpatialInput x = spatial_input(k, k.tensor(0), kSpatial, is_channels_last(k.tensor(0), kSpatial));
  cpu::PoolShape s = pool_shape(x, k.out(0), kSpatial);
  cpu::PoolRanges w;
  for (int d = 0; d < 3; ++d)
    for (int64_t o = 0; o < s.out[d]; ++o) {
      // floor(o * in / out) and ceil((o + 1) * in / out), without the product's overflow.
      int64_t q = s.in[d] / s.out[d], r = s.in[d] % s.out[d];
      w.begin[d].push_back(o * q + o * r / s.out[d]);
      w.end[d].push_back((o + 1) * q + ((o + 1) * r + s.out[d] - 1) / s.out[d]);
    }
  SpatialOutput y(k, k.out(0));
  cpu::max_pool_ranges(x.type, x.data, y.data(), k.out(1).data_ptr<int64_t>(), s, w);
  y.finish();
}

// ---- fractional ----
// Arguments: self, kernel_size, output_size, random_samples [batch, channels, spatial].
template <int kSpatial>
void infer_fractional(InferCtx& c) {
  check_spatial(c, 0, kSpatial);
  int n = c.dim(0);
  VESTA_CHECK_AS(TypeError, is_floating_point(c.dtype_of(0)) && c.dtype_of(3) == c.dtype_of(0), c.name(), ": expected self and random_samples of one floating point dtype");
  int64_t kernel[3], out[3];
  read_window(c, 1, kSpatial, 1, 1, kernel);
  read_window(c, 2, kSpatial, 1, 1, out);
  SymInt sizes[3];
  for (int d = 0; d < kSpatial; ++d) {
    SymInt in = c.sizes(0)[size_t(n - kSpatial + d)];
    int64_t k = kernel[3 - kSpatial + d], o = out[3 - kSpatial + d];
    VESTA_CHECK(SymInt(o + k - 1) <= in, c.name(), ": ", o, " windows of ", k, " do not fit into ", in.str(), " elements");
    sizes[d] = o;
  }
  bool batched = n == kSpatial + 2;
  VESTA_CHECK(c.dim(3) == 3, c.name(), ": expected random_samples with 3 dims, got ", c.dim(3));
  auto r = c.sizes(3);
  VESTA_CHECK(r[0] == (batched ? c.sizes(0)[0] : SymInt(1)) && r[1] == c.sizes(0)[batched ? 1 : 0] && r[2] == kSpatial, c.name(),
              ": expected random_samples of sizes [batch, channels, ", kSpatial, "]");
  // Channels-last inputs give contiguous results: each channel has its own windows.
  SymDims all(c.sizes(0).begin(), c.sizes(0).end());
  for (int d = 0; d < kSpatial; ++d) all[size_t(n - kSpatial + d)] = sizes[d];
  c.out(0, all, c.dtype_of(0), c.tensor(0).device());
  c.out(1, all, kLong, c.tensor(0).device());
}
// Starts of `out` windows of `kernel` elements, pseudo-random by the sample u in [0, 1): floor((i + u) a) - floor(u a),
// the last one at the end (Graham, Fractional Max-Pooling, 2014). Computed in the samples' type, as PyTorch does.
template <class R>
void fractional_starts(R u, int64_t in, int64_t out, int64_t kernel, std::vector<int64_t>& begin, std::vector<int64_t>& end) {
  R alpha = out > 1 ? R(in - kernel) / R(out - 1) : R(0);
  begin.clear(), end.clear();
  for (int64_t i = 0; i < out; ++i) {
    int64_t b = i + 1 == out ? in - kernel : int64_t((R(i) + u) * alpha) - int64_t(u * alpha);
    b = std::min(std::max<int64_t>(b, 0), in - kernel);
    begin.push_back(b);
    end.push_back(b + kernel);
  }
}
template <int kSpatial>
void k_fractional(const KernelCtx& k) {
  SpatialInput x = spatial_input(k, k.tensor(0), kSpatial, false);
  DType t = spatial_type(k, k.tensor(0).dtype());
  Tensor samples = k.tensor(3).to(t).contiguous(), wide = samples.to(kDouble);
  auto* values = wide.data_ptr<double>();
  for (int64_t i = 0; i < wide.numel(); ++i)
    VESTA_CHECK(values[i] >= 0 && values[i] <= 1, k.name(), ": expected random_samples in [0, 1], got ", values[i]);
  cpu::PoolShape s = pool_shape(x, k.out(0), kSpatial);
  int64_t planes = s.outer, in = s.in[0] * s.in[1] * s.in[2], out = s.out[0] * s.out[1] * s.out[2], kernel[3];
  read_window(k, 1, kSpatial, 1, 1, kernel);
  s.outer = 1;
  SpatialOutput y(k, k.out(0));
  auto* index = k.out(1).data_ptr<int64_t>();
  size_t bytes = cpu::elem_size(x.type);
  parallel_for(0, planes, 1, [&](int64_t first, int64_t last) {
    cpu::PoolRanges w;
    w.begin[0] = w.begin[1] = {0};
    w.end[0] = w.end[1] = {1};
    for (int64_t p = first; p < last; ++p) {
      for (int d = 3 - kSpatial; d < 3; ++d) {
        // The samples' order is (width, height) for images and (depth, height, width) for volumes.
        int64_t at = p * kSpatial + (kSpatial == 2 ? 2 - d : d);
        if (t == kDouble) fractional_starts(values[at], s.in[d], s.out[d], kernel[d], w.begin[d], w.end[d]);
        else fractional_starts(float(values[at]), s.in[d], s.out[d], kernel[d], w.begin[d], w.end[d]);
      }
      cpu::max_pool_ranges(x.type, static_cast<const char*>(x.data) + size_t(p * in) * bytes, static_cast<char*>(y.data()) + size_t(p * out) * bytes, index + p * out, s, w);
    }
  });
  y.finish();
}

// ---- max_unpool: self, indices, output_size ----
template <int kSpatial>
void infer_unpool(InferCtx& c) {
  check_spatial(c, 0, kSpatial);
  spatial_type(c, c.dtype_of(0));
  check_index_type(c, c.tensor(1));
  VESTA_CHECK(c.sizes(0) == c.sizes(1), c.name(), ": self and indices differ in shape");
  if (kSpatial == 3) {
    int64_t unused[3];
    read_window(c, 3, 3, 1, 1, unused);  // stride and padding are only checked, as in PyTorch
    read_window(c, 4, 3, 0, 0, unused);
  }
  int64_t out[3];
  VESTA_CHECK(int(c.ints(2).size()) == kSpatial, c.name(), ": expected ", kSpatial, " values for output_size, got ", c.ints(2).size());
  read_window(c, 2, kSpatial, 1, 1, out);
  SymInt sizes[3];
  for (int d = 0; d < kSpatial; ++d) sizes[d] = out[3 - kSpatial + d];
  out_spatial(c, 0, 0, sizes, kSpatial, c.dtype_of(0));
}
template <int kSpatial>
void k_unpool(const KernelCtx& k) { move_values(k, k.tensor(0), k.tensor(1), k.tensor(0), kSpatial, false); }

// ---- samples ----
using Ints = std::vector<int64_t>;
// Distinct values, far enough apart for finite differences: a shuffled range.
Tensor distinct(SampleGen& s, SampleGen::Shape sizes) {
  int64_t n = 1;
  for (int64_t d : sizes) n *= d;
  return (argsort(s.make({n}, {}, kDouble)).to(kDouble) * 0.37).to(s.dtype()).reshape(sizes);
}

constexpr OpDef table[] = {
// ---- windows ----
OP("max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
  .forms = Out, .types = pool_types, .infer = infer_max_pool<2>, .kernels = {{Cpu, k_max_pool<2>}},
  .save = {in(0), out(1)},
  .vjp = [](const Grad& g) { return grads(G(0) { return max_pool2d_with_indices_backward(g.dy(), g.in(0), g.ints(1), g.ints(2), g.ints(3), g.ints(4), g.flag(5), g.out(1)); }); },
  .non_diff_outputs = 2, .shard = {"pool-max"}, .doc = "Maxima of sliding windows, and their positions in the flattened image.",
  .samples = [](SampleGen& s) { s(distinct(s, {1, 2, 4, 4}), Ints{2}); s(distinct(s, {2, 5, 5}), Ints{3, 2}, Ints{2, 1}, Ints{1, 0}, Ints{1, 2}); s(distinct(s, {1, 1, 5, 4}), Ints{2, 2}, Ints{2}, Ints{0}, Ints{1}, true); s(s.t({0, 2, 3, 3}), Ints{2}); }),
OP("max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_pool_gradient<2, 7>, .kernels = {{Cpu, k_pool_gradient<2, 7>}},
  .save = {in(7)},
  .vjp = [](const Grad& g) { return grads(G(0) { return take_positions(g.dy(), g.in(7), 2); }); },
  .shard = {"pool-max"}, .doc = "Gradient of max_pool2d_with_indices: each element of grad_output goes to its maximum.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({1, 2, 2, 2}), s.t({1, 2, 4, 4}), Ints{2}, Ints{2}, Ints{0}, Ints{1}, false, s.index({1, 2, 2, 2}, 16)); }),
OP("max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
  .forms = Out, .types = pool_types, .infer = infer_max_pool<3>, .kernels = {{Cpu, k_max_pool<3>}},
  .save = {in(0), out(1)},
  .vjp = [](const Grad& g) { return grads(G(0) { return max_pool3d_with_indices_backward(g.dy(), g.in(0), g.ints(1), g.ints(2), g.ints(3), g.ints(4), g.flag(5), g.out(1)); }); },
  .non_diff_outputs = 2, .shard = {"pool-max"}, .doc = "Maxima of sliding windows of a volume, and their positions.",
  .samples = [](SampleGen& s) { s(distinct(s, {1, 1, 2, 4, 4}), Ints{2}); s(distinct(s, {1, 3, 5, 4}), Ints{2, 3, 2}, Ints{1, 2, 1}, Ints{1, 1, 0}, Ints{1, 1, 2}, true); }),
OP("max_pool3d_with_indices_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] padding, int[3] dilation, bool ceil_mode, Tensor indices) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_pool_gradient<3, 7>, .kernels = {{Cpu, k_pool_gradient<3, 7>}},
  .save = {in(7)},
  .vjp = [](const Grad& g) { return grads(G(0) { return take_positions(g.dy(), g.in(7), 3); }); },
  .shard = {"pool-max"}, .doc = "Gradient of max_pool3d_with_indices.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({1, 2, 2, 2}), s.t({1, 4, 4, 3}), Ints{2}, Ints{2}, Ints{0}, Ints{1}, false, s.index({1, 2, 2, 2}, 48)); }),
OP("max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
  .types = pool_types,
  .decompose = [](const Args& a) -> Results {
      VESTA_CHECK(a.tensor(0).dim() == 2 || a.tensor(0).dim() == 3, a.name(), ": expected self with 2 or 3 dims, got ", a.tensor(0).dim());
      PoolArgs p = pool_args(a, 1, 1, 4, 5);
      auto [y, i] = max_pool2d_with_indices(a.tensor(0).unsqueeze(-2), {1, p.kernel[2]}, {1, p.stride[2]}, {0, p.padding[2]}, {1, p.dilation[2]}, p.ceil_mode);
      return {y.squeeze(-2), i.squeeze(-2)}; },
  .non_diff_outputs = 2, .shard = {"pool-max"}, .doc = "Maxima of sliding windows of a sequence, and their positions.",
  .samples = [](SampleGen& s) { s(distinct(s, {2, 3, 7}), Ints{3}, Ints{2}, Ints{1}); s(distinct(s, {3, 7}), Ints{2}, Ints{}, Ints{0}, Ints{3}, true); }),
OP("max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] dilation=1, bool ceil_mode=False) -> Tensor",
  .types = pool_types,
  .decompose = [](const Args& a) -> Results { return std::get<0>(max_pool1d_with_indices(a.tensor(0), a.ints(1), a.ints(2), a.ints(3), a.ints(4), a.flag(5))); },
  .shard = {"pool-max"}, .doc = "Maxima of sliding windows of a sequence.",
  .samples = [](SampleGen& s) { s(distinct(s, {2, 3, 7}), Ints{3}, Ints{2}, Ints{1}); s(distinct(s, {3, 7}), Ints{2}); }),
OP("max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> Tensor",
  .types = pool_types,
  .decompose = [](const Args& a) -> Results { return std::get<0>(max_pool2d_with_indices(a.tensor(0), a.ints(1), a.ints(2), a.ints(3), a.ints(4), a.flag(5))); },
  .shard = {"pool-max"}, .doc = "Maxima of sliding windows of an image.",
  .samples = [](SampleGen& s) { s(distinct(s, {1, 2, 5, 5}), Ints{3}, Ints{2}, Ints{1}); s(distinct(s, {2, 4, 4}), Ints{2, 1}); }),
OP("max_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> Tensor",
  .forms = Out, .types = same_float,
  .decompose = [](const Args& a) -> Results {
      auto i = std::get<1>(max_pool2d_with_indices(a.tensor(1), a.ints(2), a.ints(3), a.ints(4), a.ints(5), a.flag(6)));
      return max_pool2d_with_indices_backward(a.tensor(0), a.tensor(1), a.ints(2), a.ints(3), a.ints(4), a.ints(5), a.flag(6), i); },
  .shard = {"pool-max"}, .doc = "Gradient of max_pool2d; the maxima are found again.",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 2, 2}), distinct(s, {1, 2, 4, 4}), Ints{2}); }),
OP("max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> Tensor",
  .autocast = Autocast::Float32,
  .types = pool_types,
  .decompose = [](const Args& a) -> Results { return std::get<0>(max_pool3d_with_indices(a.tensor(0), a.ints(1), a.ints(2), a.ints(3), a.ints(4), a.flag(5))); },
  .shard = {"pool-max"}, .doc = "Maxima of sliding windows of a volume.",
  .samples = [](SampleGen& s) { s(distinct(s, {1, 2, 3, 3, 4}), Ints{2}, Ints{1}); s(distinct(s, {1, 3, 3, 4}), Ints{2, 1, 2}); }),
// ---- adaptive ----
OP("adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)",
  .types = pool_types,
  .decompose = [](const Args& a) -> Results {
      VESTA_CHECK(a.tensor(0).dim() == 2 || a.tensor(0).dim() == 3, a.name(), ": expected self with 2 or 3 dims, got ", a.tensor(0).dim());
      VESTA_CHECK(a.ints(1).size() == 1, a.name(), ": expected one value for output_size, got ", a.ints(1).size());
      auto [y, i] = adaptive_max_pool2d(a.tensor(0).unsqueeze(-2), {1, a.ints(1)[0]});
      return {y.squeeze(-2), i.squeeze(-2)}; },
  .non_diff_outputs = 2, .shard = {"pool-max"}, .doc = "Maxima of output_size parts of a sequence that cover it, and their positions.",
  .samples = [](SampleGen& s) { s(distinct(s, {2, 3, 7}), Ints{3}); s(distinct(s, {2, 4}), Ints{6}); }),
OP("adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)",
  .forms = Out, .types = pool_types, .infer = infer_adaptive_max<2>, .kernels = {{Cpu, k_adaptive_max<2>}},
  .save = {in(0), out(1)},
  .vjp = [](const Grad& g) { return grads(G(0) { return adaptive_max_pool2d_backward(g.dy(), g.in(0), g.out(1)); }); },
  .non_diff_outputs = 2, .shard = {"pool-max"}, .doc = "Maxima of output_size windows of an image that cover it, and their positions.",
  .samples = [](SampleGen& s) { s(distinct(s, {1, 2, 4, 5}), Ints{2, 3}); s(distinct(s, {2, 3, 3}), Ints{1}); s(distinct(s, {1, 1, 2, 3}), Ints{3, 5}); }),
OP("adaptive_max_pool2d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_pool_gradient<2, 2>, .kernels = {{Cpu, k_pool_gradient<2, 2>}},
  .save = {in(2)},
  .vjp = [](const Grad& g) { return grads(G(0) { return take_positions(g.dy(), g.in(2), 2); }); },
  .shard = {"pool-max"}, .doc = "Gradient of adaptive_max_pool2d.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({1, 2, 2, 2}), s.t({1, 2, 3, 4}), s.index({1, 2, 2, 2}, 12)); }),
OP("adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)",
  .forms = Out, .types = pool_types, .infer = infer_adaptive_max<3>, .kernels = {{Cpu, k_adaptive_max<3>}},
  .save = {in(0), out(1)},
  .vjp = [](const Grad& g) { return grads(G(0) { return adaptive_max_pool3d_backward(g.dy(), g.in(0), g.out(1)); }); },
  .non_diff_outputs = 2, .shard = {"pool-max"}, .doc = "Maxima of output_size windows of a volume that cover it, and their positions.",
  .samples = [](SampleGen& s) { s(distinct(s, {1, 2, 2, 4, 3}), Ints{2, 3, 1}); s(distinct(s, {1, 3, 2, 3}), Ints{2}); }),
OP("adaptive_max_pool3d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_pool_gradient<3, 2>, .kernels = {{Cpu, k_pool_gradient<3, 2>}},
  .save = {in(2)},
  .vjp = [](const Grad& g) { return grads(G(0) { return take_positions(g.dy(), g.in(2), 3); }); },
  .shard = {"pool-max"}, .doc = "Gradient of adaptive_max_pool3d.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({1, 2, 2, 2}), s.t({1, 2, 3, 4}), s.index({1, 2, 2, 2}, 24)); }),
// ---- fractional ----
OP("fractional_max_pool2d(Tensor self, int[2] kernel_size, int[2] output_size, Tensor random_samples) -> (Tensor, Tensor)",
  .forms = Out, .types = any_types, .infer = infer_fractional<2>, .kernels = {{Cpu, k_fractional<2>}},
  .save = {in(0), out(1)},
  .vjp = [](const Grad& g) { return grads(G(0) { return fractional_max_pool2d_backward(g.dy(), g.in(0), g.ints(1), g.ints(2), g.out(1)); }); },
  .non_diff_outputs = 2, .shard = {"pool-max"}, .doc = "Maxima of windows whose starts are pseudo-random by random_samples in [0, 1), and their positions.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { if (s.dtype() != kDouble) s(distinct(s, {1, 2, 5, 4}), Ints{2}, Ints{3, 2}, s.t({1, 2, 2}, range(0, 0.9))); s(distinct(s, {2, 4, 4}), Ints{2, 1}, Ints{2}, full({1, 2, 2}, 0.4, TensorOptions(s.dtype()))); } }),
OP("fractional_max_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] output_size, Tensor indices) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_pool_gradient<2, 4>, .kernels = {{Cpu, k_pool_gradient<2, 4>}},
  .save = {in(4)},
  .vjp = [](const Grad& g) { return grads(G(0) { return take_positions(g.dy(), g.in(4), 2); }); },
  .shard = {"pool-max"}, .doc = "Gradient of fractional_max_pool2d.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({1, 2, 2, 2}), s.t({1, 2, 4, 4}), Ints{2}, Ints{2}, s.index({1, 2, 2, 2}, 16)); }),
OP("fractional_max_pool3d(Tensor self, int[3] kernel_size, int[3] output_size, Tensor random_samples) -> (Tensor, Tensor)",
  .forms = Out, .types = any_types, .infer = infer_fractional<3>, .kernels = {{Cpu, k_fractional<3>}},
  .save = {in(0), out(1)},
  .vjp = [](const Grad& g) { return grads(G(0) { return fractional_max_pool3d_backward(g.dy(), g.in(0), g.ints(1), g.ints(2), g.out(1)); }); },
  .non_diff_outputs = 2, .shard = {"pool-max"}, .doc = "Maxima of windows of a volume whose starts are pseudo-random by random_samples in [0, 1), and their positions.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(distinct(s, {1, 1, 3, 4, 4}), Ints{2, 1, 2}, Ints{2}, full({1, 1, 3}, 0.4, TensorOptions(s.dtype()))); }),
OP("fractional_max_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] output_size, Tensor indices) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_pool_gradient<3, 4>, .kernels = {{Cpu, k_pool_gradient<3, 4>}},
  .save = {in(4)},
  .vjp = [](const Grad& g) { return grads(G(0) { return take_positions(g.dy(), g.in(4), 3); }); },
  .shard = {"pool-max"}, .doc = "Gradient of fractional_max_pool3d.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({1, 2, 2, 2}), s.t({1, 3, 3, 3}), Ints{2}, Ints{2}, s.index({1, 2, 2, 2}, 27)); }),
// ---- unpool ----
OP("max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = any_types, .infer = infer_unpool<2>, .kernels = {{Cpu, k_unpool<2>}},
  .save = {in(1)},
  .vjp = [](const Grad& g) { return grads(G(0) { return take_positions(g.dy(), g.in(1), 2); }); },
  .shard = {"pool-max"}, .doc = "Puts each element at its position in an image of zeros; of equal positions the last one counts.",
  .samples = [](SampleGen& s) { if (s.dtype() != kBool && !is_complex(s.dtype())) s(s.t({1, 2, 2, 2}), arange(Scalar(8), TensorOptions(kLong)).reshape({1, 2, 2, 2}) * 2, Ints{4, 4}); }),
OP("max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] padding) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = any_types, .infer = infer_unpool<3>, .kernels = {{Cpu, k_unpool<3>}},
  .save = {in(1)},
  .vjp = [](const Grad& g) { return grads(G(0) { return take_positions(g.dy(), g.in(1), 3); }); },
  .shard = {"pool-max"}, .doc = "Puts each element at its position in a volume of zeros; of equal positions the last one counts.",
  .samples = [](SampleGen& s) { if (s.dtype() != kBool && !is_complex(s.dtype())) s(s.t({1, 2, 2, 2}), arange(Scalar(8), TensorOptions(kLong)).reshape({1, 2, 2, 2}) * 3, Ints{3, 3, 3}, Ints{2, 2, 2}, Ints{0, 0, 0}); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(pool_max, table)
