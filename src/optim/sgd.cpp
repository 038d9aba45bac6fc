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
VESTA_OPTIM_CLONE(SGDOptions)
void SGDOptions::check() const {
  VESTA_CHECK(lr() >= 0, "SGD: expected lr >= 0, got ", lr());
  VESTA_CHECK(momentum() >= 0, "SGD: expected momentum >= 0, got ", momentum());
  VESTA_CHECK(weight_decay() >= 0, "SGD: expected weight_decay >= 0, got ", weight_decay());
  VESTA_CHECK(!nesterov() || (momentum() > 0 && dampening() == 0),
              "SGD: nesterov needs momentum > 0 and dampening 0, got momentum ", momentum(),
              " and dampening ", dampening());
}

std::vector<std::string> SGD::slot_names() { return {"momentum_buffer", "step"}; }
bool SGD::uses_slot(size_t slot, const OptimizerOptions& options) const {
  const auto& o = own(options);
  return o.momentum() != 0 && (slot == kMomentum || o.dampening() != 0);
}
Tensor SGD::make_slot(size_t slot, const Tensor& param, const OptimizerOptions&) const {
  if (slot == kStep) return zeros({}, TensorOptions(kFloat32));
  return zeros_like(param);
}

void SGD::update(const OptimizerOptions& options, Update& u) {
  const auto& o = own(options);
  const Tensor& lr = o.lr_tensor();
  if (o.momentum() == 0 || o.dampening() == 0) {
    // A buffer of zeros makes the first step like all others.
    _fused_sgd_(u.params, u.grads, u.state[kMomentum], o.weight_decay(), o.momentum(), lr, o.dampening(),
                o.nesterov(), o.maximize(), /*is_first_step=*/false);
    return;
  }
  // The first gradient enters the buffer undamped. Which step is the first is read from a tensor, where a captured step
  // sees it change; the fused operator takes a C++ bool.
  for (size_t i = 0; i < u.params.size(); ++i) {
    Tensor &param = u.params[i], &buffer = u.state[kMomentum][i], &step = u.state[kStep][i];
    Tensor grad = o.maximize() ? -u.grads[i] : u.grads[i];
    if (o.weight_decay() != 0) grad = grad.add(param, o.weight_decay());
    const Tensor share = 1 - step.ne(0).to(kFloat32) * o.dampening();
    step.add_(1);
    buffer.mul_(o.momentum()).add_(grad * share);
    param.sub_(buffer * lr);
  }
}

}  // namespace vesta::optim
