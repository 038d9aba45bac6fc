// InferCtx: describing outputs; and the metas of ops without an inference of their own.
#include <algorithm>

#include "base/checked_math.h"
#include "core/call.h"
#include "core/eager.h"
#include "core/promotion.h"
#include "core/storage.h"

namespace vesta {

const char* Args::name() const { return op_.name.c_str(); }

int Args::index_of(const char* arg_name) const {
  int i = op_.schema.index_of(arg_name);
  VESTA_CHECK_AS(InternalError, i >= 0, op_.name, ": the schema has no argument ", arg_name);
  return i;
}

void InferCtx::throw_dim_out_of_range(int64_t d, int64_t n) const {
  throw IndexError(detail::message(name(), ": expected a dim in [", -n, ", ", n - 1, "], got ", d));
}

void InferCtx::set_count(int n) {
  VESTA_CHECK(n >= 0, name(), ": expected a number of results >= 0, got ", n);
  list_.resize(size_t(n));
  outs_ = list_.data();
  num_outs_ = n;
}

void InferCtx::out_strided(int j, ArrayRef<SymInt> sizes, ArrayRef<SymInt> strides, DType dtype,
                           Device device) {
  OutMeta& m = outs_[j];
  m.defined = true;
  m.dtype = dtype;
  m.device = device;
  m.resize(int(sizes.size()));
  std::copy(sizes.begin(), sizes.end(), m.sizes());
  m.has_strides = strides.data() != nullptr;
  if (m.has_strides) std::copy(strides.begin(), strides.end(), m.strides());
}

void InferCtx::out(int j, ArrayRef<SymInt> sizes, DType dtype, Device device) {
  for (SymInt s : sizes)
    VESTA_CHECK(s.is_symbolic() || s.raw() >= 0, name(), ": expected sizes >= 0, got ", s.str());
  out_strided(j, sizes, {}, dtype, device);
}

void InferCtx::out_like(int j, int i, std::optional<DType> dtype) {
  const Tensor& t = tensor(i);
  bool keep_order = (t.impl()->bits & TensorImpl::kDense) && !t.impl()->contiguous();
  out_strided(j, sizes(i), keep_order ? strides(i) : ArrayRef<SymInt>(), dtype.value_or(t.dtype()),
              t.device());
}

void InferCtx::out_view(int j, int i, ArrayRef<SymInt> sizes, ArrayRef<SymInt> strides, SymInt offset,
                        std::optional<DType> dtype) {
  OutMeta& m = outs_[j];
  const TensorImpl* t = tensor(i).impl();
  m.defined = m.has_strides = true;
  m.dtype = dtype.value_or(t->dtype);
  m.device = Device::unpack(t->device);
  m.resize(int(sizes.size()));
  SymInt *to_sizes = m.sizes(), *to_strides = m.strides();
  for (size_t d = 0; d < sizes.size(); ++d) {
    to_sizes[d] = sizes[d];
    to_strides[d] = strides[d];
  }
  m.view_of = i;
  m.offset = offset;
}

void InferCtx::out_none(int j) { outs_[j].defined = false; }

void symbolic_facts(TensorImpl* impl) {
  auto* sizes = reinterpret_cast<SymInt*>(impl->sizes_data());
  auto* strides = reinterpret_cast<SymInt*>(impl->strides_data());
  bool symbolic = false, contiguous = true;
  SymInt numel = 1;
  for (int d = impl->ndim - 1; d >= 0; --d) {
    symbolic |= sizes[d].is_symbolic() || strides[d].is_symbolic();
    if (sizes[d].is_symbolic() || sizes[d].raw() != 1) contiguous &= strides[d].raw() == numel.raw();
    numel *= sizes[d];
  }
  if (!symbolic) return refresh_facts(impl);
  impl->bits |= TensorImpl::kTrace;
  impl->numel = numel.raw();
  impl->bits &= ~(TensorImpl::kContiguous | TensorImpl::kDense);
  if (contiguous) impl->bits |= TensorImpl::kContiguous | TensorImpl::kDense;
}

Tensor meta_tensor(const OutMeta& m) {
  TensorImpl* impl = new_bare_tensor();
  Tensor t = Tensor::adopt(impl);
  impl->dtype = m.dtype;
  impl->device = Device(DeviceType::Meta).packed();
  set_ndim(impl, m.ndim);
  for (int d = 0; d < m.ndim; ++d) impl->sizes_data()[d] = m.sizes()[d].raw();
  if (m.has_strides) {
    for (int d = 0; d < m.ndim; ++d) impl->strides_data()[d] = m.strides()[d].raw();
    impl->offset = m.offset.raw();
  } else {
    SymInt step = 1;
    for (int d = m.ndim - 1; d >= 0; --d) {
      impl->strides_data()[d] = step.raw();
      if (m.sizes()[d].is_symbolic() || m.sizes()[d].raw() > 1) step *= m.sizes()[d];
    }
  }
  symbolic_facts(impl);
  return t;
}

namespace {

OutMeta meta_of(const Tensor& t) {
  OutMeta m;
  if (!t.defined()) return m;
  m.defined = true;
  m.dtype = t.dtype();
  m.device = t.device();
  m.resize(int(t.dim()));
  for (int d = 0; d < m.ndim; ++d) {
    m.sizes()[d] = SymInt(t.sizes()[size_t(d)]);
    m.strides()[d] = SymInt(t.strides()[size_t(d)]);
  }
  m.has_strides = true;
  m.offset = t.storage_offset();
  return m;
}

// Pointwise shape: broadcast of the tensor arguments; dtype by the block's rule.
void infer_pointwise(InferCtx& c, const Op& op, const Value* args) {
  std::vector<SymInt> sizes;
  Device device;
  for (int k = 0; k < op.num_tensor_args; ++k) {
    const Tensor& t = c.tensor(op.tensor_args[k]);
    if (!t.defined()) continue;
    device = t.device();
    auto s = InferCtx::sizes_of(t);
    if (s.size() > sizes.size()) sizes.insert(sizes.begin(), s.size() - sizes.size(), SymInt(1));
    for (size_t d = 0; d < s.size(); ++d) {
      SymInt& have = sizes[sizes.size() - s.size() + d];
      if (have == s[d] || s[d] == 1) continue;
      VESTA_CHECK(have == 1, op.name, ": expected sizes that broadcast, got ", have.str(), " and ",
                  s[d].str(), " at dim ", sizes.size() - s.size() + d);
      have = s[d];
    }
  }
  DType common = common_dtype(op, args);
  DType result = common;
  switch (op.def->types.result) {
    case ResultType::Same:
      break;
    case ResultType::Bool:
      result = DType::Bool;
      break;
    case ResultType::Real:
      result = real_dtype(common);
      break;
    case ResultType::Integer:
      result = DType::Int64;
      break;
  }
  // One dense operand order is kept when all operands share it.
  ArrayRef<SymInt> strides;
  const Tensor* first = nullptr;
  for (int k = 0; k < op.num_tensor_args; ++k) {
    const Tensor& t = c.tensor(op.tensor_args[k]);
    if (!t.defined() || t.dim() != int64_t(sizes.size())) continue;
    bool full = InferCtx::sizes_of(t) == ArrayRef<SymInt>(sizes);
    if (full && !first) first = &t;
  }
  if (first && (first->impl()->bits & TensorImpl::kDense) && !first->impl()->contiguous())
    strides = InferCtx::strides_of(*first);
  for (int j = 0; j < std::max<int>(1, op.num_outs); ++j) c.out_strided(j, sizes, strides, result, device);
}

}  // namespace

void infer_outputs(const Op& op, const Value* args, std::vector<OutMeta>& outs, std::vector<OutMeta>& list) {
  outs.assign(std::max<size_t>(1, op.num_outs), OutMeta());
  InferCtx c(op, args, outs.data(), int(outs.size()));
  if (op.def->infer) {
    op.def->infer(c);
    if (op.list_result >= 0) list = std::move(c.list());
  } else if (op.def->scalar.classes && !op.def->decompose) {
    infer_pointwise(c, op, args);
  } else {
    VESTA_CHECK_AS(InternalError, op.def->decompose, op.name, ": the block has no shape inference");
    // Run the decomposition on meta tensors; nested calls infer in turn.
    std::vector<Value> metas(args, args + op.num_args);
    std::vector<Tensor> keep;
    std::vector<std::vector<Tensor>> lists;
    for (int k = 0; k < op.num_tensor_args; ++k) {
      Value& v = metas[op.tensor_args[k]];
      if (v.kind == ValueKind::Tensor) {
        keep.push_back(meta_tensor(meta_of(Tensor::borrow(v.tensor))));
        v = Value(keep.back());
      } else if (v.kind == ValueKind::TensorList) {
        auto& l = lists.emplace_back();
        for (auto& t : v.tensors()) l.push_back(t.defined() ? meta_tensor(meta_of(t)) : Tensor());
        v = Value(TensorList(l));
      }
    }
    Results r = op.def->decompose(Args(op, metas.data()));
    if (op.list_result >= 0) {
      for (auto& t : r.items_) list.push_back(meta_of(t));
    } else {
      for (size_t j = 0; j < r.items_.size(); ++j) {
        outs[j] = meta_of(r.items_[j]);
        outs[j].device = Device();
      }
    }
  }
}

}  // namespace vesta
