#pragma once
// libtorch's CPU random streams. A generator draws from Philox (vesta/random.h) until use_mt19937 makes it draw as
// libtorch's CPU generator does: from a Mersenne Twister, element after element in the order of memory. Only the
// libtorch-shaped entry (compat/torch) does this, to the default generator when a program starts, so that
// manual_seed(0); rand({3}) gives libtorch's numbers there.
//   The same numbers as PyTorch 2.14 gives on a CPU: rand, randn, randint, randperm and their _like forms, uniform_,
// normal_, random_, bernoulli, exponential_, cauchy_, log_normal_, geometric_, multinomial, dropout and all that is made
// of these, such as the initial weights of modules. randn of 16 elements and more may differ by a few ulp, since PyTorch
// takes another logarithm and cosine there; float16 and bfloat16 normals of that size differ by their rounding. Other
// random operators (poisson, binomial, gamma, dirichlet) and the data loader's order are reproducible, but their own.
#include "vesta/random.h"

namespace vesta {

// From here on `generator` draws as libtorch's does, from the start of its current seed's stream. Copies of the handle
// share the stream. It cannot be undone.
void use_mt19937(const Generator& generator);
bool uses_mt19937(const Generator& generator);
// A new generator of this kind.
Generator mt19937_generator(uint64_t seed = default_seed);

}  // namespace vesta
