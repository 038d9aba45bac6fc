#pragma once
// The zip container of .npz files and PyTorch checkpoints (APPNOTE.TXT 6.3, with zip64): the part that both need, on
// bytes that are mapped, so that stored entries are used in place. zlib does the compression and the checksums.
// Not read: encryption, other methods than stored and deflated, archives in several parts.
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "serialize/byte_region.h"
#include "serialize/byte_sink.h"

namespace vesta {

struct ZipEntry {
  std::string name;
  bool deflated = false;
  uint32_t crc = 0;
  uint64_t header = 0;      // where its header begins in the file
  uint64_t begin = 0;       // where its data begin
  uint64_t compressed = 0;  // bytes in the file
  uint64_t size = 0;        // bytes of content
};

// Guarantees: names are unique; entries lie inside the file and do not overlap; a stored entry's sizes are equal, and a
// deflated one's size can be reached from its bytes. Untrusted input: IoError, or NotImplementedError by name.
class ZipReader {
 public:
  // `where` starts the messages: "load_npz 'a.npz'".
  ZipReader(ByteRegion file, std::string where);
  const std::vector<ZipEntry>& entries() const { return entries_; }
  const ZipEntry* find(const std::string& name) const;
  // The content: a window into the file where it is stored, else inflated into memory. `check` compares the checksum.
  ByteRegion read(const ZipEntry& entry, bool check) const;

 private:
  void read_directory();
  void read_entry(uint64_t* position, uint64_t end);
  void locate_data(ZipEntry& entry, uint64_t end) const;

  ByteRegion file_;
  std::string where_;
  std::vector<ZipEntry> entries_;
  std::unordered_map<std::string, size_t> index_;
};

// Writes entries one after another, stored ones at multiples of 64 bytes. Times are those of 1980-01-01, so that equal
// content gives equal files. finish() writes the directory; the caller commits the sink.
class ZipWriter {
 public:
  enum class Method { Stored, Deflated };
  static constexpr uint64_t kAlignment = 64;
  // always_zip64: 64-bit fields also where 32 would do, for tests of files that are too large for tests.
  explicit ZipWriter(ByteSink& sink, bool always_zip64 = false) : sink_(sink), always_zip64_(always_zip64) {}
  void add(const std::string& name, const void* data, uint64_t bytes, Method method = Method::Stored);
  void add(const std::string& name, std::string_view text) { add(name, text.data(), text.size()); }
  // Content in two pieces, as .npz entries are (header, elements).
  void add(const std::string& name, std::string_view head, const void* data, uint64_t bytes, Method method);
  void finish();

 private:
  struct Written {
    std::string name;
    Method method;
    uint32_t crc;
    uint64_t compressed, size, local;
  };
  void put(std::string_view text) {
    sink_.write(text);
    position_ += text.size();
  }

  ByteSink& sink_;
  bool always_zip64_;
  uint64_t position_ = 0;
  std::vector<Written> written_;
};

}  // namespace vesta
