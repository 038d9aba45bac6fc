// Writing zip archives: sizes and checksum are known before an entry is written, so no data descriptors.
#include <vesta/error.h>
#include <zlib.h>

#include <algorithm>

#include "serialize/format_error.h"
#include "serialize/zip.h"

namespace vesta {
namespace {

// 1980-01-01 00:00, the first date of the format.
constexpr uint32_t kDate = 1u << 5 | 1u, kTime = 0;
constexpr uint16_t kUtf8Name = 1u << 11;
// Extra field that only moves the data: the id that zipalign uses (readers skip fields they do not know).
constexpr uint16_t kPaddingField = 0xd935, kZip64Field = 1;

void put16(std::string& out, uint64_t v) {
  out += char(v & 255);
  out += char(v >> 8 & 255);
}
void put32(std::string& out, uint64_t v) {
  put16(out, v & 0xffff);
  put16(out, v >> 16 & 0xffff);
}
void put64(std::string& out, uint64_t v) {
  put32(out, v & 0xffffffff);
  put32(out, v >> 32);
}

// zlib at level 1: checkpoints hardly compress, and higher levels cost several times the time.
std::string deflated(std::string_view head, const void* data, uint64_t bytes) {
  z_stream stream{};
  VESTA_CHECK_AS(OutOfMemory, deflateInit2(&stream, 1, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK,
                 "save: no memory to compress");
  std::string out;
  try {
    const auto feed = [&](const char* begin, uint64_t count, bool last) {
      do {
        const uInt give = uInt(std::min<uint64_t>(count, 1u << 30));
        stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(begin));
        stream.avail_in = give;
        begin += give;
        count -= give;
        do {
          char buffer[1 << 16];
          stream.next_out = reinterpret_cast<Bytef*>(buffer);
          stream.avail_out = sizeof buffer;
          deflate(&stream, last && count == 0 ? Z_FINISH : Z_NO_FLUSH);
          out.append(buffer, sizeof buffer - stream.avail_out);
        } while (stream.avail_out == 0);
      } while (count);
    };
    if (!head.empty()) feed(head.data(), head.size(), false);
    feed(static_cast<const char*>(data), bytes, true);
  } catch (...) {
    deflateEnd(&stream);
    throw;
  }
  deflateEnd(&stream);
  return out;
}

}  // namespace

void ZipWriter::add(const std::string& name, const void* data, uint64_t bytes, Method method) {
  add(name, {}, data, bytes, method);
}

void ZipWriter::add(const std::string& name, std::string_view head, const void* data, uint64_t bytes,
                    Method method) {
  VESTA_CHECK(name.size() < 65000 && is_utf8(name) && name.find('\0') == std::string::npos, "save: the name ",
              shown(name), " is too long for a zip archive, holds a zero byte or is not UTF-8");
  uLong crc = crc32_z(crc32_z(0, nullptr, 0), reinterpret_cast<const Bytef*>(head.data()), head.size());
  if (bytes) crc = crc32_z(crc, static_cast<const Bytef*>(data), bytes);
  std::string packed;
  if (method == Method::Deflated) packed = deflated(head, data, bytes);
  Written w{name, method, uint32_t(crc), 0, head.size() + bytes, position_};
  w.compressed = method == Method::Deflated ? packed.size() : w.size;

  const bool zip64 = always_zip64_ || w.size >= UINT32_MAX || w.compressed >= UINT32_MAX;
  std::string extra;
  if (zip64) {
    put16(extra, kZip64Field);
    put16(extra, 16);
    put64(extra, w.size);
    put64(extra, w.compressed);
  }
  if (method == Method::Stored) {
    const uint64_t place = position_ + 30 + name.size() + extra.size() + 4;
    const uint64_t padding = (kAlignment - place % kAlignment) % kAlignment;
    put16(extra, kPaddingField);
    put16(extra, padding);
    extra.append(size_t(padding), '\0');
  }
  std::string header;
  put32(header, 0x04034b50);
  put16(header, zip64 ? 45 : 20);  // version needed
  put16(header, kUtf8Name);
  put16(header, method == Method::Deflated ? 8 : 0);
  put16(header, kTime);
  put16(header, kDate);
  put32(header, w.crc);
  put32(header, zip64 ? UINT32_MAX : w.compressed);
  put32(header, zip64 ? UINT32_MAX : w.size);
  put16(header, name.size());
  put16(header, extra.size());
  put(header + name + extra);
  if (method == Method::Deflated) {
    put(packed);
  } else {
    put(head);
    if (bytes) put({static_cast<const char*>(data), size_t(bytes)});
  }
  written_.push_back(std::move(w));
}

void ZipWriter::finish() {
  const uint64_t begin = position_;
  for (auto& w : written_) {
    std::string extra;
    const bool zip64 =
        always_zip64_ || w.size >= UINT32_MAX || w.compressed >= UINT32_MAX || w.local >= UINT32_MAX;
    if (zip64) {
      put16(extra, kZip64Field);
      put16(extra, 24);
      put64(extra, w.size);
      put64(extra, w.compressed);
      put64(extra, w.local);
    }
    std::string entry;
    put32(entry, 0x02014b50);
    put16(entry, 45);  // made by: MS-DOS attributes, version 4.5
    put16(entry, zip64 ? 45 : 20);
    put16(entry, kUtf8Name);
    put16(entry, w.method == Method::Deflated ? 8 : 0);
    put16(entry, kTime);
    put16(entry, kDate);
    put32(entry, w.crc);
    put32(entry, zip64 ? UINT32_MAX : w.compressed);
    put32(entry, zip64 ? UINT32_MAX : w.size);
    put16(entry, w.name.size());
    put16(entry, extra.size());
    put16(entry, 0);  // comment
    put16(entry, 0);  // disk
    put16(entry, 0);  // internal attributes
    put32(entry, 0);  // external attributes
    put32(entry, zip64 ? UINT32_MAX : w.local);
    put(entry + w.name + extra);
  }
  const uint64_t bytes = position_ - begin, count = written_.size();
  std::string end;
  const bool zip64 = always_zip64_ || count >= UINT16_MAX || bytes >= UINT32_MAX || begin >= UINT32_MAX;
  if (zip64) {
    put32(end, 0x06064b50);
    put64(end, 44);  // bytes of this record that follow
    put16(end, 45);
    put16(end, 45);
    put32(end, 0);
    put32(end, 0);
    put64(end, count);
    put64(end, count);
    put64(end, bytes);
    put64(end, begin);
    put32(end, 0x07064b50);
    put32(end, 0);
    put64(end, position_);
    put32(end, 1);
  }
  put32(end, 0x06054b50);
  put16(end, 0);
  put16(end, 0);
  put16(end, zip64 ? UINT16_MAX : count);
  put16(end, zip64 ? UINT16_MAX : count);
  put32(end, zip64 ? UINT32_MAX : bytes);
  put32(end, zip64 ? UINT32_MAX : begin);
  put16(end, 0);
  put(end);
}

}  // namespace vesta
