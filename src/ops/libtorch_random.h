#pragma once
// Random fills from a generator that draws as libtorch's CPU generator does (vesta/mt19937.h): one engine, element after
// element in the order of the tensor's memory. Results do not depend on the number of threads, since there is one.
#include <cstdint>

#include "core/mt19937.h"
#include "kernels/cpu/random.h"
#include "vesta/tensor.h"

namespace vesta::libtorch_random {

// Any floating or complex tensor, any strides; a and b as cpu::random_fill takes them. Each holds the engine's lock.
void fill(const Tensor& out, cpu::Distribution d, Mt19937& engine, double a, double b);
// low + integers in [0, range), range 0 standing for 2^64, into any real dtype.
void fill_integers(const Tensor& out, Mt19937& engine, int64_t low, uint64_t range);
// random_() without bounds: 0 .. the dtype's largest, floats to 2^digits.
void fill_all_integers(const Tensor& out, Mt19937& engine);
// 1 with probability p, else 0, into any dtype; drawn in the order of the memory of `order`, a tensor of out's sizes.
void fill_bernoulli(const Tensor& out, const Tensor& order, Mt19937& engine, double p);
// The same with a probability for each element: contiguous, float32 or float64, out's sizes.
void fill_bernoulli(const Tensor& out, const Tensor& p, Mt19937& engine);
// Numbers of multinomial: Exp(1) as libtorch draws it for the dtype of the probabilities.
void fill_exponential(double* out, int64_t n, Mt19937& engine);
void fill_uniform(double* out, int64_t n, Mt19937& engine);
// Shuffles 0 .. n - 1.
void permute(int64_t* out, int64_t n, Mt19937& engine);
// A stream for operators that have no libtorch order of their own.
cpu::RandomStream philox_stream(Mt19937& engine);

}  // namespace vesta::libtorch_random
