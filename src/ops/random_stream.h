#pragma once
// The generator argument of random operators: each call takes exactly one call number from it, whatever its shape. A
// generator that draws as libtorch's (vesta/mt19937.h) has an engine instead, whose words a call takes as it needs them.
#include <optional>

#include "core/mt19937.h"
#include "kernels/cpu/random.h"
#include "ops/libtorch_random.h"
#include "vesta/op.h"

namespace vesta {

// Either a Philox stream or, where `engine` is not null, libtorch's.
struct DrawStream {
  cpu::RandomStream philox;
  Mt19937* engine = nullptr;
};
inline std::optional<Generator> generator_of(const Args& a, int at) {
  if (!a.has(at)) return std::nullopt;
  return Generator::borrow(static_cast<GeneratorState*>(const_cast<void*>(a.value(at).ptr)));
}
inline DrawStream next_stream(const Args& a, int generator_at) {
  std::optional<Generator> given;
  if (generator_at >= 0) given = generator_of(a, generator_at);
  Generator g = given ? *given : default_generator();
  if (Mt19937* engine = mt19937_of(g)) return {{}, engine};  // lives as long as the argument or the default
  const uint64_t call = g.take_calls();
  return {{g.current_seed(), call}};
}
// For operators that have no libtorch order of their own.
inline cpu::RandomStream next_philox_stream(const Args& a, int generator_at) {
  const DrawStream s = next_stream(a, generator_at);
  return s.engine ? libtorch_random::philox_stream(*s.engine) : s.philox;
}

}  // namespace vesta
