// Module::state_dict and load_state_dict. Files are not read here: see vesta/serialize.h.
#include "vesta/autograd.h"
#include "vesta/module.h"
#include "vesta/ops.h"

namespace vesta::nn {
namespace {

std::string shape_text(IntArrayRef sizes) {
  std::string out = "[";
  for (size_t i = 0; i < sizes.size(); ++i) out += (i ? ", " : "") + std::to_string(sizes[i]);
  return out + "]";
}

void list_names(std::string& out, const char* title, const std::vector<std::string>& names) {
  if (names.empty()) return;
  out += "\n  ";
  out += title;
  out += ": ";
  for (size_t i = 0; i < names.size(); ++i) out += (i ? "; " : "") + names[i];
}

}  // namespace

std::string IncompatibleKeys::str() const {
  std::string out;
  list_names(out, "missing", missing);
  list_names(out, "unexpected", unexpected);
  list_names(out, "wrong shape", mismatched);
  return out;
}

StateDict Module::state_dict(const std::string& prefix) const {
  StateDict out("state");
  const std::string dot = prefix.empty() ? "" : prefix + ".";
  const NoGradGuard no_grad;
  for (const auto& item : parameters_)
    if (item->defined()) out.insert(dot + item.key(), item->detach());
  for (const auto& item : buffers_)
    if (item->persistent && item->tensor.defined()) out.insert(dot + item.key(), item->tensor.detach());
  for (const auto& child : children_)
    for (const auto& item : child.value()->state_dict(dot + child.key())) out.insert(item.key(), *item);
  return out;
}

IncompatibleKeys Module::load_state_dict(const StateDict& dict, bool strict) {
  const StateDict own = state_dict();
  IncompatibleKeys found;
  for (const auto& item : own) {
    const Tensor* value = dict.find(item.key());
    if (!value || !value->defined())
      found.missing.push_back(item.key());
    else if (!(value->sizes() == item->sizes()))
      found.mismatched.push_back(item.key() + ": expected " + shape_text(item->sizes()) + ", got " +
                                 shape_text(value->sizes()));
  }
  for (const auto& item : dict)
    if (!own.contains(item.key())) found.unexpected.push_back(item.key());
  VESTA_CHECK(found.mismatched.empty() && (!strict || found.empty()),
              "load_state_dict: the dict does not fit ", name(), found.str());
  const NoGradGuard no_grad;
  for (const auto& item : own)
    if (const Tensor* value = dict.find(item.key()); value && value->defined()) {
      // own's tensors are detached aliases: the copy writes into the module's memory and bumps its version.
      Tensor alias = *item;
      alias.copy_(*value);
    }
  return found;
}

}  // namespace vesta::nn
