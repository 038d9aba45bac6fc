// How activations and losses print: name(option=value, ...), as libtorch's.
#include <ostream>

#include "vesta/nn.h"

namespace vesta::nn {
namespace {

const char* text(bool value) { return value ? "true" : "false"; }
// Behind other options, only where it is set.
const char* in_place(bool value) { return value ? ", inplace=true" : ""; }

}  // namespace

#define VESTA_DESCRIBE(Name, ...) \
  void Name##Impl::describe(std::ostream& out) const { out << "vesta::nn::" #Name "(" __VA_ARGS__ << ")"; }

VESTA_DESCRIBE(SiLU)
VESTA_DESCRIBE(Mish)
VESTA_DESCRIBE(Tanh)
VESTA_DESCRIBE(Sigmoid)
VESTA_DESCRIBE(LogSigmoid)
VESTA_DESCRIBE(Hardswish)
VESTA_DESCRIBE(Hardsigmoid)
VESTA_DESCRIBE(Softsign)
VESTA_DESCRIBE(Tanhshrink)
VESTA_DESCRIBE(Softmax2d)
VESTA_DESCRIBE(SELU, << (options.inplace() ? "inplace=true" : ""))
VESTA_DESCRIBE(CELU, << "alpha=" << options.alpha() << in_place(options.inplace()))
VESTA_DESCRIBE(Hardshrink, << options.lambda())
VESTA_DESCRIBE(Softshrink, << options.lambda())
VESTA_DESCRIBE(Threshold, << "threshold=" << options.threshold() << ", value=" << options.value()
                          << in_place(options.inplace()))
VESTA_DESCRIBE(RReLU, << "lower=" << options.lower() << ", upper=" << options.upper()
                      << in_place(options.inplace()))
VESTA_DESCRIBE(PReLU, << "num_parameters=" << options.num_parameters())
VESTA_DESCRIBE(ReLU, << (options.inplace() ? "inplace=true" : ""))
VESTA_DESCRIBE(ReLU6, << (options.inplace() ? "inplace=true" : ""))
VESTA_DESCRIBE(GELU, << "approximate=" << options.approximate())
VESTA_DESCRIBE(LeakyReLU, << "negative_slope=" << options.negative_slope() << in_place(options.inplace()))
VESTA_DESCRIBE(ELU, << "alpha=" << options.alpha() << in_place(options.inplace()))
VESTA_DESCRIBE(Softplus, << "beta=" << options.beta() << ", threshold=" << options.threshold())
VESTA_DESCRIBE(Hardtanh, << "min_val=" << options.min_val() << ", max_val=" << options.max_val()
                         << in_place(options.inplace()))
VESTA_DESCRIBE(GLU, << "dim=" << options.dim())
VESTA_DESCRIBE(Softmax, << "dim=" << options.dim())
VESTA_DESCRIBE(LogSoftmax, << "dim=" << options.dim())
VESTA_DESCRIBE(Softmin, << "dim=" << options.dim())
VESTA_DESCRIBE(L1Loss)
VESTA_DESCRIBE(MSELoss)
VESTA_DESCRIBE(SmoothL1Loss, << "beta=" << options.beta())
VESTA_DESCRIBE(HuberLoss, << "delta=" << options.delta())
VESTA_DESCRIBE(BCELoss)
VESTA_DESCRIBE(BCEWithLogitsLoss)
VESTA_DESCRIBE(NLLLoss)
VESTA_DESCRIBE(CrossEntropyLoss)
VESTA_DESCRIBE(KLDivLoss)
VESTA_DESCRIBE(HingeEmbeddingLoss, << "margin=" << options.margin())
VESTA_DESCRIBE(MultiMarginLoss, << "p=" << options.p() << ", margin=" << options.margin())
VESTA_DESCRIBE(SoftMarginLoss)
VESTA_DESCRIBE(MultiLabelSoftMarginLoss)
VESTA_DESCRIBE(PoissonNLLLoss)
VESTA_DESCRIBE(CosineEmbeddingLoss, << "margin=" << options.margin())
VESTA_DESCRIBE(MarginRankingLoss, << "margin=" << options.margin())
VESTA_DESCRIBE(TripletMarginLoss, << "margin=" << options.margin() << ", p=" << options.p()
                                  << ", eps=" << options.eps() << ", swap=" << text(options.swap()))
VESTA_DESCRIBE(TripletMarginWithDistanceLoss,
               << "margin=" << options.margin() << ", swap=" << text(options.swap()))
VESTA_DESCRIBE(GaussianNLLLoss, << "full=" << text(options.full()) << ", eps=" << options.eps())

}  // namespace vesta::nn
