// Custom functions: a node whose backward is the user's.
#include "autograd/inplace.h"
#include "autograd/node.h"
#include "autograd/saved_hooks.h"
#include "core/call.h"
#include "core/storage.h"
#include "core/value_text.h"
#include "vesta/autograd.h"
#include "vesta/ops.h"

namespace vesta::autograd {

namespace {
// The value as one of the types T, in their order; absent where it is none of them.
template <class Result, class... T>
std::optional<Result> as_one_of(const std::any& value) {
  std::optional<Result> out;
  const auto take = [&](const auto* v) {
    if (v) out = Result(*v);
    return v != nullptr;
  };
  (take(std::any_cast<T>(&value)) || ...);
  return out;
}
template <class Result>
Result require(std::optional<Result> value, const std::any& held, const char* wanted) {
  VESTA_CHECK_AS(TypeError, value, "saved_data: expected ", wanted, ", the value is of the C++ type ",
                 held.has_value() ? held.type().name() : "none");
  return *std::move(value);
}
}  // namespace

bool SavedValue::toBool() const { return require(as_one_of<bool, bool>(*this), *this, "a bool"); }
int64_t SavedValue::toInt() const {
  return require(as_one_of<int64_t, int, long, long long, bool, unsigned, unsigned long, unsigned long long,
                           short, unsigned short, signed char, unsigned char>(*this),
                 *this, "an integer");
}
double SavedValue::toDouble() const {
  if (const auto number = as_one_of<double, double, float>(*this)) return *number;
  return double(toInt());
}
std::string SavedValue::toStringRef() const {
  return require(as_one_of<std::string, std::string, const char*>(*this), *this, "text");
}
Tensor SavedValue::toTensor() const {
  if (isNone()) return Tensor();
  return require(as_one_of<Tensor, Tensor>(*this), *this, "a tensor");
}
std::vector<Tensor> SavedValue::toTensorVector() const {
  return require(as_one_of<std::vector<Tensor>, std::vector<Tensor>>(*this), *this, "a vector of tensors");
}
std::vector<int64_t> SavedValue::toIntVector() const {
  return require(as_one_of<std::vector<int64_t>, std::vector<int64_t>>(*this), *this, "a vector of integers");
}

class FunctionNode final : public VectorNode {
 public:
  std::function<variable_list(AutogradContext&, variable_list)> backward;
  AutogradContext ctx;
  std::string label;
  struct Input {
    std::vector<int64_t> sizes;
    DType dtype = DType::Undefined;
  };
  std::vector<Input> inputs;
  std::vector<std::vector<int64_t>> out_sizes;
  std::vector<TensorOptions> out_options;
  struct Kept {
    Tensor tensor;  // an input as it is, an output as a detached alias
    uint32_t version;
    int output = -1;
    bool defined = true;
    std::optional<Packed> packed;  // in place of the tensor, with SavedTensorHooks
  };
  std::vector<Kept> kept;
  bool released = false;

  void apply(std::span<Tensor> dy, std::span<Tensor> gradients) override {
    variable_list cotangents(dy.begin(), dy.end());
    if (ctx.materialize_)
      for (size_t j = 0; j < cotangents.size(); ++j)
        if (!cotangents[j].defined()) cotangents[j] = zeros(out_sizes[j], out_options[j]);
    for (size_t k = 0; k < ctx.needs_.size(); ++k) ctx.needs_[k] = wants(k);
    variable_list out = backward(ctx, std::move(cotangents));
    // A backward that knows of arguments which this call left to their defaults gives nothing for them.
    while (out.size() > gradients.size() && !out.back().defined()) out.pop_back();
    VESTA_CHECK(out.size() == gradients.size(), label, ": backward returned ", out.size(),
                " gradients, expected ", gradients.size());
    for (size_t k = 0; k < out.size(); ++k)
      if (out[k].defined() && edges()[k].valid()) gradients[k] = fit(out[k], k);
  }
  // A gradient in the shape and type of input k: what broadcasting added is summed.
  Tensor fit(Tensor g, size_t k) const {
    const Input& in = inputs[k];
    if (!(g.sizes() == IntArrayRef(in.sizes))) {
      VESTA_CHECK(expands_to(in.sizes, g.sizes()), label, ": returned an invalid gradient at index ", k,
                  " - got ", value_text(g.sizes()), " but expected shape compatible with ",
                  value_text(IntArrayRef(in.sizes)));
      g = sum_to_size(g, in.sizes);
    }
    if (g.is_complex() && !is_complex(in.dtype)) g = real(g);
    return g.dtype() == in.dtype ? g : g.to(in.dtype);
  }
  static bool expands_to(IntArrayRef from, IntArrayRef to) {
    if (from.size() > to.size()) return false;
    for (size_t d = 0; d < from.size(); ++d)
      if (int64_t n = from[from.size() - 1 - d]; n != 1 && n != to[to.size() - 1 - d]) return false;
    return true;
  }
  std::string name() const override { return label; }
  void release_saved() override {
    released = !kept.empty();
    for (auto& k : kept) {
      k.tensor.reset();
      k.packed.reset();
    }
  }
  void keep(const variable_list& tensors, const variable_list& outputs) {
    for (auto& t : tensors) {
      Kept k;
      k.defined = t.defined();
      k.version = t.defined() && t.impl()->storage ? t.impl()->storage->version : 0;
      k.tensor = t;
      for (size_t j = 0; j < outputs.size(); ++j)
        if (t.defined() && outputs[j].is_same(t)) {
          k.output = int(j);
          k.tensor = shallow_alias(t);
        }
      if (t.defined() && thread_state.saved_hooks) {
        k.packed = static_cast<SavedTensorHooks*>(thread_state.saved_hooks)->pack(shallow_alias(t));
        k.tensor.reset();
      }
      kept.push_back(std::move(k));
    }
  }
  variable_list unpack() {
    VESTA_CHECK(!released, label,
                ": trying to backward through the graph a second time, but its saved tensors were freed; "
                "pass retain_graph=true to the first backward");
    variable_list list;
    for (auto& k : kept) {
      if (!k.defined) {
        list.emplace_back();
        continue;
      }
      if (k.packed) {
        list.push_back(k.packed->unpack());
        continue;
      }
      TensorImpl* t = k.tensor.impl();
      VESTA_CHECK(!t->storage || t->storage->version == k.version, label,
                  ": a saved tensor has been modified by an inplace operation", last_in_place_op(t->storage),
                  ": it is at version ", t->storage->version, ", expected version ", k.version);
      if (k.output >= 0 && thread_state.grad_mode) {
        Tensor alias = shallow_alias(k.tensor);
        attach_output(alias.impl(), this, uint32_t(k.output));
        list.push_back(alias);
      } else {
        list.push_back(k.tensor);
      }
    }
    return list;
  }
};

void AutogradContext::save_for_backward(variable_list tensors) { to_save_ = std::move(tensors); }
variable_list AutogradContext::get_saved_variables() const {
  VESTA_CHECK(node_, "get_saved_variables: nothing was recorded");
  return node_->unpack();
}

namespace {
std::string readable(const char* mangled) {
  // "6Double" or "N1a6DoubleE" -> "DoubleBackward": the last name of the mangled type.
  std::string name;
  for (const char* p = mangled; *p;) {
    if (*p >= '0' && *p <= '9') {
      size_t n = 0;
      while (*p >= '0' && *p <= '9') n = n * 10 + size_t(*p++ - '0');
      std::string word;
      while (n-- && *p) word += *p++;
      name = word;
    } else {
      ++p;
    }
  }
  return (name.empty() ? "Function" : name) + "Backward";
}
}  // namespace

variable_list run_function(std::function<variable_list(AutogradContext&)> forward,
                           std::function<variable_list(AutogradContext&, variable_list)> backward,
                           const variable_list& inputs, const char* type_name) {
  auto* node = new FunctionNode;
  struct Drop {
    FunctionNode* n;
    ~Drop() { release_grad_node(n); }
  } drop{node};
  node->label = readable(type_name);
  if (thread_state.anomaly) node->remember_place();
  bool any = false;
  std::vector<Edge> edges;
  for (auto& t : inputs) {
    Edge e;
    if (GradMode::is_enabled() && t.defined() && requires_grad(t.impl())) e = gradient_edge(t.impl());
    any |= e.valid();
    node->ctx.needs_.push_back(e.valid());
    node->inputs.push_back(t.defined() ? FunctionNode::Input{t.sizes().vec(), t.dtype()}
                                       : FunctionNode::Input());
    edges.push_back(e);
  }
  node->set_edges(std::move(edges));
  node->ctx.node_ = node;
  variable_list out;
  {
    NoGradGuard no_grad;
    out = forward(node->ctx);
  }
  // forward may have written them behind the operators' back.
  for (auto& t : node->ctx.dirty_)
    if (t.defined() && t.impl()->storage) ++t.impl()->storage->version;
  if (!any) return out;
  auto contains = [](const variable_list& list, const Tensor& t) {
    for (auto& x : list)
      if (x.is_same(t)) return true;
    return false;
  };
  for (auto& t : out) {
    // An input returned as it is must not get a new history.
    if (t.defined() && contains(inputs, t) && !contains(node->ctx.dirty_, t)) t = t.view_as(t);
  }
  node->num_outputs = uint32_t(out.size());
  for (size_t j = 0; j < out.size(); ++j) {
    node->out_sizes.push_back(out[j].defined() ? out[j].sizes().vec() : std::vector<int64_t>());
    node->out_options.push_back(out[j].defined() ? out[j].options() : TensorOptions());
    if (!out[j].defined() || contains(node->ctx.non_differentiable_, out[j]) ||
        !(out[j].is_floating_point() || out[j].is_complex()))
      continue;
    if (contains(node->ctx.dirty_, out[j]))
      check_in_place(node->label, out[j]), rebase_history(out[j], node, uint32_t(j));
    else
      attach_output(out[j].impl(), node, uint32_t(j));
  }
  node->backward = std::move(backward);
  node->keep(node->ctx.to_save_, out);
  node->ctx.to_save_.clear();
  node->ctx.dirty_.clear();
  node->ctx.non_differentiable_.clear();
  return out;
}

}  // namespace vesta::autograd
