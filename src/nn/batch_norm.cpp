// BatchNorm1d to 3d and InstanceNorm1d to 3d.
#include <ostream>

#include "vesta/autograd.h"
#include "vesta/nn.h"
#include "vesta/ops.h"

namespace vesta::nn::detail {

RunningNorm register_running_norm(Module& module, const char* layer, int64_t num_features, bool affine,
                                  bool track) {
  VESTA_CHECK(num_features >= 0, layer, ": expected a num_features of at least 0, got ", num_features);
  RunningNorm n;
  const auto fresh = [&](bool wanted) { return wanted ? vesta::empty({num_features}) : Tensor(); };
  n.weight = module.register_parameter("weight", fresh(affine), affine);
  n.bias = module.register_parameter("bias", fresh(affine), affine);
  n.running_mean = module.register_buffer("running_mean", fresh(track));
  n.running_var = module.register_buffer("running_var", fresh(track));
  n.num_batches_tracked = module.register_buffer("num_batches_tracked",
                                                 track ? vesta::empty({}, TensorOptions(kLong)) : Tensor());
  n.reset_parameters();
  return n;
}

void RunningNorm::reset_running_stats() const {
  if (!running_mean.defined()) return;
  const NoGradGuard no_grad;
  Tensor(running_mean).zero_();
  Tensor(running_var).fill_(1);
  Tensor(num_batches_tracked).zero_();
}
void RunningNorm::reset_parameters() const {
  reset_running_stats();
  if (weight.defined()) init::ones_(weight);
  if (bias.defined()) init::zeros_(bias);
}

void check_norm_dims(const char* layer, const Tensor& input, int64_t a, int64_t b) {
  if (a == b)
    VESTA_CHECK(input.dim() == a, layer, ": expected an input with ", a, " dims, got ", input.dim());
  else
    VESTA_CHECK(input.dim() == a || input.dim() == b, layer, ": expected an input with ", a, " or ", b,
                " dims, got ", input.dim());
}

Tensor batch_norm_forward(const RunningNorm& n, const BatchNormOptions& o, const Tensor& input,
                          bool training) {
  const bool track = n.running_mean.defined();
  std::optional<double> momentum = o.momentum();
  if (training && track) {
    const NoGradGuard no_grad;
    Tensor(n.num_batches_tracked).add_(1);
    if (!momentum) momentum = 1 / n.num_batches_tracked.item<double>();
  }
  // Statistics are kept and updated in training, and used otherwise; without any, the batch's are used.
  return functional::batch_norm(input, n.running_mean, n.running_var,
                                BatchNormFuncOptions()
                                    .weight(n.weight)
                                    .bias(n.bias)
                                    .training(training || !track)
                                    .momentum(momentum.value_or(0))
                                    .eps(o.eps()));
}

Tensor instance_norm_forward(const char* layer, const RunningNorm& n, const InstanceNormOptions& o,
                             const Tensor& input, int64_t batched_dims, bool training) {
  check_norm_dims(layer, input, batched_dims - 1, batched_dims);
  const bool batched = input.dim() == batched_dims;
  const int64_t channels = input.size(batched ? 1 : 0);
  if (o.affine() || o.track_running_stats())
    VESTA_CHECK(channels == o.num_features(), layer, ": expected an input with ", o.num_features(),
                " channels, got ", channels);
  const Tensor y = functional::instance_norm(batched ? input : input.unsqueeze(0),
                                             InstanceNormFuncOptions()
                                                 .running_mean(n.running_mean)
                                                 .running_var(n.running_var)
                                                 .weight(n.weight)
                                                 .bias(n.bias)
                                                 .use_input_stats(training || !n.running_mean.defined())
                                                 .momentum(o.momentum())
                                                 .eps(o.eps()));
  return batched ? y : y.squeeze(0);
}

void describe_norm(std::ostream& out, const char* layer, int64_t num_features, double eps,
                   std::optional<double> momentum, bool affine, bool track) {
  out << "vesta::nn::" << layer << "(" << num_features << ", eps=" << eps << ", momentum=";
  if (momentum)
    out << *momentum;
  else
    out << "None";
  out << ", affine=" << (affine ? "true" : "false") << ", track_running_stats=" << (track ? "true" : "false")
      << ")";
}

}  // namespace vesta::nn::detail
