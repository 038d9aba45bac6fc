// L-BFGS. All parameters are one vector; the history keeps the last differences of gradients and positions.
#include <cmath>

#include "vesta/autograd.h"
#include "vesta/ops.h"
#include "vesta/optim_lbfgs.h"

namespace vesta::optim {
namespace {

constexpr double kArmijo = 1e-4, kCurvature = 0.9;  // c1 and c2 of the strong Wolfe conditions

double dot_of(const Tensor& a, const Tensor& b) { return dot(a, b).item<double>(); }
double largest(const Tensor& t) { return t.numel() ? t.abs().max().item<double>() : 0; }

// The minimum of the cubic through two points with values f and slopes g, kept inside [low, high]; the middle where the
// cubic has none.
double cubic_minimum(double x1, double f1, double g1, double x2, double f2, double g2, double low,
                     double high) {
  const double d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2);
  const double square = d1 * d1 - g1 * g2;
  if (!(square >= 0)) return (low + high) / 2;
  const double d2 = std::sqrt(square);
  const double at = x1 <= x2 ? x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
                             : x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2));
  return std::min(std::max(at, low), high);
}

Tensor number(double value) { return full({}, value, TensorOptions(kFloat64)); }

}  // namespace

void LBFGSOptions::visit(OptionVisitor& v) {
  v.visit("lr", lr_);
  v.visit("max_iter", max_iter());
  int64_t evaluations = max_eval().value_or(-1);  // below 0: absent
  v.visit("max_eval", evaluations);
  max_eval(evaluations < 0 ? std::nullopt : std::optional<int64_t>(evaluations));
  v.visit("tolerance_grad", tolerance_grad());
  v.visit("tolerance_change", tolerance_change());
  v.visit("history_size", history_size());
  bool search = line_search_fn().has_value();
  v.visit("strong_wolfe", search);
  if (search != line_search_fn().has_value())
    line_search_fn(search ? std::optional<std::string>("strong_wolfe") : std::nullopt);
  v.visit("maximize", maximize());
}
VESTA_OPTIM_CLONE(LBFGSOptions)
void LBFGSOptions::check() const {
  VESTA_CHECK(lr() >= 0, "LBFGS: expected lr >= 0, got ", lr());
  VESTA_CHECK(max_iter() >= 0 && history_size() > 0,
              "LBFGS: expected max_iter >= 0 and history_size > 0, got ", max_iter(), " and ",
              history_size());
  VESTA_CHECK(!line_search_fn() || *line_search_fn() == "strong_wolfe",
              "LBFGS: expected line_search_fn strong_wolfe or none, got ", *line_search_fn());
}

LBFGS::LBFGS(std::vector<OptimizerParamGroup> groups, const LBFGSOptions& defaults)
    : Optimizer(defaults.clone(), {}) {
  VESTA_CHECK(groups.size() == 1, "LBFGS: expected one parameter group, got ", groups.size());
  add_param_group(std::move(groups[0]));
}
bool LBFGS::accepts(const OptimizerOptions& options) const {
  VESTA_CHECK(param_groups().empty(), "LBFGS: expected one parameter group");
  return dynamic_cast<const LBFGSOptions*>(&options);
}
bool LBFGS::uses_slot(size_t, const OptimizerOptions&) const { return false; }
Tensor LBFGS::make_slot(size_t, const Tensor&, const OptimizerOptions&) const { return {}; }
void LBFGS::update(const OptimizerOptions&, Update&) {}

const LBFGSOptions& LBFGS::own() const {
  return static_cast<const LBFGSOptions&>(param_groups()[0].options());
}

int64_t LBFGS::numel() const {
  int64_t total = 0;
  for (const Tensor& param : param_groups()[0].params()) total += param.numel();
  return total;
}

Tensor LBFGS::flat_grad() const {
  std::vector<Tensor> parts;
  for (const Tensor& param : param_groups()[0].params())
    parts.push_back(param.grad().defined() ? param.grad().detach().reshape({-1})
                                           : zeros({param.numel()}, param.options()));
  const Tensor flat = cat(parts);
  return own().maximize() ? -flat : flat;
}

void LBFGS::move(double t, const Tensor& direction) {
  int64_t start = 0;
  for (Tensor param : param_groups()[0].params()) {
    param.add_(direction.narrow(0, start, param.numel()).view_as(param), t);
    start += param.numel();
  }
}

LBFGS::Evaluation LBFGS::evaluate(const LossClosure& closure) {
  Tensor loss;
  {
    const AutoGradMode recording(true);
    loss = closure();
  }
  const double value = loss.item<double>();
  return {own().maximize() ? -value : value, flat_grad()};
}

LBFGS::SearchResult LBFGS::strong_wolfe(const LossClosure& closure, double t, const Tensor& direction,
                                        const Evaluation& start, double slope, int64_t max_evaluations) {
  struct Point {
    double t, slope;
    Evaluation at;
  };
  std::vector<Tensor> origin;
  for (const Tensor& param : param_groups()[0].params()) origin.push_back(param.detach().clone());
  int64_t evaluations = 0;
  const auto try_step = [&](double at) {
    move(at, direction);
    Evaluation e = evaluate(closure);
    for (size_t i = 0; i < origin.size(); ++i) {
      Tensor param = param_groups()[0].params()[i];
      param.copy_(origin[i]);
    }
    ++evaluations;
    const double s = dot_of(e.grad, direction);
    return Point{at, s, std::move(e)};
  };
  const auto too_high = [&](const Point& p) { return p.at.loss > start.loss + kArmijo * p.t * slope; };
  const auto flat_enough = [&](const Point& p) { return std::abs(p.slope) <= -kCurvature * slope; };

  // Bracket: steps grow until a minimum lies between the last two.
  const Point origin_point{0, slope, start};
  Point previous = origin_point, now = try_step(t);
  std::vector<Point> bracket;
  bool done = false;
  int64_t iteration = 0;
  while (iteration < max_evaluations) {
    if (too_high(now) || (iteration > 1 && now.at.loss >= previous.at.loss)) {
      bracket = {previous, now};
      break;
    }
    if (flat_enough(now)) {
      bracket = {now};
      done = true;
      break;
    }
    if (now.slope >= 0) {
      bracket = {previous, now};
      break;
    }
    const double low = now.t + 0.01 * (now.t - previous.t), high = now.t * 10;
    const double next =
        cubic_minimum(previous.t, previous.at.loss, previous.slope, now.t, now.at.loss, now.slope, low, high);
    previous = std::move(now);
    now = try_step(next);
    ++iteration;
  }
  if (bracket.empty()) bracket = {origin_point, now};

  // Zoom: the bracket shrinks around a point that satisfies both conditions.
  const double reach = largest(direction);
  bool slow = false;
  size_t low = bracket.front().at.loss <= bracket.back().at.loss ? 0 : 1;
  if (bracket.size() == 1) low = 0;
  while (!done && iteration < max_evaluations) {
    if (std::abs(bracket[1].t - bracket[0].t) * reach < own().tolerance_change()) break;
    const auto [left, right] = std::minmax(bracket[0].t, bracket[1].t);
    double next = cubic_minimum(bracket[0].t, bracket[0].at.loss, bracket[0].slope, bracket[1].t,
                                bracket[1].at.loss, bracket[1].slope, left, right);
    // A trial close to an end, twice or on it, is moved a tenth of the bracket inwards.
    const double margin = 0.1 * (right - left);
    if (std::min(right - next, next - left) < margin) {
      if (slow || next >= right || next <= left) {
        next = std::abs(next - right) < std::abs(next - left) ? right - margin : left + margin;
        slow = false;
      } else {
        slow = true;
      }
    } else {
      slow = false;
    }
    Point trial = try_step(next);
    ++iteration;
    const size_t high = 1 - low;
    if (too_high(trial) || trial.at.loss >= bracket[low].at.loss) {
      bracket[high] = std::move(trial);
      low = bracket[0].at.loss <= bracket[1].at.loss ? 0 : 1;
    } else {
      if (flat_enough(trial))
        done = true;
      else if (trial.slope * (bracket[high].t - bracket[low].t) >= 0)
        bracket[high] = bracket[low];
      bracket[low] = std::move(trial);
    }
  }
  return {bracket[low].at, bracket[low].t, evaluations};
}

// -H grad, from the history (Nocedal & Wright, algorithm 7.4).
Tensor LBFGS::two_loop_direction(const Tensor& grad) const {
  const size_t count = old_dirs_.size();
  std::vector<double> alpha(count);
  Tensor r = -grad;
  for (size_t i = count; i-- > 0;) {
    alpha[i] = dot_of(old_steps_[i], r) * ro_[i];
    r.sub_(old_dirs_[i], alpha[i]);
  }
  r.mul_(h_diag_);
  for (size_t i = 0; i < count; ++i) r.add_(old_steps_[i], alpha[i] - dot_of(old_dirs_[i], r) * ro_[i]);
  return r;
}

Tensor LBFGS::step(const LossClosure& closure) {
  VESTA_CHECK(closure, "LBFGS::step: expected a closure that computes the loss anew");
  const LBFGSOptions& o = own();
  const double lr = o.lr();
  const int64_t max_eval = o.max_eval().value_or(o.max_iter() * 5 / 4);
  Tensor first_loss;
  const LossClosure first_closure = [&] { return first_loss = closure(); };
  const NoGradGuard no_grad;
  if (param_groups()[0].params().empty()) {
    const AutoGradMode recording(true);
    return closure();
  }
  Evaluation now = evaluate(first_closure);
  int64_t evaluations = 1, iterations = 0;
  ++func_evals_;
  if (largest(now.grad) <= o.tolerance_grad()) return first_loss;
  while (iterations < o.max_iter()) {
    ++iterations;
    if (++n_iter_ == 1) {
      d_ = -now.grad;
      old_dirs_.clear();
      old_steps_.clear();
      ro_.clear();
      h_diag_ = 1;
    } else {
      const Tensor y = now.grad - prev_grad_, s = d_ * t_;
      const double ys = dot_of(y, s);
      if (ys > 1e-10) {
        if (int64_t(old_dirs_.size()) >= o.history_size()) {
          old_dirs_.erase(old_dirs_.begin());
          old_steps_.erase(old_steps_.begin());
          ro_.erase(ro_.begin());
        }
        old_dirs_.push_back(y);
        old_steps_.push_back(s);
        ro_.push_back(1 / ys);
        h_diag_ = ys / dot_of(y, y);
      }
      d_ = two_loop_direction(now.grad);
    }
    prev_grad_ = now.grad.clone();
    prev_loss_ = now.loss;
    t_ = n_iter_ == 1 ? std::min(1.0, 1 / now.grad.abs().sum().item<double>()) * lr : lr;
    const double slope = dot_of(now.grad, d_);
    if (slope > -o.tolerance_change()) break;

    int64_t used = 0;
    if (o.line_search_fn()) {
      SearchResult found = strong_wolfe(closure, t_, d_, now, slope, max_eval - evaluations);
      now = std::move(found.at);
      t_ = found.t;
      used = found.evaluations;
      move(t_, d_);
    } else {
      move(t_, d_);
      // The closure is not needed again after the last iteration.
      if (iterations != o.max_iter()) {
        now = evaluate(closure);
        used = 1;
      }
    }
    evaluations += used;
    func_evals_ += used;
    if (iterations == o.max_iter() || evaluations >= max_eval) break;
    if (largest(now.grad) <= o.tolerance_grad()) break;
    if (largest(d_) * std::abs(t_) <= o.tolerance_change()) break;
    if (std::abs(now.loss - prev_loss_) < o.tolerance_change()) break;
  }
  return first_loss;
}

StateDict LBFGS::state_dict() const {
  StateDict dict = Optimizer::state_dict();
  if (n_iter_ == 0) return dict;
  dict.insert("state.n_iter", number(double(n_iter_)));
  dict.insert("state.func_evals", number(double(func_evals_)));
  dict.insert("state.t", number(t_));
  dict.insert("state.H_diag", number(h_diag_));
  dict.insert("state.prev_loss", number(prev_loss_));
  dict.insert("state.d", d_);
  dict.insert("state.prev_flat_grad", prev_grad_);
  const TensorOptions options = d_.options();
  const auto rows = [&](const std::vector<Tensor>& list) {
    return list.empty() ? zeros({0, numel()}, options) : stack(list);
  };
  dict.insert("state.old_dirs", rows(old_dirs_));
  dict.insert("state.old_stps", rows(old_steps_));
  Tensor ro = zeros({int64_t(ro_.size())}, TensorOptions(kFloat64));
  for (size_t i = 0; i < ro_.size(); ++i) ro.data_ptr<double>()[i] = ro_[i];
  dict.insert("state.ro", ro);
  return dict;
}

void LBFGS::load_state_dict(const StateDict& dict) {
  StateDict options("optimizer state"), state("optimizer state");
  for (const auto& item : dict)
    (item.key().rfind("state.", 0) == 0 ? state : options).insert(item.key(), *item);
  static constexpr const char* kNames[] = {"n_iter", "func_evals",     "t",        "H_diag",   "prev_loss",
                                           "d",      "prev_flat_grad", "old_dirs", "old_stps", "ro"};
  const auto get = [&](const char* name) -> const Tensor& { return state[std::string("state.") + name]; };
  const int64_t n = numel();
  if (!state.is_empty()) {
    VESTA_CHECK(state.size() == std::size(kNames), "LBFGS::load_state_dict: expected ", std::size(kNames),
                " state tensors, got ", state.size());
    for (const char* name : kNames)
      VESTA_CHECK(state.contains(std::string("state.") + name), "LBFGS::load_state_dict: 'state.", name,
                  "' is missing");
    for (size_t i = 0; i < 5; ++i)
      VESTA_CHECK(get(kNames[i]).numel() == 1, "LBFGS::load_state_dict: expected one element in 'state.",
                  kNames[i], "', got ", get(kNames[i]).numel());
    for (const char* name : {"d", "prev_flat_grad"})
      VESTA_CHECK(get(name).dim() == 1 && get(name).size(0) == n, "LBFGS::load_state_dict: expected ", n,
                  " elements in 'state.", name, "', got ", get(name).numel());
    const Tensor& ro = get("ro");
    VESTA_CHECK(ro.dim() == 1, "LBFGS::load_state_dict: expected one dim in 'state.ro', got ", ro.dim());
    for (const char* name : {"old_dirs", "old_stps"})
      VESTA_CHECK(get(name).dim() == 2 && get(name).size(0) == ro.size(0) && get(name).size(1) == n,
                  "LBFGS::load_state_dict: expected 'state.", name, "' of shape [", ro.size(0), ", ", n, "]");
  }
  Optimizer::load_state_dict(options);
  const NoGradGuard no_grad;
  n_iter_ = func_evals_ = 0;
  old_dirs_.clear();
  old_steps_.clear();
  ro_.clear();
  if (state.is_empty()) return;
  n_iter_ = get("n_iter").item<int64_t>();
  func_evals_ = get("func_evals").item<int64_t>();
  t_ = get("t").item<double>();
  h_diag_ = get("H_diag").item<double>();
  prev_loss_ = get("prev_loss").item<double>();
  const auto params = param_groups()[0].params();
  const DType dtype = params.empty() ? kFloat32 : params[0].dtype();
  d_ = get("d").detach().to(dtype).clone();
  prev_grad_ = get("prev_flat_grad").detach().to(dtype).clone();
  const Tensor ro = get("ro").to(kFloat64).contiguous();
  for (int64_t i = 0; i < ro.numel(); ++i) {
    ro_.push_back(ro.data_ptr<double>()[i]);
    old_dirs_.push_back(get("old_dirs").select(0, i).detach().to(dtype).clone());
    old_steps_.push_back(get("old_stps").select(0, i).detach().to(dtype).clone());
  }
}

}  // namespace vesta::optim
