// GradScaler. The scale is a tensor, so that a captured loss sees its changes.
#include "vesta/grad_scaler.h"

#include "vesta/autograd.h"
#include "vesta/ops.h"

namespace vesta::amp {
namespace {

void check_factors(const GradScalerOptions& o) {
  VESTA_CHECK(o.growth_factor() > 1, "GradScaler: expected growth_factor > 1, got ", o.growth_factor());
  VESTA_CHECK(o.backoff_factor() < 1, "GradScaler: expected backoff_factor < 1, got ", o.backoff_factor());
  VESTA_CHECK(o.growth_interval() > 0, "GradScaler: expected growth_interval > 0, got ", o.growth_interval());
}

Tensor number(double value) { return full({}, value, TensorOptions(kFloat64)); }

}  // namespace

GradScaler::GradScaler(const GradScalerOptions& options)
    : options_(options),
      scale_(full({}, options.init_scale(), TensorOptions(kFloat32))),
      tracker_(zeros({}, TensorOptions(kInt32))) {
  if (options.enabled()) check_factors(options);
}

Tensor GradScaler::scale(const Tensor& outputs) const { return is_enabled() ? outputs * scale_ : outputs; }
std::vector<Tensor> GradScaler::scale(const std::vector<Tensor>& outputs) const {
  std::vector<Tensor> out;
  for (const Tensor& output : outputs) out.push_back(scale(output));
  return out;
}

void GradScaler::unscale_(optim::Optimizer& optimizer) {
  if (!is_enabled()) return;
  Visit& visit = visits_[&optimizer];
  VESTA_CHECK(visit.stage != Stage::Unscaled,
              "GradScaler::unscale_: already called for this optimiser since the last update()");
  VESTA_CHECK(visit.stage != Stage::Stepped, "GradScaler::unscale_: called after step()");
  for (const auto& group : optimizer.param_groups())
    for (const Tensor& param : group.params())
      VESTA_CHECK(!param.grad().defined() || param.grad().dtype() != kFloat16,
                  "GradScaler::unscale_: a gradient is float16; keep the parameters in float32");
  const NoGradGuard no_grad;
  const Tensor inverse = scale_.to(kFloat64).reciprocal();
  Tensor finite = ones({}, TensorOptions(kBool));
  for (const auto& group : optimizer.param_groups())
    for (const Tensor& param : group.params()) {
      if (!param.grad().defined()) continue;
      Tensor grad = param.grad();
      finite = finite.logical_and(isfinite(grad).all());
      grad.mul_(inverse);
    }
  visit.overflow = finite.logical_not();
  visit.stage = Stage::Unscaled;
}

bool GradScaler::step(optim::Optimizer& optimizer) {
  if (!is_enabled()) {
    optimizer.step();
    return true;
  }
  Visit& visit = visits_[&optimizer];
  VESTA_CHECK(visit.stage != Stage::Stepped, "GradScaler::step: already called since the last update()");
  if (visit.stage == Stage::Ready) unscale_(optimizer);
  const bool overflow = visit.overflow.item<bool>();
  if (!overflow) optimizer.step();
  visit.stage = Stage::Stepped;
  return !overflow;
}

void GradScaler::update(std::optional<double> new_scale) {
  if (!is_enabled()) return;
  const NoGradGuard no_grad;
  if (new_scale) {
    scale_.fill_(*new_scale);
  } else {
    VESTA_CHECK(!visits_.empty(), "GradScaler::update: no optimiser has been unscaled or stepped");
    Tensor overflow = zeros({}, TensorOptions(kBool));
    for (const auto& [optimizer, visit] : visits_)
      if (visit.overflow.defined()) overflow = overflow.logical_or(visit.overflow);
    const Tensor successes = tracker_ + 1;
    const Tensor due = successes.eq(options_.growth_interval());
    const Tensor grown = scale_ * options_.growth_factor();
    // A scale that would overflow itself stays.
    const Tensor after_success = where(due.logical_and(isfinite(grown)), grown, scale_);
    scale_.copy_(where(overflow, scale_ * options_.backoff_factor(), after_success));
    tracker_.copy_(where(overflow.logical_or(due), zeros_like(successes), successes));
  }
  visits_.clear();
}

double GradScaler::get_scale() const { return is_enabled() ? scale_.item<double>() : 1; }

optim::StateDict GradScaler::state_dict() const {
  optim::StateDict dict("scaler state");
  if (!is_enabled()) return dict;
  dict.insert("scale", scale_);
  dict.insert("growth_tracker", tracker_);
  dict.insert("growth_factor", number(options_.growth_factor()));
  dict.insert("backoff_factor", number(options_.backoff_factor()));
  dict.insert("growth_interval", number(double(options_.growth_interval())));
  return dict;
}

void GradScaler::load_state_dict(const optim::StateDict& dict) {
  if (!is_enabled()) return;
  const auto get = [&](const char* name) {
    const Tensor* value = dict.find(name);
    VESTA_CHECK(value && value->numel() == 1, "GradScaler::load_state_dict: expected one element in '", name,
                "'");
    return value->item<double>();
  };
  GradScalerOptions loaded = options_;
  loaded.growth_factor(get("growth_factor"))
      .backoff_factor(get("backoff_factor"))
      .growth_interval(int64_t(get("growth_interval")));
  check_factors(loaded);
  const double scale = get("scale"), tracker = get("growth_tracker");
  const NoGradGuard no_grad;
  options_ = loaded;
  scale_.fill_(scale);
  tracker_.fill_(tracker);
}

}  // namespace vesta::amp
