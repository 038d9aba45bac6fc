// Matrix products: mm, bmm, addmm and their kin, matmul with broadcasting, linear with its bias. All run on one gemm,
// which takes strides and conjugation, so transposed and conjugated operands are never copied. Gradients are products
// of the same kind; those of a shared weight are one product over the flattened batch.
// einsum and other compositions are in products.cpp.
#include <complex>

#include "core/storage.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/gemm.h"
#include "ops/infer.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;
using cpu::GemmType;

GemmType gemm_type(DType t) {
  switch (t) {
    case DType::Float32: return GemmType::F32;
    case DType::Float64: return GemmType::F64;
    case DType::Float16: return GemmType::F16;
    case DType::BFloat16: return GemmType::Bf16;
    case DType::Int32: return GemmType::I32;
    case DType::Int64: return GemmType::I64;
    case DType::Complex64: return GemmType::C64;
    case DType::Complex128: return GemmType::C128;
    case DType::Int8: return GemmType::I8;
    default: throw TypeError(std::string("matrix product: does not take ") + dtype_name(t) + " tensors");
  }
}
// Small integers are multiplied into int32 and wrap when they are stored; bool (addr only) becomes `!= 0`.
bool is_small_int(DType t) { return t == kBool || t == kUInt8 || t == kInt8 || t == kInt16; }

cpu::GemmScalar factor(const Args& a, const Scalar& v, DType t, const char* what) {
  if (is_integral(t)) {
    VESTA_CHECK_AS(TypeError, v.isIntegral(true), a.name(), ": for integer tensors ", what, " must be an integer, got ", v.str());
    return cpu::GemmScalar(v.toLong());
  }
  if (v.isComplex()) {
    VESTA_CHECK_AS(TypeError, is_complex(t), a.name(), ": ", what, " is complex but the tensors are ", dtype_name(t));
    auto c = v.toComplexDouble();
    return cpu::GemmScalar(c.real(), c.imag());
  }
  return cpu::GemmScalar(v.toDouble());
}

struct Factors {
  cpu::GemmScalar alpha = 1, beta = 0;
};
Factors factors(const Args& k, int beta_at, DType t) {
  return {factor(k, k.scalar(beta_at + 1), t, "alpha"), factor(k, k.scalar(beta_at), t, "beta")};
}

// out = alpha * a b + beta * out (+ bias along the last dim). All have 2 dims, or 3 with the batch first; out is
// contiguous. a and b may be strided and lazily conjugated.
void product(const Tensor& a_in, const Tensor& b_in, const Tensor& out, Factors f = {}, const void* bias = nullptr) {
  const bool bytes = a_in.dtype() == kInt8 && b_in.dtype() == kInt8;  // has a product of its own
  if (is_small_int(a_in.dtype()) && !(bytes && out.dtype() == kInt32)) {
    Tensor wide = f.beta.is_zero() ? empty_cpu(out.sizes(), kInt32) : out.to(kInt32);
    product(bytes ? a_in : a_in.to(kInt32), bytes ? b_in : b_in.to(kInt32), wide, f);
    cpu::copy_elements(out, wide);
    return;
  }
  Tensor a = a_in.is_neg() ? a_in.resolve_neg() : a_in, b = b_in.is_neg() ? b_in.resolve_neg() : b_in;
  size_t r = size_t(a.dim()) - 2;
  cpu::GemmArgs g;
  g.type = gemm_type(a.dtype());
  g.out = out.dtype() == a.dtype() ? g.type : gemm_type(out.dtype());
  g.m = a.sizes()[r];
  g.k = a.sizes()[r + 1];
  g.n = b.sizes()[r + 1];
  g.a = a.impl()->data, g.a_row = a.strides()[r], g.a_col = a.strides()[r + 1];
  g.b = b.impl()->data, g.b_row = b.strides()[r], g.b_col = b.strides()[r + 1];
  g.c = out.impl()->data, g.ldc = g.n;
  if (r) {
    g.batch = a.sizes()[0];
    g.a_batch = a.strides()[0], g.b_batch = b.strides()[0], g.c_batch = g.m * g.n;
  }
  g.alpha = f.alpha;
  g.beta = f.beta;
  g.conj_a = a.is_conj();
  g.conj_b = b.is_conj();
  cpu::GemmEpilogue epilogue;
  epilogue.bias = bias;
  if (bias) g.epilogue = &epilogue;
  cpu::gemm(g);
}

// out = beta * self (broadcast) + alpha * a b. beta == 0 does not read self, so that NaN there is ignored.
void add_product(const Tensor& self_in, const Tensor& a, const Tensor& b, const Tensor& out, Factors f) {
  Tensor self = self_in.resolve_conj().resolve_neg();
  bool plain = f.beta.real == 1 && f.beta.imag == 0 && f.alpha.real == 1 && f.alpha.imag == 0;
  if (plain && self.dim() == 1 && self.size(0) == out.size(-1) && self.is_contiguous() && !is_small_int(self.dtype()) &&
      self.dtype() == out.dtype())
    return product(a, b, out, {f.alpha, 0}, self.impl()->data);
  if (!f.beta.is_zero()) cpu::copy_elements(out, self);
  product(a, b, out, f);
}

// ---- inference ----
void check_dims(const InferCtx& c, int i, int want) {
  VESTA_CHECK(c.dim(i) == want, c.name(), ": expected ", want, " dims for ", want == 1 ? "a vector" : want == 2 ? "a matrix" : "a batch of matrices",
              ", got ", c.dim(i));
}
void check_inner(const InferCtx& c, SymInt x, SymInt y) {
  VESTA_CHECK(x == y, c.name(), ": the inner sizes differ: ", x.str(), " and ", y.str());
}
// An added tensor must broadcast to the product.
void check_added(const InferCtx& c, ArrayRef<SymInt> sizes) {
  auto s = c.sizes(0);
  VESTA_CHECK(s.size() <= sizes.size(), c.name(), ": self has ", s.size(), " dims, the product ", sizes.size());
  for (size_t d = 0; d < s.size(); ++d) {
    SymInt want = sizes[sizes.size() - s.size() + d];
    VESTA_CHECK(s[d] == want || s[d] == 1, c.name(), ": self does not broadcast to the product: size ", s[d].str(), " against ", want.str());
  }
}
template <int a, bool added>
void infer_mm(InferCtx& c) {
  check_dims(c, a, 2);
  check_dims(c, a + 1, 2);
  check_inner(c, c.sizes(a)[1], c.sizes(a + 1)[0]);
  SymInt sizes[] = {c.sizes(a)[0], c.sizes(a + 1)[1]};
  if (added) check_added(c, sizes);
  c.out(0, sizes, c.dtype_of(a), c.tensor(a).device());
}
template <int a, bool added>
void infer_bmm(InferCtx& c) {
  check_dims(c, a, 3);
  check_dims(c, a + 1, 3);
  VESTA_CHECK(c.sizes(a)[0] == c.sizes(a + 1)[0], c.name(), ": the batch sizes differ: ", c.sizes(a)[0].str(), " and ", c.sizes(a + 1)[0].str());
  check_inner(c, c.sizes(a)[2], c.sizes(a + 1)[1]);
  SymInt sizes[] = {c.sizes(a)[0], c.sizes(a)[1], c.sizes(a + 1)[2]};
  if (added) check_added(c, sizes);
  c.out(0, sizes, c.dtype_of(a), c.tensor(a).device());
}
// Half types may be multiplied into a float32 result.
template <InferFn base, int a, int dtype_at>
void infer_out_dtype(InferCtx& c) {
  base(c);
  DType t = DType(c.integer(dtype_at)), in = c.dtype_of(a);
  VESTA_CHECK_AS(TypeError, t == in || (t == kFloat && (in == kHalf || in == kBFloat16)), c.name(), ": out_dtype must be ", dtype_name(in),
                 in == kHalf || in == kBFloat16 ? " or float32" : "", ", got ", dtype_name(t));
  VESTA_CHECK_AS(TypeError, c.dtype_of(a + 1) == in, c.name(), ": expected factors of one dtype, got ", dtype_name(in), " and ", dtype_name(c.dtype_of(a + 1)));
  c.meta(0).dtype = t;
}
template <int a, bool added>
void infer_mv(InferCtx& c) {
  check_dims(c, a, 2);
  check_dims(c, a + 1, 1);
  check_inner(c, c.sizes(a)[1], c.sizes(a + 1)[0]);
  SymInt sizes[] = {c.sizes(a)[0]};
  if (added) check_added(c, sizes);
  c.out(0, sizes, c.dtype_of(a), c.tensor(a).device());
}
void infer_addr(InferCtx& c) {
  check_dims(c, 1, 1);
  check_dims(c, 2, 1);
  SymInt sizes[] = {c.sizes(1)[0], c.sizes(2)[0]};
  check_added(c, sizes);
  c.out(0, sizes, c.dtype_of(1), c.tensor(1).device());
}
void infer_dot(InferCtx& c) {
  check_dims(c, 0, 1);
  check_dims(c, 1, 1);
  check_inner(c, c.sizes(0)[0], c.sizes(1)[0]);
  c.out(0, {}, c.dtype_of(0), c.tensor(0).device());
}
void infer_linear(InferCtx& c) {
  VESTA_CHECK(c.dim(0) >= 1, c.name(), ": expected an input with at least 1 dim");
  VESTA_CHECK(c.dim(1) == 1 || c.dim(1) == 2, c.name(), ": expected a weight with 1 or 2 dims, got ", c.dim(1));
  check_inner(c, c.sizes(0).back(), c.sizes(1).back());
  std::vector<SymInt> sizes(c.sizes(0).begin(), c.sizes(0).end());
  sizes.pop_back();
  if (c.dim(1) == 2) sizes.push_back(c.sizes(1)[0]);
  if (c.has(2)) {
    auto b = c.sizes(2);
    VESTA_CHECK(b.size() <= 1 && (b.empty() || b[0] == 1 || (!sizes.empty() && b[0] == sizes.back())), c.name(),
                ": expected a bias with as many elements as the weight has rows");
  }
  c.out(0, sizes, c.dtype_of(0), c.tensor(0).device());
}
void infer_matmul(InferCtx& c) {
  int n = c.dim(0), m = c.dim(1);
  VESTA_CHECK(n >= 1 && m >= 1, c.name(), ": both tensors need at least 1 dim, got ", n, " and ", m);
  auto x = c.sizes(0), y = c.sizes(1);
  check_inner(c, x.back(), m == 1 ? y[0] : y[size_t(m - 2)]);
  std::vector<SymInt> sizes = broadcast_sizes(c, x.slice(0, size_t(std::max(0, n - 2))), y.slice(0, size_t(std::max(0, m - 2))));
  if (n > 1) sizes.push_back(x[size_t(n - 2)]);
  if (m > 1) sizes.push_back(y.back());
  c.out(0, sizes, c.dtype_of(0), c.tensor(0).device());
}

// ---- kernels ----
void k_mm(const KernelCtx& k) { product(k.tensor(0), k.tensor(1), k.out()); }
template <int beta_at>
void k_addmm(const KernelCtx& k) {
  add_product(k.tensor(0), k.tensor(1), k.tensor(2), k.out(), factors(k, beta_at, k.tensor(1).dtype()));
}
void k_mv(const KernelCtx& k) { product(k.tensor(0), k.tensor(1).unsqueeze(1), k.out().unsqueeze(1)); }
void k_addmv(const KernelCtx& k) {
  Tensor self = k.tensor(0).dim() == 1 ? k.tensor(0).unsqueeze(1) : k.tensor(0);
  add_product(self, k.tensor(1), k.tensor(2).unsqueeze(1), k.out().unsqueeze(1), factors(k, 3, k.tensor(1).dtype()));
}
void k_addr(const KernelCtx& k) {
  add_product(k.tensor(0), k.tensor(1).unsqueeze(1), k.tensor(2).unsqueeze(0), k.out(), factors(k, 3, k.tensor(1).dtype()));
}
void k_dot(const KernelCtx& k) { product(k.tensor(0).unsqueeze(0), k.tensor(1).unsqueeze(1), k.out().view({1, 1})); }
void k_vdot(const KernelCtx& k) {
  product(k.tensor(0).conj().unsqueeze(0), k.tensor(1).unsqueeze(1), k.out().view({1, 1}));
}

// [rows, cols] of a tensor whose leading dims are flattened.
Tensor flatten_rows(const Tensor& t) {
  if (t.dim() == 2) return t;
  int64_t rows = 1, cols = t.size(-1);
  for (int64_t d = 0; d + 1 < t.dim(); ++d) rows *= t.size(d);
  return t.reshape({rows, cols});
}
void k_linear(const KernelCtx& k) {
  const Tensor &x = k.tensor(0), &w = k.tensor(1), &bias = k.tensor(2);
  Tensor a = flatten_rows(x), b = w.dim() == 1 ? w.unsqueeze(1) : w.transpose(0, 1);
  Tensor out = k.out().view({a.size(0), b.size(1)});
  if (!bias.defined()) return product(a, b, out);
  add_product(bias, a, b, out, {1, 1});
}
// A batched operand as [batch, rows, cols], without a copy where its batch dims have one stride.
Tensor as_batch(const Tensor& t, IntArrayRef batch, int64_t count) {
  std::vector<int64_t> full(batch.begin(), batch.end());
  full.push_back(t.size(-2));
  full.push_back(t.size(-1));
  Tensor e = t.sizes() == IntArrayRef(full) ? t : t.expand(full);
  return e.dim() == 3 ? e : e.reshape({count, t.size(-2), t.size(-1)});
}
void k_matmul(const KernelCtx& k) {
  Tensor x = k.tensor(0), y = k.tensor(1);
  if (x.dim() == 1) x = x.unsqueeze(0);
  if (y.dim() == 1) y = y.unsqueeze(1);
  if (y.dim() == 2) {  // one product over the flattened rows
    Tensor a = flatten_rows(x);
    return product(a, y, k.out().view({a.size(0), y.size(1)}));
  }
  const Tensor& out = k.out();
  int64_t batch_dims = out.dim() - (k.tensor(0).dim() > 1) - (k.tensor(1).dim() > 1), count = 1;
  IntArrayRef batch = out.sizes().slice(0, size_t(batch_dims));
  for (int64_t s : batch) count *= s;
  product(as_batch(x, batch, count), as_batch(y, batch, count), out.view({count, x.size(-2), y.size(-1)}));
}

// ---- gradients ----
Tensor hermitian(const Tensor& t) {
  Tensor r = t.transpose(-2, -1);
  return r.is_complex() ? r.conj() : r;
}
Tensor conj_of(const Tensor& t) { return t.is_complex() ? t.conj() : t; }
Tensor scaled(const Tensor& t, const Scalar& s) { return s.equal(Scalar(1)) ? t : t * s.conj(); }

int vjp_linear(const Grad& g) {
  Tensor dy = g.dy();
  bool matrix = g.sizes(1).size() == 2;
  return grads(
      G(0) { return matrix ? matmul(dy, conj_of(g.in(1))) : dy.unsqueeze(-1) * conj_of(g.in(1)); },
      G(1) {
        Tensor x = g.in(0);
        if (!matrix) return (dy.unsqueeze(-1) * conj_of(x)).sum_to_size(g.sizes(1));
        if (x.dim() == 1) return outer(dy, conj_of(x));
        return mm(flatten_rows(dy).transpose(0, 1), conj_of(flatten_rows(x)));
      },
      G(2) { return g.sizes(2).size() == 1 && matrix && dy.dim() > 1 && g.sizes(2)[0] == dy.size(-1) ? flatten_rows(dy).sum({0}) : dy; });
}
int vjp_matmul(const Grad& g) {
  int64_t n = int64_t(g.sizes(0).size()), m = int64_t(g.sizes(1).size());
  Tensor dy = g.dy();
  if (n == 1 && m == 1) return grads(G(0) { return dy * conj_of(g.in(1)); }, G(1) { return dy * conj_of(g.in(0)); });
  if (n == 1) dy = dy.unsqueeze(-2);
  if (m == 1) dy = dy.unsqueeze(-1);
  return grads(
      G(0) {
        Tensor y = m == 1 ? g.in(1).unsqueeze(1) : g.in(1);
        Tensor dx = matmul(dy, hermitian(y));
        return n == 1 ? dx.squeeze(-2) : dx;
      },
      G(1) {
        Tensor x = n == 1 ? g.in(0).unsqueeze(0) : g.in(0);
        Tensor d = m <= 2 && x.dim() > 2 ? mm(hermitian(flatten_rows(x)), flatten_rows(dy)) : matmul(hermitian(x), dy);
        return m == 1 ? d.squeeze(-1) : d;
      });
}

constexpr OpDef table[] = {
OP("mm(Tensor self, Tensor mat2) -> Tensor",
  .autocast = Autocast::Lower,
  .forms = Out, .types = same_number, .infer = infer_mm<0, false>, .kernels = {{Cpu, k_mm}}, .accepts_conj = true,
  .save = {in(0).if_needs(1), in(1).if_needs(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return mm(g.dy(), hermitian(g.in(1))); }, G(1) { return mm(hermitian(g.in(0)), g.dy()); }); },
  .shard = Shard::einsum("mk,kn->mn"), .doc = "Matrix product of (m, k) and (k, n). Half types accumulate in float32.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({4, 5})); s(s.t({4, 3}).transpose(0, 1), s.t({5, 4}).transpose(0, 1)); s(s.t({3, 0}), s.t({0, 2})); s(s.t({0, 3}), s.t({3, 2})); }),
OP("mm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor",
  .forms = Out, .types = same_float, .infer = infer_out_dtype<infer_mm<0, false>, 0, 2>, .kernels = {{Cpu, k_mm}},
  .non_differentiable = true, .shard = Shard::einsum("mk,kn->mn"), .doc = "mm of half types with a float32 result.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({4, 5}), s.dtype() == kDouble ? kDouble : kFloat); }),
OP("addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
  .autocast = Autocast::Lower,
  .forms = InPlace | Out, .types = same_number, .infer = infer_mm<1, true>, .kernels = {{Cpu, k_addmm<3>}}, .accepts_conj = true,
  .save = {in(1).if_needs(2), in(2).if_needs(1)},
  .vjp = [](const Grad& g) { return grads(
      G(0) { return scaled(g.dy(), g.scalar(3)); },
      G(1) { return scaled(mm(g.dy(), hermitian(g.in(2))), g.scalar(4)); },
      G(2) { return scaled(mm(hermitian(g.in(1)), g.dy()), g.scalar(4)); }); },
  .shard = Shard::einsum("mk,kn->mn"), .doc = "beta * self + alpha * (mat1 @ mat2); self broadcasts and is not read where beta is 0.",
  .samples = [](SampleGen& s) { s(s.t({5}), s.t({3, 4}), s.t({4, 5})); s(s.t({3, 1}), s.t({3, 4}), s.t({4, 5}), Scalar(2), Scalar(3)); s(s.t({3, 5}), s.t({3, 4}), s.t({4, 5}), Scalar(0), Scalar(1)); s(s.t({2}), s.t({3, 0}), s.t({0, 2})); }),
OP("addmm.dtype(Tensor self, Tensor mat1, Tensor mat2, ScalarType out_dtype, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_out_dtype<infer_mm<1, true>, 1, 3>, .kernels = {{Cpu, k_addmm<4>}},
  .non_differentiable = true, .shard = Shard::einsum("mk,kn->mn"), .doc = "addmm of half types with a float32 result.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({5}), s.t({3, 4}), s.t({4, 5}), s.dtype() == kDouble ? kDouble : kFloat); }),
OP("bmm(Tensor self, Tensor mat2) -> Tensor",
  .autocast = Autocast::Lower,
  .forms = Out, .types = same_number, .infer = infer_bmm<0, false>, .kernels = {{Cpu, k_mm}}, .accepts_conj = true,
  .save = {in(0).if_needs(1), in(1).if_needs(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return bmm(g.dy(), hermitian(g.in(1))); }, G(1) { return bmm(hermitian(g.in(0)), g.dy()); }); },
  .shard = Shard::einsum("bmk,bkn->bmn"), .doc = "Matrix products of a batch.",
  .samples = [](SampleGen& s) { s(s.t({2, 3, 4}), s.t({2, 4, 5})); s(s.t({2, 4, 3}).transpose(1, 2), s.t({2, 4, 1})); s(s.t({0, 3, 4}), s.t({0, 4, 5})); }),
OP("bmm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor",
  .forms = Out, .types = same_float, .infer = infer_out_dtype<infer_bmm<0, false>, 0, 2>, .kernels = {{Cpu, k_mm}},
  .non_differentiable = true, .shard = Shard::einsum("bmk,bkn->bmn"), .doc = "bmm of half types with a float32 result.",
  .samples = [](SampleGen& s) { s(s.t({2, 3, 4}), s.t({2, 4, 5}), s.dtype() == kDouble ? kDouble : kFloat); }),
OP("baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
  .autocast = Autocast::Lower,
  .forms = InPlace | Out, .types = same_number, .infer = infer_bmm<1, true>, .kernels = {{Cpu, k_addmm<3>}}, .accepts_conj = true,
  .save = {in(1).if_needs(2), in(2).if_needs(1)},
  .vjp = [](const Grad& g) { return grads(
      G(0) { return scaled(g.dy(), g.scalar(3)); },
      G(1) { return scaled(bmm(g.dy(), hermitian(g.in(2))), g.scalar(4)); },
      G(2) { return scaled(bmm(hermitian(g.in(1)), g.dy()), g.scalar(4)); }); },
  .shard = Shard::einsum("bmk,bkn->bmn"), .doc = "beta * self + alpha * bmm(batch1, batch2).",
  .samples = [](SampleGen& s) { s(s.t({2, 3, 5}), s.t({2, 3, 4}), s.t({2, 4, 5})); s(s.t({3, 1}), s.t({2, 3, 4}), s.t({2, 4, 5}), Scalar(2), Scalar(3)); }),
OP("baddbmm.dtype(Tensor self, Tensor batch1, Tensor batch2, ScalarType out_dtype, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
  .forms = Out, .types = any_types, .infer = infer_out_dtype<infer_bmm<1, true>, 1, 3>, .kernels = {{Cpu, k_addmm<4>}},
  .non_differentiable = true, .shard = Shard::einsum("bmk,bkn->bmn"), .doc = "baddbmm of half types with a float32 result.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({5}), s.t({2, 3, 4}), s.t({2, 4, 5}), s.dtype() == kDouble ? kDouble : kFloat); }),
OP("mv(Tensor self, Tensor vec) -> Tensor",
  .forms = Out, .types = same_number, .infer = infer_mv<0, false>, .kernels = {{Cpu, k_mv}}, .accepts_conj = true,
  .save = {in(0).if_needs(1), in(1).if_needs(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return outer(g.dy(), conj_of(g.in(1))); }, G(1) { return mv(hermitian(g.in(0)), g.dy()); }); },
  .shard = Shard::einsum("mk,k->m"), .doc = "Matrix times vector.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({4})); s(s.t({4, 3}).transpose(0, 1), s.t({4})); s(s.t({2, 0}), s.t({0})); }),
OP("addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
  .forms = InPlace | Out, .types = same_number, .infer = infer_mv<1, true>, .kernels = {{Cpu, k_addmv}}, .accepts_conj = true,
  .save = {in(1).if_needs(2), in(2).if_needs(1)},
  .vjp = [](const Grad& g) { return grads(
      G(0) { return scaled(g.dy(), g.scalar(3)); },
      G(1) { return scaled(outer(g.dy(), conj_of(g.in(2))), g.scalar(4)); },
      G(2) { return scaled(mv(hermitian(g.in(1)), g.dy()), g.scalar(4)); }); },
  .shard = Shard::einsum("mk,k->m"), .doc = "beta * self + alpha * (mat @ vec).",
  .samples = [](SampleGen& s) { s(s.t({3}), s.t({3, 4}), s.t({4})); s(s.t({}), s.t({3, 4}), s.t({4}), Scalar(2), Scalar(3)); }),
OP("addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
  .forms = InPlace | Out, .types = all_types, .infer = infer_addr, .kernels = {{Cpu, k_addr}}, .accepts_conj = true,
  .save = {in(1).if_needs(2), in(2).if_needs(1)},
  .vjp = [](const Grad& g) { return grads(
      G(0) { return scaled(g.dy(), g.scalar(3)); },
      G(1) { return scaled(mv(g.dy(), conj_of(g.in(2))), g.scalar(4)); },
      G(2) { return scaled(mv(g.dy().transpose(0, 1), conj_of(g.in(1))), g.scalar(4)); }); },
  .shard = Shard::einsum("m,n->mn"), .doc = "beta * self + alpha * outer(vec1, vec2).",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3}), s.t({4})); s(s.t({4}), s.t({3}), s.t({4}), Scalar(2), Scalar(3)); }),
OP("dot(Tensor self, Tensor tensor) -> Tensor",
  .forms = Out, .types = same_number, .infer = infer_dot, .kernels = {{Cpu, k_dot}}, .accepts_conj = true,
  .save = {in(0).if_needs(1), in(1).if_needs(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return g.dy() * conj_of(g.in(1)); }, G(1) { return g.dy() * conj_of(g.in(0)); }); },
  .shard = Shard::einsum("k,k->"), .doc = "Sum of products of two vectors (no conjugation).",
  .samples = [](SampleGen& s) { s(s.t({5}), s.t({5})); s(s.t({0}), s.t({0})); }),
OP("vdot(Tensor self, Tensor other) -> Tensor",
  .forms = Out, .types = same_number, .infer = infer_dot, .kernels = {{Cpu, k_vdot}}, .accepts_conj = true,
  .save = {in(0).if_needs(1), in(1).if_needs(0)},
  .vjp = [](const Grad& g) { return grads(G(0) { return conj_of(g.dy()) * g.in(1); }, G(1) { return g.dy() * g.in(0); }); },
  .shard = Shard::einsum("k,k->"), .doc = "dot with self conjugated.",
  .samples = [](SampleGen& s) { s(s.t({5}), s.t({5})); }),
OP("outer(Tensor self, Tensor vec2) -> Tensor",
  .forms = Out, .types = any_types, .accepts_conj = true,
  .decompose = [](const Args& a) -> Results {
      VESTA_CHECK(a.tensor(0).dim() == 1 && a.tensor(1).dim() == 1, a.name(), ": expected two vectors, got ", a.tensor(0).dim(), " and ", a.tensor(1).dim(), " dims");
      return a.tensor(0).unsqueeze(1) * a.tensor(1); },
  .shard = Shard::einsum("m,n->mn"), .doc = "All products of two vectors' elements.",
  .samples = [](SampleGen& s) { if (s.dtype() != kBool) { s(s.t({3}), s.t({4})); s(s.t({0}), s.t({4})); } }),
OP("matmul(Tensor self, Tensor other) -> Tensor",
  .autocast = Autocast::Lower,
  .forms = Out, .types = same_number, .infer = infer_matmul, .kernels = {{Cpu, k_matmul}}, .accepts_conj = true,
  .save = {in(0).if_needs(1), in(1).if_needs(0)}, .vjp = vjp_matmul,
  .shard = Shard::einsum("...mk,...kn->...mn"), .doc = "Matrix product over the last two dims, broadcast over the others; 1-dim tensors are vectors.",
  .samples = [](SampleGen& s) {
      s(s.t({4}), s.t({4})); s(s.t({3, 4}), s.t({4})); s(s.t({4}), s.t({4, 3})); s(s.t({2, 3, 4}), s.t({4, 5}));
      s(s.t({2, 1, 3, 4}), s.t({5, 4, 2})); s(s.t({2, 3, 4}), s.t({4})); s(s.t({4}), s.t({2, 4, 3})); s(s.t({3, 4}), s.t({2, 4, 2})); }),
OP("linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
  .autocast = Autocast::Lower,
  .forms = Out, .types = same_number, .infer = infer_linear, .kernels = {{Cpu, k_linear}}, .accepts_conj = true,
  .save = {in(0).if_needs(1), in(1).if_needs(0)}, .vjp = vjp_linear,
  .shard = Shard::einsum("...k,nk->...n"), .doc = "input @ weight^T + bias, the bias added while the result is in cache.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({5, 4}), s.t({5})); s(s.t({2, 3, 4}), s.t({5, 4})); s(s.t({4}), s.t({5, 4}), s.t({5})); s(s.t({3, 4}), s.t({4})); s(s.t({0, 4}), s.t({5, 4}), s.t({5})); }),
OP("linear_backward(Tensor self, Tensor grad_output, Tensor weight, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
  .types = same_number, .accepts_conj = true,
  .decompose = [](const Args& a) -> Results {
      auto* mask = static_cast<const bool*>(a.value(3).ptr);
      VESTA_CHECK(a.value(3).length == 3, a.name(), ": expected 3 flags in output_mask");
      const Tensor &x = a.tensor(0), &dy = a.tensor(1), &w = a.tensor(2);
      Tensor rows = flatten_rows(dy);
      return {mask[0] ? matmul(dy, conj_of(w)) : Tensor(), mask[1] ? mm(rows.transpose(0, 1), conj_of(flatten_rows(x))) : Tensor(), mask[2] ? rows.sum({0}) : Tensor()}; },
  .shard = Shard::einsum("...n,nk->...k"), .doc = "Gradients of linear in its input, weight and bias, as the mask asks.",
  .samples = [](SampleGen& s) { s(s.t({3, 4}), s.t({3, 5}), s.t({5, 4}), std::vector<bool>{true, true, true}); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(matmul, table)
