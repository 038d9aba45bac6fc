// Quantiles: sort, then interpolation between the two neighbours of rank q * (n - 1). Compositions, so the gradient goes
// to the elements that were picked.
#include "core/thread_state.h"
#include "ops/infer.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

void check_q(const Args& a, const Tensor& q) {
  VESTA_CHECK(q.dim() <= 1, a.name(), ": expected q with at most 1 dim, got ", q.dim());
  // Values may not be read from meta and traced tensors.
  if (q.is_meta() || !(q.impl()->bits & TensorImpl::kHasData) || thread_state.tracer || q.numel() == 0) return;
  Tensor v = q.detach().to(kDouble);
  VESTA_CHECK(v.min().item<double>() >= 0 && v.max().item<double>() <= 1, a.name(), ": expected q in [0, 1]");
}

Results quantile_of(const Args& a, bool ignore_nan) {
  const Tensor& x = a.tensor(0);
  std::string_view how = a.string(4);
  VESTA_CHECK_AS(TypeError, x.dtype() == kFloat || x.dtype() == kDouble, a.name(), ": expected float32 or float64, got ", dtype_name(x.dtype()));
  VESTA_CHECK(how == "linear" || how == "lower" || how == "higher" || how == "midpoint" || how == "nearest", a.name(),
              ": expected interpolation to be linear, lower, higher, midpoint or nearest, got '", how, "'");
  Tensor q;
  if (a.value(1).kind == ValueKind::Tensor) {
    q = a.tensor(1);
    VESTA_CHECK_AS(TypeError, q.dtype() == x.dtype(), a.name(), ": expected q of ", dtype_name(x.dtype()), ", got ", dtype_name(q.dtype()));
    check_q(a, q);
  } else {
    VESTA_CHECK(a.number(1) >= 0 && a.number(1) <= 1, a.name(), ": expected q in [0, 1], got ", a.number(1));
    q = full({}, a.number(1), x.options());
  }
  const bool keepdim = a.flag(3);
  // The reduced dim last.
  Tensor rows;
  std::vector<int64_t> kept;  // sizes with keepdim
  if (!a.has(2)) {
    rows = x.reshape({-1});
    kept.assign(size_t(x.dim()), 1);
  } else {
    int64_t dim = wrap_dim(a, a.integer(2), x.dim());
    rows = x.dim() ? x.movedim(dim, -1) : x.reshape({1});
    kept = x.sizes().vec();
    if (!kept.empty()) kept[size_t(dim)] = 1;
  }
  VESTA_CHECK(rows.sizes().back() != 0, a.name(), ": expected a dim of size > 0");
  Tensor sorted = std::get<0>(rows.sort(-1)), nan = sorted.isnan(), ranks;
  const Tensor flat_q = q.reshape({-1});
  if (ignore_nan) {
    ranks = flat_q * (nan.logical_not().sum(IntArrayRef{-1}, true) - 1);
    ranks = ranks.masked_fill(ranks < 0, 0);
  } else {
    SymInt last = SymInt(rows.sizes().back()) - 1;
    Tensor top = full({}, last.raw(), x.options());
    ranks = where(nan.any(-1, true), top, flat_q * top);
  }
  if (how == "lower") ranks = ranks.floor();
  else if (how == "higher") ranks = ranks.ceil();
  else if (how == "nearest") ranks = ranks.round();
  Tensor below = ranks.detach().to(kLong), result = sorted.gather(-1, below);
  if (how == "linear" || how == "midpoint") {
    Tensor above = sorted.gather(-1, ranks.detach().ceil().to(kLong));
    result = how == "midpoint" ? result.lerp(above, 0.5) : result.lerp(above, ranks - below);
  }
  // [rest..., q] -> [q?, rest or kept sizes]
  Tensor first = result.movedim(-1, 0);
  std::vector<int64_t> sizes;
  if (q.dim() == 1) sizes.push_back(first.sizes()[0]);
  if (keepdim) sizes.insert(sizes.end(), kept.begin(), kept.end());
  else sizes.insert(sizes.end(), first.sizes().begin() + 1, first.sizes().end());
  return first.reshape(sizes);
}

// Ranks that are no whole numbers, so that no sample sits on a kink.
void tensor_samples(SampleGen& s) {
  if (s.dtype() != kFloat && s.dtype() != kDouble) return;
  s(s.t({7, 5}), linspace(0.1, 0.83, 3).to(s.dtype()), 0);
  s(s.t({7, 5}), linspace(0.1, 0.45, 2).to(s.dtype()), -1, true, "higher");
  s(s.t({7}), full({}, 0.3, TensorOptions(s.dtype())));
}
void number_samples(SampleGen& s) {
  if (s.dtype() != kFloat && s.dtype() != kDouble) return;
  s(s.t({7, 5}), 0.45, 1);
  s(s.t({7, 5}), 0.45, 0, true, "midpoint");
  s(s.t({7, 2}), 0.3, std::nullopt, false, "nearest");
  s(s.t({}), 0.3, std::nullopt, false, "lower");
}
constexpr TypeRule real{types::bit(kFloat32) | types::bit(kFloat64), Promote::None};

constexpr OpDef table[] = {
OP("quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = real, .decompose = [](const Args& a) { return quantile_of(a, false); }, .shard = {"decomp"},
  .doc = "The q-th quantiles of a dim, or of all elements; NaN where there is one.", .samples = tensor_samples),
OP("quantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor",
  .forms = Out, .types = real, .decompose = [](const Args& a) { return quantile_of(a, false); }, .shard = {"decomp"},
  .doc = "The q-th quantile of a dim, or of all elements; NaN where there is one.", .samples = number_samples),
OP("nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor",
  .autocast = Autocast::Float32,
  .forms = Out, .types = real, .decompose = [](const Args& a) { return quantile_of(a, true); }, .shard = {"decomp"},
  .doc = "The q-th quantiles of the elements that are not NaN.", .samples = tensor_samples),
OP("nanquantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor",
  .forms = Out, .types = real, .decompose = [](const Args& a) { return quantile_of(a, true); }, .shard = {"decomp"},
  .doc = "The q-th quantile of the elements that are not NaN.", .samples = number_samples),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(quantile, table)
