// `vesta bench ops`: reductions over all dims, inner, outer and middle ones, and scans.
#include "ops_cases.h"
#include "vesta/ops.h"

namespace vesta::cli {

void add_reduction_cases(OpCases& all, uint64_t seed) {
  DrawnShapes draw(seed + 1);
  using X = const Tensors&;
  auto add = [&](OpCase c) { all.push_back(std::move(c)); };
  add({"sum/64x64", {{{64, 64}}}, [](X x) { return x[0].sum(); }, "x[0].sum()", "f32 fwd bwd"});
  add({"sum/4096x1024", {{{4096, 1024}}}, [](X x) { return x[0].sum(); }, "x[0].sum()", "f32 bf16 fwd"});
  add({"sum_rows/4096x1024",
       {{{4096, 1024}}},
       [](X x) { return x[0].sum({-1}); },
       "x[0].sum(-1)",
       "f32 fwd bwd"});
  add({"sum_columns/4096x1024",
       {{{4096, 1024}}},
       [](X x) { return x[0].sum({0}); },
       "x[0].sum(0)",
       "f32 fwd"});
  add({"sum_columns/64x100000",
       {{{64, 100000}}},
       [](X x) { return x[0].sum({0}); },
       "x[0].sum(0)",
       "f32 fwd"});
  std::vector<int64_t> s = {draw.between(20, 60), draw.between(40, 200), draw.between(20, 300)};
  add({case_name("sum_middle", s),
       {{s}},
       [](X x) { return x[0].sum({1}); },
       "x[0].sum(1)",
       "f32 bf16 fwd bwd"});
  s = {draw.between(8, 24), draw.between(16, 64), draw.between(100, 1000)};
  add({case_name("sum_outer_inner", s), {{s}}, [](X x) { return x[0].sum({0, 2}); }, "x[0].sum((0, 2))"});
  add({"sum_rows_transposed/2048x1024",
       {{{2048, 1024}, 0, "transposed"}},
       [](X x) { return x[0].sum({-1}); },
       "x[0].sum(-1)"});
  add({"sum/1024x1024", {{{1024, 1024}}}, [](X x) { return x[0].sum(); }, "x[0].sum()", "f64 i64 fwd"});
  s = draw.matrix(800'000, 40, 4000);
  add({case_name("mean_rows", s),
       {{s}},
       [](X x) { return x[0].mean({-1}); },
       "x[0].mean(-1)",
       "f32 bf16 fwd bwd"});
  add({"amax_rows/4096x1024",
       {{{4096, 1024}}},
       [](X x) { return x[0].amax({-1}); },
       "x[0].amax(-1)",
       "f32 fwd"});
  s = draw.matrix(800'000, 40, 4000);
  add({case_name("amax_columns", s),
       {{s}},
       [](X x) { return x[0].amax({0}); },
       "x[0].amax(0)",
       "f32 fwd bwd"});
  s = draw.matrix(800'000, 40, 4000);
  add({case_name("max_rows", s),
       {{s}},
       [](X x) { return std::get<0>(x[0].max(-1)); },
       "x[0].max(-1)[0]",
       "f32 fwd bwd"});
  add({"argmax_rows/4096x1024", {{{4096, 1024}}}, [](X x) { return x[0].argmax(-1); }, "x[0].argmax(-1)"});
  s = draw.matrix(500'000, 100, 2000);
  add({case_name("argmin_columns", s), {{s}}, [](X x) { return x[0].argmin(0); }, "x[0].argmin(0)"});
  add({"var_rows/4096x1024",
       {{{4096, 1024}}},
       [](X x) { return x[0].var(IntArrayRef({-1})); },
       "x[0].var(-1)",
       "f32 fwd bwd"});
  s = draw.matrix(500'000, 100, 2000);
  add({case_name("std_columns", s),
       {{s}},
       [](X x) { return x[0].std(IntArrayRef({0})); },
       "x[0].std(0)",
       "f32 fwd bwd"});
  s = draw.matrix(300'000, 100, 2000);
  add({case_name("prod_rows", s),
       {{s, 0, "uniform"}},
       [](X x) { return x[0].prod(-1); },
       "x[0].prod(-1)",
       "f32 fwd bwd"});
  add({"logsumexp_rows/2048x1024",
       {{{2048, 1024}}},
       [](X x) { return x[0].logsumexp({-1}); },
       "x[0].logsumexp(-1)",
       "f32 fwd bwd"});
  add({"norm/2048x1024", {{{2048, 1024}}}, [](X x) { return x[0].norm(); }, "x[0].norm()", "f32 fwd bwd"});
  s = draw.matrix(600'000, 100, 2000);
  add({case_name("norm_rows", s),
       {{s}},
       [](X x) { return x[0].norm(2, IntArrayRef({-1})); },
       "x[0].norm(dim=-1)",
       "f32 fwd bwd"});
  s = draw.matrix(600'000, 100, 2000);
  add({case_name("cumsum_rows", s),
       {{s}},
       [](X x) { return x[0].cumsum(-1); },
       "x[0].cumsum(-1)",
       "f32 fwd bwd"});
  add({"cumsum_columns/1024x512", {{{1024, 512}}}, [](X x) { return x[0].cumsum(0); }, "x[0].cumsum(0)"});
  add({"any_rows/4096x1024", {{{4096, 1024}, 0, "mask"}}, [](X x) { return x[0].any(-1); }, "x[0].any(-1)"});
  add({"count_nonzero/1024x1024",
       {{{1024, 1024}, 2}},
       [](X x) { return count_nonzero(x[0]); },
       "x[0].count_nonzero()"});
}

}  // namespace vesta::cli
