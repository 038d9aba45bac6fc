// The backward pass: discovery of the reachable nodes, then execution in reverse order of recording.
#include "autograd/engine.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>

#include "autograd/inplace.h"
#include "core/call.h"
#include "core/profile.h"
#include "core/storage.h"
#include "vesta/autograd.h"
#include "vesta/ops.h"
#include "vesta/warning.h"

namespace vesta::autograd {
namespace {

std::atomic<uint64_t> next_run{1};

// .grad of a leaf may be written by backward passes of several threads.
std::mutex& grad_mutex(const TensorImpl* leaf) {
  static auto* mutexes = new std::mutex[64];
  return mutexes[reinterpret_cast<uintptr_t>(leaf) >> 6 & 63];
}

// Nobody else can see this tensor's elements.
bool sole_owner(const Tensor& t) {
  TensorImpl* i = t.impl();
  return i->refs.load(std::memory_order_acquire) == 1 && i->storage &&
         i->storage->refs.load(std::memory_order_acquire) == 1 && !(i->bits & TensorImpl::kView) &&
         (i->bits & TensorImpl::kDense);
}

class Pass {
 public:
  Pass(const BackwardOptions& options) : options_(options), id_(next_run.fetch_add(1)) {}
  ~Pass() {
    for (Node* n : visited_) {
      n->clear_cotangents();
      n->unwanted = 0;
      n->run.store(0, std::memory_order_release);
    }
    for (auto& e : starts_) release_edge(e);
  }

  std::vector<Tensor> run(const std::vector<Tensor>& roots, const std::vector<Tensor>& grad_roots) {
    find_captures();
    starts_.reserve(roots.size());
    for (auto& t : roots) {
      starts_.push_back(gradient_edge(t.impl()));
      if (Node* n = starts_.back().node) visit(n);
    }
    if (!captures_.empty()) mark_needed();
    AutoGradMode mode(options_.create_graph);
    for (auto& e : starts_) {
      if (e.leaf)
        expect_leaf(e.leaf);
      else
        ++e.node->deps;
    }
    for (size_t k = 0; k < starts_.size(); ++k) deliver(starts_[k], Tensor(grad_roots[k]));
    while (!ready_.empty()) {
      if (ready_.size() > 1) std::pop_heap(ready_.begin(), ready_.end(), later);
      Node* n = ready_.back();
      ready_.pop_back();
      execute(n);
    }
    std::vector<Tensor> results;
    for (auto& c : captures_) results.push_back(c.gradient);
    return results;
  }

 private:
  struct Leaf {
    TensorImpl* impl;
    Tensor sum;
    int expected = 0;
    bool captured = false;  // one of the inputs
  };
  struct Capture {
    Edge edge;  // borrowed from the input tensor
    Tensor gradient;
  };
  static bool later(const Node* a, const Node* b) { return a->sequence < b->sequence; }

  void find_captures() {
    for (auto& t : options_.inputs) {
      Edge e = gradient_edge(t.impl());
      VESTA_CHECK(e.valid(), "autograd::grad: one of the inputs does not require grad");
      release_edge(e);
      captures_.push_back({e, Tensor()});
      if (e.leaf) leaf_of(e.leaf).captured = true;
    }
  }

  // Claims a node for this pass. starts_ keeps every visited node alive: a node's edges last as long as the node.
  bool claim(Node* n) {
    uint64_t before = n->run.load(std::memory_order_acquire);
    if (before == id_) return false;
    uint64_t none = 0;
    VESTA_CHECK(before == 0 && n->run.compare_exchange_strong(none, id_), n->name(),
                ": another thread is running backward through the same graph");
    n->deps = 0;
    n->needed = captures_.empty();
    visited_.push_back(n);
    return true;
  }

  void visit(Node* root) {
    if (!claim(root)) return;
    stack_.push_back(root);
    while (!stack_.empty()) {
      Node* n = stack_.back();
      stack_.pop_back();
      for (auto& e : n->edges()) {
        if (e.leaf) {
          if (captures_.empty()) expect_leaf(e.leaf);
        } else if (e.node) {
          if (claim(e.node)) stack_.push_back(e.node);
          ++e.node->deps;
        }
      }
    }
  }

  // With given inputs only nodes on a path to one of them run.
  void mark_needed() {
    std::sort(visited_.begin(), visited_.end(), [](auto* a, auto* b) { return a->sequence < b->sequence; });
    // An edge always leads to an older node, so one sweep from old to new settles it. Regenerated view nodes are
    // younger than what they feed on their first use; repeat until nothing changes.
    for (bool changed = true; changed;) {
      changed = false;
      for (Node* n : visited_) {
        if (n->needed) continue;
        for (auto& c : captures_) n->needed |= c.edge.node == n;
        for (auto& e : n->edges()) {
          if (e.node) n->needed |= e.node->needed;
          if (e.leaf) n->needed |= captured(e.leaf);
        }
        changed |= n->needed;
      }
    }
    for (Node* n : visited_) {
      if (!n->needed) continue;
      const std::span<Edge> edges = n->edges();
      for (size_t k = 0; k < edges.size(); ++k) {
        const Edge& e = edges[k];
        if (e.leaf && captured(e.leaf))
          expect_leaf(e.leaf);
        else if (k < 64 && !(e.node && e.node->needed))
          n->unwanted |= uint64_t(1) << k;
      }
    }
  }
  bool captured(TensorImpl* leaf) { return leaf_of(leaf).captured; }

  Leaf& leaf_of(TensorImpl* impl) {
    // Open addressing over a power of two, keyed by address.
    if (leaves_.size() * 2 >= slots_.size()) grow();
    size_t mask = slots_.size() - 1, at = reinterpret_cast<uintptr_t>(impl) >> 6 & mask;
    while (slots_[at] >= 0 && leaves_[size_t(slots_[at])].impl != impl) at = (at + 1) & mask;
    if (slots_[at] < 0) {
      slots_[at] = int(leaves_.size());
      leaves_.push_back({impl, Tensor(), 0, false});
    }
    return leaves_[size_t(slots_[at])];
  }
  void grow() {
    slots_.assign(std::max<size_t>(64, slots_.size() * 2), -1);
    for (size_t k = 0; k < leaves_.size(); ++k) {
      size_t mask = slots_.size() - 1, at = reinterpret_cast<uintptr_t>(leaves_[k].impl) >> 6 & mask;
      while (slots_[at] >= 0) at = (at + 1) & mask;
      slots_[at] = int(k);
    }
  }
  void expect_leaf(TensorImpl* leaf) { ++leaf_of(leaf).expected; }

  void add_to(Tensor& slot, const Tensor& g) {
    if (!g.defined()) return;
    if (!slot.defined())
      slot = g;
    else if (!options_.create_graph && sole_owner(slot))
      slot.add_(g);
    else
      slot = slot + g;
  }
  void add_to(Tensor& slot, Tensor&& g) {
    if (!slot.defined())
      slot = std::move(g);
    else
      add_to(slot, g);
  }

  void deliver(const Edge& e, Tensor&& g) {
    if (e.leaf) {
      if (!captures_.empty() && !captured(e.leaf)) return;
      Leaf& leaf = leaf_of(e.leaf);
      add_to(leaf.sum, std::move(g));
      if (--leaf.expected == 0) commit(leaf);
    } else if (e.node) {
      add_to(e.node->cotangents()[e.output_nr], std::move(g));
      if (--e.node->deps == 0) {
        ready_.push_back(e.node);
        if (ready_.size() > 1) std::push_heap(ready_.begin(), ready_.end(), later);
      }
    }
  }

  static void run_hooks(TensorExt* ext, Tensor& g) {
    if (!g.defined()) return;
    for (auto& h : std::vector<TensorHook>(ext->hooks)) {
      Tensor replaced = h.fn(g);
      if (replaced.defined()) g = replaced;
    }
  }

  void commit(Leaf& leaf) {
    TensorExt* ext = leaf.impl->ext;
    if (ext && !ext->hooks.empty()) run_hooks(ext, leaf.sum);
    for (auto& c : captures_)
      if (c.edge.leaf == leaf.impl) c.gradient = leaf.sum;
    if (!options_.accumulate || !leaf.sum.defined()) return;
    {
      std::lock_guard lock(grad_mutex(leaf.impl));
      TensorExt& x = ensure_ext(leaf.impl);
      Tensor& g = x.grad;
      if (!g.defined()) {
        bool same_layout = leaf.sum.strides() == Tensor::borrow(leaf.impl).strides();
        if (options_.create_graph || !leaf.sum.impl()->storage || (sole_owner(leaf.sum) && same_layout))
          g = std::move(leaf.sum);
        else
          g = fresh_like(leaf.impl, leaf.sum);
      } else if (options_.create_graph) {
        g = g + leaf.sum;
      } else {
        NoGradGuard no_grad;
        g.add_(leaf.sum);
      }
    }
    leaf.sum.reset();
    if (ext && !ext->post_accumulate_hooks.empty()) {
      Tensor t = Tensor::borrow(leaf.impl);
      for (auto& h : ext->post_accumulate_hooks) h(t);
    }
  }

  // A gradient laid out as its leaf, not shared with anything.
  static Tensor fresh_like(TensorImpl* leaf, const Tensor& g) {
    Tensor out = empty_like(Tensor::borrow(leaf), TensorOptions(g.dtype()));
    NoGradGuard no_grad;
    out.copy_(g);
    return out;
  }

  void execute(Node* n) {
    Tensor* dy = n->cotangents();
    for (auto& o : n->output_exts()) {
      run_hooks(o.ext, dy[o.output_nr]);
      if (o.ext->retains_grad && options_.accumulate && dy[o.output_nr].defined()) {
        Tensor& g = o.ext->grad;
        g = g.defined() ? g + dy[o.output_nr] : dy[o.output_nr];
      }
    }
    for (auto& c : captures_)
      if (c.edge.node == n) c.gradient = dy[c.edge.output_nr];
    size_t count = n->edges().size();
    if (gradients_.size() < count) gradients_.resize(count);
    bool any = false;
    for (uint32_t j = 0; j < n->num_outputs; ++j) any |= dy[j].defined();
    if (any && n->needed) {
      if (special_) [[unlikely]]
        apply_watched(n, {dy, n->num_outputs}, {gradients_.data(), count});
      else
        n->apply({dy, n->num_outputs}, {gradients_.data(), count});
      if (!options_.retain_graph) n->release_saved();
    }
    n->clear_cotangents();
    const Edge* edges = n->edges().data();
    for (size_t k = 0; k < count; ++k) {
      if (edges[k].valid()) deliver(edges[k], std::move(gradients_[k]));
      gradients_[k].reset();
    }
  }

  // For the profiler and for anomaly mode.
  void apply_watched(Node* n, std::span<Tensor> dy, std::span<Tensor> gradients) {
    struct Event {
      profiler::Mark mark;
      ~Event() { profiler::close(mark); }
    } event;
    if (profiler::recording()) event.mark = profiler::open(n->name());
    try {
      n->apply(dy, gradients);
    } catch (...) {
      if (thread_state.anomaly)
        warn("Error detected in " + n->name() +
             ". Traceback of forward call that caused the error: " + place_of(n));
      throw;
    }
    if (!thread_state.anomaly || !AnomalyMode::should_check_nan()) return;
    NoGradGuard no_grad;
    for (size_t k = 0; k < gradients.size(); ++k) {
      const Tensor& g = gradients[k];
      if (g.defined() && differentiable(g.dtype()) && !(g.impl()->bits & TensorImpl::kTrace) &&
          isnan(g).any().item<bool>())
        throw ValueError(n->name() + ": gradient " + std::to_string(k) +
                         " of this backward step holds NaN; its forward call was made in " + place_of(n));
    }
  }
  static std::string place_of(Node* n) {
    std::string place = n->place();
    return place.empty() ? "a place that was not recorded (turn anomaly mode on before the forward call)"
                         : place;
  }

  const BackwardOptions& options_;
  const bool special_ = thread_state.anomaly || profiler::recording();
  uint64_t id_;
  std::vector<Node*> visited_, stack_, ready_;
  std::vector<Edge> starts_;  // owned
  std::vector<Capture> captures_;
  std::vector<Leaf> leaves_;
  std::vector<int> slots_;
  std::vector<Tensor> gradients_;
};

// A custom function's backward may run a pass of its own, and so on: each so many go to a thread with a fresh stack.
constexpr int kPassesPerThread = 60;
constinit thread_local int passes_running = 0;

template <class F>
std::vector<Tensor> on_fresh_stack(F pass) {
  std::vector<Tensor> gradients;
  std::exception_ptr error;
  ThreadState state = thread_state;
  std::thread thread([&] {
    thread_state = state;
    try {
      gradients = pass();
    } catch (...) {
      error = std::current_exception();
    }
    state.sequence = thread_state.sequence;
  });
  thread.join();
  thread_state.sequence = state.sequence;
  if (error) std::rethrow_exception(error);
  return gradients;
}

template <class F>
std::vector<Tensor> nested(F pass) {
  struct Count {
    Count() { ++passes_running; }
    ~Count() { --passes_running; }
  } count;
  return passes_running % kPassesPerThread ? pass() : on_fresh_stack(pass);
}

// backward() with inputs that are results of other calls: their gradients are kept as those of leaves are.
void accumulate_into_results(const BackwardOptions& options, const std::vector<Tensor>& gradients) {
  AutoGradMode mode(options.create_graph);
  for (size_t k = 0; k < options.inputs.size(); ++k) {
    TensorImpl* t = options.inputs[k].impl();
    const Tensor& g = gradients[k];
    if (!t->grad_fn || !g.defined()) continue;
    Tensor& kept = ensure_ext(t).grad;
    kept = kept.defined() ? kept + g : options.create_graph ? g : g.clone();
  }
}

}  // namespace

std::vector<Tensor> run_backward(const std::vector<Tensor>& roots, const std::vector<Tensor>& grad_roots,
                                 const BackwardOptions& options) {
  VESTA_CHECK(!roots.empty(), "backward: expected at least one tensor");
  VESTA_CHECK(grad_roots.empty() || grad_roots.size() == roots.size(), "backward: expected ", roots.size(),
              " gradients, got ", grad_roots.size());
  std::vector<Tensor> seeds;
  for (size_t k = 0; k < roots.size(); ++k) {
    const Tensor& t = roots[k];
    VESTA_CHECK(t.defined() && requires_grad(t.impl()), "backward: element ", k,
                " of the tensors does not require grad and has no grad_fn");
    Tensor seed = k < grad_roots.size() ? grad_roots[k] : Tensor();
    if (seed.defined()) {
      VESTA_CHECK(seed.sizes() == t.sizes(), "backward: expected a gradient of the same shape as tensor ", k);
      if (seed.dtype() != t.dtype()) seed = seed.to(t.dtype());
    } else {
      VESTA_CHECK(t.numel() == 1,
                  "backward: grad can be implicitly created only for scalar outputs; this tensor has ",
                  t.numel(), " elements");
      VESTA_CHECK(!t.is_complex(), "backward: grad can be implicitly created only for real scalar outputs");
      NoGradGuard no_grad;
      seed = ones_like(t);
    }
    seeds.push_back(seed);
  }
  if (options.create_graph && options.accumulate)
    warn_once(
        "Using backward() with create_graph=True will create a reference cycle between the parameter and its "
        "gradient, "
        "which keeps both alive; use autograd::grad, or reset the gradients after use");
  // Each step runs in the types of its forward call.
  struct NoAutocast {
    uint32_t mode = thread_state.mode;
    NoAutocast() { thread_state.mode &= ~TensorImpl::kAutocast; }
    ~NoAutocast() { thread_state.mode |= mode & TensorImpl::kAutocast; }
  } no_autocast;
  std::vector<Tensor> gradients = nested([&] { return Pass(options).run(roots, seeds); });
  if (options.accumulate) accumulate_into_results(options, gradients);
  return gradients;
}

bool AnomalyMode::is_enabled() { return thread_state.anomaly; }
bool AnomalyMode::should_check_nan() { return thread_state.check_nan; }
void AnomalyMode::set_enabled(bool enabled, bool check_nan) {
  thread_state.anomaly = enabled;
  thread_state.check_nan = check_nan;
}

}  // namespace vesta::autograd
