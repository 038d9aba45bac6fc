// New tensors and copies: empty, full, arange, eye, clone, dtype conversion, copy_ and fill_.
#include <cmath>
#include <cstring>

#include "base/checked_math.h"
#include "core/registry.h"
#include "core/storage.h"
#include "kernels/cpu/copy.h"
#include "ops/infer.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

std::vector<SymInt> sym(IntArrayRef v) { return {v.begin(), v.end()}; }

// Strides of a memory format for these sizes; empty means contiguous.
std::vector<SymInt> format_strides(const Args& a, ArrayRef<SymInt> s, MemoryFormat f) {
  if (f != MemoryFormat::ChannelsLast && f != MemoryFormat::ChannelsLast3d) return {};
  size_t n = f == MemoryFormat::ChannelsLast ? 4 : 5;
  VESTA_CHECK(s.size() == n, a.name(), ": ", f == MemoryFormat::ChannelsLast ? "channels_last" : "channels_last_3d", " needs ", n, " dims, got ", s.size());
  std::vector<SymInt> strides(n);
  SymInt step = 1;
  strides[1] = step;
  step *= max(s[1], 1);
  for (size_t d = n - 1; d >= 2; --d) {
    strides[d] = step;
    step *= max(s[d], 1);
  }
  strides[0] = step;
  return strides;
}

// Factories: sizes in argument 0; dtype and device at the given positions.
template <int dtype_at, int device_at>
void infer_sizes(InferCtx& c) {
  c.out(0, sym(c.ints(0)), c.dtype(dtype_at, get_default_dtype()), c.device(device_at));
}
void infer_empty(InferCtx& c) {
  std::vector<SymInt> sizes = sym(c.ints(0));
  DType t = c.dtype(1, get_default_dtype());
  if (c.has(5) && MemoryFormat(c.integer(5)) != MemoryFormat::Contiguous) {
    auto strides = format_strides(c, sizes, MemoryFormat(c.integer(5)));
    c.out_strided(0, sizes, strides.empty() ? ArrayRef<SymInt>() : ArrayRef<SymInt>(strides), t, c.device(3));
  } else {
    c.out(0, sizes, t, c.device(3));
  }
}
void infer_empty_strided(InferCtx& c) {
  VESTA_CHECK(c.ints(0).size() == c.ints(1).size(), c.name(), ": expected as many strides as sizes");
  auto strides = sym(c.ints(1));
  for (auto s : strides) VESTA_CHECK(s >= 0, c.name(), ": expected strides >= 0");
  static const SymInt none[1] = {};
  c.out_strided(0, sym(c.ints(0)), ArrayRef<SymInt>(strides.empty() ? none : strides.data(), strides.size()), c.dtype(2, get_default_dtype()), c.device(4));
}
// The dtype of full: the number's own class where none is given.
DType number_dtype(const Scalar& v) {
  return v.isBoolean() ? kBool : v.isIntegral() ? kLong : v.isComplex() ? (get_default_dtype() == kDouble ? kComplexDouble : kComplexFloat) : get_default_dtype();
}
void infer_full(InferCtx& c) { c.out(0, sym(c.ints(0)), c.dtype(2, number_dtype(c.scalar(1))), c.device(4)); }
void infer_scalar_tensor(InferCtx& c) { c.out(0, {}, c.dtype(1, get_default_dtype()), c.device(3)); }

// Like argument 0, keeping its dense order or taking a format. dtype/device/format positions given.
void infer_like(InferCtx& c, int dtype_at, int device_at, int format_at) {
  const Tensor& t = c.tensor(0);
  MemoryFormat f = c.has(format_at) ? MemoryFormat(c.integer(format_at)) : MemoryFormat::Preserve;
  DType dtype = dtype_at < 0 ? t.dtype() : c.dtype(dtype_at, t.dtype());
  Device device = device_at < 0 ? t.device() : c.device(device_at, t.device());
  bool dense = t.impl()->bits & TensorImpl::kDense;
  if (f == MemoryFormat::Preserve && dense && !t.impl()->contiguous()) {
    c.out_strided(0, c.sizes(0), c.strides(0), dtype, device);
  } else {
    auto strides = format_strides(c, c.sizes(0), f == MemoryFormat::Preserve ? MemoryFormat::Contiguous : f);
    c.out_strided(0, c.sizes(0), strides.empty() ? ArrayRef<SymInt>() : ArrayRef<SymInt>(strides), dtype, device);
  }
}
void infer_clone(InferCtx& c) { infer_like(c, -1, -1, 1); }
void infer_to_copy(InferCtx& c) { infer_like(c, 1, 3, 6); }
void infer_empty_like(InferCtx& c) { infer_like(c, 1, 3, 5); }

void k_empty(const KernelCtx&) {}
void zero_elements(const Tensor& t) {
  if (t.is_contiguous()) std::memset(t.data_ptr(), 0, t.nbytes());
  else cpu::fill_elements(t.dtype() == kFloat4_e2m1fn_x2 ? t.view(kUInt8) : t, 0);
}
void k_zeros(const KernelCtx& k) { zero_elements(k.out()); }
void k_full(const KernelCtx& k) { cpu::fill_elements(k.out(), k.scalar(1)); }
void k_scalar_tensor(const KernelCtx& k) { cpu::fill_elements(k.out(), k.scalar(0)); }
void k_copy_self(const KernelCtx& k) { cpu::copy_elements(k.out(), k.tensor(0)); }

void k_copy_(const KernelCtx& k) {
  const Tensor &dst = k.tensor(0);
  if (dst.impl() == k.tensor(1).impl()) return;
  // Lazy bits: the source is resolved; a lazily conjugated or negated destination stores the inverse of what it shows.
  Tensor src = k.tensor(1).resolve_conj().resolve_neg();
  if (dst.is_conj()) src = src.conj_physical();
  if (dst.is_neg()) src = src.neg();
  TensorImpl* d = dst.impl();
  for (int i = 0; i < d->ndim; ++i)
    VESTA_CHECK(d->strides_data()[i] != 0 || d->sizes_data()[i] <= 1, "copy_: the written tensor has elements that share memory; clone it first");
  // src broadcasts to dst.
  VESTA_CHECK(src.dim() <= dst.dim(), "copy_: cannot broadcast a tensor with ", src.dim(), " dims to one with ", dst.dim());
  for (int64_t i = 0; i < src.dim(); ++i) {
    int64_t s = src.sizes()[size_t(src.dim() - 1 - i)], t = dst.sizes()[size_t(dst.dim() - 1 - i)];
    VESTA_CHECK(s == t || s == 1, "copy_: cannot broadcast size ", s, " to ", t);
  }
  if (cpu::may_overlap(dst, src)) {
    bool same = d->data == src.impl()->data && dst.sizes() == src.sizes() && dst.strides() == src.strides() && dst.dtype() == src.dtype();
    if (same) return;
    src = src.clone();
  }
  cpu::copy_elements(dst, src);
}

void check_writable(const Args& a) {
  TensorImpl* d = a.tensor(0).impl();
  for (int i = 0; i < d->ndim; ++i)
    VESTA_CHECK(d->strides_data()[i] != 0 || d->sizes_data()[i] <= 1, a.name(), ": the written tensor has elements that share memory; clone it first");
}
void k_fill_scalar(const KernelCtx& k) {
  check_writable(k);
  cpu::fill_elements(k.tensor(0), k.scalar(1));
}
void k_zero_(const KernelCtx& k) {
  check_writable(k);
  zero_elements(k.tensor(0));
}

// ---- arange ----
// As PyTorch counts: an int64 result truncates all three first, other integers only the values.
int64_t arange_length(const Args& a, Scalar start, Scalar end, Scalar step, DType dtype) {
  if (dtype == kLong) start = start.toLong(), end = end.toLong(), step = step.toLong();
  double s = start.toDouble(), e = end.toDouble(), d = step.toDouble();
  VESTA_CHECK(d != 0, a.name(), ": expected a step other than 0");
  VESTA_CHECK(std::isfinite(s) && std::isfinite(e), a.name(), ": expected finite bounds, got ", s, " and ", e);
  VESTA_CHECK((d > 0 && e >= s) || (d < 0 && e <= s), a.name(), ": the bounds ", s, " and ", e, " do not fit the sign of step ", d);
  double n;
  if (is_integral(dtype, true) && start.isIntegral() && end.isIntegral() && step.isIntegral()) {
    int64_t si = start.toLong(), ei = end.toLong(), di = step.toLong();
    n = double((__int128(ei) - si + di + (di > 0 ? -1 : 1)) / di);  // differences of two int64 need 65 bits
  } else {
    n = std::ceil((e - s) / d);
  }
  VESTA_CHECK(n >= 0 && n <= 9e15, a.name(), ": the result would have ", n, " elements");
  return int64_t(n);
}
DType arange_dtype(const Args& a, int dtype_at, std::initializer_list<Scalar> bounds) {
  bool integral = true;
  for (auto& b : bounds) integral &= b.isIntegral(true);
  return a.dtype(dtype_at, integral ? kLong : get_default_dtype());
}
void infer_arange(InferCtx& c) {
  Scalar start = c.scalar(0), end = c.scalar(1), step = c.scalar(2);
  DType t = arange_dtype(c, 3, {start, end, step});
  c.out(0, {SymInt(arange_length(c, start, end, step, t))}, t, c.device(5));
}
void k_arange(const KernelCtx& k) {
  Tensor& out = k.out();
  int64_t n = out.numel();
  if (is_integral(out.dtype(), true)) {
    Tensor t = out.dtype() == kLong ? out : empty_cpu({n}, kLong);
    int64_t s = k.scalar(0).toLong(), d = k.scalar(2).toLong();
    auto* p = t.data_ptr<int64_t>();
    for (int64_t i = 0; i < n; ++i) p[i] = int64_t(uint64_t(s) + uint64_t(i) * uint64_t(d));  // fits in int64 by the length
    if (!t.is_same(out)) cpu::copy_elements(out, t);
  } else {
    Tensor t = out.dtype() == kDouble ? out : empty_cpu({n}, kDouble);
    double s = k.scalar(0).toDouble(), d = k.scalar(2).toDouble();
    auto* p = t.data_ptr<double>();
    for (int64_t i = 0; i < n; ++i) p[i] = s + double(i) * d;
    if (!t.is_same(out)) cpu::copy_elements(out, t);
  }
}

void infer_eye(InferCtx& c) {
  bool square = c.op().num_args == 5;
  int64_t n = c.integer(0), m = square ? n : c.integer(1);
  VESTA_CHECK(n >= 0 && m >= 0, c.name(), ": expected sizes >= 0, got ", n, " and ", m);
  int shift = square ? 0 : 1;
  c.out(0, {SymInt(n), SymInt(m)}, c.dtype(1 + shift, get_default_dtype()), c.device(3 + shift));
}
void k_eye(const KernelCtx& k) {
  cpu::fill_elements(k.out(), 0);
  Tensor d = k.out().diagonal();
  cpu::fill_elements(d, 1);
}

TensorOptions options_from(const Args& a, int at, const Tensor& like) {
  return TensorOptions().dtype(a.dtype(at, like.dtype())).device(a.device(at + 2, like.device()));
}

constexpr OpDef table[] = {
OP("empty.memory_format(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
  .types = storage_types, .infer = infer_empty, .kernels = {{Cpu, k_empty}}, .non_differentiable = true, .shard = {"create"},
  .doc = "Uninitialised elements.", .samples = [](SampleGen& s) { s(std::vector<int64_t>{2, 3}, s.dtype()); s(std::vector<int64_t>{0, 3}, s.dtype()); }),
OP("empty_strided(int[] size, int[] stride, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .types = storage_types, .infer = infer_empty_strided, .kernels = {{Cpu, k_empty}}, .non_differentiable = true, .shard = {"create"},
  .doc = "Uninitialised elements with given strides.", .samples = [](SampleGen& s) { s(std::vector<int64_t>{2, 3}, std::vector<int64_t>{1, 2}, s.dtype()); }),
OP("empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
  .types = storage_types, .infer = infer_empty_like, .kernels = {{Cpu, k_empty}}, .accepts_conj = true, .non_differentiable = true, .shard = {"like"},
  .doc = "Uninitialised elements in self's shape, dtype and stride order.", .samples = [](SampleGen& s) { s.unary(s.shapes()); }),
OP("zeros(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .types = storage_types, .infer = infer_sizes<1, 3>, .kernels = {{Cpu, k_zeros}}, .non_differentiable = true, .shard = {"create"}, .doc = "All 0.",
  .samples = [](SampleGen& s) { s(std::vector<int64_t>{2, 3}, s.dtype()); s(std::vector<int64_t>{}, s.dtype()); }),
OP("ones(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .decompose = [](const Args& a) -> Results { return full(a.ints(0), Scalar(1), TensorOptions().dtype(a.dtype(1, get_default_dtype())).device(a.device(3))); },
  .non_differentiable = true, .shard = {"create"}, .doc = "All 1.",
  .samples = [](SampleGen& s) { s(std::vector<int64_t>{2, 3}, s.dtype()); }),
OP("full(int[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .types = storage_types, .infer = infer_full, .kernels = {{Cpu, k_full}}, .non_differentiable = true, .shard = {"create"}, .doc = "All fill_value; dtype from the number's class where not given.",
  .samples = [](SampleGen& s) { s(std::vector<int64_t>{2, 3}, Scalar(2), s.dtype()); }),
OP("scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .types = storage_types, .infer = infer_scalar_tensor, .kernels = {{Cpu, k_scalar_tensor}}, .non_differentiable = true, .shard = {"create"}, .doc = "A number as a 0-dim tensor.",
  .samples = [](SampleGen& s) { s(Scalar(2), s.dtype()); }),
OP("zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
  .types = storage_types, .infer = infer_empty_like, .kernels = {{Cpu, k_zeros}}, .accepts_conj = true, .non_differentiable = true, .shard = {"like"}, .doc = "All 0 in self's shape.",
  .samples = [](SampleGen& s) { s.unary(s.shapes()); }),
OP("ones_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
  .decompose = [](const Args& a) -> Results { return full_like(a.tensor(0), Scalar(1), options_from(a, 1, a.tensor(0))); },
  .non_differentiable = true, .shard = {"like"}, .doc = "All 1 in self's shape.",
  .samples = [](SampleGen& s) { s.unary(s.shapes()); }),
OP("full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
  .types = storage_types, .infer = [](InferCtx& c) { infer_like(c, 2, 4, 6); }, .kernels = {{Cpu, k_full}}, .accepts_conj = true, .non_differentiable = true, .shard = {"like"},
  .doc = "All fill_value in self's shape.", .samples = [](SampleGen& s) { s.unary(s.shapes(), {}, Scalar(2)); }),
OP("new_zeros(Tensor self, int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .decompose = [](const Args& a) -> Results { return zeros(a.ints(1), options_from(a, 2, a.tensor(0))); },
  .non_differentiable = true, .shard = {"factory"}, .doc = "zeros with self's dtype and device.",
  .samples = [](SampleGen& s) { s(s.t({2}), std::vector<int64_t>{2, 3}); }),
OP("new_ones(Tensor self, int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .decompose = [](const Args& a) -> Results { return ones(a.ints(1), options_from(a, 2, a.tensor(0))); },
  .non_differentiable = true, .shard = {"factory"}, .doc = "ones with self's dtype and device.",
  .samples = [](SampleGen& s) { s(s.t({2}), std::vector<int64_t>{2, 3}); }),
OP("new_full(Tensor self, int[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .decompose = [](const Args& a) -> Results { return full(a.ints(1), a.scalar(2), options_from(a, 3, a.tensor(0))); },
  .non_differentiable = true, .shard = {"factory"}, .doc = "full with self's dtype and device.",
  .samples = [](SampleGen& s) { s(s.t({2}), std::vector<int64_t>{2, 3}, Scalar(2)); }),
OP("new_empty(Tensor self, int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .decompose = [](const Args& a) -> Results { return empty(a.ints(1), options_from(a, 2, a.tensor(0))); },
  .non_differentiable = true, .shard = {"factory"}, .doc = "empty with self's dtype and device.", .samples = [](SampleGen& s) { s(s.t({2}), std::vector<int64_t>{2, 3}); }),
OP("arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .decompose = [](const Args& a) -> Results { return arange(Scalar(0), a.scalar(0), Scalar(1), TensorOptions().dtype(arange_dtype(a, 1, {a.scalar(0)})).device(a.device(3))); },
  .non_differentiable = true, .shard = {"create"}, .doc = "0, 1, ... below end.",
  .samples = [](SampleGen& s) { if (s.dtype() != kBool && !is_complex(s.dtype())) s(Scalar(5), s.dtype()); }),
OP("arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .decompose = [](const Args& a) -> Results { return arange(a.scalar(0), a.scalar(1), Scalar(1), TensorOptions().dtype(arange_dtype(a, 2, {a.scalar(0), a.scalar(1)})).device(a.device(4))); },
  .non_differentiable = true, .shard = {"create"}, .doc = "start, start + 1, ... below end.",
  .samples = [](SampleGen& s) { if (s.dtype() != kBool && !is_complex(s.dtype())) s(Scalar(2), Scalar(5), s.dtype()); }),
OP("arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .infer = infer_arange, .kernels = {{Cpu, k_arange}}, .non_differentiable = true, .shard = {"create"},
  .doc = "start, start + step, ... before end; ceil((end - start) / step) elements computed in double.",
  .samples = [](SampleGen& s) { if (s.dtype() != kBool && !is_complex(s.dtype())) s(Scalar(2), Scalar(9), Scalar(3), s.dtype()); }),
OP("eye(int n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .types = storage_types, .infer = infer_eye, .kernels = {{Cpu, k_eye}}, .non_differentiable = true, .shard = {"create"}, .doc = "Identity matrix.",
  .samples = [](SampleGen& s) { s(3, s.dtype()); s(0, s.dtype()); }),
OP("eye.m(int n, int m, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
  .types = storage_types, .infer = infer_eye, .kernels = {{Cpu, k_eye}}, .non_differentiable = true, .shard = {"create"}, .doc = "Ones on the diagonal of an n x m matrix.",
  .samples = [](SampleGen& s) { s(3, 2, s.dtype()); s(2, 4, s.dtype()); }),

// ---- copies ----
OP("clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
  .types = storage_types, .infer = infer_clone, .kernels = {{Cpu, k_copy_self}},
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy(); }); },
  .shard = {"copy"}, .doc = "A copy in memory of its own.",
  .samples = [](SampleGen& s) { s.unary(s.shapes()); s(s.t({3, 4}).transpose(0, 1)); }),
OP("_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor",
  .types = storage_types, .infer = infer_to_copy, .kernels = {{Cpu, k_copy_self}},
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy().to(g.dtype_of(0)); }); },
  .shard = {"copy"}, .doc = "A copy with another dtype.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), kFloat); s(s.t({3, 4}), kDouble); }),
OP("to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
  .types = any_types, .accepts_conj = true,
  .decompose = [](const Args& a) -> Results {
      const Tensor& t = a.tensor(0);
      DType dtype = a.dtype(1, t.dtype());
      Device device = a.device(3, t.device());
      VESTA_CHECK_AS(NotImplementedError, device == t.device() || device.is_meta(), "to: device ", device.str(), " is not available in this build");
      std::optional<MemoryFormat> f;
      if (a.has(7)) f = MemoryFormat(a.integer(7));
      bool same_format = !f || *f == MemoryFormat::Preserve || t.is_contiguous(*f);
      if (dtype == t.dtype() && device == t.device() && same_format && !a.flag(6)) return t;
      return _to_copy(t, TensorOptions().dtype(dtype).device(device), false, f); },
  .shard = {"copy"}, .doc = "self with another dtype, device or memory format; self itself where nothing changes and copy is false.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), kFloat); s(s.t({3, 4}), kLong); }),
OP("to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
  .types = any_types, .accepts_conj = true,
  .decompose = [](const Args& a) -> Results {
      std::optional<MemoryFormat> f;
      if (a.has(4)) f = MemoryFormat(a.integer(4));
      return to(a.tensor(0), TensorOptions(DType(a.integer(1))), a.flag(2), a.flag(3), f); },
  .shard = {"copy"}, .doc = "self with another dtype.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), kFloat); }),
OP("copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
  .types = storage_types, .kernels = {{Cpu, k_copy_}},
  .vjp = [](const Grad& g) { return grads(G(0) { return zeros_like(g.dy()); }, G(1) { return g.dy(); }); },
  .shard = {"copy"}, .doc = "Writes src, broadcast and converted, into self.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 4})); s(s.t({3, 4}), s.t({4})); }),
OP("fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)",
  .types = storage_types, .kernels = {{Cpu, k_fill_scalar}},
  .vjp = [](const Grad& g) { return grads(G(0) { return zeros_like(g.dy()); }); },
  .shard = {"copy"}, .doc = "Writes a number into every element.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), Scalar(2)); }),
OP("fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)",
  .types = any_types, .accepts_conj = true,
  .decompose = [](const Args& a) -> Results {
      VESTA_CHECK(a.tensor(1).dim() == 0, "fill_: expected a 0-dim value, got ", a.tensor(1).dim(), " dims");
      return Tensor(a.tensor(0)).copy_(a.tensor(1)); },
  .shard = {"copy"}, .doc = "Writes a 0-dim tensor into every element.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({})); }),
OP("zero_(Tensor(a!) self) -> Tensor(a!)",
  .types = storage_types, .kernels = {{Cpu, k_zero_}},
  .vjp = [](const Grad& g) { return grads(G(0) { return zeros_like(g.dy()); }); },
  .shard = {"copy"}, .doc = "Writes 0 into every element.",
  .samples = [](SampleGen& s) { s(s.t({3, 4})); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(creation, table)
