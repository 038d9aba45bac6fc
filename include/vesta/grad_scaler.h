#pragma once
// GradScaler: keeps the gradients of 16-bit training from vanishing by a factor on the loss, which shrinks when
// gradients overflow and grows when they have not for a while (Micikevicius et al. 2018). PyTorch's torch.amp.GradScaler.
//   amp::GradScaler scaler;
//   scaler.scale(loss).backward();
//   scaler.unscale_(opt);                    // only where gradients are read before the step, to clip them
//   scaler.step(opt);                        // leaves the step out where a gradient is not finite
//   scaler.update();
// step() reads whether gradients are finite, so it cannot be captured; scale() and unscale_() can.
#include <map>

#include "vesta/optim_base.h"

namespace vesta::amp {

class GradScalerOptions {
  VESTA_ARG(double, init_scale) = 65536;
  VESTA_ARG(double, growth_factor) = 2;
  VESTA_ARG(double, backoff_factor) = 0.5;
  VESTA_ARG(int64_t, growth_interval) = 2000;
  // false: scale() returns its argument and step() only steps.
  VESTA_ARG(bool, enabled) = true;
};

class GradScaler {
 public:
  // ValueError unless growth_factor > 1 and backoff_factor < 1.
  explicit GradScaler(const GradScalerOptions& options = {});
  GradScaler(const GradScaler&) = delete;
  GradScaler& operator=(const GradScaler&) = delete;

  Tensor scale(const Tensor& outputs) const;
  std::vector<Tensor> scale(const std::vector<Tensor>& outputs) const;
  // Divides the gradients of the optimiser's parameters by the scale. ValueError where that was done since the last
  // update, where it has stepped since, or where a gradient is float16, whose range is too small.
  void unscale_(optim::Optimizer& optimizer);
  // Unscales unless that is done, and steps unless a gradient is infinite or NaN. Whether it stepped. The closure is not
  // supported. ValueError for a second step before update().
  bool step(optim::Optimizer& optimizer);
  // Adapts the scale to what the steps since the last call met, or sets it.
  void update(std::optional<double> new_scale = std::nullopt);

  double get_scale() const;
  double get_growth_factor() const { return options_.growth_factor(); }
  double get_backoff_factor() const { return options_.backoff_factor(); }
  int64_t get_growth_interval() const { return options_.growth_interval(); }
  void set_growth_factor(double value) { options_.growth_factor(value); }
  void set_backoff_factor(double value) { options_.backoff_factor(value); }
  void set_growth_interval(int64_t value) { options_.growth_interval(value); }
  bool is_enabled() const { return options_.enabled(); }

  // scale, growth_tracker, growth_factor, backoff_factor, growth_interval; empty where not enabled.
  optim::StateDict state_dict() const;
  void load_state_dict(const optim::StateDict& dict);

 private:
  enum class Stage { Ready, Unscaled, Stepped };
  struct Visit {
    Stage stage = Stage::Ready;
    Tensor overflow;  // bool, 0-dim
  };
  GradScalerOptions options_;
  Tensor scale_, tracker_;  // float32, int32; 0-dim
  std::map<const optim::Optimizer*, Visit> visits_;
};

}  // namespace vesta::amp
