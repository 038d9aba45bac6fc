// Cases and argument changes of the generic suite.
#include "ops/op_cases.h"

#include <gtest/gtest.h>
#include <vesta/error.h>

#include <algorithm>

#include "core/eager.h"
#include "core/storage.h"
#include "golden/compare.h"
#include "vesta/ops.h"
#include "vesta/random.h"

namespace vesta::optest {
namespace {

constexpr uint64_t kSeed = 17;
constexpr int kMaxFailures = 25;

std::string value_text(const OwnedValue& v) {
  switch (v.kind()) {
    case ValueKind::None:
      return "None";
    case ValueKind::Tensor:
      return golden::shape_text(v.tensor());
    case ValueKind::TensorList: {
      std::string text = "[";
      for (auto& t : v.tensors()) text += (text.size() > 1 ? ", " : "") + golden::shape_text(t);
      return text + "]";
    }
    case ValueKind::IntList: {
      std::string text = "[";
      for (int64_t i : v.ints()) text += (text.size() > 1 ? ", " : "") + std::to_string(i);
      return text + "]";
    }
    case ValueKind::String:
      return '"' + v.string() + '"';
    case ValueKind::DType:
      return dtype_name(DType(v.scalar().raw_int()));
    case ValueKind::Bool:
    case ValueKind::Int:
    case ValueKind::Float:
    case ValueKind::Complex:
      return v.scalar().str();
    default:
      return "...";
  }
}

DType widened(DType t) { return is_floating_point(t) ? kFloat64 : is_complex(t) ? kComplex128 : t; }

std::string pairwise(const Arguments& got, const Arguments& want,
                     const std::function<std::string(const Tensor&, const Tensor&)>& differ) {
  if (got.size() != want.size())
    return "wanted " + std::to_string(want.size()) + " results, got " + std::to_string(got.size());
  for (size_t j = 0; j < got.size(); ++j) {
    if (got[j].kind() != want[j].kind()) return "result " + std::to_string(j) + " is of another kind";
    if (got[j].kind() == ValueKind::TensorList) {
      auto &g = got[j].tensors(), &w = want[j].tensors();
      if (g.size() != w.size())
        return "wanted a list of " + std::to_string(w.size()) + ", got " + std::to_string(g.size());
      for (size_t k = 0; k < g.size(); ++k)
        if (std::string d = differ(g[k], w[k]); !d.empty()) return "item " + std::to_string(k) + ": " + d;
    } else if (got[j].is_tensor()) {
      if (std::string d = differ(got[j].tensor(), want[j].tensor()); !d.empty())
        return "result " + std::to_string(j) + ": " + d;
    } else if (got[j].kind() != ValueKind::None && !got[j].scalar().equal(want[j].scalar())) {
      return "result " + std::to_string(j) + ": wanted " + want[j].scalar().str() + ", got " +
             got[j].scalar().str();
    }
  }
  return "";
}

}  // namespace

std::vector<std::string> families() {
  std::vector<std::string> names;
  for (const Op* op : all_ops())
    if (std::find(names.begin(), names.end(), op->family) == names.end() &&
        std::string_view(op->family) != "custom")
      names.push_back(op->family);
  return names;
}

std::string OpCase::str() const {
  std::string text =
      detail::message(op->name, ", ", dtype_name(dtype), ", sample ", sample, ", seed ", seed, ": (");
  for (size_t i = 0; i < args.size(); ++i) text += (i ? ", " : "") + value_text(args[i]);
  return text + ")";
}

void fail(const OpCase& c, const std::string& what) { ADD_FAILURE() << c.str() << "\n    " << what; }

void for_each_case(const std::string& family, uint32_t mask, const std::function<void(const OpCase&)>& body) {
  int failures = 0;
  auto count = [] {
    return testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
  };
  for (const Op* op : all_ops()) {
    if (family != op->family || op->form != OpForm::Functional || !op->def->samples) continue;
    for (int t = 0; t < kNumDTypes; ++t) {
      if (!op->def->types.accepts(DType(t)) || !(mask >> t & 1)) continue;
      OpCase c{op, DType(t), 0, kSeed + uint64_t(t), {}};
      std::vector<Sample> samples;
      try {
        SampleGen gen(c.dtype, c.seed);
        op->def->samples(gen);
        samples = std::move(gen.samples());
      } catch (const std::exception& e) {
        fail(c, std::string("the samples threw: ") + e.what());
        ++failures;
        continue;
      }
      for (auto& s : samples) {
        c.args = s.args;
        int before = count();
        try {
          body(c);
        } catch (const std::exception& e) {
          fail(c, std::string("threw: ") + e.what());
        }
        failures += count() > before;
        ++c.sample;
        if (failures >= kMaxFailures) {
          ADD_FAILURE() << family << ": stopped after " << failures << " failed cases";
          return;
        }
      }
    }
  }
}

Arguments reseeded(const Arguments& args) {
  manual_seed(7);
  Arguments own = args;
  for (auto& v : own)
    if (v.kind() == ValueKind::Generator) v = OwnedValue(Generator(uint64_t{7}));
  return own;
}

Arguments run(const Op& op, const Arguments& args) {
  Arguments own = reseeded(args);
  for (size_t i = 0; i < own.size(); ++i)
    if (op.schema.args[i].mutated)
      own[i] = map_tensors({own[i]}, [](const Tensor& t) { return t.clone(); })[0];
  return call_by_name(op.name, own);
}

std::vector<Tensor> flat(const Arguments& values) {
  std::vector<Tensor> list;
  for (auto& v : values) {
    if (v.is_tensor()) list.push_back(v.tensor());
    if (v.kind() == ValueKind::TensorList) list.insert(list.end(), v.tensors().begin(), v.tensors().end());
  }
  return list;
}

Arguments map_tensors(const Arguments& args, const std::function<Tensor(const Tensor&)>& map) {
  Arguments result = args;
  for (auto& v : result) {
    if (v.is_tensor())
      v = OwnedValue(map(v.tensor()));
    else if (v.kind() == ValueKind::TensorList) {
      std::vector<Tensor> list = v.tensors();
      for (auto& t : list)
        if (t.defined()) t = map(t);
      v = OwnedValue(std::move(list));
    }
  }
  return result;
}

std::vector<size_t> differentiable_positions(const Arguments& args) {
  std::vector<size_t> positions;
  size_t k = 0;
  map_tensors(args, [&](const Tensor& t) {
    if (t.is_floating_point() || t.is_complex()) positions.push_back(k);
    ++k;
    return t;
  });
  return positions;
}

Arguments widened(const Arguments& args) {
  Arguments result = map_tensors(args, [](const Tensor& t) { return t.to(widened(t.dtype())); });
  for (auto& v : result)
    if (v.kind() == ValueKind::DType) v = OwnedValue(widened(DType(v.scalar().raw_int())));
  return result;
}

Arguments filled(const Op& op, const Arguments& args) {
  Arguments result = args;
  for (size_t i = args.size(); i < op.num_args; ++i) result.push_back(OwnedValue::copy(op.defaults[i]));
  return result;
}

Tensor spread(const Tensor& t) {
  int64_t extent = 2;
  std::vector<int64_t> strides(size_t(t.dim()));
  for (size_t d = strides.size(); d-- > 0;) {
    strides[d] = extent;
    extent *= std::max<int64_t>(1, t.sizes()[d]);
  }
  Tensor base = empty_cpu({extent + 1}, t.dtype());
  auto* data = static_cast<char*>(base.data_ptr()) + t.element_size();
  Tensor result = from_blob(
      data, t.sizes(), strides, [base](void*) {}, TensorOptions(t.dtype()));
  result.copy_(t);
  return result;
}

Tensor reversed_layout(const Tensor& t) {
  int64_t extent = 1;
  std::vector<int64_t> strides(size_t(t.dim()));
  for (size_t d = 0; d < strides.size(); ++d) {
    strides[d] = extent;
    extent *= std::max<int64_t>(1, t.sizes()[d]);
  }
  Tensor base = empty_cpu({extent}, t.dtype());
  Tensor result = from_blob(
      base.data_ptr(), t.sizes(), strides, [base](void*) {}, TensorOptions(t.dtype()));
  result.copy_(t);
  return result;
}

Tensor as_meta(const Tensor& t) {
  return empty(t.sizes(), TensorOptions(t.dtype()).device(Device(DeviceType::Meta)));
}

bool needs_data(const OpCase& c) {
  if (c.op->def->dynamic_out) return true;
  // Compositions over nonzero and masked_select, and a number read from a tensor.
  static const char* const kNames[] = {"argwhere",
                                       "nonzero_numpy",
                                       "masked_select_backward",
                                       "masked_scatter",
                                       "masked_scatter_backward",
                                       "index_fill.int_Tensor",
                                       "repeat_interleave.self_Tensor",
                                       "repeat_interleave.Tensor",
                                       "narrow.Tensor",
                                       "where",
                                       "tensor_split.tensor_indices_or_sections",
                                       "allclose",
                                       "equal",
                                       "is_same_size",
                                       "one_hot",
                                       "ctc_loss.Tensor",
                                       "embedding_renorm_",
                                       "is_nonzero",
                                       "item",
                                       "_local_scalar_dense",
                                       "_assert_async",
                                       "_assert_async.msg",
                                       "_functional_assert_async.msg",
                                       "randint_like.Tensor",
                                       "lstm.data",
                                       "gru.data",
                                       "rnn_tanh.data",
                                       "rnn_relu.data",
                                       "_pack_padded_sequence",
                                       "_pad_packed_sequence",
                                       "_jagged_to_padded_dense_forward",
                                       "_padded_dense_to_jagged_forward"};
  for (auto* name : kNames)
    if (c.op->name == name) return true;
  if (c.op->name == "is_set_to" || std::string_view(c.op->family) == "reshape_in_place" ||
      std::string_view(c.op->family) == "histogram")
    return true;
  // Windows are computed on the host, element by element.
  if (c.op->schema.name.find("_window") != std::string::npos) return true;
  // Bounds read from tensors: linspace.Tensor_Scalar and the like.
  if (c.op->schema.name.find("space") != std::string::npos &&
      c.op->schema.overload.find("Tensor") != std::string::npos)
    return true;
  for (auto& t : flat(c.args))
    if (t.defined() && t.dtype() == kBool && c.op->schema.name.find("index") != std::string::npos)
      return true;
  return false;
}

bool about_layout(const Op& op) {
  std::string_view family = op.family;
  return family == "metadata" || family == "reshape_in_place";
}

bool uninitialised(const Op& op) {
  auto& n = op.schema.name;
  return n == "empty" || n == "empty_like" || n == "empty_strided" || n == "empty_permuted" ||
         n == "new_empty" || n == "new_empty_strided";
}

Allowed tolerance(const Op& op, DType t) {
  Allowed a{0, 0};
  switch (t) {
    case DType::Float16:
      a = {4e-3, 4e-3};
      break;
    case DType::BFloat16:
      a = {1.6e-2, 2e-2};
      break;
    case DType::Float32:
    case DType::Complex64:
      a = {5e-6, 1e-5};
      break;
    case DType::Float64:
    case DType::Complex128:
      a = {1e-10, 1e-10};
      break;
    default:
      return a;
  }
  return {std::max(a.rtol, op.def->tol.rtol), std::max(a.atol, op.def->tol.atol)};
}

std::string results_differ(const Arguments& got, const Arguments& want,
                           const std::function<Allowed(DType)>& allowed) {
  return pairwise(got, want, [&](const Tensor& g, const Tensor& w) {
    Allowed a = g.defined() ? allowed(g.dtype()) : Allowed{0, 0};
    return golden::difference(g, w, a.rtol, a.atol);
  });
}
std::string results_differ(const Arguments& got, const Arguments& want) {
  return results_differ(got, want, [](DType) { return Allowed{0, 0}; });
}
std::string shapes_differ(const Arguments& got, const Arguments& want) {
  return pairwise(got, want, [](const Tensor& g, const Tensor& w) {
    std::string a = golden::shape_text(g), b = golden::shape_text(w);
    return a == b ? "" : "wanted " + b + ", got " + a;
  });
}

}  // namespace vesta::optest
