// Operators over lists of tensors: each is its base operator on every element, through the same block, so types,
// gradients and errors are the base's. Lists of many small tensors share the thread pool, a few elements a chunk.
#include <algorithm>

#include "base/thread_pool.h"
#include "core/call.h"
#include "ops/infer.h"
#include "vesta/op.h"

namespace vesta {
namespace {

using namespace op_block;

constexpr int64_t kSmall = 16384;      // a tensor below this size runs on one thread anyway
constexpr int64_t kWorthSharing = 65536;  // elements of the list: less is done before the other threads wake up

// The in-place form that the same block registers, right after the functional one; null where it has none.
const Op* in_place_of(const Op& base) {
  if (!(base.def->forms & InPlace)) return nullptr;
  return &op_of(uint16_t(base.id + 1));
}

// Whether the elements of a list may go to other threads: no interpreter watches any argument, and where tensors are
// written, no two arguments share memory, so that the order of the elements does not matter.
bool independent(const Args& a, bool write) {
  if (thread_state.mode != 0 || thread_state.inference_mode) return false;
  std::vector<const Storage*> memory;
  auto plain = [&](const Tensor& t) {
    const TensorImpl* impl = t.impl();
    if (!impl || (impl->bits & thread_state.enabled & TensorImpl::kInterpreters) || (impl->bits & TensorImpl::kView)) return false;
    memory.push_back(impl->storage);
    return true;
  };
  for (int i = 0; i < a.op().num_args; ++i) {
    if (a.value(i).kind == ValueKind::Tensor && !plain(a.tensor(i))) return false;
    if (a.value(i).kind != ValueKind::TensorList) continue;
    for (auto& t : a.tensors(i))
      if (!plain(t)) return false;
  }
  if (!write) return true;
  std::sort(memory.begin(), memory.end());
  return std::adjacent_find(memory.begin(), memory.end()) == memory.end();
}

// Calls body(k) for each tensor of a list; over the pool where it is long and made of small tensors.
template <class Body>
void for_each_tensor(const Args& a, TensorList list, bool write, Body body) {
  int64_t n = int64_t(list.size()), total = 0, largest = 0;
  for (auto& t : list) {
    total += t.numel();
    largest = std::max(largest, t.numel());
  }
  if (largest >= kSmall || total < kWorthSharing || !independent(a, write)) {
    for (int64_t k = 0; k < n; ++k) body(k);
    return;
  }
  const int64_t each = std::max<int64_t>(1, kSmall * n / total);
  parallel_for(0, n, each, [&](int64_t begin, int64_t end) {
    InterpreterGuard plain(TensorImpl::kTrace);  // nothing is recorded on a worker
    for (int64_t k = begin; k < end; ++k) body(k);
  });
}

// Runs `base` on every element: fill(k, values) sets the arguments after the list's own one, which goes to `at`.
// In the in-place form self is written and nothing returned.
template <class Fill>
Results each(const Args& a, OpId base, int list_arg, int at, Fill fill) {
  const Op& functional = op_of(base);
  const bool write = a.op().form == OpForm::InPlace;
  const Op* direct = write ? in_place_of(functional) : &functional;
  TensorList self = a.tensors(list_arg);
  VESTA_CHECK(self.size() > 0, a.name(), ": expected at least one tensor");
  std::vector<Tensor> results(self.size());
  for_each_tensor(a, self, write, [&](int64_t k) {
    Value v[8], out[2];
    for (int i = 0; i < functional.num_args; ++i) v[i] = functional.defaults[size_t(i)];
    v[at] = Value(self[size_t(k)]);
    fill(size_t(k), v);
    call(direct ? *direct : functional, v, out);
    Tensor r = detail::take(out[0]);
    if (!write) results[size_t(k)] = std::move(r);
    else if (!direct) Tensor(self[size_t(k)]).copy_(r);
  });
  if (write) return {};
  return results;
}
template <class Fill>
Results each(const Args& a, OpId base, Fill fill) { return each(a, base, 0, 0, fill); }

void same_length(const Args& a, int i) {
  VESTA_CHECK(a.tensors(i).size() == a.tensors(0).size(), a.name(), ": expected ", a.tensors(0).size(), " tensors in ", a.op().schema.args[size_t(i)].name, ", got ", a.tensors(i).size());
}
ArrayRef<Scalar> numbers(const Args& a, int i) {
  ArrayRef<Scalar> list(static_cast<const Scalar*>(a.value(i).ptr), a.value(i).length);
  VESTA_CHECK(list.size() == a.tensors(0).size(), a.name(), ": expected ", a.tensors(0).size(), " numbers in ", a.op().schema.args[size_t(i)].name, ", got ", list.size());
  return list;
}

template <OpId base>
Results unary(const Args& a) { return each(a, base, [](size_t, Value*) {}); }
// self and a list, perhaps with alpha.
template <OpId base>
Results with_list(const Args& a) {
  same_length(a, 1);
  return each(a, base, [&](size_t k, Value* v) {
    v[1] = Value(a.tensors(1)[k]);
    if (a.op().num_args > 2) v[2] = a.value(2);
  });
}
// self and one number or one tensor, perhaps with alpha.
template <OpId base>
Results with_one(const Args& a) {
  return each(a, base, [&](size_t, Value* v) {
    v[1] = a.value(1);
    if (a.op().num_args > 2) v[2] = a.value(2);
  });
}
template <OpId base>
Results with_numbers(const Args& a) {
  ArrayRef<Scalar> list = numbers(a, 1);
  return each(a, base, [&](size_t k, Value* v) { v[1] = Value(list[k]); });
}
// self, two lists and a factor: one number, a number each, or the elements of a tensor.
template <OpId base>
Results with_two_lists(const Args& a) {
  same_length(a, 1);
  same_length(a, 2);
  ArrayRef<Scalar> factors = a.value(3).kind == ValueKind::ScalarList ? numbers(a, 3) : ArrayRef<Scalar>();
  std::vector<Tensor> scaled;  // by a tensor's elements, which stay part of the graph
  if (a.value(3).kind == ValueKind::Tensor) {
    const Tensor& t = a.tensor(3);
    VESTA_CHECK(t.dim() == 1 && t.size(0) == int64_t(a.tensors(0).size()), a.name(), ": expected scalars with 1 dim of size ", a.tensors(0).size());
    for (size_t k = 0; k < a.tensors(0).size(); ++k) scaled.push_back(a.tensors(1)[k] * t.select(0, int64_t(k)).to(a.tensors(1)[k].dtype()));
  }
  return each(a, base, [&](size_t k, Value* v) {
    v[1] = Value(scaled.empty() ? a.tensors(1)[k] : scaled[k]);
    v[2] = Value(a.tensors(2)[k]);
    if (scaled.empty()) v[3] = factors.size() ? Value(factors[k]) : a.value(3);
  });
}
template <OpId base>
Results lerp_list(const Args& a) {
  same_length(a, 1);
  if (a.value(2).kind == ValueKind::TensorList) same_length(a, 2);
  ArrayRef<Scalar> weights = a.value(2).kind == ValueKind::ScalarList ? numbers(a, 2) : ArrayRef<Scalar>();
  return each(a, base, [&](size_t k, Value* v) {
    v[1] = Value(a.tensors(1)[k]);
    v[2] = a.value(2).kind == ValueKind::TensorList ? Value(a.tensors(2)[k]) : weights.size() ? Value(weights[k]) : a.value(2);
  });
}
Results norms(const Args& a) {
  return each(a, OpId::linalg_vector_norm, [&](size_t, Value* v) {
    v[1] = a.value(1);
    v[4] = a.value(2);
  });
}
Results power_sums(const Args& a) {
  std::vector<Tensor> results;
  for (auto& t : a.tensors(0)) results.push_back(linalg__powsum(t, a.scalar(1), {}, false, a.has(2) ? std::optional<DType>(DType(a.integer(2))) : std::nullopt));
  return results;
}
Results copies(const Args& a) {
  same_length(a, 1);
  std::vector<Tensor> results;
  const bool write = a.op().form == OpForm::InPlace;
  for (size_t k = 0; k < a.tensors(0).size(); ++k) {
    if (write) Tensor(a.tensors(0)[k]).copy_(a.tensors(1)[k]);
    else results.push_back(copy(a.tensors(0)[k], a.tensors(1)[k]));
  }
  return results;
}
Results products(const Args& a) {
  same_length(a, 1);
  std::vector<Tensor> results;
  for (size_t k = 0; k < a.tensors(0).size(); ++k) results.push_back(mm(a.tensors(0)[k], a.tensors(1)[k]));
  return results;
}
Results zero_all(const Args& a) {
  for (auto& t : a.tensors(0)) Tensor(t).zero_();
  return {};
}

constexpr TypeRule reals{types::kIntMask | types::kFloatMask | types::kBoolMask, Promote::None};
constexpr TypeRule numeric{types::kIntMask | types::kFloatMask | types::kComplexMask, Promote::None};
constexpr TypeRule ordered{types::kIntMask | types::kFloatMask, Promote::None};
constexpr TypeRule floating{types::kFloatMask, Promote::None};
constexpr TypeRule fields{types::kFloatMask | types::kComplexMask, Promote::None};

std::vector<Tensor> list_of(SampleGen& s, Range r = {}) { return {s.t({3, 4}, r), s.t({5}, r), s.t({}, r)}; }
template <int lo10, int hi10>
void unary_samples(SampleGen& s) { s(list_of(s, range(lo10 / 10., hi10 / 10.))); }
void list_samples(SampleGen& s) { s(list_of(s), list_of(s, range(1, 3))); }
void number_samples(SampleGen& s) { s(list_of(s), Scalar(2)); }
void tensor_samples(SampleGen& s) { s(list_of(s), s.t({}, range(1, 3))); }
void numbers_samples(SampleGen& s) { s(list_of(s), std::vector<Scalar>{Scalar(2), Scalar(3), Scalar(1)}); }
void two_samples(SampleGen& s) { s(list_of(s), list_of(s), list_of(s, range(1, 3))); s(list_of(s), list_of(s), list_of(s, range(1, 3)), Scalar(2)); }
void two_numbers_samples(SampleGen& s) { s(list_of(s), list_of(s), list_of(s, range(1, 3)), std::vector<Scalar>{Scalar(2), Scalar(3), Scalar(1)}); }
void two_tensor_samples(SampleGen& s) { s(list_of(s), list_of(s), list_of(s, range(1, 3)), s.make({3}, range(1, 3), kDouble)); }

constexpr OpDef table[] = {
OP("_foreach_abs(Tensor[] self) -> Tensor[]",
  .forms = InPlace, .types = any_types, .decompose = unary<OpId::abs>, .shard = {"foreach"},
  .doc = "abs of each tensor.", .samples = unary_samples<-30, 30>),
OP("_foreach_acos(Tensor[] self) -> Tensor[]",
  .forms = InPlace, .types = any_types, .decompose = unary<OpId::acos>, .shard = {"foreach"},
  .doc = "acos of each tensor.", .samples = unary_samples<-9, 9>),
OP("_foreach_asin(Tensor[] self) -> Tensor[]",
  .forms = InPlace, .types = any_types, .decompose = unary<OpId::asin>, .shard = {"foreach"},
  .doc = "asin of each tensor.", .samples = unary_samples<-9, 9>),
OP("_foreach_atan(Tensor[] self) -> Tensor[]",
  .forms = InPlace, .types = any_types, .decompose = unary<OpId::atan>, .shard = {"foreach"},
  .doc = "atan of each tensor.", .samples = unary_samples<-9, 9>),
OP("_foreach_ceil(Tensor[] self) -> Tensor[]",
  .forms = InPlace, .types = ordered, .decompose = unary<OpId::ceil>, .shard = {"foreach"},
  .doc = "ceil of each tensor.", .samples = unary_samples<-30, 30>),
OP("_foreach_cos(Tensor[] self) -> Tensor[]",
  .forms = InPlace, .types = any_types, .decompose = unary<OpId::cos>, .shard = {"foreach"},
  .doc = "cos of each tensor.", .samples = unary_samples<-30, 30>),
OP("_foreach_cosh(Tensor[] self) -> Tensor[]",
  .forms = InPlace, .types = any_types, .decompose = unary<OpId::cosh>, .shard = {"foreach"},
  .doc = "cosh of each tensor.", .samples = unary_samples<-20, 20>),
OP("_foreach_erf(Tensor[] self) -> Tensor[]",
  .forms = InPlace, .types = reals, .decompose = unary<OpId::erf>, .shard = {"foreach"},
  .doc = "erf of each tensor.", .samples = unary_samples<-30, 30>),
OP("_foreach_erfc(Tensor[] self) -> Tensor[]",
  .forms = InPlace, .types = reals, .decompose = unary<OpId::erfc>, .shard = {"foreach"},
  .doc = "erfc of each tensor.", .samples = unary_samples<-20, 20>),
OP("_foreach_exp(Tensor[] self) -> Tensor[]",
  .forms = InPlace, .types = any_types, .decompose = unary<OpId::exp>, .shard = {"foreach"},
  .doc = "exp of each tensor.", .samples = unary_samples<-20, 20>),
OP("_foreach_expm1(Tensor[] self) -> Tensor[]",
  .forms = InPlace, .types = any_types, .decompose = unary<OpId::expm1>, .shard = {"foreach"},
  .doc = "expm1 of each tensor.", .samples = unary_samples<-20, 20>),
OP("_foreach_floor(Tensor[] self) -> Tensor[]",
  .forms = InPlace, .types = ordered, .decompose = unary<OpId::floor>, .shard = {"foreach"},
  .doc = "floor of each tensor.", .samples = unary_samples<-30, 30>),
OP("_foreach_frac(Tensor[] self) -> Tensor[]",
  .forms = InPlace, .types = floating, .decompose = unary<OpId::frac>, .shard = {"foreach"},
  .doc = "frac of each tensor.", .samples = unary_samples<-30, 30>),
OP("_foreach_lgamma(Tensor[] self) -> Tensor[]",
  .forms = InPlace, .types = reals, .decompose = unary<OpId::lgamma>, .shard = {"foreach"},
  .doc = "lgamma of each tensor.", .samples = unary_samples<10, 30>),
OP("_foreach_log(Tensor[] self) -> Tensor[]",
  .forms = InPlace, .types = any_types, .decompose = unary<OpId::log>, .shard = {"foreach"},
  .doc = "log of each tensor.", .samples = unary_samples<10, 30>),
OP("_foreach_log10(Tensor[] self) -> Tensor[]",
  .forms = InPlace, .types = any_types, .decompose = unary<OpId::log10>, .shard = {"foreach"},
  .doc = "log10 of each tensor.", .samples = unary_samples<10, 30>),
OP("_foreach_log1p(Tensor[] self) -> Tensor[]",
  .forms = InPlace, .types = any_types, .decompose = unary<OpId::log1p>, .shard = {"foreach"},
  .doc = "log1p of each tensor.", .samples = unary_samples<10, 30>),
OP("_foreach_log2(Tensor[] self) -> Tensor[]",
  .forms = InPlace, .types = any_types, .decompose = unary<OpId::log2>, .shard = {"foreach"},
  .doc = "log2 of each tensor.", .samples = unary_samples<10, 30>),
OP("_foreach_neg(Tensor[] self) -> Tensor[]",
  .forms = InPlace, .types = numeric, .decompose = unary<OpId::neg>, .shard = {"foreach"},
  .doc = "neg of each tensor.", .samples = unary_samples<-30, 30>),
OP("_foreach_reciprocal(Tensor[] self) -> Tensor[]",
  .forms = InPlace, .types = any_types, .decompose = unary<OpId::reciprocal>, .shard = {"foreach"},
  .doc = "reciprocal of each tensor.", .samples = unary_samples<10, 30>),
OP("_foreach_round(Tensor[] self) -> Tensor[]",
  .forms = InPlace, .types = ordered, .decompose = unary<OpId::round>, .shard = {"foreach"},
  .doc = "round of each tensor.", .samples = unary_samples<-30, 30>),
OP("_foreach_rsqrt(Tensor[] self) -> Tensor[]",
  .forms = InPlace, .types = any_types, .decompose = unary<OpId::rsqrt>, .shard = {"foreach"},
  .doc = "rsqrt of each tensor.", .samples = unary_samples<10, 30>),
OP("_foreach_sigmoid(Tensor[] self) -> Tensor[]",
  .forms = InPlace, .types = any_types, .decompose = unary<OpId::sigmoid>, .shard = {"foreach"},
  .doc = "sigmoid of each tensor.", .samples = unary_samples<-20, 20>),
OP("_foreach_sign(Tensor[] self) -> Tensor[]",
  .forms = InPlace, .types = reals, .decompose = unary<OpId::sign>, .shard = {"foreach"},
  .doc = "sign of each tensor.", .samples = unary_samples<-30, 30>),
OP("_foreach_sin(Tensor[] self) -> Tensor[]",
  .forms = InPlace, .types = any_types, .decompose = unary<OpId::sin>, .shard = {"foreach"},
  .doc = "sin of each tensor.", .samples = unary_samples<-30, 30>),
OP("_foreach_sinh(Tensor[] self) -> Tensor[]",
  .forms = InPlace, .types = any_types, .decompose = unary<OpId::sinh>, .shard = {"foreach"},
  .doc = "sinh of each tensor.", .samples = unary_samples<-20, 20>),
OP("_foreach_sqrt(Tensor[] self) -> Tensor[]",
  .forms = InPlace, .types = any_types, .decompose = unary<OpId::sqrt>, .shard = {"foreach"},
  .doc = "sqrt of each tensor.", .samples = unary_samples<10, 30>),
OP("_foreach_tan(Tensor[] self) -> Tensor[]",
  .forms = InPlace, .types = any_types, .decompose = unary<OpId::tan>, .shard = {"foreach"},
  .doc = "tan of each tensor.", .samples = unary_samples<-10, 10>),
OP("_foreach_tanh(Tensor[] self) -> Tensor[]",
  .forms = InPlace, .types = any_types, .decompose = unary<OpId::tanh>, .shard = {"foreach"},
  .doc = "tanh of each tensor.", .samples = unary_samples<-20, 20>),
OP("_foreach_trunc(Tensor[] self) -> Tensor[]",
  .forms = InPlace, .types = ordered, .decompose = unary<OpId::trunc>, .shard = {"foreach"},
  .doc = "trunc of each tensor.", .samples = unary_samples<-30, 30>),
OP("_foreach_add.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]",
  .forms = InPlace, .types = any_types, .decompose = with_one<OpId::add_Scalar>, .shard = {"foreach"},
  .doc = "add of one number and each tensor.", .samples = number_samples),
OP("_foreach_add.List(Tensor[] self, Tensor[] other, *, Scalar alpha=1) -> Tensor[]",
  .forms = InPlace, .types = any_types, .decompose = with_list<OpId::add_Tensor>, .shard = {"foreach"},
  .doc = "add of each pair, other times alpha.", .samples = list_samples),
OP("_foreach_add.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]",
  .forms = InPlace, .types = any_types, .decompose = with_numbers<OpId::add_Scalar>, .shard = {"foreach"},
  .doc = "add of each tensor and its number.", .samples = numbers_samples),
OP("_foreach_add.Tensor(Tensor[] self, Tensor other, *, Scalar alpha=1) -> Tensor[]",
  .forms = InPlace, .types = any_types, .decompose = with_one<OpId::add_Tensor>, .shard = {"foreach"},
  .doc = "add of one tensor, times alpha, and each tensor.", .samples = tensor_samples),
OP("_foreach_sub.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]",
  .forms = InPlace, .types = numeric, .decompose = with_one<OpId::sub_Scalar>, .shard = {"foreach"},
  .doc = "sub of one number and each tensor.", .samples = number_samples),
OP("_foreach_sub.List(Tensor[] self, Tensor[] other, *, Scalar alpha=1) -> Tensor[]",
  .forms = InPlace, .types = numeric, .decompose = with_list<OpId::sub_Tensor>, .shard = {"foreach"},
  .doc = "sub of each pair, other times alpha.", .samples = list_samples),
OP("_foreach_sub.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]",
  .forms = InPlace, .types = numeric, .decompose = with_numbers<OpId::sub_Scalar>, .shard = {"foreach"},
  .doc = "sub of each tensor and its number.", .samples = numbers_samples),
OP("_foreach_mul.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]",
  .forms = InPlace, .types = any_types, .decompose = with_one<OpId::mul_Scalar>, .shard = {"foreach"},
  .doc = "mul of each tensor and one number.", .samples = number_samples),
OP("_foreach_mul.List(Tensor[] self, Tensor[] other) -> Tensor[]",
  .forms = InPlace, .types = any_types, .decompose = with_list<OpId::mul_Tensor>, .shard = {"foreach"},
  .doc = "mul of each pair.", .samples = list_samples),
OP("_foreach_mul.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]",
  .forms = InPlace, .types = any_types, .decompose = with_numbers<OpId::mul_Scalar>, .shard = {"foreach"},
  .doc = "mul of each tensor and its number.", .samples = numbers_samples),
OP("_foreach_mul.Tensor(Tensor[] self, Tensor other) -> Tensor[]",
  .forms = InPlace, .types = any_types, .decompose = with_one<OpId::mul_Tensor>, .shard = {"foreach"},
  .doc = "mul of each tensor and one tensor.", .samples = tensor_samples),
OP("_foreach_div.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]",
  .forms = InPlace, .types = any_types, .decompose = with_one<OpId::div_Scalar>, .shard = {"foreach"},
  .doc = "div of each tensor and one number.", .samples = number_samples),
OP("_foreach_div.List(Tensor[] self, Tensor[] other) -> Tensor[]",
  .forms = InPlace, .types = any_types, .decompose = with_list<OpId::div_Tensor>, .shard = {"foreach"},
  .doc = "div of each pair.", .samples = list_samples),
OP("_foreach_div.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]",
  .forms = InPlace, .types = any_types, .decompose = with_numbers<OpId::div_Scalar>, .shard = {"foreach"},
  .doc = "div of each tensor and its number.", .samples = numbers_samples),
OP("_foreach_div.Tensor(Tensor[] self, Tensor other) -> Tensor[]",
  .forms = InPlace, .types = any_types, .decompose = with_one<OpId::div_Tensor>, .shard = {"foreach"},
  .doc = "div of each tensor and one tensor.", .samples = tensor_samples),
OP("_foreach_clamp_max.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]",
  .forms = InPlace, .types = ordered, .decompose = with_one<OpId::clamp_max>, .shard = {"foreach"},
  .doc = "clamp_max of each tensor and one number.", .samples = number_samples),
OP("_foreach_clamp_max.List(Tensor[] self, Tensor[] other) -> Tensor[]",
  .forms = InPlace, .types = ordered, .decompose = with_list<OpId::clamp_max_Tensor>, .shard = {"foreach"},
  .doc = "clamp_max of each pair.", .samples = list_samples),
OP("_foreach_clamp_max.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]",
  .forms = InPlace, .types = ordered, .decompose = with_numbers<OpId::clamp_max>, .shard = {"foreach"},
  .doc = "clamp_max of each tensor and its number.", .samples = numbers_samples),
OP("_foreach_clamp_min.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]",
  .forms = InPlace, .types = ordered, .decompose = with_one<OpId::clamp_min>, .shard = {"foreach"},
  .doc = "clamp_min of each tensor and one number.", .samples = number_samples),
OP("_foreach_clamp_min.List(Tensor[] self, Tensor[] other) -> Tensor[]",
  .forms = InPlace, .types = ordered, .decompose = with_list<OpId::clamp_min_Tensor>, .shard = {"foreach"},
  .doc = "clamp_min of each pair.", .samples = list_samples),
OP("_foreach_clamp_min.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]",
  .forms = InPlace, .types = ordered, .decompose = with_numbers<OpId::clamp_min>, .shard = {"foreach"},
  .doc = "clamp_min of each tensor and its number.", .samples = numbers_samples),
OP("_foreach_maximum.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]",
  .forms = InPlace, .types = ordered, .decompose = with_one<OpId::clamp_min>, .shard = {"foreach"},
  .doc = "maximum of each tensor and one number.", .samples = number_samples),
OP("_foreach_maximum.List(Tensor[] self, Tensor[] other) -> Tensor[]",
  .forms = InPlace, .types = ordered, .decompose = with_list<OpId::maximum>, .shard = {"foreach"},
  .doc = "maximum of each pair.", .samples = list_samples),
OP("_foreach_maximum.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]",
  .forms = InPlace, .types = ordered, .decompose = with_numbers<OpId::clamp_min>, .shard = {"foreach"},
  .doc = "maximum of each tensor and its number.", .samples = numbers_samples),
OP("_foreach_minimum.Scalar(Tensor[] self, Scalar scalar) -> Tensor[]",
  .forms = InPlace, .types = ordered, .decompose = with_one<OpId::clamp_max>, .shard = {"foreach"},
  .doc = "minimum of each tensor and one number.", .samples = number_samples),
OP("_foreach_minimum.List(Tensor[] self, Tensor[] other) -> Tensor[]",
  .forms = InPlace, .types = ordered, .decompose = with_list<OpId::minimum>, .shard = {"foreach"},
  .doc = "minimum of each pair.", .samples = list_samples),
OP("_foreach_minimum.ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]",
  .forms = InPlace, .types = ordered, .decompose = with_numbers<OpId::clamp_max>, .shard = {"foreach"},
  .doc = "minimum of each tensor and its number.", .samples = numbers_samples),
OP("_foreach_addcdiv.Scalar(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar value=1) -> Tensor[]",
  .forms = InPlace, .types = fields, .decompose = with_two_lists<OpId::addcdiv>, .shard = {"foreach"},
  .doc = "self + value * tensor1 / tensor2 of each triple.", .samples = two_samples),
OP("_foreach_addcdiv.ScalarList(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar[] scalars) -> Tensor[]",
  .forms = InPlace, .types = fields, .decompose = with_two_lists<OpId::addcdiv>, .shard = {"foreach"},
  .doc = "self + value * tensor1 / tensor2 of each triple, a value each.", .samples = two_numbers_samples),
OP("_foreach_addcdiv.Tensor(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Tensor scalars) -> Tensor[]",
  .forms = InPlace, .types = fields, .decompose = with_two_lists<OpId::addcdiv>, .shard = {"foreach"},
  .doc = "self + value * tensor1 / tensor2 of each triple, the values from a tensor.", .samples = two_tensor_samples),
OP("_foreach_addcmul.Scalar(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar value=1) -> Tensor[]",
  .forms = InPlace, .types = numeric, .decompose = with_two_lists<OpId::addcmul>, .shard = {"foreach"},
  .doc = "self + value * tensor1 * tensor2 of each triple.", .samples = two_samples),
OP("_foreach_addcmul.ScalarList(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar[] scalars) -> Tensor[]",
  .forms = InPlace, .types = numeric, .decompose = with_two_lists<OpId::addcmul>, .shard = {"foreach"},
  .doc = "self + value * tensor1 * tensor2 of each triple, a value each.", .samples = two_numbers_samples),
OP("_foreach_addcmul.Tensor(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Tensor scalars) -> Tensor[]",
  .forms = InPlace, .types = fields, .decompose = with_two_lists<OpId::addcmul>, .shard = {"foreach"},
  .doc = "self + value * tensor1 * tensor2 of each triple, the values from a tensor.", .samples = two_tensor_samples),
OP("_foreach_lerp.List(Tensor[] self, Tensor[] tensors1, Tensor[] weights) -> Tensor[]",
  .forms = InPlace, .types = fields, .decompose = lerp_list<OpId::lerp_Tensor>, .shard = {"foreach"},
  .doc = "lerp of each triple.", .samples = [](SampleGen& s) { s(list_of(s), list_of(s), list_of(s, range(0, 1))); }),
OP("_foreach_lerp.Scalar(Tensor[] self, Tensor[] tensors1, Scalar weight) -> Tensor[]",
  .forms = InPlace, .types = fields, .decompose = lerp_list<OpId::lerp_Scalar>, .shard = {"foreach"},
  .doc = "lerp of each pair with one weight.", .samples = [](SampleGen& s) { s(list_of(s), list_of(s), Scalar(0.25)); }),
OP("_foreach_pow.List(Tensor[] self, Tensor[] exponent) -> Tensor[]",
  .forms = InPlace, .types = ordered, .decompose = with_list<OpId::pow_Tensor_Tensor>, .shard = {"foreach"},
  .doc = "pow of each pair.", .samples = [](SampleGen& s) { s(list_of(s, range(1, 3)), list_of(s, range(1, 3))); }),
OP("_foreach_pow.Scalar(Tensor[] self, Scalar exponent) -> Tensor[]",
  .forms = InPlace, .types = ordered, .decompose = with_one<OpId::pow_Tensor_Scalar>, .shard = {"foreach"},
  .doc = "pow of each tensor with one exponent.", .samples = [](SampleGen& s) { s(list_of(s, range(1, 3)), Scalar(2)); }),
OP("_foreach_pow.ScalarList(Tensor[] self, Scalar[] exponent) -> Tensor[]",
  .forms = InPlace, .types = ordered, .decompose = with_numbers<OpId::pow_Tensor_Scalar>, .shard = {"foreach"},
  .doc = "pow of each tensor with its exponent.", .samples = [](SampleGen& s) { s(list_of(s, range(1, 3)), std::vector<Scalar>{Scalar(2), Scalar(3), Scalar(1)}); }),
OP("_foreach_pow.ScalarAndTensor(Scalar self, Tensor[] exponent) -> Tensor[]",
  .types = ordered, .decompose = [](const Args& a) { return each(a, OpId::pow_Scalar, 1, 1, [&](size_t, Value* v) { v[0] = a.value(0); }); }, .shard = {"foreach"},
  .doc = "One number to the power of each tensor.", .samples = [](SampleGen& s) { s(Scalar(2), list_of(s, range(1, 3))); }),
OP("_foreach_max(Tensor[] self) -> Tensor[]",
  .types = ordered, .decompose = unary<OpId::max>, .shard = {"foreach"},
  .doc = "The largest element of each tensor.", .samples = unary_samples<-30, 30>),
OP("_foreach_norm.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]",
  .types = fields, .decompose = norms, .shard = {"foreach"},
  .doc = "p-norm of each tensor.", .samples = [](SampleGen& s) { s(list_of(s, range(1, 3))); s(list_of(s, range(1, 3)), Scalar(1)); }),
OP("_foreach_powsum.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]",
  .types = fields, .decompose = power_sums, .shard = {"foreach"},
  .doc = "Sum of |x|^ord of each tensor.", .samples = [](SampleGen& s) { s(list_of(s, range(1, 3))); s(list_of(s, range(1, 3)), Scalar(3)); }),
OP("_foreach_copy(Tensor[] self, Tensor[] src, bool non_blocking=False) -> Tensor[]",
  .forms = InPlace, .types = any_types, .decompose = copies, .shard = {"foreach"},
  .doc = "src in the dtype and shape of self, for each pair.", .samples = [](SampleGen& s) { s(list_of(s), list_of(s)); }),
OP("_foreach_mm(Tensor[] self, Tensor[] mat2) -> Tensor[]",
  .types = fields, .decompose = products, .shard = {"foreach"},
  .doc = "Matrix product of each pair.", .samples = [](SampleGen& s) { s(std::vector<Tensor>{s.t({2, 3}), s.t({4, 2})}, std::vector<Tensor>{s.t({3, 2}), s.t({2, 1})}); }),
OP("_foreach_zero_(Tensor(a!)[] self) -> ()",
  .types = any_types, .decompose = zero_all, .shard = {"foreach"},
  .doc = "Writes 0 into every element of each tensor.", .samples = unary_samples<-30, 30>),
};

}  // namespace
}  // namespace vesta

VESTA_KERNEL_FAMILY(foreach, table)
