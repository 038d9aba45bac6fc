// Compiled once per CPU level with the kernels' flags; see kernels/prelude_loops.h.
#include "kernels/prelude_loops.h"

#include "vesta/scalar/prelude.h"

namespace vesta::cpu::VESTA_ISA {
namespace {

using namespace vesta::scalar;

// A text is a generic lambda, as the op blocks make it.
template <class T, class F>
void unary(const T* __restrict x, T* __restrict out, int n, F f) {
  for (int i = 0; i < n; ++i) out[i] = f(x[i]);
}
template <class T, class F>
void binary(const T* __restrict x, const T* __restrict y, T* __restrict out, int n, F f) {
  for (int i = 0; i < n; ++i) out[i] = f(x[i], y[i]);
}

#define UNARY(name)                                                                                  \
  {                                                                                                  \
#name, [](const float* x, float* o, int n) { unary(x, o, n, [](auto v) { return name##_(v); }); }, \
   [](const double* x, double* o, int n) { unary(x, o, n, [](auto v) { return name##_(v); }); } \
  }
#define BINARY(name)                                                                       \
  {                                                                                        \
#name,                                                                                   \
   [](const float* x, const float* y, float* o, int n) {                                    \
     binary(x, y, o, n, [](auto v, auto w) { return name##_(v, w); });                      \
   },                                                                                       \
   [](const double* x, const double* y, double* o, int n) {                                 \
     binary(x, y, o, n, [](auto v, auto w) { return name##_(v, w); });                      \
   } \
  }

const PreludeUnary kUnary[] = {
    UNARY(exp),         UNARY(expm1),  UNARY(exp2),           UNARY(log),
    UNARY(log1p),       UNARY(log2),   UNARY(log10),          UNARY(sin),
    UNARY(cos),         UNARY(tan),    UNARY(asin),           UNARY(acos),
    UNARY(atan),        UNARY(sinh),   UNARY(cosh),           UNARY(tanh),
    UNARY(asinh),       UNARY(acosh),  UNARY(atanh),          UNARY(erf),
    UNARY(erfc),        UNARY(erfinv), UNARY(ndtr),           UNARY(lgamma),
    UNARY(digamma),     UNARY(sqrt),   UNARY(rsqrt),          UNARY(abs),
    UNARY(sign),        UNARY(floor),  UNARY(ceil),           UNARY(round),
    UNARY(trunc),       UNARY(frac),   UNARY(sigmoid),        UNARY(softplus),
    UNARY(log_sigmoid), UNARY(silu),   UNARY(gelu_erf),       UNARY(gelu_tanh),
    UNARY(reciprocal),  UNARY(square), UNARY(gelu_erf_slope),
};
const PreludeBinary kBinary[] = {
    BINARY(pow), BINARY(atan2), BINARY(hypot), BINARY(fmod), BINARY(remainder), BINARY(floordiv),
    BINARY(max), BINARY(min),   BINARY(fmax),  BINARY(fmin), BINARY(copysign),  BINARY(div_trunc),
};
#define INTEGER(name)                                                                      \
  {                                                                                        \
#name, [](const int64_t* x, const int64_t* y, int64_t* o,                              \
              int n) { binary(x, y, o, n, [](auto v, auto w) { return name##_(v, w); }); } \
  }
const PreludeInteger kInteger[] = {INTEGER(div_trunc), INTEGER(floordiv), INTEGER(fmod), INTEGER(remainder)};

}  // namespace

extern const PreludeLoops prelude_loops = {kUnary,   sizeof kUnary / sizeof *kUnary,
                                           kBinary,  sizeof kBinary / sizeof *kBinary,
                                           kInteger, sizeof kInteger / sizeof *kInteger};

}  // namespace vesta::cpu::VESTA_ISA
