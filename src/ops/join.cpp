// Joining tensors: cat and stack.
#include "kernels/cpu/copy.h"
#include "ops/infer.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

// A 1-D tensor without elements joins anything (a legacy that programs rely on).
bool skipped(const Tensor& t) { return t.dim() == 1 && SymInt(t.sizes()[0]) == 0; }

void infer_cat(InferCtx& c) {
  auto list = c.tensors(0);
  VESTA_CHECK(!list.empty(), c.name(), ": expected at least one tensor");
  const Tensor* model = nullptr;
  for (auto& t : list)
    if (!skipped(t) && !model) model = &t;
  if (!model) {
    c.out(0, {SymInt(0)}, list[0].dtype(), list[0].device());
    return;
  }
  VESTA_CHECK(model->dim() > 0, c.name(), ": zero-dimensional tensors cannot be concatenated");
  int d = c.wrap_dim(c.integer(1, 0), int(model->dim()));
  std::vector<SymInt> sizes(InferCtx::sizes_of(*model).begin(), InferCtx::sizes_of(*model).end());
  SymInt total = 0;
  for (auto& t : list) {
    if (skipped(t)) continue;
    VESTA_CHECK(t.dim() == model->dim(), c.name(), ": expected tensors with ", model->dim(), " dims, got ", t.dim());
    for (int64_t e = 0; e < t.dim(); ++e)
      VESTA_CHECK(e == d || InferCtx::sizes_of(t)[size_t(e)] == sizes[size_t(e)], c.name(), ": sizes must match except in dim ", d, ", got ",
                  InferCtx::sizes_of(t)[size_t(e)].str(), " and ", sizes[size_t(e)].str(), " at dim ", e);
    total += InferCtx::sizes_of(t)[size_t(d)];
  }
  sizes[size_t(d)] = total;
  c.out(0, sizes, list[0].dtype(), model->device());
}
void k_cat(const KernelCtx& k) {
  Tensor& out = k.out();
  if (out.dim() == 0 || out.numel() == 0) return;
  int64_t d = wrap_dim(k, k.integer(1, 0), out.dim()), at = 0;
  for (auto& t : k.tensors(0)) {
    if (skipped(t)) continue;
    cpu::copy_elements(out.narrow(d, at, t.size(d)), t);
    at += t.size(d);
  }
}

// Elements are only moved, and cast where their dtypes differ.
constexpr TypeRule joined_types{types::kAnyMask | types::kStorageMask, Promote::Types};

constexpr OpDef table[] = {
OP("cat(Tensor[] tensors, int dim=0) -> Tensor",
  .autocast = Autocast::Widest,
  .forms = Out, .types = joined_types, .infer = infer_cat, .kernels = {{Cpu, k_cat}},
  .vjp = [](const Grad& g) { return grads(G(0) {
      std::vector<Tensor> list(size_t(g.list_size(0)));
      int64_t n = int64_t(g.out_sizes().size()), d = g.integer(1) < 0 ? g.integer(1) + n : g.integer(1), at = 0;
      for (int k = 0; k < g.list_size(0); ++k) {
        IntArrayRef s = g.list_sizes(0, k);
        if (s.size() == 1 && s[0] == 0) { list[size_t(k)] = zeros({0}, g.dy().options()); continue; }
        if (g.needs(0, k)) list[size_t(k)] = g.dy().narrow(d, at, s[size_t(d)]);
        at += s[size_t(d)];
      }
      return list; }); },
  .shard = {"cat"}, .doc = "Tensors joined along an existing dim; dtypes promote.",
  .samples = [](SampleGen& s) { s(std::vector<Tensor>{s.t({2, 3}), s.t({1, 3})}); s(std::vector<Tensor>{s.t({2, 3}), s.t({2, 0}), s.t({2, 1})}, -1); s(std::vector<Tensor>{s.t({0}), s.t({2, 3})}); }),
OP("stack(Tensor[] tensors, int dim=0) -> Tensor",
  .autocast = Autocast::Widest,
  .forms = Out, .types = joined_types,
  .decompose = [](const Args& a) -> Results {
      auto list = a.tensors(0);
      VESTA_CHECK(!list.empty(), "stack: expected at least one tensor");
      int64_t d = wrap_dim(a, a.integer(1, 0), list[0].dim() + 1);
      std::vector<Tensor> rows;
      for (auto& t : list) {
        VESTA_CHECK(t.sizes() == list[0].sizes(), "stack: expected tensors of equal size, entry ", &t - list.begin(), " differs from entry 0");
        rows.push_back(t.unsqueeze(d));
      }
      return cat(rows, d); },
  .shard = {"stack"}, .doc = "Tensors joined along a new dim.",
  .samples = [](SampleGen& s) { s(std::vector<Tensor>{s.t({2, 3}), s.t({2, 3})}); s(std::vector<Tensor>{s.t({}), s.t({})}); s(std::vector<Tensor>{s.t({2}), s.t({2})}, -1); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(join, table)
