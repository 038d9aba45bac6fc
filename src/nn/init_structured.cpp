// nn::init: fills with a structure.
#include "vesta/nn_init_structured.h"

#include <algorithm>
#include <cmath>

#include "vesta/autograd.h"
#include "vesta/ops.h"

namespace vesta::nn::init {

Tensor orthogonal_(Tensor tensor, double gain, const Generator& generator) {
  VESTA_CHECK(tensor.dim() >= 2, "init::orthogonal_: expected a tensor of at least 2 dims, got ",
              tensor.dim());
  if (tensor.numel() == 0) return tensor;
  const NoGradGuard no_grad;
  const int64_t rows = tensor.size(0), columns = tensor.numel() / rows;
  Tensor normal = randn({rows, columns}, generator, TensorOptions(tensor.dtype()));
  if (rows < columns) normal = normal.t();
  auto [q, r] = linalg_qr(normal);
  // Makes Q uniform: a QR factorisation is unique only up to these signs.
  q = q * r.diagonal().sign();
  if (rows < columns) q = q.t();
  tensor.copy_(q.reshape(tensor.sizes()));
  return tensor.mul_(gain);
}

Tensor dirac_(Tensor tensor, int64_t groups) {
  VESTA_CHECK(tensor.dim() >= 3 && tensor.dim() <= 5, "init::dirac_: expected a tensor of 3 to 5 dims, got ",
              tensor.dim());
  VESTA_CHECK(groups > 0 && tensor.size(0) % groups == 0,
              "init::dirac_: expected groups that divide the first dim ", tensor.size(0), ", got ", groups);
  const NoGradGuard no_grad;
  tensor.zero_();
  if (tensor.numel() == 0) return tensor;
  const int64_t per_group = tensor.size(0) / groups, channels = std::min(per_group, tensor.size(1));
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t c = 0; c < channels; ++c) {
      Tensor kernel = tensor.select(0, g * per_group + c).select(0, c);
      while (kernel.dim() > 0) kernel = kernel.select(0, kernel.size(0) / 2);
      kernel.fill_(1);
    }
  return tensor;
}

Tensor sparse_(Tensor matrix, double sparsity, double std, const Generator& generator) {
  VESTA_CHECK(matrix.dim() == 2, "init::sparse_: expected a matrix, got ", matrix.dim(), " dims");
  VESTA_CHECK(sparsity >= 0 && sparsity <= 1, "init::sparse_: expected a fraction in [0, 1], got ", sparsity);
  const NoGradGuard no_grad;
  const int64_t rows = matrix.size(0), zeros = int64_t(std::ceil(sparsity * double(rows)));
  const std::optional<Generator> from = generator.defined() ? std::optional(generator) : std::nullopt;
  matrix.normal_(0, std, from);
  for (int64_t c = 0; c < matrix.size(1); ++c)
    matrix.select(1, c).index_fill_(0, randperm(rows, from).narrow(0, 0, zeros), 0);
  return matrix;
}

}  // namespace vesta::nn::init
