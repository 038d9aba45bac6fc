// Copies of a tensor's elements in another arrangement: repeat, flip, roll, triangles, diagonals, partial writes.
#include <algorithm>
#include <cstring>
#include <limits>

#include "base/checked_math.h"
#include "base/thread_pool.h"
#include "core/storage.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/rows.h"
#include "ops/infer.h"
#include "ops/visit.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;
using Ints = std::vector<int64_t>;

void infer_contiguous_self(InferCtx& c) { c.out(0, c.sizes(0), c.dtype_of(0), c.tensor(0).device()); }

// ---- flip, roll ----
void infer_flip(InferCtx& c) {
  if (c.ints(1).size()) wrapped_dims(c, c.value(1), c.dim(0));
  infer_contiguous_self(c);
}
void k_flip(const KernelCtx& k) {
  const Tensor &t = k.tensor(0), &out = k.out();
  int64_t n = t.dim();
  if (n == 0 || k.ints(1).empty()) return cpu::copy_elements(out, t);
  if (out.numel() == 0) return;
  std::vector<bool> flipped(size_t(n), false);
  for (int64_t d : k.ints(1)) flipped[size_t(wrap_dim(k, d, n))] = true;
  int64_t start = 0, inner = t.size(n - 1);
  Ints step(static_cast<size_t>(n));
  for (int64_t d = 0; d < n; ++d) {
    int64_t s = t.stride(d);
    step[size_t(d)] = flipped[size_t(d)] ? -s : s;
    if (flipped[size_t(d)]) start += (t.size(d) - 1) * s;
  }
  visit_size(t.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = static_cast<const T*>(t.data_ptr()) + start;
    T* to = static_cast<T*>(out.data_ptr());
    int64_t last = step[size_t(n - 1)];
    parallel_for(0, out.numel() / inner, std::max<int64_t>(1, 32768 / inner), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        int64_t rest = r, at = 0;
        for (int64_t d = n - 2; d >= 0; --d) {
          at += rest % t.size(d) * step[size_t(d)];
          rest /= t.size(d);
        }
        const T* p = from + at;
        T* q = to + r * inner;
        if (last == 1) std::memcpy(q, p, size_t(inner) * sizeof(T));
        else if (last == -1) cpu::reverse_row(int64_t(sizeof(T)), p, q, inner);
        else for (int64_t i = 0; i < inner; ++i) q[i] = p[i * last];
      }
    });
  });
}
void infer_roll(InferCtx& c) {
  IntArrayRef shifts = c.ints(1), dims = c.ints(2);
  VESTA_CHECK(!shifts.empty(), c.name(), ": expected at least one shift");
  VESTA_CHECK(dims.empty() ? shifts.size() == 1 : shifts.size() == dims.size(), c.name(), ": expected as many shifts as dims, got ", shifts.size(), " and ", dims.size());
  for (int64_t d : dims) c.wrap_dim(d, c.dim(0));
  infer_contiguous_self(c);
}
void k_roll(const KernelCtx& k) {
  Tensor from = k.tensor(0), out = k.out();
  IntArrayRef dims = k.ints(2);
  if (dims.empty()) from = from.reshape({-1}), out = out.view({-1});
  if (out.numel() == 0) return;
  if (out.dim() == 0) return cpu::copy_elements(out, from);
  int64_t n = dims.empty() ? 1 : int64_t(dims.size());
  for (int64_t i = 0; i < n; ++i) {
    int64_t d = dims.empty() ? 0 : wrap_dim(k, dims[size_t(i)], out.dim()), size = out.size(d);
    int64_t shift = (k.ints(1)[size_t(i)] % size + size) % size;
    Tensor to = i + 1 == n ? out : empty_cpu(out.sizes(), out.dtype());
    if (shift) cpu::copy_elements(to.slice(d, 0, shift), from.slice(d, size - shift, size));
    cpu::copy_elements(to.slice(d, shift, size), from.slice(d, 0, size - shift));
    from = to;
  }
}

// ---- triangles ----
void infer_triangle(InferCtx& c) {
  VESTA_CHECK(c.dim(0) >= 2, c.name(), ": expected at least 2 dims, got ", c.dim(0));
  infer_contiguous_self(c);
}
void run_triangle(const KernelCtx& k, bool lower) {
  Tensor t = k.tensor(0).contiguous(), &out = k.out();
  if (out.numel() == 0) return;
  int64_t rows = t.size(-2), cols = t.size(-1), element = int64_t(t.element_size());
  int64_t diagonal = std::clamp<int64_t>(k.integer(1), -rows - 1, cols + 1);  // beyond these all rows are alike
  auto* from = static_cast<const char*>(t.data_ptr());
  auto* to = static_cast<char*>(out.data_ptr());
  parallel_for(0, t.numel() / cols, std::max<int64_t>(1, 32768 / cols), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      // Row r keeps columns up to (lower) or from (upper) its diagonal.
      int64_t edge = std::clamp<int64_t>(r % rows + diagonal + (lower ? 1 : 0), 0, cols) * element, length = cols * element;
      const char* p = from + r * length;
      char* q = to + r * length;
      if (lower) {
        std::memcpy(q, p, size_t(edge));
        std::memset(q + edge, 0, size_t(length - edge));
      } else {
        std::memset(q, 0, size_t(edge));
        std::memcpy(q + edge, p + edge, size_t(length - edge));
      }
    }
  });
}

// The inverse of roll. Shifts are taken modulo the size first: the smallest integer has no negative.
Tensor roll_back(const Tensor& t, IntArrayRef shifts, IntArrayRef dims) {
  Ints back;
  for (size_t k = 0; k < shifts.size(); ++k) {
    int64_t n = std::max<int64_t>(1, dims.empty() ? t.numel() : t.size(dims[k]));
    back.push_back(-(shifts[k] % n));
  }
  return t.roll(back, dims);
}

// ---- repeat ----
Results repeat_tensor(const Args& a, const Tensor& t, IntArrayRef repeats) {
  VESTA_CHECK(int64_t(repeats.size()) >= t.dim(), a.name(), ": expected at least ", t.dim(), " repeats, got ", repeats.size());
  Ints split, wide, sizes;
  int64_t lead = int64_t(repeats.size()) - t.dim();
  for (size_t d = 0; d < repeats.size(); ++d) {
    int64_t r = repeats[d], s = int64_t(d) < lead ? 1 : t.size(int64_t(d) - lead);
    VESTA_CHECK(r >= 0, a.name(), ": expected repeats >= 0, got ", r);
    split.push_back(1), split.push_back(s);
    wide.push_back(r), wide.push_back(s);
    sizes.push_back(checked_mul(r, s, "repeat: a size"));
  }
  // Always a copy: where only leading dims are repeated, reshape would give a view of one memory.
  return t.reshape(split).expand(wide).clone(MemoryFormat::Contiguous).view(sizes);
}
int64_t sum_of(const Tensor& t) {
  const int64_t* p = t.data_ptr<int64_t>();
  int64_t n = 0;
  for (int64_t i = 0; i < t.numel(); ++i) n = checked_add(n, p[i], "repeat_interleave: the sum of the repeats");
  return n;
}
void k_repeat_interleave(const KernelCtx& k) {
  const Tensor& t = k.tensor(0);
  VESTA_CHECK(t.dim() == 1, k.name(), ": expected repeats with 1 dim, got ", t.dim());
  VESTA_CHECK_AS(TypeError, t.dtype() == kLong || t.dtype() == kInt, k.name(), ": expected int32 or int64 repeats, got ", dtype_name(t.dtype()));
  Tensor c = t.to(kLong).contiguous();
  const int64_t* p = c.data_ptr<int64_t>();
  for (int64_t i = 0; i < c.numel(); ++i) VESTA_CHECK(p[i] >= 0, k.name(), ": expected repeats >= 0, got ", p[i]);
  int64_t total = sum_of(c);
  VESTA_CHECK(!k.has(1) || k.integer(1) == total, k.name(), ": output_size is ", k.has(1) ? k.integer(1) : 0, ", the repeats add up to ", total);
  Tensor& out = k.allocate(0, {total}, t.dtype());
  Tensor r = out.dtype() == kLong ? out : empty_cpu({total}, kLong);
  int64_t* q = r.data_ptr<int64_t>();
  for (int64_t i = 0; i < c.numel(); ++i) q = std::fill_n(q, p[i], i);
  if (!r.is_same(out)) cpu::copy_elements(out, r);
}

// ---- diagonals and partial writes ----
Results embed_diagonal(const Args& a, const Tensor& t, int64_t offset, int64_t dim1, int64_t dim2) {
  int64_t n = t.dim() + 1;
  VESTA_CHECK(t.dim() >= 1, a.name(), ": expected at least 1 dim");
  int64_t d1 = wrap_dim(a, dim1, n), d2 = wrap_dim(a, dim2, n);
  VESTA_CHECK(offset > std::numeric_limits<int64_t>::min(), a.name(), ": the offset ", offset, " is too large");
  int64_t length = checked_add(t.size(-1), std::abs(offset), "diagonal: the size of the square");
  VESTA_CHECK(d1 != d2, a.name(), ": the two dims must differ, both are ", d1);
  Ints sizes = t.sizes().vec();
  sizes.pop_back();
  sizes.insert(sizes.begin() + std::min(d1, d2), length);
  sizes.insert(sizes.begin() + std::max(d1, d2), length);
  Tensor full = zeros(sizes, t.options());
  full.diagonal(offset, d1, d2).copy_(t);
  return full;
}
// A contiguous copy of self with src written into the view that `part` makes of it.
template <class Part>
Results write_part(const Args& a, Part&& part) {
  Tensor full = a.tensor(0).clone(MemoryFormat::Contiguous), view = part(full);
  VESTA_CHECK(view.sizes() == a.tensor(1).sizes(), a.name(), ": src has another shape than the part it replaces");
  view.copy_(a.tensor(1));
  return full;
}
std::optional<int64_t> opt_int(const Args& a, int i) { return a.has(i) ? std::optional(a.integer(i)) : std::nullopt; }
Tensor zeros_of(const Grad& g, int i) { return zeros(g.sizes(i), g.dy().options()); }

constexpr OpDef table[] = {
OP("flip(Tensor self, int[] dims) -> Tensor",
  .forms = Out, .types = storage_types, .infer = infer_flip, .kernels = {{Cpu, k_flip}},
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy().flip(g.ints(1)); }); },
  .shard = {"shard-exceptdim"}, .doc = "Dims in reverse element order; a copy.", .samples = [](SampleGen& s) { s(s.t({3, 4}), Ints{0}); s(s.t({2, 3, 4}), Ints{0, -1}); s(s.t({}), Ints{}); }),
OP("fliplr(Tensor self) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) -> Results { VESTA_CHECK(a.tensor(0).dim() >= 2, "fliplr: expected at least 2 dims"); return a.tensor(0).flip({1}); },
  .shard = {"shard-exceptdim"}, .doc = "flip of dim 1.", .samples = [](SampleGen& s) { s(s.t({3, 4})); }),
OP("flipud(Tensor self) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) -> Results { VESTA_CHECK(a.tensor(0).dim() >= 1, "flipud: expected at least 1 dim"); return a.tensor(0).flip({0}); },
  .shard = {"shard-exceptdim"}, .doc = "flip of dim 0.", .samples = [](SampleGen& s) { s(s.t({3, 4})); }),
OP("roll(Tensor self, int[1] shifts, int[1] dims=[]) -> Tensor",
  .forms = Out, .types = storage_types, .infer = infer_roll, .kernels = {{Cpu, k_roll}},
  .vjp = [](const Grad& g) { return grads(G(0) { return roll_back(g.dy(), g.ints(1), g.ints(2)); }); },
  .shard = {"shard-exceptdim"}, .doc = "Elements shifted along dims and brought in again at the other end; flat without dims.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), Ints{1}, Ints{0}); s(s.t({3, 4}), Ints{-1, 2}, Ints{0, 1}); s(s.t({3, 4}), Ints{5}); }),
OP("rot90(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor",
  .forms = Out, .types = any_types,
  .decompose = [](const Args& a) -> Results {
      const Tensor& t = a.tensor(0);
      VESTA_CHECK(a.ints(2).size() == 2 && t.dim() >= 2, "rot90: expected 2 dims of a tensor with at least 2, got ", a.ints(2).size());
      int64_t p = wrap_dim(a, a.ints(2)[0], t.dim()), q = wrap_dim(a, a.ints(2)[1], t.dim());
      VESTA_CHECK(p != q, "rot90: the two dims must differ, both are ", p);
      switch ((a.integer(1) % 4 + 4) % 4) {
        case 1: return t.flip({q}).transpose(p, q);
        case 2: return t.flip(Ints{p, q});
        case 3: return t.flip({p}).transpose(p, q);
        default: return t.clone(MemoryFormat::Contiguous);
      } },
  .shard = {"shard-exceptdim"}, .doc = "Rotation by k quarter turns in the plane of two dims.", .samples = [](SampleGen& s) { s(s.t({3, 4})); s(s.t({3, 4}), -1); }),
OP("tril(Tensor self, int diagonal=0) -> Tensor",
  .forms = InPlace | Out, .types = any_types, .infer = infer_triangle, .kernels = {{Cpu, [](const KernelCtx& k) { run_triangle(k, true); }}},
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy().tril(g.integer(1)); }); },
  .shard = Shard::replicate(), .doc = "Elements on and below a diagonal; zeros above.", .samples = [](SampleGen& s) { s(s.t({3, 4})); s(s.t({2, 4, 3}), -1); }),
OP("triu(Tensor self, int diagonal=0) -> Tensor",
  .forms = InPlace | Out, .types = any_types, .infer = infer_triangle, .kernels = {{Cpu, [](const KernelCtx& k) { run_triangle(k, false); }}},
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy().triu(g.integer(1)); }); },
  .shard = Shard::replicate(), .doc = "Elements on and above a diagonal; zeros below.", .samples = [](SampleGen& s) { s(s.t({3, 4})); s(s.t({2, 4, 3}), 1); }),
OP("repeat(Tensor self, int[] repeats) -> Tensor",
  .forms = Out, .types = any_types, .decompose = [](const Args& a) { return repeat_tensor(a, a.tensor(0), a.ints(1)); },
  .vjp = [](const Grad& g) { return grads(G(0) {
      IntArrayRef repeats = g.ints(1), sizes = g.sizes(0);
      Ints split, dims;
      size_t lead = repeats.size() - sizes.size();
      for (size_t d = 0; d < repeats.size(); ++d) {
        dims.push_back(int64_t(split.size()));
        split.push_back(repeats[d]), split.push_back(d < lead ? 1 : sizes[d - lead]);
      }
      if (dims.empty()) return g.dy();
      return g.dy().reshape(split).sum(dims).reshape(sizes); }); },
  .shard = Shard::view(), .doc = "The tensor repeated along each dim; a copy.", .samples = [](SampleGen& s) { s(s.t({3, 4}), Ints{2, 1}); s(s.t({3}), Ints{2, 0, 2}); s(s.t({}), Ints{3}); }),
OP("tile(Tensor self, int[] dims) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      Ints dims = a.ints(1).vec();
      while (int64_t(dims.size()) < a.tensor(0).dim()) dims.insert(dims.begin(), 1);
      return a.tensor(0).repeat(dims); },
  .shard = Shard::view(), .doc = "repeat; missing leading repeats are 1.", .samples = [](SampleGen& s) { s(s.t({3, 4}), Ints{2}); s(s.t({3}), Ints{2, 2}); }),
OP("repeat_interleave.Tensor(Tensor repeats, *, int? output_size=None) -> Tensor",
  .types = any_types, .kernels = {{Cpu, k_repeat_interleave}}, .dynamic_out = true, .non_differentiable = true,
  .shard = Shard::replicate(), .doc = "i repeated repeats[i] times, for each i.", .samples = [](SampleGen& s) { if (s.dtype() == kLong) s(s.index({4}, 3)); }),
OP("repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, int? output_size=None) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      Tensor t = a.has(2) ? a.tensor(0) : a.tensor(0).flatten(), repeats = a.tensor(1);
      int64_t d = wrap_dim(a, a.integer(2, 0), t.dim()), n = t.dim() ? t.size(d) : 1;
      if (repeats.dim() == 0 || (repeats.dim() == 1 && repeats.size(0) == 1)) repeats = repeats.reshape({1}).expand({n});
      VESTA_CHECK(repeats.dim() == 1 && repeats.size(0) == n, "repeat_interleave: expected 1 or ", n, " repeats, got ", repeats.numel());
      return t.index_select(d, repeat_interleave(repeats, opt_int(a, 3))); },
  .shard = Shard::replicate(), .doc = "Each index of a dim repeated as often as its entry says.", .samples = [](SampleGen& s) { s(s.t({3, 4}), s.index({3}, 3), 0); }),
OP("repeat_interleave.self_int(Tensor self, int repeats, int? dim=None, *, int? output_size=None) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      Tensor t = a.has(2) ? a.tensor(0) : a.tensor(0).flatten();
      if (t.dim() == 0) t = t.reshape({1});
      int64_t d = wrap_dim(a, a.integer(2, 0), t.dim()), r = a.integer(1);
      VESTA_CHECK(r >= 0, "repeat_interleave: expected repeats >= 0, got ", r);
      int64_t length = checked_mul(r, t.size(d), "repeat_interleave: the size of the result");
      VESTA_CHECK(!a.has(3) || a.integer(3) == length, "repeat_interleave: output_size does not match ", length);
      Ints wide = t.sizes().vec(), sizes = wide;
      wide.insert(wide.begin() + d + 1, r);
      sizes[size_t(d)] = length;
      return t.unsqueeze(d + 1).expand(wide).clone(MemoryFormat::Contiguous).view(sizes); },
  .shard = Shard::replicate(), .doc = "Each index of a dim repeated.", .samples = [](SampleGen& s) { s(s.t({3, 4}), 2, 1); s(s.t({3, 4}), 2); }),
OP("diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
  .forms = Out, .types = any_types, .decompose = [](const Args& a) { return embed_diagonal(a, a.tensor(0), a.integer(1), a.integer(2), a.integer(3)); },
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy().diagonal(g.integer(1), g.integer(2), g.integer(3)); }); },
  .shard = Shard::replicate(), .doc = "Matrices with the last dim on a diagonal.", .samples = [](SampleGen& s) { s(s.t({3})); s(s.t({2, 3}), -1, 0, 2); }),
OP("diag(Tensor self, int diagonal=0) -> Tensor",
  .forms = Out, .types = any_types,
  .decompose = [](const Args& a) -> Results {
      const Tensor& t = a.tensor(0);
      VESTA_CHECK(t.dim() == 1 || t.dim() == 2, "diag: expected a vector or a matrix, got ", t.dim(), " dims");
      return t.dim() == 1 ? t.diag_embed(a.integer(1)) : t.diagonal(a.integer(1)).clone(); },
  .shard = Shard::replicate(), .doc = "A vector on a diagonal, or the diagonal of a matrix.", .samples = [](SampleGen& s) { s(s.t({3})); s(s.t({3, 4}), 1); }),
OP("diagflat(Tensor self, int offset=0) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) -> Results { return a.tensor(0).reshape({-1}).diag(a.integer(1)); },
  .shard = Shard::replicate(), .doc = "All elements on a diagonal.", .samples = [](SampleGen& s) { s(s.t({2, 2})); }),
OP("diagonal_backward(Tensor grad_output, int[] input_sizes, int offset, int dim1, int dim2) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results { Tensor full = zeros(a.ints(1), a.tensor(0).options()); full.diagonal(a.integer(2), a.integer(3), a.integer(4)).copy_(a.tensor(0)); return full; },
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy().diagonal(g.integer(2), g.integer(3), g.integer(4)); }); },
  .shard = Shard::replicate(), .doc = "Gradient of diagonal: grad_output on the diagonal, zeros elsewhere.", .samples = [](SampleGen& s) { s(s.t({3}), Ints{3, 4}, 0, 0, 1); }),
OP("slice_scatter(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
  .forms = Out, .types = any_types,
  .decompose = [](const Args& a) { return write_part(a, [&](const Tensor& t) { return t.slice(a.integer(2), opt_int(a, 3), opt_int(a, 4), a.integer(5)); }); },
  .vjp = [](const Grad& g) { return grads(G(0) { return slice_scatter(g.dy(), zeros_of(g, 1), g.integer(2), opt_int(g, 3), opt_int(g, 4), g.integer(5)); },
                                          G(1) { return g.dy().slice(g.integer(2), opt_int(g, 3), opt_int(g, 4), g.integer(5)); }); },
  .shard = {"x-scatter"}, .doc = "self with src in place of a slice.", .samples = [](SampleGen& s) { s(s.t({5, 4}), s.t({2, 4}), 0, 1, 4, 2); }),
OP("select_scatter(Tensor self, Tensor src, int dim, int index) -> Tensor",
  .forms = Out, .types = any_types,
  .decompose = [](const Args& a) { return write_part(a, [&](const Tensor& t) { return t.select(a.integer(2), a.integer(3)); }); },
  .vjp = [](const Grad& g) { return grads(G(0) { return select_scatter(g.dy(), zeros_of(g, 1), g.integer(2), g.integer(3)); },
                                          G(1) { return g.dy().select(g.integer(2), g.integer(3)); }); },
  .shard = {"x-scatter"}, .doc = "self with src at one index of a dim.", .samples = [](SampleGen& s) { s(s.t({5, 4}), s.t({4}), 0, 1); }),
OP("diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
  .forms = Out, .types = any_types,
  .decompose = [](const Args& a) { return write_part(a, [&](const Tensor& t) { return t.diagonal(a.integer(2), a.integer(3), a.integer(4)); }); },
  .vjp = [](const Grad& g) { return grads(G(0) { return diagonal_scatter(g.dy(), zeros_of(g, 1), g.integer(2), g.integer(3), g.integer(4)); },
                                          G(1) { return g.dy().diagonal(g.integer(2), g.integer(3), g.integer(4)); }); },
  .shard = {"x-scatter"}, .doc = "self with src on a diagonal.", .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3})); }),
OP("as_strided_scatter(Tensor self, Tensor src, int[] size, int[] stride, int? storage_offset=None) -> Tensor",
  .forms = Out, .types = any_types,
  .decompose = [](const Args& a) -> Results {
      Tensor full = a.tensor(0).clone(MemoryFormat::Contiguous), view = full.as_strided(a.ints(2), a.ints(3), opt_int(a, 4));
      VESTA_CHECK(view.sizes() == a.tensor(1).sizes(), a.name(), ": src has another shape than the part it replaces");
      // Elements may overlap: written one by one, the last wins.
      Tensor at = arange(full.numel(), TensorOptions(kLong)).as_strided(a.ints(2), a.ints(3), opt_int(a, 4)).reshape({-1});
      return full.put(at, a.tensor(1).reshape({-1})); },
  .vjp = [](const Grad& g) { return grads(G(0) { return as_strided_scatter(g.dy(), zeros_of(g, 1), g.ints(2), g.ints(3), opt_int(g, 4)); },
                                          G(1) { return g.dy().contiguous().as_strided(g.ints(2), g.ints(3), opt_int(g, 4)); }); },
  .shard = {"x-scatter"}, .doc = "A contiguous copy of self with src in place of an as_strided view of it.", .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({2, 2}), Ints{2, 2}, Ints{4, 1}, 1); }),
OP("narrow_copy(Tensor self, int dim, int start, int length) -> Tensor",
  .forms = Out, .types = any_types, .decompose = [](const Args& a) -> Results { return a.tensor(0).narrow(a.integer(1), a.integer(2), a.integer(3)).clone(); },
  .shard = {"slice"}, .doc = "narrow as a copy.", .samples = [](SampleGen& s) { s(s.t({5, 4}), 0, 1, 3); }),
OP("pixel_shuffle(Tensor self, int upscale_factor) -> Tensor",
  .forms = Out, .types = any_types,
  .decompose = [](const Args& a) -> Results {
      const Tensor& t = a.tensor(0);
      int64_t r = a.integer(1), n = t.dim();
      VESTA_CHECK(n >= 3 && r > 0 && r < int64_t(1) << 31 && t.size(-3) % (r * r) == 0, "pixel_shuffle: ", r, "^2 must divide the channels of a tensor with at least 3 dims");
      int64_t c = t.size(-3) / (r * r), h = t.size(-2), w = t.size(-1);
      Ints lead(t.sizes().begin(), t.sizes().end() - 3), split = lead, order, out = lead;
      for (int64_t v : {c, r, r, h, w}) split.push_back(v);
      for (int64_t d = 0; d < n - 3; ++d) order.push_back(d);
      for (int64_t v : {0, 3, 1, 4, 2}) order.push_back(n - 3 + v);
      for (int64_t v : {c, h * r, w * r}) out.push_back(v);
      return t.reshape(split).permute(order).clone(MemoryFormat::Contiguous).view(out); },
  .shard = {"decomp"}, .doc = "Channels spread over r x r pixels.", .samples = [](SampleGen& s) { s(s.t({2, 4, 2, 3}), 2); }),
OP("pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor",
  .forms = Out, .types = any_types,
  .decompose = [](const Args& a) -> Results {
      const Tensor& t = a.tensor(0);
      int64_t r = a.integer(1), n = t.dim();
      VESTA_CHECK(n >= 3 && r > 0 && r < int64_t(1) << 31 && t.size(-2) % r == 0 && t.size(-1) % r == 0, "pixel_unshuffle: ", r, " must divide height and width of a tensor with at least 3 dims");
      int64_t c = t.size(-3), h = t.size(-2) / r, w = t.size(-1) / r;
      Ints lead(t.sizes().begin(), t.sizes().end() - 3), split = lead, order, out = lead;
      for (int64_t v : {c, h, r, w, r}) split.push_back(v);
      for (int64_t d = 0; d < n - 3; ++d) order.push_back(d);
      for (int64_t v : {0, 2, 4, 1, 3}) order.push_back(n - 3 + v);
      for (int64_t v : {c * r * r, h, w}) out.push_back(v);
      return t.reshape(split).permute(order).clone(MemoryFormat::Contiguous).view(out); },
  .shard = {"decomp"}, .doc = "r x r pixels gathered into channels.", .samples = [](SampleGen& s) { s(s.t({2, 1, 4, 6}), 2); }),
OP("channel_shuffle(Tensor self, int groups) -> Tensor",
  .forms = Out, .types = any_types,
  .decompose = [](const Args& a) -> Results {
      const Tensor& t = a.tensor(0);
      int64_t groups = a.integer(1);
      VESTA_CHECK(t.dim() > 2 && groups > 0 && t.size(1) % groups == 0, "channel_shuffle: ", groups, " groups must divide the channels of a tensor with at least 3 dims");
      Ints split = t.sizes().vec();
      split[1] /= groups;
      split.insert(split.begin() + 1, groups);
      return t.reshape(split).transpose(1, 2).clone(MemoryFormat::Contiguous).view(t.sizes()); },
  .shard = {"decomp"}, .doc = "Channels of the groups interleaved.", .samples = [](SampleGen& s) { s(s.t({2, 4, 3}), 2); }),
OP("native_channel_shuffle(Tensor self, int groups) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) -> Results { return channel_shuffle(a.tensor(0), a.integer(1)); },
  .shard = {"decomp"}, .doc = "channel_shuffle.", .samples = [](SampleGen& s) { s(s.t({2, 4, 3}), 2); }),
OP("fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      Tensor t = a.tensor(0);
      VESTA_CHECK(t.dim() >= 2, "fill_diagonal_: expected at least 2 dims, got ", t.dim());
      int64_t n = t.size(0), step = 0;
      for (int64_t d = 0; d < t.dim(); ++d) {
        VESTA_CHECK(t.dim() == 2 || t.size(d) == n, "fill_diagonal_: dims of more than a matrix must have equal sizes");
        n = std::min(n, t.size(d)), step += t.stride(d);
      }
      t.as_strided(IntArrayRef(n), IntArrayRef(step), t.storage_offset()).fill_(a.scalar(1));
      // A tall matrix starts anew after an empty row.
      if (a.flag(2) && t.dim() == 2 && t.size(0) > t.size(1) + 1)
        for (int64_t r = t.size(1) + 1; r < t.size(0); r += t.size(1) + 1) t.slice(0, r).diagonal().fill_(a.scalar(1));
      return t; },
  .shard = Shard::replicate(), .doc = "Writes a number on the main diagonal.", .samples = [](SampleGen& s) { s(s.t({3, 4}), Scalar(1)); s(s.t({7, 3}), Scalar(1), true); }),
OP("view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)",
  .types = storage_types,
  .infer = [](InferCtx& c) {
      DType from = c.dtype_of(0), to = DType(c.integer(1));
      int64_t a = int64_t(element_size(from)), b = int64_t(element_size(to));
      std::vector<SymInt> sizes(c.sizes(0).begin(), c.sizes(0).end()), strides(c.strides(0).begin(), c.strides(0).end());
      SymInt offset = InferCtx::offset_of(c.tensor(0));
      if (a != b) {
        VESTA_CHECK(!sizes.empty(), c.name(), ": a 0-dim tensor cannot change its element size");
        VESTA_CHECK(strides.back() == 1, c.name(), ": the last dim must be contiguous to change the element size");
        if (a > b) {
          for (size_t d = 0; d + 1 < strides.size(); ++d) strides[d] *= a / b;
          sizes.back() *= a / b, offset *= a / b;
        } else {
          int64_t r = b / a;
          VESTA_CHECK(sizes.back() % r == 0 && offset % r == 0, c.name(), ": the last dim and the offset must be divisible by ", r);
          for (size_t d = 0; d + 1 < strides.size(); ++d) {
            VESTA_CHECK(strides[d] % r == 0, c.name(), ": stride ", strides[d].str(), " is not divisible by ", r);
            strides[d] = strides[d] / r;
          }
          sizes.back() = sizes.back() / r, offset = offset / r;
        }
      }
      c.out_view(0, 0, sizes, strides, offset, to); },
  .non_differentiable = true, .shard = Shard::view(), .doc = "The same bytes as another dtype; the last dim grows or shrinks with the element size. Carries no gradient.",
  .samples = [](SampleGen& s) { if (s.dtype() == kFloat) s(s.t({3, 4}), kInt); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(rearrange, table)
