#pragma once
// Layers, containers, losses as modules, and nn::utils. Names, options and defaults are libtorch's; RMSNorm is
// PyTorch's Python one. Initialisation: vesta/nn_init.h. Functions without state: vesta/functional.h.
//   nn::Sequential net(nn::Linear(4, 8), nn::ReLU(), nn::Linear(nn::LinearOptions(8, 2).bias(false)));
#include "vesta/functional.h"
#include "vesta/module.h"
#include "vesta/nn_activation.h"
#include "vesta/nn_adaptive.h"
#include "vesta/nn_any.h"
#include "vesta/nn_attention.h"
#include "vesta/nn_batch_norm.h"
#include "vesta/nn_cloneable.h"
#include "vesta/nn_containers.h"
#include "vesta/nn_conv.h"
#include "vesta/nn_embedding_bag.h"
#include "vesta/nn_init.h"
#include "vesta/nn_init_structured.h"
#include "vesta/nn_layers.h"
#include "vesta/nn_linear.h"
#include "vesta/nn_loss.h"
#include "vesta/nn_norm.h"
#include "vesta/nn_packed_sequence.h"
#include "vesta/nn_padding.h"
#include "vesta/nn_pool.h"
#include "vesta/nn_rnn.h"
#include "vesta/nn_transformer.h"

namespace vesta::nn {
namespace utils {

// Scales all gradients by max_norm / norm where their joint norm exceeds max_norm, and returns that norm from before,
// as a 0-dim tensor (libtorch: double), so that a step can be captured; .item<double>() reads it. Parameters without
// a gradient are skipped. norm_type > 0, infinity included. ValueError where error_if_nonfinite and the norm is not
// finite (this reads the norm).
Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type = 2.0,
                       bool error_if_nonfinite = false);
// Clamps every gradient to [-clip_value, clip_value].
void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value);
// All elements in one vector, and back; vector_to_parameters writes in place. ValueError where lengths differ.
Tensor parameters_to_vector(const std::vector<Tensor>& parameters);
void vector_to_parameters(const Tensor& vector, const std::vector<Tensor>& parameters);

}  // namespace utils
}  // namespace vesta::nn
