// Tensors to and from safetensors files.
#include "serialize/safetensors.h"

#include <vesta/error.h>

#include <algorithm>

#include "base/file.h"
#include "core/storage.h"
#include "serialize/byte_region.h"
#include "vesta/ops.h"

namespace vesta {
namespace {

Tensor read_entry(const SafetensorsEntry& e, const ByteRegion& file, const std::string& path) {
  const ByteRegion data = file.slice(size_t(e.begin), size_t(e.end - e.begin));
  if (e.dtype == kBool) {
    const size_t bad = find_bad_bool(data.data(), data.size());
    VESTA_CHECK_AS(IoError, bad == data.size(), "load_safetensors '", path, "': element ", bad,
                   " of bool tensor '", e.name, "' is ", int(data.data()[bad]), ", expected 0 or 1");
  }
  std::vector<int64_t> strides(e.sizes.size());
  contiguous_strides(e.sizes.data(), int(e.sizes.size()), strides.data());
  // Other writers may leave data unaligned: those are copied.
  return view_of_storage(storage_tensor(data, element_size(e.dtype)), e.dtype, e.sizes, strides, 0);
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
  const ByteRegion file = map_region(path);
  SafetensorsHeader header = parse_safetensors_header(file.bytes(), path);
  Safetensors result;
  result.metadata = std::move(header.metadata);
  for (auto& e : header.entries) result.tensors.emplace(e.name, read_entry(e, file, path));
  return result;
}

TensorMap load_safetensors(const std::string& path) { return load_safetensors_file(path).tensors; }

}  // namespace vesta
