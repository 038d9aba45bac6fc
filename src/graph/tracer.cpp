// Recording of calls. Traced tensors have sizes, a dtype and a storage without memory (it counts versions and ties
// views together); which value each is stands in a side table, never on the tensor.
#include "graph/tracer.h"

#include <unordered_map>

#include "core/eager.h"
#include "core/shape_env.h"
#include "core/storage.h"
#include "core/tensor_ext.h"

namespace vesta::graph {
namespace {

class Tracer {
 public:
  Graph graph;

  Tracer() : previous_(static_cast<Tracer*>(thread_state.tracer)), mode_(thread_state.mode) {
    VESTA_CHECK(!previous_, "trace: a trace is running on this thread already");
    thread_state.tracer = this;
    thread_state.mode |= TensorImpl::kTrace;
  }
  // Puts back everything the traced code changed outside of the trace.
  ~Tracer() {
    thread_state.tracer = previous_;
    thread_state.mode = mode_;
    for (auto& [storage, version] : versions_) storage->version = version;
    for (auto& c : entries_)
      if (c.tensor.impl()->ext || c.grad.defined()) ensure_ext(c.tensor.impl()).grad = c.grad;
  }

  Tensor add_input(const Tensor& like, const std::vector<int>& dynamic) {
    OutMeta m;
    m.defined = m.has_strides = true;
    m.dtype = like.dtype();
    m.device = like.device();
    m.resize(int(like.dim()));
    SymInt step = 1;
    for (int d = m.ndim - 1; d >= 0; --d) {
      SymInt size = like.size(d);
      for (int e : dynamic)
        if (e == d && like.size(d) >= 2) size = env_.symbol(like.size(d));
      m.sizes()[d] = size;
      // Symbolic inputs are taken as contiguous; fixed ones keep their strides.
      m.strides()[d] = dynamic.empty() ? SymInt(like.stride(d)) : step;
      step *= size;
    }
    Tensor t = stand_in(m);
    t.impl()->bits |= like.impl()->bits & TensorImpl::kAutograd;
    graph.inputs.push_back(bind(t));
    return t;
  }

  void record(const Op& op, const Value* args, Value* outs) {
    Call call;
    call.op = &op;
    for (int i = 0; i < op.num_args; ++i) call.operands.push_back(operand(args[i]));
    if (op.mutates) {
      // The written arguments are the results.
      int j = 0;
      for (int i = 0; i < op.num_args; ++i) {
        if (!op.schema.args[size_t(i)].mutated) continue;
        auto written = [&](TensorImpl* t) { note_write(t, op.id); };
        if (args[i].kind == ValueKind::TensorList) {
          for (auto& t : args[i].tensors()) written(t.impl());
        } else if (args[i].kind == ValueKind::Tensor) {
          written(args[i].tensor);
          if (j < op.num_outs) {
            outs[j++] = vesta::detail::give(Tensor::borrow(args[i].tensor));
            call.results.push_back(call.operands[size_t(i)].value);
          }
        }
      }
      graph.calls.push_back(std::move(call));
      return;
    }
    std::vector<OutMeta> metas, list;
    infer_outputs(op, args, metas, list);
    std::vector<Tensor> results;
    for (auto& m : op.list_result >= 0 ? list : metas) {
      Tensor t;
      if (m.defined && m.view_of >= 0)
        t = make_view(op, args[m.view_of].tensor, m,
                      op.list_result >= 0 ? ViewCreation::MultiOutput : ViewCreation::Default);
      else if (m.defined)
        t = stand_in(m);
      call.results.push_back(t.defined() ? bind(t) : -1);
      results.push_back(std::move(t));
    }
    graph.calls.push_back(std::move(call));
    if (op.list_result >= 0)
      outs[0] = vesta::detail::give_list(std::move(results));
    else
      for (int j = 0; j < op.num_outs; ++j) outs[j] = vesta::detail::give(std::move(results[size_t(j)]));
  }

  void finish(const std::vector<Tensor>& outputs) {
    for (auto& t : outputs) graph.outputs.push_back(t.defined() ? value_of(t.impl()) : -1);
    for (size_t k = 0; k < entries_.size(); ++k) {
      TensorImpl* leaf = entries_[k].tensor.impl();
      Tensor now = leaf->ext ? leaf->ext->grad : Tensor();
      if (!now.is_same(entries_[k].grad))
        graph.gradients.push_back({entries_[k].tensor, now.defined() ? value_of(now.impl()) : -1});
    }
    graph.guards = env_.guards();
    graph.find_last_uses();
  }

 private:
  Tensor stand_in(const OutMeta& m) {
    Tensor t = meta_tensor(m);
    t.impl()->device = m.device.packed();
    t.impl()->storage = new_external_storage(nullptr, 0, {});
    t.impl()->bits |= TensorImpl::kTrace;
    return t;
  }

  int bind(const Tensor& t) {
    int v = int(graph.metas.size());
    graph.metas.push_back({t.dtype(), t.sizes().vec()});
    values_[t.impl()] = v;
    keep_.push_back(t);  // an address must not be reused while the table knows it
    return v;
  }

  int value_of(TensorImpl* t) {
    auto it = values_.find(t);
    if (it != values_.end()) return it->second;
    Tensor tensor = Tensor::borrow(t);
    if (!(t->bits & TensorImpl::kHasData) && t->storage) {
      // A detached alias of a traced tensor (autograd saves those): the value it shows.
      for (auto& k : keep_)
        if (k.impl()->storage == t->storage && k.sizes() == tensor.sizes() &&
            k.strides() == tensor.strides() && k.impl()->offset == t->offset && k.impl()->dtype == t->dtype)
          return values_[t] = values_[k.impl()];
      throw InternalError("trace: a tensor without memory that this trace did not make");
    }
    if (t->bits & TensorImpl::kHasData) {
      for (auto& c : graph.captures) {  // an alias of a captured tensor
        TensorImpl* o = c.second.impl();
        if (o->storage == t->storage && o->dtype == t->dtype && o->offset == t->offset &&
            c.second.sizes() == tensor.sizes() && c.second.strides() == tensor.strides() &&
            !(t->bits & TensorImpl::kAutograd && !t->grad_fn)) {
          keep_.push_back(tensor);
          return values_[t] = c.first;
        }
      }
    }
    int v = bind(tensor);
    graph.captures.push_back({v, tensor});
    entries_.push_back({tensor, t->ext ? t->ext->grad : Tensor()});
    return v;
  }

  Operand operand(const Value& v) {
    Operand o;
    if (v.kind == ValueKind::Tensor) {
      o.kind = Operand::Kind::Value;
      o.value = value_of(v.tensor);
    } else if (v.kind == ValueKind::TensorList) {
      o.kind = Operand::Kind::ValueList;
      for (auto& t : v.tensors()) o.list.push_back(t.defined() ? value_of(t.impl()) : -1);
    } else {
      o.constant = OwnedValue::copy(v);
    }
    return o;
  }

  void note_write(TensorImpl* t, uint16_t op_id) {
    if (!t->storage) return;
    if (t->bits & TensorImpl::kHasData) versions_.try_emplace(t->storage, t->storage->version);
    bump_version(t, op_id);
  }

  struct Entry {
    Tensor tensor, grad;  // .grad when the tensor was first met
  };
  ShapeEnv env_;
  std::unordered_map<TensorImpl*, int> values_;
  std::unordered_map<Storage*, uint32_t> versions_;  // of real tensors, before the trace
  std::vector<Tensor> keep_;
  std::vector<Entry> entries_;
  Tracer* previous_;
  uint32_t mode_;
};

}  // namespace

void interpret(const Op& op, const Value* args, Value* outs, uint32_t) {
  auto* tracer = static_cast<Tracer*>(thread_state.tracer);
  if (!tracer) {
    // A tensor without data outside of a trace: shapes only.
    return op.eager(op, args, outs);
  }
  // Lazy conjugation and negation are bits on the tensor, which a recorded call cannot carry: they are carried out.
  static const Op *const lazy_conj = find_op("_conj"), *const conj = find_op("conj_physical");
  static const Op *const lazy_neg = find_op("_neg_view"), *const neg = find_op("neg");
  if (&op == lazy_conj) return tracer->record(*conj, args, outs);
  if (&op == lazy_neg) return tracer->record(*neg, args, outs);
  if (op.def->decompose && !op.def->kernels.find(DeviceType::CPU) && !op.def->scalar.classes) {
    // Compositions are recorded by their parts.
    Results r = op.def->decompose(Args(op, args));
    if ((op.form == OpForm::InPlace && op.num_outs) || op.form == OpForm::Out) {
      Tensor target = Tensor::borrow(args[op.form == OpForm::InPlace ? 0 : op.out_arg].tensor);
      target.copy_(r.items_[0]);
      outs[0] = vesta::detail::give(std::move(target));
    } else {
      give_results(op, r, outs);
    }
    return;
  }
  tracer->record(op, args, outs);
}

Graph trace(const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& fn,
            const std::vector<Tensor>& inputs, const TraceOptions& options) {
  Tracer tracer;
  std::vector<Tensor> stand_ins;
  for (size_t k = 0; k < inputs.size(); ++k)
    stand_ins.push_back(
        tracer.add_input(inputs[k], k < options.dynamic.size() ? options.dynamic[k] : std::vector<int>()));
  tracer.finish(fn(stand_ins));
  return std::move(tracer.graph);
}

}  // namespace vesta::graph
