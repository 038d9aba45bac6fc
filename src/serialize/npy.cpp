// .npy and .npz files.
#include "vesta/npy.h"

#include "serialize/format_error.h"
#include "serialize/npy_header.h"
#include "serialize/zip.h"
#include "vesta/ops.h"

namespace vesta {
namespace {

constexpr std::string_view kSuffix = ".npy";

}  // namespace

Tensor load_npy(const std::string& path) { return npy_tensor(map_region(path), "load_npy '" + path + "'"); }

void save_npy(const std::string& path, const Tensor& tensor) {
  const NpyContent content = npy_content(tensor, "save_npy '" + path + "'");
  FileSink file(path);
  file.write(content.header);
  if (content.elements.nbytes()) file.write(content.elements.data_ptr(), content.elements.nbytes());
  file.commit();
}

std::map<std::string, Tensor> load_npz(const std::string& path) {
  const std::string where = "load_npz '" + path + "'";
  const ZipReader zip(map_region(path), where);
  std::map<std::string, Tensor> result;
  for (auto& entry : zip.entries()) {
    VESTA_FORMAT_CHECK(entry.name.ends_with(kSuffix), "entry ", shown(entry.name),
                       " is no array (its name does not end in .npy)");
    const std::string name = entry.name.substr(0, entry.name.size() - kSuffix.size());
    result.emplace(name, npy_tensor(zip.read(entry, true), where + ", entry " + shown(entry.name)));
  }
  return result;
}

void save_npz(const std::string& path, const std::map<std::string, Tensor>& tensors, bool compressed) {
  const std::string where = "save_npz '" + path + "'";
  std::vector<NpyContent> contents;  // all checked before the first byte is written
  for (auto& [name, tensor] : tensors) {
    VESTA_CHECK(!name.empty() && is_utf8(name), where, ": the name ", shown(name), " is empty or not UTF-8");
    contents.push_back(npy_content(tensor, where + ", tensor " + shown(name)));
  }
  FileSink file(path);
  ZipWriter zip(file);
  size_t i = 0;
  for (auto& item : tensors) {
    const NpyContent& c = contents[i++];
    zip.add(item.first + std::string(kSuffix), c.header,
            c.elements.nbytes() ? c.elements.data_ptr() : nullptr, c.elements.nbytes(),
            compressed ? ZipWriter::Method::Deflated : ZipWriter::Method::Stored);
  }
  zip.finish();
  file.commit();
}

}  // namespace vesta
