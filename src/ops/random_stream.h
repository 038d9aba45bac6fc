#pragma once
// The generator argument of random operators: each call takes exactly one call number from it, whatever its shape.
#include <optional>

#include "kernels/cpu/random.h"
#include "vesta/op.h"

namespace vesta {

inline cpu::RandomStream next_stream(const Args& a, int generator_at) {
  Generator g = generator_at >= 0 && a.has(generator_at)
                    ? Generator::borrow(static_cast<GeneratorState*>(const_cast<void*>(a.value(generator_at).ptr)))
                    : default_generator();
  uint64_t call = g.take_calls();
  return {g.current_seed(), call};
}
inline std::optional<Generator> generator_of(const Args& a, int at) {
  if (!a.has(at)) return std::nullopt;
  return Generator::borrow(static_cast<GeneratorState*>(const_cast<void*>(a.value(at).ptr)));
}

}  // namespace vesta
