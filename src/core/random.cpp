// Generators: counted (seed, call) states.
#include "vesta/random.h"

#include <random>

namespace vesta {

Generator::Generator() : Generator(uint64_t(0)) {}
Generator::Generator(uint64_t seed) : state_(new GeneratorState) { state_->seed = seed; }
Generator::Generator(const Generator& o) : state_(o.state_) {
  if (state_) state_->refs.fetch_add(1, std::memory_order_relaxed);
}
Generator::~Generator() {
  if (state_ && state_->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete state_;
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
}

const Generator& default_generator() {
  static const Generator* g = new Generator(default_seed);  // leaks: random ops may run in static destructors
  return *g;
}
void manual_seed(uint64_t seed) { Generator(default_generator()).set_current_seed(seed); }

}  // namespace vesta
