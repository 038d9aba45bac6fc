#pragma once
// Calls by name and through the C ABI may say None where the schema has a default: typed C++ calls cannot, so the call
// path does not look for it.
#include "core/registry.h"

namespace vesta {

// None stands for the default of an argument that has one and is not optional.
inline void fill_defaults(const Op& op, Value* args) {
  for (int i = 0; i < op.num_args; ++i) {
    const SchemaArg& a = op.schema.args[size_t(i)];
    if (args[i].is_none() && a.has_default && !a.optional) args[i] = op.defaults[size_t(i)];
  }
}

}  // namespace vesta
