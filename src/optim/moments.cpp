// RMSprop, Adagrad, Adadelta, Adamax, NAdam, RAdam.
#include <cmath>

#include "optim/rule.h"
#include "vesta/optim_moments.h"

namespace vesta::optim {
namespace {

void check_not_negative(const char* optimizer, const char* option, double value) {
  VESTA_CHECK(value >= 0, optimizer, ": expected ", option, " >= 0, got ", value);
}
void check_betas(const char* optimizer, const std::tuple<double, double>& betas) {
  const auto [first, second] = betas;
  VESTA_CHECK(first >= 0 && first < 1, optimizer, ": expected the first beta in [0, 1), got ", first);
  VESTA_CHECK(second >= 0 && second < 1, optimizer, ": expected the second beta in [0, 1), got ", second);
}
void visit_betas(OptionVisitor& v, std::tuple<double, double>& betas) {
  v.visit("beta1", std::get<0>(betas));
  v.visit("beta2", std::get<1>(betas));
}
// m = beta m + (1 - beta) g, v = beta2 v + (1 - beta2) g^2.
void update_moments(Tensor& m, Tensor& v, const Tensor& g, double beta1, double beta2) {
  m.lerp_(g, 1 - beta1);
  v.mul_(beta2).addcmul_(g, g, 1 - beta2);
}

}  // namespace

void RMSpropOptions::visit(OptionVisitor& v) {
  v.visit("lr", lr_);
  v.visit("alpha", alpha());
  v.visit("eps", eps());
  v.visit("weight_decay", weight_decay());
  v.visit("momentum", momentum());
  v.visit("centered", centered());
  v.visit("maximize", maximize());
}
VESTA_OPTIM_CLONE(RMSpropOptions)
void RMSpropOptions::check() const {
  check_not_negative("RMSprop", "lr", lr());
  check_not_negative("RMSprop", "eps", eps());
  check_not_negative("RMSprop", "momentum", momentum());
  check_not_negative("RMSprop", "weight_decay", weight_decay());
  check_not_negative("RMSprop", "alpha", alpha());
}
std::vector<std::string> RMSprop::slot_names() {
  return {"step", "square_avg", "momentum_buffer", "grad_avg"};
}
bool RMSprop::uses_slot(size_t slot, const OptimizerOptions& options) const {
  return slot < 2 || (slot == 2 ? own(options).momentum() > 0 : own(options).centered());
}
Tensor RMSprop::make_slot(size_t slot, const Tensor& param, const OptimizerOptions&) const {
  return slot == 0 ? new_step() : state_like(param);
}
void RMSprop::update(const OptimizerOptions& options, Update& u) {
  const auto& o = own(options);
  for (size_t i = 0; i < u.params.size(); ++i) {
    Tensor &param = u.params[i], &square_avg = u.state[1][i];
    const Tensor g = rule_gradient(param, u.grads[i], o.maximize(), o.weight_decay());
    u.state[0][i].add_(1);
    square_avg.mul_(o.alpha()).addcmul_(g, g, 1 - o.alpha());
    Tensor scale;
    if (o.centered()) {
      Tensor& grad_avg = u.state[3][i];
      grad_avg.lerp_(g, 1 - o.alpha());
      scale = square_avg.addcmul(grad_avg, grad_avg, -1).sqrt_();
    } else {
      scale = square_avg.sqrt();
    }
    Tensor step = g / scale.add_(o.eps());
    if (o.momentum() > 0) step = u.state[2][i].mul_(o.momentum()).add_(step);
    param.sub_(step * o.lr_tensor());
  }
}

void AdagradOptions::visit(OptionVisitor& v) {
  v.visit("lr", lr_);
  v.visit("lr_decay", lr_decay());
  v.visit("weight_decay", weight_decay());
  v.visit("initial_accumulator_value", initial_accumulator_value());
  v.visit("eps", eps());
  v.visit("maximize", maximize());
}
VESTA_OPTIM_CLONE(AdagradOptions)
void AdagradOptions::check() const {
  check_not_negative("Adagrad", "lr", lr());
  check_not_negative("Adagrad", "lr_decay", lr_decay());
  check_not_negative("Adagrad", "weight_decay", weight_decay());
  check_not_negative("Adagrad", "initial_accumulator_value", initial_accumulator_value());
  check_not_negative("Adagrad", "eps", eps());
}
std::vector<std::string> Adagrad::slot_names() { return {"step", "sum"}; }
bool Adagrad::uses_slot(size_t, const OptimizerOptions&) const { return true; }
Tensor Adagrad::make_slot(size_t slot, const Tensor& param, const OptimizerOptions& options) const {
  return slot == 0 ? new_step() : state_like(param, own(options).initial_accumulator_value());
}
void Adagrad::update(const OptimizerOptions& options, Update& u) {
  const auto& o = own(options);
  for (size_t i = 0; i < u.params.size(); ++i) {
    Tensor &param = u.params[i], &sum = u.state[1][i];
    const Tensor g = rule_gradient(param, u.grads[i], o.maximize(), o.weight_decay());
    const Tensor step = next_step(u.state[0][i]);
    const Tensor rate = o.lr_tensor() / (1 + (step - 1) * o.lr_decay());
    sum.addcmul_(g, g);
    param.sub_((g / sum.sqrt().add_(o.eps())).mul_(rate));
  }
}

void AdadeltaOptions::visit(OptionVisitor& v) {
  v.visit("lr", lr_);
  v.visit("rho", rho());
  v.visit("eps", eps());
  v.visit("weight_decay", weight_decay());
  v.visit("maximize", maximize());
}
VESTA_OPTIM_CLONE(AdadeltaOptions)
void AdadeltaOptions::check() const {
  check_not_negative("Adadelta", "lr", lr());
  VESTA_CHECK(rho() >= 0 && rho() <= 1, "Adadelta: expected rho between 0 and 1, got ", rho());
  check_not_negative("Adadelta", "eps", eps());
  check_not_negative("Adadelta", "weight_decay", weight_decay());
}
std::vector<std::string> Adadelta::slot_names() { return {"step", "square_avg", "acc_delta"}; }
bool Adadelta::uses_slot(size_t, const OptimizerOptions&) const { return true; }
Tensor Adadelta::make_slot(size_t slot, const Tensor& param, const OptimizerOptions&) const {
  return slot == 0 ? new_step() : state_like(param);
}
void Adadelta::update(const OptimizerOptions& options, Update& u) {
  const auto& o = own(options);
  for (size_t i = 0; i < u.params.size(); ++i) {
    Tensor &param = u.params[i], &square_avg = u.state[1][i], &acc_delta = u.state[2][i];
    const Tensor g = rule_gradient(param, u.grads[i], o.maximize(), o.weight_decay());
    u.state[0][i].add_(1);
    square_avg.mul_(o.rho()).addcmul_(g, g, 1 - o.rho());
    Tensor delta = acc_delta.add(o.eps()).sqrt_();
    delta.div_(square_avg.add(o.eps()).sqrt_()).mul_(g);
    acc_delta.mul_(o.rho()).addcmul_(delta, delta, 1 - o.rho());
    param.sub_(delta.mul_(o.lr_tensor()));
  }
}

void AdamaxOptions::visit(OptionVisitor& v) {
  v.visit("lr", lr_);
  visit_betas(v, betas());
  v.visit("eps", eps());
  v.visit("weight_decay", weight_decay());
  v.visit("maximize", maximize());
}
VESTA_OPTIM_CLONE(AdamaxOptions)
void AdamaxOptions::check() const {
  check_not_negative("Adamax", "lr", lr());
  check_betas("Adamax", betas());
  check_not_negative("Adamax", "eps", eps());
  check_not_negative("Adamax", "weight_decay", weight_decay());
}
std::vector<std::string> Adamax::slot_names() { return {"step", "exp_avg", "exp_inf"}; }
bool Adamax::uses_slot(size_t, const OptimizerOptions&) const { return true; }
Tensor Adamax::make_slot(size_t slot, const Tensor& param, const OptimizerOptions&) const {
  return slot == 0 ? new_step() : state_like(param);
}
void Adamax::update(const OptimizerOptions& options, Update& u) {
  const auto& o = own(options);
  const auto [beta1, beta2] = o.betas();
  for (size_t i = 0; i < u.params.size(); ++i) {
    Tensor &param = u.params[i], &exp_avg = u.state[1][i], &exp_inf = u.state[2][i];
    const Tensor g = rule_gradient(param, u.grads[i], o.maximize(), o.weight_decay());
    const Tensor step = next_step(u.state[0][i]);
    exp_avg.lerp_(g, 1 - beta1);
    exp_inf.copy_(maximum(exp_inf.mul(beta2), g.abs().add_(o.eps())));
    param.sub_((exp_avg / exp_inf).mul_(o.lr_tensor() / (1 - pow(beta1, step))));
  }
}

void NAdamOptions::visit(OptionVisitor& v) {
  v.visit("lr", lr_);
  visit_betas(v, betas());
  v.visit("eps", eps());
  v.visit("weight_decay", weight_decay());
  v.visit("momentum_decay", momentum_decay());
  v.visit("decoupled_weight_decay", decoupled_weight_decay());
  v.visit("maximize", maximize());
}
VESTA_OPTIM_CLONE(NAdamOptions)
void NAdamOptions::check() const {
  check_not_negative("NAdam", "lr", lr());
  check_betas("NAdam", betas());
  check_not_negative("NAdam", "eps", eps());
  check_not_negative("NAdam", "weight_decay", weight_decay());
  check_not_negative("NAdam", "momentum_decay", momentum_decay());
}
std::vector<std::string> NAdam::slot_names() { return {"step", "exp_avg", "exp_avg_sq", "mu_product"}; }
bool NAdam::uses_slot(size_t, const OptimizerOptions&) const { return true; }
Tensor NAdam::make_slot(size_t slot, const Tensor& param, const OptimizerOptions&) const {
  if (slot == 3) return ones({}, TensorOptions(kFloat64));
  return slot == 0 ? new_step() : state_like(param);
}
std::vector<int64_t> NAdam::slot_sizes(size_t slot, const Tensor& param) const {
  return slot == 3 ? std::vector<int64_t>() : Optimizer::slot_sizes(slot, param);
}
void NAdam::update(const OptimizerOptions& options, Update& u) {
  const auto& o = own(options);
  const auto [beta1, beta2] = o.betas();
  const Tensor& lr = o.lr_tensor();
  for (size_t i = 0; i < u.params.size(); ++i) {
    Tensor &param = u.params[i], &exp_avg = u.state[1][i], &exp_avg_sq = u.state[2][i],
           &mu_product = u.state[3][i];
    const Tensor g =
        rule_gradient(param, u.grads[i], o.maximize(), o.decoupled_weight_decay() ? 0 : o.weight_decay());
    const Tensor step = next_step(u.state[0][i]);
    if (o.decoupled_weight_decay() && o.weight_decay() != 0) param.mul_(1 - lr * o.weight_decay());
    const auto momentum_at = [&](const Tensor& t) {
      return beta1 * (1 - 0.5 * pow(0.96, t * o.momentum_decay()));
    };
    const Tensor mu = momentum_at(step), mu_next = momentum_at(step + 1);
    mu_product.mul_(mu);
    update_moments(exp_avg, exp_avg_sq, g, beta1, beta2);
    const Tensor scale = (exp_avg_sq / (1 - pow(beta2, step))).sqrt_().add_(o.eps());
    const Tensor ahead =
        g * (lr * (1 - mu) / (1 - mu_product)) + exp_avg * (lr * mu_next / (1 - mu_product * mu_next));
    param.sub_(ahead / scale);
  }
}

void RAdamOptions::visit(OptionVisitor& v) {
  v.visit("lr", lr_);
  visit_betas(v, betas());
  v.visit("eps", eps());
  v.visit("weight_decay", weight_decay());
  v.visit("decoupled_weight_decay", decoupled_weight_decay());
  v.visit("maximize", maximize());
}
VESTA_OPTIM_CLONE(RAdamOptions)
void RAdamOptions::check() const {
  check_not_negative("RAdam", "lr", lr());
  check_betas("RAdam", betas());
  check_not_negative("RAdam", "eps", eps());
  check_not_negative("RAdam", "weight_decay", weight_decay());
}
std::vector<std::string> RAdam::slot_names() { return {"step", "exp_avg", "exp_avg_sq"}; }
bool RAdam::uses_slot(size_t, const OptimizerOptions&) const { return true; }
Tensor RAdam::make_slot(size_t slot, const Tensor& param, const OptimizerOptions&) const {
  return slot == 0 ? new_step() : state_like(param);
}
void RAdam::update(const OptimizerOptions& options, Update& u) {
  const auto& o = own(options);
  const auto [beta1, beta2] = o.betas();
  const Tensor& lr = o.lr_tensor();
  const double longest = 2 / (1 - beta2) - 1;  // rho_inf, the longest simple moving average
  for (size_t i = 0; i < u.params.size(); ++i) {
    Tensor &param = u.params[i], &exp_avg = u.state[1][i], &exp_avg_sq = u.state[2][i];
    const Tensor g =
        rule_gradient(param, u.grads[i], o.maximize(), o.decoupled_weight_decay() ? 0 : o.weight_decay());
    const Tensor step = next_step(u.state[0][i]);
    if (o.decoupled_weight_decay() && o.weight_decay() != 0) param.mul_(1 - lr * o.weight_decay());
    update_moments(exp_avg, exp_avg_sq, g, beta1, beta2);
    const Tensor decay = pow(beta2, step), correction = 1 - decay;
    const Tensor rho = longest - 2 * step * decay / correction;
    // While the average is short its variance is unknown, and the step is one of plain momentum.
    const Tensor rectified =
        ((rho - 4) * (rho - 2) * longest / ((longest - 4) * (longest - 2) * rho) * correction)
            .clamp_min(0)
            .sqrt();
    const Tensor factor = where(rho > 5, rectified / exp_avg_sq.sqrt().add_(o.eps()), 1.0);
    param.sub_(exp_avg * (lr / (1 - pow(beta1, step))) * factor);
  }
}

}  // namespace vesta::optim
