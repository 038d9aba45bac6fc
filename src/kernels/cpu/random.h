#pragma once
// Random numbers on the CPU: fills contiguous arrays from a Philox stream (vesta/scalar/prelude_random.h holds
// the layout). Element i depends on (seed, call, i) alone, so the thread count changes nothing. The ISA levels give the
// same words and uniforms; numbers made with logarithms may differ in the last bits between levels with and without FMA.
#include <cstdint>

#include "base/cpu_isa.h"
#include "kernels/cpu/elem.h"

namespace vesta::cpu {

struct RandomStream {
  uint64_t seed = 0, call = 0;
};

enum class Distribution : uint8_t {
  Uniform,      // [a, b); a where a == b
  Normal,       // mean a, standard deviation b
  LogNormal,    // exp of the above
  Exponential,  // rate a; never 0
  Cauchy,       // median a, scale b
  Geometric,    // trials until a success of probability a: 1, 2, ...
};

// type: F32 or F64.
void random_fill(Elem type, Distribution d, RandomStream s, double a, double b, void* out, int64_t n);
// out[i] = low + an integer in [0, range), range 0 standing for 2^64: the high half of word i times range (of a word
// pair where range > 2^32).
void random_integers(RandomStream s, int64_t low, uint64_t range, int64_t* out, int64_t n);
// out[i] = 1 with probability p: uniform float i < p.
void random_mask(RandomStream s, double p, uint8_t* out, int64_t n);
// Words [4 * first_block, 4 * first_block + n) of the stream.
void random_words(RandomStream s, uint64_t first_block, uint32_t* out, int64_t n);

struct RandomTable {
  void (*fill)(Elem, Distribution, RandomStream, double, double, void*, int64_t);
  void (*integers)(RandomStream, int64_t, uint64_t, int64_t*, int64_t);
  void (*mask)(RandomStream, double, uint8_t*, int64_t);
  void (*words)(RandomStream, uint64_t, uint32_t*, int64_t);
};
const RandomTable& random_table(CpuIsa level);

}  // namespace vesta::cpu
