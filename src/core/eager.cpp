// Eager execution of kernels, views and decompositions: resolve conj/neg bits -> device -> dtype check or promotion ->
// infer -> allocate -> overlap check -> kernel -> version bump.
#include "core/eager.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/checked_math.h"
#include "core/call.h"
#include "core/promotion.h"
#include "core/storage.h"
#include "core/tensor_ext.h"
#include "runtime/cpu/allocator.h"

namespace vesta {
namespace {

// A copy of the argument values that holds what replaced some of them.
struct Replaced {
  std::vector<Value> values;
  std::vector<Tensor> keep;
  std::vector<std::vector<Tensor>> lists;

  void start(const Op& op, const Value*& args) {
    if (!values.empty()) return;
    values.assign(args, args + op.num_args);
    keep.reserve(Op::kMaxTensors);
    lists.reserve(Op::kMaxTensors);
    args = values.data();
  }
};

bool any_meta(const Op& op, const Value* args) {
  for (int k = 0; k < op.num_tensor_args; ++k) {
    const Value& v = args[op.tensor_args[k]];
    if (v.kind == ValueKind::Tensor && Device::unpack(v.tensor->device).is_meta()) return true;
    if (v.kind == ValueKind::TensorList)
      for (auto& t : v.tensors())
        if (t.defined() && t.is_meta()) return true;
  }
  int device_arg = op.schema.index_of("device");
  return device_arg >= 0 && args[device_arg].kind == ValueKind::Device &&
         Device::unpack(uint8_t(args[device_arg].i)).is_meta();
}

void resolve_lazy_bits(const Op& op, const Value*& args, Replaced& r) {
  constexpr uint32_t lazy = TensorImpl::kConj | TensorImpl::kNeg;
  for (int k = 0; k < op.num_tensor_args; ++k) {
    int i = op.tensor_args[k];
    const Value& v = args[i];
    if (v.kind == ValueKind::Tensor && (v.tensor->bits & lazy)) {
      r.start(op, args);
      r.keep.push_back(Tensor::borrow(v.tensor).resolve_conj().resolve_neg());
      r.values[size_t(i)] = Value(r.keep.back());
    } else if (v.kind == ValueKind::TensorList) {
      bool any = false;
      for (auto& t : v.tensors()) any |= t.defined() && (t.impl()->bits & lazy);
      if (!any) continue;
      TensorList list = v.tensors();
      r.start(op, args);
      auto& l = r.lists.emplace_back();
      for (auto& t : list) l.push_back(t.defined() ? t.resolve_conj().resolve_neg() : t);
      r.values[size_t(i)] = Value(TensorList(l));
    }
  }
}

void check_dtype(const Op& op, DType t) {
  VESTA_CHECK_AS(TypeError, op.def->types.accepts(t), op.name, ": does not take ", dtype_name(t), " tensors");
}

void apply_type_rule(const Op& op, const Value*& args, Replaced& r) {
  auto rule = op.def->types.promote;
  if (rule == Promote::None) return;
  if (rule == Promote::Same) {
    DType first = DType::Undefined;
    for (int k = 0; k < op.num_tensor_args; ++k) {
      const Value& v = args[op.tensor_args[k]];
      auto check = [&](const TensorImpl* t) {
        if (first == DType::Undefined) check_dtype(op, first = t->dtype);
        VESTA_CHECK_AS(TypeError, t->dtype == first, op.name, ": expected ", dtype_name(first), " for ",
                       op.schema.args[op.tensor_args[k]].name, ", got ", dtype_name(t->dtype));
      };
      if (v.kind == ValueKind::Tensor)
        check(v.tensor);
      else if (v.kind == ValueKind::TensorList)
        for (auto& t : v.tensors())
          if (t.defined()) check(t.impl());
    }
    return;
  }
  DType common = common_dtype(op, args);
  for (int k = 0; k < op.num_tensor_args; ++k) {
    int i = op.tensor_args[k];
    Value v = args[i];
    if (v.kind == ValueKind::Tensor && v.tensor->dtype != common) {
      r.start(op, args);
      r.keep.push_back(Tensor::borrow(v.tensor).to(common));
      r.values[size_t(i)] = Value(r.keep.back());
    } else if (v.kind == ValueKind::TensorList) {
      bool any = false;
      for (auto& t : v.tensors()) any |= t.defined() && t.dtype() != common;
      if (!any) continue;
      TensorList list = v.tensors();
      r.start(op, args);
      auto& l = r.lists.emplace_back();
      for (auto& t : list) l.push_back(t.defined() ? t.to(common) : t);
      r.values[size_t(i)] = Value(TensorList(l));
    }
  }
}

Tensor allocate(const OutMeta& m) {
  if (!m.defined) return Tensor();
  int64_t numel = checked_numel({reinterpret_cast<const int64_t*>(m.sizes()), size_t(m.ndim)}, "empty");
  int64_t elements = numel;
  if (m.has_strides && numel) {
    elements = 1;
    for (int d = 0; d < m.ndim; ++d)
      elements =
          checked_add(elements, checked_mul(m.sizes()[d].raw() - 1, m.strides()[d].raw(), "empty"), "empty");
  }
  int64_t bytes = checked_mul<int64_t>(elements, int64_t(element_size(m.dtype)), "empty");
  TensorImpl* impl = new_tensor(size_t(bytes));
  Tensor t = Tensor::adopt(impl);
  impl->dtype = m.dtype;
  if (!m.has_strides) {
    set_contiguous(impl, reinterpret_cast<const int64_t*>(m.sizes()), m.ndim);
  } else {
    set_ndim(impl, m.ndim);
    std::memcpy(impl->sizes_data(), m.sizes(), size_t(m.ndim) * 8);
    std::memcpy(impl->strides_data(), m.strides(), size_t(m.ndim) * 8);
    refresh_facts(impl);
  }
  return t;
}

void eager_view(const Op& op, const Value* args, Value* outs) {
  OutMeta meta;
  InferCtx c(op, args, &meta, 1);
  op.def->infer(c);
  if (op.list_result < 0) {
    outs[0] = detail::give(make_view(op, args[meta.view_of].tensor, meta, ViewCreation::Default));
    return;
  }
  std::vector<Tensor> list;
  list.reserve(c.list().size());
  for (auto& m : c.list())
    list.push_back(make_view(op, args[m.view_of].tensor, m, ViewCreation::MultiOutput));
  outs[0] = detail::give_list(std::move(list));
}

// A complex number lives in a slot of the thread until the next one; result values are read at once.
Value number_result(const SchemaResult& result, const Scalar& v) {
  if (result.type == ArgType::DType) return Value(DType(v.toLong()));
  if (!v.isComplex()) return Value(v);
  static thread_local Scalar slot;
  slot = v;
  return Value(slot);
}

void run_functional_kernel(const Op& op, const Value* args, std::vector<Tensor>& results) {
  if (op.def->dynamic_out) {
    results.resize(op.num_outs);
    op.def->kernels.find(DeviceType::CPU)(KernelCtx(op, args, results.data(), int(results.size()), nullptr));
    return;
  }
  std::vector<OutMeta> metas, list;
  infer_outputs(op, args, metas, list);
  for (auto& m : op.list_result >= 0 ? list : metas) results.push_back(allocate(m));
  void* workspace = nullptr;
  int64_t bytes = op.def->workspace ? op.def->workspace(Args(op, args)) : 0;
  if (bytes > 0) workspace = cpu::allocate(size_t(bytes));
  struct Free {
    void* p;
    int64_t n;
    ~Free() {
      if (p) cpu::free(p, size_t(n));
    }
  } free_workspace{workspace, bytes};
  op.def->kernels.find(DeviceType::CPU)(KernelCtx(op, args, results.data(), int(results.size()), workspace));
}

void infer_only(const Op& op, const Value* args, Value* outs) {
  std::vector<OutMeta> metas, list;
  infer_outputs(op, args, metas, list);
  Results results;
  for (auto& m : op.list_result >= 0 ? list : metas)
    results.items_.push_back(m.defined ? meta_tensor(m) : Tensor());
  give_results(op, results, outs);
}

// Runs the functional form and writes its result into the given tensors.
void write_back(const Op& op, const Value* args, Value* outs) {
  const Op& functional = op_of(op.functional);
  Value tmp[8];
  functional.eager(functional, args, tmp);
  int first = op.form == OpForm::InPlace ? 0 : op.out_arg;
  for (int j = 0; j < op.num_outs; ++j) {
    Tensor result = detail::take(tmp[j]);
    Tensor target = Tensor::borrow(args[first + j].tensor);
    if (op.form == OpForm::Out) {
      VESTA_CHECK_AS(TypeError, can_cast(result.dtype(), target.dtype()), op.name, ": result type ",
                     to_string(result.dtype()), " can't be cast to the desired output type ",
                     to_string(target.dtype()));
      resize_out(op, target, result.sizes());
    } else {
      VESTA_CHECK(target.sizes() == result.sizes(), op.name, ": the result has another shape than self");
      VESTA_CHECK_AS(TypeError, can_cast(result.dtype(), target.dtype()), op.name, ": result type ",
                     to_string(result.dtype()), " can't be cast to the desired output type ",
                     to_string(target.dtype()));
    }
    target.copy_(result);
    outs[j] = detail::give(std::move(target));
  }
}

// Blocks whose schema itself writes an argument (copy_, zero_, normal_): the kernel writes it; the results are those
// arguments.
void eager_mutating_kernel(const Op& op, const Value* args, Value* outs) {
  Replaced r;
  if (!any_meta(op, args)) {
    apply_type_rule(op, args, r);
    KernelCtx ctx(op, args, nullptr, 0, nullptr);
    op.def->kernels.find(DeviceType::CPU)(ctx);
  }
  int j = 0;
  for (int i = 0; i < op.num_args; ++i)
    if (op.schema.args[size_t(i)].mutated && args[i].kind == ValueKind::Tensor) {
      bump_version(args[i].tensor, op.id);
      if (j < op.num_outs) outs[j++] = detail::give(Tensor::borrow(args[i].tensor));
    }
}

void eager_kernel(const Op& op, const Value* args, Value* outs) {
  Replaced r;
  if (!op.def->accepts_conj) resolve_lazy_bits(op, args, r);
  if (any_meta(op, args)) return infer_only(op, args, outs);
  apply_type_rule(op, args, r);
  Results results;
  run_functional_kernel(op, args, results.items_);
  give_results(op, results, outs);
}

void eager_decompose(const Op& op, const Value* args, Value* outs) {
  Results r = op.def->decompose(Args(op, args));
  give_results(op, r, outs);
}

}  // namespace

void give_results(const Op& op, Results& r, Value* outs) {
  if (r.number_) {
    VESTA_CHECK_AS(InternalError, op.num_outs == 1 && !op.schema.results[0].tensor, op.name,
                   ": the decomposition returned a number");
    outs[0] = number_result(op.schema.results[0], *r.number_);
    return;
  }
  const size_t count = r.items_.size(), wanted = op.num_outs;
  VESTA_CHECK_AS(InternalError, op.list_result >= 0 ? count + 1 >= wanted : count == wanted, op.name,
                 ": the decomposition returned ", count, " results, expected ", wanted);
  size_t at = 0;
  for (size_t j = 0; j < wanted; ++j) {
    if (int(j) == op.list_result) {
      auto first = std::make_move_iterator(r.items_.begin() + ptrdiff_t(at));
      at += count - (wanted - 1);
      outs[j] = detail::give_list({first, std::make_move_iterator(r.items_.begin() + ptrdiff_t(at))});
    } else if (op.schema.results[j].tensor) {
      outs[j] = detail::give(std::move(r.items_[at++]));
    } else {
      outs[j] = number_result(op.schema.results[j], r.items_[at++].item());
    }
  }
}

Tensor make_view(const Op& op, TensorImpl* base, const OutMeta& m, ViewCreation creation) {
  if (!base->storage) return meta_tensor(m);
  TensorImpl* impl = new_alias(base->storage);
  Tensor t = Tensor::adopt(impl);
  impl->dtype = m.dtype;
  impl->device = base->device;
  impl->offset = m.offset.raw();
  if (base->bits & TensorImpl::kHasData)
    impl->data =
        static_cast<char*>(base->storage->data) + wrapping_mul(impl->offset, int64_t(element_size(m.dtype)));
  else
    impl->bits &= ~TensorImpl::kHasData;
  impl->bits |=
      base->bits & (TensorImpl::kConj | TensorImpl::kNeg | TensorImpl::kInference | TensorImpl::kTrace);
  auto* from_sizes = reinterpret_cast<const int64_t*>(m.sizes());
  if (!m.has_strides) {
    set_contiguous(impl, from_sizes, m.ndim);
  } else {
    if (m.ndim <= TensorImpl::kInlineDims)
      impl->ndim = uint8_t(m.ndim);
    else
      set_ndim(impl, m.ndim);
    auto* from_strides = reinterpret_cast<const int64_t*>(m.strides());
    int64_t *sizes = impl->sizes_data(), *strides = impl->strides_data();
    for (int d = 0; d < m.ndim; ++d) {
      sizes[d] = from_sizes[d];
      strides[d] = from_strides[d];
    }
    if (impl->bits & TensorImpl::kTrace) [[unlikely]]
      symbolic_facts(impl);
    else
      refresh_facts(impl);
  }
  if (op.def->non_differentiable)
    return t;  // detach: shares storage and version, but is no view for autograd
  TensorImpl* root = base->bits & TensorImpl::kView ? base->view.base : base;
  root->refs.fetch_add(1, std::memory_order_relaxed);
  impl->view.base = root;
  impl->view.grad_version = base->storage->version;
  impl->view.creation =
      uint8_t(!thread_state.grad_mode && creation == ViewCreation::Default ? ViewCreation::NoGrad : creation);
  impl->bits |= TensorImpl::kView;
  return t;
}

void resize_out(const Op& op, const Tensor& out, IntArrayRef sizes) {
  if (out.sizes() == sizes) return;
  TensorImpl* impl = out.impl();
  int64_t numel = checked_numel({sizes.data(), sizes.size()}, op.name.c_str());
  VESTA_CHECK(impl->numel == 0 || uint64_t(numel) * element_size(impl->dtype) <= impl->storage->bytes ||
                  !(impl->bits & TensorImpl::kView),
              op.name, ": cannot resize an out= tensor that is a view");
  if (uint64_t(numel) * element_size(impl->dtype) > impl->storage->bytes) {
    Tensor fresh = empty_cpu(sizes, impl->dtype);
    Storage* s = fresh.impl()->storage;
    s->refs.fetch_add(1, std::memory_order_relaxed);
    Storage* old = impl->storage;
    impl->storage = s;
    impl->data = s->data;
    impl->offset = 0;
    if (old != &impl->own) release_storage(old);
  }
  set_contiguous(impl, sizes.data(), int(sizes.size()));
}

Tensor& KernelCtx::allocate(int j, IntArrayRef sizes, DType dtype) const {
  return outs_[j] = empty_cpu(sizes, dtype);
}

EagerFn choose_eager(const Op& op) {
  bool kernel = op.def->kernels.find(DeviceType::CPU);
  // The composition of a list's in-place form sees the form and writes the list itself.
  if (op.form == OpForm::InPlace && op.num_outs == 0) return eager_decompose;
  if (op.form != OpForm::Functional) return write_back;
  if (kernel && op.mutates) return eager_mutating_kernel;
  if (kernel) return eager_kernel;
  if (op.returns_view && op.def->infer) return eager_view;
  if (op.def->decompose) return eager_decompose;
  return nullptr;
}

}  // namespace vesta
