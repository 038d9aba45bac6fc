// Casting of arguments, and the cache of cast parameters.
#include "core/autocast.h"

#include <unordered_map>

#include "core/call.h"
#include "vesta/autocast.h"
#include "vesta/ops.h"

namespace vesta {
namespace {

// One per thread, emptied when its outermost scope ends.
struct CachedCast {
  Tensor source, cast;  // the source is held: its address must not be reused
  uint32_t version;
};
using Cache = std::unordered_map<const TensorImpl*, CachedCast>;
Cache& cache() {
  static thread_local Cache c;
  return c;
}

// Float64 stays as it is, as do integers.
bool takes_part(const TensorImpl* t) { return is_floating_point(t->dtype) && t->dtype != DType::Float64; }

Tensor cast(TensorImpl* t, DType to) {
  Tensor tensor = Tensor::borrow(t);
  if (!takes_part(t) || t->dtype == to) return tensor;
  bool keep = thread_state.autocast_cache && to != DType::Float32 && (t->bits & TensorImpl::kAutograd) &&
              !t->grad_fn && t->storage && !(thread_state.mode & TensorImpl::kTrace) &&
              thread_state.grad_mode;
  if (!keep) return tensor.to(to);
  auto it = cache().find(t);
  if (it != cache().end() && it->second.version == t->storage->version && it->second.cast.dtype() == to)
    return it->second.cast;
  Tensor result = tensor.to(to);
  cache()[t] = {tensor, result, t->storage->version};
  return result;
}

DType widest(const Op& op, const Value* args) {
  DType widest = thread_state.autocast_dtype;
  auto look = [&](const TensorImpl* t) {
    if (t && takes_part(t) && t->dtype == DType::Float32) widest = DType::Float32;
  };
  for (int k = 0; k < op.num_tensor_args; ++k) {
    const Value& v = args[op.tensor_args[k]];
    if (v.kind == ValueKind::Tensor) look(v.tensor);
    if (v.kind == ValueKind::TensorList)
      for (auto& t : v.tensors()) look(t.impl());
  }
  return widest;
}

}  // namespace

namespace autocast {

void interpret(const Op& op, const Value* args, Value* outs, uint32_t bits) {
  Autocast rule = op.def->autocast;
  if (rule == Autocast::None || op.form != OpForm::Functional) return redispatch(op, args, outs, bits);
  DType to = rule == Autocast::Lower     ? thread_state.autocast_dtype
             : rule == Autocast::Float32 ? DType::Float32
                                         : widest(op, args);
  // The casts, and what the op itself calls, are not cast again.
  InterpreterGuard guard(TensorImpl::kAutocast);
  std::vector<Value> values(args, args + op.num_args);
  std::vector<Tensor> keep;
  std::vector<std::vector<Tensor>> lists;
  keep.reserve(op.num_tensor_args);
  lists.reserve(op.num_tensor_args);
  for (int k = 0; k < op.num_tensor_args; ++k) {
    Value& v = values[op.tensor_args[k]];
    if (v.kind == ValueKind::Tensor) {
      v = Value(keep.emplace_back(cast(v.tensor, to)));
    } else if (v.kind == ValueKind::TensorList) {
      auto& list = lists.emplace_back();
      for (auto& t : v.tensors()) list.push_back(t.defined() ? cast(t.impl(), to) : Tensor());
      v = Value(TensorList(list));
    }
  }
  redispatch(op, values.data(), outs, bits);
}

bool is_enabled() { return thread_state.mode & TensorImpl::kAutocast; }
DType get_dtype() { return thread_state.autocast_dtype; }
void clear_cache() { cache().clear(); }

}  // namespace autocast

AutocastMode::AutocastMode(DType dtype, bool enabled, bool cache)
    : previous_mode_(thread_state.mode),
      previous_dtype_(thread_state.autocast_dtype),
      previous_cache_(thread_state.autocast_cache) {
  VESTA_CHECK_AS(TypeError, dtype == DType::BFloat16 || dtype == DType::Float16,
                 "AutocastMode: expected bfloat16 or half, got ", to_string(dtype));
  thread_state.autocast_dtype = dtype;
  thread_state.autocast_cache = cache;
  thread_state.mode =
      enabled ? previous_mode_ | TensorImpl::kAutocast : previous_mode_ & ~TensorImpl::kAutocast;
  ++thread_state.autocast_depth;
}

AutocastMode::~AutocastMode() {
  uint32_t bit = TensorImpl::kAutocast;
  thread_state.mode = (thread_state.mode & ~bit) | (previous_mode_ & bit);
  thread_state.autocast_dtype = previous_dtype_;
  thread_state.autocast_cache = previous_cache_;
  if (--thread_state.autocast_depth == 0) autocast::clear_cache();
}

}  // namespace vesta
