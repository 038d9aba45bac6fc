#pragma once
// What a case of `vesta bench ops` is. ops.cpp measures them; the tables are in ops*.cpp, one a topic.
#include <cstdint>
#include <string>
#include <vector>

#include "vesta/tensor.h"

namespace vesta::cli {

struct OpInput {
  std::vector<int64_t> shape;
  int64_t high = 0;  // > 0: integers below it instead of normal numbers
};

struct OpCase {
  std::string name;  // without dtype and direction
  std::vector<OpInput> inputs;
  Tensor (*run)(const std::vector<Tensor>&);
  const char* python;  // the same, of x[0], x[1], ...
  const char* kinds = "f32 fwd bwd";
  bool bandwidth = true;  // whether memory is what limits it
};

// Convolution, pooling, interpolation, norms over channels, recurrent layers.
extern const std::vector<OpCase> spatial_op_cases;

}  // namespace vesta::cli
