#pragma once
// nn::init: fills tensors in place, without recording, and returns them. Formulas and defaults are PyTorch's
// (Glorot & Bengio 2010; He et al. 2015).
#include "vesta/random.h"
#include "vesta/tensor.h"

namespace vesta {

enum class FanMode : uint8_t { FanIn, FanOut };
inline constexpr FanMode kFanIn = FanMode::FanIn, kFanOut = FanMode::FanOut;
enum class Nonlinearity : uint8_t { Linear, Conv, Sigmoid, Tanh, ReLU, LeakyReLU, SELU, GELU };
inline constexpr Nonlinearity kLinear = Nonlinearity::Linear, kSigmoid = Nonlinearity::Sigmoid,
                              kTanh = Nonlinearity::Tanh, kReLU = Nonlinearity::ReLU,
                              kLeakyReLU = Nonlinearity::LeakyReLU, kSELU = Nonlinearity::SELU,
                              kGELU = Nonlinearity::GELU;

namespace nn::init {

Tensor uniform_(Tensor tensor, double low = 0, double high = 1,
                const Generator& generator = Generator(nullptr));
Tensor normal_(Tensor tensor, double mean = 0, double std = 1,
               const Generator& generator = Generator(nullptr));
Tensor constant_(Tensor tensor, Scalar value);
Tensor zeros_(Tensor tensor);
Tensor ones_(Tensor tensor);
// The identity of a matrix. ValueError unless 2-D.
Tensor eye_(Tensor matrix);
// U(-a, a) with a = gain sqrt(6 / (fan_in + fan_out)). Tensors of at least 2 dims, here and below.
Tensor xavier_uniform_(Tensor tensor, double gain = 1, const Generator& generator = Generator(nullptr));
Tensor xavier_normal_(Tensor tensor, double gain = 1, const Generator& generator = Generator(nullptr));
// U(-b, b) with b = gain sqrt(3 / fan); `a` is the negative slope of a leaky ReLU.
Tensor kaiming_uniform_(Tensor tensor, double a = 0, FanMode mode = kFanIn,
                        Nonlinearity nonlinearity = kLeakyReLU,
                        const Generator& generator = Generator(nullptr));
Tensor kaiming_normal_(Tensor tensor, double a = 0, FanMode mode = kFanIn,
                       Nonlinearity nonlinearity = kLeakyReLU,
                       const Generator& generator = Generator(nullptr));
// ValueError for GELU, which has no recommended gain.
double calculate_gain(Nonlinearity nonlinearity, double param = 0.01);

}  // namespace nn::init
}  // namespace vesta
