// Nested values as a flat list of named tensors, the form of state dicts and of safetensors.
#include "serialize/format_error.h"
#include "vesta/torch_file.h"

namespace vesta {
namespace {

void collect(const IValue& v, const std::string& name, OrderedDict<std::string, Tensor>* out,
             std::vector<std::string>* others) {
  const auto inner = [&](const std::string& key) { return name.empty() ? key : name + "." + key; };
  switch (v.kind()) {
    case IValue::Kind::Tensor: {
      const std::string key = name.empty() ? "0" : name;
      VESTA_CHECK(!out->contains(key), "named_tensors: the name ", shown(key), " appears twice");
      out->insert(key, v.toTensor());
      break;
    }
    case IValue::Kind::Dict:
      for (auto& [key, value] : v.toDict())
        collect(value, inner(key.isString() ? key.toStringRef() : key.str()), out, others);
      break;
    case IValue::Kind::List:
    case IValue::Kind::Tuple: {
      size_t i = 0;
      for (auto& value : v.isList() ? v.toList() : v.toTuple())
        collect(value, inner(std::to_string(i++)), out, others);
      break;
    }
    default:
      if (others) others->push_back(name.empty() ? "0" : name);
  }
}

}  // namespace

OrderedDict<std::string, Tensor> named_tensors(const IValue& value, std::vector<std::string>* others) {
  OrderedDict<std::string, Tensor> out("tensor");
  collect(value, "", &out, others);
  return out;
}

}  // namespace vesta
