#pragma once
// libtorch's random numbers: the default generator draws from libtorch's CPU stream (vesta/mt19937.h) as soon as a program
// starts, so that torch::manual_seed(0); torch::rand({3}) gives the numbers that libtorch gives.
#include "torch/compat/namespaces.h"

namespace vesta::detail {
inline const bool kDrawsAsTorch = (use_mt19937(default_generator()), true);
}

namespace at {
struct CPUGeneratorImpl;  // names the kind of a generator, below
template <class Impl>
Generator make_generator(uint64_t seed = vesta::default_seed) {
  static_assert(std::is_same_v<Impl, CPUGeneratorImpl>, "make_generator: there are CPU generators only");
  return vesta::mt19937_generator(seed);
}
namespace detail {
inline const Generator& getDefaultCPUGenerator() { return default_generator(); }
// An independent stream.
inline Generator createCPUGenerator(uint64_t seed = vesta::default_seed) {
  return vesta::mt19937_generator(seed);
}
}  // namespace detail
}  // namespace at

namespace torch {
using at::CPUGeneratorImpl;
using at::make_generator;
}  // namespace torch
