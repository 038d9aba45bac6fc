#pragma once
// Random numbers: Philox4x32-10 streams. A generator's state is (seed, call); every random op takes exactly one call
// number whatever its shape, and element i of its result depends on (seed, call, i) alone: values are the same for any
// thread count. docs/ARCHITECTURE.md, "Random numbers", fixes the layout.
#include <atomic>
#include <cstdint>
#include <utility>

#include "vesta/value.h"

namespace vesta {

struct GeneratorState;

// A counted handle; thread-safe. Default-constructed generators are independent streams with seed 0.
class Generator {
 public:
  Generator();
  explicit Generator(std::nullptr_t) {}
  explicit Generator(uint64_t seed);
  Generator(const Generator& o);
  Generator(Generator&& o) noexcept : state_(std::exchange(o.state_, nullptr)) {}
  Generator& operator=(Generator o) noexcept {
    std::swap(state_, o.state_);
    return *this;
  }
  ~Generator();

  bool defined() const { return state_; }
  // Restarts the stream of `seed`.
  void set_current_seed(uint64_t seed);
  void manual_seed(uint64_t seed) { set_current_seed(seed); }
  uint64_t current_seed() const;
  uint64_t seed();  // restarts from a seed taken from the system's entropy, and returns it
  // The next call number; advances the state by n calls.
  uint64_t take_calls(uint64_t n = 1);
  uint64_t call() const;
  void set_state(uint64_t seed, uint64_t call);
  GeneratorState* state() const { return state_; }
  static Generator borrow(GeneratorState* s);

 private:
  GeneratorState* state_ = nullptr;
};

struct GeneratorState {
  std::atomic<uint32_t> refs{1};
  std::atomic<uint64_t> seed{0}, call{0};
};

inline Value::Value(const Generator& g)
    : kind(g.defined() ? ValueKind::Generator : ValueKind::None), ptr(g.state()) {}

// The generator that random ops use when none is given; seeded with default_seed until manual_seed.
const Generator& default_generator();
constexpr uint64_t default_seed = 67280421310721;
void manual_seed(uint64_t seed);

}  // namespace vesta
