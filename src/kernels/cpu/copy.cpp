// Copies: memcpy runs, blocked transposition, or conversion through the compute type of the destination.
#include "kernels/cpu/copy.h"

#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/strided.h"

namespace vesta::cpu {
namespace {

constexpr int64_t kGrain = 32768, kChunk = 1024;
constexpr int64_t kShortRow = 512;  // bytes

// n times the element at src. This file is compiled for the baseline and -O2: memset and memcpy bring the wide stores.
template <class U>
void fill_run(char* dst, const char* src, int64_t n) {
  constexpr int64_t kPattern = 256, kSize = int64_t(sizeof(U));
  bool one_byte = true;
  for (int64_t i = 1; i < kSize; ++i) one_byte &= src[i] == src[0];
  if (one_byte) {
    std::memset(dst, src[0], size_t(n * kSize));
    return;
  }
  char pattern[kPattern];
  for (int64_t i = 0; i < kPattern; i += kSize) std::memcpy(pattern + i, src, size_t(kSize));
  int64_t bytes = n * kSize;
  for (; bytes >= kPattern; bytes -= kPattern, dst += kPattern) std::memcpy(dst, pattern, kPattern);
  std::memcpy(dst, pattern, size_t(bytes));
}

// A short run of known width: a call of memcpy would cost more than the copy.
inline void copy_short(char* dst, const char* src, int64_t bytes) {
  for (; bytes >= 16; bytes -= 16, dst += 16, src += 16) std::memcpy(dst, src, 16);
  if (bytes & 8) std::memcpy(dst, src, 8), dst += 8, src += 8;
  if (bytes & 4) std::memcpy(dst, src, 4), dst += 4, src += 4;
  if (bytes & 2) std::memcpy(dst, src, 2), dst += 2, src += 2;
  if (bytes & 1) *dst = *src;
}

// Of at least 16 bytes, in 16s; the last ones overlap.
inline void copy_blocks(char* dst, const char* src, int64_t bytes) {
  for (int64_t k = 0; k + 16 <= bytes; k += 16) std::memcpy(dst + k, src + k, 16);
  std::memcpy(dst + bytes - 16, src + bytes - 16, 16);
}

template <class U>
void strided_run(char* dst, int64_t dst_stride, const char* src, int64_t src_stride, int64_t n) {
  if (dst_stride == int64_t(sizeof(U)) && src_stride == 0) return fill_run<U>(dst, src, n);
  for (int64_t i = 0; i < n; ++i)
    *reinterpret_cast<U*>(dst + i * dst_stride) = *reinterpret_cast<const U*>(src + i * src_stride);
}
struct Wide {
  uint64_t lo, hi;
};

void move_run(int64_t element, char* dst, int64_t dst_stride, const char* src, int64_t src_stride,
              int64_t n) {
  if (dst_stride == element && src_stride == element) {
    int64_t bytes = n * element;
    if (bytes <= 64) return copy_short(dst, src, bytes);
    std::memcpy(dst, src, size_t(bytes));
    return;
  }
  switch (element) {
    case 1:
      return strided_run<uint8_t>(dst, dst_stride, src, src_stride, n);
    case 2:
      return strided_run<uint16_t>(dst, dst_stride, src, src_stride, n);
    case 4:
      return strided_run<uint32_t>(dst, dst_stride, src, src_stride, n);
    case 8:
      return strided_run<uint64_t>(dst, dst_stride, src, src_stride, n);
    default:
      return strided_run<Wide>(dst, dst_stride, src, src_stride, n);
  }
}

// Tile [j][i] of consecutive elements -> rows i of `dst`.
template <class U, int64_t kTile>
void store_transposed(const U (&tile)[kTile][kTile], char* dst, int64_t dst_row) {
  for (int64_t i = 0; i < kTile; ++i) {
    U row[kTile];
    for (int64_t j = 0; j < kTile; ++j) row[j] = tile[j][i];
    std::memcpy(dst + i * dst_row, row, sizeof(row));
  }
}
#if defined(__GNUC__) && !defined(__clang__)
// Four rows of four at a time by vector shuffles: four times the scalar loop's speed.
template <>
void store_transposed<uint32_t, 16>(const uint32_t (&tile)[16][16], char* dst, int64_t dst_row) {
  typedef uint32_t V __attribute__((vector_size(16)));
  for (int64_t i = 0; i < 16; i += 4) {
    V out[4][4];
    for (int64_t j = 0; j < 16; j += 4) {
      V a, b, c, d;
      std::memcpy(&a, &tile[j][i], 16);
      std::memcpy(&b, &tile[j + 1][i], 16);
      std::memcpy(&c, &tile[j + 2][i], 16);
      std::memcpy(&d, &tile[j + 3][i], 16);
      const V ab_low = __builtin_shuffle(a, b, V{0, 4, 1, 5}),
              ab_high = __builtin_shuffle(a, b, V{2, 6, 3, 7});
      const V cd_low = __builtin_shuffle(c, d, V{0, 4, 1, 5}),
              cd_high = __builtin_shuffle(c, d, V{2, 6, 3, 7});
      out[0][j / 4] = __builtin_shuffle(ab_low, cd_low, V{0, 1, 4, 5});
      out[1][j / 4] = __builtin_shuffle(ab_low, cd_low, V{2, 3, 6, 7});
      out[2][j / 4] = __builtin_shuffle(ab_high, cd_high, V{0, 1, 4, 5});
      out[3][j / 4] = __builtin_shuffle(ab_high, cd_high, V{2, 3, 6, 7});
    }
    for (int64_t k = 0; k < 4; ++k) std::memcpy(dst + (i + k) * dst_row, out[k], 64);
  }
}
#endif

// A 2-D piece whose source runs along the other dim. Tiles of one cache line a side go through a small buffer, so that
// each line is touched once: rows a power of two apart fall into one set of the cache and would evict each other.
template <class U>
void transpose_block(char* dst, int64_t dst_row, const char* src, int64_t src_col, int64_t rows,
                     int64_t cols) {
  constexpr int64_t kTile = 64 / int64_t(sizeof(U));
  for (int64_t c = 0; c < cols; c += kTile)
    for (int64_t r = 0; r < rows; r += kTile) {
      int64_t re = std::min(rows, r + kTile), ce = std::min(cols, c + kTile);
      char* to = dst + r * dst_row + c * int64_t(sizeof(U));
      const char* from = src + r * int64_t(sizeof(U)) + c * src_col;
      if (re - r == kTile && ce - c == kTile) {
        U tile[kTile][kTile];
        for (int64_t j = 0; j < kTile; ++j) std::memcpy(tile[j], from + j * src_col, sizeof(tile[j]));
        store_transposed(tile, to, dst_row);
        continue;
      }
      for (int64_t i = 0; i < re - r; ++i) {
        U* out = reinterpret_cast<U*>(to + i * dst_row);
        const char* in = from + i * int64_t(sizeof(U));
        for (int64_t j = 0; j < ce - c; ++j) out[j] = *reinterpret_cast<const U*>(in + j * src_col);
      }
    }
}

bool try_transpose(const StridedLoop& loop, int64_t element) {
  // dst: inner dim consecutive; src: dim 1 consecutive.
  if (loop.ndim < 2 || (element != 4 && element != 2 && element != 8)) return false;
  if (loop.strides[0][0] != element || loop.strides[1][1] != element || loop.sizes[0] < 8 ||
      loop.sizes[1] < 8)
    return false;
  int64_t plane = loop.sizes[0] * loop.sizes[1], planes = loop.numel / plane;
  int64_t bands = (loop.sizes[1] + 63) / 64;
  parallel_for(0, planes * bands, std::max<int64_t>(1, kGrain / (64 * loop.sizes[0])),
               [&](int64_t begin, int64_t end) {
                 for (int64_t b = begin; b < end; ++b) {
                   int64_t rest = b / bands, row = (b % bands) * 64;
                   char* dst = loop.data[0] + row * loop.strides[0][1];
                   const char* src = loop.data[1] + row * loop.strides[1][1];
                   for (int d = 2; d < loop.ndim; ++d) {
                     int64_t i = rest % loop.sizes[d];
                     rest /= loop.sizes[d];
                     dst += i * loop.strides[0][d];
                     src += i * loop.strides[1][d];
                   }
                   int64_t rows = std::min<int64_t>(64, loop.sizes[1] - row);
                   auto run = element == 4   ? transpose_block<uint32_t>
                              : element == 2 ? transpose_block<uint16_t>
                                             : transpose_block<uint64_t>;
                   run(dst, loop.strides[0][1], src, loop.strides[1][0], rows, loop.sizes[0]);
                 }
               });
  return true;
}

void copy_same_type(const StridedLoop& loop, int64_t element) {
  if (loop.numel == 0) return;
  if (loop.ndim == 0) {
    std::memcpy(loop.data[0], loop.data[1], size_t(element));
    return;
  }
  if (try_transpose(loop, element)) return;
  parallel_for(0, loop.numel, kGrain, [&](int64_t begin, int64_t end) {
    // One odometer for both operands, whose collapsed dims have equal runs.
    int64_t index[StridedLoop::kMaxDims], rest = begin;
    char* dst = loop.data[0];
    const char* src = loop.data[1];
    for (int d = 0; d < loop.ndim; ++d) {
      index[d] = rest % loop.sizes[d];
      rest /= loop.sizes[d];
      dst += index[d] * loop.strides[0][d];
      src += index[d] * loop.strides[1][d];
    }
    // Whole rows too short for a call of memcpy each: all of dim 1 in one loop.
    const int64_t row = loop.sizes[0] * element;
    const bool short_rows = loop.ndim > 1 && row >= 16 && row <= kShortRow && loop.strides[0][0] == element &&
                            loop.strides[1][0] == element;
    for (int64_t done = begin; done < end;) {
      if (short_rows && index[0] == 0) {
        const int64_t rows = std::min(loop.sizes[1] - index[1], (end - done) / loop.sizes[0]);
        for (int64_t r = 0; r < rows; ++r, dst += loop.strides[0][1], src += loop.strides[1][1])
          copy_blocks(dst, src, row);
        done += rows * loop.sizes[0];
        index[1] += rows;
        for (int d = 1; d + 1 < loop.ndim && index[d] == loop.sizes[d]; ++d) {
          index[d] = 0;
          ++index[d + 1];
          dst += loop.strides[0][d + 1] - loop.sizes[d] * loop.strides[0][d];
          src += loop.strides[1][d + 1] - loop.sizes[d] * loop.strides[1][d];
        }
        if (rows > 0) continue;
      }
      const int64_t n = std::min(loop.sizes[0] - index[0], end - done);
      move_run(element, dst, loop.strides[0][0], src, loop.strides[1][0], n);
      done += n;
      index[0] += n;
      dst += n * loop.strides[0][0];
      src += n * loop.strides[1][0];
      for (int d = 0; d + 1 < loop.ndim && index[d] == loop.sizes[d]; ++d) {
        index[d] = 0;
        ++index[d + 1];
        dst += loop.strides[0][d + 1] - loop.sizes[d] * loop.strides[0][d];
        src += loop.strides[1][d + 1] - loop.sizes[d] * loop.strides[1][d];
      }
    }
  });
}

void copy_converting(const StridedLoop& loop, DType to, DType from) {
  const ComputeType via = cast_type(from, to);
  const ConvertFn load = convert_table().load[int(from)][int(via)];
  const StoreFn store = convert_table().store[int(via)][int(to)];
  const int64_t in_size = int64_t(element_size(from)), out_size = int64_t(element_size(to));
  // A side that already consists of compute-type elements in order needs no buffer.
  const bool from_memory = is_compute_storage(from) && compute_type(from) == via && loop.packed(1, in_size);
  const bool to_memory = is_compute_storage(to) && compute_type(to) == via && loop.packed(0, out_size);
  parallel_for(0, loop.numel, kGrain, [&](int64_t begin, int64_t end) {
    alignas(64) char buffer[kChunk * 16];
    const int64_t width = compute_size(via);
    const int64_t in_stride = loop.ndim ? loop.strides[1][0] : 0,
                  out_stride = loop.ndim ? loop.strides[0][0] : 0;
    for (int64_t at = begin; at < end; at += kChunk) {
      const int64_t n = std::min(kChunk, end - at);
      char* values = from_memory ? loop.data[1] + at * in_size
                     : to_memory ? loop.data[0] + at * out_size
                                 : buffer;
      if (!from_memory)
        loop.runs(1, at, n,
                  [&](char* src, int64_t m, int64_t off) { load(src, in_stride, values + off * width, m); });
      if (from_memory || !to_memory)
        loop.runs(0, at, n, [&](char* dst, int64_t m, int64_t off) {
          store(values + off * width, dst, out_stride, m);
        });
    }
  });
}

}  // namespace

void copy_elements(const Tensor& dst, const Tensor& src) {
  VESTA_CHECK_AS(TypeError,
                 dst.dtype() == src.dtype() || (is_convertible(dst.dtype()) && is_convertible(src.dtype())),
                 "copy_: cannot cast ", dtype_name(src.dtype()), " to ", dtype_name(dst.dtype()),
                 "; view the pairs of 4-bit numbers as uint8");
  // In-place operators "copy" self to itself.
  if (dst.data_ptr() == src.data_ptr() && dst.dtype() == src.dtype() && dst.sizes() == src.sizes() &&
      dst.strides() == src.strides())
    return;
  StridedLoop loop;
  loop.set_shape(dst.sizes());
  loop.add(dst);
  loop.add(src);
  loop.collapse();
  if (dst.dtype() == src.dtype())
    copy_same_type(loop, int64_t(dst.element_size()));
  else
    copy_converting(loop, dst.dtype(), src.dtype());
}

void copy_loop(const StridedLoop& loop, int64_t element_bytes) { copy_same_type(loop, element_bytes); }

void fill_elements(const Tensor& dst, const Scalar& value) {
  DType to = dst.dtype();
  VESTA_CHECK_AS(TypeError, is_convertible(to), "fill_: cannot make ", dtype_name(to),
                 " of a number; view it as uint8");
  // The element in the destination's type, then a broadcast copy.
  std::complex<double> c = value.toComplexDouble();
  alignas(16) char element[16];
  DType from = value.isIntegral(true) ? DType::Int64 : DType::Complex128;
  ComputeType via = cast_type(from, to);
  if (from == DType::Int64) {
    int64_t i = value.raw_int();
    convert_table().load[int(from)][int(via)](&i, 8, element, 1);
  } else {
    convert_table().load[int(from)][int(via)](&c, 16, element, 1);
  }
  alignas(16) char stored[16];
  convert_table().store[int(via)][int(to)](element, stored, int64_t(dst.element_size()), 1);
  StridedLoop loop;
  loop.set_shape(dst.sizes());
  loop.add(dst);
  int k = loop.num_operands++;
  loop.data[k] = stored;
  std::fill_n(loop.strides[k], loop.ndim, 0);
  loop.collapse();
  copy_same_type(loop, int64_t(dst.element_size()));
}

bool may_overlap(const Tensor& a, const Tensor& b) {
  const TensorImpl *p = a.impl(), *q = b.impl();
  if (!p->storage || p->storage->data != q->storage->data || p->numel == 0 || q->numel == 0) return false;
  auto extent = [](const TensorImpl* t, const char*& lo, const char*& hi) {
    auto* m = const_cast<TensorImpl*>(t);
    lo = hi = static_cast<const char*>(t->data);
    for (int d = 0; d < t->ndim; ++d)
      hi += (m->sizes_data()[d] - 1) * m->strides_data()[d] * int64_t(element_size(t->dtype));
    hi += element_size(t->dtype);
  };
  const char *al, *ah, *bl, *bh;
  extent(p, al, ah);
  extent(q, bl, bh);
  return al < bh && bl < ah;
}

}  // namespace vesta::cpu
