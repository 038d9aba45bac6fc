// Random samples: SplitMix64 from the printed seed.
#include "vesta/sample_gen.h"

#include <cmath>

#include "core/storage.h"

namespace vesta {

double SampleGen::draw() {
  state_ += 0x9e3779b97f4a7c15u;
  uint64_t z = state_;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return double(z >> 11) * 0x1p-53;
}

Tensor SampleGen::make(Shape sizes, Range r, DType dtype) {
  Tensor t = empty_cpu(sizes, dtype);
  void* p = t.data_ptr();
  bool integral = is_integral(dtype, true);
  double lo = r.lo, hi = r.hi;
  if (dtype == DType::UInt8 && lo < 0) lo = 0;
  if (dtype == DType::Bool) lo = 0, hi = 1;
  for (int64_t i = 0; i < t.numel(); ++i) {
    double v = integral ? std::floor(std::ceil(lo) + draw() * (std::floor(hi) - std::ceil(lo) + 1))
                        : lo + draw() * (hi - lo);
    switch (dtype) {
      case DType::Bool:
        static_cast<bool*>(p)[i] = v != 0;
        break;
      case DType::UInt8:
        static_cast<uint8_t*>(p)[i] = uint8_t(v);
        break;
      case DType::Int8:
        static_cast<int8_t*>(p)[i] = int8_t(v);
        break;
      case DType::Int16:
        static_cast<int16_t*>(p)[i] = int16_t(v);
        break;
      case DType::Int32:
        static_cast<int32_t*>(p)[i] = int32_t(v);
        break;
      case DType::Int64:
        static_cast<int64_t*>(p)[i] = int64_t(v);
        break;
      case DType::Float16:
        static_cast<Half*>(p)[i] = Half(float(v));
        break;
      case DType::BFloat16:
        static_cast<BFloat16*>(p)[i] = BFloat16(float(v));
        break;
      case DType::Float32:
        static_cast<float*>(p)[i] = float(v);
        break;
      case DType::Float64:
        static_cast<double*>(p)[i] = v;
        break;
      case DType::Complex64:
        static_cast<std::complex<float>*>(p)[i] = {float(v), float(lo + draw() * (hi - lo))};
        break;
      case DType::Complex128:
        static_cast<std::complex<double>*>(p)[i] = {v, lo + draw() * (hi - lo)};
        break;
      default:
        break;
    }
  }
  return t;
}

const std::vector<std::pair<SampleGen::Shape, SampleGen::Shape>>& SampleGen::broadcast_pairs() {
  static const std::vector<std::pair<Shape, Shape>> pairs = {
      {{}, {}}, {{5}, {5}}, {{3, 4}, {4}}, {{2, 1, 3}, {4, 1}}, {{3, 4}, {}}, {{0, 3}, {1, 3}}};
  return pairs;
}
const std::vector<SampleGen::Shape>& SampleGen::shapes() {
  static const std::vector<Shape> shapes = {{}, {1}, {5}, {3, 4}, {2, 1, 3}, {0, 3}};
  return shapes;
}

}  // namespace vesta
