// Multi-head attention over existing operators: where nobody wants the weights, through the fused attention operator.
#include "vesta/nn_attention.h"

#include <cmath>
#include <limits>
#include <ostream>

#include "vesta/ops.h"

namespace vesta::nn {
namespace functional {
namespace {

constexpr const char* kName = "multi_head_attention_forward";

std::string shape_text(const Tensor& t) {
  std::string out = "[";
  for (int64_t d = 0; d < t.dim(); ++d) out += (d ? ", " : "") + std::to_string(t.size(d));
  return out + "]";
}

// Numbers to add to the scores.
Tensor additive(const char* what, const Tensor& mask, DType dtype) {
  if (!mask.defined()) return {};
  if (mask.dtype() == kBool || mask.dtype() == kUInt8) {
    return vesta::zeros(mask.sizes(), TensorOptions(dtype))
        .masked_fill(mask.to(kBool), -std::numeric_limits<double>::infinity());
  }
  VESTA_CHECK_AS(TypeError, mask.is_floating_point(), kName, ": expected ", what,
                 " of bool or floating dtype, got ", dtype_name(mask.dtype()));
  return mask.to(dtype);
}

struct Projected {
  Tensor q, k, v;
};

Projected project(const Tensor& query, const Tensor& key, const Tensor& value,
                  const MultiheadAttentionForwardFuncOptions& o) {
  const int64_t width = query.size(-1);
  const Tensor& bias = o.in_proj_bias();
  const auto bias_part = [&](int64_t first, int64_t count) {
    return bias.defined() ? bias.narrow(0, first * width, count * width) : Tensor();
  };
  if (o.use_separate_proj_weight()) {
    VESTA_CHECK(o.q_proj_weight().defined() && o.k_proj_weight().defined() && o.v_proj_weight().defined(),
                kName, ": use_separate_proj_weight needs q_proj_weight, k_proj_weight and v_proj_weight");
    return {vesta::linear(query, o.q_proj_weight(), bias_part(0, 1)),
            vesta::linear(key, o.k_proj_weight(), bias_part(1, 1)),
            vesta::linear(value, o.v_proj_weight(), bias_part(2, 1))};
  }
  const Tensor& weight = o.in_proj_weight();
  VESTA_CHECK(weight.defined() && weight.dim() == 2 && weight.size(0) == 3 * width, kName,
              ": expected in_proj_weight of ", 3 * width, " rows");
  const auto weight_part = [&](int64_t first, int64_t count) {
    return weight.narrow(0, first * width, count * width);
  };
  // As few matrix products as the sharing of the inputs allows.
  if (key.is_same(value)) {
    if (query.is_same(key)) {
      const auto parts = vesta::linear(query, weight, bias).chunk(3, -1);
      return {parts[0], parts[1], parts[2]};
    }
    const auto parts = vesta::linear(key, weight_part(1, 2), bias_part(1, 2)).chunk(2, -1);
    return {vesta::linear(query, weight_part(0, 1), bias_part(0, 1)), parts[0], parts[1]};
  }
  return {vesta::linear(query, weight_part(0, 1), bias_part(0, 1)),
          vesta::linear(key, weight_part(1, 1), bias_part(1, 1)),
          vesta::linear(value, weight_part(2, 1), bias_part(2, 1))};
}

}  // namespace

std::tuple<Tensor, Tensor> multi_head_attention_forward(const Tensor& query_in, const Tensor& key_in,
                                                        const Tensor& value_in,
                                                        const MultiheadAttentionForwardFuncOptions& o) {
  const bool batched = query_in.dim() == 3;
  VESTA_CHECK(
      (batched || query_in.dim() == 2) && key_in.dim() == query_in.dim() && value_in.dim() == query_in.dim(),
      kName, ": expected query, key and value of 3 dims, or of 2, got ", query_in.dim(), ", ", key_in.dim(),
      " and ", value_in.dim());
  Tensor query = query_in, key = key_in, value = value_in, key_mask = o.key_padding_mask(),
         mask = o.attn_mask();
  if (!batched) {
    query = query_in.unsqueeze(1);
    key = key_in.is_same(query_in) ? query : key_in.unsqueeze(1);
    value = value_in.is_same(key_in) ? key : value_in.unsqueeze(1);
    if (key_mask.defined()) key_mask = key_mask.unsqueeze(0);
  }
  const int64_t length = query.size(0), batch = query.size(1), width = query.size(2), heads = o.num_heads();
  int64_t keys = key.size(0);
  VESTA_CHECK(width == o.embed_dim_to_check(), kName, ": expected queries of width ", o.embed_dim_to_check(),
              ", got ", width);
  VESTA_CHECK(heads > 0 && width % heads == 0, kName, ": expected num_heads to divide the width, got ", heads,
              " and ", width);
  VESTA_CHECK(key.size(0) == value.size(0) && key.size(1) == batch && value.size(1) == batch, kName,
              ": expected keys and values for the same steps and the batch of ", batch, ", got ",
              shape_text(key), " and ", shape_text(value));
  const int64_t head_width = width / heads;
  auto [q, k, v] = project(query, key, value, o);
  mask = additive("attn_mask", mask, q.dtype());
  key_mask = additive("key_padding_mask", key_mask, q.dtype());
  const auto one_more_key = [&] {
    ++keys;
    if (mask.defined()) mask = vesta::constant_pad_nd(mask, {0, 1});
    if (key_mask.defined()) key_mask = vesta::constant_pad_nd(key_mask, {0, 1});
  };
  if (mask.defined()) {
    if (mask.dim() == 2) {
      VESTA_CHECK(mask.size(0) == length && mask.size(1) == keys, kName, ": expected attn_mask of shape [",
                  length, ", ", keys, "], got ", shape_text(mask));
      mask = mask.unsqueeze(0);
    } else {
      VESTA_CHECK(
          mask.dim() == 3 && mask.size(0) == batch * heads && mask.size(1) == length && mask.size(2) == keys,
          kName, ": expected attn_mask of shape [", batch * heads, ", ", length, ", ", keys, "], got ",
          shape_text(mask));
    }
  }
  if (key_mask.defined())
    VESTA_CHECK(key_mask.dim() == 2 && key_mask.size(0) == batch && key_mask.size(1) == keys, kName,
                ": expected key_padding_mask of shape [", batch, ", ", keys, "], got ", shape_text(key_mask));

  VESTA_CHECK(o.bias_k().defined() == o.bias_v().defined(), kName, ": expected bias_k and bias_v, or none");
  if (o.bias_k().defined()) {
    VESTA_CHECK(!o.static_k().defined() && !o.static_v().defined(), kName,
                ": bias_k and bias_v cannot be added to static keys and values");
    k = cat({k, o.bias_k().expand({1, batch, width})});
    v = cat({v, o.bias_v().expand({1, batch, width})});
    one_more_key();
  }
  const auto by_head = [&](const Tensor& t) {
    return t.reshape({t.size(0), batch * heads, head_width}).transpose(0, 1);
  };
  const auto fixed = [&](const char* name, const Tensor& t) {
    VESTA_CHECK(t.dim() == 3 && t.size(0) == batch * heads && t.size(2) == head_width, kName, ": expected ",
                name, " of shape [", batch * heads, ", keys, ", head_width, "], got ", shape_text(t));
    return t;
  };
  q = by_head(q);
  k = o.static_k().defined() ? fixed("static_k", o.static_k()) : by_head(k);
  v = o.static_v().defined() ? fixed("static_v", o.static_v()) : by_head(v);
  if (o.add_zero_attn()) {
    const Tensor zero = vesta::zeros({batch * heads, 1, head_width}, k.options());
    k = cat({k, zero}, 1);
    v = cat({v, zero}, 1);
    one_more_key();
  }
  keys = k.size(1);
  if (key_mask.defined()) {
    VESTA_CHECK(key_mask.size(1) == keys, kName, ": expected key_padding_mask for ", keys, " keys, got ",
                key_mask.size(1));
    const Tensor spread = key_mask.reshape({batch, 1, 1, keys}).expand({batch, heads, 1, keys});
    const Tensor by_heads = spread.reshape({batch * heads, 1, keys});
    mask = mask.defined() ? mask + by_heads : by_heads;
  }
  const double dropout = o.training() ? o.dropout_p() : 0;

  Tensor out, weights;
  if (o.need_weights()) {
    const Tensor scaled = q * (1 / std::sqrt(double(head_width)));
    Tensor scores = vesta::bmm(scaled, k.transpose(1, 2));
    Tensor
        blind;  // queries that may see no key: their weights are 0, where softmax of -inf alone would be NaN
    if (mask.defined()) {
      blind = (mask == -std::numeric_limits<double>::infinity()).all(-1, true);
      scores = (scores + mask).masked_fill(blind, 0);
    }
    weights = vesta::softmax(scores, -1);
    if (blind.defined()) weights = weights.masked_fill(blind, 0);
    if (dropout > 0) weights = vesta::dropout(weights, dropout, true);
    out = vesta::bmm(weights, v);
  } else {
    const auto four = [&](const Tensor& t) { return t.reshape({batch, heads, t.size(1), t.size(2)}); };
    Tensor bias = mask;
    if (mask.defined()) bias = mask.size(0) == 1 ? mask.unsqueeze(0) : four(mask);
    out = vesta::scaled_dot_product_attention(four(q), four(k), four(v), bias, dropout)
              .reshape({batch * heads, length, head_width});
  }
  out = vesta::linear(out.transpose(0, 1).reshape({length, batch, width}), o.out_proj_weight(),
                      o.out_proj_bias());
  if (weights.defined()) {
    weights = weights.reshape({batch, heads, length, keys});
    if (o.average_attn_weights()) weights = weights.mean({1});
  }
  if (!batched) {
    out = out.squeeze(1);
    if (weights.defined()) weights = weights.squeeze(0);
  }
  return {out, weights};
}

}  // namespace functional

MultiheadAttentionImpl::MultiheadAttentionImpl(const MultiheadAttentionOptions& o) : options(o) {
  const int64_t width = o.embed_dim();
  VESTA_CHECK(width > 0 && o.num_heads() > 0 && width % o.num_heads() == 0,
              "MultiheadAttention: expected num_heads to divide embed_dim, got ", o.num_heads(), " and ",
              width);
  VESTA_CHECK(o.dropout() >= 0 && o.dropout() <= 1,
              "MultiheadAttention: expected a dropout between 0 and 1, got ", o.dropout());
  const bool same = o.kdim() == width && o.vdim() == width;
  const auto weight = [&](const char* name, bool used, std::vector<int64_t> shape) {
    return register_parameter(name, used ? vesta::empty(shape) : Tensor(), used);
  };
  in_proj_weight = weight("in_proj_weight", same, {3 * width, width});
  q_proj_weight = weight("q_proj_weight", !same, {width, width});
  k_proj_weight = weight("k_proj_weight", !same, {width, o.kdim()});
  v_proj_weight = weight("v_proj_weight", !same, {width, o.vdim()});
  in_proj_bias = weight("in_proj_bias", o.bias(), {3 * width});
  bias_k = weight("bias_k", o.add_bias_kv(), {1, 1, width});
  bias_v = weight("bias_v", o.add_bias_kv(), {1, 1, width});
  out_proj = register_module("out_proj", Linear(LinearOptions(width, width).bias(o.bias())));
  reset_parameters();
}

void MultiheadAttentionImpl::reset_parameters() {
  for (const Tensor& w : {in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight})
    if (w.defined()) init::xavier_uniform_(w);
  if (in_proj_bias.defined()) {
    init::zeros_(in_proj_bias);
    init::zeros_(out_proj->bias);
  }
  if (bias_k.defined()) {
    init::xavier_normal_(bias_k);
    init::xavier_normal_(bias_v);
  }
}

std::tuple<Tensor, Tensor> MultiheadAttentionImpl::forward(const Tensor& query, const Tensor& key,
                                                           const Tensor& value,
                                                           const Tensor& key_padding_mask, bool need_weights,
                                                           const Tensor& attn_mask,
                                                           bool average_attn_weights) {
  const bool swap = options.batch_first() && query.dim() == 3;
  // Equal inputs stay equal objects: they share one projection.
  const Tensor q = swap ? query.transpose(0, 1) : query;
  const Tensor k = key.is_same(query) ? q : swap && key.dim() == 3 ? key.transpose(0, 1) : key;
  const Tensor v = value.is_same(key) ? k : swap && value.dim() == 3 ? value.transpose(0, 1) : value;
  auto [out, weights] = functional::multi_head_attention_forward(
      q, k, v,
      MultiheadAttentionForwardFuncOptions(options.embed_dim(), options.num_heads(), in_proj_weight,
                                           in_proj_bias, bias_k, bias_v, options.add_zero_attn(),
                                           options.dropout(), out_proj->weight, out_proj->bias)
          .training(is_training())
          .key_padding_mask(key_padding_mask)
          .need_weights(need_weights)
          .attn_mask(attn_mask)
          .use_separate_proj_weight(!in_proj_weight.defined())
          .q_proj_weight(q_proj_weight)
          .k_proj_weight(k_proj_weight)
          .v_proj_weight(v_proj_weight)
          .average_attn_weights(average_attn_weights));
  return {swap ? out.transpose(0, 1) : out, weights};
}

void MultiheadAttentionImpl::describe(std::ostream& out) const {
  out << "vesta::nn::MultiheadAttention(embed_dim=" << options.embed_dim()
      << ", num_heads=" << options.num_heads() << ", dropout=" << options.dropout()
      << ", bias=" << (options.bias() ? "true" : "false") << ")";
}

}  // namespace vesta::nn
