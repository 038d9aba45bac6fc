// Recording. A call whose block has a vjp becomes one node; one that has only a decomposition records its parts.
#include "autograd/interpreter.h"

#include "autograd/inplace.h"
#include "autograd/node.h"
#include "core/eager.h"
#include "vesta/ops.h"

namespace vesta::autograd {
namespace {

// Whether any input leads to a graph.
bool any_edge(const Op& op, const Value* args) {
  auto leads = [](TensorImpl* t) {
    if (!t || !requires_grad(t) || !differentiable(t->dtype)) return false;
    Edge e = gradient_edge(t);
    release_edge(e);
    return e.valid();
  };
  for (int k = 0; k < op.num_tensor_args; ++k) {
    const Value& v = args[op.tensor_args[k]];
    if (v.kind == ValueKind::TensorList) {
      for (auto& t : v.tensors())
        if (leads(t.impl())) return true;
    } else if (v.kind == ValueKind::Tensor && leads(v.tensor)) {
      return true;
    }
  }
  return false;
}

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

// Gives the node to its outputs: each holds one reference, the caller's goes to the first of them. Nobody else knows the
// node before, so that its count needs no atomic arithmetic.
void attach_outputs(const Op& op, Node* node, Value* outs) {
  uint32_t holders = 0;
  auto attach = [&](TensorImpl* t, uint32_t nr) {
    if (!differentiable(t->dtype)) return;
    if (holders++) node->refs.store(holders, std::memory_order_relaxed);
    if (t->grad_fn) release_grad_node(t->grad_fn);
    t->grad_fn = node;
    t->output_nr = nr;
    t->bits |= TensorImpl::kAutograd;
  };
  if (op.list_result >= 0) {
    uint32_t k = 0;
    for (auto& t : outs[0].tensors()) attach(t.impl(), k++);
  } else {
    for (int j = 0; j < op.num_outs; ++j)
      if (outs[j].kind == ValueKind::Tensor && !(op.def->non_diff_outputs >> j & 1))
        attach(outs[j].tensor, uint32_t(j));
  }
  if (!holders) release_grad_node(node);
}

// The common case of interpret().
[[gnu::always_inline]] inline void record_simply(const Op& op, const Value* args, Value* outs,
                                                 uint32_t bits) {
  OpNode* node = OpNode::record_simple(op, args);
  if (!node) return below(op, args, outs, bits);
  TensorImpl* t;
  try {
    below(op, args, outs, bits);
    t = outs[0].tensor;
    if (!op.saves_outputs && outs[0].kind == ValueKind::Tensor) [[likely]]
      node->remember_output(t);
    else
      node->save_outputs(outs);
  } catch (...) {
    release_grad_node(node);
    throw;
  }
  if (outs[0].kind != ValueKind::Tensor || t->grad_fn || !differentiable(t->dtype) ||
      op.def->non_diff_outputs) [[unlikely]]
    return attach_outputs(op, node, outs);
  t->grad_fn = node;
  t->output_nr = 0;
  t->bits |= TensorImpl::kAutograd;
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
  if (op.records_simply) [[likely]]
    return record_simply(op, args, outs, bits);
  const OpDef& def = *op.def;
  if (def.non_differentiable) return below(op, args, outs, bits);
  if (op.form == OpForm::Out) {
    for (int i = op.out_arg; i < op.num_args; ++i)
      VESTA_CHECK(!(args[i].kind == ValueKind::Tensor && requires_grad(args[i].tensor)), op.name,
                  ": out= tensors that require grad cannot be written; detach them");
    VESTA_CHECK(!any_edge(op, args), op.name,
                ": functions with out= do not record gradients, but an input requires grad");
    return below(op, args, outs, bits);
  }
  if (!def.vjp) {
    if (def.decompose) return decompose(op, args, outs);
    // No derivative exists: results carry no gradient, and asking for one through a float result is an error later.
    return below(op, args, outs, bits);
  }
  if (op.mutates) [[unlikely]]
    for (int i = 0; i < op.num_args; ++i)
      if (op.schema.args[size_t(i)].mutated && args[i].kind == ValueKind::Tensor)
        check_in_place(op, Tensor::borrow(args[i].tensor));
  OpNode* node = OpNode::record(op, args);
  if (!node) return below(op, args, outs, bits);
  try {
    below(op, args, outs, bits);
    node->save_outputs(outs);
    if (op.mutates) [[unlikely]] {
      finish_mutating(op, args, node);
      release_grad_node(node);  // the outputs hold it now
      return;
    }
  } catch (...) {
    release_grad_node(node);
    throw;
  }
  attach_outputs(op, node, outs);
}

}  // namespace vesta::autograd
