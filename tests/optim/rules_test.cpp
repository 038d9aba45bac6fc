// Every optimiser beside SGD, Adam and LBFGS against its formula in double, written out here: 20 steps, with and without
// its options; states of 16-bit parameters; saving and loading; bad options.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "vesta/autograd.h"
#include "vesta/ops.h"
#include "vesta/optim.h"

namespace vesta::optim {
namespace {

constexpr uint64_t kSeed = 77;
using Row = std::vector<double>;

Row numbers(const Tensor& t) {
  const Tensor flat = t.detach().to(kFloat64).reshape({-1}).contiguous();
  const double* data = flat.data_ptr<double>();
  return Row(data, data + flat.numel());
}

// The formula's history of one parameter; the rules use what they need.
struct History {
  Row w, a, b, c;
  double step = 0, mu_product = 1, eta = 0, mu = 1;
  int64_t rows = 0, columns = 0;  // of a matrix
};
using Rule = std::function<void(History&, Row)>;

// Gradient for maximising, and with weight decay.
Row adjusted(const History& h, Row g, bool maximize, double weight_decay) {
  for (size_t i = 0; i < g.size(); ++i) g[i] = (maximize ? -g[i] : g[i]) + weight_decay * h.w[i];
  return g;
}
void decay(History& h, double factor) {
  for (double& w : h.w) w *= factor;
}

Rule rule(const RMSpropOptions& o) {
  return [o](History& h, Row g) {
    g = adjusted(h, g, o.maximize(), o.weight_decay());
    for (size_t i = 0; i < g.size(); ++i) {
      h.a[i] = o.alpha() * h.a[i] + (1 - o.alpha()) * g[i] * g[i];
      double v = h.a[i];
      if (o.centered()) {
        h.b[i] = o.alpha() * h.b[i] + (1 - o.alpha()) * g[i];
        v -= h.b[i] * h.b[i];
      }
      double s = g[i] / (std::sqrt(v) + o.eps());
      if (o.momentum() > 0) s = h.c[i] = o.momentum() * h.c[i] + s;
      h.w[i] -= o.lr() * s;
    }
  };
}
Rule rule(const AdagradOptions& o) {
  return [o](History& h, Row g) {
    if (h.step++ == 0) h.a.assign(h.a.size(), o.initial_accumulator_value());
    g = adjusted(h, g, o.maximize(), o.weight_decay());
    for (size_t i = 0; i < g.size(); ++i) {
      h.a[i] += g[i] * g[i];
      h.w[i] -= o.lr() / (1 + (h.step - 1) * o.lr_decay()) * g[i] / (std::sqrt(h.a[i]) + o.eps());
    }
  };
}
Rule rule(const AdadeltaOptions& o) {
  return [o](History& h, Row g) {
    g = adjusted(h, g, o.maximize(), o.weight_decay());
    for (size_t i = 0; i < g.size(); ++i) {
      h.a[i] = o.rho() * h.a[i] + (1 - o.rho()) * g[i] * g[i];
      const double d = std::sqrt(h.b[i] + o.eps()) / std::sqrt(h.a[i] + o.eps()) * g[i];
      h.b[i] = o.rho() * h.b[i] + (1 - o.rho()) * d * d;
      h.w[i] -= o.lr() * d;
    }
  };
}
Rule rule(const AdamaxOptions& o) {
  return [o](History& h, Row g) {
    const auto [b1, b2] = o.betas();
    ++h.step;
    g = adjusted(h, g, o.maximize(), o.weight_decay());
    for (size_t i = 0; i < g.size(); ++i) {
      h.a[i] = b1 * h.a[i] + (1 - b1) * g[i];
      h.b[i] = std::max(b2 * h.b[i], std::abs(g[i]) + o.eps());
      h.w[i] -= o.lr() / (1 - std::pow(b1, h.step)) * h.a[i] / h.b[i];
    }
  };
}
Rule rule(const NAdamOptions& o) {
  return [o](History& h, Row g) {
    const auto [b1, b2] = o.betas();
    ++h.step;
    g = adjusted(h, g, o.maximize(), o.decoupled_weight_decay() ? 0 : o.weight_decay());
    if (o.decoupled_weight_decay()) decay(h, 1 - o.lr() * o.weight_decay());
    const double mu = b1 * (1 - 0.5 * std::pow(0.96, h.step * o.momentum_decay()));
    const double next = b1 * (1 - 0.5 * std::pow(0.96, (h.step + 1) * o.momentum_decay()));
    h.mu_product *= mu;
    for (size_t i = 0; i < g.size(); ++i) {
      h.a[i] = b1 * h.a[i] + (1 - b1) * g[i];
      h.b[i] = b2 * h.b[i] + (1 - b2) * g[i] * g[i];
      const double scale = std::sqrt(h.b[i] / (1 - std::pow(b2, h.step))) + o.eps();
      h.w[i] -=
          o.lr() * ((1 - mu) / (1 - h.mu_product) * g[i] + next / (1 - h.mu_product * next) * h.a[i]) / scale;
    }
  };
}
Rule rule(const RAdamOptions& o) {
  return [o](History& h, Row g) {
    const auto [b1, b2] = o.betas();
    ++h.step;
    g = adjusted(h, g, o.maximize(), o.decoupled_weight_decay() ? 0 : o.weight_decay());
    if (o.decoupled_weight_decay()) decay(h, 1 - o.lr() * o.weight_decay());
    const double longest = 2 / (1 - b2) - 1, c2 = 1 - std::pow(b2, h.step);
    const double rho = longest - 2 * h.step * std::pow(b2, h.step) / c2;
    for (size_t i = 0; i < g.size(); ++i) {
      h.a[i] = b1 * h.a[i] + (1 - b1) * g[i];
      h.b[i] = b2 * h.b[i] + (1 - b2) * g[i] * g[i];
      double s = h.a[i] / (1 - std::pow(b1, h.step));
      if (rho > 5)
        s *= std::sqrt((rho - 4) * (rho - 2) * longest / ((longest - 4) * (longest - 2) * rho)) *
             std::sqrt(c2) / (std::sqrt(h.b[i]) + o.eps());
      h.w[i] -= o.lr() * s;
    }
  };
}
Rule rule(const RpropOptions& o) {
  return [o](History& h, Row g) {
    if (h.step++ == 0) h.b.assign(h.b.size(), o.lr());
    g = adjusted(h, g, o.maximize(), 0);
    for (size_t i = 0; i < g.size(); ++i) {
      const double agreement = g[i] * h.a[i];
      if (agreement > 0) h.b[i] *= std::get<1>(o.etas());
      if (agreement < 0) h.b[i] *= std::get<0>(o.etas());
      h.b[i] = std::min(std::max(h.b[i], std::get<0>(o.step_sizes())), std::get<1>(o.step_sizes()));
      if (agreement < 0) g[i] = 0;
      h.w[i] -= (g[i] > 0 ? 1 : g[i] < 0 ? -1 : 0) * h.b[i];
      h.a[i] = g[i];
    }
  };
}
Rule rule(const ASGDOptions& o) {
  return [o](History& h, Row g) {
    if (h.step++ == 0) h.eta = o.lr();
    g = adjusted(h, g, o.maximize(), o.weight_decay());
    for (size_t i = 0; i < g.size(); ++i) {
      h.w[i] = h.w[i] * (1 - o.lambd() * h.eta) - h.eta * g[i];
      h.a[i] += h.mu * (h.w[i] - h.a[i]);
    }
    h.eta = o.lr() / std::pow(1 + o.lambd() * o.lr() * h.step, o.alpha());
    h.mu = 1 / std::max(1.0, h.step - o.t0());
  };
}
Rule rule(const AdafactorOptions& o) {
  return [o](History& h, Row g) {
    ++h.step;
    g = adjusted(h, g, o.maximize(), 0);
    const double n = double(g.size()), eps1 = *std::get<0>(o.eps()),
                 weight = std::pow(h.step, o.beta2_decay());
    double norm = 0;
    for (const double w : h.w) norm += w * w;
    const double alpha =
        std::max(std::get<1>(o.eps()), std::sqrt(norm / n)) * std::min(o.lr(), 1 / std::sqrt(h.step));
    decay(h, 1 - o.lr() * o.weight_decay());
    Row v(g.size());
    if (h.columns > 0) {
      const size_t rows = size_t(h.rows), columns = size_t(h.columns);
      h.b.resize(rows), h.c.resize(columns);
      Row row(rows), column(columns);
      for (size_t r = 0; r < rows; ++r)
        for (size_t k = 0; k < columns; ++k) {
          row[r] += g[r * columns + k] * g[r * columns + k] / double(columns);
          column[k] += g[r * columns + k] * g[r * columns + k] / double(rows);
        }
      double mean = 0;
      for (size_t r = 0; r < rows; ++r) mean += (h.b[r] += weight * (row[r] - h.b[r])) / double(rows);
      for (size_t k = 0; k < columns; ++k) h.c[k] += weight * (column[k] - h.c[k]);
      for (size_t i = 0; i < v.size(); ++i) v[i] = h.b[i / columns] * h.c[i % columns] / std::max(mean, eps1);
    } else {
      for (size_t i = 0; i < v.size(); ++i) v[i] = h.a[i] += weight * (g[i] * g[i] - h.a[i]);
    }
    double root = 0;
    for (size_t i = 0; i < v.size(); ++i) {
      v[i] = g[i] / std::sqrt(std::max(v[i], eps1 * eps1));
      root += v[i] * v[i] / n;
    }
    for (size_t i = 0; i < v.size(); ++i) h.w[i] -= alpha / std::max(1.0, std::sqrt(root) / o.d()) * v[i];
  };
}

// A matrix, a vector, a number, and nothing.
std::vector<Tensor> random_params(DType dtype) {
  manual_seed(kSeed);
  std::vector<Tensor> params;
  for (const auto& shape : std::vector<std::vector<int64_t>>{{6, 4}, {7}, {}, {0, 3}})
    params.push_back(randn(shape).to(dtype).detach().requires_grad_());
  return params;
}

template <class Opt, class Options>
void check_rule(const Options& o) {
  for (const auto& [dtype, tolerance] : {std::pair{kFloat64, 1e-11}, {kFloat32, 3e-5}}) {
    SCOPED_TRACE(dtype_name(dtype));
    auto params = random_params(dtype);
    Opt opt(params, o);
    std::vector<History> histories;
    for (const Tensor& p : params) {
      const Row w = numbers(p);
      histories.push_back({w, Row(w.size()), Row(w.size()), Row(w.size())});
      if (p.dim() == 2) histories.back().rows = p.size(0), histories.back().columns = p.size(1);
    }
    const Rule formula = rule(o);
    for (int step = 0; step < 20; ++step) {
      for (size_t i = 0; i < params.size(); ++i) {
        // The vector misses a step: its count must fall behind.
        if (i == 1 && step == 3) {
          params[i].mutable_grad() = Tensor();
          continue;
        }
        params[i].mutable_grad() = randn(params[i].sizes()).to(dtype) + 0.3;
        if (params[i].numel() > 0) formula(histories[i], numbers(params[i].grad()));
      }
      opt.step();
    }
    for (size_t i = 0; i < params.size(); ++i) {
      const Row got = numbers(params[i]);
      for (size_t k = 0; k < got.size(); ++k)
        ASSERT_NEAR(got[k], histories[i].w[k], tolerance * (1 + std::abs(histories[i].w[k])))
            << "seed " << kSeed << ", parameter " << i << ", element " << k;
    }
  }
}

TEST(Rules, RMSpropEqualsItsFormula) {
  check_rule<RMSprop>(RMSpropOptions(0.01));
  check_rule<RMSprop>(
      RMSpropOptions(0.02).alpha(0.9).eps(1e-3).weight_decay(0.1).momentum(0.8).maximize(true));
  check_rule<RMSprop>(RMSpropOptions(0.02).alpha(0.9).eps(1e-2).centered(true));
}
TEST(Rules, AdagradEqualsItsFormula) {
  check_rule<Adagrad>(AdagradOptions(0.1).initial_accumulator_value(1e-3));
  check_rule<Adagrad>(
      AdagradOptions(0.1).lr_decay(0.05).weight_decay(0.1).initial_accumulator_value(0.3).eps(1e-4).maximize(
          true));
}
TEST(Rules, AdadeltaEqualsItsFormula) {
  check_rule<Adadelta>(AdadeltaOptions());
  check_rule<Adadelta>(AdadeltaOptions(0.7).rho(0.8).eps(1e-4).weight_decay(0.1).maximize(true));
}
TEST(Rules, AdamaxEqualsItsFormula) {
  check_rule<Adamax>(AdamaxOptions());
  check_rule<Adamax>(AdamaxOptions(0.02).betas({0.8, 0.95}).eps(1e-4).weight_decay(0.1).maximize(true));
}
TEST(Rules, NAdamEqualsItsFormula) {
  check_rule<NAdam>(NAdamOptions().weight_decay(0.2));
  check_rule<NAdam>(NAdamOptions(0.02)
                        .betas({0.8, 0.95})
                        .eps(1e-4)
                        .weight_decay(0.1)
                        .momentum_decay(0.01)
                        .decoupled_weight_decay(true)
                        .maximize(true));
}
TEST(Rules, RAdamEqualsItsFormula) {
  check_rule<RAdam>(RAdamOptions().weight_decay(0.2));
  check_rule<RAdam>(RAdamOptions(0.02)
                        .betas({0.8, 0.9})
                        .eps(1e-4)
                        .weight_decay(0.1)
                        .decoupled_weight_decay(true)
                        .maximize(true));
}
TEST(Rules, RpropEqualsItsFormula) {
  check_rule<Rprop>(RpropOptions());
  check_rule<Rprop>(RpropOptions(0.05).etas({0.4, 1.3}).step_sizes({1e-3, 0.2}).maximize(true));
}
TEST(Rules, ASGDEqualsItsFormulaAndAverages) {
  check_rule<ASGD>(ASGDOptions());
  check_rule<ASGD>(ASGDOptions(0.05).lambd(0.01).alpha(0.6).t0(5).weight_decay(0.1).maximize(true));
  Tensor w = zeros({1}).requires_grad_();
  ASGD opt({w}, ASGDOptions(1).lambd(0).t0(2));
  Row seen;
  for (int step = 1; step <= 6; ++step) {
    w.mutable_grad() = full({1}, -1.0);
    opt.step();
    seen.push_back(w.item<double>());
  }
  // From step 3 on the average moves by 1 / max(1, step - 1 - t0): the mean of w over steps 4, 5, 6 here.
  EXPECT_NEAR(opt.param_groups()[0].state()[3][0].item<double>(), (seen[3] + seen[4] + seen[5]) / 3, 1e-6);
}
TEST(Rules, AdafactorEqualsItsFormula) {
  check_rule<Adafactor>(AdafactorOptions().eps(AdafactorOptions::Eps(1e-7, 1e-3)));
  check_rule<Adafactor>(AdafactorOptions(0.05)
                            .beta2_decay(-0.5)
                            .eps(AdafactorOptions::Eps(1e-3, 1e-2))
                            .d(1.5)
                            .weight_decay(0.1)
                            .maximize(true));
}

TEST(Muon, MovesAlongTheOrthogonalFactor) {
  manual_seed(kSeed);
  for (const auto& shape : std::vector<std::vector<int64_t>>{{6, 4}, {3, 8}}) {
    Tensor w = zeros(shape).requires_grad_();
    const Tensor g = randn(shape);
    w.mutable_grad() = g;
    Muon opt({w}, MuonOptions(1.0).weight_decay(0).momentum(0).nesterov(false));
    opt.step();
    // Singular values of the step are between 0.5 and 1.5 (the iteration does not converge further), and it shares the
    // gradient's singular vectors: U S' V^T, so the step times g^T is symmetric and positive.
    const Tensor step = -w.detach() / std::sqrt(std::max(1.0, double(shape[0]) / double(shape[1])));
    const Tensor product = step.matmul(g.t());
    EXPECT_LT((product - product.t()).abs().max().item<double>(), 0.1) << "seed " << kSeed;
    EXPECT_GT(product.diagonal().min().item<double>(), 0) << "seed " << kSeed;
    const double rank = double(std::min(shape[0], shape[1])), squares = step.square().sum().item<double>();
    EXPECT_GT(squares, 0.25 * rank);
    EXPECT_LT(squares, 2.25 * rank);
  }
}

TEST(Muon, RefusesParametersThatAreNoMatrices) {
  Tensor w = zeros({3}).requires_grad_();
  w.mutable_grad() = ones({3});
  Muon opt({w}, MuonOptions());
  EXPECT_THROW(opt.step(), ValueError);
  EXPECT_THROW(Muon({w}, MuonOptions().adjust_lr_fn("other")), ValueError);
}

template <class Opt, class Options>
void check_narrow(const Options& o) {
  manual_seed(kSeed);
  Tensor w = full({3, 5}, 0.5).to(kBFloat16).detach().requires_grad_();
  Opt opt({w}, o);
  for (int step = 0; step < 3; ++step) {
    w.mutable_grad() = (rand({3, 5}) + 0.5).to(kBFloat16);
    opt.step();
  }
  EXPECT_EQ(w.dtype(), kBFloat16);
  // Positive gradients; Muon turns the step, and only the sum must fall.
  EXPECT_LT(w.sum().item<double>(), 7.5);
  for (const auto& slot : opt.param_groups()[0].state())
    for (const Tensor& t : slot)
      if (t.defined()) {
        EXPECT_NE(t.dtype(), kBFloat16);
      }
}

TEST(Rules, KeepTheStateOf16BitParametersInFloat32) {
  check_narrow<RMSprop>(RMSpropOptions(0.1).momentum(0.5).centered(true));
  check_narrow<Adagrad>(AdagradOptions(0.1));
  check_narrow<Adadelta>(AdadeltaOptions(100));
  check_narrow<Adamax>(AdamaxOptions(0.1));
  check_narrow<NAdam>(NAdamOptions(0.1));
  check_narrow<RAdam>(RAdamOptions(0.1));
  check_narrow<Rprop>(RpropOptions(0.1));
  check_narrow<ASGD>(ASGDOptions(0.1));
  check_narrow<Adafactor>(AdafactorOptions(0.1));
  check_narrow<Muon>(MuonOptions(0.1));
}

// Three steps, then three more after a round trip through the state dict into a new optimiser with other options.
template <class Opt, class Options>
void check_state(const Options& o, const Options& other) {
  SCOPED_TRACE(typeid(Opt).name());
  manual_seed(kSeed);
  std::vector<Tensor> grads;
  for (int i = 0; i < 6; ++i) grads.push_back(randn({4, 3}));
  const Tensor start = randn({4, 3});
  Tensor straight = start.clone().requires_grad_(), first = start.clone().requires_grad_();
  Opt a({straight}, o), b({first}, o);
  const auto step = [&](Optimizer& opt, Tensor& w, int i) {
    w.mutable_grad() = grads[size_t(i)];
    opt.step();
  };
  for (int i = 0; i < 6; ++i) step(a, straight, i);
  for (int i = 0; i < 3; ++i) step(b, first, i);
  Tensor resumed = first.detach().clone().requires_grad_();
  Opt c({resumed}, other);
  StateDict saved("saved");
  for (const auto& item : b.state_dict()) saved.insert(item.key(), item->clone());
  c.load_state_dict(saved);
  for (int i = 3; i < 6; ++i) step(c, resumed, i);
  EXPECT_TRUE(equal(straight, resumed));
  // A dict with a missing entry changes nothing.
  StateDict broken("saved");
  for (size_t i = 1; i < saved.size(); ++i) broken.insert(saved.items()[i].key(), saved.items()[i].value());
  EXPECT_THROW(c.load_state_dict(broken), ValueError);
}

TEST(Rules, ContinueFromASavedState) {
  check_state<RMSprop>(RMSpropOptions(0.01).momentum(0.5).centered(true), RMSpropOptions(0.5));
  check_state<Adagrad>(AdagradOptions(0.1).lr_decay(0.1), AdagradOptions(0.5));
  check_state<Adadelta>(AdadeltaOptions(0.5), AdadeltaOptions(2));
  check_state<Adamax>(AdamaxOptions(0.01).weight_decay(0.1), AdamaxOptions());
  check_state<NAdam>(NAdamOptions(0.01), NAdamOptions(0.3).decoupled_weight_decay(true));
  check_state<RAdam>(RAdamOptions(0.01), RAdamOptions(0.3));
  check_state<Rprop>(RpropOptions(0.01), RpropOptions(0.3));
  check_state<ASGD>(ASGDOptions(0.01).t0(2), ASGDOptions(0.3));
  check_state<Adafactor>(AdafactorOptions(0.01), AdafactorOptions(0.3).eps(AdafactorOptions::Eps(0.5, 0.5)));
  check_state<Muon>(MuonOptions(0.01).adjust_lr_fn("match_rms_adamw").ns_steps(3), MuonOptions(0.3));
}

TEST(Rules, RefuseOptionsOutOfRange) {
  Tensor w = ones({2}).requires_grad_();
  EXPECT_THROW(RMSprop({w}, RMSpropOptions(-1)), ValueError);
  EXPECT_THROW(Adagrad({w}, AdagradOptions(1).lr_decay(-1)), ValueError);
  EXPECT_THROW(Adadelta({w}, AdadeltaOptions(1).rho(1.5)), ValueError);
  EXPECT_THROW(Adamax({w}, AdamaxOptions(1).betas({1.0, 0.5})), ValueError);
  EXPECT_THROW(NAdam({w}, NAdamOptions(1).momentum_decay(-1)), ValueError);
  EXPECT_THROW(RAdam({w}, RAdamOptions(1).eps(-1)), ValueError);
  EXPECT_THROW(Rprop({w}, RpropOptions(1).etas({0.5, 0.9})), ValueError);
  EXPECT_THROW(ASGD({w}, ASGDOptions(1).weight_decay(-1)), ValueError);
  EXPECT_THROW(Adafactor({w}, AdafactorOptions(1).d(0.5)), ValueError);
  EXPECT_THROW(Muon({w}, MuonOptions(1).ns_steps(100)), ValueError);
  RMSprop opt({w}, RMSpropOptions());
  EXPECT_THROW(opt.add_param_group({{ones({2}).requires_grad_()}, AdagradOptions()}), ValueError);
}

TEST(Rules, ParametersCanBeAddedLater) {
  Tensor a = zeros({1}).requires_grad_(), b = zeros({1}).requires_grad_();
  Rprop opt({a}, RpropOptions(0.25));
  a.mutable_grad() = ones({1});
  opt.step();
  opt.add_parameters({b});
  EXPECT_EQ(opt.size(), 2u);
  EXPECT_TRUE(opt.parameters()[1].is_same(b));
  b.mutable_grad() = ones({1});
  opt.step();
  EXPECT_NEAR(a.item<double>(), -0.25 - 0.3, 1e-6);
  EXPECT_EQ(b.item<double>(), -0.25);
  EXPECT_THROW(opt.add_parameters({a}), ValueError);
}

TEST(Rules, GroupsHaveOptionsOfTheirOwn) {
  Tensor a = zeros({1}).requires_grad_(), b = zeros({1}).requires_grad_();
  Rprop opt(std::vector<OptimizerParamGroup>{{{a}}, {{b}, RpropOptions(0.5)}}, RpropOptions(0.25));
  a.mutable_grad() = ones({1});
  b.mutable_grad() = ones({1});
  opt.step();
  EXPECT_EQ(a.item<double>(), -0.25);
  EXPECT_EQ(b.item<double>(), -0.5);
}

}  // namespace
}  // namespace vesta::optim
