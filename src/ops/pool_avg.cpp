// Average pooling over windows, and adaptive average pooling. Both are windowed sums with a divisor; gradients are the
// transposed sums of the divided cotangent (kernels/cpu/resample.h).
#include "kernels/cpu/resample.h"
#include "ops/pool_window.h"
#include "ops/spatial.h"

namespace vesta {
namespace {

using namespace op_block;

constexpr TypeRule avg_types{types::kFloatMask | types::bit(kLong), Promote::Same};

void run(const KernelCtx& k, const Tensor& from, const Tensor& layout, int spatial, cpu::Resample& r) {
  SpatialInput x = spatial_input(k, from, spatial, is_channels_last(layout, spatial));
  r.outer = x.outer, r.inner = x.inner;
  std::copy(x.size, x.size + 3, r.in);
  for (int d = 0; d < 3; ++d) r.out[d] = r.taps[d].count();
  SpatialOutput y(k, k.out());
  cpu::resample(x.type, x.data, y.data(), r);
  y.finish();
}
// Turns the sums of a pooling into those of its gradient: to `in` elements.
void transpose(cpu::Resample& r, const int64_t in[3]) {
  for (int d = 0; d < 3; ++d) {
    r.in_divisor[d] = std::move(r.out_divisor[d]);
    r.out_divisor[d].clear();
    r.taps[d] = r.taps[d].transposed(in[d]);
  }
}

// ---- windows: kernel_size at k_at, divisor_override (2-D and 3-D) at override_at ----
struct AvgArgs {
  PoolArgs window;
  bool count_pad;
  int64_t override_with;  // 0: none
};
AvgArgs avg_args(const Args& a, int spatial, int k_at) {
  AvgArgs v{pool_args(a, spatial, k_at, -1, k_at + 3), a.flag(k_at + 4), 0};
  if (a.has(k_at + 5)) {
    v.override_with = a.integer(k_at + 5);
    VESTA_CHECK(v.override_with != 0, a.name(), ": divisor_override must not be 0");
  }
  return v;
}
cpu::Resample avg_windows(const AvgArgs& a, const int64_t in[3], const int64_t out[3]) {
  cpu::Resample r;
  for (int d = 0; d < 3; ++d)
    for (int64_t o = 0; o < out[d]; ++o) {
      int64_t start = o * a.window.stride[d] - a.window.padding[d];
      int64_t padded_end = std::min(start + a.window.kernel[d], in[d] + a.window.padding[d]);
      int64_t b = std::max<int64_t>(start, 0), e = std::max(std::min(padded_end, in[d]), b);
      r.taps[d].add(std::min(b, in[d]), std::min(e, in[d]));
      int64_t factor = a.override_with ? (d == 0 ? a.override_with : 1) : a.count_pad ? padded_end - start : e - b;
      r.out_divisor[d].push_back(factor == 0 ? 1 : factor);  // an empty window sums to 0
    }
  return r;
}
void spatial_sizes(const Tensor& t, int spatial, int64_t dst[3]) {
  for (int d = 0; d < 3; ++d) dst[d] = d < 3 - spatial ? 1 : t.size(t.dim() - 3 + d);
}

template <int kSpatial>
void infer_avg(InferCtx& c) {
  check_spatial(c, 0, kSpatial);
  AvgArgs a = avg_args(c, kSpatial, 1);
  SymInt sizes[3];
  pooled_sizes(c, 0, kSpatial, a.window, sizes);
  out_spatial(c, 0, 0, sizes, kSpatial, c.dtype_of(0));
}
template <int kSpatial>
void k_avg(const KernelCtx& k) {
  if (k.out().numel() == 0) return;  // sizes of an empty result are not bounded by memory
  int64_t in[3], out[3];
  spatial_sizes(k.tensor(0), kSpatial, in);
  spatial_sizes(k.out(), kSpatial, out);
  cpu::Resample r = avg_windows(avg_args(k, kSpatial, 1), in, out);
  run(k, k.tensor(0), k.tensor(0), kSpatial, r);
}
// grad_output must have self's sizes but for the spatial ones, which are `want`.
void check_gradient(InferCtx& c, int spatial, const SymInt* want) {
  VESTA_CHECK_AS(TypeError, is_floating_point(c.dtype_of(1)), c.name(), ": expected floating point tensors, got ", dtype_name(c.dtype_of(1)));
  VESTA_CHECK(c.dim(0) == c.dim(1), c.name(), ": expected grad_output with self's number of dims, got ", c.dim(0), " and ", c.dim(1));
  int first = c.dim(1) - spatial;
  for (int d = 0; d < c.dim(1); ++d) {
    SymInt expected = d < first ? c.sizes(1)[size_t(d)] : want ? want[d - first] : c.sizes(0)[size_t(d)];
    VESTA_CHECK(c.sizes(0)[size_t(d)] == expected, c.name(), ": expected grad_output of size ", expected.str(), " at dim ", d, ", got ", c.sizes(0)[size_t(d)].str());
  }
  out_spatial(c, 0, 1, c.sizes(1).end() - spatial, spatial, c.dtype_of(1));
}
template <int kSpatial>
void infer_avg_backward(InferCtx& c) {
  check_spatial(c, 1, kSpatial);
  AvgArgs a = avg_args(c, kSpatial, 2);
  SymInt sizes[3];
  pooled_sizes(c, 1, kSpatial, a.window, sizes);
  check_gradient(c, kSpatial, sizes);
}
template <int kSpatial>
void k_avg_backward(const KernelCtx& k) {
  if (k.out().numel() == 0) return;
  int64_t in[3], out[3];
  spatial_sizes(k.tensor(1), kSpatial, in);
  spatial_sizes(k.tensor(0), kSpatial, out);
  cpu::Resample r = avg_windows(avg_args(k, kSpatial, 2), in, out);
  transpose(r, in);
  run(k, k.tensor(0), k.tensor(1), kSpatial, r);
}
std::optional<int64_t> divisor_of(const Args& a, int i) { return a.has(i) ? std::optional<int64_t>(a.integer(i)) : std::nullopt; }

// ---- adaptive ----
cpu::Resample adaptive_windows(const int64_t in[3], const int64_t out[3]) {
  cpu::Resample r;
  for (int d = 0; d < 3; ++d)
    for (int64_t o = 0; o < out[d]; ++o) {
      // floor(o * in / out) and ceil((o + 1) * in / out), without the product's overflow.
      int64_t q = in[d] / out[d], rest = in[d] % out[d];
      int64_t b = o * q + o * rest / out[d], e = (o + 1) * q + ((o + 1) * rest + out[d] - 1) / out[d];
      r.taps[d].add(b, e);
      r.out_divisor[d].push_back(e - b);
    }
  return r;
}
template <int kSpatial>
void infer_adaptive(InferCtx& c) {
  check_spatial(c, 0, kSpatial);
  VESTA_CHECK(int(c.ints(1).size()) == kSpatial, c.name(), ": expected ", kSpatial, " values for output_size, got ", c.ints(1).size());
  VESTA_CHECK_AS(TypeError, is_floating_point(c.dtype_of(0)), c.name(), ": expected a floating point tensor, got ", dtype_name(c.dtype_of(0)));
  int64_t out[3];
  read_window(c, 1, kSpatial, 0, 1, out);
  SymInt sizes[3];
  for (int d = 0; d < kSpatial; ++d) sizes[d] = out[3 - kSpatial + d];
  out_spatial(c, 0, 0, sizes, kSpatial, c.dtype_of(0));
}
template <int kSpatial>
void k_adaptive(const KernelCtx& k) {
  if (k.out().numel() == 0) return;
  int64_t in[3], out[3];
  spatial_sizes(k.tensor(0), kSpatial, in);
  spatial_sizes(k.out(), kSpatial, out);
  cpu::Resample r = adaptive_windows(in, out);
  run(k, k.tensor(0), k.tensor(0), kSpatial, r);
}
template <int kSpatial>
void infer_adaptive_backward(InferCtx& c) {
  check_spatial(c, 1, kSpatial);
  check_gradient(c, kSpatial, nullptr);
}
template <int kSpatial>
void k_adaptive_backward(const KernelCtx& k) {
  if (k.out().numel() == 0) return;
  int64_t in[3], out[3];
  spatial_sizes(k.tensor(1), kSpatial, in);
  spatial_sizes(k.tensor(0), kSpatial, out);
  cpu::Resample r = adaptive_windows(in, out);
  transpose(r, in);
  run(k, k.tensor(0), k.tensor(1), kSpatial, r);
}
// One value for all of each channel is a mean, which the reduction kernels do best.
bool all_ones(const Args& a, int spatial) {
  if (int(a.ints(1).size()) != spatial || a.tensor(0).numel() == 0 || !is_floating_point(a.tensor(0).dtype())) return false;
  if (a.tensor(0).dim() != spatial + 1 && a.tensor(0).dim() != spatial + 2) return false;
  if (is_channels_last(a.tensor(0), spatial)) return false;
  for (int64_t s : a.ints(1))
    if (s != 1) return false;
  return true;
}
using Ints = std::vector<int64_t>;

constexpr OpDef table[] = {
OP("avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, bool ceil_mode=False, bool count_include_pad=True) -> Tensor",
  .forms = Out, .types = avg_types,
  .decompose = [](const Args& a) -> Results {
      VESTA_CHECK(a.tensor(0).dim() == 2 || a.tensor(0).dim() == 3, a.name(), ": expected self with 2 or 3 dims, got ", a.tensor(0).dim());
      PoolArgs p = pool_args(a, 1, 1, -1, 4);
      return avg_pool2d(a.tensor(0).unsqueeze(-2), {1, p.kernel[2]}, {1, p.stride[2]}, {0, p.padding[2]}, p.ceil_mode, a.flag(5)).squeeze(-2); },
  .shard = {"pool-avg"}, .doc = "Means of sliding windows of a sequence; with count_include_pad padding counts as zeros.",
  .samples = [](SampleGen& s) { s(s.t({2, 3, 7}), Ints{3}, Ints{2}, Ints{1}); s(s.t({3, 7}), Ints{2}, Ints{}, Ints{0}, true, false); s(s.t({1, 1, 6}), Ints{4}, Ints{3}, Ints{2}, true, false); }),
OP("avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
  .forms = Out, .types = avg_types, .infer = infer_avg<2>, .kernels = {{Cpu, k_avg<2>}},
  .save = {in(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return avg_pool2d_backward(g.dy(), g.in(0), g.ints(1), g.ints(2), g.ints(3), g.flag(4), g.flag(5), divisor_of(g, 6)); }); },
  .shard = {"pool-avg"}, .doc = "Means of sliding windows of an image; divisor_override replaces the number of elements.",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 5, 5}), Ints{3}, Ints{2}, Ints{1}); s(s.t({2, 4, 5}), Ints{2, 3}, Ints{2, 1}, Ints{1, 0}, true, false); s(s.t({1, 1, 5, 4}), Ints{4}, Ints{3}, Ints{2}, true, true, 3); s(s.t({1, 2, 4, 9}), Ints{2, 3}, Ints{1}); }),
OP("avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
  .forms = Out, .types = avg_types, .infer = infer_avg_backward<2>, .kernels = {{Cpu, k_avg_backward<2>}},
  .vjp = [](const Grad& g) { return grads(G(0) { return avg_pool2d(g.dy(), g.ints(2), g.ints(3), g.ints(4), g.flag(5), g.flag(6), divisor_of(g, 7)); }); },
  .shard = {"pool-avg"}, .doc = "Gradient of avg_pool2d: each element of grad_output spread over its window.",
  .samples = [](SampleGen& s) { if (s.dtype() != kLong) { s(s.t({1, 2, 3, 3}), s.t({1, 2, 5, 5}), Ints{3}, Ints{2}, Ints{1}, false, true, std::nullopt); s(s.t({2, 3, 3}), s.t({2, 5, 4}), Ints{2, 3}, Ints{2}, Ints{0, 1}, true, false, std::nullopt); } }),
OP("avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = avg_types, .infer = infer_avg<3>, .kernels = {{Cpu, k_avg<3>}},
  .save = {in(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return avg_pool3d_backward(g.dy(), g.in(0), g.ints(1), g.ints(2), g.ints(3), g.flag(4), g.flag(5), divisor_of(g, 6)); }); },
  .shard = {"pool-avg"}, .doc = "Means of sliding windows of a volume.",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 2, 4, 4}), Ints{2}); s(s.t({1, 3, 4, 3}), Ints{2, 3, 2}, Ints{1, 2, 1}, Ints{1, 1, 0}, true, false, -2); }),
OP("avg_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
  .forms = Out, .types = avg_types, .infer = infer_avg_backward<3>, .kernels = {{Cpu, k_avg_backward<3>}},
  .vjp = [](const Grad& g) { return grads(G(0) { return avg_pool3d(g.dy(), g.ints(2), g.ints(3), g.ints(4), g.flag(5), g.flag(6), divisor_of(g, 7)); }); },
  .shard = {"pool-avg"}, .doc = "Gradient of avg_pool3d.",
  .samples = [](SampleGen& s) { if (s.dtype() != kLong) s(s.t({1, 1, 2, 2, 2}), s.t({1, 1, 3, 4, 4}), Ints{2}, Ints{2}, Ints{0}, true, true, std::nullopt); }),
OP("adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor",
  .forms = Out, .types = same_float,
  .decompose = [](const Args& a) -> Results {
      VESTA_CHECK(a.tensor(0).dim() == 2 || a.tensor(0).dim() == 3, a.name(), ": expected self with 2 or 3 dims, got ", a.tensor(0).dim());
      VESTA_CHECK(a.ints(1).size() == 1, a.name(), ": expected one value for output_size, got ", a.ints(1).size());
      return adaptive_avg_pool2d(a.tensor(0).unsqueeze(-2), {1, a.ints(1)[0]}).squeeze(-2); },
  .shard = {"pool-avg"}, .doc = "Means of output_size parts of a sequence that cover it.",
  .samples = [](SampleGen& s) { s(s.t({2, 3, 7}), Ints{3}); s(s.t({2, 4}), Ints{6}); s(s.t({2, 4}), Ints{1}); }),
OP("adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor",
  .forms = Out, .types = same_float,
  .decompose = [](const Args& a) -> Results {
      if (all_ones(a, 2)) return a.tensor(0).mean({-1, -2}, true);
      return _adaptive_avg_pool2d(a.tensor(0), a.ints(1)); },
  .shard = {"pool-avg"}, .doc = "Means of output_size windows of an image that cover it.",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 4, 5}), Ints{2, 3}); s(s.t({2, 3, 3}), Ints{1, 1}); }),
OP("_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor",
  .forms = Out, .types = same_float, .infer = infer_adaptive<2>, .kernels = {{Cpu, k_adaptive<2>}},
  .save = {in(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return _adaptive_avg_pool2d_backward(g.dy(), g.in(0)); }); },
  .shard = {"pool-avg"}, .doc = "The kernel of adaptive_avg_pool2d.",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 4, 5}), Ints{2, 3}); s(s.t({2, 3, 3}), Ints{1, 1}); s(s.t({1, 1, 2, 3}), Ints{3, 5}); s(s.t({0, 1, 2, 3}), Ints{2, 2}); }),
OP("_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor",
  .forms = Out, .types = same_float, .infer = infer_adaptive_backward<2>, .kernels = {{Cpu, k_adaptive_backward<2>}},
  .vjp = [](const Grad& g) { return grads(G(0) { IntArrayRef s = g.sizes(0); return _adaptive_avg_pool2d(g.dy(), s.slice(s.size() - 2, 2)); }); },
  .shard = {"pool-avg"}, .doc = "Gradient of adaptive_avg_pool2d.",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 2, 3}), s.t({1, 2, 4, 5})); s(s.t({2, 3, 4}), s.t({2, 2, 3})); }),
OP("adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = same_float,
  .decompose = [](const Args& a) -> Results {
      if (all_ones(a, 3)) return a.tensor(0).mean({-1, -2, -3}, true);
      return _adaptive_avg_pool3d(a.tensor(0), a.ints(1)); },
  .shard = {"pool-avg"}, .doc = "Means of output_size windows of a volume that cover it.",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 3, 2, 3}), Ints{2, 3, 1}); s(s.t({2, 3, 2, 2}), Ints{1, 1, 1}); }),
OP("_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor",
  .forms = Out, .types = same_float, .infer = infer_adaptive<3>, .kernels = {{Cpu, k_adaptive<3>}},
  .save = {in(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return _adaptive_avg_pool3d_backward(g.dy(), g.in(0)); }); },
  .shard = {"pool-avg"}, .doc = "The kernel of adaptive_avg_pool3d.",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 3, 2, 3}), Ints{2, 3, 1}); s(s.t({2, 3, 2, 2}), Ints{2, 2, 3}); }),
OP("_adaptive_avg_pool3d_backward(Tensor grad_output, Tensor self) -> Tensor",
  .forms = Out, .types = same_float, .infer = infer_adaptive_backward<3>, .kernels = {{Cpu, k_adaptive_backward<3>}},
  .vjp = [](const Grad& g) { return grads(G(0) { IntArrayRef s = g.sizes(0); return _adaptive_avg_pool3d(g.dy(), s.slice(s.size() - 3, 3)); }); },
  .shard = {"pool-avg"}, .doc = "Gradient of adaptive_avg_pool3d.",
  .samples = [](SampleGen& s) { s(s.t({1, 2, 2, 1, 2}), s.t({1, 2, 3, 2, 3})); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(pool_avg, table)
