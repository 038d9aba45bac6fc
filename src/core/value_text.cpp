// Values as text, and schema defaults as values.
#include "core/value_text.h"

#include <deque>
#include <limits>
#include <mutex>
#include <sstream>

#include "vesta/tensor.h"

namespace vesta {
namespace {

// What defaults point to: it lives as long as the process, as registries do.
template <class T>
const T& kept(T value) {
  static auto* all = new std::deque<T>;
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  return all->emplace_back(std::move(value));
}

Value int_list(const SchemaArg& arg, const std::string& text) {
  std::vector<int64_t> items;
  std::string number;
  for (char c : text + ",") {
    if (c == '-' || (c >= '0' && c <= '9'))
      number += c;
    else if (!number.empty()) {
      items.push_back(std::stoll(number));
      number.clear();
    }
  }
  if (items.size() == 1 && arg.list_size > 1) items.assign(size_t(arg.list_size), items.front());
  return Value(IntArrayRef(kept(std::move(items))));
}

}  // namespace

Value parse_default(const SchemaArg& arg) {
  const std::string& d = arg.default_text;
  if (!arg.has_default || d == "None") return Value();
  if (arg.list) {
    if (arg.type == ArgType::Int) return int_list(arg, d);
    VESTA_CHECK(d == "[]", "schema: default ", d, " of ", arg.name, " is not supported");
    return arg.type == ArgType::Tensor  ? Value(TensorList())
           : arg.type == ArgType::Float ? Value(ArrayRef<double>())
                                        : Value(ArrayRef<bool>());
  }
  if (d == "True" || d == "False") return Value(d == "True");
  if (d == "Mean") return Value(int64_t(1));
  if (d == "Sum") return Value(int64_t(2));
  if (d == "contiguous_format") return Value(MemoryFormat::Contiguous);
  if (d == "preserve_format") return Value(MemoryFormat::Preserve);
  if (d == "inf") return Value(std::numeric_limits<double>::infinity());
  switch (arg.type) {
    case ArgType::String: {
      return Value(std::string_view(kept(d.substr(1, d.size() - 2))));
    }
    case ArgType::DType:
      return Value(d == "long" ? DType::Int64 : parse_dtype(d.data(), d.size()));
    case ArgType::Int:
      return Value(int64_t(std::stoll(d)));
    case ArgType::Float:
      return Value(std::stod(d));
    case ArgType::Scalar:
      return d.find_first_of(".e") == std::string::npos ? Value(int64_t(std::stoll(d))) : Value(std::stod(d));
    default:
      throw ValueError("schema: default " + d + " of " + arg.name + " is not supported");
  }
}

std::string value_text(const Value& v) {
  std::ostringstream out;
  auto list = [&](auto* items) {
    out << "[";
    for (uint32_t k = 0; k < v.length; ++k) out << (k ? ", " : "") << items[k];
    out << "]";
  };
  switch (v.kind) {
    case ValueKind::None:
      return "None";
    case ValueKind::Tensor: {
      out << "Tensor[";
      for (int d = 0; d < v.tensor->ndim; ++d) out << (d ? ", " : "") << v.tensor->sizes_data()[d];
      out << "]";
      break;
    }
    case ValueKind::Bool:
    case ValueKind::Int:
    case ValueKind::Float:
    case ValueKind::Complex:
      return v.scalar().str();
    case ValueKind::String:
      out << '"' << v.string() << '"';
      break;
    case ValueKind::IntList:
      list(static_cast<const int64_t*>(v.ptr));
      break;
    case ValueKind::FloatList:
      list(static_cast<const double*>(v.ptr));
      break;
    case ValueKind::BoolList:
      list(static_cast<const bool*>(v.ptr));
      break;
    case ValueKind::ScalarList: {
      auto* items = static_cast<const Scalar*>(v.ptr);
      out << "[";
      for (uint32_t k = 0; k < v.length; ++k) out << (k ? ", " : "") << items[k].str();
      out << "]";
      break;
    }
    case ValueKind::TensorList:
      out << "Tensor[](" << v.length << ")";
      break;
    case ValueKind::DType:
      return dtype_name(DType(v.i));
    case ValueKind::Device:
      return Device::unpack(uint8_t(v.i)).str();
    case ValueKind::Layout:
      return "strided";
    case ValueKind::MemoryFormat: {
      const char* names[] = {"contiguous_format", "preserve_format", "channels_last", "channels_last_3d"};
      return names[v.i];
    }
    case ValueKind::Generator:
      return "generator";
  }
  return out.str();
}

}  // namespace vesta
