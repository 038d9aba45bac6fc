// nn::functional: convolutions, batch and instance norm, fold and unfold. Each unpacks options and calls the operator.
#include "vesta/functional_conv.h"

#include "vesta/ops.h"

namespace vesta::nn::functional {
namespace {

template <size_t D>
std::string_view mode_of(const ConvPadding<D>& padding) {
  return *padding.name() == PaddingName::Same ? "same" : "valid";
}

// ValueError for one value a channel, whose variance is 0 whatever it is.
void check_values_per_channel(const char* name, const Tensor& input, bool samples_apart) {
  int64_t values = samples_apart ? 1 : input.size(0);
  for (int64_t d = 2; d < input.dim(); ++d) values *= input.size(d);
  VESTA_CHECK(values != 1, name, ": expected more than 1 value per channel when training");
}

}  // namespace

#define VESTA_F_CONV(D)                                                                                      \
  Tensor conv##D##d(const Tensor& input, const Tensor& weight, const Conv##D##dFuncOptions& o) {             \
    if (o.padding().name())                                                                                  \
      return vesta::conv##D##d(input, weight, o.bias(), o.stride(), mode_of(o.padding()), o.dilation(),      \
                               o.groups());                                                                  \
    return vesta::conv##D##d(input, weight, o.bias(), o.stride(), o.padding().values(), o.dilation(),        \
                             o.groups());                                                                    \
  }                                                                                                          \
  Tensor conv_transpose##D##d(const Tensor& input, const Tensor& weight,                                     \
                              const ConvTranspose##D##dFuncOptions& o) {                                     \
    return vesta::conv_transpose##D##d(input, weight, o.bias(), o.stride(), o.padding(), o.output_padding(), \
                                       o.groups(), o.dilation());                                            \
  }
VESTA_F_CONV(1)
VESTA_F_CONV(2)
VESTA_F_CONV(3)
#undef VESTA_F_CONV

Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                  const BatchNormFuncOptions& o) {
  VESTA_CHECK(input.dim() >= 2, "batch_norm: expected an input with at least 2 dims, got ", input.dim());
  if (o.training()) check_values_per_channel("batch_norm", input, false);
  return vesta::batch_norm(input, o.weight(), o.bias(), running_mean, running_var, o.training(),
                           o.momentum().value_or(0), o.eps(), false);
}
Tensor instance_norm(const Tensor& input, const InstanceNormFuncOptions& o) {
  VESTA_CHECK(input.dim() >= 2, "instance_norm: expected an input with at least 2 dims, got ", input.dim());
  if (o.use_input_stats()) check_values_per_channel("instance_norm", input, true);
  return vesta::instance_norm(input, o.weight(), o.bias(), o.running_mean(), o.running_var(),
                              o.use_input_stats(), o.momentum(), o.eps(), false);
}
Tensor fold(const Tensor& input, const FoldFuncOptions& o) {
  return vesta::col2im(input, o.output_size(), o.kernel_size(), o.dilation(), o.padding(), o.stride());
}
Tensor unfold(const Tensor& input, const UnfoldFuncOptions& o) {
  return vesta::im2col(input, o.kernel_size(), o.dilation(), o.padding(), o.stride());
}

}  // namespace vesta::nn::functional
