// Transformer layers and stacks. Attention weights are not asked for, so the fused attention operator does the work.
#include "vesta/nn_transformer.h"

#include <limits>
#include <ostream>

#include "vesta/ops.h"

namespace vesta::nn {
namespace {

MultiheadAttention attention_of(const TransformerEncoderLayerOptions& o) {
  return MultiheadAttention(MultiheadAttentionOptions(o.d_model(), o.nhead())
                                .dropout(o.dropout())
                                .bias(o.bias())
                                .batch_first(o.batch_first()));
}
LayerNorm norm_of(const TransformerEncoderLayerOptions& o) {
  return LayerNorm(LayerNormOptions({o.d_model()}).eps(o.layer_norm_eps()).bias(o.bias()));
}

// What a stack does with the norm of its options: the module must have one of its own.
void register_norm(Module& module, AnyModule& norm) {
  if (norm.is_empty()) return;
  norm = norm.clone();
  module.register_module("norm", norm.ptr());
}

void check_layers(const char* stack, int64_t num_layers, bool has_layer) {
  VESTA_CHECK(num_layers >= 0, stack, ": expected num_layers >= 0, got ", num_layers);
  VESTA_CHECK(has_layer, stack, ": the layer is empty");
}

}  // namespace

TransformerActivation::TransformerActivation(Nonlinearity kind) {
  VESTA_CHECK(kind == Nonlinearity::ReLU || kind == Nonlinearity::GELU,
              "Transformer: expected the activation kReLU, kGELU or a function");
  if (kind == Nonlinearity::ReLU)
    function_ = [](const Tensor& x) { return vesta::relu(x); };
  else
    function_ = [](const Tensor& x) { return vesta::gelu(x); };
}

TransformerEncoderLayerImpl::TransformerEncoderLayerImpl(const TransformerEncoderLayerOptions& o)
    : options(o) {
  self_attn = register_module("self_attn", attention_of(o));
  linear1 =
      register_module("linear1", Linear(LinearOptions(o.d_model(), o.dim_feedforward()).bias(o.bias())));
  dropout = register_module("dropout", Dropout(o.dropout()));
  linear2 =
      register_module("linear2", Linear(LinearOptions(o.dim_feedforward(), o.d_model()).bias(o.bias())));
  norm1 = register_module("norm1", norm_of(o));
  norm2 = register_module("norm2", norm_of(o));
  dropout1 = register_module("dropout1", Dropout(o.dropout()));
  dropout2 = register_module("dropout2", Dropout(o.dropout()));
}
void TransformerEncoderLayerImpl::reset_parameters() {
  self_attn->reset_parameters();
  linear1->reset_parameters();
  linear2->reset_parameters();
  norm1->reset_parameters();
  norm2->reset_parameters();
}
Tensor TransformerEncoderLayerImpl::forward(const Tensor& src, const Tensor& src_mask,
                                            const Tensor& src_key_padding_mask) {
  const auto attend = [&](const Tensor& x) {
    return dropout1(std::get<0>(self_attn(x, x, x, src_key_padding_mask, false, src_mask)));
  };
  const auto feed = [&](const Tensor& x) {
    return dropout2(linear2(dropout(options.activation()(linear1(x)))));
  };
  if (options.norm_first()) {
    const Tensor x = src + attend(norm1(src));
    return x + feed(norm2(x));
  }
  const Tensor x = norm1(src + attend(src));
  return norm2(x + feed(x));
}
void TransformerEncoderLayerImpl::describe(std::ostream& out) const {
  out << "vesta::nn::TransformerEncoderLayer";
}

TransformerDecoderLayerImpl::TransformerDecoderLayerImpl(const TransformerDecoderLayerOptions& o)
    : options(o) {
  self_attn = register_module("self_attn", attention_of(o));
  multihead_attn = register_module("multihead_attn", attention_of(o));
  linear1 =
      register_module("linear1", Linear(LinearOptions(o.d_model(), o.dim_feedforward()).bias(o.bias())));
  dropout = register_module("dropout", Dropout(o.dropout()));
  linear2 =
      register_module("linear2", Linear(LinearOptions(o.dim_feedforward(), o.d_model()).bias(o.bias())));
  norm1 = register_module("norm1", norm_of(o));
  norm2 = register_module("norm2", norm_of(o));
  norm3 = register_module("norm3", norm_of(o));
  dropout1 = register_module("dropout1", Dropout(o.dropout()));
  dropout2 = register_module("dropout2", Dropout(o.dropout()));
  dropout3 = register_module("dropout3", Dropout(o.dropout()));
}
void TransformerDecoderLayerImpl::reset_parameters() {
  self_attn->reset_parameters();
  multihead_attn->reset_parameters();
  linear1->reset_parameters();
  linear2->reset_parameters();
  norm1->reset_parameters();
  norm2->reset_parameters();
  norm3->reset_parameters();
}
Tensor TransformerDecoderLayerImpl::forward(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask,
                                            const Tensor& memory_mask, const Tensor& tgt_key_padding_mask,
                                            const Tensor& memory_key_padding_mask) {
  const auto attend_self = [&](const Tensor& x) {
    return dropout1(std::get<0>(self_attn(x, x, x, tgt_key_padding_mask, false, tgt_mask)));
  };
  const auto attend_memory = [&](const Tensor& x) {
    return dropout2(
        std::get<0>(multihead_attn(x, memory, memory, memory_key_padding_mask, false, memory_mask)));
  };
  const auto feed = [&](const Tensor& x) {
    return dropout3(linear2(dropout(options.activation()(linear1(x)))));
  };
  if (options.norm_first()) {
    Tensor x = tgt + attend_self(norm1(tgt));
    x = x + attend_memory(norm2(x));
    return x + feed(norm3(x));
  }
  Tensor x = norm1(tgt + attend_self(tgt));
  x = norm2(x + attend_memory(x));
  return norm3(x + feed(x));
}
void TransformerDecoderLayerImpl::describe(std::ostream& out) const {
  out << "vesta::nn::TransformerDecoderLayer";
}

TransformerEncoderImpl::TransformerEncoderImpl(TransformerEncoderOptions o) : options(std::move(o)) {
  check_layers("TransformerEncoder", options.num_layers(), !options.encoder_layer().is_empty());
  layers = register_module("layers", ModuleList());
  for (int64_t i = 0; i < options.num_layers(); ++i) layers->push_back(options.encoder_layer()->clone());
  register_norm(*this, options.norm());
}
void TransformerEncoderImpl::reset_parameters() {
  for (size_t i = 0; i < layers->size(); ++i) layers->at<TransformerEncoderLayer>(i).reset_parameters();
}
Tensor TransformerEncoderImpl::forward(const Tensor& src, const Tensor& src_mask,
                                       const Tensor& src_key_padding_mask) {
  Tensor x = src;
  for (size_t i = 0; i < layers->size(); ++i)
    x = layers->at<TransformerEncoderLayer>(i).forward(x, src_mask, src_key_padding_mask);
  return options.norm().is_empty() ? x : options.norm().forward(x);
}
void TransformerEncoderImpl::describe(std::ostream& out) const { out << "vesta::nn::TransformerEncoder"; }

TransformerDecoderImpl::TransformerDecoderImpl(TransformerDecoderOptions o) : options(std::move(o)) {
  check_layers("TransformerDecoder", options.num_layers(), !options.decoder_layer().is_empty());
  layers = register_module("layers", ModuleList());
  for (int64_t i = 0; i < options.num_layers(); ++i) layers->push_back(options.decoder_layer()->clone());
  register_norm(*this, options.norm());
}
void TransformerDecoderImpl::reset_parameters() {
  for (size_t i = 0; i < layers->size(); ++i) layers->at<TransformerDecoderLayer>(i).reset_parameters();
}
Tensor TransformerDecoderImpl::forward(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask,
                                       const Tensor& memory_mask, const Tensor& tgt_key_padding_mask,
                                       const Tensor& memory_key_padding_mask) {
  Tensor x = tgt;
  for (size_t i = 0; i < layers->size(); ++i)
    x = layers->at<TransformerDecoderLayer>(i).forward(x, memory, tgt_mask, memory_mask, tgt_key_padding_mask,
                                                       memory_key_padding_mask);
  return options.norm().is_empty() ? x : options.norm().forward(x);
}
void TransformerDecoderImpl::describe(std::ostream& out) const { out << "vesta::nn::TransformerDecoder"; }

TransformerImpl::TransformerImpl(TransformerOptions o) : options(std::move(o)) {
  const auto layer = TransformerEncoderLayerOptions(options.d_model(), options.nhead())
                         .dim_feedforward(options.dim_feedforward())
                         .dropout(options.dropout())
                         .activation(options.activation())
                         .batch_first(options.batch_first())
                         .norm_first(options.norm_first());
  const AnyModule norm(LayerNorm(LayerNormOptions({options.d_model()})));
  encoder = options.custom_encoder();
  if (encoder.is_empty())
    encoder = TransformerEncoder(TransformerEncoderOptions(layer, options.num_encoder_layers()).norm(norm));
  decoder = options.custom_decoder();
  if (decoder.is_empty())
    decoder = TransformerDecoder(TransformerDecoderOptions(layer, options.num_decoder_layers()).norm(norm));
  register_module("encoder", encoder.ptr());
  register_module("decoder", decoder.ptr());
  reset_parameters();
}
void TransformerImpl::reset_parameters() {
  for (const Tensor& parameter : parameters())
    if (parameter.dim() > 1) init::xavier_uniform_(parameter);
}
ModulePtr<Module> TransformerImpl::clone(std::optional<Device> device) const {
  TransformerOptions copied = options;
  copied.custom_encoder(options.custom_encoder().clone()).custom_decoder(options.custom_decoder().clone());
  auto copy = make_module<TransformerImpl>(copied);
  copy->copy_state_of(*this, device);
  return copy;
}
Tensor TransformerImpl::forward(const Tensor& src, const Tensor& tgt, const Tensor& src_mask,
                                const Tensor& tgt_mask, const Tensor& memory_mask,
                                const Tensor& src_key_padding_mask, const Tensor& tgt_key_padding_mask,
                                const Tensor& memory_key_padding_mask) {
  VESTA_CHECK(src.dim() == tgt.dim() && (src.dim() == 2 || src.dim() == 3),
              "Transformer: expected src and tgt of 3 dims, or both of 2, got ", src.dim(), " and ",
              tgt.dim());
  const int64_t batch_dim = options.batch_first() ? 0 : 1;
  VESTA_CHECK(src.dim() == 2 || src.size(batch_dim) == tgt.size(batch_dim),
              "Transformer: expected src and tgt of the same batch size, got ", src.size(batch_dim), " and ",
              tgt.size(batch_dim));
  VESTA_CHECK(src.size(-1) == options.d_model() && tgt.size(-1) == options.d_model(),
              "Transformer: expected src and tgt of width ", options.d_model(), ", got ", src.size(-1),
              " and ", tgt.size(-1));
  const Tensor memory = encoder.forward(src, src_mask, src_key_padding_mask);
  return decoder.forward(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask);
}
void TransformerImpl::describe(std::ostream& out) const { out << "vesta::nn::Transformer"; }
Tensor TransformerImpl::generate_square_subsequent_mask(int64_t size) {
  VESTA_CHECK(size >= 0, "generate_square_subsequent_mask: expected size >= 0, got ", size);
  return vesta::triu(vesta::full({size, size}, -std::numeric_limits<double>::infinity()), 1);
}

}  // namespace vesta::nn
