// AnyModule: the parts that do not depend on the module's type.
#include "vesta/nn_any.h"

#include "nn/type_name.h"

namespace vesta::nn {

Tensor AnyModule::forward_tensor(const Tensor& input) const {
  VESTA_CHECK(module_, "AnyModule: cannot call forward on an empty module");
  if (plain_) return plain_(*module_, input);
  return any_forward({AnyValue(input)}).get<Tensor>();
}

AnyValue AnyModule::any_forward(std::vector<AnyValue> arguments) const {
  VESTA_CHECK(module_, "AnyModule: cannot call forward on an empty module");
  if (general_) return general_(*module_, arguments);
  if (arguments.size() != 1) detail::wrong_argument_count(*module_, 1, 1, arguments.size());
  return AnyValue(plain_(*module_, detail::take_argument<const Tensor&>(*module_, arguments, 0)));
}

const std::type_info& AnyModule::type_info() const {
  VESTA_CHECK(module_, "AnyModule: Cannot call type_info() on an empty AnyModule");
  const Module& module = *module_;
  return typeid(module);
}

AnyModule AnyModule::clone(std::optional<Device> device) const {
  return with(module_ ? module_->clone(device) : nullptr);
}

namespace detail {
using vesta::detail::message;

void wrong_value_type(const std::type_info& expected, const std::type_info& actual) {
  throw TypeError(message("Attempted to cast AnyValue to ", type_name(expected), ", but its actual type is ",
                          type_name(actual)));
}
void wrong_argument_type(const Module& module, size_t i, const std::type_info& expected,
                         const std::type_info& actual) {
  throw TypeError(message(module.name(), "::forward: expected argument #", i, " of type ",
                          type_name(expected), ", got ", type_name(actual)));
}
void wrong_argument_count(const Module& module, size_t least, size_t most, size_t actual) {
  throw TypeError(message(module.name(), "::forward: expected ", least,
                          least == most ? std::string() : " to " + std::to_string(most), " arguments, got ",
                          actual));
}

}  // namespace detail
}  // namespace vesta::nn
