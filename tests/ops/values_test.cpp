// The generic suite, values: every op of every family on the samples of its block. One test a check and a family; the
// failures name op, dtype, sample and seed.
#include <gtest/gtest.h>
#include <vesta/error.h>

#include "base/thread_pool.h"
#include "ops/op_cases.h"
#include "vesta/ops.h"

namespace vesta {
namespace {

using namespace optest;

class GenericSuite : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Ops, GenericSuite, testing::ValuesIn(families()),
                         [](auto& tested) { return tested.param; });

// Results at another precision, brought to the dtype that is compared.
Arguments converted(const Arguments& results, const Arguments& like) {
  std::vector<Tensor> models = flat(like);
  size_t k = 0;
  return map_tensors(results, [&](const Tensor& t) {
    Tensor model = k < models.size() ? models[k] : Tensor();
    ++k;
    return model.defined() && model.dtype() != t.dtype() ? t.to(model.dtype()) : t;
  });
}

TEST_P(GenericSuite, FloatingResultsAgreeWithFloat64) {
  for_each_case(GetParam(), types::kFloatMask | types::kComplexMask, [](const OpCase& c) {
    if (c.op->def->random || uninitialised(*c.op) || about_layout(*c.op) || c.op->name == "view.dtype" ||
        c.op->name == "view_copy.dtype")
      return;  // the last two read bits
    if (!c.op->def->types.accepts(is_complex(c.dtype) ? kComplex128 : kFloat64)) return;
    Arguments got = run(*c.op, c.args), want = run(*c.op, widened(c.args));
    // Half results are wanted as the rounded float64 results.
    // (Statistics of half inputs may come as float32, from constants of the half type.)
    std::string d = results_differ(got, converted(want, got), [&](DType t) {
      Allowed a = tolerance(*c.op, t), b = tolerance(*c.op, c.dtype);
      return is_integral(t, true) ? a : Allowed{std::max(a.rtol, b.rtol), std::max(a.atol, b.atol)};
    });
    if (!d.empty()) fail(c, "float64 reference: " + d);
  });
}

// Small integers behave as int64 modulo their width; ops that make floats of integers as float64.
TEST_P(GenericSuite, IntegerResultsAgreeWithInt64) {
  for_each_case(GetParam(), types::kIntMask, [](const OpCase& c) {
    if (c.op->def->random || uninitialised(*c.op) || about_layout(*c.op)) return;
    DType wide = c.op->def->types.promote == Promote::Float ? kFloat64 : kInt64;
    if (!c.op->def->types.accepts(wide) || c.dtype == wide) return;
    Arguments wider =
        map_tensors(c.args, [&](const Tensor& t) { return t.dtype() == c.dtype ? t.to(wide) : t; });
    for (auto& v : wider)
      if (v.kind() == ValueKind::DType && DType(v.scalar().raw_int()) == c.dtype) v = OwnedValue(wide);
    Arguments got = run(*c.op, c.args), want = run(*c.op, wider);
    std::string d = results_differ(got, converted(want, got), [&](DType t) { return tolerance(*c.op, t); });
    if (!d.empty()) fail(c, std::string(dtype_name(wide)) + " reference: " + d);
  });
}

// The same for a form that writes a list and returns nothing.
void list_written_in_place(const OpCase& c, const Op& form, const Arguments& functional) {
  const std::vector<Tensor>& want = functional.at(0).tensors();
  std::vector<Tensor> self;
  bool fits = true;
  for (size_t k = 0; k < want.size(); ++k) {
    self.push_back(c.args[0].tensors()[k].clone());
    fits &= want[k].sizes() == self[k].sizes() && can_cast(want[k].dtype(), self[k].dtype());
  }
  Arguments args = c.args;
  args[0] = OwnedValue(self);
  try {
    Arguments got = call_by_name(form.name, reseeded(args));
    if (!got.empty()) fail(c, "in place: a result came back");
  } catch (const Error& e) {
    if (fits) fail(c, std::string("in place: threw ") + e.what());
    return;
  }
  if (!fits) return fail(c, "in place: wanted an error, since a result cannot be cast to its tensor");
  for (size_t k = 0; k < want.size(); ++k) {
    if (self[k]._version() == 0) fail(c, "in place: the version was not bumped");
    if (std::string d = results_differ({self[k]}, {want[k].to(self[k].dtype())}); !d.empty())
      fail(c, "in place: " + d);
  }
}

TEST_P(GenericSuite, InPlaceFormsWriteWhatTheFunctionalFormReturns) {
  for_each_case(GetParam(), types::kAnyMask, [](const OpCase& c) {
    if (!(c.op->def->forms & InPlace)) return;
    const Op* form = find_op(in_place_form(c.op->schema).full_name());
    if (!form) return fail(c, "the in-place form is not registered");
    Arguments functional = run(*c.op, c.args), args = c.args;
    if (c.op->schema.args[0].list) return list_written_in_place(c, *form, functional);
    Tensor want = functional.at(0).tensor(), self = args.at(0).tensor().clone();
    args[0] = OwnedValue(self);
    Tensor before = self.clone();
    bool fits = want.sizes() == self.sizes() && can_cast(want.dtype(), self.dtype());
    uint32_t version = self._version();
    Arguments got;
    try {
      got = call_by_name(form->name, reseeded(args));
    } catch (const Error& e) {
      if (fits)
        fail(c, std::string("in place: threw ") + e.what());
      else if (std::string d = results_differ({self}, {before}); !d.empty())
        fail(c, "in place: self was written before the error: " + d);
      return;
    }
    if (!fits)
      return fail(c,
                  "in place: wanted an error, since the result is another shape or cannot be cast to self");
    if (!got.at(0).tensor().is_same(self)) fail(c, "in place: the result is not self");
    if (self._version() == version) fail(c, "in place: the version was not bumped");
    if (std::string d = results_differ({self}, {want.to(self.dtype())}); !d.empty())
      fail(c, "in place: " + d);
  });
}

TEST_P(GenericSuite, OutFormsWriteWhatTheFunctionalFormReturns) {
  for_each_case(GetParam(), types::kAnyMask, [](const OpCase& c) {
    if (!(c.op->def->forms & Out)) return;
    const Op* form = find_op(out_form(c.op->schema).full_name());
    if (!form) return fail(c, "the out form is not registered");
    Arguments want = run(*c.op, c.args), args = filled(*c.op, c.args);
    std::vector<Tensor> models = flat(want);
    auto check = [&](const char* what, const std::function<Tensor(const Tensor&)>& make) {
      Arguments given = args, outs;
      for (auto& m : models) {
        outs.push_back(OwnedValue(make(m)));
        given.push_back(outs.back());
      }
      try {
        Arguments got = call_by_name(form->name, reseeded(given));
        for (size_t k = 0; k < outs.size(); ++k)
          if (!got.at(k).tensor().is_same(outs[k].tensor()))
            fail(c, std::string(what) + ": the result is not the out tensor");
        std::string d = uninitialised(*c.op) ? shapes_differ(outs, want) : results_differ(outs, want);
        if (!d.empty()) fail(c, std::string(what) + ": " + d);
      } catch (const Error& e) {
        fail(c, std::string(what) + ": threw " + e.what());
      }
    };
    check("out of the right size", [](const Tensor& m) { return empty(m.sizes(), m.options()); });
    check("empty out", [](const Tensor& m) { return empty({0}, m.options()); });
    check("out of another size", [](const Tensor& m) { return empty({3, 1, 2}, m.options()); });
    check("out with gaps", [](const Tensor& m) { return spread(m.clone().zero_()); });
    check("out in reverse layout", [](const Tensor& m) { return reversed_layout(m.clone().zero_()); });
    // A dtype that cannot hold the result.
    if (models.size() == 1 && models[0].is_floating_point()) {
      Arguments given = args;
      given.push_back(OwnedValue(empty(models[0].sizes(), kInt64)));
      try {
        call_by_name(form->name, given);
        fail(c, "out=int64: wanted a TypeError");
      } catch (const TypeError&) {
      }
    }
  });
}

// Ops that say something about the layout itself, or refuse some layouts.
bool layout_matters(const Op& op) {
  auto& n = op.schema.name;
  return n == "as_strided" || n == "as_strided_scatter" || n == "as_strided_copy" || n == "view_as_complex" ||
         op.def->random || about_layout(op);
}

TEST_P(GenericSuite, StridedInputsGiveWhatContiguousOnesGive) {
  for_each_case(GetParam(), types::kAnyMask, [](const OpCase& c) {
    if (layout_matters(*c.op) || flat(c.args).empty()) return;
    Arguments want = run(*c.op, c.args);
    for (bool gaps : {true, false}) {
      Arguments args = map_tensors(c.args, gaps ? spread : reversed_layout), got;
      const char* what = gaps ? "inputs with gaps: " : "inputs in reverse layout: ";
      try {
        got = run(*c.op, args);
      } catch (const ValueError& e) {
        if (!c.op->returns_view && c.op->name != "_unsafe_view")
          fail(c, what + std::string("threw ") + e.what());  // a view may be impossible
        continue;
      }
      // Sums may be taken in another order.
      std::string d = uninitialised(*c.op)
                          ? shapes_differ(got, want)
                          : results_differ(got, want, [&](DType t) { return tolerance(*c.op, t); });
      if (!d.empty()) fail(c, what + d);
    }
  });
}

TEST_P(GenericSuite, InferenceOnMetaTensorsAgreesWithResults) {
  for_each_case(GetParam(), types::kAnyMask, [](const OpCase& c) {
    if (needs_data(c) || about_layout(*c.op)) return;
    Arguments want = run(*c.op, c.args), args = filled(*c.op, map_tensors(c.args, as_meta));
    for (size_t i = 0; i < args.size(); ++i)
      if (c.op->schema.args[i].type == ArgType::Device) args[i] = OwnedValue(Device(DeviceType::Meta));
    Arguments got = call_by_name(c.op->name, reseeded(args));
    if (std::string d = shapes_differ(got, want); !d.empty()) return fail(c, "meta: " + d);
    for (auto& t : flat(got))
      if (t.defined() && !t.is_meta()) fail(c, "meta: a result has data");
  });
}

// Larger than one thread's share: pointwise operands get a leading dim, a lone tensor is repeated along its first.
Arguments enlarged(const OpCase& c) {
  constexpr int64_t kNumel = 100'000;
  std::vector<Tensor> tensors = flat(c.args);
  if (c.op->def->scalar.classes) {
    int64_t most = 0, numel = 1;
    for (auto& t : tensors) most = std::max(most, t.dim()), numel = std::max(numel, t.numel());
    return map_tensors(c.args, [&](const Tensor& t) {
      if (t.dim() < most || t.dim() == 0 || t.numel() == 0) return t;
      std::vector<int64_t> sizes = t.sizes().vec();
      sizes.insert(sizes.begin(), kNumel / numel + 1);
      return t.unsqueeze(0).expand(sizes).contiguous();
    });
  }
  // Not where the result is much larger than the input (diag_embed of 100,000 elements has 10^10).
  if (tensors.size() != 1 || tensors[0].dim() == 0 || tensors[0].numel() < 5) return c.args;
  if (c.op->schema.name.find("pdist") != std::string::npos)
    return c.args;  // pairs of 33,000 rows take minutes
  int64_t result = 0;
  for (auto& t : flat(run(*c.op, c.args))) result += t.defined() ? t.numel() : 0;
  if (result > 2 * tensors[0].numel()) return c.args;
  return map_tensors(c.args, [&](const Tensor& t) {
    std::vector<int64_t> sizes = t.sizes().vec(), flat_sizes = sizes;
    sizes.insert(sizes.begin(), kNumel / t.numel() + 1);
    flat_sizes[0] *= sizes[0];
    return t.unsqueeze(0).expand(sizes).contiguous().view(flat_sizes);
  });
}

TEST_P(GenericSuite, ResultsDoNotDependOnTheNumberOfThreads) {
  const int threads = num_threads();
  for_each_case(GetParam(), types::bit(kFloat32) | types::bit(kBFloat16) | types::bit(kInt32),
                [&](const OpCase& c) {
                  if (uninitialised(*c.op)) return;
                  Arguments args = enlarged(c), results[2];
                  std::string errors[2];
                  for (int n : {1, 2}) {
                    set_num_threads(n);
                    try {
                      results[n - 1] = run(*c.op, args);
                    } catch (const Error& e) {
                      errors[n - 1] = e.what();  // the enlarged shape may not fit the other arguments
                    }
                  }
                  if (errors[0] != errors[1])
                    fail(c, "1 thread: " + errors[0] + "\n    2 threads: " + errors[1]);
                  else if (std::string d = results_differ(results[1], results[0]); !d.empty())
                    fail(c, "2 threads and 1: " + d);
                });
  set_num_threads(threads);
}

TEST_P(GenericSuite, EmptyInputsGiveAResultOrATypedError) {
  for_each_case(GetParam(),
                types::bit(kFloat32) | types::bit(kInt64) | types::bit(kBool) | types::bit(kComplex64),
                [](const OpCase& c) {
                  for (int64_t dim = 0; dim < 2; ++dim) {
                    Arguments args = map_tensors(c.args, [&](const Tensor& t) {
                      if (t.dim() <= dim) return t;
                      std::vector<int64_t> sizes = t.sizes().vec();
                      sizes[size_t(dim)] = 0;
                      return empty(sizes, t.options());
                    });
                    try {
                      Arguments got = run(*c.op, args);
                      if (needs_data(c) || about_layout(*c.op)) continue;
                      Arguments meta = filled(*c.op, map_tensors(args, as_meta));
                      for (size_t i = 0; i < meta.size(); ++i)
                        if (c.op->schema.args[i].type == ArgType::Device)
                          meta[i] = OwnedValue(Device(DeviceType::Meta));
                      if (std::string d = shapes_differ(got, call_by_name(c.op->name, meta)); !d.empty())
                        fail(c, "empty along dim " + std::to_string(dim) + ", meta and result: " + d);
                    } catch (const InternalError& e) {
                      fail(c, std::string("empty: internal error: ") + e.what());
                    } catch (const Error&) {
                    }
                  }
                });
}

TEST_P(GenericSuite, WrongArgumentsThrowTypedErrorsThatNameTheOp) {
  for_each_case(GetParam(), types::bit(kFloat32) | types::bit(kInt64), [](const OpCase& c) {
    if (c.sample > 0) return;
    auto message = [&](Arguments args) -> std::string {
      try {
        call_by_name(c.op->name, std::move(args));
      } catch (const InternalError& e) {
        return std::string("internal: ") + e.what();
      } catch (const Error& e) {
        return e.what();
      }
      return "";
    };
    Arguments too_many = filled(*c.op, c.args);
    too_many.push_back(OwnedValue(1));
    if (message(too_many).find(c.op->name) != 0)
      fail(c, "one argument too many: got '" + message(too_many) + "'");
    for (size_t i = 0; i < c.args.size(); ++i) {
      Arguments wrong = c.args;
      wrong[i] = OwnedValue("text");
      if (c.op->schema.args[i].type == ArgType::String) wrong[i] = OwnedValue(1);
      std::string text = message(wrong);
      if (text.find(c.op->name) != 0 || text.find(c.op->schema.args[i].name) == std::string::npos)
        fail(c, "argument " + c.op->schema.args[i].name + " of a wrong kind: got '" + text + "'");
    }
    if (!c.args.empty() && !c.op->schema.args[0].has_default && !c.op->schema.args[0].optional &&
        message({}).find(c.op->name) != 0)
      fail(c, "no arguments: got '" + message({}) + "'");
  });
}

}  // namespace
}  // namespace vesta
