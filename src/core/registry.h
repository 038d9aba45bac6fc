#pragma once
// The registered operators: a block's text turned into what the call path needs. Built once, then immutable.
#include <atomic>
#include <string_view>
#include <vector>

#include "core/schema.h"
#include "gen/op_ids.h"
#include "vesta/op.h"

namespace vesta {

enum class OpForm : uint8_t { Functional, InPlace, Out };

// One form of one operator. The first line is what every call touches.
struct Op {
  // Runs the op on plain tensors: no interpreter is left above it.
  void (*eager)(const Op&, const Value* args, Value* outs) = nullptr;
  const OpDef* def = nullptr;
  const ScalarLoop* loops = nullptr;  // per compute type, for the chosen CPU level
  uint16_t id = 0;
  OpForm form = OpForm::Functional;
  uint8_t num_args = 0, num_tensor_args = 0, num_outs = 0;
  bool has_tensor_lists = false;
  bool mutates = false;  // writes arguments: in place, out=, or a block with mutated arguments
  bool returns_view = false;
  int8_t out_arg = -1;      // first out= argument
  int8_t list_result = -1;  // the one Tensor[] result

  static constexpr int kMaxTensors = 12, kMaxAttrs = 6;
  uint8_t
      tensor_args[kMaxTensors]{};  // positions of arguments of tensor type (lists included), out= excluded
  uint8_t attr_args[kMaxAttrs]{};  // positions of the scalar text's attributes
  uint8_t num_attrs = 0;
  // n where the tensor arguments are exactly arguments 0..n-1, none of them a list, and there is no out=; else 0.
  uint8_t leading_tensors = 0;
  bool bool_result = false;     // a pointwise op with bool results
  bool records_simply = false;  // a functional form with a vjp, one result, and leading_tensors
  int8_t edge_of_arg[32];       // position among the tensor arguments, -1 for others; without lists: its edge
  bool saves_outputs = false;
  // What the pointwise driver's short way takes: dtypes that need neither promotion nor staging (a mask over DType).
  uint16_t direct_types = 0;
  uint32_t promote_mask = 0;  // argument positions of Scalars that take part in promotion
  uint16_t functional = 0;    // id of the functional form, for in-place and out forms
  // Arguments (a mask of positions) whose values may point to memory: lists of numbers, strings, complex Scalars.
  uint32_t pointer_args = 0;
  uint32_t attr_mask = 0;  // arguments that are no tensors

  Schema schema;
  std::string name;             // "add.Tensor"
  std::string schema_text;      // the whole schema, of this form
  std::vector<Value> defaults;  // by argument; None where there is none
  const char* family = "";
};

namespace detail {
// By id. Published when init() is done; register_ops must not run while other threads call ops.
extern std::atomic<const Op* const*> op_table;
const Op& op_of_first_call(OpId id);
}  // namespace detail

inline const Op& op_of(OpId id) {
  const Op* const* table = detail::op_table.load(std::memory_order_acquire);
  if (!table) [[unlikely]]
    return detail::op_of_first_call(id);
  return *table[int(id)];
}
inline const Op& op_of(uint16_t id) { return op_of(OpId(id)); }
// Ids of built-in operators, those of families that this build leaves out included.
size_t op_count();
// Null where no such operator is registered. "add.Tensor", "add_.Tensor", "relu" (the empty overload).
const Op* find_op(std::string_view name_and_overload);
const std::vector<const Op*>& all_ops();

// Throws TypeError where a value's kind does not fit its schema argument. Typed C++ wrappers need no such check.
void check_arguments(const Op& op, const Value* args);

// What core cannot know, set once by init(): the driver of scalar texts, the registration of built-in families.
using EagerFn = void (*)(const Op&, const Value*, Value*);
struct RegistryHooks {
  EagerFn pointwise = nullptr;
  int cpu_level = 0;  // index into OpFamily::loops
};
void set_registry_hooks(const RegistryHooks& hooks);
// The next `count` ids belong to a family that this build leaves out: calls throw NotImplementedError.
void leave_out_ops(const char* family, int count);
// Makes newly registered ops visible to op_of.
void publish_ops();
// Registers the built-in families once; every entry point calls it.
void init();

}  // namespace vesta
