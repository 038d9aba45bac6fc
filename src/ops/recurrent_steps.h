#pragma once
// Recurrent layers step by step over public operators: what the fused layer cannot do (LSTM projections) and the
// gradient in a form that has a gradient itself.
#include <vector>

#include "kernels/cpu/recurrent.h"
#include "vesta/ops.h"
#include "vesta/tensor.h"

namespace vesta {

struct RecurrentLayer {
  cpu::RnnMode mode = cpu::RnnMode::Lstm;
  IntArrayRef batch_sizes;  // rows of each step, never increasing
  bool reverse = false;
};

// gates: [rows, 4 * hidden] input products; weight: [4 * hidden, out], projection: [out, hidden].
// Returns y, the last h and the last c.
std::vector<Tensor> projected_lstm(const RecurrentLayer& layer, const Tensor& gates, const Tensor& h0, const Tensor& c0, const Tensor& weight,
                                   const Tensor& bias, const Tensor& projection);

// Gradients of gates, h0, c0 (LSTM), weight and bias (undefined where absent) for the cotangents dy, dhn, dcn, any of
// which may be undefined.
struct RecurrentGradients {
  Tensor gates, h0, c0, weight, bias;
};
RecurrentGradients recurrent_gradients(const RecurrentLayer& layer, const Tensor& gates, const Tensor& h0, const Tensor& c0, const Tensor& weight,
                                       const Tensor& bias, const Tensor& dy, const Tensor& dhn, const Tensor& dcn);

}  // namespace vesta
