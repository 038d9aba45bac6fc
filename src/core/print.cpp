// Tensors as PyTorch's C++ API prints them: columns of one format, slices of higher dims, then "[ CPUFloatType{2,3} ]".
#include <cmath>
#include <cstdio>
#include <ostream>

#include "core/tensor_ext.h"
#include "vesta/ops.h"

namespace vesta {
namespace {

// How the numbers of one tensor are written: a common width, precision and scale, as libtorch's Formatting.cpp rules.
struct NumberFormat {
  double scale = 1;
  int width = 0, precision = 0;
  bool scientific = false, integral = false;
};

NumberFormat number_format(const Tensor& t) {
  NumberFormat f;
  const double* p = t.data_ptr<double>();
  int64_t n = t.numel();
  bool integral = true;
  for (int64_t i = 0; i < n; ++i)
    if (std::isfinite(p[i])) integral &= p[i] == std::ceil(p[i]);
  double lo = 1, hi = 1;
  bool any = false;
  for (int64_t i = 0; i < n; ++i) {
    double z = std::fabs(p[i]);
    if (!std::isfinite(z)) continue;
    lo = any ? std::min(lo, z) : z;
    hi = any ? std::max(hi, z) : z;
    any = true;
  }
  int lo_digits = lo != 0 ? int(std::floor(std::log10(lo))) + 1 : 1,
      hi_digits = hi != 0 ? int(std::floor(std::log10(hi))) + 1 : 1;
  f.integral = integral;
  if (integral) {
    if (hi_digits > 9) {
      f.scientific = true;
      f.width = 11;
      f.precision = 4;
    } else {
      f.width = hi_digits + 1;
    }
  } else if (hi_digits - lo_digits > 4) {
    f.scientific = true;
    f.width = 11;
    f.precision = 4;
    if (std::abs(hi_digits) > 99 || std::abs(lo_digits) > 99) ++f.width;
  } else if (hi_digits > 5 || hi_digits < 0) {
    f.width = 7;
    f.precision = 4;
    f.scale = std::pow(10.0, hi_digits - 1);
  } else {
    f.width = hi_digits == 0 ? 7 : hi_digits + 6;
    f.precision = 4;
  }
  return f;
}

void write_number(std::ostream& out, const NumberFormat& f, double v) {
  char text[64];
  if (f.integral && !f.scientific)
    std::snprintf(text, sizeof text, "%*.0f", f.width, v);
  else
    std::snprintf(text, sizeof text, f.scientific ? "%*.*e" : "%*.*f", f.width, f.precision,
                  f.scientific ? v : v / f.scale);
  out << text;
}

void write_matrix(std::ostream& out, const Tensor& t, const NumberFormat& f, const std::string& indent) {
  int64_t rows = t.size(0), cols = t.size(1);
  int64_t per_line = std::max<int64_t>(1, int64_t(80 - indent.size()) / (f.width + 1));
  for (int64_t first = 0; first < cols; first += per_line) {
    int64_t last = std::min(cols, first + per_line);
    if (per_line < cols) {
      if (first) out << "\n";
      out << "Columns " << first + 1 << " to " << last << "\n";
    }
    if (f.scale != 1) out << indent << f.scale << " *\n";
    for (int64_t r = 0; r < rows; ++r) {
      out << indent << (f.scale != 1 ? " " : "");
      for (int64_t c = first; c < last; ++c) {
        write_number(out, f, t.data_ptr<double>()[r * t.stride(0) + c * t.stride(1)]);
        if (c + 1 < last) out << " ";
      }
      if (r + 1 < rows) out << "\n";
    }
    if (last < cols) out << "\n";
  }
}

void write_values(std::ostream& out, const Tensor& t) {
  const NumberFormat f = number_format(t);
  if (t.dim() == 0) {
    const double v = t.data_ptr<double>()[0];
    char text[64];
    std::snprintf(text, sizeof text, f.integral && std::isfinite(v) ? "%.0f" : "%.6g", v);
    out << text << "\n";
  } else if (t.dim() == 1) {
    if (f.scale != 1) out << f.scale << " *\n";
    for (int64_t i = 0; i < t.numel(); ++i) {
      write_number(out, f, t.data_ptr<double>()[i]);
      out << "\n";
    }
  } else if (t.dim() == 2) {
    if (t.numel()) write_matrix(out, t, f, "");
    out << "\n";
  } else {
    int64_t slices = 1;
    for (int64_t d = 0; d + 2 < t.dim(); ++d) slices *= t.size(d);
    for (int64_t s = 0; s < slices; ++s) {
      out << (s ? "\n" : "") << "(";
      Tensor slice = t;
      // The first dim runs fastest, and every slice has a format of its own: libtorch's order and rule.
      int64_t rest = s;
      for (int64_t d = 0; d + 2 < t.dim(); ++d) {
        out << rest % t.size(d) + 1 << ",";
        slice = slice.select(0, rest % t.size(d));
        rest /= t.size(d);
      }
      out << ".,.) = \n";
      write_matrix(out, slice, number_format(slice.contiguous()), " ");
      out << "\n";
    }
  }
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Tensor& t) {
  if (!t.defined()) return out << "[ Tensor (undefined) ]";
  bool readable = (t.impl()->bits & TensorImpl::kHasData) || t.numel() == 0;
  if (readable && t.numel()) {
    Tensor plain = t.detach().resolve_conj().resolve_neg();
    if (t.dtype() == DType::ComplexHalf) plain = plain.to(kComplexFloat);
    if (t.dtype() == DType::Float4_e2m1fn_x2) plain = plain.view(kByte);  // the pair of codes, as in PyTorch
    if (t.is_complex()) {
      // As pairs of real and imaginary parts.
      out << "Re\n";
      write_values(out, real(plain).to(kDouble).contiguous());
      out << "Im\n";
      write_values(out, imag(plain).to(kDouble).contiguous());
    } else {
      write_values(out, plain.to(kDouble).contiguous());
    }
  }
  out << "[ " << t.toString() << "{";
  for (int64_t d = 0; d < t.dim(); ++d) out << (d ? "," : "") << t.size(d);
  out << "}";
  if (t.grad_fn())
    out << ", grad_fn=" << t.grad_fn_name();
  else if (t.requires_grad())
    out << ", requires_grad";
  return out << " ]";
}

std::string Tensor::str() const {
  std::ostringstream out;
  out << *this;
  return out.str();
}
void Tensor::print() const { std::printf("%s\n", str().c_str()); }

}  // namespace vesta
