// Operators that change what memory a tensor shows, not the elements: the in-place forms of views, resize_ and set_.
// They keep the tensor's identity, so a trace, which names values, cannot record them.
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/checked_math.h"
#include "core/call.h"
#include "core/storage.h"
#include "core/tensor_ext.h"
#include "ops/infer.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

void check_not_traced(const Args& a) {
  VESTA_CHECK_AS(NotImplementedError, !thread_state.tracer, a.name(), ": changes which memory a tensor shows, which a trace cannot record; use the form that returns a view");
}

void set_geometry(TensorImpl* t, int ndim, const int64_t* sizes, const int64_t* strides, int64_t offset) {
  set_ndim(t, ndim);
  std::copy_n(sizes, ndim, t->sizes_data());
  std::copy_n(strides, ndim, t->strides_data());
  t->offset = offset;
  if (t->bits & TensorImpl::kHasData) t->data = static_cast<char*>(t->storage->data) + wrapping_mul(offset, int64_t(element_size(t->dtype)));
  refresh_facts(t);
}

// self becomes `make(self)`, a view of it, and takes over the view's history. It stays a view of its old base, or
// none: nothing was written, so the base's own gradient is as it was.
template <class Make>
Results become(const Args& a, Make make) {
  check_not_traced(a);
  const Tensor& self = a.tensor(0);
  TensorImpl* t = self.impl();
  VESTA_CHECK(!(thread_state.grad_mode && (t->bits & TensorImpl::kAutograd) && !t->grad_fn), a.name(),
              ": a leaf tensor that requires grad is being used in an in-place operation; wrap the call in NoGradGuard or use the functional form");
  Tensor view = make(self);
  TensorImpl* v = view.impl();
  if (v == t) return self;
  bump_version(t, a.op().id);
  set_geometry(t, v->ndim, v->sizes_data(), v->strides_data(), v->offset);
  if (v->bits & TensorImpl::kTangent) ensure_ext(t).tangent = v->ext->tangent;
  if (v->grad_fn) {
    std::swap(t->grad_fn, v->grad_fn);
    std::swap(t->output_nr, v->output_nr);
    if (t->bits & TensorImpl::kView) t->view.grad_version = t->storage->version;
  }
  return self;
}

// ---- resize_, set_ ----
void check_no_gradient(const Args& a, const Tensor& t) {
  VESTA_CHECK(!thread_state.grad_mode || !t.requires_grad(), a.name(), ": tensors that require grad cannot change their memory; wrap the call in NoGradGuard");
}
void check_has_memory(const Args& a, const Tensor& t) {
  VESTA_CHECK_AS(NotImplementedError, (t.impl()->bits & TensorImpl::kHasData) && t.impl()->storage, a.name(), ": expected a tensor with data");
}
void replace_storage(TensorImpl* t, Storage* with) {
  if (t->storage == with) return;
  with->refs.fetch_add(1, std::memory_order_relaxed);
  Storage* old = t->storage;
  t->storage = with;
  if (old && old != &t->own) release_storage(old);  // an embedded storage goes with the tensor's own block
}
// Elements of the storage that a geometry reaches.
int64_t reach_of(const Args& a, IntArrayRef sizes, IntArrayRef strides, int64_t offset) {
  VESTA_CHECK(sizes.size() == strides.size(), a.name(), ": expected as many strides as sizes, got ", strides.size(), " and ", sizes.size());
  VESTA_CHECK(offset >= 0, a.name(), ": expected a storage offset >= 0, got ", offset);
  int64_t reach = checked_add<int64_t>(offset, 1, a.name());
  bool empty = false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    VESTA_CHECK(sizes[d] >= 0 && strides[d] >= 0, a.name(), ": expected sizes and strides >= 0, got ", sizes[d], " and ", strides[d]);
    empty |= sizes[d] == 0;
    if (sizes[d] > 0) reach = checked_add(reach, checked_mul(sizes[d] - 1, strides[d], a.name()), a.name());
  }
  return empty ? 0 : reach;
}
Results resize(const Args& a, IntArrayRef sizes, const Value& format) {
  check_not_traced(a);
  const Tensor& self = a.tensor(0);
  check_no_gradient(a, self);
  check_has_memory(a, self);
  checked_numel({sizes.data(), sizes.size()}, a.name());
  MemoryFormat f = format.is_none() ? MemoryFormat::Contiguous : MemoryFormat(format.i);
  std::vector<int64_t> strides(sizes.size());
  if (f == MemoryFormat::Contiguous) contiguous_strides(sizes.data(), int(sizes.size()), strides.data());
  else {
    VESTA_CHECK(f != MemoryFormat::Preserve, a.name(), ": preserve_format is not a layout");
    Tensor model = empty(sizes, TensorOptions(kBool), f);
    strides = model.strides().vec();
  }
  TensorImpl* t = self.impl();
  int64_t reach = reach_of(a, sizes, strides, t->offset), bytes = checked_mul<int64_t>(reach, int64_t(self.element_size()), a.name());
  if (uint64_t(bytes) > t->storage->bytes) {
    VESTA_CHECK(!(t->bits & TensorImpl::kView), a.name(), ": a view cannot get more memory than its base has");
    // Tensors that shared the old memory keep it: they see no writes to the new one.
    Tensor fresh = empty_cpu({reach}, self.dtype());
    std::memcpy(fresh.data_ptr(), t->storage->data, size_t(t->storage->bytes));
    replace_storage(t, fresh.impl()->storage);
  }
  bump_version(t, a.op().id);
  set_geometry(t, int(sizes.size()), sizes.data(), strides.data(), t->offset);
  return self;
}
Results set_to(const Args& a, const Tensor& source, int64_t offset, IntArrayRef sizes, IntArrayRef strides) {
  check_not_traced(a);
  const Tensor& self = a.tensor(0);
  check_no_gradient(a, self);
  check_no_gradient(a, source);
  check_has_memory(a, self);
  check_has_memory(a, source);
  VESTA_CHECK_AS(TypeError, self.dtype() == source.dtype(), a.name(), ": expected a source of ", dtype_name(self.dtype()), ", got ", dtype_name(source.dtype()));
  checked_numel({sizes.data(), sizes.size()}, a.name());
  std::vector<int64_t> dense(sizes.size());
  if (strides.empty()) {
    contiguous_strides(sizes.data(), int(sizes.size()), dense.data());
    strides = dense;
  }
  int64_t reach = reach_of(a, sizes, strides, offset);
  VESTA_CHECK(uint64_t(checked_mul<int64_t>(reach, int64_t(self.element_size()), a.name())) <= source.impl()->storage->bytes, a.name(), ": sizes and strides reach element ", reach,
              ", past the end of the source's storage of ", source.impl()->storage->bytes, " bytes");
  bump_version(self.impl(), a.op().id);
  replace_storage(self.impl(), source.impl()->storage);
  if (self.impl()->bits & TensorImpl::kView) {  // no view of its old base any more
    self.impl()->bits &= ~TensorImpl::kView;
    detail::release(self.impl()->view.base);
  }
  set_geometry(self.impl(), int(sizes.size()), sizes.data(), strides.data(), offset);
  constexpr uint32_t lazy = TensorImpl::kConj | TensorImpl::kNeg;
  self.impl()->bits = (self.impl()->bits & ~lazy) | (source.impl()->bits & lazy);
  return self;
}
// What `set_` and `resize_` do must not be watched by autograd, so samples are integers.
bool plain(const SampleGen& s) { return is_integral(s.dtype(), true); }

constexpr OpDef table[] = {
OP("t_(Tensor(a!) self) -> Tensor(a!)",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) { return become(a, [](const Tensor& t) { return t.t(); }); },
  .shard = Shard::view(), .doc = "Transposes a matrix in place.", .samples = [](SampleGen& s) { s(s.t({3, 4})); s(s.t({3})); }),
OP("transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) { return become(a, [&](const Tensor& t) { return t.transpose(a.integer(1), a.integer(2)); }); },
  .shard = Shard::view(), .doc = "Swaps two dims in place.", .samples = [](SampleGen& s) { s(s.t({2, 3, 4}), 0, -1); }),
OP("swapaxes_(Tensor(a!) self, int axis0, int axis1) -> Tensor(a!)",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) { return become(a, [&](const Tensor& t) { return t.transpose(a.integer(1), a.integer(2)); }); },
  .shard = Shard::view(), .doc = "transpose_.", .samples = [](SampleGen& s) { s(s.t({2, 3, 4}), 0, -1); }),
OP("swapdims_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) { return become(a, [&](const Tensor& t) { return t.transpose(a.integer(1), a.integer(2)); }); },
  .shard = Shard::view(), .doc = "transpose_.", .samples = [](SampleGen& s) { s(s.t({2, 3, 4}), 0, -1); }),
OP("squeeze_(Tensor(a!) self) -> Tensor(a!)",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) { return become(a, [](const Tensor& t) { return t.squeeze(); }); },
  .shard = Shard::view(), .doc = "Drops the dims of size 1 in place.", .samples = [](SampleGen& s) { s(s.t({3, 1, 4, 1})); s(s.t({})); }),
OP("squeeze_.dim(Tensor(a!) self, int dim) -> Tensor(a!)",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) { return become(a, [&](const Tensor& t) { return t.squeeze(a.integer(1)); }); },
  .shard = Shard::view(), .doc = "Drops this dim in place, if its size is 1.", .samples = [](SampleGen& s) { s(s.t({3, 1, 4}), 1); s(s.t({3, 1, 4}), 0); }),
OP("squeeze_.dims(Tensor(a!) self, int[] dim) -> Tensor(a!)",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) { return become(a, [&](const Tensor& t) { return t.squeeze(a.ints(1)); }); },
  .shard = Shard::view(), .doc = "Drops those of these dims whose size is 1, in place.", .samples = [](SampleGen& s) { s(s.t({3, 1, 1}), std::vector<int64_t>{1, -1}); }),
OP("unsqueeze_(Tensor(a!) self, int dim) -> Tensor(a!)",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) { return become(a, [&](const Tensor& t) { return t.unsqueeze(a.integer(1)); }); },
  .shard = Shard::view(), .doc = "Adds a dim of size 1 in place.", .samples = [](SampleGen& s) { s(s.t({3, 4}), 0); s(s.t({3, 4}), -1); }),
OP("as_strided_(Tensor(a!) self, int[] size, int[] stride, int? storage_offset=None) -> Tensor(a!)",
  .types = any_types, .accepts_conj = true,
  .decompose = [](const Args& a) { return become(a, [&](const Tensor& t) { return t.as_strided(a.ints(1), a.ints(2), a.has(3) ? std::optional<int64_t>(a.integer(3)) : std::nullopt); }); },
  .shard = Shard::view(), .doc = "Sets sizes, strides and offset within the storage.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), std::vector<int64_t>{2, 2}, std::vector<int64_t>{1, 2}, 1); }),
OP("detach_(Tensor(a!) self) -> Tensor(a!)",
  .types = any_types, .accepts_conj = true,
  .decompose = [](const Args& a) -> Results {
      TensorImpl* t = a.tensor(0).impl();
      VESTA_CHECK(!(t->bits & TensorImpl::kView), "detach_: a view cannot be detached in place; use detach");
      check_not_traced(a);
      if (t->grad_fn) release_grad_node(std::exchange(t->grad_fn, nullptr));
      t->bits &= ~TensorImpl::kAutograd;
      return a.tensor(0); },
  .non_differentiable = true, .shard = {"copy"}, .doc = "Takes the tensor out of the graph that made it: it becomes a leaf without gradient.",
  .samples = [](SampleGen& s) { s(s.t({3, 4})); }),
OP("resize_(Tensor(a!) self, int[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) { return resize(a, a.ints(1), a.value(2)); }, .non_differentiable = true,
  .shard = {"none"}, .doc = "Other sizes over the same memory, or over a larger copy of it whose new elements are uninitialised.",
  .samples = [](SampleGen& s) { if (plain(s)) { s(s.t({3, 4}), std::vector<int64_t>{2, 3}); s(s.t({0}), std::vector<int64_t>{0, 3}); } }),
OP("resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor(a!)",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) { return resize(a, a.tensor(1).sizes(), a.value(2)); }, .non_differentiable = true,
  .shard = {"none"}, .doc = "resize_ to the sizes of another tensor.", .samples = [](SampleGen& s) { if (plain(s)) s(s.t({3, 4}), s.t({2, 3})); }),
OP("set_(Tensor(a!) self) -> Tensor(a!)",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) { return set_to(a, empty({0}, a.tensor(0).options()), 0, {0}, {}); }, .non_differentiable = true,
  .shard = {"none"}, .doc = "Lets go of the memory: no elements.", .samples = [](SampleGen& s) { if (plain(s)) s(s.t({3, 4})); }),
OP("set_.source_Tensor(Tensor(a!) self, Tensor source) -> Tensor(a!)",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) { return set_to(a, a.tensor(1), a.tensor(1).storage_offset(), a.tensor(1).sizes(), a.tensor(1).strides()); },
  .non_differentiable = true, .shard = {"copy"}, .doc = "Shows the memory of another tensor.", .samples = [](SampleGen& s) { if (plain(s)) s(s.t({3, 4}), s.t({2})); }),
OP("set_.source_Tensor_storage_offset(Tensor(a!) self, Tensor source, int storage_offset, int[] size, int[] stride=[]) -> Tensor(a!)",
  .types = any_types, .accepts_conj = true, .decompose = [](const Args& a) { return set_to(a, a.tensor(1), a.integer(2), a.ints(3), a.ints(4)); },
  .non_differentiable = true, .shard = {"copy"}, .doc = "Shows a part of the storage of another tensor.",
  .samples = [](SampleGen& s) { if (plain(s)) s(s.t({3, 4}), s.t({12}), 2, std::vector<int64_t>{2, 3}); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(reshape_in_place, table)
