// Learning-rate schedules that are functions of the epoch. Each has a closed form, and, where PyTorch's can be chained,
// the rule from one rate to the next.
#include <cmath>
#include <numbers>

#include "core/thread_state.h"
#include "vesta/autograd.h"
#include "vesta/ops.h"
#include "vesta/optim_schedulers.h"

namespace vesta::optim {

LRScheduler::LRScheduler(Optimizer& optimizer)
    : optimizer_(optimizer), epoch_(zeros({}, TensorOptions(kInt64))) {
  for (auto& group : optimizer.param_groups()) {
    OptimizerOptions& options = group.options();
    if (!options.initial_lr) options.initial_lr = options.get_lr();
    base_lrs_.emplace_back(*options.initial_lr);
  }
}

int64_t LRScheduler::last_epoch() const { return epoch_.item<int64_t>(); }

std::vector<double> LRScheduler::get_last_lr() const {
  std::vector<double> out;
  for (const auto& group : optimizer_.param_groups()) out.push_back(group.options().get_lr());
  return out;
}

void LRScheduler::check_not_captured() {
  // The schedule is computed in C++: a trace would keep the rate of one epoch as a constant.
  VESTA_CHECK(!(thread_state.mode & TensorImpl::kTrace),
              "LRScheduler::step: call it outside of the captured function, "
              "which sees the new rate in the optimiser's tensor");
}

void LRScheduler::step() {
  check_not_captured();
  const NoGradGuard no_grad;
  epoch_.add_(1);
  set_rates(false);
}

void LRScheduler::restart(int64_t epoch) {
  check_not_captured();
  VESTA_CHECK(epoch >= 0, "LRScheduler::restart: expected epoch >= 0, got ", epoch);
  const NoGradGuard no_grad;
  epoch_.fill_(epoch);
  shared_.assign(base_lrs_.size(), false);
  set_rates(true);
}

void LRScheduler::apply_first() {
  const NoGradGuard no_grad;
  last_.clear();
  for (const auto& base : base_lrs_) last_.push_back(base.get());
  shared_.assign(base_lrs_.size(), false);
  set_rates(false);
}

// Groups added after the scheduler was made keep their own rates.
void LRScheduler::set_rates(bool closed_form) {
  const int64_t epoch = last_epoch();
  last_.resize(base_lrs_.size());
  shared_.resize(base_lrs_.size());
  for (size_t g = 0; g < base_lrs_.size(); ++g) {
    OptimizerOptions& options = optimizer_.param_groups()[g].options();
    const double current = options.get_lr(), base = base_lrs_[g].get();
    if (!closed_form && current != last_[g]) shared_[g] = true;
    last_[g] = closed_form || !shared_[g] ? rate(epoch, base, g) : next_rate(epoch, current, base, g);
    options.set_lr(last_[g]);
  }
  applied(epoch);
}

void LRScheduler::keep_rates(const std::vector<double>& rates) {
  const NoGradGuard no_grad;
  for (size_t g = 0; g < std::min(rates.size(), base_lrs_.size()); ++g)
    optimizer_.param_groups()[g].options().set_lr(rates[g]);
}

double LRScheduler::next_rate(int64_t epoch, double, double base_lr, size_t group) const {
  return rate(epoch, base_lr, group);
}

StateDict LRScheduler::state_dict() const {
  StateDict dict("scheduler state");
  dict.insert("last_epoch", epoch_);
  for (size_t g = 0; g < base_lrs_.size(); ++g)
    dict.insert("base_lr." + std::to_string(g), base_lrs_[g].tensor());
  return dict;
}

void LRScheduler::load_state_dict(const StateDict& dict) {
  const StateDict own = LRScheduler::state_dict();
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
  restart(last_epoch());
}

StepLR::StepLR(Optimizer& optimizer, int64_t step_size, double gamma)
    : LRScheduler(optimizer), step_size_(step_size), gamma_(gamma) {
  VESTA_CHECK(step_size > 0, "StepLR: expected step_size > 0, got ", step_size);
  apply_first();
}
double StepLR::rate(int64_t epoch, double base_lr, size_t) const {
  return base_lr * std::pow(gamma_, double(epoch / step_size_));
}
double StepLR::next_rate(int64_t epoch, double current, double, size_t) const {
  return epoch > 0 && epoch % step_size_ == 0 ? current * gamma_ : current;
}

MultiStepLR::MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma)
    : LRScheduler(optimizer), milestones_(std::move(milestones)), gamma_(gamma) {
  apply_first();
}
double MultiStepLR::rate(int64_t epoch, double base_lr, size_t) const {
  double reached = 0;
  for (const int64_t milestone : milestones_) reached += milestone <= epoch;
  return base_lr * std::pow(gamma_, reached);
}
double MultiStepLR::next_rate(int64_t epoch, double current, double, size_t) const {
  double reached = 0;
  for (const int64_t milestone : milestones_) reached += milestone == epoch;
  return current * std::pow(gamma_, reached);
}

ExponentialLR::ExponentialLR(Optimizer& optimizer, double gamma) : LRScheduler(optimizer), gamma_(gamma) {
  apply_first();
}
double ExponentialLR::rate(int64_t epoch, double base_lr, size_t) const {
  return base_lr * std::pow(gamma_, double(epoch));
}
double ExponentialLR::next_rate(int64_t epoch, double current, double, size_t) const {
  return epoch > 0 ? current * gamma_ : current;
}

ConstantLR::ConstantLR(Optimizer& optimizer, double factor, int64_t total_iters)
    : LRScheduler(optimizer), factor_(factor), total_iters_(total_iters) {
  VESTA_CHECK(factor >= 0 && factor <= 1, "ConstantLR: expected a factor between 0 and 1, got ", factor);
  apply_first();
}
double ConstantLR::rate(int64_t epoch, double base_lr, size_t) const {
  return epoch < total_iters_ ? base_lr * factor_ : base_lr;
}
double ConstantLR::next_rate(int64_t epoch, double current, double base_lr, size_t) const {
  if (epoch == 0) return current * factor_;
  if (epoch != total_iters_) return current;
  return factor_ > 0 ? current / factor_ : base_lr;
}

LinearLR::LinearLR(Optimizer& optimizer, double start_factor, double end_factor, int64_t total_iters)
    : LRScheduler(optimizer),
      start_factor_(start_factor),
      end_factor_(end_factor),
      total_iters_(total_iters) {
  VESTA_CHECK(start_factor > 0 && start_factor <= 1, "LinearLR: expected a start_factor in (0, 1], got ",
              start_factor);
  VESTA_CHECK(end_factor >= 0 && end_factor <= 1, "LinearLR: expected an end_factor in [0, 1], got ",
              end_factor);
  VESTA_CHECK(total_iters > 0, "LinearLR: expected total_iters > 0, got ", total_iters);
  apply_first();
}
double LinearLR::factor(int64_t epoch) const {
  return start_factor_ +
         (end_factor_ - start_factor_) * double(std::min(total_iters_, epoch)) / double(total_iters_);
}
double LinearLR::rate(int64_t epoch, double base_lr, size_t) const { return base_lr * factor(epoch); }
double LinearLR::next_rate(int64_t epoch, double current, double, size_t) const {
  if (epoch == 0) return current * start_factor_;
  return epoch > total_iters_ ? current : current * (factor(epoch) / factor(epoch - 1));
}

PolynomialLR::PolynomialLR(Optimizer& optimizer, int64_t total_iters, double power)
    : LRScheduler(optimizer), total_iters_(total_iters), power_(power) {
  VESTA_CHECK(total_iters > 0, "PolynomialLR: expected total_iters > 0, got ", total_iters);
  apply_first();
}
double PolynomialLR::rate(int64_t epoch, double base_lr, size_t) const {
  return base_lr * std::pow(1 - double(std::min(total_iters_, epoch)) / double(total_iters_), power_);
}
double PolynomialLR::next_rate(int64_t epoch, double current, double, size_t) const {
  if (epoch == 0 || epoch > total_iters_) return current;
  return current * std::pow(double(total_iters_ - epoch) / double(total_iters_ - epoch + 1), power_);
}

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, int64_t t_max, double eta_min)
    : LRScheduler(optimizer), t_max_(t_max), eta_min_(eta_min) {
  VESTA_CHECK(t_max > 0, "CosineAnnealingLR: expected t_max > 0, got ", t_max);
  apply_first();
}
double CosineAnnealingLR::rate(int64_t epoch, double base_lr, size_t) const {
  return eta_min_ +
         (base_lr - eta_min_) * (1 + std::cos(std::numbers::pi * double(epoch) / double(t_max_))) / 2;
}
double CosineAnnealingLR::next_rate(int64_t epoch, double current, double base_lr, size_t) const {
  if (epoch == 0) return current;
  const auto wave = [&](int64_t at) { return 1 + std::cos(std::numbers::pi * double(at) / double(t_max_)); };
  // The step behind a minimum, where the ratio is 0 / 0.
  if ((epoch - 1 - t_max_) % (2 * t_max_) == 0)
    return current + (base_lr - eta_min_) * (1 - std::cos(std::numbers::pi / double(t_max_))) / 2;
  return wave(epoch) / wave(epoch - 1) * (current - eta_min_) + eta_min_;
}

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t t_0, int64_t t_mult,
                                                         double eta_min)
    : LRScheduler(optimizer), t_0_(t_0), t_mult_(t_mult), eta_min_(eta_min) {
  VESTA_CHECK(t_0 > 0, "CosineAnnealingWarmRestarts: expected t_0 > 0, got ", t_0);
  VESTA_CHECK(t_mult >= 1, "CosineAnnealingWarmRestarts: expected t_mult >= 1, got ", t_mult);
  apply_first();
}
double CosineAnnealingWarmRestarts::rate(int64_t epoch, double base_lr, size_t) const {
  double at = double(epoch), length = double(t_0_);
  if (t_mult_ == 1) {
    at = std::fmod(at, length);
  } else {
    for (; at >= length; length *= double(t_mult_)) at -= length;
  }
  return eta_min_ + (base_lr - eta_min_) * (1 + std::cos(std::numbers::pi * at / length)) / 2;
}

LambdaLR::LambdaLR(Optimizer& optimizer, Lambda f)
    : LambdaLR(optimizer, std::vector<Lambda>(optimizer.param_groups().size(), f)) {}
LambdaLR::LambdaLR(Optimizer& optimizer, std::vector<Lambda> f) : LRScheduler(optimizer), f_(std::move(f)) {
  VESTA_CHECK(f_.size() == optimizer.param_groups().size(), "LambdaLR: expected one function for each of ",
              optimizer.param_groups().size(), " parameter groups, got ", f_.size());
  for (const Lambda& one : f_) VESTA_CHECK(one, "LambdaLR: a function is empty");
  apply_first();
}
double LambdaLR::rate(int64_t epoch, double base_lr, size_t group) const {
  return base_lr * f_[group](epoch);
}

MultiplicativeLR::MultiplicativeLR(Optimizer& optimizer, Lambda f)
    : LRScheduler(optimizer), f_(std::move(f)) {
  VESTA_CHECK(f_, "MultiplicativeLR: the function is empty");
  apply_first();
}
double MultiplicativeLR::rate(int64_t epoch, double base_lr, size_t) const {
  for (int64_t e = 1; e <= epoch; ++e) base_lr *= f_(e);
  return base_lr;
}
double MultiplicativeLR::next_rate(int64_t epoch, double current, double, size_t) const {
  return epoch > 0 ? current * f_(epoch) : current;
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
