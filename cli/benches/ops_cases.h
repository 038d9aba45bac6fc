#pragma once
// The cases of `vesta bench ops`: a table a topic (ops_TOPIC.cpp), each an operator call with the same expression in
// Python beside it. ops.cpp runs them.
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "vesta/tensor.h"

namespace vesta::cli {

using Tensors = std::vector<Tensor>;

struct BenchInput {
  std::vector<int64_t> shape;
  int64_t high = 0;  // > 0: integers below it instead of normal numbers
  // Words, which the peer (bench/peers/ops_torch.py) knows too: uniform = in [0.01, 0.99], mask = bool with half of them
  // true, sorted = ascending along the last dim, transposed = the last two dims swapped in memory, every_other = each
  // second element of rows twice as long, fixed = wants no gradient.
  std::string form = {};

  bool is(const char* word) const { return form.find(word) != form.npos; }
};

using BenchStep = std::function<Tensor()>;

struct OpCase {
  std::string name;  // OPERATOR/SHAPE, without dtype and direction
  std::vector<BenchInput> inputs;
  Tensor (*run)(const Tensors&);
  std::string python;             // the same, of x[0], x[1], ...
  const char* kinds = "f32 fwd";  // of f32 bf16 f64 i64 (types of inputs without `high`), fwd bwd
  bool bandwidth = true;          // whether memory is what limits it
  // Where a call has state (optimisers): makes the step to measure; `run` is null. The peer runs `python_setup` with x
  // defined, then `python`.
  BenchStep (*prepare)(const Tensors&) = nullptr;
  const char* python_setup = "";
};

// Shapes that are drawn from the printed seed, so that no size of the table is one that kernels were tuned to.
class DrawnShapes {
 public:
  explicit DrawnShapes(uint64_t seed) : engine_(seed) {}
  int64_t between(int64_t low, int64_t high) { return low + int64_t(engine_() % uint64_t(high - low + 1)); }
  // {rows, columns} with about `elements` elements: columns log-uniform in [low, high].
  std::vector<int64_t> matrix(int64_t elements, int64_t low, int64_t high);

 private:
  std::mt19937_64 engine_;
};

// "OPERATOR/2x3": the name of a case with a drawn shape.
std::string case_name(const char* op, const std::vector<int64_t>& shape);

using OpCases = std::vector<OpCase>;
void add_pointwise_cases(OpCases& all, uint64_t seed);
void add_reduction_cases(OpCases& all, uint64_t seed);
void add_norm_cases(OpCases& all, uint64_t seed);   // softmax, norms, losses, products
void add_index_cases(OpCases& all, uint64_t seed);  // index, sort, rearrangement
// Convolution, pooling, interpolation, norms over channels, recurrent layers.
void add_spatial_cases(OpCases& all, uint64_t seed);
void add_step_cases(OpCases& all, uint64_t seed);  // optimisers, random numbers

}  // namespace vesta::cli
