#pragma once
// Padding of the last 1 to 3 dims as modules, with a border of a number, of mirrored or repeated values, or around the
// other way. Amounts are before and after, the last dim first, or one number for all sides.
//   nn::ReflectionPad2d pad({1, 1, 2, 0});
#include "vesta/expanding_array.h"
#include "vesta/functional.h"
#include "vesta/nn_cloneable.h"

namespace vesta::nn {

template <size_t D>
class PadOptions {
 public:
  PadOptions(ExpandingArray<2 * D> padding) : padding_(padding) {}  // NOLINT: implicit, here and below
  VESTA_ARG(ExpandingArray<2 * D>, padding);
};
template <size_t D>
class ConstantPadOptions {
 public:
  ConstantPadOptions(ExpandingArray<2 * D> padding, double value = 0)
      : padding_(padding), value_(value) {}  // NOLINT
  VESTA_ARG(ExpandingArray<2 * D>, padding);
  VESTA_ARG(double, value);
};

namespace detail {
// D spatial dims, behind a channel dim and maybe a batch dim.
Tensor pad_spatial(const char* layer, const Tensor& input, IntArrayRef padding, PadMode mode, double value);
void describe_padding(std::ostream& out, const char* layer, IntArrayRef padding, const double* value);
}  // namespace detail

#define VESTA_NN_PAD(Name, D, mode)                                         \
  using Name##Options = PadOptions<D>;                                      \
  class Name##Impl : public Cloneable<Name##Impl> {                         \
   public:                                                                  \
    Name##Impl(ExpandingArray<2 * D> padding) : options(padding) {}         \
    explicit Name##Impl(const Name##Options& o) : options(o) {}             \
    void describe(std::ostream& out) const override {                       \
      detail::describe_padding(out, #Name, options.padding(), nullptr);     \
    }                                                                       \
    Tensor forward(const Tensor& input) {                                   \
      return detail::pad_spatial(#Name, input, options.padding(), mode, 0); \
    }                                                                       \
    Name##Options options;                                                  \
  };                                                                        \
  VESTA_LAYER_OF_BRACES(Name, ExpandingArray<2 * D>, int64_t)
#define VESTA_NN_CONSTANT_PAD(Name, D)                                                         \
  using Name##Options = ConstantPadOptions<D>;                                                 \
  class Name##Impl : public Cloneable<Name##Impl> {                                            \
   public:                                                                                     \
    Name##Impl(ExpandingArray<2 * D> padding, double value) : options(padding, value) {}       \
    explicit Name##Impl(const Name##Options& o) : options(o) {}                                \
    void describe(std::ostream& out) const override {                                          \
      detail::describe_padding(out, #Name, options.padding(), &options.value());               \
    }                                                                                          \
    Tensor forward(const Tensor& input) {                                                      \
      return detail::pad_spatial(#Name, input, options.padding(), kConstant, options.value()); \
    }                                                                                          \
    Name##Options options;                                                                     \
  };                                                                                           \
  VESTA_LAYER(Name)

VESTA_NN_PAD(ZeroPad1d, 1, kConstant);
VESTA_NN_PAD(ZeroPad2d, 2, kConstant);
VESTA_NN_PAD(ZeroPad3d, 3, kConstant);
VESTA_NN_PAD(ReflectionPad1d, 1, kReflect);
VESTA_NN_PAD(ReflectionPad2d, 2, kReflect);
VESTA_NN_PAD(ReflectionPad3d, 3, kReflect);
VESTA_NN_PAD(ReplicationPad1d, 1, kReplicate);
VESTA_NN_PAD(ReplicationPad2d, 2, kReplicate);
VESTA_NN_PAD(ReplicationPad3d, 3, kReplicate);
VESTA_NN_PAD(CircularPad1d, 1, kCircular);
VESTA_NN_PAD(CircularPad2d, 2, kCircular);
VESTA_NN_PAD(CircularPad3d, 3, kCircular);
VESTA_NN_CONSTANT_PAD(ConstantPad1d, 1);
VESTA_NN_CONSTANT_PAD(ConstantPad2d, 2);
VESTA_NN_CONSTANT_PAD(ConstantPad3d, 3);
#undef VESTA_NN_PAD
#undef VESTA_NN_CONSTANT_PAD

}  // namespace vesta::nn
