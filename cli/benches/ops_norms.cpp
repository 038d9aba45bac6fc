// `vesta bench ops`: softmax over every class of dims, normalisation, losses, and products other than gemm's.
#include "ops_cases.h"
#include "vesta/ops.h"

namespace vesta::cli {

void add_norm_cases(OpCases& all, uint64_t seed) {
  DrawnShapes draw(seed + 2);
  using X = const Tensors&;
  auto add = [&](OpCase c) { all.push_back(std::move(c)); };
  add({"softmax/64x64",
       {{{64, 64}}},
       [](X x) { return x[0].softmax(-1); },
       "x[0].softmax(-1)",
       "f32 fwd bwd"});
  add({"softmax/4096x1024",
       {{{4096, 1024}}},
       [](X x) { return x[0].softmax(-1); },
       "x[0].softmax(-1)",
       "f32 fwd bwd"});
  auto s = draw.matrix(500'000, 20, 2000);
  add({case_name("softmax", s),
       {{s}},
       [](X x) { return x[0].softmax(-1); },
       "x[0].softmax(-1)",
       "f32 bf16 fwd bwd"});
  s = draw.matrix(500'000, 50, 1000);
  add({case_name("softmax_columns", s),
       {{s}},
       [](X x) { return x[0].softmax(0); },
       "x[0].softmax(0)",
       "f32 fwd bwd"});
  add({"softmax_channels/4x21x128x128",
       {{{4, 21, 128, 128}}},
       [](X x) { return x[0].softmax(1); },
       "x[0].softmax(1)",
       "f32 fwd bwd"});
  add({"log_softmax/2048x1000",
       {{{2048, 1000}}},
       [](X x) { return x[0].log_softmax(-1); },
       "x[0].log_softmax(-1)",
       "f32 fwd bwd"});
  add({"layer_norm/2048x384",
       {{{2048, 384}}, {{384}}, {{384}}},
       [](X x) { return layer_norm(x[0], {384}, x[1], x[2]); },
       "F.layer_norm(x[0], (384,), x[1], x[2])",
       "f32 fwd bwd"});
  s = draw.matrix(700'000, 100, 3000);
  add({case_name("layer_norm", s),
       {{s}, {{s[1]}}, {{s[1]}}},
       [](X x) { return layer_norm(x[0], {x[0].size(1)}, x[1], x[2]); },
       "F.layer_norm(x[0], x[0].shape[1:], x[1], x[2])",
       "f32 bf16 fwd bwd"});
  add({"rms_norm/2048x768",
       {{{2048, 768}}, {{768}}},
       [](X x) { return rms_norm(x[0], {768}, x[1]); },
       "F.rms_norm(x[0], (768,), x[1])",
       "f32 fwd bwd"});
  s = draw.matrix(500'000, 50, 500);
  add({case_name("batch_norm", s),
       {{s}, {{s[1]}}, {{s[1]}}},
       [](X x) { return batch_norm(x[0], x[1], x[2], {}, {}, true, 0.1, 1e-5, false); },
       "F.batch_norm(x[0], None, None, x[1], x[2], training=True)",
       "f32 fwd bwd"});
  add({"cross_entropy/2048x256",
       {{{2048, 256}}, {{2048}, 256}},
       [](X x) { return cross_entropy_loss(x[0], x[1]); },
       "F.cross_entropy(x[0], x[1])",
       "f32 fwd bwd"});
  s = draw.matrix(600'000, 20, 1000);
  add({case_name("nll_loss", s),
       {{s}, {{s[0]}, s[1]}},
       [](X x) { return nll_loss(x[0], x[1]); },
       "F.nll_loss(x[0], x[1])",
       "f32 fwd bwd"});
  s = draw.matrix(600'000, 20, 1000);
  add({case_name("mse_loss", s),
       {{s}, {s, 0, "fixed"}},
       [](X x) { return mse_loss(x[0], x[1]); },
       "F.mse_loss(x[0], x[1])",
       "f32 fwd bwd"});
  add({"smooth_l1_loss/1024x1024",
       {{{1024, 1024}}, {{1024, 1024}, 0, "fixed"}},
       [](X x) { return smooth_l1_loss(x[0], x[1]); },
       "F.smooth_l1_loss(x[0], x[1])",
       "f32 fwd bwd"});
  s = draw.matrix(300'000, 20, 1000);
  add({case_name("bce_with_logits", s),
       {{s}, {s, 0, "uniform fixed"}},
       [](X x) { return binary_cross_entropy_with_logits(x[0], x[1]); },
       "F.binary_cross_entropy_with_logits(x[0], x[1])",
       "f32 fwd bwd"});
  add({"bce/512x512",
       {{{512, 512}, 0, "uniform"}, {{512, 512}, 0, "uniform fixed"}},
       [](X x) { return binary_cross_entropy(x[0], x[1]); },
       "F.binary_cross_entropy(x[0], x[1])",
       "f32 fwd bwd"});
  add({"kl_div/1024x512",
       {{{1024, 512}}, {{1024, 512}, 0, "uniform fixed"}},
       [](X x) { return kl_div(x[0], x[1]); },
       "F.kl_div(x[0], x[1])",
       "f32 fwd bwd"});
  s = draw.matrix(500'000, 50, 1000);
  add({case_name("cosine_similarity", s),
       {{s}, {s}},
       [](X x) { return cosine_similarity(x[0], x[1]); },
       "F.cosine_similarity(x[0], x[1])",
       "f32 fwd bwd"});
  add({"bmm/32x64x64",
       {{{32, 64, 64}}, {{32, 64, 64}}},
       [](X x) { return x[0].bmm(x[1]); },
       "x[0].bmm(x[1])",
       "f32 fwd bwd",
       false});
  add({"cdist/512x512x64",
       {{{512, 64}}, {{512, 64}}},
       [](X x) { return cdist(x[0], x[1]); },
       "torch.cdist(x[0], x[1])",
       "f32 fwd bwd",
       false});
  add({"cdist_l1/256x256x32",
       {{{256, 32}}, {{256, 32}}},
       [](X x) { return cdist(x[0], x[1], 1); },
       "torch.cdist(x[0], x[1], p=1.0)",
       "f32 fwd bwd",
       false});
  add({"sdpa_causal/8x6x256x64",
       {{{8, 6, 256, 64}}, {{8, 6, 256, 64}}, {{8, 6, 256, 64}}},
       [](X x) { return scaled_dot_product_attention(x[0], x[1], x[2], {}, 0.0, true); },
       "F.scaled_dot_product_attention(x[0], x[1], x[2], is_causal=True)",
       "f32 fwd bwd",
       false});
}

}  // namespace vesta::cli
