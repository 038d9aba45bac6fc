// Checks and layouts shared by the indexing families.
#include "ops/index_kernels.h"

#include <atomic>
#include <limits>

#include "kernels/cpu/copy.h"
#include "kernels/cpu/rows.h"

namespace vesta {

int64_t first_outside(const int64_t* p, int64_t n, int64_t low, int64_t high) {
  std::atomic<bool> any{false};
  parallel_for(0, n, 65536, [&](int64_t begin, int64_t end) {
    int64_t least, largest;
    cpu::row_limits(p + begin, end - begin, &least, &largest);
    if (least < low || largest >= high) any.store(true, std::memory_order_relaxed);
  });
  int64_t k = any.load(std::memory_order_relaxed) ? 0 : n;
  while (k < n && p[k] >= low && p[k] < high) ++k;
  return k;
}

Tensor checked_index_list(const Args& a, const Tensor& index, int64_t size) {
  VESTA_CHECK_AS(TypeError, index.dtype() == kLong || index.dtype() == kInt, a.name(), ": expected int32 or int64 indices, got ",
                 dtype_name(index.dtype()));
  VESTA_CHECK_AS(IndexError, index.dim() <= 1, a.name(), ": expected indices with at most 1 dim, got ", index.dim());
  Tensor i = index.to(kLong).contiguous();
  const int64_t* p = i.data_ptr<int64_t>();
  int64_t bad = first_outside(p, i.numel(), 0, size);
  VESTA_CHECK_AS(IndexError, bad == i.numel(), a.name(), ": index ", p[bad], " is out of range for a dim of size ", size);
  return i;
}

AlongDim along_dim(const Args& a, const Tensor& self, int64_t d, const Tensor& index) {
  VESTA_CHECK_AS(TypeError, index.dtype() == kLong, a.name(), ": expected int64 indices, got ", dtype_name(index.dtype()));
  AlongDim w;
  w.keep = index.contiguous();
  w.index = w.keep.data_ptr<int64_t>();
  int64_t n = self.dim(), step = 1;
  std::vector<int64_t> strides(size_t(n), 1), index_strides(size_t(n), 1);
  for (int64_t e = n - 1; e >= 0; --e) strides[size_t(e)] = step, step *= self.size(e);
  step = 1;
  for (int64_t e = n - 1; e >= 0; --e) index_strides[size_t(e)] = step, step *= index.size(e);
  if (index.numel() == 0) {
    w.others = 0;
    return w;
  }
  w.size = self.size(d);
  w.length = index.size(d);
  w.dim_stride = strides[size_t(d)];
  w.index_dim_stride = index_strides[size_t(d)];
  w.column_stride = d == n - 1 ? 0 : 1;
  if (w.column_stride) w.columns = index.size(n - 1);
  for (int64_t e = 0; e < n; ++e) {
    if (e == d || (e == n - 1 && w.column_stride)) continue;
    w.others *= index.size(e);
    w.sizes.push_back(index.size(e));
    w.self_strides.push_back(strides[size_t(e)]);
    w.index_strides.push_back(index_strides[size_t(e)]);
  }
  return w;
}

bool AlongDim::all_below(const int64_t* p, int64_t n, int64_t high) {
  if (n < 32) {  // not worth the call
    bool ok = true;
    for (int64_t i = 0; i < n; ++i) ok &= uint64_t(p[i]) < uint64_t(high);
    return ok;
  }
  int64_t least, largest;
  cpu::row_limits(p, n, &least, &largest);
  return least >= 0 && largest < high;
}
void AlongDim::throw_outside(const Args& a, int64_t d) const {
  int64_t bad = first_outside(index, keep.numel(), 0, size);
  VESTA_CHECK_AS(IndexError, bad == keep.numel(), a.name(), ": index ", index[bad], " is out of range for dim ", d, " of size ", size);
}

Combine combine_named(const Args& a, std::string_view name, bool legacy) {
  if (legacy) {
    if (name == "add") return Combine::Sum;
    if (name == "multiply") return Combine::Prod;
    VESTA_CHECK(false, a.name(), ": expected reduce \"add\" or \"multiply\", got \"", name, "\"");
  }
  if (name == "sum" || name == "mean") return Combine::Sum;
  if (name == "prod") return Combine::Prod;
  if (name == "amax") return Combine::Max;
  VESTA_CHECK(name == "amin", a.name(), ": expected reduce sum, prod, mean, amax or amin, got \"", name, "\"");
  return Combine::Min;
}

Scalar combine_identity(Combine op, DType t) {
  if (op == Combine::Sum) return 0;
  if (op == Combine::Prod) return 1;
  bool largest = op == Combine::Min;
  if (is_floating_point(t)) return largest ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
  switch (t) {
    case kBool: return largest;
    case kUInt8: return largest ? 255 : 0;
    case kInt8: return largest ? 127 : -128;
    case kInt16: return largest ? 32767 : -32768;
    case kInt32: return largest ? std::numeric_limits<int32_t>::max() : std::numeric_limits<int32_t>::min();
    default: return largest ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
  }
}

void divide_by_counts(const Tensor& sums, const Tensor& counts) {
  if (!is_integral(sums.dtype(), true)) {
    cpu::copy_elements(sums, sums / counts.masked_fill(counts == 0, 1));
    return;
  }
  Tensor s = sums.to(kLong).contiguous(), c = counts.to(kLong).contiguous();
  int64_t *p = s.data_ptr<int64_t>(), *q = c.data_ptr<int64_t>();
  for (int64_t i = 0; i < s.numel(); ++i) {
    int64_t n = q[i] ? q[i] : 1, r = p[i] / n;
    p[i] = r - (p[i] % n < 0);
  }
  if (s.data_ptr() != sums.data_ptr()) cpu::copy_elements(sums, s);
}

}  // namespace vesta
