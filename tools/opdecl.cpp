// Reads the op blocks' schemas out of src/**/*.cpp and writes what C++ needs to call them: the opcode enum, function
// and method declarations, and two-line forwards. Declarations only, never logic. It understands one literal grammar:
//   OP("schema" "continued", ... .forms = InPlace | Out ...)   and   VESTA_FAMILY(name, table) at the end of a file.
// A registry test compares what was compiled with what was read here. Usage: opdecl OUT_DIR FILE...
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

#include "core/schema.h"
#include "vesta/error.h"

namespace vesta {
namespace {

enum class Form { Functional, InPlace, Out };

struct Decl {
  Schema schema;
  Form form;
  std::set<std::string> exact_bools;  // parameters that take bools only, see find_exact_bools
};
struct Family {
  std::string name;
  std::vector<Decl> decls;
};

// Methods that tensor.h writes by hand.
const std::set<std::string> kHandWritten = {
    "size",           "stride",      "item",         "is_complex",   "is_floating_point",
    "is_signed",      "is_conj",     "is_neg",       "is_inference", "to",
    "data",           "set_data",    "is_leaf",      "output_nr",    "_version",
    "requires_grad_", "retain_grad", "retains_grad", "dim",          "numel",
    "is_same_size_",  "index",       "sym_size",     "sym_numel"};

// Methods whose self is not the first argument.
const std::set<std::string> kSelfNotFirst = {"where", "polygamma"};

// Functions that dtype.h and tensor.h write by hand.
const std::set<std::string> kHandWrittenFunctions = {"promote_types", "can_cast", "result_type"};

// Arguments whose default exists in schemas only: as C++ defaults they would make calls like t.var() and t.any()
// ambiguous. libtorch leaves out the same ones.
const std::set<std::string> kNoCppDefault = {"arange.start_step step",
                                             "range.step step",
                                             "any.dims dim",
                                             "all.dims dim",
                                             "var unbiased",
                                             "var.dim unbiased",
                                             "std unbiased",
                                             "std.dim unbiased",
                                             "var_mean unbiased",
                                             "var_mean.dim unbiased",
                                             "std_mean unbiased",
                                             "std_mean.dim unbiased",
                                             "conv1d.padding bias",
                                             "conv1d.padding stride",
                                             "conv1d.padding padding",
                                             "conv2d.padding bias",
                                             "conv2d.padding stride",
                                             "conv2d.padding padding",
                                             "conv3d.padding bias",
                                             "conv3d.padding stride",
                                             "conv3d.padding padding",
                                             "linalg_pinv.atol_rtol_tensor atol",
                                             "linalg_pinv.atol_rtol_tensor rtol",
                                             "linalg_matrix_rank.atol_rtol_tensor atol",
                                             "linalg_matrix_rank.atol_rtol_tensor rtol",
                                             "stft.center hop_length",
                                             "stft.center win_length",
                                             "stft.center window",
                                             "stft.center center",
                                             "stft.center pad_mode"};

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  VESTA_CHECK_AS(IoError, in, "opdecl: cannot read ", path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The string literal(s) at `at`, joined; moves `at` past them.
std::string literals(const std::string& text, size_t& at) {
  std::string out;
  for (;;) {
    while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at]))) ++at;
    if (at >= text.size() || text[at] != '"') return out;
    for (++at; text[at] != '"'; ++at) {
      if (text[at] == '\\') ++at;
      out += text[at];
    }
    ++at;
  }
}

// Blanks comments, keeping line structure, so that a commented OP is not read.
std::string without_comments(const std::string& text) {
  std::string out = text;
  bool in_string = false;
  for (size_t i = 0; i + 1 < out.size(); ++i) {
    if (in_string) {
      if (out[i] == '\\')
        ++i;
      else if (out[i] == '"')
        in_string = false;
    } else if (out[i] == '"') {
      in_string = true;
    } else if (out[i] == '\'' && out[i + 1] != 0) {
      if (i + 2 < out.size() && (out[i + 2] == '\'' || out[i + 1] == '\\')) i += 2;
    } else if (out[i] == '/' && out[i + 1] == '/') {
      while (i < out.size() && out[i] != '\n') out[i++] = ' ';
    }
  }
  return out;
}

Family read_family(const std::string& path) {
  std::string text = without_comments(read_file(path));
  Family f;
  for (const char* macro : {"\nVESTA_FAMILY(", "\nVESTA_KERNEL_FAMILY("}) {
    size_t at = text.find(macro);
    if (at == std::string::npos) continue;
    at += std::string(macro).size();
    f.name = text.substr(at, text.find(',', at) - at);
  }
  if (f.name.empty()) return f;
  std::vector<size_t> starts;
  for (size_t at = text.find("OP(\""); at != std::string::npos; at = text.find("OP(\"", at + 1))
    if (at == 0 || !(std::isalnum(static_cast<unsigned char>(text[at - 1])) || text[at - 1] == '_'))
      starts.push_back(at);
  for (size_t k = 0; k < starts.size(); ++k) {
    size_t at = starts[k] + 3;
    Schema s = parse_schema(literals(text, at));
    size_t end = k + 1 < starts.size() ? starts[k + 1] : text.size();
    std::string block = text.substr(at, end - at);
    size_t forms = block.find(".forms");
    std::string list = forms == std::string::npos ? "" : block.substr(forms, block.find(',', forms) - forms);
    f.decls.push_back({s, Form::Functional, {}});
    if (list.find("InPlace") != std::string::npos) f.decls.push_back({in_place_form(s), Form::InPlace, {}});
    if (list.find("Out") != std::string::npos) f.decls.push_back({out_form(s), Form::Out, {}});
  }
  return f;
}

std::string cpp_type(const SchemaArg& a) {
  auto opt = [&](std::string t) { return a.optional ? "std::optional<" + t + ">" : t; };
  if (a.list) switch (a.type) {
      case ArgType::Tensor:
        return "TensorList";
      case ArgType::Int:
        return a.optional ? "OptionalIntArrayRef" : "IntArrayRef";
      case ArgType::Float:
        return opt("ArrayRef<double>");
      case ArgType::Bool:
        return opt("ArrayRef<bool>");
      case ArgType::Scalar:
        return opt("ArrayRef<Scalar>");
      default:
        throw ValueError("opdecl: no C++ type for list argument " + a.name);
    }
  switch (a.type) {
    case ArgType::Tensor:
      return "const Tensor&";
    case ArgType::Scalar:
      return a.optional ? "const std::optional<Scalar>&" : "const Scalar&";
    case ArgType::Int:
      return opt("int64_t");
    case ArgType::Float:
      return opt("double");
    case ArgType::Bool:
      return opt("bool");
    case ArgType::String:
      return opt("std::string_view");
    case ArgType::DType:
      return opt("DType");
    case ArgType::Device:
      return opt("Device");
    case ArgType::Layout:
      return opt("Layout");
    case ArgType::MemoryFormat:
      return opt("MemoryFormat");
    case ArgType::Generator:
      return opt("Generator");
  }
  return "?";
}

std::string cpp_default(const SchemaArg& a) {
  std::string d = a.default_text;
  if (d == "None") return a.type == ArgType::Tensor && !a.list ? "{}" : "std::nullopt";
  if (d == "True") return "true";
  if (d == "False") return "false";
  if (d == "Mean") return "1";
  if (d == "Sum") return "2";
  if (d == "contiguous_format") return "MemoryFormat::Contiguous";
  if (d == "preserve_format") return "MemoryFormat::Preserve";
  if (d == "inf") return "std::numeric_limits<double>::infinity()";
  if (a.type == ArgType::DType)
    return "DType::" + std::string(d == "long" ? "Int64" : d == "float" ? "Float32" : d);
  if (d[0] == '[') return "{" + d.substr(1, d.size() - 2) + "}";
  if (d[0] == '\'') return "\"" + d.substr(1, d.size() - 2) + "\"";
  return d;
}

// dtype, layout, device, pin_memory in a row become one TensorOptions.
bool is_options_group(const Schema& s, size_t i) {
  return i + 3 < s.args.size() && s.args[i].name == "dtype" && s.args[i + 1].name == "layout" &&
         s.args[i + 2].name == "device" && s.args[i + 3].name == "pin_memory";
}

struct Signature {
  std::string params, params_with_defaults, values, result, returned,
      pass;  // pass: arguments of a forwarded call
  // Where a bool must be one: the head of the template, its parameters and the call of the function itself.
  std::string template_head, template_params, template_pass;
  bool options = false;
};

Signature signature(const Decl& d, bool method) {
  const Schema& s = d.schema;
  Signature g;
  const bool exact = !d.exact_bools.empty();
  auto add = [&](const std::string& type, const std::string& name, const std::string& def) {
    std::string sep = g.params.empty() ? "" : ", ", init = def.empty() ? "" : " = " + def;
    bool checked = d.exact_bools.count(name) > 0;
    g.params += sep + (checked ? "BoolArg" : type) + " " + name;
    // All arguments come from the template, which has the defaults.
    g.params_with_defaults += sep + (checked ? "BoolArg" : type) + " " + name + (exact ? "" : init);
    std::string own = "Is_" + name;
    if (checked)
      g.template_head +=
          (g.template_head.empty() ? "" : ", ") +
          ("class " + own + " = bool, std::enable_if_t<std::is_same_v<" + own + ", bool>, int> = 0");
    g.template_params += sep + (checked ? own : type) + " " + name + init;
    g.template_pass += sep + (checked ? "BoolArg(" + name + ")" : name);
  };
  auto pass = [&](const std::string& name) { g.pass += (g.pass.empty() ? "" : ", ") + name; };
  std::vector<std::string> outs;
  if (d.form == Form::Out)
    for (auto& a : s.args)
      if (a.mutated && a.keyword_only) {
        add("Tensor&", a.name, "");
        outs.push_back(a.name);
        pass(a.name);
      }
  for (size_t i = 0; i < s.args.size(); ++i) {
    auto& a = s.args[i];
    std::string sep = g.values.empty() ? "" : ", ";
    if (std::find(outs.begin(), outs.end(), a.name) != outs.end()) {
      g.values += sep + a.name;
    } else if (is_options_group(s, i)) {
      g.options = true;
      add("const TensorOptions&", "options", a.has_default ? "{}" : "");
      pass("options");
      std::string fallback =
          a.default_text != "None" && a.has_default ? ".value_or(" + cpp_default(a) + ")" : "";
      g.values += sep + "options.dtype_opt()" + fallback +
                  ", options.layout_opt(), options.device_opt(), options.pinned_memory_opt()";
      i += 3;
    } else {
      // libtorch takes self of an in-place function by reference; a handle is enough.
      if (method && a.name == "self") {
        g.values += sep + "*this";
        pass("*this");
        continue;
      }
      bool drop = kNoCppDefault.count(s.full_name() + " " + a.name) > 0;
      add(cpp_type(a), a.name, a.has_default && !drop ? cpp_default(a) : "");
      pass(a.name);
      g.values += sep + (g.options && a.type == ArgType::MemoryFormat
                             ? "memory_format ? memory_format : options.memory_format_opt()"
                         : d.exact_bools.count(a.name) ? "bool(" + a.name + ")"
                                                       : a.name);
    }
  }
  size_t n = s.results.size();
  auto single = [](const SchemaResult& r) -> std::string {
    if (r.list) return "std::vector<Tensor>";
    switch (r.type) {
      case ArgType::Tensor:
        return "Tensor";
      case ArgType::Bool:
        return "bool";
      case ArgType::Int:
        return "int64_t";
      case ArgType::Float:
        return "double";
      case ArgType::Scalar:
        return "Scalar";
      case ArgType::DType:
        return "DType";
      default:
        throw ValueError("opdecl: no C++ type for a result");
    }
  };
  auto taken = [&](size_t j) {
    std::string o = "o[" + std::to_string(j) + "]";
    auto& r = s.results[j];
    if (r.list) return "detail::take_list(" + o + ")";
    switch (r.type) {
      case ArgType::Tensor:
        return "detail::take(" + o + ")";
      case ArgType::Bool:
        return o + ".i != 0";
      case ArgType::Int:
        return o + ".i";
      case ArgType::Float:
        return o + ".d";
      case ArgType::DType:
        return "DType(" + o + ".i)";
      default:
        return o + ".scalar()";
    }
  };
  if (n == 0) {
    g.result = "void";
    g.returned = "(void)o;";
  } else if (d.form == Form::InPlace || (d.form == Form::Functional && n == 1 && s.results[0].mutated)) {
    g.result = "Tensor&";
    g.returned = "detail::drop(o[0]); return const_cast<Tensor&>(" +
                 std::string(method ? "*this" : s.args[0].name) + ");";
  } else if (d.form == Form::Out) {
    std::string refs;
    for (auto& o : outs) refs += (refs.empty() ? "" : ", ") + o;
    std::string drops;
    for (size_t j = 0; j < n; ++j) drops += "detail::drop(o[" + std::to_string(j) + "]); ";
    std::string types;
    for (size_t j = 0; j < n; ++j) types += j ? ", Tensor&" : "Tensor&";
    g.result = n == 1 ? "Tensor&" : "std::tuple<" + types + ">";
    g.returned = drops + (n == 1 ? "return " + refs + ";" : "return {" + refs + "};");
  } else if (n == 1) {
    g.result = single(s.results[0]);
    g.returned =
        g.options ? "return detail::with_options(" + taken(0) + ", options);" : "return " + taken(0) + ";";
  } else {
    g.result = "std::tuple<";
    g.returned = "return {";
    for (size_t j = 0; j < n; ++j) {
      g.result += (j ? ", " : "") + single(s.results[j]);
      g.returned += (j ? ", " : "") + taken(j);
    }
    g.result += ">";
    g.returned += "};";
  }
  return g;
}

std::string function_name(const Decl& d) {
  return d.form == Form::Out ? d.schema.name + "_out" : d.schema.name;
}

bool is_method(const Decl& d) {
  auto& s = d.schema;
  if (d.form == Form::Out || kHandWritten.count(s.name)) return false;
  const size_t count = kSelfNotFirst.count(s.name) ? s.args.size() : std::min<size_t>(1, s.args.size());
  for (size_t i = 0; i < count; ++i) {
    auto& a = s.args[i];
    if (a.name == "self" && a.type == ArgType::Tensor && !a.list && !a.optional) return true;
  }
  return false;
}

// An integer converts to bool by a standard conversion, to a dim list or a Scalar by a class's: in overload resolution the
// bool would win. Finds the bools that stand where an overload of the same function has such a parameter.
void find_exact_bools(std::vector<Family>& families) {
  std::map<std::string, std::vector<Decl*>> overloads;
  for (auto& f : families)
    for (auto& d : f.decls) overloads[function_name(d)].push_back(&d);
  auto is_bool = [](const SchemaArg& a) { return a.type == ArgType::Bool && !a.list && !a.optional; };
  auto takes_integers = [](const SchemaArg& a) {
    return a.type == ArgType::Int || a.type == ArgType::Scalar;
  };
  auto same_type = [](const SchemaArg& a, const SchemaArg& b) {
    return a.type == b.type && a.list == b.list;
  };
  for (auto& [name, group] : overloads)
    for (Decl* d : group)
      for (Decl* other : group) {
        auto &mine = d->schema.args, &theirs = other->schema.args;
        size_t i = 0;
        while (i < mine.size() && i < theirs.size() && same_type(mine[i], theirs[i])) ++i;
        if (i < mine.size() && i < theirs.size() && is_bool(mine[i]) && takes_integers(theirs[i]))
          d->exact_bools.insert(mine[i].name);
      }
}

// The declarations of one function or method; `tail`: const.
std::string declaration(const Signature& g, const std::string& name, const std::string& tail) {
  std::string text = g.result + " " + name + "(" + g.params_with_defaults + ")" + tail + ";\n";
  if (!g.template_head.empty())
    text += "template <" + g.template_head + ">\n" + (tail.empty() ? "inline " : "") + g.result + " " + name +
            "(" + g.template_params + ")" + tail + " {\n  return " + name + "(" + g.template_pass + ");\n}\n";
  return text;
}

// As a reader of the reference should see it.
std::string shown(std::string params) {
  for (size_t at; (at = params.find("BoolArg")) != params.npos;) params.replace(at, 7, "bool");
  return params;
}

std::string body(const Decl& d, const Signature& g) {
  size_t n = std::max<size_t>(1, d.schema.results.size());
  std::string count = std::to_string(n);
  std::string values =
      d.schema.args.empty() ? "const Value* argv = nullptr;" : "const Value argv[] = {" + g.values + "};";
  return "{\n  " + values + "\n  Value o[" + count + "];\n  call(OpId::" + enum_name(d.schema) +
         ", argv, o);\n  " + g.returned + "\n}\n";
}

// Only rewritten on change, so that unrelated edits of a family rebuild nothing.
void write_if_changed(const std::string& path, const std::string& text) {
  std::ifstream in(path, std::ios::binary);
  if (in && std::string(std::istreambuf_iterator<char>(in), {}) == text) return;
  std::ofstream out(path, std::ios::binary);
  out << text;
  VESTA_CHECK_AS(IoError, out.flush(), "opdecl: cannot write ", path);
}

int run(int argc, char** argv) {
  const std::string dir = argv[1], option = "--leave-out=";
  std::vector<Family> families;
  std::set<std::string> left_out;  // declared, but not registered: see cmake/VestaFamilies.cmake
  for (int i = 2; i < argc; ++i) {
    if (std::string arg = argv[i]; arg.starts_with(option)) {
      std::istringstream names(arg.substr(option.size()));
      for (std::string name; std::getline(names, name, ',');) left_out.insert(name);
      continue;
    }
    Family f = read_family(argv[i]);
    if (!f.name.empty()) families.push_back(std::move(f));
  }
  std::sort(families.begin(), families.end(), [](auto& a, auto& b) { return a.name < b.name; });
  find_exact_bools(families);

  const std::string header = "// Generated by tools/opdecl from the op blocks. Do not edit.\n";
  std::ostringstream ids, names, functions, methods, list, signatures;
  std::set<std::string> seen;
  int count = 0;
  std::map<std::string, std::ostringstream> modules;
  for (auto& f : families) {
    if (left_out.count(f.name))
      list << "VESTA_FAMILY_LEFT_OUT(" << f.name << ", " << f.decls.size() << ")\n";
    else
      list << "VESTA_FAMILY_ENTRY(" << f.name << ")\n";
    std::ostringstream bodies;
    bodies << header << "#include \"core/call.h\"\n#include \"vesta/ops.h\"\n\nnamespace vesta {\n\n";
    for (auto& d : f.decls) {
      VESTA_CHECK(seen.insert(d.schema.full_name()).second, "opdecl: ", d.schema.full_name(),
                  " is defined twice");
      ids << "  " << enum_name(d.schema) << " = " << count++ << ",\n";
      names << "  \"" << d.schema.str() << "\",\n";
      Signature g = signature(d, false);
      std::string name = function_name(d);
      if (kHandWrittenFunctions.count(name)) continue;
      signatures << "  {R\"(" << d.schema.full_name() << ")\", R\"(" << g.result << " " << name << "("
                 << shown(g.params_with_defaults) << ");)\", " << (is_method(d) ? "true" : "false") << "},\n";
      functions << declaration(g, name, "");
      bodies << g.result << " " << name << "(" << g.params << ") " << body(d, g) << "\n";
      for (std::string prefix : {"linalg_", "special_", "fft_"})
        if (name.rfind(prefix, 0) == 0) {
          bool exact = !g.template_head.empty();
          modules[prefix.substr(0, prefix.size() - 1)]
              << (exact ? "template <" + g.template_head + ">\n" : "") << "inline " << g.result << " "
              << name.substr(prefix.size()) << "(" << (exact ? g.template_params : g.params_with_defaults)
              << ") { return ::vesta::" << name << "(" << g.pass << "); }\n";
        }
      if (is_method(d)) {
        Signature m = signature(d, true);
        methods << declaration(m, d.schema.name, " const");
        bodies << m.result << " Tensor::" << d.schema.name << "(" << m.params << ") const " << body(d, m)
               << "\n";
      }
    }
    bodies << "}  // namespace vesta\n";
    write_if_changed(dir + "/ops_" + f.name + ".cpp", bodies.str());
  }
  std::ostringstream ops;
  ops << header
      << "#pragma once\n#include \"vesta/random.h\"\n#include \"vesta/tensor.h\"\n\nnamespace vesta {\n\n"
      << functions.str() << "\n";
  for (auto& [module, text] : modules)
    ops << "namespace " << module << " {\n" << text.str() << "}  // namespace " << module << "\n\n";
  ops << "}  // namespace vesta\n";
  write_if_changed(dir + "/include/vesta/gen/ops.h", ops.str());
  // A program may add inline members of its own, as compat/torch does; they change nothing of the layout.
  methods << "#ifdef VESTA_TENSOR_MEMBERS\n#include VESTA_TENSOR_MEMBERS\n#endif\n";
  write_if_changed(dir + "/include/vesta/gen/tensor_methods.h", header + methods.str());
  write_if_changed(
      dir + "/private/gen/op_ids.h",
      header + "#pragma once\n#include <cstdint>\n\nnamespace vesta {\n\nenum class OpId : uint16_t {\n" +
          ids.str() + "  kCount = " + std::to_string(count) + "\n};\n\n}  // namespace vesta\n");
  write_if_changed(dir + "/private/gen/op_schemas.inc", header + names.str());
  write_if_changed(dir + "/private/gen/op_signatures.inc", header + signatures.str());
  write_if_changed(dir + "/private/gen/families.inc", header + list.str());
  return 0;
}

}  // namespace
}  // namespace vesta

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: opdecl OUT_DIR [--leave-out=FAMILY,...] FILE...\n";
    return 2;
  }
  try {
    return vesta::run(argc, argv);
  } catch (const std::exception& e) {
    std::cerr << "opdecl: " << e.what() << "\n";
    return 1;
  }
}
