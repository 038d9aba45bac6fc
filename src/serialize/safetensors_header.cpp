// Parser and printer of safetensors headers (format: huggingface.co/docs/safetensors, "Format").
#include <vesta/error.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/checked_math.h"
#include "serialize/format_error.h"
#include "serialize/safetensors.h"

static_assert(std::endian::native == std::endian::little,
              "safetensors elements are little-endian and not converted");

namespace vesta {
namespace {

struct DTypeName {
  const char* text;
  DType dtype;
};
constexpr DTypeName kDTypes[] = {{"BOOL", kBool},
                                 {"U8", kUInt8},
                                 {"I8", kInt8},
                                 {"I16", kInt16},
                                 {"I32", kInt32},
                                 {"I64", kInt64},
                                 {"F16", kFloat16},
                                 {"BF16", kBFloat16},
                                 {"F32", kFloat32},
                                 {"F64", kFloat64},
                                 {"C64", kComplex64},
                                 {"U16", kUInt16},
                                 {"U32", kUInt32},
                                 {"U64", kUInt64},
                                 {"F8_E4M3", kFloat8_e4m3fn},
                                 {"F8_E5M2", kFloat8_e5m2},
                                 {"F8_E8M0", kFloat8_e8m0fnu},
                                 {"F4", kFloat4_e2m1fn_x2}};
// Types of the format that Vesta has not got: told apart from nonsense.
constexpr const char* kOtherDTypes[] = {"F6_E2M3", "F6_E3M2"};

#define FORMAT_CHECK(cond, ...) \
  VESTA_CHECK_AS(IoError, cond, "load_safetensors '", source, "': ", __VA_ARGS__)

// Builds the header while the text is read: no document tree, so memory stays proportional to what is kept, and nothing
// recurses. Depth 1: names; depth 2: the fields of a tensor, or metadata; depth 3: numbers of a list.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(const std::string& from) : source(from) {}

  struct Fields {
    std::string name, dtype;
    std::optional<std::vector<uint64_t>> shape, offsets;
    bool has_dtype = false;
  };
  std::vector<Fields> tensors;
  MetadataMap metadata;

  bool null() override { return misplaced("null"); }
  bool boolean(bool) override { return misplaced("a boolean"); }
  bool number_integer(number_integer_t v) override { return number_text(v < 0, uint64_t(v)); }
  bool number_unsigned(number_unsigned_t v) override { return number_text(false, v); }
  bool number_float(number_float_t, const string_t& text) override {
    FORMAT_CHECK(false, "expected whole numbers in ", where(), ", got ", text.substr(0, 40));
    return false;
  }
  bool binary(binary_t&) override { return misplaced("binary data"); }
  bool string(string_t& v) override {
    if (depth_ == 2 && in_metadata_) {
      FORMAT_CHECK(metadata.emplace(key_, v).second, "metadata key ", shown(key_), " appears twice");
      return true;
    }
    if (depth_ == 2 && key_ == "dtype") {
      FORMAT_CHECK(!tensors.back().has_dtype, "the dtype of ", where(), " appears twice");
      tensors.back().dtype = v;
      return tensors.back().has_dtype = true;
    }
    return misplaced("text");
  }
  bool start_object(size_t) override {
    if (depth_ == 1 && !in_metadata_)
      tensors.push_back({key_, "", {}, {}, false});
    else if (depth_ >= 1 && !(depth_ == 1 && in_metadata_))
      return misplaced("an object");
    ++depth_;
    return true;
  }
  bool end_object() override {
    if (--depth_ == 1) in_metadata_ = false;
    return true;
  }
  bool key(string_t& v) override {
    key_ = v;
    if (depth_ == 1) {
      in_metadata_ = v == "__metadata__";
      FORMAT_CHECK(!in_metadata_ || !had_metadata_, "__metadata__ appears twice");
      had_metadata_ |= in_metadata_;
    } else if (!in_metadata_) {
      FORMAT_CHECK(v == "dtype" || v == "shape" || v == "data_offsets", "tensor ", shown(tensors.back().name),
                   " has an unknown field ", shown(v));
    }
    return true;
  }
  bool start_array(size_t) override {
    if (depth_ != 2 || in_metadata_ || key_ == "dtype") return misplaced("a list");
    auto& list = key_ == "shape" ? tensors.back().shape : tensors.back().offsets;
    FORMAT_CHECK(!list, "the ", key_, " of ", where(), " appears twice");
    list.emplace();
    list_ = &*list;
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    FORMAT_CHECK(false, "the header is not valid JSON at byte ", position, " (",
                 std::string(error.what()).substr(0, 160), ")");
    return false;
  }

 private:
  std::string where() const {
    if (depth_ == 0) return "the header";
    if (depth_ == 1) return shown(key_);
    return in_metadata_ ? "__metadata__" : shown(tensors.back().name);
  }
  bool misplaced(const char* what) {
    FORMAT_CHECK(false, "did not expect ", what, " in ", where());
    return false;
  }
  bool number_text(bool negative, uint64_t v) {
    if (depth_ != 3) return misplaced("a number");
    FORMAT_CHECK(!negative, "expected numbers >= 0 in ", where(), ", got ", int64_t(v));
    FORMAT_CHECK(list_->size() < kMaxSafetensorsDims, "expected at most ", kMaxSafetensorsDims,
                 " numbers in ", where());
    list_->push_back(v);
    return true;
  }

  const std::string& source;
  std::string key_;
  int depth_ = 0;
  bool in_metadata_ = false, had_metadata_ = false;
  std::vector<uint64_t>* list_ = nullptr;
};

// Bytes of a tensor; throws where they do not fit into 63 bits.
uint64_t checked_bytes(const SafetensorsEntry& e, const std::string& source) {
  uint64_t bytes = element_size(e.dtype);
  bool empty = false;
  for (int64_t n : e.sizes) {
    empty |= n == 0;  // sizes beside a zero count too: strides are made of them
    bool overflow = __builtin_mul_overflow(bytes, uint64_t(n ? n : 1), &bytes) || bytes > INT64_MAX;
    FORMAT_CHECK(!overflow, "the sizes of tensor ", shown(e.name), " do not fit into 63 bits");
  }
  return empty ? 0 : bytes;
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file, const std::string& source) {
  FORMAT_CHECK(file.size() >= 8, "expected a length of 8 bytes, but the file has only ", file.size());
  uint64_t length;
  std::memcpy(&length, file.data(), 8);
  FORMAT_CHECK(length <= kMaxSafetensorsHeader, "the header claims ", length, " bytes, at most ",
               kMaxSafetensorsHeader, " are accepted");
  FORMAT_CHECK(length <= file.size() - 8, "the header claims ", length, " bytes, but only ", file.size() - 8,
               " follow");
  auto* text = reinterpret_cast<const char*>(file.data()) + 8;
  FORMAT_CHECK(length >= 2 && text[0] == '{', "the header does not start with '{'");
  HeaderReader reader(source);
  nlohmann::json::sax_parse(text, text + length, &reader);

  SafetensorsHeader header;
  header.metadata = std::move(reader.metadata);
  const uint64_t data_begin = 8 + length, data_bytes = file.size() - data_begin;
  for (auto& f : reader.tensors) {
    SafetensorsEntry e;
    e.name = std::move(f.name);
    FORMAT_CHECK(f.has_dtype && f.shape && f.offsets, "tensor ", shown(e.name),
                 " lacks its dtype, shape or data_offsets");
    for (auto& d : kDTypes)
      if (f.dtype == d.text) e.dtype = d.dtype;
    if (e.dtype == DType::Undefined) {
      for (auto* other : kOtherDTypes)
        VESTA_CHECK_AS(NotImplementedError, f.dtype != other, "load_safetensors '", source, "': tensor ",
                       shown(e.name), " has dtype ", other, ", which is not supported");
      FORMAT_CHECK(false, "tensor ", shown(e.name), " has an unknown dtype ", shown(f.dtype));
    }
    for (uint64_t n : *f.shape) {
      FORMAT_CHECK(n <= INT64_MAX, "tensor ", shown(e.name), " has a size of ", n);
      e.sizes.push_back(int64_t(n));
    }
    // The format counts 4-bit numbers, a tensor here pairs of them.
    if (e.dtype == kFloat4_e2m1fn_x2) {
      FORMAT_CHECK(!e.sizes.empty() && e.sizes.back() % 2 == 0, "tensor ", shown(e.name),
                   " of 4-bit numbers needs an even last size");
      e.sizes.back() /= 2;
    }
    FORMAT_CHECK(f.offsets->size() == 2, "tensor ", shown(e.name), ": expected 2 data_offsets, got ",
                 f.offsets->size());
    uint64_t begin = (*f.offsets)[0], end = (*f.offsets)[1];
    FORMAT_CHECK(begin <= end && end <= data_bytes, "tensor ", shown(e.name), ": data_offsets ", begin,
                 " to ", end, " are not inside the ", data_bytes, " bytes of data");
    uint64_t bytes = checked_bytes(e, source);
    FORMAT_CHECK(bytes == end - begin, "tensor ", shown(e.name), ": its shape and dtype need ", bytes,
                 " bytes, its data_offsets give ", end - begin);
    e.begin = data_begin + begin;
    e.end = data_begin + end;
    header.entries.push_back(std::move(e));
  }

  std::vector<const SafetensorsEntry*> by_place;
  for (auto& e : header.entries) by_place.push_back(&e);
  std::sort(by_place.begin(), by_place.end(),
            [](auto* a, auto* b) { return std::pair(a->begin, a->end) < std::pair(b->begin, b->end); });
  uint64_t place = data_begin;
  for (auto* e : by_place) {
    FORMAT_CHECK(e->begin >= place, "the data of tensor ", shown(e->name), " overlap another tensor's");
    FORMAT_CHECK(e->begin <= place, "no tensor owns the ", e->begin - place, " bytes of data before tensor ",
                 shown(e->name));
    place = e->end;
  }
  FORMAT_CHECK(place == file.size(), "no tensor owns the last ", file.size() - place, " bytes of the file");

  std::sort(header.entries.begin(), header.entries.end(), [](auto& a, auto& b) { return a.name < b.name; });
  for (size_t i = 1; i < header.entries.size(); ++i)
    FORMAT_CHECK(header.entries[i].name != header.entries[i - 1].name, "tensor ",
                 shown(header.entries[i].name), " appears twice");
  return header;
}

std::string print_safetensors_header(std::vector<SafetensorsEntry>& entries, const MetadataMap& metadata) {
  nlohmann::ordered_json root = nlohmann::ordered_json::object();
  if (!metadata.empty()) root["__metadata__"] = metadata;
  uint64_t place = 0;
  std::string source;  // sizes of existing tensors fit, but their sum might not
  for (auto& e : entries) {
    e.begin = place;
    e.end = place = checked_add(place, checked_bytes(e, source), "save_safetensors");
    const char* dtype = nullptr;
    for (auto& d : kDTypes)
      if (d.dtype == e.dtype) dtype = d.text;
    VESTA_CHECK(dtype, "save_safetensors: tensor ", shown(e.name), " has dtype ", dtype_name(e.dtype),
                ", which the format cannot hold; save view_as_real of it");
    std::vector<int64_t> shape = e.sizes;
    if (e.dtype == kFloat4_e2m1fn_x2) {
      VESTA_CHECK(!shape.empty(), "save_safetensors: tensor ", shown(e.name), " of dtype ",
                  dtype_name(e.dtype), " has no last dim to count 4-bit numbers in");
      shape.back() = checked_mul<int64_t>(shape.back(), 2, "save_safetensors");
    }
    root[e.name] = {{"dtype", dtype}, {"shape", shape}, {"data_offsets", {e.begin, e.end}}};
  }
  std::string text;
  try {
    text = root.dump();
  } catch (const nlohmann::json::exception& error) {
    throw ValueError(
        detail::message("save_safetensors: a name or metadata text is not UTF-8 (", error.what(), ")"));
  }
  text.resize(checked_round_up(text.size(), 8, "save_safetensors"), ' ');  // so that the data start aligned
  VESTA_CHECK(text.size() <= kMaxSafetensorsHeader, "save_safetensors: the header has ", text.size(),
              " bytes, at most ", kMaxSafetensorsHeader, " can be read back");
  for (auto& e : entries) e.begin += 8 + text.size(), e.end += 8 + text.size();
  uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + text;
}

}  // namespace vesta
