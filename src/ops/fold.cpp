// Sliding windows as columns: im2col, col2im, and the gradient of unfold. Each is the transpose of another op here or of
// the unfold view, so that gradients of any order exist.
#include "base/checked_math.h"
#include "base/thread_pool.h"
#include "core/storage.h"
#include "ops/conv_params.h"
#include "ops/visit.h"

namespace vesta {
namespace {

using namespace op_block;

// The windows of a [C, H, W] image: kernel, dilation, padding, stride at argument `first`.
struct Windows {
  int64_t kernel[2], dilation[2], pad[2], stride[2];
};
Windows windows(const Args& a, int first) {
  Windows w;
  read_conv_list(a, a.ints(first), "kernel_size", 2, 1, w.kernel);
  read_conv_list(a, a.ints(first + 1), "dilation", 2, 1, w.dilation);
  read_conv_list(a, a.ints(first + 2), "padding", 2, 0, w.pad);
  read_conv_list(a, a.ints(first + 3), "stride", 2, 1, w.stride);
  return w;
}
SymInt product(const Args& a, SymInt x, SymInt y) {
  return x.is_symbolic() || y.is_symbolic() ? x * y : SymInt(checked_mul(x.raw(), y.raw(), a.name()));
}
void infer_im2col(InferCtx& c) {
  Windows w = windows(c, 1);
  auto s = c.sizes(0);
  VESTA_CHECK(s.size() == 3 || s.size() == 4, c.name(), ": expected an input with 3 or 4 dims, got ", s.size());
  size_t at = s.size() - 2;
  SymInt steps = 1;
  for (size_t d = 0; d < 2; ++d) steps = product(c, steps, conv_output_size(c, s[at + d], w.kernel[d], w.stride[d], w.pad[d], w.dilation[d]));
  SymDims out;
  if (s.size() == 4) out.push_back(s[0]);
  out.push_back(product(c, s[at - 1], product(c, w.kernel[0], w.kernel[1])));
  out.push_back(steps);
  c.out(0, out, c.dtype_of(0), c.tensor(0).device());
}
void infer_col2im(InferCtx& c) {
  Windows w = windows(c, 2);
  int64_t size[2];
  read_conv_list(c, c.ints(1), "output_size", 2, 1, size);
  auto s = c.sizes(0);
  VESTA_CHECK(s.size() == 2 || s.size() == 3, c.name(), ": expected an input with 2 or 3 dims, got ", s.size());
  size_t at = s.size() - 2;
  SymInt window = product(c, w.kernel[0], w.kernel[1]), steps = 1;
  VESTA_CHECK(s[at] % window == 0, c.name(), ": the input's ", s[at].str(), " rows do not divide by the kernel's ", window.str(), " elements");
  for (size_t d = 0; d < 2; ++d) steps = product(c, steps, conv_output_size(c, size[d], w.kernel[d], w.stride[d], w.pad[d], w.dilation[d]));
  VESTA_CHECK(s[at + 1] == steps, c.name(), ": expected ", steps.str(), " columns, one a window, got ", s[at + 1].str());
  SymDims out;
  if (s.size() == 3) out.push_back(s[0]);
  out.push_back(s[at] / window);
  out.push_back(size[0]);
  out.push_back(size[1]);
  c.out(0, out, c.dtype_of(0), c.tensor(0).device());
}

// Rows of the column matrix: for plane p, tap (i, j) and output row y, f(row, x0, x1, source row, first source column)
// where columns [x0, x1) of the row lie inside the image.
struct Grid {
  Windows w;
  int64_t planes, height, width, rows, columns;  // image; windows down and across
  int64_t source_row(int64_t i, int64_t y) const { return y * w.stride[0] - w.pad[0] + i * w.dilation[0]; }
  int64_t source_column(int64_t j, int64_t x) const { return x * w.stride[1] - w.pad[1] + j * w.dilation[1]; }
};
Grid grid_of(const Windows& w, int64_t planes, int64_t height, int64_t width) {
  auto steps = [&](int64_t n, int d) { return (n + 2 * w.pad[d] - w.dilation[d] * (w.kernel[d] - 1) - 1) / w.stride[d] + 1; };
  return {w, planes, height, width, steps(height, 0), steps(width, 1)};
}
constexpr int64_t kWork = 16384;  // elements per parallel chunk

void k_im2col(const KernelCtx& k) {
  Tensor x = k.tensor(0).contiguous();
  if (k.out().numel() == 0) return;
  Grid g = grid_of(windows(k, 1), x.dim() == 4 ? x.size(0) * x.size(1) : x.size(0), x.size(-2), x.size(-1));
  int64_t taps = g.w.kernel[0] * g.w.kernel[1], steps = g.rows * g.columns;
  visit_size(x.dtype(), [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    auto* in = static_cast<const T*>(x.data_ptr());
    auto* out = static_cast<T*>(k.out().data_ptr());
    parallel_for(0, g.planes * taps, std::max<int64_t>(1, kWork / steps), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        int64_t i = r % taps / g.w.kernel[1], j = r % g.w.kernel[1];
        const T* image = in + r / taps * g.height * g.width;
        T* to = out + r * steps;
        for (int64_t y = 0; y < g.rows; ++y, to += g.columns) {
          int64_t row = g.source_row(i, y);
          bool inside = row >= 0 && row < g.height;
          for (int64_t x0 = 0; x0 < g.columns; ++x0) {
            int64_t column = g.source_column(j, x0);
            to[x0] = inside && column >= 0 && column < g.width ? image[row * g.width + column] : T{};
          }
        }
      }
    });
  });
}
// One plane at a time, its taps in order: every element is added up in one fixed order, in float32 for half types.
void k_col2im(const KernelCtx& k) {
  Tensor x = k.tensor(0).contiguous(), out = k.out();
  if (out.numel() == 0) return;
  Grid g = grid_of(windows(k, 2), out.dim() == 4 ? out.size(0) * out.size(1) : out.size(0), out.size(-2), out.size(-1));
  int64_t taps = g.w.kernel[0] * g.w.kernel[1], steps = g.rows * g.columns, area = g.height * g.width;
  visit_all(x.dtype(), k.name(), [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    using A = typename AccumulatorOf<T>::type;
    auto* in = static_cast<const T*>(x.data_ptr());
    auto* image = static_cast<T*>(out.data_ptr());
    parallel_for(0, g.planes, std::max<int64_t>(1, kWork / std::max(area, taps * steps)), [&](int64_t begin, int64_t end) {
      std::vector<A> sum(static_cast<size_t>(area));
      for (int64_t p = begin; p < end; ++p) {
        std::fill(sum.begin(), sum.end(), A(0));
        for (int64_t t = 0; t < taps; ++t) {
          int64_t i = t / g.w.kernel[1], j = t % g.w.kernel[1];
          const T* from = in + (p * taps + t) * steps;
          for (int64_t y = 0; y < g.rows; ++y, from += g.columns) {
            int64_t row = g.source_row(i, y);
            if (row < 0 || row >= g.height) continue;
            for (int64_t x0 = 0; x0 < g.columns; ++x0) {
              int64_t column = g.source_column(j, x0);
              if (column >= 0 && column < g.width) sum[size_t(row * g.width + column)] += A(from[x0]);
            }
          }
        }
        for (int64_t e = 0; e < area; ++e) image[p * area + e] = T(sum[size_t(e)]);
      }
    });
  });
}

// ---- unfold_backward(grad_in, input_sizes, dim, size, step) ----
void infer_unfold_backward(InferCtx& c) {
  IntArrayRef sizes = c.ints(1);
  int64_t n = int64_t(sizes.size()), dim = wrap_dim(c, c.integer(2), n), size = c.integer(3), step = c.integer(4);
  VESTA_CHECK(size >= 0 && step >= 1, c.name(), ": expected a size of at least 0 and a step of at least 1, got ", size, " and ", step);
  auto g = c.sizes(0);
  VESTA_CHECK(int64_t(g.size()) == n + 1 || (n == 0 && g.size() == 1), c.name(), ": expected a gradient with ", n + 1, " dims, got ", g.size());
  SymDims out;
  for (int64_t d = 0; d < n; ++d) {
    SymInt s = SymInt::from_raw(sizes[size_t(d)]);
    out.push_back(s);
    if (d != dim) {
      VESTA_CHECK(g[size_t(d)] == s, c.name(), ": the gradient has size ", g[size_t(d)].str(), " at dim ", d, ", the input ", s.str());
      continue;
    }
    VESTA_CHECK(s >= SymInt(size), c.name(), ": windows of ", size, " do not fit a dim of size ", s.str());
    VESTA_CHECK(g[size_t(d)] == (s - SymInt(size)) / SymInt(step) + 1, c.name(), ": the gradient has ", g[size_t(d)].str(), " windows at dim ", d);
  }
  VESTA_CHECK(g.back() == SymInt(size), c.name(), ": the gradient's last dim has size ", g.back().str(), ", the windows ", size);
  c.out(0, out, c.dtype_of(0), c.tensor(0).device());
}
void k_unfold_backward(const KernelCtx& k) {
  Tensor g = k.tensor(0).contiguous(), out = k.out();
  if (out.numel() == 0) return;
  int64_t n = out.dim(), size = k.integer(3), step = k.integer(4);
  int64_t dim = n ? wrap_dim(k, k.integer(2), n) : 0, length = n ? out.size(dim) : 1, windows = n ? g.size(dim) : 1, outer = 1, inner = 1;
  for (int64_t d = 0; d < dim; ++d) outer *= out.size(d);
  for (int64_t d = dim + 1; d < n; ++d) inner *= out.size(d);
  visit_all(g.dtype(), k.name(), [&]<class Tag>(Tag) {
    using T = typename Tag::type;
    using A = typename AccumulatorOf<T>::type;
    auto* from = static_cast<const T*>(g.data_ptr());
    auto* to = static_cast<T*>(out.data_ptr());
    parallel_for(0, outer * length, std::max<int64_t>(1, kWork / std::max<int64_t>(inner, 1)), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        int64_t o = r / length, at = r % length;
        // Windows w with w * step <= at < w * step + size.
        int64_t last = std::min(at / step, windows - 1), first = at < size ? 0 : (at - size) / step + 1;
        for (int64_t e = 0; e < inner; ++e) {
          A sum = A(0);
          for (int64_t w = first; w <= last; ++w) sum += A(from[((o * windows + w) * inner + e) * size + at - w * step]);
          to[r * inner + e] = T(sum);
        }
      }
    });
  });
}

using Ints = std::vector<int64_t>;
constexpr OpDef table[] = {
OP("im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_im2col, .kernels = {{Cpu, k_im2col}},
  .vjp = [](const Grad& g) { return grads(G(0) { IntArrayRef s = g.sizes(0); return col2im(g.dy(), s.slice(s.size() - 2, 2), g.ints(1), g.ints(2), g.ints(3), g.ints(4)); }); },
  .shard = {"batch"}, .doc = "The windows of [N, C, H, W] or [C, H, W] as columns: [N, C * kernel, windows].",
  .samples = [](SampleGen& s) { s(s.t({2, 2, 3, 4}), Ints{2, 2}, Ints{1, 1}, Ints{0, 0}, Ints{1, 1}); s(s.t({1, 4, 3}), Ints{2, 1}, Ints{2, 1}, Ints{1, 0}, Ints{2, 1}); }),
OP("col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_col2im, .kernels = {{Cpu, k_col2im}},
  .vjp = [](const Grad& g) { return grads(G(0) { return im2col(g.dy(), g.ints(2), g.ints(3), g.ints(4), g.ints(5)); }); },
  .shard = {"batch"}, .doc = "Adds columns up into the image that im2col would take them from.",
  .samples = [](SampleGen& s) { s(s.t({1, 8, 6}), Ints{3, 4}, Ints{2, 2}, Ints{1, 1}, Ints{0, 0}, Ints{1, 1}); s(s.t({2, 6}), Ints{4, 3}, Ints{2, 1}, Ints{2, 1}, Ints{1, 0}, Ints{2, 1}); }),
OP("unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_unfold_backward, .kernels = {{Cpu, k_unfold_backward}},
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy().unfold(g.integer(2), g.integer(3), g.integer(4)); }); },
  .shard = {"batch"}, .doc = "Gradient of unfold: windows added up where they came from.",
  .samples = [](SampleGen& s) { s(s.t({4, 3, 2}), Ints{5, 3}, 0, 2, 1); s(s.t({3, 2, 2}), Ints{3, 5}, -1, 2, 3); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(fold, table)
