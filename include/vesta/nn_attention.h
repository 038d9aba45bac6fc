#pragma once
// Multi-head attention (Vaswani et al. 2017) as a module and as a function, with libtorch's options.
//   nn::MultiheadAttention attention(nn::MultiheadAttentionOptions(64, 8));
//   auto [out, weights] = attention(q, k, v);            // [L, N, 64], [S, N, 64], [S, N, 64]
#include <tuple>

#include "vesta/nn_any.h"
#include "vesta/nn_linear.h"

namespace vesta::nn {

class MultiheadAttentionForwardFuncOptions {
 public:
  MultiheadAttentionForwardFuncOptions(int64_t embed_dim_to_check, int64_t num_heads, Tensor in_proj_weight,
                                       Tensor in_proj_bias, Tensor bias_k, Tensor bias_v, bool add_zero_attn,
                                       double dropout_p, Tensor out_proj_weight, Tensor out_proj_bias)
      : embed_dim_to_check_(embed_dim_to_check),
        num_heads_(num_heads),
        in_proj_weight_(std::move(in_proj_weight)),
        in_proj_bias_(std::move(in_proj_bias)),
        bias_k_(std::move(bias_k)),
        bias_v_(std::move(bias_v)),
        add_zero_attn_(add_zero_attn),
        dropout_p_(dropout_p),
        out_proj_weight_(std::move(out_proj_weight)),
        out_proj_bias_(std::move(out_proj_bias)) {}
  VESTA_ARG(int64_t, embed_dim_to_check);
  VESTA_ARG(int64_t, num_heads);
  VESTA_ARG(Tensor, in_proj_weight);  // [3 E, E]: the rows of q, k, v
  VESTA_ARG(Tensor, in_proj_bias);
  // One more key and value for every sequence, [1, 1, E]; undefined: none.
  VESTA_ARG(Tensor, bias_k);
  VESTA_ARG(Tensor, bias_v);
  // One more key and value of zeros.
  VESTA_ARG(bool, add_zero_attn);
  VESTA_ARG(double, dropout_p);
  VESTA_ARG(Tensor, out_proj_weight);
  VESTA_ARG(Tensor, out_proj_bias);
  VESTA_ARG(bool, training) = true;
  // [N, S]: true, or -inf, leaves a key out; other numbers are added to the scores.
  VESTA_ARG(Tensor, key_padding_mask) = {};
  VESTA_ARG(bool, need_weights) = true;
  // [L, S] or [N * heads, L, S], in the same way.
  VESTA_ARG(Tensor, attn_mask) = {};
  VESTA_ARG(bool, use_separate_proj_weight) = false;
  VESTA_ARG(Tensor, q_proj_weight) = {};
  VESTA_ARG(Tensor, k_proj_weight) = {};
  VESTA_ARG(Tensor, v_proj_weight) = {};
  // Used in place of the projected key and value, [N * heads, S, E / heads].
  VESTA_ARG(Tensor, static_k) = {};
  VESTA_ARG(Tensor, static_v) = {};
  VESTA_ARG(bool, average_attn_weights) = true;
};

namespace functional {
using nn::MultiheadAttentionForwardFuncOptions;
// query [L, N, E] or [L, E], key [S, N, K], value [S, N, V] -> the output [L, N, E], and the weights [N, L, S], or
// [N, heads, L, S] where not averaged, undefined where not needed (which is quicker).
std::tuple<Tensor, Tensor> multi_head_attention_forward(const Tensor& query, const Tensor& key,
                                                        const Tensor& value,
                                                        const MultiheadAttentionForwardFuncOptions& options);
}  // namespace functional

class MultiheadAttentionOptions {
 public:
  MultiheadAttentionOptions(int64_t embed_dim, int64_t num_heads)
      : embed_dim_(embed_dim), num_heads_(num_heads), kdim_(embed_dim), vdim_(embed_dim) {}
  VESTA_ARG(int64_t, embed_dim);
  VESTA_ARG(int64_t, num_heads);
  VESTA_ARG(double, dropout) = 0.0;  // of the weights, in training
  VESTA_ARG(bool, bias) = true;
  VESTA_ARG(bool, add_bias_kv) = false;
  VESTA_ARG(bool, add_zero_attn) = false;
  VESTA_ARG(int64_t, kdim);  // widths of keys and values; embed_dim at first
  VESTA_ARG(int64_t, vdim);
  // Tensors are [N, L, E] instead of [L, N, E]; not in libtorch.
  VESTA_ARG(bool, batch_first) = false;
};
// Parameters in_proj_weight (or q_proj_weight, k_proj_weight and v_proj_weight where widths differ), in_proj_bias,
// out_proj, bias_k, bias_v. ValueError unless num_heads divides embed_dim.
class MultiheadAttentionImpl : public Cloneable<MultiheadAttentionImpl> {
 public:
  MultiheadAttentionImpl(int64_t embed_dim, int64_t num_heads)
      : MultiheadAttentionImpl(MultiheadAttentionOptions(embed_dim, num_heads)) {}
  explicit MultiheadAttentionImpl(const MultiheadAttentionOptions& options);
  void reset_parameters();
  void describe(std::ostream& out) const override;
  std::tuple<Tensor, Tensor> forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                     const Tensor& key_padding_mask = {}, bool need_weights = true,
                                     const Tensor& attn_mask = {}, bool average_attn_weights = true);
  VESTA_FORWARD_DEFAULTS({3, AnyValue(Tensor())}, {4, AnyValue(true)}, {5, AnyValue(Tensor())},
                         {6, AnyValue(true)})

  MultiheadAttentionOptions options;
  Tensor in_proj_weight, in_proj_bias, bias_k, bias_v, q_proj_weight, k_proj_weight, v_proj_weight;
  Linear out_proj{nullptr};
};
VESTA_LAYER(MultiheadAttention);

}  // namespace vesta::nn
