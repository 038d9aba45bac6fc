#pragma once
// Automatic differentiation: gradient mode, autograd::grad and backward, custom functions, gradcheck.
#include <any>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "vesta/tensor.h"

namespace vesta {

// Gradient mode of this thread. NoGradGuard turns recording off in a scope; AutoGradMode sets it.
struct GradMode {
  static bool is_enabled();
  static void set_enabled(bool enabled);
};
class AutoGradMode {
 public:
  explicit AutoGradMode(bool enabled) : previous_(GradMode::is_enabled()) { GradMode::set_enabled(enabled); }
  ~AutoGradMode() { GradMode::set_enabled(previous_); }
  AutoGradMode(const AutoGradMode&) = delete;

 private:
  bool previous_;
};
struct NoGradGuard : AutoGradMode {
  NoGradGuard() : AutoGradMode(false) {}
};
// Tensors made inside have no version counter and can never take part in autograd: the cheapest mode.
class InferenceMode {
 public:
  explicit InferenceMode(bool enabled = true);
  ~InferenceMode();
  InferenceMode(const InferenceMode&) = delete;
  static bool is_enabled();

 private:
  bool previous_mode_, previous_grad_;
};

namespace autograd {

using variable_list = std::vector<Tensor>;

// Sums of gradients of `outputs` weighted by `grad_outputs` (undefined: ones for a one-element output), for each of
// `inputs`. Does not touch .grad. An input that was not used is an error, or undefined where allow_unused.
variable_list grad(const variable_list& outputs, const variable_list& inputs,
                   const variable_list& grad_outputs = {}, std::optional<bool> retain_graph = std::nullopt,
                   bool create_graph = false, bool allow_unused = false);
// Accumulates gradients into .grad of the leaves (of `inputs` only, where given).
void backward(const variable_list& tensors, const variable_list& grad_tensors = {},
              std::optional<bool> retain_graph = std::nullopt, bool create_graph = false,
              const variable_list& inputs = {});

class FunctionNode;

// A value of any type, which std::any_cast reads. The calls named as libtorch's IValue read the common ones; they throw
// TypeError where the value is of another kind.
class SavedValue : public std::any {
 public:
  SavedValue() = default;
  template <class T, std::enable_if_t<!std::is_base_of_v<std::any, std::decay_t<T>>, int> = 0>
  SavedValue(T&& value) : std::any(std::forward<T>(value)) {}  // NOLINT: implicit
  bool isNone() const { return !has_value(); }
  bool toBool() const;
  int64_t toInt() const;    // of any integer or bool
  double toDouble() const;  // of any number
  std::string toStringRef() const;
  Tensor toTensor() const;
  std::vector<Tensor> toTensorVector() const;
  std::vector<int64_t> toIntVector() const;
};

using IndexRange = std::pair<size_t, size_t>;

// What a custom Function keeps between forward and backward.
class AutogradContext {
 public:
  // Tensors for backward; inputs and outputs alike, checked for in-place writes since.
  void save_for_backward(variable_list tensors);
  variable_list get_saved_variables() const;
  // Anything else, by name.
  std::map<std::string, SavedValue> saved_data;
  // Declares inputs that forward wrote in place (their version goes up), and outputs that carry no gradient.
  void mark_dirty(const variable_list& inputs) { dirty_ = inputs; }
  void mark_non_differentiable(const variable_list& outputs) { non_differentiable_ = outputs; }
  // Whether undefined gradients reach backward as zeros (default) or as undefined tensors.
  void set_materialize_grads(bool value) { materialize_ = value; }
  // In backward: whether this pass asks for the gradient of an input, counted over all tensors.
  bool needs_input_grad(size_t input) const { return needs_.at(input); }
  // Whether any input in one of the ranges [first, last) does.
  bool needs_input_grad(std::initializer_list<IndexRange> ranges) const {
    for (const IndexRange& range : ranges)
      for (size_t i = range.first; i < range.second; ++i)
        if (needs_.at(i)) return true;
    return false;
  }

 private:
  friend class FunctionNode;
  friend variable_list run_function(std::function<variable_list(AutogradContext&)>,
                                    std::function<variable_list(AutogradContext&, variable_list)>,
                                    const variable_list&, const char*);
  FunctionNode* node_ = nullptr;
  variable_list to_save_, dirty_, non_differentiable_;
  std::vector<bool> needs_;
  bool materialize_ = true;
};

variable_list run_function(std::function<variable_list(AutogradContext&)> forward,
                           std::function<variable_list(AutogradContext&, variable_list)> backward,
                           const variable_list& tensor_inputs, const char* name);

namespace detail {
inline void collect(variable_list& out, const Tensor& t) { out.push_back(t); }
inline void collect(variable_list& out, const variable_list& ts) {
  out.insert(out.end(), ts.begin(), ts.end());
}
inline void collect(variable_list& out, TensorList ts) { out.insert(out.end(), ts.begin(), ts.end()); }
template <class T>
void collect(variable_list&, const T&) {}
template <class T>
inline constexpr bool is_tensor_list = std::is_same_v<T, variable_list> || std::is_same_v<T, TensorList>;
inline variable_list as_list(Tensor t) { return {std::move(t)}; }
inline variable_list as_list(variable_list t) { return t; }
}  // namespace detail

// A differentiable function with its own backward:
//   struct Double : autograd::Function<Double> {
//     static Tensor forward(AutogradContext* ctx, Tensor x) { return x * 2; }
//     static variable_list backward(AutogradContext* ctx, variable_list dy) { return {dy[0] * 2}; }
//   };
//   Tensor y = Double::apply(x);
// backward returns one gradient for each argument of forward; those of non-tensors are undefined.
template <class Derived>
struct Function {
  template <class... A>
  static auto apply(A&&... args) {
    using Result = decltype(Derived::forward(static_cast<AutogradContext*>(nullptr), args...));
    variable_list inputs;
    (detail::collect(inputs, args), ...);
    // Positions of tensors among all arguments: gradients of the others are dropped.
    std::vector<bool> is_tensor;
    (
        [&] {
          variable_list one;
          detail::collect(one, args);
          using Arg = std::decay_t<A>;
          if constexpr (detail::is_tensor_list<Arg>)
            is_tensor.insert(is_tensor.end(), one.size(), true);
          else
            is_tensor.push_back(std::is_same_v<Arg, Tensor>);
        }(),
        ...);
    variable_list out =
        run_function([&](AutogradContext& ctx) { return detail::as_list(Derived::forward(&ctx, args...)); },
                     [is_tensor](AutogradContext& ctx, variable_list dy) {
                       variable_list all = Derived::backward(&ctx, std::move(dy)), kept;
                       if (all.size() != is_tensor.size()) return all;
                       for (size_t i = 0; i < all.size(); ++i)
                         if (is_tensor[i]) kept.push_back(all[i]);
                       return kept;
                     },
                     inputs, typeid(Derived).name());
    if constexpr (std::is_same_v<Result, Tensor>)
      return out[0];
    else
      return out;
  }
};

// ---- what is kept for backward ----

// While one lives, each tensor that this thread's operators save for backward goes through `pack`, and what it returned
// through `unpack` when backward needs the tensor: to keep it elsewhere, compressed or not at all. The tensors are
// detached; pack must not write them.
class SavedTensorHooks {
 public:
  using Pack = std::function<std::any(const Tensor&)>;
  using Unpack = std::function<Tensor(const std::any&)>;
  SavedTensorHooks(Pack pack, Unpack unpack);
  ~SavedTensorHooks();
  SavedTensorHooks(const SavedTensorHooks&) = delete;
  struct Packed pack(const Tensor& detached);  // for nodes

 private:
  struct Functions;
  friend struct Packed;
  Functions* functions_;  // counted: nodes keep them
  SavedTensorHooks* previous_;
};

struct CheckpointOptions {
  bool preserve_rng_state = true;  // the recomputation draws the same random numbers
};
// fn(inputs), keeping only the inputs for backward: backward calls fn again for what it needs. fn must do the same each
// time. Second derivatives and autograd::grad work; without grad mode it is a plain call.
variable_list checkpoint(const std::function<variable_list(const variable_list&)>& fn,
                         const variable_list& inputs, CheckpointOptions options = {});
Tensor checkpoint(const std::function<Tensor(const Tensor&)>& fn, const Tensor& input,
                  CheckpointOptions options = {});

// ---- finding the call whose gradient is wrong ----

// On: operators remember where in the program they were called, backward names that place where a gradient holds NaN
// (with check_nan: ValueError) or where it throws (a warning). Slow; for debugging. Of this thread.
struct AnomalyMode {
  static bool is_enabled();
  static bool should_check_nan();
  static void set_enabled(bool enabled, bool check_nan = true);
};
class DetectAnomalyGuard {
 public:
  explicit DetectAnomalyGuard(bool check_nan = true)
      : was_enabled_(AnomalyMode::is_enabled()), checked_nan_(AnomalyMode::should_check_nan()) {
    AnomalyMode::set_enabled(true, check_nan);
  }
  ~DetectAnomalyGuard() { AnomalyMode::set_enabled(was_enabled_, checked_nan_); }
  DetectAnomalyGuard(const DetectAnomalyGuard&) = delete;

 private:
  bool was_enabled_, checked_nan_;
};

// ---- forward mode ----

namespace forward_ad {
// Tangents flow through operators while a level is open. One at a time per thread.
class DualLevel {
 public:
  DualLevel();
  ~DualLevel();
  DualLevel(const DualLevel&) = delete;
};
struct UnpackedDual {
  Tensor primal, tangent;  // tangent: undefined where there is none (it is zero)
};
// A tensor with the primal's values and a tangent of the same shape and type.
Tensor make_dual(const Tensor& primal, const Tensor& tangent);
UnpackedDual unpack_dual(const Tensor& dual);
}  // namespace forward_ad

// fn(inputs) and its derivative in the direction of `tangents`: {outputs, J tangents}. Differentiable in both.
std::pair<variable_list, variable_list> jvp(const std::function<variable_list(const variable_list&)>& fn,
                                            const variable_list& inputs, const variable_list& tangents);

// Compares analytic gradients of fn with central differences in float64; inputs that require grad are perturbed.
// Throws ValueError that shows the worst element where they disagree beyond atol + rtol * |numeric|.
bool gradcheck(const std::function<variable_list(const variable_list&)>& fn, const variable_list& inputs,
               double eps = 1e-6, double atol = 1e-5, double rtol = 1e-3);
// The same for second derivatives, with random cotangents of the first.
bool gradgradcheck(const std::function<variable_list(const variable_list&)>& fn, const variable_list& inputs,
                   double eps = 1e-6, double atol = 1e-4, double rtol = 1e-3);

}  // namespace autograd
}  // namespace vesta
