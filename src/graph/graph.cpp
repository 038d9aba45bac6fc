// Running and printing of recorded programs.
#include "graph/graph.h"

#include <sstream>

#include "core/call.h"
#include "core/tensor_ext.h"
#include "core/value_text.h"

namespace vesta::graph {

std::vector<Tensor> Graph::run(const std::vector<Tensor>& given) const {
  VESTA_CHECK(given.size() == inputs.size(), "graph: expected ", inputs.size(), " inputs, got ",
              given.size());
  std::vector<Tensor> values(metas.size());
  for (size_t k = 0; k < inputs.size(); ++k) {
    const ValueMeta& m = metas[size_t(inputs[k])];
    VESTA_CHECK_AS(TypeError, given[k].dtype() == m.dtype, "graph: expected ", dtype_name(m.dtype),
                   " for input ", k, ", got ", dtype_name(given[k].dtype()));
    for (size_t d = 0; d < m.sizes.size(); ++d)
      VESTA_CHECK(SymInt::from_raw(m.sizes[d]).is_symbolic() ||
                      (d < given[k].sizes().size() && given[k].sizes()[d] == m.sizes[d]),
                  "graph: input ", k, " was traced with another size at dim ", d, "; trace it again");
    values[size_t(inputs[k])] = given[k];
  }
  for (auto& [v, t] : captures) values[size_t(v)] = t;
  InterpreterGuard recorded(TensorImpl::kAutograd);  // gradients are calls of the graph
  std::vector<Value> args;
  std::vector<std::vector<Tensor>> lists;
  for (const Call& c : calls) {
    args.assign(c.operands.size(), Value());
    lists.clear();
    lists.reserve(c.operands.size());
    for (size_t i = 0; i < c.operands.size(); ++i) {
      const Operand& o = c.operands[i];
      if (o.kind == Operand::Kind::Value) {
        args[i] = Value(values[size_t(o.value)]);
      } else if (o.kind == Operand::Kind::ValueList) {
        auto& list = lists.emplace_back();
        for (int v : o.list) list.push_back(v < 0 ? Tensor() : values[size_t(v)]);
        args[i] = Value(TensorList(list));
      } else {
        args[i] = o.constant.value();
      }
    }
    Value outs[16];
    vesta::call(*c.op, args.data(), outs);
    if (c.op->list_result >= 0) {
      auto list = vesta::detail::take_list(outs[0]);
      VESTA_CHECK(list.size() == c.results.size(), "graph: ", c.op->name, " returned ", list.size(),
                  " tensors, traced ", c.results.size());
      for (size_t k = 0; k < list.size(); ++k) values[size_t(c.results[k])] = std::move(list[k]);
    } else {
      for (size_t j = 0; j < c.results.size(); ++j) {
        Tensor t = vesta::detail::take(outs[j]);
        if (c.results[j] >= 0) values[size_t(c.results[j])] = std::move(t);
      }
    }
    for (int v : c.last_uses) values[size_t(v)].reset();
  }
  for (auto& [leaf, v] : gradients) ensure_ext(leaf.impl()).grad = v < 0 ? Tensor() : values[size_t(v)];
  std::vector<Tensor> results;
  for (int v : outputs) results.push_back(v < 0 ? Tensor() : values[size_t(v)]);
  return results;
}

void Graph::find_last_uses() {
  std::vector<int> last(metas.size(), -1);
  auto use = [&](int v, int at) {
    if (v >= 0) last[size_t(v)] = at;
  };
  for (size_t k = 0; k < calls.size(); ++k) {
    for (auto& o : calls[k].operands) {
      use(o.value, int(k));
      for (int v : o.list) use(v, int(k));
    }
    for (int v : calls[k].results) use(v, int(k));
  }
  int end = int(calls.size());
  for (int v : outputs) use(v, end);
  for (auto& g : gradients) use(g.second, end);
  for (auto& c : captures) use(c.first, end);
  for (int v : inputs) use(v, end);
  for (size_t v = 0; v < last.size(); ++v)
    if (last[v] >= 0 && last[v] < end) calls[size_t(last[v])].last_uses.push_back(int(v));
}

std::string Graph::str() const {
  std::ostringstream out;
  auto meta = [&](int v) {
    const ValueMeta& m = metas[size_t(v)];
    out << dtype_name(m.dtype) << "[";
    for (size_t d = 0; d < m.sizes.size(); ++d) out << (d ? ", " : "") << SymInt::from_raw(m.sizes[d]).str();
    out << "]";
  };
  for (int v : inputs) {
    out << "%" << v << " = input : ";
    meta(v);
    out << "\n";
  }
  for (auto& c : captures) {
    out << "%" << c.first << " = capture : ";
    meta(c.first);
    out << "\n";
  }
  for (const Call& c : calls) {
    for (size_t j = 0; j < c.results.size(); ++j) out << (j ? ", %" : "%") << c.results[j];
    out << (c.results.empty() ? "" : " = ") << c.op->name << "(";
    for (size_t i = 0; i < c.operands.size(); ++i) {
      const Operand& o = c.operands[i];
      if (i) out << ", ";
      if (o.kind == Operand::Kind::Value) {
        out << "%" << o.value;
      } else if (o.kind == Operand::Kind::ValueList) {
        out << "[";
        for (size_t k = 0; k < o.list.size(); ++k) out << (k ? ", %" : "%") << o.list[k];
        out << "]";
      } else {
        if (c.op->schema.args[i].keyword_only) out << c.op->schema.args[i].name << "=";
        out << value_text(o.constant.value());
      }
    }
    out << ")";
    if (c.results.size() == 1 && c.results[0] >= 0) {
      out << " : ";
      meta(c.results[0]);
    }
    out << "\n";
  }
  for (auto& g : gradients)
    out << "grad(%" <<
        [&] {
          for (auto& c : captures)
            if (c.second.is_same(g.first)) return c.first;
          return -1;
        }()
        << ") = %" << g.second << "\n";
  out << "return (";
  for (size_t k = 0; k < outputs.size(); ++k) out << (k ? ", %" : "%") << outputs[k];
  out << ")\n";
  return out.str();
}

}  // namespace vesta::graph
