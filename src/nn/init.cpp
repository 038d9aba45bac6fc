// nn::init.
#include <cmath>

#include "vesta/autograd.h"
#include "vesta/nn_init.h"
#include "vesta/ops.h"

namespace vesta::nn::init {
namespace {

struct Fans {
  double in, out;
};

// Of a weight [out, in, kernel...].
Fans fans(const char* function, const Tensor& tensor) {
  VESTA_CHECK(tensor.dim() >= 2, "init::", function, ": expected a tensor of at least 2 dims, got ",
              tensor.dim());
  double field = 1;
  for (int64_t d = 2; d < tensor.dim(); ++d) field *= double(tensor.size(d));
  return {double(tensor.size(1)) * field, double(tensor.size(0)) * field};
}

// Zero fans come with empty tensors, where any bound will do.
double kaiming_std(const char* function, const Tensor& tensor, double a, FanMode mode,
                   Nonlinearity nonlinearity) {
  const Fans f = fans(function, tensor);
  const double fan = mode == FanMode::FanIn ? f.in : f.out;
  return fan > 0 ? calculate_gain(nonlinearity, a) / std::sqrt(fan) : 0;
}
double xavier_std(const char* function, const Tensor& tensor, double gain) {
  const Fans f = fans(function, tensor);
  return f.in + f.out > 0 ? gain * std::sqrt(2 / (f.in + f.out)) : 0;
}

std::optional<Generator> given(const Generator& generator) {
  return generator.defined() ? std::optional<Generator>(generator) : std::nullopt;
}

}  // namespace

double calculate_gain(Nonlinearity nonlinearity, double param) {
  switch (nonlinearity) {
    case Nonlinearity::Tanh:
      return 5.0 / 3;
    case Nonlinearity::ReLU:
      return std::sqrt(2.0);
    case Nonlinearity::LeakyReLU:
      return std::sqrt(2 / (1 + param * param));
    case Nonlinearity::SELU:
      return 3.0 / 4;
    case Nonlinearity::Linear:
    case Nonlinearity::Conv:
    case Nonlinearity::Sigmoid:
      return 1;
    case Nonlinearity::GELU:
      break;
  }
  throw ValueError("calculate_gain: unsupported nonlinearity");
}

Tensor uniform_(Tensor tensor, double low, double high, const Generator& generator) {
  const NoGradGuard no_grad;
  tensor.uniform_(low, high, given(generator));
  return tensor;
}
Tensor normal_(Tensor tensor, double mean, double std, const Generator& generator) {
  const NoGradGuard no_grad;
  tensor.normal_(mean, std, given(generator));
  return tensor;
}
Tensor constant_(Tensor tensor, Scalar value) {
  const NoGradGuard no_grad;
  tensor.fill_(value);
  return tensor;
}
Tensor zeros_(Tensor tensor) { return constant_(std::move(tensor), 0); }
Tensor ones_(Tensor tensor) { return constant_(std::move(tensor), 1); }
Tensor eye_(Tensor matrix) {
  VESTA_CHECK(matrix.dim() == 2, "init::eye_: expected a 2-D tensor, got ", matrix.dim(), " dims");
  const NoGradGuard no_grad;
  matrix.zero_();
  matrix.diagonal().fill_(1);
  return matrix;
}

Tensor xavier_uniform_(Tensor tensor, double gain, const Generator& generator) {
  const double bound = std::sqrt(3.0) * xavier_std("xavier_uniform_", tensor, gain);
  return uniform_(std::move(tensor), -bound, bound, generator);
}
Tensor xavier_normal_(Tensor tensor, double gain, const Generator& generator) {
  const double std = xavier_std("xavier_normal_", tensor, gain);
  return normal_(std::move(tensor), 0, std, generator);
}
Tensor kaiming_uniform_(Tensor tensor, double a, FanMode mode, Nonlinearity nonlinearity,
                        const Generator& generator) {
  const double bound = std::sqrt(3.0) * kaiming_std("kaiming_uniform_", tensor, a, mode, nonlinearity);
  return uniform_(std::move(tensor), -bound, bound, generator);
}
Tensor kaiming_normal_(Tensor tensor, double a, FanMode mode, Nonlinearity nonlinearity,
                       const Generator& generator) {
  const double std = kaiming_std("kaiming_normal_", tensor, a, mode, nonlinearity);
  return normal_(std::move(tensor), 0, std, generator);
}

}  // namespace vesta::nn::init
