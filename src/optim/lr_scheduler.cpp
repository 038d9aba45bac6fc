// Learning-rate schedules.
#include <cmath>
#include <numbers>

#include "core/thread_state.h"
#include "vesta/autograd.h"
#include "vesta/ops.h"
#include "vesta/optim.h"

namespace vesta::optim {

LRScheduler::LRScheduler(Optimizer& optimizer)
    : optimizer_(optimizer), epoch_(zeros({}, TensorOptions(kInt64))) {
  for (const auto& group : optimizer.param_groups()) base_lrs_.emplace_back(group.options().get_lr());
}

int64_t LRScheduler::last_epoch() const { return epoch_.item<int64_t>(); }

std::vector<double> LRScheduler::get_last_lr() const {
  std::vector<double> out;
  for (const auto& group : optimizer_.param_groups()) out.push_back(group.options().get_lr());
  return out;
}

void LRScheduler::step() {
  // The schedule is computed in C++: a trace would keep the rate of one epoch as a constant.
  VESTA_CHECK(!(thread_state.mode & TensorImpl::kTrace),
              "LRScheduler::step: call it outside of the captured function, "
              "which sees the new rate in the optimiser's tensor");
  const NoGradGuard no_grad;
  epoch_.add_(1);
  apply();
}

// Groups added after the scheduler was made keep their own rates.
void LRScheduler::apply() {
  const int64_t epoch = last_epoch();
  for (size_t g = 0; g < base_lrs_.size(); ++g)
    optimizer_.param_groups()[g].options().set_lr(rate(epoch, base_lrs_[g].get(), g));
}

StateDict LRScheduler::state_dict() const {
  StateDict dict("scheduler state");
  dict.insert("last_epoch", epoch_);
  for (size_t g = 0; g < base_lrs_.size(); ++g)
    dict.insert("base_lr." + std::to_string(g), base_lrs_[g].tensor());
  return dict;
}

void LRScheduler::load_state_dict(const StateDict& dict) {
  const StateDict own = state_dict();
  for (const auto& item : own) {
    const Tensor* value = dict.find(item.key());
    VESTA_CHECK(value, "LRScheduler::load_state_dict: '", item.key(), "' is missing");
    VESTA_CHECK(value->numel() == 1, "LRScheduler::load_state_dict: expected one element in '", item.key(),
                "', got ", value->numel());
  }
  VESTA_CHECK(dict.size() == own.size(), "LRScheduler::load_state_dict: expected ", own.size(),
              " entries, got ", dict.size());
  const NoGradGuard no_grad;
  for (const auto& item : own) {
    Tensor mine = *item;
    mine.fill_(dict[item.key()].item());
  }
  apply();
}

StepLR::StepLR(Optimizer& optimizer, int64_t step_size, double gamma)
    : LRScheduler(optimizer), step_size_(step_size), gamma_(gamma) {
  VESTA_CHECK(step_size > 0, "StepLR: expected step_size > 0, got ", step_size);
  apply();
}
double StepLR::rate(int64_t epoch, double base_lr, size_t) const {
  return base_lr * std::pow(gamma_, double(epoch / step_size_));
}

ExponentialLR::ExponentialLR(Optimizer& optimizer, double gamma) : LRScheduler(optimizer), gamma_(gamma) {
  apply();
}
double ExponentialLR::rate(int64_t epoch, double base_lr, size_t) const {
  return base_lr * std::pow(gamma_, double(epoch));
}

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, int64_t t_max, double eta_min)
    : LRScheduler(optimizer), t_max_(t_max), eta_min_(eta_min) {
  VESTA_CHECK(t_max > 0, "CosineAnnealingLR: expected t_max > 0, got ", t_max);
  apply();
}
double CosineAnnealingLR::rate(int64_t epoch, double base_lr, size_t) const {
  return eta_min_ +
         (base_lr - eta_min_) * (1 + std::cos(std::numbers::pi * double(epoch) / double(t_max_))) / 2;
}

LambdaLR::LambdaLR(Optimizer& optimizer, Lambda f)
    : LambdaLR(optimizer, std::vector<Lambda>(optimizer.param_groups().size(), f)) {}
LambdaLR::LambdaLR(Optimizer& optimizer, std::vector<Lambda> f) : LRScheduler(optimizer), f_(std::move(f)) {
  VESTA_CHECK(f_.size() == optimizer.param_groups().size(), "LambdaLR: expected one function for each of ",
              optimizer.param_groups().size(), " parameter groups, got ", f_.size());
  for (const Lambda& one : f_) VESTA_CHECK(one, "LambdaLR: a function is empty");
  apply();
}
double LambdaLR::rate(int64_t epoch, double base_lr, size_t group) const {
  return base_lr * f_[group](epoch);
}

LambdaLR::Lambda cosine_with_warmup(int64_t warmup, int64_t total, double floor) {
  VESTA_CHECK(warmup >= 0 && total > warmup, "cosine_with_warmup: expected 0 <= warmup < total, got ", warmup,
              " and ", total);
  VESTA_CHECK(floor >= 0 && floor <= 1, "cosine_with_warmup: expected a floor between 0 and 1, got ", floor);
  return [=](int64_t epoch) {
    if (epoch < warmup) return double(epoch + 1) / double(warmup);
    if (epoch >= total) return floor;
    const double progress = double(epoch - warmup) / double(total - warmup);
    return floor + (1 - floor) * (1 + std::cos(std::numbers::pi * progress)) / 2;
  };
}

}  // namespace vesta::optim
