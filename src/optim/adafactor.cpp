// Adafactor. The second moments of a matrix are the outer product of a row and a column of means.
#include <cmath>
#include <limits>

#include "optim/rule.h"
#include "vesta/optim_moments.h"

namespace vesta::optim {
namespace {

constexpr size_t kStep = 0, kRow = 1, kColumn = 2;

double machine_epsilon(DType dtype) {
  if (dtype == kFloat64) return std::numeric_limits<double>::epsilon();
  if (dtype == kFloat16) return std::ldexp(1.0, -10);
  if (dtype == kBFloat16) return std::ldexp(1.0, -7);
  return double(std::numeric_limits<float>::epsilon());
}

}  // namespace

void AdafactorOptions::visit(OptionVisitor& v) {
  v.visit("lr", lr_);
  v.visit("beta2_decay", beta2_decay());
  double first = std::get<0>(eps()).value_or(-1);  // below 0: absent
  v.visit("eps1", first);
  std::get<0>(eps()) = first < 0 ? std::nullopt : std::optional<double>(first);
  v.visit("eps2", std::get<1>(eps()));
  v.visit("d", d());
  v.visit("weight_decay", weight_decay());
  v.visit("maximize", maximize());
}
VESTA_OPTIM_CLONE(AdafactorOptions)
void AdafactorOptions::check() const {
  VESTA_CHECK(lr() >= 0, "Adafactor: expected lr >= 0, got ", lr());
  VESTA_CHECK(beta2_decay() <= 0, "Adafactor: expected beta2_decay <= 0, got ", beta2_decay());
  VESTA_CHECK(std::get<0>(eps()).value_or(0) >= 0 && std::get<1>(eps()) >= 0,
              "Adafactor: expected no negative eps, got ", std::get<0>(eps()).value_or(0), " and ",
              std::get<1>(eps()));
  VESTA_CHECK(d() >= 1, "Adafactor: expected d >= 1, got ", d());
  VESTA_CHECK(weight_decay() >= 0, "Adafactor: expected weight_decay >= 0, got ", weight_decay());
}

std::vector<std::string> Adafactor::slot_names() { return {"step", "row_var", "col_var", "variance"}; }
bool Adafactor::uses_slot(size_t, const OptimizerOptions&) const { return true; }
std::vector<int64_t> Adafactor::slot_sizes(size_t slot, const Tensor& param) const {
  if (slot == kStep) return {};
  const bool factored = slot == kRow || slot == kColumn;
  if (factored != (param.dim() > 1)) return {0};
  std::vector<int64_t> sizes(param.sizes().begin(), param.sizes().end());
  if (factored) sizes[sizes.size() - slot] = 1;  // the row's last dim, the column's last but one
  return sizes;
}
Tensor Adafactor::make_slot(size_t slot, const Tensor& param, const OptimizerOptions&) const {
  if (slot == kStep) return new_step();
  return zeros(slot_sizes(slot, param), param.options().dtype(state_dtype(param)));
}

void Adafactor::update(const OptimizerOptions& options, Update& u) {
  const auto& o = own(options);
  const Tensor& lr = o.lr_tensor();
  for (size_t i = 0; i < u.params.size(); ++i) {
    Tensor &param = u.params[i], &row = u.state[1][i], &column = u.state[2][i], &variance = u.state[3][i];
    const Tensor step = next_step(u.state[kStep][i]);
    if (param.numel() == 0) continue;
    const Tensor g = rule_gradient(param, u.grads[i], o.maximize(), 0);
    const double eps1 = std::get<0>(o.eps()).value_or(machine_epsilon(param.dtype()));
    const double root = std::sqrt(double(param.numel()));
    const auto norm = [](const Tensor& t) { return linalg_vector_norm(t, 2).to(kFloat64); };
    const Tensor weight = pow(step, o.beta2_decay());
    const Tensor rho = minimum(lr, step.rsqrt());
    const Tensor alpha = (norm(param.to(state_dtype(param))) / root).clamp_min(std::get<1>(o.eps())) * rho;
    if (o.weight_decay() != 0) param.mul_(1 - lr * o.weight_decay());
    Tensor estimate;
    if (param.dim() > 1) {
      const Tensor squares = g.square();
      row.lerp_(squares.mean({-1}, true), weight.to(row.dtype()));
      column.lerp_(squares.mean({-2}, true), weight.to(column.dtype()));
      estimate = row.matmul(column) / row.mean({-2}, true).clamp_min(eps1);
    } else {
      variance.lerp_(g.square(), weight.to(variance.dtype()));
      estimate = variance;
    }
    const Tensor step_size = estimate.clamp_min(eps1 * eps1).rsqrt_().mul_(g);
    const Tensor shrink = (norm(step_size) / (root * o.d())).clamp_min(1.0);
    param.sub_(step_size * (alpha / shrink));
  }
}

}  // namespace vesta::optim
