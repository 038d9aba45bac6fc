// Recording. A call whose block has a vjp becomes one node; one that has only a decomposition records its parts.
#include "autograd/interpreter.h"

#include "autograd/inplace.h"
#include "autograd/node.h"
#include "core/eager.h"
#include "vesta/ops.h"

namespace vesta::autograd {
namespace {

bool differentiable(DType t) { return is_floating_point(t) || is_complex(t); }

// The edges of a call's tensor arguments, flattened. References pass to the node, or are given back by release().
struct EdgeList {
  static constexpr size_t kInline = 8;
  Edge inline_edges[kInline];
  std::vector<Edge> more;
  size_t count = 0;
  bool any = false;

  void add(TensorImpl* t) {
    Edge e;
    if (t && requires_grad(t) && differentiable(t->dtype)) {
      e = gradient_edge(t);
      any |= e.valid();
    }
    if (count < kInline) [[likely]]
      inline_edges[count] = e;
    else {
      if (count == kInline) more.assign(inline_edges, inline_edges + kInline);
      more.push_back(e);
    }
    ++count;
  }
  void add_arguments(const Op& op, const Value* args) {
    for (int k = 0; k < op.num_tensor_args; ++k) {
      const Value& v = args[op.tensor_args[k]];
      if (v.kind == ValueKind::TensorList) {
        for (auto& t : v.tensors()) add(t.impl());
      } else {
        add(v.kind == ValueKind::Tensor ? v.tensor : nullptr);
      }
    }
  }
  std::span<Edge> span() {
    return count <= kInline ? std::span<Edge>(inline_edges, count) : std::span<Edge>(more);
  }
  void release() {
    for (auto& e : span()) {
      if (e.node) release_grad_node(e.node);
      if (e.leaf) vesta::detail::release(e.leaf);
    }
  }
};

void below(const Op& op, const Value* args, Value* outs, uint32_t bits) {
  InterpreterGuard guard(TensorImpl::kAutograd);
  redispatch(op, args, outs, bits);
}

// Mutated arguments as outputs: in-place and out forms, and blocks that write an argument.
void finish_mutating(const Op& op, const Value* args, Node* node) {
  uint32_t nr = 0;
  for (int i = 0; i < op.num_args; ++i)
    if (op.schema.args[size_t(i)].mutated && args[i].kind == ValueKind::Tensor)
      rebase_history(Tensor::borrow(args[i].tensor), node, nr++);
}

void attach_outputs(const Op& op, Node* node, Value* outs) {
  auto attach = [&](TensorImpl* t, uint32_t nr) {
    if (differentiable(t->dtype)) attach_output(t, node, nr);
  };
  if (op.list_result >= 0) {
    uint32_t k = 0;
    for (auto& t : outs[0].tensors()) attach(t.impl(), k++);
    return;
  }
  for (int j = 0; j < op.num_outs; ++j)
    if (outs[j].kind == ValueKind::Tensor && !(op.def->non_diff_outputs >> j & 1))
      attach(outs[j].tensor, uint32_t(j));
}

// Forms of an op that has only a decomposition: run it recorded, then write the result.
void decompose(const Op& op, const Value* args, Value* outs) {
  Results r = op.def->decompose(Args(op, args));
  if (op.form == OpForm::InPlace && op.num_outs) {
    Tensor self = Tensor::borrow(args[0].tensor);
    self.copy_(r.items_[0]);
    outs[0] = vesta::detail::give(std::move(self));
    return;
  }
  give_results(op, r, outs);
}

}  // namespace

void interpret(const Op& op, const Value* args, Value* outs, uint32_t bits) {
  const OpDef& def = *op.def;
  if (def.non_differentiable) return below(op, args, outs, bits);
  if (op.form == OpForm::Out) {
    for (int i = op.out_arg; i < op.num_args; ++i)
      VESTA_CHECK(!(args[i].kind == ValueKind::Tensor && requires_grad(args[i].tensor)), op.name,
                  ": out= tensors that require grad cannot be written; detach them");
    EdgeList inputs;
    inputs.add_arguments(op, args);
    bool any = inputs.any;
    inputs.release();
    VESTA_CHECK(!any, op.name, ": functions with out= do not record gradients, but an input requires grad");
    return below(op, args, outs, bits);
  }
  if (!def.vjp) {
    if (def.decompose) return decompose(op, args, outs);
    // No derivative exists: results carry no gradient, and asking for one through a float result is an error later.
    return below(op, args, outs, bits);
  }
  EdgeList edges;
  edges.add_arguments(op, args);
  if (op.mutates)
    for (int i = 0; i < op.num_args; ++i)
      if (op.schema.args[size_t(i)].mutated && args[i].kind == ValueKind::Tensor) {
        try {
          check_in_place(op, Tensor::borrow(args[i].tensor));
        } catch (...) {
          edges.release();
          throw;
        }
      }
  if (!edges.any) return below(op, args, outs, bits);
  OpNode* node = OpNode::record(op, args, edges.span());
  try {
    below(op, args, outs, bits);
    node->save_outputs(outs);
    if (op.mutates)
      finish_mutating(op, args, node);
    else
      attach_outputs(op, node, outs);
  } catch (...) {
    release_grad_node(node);
    throw;
  }
  release_grad_node(node);  // the outputs hold it now
}

}  // namespace vesta::autograd
