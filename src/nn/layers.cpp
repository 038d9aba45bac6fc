// Bilinear, Unflatten, the dropouts, GroupNorm, response norms, padding and activations that need more than their
// function.
#include "vesta/nn_layers.h"

#include <cmath>
#include <ostream>

#include "vesta/autograd.h"
#include "vesta/nn_activation.h"
#include "vesta/nn_init.h"
#include "vesta/nn_padding.h"
#include "vesta/ops.h"

namespace vesta::nn {
namespace {

const char* text(bool value) { return value ? "true" : "false"; }

void print_list(std::ostream& out, IntArrayRef values) {
  for (size_t i = 0; i < values.size(); ++i) out << (i ? ", " : "") << values[i];
}

}  // namespace

BilinearImpl::BilinearImpl(const BilinearOptions& o) : options(o) {
  VESTA_CHECK(options.in1_features() > 0 && options.in2_features() >= 0 && options.out_features() >= 0,
              "Bilinear: expected in1_features > 0 and no negative size, got ", options.in1_features(), ", ",
              options.in2_features(), " and ", options.out_features());
  weight = register_parameter(
      "weight", vesta::empty({options.out_features(), options.in1_features(), options.in2_features()}));
  bias = register_parameter("bias", options.bias() ? vesta::empty({options.out_features()}) : Tensor(),
                            options.bias());
  reset_parameters();
}
void BilinearImpl::reset_parameters() {
  const double bound = 1 / std::sqrt(double(options.in1_features()));
  init::uniform_(weight, -bound, bound);
  if (bias.defined()) init::uniform_(bias, -bound, bound);
}
Tensor BilinearImpl::forward(const Tensor& input1, const Tensor& input2) {
  return functional::bilinear(input1, input2, weight, bias);
}
void BilinearImpl::describe(std::ostream& out) const {
  out << "vesta::nn::Bilinear(in1_features=" << options.in1_features()
      << ", in2_features=" << options.in2_features() << ", out_features=" << options.out_features()
      << ", bias=" << text(options.bias()) << ")";
}

Tensor UnflattenImpl::forward(const Tensor& input) { return input.unflatten(options.dim(), options.sizes()); }
void UnflattenImpl::describe(std::ostream& out) const {
  out << "vesta::nn::Unflatten(dim=" << options.dim() << ", unflattened_size={";
  print_list(out, options.sizes());
  out << "})";
}

#define VESTA_DROPOUT(Name, function, FuncOptions)                                                           \
  Name##Impl::Name##Impl(const DropoutOptions& o) : options(o) {                                             \
    VESTA_CHECK(options.p() >= 0 && options.p() <= 1,                                                        \
                #Name ": expected a probability between 0 and 1, got ", options.p());                        \
  }                                                                                                          \
  Tensor Name##Impl::forward(const Tensor& input) {                                                          \
    return functional::function(                                                                             \
        input, functional::FuncOptions().p(options.p()).training(is_training()).inplace(options.inplace())); \
  }                                                                                                          \
  void Name##Impl::describe(std::ostream& out) const {                                                       \
    out << "vesta::nn::" #Name "(p=" << options.p() << ", inplace=" << text(options.inplace()) << ")";       \
  }
VESTA_DROPOUT(Dropout, dropout, DropoutFuncOptions)
VESTA_DROPOUT(Dropout1d, dropout1d, Dropout1dFuncOptions)
VESTA_DROPOUT(Dropout2d, dropout2d, Dropout2dFuncOptions)
VESTA_DROPOUT(Dropout3d, dropout3d, Dropout3dFuncOptions)
VESTA_DROPOUT(AlphaDropout, alpha_dropout, AlphaDropoutFuncOptions)
VESTA_DROPOUT(FeatureAlphaDropout, feature_alpha_dropout, FeatureAlphaDropoutFuncOptions)

GroupNormImpl::GroupNormImpl(const GroupNormOptions& o) : options(o) {
  VESTA_CHECK(options.num_groups() > 0 && options.num_channels() >= 0 &&
                  options.num_channels() % options.num_groups() == 0,
              "GroupNorm: expected num_groups to divide num_channels, got ", options.num_groups(), " and ",
              options.num_channels());
  const bool affine = options.affine();
  weight = register_parameter("weight", affine ? vesta::empty({options.num_channels()}) : Tensor(), affine);
  bias = register_parameter("bias", affine ? vesta::empty({options.num_channels()}) : Tensor(), affine);
  reset_parameters();
}
void GroupNormImpl::reset_parameters() {
  if (weight.defined()) init::ones_(weight);
  if (bias.defined()) init::zeros_(bias);
}
Tensor GroupNormImpl::forward(const Tensor& input) {
  return vesta::group_norm(input, options.num_groups(), weight, bias, options.eps());
}
void GroupNormImpl::describe(std::ostream& out) const {
  out << "vesta::nn::GroupNorm(" << options.num_groups() << ", " << options.num_channels()
      << ", eps=" << options.eps() << ", affine=" << text(options.affine()) << ")";
}

void LocalResponseNormImpl::describe(std::ostream& out) const {
  out << "vesta::nn::LocalResponseNorm(" << options.size() << ", alpha=" << options.alpha()
      << ", beta=" << options.beta() << ", k=" << options.k() << ")";
}

Tensor CrossMapLRN2dImpl::forward(const Tensor& input) {
  VESTA_CHECK(input.dim() == 4, "CrossMapLRN2d: expected a 4-D input, got ", input.dim(), " dims");
  VESTA_CHECK(options.size() > 0, "CrossMapLRN2d: expected size > 0, got ", options.size());
  // The sum over the symmetric window still counts as `size` channels.
  const int64_t width = 2 * ((options.size() - 1) / 2) + 1;
  return functional::local_response_norm(input,
                                         LocalResponseNormOptions(width)
                                             .alpha(options.alpha() * double(width) / double(options.size()))
                                             .beta(options.beta())
                                             .k(double(options.k())));
}
void CrossMapLRN2dImpl::describe(std::ostream& out) const {
  out << "vesta::nn::CrossMapLRN2d(" << options.size() << ", alpha=" << options.alpha()
      << ", beta=" << options.beta() << ", k=" << options.k() << ")";
}

void CosineSimilarityImpl::describe(std::ostream& out) const {
  out << "vesta::nn::CosineSimilarity(dim=" << options.dim() << ", eps=" << options.eps() << ")";
}
void PairwiseDistanceImpl::describe(std::ostream& out) const {
  out << "vesta::nn::PairwiseDistance(p=" << options.p() << ", eps=" << options.eps()
      << ", keepdim=" << text(options.keepdim()) << ")";
}

Tensor RReLUImpl::forward(const Tensor& input) {
  return functional::rrelu(input, RReLUFuncOptions()
                                      .lower(options.lower())
                                      .upper(options.upper())
                                      .training(is_training())
                                      .inplace(options.inplace()));
}
PReLUImpl::PReLUImpl(const PReLUOptions& o) : options(o) {
  VESTA_CHECK(options.num_parameters() > 0, "PReLU: expected num_parameters > 0, got ",
              options.num_parameters());
  weight = register_parameter("weight", vesta::empty({options.num_parameters()}));
  reset_parameters();
}
void PReLUImpl::reset_parameters() { init::constant_(weight, options.init()); }
Tensor Softmax2dImpl::forward(const Tensor& input) {
  VESTA_CHECK(input.dim() == 3 || input.dim() == 4, "Softmax2d: expected 3 or 4 dims, got ", input.dim());
  return vesta::softmax(input, -3);
}

namespace detail {

Tensor pad_spatial(const char* layer, const Tensor& input, IntArrayRef padding, PadMode mode, double value) {
  const int64_t spatial = int64_t(padding.size()) / 2;
  // A constant border needs no channels.
  const int64_t least = mode == PadMode::Constant ? spatial : spatial + 1;
  VESTA_CHECK(input.dim() >= least && (mode == PadMode::Constant || input.dim() <= spatial + 2), layer,
              ": expected an input of ", least, " dims or more, got ", input.dim());
  return functional::pad(
      input, PadFuncOptions(std::vector<int64_t>(padding.begin(), padding.end())).mode(mode).value(value));
}

void describe_padding(std::ostream& out, const char* layer, IntArrayRef padding, const double* value) {
  out << "vesta::nn::" << layer << "(padding=[";
  print_list(out, padding);
  out << "]";
  if (value) out << ", value=" << *value;
  out << ")";
}

}  // namespace detail
}  // namespace vesta::nn
