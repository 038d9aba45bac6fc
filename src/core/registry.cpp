// Turns op blocks into the table that `call` reads.
#include "core/registry.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <unordered_map>

#include "core/eager.h"
#include "core/value_text.h"

namespace vesta {
namespace {

// Leaks on exit by design: calls may still come from static destructors of the program.
struct Registry {
  std::deque<Op> storage;
  std::vector<const Op*> ops;         // by id
  std::vector<const Op*> registered;  // without those that this build leaves out
  std::unordered_map<std::string_view, const Op*> by_name;
  RegistryHooks hooks;
};
Registry& registry() {
  static auto* r = new Registry;
  return *r;
}
constexpr const char* kGeneratedSchemas[] = {
#include "gen/op_schemas.inc"
};

std::vector<std::string> split_names(const char* list) {
  std::vector<std::string> names;
  std::string name;
  for (const char* p = list;; ++p) {
    if (*p == ',' || !*p) {
      if (!name.empty()) names.push_back(name);
      name.clear();
      if (!*p) return names;
    } else if (*p != ' ') {
      name += *p;
    }
  }
}

int arg_index(const Op& op, const std::string& name) {
  int i = op.schema.index_of(name);
  VESTA_CHECK_AS(InternalError, i >= 0, op.name,
                 ": the block names an argument that the schema lacks: ", name);
  return i;
}

// Dtypes whose storage is a compute type with a loop of its own, which promotion leaves as they are.
uint16_t direct_types(const Op& op) {
  constexpr struct {
    DType dtype;
    ComputeType loop;
  } kDirect[] = {{DType::Bool, ComputeType::U8},        {DType::Int32, ComputeType::I32},
                 {DType::Int64, ComputeType::I64},      {DType::Float32, ComputeType::F32},
                 {DType::Float64, ComputeType::F64},    {DType::Complex64, ComputeType::C64},
                 {DType::Complex128, ComputeType::C128}};
  const TypeRule& rule = op.def->types;
  if (op.num_outs != 1 || !op.leading_tensors || rule.result == ResultType::Integer || op.num_tensor_args > 4)
    return 0;
  uint16_t mask = 0;
  for (auto& d : kDirect) {
    bool fits = op.loops[int(d.loop)] && rule.accepts(d.dtype) &&
                !(rule.promote == Promote::Float && is_integral(d.dtype, true)) &&
                !(rule.result == ResultType::Real && is_complex(d.dtype));
    if (fits) mask = uint16_t(mask | 1u << int(d.dtype));
  }
  return mask;
}

void fill(Op& op, const OpDef& def, const Schema& schema, OpForm form, const ScalarLoops* loops) {
  op.def = &def;
  op.form = form;
  op.schema = schema;
  op.name = schema.full_name();
  op.schema_text = schema.str();
  VESTA_CHECK(schema.args.size() <= 32, op.name, ": expected at most 32 arguments");
  op.num_args = uint8_t(schema.args.size());
  op.num_outs = uint8_t(schema.results.size());
  std::fill(std::begin(op.edge_of_arg), std::end(op.edge_of_arg), int8_t(-1));
  for (int i = 0; i < def.save.count; ++i) op.saves_outputs |= def.save.items[i].output;
  for (int i = 0; i < op.num_args; ++i) {
    auto& a = schema.args[size_t(i)];
    op.mutates |= a.mutated;
    op.returns_view |= a.aliases;
    bool pointer = a.list || a.type == ArgType::String || a.type == ArgType::Scalar;
    if (a.type != ArgType::Tensor) {
      op.attr_mask |= 1u << i;
      if (pointer) op.pointer_args |= 1u << i;
      continue;
    }
    if (form == OpForm::Out && a.mutated && a.keyword_only) {
      if (op.out_arg < 0) op.out_arg = int8_t(i);
      continue;
    }
    VESTA_CHECK(op.num_tensor_args < Op::kMaxTensors, op.name, ": too many tensor arguments");
    op.edge_of_arg[i] = int8_t(op.num_tensor_args);
    op.tensor_args[op.num_tensor_args++] = uint8_t(i);
    op.has_tensor_lists |= a.list;
  }
  for (size_t j = 0; j < schema.results.size(); ++j)
    if (schema.results[j].list) op.list_result = int8_t(j);
  if (op.num_tensor_args && !op.has_tensor_lists && op.out_arg < 0 &&
      op.tensor_args[op.num_tensor_args - 1] == op.num_tensor_args - 1)
    op.leading_tensors = op.num_tensor_args;
  op.bool_result = def.types.result == ResultType::Bool;
  op.records_simply = op.leading_tensors && form == OpForm::Functional && def.vjp &&
                      !def.non_differentiable && !op.mutates && op.num_outs == 1 && op.list_result < 0;
  for (auto& name : split_names(def.scalar.attrs)) {
    VESTA_CHECK(op.num_attrs < Op::kMaxAttrs, op.name, ": too many attributes");
    op.attr_args[op.num_attrs++] = uint8_t(arg_index(op, name));
  }
  for (auto& name : split_names(def.promote_scalars)) op.promote_mask |= 1u << arg_index(op, name);
  op.defaults.resize(op.num_args);
  for (int i = 0; i < op.num_args; ++i) op.defaults[size_t(i)] = parse_default(schema.args[size_t(i)]);
  op.loops = loops ? loops->loop : def.scalar.loops.loop;
  if (def.scalar.classes && def.types.promote != Promote::None && !def.decompose &&
      !def.kernels.find(DeviceType::CPU))
    op.eager = registry().hooks.pointwise, op.direct_types = direct_types(op);
  else
    op.eager = choose_eager(op);
  bool needs_loops = op.eager == registry().hooks.pointwise;
  VESTA_CHECK(
      !needs_loops || std::any_of(op.loops, op.loops + kNumComputeTypes, [](ScalarLoop f) { return f; }),
      op.name,
      ": the scalar text was compiled without loops: define VESTA_OP_LOOPS before including vesta/op.h");
  bool defined = def.scalar.classes || def.kernels.find(DeviceType::CPU) || def.decompose ||
                 (op.returns_view && def.infer);
  VESTA_CHECK(defined && op.eager, op.name,
              ": the block needs a scalar text, a kernel, a decomposition or a view inference");
}

// Gives the op the next id.
Op& add_op(const OpDef& def, const Schema& schema, OpForm form, const ScalarLoops* loops, const char* family,
           uint16_t functional) {
  Registry& r = registry();
  Op& op = r.storage.emplace_back();
  fill(op, def, schema, form, loops);
  op.family = family;
  op.id = uint16_t(r.ops.size());
  op.functional = form == OpForm::Functional ? op.id : functional;
  r.ops.push_back(&op);
  if (op.id < std::size(kGeneratedSchemas))
    VESTA_CHECK_AS(InternalError, op.schema_text == kGeneratedSchemas[op.id], "register_ops: built-in op ",
                   op.id, " is ", op.schema_text, " but the generated headers say ",
                   kGeneratedSchemas[op.id]);
  return op;
}

Results left_out(const Args& a) {
  throw NotImplementedError(a.op().name + ": this build of Vesta leaves out the operator family '" +
                            a.op().family + "' (VESTA_FAMILIES)");
}

void register_op(const OpDef& def, const Schema& schema, OpForm form, const ScalarLoops* loops,
                 const char* family, uint16_t functional) {
  Registry& r = registry();
  VESTA_CHECK(!r.by_name.contains(schema.full_name()), "register_ops: ", schema.full_name(),
              " is registered already");
  const Op& op = add_op(def, schema, form, loops, family, functional);
  r.by_name.emplace(op.name, &op);
  r.registered.push_back(&op);
}

void add_family(const OpFamily& family) {
  int level = registry().hooks.cpu_level;
  for (size_t i = 0; i < family.ops.size(); ++i) {
    const OpDef& def = family.ops[i];
    const ScalarLoops* loops = family.loops[level] ? &family.loops[level][i] : nullptr;
    Schema s = parse_schema(def.schema);
    uint16_t id = uint16_t(registry().ops.size());
    register_op(def, s, OpForm::Functional, loops, family.name, id);
    if (def.forms & InPlace) register_op(def, in_place_form(s), OpForm::InPlace, loops, family.name, id);
    if (def.forms & Out) register_op(def, out_form(s), OpForm::Out, loops, family.name, id);
  }
}

}  // namespace

namespace {
bool kind_fits(const SchemaArg& a, const Value& v) {
  bool number = v.kind >= ValueKind::Bool && v.kind <= ValueKind::Complex;
  if (v.is_none()) return a.optional;
  if (a.list) {
    switch (a.type) {
      case ArgType::Tensor:
        return v.kind == ValueKind::TensorList;
      case ArgType::Int:
        return v.kind == ValueKind::IntList;
      case ArgType::Float:
        return v.kind == ValueKind::FloatList;
      case ArgType::Bool:
        return v.kind == ValueKind::BoolList;
      default:
        return v.kind == ValueKind::ScalarList;
    }
  }
  switch (a.type) {
    case ArgType::Tensor:
      return v.kind == ValueKind::Tensor;
    case ArgType::Scalar:
      return number;
    case ArgType::Int:
      return v.kind == ValueKind::Int;
    case ArgType::Float:
      return v.kind == ValueKind::Float || v.kind == ValueKind::Int;
    case ArgType::Bool:
      return v.kind == ValueKind::Bool;
    case ArgType::String:
      return v.kind == ValueKind::String;
    case ArgType::DType:
      return v.kind == ValueKind::DType && v.i >= 0 && v.i < kNumDTypes;
    case ArgType::Device:
      return v.kind == ValueKind::Device && v.i >= 0 && v.i >> 4 < kNumDeviceTypes;
    case ArgType::Layout:
      return v.kind == ValueKind::Layout && v.i == int64_t(Layout::Strided);
    case ArgType::MemoryFormat:
      return v.kind == ValueKind::MemoryFormat && v.i >= 0 && v.i <= int64_t(MemoryFormat::ChannelsLast3d);
    case ArgType::Generator:
      return v.kind == ValueKind::Generator;
  }
  return false;
}
}  // namespace

void check_arguments(const Op& op, const Value* args) {
  for (int i = 0; i < op.num_args; ++i) {
    const SchemaArg& a = op.schema.args[size_t(i)];
    VESTA_CHECK_AS(TypeError, kind_fits(a, args[i]), op.name, ": argument ", a.name,
                   " has the wrong kind: got ", value_text(args[i]));
    // Lists of tensors may hold no undefined entries unless the schema says so ("Tensor?[]").
    if (args[i].kind == ValueKind::TensorList && !a.optional_items)
      for (auto& t : args[i].tensors())
        VESTA_CHECK_AS(TypeError, t.defined(), op.name, ": argument ", a.name, " holds an undefined tensor");
  }
}

void set_registry_hooks(const RegistryHooks& hooks) { registry().hooks = hooks; }

void leave_out_ops(const char* family, int count) {
  static const OpDef def = OP("", .decompose = left_out);
  for (int k = 0; k < count; ++k) {
    const size_t id = registry().ops.size();
    add_op(def, parse_schema(kGeneratedSchemas[id]), OpForm::Functional, nullptr, family, uint16_t(id));
  }
}

void publish_ops() { detail::op_table.store(registry().ops.data(), std::memory_order_release); }

void register_ops(const OpFamily& family) { add_family(family); }
void register_ops(std::span<const OpDef> ops) {
  init();
  add_family({"custom", ops, {nullptr, nullptr, nullptr}});
  publish_ops();
}

constinit std::atomic<const Op* const*> detail::op_table{nullptr};
const Op& detail::op_of_first_call(OpId id) {
  init();
  return *op_table.load(std::memory_order_acquire)[int(id)];
}
const Op* find_op(std::string_view name) {
  init();
  auto it = registry().by_name.find(name);
  return it == registry().by_name.end() ? nullptr : it->second;
}
const std::vector<const Op*>& all_ops() {
  init();
  return registry().registered;
}
size_t op_count() {
  init();
  return registry().ops.size();
}

}  // namespace vesta
