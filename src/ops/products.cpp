// Products of several tensors composed of batched matrix products: einsum, tensordot, bilinear, kron and the like.
// Every pair contracts through one bmm after its dims are sorted into batch, left, summed and right ones.
#include <algorithm>

#include "ops/infer.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

// Both operands have the same number of dims, size 1 where a dim is absent. Dims marked in `summed` are summed and stay
// as size 1.
Tensor contract_pair(Tensor left, Tensor right, const std::vector<bool>& summed) {
  int64_t n = left.dim();
  std::vector<int64_t> both, lo, ro, sum;
  int64_t nb = 1, nl = 1, nr = 1, ns = 1;
  std::vector<int64_t> left_only, right_only;
  for (int64_t d = 0; d < n; ++d) {
    bool l = left.size(d) != 1, r = right.size(d) != 1;
    if (summed[size_t(d)]) {
      if (l && r) sum.push_back(d), ns *= left.size(d);
      else {
        if (l) left_only.push_back(d);
        if (r) right_only.push_back(d);
        lo.push_back(d);
      }
    } else if (l && r) {
      both.push_back(d), nb *= left.size(d);
    } else if (l) {
      lo.push_back(d), nl *= left.size(d);
    } else {
      ro.push_back(d), nr *= right.size(d);
    }
  }
  DType type = left.dtype();
  if ((type == kHalf || type == kBFloat16) && !(left_only.empty() && right_only.empty()))  // rounded once, at the end
    left = left.to(kFloat), right = right.to(kFloat);
  if (!left_only.empty()) left = left.sum(left_only, true, left.dtype());
  if (!right_only.empty()) right = right.sum(right_only, true, right.dtype());
  auto order = [](std::initializer_list<const std::vector<int64_t>*> parts) {
    std::vector<int64_t> all;
    for (auto* p : parts) all.insert(all.end(), p->begin(), p->end());
    return all;
  };
  Tensor a = left.permute(order({&both, &lo, &sum, &ro})).reshape({nb, nl, ns});
  Tensor b = right.permute(order({&both, &sum, &ro, &lo})).reshape({nb, ns, nr});
  std::vector<int64_t> result = order({&both, &lo, &ro, &sum}), sizes;
  for (int64_t d : both) sizes.push_back(left.size(d));
  for (int64_t d : lo) sizes.push_back(left.size(d));
  for (int64_t d : ro) sizes.push_back(right.size(d));
  sizes.insert(sizes.end(), sum.size(), 1);
  std::vector<int64_t> back(static_cast<size_t>(n));
  for (size_t k = 0; k < result.size(); ++k) back[size_t(result[k])] = int64_t(k);
  return bmm(a, b).reshape(sizes).permute(back).to(type);
}

constexpr int kEllipsis = 52;  // labels: a-z, A-Z, then the dims behind "..."

int label_of(const Args& a, char c) {
  if (c >= 'a' && c <= 'z') return c - 'a';
  if (c >= 'A' && c <= 'Z') return c - 'A' + 26;
  throw ValueError(vesta::detail::message(a.name(), ": unexpected character '", c, "' in the equation"));
}
// Labels of one term, -1 standing for "...".
std::vector<int> parse_term(const Args& a, std::string_view text) {
  std::vector<int> labels;
  bool dots = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') continue;
    if (text[i] == '.') {
      VESTA_CHECK(!dots && text.substr(i, 3) == "...", a.name(), ": expected one \"...\" per term");
      dots = true;
      labels.push_back(-1);
      i += 2;
    } else {
      labels.push_back(label_of(a, text[i]));
    }
  }
  return labels;
}

Results einsum(const Args& a) {
  std::string_view equation = a.string(0);
  TensorList tensors = a.tensors(1);
  VESTA_CHECK(!tensors.empty(), a.name(), ": expected at least one tensor");
  size_t arrow = equation.find("->");
  std::string_view inputs = equation.substr(0, arrow);
  std::vector<std::vector<int>> terms;
  for (size_t at = 0;;) {
    size_t comma = inputs.find(',', at);
    terms.push_back(parse_term(a, inputs.substr(at, comma == std::string_view::npos ? comma : comma - at)));
    if (comma == std::string_view::npos) break;
    at = comma + 1;
  }
  VESTA_CHECK(terms.size() == tensors.size(), a.name(), ": the equation has ", terms.size(), " terms, there are ", tensors.size(), " tensors");
  // The ellipsis covers as many dims as the term with most of them has; others broadcast.
  int dots = 0, count[kEllipsis] = {};
  for (size_t k = 0; k < terms.size(); ++k) {
    int64_t named = 0;
    bool has_dots = false;
    for (int l : terms[k]) l < 0 ? void(has_dots = true) : void(++named), l >= 0 ? void(++count[l]) : void();
    int64_t rest = tensors[k].dim() - named;
    VESTA_CHECK(has_dots ? rest >= 0 : rest == 0, a.name(), ": term ", k, " names ", named, " dims, the tensor has ", tensors[k].dim());
    dots = std::max(dots, int(rest));
  }
  std::vector<int> output;
  if (arrow != std::string_view::npos) {
    output = parse_term(a, equation.substr(arrow + 2));
  } else {
    output.push_back(-1);
    std::vector<int> once;
    for (int l = 26; l < 52; ++l)
      if (count[l] == 1) once.push_back(l);
    for (int l = 0; l < 26; ++l)
      if (count[l] == 1) once.push_back(l);
    output.insert(output.end(), once.begin(), once.end());
  }
  // Position of each label: output labels first, then the summed ones.
  std::vector<int> position(size_t(kEllipsis + dots), -1);
  int next = 0;
  for (int l : output) {
    if (l < 0) {
      for (int e = 0; e < dots; ++e) position[size_t(kEllipsis + e)] = next++;
      continue;
    }
    VESTA_CHECK(position[size_t(l)] < 0, a.name(), ": an output label appears twice");
    VESTA_CHECK(count[l] > 0, a.name(), ": an output label appears in no term");
    position[size_t(l)] = next++;
  }
  int num_out = next;
  for (auto& t : terms)
    for (int l : t)
      if (l >= 0 && position[size_t(l)] < 0) position[size_t(l)] = next++;
  for (int e = 0; e < dots; ++e)
    if (position[size_t(kEllipsis + e)] < 0) position[size_t(kEllipsis + e)] = next++;
  // Each operand with repeated labels on a diagonal, dims in position order, size 1 where absent.
  std::vector<Tensor> operands;
  std::vector<int64_t> sizes(size_t(next), 1);
  for (size_t k = 0; k < terms.size(); ++k) {
    Tensor t = tensors[k];
    std::vector<int> where;  // position of each dim of t
    int named = 0;
    for (int l : terms[k]) named += l >= 0;
    int own = int(tensors[k].dim()) - named;
    for (int l : terms[k]) {
      if (l < 0) for (int e = 0; e < own; ++e) where.push_back(position[size_t(kEllipsis + dots - own + e)]);
      else where.push_back(position[size_t(l)]);
    }
    for (size_t d = 0; d < where.size(); ++d)
      for (size_t e = d + 1; e < where.size();) {
        if (where[e] != where[d]) { ++e; continue; }
        VESTA_CHECK(t.size(int64_t(d)) == t.size(int64_t(e)), a.name(), ": a repeated label has sizes ", t.size(int64_t(d)), " and ", t.size(int64_t(e)));
        t = t.diagonal(0, int64_t(d), int64_t(e)).movedim(-1, int64_t(d));
        where.erase(where.begin() + int64_t(e));
      }
    std::vector<int64_t> order;
    for (int p = 0; p < next; ++p) {
      auto it = std::find(where.begin(), where.end(), p);
      if (it != where.end()) order.push_back(it - where.begin());
    }
    t = t.permute(order);
    for (int p = 0; p < next; ++p)
      if (std::find(where.begin(), where.end(), p) == where.end()) t = t.unsqueeze(p);
    for (int p = 0; p < next; ++p) {
      int64_t s = t.size(p);
      VESTA_CHECK(s == 1 || sizes[size_t(p)] == 1 || s == sizes[size_t(p)], a.name(), ": a label has sizes ", sizes[size_t(p)], " and ", s);
      if (s != 1) sizes[size_t(p)] = s;
    }
    operands.push_back(t);
  }
  // A summed dim goes as soon as no other operand has it.
  auto summed_now = [&](const Tensor& x, const Tensor& y) {
    std::vector<bool> s(size_t(next), false);
    for (int p = num_out; p < next; ++p) {
      bool later = false;
      for (auto& o : operands) later |= !o.is_same(x) && !o.is_same(y) && o.size(p) != 1;
      s[size_t(p)] = !later;
    }
    return s;
  };
  IntArrayRef path = a.has(2) ? a.ints(2) : IntArrayRef();
  for (size_t step = 0; operands.size() > 1; ++step) {
    size_t i = 0, j = 1;
    if (!path.empty()) {
      VESTA_CHECK(path.size() >= 2 * step + 2, a.name(), ": the path is too short");
      int64_t p = path[2 * step], q = path[2 * step + 1];
      VESTA_CHECK(p != q && p >= 0 && q >= 0 && p < int64_t(operands.size()) && q < int64_t(operands.size()), a.name(), ": invalid path entry ", p, ", ", q);
      i = size_t(std::min(p, q)), j = size_t(std::max(p, q));
    }
    Tensor x = operands[i], y = operands[j];
    operands.erase(operands.begin() + int64_t(j));
    operands.erase(operands.begin() + int64_t(i));
    Tensor r = contract_pair(x, y, summed_now(x, y));
    if (path.empty()) operands.insert(operands.begin(), r);
    else operands.push_back(r);
  }
  Tensor r = operands[0];
  std::vector<int64_t> dims;
  for (int p = num_out; p < next; ++p) dims.push_back(p);
  bool left_over = false;
  for (int64_t d : dims) left_over |= r.size(d) != 1;
  if (dims.empty()) return r;
  if (left_over) return r.sum(dims, false, r.dtype());
  for (size_t k = dims.size(); k-- > 0;) r = r.squeeze(dims[k]);
  return r;
}

Results tensordot(const Args& a) {
  Tensor x = a.tensor(0), y = a.tensor(1);
  IntArrayRef dx = a.ints(2), dy = a.ints(3);
  VESTA_CHECK(dx.size() == dy.size(), a.name(), ": expected as many dims of self as of other");
  std::vector<bool> in_x(size_t(x.dim()), false), in_y(size_t(y.dim()), false);
  std::vector<int64_t> px, py, sizes, sx, sy;
  int64_t k = 1, m = 1, n = 1;
  for (size_t i = 0; i < dx.size(); ++i) {
    int64_t p = wrap_dim(a, dx[i], x.dim()), q = wrap_dim(a, dy[i], y.dim());
    // A size of 1 against another broadcasts: the other side is summed first.
    if (x.size(p) == 1 && y.size(q) != 1) y = y.sum({q}, true, y.dtype());
    else if (y.size(q) == 1 && x.size(p) != 1) x = x.sum({p}, true, x.dtype());
    VESTA_CHECK(x.size(p) == y.size(q), a.name(), ": contracted sizes differ: ", x.size(p), " and ", y.size(q));
    VESTA_CHECK(!in_x[size_t(p)] && !in_y[size_t(q)], a.name(), ": a dim appears more than once");
    in_x[size_t(p)] = in_y[size_t(q)] = true;
    sx.push_back(p), sy.push_back(q);
    k *= x.size(p);
  }
  for (int64_t d = 0; d < x.dim(); ++d)
    if (!in_x[size_t(d)]) px.push_back(d), sizes.push_back(x.size(d)), m *= x.size(d);
  py = sy;
  for (int64_t d = 0; d < y.dim(); ++d)
    if (!in_y[size_t(d)]) py.push_back(d), sizes.push_back(y.size(d)), n *= y.size(d);
  px.insert(px.end(), sx.begin(), sx.end());
  return mm(x.permute(px).reshape({m, k}), y.permute(py).reshape({k, n})).reshape(sizes);
}
Results kron(const Args& a) {
  Tensor x = a.tensor(0), y = a.tensor(1);
  int64_t n = std::max(x.dim(), y.dim());
  while (x.dim() < n) x = x.unsqueeze(0);
  while (y.dim() < n) y = y.unsqueeze(0);
  std::vector<int64_t> sizes;
  for (int64_t d = 0; d < n; ++d) sizes.push_back(x.size(d) * y.size(d));
  for (int64_t d = 0; d < n; ++d) {  // dim d of x pairs with dim d of y
    x = x.unsqueeze(2 * d + 1);
    y = y.unsqueeze(2 * d);
  }
  return (x * y).reshape(sizes);
}
Results bilinear(const Args& a) {
  const Tensor &x = a.tensor(0), &y = a.tensor(1), &w = a.tensor(2), &bias = a.tensor(3);
  VESTA_CHECK(w.dim() == 3 && x.dim() >= 1 && x.dim() == y.dim() && x.size(-1) == w.size(1) && y.size(-1) == w.size(2), a.name(),
              ": expected inputs [..., in1] and [..., in2] and a weight [out, in1, in2]");
  int64_t rows = 1, out = w.size(0), in1 = w.size(1), in2 = w.size(2);
  std::vector<int64_t> sizes;
  for (int64_t d = 0; d + 1 < x.dim(); ++d) {
    VESTA_CHECK(x.size(d) == y.size(d), a.name(), ": the inputs' leading sizes differ");
    rows *= x.size(d);
    sizes.push_back(x.size(d));
  }
  sizes.push_back(out);
  // [rows, in1] x [in1, out * in2], then each row's [out, in2] times its second input.
  Tensor t = mm(x.reshape({rows, in1}), w.transpose(0, 1).reshape({in1, out * in2})).view({rows, out, in2});
  Tensor r = bmm(t, y.reshape({rows, in2, 1})).reshape(sizes);
  return bias.defined() ? r + bias : r;
}
Tensor expand_at(Tensor t, IntArrayRef dims) {
  for (int64_t d : dims) t = t.unsqueeze(d);
  return t;
}

constexpr OpDef table[] = {
OP("einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor",
  .types = any_types, .decompose = einsum, .shard = {"einsum"},
  .doc = "Sums of products by an equation of dim labels, as \"bij,bjk->bik\"; pairs contract from the left, or along path.",
  .samples = [](SampleGen& s) {
      if (s.dtype() == kBool) return;
      s("ij,jk->ik", std::vector<Tensor>{s.t({2, 3}), s.t({3, 4})}); s("ii", std::vector<Tensor>{s.t({3, 3})}); s("...ij,...jk", std::vector<Tensor>{s.t({2, 2, 3}), s.t({3, 2})});
      s("i,j,k->kji", std::vector<Tensor>{s.t({2}), s.t({3}), s.t({2})}); s("bij,bj->b", std::vector<Tensor>{s.t({2, 3, 4}), s.t({2, 4})}); }),
OP("tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",
  .types = any_types, .decompose = tensordot, .shard = {"einsum"}, .doc = "Contracts the given dims of both tensors.",
  .samples = [](SampleGen& s) { if (s.dtype() != kBool) s(s.t({2, 3, 4}), s.t({4, 3, 2}), std::vector<int64_t>{1, 2}, std::vector<int64_t>{1, 0}); }),
OP("inner(Tensor self, Tensor other) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      const Tensor &x = a.tensor(0), &y = a.tensor(1);
      if (x.dim() == 0 || y.dim() == 0) return x * y;
      VESTA_CHECK(x.size(-1) == y.size(-1), a.name(), ": the last sizes differ: ", x.size(-1), " and ", y.size(-1));
      return vesta::tensordot(x, y, {-1}, {-1}); },
  .shard = {"einsum"}, .doc = "Sums of products over the last dims.",
  .samples = [](SampleGen& s) { if (s.dtype() != kBool) { s(s.t({2, 3}), s.t({4, 3})); s(s.t({}), s.t({3})); } }),
OP("ger(Tensor self, Tensor vec2) -> Tensor",
  .forms = Out, .types = any_types, .decompose = [](const Args& a) -> Results { return outer(a.tensor(0), a.tensor(1)); },
  .shard = {"einsum"}, .doc = "outer.", .samples = [](SampleGen& s) { if (s.dtype() != kBool) s(s.t({3}), s.t({4})); }),
OP("kron(Tensor self, Tensor other) -> Tensor",
  .forms = Out, .types = any_types, .decompose = kron, .shard = {"einsum"}, .doc = "Kronecker product.",
  .samples = [](SampleGen& s) { if (s.dtype() != kBool) { s(s.t({2, 3}), s.t({2, 2})); s(s.t({2}), s.t({2, 2})); } }),
OP("chain_matmul(Tensor[] matrices) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      TensorList t = a.tensors(0);
      VESTA_CHECK(!t.empty(), a.name(), ": expected at least one matrix");
      for (auto& m : t) VESTA_CHECK(m.dim() == 2, a.name(), ": expected matrices, got ", m.dim(), " dims");
      Tensor r = t[0];
      for (size_t k = 1; k < t.size(); ++k) r = mm(r, t[k]);
      return r; },
  .shard = {"einsum"}, .doc = "Product of matrices, from the left.",
  .samples = [](SampleGen& s) { if (s.dtype() != kBool) s(std::vector<Tensor>{s.t({2, 3}), s.t({3, 4}), s.t({4, 2})}); }),
OP("linalg_matmul(Tensor self, Tensor other) -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = any_types, .decompose = [](const Args& a) -> Results { return matmul(a.tensor(0), a.tensor(1)); },
  .shard = {"einsum"}, .doc = "matmul.", .samples = [](SampleGen& s) { if (s.dtype() != kBool) s(s.t({2, 3}), s.t({3, 4})); }),
OP("addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
  .autocast = Autocast::Lower,
  .forms = InPlace | Out, .types = same_number,
  .decompose = [](const Args& a) -> Results {
      const Tensor &x = a.tensor(1), &y = a.tensor(2);
      VESTA_CHECK(x.dim() == 3 && y.dim() == 3 && x.size(0) == y.size(0) && x.size(2) == y.size(1), a.name(), ": expected batches [b, m, k] and [b, k, n]");
      // The sum over the batch is one product over batch and k together.
      Tensor left = x.transpose(0, 1).reshape({x.size(1), x.size(0) * x.size(2)}), right = y.reshape({y.size(0) * y.size(1), y.size(2)});
      return addmm(a.tensor(0), left, right, a.scalar(3), a.scalar(4)); },
  .shard = {"einsum"}, .doc = "beta * self + alpha * the sum of the batch's products.",
  .samples = [](SampleGen& s) { s(s.t({3, 5}), s.t({2, 3, 4}), s.t({2, 4, 5})); s(s.t({5}), s.t({2, 3, 4}), s.t({2, 4, 5}), Scalar(2), Scalar(3)); }),
OP("bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",
  .types = any_types, .decompose = bilinear, .shard = {"einsum"}, .doc = "input1 weight_o input2 for every output o, + bias.",
  .samples = [](SampleGen& s) { if (s.dtype() != kBool) { s(s.t({4, 2}), s.t({4, 3}), s.t({5, 2, 3}), s.t({5})); s(s.t({2, 2, 2}), s.t({2, 2, 3}), s.t({1, 2, 3})); } }),
OP("_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, int[] sumdim, int unroll_dim=1) -> Tensor",
  .types = any_types,
  .decompose = [](const Args& a) -> Results {
      // Half types are multiplied and summed in float32, and rounded once.
      DType t = a.tensor(0).dtype(), wide = t == kHalf || t == kBFloat16 ? kFloat : t;
      Tensor p = expand_at(a.tensor(0).to(wide), a.ints(3)) * expand_at(a.tensor(1).to(wide), a.ints(4)) * expand_at(a.tensor(2).to(wide), a.ints(5));
      return (a.ints(6).empty() ? p : p.sum(a.ints(6), false, wide)).to(t); },
  .shard = {"einsum"}, .doc = "Sum over sumdim of the product of three tensors with size-1 dims inserted.",
  .samples = [](SampleGen& s) { if (s.dtype() != kBool) s(s.t({4, 2}), s.t({5, 2, 3}), s.t({4, 3}), std::vector<int64_t>{1, 3}, std::vector<int64_t>{0}, std::vector<int64_t>{1, 2}, std::vector<int64_t>{2, 3}); }),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(products, table)
