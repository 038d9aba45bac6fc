// Pickle opcodes of protocol 2.
#include <cstring>

#include "serialize/format_error.h"
#include "serialize/pickle.h"

namespace vesta {

void PickleWriter::integer(int64_t v) {
  if (v >= 0 && v < 256) {
    out_ += 'K';
    out_ += char(v);
  } else if (v >= INT32_MIN && v <= INT32_MAX) {
    out_ += 'J';
    for (int shift = 0; shift < 32; shift += 8) out_ += char(uint64_t(v) >> shift & 255);
  } else {
    out_ += '\x8a';
    out_ += '\x08';
    for (int shift = 0; shift < 64; shift += 8) out_ += char(uint64_t(v) >> shift & 255);
  }
}

void PickleWriter::number(double v) {
  uint64_t bits;
  std::memcpy(&bits, &v, 8);
  out_ += 'G';
  for (int shift = 56; shift >= 0; shift -= 8) out_ += char(bits >> shift & 255);
}

void PickleWriter::text(std::string_view utf8) {
  VESTA_CHECK(is_utf8(utf8), "save: the text ", shown(utf8), " is not UTF-8");
  VESTA_CHECK(utf8.size() <= UINT32_MAX, "save: a text has ", utf8.size(), " bytes");
  out_ += 'X';
  for (int shift = 0; shift < 32; shift += 8) out_ += char(utf8.size() >> shift & 255);
  out_ += utf8;
}

void PickleWriter::global(std::string_view module, std::string_view name) {
  out_ += 'c';
  out_ += module;
  out_ += '\n';
  out_ += name;
  out_ += '\n';
}

void PickleWriter::put(uint32_t id) {
  out_ += 'r';
  for (int shift = 0; shift < 32; shift += 8) out_ += char(id >> shift & 255);
}

void PickleWriter::get(uint32_t id) {
  out_ += 'j';
  for (int shift = 0; shift < 32; shift += 8) out_ += char(id >> shift & 255);
}

}  // namespace vesta
