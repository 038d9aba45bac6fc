#pragma once
// The nodes of the backward graph. A node stands for one recorded call; its edges lead to what its inputs came from:
// another node, or a leaf. Engine state (cotangents, dependency count, run) lives inside the node, so a backward pass
// needs no hash map.
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
  TensorImpl* impl;  // owned, unless it is the leaf of its edge, which the node holds anyway
  uint32_t version;
  int16_t edge;    // input: the edge that reconnects it to the graph; -1 for outputs
  int16_t output;  // output of this node; -1 for inputs
};

struct Packed;

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
  uint64_t sequence;
  uint32_t num_outputs = 1;

  // ---- engine ----
  std::atomic<uint64_t> run{0};  // the backward pass that visits this node; 0: none
  uint32_t deps = 0;
  bool needed = true;
  Tensor* cotangents() { return num_outputs == 1 ? &one_cotangent_ : many_cotangents(); }
  void clear_cotangents() {
    one_cotangent_.reset();
    if (many_)
      for (auto& t : *many_) t.reset();
  }

  // Hooks and retained gradients of outputs: (output_nr, owner's ext), references owned.
  struct OutputExt {
    uint32_t output_nr;
    TensorExt* ext;
  };
  std::vector<OutputExt>* output_exts = nullptr;

  // Where the forward call was made, in anomaly mode.
  std::vector<uintptr_t>* recorded_at = nullptr;
  void remember_place();
  std::string place() const;  // "main at train.cpp:42", or empty

 protected:
  ~Node() override {
    release_edges();
    if (output_exts || many_ || recorded_at) [[unlikely]]
      delete_rare_parts();
  }
  void release_edges();
  Tensor* many_cotangents();
  Edge* edges_ = nullptr;
  size_t num_edges_ = 0;

 private:
  void delete_rare_parts();
  Tensor one_cotangent_;
  std::vector<Tensor>* many_ = nullptr;
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
// Only such tensors take part in gradients.
inline bool differentiable(DType t) { return is_floating_point(t) || is_complex(t); }
void attach_output(TensorImpl* t, Node* node, uint32_t output_nr);

// What the sizes and dtypes of the inputs were.
struct InputMeta {
  DType dtype;
  uint8_t ndim;
  const int64_t* sizes;
};

// A recorded operator call. One allocation: edges, saved tensors, attributes and metas follow the object.
class OpNode final : public Node {
 public:
  // Copies what the block's vjp may ask for; `args` are the call's. One edge per flattened tensor argument. Null where
  // no argument leads anywhere.
  static OpNode* record(const Op& op, const Value* args);
  void save_outputs(const Value* outs);

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
  const Tensor& unpack(int slot);
  const Tensor& keep(Tensor t);
  int find_saved(int index, bool output, int element = 0) const;
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
  OpNode() = default;
  int first_edge_after_lists(int arg) const;
  void describe(TensorImpl* input, int64_t*& size_words);
  bool needs_save(const SaveItem& item) const;
  void save_input(TensorImpl* t, int arg, int edge);
  [[noreturn]] void refuse_inference(int arg) const;
  void pack(TensorImpl* t, int edge, int output);  // save, where hooks are set
  const Tensor& unpack_hooked(const Saved& s);
  bool leads_somewhere() const {
    for (const Edge *e = edges_, *end = e + num_edges_; e != end; ++e)
      if (e->valid()) return true;
    return false;
  }
  void remember_sizes(TensorImpl* t, size_t j);
  void remember_more_sizes(TensorImpl* t, size_t j);  // those that do not fit into out_sizes_
  // A second backward, or a saved tensor that was written since.
  [[noreturn]] void throw_modified(const Saved& s) const;
  // Drops the reference of a saved tensor, if it has one.
  void drop(Saved& s) {
    if (s.edge < 0 || edges_[s.edge].leaf != s.impl) vesta::detail::release(s.impl);
  }
  const Op* op_ = nullptr;
  Value* attrs_ = nullptr;  // arguments by position, tensors blanked
  Saved* saved_ = nullptr;
  InputMeta* metas_ = nullptr;
  static constexpr uint8_t kOutDims = 6, kElsewhere = 255;
  int64_t out_sizes_[kOutDims];  // of output 0, unless out_ndim_ is kElsewhere
  DType out_dtype_ = DType::Undefined;
  uint8_t out_ndim_ = 0;
  uint16_t num_saved_ = 0, saved_capacity_ = 0;
  bool released_ = false;
  uint32_t block_bytes_ = 0;
  // With SavedTensorHooks: what they returned; Saved::impl is null and Saved::version is the index.
  std::vector<Packed>* packed_ = nullptr;
  std::vector<std::vector<int64_t>>* more_out_sizes_ = nullptr;  // of outputs 1, 2, ... and of long shapes
};

}  // namespace vesta::autograd
