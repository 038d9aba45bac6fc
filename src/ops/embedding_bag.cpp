// Bags of embedding rows: sums, means or maxima of the rows that each bag names, and their gradients. Half types are
// summed in float32. Gradients are dense; a column of the table is summed by one thread, in the order of the indices.
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

enum Mode : int64_t { kSum = 0, kMean = 1, kMax = 2 };
constexpr int64_t kWork = 16384;  // elements a parallel chunk
constexpr int64_t kColumns = 64;  // columns of the table's gradient that one chunk owns

Mode mode_of(const Args& a, int i) {
  int64_t m = a.integer(i);
  VESTA_CHECK(m >= kSum && m <= kMax, a.name(), ": expected a mode of 0 (sum), 1 (mean) or 2 (max), got ", m);
  return Mode(m);
}
void check_dense(const Args& a, bool sparse) {
  VESTA_CHECK_AS(NotImplementedError, !sparse, a.name(), ": sparse gradients are not supported; pass sparse=false");
}
void check_index_type(const Args& a, const Tensor& t, const char* what) {
  VESTA_CHECK_AS(TypeError, t.dtype() == kLong || t.dtype() == kInt, a.name(), ": expected int32 or int64 ", what, ", got ", dtype_name(t.dtype()));
}
void check_float(const Args& a, DType t) {
  VESTA_CHECK_AS(TypeError, is_floating_point(t), a.name(), ": expected a floating point tensor, got ", dtype_name(t));
}
Tensor checked(const Args& a, const Tensor& t, int64_t lowest, int64_t n, const char* what) {
  Tensor i = t.to(kLong).contiguous();
  auto* p = i.data_ptr<int64_t>();
  int64_t bad = first_outside(p, i.numel(), lowest, n);
  VESTA_CHECK_AS(IndexError, bad == i.numel(), a.name(), ": ", what, " ", p[bad], " is out of range for ", n);
  return i;
}
template <class F>
void with_type(const Args& a, DType t, F f) {
  switch (t) {
    case DType::Float32: return f(float(), float());
    case DType::Float64: return f(double(), double());
    case DType::Float16: return f(Half(), float());
    case DType::BFloat16: return f(BFloat16(), float());
    default: throw TypeError(std::string(a.name()) + ": does not take " + dtype_name(t) + " tensors");
  }
}
// Where the bags start, and behind the last one's end. ValueError unless they start at 0 and never decrease.
std::vector<int64_t> bag_bounds(const Args& a, const Tensor& offsets, int64_t count, bool include_last) {
  Tensor o = offsets.to(kLong).contiguous();
  std::vector<int64_t> b(o.data_ptr<int64_t>(), o.data_ptr<int64_t>() + o.numel());
  if (!include_last) b.push_back(count);
  VESTA_CHECK(b[0] == 0 || (!include_last && b.size() == 1), a.name(), ": expected offsets to start at 0, got ", b[0]);
  for (size_t i = 0; i < b.size(); ++i)
    VESTA_CHECK(b[i] >= 0 && b[i] <= count && (i == 0 || b[i] >= b[i - 1]), a.name(), ": offset ", b[i], " decreases or is beyond the ", count, " indices");
  return b;
}

// weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx.
void infer_bag(InferCtx& c) {
  check_float(c, c.dtype_of(0));
  check_index_type(c, c.tensor(1), "indices");
  check_index_type(c, c.tensor(2), "offsets");
  VESTA_CHECK(c.dim(0) == 2 && c.dim(1) == 1 && c.dim(2) == 1, c.name(), ": expected weight with 2 dims, indices and offsets with 1, got ", c.dim(0), ", ", c.dim(1), " and ", c.dim(2));
  Mode mode = mode_of(c, 4);
  if (c.has(6)) {
    VESTA_CHECK(mode == kSum, c.name(), ": per_sample_weights need mode 0 (sum)");
    VESTA_CHECK_AS(TypeError, c.dtype_of(6) == c.dtype_of(0), c.name(), ": expected per_sample_weights of weight's dtype, got ", dtype_name(c.dtype_of(6)));
    VESTA_CHECK(c.sizes(6) == c.sizes(1), c.name(), ": expected one per_sample_weight for each index");
  }
  SymInt bags = c.sizes(2)[0];
  if (c.flag(7)) {
    VESTA_CHECK(bags >= 1, c.name(), ": include_last_offset needs at least one offset");
    bags = bags - 1;
  }
  Device device = c.tensor(0).device();
  c.out(0, {bags, c.sizes(0)[1]}, c.dtype_of(0), device);
  c.out(1, {c.sizes(1)[0]}, kLong, device);
  c.out(2, {bags}, kLong, device);
  if (mode == kMax) c.out(3, {bags, c.sizes(0)[1]}, kLong, device);
  else c.out(3, {bags}, kLong, device);
}
void k_bag(const KernelCtx& k) {
  Tensor weight = k.tensor(0).contiguous(), index = checked(k, k.tensor(1), 0, weight.size(0), "index");
  Mode mode = mode_of(k, 4);
  int64_t dim = weight.size(1), bags = k.out(0).size(0), padding = k.integer(8);
  std::vector<int64_t> bounds = bag_bounds(k, k.tensor(2), index.numel(), k.flag(7));
  Tensor sample = k.has(6) ? k.tensor(6).contiguous() : Tensor();
  auto *idx = index.data_ptr<int64_t>(), *bag_of = k.out(1).data_ptr<int64_t>(), *size_of = k.out(2).data_ptr<int64_t>(), *largest = k.out(3).data_ptr<int64_t>();
  std::fill(bag_of, bag_of + index.numel(), -1);  // indices behind the last bag
  std::fill(largest, largest + k.out(3).numel(), mode == kMax ? -1 : 0);
  int64_t rows = bags > 0 ? index.numel() / bags + 1 : 1;
  with_type(k, weight.dtype(), [&]<class S, class A>(S, A) {
    const cpu::Elem elem = cpu::elem_of(weight.dtype());
    const S* table = weight.data_ptr<S>();
    const S* factor = sample.defined() ? sample.data_ptr<S>() : nullptr;
    S* out = k.out(0).data_ptr<S>();
    parallel_for(0, bags, std::max<int64_t>(1, kWork / std::max<int64_t>(1, rows * dim)), [&](int64_t begin, int64_t end) {
      constexpr bool kDirect = std::is_same_v<S, A>;
      std::vector<A> wide(kDirect ? 0 : static_cast<size_t>(dim));
      for (int64_t b = begin; b < end; ++b) {
        A* sum = wide.data();
        if constexpr (kDirect) sum = out + b * dim;
        std::fill_n(sum, dim, A(0));
        int64_t count = 0;
        if (mode != kMax && !factor && padding < 0) {
          int64_t first = bounds[size_t(b)];
          count = bounds[size_t(b) + 1] - first;
          std::fill_n(bag_of + first, count, b);
          cpu::add_indexed_rows(elem, table, idx + first, count, index.numel() - first, sum, dim);
        } else for (int64_t i = bounds[size_t(b)]; i < bounds[size_t(b) + 1]; ++i) {
          bag_of[i] = b;
          if (idx[i] == padding) continue;
          const S* row = table + idx[i] * dim;
          if (mode == kMax) {
            int64_t* at = largest + b * dim;
            for (int64_t d = 0; d < dim; ++d) {
              A v = A(row[d]);
              if (count == 0 || v > sum[d] || v != v) sum[d] = v, at[d] = idx[i];
            }
          } else {
            if (factor) cpu::add_scaled_row(elem, row, double(A(factor[i])), sum, dim);
            else cpu::add_row(elem, row, sum, dim);
          }
          ++count;
        }
        size_of[b] = count;
        A divisor = mode == kMean && count > 0 ? A(count) : A(1);
        if (kDirect && divisor == A(1)) continue;
        for (int64_t d = 0; d < dim; ++d) out[b * dim + d] = S(sum[d] / divisor);
      }
    });
  });
}

// The bag of each index, from offsets where the caller did not keep it.
Tensor bags_of(const Args& a, const Tensor& offset2bag, const Tensor& offsets, int64_t count) {
  if (offset2bag.numel() == count) return offset2bag;
  Tensor t = full({count}, -1, TensorOptions(kLong));
  std::vector<int64_t> bounds = bag_bounds(a, offsets, count, false);
  auto* p = t.data_ptr<int64_t>();
  for (size_t b = 0; b + 1 < bounds.size(); ++b)
    for (int64_t i = bounds[b]; i < bounds[b + 1]; ++i) p[i] = int64_t(b);
  return t;
}

// grad, indices, offset2bag, bag_size, maximum_indices, num_weights, scale_grad_by_freq, mode, per_sample_weights, padding_idx.
void infer_bag_backward(InferCtx& c) {
  check_float(c, c.dtype_of(0));
  check_index_type(c, c.tensor(1), "indices");
  check_index_type(c, c.tensor(2), "offset2bag");
  VESTA_CHECK(c.dim(0) == 2 && c.dim(1) == 1, c.name(), ": expected grad with 2 dims and indices with 1, got ", c.dim(0), " and ", c.dim(1));
  VESTA_CHECK(c.sizes(2) == c.sizes(1), c.name(), ": expected a bag for each index");
  Mode mode = mode_of(c, 7);
  if (mode == kMean) VESTA_CHECK(c.dim(3) == 1 && c.sizes(3)[0] == c.sizes(0)[0], c.name(), ": expected a bag_size for each row of grad");
  if (mode == kMax) VESTA_CHECK(c.sizes(4) == c.sizes(0), c.name(), ": expected maximum_indices of grad's sizes");
  if (c.has(8)) VESTA_CHECK(mode == kSum && c.sizes(8) == c.sizes(1), c.name(), ": expected a per_sample_weight for each index, and mode 0 (sum)");
  c.out(0, {SymInt(c.integer(5)), c.sizes(0)[1]}, c.dtype_of(0), c.tensor(0).device());
}
void k_bag_backward(const KernelCtx& k) {
  Tensor dy = k.tensor(0).contiguous();
  int64_t rows = k.integer(5), dim = dy.size(1), bags = dy.size(0), padding = k.integer(9);
  Mode mode = mode_of(k, 7);
  Tensor index = checked(k, k.tensor(1), 0, rows, "index"), bag = checked(k, k.tensor(2), -1, bags, "bag");
  Tensor largest = mode == kMax ? checked(k, k.tensor(4), -1, rows, "maximum index") : Tensor();
  if (k.out().numel() == 0) return;  // the number of rows is not bounded by memory then
  DType acc = dy.dtype() == kDouble ? kDouble : kFloat;
  Tensor factor = full({index.numel()}, 1, TensorOptions(acc));  // of each index
  if (k.has(8)) factor = k.tensor(8).to(acc).contiguous().clone();
  std::vector<int64_t> count(static_cast<size_t>(rows));
  auto *idx = index.data_ptr<int64_t>(), *bag_of = bag.data_ptr<int64_t>();
  for (int64_t i = 0; i < index.numel(); ++i) ++count[size_t(idx[i])];
  Tensor sizes = mode == kMean ? k.tensor(3).to(kLong).contiguous() : Tensor();
  Tensor sum = k.out();
  if (acc != dy.dtype()) sum = empty_cpu(k.out().sizes(), acc);
  with_type(k, dy.dtype(), [&]<class S, class A>(S, A) {
    const cpu::Elem elem = cpu::elem_of(dy.dtype());
    const S* g = dy.data_ptr<S>();
    A *out = sum.data_ptr<A>(), *f = factor.data_ptr<A>();
    for (int64_t i = 0; i < index.numel(); ++i) {
      if (mode == kMean && bag_of[i] >= 0) f[i] /= A(std::max<int64_t>(1, sizes.data_ptr<int64_t>()[bag_of[i]]));
      if (k.flag(6)) f[i] /= A(count[size_t(idx[i])]);
    }
    int64_t blocks = (dim + kColumns - 1) / kColumns;
    parallel_for(0, blocks, std::max<int64_t>(1, kWork / std::max<int64_t>(1, (rows + index.numel()) * kColumns)), [&](int64_t begin, int64_t end) {
      int64_t d0 = begin * kColumns, d1 = std::min(dim, end * kColumns);
      for (int64_t r = 0; r < rows; ++r) std::memset(out + r * dim + d0, 0, size_t(d1 - d0) * sizeof(A));
      if (mode == kMax) {
        auto* at = largest.data_ptr<int64_t>();
        for (int64_t b = 0; b < bags; ++b)
          for (int64_t d = d0; d < d1; ++d)
            if (at[b * dim + d] >= 0) out[at[b * dim + d] * dim + d] += A(g[b * dim + d]);
        return;
      }
      for (int64_t i = 0; i < index.numel(); ++i) {
        if (idx[i] == padding || bag_of[i] < 0) continue;
        A* to = out + idx[i] * dim;
        const S* from = g + bag_of[i] * dim;
        cpu::add_scaled_row(elem, from + d0, double(f[i]), to + d0, d1 - d0);
      }
    });
  });
  if (!sum.is_same(k.out())) cpu::copy_elements(k.out(), sum);
}
// Zero where an index takes no part: the padding, and what is behind the last bag.
Tensor taken(const Tensor& index, const Tensor& bag, int64_t padding, const Tensor& value) {
  Tensor out = bag < 0;
  if (padding >= 0) out = out.logical_or(index == padding);
  return where(out, zeros({}, value.options()), value);
}
int vjp_bag_backward(const Grad& g) {
  Tensor index = g.in(1), bag = g.in(2), gg = g.dy(), dy = g.in(0);
  Mode mode = Mode(g.integer(7));
  if (mode == kMax) return grads(G(0) {
    Tensor at = g.in(4).to(kLong), v = gg.gather(0, at.clamp_min(0));
    return where(at < 0, zeros({}, v.options()), v); });
  Tensor some_bag = bag.clamp_min(0).to(kLong), factor = taken(index, bag, g.integer(9), ones({index.numel()}, gg.options()));
  if (mode == kMean) factor = factor / g.in(3).clamp_min(1).index_select(0, some_bag).to(gg.dtype());
  if (g.flag(6)) {
    Tensor count = embedding_dense_backward(ones({index.numel(), 1}, gg.options()), index, g.integer(5), -1, false);
    factor = factor / embedding(count, index).squeeze(1);
  }
  Tensor rows = embedding(gg, index);
  return grads(
      G(0) {
        Tensor f = g.in(8).defined() ? factor * g.in(8) : factor;
        return zeros_like(dy).index_add(0, some_bag, rows * f.unsqueeze(1)); },
      G(8) { return (rows * dy.index_select(0, some_bag)).sum({1}) * factor; });
}

// grad, weight, indices, offsets, offset2bag, mode, padding_idx.
void infer_sample_backward(InferCtx& c) {
  check_float(c, c.dtype_of(0));
  check_index_type(c, c.tensor(2), "indices");
  VESTA_CHECK(c.dim(0) == 2 && c.dim(1) == 2 && c.dim(2) == 1, c.name(), ": expected grad and weight with 2 dims and indices with 1");
  VESTA_CHECK(c.sizes(0)[1] == c.sizes(1)[1], c.name(), ": grad and weight differ in width");
  VESTA_CHECK_AS(TypeError, c.dtype_of(0) == c.dtype_of(1), c.name(), ": expected grad of weight's dtype, got ", dtype_name(c.dtype_of(0)));
  VESTA_CHECK(mode_of(c, 5) == kSum, c.name(), ": per_sample_weights need mode 0 (sum)");
  c.out(0, c.sizes(2), c.dtype_of(0), c.tensor(0).device());
}
void k_sample_backward(const KernelCtx& k) {
  Tensor dy = k.tensor(0).contiguous(), weight = k.tensor(1).contiguous();
  int64_t dim = weight.size(1), padding = k.integer(6), n = k.tensor(2).numel();
  Tensor index = checked(k, k.tensor(2), 0, weight.size(0), "index"), bag = checked(k, bags_of(k, k.tensor(4), k.tensor(3), n), -1, dy.size(0), "bag");
  auto *idx = index.data_ptr<int64_t>(), *bag_of = bag.data_ptr<int64_t>();
  with_type(k, dy.dtype(), [&]<class S, class A>(S, A) {
    const S *g = dy.data_ptr<S>(), *table = weight.data_ptr<S>();
    S* out = k.out().data_ptr<S>();
    parallel_for(0, n, std::max<int64_t>(1, kWork / std::max<int64_t>(1, dim)), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        A sum = 0;
        if (idx[i] != padding && bag_of[i] >= 0)
          for (int64_t d = 0; d < dim; ++d) sum += A(g[bag_of[i] * dim + d]) * A(table[idx[i] * dim + d]);
        out[i] = S(sum);
      }
    });
  });
}

int64_t wrapped_padding(const Args& a, int i) {
  if (!a.has(i)) return -1;
  int64_t rows = a.tensor(0).dim() > 0 ? a.tensor(0).size(0) : 0, p = a.integer(i);
  VESTA_CHECK_AS(IndexError, p >= -rows && p < rows, a.name(), ": padding_idx ", p, " is out of range for ", rows, " rows");
  return p < 0 ? p + rows : p;
}
Tensor as_tensor(std::initializer_list<int64_t> v) {
  Tensor t = empty_cpu({int64_t(v.size())}, kLong);
  std::copy(v.begin(), v.end(), t.data_ptr<int64_t>());
  return t;
}
int vjp_bag(const Grad& g) {
  return grads(
      G(0) {
        check_dense(g, g.flag(5));
        return _embedding_bag_dense_backward(g.dy(), g.in(1), g.out(1), g.out(2), g.out(3), g.sizes(0)[0], g.flag(3), g.integer(4), g.in(6), g.integer(8)); },
      G(6) { return _embedding_bag_per_sample_weights_backward(g.dy(), g.in(0), g.in(1), g.in(2), g.out(1), g.integer(4), g.integer(8)); });
}

constexpr OpDef table[] = {
OP("embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False) -> (Tensor, Tensor, Tensor, Tensor)",
  .types = any_types,
  .decompose = [](const Args& a) -> Results { return _embedding_bag(a.tensor(0), a.tensor(1), a.tensor(2), a.flag(3), a.integer(4), a.flag(5), a.tensor(6), a.flag(7)); },
  .non_diff_outputs = 14, .shard = {"replicate"}, .doc = "Sum (mode 0), mean (1) or maximum (2) of the rows of each bag; offsets say where the bags start in indices.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) for (int mode : {0, 1, 2}) s(s.t({5, 3}), s.index({6}, 5), as_tensor({0, 2, 2}), false, mode); }),
OP("embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, bool include_last_offset, int? padding_idx) -> (Tensor, Tensor, Tensor, Tensor)",
  .types = any_types,
  .decompose = [](const Args& a) -> Results { return _embedding_bag(a.tensor(0), a.tensor(1), a.tensor(2), a.flag(3), a.integer(4), a.flag(5), a.tensor(6), a.flag(7), wrapped_padding(a, 8)); },
  .non_diff_outputs = 14, .shard = {"replicate"}, .doc = "embedding_bag that leaves out the row padding_idx (negative: from the end).",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) for (int mode : {0, 1, 2}) s(s.t({5, 3}), s.index({6}, 5), as_tensor({0, 3}), false, mode, false, std::nullopt, false, -2); }),
OP("_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
  .forms = Out, .types = any_types, .infer = infer_bag, .kernels = {{Cpu, k_bag}},
  .save = {in(0).if_needs(6), in(1), in(2), in(6), out(1), out(2), out(3)}, .vjp = vjp_bag,
  .non_diff_outputs = 14, .shard = {"replicate"}, .doc = "The kernel of embedding_bag; also the bag of each index, the bags' sizes and the rows of the maxima (-1: none).",
  .samples = [](SampleGen& s) {
      if (!is_floating_point(s.dtype())) return;
      for (int mode : {0, 1, 2}) s(s.t({5, 3}), s.index({6}, 5), as_tensor({0, 2, 2}), false, mode);
      s(s.t({5, 3}), s.index({4}, 5), as_tensor({0, 1}), false, 0, false, s.t({4}), false, 2);
      s(s.t({5, 3}), s.index({4}, 5), as_tensor({0, 1, 3}), false, 1, false, std::nullopt, true, -1);
      s(s.t({5, 3}), s.index({0}, 5), as_tensor({0, 0}), false, 2); }),
OP("_embedding_bag_forward_only(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
  .forms = Out, .types = any_types, .infer = infer_bag, .kernels = {{Cpu, k_bag}},
  .non_differentiable = true, .shard = {"replicate"}, .doc = "_embedding_bag without a gradient.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) for (int mode : {0, 1, 2}) s(s.t({5, 3}), s.index({6}, 5), as_tensor({0, 2, 2}), false, mode); }),
OP("_embedding_bag_backward(Tensor grad, Tensor indices, Tensor offsets, Tensor offset2bag, Tensor bag_size, Tensor maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, int padding_idx=-1) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      check_dense(a, a.flag(9));
      check_index_type(a, a.tensor(1), "indices");
      Tensor bag = bags_of(a, a.tensor(3), a.tensor(2), a.tensor(1).numel());
      return _embedding_bag_dense_backward(a.tensor(0), a.tensor(1), bag, a.tensor(4), a.tensor(5), a.integer(6), a.flag(7), a.integer(8), a.tensor(10), a.integer(11)); },
  .shard = {"embedding-bwd"}, .doc = "Gradient of _embedding_bag in weight.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({2, 3}), as_tensor({1, 0, 2, 1}), as_tensor({0, 3}), as_tensor({0, 0, 0, 1}), as_tensor({3, 1}), as_tensor({0, 0}), 4, false, 1, false, std::nullopt); }),
OP("_embedding_bag_dense_backward(Tensor grad, Tensor indices, Tensor offset2bag, Tensor bag_size, Tensor maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, Tensor? per_sample_weights, int padding_idx=-1) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_bag_backward, .kernels = {{Cpu, k_bag_backward}},
  .save = {in(0), in(1), in(2), in(3), in(4), in(8)}, .vjp = vjp_bag_backward,
  .shard = {"embedding-bwd"}, .doc = "Dense gradient of _embedding_bag in weight.",
  .samples = [](SampleGen& s) {
      if (!is_floating_point(s.dtype())) return;
      s(s.t({2, 3}), as_tensor({1, 0, 2, 1}), as_tensor({0, 0, 0, 1}), as_tensor({3, 1}), as_tensor({0, 0}), 4, true, 1, std::nullopt);
      s(s.t({2, 3}), as_tensor({1, 0, 2, 1}), as_tensor({0, 0, 0, 1}), as_tensor({3, 1}), as_tensor({0, 0}), 4, false, 0, s.t({4}), 0);
      s(s.t({2, 2}), as_tensor({1, 0, 2}), as_tensor({0, 0, 1}), as_tensor({2, 1}), as_tensor({1, 0, 2, -1}).view({2, 2}), 3, false, 2, std::nullopt); }),
OP("_embedding_bag_per_sample_weights_backward(Tensor grad, Tensor weight, Tensor indices, Tensor offsets, Tensor offset2bag, int mode, int padding_idx=-1) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_sample_backward, .kernels = {{Cpu, k_sample_backward}},
  .save = {in(0), in(1), in(2), in(4)},
  .vjp = [](const Grad& g) {
      Tensor index = g.in(2), bag = g.in(4), dy = g.in(0), weight = g.in(1);
      Tensor some_bag = bag.clamp_min(0).to(kLong), gg = taken(index, bag, g.integer(6), g.dy()).unsqueeze(1);
      return grads(G(0) { return zeros_like(dy).index_add(0, some_bag, gg * embedding(weight, index)); },
                   G(1) { return embedding_dense_backward(gg * dy.index_select(0, some_bag), index, weight.size(0), -1, false); }); },
  .shard = {"embedding-bwd"}, .doc = "Gradient of _embedding_bag in per_sample_weights.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({2, 3}), s.t({4, 3}), as_tensor({1, 0, 2, 1}), as_tensor({0, 3}), as_tensor({0, 0, 0, 1}), 0, 2); }),
OP("embedding_renorm_(Tensor(a!) self, Tensor indices, float max_norm, float norm_type) -> Tensor(a!)",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      Tensor t = a.tensor(0);
      const Tensor& index = a.tensor(1);
      check_float(a, t.dtype());
      check_index_type(a, index, "indices");
      VESTA_CHECK(t.dim() == 2 && index.dim() <= 2, a.name(), ": expected self with 2 dims and indices with at most 2, got ", t.dim(), " and ", index.dim());
      VESTA_CHECK(a.number(2) >= 0, a.name(), ": expected max_norm >= 0, got ", a.number(2));
      // A row that is named twice is scaled once.
      Tensor rows = std::get<0>(_unique(index.reshape({-1}).to(kLong), true, false)), old = t.index_select(0, rows), length = norm(old, Scalar(a.number(3)), {1}, true);
      Tensor scale = where(length > a.number(2), a.number(2) / (length + 1e-7), ones({}, length.options()));
      t.index_copy_(0, rows, old * scale);
      return t; },
  .shard = {"decomp"}, .doc = "Scales the rows named by indices down to a norm of at most max_norm, in place.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { s(s.t({5, 3}), as_tensor({1, 3, 1}), 1.0, 2.0); s(s.t({5, 3}), as_tensor({1, 0, 2, 4}).view({2, 2}), 2.5, 1.0); } }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(embedding_bag, table)
