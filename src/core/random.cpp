// Generators: counted (seed, call) states, and the Mersenne Twister of those that draw as libtorch's do.
#include "vesta/random.h"

#include <cmath>
#include <random>

#include "core/mt19937.h"

namespace vesta {

namespace {
// Every state is one of these; the public header knows of the Philox part only.
struct FullState : GeneratorState {
  std::atomic<Mt19937*> mt19937{nullptr};  // owned; set once
  ~FullState() { delete mt19937.load(std::memory_order_relaxed); }
};
FullState* full(GeneratorState* state) { return static_cast<FullState*>(state); }
}  // namespace

Generator::Generator() : Generator(uint64_t(0)) {}
Generator::Generator(uint64_t seed) : state_(new FullState) { state_->seed = seed; }
Generator::Generator(const Generator& o) : state_(o.state_) {
  if (state_) state_->refs.fetch_add(1, std::memory_order_relaxed);
}
Generator::~Generator() {
  if (state_ && state_->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete full(state_);
}
Generator Generator::borrow(GeneratorState* s) {
  Generator g(nullptr);
  g.state_ = s;
  if (s) s->refs.fetch_add(1, std::memory_order_relaxed);
  return g;
}
void Generator::set_current_seed(uint64_t seed) { set_state(seed, 0); }
uint64_t Generator::current_seed() const { return state_->seed; }
uint64_t Generator::seed() {
  std::random_device device;
  uint64_t s = uint64_t(device()) << 32 | device();
  set_current_seed(s);
  return s;
}
uint64_t Generator::take_calls(uint64_t n) { return state_->call.fetch_add(n); }
uint64_t Generator::call() const { return state_->call; }
void Generator::set_state(uint64_t seed, uint64_t call) {
  state_->seed = seed;
  state_->call = call;
  if (Mt19937* mt = mt19937_of(*this)) {
    std::lock_guard lock(mt->mutex);
    mt->reseed(seed);
  }
}

Mt19937* mt19937_of(const Generator& g) {
  return g.defined() ? full(g.state())->mt19937.load(std::memory_order_acquire) : nullptr;
}
bool uses_mt19937(const Generator& generator) { return mt19937_of(generator) != nullptr; }
void use_mt19937(const Generator& generator) {
  VESTA_CHECK(generator.defined(), "use_mt19937: the generator is undefined");
  if (uses_mt19937(generator)) return;
  auto* mt = new Mt19937;
  mt->reseed(generator.current_seed());
  Mt19937* none = nullptr;
  if (!full(generator.state())->mt19937.compare_exchange_strong(none, mt, std::memory_order_acq_rel))
    delete mt;
}
Generator mt19937_generator(uint64_t seed) {
  Generator generator(seed);
  use_mt19937(generator);
  return generator;
}

// libtorch's normal_distribution<double>: Box-Muller, the sine kept for the next draw.
double Mt19937::normal() {
  if (words.next_normal) {
    const double kept = *words.next_normal;
    words.next_normal.reset();
    return kept;
  }
  const double u1 = uniform_double(), u2 = uniform_double();
  const double radius = std::sqrt(-2.0 * std::log1p(-u2)), theta = 2.0 * 3.14159265358979323846 * u1;
  words.next_normal = radius * std::sin(theta);
  return radius * std::cos(theta);
}

GeneratorSnapshot take_snapshot(const Generator& generator) {
  GeneratorSnapshot snapshot{generator.current_seed(), generator.call(), std::nullopt};
  if (Mt19937* mt = mt19937_of(generator)) {
    std::lock_guard lock(mt->mutex);
    snapshot.words = mt->words;
  }
  return snapshot;
}
void restore_snapshot(const Generator& generator, const GeneratorSnapshot& snapshot) {
  Generator(generator).set_state(snapshot.seed, snapshot.call);
  Mt19937* mt = mt19937_of(generator);
  if (!mt || !snapshot.words) return;
  std::lock_guard lock(mt->mutex);
  mt->words = *snapshot.words;
}

const Generator& default_generator() {
  static const Generator* g = new Generator(default_seed);  // leaks: random ops may run in static destructors
  return *g;
}
void manual_seed(uint64_t seed) { Generator(default_generator()).set_current_seed(seed); }

}  // namespace vesta
