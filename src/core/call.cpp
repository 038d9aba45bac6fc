// The funnel and its interpreter table.
#include "core/call.h"

#include <bit>

#include "core/profile.h"

namespace vesta {

constinit thread_local ThreadState thread_state __attribute__((tls_model("initial-exec"))) = {};

namespace {

// Filled by init() before the first call, then read-only.
InterpreterFn interpreters[8];

// A view answers for its base too, which may have come to require grad after the view was made.
inline uint32_t bits_of(const TensorImpl* t) {
  uint32_t bits = t->bits;
  if (bits & TensorImpl::kView) bits |= t->view.base->bits & TensorImpl::kAutograd;
  return bits;
}

uint32_t tensor_bits(const Op& op, const Value* args) {
  uint32_t bits = 0;
  for (int k = 0; k < op.num_tensor_args; ++k) {
    const Value& v = args[op.tensor_args[k]];
    if (v.kind == ValueKind::Tensor) {
      bits |= bits_of(v.tensor);
    } else if (v.kind == ValueKind::TensorList) {
      for (const Tensor& t : v.tensors())
        if (t.defined()) bits |= bits_of(t.impl());
    }
  }
  if (op.out_arg >= 0) [[unlikely]]
    for (int i = op.out_arg; i < op.num_args; ++i)
      if (args[i].kind == ValueKind::Tensor) bits |= bits_of(args[i].tensor);
  return bits;
}

}  // namespace

void set_interpreter(uint32_t bit, InterpreterFn fn) { interpreters[std::countr_zero(bit)] = fn; }

void redispatch(const Op& op, const Value* args, Value* outs, uint32_t bits) {
  if (bits == 0) return op.eager(op, args, outs);
  int level = std::countr_zero(bits);
  interpreters[level](op, args, outs, bits & (bits - 1));
}

namespace {
inline void run(const Op& op, const Value* args, Value* outs, uint32_t bits) {
  bits |= thread_state.mode | profiler::process_mode.load(std::memory_order_relaxed);
  bits &= thread_state.enabled & TensorImpl::kInterpreters;
  if (bits == 0) [[likely]]
    return op.eager(op, args, outs);
  redispatch(op, args, outs, bits);
}
// Tensors that are lists, optional, views or out= arguments.
[[gnu::noinline]] void call_any(const Op& op, const Value* args, Value* outs) {
  run(op, args, outs, tensor_bits(op, args));
}
}  // namespace

void call(const Op& op, const Value* args, Value* outs) {
  if (!op.leading_tensors) [[unlikely]]
    return call_any(op, args, outs);
  uint32_t bits = 0;
  for (const Value *v = args, *end = args + op.leading_tensors; v != end; ++v) {
    if (v->kind != ValueKind::Tensor) [[unlikely]]
      return call_any(op, args, outs);
    bits |= v->tensor->bits;
  }
  if (bits & TensorImpl::kView) [[unlikely]]
    return call_any(op, args, outs);
  run(op, args, outs, bits);
}

void call(OpId id, const Value* args, Value* outs) { call(op_of(id), args, outs); }

namespace detail {

std::vector<Tensor> take_list(const Value& v) {
  std::vector<Tensor> list;
  if (v.kind != ValueKind::TensorList) return list;
  auto* items = static_cast<TensorImpl* const*>(v.ptr);
  list.reserve(v.length);
  for (uint32_t k = 0; k < v.length; ++k) list.push_back(Tensor::adopt(items[k]));
  delete[] items;
  return list;
}

Value give_list(std::vector<Tensor> tensors) {
  auto** items = new TensorImpl*[tensors.size()];
  for (size_t k = 0; k < tensors.size(); ++k) items[k] = tensors[k].release_impl();
  Value v;
  v.kind = ValueKind::TensorList;
  v.length = uint32_t(tensors.size());
  v.ptr = items;
  return v;
}

Tensor with_options(Tensor t, const TensorOptions& options) {
  if (options.requires_grad()) t.set_requires_grad(true);
  return t;
}

}  // namespace detail
}  // namespace vesta
