#pragma once
// SampleGen: collects the argument sets on which the generic suite tests an operator (the `.samples` of a block).
// Tensors are drawn from a printed seed, in the dtype and on the device under test.
#include <cstdint>
#include <string>
#include <vector>

#include "vesta/owned_value.h"

namespace vesta {

// Interval of drawn values; integers are drawn from it inclusively.
struct Range {
  double lo = -3, hi = 3;
};
constexpr Range range(double lo, double hi) { return {lo, hi}; }

struct Sample {
  std::vector<OwnedValue> args;  // in schema order; missing trailing ones take defaults
};

class SampleGen {
 public:
  using Shape = std::vector<int64_t>;
  SampleGen(DType dtype, uint64_t seed) : dtype_(dtype), state_(seed * 2 + 1) {}

  DType dtype() const { return dtype_; }
  // A fresh random tensor of the dtype under test (or another).
  Tensor t(Shape sizes, Range r = {}) { return make(sizes, r, dtype_); }
  Tensor make(Shape sizes, Range r, DType dtype);
  // Indices in [0, n), int64.
  Tensor index(Shape sizes, int64_t n) { return make(sizes, {0, double(n - 1)}, DType::Int64); }
  Tensor mask(Shape sizes) { return make(sizes, {0, 1}, DType::Bool); }

  // One sample with these arguments.
  template <class... A>
  void operator()(A... args) {
    samples_.push_back(Sample{{OwnedValue(std::move(args))...}});
  }
  // One sample per shape; the rest of the arguments follow the tensor.
  template <class... A>
  void unary(std::vector<Shape> shapes, Range r = {}, A... rest) {
    for (auto& s : shapes) (*this)(t(s, r), rest...);
  }
  // Equal shapes, broadcasts and a 0-dim operand.
  template <class... A>
  void binary(Range a = {}, Range b = {}, A... rest) {
    for (auto& [p, q] : broadcast_pairs()) (*this)(t(p, a), t(q, b), rest...);
  }
  std::vector<Sample>& samples() { return samples_; }
  static const std::vector<std::pair<Shape, Shape>>& broadcast_pairs();
  static const std::vector<Shape>& shapes();  // {}, {1}, {5}, {3,4}, {2,1,3}, {0,3}

 private:
  double draw();
  DType dtype_;
  uint64_t state_;
  std::vector<Sample> samples_;
};

}  // namespace vesta
