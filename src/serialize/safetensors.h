#pragma once
// The safetensors header: what a file holds and where, checked. Reading of elements is in safetensors.cpp.
// Separate from files so that the parser can be tested on bytes alone.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "vesta/dtype.h"
#include "vesta/safetensors.h"

namespace vesta {

struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::Undefined;
  std::vector<int64_t> sizes;
  uint64_t begin = 0, end = 0;  // bytes of the file
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // by name
  MetadataMap metadata;
};

// Limits against hostile files; the reference implementation has the same limit of the header.
constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;
constexpr size_t kMaxSafetensorsDims = 64;

// `file`: the whole file. `source` names it in messages. Guarantees: entries lie inside the file, do not overlap, leave
// no gap, and each holds exactly its sizes times its dtype.
SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file, const std::string& source);

// The first bytes of a file (length and header) for entries whose begin and end are set by this call, in their order.
std::string print_safetensors_header(std::vector<SafetensorsEntry>& entries, const MetadataMap& metadata);

}  // namespace vesta
