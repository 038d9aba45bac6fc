// `vesta inspect` and `vesta convert`: what a file of tensors holds, and the same tensors in another format.
// The format follows from the content when reading, from the ending of the name when writing.
#include <vesta/error.h>
#include <vesta/serialize.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "serialize/byte_region.h"
#include "serialize/zip.h"

namespace vesta::cli {
namespace {

struct Content {
  std::string format;  // safetensors, npy, npz or pt
  OrderedDict<std::string, Tensor> tensors{"tensor"};
  std::vector<std::pair<std::string, std::string>> values;  // what is no tensor, as text
};

void collect_values(const IValue& v, const std::string& name, Content* out) {
  const auto inner = [&](const std::string& key) { return name.empty() ? key : name + "." + key; };
  if (v.isGenericDict()) {
    for (auto& [key, value] : v.toDict())
      collect_values(value, inner(key.isString() ? key.toStringRef() : key.str()), out);
  } else if (v.isList() || v.isTuple()) {
    size_t i = 0;
    for (auto& value : v.isList() ? v.toList() : v.toTuple())
      collect_values(value, inner(std::to_string(i++)), out);
  } else if (!v.isTensor()) {
    out->values.emplace_back(name.empty() ? "0" : name, v.str());
  }
}

bool has_ending(const std::string& path, const char* ending) { return path.ends_with(ending); }

// Of the two zip archives, checkpoints have a FOLDER/data.pkl.
bool is_checkpoint(const std::string& path) {
  const ZipReader zip(map_region(path), "read '" + path + "'");
  for (auto& entry : zip.entries())
    if (has_ending(entry.name, "/data.pkl")) return true;
  return false;
}

Content read_file(const std::string& path, bool check) {
  Content content;
  const ByteRegion file = map_region(path);
  const std::string_view start = file.text().substr(0, 16);
  const bool zip = start.starts_with("PK"), stream = start.starts_with("\x80\x02");
  if (start.starts_with("\x93NUMPY")) {
    content.format = "npy";
    content.tensors.insert("0", load_npy(path));
  } else if (stream || (zip && is_checkpoint(path))) {
    content.format = "pt";
    const IValue root = load_torch(path, {.check_crc = check});
    content.tensors = named_tensors(root);
    collect_values(root, "", &content);
  } else if (zip) {
    content.format = "npz";
    for (auto& [name, t] : load_npz(path)) content.tensors.insert(name, t);
  } else {
    content.format = "safetensors";
    Safetensors all = load_safetensors_file(path);
    for (auto& [name, t] : all.tensors) content.tensors.insert(name, t);
    for (auto& [key, text] : all.metadata) content.values.emplace_back(key, text);
  }
  return content;
}

std::string shape_text(const Tensor& t) {
  std::string out = "[";
  for (int64_t d = 0; d < t.dim(); ++d) out += (d ? ", " : "") + std::to_string(t.size(d));
  return out + "]";
}

// Names come from the file: control characters do not reach the terminal.
std::string printable(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return text;
}

int inspect(const std::string& path, bool json) {
  const Content content = read_file(path, false);
  uint64_t elements = 0, bytes = 0;
  for (auto& item : content.tensors) {
    elements += uint64_t(item->numel());
    bytes += item->nbytes();
  }
  if (json) {
    nlohmann::ordered_json root = {{"file", path}, {"format", content.format}};
    auto& tensors = root["tensors"] = nlohmann::ordered_json::array();
    for (auto& item : content.tensors)
      tensors.push_back({{"name", item.key()},
                         {"dtype", dtype_name(item->dtype())},
                         {"shape", item->sizes().vec()},
                         {"bytes", item->nbytes()}});
    auto& values = root["values"] = nlohmann::ordered_json::object();
    for (auto& [name, text] : content.values) values[name] = text;
    root["elements"] = elements;
    root["bytes"] = bytes;
    std::puts(root.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    return 0;
  }
  size_t widest = 4;
  for (auto& item : content.tensors) widest = std::max(widest, std::min<size_t>(item.key().size(), 60));
  for (auto& item : content.tensors)
    std::printf("%-*s  %-10s  %-20s  %zu bytes\n", int(widest), printable(item.key()).c_str(),
                dtype_name(item->dtype()), shape_text(*item).c_str(), item->nbytes());
  for (auto& [name, text] : content.values)
    std::printf("%-*s  = %s\n", int(widest), printable(name).c_str(), printable(text).c_str());
  std::printf("%s: %zu tensors, %llu elements, %llu bytes\n", content.format.c_str(), content.tensors.size(),
              static_cast<unsigned long long>(elements), static_cast<unsigned long long>(bytes));
  return 0;
}

int convert(const std::string& from, const std::string& to, bool drop_values, bool compress) {
  const bool npz = has_ending(to, ".npz"), npy = has_ending(to, ".npy"),
             safe = has_ending(to, ".safetensors"), torch = has_ending(to, ".pt") || has_ending(to, ".pth");
  VESTA_CHECK(npz || npy || safe || torch, "convert: the ending of '", to,
              "' is none of .safetensors, .npz, .npy, .pt and .pth");
  const Content content = read_file(from, true);
  VESTA_CHECK(content.values.empty() || drop_values || content.format == "safetensors", "convert: '", from,
              "' holds ", content.values.size(), " values that are no tensors, such as ",
              printable(content.values[0].first), " = ", printable(content.values[0].second),
              "; --drop-values leaves them out");
  TensorMap map;
  for (auto& item : content.tensors) map.emplace(item.key(), *item);
  if (npz) {
    save_npz(to, map, compress);
  } else if (npy) {
    VESTA_CHECK(map.size() == 1, "convert: .npy holds one tensor, '", from, "' has ", map.size());
    save_npy(to, map.begin()->second);
  } else if (safe) {
    MetadataMap metadata;
    if (content.format == "safetensors") metadata = {content.values.begin(), content.values.end()};
    save_safetensors(to, map, metadata);
  } else {
    GenericDict dict;
    for (auto& item : content.tensors) dict.insert(item.key(), *item);
    save_torch(to, dict);
  }
  std::printf("%s: %zu tensors\n", to.c_str(), content.tensors.size());
  return 0;
}

}  // namespace

void add_files(CLI::App& app, Action& action) {
  auto path = std::make_shared<std::string>(), to = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false), drop = std::make_shared<bool>(false),
       compress = std::make_shared<bool>(false);
  auto* show =
      app.add_subcommand("inspect", "List the tensors of a file (safetensors, npy, npz, PyTorch's pt)");
  show->add_option("file", *path, "The file")->required();
  show->add_flag("--json", *json, "One JSON object: format, tensors (name, dtype, shape, bytes), values");
  show->callback([&action, path, json] { action = [path, json] { return inspect(*path, *json); }; });

  auto* change = app.add_subcommand("convert", "Write the tensors of a file in another format");
  change->add_option("from", *path, "The file to read")->required();
  change->add_option("to", *to, "The file to write: .safetensors, .npz, .npy, .pt or .pth")->required();
  change->add_flag("--drop-values", *drop, "Leave out what is no tensor, instead of refusing");
  change->add_flag("--compress", *compress, "Deflate the entries of .npz");
  change->callback([&action, path, to, drop, compress] {
    action = [path, to, drop, compress] { return convert(*path, *to, *drop, *compress); };
  });
}

}  // namespace vesta::cli
