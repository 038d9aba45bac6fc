// Tangents of outputs. No operator says its own forward derivative: views are linear, so their tangent is the same view
// of the tangent; every other derivative is the transpose of the block's vjp, which is linear in its cotangent u:
//   J t = d/du <vjp(u), t>.
// That costs a vjp and its derivative for each call, and holds for every op whose vjp can be differentiated.
#include "autograd/tangent.h"

#include "autograd/node.h"
#include "core/call.h"
#include "core/eager.h"
#include "core/tensor_ext.h"
#include "vesta/autograd.h"
#include "vesta/ops.h"

namespace vesta::autograd {
namespace {

Tensor tangent_of(const TensorImpl* t) {
  return t && (t->bits & TensorImpl::kTangent) && t->ext ? t->ext->tangent : Tensor();
}

// A tangent is laid out as its primal, so that the same views of both exist.
void set_tangent(const Tensor& t, Tensor tangent) {
  if ((t.impl()->bits & TensorImpl::kDense) && tangent.strides() != t.strides())
    tangent = empty_strided(t.sizes(), t.strides(), t.options()).copy_(tangent);
  ensure_ext(t.impl()).tangent = std::move(tangent);
  t.impl()->bits |= TensorImpl::kTangent;
}

template <class F>
void each_input(const Op& op, const Value* args, F&& f) {
  for (int k = 0; k < op.num_tensor_args; ++k) {
    const Value& v = args[op.tensor_args[k]];
    if (v.kind == ValueKind::Tensor) f(Tensor::borrow(v.tensor));
    if (v.kind == ValueKind::TensorList)
      for (auto& t : v.tensors()) f(t);
  }
}

// A copy of the arguments with each tensor replaced.
struct Replaced {
  std::vector<Value> values;
  std::vector<Tensor> tensors;
  std::vector<std::vector<Tensor>> lists;

  template <class F>
  Replaced(const Op& op, const Value* args, F&& f) : values(args, args + op.num_args) {
    tensors.reserve(op.num_tensor_args);
    lists.reserve(op.num_tensor_args);
    for (int k = 0; k < op.num_tensor_args; ++k) {
      Value& v = values[op.tensor_args[k]];
      if (v.kind == ValueKind::Tensor) {
        v = Value(tensors.emplace_back(f(Tensor::borrow(v.tensor))));
      } else if (v.kind == ValueKind::TensorList) {
        auto& list = lists.emplace_back();
        for (auto& t : v.tensors()) list.push_back(t.defined() ? f(t) : t);
        v = Value(TensorList(list));
      }
    }
  }
};

// Results as tensors, owned; numbers are left out.
std::vector<Tensor> take_results(const Op& op, Value* outs) {
  if (op.list_result >= 0) return vesta::detail::take_list(outs[0]);
  std::vector<Tensor> list;
  for (int j = 0; j < op.num_outs; ++j) list.push_back(vesta::detail::take(outs[j]));
  return list;
}
void give_results(const Op& op, std::vector<Tensor> results, Value* outs) {
  if (op.list_result >= 0) {
    outs[0] = vesta::detail::give_list(std::move(results));
    return;
  }
  for (int j = 0; j < op.num_outs; ++j) outs[j] = vesta::detail::give(std::move(results[size_t(j)]));
}

// The op on every tangent, for linear ops of one tensor.
std::vector<Tensor> on_tangent(const Op& op, const Value* args) {
  Replaced r(op, args, [](const Tensor& t) { return tangent_of(t.impl()); });
  Value outs[8];
  call(op, r.values.data(), outs);
  return take_results(op, outs);
}

// The derivative of a copy is its argument: a later write through one of the two must not reach the other.
Tensor own_memory(const Tensor& t, const std::vector<Tensor>& others) {
  for (auto& o : others)
    if (o.impl()->storage == t.impl()->storage) return t.clone();
  return t;
}

void transposed_vjp(const Op& op, const Value* args, Value* outs) {
  const bool recorded = GradMode::is_enabled();
  std::vector<Tensor> inputs, tangents;
  AutoGradMode record(true);
  Replaced r(op, args, [&](const Tensor& t) {
    Tensor tangent = tangent_of(t.impl());
    if (!tangent.defined()) return recorded ? t : t.detach();
    // A variable of its own, still connected to t where t needs a gradient too.
    Tensor x = recorded && t.requires_grad() ? t.view_as(t) : t.detach().requires_grad_();
    inputs.push_back(x);
    tangents.push_back(tangent);
    return x;
  });
  // What the op writes are copies; the caller writes the originals.
  std::vector<Tensor> written;
  for (int i = 0; op.mutates && i < op.num_args; ++i)
    if (op.schema.args[size_t(i)].mutated && r.values[size_t(i)].kind == ValueKind::Tensor) {
      written.push_back(Tensor::borrow(r.values[size_t(i)].tensor).clone());
      r.values[size_t(i)].tensor = written.back().impl();
    }
  Value made[8];
  call(op, r.values.data(), made);
  std::vector<Tensor> results = take_results(op, made);
  variable_list ys, us;
  std::vector<size_t> which;
  for (size_t j = 0; j < results.size(); ++j) {
    if (!results[j].defined() || !results[j].requires_grad()) continue;
    ys.push_back(results[j]);
    us.push_back(zeros_like(results[j]).requires_grad_());
    which.push_back(j);
  }
  std::vector<Tensor> out_tangents(results.size());
  if (!ys.empty()) {
    variable_list g = grad(ys, inputs, us, true, true, true), used, weights;
    for (size_t k = 0; k < g.size(); ++k)
      if (g[k].defined() && g[k].requires_grad()) {
        used.push_back(g[k]);
        weights.push_back(tangents[k]);
      }
    if (!used.empty()) {
      variable_list t = grad(used, us, weights, recorded, recorded, true);
      for (size_t k = 0; k < which.size(); ++k)
        if (t[k].defined()) out_tangents[which[k]] = own_memory(recorded ? t[k] : t[k].detach(), tangents);
    }
  }
  for (size_t j = 0; j < results.size(); ++j) {
    if (!results[j].defined()) continue;
    // Recorded only for the sake of the tangents?
    bool needs = false;
    if (recorded) each_input(op, args, [&](const Tensor& t) { needs |= t.defined() && t.requires_grad(); });
    if (!needs && results[j].requires_grad()) results[j] = results[j].detach();
    if (out_tangents[j].defined()) set_tangent(results[j], out_tangents[j]);
  }
  give_results(op, std::move(results), outs);
}

// copy_, zero_ and fill_: what all other writes come down to.
void overwrite(const Op& op, const Value* args, Value* outs, uint32_t bits) {
  Tensor self = Tensor::borrow(args[0].tensor), tangent;
  if (op.num_args > 1 && args[1].kind == ValueKind::Tensor) tangent = tangent_of(args[1].tensor);
  if (tangent.defined()) tangent = tangent.to(self.dtype()).expand(self.sizes());
  {
    InterpreterGuard guard(TensorImpl::kTangent);
    redispatch(op, args, outs, bits);
  }
  Tensor own = tangent_of(self.impl());
  if (!own.defined() && !tangent.defined()) return;
  if (!own.defined()) {
    if (self._is_view()) {
      // Its base and other views must see the tangent too.
      Tensor base = self._base();
      if (!tangent_of(base.impl()).defined()) set_tangent(base, zeros_like(base));
      own = tangent_of(base.impl())
                .as_strided(self.sizes(), self.strides(), self.storage_offset() - base.storage_offset());
    } else {
      own = zeros_like(self);
    }
    set_tangent(self, own);
  }
  if (tangent.defined())
    own.copy_(tangent);
  else
    own.zero_();
}

void write_in_place(const Op& op, const Value* args, Value* outs, uint32_t bits) {
  const std::string& name = op.schema.name;
  if (name == "copy_" || name == "zero_" || name == "fill_") return overwrite(op, args, outs, bits);
  Value made[8];
  std::vector<Tensor> results;
  if (op.form == OpForm::InPlace) {
    const Op& functional = op_of(op.functional);
    call(functional, args, made);
    results = take_results(functional, made);
  } else {
    InterpreterGuard guard(TensorImpl::kTangent);
    transposed_vjp(op, args, made);
    results = take_results(op, made);
  }
  size_t j = 0;
  for (int i = 0; i < op.num_args; ++i)
    if (op.schema.args[size_t(i)].mutated && args[i].kind == ValueKind::Tensor && j < results.size()) {
      Tensor target = Tensor::borrow(args[i].tensor);
      target.copy_(results[j]);
      outs[j++] = vesta::detail::give(std::move(target));
    }
}

}  // namespace

void interpret_tangents(const Op& op, const Value* args, Value* outs, uint32_t bits) {
  bool any = false;
  if (thread_state.tangent_level)
    each_input(op, args, [&](const Tensor& t) { any |= t.defined() && tangent_of(t.impl()).defined(); });
  const OpDef& def = *op.def;
  bool plain = !any || def.non_differentiable;  // detach too: its result has neither gradient nor tangent
  if (plain) {
    InterpreterGuard guard(TensorImpl::kTangent);
    return redispatch(op, args, outs, bits);
  }
  VESTA_CHECK(op.form != OpForm::Out, op.name, ": functions with out= do not take part in forward mode");
  // Compositions that do the writing themselves: list forms, changes of shape.
  const bool by_parts = !def.vjp && def.decompose &&
                        (op.form == OpForm::Functional || (op.form == OpForm::InPlace && op.num_outs == 0));
  if (op.mutates && !by_parts) return write_in_place(op, args, outs, bits);
  if (op.returns_view && def.infer) {
    std::vector<Tensor> tangents = on_tangent(op, args);
    {
      InterpreterGuard guard(TensorImpl::kTangent);
      redispatch(op, args, outs, bits);
    }
    std::vector<Tensor> results = take_results(op, outs);
    for (size_t j = 0; j < results.size(); ++j) set_tangent(results[j], tangents[j]);
    return give_results(op, std::move(results), outs);
  }
  if (!def.vjp && def.decompose) {
    Results r = def.decompose(Args(op, args));
    return vesta::give_results(op, r, outs);
  }
  InterpreterGuard guard(TensorImpl::kTangent);
  if (!def.vjp) return redispatch(op, args, outs, bits);
  transposed_vjp(op, args, outs);
}

namespace forward_ad {

DualLevel::DualLevel() {
  VESTA_CHECK(thread_state.tangent_level == 0,
              "DualLevel: a level is open already; nested levels are not offered");
  ++thread_state.tangent_level;
}
DualLevel::~DualLevel() { --thread_state.tangent_level; }

Tensor make_dual(const Tensor& primal, const Tensor& tangent) {
  VESTA_CHECK(thread_state.tangent_level, "make_dual: open a DualLevel first");
  VESTA_CHECK_AS(TypeError, differentiable(primal.dtype()),
                 "make_dual: expected a floating or complex primal, got ", to_string(primal.dtype()));
  VESTA_CHECK(primal.sizes() == tangent.sizes(), "make_dual: expected a tangent of the primal's shape");
  VESTA_CHECK_AS(TypeError, primal.dtype() == tangent.dtype(), "make_dual: expected a tangent of type ",
                 to_string(primal.dtype()), ", got ", to_string(tangent.dtype()));
  VESTA_CHECK(!tangent_of(primal.impl()).defined(), "make_dual: the primal carries a tangent already");
  Tensor dual = primal.view_as(primal);
  set_tangent(dual, tangent);
  return dual;
}

UnpackedDual unpack_dual(const Tensor& dual) {
  if (!thread_state.tangent_level) return {dual, Tensor()};
  Tensor tangent = tangent_of(dual.impl());
  if (!tangent.defined()) return {dual, Tensor()};
  InterpreterGuard guard(TensorImpl::kTangent);
  return {dual.view_as(dual), tangent};
}

}  // namespace forward_ad

std::pair<variable_list, variable_list> jvp(const std::function<variable_list(const variable_list&)>& fn,
                                            const variable_list& inputs, const variable_list& tangents) {
  VESTA_CHECK(inputs.size() == tangents.size(), "jvp: expected ", inputs.size(), " tangents, got ",
              tangents.size());
  forward_ad::DualLevel level;
  variable_list duals;
  for (size_t k = 0; k < inputs.size(); ++k) duals.push_back(forward_ad::make_dual(inputs[k], tangents[k]));
  std::pair<variable_list, variable_list> result;
  for (auto& y : fn(duals)) {
    forward_ad::UnpackedDual u = forward_ad::unpack_dual(y);
    result.first.push_back(u.primal);
    result.second.push_back(u.tangent.defined() ? u.tangent : zeros_like(u.primal));
  }
  return result;
}

}  // namespace vesta::autograd
