// Life of nodes: recording, saving, unpacking, release.
#include "autograd/node.h"

#include <bit>
#include <cstring>
#include <new>

#include "autograd/saved_hooks.h"
#include "base/stack_trace.h"
#include "core/call.h"
#include "core/storage.h"
#include "runtime/cpu/allocator.h"
#include "vesta/autograd.h"
#include "vesta/ops.h"

namespace vesta {

namespace {
// Nodes whose count fell to zero, released by the outermost call: a chain of a million nodes needs no stack.
constinit thread_local std::vector<GradNode*>* pending_release __attribute__((tls_model("initial-exec"))) =
    nullptr;
}  // namespace

void release_grad_node(GradNode* node) {
  if (node->refs.load(std::memory_order_acquire) != 1 &&
      node->refs.fetch_sub(1, std::memory_order_acq_rel) != 1)
    return;
  if (pending_release) {
    pending_release->push_back(node);
    return;
  }
  std::vector<GradNode*> pending;
  pending_release = &pending;
  static_cast<autograd::Node*>(node)->destroy();
  while (!pending.empty()) {
    auto* next = static_cast<autograd::Node*>(pending.back());
    pending.pop_back();
    next->destroy();
  }
  pending_release = nullptr;
}

namespace autograd {

void Node::delete_rare_parts() {
  if (output_exts) {
    for (auto& o : *output_exts) release_ext(o.ext);
    delete output_exts;
  }
  delete many_;
  delete recorded_at;
}

void Node::remember_place() { recorded_at = new std::vector<uintptr_t>(capture_stack(1)); }
std::string Node::place() const {
  return recorded_at ? first_user_frame(describe_stack(*recorded_at)) : std::string();
}

Tensor* Node::many_cotangents() {
  if (!many_) many_ = new std::vector<Tensor>(num_outputs);
  return many_->data();
}
void VectorNode::set_edges(std::vector<Edge> e) {
  storage_ = std::move(e);
  edges_ = storage_.data();
  num_edges_ = storage_.size();
}

void attach_output(TensorImpl* impl, Node* node, uint32_t output_nr) {
  if (impl->grad_fn) release_grad_node(impl->grad_fn);
  impl->grad_fn = retain(node);
  impl->output_nr = output_nr;
  impl->bits |= TensorImpl::kAutograd;
}

namespace {

size_t attr_bytes(const Value& v) {
  switch (v.kind) {
    case ValueKind::IntList:
    case ValueKind::FloatList:
      return size_t(v.length) * 8;
    case ValueKind::BoolList:
    case ValueKind::String:
      return (size_t(v.length) + 7) & ~size_t(7);
    case ValueKind::ScalarList:
      return v.length * sizeof(Scalar);
    case ValueKind::Complex:
      return 16;
    default:
      return 0;
  }
}

}  // namespace

// The edge, type and sizes of the next flattened tensor argument.
[[gnu::always_inline]] inline void OpNode::describe(TensorImpl* t, int64_t*& size_words) {
  Edge& edge = edges_[num_edges_];
  InputMeta& meta = metas_[num_edges_];
  if (!t) [[unlikely]] {
    edge = Edge();
    meta = {DType::Undefined, 0, size_words};
  } else {
    edge = requires_grad(t) && differentiable(t->dtype) ? gradient_edge(t) : Edge();
    meta = {t->dtype, t->ndim, size_words};
    const int64_t* sizes = t->sizes_data();
    for (int d = 0; d < t->ndim; ++d) *size_words++ = sizes[d];
  }
  ++num_edges_;
}

OpNode* OpNode::record(const Op& op, const Value* args) {
  // How much follows the object: edges, attributes, saved tensors, metas, sizes, the contents of lists and strings.
  size_t attr_tail = 0, size_words = 0, list_slots = 0, num_edges = op.num_tensor_args;
  for (uint32_t left = op.pointer_args; left; left &= left - 1)
    attr_tail += attr_bytes(args[std::countr_zero(left)]);
  for (int k = 0; k < op.num_tensor_args; ++k) {
    const Value& v = args[op.tensor_args[k]];
    if (v.kind == ValueKind::Tensor) [[likely]] {
      size_words += v.tensor->ndim;
    } else if (v.kind == ValueKind::TensorList) {
      list_slots += v.length;
      num_edges = num_edges + v.length - 1;
      for (auto& t : v.tensors()) size_words += t.defined() ? size_t(t.impl()->ndim) : 0;
    }
  }
  const SaveList& list = op.def->save;
  size_t capacity = size_t(list.count) + list_slots + (op.list_result >= 0 ? 8 : 0);
  size_t bytes = sizeof(OpNode) + num_edges * (sizeof(Edge) + sizeof(InputMeta)) +
                 op.num_args * sizeof(Value) + capacity * sizeof(Saved) + size_words * 8 + attr_tail;
  char* at = static_cast<char*>(cpu::allocate(bytes));
  auto* node = new (at) OpNode();
  node->block_bytes_ = uint32_t(bytes);
  node->op_ = &op;
  at += sizeof(OpNode);
  auto take = [&]<class T>(T*& field, size_t count) {
    field = reinterpret_cast<T*>(at);
    at += count * sizeof(T);
  };
  int64_t* words;
  take(node->edges_, num_edges);
  take(node->metas_, num_edges);
  take(node->attrs_, op.num_args);
  take(node->saved_, capacity);
  take(words, size_words);
  node->saved_capacity_ = uint16_t(capacity);
  if (thread_state.anomaly) [[unlikely]]
    node->remember_place();
  try {
    // Attributes: lists and strings are copied behind the node; tensors are blanked (a list keeps its length).
    Value* attrs = node->attrs_;
    for (uint32_t left = op.attr_mask; left; left &= left - 1) {
      int i = std::countr_zero(left);
      attrs[i] = args[i];
    }
    for (int k = 0; k < op.num_tensor_args; ++k) {
      int i = op.tensor_args[k];
      const Value& v = args[i];
      attrs[i] = v;
      attrs[i].tensor = nullptr;
      if (v.kind != ValueKind::TensorList) [[likely]]
        node->describe(v.kind == ValueKind::Tensor ? v.tensor : nullptr, words);
      else
        for (auto& t : v.tensors()) node->describe(t.impl(), words);
    }
    for (uint32_t left = op.pointer_args; left; left &= left - 1) {
      Value& v = attrs[std::countr_zero(left)];
      if (size_t n = attr_bytes(v)) {
        bool bytes_only = v.kind == ValueKind::BoolList || v.kind == ValueKind::String;
        std::memcpy(at, v.ptr, bytes_only ? v.length : n);
        v.ptr = at;
        at += n;
      }
    }
    if (!node->leads_somewhere()) {
      release_grad_node(node);
      return nullptr;
    }
    for (int i = 0; i < list.count; ++i) {
      const SaveItem& item = list.items[i];
      if (item.output || !node->needs_save(item)) continue;
      const Value& v = args[item.index];
      int edge = node->first_edge(item.index);
      if (v.kind == ValueKind::Tensor) [[likely]] {
        node->save_input(v.tensor, item.index, edge);
      } else if (v.kind == ValueKind::TensorList) {
        for (auto& t : v.tensors()) {
          if (t.defined()) node->save_input(t.impl(), item.index, edge);
          ++edge;
        }
      }
    }
  } catch (...) {
    release_grad_node(node);
    throw;
  }
  return node;
}

[[gnu::always_inline]] inline bool OpNode::needs_save(const SaveItem& item) const {
  if (item.needs < 0) return true;
  if (!op_->has_tensor_lists) [[likely]]
    return edges_[first_edge(item.needs)].valid();
  int first = first_edge(item.needs), count = edge_count(item.needs);
  for (int k = 0; k < count; ++k)
    if (edges_[first + k].valid()) return true;
  return false;
}

[[gnu::always_inline]] inline void OpNode::save_input(TensorImpl* t, int arg, int edge) {
  Saved& s = saved_[num_saved_];
  s.version = t->storage ? t->storage->version : 0;
  s.edge = int16_t(edge);
  s.output = -1;
  if (t->bits & TensorImpl::kInference) [[unlikely]]
    refuse_inference(arg);
  if (op_->mutates && op_->schema.args[size_t(arg)].mutated) [[unlikely]] {
    // The call overwrites it: keep what it was.
    NoGradGuard no_grad;
    Tensor before = Tensor::borrow(t).clone();
    if (thread_state.saved_hooks) return pack(before.impl(), edge, -1);
    s.impl = before.release_impl();
    s.version = 0;
  } else if (thread_state.saved_hooks) [[unlikely]] {
    return pack(t, edge, -1);
  } else if (t->grad_fn || !(t->bits & TensorImpl::kAutograd)) {
    // An alias: saving the tensor itself would make a cycle once it is written in place (its grad_fn would reach us).
    // Only a leaf that requires grad can never come to have a grad_fn.
    s.impl = shallow_alias(t).release_impl();
  } else {
    s.impl = t;
    if (edges_[edge].leaf != t) t->refs.fetch_add(1, std::memory_order_relaxed);
  }
  ++num_saved_;
}

void OpNode::pack(TensorImpl* t, int edge, int output) {
  if (!packed_) packed_ = new std::vector<Packed>;
  packed_->push_back(static_cast<SavedTensorHooks*>(thread_state.saved_hooks)->pack(shallow_alias(t)));
  saved_[num_saved_++] = {nullptr, uint32_t(packed_->size() - 1), int16_t(edge), int16_t(output)};
}

// The edge of a packed leaf leads to the leaf itself, so that second derivatives reach it.
const Tensor& OpNode::unpack_hooked(const Saved& s) {
  VESTA_CHECK(!released_, name(),
              ": trying to backward through the graph a second time, but its saved tensors were freed; "
              "pass retain_graph=true to the first backward");
  Tensor t = (*packed_)[s.version].unpack();
  if (!running->create_graph) return keep(std::move(t));
  Edge e = s.output >= 0 ? Edge{this, nullptr, uint32_t(s.output)} : edges()[size_t(s.edge)];
  if (e.leaf) return Tensor::in_slot(edges()[size_t(s.edge)].leaf);
  Tensor alias = shallow_alias(t);
  if (e.node) attach_output(alias.impl(), e.node, e.output_nr);
  return keep(std::move(alias));
}

void OpNode::refuse_inference(int arg) const {
  throw ValueError(op_->name + ": inference tensors cannot be saved for backward; clone " +
                   op_->schema.args[size_t(arg)].name + " outside of InferenceMode first");
}

[[gnu::always_inline]] inline void OpNode::remember_sizes(TensorImpl* t, size_t j) {
  if (j == 0) out_dtype_ = t->dtype;
  if (j == 0 && t->ndim <= kOutDims) [[likely]] {
    static_assert(kOutDims == TensorImpl::kInlineDims);
    out_ndim_ = t->ndim;
    std::memcpy(out_sizes_, t->inline_sizes, sizeof(out_sizes_));
    return;
  }
  remember_more_sizes(t, j);
}

void OpNode::remember_more_sizes(TensorImpl* t, size_t j) {
  if (j == 0) out_ndim_ = kElsewhere;
  if (!more_out_sizes_) more_out_sizes_ = new std::vector<std::vector<int64_t>>;
  if (more_out_sizes_->size() <= j) more_out_sizes_->resize(j + 1);
  (*more_out_sizes_)[j].assign(t->sizes_data(), t->sizes_data() + t->ndim);
}

void OpNode::save_outputs(const Value* outs) {
  if (op_->num_outs == 1 && !op_->saves_outputs && outs[0].kind == ValueKind::Tensor) [[likely]]
    return remember_sizes(outs[0].tensor, 0);  // num_outputs is 1 from the start
  bool is_list = op_->list_result >= 0;
  num_outputs = is_list ? outs[0].length : op_->num_outs;
  auto output = [&](size_t j) {
    return is_list                             ? outs[0].tensors()[j].impl()
           : outs[j].kind == ValueKind::Tensor ? outs[j].tensor
                                               : nullptr;
  };
  for (size_t j = 0; j < num_outputs; ++j)
    if (TensorImpl* t = output(j)) remember_sizes(t, j);
  if (!op_->saves_outputs) return;
  const SaveList& list = op_->def->save;
  for (int i = 0; i < list.count; ++i) {
    const SaveItem& item = list.items[i];
    if (!item.output || !needs_save(item)) continue;
    for (size_t j = is_list ? 0 : size_t(item.index); j < (is_list ? num_outputs : size_t(item.index) + 1);
         ++j) {
      TensorImpl* t = output(j);
      if (!t) continue;
      VESTA_CHECK_AS(InternalError, num_saved_ < saved_capacity_, op_->name, ": too many saved outputs");
      if (thread_state.saved_hooks) [[unlikely]] {
        pack(t, -1, int(j));
        continue;
      }
      Saved& s = saved_[num_saved_++];
      // Without its grad_fn, which is this node: no cycle.
      s.impl = shallow_alias(t).release_impl();
      s.version = t->storage ? t->storage->version : 0;
      s.edge = -1;
      s.output = int16_t(j);
    }
  }
}

std::string OpNode::name() const {
  std::string n = op_->schema.name;
  while (!n.empty() && n[0] == '_') n.erase(0, 1);
  if (!n.empty() && n.back() == '_') n.pop_back();
  bool upper = true;
  std::string out;
  for (char c : n) {
    if (c == '_')
      upper = true;
    else {
      out += upper ? char(std::toupper(c)) : c;
      upper = false;
    }
  }
  return out + "Backward";
}

void OpNode::release_saved() {
  for (int k = 0; k < num_saved_; ++k)
    if (saved_[k].impl) {
      drop(saved_[k]);
      saved_[k].impl = nullptr;
    }
  if (packed_) packed_->clear();
  if (num_saved_) released_ = true;
}

void OpNode::destroy() {
  for (int k = 0; k < num_saved_; ++k)
    if (saved_[k].impl) drop(saved_[k]);
  delete more_out_sizes_;
  delete packed_;
  uint32_t bytes = block_bytes_;
  void* block = this;
  this->~OpNode();
  cpu::free(block, bytes);
}

int OpNode::first_edge_after_lists(int arg) const {
  int e = 0;
  for (int k = 0; k < op_->num_tensor_args; ++k) {
    int i = op_->tensor_args[k];
    if (i == arg) return e;
    e += attrs_[i].kind == ValueKind::TensorList ? int(attrs_[i].length) : 1;
  }
  throw InternalError(op_->name + ": argument " + std::to_string(arg) + " is not a tensor");
}
IntArrayRef OpNode::out_sizes(int j) const {
  if (j == 0 && out_ndim_ != kElsewhere) return {out_sizes_, out_ndim_};
  return (*more_out_sizes_)[size_t(j)];
}

int OpNode::find_saved(int index, bool output, int element) const {
  int edge = output ? -1 : first_edge(index) + element, wanted = output ? index + element : -1;
  for (int k = 0; k < num_saved_; ++k)
    if (saved_[k].edge == edge && saved_[k].output == wanted) return k;
  return -1;
}

const Tensor& OpNode::keep(Tensor t) {
  running->kept.push_front(std::move(t));
  return running->kept.front();
}

void OpNode::throw_modified(const Saved& s) const {
  VESTA_CHECK(!released_ && s.impl, name(),
              ": trying to backward through the graph a second time, but its saved tensors were freed; "
              "pass retain_graph=true to the first backward");
  throw ValueError(vesta::detail::message(
      name(), ": a tensor saved for the gradient of ", op_->name, " (",
      s.output >= 0 ? "its output" : "its input", " ",
      s.output >= 0 ? std::to_string(s.output) : std::to_string(s.edge), ", ", to_string(s.impl->dtype),
      ") was modified by an in-place operation", last_in_place_op(s.impl->storage), ": it is at version ",
      s.impl->storage->version, ", expected version ", s.version));
}

const Tensor& OpNode::unpack(int slot) {
  Saved& s = saved_[slot];
  TensorImpl* t = s.impl;
  if (packed_) [[unlikely]]
    return unpack_hooked(s);
  if (released_ || !t || (t->storage && t->storage->version != s.version)) [[unlikely]]
    throw_modified(s);
  if (!running->create_graph) [[likely]]
    return Tensor::in_slot(s.impl);
  // Reconnect: a fresh alias whose history is the original edge, or this node for an output.
  if (s.output >= 0) {
    Tensor alias = shallow_alias(t);
    attach_output(alias.impl(), this, uint32_t(s.output));
    return keep(std::move(alias));
  }
  Edge& e = edges()[size_t(s.edge)];
  if (!e.node) return Tensor::in_slot(s.impl);  // a leaf was saved itself
  Tensor alias = shallow_alias(t);
  attach_output(alias.impl(), e.node, e.output_nr);
  return keep(std::move(alias));
}

namespace {
// Fits a gradient to its input: sums over broadcast dims, casts, drops an imaginary part.
void fit(Tensor& g, const InputMeta& m) {
  IntArrayRef want(m.sizes, m.ndim);
  if (is_complex(g.dtype()) && !is_complex(m.dtype)) g = vesta::real(g);
  if (!(g.sizes() == want)) g = sum_to_size(g, want);
  if (g.dtype() != m.dtype) g = g.to(m.dtype);
}
bool fits(const TensorImpl* g, const InputMeta& m) {
  if (g->dtype != m.dtype || g->ndim != m.ndim) return false;
  const int64_t* sizes = const_cast<TensorImpl*>(g)->sizes_data();
  for (int d = 0; d < m.ndim; ++d)
    if (sizes[d] != m.sizes[d]) return false;
  return true;
}
}  // namespace

void OpNode::apply(std::span<Tensor> cotangents, std::span<Tensor> out) {
  if (op_->def->materialize) [[unlikely]] {
    for (size_t j = 0; j < cotangents.size(); ++j)
      if (!cotangents[j].defined()) cotangents[j] = zeros(out_sizes(int(j)), TensorOptions(out_dtype_));
  }
  Running now{cotangents, out, thread_state.grad_mode, {}};
  struct Restore {
    OpNode* node;
    Running* before;
    ~Restore() { node->running = before; }
  } restore{this, running};
  running = &now;
  op_->def->vjp(Grad(*op_, attrs_, *this));
  for (size_t k = 0; k < out.size(); ++k)
    if (TensorImpl* g = out[k].impl(); g && !fits(g, metas_[k])) fit(out[k], metas_[k]);
}

}  // namespace autograd

// ---- what a vjp sees ----
namespace {
autograd::OpNode& as_op_node(GradNode& n) { return static_cast<autograd::OpNode&>(n); }
}  // namespace

const Tensor& Grad::dy(int j) const { return as_op_node(node_).running->dys[size_t(j)]; }
const Tensor& Grad::in(int i) const {
  static const Tensor none;
  auto& n = as_op_node(node_);
  if (values_[i].is_none()) return none;
  int slot = n.find_saved(i, false);
  VESTA_CHECK_AS(InternalError, slot >= 0, op_.name, ": the vjp reads input ", i,
                 ", which .save does not keep");
  return n.unpack(slot);
}
const Tensor& Grad::in_conj(int i) const {
  const Tensor& t = in(i);
  return t.defined() && t.is_complex() ? as_op_node(node_).keep(t.conj()) : t;
}
std::vector<Tensor> Grad::in_list(int i) const {
  auto& n = as_op_node(node_);
  std::vector<Tensor> list;
  for (int k = 0; k < list_size(i); ++k) {
    int slot = n.find_saved(i, false, k);
    list.push_back(slot < 0 ? Tensor() : n.unpack(slot));
  }
  return list;
}
const Tensor& Grad::out(int j) const {
  auto& n = as_op_node(node_);
  int slot = n.find_saved(j, true);
  VESTA_CHECK_AS(InternalError, slot >= 0, op_.name, ": the vjp reads output ", j,
                 ", which .save does not keep");
  return n.unpack(slot);
}
IntArrayRef Grad::sizes(int i) const { return list_sizes(i, 0); }
IntArrayRef Grad::list_sizes(int i, int element) const {
  auto& n = as_op_node(node_);
  auto& m = n.input_meta(n.first_edge(i) + element);
  return {m.sizes, m.ndim};
}
DType Grad::dtype_of(int i) const {
  auto& n = as_op_node(node_);
  return n.input_meta(n.first_edge(i)).dtype;
}
IntArrayRef Grad::out_sizes(int j) const { return as_op_node(node_).out_sizes(j); }
int Grad::list_size(int i) const { return as_op_node(node_).edge_count(i); }
bool Grad::needs(int i) const {
  if (!op_.has_tensor_lists) return needs(i, 0);
  for (int k = 0; k < list_size(i); ++k)
    if (needs(i, k)) return true;
  return false;
}
bool Grad::needs(int i, int element) const {
  auto& n = as_op_node(node_);
  return n.edges()[size_t(n.first_edge(i) + element)].valid();
}
void Grad::set(int i, Tensor gradient) const {
  auto& n = as_op_node(node_);
  n.running->gradients[size_t(n.first_edge(i))] = std::move(gradient);
}
void Grad::set(int i, std::vector<Tensor> list) const {
  auto& n = as_op_node(node_);
  size_t first = size_t(n.first_edge(i));
  for (size_t k = 0; k < list.size(); ++k)
    if (n.edges()[first + k].valid()) n.running->gradients[first + k] = std::move(list[k]);
}
bool Grad::create_graph() const { return as_op_node(node_).running->create_graph; }

}  // namespace vesta
