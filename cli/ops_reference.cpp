// `vesta ops --reference DIR`: a Markdown page a family (or a group of them), from the blocks: schema, C++ signatures,
// sentence, dtypes, gradient, sharding. The example of an operator is one of its block's samples written as C++, after
// it was run here with the same arguments; tests/docs compiles and runs all of them as they stand in the pages.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include "base/file.h"
#include "commands.h"
#include "core/registry.h"
#include "core/value_text.h"
#include "vesta/error.h"

namespace vesta::cli {
namespace {

// By full name: what tools/opdecl declares for a form.
struct CppSignature {
  const char* name;
  const char* text;
  bool method;
};
constexpr CppSignature kSignatures[] = {
#include "gen/op_signatures.inc"
};

const std::map<std::string_view, const CppSignature*>& signatures() {
  static const auto map = [] {
    std::map<std::string_view, const CppSignature*> m;
    for (auto& s : kSignatures) m[s.name] = &s;
    return m;
  }();
  return map;
}

// Families that share a page: those whose name begins with one of these.
std::string page_of(const std::string& family) {
  for (const char* stem : {"creation", "embedding", "index", "linalg", "loss", "norm", "pool", "random",
                           "reduce", "special", "view"})
    if (family.rfind(stem, 0) == 0) return stem;
  return family;
}

std::string dtypes_text(const OpDef& def) {
  struct Group {
    uint32_t mask;
    const char* name;
  };
  constexpr Group kGroups[] = {{types::kBoolMask, "bool"},
                               {types::kIntMask, "integers"},
                               {types::kFloatMask, "float16, bfloat16, float32, float64"},
                               {types::kComplexMask, "complex"}};
  std::string text;
  auto add = [&](const std::string& what) { text += (text.empty() ? "" : ", ") + what; };
  uint32_t rest = def.types.mask;
  for (auto& g : kGroups)
    if ((rest & g.mask) == g.mask) {
      add(g.name);
      rest &= ~g.mask;
    }
  for (int t = 0; t < kNumDTypes; ++t)
    if (rest >> t & 1) add(std::string(dtype_name(DType(t))));
  switch (def.types.promote) {
    case Promote::None:
      break;
    case Promote::Same:
      text += "; all tensors of one dtype";
      break;
    case Promote::Types:
      text += "; promoted to one";
      break;
    case Promote::Float:
      text += "; bool and integers become the default dtype";
      break;
  }
  switch (def.types.result) {
    case ResultType::Same:
      break;
    case ResultType::Bool:
      text += "; the result is bool";
      break;
    case ResultType::Real:
      text += "; the result is real";
      break;
    case ResultType::Integer:
      text += "; the result is int64";
      break;
  }
  return text;
}

const char* gradient_text(const OpDef& def) {
  if (def.non_differentiable) return "none";
  if (def.vjp) return "its own";
  return def.decompose ? "of the operators it is made of" : "none";
}

// ---- examples ----

// An argument tensor: how C++ makes it, and the same done here.
struct Recipe {
  std::string text;
  std::function<Tensor()> make;
};

std::string sizes_text(const Tensor& t) {
  std::string s = "{";
  for (int64_t n : t.sizes()) s += (s.size() > 1 ? ", " : "") + std::to_string(n);
  return s + "}";
}

std::string dtype_text(DType t) {
  std::string name(dtype_name(t));
  for (const char* prefix : {"bf", "ui"})  // kBFloat16, kUInt8
    if (name.rfind(prefix, 0) == 0) name[1] = char(std::toupper(name[1]));
  name[0] = char(std::toupper(name[0]));
  return "k" + name;
}

Recipe integers(const Tensor& t, int variant) {
  Tensor flat = t.to(kInt64).flatten();
  std::vector<int64_t> v;
  for (int64_t i = 0; i < flat.numel(); ++i) v.push_back(flat.select(0, i).item<int64_t>());
  DType dtype = t.dtype();
  std::string type = dtype == kInt64 ? "" : ", " + dtype_text(dtype);
  auto sizes = t.sizes().vec();
  if (variant == 1 && t.dim() == 1 && std::is_sorted(v.begin(), v.end()))  // offsets
    return {"arange(" + std::to_string(t.numel()) + (type.empty() ? ", kInt64" : type) + ")",
            [=] { return arange(int64_t(v.size()), dtype); }};
  bool same = true, steps = v.size() > 1 && t.dim() == 1;
  for (size_t i = 1; i < v.size(); ++i) {
    same &= v[i] == v[0];
    steps &= v[i] - v[i - 1] == v[1] - v[0] && v[1] != v[0];
  }
  if (same) {
    int64_t value = v.empty() ? 0 : v[0];
    return {"full(" + sizes_text(t) + ", " + std::to_string(value) + ", " + dtype_text(dtype) + ")",
            [=] { return full(sizes, value, dtype); }};
  }
  if (steps) {
    int64_t step = v[1] - v[0], end = v.back() + (step > 0 ? 1 : -1);
    return {"arange(" + std::to_string(v[0]) + ", " + std::to_string(end) + ", " + std::to_string(step) +
                (type.empty() ? ", kInt64" : type) + ")",
            [=, begin = v[0]] { return arange(begin, end, step, dtype); }};
  }
  auto [low, high] = std::minmax_element(v.begin(), v.end());
  return {"randint(" + std::to_string(*low) + ", " + std::to_string(*high + 1) + ", " + sizes_text(t) + ", " +
              dtype_text(dtype) + ")",
          [=, lo = *low, hi = *high + 1] { return randint(lo, hi, sizes, dtype); }};
}

// `variant` > 0: other values, where an operator refuses those of the sample's range.
Recipe recipe(const Tensor& t, int variant) {
  if (!t.defined()) return {"Tensor()", [] { return Tensor(); }};
  DType dtype = t.dtype();
  auto sizes = t.sizes().vec();
  std::string shape = sizes_text(t);
  if (dtype == kBool) return {"rand(" + shape + ").gt(0.5)", [=] { return rand(sizes).gt(0.5); }};
  if (is_integral(dtype)) return integers(t, variant);
  std::string options = dtype == kFloat32 ? "" : ", " + dtype_text(dtype);
  if (is_complex(dtype)) return {"randn(" + shape + options + ")", [=] { return randn(sizes, dtype); }};
  int64_t n = t.dim() >= 2 ? t.size(-1) : 0;
  if (variant == 1 && n && n == t.size(-2)) {  // well-conditioned and positive definite
    if (t.dim() == 2)
      return {"eye(" + std::to_string(n) + options + ").mul(2)", [=] { return eye(n, dtype).mul(2); }};
    return {"eye(" + std::to_string(n) + options + ").mul(2).expand(" + shape + ")",
            [=] { return eye(n, dtype).mul(2).expand(sizes); }};
  }
  if (variant == 2) return {"ones(" + shape + options + ")", [=] { return ones(sizes, dtype); }};
  double low = 0, high = 0;
  if (t.numel()) {
    Tensor wide = t.to(kFloat64);
    low = wide.min().item<double>();
    high = wide.max().item<double>();
  }
  if (t.numel() && low >= 1)
    return {"rand(" + shape + options + ").add(1)", [=] { return rand(sizes, dtype).add(1); }};
  if (t.numel() && low >= 0) return {"rand(" + shape + options + ")", [=] { return rand(sizes, dtype); }};
  if (t.numel() && high <= 0)
    return {"rand(" + shape + options + ").neg()", [=] { return rand(sizes, dtype).neg(); }};
  return {"randn(" + shape + options + ")", [=] { return randn(sizes, dtype); }};
}

std::string number_text(const Scalar& s) {
  switch (s.kind()) {
    case ScalarKind::Bool:
      return s.to<int64_t>() ? "true" : "false";
    case ScalarKind::Int:
      return std::to_string(s.to<int64_t>());
    case ScalarKind::Float: {
      double d = s.to<double>();
      if (std::isinf(d)) return std::string(d < 0 ? "-" : "") + "INFINITY";
      if (std::isnan(d)) return "NAN";
      char text[40];
      std::snprintf(text, sizeof text, "%.15g", d);
      std::string t = text;
      return t.find_first_of(".e") == std::string::npos ? t + ".0" : t;
    }
    case ScalarKind::Complex:
      break;
  }
  auto c = s.to<std::complex<double>>();
  return "std::complex<double>(" + number_text(c.real()) + ", " + number_text(c.imag()) + ")";
}

std::string result_text(const OwnedValue& v) {
  auto tensor = [](const Tensor& t) {
    if (!t.defined()) return std::string("undefined");
    std::string s(dtype_name(t.dtype()));
    std::string sizes = sizes_text(t);
    sizes.front() = '[';
    sizes.back() = ']';
    return s + sizes;
  };
  if (v.is_tensor()) return tensor(v.tensor());
  if (v.kind() == ValueKind::TensorList) {
    std::string s = "{";
    for (auto& t : v.tensors()) s += (s.size() > 1 ? ", " : "") + tensor(t);
    return s + "}";
  }
  return value_text(v.value());
}

class Example {
 public:
  Example(const Op& op, const CppSignature& signature) : op_(op), signature_(signature.text) {}

  // The statements for these arguments; throws where the operator does.
  std::string write(const std::vector<OwnedValue>& sample, int variant) {
    manual_seed(0);  // as tests/docs does before each example
    std::vector<OwnedValue> args = sample;
    const auto& schema = op_.schema.args;
    std::vector<std::string> texts(schema.size());
    std::string lines;
    for (size_t i = 0; i < schema.size() && i < args.size(); ++i) {
      auto& a = schema[i];
      if (args[i].is_tensor()) {
        Recipe r = recipe(args[i].tensor(), variant);
        args[i] = OwnedValue(r.make());
        lines += "Tensor " + a.name + " = " + r.text + ";\n";
        texts[i] = a.name;
      } else if (args[i].kind() == ValueKind::TensorList) {
        std::vector<Tensor> list;
        std::string items;
        for (auto& t : args[i].tensors()) {
          Recipe r = recipe(t, variant);
          list.push_back(r.make());
          items += (items.empty() ? "" : ", ") + r.text;
        }
        args[i] = OwnedValue(std::move(list));
        lines += "std::vector<Tensor> " + a.name + " = {" + items + "};\n";
        texts[i] = a.name;
      } else if (args[i].kind() == ValueKind::Generator) {
        args[i] = OwnedValue();
      }
    }
    std::vector<OwnedValue> results = call_by_name(op_.name, args);
    // Trailing arguments that say what the default says are left out.
    size_t last = args.size();
    while (last > 0 && is_default(last - 1, args[last - 1]) && texts[last - 1].empty()) --last;
    std::string list;
    for (size_t i = 0; i < last; ++i) {
      bool options = schema[i].name == "dtype" && i + 3 < schema.size() && schema[i + 1].name == "layout";
      std::string text = options && args[i].kind() == ValueKind::None ? "{}"
                         : texts[i].empty()                           ? argument(schema[i], args[i])
                                                                      : texts[i];
      list += (list.empty() ? "" : ", ") + text;
      if (options) i += 3;
    }
    std::string comment;
    for (auto& r : results) comment += (comment.empty() ? "" : ", ") + result_text(r);
    return lines + bound() + op_.schema.name + "(" + list + ");" +
           (comment.empty() ? "" : "  // " + comment) + "\n";
  }

 private:
  bool is_default(size_t i, const OwnedValue& v) const {
    auto& a = op_.schema.args[i];
    bool in_options =
        signature_.find("TensorOptions& options = {}") != std::string::npos &&
        (a.name == "dtype" || a.name == "layout" || a.name == "device" || a.name == "pin_memory");
    if (!in_options && signature_.find(" " + a.name + " = ") == std::string::npos) return false;
    Value value = v.value(), other = op_.defaults[i];
    auto number = [](const Value& x) {
      return x.kind == ValueKind::Int || x.kind == ValueKind::Float || x.kind == ValueKind::Bool;
    };
    if (number(value) && number(other)) return value.scalar().to<double>() == other.scalar().to<double>();
    return value.kind == other.kind && value_text(value) == value_text(other);
  }

  // What the call's result is bound to: "Tensor result = ".
  std::string bound() const {
    auto& results = op_.schema.results;
    auto& args = op_.schema.args;
    auto free_name = [&](std::string name) {
      for (auto& a : args)
        if (a.name == name) return name + "_out";
      return name;
    };
    if (results.empty() || results[0].mutated) return "";
    if (results.size() == 1) {
      auto& r = results[0];
      std::string type = r.list ? "std::vector<Tensor> " : r.tensor ? "Tensor " : "auto ";
      return type + free_name("result") + " = ";
    }
    std::string names;
    for (size_t j = 0; j < results.size(); ++j)
      names += (j ? ", " : "") +
               free_name(results[j].name.empty() ? "result" + std::to_string(j) : results[j].name);
    return "auto [" + names + "] = ";
  }

  std::string argument(const SchemaArg& a, const OwnedValue& v) const {
    Value value = v.value();
    auto items = [&](auto* list, auto&& text) {
      std::string s = "{";
      for (uint32_t k = 0; k < value.length; ++k) s += (k ? ", " : "") + text(list[k]);
      return s + "}";
    };
    switch (v.kind()) {
      case ValueKind::None:
        return a.type == ArgType::Tensor ? "Tensor()" : "std::nullopt";
      case ValueKind::String:
        return '"' + v.string() + '"';
      case ValueKind::IntList:
        return "IntArrayRef" +
               items(static_cast<const int64_t*>(value.ptr), [](int64_t n) { return std::to_string(n); });
      case ValueKind::FloatList:
        return "std::vector<double>" +
               items(static_cast<const double*>(value.ptr), [](double d) { return number_text(Scalar(d)); });
      case ValueKind::BoolList:
        return items(static_cast<const bool*>(value.ptr),
                     [](bool b) { return std::string(b ? "true" : "false"); });
      case ValueKind::ScalarList:
        return "std::vector<Scalar>" +
               items(static_cast<const Scalar*>(value.ptr), [](const Scalar& s) { return number_text(s); });
      case ValueKind::DType:
        return dtype_text(DType(value.i));
      case ValueKind::Device:
        return "kCPU";
      case ValueKind::Layout:
        return "kStrided";
      case ValueKind::MemoryFormat: {
        constexpr const char* kNames[] = {"Contiguous", "Preserve", "ChannelsLast", "ChannelsLast3d"};
        return std::string("MemoryFormat::") + kNames[value.i];
      }
      default: {
        std::string text = number_text(v.scalar());
        if (a.list && a.type == ArgType::Int) return "IntArrayRef{" + text + "}";  // one number for all dims
        return a.type == ArgType::Bool && text.size() == 1 ? (text == "0" ? "false" : "true") : text;
      }
    }
  }

  const Op& op_;
  std::string signature_;
};

// Empty where the block has no sample that can be written as C++ without naming numbers.
std::string example(const Op& op) {
  if (!op.def->samples) return "";
  auto signature = signatures().find(op.name);
  if (signature == signatures().end()) return "";
  for (DType t : {kFloat32, kInt64, kInt8, kBool, kComplex64}) {
    if (!op.def->types.accepts(t)) continue;
    SampleGen gen(t, 1);
    op.def->samples(gen);
    auto& samples = gen.samples();
    // Ordinary shapes before empty, 0-dim and large ones.
    auto oddness = [](const Sample& s) {
      int odd = 0;
      auto look = [&](const Tensor& x) {
        if (x.defined()) odd += (x.numel() == 0) * 4 + (x.numel() < 3) + (x.numel() > 256) * 2;
      };
      for (auto& v : s.args) {
        if (v.is_tensor()) look(v.tensor());
        for (auto& x : v.tensors()) look(x);
      }
      return odd;
    };
    std::stable_sort(samples.begin(), samples.end(),
                     [&](auto& a, auto& b) { return oddness(a) < oddness(b); });
    for (int variant = 0; variant < 3; ++variant)
      for (auto& s : samples) {
        try {
          return Example(op, *signature->second).write(s.args, variant);
        } catch (const Error&) {  // the numbers do not suit the operator: other numbers, another sample
        }
      }
  }
  return "";
}

struct Entry {
  const Op* op = nullptr;
  std::vector<const Op*> forms;
};

std::string entry_text(const Entry& e) {
  const OpDef& def = *e.op->def;
  std::string text = "## " + e.op->name + "\n\n";
  if (*def.doc) text += std::string(def.doc) + "\n\n";
  text += "    " + e.op->schema.str() + "\n\n";
  for (const Op* form : e.forms) {
    auto it = signatures().find(form->name);
    if (it == signatures().end()) continue;
    text += "    " + std::string(it->second->text) + (it->second->method ? "  // also a method" : "") + "\n";
  }
  for (const char* module : {"linalg", "special", "fft"})
    if (e.op->schema.name.rfind(std::string(module) + "_", 0) == 0)
      text += "    // also " + std::string(module) +
              "::" + e.op->schema.name.substr(std::string(module).size() + 1) + "\n";
  text += "\ndtypes: " + dtypes_text(def) + " · gradient: " + gradient_text(def);
  if (*def.shard.rule) text += " · sharding: " + std::string(def.shard.rule);
  if (*def.shard.equation) text += " `" + std::string(def.shard.equation) + "`";
  constexpr const char* kAutocast[] = {"", "the 16-bit type", "float32", "the widest type of its arguments"};
  if (def.autocast != Autocast::None) text += " · autocast: " + std::string(kAutocast[int(def.autocast)]);
  if (def.random) text += " · random";
  text += "\n\n";
  std::string code = example(*e.op);
  if (!code.empty()) text += "```cpp\n" + code + "```\n\n";
  return text;
}

}  // namespace

int write_reference(const std::string& dir) {
  std::filesystem::create_directories(dir);
  std::map<std::string, std::map<std::string, Entry>> pages;
  std::map<int, Entry*> by_id;
  for (const Op* op : all_ops())
    if (op->form == OpForm::Functional) {
      Entry& e = pages[page_of(op->family)][op->name];
      e.op = op;
      e.forms.push_back(op);
      by_id[op->id] = &e;
    }
  for (const Op* op : all_ops())
    if (op->form != OpForm::Functional)
      if (auto it = by_id.find(op->functional); it != by_id.end()) it->second->forms.push_back(op);

  const std::string note =
      "Written by `vesta ops --reference docs/reference` from the op blocks; do not edit.\n\n";
  std::string index =
      "# Operators\n\n" + note +
      "Examples are in `namespace vesta` with `<vesta/ops.h>`; each is compiled and run by a test.\n"
      "`_name` are steps of other operators. How an operator is defined: "
      "[adding-an-op.md](../adding-an-op.md).\n\n| page | operators |\n|---|---|\n";
  auto write = [&](const std::string& name, const std::string& text) {
    AtomicFile file(dir + "/" + name + ".md");
    file.write(text);
    file.commit();
  };
  size_t count = 0, with_example = 0;
  for (auto& [page, entries] : pages) {
    std::string text = "# Operators: " + page + "\n\n" + note;
    std::set<std::string> names;
    std::vector<const Entry*> order;  // steps of other operators behind those that programs call
    for (auto& [name, e] : entries) order.push_back(&e);
    std::stable_partition(order.begin(), order.end(), [](const Entry* e) { return e->op->name[0] != '_'; });
    for (const Entry* e : order) {
      std::string body = entry_text(*e);
      with_example += body.find("```cpp") != std::string::npos;
      ++count;
      text += body;
      names.insert(e->op->schema.name);
    }
    while (text.size() > 1 && text[text.size() - 2] == '\n') text.pop_back();
    write(page, text);
    std::string list;
    for (auto& n : names)
      if (n[0] != '_') list += (list.empty() ? "`" : ", `") + n + "`";
    index += "| [" + page + "](" + page + ".md) | " + list + " |\n";
  }
  write("README", index);
  std::printf("%zu operators on %zu pages, %zu with an example\n", count, pages.size(), with_example);
  return 0;
}

}  // namespace vesta::cli
