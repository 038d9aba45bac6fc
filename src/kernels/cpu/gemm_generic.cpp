// The plain GEMM: gathers a strip of B into contiguous columns, then runs one row of C at a time over it. Blocked for
// L1/L2 so that no access pattern is a disaster, but with no hand-written kernels: the compiler's vectoriser does the
// inner loop. Integers and complex numbers end here; it takes every type, so tests also use it as a second opinion.
#include "kernels/cpu/gemm_generic.h"

#include <algorithm>
#include <type_traits>

#include "base/thread_pool.h"
#include "kernels/cpu/gemm_half.h"

namespace vesta::cpu {
namespace {

constexpr int64_t kRows = 32;
constexpr int64_t kColumns = 64;
constexpr int64_t kDepth = kGenericDepth;  // a B strip is 64 x 64 elements: 16 to 64 KiB

// Plain products: std::complex's operator* calls a library routine for NaN recovery in the innermost loop.
template <class R>
struct Complex {
  R re, im;
};

template <class T>
struct Traits {
  using Wide = std::make_unsigned_t<T>;  // integers wrap, as the tensor ops do, without undefined behaviour
  static Wide load(T v, bool) { return static_cast<Wide>(v); }
  static T store(Wide v) { return static_cast<T>(v); }
  static Wide scalar(const GemmScalar& s) { return static_cast<Wide>(s.integer); }
  static void mul_add(Wide& acc, Wide x, Wide y) { acc += x * y; }
  static void add(Wide& acc, Wide x) { acc += x; }
  static bool zero(const GemmScalar& s) { return s.integer == 0; }
};

template <class R>
struct FloatTraits {
  using Wide = R;
  static Wide scalar(const GemmScalar& s) { return static_cast<R>(s.real); }
  static void mul_add(Wide& acc, Wide x, Wide y) { acc += x * y; }
  static void add(Wide& acc, Wide x) { acc += x; }
  static bool zero(const GemmScalar& s) { return s.real == 0; }
};

template <>
struct Traits<float> : FloatTraits<float> {
  static float load(float v, bool) { return v; }
  static float store(float v) { return v; }
};
template <>
struct Traits<double> : FloatTraits<double> {
  static double load(double v, bool) { return v; }
  static double store(double v) { return v; }
};

// int8 is multiplied in int32.
template <>
struct Traits<int8_t> : Traits<int32_t> {
  static Wide load(int8_t v, bool) { return static_cast<Wide>(static_cast<int32_t>(v)); }
};

struct Half {
  uint16_t bits;
};
struct Brain {
  uint16_t bits;
};
template <>
struct Traits<Half> : FloatTraits<float> {
  static float load(Half v, bool) { return f16_to_float(v.bits); }
  static Half store(float v) { return {float_to_f16(v)}; }
};
template <>
struct Traits<Brain> : FloatTraits<float> {
  static float load(Brain v, bool) { return bf16_to_float(v.bits); }
  static Brain store(float v) { return {float_to_bf16(v)}; }
};

template <class R>
struct Traits<Complex<R>> {
  using Wide = Complex<R>;
  static Wide load(Complex<R> v, bool conj) { return {v.re, conj ? -v.im : v.im}; }
  static Complex<R> store(Wide v) { return v; }
  static Wide scalar(const GemmScalar& s) { return {static_cast<R>(s.real), static_cast<R>(s.imag)}; }
  static void mul_add(Wide& acc, Wide x, Wide y) {
    acc.re += x.re * y.re - x.im * y.im;
    acc.im += x.re * y.im + x.im * y.re;
  }
  static void add(Wide& acc, Wide x) {
    acc.re += x.re;
    acc.im += x.im;
  }
  static bool zero(const GemmScalar& s) { return s.real == 0 && s.imag == 0; }
};

template <class T, class Out>
void block(const GemmArgs& g, int64_t item, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
  using Tr = Traits<T>;
  using TrOut = Traits<Out>;
  using Wide = typename Tr::Wide;
  const T* a = static_cast<const T*>(g.a) + item * g.a_batch;
  const T* b = static_cast<const T*>(g.b) + item * g.b_batch;
  Out* c = static_cast<Out*>(g.c) + item * g.c_batch;
  const int64_t rows = i1 - i0, columns = j1 - j0;
  Wide acc[kRows * kColumns];
  Wide strip[kDepth * kColumns];
  std::fill(acc, acc + rows * kColumns, Wide{});
  for (int64_t p0 = 0; p0 < g.k; p0 += kDepth) {
    const int64_t depth = std::min(kDepth, g.k - p0);
    for (int64_t p = 0; p < depth; ++p)
      for (int64_t j = 0; j < columns; ++j)
        strip[p * kColumns + j] = Tr::load(b[(p0 + p) * g.b_row + (j0 + j) * g.b_col], g.conj_b);
    for (int64_t i = 0; i < rows; ++i) {
      Wide* row = acc + i * kColumns;
      for (int64_t p = 0; p < depth; ++p) {
        const Wide x = Tr::load(a[(i0 + i) * g.a_row + (p0 + p) * g.a_col], g.conj_a);
        const Wide* y = strip + p * kColumns;
        for (int64_t j = 0; j < columns; ++j) Tr::mul_add(row[j], x, y[j]);
      }
    }
  }
  const Wide alpha = Tr::scalar(g.alpha), beta = Tr::scalar(g.beta);
  const GemmEpilogue* e = g.epilogue;
  for (int64_t i = 0; i < rows; ++i) {
    Out* out = c + (i0 + i) * g.ldc + j0;
    Wide t[kColumns];
    for (int64_t j = 0; j < columns; ++j) {
      Wide v{};
      Tr::mul_add(v, alpha, acc[i * kColumns + j]);
      if (!Tr::zero(g.beta)) Tr::mul_add(v, beta, TrOut::load(out[j], false));
      if (e && e->bias) Tr::add(v, TrOut::load(static_cast<const Out*>(e->bias)[j0 + j], false));
      t[j] = v;
    }
    if (e && e->apply) e->apply(t, columns, item * g.m + i0 + i, j0, e->ctx);
    const Out* residual = e && e->residual ? static_cast<const Out*>(e->residual) + item * e->residual_batch +
                                                 (i0 + i) * e->residual_ld + j0
                                           : nullptr;
    for (int64_t j = 0; j < columns; ++j) {
      if (residual) Tr::add(t[j], TrOut::load(residual[j], false));
      out[j] = TrOut::store(t[j]);
    }
  }
}

template <class T, class Out = T>
void run(const GemmArgs& g) {
  const int64_t row_blocks = (g.m + kRows - 1) / kRows;
  const int64_t column_blocks = (g.n + kColumns - 1) / kColumns;
  const int64_t per_item = row_blocks * column_blocks;
  // One chunk is at least ~2^18 products (tens of microseconds), so that small products stay on the caller.
  const int64_t products = std::max<int64_t>(1, std::min(g.m, kRows) * std::min(g.n, kColumns) * g.k);
  const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 18) / products);
  parallel_for(0, g.batch * per_item, grain, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t item = t / per_item, rest = t % per_item;
      const int64_t i0 = rest / column_blocks * kRows, j0 = rest % column_blocks * kColumns;
      block<T, Out>(g, item, i0, std::min(i0 + kRows, g.m), j0, std::min(j0 + kColumns, g.n));
    }
  });
}

}  // namespace

void gemm_generic(const GemmArgs& g) {
  switch (g.type) {
    case GemmType::I32:
      return run<int32_t>(g);
    case GemmType::I64:
      return run<int64_t>(g);
    case GemmType::I8:
      return run<int8_t, int32_t>(g);
    case GemmType::C64:
      return run<Complex<float>>(g);
    case GemmType::C128:
      return run<Complex<double>>(g);
    case GemmType::F32:
      return run<float>(g);
    case GemmType::F64:
      return run<double>(g);
    case GemmType::F16:
      return g.out == GemmType::F32 ? run<Half, float>(g) : run<Half>(g);
    case GemmType::Bf16:
      return g.out == GemmType::F32 ? run<Brain, float>(g) : run<Brain>(g);
  }
}

}  // namespace vesta::cpu
