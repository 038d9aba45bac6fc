// Scaled dot product attention. Without dropout it runs as a flash kernel that never holds the scores of all keys,
// forward and backward, with one logsumexp per query saved; anything else is composed of matmul and softmax.
#include <cmath>
#include <limits>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/copy.h"
#include "ops/infer.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

constexpr int64_t kMaxHeadDim = 512;  // of the kernel

DType stat_type(DType t) { return t == kDouble ? kDouble : kFloat; }
double scale_of(const Args& a, int at, int64_t dim) { return a.has(at) ? a.number(at) : 1 / std::sqrt(double(dim)); }

// [batch, heads, length, dim], written as [batch, length, heads, dim]: joining the heads again is a view.
void out_heads(InferCtx& c, int j, ArrayRef<SymInt> s, SymInt dim, DType t) {
  SymInt sizes[] = {s[0], s[1], s[2], dim};
  SymInt strides[] = {s[2] * s[1] * dim, dim, s[1] * dim, 1};
  for (auto& v : strides) v = max(v, 1);
  c.out_strided(j, sizes, strides, t, c.tensor(0).device());
}
void check_qkv(const InferCtx& c, int q, int mask_at) {
  for (int i = q; i < q + 3; ++i) VESTA_CHECK(c.dim(i) == 4, c.name(), ": expected [batch, heads, length, dim], got ", c.dim(i), " dims");
  auto a = c.sizes(q), b = c.sizes(q + 1), v = c.sizes(q + 2);
  DType t = c.dtype_of(q);
  VESTA_CHECK_AS(TypeError, is_floating_point(t) && c.dtype_of(q + 1) == t && c.dtype_of(q + 2) == t, c.name(), ": query, key and value must have one floating point dtype");
  VESTA_CHECK(a[0] == b[0] && a[0] == v[0] && b[1] == v[1] && b[2] == v[2] && a[3] == b[3], c.name(), ": the sizes of query, key and value do not fit");
  VESTA_CHECK(b[1] == a[1] || (b[1] > 0 && a[1] % b[1] == 0), c.name(), ": ", a[1].str(), " query heads cannot share ", b[1].str(), " key heads");
  VESTA_CHECK(a[3] >= 1 && a[3] <= kMaxHeadDim && v[3] >= 1 && v[3] <= kMaxHeadDim, c.name(), ": expected head dims in [1, ", kMaxHeadDim, "]");
  if (!c.has(mask_at)) return;
  auto m = c.sizes(mask_at);
  SymInt want[] = {a[0], a[1], a[2], b[2]};
  VESTA_CHECK(m.size() >= 2 && m.size() <= 4, c.name(), ": expected a mask with 2 to 4 dims, got ", m.size());
  for (size_t d = 0; d < m.size(); ++d) {
    SymInt w = want[4 - m.size() + d];
    VESTA_CHECK(m[d] == w || m[d] == 1, c.name(), ": the mask does not broadcast to [batch, heads, queries, keys]");
  }
  VESTA_CHECK_AS(TypeError, c.dtype_of(mask_at) == kBool || is_floating_point(c.dtype_of(mask_at)), c.name(), ": expected a bool or floating point mask, got ", dtype_name(c.dtype_of(mask_at)));
}
void check_dropout(const Args& a, int at) {
  VESTA_CHECK(a.number(at) == 0, a.name(), ": the flash kernel has no dropout, got dropout_p ", a.number(at));
}
void infer_flash(InferCtx& c) {
  check_dropout(c, 3);
  check_qkv(c, 0, 5);
  auto q = c.sizes(0);
  out_heads(c, 0, q, c.sizes(2)[3], c.dtype_of(0));
  c.out(1, {q[0], q[1], q[2]}, stat_type(c.dtype_of(0)), c.tensor(0).device());
}

Tensor unit_rows(const Tensor& t) { return t.stride(3) == 1 || t.size(3) <= 1 ? t : t.contiguous(); }
cpu::HeadStrides strides_of(const Tensor& t) { return {t.stride(0), t.stride(1), t.stride(2)}; }

// The tensors behind AttentionArgs' pointers.
struct Call {
  Tensor q, k, v, mask;
  cpu::AttentionArgs args;
};
Call make_call(const Tensor& q, const Tensor& k, const Tensor& v, bool causal, const Tensor& mask, double scale) {
  Call c{unit_rows(q), unit_rows(k), unit_rows(v), {}, {}};
  auto& a = c.args;
  a.type = cpu::elem_of(q.dtype());
  a.batch = q.size(0), a.heads = q.size(1), a.kv_heads = k.size(1);
  a.q_len = q.size(2), a.k_len = k.size(2), a.dim = q.size(3), a.value_dim = v.size(3);
  // 0 key heads would mean "as many as query heads" to the kernel.
  VESTA_CHECK(a.heads == 0 || a.kv_heads > 0, "scaled_dot_product_attention: expected key heads for ", a.heads, " query heads, got none");
  a.scale = scale;
  a.causal = causal;
  a.q = c.q.data_ptr(), a.k = c.k.data_ptr(), a.v = c.v.data_ptr();
  a.q_strides = strides_of(c.q), a.k_strides = strides_of(c.k), a.v_strides = strides_of(c.v);
  if (mask.defined()) {
    a.mask_kind = mask.dtype() == kBool ? cpu::MaskKind::Bool : cpu::MaskKind::Additive;
    Tensor m = mask.dtype() == kBool ? mask : mask.to(stat_type(q.dtype()));
    c.mask = m.expand({a.batch, a.heads, a.q_len, a.k_len});
    a.mask = c.mask.data_ptr();
    a.mask_batch = c.mask.stride(0), a.mask_head = c.mask.stride(1), a.mask_row = c.mask.stride(2), a.mask_col = c.mask.stride(3);
  }
  return c;
}
void k_flash(const KernelCtx& k) {
  if (k.tensor(0).numel() == 0) return;  // no query
  Call c = make_call(k.tensor(0), k.tensor(1), k.tensor(2), k.flag(4), k.tensor(5), scale_of(k, 6, k.tensor(0).size(3)));
  if (k.out(0).numel() == 0) return;
  c.args.out_strides = strides_of(k.out(0));
  cpu::attention_forward(c.args, k.out(0).data_ptr(), k.out(1).data_ptr());
}
void infer_flash_backward(InferCtx& c) {
  check_dropout(c, 6);
  check_qkv(c, 1, 8);
  auto q = c.sizes(1);
  SymInt rows[] = {q[0], q[1], q[2], c.sizes(3)[3]};
  VESTA_CHECK(c.sizes(0) == ArrayRef<SymInt>(rows) && c.sizes(4) == ArrayRef<SymInt>(rows) && c.sizes(5) == ArrayRef<SymInt>(rows, 3), c.name(),
              ": grad_out, out or logsumexp do not have the forward pass's shapes");
  VESTA_CHECK_AS(TypeError, c.dtype_of(4) == c.dtype_of(1) && c.dtype_of(5) == stat_type(c.dtype_of(1)), c.name(), ": out or logsumexp have another dtype than the forward pass gives");
  for (int j = 0; j < 3; ++j) out_heads(c, j, c.sizes(1 + j), c.sizes(1 + j)[3], c.dtype_of(1));
}
void k_flash_backward(const KernelCtx& k) {
  if (k.tensor(1).numel() == 0) {
    for (int j = 0; j < 3; ++j) cpu::fill_elements(k.out(j), 0);
    return;
  }
  Call c = make_call(k.tensor(1), k.tensor(2), k.tensor(3), k.flag(7), k.tensor(8), scale_of(k, 9, k.tensor(1).size(3)));
  if (k.tensor(1).numel() == 0 || k.tensor(2).numel() == 0 || k.tensor(3).numel() == 0) {  // nothing was attended to
    for (int j = 0; j < 3; ++j) k.out(j).zero_();
    return;
  }
  Tensor dy = unit_rows(k.tensor(0).to(c.q.dtype())), out = unit_rows(k.tensor(4)), lse = k.tensor(5).contiguous();
  c.args.out_strides = strides_of(out);
  cpu::AttentionGrads g;
  g.grad_out = dy.data_ptr(), g.grad_out_strides = strides_of(dy);
  g.out = out.data_ptr();
  g.logsumexp = lse.data_ptr();
  g.dq = k.out(0).data_ptr(), g.dk = k.out(1).data_ptr(), g.dv = k.out(2).data_ptr();
  g.dq_strides = strides_of(k.out(0)), g.dk_strides = strides_of(k.out(1)), g.dv_strides = strides_of(k.out(2));
  cpu::attention_backward(c.args, g);
}

// ---- composed ----
// Key or value heads repeated to the number of query heads.
Tensor repeat_heads(const Tensor& t, int64_t heads) {
  int64_t n = t.dim(), have = t.size(n - 3);
  if (have == heads) return t;
  std::vector<int64_t> sizes = t.sizes().vec();
  sizes.insert(sizes.begin() + (n - 2), heads / have);
  std::vector<int64_t> flat = t.sizes().vec();
  flat[size_t(n - 3)] = heads;
  return t.unsqueeze(n - 2).expand(sizes).reshape(flat);
}
Tensor causal_mask(int64_t queries, int64_t keys) {
  TensorOptions o(kLong);
  return arange(queries, o).unsqueeze(1).ge(arange(keys, o));
}
// Probabilities [..., queries, keys] in the accumulation type; rows that see nothing are 0.
Tensor probabilities(const Tensor& q, const Tensor& k, const Tensor& mask, bool causal, double scale) {
  DType t = stat_type(q.dtype());
  Tensor scores = matmul(q.to(t), k.to(t).transpose(-2, -1)) * scale;
  double inf = std::numeric_limits<double>::infinity();
  if (causal) scores = scores.masked_fill(causal_mask(q.size(-2), k.size(-2)).logical_not(), -inf);
  if (mask.defined()) scores = mask.dtype() == kBool ? scores.masked_fill(mask.logical_not(), -inf) : scores + mask.to(t);
  return _safe_softmax(scores, -1);
}
std::vector<Tensor> composed_backward(const Tensor& dy_in, const Tensor& q, const Tensor& k_in, const Tensor& v_in, const Tensor& mask, bool causal,
                                      double scale) {
  DType t = stat_type(q.dtype());
  int64_t heads = q.size(1);
  Tensor k = repeat_heads(k_in, heads).to(t), v = repeat_heads(v_in, heads).to(t), dy = dy_in.to(t);
  Tensor p = probabilities(q, k, mask, causal, scale);
  Tensor dp = matmul(dy, v.transpose(-2, -1));
  Tensor dscores = p * (dp - (dp * p).sum({-1}, true)), ds = dscores * scale;
  auto fold = [&](const Tensor& d, const Tensor& like) {
    if (d.size(1) == like.size(1)) return d.to(like.dtype());
    return d.reshape({d.size(0), like.size(1), heads / like.size(1), d.size(2), d.size(3)}).sum({2}).to(like.dtype());
  };
  return {matmul(ds, k).to(q.dtype()), fold(matmul(ds.transpose(-2, -1), q.to(t)), k_in), fold(matmul(p.transpose(-2, -1), dy), v_in), dscores};
}

int vjp_flash(const Grad& g) {
  if (!g.dy().defined()) return 0;
  if (g.create_graph() || g.needs(5)) {  // a mask's gradient is that of the whole matrix of scores
    double scale = scale_of(g, 6, g.sizes(0)[3]);
    auto r = composed_backward(g.dy(), g.in(0), g.in(1), g.in(2), g.in(5), g.flag(4), scale);
    return grads(G(0) { return r[0]; }, G(1) { return r[1]; }, G(2) { return r[2]; }, G(5) { return r[3]; });
  }
  std::optional<double> scale;
  if (g.has(6)) scale = g.number(6);
  auto [dq, dk, dv] = _scaled_dot_product_flash_attention_for_cpu_backward(g.dy(), g.in(0), g.in(1), g.in(2), g.out(0), g.out(1), g.number(3), g.flag(4), g.in(5), scale);
  g.set(0, dq);
  g.set(1, dk);
  g.set(2, dv);
  return 0;
}

void check_mask_or_causal(const Args& a, const Tensor& mask, bool causal) {
  VESTA_CHECK(!(mask.defined() && causal), a.name(), ": attn_mask and is_causal exclude each other");
}
Results math(const Tensor& q, const Tensor& k_in, const Tensor& v_in, const Tensor& mask, double dropout_p, bool causal, const Tensor& dropout_mask, double scale,
             bool gqa) {
  Tensor k = gqa ? repeat_heads(k_in, q.size(-3)) : k_in, v = gqa ? repeat_heads(v_in, q.size(-3)) : v_in;
  Tensor p = probabilities(q, k, mask, causal, scale), kept = p;
  if (dropout_p > 0) {
    if (dropout_mask.defined()) kept = p.masked_fill(dropout_mask.logical_not(), 0) / (1 - dropout_p);
    else kept = dropout(p, dropout_p, true);
  }
  return {matmul(kept, v.to(kept.dtype())).to(q.dtype()), p.to(q.dtype())};
}
Results sdpa(const Args& a) {
  const Tensor &q = a.tensor(0), &k = a.tensor(1), &v = a.tensor(2), &mask = a.tensor(3);
  VESTA_CHECK(q.dim() >= 2 && k.dim() >= 2 && v.dim() >= 2, a.name(), ": query, key and value need at least 2 dims");
  double dropout_p = a.number(4);
  bool causal = a.flag(5), gqa = a.flag(7);
  check_mask_or_causal(a, mask, causal);
  VESTA_CHECK(dropout_p >= 0 && dropout_p <= 1, a.name(), ": expected a dropout_p in [0, 1], got ", dropout_p);
  VESTA_CHECK_AS(TypeError, is_floating_point(q.dtype()) && k.dtype() == q.dtype() && v.dtype() == q.dtype(), a.name(), ": query, key and value must have one floating point dtype");
  VESTA_CHECK_AS(TypeError, !mask.defined() || mask.dtype() == kBool || is_floating_point(mask.dtype()), a.name(), ": expected a bool or floating point mask");
  bool same = q.dim() == k.dim() && q.dim() == v.dim() && (q.dim() == 3 || q.dim() == 4);
  for (int64_t d = 0; same && d < q.dim() - 2; ++d) {
    bool heads = d == q.dim() - 3 && gqa && q.dim() == 4;
    same = k.size(d) == v.size(d) && (heads ? k.size(d) > 0 && q.size(d) % k.size(d) == 0 : q.size(d) == k.size(d));
  }
  bool dims = q.size(-1) >= 1 && q.size(-1) <= kMaxHeadDim && v.size(-1) >= 1 && v.size(-1) <= kMaxHeadDim && q.size(-1) == k.size(-1) && k.size(-2) == v.size(-2);
  bool mask_fits = !mask.defined() || (mask.dim() >= 2 && mask.dim() <= q.dim());
  if (same && dims && mask_fits && dropout_p == 0) {
    std::optional<double> scale;
    if (a.has(6)) scale = a.number(6);
    if (q.dim() == 4) return std::get<0>(_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0, causal, mask, scale));
    // Three dims: the batch takes the place of the heads.
    return std::get<0>(_scaled_dot_product_flash_attention_for_cpu(q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0), 0, causal, mask, scale)).squeeze(0);
  }
  Results r = math(q, k, v, mask, dropout_p, causal, Tensor(), scale_of(a, 6, q.size(-1)), gqa);
  return r.items_[0];
}

constexpr OpDef table[] = {
OP("_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor, Tensor)",
  .types = any_types, .infer = infer_flash, .kernels = {{Cpu, k_flash}},
  .save = {in(0), in(1), in(2), in(5), out(0), out(1)}, .vjp = vjp_flash, .non_diff_outputs = 2,
  .shard = {"sdpa"}, .doc = "Attention of [batch, heads, length, dim] without the matrix of scores; also the logsumexp of each query.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { s(s.t({2, 2, 3, 4}), s.t({2, 2, 5, 4}), s.t({2, 2, 5, 4})); s(s.t({1, 4, 3, 2}), s.t({1, 2, 3, 2}), s.t({1, 2, 3, 3}), 0.0, true); s(s.t({1, 1, 3, 2}), s.t({1, 1, 4, 2}), s.t({1, 1, 4, 2}), 0.0, false, s.mask({3, 4}), 0.3); } }),
OP("_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor, Tensor, Tensor)",
  .types = any_types, .infer = infer_flash_backward, .kernels = {{Cpu, k_flash_backward}}, .non_differentiable = true,
  .shard = {"sdpa"}, .doc = "Gradients of the flash kernel in query, key and value.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({1, 2, 3, 4}), s.t({1, 2, 3, 4}), s.t({1, 2, 5, 4}), s.t({1, 2, 5, 4}), s.t({1, 2, 3, 4}), s.make({1, 2, 3}, range(3, 4), stat_type(s.dtype())), 0.0, false); }),
OP("_scaled_dot_product_attention_math(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, Tensor? dropout_mask=None, *, float? scale=None, bool enable_gqa=False) -> (Tensor, Tensor)",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      check_mask_or_causal(a, a.tensor(3), a.flag(5));
      return math(a.tensor(0), a.tensor(1), a.tensor(2), a.tensor(3), a.number(4), a.flag(5), a.tensor(6), scale_of(a, 7, a.tensor(0).size(-1)), a.flag(8)); },
  .shard = {"sdpa"}, .doc = "Attention composed of matmul and softmax; also the probabilities.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) s(s.t({2, 2, 3, 4}), s.t({2, 2, 5, 4}), s.t({2, 2, 5, 4}), std::nullopt, 0.0, true); }),
OP("scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
  .autocast = Autocast::Lower,
  .types = any_types, .decompose = sdpa,
  .shard = {"sdpa"}, .doc = "softmax(query key^T * scale + mask) value; scale defaults to 1 / sqrt(dim). A bool mask is true where a key may be seen; a row that sees nothing gives 0.",
  .samples = [](SampleGen& s) { if (is_floating_point(s.dtype())) { s(s.t({2, 2, 3, 4}), s.t({2, 2, 3, 4}), s.t({2, 2, 3, 4}), std::nullopt, 0.0, true); s(s.t({2, 3, 4}), s.t({2, 5, 4}), s.t({2, 5, 4}), s.t({3, 5})); s(s.t({3, 4}), s.t({5, 4}), s.t({5, 2})); } }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(attention, table)
