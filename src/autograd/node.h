#pragma once
// The nodes of the backward graph. A node stands for one recorded call; its edges lead to what its inputs came from:
// another node, or a leaf. Engine state (cotangents, dependency count, run) lives inside the node, so a backward pass
// needs no hash map.
#include <cstring>
#include <forward_list>
#include <span>

#include "core/registry.h"
#include "core/storage.h"
#include "core/tensor_ext.h"
#include "core/thread_state.h"

namespace vesta::autograd {

class Node;

// Where the gradient of an input goes. Owns a reference to its target.
struct Edge {
  Node* node = nullptr;        // recorded call whose output `output_nr` the input was
  TensorImpl* leaf = nullptr;  // or a leaf tensor
  uint32_t output_nr = 0;
  bool valid() const { return node || leaf; }
};

// A tensor kept for backward, with the version it had.
struct Saved {
  TensorImpl* impl = nullptr;  // owned, unless it is the leaf of its edge, which the node holds anyway
  uint32_t version = 0;
  int32_t edge = -1;    // input: the edge that reconnects it to the graph; -1 for outputs
  int32_t output = -1;  // output of this node; -1 for inputs
  bool used() const { return edge >= 0 || output >= 0; }
};

class Node : public GradNode {
 public:
  Node() : sequence(thread_state.sequence++) {}
  // Gradients for each edge from the cotangents of each output; undefined means zero.
  virtual void apply(std::span<Tensor> cotangents, std::span<Tensor> gradients) = 0;
  // Drops what only backward needs; a later apply throws.
  virtual void release_saved() = 0;
  // Ends the node's life: destructor and memory.
  virtual void destroy() { delete this; }

  std::span<Edge> edges() { return {edges_, num_edges_}; }
  // Whether backward asks for the gradient of an edge.
  bool wants(size_t edge) const { return edges_[edge].valid() && (edge >= 64 || !(unwanted >> edge & 1)); }

  uint32_t num_outputs = 1;
  uint64_t sequence;

  // ---- engine ----
  std::atomic<uint64_t> run{0};  // the backward pass that visits this node; 0: none
  uint64_t unwanted = 0;         // edges (the first 64) whose gradient this pass does not ask for
  uint32_t deps = 0;
  bool needed = true;
  Tensor* cotangents() { return num_outputs == 1 ? &one_cotangent_ : many_cotangents(); }
  void clear_cotangents() {
    one_cotangent_.reset();
    if (rare_) [[unlikely]]
      for (auto& t : rare_->cotangents) t.reset();
  }

  // Hooks and retained gradients of outputs: (output_nr, owner's ext), references owned.
  struct OutputExt {
    uint32_t output_nr;
    TensorExt* ext;
  };
  std::span<const OutputExt> output_exts() const {
    return rare_ ? std::span<const OutputExt>(rare_->output_exts) : std::span<const OutputExt>();
  }
  void add_output_ext(OutputExt e) { rare().output_exts.push_back(e); }

  // Where the forward call was made, in anomaly mode.
  void remember_place();
  std::string place() const;  // "main at train.cpp:42", or empty

 protected:
  ~Node() override {
    release_edges();
    if (rare_) [[unlikely]]
      delete_rare();
  }
  void release_edges();

  uint32_t num_edges_ = 0;
  Edge* edges_ = nullptr;

 private:
  friend void vesta::release_grad_node(GradNode*);
  struct Rare {
    std::vector<OutputExt> output_exts;
    std::vector<uintptr_t> recorded_at;
    std::vector<Tensor> cotangents;  // of a node with several outputs
  };
  Rare& rare() {
    if (!rare_) rare_ = new Rare;
    return *rare_;
  }
  void delete_rare();
  Tensor* many_cotangents();
  Tensor one_cotangent_;
  Rare* rare_ = nullptr;
  Node* next_dead_;  // while it waits for its release
};

// A node with edges in a vector: custom functions, CopySlices, AsStrided.
class VectorNode : public Node {
 public:
  void set_edges(std::vector<Edge> edges);

 protected:
  ~VectorNode() override { release_edges(); }  // before storage_ goes

 private:
  std::vector<Edge> storage_;
};

// The edge of t as it is.
inline Edge edge_of(TensorImpl* t) {
  if (t->grad_fn) return {static_cast<Node*>(retain(t->grad_fn)), nullptr, t->output_nr};
  if (!(t->bits & TensorImpl::kAutograd)) return {};
  t->refs.fetch_add(1, std::memory_order_relaxed);
  return {nullptr, t, 0};
}
Edge view_gradient_edge(TensorImpl* view);
// The edge that the gradient of t follows; invalid where t needs none. Views that are older than their base's last
// in-place write get a fresh node first.
inline Edge gradient_edge(TensorImpl* t) {
  return t->bits & TensorImpl::kView ? view_gradient_edge(t) : edge_of(t);
}
inline void release_edge(const Edge& e) {
  if (e.node) release_grad_node(e.node);
  if (e.leaf) vesta::detail::release(e.leaf);
}
inline void Node::release_edges() {
  for (Edge *e = edges_, *end = edges_ + num_edges_; e != end; ++e) release_edge(*e);
  num_edges_ = 0;
}
// By its own flag, or as a view of a base that came to require grad after the view was made.
bool view_requires_grad(const TensorImpl* view);
inline bool requires_grad(const TensorImpl* t) {
  return (t->bits & TensorImpl::kAutograd) || ((t->bits & TensorImpl::kView) && view_requires_grad(t));
}
// Only such tensors take part in gradients; no other ever has kAutograd set, but through the base of a view.
inline bool differentiable(DType t) { return is_floating_point(t) || is_complex(t); }
// Makes t output `output_nr` of the node, where t is differentiable.
void attach_output(TensorImpl* t, Node* node, uint32_t output_nr);

// What the size and dtype of an input were.
struct InputMeta {
  int64_t inline_sizes[TensorImpl::kInlineDims];  // more dims: inline_sizes[0] points to them
  DType dtype = DType::Undefined;
  uint8_t ndim = 0;
  IntArrayRef sizes() const {
    return {
        ndim <= TensorImpl::kInlineDims ? inline_sizes : reinterpret_cast<const int64_t*>(inline_sizes[0]),
        ndim};
  }
};

// A recorded operator call. One allocation: edges, saved tensors, attributes and metas follow the object.
class OpNode final : public Node {
 public:
  // Copies what the block's vjp may ask for; `args` are the call's. One edge per flattened tensor argument. Null where
  // no argument leads anywhere.
  static OpNode* record(const Op& op, const Value* args);
  // The same for an op that records_simply.
  static OpNode* record_simple(const Op& op, const Value* args);
  void save_outputs(const Value* outs);
  // The same for the one output of an op that saves none.
  void remember_output(const TensorImpl* t) {
    if (t->ndim > TensorImpl::kInlineDims) [[unlikely]]
      return remember_sizes(t, 0);
    out_.dtype = t->dtype;
    out_.ndim = t->ndim;
    std::memcpy(out_.inline_sizes, t->inline_sizes, sizeof(out_.inline_sizes));
  }

  void apply(std::span<Tensor> cotangents, std::span<Tensor> gradients) override;
  std::string name() const override;
  void release_saved() override;
  void destroy() override;

  const Op& op() const { return *op_; }
  // The first edge of tensor argument `arg`, and how many it has.
  int first_edge(int arg) const {
    if (!op_->has_tensor_lists && op_->edge_of_arg[arg] >= 0) [[likely]]
      return op_->edge_of_arg[arg];
    return first_edge_after_lists(arg);
  }
  int edge_count(int arg) const {
    return attrs_[arg].kind == ValueKind::TensorList ? int(attrs_[arg].length) : 1;
  }
  // Valid until the running apply ends.
  const Tensor& unpack(const Saved& s);
  const Tensor& keep(Tensor t);
  // Input or output `index` (of a list: its element); null where it was not kept.
  const Saved* find_saved(int index, bool output, int element = 0) const {
    if (lists_) [[unlikely]]
      return find_listed(index, output, element);
    const SaveList& list = op_->def->save;
    for (int k = 0; k < list.count; ++k)
      if (list.items[k].index == index && list.items[k].output == output && saved_[k].used())
        return &saved_[k];
    return nullptr;
  }
  const InputMeta& input_meta(int edge) const { return metas_[edge]; }
  IntArrayRef out_sizes(int j) const;
  // What a vjp reads and writes, during apply.
  struct Running {
    std::span<Tensor> dys, gradients;
    bool create_graph;
    std::forward_list<Tensor> kept;  // reconnected or conjugated for this run
  };
  Running* running = nullptr;

 private:
  OpNode(const Op& op, uint32_t bytes, bool lists) : op_(&op), block_bytes_(bytes), lists_(lists) {}
  static OpNode* make(const Op& op, bool lists, size_t num_edges, size_t num_saved, size_t tail_bytes);
  static size_t tail_bytes(const Op& op, const Value* args);
  void copy_pointed();  // what list, string and complex attributes point to
  int first_edge_after_lists(int arg) const;
  bool describe(TensorImpl* input, Edge& edge, InputMeta& meta);
  void describe_many_dims(const TensorImpl* input, InputMeta& meta);
  bool needs_save(const SaveItem& item) const;
  void save_input(Saved& s, TensorImpl* t, int arg, int edge);
  void save_input_specially(Saved& s, TensorImpl* t, int arg);  // hooks, written arguments, inference tensors
  void keep_input(Saved& s, TensorImpl* t);
  void save_output(Saved& s, TensorImpl* t, size_t j);
  void pack(Saved& s, TensorImpl* t);  // save, where hooks are set
  const Tensor& unpack_hooked(const Saved& s);
  const Saved* find_listed(int index, bool output, int element) const;
  void remember_sizes(const TensorImpl* t, size_t j);
  uint32_t wanted_arguments() const;
  // A second backward, or a saved tensor that was written since.
  [[noreturn]] void throw_modified(const Saved& s) const;
  // Drops the reference of a saved tensor, if it has one.
  void drop(const Saved& s) {
    if (s.edge < 0 || edges_[s.edge].leaf != s.impl) vesta::detail::release(s.impl);
  }
  const Op* op_;
  Value* attrs_ = nullptr;  // arguments by position, tensors blanked
  Saved* saved_ =
      nullptr;  // by position in the block's .save; of ops with lists: the first num_listed_, as they came
  InputMeta* metas_ = nullptr;
  uint32_t block_bytes_, num_saved_ = 0, num_listed_ = 0;
  static constexpr size_t kListedOutputs = 8;  // the most that a list result may save
  bool released_ = false;
  const bool lists_;  // the op takes or returns one
  struct Extra;       // long shapes, more outputs, what hooks returned
  Extra* extra_ = nullptr;
  Extra& extra();
  InputMeta out_;  // of output 0; its sizes only up to kInlineDims dims
};

}  // namespace vesta::autograd
