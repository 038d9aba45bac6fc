// Complex numbers: lazy conjugation and negation, real and imaginary views.
#include "core/storage.h"
#include "kernels/cpu/copy.h"
#include "ops/infer.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

Tensor with_bit_flipped(const Tensor& t, uint32_t bit) {
  Tensor r = t.alias();
  r.impl()->bits ^= bit;
  return r;
}

// A copy with the lazy bits applied; the input's own bits are ignored by copy_elements.
void k_conj_physical(const KernelCtx& k) {
  const Tensor& t = k.tensor(0);
  cpu::copy_elements(k.out(), t);
  if (!t.is_complex()) return;
  if (t.dtype() == kComplexFloat) {
    auto* p = k.out().data_ptr<std::complex<float>>();
    for (int64_t i = 0; i < t.numel(); ++i) p[i] = std::conj(p[i]);
  } else if (t.dtype() == kComplexHalf) {
    auto* p = k.out().data_ptr<ComplexHalf>();
    for (int64_t i = 0; i < t.numel(); ++i) p[i].im.bits ^= 0x8000u;
  } else {
    auto* p = k.out().data_ptr<std::complex<double>>();
    for (int64_t i = 0; i < t.numel(); ++i) p[i] = std::conj(p[i]);
  }
}

// As above, but what has no lazy conjugation is only copied: a trace records the call for tensors of both kinds.
void k_resolve_conj(const KernelCtx& k) {
  if (k.tensor(0).is_conj()) k_conj_physical(k);
  else cpu::copy_elements(k.out(), k.tensor(0));
}

// Views of the two halves: strides and offset double.
void view_part(InferCtx& c, int64_t part, bool last_dim) {
  const Tensor& t = c.tensor(0);
  VESTA_CHECK_AS(TypeError, t.is_complex(), c.name(), ": expected a complex tensor, got ", dtype_name(t.dtype()));
  std::vector<SymInt> sizes(c.sizes(0).begin(), c.sizes(0).end()), strides;
  for (auto s : c.strides(0)) strides.push_back(s * 2);
  if (last_dim) {
    sizes.push_back(2);
    strides.push_back(1);
  }
  c.out_view(0, 0, sizes, strides, InferCtx::offset_of(t) * 2 + part, real_dtype(t.dtype()));
}
void infer_view_as_complex(InferCtx& c) {
  const Tensor& t = c.tensor(0);
  VESTA_CHECK_AS(TypeError, t.dtype() == kFloat || t.dtype() == kDouble || t.dtype() == kHalf, c.name(), ": expected float16, float32 or float64, got ", dtype_name(t.dtype()));
  VESTA_CHECK(t.dim() > 0 && c.sizes(0).back() == 2, c.name(), ": expected a last dim of size 2");
  VESTA_CHECK(c.strides(0).back() == 1, c.name(), ": expected a last dim of stride 1");
  std::vector<SymInt> sizes(c.sizes(0).begin(), c.sizes(0).end() - 1), strides;
  for (size_t d = 0; d + 1 < c.strides(0).size(); ++d) {
    VESTA_CHECK(c.strides(0)[d] % 2 == 0, c.name(), ": expected even strides");
    strides.push_back(c.strides(0)[d] / 2);
  }
  VESTA_CHECK(InferCtx::offset_of(t) % 2 == 0, c.name(), ": expected an even storage offset");
  static const SymInt none[1] = {};
  c.out_view(0, 0, sizes, ArrayRef<SymInt>(strides.empty() ? none : strides.data(), strides.size()), InferCtx::offset_of(t) / 2,
             t.dtype() == kFloat ? kComplexFloat : t.dtype() == kHalf ? kComplexHalf : kComplexDouble);
}

constexpr OpDef table[] = {
OP("conj(Tensor(a) self) -> Tensor(a)",
  .types = any_types, .accepts_conj = true,
  .decompose = [](const Args& a) -> Results { return a.tensor(0).is_complex() ? _conj(a.tensor(0)) : a.tensor(0); },
  .shard = Shard::view(), .doc = "Complex conjugate, lazily; self for real tensors.",
  .samples = [](SampleGen& s) { s.unary(s.shapes()); }),
OP("_conj(Tensor(a) self) -> Tensor(a)",
  .types = any_types, .accepts_conj = true,
  .decompose = [](const Args& a) -> Results { return with_bit_flipped(a.tensor(0), TensorImpl::kConj); },
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy().conj(); }); },
  .shard = {"pw-lin1"}, .doc = "A view of a complex tensor that reads as its conjugate.",
  .samples = [](SampleGen& s) { if (is_complex(s.dtype())) s.unary(s.shapes()); }),
OP("resolve_conj(Tensor(a) self) -> Tensor(a)",
  .types = any_types, .accepts_conj = true,
  .decompose = [](const Args& a) -> Results { return a.tensor(0).is_conj() ? _resolve_conj(a.tensor(0)) : a.tensor(0); },
  .shard = {"pw-lin1"}, .doc = "self without a lazy conjugation.",
  .samples = [](SampleGen& s) { s.unary(s.shapes()); }),
OP("resolve_neg(Tensor(a) self) -> Tensor(a)",
  .types = any_types, .accepts_conj = true,
  .decompose = [](const Args& a) -> Results { 
      if (!a.tensor(0).is_neg()) return a.tensor(0);
      Tensor plain = a.tensor(0).alias();
      plain.impl()->bits &= ~TensorImpl::kNeg;
      return plain.neg(); },
  .shard = {"pw-lin1"}, .doc = "self without a lazy negation.",
  .samples = [](SampleGen& s) { s.unary(s.shapes()); }),
OP("_resolve_conj(Tensor self) -> Tensor",
  .types = storage_types, .infer = infer_like_self, .kernels = {{Cpu, k_resolve_conj}}, .accepts_conj = true,
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy(); }); },
  .shard = {"copy"}, .doc = "A copy with the lazy conjugation carried out.",
  .samples = [](SampleGen& s) { if (is_complex(s.dtype())) s(s.t({3}).conj()); }),
OP("conj_physical(Tensor self) -> Tensor",
  .forms = InPlace | Out, .types = storage_types, .infer = infer_like_self, .kernels = {{Cpu, k_conj_physical}},
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy().conj(); }); },
  .shard = {"pw-lin1"}, .doc = "Complex conjugate in memory of its own.",
  .samples = [](SampleGen& s) { s.unary(s.shapes()); }),
OP("view_as_real(Tensor(a) self) -> Tensor(a)",
  .types = any_types, .infer = [](InferCtx& c) {
      VESTA_CHECK(!c.tensor(0).is_conj(), "view_as_real: the tensor is lazily conjugated; call resolve_conj first");
      view_part(c, 0, true); },
  .accepts_conj = true,
  .vjp = [](const Grad& g) { return grads(G(0) { return view_as_complex(g.dy().contiguous()); }); },
  .shard = Shard::view(), .doc = "A complex tensor as pairs (real, imaginary) in a new last dim.",
  .samples = [](SampleGen& s) { if (is_complex(s.dtype())) s.unary(s.shapes()); }),
OP("view_as_complex(Tensor(a) self) -> Tensor(a)",
  .autocast = Autocast::Float32,
  .types = any_types, .infer = infer_view_as_complex,
  .vjp = [](const Grad& g) { return grads(G(0) { return view_as_real(g.dy().resolve_conj()); }); },
  .shard = Shard::view(), .doc = "Pairs in the last dim as complex numbers.",
  .samples = [](SampleGen& s) { if (s.dtype() == kFloat || s.dtype() == kDouble) { s(s.t({3, 2})); s(s.t({2})); } }),
OP("_real_view(Tensor(a) self) -> Tensor(a)",
  .types = any_types, .infer = [](InferCtx& c) { view_part(c, 0, false); }, .accepts_conj = true,
  .vjp = [](const Grad& g) { return grads(G(0) { return complex(g.dy(), zeros_like(g.dy())); }); },
  .shard = Shard::view(), .doc = "Real parts of a complex tensor, as a view.",
  .samples = [](SampleGen& s) { if (is_complex(s.dtype())) s.unary(s.shapes()); }),
OP("_imag_view(Tensor(a) self) -> Tensor(a)",
  .types = any_types, .infer = [](InferCtx& c) { view_part(c, 1, false); }, .accepts_conj = true,
  .vjp = [](const Grad& g) { return grads(G(0) { return complex(zeros_like(g.dy()), g.dy()); }); },
  .shard = Shard::view(), .doc = "Imaginary parts of a complex tensor as stored, as a view.",
  .samples = [](SampleGen& s) { if (is_complex(s.dtype())) s.unary(s.shapes()); }),
OP("real(Tensor(a) self) -> Tensor(a)",
  .types = any_types, .accepts_conj = true,
  .decompose = [](const Args& a) -> Results { return a.tensor(0).is_complex() ? _real_view(a.tensor(0)) : a.tensor(0); },
  .shard = Shard::view(), .doc = "Real part; self for real tensors.",
  .samples = [](SampleGen& s) { s.unary(s.shapes()); }),
OP("imag(Tensor(a) self) -> Tensor(a)",
  .types = any_types, .accepts_conj = true,
  .decompose = [](const Args& a) -> Results {
      VESTA_CHECK_AS(TypeError, a.tensor(0).is_complex(), "imag: expected a complex tensor, got ", dtype_name(a.tensor(0).dtype()));
      Tensor v = _imag_view(a.tensor(0));
      return a.tensor(0).is_conj() ? v.neg() : v; },
  .shard = Shard::view(), .doc = "Imaginary part.",
  .samples = [](SampleGen& s) { if (is_complex(s.dtype())) s.unary(s.shapes()); }),
OP("complex(Tensor real, Tensor imag) -> Tensor",
  .forms = Out, .types = {types::kFloatMask, Promote::Same},
  .decompose = [](const Args& a) -> Results {
      VESTA_CHECK_AS(TypeError, a.tensor(0).dtype() == a.tensor(1).dtype() && (a.tensor(0).dtype() == kFloat || a.tensor(0).dtype() == kDouble),
                     "complex: expected two float32 or two float64 tensors, got ", dtype_name(a.tensor(0).dtype()), " and ", dtype_name(a.tensor(1).dtype()));
      Tensor r = a.tensor(0) + zeros_like(a.tensor(1)), i = a.tensor(1) + zeros_like(a.tensor(0));
      return view_as_complex(stack({r, i}, -1)); },
  .shard = Shard::pointwise(), .doc = "real + i imag.",
  .samples = [](SampleGen& s) { if (s.dtype() == kFloat || s.dtype() == kDouble) s.binary(); }),
OP("_conj_physical(Tensor self) -> Tensor",
  .types = any_types, .infer = infer_like_self, .kernels = {{Cpu, k_conj_physical}},
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy().conj(); }); },
  .shard = {"pw-lin1"}, .doc = "conj_physical of a complex tensor.",
  .samples = [](SampleGen& s) { if (is_complex(s.dtype())) s.unary(s.shapes()); }),
OP("polar(Tensor abs, Tensor angle) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = {types::kFloatMask, Promote::Same},
  .decompose = [](const Args& a) -> Results { return complex(a.tensor(0) * a.tensor(1).cos(), a.tensor(0) * a.tensor(1).sin()); },
  .shard = Shard::pointwise(), .doc = "abs * (cos(angle) + i sin(angle)).",
  .samples = [](SampleGen& s) { if (s.dtype() == kFloat || s.dtype() == kDouble) s.binary(); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(complex, table)
