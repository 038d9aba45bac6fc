#pragma once
// L-BFGS with a strong Wolfe line search (Nocedal & Wright 2006, algorithms 7.4, 3.5 and 3.6); options and values are
// PyTorch's. It reads losses and gradients to decide, so its step cannot be captured.
//   opt.step([&] { opt.zero_grad(); Tensor loss = f(); loss.backward(); return loss; });
#include <optional>

#include "vesta/optim_base.h"

namespace vesta::optim {

class LBFGSOptions : public OptimizerOptions {
 public:
  LBFGSOptions(double lr = 1) : OptimizerOptions(lr) {}  // NOLINT: implicit
  VESTA_OPTIM_LR(LBFGSOptions);
  VESTA_ARG(int64_t, max_iter) = 20;
  // Evaluations of the closure in a step; absent: max_iter * 5 / 4.
  VESTA_ARG(std::optional<int64_t>, max_eval) = std::nullopt;
  VESTA_ARG(double, tolerance_grad) = 1e-7;
  VESTA_ARG(double, tolerance_change) = 1e-9;
  VESTA_ARG(int64_t, history_size) = 100;
  // "strong_wolfe", or absent: steps of lr.
  VESTA_ARG(std::optional<std::string>, line_search_fn) = std::nullopt;
  VESTA_ARG(bool, maximize) = false;
};

// One parameter group only (ValueError). State, of all parameters joined: n_iter, func_evals, d, t, old_dirs and
// old_stps [history, n], ro [history], H_diag, prev_flat_grad, prev_loss.
class LBFGS : public Optimizer {
 public:
  explicit LBFGS(std::vector<OptimizerParamGroup> groups, const LBFGSOptions& defaults = {});
  explicit LBFGS(std::vector<Tensor> params, const LBFGSOptions& defaults = {})
      : LBFGS(one_group(std::move(params)), defaults) {}

  // The loss of the first evaluation. ValueError without a closure.
  Tensor step(const LossClosure& closure = nullptr) override;
  // The group's options, and "state.NAME" of what there is.
  StateDict state_dict() const override;
  void load_state_dict(const StateDict& dict) override;

 protected:
  bool accepts(const OptimizerOptions& options) const override;
  bool uses_slot(size_t slot, const OptimizerOptions& options) const override;
  Tensor make_slot(size_t slot, const Tensor& param, const OptimizerOptions& options) const override;
  void update(const OptimizerOptions& options, Update& u) override;

 private:
  struct Evaluation {
    double loss;
    Tensor grad;
  };
  struct SearchResult {
    Evaluation at;
    double t;
    int64_t evaluations;
  };
  const LBFGSOptions& own() const;
  int64_t numel() const;
  Tensor flat_grad() const;
  void move(double t, const Tensor& direction);
  Evaluation evaluate(const LossClosure& closure);
  SearchResult strong_wolfe(const LossClosure& closure, double t, const Tensor& direction,
                            const Evaluation& start, double slope, int64_t max_evaluations);
  Tensor two_loop_direction(const Tensor& grad) const;

  // Numbers, not tensors: this optimiser cannot be captured.
  int64_t n_iter_ = 0, func_evals_ = 0;
  double t_ = 0, h_diag_ = 1, prev_loss_ = 0;
  Tensor d_, prev_grad_;
  std::vector<Tensor> old_dirs_, old_steps_;
  std::vector<double> ro_;
};

}  // namespace vesta::optim
