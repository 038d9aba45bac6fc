#pragma once
// Schema strings in PyTorch's grammar: "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor".
// The parser depends on nothing else of core, so that tools/opdecl uses the same one.
#include <string>
#include <string_view>
#include <vector>

namespace vesta {

enum class ArgType : unsigned char {
  Tensor,
  Scalar,
  Int,
  Float,
  Bool,
  String,
  DType,
  Device,
  Layout,
  MemoryFormat,
  Generator
};

struct SchemaArg {
  ArgType type = ArgType::Tensor;
  bool optional = false;        // "Tensor?", "int[]?"
  bool list = false;            // "int[2]"
  bool optional_items = false;  // "Tensor?[]"
  int list_size = 0;            // 2 in "int[2]": one integer is repeated
  bool keyword_only = false;
  bool aliases = false;  // "Tensor(a)": the result may be a view of this argument
  bool mutated = false;  // "Tensor(a!)"
  bool has_default = false;
  std::string name, default_text;
};

struct SchemaResult {
  bool tensor = true;  // else int/float/bool/Scalar, see type
  ArgType type = ArgType::Tensor;
  bool list = false, aliases = false, mutated = false;
  std::string name;
};

struct Schema {
  std::string name, overload;  // "add", "Tensor"
  std::vector<SchemaArg> args;
  std::vector<SchemaResult> results;

  std::string full_name() const { return overload.empty() ? name : name + "." + overload; }
  std::string str() const;
  int index_of(std::string_view arg) const;  // -1 where absent
  int num_positional() const;
};

// Throws ValueError that shows the place where the text stops to make sense.
Schema parse_schema(std::string_view text);

// The other forms of a functional schema: add_(Tensor(a!) self, ...) -> Tensor(a!); add.out(..., *, Tensor(a!) out).
Schema in_place_form(const Schema& functional);
Schema out_form(const Schema& functional);

// C++ names: functions of module prefixes live in namespaces: linalg_inv -> linalg::inv is an alias made by opdecl.
std::string enum_name(const Schema& schema);  // "add_Tensor", "add__Tensor", "add_Tensor_out"

}  // namespace vesta
