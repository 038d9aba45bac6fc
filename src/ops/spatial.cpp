// Layout and shape rules of pooling, interpolation and grid sampling.
#include "ops/spatial.h"

#include "core/registry.h"
#include "core/storage.h"
#include "kernels/cpu/copy.h"
#include "vesta/ops.h"

namespace vesta {
namespace {

constexpr int64_t kLargestWindow = (int64_t(1) << 31) - 1;  // products of two stay below 2^62

MemoryFormat last_format(int spatial) { return spatial == 2 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d; }

}  // namespace

bool is_channels_last(const Tensor& x, int spatial) {
  return spatial > 1 && x.dim() == spatial + 2 && !x.is_contiguous() && x.is_non_overlapping_and_dense() && x.is_contiguous(last_format(spatial));
}

void check_spatial(const InferCtx& c, int i, int spatial, bool batched_only) {
  int n = c.dim(i);
  VESTA_CHECK(n == spatial + 2 || (!batched_only && n == spatial + 1), c.name(), ": expected ", c.op().schema.args[size_t(i)].name, " with ",
              batched_only ? "" : detail::message(spatial + 1, " or "), spatial + 2, " dims, got ", n);
  auto sizes = c.sizes(i);
  for (int d = n == spatial + 2 ? 1 : 0; d < n; ++d)
    VESTA_CHECK(sizes[size_t(d)] != 0, c.name(), ": expected no dim of size 0 but the batch, got one at dim ", d);
}

void out_spatial(InferCtx& c, int j, int like, const SymInt* spatial_sizes, int spatial, DType dtype) {
  SymDims sizes(c.sizes(like).begin(), c.sizes(like).end());
  size_t n = sizes.size(), first = n - size_t(spatial);
  for (int d = 0; d < spatial; ++d) sizes[first + size_t(d)] = spatial_sizes[d];
  if (!is_channels_last(c.tensor(like), spatial)) return c.out(j, sizes, dtype, c.tensor(like).device());
  SymDims strides(n, SymInt(1));
  SymInt step = sizes[1];
  for (size_t d = n - 1; d >= 2; --d) {
    strides[d] = step;
    step *= sizes[d];
  }
  strides[0] = step;
  c.out_strided(j, sizes, strides, dtype, c.tensor(like).device());
}

void read_window(const Args& a, int i, int n, int64_t lowest, int64_t rest, int64_t dst[3]) {
  const std::string& what = a.op().schema.args[size_t(i)].name;
  IntArrayRef v = a.ints(i);
  VESTA_CHECK(int(v.size()) == n || v.size() == 1, a.name(), ": expected ", n, " values (or one) for ", what, ", got ", v.size());
  for (int d = 0; d < 3 - n; ++d) dst[d] = rest;
  for (int d = 0; d < n; ++d) {
    int64_t k = v[v.size() == 1 ? 0 : size_t(d)];
    VESTA_CHECK(k >= lowest && k <= kLargestWindow, a.name(), ": expected ", what, " in [", lowest, ", 2^31), got ", k);
    dst[3 - n + d] = k;
  }
}

DType spatial_type(const Args& a, DType t) {
  switch (t) {
    case DType::Float16:
    case DType::BFloat16:
    case DType::Float32: return kFloat;
    case DType::Float64: return kDouble;
    case DType::UInt8:
    case DType::Int8:
    case DType::Int16:
    case DType::Int32:
    case DType::Int64: return kLong;
    default: throw TypeError(std::string(a.name()) + ": does not take " + dtype_name(t) + " tensors");
  }
}

Tensor spatial_layout(const Tensor& t, int spatial, bool channels_last) {
  return channels_last ? t.contiguous(last_format(spatial)) : t.contiguous();
}

SpatialInput spatial_input(const Args& a, const Tensor& x, int spatial, bool channels_last) {
  SpatialInput s;
  DType t = spatial_type(a, x.dtype());
  s.keep = spatial_layout(x.dtype() == t ? x : x.to(t), spatial, channels_last);
  s.data = s.keep.data_ptr();
  s.type = cpu::elem_of(t);
  int64_t n = x.dim(), batch = n == spatial + 2 ? x.size(0) : 1, channels = x.size(n - spatial - 1);
  s.outer = channels_last ? batch : batch * channels;
  s.inner = channels_last ? channels : 1;
  for (int d = 0; d < spatial; ++d) s.size[3 - spatial + d] = x.size(n - spatial + d);
  return s;
}

SpatialOutput::SpatialOutput(const Args& a, const Tensor& target) : target_(target), values_(target) {
  DType t = spatial_type(a, target.dtype());
  // Results are dense, so that any order of their dims fits a flat block.
  if (t != target.dtype()) values_ = empty_cpu({target.numel()}, t).as_strided(target.sizes(), target.strides());
}
void SpatialOutput::finish() {
  if (!values_.is_same(target_)) cpu::copy_elements(target_, values_);
}

}  // namespace vesta
