#pragma once
// The one funnel. Every op call goes through `call`: from C++, by name, from the C ABI, from backward and from graphs.
// Order of interpreters, outermost first, each skipped by a bit test:
//   profiler -> [vmap levels] -> forward tangents -> autocast -> autograd -> sharding -> { tracer | eager }
#include "core/registry.h"
#include "core/thread_state.h"
#include "vesta/tensor.h"

namespace vesta {

// One layer of the stack. `bits` are the interpreters still to run below this one.
using InterpreterFn = void (*)(const Op& op, const Value* args, Value* outs, uint32_t bits);
void set_interpreter(uint32_t bit, InterpreterFn fn);

// args: one Value per schema argument (borrowed). outs: one Value per result, owned by the caller afterwards.
// In-place and out forms return their first mutated argument with a reference of its own.
void call(OpId id, const Value* args, Value* outs);
void call(const Op& op, const Value* args, Value* outs);
// Continues below an interpreter with the bits it was given.
void redispatch(const Op& op, const Value* args, Value* outs, uint32_t bits);

// Clears an interpreter's bit, and those of all outer ones but the profiler's, while its own work runs.
class InterpreterGuard {
 public:
  explicit InterpreterGuard(uint32_t bit) : enabled_(thread_state.enabled) {
    thread_state.enabled = enabled_ & ~(bit | ((bit - 1) & ~TensorImpl::kProfile));
  }
  ~InterpreterGuard() { thread_state.enabled = enabled_; }
  InterpreterGuard(const InterpreterGuard&) = delete;

 private:
  uint32_t enabled_;
};

namespace detail {
inline Tensor take(const Value& v) { return Tensor::adopt(v.kind == ValueKind::Tensor ? v.tensor : nullptr); }
inline void drop(const Value& v) {
  if (v.kind == ValueKind::Tensor) release(v.tensor);
}
// Takes the tensors of an owned TensorList result (a heap array) and frees it.
std::vector<Tensor> take_list(const Value& v);
Value give_list(std::vector<Tensor> tensors);
inline Value give(Tensor t) {
  Value v;
  if (t.defined()) {
    v.kind = ValueKind::Tensor;
    v.tensor = t.release_impl();
  }
  return v;
}
Tensor with_options(Tensor t, const TensorOptions& options);
}  // namespace detail

}  // namespace vesta
