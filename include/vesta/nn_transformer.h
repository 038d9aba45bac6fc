#pragma once
// Transformer (Vaswani et al. 2017): encoder and decoder layers, their stacks, and both together. Names, options and
// defaults are libtorch's; batch_first, norm_first and layer_norm_eps are PyTorch's Python ones.
//   nn::TransformerEncoder encoder(nn::TransformerEncoderOptions(nn::TransformerEncoderLayerOptions(64, 8), 6));
//   Tensor y = encoder(x);                                // x [S, N, 64]
// Masks as in MultiheadAttention: true, or -inf, leaves out.
#include <functional>

#include "vesta/nn_attention.h"
#include "vesta/nn_containers.h"
#include "vesta/nn_layers.h"
#include "vesta/nn_norm.h"

namespace vesta::nn {

// What stands between the two linear layers: kReLU, kGELU, or a function.
class TransformerActivation {
 public:
  using Function = std::function<Tensor(const Tensor&)>;
  // ValueError for others.
  TransformerActivation(Nonlinearity kind = kReLU);  // NOLINT: implicit, here and below
  template <class F, std::enable_if_t<std::is_invocable_r_v<Tensor, F, const Tensor&> &&
                                          !std::is_same_v<std::decay_t<F>, TransformerActivation>,
                                      int> = 0>
  TransformerActivation(F function) : function_(std::move(function)) {}  // NOLINT
  Tensor operator()(const Tensor& x) const { return function_(x); }

 private:
  Function function_;
};

class TransformerEncoderLayerOptions {
 public:
  TransformerEncoderLayerOptions(int64_t d_model, int64_t nhead) : d_model_(d_model), nhead_(nhead) {}
  VESTA_ARG(int64_t, d_model);
  VESTA_ARG(int64_t, nhead);
  VESTA_ARG(int64_t, dim_feedforward) = 2048;
  VESTA_ARG(double, dropout) = 0.1;
  VESTA_ARG(TransformerActivation, activation) = kReLU;
  VESTA_ARG(double, layer_norm_eps) = 1e-5;
  // Tensors are [N, S, E].
  VESTA_ARG(bool, batch_first) = false;
  // Norms stand before attention and feed-forward, not behind.
  VESTA_ARG(bool, norm_first) = false;
  VESTA_ARG(bool, bias) = true;
};
using TransformerDecoderLayerOptions = TransformerEncoderLayerOptions;

class TransformerEncoderLayerImpl : public Cloneable<TransformerEncoderLayerImpl> {
 public:
  TransformerEncoderLayerImpl(int64_t d_model, int64_t nhead)
      : TransformerEncoderLayerImpl(TransformerEncoderLayerOptions(d_model, nhead)) {}
  explicit TransformerEncoderLayerImpl(const TransformerEncoderLayerOptions& options);
  void reset_parameters();
  void describe(std::ostream& out) const override;
  // src [S, N, E] -> [S, N, E]; src_mask [S, S], src_key_padding_mask [N, S].
  Tensor forward(const Tensor& src, const Tensor& src_mask = {}, const Tensor& src_key_padding_mask = {});
  VESTA_FORWARD_DEFAULTS({1, AnyValue(Tensor())}, {2, AnyValue(Tensor())})

  TransformerEncoderLayerOptions options;
  MultiheadAttention self_attn{nullptr};
  Linear linear1{nullptr}, linear2{nullptr};
  LayerNorm norm1{nullptr}, norm2{nullptr};
  Dropout dropout, dropout1, dropout2;
};
VESTA_LAYER(TransformerEncoderLayer);

class TransformerDecoderLayerImpl : public Cloneable<TransformerDecoderLayerImpl> {
 public:
  TransformerDecoderLayerImpl(int64_t d_model, int64_t nhead)
      : TransformerDecoderLayerImpl(TransformerDecoderLayerOptions(d_model, nhead)) {}
  explicit TransformerDecoderLayerImpl(const TransformerDecoderLayerOptions& options);
  void reset_parameters();
  void describe(std::ostream& out) const override;
  // tgt [T, N, E], memory [S, N, E] -> [T, N, E].
  Tensor forward(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask = {},
                 const Tensor& memory_mask = {}, const Tensor& tgt_key_padding_mask = {},
                 const Tensor& memory_key_padding_mask = {});
  VESTA_FORWARD_DEFAULTS({2, AnyValue(Tensor())}, {3, AnyValue(Tensor())}, {4, AnyValue(Tensor())},
                         {5, AnyValue(Tensor())})

  TransformerDecoderLayerOptions options;
  MultiheadAttention self_attn{nullptr}, multihead_attn{nullptr};
  Linear linear1{nullptr}, linear2{nullptr};
  LayerNorm norm1{nullptr}, norm2{nullptr}, norm3{nullptr};
  Dropout dropout, dropout1, dropout2, dropout3;
};
VESTA_LAYER(TransformerDecoderLayer);

class TransformerEncoderOptions {
 public:
  TransformerEncoderOptions(TransformerEncoderLayer encoder_layer, int64_t num_layers)
      : encoder_layer_(std::move(encoder_layer)), num_layers_(num_layers) {}
  TransformerEncoderOptions(const TransformerEncoderLayerOptions& layer, int64_t num_layers)
      : encoder_layer_(TransformerEncoderLayer(layer)), num_layers_(num_layers) {}
  VESTA_ARG(TransformerEncoderLayer, encoder_layer) = nullptr;
  VESTA_ARG(int64_t, num_layers);
  VESTA_ARG(AnyModule, norm) = {};  // applied to the result; cloned
};
// num_layers clones of encoder_layer, one after another; all start from the same weights.
class TransformerEncoderImpl : public Cloneable<TransformerEncoderImpl> {
 public:
  TransformerEncoderImpl(const TransformerEncoderLayer& encoder_layer, int64_t num_layers)
      : TransformerEncoderImpl(TransformerEncoderOptions(encoder_layer, num_layers)) {}
  explicit TransformerEncoderImpl(TransformerEncoderOptions options);
  void reset_parameters();
  void describe(std::ostream& out) const override;
  Tensor forward(const Tensor& src, const Tensor& src_mask = {}, const Tensor& src_key_padding_mask = {});
  VESTA_FORWARD_DEFAULTS({1, AnyValue(Tensor())}, {2, AnyValue(Tensor())})

  TransformerEncoderOptions options;
  ModuleList layers;
};
VESTA_LAYER(TransformerEncoder);

class TransformerDecoderOptions {
 public:
  TransformerDecoderOptions(TransformerDecoderLayer decoder_layer, int64_t num_layers)
      : decoder_layer_(std::move(decoder_layer)), num_layers_(num_layers) {}
  TransformerDecoderOptions(const TransformerDecoderLayerOptions& layer, int64_t num_layers)
      : decoder_layer_(TransformerDecoderLayer(layer)), num_layers_(num_layers) {}
  VESTA_ARG(TransformerDecoderLayer, decoder_layer) = nullptr;
  VESTA_ARG(int64_t, num_layers);
  VESTA_ARG(AnyModule, norm) = {};
};
class TransformerDecoderImpl : public Cloneable<TransformerDecoderImpl> {
 public:
  TransformerDecoderImpl(const TransformerDecoderLayer& decoder_layer, int64_t num_layers)
      : TransformerDecoderImpl(TransformerDecoderOptions(decoder_layer, num_layers)) {}
  explicit TransformerDecoderImpl(TransformerDecoderOptions options);
  void reset_parameters();
  void describe(std::ostream& out) const override;
  Tensor forward(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask = {},
                 const Tensor& memory_mask = {}, const Tensor& tgt_key_padding_mask = {},
                 const Tensor& memory_key_padding_mask = {});
  VESTA_FORWARD_DEFAULTS({2, AnyValue(Tensor())}, {3, AnyValue(Tensor())}, {4, AnyValue(Tensor())},
                         {5, AnyValue(Tensor())})

  TransformerDecoderOptions options;
  ModuleList layers;
};
VESTA_LAYER(TransformerDecoder);

class TransformerOptions {
 public:
  TransformerOptions() = default;
  TransformerOptions(int64_t d_model, int64_t nhead) : d_model_(d_model), nhead_(nhead) {}
  TransformerOptions(int64_t d_model, int64_t nhead, int64_t num_encoder_layers, int64_t num_decoder_layers)
      : d_model_(d_model),
        nhead_(nhead),
        num_encoder_layers_(num_encoder_layers),
        num_decoder_layers_(num_decoder_layers) {}
  VESTA_ARG(int64_t, d_model) = 512;
  VESTA_ARG(int64_t, nhead) = 8;
  VESTA_ARG(int64_t, num_encoder_layers) = 6;
  VESTA_ARG(int64_t, num_decoder_layers) = 6;
  VESTA_ARG(int64_t, dim_feedforward) = 2048;
  VESTA_ARG(double, dropout) = 0.1;
  VESTA_ARG(TransformerActivation, activation) = kReLU;
  // Modules called in place of the encoder, with (src, src_mask, src_key_padding_mask), and of the decoder.
  VESTA_ARG(AnyModule, custom_encoder) = {};
  VESTA_ARG(AnyModule, custom_decoder) = {};
  VESTA_ARG(bool, batch_first) = false;
  VESTA_ARG(bool, norm_first) = false;
};
// Encoder and decoder, each with a LayerNorm at its end; weights of 2 dims and more from xavier_uniform_.
class TransformerImpl : public Cloneable<TransformerImpl> {
 public:
  explicit TransformerImpl(TransformerOptions options = {});
  void reset_parameters();
  void describe(std::ostream& out) const override;
  ModulePtr<Module> clone(std::optional<Device> device = std::nullopt) const override;
  // src [S, N, E], tgt [T, N, E] -> [T, N, E].
  Tensor forward(const Tensor& src, const Tensor& tgt, const Tensor& src_mask = {},
                 const Tensor& tgt_mask = {}, const Tensor& memory_mask = {},
                 const Tensor& src_key_padding_mask = {}, const Tensor& tgt_key_padding_mask = {},
                 const Tensor& memory_key_padding_mask = {});
  VESTA_FORWARD_DEFAULTS({2, AnyValue(Tensor())}, {3, AnyValue(Tensor())}, {4, AnyValue(Tensor())},
                         {5, AnyValue(Tensor())}, {6, AnyValue(Tensor())}, {7, AnyValue(Tensor())})
  // [size, size], -inf above the diagonal and 0 elsewhere.
  static Tensor generate_square_subsequent_mask(int64_t size);

  TransformerOptions options;
  AnyModule encoder, decoder;
};
VESTA_LAYER(Transformer);

}  // namespace vesta::nn
