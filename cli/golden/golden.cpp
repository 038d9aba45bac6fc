// The format of cases: see the README beside the recordings. Values are built anew for each case, since in-place calls
// write them.
#include "golden/golden.h"

#include <vesta/error.h>
#include <vesta/safetensors.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "base/file.h"
#include "core/registry.h"
#include "core/storage.h"
#include "golden/compare.h"
#include "vesta/autograd.h"
#include "vesta/owned_value.h"

namespace vesta::golden {
namespace {

using Json = nlohmann::ordered_json;  // tensors of keyword arguments are numbered as they stand in the file

double json_number(const Json& j) {
  if (j.is_string()) {
    const auto& s = j.get_ref<const std::string&>();
    if (s == "inf") return INFINITY;
    if (s == "-inf") return -INFINITY;
    if (s == "nan") return NAN;
    throw IoError("golden case: \"" + s + "\" is not a number");
  }
  return j.get<double>();
}

// One case's arguments; remembers its tensors in order of appearance.
class CaseBuilder {
 public:
  explicit CaseBuilder(const TensorMap& stored) : stored_(stored) {}

  // Elements of a stored tensor in fresh memory; complex ones are stored as real with a last dim of 2.
  Tensor tensor(const Json& j) const {
    const std::string& name = j.at("t").get_ref<const std::string&>();
    bool complex = j.value("complex", false);
    Tensor base = stored(name, complex);
    if (!j.contains("strides")) return base;
    auto sizes = j.at("sizes").get<std::vector<int64_t>>(),
         strides = j.at("strides").get<std::vector<int64_t>>();
    int64_t offset = j.value("offset", int64_t(0)), last = offset;
    bool empty = false;
    for (size_t d = 0; d < sizes.size(); ++d) {
      empty |= sizes[d] == 0;
      last += (sizes[d] - 1) * strides[d];
    }
    VESTA_CHECK_AS(IoError, sizes.size() == strides.size() && offset >= 0 && (empty || last < base.numel()),
                   "golden case: the view of ", name, " reaches outside of it");
    auto* data = static_cast<char*>(base.data_ptr()) + offset * int64_t(base.element_size());
    return from_blob(
        data, sizes, strides, [base](void*) {}, TensorOptions(base.dtype()));
  }

  Tensor stored(const std::string& name, bool complex) const {
    auto it = stored_.find(name);
    VESTA_CHECK_AS(IoError, it != stored_.end(), "golden case: there is no stored tensor ", name);
    const Tensor& t = it->second;
    DType dtype = t.dtype();
    std::vector<int64_t> sizes = t.sizes().vec();
    if (complex) {
      VESTA_CHECK_AS(IoError, !sizes.empty() && sizes.back() == 2 && (dtype == kFloat32 || dtype == kFloat64),
                     "golden case: ", name, " is marked complex but is ", shape_text(t));
      sizes.pop_back();
      dtype = dtype == kFloat32 ? kComplex64 : kComplex128;
    }
    Tensor copy = empty_cpu(sizes, dtype);
    if (t.nbytes()) std::memcpy(copy.data_ptr(), t.data_ptr(), t.nbytes());
    return copy;
  }

  OwnedValue value(const Json& j, const SchemaArg& arg) {
    if (j.contains("list")) return list(j.at("list"), arg);
    if (j.contains("none")) return {};
    if (j.contains("t")) {
      tensors.push_back(tensor(j));
      return tensors.back();
    }
    if (j.contains("i"))
      return arg.type == ArgType::Bool ? OwnedValue(j["i"].get<int64_t>() != 0)
                                       : OwnedValue(j["i"].get<int64_t>());
    if (j.contains("f")) return json_number(j["f"]);
    if (j.contains("b")) return j["b"].get<bool>();
    if (j.contains("s")) return j["s"].get<std::string>();
    if (j.contains("c")) return Scalar(std::complex<double>(json_number(j["c"][0]), json_number(j["c"][1])));
    if (j.contains("dtype")) {
      const auto& s = j["dtype"].get_ref<const std::string&>();
      DType t = parse_dtype(s.data(), s.size());
      VESTA_CHECK_AS(IoError, t != DType::Undefined, "golden case: unknown dtype ", s);
      return t;
    }
    if (j.contains("memory_format")) {
      const auto& s = j["memory_format"].get_ref<const std::string&>();
      if (s == "contiguous" || s == "contiguous_format") return MemoryFormat::Contiguous;
      if (s == "preserve" || s == "preserve_format") return MemoryFormat::Preserve;
      if (s == "channels_last") return MemoryFormat::ChannelsLast;
      if (s == "channels_last_3d") return MemoryFormat::ChannelsLast3d;
      throw IoError("golden case: unknown memory format " + s);
    }
    if (j.contains("layout")) return Layout::Strided;
    if (j.contains("device")) return Device();
    throw IoError("golden case: unknown argument " + j.dump());
  }

  std::vector<Tensor> tensors;

 private:
  OwnedValue list(const Json& items, const SchemaArg& arg) {
    switch (arg.type) {
      case ArgType::Tensor: {
        std::vector<Tensor> v;
        for (auto& item : items) {
          if (item.contains("none"))
            v.emplace_back();
          else
            v.push_back(tensors.emplace_back(tensor(item)));
        }
        return v;
      }
      case ArgType::Int: {
        std::vector<int64_t> v;
        for (auto& item : items) v.push_back(item.at("i").get<int64_t>());
        return v;
      }
      case ArgType::Float: {
        std::vector<double> v;
        for (auto& item : items)
          v.push_back(item.contains("i") ? item["i"].get<double>() : json_number(item.at("f")));
        return v;
      }
      case ArgType::Bool: {
        std::vector<bool> v;
        for (auto& item : items) v.push_back(item.at("b").get<bool>());
        return v;
      }
      default: {
        std::vector<Scalar> v;
        SchemaArg one = arg;
        one.list = false;
        for (auto& item : items) v.push_back(value(item, one).scalar());
        return v;
      }
    }
  }

  const TensorMap& stored_;
};

// libtorch's numbers of dtypes, by which recordings name them.
int64_t recorded_number(DType t) {
  constexpr int8_t kNumbers[kNumDTypes] = {11, 0,  1,  2,  3,  4,  5,  15, 6,  7,  9,
                                           10, 27, 28, 29, 24, 23, 26, 25, 44, 45, 8};
  return int(t) < kNumDTypes ? kNumbers[int(t)] : -1;
}

std::string scalar_difference(const OwnedValue& got, const Json& want, double rtol, double atol) {
  auto text = [&] { return "wanted " + want.dump() + ", got another value"; };
  double g = 0, w = 0;
  if (want.contains("b")) {
    return got.kind() == ValueKind::Bool && (got.scalar().raw_int() != 0) == want["b"].get<bool>() ? ""
                                                                                                   : text();
  } else if (want.contains("i") && got.kind() == ValueKind::DType) {
    DType t = DType(got.scalar().raw_int());
    return recorded_number(t) == want["i"].get<int64_t>()
               ? ""
               : "wanted " + want.dump() + ", got " + dtype_name(t);
  } else if (want.contains("i")) {
    return got.kind() == ValueKind::Int && got.scalar().raw_int() == want["i"].get<int64_t>() ? "" : text();
  } else if (want.contains("f")) {
    w = json_number(want["f"]);
    if (got.kind() != ValueKind::Float) return text();
    g = got.scalar().to<double>();
    if (std::isnan(w) ? std::isnan(g) : g == w || std::fabs(g - w) <= atol + rtol * std::fabs(w)) return "";
    return "wanted " + want.dump() + ", got " + std::to_string(g);
  } else if (want.contains("s")) {
    return got.kind() == ValueKind::String && got.string() == want["s"].get<std::string>() ? "" : text();
  }
  return text();
}

// One output against its ARG; tensors found are appended to `flat` for the gradients.
std::string output_difference(const OwnedValue& got, const Json& want, const CaseBuilder& build, double rtol,
                              double atol, std::vector<Tensor>& flat) {
  if (got.kind() == ValueKind::TensorList || want.contains("list")) {
    auto& list = got.tensors();
    flat.insert(flat.end(), list.begin(), list.end());
    if (want.contains("skip")) return "";
    if (!want.contains("list")) return "wanted one tensor, got a list";
    auto& items = want["list"];
    if (items.size() != list.size())
      return "wanted " + std::to_string(items.size()) + " tensors, got " + std::to_string(list.size());
    for (size_t k = 0; k < list.size(); ++k) {
      if (items[k].contains("skip")) continue;
      Tensor expected = items[k].contains("none") ? Tensor() : build.tensor(items[k]);
      std::string d = difference(list[k], expected, rtol, atol);
      if (!d.empty()) return "item " + std::to_string(k) + ": " + d;
    }
    return "";
  }
  if (got.is_tensor() || got.kind() == ValueKind::None) flat.push_back(got.tensor());
  if (want.contains("skip")) return "";
  if (want.contains("t")) return difference(got.tensor(), build.tensor(want), rtol, atol);
  if (want.contains("none"))
    return got.kind() == ValueKind::None ? "" : "wanted nothing, got " + shape_text(got.tensor());
  return scalar_difference(got, want, rtol, atol);
}

std::string gradient_difference(const Json& grad, const std::vector<Tensor>& outputs,
                                const CaseBuilder& build, double rtol, double atol) {
  autograd::variable_list roots, seeds, wrt;
  auto& cotangents = grad.at("cotangent");
  if (cotangents.size() > outputs.size()) return "gradients: more cotangents than outputs";
  for (size_t k = 0; k < cotangents.size(); ++k) {
    if (cotangents[k].is_null()) continue;
    if (!outputs[k].defined()) return "gradients: output " + std::to_string(k) + " is undefined";
    if (!outputs[k].requires_grad()) continue;  // a constant of the inputs: contributes nothing
    roots.push_back(outputs[k]);
    seeds.push_back(build.stored(cotangents[k], outputs[k].is_complex()));
  }
  for (auto& i : grad.at("wrt")) wrt.push_back(build.tensors.at(i.get<size_t>()));
  autograd::variable_list got(wrt.size());
  if (!roots.empty()) got = autograd::grad(roots, wrt, seeds, false, false, true);
  auto& grads = grad.at("grads");
  for (size_t k = 0; k < wrt.size(); ++k) {
    std::string d;
    // An undefined gradient means zero, on either side.
    auto zeros = [](const Tensor& like) {
      Tensor zero = empty_cpu(like.sizes(), like.dtype());
      if (zero.nbytes()) std::memset(zero.data_ptr(), 0, zero.nbytes());
      return zero;
    };
    if (grads[k].is_null()) {
      if (got[k].defined()) d = difference(got[k], zeros(got[k]), 0, 0);
    } else {
      Tensor want = build.stored(grads[k], wrt[k].is_complex());
      d = difference(got[k].defined() ? got[k] : zeros(want), want, rtol, atol);
      if (!d.empty() && !got[k].defined()) d = "none came; " + d;
    }
    if (!d.empty()) return "gradient of tensor " + std::to_string(grad["wrt"][k].get<int>()) + ": " + d;
  }
  return "";
}

// Empty where the case passes.
std::string run_case(const Op& op, const Json& c, const TensorMap& stored) {
  CaseBuilder build(stored);
  std::vector<OwnedValue> args;
  auto& given = c.at("args");
  if (given.size() > op.num_args)
    return "the case has " + std::to_string(given.size()) + " arguments, the schema " + op.schema.str();
  for (size_t i = 0; i < given.size(); ++i) args.push_back(build.value(given[i], op.schema.args[i]));
  // Keyword arguments at their place; what lies between takes the defaults (those past `args` are not left out by
  // call_by_name, so they are filled in here).
  std::vector<std::pair<int, OwnedValue>> named;
  int last = int(args.size());
  for (auto& [name, j] : c.at("kwargs").items()) {
    int at = op.schema.index_of(name);
    if (at < 0) return "the schema has no argument " + name + ": " + op.schema.str();
    named.emplace_back(at, build.value(j, op.schema.args[size_t(at)]));
    last = std::max(last, at + 1);
  }
  for (int i = int(args.size()); i < last; ++i) args.push_back(OwnedValue::copy(op.defaults[size_t(i)]));
  for (auto& [at, v] : named) args[size_t(at)] = std::move(v);

  const bool wants_error = c.contains("error"),
             in_place = op.schema.name.ends_with('_') && !op.schema.name.ends_with("__");
  if (c.contains("grad"))
    for (auto& i : c["grad"].at("wrt")) build.tensors.at(i.get<size_t>()).set_requires_grad(true);
  OwnedValue first = in_place && !args.empty() ? args[0] : OwnedValue();
  std::vector<OwnedValue> results;
  try {
    results = call_by_name(op.name, std::move(args));
  } catch (const InternalError& e) {
    return std::string("internal error: ") + e.what();
  } catch (const Error& e) {
    return wants_error ? "" : std::string("threw: ") + e.what();
  } catch (const std::exception& e) {
    return std::string("threw what is no vesta::Error: ") + e.what();
  }
  if (wants_error) return "wanted an error (" + c["error"].get<std::string>() + "), but the call returned";

  double rtol = c.at("tol").at("rtol").get<double>(), atol = c["tol"].at("atol").get<double>();
  auto& out = c.at("out");
  if (in_place) results.assign(1, first);
  if (out.size() != results.size())
    return "wanted " + std::to_string(out.size()) + " outputs, got " + std::to_string(results.size());
  std::vector<Tensor> flat;
  for (size_t k = 0; k < results.size(); ++k) {
    std::string d = output_difference(results[k], out[k], build, rtol, atol, flat);
    if (!d.empty()) return "output " + std::to_string(k) + ": " + d;
  }
  if (!c.contains("grad")) return "";
  try {
    return gradient_difference(c["grad"], flat, build, rtol, atol);
  } catch (const Error& e) {
    return std::string("gradients threw: ") + e.what();
  }
}

}  // namespace

bool matches(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

Exceptions::Exceptions(std::string_view text) {
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    AcceptedDifference d;
    if (!(words >> d.pattern)) continue;
    std::getline(words >> std::ws, d.reason);
    VESTA_CHECK(!d.reason.empty(), "exceptions: ", d.pattern, " has no reason");
    list.push_back(std::move(d));
  }
}

AcceptedDifference* Exceptions::find(std::string_view id) {
  for (auto& d : list)
    if (matches(d.pattern, id)) return &d;
  return nullptr;
}

void check_file(const std::string& path, const CheckOptions& options, Exceptions& exceptions,
                Summary& summary) {
  VESTA_CHECK(path.ends_with(".jsonl"), "check: expected a .jsonl file, got '", path, "'");
  std::istringstream lines(read_all(path));
  const TensorMap stored = load_safetensors(path.substr(0, path.size() - 5) + "safetensors");
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.empty()) continue;
    CaseResult result;
    try {
      const Json c = Json::parse(line);
      result.id = c.at("id").get<std::string>();
      const std::string base = c.at("op").get<std::string>(), overload = c.at("overload").get<std::string>();
      result.op = overload == "default" ? base : base + "." + overload;
      if (!options.op.empty() && options.op != base && options.op != result.op) continue;
      if (options.before) options.before(result.id);
      ++summary.cases;
      if (const Op* op = find_op(result.op)) {
        result.message = run_case(*op, c, stored);
        if (!result.message.empty()) result.outcome = Outcome::Failed;
      } else {
        result.outcome = Outcome::NotRegistered;
      }
    } catch (const nlohmann::json::exception& e) {
      throw IoError(detail::message("check '", path, "', line ", number, ": ", e.what()));
    } catch (const std::out_of_range& e) {
      throw IoError(detail::message("check '", path, "', line ", number, ": ", e.what()));
    }
    if (result.outcome != Outcome::NotRegistered)
      if (auto* accepted = exceptions.find(result.id)) {
        ++(result.outcome == Outcome::Failed ? accepted->failed : accepted->passed);
        if (result.outcome == Outcome::Failed) {
          result.outcome = Outcome::Accepted;
          result.message = accepted->reason + " [" + result.message + "]";
        }
      }
    switch (result.outcome) {
      case Outcome::Passed:
        ++summary.passed;
        break;
      case Outcome::Failed:
        ++summary.failed;
        break;
      case Outcome::Accepted:
        ++summary.accepted;
        break;
      case Outcome::NotRegistered:
        ++summary.not_registered, ++summary.missing_ops[result.op];
        break;
    }
    if (result.outcome != Outcome::NotRegistered) {
      auto& [run, failed] = summary.by_op[result.op];
      ++run;
      failed += result.outcome == Outcome::Failed;
    }
    if (options.after) options.after(result);
  }
}

}  // namespace vesta::golden
