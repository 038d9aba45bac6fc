// Random samples: SplitMix64 from the printed seed.
#include "vesta/sample_gen.h"

#include <cmath>

#include "core/storage.h"

namespace vesta {
namespace {

template <class T>
T element_of(double v, double im) {
  if constexpr (std::is_same_v<T, Float4_e2m1fn_x2>)
    return T{uint8_t(int(std::fabs(v)))};
  else if constexpr (std::is_same_v<T, bool>)
    return v != 0;
  else if constexpr (std::is_same_v<T, double>)
    return v;
  else if constexpr (std::is_same_v<T, std::complex<double>>)
    return {v, im};
  else if constexpr (std::is_convertible_v<T, std::complex<float>> && !std::is_convertible_v<T, float>)
    return T(std::complex<float>(float(v), float(im)));
  else if constexpr (std::is_integral_v<T>)
    return T(v);
  else
    return T(float(v));
}

}  // namespace

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
  if (integral && !is_signed(dtype) && lo < 0) lo = 0;
  if (dtype == DType::Bool) lo = 0, hi = 1;
  for (int64_t i = 0; i < t.numel(); ++i) {
    double v = integral ? std::floor(std::ceil(lo) + draw() * (std::floor(hi) - std::ceil(lo) + 1))
                        : lo + draw() * (hi - lo);
    double im = is_complex(dtype) ? lo + draw() * (hi - lo) : 0;
    switch (dtype) {
#define VESTA_ROW(name, type, text, torch_name, kind)   \
  case DType::name:                                     \
    static_cast<type*>(p)[i] = element_of<type>(v, im); \
    break;
      VESTA_ALL_DTYPES(VESTA_ROW)
#undef VESTA_ROW
      case DType::Undefined:
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
