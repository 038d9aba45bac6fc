// The stream format of PyTorch before 1.6: five pickles (magic number, protocol, system, value, storage keys), then each
// storage as its element count and its elements.
#include <cstring>

#include "serialize/format_error.h"
#include "serialize/torch_values.h"

namespace vesta {
namespace {

// The first pickle, as protocol 2 writes it: the number 0x1950a86a20f9469cfc6c, which does not fit into 64 bits.
constexpr std::string_view kMagicPickle("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15);
constexpr int64_t kStreamProtocol = 1001;

class StreamStorages : public TorchStorages {
 public:
  explicit StreamStorages(const std::string& where_) : where(where_) {}
  TorchStorage open(const std::string& key) override {
    const auto it = found_.find(key);
    VESTA_FORMAT_CHECK(it != found_.end(), "the file has no data for storage ", shown(key));
    TorchStorage storage;
    storage.bytes = storage_tensor(it->second);
    return storage;
  }
  std::unordered_map<std::string, ByteRegion> found_;

 private:
  const std::string& where;  // NOLINT: the name that VESTA_FORMAT_CHECK uses
};

// The element sizes of storages by key, from their references: the stream itself counts in elements.
std::unordered_map<std::string, size_t> widths(const PickleGraph& graph) {
  std::unordered_map<std::string, size_t> out;
  for (auto& node : graph.nodes) {
    if (node.kind != PickleKind::Reference) continue;
    const auto& r = graph.items_of(node.argument);
    if (r.size() < 3 || graph.nodes[r[1]].kind != PickleKind::Global ||
        graph.nodes[r[2]].kind != PickleKind::Text)
      continue;
    const DType dtype = graph.nodes[r[1]].dtype;
    out.emplace(std::string(graph.text_of(r[2])), dtype == DType::Undefined ? 1 : element_size(dtype));
  }
  return out;
}

}  // namespace

bool is_torch_stream(const ByteRegion& file) { return file.text().starts_with(kMagicPickle); }

IValue read_torch_stream(const ByteRegion& file, const std::string& where) {
  size_t at = kMagicPickle.size();
  const auto next = [&] {
    PickleGraph graph = read_pickle(file.bytes().subspan(at), where);
    at += graph.bytes;
    return graph;
  };
  const PickleGraph protocol = next();
  const PickleNode& version = protocol.nodes[protocol.root];
  VESTA_CHECK_AS(NotImplementedError, version.kind == PickleKind::Int && version.integer == kStreamProtocol,
                 where, ": the stream's protocol is not 1001");
  const PickleGraph system = next();
  bool little = true;
  if (system.nodes[system.root].kind == PickleKind::Dict) {
    const auto& items = system.items_of(system.root);
    for (size_t i = 0; i + 1 < items.size(); i += 2)
      if (system.nodes[items[i]].kind == PickleKind::Text && system.text_of(items[i]) == "little_endian")
        little = system.nodes[items[i + 1]].integer != 0;
  }
  VESTA_CHECK_AS(NotImplementedError, little, where, ": a big-endian stream is not supported");
  const PickleGraph value = next();
  const PickleGraph keys = next();
  VESTA_FORMAT_CHECK(keys.nodes[keys.root].kind == PickleKind::List,
                     "the stream's storage keys are not a list");

  const auto width_of = widths(value);
  StreamStorages storages(where);
  for (PickleId id : keys.items_of(keys.root)) {
    VESTA_FORMAT_CHECK(keys.nodes[id].kind == PickleKind::Text, "a storage key is not text");
    const std::string key(keys.text_of(id));
    const auto width = width_of.find(key);
    VESTA_FORMAT_CHECK(width != width_of.end(), "storage ", shown(key), " belongs to no tensor");
    uint64_t count = 0;
    VESTA_FORMAT_CHECK(file.size() - at >= 8, "the file ends before storage ", shown(key));
    std::memcpy(&count, file.data() + at, 8);
    at += 8;
    VESTA_FORMAT_CHECK(count <= (file.size() - at) / width->second, "storage ", shown(key), " claims ", count,
                       " elements, but only ", file.size() - at, " bytes follow");
    const size_t bytes = size_t(count) * width->second;
    VESTA_FORMAT_CHECK(storages.found_.emplace(key, file.slice(at, bytes)).second, "storage ", shown(key),
                       " appears twice");
    at += bytes;
  }
  return values_of_pickle(value, storages, where);
}

}  // namespace vesta
