// Windowed sums, row by row. The input rows of an output row's window in the two outer dims are added up first, in one
// contiguous vector loop; the sum's columns then go into the outputs. A window of k x k elements thus costs k vector
// additions and k scalar ones an output instead of k * k.
#include "kernels/cpu/resample.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/thread_pool.h"
#include "kernels/cpu/scratch.h"

namespace vesta::cpu::VESTA_ISA {
namespace {

constexpr int64_t kWork = 16384;  // additions a parallel chunk
constexpr int64_t kNarrow = 4;    // columns of a window up to which outputs are gathered column by column

int64_t longest(const Taps& t) {
  int64_t n = 1;
  for (size_t o = 0; o < t.begin.size(); ++o) n = std::max(n, t.end[o] - t.begin[o]);
  return n;
}

template <class A>
std::vector<A> as_type(const std::vector<double>& v) {
  return std::vector<A>(v.begin(), v.end());
}

// Windows [first + o * stride, + size) for the outputs o in [from, to): most of average pooling's.
struct Regular {
  int64_t from = 0, to = 0, first = 0, stride = 1, size = 0;
};
Regular regular_part(const Taps& t) {
  Regular r;
  const int64_t n = t.count();
  r.size = longest(t);
  while (r.from < n && t.end[size_t(r.from)] - t.begin[size_t(r.from)] != r.size) ++r.from;
  if (r.from >= n) return r.to = r.from, r;
  r.first = t.begin[size_t(r.from)];
  r.to = r.from + 1;
  if (r.to < n) r.stride = t.begin[size_t(r.to)] - r.first;
  while (r.to < n && t.begin[size_t(r.to)] == r.first + (r.to - r.from) * r.stride &&
         t.end[size_t(r.to)] - t.begin[size_t(r.to)] == r.size)
    ++r.to;
  return r;
}

template <class A, int kStride>
void add_strided(const A* row, A* out, int64_t n, int64_t stride) {
  const int64_t s = kStride ? kStride : stride;
  for (int64_t o = 0; o < n; ++o) out[o] += row[o * s];
}

template <class A>
class Sums {
 public:
  Sums(const A* x, A* y, const Resample& r) : x_(x), y_(y), r_(r), regular_(regular_part(r.taps[2])) {
    for (int d = 0; d < 3; ++d) weight_[d] = as_type<A>(r.taps[d].weight);
    if constexpr (std::is_floating_point_v<A>) {
      const bool regular = r.taps[2].weight.empty() && regular_.to - regular_.from >= 4;
      if (r.inner == 1 && !regular && longest(r.taps[2]) <= kNarrow && r.in[2] < (int64_t(1) << 31)) narrow();
    }
  }

  void run() {
    const int64_t rows = r_.outer * r_.out[0] * r_.out[1], width = r_.in[2] * r_.inner;
    const int64_t work =
        width * longest(r_.taps[0]) * longest(r_.taps[1]) + r_.out[2] * r_.inner * longest(r_.taps[2]);
    if (rows <= 0 || r_.out[2] * r_.inner <= 0) return;
    parallel_for(0, rows, std::max<int64_t>(1, kWork / std::max<int64_t>(1, work)),
                 [&](int64_t begin, int64_t end) {
                   A* sum = static_cast<A*>(thread_scratch(size_t(width + 1) * sizeof(A)));
                   for (int64_t u = begin; u < end; ++u) {
                     if (u > begin && same_window(u))
                       std::copy_n(y_ + (u - 1) * r_.out[2] * r_.inner, r_.out[2] * r_.inner,
                                   y_ + u * r_.out[2] * r_.inner);
                     else
                       row(u, sum);
                   }
                 });
  }

 private:
  // Whether row u has the same sums as row u - 1: gradients of disjoint windows, nearest neighbours.
  bool same_window(int64_t u) const {
    const int64_t o = u % r_.out[1];
    const Taps& t = r_.taps[1];
    return o > 0 && t.weight.empty() && r_.out_divisor[0].empty() &&
           t.begin[size_t(o)] == t.begin[size_t(o - 1)] && t.end[size_t(o)] == t.end[size_t(o - 1)];
  }

  // Column j of every output's window, and its weight. A window of fewer columns repeats its last one, with the weight
  // split in halves, which changes nothing (a weight of 0 would make NaN of an infinite element).
  void narrow() {
    const Taps& t = r_.taps[2];
    const int64_t most = longest(t);
    columns_.resize(size_t(most));
    factors_.resize(size_t(most));
    for (int64_t o = 0; o < r_.out[2]; ++o) {
      const int64_t b = t.begin[size_t(o)], n = t.end[size_t(o)] - b;
      if (n <= 0) empty_.push_back(o);
      for (int64_t j = 0; j < most; ++j) {
        A w = 0;
        if (n > 0) {
          w = weight_at(2, o, std::min(j, n - 1));
          const int64_t halvings = j < n - 1 ? 0 : j < most - 1 ? j - n + 2 : most - n;
          for (int64_t h = 0; h < halvings; ++h) w /= 2;
        }
        columns_[size_t(j)].push_back(int32_t(n > 0 ? b + std::min(j, n - 1) : 0));
        factors_[size_t(j)].push_back(w);
      }
    }
  }

  void row(int64_t u, A* sum) {
    const int64_t o1 = u % r_.out[1], o0 = u / r_.out[1] % r_.out[0], outer = u / (r_.out[1] * r_.out[0]);
    const int64_t width = r_.in[2] * r_.inner;
    const Taps &t0 = r_.taps[0], &t1 = r_.taps[1];
    const int64_t b0 = t0.begin[size_t(o0)], e0 = t0.end[size_t(o0)];
    const int64_t b1 = t1.begin[size_t(o1)], e1 = t1.end[size_t(o1)];
    const A* total = nullptr;
    bool empty = true;
    const bool pair = e0 - b0 == 1 && e1 - b1 == 2 && r_.in_divisor[0].empty();
    if (pair) {
      // The commonest case: two rows, of interpolation or 2 x 2 means.
      const A *low = x_ + ((outer * r_.in[0] + b0) * r_.in[1] + b1) * width, *high = low + width;
      const A w0 = weight_at(0, o0, 0), w_low = w0 * weight_at(1, o1, 0), w_high = w0 * weight_at(1, o1, 1);
      for (int64_t i = 0; i < width; ++i) sum[i] = w_low * low[i] + w_high * high[i];
      total = sum;
      empty = false;
    }
    for (int64_t i0 = b0; i0 < (pair ? b0 : e0); ++i0)
      for (int64_t i1 = b1; i1 < e1; ++i1) {
        const A* in = x_ + ((outer * r_.in[0] + i0) * r_.in[1] + i1) * width;
        const A w = weight_at(0, o0, i0 - b0) * weight_at(1, o1, i1 - b1);
        const bool only = e0 - b0 == 1 && e1 - b1 == 1 && w == A(1) && r_.in_divisor[0].empty();
        if (only) {
          total = in;
        } else {
          add_row(in, sum, width, w, i0, i1, empty);
          total = sum;
        }
        empty = false;
      }
    A* out = y_ + u * r_.out[2] * r_.inner;
    if (empty) return std::fill(out, out + r_.out[2] * r_.inner, A(0));
    if (r_.inner == 1)
      columns(total, out);
    else
      channel_columns(total, out);
    if (!r_.out_divisor[0].empty()) divide(out, o0, o1);
  }

  A weight_at(int d, int64_t o, int64_t j) const {
    return weight_[d].empty() ? A(1) : weight_[d][size_t(r_.taps[d].offset[size_t(o)] + j)];
  }

  void add_row(const A* in, A* sum, int64_t width, A w, int64_t i0, int64_t i1, bool first) {
    if (!r_.in_divisor[0].empty()) {
      const A outer = A(r_.in_divisor[0][size_t(i0)]) * A(r_.in_divisor[1][size_t(i1)]);
      for (int64_t i = 0; i < r_.in[2]; ++i) {
        const A divisor = outer * A(r_.in_divisor[2][size_t(i)]);
        const A* from = in + i * r_.inner;
        A* to = sum + i * r_.inner;
        if (first)
          for (int64_t c = 0; c < r_.inner; ++c) to[c] = from[c] / divisor;
        else
          for (int64_t c = 0; c < r_.inner; ++c) to[c] += from[c] / divisor;
      }
    } else if (w == A(1)) {
      if (first)
        std::copy(in, in + width, sum);
      else
        for (int64_t i = 0; i < width; ++i) sum[i] += in[i];
    } else if (first) {
      for (int64_t i = 0; i < width; ++i) sum[i] = w * in[i];
    } else {
      for (int64_t i = 0; i < width; ++i) sum[i] += w * in[i];
    }
  }

  A one_column(const A* sum, int64_t o) const {
    const Taps& t = r_.taps[2];
    const int64_t b = t.begin[size_t(o)], n = t.end[size_t(o)] - b;
    A s = 0;
    if (t.weight.empty()) {
      for (int64_t j = 0; j < n; ++j) s += sum[b + j];
    } else {
      const A* w = weight_[2].data() + t.offset[size_t(o)];
      for (int64_t j = 0; j < n; ++j) s += w[j] * sum[b + j];
    }
    return s;
  }
  void columns(const A* sum, A* out) const {
    if (!columns_.empty()) {
      const int64_t n = r_.out[2];
      for (size_t j = 0; j < columns_.size(); ++j) {
        const int32_t* column = columns_[j].data();
        const A* factor = factors_[j].data();
        if (j == 0)
          for (int64_t o = 0; o < n; ++o) out[o] = factor[o] * sum[column[o]];
        else
          for (int64_t o = 0; o < n; ++o) out[o] += factor[o] * sum[column[o]];
      }
      for (const int64_t o : empty_) out[o] = 0;
      return;
    }
    const bool regular = r_.taps[2].weight.empty() && regular_.to - regular_.from >= 4;
    const int64_t from = regular ? regular_.from : r_.out[2], to = regular ? regular_.to : r_.out[2];
    for (int64_t o = 0; o < from; ++o) out[o] = one_column(sum, o);
    for (int64_t o = to; o < r_.out[2]; ++o) out[o] = one_column(sum, o);
    if (!regular) return;
    std::fill(out + from, out + to, A(0));
    for (int64_t j = 0; j < regular_.size; ++j) {
      const A* at = sum + regular_.first + j;
      switch (regular_.stride) {
        case 1:
          add_strided<A, 1>(at, out + from, to - from, 1);
          break;
        case 2:
          add_strided<A, 2>(at, out + from, to - from, 2);
          break;
        default:
          add_strided<A, 0>(at, out + from, to - from, regular_.stride);
      }
    }
  }
  void channel_columns(const A* sum, A* out) const {
    const Taps& t = r_.taps[2];
    const int64_t channels = r_.inner;
    for (int64_t o = 0; o < r_.out[2]; ++o) {
      const int64_t b = t.begin[size_t(o)], e = t.end[size_t(o)];
      A* to = out + o * channels;
      if (b >= e) std::fill(to, to + channels, A(0));
      if (e - b == 2) {
        const A *low = sum + b * channels, *high = low + channels;
        const A w_low = weight_at(2, o, 0), w_high = weight_at(2, o, 1);
        for (int64_t c = 0; c < channels; ++c) to[c] = w_low * low[c] + w_high * high[c];
        continue;
      }
      for (int64_t i = b; i < e; ++i) {
        const A* from = sum + i * channels;
        const A w = weight_at(2, o, i - b);
        if (i == b)
          for (int64_t c = 0; c < channels; ++c) to[c] = w * from[c];
        else
          for (int64_t c = 0; c < channels; ++c) to[c] += w * from[c];
      }
    }
  }
  void divide(A* out, int64_t o0, int64_t o1) const {
    const A outer = A(r_.out_divisor[0][size_t(o0)]) * A(r_.out_divisor[1][size_t(o1)]);
    for (int64_t o = 0; o < r_.out[2]; ++o) {
      const A divisor = outer * A(r_.out_divisor[2][size_t(o)]);
      A* to = out + o * r_.inner;
      if constexpr (!std::is_floating_point_v<A>) {
        // Integer divisions that trap: by a product that wrapped to 0, and of the lowest number by -1.
        if (divisor == 0 || divisor == -1) {
          for (int64_t c = 0; c < r_.inner; ++c) to[c] = divisor == 0 ? A(0) : A(0) - to[c];
          continue;
        }
      }
      for (int64_t c = 0; c < r_.inner; ++c) to[c] /= divisor;
    }
  }

  const A* x_;
  A* y_;
  const Resample& r_;
  Regular regular_;
  std::vector<A> weight_[3];
  std::vector<std::vector<int32_t>> columns_;  // [column of the window][output]; empty: not narrow
  std::vector<std::vector<A>> factors_;
  std::vector<int64_t> empty_;
};

void sums(Elem type, const void* x, void* y, const Resample& r) {
  switch (type) {
    case Elem::F32:
      return Sums<float>(static_cast<const float*>(x), static_cast<float*>(y), r).run();
    case Elem::F64:
      return Sums<double>(static_cast<const double*>(x), static_cast<double*>(y), r).run();
    case Elem::I64:
      return Sums<int64_t>(static_cast<const int64_t*>(x), static_cast<int64_t*>(y), r).run();
    default:
      return;
  }
}

template <class T>
void pick_typed(const T* x, T* y, const Resample& r) {
  const int64_t rows = r.outer * r.out[0] * r.out[1], width = r.out[2] * r.inner;
  if (rows <= 0 || width <= 0) return;
  const int64_t* column = r.taps[2].begin.data();
  parallel_for(0, rows, std::max<int64_t>(1, kWork / width), [&](int64_t begin, int64_t end) {
    for (int64_t u = begin; u < end; ++u) {
      const int64_t i1 = r.taps[1].begin[size_t(u % r.out[1])];
      const int64_t i0 = r.taps[0].begin[size_t(u / r.out[1] % r.out[0])];
      const int64_t outer = u / (r.out[1] * r.out[0]);
      const T* in = x + ((outer * r.in[0] + i0) * r.in[1] + i1) * r.in[2] * r.inner;
      T* out = y + u * width;
      if (r.inner == 1)
        for (int64_t o = 0; o < r.out[2]; ++o) out[o] = in[column[o]];
      else
        for (int64_t o = 0; o < r.out[2]; ++o)
          std::memcpy(out + o * r.inner, in + column[o] * r.inner, size_t(r.inner) * sizeof(T));
    }
  });
}

void pick(size_t bytes, const void* x, void* y, const Resample& r) {
  switch (bytes) {
    case 1:
      return pick_typed(static_cast<const uint8_t*>(x), static_cast<uint8_t*>(y), r);
    case 2:
      return pick_typed(static_cast<const uint16_t*>(x), static_cast<uint16_t*>(y), r);
    case 4:
      return pick_typed(static_cast<const uint32_t*>(x), static_cast<uint32_t*>(y), r);
    case 8:
      return pick_typed(static_cast<const uint64_t*>(x), static_cast<uint64_t*>(y), r);
    default:
      return;
  }
}

}  // namespace

extern const ResampleTable kResampleTable;
const ResampleTable kResampleTable = {sums, pick};

}  // namespace vesta::cpu::VESTA_ISA
