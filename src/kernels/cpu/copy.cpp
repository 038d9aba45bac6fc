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

template <class U>
void strided_run(char* dst, int64_t dst_stride, const char* src, int64_t src_stride, int64_t n) {
  if (dst_stride == int64_t(sizeof(U)) && src_stride == 0) {
    std::fill_n(reinterpret_cast<U*>(dst), n, *reinterpret_cast<const U*>(src));
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    *reinterpret_cast<U*>(dst + i * dst_stride) = *reinterpret_cast<const U*>(src + i * src_stride);
}
struct Wide {
  uint64_t lo, hi;
};

void move_run(int64_t element, char* dst, int64_t dst_stride, const char* src, int64_t src_stride,
              int64_t n) {
  if (dst_stride == element && src_stride == element) {
    std::memcpy(dst, src, size_t(n * element));
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

// A 2-D piece whose source runs along the other dim: blocks keep both sides in cache.
template <class U>
void transpose_block(char* dst, int64_t dst_row, const char* src, int64_t src_col, int64_t rows,
                     int64_t cols) {
  constexpr int64_t kTile = 16;
  for (int64_t r = 0; r < rows; r += kTile)
    for (int64_t c = 0; c < cols; c += kTile) {
      int64_t re = std::min(rows, r + kTile), ce = std::min(cols, c + kTile);
      for (int64_t i = r; i < re; ++i) {
        U* out = reinterpret_cast<U*>(dst + i * dst_row);
        const char* in = src + i * int64_t(sizeof(U));
        for (int64_t j = c; j < ce; ++j) out[j] = *reinterpret_cast<const U*>(in + j * src_col);
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
    // Walk both operands' runs together: collapsed dims give them equal inner lengths.
    int64_t at = begin;
    loop.runs(0, begin, end - begin, [&](char* dst, int64_t n, int64_t) {
      loop.runs(1, at, n, [&](char* src, int64_t m, int64_t off) {
        move_run(element, dst + off * loop.strides[0][0], loop.strides[0][0], src, loop.strides[1][0], m);
      });
      at += n;
    });
  });
}

void copy_converting(const StridedLoop& loop, DType to, DType from) {
  ComputeType via = cast_type(from, to);
  ConvertFn load = convert_table().load[int(from)][int(via)];
  StoreFn store = convert_table().store[int(via)][int(to)];
  parallel_for(0, loop.numel, kGrain, [&](int64_t begin, int64_t end) {
    alignas(64) char buffer[kChunk * 16];
    int64_t width = compute_size(via);
    for (int64_t at = begin; at < end; at += kChunk) {
      int64_t n = std::min(kChunk, end - at);
      int64_t in_stride = loop.ndim ? loop.strides[1][0] : 0, out_stride = loop.ndim ? loop.strides[0][0] : 0;
      loop.runs(1, at, n,
                [&](char* src, int64_t m, int64_t off) { load(src, in_stride, buffer + off * width, m); });
      loop.runs(0, at, n,
                [&](char* dst, int64_t m, int64_t off) { store(buffer + off * width, dst, out_stride, m); });
    }
  });
}

}  // namespace

void copy_elements(const Tensor& dst, const Tensor& src) {
  VESTA_CHECK_AS(TypeError,
                 dst.dtype() == src.dtype() || (is_convertible(dst.dtype()) && is_convertible(src.dtype())),
                 "copy_: cannot cast ", dtype_name(src.dtype()), " to ", dtype_name(dst.dtype()),
                 "; view the pairs of 4-bit numbers as uint8");
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
