// Life of nodes: recording, saving, unpacking, release.
#include "autograd/node.h"

#include <cstring>
#include <new>

#include "core/call.h"
#include "core/storage.h"
#include "vesta/autograd.h"
#include "vesta/ops.h"
#include "runtime/cpu/allocator.h"

namespace vesta {

namespace {
// Nodes whose count fell to zero, released by the outermost call: a chain of a million nodes needs no stack.
thread_local std::vector<GradNode*>* pending_release = nullptr;
}  // namespace

void release_grad_node(GradNode* node) {
  if (node->refs.load(std::memory_order_acquire) != 1 && node->refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
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

Node::Node() : sequence(thread_state.sequence++) {}

void Node::release_edges() {
  for (auto& e : edges()) {
    if (e.node) release_grad_node(e.node);
    if (e.leaf) vesta::detail::release(e.leaf);
  }
  num_edges_ = 0;
}

Node::~Node() {
  release_edges();
  if (output_exts) {
    for (auto& o : *output_exts) release_ext(o.ext);
    delete output_exts;
  }
  delete many_;
}

Tensor* Node::many_cotangents() {
  if (!many_) many_ = new std::vector<Tensor>(num_outputs);
  return many_->data();
}
void Node::clear_cotangents() {
  one_cotangent_.reset();
  if (many_)
    for (auto& t : *many_) t.reset();
}

void VectorNode::set_edges(std::vector<Edge> e) {
  storage_ = std::move(e);
  edges_ = storage_.data();
  num_edges_ = storage_.size();
}

void attach_output(const Tensor& t, Node* node, uint32_t output_nr) {
  TensorImpl* impl = t.impl();
  if (impl->grad_fn) release_grad_node(impl->grad_fn);
  impl->grad_fn = retain(node);
  impl->output_nr = output_nr;
  impl->bits |= TensorImpl::kAutograd;
}

namespace {

bool saves(const SaveItem& item, const Op& op, const OpNode& node, std::span<Edge> edges) {
  if (item.needs < 0) return true;
  int first = node.first_edge(item.needs), count = node.edge_count(item.needs);
  (void)op;
  for (int k = 0; k < count; ++k)
    if (edges[size_t(first + k)].valid()) return true;
  return false;
}

size_t attr_bytes(const Value& v) {
  switch (v.kind) {
    case ValueKind::IntList:
    case ValueKind::FloatList: return size_t(v.length) * 8;
    case ValueKind::BoolList:
    case ValueKind::String: return (size_t(v.length) + 7) & ~size_t(7);
    case ValueKind::ScalarList: return v.length * sizeof(Scalar);
    case ValueKind::Complex: return 16;
    default: return 0;
  }
}

}  // namespace

OpNode* OpNode::record(const Op& op, const Value* args, std::span<Edge> edges) {
  // Sizes of the tail.
  size_t attr_tail = 0, size_words = 0, list_slots = 0;
  for (int i = 0; i < op.num_args; ++i) attr_tail += attr_bytes(args[i]);
  auto count_tensor = [&](const TensorImpl* t) { size_words += t ? t->ndim : 0; };
  for (int k = 0; k < op.num_tensor_args; ++k) {
    const Value& v = args[op.tensor_args[k]];
    if (v.kind == ValueKind::Tensor) count_tensor(v.tensor);
    else if (v.kind == ValueKind::TensorList) {
      list_slots += v.length;
      for (auto& t : v.tensors()) count_tensor(t.impl());
    }
  }
  size_t capacity = size_t(op.def->save.count) + (op.has_tensor_lists ? list_slots : 0) + (op.list_result >= 0 ? 8 : 0);
  constexpr size_t kOutDims = 6;
  size_t bytes = sizeof(OpNode) + edges.size() * sizeof(Edge) + op.num_args * sizeof(Value) + capacity * sizeof(Saved) +
                 edges.size() * sizeof(InputMeta) + (size_words + kOutDims) * 8 + attr_tail;
  char* block = static_cast<char*>(cpu::allocate(bytes));
  auto* node = new (block) OpNode();
  node->block_bytes_ = uint32_t(bytes);
  node->op_ = &op;
  char* at = block + sizeof(OpNode);
  auto take = [&](size_t n) {
    char* p = at;
    at += n;
    return p;
  };
  node->edges_ = reinterpret_cast<Edge*>(take(edges.size() * sizeof(Edge)));
  node->num_edges_ = edges.size();
  std::memcpy(static_cast<void*>(node->edges_), edges.data(), edges.size() * sizeof(Edge));
  node->attrs_ = reinterpret_cast<Value*>(take(op.num_args * sizeof(Value)));
  node->saved_ = reinterpret_cast<Saved*>(take(capacity * sizeof(Saved)));
  node->saved_capacity_ = uint16_t(capacity);
  node->metas_ = reinterpret_cast<InputMeta*>(take(edges.size() * sizeof(InputMeta)));
  node->out_sizes_ = reinterpret_cast<int64_t*>(take(kOutDims * 8));
  auto* words = reinterpret_cast<int64_t*>(take(size_words * 8));
  // Attributes: lists and strings are copied behind the node; tensors are blanked (a list keeps its length).
  for (int i = 0; i < op.num_args; ++i) {
    Value v = args[i];
    if (v.kind == ValueKind::Tensor) v.tensor = nullptr;
    else if (v.kind == ValueKind::TensorList) v.ptr = nullptr;
    else if (size_t n = attr_bytes(v)) {
      char* copy = take(n);
      size_t used = v.kind == ValueKind::BoolList || v.kind == ValueKind::String ? v.length : n;
      std::memcpy(copy, v.ptr, used);
      v.ptr = copy;
    }
    node->attrs_[i] = v;
  }
  size_t e = 0;
  for (int k = 0; k < op.num_tensor_args; ++k) {
    const Value& v = args[op.tensor_args[k]];
    auto meta = [&](TensorImpl* t) {
      InputMeta& m = node->metas_[e++];
      m = {t ? t->dtype : DType::Undefined, uint8_t(t ? t->ndim : 0), words};
      if (t) {
        std::memcpy(words, t->sizes_data(), size_t(t->ndim) * 8);
        words += t->ndim;
      }
    };
    if (v.kind == ValueKind::TensorList)
      for (auto& t : v.tensors()) meta(t.impl());
    else
      meta(v.kind == ValueKind::Tensor ? v.tensor : nullptr);
  }
  // Saved inputs.
  auto save = [&](TensorImpl* t, int arg, int edge) {
    Saved s;
    s.version = t->storage ? t->storage->version : 0;
    s.edge = int16_t(edge);
    VESTA_CHECK(!(t->bits & TensorImpl::kInference), op.name, ": inference tensors cannot be saved for backward; clone ",
                op.schema.args[size_t(arg)].name, " outside of InferenceMode first");
    if (op.schema.args[size_t(arg)].mutated) {
      // The call overwrites it: keep what it was.
      NoGradGuard no_grad;
      s.impl = Tensor::borrow(t).clone().release_impl();
      s.version = 0;
    } else if (t->grad_fn) {
      // An alias: saving a result itself would make a cycle once it is written in place (its grad_fn would reach us).
      s.impl = shallow_alias(Tensor::borrow(t)).release_impl();
    } else {
      t->refs.fetch_add(1, std::memory_order_relaxed);
      s.impl = t;
    }
    node->saved_[node->num_saved_++] = s;
  };
  const SaveList& list = op.def->save;
  try {
    for (int i = 0; i < list.count; ++i) {
      const SaveItem& item = list.items[i];
      if (item.output || !saves(item, op, *node, edges)) continue;
      const Value& v = args[item.index];
      int edge = node->first_edge(item.index);
      if (v.kind == ValueKind::Tensor) save(v.tensor, item.index, edge);
      else if (v.kind == ValueKind::TensorList)
        for (auto& t : v.tensors()) {
          if (t.defined()) save(t.impl(), item.index, edge);
          ++edge;
        }
    }
  } catch (...) {
    release_grad_node(node);
    throw;
  }
  return node;
}

void OpNode::save_outputs(const Value* outs) {
  if (op_->list_result < 0) {
    num_outputs = op_->num_outs;
    for (int j = 0; j < op_->num_outs; ++j) {
      if (outs[j].kind != ValueKind::Tensor) continue;
      TensorImpl* t = outs[j].tensor;
      if (j == 0 && t->ndim <= 6) {
        out_ndim_ = t->ndim;
        std::memcpy(out_sizes_, t->sizes_data(), size_t(t->ndim) * 8);
        out_dtype_ = t->dtype;
      } else {
        if (!more_out_sizes_) more_out_sizes_ = new std::vector<std::vector<int64_t>>(op_->num_outs);
        (*more_out_sizes_)[size_t(j)].assign(t->sizes_data(), t->sizes_data() + t->ndim);
        if (j == 0) out_ndim_ = 255, out_dtype_ = t->dtype;
      }
    }
  } else {
    more_out_sizes_ = new std::vector<std::vector<int64_t>>();
    num_outputs = outs[0].length;
    for (auto& t : outs[0].tensors()) more_out_sizes_->push_back(t.sizes().vec());
    out_ndim_ = 255;
    if (outs[0].length) out_dtype_ = outs[0].tensors()[0].dtype();
  }
  const SaveList& list = op_->def->save;
  for (int i = 0; i < list.count; ++i) {
    const SaveItem& item = list.items[i];
    if (!item.output || !saves(item, *op_, *this, edges())) continue;
    auto save = [&](TensorImpl* t, int output) {
      if (num_saved_ >= saved_capacity_) throw InternalError(op_->name + ": too many saved outputs");
      Saved s;
      // Without its grad_fn, which is this node: no cycle.
      s.impl = shallow_alias(Tensor::borrow(t)).release_impl();
      s.version = t->storage ? t->storage->version : 0;
      s.output = int16_t(output);
      saved_[num_saved_++] = s;
    };
    if (op_->list_result >= 0) {
      for (uint32_t k = 0; k < outs[0].length; ++k) save(outs[0].tensors()[k].impl(), int(k));
    } else if (outs[item.index].kind == ValueKind::Tensor) {
      save(outs[item.index].tensor, item.index);
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
    if (c == '_') upper = true;
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
      vesta::detail::release(saved_[k].impl);
      saved_[k].impl = nullptr;
    }
  if (num_saved_) released_ = true;
}

void OpNode::destroy() {
  for (int k = 0; k < num_saved_; ++k)
    if (saved_[k].impl) vesta::detail::release(saved_[k].impl);
  delete more_out_sizes_;
  uint32_t bytes = block_bytes_;
  void* block = this;
  this->~OpNode();
  cpu::free(block, bytes);
}

int OpNode::first_edge(int arg) const {
  int e = 0;
  for (int k = 0; k < op_->num_tensor_args; ++k) {
    int i = op_->tensor_args[k];
    if (i == arg) return e;
    e += attrs_[i].kind == ValueKind::TensorList ? int(attrs_[i].length) : 1;
  }
  throw InternalError(op_->name + ": argument " + std::to_string(arg) + " is not a tensor");
}
int OpNode::edge_count(int arg) const { return attrs_[arg].kind == ValueKind::TensorList ? int(attrs_[arg].length) : 1; }

IntArrayRef OpNode::out_sizes(int j) const {
  if (j == 0 && out_ndim_ != 255) return {out_sizes_, out_ndim_};
  return (*more_out_sizes_)[size_t(j)];
}

int OpNode::find_saved(int index, bool output, int element) const {
  int edge = output ? -1 : first_edge(index) + element;
  for (int k = 0; k < num_saved_; ++k)
    if (output ? saved_[k].output == index + element : saved_[k].edge == edge) return k;
  return -1;
}

Tensor OpNode::unpack(int slot) {
  Saved& s = saved_[slot];
  VESTA_CHECK(!released_ && s.impl, name(), ": trying to backward through the graph a second time, but its saved tensors were freed; "
              "pass retain_graph=true to the first backward");
  TensorImpl* t = s.impl;
  if (t->storage && t->storage->version != s.version) {
    throw ValueError(vesta::detail::message(
        name(), ": a tensor saved for the gradient of ", op_->name, " (", s.output >= 0 ? "its output" : "its input", " ",
        s.output >= 0 ? std::to_string(s.output) : std::to_string(s.edge), ", ", to_string(t->dtype), ") was modified by an in-place operation",
        last_in_place_op(t->storage), ": it is at version ", t->storage->version, ", expected version ", s.version));
  }
  if (!create_graph) return Tensor::borrow(t);
  // Reconnect: a fresh alias whose history is the original edge, or this node for an output.
  if (s.output >= 0) {
    Tensor alias = shallow_alias(Tensor::borrow(t));
    attach_output(alias, this, uint32_t(s.output));
    return alias;
  }
  Edge& e = edges()[size_t(s.edge)];
  if (!e.node) return Tensor::borrow(t);  // a leaf was saved itself
  Tensor alias = shallow_alias(Tensor::borrow(t));
  attach_output(alias, e.node, e.output_nr);
  return alias;
}

void OpNode::apply(std::span<Tensor> cotangents, std::span<Tensor> out) {
  dys = cotangents;
  gradients = out;
  create_graph = thread_state.grad_mode;
  if (op_->def->materialize) {
    for (size_t j = 0; j < cotangents.size(); ++j)
      if (!cotangents[j].defined()) cotangents[j] = zeros(out_sizes(int(j)), TensorOptions(out_dtype_));
  }
  op_->def->vjp(Grad(*op_, attrs_, *this));
  dys = {};
  gradients = {};
  // Fit each gradient to its input: sum over broadcast dims, cast, drop an imaginary part.
  for (size_t k = 0; k < out.size(); ++k) {
    Tensor& g = out[k];
    if (!g.defined()) continue;
    const InputMeta& m = metas_[k];
    IntArrayRef want(m.sizes, m.ndim);
    if (is_complex(g.dtype()) && !is_complex(m.dtype)) g = vesta::real(g);
    if (!(g.sizes() == want)) g = sum_to_size(g, want);
    if (g.dtype() != m.dtype) g = g.to(m.dtype);
  }
}

}  // namespace autograd

// ---- what a vjp sees ----
namespace {
autograd::OpNode& as_op_node(GradNode& n) { return static_cast<autograd::OpNode&>(n); }
}  // namespace

Tensor Grad::dy(int j) const { return as_op_node(node_).dys[size_t(j)]; }
Tensor Grad::in(int i) const {
  auto& n = as_op_node(node_);
  if (values_[i].is_none()) return Tensor();
  int slot = n.find_saved(i, false);
  VESTA_CHECK_AS(InternalError, slot >= 0, op_.name, ": the vjp reads input ", i, ", which .save does not keep");
  return n.unpack(slot);
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
Tensor Grad::out(int j) const {
  auto& n = as_op_node(node_);
  int slot = n.find_saved(j, true);
  VESTA_CHECK_AS(InternalError, slot >= 0, op_.name, ": the vjp reads output ", j, ", which .save does not keep");
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
  n.gradients[size_t(n.first_edge(i))] = std::move(gradient);
}
void Grad::set(int i, std::vector<Tensor> list) const {
  auto& n = as_op_node(node_);
  size_t first = size_t(n.first_edge(i));
  for (size_t k = 0; k < list.size(); ++k)
    if (n.edges()[first + k].valid()) n.gradients[first + k] = std::move(list[k]);
}
bool Grad::create_graph() const { return as_op_node(node_).create_graph; }

}  // namespace vesta
