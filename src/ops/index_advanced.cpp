// Indexing by lists of tensors (index, index_put), boolean selection (masked_select, masked_scatter, nonzero) and flat
// positions (take, put). Boolean masks become positions first: their number depends on the data.
#include <cstring>

#include "base/checked_math.h"
#include "core/storage.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/rows.h"
#include "ops/index_kernels.h"
#include "ops/infer.h"

namespace vesta {
namespace {

using namespace op_block;

bool is_mask(const Tensor& t) { return t.dtype() == kBool || t.dtype() == kUInt8; }

// Masks replaced by one int64 tensor per masked dim; int32 indices widened.
std::vector<Tensor> without_masks(const Args& a, const Tensor& self, TensorList list) {
  std::vector<Tensor> r;
  for (auto& t : list) {
    if (!t.defined()) {
      r.push_back(t);
    } else if (is_mask(t)) {
      for (int64_t e = 0; e < t.dim(); ++e) {
        int64_t d = int64_t(r.size()) + e;
        VESTA_CHECK_AS(IndexError, d < self.dim() && t.size(e) == self.size(d), a.name(), ": the mask has size ", t.size(e), " at dim ", e,
                       ", self has ", d < self.dim() ? self.size(d) : 0, " at dim ", d);
      }
      // A 0-dim mask selects all or nothing of a new dim; nonzero gives it no column.
      Tensor where_set = t.nonzero();
      for (auto& column : where_set.unbind(1)) r.push_back(column);
    } else {
      VESTA_CHECK_AS(IndexError, t.dtype() == kLong || t.dtype() == kInt, a.name(), ": expected int64, int32 or bool indices, got ", dtype_name(t.dtype()));
      r.push_back(t.to(kLong));
    }
  }
  VESTA_CHECK_AS(IndexError, int64_t(r.size()) <= self.dim(), a.name(), ": ", r.size(), " indices for a tensor with ", self.dim(), " dims");
  return r;
}
bool any_mask(TensorList list) {
  for (auto& t : list)
    if (t.defined() && is_mask(t)) return true;
  return false;
}

// Where the indexed dims are and what they broadcast to.
struct IndexShape {
  std::vector<int64_t> dims;   // indexed dims, ascending
  std::vector<SymInt> points;  // broadcast shape of the index tensors
  bool adjacent = true;        // one run of dims: the points stay there; otherwise they come first
  std::vector<SymInt> result;
};
IndexShape index_shape(const Args& a, const Tensor& self, TensorList list) {
  IndexShape s;
  VESTA_CHECK_AS(IndexError, int64_t(list.size()) <= self.dim(), a.name(), ": ", list.size(), " indices for a tensor with ", self.dim(), " dims");
  for (size_t d = 0; d < list.size(); ++d) {
    if (!list[d].defined()) continue;
    VESTA_CHECK_AS(IndexError, list[d].dtype() == kLong || list[d].dtype() == kInt, a.name(), ": expected int64 or int32 indices, got ", dtype_name(list[d].dtype()));
    if (!s.dims.empty() && s.dims.back() + 1 != int64_t(d)) s.adjacent = false;
    s.dims.push_back(int64_t(d));
    auto sizes = InferCtx::sizes_of(list[d]);
    try {
      s.points = broadcast_sizes(a, s.points, sizes);
    } catch (const ValueError& e) {
      throw IndexError(e.what());
    }
  }
  auto sizes = InferCtx::sizes_of(self);
  size_t first = s.dims.empty() ? 0 : size_t(s.dims[0]);
  if (!s.adjacent) s.result = s.points;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (s.adjacent && !s.dims.empty() && d == first) s.result.insert(s.result.end(), s.points.begin(), s.points.end());
    bool indexed = d < list.size() && list[d].defined();
    if (!indexed) s.result.push_back(sizes[d]);
  }
  return s;
}
void infer_index(InferCtx& c) { c.out(0, index_shape(c, c.tensor(0), c.tensors(1)).result, c.dtype_of(0), c.tensor(0).device()); }
void infer_index_put(InferCtx& c) { c.out(0, c.sizes(0), c.dtype_of(0), c.tensor(0).device()); }

// Self as (outer, indexed..., inner) and the flat position of each point within the indexed dims, in units of inner.
struct Points {
  std::vector<int64_t> at;
  int64_t outer = 1, block = 1, inner = 1;  // block: product of the indexed dims
  std::vector<int64_t> order;               // permutation of self's dims that brings it into that form
  bool permuted = false;
};
Points points_of(const Args& a, const Tensor& self, TensorList list, const IndexShape& s) {
  Points p;
  std::vector<bool> indexed(size_t(self.dim()), false);
  for (int64_t d : s.dims) indexed[size_t(d)] = true;
  p.permuted = !s.adjacent;
  if (p.permuted) {
    for (int64_t d : s.dims) p.order.push_back(d);
    for (int64_t d = 0; d < self.dim(); ++d)
      if (!indexed[size_t(d)]) p.order.push_back(d), p.inner *= self.size(d);
  } else {
    for (int64_t d = 0; d < self.dim(); ++d)
      if (!indexed[size_t(d)]) (s.dims.empty() || d < s.dims[0] ? p.outer : p.inner) *= self.size(d);
  }
  std::vector<int64_t> shape;
  int64_t n = 1;
  for (auto v : s.points) shape.push_back(v.raw()), n *= v.raw();
  p.at.assign(size_t(n), 0);
  for (int64_t d : s.dims) {
    int64_t size = self.size(d);
    p.block *= size;
    Tensor t = list[size_t(d)].to(kLong).expand(shape).contiguous();
    const int64_t* idx = t.data_ptr<int64_t>();
    int64_t bad = first_outside(idx, n, -size, size);
    VESTA_CHECK_AS(IndexError, bad == n, a.name(), ": index ", idx[bad], " is out of range for dim ", d, " of size ", size);
    int64_t* at = p.at.data();
    for (int64_t i = 0; i < n; ++i) at[i] = at[i] * size + (idx[i] < 0 ? idx[i] + size : idx[i]);
  }
  return p;
}

void k_index(const KernelCtx& k) {
  Tensor self = k.tensor(0);
  IndexShape s = index_shape(k, self, k.tensors(1));
  Tensor& out = k.out();
  if (out.numel() == 0) {
    // The indices are still checked, unless there is nothing to index with.
    bool nothing = false;
    for (auto v : s.points) nothing |= v == 0;
    if (!nothing) points_of(k, self, k.tensors(1), s);
    return;
  }
  Points p = points_of(k, self, k.tensors(1), s);
  self = (p.permuted ? self.permute(p.order) : self).contiguous();
  int64_t n = int64_t(p.at.size()), run = p.inner * int64_t(self.element_size());
  if (p.inner > 1) {
    auto* from = static_cast<const char*>(self.data_ptr());
    auto* to = static_cast<char*>(out.data_ptr());
    parallel_for(0, p.outer * n, std::max<int64_t>(1, 65536 / run), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) std::memcpy(to + r * run, from + (r / n * p.block + p.at[size_t(r % n)]) * run, size_t(run));
    });
    return;
  }
  visit_size(self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = static_cast<const T*>(self.data_ptr());
    T* to = static_cast<T*>(out.data_ptr());
    parallel_for(0, p.outer * n, 16384, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) to[r] = from[r / n * p.block + p.at[size_t(r % n)]];
    });
  });
}

void k_index_put(const KernelCtx& k) {
  const Tensor &self = k.tensor(0), &values = k.tensor(2);
  bool accumulate = k.flag(3);
  VESTA_CHECK_AS(TypeError, values.dtype() == self.dtype(), k.name(), ": expected values of ", dtype_name(self.dtype()), ", got ", dtype_name(values.dtype()));
  IndexShape s = index_shape(k, self, k.tensors(1));
  std::vector<int64_t> shape;
  bool nothing = false;
  for (auto v : s.result) shape.push_back(v.raw());
  for (auto v : s.points) nothing |= v == 0;
  std::vector<int64_t> vs = values.sizes().vec();
  while (vs.size() > shape.size() && vs[0] == 1) vs.erase(vs.begin());
  VESTA_CHECK(vs.size() <= shape.size(), k.name(), ": values with ", values.dim(), " dims do not broadcast to the ", shape.size(), " dims that are indexed");
  for (size_t d = 0; d < vs.size(); ++d) {
    int64_t want = shape[shape.size() - vs.size() + d];
    VESTA_CHECK(vs[d] == want || vs[d] == 1, k.name(), ": values of size ", vs[d], " do not broadcast to ", want, " indexed elements");
  }
  Points p;
  if (!nothing) p = points_of(k, self, k.tensors(1), s);
  Tensor& out = k.out();
  if (nothing || out.numel() == 0) {
    cpu::copy_elements(out, self);
    return;
  }
  Tensor v = values.reshape(vs).expand(shape).contiguous();
  DType t = accumulate ? sum_dtype(self.dtype()) : self.dtype();
  bool direct = !p.permuted && t == self.dtype();
  Tensor to;
  if (direct) {
    cpu::copy_elements(out, self);
    to = out;
  } else {
    to = (p.permuted ? self.permute(p.order) : self).to(t).contiguous();
    if (to.data_ptr() == self.data_ptr()) to = to.clone();
    v = v.to(t);
  }
  int64_t n = int64_t(p.at.size());
  // One thread per (outer, run of inner): points of one run are written in order, so the last of equal points wins.
  int64_t chunk = row_piece(p.inner), chunks = (p.inner + chunk - 1) / chunk;
  auto write = [&](auto* dst, const auto* src, auto&& row) {
    if (p.inner == 1) {
      const int64_t* at = p.at.data();
      parallel_for(0, p.outer, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, n)), [&](int64_t begin, int64_t end) {
        for (int64_t o = begin; o < end; ++o)
          for (int64_t i = 0; i < n; ++i) row(dst + o * p.block + at[i], src + o * n + i, 1);
      });
      return;
    }
    parallel_for(0, p.outer * chunks, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, n * chunk)), [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        int64_t o = task / chunks, first = task % chunks * chunk, m = std::min(chunk, p.inner - first);
        for (int64_t i = 0; i < n; ++i)
          row(dst + (o * p.block + p.at[size_t(i)]) * p.inner + first, src + (o * n + i) * p.inner + first, m);
      }
    });
  };
  if (!accumulate) {
    visit_size(t, [&](auto tag) {
      using T = typename decltype(tag)::type;
      write(static_cast<T*>(to.data_ptr()), static_cast<const T*>(v.data_ptr()), [](T* d, const T* q, int64_t m) {
        if (m == 1) *d = *q;
        else std::memcpy(d, q, size_t(m) * sizeof(T));
      });
    });
  } else {
    visit_all(t, k.name(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (!std::is_same_v<T, Half> && !std::is_same_v<T, BFloat16>)
        write(to.data_ptr<T>(), static_cast<const T*>(v.data_ptr<T>()), [](T* d, const T* q, int64_t m) {
          if constexpr (std::is_floating_point_v<T>) {
            if (m > 1) return cpu::add_row(sizeof(T) == 8 ? cpu::Elem::F64 : cpu::Elem::F32, q, d, m);
          }
          for (int64_t j = 0; j < m; ++j) combine_into(Combine::Sum, d[j], q[j]);
        });
    });
  }
  if (!direct) {
    Tensor view = out;
    if (p.permuted) view = out.permute(p.order);
    cpu::copy_elements(view, to);
  }
}

// ---- boolean selection ----
int64_t count_set(const uint8_t* p, int64_t n) {
  int64_t count = 0, i = 0;
  for (; i + 8 <= n; i += 8) {
    uint64_t w;
    std::memcpy(&w, p + i, 8);
    w |= w >> 4, w |= w >> 2, w |= w >> 1;  // bit 0 of each byte: any of its bits
    constexpr uint64_t kOnes = 0x0101010101010101;
    count += int64_t((w & kOnes) * kOnes >> 56);  // the product's top byte is the sum of the bytes
  }
  for (; i < n; ++i) count += p[i] != 0;
  return count;
}
Tensor as_bool(const Tensor& t) { return (t.dtype() == kBool ? t : t.to(kBool)).contiguous(); }

// Elements set before each chunk of `chunk` elements, and their number at the end: where each chunk's results begin.
std::vector<int64_t> counts_before(const uint8_t* p, int64_t n, int64_t chunk) {
  int64_t chunks = (n + chunk - 1) / chunk;
  std::vector<int64_t> before(size_t(chunks + 1), 0);
  parallel_for(0, chunks, std::max<int64_t>(1, 65536 / chunk), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) before[size_t(c + 1)] = count_set(p + c * chunk, std::min(chunk, n - c * chunk));
  });
  for (int64_t c = 0; c < chunks; ++c) before[size_t(c + 1)] += before[size_t(c)];
  return before;
}

void k_nonzero(const KernelCtx& k) {
  Tensor t = as_bool(k.tensor(0));
  auto* p = static_cast<const uint8_t*>(t.data_ptr());
  int64_t n = t.numel(), nd = t.dim();
  if (nd == 0 || n == 0) {
    k.allocate(0, {count_set(p, n), nd}, kLong);
    return;
  }
  int64_t inner = t.size(nd - 1), rows = std::max<int64_t>(1, 16384 / inner);  // of a chunk
  std::vector<int64_t> before = counts_before(p, n, rows * inner);
  Tensor& out = k.allocate(0, {before.back(), nd}, kLong);
  if (out.numel() == 0) return;
  int64_t* result = out.data_ptr<int64_t>();
  auto write = [&](auto dims) {
    constexpr int64_t kDims = decltype(dims)::value;  // 0: any number
    parallel_for(0, int64_t(before.size()) - 1, 1, [&](int64_t begin, int64_t end) {
      std::vector<int64_t> index(static_cast<size_t>(nd));
      const int64_t width = kDims ? kDims : nd;
      for (int64_t c = begin; c < end; ++c) {
        int64_t *q = result + before[size_t(c)] * nd, *stop = result + before[size_t(c + 1)] * nd;
        for (int64_t row = c * rows; q < stop; ++row) {
          int64_t rest = row;
          for (int64_t d = nd - 2; d >= 0; --d) {
            index[size_t(d)] = rest % t.size(d);
            rest /= t.size(d);
          }
          // Written without a branch and kept where set: a branch on random bits costs more than the stores. `stop` is
          // reached with the chunk's last set element, so nothing is written behind it.
          const uint8_t* bits = p + row * inner;
          const int64_t first = index[0], second = index[size_t(nd > 1)];
          for (int64_t j = 0; j < inner && q < stop; ++j) {
            if constexpr (kDims == 0)
              for (int64_t d = 0; d + 1 < nd; ++d) q[d] = index[size_t(d)];
            if constexpr (kDims > 1) q[0] = first;
            if constexpr (kDims > 2) q[1] = second;
            q[width - 1] = j;
            q += bits[j] ? width : 0;
          }
        }
      }
    });
  };
  switch (nd) {
    case 1: return write(std::integral_constant<int64_t, 1>());
    case 2: return write(std::integral_constant<int64_t, 2>());
    case 3: return write(std::integral_constant<int64_t, 3>());
    default: return write(std::integral_constant<int64_t, 0>());
  }
}

void check_mask(const Args& a, const Tensor& mask) {
  VESTA_CHECK_AS(TypeError, is_mask(mask), a.name(), ": expected a bool mask, got ", dtype_name(mask.dtype()));
}
std::vector<int64_t> broadcast_shape(const Args& a, const Tensor& x, const Tensor& y) {
  std::vector<int64_t> r;
  for (auto s : broadcast_sizes(a, InferCtx::sizes_of(x), InferCtx::sizes_of(y))) r.push_back(s.as_int());
  return r;
}
void k_masked_select(const KernelCtx& k) {
  check_mask(k, k.tensor(1));
  auto shape = broadcast_shape(k, k.tensor(0), k.tensor(1));
  Tensor self = k.tensor(0).expand(shape).contiguous(), mask = as_bool(k.tensor(1)).expand(shape).contiguous();
  auto* m = static_cast<const uint8_t*>(mask.data_ptr());
  constexpr int64_t kChunk = 16384;
  std::vector<int64_t> before = counts_before(m, self.numel(), kChunk);
  Tensor& out = k.allocate(0, {before.back()}, self.dtype());
  visit_size(self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = static_cast<const T*>(self.data_ptr());
    T* result = static_cast<T*>(out.data_ptr());
    parallel_for(0, int64_t(before.size()) - 1, 1, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        // Without a branch on the mask; the last write of a chunk is its last set element.
        T *to = result + before[size_t(c)], *stop = result + before[size_t(c + 1)];
        for (int64_t i = c * kChunk; to < stop; ++i) {
          *to = from[i];
          to += m[i] != 0;
        }
      }
    });
  });
}
void infer_masked_scatter(InferCtx& c) {
  c.out(0, broadcast_sizes(c, c.sizes(0), c.sizes(1)), c.dtype_of(0), c.tensor(0).device());
}
void k_masked_scatter(const KernelCtx& k) {
  check_mask(k, k.tensor(1));
  VESTA_CHECK_AS(TypeError, k.tensor(0).dtype() == k.tensor(2).dtype(), k.name(), ": expected a source of ", dtype_name(k.tensor(0).dtype()), ", got ",
                 dtype_name(k.tensor(2).dtype()));
  Tensor& out = k.out();
  Tensor mask = as_bool(k.tensor(1)).expand(out.sizes()).contiguous(), source = k.tensor(2).contiguous();
  auto* m = static_cast<const uint8_t*>(mask.data_ptr());
  int64_t n = out.numel(), wanted = count_set(m, n);
  VESTA_CHECK(wanted <= source.numel(), k.name(), ": the mask selects ", wanted, " elements, the source has ", source.numel());
  cpu::copy_elements(out, k.tensor(0));
  visit_size(out.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = static_cast<const T*>(source.data_ptr());
    T* to = static_cast<T*>(out.data_ptr());
    for (int64_t i = 0; i < n; ++i)
      if (m[i]) to[i] = *from++;
  });
}

// ---- flat positions ----
Tensor flat_positions(const Args& a, const Tensor& index, int64_t n) {
  VESTA_CHECK_AS(TypeError, index.dtype() == kLong, a.name(), ": expected int64 indices, got ", dtype_name(index.dtype()));
  Tensor i = index.contiguous();
  if (i.data_ptr() == index.data_ptr()) i = i.clone();
  int64_t* p = i.data_ptr<int64_t>();
  for (int64_t k = 0; k < i.numel(); ++k) {
    VESTA_CHECK_AS(IndexError, p[k] >= -n && p[k] < n, a.name(), ": index ", p[k], " is out of range for ", n, " elements");
    if (p[k] < 0) p[k] += n;
  }
  return i;
}
void infer_take(InferCtx& c) { c.out(0, c.sizes(1), c.dtype_of(0), c.tensor(0).device()); }
void k_take(const KernelCtx& k) {
  Tensor index = flat_positions(k, k.tensor(1), k.tensor(0).numel());
  if (index.numel() == 0) return;
  Tensor self = k.tensor(0).contiguous();
  const int64_t* at = index.data_ptr<int64_t>();
  visit_size(self.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = static_cast<const T*>(self.data_ptr());
    T* to = static_cast<T*>(k.out().data_ptr());
    parallel_for(0, index.numel(), 16384, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = from[at[i]];
    });
  });
}
void k_put(const KernelCtx& k) {
  const Tensor &self = k.tensor(0), &source = k.tensor(2);
  VESTA_CHECK_AS(TypeError, source.dtype() == self.dtype(), k.name(), ": expected a source of ", dtype_name(self.dtype()), ", got ", dtype_name(source.dtype()));
  VESTA_CHECK(source.numel() == k.tensor(1).numel(), k.name(), ": ", k.tensor(1).numel(), " indices for ", source.numel(), " source elements");
  Tensor index = flat_positions(k, k.tensor(1), self.numel());
  Tensor& out = k.out();
  cpu::copy_elements(out, self);
  const int64_t* at = index.data_ptr<int64_t>();
  int64_t n = index.numel();
  if (!k.flag(3)) {
    Tensor src = source.contiguous();
    visit_size(out.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* from = static_cast<const T*>(src.data_ptr());
      T* to = static_cast<T*>(out.data_ptr());
      for (int64_t i = 0; i < n; ++i) to[at[i]] = from[i];
    });
    return;
  }
  DType t = sum_dtype(out.dtype());
  Tensor wide = out.to(t), src = source.to(t).contiguous();
  visit_all(t, k.name(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, Half> && !std::is_same_v<T, BFloat16>) {
      const T* from = src.data_ptr<T>();
      T* to = wide.data_ptr<T>();
      for (int64_t i = 0; i < n; ++i) combine_into(Combine::Sum, to[at[i]], from[i]);
    }
  });
  if (!wide.is_same(out)) cpu::copy_elements(out, wide);
}

// ---- gradients ----
// Sum over the dims that broadcasting to `sizes` repeated.
Tensor sum_values(const Tensor& t, IntArrayRef sizes) {
  std::vector<int64_t> s = sizes.vec();
  while (int64_t(s.size()) > t.dim() && s[0] == 1) s.erase(s.begin());
  return sum_to_size(t, s).reshape(sizes);
}
int vjp_index(const Grad& g) {
  return grads(G(0) { return zeros({}, g.dy().options()).expand(g.sizes(0)).index_put(g.in_list(1), g.dy(), true); });
}
int vjp_index_put(const Grad& g) {
  auto list = g.in_list(1);
  bool accumulate = g.flag(3);
  return grads(G(0) { return accumulate ? g.dy() : g.dy().index_put(list, zeros({}, g.dy().options()), false); },
               G(2) { return sum_values(index(g.dy(), list), g.sizes(2)); });
}
void index_samples(SampleGen& s) {
  s(s.t({4, 3}), std::vector<Tensor>{s.index({2, 2}, 4)});
  s(s.t({4, 3}), std::vector<Tensor>{s.index({5}, 4), s.index({5}, 3)});
  s(s.t({4, 3, 2}), std::vector<Tensor>{Tensor(), s.index({2}, 3)});
  s(s.t({4, 3, 2}), std::vector<Tensor>{s.index({2}, 4), Tensor(), s.index({3, 1}, 2)});
}
void index_put_samples(SampleGen& s) {
  s(s.t({4, 3}), std::vector<Tensor>{arange(2)}, s.t({2, 3}), false);
  s(s.t({4, 3}), std::vector<Tensor>{Tensor(), arange(2)}, s.t({2}), false);
  if (s.dtype() != kBool) s(s.t({4, 3, 2}), std::vector<Tensor>{s.index({5}, 4), Tensor(), s.index({5}, 2)}, s.t({5, 1}), true);
}

constexpr OpDef table[] = {
OP("_index_points(Tensor self, Tensor?[] indices) -> Tensor",
  .types = storage_types, .infer = infer_index, .kernels = {{Cpu, k_index}},
  .save = {in(1)}, .vjp = vjp_index,
  .shard = {"index"}, .doc = "index without boolean masks: the result's shape follows from the arguments' shapes.",
  .samples = index_samples),
OP("_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) -> Results { return index(a.tensor(0), a.tensors(1)); },
  .shard = {"index"}, .doc = "index; the indices are checked all the same.", .samples = index_samples),
OP("_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) -> Results { return index_put(a.tensor(0), a.tensors(1), a.tensor(2), a.flag(3)); },
  .shard = {"index-put"}, .doc = "index_put; the indices are checked all the same.", .samples = index_put_samples),
OP("index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
  .forms = Out, .types = any_types,
  .decompose = [](const Args& a) -> Results {
      if (any_mask(a.tensors(1))) return _index_points(a.tensor(0), without_masks(a, a.tensor(0), a.tensors(1)));
      return _index_points(a.tensor(0), a.tensors(1)); },
  .save = {in(1)}, .vjp = vjp_index,
  .shard = {"index"}, .doc = "Elements at broadcast index tensors (int or bool masks; None keeps a dim). Negative indices count from the end.",
  .samples = [](SampleGen& s) { index_samples(s); s(s.t({4, 3}), std::vector<Tensor>{s.mask({4, 3})}); s(s.t({4, 3}), std::vector<Tensor>{Tensor(), s.mask({3})}); }),
OP("_index_put_points(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
  .types = storage_types, .infer = infer_index_put, .kernels = {{Cpu, k_index_put}},
  .save = {in(1)}, .vjp = vjp_index_put,
  .shard = {"index-put"}, .doc = "index_put without boolean masks.",
  .samples = index_put_samples),
OP("index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
  .forms = InPlace | Out, .types = any_types,
  .decompose = [](const Args& a) -> Results {
      if (any_mask(a.tensors(1))) return _index_put_points(a.tensor(0), without_masks(a, a.tensor(0), a.tensors(1)), a.tensor(2), a.flag(3));
      return _index_put_points(a.tensor(0), a.tensors(1), a.tensor(2), a.flag(3)); },
  .save = {in(1)}, .vjp = vjp_index_put,
  .shard = {"index-put"}, .doc = "self with values written (or added) at broadcast index tensors; indices are checked before the first write.",
  .samples = [](SampleGen& s) { index_put_samples(s); s(s.t({4, 3}), std::vector<Tensor>{s.mask({4})}, s.t({}), false); }),
OP("_index_put_impl_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False, bool unsafe=False) -> Tensor(a!)",
  .types = any_types,
  .decompose = [](const Args& a) -> Results { return Tensor(a.tensor(0)).index_put_(a.tensors(1), a.tensor(2), a.flag(3)); },
  .shard = {"index-put"}, .doc = "index_put_ under the name that recorded graphs use.", .samples = index_put_samples),
OP("nonzero(Tensor self) -> Tensor",
  .forms = Out, .types = any_types, .kernels = {{Cpu, k_nonzero}}, .dynamic_out = true, .non_differentiable = true,
  .shard = Shard::replicate(), .doc = "Positions of the elements that are not 0, in row-major order: int64 [n, dim].",
  .samples = [](SampleGen& s) { s.unary(s.shapes()); }),
OP("argwhere(Tensor self) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results { return a.tensor(0).nonzero(); },
  .non_differentiable = true, .shard = Shard::replicate(), .doc = "nonzero.", .samples = [](SampleGen& s) { s.unary(s.shapes()); }),
OP("nonzero_numpy(Tensor self) -> Tensor[]",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      const Tensor& t = a.tensor(0);
      return (t.dim() ? t : t.unsqueeze(0)).nonzero().unbind(1); },
  .non_differentiable = true, .shard = Shard::replicate(), .doc = "Positions of the elements that are not 0, one tensor per dim.",
  .samples = [](SampleGen& s) { s.unary(s.shapes()); }),
OP("nonzero_static(Tensor self, *, int size, int fill_value=-1) -> Tensor",
  .types = any_types,
  .infer = [](InferCtx& c) { c.out(0, {SymInt(c.integer(1)), SymInt(int64_t(c.dim(0)))}, kLong, c.tensor(0).device()); },
  .kernels = {{Cpu, [](const KernelCtx& k) {
      VESTA_CHECK(k.integer(1) >= 0, "nonzero_static: expected a size >= 0, got ", k.integer(1));
      cpu::fill_elements(k.out(), k.integer(2));
      Tensor found = k.tensor(0).nonzero();
      int64_t n = std::min(found.size(0), k.integer(1));
      if (n) cpu::copy_elements(k.out().slice(0, 0, n), found.slice(0, 0, n)); }}},
  .non_differentiable = true, .shard = Shard::replicate(), .doc = "nonzero cut or filled up to `size` rows.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), 5); s(s.t({3, 4}), 20, -1); }),
OP("masked_select(Tensor self, Tensor mask) -> Tensor",
  .forms = Out, .types = storage_types, .kernels = {{Cpu, k_masked_select}}, .dynamic_out = true,
  .save = {in(0), in(1)},
  .vjp = [](const Grad& g) { return grads(G(0) { return masked_select_backward(g.dy(), g.in(0), g.in(1)); }); },
  .shard = Shard::replicate(), .doc = "The elements (after broadcasting) where mask is true, as one dim.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.mask({3, 4})); s(s.t({3, 4}), s.mask({4})); s(s.t({4}), s.mask({2, 4})); }),
OP("masked_select_backward(Tensor grad, Tensor input, Tensor mask) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      std::vector<int64_t> shape = broadcast_shape(a, a.tensor(1), a.tensor(2));
      return zeros(shape, a.tensor(0).options()).masked_scatter(a.tensor(2), a.tensor(0)); },
  .shard = Shard::replicate(), .doc = "Gradient of masked_select before broadcasting is undone: grad where mask is true, zeros elsewhere.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({6}), s.t({3, 2}), ones({3, 2}, TensorOptions(kBool))); }),
OP("masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
  .forms = InPlace | Out, .types = any_types, .infer = infer_masked_scatter, .kernels = {{Cpu, k_masked_scatter}},
  .save = {in(1)},
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy().masked_fill(g.in(1), 0); }, G(2) { return masked_scatter_backward(g.dy(), g.in(1), g.sizes(2)); }); },
  .shard = Shard::replicate(), .doc = "self with the elements of source, in order, where mask is true.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.mask({3, 4}), s.t({12})); s(s.t({3, 4}), s.mask({4}), s.t({3, 5})); }),
OP("masked_scatter_backward(Tensor grad_output, Tensor mask, int[] sizes) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      int64_t n = checked_numel({a.ints(2).begin(), a.ints(2).size()}, "masked_scatter_backward: sizes");
      Tensor picked = a.tensor(0).masked_select(a.tensor(1));
      int64_t missing = n - picked.numel();
      if (missing > 0) picked = cat({picked, zeros({missing}, picked.options())});
      return picked.view(a.ints(2)); },
  .shard = Shard::replicate(), .doc = "Gradient of masked_scatter's source: selected elements, then zeros.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.mask({3, 4}), std::vector<int64_t>{3, 4}); }),
OP("take(Tensor self, Tensor index) -> Tensor",
  .forms = Out, .types = storage_types, .infer = infer_take, .kernels = {{Cpu, k_take}},
  .save = {in(1)},
  .vjp = [](const Grad& g) { return grads(G(0) { return zeros(g.sizes(0), g.dy().options()).put(g.in(1), g.dy(), true); }); },
  .shard = Shard::replicate(), .doc = "Elements at flat positions, in the index's shape.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.index({2, 2}, 12)); s(s.t({}), s.index({2}, 1)); }),
OP("put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
  .forms = InPlace | Out, .types = any_types, .infer = infer_index_put, .kernels = {{Cpu, k_put}},
  .save = {in(1)},
  .vjp = [](const Grad& g) { return grads(G(0) { return g.flag(3) ? g.dy() : g.dy().put(g.in(1), zeros(g.sizes(2), g.dy().options()), false); },
                                          G(2) { return g.dy().take(g.in(1)).reshape(g.sizes(2)); }); },
  .shard = Shard::replicate(), .doc = "self with source written (or added) at flat positions.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), Tensor(arange(3)), s.t({3})); if (s.dtype() != kBool) s(s.t({3, 4}), s.index({5}, 12), s.t({5}), true); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(index_advanced, table)
