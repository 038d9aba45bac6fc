#pragma once
// nn::init: fills with a structure (orthogonal matrices, channel-preserving kernels, sparse columns), in place, without
// recording. Formulas and defaults are PyTorch's.
#include "vesta/random.h"
#include "vesta/tensor.h"

namespace vesta::nn::init {

// gain times a (semi-)orthogonal matrix [size(0), rest] (Saxe et al. 2013). ValueError below 2 dims.
Tensor orthogonal_(Tensor tensor, double gain = 1, const Generator& generator = Generator(nullptr));
// A convolution's weight [out, in / groups, kernel...] that passes as many channels on as it can, the same in each group
// of out / groups. ValueError unless 3 to 5 dims and `groups` divides out.
Tensor dirac_(Tensor tensor, int64_t groups = 1);
// A matrix of normal numbers with a fraction `sparsity` of each column, rounded up, set to 0. ValueError unless 2 dims.
Tensor sparse_(Tensor matrix, double sparsity, double std = 0.01,
               const Generator& generator = Generator(nullptr));

}  // namespace vesta::nn::init
