#pragma once
// BatchNorm and InstanceNorm over 1 to 3 spatial dims, as modules with libtorch's names and options.
//   nn::BatchNorm2d norm(64);
#include "vesta/functional_conv.h"
#include "vesta/nn_cloneable.h"

namespace vesta::nn {

class BatchNormOptions {
 public:
  BatchNormOptions(int64_t num_features) : num_features_(num_features) {}  // NOLINT
  VESTA_ARG(int64_t, num_features);
  VESTA_ARG(double, eps) = 1e-5;
  // Of the running statistics; absent: their plain average over all batches so far.
  VESTA_ARG(std::optional<double>, momentum) = 0.1;
  VESTA_ARG(bool, affine) = true;
  VESTA_ARG(bool, track_running_stats) = true;
};
class InstanceNormOptions {
 public:
  InstanceNormOptions(int64_t num_features) : num_features_(num_features) {}  // NOLINT
  VESTA_ARG(int64_t, num_features);
  VESTA_ARG(double, eps) = 1e-5;
  VESTA_ARG(double, momentum) = 0.1;
  VESTA_ARG(bool, affine) = false;
  VESTA_ARG(bool, track_running_stats) = false;
};
using BatchNorm1dOptions = BatchNormOptions;
using BatchNorm2dOptions = BatchNormOptions;
using BatchNorm3dOptions = BatchNormOptions;
using InstanceNorm1dOptions = InstanceNormOptions;
using InstanceNorm2dOptions = InstanceNormOptions;
using InstanceNorm3dOptions = InstanceNormOptions;

namespace detail {
// Parameters weight (ones) and bias (zeros), buffers running_mean (zeros), running_var (ones) and num_batches_tracked (0);
// undefined where the options say so.
struct RunningNorm {
  Tensor weight, bias, running_mean, running_var, num_batches_tracked;
  void reset_running_stats() const;
  void reset_parameters() const;
};
RunningNorm register_running_norm(Module& module, const char* layer, int64_t num_features, bool affine,
                                  bool track);
// ValueError unless the input has one of two numbers of dims.
void check_norm_dims(const char* layer, const Tensor& input, int64_t a, int64_t b);
Tensor batch_norm_forward(const RunningNorm& norm, const BatchNormOptions& options, const Tensor& input,
                          bool training);
Tensor instance_norm_forward(const char* layer, const RunningNorm& norm, const InstanceNormOptions& options,
                             const Tensor& input, int64_t batched_dims, bool training);
void describe_norm(std::ostream& out, const char* layer, int64_t num_features, double eps,
                   std::optional<double> momentum, bool affine, bool track);
}  // namespace detail

// Options, parameters and buffers that both kinds share.
template <class Derived, class Options>
class RunningNormImpl : public Cloneable<Derived>, protected detail::RunningNorm {
 public:
  using detail::RunningNorm::bias;
  using detail::RunningNorm::num_batches_tracked;
  using detail::RunningNorm::running_mean;
  using detail::RunningNorm::running_var;
  using detail::RunningNorm::weight;
  void reset_running_stats() { detail::RunningNorm::reset_running_stats(); }
  void reset_parameters() { detail::RunningNorm::reset_parameters(); }
  void describe(std::ostream& out) const override {
    detail::describe_norm(out, Derived::kLayer, options.num_features(), options.eps(), options.momentum(),
                          options.affine(), options.track_running_stats());
  }
  Options options;

 protected:
  explicit RunningNormImpl(const Options& o) : options(o) {
    static_cast<detail::RunningNorm&>(*this) = detail::register_running_norm(
        *this, Derived::kLayer, o.num_features(), o.affine(), o.track_running_stats());
  }
};

// [N, C, ...]: BatchNorm1d takes 2 or 3 dims, 2d 4, 3d 5. In training and where no statistics are tracked it uses the
// batch's; ValueError for one value a channel.
#define VESTA_NN_BATCH_NORM(Name, dims, other_dims)                                           \
  class Name##Impl : public RunningNormImpl<Name##Impl, BatchNormOptions> {                   \
   public:                                                                                    \
    static constexpr const char* kLayer = #Name;                                              \
    explicit Name##Impl(int64_t num_features) : Name##Impl(BatchNormOptions(num_features)) {} \
    explicit Name##Impl(const BatchNormOptions& o) : RunningNormImpl(o) {}                    \
    Tensor forward(const Tensor& input) {                                                     \
      detail::check_norm_dims(kLayer, input, dims, other_dims);                               \
      return detail::batch_norm_forward(*this, options, input, is_training());                \
    }                                                                                         \
  };                                                                                          \
  VESTA_LAYER(Name)
// [N, C, ...] or [C, ...].
#define VESTA_NN_INSTANCE_NORM(Name, dims)                                                       \
  class Name##Impl : public RunningNormImpl<Name##Impl, InstanceNormOptions> {                   \
   public:                                                                                       \
    static constexpr const char* kLayer = #Name;                                                 \
    explicit Name##Impl(int64_t num_features) : Name##Impl(InstanceNormOptions(num_features)) {} \
    explicit Name##Impl(const InstanceNormOptions& o) : RunningNormImpl(o) {}                    \
    Tensor forward(const Tensor& input) {                                                        \
      return detail::instance_norm_forward(kLayer, *this, options, input, dims, is_training());  \
    }                                                                                            \
  };                                                                                             \
  VESTA_LAYER(Name)
VESTA_NN_BATCH_NORM(BatchNorm1d, 2, 3);
VESTA_NN_BATCH_NORM(BatchNorm2d, 4, 4);
VESTA_NN_BATCH_NORM(BatchNorm3d, 5, 5);
VESTA_NN_INSTANCE_NORM(InstanceNorm1d, 3);
VESTA_NN_INSTANCE_NORM(InstanceNorm2d, 4);
VESTA_NN_INSTANCE_NORM(InstanceNorm3d, 5);
#undef VESTA_NN_BATCH_NORM
#undef VESTA_NN_INSTANCE_NORM

}  // namespace vesta::nn
