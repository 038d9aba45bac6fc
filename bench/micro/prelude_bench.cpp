// ns per element of the scalar prelude's functions in a plain contiguous loop over arrays in L1, one core.
// Shows whether the compiler vectorised a text: a scalar loop is 5-20 times slower than its neighbours. Compile it
// once per CPU level with the flags of cmake/VestaFlags.cmake; `prelude_bench [filter] [level-name]` prints JSON lines.
// Where Debian's libsleef3 is installed, the AVX-512 level also times exp, tanh and erf beside SLEEF's (1 ulp), alternating.
#include "vesta/scalar/prelude.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#if defined(__AVX512F__)
#include <dlfcn.h>
#include <immintrin.h>
#endif

namespace {

using namespace vesta::scalar;

constexpr int kBytes = 8192;  // per array: three arrays stay in a 32 KiB L1

double now_ns() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

template <class T>
T make(double v) {
  return static_cast<T>(v);
}
template <>
cplx<float> make(double v) {
  return {static_cast<float>(v), static_cast<float>(0.5 - v)};
}
template <>
cplx<double> make(double v) {
  return {v, 0.5 - v};
}

template <class T, class Out, class F>
__attribute__((noinline)) void loop(const T* __restrict x, const T* __restrict y, Out* __restrict o, int n,
                                    F f) {
  for (int i = 0; i < n; ++i) o[i] = f(x[i], y[i]);
}

struct Options {
  const char* filter;
  const char* level;
};

template <class T, class F>
void time_one(const Options& options, const char* name, const char* type, double lo, double hi, F f) {
  constexpr int kElements = kBytes / sizeof(T);
  char label[64];
  std::snprintf(label, sizeof label, "%s/%s", name, type);
  if (!std::strstr(label, options.filter)) return;
  using Out = decltype(f(T(), T()));
  // Aligned to the vector width: lines that straddle two cache lines would cost more than the cheap functions.
  alignas(64) static T x[kElements];
  alignas(64) static T y[kElements];
  alignas(64) static Out o[kElements];
  for (int i = 0; i < kElements; ++i) {
    x[i] = make<T>(lo + (hi - lo) * ((i * 2654435761u) >> 8) / 16777216.0);
    y[i] = make<T>(lo + (hi - lo) * ((i * 2246822519u) >> 8) / 16777216.0);
  }
  double best = 1e30;
  for (int round = 0; round < 7; ++round) {
    int repeats = 0;
    double start = now_ns(), end = start;
    while (end - start < 4e6) {
      for (int k = 0; k < 8; ++k) {
        loop(x, y, o, kElements, f);
        asm volatile("" : : "r"(o) : "memory");
      }
      repeats += 8;
      end = now_ns();
    }
    double ns = (end - start) / repeats / kElements;
    best = ns < best ? ns : best;
  }
  std::printf("{\"bench\": \"prelude\", \"case\": \"%s/%s\", \"value\": %.4f, \"unit\": \"ns/elt\"}\n", label,
              options.level, best);
  std::fflush(stdout);
}

// One text timed in float and double.
#define REAL(name, lo, hi, ...)                                       \
  time_one<float>(options, name, "f32", lo, hi, [](auto x, auto y) {  \
    using T = decltype(x);                                            \
    (void)y;                                                          \
    return T(__VA_ARGS__);                                            \
  });                                                                 \
  time_one<double>(options, name, "f64", lo, hi, [](auto x, auto y) { \
    using T = decltype(x);                                            \
    (void)y;                                                          \
    return T(__VA_ARGS__);                                            \
  })
#define ONE(name, type, lo, hi, ...)                                \
  time_one<type>(options, name, #type, lo, hi, [](auto x, auto y) { \
    using T = decltype(x);                                          \
    (void)y;                                                        \
    return T(__VA_ARGS__);                                          \
  })

#if defined(__AVX512F__)
// ratio: SLEEF's time by ours, the median of nine pairs, with its 90 % interval (ranks 2 and 8).
template <class F>
void time_beside_sleef(const Options& options, void* library, const char* name, const char* symbol, float lo,
                       float hi, F f) {
  char label[64];
  std::snprintf(label, sizeof label, "sleef/%s/f32", name);
  auto peer = reinterpret_cast<__m512 (*)(__m512)>(dlsym(library, symbol));
  if (!std::strstr(label, options.filter) || !peer) return;
  constexpr int kElements = kBytes / 4, kPairs = 9;
  alignas(64) static float x[kElements], y[kElements], o[kElements];
  for (int i = 0; i < kElements; ++i) x[i] = lo + (hi - lo) * float(((i * 2654435761u) >> 8) / 16777216.0);
  auto best_of = [&](auto body) {
    double best = 1e30;
    for (int round = 0; round < 5; ++round) {
      double start = now_ns();
      for (int k = 0; k < 200; ++k) {
        body();
        asm volatile("" : : "r"(o) : "memory");
      }
      best = std::min(best, (now_ns() - start) / 200 / kElements);
    }
    return best;
  };
  auto ours = [&] { loop(x, y, o, kElements, f); };
  auto theirs = [&] {
    for (int i = 0; i < kElements; i += 16) _mm512_store_ps(o + i, peer(_mm512_load_ps(x + i)));
  };
  double mine[kPairs], other[kPairs], ratio[kPairs];
  for (int pair = 0; pair < kPairs; ++pair) {
    if (pair % 2) other[pair] = best_of(theirs);
    mine[pair] = best_of(ours);
    if (pair % 2 == 0) other[pair] = best_of(theirs);
    ratio[pair] = other[pair] / mine[pair];
  }
  for (double* v : {mine, other, ratio}) std::sort(v, v + kPairs);
  std::printf(
      "{\"bench\": \"prelude\", \"case\": \"%s/%s\", \"value\": %.4f, \"unit\": \"ns/elt\", \"peer\": "
      "\"sleef\", "
      "\"peer_value\": %.4f, \"ratio\": %.3f, \"lo\": %.3f, \"hi\": %.3f}\n",
      label, options.level, mine[4], other[4], ratio[4], ratio[1], ratio[7]);
  std::fflush(stdout);
}
void run_beside_sleef(const Options& options) {
  void* library = dlopen("libsleef.so.3", RTLD_NOW | RTLD_LOCAL);
  if (!library) return;
  time_beside_sleef(options, library, "exp", "Sleef_expf16_u10avx512f", -5, 5,
                    [](float x, float) { return exp_(x); });
  time_beside_sleef(options, library, "tanh", "Sleef_tanhf16_u10avx512f", -5, 5,
                    [](float x, float) { return tanh_(x); });
  time_beside_sleef(options, library, "erf", "Sleef_erff16_u10avx512f", -3, 3,
                    [](float x, float) { return erf_(x); });
}
#else
void run_beside_sleef(const Options&) {}
#endif

void run(const Options& options) {
  REAL("add", -1, 1, x + y);
  REAL("exp", -5, 5, exp_(x));
  REAL("expm1", -2, 2, expm1_(x));
  REAL("exp2", -5, 5, exp2_(x));
  REAL("log", 0.1, 9, log_(x));
  REAL("log1p", 0.1, 9, log1p_(x));
  REAL("log2", 0.1, 9, log2_(x));
  REAL("log10", 0.1, 9, log10_(x));
  REAL("sin", -9, 9, sin_(x));
  REAL("cos", -9, 9, cos_(x));
  REAL("tan", -9, 9, tan_(x));
  REAL("asin", -1, 1, asin_(x));
  REAL("acos", -1, 1, acos_(x));
  REAL("atan", -9, 9, atan_(x));
  REAL("atan2", -9, 9, atan2_(x, y));
  REAL("sinh", -5, 5, sinh_(x));
  REAL("cosh", -5, 5, cosh_(x));
  REAL("tanh", -5, 5, tanh_(x));
  REAL("asinh", -5, 5, asinh_(x));
  REAL("acosh", 1, 9, acosh_(x));
  REAL("atanh", -1, 1, atanh_(x));
  REAL("erf", -3, 3, erf_(x));
  REAL("erfc", -3, 3, erfc_(x));
  REAL("erfinv", -1, 1, erfinv_(x));
  REAL("ndtr", -3, 3, ndtr_(x));
  REAL("lgamma", -3, 9, lgamma_(x));
  REAL("digamma", -3, 9, digamma_(x));
  REAL("sqrt", 0.1, 9, sqrt_(x));
  REAL("rsqrt", 0.1, 9, rsqrt_(x));
  REAL("floor", -9, 9, floor_(x));
  REAL("round", -9, 9, round_(x));
  REAL("trunc", -9, 9, trunc_(x));
  REAL("pow", 0.1, 5, pow_(x, y));
  REAL("hypot", 0.1, 5, hypot_(x, y));
  REAL("fmod", 0.1, 5, fmod_(x, y));
  REAL("remainder", 0.1, 5, remainder_(x, y));
  REAL("floordiv", 0.1, 5, floordiv_(x, y));
  REAL("max", -5, 5, max_(x, y));
  REAL("sign", -5, 5, sign_(x));
  REAL("where", -5, 5, where_(x > T(0), x, x * y));
  REAL("sigmoid", -5, 5, sigmoid_(x));
  REAL("softplus", -5, 5, softplus_(x));
  REAL("silu", -5, 5, silu_(x));
  REAL("gelu_erf", -3, 3, gelu_erf_(x));
  REAL("gelu_naive", -3, 3, T(0.5) * x * (T(1) + erf_(x * T(0.70710678118654757))));
  REAL("gelu_tanh", -3, 3, gelu_tanh_(x));
  time_one<float>(options, "to_i32", "f32", -9, 9, [](float x, float) { return to_i32_(x); });
  time_one<double>(options, "to_i64", "f64", -9, 9, [](double x, double) { return to_i64_(x); });
  time_one<float>(options, "to_bf16", "f32", -9, 9, [](float x, float) { return f32_to_bf16_(x); });
  time_one<float>(options, "to_f16", "f32", -9, 9, [](float x, float) { return f32_to_f16_(x); });
  time_one<uint16_t>(options, "from_bf16", "u16", 0, 65535,
                     [](uint16_t x, uint16_t) { return bf16_to_f32_(x); });
  time_one<uint16_t>(options, "from_f16", "u16", 0, 65535,
                     [](uint16_t x, uint16_t) { return f16_to_f32_(x); });
  ONE("mul", int32_t, -99, 99, mul_(x, y));
  ONE("floordiv", int32_t, -99, 99, floordiv_(x, y));
  ONE("remainder", int32_t, -99, 99, remainder_(x, y));
  ONE("lshift", int32_t, 0, 40, lshift_(x, y));
  ONE("pow", int32_t, 0, 9, pow_(x, y));
  ONE("gcd", int32_t, 0, 999, gcd_(x, y));
  ONE("mul", int64_t, -99, 99, mul_(x, y));
  ONE("floordiv", int64_t, -99, 99, floordiv_(x, y));
  ONE("and", uint8_t, 0, 2, and_(x, y));
  ONE("mul", cplx<float>, -1, 1, x * y);
  ONE("div", cplx<float>, -1, 1, x / y);
  ONE("exp", cplx<float>, -1, 1, exp_(x));
  ONE("log", cplx<float>, -1, 1, log_(x));
  ONE("sqrt", cplx<float>, -1, 1, sqrt_(x));
  ONE("tanh", cplx<float>, -1, 1, tanh_(x));
  ONE("mul", cplx<double>, -1, 1, x * y);
  ONE("div", cplx<double>, -1, 1, x / y);
  ONE("exp", cplx<double>, -1, 1, exp_(x));
}

}  // namespace

int main(int argc, char** argv) {
  const Options options{argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : "native"};
  run(options);
  run_beside_sleef(options);
  return 0;
}
