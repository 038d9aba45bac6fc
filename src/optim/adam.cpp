// Adam and AdamW: one rule, with the weight decay inside the gradient or apart from it.
#include "vesta/ops.h"
#include "vesta/optim.h"

namespace vesta::optim {
namespace {

constexpr size_t kStep = 0, kExpAvg = 1, kExpAvgSq = 2, kMaxExpAvgSq = 3;
std::vector<std::string> adam_slot_names() { return {"step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"}; }

template <class Options>
void check_options(const char* name, const Options& o) {
  const auto [beta1, beta2] = o.betas();
  VESTA_CHECK(o.lr() >= 0, name, ": expected lr >= 0, got ", o.lr());
  VESTA_CHECK(o.eps() >= 0, name, ": expected eps >= 0, got ", o.eps());
  VESTA_CHECK(beta1 >= 0 && beta1 < 1, name, ": expected the first beta in [0, 1), got ", beta1);
  VESTA_CHECK(beta2 >= 0 && beta2 < 1, name, ": expected the second beta in [0, 1), got ", beta2);
  VESTA_CHECK(o.weight_decay() >= 0, name, ": expected weight_decay >= 0, got ", o.weight_decay());
}

template <class Options>
void visit_options(Options& o, HeldNumber& lr, OptionVisitor& v) {
  v.visit("lr", lr);
  v.visit("beta1", std::get<0>(o.betas()));
  v.visit("beta2", std::get<1>(o.betas()));
  v.visit("eps", o.eps());
  v.visit("weight_decay", o.weight_decay());
  v.visit("amsgrad", o.amsgrad());
  v.visit("maximize", o.maximize());
}

// Moments of 16-bit parameters need float32: 1 - beta2 = 0.001 is below bfloat16's resolution next to 1.
Tensor make_adam_slot(size_t slot, const Tensor& param) {
  if (slot == kStep) return zeros({}, TensorOptions(kFloat32));
  const bool narrow = param.dtype() == kFloat16 || param.dtype() == kBFloat16;
  return zeros_like(param, TensorOptions(narrow ? kFloat32 : param.dtype()));
}

// One multi-tensor operator a step; step counts and the rate go in as tensors, so a captured step stays right.
template <class Options>
void adam(const Options& o, std::vector<Tensor>& params, std::vector<Tensor>& grads,
          std::vector<std::vector<Tensor>>& state, bool decoupled) {
  const auto [beta1, beta2] = o.betas();
  for (Tensor& step : state[kStep]) step.add_(1);
  if (decoupled) {
    _fused_adamw_(params, grads, state[kExpAvg], state[kExpAvgSq], state[kMaxExpAvgSq], state[kStep],
                  o.lr_tensor(), beta1, beta2, o.weight_decay(), o.eps(), o.amsgrad(), o.maximize());
  } else {
    _fused_adam_(params, grads, state[kExpAvg], state[kExpAvgSq], state[kMaxExpAvgSq], state[kStep],
                 o.lr_tensor(), beta1, beta2, o.weight_decay(), o.eps(), o.amsgrad(), o.maximize());
  }
}

}  // namespace

void AdamOptions::visit(OptionVisitor& v) { visit_options(*this, lr_, v); }
VESTA_OPTIM_CLONE(AdamOptions)
void AdamOptions::check() const { check_options("Adam", *this); }
void AdamWOptions::visit(OptionVisitor& v) { visit_options(*this, lr_, v); }
VESTA_OPTIM_CLONE(AdamWOptions)
void AdamWOptions::check() const { check_options("AdamW", *this); }

std::vector<std::string> Adam::slot_names() { return adam_slot_names(); }
bool Adam::uses_slot(size_t slot, const OptimizerOptions& options) const {
  return slot != kMaxExpAvgSq || own(options).amsgrad();
}
Tensor Adam::make_slot(size_t slot, const Tensor& param, const OptimizerOptions&) const {
  return make_adam_slot(slot, param);
}
void Adam::update(const OptimizerOptions& options, Update& u) {
  adam(own(options), u.params, u.grads, u.state, false);
}

std::vector<std::string> AdamW::slot_names() { return adam_slot_names(); }
bool AdamW::uses_slot(size_t slot, const OptimizerOptions& options) const {
  return slot != kMaxExpAvgSq || own(options).amsgrad();
}
Tensor AdamW::make_slot(size_t slot, const Tensor& param, const OptimizerOptions&) const {
  return make_adam_slot(slot, param);
}
void AdamW::update(const OptimizerOptions& options, Update& u) {
  adam(own(options), u.params, u.grads, u.state, true);
}

}  // namespace vesta::optim
