// SGD with momentum.
#include "vesta/ops.h"
#include "vesta/optim.h"

namespace vesta::optim {
namespace {
constexpr size_t kMomentum = 0, kStep = 1;
}

void SGDOptions::visit(OptionVisitor& v) {
  v.visit("lr", lr_);
  v.visit("momentum", momentum());
  v.visit("dampening", dampening());
  v.visit("weight_decay", weight_decay());
  v.visit("nesterov", nesterov());
  v.visit("maximize", maximize());
}
void SGDOptions::check() const {
  VESTA_CHECK(lr() >= 0, "SGD: expected lr >= 0, got ", lr());
  VESTA_CHECK(momentum() >= 0, "SGD: expected momentum >= 0, got ", momentum());
  VESTA_CHECK(weight_decay() >= 0, "SGD: expected weight_decay >= 0, got ", weight_decay());
  VESTA_CHECK(!nesterov() || (momentum() > 0 && dampening() == 0),
              "SGD: nesterov needs momentum > 0 and dampening 0, got momentum ", momentum(), " and dampening ", dampening());
}

SGD::SGD(std::vector<OptimizerParamGroup> groups, const SGDOptions& defaults)
    : Optimizer(defaults.clone(), {"momentum_buffer", "step"}) {
  for (auto& group : groups) add_param_group(std::move(group));
}
bool SGD::accepts(const OptimizerOptions& options) const { return dynamic_cast<const SGDOptions*>(&options); }
bool SGD::uses_slot(size_t slot, const OptimizerOptions& options) const {
  const auto& o = static_cast<const SGDOptions&>(options);
  return o.momentum() != 0 && (slot == kMomentum || o.dampening() != 0);
}
Tensor SGD::make_slot(size_t slot, const Tensor& param) const {
  if (slot == kStep) return zeros({}, TensorOptions(kFloat32));
  return zeros_like(param);
}

void SGD::update(const OptimizerOptions& options, Update& u) {
  const auto& o = static_cast<const SGDOptions&>(options);
  const Tensor& lr = o.lr_tensor();
  for (size_t i = 0; i < u.params.size(); ++i) {
    Tensor& param = u.params[i];
    Tensor grad = o.maximize() ? -u.grads[i] : u.grads[i];
    if (o.weight_decay() != 0) grad = grad.add(param, o.weight_decay());
    if (o.momentum() != 0) {
      Tensor& buffer = u.state[kMomentum][i];
      // A buffer of zeros makes the first step the same as the others, except where the gradient is damped.
      Tensor damped = grad;
      if (o.dampening() != 0) {
        Tensor& step = u.state[kStep][i];
        damped = grad * where(step.eq(0), 1.0, 1 - o.dampening() + zeros_like(step));
        step.add_(1);
      }
      buffer.mul_(o.momentum()).add_(damped);
      grad = o.nesterov() ? grad.add(buffer, o.momentum()) : buffer;
    }
    param.sub_(grad * lr);
  }
}

}  // namespace vesta::optim
