#pragma once
// SCALAR(expr, attributes...): an op's arithmetic on one element, as text for the compilers and as CPU loops.
// Inputs are x, y, z, w (the tensor arguments in order); attributes are Scalar, float, int or bool arguments by name;
// T is the compute type. The language and its functions: docs/scalar.md. In a loop build the text becomes contiguous
// loops over the compute types of its classes; elsewhere only the text is kept. Vesta's own families are built both
// ways (VESTA_LOOPS is the CPU level); a program that defines operators of its own says
//   #define VESTA_OP_LOOPS
//   #include <vesta/op.h>
// and gets text and loops at once, for the processor it is compiled for.
#include "vesta/scalar_def.h"

#if defined(VESTA_LOOPS) || defined(VESTA_OP_LOOPS)
#include "vesta/scalar_loop.h"
#define VESTA_HAS_LOOPS 1
#endif

namespace vesta {
namespace detail {

constexpr bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
// Number of inputs a text uses: the last of x, y, z, w that stands alone.
constexpr int count_inputs(const char* text) {
  int count = 0;
  for (const char* p = text; *p; ++p) {
    bool alone = (p == text || !is_word(p[-1])) && !is_word(p[1]) && (p == text || p[-1] != '.');
    if (!alone) continue;
    int n = *p == 'x' ? 1 : *p == 'y' ? 2 : *p == 'z' ? 3 : *p == 'w' ? 4 : 0;
    if (n > count) count = n;
  }
  return count;
}
constexpr int count_names(const char* list) {
  int n = *list ? 1 : 0;
  for (; *list; ++list) n += *list == ',';
  return n;
}

}  // namespace detail
}  // namespace vesta

#define VESTA_ATTR_PARAMS(...) __VA_OPT__(VESTA_ATTR_1(__VA_ARGS__))
#define VESTA_ATTR_1(a, ...) , [[maybe_unused]] T a __VA_OPT__(VESTA_ATTR_2(__VA_ARGS__))
#define VESTA_ATTR_2(a, ...) , [[maybe_unused]] T a __VA_OPT__(VESTA_ATTR_3(__VA_ARGS__))
#define VESTA_ATTR_3(a, ...) , [[maybe_unused]] T a __VA_OPT__(VESTA_ATTR_4(__VA_ARGS__))
#define VESTA_ATTR_4(a, ...) , [[maybe_unused]] T a __VA_OPT__(VESTA_ATTR_5(__VA_ARGS__))
#define VESTA_ATTR_5(a, ...) , [[maybe_unused]] T a __VA_OPT__(VESTA_ATTR_6(__VA_ARGS__))
#define VESTA_ATTR_6(a, ...) , [[maybe_unused]] T a

#ifdef VESTA_HAS_LOOPS
#define SCALAR_FOR(class_mask, expr, ...)                                                               \
  ::vesta::scalar::make_def<::vesta::ScalarClass(class_mask), ::vesta::detail::count_inputs(#expr),     \
                            ::vesta::detail::count_names(#__VA_ARGS__)>(                                \
      #expr, #__VA_ARGS__,                                                                              \
      []<class T>([[maybe_unused]] T x, [[maybe_unused]] T y, [[maybe_unused]] T z,                     \
                  [[maybe_unused]] T w VESTA_ATTR_PARAMS(__VA_ARGS__)) __attribute__((always_inline)) { \
        using namespace ::vesta::scalar;                                                                \
        return (expr);                                                                                  \
      })
#else
#define SCALAR_FOR(class_mask, expr, ...)                                                          \
  ::vesta::text_def(::vesta::ScalarClass(class_mask), ::vesta::detail::count_inputs(#expr), #expr, \
                    #__VA_ARGS__)
#endif
#define SCALAR(expr, ...) SCALAR_FOR(::vesta::Floats, expr __VA_OPT__(, ) __VA_ARGS__)
// Two outputs: SCALAR2((e0), (e1)).
#define SCALAR2(e0, e1, ...) SCALAR(two_(e0, e1) __VA_OPT__(, ) __VA_ARGS__)
