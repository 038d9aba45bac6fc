// Reading zip archives. The directory at the end of the file is the only list of entries that is believed; the header
// in front of each entry must agree with it, so that no two readers see different content.
#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "serialize/format_error.h"
#include "serialize/zip.h"

namespace vesta {
namespace {

constexpr uint32_t kLocalMagic = 0x04034b50, kEntryMagic = 0x02014b50, kEndMagic = 0x06054b50,
                   kEnd64Magic = 0x06064b50, kLocator64Magic = 0x07064b50;
constexpr uint64_t kLocalBytes = 30, kEntryBytes = 46, kEndBytes = 22, kEnd64Bytes = 56, kLocator64Bytes = 20;
constexpr uint16_t kEncrypted = 1u << 0, kMaskedHeaders = 1u << 13;
constexpr uint16_t kZip64Field = 1;
// Deflate cannot do better: a bit for 258 bytes at most (zlib.net/zlib_tech.html), and a constant for tiny inputs.
constexpr uint64_t kMaxInflation = 1032, kInflationStart = 1024;

uint16_t get16(const std::byte* p) { return uint16_t(unsigned(p[0]) | unsigned(p[1]) << 8); }
uint32_t get32(const std::byte* p) { return uint32_t(get16(p)) | uint32_t(get16(p + 2)) << 16; }
uint64_t get64(const std::byte* p) { return uint64_t(get32(p)) | uint64_t(get32(p + 4)) << 32; }

// Overwrites those of the three values whose 32-bit field said "see the extra field". False: they are not there.
bool read_zip64_field(const std::byte* extra, size_t bytes, uint64_t* size, uint64_t* compressed,
                      uint64_t* local) {
  if (*size != UINT32_MAX && *compressed != UINT32_MAX && *local != UINT32_MAX) return true;
  while (bytes >= 4) {
    const size_t id = get16(extra), length = get16(extra + 2);
    if (length > bytes - 4) return false;
    if (id == kZip64Field) {
      size_t used = 4;
      for (uint64_t* value : {size, compressed, local}) {
        if (*value != UINT32_MAX) continue;
        if (used + 8 > 4 + length) return false;
        *value = get64(extra + used);
        used += 8;
      }
      return true;
    }
    extra += 4 + length;
    bytes -= 4 + length;
  }
  return false;
}

std::string_view text_at(const std::byte* p, size_t bytes) {
  return {reinterpret_cast<const char*>(p), bytes};
}

}  // namespace

ZipReader::ZipReader(ByteRegion file, std::string where) : file_(std::move(file)), where_(std::move(where)) {
  read_directory();
}

const ZipEntry* ZipReader::find(const std::string& name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? nullptr : &entries_[it->second];
}

void ZipReader::read_directory() {
  const std::string& where = where_;
  const std::byte* data = file_.data();
  const uint64_t size = file_.size();
  VESTA_FORMAT_CHECK(size >= kEndBytes, "expected a zip archive, but the file has only ", size, " bytes");
  // The end record, then a comment of up to 65,535 bytes that ends with the file.
  uint64_t end = size - kEndBytes;
  const uint64_t first = end > UINT16_MAX ? end - UINT16_MAX : 0;
  while (get32(data + end) != kEndMagic || get16(data + end + 20) != size - end - kEndBytes) {
    VESTA_FORMAT_CHECK(end > first, "no end of a zip archive was found: the file is cut, or no archive");
    --end;
  }
  uint64_t disk = get16(data + end + 4), first_disk = get16(data + end + 6);
  uint64_t count = get16(data + end + 10), bytes = get32(data + end + 12), begin = get32(data + end + 16);
  uint64_t directory_end = end;
  if (end >= kLocator64Bytes && get32(data + end - kLocator64Bytes) == kLocator64Magic) {
    const uint64_t locator = end - kLocator64Bytes, end64 = get64(data + locator + 8);
    VESTA_FORMAT_CHECK(
        end64 <= locator && locator - end64 >= kEnd64Bytes && get32(data + end64) == kEnd64Magic,
        "the zip64 end record is not at byte ", end64);
    disk = get32(data + end64 + 16);
    first_disk = get32(data + end64 + 20);
    count = get64(data + end64 + 32);
    bytes = get64(data + end64 + 40);
    begin = get64(data + end64 + 48);
    directory_end = end64;
  }
  VESTA_CHECK_AS(NotImplementedError, disk == 0 && first_disk == 0, where,
                 ": a zip archive in several parts is not supported");
  VESTA_FORMAT_CHECK(begin <= directory_end && bytes <= directory_end - begin, "the directory (", bytes,
                     " bytes at ", begin, ") is not inside the file");
  VESTA_FORMAT_CHECK(count <= bytes / kEntryBytes, "the directory claims ", count, " entries in ", bytes,
                     " bytes");
  uint64_t position = begin;
  entries_.reserve(size_t(count));
  while (entries_.size() < count) read_entry(&position, begin + bytes);
  VESTA_FORMAT_CHECK(position == begin + bytes, "the directory has ", begin + bytes - position,
                     " bytes after its last entry");

  std::vector<const ZipEntry*> by_place;
  for (auto& e : entries_) {
    VESTA_FORMAT_CHECK(e.begin + e.compressed <= begin, "entry ", shown(e.name),
                       " reaches into the directory");
    by_place.push_back(&e);
  }
  std::sort(by_place.begin(), by_place.end(), [](auto* a, auto* b) { return a->header < b->header; });
  uint64_t place = 0;
  for (auto* e : by_place) {
    VESTA_FORMAT_CHECK(e->header >= place, "entry ", shown(e->name), " overlaps another");
    place = e->begin + e->compressed;
  }
}

void ZipReader::read_entry(uint64_t* position, uint64_t end) {
  const std::string& where = where_;
  VESTA_FORMAT_CHECK(end - *position >= kEntryBytes, "the directory ends inside an entry");
  const std::byte* p = file_.data() + *position;
  VESTA_FORMAT_CHECK(get32(p) == kEntryMagic, "expected a directory entry at byte ", *position);
  const uint16_t flags = get16(p + 8), method = get16(p + 10);
  const size_t name_bytes = get16(p + 28), extra_bytes = get16(p + 30), comment_bytes = get16(p + 32);
  VESTA_FORMAT_CHECK(end - *position - kEntryBytes >= name_bytes + extra_bytes + comment_bytes,
                     "the directory ends inside an entry");
  ZipEntry e;
  e.name = text_at(p + kEntryBytes, name_bytes);
  VESTA_FORMAT_CHECK(e.name.find('\0') == std::string::npos,
                     "an entry's name holds a zero byte: ", shown(e.name));
  VESTA_CHECK_AS(NotImplementedError, !(flags & (kEncrypted | kMaskedHeaders)), where, ": entry ",
                 shown(e.name), " is encrypted, which is not supported");
  VESTA_CHECK_AS(NotImplementedError, method == 0 || method == 8, where, ": entry ", shown(e.name),
                 " has compression method ", method, ", expected 0 (stored) or 8 (deflated)");
  e.deflated = method == 8;
  e.crc = get32(p + 16);
  e.compressed = get32(p + 20);
  e.size = get32(p + 24);
  e.header = get32(p + 42);
  VESTA_FORMAT_CHECK(
      read_zip64_field(p + kEntryBytes + name_bytes, extra_bytes, &e.size, &e.compressed, &e.header),
      "entry ", shown(e.name), " lacks its 64-bit sizes");
  VESTA_FORMAT_CHECK(e.deflated || e.size == e.compressed, "stored entry ", shown(e.name), " has ",
                     e.compressed, " bytes but claims ", e.size);
  VESTA_FORMAT_CHECK(e.compressed <= file_.size(), "entry ", shown(e.name), " claims ", e.compressed,
                     " bytes, the file has ", file_.size());
  VESTA_FORMAT_CHECK(e.size <= e.compressed * kMaxInflation + kInflationStart, "entry ", shown(e.name),
                     " claims ", e.size, " bytes, more than its ", e.compressed,
                     " compressed bytes can give");
  locate_data(e, *position);
  *position += kEntryBytes + name_bytes + extra_bytes + comment_bytes;
  VESTA_FORMAT_CHECK(index_.emplace(e.name, entries_.size()).second, "entry ", shown(e.name),
                     " appears twice");
  entries_.push_back(std::move(e));
}

// `end`: where the data must end at the latest.
void ZipReader::locate_data(ZipEntry& e, uint64_t end) const {
  const std::string& where = where_;
  const uint64_t local = e.header;
  VESTA_FORMAT_CHECK(local <= end && end - local >= kLocalBytes, "entry ", shown(e.name),
                     " is said to be at byte ", local, ", outside the file");
  const std::byte* p = file_.data() + local;
  VESTA_FORMAT_CHECK(get32(p) == kLocalMagic, "no entry is at byte ", local, ", where ", shown(e.name),
                     " should be");
  const uint64_t name_bytes = get16(p + 26), extra_bytes = get16(p + 28);
  VESTA_FORMAT_CHECK(end - local - kLocalBytes >= name_bytes + extra_bytes, "the file ends inside entry ",
                     shown(e.name));
  VESTA_FORMAT_CHECK(text_at(p + kLocalBytes, name_bytes) == e.name, "entry ", shown(e.name),
                     " calls itself ", shown(text_at(p + kLocalBytes, name_bytes)));
  VESTA_FORMAT_CHECK((get16(p + 8) == 8) == e.deflated, "entry ", shown(e.name),
                     " differs from the directory in its method");
  e.begin = local + kLocalBytes + name_bytes + extra_bytes;
  VESTA_FORMAT_CHECK(e.compressed <= end - e.begin, "entry ", shown(e.name), " claims ", e.compressed,
                     " bytes, but only ", end - e.begin, " follow");
}

ByteRegion ZipReader::read(const ZipEntry& e, bool check) const {
  const std::string& where = where_;
  ByteRegion content = file_.slice(size_t(e.begin), size_t(e.compressed));
  if (e.deflated) {
    ByteRegion inflated = allocate_region(size_t(e.size));
    z_stream stream{};
    VESTA_CHECK_AS(OutOfMemory, inflateInit2(&stream, -MAX_WBITS) == Z_OK, where,
                   ": no memory to inflate entry ", shown(e.name));
    // zlib counts in 32 bits: feed it in pieces.
    uint64_t in = 0, out = 0;
    int status = Z_OK;
    while (status == Z_OK) {
      const uInt give = uInt(std::min<uint64_t>(e.compressed - in, 1u << 30));
      const uInt room = uInt(std::min<uint64_t>(e.size - out, 1u << 30));
      stream.next_in = reinterpret_cast<Bytef*>(content.data() + in);
      stream.avail_in = give;
      stream.next_out = reinterpret_cast<Bytef*>(inflated.data() + out);
      stream.avail_out = room;
      status = inflate(&stream, Z_NO_FLUSH);
      in += give - stream.avail_in;
      out += room - stream.avail_out;
      if (status == Z_OK && give == stream.avail_in && room == stream.avail_out) break;  // no progress
    }
    inflateEnd(&stream);
    VESTA_CHECK_AS(OutOfMemory, status != Z_MEM_ERROR, where, ": no memory to inflate entry ", shown(e.name));
    VESTA_FORMAT_CHECK(status == Z_STREAM_END && out == e.size && in == e.compressed,
                       "the compressed data of entry ", shown(e.name), " are damaged");
    content = std::move(inflated);
  }
  if (check) {
    const uint32_t crc = uint32_t(
        crc32_z(crc32_z(0, nullptr, 0), reinterpret_cast<const Bytef*>(content.data()), content.size()));
    VESTA_FORMAT_CHECK(crc == e.crc, "the checksum of entry ", shown(e.name), " does not match its content");
  }
  return content;
}

}  // namespace vesta
