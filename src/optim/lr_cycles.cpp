// CyclicLR, OneCycleLR, and what combines schedules or waits for a metric.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "vesta/autograd.h"
#include "vesta/ops.h"
#include "vesta/optim_schedulers.h"

namespace vesta::optim {
namespace {

// Sets "momentum" or "beta1", whichever the options have.
class MomentumSetter : public OptionVisitor {
 public:
  explicit MomentumSetter(double value) : value_(value) {}
  void visit(const char*, HeldNumber&) override {}
  void visit(const char* name, double& value) override {
    if (std::string_view(name) == "momentum" || std::string_view(name) == "beta1") {
      value = value_;
      found = true;
    }
  }
  void visit(const char*, bool&) override {}
  void visit(const char*, int64_t&) override {}
  bool found = false;

 private:
  double value_;
};

void set_momentum(const char* scheduler, Optimizer& optimizer, double value) {
  for (auto& group : optimizer.param_groups()) {
    MomentumSetter setter(value);
    group.options().visit(setter);
    VESTA_CHECK(setter.found, scheduler, ": the optimiser has no momentum; use cycle_momentum(false)");
  }
}

std::string numbered(size_t i) { return std::to_string(i) + "."; }

StateDict with_members(StateDict dict, const std::vector<LRScheduler*>& schedulers) {
  for (size_t i = 0; i < schedulers.size(); ++i)
    for (const auto& item : schedulers[i]->state_dict()) dict.insert(numbered(i) + item.key(), *item);
  return dict;
}

// Splits a dict that with_members made.
std::pair<StateDict, std::vector<StateDict>> without_members(const StateDict& dict, size_t count) {
  StateDict own("scheduler state");
  std::vector<StateDict> members(count, StateDict("scheduler state"));
  for (const auto& item : dict) {
    bool placed = false;
    for (size_t i = 0; i < count && !placed; ++i)
      if (item.key().rfind(numbered(i), 0) == 0) {
        members[i].insert(item.key().substr(numbered(i).size()), *item);
        placed = true;
      }
    if (!placed) own.insert(item.key(), *item);
  }
  return {own, members};
}

}  // namespace

CyclicLR::CyclicLR(Optimizer& optimizer, const CyclicLROptions& options)
    : LRScheduler(optimizer), options_(options) {
  const auto& o = options_;
  VESTA_CHECK(o.step_size_up() > 0 && o.step_size_down().value_or(1) > 0,
              "CyclicLR: expected step sizes above 0, got ", o.step_size_up(), " and ",
              o.step_size_down().value_or(1));
  VESTA_CHECK(o.mode() == "triangular" || o.mode() == "triangular2" || o.mode() == "exp_range",
              "CyclicLR: expected the mode triangular, triangular2 or exp_range, got ", o.mode());
  if (o.cycle_momentum()) set_momentum("CyclicLR", optimizer, o.max_momentum());
  for (size_t g = 0; g < base_lrs_.size(); ++g) {
    base_lrs_[g].set(o.base_lr());
    optimizer.param_groups()[g].options().set_lr(o.base_lr());
  }
  apply_first();
}
// Between 0 and 1, times what the mode does with it.
double CyclicLR::height(int64_t epoch) const {
  const auto& o = options_;
  const double up = double(o.step_size_up()),
               total = up + double(o.step_size_down().value_or(o.step_size_up()));
  const double cycle = std::floor(1 + double(epoch) / total), x = 1 + double(epoch) / total - cycle,
               ratio = up / total;
  const double triangle = x <= ratio ? x / ratio : (x - 1) / (ratio - 1);
  if (o.mode() == "triangular2") return triangle / std::pow(2.0, cycle - 1);
  return o.mode() == "exp_range" ? triangle * std::pow(o.gamma(), double(epoch)) : triangle;
}
double CyclicLR::rate(int64_t epoch, double base_lr, size_t) const {
  return base_lr + (options_.max_lr() - base_lr) * height(epoch);
}
void CyclicLR::applied(int64_t epoch) {
  if (!options_.cycle_momentum()) return;
  const double high = options_.max_momentum(), low = options_.base_momentum();
  set_momentum("CyclicLR", optimizer_, high - (high - low) * height(epoch));
}

OneCycleLR::OneCycleLR(Optimizer& optimizer, const OneCycleLROptions& options)
    : LRScheduler(optimizer), options_(options) {
  const auto& o = options_;
  VESTA_CHECK(o.total_steps() > 0, "OneCycleLR: expected total_steps > 0, got ", o.total_steps());
  VESTA_CHECK(o.pct_start() >= 0 && o.pct_start() <= 1,
              "OneCycleLR: expected pct_start between 0 and 1, got ", o.pct_start());
  VESTA_CHECK(o.anneal_strategy() == "cos" || o.anneal_strategy() == "linear",
              "OneCycleLR: expected the anneal_strategy cos or linear, got ", o.anneal_strategy());
  if (o.cycle_momentum()) set_momentum("OneCycleLR", optimizer, o.max_momentum());
  const double first = o.max_lr() / o.div_factor();
  for (size_t g = 0; g < base_lrs_.size(); ++g) {
    base_lrs_[g].set(first);
    optimizer.param_groups()[g].options().initial_lr = first;
    optimizer.param_groups()[g].options().set_lr(first);
  }
  apply_first();
}
double OneCycleLR::between(int64_t epoch, double low, double peak, double last) const {
  const auto& o = options_;
  VESTA_CHECK(epoch <= o.total_steps(), "OneCycleLR: stepped ", epoch, " times; total_steps is ",
              o.total_steps());
  const double total = double(o.total_steps()), step = double(epoch);
  struct Phase {
    double end, from, to;
  };
  const Phase two[] = {{o.pct_start() * total - 1, low, peak}, {total - 1, peak, last}};
  const Phase three[] = {{o.pct_start() * total - 1, low, peak},
                         {2 * o.pct_start() * total - 2, peak, low},
                         {total - 1, low, last}};
  const Phase* phases = o.three_phase() ? three : two;
  const size_t count = o.three_phase() ? 3 : 2;
  double start = 0;
  for (size_t i = 0; i < count; ++i) {
    if (step <= phases[i].end || i + 1 == count) {
      const double share = (step - start) / (phases[i].end - start);
      if (o.anneal_strategy() == "linear") return (phases[i].to - phases[i].from) * share + phases[i].from;
      return phases[i].to + (phases[i].from - phases[i].to) / 2 * (1 + std::cos(std::numbers::pi * share));
    }
    start = phases[i].end;
  }
  return last;
}
double OneCycleLR::rate(int64_t epoch, double, size_t) const {
  const double first = options_.max_lr() / options_.div_factor();
  return between(epoch, first, options_.max_lr(), first / options_.final_div_factor());
}
void OneCycleLR::applied(int64_t epoch) {
  if (!options_.cycle_momentum()) return;
  const double high = options_.max_momentum();
  set_momentum("OneCycleLR", optimizer_, between(epoch, high, options_.base_momentum(), high));
}

SequentialLR::SequentialLR(Optimizer& optimizer, std::vector<LRScheduler*> schedulers,
                           std::vector<int64_t> milestones)
    : LRScheduler(optimizer), schedulers_(std::move(schedulers)), milestones_(std::move(milestones)) {
  VESTA_CHECK(!schedulers_.empty() && milestones_.size() + 1 == schedulers_.size(),
              "SequentialLR: expected one schedule more than milestones, got ", schedulers_.size(), " and ",
              milestones_.size());
  VESTA_CHECK(std::is_sorted(milestones_.begin(), milestones_.end()),
              "SequentialLR: expected rising milestones");
  for (const LRScheduler* scheduler : schedulers_) VESTA_CHECK(scheduler, "SequentialLR: a schedule is null");
  schedulers_[0]->restart(0);
}
void SequentialLR::step() {
  check_not_captured();
  {
    const NoGradGuard no_grad;
    epoch_.add_(1);
  }
  const int64_t epoch = last_epoch();
  const auto above = std::upper_bound(milestones_.begin(), milestones_.end(), epoch);
  const size_t i = size_t(above - milestones_.begin());
  if (i > 0 && milestones_[i - 1] == epoch)
    schedulers_[i]->restart(0);
  else
    schedulers_[i]->step();
}
void SequentialLR::restart(int64_t epoch) {
  VESTA_CHECK(epoch == 0, "SequentialLR::restart: expected epoch 0, got ", epoch);
  const NoGradGuard no_grad;
  epoch_.fill_(0);
  schedulers_[0]->restart(0);
}
double SequentialLR::rate(int64_t, double base_lr, size_t) const { return base_lr; }
StateDict SequentialLR::state_dict() const { return with_members(LRScheduler::state_dict(), schedulers_); }
void SequentialLR::load_state_dict(const StateDict& dict) {
  const auto [own, members] = without_members(dict, schedulers_.size());
  const Tensor* epoch = own.find("last_epoch");
  VESTA_CHECK(epoch && epoch->numel() == 1, "SequentialLR::load_state_dict: 'last_epoch' is missing");
  // The schedule whose turn it is comes last: its rate stays.
  const int64_t at = epoch->item<int64_t>();
  const size_t active =
      size_t(std::upper_bound(milestones_.begin(), milestones_.end(), at) - milestones_.begin());
  for (size_t i = 0; i < schedulers_.size(); ++i)
    if (i != active) schedulers_[i]->load_state_dict(members[i]);
  schedulers_[active]->load_state_dict(members[active]);
  const NoGradGuard no_grad;
  epoch_.fill_(at);
}

ChainedScheduler::ChainedScheduler(std::vector<LRScheduler*> schedulers)
    : schedulers_(std::move(schedulers)) {
  VESTA_CHECK(!schedulers_.empty(), "ChainedScheduler: expected at least one schedule");
  for (const LRScheduler* scheduler : schedulers_)
    VESTA_CHECK(scheduler, "ChainedScheduler: a schedule is null");
}
void ChainedScheduler::step() {
  for (LRScheduler* scheduler : schedulers_) scheduler->step();
}
StateDict ChainedScheduler::state_dict() const {
  return with_members(StateDict("scheduler state"), schedulers_);
}
void ChainedScheduler::load_state_dict(const StateDict& dict) {
  const auto [own, members] = without_members(dict, schedulers_.size());
  VESTA_CHECK(own.is_empty(), "ChainedScheduler::load_state_dict: unexpected '", own.items()[0].key(), "'");
  // Each alone would give its own rate; what they gave together is in the optimiser's state.
  const auto rates = get_last_lr();
  for (size_t i = 0; i < schedulers_.size(); ++i) schedulers_[i]->load_state_dict(members[i]);
  schedulers_.back()->keep_rates(rates);
}

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, const ReduceLROnPlateauOptions& options)
    : optimizer_(optimizer),
      options_(options),
      best_(options.mode() == ReduceLROnPlateauOptions::min ? std::numeric_limits<double>::infinity()
                                                            : -std::numeric_limits<double>::infinity()) {
  VESTA_CHECK(options.factor() < 1, "ReduceLROnPlateau: expected a factor below 1, got ", options.factor());
  const size_t given = options.min_lr().size(), groups = optimizer.param_groups().size();
  VESTA_CHECK(given <= 1 || given == groups, "ReduceLROnPlateau: expected one min_lr for each of ", groups,
              " parameter groups, got ", given);
}
bool ReduceLROnPlateau::is_better(double metric) const {
  const double best = best_.get(), threshold = options_.threshold();
  const bool relative = options_.threshold_mode() == ReduceLROnPlateauOptions::rel;
  if (options_.mode() == ReduceLROnPlateauOptions::min)
    return metric < (relative ? best * (1 - threshold) : best - threshold);
  return metric > (relative ? best * (1 + threshold) : best + threshold);
}
void ReduceLROnPlateau::step(double metric) {
  const NoGradGuard no_grad;
  epoch_.set(epoch_.get() + 1);
  if (is_better(metric)) {
    best_.set(metric);
    bad_epochs_.set(0);
  } else {
    bad_epochs_.set(bad_epochs_.get() + 1);
  }
  if (cooldown_.get() > 0) {
    cooldown_.set(cooldown_.get() - 1);
    bad_epochs_.set(0);
  }
  if (bad_epochs_.get() <= double(options_.patience())) return;
  for (size_t g = 0; g < optimizer_.param_groups().size(); ++g) {
    OptimizerOptions& group = optimizer_.param_groups()[g].options();
    const auto& least = options_.min_lr();
    const double floor = least.empty() ? 0 : least.size() == 1 ? least[0] : g < least.size() ? least[g] : 0;
    const double now = group.get_lr(), next = std::max(now * options_.factor(), floor);
    if (now - next > options_.eps()) group.set_lr(next);
  }
  cooldown_.set(double(options_.cooldown()));
  bad_epochs_.set(0);
}
std::vector<double> ReduceLROnPlateau::get_last_lr() const {
  std::vector<double> out;
  for (const auto& group : optimizer_.param_groups()) out.push_back(group.options().get_lr());
  return out;
}
StateDict ReduceLROnPlateau::state_dict() const {
  StateDict dict("scheduler state");
  dict.insert("best", best_.tensor());
  dict.insert("num_bad_epochs", bad_epochs_.tensor());
  dict.insert("cooldown_counter", cooldown_.tensor());
  dict.insert("last_epoch", epoch_.tensor());
  return dict;
}
void ReduceLROnPlateau::load_state_dict(const StateDict& dict) {
  const StateDict own = state_dict();
  for (const auto& item : own) {
    const Tensor* value = dict.find(item.key());
    VESTA_CHECK(value && value->numel() == 1, "ReduceLROnPlateau::load_state_dict: expected one element in '",
                item.key(), "'");
  }
  VESTA_CHECK(dict.size() == own.size(), "ReduceLROnPlateau::load_state_dict: expected ", own.size(),
              " entries, got ", dict.size());
  const NoGradGuard no_grad;
  for (const auto& item : own) {
    Tensor mine = *item;
    mine.fill_(dict[item.key()].item());
  }
}

}  // namespace vesta::optim
