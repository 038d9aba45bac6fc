// `vesta bench ops`: arithmetic element by element, activations, comparisons, casts; small, large, broadcast, strided.
#include "ops_cases.h"
#include "vesta/ops.h"

namespace vesta::cli {

void add_pointwise_cases(OpCases& all, uint64_t seed) {
  DrawnShapes draw(seed);
  using X = const Tensors&;
  auto add = [&](OpCase c) { all.push_back(std::move(c)); };
  auto plus = [](X x) { return x[0] + x[1]; };
  add({"add/64x64", {{{64, 64}}, {{64, 64}}}, plus, "x[0] + x[1]", "f32 fwd bwd"});
  add({"add/1024x1024", {{{1024, 1024}}, {{1024, 1024}}}, plus, "x[0] + x[1]", "f32 bf16 i64 fwd"});
  add({"add_row/1024x1024", {{{1024, 1024}}, {{1024}}}, plus, "x[0] + x[1]", "f32 fwd bwd"});
  auto s = draw.matrix(600'000, 30, 3000);
  add({case_name("add_row", s), {{s}, {{s[1]}}}, plus, "x[0] + x[1]", "f32 bf16 fwd"});
  s = draw.matrix(600'000, 30, 3000);
  add({case_name("add_column", s), {{s}, {{s[0], 1}}}, plus, "x[0] + x[1]", "f32 fwd bwd"});
  add({"add_channel/16x64x56x56", {{{16, 64, 56, 56}}, {{64, 1, 1}}}, plus, "x[0] + x[1]"});
  add({"add_transposed/1024x1024", {{{1024, 1024}}, {{1024, 1024}, 0, "transposed"}}, plus, "x[0] + x[1]"});
  add({"add_every_other/1024x1024",
       {{{1024, 1024}, 0, "every_other"}, {{1024, 1024}, 0, "every_other"}},
       plus,
       "x[0] + x[1]"});
  add({"mul/1024x1024",
       {{{1024, 1024}}, {{1024, 1024}}},
       [](X x) { return x[0] * x[1]; },
       "x[0] * x[1]",
       "f32 fwd bwd"});
  s = draw.matrix(250'000, 16, 4000);
  add({case_name("div", s),
       {{s}, {s, 0, "uniform"}},
       [](X x) { return x[0] / x[1]; },
       "x[0] / x[1]",
       "f32 f64 fwd bwd"});
  add({"exp/1024x1024", {{{1024, 1024}}}, [](X x) { return x[0].exp(); }, "x[0].exp()", "f32 fwd bwd"});
  add({"tanh/1024x1024", {{{1024, 1024}}}, [](X x) { return x[0].tanh(); }, "x[0].tanh()", "f32 fwd"});
  s = draw.matrix(1'500'000, 100, 4000);
  add({case_name("erf", s), {{s}}, [](X x) { return x[0].erf(); }, "x[0].erf()", "f32 fwd bwd"});
  add({"sigmoid/64x64", {{{64, 64}}}, [](X x) { return x[0].sigmoid(); }, "x[0].sigmoid()", "f32 fwd bwd"});
  s = draw.matrix(400'000, 100, 4000);
  add({case_name("sigmoid", s), {{s}}, [](X x) { return x[0].sigmoid(); }, "x[0].sigmoid()", "f32 bf16 fwd"});
  add({"sqrt/512x512",
       {{{512, 512}, 0, "uniform"}},
       [](X x) { return x[0].sqrt(); },
       "x[0].sqrt()",
       "f32 f64 fwd bwd"});
  add({"pow/512x1024",
       {{{512, 1024}, 0, "uniform"}},
       [](X x) { return x[0].pow(2.5); },
       "x[0].pow(2.5)",
       "f32 fwd bwd"});
  s = draw.matrix(200'000, 16, 4000);
  add({case_name("pow_tensor", s),
       {{s, 0, "uniform"}, {s}},
       [](X x) { return x[0].pow(x[1]); },
       "x[0].pow(x[1])"});
  add({"gelu/2048x1536",
       {{{2048, 1536}}},
       [](X x) { return gelu(x[0], "tanh"); },
       "F.gelu(x[0], approximate='tanh')",
       "f32 fwd bwd"});
  s = draw.matrix(900'000, 100, 4000);
  add({case_name("gelu_erf", s), {{s}}, [](X x) { return gelu(x[0]); }, "F.gelu(x[0])", "f32 bf16 fwd bwd"});
  add({"silu/2048x1536",
       {{{2048, 1536}}},
       [](X x) { return silu(x[0]); },
       "F.silu(x[0])",
       "f32 bf16 fwd bwd"});
  add({"relu/64x64", {{{64, 64}}}, [](X x) { return relu(x[0]); }, "F.relu(x[0])", "f32 fwd bwd"});
  add({"relu/16x64x56x56",
       {{{16, 64, 56, 56}}},
       [](X x) { return relu(x[0]); },
       "F.relu(x[0])",
       "f32 fwd bwd"});
  add({"where/1024x1024",
       {{{1024, 1024}, 0, "mask"}, {{1024, 1024}}, {{1024, 1024}}},
       [](X x) { return where(x[0], x[1], x[2]); },
       "torch.where(x[0], x[1], x[2])",
       "f32 fwd bwd"});
  add({"clamp/1024x1024",
       {{{1024, 1024}}},
       [](X x) { return x[0].clamp(-0.5, 0.5); },
       "x[0].clamp(-0.5, 0.5)",
       "f32 fwd bwd"});
  s = draw.matrix(700'000, 50, 4000);
  add({case_name("maximum", s),
       {{s}, {s}},
       [](X x) { return maximum(x[0], x[1]); },
       "torch.maximum(x[0], x[1])",
       "f32 fwd bwd"});
  add({"addcmul/1024x1024",
       {{{1024, 1024}}, {{1024, 1024}}, {{1024, 1024}}},
       [](X x) { return addcmul(x[0], x[1], x[2], 0.5); },
       "torch.addcmul(x[0], x[1], x[2], value=0.5)"});
  add({"lt/1024x1024",
       {{{1024, 1024}}, {{1024, 1024}}},
       [](X x) { return x[0].lt(x[1]); },
       "x[0] < x[1]",
       "f32 i64 fwd"});
  s = draw.matrix(300'000, 16, 4000);
  add({case_name("floor_divide", s), {{s, 1000}}, [](X x) { return floor_divide(x[0], 7); }, "x[0] // 7"});
  add({case_name("bitwise_and", s),
       {{s, 1000}, {s, 1000}},
       [](X x) { return bitwise_and(x[0], x[1]); },
       "x[0] & x[1]"});
  add({"to_bf16/1024x1024",
       {{{1024, 1024}}},
       [](X x) { return x[0].to(kBFloat16); },
       "x[0].to(torch.bfloat16)"});
  add({"to_f32/1024x1024",
       {{{1024, 1024}}},
       [](X x) { return x[0].to(kFloat); },
       "x[0].to(torch.float32)",
       "bf16 fwd"});
  add({"to_i64/1024x1024", {{{1024, 1024}}}, [](X x) { return x[0].to(kLong); }, "x[0].to(torch.int64)"});
}

}  // namespace vesta::cli
