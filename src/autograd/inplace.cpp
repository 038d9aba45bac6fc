// In-place writes: checks, CopySlices, regenerated views, and the edges of tensors.
#include "autograd/inplace.h"

#include "core/call.h"
#include "core/storage.h"
#include "vesta/autograd.h"
#include "vesta/ops.h"

namespace vesta::autograd {
namespace {

bool tracked_view(const TensorImpl* t) {
  return (t->bits & TensorImpl::kView) && t->view.creation == uint8_t(ViewCreation::Default);
}

// The place of a view inside its base's storage.
struct Geometry {
  std::vector<int64_t> sizes, strides;
  int64_t offset;
  explicit Geometry(TensorImpl* t)
      : sizes(t->sizes_data(), t->sizes_data() + t->ndim),
        strides(t->strides_data(), t->strides_data() + t->ndim),
        offset(t->offset) {}
};

// Gradient of a base given that of a view of it.
class AsStridedNode final : public VectorNode {
 public:
  AsStridedNode(TensorImpl* base, TensorImpl* view) : base_(base), view_(view), base_dtype_(base->dtype) {}
  void apply(std::span<Tensor> dy, std::span<Tensor> gradients) override {
    if (!dy[0].defined()) return;
    Tensor full = zeros_in_base_layout(dy[0]);
    Tensor slot = full.as_strided(view_.sizes, view_.strides, view_.offset);
    slot.add_(dy[0]);  // overlapping views add up
    gradients[0] = full.as_strided(base_.sizes, base_.strides, base_.offset);
  }
  std::string name() const override { return "AsStridedBackward"; }
  void release_saved() override {}

 private:
  Tensor zeros_in_base_layout(const Tensor& like) const {
    int64_t extent = 1;
    for (auto* g : {&base_, &view_}) {
      int64_t e = g->offset + 1;
      for (size_t d = 0; d < g->sizes.size(); ++d) e += std::max<int64_t>(0, g->sizes[d] - 1) * g->strides[d];
      extent = std::max(extent, e);
    }
    return zeros({extent}, like.options());
  }
  Geometry base_, view_;
  DType base_dtype_;
};

// History of a base one of whose views was written by the call `fn`: the gradient outside the view passes through,
// inside it goes through fn.
class CopySlicesNode final : public VectorNode {
 public:
  CopySlicesNode(TensorImpl* base, TensorImpl* view, Node* fn, uint32_t output_nr)
      : base_(base), view_(view), fn_(fn), output_nr_(output_nr) {
    retain(static_cast<GradNode*>(fn));
  }
  ~CopySlicesNode() override {
    if (fn_) release_grad_node(fn_);
  }
  void apply(std::span<Tensor> dy, std::span<Tensor> gradients) override {
    if (!dy[0].defined()) return;
    VESTA_CHECK(fn_, name(),
                ": trying to backward through the graph a second time, but its saved tensors were freed; "
                "pass retain_graph=true to the first backward");
    int64_t extent = 1;
    for (auto* g : {&base_, &view_}) {
      int64_t e = g->offset + 1;
      for (size_t d = 0; d < g->sizes.size(); ++d) e += std::max<int64_t>(0, g->sizes[d] - 1) * g->strides[d];
      extent = std::max(extent, e);
    }
    Tensor buffer = zeros({extent}, dy[0].options());
    Tensor result = buffer.as_strided(base_.sizes, base_.strides, base_.offset);
    result.copy_(dy[0]);
    Tensor slice = buffer.as_strided(view_.sizes, view_.strides, view_.offset);
    std::vector<Tensor> in(fn_->num_outputs), out(fn_->edges().size());
    in[output_nr_] = slice.clone();
    fn_->apply(in, out);
    if (out.size() && out[0].defined())
      slice.copy_(out[0]);
    else
      slice.zero_();
    gradients[0] = result;
    for (size_t k = 1; k < gradients.size() && k < out.size(); ++k) gradients[k] = out[k];
  }
  std::string name() const override { return "CopySlices"; }
  void release_saved() override {
    if (fn_) fn_->release_saved();
  }

 private:
  Geometry base_, view_;
  Node* fn_;
  uint32_t output_nr_;
};

Edge copy_edge(const Edge& e) {
  Edge c = e;
  if (c.node) retain(static_cast<GradNode*>(c.node));
  if (c.leaf) c.leaf->refs.fetch_add(1, std::memory_order_relaxed);
  return c;
}

}  // namespace

bool view_requires_grad(const TensorImpl* v) {
  return tracked_view(v) && (v->view.base->bits & TensorImpl::kAutograd) && v->view.base->grad_fn;
}

Edge view_gradient_edge(TensorImpl* t) {
  if (tracked_view(t)) refresh_view(t);
  return edge_of(t);
}

void refresh_view(TensorImpl* v) {
  TensorImpl* base = v->view.base;
  if (!v->storage || v->view.grad_version == v->storage->version || !(base->bits & TensorImpl::kAutograd) ||
      !base->grad_fn)
    return;
  auto* node = new AsStridedNode(base, v);
  node->set_edges({edge_of(base)});
  attach_output(v, node, 0);
  release_grad_node(node);
  v->view.grad_version = v->storage->version;
}

void check_in_place(const std::string& name, const Tensor& t) {
  TensorImpl* impl = t.impl();
  bool leaf = !impl->grad_fn;
  VESTA_CHECK(!(leaf && (impl->bits & TensorImpl::kAutograd) && !(impl->bits & TensorImpl::kView)), name,
              ": a leaf Variable that requires grad is being used in an in-place operation; wrap the call in "
              "NoGradGuard or use the functional form");
  if (!(impl->bits & TensorImpl::kView)) return;
  TensorImpl* base = impl->view.base;
  bool grads = (impl->bits | base->bits) & TensorImpl::kAutograd;
  VESTA_CHECK(!((base->bits & TensorImpl::kAutograd) && !base->grad_fn && tracked_view(impl)), name,
              ": a view of a leaf tensor that requires grad is being used in an in-place operation");
  switch (ViewCreation(impl->view.creation)) {
    case ViewCreation::MultiOutput:
      VESTA_CHECK(!grads, name,
                  ": this view is the output of a function that returns several views; such views cannot be "
                  "modified in "
                  "place under autograd. Clone it or use the functional form");
      break;
    case ViewCreation::NoGrad:
      VESTA_CHECK(
          !grads, name,
          ": this view was created under NoGradGuard and is being modified in place with grad mode on");
      break;
    default:
      break;
  }
}

void rebase_history(const Tensor& t, Node* node, uint32_t output_nr) {
  TensorImpl* impl = t.impl();
  if (!is_floating_point(impl->dtype) && !is_complex(impl->dtype)) return;
  if (!(impl->bits & TensorImpl::kView)) {
    attach_output(impl, node, output_nr);
    return;
  }
  TensorImpl* base = impl->view.base;
  auto* slices = new CopySlicesNode(base, impl, node, output_nr);
  std::vector<Edge> edges{edge_of(base)};
  for (size_t k = 1; k < node->edges().size(); ++k) edges.push_back(copy_edge(node->edges()[k]));
  slices->set_edges(std::move(edges));
  attach_output(base, slices, 0);
  release_grad_node(slices);
  // The view itself reads its history from the base from now on.
  impl->view.grad_version = impl->storage->version - 1;
  refresh_view(impl);
}

}  // namespace vesta::autograd
