// Tensors to and from safetensors files.
#include "serialize/safetensors.h"

#include <vesta/error.h>

#include <algorithm>
#include <cstring>

#include "base/file.h"
#include "base/ref.h"
#include "core/storage.h"
#include "vesta/ops.h"

namespace vesta {
namespace {

// A map that the tensors of a file own together.
struct SharedMap {
  std::atomic<uint32_t> refs{1};
  MappedFile file;
  explicit SharedMap(const std::string& path) : file(path, MappedFile::Access::CopyOnWrite) {}
  static void destroy(SharedMap* map) { delete map; }
};

Tensor read_entry(const SafetensorsEntry& e, const Ref<SharedMap>& map, const std::string& path) {
  std::byte* data = map->file.writable_data() + e.begin;
  if (e.dtype == kBool)  // any other byte in a bool is undefined behaviour for whoever reads it
    for (uint64_t i = 0; i < e.end - e.begin; ++i)
      VESTA_CHECK_AS(IoError, data[i] <= std::byte{1}, "load_safetensors '", path, "': element ", i,
                     " of bool tensor '", e.name, "' is ", int(data[i]), ", expected 0 or 1");
  if (e.begin == e.end) return empty_cpu(e.sizes, e.dtype);
  if (reinterpret_cast<uintptr_t>(data) % element_size(e.dtype) !=
      0) {  // other writers may leave data unaligned
    Tensor copy = empty_cpu(e.sizes, e.dtype);
    std::memcpy(copy.data_ptr(), data, e.end - e.begin);
    return copy;
  }
  return from_blob(
      data, e.sizes, [map](void*) {}, TensorOptions(e.dtype));
}

}  // namespace

void save_safetensors(const std::string& path, const TensorMap& tensors, const MetadataMap& metadata) {
  std::vector<SafetensorsEntry> entries;
  for (auto& [name, t] : tensors) {
    VESTA_CHECK(name != "__metadata__", "save_safetensors '", path, "': the name __metadata__ is reserved");
    VESTA_CHECK(t.defined(), "save_safetensors '", path, "': tensor '", name, "' is undefined");
    VESTA_CHECK(t.is_cpu(), "save_safetensors '", path, "': tensor '", name,
                "' has no data on the CPU but is on ", t.device().str());
    VESTA_CHECK(size_t(t.dim()) <= kMaxSafetensorsDims, "save_safetensors '", path, "': tensor '", name,
                "' has ", t.dim(), " dims, at most ", kMaxSafetensorsDims, " can be read back");
    entries.push_back({name, t.dtype(), t.sizes().vec(), 0, 0});
  }
  // Wide elements first: every tensor then starts at a multiple of its element size.
  std::stable_sort(entries.begin(), entries.end(),
                   [](auto& a, auto& b) { return element_size(a.dtype) > element_size(b.dtype); });
  std::string header = print_safetensors_header(entries, metadata);
  AtomicFile file(path);
  file.write(header);
  for (auto& e : entries) {
    Tensor t = tensors.at(e.name).detach().resolve_neg().contiguous();
    if (t.nbytes()) file.write(t.data_ptr(), t.nbytes());
  }
  file.commit();
}

Safetensors load_safetensors_file(const std::string& path) {
  auto map = Ref<SharedMap>::adopt(new SharedMap(path));
  SafetensorsHeader header = parse_safetensors_header(map->file.bytes(), path);
  Safetensors result;
  result.metadata = std::move(header.metadata);
  for (auto& e : header.entries) result.tensors.emplace(e.name, read_entry(e, map, path));
  return result;
}

TensorMap load_safetensors(const std::string& path) { return load_safetensors_file(path).tensors; }

}  // namespace vesta
