#pragma once
// nn::functional: convolutions, their transposes, batch and instance norm, fold and unfold, with libtorch's options.
#include <optional>
#include <variant>

#include "vesta/expanding_array.h"
#include "vesta/option_arg.h"
#include "vesta/tensor.h"

namespace vesta {

// Padding by name: none, or as much as keeps the size (stride 1 only).
enum class PaddingName : uint8_t { Valid, Same };
inline constexpr PaddingName kValid = PaddingName::Valid, kSame = PaddingName::Same;

namespace nn {

// D numbers, one number for all dims, kValid or kSame.
template <size_t D>
class ConvPadding {
 public:
  ConvPadding(PaddingName name) : value_(name) {}                       // NOLINT: implicit, here and below
  ConvPadding(int64_t value) : value_(ExpandingArray<D>(value)) {}      // NOLINT
  ConvPadding(ExpandingArray<D> values) : value_(std::move(values)) {}  // NOLINT
  ConvPadding(std::initializer_list<int64_t> values) : value_(ExpandingArray<D>(values)) {}  // NOLINT
  ConvPadding(const std::vector<int64_t>& values) : value_(ExpandingArray<D>(values)) {}     // NOLINT
  const PaddingName* name() const { return std::get_if<PaddingName>(&value_); }
  // ValueError where the padding is a name.
  const ExpandingArray<D>& values() const {
    VESTA_CHECK(!name(), "ConvPadding: expected numbers, got a name");
    return std::get<ExpandingArray<D>>(value_);
  }

 private:
  std::variant<ExpandingArray<D>, PaddingName> value_;
};

template <size_t D>
class ConvFuncOptions {
  VESTA_ARG(Tensor, bias) = {};
  VESTA_ARG(ExpandingArray<D>, stride) = 1;
  VESTA_ARG(ConvPadding<D>, padding) = 0;
  VESTA_ARG(ExpandingArray<D>, dilation) = 1;
  VESTA_ARG(int64_t, groups) = 1;
};
template <size_t D>
class ConvTransposeFuncOptions {
  VESTA_ARG(Tensor, bias) = {};
  VESTA_ARG(ExpandingArray<D>, stride) = 1;
  VESTA_ARG(ExpandingArray<D>, padding) = 0;
  VESTA_ARG(ExpandingArray<D>, output_padding) = 0;
  VESTA_ARG(int64_t, groups) = 1;
  VESTA_ARG(ExpandingArray<D>, dilation) = 1;
};
class BatchNormFuncOptions {
  VESTA_ARG(Tensor, weight) = {};
  VESTA_ARG(Tensor, bias) = {};
  VESTA_ARG(bool, training) = false;
  VESTA_ARG(std::optional<double>, momentum) = 0.1;  // absent counts as 0
  VESTA_ARG(double, eps) = 1e-5;
};
class InstanceNormFuncOptions {
  VESTA_ARG(Tensor, running_mean) = {};
  VESTA_ARG(Tensor, running_var) = {};
  VESTA_ARG(Tensor, weight) = {};
  VESTA_ARG(Tensor, bias) = {};
  VESTA_ARG(bool, use_input_stats) = true;
  VESTA_ARG(double, momentum) = 0.1;
  VESTA_ARG(double, eps) = 1e-5;
};
class FoldOptions {
 public:
  FoldOptions(ExpandingArray<2> output_size, ExpandingArray<2> kernel_size)
      : output_size_(output_size), kernel_size_(kernel_size) {}
  VESTA_ARG(ExpandingArray<2>, output_size);
  VESTA_ARG(ExpandingArray<2>, kernel_size);
  VESTA_ARG(ExpandingArray<2>, dilation) = 1;
  VESTA_ARG(ExpandingArray<2>, padding) = 0;
  VESTA_ARG(ExpandingArray<2>, stride) = 1;
};
class UnfoldOptions {
 public:
  UnfoldOptions(ExpandingArray<2> kernel_size) : kernel_size_(kernel_size) {}  // NOLINT
  VESTA_ARG(ExpandingArray<2>, kernel_size);
  VESTA_ARG(ExpandingArray<2>, dilation) = 1;
  VESTA_ARG(ExpandingArray<2>, padding) = 0;
  VESTA_ARG(ExpandingArray<2>, stride) = 1;
};

namespace functional {

using nn::BatchNormFuncOptions;
using nn::InstanceNormFuncOptions;
using Conv1dFuncOptions = ConvFuncOptions<1>;
using Conv2dFuncOptions = ConvFuncOptions<2>;
using Conv3dFuncOptions = ConvFuncOptions<3>;
using ConvTranspose1dFuncOptions = ConvTransposeFuncOptions<1>;
using ConvTranspose2dFuncOptions = ConvTransposeFuncOptions<2>;
using ConvTranspose3dFuncOptions = ConvTransposeFuncOptions<3>;
using FoldFuncOptions = FoldOptions;
using UnfoldFuncOptions = UnfoldOptions;

// input [N, C, L] or [C, L], weight [out, C / groups, kernel]; so for two and three spatial dims.
Tensor conv1d(const Tensor& input, const Tensor& weight, const Conv1dFuncOptions& options = {});
Tensor conv2d(const Tensor& input, const Tensor& weight, const Conv2dFuncOptions& options = {});
Tensor conv3d(const Tensor& input, const Tensor& weight, const Conv3dFuncOptions& options = {});
// weight [C, out / groups, kernel].
Tensor conv_transpose1d(const Tensor& input, const Tensor& weight,
                        const ConvTranspose1dFuncOptions& options = {});
Tensor conv_transpose2d(const Tensor& input, const Tensor& weight,
                        const ConvTranspose2dFuncOptions& options = {});
Tensor conv_transpose3d(const Tensor& input, const Tensor& weight,
                        const ConvTranspose3dFuncOptions& options = {});
// Normalises each channel of [N, C, ...]; in training by the batch's statistics, which update the running ones.
// ValueError for one value a channel in training.
Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                  const BatchNormFuncOptions& options = {});
// The same for each sample on its own.
Tensor instance_norm(const Tensor& input, const InstanceNormFuncOptions& options = {});
// Columns [N, C * kernel, windows] added up into [N, C, H, W], and an image's windows as columns. Both also unbatched.
Tensor fold(const Tensor& input, const FoldFuncOptions& options);
Tensor unfold(const Tensor& input, const UnfoldFuncOptions& options);

}  // namespace functional
}  // namespace nn
}  // namespace vesta
