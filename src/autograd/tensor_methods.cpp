// Tensor's methods about gradients.
#include "autograd/engine.h"
#include "autograd/inplace.h"
#include "core/call.h"
#include "core/storage.h"
#include "vesta/autograd.h"
#include "vesta/ops.h"
#include "vesta/warning.h"

namespace vesta {

bool GradMode::is_enabled() { return thread_state.grad_mode; }
void GradMode::set_enabled(bool enabled) {
  thread_state.grad_mode = enabled;
  if (enabled)
    thread_state.enabled |= TensorImpl::kAutograd;
  else
    thread_state.enabled &= ~TensorImpl::kAutograd;
}

InferenceMode::InferenceMode(bool enabled)
    : previous_mode_(thread_state.inference_mode), previous_grad_(GradMode::is_enabled()) {
  thread_state.inference_mode = enabled;
  GradMode::set_enabled(!enabled && previous_grad_);
}
InferenceMode::~InferenceMode() {
  thread_state.inference_mode = previous_mode_;
  GradMode::set_enabled(previous_grad_);
}
bool InferenceMode::is_enabled() { return thread_state.inference_mode; }

bool Tensor::requires_grad() const { return autograd::requires_grad(get()); }

const Tensor& Tensor::set_requires_grad(bool r) const {
  TensorImpl* impl = get();
  VESTA_CHECK(impl->grad_fn == nullptr || r,
              "requires_grad_: only leaf tensors can stop requiring grad; detach this one");
  VESTA_CHECK(!r || vesta::is_floating_point(impl->dtype) || vesta::is_complex(impl->dtype),
              "requires_grad_: only floating and complex tensors can require gradients, this one is ",
              dtype_name(impl->dtype));
  VESTA_CHECK(
      !r || !(impl->bits & TensorImpl::kInference) || thread_state.inference_mode,
      "requires_grad_: inference tensors cannot require grad; clone this one outside of InferenceMode");
  if (r)
    impl->bits |= TensorImpl::kAutograd;
  else
    impl->bits &= ~TensorImpl::kAutograd;
  return *this;
}

const Tensor& Tensor::grad() const {
  static const Tensor* undefined = new Tensor;
  TensorImpl* impl = get();
  if (impl->grad_fn && !(impl->ext && (impl->ext->retains_grad || impl->ext->grad.defined()))) [[unlikely]]
    warn_once(
        "grad: this tensor is not a leaf, so backward() does not write its gradient; call retain_grad() on "
        "it, or "
        "detach it if the leaf was meant");
  return impl->ext ? impl->ext->grad : *undefined;
}
Tensor& Tensor::mutable_grad() const { return ensure_ext(get()).grad; }

void Tensor::backward(const Tensor& gradient, std::optional<bool> retain_graph, bool create_graph) const {
  autograd::backward({*this},
                     gradient.defined() ? autograd::variable_list{gradient} : autograd::variable_list{},
                     retain_graph, create_graph);
}

namespace {

// Ties the ext of a result to its node, so that the engine finds its hooks and its retained gradient.
void attach_ext(TensorImpl* impl) {
  TensorExt& x = ensure_ext(impl);
  if (!impl->grad_fn) return;
  auto* node = static_cast<autograd::Node*>(impl->grad_fn);
  for (auto& o : node->output_exts())
    if (o.ext == &x) return;
  x.refs.fetch_add(1, std::memory_order_relaxed);
  node->add_output_ext({impl->output_nr, &x});
}

}  // namespace

void Tensor::retain_grad() const {
  TensorImpl* impl = get();
  VESTA_CHECK(requires_grad(), "retain_grad: this tensor does not require grad");
  if (!impl->grad_fn) return;
  attach_ext(impl);
  impl->ext->retains_grad = true;
}
bool Tensor::retains_grad() const { return get()->grad_fn && impl_->ext && impl_->ext->retains_grad; }

unsigned Tensor::register_hook(std::function<Tensor(const Tensor&)> hook) const {
  VESTA_CHECK(requires_grad(), "register_hook: this tensor does not require grad");
  attach_ext(get());
  TensorExt& x = ensure_ext(get());
  x.hooks.push_back({x.next_hook_id, std::move(hook)});
  return x.next_hook_id++;
}
void Tensor::register_post_accumulate_grad_hook(std::function<void(const Tensor&)> hook) const {
  VESTA_CHECK(is_leaf() && requires_grad(),
              "register_post_accumulate_grad_hook: expected a leaf that requires grad");
  ensure_ext(get()).post_accumulate_hooks.push_back(std::move(hook));
}
void Tensor::remove_hook(unsigned id) const {
  TensorExt& x = ensure_ext(get());
  for (size_t k = 0; k < x.hooks.size(); ++k)
    if (x.hooks[k].id == id) {
      x.hooks.erase(x.hooks.begin() + std::ptrdiff_t(k));
      return;
    }
  throw ValueError("remove_hook: Invalid index, there is no hook " + std::to_string(id));
}

GradNode* Tensor::grad_fn() const {
  if ((get()->bits & TensorImpl::kView) && impl_->view.creation == uint8_t(ViewCreation::Default))
    autograd::refresh_view(impl_);
  return impl_->grad_fn;
}
std::string Tensor::grad_fn_name() const {
  GradNode* n = grad_fn();
  return n ? static_cast<autograd::Node*>(n)->name() : "";
}
uint32_t Tensor::_version() const {
  VESTA_CHECK(!is_inference(), "_version: inference tensors do not track versions");
  return get()->storage ? impl_->storage->version : 0;
}
bool Tensor::_is_view() const { return get()->bits & TensorImpl::kView; }
Tensor Tensor::_base() const {
  VESTA_CHECK(_is_view(), "_base: this tensor is not a view");
  return borrow(impl_->view.base);
}

Tensor Tensor::data() const {
  // Its own version counter: another Storage header over the same memory, which it keeps alive.
  TensorImpl* impl = get();
  Tensor keep = shallow_alias(*this);
  if (!impl->storage) return keep;
  Storage* s = new_external_storage(impl->storage->data, impl->storage->bytes,
                                    [keep](void*) mutable { keep.reset(); });
  Tensor t = shallow_alias(*this);
  release_storage(t.impl()->storage);
  t.impl()->storage = s;
  return t;
}

void Tensor::set_data(const Tensor& other) const {
  TensorImpl* impl = get();
  TensorImpl* from = other.impl();
  VESTA_CHECK(other.defined() && from->storage, "set_data: the new data is undefined or has no memory");
  // A leaf may change between the types that carry gradients (Module::to); a result's type is known to its graph.
  const bool new_type_ok =
      is_leaf() && (vesta::is_floating_point(from->dtype) || vesta::is_complex(from->dtype));
  VESTA_CHECK(impl->dtype == from->dtype || !requires_grad() || new_type_ok, "set_data: expected ",
              dtype_name(impl->dtype), ", got ", dtype_name(from->dtype));
  if (impl->storage != from->storage) {
    from->storage->refs.fetch_add(1, std::memory_order_relaxed);
    Storage* old = impl->storage;
    impl->storage = from->storage;
    // An embedded storage goes with the impl's block.
    if (old && old != &impl->own) release_storage(old);
  }
  impl->data = from->data;
  impl->offset = from->offset;
  impl->dtype = from->dtype;
  set_ndim(impl, from->ndim);
  std::copy_n(from->sizes_data(), from->ndim, impl->sizes_data());
  std::copy_n(from->strides_data(), from->ndim, impl->strides_data());
  refresh_facts(impl);
}

namespace autograd {

variable_list grad(const variable_list& outputs, const variable_list& inputs,
                   const variable_list& grad_outputs, std::optional<bool> retain_graph, bool create_graph,
                   bool allow_unused) {
  VESTA_CHECK(!inputs.empty(), "autograd::grad: grad requires non-empty inputs.");
  BackwardOptions o;
  o.retain_graph = retain_graph.value_or(create_graph);
  o.create_graph = create_graph;
  o.accumulate = false;
  o.inputs = inputs;
  auto result = run_backward(outputs, grad_outputs, o);
  for (size_t k = 0; k < result.size(); ++k)
    VESTA_CHECK(allow_unused || result[k].defined(), "autograd::grad: input ", k,
                " appears to not have been used in the graph. Set allow_unused=True if this is the desired "
                "behavior.");
  return result;
}

void backward(const variable_list& tensors, const variable_list& grad_tensors,
              std::optional<bool> retain_graph, bool create_graph, const variable_list& inputs) {
  BackwardOptions o;
  o.retain_graph = retain_graph.value_or(create_graph);
  o.create_graph = create_graph;
  o.inputs = inputs;
  run_backward(tensors, grad_tensors, o);
}

}  // namespace autograd
}  // namespace vesta
