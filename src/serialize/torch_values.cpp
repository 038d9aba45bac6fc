// The meaning of a checkpoint's pickle. Everything a tensor claims (sizes, strides, offset) is checked against the bytes
// of its storage before a view is made.
#include "serialize/torch_values.h"

#include <algorithm>

#include "serialize/format_error.h"
#include "vesta/ops.h"

namespace vesta {
namespace {

// A pickle can name one list many times over, and so describe more values than it has bytes.
constexpr size_t kMaxValues = 1'000'000;
constexpr size_t kMaxTorchDims = 64;

class Converter {
 public:
  Converter(const PickleGraph& graph, TorchStorages& storages, const std::string& where_)
      : graph_(graph),
        storages_(storages),
        where(where_),
        budget_(std::max(kMaxValues, 4 * graph.nodes.size())) {}

  IValue value(PickleId id) {
    VESTA_FORMAT_CHECK(++depth_ <= kMaxTorchDepth, "values lie in each other more than ", kMaxTorchDepth,
                       " deep, or contain themselves");
    VESTA_FORMAT_CHECK(budget_-- > 0, "the same values are repeated too often");
    IValue result = value_of(graph_.nodes[id], id);
    --depth_;
    return result;
  }

 private:
  using Items = std::vector<PickleId>;

  IValue value_of(const PickleNode& node, PickleId id) {
    switch (node.kind) {
      case PickleKind::None:
        return {};
      case PickleKind::Bool:
        return node.integer != 0;
      case PickleKind::Int:
        return node.integer;
      case PickleKind::Double:
        return node.number;
      case PickleKind::Text:
      case PickleKind::Bytes:
        return std::string(graph_.text_of(id));
      case PickleKind::List:
        return GenericList(values(graph_.items_of(id)));
      case PickleKind::Tuple:
        return GenericTuple{values(graph_.items_of(id))};
      case PickleKind::Dict:
        return dict(id);
      case PickleKind::Object:
        return node.argument == kNoPickle ? IValue(GenericDict()) : value(node.argument);
      case PickleKind::Global:
        VESTA_FORMAT_CHECK(node.global == PickleGlobal::DTypeName,
                           "a Python name stands where a value is expected");
        return node.dtype;
      case PickleKind::Reference:
        VESTA_CHECK_AS(NotImplementedError, false, where, ": a storage outside of a tensor is not supported");
        return {};
      case PickleKind::Call:
        return call(node, id);
    }
    return {};
  }

  std::vector<IValue> values(const Items& ids) {
    std::vector<IValue> out;
    out.reserve(ids.size());
    for (PickleId id : ids) out.push_back(value(id));
    return out;
  }
  GenericDict dict(PickleId id) {
    GenericDict out;
    const Items& items = graph_.items_of(id);
    for (size_t i = 0; i + 1 < items.size(); i += 2) {
      IValue key = value(items[i]);
      VESTA_FORMAT_CHECK(!key.isTensor() && !key.isList() && !key.isGenericDict() && !key.isComplexDouble(),
                         "a ", key.tagKind(), " is the key of a dict");
      out.insert_or_assign(std::move(key), value(items[i + 1]));
    }
    return out;
  }

  IValue call(const PickleNode& node, PickleId id) {
    const Items& arguments = graph_.items_of(node.argument);
    switch (node.global) {
      case PickleGlobal::RebuildTensor:
      case PickleGlobal::RebuildTensorV2:
      case PickleGlobal::RebuildTensorV3:
      case PickleGlobal::RebuildParameter:
      case PickleGlobal::RebuildParameterWithState:
      case PickleGlobal::RebuildFromType: {
        if (const auto it = tensors_.find(id); it != tensors_.end()) return it->second;
        Tensor t = tensor(node.global, arguments);
        tensors_.emplace(id, t);
        return t;
      }
      case PickleGlobal::Size:
        VESTA_FORMAT_CHECK(arguments.size() == 1 && is(arguments[0], PickleKind::Tuple),
                           "torch.Size without a tuple of sizes");
        return value(arguments[0]);
      case PickleGlobal::DeviceName:
        return device(arguments);
      case PickleGlobal::EncodeText:
        VESTA_FORMAT_CHECK(arguments.size() == 2 && is(arguments[0], PickleKind::Text) &&
                               is(arguments[1], PickleKind::Text) && graph_.text_of(arguments[1]) == "latin1",
                           "bytes that are not given as latin1 text");
        return latin1(graph_.text_of(arguments[0]));
      case PickleGlobal::Complex:
        VESTA_FORMAT_CHECK(arguments.size() == 2, "a complex number without two parts");
        return std::complex<double>(number(arguments[0]), number(arguments[1]));
      case PickleGlobal::TypedList:
        VESTA_FORMAT_CHECK(arguments.size() == 1 && is(arguments[0], PickleKind::List),
                           "a typed list without its list");
        return value(arguments[0]);
      case PickleGlobal::TypeTag:
        VESTA_FORMAT_CHECK(arguments.size() == 2, "a typed value without its type");
        return value(arguments[0]);
      default:
        VESTA_FORMAT_CHECK(false, "a call that is not known");
        return {};
    }
  }

  bool is(PickleId id, PickleKind kind) const { return graph_.nodes[id].kind == kind; }
  int64_t integer(PickleId id, const char* what) const {
    VESTA_FORMAT_CHECK(is(id, PickleKind::Int), "the ", what, " of a tensor is not a whole number");
    return graph_.nodes[id].integer;
  }
  double number(PickleId id) const {
    const PickleNode& node = graph_.nodes[id];
    VESTA_FORMAT_CHECK(node.kind == PickleKind::Double || node.kind == PickleKind::Int,
                       "a part of a complex number is not a number");
    return node.kind == PickleKind::Int ? double(node.integer) : node.number;
  }
  bool boolean(PickleId id, const char* what) const {
    VESTA_FORMAT_CHECK(is(id, PickleKind::Bool), "the ", what, " of a tensor is not a bool");
    return graph_.nodes[id].integer != 0;
  }

  IValue device(const Items& arguments) {
    VESTA_FORMAT_CHECK((arguments.size() == 1 || arguments.size() == 2) && is(arguments[0], PickleKind::Text),
                       "torch.device without a name");
    std::string name(graph_.text_of(arguments[0]));
    if (arguments.size() == 2) name += ":" + std::to_string(integer(arguments[1], "device"));
    try {
      return Device(name == "cpu:0" ? "cpu" : name);
    } catch (const Error&) {
      throw NotImplementedError(detail::message(where, ": the device ", shown(name), " is not supported"));
    }
  }

  std::string latin1(std::string_view utf8) const {
    std::string out;
    for (size_t i = 0; i < utf8.size(); ++i) {
      unsigned code = uint8_t(utf8[i]);
      if (code >= 0x80) {  // two bytes up to U+00FF; the machine has checked that the text is UTF-8
        VESTA_FORMAT_CHECK(code == 0xc2 || code == 0xc3, "bytes given as text beyond latin1");
        code = (code & 3) << 6 | (uint8_t(utf8[++i]) & 0x3f);
      }
      out += char(code);
    }
    return out;
  }

  Tensor tensor(PickleGlobal how, const Items& arguments) {
    VESTA_FORMAT_CHECK(++depth_ <= kMaxTorchDepth, "tensors lie in each other more than ", kMaxTorchDepth,
                       " deep");
    Tensor t = build_tensor(how, arguments);
    --depth_;
    return t;
  }

  Tensor build_tensor(PickleGlobal how, const Items& a) {
    switch (how) {
      case PickleGlobal::RebuildFromType: {  // (function, class, its arguments, attributes)
        VESTA_FORMAT_CHECK(a.size() == 4 && is(a[0], PickleKind::Global) && is(a[1], PickleKind::Global) &&
                               is(a[2], PickleKind::Tuple),
                           "_rebuild_from_type_v2 without a function, a class and a tuple");
        const PickleGlobal inner = graph_.nodes[a[0]].global, type = graph_.nodes[a[1]].global;
        VESTA_FORMAT_CHECK(type == PickleGlobal::Tensor || type == PickleGlobal::Parameter,
                           "a tensor of a class that is not known");
        return tensor(inner, graph_.items_of(a[2]));
      }
      case PickleGlobal::RebuildParameter:
      case PickleGlobal::RebuildParameterWithState: {  // (tensor, requires_grad, hooks[, attributes])
        VESTA_FORMAT_CHECK(a.size() == (how == PickleGlobal::RebuildParameter ? 3u : 4u), "a parameter with ",
                           a.size(), " arguments");
        const IValue data = value(a[0]);
        VESTA_FORMAT_CHECK(data.isTensor(), "a parameter is made of a ", data.tagKind());
        Tensor t = data.toTensor().detach();
        set_requires_grad(t, boolean(a[1], "requires_grad"));
        return t;
      }
      case PickleGlobal::RebuildTensor:  // (storage, offset, size, stride)
        VESTA_FORMAT_CHECK(a.size() == 4, "_rebuild_tensor with ", a.size(), " arguments");
        return view(a, DType::Undefined);
      case PickleGlobal::RebuildTensorV2:    // ... requires_grad, hooks[, metadata]
      case PickleGlobal::RebuildTensorV3: {  // ... requires_grad, hooks, dtype[, metadata]
        const size_t least = how == PickleGlobal::RebuildTensorV2 ? 6 : 7;
        VESTA_FORMAT_CHECK(a.size() == least || a.size() == least + 1, "a tensor with ", a.size(),
                           " arguments");
        DType dtype = DType::Undefined;
        if (least == 7) {
          const PickleNode& name = graph_.nodes[a[6]];
          VESTA_FORMAT_CHECK(name.kind == PickleKind::Global && name.global == PickleGlobal::DTypeName,
                             "the dtype of a tensor is not a dtype");
          dtype = name.dtype;
        }
        Tensor t = view(a, dtype);
        VESTA_CHECK_AS(
            NotImplementedError,
            is(a[5], PickleKind::None) || (is(a[5], PickleKind::Dict) && graph_.items_of(a[5]).empty()),
            where, ": a tensor with backward hooks is not supported");
        if (a.size() > least && !is(a[least], PickleKind::None)) set_metadata(t, a[least]);
        set_requires_grad(t, boolean(a[4], "requires_grad"));
        return t;
      }
      default:
        VESTA_FORMAT_CHECK(false, "a tensor is made by something else than a tensor's function");
        return {};
    }
  }

  void set_requires_grad(const Tensor& t, bool on) {
    if (!on) return;
    VESTA_FORMAT_CHECK(t.is_floating_point() || t.is_complex(), "a tensor of ", dtype_name(t.dtype()),
                       " claims to require a gradient");
    t.set_requires_grad(true);
  }

  // The lazy conjugate and negative bits.
  void set_metadata(const Tensor& t, PickleId id) {
    VESTA_FORMAT_CHECK(is(id, PickleKind::Dict), "the metadata of a tensor are not a dict");
    const Items& items = graph_.items_of(id);
    for (size_t i = 0; i + 1 < items.size(); i += 2) {
      const std::string_view name = is(items[i], PickleKind::Text) ? graph_.text_of(items[i]) : "";
      VESTA_CHECK_AS(NotImplementedError, name == "conj" || name == "neg", where, ": the tensor attribute ",
                     shown(name), " is not supported");
      if (!boolean(items[i + 1], "conjugate or negative bit")) continue;
      VESTA_FORMAT_CHECK(name == "neg" || t.is_complex(), "a real tensor claims to be conjugated");
      t.impl()->bits |= name == "conj" ? TensorImpl::kConj : TensorImpl::kNeg;
    }
  }

  std::vector<int64_t> whole_numbers(PickleId id, const char* what) const {
    VESTA_FORMAT_CHECK(is(id, PickleKind::Tuple) || is(id, PickleKind::Call), "the ", what,
                       " of a tensor is not a tuple");
    if (is(id, PickleKind::Call)) {  // torch.Size((2, 3))
      const PickleNode& node = graph_.nodes[id];
      VESTA_FORMAT_CHECK(node.global == PickleGlobal::Size && graph_.items_of(node.argument).size() == 1 &&
                             is(graph_.items_of(node.argument)[0], PickleKind::Tuple),
                         "the ", what, " of a tensor is not a tuple");
      id = graph_.items_of(node.argument)[0];
    }
    const Items& items = graph_.items_of(id);
    VESTA_FORMAT_CHECK(items.size() <= kMaxTorchDims, "a tensor has ", items.size(), " dims, at most ",
                       kMaxTorchDims, " are supported");
    std::vector<int64_t> out;
    for (PickleId item : items) {
      out.push_back(integer(item, what));
      VESTA_FORMAT_CHECK(out.back() >= 0, "a tensor has a ", what, " of ", out.back());
    }
    return out;
  }

  // The view of (storage, offset, size, stride). `dtype`: Undefined where the storage says it.
  Tensor view(const Items& a, DType dtype) {
    VESTA_FORMAT_CHECK(is(a[0], PickleKind::Reference), "a tensor has no storage");
    const Items& r = graph_.items_of(graph_.nodes[a[0]].argument);
    VESTA_FORMAT_CHECK((r.size() == 5 || (r.size() == 6 && is(r[5], PickleKind::None))) &&
                           is(r[0], PickleKind::Text) && graph_.text_of(r[0]) == "storage" &&
                           is(r[1], PickleKind::Global) &&
                           graph_.nodes[r[1]].global == PickleGlobal::Storage && is(r[2], PickleKind::Text) &&
                           is(r[4], PickleKind::Int),
                       "a storage is not given as ('storage', class, key, device, size)");
    const DType storage_type = graph_.nodes[r[1]].dtype;
    if (dtype == DType::Undefined) dtype = storage_type;
    VESTA_FORMAT_CHECK(dtype != DType::Undefined, "a tensor over an untyped storage has no dtype");
    const std::string key(graph_.text_of(r[2]));
    TorchStorage& storage = open(key);
    const uint64_t bytes = uint64_t(storage.bytes.numel()), width = element_size(dtype);
    const uint64_t storage_width = storage_type == DType::Undefined ? 1 : element_size(storage_type);
    const int64_t claimed = graph_.nodes[r[4]].integer;
    VESTA_FORMAT_CHECK(claimed >= 0 && uint64_t(claimed) <= bytes / storage_width, "storage ", shown(key),
                       " claims ", claimed, " elements of ", storage_width, " bytes, but has ", bytes,
                       " bytes");

    const int64_t offset = integer(a[1], "offset");
    const auto sizes = whole_numbers(a[2], "size"), strides = whole_numbers(a[3], "stride");
    VESTA_FORMAT_CHECK(sizes.size() == strides.size(), "a tensor has ", sizes.size(), " sizes and ",
                       strides.size(), " strides");
    // Sizes beside a zero count too: strides are made of them.
    int64_t total = int64_t(width), last = offset;
    bool empty = false, fits = offset >= 0;
    for (size_t d = 0; d < sizes.size(); ++d) {
      empty |= sizes[d] == 0;
      int64_t reach = 0;
      fits = fits && !__builtin_mul_overflow(total, std::max<int64_t>(sizes[d], 1), &total);
      if (sizes[d] > 1)
        fits = fits && !__builtin_mul_overflow(sizes[d] - 1, strides[d], &reach) &&
               !__builtin_add_overflow(last, reach, &last);
    }
    const uint64_t elements = bytes / width;
    fits = fits && (empty ? uint64_t(offset) <= elements : uint64_t(last) < elements);
    VESTA_FORMAT_CHECK(fits, "a tensor of sizes ", IValue(sizes).str(), ", strides ", IValue(strides).str(),
                       " and offset ", offset, " (", dtype_name(dtype), ") does not lie in the ", bytes,
                       " bytes of storage ", shown(key));
    prepare(storage, dtype, key);
    return view_of_storage(storage.bytes, dtype, sizes, strides, uint64_t(offset) * width);
  }

  TorchStorage& open(const std::string& key) {
    if (const auto it = opened_.find(key); it != opened_.end()) return it->second;
    return opened_.emplace(key, storages_.open(key)).first->second;
  }

  // Turns big-endian elements around, and looks at bools, once a storage.
  void prepare(TorchStorage& storage, DType dtype, const std::string& key) {
    auto* data = static_cast<std::byte*>(storage.bytes.data_ptr());
    const size_t bytes = size_t(storage.bytes.numel());
    if (storage.big_endian) {
      const size_t width = element_size(dtype) / (is_complex(dtype) ? 2 : 1);
      if (storage.turned == 0) {
        swap_bytes(data, bytes, dtype);
        storage.turned = width;
      }
      VESTA_CHECK_AS(NotImplementedError, storage.turned == width, where, ": big-endian storage ", shown(key),
                     " is used with two element sizes, which is not supported");
    }
    if (dtype == kBool && !storage.bools_checked) {
      const size_t bad = find_bad_bool(data, bytes);
      VESTA_FORMAT_CHECK(bad == bytes, "element ", bad, " of bool storage ", shown(key), " is ",
                         int(data[bad]), ", expected 0 or 1");
      storage.bools_checked = true;
    }
  }

  const PickleGraph& graph_;
  TorchStorages& storages_;
  const std::string& where;  // NOLINT: the name that VESTA_FORMAT_CHECK uses
  size_t budget_;
  int depth_ = 0;
  std::unordered_map<std::string, TorchStorage> opened_;
  std::unordered_map<PickleId, Tensor> tensors_;  // one object named twice stays one
};

}  // namespace

IValue values_of_pickle(const PickleGraph& graph, TorchStorages& storages, const std::string& where) {
  return Converter(graph, storages, where).value(graph.root);
}

}  // namespace vesta
