#pragma once
// SCALAR(expr, attributes...): an op's arithmetic on one element, as text for the compilers and as CPU loops.
// Inputs are x, y, z, w (the tensor arguments in order); attributes are Scalar, float, int or bool arguments by name;
// T is the compute type. The language and its functions: docs/scalar.md. In a loop build (VESTA_LOOPS) the text becomes
// contiguous loops over the compute types of its classes; elsewhere only the text is kept.
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#ifdef VESTA_LOOPS
#include "kernels/templates/cpp/prelude.h"
#endif

namespace vesta {

// Arithmetic happens in seven compute types; every storage type is converted to one of them.
enum class ComputeType : uint8_t { F32, F64, I32, I64, U8, C64, C128 };
constexpr int kNumComputeTypes = 7;

enum ScalarClass : uint8_t { Floats = 1, Ints = 2, Bools = 4, Complexes = 8 };
constexpr ScalarClass operator|(ScalarClass a, ScalarClass b) { return ScalarClass(int(a) | int(b)); }

// A run-time attribute in every form a loop may want.
struct ScalarAttr {
  double re, im;
  int64_t i;
};

// Contiguous loop over n elements: in[k] and out[j] point to compute-type elements (a bool result is u8).
using ScalarLoop = void (*)(const void* const* in, void* const* out, int64_t n, const ScalarAttr* attrs);
struct ScalarLoops {
  ScalarLoop loop[kNumComputeTypes]{};
};

struct ScalarDef {
  const char* text[4]{};   // per class: Floats, Ints, Bools, Complexes
  const char* attrs = "";  // comma list of attribute names
  uint8_t classes = 0, num_inputs = 0, num_outputs = 0;
  ScalarLoops loops{};
};

// Texts of different classes combine: SCALAR_FOR(Floats, a) | SCALAR_FOR(Ints, b). They share attributes.
constexpr ScalarDef operator|(const ScalarDef& a, const ScalarDef& b) {
  ScalarDef r = a;
  for (int c = 0; c < 4; ++c)
    if (b.text[c]) r.text[c] = b.text[c];
  for (int t = 0; t < kNumComputeTypes; ++t)
    if (b.loops.loop[t]) r.loops.loop[t] = b.loops.loop[t];
  if (b.attrs[0]) r.attrs = b.attrs;
  r.classes |= b.classes;
  r.num_inputs = a.num_inputs > b.num_inputs ? a.num_inputs : b.num_inputs;
  return r;
}

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

#ifdef VESTA_LOOPS
namespace vesta::scalar {

// Two results of one text.
template <class A, class B>
struct Two {
  A first;
  B second;
};
template <class A, class B>
inline Two<A, B> two_(A a, B b) { return {a, b}; }

template <class T>
struct RealOf { using type = void; };
template <class R>
struct RealOf<cplx<R>> { using type = R; };

template <class T>
inline T attr_as(const ScalarAttr& a) {
  using R = typename RealOf<T>::type;
  if constexpr (!std::is_void_v<R>)
    return T{R(a.re), R(a.im)};
  else if constexpr (std::is_integral_v<T>)
    return T(a.i);
  else
    return T(a.re);
}
template <class R>
struct IsTwo { static constexpr bool value = false; };
template <class A, class B>
struct IsTwo<Two<A, B>> { static constexpr bool value = true; };

// Type stored for a result: comparisons give bool, stored as u8; integer arithmetic returns to its compute type.
template <class R, class T>
struct StoredType {
  // `a & b` of two conditions is an int: it would be stored as T where a u8 is expected. Write bool(a & b).
  static_assert(!(std::is_floating_point_v<T> && std::is_integral_v<R>), "a scalar text gives an int where a bool was meant");
  using type = T;
};
template <class T>
struct StoredType<bool, T> { using type = uint8_t; };
template <class R>
struct StoredType<R, cplx<R>> { using type = R; };

}  // namespace vesta::scalar
#include "vesta/scalar_loop.h"
#endif

#define VESTA_ATTR_PARAMS(...) __VA_OPT__(VESTA_ATTR_1(__VA_ARGS__))
#define VESTA_ATTR_1(a, ...) , [[maybe_unused]] T a __VA_OPT__(VESTA_ATTR_2(__VA_ARGS__))
#define VESTA_ATTR_2(a, ...) , [[maybe_unused]] T a __VA_OPT__(VESTA_ATTR_3(__VA_ARGS__))
#define VESTA_ATTR_3(a, ...) , [[maybe_unused]] T a __VA_OPT__(VESTA_ATTR_4(__VA_ARGS__))
#define VESTA_ATTR_4(a, ...) , [[maybe_unused]] T a __VA_OPT__(VESTA_ATTR_5(__VA_ARGS__))
#define VESTA_ATTR_5(a, ...) , [[maybe_unused]] T a __VA_OPT__(VESTA_ATTR_6(__VA_ARGS__))
#define VESTA_ATTR_6(a, ...) , [[maybe_unused]] T a

#ifdef VESTA_LOOPS
#define SCALAR_FOR(class_mask, expr, ...)                                                                      \
  ::vesta::scalar::make_def<::vesta::ScalarClass(class_mask), ::vesta::detail::count_inputs(#expr),            \
                            ::vesta::detail::count_names(#__VA_ARGS__)>(                                       \
      #expr, #__VA_ARGS__,                                                                                     \
      []<class T>([[maybe_unused]] T x, [[maybe_unused]] T y, [[maybe_unused]] T z,                            \
                  [[maybe_unused]] T w VESTA_ATTR_PARAMS(__VA_ARGS__)) __attribute__((always_inline)) {        \
        using namespace ::vesta::scalar;                                                                       \
        return (expr);                                                                                         \
      })
#else
#define SCALAR_FOR(class_mask, expr, ...) \
  ::vesta::text_def(::vesta::ScalarClass(class_mask), ::vesta::detail::count_inputs(#expr), #expr, #__VA_ARGS__)
#endif
#define SCALAR(expr, ...) SCALAR_FOR(::vesta::Floats, expr __VA_OPT__(, ) __VA_ARGS__)
// Two outputs: SCALAR2((e0), (e1)).
#define SCALAR2(e0, e1, ...) SCALAR(two_(e0, e1) __VA_OPT__(, ) __VA_ARGS__)

namespace vesta {
constexpr ScalarDef text_def(ScalarClass classes, int num_inputs, const char* text, const char* attrs) {
  ScalarDef d;
  for (int c = 0; c < 4; ++c)
    if (classes >> c & 1) d.text[c] = text;
  d.attrs = attrs;
  d.classes = classes;
  d.num_inputs = uint8_t(num_inputs);
  d.num_outputs = text[0] == 't' && text[1] == 'w' && text[2] == 'o' && text[3] == '_' ? 2 : 1;
  return d;
}
template <class Def, size_t N>
constexpr std::array<ScalarLoops, N> pick_loops(const Def (&table)[N]) {
  std::array<ScalarLoops, N> r{};
  for (size_t i = 0; i < N; ++i) r[i] = table[i].scalar.loops;
  return r;
}
}  // namespace vesta
