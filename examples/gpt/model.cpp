#include "model.h"

#include "vesta/ops.h"

namespace gpt {

using namespace vesta;

Config Config::named(const std::string& size) {
  Config c;
  c.size = size;
  if (size == "nano") {
    return c;
  } else if (size == "small") {
    c.layers = 6, c.heads = 6, c.width = 384, c.block = 256, c.batch = 8;
  } else if (size == "gpt2") {
    c.layers = 12, c.heads = 12, c.width = 768, c.block = 1024, c.batch = 16;
  } else {
    throw ValueError("--size: expected nano, small or gpt2, got " + size);
  }
  return c;
}

namespace {

Tensor project(const nn::Linear& layer, const Tensor& x, bool bf16) {
  if (!bf16) return layer(x);
  return linear(x.to(kBFloat16), layer->weight.to(kBFloat16), layer->bias.to(kBFloat16));
}

}  // namespace

BlockImpl::BlockImpl(const Config& c) : heads(c.heads), bf16(c.bf16) {
  norm1 = register_module("norm1", nn::LayerNorm(nn::LayerNormOptions({c.width})));
  norm2 = register_module("norm2", nn::LayerNorm(nn::LayerNormOptions({c.width})));
  qkv = register_module("qkv", nn::Linear(c.width, 3 * c.width));
  out = register_module("out", nn::Linear(c.width, c.width));
  up = register_module("up", nn::Linear(c.width, 4 * c.width));
  down = register_module("down", nn::Linear(4 * c.width, c.width));
}

Tensor BlockImpl::forward(Tensor x) {
  int64_t b = x.size(0), t = x.size(1), c = x.size(2);
  auto parts = project(qkv, norm1(x), bf16).split(c, 2);
  for (auto& p : parts) p = p.view({b, t, heads, c / heads}).transpose(1, 2);
  Tensor y = scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, true);
  x = x + project(out, y.transpose(1, 2).reshape({b, t, c}), bf16);
  return x + project(down, gelu(project(up, norm2(x), bf16), "tanh"), bf16);
}

ModelImpl::ModelImpl(const Config& c) : config(c) {
  token = register_module("token", nn::Embedding(c.vocab, c.width));
  position = register_module("position", nn::Embedding(c.block, c.width));
  for (int64_t k = 0; k < c.layers; ++k) blocks->push_back(Block(c));
  register_module("blocks", blocks);
  norm = register_module("norm", nn::LayerNorm(nn::LayerNormOptions({c.width})));
  for (auto& p : parameters())
    if (p.dim() > 1) nn::init::normal_(p, 0, 0.02);
}

Tensor ModelImpl::forward(const Tensor& tokens) {
  VESTA_CHECK(tokens.size(1) <= config.block, "gpt: expected at most ", config.block, " tokens, got ",
              tokens.size(1));
  Tensor h = token(tokens) + position(arange(tokens.size(1), TensorOptions(kLong)));
  for (size_t k = 0; k < blocks->size(); ++k) h = blocks->at<BlockImpl>(k).forward(h);
  h = norm(h);
  // The head shares the token embedding's weight.
  return config.bf16 ? linear(h.to(kBFloat16), token->weight.to(kBFloat16)) : linear(h, token->weight);
}

Tensor ModelImpl::loss(const Tensor& tokens, const Tensor& targets) {
  return cross_entropy_loss(forward(tokens).to(kFloat).flatten(0, 1), targets.flatten());
}

}  // namespace gpt
