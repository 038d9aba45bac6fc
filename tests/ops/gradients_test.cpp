// The generic suite, gradients: every differentiable op against central differences, first and second derivatives;
// gradients keep dtype and shape; recording changes no value. Reading what a block did not save throws in the engine.
#include <gtest/gtest.h>
#include <vesta/autograd.h>
#include <vesta/error.h>

#include <cmath>

#include "ops/op_cases.h"
#include "vesta/ops.h"

namespace vesta {
namespace {

using namespace optest;
using autograd::variable_list;

class GradientSuite : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Ops, GradientSuite, testing::ValuesIn(families()),
                         [](auto& tested) { return tested.param; });

bool differentiable(const Op& op) {
  return !op.def->non_differentiable && (op.def->vjp || op.def->decompose);
}

// The op as a function of its floating tensors. Arguments that it writes are copied inside, as leaves cannot be written.
struct AsFunction {
  const OpCase& c;
  std::vector<size_t> positions;

  // In double precision only tensors of that precision are varied (class weights may be float32).
  explicit AsFunction(const OpCase& oc) : c(oc) {
    std::vector<Tensor> all = flat_defined();
    bool wide = c.dtype == kFloat64 || c.dtype == kComplex128;
    for (size_t p : differentiable_positions(c.args))
      if (!wide || all[p].dtype() == kFloat64 || all[p].dtype() == kComplex128) positions.push_back(p);
    if (int constant = constant_tensor(*c.op); constant >= 0) std::erase(positions, size_t(constant));
  }
  // The tensor argument that has no derivative by definition: the weight of binary_cross_entropy, igamma's first.
  static int constant_tensor(const Op& op) {
    if (op.schema.name == "binary_cross_entropy") return 2;
    return op.schema.name.find("igamma") == 0 || op.schema.name.find("special_gammainc") == 0 ? 0 : -1;
  }
  // Functions of a Hermitian matrix that read one triangle: single elements cannot be varied.
  static bool hermitian_argument(const Op& op) {
    auto& n = op.schema.name;
    return n == "cholesky" || n == "linalg_matrix_sqrth" || n == "linalg_cholesky" ||
           n == "linalg_cholesky_ex" || n == "_linalg_eigh" || n == "linalg_eigh" || n == "linalg_eigvalsh";
  }
  variable_list inputs() const {
    std::vector<Tensor> all = flat_defined();
    variable_list list;
    for (size_t p : positions) list.push_back(all[p].detach().clone().requires_grad_());
    return list;
  }
  Arguments substituted(const variable_list& in) const {
    size_t k = 0, used = 0;
    return map_tensors(c.args, [&](const Tensor& t) {
      bool replaced = used < positions.size() && positions[used] == k;
      ++k;
      return replaced ? in[used++] : t;
    });
  }
  variable_list operator()(const variable_list& given) const {
    variable_list outs, in = given;
    if (hermitian_argument(*c.op) && !in.empty() && in[0].dim() >= 2)
      in[0] = (in[0] + in[0].transpose(-2, -1).conj()) * 0.5;
    Arguments results = run(*c.op, substituted(in));
    for (size_t j = 0; j < results.size(); ++j)
      if (!(c.op->def->non_diff_outputs >> j & 1))
        for (auto& t : flat({results[j]}))
          if (t.defined()) outs.push_back(t);
    return outs;
  }
  int64_t numel() const {
    int64_t n = 0;
    auto all = flat_defined();
    for (size_t p : positions) n += all[p].numel();
    return n;
  }

 private:
  std::vector<Tensor> flat_defined() const {
    std::vector<Tensor> list;
    map_tensors(c.args, [&](const Tensor& t) {
      list.push_back(t);
      return t;
    });
    return list;
  }
};

bool any_floating(const variable_list& list) {
  for (auto& t : list)
    if (t.is_floating_point() || t.is_complex()) return true;
  return false;
}

// Arguments that are functions of one another: differences of one alone say nothing.
bool dependent_arguments(const Op& op) {
  return op.schema.name == "log_sigmoid_backward" ||  // buffer is computed from self by the forward pass
         op.schema.name == "_standard_gamma";  // derivative at fixed probability, not at fixed random numbers
}

TEST_P(GradientSuite, FirstDerivativesAgreeWithDifferences) {
  for_each_case(GetParam(), types::bit(kFloat64) | types::bit(kComplex128), [](const OpCase& c) {
    AsFunction fn(c);
    if (!differentiable(*c.op) || fn.positions.empty() || fn.numel() > 400 || dependent_arguments(*c.op))
      return;
    try {
      autograd::gradcheck(fn, fn.inputs());
    } catch (const Error& e) {
      fail(c, e.what());
    }
  });
}

// Ops whose gradient has no derivative itself, with the reason.
const char* no_second_derivative(const Op& op) {
  static const std::pair<const char*, const char*> kList[] = {
      // Known faults of blocks, to be removed with the fault.
      {"logcumsumexp", "the gradient of the scan in log space is wrong"},
      {"_logcumsumexp", "the same"},
      // As in PyTorch: their backward passes throw where a second derivative is asked for.
      {"grid_sampler", "grid_sampler_2d_backward has no derivative"},
      {"grid_sampler_2d", "the same"},
      {"grid_sampler_3d", "the same"},
      {"ctc_loss", "_ctc_loss_backward has no derivative"},
      {"_ctc_loss", "the same"},
  };
  for (auto& [name, reason] : kList)
    if (op.schema.name == name) return reason;
  return nullptr;
}

TEST_P(GradientSuite, SecondDerivativesAgreeWithDifferences) {
  for_each_case(GetParam(), types::bit(kFloat64) | types::bit(kComplex128), [](const OpCase& c) {
    AsFunction fn(c);
    if (!differentiable(*c.op) || fn.positions.empty() || fn.numel() > 64 || no_second_derivative(*c.op) ||
        dependent_arguments(*c.op))
      return;
    try {
      autograd::gradgradcheck(fn, fn.inputs());
    } catch (const Error& e) {
      fail(c, std::string("second derivative: ") + e.what());
    }
  });
}

TEST_P(GradientSuite, GradientsHaveTheInputsShapeAndDtypeAndRecordingChangesNoValue) {
  for_each_case(GetParam(), types::kFloatMask | types::kComplexMask, [](const OpCase& c) {
    if (uninitialised(*c.op)) return;
    AsFunction fn(c);
    if (fn.positions.empty()) return;
    variable_list inputs = fn.inputs();
    Arguments plain;
    {
      NoGradGuard no_grad;
      plain = run(*c.op, c.args);
    }
    Arguments recorded = run(*c.op, fn.substituted(inputs));
    std::string d = results_differ(map_tensors(recorded, [](const Tensor& t) { return t.detach(); }), plain);
    // Known fault: with a mask the math form runs while recording, the flash kernel otherwise.
    bool known = c.op->schema.name == "scaled_dot_product_attention";
    if (!d.empty() && !known && c.op->name != "is_set_to") fail(c, "with and without recording: " + d);
    variable_list roots, seeds;
    for (auto& t : flat(recorded))
      if (t.defined() && t.requires_grad()) {
        if (c.op->def->non_differentiable && !c.op->mutates)  // what is written may require grad itself
          return fail(c, "a result of an op without derivative requires grad");
        roots.push_back(t);
        seeds.push_back(ones_like(t));
      }
    if (roots.empty()) {
      if (differentiable(*c.op) && any_floating(flat(plain)) && c.op->def->vjp &&
          !c.op->def->non_diff_outputs)
        fail(c, "no result requires grad");
      return;
    }
    variable_list gradients = autograd::grad(roots, inputs, seeds, false, false, true);
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (!gradients[k].defined()) continue;
      if (gradients[k].sizes() != inputs[k].sizes() || gradients[k].dtype() != inputs[k].dtype())
        fail(c, detail::message("gradient ", k, ": ", dtype_name(gradients[k].dtype()), ", ",
                                gradients[k].dim(), " dims, for an input of ", dtype_name(inputs[k].dtype()),
                                ", ", inputs[k].dim(), " dims"));
    }
  });
}

// <u, J t> = <J^H u, t> for random u and t: the derivative carried forward is the transpose of the one carried back.
TEST_P(GradientSuite, ForwardTangentsAreTheTransposeOfBackward) {
  for_each_case(GetParam(), types::bit(kFloat64), [](const OpCase& c) {
    AsFunction fn(c);
    if (!differentiable(*c.op) || fn.positions.empty() || fn.numel() > 400 || no_second_derivative(*c.op) ||
        dependent_arguments(*c.op))
      return;
    variable_list inputs = fn.inputs(), tangents;
    for (auto& t : inputs) tangents.push_back(randn_like(t));
    auto forward = autograd::jvp(fn, inputs, tangents);
    variable_list outs = fn(inputs), roots, seeds;
    double forward_product = 0, back_product = 0, scale = 0;
    if (outs.size() != forward.first.size()) return fail(c, "another number of results in forward mode");
    for (size_t j = 0; j < outs.size(); ++j) {
      if (!outs[j].requires_grad()) continue;
      if (outs[j].sizes() != forward.second[j].sizes()) return fail(c, "a tangent of another shape");
      roots.push_back(outs[j]);
      seeds.push_back(randn_like(outs[j]));
      Tensor product = outs[j].is_complex() ? real(seeds.back().conj() * forward.second[j])
                                            : seeds.back() * forward.second[j];
      forward_product += product.detach().sum().item<double>();
      scale += product.detach().abs().sum().item<double>();
    }
    if (roots.empty()) return;
    variable_list g = autograd::grad(roots, inputs, seeds, false, false, true);
    for (size_t k = 0; k < g.size(); ++k)
      if (g[k].defined()) back_product += (g[k] * tangents[k]).detach().sum().item<double>();
    if (!(std::abs(forward_product - back_product) <= 1e-9 + 1e-7 * scale) && std::isfinite(back_product))
      fail(c, detail::message("<u, J t> = ", forward_product, ", <J^H u, t> = ", back_product));
  });
}

}  // namespace
}  // namespace vesta
