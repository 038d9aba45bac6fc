// Padding: constants, and mirrored or repeated borders.
#include <algorithm>

#include "core/storage.h"
#include "kernels/cpu/copy.h"
#include "ops/infer.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

// Amounts beyond any size are refused, so that sums of a size and two amounts fit into 64 bits.
void check_amounts(std::string_view name, IntArrayRef pad) {
  constexpr int64_t kMost = int64_t(1) << 60;
  for (int64_t p : pad) VESTA_CHECK(p >= -kMost && p <= kMost, name, ": a padding of ", p, " is out of range");
}

// pad holds (before, after) pairs, the last dim first; negative amounts cut.
void infer_constant_pad(InferCtx& c) {
  IntArrayRef pad = c.ints(1);
  int n = c.dim(0);
  VESTA_CHECK(pad.size() % 2 == 0 && int(pad.size()) <= 2 * n, c.name(), ": expected an even number of at most ", 2 * n, " padding amounts, got ", pad.size());
  check_amounts(c.name(), pad);
  std::vector<SymInt> sizes(c.sizes(0).begin(), c.sizes(0).end());
  for (size_t k = 0; k < pad.size() / 2; ++k) {
    SymInt& s = sizes[size_t(n) - 1 - k];
    SymInt old = s;
    int64_t before = pad[2 * k], after = pad[2 * k + 1];
    s += before + after;
    // What is cut must be there: a border put in its place would hide that it is not.
    VESTA_CHECK(s >= 0 && old + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0) >= 0, c.name(), ": padding ", pad[2 * k], " and ", pad[2 * k + 1], " leaves nothing of size ", old.str());
  }
  c.out(0, sizes, c.dtype_of(0), c.tensor(0).device());
}
void k_constant_pad(const KernelCtx& k) {
  IntArrayRef pad = k.ints(1);
  Tensor dst = k.out(), src = k.tensor(0);
  bool grows = false;
  for (int64_t p : pad) grows |= p > 0;
  if (grows) cpu::fill_elements(dst, k.scalar(2));
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    int64_t d = src.dim() - 1 - int64_t(i), before = pad[2 * i], after = pad[2 * i + 1];
    if (before < 0) src = src.slice(d, -before);
    else if (before > 0) dst = dst.slice(d, before);
    if (after < 0) src = src.slice(d, 0, src.size(d) + after);
    else if (after > 0) dst = dst.slice(d, 0, dst.size(d) - after);
  }
  if (src.numel()) cpu::copy_elements(dst, src);
}

// Source coordinate of padded position i of a dim of size n.
int64_t source_of(bool reflect, int64_t i, int64_t before, int64_t n) {
  int64_t p = i - before;
  if (!reflect) return p < 0 ? 0 : p >= n ? n - 1 : p;
  if (p < 0) return -p;
  return p < n ? p : 2 * (n - 1) - p;
}
std::string_view mode_name(bool reflect) { return reflect ? "reflection" : "replication"; }
void check_border(const Args& a, const Tensor& t, IntArrayRef pad, int64_t dims, bool reflect) {
  VESTA_CHECK(int64_t(pad.size()) == 2 * dims, a.name(), ": expected ", 2 * dims, " padding amounts, got ", pad.size());
  check_amounts(a.name(), pad);
  VESTA_CHECK(t.dim() == dims + 1 || t.dim() == dims + 2, a.name(), ": expected ", dims + 1, " or ", dims + 2, " dims, got ", t.dim());
  for (int64_t d = t.dim() == dims + 2 ? 1 : 0; d < t.dim(); ++d)
    VESTA_CHECK(t.size(d) > 0, a.name(), ": only the batch dim may have size 0, dim ", d, " has");
  for (int64_t k = 0; k < dims; ++k) {
    int64_t n = t.size(t.dim() - 1 - k), before = pad[size_t(2 * k)], after = pad[size_t(2 * k + 1)];
    if (reflect)
      VESTA_CHECK(before < n && after < n, a.name(), ": ", mode_name(reflect), " padding must be less than the size ", n, ", got ", before, " and ", after);
    VESTA_CHECK(n + before + after >= 1, a.name(), ": padding ", before, " and ", after, " leaves nothing of size ", n);
  }
}
// Index list of the padded dim.
Tensor border_index(bool reflect, int64_t n, int64_t before, int64_t after) {
  Tensor index = empty_cpu({n + before + after}, kLong);  // a constant also where the padding is traced
  int64_t* p = index.data_ptr<int64_t>();
  for (int64_t i = 0; i < index.numel(); ++i) p[i] = source_of(reflect, i, before, n);
  return index;
}
// One index_select per padded dim, and its transpose for the gradient: gradients of any order follow.
Results border_pad(const Args& a, int64_t dims, bool reflect) {
  check_border(a, a.tensor(0), a.ints(1), dims, reflect);
  Tensor t = a.tensor(0);
  IntArrayRef pad = a.ints(1);
  bool any = false;
  for (int64_t k = 0; k < dims; ++k) {
    int64_t d = t.dim() - 1 - k, before = pad[size_t(2 * k)], after = pad[size_t(2 * k + 1)];
    if (before == 0 && after == 0) continue;
    any = true;
    t = t.index_select(d, border_index(reflect, t.size(d), before, after));
  }
  return any ? t : t.clone();
}
Results border_pad_backward(const Args& a, int64_t dims, bool reflect) {
  const Tensor& self = a.tensor(1);
  IntArrayRef pad = a.ints(2);
  check_border(a, self, pad, dims, reflect);
  Tensor t = a.tensor(0);
  VESTA_CHECK(t.dim() == self.dim(), a.name(), ": expected a gradient with ", self.dim(), " dims, got ", t.dim());
  for (int64_t d = 0; d < self.dim(); ++d) {
    int64_t k = self.dim() - 1 - d, want = self.size(d) + (k < dims ? pad[size_t(2 * k)] + pad[size_t(2 * k + 1)] : 0);
    VESTA_CHECK(t.size(d) == want, a.name(), ": expected a gradient of size ", want, " at dim ", d, ", got ", t.size(d));
  }
  for (int64_t k = dims - 1; k >= 0; --k) {
    int64_t d = self.dim() - 1 - k, before = pad[size_t(2 * k)], after = pad[size_t(2 * k + 1)];
    if (before == 0 && after == 0) continue;
    std::vector<int64_t> sizes = t.sizes().vec();
    sizes[size_t(d)] = self.size(d);
    t = index_select_backward(t, sizes, d, border_index(reflect, self.size(d), before, after));
  }
  return t;
}
template <int dims>
void border_samples(SampleGen& s) {
  if (!is_floating_point(s.dtype())) return;
  std::vector<int64_t> shape(dims + 2, 3), pad;
  for (int k = 0; k < dims; ++k) pad.push_back(1), pad.push_back(2 - k);
  s(s.t(shape), pad);
  shape.erase(shape.begin());
  s(s.t(shape), std::vector<int64_t>(2 * dims, 1));
}
template <int dims>
void border_backward_samples(SampleGen& s) {
  if (!is_floating_point(s.dtype())) return;
  std::vector<int64_t> shape(dims + 1, 3), big(dims + 1, 5);
  big[0] = 3;
  s(s.t(big), s.t(shape), std::vector<int64_t>(2 * dims, 1));
}

constexpr OpDef table[] = {
OP("constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor",
  .forms = Out, .types = storage_types, .infer = infer_constant_pad, .kernels = {{Cpu, k_constant_pad}},
  .vjp = [](const Grad& g) { return grads(G(0) {
      std::vector<int64_t> back;
      for (int64_t p : g.ints(1)) back.push_back(-p);
      return constant_pad_nd(g.dy(), back, 0); }); },
  .shard = {"pad"}, .doc = "A constant around the last dims: pairs (before, after), last dim first; negative amounts cut.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), std::vector<int64_t>{1, 2}); s(s.t({3, 4}), std::vector<int64_t>{-1, 0, 0, 2}, Scalar(1)); s(s.t({}), std::vector<int64_t>{}); }),
OP("reflection_pad1d(Tensor self, int[2] padding) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = any_types, .decompose = [](const Args& a) { return border_pad(a, 1, true); },
  .vjp = [](const Grad& g) { return grads(G(0) { return reflection_pad1d_backward(g.dy(), zeros(g.sizes(0), g.dy().options()), g.ints(1)); }); },
  .shard = {"pad"}, .doc = "The last dim mirrored at its borders, which are not repeated.", .samples = border_samples<1>),
OP("reflection_pad1d_backward(Tensor grad_output, Tensor self, int[2] padding) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) { return border_pad_backward(a, 1, true); },
  .shard = {"pad"}, .doc = "Gradient of reflection_pad1d.", .samples = border_backward_samples<1>),
OP("reflection_pad2d(Tensor self, int[4] padding) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = any_types, .decompose = [](const Args& a) { return border_pad(a, 2, true); },
  .vjp = [](const Grad& g) { return grads(G(0) { return reflection_pad2d_backward(g.dy(), zeros(g.sizes(0), g.dy().options()), g.ints(1)); }); },
  .shard = {"pad"}, .doc = "The last two dims mirrored at their borders.", .samples = border_samples<2>),
OP("reflection_pad2d_backward(Tensor grad_output, Tensor self, int[4] padding) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) { return border_pad_backward(a, 2, true); },
  .shard = {"pad"}, .doc = "Gradient of reflection_pad2d.", .samples = border_backward_samples<2>),
OP("reflection_pad3d(Tensor self, int[6] padding) -> Tensor",
  .forms = Out, .types = any_types, .decompose = [](const Args& a) { return border_pad(a, 3, true); },
  .vjp = [](const Grad& g) { return grads(G(0) { return reflection_pad3d_backward(g.dy(), zeros(g.sizes(0), g.dy().options()), g.ints(1)); }); },
  .shard = {"pad"}, .doc = "The last three dims mirrored at their borders.", .samples = border_samples<3>),
OP("reflection_pad3d_backward(Tensor grad_output, Tensor self, int[6] padding) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) { return border_pad_backward(a, 3, true); },
  .shard = {"pad"}, .doc = "Gradient of reflection_pad3d.", .samples = border_backward_samples<3>),
OP("replication_pad1d(Tensor self, int[2] padding) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = any_types, .decompose = [](const Args& a) { return border_pad(a, 1, false); },
  .vjp = [](const Grad& g) { return grads(G(0) { return replication_pad1d_backward(g.dy(), zeros(g.sizes(0), g.dy().options()), g.ints(1)); }); },
  .shard = {"pad"}, .doc = "The last dim with its border elements repeated.", .samples = border_samples<1>),
OP("replication_pad1d_backward(Tensor grad_output, Tensor self, int[2] padding) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) { return border_pad_backward(a, 1, false); },
  .shard = {"pad"}, .doc = "Gradient of replication_pad1d.", .samples = border_backward_samples<1>),
OP("replication_pad2d(Tensor self, int[4] padding) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = any_types, .decompose = [](const Args& a) { return border_pad(a, 2, false); },
  .vjp = [](const Grad& g) { return grads(G(0) { return replication_pad2d_backward(g.dy(), zeros(g.sizes(0), g.dy().options()), g.ints(1)); }); },
  .shard = {"pad"}, .doc = "The last two dims with their border elements repeated.", .samples = border_samples<2>),
OP("replication_pad2d_backward(Tensor grad_output, Tensor self, int[4] padding) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) { return border_pad_backward(a, 2, false); },
  .shard = {"pad"}, .doc = "Gradient of replication_pad2d.", .samples = border_backward_samples<2>),
OP("replication_pad3d(Tensor self, int[6] padding) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = any_types, .decompose = [](const Args& a) { return border_pad(a, 3, false); },
  .vjp = [](const Grad& g) { return grads(G(0) { return replication_pad3d_backward(g.dy(), zeros(g.sizes(0), g.dy().options()), g.ints(1)); }); },
  .shard = {"pad"}, .doc = "The last three dims with their border elements repeated.", .samples = border_samples<3>),
OP("replication_pad3d_backward(Tensor grad_output, Tensor self, int[6] padding) -> Tensor",
  .types = any_types, .decompose = [](const Args& a) { return border_pad_backward(a, 3, false); },
  .shard = {"pad"}, .doc = "Gradient of replication_pad3d.", .samples = border_backward_samples<3>),
OP("pad(Tensor self, int[] pad, str mode='constant', float? value=None) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      std::string_view mode = a.string(2);
      const Tensor& t = a.tensor(0);
      if (mode == "constant") {
        Scalar v = 0;
        if (a.has(3)) v = is_integral(t.dtype(), true) ? Scalar(int64_t(a.number(3))) : Scalar(a.number(3));
        return constant_pad_nd(t, a.ints(1), v);
      }
      VESTA_CHECK(!a.has(3) || a.number(3) == 0, "pad: mode ", mode, " takes no value");
      size_t n = a.ints(1).size();
      int64_t d = t.dim();
      if (mode == "circular") {
        Tensor r = t;
        IntArrayRef pad = a.ints(1);
        VESTA_CHECK(n % 2 == 0 && int64_t(n / 2) + 1 <= d && d <= int64_t(n / 2) + 2, "pad: ", n, " circular padding amounts do not fit ", d, " dims");
        check_amounts("pad", pad);
        for (size_t k = 0; k < n / 2; ++k) {
          int64_t e = d - 1 - int64_t(k), size = t.size(e), before = pad[2 * k], after = pad[2 * k + 1];
          VESTA_CHECK(before <= size && after <= size, "pad: circular padding of at most the size ", size, " is possible, got ", before, " and ", after);
          VESTA_CHECK(size + before + after >= 0, "pad: padding ", before, " and ", after, " leaves nothing of size ", size);
          Tensor index = empty_cpu({size + before + after}, kLong);
          // Cutting comes first; what remains is what repeats.
          int64_t start = std::max<int64_t>(-before, 0), kept = size - start - std::max<int64_t>(-after, 0), lead = std::max<int64_t>(before, 0);
          VESTA_CHECK(kept > 0 || index.numel() == 0, "pad: nothing is left to repeat");
          for (int64_t i = 0; i < index.numel(); ++i) index.data_ptr<int64_t>()[i] = start + ((i - lead) % kept + kept) % kept;
          r = r.index_select(e, index);
        }
        return r;
      }
      bool reflect = mode == "reflect";
      VESTA_CHECK(reflect || mode == "replicate", "pad: expected mode constant, reflect, replicate or circular, got \"", mode, "\"");
      if (n == 2 && (d == 2 || d == 3)) return reflect ? reflection_pad1d(t, a.ints(1)) : replication_pad1d(t, a.ints(1));
      if (n == 4 && (d == 3 || d == 4)) return reflect ? reflection_pad2d(t, a.ints(1)) : replication_pad2d(t, a.ints(1));
      VESTA_CHECK(n == 6 && (d == 4 || d == 5), "pad: ", n, " amounts of mode ", mode, " do not fit ", d, " dims; only the last 1 to 3 of them can be padded");
      return reflect ? reflection_pad3d(t, a.ints(1)) : replication_pad3d(t, a.ints(1)); },
  .shard = {"pad"}, .doc = "Padding by mode: constant, reflect, replicate or circular.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), std::vector<int64_t>{1, 2}); s(s.t({2, 3, 4}), std::vector<int64_t>{1, 2}, "circular"); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(pad, table)
