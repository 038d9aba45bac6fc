#pragma once
// What the indexing families share: positions of 1-D index lists, the walk of gather and scatter, and element sums.
// An IndexError leaves memory that others see as it was.
#include <algorithm>
#include <atomic>
#include <vector>

#include "base/thread_pool.h"
#include "ops/visit.h"
#include "vesta/op.h"

namespace vesta {

// A contiguous tensor seen as (outer, size, inner) around dim d; a 0-dim tensor is (1, 1, 1).
struct DimSplit {
  int64_t outer = 1, size = 1, inner = 1;
};
inline DimSplit split_at(const Tensor& t, int64_t d) {
  DimSplit s;
  for (int64_t e = 0; e < t.dim(); ++e) (e < d ? s.outer : e == d ? s.size : s.inner) *= t.size(e);
  return s;
}

// Rows of `inner` elements that several entries may write are cut into pieces of whole cache lines, one thread each: the
// entries of a piece come in order. About four pieces a row, so that few rows keep several threads busy.
inline int64_t row_piece(int64_t inner) {
  int64_t piece = std::clamp<int64_t>((inner + 3) / 4, 16, 4096);
  return std::max<int64_t>(1, std::min((piece + 15) / 16 * 16, inner));
}

// Position of the first of n numbers that does not lie in [low, high), or n. In parallel; the comparison is the only read
// of long index lists that cannot be avoided.
int64_t first_outside(const int64_t* p, int64_t n, int64_t low, int64_t high);

// Contiguous int64 indices, checked to lie in [0, size).
Tensor checked_index_list(const Args& a, const Tensor& index, int64_t size);

// The walk of gather and scatter over an index tensor. Positions along dim d of self come from the index; the other
// coordinates are those of the index. `run(idx, self_base, at, n)` handles n consecutive index elements idx[0..n):
// element k is self[self_base + idx[k] * dim_stride + k * column_stride], and has position at + k in the index's shape.
// Runs that can meet the same self element come in order from one thread, unless `independent`.
struct AlongDim {
  const int64_t* index = nullptr;
  int64_t size = 0;         // of self along d
  int64_t dim_stride = 1, column_stride = 0;
  int64_t others = 1;       // number of coordinate sets besides d (and the columns)
  int64_t length = 1;       // of the index along d
  int64_t columns = 1;      // consecutive elements where d is not the last dim
  std::vector<int64_t> sizes, self_strides, index_strides;  // of the other dims, outermost first
  int64_t index_dim_stride = 1;
  Tensor keep;

  // Each run's indices are checked just before it, while they are in the cache: one with an index out of range is left
  // out, and an IndexError follows. What `run` writes must be memory that the error throws away, such as a kernel's result.
  template <class Run>
  void each(const Args& a, int64_t d, bool independent, Run&& run) const {
    constexpr int64_t kRun = 2048;  // indices
    bool last = column_stride == 0;
    std::atomic<bool> outside{false};
    auto checked_run = [&](const int64_t* idx, int64_t base, int64_t at, int64_t n) {
      if (all_below(idx, n, size)) run(idx, base, at, n);
      else outside.store(true, std::memory_order_relaxed);
    };
    int64_t chunk = last ? (independent ? std::min(length, kRun) : length) : std::min<int64_t>(columns, 1024);
    int64_t chunks = ((last ? length : columns) + chunk - 1) / chunk;
    int64_t work = std::max<int64_t>(1, last ? chunk : length * chunk);
    parallel_for(0, others * chunks, std::max<int64_t>(1, 16384 / work), [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        int64_t rest = task / chunks, first = task % chunks * chunk, base = 0, at = 0;
        for (size_t e = sizes.size(); e-- > 0;) {
          int64_t i = rest % sizes[e];
          rest /= sizes[e];
          base += i * self_strides[e];
          at += i * index_strides[e];
        }
        if (last) {
          for (int64_t i = first, stop = std::min(length, first + chunk); i < stop; i += kRun)
            checked_run(index + at + i, base, at + i, std::min(kRun, stop - i));
        } else {
          int64_t n = std::min(chunk, columns - first);
          for (int64_t i = 0; i < length; ++i) {
            int64_t p = at + i * index_dim_stride + first;
            checked_run(index + p, base + first, p, n);
          }
        }
      }
    });
    if (outside.load(std::memory_order_relaxed)) throw_outside(a, d);
  }

 private:
  static bool all_below(const int64_t* p, int64_t n, int64_t high);
  void throw_outside(const Args& a, int64_t d) const;  // names the first index out of range
};
// self and index have equal dims; index may be shorter in every dim but d, where it is free. The indices' range is checked
// by the walk.
AlongDim along_dim(const Args& a, const Tensor& self, int64_t d, const Tensor& index);

// A tensor with at least one dim.
inline Tensor at_least_1d(const Tensor& t) { return t.dim() ? t : t.unsqueeze(0); }
// Half types are added up in float32.
inline DType sum_dtype(DType t) { return t == kHalf || t == kBFloat16 ? kFloat : t; }

enum class Combine : uint8_t { Sum, Prod, Max, Min };
template <class T>
inline void combine_into(Combine op, T& to, T v) {
  if constexpr (std::is_same_v<T, bool>) {
    to = op == Combine::Sum || op == Combine::Max ? to || v : to && v;
  } else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
    if (op == Combine::Prod) to *= v;
    else to += v;
  } else {
    switch (op) {
      case Combine::Sum: to = T(to + v); break;
      case Combine::Prod: to = T(to * v); break;
      case Combine::Max: if (is_nan(v) || (!is_nan(to) && comparable(v) > comparable(to))) to = v; break;
      case Combine::Min: if (is_nan(v) || (!is_nan(to) && comparable(v) < comparable(to))) to = v; break;
    }
  }
}
// Reductions by name: sum, prod (also "add", "multiply"), mean (as a sum), amax, amin.
Combine combine_named(const Args& a, std::string_view name, bool legacy);
// Start value of a reduction that leaves self out.
Scalar combine_identity(Combine op, DType t);

// sums / counts in place, counts of 0 taken as 1; integers divide with floor.
void divide_by_counts(const Tensor& sums, const Tensor& counts);

}  // namespace vesta
