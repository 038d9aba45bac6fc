// OutputArchive and InputArchive: a dict of values that becomes, or comes from, a checkpoint file.
#include "vesta/archive.h"

#include <istream>

#include "serialize/format_error.h"
#include "serialize/torch_values.h"
#include "vesta/data.h"
#include "vesta/ops.h"
#include "vesta/torch_file.h"

namespace vesta::serialize {
namespace {

constexpr const char* kOnlyKey = "0";

void check_device(Device device) {
  VESTA_CHECK_AS(NotImplementedError, device.is_cpu(), "load: expected the CPU, got ", device.str());
}

// The state dict of a Python optimiser: options by group, state by parameter number, counted through all groups.
bool is_python_optimizer(const GenericDict& values) {
  const IValue *groups = values.find("param_groups"), *state = values.find("state");
  return values.size() == 2 && groups && groups->isList() && state && state->isGenericDict();
}

Tensor number_tensor(const IValue& v) {
  return full({}, v.isBool() ? double(v.toBool()) : v.toDouble(), TensorOptions(kFloat64));
}

OrderedDict<std::string, Tensor> python_optimizer_state(const GenericDict& values,
                                                        const OrderedDict<std::string, Tensor>& own) {
  OrderedDict<std::string, Tensor> out("optimizer state");
  const GenericList& groups = values.at("param_groups").toList();
  const GenericDict& state = values.at("state").toDict();
  for (size_t g = 0; g < groups.size(); ++g) {
    const std::string prefix = "group." + std::to_string(g) + ".";
    const auto option = [&](const std::string& name, const IValue& v) {
      if (own.contains(prefix + name) && (v.isDouble() || v.isInt() || v.isBool()))
        out.insert_or_assign(prefix + name, number_tensor(v));
    };
    size_t position = 0;
    for (auto& [key, v] : groups[g].toDict()) {
      if (!key.isString()) continue;
      if (key.toStringRef() == "params") {
        for (auto& number : v.toList()) {
          const std::string at = "state." + std::to_string(g) + "." + std::to_string(position++) + ".";
          const IValue* slots = state.find(number);
          if (!slots) continue;  // a parameter that has had no step
          for (auto& [slot, value] : slots->toDict()) {
            if (value.isTensor())
              out.insert_or_assign(at + slot.toStringRef(), value.toTensor().detach());
            else if (value.isDouble() || value.isInt())  // the step count before PyTorch 1.12
              out.insert_or_assign(at + slot.toStringRef(), number_tensor(value));
          }
        }
      } else if (v.isTuple()) {  // betas
        for (size_t i = 0; i < v.toTuple().size(); ++i) {
          std::string name = key.toStringRef();
          if (name.ends_with('s')) name.pop_back();
          option(name + std::to_string(i + 1), v.toTuple()[i]);
        }
      } else if (v.isTensor()) {  // a rate kept in a tensor
        if (v.toTensor().numel() == 1) option(key.toStringRef(), v.toTensor().item<double>());
      } else {
        option(key.toStringRef(), v);
      }
    }
  }
  return out;
}

}  // namespace

void OutputArchive::write(const std::string& key, const IValue& value) {
  VESTA_CHECK(values_.insert(key, value), "OutputArchive: the key ", shown(key), " is written twice");
}
void OutputArchive::write(const std::string& key, const Tensor& tensor, bool) { write(key, IValue(tensor)); }
void OutputArchive::write(const std::string& key, const OutputArchive& nested) {
  write(key, IValue(nested.values_));
}

void OutputArchive::save_to(const std::string& path) const { save_torch(path, values_); }
void OutputArchive::save_to(std::ostream& stream) const {
  StreamSink sink(stream);
  write_torch_zip(sink, values_);
}
void OutputArchive::save_to(const std::function<size_t(const void*, size_t)>& function) const {
  FunctionSink sink(function);
  write_torch_zip(sink, values_);
}

void InputArchive::load_from(const std::string& path, Device device) {
  check_device(device);
  set_root(read_torch_file(map_region(path), "load '" + path + "'", true));
}

void InputArchive::load_from(std::istream& stream, Device device) {
  check_device(device);
  std::string content;
  char buffer[1 << 16];
  while (stream.read(buffer, sizeof buffer), stream.gcount() > 0)
    content.append(buffer, size_t(stream.gcount()));
  VESTA_CHECK_AS(IoError, !stream.bad(), "load: the stream cannot be read");
  load_from(content.data(), content.size());
}

void InputArchive::load_from(const char* data, size_t bytes, Device device) {
  check_device(device);
  set_root(read_torch_file(copy_region(data, bytes), "load from memory", true));
}

void InputArchive::load_from(const std::function<size_t(uint64_t, void*, size_t)>& read,
                             const std::function<size_t()>& size, Device device) {
  check_device(device);
  const ByteRegion region = allocate_region(size());
  const size_t got = region.size() ? read(0, region.data(), region.size()) : 0;
  VESTA_CHECK_AS(IoError, got == region.size(), "load: the reader function gave ", got, " of ", region.size(),
                 " bytes");
  set_root(read_torch_file(region, "load from a function", true));
}

void InputArchive::set_root(IValue root) {
  if (root.isGenericDict()) {
    values_ = root.toDict();
    return;
  }
  values_ = {};
  if (root.isList() || root.isTuple()) {
    size_t i = 0;
    for (auto& v : root.isList() ? root.toList() : root.toTuple()) values_.insert(std::to_string(i++), v);
  } else {
    values_.insert(kOnlyKey, std::move(root));
  }
}

std::string InputArchive::no_such_key(const std::string& key) const {
  const IValue* value = values_.find(key);
  return detail::message("InputArchive: the key ", shown(key), value ? " holds a " : " is missing",
                         value ? value->tagKind() : "");
}

bool InputArchive::try_read(const std::string& key, IValue& value) const {
  const IValue* found = values_.find(key);
  if (found) value = *found;
  return found;
}

bool InputArchive::try_read(const std::string& key, Tensor& tensor, bool) const {
  const IValue* found = values_.find(key);
  if (!found || !(found->isTensor() || found->isNone())) return false;
  if (found->isNone())
    tensor.reset();  // an undefined tensor was saved
  else if (tensor.defined())
    tensor.set_data(found->toTensor().detach());
  else
    tensor = found->toTensor();
  return true;
}

bool InputArchive::try_read(const std::string& key, InputArchive& nested) const {
  const IValue* found = values_.find(key);
  if (!found || !(found->isGenericDict() || found->isList() || found->isTuple())) return false;
  nested.set_root(*found);
  return true;
}

std::vector<std::string> InputArchive::keys() const {
  std::vector<std::string> out;
  for (auto& [key, value] : values_)
    if (key.isString()) out.push_back(key.toStringRef());
  return out;
}

OrderedDict<std::string, Tensor> InputArchive::state_dict(const OrderedDict<std::string, Tensor>& own) const {
  if (is_python_optimizer(values_)) return python_optimizer_state(values_, own);
  return named_tensors(values_);
}

OutputArchive& operator<<(OutputArchive& archive, const Tensor& tensor) {
  archive.write(kOnlyKey, tensor);
  return archive;
}
OutputArchive& operator<<(OutputArchive& archive, const IValue& value) {
  archive.write(kOnlyKey, value);
  return archive;
}
OutputArchive& operator<<(OutputArchive& archive, const std::vector<Tensor>& tensors) {
  for (size_t i = 0; i < tensors.size(); ++i) archive.write(std::to_string(i), tensors[i]);
  return archive;
}
OutputArchive& operator<<(OutputArchive& archive, const OrderedDict<std::string, Tensor>& dict) {
  for (auto& item : dict) archive.write(item.key(), *item);
  return archive;
}
OutputArchive& operator<<(OutputArchive& archive, const data::DataLoaderState& state) {
  archive.write("seed", int64_t(state.seed));
  archive.write("epoch", int64_t(state.epoch));
  archive.write("position", int64_t(state.position));
  return archive;
}

InputArchive& operator>>(InputArchive& archive, Tensor& tensor) {
  archive.read(kOnlyKey, tensor);
  return archive;
}
InputArchive& operator>>(InputArchive& archive, IValue& value) {
  if (archive.values().size() != 1 || !archive.try_read(kOnlyKey, value)) value = archive.values();
  return archive;
}
InputArchive& operator>>(InputArchive& archive, std::vector<Tensor>& tensors) {
  Tensor next;
  for (size_t i = 0; archive.try_read(std::to_string(i), next); ++i)
    tensors.push_back(std::exchange(next, {}));
  return archive;
}
InputArchive& operator>>(InputArchive& archive, OrderedDict<std::string, Tensor>& dict) {
  dict = named_tensors(archive.values());
  return archive;
}
InputArchive& operator>>(InputArchive& archive, data::DataLoaderState& state) {
  IValue seed, epoch, position;
  archive.read("seed", seed);
  archive.read("epoch", epoch);
  archive.read("position", position);
  state = {uint64_t(seed.toInt()), uint64_t(epoch.toInt()), uint64_t(position.toInt())};
  return archive;
}

}  // namespace vesta::serialize
