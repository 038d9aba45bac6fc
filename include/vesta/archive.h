#pragma once
// save and load with libtorch's names, and the archives underneath:
//   save(model, "model.pt");            load(model, "model.pt");
//   save(optimizer, stream);            load(optimizer, stream);
//   save(tensors, "tensors.pt");        load(tensors, "tensors.pt");   // a tensor, or a std::vector of them
// The files are PyTorch checkpoints: a dict of names and tensors that torch.load(path, weights_only=True) reads, and
// `model.load_state_dict` there takes. load also reads what Python's torch.save and libtorch's torch::save wrote; see
// vesta/torch_file.h for what is accepted and which errors are thrown.
#include <concepts>
#include <functional>
#include <iosfwd>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "vesta/ivalue.h"
#include "vesta/module.h"
#include "vesta/ordered_dict.h"

namespace vesta {

namespace data {
struct DataLoaderState;
}

namespace serialize {

// Values by name, to be written. Externally synchronised.
class OutputArchive {
 public:
  // ValueError where the key is there.
  void write(const std::string& key, const IValue& value);
  void write(const std::string& key, const Tensor& tensor, bool is_buffer = false);
  void write(const std::string& key, const OutputArchive& nested);
  template <class... Args>
  void operator()(Args&&... args) {
    write(std::forward<Args>(args)...);
  }
  const GenericDict& values() const { return values_; }

  // The file appears complete or not at all. IoError: the system's reason.
  void save_to(const std::string& path) const;
  void save_to(std::ostream& stream) const;
  // `write(data, bytes)` returns how much it took; less than all is an IoError.
  void save_to(const std::function<size_t(const void*, size_t)>& write) const;

 private:
  GenericDict values_;
};

// Values by name, as read. What was saved as a single value has the key "0"; lists have "0", "1", and so on.
class InputArchive {
 public:
  void load_from(const std::string& path, Device device = kCPU);
  // From the stream's position to its end.
  void load_from(std::istream& stream, Device device = kCPU);
  void load_from(const char* data, size_t bytes, Device device = kCPU);
  // `read(position, data, bytes)` returns how much it gave; less than asked is an IoError.
  void load_from(const std::function<size_t(uint64_t position, void* data, size_t bytes)>& read,
                 const std::function<size_t()>& size, Device device = kCPU);

  // False where the key is missing, or its value is not of that kind. A tensor that is defined keeps its identity and
  // requires_grad and gets the values (and sizes and dtype) read; otherwise it becomes the tensor read.
  bool try_read(const std::string& key, IValue& value) const;
  bool try_read(const std::string& key, Tensor& tensor, bool is_buffer = false) const;
  bool try_read(const std::string& key, InputArchive& nested) const;
  // The same; ValueError where it cannot be read.
  template <class T>
  void read(const std::string& key, T& value) const {
    VESTA_CHECK(try_read(key, value), no_such_key(key));
  }
  void read(const std::string& key, Tensor& tensor, bool is_buffer) const {
    VESTA_CHECK(try_read(key, tensor, is_buffer), no_such_key(key));
  }
  template <class... Args>
  void operator()(Args&&... args) const {
    read(std::forward<Args>(args)...);
  }
  std::vector<std::string> keys() const;
  const GenericDict& values() const { return values_; }

  // All tensors by dotted name. Where the archive is the state dict of a Python optimiser ("state" and "param_groups"),
  // they are named as those of `own`, and options that `own` has not got are left out.
  OrderedDict<std::string, Tensor> state_dict(const OrderedDict<std::string, Tensor>& own) const;

 private:
  void set_root(IValue root);
  std::string no_such_key(const std::string& key) const;
  GenericDict values_;
};

// A value with a state dict: module, optimiser, scheduler.
template <class T>
concept Stateful = requires(const T& value, T& target, const OrderedDict<std::string, Tensor>& dict) {
  { value.state_dict() } -> std::convertible_to<OrderedDict<std::string, Tensor>>;
  target.load_state_dict(dict);
};
// A type of the user's with functions of its own.
template <class T>
concept SelfSaving = requires(const T& value, T& target, OutputArchive& out, InputArchive& in) {
  value.save(out);
  target.load(in);
};

OutputArchive& operator<<(OutputArchive& archive, const Tensor& tensor);  // key "0"
OutputArchive& operator<<(OutputArchive& archive, const IValue& value);   // key "0"
OutputArchive& operator<<(OutputArchive& archive, const std::vector<Tensor>& tensors);
OutputArchive& operator<<(OutputArchive& archive, const OrderedDict<std::string, Tensor>& dict);
OutputArchive& operator<<(OutputArchive& archive, const data::DataLoaderState& state);
InputArchive& operator>>(InputArchive& archive, Tensor& tensor);
InputArchive& operator>>(InputArchive& archive, IValue& value);  // a single value, or the dict of all
InputArchive& operator>>(InputArchive& archive, std::vector<Tensor>& tensors);  // appended
InputArchive& operator>>(InputArchive& archive, OrderedDict<std::string, Tensor>& dict);
InputArchive& operator>>(InputArchive& archive, data::DataLoaderState& state);

template <class T>
requires(Stateful<T> || SelfSaving<T>) OutputArchive& operator<<(OutputArchive& archive, const T& value) {
  if constexpr (SelfSaving<T>)
    value.save(archive);
  else
    archive << OrderedDict<std::string, Tensor>(value.state_dict());
  return archive;
}
// Strict: ValueError lists what is missing, unexpected or of another shape; then nothing is changed.
template <class T>
requires(Stateful<T> || SelfSaving<T>) InputArchive& operator>>(InputArchive& archive, T& value) {
  if constexpr (SelfSaving<T>)
    value.load(archive);
  else
    value.load_state_dict(archive.state_dict(value.state_dict()));
  return archive;
}
template <class M>
OutputArchive& operator<<(OutputArchive& archive, const nn::ModuleHolder<M>& holder) {
  return archive << *holder;
}
template <class M>
InputArchive& operator>>(InputArchive& archive, const nn::ModuleHolder<M>& holder) {
  return archive >> *holder;
}
template <class M>
OutputArchive& operator<<(OutputArchive& archive, const nn::ModulePtr<M>& module) {
  return archive << *module;
}
template <class M>
InputArchive& operator>>(InputArchive& archive, const nn::ModulePtr<M>& module) {
  return archive >> *module;
}

}  // namespace serialize

// `to`: as OutputArchive::save_to takes; `from`: as InputArchive::load_from.
template <class Value, class... To>
void save(const Value& value, To&&... to) {
  serialize::OutputArchive archive;
  archive << value;
  archive.save_to(std::forward<To>(to)...);
}
template <class Value, class... From>
void load(Value& value, From&&... from) {
  serialize::InputArchive archive;
  archive.load_from(std::forward<From>(from)...);
  archive >> value;
}

}  // namespace vesta
