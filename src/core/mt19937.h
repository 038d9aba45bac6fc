#pragma once
// The state behind vesta/mt19937.h: the engine of MT19937 (std::mt19937, whose words the standard fixes) and what
// libtorch's CPU generator makes of its words.
#include <cstdint>
#include <mutex>
#include <optional>
#include <random>

#include "vesta/mt19937.h"

namespace vesta {

// What a run of random operators depends on.
struct Mt19937Words {
  std::mt19937 engine;
  std::optional<double> next_normal;  // the second half of the last Box-Muller pair
};

struct Mt19937 {
  std::mutex mutex;  // held by an operator for all its draws
  Mt19937Words words;

  void reseed(uint64_t seed) {
    words.engine.seed(static_cast<std::mt19937::result_type>(seed & 0xffffffffu));
    words.next_normal.reset();
  }
  uint32_t random() { return static_cast<uint32_t>(words.engine()); }
  uint64_t random64() {
    const uint64_t high = random();
    return high << 32 | random();
  }
  // In [0, 1), by the low bits of a word.
  float uniform_float() { return static_cast<float>(random() & 0xffffffu) * 0x1p-24f; }
  double uniform_double() { return static_cast<double>(random64() & ((uint64_t(1) << 53) - 1)) * 0x1p-53; }
  double normal();  // mean 0, standard deviation 1
};

// Null where the generator draws from Philox.
Mt19937* mt19937_of(const Generator& generator);

// A generator's whole state, to run the same draws again.
struct GeneratorSnapshot {
  uint64_t seed = 0, call = 0;
  std::optional<Mt19937Words> words;
};
GeneratorSnapshot take_snapshot(const Generator& generator);
void restore_snapshot(const Generator& generator, const GeneratorSnapshot& snapshot);

}  // namespace vesta
