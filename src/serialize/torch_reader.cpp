// Checkpoint files: the zip archive (FOLDER/data.pkl, FOLDER/data/KEY, FOLDER/byteorder) and the choice of format.
#include "serialize/format_error.h"
#include "serialize/torch_values.h"
#include "serialize/zip.h"
#include "vesta/torch_file.h"

namespace vesta {
namespace {

class ZipStorages : public TorchStorages {
 public:
  ZipStorages(const ZipReader& zip, std::string folder, const std::string& where_, bool check)
      : zip_(zip), folder_(std::move(folder)), where(where_), check_(check) {
    if (const ZipEntry* order = zip_.find(folder_ + "byteorder")) {
      const ByteRegion content = zip_.read(*order, check_);
      VESTA_FORMAT_CHECK(content.text() == "little" || content.text() == "big", "the byte order is ",
                         shown(content.text()), ", expected little or big");
      big_endian_ = content.text() == "big";
    }
  }
  TorchStorage open(const std::string& key) override {
    const ZipEntry* entry = zip_.find(folder_ + "data/" + key);
    VESTA_FORMAT_CHECK(entry, "the archive has no entry for storage ", shown(key));
    TorchStorage storage;
    storage.bytes = storage_tensor(zip_.read(*entry, check_));
    storage.big_endian = big_endian_;
    return storage;
  }

 private:
  const ZipReader& zip_;
  std::string folder_;
  const std::string& where;  // NOLINT: the name that VESTA_FORMAT_CHECK uses
  bool check_, big_endian_ = false;
};

constexpr std::string_view kPickleName = "data.pkl";

IValue read_torch_zip(const ByteRegion& file, const std::string& where, bool check) {
  const ZipReader zip(file, where);
  const ZipEntry* pickle = nullptr;
  for (auto& e : zip.entries()) {
    const size_t slash = e.name.find('/');
    if (slash == std::string::npos || e.name.substr(slash + 1) != kPickleName) continue;
    VESTA_FORMAT_CHECK(!pickle, "the archive has two checkpoints, ", shown(pickle->name), " and ",
                       shown(e.name));
    pickle = &e;
  }
  VESTA_FORMAT_CHECK(pickle, "the zip archive is no PyTorch checkpoint (it has no FOLDER/data.pkl)");
  const ByteRegion text = zip.read(*pickle, check);
  const PickleGraph graph = read_pickle(text.bytes(), where);
  ZipStorages storages(zip, pickle->name.substr(0, pickle->name.size() - kPickleName.size()), where, check);
  return values_of_pickle(graph, storages, where);
}

}  // namespace

IValue read_torch_file(const ByteRegion& file, const std::string& where, bool check_crc) {
  if (is_torch_stream(file)) return read_torch_stream(file, where);
  const std::string_view text = file.text();
  VESTA_CHECK_AS(
      NotImplementedError, text.size() < 262 || text.substr(257, 5) != "ustar", where,
      ": the tar format of PyTorch before 0.2 is not supported; load and save the file with a newer PyTorch");
  VESTA_FORMAT_CHECK(text.starts_with("PK") || text.substr(0, 2) != "\x80\x02",
                     "a pickle that is no PyTorch checkpoint (it lacks the magic number)");
  return read_torch_zip(file, where, check_crc);
}

IValue load_torch(const std::string& path, const LoadTorchOptions& options) {
  return read_torch_file(map_region(path), "load_torch '" + path + "'", options.check_crc);
}

IValue pickle_load(const std::vector<char>& data) {
  return read_torch_file(copy_region(data.data(), data.size()), "pickle_load", true);
}

}  // namespace vesta
