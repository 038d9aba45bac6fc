// Element access is written out here, not done with operators: the checker must not depend on what it checks.
#include "golden/compare.h"

#include <vesta/error.h>

#include <cmath>
#include <complex>

namespace vesta::golden {
namespace {

using Complex = std::complex<double>;

template <class T>
Complex number(T v) {
  if constexpr (std::is_arithmetic_v<T>)
    return double(v);
  else if constexpr (std::is_convertible_v<T, float>)
    return double(float(v));
  else
    return Complex(static_cast<std::complex<float>>(v));
}
Complex number(Complex v) { return v; }
Complex number(Float4_e2m1fn_x2 v) { return double(v.bits); }  // the pair of codes

// The element at a byte address, lazy conjugation and negation applied.
Complex read(const Tensor& t, const char* p) {
  Complex v;
  switch (t.dtype()) {
#define VESTA_ROW(name, type, text, torch_name, kind) \
  case DType::name:                                   \
    v = number(*reinterpret_cast<const type*>(p));    \
    break;
    VESTA_ALL_DTYPES(VESTA_ROW)
#undef VESTA_ROW
    case DType::Undefined:
      break;
  }
  if (t.is_conj()) v = std::conj(v);
  if (t.is_neg()) v = -v;
  return v;
}

bool same_real(double got, double want, double allowed) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want) || std::isinf(got)) return got == want;
  return std::fabs(got - want) <= allowed;
}

bool same(Complex got, Complex want, double rtol, double atol, bool complex) {
  if (!complex) return same_real(got.real(), want.real(), atol + rtol * std::fabs(want.real()));
  bool special = !std::isfinite(want.real()) || !std::isfinite(want.imag()) || !std::isfinite(got.real()) ||
                 !std::isfinite(got.imag());
  if (special) {
    double allowed = atol + rtol * std::abs(want);
    if (!std::isfinite(allowed)) allowed = atol;
    return same_real(got.real(), want.real(), allowed) && same_real(got.imag(), want.imag(), allowed);
  }
  return std::abs(got - want) <= atol + rtol * std::abs(want);
}

std::string number(const Tensor& t, const char* p) {
  char text[80];
  if (is_integral(t.dtype(), true)) {
    int64_t v = t.dtype() == DType::Int64 ? *reinterpret_cast<const int64_t*>(p) : int64_t(read(t, p).real());
    return std::to_string(v);
  }
  Complex v = read(t, p);
  if (t.is_complex())
    snprintf(text, sizeof text, "%.9g%+.9gj", v.real(), v.imag());
  else
    snprintf(text, sizeof text, "%.9g", v.real());
  return text;
}

// Walks two tensors of equal sizes in index order.
template <class Body>
void walk(const Tensor& a, const Tensor& b, Body body) {
  if (a.numel() == 0) return;
  int64_t n = a.numel(), dims = a.dim();
  std::vector<int64_t> index(size_t(dims), 0);
  auto* pa = static_cast<const char*>(a.data_ptr());
  auto* pb = static_cast<const char*>(b.data_ptr());
  for (int64_t k = 0; k < n; ++k) {
    body(index, pa, pb);
    for (int64_t d = dims - 1; d >= 0; --d) {
      pa += a.stride(d) * int64_t(a.element_size());
      pb += b.stride(d) * int64_t(b.element_size());
      if (++index[size_t(d)] < a.size(d)) break;
      pa -= a.stride(d) * a.size(d) * int64_t(a.element_size());
      pb -= b.stride(d) * b.size(d) * int64_t(b.element_size());
      index[size_t(d)] = 0;
    }
  }
}

std::string list_text(IntArrayRef v) {
  std::string text = "[";
  for (size_t i = 0; i < v.size(); ++i) text += (i ? ", " : "") + std::to_string(v[i]);
  return text + "]";
}

}  // namespace

std::string shape_text(const Tensor& t) {
  return t.defined() ? std::string(dtype_name(t.dtype())) + list_text(t.sizes()) : "undefined";
}

std::string difference(const Tensor& got, const Tensor& want, double rtol, double atol) {
  if (!got.defined() || !want.defined())
    return got.defined() == want.defined() ? "" : "wanted " + shape_text(want) + ", got " + shape_text(got);
  if (got.dtype() != want.dtype() || got.sizes() != want.sizes())
    return "wanted " + shape_text(want) + ", got " + shape_text(got);
  int64_t wrong = 0;
  double worst = -1;
  std::string message;
  const bool complex = got.is_complex(), exact = got.dtype() == DType::Int64;
  walk(got, want, [&](const std::vector<int64_t>& index, const char* p, const char* q) {
    Complex g = read(got, p), w = read(want, q);
    if (exact && rtol == 0 && atol == 0) {
      if (*reinterpret_cast<const int64_t*>(p) == *reinterpret_cast<const int64_t*>(q)) return;
    } else if (same(g, w, rtol, atol, complex)) {
      return;
    }
    ++wrong;
    double error = std::abs(g - w);
    if (std::isnan(error)) error = INFINITY;
    if (error > worst) {
      worst = error;
      message = "element " + list_text({index.data(), index.size()}) + ": wanted " + number(want, q) +
                ", got " + number(got, p);
    }
  });
  if (!wrong) return "";
  char head[160];
  snprintf(head, sizeof head, "%lld of %lld elements of %s differ beyond rtol %g atol %g; worst: ",
           static_cast<long long>(wrong), static_cast<long long>(got.numel()), shape_text(got).c_str(), rtol,
           atol);
  return head + message;
}

}  // namespace vesta::golden
