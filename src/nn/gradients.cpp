// nn::utils: clipping of gradients, and parameters as one vector.
#include <cmath>

#include "vesta/autograd.h"
#include "vesta/nn.h"
#include "vesta/ops.h"

namespace vesta::nn::utils {
namespace {

std::vector<Tensor> gradients(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> out;
  out.reserve(parameters.size());
  for (const Tensor& parameter : parameters)
    if (parameter.grad().defined()) out.push_back(parameter.grad());
  return out;
}

// The norm of all elements, 0-dim; that of 16-bit tensors is kept in float32, where it cannot overflow.
Tensor norm_of(const Tensor& tensor, double p) {
  if (element_size(tensor.dtype()) == 2) return linalg_vector_norm(tensor, p, std::nullopt, false, kFloat32);
  return linalg_vector_norm(tensor, p);
}

}  // namespace

Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type,
                       bool error_if_nonfinite) {
  VESTA_CHECK(norm_type > 0, "clip_grad_norm_: expected norm_type > 0, got ", norm_type);
  const NoGradGuard no_grad;
  std::vector<Tensor> grads = gradients(parameters);
  if (grads.empty()) return zeros({});
  std::vector<Tensor> norms;
  norms.reserve(grads.size());
  for (const Tensor& grad : grads) norms.push_back(norm_of(grad, norm_type));
  // Norms of 16-bit gradients join in the widest type that occurs.
  const Tensor total = norms.size() == 1 ? norms[0] : norm_of(stack(norms), norm_type);
  VESTA_CHECK(!error_if_nonfinite || std::isfinite(total.item<double>()),
              "clip_grad_norm_: the norm of order ", norm_type, " of the gradients is not finite");
  // The 1e-6 is PyTorch's. Always multiplied: reading the norm to decide would stop a captured step.
  const Tensor factor = clamp_max(max_norm / (total + 1e-6), 1.0);
  for (Tensor& grad : grads) grad.mul_(factor);
  return total;
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value) {
  VESTA_CHECK(clip_value >= 0, "clip_grad_value_: expected clip_value >= 0, got ", clip_value);
  const NoGradGuard no_grad;
  for (Tensor& grad : gradients(parameters)) grad.clamp_(-clip_value, clip_value);
}

Tensor parameters_to_vector(const std::vector<Tensor>& parameters) {
  VESTA_CHECK(!parameters.empty(), "parameters_to_vector: expected at least one parameter");
  std::vector<Tensor> flat;
  flat.reserve(parameters.size());
  for (const Tensor& parameter : parameters) flat.push_back(parameter.reshape({-1}));
  return cat(flat);
}

void vector_to_parameters(const Tensor& vector, const std::vector<Tensor>& parameters) {
  int64_t total = 0;
  for (const Tensor& parameter : parameters) total += parameter.numel();
  VESTA_CHECK(vector.dim() == 1 && vector.numel() == total, "vector_to_parameters: expected a vector of ",
              total, " elements, got ", vector.numel(), " in ", vector.dim(), " dims");
  const NoGradGuard no_grad;
  int64_t start = 0;
  for (Tensor parameter : parameters) {
    parameter.copy_(vector.narrow(0, start, parameter.numel()).view_as(parameter));
    start += parameter.numel();
  }
}

}  // namespace vesta::nn::utils
