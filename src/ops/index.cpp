// Indexed reads and writes: index_select, index_add and their kin; advanced indexing follows in later families.
#include <cstring>

#include "kernels/cpu/copy.h"
#include "ops/infer.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

std::vector<int64_t> checked_indices(const Args& a, const Tensor& index, int64_t size) {
  VESTA_CHECK_AS(TypeError, index.dtype() == kLong || index.dtype() == kInt, a.name(), ": expected int32 or int64 indices, got ", dtype_name(index.dtype()));
  VESTA_CHECK(index.dim() <= 1, a.name(), ": expected indices with at most 1 dim, got ", index.dim());
  Tensor i = index.to(kLong).contiguous();
  std::vector<int64_t> v(i.data_ptr<int64_t>(), i.data_ptr<int64_t>() + i.numel());
  for (int64_t x : v) VESTA_CHECK_AS(IndexError, x >= 0 && x < size, a.name(), ": index ", x, " is out of range for a dim of size ", size);
  return v;
}

void infer_index_select(InferCtx& c) {
  int n = c.dim(0), d = c.wrap_dim(c.integer(1), n);
  std::vector<SymInt> sizes(c.sizes(0).begin(), c.sizes(0).end());
  VESTA_CHECK(c.dim(2) <= 1, c.name(), ": expected indices with at most 1 dim, got ", c.dim(2));
  if (n) sizes[size_t(d)] = c.dim(2) ? c.sizes(2)[0] : SymInt(1);
  c.out(0, sizes, c.dtype_of(0), c.tensor(0).device());
}
void k_index_select(const KernelCtx& k) {
  Tensor src = k.tensor(0), out = k.out();
  if (src.dim() == 0) src = src.unsqueeze(0), out = out.unsqueeze(0);
  int64_t d = wrap_dim(k, k.integer(1), src.dim());
  auto indices = checked_indices(k, k.tensor(2), src.size(d));
  src = src.contiguous();
  int64_t outer = 1, inner = int64_t(src.element_size()), size = src.size(d), count = int64_t(indices.size());
  for (int64_t e = 0; e < d; ++e) outer *= src.size(e);
  for (int64_t e = d + 1; e < src.dim(); ++e) inner *= src.size(e);
  auto* from = static_cast<const char*>(src.data_ptr());
  auto* to = static_cast<char*>(out.data_ptr());
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < count; ++i) std::memcpy(to + (o * count + i) * inner, from + (o * size + indices[size_t(i)]) * inner, size_t(inner));
}
void k_index_add(const KernelCtx& k) {
  Tensor &out = k.out();
  cpu::copy_elements(out, k.tensor(0));
  Tensor dst = out.dim() ? out : out.unsqueeze(0), src = k.tensor(3).dim() || out.dim() == 0 ? k.tensor(3) : k.tensor(3);
  if (src.dim() == 0) src = src.unsqueeze(0);
  int64_t d = wrap_dim(k, k.integer(1), dst.dim());
  auto indices = checked_indices(k, k.tensor(2), dst.size(d));
  VESTA_CHECK(src.dim() == dst.dim() && src.size(d) == int64_t(indices.size()), k.name(), ": source has ", src.size(d), " rows at dim ", d, ", there are ", indices.size(), " indices");
  Scalar alpha = k.scalar(4);
  for (size_t i = 0; i < indices.size(); ++i) dst.select(d, indices[i]).add_(src.select(d, int64_t(i)), alpha);
}

constexpr OpDef table[] = {
OP("index_select(Tensor self, int dim, Tensor index) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_index_select, .kernels = {{Cpu, k_index_select}},
  .save = {in(2)},
  .vjp = [](const Grad& g) { return grads(G(0) { return zeros(g.sizes(0), g.dy().options()).index_add(g.integer(1), g.in(2), g.dy()); }); },
  .shard = {"index-select"}, .doc = "The given indices of one dim.",
  .samples = [](SampleGen& s) { s(s.t({4, 3}), 0, s.index({5}, 4)); s(s.t({4, 3}), -1, s.index({2}, 3)); }),
OP("index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
  .forms = InPlace | Out, .types = any_types, .infer = infer_like_self, .kernels = {{Cpu, k_index_add}},
  .save = {in(2)},
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy(); }, G(3) { return (g.dy().dim() ? g.dy().index_select(g.integer(1), g.in(2)).view(g.sizes(3)) : g.dy().clone()) * g.scalar(4); }); },
  .shard = {"index-dim"}, .doc = "self with alpha * source added at the given indices of one dim; duplicates add up, in order.",
  .samples = [](SampleGen& s) { if (s.dtype() != kBool) s(s.t({4, 3}), 0, s.index({5}, 4), s.t({5, 3})); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(index, table)
