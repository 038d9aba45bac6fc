// nn::functional: padding, channel dropout, norms and distances of vesta/functional_layer.h.
#include "vesta/functional_layer.h"

#include "vesta/ops.h"

namespace vesta::nn::functional {
namespace {

void check_probability(const char* function, double p) {
  VESTA_CHECK(p >= 0 && p <= 1, function, ": expected a probability between 0 and 1, got ", p);
}

// What is zeroed has the input's first two dims, or `batched` says that a batch dim must be put in front.
Tensor channel_dropout(const char* function, Tensor input, const DropoutNdFuncOptions& options,
                       bool batched) {
  check_probability(function, options.p());
  VESTA_CHECK(input.dim() >= 2, function, ": expected at least 2 dims, got ", input.dim());
  if (!options.training() || options.p() == 0) return input;
  const Tensor out = batched ? vesta::feature_dropout(input, options.p(), true)
                             : vesta::feature_dropout(input.unsqueeze(0), options.p(), true).squeeze(0);
  return options.inplace() ? input.copy_(out) : out;
}

const char* mode_name(PadMode mode) {
  switch (mode) {
    case PadMode::Constant:
      return "constant";
    case PadMode::Reflect:
      return "reflect";
    case PadMode::Replicate:
      return "replicate";
    case PadMode::Circular:
      return "circular";
  }
  throw ValueError("pad: unknown mode");
}

}  // namespace

Tensor pad(const Tensor& input, const PadFuncOptions& options) {
  const bool constant = options.mode() == PadMode::Constant;
  return vesta::pad(input, options.pad(), mode_name(options.mode()),
                    constant ? std::optional<double>(options.value()) : std::nullopt);
}

Tensor dropout1d(Tensor input, const Dropout1dFuncOptions& options) {
  return channel_dropout("dropout1d", input, options, input.dim() != 2);
}
Tensor dropout2d(Tensor input, const Dropout2dFuncOptions& options) {
  return channel_dropout("dropout2d", input, options, true);
}
Tensor dropout3d(Tensor input, const Dropout3dFuncOptions& options) {
  return channel_dropout("dropout3d", input, options, input.dim() != 4);
}
Tensor alpha_dropout(Tensor input, const AlphaDropoutFuncOptions& options) {
  check_probability("alpha_dropout", options.p());
  const Tensor out = vesta::alpha_dropout(input, options.p(), options.training());
  return options.inplace() && options.training() ? input.copy_(out) : out;
}
Tensor feature_alpha_dropout(Tensor input, const FeatureAlphaDropoutFuncOptions& options) {
  check_probability("feature_alpha_dropout", options.p());
  const Tensor out = vesta::feature_alpha_dropout(input, options.p(), options.training());
  return options.inplace() && options.training() ? input.copy_(out) : out;
}

Tensor group_norm(const Tensor& input, const GroupNormFuncOptions& options) {
  return vesta::group_norm(input, options.num_groups(), options.weight(), options.bias(), options.eps());
}

Tensor local_response_norm(const Tensor& input, const LocalResponseNormFuncOptions& options) {
  VESTA_CHECK(input.dim() >= 3, "local_response_norm: expected at least 3 dims, got ", input.dim());
  VESTA_CHECK(options.size() > 0, "local_response_norm: expected size > 0, got ", options.size());
  if (input.numel() == 0) return input;
  // A window wider than both neighbours reaches only zeros: no need to pad and sum them.
  const int64_t channels = input.size(1), before = std::min(options.size() / 2, channels),
                after = std::min((options.size() - 1) / 2, channels);
  std::vector<int64_t> amounts(size_t(2 * (input.dim() - 1)), 0);
  amounts[amounts.size() - 2] = before;
  amounts[amounts.size() - 1] = after;
  const Tensor squares = vesta::constant_pad_nd(input * input, amounts);
  const Tensor mean = squares.unfold(1, before + after + 1, 1).sum({-1}) / double(options.size());
  return input / (mean * options.alpha() + options.k()).pow(options.beta());
}

Tensor normalize(const Tensor& input, const NormalizeFuncOptions& options) {
  const Tensor norm =
      vesta::linalg_vector_norm(input, options.p(), {options.dim()}, true).clamp_min(options.eps());
  if (options.out() && options.out()->defined()) {
    Tensor out = *options.out();
    VESTA_CHECK(out.sizes() == input.sizes(), "normalize: out does not have the input's shape");
    return out.copy_(input / norm);
  }
  return input / norm;
}

Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, const CosineSimilarityFuncOptions& options) {
  return vesta::cosine_similarity(x1, x2, options.dim(), options.eps());
}
Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, const PairwiseDistanceFuncOptions& options) {
  return vesta::pairwise_distance(x1, x2, options.p(), options.eps(), options.keepdim());
}
Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight, const Tensor& bias) {
  return vesta::bilinear(input1, input2, weight, bias);
}
Tensor one_hot(const Tensor& tensor, int64_t num_classes) { return vesta::one_hot(tensor, num_classes); }

}  // namespace vesta::nn::functional
