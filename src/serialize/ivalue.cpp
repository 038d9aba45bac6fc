// IValue and its dict.
#include "vesta/ivalue.h"

#include <functional>
#include <memory>
#include <unordered_map>

#include "serialize/format_error.h"

namespace vesta {

namespace {
constexpr const char* kKindNames[] = {"None",  "bool",   "int",    "double", "complex", "string",
                                      "dtype", "device", "tensor", "list",   "tuple",   "dict"};

size_t mix(size_t seed, size_t value) {
  return seed ^ (value + 0x9e3779b97f4a7c15ull + (seed << 6) + (seed >> 2));
}
}  // namespace

// Keys are compared as kinds and values, so 1, 1.0 and True are three keys here, one in Python.
size_t hash_key(const IValue& key) {
  const size_t kind = size_t(key.kind());
  switch (key.kind()) {
    case IValue::Kind::None:
      return kind;
    case IValue::Kind::Bool:
      return mix(kind, key.toBool());
    case IValue::Kind::Int:
      return mix(kind, std::hash<int64_t>()(key.toInt()));
    case IValue::Kind::Double:
      return mix(kind, std::hash<double>()(key.toDouble()));
    case IValue::Kind::String:
      return mix(kind, std::hash<std::string>()(key.toStringRef()));
    case IValue::Kind::DType:
      return mix(kind, size_t(key.toDType()));
    case IValue::Kind::Device:
      return mix(kind, key.toDevice().packed());
    case IValue::Kind::Tuple: {
      size_t hash = kind;
      for (auto& element : key.toTuple()) hash = mix(hash, hash_key(element));
      return hash;
    }
    default:
      throw TypeError(detail::message("dict: a ", key.tagKind(), " cannot be a key"));
  }
}

// The hash table holds positions by hash, so that keys are stored once.
struct GenericDict::Impl {
  std::vector<Entry> entries;
  std::unordered_multimap<size_t, size_t> positions;
  IValue* find(const IValue& key, size_t hash) {
    auto [it, end] = positions.equal_range(hash);
    for (; it != end; ++it)
      if (entries[it->second].first == key) return &entries[it->second].second;
    return nullptr;
  }
};

GenericDict::GenericDict() : impl_(nullptr) {}
GenericDict::GenericDict(std::initializer_list<Entry> entries) : GenericDict() {
  for (auto& e : entries) insert_or_assign(e.first, e.second);
}
GenericDict::GenericDict(const GenericDict& o) : impl_(o.impl_ ? new Impl(*o.impl_) : nullptr) {}
GenericDict::GenericDict(GenericDict&& o) noexcept : impl_(std::exchange(o.impl_, nullptr)) {}
GenericDict& GenericDict::operator=(GenericDict o) noexcept {
  std::swap(impl_, o.impl_);
  return *this;
}
GenericDict::~GenericDict() { delete impl_; }

size_t GenericDict::size() const { return impl_ ? impl_->entries.size() : 0; }
const GenericDict::Entry* GenericDict::begin() const { return impl_ ? impl_->entries.data() : nullptr; }
const GenericDict::Entry* GenericDict::end() const { return begin() + size(); }

bool GenericDict::insert(IValue key, IValue value) {
  const size_t hash = hash_key(key);
  if (!impl_) impl_ = new Impl;
  if (impl_->find(key, hash)) return false;
  impl_->positions.emplace(hash, impl_->entries.size());
  impl_->entries.emplace_back(std::move(key), std::move(value));
  return true;
}
void GenericDict::insert_or_assign(IValue key, IValue value) {
  if (impl_)
    if (IValue* there = impl_->find(key, hash_key(key))) {
      *there = std::move(value);
      return;
    }
  insert(std::move(key), std::move(value));
}
const IValue* GenericDict::find(const IValue& key) const {
  const size_t hash = hash_key(key);
  return impl_ ? impl_->find(key, hash) : nullptr;
}
const IValue& GenericDict::at(const IValue& key) const {
  const IValue* value = find(key);
  VESTA_CHECK_AS(IndexError, value, "dict: the key ", key.str(), " is missing");
  return *value;
}

IValue::IValue(const std::vector<Tensor>& v) : data_(GenericList(v.begin(), v.end())) {}
IValue::IValue(const std::vector<int64_t>& v) : data_(GenericList(v.begin(), v.end())) {}

const char* IValue::tagKind() const { return kKindNames[size_t(kind())]; }

template <class T>
const T& IValue::get(Kind wanted) const {
  const T* value = std::get_if<T>(&data_);
  VESTA_CHECK_AS(TypeError, value, "IValue: expected a ", kKindNames[size_t(wanted)], ", got a ", tagKind());
  return *value;
}

bool IValue::toBool() const { return get<bool>(Kind::Bool); }
int64_t IValue::toInt() const { return get<int64_t>(Kind::Int); }
double IValue::toDouble() const { return isInt() ? double(toInt()) : get<double>(Kind::Double); }
std::complex<double> IValue::toComplexDouble() const { return get<std::complex<double>>(Kind::Complex); }
const std::string& IValue::toStringRef() const { return get<std::string>(Kind::String); }
DType IValue::toDType() const { return get<DType>(Kind::DType); }
Device IValue::toDevice() const { return get<Device>(Kind::Device); }
const Tensor& IValue::toTensor() const { return get<Tensor>(Kind::Tensor); }
const GenericList& IValue::toList() const { return get<GenericList>(Kind::List); }
const std::vector<IValue>& IValue::toTuple() const { return get<GenericTuple>(Kind::Tuple).elements; }
const GenericDict& IValue::toDict() const { return get<GenericDict>(Kind::Dict); }
GenericList& IValue::list_ref() { return const_cast<GenericList&>(toList()); }
GenericDict& IValue::dict_ref() { return const_cast<GenericDict&>(toDict()); }

std::vector<Tensor> IValue::toTensorVector() const {
  std::vector<Tensor> out;
  for (auto& v : isTuple() ? toTuple() : toList()) out.push_back(v.toTensor());
  return out;
}
std::vector<int64_t> IValue::toIntVector() const {
  std::vector<int64_t> out;
  for (auto& v : isTuple() ? toTuple() : toList()) out.push_back(v.toInt());
  return out;
}

bool operator==(const IValue& a, const IValue& b) {
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case IValue::Kind::Tensor:
      return a.toTensor().is_same(b.toTensor());
    case IValue::Kind::List:
      return a.toList() == b.toList();
    case IValue::Kind::Tuple:
      return a.toTuple() == b.toTuple();
    case IValue::Kind::Dict: {
      const GenericDict &x = a.toDict(), &y = b.toDict();
      if (x.size() != y.size()) return false;
      for (auto& [key, value] : x) {
        const IValue* other = y.find(key);
        if (!other || !(*other == value)) return false;
      }
      return true;
    }
    case IValue::Kind::None:
      return true;
    case IValue::Kind::Bool:
      return a.toBool() == b.toBool();
    case IValue::Kind::Int:
      return a.toInt() == b.toInt();
    case IValue::Kind::Double:
      return a.toDouble() == b.toDouble();
    case IValue::Kind::Complex:
      return a.toComplexDouble() == b.toComplexDouble();
    case IValue::Kind::String:
      return a.toStringRef() == b.toStringRef();
    case IValue::Kind::DType:
      return a.toDType() == b.toDType();
    case IValue::Kind::Device:
      return a.toDevice() == b.toDevice();
  }
  return false;
}

namespace {

void print(const IValue& v, std::string& out);

template <class Items>
void print_items(const Items& items, std::string& out) {
  bool first = true;
  for (auto& item : items) {
    if (!std::exchange(first, false)) out += ", ";
    print(item, out);
  }
}

void print(const IValue& v, std::string& out) {
  switch (v.kind()) {
    case IValue::Kind::None:
      out += "None";
      break;
    case IValue::Kind::Bool:
      out += v.toBool() ? "True" : "False";
      break;
    case IValue::Kind::Int:
      out += std::to_string(v.toInt());
      break;
    case IValue::Kind::Double:
      out += detail::message(v.toDouble());
      break;
    case IValue::Kind::Complex:
      out += detail::message(v.toComplexDouble());
      break;
    case IValue::Kind::String:
      out += shown(v.toStringRef());
      break;
    case IValue::Kind::DType:
      out += dtype_name(v.toDType());
      break;
    case IValue::Kind::Device:
      out += v.toDevice().str();
      break;
    case IValue::Kind::Tensor: {
      const Tensor& t = v.toTensor();
      out += std::string(dtype_name(t.dtype())) + "[";
      for (int64_t d = 0; d < t.dim(); ++d) out += (d ? ", " : "") + std::to_string(t.sizes()[size_t(d)]);
      out += "]";
      break;
    }
    case IValue::Kind::List:
      out += "[";
      print_items(v.toList(), out);
      out += "]";
      break;
    case IValue::Kind::Tuple:
      out += "(";
      print_items(v.toTuple(), out);
      out += v.toTuple().size() == 1 ? ",)" : ")";
      break;
    case IValue::Kind::Dict: {
      out += "{";
      bool first = true;
      for (auto& [key, value] : v.toDict()) {
        if (!std::exchange(first, false)) out += ", ";
        print(key, out);
        out += ": ";
        print(value, out);
      }
      out += "}";
    }
  }
}

}  // namespace

std::string IValue::str() const {
  std::string out;
  print(*this, out);
  return out;
}

}  // namespace vesta
