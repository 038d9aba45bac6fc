// Embedding lookup and its dense gradient. The gradient sorts the positions by row (counting sort), so rows are
// summed in parallel, each in the order of its occurrences, in float32 for half types.
#include <cstring>

#include "base/thread_pool.h"
#include "core/storage.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/elem.h"
#include "kernels/cpu/rows.h"
#include "ops/index_kernels.h"
#include "ops/infer.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

// The indices as contiguous int64, each in [0, rows).
Tensor checked_indices(const Args& a, const Tensor& index, int64_t rows) {
  VESTA_CHECK_AS(TypeError, index.dtype() == kLong || index.dtype() == kInt, a.name(), ": expected int32 or int64 indices, got ",
                 dtype_name(index.dtype()));
  Tensor i = index.to(kLong).contiguous();
  auto* p = i.data_ptr<int64_t>();
  int64_t bad = first_outside(p, i.numel(), 0, rows);
  VESTA_CHECK_AS(IndexError, bad == i.numel(), a.name(), ": index ", p[bad], " is out of range for ", rows, " rows");
  return i;
}

constexpr int64_t kWork = 16384;  // elements per parallel chunk

void infer_embedding(InferCtx& c) {
  VESTA_CHECK(c.dim(0) == 2, c.name(), ": expected a weight with 2 dims, got ", c.dim(0));
  std::vector<SymInt> sizes(c.sizes(1).begin(), c.sizes(1).end());
  sizes.push_back(c.sizes(0)[1]);
  c.out(0, sizes, c.dtype_of(0), c.tensor(0).device());
}
void k_embedding(const KernelCtx& k) {
  const Tensor& weight = k.tensor(0);
  Tensor index = checked_indices(k, k.tensor(1), weight.size(0));
  Tensor w = weight.stride(1) == 1 || weight.size(1) <= 1 ? weight : weight.contiguous();
  int64_t n = index.numel(), dim = w.size(1), bytes = dim * int64_t(w.element_size()), step = w.stride(0) * int64_t(w.element_size());
  auto* from = static_cast<const char*>(w.data_ptr());
  auto* to = static_cast<char*>(k.out().data_ptr());
  auto* idx = index.data_ptr<int64_t>();
  parallel_for(0, n, std::max<int64_t>(1, kWork / std::max<int64_t>(1, dim)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) std::memcpy(to + i * bytes, from + idx[i] * step, size_t(bytes));
  });
}

void infer_embedding_backward(InferCtx& c) {
  auto dy = c.sizes(0), index = c.sizes(1);
  VESTA_CHECK(dy.size() == index.size() + 1 && dy.slice(0, index.size()) == index, c.name(),
              ": expected grad_output with the indices' sizes and one more dim");
  c.out(0, {SymInt(c.integer(2)), dy.back()}, c.dtype_of(0), c.tensor(0).device());
}

// Positions grouped by row: of row r, order[start[r]] .. order[start[r + 1] - 1], ascending.
struct RowGroups {
  std::vector<int64_t> start, order;
  RowGroups(const int64_t* idx, int64_t n, int64_t rows, int64_t skip) : start(size_t(rows) + 1, 0), order(size_t(n)) {
    for (int64_t i = 0; i < n; ++i)
      if (idx[i] != skip) ++start[size_t(idx[i]) + 1];
    for (int64_t r = 0; r < rows; ++r) start[size_t(r) + 1] += start[size_t(r)];
    std::vector<int64_t> at(start.begin(), start.end() - 1);
    for (int64_t i = 0; i < n; ++i)
      if (idx[i] != skip) order[size_t(at[size_t(idx[i])]++)] = i;
  }
};
template <class S, class A>
void sum_rows(const S* dy, S* out, int64_t rows, int64_t dim, const RowGroups& g, bool by_freq) {
  const cpu::Elem elem = cpu::elem_of(DTypeOf<S>::value);
  parallel_for(0, rows, std::max<int64_t>(1, kWork / std::max<int64_t>(1, dim)), [&](int64_t begin, int64_t end) {
    std::vector<A> sum(std::is_same_v<S, A> ? 0 : size_t(dim));
    for (int64_t r = begin; r < end; ++r) {
      int64_t from = g.start[size_t(r)], to = g.start[size_t(r) + 1];
      S* row = out + r * dim;
      A* acc;
      if constexpr (std::is_same_v<S, A>) acc = row;
      else acc = sum.data();
      std::fill(acc, acc + dim, A(0));
      cpu::add_indexed_rows(elem, dy, g.order.data() + from, to - from, int64_t(g.order.size()) - from, acc, dim);
      if (by_freq && to > from)
        for (int64_t e = 0; e < dim; ++e) acc[e] /= A(to - from);
      if constexpr (!std::is_same_v<S, A>)
        for (int64_t e = 0; e < dim; ++e) row[e] = S(acc[e]);
    }
  });
}
void k_embedding_backward(const KernelCtx& k) {
  int64_t rows = k.integer(2), padding = k.integer(3);
  Tensor index = checked_indices(k, k.tensor(1), rows), dy = k.tensor(0).contiguous();
  Tensor& out = k.out();
  RowGroups groups(index.data_ptr<int64_t>(), index.numel(), rows, padding);
  int64_t dim = out.size(1);
  bool by_freq = k.flag(4);
  // Complex rows are summed as twice as many real numbers.
  if (dy.dtype() == kComplexFloat)
    return sum_rows<float, float>(static_cast<const float*>(dy.data_ptr()), static_cast<float*>(out.data_ptr()), rows, 2 * dim, groups, by_freq);
  if (dy.dtype() == kComplexDouble)
    return sum_rows<double, double>(static_cast<const double*>(dy.data_ptr()), static_cast<double*>(out.data_ptr()), rows, 2 * dim, groups, by_freq);
  switch (dy.dtype()) {
    case DType::Float32: return sum_rows<float, float>(dy.data_ptr<float>(), out.data_ptr<float>(), rows, dim, groups, by_freq);
    case DType::Float64: return sum_rows<double, double>(dy.data_ptr<double>(), out.data_ptr<double>(), rows, dim, groups, by_freq);
    case DType::BFloat16: return sum_rows<BFloat16, float>(dy.data_ptr<BFloat16>(), out.data_ptr<BFloat16>(), rows, dim, groups, by_freq);
    case DType::Float16: return sum_rows<Half, float>(dy.data_ptr<Half>(), out.data_ptr<Half>(), rows, dim, groups, by_freq);
    default: throw TypeError(std::string(k.name()) + ": does not take " + dtype_name(dy.dtype()) + " gradients");
  }
}
void check_dense(const Args& a, bool sparse) {
  VESTA_CHECK_AS(NotImplementedError, !sparse, a.name(), ": sparse gradients are not supported; pass sparse=false");
}

constexpr OpDef table[] = {
OP("embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
  .forms = Out, .types = storage_types, .infer = infer_embedding, .kernels = {{Cpu, k_embedding}},
  .save = {in(1)},
  .vjp = [](const Grad& g) {
      check_dense(g, g.flag(4));
      return grads(G(0) { return embedding_dense_backward(g.dy(), g.in(1), g.sizes(0)[0], g.integer(2), g.flag(3)); }); },
  .shard = {"embedding"}, .doc = "Rows of weight by index. The row padding_idx gets no gradient; scale_grad_by_freq divides a row's gradient by its count.",
  .samples = [](SampleGen& s) { s(s.t({6, 3}), s.index({4}, 6)); if (s.dtype() != kDouble && s.dtype() != kComplexDouble) s(s.t({6, 3}), s.index({2, 3}, 6), 1, true); s(s.t({6, 3}), s.index({0}, 6)); s(s.t({6, 3}), s.index({}, 6)); }),
OP("embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, bool scale_grad_by_freq) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_embedding_backward, .kernels = {{Cpu, k_embedding_backward}},
  .save = {in(1)},
  .vjp = [](const Grad& g) { return grads(G(0) {
      Tensor index = g.in(1), d = g.dy();
      if (g.flag(4)) {
        // Each row was divided by how often it occurs.
        Tensor count = embedding_dense_backward(ones(index.sizes(), d.options()).unsqueeze(-1), index, g.integer(2), g.integer(3), false);
        d = d / where(count == 0, ones_like(count), count);
      }
      Tensor r = embedding(d, index);
      return g.integer(3) < 0 ? r : where((index == g.integer(3)).unsqueeze(-1), zeros_like(r), r); }); },
  .shard = {"embedding-bwd"}, .doc = "Sums the rows of grad_output that have the same index.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { s(s.t({4, 3}), s.index({4}, 6), 6, -1, false); s(s.t({2, 3, 3}), s.index({2, 3}, 4), 4, 1, true); } }),
OP("embedding_backward(Tensor grad, Tensor indices, SymInt num_weights, SymInt padding_idx, bool scale_grad_by_freq, bool sparse) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      check_dense(a, a.flag(5));
      return embedding_dense_backward(a.tensor(0), a.tensor(1), a.integer(2), a.integer(3), a.flag(4)); },
  .shard = {"embedding-bwd"}, .doc = "embedding_dense_backward; sparse gradients are not supported.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({4, 3}), s.index({4}, 6), 6, -1, false, false); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(embedding, table)
