#pragma once
// The nodes of the backward graph. A node stands for one recorded call; its edges lead to what its inputs came from:
// another node, or a leaf. Engine state (cotangents, dependency count, run) lives inside the node, so a backward pass
// needs no hash map.
#include <span>

#include "core/registry.h"
#include "core/tensor_ext.h"

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
  TensorImpl* impl = nullptr;  // owned
  uint32_t version = 0;
  int16_t edge = -1;    // input: the edge that reconnects it to the graph
  int16_t output = -1;  // output of this node
};

class Node : public GradNode {
 public:
  Node();
  // Gradients for each edge from the cotangents of each output; undefined means zero.
  virtual void apply(std::span<Tensor> cotangents, std::span<Tensor> gradients) = 0;
  virtual std::string name() const = 0;
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
  void clear_cotangents();

  // Hooks and retained gradients of outputs: (output_nr, owner's ext), references owned.
  struct OutputExt {
    uint32_t output_nr;
    TensorExt* ext;
  };
  std::vector<OutputExt>* output_exts = nullptr;

 protected:
  ~Node() override;
  void release_edges();
  Tensor* many_cotangents();
  Edge* edges_ = nullptr;
  size_t num_edges_ = 0;

 private:
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

// The edge that the gradient of t follows; invalid where t needs none. Views that are older than their base's last
// in-place write get a fresh node first.
Edge gradient_edge(TensorImpl* t);
// By its own flag, or as a view of a base that came to require grad after the view was made.
bool view_requires_grad(const TensorImpl* view);
inline bool requires_grad(const TensorImpl* t) {
  return (t->bits & TensorImpl::kAutograd) || ((t->bits & TensorImpl::kView) && view_requires_grad(t));
}
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
  // Copies what the block's vjp may ask for; `args` are the call's. Takes `edges` (one per flattened tensor argument).
  static OpNode* record(const Op& op, const Value* args, std::span<Edge> edges);
  void save_outputs(const Value* outs);

  void apply(std::span<Tensor> cotangents, std::span<Tensor> gradients) override;
  std::string name() const override;
  void release_saved() override;
  void destroy() override;

  const Op& op() const { return *op_; }
  int first_edge(int arg) const;  // of tensor argument `arg`
  int edge_count(int arg) const;
  Tensor unpack(int slot);
  int find_saved(int index, bool output, int element = 0) const;
  const InputMeta& input_meta(int edge) const { return metas_[edge]; }
  IntArrayRef out_sizes(int j) const;
  void save_input(TensorImpl* t, int arg, int edge);
  std::span<Tensor> gradients;  // during apply
  std::span<Tensor> dys;
  bool create_graph = false;

 private:
  OpNode() = default;
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
  std::vector<std::vector<int64_t>>* more_out_sizes_ = nullptr;  // of outputs 1, 2, ... and of long shapes
};

}  // namespace vesta::autograd
