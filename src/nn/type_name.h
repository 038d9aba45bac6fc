#pragma once
// The name of a C++ type as its source spells it.
#include <string>
#include <typeinfo>

namespace vesta::nn {

std::string type_name(const std::type_info& type);

}  // namespace vesta::nn
