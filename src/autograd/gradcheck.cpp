// Numeric check of gradients by central differences.
#include <cmath>

#include "core/storage.h"
#include "vesta/autograd.h"
#include "vesta/ops.h"

namespace vesta::autograd {
namespace {

// A deterministic weight for element i of output k, so that every output element counts differently.
Tensor weights_like(const Tensor& t, size_t k) {
  Tensor w = empty_cpu(t.sizes(), t.dtype());
  for (int64_t i = 0; i < w.numel(); ++i) {
    double a = std::sin(double(i + 1) * 12.9898 + double(k) * 78.233), b = std::cos(double(i + 1) * 4.1414);
    if (t.dtype() == DType::Complex128)
      static_cast<std::complex<double>*>(w.data_ptr())[i] = {a, b};
    else
      static_cast<double*>(w.data_ptr())[i] = a;
  }
  return w;
}

bool differentiable(const Tensor& t) {
  return t.defined() && (t.dtype() == DType::Float64 || t.dtype() == DType::Complex128);
}

// Real part of the weighted sum of all outputs.
double weighted(const variable_list& outs) {
  double sum = 0;
  for (size_t k = 0; k < outs.size(); ++k) {
    if (!differentiable(outs[k])) continue;
    Tensor w = weights_like(outs[k], k), o = outs[k].detach().resolve_conj().resolve_neg().contiguous();
    for (int64_t i = 0; i < o.numel(); ++i) {
      if (o.is_complex()) {
        auto a = static_cast<std::complex<double>*>(w.data_ptr())[i],
             b = static_cast<std::complex<double>*>(o.data_ptr())[i];
        sum += a.real() * b.real() + a.imag() * b.imag();
      } else {
        sum += static_cast<double*>(w.data_ptr())[i] * static_cast<double*>(o.data_ptr())[i];
      }
    }
  }
  return sum;
}

}  // namespace

bool gradcheck(const std::function<variable_list(const variable_list&)>& fn, const variable_list& inputs,
               double eps, double atol, double rtol) {
  for (auto& t : inputs)
    VESTA_CHECK_AS(TypeError, !t.defined() || !t.requires_grad() || differentiable(t),
                   "gradcheck: expected float64 or complex128 inputs, got ", dtype_name(t.dtype()));
  variable_list outs = fn(inputs), wanted, roots, seeds;
  for (size_t k = 0; k < outs.size(); ++k)
    if (differentiable(outs[k]) && outs[k].requires_grad()) {
      roots.push_back(outs[k]);
      seeds.push_back(weights_like(outs[k], k));
    }
  for (auto& t : inputs)
    if (t.defined() && t.requires_grad()) wanted.push_back(t);
  if (wanted.empty()) return true;
  variable_list analytic(wanted.size());
  if (!roots.empty()) analytic = grad(roots, wanted, seeds, false, false, true);
  NoGradGuard no_grad;
  for (size_t w = 0; w < wanted.size(); ++w) {
    Tensor t = wanted[w];
    Tensor flat_grad =
        analytic[w].defined() ? analytic[w].resolve_conj().contiguous() : zeros_like(t).contiguous();
    int parts = t.is_complex() ? 2 : 1;
    Tensor original = t.detach().clone(), probe = original.contiguous().clone();
    for (int64_t i = 0; i < t.numel() * parts; ++i) {
      double* p = static_cast<double*>(probe.data_ptr()) + i;
      double saved = *p, sides[2];
      for (int s = 0; s < 2; ++s) {
        *p = saved + (s ? eps : -eps);
        t.detach().copy_(probe);
        sides[s] = weighted(fn(inputs));
      }
      *p = saved;
      t.detach().copy_(original);
      double numeric = (sides[1] - sides[0]) / (2 * eps);
      double got = static_cast<double*>(flat_grad.data_ptr())[i];
      VESTA_CHECK(std::fabs(got - numeric) <= atol + rtol * std::fabs(numeric) ||
                      (std::isnan(got) && std::isnan(numeric)),
                  "gradcheck: input ", w, ", element ", i, ": analytic ", got, ", numeric ", numeric);
    }
  }
  return true;
}

bool gradgradcheck(const std::function<variable_list(const variable_list&)>& fn, const variable_list& inputs,
                   double eps, double atol, double rtol) {
  variable_list outs = fn(inputs), wanted;
  variable_list all = inputs;
  for (size_t k = 0; k < outs.size(); ++k)
    if (differentiable(outs[k]) && outs[k].requires_grad())
      all.push_back(weights_like(outs[k], k + 7).requires_grad_());
  size_t n = inputs.size();
  return gradcheck(
      [&](const variable_list& in) {
        variable_list own(in.begin(), in.begin() + std::ptrdiff_t(n)),
            seeds(in.begin() + std::ptrdiff_t(n), in.end()), roots, wrt;
        AutoGradMode on(true);
        for (auto& o : fn(own))
          if (differentiable(o) && o.requires_grad()) roots.push_back(o);
        for (auto& t : own)
          if (t.defined() && t.requires_grad()) wrt.push_back(t);
        if (roots.empty() || wrt.empty()) return variable_list();
        return grad(roots, wrt, seeds, true, true, true);
      },
      all, eps, atol, rtol);
}

}  // namespace vesta::autograd
