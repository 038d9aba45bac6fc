#pragma once
// The one loop that every scalar text is compiled into, per compute type; scalar_text.h includes it in loop builds.
// Contiguous elements of one compute type only: conversion, broadcasting and threads are the driver's business.
#include <type_traits>
#include <utility>

#include "vesta/scalar/prelude.h"
#include "vesta/scalar_def.h"

namespace vesta::scalar {

// Two results of one text.
template <class A, class B>
struct Two {
  A first;
  B second;
};
template <class A, class B>
inline Two<A, B> two_(A a, B b) {
  return {a, b};
}

template <class T>
struct RealOf {
  using type = void;
};
template <class R>
struct RealOf<cplx<R>> {
  using type = R;
};

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
struct IsTwo {
  static constexpr bool value = false;
};
template <class A, class B>
struct IsTwo<Two<A, B>> {
  static constexpr bool value = true;
};

// Type stored for a result: comparisons give bool, stored as u8; integer arithmetic returns to its compute type.
template <class R, class T>
struct StoredType {
  // `a & b` of two conditions is an int: it would be stored as T where a u8 is expected. Write bool(a & b).
  static_assert(!(std::is_floating_point_v<T> && std::is_integral_v<R>),
                "a scalar text gives an int where a bool was meant");
  using type = T;
};
template <class T>
struct StoredType<bool, T> {
  using type = uint8_t;
};
template <class R>
struct StoredType<R, cplx<R>> {
  using type = R;
};

template <class F, class T, int kInputs, int kAttrs, size_t... I>
void run_loop(const void* const* in, void* const* out, int64_t n, const ScalarAttr* attrs,
              std::index_sequence<I...>) {
  T a[kAttrs > 0 ? kAttrs : 1] = {attr_as<T>(attrs[I])...};
  (void)a;
  const T* x = static_cast<const T*>(in[0]);
  const T* y = kInputs > 1 ? static_cast<const T*>(in[1]) : nullptr;
  const T* z = kInputs > 2 ? static_cast<const T*>(in[2]) : nullptr;
  const T* w = kInputs > 3 ? static_cast<const T*>(in[3]) : nullptr;
  using R = decltype(F{}(T{}, T{}, T{}, T{}, a[I]...));
  auto apply = [&](int64_t i) __attribute__((always_inline)) {
    return F{}(kInputs > 0 ? x[i] : T{}, kInputs > 1 ? y[i] : T{}, kInputs > 2 ? z[i] : T{},
               kInputs > 3 ? w[i] : T{}, a[I]...);
  };
  // An output may be exactly one of the inputs (in place), which ivdep allows: element i reads only element i.
  if constexpr (IsTwo<R>::value) {
    auto* o0 = static_cast<typename StoredType<decltype(R::first), T>::type*>(out[0]);
    auto* o1 = static_cast<typename StoredType<decltype(R::second), T>::type*>(out[1]);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      auto r = apply(i);
      o0[i] = static_cast<std::remove_reference_t<decltype(o0[0])>>(r.first);
      o1[i] = static_cast<std::remove_reference_t<decltype(o1[0])>>(r.second);
    }
  } else {
    // & and | of two bools are int in C++, which would be stored as elements of T into a bool result.
    static_assert(!(std::is_same_v<R, int> && std::is_floating_point_v<T>),
                  "a comparison's text must give bool: use && and ||");
    using O = typename StoredType<R, T>::type;
    O* o = static_cast<O*>(out[0]);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) o[i] = static_cast<O>(apply(i));
  }
}

template <class F, class T, int kInputs, int kAttrs>
void loop_entry(const void* const* in, void* const* out, int64_t n, const ScalarAttr* attrs) {
  run_loop<F, T, kInputs, kAttrs>(in, out, n, attrs, std::make_index_sequence<size_t(kAttrs)>());
}

template <ScalarClass kClasses, int kInputs, int kAttrs, class F>
constexpr ScalarDef make_def(const char* text, const char* attrs, F) {
  ScalarDef d = text_def(kClasses, kInputs, text, attrs);
  if constexpr (kClasses & Floats) {
    d.loops.loop[int(ComputeType::F32)] = loop_entry<F, float, kInputs, kAttrs>;
    d.loops.loop[int(ComputeType::F64)] = loop_entry<F, double, kInputs, kAttrs>;
  }
  if constexpr (kClasses & Ints) {
    d.loops.loop[int(ComputeType::I32)] = loop_entry<F, int32_t, kInputs, kAttrs>;
    d.loops.loop[int(ComputeType::I64)] = loop_entry<F, int64_t, kInputs, kAttrs>;
  }
  if constexpr (kClasses & Bools)
    d.loops.loop[int(ComputeType::U8)] = loop_entry<F, uint8_t, kInputs, kAttrs>;
  if constexpr (kClasses & Complexes) {
    d.loops.loop[int(ComputeType::C64)] = loop_entry<F, cplx<float>, kInputs, kAttrs>;
    d.loops.loop[int(ComputeType::C128)] = loop_entry<F, cplx<double>, kInputs, kAttrs>;
  }
  return d;
}

}  // namespace vesta::scalar
