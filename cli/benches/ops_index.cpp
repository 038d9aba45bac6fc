// `vesta bench ops`: indexing, scattering, sorting and searching, and copies that rearrange.
#include "ops_cases.h"
#include "vesta/ops.h"

namespace vesta::cli {

void add_index_cases(OpCases& all, uint64_t seed) {
  DrawnShapes draw(seed + 3);
  using X = const Tensors&;
  auto add = [&](OpCase c) { all.push_back(std::move(c)); };
  add({"embedding/2048x384",
       {{{256, 384}}, {{2048}, 256}},
       [](X x) { return embedding(x[0], x[1]); },
       "F.embedding(x[1], x[0])",
       "f32 fwd bwd",
       false});
  int64_t rows = draw.between(5'000, 30'000), width = draw.between(30, 200), picks = draw.between(1000, 5000);
  add({case_name("embedding", {rows, width, picks}),
       {{{rows, width}}, {{picks}, rows}},
       [](X x) { return embedding(x[0], x[1]); },
       "F.embedding(x[1], x[0])",
       "f32 fwd bwd",
       false});
  add({"embedding_bag/512x16x128",
       {{{10000, 128}}, {{512, 16}, 10000}},
       [](X x) {
         // The module's meaning of 2-d indices: a bag a row.
         const Tensor offsets = arange(0, x[1].numel(), x[1].size(1), TensorOptions(kLong));
         return std::get<0>(embedding_bag(x[0], x[1].reshape({-1}), offsets));
       },
       "F.embedding_bag(x[1], x[0], mode='sum')",
       "f32 fwd bwd",
       false});
  add({"gather/1024x1024",
       {{{1024, 1024}}, {{1024, 1024}, 1024}},
       [](X x) { return x[0].gather(1, x[1]); },
       "x[0].gather(1, x[1])",
       "f32 fwd bwd",
       false});
  auto s = draw.matrix(300'000, 50, 2000);
  add({case_name("scatter_add", s),
       {{s}, {s, s[1]}, {s}},
       [](X x) { return x[0].scatter_add(1, x[1], x[2]); },
       "x[0].scatter_add(1, x[1], x[2])",
       "f32 fwd bwd",
       false});
  add({"index_select/4096x256",
       {{{4096, 256}}, {{2000}, 4096}},
       [](X x) { return x[0].index_select(0, x[1]); },
       "x[0].index_select(0, x[1])",
       "f32 fwd bwd",
       false});
  s = draw.matrix(400'000, 100, 1000);
  add({case_name("index_select_columns", s),
       {{s}, {{64}, s[1]}},
       [](X x) { return x[0].index_select(1, x[1]); },
       "x[0].index_select(1, x[1])",
       "f32 fwd",
       false});
  add({"index_rows/4096x256",
       {{{4096, 256}}, {{2000}, 4096}},
       [](X x) { return index(x[0], {x[1]}); },
       "x[0][x[1]]",
       "f32 fwd bwd",
       false});
  add({"index_put/100000",
       {{{100000}}, {{20000}, 100000}, {{20000}}},
       [](X x) { return index_put(x[0], {x[1]}, x[2]); },
       "x[0].index_put((x[1],), x[2])",
       "f32 fwd",
       false});
  add({"index_put_accumulate/4096x64",
       {{{4096, 64}}, {{5000}, 4096}, {{5000, 64}}},
       [](X x) { return index_put(x[0], {x[1]}, x[2], true); },
       "x[0].index_put((x[1],), x[2], accumulate=True)",
       "f32 fwd",
       false});
  s = draw.matrix(300'000, 50, 1000);
  add({case_name("index_add", s),
       {{s}, {{2000}, s[0]}, {{2000, s[1]}}},
       [](X x) { return x[0].index_add(0, x[1], x[2]); },
       "x[0].index_add(0, x[1], x[2])",
       "f32 fwd bwd",
       false});
  s = draw.matrix(600'000, 50, 1000);
  add({case_name("masked_fill", s),
       {{s}, {s, 0, "mask"}},
       [](X x) { return x[0].masked_fill(x[1], -1.0); },
       "x[0].masked_fill(x[1], -1.0)",
       "f32 fwd bwd"});
  add({"masked_select/1024x512",
       {{{1024, 512}}, {{1024, 512}, 0, "mask"}},
       [](X x) { return x[0].masked_select(x[1]); },
       "x[0].masked_select(x[1])",
       "f32 fwd",
       false});
  add({"nonzero/512x512",
       {{{512, 512}, 2}},
       [](X x) { return x[0].nonzero(); },
       "x[0].nonzero()",
       "f32 fwd",
       false});
  add({"bincount/200000",
       {{{200000}, 1000}},
       [](X x) { return bincount(x[0]); },
       "x[0].bincount()",
       "f32 fwd",
       false});
  add({"sort/512x1024",
       {{{512, 1024}}},
       [](X x) { return std::get<0>(x[0].sort(-1)); },
       "x[0].sort(-1)[0]",
       "f32 fwd bwd",
       false});
  const int64_t n = draw.between(100'000, 400'000);
  add({case_name("sort", {n}),
       {{{n}}},
       [](X x) { return std::get<0>(x[0].sort()); },
       "x[0].sort()[0]",
       "f32 fwd",
       false});
  s = draw.matrix(200'000, 20, 500);
  add({case_name("argsort_columns", s),
       {{s}},
       [](X x) { return x[0].argsort(0, true); },
       "x[0].argsort(0, descending=True)",
       "f32 fwd",
       false});
  add({"topk/256x4096",
       {{{256, 4096}}},
       [](X x) { return std::get<0>(x[0].topk(10)); },
       "x[0].topk(10)[0]",
       "f32 fwd bwd",
       false});
  add({"median_rows/512x1001",
       {{{512, 1001}}},
       [](X x) { return std::get<0>(x[0].median(-1)); },
       "x[0].median(-1)[0]",
       "f32 fwd",
       false});
  add({"unique/100000",
       {{{100000}, 5000}},
       [](X x) { return std::get<0>(_unique2(x[0])); },
       "x[0].unique()",
       "f32 fwd",
       false});
  add({"searchsorted/10000",
       {{{10000}, 0, "sorted"}, {{100000}}},
       [](X x) { return searchsorted(x[0], x[1]); },
       "torch.searchsorted(x[0], x[1])",
       "f32 fwd",
       false});
  add({"transpose_copy/2048x2048",
       {{{2048, 2048}}},
       [](X x) { return x[0].t().contiguous(); },
       "x[0].t().contiguous()",
       "f32 fwd"});
  s = {draw.between(8, 20), draw.between(100, 300), draw.between(4, 12), draw.between(30, 70)};
  add({case_name("permute_copy", s),
       {{s}},
       [](X x) {
         return x[0].permute({0, 2, 1, 3}).contiguous();
       },
       "x[0].permute(0, 2, 1, 3).contiguous()",
       "f32 bf16 fwd bwd"});
  s = {draw.between(8, 20), draw.between(20, 70), draw.between(20, 60), draw.between(20, 60)};
  add({case_name("channels_last_copy", s),
       {{s}},
       [](X x) {
         return x[0].permute({0, 2, 3, 1}).contiguous();
       },
       "x[0].permute(0, 2, 3, 1).contiguous()",
       "f32 fwd"});
  s = draw.matrix(300'000, 50, 1000);
  add({case_name("cat_columns", s),
       {{s}, {s}, {s}},
       [](X x) {
         return cat({x[0], x[1], x[2]}, 1);
       },
       "torch.cat(x, 1)",
       "f32 fwd bwd"});
  add({"cat_rows/64x64",
       {{{64, 64}}, {{64, 64}}},
       [](X x) {
         return cat({x[0], x[1]});
       },
       "torch.cat(x)",
       "f32 fwd"});
  add({"stack/512x512",
       {{{512, 512}}, {{512, 512}}},
       [](X x) {
         return stack({x[0], x[1]}, 1);
       },
       "torch.stack(x, 1)",
       "f32 fwd bwd"});
  add({"repeat/256x256",
       {{{256, 256}}},
       [](X x) {
         return x[0].repeat({4, 2});
       },
       "x[0].repeat(4, 2)",
       "f32 fwd bwd"});
  s = draw.matrix(500'000, 50, 1000);
  add({case_name("flip", s), {{s}}, [](X x) { return x[0].flip({1}); }, "x[0].flip(1)", "f32 fwd"});
  add({case_name("roll", s), {{s}}, [](X x) { return x[0].roll({7}, {1}); }, "x[0].roll(7, 1)", "f32 fwd"});
  add({"tril/1024x1024", {{{1024, 1024}}}, [](X x) { return x[0].tril(); }, "x[0].tril()", "f32 fwd bwd"});
  add({"pad/16x32x60x60",
       {{{16, 32, 60, 60}}},
       [](X x) {
         return constant_pad_nd(x[0], {2, 2, 2, 2});
       },
       "F.pad(x[0], (2, 2, 2, 2))",
       "f32 fwd bwd"});
}

}  // namespace vesta::cli
