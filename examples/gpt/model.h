#pragma once
// A byte-level GPT: pre-norm blocks, fused QKV, GELU(tanh) MLP of 4x, learned positions, tied head, no dropout.
#include <string>

#include "vesta/nn.h"

namespace gpt {

struct Config {
  std::string size = "nano";
  int64_t layers = 4, heads = 4, width = 128, block = 64, batch = 12;
  int64_t vocab = 256;
  bool bf16 = false;  // parameters stay float32; inputs of matrix products are cast

  // "nano", "small" or "gpt2"; otherwise ValueError.
  static Config named(const std::string& size);
};

struct BlockImpl : vesta::nn::Module {
  explicit BlockImpl(const Config& config);
  vesta::Tensor forward(vesta::Tensor x);

  int64_t heads;
  bool bf16;
  vesta::nn::LayerNorm norm1{nullptr}, norm2{nullptr};
  vesta::nn::Linear qkv{nullptr}, out{nullptr}, up{nullptr}, down{nullptr};
};
VESTA_MODULE(Block);

struct ModelImpl : vesta::nn::Module {
  explicit ModelImpl(const Config& config);
  // tokens [B, T] int64, T <= block -> logits [B, T, vocab].
  vesta::Tensor forward(const vesta::Tensor& tokens);
  // Mean cross entropy of the next bytes, computed in float32.
  vesta::Tensor loss(const vesta::Tensor& tokens, const vesta::Tensor& targets);

  Config config;
  vesta::nn::Embedding token{nullptr}, position{nullptr};
  vesta::nn::ModuleList blocks;
  vesta::nn::LayerNorm norm{nullptr};
};
VESTA_MODULE(Model);

}  // namespace gpt
