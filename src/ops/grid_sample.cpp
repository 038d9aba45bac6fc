// Sampling images and volumes at the points of a grid, and grids of affine maps.
#include "core/storage.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/grid_sample.h"
#include "ops/spatial.h"

namespace vesta {
namespace {

using namespace op_block;

// ---- grid_sampler: input [n, c, spatial...], grid [n, points..., spatial] ----
// Arguments from input_at: input, grid, interpolation_mode, padding_mode, align_corners.
void check_sampler(const InferCtx& c, int spatial, int input_at) {
  check_spatial(c, input_at, spatial, true);
  VESTA_CHECK_AS(TypeError, is_floating_point(c.dtype_of(input_at)) && c.dtype_of(input_at + 1) == c.dtype_of(input_at), c.name(),
                 ": expected input and grid of one floating point dtype, got ", dtype_name(c.dtype_of(input_at)), " and ", dtype_name(c.dtype_of(input_at + 1)));
  auto x = c.sizes(input_at), grid = c.sizes(input_at + 1);
  VESTA_CHECK(int(grid.size()) == spatial + 2 && grid[0] == x[0] && grid.back() == spatial, c.name(), ": expected a grid of ", spatial + 2,
              " dims with the input's batch first and ", spatial, " coordinates last");
  int64_t mode = c.integer(input_at + 2), padding = c.integer(input_at + 3);
  VESTA_CHECK(mode >= 0 && mode <= 2, c.name(), ": expected an interpolation_mode of 0 (bilinear), 1 (nearest) or 2 (bicubic), got ", mode);
  VESTA_CHECK(spatial == 2 || mode != 2, c.name(), ": bicubic interpolation is for images only");
  VESTA_CHECK(padding >= 0 && padding <= 2, c.name(), ": expected a padding_mode of 0 (zeros), 1 (border) or 2 (reflection), got ", padding);
}
SymDims sampled_sizes(const InferCtx& c, int spatial, int input_at) {
  SymDims s{c.sizes(input_at)[0], c.sizes(input_at)[1]};
  for (int d = 0; d < spatial; ++d) s.push_back(c.sizes(input_at + 1)[size_t(1 + d)]);
  return s;
}
struct Sampling {
  Tensor x, grid;
  cpu::Elem type;
  cpu::GridSample g;
};
Sampling sampling(const Args& a, int spatial, int input_at) {
  Sampling s;
  DType t = spatial_type(a, a.tensor(input_at).dtype());
  s.x = a.tensor(input_at).to(t);
  s.grid = a.tensor(input_at + 1).to(t).contiguous();
  s.type = cpu::elem_of(t);
  cpu::GridSample& g = s.g;
  g.mode = cpu::GridMode(a.integer(input_at + 2));
  g.padding = cpu::GridPadding(a.integer(input_at + 3));
  g.align_corners = a.flag(input_at + 4);
  g.dims = spatial;
  g.n = s.x.size(0), g.c = s.x.size(1);
  g.stride_n = s.x.stride(0), g.stride_c = s.x.stride(1);
  for (int d = 0; d < spatial; ++d) {
    g.size[3 - spatial + d] = s.x.size(2 + d);
    g.stride[3 - spatial + d] = s.x.stride(2 + d);
    g.points *= s.grid.size(1 + d);
  }
  return s;
}
template <int kSpatial>
void infer_sampler(InferCtx& c) {
  check_sampler(c, kSpatial, 0);
  c.out(0, sampled_sizes(c, kSpatial, 0), c.dtype_of(0), c.tensor(0).device());
}
template <int kSpatial>
void k_sampler(const KernelCtx& k) {
  Sampling s = sampling(k, kSpatial, 0);
  SpatialOutput y(k, k.out());
  cpu::grid_sample(s.type, s.x.data_ptr(), s.grid.data_ptr(), y.data(), s.g);
  y.finish();
}
const bool* output_mask(const Args& a, int i) {
  VESTA_CHECK(a.value(i).length == 2, a.name(), ": expected 2 flags in output_mask");
  return static_cast<const bool*>(a.value(i).ptr);
}
template <int kSpatial>
void infer_sampler_backward(InferCtx& c) {
  check_sampler(c, kSpatial, 1);
  VESTA_CHECK(c.sizes(0) == ArrayRef<SymInt>(sampled_sizes(c, kSpatial, 1)), c.name(), ": grad_output does not have the output's sizes");
  VESTA_CHECK_AS(TypeError, c.dtype_of(0) == c.dtype_of(1), c.name(), ": expected grad_output of the input's dtype, got ", dtype_name(c.dtype_of(0)));
  const bool* mask = output_mask(c, 6);
  for (int j = 0; j < 2; ++j) mask[j] ? c.out(j, c.sizes(1 + j), c.dtype_of(1 + j), c.tensor(0).device()) : c.out_none(j);
}
template <int kSpatial>
void k_sampler_backward(const KernelCtx& k) {
  Sampling s = sampling(k, kSpatial, 1);
  Tensor dy = k.tensor(0).to(s.x.dtype()).contiguous();
  const bool* mask = output_mask(k, 6);
  std::optional<SpatialOutput> dx, dgrid;
  if (mask[0]) dx.emplace(k, k.out(0));
  if (mask[1]) dgrid.emplace(k, k.out(1));
  cpu::grid_sample_backward(s.type, dy.data_ptr(), s.x.data_ptr(), s.grid.data_ptr(), dx ? dx->data() : nullptr, dgrid ? dgrid->data() : nullptr, s.g);
  if (dx) dx->finish();
  if (dgrid) dgrid->finish();
}
int vjp_sampler(const Grad& g, bool volume) {
  VESTA_CHECK_AS(NotImplementedError, !g.create_graph(), g.name(), ": second derivatives are not supported");
  const bool mask[2] = {g.needs(0), g.needs(1)};
  auto f = volume ? grid_sampler_3d_backward : grid_sampler_2d_backward;
  auto [dx, dgrid] = f(g.dy(), g.in(0), g.in(1), g.integer(2), g.integer(3), g.flag(4), ArrayRef<bool>(mask, 2));
  if (mask[0]) g.set(0, dx);
  if (mask[1]) g.set(1, dgrid);
  return 0;
}

// ---- affine grids ----
// n positions from -1 to 1: of the corner pixels' centres with align_corners, else of their outer edges' pixels.
Tensor positions(int64_t n, bool align_corners, const TensorOptions& options) {
  if (n == 1) return zeros({1}, options);
  Tensor t = linspace(-1, 1, n, options);
  return align_corners ? t : t * (double(n - 1) / double(n));
}
void check_size(const Args& a, IntArrayRef size) {
  VESTA_CHECK(size.size() == 4 || size.size() == 5, a.name(), ": expected a size of 4 (images) or 5 (volumes) numbers, got ", size.size());
  for (int64_t s : size) VESTA_CHECK(s > 0 && s < int64_t(1) << 31, a.name(), ": expected sizes in [1, 2^31), got ", s);
}
// [points, spatial + 1]: x, y, (z,) 1 of every pixel.
Tensor base_grid(IntArrayRef size, bool align_corners, const TensorOptions& options) {
  int64_t spatial = int64_t(size.size()) - 2;
  std::vector<int64_t> all(size.begin() + 2, size.end());
  std::vector<Tensor> coordinates;
  for (int64_t d = spatial - 1; d >= 0; --d) {
    std::vector<int64_t> shape(static_cast<size_t>(spatial), 1);
    shape[size_t(d)] = size[size_t(2 + d)];
    coordinates.push_back(positions(size[size_t(2 + d)], align_corners, options).view(shape).expand(all));
  }
  coordinates.push_back(ones(all, options));
  return stack(coordinates, -1).reshape({-1, spatial + 1});
}
Results affine_grid(const Args& a) {
  const Tensor& theta = a.tensor(0);
  IntArrayRef size = a.ints(1);
  VESTA_CHECK_AS(TypeError, is_floating_point(theta.dtype()), a.name(), ": expected a floating point theta, got ", dtype_name(theta.dtype()));
  check_size(a, size);
  int64_t spatial = int64_t(size.size()) - 2;
  VESTA_CHECK(theta.dim() == 3 && theta.size(0) == size[0] && theta.size(1) == spatial && theta.size(2) == spatial + 1, a.name(),
              ": expected theta of sizes [", size[0], ", ", spatial, ", ", spatial + 1, "]");
  std::vector<int64_t> sizes(size.begin(), size.end());
  sizes.erase(sizes.begin() + 1);
  sizes.push_back(spatial);
  return matmul(base_grid(size, a.flag(2), theta.options()), theta.transpose(1, 2)).view(sizes);
}
Results affine_grid_backward(const Args& a) {
  const Tensor& grad = a.tensor(0);
  IntArrayRef size = a.ints(1);
  VESTA_CHECK_AS(TypeError, is_floating_point(grad.dtype()), a.name(), ": expected a floating point gradient, got ", dtype_name(grad.dtype()));
  check_size(a, size);
  int64_t spatial = int64_t(size.size()) - 2;
  std::vector<int64_t> want(size.begin(), size.end());
  want.erase(want.begin() + 1);
  want.push_back(spatial);
  VESTA_CHECK(grad.sizes() == IntArrayRef(want), a.name(), ": grad does not have the grid's sizes");
  return matmul(grad.reshape({size[0], -1, spatial}).transpose(1, 2), base_grid(size, a.flag(2), grad.options()));
}

using Ints = std::vector<int64_t>;
// Coordinates between pixels' centres and inside of the image, where all modes are smooth.
Tensor inner_points(SampleGen& s, SampleGen::Shape sizes) { return s.t(sizes, range(-0.3, -0.1)); }

constexpr OpDef table[] = {
OP("grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
  .autocast = Autocast::Float32,
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      VESTA_CHECK(a.tensor(0).dim() == 4 || a.tensor(0).dim() == 5, a.name(), ": expected input with 4 or 5 dims, got ", a.tensor(0).dim());
      auto f = a.tensor(0).dim() == 4 ? grid_sampler_2d : grid_sampler_3d;
      return f(a.tensor(0), a.tensor(1), a.integer(2), a.integer(3), a.flag(4)); },
  .shard = {"batch-lin"}, .doc = "Values of an image or volume at the grid's coordinates, x first, -1 and 1 being the borders.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { s(s.t({1, 2, 4, 5}), inner_points(s, {1, 2, 2, 2}), 0, 0, false); s(s.t({1, 1, 3, 3, 3}), inner_points(s, {1, 1, 2, 1, 3}), 0, 1, true); } }),
OP("grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_sampler<2>, .kernels = {{Cpu, k_sampler<2>}},
  .save = {in(0), in(1)}, .vjp = [](const Grad& g) { return vjp_sampler(g, false); },
  .shard = {"batch-lin"}, .doc = "grid_sampler of images: bilinear (0), nearest (1) or bicubic (2); zeros (0), the border (1) or the reflection (2) outside.",
  .samples = [](SampleGen& s) {
      if (!is_floating_point(s.dtype())) return;
      for (int mode : {0, 1, 2})
        for (int padding : {0, 1, 2}) s(s.t({1, 2, 4, 5}), inner_points(s, {1, 2, 1, 2}), mode, padding, padding == 1);
      if (s.dtype() != kDouble) s(s.t({2, 2, 3, 4}), s.t({2, 3, 2, 2}, range(-2, 2)), 0, 2, false);
      s(s.t({0, 2, 3, 4}), s.t({0, 3, 2, 2}), 0, 0, false); }),
OP("grid_sampler_2d_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners, bool[2] output_mask) -> (Tensor, Tensor)",
  .types = any_types, .infer = infer_sampler_backward<2>, .kernels = {{Cpu, k_sampler_backward<2>}},
  .non_differentiable = true, .shard = {"batch-lin"}, .doc = "Gradients of grid_sampler_2d in input and grid, as output_mask asks.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { s(s.t({1, 2, 2, 2}), s.t({1, 2, 3, 4}), inner_points(s, {1, 2, 2, 2}), 0, 0, false, std::vector<bool>{true, true}); s(s.t({1, 2, 2, 2}), s.t({1, 2, 3, 4}), inner_points(s, {1, 2, 2, 2}), 2, 1, true, std::vector<bool>{true, false}); } }),
OP("grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_sampler<3>, .kernels = {{Cpu, k_sampler<3>}},
  .save = {in(0), in(1)}, .vjp = [](const Grad& g) { return vjp_sampler(g, true); },
  .shard = {"batch-lin"}, .doc = "grid_sampler of volumes: trilinear (0) or nearest (1).",
  .samples = [](SampleGen& s) {
      if (!is_floating_point(s.dtype())) return;
      for (int mode : {0, 1})
        for (int padding : {0, 1, 2}) s(s.t({1, 2, 3, 3, 4}), inner_points(s, {1, 2, 1, 1, 3}), mode, padding, padding == 1); }),
OP("grid_sampler_3d_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners, bool[2] output_mask) -> (Tensor, Tensor)",
  .types = any_types, .infer = infer_sampler_backward<3>, .kernels = {{Cpu, k_sampler_backward<3>}},
  .non_differentiable = true, .shard = {"batch-lin"}, .doc = "Gradients of grid_sampler_3d in input and grid, as output_mask asks.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({1, 2, 1, 2, 2}), s.t({1, 2, 3, 4, 3}), inner_points(s, {1, 1, 2, 2, 3}), 0, 0, false, std::vector<bool>{true, true}); }),
OP("affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor",
  .forms = Out, .types = any_types, .decompose = affine_grid,
  .shard = {"batch"}, .doc = "The grid that maps each pixel of an output of `size` through the affine matrices theta [n, spatial, spatial + 1].",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { s(s.t({2, 2, 3}), Ints{2, 1, 3, 4}, false); s(s.t({1, 3, 4}), Ints{1, 2, 1, 2, 3}, true); } }),
OP("affine_grid_generator_backward(Tensor grad, SymInt[] size, bool align_corners) -> Tensor",
  .types = any_types, .decompose = affine_grid_backward,
  .shard = {"batch"}, .doc = "Gradient of affine_grid_generator in theta.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({2, 3, 4, 2}), Ints{2, 1, 3, 4}, false); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(grid_sample, table)
