#pragma once
// Values as text: schema defaults in, graph and error texts out.
#include <string>

#include "core/schema.h"
#include "vesta/value.h"

namespace vesta {

// The default of a schema argument; lists point into leaked storage (a registry lives as long as the process).
Value parse_default(const SchemaArg& arg);
// "3", "1.5", "[1, 2]", "float32", "None"; tensors as "Tensor[2, 3]".
std::string value_text(const Value& v);

}  // namespace vesta
