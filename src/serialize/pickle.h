#pragma once
// Python's pickle format (docs.python.org/3/library/pickletools.html) as far as PyTorch's checkpoints use it, protocols 2
// to 5. The reader builds a graph of inert nodes; nothing is executed. A name of Python ("global") must be on the list
// below, and even those are only noted: serialize/torch_values.cpp gives them their meaning.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "vesta/dtype.h"

namespace vesta {

// What a name of Python stands for here. Everything else is refused by name.
enum class PickleGlobal : uint8_t {
  OrderedDict,  // also defaultdict, Counter and dict
  RebuildTensor,
  RebuildTensorV2,
  RebuildTensorV3,
  RebuildParameter,
  RebuildParameterWithState,
  RebuildFromType,
  Tensor,     // the class, as an argument
  Parameter,  // the class, as an argument
  Size,
  DeviceName,
  DTypeName,  // torch.float32
  Storage,    // torch.FloatStorage; torch.storage.UntypedStorage
  EncodeText,
  Complex,
  TypedList,       // torch.jit._pickle.build_intlist and its like
  TypeTag,         // torch.jit._pickle.restore_type_tag
  ScriptedObject,  // a class of TorchScript (module __torch__): attributes only
};

enum class PickleKind : uint8_t {
  None,
  Bool,
  Int,
  Double,
  Text,
  Bytes,
  List,
  Tuple,
  Dict,
  Global,
  Call,
  Object,
  Reference
};

using PickleId = uint32_t;  // of a node

// 16 bytes, so that a byte of pickle never costs more than a few dozen bytes of memory.
struct PickleNode {
  PickleKind kind = PickleKind::None;
  PickleGlobal global{};           // Global, Call, Object
  DType dtype = DType::Undefined;  // Global: a DTypeName, or a Storage (Undefined: untyped)
  uint32_t items = 0;  // index into PickleGraph::items: List, Tuple, Dict; Call: the argument tuple
  union {
    int64_t integer = 0;  // Bool, Int; Text, Bytes: index into PickleGraph::texts
    double number;        // Double
    PickleId argument;    // Call, Reference: the tuple; Object: its attributes (a dict; kNoPickle: none)
  };
};
constexpr PickleId kNoPickle = UINT32_MAX;

struct PickleGraph {
  std::vector<PickleNode> nodes;
  std::vector<std::vector<PickleId>> items;  // a dict's are key, value, key, value
  std::vector<std::string_view> texts;       // into the bytes read
  PickleId root = kNoPickle;
  size_t bytes = 0;  // how many the pickle took

  const std::vector<PickleId>& items_of(PickleId id) const { return items[nodes[id].items]; }
  std::string_view text_of(PickleId id) const { return texts[size_t(nodes[id].integer)]; }
};

// At most so much pickle is read: some 300,000 tensors.
constexpr size_t kMaxPickleBytes = 64 << 20;

// Reads one pickle at the start of `bytes`, which must outlive the graph. `where` starts the messages. IoError: malformed;
// NotImplementedError: a global or an opcode that is not on the list.
PickleGraph read_pickle(std::span<const std::byte> bytes, const std::string& where);

// The dtype of a storage class or of a torch.dtype; Undefined where Vesta has not got it.
DType dtype_of_storage(std::string_view class_name);
const char* storage_of_dtype(DType dtype);

// Emits protocol 2.
class PickleWriter {
 public:
  PickleWriter() { out_ = "\x80\x02"; }
  void none() { out_ += 'N'; }
  void boolean(bool v) { out_ += v ? '\x88' : '\x89'; }
  void integer(int64_t v);
  void number(double v);
  void text(std::string_view utf8);
  void global(std::string_view module, std::string_view name);
  void op(char c) { out_ += c; }
  // Names the value on top of the stack; get() pushes it again.
  void put(uint32_t id);
  void get(uint32_t id);
  std::string finish() { return std::move(out_ += '.'); }

  static constexpr char kMark = '(', kTuple = 't', kEmptyTuple = ')', kTuple1 = '\x85', kEmptyList = ']',
                        kAppends = 'e', kEmptyDict = '}', kSetItems = 'u', kReduce = 'R', kReference = 'Q';

 private:
  std::string out_;
};

}  // namespace vesta
