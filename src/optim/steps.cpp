// Rprop, ASGD, Muon.
#include <cmath>

#include "optim/rule.h"
#include "vesta/optim_steps.h"

namespace vesta::optim {

void RpropOptions::visit(OptionVisitor& v) {
  v.visit("lr", lr_);
  v.visit("eta_minus", std::get<0>(etas()));
  v.visit("eta_plus", std::get<1>(etas()));
  v.visit("step_size_min", std::get<0>(step_sizes()));
  v.visit("step_size_max", std::get<1>(step_sizes()));
  v.visit("maximize", maximize());
}
VESTA_OPTIM_CLONE(RpropOptions)
void RpropOptions::check() const {
  VESTA_CHECK(lr() >= 0, "Rprop: expected lr >= 0, got ", lr());
  const auto [minus, plus] = etas();
  VESTA_CHECK(minus > 0 && minus < 1 && plus > 1, "Rprop: expected etas in (0, 1) and above 1, got ", minus,
              " and ", plus);
}
std::vector<std::string> Rprop::slot_names() { return {"step", "prev", "step_size"}; }
bool Rprop::uses_slot(size_t, const OptimizerOptions&) const { return true; }
Tensor Rprop::make_slot(size_t slot, const Tensor& param, const OptimizerOptions& options) const {
  return slot == 0 ? new_step() : state_like(param, slot == 2 ? options.get_lr() : 0);
}
void Rprop::update(const OptimizerOptions& options, Update& u) {
  const auto& o = own(options);
  const auto [minus, plus] = o.etas();
  for (size_t i = 0; i < u.params.size(); ++i) {
    Tensor &param = u.params[i], &previous = u.state[1][i], &step_size = u.state[2][i];
    const Tensor g = rule_gradient(param, u.grads[i], o.maximize(), 0);
    u.state[0][i].add_(1);
    const Tensor agreement = g * previous;
    const Tensor turned = agreement < 0;
    const Tensor factor = ones_like(step_size).masked_fill(agreement > 0, plus).masked_fill(turned, minus);
    step_size.mul_(factor).clamp_(std::get<0>(o.step_sizes()), std::get<1>(o.step_sizes()));
    // Where the sign turned, this step is left out.
    const Tensor used = g.masked_fill(turned, 0);
    param.sub_(used.sign() * step_size);
    previous.copy_(used);
  }
}

void ASGDOptions::visit(OptionVisitor& v) {
  v.visit("lr", lr_);
  v.visit("lambd", lambd());
  v.visit("alpha", alpha());
  v.visit("t0", t0());
  v.visit("weight_decay", weight_decay());
  v.visit("maximize", maximize());
}
VESTA_OPTIM_CLONE(ASGDOptions)
void ASGDOptions::check() const {
  VESTA_CHECK(lr() >= 0, "ASGD: expected lr >= 0, got ", lr());
  VESTA_CHECK(weight_decay() >= 0, "ASGD: expected weight_decay >= 0, got ", weight_decay());
}
std::vector<std::string> ASGD::slot_names() { return {"step", "eta", "mu", "ax"}; }
bool ASGD::uses_slot(size_t, const OptimizerOptions&) const { return true; }
std::vector<int64_t> ASGD::slot_sizes(size_t slot, const Tensor& param) const {
  return slot == 3 ? Optimizer::slot_sizes(slot, param) : std::vector<int64_t>();
}
Tensor ASGD::make_slot(size_t slot, const Tensor& param, const OptimizerOptions& options) const {
  if (slot == 1) return full({}, options.get_lr(), TensorOptions(kFloat64));
  if (slot == 2) return ones({}, TensorOptions(kFloat64));
  return slot == 0 ? new_step() : state_like(param);
}
void ASGD::update(const OptimizerOptions& options, Update& u) {
  const auto& o = own(options);
  const Tensor& lr = o.lr_tensor();
  for (size_t i = 0; i < u.params.size(); ++i) {
    Tensor &param = u.params[i], &eta = u.state[1][i], &mu = u.state[2][i], &ax = u.state[3][i];
    const Tensor g = rule_gradient(param, u.grads[i], o.maximize(), o.weight_decay());
    const Tensor step = next_step(u.state[0][i]);
    param.mul_(1 - o.lambd() * eta);
    param.sub_(g * eta);
    // At mu = 1, before averaging starts, this gives the parameter itself.
    ax.lerp_(param.to(ax.dtype()), mu.to(ax.dtype()));
    eta.copy_(lr / pow(1 + o.lambd() * lr * step, o.alpha()));
    mu.copy_(1 / (step - o.t0()).clamp_min(1.0));
  }
}

namespace {

const char* const kRateRules[] = {"original", "match_rms_adamw", "spectral_unclamped"};

int64_t rate_rule(const std::string& name) {
  for (int64_t i = 0; i < 3; ++i)
    if (name == kRateRules[i]) return i;
  return -1;
}

double rate_ratio(const std::string& rule, double rows, double columns) {
  switch (rate_rule(rule)) {
    case 0:
      return std::sqrt(std::max(1.0, rows / columns));
    case 1:
      return 0.2 * std::sqrt(std::max(rows, columns));
    default:
      return std::sqrt(rows / columns);
  }
}

// Newton-Schulz iteration of the fifth order towards U V^T, where g = U S V^T; singular values end near 1. In bfloat16
// as PyTorch: the coefficients need no more.
Tensor orthogonalised(const Tensor& g, const MuonOptions& o) {
  const auto [a, b, c] = o.ns_coefficients();
  const bool tall = g.size(0) > g.size(1);
  Tensor x = g.to(kBFloat16);
  if (tall) x = x.t();
  x = x / linalg_vector_norm(x, 2).clamp_min(o.eps());
  for (int64_t k = 0; k < o.ns_steps(); ++k) {
    const Tensor gram = mm(x, x.t());
    const Tensor polynomial = addmm(gram, gram, gram, b, c);
    x = addmm(x, polynomial, x, a, 1);
  }
  return tall ? x.t() : x;
}

void check_matrix(const Tensor& t) {
  VESTA_CHECK(t.dim() == 2, "Muon: expected parameters of 2 dims, got one of ", t.dim(),
              "; give the others to another optimiser");
}

}  // namespace

void MuonOptions::visit(OptionVisitor& v) {
  v.visit("lr", lr_);
  v.visit("weight_decay", weight_decay());
  v.visit("momentum", momentum());
  v.visit("nesterov", nesterov());
  v.visit("ns_a", std::get<0>(ns_coefficients()));
  v.visit("ns_b", std::get<1>(ns_coefficients()));
  v.visit("ns_c", std::get<2>(ns_coefficients()));
  v.visit("eps", eps());
  v.visit("ns_steps", ns_steps());
  int64_t rule = rate_rule(adjust_lr_fn());
  v.visit("adjust_lr_fn", rule);
  if (rule >= 0 && rule < 3) adjust_lr_fn(kRateRules[rule]);
}
VESTA_OPTIM_CLONE(MuonOptions)
void MuonOptions::check() const {
  VESTA_CHECK(lr() >= 0, "Muon: expected lr >= 0, got ", lr());
  VESTA_CHECK(momentum() >= 0, "Muon: expected momentum >= 0, got ", momentum());
  VESTA_CHECK(weight_decay() >= 0, "Muon: expected weight_decay >= 0, got ", weight_decay());
  VESTA_CHECK(ns_steps() >= 0 && ns_steps() < 100, "Muon: expected 0 <= ns_steps < 100, got ", ns_steps());
  VESTA_CHECK(rate_rule(adjust_lr_fn()) >= 0,
              "Muon: expected adjust_lr_fn original, match_rms_adamw or spectral_unclamped, got ",
              adjust_lr_fn());
}
std::vector<std::string> Muon::slot_names() { return {"momentum_buffer"}; }
bool Muon::uses_slot(size_t, const OptimizerOptions&) const { return true; }
Tensor Muon::make_slot(size_t, const Tensor& param, const OptimizerOptions&) const {
  check_matrix(param);
  return state_like(param);
}
void Muon::update(const OptimizerOptions& options, Update& u) {
  const auto& o = own(options);
  const Tensor& lr = o.lr_tensor();
  for (size_t i = 0; i < u.params.size(); ++i) {
    Tensor &param = u.params[i], &buffer = u.state[0][i];
    if (param.numel() == 0) continue;
    const Tensor g = rule_gradient(param, u.grads[i], false, 0);
    buffer.lerp_(g, 1 - o.momentum());
    const Tensor ahead = o.nesterov() ? g.lerp(buffer, o.momentum()) : buffer;
    const Tensor direction = orthogonalised(ahead, o).to(state_dtype(param));
    const double ratio = rate_ratio(o.adjust_lr_fn(), double(param.size(0)), double(param.size(1)));
    param.mul_(1 - lr * o.weight_decay());
    param.sub_(direction * (lr * ratio));
  }
}

}  // namespace vesta::optim
