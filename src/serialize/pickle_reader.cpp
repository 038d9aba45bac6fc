// The pickle machine: a stack and a memo of node numbers. Each opcode adds at most one node.
#include <cstring>

#include "serialize/format_error.h"
#include "serialize/pickle.h"

namespace vesta {
namespace {

struct StorageName {
  std::string_view storage, dtype;
  DType type;
};
// Types without a storage class of their own lie in an UntypedStorage.
constexpr StorageName kStorages[] = {{"FloatStorage", "float32", kFloat32},
                                     {"DoubleStorage", "float64", kFloat64},
                                     {"HalfStorage", "float16", kFloat16},
                                     {"BFloat16Storage", "bfloat16", kBFloat16},
                                     {"LongStorage", "int64", kInt64},
                                     {"IntStorage", "int32", kInt32},
                                     {"ShortStorage", "int16", kInt16},
                                     {"CharStorage", "int8", kInt8},
                                     {"ByteStorage", "uint8", kUInt8},
                                     {"BoolStorage", "bool", kBool},
                                     {"ComplexFloatStorage", "complex64", kComplex64},
                                     {"ComplexDoubleStorage", "complex128", kComplex128},
                                     {"ComplexHalfStorage", "complex32", kComplexHalf},
                                     {"", "uint16", kUInt16},
                                     {"", "uint32", kUInt32},
                                     {"", "uint64", kUInt64},
                                     {"", "float8_e4m3fn", kFloat8_e4m3fn},
                                     {"", "float8_e5m2", kFloat8_e5m2},
                                     {"", "float8_e4m3fnuz", kFloat8_e4m3fnuz},
                                     {"", "float8_e5m2fnuz", kFloat8_e5m2fnuz},
                                     {"", "float8_e8m0fnu", kFloat8_e8m0fnu},
                                     {"", "float4_e2m1fn_x2", kFloat4_e2m1fn_x2}};

// Types of PyTorch that Vesta has not got: told apart from names that are refused for safety.
constexpr std::string_view kOtherTypes[] = {"qint8",        "quint8",        "qint32",
                                            "QInt8Storage", "QUInt8Storage", "QInt32Storage"};

struct KnownGlobal {
  std::string_view module, name;
  PickleGlobal meaning;
};
constexpr KnownGlobal kGlobals[] = {
    {"collections", "OrderedDict", PickleGlobal::OrderedDict},
    {"collections", "Counter", PickleGlobal::OrderedDict},
    {"collections", "defaultdict", PickleGlobal::OrderedDict},
    {"builtins", "dict", PickleGlobal::OrderedDict},
    {"__builtin__", "dict", PickleGlobal::OrderedDict},
    {"torch._utils", "_rebuild_tensor", PickleGlobal::RebuildTensor},
    {"torch._utils", "_rebuild_tensor_v2", PickleGlobal::RebuildTensorV2},
    {"torch._utils", "_rebuild_tensor_v3", PickleGlobal::RebuildTensorV3},
    {"torch._utils", "_rebuild_parameter", PickleGlobal::RebuildParameter},
    {"torch._utils", "_rebuild_parameter_with_state", PickleGlobal::RebuildParameterWithState},
    {"torch._tensor", "_rebuild_from_type_v2", PickleGlobal::RebuildFromType},
    {"torch", "Tensor", PickleGlobal::Tensor},
    {"torch._tensor", "Tensor", PickleGlobal::Tensor},
    {"torch.nn.parameter", "Parameter", PickleGlobal::Parameter},
    {"torch", "Size", PickleGlobal::Size},
    {"torch", "device", PickleGlobal::DeviceName},
    {"_codecs", "encode", PickleGlobal::EncodeText},
    {"builtins", "complex", PickleGlobal::Complex},
    {"__builtin__", "complex", PickleGlobal::Complex},
    {"torch.jit._pickle", "build_intlist", PickleGlobal::TypedList},
    {"torch.jit._pickle", "build_doublelist", PickleGlobal::TypedList},
    {"torch.jit._pickle", "build_boollist", PickleGlobal::TypedList},
    {"torch.jit._pickle", "build_tensorlist", PickleGlobal::TypedList},
    {"torch.jit._pickle", "restore_type_tag", PickleGlobal::TypeTag},
};

class Machine {
 public:
  Machine(std::span<const std::byte> bytes, const std::string& where_)
      : data_(reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), kMaxPickleBytes)),
        cut_(bytes.size() > kMaxPickleBytes),
        where(where_) {}

  PickleGraph run() {
    while (step()) {
    }
    graph_.root = pop();
    graph_.bytes = at_;
    return std::move(graph_);
  }

 private:
  // False at STOP.
  bool step() {
    op_at_ = at_;
    const auto op = uint8_t(take(1)[0]);
    switch (op) {
      case 0x80: {  // PROTO
        const unsigned version = uint8_t(take(1)[0]);
        VESTA_CHECK_AS(NotImplementedError, version >= 2 && version <= 5, where, ": pickle protocol ",
                       version, " is not supported, expected 2 to 5");
        return true;
      }
      case 0x95:  // FRAME: only a hint
        take(8);
        return true;
      case '.':
        return false;
      case '(':
        marks_.push_back(stack_.size());
        return true;
      case '0':  // POP
        if (!marks_.empty() && marks_.back() == stack_.size())
          marks_.pop_back();
        else
          pop();
        return true;
      case '1':  // POP_MARK
        pop_mark();
        return true;
      case '2': {  // DUP
        const PickleId top = pop();
        stack_.push_back(top);
        stack_.push_back(top);
        return true;
      }
      case 'N':
        push({});
        return true;
      case 0x88:
      case 0x89:
        push_integer(PickleKind::Bool, op == 0x88);
        return true;
      case 'K':
        push_integer(PickleKind::Int, int64_t(fixed<uint8_t>()));
        return true;
      case 'M':
        push_integer(PickleKind::Int, int64_t(fixed<uint16_t>()));
        return true;
      case 'J':
        push_integer(PickleKind::Int, int64_t(fixed<int32_t>()));
        return true;
      case 0x8a:  // LONG1
        long_integer(fixed<uint8_t>());
        return true;
      case 0x8b: {  // LONG4
        const auto length = fixed<int32_t>();
        VESTA_FORMAT_CHECK(length >= 0, "an integer at byte ", op_at_, " has ", length, " bytes");
        long_integer(size_t(length));
        return true;
      }
      case 'G': {  // BINFLOAT, big-endian
        PickleNode node;
        node.kind = PickleKind::Double;
        char raw[8];
        const std::string_view bytes = take(8);
        for (size_t i = 0; i < 8; ++i) raw[i] = bytes[7 - i];
        std::memcpy(&node.number, raw, 8);
        push(node);
        return true;
      }
      case 'X':
        push_text(PickleKind::Text, fixed<uint32_t>());
        return true;
      case 0x8c:
        push_text(PickleKind::Text, fixed<uint8_t>());
        return true;
      case 0x8d:
        push_text(PickleKind::Text, fixed<uint64_t>());
        return true;
      case 'U':  // SHORT_BINSTRING, Python 2's text
        push_text(PickleKind::Text, fixed<uint8_t>());
        return true;
      case 'T':  // BINSTRING
        push_text(PickleKind::Text, uint64_t(fixed<uint32_t>()));
        return true;
      case 'C':
        push_text(PickleKind::Bytes, fixed<uint8_t>());
        return true;
      case 'B':
        push_text(PickleKind::Bytes, fixed<uint32_t>());
        return true;
      case 0x8e:
      case 0x96:  // BINBYTES8, BYTEARRAY8
        push_text(PickleKind::Bytes, fixed<uint64_t>());
        return true;
      case ']':
        push_items(PickleKind::List, {});
        return true;
      case '}':
        push_items(PickleKind::Dict, {});
        return true;
      case ')':
        push_items(PickleKind::Tuple, {});
        return true;
      case 't':
        push_items(PickleKind::Tuple, pop_mark());
        return true;
      case 0x85:
      case 0x86:
      case 0x87: {
        std::vector<PickleId> items(op - 0x84u);
        for (size_t i = items.size(); i-- > 0;) items[i] = pop();
        push_items(PickleKind::Tuple, std::move(items));
        return true;
      }
      case 'a': {
        const PickleId item = pop();
        items_on_top(PickleKind::List).push_back(item);
        return true;
      }
      case 'e': {
        const auto items = pop_mark();
        auto& list = items_on_top(PickleKind::List);
        list.insert(list.end(), items.begin(), items.end());
        return true;
      }
      case 's': {
        const PickleId value = pop(), key = pop();
        auto& dict = items_on_top(PickleKind::Dict);
        dict.push_back(key);
        dict.push_back(value);
        return true;
      }
      case 'u': {
        const auto items = pop_mark();
        VESTA_FORMAT_CHECK(items.size() % 2 == 0, "a dict at byte ", op_at_, " has a key without a value");
        auto& dict = items_on_top(PickleKind::Dict);
        dict.insert(dict.end(), items.begin(), items.end());
        return true;
      }
      case 'c': {
        const std::string_view module = line(), name = line();
        push_global(module, name);
        return true;
      }
      case 0x93: {  // STACK_GLOBAL
        const PickleId name = pop(), module = pop();
        VESTA_FORMAT_CHECK(kind(name) == PickleKind::Text && kind(module) == PickleKind::Text,
                           "the name of a global at byte ", op_at_, " is not text");
        push_global(graph_.text_of(module), graph_.text_of(name));
        return true;
      }
      case 'R':     // REDUCE: a call
      case 0x81: {  // NEWOBJ: the constructor of a class
        const PickleId argument = pop(), callee = pop();
        VESTA_FORMAT_CHECK(kind(callee) == PickleKind::Global && kind(argument) == PickleKind::Tuple,
                           "a call at byte ", op_at_, " is not of a known name with a tuple");
        call(graph_.nodes[callee], argument);
        return true;
      }
      case 'b':  // BUILD
        build();
        return true;
      case 'Q': {  // BINPERSID: a storage
        PickleNode node;
        node.kind = PickleKind::Reference;
        node.argument = pop();
        VESTA_FORMAT_CHECK(kind(node.argument) == PickleKind::Tuple, "a storage at byte ", op_at_,
                           " is not described by a tuple");
        push(node);
        return true;
      }
      case 'q':
        put(fixed<uint8_t>());
        return true;
      case 'r':
        put(fixed<uint32_t>());
        return true;
      case 0x94:  // MEMOIZE
        put(uint32_t(memo_.size()));
        return true;
      case 'h':
        get(fixed<uint8_t>());
        return true;
      case 'j':
        get(fixed<uint32_t>());
        return true;
      default:
        throw NotImplementedError(detail::message(where, ": the pickle opcode ", unsigned(op), " at byte ",
                                                  op_at_, " is not accepted in a checkpoint"));
    }
  }

  std::string_view take(uint64_t count) {
    VESTA_FORMAT_CHECK(count <= data_.size() - at_, "the pickle ends ",
                       cut_ ? "beyond the accepted length" : "too early", " (", count,
                       " bytes wanted at byte ", at_, " of ", data_.size(), ")");
    at_ += size_t(count);
    return data_.substr(at_ - size_t(count), size_t(count));
  }
  template <class T>
  T fixed() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::string_view line() {
    const size_t end = data_.find('\n', at_);
    VESTA_FORMAT_CHECK(end != std::string_view::npos, "a name at byte ", at_, " of the pickle does not end");
    const std::string_view text = data_.substr(at_, end - at_);
    at_ = end + 1;
    return text;
  }

  void push(const PickleNode& node) {
    graph_.nodes.push_back(node);
    stack_.push_back(PickleId(graph_.nodes.size() - 1));
  }
  void push_integer(PickleKind kind, int64_t value) {
    PickleNode node;
    node.kind = kind;
    node.integer = value;
    push(node);
  }
  void push_text(PickleKind kind, uint64_t length) {
    const std::string_view text = take(length);
    VESTA_FORMAT_CHECK(kind == PickleKind::Bytes || is_utf8(text), "the text at byte ", op_at_,
                       " is not UTF-8");
    push_integer(kind, int64_t(graph_.texts.size()));
    graph_.texts.push_back(text);
  }
  void push_items(PickleKind kind, std::vector<PickleId> items) {
    PickleNode node;
    node.kind = kind;
    node.items = uint32_t(graph_.items.size());
    graph_.items.push_back(std::move(items));
    push(node);
  }
  PickleKind kind(PickleId id) const { return graph_.nodes[id].kind; }
  PickleId pop() {
    VESTA_FORMAT_CHECK(stack_.size() > (marks_.empty() ? 0 : marks_.back()),
                       "the pickle takes a value at byte ", op_at_, " that is not there");
    const PickleId top = stack_.back();
    stack_.pop_back();
    return top;
  }
  std::vector<PickleId> pop_mark() {
    VESTA_FORMAT_CHECK(!marks_.empty(), "the pickle takes values at byte ", op_at_, " that are not there");
    std::vector<PickleId> items(stack_.begin() + std::ptrdiff_t(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return items;
  }
  std::vector<PickleId>& items_on_top(PickleKind wanted) {
    const PickleId top = pop();
    stack_.push_back(top);
    VESTA_FORMAT_CHECK(kind(top) == wanted, "items at byte ", op_at_, " are not for a ",
                       wanted == PickleKind::List ? "list" : "dict");
    return graph_.items[graph_.nodes[top].items];
  }
  void put(uint32_t id) {
    const PickleId top = pop();
    stack_.push_back(top);
    memo_[id] = top;
  }
  void get(uint32_t id) {
    const auto it = memo_.find(id);
    VESTA_FORMAT_CHECK(it != memo_.end(), "the pickle refers to a value at byte ", op_at_,
                       " that is not there");
    stack_.push_back(it->second);
  }

  // Little-endian two's complement.
  void long_integer(size_t length) {
    const std::string_view bytes = take(length);
    VESTA_FORMAT_CHECK(length <= 8, "an integer of ", length, " bytes at byte ", op_at_,
                       " does not fit into 64 bits");
    uint64_t value = 0;
    for (size_t i = 0; i < length; ++i) value |= uint64_t(uint8_t(bytes[i])) << (8 * i);
    if (length && length < 8 && uint8_t(bytes[length - 1]) & 0x80) value |= ~uint64_t{0} << (8 * length);
    push_integer(PickleKind::Int, int64_t(value));
  }

  void push_global(std::string_view module, std::string_view name) {
    PickleNode node;
    node.kind = PickleKind::Global;
    if (module == "torch" || module == "torch.storage" || module == "torch.cuda") {
      for (auto& s : kStorages)
        if ((name == s.storage && !name.empty()) || (name == s.dtype && module == "torch")) {
          node.global = name == s.storage ? PickleGlobal::Storage : PickleGlobal::DTypeName;
          node.dtype = s.type;
          push(node);
          return;
        }
      for (auto other : kOtherTypes)
        VESTA_CHECK_AS(NotImplementedError, name != other, where, ": the checkpoint holds tensors of type ",
                       other, ", which is not supported");
      if (name == "UntypedStorage" && module != "torch.cuda") {
        node.global = PickleGlobal::Storage;
        push(node);
        return;
      }
    }
    if (module == "__torch__" || module.starts_with("__torch__.")) {
      node.global = PickleGlobal::ScriptedObject;
      push(node);
      return;
    }
    for (auto& g : kGlobals)
      if (g.module == module && g.name == name) {
        node.global = g.meaning;
        push(node);
        return;
      }
    throw NotImplementedError(detail::message(where, ": the checkpoint asks for ",
                                              shown(std::string(module) + "." + std::string(name)),
                                              ", which is not on the list of names that may be loaded"));
  }

  void call(const PickleNode& callee, PickleId argument) {
    PickleNode node;
    node.global = callee.global;
    switch (callee.global) {
      case PickleGlobal::OrderedDict: {
        std::vector<PickleId> items;
        const auto& arguments = graph_.items_of(argument);
        // Python 2 passes the items. A defaultdict with a factory is refused at the factory's name.
        if (arguments.size() == 1 && kind(arguments[0]) == PickleKind::List)
          for (PickleId pair : graph_.items_of(arguments[0])) {
            VESTA_FORMAT_CHECK((kind(pair) == PickleKind::List || kind(pair) == PickleKind::Tuple) &&
                                   graph_.items_of(pair).size() == 2,
                               "a dict at byte ", op_at_, " is not made of pairs");
            items.insert(items.end(), graph_.items_of(pair).begin(), graph_.items_of(pair).end());
          }
        else
          VESTA_FORMAT_CHECK(arguments.empty(), "a dict at byte ", op_at_,
                             " has arguments that are not accepted");
        push_items(PickleKind::Dict, std::move(items));
        return;
      }
      case PickleGlobal::ScriptedObject:
        node.kind = PickleKind::Object;
        node.argument = kNoPickle;
        push(node);
        return;
      case PickleGlobal::Tensor:
      case PickleGlobal::Parameter:
      case PickleGlobal::DTypeName:
      case PickleGlobal::Storage:
        VESTA_FORMAT_CHECK(false, "a call at byte ", op_at_, " is of a class that is only a name here");
        return;
      default:
        node.kind = PickleKind::Call;
        node.argument = argument;
        push(node);
    }
  }

  void build() {
    const PickleId state = pop(), object = pop();
    stack_.push_back(object);
    PickleNode& node = graph_.nodes[object];
    if (node.kind == PickleKind::Object) {
      VESTA_FORMAT_CHECK(kind(state) == PickleKind::Dict, "the state of an object at byte ", op_at_,
                         " is not a dict");
      VESTA_FORMAT_CHECK(node.argument == kNoPickle, "an object at byte ", op_at_, " gets its state twice");
      node.argument = state;
      return;
    }
    // Attributes of a dict, as state dicts have (_metadata), are not part of the value.
    VESTA_FORMAT_CHECK(node.kind == PickleKind::Dict, "attributes at byte ", op_at_,
                       " are not for a dict or an object");
  }

  std::string_view data_;
  bool cut_;
  const std::string& where;  // NOLINT: the name that VESTA_FORMAT_CHECK uses
  size_t at_ = 0, op_at_ = 0;
  PickleGraph graph_;
  std::vector<PickleId> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint32_t, PickleId> memo_;
};

}  // namespace

DType dtype_of_storage(std::string_view class_name) {
  for (auto& s : kStorages)
    if (s.storage == class_name && !class_name.empty()) return s.type;
  return DType::Undefined;
}

const char* storage_of_dtype(DType dtype) {
  for (auto& s : kStorages)
    if (s.type == dtype && !is_storage_only(dtype)) return s.storage.data();
  return nullptr;
}

PickleGraph read_pickle(std::span<const std::byte> bytes, const std::string& where) {
  return Machine(bytes, where).run();
}

}  // namespace vesta
