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
struct Dead {
  autograd::Node* first = nullptr;
  bool releasing = false;
};
constinit thread_local Dead dead __attribute__((tls_model("initial-exec")));
}  // namespace

void release_grad_node(GradNode* released) {
  if (released->refs.load(std::memory_order_acquire) != 1 &&
      released->refs.fetch_sub(1, std::memory_order_acq_rel) != 1)
    return;
  auto* node = static_cast<autograd::Node*>(released);
  if (dead.releasing) {
    node->next_dead_ = dead.first;
    dead.first = node;
    return;
  }
  dead.releasing = true;
  node->destroy();
  while (autograd::Node* next = dead.first) {
    dead.first = next->next_dead_;
    next->destroy();
  }
  dead.releasing = false;
}

namespace autograd {

void Node::delete_rare() {
  for (auto& o : rare_->output_exts) release_ext(o.ext);
  delete rare_;
}

void Node::remember_place() { rare().recorded_at = capture_stack(1); }
std::string Node::place() const {
  return rare_ && !rare_->recorded_at.empty() ? first_user_frame(describe_stack(rare_->recorded_at))
                                              : std::string();
}

Tensor* Node::many_cotangents() {
  Rare& r = rare();
  if (r.cotangents.size() != num_outputs) r.cotangents.resize(num_outputs);
  return r.cotangents.data();
}
void VectorNode::set_edges(std::vector<Edge> e) {
  storage_ = std::move(e);
  edges_ = storage_.data();
  num_edges_ = uint32_t(storage_.size());
}

namespace {
// The value that t's hooks were registered on is about to be overwritten: they stay with the node that made it. That its
// gradient is retained is said of the tensor, and moves on.
void leave_hooks_behind(TensorImpl* t, Node* next, uint32_t output_nr) {
  TensorExt* before = t->ext;
  auto* now = new TensorExt;
  now->grad = std::move(before->grad);
  now->tangent = std::move(before->tangent);
  now->next_hook_id = before->next_hook_id;
  now->retains_grad = std::exchange(before->retains_grad, false);
  t->ext = now;
  release_ext(before);
  if (!now->retains_grad) return;
  now->refs.fetch_add(1, std::memory_order_relaxed);
  next->add_output_ext({output_nr, now});
}
}  // namespace

void attach_output(TensorImpl* impl, Node* node, uint32_t output_nr) {
  if (!differentiable(impl->dtype)) return;
  if (impl->ext && (!impl->ext->hooks.empty() || impl->ext->retains_grad)) [[unlikely]]
    leave_hooks_behind(impl, node, output_nr);
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

// What few nodes have.
struct OpNode::Extra {
  std::vector<std::vector<int64_t>> out_sizes;          // of outputs 1, 2, ... and of long shapes
  std::forward_list<std::vector<int64_t>> input_sizes;  // of inputs with many dims
  // With SavedTensorHooks: what they returned; Saved::impl is null and Saved::version is the index.
  std::vector<Packed> packed;
};
OpNode::Extra& OpNode::extra() {
  if (!extra_) extra_ = new Extra;
  return *extra_;
}

void OpNode::describe_many_dims(const TensorImpl* t, InputMeta& meta) {
  const int64_t* sizes = const_cast<TensorImpl*>(t)->sizes_data();
  meta.inline_sizes[0] =
      reinterpret_cast<int64_t>(extra().input_sizes.emplace_front(sizes, sizes + t->ndim).data());
}

// The type and sizes of a tensor argument, and where its gradient goes. Whether it leads somewhere.
[[gnu::always_inline]] inline bool OpNode::describe(TensorImpl* t, Edge& edge, InputMeta& meta) {
  meta.dtype = t->dtype;
  meta.ndim = t->ndim;
  if (t->ndim <= TensorImpl::kInlineDims) [[likely]]
    std::memcpy(meta.inline_sizes, t->inline_sizes, sizeof(meta.inline_sizes));  // a few vector moves
  else
    describe_many_dims(t, meta);
  if (t->bits & TensorImpl::kView) [[unlikely]] {
    if (differentiable(t->dtype) && requires_grad(t)) edge = view_gradient_edge(t);
  } else {
    edge = edge_of(t);
  }
  return edge.valid();
}

[[gnu::always_inline]] inline void OpNode::save_input(Saved& s, TensorImpl* t, int arg, int edge) {
  s.edge = edge;
  s.version = t->storage ? t->storage->version : 0;
  if (thread_state.saved_hooks || op_->mutates || (t->bits & TensorImpl::kInference)) [[unlikely]]
    save_input_specially(s, t, arg);
  else if (TensorImpl* leaf = edges_[edge].leaf)  // the edge keeps it
    s.impl = leaf;
  else
    keep_input(s, t);
}

void OpNode::keep_input(Saved& s, TensorImpl* t) {
  if (t->grad_fn || !(t->bits & TensorImpl::kAutograd)) {
    // An alias: saving the tensor itself would make a cycle once it is written in place (its grad_fn would reach us).
    // Only a leaf that requires grad can never come to have a grad_fn.
    s.impl = shallow_alias(t).release_impl();
  } else {
    s.impl = t;
    if (edges_[s.edge].leaf != t) t->refs.fetch_add(1, std::memory_order_relaxed);
  }
}

// The block of a node whose arrays have these lengths; its edges and saved tensors are empty.
[[gnu::always_inline]] inline OpNode* OpNode::make(const Op& op, bool lists, size_t num_edges,
                                                   size_t num_saved, size_t tail_bytes) {
  const size_t bytes = sizeof(OpNode) + num_edges * (sizeof(Edge) + sizeof(InputMeta)) +
                       num_saved * sizeof(Saved) + op.num_args * sizeof(Value) + tail_bytes;
  char* at = static_cast<char*>(cpu::allocate(bytes));
  auto* node = new (at) OpNode(op, uint32_t(bytes), lists);
  at += sizeof(OpNode);
  auto take = [&]<class T>(T*& field, size_t count) {
    field = reinterpret_cast<T*>(at);
    at += count * sizeof(T);
  };
  take(node->edges_, num_edges);
  take(node->saved_, num_saved);
  take(node->attrs_, op.num_args);
  take(node->metas_, num_edges);
  for (size_t k = 0; k < num_edges; ++k) node->edges_[k] = Edge();
  for (size_t k = 0; k < num_saved; ++k) node->saved_[k] = Saved();
  node->num_edges_ = uint32_t(num_edges);
  node->num_saved_ = uint32_t(num_saved);
  if (thread_state.anomaly) [[unlikely]]
    node->remember_place();
  return node;
}

size_t OpNode::tail_bytes(const Op& op, const Value* args) {
  size_t bytes = 0;
  for (uint32_t left = op.pointer_args; left; left &= left - 1)
    bytes += attr_bytes(args[std::countr_zero(left)]);
  return bytes;
}

void OpNode::copy_pointed() {
  char* at = reinterpret_cast<char*>(metas_ + num_edges_);  // the end of the block
  for (uint32_t left = op_->pointer_args; left; left &= left - 1) {
    Value& v = attrs_[std::countr_zero(left)];
    const size_t bytes = attr_bytes(v);
    if (!bytes) continue;
    const bool bytes_only = v.kind == ValueKind::BoolList || v.kind == ValueKind::String;
    std::memcpy(at, v.ptr, bytes_only ? v.length : bytes);
    v.ptr = at;
    at += bytes;
  }
}

OpNode* OpNode::record_simple(const Op& op, const Value* args) {
  const SaveList& list = op.def->save;
  const size_t count = op.leading_tensors, tail = op.pointer_args ? tail_bytes(op, args) : 0;
  OpNode* node = make(op, false, count, size_t(list.count), tail);
  Value* attrs = node->attrs_;
  Edge* edges = node->edges_;
  try {
    bool leads_somewhere = false;
    for (size_t k = 0; k < count; ++k) {
      attrs[k].kind = args[k].kind;
      attrs[k].tensor = nullptr;
      if (args[k].kind == ValueKind::Tensor) [[likely]]
        leads_somewhere |= node->describe(args[k].tensor, edges[k], node->metas_[k]);
      else
        node->metas_[k] = InputMeta();
    }
    if (!leads_somewhere) [[unlikely]] {
      release_grad_node(node);
      return nullptr;
    }
    for (size_t k = count; k < op.num_args; ++k) attrs[k] = args[k];
    if (tail) [[unlikely]]
      node->copy_pointed();
    for (int i = 0; i < list.count; ++i) {
      const SaveItem& item = list.items[i];
      if (item.output || (item.needs >= 0 && !edges[item.needs].valid())) continue;
      const Value& v = args[item.index];
      if (v.kind == ValueKind::Tensor) [[likely]]
        node->save_input(node->saved_[i], v.tensor, item.index, item.index);
    }
  } catch (...) {
    release_grad_node(node);
    throw;
  }
  return node;
}

OpNode* OpNode::record(const Op& op, const Value* args) {
  const SaveList& list = op.def->save;
  size_t num_edges = op.num_tensor_args, capacity = size_t(list.count);
  for (int k = 0; k < op.num_tensor_args; ++k)
    if (const Value& v = args[op.tensor_args[k]]; v.kind == ValueKind::TensorList) {
      capacity += v.length;
      num_edges = num_edges + v.length - 1;
    }
  const bool lists = op.has_tensor_lists || op.list_result >= 0;
  if (op.list_result >= 0) capacity += kListedOutputs;
  OpNode* node = make(op, lists, num_edges, capacity, tail_bytes(op, args));
  Value* attrs = node->attrs_;
  try {
    // Tensors are blanked; a list keeps its length.
    for (int i = 0; i < op.num_args; ++i) attrs[i] = args[i];
    bool leads_somewhere = false;
    Edge* edge = node->edges_;
    InputMeta* meta = node->metas_;
    auto describe = [&](TensorImpl* t) {
      *meta = InputMeta();
      if (t) leads_somewhere |= node->describe(t, *edge, *meta);
      ++edge;
      ++meta;
    };
    for (int k = 0; k < op.num_tensor_args; ++k) {
      const Value& v = args[op.tensor_args[k]];
      attrs[op.tensor_args[k]].tensor = nullptr;
      if (v.kind != ValueKind::TensorList)
        describe(v.kind == ValueKind::Tensor ? v.tensor : nullptr);
      else
        for (auto& t : v.tensors()) describe(t.impl());
    }
    if (!leads_somewhere) {
      release_grad_node(node);
      return nullptr;
    }
    node->copy_pointed();
    Saved* next = node->saved_;
    for (int i = 0; i < list.count; ++i) {
      const SaveItem& item = list.items[i];
      if (item.output || !node->needs_save(item)) continue;
      const Value& v = args[item.index];
      int at = node->first_edge(item.index);
      if (v.kind == ValueKind::Tensor)
        node->save_input(lists ? *next++ : node->saved_[i], v.tensor, item.index, at);
      if (v.kind != ValueKind::TensorList) continue;
      for (auto& t : v.tensors()) {
        if (t.defined()) node->save_input(*next++, t.impl(), item.index, at);
        ++at;
      }
    }
    node->num_listed_ = uint32_t(next - node->saved_);
  } catch (...) {
    release_grad_node(node);
    throw;
  }
  return node;
}

bool OpNode::needs_save(const SaveItem& item) const {
  if (item.needs < 0) return true;
  int first = first_edge(item.needs), count = edge_count(item.needs);
  for (int k = 0; k < count; ++k)
    if (edges_[first + k].valid()) return true;
  return false;
}

void OpNode::save_input_specially(Saved& s, TensorImpl* t, int arg) {
  VESTA_CHECK(!(t->bits & TensorImpl::kInference), op_->name,
              ": inference tensors cannot be saved for backward; clone ", op_->schema.args[size_t(arg)].name,
              " outside of InferenceMode first");
  if (op_->schema.args[size_t(arg)].mutated) {  // the call overwrites it: keep what it was
    NoGradGuard no_grad;
    Tensor before = Tensor::borrow(t).clone();
    if (thread_state.saved_hooks) return pack(s, before.impl());
    s.impl = before.release_impl();
    s.version = 0;
  } else if (thread_state.saved_hooks) {
    pack(s, t);
  } else {
    keep_input(s, t);
  }
}

void OpNode::pack(Saved& s, TensorImpl* t) {
  auto& packed = extra().packed;
  packed.push_back(static_cast<SavedTensorHooks*>(thread_state.saved_hooks)->pack(shallow_alias(t)));
  s.version = uint32_t(packed.size() - 1);
}

// The edge of a packed leaf leads to the leaf itself, so that second derivatives reach it.
const Tensor& OpNode::unpack_hooked(const Saved& s) {
  VESTA_CHECK(!released_, name(),
              ": trying to backward through the graph a second time, but its saved tensors were freed; "
              "pass retain_graph=true to the first backward");
  Tensor t = extra_->packed[s.version].unpack();
  if (!running->create_graph) return keep(std::move(t));
  Edge e = s.output >= 0 ? Edge{this, nullptr, uint32_t(s.output)} : edges()[size_t(s.edge)];
  if (e.leaf) return Tensor::in_slot(edges()[size_t(s.edge)].leaf);
  Tensor alias = shallow_alias(t);
  if (e.node) attach_output(alias.impl(), e.node, e.output_nr);
  return keep(std::move(alias));
}

void OpNode::remember_sizes(const TensorImpl* t, size_t j) {
  if (j == 0) {
    out_.dtype = t->dtype;
    out_.ndim = t->ndim;
  }
  auto& sizes = extra().out_sizes;
  if (sizes.size() <= j) sizes.resize(j + 1);
  const int64_t* from = const_cast<TensorImpl*>(t)->sizes_data();
  sizes[j].assign(from, from + t->ndim);
}

void OpNode::save_output(Saved& s, TensorImpl* t, size_t j) {
  s.output = int32_t(j);
  if (thread_state.saved_hooks) [[unlikely]]
    return pack(s, t);
  s.version = t->storage ? t->storage->version : 0;
  s.impl = shallow_alias(t).release_impl();  // without its grad_fn, which is this node: no cycle
}

void OpNode::save_outputs(const Value* outs) {
  const bool is_list = op_->list_result >= 0;
  num_outputs = is_list ? outs[0].length : op_->num_outs;
  auto output = [&](size_t j) {
    return is_list                             ? outs[0].tensors()[j].impl()
           : outs[j].kind == ValueKind::Tensor ? outs[j].tensor
                                               : nullptr;
  };
  if (num_outputs)
    if (TensorImpl* t = output(0)) remember_output(t);
  for (size_t j = 1; j < num_outputs; ++j)
    if (TensorImpl* t = output(j)) remember_sizes(t, j);
  if (!op_->saves_outputs) return;
  const SaveList& list = op_->def->save;
  for (int i = 0; i < list.count; ++i) {
    const SaveItem& item = list.items[i];
    if (!item.output || !needs_save(item)) continue;
    if (!lists_) {
      if (TensorImpl* t = output(size_t(item.index))) save_output(saved_[i], t, size_t(item.index));
      continue;
    }
    for (size_t j = is_list ? 0 : size_t(item.index); j < (is_list ? num_outputs : size_t(item.index) + 1);
         ++j) {
      TensorImpl* t = output(j);
      if (!t) continue;
      VESTA_CHECK_AS(InternalError, num_listed_ < num_saved_, op_->name, ": too many saved outputs");
      save_output(saved_[num_listed_++], t, j);
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
  for (Saved *k = saved_, *end = k + num_saved_; k != end; ++k) {
    released_ |= k->used();
    if (!k->impl) continue;
    drop(*k);
    k->impl = nullptr;
  }
  if (extra_) [[unlikely]]
    extra_->packed.clear();
}

void OpNode::destroy() {
  for (const Saved *k = saved_, *end = k + num_saved_; k != end; ++k)
    if (k->impl) drop(*k);
  if (extra_) [[unlikely]]
    delete extra_;
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
  if (j == 0 && out_.ndim <= TensorImpl::kInlineDims) return out_.sizes();
  if (!extra_ || extra_->out_sizes.size() <= size_t(j)) return {};  // it was undefined
  return extra_->out_sizes[size_t(j)];
}

const Saved* OpNode::find_listed(int index, bool output, int element) const {
  int edge = output ? -1 : first_edge(index) + element, wanted = output ? index + element : -1;
  for (uint32_t k = 0; k < num_listed_; ++k)
    if (saved_[k].edge == edge && saved_[k].output == wanted) return &saved_[k];
  return nullptr;
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
      ") has been modified by an inplace operation", last_in_place_op(s.impl->storage), ": it is at version ",
      s.impl->storage->version, ", expected version ", s.version));
}

const Tensor& OpNode::unpack(const Saved& s) {
  TensorImpl* t = s.impl;
  if (extra_ && !extra_->packed.empty()) [[unlikely]]
    return unpack_hooked(s);
  if (!t || (t->storage && t->storage->version != s.version)) [[unlikely]]
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
  if (is_complex(g.dtype()) && !is_complex(m.dtype)) g = vesta::real(g);
  if (!(g.sizes() == m.sizes())) g = sum_to_size(g, m.sizes());
  if (g.dtype() != m.dtype) g = g.to(m.dtype);
}
bool fits(const TensorImpl* g, const InputMeta& m) {
  if (g->dtype != m.dtype || g->ndim != m.ndim) return false;
  const int64_t* sizes = const_cast<TensorImpl*>(g)->sizes_data();
  const int64_t* wanted = m.sizes().data();
  for (int d = 0; d < m.ndim; ++d)
    if (sizes[d] != wanted[d]) return false;
  return true;
}
}  // namespace

// The arguments (a mask of positions) that a gradient is asked of; of a list: any element.
[[gnu::always_inline]] inline uint32_t OpNode::wanted_arguments() const {
  uint32_t mask = 0;
  if (!op_->has_tensor_lists) [[likely]] {
    for (int k = 0; k < op_->num_tensor_args; ++k) mask |= uint32_t(wants(size_t(k))) << op_->tensor_args[k];
    return mask;
  }
  int edge = 0;
  for (int k = 0; k < op_->num_tensor_args; ++k) {
    const int arg = op_->tensor_args[k];
    for (int end = edge + edge_count(arg); edge < end; ++edge) mask |= uint32_t(wants(size_t(edge))) << arg;
  }
  return mask;
}

void OpNode::apply(std::span<Tensor> cotangents, std::span<Tensor> out) {
  if (op_->def->materialize) [[unlikely]] {
    for (size_t j = 0; j < cotangents.size(); ++j)
      if (!cotangents[j].defined()) cotangents[j] = zeros(out_sizes(int(j)), TensorOptions(out_.dtype));
  }
  Running now{cotangents, out, thread_state.grad_mode, {}};
  struct Restore {
    OpNode* node;
    Running* before;
    ~Restore() { node->running = before; }
  } restore{this, running};
  running = &now;
  op_->def->vjp(Grad(*op_, attrs_, *this, cotangents.data(), wanted_arguments()));
  for (size_t k = 0; k < out.size(); ++k)
    if (TensorImpl* g = out[k].impl(); g && !fits(g, metas_[k])) fit(out[k], metas_[k]);
}

}  // namespace autograd

// ---- what a vjp sees ----
namespace {
autograd::OpNode& as_op_node(GradNode& n) { return static_cast<autograd::OpNode&>(n); }
}  // namespace

const Tensor& Grad::in(int i) const {
  static const Tensor none;
  auto& n = as_op_node(node_);
  const autograd::Saved* s = n.find_saved(i, false);
  if (!s) [[unlikely]] {
    VESTA_CHECK_AS(InternalError, values_[i].is_none(), op_.name, ": the vjp reads input ", i,
                   ", which .save does not keep");
    return none;
  }
  return n.unpack(*s);
}
const Tensor& Grad::in_conj(int i) const {
  const Tensor& t = in(i);
  return t.defined() && t.is_complex() ? as_op_node(node_).keep(t.conj()) : t;
}
std::vector<Tensor> Grad::in_list(int i) const {
  auto& n = as_op_node(node_);
  std::vector<Tensor> list;
  for (int k = 0; k < list_size(i); ++k) {
    const autograd::Saved* s = n.find_saved(i, false, k);
    list.push_back(s ? n.unpack(*s) : Tensor());
  }
  return list;
}
const Tensor& Grad::out(int j) const {
  auto& n = as_op_node(node_);
  const autograd::Saved* s = n.find_saved(j, true);
  VESTA_CHECK_AS(InternalError, s, op_.name, ": the vjp reads output ", j, ", which .save does not keep");
  return n.unpack(*s);
}
IntArrayRef Grad::sizes(int i) const { return list_sizes(i, 0); }
IntArrayRef Grad::list_sizes(int i, int element) const {
  auto& n = as_op_node(node_);
  return n.input_meta(n.first_edge(i) + element).sizes();
}
DType Grad::dtype_of(int i) const {
  auto& n = as_op_node(node_);
  return n.input_meta(n.first_edge(i)).dtype;
}
IntArrayRef Grad::out_sizes(int j) const { return as_op_node(node_).out_sizes(j); }
int Grad::list_size(int i) const { return as_op_node(node_).edge_count(i); }
bool Grad::needs(int i, int element) const {
  auto& n = as_op_node(node_);
  return n.wants(size_t(n.first_edge(i) + element));
}
void Grad::set(int i, Tensor gradient) const {
  auto& n = as_op_node(node_);
  n.running->gradients[size_t(n.first_edge(i))] = std::move(gradient);
}
void Grad::set(int i, std::vector<Tensor> list) const {
  auto& n = as_op_node(node_);
  size_t first = size_t(n.first_edge(i));
  for (size_t k = 0; k < list.size(); ++k)
    if (n.wants(first + k)) n.running->gradients[first + k] = std::move(list[k]);
}
bool Grad::create_graph() const { return as_op_node(node_).running->create_graph; }

}  // namespace vesta
