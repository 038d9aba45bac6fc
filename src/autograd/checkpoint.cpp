// Hooks on saved tensors, and recomputation built on them.
#include "autograd/saved_hooks.h"
#include "core/mt19937.h"
#include "core/thread_state.h"
#include "vesta/autocast.h"
#include "vesta/autograd.h"
#include "vesta/ops.h"

namespace vesta::autograd {

SavedTensorHooks::SavedTensorHooks(Pack pack, Unpack unpack)
    : functions_(new Functions{std::move(pack), std::move(unpack)}),
      previous_(static_cast<SavedTensorHooks*>(thread_state.saved_hooks)) {
  thread_state.saved_hooks = this;
}
SavedTensorHooks::~SavedTensorHooks() {
  thread_state.saved_hooks = previous_;
  release_ref(functions_);
}

Packed SavedTensorHooks::pack(const Tensor& detached) {
  // A hook's own ops save as if there were no hooks.
  struct Off {
    void* hooks = std::exchange(thread_state.saved_hooks, nullptr);
    ~Off() { thread_state.saved_hooks = hooks; }
  } off;
  NoGradGuard no_grad;
  return {functions_->pack(detached), Ref<Functions>::share(functions_)};
}

Tensor Packed::unpack() const {
  NoGradGuard no_grad;
  Tensor t = hooks->unpack(value);
  VESTA_CHECK(t.defined(), "SavedTensorHooks: unpack returned an undefined tensor");
  return t;
}

namespace {

// What a checkpointed call needs to run again, and what it saved when it did.
struct Frame {
  std::atomic<uint32_t> refs{1};
  static void destroy(Frame* f) { delete f; }
  std::function<variable_list(const variable_list&)> fn;
  variable_list inputs;
  CheckpointOptions options;
  GeneratorSnapshot random;
  bool autocast = false;
  DType autocast_dtype = DType::BFloat16;
  size_t saved = 0;  // by the forward
  std::vector<Tensor> recomputed;

  void recompute() {
    struct Restore {
      GeneratorSnapshot now = take_snapshot(default_generator());
      bool on;
      ~Restore() {
        if (on) restore_snapshot(default_generator(), now);
      }
    } restore{.on = options.preserve_rng_state};
    if (options.preserve_rng_state) restore_snapshot(default_generator(), random);
    AutoGradMode record(true);
    AutocastMode cast(autocast_dtype, autocast);
    variable_list again;
    for (auto& t : inputs)
      again.push_back(t.defined() && t.requires_grad() ? t.detach().requires_grad_() : t);
    SavedTensorHooks keep(
        [this](const Tensor& t) {
          recomputed.push_back(t);
          return std::any();
        },
        [](const std::any&) { return Tensor(); });
    fn(again);
    VESTA_CHECK(recomputed.size() == saved, "checkpoint: the recomputation saved ", recomputed.size(),
                " tensors for backward, the forward call ", saved,
                "; the function must do the same each time it is called");
  }
};

}  // namespace

variable_list checkpoint(const std::function<variable_list(const variable_list&)>& fn,
                         const variable_list& inputs, CheckpointOptions options) {
  if (!GradMode::is_enabled()) return fn(inputs);
  auto frame = Ref<Frame>::adopt(new Frame);
  frame->fn = fn;
  frame->inputs = inputs;
  frame->options = options;
  frame->random = take_snapshot(default_generator());
  frame->autocast = autocast::is_enabled();
  if (frame->autocast) frame->autocast_dtype = autocast::get_dtype();
  SavedTensorHooks hooks([frame](const Tensor&) { return std::any(frame->saved++); },
                         [frame](const std::any& index) {
                           if (frame->recomputed.empty()) frame->recompute();
                           return frame->recomputed.at(std::any_cast<size_t>(index));
                         });
  return fn(inputs);
}

Tensor checkpoint(const std::function<Tensor(const Tensor&)>& fn, const Tensor& input,
                  CheckpointOptions options) {
  return checkpoint([fn](const variable_list& x) { return variable_list{fn(x[0])}; }, variable_list{input},
                    options)[0];
}

}  // namespace vesta::autograd
