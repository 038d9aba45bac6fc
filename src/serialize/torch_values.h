#pragma once
// From the pickle of a checkpoint to values: what the known names of Python mean, and tensors over storages.
#include <string>
#include <string_view>
#include <unordered_map>

#include "serialize/byte_region.h"
#include "serialize/byte_sink.h"
#include "serialize/pickle.h"
#include "vesta/ivalue.h"

namespace vesta {

// The bytes that tensors of one storage share.
struct TorchStorage {
  Tensor bytes;             // uint8 [n], from storage_tensor
  bool big_endian = false;  // elements still to be turned around
  size_t turned = 0;        // element width by which they were
  bool bools_checked = false;
};

// Finds storages by key; each is asked for once.
class TorchStorages {
 public:
  virtual ~TorchStorages() = default;
  virtual TorchStorage open(const std::string& key) = 0;
};

// `where` starts the messages. Depth and number of values are bounded: see kMaxTorchDepth.
constexpr int kMaxTorchDepth = 400;
IValue values_of_pickle(const PickleGraph& graph, TorchStorages& storages, const std::string& where);

// A whole file: a zip archive, or the older stream.
IValue read_torch_file(const ByteRegion& file, const std::string& where, bool check_crc);
// The stream that torch.save wrote before PyTorch 1.6, and writes with _use_new_zipfile_serialization=False.
bool is_torch_stream(const ByteRegion& file);
IValue read_torch_stream(const ByteRegion& file, const std::string& where);

// always_zip64: see ZipWriter.
void write_torch_zip(ByteSink& sink, const IValue& value, bool always_zip64 = false);

}  // namespace vesta
