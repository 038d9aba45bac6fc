#pragma once
// What a scalar text is once it is compiled: its words per class of dtypes, and its CPU loops per compute type.
// Data only; scalar_text.h makes it from an expression, scalar_loop.h compiles the loops.
#include <array>
#include <cstddef>
#include <cstdint>

namespace vesta {

// Arithmetic happens in seven compute types; every storage type is converted to one of them.
enum class ComputeType : uint8_t { F32, F64, I32, I64, U8, C64, C128 };
constexpr int kNumComputeTypes = 7;

enum ScalarClass : uint8_t { Floats = 1, Ints = 2, Bools = 4, Complexes = 8 };
constexpr ScalarClass operator|(ScalarClass a, ScalarClass b) { return ScalarClass(int(a) | int(b)); }

constexpr ScalarClass class_of(ComputeType t) {
  return t <= ComputeType::F64   ? Floats
         : t <= ComputeType::I64 ? Ints
         : t == ComputeType::U8  ? Bools
                                 : Complexes;
}

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
    if (b.classes & class_of(ComputeType(t))) r.loops.loop[t] = b.loops.loop[t];
  if (b.attrs[0]) r.attrs = b.attrs;
  r.classes |= b.classes;
  r.num_inputs = a.num_inputs > b.num_inputs ? a.num_inputs : b.num_inputs;
  return r;
}

// A text without loops.
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
